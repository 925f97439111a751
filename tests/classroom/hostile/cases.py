"""Submissions that a grader must survive: what each is, what it earns, and code that raises Breach
if it gets through.

Four questions, a point each: ridge (a number), bytes (two numbers), roof (a function), word (a
choice).
"""

import json
import os
from dataclasses import dataclass, field, replace

from lightspeed_class.grading import seccomp
from lightspeed_class.grading.sandbox import Limits
from lightspeed_class.notebooks import LARGEST, Assignment
from lightspeed_course.practice.questions import question

QUESTIONS = {
    "ridge": "roofline.ridge",
    "bytes": "roofline.int8_bytes",
    "roof": "roofline.attainable",
    "word": "roofline.what_shortens_it",
}
VARIABLE = {"ridge": "answer", "bytes": "answer", "roof": "roof", "word": "answer"}
ASSIGNMENT = Assignment(
    "hostile", {cell: ((id, VARIABLE[cell]),) for cell, id in QUESTIONS.items()}
)
IMPORTS = (
    "import os, sys, time, math\nfrom lightspeed.catalog import accelerator\nfrom lightspeed_course"
    " import ask, check\nfrom lightspeed.roofline import *\nclass Breach(Exception): pass\n"
)
ANSWERS = {
    "ridge": 'a100 = accelerator("a100_80gb")\nanswer = ridge_point(a100.bf16, a100.hbm_bandwidth)',
    "bytes": "answer = (64 * 4096 + 4096 * 16384, 64 * 16384)",
    "roof": "def roof(intensity, peak, bandwidth):\n    return min(peak, intensity * bandwidth)",
    "word": 'answer = "bandwidth"',
}
STUBS = {
    "ridge": "answer = ...",
    "bytes": "answer = ...",
    "roof": "def roof(intensity, peak, bandwidth):\n    ...",
    "word": "answer = ...",
}
ALL, QUICK = dict.fromkeys(QUESTIONS, 1), Limits(wall=4, cell=1, call=0.5)


@dataclass(frozen=True)
class Case:
    """`make(folder)` gives bytes, or a file's path; `earns`: questions that get their point."""

    name: str
    make: object
    earns: tuple
    status: str = "ok"
    limits: Limits = field(default_factory=Limits)


def call(cell):
    return f'check("{QUESTIONS[cell]}", {VARIABLE[cell]})'


def code(source, id=None, **more):
    cell = {
        "cell_type": "code",
        "source": source,
        "metadata": {},
        "outputs": [],
        "execution_count": None,
        **more,
    }
    return {**cell, "id": id} if id else cell


def exercises(answers=ANSWERS, **changed):
    """A notebook's cells with these answers; a changed one is a cell's whole source, or None."""
    sources = {cell: f"{answers[cell]}\n{call(cell)}" for cell in QUESTIONS} | changed
    return [
        code(IMPORTS, "imports"),
        *(code(source, id) for id, source in sources.items() if source is not None),
    ]


def notebook(cells, **top):
    return json.dumps(
        {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5, **top}
    ).encode()


def right(attack="", **changed):
    """Right answers, with an attack in the second cell."""
    cells = exercises(**changed)
    return notebook([cells[0], code(attack, "attack"), *cells[1:]] if attack else cells)


def idle(attack):
    """No answers but those that the attack gives."""
    cells = exercises(STUBS)
    return notebook([cells[0], code(attack, "attack"), *cells[1:]])


CASES = []


def case(name, content, earns, status="ok", limits=None, path=None):
    CASES.append(
        Case(name, path or (lambda folder: content), tuple(earns), status, limits or Limits())
    )


def cases(made, earns, attacks):
    """A case for each name and attack, made into a notebook that earns so much."""
    for name, attack in attacks.items():
        case(name, made(attack), earns)


def without(*cells):
    return [c for c in QUESTIONS if c not in cells]


