"""Megatron-LM and MegaScale on up to 12,288 GPUs: FLOPs, bound, and a step that nothing here tuned.

The plan is the paper's: eight ways of tensor parallelism, eight stages of six chunks. What it does
not say, selective recomputation and micro-batches of one, is assumed.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from lightspeed.catalog import accelerator
from lightspeed_models.evidence.pairing import Judged, Pairing
from lightspeed_models.plan import machine, plan_of_batch
from lightspeed_models.training_runs import expected_step, gpt
from lightspeed_models.training_step import flops, step

SEQUENCE = 2048
MODEL = gpt(layers=96, width=12288, heads=128, vocabulary=64_000, sequence=SEQUENCE)
GPU, NETWORK = "a100_80gb", "infiniband_hdr"  # eight adapters of 200 Gbit/s a node of eight
CUT: dict[str, Any] = {"tensor": 8, "pipeline": 8, "chunks": 6, "recompute": "selective"}


def plans(rows):
    """The plan of each row."""
    return [
        plan_of_batch(int(gpus), int(batch), **CUT)
        for gpus, batch in zip(rows["devices"], rows["batch"], strict=True)
    ]


def steps(rows, expected):
    """The bound of each step, or what to expect by the share of the peak of another paper's run."""
    times = [
        expected_step(MODEL, SEQUENCE, plan, GPU, NETWORK).time
        if expected
        else step(MODEL, SEQUENCE, plan, machine(GPU, NETWORK)).time
        for plan in plans(rows)
    ]
    return Judged(np.array(times), rows["time"], rows["system"], rows.name)


def shares(rows):
    """Model FLOPs over what the GPUs could do in the printed time, beside the printed share."""
    model_flops = np.array([flops(MODEL, int(batch), SEQUENCE) for batch in rows["batch"]])
    could = rows["devices"] * rows["time"] * accelerator(GPU).bf16
    return Judged(model_flops / could, rows["mfu"], rows["system"], rows.name)


_SHARED = {"set": "megascale", "chapter": "06"}
PAIRINGS = (
    Pairing(
        key="megascale-flops",
        title="MFU by the shape of a model against MegaScale's table",
        law="lightspeed_models.training_step.flops",
        quantity="model FLOPs utilization",
        unit="",
        judge=shares,
        lesson="Megatron-LM's rows follow from the shape. MegaScale's are printed a little lower: "
        "its attention slides over a window, whose width the paper does not say.",
        **_SHARED,
    ),
    Pairing(
        key="step-megascale-bound",
        title="The bound of a training step on up to 12,288 GPUs",
        law="lightspeed_models.training_step.step",
        judge=functools.partial(steps, expected=False),
        bound="least",
        **_SHARED,
    ),
    Pairing(
        key="step-megascale",
        title="The expected time of a training step on up to 12,288 GPUs",
        law="lightspeed_models.training_runs.expected_step",
        judge=functools.partial(steps, expected=True),
        fitted="nothing here: the share of the peak of another paper's run (Megatron-LM, 145.6 "
        "billion parameters, 1,536 A100)",
        lesson="Megatron-LM is expected to a tenth; on the most GPUs it is slower than expected, "
        "for stragglers and congestion are not in the law. MegaScale, which overlaps what the law "
        "adds, is faster.",
        **_SHARED,
    ),
)
