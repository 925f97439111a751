"""A training job as planned and as it runs: seconds of its ranks, and what may be wrong with it.

The plan and the job are both `lightspeed_models.training_step`; the job has one fault. Ranks
meet in collectives, so the slowest sets the pace; micro-batches of a pipeline follow each other at
the pace of its slowest stage. A group that straddles nodes has the adapters of its members on each.
"""

import functools
from dataclasses import dataclass, replace

from lightspeed.catalog import accelerator
from lightspeed_models.llm import decoder
from lightspeed_models.plan import Plan, machine
from lightspeed_models.training_runs import fit_share
from lightspeed_models.training_step import Step, step

PER_NODE = 8


@dataclass(frozen=True)
class Job:
    """A plan on a cluster, with possible faults. Shares are relative to the sound value."""

    model: str
    gpu: str
    network: str
    nodes: int
    micro_batches: int
    sequence: int
    pipeline: int = 1  # stages, each of a node; tensor parallel is each node in itself
    sparse_plan: bool = False  # the plan took the sparse peak
    fp8: float = 0.0  # if products are in it: the share of its peak they reach, over bf16's
    fp8_plan: bool = False  # the plan took that to be 1
    adapter: tuple[int, float] = (0, 1.0)  # node, share of its rate that one adapter keeps
    socket: float = 1.0  # share of the network that crosses to the other socket
    spread: int = 1  # nodes over which a tensor-parallel group is spread
    busy_gpu: tuple[int, float] = (0, 1.0)  # rank, share of it that is left to the job
    hot_node: tuple[int, float] = (0, 1.0)  # node, share of its clock when it is hot
    padding: float = 0.0  # share of the tokens
    recompute: str = "selective"

    @property
    def ranks(self):
        return self.nodes * PER_NODE

    @property
    def data(self):
        """Ranks that sum a gradient. Nodes that have the same remainder by it are one pipeline."""
        return self.nodes // self.pipeline

    @property
    def slowest(self):
        """Relative speed of the slowest rank, 1 if sound."""
        return min(self.busy_gpu[1], self.hot_node[1])

    def speed(self, rank):
        """Return a rank's relative speed, 1 if sound."""
        shares = [self.busy_gpu[1]] * (rank == self.busy_gpu[0])
        shares += [self.hot_node[1]] * (rank // PER_NODE == self.hot_node[0])
        return min(shares, default=1.0)


def sound(job):
    """Return the job without faults, planned with the dense peak."""
    return Job(
        job.model, job.gpu, job.network, job.nodes, job.micro_batches, job.sequence, job.pipeline
    )  # fmt: skip


def _split(job, recompute="selective"):
    return Plan(
        data=job.data,
        tensor=PER_NODE,
        pipeline=job.pipeline,
        micro_batches=job.micro_batches,
        stage=1,
        recompute=recompute,
    )


@functools.cache
def terms(job) -> Step:
    """The step of a rank at full speed, on the networks as they are."""
    plan = _split(job, job.recompute)
    m = _machine(job, job.fp8 or 1.0)
    inside = m.link if job.spread == 1 else min(m.link, m.network * PER_NODE // job.spread)
    m = replace(m, link=inside, network=m.network * job.adapter[1] * job.socket)
    return step(decoder(job.model), job.sequence, plan, m)


@functools.cache
def planned(job) -> Step:
    """Return the step that the plan predicted."""
    plan = _split(job)
    m = _machine(job, 1.0 if job.fp8_plan else job.fp8 or 1.0)
    m = replace(m, peak=assumed_peak(job))
    return step(decoder(job.model), job.sequence, plan, m)


def assumed_peak(job):
    chip = accelerator(job.gpu)
    return chip.fp8 if job.fp8 else chip.bf16_sparse if job.sparse_plan else chip.bf16


def own_peak(job):
    chip = accelerator(job.gpu)
    return chip.fp8 if job.fp8 else chip.bf16


def _machine(job, of_usual):
    m = machine(job.gpu, job.network, PER_NODE, fit_share() * of_usual)
    return replace(m, peak=own_peak(job))


def own_time(job, rank):
    """Seconds that a rank works in a step, without waiting."""
    s = terms(job)
    return (s.compute + s.memory) / job.speed(rank) + s.tensor


def time(job):
    """Seconds of a step: that of its slowest rank."""
    s = terms(job)
    return s.time + (s.compute + s.memory) * (1 / job.slowest - 1)


def rate(job):
    """Useful tokens a second over the plan's."""
    return planned(job).time / time(job) * (1 - job.padding)


def pace(job):
    """Useful steps a second."""
    return (1 - job.padding) / time(job)
