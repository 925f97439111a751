"""Make a class of synthetic students, to try things on."""

import shlex

from lightspeed_cli.classroom.arguments import option
from lightspeed_cli.classroom.new import is_there

WORDS = "make a class of synthetic students with their submissions, to try things on"
ARGUMENTS = (option("folder", metavar="DIR"),)
NAMED = False


def run(options):
    from lightspeed_class.class_folder import new as make
    from lightspeed_class.handout.release import find
    from lightspeed_class.handout.release import release as give_out
    from lightspeed_class.roster import add_roster
    from lightspeed_class.sample_class import DUE, make_roster, make_sample

    if is_there(options.folder):
        return
    course, path = make(options.folder), find("02_roofline")
    make_roster(course.root / "roster.csv")
    with course.book() as book:
        add_roster(book, course.root / "roster.csv")
        batch = give_out(course, book, path, DUE)
        make_sample(course.root / "submissions", path, seeds=lambda id: book.seed(batch.name, id))
    print(
        f"{course.root} is a class of {batch.students} synthetic students. What they hand in is in"
        f" {course.root / 'submissions'}"
    )
    print(
        f"Next: cd {shlex.quote(options.folder)}; lightspeed class collect {batch.name}"
        f" submissions/canvas.zip; lightspeed class grade {batch.name}"
    )
