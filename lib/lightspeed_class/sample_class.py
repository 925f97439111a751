"""A class that never was: submissions with right answers and with every mistake the course knows,
to try the tools on.

Nothing in it is typed: right answers and those of each misconception are computed by the functions
of the question bank, slips by the factors that the checker knows. The same call writes the same
bytes.
"""

import csv
import io
import json
import os
import random
import re
import zipfile
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from nbformat.v4 import new_code_cell

from lightspeed.units import Q
from lightspeed_class.class_folder import write_whole
from lightspeed_class.handout.release import notebook_for
from lightspeed_course.practice.questions import question
from lightspeed_course.practice.slips import factors

DUE = datetime(2026, 3, 2, 12, tzinfo=UTC).timestamp()
DAY = 86400
# what archives of Canvas and Moodle give as the time of all their files
DOWNLOADED = (2026, 3, 6, 9, 0, 0)
# Made up; no two of them are anybody's.
GIVEN = ("Ailvo", "Brénu", "Çarmi", "Dovrel", "Élumi", "Fenzo", "Gøvi", "Hašnu", "Ivolo", "Jørm")
FAMILY = (
    "Askelmoor", "Brunovar", "Castelquin", "Dôrabel", "O'Fenwyck", "Grünhalm", "Łomirek",
    "Nakavé-Sol", "Пелинар", "de la Torvane", "凪嶺",
)  # fmt: skip
COLUMNS = ("id", "name", "email", "section", "canvas_id", "sis_user_id", "sis_login_id")
# What the first students did besides answering; the others only make mistakes.
STORIES = (
    "right", "rounded", "unlucky", "unfinished", "crashed", "endless", "hostile", "late", "twice",
    "torn", "missing",
)  # fmt: skip
MORE = (
    "misconception", "misconception", "magnitude", "slip", "misconception", "magnitude",
    "unanswered", "dimension",
)  # fmt: skip
ODD = 1.7  # a factor that no misconception and no slip leaves: several students share it


@dataclass
class Sample:
    """A student: submissions ([(seconds, bytes)], oldest first) and the expected verdicts."""

    id: str
    name: str
    story: str
    files: list = field(default_factory=list)
    kinds: dict = field(default_factory=dict)


def roster(students=30):
    """Rows of a roster, as dicts; addresses end in a domain that nobody can own."""
    rows = []
    for i in range(students):
        # the lengths have no common divisor: every pair comes once before one comes again
        again = i // (len(GIVEN) * len(FAMILY))
        name = f"{GIVEN[i % len(GIVEN)]} {FAMILY[i % len(FAMILY)]}" + f" {again + 1}" * bool(again)
        id = f"s{i + 1:03}"
        cells = id, name, f"{id}@example.org", "AB"[i % 2], str(4001 + i), f"U{i + 1:05}", id
        rows.append(dict(zip(COLUMNS, cells, strict=True)))
    return rows


def make_roster(path, students=30):
    """Write roster.csv."""
    _table(path, COLUMNS, roster(students))


def make_sample(folder, released, students=30, seeds=None):
    """Write a roster and the submissions of an assignment; the list of Sample, by student.

    `released`: the path of the assignment's notebook. `seeds`: a function of the student's id that
    gives the seed of the variants, as `book.seed(name, id)`; without it all have the canonical
    values. Made in `folder`:

        roster.csv             id, name, email, section and Canvas's identifiers
        canvas.zip             as Canvas > assignment > Download Submissions gives it
        moodle.zip             as Moodle > assignment > Download all submissions gives it
        moodle.csv             its grading worksheet
        plain/STUDENT/...      the files alone; when they were handed in is their time
    """
    folder, name = Path(folder), Path(released).stem
    rows = roster(students)
    people = [
        Sample(row["id"], row["name"], STORIES[i] if i < len(STORIES) else "mistakes")
        for i, row in enumerate(rows)
    ]
    seed = {p.id: seeds(p.id) if seeds else None for p in people}
    notebooks = {p.id: _Notebook(notebook_for(released, seed[p.id], p.id)) for p in people}
    variants = {
        p.id: {q: question(q).variant(seed[p.id]) for q in notebooks[p.id].asked} for p in people
    }
    mistakes = _deal(people, variants, random.Random(f"sample\n{name}\n{students}"))
    for number, person in enumerate(people):
        own = notebooks[person.id], variants[person.id], mistakes.get(person.id, {})
        _fill(person, *own, DUE - DAY * (1.5 + number % 5))
    make_roster(folder / "roster.csv", students)
    _canvas(folder / "canvas.zip", people, rows, name)
    _moodle(folder / "moodle.zip", folder / "moodle.csv", people, rows, name)
    _plain(folder / "plain", people, name)
    return people


