"""The verbs that make a class; one that is there already is never touched."""

import os
import shlex


def new(options):
    from lightspeed_class.class_folder import new as make

    there = _is_there(options.folder)
    course = make(options.folder)
    if there:
        return
    print(f"{course.root} is the folder of the class. Its choices are explained in class.toml.")
    print(f"Next: cd {shlex.quote(options.folder)}; fill in roster.csv; lightspeed class roster roster.csv")


def sample(options):
    from lightspeed_class.class_folder import new as make
    from lightspeed_class.handout.release import find
    from lightspeed_class.handout.release import release as give_out
    from lightspeed_class.roster import add_roster
    from lightspeed_class.sample_class import DUE, make_roster, make_sample

    if _is_there(options.folder):
        return
    course, path = make(options.folder), find("02_roofline")
    make_roster(course.root / "roster.csv")
    with course.book() as book:
        add_roster(book, course.root / "roster.csv")
        done = give_out(course, book, path, DUE)
        make_sample(course.root / "submissions", path, seeds=lambda id: book.seed(done.name, id))
    print(f"{course.root} is a class of {done.students} synthetic students. What they hand in is in {course.root / 'submissions'}")
    print(f"Next: cd {shlex.quote(options.folder)}; lightspeed class collect {done.name} submissions/canvas.zip; lightspeed class grade {done.name}")


def _is_there(folder):
    """Whether a folder is a class already, and say so."""
    from lightspeed_class.class_folder import SETTINGS

    if found := os.path.isfile(os.path.join(folder, SETTINGS)):
        print(f"{os.path.abspath(folder)} is a class already, and was left as it is.")
    return found
