"""An argument of a verb: its name, and how argparse reads it."""


def option(name, **settings):
    """An argument that takes a value."""
    return name, settings


def flag(name, help):
    """An argument that is there or not."""
    return option(name, action="store_true", help=help)
