"""An oral check of what students handed in."""

from lightspeed_cli.classroom.arguments import option
from lightspeed_cli.classroom.common import SECTION, known, the_section, the_student
from lightspeed_cli.errors import UserError

WORDS = "write an oral check: three follow-ups a student on what they handed in, with the key"
ARGUMENTS = (option("students", nargs="*", metavar="STUDENT", help="default: all"), SECTION)


def run(options, course, book):
    from lightspeed_class.class_folder import write_whole
    from lightspeed_class.intake.origins import Origins
    from lightspeed_class.oral import follow_ups, oral_page

    name, section = known(book, options.name), the_section(book, options.section)
    ids = {the_student(book, text) for text in options.students}
    origins = Origins(book, name)
    rows = [
        (r.student, follow_ups(book, name, r, origins))
        for r in book.results(name, section=section)
        if r.grading and (not ids or r.student.id in ids)
    ]
    if not any(tasks for _, tasks in rows):
        raise UserError(
            f"no answers to {name} are graded yet, so there is nothing to ask about:"
            f" lightspeed class grade {name}"
        )
    path = course.root / "oral" / f"{name}.html"
    write_whole(path, oral_page(name, rows).encode())
    print(f"{path}: {sum(len(tasks) for _, tasks in rows)} follow-ups for {len(rows)} students")
