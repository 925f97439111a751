"""What explorers say of all choices holds for all choices.

Each sentence is read from the verdict, as a reader reads it, and held to the menus and the laws
by code of its own. Nothing here calls an explorer's helpers, only its controls, which are
the menus, and its view.
"""

import bisect
import functools
import math
import random
import re
from collections import Counter
from dataclasses import replace

import pytest

from lightspeed import queueing as queues
from lightspeed import scaling as scales
from lightspeed import serving
from lightspeed.catalog import accelerator, find
from lightspeed.precision import FORMATS
from lightspeed.roofline import time_bounds
from lightspeed_course.explorers import numbers, parallelism, precision, queueing, roofline, scaling
from lightspeed_models.llm import decoder
from lightspeed_models.plan import Plan, machine
from lightspeed_models.training_runs import fit_share
from lightspeed_models.training_step import memory_use, step
from lightspeed_show import Line, si
from lightspeed_tools.measure.machine import hardware

STATES = 320


def sampled(explorer, seed, count=STATES, usable=lambda verdict: True):
    """(state, view) of the first state and of random ones."""
    draw = random.Random(seed)
    yield explorer.params, explorer.first
    while count:
        state = {
            name: draw.choice(control.options)[1] for name, control in explorer.controls.items()
        }
        shown = explorer.view(**state)
        if usable(shown.verdict):
            count -= 1
            yield state, shown


def judge(explorer, claims, seed, expected, **how):
    """Every sentence that `claims` reads is true, and each kind was met as often as expected."""
    met, wrong = Counter(), []
    for state, shown in sampled(explorer, seed, **how):
        for kind, holds in claims(state, shown):
            met[kind] += 1
            if not holds:
                wrong.append((kind, shown.verdict, state))
    false = Counter(kind for kind, _, _ in wrong)
    assert not wrong, (
        f"{len(wrong)} of {met.total()} sentences are false, {dict(false)}: {wrong[0]}"
    )
    missing = {kind: met[kind] for kind, least in expected.items() if met[kind] < least}
    assert not missing, f"too few to prove anything: {missing} of {met}"


def options(explorer, name):
    """What a reader can choose in a control: text -> value."""
    return dict(explorer.controls[name].options)


def said(pattern, text):
    """The groups of the one place in a text where a pattern stands, or None."""
    found = re.search(pattern, text)
    return found and found.groups()


def names_in(text):
    """(names, how many there are in all) of a list such as "A, B and 3 more"."""
    *most, last = [name for part in text.split(", ") for name in part.split(" and ")]
    more = said(r"^(\d+) more$", last)
    shown = most if more else [*most, last]
    return shown, len(shown) + int(more[0] if more else 0)


def means(name, machine):
    """Whether a name in a sentence is that of a machine of a menu, whose name may say more."""
    start, _, end = name.partition(" (")
    return machine.startswith(start) and (not end or end.rstrip(")") in machine)


def lists(text, true_of):
    """Whether a list names machines of `true_of` only, each once, and counts them all."""
    shown, count = names_in(text)
    ours = [[m for m in true_of if means(name, m)] for name in shown]
    return count == len(true_of) and all(ours) and len({m[0] for m in ours}) == len(shown)


# ---------------------------------------------------------------- roofline

BYTES = {"int4": 0.5, "int8": 1, "fp8": 1, "bf16": 2, "fp32": 4}


def compute_bound(machine, state, batch=None):
    """Whether the matmul of this state is compute-bound there; None without such a peak."""
    if state["compute"] not in machine:
        return None
    b, d, f = batch or state["batch"], state["contraction"], state["output"]
    moved = (b * d + b * f) * BYTES[state["activations"]] + d * f * BYTES[state["weights"]]
    return time_bounds(
        2 * b * d * f, moved, getattr(machine, state["compute"]), machine.hbm_bandwidth
    ).compute_bound


