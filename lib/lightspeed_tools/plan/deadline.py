"""The inverse: how many GPUs meet a deadline."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from lightspeed_tools.plan.answer import Job
from lightspeed_tools.plan.search import Found


def least_gpus(job: Job, seconds: float, tokens: float) -> int:
    """Return the GPUs below which even the peak would miss the deadline: whole nodes."""
    flops = job.model.training_flops(tokens, job.sequence / 2)  # a causal mask halves the scores
    node = job.machine.per_node
    return max(node, int(flops / (job.machine.peak * seconds) // node) * node)


def fewest(
    job: Job, seconds: float, tokens: float, watch: Callable[[int], None] = lambda gpus: None
) -> tuple[Job, Found] | None:
    """Return the job on the fewest whole nodes, up to its own cluster, that trains on `tokens` in
    time, and its search result; None if the whole cluster is too slow. Every number of nodes is
    tried, since an unevenly divisible number of GPUs may be slower than fewer GPUs.
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
