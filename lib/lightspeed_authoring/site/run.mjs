// Runs a Python script in Pyodide under Node: node run.mjs LIVE_FOLDER SCRIPT [CELLS]; prints what the script prints, which
// finds the file CELLS as /cells.json.
import {readFileSync} from "node:fs";
import {join} from "node:path";
import {pathToFileURL} from "node:url";
import {gunzipSync} from "node:zlib";

const [live, script, cells] = process.argv.slice(2);
const {loadPyodide} = await import(pathToFileURL(join(live, "pyodide", "pyodide.mjs")));
const library = join(live, "pyodide", "python_stdlib.zip");
const python = await loadPyodide({indexURL: join(live, "pyodide") + "/", stdLibURL: library, env: {LIGHTSPEED_DATA: "/nowhere", HOME: "/"}});
python.unpackArchive(new Uint8Array(gunzipSync(readFileSync(join(live, "course.bin")))), "zip", {extractDir: "/course"});
if (cells) python.FS.writeFile("/cells.json", readFileSync(cells));
python.runPython("import sys; sys.path.insert(0, '/course')");
python.setStdout({batched: (line) => console.log(line)});
try {
  python.runPython(readFileSync(script, "utf-8"));
} catch (error) {
  console.error(error.message); // Node would print the line of Pyodide that threw, which is a megabyte
  process.exit(1);
}
