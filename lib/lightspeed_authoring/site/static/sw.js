// Keeps what was read, so that a second visit is fast and reading goes on offline. One cache a build; an older one is let go.
const CACHE = "speed-of-light-BUILD";

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil((async () => {
  for (const name of await caches.keys()) if (name.startsWith("speed-of-light-") && name !== CACHE) await caches.delete(name);
  await self.clients.claim();
})()));

// Pages: the net first, so that a new edition is seen; all else has its version in its address or its build, so the cache first.
self.addEventListener("fetch", (event) => {
  const {request} = event;
  if (request.method !== "GET" || new URL(request.url).origin !== location.origin) return;
  if (new URL(request.url).pathname.startsWith(new URL("./lite/", location).pathname)) return; // JupyterLite's files have no build in their address
  event.respondWith(request.mode === "navigate" ? fresh(request) : kept(request));
});

async function fresh(request) {
  const cache = await caches.open(CACHE);
  try {
    const answer = await fetch(request);
    if (answer.ok) cache.put(request, answer.clone());
    return answer;
  } catch (error) {
    const had = await cache.match(request, {ignoreSearch: true});
    if (had) return had;
    throw error;
  }
}

async function kept(request) {
  const cache = await caches.open(CACHE), had = await cache.match(request);
  if (had) return had;
  const answer = await fetch(request);
  if (answer.ok) cache.put(request, answer.clone());
  return answer;
}
