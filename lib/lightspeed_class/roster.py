"""The roster: students from a plain CSV file, or from what Canvas and Moodle export.

    plain     id, name, and any of email, section, group, canvas_id, sis_user_id, ...
    Canvas    Gradebook > Export: Student (or LastName, FirstName), ID, SIS User ID, SIS Login ID,
              Section, ... (instructure/canvas-lms, lib/gradebook_exporter.rb)
    Moodle    Grades > Export > Plain text, the participants' table, or an assignment's grading
              worksheet: First name, Surname or Last name (or Full name), ID number, Email address,
              Username, Identifier

A student who is there already is found again by any identifier, gets what the file adds, and keeps
the seed. Nobody is ever removed; who has left gets "yes" in a column `left` ("no" or nothing when
they come back): the scores stay, but they are no longer counted, reported or exported to a
platform. A file with a mistake changes nothing; what may be one is told.
"""

import csv
import io
import json
import re
import secrets
import sys
from dataclasses import dataclass

from lightspeed_class.class_folder import ClassError
from lightspeed_course.practice.variants import STABLE

LARGEST = 32 << 20  # bytes of a file of students
# Heading in lower case -> what it is here.
HEADINGS = {
    "id": "id", "name": "name", "student": "name", "full name": "name",
    "first name": "first", "firstname": "first",
    "surname": "last", "last name": "last", "lastname": "last",
    "email": "email", "e-mail": "email", "email address": "email",
    "sis user id": "sis_user_id", "sis login id": "sis_login_id",
    "integration id": "integration_id", "id number": "moodle_idnumber", "username": "username",
    "identifier": "participant", "section": "section", "groups": "groups", "left": "left",
    "group": "group", "group name": "group", "group_name": "group",
}  # fmt: skip
IDENTIFIERS = ("email", "sis_user_id", "sis_login_id", "moodle_idnumber", "username")
# what becomes the id
PREFERRED = ("id", *IDENTIFIERS[1:], "email", "canvas_id")
KEPT = {*PREFERRED[1:], "integration_id", "section", "groups", "group", "participant", "left"}
MOODLE = {"email address", "id number", "username", "identifier"}  # headings that no plain file has
NO_ID = "there is no column id"
RESERVED = {"seed", "self"}  # no names for details
YES, NO = ("yes", "y", "true", "1"), ("no", "n", "false", "0")
# An id is the name of files and folders too.
ID = re.compile(r"[^\W_][\w.@+-]{0,63}(?<!\.)")


@dataclass(frozen=True)
class Entry:
    """A student's entry in a roster file, with its line."""

    line: int
    id: str
    name: str
    details: dict


@dataclass(frozen=True)
class Changes:
    """The effect of a roster on the gradebook: ids of students."""

    added: tuple
    updated: tuple
    same: tuple
    elsewhere: tuple  # in the gradebook, not in the file
    skipped: tuple  # lines that are no students, and why


def spare_seeds(book):
    """Return seeds for future students: each release draws them too, with its own course."""
    text = book.setting("spare seeds")
    return json.loads(
        text or book.setting("spare seeds", json.dumps([new_seed() for _ in range(SPARE)]))
    )


def next_seed(book):
    """Return a seed for a new student: a spare one, which every release knows, or a fresh one."""
    if not book.assignments():
        return new_seed()
    seed, *rest = spare_seeds(book) or [new_seed()]
    book.setting("spare seeds", json.dumps(rest))
    return seed


SPARE = 10  # seeds for late joiners


def new_seed():
    """Return a random seed for a student's numbers."""
    return STABLE + secrets.token_hex(6)


def add_roster(book, path):
    """Add the file's students to the gradebook, and print likely mistakes to stderr. Raises
    ClassError before anything is changed.
    """
    entries, skipped, remarks = read_roster(path)
    students = {s.id: s for s in book.students()}
    plan = _matched(path, entries, students)
    ids = {id for id, _ in plan}
    if ids <= students.keys():  # nobody gets an id from this file
        remarks = [remark for remark in remarks if not remark.startswith(NO_ID)]
    names = {s.id: s.name for s in students.values()}
    names |= {id: entry.name for id, entry in plan if id not in students}
    new, updated, same = [], [], []
    for id, entry in plan:
        old = students.get(id)
        details = {**(old.details if old else {}), **entry.details}
        if not details.get("left") and not (old and "left" in old.details):
            details.pop("left", None)  # who never left is as before
        # another one in each assignment
        if old and "participant" in old.details and "participant" in entry.details:
            numbers = [*old.details["participant"].split(), *entry.details["participant"].split()]
            details["participant"] = " ".join(dict.fromkeys(numbers))
        name = entry.name or (old.name if old else "")
        doubts = _of_known(old, name, details, entry) if old else _of_new(id, name, names)
        remarks += [f"line {entry.line}: {id} {doubt}" for doubt in doubts]
        if old and (old.name, old.details) == (name, details) and old.seed:
            same.append(id)
            continue
        seed = None if old and old.seed else next_seed(book)
        book.add_student(id, name, seed=seed, **details)
        (updated if old else new).append(id)
    remarks += _spread(book)
    for remark in remarks:
        print(f"{path}: {remark}.", file=sys.stderr)
    elsewhere = tuple(i for i in students if i not in ids)
    return Changes(tuple(new), tuple(updated), tuple(same), elsewhere, tuple(skipped))


