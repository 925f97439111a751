"""Types of arguments: each refuses what it cannot read with a sentence for the reader."""

import argparse
import contextlib
import math
import re
from datetime import date, datetime
from datetime import time as clock

SECONDS = {"us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "h": 3600.0, "d": 86400.0}


def when(text):
    """Parse a time, in seconds since 1970; a date is the last second of that day."""
    with contextlib.suppress(ValueError):
        return datetime.combine(date.fromisoformat(text), clock(23, 59, 59)).timestamp()
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a time; expected something like 2026-12-01T23:59"
        ) from None


def pair(text):
    """Parse NAME=HEADING into a name and a text."""
    name, equals, title = text.partition("=")
    if not (name and equals and title):
        raise argparse.ArgumentTypeError(f"{text!r}: expected NAME=HEADING")
    return name, title


def number(text):
    """Parse a finite number."""
    with contextlib.suppress(ValueError):
        if math.isfinite(float(text)):
            return float(text)
    hint = (
        f"; with a point: {text.replace(',', '.')}" if re.fullmatch(r"[+-]?\d+,\d+", text) else ""
    )
    raise argparse.ArgumentTypeError(f"{text!r} is not a number{hint}")


def positive(text):
    """Parse a finite number above 0."""
    if number(text) > 0:
        return number(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not above 0")


def count(text):
    """Parse a whole number above 0."""
    if text.isdecimal() and int(text) > 0:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")


def tokens(text):
    """Parse a number of tokens in usual notation: 4096, 32k (of 1,024), 1M.

    >>> tokens("32k"), tokens("1M"), tokens("0")
    (32768, 1048576, 0)
    """
    match = re.fullmatch(r"(\d+)([kKmM]?)", text.strip())
    if not match:
        raise argparse.ArgumentTypeError(f"{text!r}: expected tokens, such as 4096 or 32k")
    return int(match[1]) * {"": 1, "k": 2**10, "m": 2**20}[match[2].lower()]


def port(text):
    """Parse a TCP port; 0 takes any free one."""
    if text.isdecimal() and int(text) < 2**16:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a port: expected a number up to {2**16 - 1}")


def duration(text):
    """Parse a time above 0 with its unit, in seconds.

    >>> duration("500ms"), duration("2 s"), duration("60d")
    (0.5, 2.0, 5184000.0)
    """
    match = re.fullmatch(r"([\d.]+)\s*(us|µs|ms|s|h|d)", text.strip())
    if not match:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a time with its unit, such as 500ms")
    return positive(match[1]) * SECONDS[match[2]]
