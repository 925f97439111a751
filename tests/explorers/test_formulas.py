"""The law of an explorer with its numbers: what stands there is the law's own result, and a reader
who puts the shown numbers together finds the shown result.
"""

import itertools
import math
import re

import pytest

from lightspeed import collectives, kernels, networks, queueing, scaling, serving
from lightspeed.catalog import accelerator, link
from lightspeed.memory import zero_bytes_per_device
from lightspeed.parallel import data_parallel_bytes
from lightspeed.precision import FORMATS
from lightspeed.roofline import (
    WIDTH,
    compute_time,
    matmul_bytes,
    matmul_flops,
    ridge_point,
    tiled_matmul_bytes,
    time_bounds,
    transfer_time,
)
from lightspeed_course import job
from lightspeed_course.explorers import kernels as kernel_clocks
from lightspeed_course.explorers import planner, precision, requests, serving_steps
from lightspeed_course.explorers.layer_clock import LAYER, WAYS_IN
from lightspeed_course.explorers.numbers import PING, paths
from lightspeed_course.explorers.packets import BEFORE, BURST, LINKS, PACKETS
from lightspeed_course.explorers.queueing import limits as fit_and_allowed
from lightspeed_course.explorers.roofline import ARITHMETIC
from lightspeed_course.explorers.shards import PARAMETERS
from lightspeed_course.explorers.wire import transfer
from lightspeed_course.web.live import explorers
from lightspeed_models.llm import decoder
from lightspeed_models.simulators.network_simulation import transmissions
from lightspeed_models.simulators.schedules import simulate
from lightspeed_show import Formula, si
from lightspeed_tools.measure.machine import hardware

PREFIX = {
    "f": -15,
    "p": -12,
    "n": -9,
    "µ": -6,
    "m": -3,
    "": 0,
    "k": 3,
    "M": 6,
    "G": 9,
    "T": 12,
    "P": 15,
    "E": 18,
    "Z": 21,
}
WORDS = {"million": 1e6, "billion": 1e9, "trillion": 1e12, "quadrillion": 1e15}
UNITS = r"FLOP/s|B/s|bytes?|B|FLOP|requests/s|s"
NUMBER = re.compile(
    r"(?P<number>(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?)(?P<ten> × 10(?P<power>[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+))?"
    rf"(?: (?P<word>{'|'.join(WORDS)}))?(?: ?(?P<percent>%))?"
    rf"(?: (?P<prefix>[fpnµmkMGTPEZ])?(?P<unit>{UNITS})(?![\w]))?"
)
RAISED = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")


def value(found):
    power = int(found["power"].translate(RAISED)) if found["ten"] else 0
    number = float(found["number"].replace(",", "")) * 10.0**power
    number *= WORDS.get(found["word"], 1) / (100 if found["percent"] else 1)
    return number * 10.0 ** PREFIX[found["prefix"] or ""]


def worked_out(text):
    """What a reader with a calculator gets for a side of a formula as it is shown."""
    sums = NUMBER.sub(lambda found: repr(value(found)), text)
    for sign, own in (("−", "-"), ("×", "*"), ("÷", "/"), ("^", "**")):
        sums = sums.replace(sign, own)
    return eval(sums, {"__builtins__": {"max": max, "min": min}})


def one_in_the_last_place(text):
    """How much a number as shown may be off because it was rounded."""
    found = NUMBER.search(text)
    shown, whole = value(found), float(found["number"].replace(",", ""))
    # Three digits are shown of every result; trailing zeros are not.
    return shown / whole * 10.0 ** (math.floor(math.log10(whole)) - 2) if whole else 1e-12


def matmul(s, b="batch", d="contraction", f="output", peak="compute"):
    machine = hardware(s["hardware"])
    kinds = [WIDTH[s[k]] for k in ("weights", "activations", "activations")]
    flops, size = matmul_flops(s[b], s[d], s[f]), matmul_bytes(s[b], s[d], s[f], *kinds)
    # A machine that lacks a format computes in the next that it has, as the view says.
    kind = s[peak] if s[peak] in machine else next(p for p in ARITHMETIC if p in machine)
    return time_bounds(flops, size, getattr(machine, kind), machine.hbm_bandwidth).lower


def decoding(s, _):
    chip, model = hardware(s["hardware"]), decoder(s["model"])
    batch = min(
        fit_and_allowed(
            *(s[k] for k in ("hardware", "chips", "model", "weights", "context", "budget"))
        )
    )
    kv = s["context"] * model.kv_cache_bytes_per_token()
    width = {"bf16": 2, "int8": 1, "int4": 0.5}[s["weights"]]
    peak, bandwidth = s["chips"] * chip.bf16, s["chips"] * chip.hbm_bandwidth
    return serving.decode_step(batch, model.parameters, kv, peak, bandwidth, width).time


def fact(name):
    return lambda s, shown: dict(shown.facts)[name]


def fits(s):
    return min(s["servers"], math.floor(s["memory"] / s["kv_bytes"]))


def number_of(s):
    f = FORMATS[s["format"]]
    return f.decode(precision.code_of(f, s["rest"], s))


