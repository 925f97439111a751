"""Read the roster."""

from lightspeed_class.listed import listed
from lightspeed_cli.classroom.arguments import option

WORDS = "read students from a CSV file: plain, or an export of Canvas or Moodle"
ARGUMENTS = (option("file", nargs="?", metavar="FILE"),)
NAMED = False


def run(options, course, book):
    read_roster(book, options.file or course.root / "roster.csv")


def read_roster(book, file):
    from lightspeed_class.roster import add_roster

    done = add_roster(book, file)
    print(
        f"{file}: {len(done.added)} added, {len(done.updated)} brought up to date, {len(done.same)}"
        " as they were."
    )
    for line in done.skipped:
        print(f"  skipped {line}")
    if done.elsewhere:
        print(f"  not in the file, and kept: {listed(done.elsewhere)}")
