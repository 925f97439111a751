"""MFU as its sources print it, and as 6 P D gives it."""

from __future__ import annotations

import numpy as np

from lightspeed.catalog import find
from lightspeed.training import mfu, transformer_training_flops
from lightspeed_models.evidence.pairing import Judged, Pairing
from lightspeed_models.evidence.pairings.training import CHIPS, MPT
from lightspeed_models.evidence.word_column import Words

SEQUENCES = ("up to 2,048 tokens", "4,096 and 8,192 tokens", "16,384 tokens and more")


def without_attention(rows):
    """6 P D: what the short formula says of the printed throughput."""
    # One second: tokens are a rate.
    return _judged(rows, mfu(rows["parameters"], rows["rate"], 1.0, rows["devices"], _peak(rows)))


def with_attention(rows):
    """The same with the scores of attention, from layers and width."""
    layers, width = (rows["model"].lookup(lambda m, i=i: MPT[m][i]) for i in (0, 1))
    vocabulary = np.round((rows["parameters"] - 12 * layers * width**2) / width)
    flops = transformer_training_flops(rows["rate"], layers, width, vocabulary, rows["sequence"])
    return _judged(rows, flops / (rows["devices"] * _peak(rows)))


def _peak(rows):
    """FLOP/s of a chip in the format of its products."""
    wide, narrow = (
        rows["chip"].lookup(lambda c, n=name: find(CHIPS[c][0]).numbers.get(n, np.nan))
        for name in ("bf16", "fp8")
    )
    return np.where(rows["precision"] == "amp_fp8", narrow, wide)


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
