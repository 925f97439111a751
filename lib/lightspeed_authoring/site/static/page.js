// A page of the web edition: finds its live cells, starts the worker when the reader needs it, and gives the models that the
// course's Python makes to the same files that Jupyter runs.
import view from "./view.js?build=BUILD";
import form from "./form.js?build=BUILD";
import {all, opened} from "./progress.js?build=BUILD";

const HERE = new URL(".", import.meta.url);
const cells = [...document.querySelectorAll(".sol-live")];
// The one that #explore means: the chapter's own `explore`, whatever pictures stand before it, else the first. Links that are copied say its name.
const main = cells.find(({dataset}) => JSON.parse(dataset.call)[0].endsWith(".explore")) ?? document.querySelector(".sol-explore");
const models = new Map(), shownBy = new Map(); // by name; by the cell that shows it
let worker = null;

function element(tag, className, content) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (content !== undefined) node.textContent = content;
  return node;
}

// --- the bridge: what view.js and form.js ask of a host -------------------------------------------------------------

class Model {
  constructor(name, kind, state) {
    Object.assign(this, {name, kind, state, listeners: new Map(), waits: null}); // waits: what Python hears once it is there
  }
  get(name) {
    return this.state[name];
  }
  on(events, listener) {
    for (const event of events.split(" ")) this.listeners.set(event, [...(this.listeners.get(event) ?? []), listener]);
  }
  off(events, listener) {
    for (const event of events.split(" ")) this.listeners.set(event, (this.listeners.get(event) ?? []).filter((each) => each !== listener));
  }
  send(content) {
    if (!this.waits) return ask({to: this.name, content});
    if (this.kind === "chart") this.waits = []; // only where it was moved to last
    this.waits.push(content);
    start();
  }
  set(name, value) {
    this.state[name] = value;
    for (const listener of this.listeners.get(`change:${name}`) ?? []) listener();
  }
}

function text({model, el}) {
  const update = () => {
    el.innerHTML = model.get("value");
    typeset(el);
  };
  const dress = () => (el.className = ["sol-text", ...(model.get("classes") ?? [])].join(" "));
  model.on("change:value", update);
  model.on("change:classes", dress);
  update();
  dress();
}

function stack({model, el}) {
  const drawn = new Set();
  const draw = () => {
    for (const part of model.get("parts").map((name) => models.get(name))) if (!drawn.has(part)) drawn.add(part), el.append(shown(part));
  };
  model.on("change:parts", draw);
  draw();
  const dress = () => (el.className = (model.get("classes") ?? []).join(" "));
  model.on("change:classes", dress);
  dress();
}

// Code to be edited and run; Ctrl-Enter runs. What was written is kept in this browser. A plain field stands until it is entered: then the
// editor proper is loaded, with colours, brackets and Tab. Where it does not load, the field goes on.
let editing;

