"""The course's own job on the GPUs that it was offered: only the cause and its numbers are drawn."""

from dataclasses import replace

from lightspeed_course import job
from lightspeed_course.incidents.training import TRAINING
from lightspeed_course.incidents.training_job import PER_NODE, Job

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
WEEK = replace(
    TRAINING,
    id="week",
    plan=lambda rng: PLANNED,
    # The files of a pipeline are not written (training_trace.py).
    measurements=tuple(m for m in TRAINING.measurements if not m.write),
)
