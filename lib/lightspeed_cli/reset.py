"""`lightspeed reset`: one notebook as it was delivered."""

from lightspeed_cli.errors import UserError
from lightspeed_course import workspace


def add(parser):
    """Put the arguments of the verb on its parser."""
    parser.add_argument("name", help="such as chapters/02_roofline")
    parser.add_argument("--dir", help="your folder (default: the one you are in, else as for lab)")


def run(options):
    try:
        folder = workspace.workspace_meant(options.dir)
        name, backup = workspace.reset(options.name, folder)
    except workspace.WorkspaceError as error:
        raise UserError(error) from error
    print(
        f"{name} in {folder} is as delivered."
        + (f" Your version is kept: {backup}" if backup else "")
    )
