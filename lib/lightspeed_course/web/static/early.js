// Starts the worker once the first frame is drawn. A long page is then still being read, and page.js, which takes it over, runs at its end.
const early = (globalThis.solEarly ??= {heard: []});

requestAnimationFrame(() => setTimeout(() => {
  if (early.taken || !document.querySelector(".sol-live")) return;
  early.worker = new Worker(new URL("./worker.js?build=BUILD", import.meta.url), {type: "module"});
  early.worker.onmessage = (message) => early.heard.push(message);
  early.worker.onerror = (event) => (early.failed = event);
}));
