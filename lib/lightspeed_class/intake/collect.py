"""Taking in what students handed in: every file is kept, found to be somebody's or put aside, and
told about.

The files are kept in collected/NAME (kept_files.py). The gradebook holds the notebooks too; the
latest of a student that can be read counts. A file that is no notebook, or cannot be read, is told
to its student if there is nothing better of theirs. Collecting the same again changes nothing but
times that were not known before, and a run that was killed is finished by the next one, which
clears away what that one left half written.
"""

import contextlib
import hashlib
import os
import re
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

from lightspeed_class.class_folder import ClassError
from lightspeed_class.gradebook.records import Submission
from lightspeed_class.intake.gradescope_export import signed
from lightspeed_class.intake.kept_files import KeptFiles, shown
from lightspeed_class.intake.match_submissions import BY_ID, CANVAS, MOODLE, People
from lightspeed_class.intake.moodle_worksheet import has_no_time, worksheets
from lightspeed_class.intake.origins import BY_ID_ALONE, Origins, same_bytes
from lightspeed_class.intake.unpack import items
from lightspeed_class.lateness import FROM_WORKSHEET, late
from lightspeed_class.notebooks import Refused, code_cells
from lightspeed_class.regrade_requests import keep_requests, requests_in

MOST_BESIDE = 16 << 20  # bytes of the files that come along with a notebook
CHECKED = re.compile(rb"""check\(\s*\\?["']([a-z][a-z0-9]*\.[a-z]\w*)""")


@dataclass(frozen=True)
class Row:
    """The status of a file: new, late, older (than the latest), same, refused, beside (a notebook
    of the same student), foreign (another assignment's) or unknown.
    """

    student: str
    file: str
    at: float
    verdict: str
    note: str = ""


@dataclass(frozen=True)
class Collected:
    """The result of a collection: a row for each file, and `left`: what could not be opened.

    `failed`: a path could not be opened, nothing was found, or a notebook is for another
    assignment. `timed`: number of submissions timed by a worksheet; `untimed`: whether some still
    need a worksheet for their time.
    """

    name: str
    rows: tuple
    left: tuple
    failed: bool
    timed: int
    untimed: bool

    @property
    def counts(self):
        return Counter(row.verdict for row in self.rows)


def collect(course, book, name, paths, student=None):
    """Collect folders, notebooks, zip archives, and Moodle's grading worksheet (.csv) with times.

    `student`: the owner of all files, whatever their names. Raises ClassError for a name that was
    not released, a missing path or a student who is not on the roster; the content of files and
    archives never raises.
    """
    if name not in book.assignments():
        raise ClassError(
            f"{name} was not released; there {_are(book.assignments())}. lightspeed class release"
            f" {name}"
        )
    for path in paths:
        if not os.path.lexists(path):
            raise ClassError(f"there is no file or folder {path}")
    students = book.students()
    sheets = [path for path in paths if str(path).lower().endswith(".csv") and Path(path).is_file()]
    participants, times = worksheets(sheets, students)
    people = People(students, participants)
    if student is not None:
        student = one_of(people, student)
    desk = _Desk(course.collected(name), book, book.assignment(name), people, student, times)
    notes, files, failed = [], [], False
    for path in paths:
        if path in sheets:
            continue
        try:
            more, why = items(path)
        except Refused as refusal:
            notes.append(f"{path}: {refusal}")
            failed = True
            continue
        if not desk.kept.archive(Path(path)):  # the same file twice changes nothing
            more = [replace(item, since=0.0) for item in more]
        more, unsigned = signed(more, people)
        why = [*why, *unsigned]
        files += more
        notes += [f"{Path(path).name}: {reason}" for reason in why]
        notes += [f"{path}: There are no files in it."] * (not more and not why)
    if len(sheets) == len(paths):
        notes += [
            f"{path}: It is a worksheet alone. Give the archive with it, in one command."
            for path in sheets
        ]
    intake = desk.take(files, notes)
    return replace(
        intake,
        failed=failed or not intake.rows or intake.failed,
        untimed=intake.untimed and not sheets,
    )