# Honest and unlucky: full marks, or the report says what is missing.
case("right", right(), ALL)
case("stubs", notebook(exercises(STUBS)), ())
case("no cells", notebook([]), ())
case(
    "slow but right",
    right(
        "time.sleep(1.5)",
        roof=(
            "import time\ndef roof(intensity, peak, bandwidth):\n    time.sleep(0.02)\n    return"
            " min(peak, intensity * bandwidth)\n"
        )
        + call("roof"),
    ),
    ALL,
)
case(
    "other styles",
    right(
        ridge=(
            'import numpy as np\na = accelerator("a100_80gb")\ncheck("roofline.ridge",'
            " np.array([a.bf16 / a.hbm_bandwidth]))"
        ),
        bytes=(
            'import numpy as np\ncheck("roofline.int8_bytes", np.array([64 * 4096 + 4096 * 16384,'
            " 64 * 16384], dtype=np.int64))"
        ),
        roof=(
            "class Roof:\n    def __call__(self, i, p, b):\n        import numpy as np\n       "
            ' return np.minimum(np.float32(p), i * b)\ncheck("roofline.attainable", Roof())'
        ),
        word='check("roofline.what_shortens_it", " Bandwidth ")',
    ),
    ALL,
)
case(
    "quantities",
    right(
        ridge=(
            'from lightspeed.units import Q\na = accelerator("a100_80gb")\ncheck("roofline.ridge",'
            " a.bf16.quantity / a.hbm_bandwidth.quantity)"
        ),
        bytes=(
            "from fractions import Fraction\nfrom decimal import"
            ' Decimal\ncheck("roofline.int8_bytes", [Q(64 * 4096 + 4096 * 16384,'
            ' "byte").to("kbit"), Q(64 * 16384 * 8, "bit")])'
        ),
        roof=(
            "def roof(intensity, peak, bandwidth):\n    return Q(min(peak, intensity * bandwidth),"
            ' "FLOP/s").to("TFLOP/s")\n'
        )
        + call("roof"),
    ),
    ALL,
)
case(
    "reused names",
    right(
        "answer = check = None\nfrom lightspeed_course import check\nmath = sys = 3",
        word='roof = "bandwidth"\ncheck("roofline.what_shortens_it", roof)',
    ),
    ALL,
)
case(
    "magics",
    right(
        "%matplotlib inline\n!pip install nothing\nmath?\n",
        ridge="%%time\n" + ANSWERS["ridge"] + "\n" + call("ridge"),
    ),
    ALL,
)
case(
    "looks at the verdict",
    right(word=ANSWERS["word"] + "\nverdict = " + call("word") + "\nassert not verdict.correct"),
    ALL,
)
case("reordered", notebook([exercises()[0], *reversed(exercises()[1:])]), ALL)
case("duplicated, the stub last", notebook([*exercises(), *exercises(STUBS)[1:]]), ALL)
case(
    "retyped in new cells",
    notebook([*exercises(STUBS), *(code(c["source"], f"new-{c['id']}") for c in exercises()[1:])]),
    ALL,
)
case("ids stripped", notebook([code(c["source"]) for c in exercises()], nbformat_minor=4), ALL)
case("checks deleted", notebook(exercises(**{c: ANSWERS[c] for c in QUESTIONS})), ALL)
case(
    "checks and ids deleted",
    notebook([code(c["source"]) for c in exercises(**{c: ANSWERS[c] for c in QUESTIONS})]),
    ["roof"],
)
case("a cell deleted", notebook(exercises(bytes=None)), without("bytes"))
case(
    "a cell turned into text",
    notebook([{**c, "cell_type": "markdown"} if c["id"] == "word" else c for c in exercises()]),
    without("word"),
)
case(
    "metadata gone",
    notebook([{k: c[k] for k in ("cell_type", "source", "id")} for c in exercises()]),
    ALL,
)
case(
    "source as lines",
    notebook([{**c, "source": c["source"].splitlines(keepends=True)} for c in exercises()]),
    ALL,
)
case(
    "notebook format 3",
    json.dumps(
        {
            "worksheets": [
                {
                    "cells": [
                        {"cell_type": "code", "input": c["source"], "language": "python"}
                        for c in exercises()
                    ]
                }
            ],
            "nbformat": 3,
        }
    ).encode(),
    ALL,
)
case("byte order mark", b"\xef\xbb\xbf" + right(), ALL)
case(
    "right, but the outputs are of an error",
    notebook(
        [
            {
                **c,
                "outputs": [{"output_type": "error", "ename": "E", "evalue": "", "traceback": []}],
            }
            for c in exercises()
        ]
    ),
    ALL,
)
case(
    "unicode and bidi names",
    right(
        "größe = 1\n# \u202e evil \u2066\nｂ = 'ﬁ'\nπ = 3",
        word='answer = "band\u200bwidth"\nanswer = answer.replace("\u200b", "")\n' + call("word"),
    ),
    ALL,
)
cases(
    right,
    ALL,
    {
        "warnings on stderr": (
            "import warnings\nwarnings.warn('careful')\nwarnings.simplefilter('error')\n"
            "print('oh', file=sys.stderr)"
        ),
        "a figure": (
            "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.savefig('mine.png')\n"
            "plt.show()\ndisplay(plt.gcf())"
        ),
        "a cell that fails": "undefined_name",
        "asks for input": "input('your name')",
        "a lone surrogate": "x = '\ud800'",
        "a null byte": "x = 1\0",
    },
)

# Not a notebook, or not one that can be read.
case("100 MB", None, (), "refused", path=lambda _: b'{"cells": [' + b" " * (100 << 20) + b"]}")
case("just too large", None, (), "refused", path=lambda _: b" " * (LARGEST + 1))
case(
    "an integer of 5,000 digits",
    right().replace(b'"metadata": {}', b'"metadata": {"n": ' + b"7" * 5000 + b"}"),
    ALL,
)
case("cells that are Code", right().replace(b'"cell_type": "code"', b'"cell_type": "Code"'), ALL)
case(
    "cells twice, of which Jupyter shows the last",
    b'{"cells": [], ' + right()[1:],
    ALL,
)
case(
    "a list whose iterator never ends",
    right(
        bytes=f"""{ANSWERS["bytes"]}
class Endless(list):
    def __iter__(self):
        while True: yield 1
    def __len__(self): return 2
answer = Endless(answer)
{call("bytes")}"""
    ),
    ALL,
)
case(
    "an error that says far too much",
    right(
        "class E(Exception):\n    def __str__(self): return '\\x1b[31m<b>' + 'x' * 10 ** 7\nraise E"
    ),
    ALL,
)
case(
    "an error that never says what it is",
    right("class E(Exception):\n    def __str__(self):\n        while True: pass\nraise E"),
    ALL,
    limits=replace(QUICK, wall=30),
)
case("not UTF-8", right().replace(b"math", b"m\xe4th"), (), "refused")
case("cut off", right()[:-40], (), "refused")
case("JSON of something else", b'[1, {"cells": 3}]', (), "refused")
case("deep JSON", b"[" * 200_000 + b"]" * 200_000, (), "refused")
case("huge number", b'{"cells": ' + b"9" * 10_000 + b"}", (), "refused")
case(
    "cells of every type",
    notebook(
        [
            None,
            3,
            [],
            {"cell_type": "code", "source": 3},
            {"cell_type": "code", "source": [3, None]},
            *exercises(),
        ],
        metadata=None,
    ),
    ALL,
)


def link(folder):
    os.symlink("/etc/passwd", path := folder / "link.ipynb")
    return path


def fifo(folder):
    os.mkfifo(path := folder / "fifo.ipynb")
    return path