def _matched(path, entries, students):
    """(id, entry) of each: that of the student who has one of its identifiers, else its own."""
    owner_of, lines, plan = {}, {}, []
    for student in students.values():
        for identifier in _identifiers(student.id, student.details):
            owner_of.setdefault(identifier, student.id)
    for entry in entries:
        matches = {owner_of[i] for i in _identifiers(entry.id, entry.details) if i in owner_of}
        if len(matches) > 1:
            raise ClassError(
                f"{path}, line {entry.line}: {entry.name or entry.id} has identifiers of two"
                f" students: {', '.join(sorted(matches))}"
            )
        id = matches.pop() if matches else entry.id
        if id in lines:
            raise ClassError(
                f"{path}, line {entry.line}: {id} is the same student as in line {lines[id]}. Leave"
                " one of the lines out."
            )
        lines[id] = entry.line
        plan.append((id, entry))
    return plan


def _of_known(old, name, details, entry):
    """What may not be meant of a student who is there already."""
    if old.left and not details["left"]:
        yield "had left, and is back"
    if not name:
        yield "has no name"
    if old.name and _words(old.name) != _words(name):
        yield f"was {old.name} before, and is {name} now"
    before, now = old.details.get("canvas_id"), entry.details.get("canvas_id")
    if before and now and before != now:
        yield (
            f"had the number {before} on Canvas, and has {now} now. If these are two people, give"
            " each a line with an id of their own"
        )


def _of_new(id, name, names):
    """What may not be meant of somebody new; `names`: id -> name of all."""
    if not name:
        yield "has no name"
    others = [other for other in names if other != id]
    if twins := [other for other in others if _same_number(other, id)]:
        yield (
            f"is new beside {' and '.join(sorted(twins))}. If that is one person, whose zeros a"
            " spreadsheet took away, write the id as it was"
        )
    if namesakes := [o for o in others if names[o] and _words(names[o]) == _words(name)]:
        yield (
            f"is new and called as {' and '.join(namesakes)} is. If that is one person, give one of"
            " the ids a yes in a column left"
        )


def _same_number(one, other):
    """Whether two ids are one number but for zeros in front, as spreadsheets leave it."""
    return one.isdecimal() and other.isdecimal() and int(one) == int(other)


def _spread(book):
    """Groups whose members are in several sections, which may be several groups of one name."""
    sections = {}
    for student in book.students():
        if student.group and not student.left:
            group = sections.setdefault(student.group, (student.details["group"], set()))
            group[1].add(student.details.get("section", ""))
    for name, group in sections.values():
        if len(group) > 1:
            where = " and ".join(sorted(section or "none" for section in group))
            yield (
                f"group {name} is in the sections {where}, and hands in as one. If these are"
                " several groups, give them names of their own"
            )


def read_roster(path):
    """Return ([Entry], [skipped lines], [likely mistakes]) of a file. Raises ClassError."""
    rows = rows_of(path)
    (_, heading), *rows = rows or [(1, [])]
    canvas = {"id", "sis login id"} <= {h.casefold() for h in heading}
    columns = [_column(h, canvas) for h in heading]
    if not {"name", "first", "last"} & set(columns) or not {"id", "canvas_id", *IDENTIFIERS} & set(
        columns
    ):
        raise ClassError(
            f"{path}, line 1: these are no headings of a roster:"
            f" {', '.join(heading)[:200] or 'none'}. Expected id,name,email, or what Canvas"
            " (Gradebook > Export) or Moodle (Grades > Export > Plain text file) writes."
        )
    if twice := [c for c in columns if c and columns.count(c) > 1]:
        raise ClassError(f"{path}, line 1: two columns are for {twice[0]}. Leave one out.")
    entries, skipped, remarks, owners = [], [], [], {}
    if not canvas and "id" not in columns and not MOODLE & {h.casefold() for h in heading}:
        columns, remark = _without_id(heading, columns)
        remarks.append(remark)
    for line, cells in rows:
        row = {c: v for c, v in zip(columns, cells, strict=False) if c and v}
        if len(cells) > len(columns) and any(cells[len(columns) :]):
            raise ClassError(
                f"{path}, line {line}: {len(cells)} values under {len(columns)} headings. Is a"
                " comma in a name without quotation marks?"
            )
        if not any(cells):
            continue
        if canvas and (why := _no_student(row)):
            skipped.append(f"line {line}: {why}")
            continue
        entry = _entry(
            path, line, row, canvas, ("id",) if "id" in columns else PREFERRED, "left" in columns
        )
        for identifier in _identifiers(entry.id, entry.details):
            first = owners.setdefault(identifier, entry)
            if first is not entry:
                what = (
                    identifier if isinstance(identifier, str) else f"the Canvas ID {identifier[1]}"
                )
                raise ClassError(
                    f"{path}, line {line}: {entry.name or entry.id} has {what}, and so has"
                    f" {first.name or first.id} in line {first.line}. Only one student can: correct"
                    " one of the lines, or leave it out."
                )
        entries.append(entry)
    if not entries:
        raise ClassError(
            f"{path}: there are no students in it. Put a line for each below the headings."
        )
    return entries, skipped, remarks


