"""MFU as its sources print it, and as 6 P D gives it."""

from __future__ import annotations

import numpy as np

from lightspeed.catalog import find
from lightspeed.training import mfu, transformer_training_flops
from lightspeed_models.evidence.pairing import Judged, Pairing
from lightspeed_models.evidence.word_column import Words

CHIPS = {"a100_40gb": "a100_40gb", "a100_80gb": "a100_80gb", "h100_80gb": "h100_sxm"}
# Layers and width of the MPT models, from the source's configurations.
SHAPES = {
    "125m": (12, 768),
    "350m": (24, 1024),
    "760m": (24, 1536),
    "1b": (24, 2048),
    "3b": (32, 2560),
    "7b": (32, 4096),
    "13b": (40, 5120),
    "30b": (48, 7168),
    "70b": (80, 8192),
}
SEQUENCES = ("up to 2,048 tokens", "4,096 and 8,192 tokens", "16,384 tokens and more")


def without_attention(rows):
    """6 P D: what the short formula says of the printed throughput."""
    # One second: tokens are a rate.
    return _judged(rows, mfu(rows["parameters"], rows["rate"], 1.0, rows["devices"], _peak(rows)))


def with_attention(rows):
    """The same with the scores of attention, from layers and width."""
    layers, width = (rows["model"].lookup(lambda m, i=i: SHAPES[m][i]) for i in (0, 1))
    vocabulary = np.round((rows["parameters"] - 12 * layers * width**2) / width)
    flops = transformer_training_flops(rows["rate"], layers, width, vocabulary, rows["sequence"])
    return _judged(rows, flops / (rows["devices"] * _peak(rows)))


def _peak(rows):
    """FLOP/s of a chip in the format of its products."""
    peak = np.where(
        rows["precision"] == "amp_fp8",
        rows["chip"].lookup(lambda c: getattr(find(CHIPS[c]), "fp8", np.nan)),
        rows["chip"].lookup(lambda c: find(CHIPS[c]).bf16),
    )
    return peak


def _judged(rows, predicted):
    regime = Words(SEQUENCES, np.digitize(rows["sequence"], (2049, 8193)).astype(np.int32))
    return Judged(predicted, rows["mfu"], regime, rows.name)


PAIRINGS = (
    Pairing(
        key="mfu-6pd",
        title="MFU by 6 P D against printed MFU",
        law="lightspeed.training.mfu",
        set="fsdp",
        chapter="06",
        quantity="model FLOPs utilization",
        unit="",
        judge=without_attention,
        lesson="6 P D forgets attention, and long sequences are mostly that",
    ),
    Pairing(
        key="mfu-attention",
        title="MFU with attention against printed MFU",
        law="lightspeed.training.transformer_training_flops",
        set="fsdp",
        chapter="06",
        quantity="model FLOPs utilization",
        unit="",
        judge=with_attention,
    ),
)
