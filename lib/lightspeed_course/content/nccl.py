"""What the formulas of nccl.md call."""

from typing import Any

from lightspeed import collectives as c
from lightspeed_course.practice.derivation import step
from lightspeed_course.practice.questions import Parameter
from lightspeed_models.nccl_tuner import NET_OVERHEAD, tables
from lightspeed_models.nccl_tuner import PLATEAU as PLATEAU

RANKS = (4, 6, 8, 12, 16)


def gigabytes(canonical, *choices):
    return Parameter(canonical, choices, "GB")


def ranks(canonical=8, *choices):
    return Parameter(canonical, choices or RANKS, show=str)


def factor_of(name):
    """Return a wrong factor that treats every collective as this one."""
    return lambda collective, n: c.busbw_factor(name, n)


RATE = 50e9  # byte/s of a rank, before its links are doubled


def of_the_link(algbw, n, link):
    return c.busbw("all_reduce", n, algbw) / link


def speedup(n, size, latency):
    """Return the speedup of a ring whose links are twice as fast."""
    return c.ring_time(size, n, RATE, latency) / c.ring_time(size, n, 2 * RATE, latency)


def of_the_whole(latency, nodes, per_node, size, network):
    """The share of a latency in a time whose other term is the bandwidth bound."""
    return latency / (latency + c.bandwidth_bound("all_reduce", size, nodes * per_node, network))


BASE, STEP = tables().base["Ring"][2] * 1e-6, tables().step

# On AMD hosts (a p5's) posting a Simple message three times costs more than the step.
INSIDE = max(STEP["NVLINK"]["Ring"][2] * 1e-6, 3 * NET_OVERHEAD["amd"])


def latency_of_steps(nodes, per_node, inside, across, factor=1.0):
    """Seconds of all steps of a ring, with NCCL's base and its factor for large messages."""
    between = c.ring_steps("all_reduce", nodes)
    return factor * (
        BASE + between * across + (c.ring_steps("all_reduce", nodes * per_node) - between) * inside
    )


TIMES: dict[str, Any] = {
    "ring": c.ring_time,
    "doubling": c.recursive_doubling_time,
    "tree": c.tree_time,
    "double_tree": c.double_tree_time,
}


def fastest(size, n, bandwidth, latency):
    return min(TIMES, key=lambda name: TIMES[name](size, n, bandwidth, latency))


WON = {
    "doubling": "At this size steps take more time than bytes, and doubling has the fewest.",
    "double_tree": "Doubling sends far more bytes, and the ring takes far more steps. Two trees"
    " have few of both.",
}

# Which collective carries most of a strategy's bytes, and the ones that one may take it for.
TESTS = {
    "all_reduce": "all_reduce_perf",
    "gather_scatter": "all_gather_perf and reduce_scatter_perf",
    "alltoall": "alltoall_perf",
    "sendrecv": "sendrecv_perf",
}

STRATEGIES = {
    "FSDP, all weights sharded": "gather_scatter",
    "a mixture of experts, spread over the GPUs": "alltoall",
    "a pipeline of stages": "sendrecv",
    "plain data parallelism (DDP)": "all_reduce",
}

SLIPS = {
    "all_reduce": ("gather_scatter", "alltoall", "sendrecv"),
    "gather_scatter": ("all_reduce", "alltoall", "sendrecv"),
    "alltoall": ("all_reduce", "gather_scatter", "sendrecv"),
    "sendrecv": ("all_reduce", "gather_scatter", "alltoall"),
}


def slip(which):
    return lambda strategy: SLIPS[STRATEGIES[strategy]][which]


# What each rank has before and after, and the collective that does it.
MOVES = {
    "a shard of the weights, and at the end all shards": "all_gather",
    "gradients of its own, and at the end one shard of their sum": "reduce_scatter",
    "gradients of its own, and at the end the whole of their sum": "all_reduce",
    "tokens for every other rank, and at the end those that the others had for it": "alltoall",
}

# Whether numbers are added up on the way, and whether a rank ends with the whole.
KINDS = {
    "all_reduce": (True, True),
    "all_gather": (False, True),
    "reduce_scatter": (True, False),
    "alltoall": (False, False),
}


def other_kind(adds, whole):
    """Return the collective that differs in adding, in each rank's result, or in both."""
    kinds = {kind: name for name, kind in KINDS.items()}

    def named(has):
        adding, ends = KINDS[MOVES[has]]
        return kinds[adding != adds, ends != whole]

    return named


def fsdp_over_ddp(micro_batches):
    """Bytes that a rank sends in a step, over those of one all-reduce; (n - 1)/n cancels."""
    gather, scatter = (c.busbw_factor(name, 64) for name in ("all_gather", "reduce_scatter"))
    return micro_batches * (2 * gather + scatter) / c.busbw_factor("all_reduce", 64)


def best_algorithm_steps(n, size, bandwidth, latency):
    return [
        step(
            f"{words}. Its time, over that of the ring.",
            "time / ring",
            time=(float(TIMES[name](size, n, bandwidth, latency)), "s"),
            ring=(float(c.ring_time(size, n, bandwidth, latency)), "s"),
        )
        for name, words in (
            ("doubling", "Recursive doubling has $\\log_2 n$ rounds of swaps"),
            ("tree", "One tree goes up and down with the whole message"),
            ("double_tree", "Two trees share the message and send it in pieces"),
        )
    ]
