"""Giving an assignment out: one notebook for each student, with their own numbers and nothing that
answers them.

    released/NAME/v1/STUDENT/NAME.ipynb      what a student gets; a file once there never changes
    released/NAME/v1/NAME.ipynb              in its place, where all get one file: with the same
                                             numbers, or with those of the id that is written in it
    released/NAME/handout.csv                who has which version, for a mail merge or an upload
    released/NAME/README.txt                 how to hand it out

A notebook keeps the cells of the exercise with their ids and `check(...)` calls. Outputs are gone,
but for the prompts, which are those of the student's variant. A cell at the top says what is
needed. A first code cell tells `check` the seed, and whether to diagnose an answer or only to say
how it was read. There is no secret in it: the library is open, and a student may compute with it or
change the seed, which harms only the own self-check. Points rest on the seeds in the gradebook and
on hidden inputs.

One notebook for all (`own_numbers`) has no seed in the open: its first code cell asks who the
student is and draws the very numbers that their own notebook would have had.
"""

import ast
import hashlib
import json
import re
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from lightspeed_class.asked import Asked
from lightspeed_class.class_folder import ClassError, exercises, write_whole
from lightspeed_class.handout.handout_list import kind, write_handout
from lightspeed_class.intake.match_submissions import People
from lightspeed_class.kept_library import packed
from lightspeed_class.kept_questions import KeptQuestions, keep
from lightspeed_class.notebooks import TO_COME, asks, checks
from lightspeed_class.posed import posed
from lightspeed_class.prose import name_of
from lightspeed_class.roster import IDENTIFIERS, next_seed, spare_seeds
from lightspeed_course.practice.as_released import course_version, pack
from lightspeed_course.practice.own_numbers import SALT, seal
from lightspeed_course.practice.questions import INCIDENT, UnknownQuestion, question

# the ids of the cells that are ours
ABOUT, SETUP, ASKED, SHEETS = "class-about", "class-setup", "class-asked", "class-incidents"
REVEALING = ("cards", "reveal", "solution", "calibration")
NEEDS = "Install the course (its README: make lab), then open this file in that JupyterLab."
ABOUT_CELL = """\
> {made}This notebook needs the course. {needs}
> Run the cells from the top, write your answers, save, and hand in this file."""
OWN = """\
This copy was made for {student}: its questions have numbers of your own, and `check` takes its
# own from this seed.
# What counts for your points is the seed that your instructor has."""
SHARED = "This copy is for all of the class: its questions have the same numbers for everybody."
FIRST_CELL = """\
# {whose}{told}
import os

os.environ.update({settings})
try:
    import lightspeed
except ModuleNotFoundError:
    raise ModuleNotFoundError("This notebook needs the course. {needs}") from None"""
ONE_CELL = """\
# Write your id in this class between the quotation marks, then run the cells from the top: your
# questions have numbers of your own.
# What counts for your points are the numbers of the student who hands this notebook in.{told}
STUDENT = ""

import os

os.environ.update({settings})
try:
    from lightspeed_course import own_numbers
except ModuleNotFoundError:
    raise ModuleNotFoundError("This notebook needs the course. {needs}") from None
NUMBERS = os.environ["LIGHTSPEED_SEED"] = own_numbers(STUDENT, "{sealed}")"""
ASKED_CELL = '''\
# What was asked when this was released: a course of another version sees that it asks otherwise.
import os

os.environ["LIGHTSPEED_ASKED"] = """
{asked}
"""'''
SHEETS_CELL = """\
# What measurements of your job would show; `check` opens those that you buy. The truth is not in
# here, and was drawn for you alone.
from lightspeed_course import incident_sheet
"""
JUDGES = re.compile(
    r"`check` says whether it is right\s+and,\s+if\s+not,\s+what\s+may\s+have\s+happened"
)
READS = "`check` says how your answer was read, and it is\njudged once you hand it in"


@dataclass(frozen=True)
class Released:
    """The result of a release. `given`: ids of students with new files; `versions`: student -> the
    versions given to them, latest last.
    """

    name: str
    folder: Path
    version: int
    given: tuple
    versions: dict
    added: tuple  # questions that the version before did not have
    removed: tuple
    points: tuple  # of the whole, before and now
    repriced: tuple  # (question, points before, points now)

    @property
    def students(self):
        return len(self.versions)


