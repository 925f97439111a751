"""Models served under load: both times by constants that the row's publisher had no part in."""

from __future__ import annotations

import functools

import numpy as np

from lightspeed_models.evidence.pairing import Judged, Pairing
from lightspeed_models.evidence.served_fit import Table, left_out, ranges
from lightspeed_models.evidence.sets import dataset
from lightspeed_models.evidence.word_column import Words
from lightspeed_models.served import ENGINES
from lightspeed_models.served_rows import measured_rows

APART = "own GPUs for prompts"
SETS = ("served_models", "served_cookbook")


def printed(rows):
    """The rows as the source prints them: name -> text or number, times in ms."""
    columns = {
        name: list(column) if isinstance(column, Words) else column.tolist()
        for name, column in rows.columns.items()
    }
    for name in ("silicon_ttft_ms", "silicon_tpot_ms"):
        columns[name] = [value * 1e3 for value in columns[name]]
    return [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]


@functools.lru_cache(maxsize=2)
def judged(rows):
    """(rows that are judged, by number, their table, both times by constants of other publishers,
    the rows that are left): the other set's rows, as they ship, set constants too.
    """
    by_number, reasons = measured_rows(printed(rows))
    other = next(name for name in SETS if name != rows.record.key)
    beside = measured_rows(printed(dataset(other)))[0].values()
    table = Table([*by_number.values(), *beside])
    times = [each[: len(by_number)] for each in left_out(table)]
    silent = tuple((rows.name(i), reason) for i, reason in reasons.items())
    return (
        list(by_number),
        table.part(np.arange(len(table.rows), dtype=np.intp) < len(by_number)),
        times,
        silent,
    )


def _judged(rows, which):
    numbers, table, times, silent = judged(rows)
    seconds, measured = times[which], (table.per_token, table.first_token)[which]
    names = (*ENGINES, APART)
    codes = np.where(table.together, table.engine, len(ENGINES)).astype(np.int32)
    low, high = np.transpose(ranges(table, which))
    return Judged(
        seconds,
        measured,
        Words(names, codes),
        lambda i: rows.name(numbers[i]),
        seconds * low,
        seconds * high,
        left=silent,
    )


def tokens(rows):
    """Time between tokens, of a publisher that no constant has seen."""
    return _judged(rows, 0)


def first(rows):
    """Time to the first token, of a publisher that no constant has seen."""
    return _judged(rows, 1)


PAIRINGS = (
    Pairing(
        key="served-cookbook",
        title="The expected time between tokens in SGLang's cookbook",
        law="lightspeed_models.served_law.state",
        set="served_cookbook",
        chapter="09",
        judge=tokens,
        fitted="what GPUs reach and an engine's launches, on the rows of other publishers",
        left_out="publisher",
        lesson="One engine on chips that the others measured little: a fifth off in the "
        "median, and untuned software of two pages three to eight times slower than told",
    ),
    Pairing(
        key="served-tokens",
        title="The expected time between tokens under load",
        law="lightspeed_models.llm.step.mixed_step",
        set="served_models",
        chapter="09",
        judge=tokens,
        fitted="what GPUs reach and an engine's launches, on the rows of other publishers",
        left_out="publisher",
        lesson="A step that reads prompts and decodes together explains load; launches of a layer "
        "with experts cost twice those of another. What is left is unsaid: drafts of tokens ahead, "
        "versions of an engine, tokens of a chunk",
    ),
    Pairing(
        key="served-first",
        title="The expected time to the first token under load",
        law="lightspeed_models.llm.step.mixed_step",
        set="served_models",
        chapter="09",
        judge=first,
        fitted="the same, with launches of steps that read, by other publishers' rows",
        left_out="publisher",
        lesson="A first token is of a protocol: a mean over waves that begin at once, or a "
        "median of a steady loop. Told its own, the law is right to a third where no row of the "
        "publisher set a constant; above 130 in flight it promises none",
    ),
)