function code({model, el}) {
  el.className = "sol-editor";
  const source = model.get("source"), label = element("label", "", "Your code"), editor = element("textarea");
  const [run, stop, back] = ["Run", "Stop", "Put back"].map((words) => element("button", "", words)), buttons = element("div", "sol-acts");
  const out = element("div", "sol-reply"), busy = element("span", "sol-busy"), keys = element("span", "sol-keys", "Ctrl-Enter runs.");
  let proper = null;
  editor.value = keptCode(source) ?? source;
  const grow = () => (editor.rows = editor.value.split("\n").length + 1);
  grow();
  Object.assign(editor, {spellcheck: false, autocapitalize: "off", id: `code-${model.name}`});
  Object.assign(label, {htmlFor: editor.id, id: `${editor.id}-label`});
  keys.id = `${label.id}-keys`;
  out.setAttribute("aria-live", "polite");
  stop.hidden = true;
  let patience;
  const begin = () => {
    if (run.disabled) return;
    run.disabled = true;
    busy.textContent = "running …";
    patience = setTimeout(() => (stop.hidden = false), 3000);
    model.send({source: editor.value, above: codeAbove(el)});
  };
  const done = () => {
    clearTimeout(patience);
    [run.disabled, stop.hidden, busy.textContent] = [false, true, ""];
    out.replaceChildren(...model.get("parts").map(part));
    if (model.get("problem")) out.append(element("p", "sol-problem", model.get("problem")));
    if (!out.childNodes.length) out.append(element("p", "sol-note", "It ran, and shows nothing."));
    for (const old of committed(el)) old.hidden = true;
    typeset(out);
  };
  run.addEventListener("click", begin);
  stop.addEventListener("click", restart);
  back.addEventListener("click", () => {
    editor.value = source;
    keepCode(source, source);
    grow();
    out.replaceChildren();
    for (const old of committed(el)) old.hidden = false;
    proper?.refresh();
    (proper ?? editor).focus();
  });
  editor.addEventListener("input", () => (keepCode(source, editor.value), grow()));
  editor.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    begin();
  });
  editor.addEventListener("focus", async () => {
    editing ??= import("./editor.js?build=BUILD");
    try {
      const {edit} = await editing;
      proper ??= edit(editor, label, begin);
      keys.textContent = "Ctrl-Enter runs. Tab indents; Esc, then Tab leaves the editor.";
    } catch (error) {
      console.warn("The editor stays a plain field:", error);
    }
  }, {once: true});
  // A package that the site does not have is loaded from its host once the reader agrees; the page remembers the answer.
  const bring = ({module, host}) => {
    run.disabled = true;
    busy.textContent = `loading ${module} from ${host} …`;
    model.send({bring: true, source: editor.value, above: codeAbove(el)});
  };
  const offered = () => {
    const offer = model.get("offer");
    if (answers.has(offer.module)) return answers.get(offer.module) && bring(offer);
    const box = element("div", "sol-offer"), [yes, no] = [`Load ${offer.module} from ${offer.host}`, "No"].map((words) => element("button", "", words));
    const answer = (agreed) => {
      answers.set(offer.module, agreed);
      box.remove();
      (proper ?? editor).focus();
      if (agreed) bring(offer);
    };
    yes.addEventListener("click", () => answer(true));
    no.addEventListener("click", () => answer(false));
    box.append(element("p", "", offer.words), yes, no);
    out.append(box);
  };
  model.on("change:busy", done);
  model.on("change:offer", offered);
  buttons.append(run, stop, back, busy, keys);
  el.append(label, editor, buttons, out);
}

const part = ({html, model}) => {
  if (model) return shown(models.get(model));
  const node = element("div", "sol-result");
  node.innerHTML = html;
  return node;
};

// The outputs of the chapter that stand below a cell.
const committed = (el) => [...(el.closest(".sol-cell")?.children ?? [])].filter((node) => node.matches(".sol-result"));

// Sources of the cells above this one, as they stand on the page; of live ones what they make for others.
function codeAbove(el) {
  const code = ".sol-cell, .sol-edit, .sol-live[data-makes]", own = el.closest(code), all = [...document.querySelectorAll(code)];
  return all.slice(0, all.indexOf(own)).map((cell) => cell.dataset.makes ?? cell.querySelector("textarea")?.value ?? cell.querySelector(".sol-code")?.textContent ?? "");
}

const KEPT = `speed-of-light code ${location.pathname} `;

const answers = new Map(); // package -> whether it may be loaded from elsewhere

const written = new Map(); // for a browser that keeps nothing

function keptCode(source) {
  try {
    if (written.has(source)) return written.get(source);
    return localStorage.getItem(KEPT + source);
  } catch {
    return null;
  }
}

function keepCode(source, text) {
  written.set(source, text);
  try {
    if (text === source) localStorage.removeItem(KEPT + source);
    else localStorage.setItem(KEPT + source, text);
  } catch {
    // what was written stays as long as the page
  }
}

// A cell of a chapter becomes an editor when the reader asks for it.
function editable(cell) {
  const source = cell.querySelector(".sol-code").textContent, had = keptCode(source) !== null;
  const button = element("button", "sol-link", had ? "Your version of this cell" : "Edit and run");
  button.type = "button";
  button.addEventListener("click", () => {
    button.remove();
    cell.dataset.call = JSON.stringify(["code", source]);
    cells.push(cell);
    if (worker) open(cell);
    else start();
    cell.wanted = true;
  });
  cell.querySelector(".sol-still").append(button);
}

const KINDS = {chart: view.render, form: form.render, text, stack, code};

function shown(model) {
  const el = element("div");
  KINDS[model.kind]({model, el});
  return el;
}

// --- before Python is there ---------------------------------------------------------------------------------------------