WARNING = 'import warnings\n\nwarnings.warn("this is only a warning")'
ENDLESS = "while True:\n    pass"
CRASHING = "print(undefined_name)"
HOSTILE = """\
import os

from lightspeed_course import practice

practice.check = check = lambda *_: "full marks"
for place in ("/etc/passwd", os.path.expanduser("~"), "gradebook.sqlite"):
    try:
        print(os.listdir(place) if os.path.isdir(place) else open(place).read())
    except OSError as error:
        print(error)
os._exit(0)
"""


class _Notebook:
    """A released notebook to write answers into; kernels are left as they are."""

    def __init__(self, content):
        self.content = json.loads(content)
        self.places = {}  # question -> (cell, variable)
        for cell in self.content["cells"]:
            for id, variable in (
                re.findall(r'check\("((?!puzzle\.)[\w.]+)", (\w+)\)', cell["source"])
                if cell["cell_type"] == "code"
                else ()
            ):
                self.places[id] = cell, variable

    @property
    def asked(self):
        return list(self.places)

    @property
    def bytes(self):
        return json.dumps(self.content, ensure_ascii=False, indent=1).encode()

    def answer(self, id, code):
        """Put code in place of the dots: an expression, or the body of a function."""
        cell, variable = self.places[id]
        stub = r"^    \.\.\.$" if question(id).kind == "function" else rf"(?<=^{variable} = )\.\.\."
        cell["source"] = re.sub(stub, lambda _: code, cell["source"], count=1, flags=re.MULTILINE)

    def before(self, id, code):
        """Put code at the start of the cell of a question."""
        cell, _ = self.places[id]
        cell["source"] = f"{code}\n{cell['source']}"

    def be_unlucky(self, stubs):
        """What honest people do to notebooks: a warning, no ids, empty exercises at the end."""
        cells = self.content["cells"]
        cells.insert(0, dict(new_code_cell(WARNING)))
        cells += [cell for cell, _ in stubs.places.values()]
        for cell in cells:
            cell.pop("id", None)
        self.content["nbformat_minor"] = 4


# What is answered


def _deal(people, variants, rng):
    """Student -> {question: (kind, name, code)}: each misconception is made by somebody, more by
    the weak and on hard questions, as a report should see.
    """
    makers = [p for p in people if p.story in ("mistakes", "late", "twice")]
    skill = {p.id: rng.random() for p in makers}
    by_maker = {p.id: {} for p in makers}
    for id in next(iter(variants.values())):
        slips = question(id).misconceptions
        count = min(
            len(makers), max(len(slips) + 1, round(len(makers) * (0.15 + 0.5 * rng.random())))
        )
        makers.sort(key=lambda p: skill[p.id] + 0.8 * rng.random())
        worst = sorted(makers[:count], key=lambda _: rng.random())
        for turn in range(count):
            free = [p for p in (*worst, *makers[count:]) if id not in by_maker[p.id]]
            # Whom a misconception leads nowhere, with the numbers they have, makes another mistake.
            able = [
                p
                for p in free
                if turn >= len(slips) or _has_answer(variants[p.id][id], slips[turn])
            ]
            person = (able or free)[0]
            by_maker[person.id][id] = _mistake(
                variants[person.id][id], turn if able else len(slips), rng
            )
    return by_maker


def _has_answer(variant, misconception):
    """A misconception may lead nowhere with somebody's numbers."""
    return variant.question.kind != "number" or bool(
        np.isfinite(variant.wrong(misconception)).all()
    )


def _mistake(variant, turn, rng):
    """(kind, name, code): each misconception once, more of the first, then what else fails."""
    q, slips = variant.question, variant.question.misconceptions
    kind = "misconception" if turn < len(slips) else MORE[(turn - len(slips)) % len(MORE)]
    if kind == "unanswered":
        return kind, "", None
    if kind == "misconception" or q.kind in ("choice", "function"):
        able = (m for m in slips if _has_answer(variant, m))
        wrong = slips[turn] if turn < len(slips) else next(able)
        return "misconception", wrong.name, _code(variant, variant.wrong(wrong))
    if kind == "slip":
        errors = [
            (name, factor) for name, factor, _ in factors(variant) if factor - 1 > 2 * q.tolerance
        ]
        name, factor = errors[int(rng.random() * len(errors))]
        return kind, name, _code(variant, variant.right * factor)
    if kind == "dimension":
        unit = next(
            u for u in ("GB/s", "s") if not Q(1, u).is_compatible_with(q.unit or "dimensionless")
        )
        return kind, "", f'Q({float(variant.right[0])!r}, "{unit}")'
    return kind, "", _code(variant, variant.right * ODD)


def _code(variant, values):
    """Python for an answer: the values, or for a function those on the published inputs."""
    q = variant.question
    if q.kind == "choice":
        return repr(values)
    if q.kind != "function":
        numbers = [repr(float(v)) for v in values]
        return numbers[0] if len(numbers) == 1 else f"({', '.join(numbers)})"
    results = {
        tuple(variant.inputs(s).values()): (
            repr(float(v)).replace("inf", "math.inf").replace("nan", "math.nan")
        )
        for s, v in zip(variant.samples, values, strict=True)
    }
    rows = "".join(f"        {inputs!r}: {value},\n" for inputs, value in results.items())
    return f"    known = {{\n{rows}    }}\n    return known[{', '.join(q.parameters)},]"


