"""Files that are written for a user: none that is there is ever written over."""

import os
from pathlib import Path


def write_new(path, text):
    """Write a text as a new file, onto the disk. Raises FileExistsError where one is there, and
    OSError where it cannot be written: then no part of it is left.
    """
    with open(path, "x", encoding="utf-8") as file:
        try:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        except BaseException:
            Path(path).unlink()
            raise
