"""What number formats cost a real model: published scores, each beside its own baseline.

Rows come from the documents of quantizers and engines under open licences; each has its source with
commit, licence and place (`accuracy_by_format.csv`). Of one table, value and baseline may be
divided; of two tables they may not: laboratories differ more than formats do.
"""

import csv
import functools
from dataclasses import dataclass
from importlib.resources import files
from statistics import fmean

from lightspeed.quantization import score_error

LONG = ("GPQA", "GPQA-Diamond", "AIME-2025", "LiveCodeBench", "HumanEval", "BBH")


@dataclass(frozen=True)
class Score:
    """One model in one format on one test. `bits` are those of what is narrow, weights or caches
    (0 where no source says); `kind` is "accuracy", "ppl" (perplexity), "kld" (KL divergence from
    the baseline's next-token probabilities, in nats) or "agreement". Scores are in per cent.
    """

    model: str
    parameters: float
    format: str
    bits: float
    method: str
    test: str
    kind: str
    questions: int
    baseline: float
    value: float
    source: str
    licence: str

    @property
    def left(self) -> float:
        """The share of the baseline's score that is left."""
        return self.value / self.baseline

    @property
    def long(self) -> bool:
        """Whether the test asks for long reasoning or for code."""
        return self.test in LONG

    @property
    def noise(self) -> float:
        """The standard error of `left` if both scores are draws of so many questions each."""
        share = self.baseline / 100
        return score_error(2 * share * (1 - share), self.questions) / share

    @property
    def plain(self) -> bool:
        """Whether it was merely rounded to nearest, without a calibration."""
        return self.method in ("RTN", "round to nearest")


def scores(kind: str = "accuracy", bits: str = "") -> tuple[Score, ...]:
    """The scores of a kind whose format begins with `bits`, such as "INT4"."""
    return tuple(s for s in _table() if s.kind == kind and s.format.startswith(bits))


@functools.cache
def _table() -> tuple[Score, ...]:
    table = files(__package__).joinpath("accuracy_by_format.csv").read_text("utf-8")
    return tuple(
        Score(
            row["model"], 1e9 * float(row["parameters"]), row["format"], float(row["bits"] or 0),
            row["method"], row["metric"], row["kind"], int(row["questions"] or 0),
            float(row["baseline"] or 0), float(row["value"]), row["source"], row["licence"],
        )
        for row in csv.DictReader(table.splitlines())
    )  # fmt: skip


def compared_recipes(tests: tuple[str, ...]) -> list[tuple[float, float]]:
    """Where one table has both for a model, a test and a format: (the mean score of recipes that
    fit the rounded weights to data or to their own errors, the score of rounding to nearest).
    """
    tables: dict[tuple[object, ...], dict[bool, list[float]]] = {}
    for s in scores():
        if s.test in tests:
            table = tables.setdefault((s.model, s.test, s.format, s.source, s.baseline), {})
            table.setdefault(s.plain, []).append(s.value)
    return [
        (fmean(table[False]), fmean(table[True])) for table in tables.values() if len(table) == 2
    ]
