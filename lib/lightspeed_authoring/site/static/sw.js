// Keeps the course for a reader without a network. The build writes below what there is: path -> revision, a hash of its bytes. What is
// kept goes by both, so that a new edition fetches no more than what has changed. It is kept in three measures: whatever a page asks for;
// after a visit, the page and all that live pages run on; and, when the reader asks, every page.
const EDITION = "BUILD", CACHE = "speed-of-light", FILES = MANIFEST;
const ROOT = new URL("./", location), LITE = new URL("./lite/", location).pathname; // JupyterLite's files have no build in their address
const CORE = Object.keys(FILES).filter((path) => path.startsWith("_static/") && !path.startsWith("_static/pictures/"));
const key = (path) => new URL(`${encodeURI(path)}?${FILES[path]}`, ROOT).href;

function pathOf(url) {
  const {pathname} = new URL(url);
  const path = decodeURI(pathname.slice(ROOT.pathname.length));
  return path === "" || path.endsWith("/") ? `${path}index.html` : path;
}

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil((async () => {
  for (const name of await caches.keys()) if (name.startsWith("speed-of-light-")) await caches.delete(name); // of earlier editions of this file
  await self.clients.claim();
})()));

self.addEventListener("fetch", (event) => {
  const {request} = event, url = new URL(request.url);
  if (request.method !== "GET" || url.origin !== location.origin || url.pathname.startsWith(LITE)) return;
  event.respondWith(request.mode === "navigate" ? fresh(request) : kept(request));
});

// Pages: the net first, so that a new edition is seen.
async function fresh(request) {
  const path = pathOf(request.url);
  try {
    const answer = await fetch(request);
    if (answer.ok && path in FILES) (await caches.open(CACHE)).put(key(path), answer.clone());
    return answer;
  } catch {
    return (await had(path)) ?? missing();
  }
}

// All else has its version in its address or its build: the cache first, unless the page is of a build that this file does not know.
async function kept(request) {
  const path = pathOf(request.url), build = new URL(request.url).searchParams.get("build");
  const here = path in FILES && [null, EDITION].includes(build) && (await (await caches.open(CACHE)).match(key(path)));
  if (here) return here;
  try {
    const answer = await fetch(request);
    if (answer.ok && path in FILES) (await caches.open(CACHE)).put(key(path), answer.clone());
    return answer;
  } catch (error) {
    const older = await had(path);
    if (older) return older;
    throw error;
  }
}

// A file as it is kept, whatever its revision.
const had = async (path) => (await caches.open(CACHE)).match(new URL(encodeURI(path), ROOT).href, {ignoreSearch: true});

async function missing() {
  const paths = (await (await caches.open(CACHE)).keys()).map(({url}) => pathOf(url)).filter((path) => path.endsWith(".html"));
  const rows = [...new Set(paths)].sort().map((path) => `<li><a href="${new URL(encodeURI(path), ROOT)}">${path.replace(/^.*\/|\.html$/g, "").replaceAll("_", " ")}</a></li>`);
  const words = `<h1>This page was not kept</h1><p>There is no network, and this browser has not kept the page. Once you are online again, open it, or keep the whole course on the page “Your progress”.</p><p>Kept so far:</p><ul>${rows.join("")}</ul>`;
  const head = `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark"><title>Not kept</title>`;
  return new Response(`${head}<body style="font: 1rem/1.6 system-ui; max-width: 40em; margin: 3em auto; padding: 0 1em">${words}`, {status: 503, headers: {"Content-Type": "text/html"}});
}

// {keep: the address of a page, or "all"}: keeps it with all that live pages run on; the port hears how far it is.
self.addEventListener("message", (event) => {
  const {keep} = event.data, [port] = event.ports;
  if (keep) event.waitUntil(keepAll(keep, (words) => port?.postMessage(words)));
});

async function keepAll(keep, tell) {
  const cache = await caches.open(CACHE), keys = new Set((await cache.keys()).map(({url}) => url));
  const before = new Set([...keys].map(pathOf)); // pages that were kept are kept again when they have changed
  const wanted = keep === "all" ? Object.keys(FILES) : [...CORE, ...Object.keys(FILES).filter((path) => before.has(path)), pathOf(keep)];
  const lacking = [...new Set(wanted)].filter((path) => path in FILES && !keys.has(key(path)));
  let done = 0, lost = 0;
  const fetchOne = async () => {
    for (let path; (path = lacking.pop()); ) {
      try {
        const answer = await fetch(new URL(encodeURI(path), ROOT));
        if (!answer.ok) throw new Error(answer.status);
        await cache.put(key(path), answer);
      } catch {
        lost++;
      }
      tell({done: ++done, of: done + lacking.length});
    }
  };
  await Promise.all(Array.from({length: 4}, fetchOne));
  if (!lost) for (const url of keys) if (key(pathOf(url)) !== url) await cache.delete(url);
  tell({finished: true, lost});
}
