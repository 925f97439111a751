"""Runs inside the sandbox: the cells of one notebook in order, then the functions asked for, one
call at a time.

It judges nothing and knows no answer, so what the cells do to it harms only themselves. Messages
are lines of JSON: in: limits and paths; cells; then calls. Out: "started", what became of each
cell, answers, results of calls.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import inspect
import math
import os
import resource
import signal
import sys
import types
from _signal import signal as handle  # signal.signal() looks up names for all that it is given
from base64 import b64decode
from collections.abc import Callable, Sequence
from functools import partial
from json import JSONEncoder, loads  # now: what a cell does to the module does not matter
from time import monotonic, process_time
from typing import Any, BinaryIO, cast

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "inside"))

from student_answers import encode

PATIENCE = 2  # calls of a function that may run out of time; then it is not called again
# Limits of time are of processor time, which a busy machine does not use up; who only waits may
# wait so many times as long.
WAITING = 4
OUT_OF_TIME = {"kind": "error", "name": "OutOfTime"}
MOST_WORDS = 300  # characters of what an error says
COMPUTES = 20  # what gets this part of a processor, on a machine however busy, does not just wait
PLAIN = (float, int, str)  # to encode one of these runs no line of the student's
MOST_TOLD = 50  # messages at a time
PRACTICE = "lightspeed_course.practice"
# what nearly every notebook of the course imports; a process that serves many imports them once
USUAL = (
    "numpy", "lightspeed.roofline", "lightspeed_course", "lightspeed_show.page",
    "lightspeed_show.explore", "ipywidgets", "matplotlib.pyplot", "IPython.core.logger",
    "bdb",
)  # fmt: skip


dumps = JSONEncoder(allow_nan=False).encode


class OutOfTime(BaseException):
    """A cell or a call exceeded its time; `waited`: wall time, which a busy machine may use up."""

    waited = False


class Waited(OutOfTime):
    waited = True


class Recorded:
    """The result of check() while grading, which gives no verdict."""

    correct, kind, name, message, value = None, "recorded", "", "", None


def main() -> None:
    """Run one notebook in this process; as `student.py serve`, many, each in its own process."""
    from student_confine import filtered, serve

    if sys.argv[1:] == ["serve"]:
        serve(lambda paths: prepare(paths, USUAL), limit, work)
        return
    inbox, outbox = os.fdopen(os.dup(0), "rb"), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    os.close(nothing)
    setup = loads(inbox.readline())
    world = prepare(setup["paths"])
    limit(setup["limits"])
    if "seccomp" in setup:  # in a container, whose engine has given up all rights
        filtered(bytes.fromhex(setup["seccomp"]))
    work(world, inbox, outbox, setup["limits"])


def prepare(paths: list[str], more: Sequence[str] = ()) -> World:
    """Load what runs notebooks before any notebook does, and create their world."""
    sys.path[1:1] = paths
    load_pint()
    for name in more:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    if more:
        read_tables()
    world = World()
    del sys.path[0]  # the folder of this program's modules, which are loaded now
    return world


def read_tables() -> None:
    """The constants and the units, which the library reads from its files at their first use."""
    from lightspeed.catalog import accelerator
    from lightspeed.units import Q

    accelerator("h100_sxm")
    Q(1, "byte")


def work(world: World, inbox: BinaryIO, outbox: int, limits: dict[str, Any]) -> None:
    """Run the notebook received, and answer calls until there are no more."""
    plan = loads(inbox.readline())

    def say(*messages: dict[str, Any]) -> None:
        rest = "".join(f"{dumps(message)}\n" for message in messages).encode()
        while rest:
            rest = rest[os.write(outbox, rest) :]

    say({"started": True})
    lay_out(plan.get("files", {}))
    functions = run(world, plan, limits["cell"], say)
    say({"done": True})
    for line in inbox:
        call, late = loads(line), 0
        function, seconds = functions.get(call["question"]), limits["call"]
        if call["question"].startswith("puzzle."):  # a kernel, which the counting machine calls
            from lightspeed_course.puzzles.attempts import tried

            function = tried(call["question"], function)
        signature = within(seconds, partial(inspect.signature, cast(Any, function)))
        for number, inputs in enumerate(call["inputs"]):
            value, origin = OUT_OF_TIME, list[list[str]]()
            if late < PATIENCE:
                calls = world.calls() if number < call["watch"] else contextlib.nullcontext()
                value = result(function, signature, inputs, seconds, calls, origin)
                late += isinstance(value, dict) and value.get("name") == OUT_OF_TIME["name"]
            reply = {"question": call["question"], "result": number, "value": value}
            say(reply | {"origin": origin} if origin else reply)


def lay_out(files: dict[str, str]) -> None:
    """Write a notebook's files into this folder, from which its cells import."""
    sys.path.insert(0, "")
    for name, content in files.items():
        parts = name.split("/")
        if name.startswith("/") or ".." in parts:
            continue
        with contextlib.suppress(OSError, ValueError):  # a name that this system does not take
            os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
            with open(name, "xb") as file:
                file.write(b64decode(content))


