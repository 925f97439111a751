// Makes what the worker of a page starts from, by the very Python that runs there: node compile.mjs LIVE_FOLDER
//   image.bin               the memory of a Python that has imported what every page needs
//   soon.bin                the list of the course's files, and what pages import next
//   bundles/common.bin      what the questions of several topics open
//   bundles/NAME.bin        what else the explorers of a module open, the questions of a topic, or benches
//   bundles/rest.bin, bundles/tools.bin   all else: what answers take, and what cells of one's own may ask for
//   python_stdlib.zip       fetched when it is read
//   course.bin              the course in one, for where the image does not start
// Python is compiled, with docstrings of the laws alone and with one line number a function: more takes longer to download than it
// tells a reader, who has no source beside it.
import {mkdirSync, readFileSync, rmSync, writeFileSync} from "node:fs";
import {dirname, join} from "node:path";
import {pathToFileURL} from "node:url";
import {gzipSync} from "node:zlib";

const COMPILE = `
import ast, sys, zipfile
from importlib._bootstrap_external import _code_to_hash_pyc

def bare(code):
    "Each instruction on the first line of its function: entries of at most eight, without columns."
    full, rest = divmod(len(code.co_code) // 2, 8)
    lines = b"\\xef\\0" * full + bytes([0xE8 + rest - 1, 0]) * bool(rest)
    parts = (bare(part) if hasattr(part, "co_code") else part for part in code.co_consts)
    return code.replace(co_linetable=lines, co_consts=tuple(parts))

def undocumented(content):
    tree = ast.parse(content)
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module)) and ast.get_docstring(node, False) is not None:
            node.body = node.body[1:] or [ast.copy_location(ast.Pass(), node.body[0])]
    return tree

def compiled(chosen, optimize, level):
    with zipfile.ZipFile("/sources.zip") as given, zipfile.ZipFile("/compiled.zip", "w", level) as made:
        for entry in given.infolist():
            content, name = given.read(entry), entry.filename
            if name.endswith(".py") and chosen(name):
                # Nothing compares it with a source: there is none beside it.
                tree = content if name.startswith("lightspeed/") else undocumented(content)
                code = bare(compile(tree, "/" + name, "exec", dont_inherit=True, optimize=optimize))
                content, name = _code_to_hash_pyc(code, bytes(8), False), name + "c"
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.compress_type = level
            made.writestr(entry, bytes(content))

def loaded():
    "The paths in its archive of what of the standard library is loaded."
    archive = next(path for path in sys.path if path.endswith(".zip")) + "/"
    files = [getattr(module, "__file__", None) or "" for module in list(sys.modules.values())]
    return frozenset(file.removeprefix(archive) for file in files if file.startswith(archive))
`;
const OPEN = "import sys; sys.path.insert(0, '/course'); from lightspeed_course.web import live; live.warm(); del live";
const SOON = /^lightspeed\/(?!config|lookup)[^/]+$|^lightspeed_show\/(explore|formula|page|roof|spaced)\.|^lightspeed_models\/(simulators\/)?__init__|^lightspeed_course\/practice\/parameters/;

// What opening the explorers of each module, and the questions of each topic, reads that is not there yet: name -> files. Each begins
// without the modules, questions and values that another has brought.
const OPENED = `
import functools, gc, importlib, json, pkgutil, sys
from lightspeed_course import explorers
from lightspeed_course.practice import questions
from lightspeed_course.web import live
live.begin(lambda text: None, "[]", lambda rows: None)

def caches():
    return {each for each in gc.get_objects() if isinstance(each, functools._lru_cache_wrapper)}

image = {cached for cached in caches() if cached.cache_info().currsize}
reads = set()
sys.addaudithook(lambda event, values: event == "open" and reads.add(str(values[0])))

def traced(calls):
    questions._registry.clear()
    for cached in caches() - image:
        cached.cache_clear()
    before = set(sys.modules)
    reads.clear()
    for number, call in enumerate(calls()):
        live.hear(json.dumps({"open": f"cell-{number}", "call": call}))
    for name in set(sys.modules) - before:
        del sys.modules[name]
    return sorted(reads)

def explored(name):
    room = importlib.import_module(f"lightspeed_course.explorers.{name}")
    own = [f for f in vars(room) if f.startswith("explore") and vars(room)[f].__module__ == room.__name__]
    return [[f"{name}.{f}"] for f in own]

def asked(topic):
    return [[kind, q.id] for q in questions.bank(topic) for kind in ("ask", "predict", "reveal")]

names = [m.name for m in pkgutil.iter_modules(explorers.__path__)]
rooms = {name: traced(lambda: explored(name)) for name in names}
topics = {f"ask-{topic}": traced(lambda: asked(topic)) for topic in questions._topics()}
benches = {"bench": traced(lambda: [["bench", lesson] for lesson in importlib.import_module("lightspeed_course.practice.bench").BENCHES])}
json.dumps([rooms | benches, topics])
`;

const live = process.argv[2], pyodide = join(live, "pyodide") + "/", library = join(pyodide, "python_stdlib.zip");
const {loadPyodide} = await import(pathToFileURL(join(pyodide, "pyodide.mjs")));
const pressed = (name, content) => writeFileSync(join(live, name), gzipSync(content, {level: 9}));

