"""The roofline against matrix products."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lightspeed.roofline import time_bounds
from lightspeed_models.evidence.chips import constant, work
from lightspeed_models.evidence.pairing import Judged, Pairing
from lightspeed_models.evidence.word_column import Words

# Below this bound a kernel's launch and its last wave weigh more than the product.
SHORT = 1e-4
REGIMES = ("under 0.1 ms", "memory-bound, within two L2 caches", "memory-bound", "compute-bound")
# What a reader calls the formats of the set.
KINDS = {
    "bfloat16": "bf16",
    "fp8": "fp8",
    "fp8_static": "fp8",
    "fp8_block": "fp8, a scale for each block",
    "nvfp4": "nvfp4",
    "sq": "int8",
    "int8_wo": "narrow weights only",
    "int4_wo": "narrow weights only",
}


def regime(bounds, size, cache):
    """In which of `REGIMES` each of these `TimeBounds` lies."""
    long = np.where(bounds.compute_bound, 3, np.where(size <= 2 * cache, 1, 2))
    return Words(REGIMES, np.where(bounds.lower < SHORT, 0, long).astype(np.int32))


def roof(rows):
    """The roof of the data sheet, with every operand moved once."""
    job, cache = work(rows), constant(rows["chip"], "l2_capacity")
    bounds = time_bounds(**job)
    return Judged(
        bounds.lower,
        rows["latency"],
        regime(bounds, job["size"], cache),
        rows.name,
        excused=job["size"] <= cache,
    )


def roof_by_format(rows):
    """The same, each product under the kind of its format."""
    names = tuple(dict.fromkeys(KINDS.values()))
    kinds = rows["format"].lookup(lambda name: names.index(KINDS[name]), np.int32)
    return replace(roof(rows), regime=Words(names, kinds))


PAIRINGS = (
    Pairing(
        key="roofline-gemm",
        title="The roofline against matrix products",
        law="lightspeed.roofline.time_bounds",
        set="gemm",
        chapter="02",
        judge=roof,
        bound="least",
        excuse="the operands fit the L2 cache",
    ),
    Pairing(
        key="roofline-formats",
        title="The roofline against matrix products, format by format",
        law="lightspeed.roofline.time_bounds",
        set="gemm",
        chapter="05",
        judge=roof_by_format,
        bound="least",
        excuse="the operands fit the L2 cache",
        lesson="Narrow formats keep their promise to memory and break that of arithmetic.",
    ),
)
