// The reader's progress in IndexedDB, of the site's pages and of its notebooks: one row an event, by its key. Events are only ever added.
const STORE = "events";

export function opened() {
  return new Promise((resolve, reject) => {
    const asked = indexedDB.open("speed-of-light", 1);
    asked.onupgradeneeded = () => asked.result.createObjectStore(STORE, {keyPath: "number", autoIncrement: true}).createIndex("key", "key", {unique: true});
    asked.onsuccess = () => {
      asked.result.onversionchange = () => asked.result.close(); // whoever clears the data of the site is not kept waiting
      resolve(asked.result);
    };
    asked.onerror = () => reject(asked.error);
  });
}

export function all(base) {
  return new Promise((resolve, reject) => {
    const asked = base.transaction(STORE).objectStore(STORE).getAll();
    asked.onsuccess = () => resolve(asked.result.map(({row}) => row));
    asked.onerror = () => reject(asked.error);
  });
}

function count(base) {
  return new Promise((resolve, reject) => {
    const asked = base.transaction(STORE).objectStore(STORE).count();
    asked.onsuccess = () => resolve(asked.result);
    asked.onerror = () => reject(asked.error);
  });
}

function write(base, rows) {
  return new Promise((resolve, reject) => {
    const work = base.transaction(STORE, "readwrite", {durability: "strict"});
    for (const row of rows) {
      const asked = work.objectStore(STORE).add({key: row[0], row});
      asked.onerror = (event) => event.preventDefault(); // one that is here already
    }
    work.oncomplete = resolve;
    work.onabort = () => reject(work.error);
  });
}

// Writes rows as they come. When the data of the site were cleared meanwhile, all that this page knows is written again. `rows` are
// those that were read, `told` hears {kept}, {mended} or {unkept}, and other tabs get what is new.
export function keeper(base, rows, told) {
  const known = new Map(rows.map((row) => [row[0], row]));
  const tabs = globalThis.BroadcastChannel ? new BroadcastChannel("speed-of-light progress") : null;
  let before = Promise.resolve();
  const add = async (more) => {
    for (const row of more) known.set(row[0], row);
    try {
      if (!base) throw new Error("it has no data base");
      try {
        await write(base, more);
        if ((await count(base)) < known.size) throw new Error("rows are gone");
        told({kept: true});
      } catch {
        base.close();
        base = await opened();
        await write(base, known.values());
        told({mended: true});
      }
      tabs?.postMessage(more);
    } catch (error) {
      told({unkept: error});
    }
  };
  const keep = (text) => (before = before.then(() => add(JSON.parse(text))));
  const hear = (listener) => tabs?.addEventListener("message", ({data}) => {
    const more = data.filter((row) => !known.has(row[0]));
    for (const row of more) known.set(row[0], row);
    if (more.length) listener(JSON.stringify(more));
  });
  return {keep, hear};
}
