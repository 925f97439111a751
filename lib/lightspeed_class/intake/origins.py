"""What an instructor should know of a notebook that was handed in: for whom it was made, and who
else has it.

A released notebook names its student in its metadata, and a cell of it sets the seed of their
numbers (release.py); in one notebook for all, the student writes an id, and the cell draws by that.
One that has neither, or another's, was not made for who handed it in: `check`
in it went by other numbers than the grader, and answers that it called right are wrong. Nothing is
refused for that, but it is told. All of it is read from what the gradebook keeps, so it can be told
of any submission at any time.
"""

import contextlib
import json
import re

from lightspeed_class.gradebook.questions import named_versions
from lightspeed_class.intake.match_submissions import BY_ID, People
from lightspeed_class.notebooks import Refused, clean, code_cells

# the line of one notebook for all in which its student writes an id, and the call that draws by it
WRITTEN = re.compile(r"^STUDENT *=[ \t]*(?P<id>[^#\n]*)", re.MULTILINE)
DRAWS = "own_numbers("
OTHER_NUMBERS = "so `check` in it went by other numbers than the grader"
WORDS = {
    "another's": "It was made for {other}, but {student} handed it in. Was it copied?",
    "changed": (
        "This is not the notebook as it was released to {student}: its seed was changed,"
        f" {OTHER_NUMBERS}."
    ),
    "without": (
        "It sets no seed: its first code cell is gone, or it is not the notebook released to"
        f" {{student}} but, say, the course's own, {OTHER_NUMBERS}."
    ),
    "version": (
        "It names version {other}, which {student} was not given, so `check` in it went by other"
        " questions than the grader, which judged it by a version that {student} has."
    ),
    "named another": (
        "STUDENT in its first cell is {other}, but {student} handed it in, and it is graded by the"
        " numbers of {student}. A slip, or was it copied?"
    ),
    "named nobody": (
        "STUDENT in its first cell is {other}, which is nobody of the roster; it is graded by the"
        " numbers of {student}."
    ),
}
BY_ID_ALONE = "Found by the id in the notebook alone, which anybody could have written there."


class Origins:
    """The students for whom an assignment's notebooks were made."""

    def __init__(self, book, name):
        students, kinds = book.students(), book.kinds(name)
        self.ids = {s.id.casefold(): s.id for s in students}
        self.people = People(students)
        self.teams, self.given = book.teams(name), book.given(name)
        self.seeds = {s.id: s.seed for s in students if s.seed and True in kinds}
        # whether some version, and the latest, has the same numbers for all
        self.shared, self.latest = False in kinds, kinds[0]

    def claimed(self, content):
        """Return the student that the notebook names, if on the roster."""
        with contextlib.suppress(Refused):
            if (text := written(_code(content))) is not None:
                return self._called(text)
        try:
            about = json.loads(content.decode("utf-8-sig"))["metadata"]["lightspeed"]
            return self.ids.get(str(about["student"]).casefold(), "")
        except (ValueError, KeyError, TypeError, RecursionError):
            return ""

    def _called(self, text):
        """The one student who goes by this; "" if that is nobody, or not sure."""
        matches = self.people.named(text) if text else ()
        return next(iter(matches)) if len(matches) == 1 else ""

    def seed(self, student, content):
        """Return the seed a notebook is graded by: the student's own, or None for a shared one.

        If both kinds were released, the notebook decides: the shared one sets no seed. A notebook
        with another student's seed was not given to this student and gets no other numbers.
        """
        own = self._drawn(student, content)
        if not own or not self.shared:
            return own
        try:
            code = _code(content) if content is not None else '"LIGHTSPEED_SEED"' * self.latest
        except Refused:
            return own
        return (
            own
            if "LIGHTSPEED_SEED" in code or any(f'"{seed}"' in code for seed in self.seeds.values())
            else None
        )

    def _drawn(self, student, content):
        """The seed of a student, or that of one who hands in with them if it is in the notebook."""
        own = self.seeds.get(student)
        theirs = [self.seeds[one] for one in self.teams.get(student, ()) if one in self.seeds]
        if content is None or len(theirs) < 2:
            return own
        with contextlib.suppress(Refused):
            code = _code(content)
            if (text := written(code)) is not None:
                owner = self._called(text)
                return self.seeds.get(owner, own) if owner in self.teams[student] else own
            return next((s for s in (own, *theirs) if s and f'"{s}"' in code), own)
        return own

    def oddity(self, student, content):
        """Return ("", ""), or why the notebook is not the student's own, a key of WORDS, and whose
        it is, or which version. Raises Refused for what is not a notebook.
        """
        kind, other = self._oddity(student, content)
        releases = self.given.get(student)
        if not kind and releases and (wrong := set(named_versions(content)) - set(releases)):
            return "version", " and ".join(sorted(wrong))
        return kind, other

    def _oddity(self, student, content):
        code = _code(content)
        owner, team = self.claimed(content), self.teams.get(student, (student,))
        if (text := written(code)) is not None:
            if owner in team:
                return "", ""
            return ("named another", owner) if owner else ("named nobody", f'"{text}"')
        if owner and owner not in team:
            return "another's", owner
        theirs = [self.seeds[one] for one in team if one in self.seeds]
        if student not in self.seeds or any(f'"{seed}"' in code for seed in theirs):
            return "", ""
        other = next((id for id, seed in self.seeds.items() if f'"{seed}"' in code), "")
        if other or "LIGHTSPEED_SEED" in code:
            return ("another's" if other else "changed"), other
        return ("" if self.shared else "without"), ""

    def doubt(self, student, content):
        """Return the oddity as a sentence for the instructor, mostly "". Raises Refused."""
        kind, other = self.oddity(student, content)
        return WORDS[kind].format(student=student, other=other) if kind else ""


