// The reader's progress in IndexedDB, of the site's pages and of its notebooks: one row an event, by its key. Events are only ever added.
const STORE = "events";

export function opened() {
  return new Promise((resolve, reject) => {
    const asked = indexedDB.open("speed-of-light", 1);
    asked.onupgradeneeded = () => asked.result.createObjectStore(STORE, {keyPath: "number", autoIncrement: true}).createIndex("key", "key", {unique: true});
    asked.onsuccess = () => resolve(asked.result);
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

export function keeper(base, kept, unkept) {
  return (text) => {
    if (!base) return;
    const work = base.transaction(STORE, "readwrite", {durability: "strict"});
    for (const row of JSON.parse(text)) {
      const asked = work.objectStore(STORE).add({key: row[0], row});
      asked.onerror = (event) => event.preventDefault(); // one that is here already
    }
    work.oncomplete = () => kept();
    work.onabort = () => unkept(work.error);
  };
}
