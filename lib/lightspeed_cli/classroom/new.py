"""Make the folder of a class; one that is there already is never touched."""

import os
import shlex

from lightspeed_cli.classroom.arguments import option

WORDS = "make the folder of a class"
ARGUMENTS = (option("folder", metavar="DIR"),)
NAMED = False


def run(options):
    from lightspeed_class.class_folder import new as make

    there = is_there(options.folder)
    course = make(options.folder)
    if there:
        return
    print(f"{course.root} is the folder of the class. Its settings are explained in class.toml.")
    print(
        f"Next: cd {shlex.quote(options.folder)}; fill in roster.csv; lightspeed class roster"
        " roster.csv"
    )


def is_there(folder):
    """Whether a folder is already a class; print so if it is."""
    from lightspeed_class.class_folder import SETTINGS

    if exists := os.path.isfile(os.path.join(folder, SETTINGS)):
        print(f"{os.path.abspath(folder)} is already a class, and was left unchanged.")
    return exists