def ridge(key):
    chip = accelerator(key)
    return ridge_point(chip.bf16, chip.hbm_bandwidth)


def queued(s, shown):
    """The load at first; Little's law once somebody came."""
    inside = dict(shown.facts)["inside, mean so far"]
    return si(s["load"], "%") if shown.formula.name == "load" else inside


def all_reduced(s):
    """Of a ring what is sent; of a tree what takes the time; of a switch what is printed."""
    if s["algorithm"] == "tree":
        return collectives.tree_time(1.0, s["ranks"], 1.0)
    return collectives.busbw_factor("all_reduce", s["ranks"])


# What the formula's result must be: by the law, or as a fact of the view that has tests of its own.
def blocks_of_attention(way):
    """Bytes of attention over 128 tokens, 16 numbers a head, in blocks of 32."""
    online = kernels.query_block_bytes(1, 128, 16, 32)
    if way == kernel_clocks.ONLINE:
        return online
    # Scores read K again for each block of queries, and Q for each of keys; the sum of values V.
    square, operand, blocks = kernels.score_bytes(1, 128), 2 * 128 * 16, 4
    return 4 * square + (3 * blocks + 1) * operand


RESULTS = {
    "roofline.explore": (lambda s, _: matmul(s), "s"),
    "numbers.explore": (
        lambda s, _: transfer_time(
            s["size"], paths()[s["path"]].bandwidth, paths()[s["path"]].latency
        ),
        "s",
    ),
    "numbers.explore_two_waits": (
        lambda s, _: transfer_time(s["size"], link("ethernet_10g").bandwidth, PING),
        "s",
    ),
    "numbers.explore_generations": (
        lambda s, _: ridge(s["new"]) / ridge(s["old"]),
        "",
    ),
    "scaling.explore": (
        lambda s, _: scaling.usl_speedup(s["n"], serial=s["serial"], kappa=s["kappa"]),
        "",
    ),
    "queueing.explore": (
        lambda s, _: queueing.concurrency(s["arrival_rate"], s["service_time"]) / fits(s),
        "%",
    ),
    "queueing.explore_serving": (decoding, "s"),
    "planner.explore_planner": (
        lambda s, _: (
            planner.split(
                s["network"], s["batch"], s["tensor"], s["pipeline"], s["stage"], 1e9 * s["memory"]
            ).time
            * job.TOKENS
            / (s["batch"] * job.SEQUENCE)
        ),
        "s",
    ),
    "serving_steps.explore_serving_steps": (
        lambda s, _: (
            s["rate"]
            * s["prompt"]
            * (1 - s["found"])
            / min(s["budget"], s["prompt"])
            * serving_steps.chunk_time(s["prompt"], min(s["budget"], s["prompt"]))
        ),
        "%",
    ),
    "attention.explore_attention": (
        lambda s, _: decoder(s["model"]).request_bytes(s["context"], s["element_bytes"]),
        "byte",
    ),
    "requests.explore_queue": (queued, None),
    "requests.explore_batching": (
        lambda s, _: max(
            sum(requests.lengths(s["seed"], s["mixed"])) / s["slots"],
            max(requests.lengths(s["seed"], s["mixed"])),
        ),
        "",
    ),
    "nccl.explore": (fact("busbw"), ""),
    "parallelism.explore": (fact("MFU"), "%"),
    "network.explore": (
        lambda s, _: (
            networks.incast_time(s["senders"], s["burst"], link(s["link_key"]).bandwidth) + 2e-6
        ),
        "s",
    ),
    "network.explore_fabric": (fact("it takes"), ""),
    "packets.explore_lost": (
        lambda s, _: len([*transmissions(s["rule"], PACKETS, {BEFORE}.__contains__, s["window"])]),
        "",
    ),
    "packets.explore_incast": (lambda s, _: (s["senders"] - 1) * BURST, "byte"),
    "packets.explore_bins": (lambda s, _: (1 - 1 / LINKS) ** s["flows"], "%"),
    # The wire carries the same, whatever crosses it.
    "wire.explore_wire": (lambda s, _: transfer()[1], "byte/s"),
    "precision.explore": (lambda s, _: number_of(s), ""),
    "number_line.explore_number_line": (fact("step"), ""),
    "roundings.explore_roundings": (lambda *_: FORMATS["bf16"].spacing(0.02) / 2, ""),
    "traffic.explore_two_clocks": (
        lambda s, _: matmul(
            s | {"weights": "bf16", "activations": "bf16", "compute": "bf16", "d": 8192},
            d="d",
            f="d",
        ),
        "s",
    ),
    "kernels.explore_clocks": (lambda s, _: kernel_clocks.clocks(**s).bound, "s"),
    "kernels.explore_moves": (lambda s, _: blocks_of_attention(s["way"]), "byte"),
    "traffic.explore_tiles": (
        lambda s, _: tiled_matmul_bytes(*[s["side"]] * 3, *[s["side"] // s["across"]] * 2),
        "byte",
    ),
    # Each kernel reads the array and writes one; memory is the limit in all states.
    "traffic.explore_fusion": (
        lambda s, _: (
            transfer_time(4 * s["elements"], hardware("h100_sxm").hbm_bandwidth)
            * (1 if s["fused"] else s["passes"])
        ),
        "s",
    ),
    **{
        f"allreduce.explore_{name}": (lambda s, _: all_reduced(s), "")
        for name in ("all_reduce", "tree", "switch")
    },
    "schedules.explore_schedules": (
        lambda s, _: (
            simulate(
                s["schedule"],
                s["stages"],
                s["micro_batches"],
                chunks=1 + (s["schedule"] == "interleaved"),
            ).bubble_over_total
        ),
        "%",
    ),
    # In its forward pass a layer does two FLOPs a parameter and token, and two bytes of it arrive.
    "layer_clock.explore_layer_clock": (
        lambda s, _: max(
            compute_time(2 * s["tokens"] * LAYER, accelerator("h100_sxm").bf16),
            transfer_time(2 * LAYER, math.prod(WAYS_IN[s["way"]])),
        ),
        "s",
    ),
    "states.explore_states": (lambda s, _: zero_bytes_per_device(1, 4, s["stage"]), ""),
    # So many caches as an answer has at its half way.
    "blocks.explore_blocks": (lambda s, _: 4 * s["blocks"] / (8 + s["answer"] / 2), ""),
    "shards.explore_shards": (
        lambda s, _: data_parallel_bytes(PARAMETERS, s["gpus"], s["stage"], s["micro_batches"]),
        "byte",
    ),
}
SLOW = {"network.explore": 16, "network.explore_fabric": 24}  # runs packets


def test_every_law_at_the_heart_of_an_explorer_is_shown():
    shown = {name for name, e in explorers().items() if e.first.formula}
    assert shown == set(RESULTS)


@pytest.mark.parametrize("name", RESULTS)
def test_the_result_is_the_law_s_and_the_shown_numbers_give_it(name):
    e, (law, unit) = explorers()[name], RESULTS[name]
    each = 3 if len(e.controls) > 1 else 9
    states = itertools.chain([e.params], e.grid(each=each, most=SLOW.get(name, 90)))
    met = 0
    for state in states:
        shown = e.view(**state)
        if shown.formula is None:
            continue
        met += 1
        _, numbers = shown.formula.lines()
        right, result = numbers.removeprefix("= ").rsplit(" = ", 1)
        told = law(state, shown)
        if name == "parallelism.explore":  # a fact of two digits
            result_here = si(shown.formula.result[0], "%", 2)
        else:
            told = told if isinstance(told, str) else si(told, unit)
            result_here = result
        assert result_here == told, (state, numbers)
        size = -1 if result.startswith("-") else 1
        off = abs(worked_out(right) - size * value(NUMBER.search(result)))
        assert off <= 1.001 * one_in_the_last_place(result), (state, numbers)
    assert met > 5


def test_an_expression_that_does_not_give_the_law_s_result_is_refused():
    values = {"a": (3.0, "s"), "b": (2.0, "s")}
    with pytest.raises(ValueError, match="the law says 7"):
        Formula("time", "a + b", values, (7.0, "s"))
    with pytest.raises(ValueError, match="expected a value for each name"):
        Formula("time", "a + c", values, (5.0, "s"))
    with pytest.raises(ValueError, match="no others"):
        Formula("time", "a + 1", values, (4.0, "s"))


def test_a_difference_of_near_numbers_gets_the_digits_that_it_needs():
    shown = Formula("left", "a - b", {"a": (1.00001, "s"), "b": (1.0, "s")}, (1e-5, "s"))
    assert shown.lines() == ["left = a − b", "= 1.00001 s − 1 s = 10 µs"]


def test_brackets_stand_where_they_are_needed():
    names = {"a": (8.0, ""), "b": (4.0, ""), "c": (-2.0, "")}
    for expression, text, result in (
        ("a - (b - c)", "a − (b − c)", 2.0), ("a - b + c", "a − b + c", 2.0),
        ("a / (b * c)", "a ÷ (b × c)", -1.0), ("a / b * c", "a ÷ b × c", -4.0),
        ("(a + b) * c", "(a + b) × c", -24.0), ("a * b ** c", "a × b^c", 0.5),
        ("max(a, b + c)", "max(a, b + c)", 8.0),
    ):  # fmt: skip
        used = {n: v for n, v in names.items() if n in expression.replace("max", "")}
        lines = Formula("r", expression, used, (result, "")).lines()
        assert lines[0] == f"r = {text}"
        assert worked_out(lines[1].removeprefix("= ").rsplit(" = ", 1)[0]) == pytest.approx(result)


def test_a_still_and_the_live_view_carry_the_law():
    e = explorers()["roofline.explore"]
    symbols, numbers = e.first.formula.lines()
    assert e.first.spec()["formula"] == [symbols, numbers]
    shown = e._repr_mimebundle_()["text/html"]
    assert symbols in shown.partition(" src=")[0] and numbers in shown.partition(" src=")[0]