// A cell brings along what Python says when it opens it. The page shows that at once, takes what the reader does, and hands it to Python.
const early = new Map(); // cell -> {root, el}
function showEarly(cell) {
  const own = (name) => `${cell.id} ${name}`;
  let root;
  for (const message of JSON.parse(cell.dataset.opening)) {
    if (message.made) {
      const model = new Model(own(message.made), message.kind, message.state);
      if (model.state.parts) model.state.parts = model.state.parts.map(own);
      model.waits = [];
      models.set(model.name, model);
    } else if (message.set) models.get(own(message.set)).state[message.name] = message.name === "parts" ? message.value.map(own) : message.value;
    else if (message.opened) root = models.get(own(message.model));
  }
  if (!root) return;
  const el = shown(cell.dataset.first ? brief(root) : root);
  cell.querySelector(".sol-still").replaceWith(el);
  early.set(cell, {root, el});
  if (cell.dataset.first) fold(cell, root);
}

const partsOf = (model) => (model.state.parts ?? []).map((name) => models.get(name));
const alike = (mine, its) => mine.kind === its.kind && partsOf(mine).length === partsOf(its).length && partsOf(mine).every((part, i) => alike(part, partsOf(its)[i]));

// What is shown already becomes Python's, with what has changed since the page was built; what the reader did goes to Python.
function adopt(mine, its) {
  partsOf(mine).forEach((part, i) => adopt(part, partsOf(its)[i]));
  models.delete(mine.name);
  mine.name = its.name;
  models.set(mine.name, mine);
  const queue = mine.waits;
  mine.waits = null;
  for (const [name, value] of Object.entries(its.state)) {
    if (name === "parts") mine.state.parts = value;
    else if (!queue.length && JSON.stringify(mine.state[name]) !== JSON.stringify(value)) mine.set(name, value);
  }
  queue.forEach((content) => mine.send(content));
}

// Formulas of replies; those of the page itself were set when it was built.
let setter;
async function typeset(el) {
  const formulas = [...el.querySelectorAll(".sol-math")];
  if (!formulas.length) return;
  setter ??= import("./katex/katex.mjs");
  const {default: katex} = await setter;
  for (const node of formulas) {
    const displayMode = node.textContent.startsWith("$$");
    katex.render(node.textContent.replace(/^\$\$?|\$\$?$/g, ""), node, {displayMode, throwOnError: false});
    node.classList.remove("sol-math");
  }
}

// --- the worker -----------------------------------------------------------------------------------------------------

const ask = (message) => (start(), worker.postMessage(JSON.stringify(message)));
const note = element("p", "sol-progress");
note.setAttribute("role", "status");

function say(words, {gone = false, bad = false} = {}) {
  note.textContent = words;
  note.classList.toggle("sol-bad", bad);
  note.hidden = gone;
}

function start() {
  if (worker) return;
  const begun = (globalThis.solEarly ??= {});
  worker = begun.worker ?? new Worker(new URL("./worker.js?build=BUILD", import.meta.url), {type: "module"});
  worker.onmessage = ({data}) => hear(JSON.parse(data));
  worker.onerror = (event) => say(`Explorers and answers stay still: ${event.message ?? "the worker did not start"}.`, {bad: true});
  begun.heard?.forEach(worker.onmessage);
  if (begun.failed) worker.onerror(begun.failed);
  Object.assign(begun, {taken: true, worker: null, heard: [], failed: null});
  const places = new Map(cells.map((cell) => [cell, place(cell)]));
  const sooner = ([mine, far], [its, away]) => mine - its || far - away;
  [first, ...rest] = [...cells].sort((a, b) => sooner(places.get(a), places.get(b)));
  if (first) open(first); // a page may have buttons and no cell
}

// The first is seen before the worker turns to the others.
let first, rest = [];
function others() {
  requestAnimationFrame(() => setTimeout(() => rest.splice(0).forEach(open)));
}

// What is seen comes alive first; of the rest the explorers, as answers are typed later; of each the nearest.
function place(cell) {
  const {top, bottom} = cell.getBoundingClientRect(), far = Math.max(top - innerHeight, -bottom, 0);
  return [far > 0 && !cell.classList.contains("sol-explore"), far];
}

