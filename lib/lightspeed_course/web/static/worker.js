// The worker: Pyodide's bare core, the course's Python, and the reader's progress. It speaks JSON with page.js.
import {loadPyodide} from "./pyodide/pyodide.mjs";
import {all, keeper, opened} from "./progress.js";

const tell = (message) => postMessage(JSON.stringify(message));
const unkept = (error) => tell({unkept: `This browser does not keep your progress: ${error?.message ?? error}. Export it before you leave.`});

// What the page starts from, asked for at once. The image is the memory of a Python that has imported the course, made when the site was
// built (compile.mjs). Where it is missing or does not start, Python starts from nothing.
const BUILD = new URL(import.meta.url).searchParams.get("build") ?? "none";
const at = (name) => new URL(`./${name}?build=${BUILD}`, import.meta.url).href;
const LIBRARY = at("pyodide/python_stdlib.zip"), WASM = new URL("./pyodide/pyodide.asm.wasm", import.meta.url).href;
const {fetch} = self, {instantiateStreaming} = WebAssembly;

async function unpressed(name) {
  const answer = await fetch(at(name));
  if (!answer.ok) throw new Error(`${name}: ${answer.status}`);
  return new Uint8Array(await new Response(answer.body.pipeThrough(new DecompressionStream("gzip"))).arrayBuffer());
}

// A host that does not know the type of the file cannot have it compiled while it arrives.
const compiled = fetch(WASM).then((answer) => WebAssembly.compileStreaming(answer.clone())
  .catch(async () => WebAssembly.compile(await answer.arrayBuffer())));

async function started(image) {
  const plain = {indexURL: new URL("./pyodide/", import.meta.url).href, stdLibURL: LIBRARY, env: {LIGHTSPEED_DATA: "/progress", HOME: "/home/reader"}};
  const usual = {fetch, instantiateStreaming};
  // Pyodide asks for its module and its library itself: it gets the module that is being compiled, and no library where none is needed yet.
  self.fetch = (address, ...more) => String(address) === WASM || (image && String(address) === LIBRARY) ? new Response() : fetch(address, ...more);
  WebAssembly.instantiateStreaming = async (_, imports) => {
    const module = await compiled, instance = await WebAssembly.instantiate(module, imports);
    if (image) overlay(await image, imports.env.memory);
    return {module, instance};
  };
  try {
    return await loadPyodide(image ? {...plain, _loadSnapshot: image} : plain);
  } finally {
    self.fetch = usual.fetch;
    WebAssembly.instantiateStreaming = usual.instantiateStreaming;
  }
}

// The image lacks what the module itself brings into the memory.
function overlay(image, memory) {
  const [, head] = new Uint32Array(image.buffer, 0, 2), kept = new Uint32Array(image.buffer, head), brought = new Uint32Array(memory.buffer, 0, kept.length);
  for (let k = 0; k < kept.length; k++) kept[k] ^= brought[k];
}

// A file that is fetched when it is first read. Python waits, as for a disk.
function lazily(FS, path, size, address) {
  FS.writeFile(path, "");
  const {node} = FS.lookupPath(path);
  node.usedBytes = size;
  Object.defineProperty(node, "contents", {configurable: true, get() {
    const asked = new XMLHttpRequest();
    asked.open("GET", address, false);
    asked.responseType = "arraybuffer";
    try {
      asked.send();
    } catch {
      throw new FS.ErrnoError(29); // an error of input or output, which Python tells
    }
    if (asked.status !== 200) throw new FS.ErrnoError(29);
    Object.defineProperty(node, "contents", {value: new Uint8Array(asked.response), writable: true});
    return node.contents;
  }});
}

// Python from the image, with the files that it knows: those that come soon, and the others when they are read.
async function fromImage(image, soon) {
  const python = await started(image), given = await soon, {FS} = python;
  const size = new DataView(given.buffer).getUint32(0, true), list = JSON.parse(new TextDecoder().decode(given.subarray(4, 4 + size)));
  const sizes = new Map(list.files), here = new Set(list.soon), folders = new Set(list.files.map(([name]) => `/course/${name}`.replace(/\/[^/]*$/, "")));
  for (const folder of folders) FS.mkdirTree(folder);
  let start = 4 + size;
  for (const name of list.soon) FS.writeFile(`/course/${name}`, given.subarray(start, start += sizes.get(name)));
  for (const [name, length] of list.files) if (!here.has(name)) lazily(FS, `/course/${name}`, length, at(`course/${name}`));
  lazily(FS, "/lib/python312.zip", list.library, LIBRARY);
  return python;
}

async function fromNothing() {
  const [python, course] = await Promise.all([started(null), unpressed("course.bin")]);
  python.unpackArchive(course, "zip", {extractDir: "/course"});
  python.runPython("import sys; sys.path.insert(0, '/course')");
  return python;
}

async function begin() {
  const since = performance.now();
  let base = null, warm = true;
  const rows = opened().then((found) => all(base = found)).catch((error) => (unkept(error), []));
  tell({note: "loading Python"});
  const python = await fromImage(unpressed("image.bin"), unpressed("soon.bin")).catch((error) => {
    console.warn("The image of the memory does not start:", error);
    warm = false;
    return fromNothing();
  });
  const live = python.pyimport("lightspeed_course.web.live");
  live.begin((text) => postMessage(text), JSON.stringify(await rows), keeper(base, () => tell({kept: true}), unkept));
  tell({ready: Math.round(performance.now() - since), warm});
  return live;
}

const live = begin();
live.catch((error) => tell({broken: String(error?.message ?? error)}));
onmessage = async ({data}) => (await live).hear(data);
