// The widget: controls, verdict, charts, facts, caption. Python computes and places; this file moves messages and draws what was placed.

// How many changes may be on their way at once. With one, a drag goes at the pace of a round trip, and on servers that leave Nagle's
// algorithm on, each round trip waits for the browser's delayed acknowledgement (40 ms); the second message carries it along at once.
const ON_THE_WAY = 2;

// The width that Python placed the labels for (NARROWEST in layout.py); wider is fine. Where there is less room, a chart is drawn at this
// width all the same, shrunk as far as its words can still be read, and what is then too wide is scrolled.
// A picture of things keeps its shape: it is at most this many times as wide as it is high.
const NARROWEST = 560, SMALLEST = 0.8, WIDEST = 2.1;

const PATIENCE = 4000; // ms

// A picture plays for about this long, no moment shorter or longer than these; what moves takes a part of a moment on its way. All in ms.
const PLAYS = 12000, SHORTEST = 120, LONGEST = 900, ON_ITS_WAY = 350;
// A pause after which a change begins a new move: what was seen before it stays as a ghost.
const PAUSE = 900; // ms
// More controls than these, or more than one chart: the controls stand beside, where there is room.
const FEW = 4;
const KEPT = "kept", BEFORE = "before";
const REST = 1500; // ms; how long a picture that played by itself shows its end before it goes back to where it opened
const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

const WAITS = "Python is on its way. What you set is taken up as soon as it is there.";
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
    return {node, count: texts.length, at: () => Number(input.value), show: (index) => (input.value = index)};
  }
  const input = element("input", "", undefined, {type: "range", id, min: 0, max: texts.length - 1, step: 1, ...OWN_KEYS});
  const output = element("output", "", "", {for: id});
  const tell = () => {
    output.textContent = texts[input.value];
    input.setAttribute("aria-valuetext", texts[input.value]);
    input.style.setProperty("--sol-share", `${(100 * input.value) / input.max}%`);
  };
  input.addEventListener("input", () => (tell(), changed()));
  node.append(name, output, input);
  return {node, count: texts.length, at: () => Number(input.value), show: (index) => ((input.value = index), tell())};
}

const ICONS = {play: "M4 2 L14 8 L4 14 Z", pause: "M3 2 H7 V14 H3 Z M9 2 H13 V14 H9 Z", back: "M11 2 L3 8 L11 14 Z M12 2 H14 V14 H12 Z", on: "M5 2 L13 8 L5 14 Z M2 2 H4 V14 H2 Z"};

// A slider over the moments of a picture, with buttons. It plays on only when the moment before is drawn, and where motion is unwanted
// it does not play: stepping is left.
function player(spec, changed, ready) {
  const slider = control({...spec, kind: "slider"}, () => (halt(), changed()));
  const {node, at} = slider, input = node.querySelector("input"), buttons = element("div", "sol-buttons");
  let last = spec.texts.length - 1, timer, rest, home; // home: the moment at which it opened, while it plays by itself
  const button = (act) => {
    const made = element("button", "", undefined, {type: "button", ...OWN_KEYS});
    made.addEventListener("click", act);
    buttons.append(made);
    return made;
  };
  const face = (made, icon, label) => {
    made.replaceChildren(shape("svg", {viewBox: "0 0 16 16", width: 14, height: 14, "aria-hidden": "true"}, shape("path", {d: ICONS[icon], fill: "currentColor"})));
    made.title = label;
    made.setAttribute("aria-label", label);
  };
  const move = (index) => (slider.show(Math.min(Math.max(index, 0), last)), changed());
  const halt = () => {
    clearInterval(timer);
    clearTimeout(rest);
    timer = home = undefined;
    face(play, "play", "play");
  };
  const tick = () => {
    if (!node.isConnected || (at() >= last && home === undefined)) halt();
    else if (at() >= last) {
      const back = home;
      halt();
      rest = setTimeout(() => move(back), REST);
    } else if (ready()) move(at() + 1);
  };
  const run = () => {
    timer = setInterval(tick, Math.min(Math.max(PLAYS / (last + 1), SHORTEST), LONGEST));
    face(play, "pause", "pause");
  };
  const once = (opens) => {
    move(0);
    home = opens;
    run();
  };
  const limit = (moments) => {
    input.max = last = moments - 1;
    slider.show(Math.min(at(), last));
  };
  const toggle = () => {
    if (timer) return halt();
    clearTimeout(rest);
    if (at() >= last) move(0);
    run();
  };
  const back = button(() => (halt(), move(at() - 1))), play = button(toggle), on = button(() => (halt(), move(at() + 1)));
  face(back, "back", "one step back");
  face(on, "on", "one step on");
  halt();
  play.hidden = still();
  input.addEventListener("keydown", (event) => event.key === " " && !play.hidden && (event.preventDefault(), toggle()));
  node.classList.replace("sol-slider", "sol-play");
  node.prepend(buttons);
  return {...slider, halt, once, playing: () => timer !== undefined, limit};
}