// A cell that does not end is ended with its worker; progress is kept, and all cells open again, with what can be put back: the settings
// of explorers and what was typed into boxes.
const STOPPED = "Stopped. Explorers stand where you had left them, and what you typed is still there. Drills, hints and results of cells that you ran begin anew.";
const settings = new Map(), typed = new Map();
let stopped = false;

function restart() {
  worker.terminate();
  worker = null;
  stopped = true;
  for (const cell of cells) {
    const at = shownBy.get(cell)?.get("content")?.at;
    if (at) settings.set(cell, at);
    typed.set(cell, boxes(cell).map(({value}) => value));
    cell.classList.remove("sol-is-live");
    cell.inert = true; // nobody hears it until it is opened again
  }
  models.clear();
  shownBy.clear();
  start();
}

const boxes = (cell) => [...cell.querySelectorAll(".sol-form input[type=text]")];

function putBack(cell, model) {
  if (settings.has(cell)) model.send({turn: model.get("content").turn + 1, at: settings.get(cell)});
  boxes(cell).forEach((box, k) => (box.value ||= typed.get(cell)?.[k] ?? ""));
  settings.delete(cell);
  typed.delete(cell);
}

const linked = () => location.hash.match(/^#([\w-]+)(?:\?(.*))?$/) ?? [];
const called = (name) => (name === "explore" ? main : cells.find(({id}) => id === name));
const stateOf = (cell) => (called(linked()[1]) === cell && linked()[2]) || "";

// A link leads to its cell or its heading: at once, and again whenever cells that come alive may have moved it, until the reader moves.
let lead = null;
const aim = () => (lead = called(linked()[1]) ?? document.getElementById(decodeURIComponent(location.hash.slice(1))));
const arrive = () => lead?.scrollIntoView({behavior: "instant", block: "start"});
for (const event of ["wheel", "touchmove", "pointerdown", "keydown"]) addEventListener(event, () => (lead = null), {passive: true});
addEventListener("hashchange", () => {
  const cell = called(linked()[1]);
  if (linked()[2] && cell?.classList.contains("sol-is-live")) open(cell);
  aim();
  arrive();
});

function open(cell) {
  ask({open: cell.id, call: JSON.parse(cell.dataset.call), state: stateOf(cell)});
}

function hear(message) {
  if (message.made) return models.set(message.made, new Model(message.made, message.kind, message.state));
  if (message.set) return models.get(message.set).set(message.name, message.value);
  if (message.opened) return live(document.getElementById(message.opened), models.get(message.model));
  if (message.note) return say(`Explorers and answers: ${message.note} (once ${document.documentElement.dataset.size ?? "8 MB"}, then kept) …`);
  if (message.kept) return keepForGood();
  if (message.link !== undefined) return copy(document.getElementById(message.link), message.state);
  if (message.progress) return save(message.progress);
  if (message.taken) return (document.querySelector("#sol-taken").textContent = message.taken), recount();
  if (message.mended) return say("The data of this site were cleared while this page was open. What it knew of your progress has been written again.");
  if (message.elsewhere) return recount(); // another tab has kept an answer
  if (message.unkept) return say(message.unkept, {bad: true});
  if (message.broken) return settle(), say(`Explorers and answers stay still: ${message.broken}`, {bad: true});
  if (message.ready) ready(message);
  if (message.failed !== undefined) failed(message);
}

function ready({warm}) {
  performance.mark(warm ? "sol-ready-warm" : "sol-ready");
}

// Once a page has settled it is kept, with all that it runs on, for a reader without a network; nothing is fetched twice that the browser
// has. Whoever pays for bytes is spared what was not asked for.
async function keep(what, tell = () => {}) {
  if (!navigator.serviceWorker || !isSecureContext) return tell({refused: true});
  const {active} = await navigator.serviceWorker.ready, {port1, port2} = new MessageChannel();
  port1.onmessage = ({data}) => (data.finished && performance.mark("sol-kept"), tell(data));
  active.postMessage({keep: what}, [port2]);
}
addEventListener("sol-settled", () => navigator.connection?.saveData || keep(location.href, askForRest), {once: true});
// The worker then takes the rest of the course, which an answer will need: a message that says nothing waits for it.
function askForRest({finished, refused}) {
  if (worker && (finished || refused)) ask({soon: true});
}

document.querySelector("#sol-keep")?.addEventListener("click", ({target}) => {
  const state = document.querySelector("#sol-keep-state");
  target.disabled = true;
  keep("all", ({refused, finished, lost, done, of}) => {
    target.disabled = !finished && !refused;
    if (refused) state.textContent = "This browser keeps no pages here: it needs https and service workers.";
    else if (!finished) state.textContent = `${done} of ${of} files …`;
    else if (lost) state.textContent = `${lost} files did not come. Press again when the network is back: what has come is kept.`;
    else state.textContent = "The whole course is kept in this browser and reads without a network.";
  });
});

// A browser may throw away what a page has not asked to keep; Safari does after seven days. Asked with the first answer.
let forGood = false;
function recount() {
  for (const cell of cells) if (cell.matches(".sol-tally.sol-is-live")) open(cell);
  tick();
}
function keepForGood() {
  recount();
  if (forGood) return;
  forGood = true;
  navigator.storage?.persist?.().catch(() => {});
}

function failed({failed: id, words, trace}) {
  if (trace) console.error(trace);
  const cell = document.getElementById(id);
  if (cell === first) others();
  if (cell) cell.append(element("p", "sol-fault", words));
  else say(words, {bad: true});
}

function live(cell, its) {
  const before = early.get(cell), same = before && !stateOf(cell) && alike(before.root, its), model = same ? before.root : its;
  early.delete(cell);
  const still = before?.el ?? cell.querySelector(".sol-still");
  const el = same ? before.el : shown(cell.dataset.first ? brief(model) : model);
  const keep = still?.contains(document.activeElement);
  if (same) adopt(model, its);
  else if (still) still.replaceWith(el);
  else if (cell.matches(".sol-cell")) cell.querySelector(".sol-editor").replaceWith(el); // opened again, as below
  else cell.replaceChildren(el);
  cell.classList.add("sol-is-live");
  cell.inert = false;
  shownBy.set(cell, model);
  putBack(cell, model);
  if (cell.dataset.first && !same) fold(cell, model);
  if (cell.classList.contains("sol-explore")) cell.append(linker(cell));
  if (cell.classList.contains("sol-predict") || cell.classList.contains("sol-reveal")) refresh(cell);
  if ((keep && !same) || cell.wanted) el.querySelector("input, select, textarea, button")?.focus();
  cell.wanted = false;
  arrive();
  if (cells.every((each) => each.classList.contains("sol-is-live"))) {
    say(stopped ? STOPPED : "", {gone: !stopped});
    stopped = false;
    settle();
  }
  if (cell.matches(".sol-tally")) titled(cell);
  performance.mark("sol-live");
  if (cell === first) others();
}

// What a newcomer needs of a verdict: what holds this back, and what would change it.
const SENTENCES = /^(?:.+?[.!?](?=\s|$)\s*){1,2}/;
function brief(model) {
  const first = (content) => ({...content, verdict: content.verdict.match(SENTENCES)?.[0].trim() ?? content.verdict});
  return Object.assign(Object.create(model), {get: (name) => (name === "content" ? first(model.get(name)) : model.get(name))});
}

// Of an explorer that shows its picture first: the controls that a newcomer wants, and the others with the numbers behind a button.
function fold(cell, model) {
  const wanted = cell.dataset.first.split(" "), panel = cell.querySelector(".sol-controls"), more = element("button", "sol-link", "More controls and numbers");
  cell.querySelector(".sol-frame").classList.remove("sol-beside");
  for (const node of panel.querySelectorAll("[data-name]")) node.classList.toggle("sol-later", !wanted.includes(node.dataset.name));
  Object.assign(more, {type: "button", ariaExpanded: "false"});
  more.addEventListener("click", () => {
    const open = cell.classList.toggle("sol-all");
    Object.assign(more, {textContent: open ? "Fewer controls" : "More controls and numbers", ariaExpanded: String(open)});
  });
  panel.after(more);
}

// A guess that was made opens the value behind it: a reveal asks again once its prediction was answered.
function refresh(cell) {
  if (!cell.classList.contains("sol-predict")) return;
  const [, id] = JSON.parse(cell.dataset.call);
  const reveals = cells.filter((each) => each.classList.contains("sol-reveal") && JSON.parse(each.dataset.call)[1] === id);
  cell.addEventListener("submit", () => setTimeout(() => reveals.forEach((each) => {
    each.replaceChildren();
    open(each);
  }), 300));
}

function linker(cell) {
  const button = element("button", "sol-link", "Copy link to this state");
  button.type = "button";
  button.addEventListener("click", () => ask({link: cell.id}));
  return button;
}

async function copy(cell, state) {
  const address = `${location.href.split("#")[0]}#${cell.id}${state ? `?${state}` : ""}`;
  history.replaceState(null, "", address);
  const button = cell.querySelector(".sol-link");
  try {
    await navigator.clipboard.writeText(address);
    button.textContent = "Copied: the address bar has it too";
  } catch {
    button.textContent = "The address bar has the link";
  }
  setTimeout(() => (button.textContent = "Copy link to this state"), 2500);
}

// --- progress as a file ---------------------------------------------------------------------------------------------

function save(text) {
  const anchor = element("a");
  anchor.href = URL.createObjectURL(new Blob([text], {type: "application/json"}));
  anchor.download = "speed-of-light-progress.json";
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(anchor.href), 1000);
}

