"""Collectives of NCCL on one node: their bound, and alpha-beta from another chip's rows."""

from __future__ import annotations

import numpy as np

from lightspeed.collectives import bandwidth_bound
from lightspeed_models.evidence.chips import constant, of_buffers
from lightspeed_models.evidence.pairing import Judged, Pairing, each_left_out
from lightspeed_models.evidence.word_column import Words
from lightspeed_models.fits import fit_alpha_beta

SIZES = ("up to 64 KiB", "64 KiB to 16 MiB", "above 16 MiB")


def by_size(size):
    """In which of `SIZES` each row lies."""
    return Words(SIZES, np.digitize(size, (2**16 + 1, 2**24 + 1)).astype(np.int32))


def wire(rows):
    """The bound in which only ranks add, at the rate of the data sheet, one direction."""
    (size, _), link = of_buffers(rows), constant(rows["chip"], "link_bandwidth")
    predicted = np.empty(len(rows))
    for operation in rows["operation"].present():
        own = rows["operation"] == operation
        predicted[own] = bandwidth_bound(operation, size[own], rows["ranks"][own], link[own])
    adds = (rows["operation"] == "all_reduce") & (rows["format"] == "half")
    return Judged(predicted, rows["latency"], by_size(size), rows.name, excused=adds)


def hockney(rows):
    """alpha + bytes / beta, both from chips with the same links, never from the row's own chip."""
    (size, factor), link = of_buffers(rows), constant(rows["chip"], "link_bandwidth")
    wires = size * factor
    # What is fitted together: one operation, number of ranks, format and rate of links.
    each = zip(rows["operation"], rows["ranks"], rows["format"], link, strict=True)
    group = Words.of([f"{what} {ranks:g} {kind} {rate:g}" for what, ranks, kind, rate in each])
    predicted = np.full(len(rows), np.nan)
    for name in group.present():
        own = group == name
        chips, bytes_, times = rows["chip"][own], wires[own], rows["latency"][own]
        if len(chips.present()) > 1:
            predicted[own] = each_left_out(
                chips,
                lambda others, b=bytes_, t=times: fit_alpha_beta(b[others], t[others]),
                lambda fit, mine, b=bytes_: fit.time(b[mine]),
            )
    places = np.flatnonzero(~np.isnan(predicted))
    return Judged(
        predicted[places],
        rows["latency"][places],
        by_size(size[places]),
        lambda row: rows.name(places[row]),
    )


PAIRINGS = (
    Pairing(
        key="nccl-bound",
        title="The bandwidth bound against NCCL",
        law="lightspeed.collectives.bandwidth_bound",
        set="nccl",
        chapter="07",
        judge=wire,
        bound="least",
        excuse="an all-reduce of floats, which the switches may add",
    ),
    Pairing(
        key="nccl-alpha-beta",
        title="Alpha-beta against NCCL on a chip that it has not seen",
        law="lightspeed_models.fits.fit_alpha_beta",
        set="nccl",
        chapter="07",
        judge=hockney,
        fitted="alpha and beta of each operation, rank count and format, on the other chips with"
        " links of the same rate",
        left_out="chip",
    ),
)
