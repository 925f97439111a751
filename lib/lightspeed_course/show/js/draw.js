// Draws what Python sends: no law, no formatting and no layout is written a second time here. Every position is in data units plus pixels.
import {plot, line, areaY, rect, dot, text, gridX, gridY, ruleY} from "@observablehq/plot";

const color = (name) => `var(--sol-${name})`;
const zip = (...columns) => columns[0].map((_, i) => columns.map((column) => column[i]));
const SYMBOLS = {circle: "circle", square: "square2", triangle: "triangle2", diamond: "diamond2", cross: "times", star: "star"};

function shape(mark, x, y) {
  const paint = color(mark.color);
  switch (mark.type) {
    case "line":
      return line(zip(mark.x, mark.y), {stroke: paint, strokeWidth: mark.width, strokeDasharray: mark.dash ? "5 4" : null, clip: true});
    case "area":
      return areaY(zip(mark.x, mark.low, mark.high), {x: "0", y1: "1", y2: "2", fill: paint, fillOpacity: 0.15, clip: true});
    case "rect":
      return rect(zip(mark.x1, mark.x2, mark.y1, mark.y2), {
        x1: "0", x2: "1", y1: "2", y2: "3", fill: paint, clip: true,
        ...(mark.shade ? {fillOpacity: 0.1} : {stroke: "var(--sol-ground)"})
      });
    case "dot":
      return dot(zip(mark.x, mark.y), {fill: paint, stroke: "var(--sol-ground)", r: mark.size, symbol: SYMBOLS[mark.marker]});
    case "text":
      return label(mark, x, y);
  }
}

function label(mark, x, y) {
  let {dx, dy} = mark, rotate = 0;
  if (mark.along) {
    const [ax, ay, bx, by] = mark.along;
    const angle = Math.atan2(y(by) - y(ay), x(bx) - x(ax));
    rotate = (angle * 180) / Math.PI;
    [dx, dy] = [-dy * Math.sin(angle), dy * Math.cos(angle)];
  }
  return words([mark.x, mark.y], mark.text, {
    fill: color(mark.color), textAnchor: mark.anchor, dx, dy, rotate, fontWeight: mark.bold ? 600 : null,
    ...(mark.color === "inside" ? {} : {stroke: "var(--sol-ground)", strokeWidth: 4})
  });
}

const words = ([x, y], string, options) => text([string], {x: () => x, y: () => y, fontSize: 12, lineAnchor: "middle", ...options});
const header = (string, dx, dy, options) =>
  text([string], {frameAnchor: "top-left", textAnchor: "start", lineAnchor: "middle", fontSize: 12, fill: "var(--sol-soft)", dx, dy, ...options});

// The same map from data to pixels that Plot makes, for angles.
function scale({log, domain: [low, high]}, start, end) {
  const share = log ? (v) => Math.log(v / low) / Math.log(high / low) : (v) => (v - low) / (high - low);
  return (v) => start + share(v) * (end - start);
}

export function draw(spec, width) {
  const {margin, height} = spec;
  const x = scale(spec.x, margin.left, width - margin.right);
  const y = scale(spec.y, height - margin.bottom, margin.top);
  const soft = {fill: "var(--sol-soft)", fontSize: 11};
  const grid = {stroke: "var(--sol-grid)", strokeOpacity: 1};
  const [bottom, top] = spec.y.domain, [start] = spec.x.domain;
  const up = -margin.top;
  const marks = [
    spec.x.category ? null : gridX(spec.x.ticks.map((t) => t[0]), grid),
    spec.y.category ? null : gridY(spec.y.ticks.map((t) => t[0]), grid),
    ruleY([bottom], {stroke: "var(--sol-soft)"}),
    ...spec.x.ticks.map(([v, string]) => words([v, bottom], string, {...soft, lineAnchor: "top", dy: 8})),
    ...spec.y.ticks.map(([v, string]) => words([start, v], string, {...soft, textAnchor: "end", dx: -7})),
    ...spec.marks.map((mark) => shape(mark, x, y)),
    spec.title ? header(spec.title, 8 - margin.left, up + 14, {fontSize: 14, fontWeight: 600, fill: "var(--sol-ink)"}) : null,
    spec.y.label ? header(spec.y.label, 8 - margin.left, spec.x_top ? -30 : -17) : null,
    spec.x.label ? header(spec.x.label, 0, margin.bottom - 11, {frameAnchor: "bottom-right", textAnchor: "end"}) : null,
    ...spec.key.flatMap((entry) => [
      header(entry.text, 26 + entry.x - margin.left, up + spec.key_top + 20 * entry.row + 10, {fill: color(entry.color)}),
      dot([0], {frameAnchor: "top-left", dx: 16 + entry.x - margin.left, dy: up + spec.key_top + 20 * entry.row + 10, r: 5,
        fill: color(entry.color), symbol: SYMBOLS[entry.marker]})
    ]),
    ...(spec.x_top
      ? [
          header(spec.x_top.label, 0, -30, {frameAnchor: "top-right", textAnchor: "end"}),
          ...spec.x_top.ticks.map(([v, string]) => words([v, top], string, {...soft, dy: -11}))
        ]
      : [])
  ];
  return plot({
    width, height, marginLeft: margin.left, marginRight: margin.right, marginTop: margin.top, marginBottom: margin.bottom,
    x: {type: spec.x.log ? "log" : "linear", domain: spec.x.domain, axis: null},
    y: {type: spec.y.log ? "log" : "linear", domain: spec.y.domain, axis: null},
    style: {fontFamily: "inherit", overflow: "visible", background: "none"}, marks
  });
}