// The sidebar says of each lesson how many of its page's questions are solved; a table of progress calls lessons by their titles.
const lessons = () => [...document.querySelectorAll(".sidebar-tree a.reference")].map((link) => [link, link.href.match(/\/chapters\/(\w+)\.html$/)?.[1] ?? (link.matches(".current") && location.pathname.match(/\/chapters\/(\w+)\.html$/)?.[1])]);

async function tick() {
  try {
    const base = await opened(), solved = new Set((await all(base)).filter(([, , kind, , detail]) => kind === "try" && JSON.parse(detail).correct).map((row) => row[3]));
    base.close();
    if (!solved.size) return;
    const asked = await (await fetch(new URL("./asked.json?build=BUILD", HERE))).json();
    for (const [link, page] of lessons()) {
      const count = (asked[page] ?? []).filter((id) => solved.has(id)).length, of = asked[page]?.length;
      if (!count) continue;
      const mark = link.querySelector(".sol-tick") ?? link.appendChild(element("span", "sol-tick"));
      mark.textContent = count === of ? " \u2713" : ` ${count}/${of}`;
      mark.title = `${count} of ${of} questions of this page solved`;
      mark.setAttribute("aria-label", mark.title);
      mark.setAttribute("role", "img");
    }
  } catch {
    // a browser that keeps nothing has nothing to tick
  }
}

