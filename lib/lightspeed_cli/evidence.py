"""`lightspeed evidence`: every law against public measurements."""

import json

from lightspeed.errors import meant
from lightspeed_cli.errors import UserError, cause
from lightspeed_show.new_file import write_new


def add(parser):
    """Put the arguments of the verb on its parser."""
    parser.add_argument(
        "what", nargs="?", metavar="LAW|SET", help="a law, a set or a pairing (default: all)"
    )
    parser.add_argument(
        "--data", metavar="DIR", help="a folder of checkouts: all rows instead of the samples"
    )
    parser.add_argument("--json", metavar="FILE", help="write the figures here")
    parser.add_argument("--html", metavar="FILE", help="write a page with residual plots here")


def run(options):
    """Print the measurements for the requested laws."""
    from lightspeed_models.evidence import report

    try:
        residuals, missing = report.run(options.what, options.data)
        if options.json:
            write_new(
                options.json, json.dumps(list(map(report.as_json, residuals)), indent=1) + "\n"
            )
        if options.html:
            from lightspeed_models.evidence.page import to_html

            write_new(options.html, to_html(residuals))
    except ModuleNotFoundError as error:
        if error.name != "pyarrow":
            raise
        raise UserError(str(error)) from error
    except (OSError, ValueError) as error:
        there = meant(options.what, report.choices()) if "there is no '" in str(error) else ""
        raise UserError("; ".join(filter(None, (cause(error), there)))) from error
    for sentence in missing:
        print(sentence)
    print("\n\n".join("\n".join(report.in_words(one)) for one in residuals))