@pytest.mark.slow
@pytest.mark.holds(
    "explorers",
    "states no dense peak for",
    "No batch reaches the ridge",
    "No other machine here with a peak for",
)
def test_the_roofline_speaks_of_its_menu():
    explorer = roofline.explore()
    menu = {name: hardware(key) for name, key in options(explorer, "hardware").items()}

    def claims(state, shown):
        here = hardware(state["hardware"])
        other = said(
            r"this is (\w+)\.", shown.verdict
        )  # a measured machine shows a format that it has
        state = state | {"compute": other[0]} if other else state
        bound = compute_bound(here, state)
        if bound is None:
            yield "no peak", "no dense peak" in shown.verdict
            return
        word = "Compute" if bound else "Memory"
        yield "bound", f"{word}-bound" in shown.verdict
        verdicts = {name: compute_bound(m, state) for name, m in menu.items() if m.key != here.key}
        flips = [name for name, there in verdicts.items() if there is (not bound)]
        if none := said(
            r"No other machine here with a peak for (\w+) makes it (\w+)-bound", shown.verdict
        ):
            yield (
                "no other",
                not flips and none == (state["compute"], "memory" if bound else "compute"),
            )
        if some := said(r"It would be (\w+)-bound on (.*?)\.(?: |$)", shown.verdict):
            yield (
                "it would be",
                some[0] == ("memory" if bound else "compute") and lists(some[1], flips),
            )
        if reach := said(r"A batch of ([\d,]+) tokens? would reach the ridge", shown.verdict):
            batch = int(reach[0].replace(",", ""))
            reaches = (
                compute_bound(here, state, batch),
                batch == 1 or compute_bound(here, state, batch - 1),
            )
            yield "a batch reaches", reaches == (True, False)
        if "No batch reaches the ridge" in shown.verdict:
            yield "no batch", not any(compute_bound(here, state, 2**i) for i in range(50))

    judge(
        explorer,
        claims,
        2,
        {"no other": 60, "it would be": 60, "a batch reaches": 60, "no batch": 5},
    )


# ---------------------------------------------------------------- queues and serving


@pytest.mark.slow
def test_the_queue_names_what_sets_its_capacity():
    def claims(state, shown):
        rate, time, servers = (state[n] for n in ("arrival_rate", "service_time", "servers"))
        room = int(state["memory"] / state["kv_bytes"])

        def slots(more_servers=1, more_room=1):
            return min(servers * more_servers, room * more_room)

        by_memory = slots(more_room=2) > slots() and slots(more_servers=2) == slots()
        by_servers = slots(more_servers=2) > slots() and slots(more_room=2) == slots()
        if "Memory sets the capacity" in shown.verdict:
            yield "memory", by_memory and f"holds {room} of {servers} slots" in shown.verdict
        elif "The servers set the capacity, not memory" in shown.verdict:
            yield "servers", by_servers
        else:
            yield (
                "both",
                "Servers and memory set the same" in shown.verdict
                and not (by_memory or by_servers),
            )
        stable = rate * time < slots()
        yield "stable", shown.verdict.startswith("Stable" if stable else "Overload")
        if way := said(r"With ([\d,]+) slots, .* nine out of ten would not wait", shown.verdict):
            enough = int(way[0].replace(",", ""))
            wait = [
                queues.mmc(rate, 1 / time, c).wait_probability if c > rate * time else 1
                for c in (enough, enough - 1)
            ]
            yield "way out", wait[0] <= 0.1 < wait[1]
            assert not stable

    judge(
        queueing.explore(), claims, 4, {"memory": 50, "servers": 50, "stable": 300, "way out": 30}
    )


