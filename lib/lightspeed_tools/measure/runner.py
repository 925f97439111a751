"""The parts of a measurement, each run in a process of its own.

So a part that crashes, hangs or is killed for its memory costs itself alone, the thread pools of
one do not disturb the next, and a part may run an event loop inside a notebook. The child (this
file, run as a module) writes one JSON object a line: {"progress": text}, and at last {"quantities":
[...], "missing": [...]}.
"""

import contextlib
import dataclasses
import importlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass

from lightspeed_tools.measure import conditions, environment
from lightspeed_tools.measure.instruments.timing import Missing, Quantity, Unavailable
from lightspeed_tools.measure.records import record


@dataclass(frozen=True)
class Part:
    """A part: its module, what it measures, and seconds on a quiet laptop, quick and full."""

    module: str
    what: str
    quick: float = 10
    full: float = 60


INSTRUMENTS = "lightspeed_tools.measure.instruments"


PARTS = {
    "host": Part(
        f"{INSTRUMENTS}.memory_and_io", "latency and bandwidth of memory, storage, loopback"
    ),
    "roofline": Part(f"{INSTRUMENTS}.roofline", "peaks by type, and kernels under the roof"),
    "collectives": Part(f"{INSTRUMENTS}.collectives", "all-reduce and its kin over processes"),
    "gpu": Part(f"{INSTRUMENTS}.gpu", "bandwidth, matrix products and launches of a GPU"),
}
# A part that takes so many times its estimate hangs; a slow machine that compiles for the first
# time does not.
PATIENCE = 15
GRACE = 5  # seconds that a part has to end its own children before it is killed


def measure(names=tuple(PARTS), quick=True, report=print, parts=None):
    """Run these parts and return a record: whatever is unavailable, fails or hangs is in `missing`
    with the reason. Ctrl+C returns the results so far.
    """
    parts = PARTS if parts is None else parts
    machine, before = environment.describe(), conditions.snapshot()
    found, missing, took = [], [], {}
    try:
        for number, name in enumerate(names, 1):
            part = parts[name]
            expected = part.quick if quick else part.full
            left = sum(parts[n].quick if quick else parts[n].full for n in names[number - 1 :])
            report(
                f"[{number}/{len(names)}] {name}: {part.what}; about {expected:.0f} s"
                + (f", {left:.0f} s with what follows" if number < len(names) else "")
                + ("; a busy machine takes longer" if number == 1 else "")
            )
            start = time.monotonic()
            got = _run(name, part, quick, report, PATIENCE * expected)
            found += got
            took[name] = round(time.monotonic() - start, 1)
            for m in (m for m in got if isinstance(m, Missing)):
                report(f"  without {m}")
            report(
                f"  {sum(isinstance(q, Quantity) for q in got)} quantities in {took[name]:.0f} s"
            )
    except KeyboardInterrupt:
        undone = names[len(took) :]
        missing = [
            Missing(n, "interrupted before it was done.", f"lightspeed measure {n}") for n in undone
        ]
        report(f"  interrupted; what was measured before {', '.join(undone[:1]) or 'that'} is kept")
    after = conditions.snapshot()
    return record.new(
        found,
        missing,
        machine=machine,
        environment=conditions.checks(before, after, machine),
        versions=environment.versions(),
        name=environment.name_of(machine),
        effort="quick" if quick else "full",
        complete=len(took) == len(names),
        seconds=took,
    )


def _run(name, part, quick, report, limit):
    """What a part gave: Quantities and Missings, at least one; KeyboardInterrupt ends it."""
    command = [sys.executable, "-m", __name__, name, part.module, "quick" if quick else "full"]
    child = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stdin=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        start_new_session=True,
    )
    lines = queue.Queue()
    threading.Thread(target=_listen, args=(child.stdout, lines), daemon=True).start()
    answer, deadline = None, time.monotonic() + limit
    try:
        # The loop ends with the part's answer or its end; a grandchild may hold the pipe.
        while answer is None:
            line = lines.get(timeout=max(0, deadline - time.monotonic()))
            if line is None:
                break
            said = json.loads(line)
            if "progress" in said:
                report(f"  {said['progress']}")
            else:
                answer = said
        child.wait(timeout=GRACE if answer else max(0, deadline - time.monotonic()))
    except (queue.Empty, subprocess.TimeoutExpired):
        if answer is None:
            remedy = f"Run `lightspeed measure {name}` alone, on a quiet machine."
            return [Missing(name, f"no answer after {limit:.0f} s, so it was stopped.", remedy)]
    finally:
        _end(child)
    if answer is None:
        why = f"its process ended without an answer ({_how(child.returncode)})."
        return [Missing(name, why, f"Run `lightspeed measure {name}` alone to see more.")]
    got: list = [Quantity(**row) for row in answer["quantities"]]
    got += [Missing(**row) for row in answer["missing"]]
    return got or [Missing(name, "it measured nothing, and did not say why.")]


def _listen(stream, lines):
    with stream:
        for line in stream:
            lines.put(line)
    lines.put(None)


def _end(child):
    """End a part and all that it started: politely, then not."""
    for sign in (signal.SIGINT, signal.SIGKILL) if os.name == "posix" else (None,):
        with contextlib.suppress(OSError):  # it has ended
            os.killpg(child.pid, sign) if sign else child.kill()
        try:
            child.wait(timeout=GRACE)
        except subprocess.TimeoutExpired:
            continue
    child.stdin.close()


def _how(status):
    if status and status < 0:
        with contextlib.suppress(ValueError):
            return signal.Signals(-status).name
    return f"exit status {status}"


def _child(name, module, effort):
    """Run the part in this process and write its answer to what was standard output."""
    # Libraries and their C code may print what they like: it goes to standard error.
    answers, parent = os.fdopen(os.dup(1), "w", encoding="utf-8"), os.dup(0)
    os.dup2(2, 1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()

    def say(**what):
        print(json.dumps(what), file=answers, flush=True)

    try:
        part = importlib.import_module(module)
        got = list(
            part.measure(quick=effort == "quick", report=lambda text: say(progress=str(text)))
        )
    except KeyboardInterrupt:
        sys.exit(130)  # the parent, who sent it, says what is to be said
    except Unavailable as error:
        got = [Missing(name, error.why, error.remedy)]
    except ModuleNotFoundError as error:
        got = [Missing(name, f"{error.name} is not installed.", "pip install '.[measure]'")]
    except (Exception, SystemExit) as error:
        words = f"it failed: {type(error).__name__}: {error}"
        remedy = "Please report this, with the output of `lightspeed where`."
        got = [Missing(name, words[:500], remedy)]
    rows = [record.as_row(q) for q in got if isinstance(q, Quantity)]
    say(quantities=rows, missing=[dataclasses.asdict(m) for m in got if isinstance(m, Missing)])


def _end_with(parent):
    """Wait for the end of the parent, who never writes, and end this process and its children."""
    os.read(parent, 1)
    if os.name == "posix" and os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


if __name__ == "__main__":
    _child(*sys.argv[1:])
