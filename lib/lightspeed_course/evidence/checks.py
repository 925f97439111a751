"""What no true row can say, set by set: reason -> the rows of which it holds.

A check takes columns in SI and gives a mask. The first reason that holds is the one a row is
refused for. A row that is merely far off stays: it is evidence.
"""

from __future__ import annotations

import numpy as np

from lightspeed_course.evidence.chips import (
    AT_MOST,
    FORMATS,
    MOVED,
    constant,
    known,
    peak,
    work,
)


def not_above_zero(*names):
    """Rows in which one of these is missing, zero or negative."""
    return lambda columns: np.any([~(columns[name] > 0) for name in names], axis=0)


def not_whole(*names):
    """Rows in which one of these counts is no whole number."""
    return lambda columns: np.any([columns[name] % 1 != 0 for name in names], axis=0)


def unknown_chip(columns):
    """Rows of a chip whose peaks the catalog does not have."""
    return ~columns["chip"].isin(known())


def unknown_format(columns):
    """Rows in a format of which neither width nor peak is known."""
    return ~columns["format"].isin(FORMATS)


def _faster_than_arithmetic(columns):
    done = work(columns)
    return done["flops"] / done["peak"] > columns["latency"] * AT_MOST


def _faster_than_memory(columns):
    """What is in the cache already need not come from memory, but no more than the cache holds."""
    done = work(columns)
    moved = done["size"] - constant(columns["chip"], "l2_capacity")
    return moved / done["bandwidth"] > columns["latency"] * AT_MOST


def _faster_than_links(columns):
    """Each rank sends or receives all but its own part, wherever the sums are made."""
    ranks, size = columns["ranks"], columns["elements"] * columns["format"].lookup(MOVED)
    moved = size * (ranks - 1) / ranks
    return moved / constant(columns["chip"], "link_bandwidth") > columns["latency"] * AT_MOST


CHECKS = {
    "gemm": (
        ("a size or a time is missing or not above zero", not_above_zero("m", "n", "k", "latency")),
        ("a size is no whole number", not_whole("m", "n", "k")),
        ("the chip is not in the catalog", unknown_chip),
        ("the format is not known", unknown_format),
        ("the chip has no units for this format", lambda columns: np.isnan(peak(columns))),
        ("faster than the peak of its format", _faster_than_arithmetic),
        ("faster than memory, even with a full cache", _faster_than_memory),
    ),
    "nccl": (
        (
            "a size or a time is missing or not above zero",
            not_above_zero("ranks", "elements", "latency"),
        ),
        ("a size is no whole number", not_whole("ranks", "elements")),
        ("the chip is not in the catalog", unknown_chip),
        (
            "the format is not known",
            lambda columns: ~columns["format"].isin(MOVED),
        ),
        ("fewer than two ranks exchange nothing", lambda columns: columns["ranks"] < 2),
        ("faster than every link of the chip", _faster_than_links),
    ),
}
