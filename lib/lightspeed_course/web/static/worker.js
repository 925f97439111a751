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

async function begin() {
  const started = performance.now();
  let base = null;
  const rows = opened().then((found) => all(base = found)).catch((error) => (unkept(error), []));
  tell({note: "loading Python"});
  const [python, course] = await Promise.all([
    loadPyodide({indexURL: new URL("./pyodide/", import.meta.url).href, env: {LIGHTSPEED_DATA: "/progress", HOME: "/home/reader"}}),
    fetch(new URL("./course.zip", import.meta.url)).then((answer) => {
      if (!answer.ok) throw new Error(`course.zip: ${answer.status}`);
      return answer.arrayBuffer();
    }),
  ]);
  tell({note: "loading the course"});
  python.unpackArchive(course, "zip", {extractDir: "/course"});
  python.runPython("import sys; sys.path.insert(0, '/course')");
  const live = python.pyimport("lightspeed_course.web.live");
  live.begin((text) => postMessage(text), JSON.stringify(await rows), keeper(base));
  tell({ready: Math.round(performance.now() - started)});
  return live;
}

const live = begin();
live.catch((error) => tell({broken: String(error?.message ?? error)}));
onmessage = async ({data}) => (await live).hear(data);
