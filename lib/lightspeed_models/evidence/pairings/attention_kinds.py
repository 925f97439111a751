"""Latent, sparse and recurrent attention against their bounds, one decoding step of one layer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from lightspeed.attention import state_bytes
from lightspeed.roofline import time_bounds
from lightspeed_models.evidence.chips import FORMATS, KINDS_OF_MODEL, constant, trait
from lightspeed_models.evidence.pairing import Judged, Pairing
from lightspeed_models.evidence.word_column import Words
from lightspeed_models.llm.shipped import decoder

SHORT = 20e-6  # s: a bound below it is shorter than the launches of what runs
# Beats the bound by up to a sixth, as if it kept one of its two states in two bytes. The tables do
# not say.
UNPACKED = "fused_recurrent_gated_delta_rule"
CACHES = 2  # as many L2 caches may hold a part of what is read


def work(rows):
    """Bytes and FLOPs of each row: what the layer reads of its requests, and its matrices where
    they are part of the row. A recurrence reads its state and writes it back.
    """
    size, flops = np.zeros(len(rows)), np.zeros(len(rows))
    recurrent = rows["key_width"] > 0
    own = rows.where(recurrent)
    state = state_bytes(own["heads"], own["key_width"], own["value_width"])
    size[recurrent], flops[recurrent] = 2 * state * own["batch"], 7 / 4 * state * own["batch"]
    for name in rows["model"].names:
        for heads in np.unique(rows["heads"][~recurrent]):
            part = ~recurrent & (rows["model"] == name) & (rows["heads"] == heads)
            for kind in ("latent", "latent layer", "sparse layer"):
                mask = part & (rows["kind"] == kind)
                if mask.any():
                    size[mask], flops[mask] = _latent(rows.where(mask), kind, name, int(heads))
    return size, flops


def _latent(rows, kind, model, heads):
    layer: Any = decoder(KINDS_OF_MODEL.get(model, "DeepSeek-V3")).layers[0].mixer
    layer = replace(layer, heads=heads) if kind == "sparse layer" else _dense(layer, heads)
    width = trait(rows["cache_format"], "activation_bytes")
    matrices = 0 if kind == "latent" else layer.matrices
    weights = rows["format"].lookup(lambda name: FORMATS[name].weight_bytes if name else 0)
    batch, context = rows["batch"], rows["context"]
    return (
        batch * layer.read_bytes(context, width) + matrices * weights,
        batch * (layer.flops(context) + 2 * matrices),
    )


def _dense(layer, heads):
    return replace(layer, heads=heads, index_heads=0, index_width=0, index_top=0)


def step(rows):
    """The roofline of each step. Where a cache is in fp8, or matrices are narrower than bf16, all
    of its arithmetic may run at that format's peak, if the chip has it.
    """
    size, flops = work(rows)
    peak = constant(rows["chip"], "bf16")
    for narrow in ("fp8", "fp4"):
        formats = [name for name, its in FORMATS.items() if its.peak == narrow]
        may = rows["format"].isin(formats) | rows["cache_format"].isin(formats)
        own = constant(rows["chip"], narrow)
        peak = np.where(may & ~np.isnan(own), own, peak)
    bounds = time_bounds(flops, size, peak, constant(rows["chip"], "hbm_bandwidth"))
    cache = constant(rows["chip"], "l2_capacity")
    traffic = np.where(rows["key_width"] > 0, size / 2, size)  # a state is moved twice
    long = (bounds.lower > SHORT) & (traffic > CACHES * cache)
    kinds = [*rows["kind"].names, "gated delta, unpacked"]
    kind = np.where(rows["kernel"] == UNPACKED, len(kinds) - 1, rows["kind"].codes)
    chips = rows["chip"].names
    names = ("short, or within two L2 caches", *(f"{k}, {chip}" for k in kinds for chip in chips))
    return Judged(
        bounds.lower,
        rows["latency"],
        Words(names, np.where(long, 1 + kind * len(chips) + rows["chip"].codes, 0)),
        rows.name,
        excused=traffic <= CACHES * cache,
    )


PAIRINGS = (
    Pairing(
        key="attention-kinds",
        title="Latent, sparse and recurrent attention against the roofline",
        law="lightspeed.attention.attention_bytes",
        set="attention_kinds",
        chapter="04",
        judge=step,
        bound="least",
        excuse="the cache or the state fits two L2 caches",
        lesson="no kernel beats the bytes of its kind but one, which must keep narrower states",
    ),
)
