"""How far off a served time may be, by what was measured of its kind.

An 80 % range is a factor, by the kind of question. Kinds and factors were stated with each of three
publishers left out in turn: no range is set and scored on one publisher's rows; tests/serve counts
how many rows of a publisher it holds that had no part in the constants.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from lightspeed.catalog import Entry
from lightspeed_models.llm import Decoder
from lightspeed_models.served import SYSTEMS
from lightspeed_models.served_rows import Measured

MOST_INSIDE = 130  # requests on a worker: beyond, no first token is promised


@dataclass(frozen=True)
class Kind:
    """A kind of question in words, and the ends of its 80 % ranges, as parts of what is told:
    between tokens, and to the first token.
    """

    words: str
    between: tuple[float, float]
    first: tuple[float, float]


KINDS = {
    "run": Kind("by your own run", (1 / 1.3, 1.3), (1 / 1.6, 1.6)),
    "like": Kind("measured like this", (1 / 1.4, 1.4), (1 / 2.1, 2.1)),
    "seen": Kind("architecture and chip seen, not together", (1 / 1.45, 1.45), (1 / 2.2, 2.2)),
    "chip": Kind("architecture seen, this chip never", (1 / 1.5, 1.5), (1 / 2.4, 2.4)),
    "model": Kind("chip seen, this architecture never", (1 / 1.5, 1.5), (1 / 2.4, 2.4)),
    "neither": Kind("neither architecture nor chip seen", (1 / 1.8, 1.8), (1 / 3.0, 3.0)),
    "amd": Kind("AMD, which few have measured", (0.8, 2.8), (1 / 2.5, 3.0)),
    "bound": Kind("an engine that does not run there: a bound", (1.0, 3.0), (1.0, 4.0)),
}


def unseen(
    rows: Iterable[Measured], model: Decoder, chip: str, engine: str, kind: str
) -> list[str]:
    """What no measured row has: this model, GPU, engine, format, or all of them together."""
    have = [
        (row.run.model.layers, SYSTEMS.get(row.system, row.system), row.engine, row.number_format)
        for row in rows
    ]
    key = (model.layers, chip, engine, kind)
    names = ("this model", "this GPU", "this engine", "this number format")
    missing = [name for i, name in enumerate(names) if all(one[i] != key[i] for one in have)]
    if not missing and key not in have:
        missing.append(f"this model, GPU and format together under {engine}")
    return missing


def kind_of(lacks: list[str], card: Entry, own_run: bool = False) -> Kind:
    """The `Kind` of a question, by what `unseen` says of it, or by a run of one's own."""
    if own_run:
        return KINDS["run"]
    if card.about.get("vendor") == "AMD" and lacks:
        return KINDS["amd"]
    if card.about.get("vendor") in ("Apple", "Google", "AWS", "Intel"):
        return KINDS["bound"]
    chip, model = "this GPU" in lacks, "this model" in lacks
    name = "neither" if chip and model else "chip" if chip else "model" if model else ""
    return KINDS[name or ("seen" if lacks else "like")]
