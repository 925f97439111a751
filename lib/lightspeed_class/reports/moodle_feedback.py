"""Feedback pages as a zip for Moodle (Submissions > Upload multiple feedback files in a zip).

Moodle reads whose a file is from the name of its folder, cut at underscores: name, participant's
number, plugin (mod/assign/feedback/file/importziplib.php of moodle/moodle). A number that is no
participant's of the assignment is passed over without a word, so who has none is told here. It is
that of the folder in which Moodle packed the submission, else the one that the roster has.
"""

import re
import zipfile

from lightspeed_class.class_folder import unfinished
from lightspeed_class.intake.match_submissions import MOODLE, People

FIRST_DAY = (1980, 1, 1, 0, 0, 0)  # the same pages give the same bytes


def write_moodle_zip(book, name, pages, path):
    """Pack pages (student id -> path) into a zip; return the ids without a Moodle number."""
    people, counting = People(book.students()), book.counting(name)
    without, entries = [], {}
    for student, page in pages.items():
        number = _packed_as(people, student, counting.get(student), name)
        # in a roster one for each assignment: of several nobody can tell which
        number = number or _only(book.student(student).details.get("participant", ""))
        if not number:
            without.append(student)
            continue
        label = re.sub(r"[\W_]+", " ", book.student(student).name).strip() or "Participant"
        entries[f"{label}_{number}_assignsubmission_file_/{name}-feedback.html"] = page.read_bytes()
    pack(path, entries)
    return without


def pack(path, entries):
    """Write name -> bytes as a zip; the same entries give the same bytes."""
    with unfinished(path) as aside, zipfile.ZipFile(aside, "w", zipfile.ZIP_DEFLATED) as archive:
        for entry, content in entries.items():
            info = zipfile.ZipInfo(entry, FIRST_DAY)
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, content)


def _packed_as(people, student, submission, name):
    """The number in the folder that a submission came in; "" if that may be another person's, as
    of a file that was given to somebody by hand.
    """
    source = submission.source.rpartition(": ")[2] if submission else ""
    numbers = [
        m["number"]
        for m in map(MOODLE.fullmatch, source.split("/"))
        if m and not people.is_team(m["name"])
    ]
    return numbers[0] if numbers and people.of(source, name) == {student} else ""


def _only(numbers):
    return numbers if numbers.isdecimal() else ""
