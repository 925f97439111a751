"""What holds a law against a set of measurements."""

import functools
import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lightspeed_models.evidence import pairings as package
from lightspeed_models.evidence.sets import Dataset
from lightspeed_models.evidence.word_column import Words


@dataclass(frozen=True, eq=False)
class Judged:
    """A law's answers beside what was measured, one each row, in SI.

    `regime` names where each row lies. `low` and `high` are the ends of an interval that the
    prediction states. `excused` are the rows of a bound that may beat it, for the reason that the
    pairing names. `names` describes row i of these arrays, if it is no longer row i of the set.
    `left` are rows that the law can't answer for: what each says of itself, and the reason.
    """

    predicted: Any  # an array, or what a law made of one
    measured: np.ndarray
    regime: Words
    names: Callable[[int], str]
    low: np.ndarray | None = None
    high: np.ndarray | None = None
    excused: np.ndarray | None = None
    left: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Pairing:
    """One law, one set, and what may be said of the two.

    `law`: dotted name of the function or class of `lightspeed` that answers. `judge`: rows ->
    `Judged`. `fitted`: which parameters were fitted on which rows, or "nothing". `bound`: "" for an
    estimate, else "least" or "most" for what nothing should stay below or exceed; `excuse` says
    which rows may. `left_out`: the column whose words are predicted without their own rows.
    """

    key: str
    title: str
    law: str
    set: str
    chapter: str
    judge: Callable[[Dataset], Judged]
    quantity: str = "time"
    unit: str = "s"
    fitted: str = "nothing"
    bound: str = ""
    excuse: str = ""
    left_out: str = ""
    lesson: str = ""

    def matches(self, word):
        """Whether a user who says this word means this pairing."""
        return word in (self.key, self.set, self.law) or word in self.law.split(".")


@functools.cache
def pairings():
    """Key -> `Pairing`, of every module in `pairings/`, those of early chapters first."""
    names = sorted(module.name for module in pkgutil.iter_modules(package.__path__))
    every = [
        one
        for name in names
        for one in importlib.import_module(f"{package.__name__}.{name}").PAIRINGS
    ]
    keys = [one.key for one in every]
    assert len(keys) == len(set(keys)), "two pairings have one key"
    return {one.key: one for one in sorted(every, key=lambda one: one.chapter)}


def each_left_out(groups, fit, answer):
    """Predictions in which no group has a part in its own: for each word of `groups` (`Words`),
    `answer(fit(mask of the other rows), mask of its rows)`.
    """
    predicted = np.full(len(groups), np.nan)
    for word in groups.present():
        own = groups == word
        predicted[own] = answer(fit(~own), own)
    return predicted
