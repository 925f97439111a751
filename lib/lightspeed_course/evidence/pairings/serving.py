"""Served models: Little's law, and the energy of a token."""

from __future__ import annotations

import numpy as np

from lightspeed.catalog import find
from lightspeed.energy import energy_of
from lightspeed.queueing import concurrency
from lightspeed_course.evidence.pairing import Judged, Pairing
from lightspeed_course.evidence.words import Words

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


PAIRINGS = (
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