// --- drawing: no law, no formatting and no layout is written a second time here ------------------------------------

const color = (name) => `var(--sol-${name})`;

function shape(tag, attributes, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) if (value !== null && value !== undefined) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

// From data to pixels.
function scale({log, domain: [low, high]}, start, end) {
  const share = log ? (v) => Math.log(v / low) / Math.log(high / low) : (v) => (v - low) / (high - low);
  return (v) => start + share(v) * (end - start);
}

// Corners of a marker of radius 1, of about the area of the circle.
const STAR = Array.from({length: 10}, (_, i) => [i % 2 ? 0.5 : 1.25, (Math.PI * i) / 5]).map(([r, a]) => [r * Math.sin(a), -r * Math.cos(a)]);
const CROSS = [[-1, -0.5], [-0.5, -1], [0, -0.5], [0.5, -1], [1, -0.5], [0.5, 0], [1, 0.5], [0.5, 1], [0, 0.5], [-0.5, 1], [-1, 0.5], [-0.5, 0]];
const CORNERS = {
  square: [[-0.9, -0.9], [0.9, -0.9], [0.9, 0.9], [-0.9, 0.9]],
  diamond: [[0, -1.25], [1.25, 0], [0, 1.25], [-1.25, 0]],
  triangle: [[0, -1.2], [1.15, 0.8], [-1.15, 0.8]],
  cross: CROSS, star: STAR
};

function dot(name, x, y, r, look) {
  if (name === "circle") return shape("circle", {cx: x, cy: y, r, ...look});
  return shape("polygon", {points: CORNERS[name].map(([dx, dy]) => `${x + r * dx},${y + r * dy}`).join(" "), ...look});
}

// Lines of a text one below the other, around the middle of the first (or below `y` with `hanging`).
function words(string, x, y, {hanging, halo, ...look} = {}) {
  const size = look["font-size"] ?? 12, first = hanging ? 0.8 : 0.32;
  const around = halo ? {stroke: "var(--sol-ground)", "stroke-width": 4, "stroke-linejoin": "round", "paint-order": "stroke"} : {};
  const lines = string.split("\n").map((part, i) => shape("tspan", {x, y: y + size * (first + 1.1 * i)}, part));
  return shape("text", {"font-size": size, fill: "var(--sol-ink)", ...around, ...look}, ...lines);
}

function label(mark, x, y) {
  let {dx, dy} = mark, turn;
  const [px, py] = [x(mark.x), y(mark.y)];
  if (mark.along) {
    const [ax, ay, bx, by] = mark.along;
    const angle = Math.atan2(y(by) - y(ay), x(bx) - x(ax));
    [dx, dy] = [-dy * Math.sin(angle), dy * Math.cos(angle)];
    turn = `rotate(${(angle * 180) / Math.PI} ${px + dx} ${py + dy})`;
  }
  return words(mark.text, px + dx, py + dy, {
    fill: color(mark.color), "text-anchor": mark.anchor, "font-weight": mark.bold ? 600 : null, transform: turn, halo: mark.color !== "inside"
  });
}

