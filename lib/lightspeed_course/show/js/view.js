// The widget: controls, verdict, charts, facts, caption. Python computes; this file moves messages and elements.
import {draw} from "./draw.js";

// How many changes may be on their way at once. With one, a drag goes at the pace of a round trip, and on servers that leave Nagle's
// algorithm on, each round trip waits for the browser's delayed acknowledgement (40 ms); the second message carries it along at once.
const ON_THE_WAY = 2;

// The width that Python placed the labels for (NARROWEST in layout.py); wider is fine. Where there is less room, a chart is drawn at this
// width all the same, shrunk as far as its words can still be read, and what is then too wide is scrolled.
const NARROWEST = 560, SMALLEST = 0.8;

const PATIENCE = 4000; // ms
const SILENCE = "No answer from the kernel. It may be busy: move a control to ask again. If it was restarted, run this cell again.";

function element(tag, className, content, attributes = {}) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (content !== undefined) node.textContent = content;
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  return node;
}

// Every widget is a module instance of its own, so a counter would give two explorers on a page the same ids.
const fresh = () => `sol-${Math.random().toString(36).slice(2)}`;

// Without this attribute (on the very element) JupyterLab takes the arrow keys for itself.
const OWN_KEYS = {"data-lm-suppress-shortcuts": "true"};

// One control: {node, input, at(), show(index)}. Native elements, so that keyboard and screen reader work as everywhere.
function control({label, kind, texts}, changed) {
  const id = fresh();
  const node = element("div", `sol-control sol-${kind}`);
  const name = element("label", "", label, {for: id});
  if (kind === "toggle") {
    const input = element("input", "", undefined, {type: "checkbox", id, ...OWN_KEYS});
    input.addEventListener("input", changed);
    node.append(input, name);
    return {node, at: () => Number(input.checked), show: (index) => (input.checked = Boolean(index))};
  }
  if (kind === "menu") {
    const input = element("select", "", undefined, {id, ...OWN_KEYS});
    input.append(...texts.map((text, index) => element("option", "", text, {value: index})));
    input.addEventListener("input", changed);
    node.append(name, input);
    return {node, at: () => Number(input.value), show: (index) => (input.value = index)};
  }
  const input = element("input", "", undefined, {type: "range", id, min: 0, max: texts.length - 1, step: 1, ...OWN_KEYS});
  const output = element("output", "", "", {for: id});
  const tell = () => {
    output.textContent = texts[input.value];
    input.setAttribute("aria-valuetext", texts[input.value]);
    input.style.setProperty("--sol-share", `${(100 * input.value) / (texts.length - 1)}%`);
  };
  input.addEventListener("input", () => (tell(), changed()));
  node.append(name, output, input);
  return {node, at: () => Number(input.value), show: (index) => ((input.value = index), tell())};
}

function shrunk(svg, share) {
  for (const side of share < 1 ? ["width", "height"] : []) svg.setAttribute(side, Math.round(share * svg.getAttribute(side)));
  return svg;
}

function render({model, el}) {
  const {controls: specs, caption, alt} = model.get("frame");
  const controls = new Map(specs.map((spec) => [spec.name, control(spec, changed)]));
  const panel = element("div", "sol-controls"), verdict = element("p", "sol-verdict", "", {"aria-live": "polite"});
  const charts = element("div", "sol-charts", undefined, {role: "img", ...OWN_KEYS}), facts = element("dl", "sol-facts");
  const hint = element("p", "sol-hint", "The chart is wider than this window: scroll it sideways. \u2192");
  panel.append(...[...controls.values()].map(({node}) => node));
  el.classList.add("sol-view");
  el.append(panel, verdict, hint, charts, facts, element("p", "sol-caption", caption));

  let turn = 0, answered = 0, waiting = false, silence = "", room = 0, patience;

  function changed() {
    waiting = true;
    send();
  }

  function send() {
    if (!waiting || turn - answered >= ON_THE_WAY) return;
    waiting = false;
    model.send({turn: ++turn, at: Object.fromEntries([...controls].map(([name, {at}]) => [name, at()]))});
    clearTimeout(patience);
    patience = setTimeout(giveUp, PATIENCE);
  }

  // What was on its way may be lost (a connection that dropped), so it must not keep later changes back.
  function giveUp() {
    answered = turn;
    silence = SILENCE;
    say(model.get("content"));
    send();
  }

  function say({verdict: said, error}) {
    const words = silence || error || said;
    el.classList.toggle("sol-failed", words !== said);
    if (verdict.textContent !== words) verdict.textContent = words;
    keepHeights();
  }

  // A text that once took three lines keeps their room, so that what is below it does not jump while the reader drags.
  function keepHeights() {
    const heights = [verdict, facts].map((node) => [node, node.offsetHeight]);
    for (const [node, height] of heights) if (height) node.style.minHeight = `${height}px`;
  }

  function update() {
    const content = model.get("content");
    silence = "";
    answered = Math.max(answered, content.turn);
    turn = Math.max(turn, answered); // another view of the same widget may have asked
    if (answered === turn) clearTimeout(patience);
    send();
    if (answered === turn && !waiting) for (const [name, {show}] of controls) show(content.at[name]);
    redraw(content);
  }

  function redraw(content) {
    const {charts: specs, verdict: said, facts: named} = content, gap = 20;
    if (room !== charts.clientWidth) for (const node of [verdict, facts]) node.style.minHeight = "";
    room = charts.clientWidth;
    if (!room) return; // not on the page yet, or hidden; the observer below calls again
    const columns = specs.length > 1 && room >= 2 * NARROWEST + gap ? 2 : 1;
    const width = Math.floor((room - gap * (columns - 1)) / columns), share = Math.min(Math.max(width / NARROWEST, SMALLEST), 1);
    charts.replaceChildren(...specs.map((spec) => shrunk(draw(spec, Math.max(width, NARROWEST)), share)));
    charts.setAttribute("aria-label", `${alt} ${said}`);
    el.classList.toggle("sol-wide", room < SMALLEST * NARROWEST);
    facts.replaceChildren(...named.map(([name, value]) => {
      const pair = element("div");
      pair.append(element("dt", "", name), element("dd", "", value));
      return pair;
    }));
    say(content);
  }

  const sizes = new ResizeObserver(() => charts.clientWidth !== room && redraw(model.get("content")));
  sizes.observe(charts);
  model.on("change:content", update);
  turn = answered = model.get("content").turn;
  update();
  return () => {
    sizes.disconnect();
    clearTimeout(patience);
    model.off("change:content", update);
  };
}

export default {render};