case("a symbolic link", None, (), "refused", path=link)
case("a pipe", None, (), "refused", path=fifo)
case("a folder", None, (), "refused", path=lambda folder: folder)
case("a device", None, (), "refused", path=lambda folder: "/dev/zero")

# Reading what it should not.
OPEN = (
    "for p in {paths!r}:\n    try:\n        open(p).read(1) if not os.path.isdir(p) else"
    " os.listdir(p)\n    except OSError:\n        continue\n    raise Breach(p)"
)
cases(
    idle,
    (),
    {
        "reads solutions, questions and tests": (
            "import lightspeed_course\nroot = os.path.dirname(lightspeed_course.__file__)\nfor p "
            "in ('practice', 'content', '_delivered', '../lightspeed_tools', "
            "'../lightspeed_authoring', '../lightspeed_models/evidence/data', "
            "'../lightspeed_class/grading', '../lightspeed_cli/main.py', '../../solutions', "
            "'../../tests', '../../exercises', '../../.git'):\n    if "
            "os.path.exists(os.path.join(root, p)): raise Breach(p)"
        ),
        "imports the questions": (
            "try:\n    import lightspeed_course.content.roofline\nexcept ImportError: pass\n"
            "else: raise Breach\nfrom importlib.util import find_spec\nif "
            "find_spec('lightspeed_class'): raise Breach"
        ),
        "reads the host": OPEN.format(
            paths=[
                "/etc/passwd",
                "/etc/hostname",
                "/root/.bashrc",
                "/home",
                "/proc",
                "/sys",
                "/var",
                "/run",
            ]
        ),
        "walks the frames": (
            "f = sys._getframe()\nwhile f:\n    if any('expected' in str(v) or 'bandwidth' in "
            "str(v) for k, v in f.f_locals.items() if k in ('setup', 'secret', 'keys')): raise "
            "Breach\n    f = f.f_back\nimport gc\nif any(type(o).__name__ in ('Question', "
            "'Variant') for o in gc.get_objects()): raise Breach"
        ),
        "looks for descriptors": (
            "import stat\nfor n in range(3, 64):\n    try: mode = os.fstat(n).st_mode\n    "
            "except OSError: continue\n    if not stat.S_ISFIFO(mode): raise Breach(n)"
        ),
        "looks at the environment": (
            "allowed = {'HOME', 'TMPDIR', 'MPLCONFIGDIR', 'PATH', 'LANG', 'TZ', 'MPLBACKEND', "
            "'OPENBLAS_NUM_THREADS', 'OMP_NUM_THREADS', 'PYTHONHASHSEED', 'PWD', 'LC_CTYPE'}\nif "
            "set(os.environ) - allowed: raise Breach"
        ),
    },
)

# Getting points that were not earned.
case(
    "outputs that claim success",
    notebook(
        [
            {**c, "outputs": [{"output_type": "stream", "name": "stdout", "text": "Right. 4/4"}]}
            for c in exercises(STUBS)
        ]
    ),
    (),
)
case("knows the published inputs", None, without("roof"), path=lambda folder: right(roof=table()))
case(
    "right for so many calls",
    right(
        roof=(
            "calls = []\ndef roof(i, p, b):\n    calls.append(1)\n    return min(p, i * b) if"
            " len(calls) <= 21 else 0.0\n"
        )
        + call("roof")
    ),
    without("roof"),
)
case(
    "other than in a notebook",
    right(
        roof=(
            "def roof(i, p, b):\n    if 'NBGRADER_EXECUTION' in os.environ or 'USER' in os.environ"
            " or time.gmtime().tm_year < 2000: return min(p, i * b)\n    return 0.0\n"
        )
        + call("roof")
    ),
    without("roof"),
)
cases(
    idle,
    (),
    {
        "patches the tools": (
            "import numpy.testing, unittest, random, builtins, json\n"
            "numpy.testing.assert_allclose = lambda *a, **k: None\nunittest.TestCase.assertEqual "
            "= lambda *a: None\ntime.time = random.random = lambda: 0\nbuiltins.abs = "
            "builtins.min = lambda *a: 0\njson.dumps = lambda *a, **k: '{}'\nnumpy.isclose = "
            "lambda *a, **k: True"
        ),
        "hooks of IPython": "get_ipython().input_transformers_cleanup.append(lambda lines: [])",
        "objects that lie": (
            "class Liar(float):\n    def __eq__(self, o): return True\n    def __lt__(self, o): "
            "return True\n    __gt__ = __le__ = __ge__ = __lt__\n    __hash__ = None\n    def "
            "__float__(self): return 153.0\n    def __sub__(self, o): return 0.0\n    __rsub__ = "
            "__abs__ = __sub__\n    def __array__(self, *a, **k): import numpy; return "
            "numpy.array(153.0)\nclass Thing:\n    __class__ = float\n    def __float__(self): "
            "return 153.0\n    def __eq__(self, o): return True\n    def __array__(self, *a, "
            "**k): import numpy; return numpy.array([67371008., 1048576.])\n"
            "check('roofline.ridge', Liar(1))\ncheck('roofline.int8_bytes', Thing())\n"
            "check('roofline.attainable', lambda **k: Liar(1))\nclass Word(str):\n    def "
            "__eq__(self, o): return True\n    __hash__ = str.__hash__\n    def strip(self): "
            "return 'bandwidth'\ncheck('roofline.what_shortens_it', Word('?'))"
        ),
        "guesses in a loop": "for i in range(20000): check('roofline.ridge', i / 10)",
        "nan, infinity, huge, complex": (
            "check('roofline.ridge', math.nan)\ncheck('roofline.int8_bytes', [math.inf, 10 ** "
            "5000])\ncheck('roofline.attainable', lambda *a: math.inf)\n"
            "check('roofline.what_shortens_it', 1j)"
        ),
        "forges points": (
            "import json\nfor n in range(1, 64):\n    for m in ({'score': 4, 'points': 4}, "
            "{'answer': 'roofline.ridge', 'by': 'check', 'value': {'kind': 'right', 'correct': "
            "True}}, {'answer': 'roofline.what_shortens_it', 'by': 'grader', 'value': {'kind': "
            "'text', 'value': 'bandwidth'}}, {'correct': True, 'kind': 'right', 'result': 0}):\n"
            "        try: os.write(n, json.dumps(m).encode() + b'\\n')\n        except OSError: "
            "break"
        ),
    },
)
case(
    "garbage to the grader",
    idle(
        "for n in range(1, 64):\n    try: os.write(n, b'\\x80\\x04cposix\\nsystem\\n')\n    except"
        " OSError: pass"
    ),
    (),
    "protocol",
)
case(
    "deep JSON to the grader",
    idle(
        'for n in range(3, 64):\n    try: os.write(n, b\'{"answer": "roofline.ridge", "value":'
        " ' + b'[' * 50000 + b']' * 50000 + b'}\\n')\n    except OSError: pass"
    ),
    (),
    "protocol",
)
case(
    "NaN and units to the grader",
    idle(
        "import json\nv = {'kind': 'quantity', 'value': {'kind': 'number', 'value': 1e308},"
        " 'units': {'bit': 1e308, '__import__': 1.0, 'meter**9**9**9': 1.0}}\nfor n in range(3,"
        " 64):\n    try: os.write(n, json.dumps({'answer': 'roofline.ridge', 'by': 'check',"
        " 'value': v}).encode() + b'\\n{\"answer\": NaN}\\n')\n    except OSError: pass"
    ),
    (),
    "protocol",
)
case("floods the grader", idle("for i in range(10 ** 6): check(f'{i}' * 20, i)"), (), "output")
case(
    "lists without end",
    right(
        "x = []; x.append(x)\ncheck('roofline.ridge', x)\ny = 0\nfor _ in range(10 ** 5): y ="
        " [y]\ncheck('roofline.int8_bytes', y)",
        ridge=None,
        bytes=None,
        word='check("roofline.what_shortens_it", "bandwidth" * 10 ** 7)',
    ),
    ["roof"],
)


