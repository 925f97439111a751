// A form: an input or a group of radio buttons per field, a button, a second button, and one for each offer. What was entered travels
// in one message with the event, so that a busy kernel never checks half of what was typed.
function element(tag, properties = {}, ...children) {
  const node = Object.assign(document.createElement(tag), properties);
  node.append(...children);
  return node;
}

function field(spec, name) {
  if (spec.options) {
    const group = element("fieldset", {}, element("legend", { textContent: spec.label }));
    spec.options.forEach((option) => {
      const [key, text] = option;
      const radio = element("input", { type: "radio", name, value: key });
      group.append(element("label", { className: "sol-option" }, radio, element("span", {}, element("b", { textContent: key }), `: ${text}`)));
    });
    return group;
  }
  const input = element("input", { type: "text", id: name, name, autocomplete: "off", spellcheck: false, placeholder: spec.placeholder });
  const label = element("label", { htmlFor: name, textContent: spec.label });
  const unit = element("span", { className: "sol-unit", textContent: spec.unit, id: `${name}-unit` });
  if (spec.unit) input.setAttribute("aria-describedby", unit.id);
  return element("div", { className: "sol-field" }, label, input, unit);
}

const PATIENCE = 4000; // ms
const WAITS = "Python is on its way. Your answer is judged as soon as it is there.";
const SILENCE = "No answer from Python, and nothing was kept. If it is busy, wait: this line goes when it answers. If the kernel was restarted, run this cell again and answer there.";

function render({ model, el }) {
  const prefix = `sol-${Math.random().toString(36).slice(2)}`; // ids are the page's, and a form may be shown twice
  const fields = element("div", { className: "sol-fields" });
  const action = element("button", { type: "submit" });
  const extra = element("button", { type: "button" });
  const status = element("output", { className: "sol-status" });
  status.setAttribute("aria-live", "polite");
  const silence = element("p", { className: "sol-silence", hidden: true, textContent: SILENCE });
  silence.setAttribute("role", "alert");
  const buttons = element("div", { className: "sol-form-buttons" }, action, extra);
  const form = element("form", { className: "sol-form", noValidate: true }, fields, buttons, silence, status);
  let turn = model.get("heard"), patience;
  // Whoever restarted the kernel would else press a button that nobody hears.
  const unheard = () => Object.assign(silence, { hidden: false, textContent: model.waits ? WAITS : SILENCE });
  const send = (message) => {
    clearTimeout(patience);
    patience = setTimeout(unheard, PATIENCE);
    try {
      model.send({ ...message, turn: ++turn });
    } catch {
      unheard(); // Jupyter knows already that the kernel is another
    }
  };
  const heard = () => {
    turn = Math.max(turn, model.get("heard")); // another view of the same box may have asked
    if (model.get("heard") < turn) return;
    clearTimeout(patience);
    silence.hidden = true;
  };

  const drawFields = () => {
    fields.replaceChildren(...model.get("fields").map((spec, i) => field(spec, `${prefix}-${i}`)));
  };
  const drawButtons = () => {
    action.textContent = model.get("action");
    action.hidden = !model.get("action");
    extra.textContent = model.get("extra");
    extra.hidden = !model.get("extra");
    extra.disabled = !model.get("extra_enabled");
    status.textContent = model.get("status");
  };
  const drawOffers = () => {
    const offers = model.get("offers").map((label) => {
      const button = element("button", { type: "button", textContent: label });
      button.addEventListener("click", () => send({ event: "offer", label }));
      return button;
    });
    const left = buttons.contains(document.activeElement) && ![action, extra].includes(document.activeElement);
    buttons.replaceChildren(action, extra, ...offers);
    if (left) (extra.hidden || extra.disabled ? action : extra).focus(); // the button that was pressed may be gone
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const entered = new FormData(form);
    send({ event: "submit", values: model.get("fields").map((_, i) => entered.get(`${prefix}-${i}`) ?? "") });
  });
  // Else JupyterLab takes Enter, letters and arrows as shortcuts of its own; those with Ctrl, such as saving, it may have.
  form.addEventListener("keydown", (event) => {
    if (!event.ctrlKey && !event.metaKey) event.stopPropagation();
  });
  extra.addEventListener("click", () => send({ event: "extra" }));
  const refill = () => {
    drawFields();
    fields.querySelector("input")?.focus();
  };
  model.on("change:fields", refill);
  const watched = ["action", "extra", "extra_enabled", "status"].map((name) => `change:${name}`).join(" ");
  model.on(watched, drawButtons);
  model.on("change:offers", drawOffers);
  model.on("change:heard", heard);
  drawFields();
  drawButtons();
  drawOffers();
  el.append(form);
  return () => {
    model.off("change:fields", refill);
    model.off("change:offers", drawOffers);
    model.off(watched, drawButtons);
    model.off("change:heard", heard);
    clearTimeout(patience);
  };
}

export default { render };
