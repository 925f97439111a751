"""Chapter 7: one collective on nodes joined by a network; what its time is made of, and what
nccl-tests would print.

`view` is pure: parameters in, a `View` out. `explore()` puts controls on it. Links run at their
line rate here, switches that add at the best rate measured: what NCCL reaches of a link,
`lightspeed_models.nccl_fit` knows.
"""

import functools
import math

from lightspeed import collectives as c
from lightspeed.catalog import link, number
from lightspeed_course.explorers import published
from lightspeed_course.explorers.numbers import DECIDES
from lightspeed_models.nccl_fit import FABRICS, measurements
from lightspeed_show import (
    Axis,
    Bars,
    Chart,
    Choice,
    Formula,
    Line,
    LogSlider,
    Points,
    Rule,
    Toggle,
    View,
    explorer,
    si,
)

INSIDE = ("nvlink3", "nvlink4", "nvlink5", "xgmi_mi300x", "pcie5_x16")
NETWORK = ("efa_p5", "infiniband_hdr", "infiniband_ndr", "infiniband_xdr", "ethernet_100g")
COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "alltoall")
ENDS, SHARES = (1e3, 1e11), (0, 2)  # of the axes: bytes, and shares of the line rate
SIZES = tuple(10 ** (3 + k / 8) for k in range(65))  # bytes, from a kilobyte to a hundred gigabytes
LOOKS = {
    "ring": "blue",
    "two levels": "purple",
    "double tree": "green",
    "doubling": "amber",
    "switch": "black",
    "pairwise": "blue",
}
FACTS = (
    "time", "latency", "bandwidth", "algbw", "busbw", "line rate", "busbw over line rate",
    "fastest", "half of peak from",
)  # fmt: skip


def algorithms(collective, per_node, nodes, inside, network, hop, alpha, switch):
    """name -> seconds as a function of the size, for what can run this collective here.

    `inside` and `network` are what one GPU sends (byte/s), `hop` and `alpha` the cost of a step (s)
    inside and between nodes, `switch` the algbw at which the switch of a node adds (byte/s), 0 if
    it does not.
    """
    n, line = per_node * nodes, line_rate(collective, per_node, nodes, inside, network)

    def two_levels(size):
        return c.hierarchical_time(size, per_node, nodes, inside, network, hop, alpha, collective)

    if collective == "alltoall":
        return {"pairwise": lambda size: two_levels(size).lower}
    between = c.ring_steps(collective, nodes)
    steps = between * alpha + (c.ring_steps(collective, n) - between) * hop
    laws = {"ring": lambda size: steps + c.bandwidth_bound(collective, size, n, line)}
    if per_node > 1 and nodes > 1:
        laws["two levels"] = lambda size: two_levels(size).upper
    if collective != "all_reduce":
        return laws

    def across(size):
        return c.double_tree_time(size, nodes, per_node * network)

    # A chain inside each node, a tree between them, as NCCL builds it; both are full at the same
    # time.
    climb = 2 * (per_node - 1) * hop + c.double_tree_time(0, nodes, network, alpha)
    laws["double tree"] = lambda size: (
        climb + max(c.double_tree_time(size, per_node, inside), across(size))
    )
    laws["doubling"] = lambda size: (
        c.recursive_doubling_time(size, per_node, inside, hop)
        + c.recursive_doubling_time(size, nodes, network, alpha)
    )
    if switch and per_node > 2:
        up = 2 * hop + c.double_tree_time(0, nodes, network, alpha)
        laws["switch"] = lambda size: up + max(c.nvls_time(size, per_node, switch), across(size))
    return laws


@functools.cache
def adders(link_key):
    """byte/s of a GPU, the best at which switches of this link were seen to add; 0 if none."""
    rows = [
        r
        for r in measurements()
        if r.path == "in_network" and FABRICS[r.fabric].inside == f"{link_key}.bandwidth"
    ]
    return max((c.nvls_time(r.size, r.n, 1.0) / r.time for r in rows if r.nodes == 1), default=0.0)


def line_rate(collective, per_node, nodes, inside, network):
    """byte/s one way of the narrowest link: a node's adapters for a ring, a GPU's own else."""
    if nodes == 1:
        return inside
    if collective == "alltoall" or per_node == 1:
        return network
    return min(inside, per_node * network)


def half_of_peak(times):
    """Bytes from which the fastest algorithm has half of the best rate that any reaches."""

    def rate(size):
        return size / min(time(size) for time in times.values())

    # No rate falls with the size, so halving the interval finds it.
    low, high, half = 1e-3, 1e18, rate(1e18) / 2
    while high / low > 1 + 1e-9:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if rate(middle) < half else (low, middle)
    return high