function titled(cell) {
  const titles = new Map(lessons().filter(([, page]) => page));
  for (const box of cell.querySelectorAll("td:first-child")) {
    const [link] = [...titles].map(([link, page]) => page === box.textContent.trim() && link).filter(Boolean);
    if (!link) continue;
    const there = element("a", "", link.firstChild.textContent.trim());
    there.href = link.href;
    box.replaceChildren(there);
  }
}

document.querySelector("#sol-export")?.addEventListener("click", () => ask({progress: true}));
document.querySelector("#sol-import")?.addEventListener("change", async ({target}) => {
  if (target.files[0]) ask({take: await target.files[0].text()});
  target.value = "";
});

// --- light and dark: view.css and form.css ask for the mark that JupyterLab sets --------------------------------------

const dark = matchMedia("(prefers-color-scheme: dark)");
function shade() {
  const theme = document.body.dataset.theme ?? "auto";
  document.body.dataset.jpThemeLight = String(theme === "light" || (theme === "auto" && !dark.matches));
}
dark.addEventListener("change", shade);
new MutationObserver(shade).observe(document.body, {attributeFilter: ["data-theme"]});
shade();

// --- an anchor that has moved to another page -------------------------------------------------------------------------

async function moved() {
  const [, anchor] = linked(), page = location.pathname.match(/((?:exercises\/)?\w+)\.html$/)?.[1];
  if (!anchor || !page || document.getElementById(anchor) || (anchor === "explore" && main)) return;
  try {
    const place = (await (await fetch(new URL("./moved.json?build=BUILD", import.meta.url))).json())[page]?.[anchor];
    if (place) location.replace(`${place.replace(/^exercises\//, "").replace("#", ".html#")}${linked()[2] ? `?${linked()[2]}` : ""}`);
  } catch {
    // the page is shown from its beginning
  }
}
addEventListener("hashchange", moved);

// --- begin ----------------------------------------------------------------------------------------------------------

