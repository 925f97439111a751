"""A template repository for GitHub Classroom."""

from lightspeed_cli.classroom.arguments import option
from lightspeed_cli.classroom.common import known

WORDS = "write a template repository for GitHub Classroom, with a workflow that grades"
ARGUMENTS = (option("into", metavar="DIR", help="a folder that is new or empty"),)


def run(options, course, book):
    from lightspeed_class.grading.autograder import SECRET
    from lightspeed_class.handout.autograder import github

    name = known(book, options.name)
    versions = course.released(name).glob(f"v*/{name}.ipynb")
    newest = max(versions, key=lambda path: int(path.parent.name[1:]), default=None)
    github(book, name, newest, options.into)
    print(
        f"{options.into} is the template; hidden inputs are drawn from the secret {SECRET}, which"
    )
    print(
        "you set for the organisation. Students can read and change all of it, so what it says is"
        " for them; what counts is lightspeed class collect, then grade."
    )