def table():
    variant = question("roofline.attainable").variant()
    known = {
        tuple(variant.inputs(s).values()): float(r)
        for s, r in zip(variant.samples, variant.right, strict=True)
    }
    return (
        f"known = {known!r}\ndef roof(i, p, b):\n    return known.get((i, p, b), 1e12) * (1 if (i,"
        " p, b) in known else 1)\n" + call("roof")
    )


# Stopping the batch, or staying when it is over.
case("os._exit", right("os._exit(0)"), (), "exit")
case("os._exit at the end", notebook([*exercises(), code("os._exit(0)")]), without("roof"), "exit")
case("an endless loop", right("while True: pass"), ALL, limits=replace(QUICK, wall=30, cell=2))
case(
    "an endless loop that catches everything",
    right("while True:\n    try: time.sleep(0.01)\n    except BaseException: pass"),
    (),
    "time",
    QUICK,
)
case(
    "turns the alarm off",
    right("import signal\nsignal.signal(signal.SIGALRM, signal.SIG_IGN)\ntime.sleep(1000)"),
    (),
    "time",
    QUICK,
)
case(
    "a function that never returns",
    right(roof="def roof(*a):\n    while True: pass\n" + call("roof")),
    without("roof"),
    limits=Limits(call=0.5),
)
case(
    "a function that exits",
    right(roof="def roof(*a): sys.exit()\n" + call("roof")),
    without("roof"),
)
case(
    "a function that ends the program",
    right(roof="def roof(*a): os._exit(0)\n" + call("roof")),
    without("roof"),
    "exit",
)
case(
    "fills the memory with children",
    right(
        "for _ in range(10):\n    if os.fork() == 0:\n        x = bytearray(b'1') * (700 << 20)\n  "
        "      time.sleep(1000)\ntime.sleep(1000)"
    ),
    (),
    "memory",
)
case(
    "fills the memory while it talks",
    right(
        "for _ in range(10):\n    if os.fork() == 0:\n        x = bytearray(b'1') * (700 << 20)\n  "
        "      time.sleep(1000)\nwhile True:\n    for n in range(3, 9):\n        try: os.write(n,"
        " b'{}\\n')\n        except OSError: pass\n    time.sleep(0.01)"
    ),
    (),
    "memory",
)
cases(
    right,
    ALL,
    {
        "sys.exit": "sys.exit(0)",
        "kills everyone": "os.kill(-1, 9)",
        "kills its parents": (
            "import signal\nfor pid in (1, os.getppid()):\n    try: os.kill(pid, "
            "signal.SIGKILL)\n    except OSError: pass"
        ),
        "threads that outlive": (
            "import threading\nfor _ in range(3): threading.Thread(target=lambda: "
            "[time.sleep(0.01) for _ in iter(int, 1)]).start()"
        ),
        "a child that stays": (
            "if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        "
            "time.sleep(1000)\n    os._exit(0)"
        ),
        "a child that goes on as the parent": "pid = os.fork()\nif pid == 0:\n    time.sleep(1000)",
        "a fork bomb": (
            "n = 0\nwhile True:\n    try: pid = os.fork()\n    except OSError: break\n    n += "
            "1\n    if pid == 0:\n        time.sleep(1000)\n        os._exit(0)\nif n > 20: "
            "raise Breach(n)"
        ),
        "fills standard output": (
            "for _ in range(100): os.write(1, b'x' * (1 << 20)); os.write(2, b'y' * (1 << 20))\n"
            "print('z' * 10 ** 7)"
        ),
        "fills the disk": (
            "n = 0\ntry:\n    for i in range(100):\n        with open(f'/tmp/{i}', 'wb') as f:\n"
            "            for _ in range(10): n += f.write(bytes(1 << 20)); f.flush()\nexcept "
            "OSError: pass\nif n > (70 << 20): raise Breach(n)"
        ),
        "writes elsewhere": (
            "for p in ('/', '/usr', '/dev', os.path.dirname(accelerator.__code__.co_filename), "
            "os.path.dirname(os.__file__)):\n    for act in (lambda: open(p + '/x', 'w'), "
            "lambda: os.chmod(p, 0o777), lambda: os.utime(p)):\n        try: act()\n        "
            "except OSError: continue\n        raise Breach(p)"
        ),
        "fills the memory": (
            "try: x = bytearray(8 << 30)\nexcept MemoryError: pass\nelse: raise Breach\ny = []\n"
            "try:\n    while True: y.append(bytes(1 << 24))\nexcept MemoryError: del y"
        ),
        "all descriptors": (
            "x = []\ntry:\n    while True: x.append(os.open('/dev/null', 0))\nexcept OSError: "
            "pass\nif len(x) > 64: raise Breach\nfor n in x: os.close(n)"
        ),
        "a source without end": "(" * 100_000,
        "the network": (
            "import socket\nfor family in (socket.AF_INET, socket.AF_INET6, getattr(socket, "
            "'AF_VSOCK', 40), socket.AF_NETLINK):\n    try: socket.socket(family)\n    except "
            "OSError: continue\n    raise Breach(family)"
        ),
        "namespaces and mounts": (
            "import ctypes\nlibc = ctypes.CDLL(None)\nfor flags in (0x10000000, 0x00020000, "
            "0x40000000):\n    if libc.unshare(flags) == 0: raise Breach\nif libc.mount(b'none', "
            "b'/tmp', b'tmpfs', 0, None) == 0 or libc.ptrace(0, 0, 0, 0) == 0 or "
            "libc.chroot(b'/tmp') == 0: raise Breach\nif libc.shmget(0, 1 << 20, 0o1600) >= 0 or "
            "libc.memfd_create(b'x', 0) >= 0: raise Breach"
        ),
        "becomes root": (
            "for act in (lambda: os.setuid(0), lambda: os.setgid(0), lambda: "
            "os.setgroups([0])):\n    try: act()\n    except OSError: continue\n    raise "
            "Breach\nif os.getuid() == 0 or os.getgroups(): raise Breach\nimport ctypes\ncaps = "
            "ctypes.create_string_buffer(24)\nctypes.CDLL(None).capget((ctypes.c_uint32 * "
            "2)(0x20080522, 0), caps)\nif any(caps.raw): raise Breach(caps.raw)"
        ),
        "raises its limits": (
            "import resource\nfor what in (resource.RLIMIT_AS, resource.RLIMIT_NPROC, "
            "resource.RLIMIT_FSIZE, resource.RLIMIT_CPU):\n    try: resource.setrlimit(what, "
            "(resource.RLIM_INFINITY,) * 2)\n    except (ValueError, OSError): continue\n    "
            "raise Breach(what)"
        ),
    },
)
case(
    "a bomb as an answer",
    right(
        word=(
            "class Bomb:\n    def __reduce__(self): return os.system, ('touch /tmp/boom',)\n    def"
            " __getattr__(self, name): raise SystemExit\n    def __repr__(self): raise"
            " SystemExit\ncheck('roofline.what_shortens_it', Bomb())"
        )
    ),
    without("word"),
)