def _without_id(heading, columns):
    """Columns that keep every heading, as one may be meant for the id; and words about it."""
    pairs = list(zip(heading, columns, strict=True))
    used = next(h for preferred in PREFERRED for h, column in pairs if column == preferred)
    others = [
        h
        for h, column in pairs
        if h and h.isprintable() and not column and h.casefold() not in RESERVED
    ]
    hint = f", and kept as a detail is {', '.join(others)}" if others else ""
    remark = (
        f"{NO_ID}, so the ids are what stands under {used}{hint}. They stay so: files are named"
        " after them. For others, head a column of the file with id, and read it into a new class:"
        " lightspeed class new DIR"
    )
    return [column or h.casefold() * (h in others) for h, column in pairs], remark


def _entry(path, line, row, canvas, sources, has_left=False):
    name = row.get("name") or " ".join(row[part] for part in ("first", "last") if part in row)
    if canvas and name.count(",") == 1:  # "Lovelace, Ada"
        last, first = name.split(",")
        name = f"{first.strip()} {last.strip()}"
    id = next((row[column] for column in sources if column in row), "")
    if not id:
        raise ClassError(
            f"{path}, line {line}: {name or 'this student'} has no id. Each needs one that no other"
            " has, such as the login."
        )
    if not ID.fullmatch(id):
        raise ClassError(
            f"{path}, line {line}: {id!a} cannot be an id: letters, digits and . _ @ + - are"
            " allowed, up to 64, as files are named after it."
        )
    if not all(part.isprintable() for part in row.values()):
        raise ClassError(
            f"{path}, line {line}: there are characters that cannot be seen in it. Type the line"
            " anew."
        )
    details = {
        column: value
        for column, value in row.items()
        if column not in ("id", "name", "first", "last")
    }
    if "participant" in details:
        details["participant"] = details["participant"].rpartition(" ")[2]  # "Participant 123"
    if has_left:
        answer = details.get("left", "no").casefold()
        if answer not in YES + NO:
            raise ClassError(
                f"{path}, line {line}: left is {details['left']!a} for {name or id}, which is"
                " neither yes nor no"
            )
        details["left"] = "yes" * (answer in YES)
    return Entry(line, id, " ".join(name.split()), details)


def _words(name):
    return sorted(name.casefold().replace(",", " ").split())


def _no_student(row):
    """Why a row of Canvas is about no student."""
    name = row.get("name", row.get("last", ""))
    if name.casefold() == "points possible":
        return "the points possible"
    if not row.get("canvas_id"):
        return "a line of Canvas without a student"
    if name in ("Student, Test", "Test Student") and "sis_user_id" not in row:
        return "Canvas's test student"
    return ""


def _column(heading, canvas):
    """What a heading stands for; "" for what is not kept, such as the grades of an export."""
    plain = heading.casefold()
    column = "canvas_id" if canvas and plain == "id" else HEADINGS.get(plain, plain)
    return column if column in KEPT | {"id", "name", "first", "last"} else ""


def _identifiers(id, details):
    """What nobody else may have. A Canvas number is one only among Canvas numbers."""
    yield from dict.fromkeys(
        v.casefold() for v in (id, *(details.get(key, "") for key in IDENTIFIERS)) if v
    )
    if details.get("canvas_id"):
        yield "canvas", details["canvas_id"]


def rows_of(path):
    """[(line, cells)] of a CSV file with any separator, in encodings that spreadsheets write."""
    try:
        with open(path, "rb") as file:
            content = file.read(LARGEST + 1)
    except OSError as error:
        raise ClassError(f"{path} cannot be read: {error.strerror}") from None
    if len(content) > LARGEST:
        raise ClassError(f"{path} is larger than {LARGEST >> 20} MiB; a roster is smaller")
    if content[:4] == b"PK\x03\x04":
        raise ClassError(
            f"{path} is a spreadsheet, not CSV. Save it as CSV (UTF-8) there, and give that."
        )
    try:
        text = content.decode(
            "utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
        )
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise ClassError(
            f"{path}, line {line}: it is not UTF-8. Save it as CSV UTF-8 in the spreadsheet."
        ) from None
    first = text.lstrip("\r\n").partition("\n")[0]
    separator = max(",;\t", key=first.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    rows = []
    line = 1
    try:
        for cells in reader:
            rows.append((line, [cell.strip() for cell in cells]))
            line = reader.line_num + 1
    except csv.Error as error:
        raise ClassError(
            f"{path}, line {line}: this is not CSV: {error}. Is a quotation mark missing?"
        ) from None
    while rows and not any(rows[0][1]):
        rows.pop(0)
    return rows
