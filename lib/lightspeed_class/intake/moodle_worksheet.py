"""Moodle's grading worksheet: whose the numbers in its archive are, and when they came."""

import contextlib
from datetime import datetime

from lightspeed_class.class_folder import ClassError
from lightspeed_class.intake.match_submissions import People
from lightspeed_class.lateness import FROM_WORKSHEET
from lightspeed_class.roster import rows_of

WORKSHEET_TIMES = (
    "%A, %d %B %Y, %I:%M %p",
    "%A, %B %d, %Y, %I:%M %p",
    "%A, %d %B %Y, %H:%M",
    "%d/%m/%Y, %H:%M",
    "%Y-%m-%d %H:%M:%S",
)


def worksheets(paths, students):
    """Return participant -> student id, and -> submission time, of all files. Raises ClassError."""
    participants, times = {}, {}
    people = People(students)
    for path in paths:
        (_, heading), *rows = rows_of(path) or [(1, [])]
        columns = {h.casefold(): i for i, h in enumerate(heading)}
        if "identifier" not in columns:
            raise ClassError(
                f"{path}: this is not a Moodle grading worksheet: it has no column Identifier"
            )
        for _, cells in rows:
            row = {h: cells[i] if i < len(cells) else "" for h, i in columns.items()}
            number = row["identifier"].rpartition(" ")[2]
            for column in ("email address", "id number", "username", "full name"):
                matches = people.named(row[column]) if number and row.get(column) else ()
                if len(matches) == 1:
                    participants[number] = next(iter(matches))
                    break
            for form in WORKSHEET_TIMES:
                with contextlib.suppress(ValueError):
                    times[number] = datetime.strptime(
                        row.get("last modified (submission)", ""), form
                    ).timestamp()
    return participants, times


def has_no_time(source):
    """Whether a submission is known only from Moodle's archive, whose times are meaningless."""
    return "_assignsubmission_" in source and not source.endswith(FROM_WORKSHEET)
