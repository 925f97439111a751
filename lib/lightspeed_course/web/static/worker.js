// The worker: Pyodide's bare core, the course's Python, and the reader's progress. It speaks JSON with page.js.
import {loadPyodide} from "./pyodide/pyodide.mjs";

const STORE = "events";
const tell = (message) => postMessage(JSON.stringify(message));
const unkept = (error) => tell({unkept: `This browser does not keep your progress: ${error?.message ?? error}. Export it before you leave.`});

// IndexedDB: one row an event, by its key. Events are only ever added.
function opened() {
  return new Promise((resolve, reject) => {
    const asked = indexedDB.open("speed-of-light", 1);
    asked.onupgradeneeded = () => asked.result.createObjectStore(STORE, {keyPath: "number", autoIncrement: true}).createIndex("key", "key", {unique: true});
    asked.onsuccess = () => resolve(asked.result);
    asked.onerror = () => reject(asked.error);
  });
}

function all(base) {
  return new Promise((resolve, reject) => {
    const asked = base.transaction(STORE).objectStore(STORE).getAll();
    asked.onsuccess = () => resolve(asked.result.map(({row}) => row));
    asked.onerror = () => reject(asked.error);
  });
}

function keeper(base) {
  return (text) => {
    if (!base) return;
    const work = base.transaction(STORE, "readwrite", {durability: "strict"});
    for (const row of JSON.parse(text)) {
      const asked = work.objectStore(STORE).add({key: row[0], row});
      asked.onerror = (event) => event.preventDefault(); // one that is here already
    }
    work.oncomplete = () => tell({kept: true});
    work.onabort = () => unkept(work.error);
  };
}

// An image of the memory with the course imported, made at the first visit and kept by the browser: later ones start from it.
// It belongs to one build of the site. Where it is missing, refused or of no use, Python starts from nothing.
const BUILD = new URL(import.meta.url).searchParams.get("build") ?? "none";
const IMAGE = new URL(`./image-${BUILD}`, import.meta.url).href;

async function kept() {
  try {
    const had = await (await caches.open("speed-of-light-image")).match(IMAGE);
    return had && new Uint8Array(await had.arrayBuffer());
  } catch {
    return undefined;
  }
}

async function keep(image) {
  try {
    const cache = await caches.open("speed-of-light-image");
    for (const old of await cache.keys()) await cache.delete(old);
    await cache.put(IMAGE, new Response(image));
  } catch {
    // no room, or a private window: the next visit starts from nothing
  }
}

// An archive that compile.mjs pressed.
async function unpressed(address) {
  const answer = await fetch(address);
  if (!answer.ok) throw new Error(`${new URL(address).pathname.split("/").at(-1)}: ${answer.status}`);
  return new Response(answer.body.pipeThrough(new DecompressionStream("gzip")));
}

// Pyodide fetches its library itself, beside its other parts.
const LIBRARY = new URL(`./pyodide/python_stdlib.bin?build=${BUILD}`, import.meta.url).href, fetch = self.fetch;
self.fetch = (address, ...more) => String(address) === LIBRARY ? unpressed(LIBRARY) : fetch(address, ...more);

async function started() {
  const plain = {indexURL: new URL("./pyodide/", import.meta.url).href, stdLibURL: LIBRARY, env: {LIGHTSPEED_DATA: "/progress", HOME: "/home/reader"}};
  const image = await kept();
  if (image) {
    try {
      return [await loadPyodide({...plain, _loadSnapshot: image}), true];
    } catch (error) {
      console.warn("The image of the memory does not start:", error);
      await caches.delete("speed-of-light-image");
    }
  }
  return [await loadPyodide({...plain, _makeSnapshot: true}), false];
}

async function begin() {
  const since = performance.now();
  let base = null;
  const rows = opened().then((found) => all(base = found)).catch((error) => (unkept(error), []));
  tell({note: "loading Python"});
  const [[python, warm], course] = await Promise.all([
    started(),
    unpressed(new URL(`./course.bin?build=${BUILD}`, import.meta.url)).then((answer) => answer.arrayBuffer()),
  ]);
  tell({note: "loading the course"});
  python.unpackArchive(course, "zip", {extractDir: "/course"});
  if (!warm) {
    python.runPython("import sys; sys.path.insert(0, '/course'); from lightspeed_course.web import live; live.warm(); del live");
    try {
      const image = python.makeMemorySnapshot(); // before anything of the page is known to it
      setTimeout(() => keep(image), 4000);
    } catch (error) {
      console.warn("No image of the memory:", error);
    }
  }
  python.runPython("import importlib; importlib.invalidate_caches()");
  const live = python.pyimport("lightspeed_course.web.live");
  live.begin((text) => postMessage(text), JSON.stringify(await rows), keeper(base));
  tell({ready: Math.round(performance.now() - since), warm});
  return live;
}

const live = begin();
live.catch((error) => tell({broken: String(error?.message ?? error)}));
onmessage = async ({data}) => (await live).hear(data);