def line_rates(inside, network):
    """What one GPU sends (byte/s) through the links of the two menus."""
    return {
        "inside": float(number(f"{inside}.bandwidth")),
        "network": float(number(f"{network}.bandwidth")),
    }


def times_of(collective, per_node, nodes, inside, network, hop, alpha, switch):
    """name -> seconds by size, for links of the menus; `switch`: whether it is asked to add."""
    rates = line_rates(inside, network)
    return algorithms(
        collective,
        per_node,
        nodes,
        hop=hop,
        alpha=alpha,
        switch=adders(inside) if switch else 0.0,
        **rates,
    )


def best_link(state, size):
    """(seconds, key of a menu) with the one link that makes this collective fastest."""
    changes = [{"inside": key} for key in INSIDE if state["per_node"] > 1]
    changes += [{"network": key} for key in NETWORK if state["nodes"] > 1]
    times = [
        (min(time(size) for time in times_of(**state | change).values()), *change.values())
        for change in changes
    ]
    return min(times)


def view(
    collective,
    per_node,
    nodes,
    size,
    inside,
    network,
    hop,
    alpha,
    switch,
):
    """Time, rates and verdict of one collective of `size` bytes."""
    n = per_node * nodes
    links = {"inside": inside, "network": network, "hop": hop, "alpha": alpha}
    state = {"collective": collective, "per_node": per_node, "nodes": nodes, "switch": switch}
    state |= links
    times = times_of(**state)
    best = min(times, key=lambda name: times[name](size))
    time, latency = times[best](size), times[best](0.0)
    if n == 1:
        words = "One rank has nobody to talk to: nothing is sent, and busbw is zero by definition."
        figures = charts(times, collective, n, size, best, line_rates(inside, network)["inside"])
        facts = dict.fromkeys(FACTS, "–") | {"time": si(time, "s")}
        return View(figures, words, facts, measured=published.NONE)
    line = line_rate(collective, per_node, nodes, **line_rates(inside, network))
    algbw = c.algbw(size, time)
    busbw = c.busbw(collective, n, algbw)
    half = half_of_peak(times)
    values = [si(x, "s") for x in (time, latency, time - latency)]
    values += [si(x, "byte/s") for x in (algbw, busbw, line)]
    facts = dict(zip(FACTS, (*values, si(busbw / line, "%"), best, si(half, "byte")), strict=True))
    words = in_words(best, time, latency, busbw, line, half)
    if switch:
        words = f"{words} {about_the_switch(state, times, best, size)}"
    law = Formula(
        "busbw",
        f"{'2 * ' * (collective == 'all_reduce')}(n - 1) / n * message / time",
        {"n": (n, ""), "message": (size, "byte"), "time": (time, "s")},
        (busbw, "byte/s"),
    )
    dots, note = published.collectives(
        collective, per_node, nodes, inside, network, line, ENDS, SHARES
    )
    figures = charts(times, collective, n, size, best, line, dots)
    advice = what_would_help(state, size, time)
    return View(figures, words, facts, formula=law, measured=note, advice=advice)


def in_words(best, time, latency, busbw, line, half):
    """What takes the time, and whether the link is full."""
    share, ratio = latency / time, busbw / line
    kind = (
        "Latency-bound"
        if share >= DECIDES
        else "Bandwidth-bound"
        if share <= 1 - DECIDES
        else "Both matter"
    )
    bytes_too = f" and bytes {si(1 - share, '%', 2)}" if kind == "Both matter" else ""
    kind = f"{kind}: steps take {si(share, '%', 2)} of the time{bytes_too}."
    half = f"Half of the best rate is reached from {si(half, 'byte')} on."
    if ratio > 1.005:
        why = {
            "switch": "the switch adds, and the factor does not know it",
            "pairwise": "a part of the traffic never leaves its node",
        }.get(
            best,
            "the factor counts a ring's traffic, and this algorithm sends less across the network",
        )
        return (
            f"{kind} Busbw is {si(ratio, '%')} of the line rate, though no link carries more than"
            f" it can: {why}. {half}"
        )
    return f"{kind} Fastest is the {best} algorithm, at {si(ratio, '%')} of the line rate. {half}"


def what_would_help(state, size, time):
    """Halved steps beside the best single link of both menus."""
    halved = times_of(**state | {"hop": state["hop"] / 2, "alpha": state["alpha"] / 2})
    steps = min(t(size) for t in halved.values())
    best, key = best_link(state, size)
    link_words = "no other link of the menus makes it faster"
    if best < time * (1 - 1e-9):
        link_words = f"the best other link of the menus, {link(key).name}, to {si(best, 's')}"
    return f"Steps at half the cost would bring it to {si(steps, 's')}; {link_words}."