// The head of an arrow, at the last point of a line.
function head({x: xs, y: ys}, x, y, fill) {
  const [bx, by, ax, ay] = [x(xs.at(-1)), y(ys.at(-1)), x(xs.at(-2)), y(ys.at(-2))], length = Math.hypot(bx - ax, by - ay) || 1;
  const [ux, uy] = [(bx - ax) / length, (by - ay) / length], corner = (along, across) => `${bx - along * ux - across * uy},${by - along * uy + across * ux}`;
  return shape("polygon", {points: [corner(-2, 0), corner(8, 5), corner(8, -5)].join(" "), fill});
}

// A picture on the way from the one before it: what both name by the same key is between its two places.
function between(before, after, share) {
  const places = {rect: ["x1", "x2", "y1", "y2"], dot: ["x", "y"], text: ["x", "y"]};
  const value = (mark, side, i) => (Array.isArray(mark[side]) ? mark[side][i] : mark[side]);
  const known = new Map(before.marks.flatMap((mark) => (mark.keys ?? []).map((key, i) => [`${mark.type} ${key}`, [mark, i]])));
  const marks = after.marks.map((mark) => {
    if (!mark.keys?.length) return mark;
    const moved = {...mark};
    for (const side of places[mark.type]) {
      const values = mark.keys.map((key, i) => {
        const [old, j] = known.get(`${mark.type} ${key}`) ?? [mark, i];
        return share * value(mark, side, i) + (1 - share) * value(old, side, j);
      });
      moved[side] = Array.isArray(mark[side]) ? values : values[0];
    }
    return moved;
  });
  return {...after, marks};
}

function marked(mark, x, y, clip) {
  const paint = color(mark.color), group = {class: `sol-${mark.type}`, "clip-path": mark.type === "dot" ? null : clip};
  const points = (ys) => mark.x.map((v, i) => `${x(v)},${y(ys[i])}`);
  switch (mark.type) {
    case "line":
      return shape("g", group, shape("polyline", {
        points: points(mark.y).join(" "), fill: "none", stroke: paint, "stroke-width": mark.width, "stroke-dasharray": mark.dash ? "5 4" : null,
        "stroke-linejoin": "round"
      }), ...(mark.arrow ? [head(mark, x, y, paint)] : []));
    case "area":
      return shape("g", group, shape("polygon", {points: [...points(mark.low), ...points(mark.high).reverse()].join(" "), fill: paint, "fill-opacity": 0.15}));
    case "rect":
      return shape("g", group, ...mark.x1.map((x1, i) => {
        const [left, right] = [x(x1), x(mark.x2[i])].sort((a, b) => a - b), [top, bottom] = [y(mark.y1[i]), y(mark.y2[i])].sort((a, b) => a - b);
        const look = mark.shade ? {"fill-opacity": 0.1} : {stroke: "var(--sol-ground)"};
        return shape("rect", {x: left, y: top, width: right - left, height: bottom - top, fill: paint, ...look});
      }));
    case "dot":
      if (mark.drag?.some(Boolean)) group.class += " sol-drag";
      if (mark.soft) group["fill-opacity"] = 0.45;
      return shape("g", group, ...mark.x.map((v, i) => dot(mark.marker, x(v), y(mark.y[i]), mark.size, {fill: paint, stroke: mark.soft ? "none" : "var(--sol-ground)"})));
    case "text":
      return label(mark, x, y);
  }
}

// The frame of a chart in pixels, and its scales.
function placed({margin, height, x, y}, width) {
  const [left, right, top, bottom] = [margin.left, width - margin.right, margin.top, height - margin.bottom];
  return {left, right, top, bottom, x: scale(x, left, right), y: scale(y, bottom, top)};
}