def release(course, book, name, due=None, one=False, progress=lambda line: None):
    """Make the notebooks of an assignment, an exercise of the course or a path; `due` in seconds
    since 1970. `one`: one notebook for all, which draws each student's numbers from their id;
    `progress` gets a line on how long that takes.

    Students who have this version keep their files. A changed assignment is a new version for all
    students, in its own folder; so is one notebook for all once it must know more students.
    `release_to` gives one student an existing version. Raises ClassError.
    """
    if one and not course.variants:
        raise ClassError(
            "class.toml says variants = false: all get one notebook with the same numbers anyway."
            " Leave --one-notebook out, or set variants = true"
        )
    path = find(name)
    assignment = course.assignment(path)
    name = assignment.name
    students = _seeded(book)
    if name in book.assignments():
        KeptQuestions(book, name)  # what an earlier course released is kept before it is replaced
    state = _state(book, name)
    # The same seed for all versions: what differs is then the assignment, a question of the
    # library, class.toml, or who has to be known.
    any_seed = "any" if course.variants and not one else None
    sealed = _sealed(book, name, progress, aliases=False) if one else ""
    trial = notebook_for(path, any_seed, "any", course.feedback, book.secret, sealed)
    mark = hashlib.sha256(trial).hexdigest()
    marks = [v["mark"] for v in state["versions"]]
    now = assignment.points
    before = book.assignment(name).points if name in book.assignments() else now
    if mark not in marks:
        state["versions"].append({"mark": mark, "at": time.time()})
    version = marks.index(mark) + 1 if mark in marks else len(state["versions"])
    if one and not _is_whole(_file(course, name, version)):  # once for all of them: a name is slow
        sealed = _sealed(book, name, progress)
    everybody = [s.seed for s in book.students() if s.seed]
    book.add_assignment(assignment, course.variants, str(version))
    if not book.libraries(name, str(version)):
        book.keep_library(name, str(version), [packed()], path.read_bytes())
    keep(
        book, name, str(version), [*everybody, *spare_seeds(book)] if course.variants else [None]
    )  # fmt: skip
    if due is not None:
        book.setting(f"due {name}", repr(float(due)))
    receivers, own = [], course.variants and not one
    for student in students:
        releases = state["students"].get(student.id, [])
        is_new = _write(course, book, name, path, student, version, own, sealed)
        if is_new or (version not in releases and not own):
            receivers.append(student.id)
        state["students"][student.id] = [*(v for v in releases if v != version), version]
    # Last: a release that was killed is then one that has not been.
    versions = _gave(course, book, name, state)
    additions, removals = sorted(now.keys() - before), sorted(before.keys() - now)
    points = (sum(before.values()), sum(now.values()))
    repriced = ((q, before[q], p) for q, p in now.items() if before.get(q, p) != p)
    return Released(
        name, course.released(name), version, tuple(receivers), versions, tuple(additions),
        tuple(removals), points, tuple(repriced),
    )  # fmt: skip


def release_to(course, book, name, student, version=None):
    """Give one student a released version, by default the latest, without changing other students'
    files; return its path. A late joiner's numbers were drawn at the release, with everyone's.
    Raises ClassError.
    """
    state = _state(book, name)
    count = len(state["versions"])
    version = version or count
    if not 1 <= version <= count:
        raise ClassError(f"{name} has no version {version}; expected one from 1 to {count}")
    _seeded(book)
    one, shared = book.student(student), _file(course, name, version)
    seeds = book.asked_seeds(name, str(version))
    if own := not shared.exists():
        if one.seed not in seeds and packed() not in book.libraries(name, str(version)):
            raise ClassError(
                f"version {version} of {name} was drawn by another version of the course, and its"
                f" spare numbers are used up: lightspeed class release {name} makes a new version"
            )
        keep(book, name, str(version), [one.seed])
        with tempfile.TemporaryDirectory() as folder:
            exercise = Path(folder, f"{name}.ipynb")
            exercise.write_bytes(book.exercise(name, str(version)) or find(name).read_bytes())
            _write(course, book, name, exercise, one, version, own)
    versions = state["students"].get(student, [])
    state["students"][student] = [*(v for v in versions if v != version), version]
    _gave(course, book, name, state)
    return shared.parent / student / shared.name if own else shared


def gaps(course, book):
    """Return (assignment, whether it is one notebook that asks for the id, ids of the students that
    it was not given to), for each released assignment that somebody lacks.
    """
    rows = []
    for name in book.assignments():
        state = _state(book, name)
        ids = [s.id for s in book.students() if not s.left and s.id not in state["students"]]
        if state["versions"] and ids:
            shared = _file(course, name, len(state["versions"]))
            rows.append((name, kind(shared) == "one", ids))
    return rows


def _state(book, name):
    return json.loads(book.setting(f"release {name}") or '{"versions": [], "students": {}}')


