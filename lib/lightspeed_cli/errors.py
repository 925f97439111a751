"""A mistake that the reader can mend, and the words for it."""

import difflib


class UserError(Exception):
    """A mistake that the reader can mend, told in one line."""


def nearest(word, choices, likeness=0.6):
    """The choice that was probably meant, or all of them, in words."""
    close = difflib.get_close_matches(word, choices, 1, likeness)
    return f"did you mean {close[0]}?" if close else f"there are {', '.join(choices)}"


def cause(error):
    """An error of the system as words that name the file: never its number."""
    if not (isinstance(error, OSError) and error.strerror):
        return str(error)
    said = error.strerror[0].lower() + error.strerror[1:]
    return f"{error.filename}: {said}" if error.filename else said
