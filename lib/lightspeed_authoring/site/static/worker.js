// The worker: Pyodide's bare core, the course's Python, and the reader's progress. It speaks JSON with page.js.
const tell = (message) => postMessage(JSON.stringify(message));
const unkept = (error) => tell({unkept: `This browser does not keep your progress: ${error?.message ?? error}. Export it before you leave.`});

// What the page starts from. The image is the memory of a Python that has imported the course, made when the site was built
// (compile.mjs). Where it is missing or does not start, Python starts from nothing.
const BUILD = new URL(import.meta.url).searchParams.get("build") ?? "none";
const at = (name) => new URL(`./${name}?build=${BUILD}`, import.meta.url).href;
const LIBRARY = at("pyodide/python_stdlib.zip"), WASM = new URL("./pyodide/pyodide.asm.wasm", import.meta.url).href;
const {fetch} = self, {instantiateStreaming} = WebAssembly;

// All of it is asked for at once: this file imports nothing that it would wait for, and Pyodide would ask for its second half late.
// A host that does not know the type of the module cannot have it compiled while it arrives.
const compiled = WebAssembly.compileStreaming(fetch(WASM)).catch(async () => WebAssembly.compile(await (await fetch(WASM)).arrayBuffer()));
const contents = new Map(); // of the course's files, as they come
let missed = false, draft = null; // whether Python read a file that had not come; what a cell says while it opens
const image = unpressed("image.bin"), soon = unpressed("soon.bin").then(unpacked);
const modules = Promise.all([import("./pyodide/pyodide.mjs"), import("./progress.js"), import("./pyodide/pyodide.asm.js")]);
for (const coming of [compiled, image, soon, modules]) coming.catch(() => {}); // who waits for it is told

async function unpressed(name) {
  const answer = await fetch(at(name));
  if (!answer.ok) throw new Error(`${name}: ${answer.status}`);
  return new Uint8Array(await new Response(answer.body.pipeThrough(new DecompressionStream("gzip"))).arrayBuffer());
}

// Some of the course's files in one: first the list of them, then one after the other.
function unpacked(bundle) {
  const size = new DataView(bundle.buffer).getUint32(0, true), list = JSON.parse(new TextDecoder().decode(bundle.subarray(4, 4 + size)));
  let start = 4 + size;
  for (const [name, length] of list.inside) contents.set(name, bundle.subarray(start, start += length));
  return list;
}

// What a module's explorers open, or a topic's questions, what answers take, what cells of one's own may ask for: each is one file, asked
// for once, on its way while Python starts. One that did not come is asked for again.
const bundles = new Map();
function bring(name) {
  if (!bundles.has(name)) {
    const coming = unpressed(`bundles/${name}.bin`).then(unpacked);
    bundles.set(name, coming);
    coming.catch(() => bundles.delete(name));
  }
  return bundles.get(name);
}

async function started(image) {
  const [{loadPyodide}] = await modules;
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

// A file whose content comes later: of a bundle, or, at an address, when it is first read. Python waits then, as for a disk.
function lazily(FS, path, size, here, address) {
  FS.writeFile(path, "");
  const {node} = FS.lookupPath(path);
  const keep = (value) => Object.defineProperty(node, "contents", {value, writable: true});
  node.usedBytes = size;
  Object.defineProperty(node, "contents", {configurable: true, get() {
    const had = here?.();
    if (had) return keep(had).contents;
    if (!address) {
      missed = true;
      throw new FS.ErrnoError(29); // an error of input or output, which Python tells
    }
    const asked = new XMLHttpRequest();
    asked.open("GET", address, false);
    asked.responseType = "arraybuffer";
    try {
      asked.send();
    } catch {
      throw new FS.ErrnoError(29);
    }
    if (asked.status !== 200) throw new FS.ErrnoError(29);
    return keep(new Uint8Array(asked.response)).contents;
  }});
}

// Python from the image, with the files that it knows: those that came, and the others when they are read.
async function fromImage() {
  const python = await started(image), {files, library} = await soon, {FS} = python;
  for (const folder of new Set(files.map(([name]) => `/course/${name}`.replace(/\/[^/]*$/, "")))) FS.mkdirTree(folder);
  for (const [name, length] of files) lazily(FS, `/course/${name}`, length, () => contents.get(name));
  lazily(FS, "/lib/python312.zip", library, null, LIBRARY);
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
  tell({note: "loading Python"});
  const [, {all, keeper, opened}] = await modules;
  const rows = opened().then((found) => all(base = found)).catch((error) => (unkept(error), []));
  const python = await fromImage().catch((error) => {
    console.warn("The image of the memory does not start:", error);
    warm = false;
    return fromNothing();
  });
  const live = python.pyimport("lightspeed_course.web.live");
  const had = await rows, {keep, hear} = keeper(base, had, (message) => (message.unkept ? unkept(message.unkept) : tell(message)));
  live.begin((text) => (draft ? draft.push(text) : postMessage(text)), JSON.stringify(had), keep);
  hear((more) => live.hear(JSON.stringify({elsewhere: more})));
  tell({ready: Math.round(performance.now() - since), warm});
  return live;
}

const live = begin();
live.catch((error) => tell({broken: String(error?.message ?? error)}));

// What a message needs of the course comes before Python hears it. Messages stay in their order.
const ALL = ["common", "rest", "tools"];
function needed({open, call = [""]}) {
  const [kind, id = ""] = call, explorer = kind.match(/^(\w+)\.explore/)?.[1], topic = String(id).split(".")[0];
  if (!open) return ALL;
  if (explorer || kind === "bench") return ["common", explorer ?? kind];
  if (["ask", "predict", "reveal"].includes(kind) && !["incident", "puzzle"].includes(topic)) return ["common", `ask-${topic}`];
  return ALL;
}
const brought = (names) => Promise.all(names.map((name) => bring(name).catch(() => {}))); // Python says what it then lacks

// A link or earlier answers may ask for more than a cell opens as it stands: it then opens once more, with all of the course.
function said(hear, data) {
  const words = [];
  [missed, draft] = [false, words];
  try {
    hear(data);
  } finally {
    draft = null;
  }
  return words;
}
async function opened(hear, data) {
  let words = said(hear, data);
  if (missed) {
    await brought(ALL);
    words = said(hear, data);
  }
  words.forEach((text) => postMessage(text));
}
let turn = live;
onmessage = ({data}) => {
  const message = JSON.parse(data), coming = brought(needed(message));
  turn = turn.then(() => coming).then(() => live).then(({hear}) => (message.open ? opened(hear, data) : hear(data))).catch(() => {});
};