def largest(fits):
    """The largest whole number that fits, by trying; zero if one does not."""
    low, high = 0, 1
    while fits(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


@functools.cache
def batches(key, chips, model, weights, context, budget):
    """(what the memory holds, what the budget allows) of a replica, and its laws' arguments."""
    chip, shape = hardware(key), decoder(model)
    width = {"bf16": 2, "int8": 1, "int4": 0.5}[weights]
    laws = {
        "parameters": shape.parameters,
        "kv_bytes": context * shape.kv_cache_bytes_per_token(),
        "peak": chips * chip.bf16,
        "bandwidth": chips * chip.hbm_bandwidth,
        "parameter_bytes": width,
    }
    free = chips * chip.hbm_capacity - shape.parameters * width
    held = largest(lambda b: b * laws["kv_bytes"] <= free)
    return held, largest(lambda b: serving.decode_step(b, **laws).time <= budget), laws


@pytest.mark.slow
@pytest.mark.holds(
    "explorers",
    "On every chip here that can do it",
    "No other chip here can do it",
    "No batch is possible",
    "leave none for a prompt",
)
def test_serving_speaks_of_its_menu_and_counts_the_prompts():
    explorer = queueing.explore_serving()
    menu = options(explorer, "hardware")

    def claims(state, shown):
        replica = [state[n] for n in ("chips", "model", "weights", "context", "budget")]
        held, allowed, laws = batches(state["hardware"], *replica)
        slots, words = min(held, allowed), shown.verdict
        if words.startswith("No batch"):
            yield "no batch", slots == 0
            return
        if words.startswith("Not possible"):
            yield "no prompt", state["context"] <= state["output"] // 2
            return
        limit = said(r"set by (the budget|memory), ", words)[0]
        yield "set by", slots == (allowed if limit == "the budget" else held)
        others = {
            name: batches(key, *replica)[:2]
            for name, key in menu.items()
            if key != state["hardware"]
        }
        able = {name: pair for name, pair in others.items() if min(pair)}
        flips = [n for n, (h, a) in able.items() if (a <= h) != (limit == "the budget")]
        if some := said(r"Something else would decide on (.*?)\.$", words):
            yield "something else", lists(some[0], flips)
        if every := said(r"On every chip here that can do it, (the budget|memory) decides", words):
            yield "every chip", bool(able) and not flips and every[0] == limit
        if "No other chip here can do it" in words:
            yield "no other chip", not able
        time = serving.decode_step(slots, **laws).time * state["output"] / slots
        prompt = serving.prefill_time(
            state["context"] - state["output"] // 2, laws["parameters"], laws["peak"]
        )
        decoding, all_of_it = (state["arrival_rate"] * each for each in (time, time + prompt))
        if "even if it reads the prompts itself" in words:
            yield "reads itself", all_of_it < 1
        elif only := said(
            r"only if other replicas read the prompts.* at most (.*?) requests/s\.", words
        ):
            yield "others read", decoding < 1 <= all_of_it and only[0] == si(1 / (time + prompt))
        else:
            yield "overload", words.startswith("Overload") and decoding >= 1

    expected = {
        "something else": 50,
        "every chip": 20,
        "reads itself": 30,
        "others read": 10,
        "overload": 30,
    }
    judge(explorer, claims, 5, expected, usable=lambda verdict: not verdict.startswith("No"))


# ---------------------------------------------------------------- scaling


@pytest.mark.slow
def test_the_peak_of_scaling_is_the_peak_of_all():
    every = range(1, scaling.MOST + 1)

    @functools.cache
    def fastest(serial, kappa):
        return max(every, key=lambda n: n / (1 + serial * (n - 1) + kappa * n * (n - 1)))

    def claims(state, shown):
        n, serial, kappa = state["n"], state["serial"], state["kappa"]

        def time(n):
            return serial + (1 - serial) / n + kappa * (n - 1)

        parts = {
            "the divided work": (1 - serial) / n,
            "the serial part": serial,
            "the growing cost": kappa * (n - 1),
        }
        share, part = said(r"; (\S+ %) of the time goes to (.*?)\.", shown.verdict)
        yield (
            "goes to",
            parts[part] == max(parts.values()) and share == si(parts[part] / time(n), "%", 2),
        )
        best = fastest(serial, kappa)
        if past := said(
            r"Past the peak: ([\d,]+) processors would be faster, and cheaper", shown.verdict
        ):
            named = int(past[0].replace(",", ""))
            yield (
                "past",
                named == best < n and time(named) < time(n) and named * time(named) < n * time(n),
            )
        elif "This is the peak" in shown.verdict:
            yield "peak", n == best
        elif gain := said(r"would gain (\S+ %) and make the job (\S+ %) dearer", shown.verdict):
            more = min(2 * n, best)
            told = time(n) / time(more) - 1, more * time(more) / (n * time(n)) - 1
            yield "more", gain == tuple(si(x, "%", 2) for x in told)
        gustafson, amdahl = (
            next(m for m in shown.charts[0].marks if isinstance(m, Line) and m.label == name)
            for name in ("Gustafson", "Amdahl")
        )
        there = scales.amdahl_speedup(
            n, serial=serial
        )  # both lines are of one run: they meet at this n
        slope = (gustafson.y[-1] - gustafson.y[0]) / (gustafson.x[-1] - gustafson.x[0])
        yield (
            "one run",
            math.isclose(gustafson.y[0] + slope * (n - gustafson.x[0]), there, rel_tol=1e-6),
        )
        yield (
            "Amdahl",
            math.isclose(amdahl.y[-1], scales.amdahl_speedup(amdahl.x[-1], serial=serial)),
        )

    judge(scaling.explore(), claims, 3, {"goes to": 300, "past": 50, "more": 50, "one run": 300})


# ---------------------------------------------------------------- numbers and formats


@pytest.mark.holds(
    "explorers",
    "Latency decides:",
    "Both matter: {the_bytes} of the time the bytes",
    "A path twice as wide saves",
)
def test_what_decides_a_transfer_decides_it():
    catalog = {
        "gpu_shared": ("gpu_shared", 132),
        "cpu_l1": ("cpu_l1", 6),
        "cpu_l2": ("cpu_l2", 6),
        "gpu_l2": ("gpu_l2", 1),
        "gpu_hbm": ("gpu_hbm", 1),
    }

    def claims(state, shown):
        _, latency, bandwidth, _ = numbers.paths()[state["path"]]
        size = state["size"]
        if state["path"] in catalog:
            key, parts = catalog[state["path"]]
            level = find(key)
            yield (
                "one part",
                bandwidth * parts == pytest.approx(level.bandwidth) and latency == level.latency,
            )
            yield "holds", shown.verdict.startswith("Not from here") == (size > level.capacity)
        if shown.verdict.startswith("Not from here"):
            return
        whole = latency + size / bandwidth
        faster, nearer = latency + size / bandwidth / 2, latency / 2 + size / bandwidth
        saves = (
            1 - faster / whole,
            1 - nearer / whole,
        )  # what twice the bandwidth and half the latency save
        if shown.verdict.startswith("Bandwidth decides"):
            yield "bandwidth", saves[1] <= 0.0500001 and saves[0] >= 0.4499999
        elif shown.verdict.startswith("Latency decides"):
            yield "latency", saves[0] <= 0.0500001 and saves[1] >= 0.4499999
        else:
            told = said(r"twice as wide saves (\S+ %), half the latency (\S+ %)\.", shown.verdict)
            yield "both", min(saves) > 0.0499999 and told == tuple(si(s, "%", 2) for s in saves)

    judge(
        numbers.explore(),
        claims,
        1,
        {"one part": 50, "holds": 50, "bandwidth": 50, "latency": 50, "both": 20},
    )


@pytest.mark.holds("explorers", "Kept within a factor of")
def test_ratios_that_are_said_to_be_kept_are():
    def ratios(key):
        m = accelerator(key)
        return {
            "ridge: peak over memory": m.bf16 / m.hbm_bandwidth,
            "peak over link": m.bf16 / m.link_bandwidth,
            "memory over link": m.hbm_bandwidth / m.link_bandwidth,
            "time to read all memory": m.hbm_capacity / m.hbm_bandwidth,
            "peak per watt": m.bf16 / m.power,
        }

    def claims(state, shown):
        old, new = ratios(state["old"]), ratios(state["new"])
        kept, lost = said(
            r"Kept within a factor of 1\.5: (.*)\. Changed more: (.*)\.$", shown.verdict
        )
        within = [n for n in old if max(new[n] / old[n], old[n] / new[n]) < 1.5]
        yield "kept", kept == (", ".join(within) or "nothing")
        yield "lost", lost == (", ".join(n for n in old if n not in within) or "nothing")

    judge(numbers.explore_generations(), claims, 11, {"kept": 300, "lost": 300})


@pytest.mark.holds("explorers", "keeps this code for results")
def test_neighbours_are_the_nearest_of_all_codes():
    @functools.cache
    def values(name):
        f = FORMATS[name]
        return sorted({v for v in map(f.decode, range(2**f.bits)) if not math.isnan(v)})

    def claims(state, shown):
        f = FORMATS[state["format"]]
        if f.bits > 8:  # a few hundred codes can all be tried
            return
        text = "".join(str(int(state[f"b{i}"])) for i in range(1, 17))
        value = f.decode(int(text[: f.bits], 2))
        if math.isnan(value) or math.isinf(value) or value == 0:
            kind = (
                "Not a number" if math.isnan(value) else "Infinity" if math.isinf(value) else "Zero"
            )
            yield kind, shown.verdict.startswith(kind)
            return
        every = values(state["format"])
        at = bisect.bisect_left(every, value)
        near = [every[i] for i in (at - 1, at + 1) if 0 <= i < len(every)]
        if last := said(
            r"It is the last value on its side; its neighbour is (.*?)\.(?: |$)", shown.verdict
        ):
            yield "last", len(near) == 1 and precision.written(f, near[0]) == last[0]
        elif both := said(r"Its neighbours are (.*?) and (.*?)\.(?: |$)", shown.verdict):
            yield "neighbours", tuple(precision.written(f, v) for v in near) == both

    judge(precision.explore(), claims, 8, {"neighbours": 100, "Not a number": 1})


# ---------------------------------------------------------------- parallelism

SPLIT = {
    "tensor parallel": "tensor", "pipeline stages": "pipeline", "expert parallel": "expert",
    "ZeRO": "stage", "recompute": "recompute",
}  # fmt: skip
FASTER = {"a faster link inside the node": "link", "a faster network": "network"}
LOSSES = {
    "passes through HBM": "memory", "tensor-parallel traffic": "tensor", "bubble": "bubble",
    "expert exchange": "expert", "stage transfers": "pipeline", "gradients and shards": "data",
}  # fmt: skip


@functools.cache
def tried(
    model,
    gpu,
    network,
    gpus,
    tensor,
    pipeline,
    expert,
    stage,
    shard,
    recompute,
    batch,
    sequence,
    faster="",
):
    """(memory, step) of a plan, or None where it cannot be; `faster` doubles a rate."""
    shape, cluster = decoder(model), machine(gpu, network, share=fit_share())
    if faster:
        cluster = replace(cluster, **{faster: 2 * getattr(cluster, faster)})
    data = gpus // (tensor * pipeline)
    possible = (
        data * tensor * pipeline == gpus
        and batch % data == 0
        and data % expert == 0
        and expert <= (shape.experts or 1)
        and pipeline <= shape.depth
        and not (shard and data % shard)
    )
    if not possible or not data:
        return None
    plan = Plan(
        data,
        tensor,
        pipeline,
        expert,
        micro_batches=batch // data,
        stage=stage,
        recompute=recompute,
        shard=shard,
    )
    return memory_use(shape, sequence, plan, cluster), step(shape, sequence, plan, cluster)


def helps(remedy, loss, state):
    """Whether a remedy makes a term a smaller share of the step, where the menu has it."""
    lower = {
        "a smaller group": ("tensor", 0.5),
        "fewer stages": ("pipeline", 0.5),
        "experts over fewer ranks": ("expert", 0.5),
        "a larger batch": ("batch", 2),
    }
    before = tried(**state)[1]
    if remedy == "a lower stage of ZeRO":
        other = state | {"stage": state["stage"] - 1}
    elif remedy in lower:
        control, factor = lower[remedy]
        other = state | {control: int(state[control] * factor)}
        if not other[control] or tried(**other) is None:
            return True
    elif remedy in FASTER:
        other = state | {"faster": FASTER[remedy]}
    else:  # fusion is no choice of the menu, but what makes the term short
        return remedy == "more fusion of what lies between the products"
    after = tried(**other)[1]
    return getattr(after, loss) / after.time < getattr(before, loss) / before.time


@pytest.mark.slow
@pytest.mark.holds(
    "explorers",
    "The largest share,",
    "the step loses most to",
    "gains more than a hundredth",
    "makes it fit, or even smaller",
    "change of the split makes it fit.",
    "comes nearest, with",
)
def test_the_plans_advice_is_the_best_of_all_single_changes():
    explorer = parallelism.explore()
    menus = {name: options(explorer, name) for name in SPLIT.values()}

    def chosen(text):
        """The state's new value from "tensor parallel to 4"."""
        label, value = text.split(" to ", 1)
        return {SPLIT[label]: menus[SPLIT[label]][value]}

    def claims(state, shown):
        use, took = tried(**state)
        words = f"{shown.verdict} {shown.advice}"
        others = [
            outcome for name, menu in menus.items() for value in menu.values()
            if value != state[name] and (outcome := tried(**state | {name: value})) is not None
        ]  # fmt: skip
        fitting = [t.mfu for u, t in others if u.fits]
        yield "fits", words.startswith("Fits" if use.fits else "Does not fit")
        if part := said(r"The largest share, (\S+ %), goes to the (\w+)\.", words):
            sizes = {
                n: getattr(use, n)
                for n in ("weights", "gradients", "optimizer", "activations", "logits", "buffers")
            }
            share = max(sizes.values()) / sum(sizes.values())
            yield (
                "largest part",
                sizes[part[1]] == max(sizes.values()) and part[0] == si(share, "%", 2),
            )
        if change := said(
            r"Change first: set (.*?)(?:\. It then fits, at|, for) an MFU of (\S+ %)", words
        ):
            u, t = tried(**state | chosen(change[0]))
            yield (
                "change first",
                u.fits and t.mfu == max(fitting) and si(t.mfu, "%", 2) == change[1],
            )
            yield "worth it", not use.fits or t.mfu > 1.01 * took.mfu
            equal = [o.data + o.hidden for v, o in others if v.fits and o.mfu == t.mfu]
            yield "sends least", t.data + t.hidden == min(equal)
        if "no single change of the split makes it fit" in words:
            yield "none fits", not fitting
            if "or even smaller" in words:
                yield "none smaller", all(u.total >= use.total for u, _ in others)
        if near := said(r"Setting (.*) comes nearest, with (\S+ \w+)\.$", words):
            least = min(u.total for u, _ in others)
            yield (
                "nearest",
                tried(**state | chosen(near[0]))[0].total == least < use.total
                and near[1] == si(least, "byte"),
            )
        if "no single change of the split gains more than a hundredth" in words:
            yield "none gains", all(mfu <= 1.01 * took.mfu for mfu in fitting)
        if loss := said(
            r"loses most to (.*?): (\S+ %) of it\. What helps: (.*?)\. (?:Change|At)", words
        ):
            terms = {name: getattr(took, name) for name in LOSSES.values()}
            name = LOSSES[loss[0]]
            yield (
                "largest loss",
                terms[name] == max(terms.values())
                and loss[1] == si(terms[name] / took.time, "%", 2),
            )
            for remedy in re.split(", or | or ", loss[2]):
                yield "what helps", helps(remedy, name, state)
        facts = dict(shown.facts)
        if not use.fits:
            told = [facts[name] for name in ("time of a step", "MFU", "gradients and shards")]
            yield "no step", set(told) == {"–"}
            return
        traffic = facts["gradients and shards"]
        sent = took.data + took.hidden
        yield "traffic", traffic.startswith(f"{si(sent, 's')} of traffic" if sent else "none")
        if sent:
            rest = si(took.data, "s") if took.data else "nothing"
            yield "hidden", traffic.endswith(f", which adds {rest} to the step")

    expected = {
        "change first": 120, "none fits": 15, "nearest": 15, "none gains": 5, "largest part": 80,
        "largest loss": 80, "what helps": 80, "hidden": 80, "no step": 80,
    }  # fmt: skip
    judge(explorer, claims, 6, expected, usable=lambda verdict: "not possible" not in verdict)


def test_a_plan_that_is_not_possible_is_not():
    explorer = parallelism.explore()

    def claims(state, shown):
        yield "possible", ("not possible" in shown.verdict) == (tried(**state) is None)

    judge(explorer, claims, 7, {"possible": 300})


def test_the_states_that_were_wrong_are_right():
    """As readers found them."""
    assert (
        "compute-bound on AMD EPYC (measured), Intel Xeon (measured)"
        in roofline.explore().first.verdict
    )
    plain = {"tensor": 1, "pipeline": 1, "sequence": 1024}
    assert "then fits" in parallelism.explore().at(gpus=64, batch=64, **plain).advice
    assert "then fits" in parallelism.explore().at(gpus=16384, batch=16384, **plain).advice
    assert "then fits" in parallelism.explore().at(model="deepseek_v3").advice
    fact = [dict(parallelism.explore().at(stage=s).facts)["gradients and shards"] for s in (1, 3)]
    assert fact[0] != fact[1] and fact[1] == "7.94 s of traffic, which adds nothing to the step"
    assert "at most 4.85 requests/s" in queueing.explore_serving().first.verdict
    assert "is the limit" not in queueing.explore().at(arrival_rate=1).verdict