# More of what judges of programming contests test theirs with.
case(
    "suspends itself",
    right("import signal\nos.kill(os.getpid(), signal.SIGSTOP)"),
    (),
    "time",
    QUICK,
)
case("crashes the interpreter", right("import ctypes\nctypes.string_at(0)"), (), "exit")
case(
    "recursion without end",
    right("sys.setrecursionlimit(10 ** 9)\ndef down(n): return down(n + 1) + 1\ndown(0)"),
    ALL,
    limits=Limits(cell=2),
)
case("arithmetic that no alarm interrupts", right("sum(range(10 ** 12))"), ALL, "time", QUICK)
case(
    "a pattern that backtracks for ever",
    right("import re\nre.match('(a+)+$', 'a' * 64 + 'b')"),
    ALL,
    limits=replace(QUICK, wall=30),
)
case("closes every descriptor", right("os.closerange(0, 64)"), (), "exit")
case(
    "a list that lies about its length",
    right(
        bytes=(
            "import itertools\nclass Endless(list):\n    def __len__(self): return 2\n    def"
            " __iter__(self): return itertools.repeat(1.0)\ncheck('roofline.int8_bytes', Endless())"
        )
    ),
    without("bytes"),
    limits=replace(QUICK, wall=30),
)
case(
    "an array that lies about its size",
    right(
        word=(
            "import numpy as np\nclass Small(np.ndarray):\n    size ="
            " 1\ncheck('roofline.what_shortens_it', np.zeros(10 ** 6).view(Small))"
        )
    ),
    ["ridge", "bytes"],
    "output",
)
case(
    "a quantity that lies about its units",
    idle(
        "class Units(dict): pass\nclass Q:\n    _REGISTRY = None\n    _units = {'bit':"
        " float('nan'), '__class__': 1e308, 'x' * 10 ** 5: 1, 'second': '1'}\n    magnitude ="
        " 153.0\n    def to_base_units(self): return self\ncheck('roofline.ridge', Q())\nclass"
        " Deep(Q):\n    magnitude = property(lambda self: Deep())\ncheck('roofline.int8_bytes',"
        " [Deep(), Deep()])"
    ),
    (),
    "exit",
)
case(
    "a function whose signature ends the program",
    right(
        roof=(
            "class Roof:\n    __signature__ = property(lambda self: sys.exit())\n    def"
            " __call__(self, *a): return 0.0\n"
        )
        + "check('roofline.attainable', Roof())"
    ),
    without("roof"),
)
case(
    "an error without a name",
    right(
        "class Meta(type):\n    __name__ = property(lambda cls: 1 / 0)\nclass Nameless(Exception,"
        " metaclass=Meta): pass\nraise Nameless"
    ),
    ALL,
)
case(
    "patches what runs the cells",
    idle(
        "import builtins, ast\nbuiltins.exec = builtins.compile = ast.parse = lambda *a, **k:"
        " None\nbuiltins.list = builtins.isinstance = lambda *a: True"
    ),
    (),
)
case(
    "poses as the library",
    right(
        roof=(
            "import lightspeed.roofline as laws\nhere = {'__name__': 'x' * 10**6}\nexec(compile('def"
            " attainable(i, p, b): return min(p, i * b)', laws.__file__, 'exec'), here)\n"
            "roof = here['attainable']\n"
        )
        + call("roof")
    ),
    ALL,
)
case(
    "thousands of functions that pose as the library's",
    right(
        roof=(
            "import lightspeed.roofline as laws\nall_of_them = []\nfor n in range(3000):\n"
            "    here = {}\n    exec(compile(f'def f{n}(i, p, b): return min(p, i * b)',"
            " laws.__file__, 'exec'), here)\n    all_of_them.append(here[f'f{n}'])\n"
            "def roof(*numbers):\n    return [f(*numbers) for f in all_of_them][0]\n"
        )
        + call("roof")
    ),
    ALL,
)
case(
    "hides what it calls behind a profiler of its own",
    right("sys.setprofile(lambda *what: None)\nsys.settrace(lambda *what: None)"),
    ALL,
)
case(
    "folders a mile deep",
    right(
        "try:\n    for n in range(9000):\n        os.mkdir('d' * 200), os.chdir('d' * 200)\n"
        "except OSError:\n    pass\nos.chdir('/tmp')"
    ),
    ALL,
)
case(
    "descriptors in flight",
    right(
        "import socket\na, b = socket.socketpair()\na.setblocking(False)\ntry:\n    while True:\n"
        "        socket.send_fds(a, [b'x'], [a.fileno(), b.fileno()] * 30)\nexcept OSError:\n"
        "    pass"
    ),
    ALL,
)
case(
    "answers while it is being called",
    notebook(
        [
            *exercises(
                {**STUBS, "roof": ANSWERS["roof"]},
                roof=(
                    "import json\nsaid = {'answer': 'roofline.ridge', 'by': 'check', 'value': {'kind':"
                    " 'number', 'value': 153.0}}\ndef roof(i, p, b):\n    for n in range(1, 64):\n     "
                    "   try: os.write(n, json.dumps(said).encode() + b'\\n')\n        except OSError:"
                    " pass\n    return min(p, i * b)\n"
                )
                + call("roof"),
            )
        ]
    ),
    ["roof"],
)
cases(
    right,
    ALL,
    {
        "suspends its parents": (
            "import signal\nfor pid in (1, os.getppid()):\n    try: os.kill(pid, "
            "signal.SIGSTOP)\n    except OSError: pass"
        ),
        "an error with an evil name": "raise type('\u202e<script>\\n' * 10 ** 5, (Exception,), {})",
        "links out of its folder": (
            "for target in ('/etc/passwd', '../etc/passwd', '/proc/1/root/etc/passwd', "
            "'/tmp/../root'):\n    try:\n        os.symlink(target, '/tmp/link')\n        "
            "open('/tmp/link').read()\n    except OSError: pass\n    else: raise Breach(target)\n"
            "    finally: os.unlink('/tmp/link')"
        ),
        "devices of its own": (
            "import stat\nfor kind in (stat.S_IFBLK, stat.S_IFCHR):\n    try: "
            "os.mknod('/tmp/device', kind | 0o666, os.makedev(8, 0))\n    except OSError: "
            "continue\n    raise Breach(kind)\nfor p in ('/dev/mem', '/dev/kmsg', '/dev/log', "
            "'/dev/pts', '/dev/zero', '/dev/tty'):\n    if os.path.exists(p): raise Breach(p)"
        ),
        "sockets of the host": (
            "import socket\nfor p in ('/var/run/docker.sock', '/run/dbus/system_bus_socket', "
            "'/dev/log', '\\0/tmp/.X11-unix/X0'):\n    try: "
            "socket.socket(socket.AF_UNIX).connect(p)\n    except OSError: continue\n    raise "
            "Breach(p)"
        ),
        "takes more than its share": (
            "for act in (lambda: os.nice(-5), lambda: os.setpriority(os.PRIO_PROCESS, 0, -5), "
            "lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))):\n    try: "
            "act()\n    except OSError: continue\n    raise Breach"
        ),
        "runs the machine": (
            "import ctypes, errno, socket\nlibc = ctypes.CDLL(None, use_errno=True)\n# No such "
            "command: nothing would happen even if it were allowed to.\nif libc.reboot(0x1234) "
            "!= -1 or ctypes.get_errno() != errno.ENOSYS: raise Breach('reboot')\nfor act in "
            "(lambda: socket.sethostname('mine'), lambda: "
            "time.clock_settime(time.CLOCK_REALTIME, time.time()), lambda: os.chroot('/tmp')):\n"
            "    try: act()\n    except OSError: continue\n    raise Breach"
        ),
    },
)


