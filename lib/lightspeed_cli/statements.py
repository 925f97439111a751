"""`lightspeed statements`: the sentences that nothing holds to be true, and how many are held."""

from lightspeed_cli.errors import UserError


def add(parser):
    """Put the arguments of the verb on its parser."""
    files = "such as chapters/02, content/roofline or gallery; all if none"
    parser.add_argument("names", nargs="*", metavar="FILE", help=files)
    parser.add_argument("--all", action="store_true", help="those too that a claim holds")


def run(options):
    """Print them, and how many each file has."""
    from lightspeed_authoring import statements
    from lightspeed_authoring.notebooks import BuildError

    try:
        print("\n".join(statements.report(options.names, options.all)))
    except (BuildError, ValueError) as error:
        raise UserError(error) from error
