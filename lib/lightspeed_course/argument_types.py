"""Types of arguments: each refuses what it cannot read with a sentence for the reader."""

import argparse
import contextlib
import math
import re
from datetime import date, datetime
from datetime import time as clock


def when(text):
    """A time, in seconds since 1970; a date is the last second of that day."""
    with contextlib.suppress(ValueError):
        return datetime.combine(date.fromisoformat(text), clock(23, 59, 59)).timestamp()
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no time; expected something like 2026-12-01T23:59") from None


def pair(text):
    """A name and a text."""
    name, equals, title = text.partition("=")
    if not (name and equals and title):
        raise argparse.ArgumentTypeError(f"{text!r} is no NAME=HEADING")
    return name, title


def number(text):
    """A finite number."""
    with contextlib.suppress(ValueError):
        if math.isfinite(float(text)):
            return float(text)
    hint = f"; with a point: {text.replace(',', '.')}" if re.fullmatch(r"[+-]?\d+,\d+", text) else ""
    raise argparse.ArgumentTypeError(f"{text!r} is no number{hint}")


def count(text):
    """A whole number above 0."""
    if text.isdecimal() and int(text) > 0:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is no whole number above 0")


def seconds(text):
    """A time above 0, in seconds."""
    if number(text) > 0:
        return number(text)
    raise argparse.ArgumentTypeError(f"{text!r} is no time above 0 s")


def cause(error):
    """An error of the system as words that name the file: never its number."""
    if not (isinstance(error, OSError) and error.strerror):
        return str(error)
    said = error.strerror[0].lower() + error.strerror[1:]
    return f"{error.filename}: {said}" if error.filename else said
