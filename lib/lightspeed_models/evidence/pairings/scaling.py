"""MLPerf training: the time of the largest system from the smaller ones, and samples to a target.

A series is one submitter's results on one benchmark with one accelerator in one round. Everything
here is derived from MLPerf results and unverified by MLCommons.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from lightspeed.scaling import amdahl_speedup, usl_speedup
from lightspeed.training import samples_to_target
from lightspeed_models.evidence.pairing import Judged, Pairing
from lightspeed_models.evidence.word_column import Words

SIZES = 3  # of a series, at least: two to fit and one to predict
WITNESSES = 15  # rows of others, at least, to say how far off a law may be
COVER = 0.9  # the share of rows that an interval is made for
BATCHES = 4  # batch sizes of a benchmark, at least: three to fit and one to predict


@dataclass(frozen=True, eq=False)
class Series:
    """Sizes of a system, rising, their times (s) and spreads, and the rows of the largest."""

    name: str
    benchmark: str
    n: np.ndarray
    time: np.ndarray
    largest: int


def series(rows, least=SIZES):
    """Every `Series` of at least so many sizes; of equal sizes the fastest counts."""
    names = [
        " · ".join(words)
        for words in zip(
            *(rows[c] for c in ("round", "submitter", "benchmark", "accelerator")), strict=True
        )
    ]
    groups = Words.of(names)
    result = []
    for name in groups.present():
        own = np.flatnonzero(groups == name)
        best = {}
        for row in own[np.argsort(rows["time"][own], kind="stable")]:
            best.setdefault(float(rows["accelerators"][row]), int(row))
        if len(best) >= least:
            at = [best[n] for n in sorted(best)]
            benchmark = rows["benchmark"][at[0]]
            result.append(Series(name, benchmark, np.array(sorted(best)), rows["time"][at], at[-1]))
    return result


def amdahl(n, time):
    """time(n) = serial + parallel / n through measured times, neither below zero: a function."""
    serial, parallel = _nonnegative(np.column_stack([np.ones_like(n), 1 / n]), time)
    one = serial + parallel
    return lambda m: one / amdahl_speedup(m, serial=serial / one)


def usl(n, time):
    """The same with a cost that grows with n: the Universal Scalability Law."""
    # time (n) = one / usl_speedup(n) = one (1 + serial (n - 1) + kappa n (n - 1)) / n
    one, serial, kappa = _nonnegative(np.column_stack([1 / n, (n - 1) / n, n - 1]), time)
    whole = max(one, 1e-12 * time.max())
    serial = min(serial / whole, 1.0)
    return lambda m: whole / usl_speedup(m, serial=serial, kappa=kappa / whole)


def linear(n, time):
    """Twice the accelerators in half the time, from the largest measured."""
    return lambda m: time[-1] * n[-1] / m


def _nonnegative(terms, time):
    """Coefficients of least squares on relative errors, none below zero."""
    from scipy.optimize import nnls

    scale = terms.max(0)
    return nnls(terms / scale / time[:, None], np.ones(len(time)))[0] / scale


def largest_from_smaller(rows, law):
    """The largest size of each series, by a law through the smaller ones, with an interval.

    The interval is how far off the law was on series of the *other* benchmarks that reach as far.
    """
    runs = series(rows)
    predicted = np.array([law(one.n[:-1], one.time[:-1])(one.n[-1]) for one in runs])
    measured = np.array([one.time[-1] for one in runs])
    benchmark = Words.of([one.benchmark for one in runs])
    reach = np.array([one.n[-1] / one.n[-2] for one in runs])
    regimes = ("up to twice the size", "two to eight times", "eight times and more")
    regime = Words(regimes, np.digitize(reach, (2.0001, 8)).astype(np.int32))
    low, high = np.zeros(len(runs)), np.full(len(runs), np.inf)
    off = measured / predicted
    for name in benchmark.present():
        for far in regime.present():
            own, others = (
                (regime == far) & mask for mask in (benchmark == name, ~(benchmark == name))
            )
            if own.any() and others.sum() >= WITNESSES:  # else there are too few to say
                ends = conformal(off[others])
                low[own], high[own] = predicted[own] * ends[0], predicted[own] * ends[1]
    return Judged(
        predicted,
        measured,
        regime,
        lambda i: f"{runs[i].name}, {runs[i].n[-1]:g} accelerators from {_list(runs[i].n[:-1])}",
        low,
        high,
    )


def conformal(ratios, cover=COVER):
    """The ends of an interval that a further ratio of the same kind lies in so often: ranks, no
    shape assumed, widened for how few there are.
    """
    ranked = np.sort(ratios)
    rank = math.floor((len(ranked) + 1) * (1 - cover) / 2 + 1e-9)
    return ranked[max(rank - 1, 0)], ranked[-max(rank, 1)]


def _list(numbers):
    return ", ".join(f"{n:g}" for n in numbers)


def samples(rows):
    """Samples to the target at a batch size, from the other batch sizes of the benchmark.

    A point is one batch size of a benchmark: results at one size are no witnesses for each other.
    """
    silent = ~((rows["batch"] > 0) & (rows["samples"] > 0))
    silent_rows = [(rows.name(row), SILENT) for row in np.flatnonzero(silent)]
    table = rows.where(~silent)
    parts = []
    for name in table["benchmark"].present():
        own = table["benchmark"] == name
        batch, samples = table["batch"][own], table["samples"][own]
        sizes = np.unique(batch)
        middle = np.array([np.median(samples[batch == b]) for b in sizes])
        if len(sizes) < BATCHES:
            silent_rows += [(f"{name}, batch {b:g}", FEW) for b in sizes]
            continue
        for i, b in enumerate(sizes):
            other = np.arange(len(sizes), dtype=np.intp) != i
            fit = _samples_fit(sizes[other], middle[other])
            edge = 0 if 0 < i < len(sizes) - 1 else 1
            parts.append((name, float(b), samples_to_target(b, *fit), middle[i], edge))
    names = ("between measured batches", "smallest or largest batch")
    return Judged(
        np.array([p[2] for p in parts]),
        np.array([p[3] for p in parts]),
        Words(names, np.array([p[4] for p in parts], np.int32)),
        lambda i: f"{parts[i][0]}, batch {parts[i][1]:g}",
        left=tuple(silent_rows),
    )


SILENT = "the log does not say the batch, or not in what it counts samples"
FEW = f"fewer than {BATCHES} batch sizes of this benchmark"
ENDS = 1e-3, 1e3  # of the critical batch, over the smallest and largest batch that were measured


def _samples_fit(batch, samples):
    """(least, critical) through measured samples. Where they don't grow with the batch, the
    critical batch lies far above it, and where they grow as the batch does, far below.
    """
    least, slope = _nonnegative(np.column_stack([np.ones_like(batch), batch]), samples)
    slope = max(slope, least / (batch.max() * ENDS[1]))
    least = max(least, slope * batch.min() * ENDS[0])
    return least, least / slope


_FROM = "on the smaller systems of the same series; the interval on series of other benchmarks"
_SHARED = {"set": "mlperf_training", "chapter": "03"}
PAIRINGS = (
    Pairing(
        key="amdahl-mlperf",
        title="Amdahl's law on the largest system of a series (unverified)",
        law="lightspeed.scaling.amdahl_speedup",
        judge=lambda rows: largest_from_smaller(rows, amdahl),
        fitted=f"the serial share and the time on one, {_FROM}",
        lesson="a speedup needs an interval",
        **_SHARED,
    ),
    Pairing(
        key="usl-mlperf",
        title="The Universal Scalability Law on the largest system of a series (unverified)",
        law="lightspeed.scaling.usl_speedup",
        judge=lambda rows: largest_from_smaller(rows, usl),
        fitted=f"serial share, kappa and the time on one, {_FROM}",
        **_SHARED,
    ),
    Pairing(
        key="linear-mlperf",
        title="No law at all: twice the accelerators, half the time (unverified)",
        law="lightspeed.scaling.efficiency",
        judge=lambda rows: largest_from_smaller(rows, linear),
        fitted=f"the time of the next smaller system, {_FROM}",
        **_SHARED,
    ),
    Pairing(
        key="critical-batch",
        title="Samples to the target against the batch size (unverified)",
        law="lightspeed.training.samples_to_target",
        set="mlperf_training",
        chapter="03",
        quantity="samples",
        unit="",
        judge=samples,
        fitted="least samples and critical batch, on the other batch sizes of the benchmark",
        left_out="batch",
        lesson="Logs count in samples, epochs, steps, tokens or evaluations, by benchmark and by "
        "submitter: only in one unit do they lie on a line.",
    ),
)
