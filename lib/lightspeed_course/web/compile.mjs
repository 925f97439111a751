// Compiles the Python of a page by the very Python that runs it, and presses it: node compile.mjs LIVE_FOLDER
// A page that compiles its modules itself comes alive later. Of the standard library that is what a page loads at once, without
// docstrings, for compiled code takes more to download. An archive is pressed as a whole, so that its many small files share words.
import {readFileSync, rmSync, writeFileSync} from "node:fs";
import {join} from "node:path";
import {pathToFileURL} from "node:url";
import {gzipSync} from "node:zlib";

const OPEN = "import sys; sys.path.insert(0, '/course'); from lightspeed_course.web import live; live.warm()";
const COMPILE = `
import sys, zipfile
from importlib._bootstrap_external import _code_to_hash_pyc

def compiled(chosen, optimize):
    with zipfile.ZipFile("/sources.zip") as given, zipfile.ZipFile("/compiled.zip", "w") as made:
        for entry in given.infolist():
            content, name = given.read(entry), entry.filename
            if name.endswith(".py") and chosen(name):
                # Nothing compares it with a source: there is none beside it.
                code = compile(content, "/" + name, "exec", dont_inherit=True, optimize=optimize)
                content, name = _code_to_hash_pyc(code, bytes(8), False), name + "c"
            made.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), bytes(content))

def loaded():
    "The paths in its archive of what of the standard library is loaded."
    archive = next(path for path in sys.path if path.endswith(".zip")) + "/"
    files = [getattr(module, "__file__", None) or "" for module in list(sys.modules.values())]
    return frozenset(file.removeprefix(archive) for file in files if file.startswith(archive))
`;

const live = process.argv[2], pyodide = join(live, "pyodide");
const archives = [[join(pyodide, "python_stdlib"), "loaded().__contains__, 2"], [join(live, "course"), "lambda name: True, 0"]];
const {loadPyodide} = await import(pathToFileURL(join(pyodide, "pyodide.mjs")));
const python = await loadPyodide({indexURL: pyodide + "/", env: {LIGHTSPEED_DATA: "/nowhere", HOME: "/"}});
try {
  python.unpackArchive(new Uint8Array(readFileSync(join(live, "course.zip"))), "zip", {extractDir: "/course"});
  python.runPython(OPEN);
  python.runPython(COMPILE);
  for (const [archive, rule] of archives) {
    python.FS.writeFile("/sources.zip", readFileSync(archive + ".zip"));
    python.runPython(`compiled(${rule})`);
    writeFileSync(archive + ".bin", gzipSync(python.FS.readFile("/compiled.zip"), {level: 9}));
    rmSync(archive + ".zip");
  }
} catch (error) {
  console.error(error.message); // Node would print the line of Pyodide that threw, which is a megabyte
  process.exit(1);
}
