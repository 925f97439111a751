"""An exam for the room."""

import secrets

from lightspeed_cli.argument_types import count
from lightspeed_cli.classroom.arguments import option
from lightspeed_cli.classroom.common import known
from lightspeed_cli.errors import UserError

WORDS = "write an exam for the room: papers with numbers of their own, and the key"
ARGUMENTS = (
    option("--papers", type=count, metavar="N", help="default: one for each student"),
    option(
        "--questions", type=count, default=8, metavar="N", help="of each (default: %(default)s)"
    ),
    option("--only", action="append", default=[], metavar="QUESTION", help="these, in their place"),
    option("--seed", metavar="TEXT", help="draws the numbers; the same one, the same papers"),
)


def run(options, course, book):
    from lightspeed_class.exam import papers, write_exam

    name, seed = known(book, options.name), options.seed or secrets.token_hex(4)
    folder = course.root / "exams" / f"{name}-{seed}"
    if not seed.isalnum():
        raise UserError(f"--seed {seed}: expected letters and digits")
    size = options.papers or sum(not s.left for s in book.students())
    if not size:
        raise UserError("there are no students yet: say how many papers with --papers N")
    exam, fixed = papers(book.assignment(name), size, options.questions, seed, options.only)
    path = write_exam(folder, name, exam, seed)
    print(
        f"{len(exam)} papers of {len(exam[0])} questions: {path}, to be printed; one page each is"
        f" beside it. The key is {folder / 'key.html'}, for you alone, and so is the seed {seed}."
    )
    if fixed:
        print(
            "Left out, since the answer is the same on all papers (--only QUESTION asks it):"
            f" {', '.join(fixed)}"
        )