// What of an earlier state on the same axes has changed: lines fainter, dots and bars as outlines. What the reader kept is in one colour.
function ghost(before, now, x, y, clip, className) {
  const axes = ({x, y}) => JSON.stringify([x.domain, x.log, y.domain, y.log]);
  if (!before || axes(before) !== axes(now)) return [];
  const there = new Set(now.marks.map((mark) => JSON.stringify(mark)));
  return before.marks.filter((mark) => ["line", "dot", "rect"].includes(mark.type) && !mark.shade && !mark.soft && !mark.dash && !there.has(JSON.stringify(mark))).map((mark) => {
    const group = marked(mark, x, y, clip);
    const stroke = color(className === "sol-kept" ? "purple" : mark.color);
    group.setAttribute("class", className);
    for (const node of group.children) {
      if (mark.type !== "line") node.setAttribute("fill", "none");
      node.setAttribute("stroke", stroke);
    }
    if (mark.moves) group.append(words(className === "sol-kept" ? KEPT : BEFORE, x(mark.x[0]) - mark.size - 4, y(mark.y[0]), {halo: true, "text-anchor": "end", fill: stroke}));
    return group;
  });
}

function draw(spec, width, before, kept) {
  const {height} = spec, {left, right, top, bottom, x, y} = placed(spec, width), id = fresh();
  const soft = {fill: "var(--sol-soft)"}, small = {...soft, "font-size": 11}, end = {"text-anchor": "end"}, middle = {"text-anchor": "middle"};
  const rule = (x1, x2, y1, y2, stroke) => shape("line", {x1, x2, y1, y2, stroke});
  const nodes = [
    shape("clipPath", {id}, shape("rect", {x: left, y: top, width: right - left, height: bottom - top})),
    ...(spec.x.category ? [] : spec.x.ticks.map(([v]) => rule(x(v), x(v), top, bottom, "var(--sol-grid)"))),
    ...(spec.y.category ? [] : spec.y.ticks.map(([v]) => rule(left, right, y(v), y(v), "var(--sol-grid)"))),
    ...(spec.bare ? [] : [rule(left, right, bottom, bottom, "var(--sol-soft)")]),
    ...spec.x.ticks.map(([v, string]) => words(string, x(v), bottom + 8, {...small, ...middle, hanging: true})),
    ...spec.y.ticks.map(([v, string]) => words(string, left - 7, y(v), {...small, ...end})),
    ...(before === kept ? [] : ghost(before, spec, x, y, `url(#${id})`, "sol-ghost")),
    ...ghost(kept, spec, x, y, `url(#${id})`, "sol-kept"),
    ...spec.marks.map((mark) => marked(mark, x, y, `url(#${id})`)),
    ...spec.key.flatMap((entry) => {
      const at = spec.key_top + 20 * entry.row + 10;
      return [words(entry.text, 26 + entry.x, at, {fill: color(entry.color)}), shape("g", {class: "sol-dot"}, dot(entry.marker, 16 + entry.x, at, 5, {fill: color(entry.color)}))];
    })
  ];
  if (spec.title) nodes.push(words(spec.title, 8, 14, {"font-size": 14, "font-weight": 600}));
  if (spec.y.label) nodes.push(words(spec.y.label, 8, top - (spec.x_top ? 30 : 17), soft));
  if (spec.x.label) nodes.push(words(spec.x.label, right, height - 11, {...soft, ...end}));
  if (spec.x_top) {
    nodes.push(words(spec.x_top.label, right, top - 30, {...soft, ...end}));
    nodes.push(...spec.x_top.ticks.map(([v, string]) => words(string, x(v), top - 11, {...small, ...middle})));
  }
  return shape("svg", {width, height, viewBox: `0 0 ${width} ${height}`, "font-family": "inherit", overflow: "visible"}, ...nodes);
}

// --- the view ------------------------------------------------------------------------------------------------------

function shrunk(svg, share) {
  for (const side of share < 1 ? ["width", "height"] : []) svg.setAttribute(side, Math.round(share * svg.getAttribute(side)));
  return svg;
}

