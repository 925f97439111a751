"""What `lightspeed law` says: a law by its name or by a word, with its equation and units."""

from lightspeed.lookup import describe, find, laws, one_line
from lightspeed_cli.errors import UserError


def add(parser):
    """Put the arguments of the verb on its parser."""
    parser.add_argument(
        "words", nargs="*", help="a name, such as bubble_over_total, or words: pipeline bubble"
    )


def run(options):
    """Print the law that the words name, or a line for each that they describe."""
    values = [word for word in options.words if "=" in word]
    words = [word for word in options.words if word not in values]
    if values and not words:
        raise UserError(f"{values[0]} is no law: name the law, such as roofline.critical_batch")
    try:
        names = find(" ".join(words)) if words else list(laws())
    except LookupError as error:
        raise UserError(f"{error} (`lightspeed law` lists all)") from error
    if values:
        module, _, name = names[0].partition(".")
        raise UserError(
            "it shows a law and does not compute it: in Python,"
            f" from lightspeed.{module} import {name}; {name}({', '.join(values)})"
        )
    print(describe(names[0]) if len(names) == 1 else "\n".join(map(one_line, names)))
