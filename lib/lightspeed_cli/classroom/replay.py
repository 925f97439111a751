"""Grade once more what a score came from."""

from lightspeed_cli.argument_types import count
from lightspeed_cli.classroom.arguments import option
from lightspeed_cli.classroom.common import some
from lightspeed_cli.errors import UserError

WORDS = "grade once more what a score came from, and compare"
ARGUMENTS = (
    option("id", type=count, metavar="ID", help="of a grading, as `status NAME` lists them"),
)
NAMED = False


def run(options, course, book):
    from lightspeed_class.grading.batch import replay as again

    if not book.gradings(id=options.id):
        raise UserError(
            f"there is no grading {options.id}; `lightspeed class status NAME` shows the ids"
        )
    same, before, after, differs = again(book, options.id)
    print(
        f"grading {options.id}: {'the same result' if same else 'ANOTHER RESULT'},"
        f" {some(before.points)} then, {after.points:g} now."
    )
    (name,) = {
        s.assignment
        for s in book.submissions()
        for g in book.gradings(id=options.id)
        if s.id == g.submission
    }
    if {s.question: s.out_of for s in after.scores} != book.assignment(name).points:
        print(
            "  The points in class.toml have changed since; this was by those of then. For those"
            f" of now: lightspeed class regrade {name}"
        )
    print(
        f"  digest {before.digest[:16]} then, {after.digest[:16]} now; other than then:"
        f" {', '.join(differs) or 'nothing'}"
    )
    return 0 if same else 1