function render({model, el}) {
  const {controls: specs, caption, alt, presets = [], opens = 0, guess: question = "", later = []} = model.get("frame");
  const made = (spec) => (spec.kind === "play" ? player(spec, changed, () => answered === turn && !waiting) : control(spec, changed));
  const controls = new Map(specs.map((spec) => [spec.name, made(spec)]));
  for (const [name, {node}] of controls) node.dataset.name = name;
  const play = [...controls.values()].find(({halt}) => halt);
  const panel = element("div", "sol-controls"), verdict = element("p", "sol-verdict", "", {"aria-live": "polite"});
  const charts = element("div", "sol-charts", undefined, {role: "img", "aria-label": alt, ...OWN_KEYS}), facts = element("dl", "sol-facts");
  const measured = element("p", "sol-caption sol-measured"), formula = element("p", "sol-formula"), compared = element("table", "sol-compared", undefined, {hidden: ""});
  const hint = element("p", "sol-hint", "The chart is wider than this window: scroll it sideways. \u2192");
  const stories = element("div", "sol-presets", undefined, {role: "group", "aria-label": "examples"});
  const button = (text, act) => {
    const made = element("button", "", text, {type: "button", ...OWN_KEYS});
    made.addEventListener("click", act);
    return made;
  };
  stories.append(...presets.map(([text, at]) => button(text, () => {
    for (const [name, index] of Object.entries(at)) controls.get(name).show(index);
    changed();
  })));
  const side = element("div", "sol-side"), main = element("div", "sol-main"), frame = element("div", "sol-frame");
  const more = element("details", "sol-more");
  more.append(element("summary", "", "more"));
  for (const [name, {node, halt}] of controls) if (!halt) (later.includes(name) ? more : panel).append(node);
  if (later.length) panel.append(more);
  side.append(panel, facts, compared);
  const asks = element("p", "sol-asks", question);
  const advice = element("p", "sol-advice", "", {hidden: ""});
  asks.hidden = !question;
  asks.append(" ", button("show it without a guess", () => {
    [asked, guess, asks.hidden] = [false, null, true];
    redraw(model.get("content"));
  }));
  main.append(stories, ...(play ? [play.node] : []), asks, verdict, formula, hint, charts, advice);
  frame.append(side, main, element("p", "sol-caption", caption), measured);
  frame.classList.toggle("sol-beside", panel.children.length > FEW || model.get("content").charts.length > 1);
  el.classList.add("sol-view");
  el.append(frame);

  let turn = 0, answered = 0, waiting = false, silence = "", room = 0, patience, drawn = [], motion = 0;
  let before = [], touched = -PAUSE, pulled = null, guess = null, kept = null, asked = Boolean(question);

  function changed() {
    const now = performance.now();
    if (now - touched > PAUSE) before = drawn;
    touched = now;
    if (guess?.at) guess = null;
    if (asked) [asked, guess] = [false, {at: null}]; // the first move waits for the guess that was asked for
    waiting = true;
    send();
  }

  function send() {
    if (!waiting || turn - answered >= ON_THE_WAY) return;
    waiting = false;
    clearTimeout(patience);
    patience = setTimeout(giveUp, PATIENCE);
    try {
      model.send({turn: ++turn, at: Object.fromEntries([...controls].map(([name, {at}]) => [name, at()]))});
    } catch {
      giveUp(); // Jupyter knows already that the kernel is another
    }
  }

  // What was on its way may be lost (a connection that dropped), so it must not keep later changes back.
  function giveUp() {
    answered = turn;
    silence = model.waits ? WAITS : SILENCE;
    say(model.get("content"));
    send();
  }

  function say({verdict: said, error}) {
    const words = silence || error || said;
    el.classList.toggle("sol-failed", words !== said);
    verdict.setAttribute("aria-live", play?.playing() ? "off" : "polite"); // who listens steps by hand
    if (verdict.textContent !== words) verdict.textContent = words;
  }

  function update() {
    const content = model.get("content");
    silence = "";
    play?.limit(content.moments);
    answered = Math.max(answered, content.turn);
    turn = Math.max(turn, answered); // another view of the same widget may have asked
    if (answered === turn) clearTimeout(patience);
    send();
    if (answered === turn && !waiting) for (const [name, {show}] of controls) show(content.at[name]);
    if (turn) room ||= charts.clientWidth; // moved where no observer has looked yet
    redraw(content);
    pull();
  }

  function redraw(content) {
    if (guess && !guess.at) return invite();
    const {charts: specs, verdict: said, facts: named} = content;
    if (room) picture(specs); // else not on the page yet, hidden or far away; the observer below calls again
    charts.setAttribute("aria-label", `${alt} ${said}`);
    facts.replaceChildren(...named.map(([name, value]) => {
      const pair = element("div");
      pair.append(element("dt", "", name), element("dd", "", value));
      return pair;
    }));
    formula.hidden = !content.formula.length;
    formula.replaceChildren(...content.formula.map((line) => element("span", "", line)));
    advise.hidden = !content.advice;
    advice.textContent = content.advice ?? "";
    measured.hidden = !content.measured;
    measured.textContent = content.measured;
    facts.hidden = Boolean(kept);
    compared.hidden = !kept;
    if (kept) compare(content);
    say(content);
  }

  function picture(specs) {
    const gap = 20, columns = specs.length > 1 && room >= 2 * NARROWEST + gap ? 2 : 1;
    const width = Math.floor((room - gap * (columns - 1)) / columns), share = Math.min(Math.max(width / NARROWEST, SMALLEST), 1);
    const paint = (pictures) => charts.replaceChildren(...pictures.map((spec, i) => shrunk(draw(spec, sized(spec, width), play ? null : before[i], play ? null : kept?.charts[i]), share)));
    cancelAnimationFrame(motion);
    if (play && drawn.length === specs.length && !still()) moving(drawn, specs, paint);
    else paint(specs);
    drawn = specs;
    if (guess) charts.children[guess.chart]?.append(shape("g", {class: "sol-guess"}, dot("star", guess.at.x, guess.at.y, 8, {fill: "none", stroke: "var(--sol-purple)", "stroke-width": 2}), words("your guess", guess.at.x + 12, guess.at.y, {halo: true, fill: "var(--sol-purple)"})));
    // What is wider than a phone scrolls, so the keyboard has to reach it.
    if ([...charts.children].some((svg) => svg.getAttribute("width") > room)) charts.tabIndex = 0;
    else charts.removeAttribute("tabindex");
    el.classList.toggle("sol-wide", room < SMALLEST * NARROWEST);
  }

  // The state that the reader kept beside the present one: the settings that differ, then every number.
  function compare({at, facts: named}) {
    const row = (cells) => {
      const made = element("tr"), [name, was, now] = cells;
      made.append(element("th", "", name, {scope: "row"}), element("td", "sol-kept", was), element("td", "", now));
      return made;
    };
    const head = element("tr");
    head.append(element("td"), element("th", "sol-kept", KEPT, {scope: "col"}), element("th", "", "now", {scope: "col"}));
    const set = specs.filter(({name}) => at[name] !== kept.at[name]).map(({name, label, texts}) => [label, texts[kept.at[name]], texts[at[name]]]);
    const before = new Map(kept.facts);
    compared.replaceChildren(head, ...[...set, ...named.map(([name, value]) => [name, before.get(name) ?? "\u2013", value])].map(row));
  }

  function keep() {
    kept = kept ? null : model.get("content");
    hold.setAttribute("aria-pressed", String(Boolean(kept)));
    redraw(model.get("content"));
  }

  function moving(before, after, paint) {
    const start = performance.now();
    const frame = (now) => {
      const done = Math.min(Math.max((now - start) / ON_ITS_WAY, 0), 1), share = done * done * (3 - 2 * done);
      paint(after.map((spec, i) => (done < 1 ? between(before[i], spec, share) : spec)));
      if (done < 1) motion = requestAnimationFrame(frame);
    };
    frame(start);
  }

  const sized = (spec, width) => Math.max(spec.bare ? Math.min(width, WIDEST * spec.height) : width, NARROWEST);

  // Which chart the pointer is in, where in its frame, and the dot that it is on.
  function pointed(event) {
    const svg = event.target.closest?.("svg"), chart = [...charts.children].indexOf(svg);
    if (chart < 0 || !drawn[chart]) return null;
    const spec = drawn[chart], width = svg.viewBox.baseVal.width, box = svg.getBoundingClientRect(), share = width / box.width;
    const frame = placed(spec, width), at = {x: share * (event.clientX - box.left), y: share * (event.clientY - box.top)};
    const near = spec.marks.filter(({type}) => type === "dot").flatMap((mark) => mark.x.map((v, i) => ({mark, i, far: Math.hypot(frame.x(v) - at.x, frame.y(mark.y[i]) - at.y)})));
    // What can be pulled comes first, then what stands above the measured dots.
    const rank = ({mark, far}) => far + (mark.soft ? 200 : mark.drag?.some(Boolean) ? 0 : 100);
    const on = near.filter(({mark, far}) => far < (mark.soft ? 6 : 14)).sort((a, b) => rank(a) - rank(b))[0];
    const inside = at.x >= frame.left && at.x <= frame.right && at.y >= frame.top && at.y <= frame.bottom;
    return {svg, chart, spec, frame, at, on, inside};
  }

  // What the axes say at a place: Python wrote the words for steps along each axis.
  function told({spec, frame, at}) {
    const step = (texts, share) => texts[Math.round(share * (texts.length - 1))];
    return [step(spec.x.readings, (at.x - frame.left) / (frame.right - frame.left)), step(spec.y.readings, (frame.bottom - at.y) / (frame.bottom - frame.top))].filter(Boolean).join(", ");
  }

  function hover(event) {
    charts.querySelector(".sol-hover")?.remove();
    const here = pointed(event);
    if (!here?.inside || here.spec.bare || pulled) return;
    const {svg, frame, at, on} = here, text = on?.mark.tips?.[on.i] ?? told(here);
    if (!text) return;
    const right = at.x > (frame.left + frame.right) / 2, line = {stroke: "var(--sol-soft)", "stroke-width": 0.75, "stroke-dasharray": "2 3"};
    svg.append(shape("g", {class: "sol-hover", "pointer-events": "none", "aria-hidden": "true"},
      ...(on ? [] : [shape("line", {x1: at.x, x2: at.x, y1: frame.top, y2: frame.bottom, ...line}), shape("line", {x1: frame.left, x2: frame.right, y1: at.y, y2: at.y, ...line})]),
      words(text, at.x + (right ? -10 : 10), Math.max(at.y - 14, frame.top + 8), {halo: true, "text-anchor": right ? "end" : "start", "font-weight": 600})));
  }

  // A dot that is pulled: its controls go on until it is where the pointer is. How far a step of a control takes the dot is seen from the
  // step before; no law is needed here.
  function grab(event) {
    const here = pointed(event), drag = here?.on?.mark.drag;
    if (!drag?.some(Boolean) || guess) return;
    [asked, asks.hidden] = [false, true]; // a dot in the hand needs no guess
    event.preventDefault();
    charts.setPointerCapture(event.pointerId);
    pulled = {chart: here.chart, drag, want: here.at, past: {}, slope: {}, left: 0};
  }

  function follow(event) {
    if (!pulled) return hover(event);
    const svg = charts.children[pulled.chart], box = svg.getBoundingClientRect(), share = svg.viewBox.baseVal.width / box.width;
    pulled.want = {x: share * (event.clientX - box.left), y: share * (event.clientY - box.top)};
    pulled.left = 8;
    pull();
  }

  function pull() {
    if (!pulled || waiting || answered !== turn || pulled.left-- <= 0) return;
    const spec = drawn[pulled.chart], frame = placed(spec, charts.children[pulled.chart].viewBox.baseVal.width);
    const mark = spec.marks.find(({drag}) => drag?.some(Boolean));
    if (!mark) return;
    let moves = false;
    for (const [i, side] of ["x", "y"].entries()) {
      const one = controls.get(pulled.drag[i]);
      if (!one) continue;
      const here = frame[side](mark[side][0]), at = one.at(), past = pulled.past[side], most = one.count - 1;
      if (past && past.at !== at && past.here !== here) pulled.slope[side] = (here - past.here) / (at - past.at);
      const slope = pulled.slope[side] ?? (side === "x" ? frame.right - frame.left : frame.top - frame.bottom) / most;
      const next = Math.min(Math.max(at + Math.round(Math.min(Math.max((pulled.want[side] - here) / slope, -most / 3), most / 3)), 0), most);
      pulled.past[side] = {at, here};
      if (next !== at) {
        one.show(next);
        moves = true;
      }
    }
    if (moves) changed();
  }

  // A guess before a move: the picture waits, with its verdict, until the reader has clicked where the point will be.
  function invite() {
    verdict.textContent = question && turn ? "Click in the chart where you expect it. The answer waits for your click; or see it without a guess." : "Now change a control, then click in the chart where the point will be. The answer waits for your click.";
    facts.replaceChildren();
  }

  function guessing() {
    guess = guess && !guess.at ? null : {at: null};
    asked = false;
    asks.hidden = !guess || asks.hidden;
    before = drawn;
    redraw(model.get("content"));
    ask.setAttribute("aria-pressed", String(Boolean(guess)));
  }

  function click(event) {
    const here = pointed(event);
    if (!guess || guess.at || !here?.inside) return;
    guess = {chart: here.chart, at: here.at};
    asks.hidden = true;
    touched = -PAUSE;
    ask.setAttribute("aria-pressed", "false");
    redraw(model.get("content"));
  }

  const ask = button("guess first", guessing);
  ask.setAttribute("aria-pressed", "false");
  ask.title = "Move a control and click where the point will be, before you see it";
  if (question || (!play && model.get("content").charts.some(({marks}) => marks.some(({moves}) => moves)))) stories.append(ask);
  const advise = button("what to change first", () => {
    advice.hidden = !advice.hidden;
    advise.setAttribute("aria-expanded", String(!advice.hidden));
  });
  advise.setAttribute("aria-expanded", "false");
  const hold = button("keep this state", keep);
  hold.setAttribute("aria-pressed", "false");
  hold.title = "Keep its numbers and its picture beside those of the next states; press again to let it go";
  if (specs.length) stories.append(hold, advise);
  stories.hidden = !stories.children.length;
  for (const [name, act] of [["pointerdown", grab], ["pointermove", follow], ["click", click]]) charts.addEventListener(name, act);
  for (const name of ["pointerup", "pointercancel"]) charts.addEventListener(name, () => (pulled = null));
  charts.addEventListener("pointerleave", () => charts.querySelector(".sol-hover")?.remove());

  // A redraw asks for no size: each question would have the whole page laid out. The browser tells sizes when it has them.
  function measure(width) {
    if (width === room) return;
    room = width;
    for (const node of lasting) node.style.minHeight = "";
    redraw(model.get("content"));
  }

  // A text that once took three lines keeps their room, so that what is below it does not jump while the reader drags.
  const lasting = [verdict, formula, facts];
  const sizes = new ResizeObserver((seen) => {
    for (const {target, borderBoxSize: [{blockSize}]} of seen) if (target !== charts && blockSize) target.style.minHeight = `${blockSize}px`;
    if (seen.some(({target}) => target === charts)) measure(charts.clientWidth);
  });
  for (const node of [charts, ...lasting]) sizes.observe(node);
  // A picture that opens in its middle plays once, when half of it is seen, and stops where it opened; not if the reader was
  // there first, or came by a link to another moment.
  const seen = new IntersectionObserver((entries) => {
    if (!entries.some(({isIntersecting}) => isIntersecting)) return;
    if (model.waits) return; // nobody would answer yet
    seen.disconnect();
    if (!turn && play.at() === opens && !still()) play.once(opens);
  }, {threshold: 0.5});
  if (play && opens) seen.observe(charts);
  // What was never near the window is drawn for the printer.
  const printed = () => measure(charts.clientWidth);
  addEventListener("beforeprint", printed);
  el.addEventListener("sol-placed", printed); // a host that puts it before the first frame says so
  model.on("change:content", update);
  turn = answered = model.get("content").turn;
  update();
  return () => {
    sizes.disconnect();
    seen.disconnect();
    removeEventListener("beforeprint", printed);
    clearTimeout(patience);
    cancelAnimationFrame(motion);
    play?.halt();
    model.off("change:content", update);
  };
}

export default {render};
