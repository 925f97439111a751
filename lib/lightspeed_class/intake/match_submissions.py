"""Whose a file is: what a learning platform made of a name, and what a path says, looked up in the
roster.

    Canvas    lovelaceada_LATE_12345_678901_02_roofline-1.ipynb: name without anything but letters,
              user, file, own name (instructure/canvas-lms, lib/content_zipper.rb);
              anon_<letters>_<file>_... where marking is anonymous
    Moodle    Ada Lovelace_12345_assignsubmission_file_/02_roofline.ipynb, or with the file's name
              in place of the slash; the number is a participant's in this assignment, which its
              grading worksheet explains (moodle/moodle, mod/assign/classes/downloader.php). Where
              groups hand in, Group A_55_assignsubmission_file_/..., once, with the group's own
              number; before Moodle 4, "Group A-" before the name of each member
    plain     a folder or a file that is called by an id, a login, an e-mail address or its first
              part, or a full name

In what a platform packed, the rest of the name is the student's choice and is not believed.
"""

import re
import unicodedata
from pathlib import PurePosixPath

from lightspeed_class.lateness import ANONYMOUS, CANVAS
from lightspeed_class.roster import IDENTIFIERS

MOODLE = re.compile(
    r"(?P<name>.+)_(?P<number>\d+)_assignsubmission_[a-z]+_?(?P<rest>.*)", re.DOTALL
)
# Moodle's names where marking is anonymous
NOBODY = re.compile(r"partic|partec|teilnehm|deelnem", re.IGNORECASE)
BY_ID = " (by the id in it)"
STRANGER = "not of the roster~"  # before a name, where a platform says that it is somebody else's


class People:
    """An index of the roster's students and of Moodle's participants (number -> student id)."""

    def __init__(self, students, participants=None):
        self._known, self._canvas, self._names = {}, {}, {}
        self._groups, self._teams = {}, {}
        self._participants = {n: {s} for n, s in (participants or {}).items()}
        for student in students:
            details = student.details
            identifiers = [student.id, *(details[key] for key in IDENTIFIERS if key in details)]
            identifiers += [value.partition("@")[0] for value in identifiers if "@" in value]
            for value in identifiers:
                self._known.setdefault(value.casefold(), set()).add(student.id)
            if "canvas_id" in details:
                self._canvas.setdefault(details["canvas_id"], set()).add(student.id)
            for number in details.get("participant", "").split():
                self._participants.setdefault(number, set()).add(student.id)
            groups = [student.group, *details.get("groups", "").split(",")]
            self._groups[student.id] = {squash(group) for group in groups if group.strip()}
            if student.group:
                self._teams.setdefault(squash(student.group), set()).add(student.id)
            words = student.name.replace(",", " ").split()
            # "Ada King Lovelace" is "lovelaceadaking" where the last name goes first
            for turn in range(len(words)):
                self._names.setdefault(squash("".join(words[turn:] + words[:turn])), set()).add(
                    student.id
                )
        self._numbered = {id for ids in self._canvas.values() for id in ids}

    def named(self, text):
        """Return the ids of students with this id, login, address, its first part, or name."""
        return self._known.get(text.strip().casefold()) or self._names.get(squash(text), set())

    def of(self, path, assignment):
        """Return the possible owners of this path: one id, none, or several that match equally."""
        parts = PurePosixPath(path).parts
        for part in parts:
            if match := MOODLE.fullmatch(part):
                if self.is_team(match["name"]):  # any of them: it counts for all
                    return {min(self._teams[squash(match["name"])])}
                return (
                    self._participants.get(match["number"])
                    or self._names.get(squash(match["name"]))
                    or self._in_group(match["name"])
                )
        if ANONYMOUS.fullmatch(parts[-1]):
            return set()
        if match := CANVAS.fullmatch(parts[-1]):
            # A namesake whose Canvas number is another one is somebody else.
            namesakes = self._names.get(squash(match["name"]), set()) - self._numbered
            if owners := self._canvas.get(match["user"]) or namesakes:
                return owners
        stem = parts[-1].partition(".ipynb")[0]
        stem = re.sub(r"( \(\d+\)|-\d+)$", "", stem)
        for text in (*parts[:-1], stem, stem.replace(assignment, "").strip(" _-.()")):
            if text and (owners := self.named(text)):
                return owners
        return set()

    def participant(self, number):
        """Return the id of the participant with this number; "" if unknown or ambiguous."""
        students = self._participants.get(number, set())
        return next(iter(students)) if len(students) == 1 else ""

    def is_team(self, name):
        """Whether this is the name of a group that hands in together, and no student's name."""
        return squash(name) in self._teams and squash(name) not in self._names

    def _in_group(self, name):
        """Those whose group and name this is, as Moodle calls the folder of a group's member."""
        cuts = [i for i, c in enumerate(name) if c == "-"]
        return {
            id
            for i in cuts
            for id in self._names.get(squash(name[i + 1 :]), ())
            if squash(name[:i]) in self._groups[id]
        }

    def is_signed(self, path):
        """Whether a platform put a person's name into the file's name, on the roster or not."""
        parts = PurePosixPath(path).parts
        if parts[-1].startswith(STRANGER):
            return True
        moodle = next((m for m in map(MOODLE.fullmatch, parts) if m), None)
        if moodle:
            return not NOBODY.match(moodle["name"])
        return bool(CANVAS.fullmatch(parts[-1])) and not ANONYMOUS.fullmatch(parts[-1])


def squash(name):
    """Normalize a name as platforms do in file names: letters and digits, lower case."""
    plain = unicodedata.normalize("NFC", unicodedata.normalize("NFKC", name).casefold())
    return "".join(c for c in plain if c.isalnum() or unicodedata.category(c)[0] == "M")
