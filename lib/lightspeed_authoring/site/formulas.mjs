// Formulas of finished pages, set at build time: node formulas.mjs KATEX_FOLDER FILE...
// What stands in <span class="sol-math">$...$</span> becomes KaTeX's HTML with MathML beside it.
import {readFileSync, writeFileSync} from "node:fs";
import {pathToFileURL} from "node:url";
import {join} from "node:path";

const [folder, ...files] = process.argv.slice(2);
const {default: katex} = await import(pathToFileURL(join(folder, "dist", "katex.mjs")));
const plain = (text) => text.replace(/&(lt|gt|quot|#x27|#39|#10|amp);/g, (_, name) =>
  ({lt: "<", gt: ">", quot: '"', "#x27": "'", "#39": "'", "#10": "\n", amp: "&"}[name]));
let failed = 0;
for (const file of files) {
  const page = readFileSync(file, "utf-8");
  const set = page.replace(/<span class=["']sol-math["']>(\$\$?)([\s\S]*?)\1<\/span>/g, (_, mark, formula) => {
    try {
      return katex.renderToString(plain(formula).trim(), {displayMode: mark === "$$", strict: "error", throwOnError: true});
    } catch (error) {
      failed += 1;
      console.error(`${file}: ${error.message}`);
      return `<code>${formula}</code>`;
    }
  });
  if (set !== page) writeFileSync(file, set);
}
process.exit(failed ? 1 : 0);
