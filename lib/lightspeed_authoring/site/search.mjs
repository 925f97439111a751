// The page of search.html: MiniSearch over sections.json, which esbuild bundles with this into search.js.
import MiniSearch from "minisearch";

const WEIGHTS = {lesson: 1, glossary: 0.3, docs: 0.4, exercises: 0.3, proof: 0.3}; // prose before proof
const SMALL = new Set("a an and are at be by can do does for how i in is it many much my of on or the to what when which why with".split(" "));
const LEAST = 3, MOST = 30, AROUND = 110; // letters of a word that a longer one may begin with; hits; letters before a word in its excerpt
const results = document.querySelector("#search-results");

const bare = (word) => word.toLowerCase().replace(/(?<=[a-z]{3})(?<!s|u|i)s$/, ""); // a plural is found by its singular
const plain = (words) => words.toLowerCase().split(/[\s\p{P}]+/u).filter(Boolean).map(bare).join(" ");

function element(tag, className, content = "") {
  const node = document.createElement(tag);
  node.className = className;
  node.textContent = content;
  return node;
}

// The prose around the first of the words that a hit was found by, with each of them marked.
function excerpt({text, terms}) {
  const words = text.split(/(?<=[\s\p{P}])|(?=[\s\p{P}])/u), matches = (word) => terms.includes(bare(word));
  const before = words.slice(0, Math.max(0, words.findIndex(matches))).join("").length, cut = Math.max(0, before - AROUND);
  const node = element("p", "sol-excerpt", cut ? "… " : "");
  let at = 0;
  for (const word of words) {
    if (at >= cut && at < cut + 3 * AROUND) node.append(matches(word) ? element("mark", "", word) : word);
    at += word.length;
  }
  if (at > cut + 3 * AROUND) node.append(" …");
  return node;
}

function hit({url, title, page, kind, text, terms}) {
  const item = element("li", ""), link = element("a", "", title), place = kind === "glossary" ? "Glossary" : title === page ? kind : `${page} · ${kind}`;
  link.href = url;
  item.append(link, element("span", "sol-place", place));
  if (text) item.append(excerpt({text, terms}));
  return item;
}

// Sections that teach what has exactly this name come first, then its row of the glossary.
function find(index, query) {
  const options = {boost: {title: 3, names: 4}, prefix: (word) => word.length >= LEAST, fuzzy: (word) => (word.length > 5 ? 0.2 : 0), boostDocument: (_, __, {kind}) => WEIGHTS[kind]};
  const both = index.search(query, {...options, combineWith: "AND"}), hits = both.length ? both : index.search(query, options);
  const place = ({terms, kind}) => (!terms.some((term) => plain(term) === plain(query)) ? 2 : kind === "glossary" ? 1 : 0);
  return hits.sort((one, other) => place(one) - place(other));
}

async function show(query) {
  const sections = await (await fetch("sections.json")).json();
  const index = new MiniSearch({
    fields: ["title", "names", "text"], idField: "url", processTerm: (word) => !SMALL.has(word.toLowerCase()) && bare(word),
    storeFields: ["terms", "kind"], extractField: (each, name) => (name === "names" ? each.terms.join(", ") : each[name]),
  });
  index.addAll(sections);
  const by = new Map(sections.map((each) => [each.url, each])), hits = find(index, query), list = element("ol", "sol-hits");
  for (const {id, match} of hits.slice(0, MOST)) list.append(hit({...by.get(id), terms: Object.keys(match)}));
  const count = hits.length === 1 ? "One section" : hits.length > MOST ? `The first ${MOST} of ${hits.length} sections` : `${hits.length} sections`;
  results.replaceChildren(element("p", "", hits.length ? `${count} for “${query}”.` : `Nothing here has “${query}”. Try one word of it.`), list);
}

const query = new URLSearchParams(location.search).get("q")?.trim();
for (const field of document.querySelectorAll("input[name=q]")) field.value = query ?? "";
if (query) show(query).catch(() => results.replaceChildren(element("p", "", "The list of sections did not come. Try again when the network is back.")));
