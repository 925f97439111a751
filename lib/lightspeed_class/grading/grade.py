"""One submission -> scores, each with its diagnosis, and a record from which the same scores can be
made again.

An answer is found by the id in `check("id", answer)`, wherever that call is: the last one whose
answer is not `...` counts. Where there is no such call any more, the variable that it had is taken
after the cell with the exercise's id; a function is also found by its name. The program that runs
the cells tells only values; they are judged here. Functions are tried on the published inputs and
on inputs that are drawn from a secret, for this student and submission, once those were right.
"""

import contextlib
import hashlib
import platform
import re
from dataclasses import asdict, replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from lightspeed_class.grading.answer_text import came
from lightspeed_class.grading.closure import deciding
from lightspeed_class.grading.decode import decode
from lightspeed_class.grading.run import Run
from lightspeed_class.grading.sandbox import COURSE, Limits, Sandbox
from lightspeed_class.hidden_inputs import hidden
from lightspeed_class.kept_library import digest_of, unpacked
from lightspeed_class.kept_questions import variants
from lightspeed_class.notebooks import (
    MOST_CELLS,
    Assignment,
    Refused,
    all_cells,
    beyond,
    code_of,
    homes,
)
from lightspeed_class.posed import posed
from lightspeed_class.score import BY_HAND, Graded, Score, fingerprint
from lightspeed_course.library_calls import SAMPLES
from lightspeed_course.practice.check import Verdict, diagnose

DEFIES = re.compile(
    r"\b(except|signal|os|sys|ctypes|subprocess|multiprocessing|threading)\b|__|^[!%]", re.M
)
LEFT_OUT = "raise TimeoutError"  # in place of a cell that can't be stopped
LEFT_SAYS = "stopped with TimeoutError in line 1."
MOST_LEFT_OUT = 3  # each takes all the time that a notebook has
LEFT = "Code cell {} ran longer than it may, in a call that can't be stopped. It was left out."
AS_TEXT = (
    "Not answered: the cell of the exercise is text, not code, so nothing in it was run. Make it a"
    " code cell again (in Jupyter, the key y)."
)
UNREACHED = "Not reached: the program ended, or was ended, before the end of this cell."


def grade(
    content: bytes,
    assignment: Assignment,
    seed: str | None = None,
    secret: str = "",
    limits: Limits | None = None,
    isolated: bool | str = True,
    data: Any = None,
) -> Graded:
    """Grade a notebook's bytes for the student whose variants `seed` draws, using `data` from the
    gradebook (KeptQuestions.data), or fresh draws. If several libraries are kept, after a
    correction that takes no points, each answer gets the best score. Raises NoSandbox, but nothing
    because of the notebook's content.
    """
    libraries = (data or {}).get("libraries") or (None,)
    first, *others = (
        _graded(content, assignment, seed, secret, limits or Limits(), isolated, data, library)
        for library in libraries
    )
    if not others:
        return first
    each = zip(*(grading.scores for grading in (first, *others)), strict=True)
    return replace(first, scores=tuple(max(scores, key=_earned) for scores in each))


def _graded(
    content: bytes,
    assignment: Assignment,
    seed: str | None,
    secret: str,
    limits: Limits,
    isolated: bool | str,
    data: Any,
    library: bytes | None,
) -> Graded:
    """The same by one library."""
    record = {
        "submission": hashlib.sha256(content).hexdigest(),
        "assignment": identity(assignment),
        "seed": seed,
        "secret": fingerprint(secret),
        "grader": grader(),
        "environment": environment(),
        "limits": asdict(limits),
        "isolation": "",
        "library": digest_of(library) if library else "",
    }
    try:
        all_of_it = all_cells(content)
    except Refused as refusal:
        return refused(str(refusal), assignment, record)
    cells = code_of(all_of_it)
    asked_then = variants(data) if data else {}
    variants_of = {id: asked_then.get(id) or [posed(id, seed, secret)] for id in assignment.judged}
    kinds = {id: mine[0].question.kind for id, mine in variants_of.items()}
    with contextlib.ExitStack() as boxes:

        def ran(cells: list[tuple[str, str]]) -> Run:
            home = unpacked(library) if library else None
            box = boxes.enter_context(Sandbox(limits, isolated, home))
            record["isolation"] = box.isolation
            return Run(box, assignment, limits, cells, kinds, (data or {}).get("files"))

        run = ran(cells)
        left_out: list[int] = []
        late = run.late
        while run.status == "time" and len(left_out) < MOST_LEFT_OUT:
            # A call into C looks at no signal: it costs its own cell, and not those after it.
            if not _waits_in_c(cells, at := run.stopped_at):
                break
            boxes.close()
            left_out.append(at)
            cells = [*cells[:at], (cells[at][0], LEFT_OUT), *cells[at + 1 :]]
            run = ran(cells)
            late |= run.late
        published = {id: [_published(run, v) for v in mine] for id, mine in variants_of.items()}
        # All that is told of the program is known here. From now on it knows hidden inputs, and
        # nothing that it says is told to anybody but as right or not.
        status, notes = run.status, run.notes()
        if left_out:
            status = "time" if status == "ok" else status
            stops = {f"Code cell {at + 1} {LEFT_SAYS}" for at in left_out}
            notes = tuple(note for note in notes if note not in stops) + tuple(
                LEFT.format(at + 1) for at in left_out
            )
        if more := beyond(content):
            notes += (f"Of {MOST_CELLS + more:,} cells only the first {MOST_CELLS:,} were run.",)
        draw = f"{secret}\n{seed}\n{record['submission']}"
        verdicts = {id: _better(run, variants_of[id], mine, draw) for id, mine in published.items()}
    texts = [(cell.id, cell.source) for cell in all_of_it if cell.kind != "code"]
    is_text = {id for id in assignment.judged if [*homes(id, assignment, texts)]}
    scores = tuple(
        _score(run, id, out_of, verdicts[id], id in is_text)
        if id in verdicts
        else Score(id, 0.0, out_of, BY_HAND)
        for id, out_of in assignment.points.items()
    )
    return Graded(status, scores, notes, record, late or run.late)