def load_pint() -> None:
    """Without what it imports wherever it is installed: Dask asks /proc, the others take time."""
    modules: dict[str, Any] = sys.modules
    modules |= dict.fromkeys(("dask", "babel", "scipy"))
    import pint  # noqa: F401

    del sys.modules["scipy"]  # a submission may want it


def limit(limits: dict[str, Any]) -> None:
    # what was loaded before is not the student's
    time = math.ceil(limits["wall"] + sum(resource.getrusage(resource.RUSAGE_SELF)[:2]))
    # a second more until it is killed, so that the signal tells why
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CPU, (time, time + 1))
    for what, most in (
        (resource.RLIMIT_AS, limits["memory"]),
        (resource.RLIMIT_FSIZE, limits["disk"]),
        (resource.RLIMIT_NPROC, limits["processes"]),
        (resource.RLIMIT_NOFILE, 64),
        (resource.RLIMIT_CORE, 0),
        # timers, and messages between processes, are memory of the kernel's
        (resource.RLIMIT_SIGPENDING, 256),
        (resource.RLIMIT_MSGQUEUE, 0),
    ):
        with contextlib.suppress(ValueError, OSError):  # a lower hard limit is there already
            resource.setrlimit(what, (most, most))


def run(
    world: World, plan: dict[str, Any], seconds: float, say: Callable[..., None]
) -> dict[str, Any]:
    """Execute the cells, send the answers after each, and return the functions, by question."""
    ever_checked: set[str] = set()
    functions: dict[str, Any] = {}
    messages: list[dict[str, Any]] = []
    checked, namespace, shell = world.checked, world.namespace, world.shell

    def tell() -> None:
        say(*messages)
        messages.clear()

    def answered(question: str, answer: Any, by: str) -> None:
        if by == "check" or question not in ever_checked:
            functions[question] = answer
        plain = type(answer) in PLAIN
        if not plain or len(messages) > MOST_TOLD:
            tell()  # what is known, whatever comes of this
        value = encode(answer) if plain else within(seconds, lambda: encode(answer))
        messages.append({"answer": question, "by": by, "value": value})

    for number, cell in enumerate(plan["cells"]):
        checked.clear()
        before = {name: namespace.get(name) for _, name in cell["asks"]}
        error = within(seconds, partial(shell.run, cell["source"]))
        if isinstance(error, BaseException):
            error = within(seconds, partial(explained, error))
        messages.append({"cell": number, "error": error, "noted": shell.noted[:10]})
        ever_checked.update(checked)
        for question, answer in list(checked.items()):
            answered(question, answer, "check")
        for question, name in cell["asks"]:
            value = namespace.get(name)
            if question in checked or unanswered(value):
                continue
            # What an earlier cell left under this name is no answer, but two in a row may be equal.
            again = error is None and within(seconds, partial(assigns, cell["source"], name))
            if value is not before[name] or again is True:
                answered(question, value, "cell")
        tell()
    for question, name in plan["functions"].items():
        if question not in functions and callable(namespace.get(name)):
            answered(question, namespace[name], "name")
    tell()
    return functions


