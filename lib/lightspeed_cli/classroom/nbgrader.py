"""An assignment for nbgrader."""

from lightspeed_cli.classroom.arguments import option
from lightspeed_cli.errors import UserError

WORDS = "write an assignment for nbgrader"
ARGUMENTS = (option("into", metavar="DIR"),)


def run(options):
    from lightspeed_authoring.solved import BuildError, solved
    from lightspeed_class.handout.nbgrader import export_nbgrader
    from lightspeed_class.handout.release import find

    try:
        print(export_nbgrader(solved(find(options.name).stem), options.into))
    except BuildError as error:
        raise UserError(error) from error
    except FileExistsError as error:
        raise UserError(
            f"{error.filename} is there already, and is not written over: take it away, or name"
            " another folder"
        ) from error
