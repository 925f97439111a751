"""An exam for the room, of the questions of an assignment: papers with numbers of their own, to be
printed or shown on a locked page, and the key to them.

Whoever has the library at hand answers any question about numbers at once. On paper, or on a page
without it, the same questions ask for what is in somebody's head.
"""

import math
import random
from dataclasses import dataclass
from string import ascii_uppercase
from typing import Any

from lightspeed_class.class_folder import ClassError, write_whole
from lightspeed_class.score import number, short
from lightspeed_course.practice.amounts import amount
from lightspeed_course.practice.questions import question
from lightspeed_show.html import page

ON_PAPER = ("number", "array", "choice")  # kinds of questions; nobody writes a function by hand
TRIES = 20  # other numbers for a paper whose neighbour has the same


@dataclass(frozen=True)
class Task:
    """A question on a paper, with its options in that paper's order, and its key."""

    variant: Any
    points: float
    options: tuple[tuple[str, str], ...]  # (letter, text)
    right: str

    @property
    def tolerance(self):
        q = self.variant.question
        return "" if q.kind == "choice" else f"within {100 * q.tolerance:g} %"

    @property
    def slips(self):
        """Return (answer, cause) of each mistake that the course knows."""
        q, pairs = self.variant.question, []
        for m in q.misconceptions:
            wrong = self.variant.wrong(m)
            if q.kind == "choice":
                letters = [letter for letter, text in self.options if text == q.options.get(wrong)]
                pairs += [(letter, self.variant.fill(m.hint)) for letter in letters]
            elif all(map(math.isfinite, wrong)):
                pairs.append((amounts(wrong, q.unit), self.variant.fill(m.hint)))
        return [(answer, hint) for answer, hint in dict(pairs).items() if answer != self.right]


def papers(assignment, count, most, seed, only=()):
    """Return (`count` papers, ids of the questions left out): a paper is a tuple of at most `most`
    Tasks, the same questions with numbers that differ from the neighbouring paper's where possible.
    What has one answer for everybody is left out unless `only` names it. Raises ClassError.
    """
    fit = [q for q in assignment.judged if question(q).kind in ON_PAPER]
    if unknown := [q for q in only if q not in fit]:
        raise ClassError(
            f"{unknown[0]} is not a paper question of {assignment.name}; these"
            f" can: {', '.join(fit)}"
        )
    if not fit:
        raise ClassError(f"{assignment.name} asks nothing that can be answered on paper")
    rng = random.Random(f"exam\n{seed}")
    fixed = [] if only else [q for q in fit if _has_one_answer(question(q))]
    several = [q for q in fit if q not in fixed]
    if not several:
        raise ClassError(
            f"every question of {assignment.name} that can be answered on paper has one answer for"
            f" all; --only asks one all the same: {', '.join(fixed)}"
        )
    sample = set(only or rng.sample(several, min(most, len(several))))
    questions = [q for q in fit if q in sample]
    papers: list = []
    for paper in range(1, count + 1):
        beside = {t.variant.question.id: t.variant.right for t in (papers[-1] if papers else ())}
        papers.append(tuple(_task(q, assignment.points[q], seed, paper, beside) for q in questions))
    return papers, fixed


def _has_one_answer(q):
    draws = [q.variant(f"fixed {n}").right for n in range(TRIES)]
    return len({r if q.kind == "choice" else amounts(r, q.unit) for r in draws}) == 1


def write_exam(folder, name, papers, seed):
    """Write papers.html, key.html and a page for each paper; return the path of the papers."""
    sheets = [
        {"number": n, "total": number(sum(t.points for t in tasks)), "tasks": [
            {"n": i, "prompt": t.variant.fill(t.variant.question.prompt), "options": t.options,
             "unit": t.variant.question.unit, "points": number(t.points)}
            for i, t in enumerate(tasks, 1)]}
        for n, tasks in enumerate(papers, 1)
    ]  # fmt: skip
    for sheet in sheets:
        whole = page("exam_papers", title=f"Exam: {name}", sheets=[sheet])
        write_whole(folder / f"paper-{sheet['number']:02}.html", whole.encode())
    write_whole(
        folder / "papers.html", page("exam_papers", title=f"Exam: {name}", sheets=sheets).encode()
    )
    questions = [
        {"n": i, "short": short(t.variant.question.id), "points": number(t.points),
         "tolerance": t.tolerance, "why": t.variant.solution}
        for i, t in enumerate(papers[0], 1)
    ]  # fmt: skip
    keys = [{"number": n, "tasks": tasks} for n, tasks in enumerate(papers, 1)]
    whole = page("exam_key", title=f"Key: {name}", seed=seed, asked=questions, keys=keys)
    write_whole(folder / "key.html", whole.encode())
    return folder / "papers.html"


def _task(id, points, seed, paper, beside):
    q = question(id)
    for turn in range(TRIES):
        variant = q.variant(f"{seed} {paper} {turn}")
        if q.kind == "choice" or list(variant.right) != list(beside.get(id, ())):
            break
    if q.kind != "choice":
        return Task(variant, points, (), amounts(variant.right, q.unit))
    texts = list(variant.options.values())
    random.Random(f"{seed}\n{paper}\n{id}").shuffle(texts)
    options = tuple(zip(ascii_uppercase, texts, strict=False))
    right = next(letter for letter, text in options if text == variant.options[variant.right])
    return Task(variant, points, options, right)


def amounts(values, unit):
    return ", ".join(amount(value, unit, 3) for value in values)
