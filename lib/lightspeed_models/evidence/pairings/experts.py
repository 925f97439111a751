"""Tokens to their experts and back: what is sent, and how fast two kernels of DeepEP send it."""

from __future__ import annotations

import numpy as np

from lightspeed.experts import copies_sent, exchanged_bytes
from lightspeed.roofline import time_bounds
from lightspeed_models.evidence.chips import constant, peak, trait
from lightspeed_models.evidence.pairing import Judged, Pairing, each_left_out
from lightspeed_models.evidence.pairings.attention_kinds import CACHES, SHORT
from lightspeed_models.evidence.word_column import Words

RANKS = 8  # GPUs of a node
OUT, BACK = 1 + 4 / 128, 2  # bytes of a number: fp8 with its scales, bf16
# In nvfp4 up to nine times as fast as memory: they read fewer experts than their tables say.
DOUBTED = ("SGLang 0.5.9", "SGLang 0.5.10")
SMALL = 32  # tokens that take no longer than one
LARGE = 0.6  # of the rows: beyond this quantile of bytes, sending is most of the time


def sent(rows):
    """Bytes that a GPU sends: a copy to each GPU with an expert of a token in the normal kernel,
    to each expert in that of low latency.
    """
    copies = np.where(
        rows["kernel"] == "normal", copies_sent(rows["active"], RANKS), rows["active"]
    )
    width = np.where(rows["way"] == "dispatch", OUT, BACK)
    return exchanged_bytes(rows["tokens"], rows["width"], copies, RANKS, width)


def exchange(rows):
    """A latency and a rate. The normal kernel copies as fast as the SMs that it was given, the
    other as fast as a share of the link: either constant is of the other chips.
    """
    several = rows["nodes"] > 1
    silent = tuple(
        (rows.name(int(i)), "between nodes, of which the tables name no network")
        for i in np.flatnonzero(several)
    )
    rows = rows.where(~several)
    link = constant(rows["chip"], "link_bandwidth")
    load = sent(rows) / np.where(rows["kernel"] == "normal", rows["sms"], link)
    predicted = np.empty(len(rows))
    for kernel in rows["kernel"].present():
        for way in rows["way"].present():
            own = (rows["kernel"] == kernel) & (rows["way"] == way)
            predicted[own] = _of_other_chips(rows.where(own), load[own])
    kinds = [f"{k}, {w}" for k in rows["kernel"].names for w in rows["way"].names]
    kind = rows["kernel"].codes * len(rows["way"].names) + rows["way"].codes
    chips = rows["chip"].names
    regime = Words(
        tuple(f"{one}, {chip}" for one in kinds for chip in chips),
        kind * np.int32(len(chips)) + rows["chip"].codes,
    )
    return Judged(predicted, rows["latency"], regime, rows.name, left=silent)


def _of_other_chips(rows, load):
    return each_left_out(
        rows["chip"],
        lambda others: fitted(rows.where(others), load[others]),
        lambda fit, own: fit[0] + load[own] / fit[1],
    )


def fitted(rows, load):
    """(latency, rate): the median time of few tokens, and the median of what many reach beyond."""
    latency = float(np.median(rows["latency"][rows["tokens"] <= SMALL]))
    beyond = rows["latency"] - latency
    large = (load >= np.quantile(load, LARGE)) & (beyond > 0)
    return latency, float(np.median(load[large] / beyond[large]))


def products(rows):
    """Each expert that is read, once, and what is multiplied: three matrices of a gated MLP, two of
    the others.
    """
    narrow = (rows["active"] == 22) | ((rows["width"] == 2688) & (rows["hidden"] == 1856))
    each = np.where(narrow, 2, 3) * rows["width"] * rows["hidden"] / rows["tensor"]
    weight, activation = (trait(rows["format"], f"{of}_bytes") for of in ("weight", "activation"))
    routes = rows["tokens"] * rows["active"]
    weights = np.minimum(rows["experts"], routes) * each * weight
    size = weights + rows["tokens"] * rows["width"] * (activation + 2)
    # A chip without units for a format widens it.
    peaks = np.where(np.isnan(own := peak(rows)), constant(rows["chip"], "bf16"), own)
    bandwidth = constant(rows["chip"], "hbm_bandwidth")
    bounds = time_bounds(2 * routes * each, size, peaks, bandwidth)
    inside = size <= CACHES * constant(rows["chip"], "l2_capacity")
    short = inside | (bounds.lower < SHORT)
    kinds = [f"{bound}, {c}" for bound in ("reading", "multiplying") for c in rows["chip"].names]
    codes = 2 + bounds.compute_bound * len(rows["chip"].names) + rows["chip"].codes
    is_doubtful = rows["library"].isin(DOUBTED) & (rows["format"] == "nvfp4")
    regime = Words(
        ("short, or within two L2 caches", "nvfp4 in SGLang 0.5.9 and 0.5.10", *kinds),
        np.where(short, 0, np.where(is_doubtful, 1, codes)),
    )
    return Judged(bounds.lower, rows["latency"], regime, rows.name, excused=inside)


PAIRINGS = (
    Pairing(
        key="expert-products",
        title="Products of experts against the roofline",
        law="lightspeed.experts.rows_per_expert",
        set="expert_products",
        chapter="04",
        judge=products,
        bound="least",
        excuse="what is read fits two L2 caches",
        lesson="the law exposes a collector: two releases beat memory in one format, by up to nine",
    ),
    Pairing(
        key="expert-exchange",
        title="Tokens to their experts and back, of a chip left out",
        law="lightspeed.experts.exchanged_bytes",
        set="expert_exchange",
        chapter="04",
        judge=exchange,
        fitted="a latency and a rate for each kernel and way, on the other chips",
        left_out="chip",
        lesson="the normal kernel copies what its SMs can, whichever the chip and its links",
    ),
)
