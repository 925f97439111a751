"""Served models: Little's law, and the energy of a token."""

from __future__ import annotations

import numpy as np

from lightspeed.catalog import find
from lightspeed.energy import energy_of
from lightspeed.queueing import concurrency, latency
from lightspeed_models.evidence.pairing import Judged, Pairing
from lightspeed_models.evidence.word_column import Words

CHIPS = {"B200": "b200", "H100": "h100_sxm"}
STEADY = 1.5


def little(rows):
    """L = lambda W with the median for W: what comes of taking a median for a mean."""
    tail = rows["latency_p99"] / rows["latency_median"]
    names = (
        "several replicas",
        "steady (p99 under 1.5 medians)",
        "p99 of 1.5 to 4 medians",
        "p99 above 4 medians",
    )
    skew = 1 + np.digitize(tail, (STEADY, 4))
    return Judged(
        concurrency(rows["rate"], rows["latency_median"]),
        rows["batch"],
        Words(names, np.where(rows["data"] > 1, 0, skew).astype(np.int32)),
        rows.name,
    )


def board_power(rows):
    """A token costs what the boards draw while it is made: at most their rated power."""
    power = rows["chip"].lookup(lambda name: find(CHIPS[name]).power)
    batch = np.digitize(rows["batch"] / rows["devices"], (16, 128))
    names = ("fewer than 16 in flight a GPU", "16 to 127", "128 and more")
    return Judged(
        energy_of(power, 1 / rows["rate"], rows["devices"]),
        rows["energy"],
        Words(names, batch.astype(np.int32)),
        rows.name,
    )


LAST = 0.99  # of a burst that is served at a steady rate, this share is done by the p99
LONG = (1e-4, 1e-3)  # seconds of an accelerator for a sample


def burst(rows):
    """W = L / lambda where all samples come at once, and are served at a steady rate: from all to
    none in flight, that is half of them on average.
    """
    offline = rows.where(rows["scenario"] == "Offline")
    each = offline["nodes"] * offline["accelerators_per_node"] / offline["sample_rate"]
    has_count = each > 0
    silent = [(offline.name(row), NO_COUNT) for row in np.flatnonzero(~has_count)]
    others = np.flatnonzero(~(rows["scenario"] == "Offline"))
    silent += [(rows.name(row), NOT_AT_ONCE) for row in others]
    table, each = offline.where(has_count), each[has_count]
    rate, last = table["sample_rate"], table["latency_p99"] / LAST
    names = ("under 0.1 ms of an accelerator a sample", "0.1 to 1 ms", "1 ms and more")
    return Judged(
        latency(rate * last / 2, rate),
        table["latency_mean"],
        Words(names, np.digitize(each, LONG).astype(np.int32)),
        table.name,
        left=tuple(silent),
    )


NO_COUNT = "the number of accelerators is not said"
NOT_AT_ONCE = "requests come at random, and how many are in flight is not said"


PAIRINGS = (
    Pairing(
        key="little-burst",
        title="Little's law where all samples come at once (unverified)",
        law="lightspeed.queueing.latency",
        set="mlperf_inference",
        chapter="04",
        quantity="mean latency",
        unit="s",
        judge=burst,
        fitted="nothing; the end of a burst is read off its p99",
        lesson="A burst served at a steady rate has half of its samples in flight, so the mean is "
        "half of the last. Where it is not, samples are sorted by length or all handed back at "
        "the end. And the law exposes a counter: where samples are many, the printed mean is a sum "
        "that overflowed",
    ),
    Pairing(
        key="little-serving",
        title="Little's law, with the median for the mean, against served models",
        law="lightspeed.queueing.concurrency",
        set="serving_energy",
        chapter="04",
        quantity="number in flight",
        unit="",
        judge=little,
        lesson="a median is not a mean: the gap grows with the tail",
    ),
    Pairing(
        key="energy-token",
        title="Rated power against the energy of a token",
        law="lightspeed.energy.energy_of",
        set="serving_energy",
        chapter="01",
        quantity="energy of a token",
        unit="J",
        judge=board_power,
        bound="most",
    ),
)
