"""The course's own job on the GPUs that it was offered: only the cause and its numbers vary."""

from dataclasses import replace

from lightspeed_course import job
from lightspeed_course.incidents.setting import Cause
from lightspeed_course.incidents.training import TRAINING
from lightspeed_course.incidents.training_job import PER_NODE, Job
from lightspeed_models.products import kernel
from lightspeed_models.stack import stack

COPIES = job.OFFERED // (job.TENSOR * job.PIPELINE)
PLANNED = Job(
    job.MODEL,
    job.GPU,
    job.NETWORK,
    job.OFFERED // PER_NODE,
    job.SEQUENCES // COPIES,
    job.SEQUENCE,
    job.PIPELINE,
)
# The share of its peak that fp8 reaches over that of bf16, on H100: in published steps of training
# (catalog/fitted_stacks.toml), and in large products by themselves (fitted_products.toml).
FP8 = (
    stack("foundry_h100_fp8").share / stack("foundry_h100").share,
    kernel("fp8", "hopper").compute_share / kernel("bfloat16").compute_share,
)
# In no other training job: one more cause would shift all draws.
NARROW_PLAN = Cause(
    "narrow_plan",
    "The plan took fp8 at its promise, twice the speed of bf16; nothing is broken.",
    "Plan again, with the share of its peak that an fp8 product reaches.",
    lambda rng, job: replace(job, fp8=rng.uniform(*FP8), fp8_plan=True),
    lambda job: replace(job, fp8_plan=False),
)
WEEK = replace(
    TRAINING,
    id="week",
    plan=lambda rng: PLANNED,
    single=(*TRAINING.single, NARROW_PLAN),
    pairs=(),
    # The files of a pipeline are not written (training_trace.py).
    measurements=tuple(m for m in TRAINING.measurements if not m.write),
    has_opening=False,
)