def _seeded(book):
    """The students of the class, each with a seed. Raises ClassError."""
    students = [s for s in book.students() if not s.left]
    if not students:
        raise ClassError(
            "there are no students yet: fill in roster.csv and run lightspeed class roster"
            " roster.csv"
        )
    for student in students:
        if not student.seed:
            book.add_student(student.id, student.name, seed=next_seed(book), **student.details)
    return [book.student(s.id) for s in students]


def _write(course, book, name, path, student, version, own, sealed=""):
    """Write a student's notebook, or that of all, unless it is there; whether it was written."""
    file = _file(course, name, version, student.id if own else "")
    if _is_whole(file):
        return False
    seed, whose = (student.seed, student.id) if own else (None, "")
    data = book.asked(name, str(version), student.seed if course.variants else None)
    content = notebook_for(
        path, seed, whose, course.feedback, book.secret, sealed, str(version), data
    )
    write_whole(file, content)
    return True


def _file(course, name, version, student=""):
    return course.released(name) / f"v{version}" / student / f"{name}.ipynb"


def _is_whole(file):
    return file.exists() and file.stat().st_size > 0  # a power cut may leave 0 bytes


def _gave(course, book, name, state):
    """Keep who was given what, list it in handout.csv; student -> versions, the last one last."""
    book.setting(f"release {name}", json.dumps(state))
    versions = {id: tuple(releases) for id, releases in state["students"].items()}
    students = [s for s in book.students() if s.id in versions and not s.left]
    write_handout(course, name, students, versions)
    return {s.id: versions[s.id] for s in students}


def _sealed(book, name, progress, aliases=True):
    """The seeds of all students, under each name that only one of them goes by. Who has left stays
    in it: what was given out is not made anew for that.
    """
    everybody, seeds = book.students(), {}
    people = People(everybody)
    for student in everybody:
        names = [student.id]
        names += [student.details.get(key, "") for key in IDENTIFIERS] if aliases else []
        names += [name.partition("@")[0] for name in names if "@" in name and aliases]
        for text in filter(None, names):
            if student.seed and people.named(text) == {student.id}:
                seeds[text.strip().casefold()] = student.seed
    # a salt that anybody may know, and that tells nothing of the secret
    salt = hashlib.sha256(f"salt\n{book.secret}\n{name}".encode()).digest()[:SALT]
    return seal(seeds, salt, progress)


def spoken(name):
    """Return the name as the folders have it: 2 is 02, and 02_roofline.ipynb is 02_roofline."""
    name = Path(name).name.removesuffix(".ipynb")
    return f"{int(name):02}" if name.isdecimal() else name


def find(name):
    """Find the notebook of an exercise by name, number or path. Raises ClassError."""
    path, notebooks = Path(name), exercises()
    if path.suffix != ".ipynb" or not path.is_file():
        stem = spoken(name) if path.name == str(name) else str(name)
        matching = [e for e in notebooks if e.stem == stem] or [
            e for e in notebooks if e.stem.startswith(stem)
        ]
        # a number means a chapter's first exercise, as 02_roofline beside 02_roofline_2_kernels
        first = min((e.stem for e in matching), key=len, default="")
        matching = [e for e in matching if e.stem == first or not e.stem.startswith(first)]
        if len(matching) != 1:
            what = "notebook" if path.suffix == ".ipynb" else "one assignment"
            raise ClassError(
                f"there is no {what} {name}; there are {', '.join(e.stem for e in notebooks)}, or a"
                " path to a notebook"
            )
        path = matching[0]
    if path.resolve().parent.name == "solutions":
        raise ClassError(f"{name} holds the solutions; release exercises/{path.name}")
    try:
        cells = json.loads(path.read_text("utf-8"))["cells"]
        has_questions = any('check("' in "".join(c["source"]) or name_of(c) for c in cells)
        whole = all(isinstance(cell["id"], str) for cell in cells)
    except (OSError, json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError):
        raise ClassError(
            f"{name} is not a notebook whose cells have ids; save it from JupyterLab"
        ) from None
    except ValueError as error:
        raise ClassError(f"{name}: {error}") from None
    if not (has_questions and whole):
        raise ClassError(
            f'{name} asks nothing: an assignment has cells that end with check("question",'
            " variable), or Markdown cells with a tag prose:NAME"
        )
    return path


