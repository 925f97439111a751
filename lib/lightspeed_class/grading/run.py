"""A submission's program at work: its cells and answers, and calls of its functions."""

import base64
import json
from collections.abc import Callable
from typing import Any

from lightspeed_class.grading.decode import decode, is_pair, safe_name
from lightspeed_class.grading.sandbox import NOT_STARTED, WAITING, Ended, Limits, NoSandbox, Sandbox
from lightspeed_class.notebooks import Assignment, clean, homes
from lightspeed_course.library_calls import gathered

ANSWERS_IN = 5  # seconds in which a call that was stopped is told
STATUS = {
    "ok": "",
    "time": "It ran longer than it may; cells after that were not run.",
    "memory": "It used more memory than it may; cells after that were not run.",
    "output": "It told far more than any answer needs; cells after that were not run.",
    "protocol": "It wrote into the channel of the grader; what came after that was not read.",
    "exit": "The program ended itself or was ended by a limit; cells after that were not run.",
}
NOTED = {
    "input": "asked for input, which nobody types while notebooks are graded; it stopped there.",
    "install": "wanted to install something, which was skipped: the course's packages are there.",
    "magic": "has `{}`, which does not exist where notebooks are graded; the rest of it ran.",
}
MOST_NOTES, MOST_WORDS = 20, 200
_key = json.JSONEncoder(sort_keys=True).encode


class Run:
    """A running program: its answers and functions. `kinds`: question -> kind; `files`: the files
    beside the notebook.
    """

    def __init__(
        self,
        box: Sandbox,
        assignment: Assignment,
        limits: Limits,
        cells: list[tuple[str, str]],
        kinds: dict[str, str],
        files: dict[str, bytes] | None = None,
    ) -> None:
        self.box, self.limits = box, limits
        self.status, self.late, self.cells = "ok", False, len(cells)
        self.answers: dict[str, tuple[str, Any]] = {}
        self.called: dict[str, dict[str, Any]] = {}
        self.origins: dict[str, list[tuple[list[str], list[str]]]] = {}
        self.told: list[tuple[int, str]] = []
        self.ran: set[int] = set()
        self.homes = {q: set(homes(q, assignment, cells)) for q in assignment.judged}
        ids = set(assignment.judged)
        asks = {id: [p for p in pairs if p[0] in ids] for id, pairs in assignment.cells.items()}
        plan = [{"source": source, "asks": asks.get(id, ())} for id, source in cells]
        try:
            beside = {name: base64.b64encode(c).decode() for name, c in (files or {}).items()}
            functions = assignment.functions(kinds)
            box.send({"cells": plan, "functions": functions, "files": beside})
            started = box.receive() == {"started": True}
        except Ended:
            started = False
        if not started:  # nothing of the student's has run: it is not their fault
            raise NoSandbox(NOT_STARTED)
        box.begin()
        try:
            while "done" not in (message := box.receive() or {}):
                self._note(message, len(cells), ids)
        except Ended as end:
            self._over(end)

    def _over(self, end: Ended) -> None:
        self.status = end.reason
        self.late |= end.waited and self.box.starved

    def _note(self, message: dict[str, Any], cells: int, ids: set[str]) -> None:
        id, value, number = message.get("answer"), message.get("value"), message.get("cell")
        if (
            isinstance(id, str)
            and id in ids
            and (by := message.get("by")) in ("check", "cell", "name")
        ):
            if by == "check" or self.answers.get(id, ("", None))[0] != "check":
                self.answers[id] = by, value
        elif type(number) is int and 0 <= number < cells:
            self.ran.add(number)
            remarks = message.get("noted")
            for what in remarks if isinstance(remarks, list) else ():
                if is_pair(what) and what[0] in NOTED:
                    self.told.append((number, NOTED[what[0]].format(f"%{safe_name(what[1])}")))
            error = message.get("error")
            if isinstance(error, dict) and (name := error.get("name")) != "AskedForInput":
                self.told.append((number, f"stopped with {safe_name(name)}{_explained(error)}"))
                self.late |= error.get("waited") is True and self.box.starved

    @property
    def stopped_at(self) -> int:
        """The number of the cell, from 0, that did not finish."""
        return max(self.ran, default=-1) + 1

    def notes(self) -> tuple[str, ...]:
        """The notes to the student on the run as a whole."""
        lines = [f"Code cell {number + 1} {what}" for number, what in dict.fromkeys(self.told)]
        if self.status != "ok":
            at = self.stopped_at + 1
            where = f" It was at code cell {at}." if at <= self.cells else ""
            lines = [*lines[:MOST_NOTES], STATUS[self.status] + where]
        return tuple(lines[: MOST_NOTES + 1])

    def reached(self, id: str) -> bool:
        """Whether a question's cells ran to their end; True if it has none."""
        return not self.homes[id] or bool(self.homes[id] & self.ran)

    def _results(self, id: str, inputs: list[dict[str, Any]], watch: int) -> dict[str, Any]:
        """The encoded results of the student's function so far, by input: the last one counts, so
        that a function must hold to what it says.
        """
        values: list[Any] = []
        results = self.called.setdefault(id, {})
        try:
            if self.status == "ok":
                self.box.send({"question": id, "inputs": inputs, "watch": watch})
            while self.status == "ok" and len(values) < len(inputs):
                # inside, a call is stopped after WAITING times its limit at the latest
                message = self.box.receive(WAITING * self.limits.call + ANSWERS_IN)
                if message is None:
                    raise Ended("time", busy=True)
                # What else it says is no result, and has a limit.
                if message.get("question") == id and message.get("result") == len(values):
                    values.append(message.get("value"))
                    if len(values) <= watch:
                        self.origins.setdefault(id, []).append(_origin(message.get("origin")))
        except Ended as end:
            self._over(end)
        waits = any(isinstance(v, dict) and v.get("waited") is True for v in values)
        self.late |= waits and self.box.starved
        results |= zip(map(_key, inputs), values, strict=False)
        return results

    def replay(self, variant: Any, watch: int = 0) -> Callable[..., Any]:
        """The student's function, called for all samples of the variant now, as `diagnose` calls
        it. On the first `watch` of them it is looked what of the library it calls.
        """
        id, inputs = variant.question.id, [variant.inputs(s) for s in variant.samples]
        self.origins.pop(id, None)
        results = self._results(id, inputs, watch)

        def replay(**inputs: Any) -> Any:
            result = results.get(_key(inputs), {"kind": "error", "name": "Ended"})
            if isinstance(result, dict) and result.get("kind") == "error":
                raise type(safe_name(result.get("name")), (Exception,), {})
            return decode(result)

        function: Any = replay
        function.library = gathered(self.origins.get(id, ()))
        return replay


def _explained(error: dict[str, Any]) -> str:
    """Where a cell stopped and what the error says, as one line of plain text that is not long."""
    line, words = error.get("line"), error.get("words")
    where = f" in line {line}" if type(line) is int and 0 < line < 10**6 else ""
    text = clean(" ".join(words.split()))[:MOST_WORDS] if isinstance(words, str) else ""
    return f"{where}: {text}" if text else f"{where}."


def _origin(origin: Any) -> tuple[list[str], list[str]]:
    """What a call was said to have called of the library, and what gave its result."""
    lists = origin if isinstance(origin, list) and len(origin) == 2 else ((), ())
    calls, gave = ([n for n in names if isinstance(n, str)] if isinstance(names, list) else []
                    for names in lists)  # fmt: skip
    return calls, gave