class World:
    """The cells' namespace and the shell that runs them, as in a notebook; of the course's verbs,
    only those that draw are active. `checked`: the arguments of check().
    """

    def __init__(self) -> None:
        from student_shell import Shell

        import lightspeed_course
        from lightspeed_course.library_calls import Calls

        self.calls, real = Calls, lightspeed_course.__getattr__
        self.checked: dict[str, Any] = {}

        def check(id: Any, answer: Any = ..., *_: Any, **__: Any) -> Recorded:
            if not unanswered(answer):
                self.checked[str(id)[:200]] = answer
            return Recorded()

        def nothing(*_: Any, **__: Any) -> Recorded:
            return Recorded()

        def stand_in(name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            return nothing

        def verb(name: str) -> Any:
            try:
                return real(name)
            except ImportError:  # what is behind it lies outside the sandbox
                return nothing

        practice: Any = types.ModuleType(PRACTICE)
        main: Any = types.ModuleType("__main__")
        course: Any = lightspeed_course
        practice.check, practice.__getattr__, practice.__path__ = check, stand_in, []
        course.check, course.__getattr__ = check, verb
        sys.modules |= {PRACTICE: practice, "__main__": main}
        main.check = check
        self.namespace, self.shell = main.__dict__, Shell.instance(main)


def unanswered(answer: Any) -> bool:
    """Whether an answer is the exercise's placeholder: nothing, dots, or an empty function."""
    code = getattr(answer, "__code__", None) if type(answer) is types.FunctionType else None
    empty = unanswered_function.__code__
    if code is None:
        return answer is None or answer is Ellipsis
    return bool(code.co_code[::2] == empty.co_code[::2] and code.co_consts[-1] is None)


def assigns(source: str, name: str) -> bool:
    """Whether a cell assigns this name outside of functions and classes."""
    inner = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
    waiting: list[ast.AST] = [ast.parse(source)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store):
            return True
        waiting += (n for n in ast.iter_child_nodes(node) if not isinstance(n, inner))
    return False


def unanswered_function() -> None: ...


def within(seconds: float, action: Callable[[], Any]) -> Any:
    """Return the action's result, or its failure as an encoded error."""

    def stop(number: int, *_: Any) -> None:
        if number == signal.SIGALRM:
            if process_time() - used > (monotonic() - start) / COMPUTES:
                return  # it computes, however slowly here: its processor time will stop it
            raise Waited
        raise OutOfTime

    used, start = process_time(), monotonic()

    # Again and again, so that an `except:` of the student's does not swallow the only one.
    timers = (
        (signal.SIGPROF, signal.ITIMER_PROF, seconds),
        (signal.SIGALRM, signal.ITIMER_REAL, WAITING * seconds),
    )
    try:
        try:
            for number, timer, most in timers:
                handle(number, stop)
                signal.setitimer(timer, most, 0.5)
            return action()
        finally:
            for _, timer, _ in timers:
                signal.setitimer(timer, 0)
    except BaseException as error:
        return failed(error)


def failed(error: BaseException) -> dict[str, Any]:
    if isinstance(error, OutOfTime):
        return OUT_OF_TIME | {"waited": True} if error.waited else OUT_OF_TIME
    return {"kind": "error", "name": str(type(error).__name__)[:60]}


def explained(error: BaseException) -> dict[str, Any]:
    """Encode a cell's error, with its message and line."""
    line, step = getattr(error, "lineno", None), error.__traceback__
    while line is None and step is not None:
        if step.tb_frame.f_code.co_filename.startswith("<ipython"):
            line = step.tb_lineno
        step = step.tb_next
    words = getattr(error, "msg", None) if isinstance(error, SyntaxError) else str(error)
    return failed(error) | {"words": str(words)[:MOST_WORDS], "line": line}


def result(
    function: Any, signature: Any, inputs: dict[str, Any], seconds: float, calls: Any, origin: Any
) -> Any:
    """Return a call's encoded result; put into `origin` what came out of the library."""
    if not callable(function):
        return {"kind": "none"}

    def called() -> Any:
        with calls:
            value = call(function, signature, inputs)
        if hasattr(calls, "gave"):
            origin[:] = [sorted(calls.laws)[:MOST_TOLD], calls.gave(value)[:MOST_TOLD]]
        return encode(value)

    return within(seconds, called)


def call(function: Any, signature: Any, inputs: dict[str, Any]) -> Any:
    """Call with the parameters' names if they match, else in order, as without a signature."""
    try:
        signature.bind(**inputs)
    except (AttributeError, TypeError):
        return function(*inputs.values())
    return function(**inputs)


if __name__ == "__main__":
    main()
