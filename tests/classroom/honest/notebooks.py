"""Honest but unusual notebooks: each earns full marks, because a cell means here what it means in
Jupyter. `notes`: words that the student has to be told, as something was not done.

A notebook is the course's four right answers (see hostile/cases.py) with one cell before them, or
with the source of some of their cells replaced.
"""

from cases import ANSWERS, call, code, exercises, notebook, right

NOTEBOOKS = {}
RIDGE = ANSWERS["ridge"].splitlines()
WORD = call("word")


def honest(name, cell="", notes=(), **changed):
    assert name not in NOTEBOOKS, name
    NOTEBOOKS[name] = right(cell, **changed), tuple(notes)


def whole(name, cells, notes=()):
    NOTEBOOKS[name] = notebook(cells), tuple(notes)


# Magics that bind, measure and set.
honest("precision", "%precision 3\n# is this right?\nx = 1 / 3")
honest("time binds", ridge=f"{RIDGE[0]}\n%time {RIDGE[1]}\n{call('ridge')}")
honest("time with a line", ridge=f"%time\n{ANSWERS['ridge']}\n{call('ridge')}")
honest("cell time", ridge=f"%%time\n{ANSWERS['ridge']}\n{call('ridge')}")
honest("cell time after a blank line", ridge=f"\n%%time\n{ANSWERS['ridge']}\n{call('ridge')}")
honest("timeit gives a result", "t = %timeit -o -q -n 2 -r 2 sum(range(9))\nassert t.average > 0")
honest("cell timeit", "%%timeit -n 2 -r 2\nsum(range(9))")
honest("cell capture", word=f'%%capture said\nprint("x")\nanswer = "bandwidth"\n{WORD}')
honest(
    "what was captured",
    "%%capture said\nprint('seen')",
    word=f'answer = "bandwidth" if said.stdout == "seen\\n" else 0\n{WORD}',
)
honest("a magic in a loop", "for n in range(3):\n    %time x = n\nassert x == 2")
honest("a magic in an if", "if True:\n    %matplotlib inline\n    y = 1\nassert y == 1")
honest("a magic in a function", "def f(k):\n    %time z = k + 1\n    return 3\nassert f(2) == 3")
honest("a magic after a semicolon's line", "a = 1;\n%time b = 2;\nassert (a, b) == (1, 2)")
honest("a value in braces", "n = 3\nfor i in range(1):\n    !echo {n} $n {i}")
honest(
    "config of figures",
    "%config InlineBackend.figure_format = 'svg'\n%config InlineBackend.figure_formats = ['retina']",
)
honest("autoreload", "%load_ext autoreload\n%autoreload 2")
honest("who and whos", "%who\n%whos\nnames = %who_ls\nassert 'math' in names")
honest(
    "env and pwd",
    "%env COURSE=yes\nassert os.environ['COURSE'] == 'yes'\nhere = %pwd\nassert here == os.getcwd()",
)
honest("history and reset of prompts", "%history -l 1\n%pprint\n%xmode plain\n%colors nocolor")
honest("cd to a folder", "os.makedirs('mine', exist_ok=True)\n%cd mine\n%cd -q ..")
honest(
    "write a file and run it",
    "open('part.py', 'w').write('seven = 7')\n%run part.py\nassert seven == 7",
)
honest(
    "writefile",
    "%%writefile mine.txt\nwords",
    word=f'answer = "bandwidth" if open("mine.txt").read() == "words\\n" else 0\n{WORD}',
)
honest("prun", "%prun -q sum(range(9))")
honest("alias of the shell", "%sx echo hello\n%system echo hello")
honest("lsmagic and magic help", "%lsmagic\n%time?\n?math\nmath.pi??")
honest("html and javascript cells", "%%html\n<b>bold</b>")
honest("latex", "%%latex\n$a_b$")
honest("javascript", "%%javascript\nconsole.log(1)")
honest("bash", "%%bash\necho $HOME\nls")
honest("a script of python", "%%python\nprint(1)")