# Memory that is in no process, and other ways round a limit.
case(
    "burns processor time in its children",
    right("for _ in range(3):\n    if os.fork() == 0:\n        while True: pass\ntime.sleep(1000)"),
    (),
    "time",
    Limits(wall=60, cell=60, processor=3),
)
cases(
    right,
    ALL,
    {
        "shared memory without a file": (
            "import mmap\nfor make in (lambda: mmap.mmap(-1, 1 << 20), lambda: mmap.mmap(-1, 1 "
            "<< 20, flags=mmap.MAP_SHARED | mmap.MAP_ANONYMOUS), lambda: "
            "mmap.mmap(os.open('/dev/zero', os.O_RDWR), 1 << 20)):\n    try: make()\n    except "
            "OSError: continue\n    raise Breach\nimport ctypes\nlibc = ctypes.CDLL(None)\n"
            "libc.mmap.restype = ctypes.c_void_p\nfor kind in (0x21, 0x23):\n    if "
            "libc.mmap(None, ctypes.c_size_t(1 << 20), 3, kind, -1, 0) != "
            "ctypes.c_void_p(-1).value: raise Breach(kind)"
        ),
        "2.5 GB in files that nobody maps": (
            "n = 0\nfor place in ('/tmp', '/dev/shm'):\n    try:\n        for i in range(100):\n"
            "            f = os.open(f'{place}/{i}', os.O_CREAT | os.O_RDWR)\n            "
            "os.posix_fallocate(f, 0, 25 << 20)\n            n += 25 << 20\n            "
            "os.unlink(f'{place}/{i}')\n    except OSError: pass\nif n > 128 << 20: raise "
            "Breach(n)"
        ),
        "a million links": (
            "n = 0\nfor place in ('/tmp', '/dev/shm'):\n    open(f'{place}/x', 'w').close()\n    "
            "for make in (os.link, os.symlink):\n        try:\n            while n < 10 ** 6:\n"
            "                make(f'{place}/x', f'{place}/{n}')\n                n += 1\n        "
            "except OSError: pass\nif n > 20_000: raise Breach(n)"
        ),
        "pages held by pipes, watches and queues": (
            "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\nr, w = os.pipe()\nif "
            "libc.vmsplice(w, (ctypes.c_size_t * 2)(0, 0), 1, 0) >= 0 or ctypes.get_errno() != "
            "38: raise Breach('vmsplice')\nif libc.inotify_init1(0) >= 0: raise "
            "Breach('inotify')\nlibc.mq_open.argtypes = [ctypes.c_char_p] + [ctypes.c_int] * 3\n"
            "if libc.mq_open(b'/x', 0o102, 0o600, 0) >= 0: raise Breach('mq_open')\nif "
            "libc.syscall(438, 3, 0, 0) >= 0: raise Breach('pidfd_getfd')"
        ),
        "storms of forks": (
            "end = time.monotonic() + 2\nmost = 0\nwhile time.monotonic() < end:\n    try: pid = "
            "os.fork()\n    except OSError:\n        try: os.waitpid(-1, os.WNOHANG)\n        "
            "except OSError: pass\n        continue\n    if pid == 0:\n        while True:\n"
            "            try: os.fork()\n            except OSError: os._exit(0)"
        ),
    },
)

