"""An engine of a language model whose answers come later than was promised.

The plan and the job are runs of `lightspeed_models.simulators.serving`, step by step; what is wrong
is a setting or a GPU. The promise is of two times: to the first token, and between any two tokens.
"""

import functools
import random
from dataclasses import dataclass, replace
from itertools import accumulate

from lightspeed_course.incidents.setting import Cause, Measurement, Setting, grid, noisy, roughly
from lightspeed_models.simulators.pools import drafted_steps
from lightspeed_models.simulators.serving import Cost, Scheduler, simulate
from lightspeed_show.format import si

REQUESTS, SLOTS, CHUNK, GPUS = 300, 128, 1024, 8
PLANNED = Cost(8e-3, 2e-5, 4e-5, 2e-8)  # of a step: alone, a prompt's token, a row, a token held
FIRST, NEXT = 2.0, 45e-3  # promised, seconds: to the first token, between two tokens
DRAFTS, ACCEPTED = 8, 0.1


@dataclass(frozen=True)
class Job:
    """A serving engine as planned, with possible faults."""

    number: int  # of the draw that makes its requests
    rate: float  # requests a second
    prompt: int
    output: int
    prefix: float  # planned share of prompts that the cache of prefixes finds
    blocks: int = 1_000_000
    found: float = 1.0  # of what should be found
    chunk: int = CHUNK
    slow: float = 1.0  # time of the slowest GPU over the planned one
    drafts: int = 0


