"""The inverse: how many GPUs meet a deadline."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from lightspeed_tools.plan.answer import Job
from lightspeed_tools.plan.search import Found


def least_gpus(job: Job, seconds: float, tokens: float) -> int:
    """GPUs below which even the peak alone would miss the deadline: whole nodes."""
    flops = job.model.training_flops(tokens, job.sequence / 2)  # a causal mask halves the scores
    node = job.machine.per_node
    return max(node, int(flops / (job.machine.peak * seconds) // node) * node)


def fewest(
    job: Job, seconds: float, tokens: float, watch: Callable[[int], None] = lambda gpus: None
) -> tuple[Job, Found] | None:
    """The job on the fewest whole nodes, up to its own cluster, that trains on so many tokens in
    time, and what was found there. None where even the whole cluster is too slow. Every number of
    nodes from the least is searched, for GPUs that divide badly may be slower than fewer.
    """
    for gpus in _nodes(job, seconds, tokens):
        watch(gpus)
        other = replace(job, cluster=job.cluster.with_gpus(gpus))
        plans = other.found()
        best = plans.best()
        if best is not None and tokens / job.tokens * plans.seconds[best] <= seconds:
            return other, plans
    return None


def _nodes(job: Job, seconds: float, tokens: float) -> Iterator[int]:
    node = job.machine.per_node
    return iter(range(least_gpus(job, seconds, tokens), job.cluster.gpus + 1, node))