def written(code):
    """Return the id typed into a notebook shared by all; None for any other notebook."""
    match = WRITTEN.search(code) if DRAWS in code else None
    return match and clean(match["id"].strip().strip('"').strip())[:64]


def _code(content):
    """All code of a notebook, with double quotation marks only. Raises Refused."""
    return "\n".join(source for _, source in code_cells(content)).replace("'", '"')


def remarks(book, name):
    """Return student id -> sentences about the submission that counts, if any."""
    origins, having, texts_of = Origins(book, name), {}, {}
    _, out = book.choices(name)
    for submission in book.submissions(name):
        if not submission.refused and submission.id not in out:
            having.setdefault(submission.sha256, set()).add(submission.student)
    for student, submission in book.counting(name).items():
        if submission.refused:
            continue
        texts = [BY_ID_ALONE] if BY_ID in submission.source else []
        with contextlib.suppress(Refused):  # what the grader told the student says it
            texts.append(origins.doubt(student, book.content(submission.id)))
        if others := having[submission.sha256].difference(origins.teams[student]):
            texts.append(same_bytes(others))
        if texts := [sentence for sentence in texts if sentence]:
            texts_of[student] = texts
    return texts_of


def same_bytes(students):
    return f"The same bytes came from {' and '.join(sorted(students))}."


def told_student(book, submission, origins):
    """Return a note for the student's page if the notebook has other numbers, else ""."""
    try:
        odd, _ = (
            ("", "")
            if submission.refused
            else origins.oddity(submission.student, book.content(submission.id))
        )
    except Refused:
        return ""
    if not odd or not origins.seeds:
        return ""
    if odd == "version":
        return (
            "LIGHTSPEED_VERSION in this notebook is none that you were given; it was judged by the"
            " questions of your own: answers that `check` called right may not be. Hand in the"
            " notebook that was released to you."
        )
    if odd in ("named another", "named nobody"):
        return (
            "STUDENT in the first cell of this notebook is not you; it was judged with your"
            " numbers: answers that `check` called right with other numbers may not be. Write your"
            " own id there, run the cells from the top, and hand it in again."
        )
    what = (
        "This notebook has another student's name or seed in it"
        if odd == "another's"
        else (
            "This notebook has no seed of yours in it (the first code cell is gone or changed, or"
            " it is not your own copy)"
        )
    )
    return (
        f"{what}; it was judged with your numbers: answers that `check` called right with other"
        " numbers may not be. Put your work into your own copy and hand that in."
    )