# The shell.
honest("a listing", "x = !ls /usr\nassert 'bin' in x and x.n")
honest("a command in a variable", "name = 'usr'\nout = !echo {name}\nassert out[0] == 'usr'")
honest("a command in a loop", "for i in range(2):\n    !echo {i}")
honest("its exit status", "!false\nassert _exit_code == 1")
honest(
    "pip install",
    "!pip install numpy\n%pip install -q scipy\n!python -m pip install --upgrade pip\n!conda install -y x",
    ["install"],
)
honest(
    "system of os",
    "os.system('true')\nimport subprocess\nassert subprocess.run(['echo', 'x'], capture_output=True).stdout == b'x\\n'",
)

# What is not there is told, and the rest of the cell runs.
honest(
    "a magic of an extension",
    "%load_ext memory_profiler\n%memit 1\nk = 3\nassert k == 3",
    ["memit", "load_ext"],
)
honest(
    "a cell magic of an extension",
    ridge=f"%%memit\n{ANSWERS['ridge']}\n{call('ridge')}",
    notes=["memit"],
)
honest(
    "a backend that is not there",
    "%matplotlib widget\n%matplotlib notebook\nj = 1\nassert j == 1",
    ["matplotlib"],
)
honest("input", "name = input('Your name? ')", ["input"])
honest("a password", "import getpass\ngetpass.getpass()", ["input"])

# IPython's own names.
honest(
    "get_ipython",
    "ip = get_ipython()\nip.run_line_magic('precision', '2')\nip.run_cell('w = 5')\nassert w == 5 and ip.user_ns['w'] == 5",
)
honest(
    "is it a notebook?",
    "try:\n    get_ipython\nexcept NameError:\n    raise SystemExit\nassert get_ipython() is not None",
)
honest(
    "display",
    "from IPython.display import HTML, Markdown, Image, clear_output\ndisplay(HTML('<p>'), Markdown('# x'), {'a': 1})\nclear_output(wait=True)\nh = display('x', display_id='one')\nh.update('y')",
)
honest(
    "the last result",
    "40 + 2",
    word=f'answer = "bandwidth" if Out[2] == 42 and "40" in In[2] else 0\n{WORD}',
)
honest(
    "question marks",
    "# is this right?\nx = 1  # surely?\ns = 'what?'\n# !really\n'''\n%not a magic\n!nor this\n'''\nassert s.endswith('?')",
)
honest(
    "percent and exclamation in strings",
    "a = 7\nb = a \\\n  % 4\nt = '''\n%%time\n!ls?'''\nassert b == 3 and t.startswith('\\n%%')",
)
honest("autocall off, trailing semicolon", "sum([1, 2]);\n_x = 3;")
honest("pasted prompts", word=f'>>> answer = "bandwidth"\n>>> {WORD}')
honest("pasted prompts of IPython", word=f'In [3]: answer = "bandwidth"\n   ...: {WORD}')
honest("an indented cell", word=f'    answer = "bandwidth"\n    {WORD}')
honest("exit at the end of a cell", "exit", word=f'answer = "bandwidth"\n{WORD}\nexit()')
honest("a cell of comments", "# nothing\n\n# ?")
honest(
    "shows an error on purpose",
    "try:\n    1 / 0\nexcept ZeroDivisionError:\n    %tb\n    get_ipython().showtraceback()",
)
honest(
    "warnings as errors, and a figure",
    "import warnings\nwarnings.simplefilter('error')\nimport matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()",
)