const soon = window.requestIdleCallback?.bind(window) ?? ((work) => setTimeout(work, 200));

(document.querySelector("article") ?? document.body).append(note);
note.hidden = true;
moved();
for (const cell of cells) if (cell.dataset.opening && !stateOf(cell)) showEarly(cell);
// What the first window shows has its own height from the first frame on, not the one that site.css assumes.
for (const cell of document.querySelectorAll(".sol-live, .sol-cell")) {
  if (cell.getBoundingClientRect().top > 1.5 * innerHeight) break;
  cell.classList.add("sol-seen");
}
for (const [cell, {el}] of early) if (cell.getBoundingClientRect().top < 2 * innerHeight) for (const view of [el, ...el.querySelectorAll(".sol-view")]) view.dispatchEvent(new Event("sol-placed"));
document.querySelectorAll(".sol-cell:not(.sol-lab):has(.sol-code)").forEach(editable);
if (cells.length) {
  soon(start, {timeout: 1500});
  for (const event of ["pointerdown", "focusin"]) document.addEventListener(event, ({target}) => target.closest?.(".sol-live") && start(), {once: true});
}
aim();
arrive();
soon(tick, {timeout: 3000});
if ("serviceWorker" in navigator && isSecureContext) navigator.serviceWorker.register(new URL("../../sw.js", HERE)).catch(() => {});

// What an answer leads to is named as a notebook; here it is a page.
document.addEventListener("click", ({target}) => {
  const link = target.closest?.(".sol-live a[href*='.ipynb']");
  if (!link) return;
  const [page, section = ""] = link.getAttribute("href").split(".ipynb#");
  link.href = `${page}.html#${section.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "")}`;
});

// The theme turns pages with the arrow keys. In the text they belong to what has the focus: code that scrolls, a chart, a field.
document.querySelector(".content")?.addEventListener("keydown", (event) => event.key.startsWith("Arrow") && event.stopPropagation());

// What is wider than its place scrolls, so the keyboard has to reach it.
const WIDE = ".content pre, .sol-result, .katex-display, .table-wrapper, .table-container";
const sizes = new ResizeObserver((seen) => {
  for (const {target} of seen) if (target.scrollWidth > target.clientWidth) target.tabIndex = 0;
});

function settle() {
  for (const node of document.querySelectorAll(WIDE)) sizes.observe(node);
  lift();
}

// Once the page lives, cells that are far away are laid out too, one whenever the browser has time: site.css spared them until then.
function lift() {
  const next = document.querySelector(":is(.sol-live, .sol-cell):not(.sol-seen)");
  next?.classList.add("sol-seen");
  if (next) return soon(lift, {timeout: 500});
  arrive();
  performance.mark("sol-settled");
  dispatchEvent(new Event("sol-settled"));
}

// --- a still figure that is smaller than it was drawn opens large ------------------------------------------------------

const SMALL = 0.85, LARGE = 1.4; // of the width that a figure was drawn for, in points

function enlarge(figure) {
  const large = element("dialog", "sol-large"), close = element("button", "", "Close"), copy = figure.cloneNode(true);
  copy.style.width = `${LARGE * figure.viewBox.baseVal.width}px`;
  close.addEventListener("click", () => large.close());
  large.addEventListener("click", ({target}) => target === large && large.close());
  large.addEventListener("close", () => large.remove());
  large.append(close, copy);
  document.body.append(large);
  large.showModal();
}

const fits = new ResizeObserver((seen) => {
  for (const {target, contentRect: {width}} of seen) {
    const button = target.nextElementSibling?.matches(".sol-enlarge") ? target.nextElementSibling : null;
    const small = width > 0 && width < SMALL * target.viewBox.baseVal.width;
    if (small === Boolean(button)) continue;
    if (!small) button.remove();
    else target.after(Object.assign(element("button", "sol-link sol-enlarge", "Open large"), {type: "button", onclick: () => enlarge(target)}));
  }
});
for (const figure of document.querySelectorAll(":is(.sol-still, .sol-result) svg[viewBox]")) fits.observe(figure);
document.addEventListener("click", ({target}) => {
  const figure = target.closest?.("svg");
  if (figure?.nextElementSibling?.matches(".sol-enlarge")) enlarge(figure);
});

if (!cells.length) settle();