function python(more) {
  const env = {LIGHTSPEED_DATA: "/progress", HOME: "/home/reader", PYTHONHASHSEED: "0"};
  return loadPyodide({indexURL: pyodide, stdLibURL: library, env, ...more});
}

// The archives, compiled; what is in that of the course, name by name.
async function archives() {
  const first = await python();
  const take = (from, rule) => {
    first.FS.writeFile("/sources.zip", readFileSync(from));
    first.runPython(`compiled(${rule})`);
    return first.FS.readFile("/compiled.zip");
  };
  first.unpackArchive(new Uint8Array(readFileSync(join(live, "course.zip"))), "zip", {extractDir: "/course"});
  first.runPython(OPEN);
  first.runPython(COMPILE);
  writeFileSync(library, take(library, "loaded().__contains__, 2, zipfile.ZIP_DEFLATED"));
  const course = take(join(live, "course.zip"), "lambda name: True, 0, zipfile.ZIP_STORED");
  rmSync(join(live, "course.zip"));
  pressed("course.bin", course);
  const names = first.runPython("with zipfile.ZipFile('/compiled.zip') as made: made.extractall('/made'); names = made.namelist()\nnames").toJs();
  return new Map(names.map((name) => [name, first.FS.readFile(`/made/${name}`)]));
}

// Memory that is free holds what was in it: an image is a third larger with that than without. Blocks of every size are taken up to
// the end of what is in use, and given back blank.
function blank({HEAPU8: heap, ...python}) {
  let end = heap.length;
  while (!heap[end - 1]) end--;
  const sweep = (take, give, sizes) => {
    const taken = [];
    for (const size of sizes) {
      do taken.push(take(size));
      while (taken.at(-1) + size <= end && heap.fill(0, taken.at(-1), taken.at(-1) + size));
    }
    taken.forEach((block) => give(block));
  };
  sweep(python._PyObject_Malloc, python._PyObject_Free, Array.from({length: 32}, (_, k) => 16 * (k + 1)));
  sweep((size) => python._PyMem_RawRealloc(0, size), python._PyMem_RawFree, Array.from({length: 13}, (_, k) => 2 ** (16 - k)));
}

// The memory, less what the module itself brings into it: the worker has that already. Returns the files it was made from.
async function image(files) {
  const instantiate = WebAssembly.instantiate;
  let brought;
  WebAssembly.instantiate = async (binary, imports) => {
    const made = await instantiate(binary, imports);
    brought ??= new Uint8Array(imports.env.memory.buffer.slice(0));
    return made;
  };
  const second = await python({_makeSnapshot: true});
  WebAssembly.instantiate = instantiate;
  for (const [name, content] of files) {
    second.FS.mkdirTree(dirname(`/course/${name}`));
    second.FS.writeFile(`/course/${name}`, content);
  }
  second.runPython(`${OPEN}\nimport gc; gc.collect()`);
  const used = second.runPython("[module.__file__ for module in sys.modules.values() if getattr(module, '__file__', None)]").toJs();
  blank(second._module);
  const taken = second.makeMemorySnapshot(), memory = taken.subarray(taken.length - second._module.HEAPU8.length);
  for (let k = 0; k < brought.length; k++) memory[k] ^= brought[k];
  pressed("image.bin", taken);
  const inside = (paths) => new Set(paths.map((path) => path.replace(/^\/course\//, "")).filter((path) => files.has(path)));
  const opened = JSON.parse(second.runPython(OPENED)).map((some) => Object.entries(some).map(([name, paths]) => [name, inside(paths)]));
  return {used: inside(used), opened};
}

// Some files in one: the list of what is inside, with what else the list says, then their contents.
function bundle(name, files, inside, more = {}) {
  const list = {...more, inside: inside.map((path) => [path, files.get(path).length])};
  const head = Buffer.from(JSON.stringify(list)), size = Buffer.alloc(4);
  size.writeUInt32LE(head.length);
  pressed(name, Buffer.concat([size, head, ...inside.map((path) => files.get(path))]));
}

try {
  const files = await archives(), {used, opened: [rooms, topics]} = await image(files);
  const left = [...files.keys()].filter((name) => !used.has(name)), soon = left.filter((name) => SOON.test(name));
  bundle("soon.bin", files, soon, {library: readFileSync(library).length, files: [...files].map(([name, content]) => [name, content.length])});
  const later = left.filter((name) => !SOON.test(name)), tools = (name) => /^lightspeed_tools\/|_delivered|^mdit_py_plugins\//.test(name);
  mkdirSync(join(live, "bundles"));
  const common = new Set(later.filter((name) => topics.filter(([, names]) => names.has(name)).length >= 4));
  bundle("bundles/common.bin", files, [...common]);
  for (const [own, names] of [...rooms, ...topics]) bundle(`bundles/${own}.bin`, files, later.filter((name) => names.has(name) && !common.has(name)));
  bundle("bundles/rest.bin", files, later.filter((name) => !tools(name) && !common.has(name)));
  bundle("bundles/tools.bin", files, later.filter(tools));
} catch (error) {
  console.error(error.message); // Node would print the line of Pyodide that threw, which is a megabyte
  process.exit(1);
}
process.exit(0);