def about_the_switch(state, times, best, size):
    """What became of a switch that was asked to add."""
    if state["collective"] != "all_reduce":
        return "The switch has nothing to add: only an all-reduce runs in it here."
    if not adders(state["inside"]):
        return (
            f"{link(state['inside']).name} has no switch that adds here: the box changes nothing."
        )
    if state["per_node"] <= 2:
        return (
            "For two GPUs or one in a node the switch is not asked to add: the box changes nothing."
        )
    if best == "switch":
        return (
            f"Each GPU sends and gets {si(adders(state['inside']), 'byte/s')} through the switch,"
            " the best measured on one node."
        )
    return (
        f"The switch adds, but the {best} algorithm is faster here: with the switch it takes"
        f" {si(times['switch'](size), 's')}."
    )


def charts(times, collective, n, size, best, line, dots=()):
    """Share of the line rate over size, with the dots of what was measured, and what the time of
    each algorithm is made of; axes stay where they are.
    """
    factor = c.busbw_factor(collective, n) or 1

    def share(name, s):
        return c.algbw(s, max(times[name](s), 1e-12)) * factor / line if n > 1 else 0.0

    lines = []
    for name in times:
        look = {"dash": name != best, "width": 3 if name == best else 2}
        lines.append(Line(SIZES, [share(name, s) for s in SIZES], name, LOOKS[name], **look))
    here = {"labels": ["here"], "size": 8, "drop": True, "drag": ("size", None)}
    rate = Chart(
        Axis("message", "byte", "log", domain=ENDS),
        Axis("busbw over line rate", "%", domain=SHARES),
        [
            *dots,
            Rule(y=1, label=f"line rate {si(line, 'byte/s')}"),
            *lines,
            Points([size], [share(best, size)], **here),
        ],
        title="how much of the link is used",
        height=270,
    )
    latency = [time(0.0) / max(time(size), 1e-12) for time in times.values()]
    rows, starts = range(len(times)), [0] * len(times)
    names = tuple(f"{name}, {si(time(size), 's')}" for name, time in times.items())
    # one rank sends nothing: no time to take apart
    whole = [1.0 if time(size) else 0.0 for time in times.values()]
    split = Chart(
        Axis("share of its time", "%", domain=(0, 1)),
        Axis(scale="category", categories=names),
        [
            Bars(rows, latency, start=starts, label="steps", color="orange"),
            Bars(rows, whole, start=latency, label="bytes", color="blue"),
        ],
        title="where the time goes",
        height=205,
    )
    return [rate, split]


def explore():
    """The explorer of chapter 7."""
    return explorer(
        view,
        [
            Choice("collective", "collective", COLLECTIVES, "all_reduce"),
            LogSlider("per_node", "GPUs in a node", 1, 64, 8, base=2, whole=True),
            LogSlider("nodes", "nodes", 1, 1024, 125, base=2, whole=True, include=[125]),
            LogSlider(
                "size", "message", 1e3, 1e11, 16e9, unit="byte", per_decade=10, include=[16e9]
            ),
            Choice("inside", "inside a node", {link(key).name: key for key in INSIDE}, "nvlink4"),
            Choice(
                "network", "network of a GPU", {link(key).name: key for key in NETWORK}, "efa_p5"
            ),
            LogSlider(
                "hop",
                "a step inside",
                5e-7,
                5e-5,
                float(number("nvlink4.nccl_step_simple")),
                unit="s",
                include=[float(number("nvlink4.nccl_step_simple"))],
            ),
            LogSlider(
                "alpha",
                "a step between nodes",
                1e-6,
                1e-4,
                float(number("infiniband_ndr.nccl_step_simple")),
                unit="s",
                include=[float(number("infiniband_ndr.nccl_step_simple"))],
            ),
            Toggle("switch", "the switch adds (NVLS)"),
        ],
        caption=(
            "The state it opens with is the question of this chapter. Make the message small, then"
            " the machine small, and say before each move which term will win."
        ),
        alt=(
            "Left, the busbw of each algorithm as a share of the line rate over the message size:"
            " curves that rise from nearly zero to a plateau. Right, a bar for each algorithm,"
            " split into the share of steps and the share of bytes."
        ),
        presets={
            "the question of the chapter": {"per_node": 8, "nodes": 125, "size": 16e9},
            "one node": {"per_node": 8, "nodes": 1, "size": 16e9},
            "a gradient bucket": {"per_node": 8, "nodes": 125, "size": 25.1e6},
            "one token's activations": {"per_node": 8, "nodes": 1, "size": 15.8e3},
        },
    )
