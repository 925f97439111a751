"""Give feedback back."""

from lightspeed_cli.classroom.common import known, many, say_outdated, the_student

WORDS = "write a page for each student"
ARGUMENTS = (("--student", {"metavar": "STUDENT", "help": "for this one alone"}),)


def run(options, course, book):
    from lightspeed_class.reports.feedback import write_feedback

    name = known(book, options.name)
    student = the_student(book, options.student) if options.student else None
    folder = course.root / "feedback" / name
    pages = write_feedback(book, name, folder, student)
    handed_in = [r for r in book.results(name) if r.submission and student in (None, r.student.id)]
    waiting = sum(not r.grading for r in handed_in)
    print(f"{many(len(pages), 'page')} in {folder}")
    if not handed_in:
        print("  nothing was handed in yet, which is all that they say")
    elif waiting:
        who = (
            "none of what was handed in is"
            if waiting == len(handed_in)
            else f"{waiting} of {len(handed_in)} are not"
        )
        print(f"  {who} graded yet, and so the pages say: lightspeed class grade {name}")
    say_outdated(book, name)