def _right(variant):
    """The right answer as code; that of a function is the one in the worked solution."""
    q = variant.question
    if q.kind != "function":
        return _code(variant, variant.right)
    block = re.findall(r"```python\n(.*?)```", variant.solution, re.DOTALL)[0]
    before, body = re.split(r"^def .*:\n", block, maxsplit=1, flags=re.MULTILINE)
    return "".join(f"    {line}\n" for line in before.split("\n") if line) + body.rstrip()


def _rounded(variant):
    if variant.question.kind in ("function", "choice"):
        return _right(variant)
    digits = 4 if variant.question.tolerance >= 0.002 else 6
    return _code(variant, np.array([float(f"{v:.{digits - 1}e}") for v in variant.right]))


# What is handed in


def _fill(person, notebook, variants, mistakes, at):
    ids, story, stubs = notebook.asked, person.story, _Notebook(notebook.bytes)
    half, middle = len(ids) // 2, ids[len(ids) // 2]
    for i, id in enumerate(ids):
        right = (_rounded if story == "rounded" else _right)(variants[id])
        kind, slip, code = mistakes.get(id, ("right", "", right))
        if story == "unfinished" and i >= half:
            kind, slip, code = "unanswered", "", None
        if story == "twice" and i == half:
            person.files.append((at - DAY, notebook.bytes))
        if code is not None:
            notebook.answer(id, code)
        person.kinds[id] = kind, slip
    if story == "unlucky":
        notebook.be_unlucky(stubs)
    if story in ("crashed", "endless"):
        notebook.before(middle, CRASHING if story == "crashed" else ENDLESS)
        person.kinds[middle] = "unanswered", ""
    if story == "hostile":
        notebook.before(ids[0], HOSTILE)
        person.kinds = dict.fromkeys(ids, ("unanswered", ""))
    if story == "torn":
        person.kinds = dict.fromkeys(ids, ("refused", ""))
    if story == "missing":
        person.kinds = {}
    else:
        content = notebook.bytes
        content = content[: len(content) // 2] if story == "torn" else content
        person.files.append((DUE + 2 * DAY if story == "late" else at, content))


def _canvas(path, people, rows, name):
    """Canvas: <family, given>[_LATE]_<user>_<file>_<title>, lower case (lib/content_zipper.rb)."""
    members, number = [], 90_001
    for person, row in zip(people, rows, strict=True):
        first, _, family = person.name.partition(" ")
        who = re.sub(r"\W", "", f"{family}{first}".lower())
        for turn, (at, content) in enumerate(person.files):
            mark = "_LATE" if at > DUE else ""
            title = f"{name}-{turn}.ipynb" if turn else f"{name}.ipynb"
            members.append((f"{who}{mark}_{row['canvas_id']}_{number}_{title}", content))
            number += 1
    _archive(path, members)


def _moodle(path, worksheet, people, rows, name):
    """Moodle: <name>_<participant>_assignsubmission_file/<title> (moodle/moodle,
    mod/assign/classes/downloader.php), and the worksheet for offline grading
    (mod/assign/feedback/offline): who the participants are, and when they handed in."""
    members, lines = [], []
    for i, (person, row) in enumerate(zip(people, rows, strict=True)):
        participant = 700_001 + 37 * i
        for turn, (_, content) in enumerate(person.files):
            title = f"{name} ({turn}).ipynb" if turn else f"{name}.ipynb"
            members.append((f"{person.name}_{participant}_assignsubmission_file/{title}", content))
        when = datetime.fromtimestamp(person.files[-1][0], UTC) if person.files else None
        date = f"{when:%A}, {when.day} {when:%B %Y, %I:%M %p}" if when else "-"
        lines.append({
            "Identifier": f"Participant {participant}",
            "Full name": person.name,
            "Email address": row["email"],
            "Status": "Submitted for grading" if when else "No submission",
            "Last modified (submission)": date,
        })  # fmt: skip
    _archive(path, members)
    _table(worksheet, list(lines[0]), lines)


def _plain(folder, people, name):
    for person in people:
        for turn, (at, content) in enumerate(person.files):
            file = folder / person.id / (f"{name} ({turn}).ipynb" if turn else f"{name}.ipynb")
            write_whole(file, content)
            os.utime(file, (at, at))


def _archive(path, members):
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members:
            archive.writestr(zipfile.ZipInfo(name, DOWNLOADED), content, zipfile.ZIP_DEFLATED)
    write_whole(path, memory.getvalue())


def _table(path, columns, rows):
    text = io.StringIO(newline="")
    table = csv.DictWriter(text, columns)
    table.writeheader()
    table.writerows(rows)
    write_whole(Path(path), text.getvalue().encode())