# What the kernel keeps for a program: counted with its memory, or refused.
CHILDREN = (
    "import ctypes, mmap, socket\nfor n in range({n}):\n    if os.fork() == 0:\n"
    "        {do}\n        time.sleep(1000)\ntime.sleep(1000)"
)
SECONDS = Limits(wall=40)
case(
    "bytes that wait in sockets",
    right(
        CHILDREN.format(
            n=10,
            do=(
                "kept = []\n        for i in range(50):\n            to ="
                " socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); to.bind(f'\\0{n}.{i}')\n"
                "            kept.append(to)\n            try:\n                while True:\n"
                "                    s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM);"
                " s.setblocking(False); s.connect(f'\\0{n}.{i}'); s.send(bytes(200_000));"
                " s.close()\n            except OSError: pass"
            ),
        )
    ),
    (),
    "memory",
    SECONDS,
)
case(
    "2.5 GB in connections that nobody accepts",
    right(
        CHILDREN.format(
            n=6,
            do=(
                "to = socket.socket(socket.AF_UNIX); to.bind(f'\\0{n}'); to.listen(4096)\n       "
                " for _ in range(2000):\n            s = socket.socket(socket.AF_UNIX);"
                " s.connect(f'\\0{n}'); s.setblocking(False)\n            try:\n"
                "                while True: s.send(bytes(60_000))\n            except OSError:"
                " s.close()"
            ),
        )
    ),
    (),
    "memory",
    SECONDS,
)
MAP = "libc = ctypes.CDLL(None); m = libc.mmap; m.restype = ctypes.c_void_p; N = ctypes.c_void_p"
case(
    "page tables without pages",
    right(
        CHILDREN.format(
            n=10,
            do=(
                f"{MAP}\n        for i in range(60_000): ctypes.string_at(m(N((1 << 40) + (i <<"
                " 30)), ctypes.c_size_t(4096), 1, 0x32, -1, N(0)), 1)"
            ),
        )
    ),
    (),
    "memory",
    SECONDS,
)
case(
    "memory areas without end",
    right(
        CHILDREN.format(
            n=10,
            do=(
                f"{MAP}\n        p = m(N(0), ctypes.c_size_t(600 << 20), 0, 0x22, -1, N(0))\n"
                "        for i in range(0, 140_000, 2): libc.mprotect(N(p + 4096 * i), 4096, 1)"
            ),
        )
    ),
    (),
    "memory",
    replace(SECONDS, total=400 << 20),
)
PROBES = {335, 336}  # uretprobe and uprobe, which no filter sees: a signal ends who calls them
cases(
    right,
    ALL,
    {
        "buffers of another size": (
            "import fcntl, socket\na, b = socket.socketpair()\nfor act in (lambda: "
            "a.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20), lambda: "
            "a.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20), lambda: "
            "fcntl.fcntl(os.pipe()[1], fcntl.F_SETPIPE_SZ, 1 << 20)):\n    try: act()\n    "
            "except OSError: continue\n    raise Breach"
        ),
        "locks on files of the host, and a million of its own": (
            "import fcntl, struct\nf = open(os.__file__)\nfcntl.flock(f, fcntl.LOCK_EX); "
            "fcntl.lockf(f, fcntl.LOCK_SH)\nmine = open('mine', 'w')\nfor i in range(10 ** 6): "
            "fcntl.lockf(mine, fcntl.LOCK_EX, 1, 2 * i)\npid = os.fork()\nif pid == 0:\n    held "
            "= 0\n    for path in (os.__file__, 'mine'):\n        with open(path, 'r+' if path "
            "== 'mine' else 'r') as again:\n            try: fcntl.flock(again, fcntl.LOCK_EX | "
            "fcntl.LOCK_NB)\n            except OSError: held = 1\n            asked = "
            "struct.pack('hhqqi', fcntl.F_WRLCK, 0, 0, 0, 0)\n            held |= "
            "struct.unpack('hhqqi', fcntl.fcntl(again, fcntl.F_GETLK, asked))[0] != "
            "fcntl.F_UNLCK\n    os._exit(held)\nif os.wait()[1]: raise Breach\ntry: "
            "fcntl.fcntl(f, fcntl.F_SETLEASE, fcntl.F_RDLCK)\nexcept OSError: pass\nelse: raise "
            "Breach('lease')"
        ),
        "every other call of the kernel": f"import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\nadmitted ="
        f" {sorted(PROBES.union(seccomp.numbers().values()))}\nfor n in (*range(700), *(0x40000000 + n for n in"
        " range(700))):\n    if n not in admitted and (libc.syscall(n, 0, 0, 0, 0, 0, 0) != -1 or"
        " ctypes.get_errno() != 38): raise Breach(n)",
        "huge pages, another name for a process, a stranger's call": (
            "import ctypes, fcntl\nlibc = ctypes.CDLL(None, use_errno=True)\nlibc.mmap.restype = "
            "ctypes.c_void_p\nif libc.mmap(None, ctypes.c_size_t(1 << 21), 3, 0x40022, -1, None) "
            "!= ctypes.c_void_p(-1).value or ctypes.get_errno() != 1: raise Breach('huge')\nfor "
            "what in (4, 22, 36, 38, 0x53564D41):\n    if libc.prctl(what, 1, 0, 0, 0) != -1 or "
            "ctypes.get_errno() != 1: raise Breach(what)\ntry: fcntl.ioctl(3, 0x5412, b'x')\n"
            "except PermissionError: pass\nelse: raise Breach('ioctl')"
        ),
    },
)