def one_of(people, text):
    """Return the id of the one student matching `text`. Raises ClassError."""
    matches = people.named(text)
    if len(matches) != 1:
        why = f"could be {' or '.join(sorted(matches))}" if matches else "is not on the roster"
        raise ClassError(f"{text} {why}; give an id as it is in the roster")
    return next(iter(matches))


class _Desk:
    """Where files are looked at one by one."""

    def __init__(self, folder, book, assignment, people, student, times):
        self.book, self.assignment, self.people = book, assignment, people
        self.kept, self.student, self.times = KeptFiles(folder), student, times
        self.origins = Origins(book, assignment.name)
        self.teams = self.origins.teams
        self.chosen, self.out = book.choices(assignment.name)
        self.rows, self.timed, self.untimed = [], 0, False
        self.received = {}  # student -> what the gradebook has, oldest first
        for submission in book.submissions(assignment.name):
            self.received.setdefault(submission.student, []).append(submission)

    def take(self, items, notes):
        """All of these, and what became of them."""
        self.kept.sweep()
        self.others = [item for item in items if not item.is_notebook]
        # What is surely somebody's goes first, then by age, whatever the order given.
        queue = sorted(items, key=lambda item: (not self.knows(item), item.at, _natural(item.path)))
        rest = [item for item in queue if not (item.is_notebook and self.take_notebook(item))]
        for item in rest:
            self.take_other(item)
        foreign = any(row.verdict == "foreign" for row in self.rows)
        return Collected(
            self.assignment.name, tuple(self.rows), tuple(notes), foreign, self.timed, self.untimed
        )

    def knows(self, item):
        return bool(self.student) or len(self.people.of(item.path, self.assignment.name)) == 1

    def take_notebook(self, item):
        """Keep a notebook; False if it cannot be read, which is for take_other."""
        try:
            content = item.read()
        except Refused:
            return False
        try:
            # what the grader would refuse never counts in place of what it can read
            code_cells(content)
            reason = ""
        except Refused as refusal:
            reason = str(refusal)
        owner = self.origins.claimed(content)
        student, note = self._whose(item, owner)
        by_id = not self.student and not self.knows(item)
        requests = requests_in(content, self.assignment)
        if requests is not None and student:
            self._request(item, student, content, requests)
        elif elsewhere := self._belongs_elsewhere(content):
            self._put_aside(item, content, elsewhere, "foreign", student or "")
        elif not student:
            self._put_aside(item, content, note)
            self.untimed |= self.rows[-1].verdict == "unknown" and has_no_time(item.source)
        else:
            self._record(item, student, content, reason, note, BY_ID if by_id else "")
        return True

    def _request(self, item, student, content, requests):
        """Keep what a student asks to be looked at again."""
        self.kept.student(item, student, content, item.at)
        self.kept.settle(content)
        new = keep_requests(self.book, self.assignment.name, student, requests)
        note = (
            f"Asks for another look at {', '.join(new)}: lightspeed class desk"
            f" {self.assignment.name}"
            if new
            else "It asks for nothing that is not known."
        )
        self.rows.append(Row(student, item.source, item.at, "request", note))

    def take_other(self, item):
        """Keep what is no notebook or cannot be read. It never stands in the way of a notebook."""
        try:
            content = item.read()
            suffix = Path(item.path).suffix[:20]
            reason = f"It is {f'a file {suffix}, ' if suffix else ''}not a notebook (.ipynb)."
            if content[:4] == b"PK\x03\x04":
                reason = (
                    "It is a zip archive inside another or in a folder, which is not opened. The"
                    " student can hand in the notebook (.ipynb) itself; or take it in for them:"
                    f" lightspeed class collect {self.assignment.name} PATH.zip --as"
                    f" {self._whose(item, '')[0] or 'STUDENT'}"
                )
        except Refused as refusal:
            content, reason = None, str(refusal)
        student, note = self._whose(item, "")
        place = ""
        if content is None:
            place = self.kept.unread(item, f"students/{student}" if student else "unknown")
        if not student:
            self._put_aside(item, content, f"{note} {reason} {place}".rstrip())
        elif any(not s.refused for s in self._together(student)):
            self.kept.student(item, student, content, item.at)
            self.kept.settle(content)
            self.rows.append(
                Row(student, item.source, item.at, "beside", f"{reason} {place}".rstrip())
            )
        else:
            self._record(item, student, content, reason, f"{note} {place}".strip())

    def _whose(self, item, owner):
        """(student or None, what to say about it)."""
        if self.student:
            return self.student, ""
        matches = self.people.of(item.path, self.assignment.name)
        hint = f" It was made for {owner}." if owner else ""
        if len(matches) == 1:
            return next(iter(matches)), ""
        if len(matches) > 1:
            return None, f"It could be from {' or '.join(sorted(matches))}.{hint}"
        if not owner or self.people.is_signed(item.path):
            return None, f"It is from nobody on the roster.{hint}"
        # Who wrote this id there cannot get in the way of a file that is surely another's.
        if any(BY_ID not in s.source for s in self._theirs(owner)):
            return (
                None,
                f"The name does not say from whom it is.{hint} {owner} has others in already.",
            )
        return owner, BY_ID_ALONE

    def _belongs_elsewhere(self, content):
        """What it answers, in words, if none of it is asked in this assignment."""
        ids = {id.decode() for id in CHECKED.findall(content)}
        ours = ids & set(self.assignment.points) or any(
            f'"{cell}"'.encode() in content for cell in self.assignment.cells
        )
        if ours or not ids:
            return ""
        homes = [n for n in self.book.assignments() if ids & set(self.book.assignment(n).points)]
        home = f" of {homes[0]}" if homes else ""
        return f"It answers {', '.join(sorted(ids)[:3])}{home}, not {self.assignment.name}."

    def _theirs(self, student):
        """What somebody handed in, but not what was taken out of counting: it may be another's."""
        return [s for s in self.received.get(student, ()) if s.id not in self.out]

    def _together(self, student):
        """The same of all who hand in together."""
        return [s for one in self.teams[student] for s in self._theirs(one)]

    def _record(self, item, student, content, reason, note, mark=""):
        """Into the gradebook; the source says what lateness and doubts rest on."""
        at, source = self._time(item, student, mark)
        notebook = content if item.is_notebook else None
        digest = hashlib.sha256(reason.encode() if notebook is None else notebook).hexdigest()
        doubt = "" if reason else self.origins.doubt(student, notebook)
        others = [
            id
            for id in self.received
            if id not in self.teams[student]
            and digest in {s.sha256 for s in self._theirs(id) if not s.refused}
        ]
        self.kept.student(item, student, content, at)
        id = self.book.add_submission(student, self.assignment.name, notebook, at, source, reason)
        self.kept.settle(content)
        if notebook is not None and not reason:
            self.book.keep_beside(id, self._beside(item, student))
        mine = self.received.setdefault(student, [])
        last = max(
            (s for s in self._together(student) if not s.refused),
            key=lambda s: s.order,
            default=None,
        )
        notes = [note, doubt, same_bytes(others) if others else ""]
        if len(self.teams[student]) > 1 and not reason:
            notes.append(self._for_all(student, last, at))
        if before := next((s for s in mine if s.id == id), None):
            verdict = "same"
            notes += [
                self._correct_time(before, at, source),
                self._after_all(before, last, item.since if has_no_time(source) else at),
            ]
        else:
            mine.append(Submission(id, student, self.assignment.name, at, source, digest, reason))
            self.untimed |= not reason and has_no_time(source)
            verdict = "older" if last and last.order[0] > at else "new"
            verdict = "late" if self._late(student, source, at) else verdict
            if reason:
                verdict = "refused"
                notes = [
                    reason,
                    note,
                    "Another of theirs, which can be read, counts." if last else "",
                ]
            elif student in self.chosen:
                notes.append(
                    f"Submission {self.chosen[student]} was chosen and goes on counting; to let"
                    f" this one count: {self._choose(student, id)}"
                )
            elif doubt and last and last.order[0] <= at:
                notes.append(
                    f"It comes after another; to let that one count: {self._choose(student)}"
                )
        self.rows.append(Row(student, source, at, verdict, " ".join(filter(None, notes))))

    def _beside(self, item, student):
        """Name -> bytes of a student's files in the folder of their notebook, and below it."""
        folder, files, size = item.path.rpartition("/")[0], {}, 0
        for other in self.others if self.knows(item) else ():
            within = other.path.startswith(f"{folder}/") if folder else True
            if other.container != item.container or not within or not self.knows(other):
                continue
            if self.student or self.people.of(other.path, self.assignment.name) == {student}:
                name = other.path[len(folder) + 1 :] if folder else other.path
                if match := CANVAS.fullmatch(name):
                    name = match["rest"]
                with contextlib.suppress(Refused):
                    content = other.read()
                    size += len(content)
                    if size <= MOST_BESIDE:
                        files[name] = content
        return files

    def _for_all(self, student, last, at):
        """What to say of a group's: the last that can be read counts for all of it."""
        others = " and ".join(one for one in self.teams[student] if one != student)
        if last and last.student != student and last.order[0] <= at:
            return f"It counts for {others} too, in place of that of {last.student}."
        if last and last.order[0] > at:
            return f"It is of a group, for which a later one of {last.student} counts."
        return f"It counts for {others} too."

    def _choose(self, student, id=""):
        return f"lightspeed class choose {self.assignment.name} {student} {id}".rstrip()

    def _correct_time(self, before, at, source):
        """Give one that is there the time of a worksheet, if it had none; and what to say of it."""
        if not has_no_time(before.source) or before.refused:
            return ""
        if not source.endswith(FROM_WORKSHEET):
            self.untimed = True
            return ""
        self.book.set_time(before.id, at, source)
        mine = self.received[before.student]
        mine[mine.index(before)] = replace(before, at=at, source=source)
        self.timed += 1
        return (
            "By the worksheet it was handed in late."
            if self._late(before.student, source, at)
            else ""
        )

    def _late(self, student, source, at):
        return late(source, at, *self.book.due(self.assignment.name, student))

    def _after_all(self, before, last, at):
        """Let one that is there already, and came again after others, be the last; what to say."""
        choice = self.chosen.get(before.student)
        if before.id in self.out:
            return (
                "It was taken out of counting; to let it count:"
                f" {self._choose(before.student, before.id)}"
            )
        if before.refused or not last or before.id in (last.id, choice):
            return ""
        if (at, before.id) <= last.order:
            return ""
        self.book.hand_in_again(before.id, at)
        mine = self.received[before.student]
        mine[[s.id for s in mine].index(before.id)] = replace(before, again=at)
        if choice:
            return f"It was handed in before; submission {choice} was chosen and counts."
        return f"It was handed in again after submission {last.id}, and counts."

    def _time(self, item, student, mark):
        """(when it was handed in, source); Moodle's worksheet knows better than its archive."""
        for match in filter(None, map(MOODLE.fullmatch, item.path.split("/"))):
            numbers = [match["number"]]
            if self.people.is_team(match["name"]):  # that is the number of the group
                team = self.teams[student]
                numbers = [n for n in self.times if self.people.participant(n) in team]
            if times := [self.times[n] for n in numbers if n in self.times]:
                return max(times), item.source + mark + FROM_WORKSHEET
        return item.at, item.source + mark + item.noted

    def _put_aside(self, item, content, note, kind="unknown", student=""):
        if content is None:
            self.rows.append(Row(student, item.source, item.at, "refused", note))
            return
        digest = hashlib.sha256(content).hexdigest()
        mine = [s.student for id in self.received for s in self._theirs(id) if s.sha256 == digest]
        if mine:
            first = note.split(". ")[0].rstrip(".")
            same = f"{first}; {mine[0]} handed in the very same file, so nothing changes."
            self.rows.append(Row(mine[0], item.source, item.at, "same", same))
            return
        path = self.kept.aside(kind, item, content)  # for the day when it is somebody's
        where = f"{note} It is kept as {shown(path)}"
        self.rows.append(Row(student, item.source, item.at, kind, where))


def _natural(path):
    """A key that puts x.ipynb before x (1).ipynb, and file 9 before file 10."""
    parts = re.split(r"(\d+)", path.partition(".ipynb")[0])
    return [(int(part) if part.isdecimal() else 0, part) for part in parts], path


def _are(names):
    return f"are {', '.join(names)}" if names else "are none yet"
