"""A report for the instructor."""

from lightspeed_cli.classroom.common import SECTION, known, say_outdated, the_section

WORDS = "write a page on what was hard and what was misunderstood"
ARGUMENTS = (SECTION,)


def run(options, course, book):
    from lightspeed_class.reports.class_report_page import write_report
    from lightspeed_class.reports.feedback import file_name

    name = known(book, options.name)
    section = the_section(book, options.section)
    file = file_name("-".join(filter(None, (name, section))), ".html")
    (course.root / "reports").mkdir(exist_ok=True)
    print(write_report(book, name, course.root / "reports" / file, section))
    say_outdated(book, name)