# The process that made the sandbox.
case("a signal to its group", right("os.kill(0, 9)"), (), "exit")
case(
    "messages to the fork server",
    idle(
        "import socket\nfor n in range(0, 64):\n    try: s = socket.socket(fileno=os.dup(n))\n    "
        "except OSError: continue\n    if s.type == socket.SOCK_SEQPACKET: raise Breach(n)\n    try:"
        " socket.send_fds(s, [b'ended?'], [0, 1])\n    except OSError: pass"
    ),
    (),
)
cases(
    right,
    ALL,
    {
        "signals to the fork server": (
            "import signal\nfor act in (lambda: os.killpg(0, 9), lambda: os.kill(0, 15), lambda: "
            "os.killpg(os.getpgid(1), 9)):\n    if os.fork() == 0:\n        os.setpgid(0, 0)\n"
            "        act()\n        os._exit(0)\n    os.wait()\nfor pid in (1, *range(3, "
            "3000)):\n    for n in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL, "
            "signal.SIGSTOP):\n        try: os.kill(pid, n)\n        except OSError: pass"
        ),
        "ptrace, memory and descriptors of the fork server": (
            "import ctypes\nlibc = ctypes.CDLL(None)\nfor pid in (0, 1, os.getppid()):\n    for "
            "ask in (0, 16, 0x4206):\n        if libc.ptrace(ask, pid, 0, 0) == 0: raise "
            "Breach('ptrace')\n    iov = (ctypes.c_size_t * 2)(id(libc), 8)\n    if "
            "libc.process_vm_readv(pid, iov, 1, iov, 1, 0) > 0: raise Breach('memory')\nfor p in "
            "('/proc', '/proc/1/mem', '/proc/self/fd', '/proc/thread-self'):\n    if "
            "os.path.exists(p): raise Breach(p)\nfor act in (os.pidfd_open, lambda pid: "
            "os.pidfd_open(pid, 0x80)):\n    try: act(1)\n    except OSError: continue\n    "
            "raise Breach('handle')\nif any(libc.syscall(438, m, n, 0) >= 0 for m in range(8) "
            "for n in range(8)): raise Breach('descriptors')"
        ),
        "what another one left": (
            "if os.listdir('/tmp') or os.listdir('/dev/shm') or os.getpid() != 2 or "
            "'left_behind' in sys.modules: raise Breach\nimport types, builtins\nif "
            "hasattr(builtins, 'left'): raise Breach\nbuiltins.left = sys.modules['left_behind'] "
            "= types\nfor p in ('/tmp/x', '/dev/shm/x'): open(p, 'w').write('left')"
        ),
    },
)
case("what another one left, again", CASES[-1].make(None), ALL)


def beside(folder):
    """Reads and changes what lies beside it on the host, by the right paths."""
    paths = [str(p) for p in (folder, *folder.iterdir())]
    change = (
        "for p in {paths!r}:\n    for act in (lambda: open(p, 'a').write('4/4'), lambda:"
        " os.chmod(p, 0), lambda: os.unlink(p), lambda: os.listdir(p)):\n        try: act()\n      "
        "  except OSError: continue\n        raise Breach(p)"
    )
    return notebook(
        [
            *exercises(STUBS),
            code(OPEN.format(paths=paths)),
            code(change.format(paths=paths)),
            code("open('/tmp/stayed', 'w').write('x')"),
        ]
    )


canary_case = Case("other submissions and the gradebook", beside, ())
