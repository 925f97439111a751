"""A report for the instructor."""

from lightspeed_cli.classroom.common import known, say_outdated

WORDS = "write a page on what was hard and what was misunderstood"
ARGUMENTS = ()


def run(options, course, book):
    from lightspeed_class.reports.class_report_page import write_report

    name = known(book, options.name)
    (course.root / "reports").mkdir(exist_ok=True)
    print(write_report(book, name, course.root / "reports" / f"{name}.html"))
    say_outdated(book, name)
