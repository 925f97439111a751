"""The questions of an assignment as each student was asked them: drawn once, at the release, and
from then on read from the gradebook.

A class that an earlier course released has nothing kept. It is drawn at first touch, after a look
at the released notebooks: where these show other prompts than the course that is installed would
pose, nothing is kept, and it is said which.
"""

from __future__ import annotations

import json

from lightspeed_class.asked import Asked, Unkept, frozen, hidden_sets, thawed
from lightspeed_class.posed import posed
from lightspeed_course.practice.questions import UnknownQuestion, question

HIDDEN = "hidden"  # stands for a seed where the hidden inputs are kept, which all share


class KeptQuestions:
    """What was asked in an assignment. Raises Unkept if that can't be known any more."""

    def __init__(self, book, name):
        self.book, self.name, self._hidden = book, name, {}
        if not book.asked_seeds(name, book.version(name)):
            self._first_touch()

    def version(self, submission):
        """The release that a submission is of; the latest without one."""
        return self.book.version(self.name, submission.version if submission else None)

    def assignment(self, submission=None):
        """What the release of a submission asked, for the points of now."""
        return self.book.assignment(self.name, self.version(submission))

    def data(self, submission, seed, at=None):
        """What `variants` makes the questions of, for another process: as kept at a time."""
        version = self.version(submission)
        if (questions := self.book.asked(self.name, version, seed, at)) is None:
            # nothing was given out with these numbers
            keep(self.book, self.name, version, [seed])
            questions = self.book.asked(self.name, version, seed)
        if version not in self._hidden:
            self._hidden[version] = self.book.asked(self.name, version, HIDDEN)
        return {"questions": questions, "hidden": self._hidden[version] or {}}

    def asked(self, submission, seed, at=None):
        """Question -> variant, prose among them."""
        asked = {id: v for id, (v, *_) in variants(self.data(submission, seed, at)).items()}
        return asked | self.assignment(submission).prose

    def changed(self):
        """The questions that the course that is installed asks otherwise than the latest release
        did, or has no more.
        """
        version = self.book.version(self.name)
        seeds = self.book.asked_seeds(self.name, version) - {HIDDEN}
        kept = {seed: self.book.asked(self.name, version, seed) for seed in seeds}
        return sorted({
            id
            for seed, questions in kept.items()
            for id, data in questions.items()
            if _now(id, seed, self.book.secret) != {k: v for k, v in data.items() if k != "also"}
        })  # fmt: skip

    def _first_touch(self):
        released = json.loads(self.book.setting(f"release {self.name}") or "{}")
        if wrong := _otherwise(self.book, self.name, released):
            raise Unkept(
                f"{self.name} was released by an earlier version of the course, and the one that"
                f" is installed asks {', '.join(wrong)} otherwise than the released notebooks show."
                " Nothing was graded. Install the course as it was then, run lightspeed class grade"
                f" {self.name}, which keeps what was asked, and update after that"
            )
        seeds = [s.seed for s in self.book.students() if s.seed]
        kinds = self.book.kinds(self.name)
        keep(
            self.book, self.name, self.book.version(self.name),
            [*seeds * (True in kinds), *[None] * (False in kinds)],
        )  # fmt: skip


def variants(data):
    """Question -> the variants by which an answer is judged, and the better verdict counts: what
    was asked and, after a correction that takes no points, what it was before.
    """
    hidden = data["hidden"]
    return {
        id: [
            thawed(kept, hidden.get(id)),
            *(Asked(k, hidden.get(id)) for k in kept.get("also", ())),
        ]
        for id, kept in data["questions"].items()
    }


def keep(book, name, version, seeds):
    """Draw what these seeds ask in a version, and keep it; what is kept already stays. Raises
    Unkept.
    """
    assignment, had = book.assignment(name, version), book.asked_seeds(name, version)
    try:
        drawn = {
            seed: {id: frozen(posed(id, seed, book.secret)) for id in assignment.judged}
            for seed in dict.fromkeys(seeds)
            if seed not in had
        }
        if HIDDEN not in had:
            functions = [id for id in assignment.judged if question(id).kind == "function"]
            drawn[HIDDEN] = {
                id: hidden_sets(question(id).variant(), book.secret) for id in functions
            }
    except UnknownQuestion as error:
        raise Unkept(
            f"{name} was released by another version of the course: {error}. Install that version"
            f" and run lightspeed class grade {name}, which keeps what was asked"
        ) from None
    book.keep_asked(name, version, drawn)


def _now(id, seed, secret):
    """What the course that is installed would ask; None if it does not."""
    try:
        return json.loads(json.dumps(frozen(posed(id, seed, secret))))
    except UnknownQuestion:
        return None


def _otherwise(book, name, released):
    """The questions of which a released notebook shows another prompt than the one drawn now."""
    folder, wrong = book.path.parent / "released" / name, set()
    for student, versions in released.get("students", {}).items():
        own = folder / f"v{versions[-1]}" / student / f"{name}.ipynb"
        file = own if own.is_file() else folder / f"v{versions[-1]}" / f"{name}.ipynb"
        if file.is_file():
            seed = book.student(student).seed if file == own else None
            wrong |= {
                id
                for id, shown in _shown(json.loads(file.read_text("utf-8")))
                if _prompt(id, seed, book.secret) != shown
            }
    return sorted(wrong)


def _shown(notebook):
    """(question, prompt) of each that a released notebook shows; one for all shows none."""
    from lightspeed_class.handout.release import TO_COME, asks

    for cell in notebook["cells"]:
        shown = ["".join(o["data"]["text/plain"]) for o in cell.get("outputs", ())]
        pairs = zip(asks("".join(cell["source"])), shown, strict=False) if shown else ()
        yield from (pair for pair in pairs if pair[1] != TO_COME)


def _prompt(id, seed, secret):
    try:
        return posed(id, seed, secret).prompt
    except UnknownQuestion:
        return None
