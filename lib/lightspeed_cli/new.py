"""`lightspeed new`: a skeleton that says what is missing."""

from lightspeed_cli.errors import UserError


def add(parser):
    """Put the arguments of the verb on its parser."""
    parser.add_argument("kind", choices=["chip", "question", "law", "chapter"])
    names = "mychip, roofline.my_question (topic.name), roofline.my_law (module.function)"
    parser.add_argument("name", help=f"such as {names}, 13_mychapter")


def run(options):
    """Write the skeleton, and list what to fill in."""
    from lightspeed_authoring.new import ROOT, new, todos
    from lightspeed_authoring.notebooks import BuildError

    try:
        paths = {str(path.relative_to(ROOT)) for path in new(options.kind, options.name)}
    except BuildError as error:
        raise UserError(error) from error
    print("\n".join(line for line in todos() if line.partition(":")[0] in paths))
    print(f"That is what {options.name} lacks. `lightspeed check` fails until it is all there.")
