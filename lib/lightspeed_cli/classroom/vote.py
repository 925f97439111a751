"""Questions for a class to vote on, talk about, and vote on again."""

from lightspeed_cli.classroom.arguments import option
from lightspeed_cli.errors import UserError

WORDS = "print two concept tests of a chapter: vote, discuss, vote again; with the key"
ARGUMENTS = (
    option("chapter", metavar="CHAPTER", help="such as 02_roofline"),
    option("--seed", default="room", metavar="TEXT", help="another one draws other numbers"),
)
NAMED = False


def run(options):
    from lightspeed.errors import meant
    from lightspeed_class.concept_tests import PAIRS, page

    if options.chapter not in PAIRS:
        raise UserError(f"there is no chapter {options.chapter!r}; {meant(options.chapter, PAIRS)}")
    print(page(options.chapter, options.seed), end="")
