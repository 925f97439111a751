"""The questions of an assignment as each student was asked them: drawn once, at the release, and
from then on read from the gradebook.

A class that an earlier course released has nothing kept. It is drawn at first touch, after a look
at the released notebooks: where these show other prompts than the course that is installed would
pose, nothing is kept, and it is said which.
"""

import contextlib
import json

from lightspeed_class.asked import Asked, Unkept, frozen, hidden_sets, thawed
from lightspeed_class.kept_library import packed
from lightspeed_class.notebooks import TO_COME, asks
from lightspeed_class.posed import posed
from lightspeed_course.practice.questions import INCIDENT, UnknownQuestion, is_ours, question
from lightspeed_course.practice.variants import Variant

FEW = 5
CANNOT = "the course that is installed cannot ask it for these numbers ({})"
HIDDEN = "hidden"  # stands for a seed where the hidden inputs are kept, which all share


class KeptQuestions:
    """The questions asked in an assignment. Raises Unkept if they can't be recovered."""

    def __init__(self, book, name):
        self.book, self.name, self._hidden, self._libraries = book, name, {}, {}
        self._version_of = book.versions_of(name)
        if not book.asked_seeds(name, book.version(name)):
            self._first_touch()
        if not book.libraries(name, latest := book.version(name)):
            book.keep_library(name, latest, [packed()])

    def version(self, submission):
        """Return the release of a submission; the latest if it names none."""
        return self._version_of(submission) if submission else self.book.version(self.name)

    def assignment(self, submission=None):
        """Return the questions of a submission's release, with today's points."""
        return self.book.assignment(self.name, self.version(submission))

    def data(self, submission, seed, at=None):
        """Return the data from which `variants` rebuilds the questions, as of a time."""
        version = self.version(submission)
        if (questions := self.book.asked(self.name, version, seed, at)) is None:
            # nothing was given out with these numbers
            keep(self.book, self.name, version, [seed])
            questions = self.book.asked(self.name, version, seed)
        if (version, at) not in self._hidden:
            self._hidden[version, at] = self.book.asked(self.name, version, HIDDEN, at)
            self._libraries[version, at] = self.book.libraries(self.name, version, at)
        return {
            "questions": questions,
            "hidden": self._hidden[version, at] or {},
            "libraries": self._libraries[version, at],
            "files": self.book.beside(submission.id) if submission else {},
        }

    def asked(self, submission, seed, at=None):
        """Return question -> variant, prose included."""
        variants_of = {id: v for id, (v, *_) in variants(self.data(submission, seed, at)).items()}
        return variants_of | self.assignment(submission).prose

    def changed(self):
        """Return the questions that the installed course asks differently from the latest release,
        or no longer has, judged by a few students. Questions of unread files are left out.
        """
        version, ids = self.book.version(self.name), set()
        secret = self.book.secret
        for seed in sorted(self.book.asked_seeds(self.name, version) - {HIDDEN}, key=str)[:FEW]:
            for id, data in self.book.asked(self.name, version, seed).items():
                if id in ids or not is_here(id):
                    continue
                if correction(data, seed, secret) != ("", None):
                    ids.add(id)
        return sorted(ids)

    def _first_touch(self):
        released = json.loads(self.book.setting(f"release {self.name}") or "{}")
        if wrong := _otherwise(self.book, self.name, released):
            raise Unkept(
                f"{self.name} was released by an earlier version of the course, and the one that"
                f" is installed asks {', '.join(wrong)} differently from the released notebooks."
                " Nothing was graded. Install the course as it was then, run lightspeed class grade"
                f" {self.name}, which keeps what was asked, and update after that"
            )
        seeds = [s.seed for s in self.book.students() if s.seed]
        kinds = self.book.kinds(self.name)
        keep(
            self.book, self.name, self.book.version(self.name),
            [*seeds * (True in kinds), *[None] * (False in kinds)],
        )  # fmt: skip


def is_here(id):
    """Whether a question belongs to the course, or to a file that was loaded."""
    if is_ours(id) or id.partition(".")[0] == INCIDENT:
        return True
    with contextlib.suppress(UnknownQuestion):
        return bool(question(id))
    return False


def variants(data):
    """Return question -> the variants an answer is checked against, the best verdict counting: the
    original and, after a correction that takes no points, the one before it.
    """
    variants_of = {}
    for id, stored in data["questions"].items():
        before = stored.get("also", ())
        first, *others = data["hidden"].get(id) or [None] * (1 + len(before))
        earlier = (Asked(*each) for each in zip(before, others, strict=True))
        variants_of[id] = [thawed(stored, first), *earlier]
    return variants_of


