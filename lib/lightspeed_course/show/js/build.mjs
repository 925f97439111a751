// Writes ../view.js, ../view.css and ../view.js.LICENSES.txt. The first line of view.js names what went in, so that a test without Node
// sees a stale bundle.
import {createHash} from "node:crypto";
import {copyFileSync, existsSync, readFileSync, writeFileSync} from "node:fs";
import {build} from "esbuild";

const hash = createHash("sha256");
for (const name of ["draw.js", "package-lock.json", "view.css", "view.js"]) hash.update(readFileSync(name));
const {metafile} = await build({
  entryPoints: ["view.js"], outfile: "../view.js", bundle: true, minify: true, format: "esm", target: "es2022", legalComments: "none", metafile: true,
  banner: {js: `// Built from lib/lightspeed_course/show/js; holds the packages named in view.js.LICENSES.txt. sources: ${hash.digest("hex")}`}
});
copyFileSync("view.css", "../view.css");

const packages = [...new Set(Object.keys(metafile.inputs).map((path) => path.match(/^node_modules\/((?:@[^/]+\/)?[^/]+)/)?.[1]).filter(Boolean))].sort();
const byLicence = new Map();
for (const name of packages) {
  const file = ["LICENSE", "LICENSE.md", "LICENSE.txt"].map((end) => `node_modules/${name}/${end}`).find(existsSync);
  if (!file) throw new Error(`${name} comes without a licence text`);
  const text = readFileSync(file, "utf8").trim();
  byLicence.set(text, [...(byLicence.get(text) ?? []), name]);
}
writeFileSync("../view.js.LICENSES.txt", [...byLicence].map(([text, names]) => `${names.join(", ")}\n\n${text}\n`).join(`\n${"-".repeat(80)}\n\n`));