def repriced(grading: Graded, assignment: Assignment) -> Graded:
    """Return the same verdicts under the current points, without running anything."""
    scores = tuple(
        replace(s, points=now * _earned(s), out_of=now)
        for s in grading.scores
        for now in [assignment.points[s.question]]
    )
    return replace(
        grading, scores=scores, record=grading.record | {"assignment": identity(assignment)}
    )


def _earned(score: Score) -> float:
    """The share of its points, whatever they were."""
    return bool(score.points or score.kind == "right") if score.share is None else score.share


def identity(assignment: Assignment) -> str:
    """Hash the questions and their points."""
    return fingerprint([assignment.name, assignment.cells, assignment.points])


def refused(reason: str, assignment: Assignment, record: dict[str, Any] | None = None) -> Graded:
    """Return a grading without points, and the reason."""
    scores = (Score(q, 0.0, p, "refused", message=reason) for q, p in assignment.points.items())
    return Graded("refused", tuple(scores), (reason,), record or {"isolation": "not run"})


def _published(run: Run, variant: Any) -> Verdict:
    """The verdict on an answer, that of a function on the published inputs."""
    _, value = run.answers.get(variant.question.id, ("", {"kind": "none"}))
    if _is_function(variant, value):
        return diagnose(variant, run.replay(variant, watch=SAMPLES))
    answer = decode(value)
    verdict = diagnose(variant, answer)
    # no number was read: a person may want to see what came
    if verdict.kind in ("type", "dimension"):
        verdict = replace(verdict, given=came(answer, variant.question.unit))
    return verdict


def _waits_in_c(cells: list[tuple[str, str]], at: int) -> bool:
    """Whether the cell that did not end may be a slow call, which no alarm stops."""
    return at < len(cells) - 1 and not DEFIES.search(cells[at][1])


def _better(run: Run, variants: list[Any], verdicts: list[Verdict], draw: str) -> Verdict:
    """Of the verdicts by several variants, the first that earns most."""
    pairs = zip(variants, verdicts, strict=True)
    return max((_held(run, variant, verdict, draw) for variant, verdict in pairs), key=_share)


def _held(run: Run, variant: Any, verdict: Verdict, draw: str) -> Verdict:
    """The verdict on a function after hidden inputs, of which the student is told nothing."""
    if not verdict.correct or not _is_function(variant, run.answers[variant.question.id][1]):
        return verdict
    sets = getattr(variant, "sets", None)
    other = variant.hidden(draw) if sets else hidden(variant, draw)
    if diagnose(other, run.replay(other)).correct:
        return replace(
            verdict,
            message="Your function agrees with the library on the published inputs and on others.",
        )
    words = (
        "Your function agrees with the library on the published inputs, but not on others of the"
        " same kind. Does it hold in general?"
    )
    return replace(verdict, correct=False, kind="hidden", message=words)


def _is_function(variant: Any, value: Any) -> bool:
    return (
        variant.question.kind == "function"
        and isinstance(value, dict)
        and value.get("kind") == "function"
    )


def _score(run: Run, id: str, out_of: float, verdict: Verdict, is_text: bool) -> Score:
    by, message = run.answers.get(id, ("", None))[0], verdict.message
    if not by and is_text:
        message = AS_TEXT
    elif not by:
        message = (
            f'Not answered: no `check("{id}", ...)` that ran had an answer, and neither had the'
            " cell of the exercise."
            if run.reached(id)
            else UNREACHED
        )
    share = _share(verdict)
    return Score(
        id, out_of * share, out_of, verdict.kind, verdict.name, message, verdict.given, by,
        verdict.share,
    )  # fmt: skip


def _share(verdict: Verdict) -> float:
    """The share of the points that a verdict earns."""
    return float(verdict.correct) if verdict.share is None else verdict.share


@cache
def grader(home: Path = COURSE.parent) -> str:
    """Hash all code that affects a score; `home` is the folder of the packages."""
    return fingerprint(
        [
            [str(file.relative_to(home)), hashlib.sha256(file.read_bytes()).hexdigest()]
            for file in deciding(home)
        ]
    )


@cache
def environment() -> dict[str, str]:
    """Return what else a score may depend on."""
    packages = {name: version(name) for name in ("ipython", "numpy", "pint", "scipy")}
    return {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        **packages,
    }