# Loops of events, processes, threads, time.
honest(
    "await",
    "import asyncio\nasync def f():\n    await asyncio.sleep(0)\n    return 4\nassert await f() == 4",
)
honest(
    "tasks across cells",
    "import asyncio\ntask = asyncio.create_task(asyncio.sleep(0, 'bandwidth'))",
    word=f"answer = await task\n{WORD}",
)
honest(
    "gather and a loop",
    "import asyncio\nloop = asyncio.get_running_loop()\nr = await asyncio.gather(*[asyncio.sleep(0, i) for i in range(3)])\nassert r == [0, 1, 2]",
)
honest(
    "async for and with",
    "import contextlib\n@contextlib.asynccontextmanager\nasync def c(): yield 1\nasync def g():\n    yield 2\nasync with c() as one:\n    async for two in g(): pass\nassert (one, two) == (1, 2)",
)
honest(
    "a function that was awaited for",
    roof="import asyncio\nawait asyncio.sleep(0)\n" + ANSWERS["roof"] + "\n" + call("roof"),
)
honest(
    "a pool of processes",
    "from multiprocessing import Pool\ndef square(x): return x * x\nwith Pool(2) as pool: assert pool.map(square, [1, 2]) == [1, 4]",
)
honest(
    "queues, locks, shared values",
    "from multiprocessing import Process, Queue, Lock, Value, Array\nq, v = Queue(), Value('i', 3)\ndef put(q): q.put(v.value)\np = Process(target=put, args=(q,)); p.start(); assert q.get() == 3; p.join()",
)
honest(
    "shared memory by name",
    "from multiprocessing import shared_memory\nm = shared_memory.SharedMemory(create=True, size=1 << 20)\nm.buf[0] = 7\nm.close(); m.unlink()",
)
honest(
    "threads",
    "from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor(4) as e: assert list(e.map(abs, [-1])) == [1]",
)
honest(
    "an alarm of its own",
    "import signal\nsignal.signal(signal.SIGALRM, lambda *_: None)\nsignal.alarm(5)\nsignal.alarm(0)",
)
honest(
    "a temporary file, mapped",
    "import tempfile, mmap\nwith tempfile.TemporaryFile() as f:\n    f.truncate(1 << 16)\n    with mmap.mmap(f.fileno(), 0) as m: m[0] = 1",
)
honest(
    "a file of numpy, mapped",
    "import numpy as np\na = np.memmap('a.dat', float, 'w+', shape=(100,))\na[:] = 1\na.flush()",
)

# Figures, widgets, packages.
honest(
    "figures",
    "%matplotlib inline\nimport matplotlib.pyplot as plt\nfig, ax = plt.subplots()\nax.plot([1, 2])\nplt.show()\nfig.savefig('f.png')\nfig",
)
honest(
    "widgets",
    "import ipywidgets as w\ns = w.IntSlider(3)\ndisplay(s, w.HBox([s]))\nw.interact(lambda n: n, n=(0, 3));\nassert s.value == 3",
)
honest(
    "an output widget",
    "import ipywidgets as w\no = w.Output()\nwith o: print('x')\n@o.capture()\ndef f(): return 5\nf()",
)
honest(
    "the course's own figures",
    "from lightspeed_course import figure, table, predict, reveal, explorer\nask('roofline.ridge')",
)
honest(
    "random numbers with seeds",
    "import random, numpy as np\nrandom.seed(1); np.random.seed(1)\nnp.random.default_rng(1).random()",
)
honest(
    "dataclasses, typing and pickles",
    "import pickle, dataclasses\n@dataclasses.dataclass\nclass P:\n    x: float = 1.0\nassert pickle.loads(pickle.dumps(P())) == P()",
)
honest(
    "numpy results",
    bytes="import numpy as np\nanswer = np.array([64 * 4096 + 4096 * 16384, 64 * 16384])\n"
    + call("bytes"),
)
honest(
    "where am I run?",
    "assert __name__ == '__main__'\nimport __main__\nassert __main__.math is math\nimport inspect\ndef f(): pass\nassert 'def f' in inspect.getsource(f)",
)
honest("prints a great deal", "for i in range(20000): print(i, 'x' * 50)")
whole(
    "cells in the order of execution counts, empty ones between",
    [c for e in exercises() for c in (code(""), e, code("   \n"))],
)
whole(
    "magics in every cell",
    [
        exercises()[0],
        *(
            code("%precision 3\n# sure?\n" + c["source"] + "\n# done?", c["id"])
            for c in exercises()[1:]
        ),
    ],
)
