"""An argument of a verb: its name, and how argparse reads it."""


def option(name, **settings):
    """Describe an argument that takes a value."""
    return name, settings


def flag(name, help):
    """Describe an argument without a value."""
    return option(name, action="store_true", help=help)
