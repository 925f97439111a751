// Keys of the desk. What was typed is saved before a key leads away from it.
const form = document.getElementById("marks");
let dirty = form?.dataset.typed === "yes";
form?.addEventListener("input", () => { dirty = true; });
form?.addEventListener("submit", () => { dirty = false; });
addEventListener("beforeunload", event => { if (dirty) event.preventDefault(); });

const go = then => {
  const place = document.querySelector(`a[data-then="${then}"]`);
  if (form && dirty) {
    form.elements.then.value = then;
    form.requestSubmit();
  } else place?.click();
};

// The queue of a large class, or all its mistakes: only the rows that have what is typed.
const filter = document.getElementById("filter");
filter?.addEventListener("input", () => {
  const words = filter.value.toLowerCase().split(/\s+/);
  for (const row of document.querySelectorAll("tbody tr"))
    row.hidden = !words.every(word => row.textContent.toLowerCase().includes(word));
});

// For who speaks to a computer, or types by accident: single letters can be switched off.
const keys = document.getElementById("keys");
if (keys) keys.checked = localStorage.getItem("keys") === "off";
keys?.addEventListener("change", () => localStorage.setItem("keys", keys.checked ? "off" : "on"));

addEventListener("keydown", event => {
  const typing = event.target.matches("textarea, input:not([type=checkbox])");
  if (event.key === "Escape" && typing) return event.target.blur();
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && form) return go("next");
  if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
  if (localStorage.getItem("keys") === "off") return;
  const acts = {
    j: () => go("after"),
    k: () => go("before"),
    n: () => go("next"),
    c: () => form?.elements.comment.focus(),
    p: () => form?.elements.points.focus(),
    f: () => filter?.focus(),
    g: () => document.getElementById("jump")?.focus(),
    s: () => form?.requestSubmit(),
    u: () => dirty || document.getElementById("undo")?.requestSubmit(),
  };
  const item = document.querySelector(`[data-item="${CSS.escape(event.key)}"]`);
  if (acts[event.key] || item) event.preventDefault();
  if (acts[event.key]) acts[event.key]();
  else item?.click();
});
