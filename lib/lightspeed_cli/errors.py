"""A mistake that the reader can mend, and the words for it."""


class UserError(Exception):
    """A mistake that the reader can mend, told in one line."""


def cause(error):
    """An error of the system as words that name the file: never its number."""
    if not (isinstance(error, OSError) and error.strerror):
        return str(error)
    said = error.strerror[0].lower() + error.strerror[1:]
    return f"{error.filename}: {said}" if error.filename else said
