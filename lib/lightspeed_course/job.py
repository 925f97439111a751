"""The job that runs through all lessons: its premises once, and for each lesson what it finds out.

Llama 3 70B is trained further by 64 H100 behind cheap ports, in a week by its plan, and then served
on eight. `sheet` prints what is known of it so far; each function below is a line of that sheet, or
what one rests on. Lines from 6.2 on come from the step model, whose error chapter 6 proves.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from lightspeed.catalog import accelerator, find, link
from lightspeed.collectives import algbw, bandwidth_bound, busbw
from lightspeed.kernels import naive_attention_bytes
from lightspeed.memory import training_state_bytes
from lightspeed.networks import go_back_n, window_packets
from lightspeed.parallel import data_parallel_tokens
from lightspeed.queueing import concurrency, servers_for
from lightspeed.roofline import TimeBounds, time_bounds
from lightspeed.scaling import karp_flatt
from lightspeed.serving import (
    batch_that_fits,
    batch_within,
    decode_step,
    knee_batch,
    prefill_servers,
    prefill_time,
    request_rate,
)  # fmt: skip
from lightspeed.training import training_flops, training_time
from lightspeed_models.llm import decoder
from lightspeed_models.llm.training import model_activation_bytes
from lightspeed_show.format import si

if TYPE_CHECKING:
    from lightspeed_models.llm.step import Engine
    from lightspeed_models.served import Served
    from lightspeed_models.training_step import Step
    from lightspeed_tools.plan.answer import Job
    from lightspeed_tools.trace.account import Account
    from lightspeed_tools.trace.reader import Trace

MODEL, GPU = "llama3_70b", "h100_sxm"
NETWORK, BETTER = "ethernet_100g", "infiniband_ndr"  # a port of each GPU; one four times as fast
GPUS, PER_NODE, OFFERED = 64, 8, 512
WEEK, RUNNING = 7, 13  # days: promised, and what it will take as it runs
TOKENS, UTILIZATION = 36e9, 0.4  # what is trained on, and the share of the peak that was planned
SEQUENCES, SEQUENCE = 512, 2048  # of a step
CONTEXT = 2**17  # tokens of a long request: a report, or a repository
LONG = 8192  # tokens of a sequence that memory is counted for, and of a request half-way
ANSWER, BUDGET = 500, 0.02  # tokens of an answer, and seconds that each may take
ASKED, LATE = 10, 0.1  # requests a second that the service expects, and the share that may wait
WINDOW, PACKET, LOSS = 16e-6, 4096, 0.01  # s of a round trip, bytes, and what a bad cable loses
TENSOR, PIPELINE = 8, 4  # of the plan that mends the week


# ---------------------------------------------------------------- 1: what it weighs, and a week


def weights() -> float:
    """Bytes of the weights in bf16."""
    return 2 * float(find(MODEL).parameters)


def token_flops() -> float:
    """FLOPs to train on one token: 6 for each parameter."""
    return float(training_flops(find(MODEL).parameters, 1))


def read_time() -> float:
    """Seconds in which one GPU would read all weights once."""
    return weights() / float(accelerator(GPU).hbm_bandwidth)


def planned() -> float:
    """Planned time of the run (s): all FLOPs at the planned share of the peak."""
    flops = training_flops(find(MODEL).parameters, TOKENS)
    return float(training_time(flops, GPUS, accelerator(GPU).bf16, UTILIZATION))


# ---------------------------------------------------------------- 2: one layer


def layer_bytes() -> float:
    """Bytes of the matrices of one layer in bf16."""
    model = decoder(MODEL)
    return 2 * model.matrices / model.depth


def layer(tokens: float) -> TimeBounds:
    """Both times (s) of one layer's matrices for `tokens` on a GPU, without activations."""
    chip = accelerator(GPU)
    return time_bounds(layer_bytes() * tokens, layer_bytes(), chip.bf16, chip.hbm_bandwidth)


# ---------------------------------------------------------------- 2.2: its attention


def attention() -> tuple[float, float]:
    """Seconds of a layer's attention over `LONG` tokens on one of eight GPUs: what memory needs if
    its square crosses four times, and what its products need at the peak.
    """
    model, chip = decoder(MODEL).attention, accelerator(GPU)
    heads, kv_heads = model.heads // PER_NODE, model.kv_heads // PER_NODE
    traffic = naive_attention_bytes(heads, kv_heads, LONG, model.head_width)
    flops = 4 * heads * LONG**2 * model.head_width
    return float(traffic / chip.hbm_bandwidth), float(flops / chip.bf16)


