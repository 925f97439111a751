"""What a cell showed and what it shows now, compared by value: a page drawn on another processor is
the same page.

Text has to be the same text. A number that has decimals may differ by `RELATIVE` of itself, as sums
in another order do, and a place in a drawing by `PLACE`: two of the hundredths to which it is
rounded. Whatever readers can tell apart is further apart than that.
"""

import math
import re
from collections.abc import Sequence
from urllib.parse import unquote

from nbformat import NotebookNode

RELATIVE = 1e-6
PLACE = 0.02  # pixels
AROUND = 40  # characters of the text on either side of what moved

_DRAWING = re.compile(r'(?<=src="data:image/svg\+xml,)([^"]*)')
_TIME = re.compile(r"\d[\d.,]*( (n|µ|m)?s\b)?")
_TAG = re.compile(r"(<[^>]*>)")
_DECIMAL = re.compile(r"(?<![\w.])(\d+\.\d+(?:e[-+]?\d+)?|\d+e[-+]?\d+)(?![\w.])")
_PLACE = re.compile(r"(?<![\w.#-])(-?\d+(?:\.\d+)?(?:e[-+]?\d+)?)(?![\w.])")


def moved(
    committed: Sequence[NotebookNode], fresh: Sequence[NotebookNode], is_timing: bool = False
) -> list[str]:
    """Return the differences between a cell's outputs, one text each: which value moved, and how
    far. For a cell that shows its own timings, only the words.
    """
    old, new = (_merged(outputs) for outputs in (committed, fresh))
    if is_timing:
        old, new = ([(k, _TIME.sub("#", text)) for k, text in parts] for parts in (old, new))
    if [part[0] for part in old] != [part[0] for part in new]:
        kinds = (", ".join(kind for kind, _ in parts) or "nothing" for parts in (old, new))
        return ["it showed {}, and shows {}".format(*kinds)]
    pairs = zip(old, new, strict=True)
    return [f"{kind}: {fault}" for (kind, a), (_, b) in pairs for fault in moved_text(a, b)]


def _merged(outputs: Sequence[NotebookNode]) -> list[tuple[str, str]]:
    """(kind, text) of all that outputs show; how a stream is cut into messages is chance."""
    parts: list[tuple[str, str]] = []
    for output in outputs:
        if output.output_type == "stream":
            before = parts.pop()[1] if parts and parts[-1][0] == output.name else ""
            parts.append((output.name, before + output.text))
        elif output.output_type == "error":
            parts.append(("error", f"{output.ename}: {output.evalue}"))
        else:
            parts += [
                (kind, str(text))
                for kind, text in sorted(output.data.items())
                if "widget" not in kind
            ]
    return parts


def moved_text(old: str, new: str) -> list[str]:
    """The same for two texts, which may have drawings in them; at most one fault for each part."""
    if old == new:
        return []
    faults = []
    ours, theirs = (_DRAWING.split(text) for text in (old, new))
    if len(ours) != len(theirs):
        return [_words(old, new)]
    for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        faults += _drawing(unquote(a), unquote(b)) if i % 2 else _numbers(a, b, _DECIMAL, "")
    return faults


def _drawing(old: str, new: str) -> list[str]:
    """Its texts as texts, its tags by their places."""
    ours, theirs = (_TAG.split(text) for text in (old, new))
    if len(ours) != len(theirs):
        return [f"a drawing of {len(ours) // 2} tags has {len(theirs) // 2}: {_words(old, new)}"]
    faults = []
    for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        faults += _numbers(a, b, _PLACE, " px") if i % 2 else _numbers(a, b, _DECIMAL, "")
    more = f"; and {len(faults) - 1} more of this drawing" if len(faults) > 1 else ""
    return [fault + more for fault in faults[:1]]


def _numbers(old: str, new: str, number: re.Pattern[str], unit: str) -> list[str]:
    """The number that moved furthest beyond what is allowed, or the words that differ."""
    if old == new:
        return []
    ours, theirs = number.split(old), number.split(new)
    if ours[::2] != theirs[::2]:
        return [_words(old, new)]
    apart = []
    for i in range(1, len(ours), 2):
        a, b = float(ours[i]), float(theirs[i])
        close = abs(a - b) <= PLACE + 1e-9 if unit else math.isclose(a, b, rel_tol=RELATIVE)
        if not close:
            apart.append((abs(b - a) if unit else abs(b / a - 1) if a else math.inf, i))
    if not apart:
        return []
    _, i = max(apart)
    a, b = float(ours[i]), float(theirs[i])
    far = f"{b - a:+.2f} px" if unit else f"{b / a - 1:+.2g} of it" if a else "from zero"
    before, after = "".join(ours[:i])[-AROUND:], "".join(ours[i + 1 :])[:AROUND]
    more = f", and {len(apart) - 1} more" if len(apart) > 1 else ""
    return [f"{ours[i]} became {theirs[i]} ({far}){more}, in “…{before}{ours[i]}{after}…”"]


def _words(old: str, new: str) -> str:
    """Two texts from shortly before the place where they part."""
    same = next(
        (n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b),
        min(len(old), len(new)),
    )
    start = max(0, same - AROUND)
    return " became ".join(
        f"“{'…' * bool(start)}{text[start : same + 2 * AROUND]}”" for text in (old, new)
    )
