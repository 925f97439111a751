"""Models served under load: time between tokens and to the first, by the engine of other models."""

from __future__ import annotations

import functools

import numpy as np

from lightspeed_models.evidence.pairing import Judged, Pairing
from lightspeed_models.evidence.served_fit import Table, intervals, left_out
from lightspeed_models.evidence.word_column import Words
from lightspeed_models.served import ENGINES, measured_rows

APART = "own GPUs for prompts"


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
    """(numbers of the rows that are judged, their table, both times by other models' engines, the
    rows that are left).
    """
    found, refused = measured_rows(printed(rows))
    table = Table(list(found.values()))
    left = tuple((rows.name(i), reason) for i, reason in refused.items())
    return list(found), table, left_out(table), left


def _judged(rows, which):
    numbers, table, times, left = judged(rows)
    told, measured = times[which], (table.per_token, table.first_token)[which]
    names = (*ENGINES, APART)
    codes = np.where(table.together, table.engine, len(ENGINES)).astype(np.int32)
    low, high = intervals(table, told, measured)
    return Judged(
        told,
        measured,
        Words(names, codes),
        lambda i: rows.name(numbers[i]),
        told * low,
        told * high,
        left=left,
    )


def tokens(rows):
    """Time between tokens of a model whose rows no constant has seen."""
    return _judged(rows, 0)


def first(rows):
    """Time to the first token of a model whose rows no constant has seen."""
    return _judged(rows, 1)


PAIRINGS = (
    Pairing(
        key="served-tokens",
        title="The expected time between tokens under load",
        law="lightspeed_models.llm.step.mixed_step",
        set="served_models",
        chapter="09",
        judge=tokens,
        fitted="what GPUs reach and what an engine's launches cost, on the rows of other models",
        left_out="model",
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
        fitted="a front, steps that are queued and the crowd, on the rows of other models",
        left_out="model",
        lesson="A first token costs two to three steps before its own prompt is read. How requests "
        "came, the rows don't say: whether a prompt meets others is the largest part of the error",
    ),
)