def notebook_for(
    path, seed, student="", feedback="full", secret="", sealed="", version="", data=None
):
    """The bytes of a student's notebook: the exercise at `path` with the variants that `seed` draws
    (None: canonical ones); what an incident hides, `secret` draws with it. `sealed`: the seeds of
    all (own_numbers), of which it draws by the id that is written in it. `version`: which release
    it is; with it, the notebook holds what `data` (of the gradebook) asks, for `check` to compare.

    The same arguments give the same bytes. Raises ClassError for a question that the library does
    not have.
    """
    path = Path(path)
    notebook = json.loads(path.read_text("utf-8"))
    try:
        prompts = {id: data["prompt"] for id, data in (data or {}).items()}
        cells = [
            _cell(cell, seed, feedback, secret, bool(sealed), prompts) for cell in notebook["cells"]
        ]
        cells = [cell for cell in cells if cell]
        incidents = [id for id in _asked(cells) if question(id).kind == INCIDENT]
    except UnknownQuestion as error:
        raise ClassError(
            f"{path.name}: {error}. Is it a question of your own? Then name its file: --questions"
            " FILE"
        ) from None
    if incidents and sealed:
        raise ClassError(
            f"{path.name} asks an incident, and each student's own stands in their notebook:"
            " release it without --one-notebook"
        )
    code = [i for i, cell in enumerate(cells) if cell["cell_type"] == "code"]
    first = code[0] if code else len(cells)
    settings = {"LIGHTSPEED_SEED": seed, "LIGHTSPEED_CLASS": feedback}
    settings |= {"LIGHTSPEED_VERSION": version} if version else {}
    text = ", ".join(
        f"{key}={json.dumps(value)}" for key, value in settings.items() if value is not None
    )
    release_note = (
        "\n# In this class `check` says how an answer was read, and not whether it is right."
        if feedback == "format"
        else ""
    )
    whose = OWN.format(student=student or "you") if seed else SHARED
    cell = ONE_CELL if sealed else FIRST_CELL
    setup = cell.format(whose=whose, settings=text, told=release_note, needs=NEEDS, sealed=sealed)
    ours = [_ours(SETUP, setup)]
    if version:
        questions = [id for id in _asked(cells) if question(id).kind != INCIDENT]
        posed_as = pack(
            [question(id) for id in questions] if sealed else [Asked(data[id]) for id in questions]
        )
        ours.append(_ours(ASKED, ASKED_CELL.format(asked=posed_as), hidden=True))
    if incidents:
        sheets = [
            f'\nincident_sheet("{id}", """\n{posed(id, seed, secret).sheet.sealed()}\n""")\n'
            for id in incidents
        ]
        ours.append(_ours(SHEETS, SHEETS_CELL + "".join(sheets).rstrip(), hidden=True))
    cells[first:first] = ours
    intro = ABOUT_CELL.format(made=f"Made for `{student}`. " if student else "", needs=NEEDS)
    cells.insert(0, {"cell_type": "markdown", "id": ABOUT, "metadata": {}, "source": intro})
    about = {"assignment": path.stem, "student": student}
    about |= {"version": version, "course": course_version()} if version else {}
    names = ("kernelspec", "language_info")
    metadata = {key: notebook["metadata"][key] for key in names if key in notebook["metadata"]}
    metadata["lightspeed"] = about
    whole = {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return (json.dumps(whole, indent=1, ensure_ascii=False) + "\n").encode()


def _ours(id, source, hidden=False):
    metadata = {"jupyter": {"source_hidden": True}} if hidden else {}
    empty = {"execution_count": None, "outputs": []}
    return {"cell_type": "code", "id": id, "metadata": metadata, "source": source, **empty}


def _asked(cells):
    """The questions that `check` is called for, in order."""
    code = [cell["source"] for cell in cells if cell["cell_type"] == "code"]
    return dict.fromkeys(id for source in code for id, _ in checks(source))


def _cell(cell, seed, feedback, secret, one, prompts):
    """A cell as a student gets it; None for one that would show answers. In one for all, a question
    is asked only after the numbers are drawn. `prompts`: those that are kept.
    """
    source = "".join(cell["source"])
    metadata = {k: cell["metadata"][k] for k in ("tags", "jupyter") if k in cell["metadata"]}
    plain = {"cell_type": cell["cell_type"], "id": cell["id"], "metadata": metadata}
    plain["source"] = source
    if cell["cell_type"] != "code":
        return {**plain, "source": JUDGES.sub(READS, source)} if feedback == "format" else plain
    calls = [
        (n.func.id, n.args)
        for n in ast.walk(ast.parse(source))
        if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)
    ]
    if any(name in REVEALING for name, _ in calls):
        return None
    texts = [
        TO_COME if one else prompts.get(id) or posed(id, seed, secret).prompt for id in asks(source)
    ]
    if one:
        plain["source"] = re.sub(r'\bask\(("[\w.]+")\)', r"ask(\1, NUMBERS)", source)
    contents = [{"text/markdown": text, "text/plain": text} for text in texts]
    outputs = [{"output_type": "display_data", "metadata": {}, "data": data} for data in contents]
    return {**plain, "execution_count": None, "outputs": outputs}