# ---------------------------------------------------------------- 3: an offer


def share_for_a_day() -> float:
    """The share that may not shrink if a week is to become a day on the GPUs that are offered."""
    return float(karp_flatt(WEEK, OFFERED / GPUS))


# ---------------------------------------------------------------- 4 and 5: served on eight


def at_once() -> tuple[float, int]:
    """(answers under way on average if each token comes in time, slots so that few wait)."""
    load = float(concurrency(ASKED, ANSWER * BUDGET))
    return load, int(servers_for(load, LATE))


@dataclass(frozen=True)
class Promise:
    """What a replica of eight GPUs can promise at most, by its data sheet: bytes a token leaves,
    requests that fit, the batch at the knee, the one within the budget, requests a second, the time
    of a token alone (s), and replicas that do nothing but read its prompts.
    """

    per_token: float
    slots: float
    knee: float
    batch: float
    rate: float
    alone: float
    feeders: float


def replica(
    weight_bytes: float = 2, cache_bytes: float = 2, context: int = LONG, peak: float = 1
) -> Promise:
    """The `Promise`, with so many bytes for each weight and for each number of a cache, so many
    tokens in the cache of a request, and a peak so many times that of bf16.
    """
    model, chip = decoder(MODEL), accelerator(GPU)
    per_token = float(model.kv_cache_bytes_per_token(cache_bytes))
    machine = {
        "parameters": model.parameters,
        "kv_bytes": per_token * context,
        "peak": PER_NODE * peak * chip.bf16,
        "bandwidth": PER_NODE * chip.hbm_bandwidth,
        "parameter_bytes": weight_bytes,
    }
    memory, weights = PER_NODE * chip.hbm_capacity, weight_bytes * model.parameters
    batch = batch_within(BUDGET, **machine)
    step = decode_step(batch, **machine).time
    prefill = prefill_time(context - ANSWER // 2, model.parameters, machine["peak"])
    return Promise(
        float(per_token),
        float(batch_that_fits(memory, weights, machine["kv_bytes"])),
        float(knee_batch(**machine)),
        float(batch),
        float(request_rate(batch, ANSWER, step)),
        float(decode_step(1, **machine).time),
        float(prefill_servers(prefill, batch, step, ANSWER)),
    )


# ---------------------------------------------------------------- 6: what fits, is sent, waits


def states() -> float:
    """Bytes of weights, gradients and optimizer of one whole copy."""
    return float(training_state_bytes(find(MODEL).parameters).total)


def activations(tokens: int = LONG) -> float:
    """Bytes that one sequence of so many tokens keeps for its backward pass."""
    return float(model_activation_bytes(decoder(MODEL), tokens))


def node_memory() -> float:
    """Bytes of the GPUs of one node."""
    return PER_NODE * float(accelerator(GPU).hbm_capacity)


def node_rate(network: str = NETWORK) -> float:
    """Bytes a second that come into a node through the ports of its GPUs together."""
    return PER_NODE * float(link(network).bandwidth)


def layer_arrives(network: str = NETWORK) -> float:
    """Seconds in which one layer's weights come into a node."""
    return layer_bytes() / node_rate(network)


def tokens_to_hide() -> float:
    """Tokens a GPU would need for each gather, to compute as long as it sends."""
    return float(data_parallel_tokens(accelerator(GPU).bf16, node_rate()))


@cache
def step(plan: str = "spread", gpus: int = GPUS, network: str = NETWORK) -> Step:
    """The `Step` of the job: "spread" is ZeRO-3 over all GPUs, "split" tensor 8 inside a node and
    pipeline 4 between nodes.
    """
    from lightspeed_models import training_step
    from lightspeed_models.plan import Plan, machine
    from lightspeed_models.training_runs import fit_share

    data = gpus // (TENSOR * PIPELINE)
    plans = {
        "spread": Plan(data=gpus, micro_batches=SEQUENCES // gpus, stage=3),
        "split": Plan(data, TENSOR, PIPELINE, micro_batches=SEQUENCES // data, stage=1),
    }
    return training_step.step(
        decoder(MODEL), SEQUENCE, plans[plan], machine(GPU, network, PER_NODE, fit_share())
    )


def run(plan: str = "spread", gpus: int = GPUS, network: str = NETWORK) -> float:
    """Seconds of the whole run with this plan."""
    return step(plan, gpus, network).time * TOKENS / (SEQUENCES * SEQUENCE)


def narrower(gain: float) -> float:
    """How many times faster the split step is if its products alone become `gain` times so."""
    whole = step("split")
    return float(whole.time / (whole.time - whole.compute * (1 - 1 / gain)))


# ---------------------------------------------------------------- 7 and 8: on 512


@dataclass(frozen=True)
class Sum:
    """The all-reduce of gradients on the offered GPUs: bytes of a rank, ranks, seconds at the rate
    of a port, and what nccl-tests would print of it (byte/s).
    """

    size: float
    ranks: int
    time: float
    algbw: float
    busbw: float


def gradients() -> Sum:
    """The `Sum` of the split plan on the GPUs that are offered."""
    ways = TENSOR * PIPELINE
    size, ranks = weights() / ways, OFFERED // ways
    time = float(bandwidth_bound("all_reduce", size, ranks, link(NETWORK).bandwidth))
    rate = algbw(size, time)
    return Sum(size, ranks, time, float(rate), float(busbw("all_reduce", ranks, rate)))


def speedup(network: str = NETWORK) -> float:
    """How many times faster the split run is on the GPUs that are offered."""
    return step("split", network=network).time / step("split", OFFERED, network).time


def share(network: str = NETWORK) -> float:
    """The share of the split run that does not shrink, from 64 GPUs to those offered."""
    return float(karp_flatt(speedup(network), OFFERED / GPUS))


def money() -> float:
    """GPU-hours on the offered GPUs over those on the ones that are there."""
    return OFFERED / GPUS / speedup()


def kept(network: str = NETWORK) -> float:
    """The share of its rate that a link keeps whose cable loses one packet in a hundred."""
    return float(go_back_n(LOSS, window_packets(link(network).bandwidth, WINDOW, PACKET)))


def tuesday() -> float:
    """Seconds of a step on the offered GPUs while one cable loses packets."""
    return step("split", OFFERED).time + gradients().time * (1 / kept() - 1)


# ---------------------------------------------------------------- 4.2: a long request


def long_request() -> tuple[float, int]:
    """(bytes of a request of `CONTEXT` tokens, how many fit beside the weights) in bf16."""
    size = CONTEXT * float(decoder(MODEL).kv_cache_bytes_per_token())
    room = PER_NODE * float(accelerator(GPU).hbm_capacity) - weights()
    return size, int(room // size)


# ---------------------------------------------------------------- 9: prompts, too


@cache
def engine() -> Engine:
    """Return the constants of the serving engine, vLLM's."""
    from lightspeed_models.llm.step import engine

    return engine("vllm")


def loaded(requests: float) -> Served:
    """Return the replica with `requests` in flight, which also prefills."""
    from lightspeed_models.served import Served, served_replica

    gpus = served_replica(GPU, PER_NODE, 1, "bf16")
    memory = float(accelerator(GPU).hbm_capacity)
    return Served(decoder(MODEL), gpus, gpus, memory, requests, LONG - ANSWER // 2, ANSWER)


@cache
def served() -> tuple[int, float]:
    """(requests in flight, requests a second) within the budget, its own prompts read."""
    inside = max(n for n in range(1, 100) if loaded(n).between(engine()) <= BUDGET)
    load = loaded(inside)
    return inside, inside / (load.first(engine()) + ANSWER * load.between(engine()))


# ---------------------------------------------------------------- 10: planned anew


@cache
def planning(network: str = NETWORK) -> Job:
    """The job as `lightspeed plan` is asked for it, for Megatron on H100s."""
    from lightspeed_tools.plan import inputs
    from lightspeed_tools.plan.answer import Job

    options = {"gpu": GPU, "gpus": GPUS, "network": network, "gpus_per_node": PER_NODE}
    cluster = inputs.cluster_from(options, "bf16", "the job")
    setting, stack = inputs.given_stack("megatron_h100", cluster, decoder(MODEL))
    return Job(MODEL, decoder(MODEL), SEQUENCE, SEQUENCES, cluster, stack, setting)


@cache
def planned_anew(network: str = NETWORK) -> dict[str, Any]:
    """What `lightspeed plan` answers for the job: the best plan, those to measure, the rest."""
    from lightspeed_tools.plan.answer import answer

    return answer(planning(network), tokens=TOKENS)


@cache
def explained(
    plan: str = f"dp{GPUS // (TENSOR * PIPELINE)} tp{TENSOR} pp{PIPELINE}",
) -> dict[str, Any]:
    """Return the planner's explanation of one plan, by default of the week's best split."""
    from lightspeed_tools.plan import answer, phrases

    job = planning()
    return answer.explained(job, phrases.plan_of(plan, GPUS, SEQUENCES))


# ---------------------------------------------------------------- 11: its profile


@cache
def profile() -> tuple[Trace, Account]:
    """A micro-batch of the spread run as a profile of one GPU shows it, event by event: each layer
    waits for its weights, with arithmetic at the share of the peak that the step has. And where its
    time went.
    """
    from lightspeed_tools.trace.account import accounts
    from lightspeed_tools.trace.reader import of_events
    from lightspeed_tools.trace.simulated import of_zero3
    from lightspeed_tools.trace.writer import about

    spread, layers = step(), decoder(MODEL).depth
    passes = 3 * layers * SEQUENCES // GPUS  # a backward pass counts for two forward ones
    run = of_zero3(layers, (spread.compute + spread.memory) / passes, layer_arrives())
    trace = of_events(run.events, about(0, GPUS, "the course's job"))
    return trace, accounts(trace)[0]


# ---------------------------------------------------------------- the sheet


@dataclass(frozen=True)
class Line:
    """One lesson's result: its question, the earlier lessons it uses, and the answer's format."""

    asks: str
    uses: tuple[str, ...]
    answer: Callable[[], str]


def _days(seconds: float) -> str:
    return f"{seconds / 86400:.1f} days"


def _one() -> str:
    return (
        f"weights {si(weights(), 'byte')}, training {si(token_flops(), 'FLOP')} a token; planned:"
        f" **{_days(planned())} on {GPUS} GPUs**"
    )


def _two() -> str:
    one, many = layer(1), layer(SEQUENCE)
    return (
        f"read in {si(one.comms, 's')}, and {SEQUENCE:,} tokens computed in"
        f" **{si(many.math, 's')}**"
    )


def _three() -> str:
    return f"only if the share that does not shrink is below **{share_for_a_day():.1%}**"


def _four() -> str:
    load, slots = at_once()
    return f"{load:.0f} on average, and **{slots} slots** if one in ten may wait"


def _replica() -> str:
    promised = replica()
    return (
        f"{si(promised.per_token, 'byte')} of cache a token, {promised.slots:.0f} slots;"
        f" **at most {promised.rate:.1f} requests a second** within {si(BUDGET, 's')} a token"
    )


def _attention() -> str:
    naive, products = attention()
    return (
        f"in three launches {si(naive, 's')}, its products {si(products, 's')}:"
        f" **{naive / products:.1f} times as long**"
    )


def _long() -> str:
    size, many = long_request()
    return f"a request of {CONTEXT:,} tokens keeps {si(size, 'byte')}: **{many} at a time**"


def _five() -> str:
    return (
        f"weights in one byte: at most {replica(1).rate:.1f} a second; the caches:"
        f" **{replica(2, 1).rate:.1f}**"
    )


def _six() -> str:
    return (
        f"states {si(states(), 'byte')}, a node has {si(node_memory(), 'byte')}; spread over"
        f" {GPUS}: **{si(states() / GPUS, 'byte')} each**"
    )


def _sent() -> str:
    return (
        f"a layer arrives in {si(layer_arrives(), 's')}, about {step().mfu:.1%} of the peak is"
        f" left: **{_days(run())}**"
    )


def _waits() -> str:
    return (
        f"tensor {TENSOR} × pipeline {PIPELINE} × data {GPUS // (TENSOR * PIPELINE)}: about"
        f" {step('split').mfu:.1%} of the peak, **{_days(run('split'))}**; a step on {OFFERED}"
        f" takes {si(step('split', OFFERED).time, 's')}"
    )


def _offer() -> str:
    return (
        f"the network runs at line rate; {speedup():.1f} times as fast, so the share is"
        f" {share():.1%}: **about {_days(run('split', OFFERED))}**, for {money():.2f} times the"
        " money"
    )


def _tuesday() -> str:
    share = 1 - step("split", OFFERED).time / tuesday()
    return f"a step takes {si(tuesday(), 's')}: **{share:.0%} of {OFFERED} GPUs**"


def _shared() -> str:
    inside, rate = served()
    return f"{inside} in flight, **about {rate:.1f} requests a second** within {si(BUDGET, 's')}"


def _anew() -> str:
    best = planned_anew()["best"]
    run = best["step_seconds"] * TOKENS / (SEQUENCES * SEQUENCE)
    return f"{best['plan']}: a step takes {si(best['step_seconds'], 's')}, **about {_days(run)}**"


def _profile() -> str:
    _, account = profile()
    return (
        f"{account.exposed_communication / account.span:.0%} of the time is exposed communication,"
        f" and the links are busy for {account.communication / account.span:.0%}: **no order helps,"
        " fewer bytes do**"
    )


LINES = {
    "01": Line("The plan", (), _one),
    "02": Line("One layer on one GPU", ("01",), _two),
    "02.2": Line(f"Its attention over {LONG:,} tokens, on one of eight", ("02",), _attention),
    "03": Line(f"{OFFERED} GPUs are offered: done in a day?", ("01",), _three),
    "04": Line(f"{ASKED} answers asked for in a second: how many at once?", ("01",), _four),
    "04.1": Line("Served on eight", ("01", "04"), _replica),
    "04.2": Line("Served with long texts", ("04.1",), _long),
    "05": Line("Served in narrower numbers", ("01", "04.1"), _five),
    "06.1": Line("Does it fit?", ("01",), _six),
    "06.2": Line("As it runs", ("01", "02", "06.1"), _sent),
    "06.3": Line("With a better split", ("01", "06.2"), _waits),
    "07": Line("The offer, again", ("01", "03", "06.3"), _offer),
    "08": Line("With one bad cable", ("06.3", "07"), _tuesday),
    "09": Line("Served on eight, by an engine that reads its own prompts", ("04.1",), _shared),
    "10": Line("Planned anew, of all plans there are", ("06.2", "06.3"), _anew),
    "11": Line("As its profile shows it", ("02", "06.2"), _profile),
}


# Lesson -> what could make a week thirteen days, until that lesson has looked at it. From 6.3 on
# the network is found out, and those of later lessons are what may hide behind it.
SUSPECTS = {
    "01": "the plan",
    "02": "the memory of a GPU",
    "03": "the time to save",
    "04": "the loader of the data",
    "05": "products in a wide format",
    "06.1": "too little room for the states",
    "06.2": "the network",
    "06.3": "GPUs that wait for one another",
    "07": "a network below its rate",
    "08": "a bad cable",
    "10": "a plan that others beat",
    "11": "the order of sending",
}


def _mystery(until: str) -> str:
    """The question that all lessons of the run work on, with the suspects that are struck off."""
    if until == "09":  # serves
        return ""
    late = until > "06.2"
    suspects = (
        f"<del>{name}</del> (lesson {lesson.lstrip('0')})" if lesson < until else name
        for lesson, name in SUSPECTS.items()
        if (lesson >= "06.3" if late else lesson <= "06.3")
    )
    said = f"It runs, but as it runs it will take **{RUNNING} days**."
    if late:
        said = f"As it first ran it would take **{RUNNING} days**: it waits for its network (6.2)."
    return f" {said} The suspects{' that are left' * late}: {', '.join(suspects)}."


class Sheet:
    """Lines of the job sheet, as `sheet` makes it."""

    def __init__(self, head: str, lines: dict[str, str]):
        self.head, self.lines = head, lines

    def _repr_markdown_(self) -> str:
        lines = (
            f"- {asks if asks.endswith('?') else asks + ':'} {text}"
            for asks, text in self.lines.items()
        )
        return "\n".join([self.head, "", *lines])

    def __repr__(self) -> str:
        return re.sub(r"\*\*|</?del>", "", self._repr_markdown_())


def sheet(until: str | None = None) -> Sheet:
    """What is known of the job before a lesson ("02", "06.2"), of what that lesson uses, with its
    own line open; all of it without `until`. Raises ValueError for no lesson of the thread.
    """
    if until is not None and until not in LINES:
        raise ValueError(f"sheet: until = {until!r}: expected one of {', '.join(LINES)}")
    head = (
        f"**The job{'' if until is None else ' so far'}.** {find(MODEL).name}, trained on"
        f" {TOKENS / 1e9:.0f} billion tokens by {GPUS} H100 in a week, each behind a port of"
        f" {link(NETWORK).bandwidth.printed}."
    )
    if until is None:
        return Sheet(head, {line.asks: line.answer() for line in LINES.values()})
    own = LINES[until]
    values = {LINES[name].asks: LINES[name].answer() for name in own.uses}
    return Sheet(head + _mystery(until), values | {own.asks: "**?**"})
