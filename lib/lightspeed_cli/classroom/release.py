"""Give an assignment out."""

import time
from functools import partial

from lightspeed_class.listed import listed
from lightspeed_cli.argument_types import count, when
from lightspeed_cli.classroom.arguments import flag, option
from lightspeed_cli.classroom.common import due_words, known, many, the_student
from lightspeed_cli.classroom.roster import read_roster
from lightspeed_cli.errors import UserError

WORDS = "make a notebook for each student, or one for all, with numbers of their own"
QUESTIONS = (
    "--questions",
    {"metavar": "FILE", "help": "questions of your own, as text, which the notebook asks"},
)
ARGUMENTS = (
    option("--students", metavar="FILE", help="read this roster first"),
    option(
        "--due",
        type=when,
        metavar="WHEN",
        help="such as 2026-12-01T23:59, in this machine's time zone unless it says another; "
        "a date is the end of that day",
    ),
    QUESTIONS,
    option(
        "--for",
        dest="only",
        action="append",
        metavar="STUDENT",
        help="give a version that is released to this student, and to nobody else",
    ),
    option("--version", type=count, metavar="N", help="with --for: this one; default: the latest"),
    flag(
        "--one-notebook",
        "one file for all, as Canvas hands out: it asks for the student's id, and draws"
        " the numbers of that student",
    ),
)


def run(options, course, book):
    from lightspeed_class.handout.release import release as give_out

    load_questions(options.questions)
    if options.students:
        read_roster(book, options.students)
    if options.only:
        return _to_some(options, course, book)
    if options.version:
        raise UserError(f"--version {options.version} is for one student: add --for STUDENT")
    batch = give_out(
        course, book, options.name, options.due, options.one_notebook, partial(print, flush=True)
    )
    folder, own = batch.folder / f"v{batch.version}", course.variants and not options.one_notebook
    notebooks_line = (
        many(len(batch.given), "notebook")
        if own
        else f"one notebook for all, {len(batch.given)} of whom did not have it"
    )
    whose = f" ({listed(batch.given)})" if len(batch.given) < batch.students else ""
    print(
        f"{batch.name}, version {batch.version}, for {many(batch.students, 'student')}:"
        f" {notebooks_line}{' made now' * own}{whose * bool(batch.given)}."
    )
    if earlier := [id for id, versions in batch.versions.items() if len(versions) > 1]:
        print(f"  an earlier version, which they keep, went to {listed(earlier)}")
    if batch.added or batch.removed:
        changes = [
            f"{word} {', '.join(ids)}"
            for word, ids in (("new:", batch.added), ("gone:", batch.removed))
            if ids
        ]
        print(f"  questions, compared with the version before: {'; '.join(changes)}")
    if batch.repriced:
        each = ", ".join(f"{q} {before:g} -> {now:g}" for q, before, now in batch.repriced)
        print(f"  points: {batch.points[0]:g} -> {batch.points[1]:g} ({each})")
        changed = {q for q, *_ in batch.repriced}
        by_hand = [
            f"{r.student.id} {q} ({m.points:g} points)"
            for r in book.results(batch.name)
            for q, m in r.manual.items()
            if q in changed and m.points is not None
        ]
        if by_hand:
            print(
                "  marks by hand keep their share of the points; rubric items stay"
                f" unchanged: {listed(by_hand)}"
            )
        if book.latest(batch.name):
            print(f"  graded work still has the old points: lightspeed class regrade {batch.name}")
    print(
        f"Each student gets one file of {folder}"
        if own
        else f"All students get {folder / f'{batch.name}.ipynb'}"
    )
    if options.one_notebook:
        print("Students write their id into its first cell and get their own numbers.")
    print(
        f"Who gets which file: {batch.folder / 'handout.csv'}, how to hand it out in README.txt"
        " beside it."
    )
    feedback = (
        "diagnoses answers" if course.feedback == "full" else "only says how an answer was read"
    )
    print(
        f"In these notebooks `check` {feedback} (feedback in class.toml)."
        f"{due_words(book, batch.name)}"
    )
    if options.due and options.due < time.time():
        print("  That is in the past: whatever is handed in now is late.")


def _to_some(options, course, book):
    """Give a version that was released to those who are named, and to nobody else."""
    from lightspeed_class.handout.release import release_to

    if options.due or options.one_notebook:
        raise UserError("--for repeats a release as it was: leave out --due and --one-notebook")
    name = known(book, options.name)
    for student in [the_student(book, text) for text in options.only]:
        path = release_to(course, book, name, student, options.version)
        print(
            f"{student} has {path}, as handout.csv now says; other students' files are unchanged."
        )


def load_questions(path):
    """Load a file's questions beside ours. Raises UserError."""
    from lightspeed_course.practice.question_text import QuestionError
    from lightspeed_course.practice.questions import load

    try:
        if path:
            load(path)
    except QuestionError as error:
        raise UserError(error) from error
