"""Outputs are compared by value: what a reader could tell apart is named, with how far it moved;
what only a processor could is not.
"""

import re

import pytest
from nbformat.v4 import new_output

from lightspeed_authoring.outputs import PLACE, RELATIVE, moved
from lightspeed_show.static import image

DRAWING = '<svg><path d="M 10 {y} L 20 5"/><text x="3" y="{y}">{label}</text></svg>'


def shows(text, kind="text/markdown"):
    return [new_output("display_data", data={kind: text})]


def drawn(y, label="0.30 s", alt="A line that rises"):
    return shows(image(DRAWING.format(y=y, label=label), alt), "text/html")


SAME = [
    (shows("| 1.000000001 |"), shows("| 1.000000002 |")),
    (shows("0.1 + 0.2 = 0.30000000000000004"), shows("0.1 + 0.2 = 0.3")),
    (shows("1.5e-07 s"), shows(f"{1.5e-7 * (1 + RELATIVE / 2)!r} s")),
    (drawn("133.2"), drawn("133.21")),
    (drawn("133"), drawn(f"{133 - PLACE:.2f}")),
    (
        [new_output("stream", text="a\n"), new_output("stream", text="b\n")],
        [new_output("stream", text="a\nb\n")],
    ),
]
MOVED = [
    (shows("| 3.35 TB/s |"), shows("| 3.36 TB/s |"), r"3\.35 became 3\.36 \(\+0\.003 of it\)"),
    (shows("| 1.000001 | 2.5 |"), shows("| 1.000003 | 2.6 |"), r"2\.5 became 2\.6.*, and 1 more"),
    (shows("12 ranks"), shows("13 ranks"), "“12 ranks” became “13 ranks”"),
    (shows("2,000,000,000 bytes"), shows("2,000,000,001 bytes"), "2,000,000,001"),
    (shows("it rises by 2.5"), shows("it falls by 2.5"), "rises.*became.*falls"),
    (shows("-0.5"), shows("0.5"), "“-0.5” became “0.5”"),
    (shows("0.0"), shows("0.5"), r"0\.0 became 0\.5 \(from zero\)"),
    (shows("fig1.2v"), shows("fig1.3v"), "fig1.2v"),
    (drawn("133.2"), drawn("133.5"), r"133\.2 became 133\.5 \(\+0\.30 px\).*; and 1 more of this"),
    (drawn("1", "0.30 s"), drawn("1", "0.31 s"), r"0\.30 became 0\.31 \(\+0\.033 of it\)"),
    (drawn("1"), drawn("1", alt="A line that falls"), "rises.*became.*falls"),
    (drawn("1"), shows("a table"), "it showed text/html, and shows text/markdown"),
    (drawn("1"), [], "it showed text/html, and shows nothing"),
    (
        [new_output("error", ename="BadArgument", evalue="n = 2", traceback=[])],
        [new_output("error", ename="BadArgument", evalue="n = 3", traceback=[])],
        "error: .*n = 2.*n = 3",
    ),
]


@pytest.mark.parametrize(("committed", "fresh"), SAME)
def test_what_no_reader_can_tell_apart_is_the_same(committed, fresh):
    assert moved(committed, fresh) == moved(fresh, committed) == []


@pytest.mark.parametrize(("committed", "fresh", "words"), MOVED)
def test_what_moved_is_named_with_how_far(committed, fresh, words):
    (fault,) = moved(committed, fresh)
    assert re.search(words, fault), fault