def keep(book, name, version, seeds):
    """Draw and save a version's questions for these seeds; saved ones stay. Raises Unkept."""
    assignment, seeds_before = book.assignment(name, version), book.asked_seeds(name, version)
    try:
        draws = {
            seed: {id: frozen(posed(id, seed, book.secret)) for id in assignment.judged}
            for seed in dict.fromkeys(seeds)
            if seed not in seeds_before
        }
        if HIDDEN not in seeds_before:
            functions = [id for id in assignment.judged if question(id).kind == "function"]
            draws[HIDDEN] = {
                id: [hidden_sets(question(id).variant(), book.secret)] for id in functions
            }
    except UnknownQuestion as error:
        raise Unkept(
            f"{name} was released by another version of the course: {error}. Install that version"
            f" and run lightspeed class grade {name}, which keeps what was asked"
        ) from None
    book.keep_asked(name, version, draws)


def correction(data, seed, secret):
    """Return (why the current question can't grade the original one, None), or ("", the data with
    which it does, with the original numbers and words); ("", None) if both are the same.
    """
    id, before = data["question"]["id"], {k: v for k, v in data.items() if k != "also"}
    try:
        q = question(id)
    except UnknownQuestion:
        if is_here(id):
            return "the course that is installed does not have it", None
        return "it is of a file of your own: --questions FILE reads it", None
    except Exception as error:  # of a file that somebody is at work on
        return CANNOT.format(type(error).__name__), None
    if q.kind == INCIDENT:
        same = _plain(frozen(posed(id, seed, secret))) == before
        return ("" if same else "an incident is drawn anew, and not corrected"), None
    if q.kind != data["question"]["kind"] or set(q.parameters) != set(data["values"]):
        return "it asks for something else now", None
    if q.unit != data["question"]["unit"]:
        return f"it asks in {q.unit or 'plain numbers'} now", None
    try:
        variant = Variant(q, data["seed"], data["values"])
        if not variant.is_sound():
            return "it does not ask for these numbers now", None
        now = _plain(frozen(variant))
    except Exception as error:
        return CANNOT.format(type(error).__name__), None
    same = now == before
    return "", None if same else now | {"prompt": data["prompt"]}


def correct(book, name, keep_better=True):
    """Grade submissions by the current questions, with the original numbers and words; return (the
    questions graded differently from now on, question -> why it can't be). With `keep_better`, an
    answer keeps what it earned before. Call it within a KeptQuestions' class folder.
    """
    changed, stuck = set(), {}
    for version in set(map(book.versions_of(name), book.submissions(name))):
        draws = {}
        for seed in book.asked_seeds(name, version) - {HIDDEN}:
            data_of = book.asked(name, version, seed)
            for id, data in data_of.items():
                why, now = correction(data, seed, book.secret)
                if why:
                    stuck[id] = why
                before = {k: v for k, v in data.items() if k != "also"}
                if now and now != before:
                    also = [before, *data.get("also", ())] * keep_better
                    draws.setdefault(seed, dict(data_of))[id] = now | {"also": also}
                    changed.add(id)
        if hidden := dict(book.asked(name, version, HIDDEN) or {}):
            for id in changed & hidden.keys():
                sets = hidden_sets(question(id).variant(), book.secret)
                hidden[id] = [sets, *hidden[id] * keep_better]
            draws[HIDDEN] = hidden
        if changed:
            book.keep_asked(name, version, draws)
            earlier = [one for one in book.libraries(name, version) if one != packed()]
            book.keep_library(name, version, [packed(), *earlier * keep_better])
    if changed:
        book.setting(f"corrected {name}", f"{float(book.setting(f'corrected {name}') or 0) + 1:g}")
    return sorted(changed), stuck


def _plain(data):
    return json.loads(json.dumps(data))


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
                for id, prompt in _shown(json.loads(file.read_text("utf-8")))
                if _prompt(id, seed, book.secret) != prompt
            }
    return sorted(wrong)


def _shown(notebook):
    """(question, prompt) of each that a released notebook shows; one for all shows none."""
    for cell in notebook["cells"]:
        prompts = ["".join(o["data"]["text/plain"]) for o in cell.get("outputs", ())]
        pairs = zip(asks("".join(cell["source"])), prompts, strict=False) if prompts else ()
        yield from (pair for pair in pairs if pair[1] != TO_COME)


def _prompt(id, seed, secret):
    try:
        return posed(id, seed, secret).prompt
    except UnknownQuestion:
        return None
