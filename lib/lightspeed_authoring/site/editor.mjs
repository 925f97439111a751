// The editor of code cells, which esbuild bundles into editor.js: CodeMirror over a field that stays what the page reads and keeps.
import {closeBrackets, closeBracketsKeymap} from "@codemirror/autocomplete";
import {defaultKeymap, history, historyKeymap, indentWithTab} from "@codemirror/commands";
import {python} from "@codemirror/lang-python";
import {bracketMatching, indentOnInput, indentUnit, syntaxHighlighting} from "@codemirror/language";
import {EditorState} from "@codemirror/state";
import {drawSelection, EditorView, keymap, lineNumbers} from "@codemirror/view";
import {tagHighlighter, tags} from "@lezer/highlight";

// The classes of Pygments, so that code has the colours of the page, light and dark.
const COLORS = tagHighlighter([
  {tag: [tags.keyword, tags.modifier], class: "k"},
  {tag: [tags.bool, tags.null], class: "kc"},
  {tag: [tags.string, tags.special(tags.string)], class: "s1"},
  {tag: tags.comment, class: "c1"},
  {tag: tags.number, class: "mi"},
  {tag: tags.operator, class: "o"},
  {tag: tags.function(tags.definition(tags.variableName)), class: "nf"},
  {tag: tags.definition(tags.className), class: "nc"},
  {tag: tags.punctuation, class: "p"},
]);

// In place of `field`, whose value follows what is typed. Ctrl-Enter calls `run`. Tab indents; after Esc it leaves the editor.
export function edit(field, label, run) {
  const known = () => view.state.doc.toString() === field.value;
  const tell = EditorView.updateListener.of(({docChanged}) => {
    if (!docChanged || known()) return;
    field.value = view.state.doc.toString();
    field.dispatchEvent(new Event("input"));
  });
  const view = new EditorView({
    doc: field.value,
    selection: {anchor: field.selectionStart, head: field.selectionEnd},
    extensions: [
      keymap.of([{key: "Mod-Enter", run: () => (run(), true)}]),
      keymap.of([...closeBracketsKeymap, indentWithTab, ...historyKeymap, ...defaultKeymap]),
      lineNumbers(), history(), drawSelection(), indentOnInput(), bracketMatching(), closeBrackets(), python(),
      indentUnit.of("    "), EditorState.tabSize.of(4), syntaxHighlighting(COLORS), tell,
      EditorView.editorAttributes.of({class: "highlight"}), // under which the page has its colours
      EditorView.contentAttributes.of({"aria-labelledby": label.id, "aria-describedby": `${label.id}-keys`}),
    ],
  });
  view.dom.addEventListener("keydown", (event) => event.stopPropagation()); // the theme's keys, such as / for the search, are code here
  field.before(view.dom);
  const focused = document.activeElement === field;
  field.hidden = true;
  if (focused) view.focus();
  return {
    focus: () => view.focus(),
    refresh: () => known() || view.dispatch({changes: {from: 0, to: view.state.doc.length, insert: field.value}}),
  };
}
