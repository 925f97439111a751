"""`lightspeed statements`: the sentences that nothing holds to be true, and how many are held."""

from lightspeed_cli.errors import UserError


def add(parser):
    """Put the arguments of the verb on its parser."""
    files = "such as chapters/02, content/roofline or gallery; all if none"
    parser.add_argument("names", nargs="*", metavar="FILE", help=files)
    parser.add_argument("--all", action="store_true", help="those too that a claim holds")
    parser.add_argument(
        "--sign", metavar="NAME", help="NAME has read what is new in FILE, sentence and condition"
    )


def run(options):
    """Print statements and their number in each file; or sign new ones in the named pages."""
    from lightspeed_authoring import signatures, statements
    from lightspeed_authoring.notebooks import BuildError

    try:
        if options.sign is not None:
            new = signatures.sign(signatures.files(options.names), options.sign)
            print(f"{new} new sentences or conditions are signed in chapters/signed.json.")
            return
        print("\n".join(statements.report(options.names, options.all)))
    except (BuildError, ValueError) as error:
        raise UserError(error) from error
