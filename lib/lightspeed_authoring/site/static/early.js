// Stands in the head of each live page and starts the worker at once. A long page is then still being read, and page.js, which
// takes the worker over, runs at its end.
{
  const early = (globalThis.solEarly = {heard: []});
  setTimeout(() => { // a first frame waits for page.js
    if (early.taken) return;
    early.worker = new Worker(new URL("LIVE/worker.js?build=BUILD", document.baseURI), {type: "module"});
    early.worker.onmessage = (message) => early.heard.push(message);
    early.worker.onerror = (event) => (early.failed = event);
  });
}