@functools.lru_cache(maxsize=256)
def run(job):
    """Return (each request's outcome, arrival times, tokens of each answer)."""
    rng = random.Random(f"engine\n{job.number}")
    arrivals = list(accumulate(rng.expovariate(job.rate) for _ in range(REQUESTS)))
    prompts = [rng.randint(job.prompt // 2, 3 * job.prompt // 2) for _ in range(REQUESTS)]
    outputs = [rng.randint(job.output // 2, 3 * job.output // 2) for _ in range(REQUESTS)]
    cached = [int(job.prefix * job.found * length) for length in prompts]
    steps = drafted_steps(outputs, ACCEPTED, job.drafts, job.number) if job.drafts else outputs
    plan = PLANNED
    cost = Cost(
        plan.base * job.slow,
        plan.token * job.slow,
        (plan.row + job.drafts * plan.token)
        * job.slow,  # a guess is computed like a prompt's token
        plan.held * job.slow,
    )
    rules = Scheduler(job.chunk + SLOTS, SLOTS, job.blocks)
    path = simulate(prompts, steps, cost, rules, arrivals, cached=cached, record=True)
    return path, arrivals, outputs


@functools.lru_cache(maxsize=256)
def kept(job):
    """The share of requests that meet both latency targets. A request waits for a token as long as
    for the longest step during its answer.
    """
    path, arrivals, outputs = run(job)
    ends = [step.end for step in path.steps]
    lasting = [(step.end - step.start) / step.steps for step in path.steps]
    good = 0
    for came, first, last in zip(arrivals, path.first, path.last, strict=True):
        during = [each for each, end in zip(lasting, ends, strict=True) if first < end <= last]
        good += first - came <= FIRST and max(during, default=0.0) <= NEXT
    return good / len(outputs)


def sound(job):
    """Return the job without faults."""
    return Job(job.number, job.rate, job.prompt, job.output, job.prefix)


def rate(job):
    """Share of requests within the targets, relative to the plan's share."""
    return kept(job) / kept(sound(job))


def brief(job):
    return (
        f"**An engine.** {GPUS} GPUs serve one model. The plan says: {job.rate:.2g} requests a"
        f" second, prompts of {job.prompt:,} tokens of which the cache of prefixes finds"
        f" {job.prefix:.0%}, answers of {job.output:,}, chunks of {CHUNK:,}, no drafts."
        f" Promised: {si(FIRST, 's')} to the first token, {si(NEXT, 's')} between two."
        f" {kept(sound(job)):.0%} of requests should have both; {roughly(rate(job))} do. Why?"
    )


def draw_plan(rng):
    while True:
        prompt = rng.choice((4000, 6000))
        # A little more than the engine could read if it found no prefix.
        rate = rng.uniform(1.05, 1.2) * CHUNK / prompt / 35e-3
        prefix = rng.choice((0.5, 0.6))
        job = Job(rng.randrange(10**9), rate, prompt, rng.choice((200, 250)), prefix)
        if kept(job) > 0.97:
            return job


CAUSES = (
    Cause(
        "few_blocks",
        "Most of the memory for caches of requests has gone to something else.",
        "Give the caches of requests their memory back.",
        lambda rng, job: replace(job, blocks=int(rng.uniform(10, 16) * job.prompt) // 16),
        lambda job: replace(job, blocks=Job.blocks),
    ),
    Cause(
        "no_prefixes",
        "The cache of prefixes is off, so prompts are read whole.",
        "Switch the cache of prefixes on.",
        lambda rng, job: replace(job, found=0.0),
        lambda job: replace(job, found=1.0),
    ),
    Cause(
        "large_chunk",
        "A step may read far more of a prompt than was planned.",
        "Cut prompts into the chunks of the plan.",
        lambda rng, job: replace(job, chunk=rng.choice((8, 16)) * CHUNK),
        lambda job: replace(job, chunk=CHUNK),
    ),
    Cause(
        "slow_rank",
        "One GPU of the eight is slow, and all wait for it in each layer.",
        "Take the slow GPU out.",
        lambda rng, job: replace(job, slow=rng.uniform(1.4, 1.7)),
        lambda job: replace(job, slow=1.0),
    ),
    Cause(
        "lost_drafts",
        "Drafts of tokens ahead are checked in each step, and nearly all are wrong.",
        "Stop drafting while many are served.",
        lambda rng, job: replace(job, drafts=rng.randint(DRAFTS, DRAFTS + 4)),
        lambda job: replace(job, drafts=0),
    ),
)


def read_caches(job, rng):
    """Measure (mean decoding requests, requests that lost their blocks)."""
    path = run(job)[0]
    span = sum((s.end - s.start) * s.rows for s in path.steps) / path.steps[-1].end
    return noisy(rng, span, 0.02), sum(many > 0 for many in path.put_off)


def show_caches(job, reading):
    return grid(("in the engine", "seen"), [
        ("requests that write, on average", f"{reading[0]:.1f}"),
        (f"of {REQUESTS} requests put off for lack of blocks", reading[1]),
    ])  # fmt: skip


def tell_caches(job, reading):
    return "put off for lack of blocks" if reading[1] > REQUESTS // 50 else "blocks to spare"


def read_prefixes(job, rng):
    return noisy(rng, job.prefix * job.found, 0.02)


def show_prefixes(job, reading):
    return grid(("tokens of prompts", "plan", "seen"),
                [("found in the cache", f"{job.prefix:.0%}", f"{reading:.0%}")])  # fmt: skip


def tell_prefixes(job, reading):
    return "nothing is found" if reading < job.prefix / 2 else "found as planned"


def read_steps(job, rng):
    """Measure the median step that only decodes, and the longest that prefills, in seconds."""
    path = run(job)[0]
    each = sorted((s.end - s.start) / s.steps for s in path.steps if s.tokens == 0 and s.rows)
    reads = max((s.end - s.start for s in path.steps if s.tokens), default=0.0)
    return noisy(rng, each[len(each) // 2]), noisy(rng, reads)


def show_steps(job, reading):
    planned = read_steps(sound(job), random.Random(0))
    names = ("median step that only writes", "longest step that reads")
    pairs = zip(names, planned, reading, strict=True)
    return grid(("steps", "plan", "seen"), [(name, si(a, "s"), si(b, "s")) for name, a, b in pairs])


def tell_steps(job, reading):
    plain, longest = read_steps(sound(job), random.Random(0))
    if reading[0] > 1.3 * plain:
        return "all steps take longer"
    return "some steps take far longer" if reading[1] > 2 * longest else "steps as planned"


def read_ranks(job, rng):
    """Measure seconds of a layer's kernels on each GPU, without waiting for other GPUs."""
    layer = 1e-4
    times = [noisy(rng, layer, 0.03) for _ in range(GPUS)]
    times[rng.randrange(GPUS)] *= job.slow
    return times


def show_ranks(job, reading):
    return grid(("GPU", "kernels of a layer"), [(n, si(t, "s")) for n, t in enumerate(reading)])


def tell_ranks(job, reading):
    return "one is slow" if max(reading) > 1.3 * sorted(reading)[GPUS // 2] else "all are alike"


def read_drafts(job, rng):
    """Measure (guesses checked per request and step, tokens gained)."""
    _, _, outputs = run(job)
    if not job.drafts:
        return 0, 1.0
    steps = drafted_steps(outputs, ACCEPTED, job.drafts, job.number)
    return job.drafts, noisy(rng, sum(outputs) / sum(steps), 0.01)


def show_drafts(job, reading):
    return grid(("of each request, a step", "plan", "seen"), [
        ("checks guesses", 0, reading[0]), ("writes tokens", "1.00", f"{reading[1]:.2f}"),
    ])  # fmt: skip


def tell_drafts(job, reading):
    return "guesses that are not kept" if reading[0] and reading[1] < 1.5 else "no guesses"


MEASUREMENTS = (
    Measurement("caches", "what the engine says of its blocks", 5, read_caches, show_caches,
                tell_caches),
    Measurement("prefixes", "what is found of prompts", 5, read_prefixes, show_prefixes,
                tell_prefixes),
    Measurement("steps", "how long steps take", 10, read_steps, show_steps, tell_steps),
    Measurement("ranks", "each GPU by itself", 30, read_ranks, show_ranks, tell_ranks),
    Measurement("drafts", "what drafts bring", 10, read_drafts, show_drafts, tell_drafts),
)  # fmt: skip

ENGINE = Setting(
    "engine", draw_plan, rate, brief, CAUSES, MEASUREMENTS,
    pace=lambda job: max(kept(job), 1 / REQUESTS), paced="as many requests within the promise",
    pairs=(("no_prefixes", "slow_rank"),),
)  # fmt: skip
