"""What published runs say of a size and scale: the model's error, others' share of the line."""

import functools
import math
import re
import tomllib
from dataclasses import dataclass
from importlib.resources import files

from lightspeed.collectives import busbw_factor
from lightspeed_models.evidence import peers
from lightspeed_models.nccl_fit import FABRICS, measurements, residuals

LARGE, SMALL = 64e6, 1e6  # bytes: where the regimes of messages begin and end
LEAST_SPREAD = 1.1  # no model of a network is better than this
PER_NODE = 8  # GPUs of a node, in every published run across nodes
# Collectives of which nobody published a run across nodes -> one whose bytes go the same way: round
# the ring of all nodes, or over the share that a GPU has of its node's adapters.
STAND_INS = {"reduce_scatter": "all_gather", "broadcast": "all_gather", "reduce": "all_gather",
             "sendrecv": "alltoall", "gather": "alltoall", "scatter": "alltoall"}  # fmt: skip
CHIPS = {"a100": "a100_80gb", "h100": "h100_sxm", "h200": "h200_sxm", "b200": "b200"}


def kind(size, nodes):
    """Return the regime of messages that a row belongs to, as in the model's tests."""
    message = "large" if size >= LARGE else "small" if size < SMALL else "middle"
    return message, "one node" if nodes == 1 else "several nodes"


@functools.cache
def spread(message, where):
    """Return the factor within which nine of ten published, unfitted rows of a kind lie."""
    errors = [
        abs(math.log1p(error))
        for row, error in residuals(fitted=False)
        if kind(row.size, row.nodes) == (message, where)
    ]
    if len(errors) < 5:  # small messages across nodes: nobody publishes them
        return spread("middle", where)
    return max(math.exp(sorted(errors)[math.ceil(0.9 * len(errors)) - 1]), LEAST_SPREAD)


def published_near(collective, size, nodes, fabric, n=None):
    """Published rows on the same link, from half to twice the size and the nodes; else the
    nearest in nodes at that size. With `n` ranks, those with as many GPUs of a node.
    """
    link = FABRICS[fabric].link(nodes)
    alike = [
        r
        for r in measurements()
        if r.collective == collective
        and FABRICS[r.fabric].link(r.nodes) == link
        and (r.nodes > 1) == (nodes > 1)
        and (n is None or r.n * nodes == n * r.nodes)
    ]
    return _nearest([r for r in alike if 0.5 <= r.size / size <= 2], lambda r: r.nodes / nodes)


def standing(run, verdict=None):
    """Where a run on one node stands among measured peers, at its largest size or that of a
    verdict, as (`Standing` of the evidence, the `Verdict` on the size compared): the largest that
    both have, else the size asked for. None if nothing comparable was measured.
    """
    chip = CHIPS.get(run.fabric or "")
    if run.nodes != 1 or not chip or run.collective not in peers.OPERATIONS:
        return None
    integer = any("int" in row.dtype for row in run.report.rows)

    def among(v):
        return peers.percentile(v.busbw, chip, run.n, run.collective, v.size, integer)

    verdict = verdict or run.main
    place = among(verdict)
    if not place:
        return None
    # busbw rises with the size: beside theirs, a larger message would look better than it is.
    both = [v for v in run.verdicts if place.size / 2 < v.size <= place.size]
    own = max(both, key=lambda v: v.size, default=verdict)
    return among(own), own


@dataclass(frozen=True)
class Public:
    """Where a run across nodes stands among those that others published: how many are slower, of
    how many, their busbw (byte/s, slowest first) and their nodes.
    """

    slower: int
    busbw: tuple
    nodes: tuple


@functools.cache
def public_runs():
    """The runs of public.toml."""
    text = files("lightspeed_tools.nccl").joinpath("public.toml").read_text("utf-8")
    return tuple(tomllib.loads(text)["run"])


def public_near(judgement):
    """The `Public` standing of a run's largest message among runs of the collective on as many
    GPUs of the same chip a node, from half to twice the nodes and a quarter to four times the
    size; None for fewer than three.
    """
    main, n, nodes = judgement.main, judgement.n, judgement.nodes
    chips = {name for name in judgement.report.names}
    if not main or nodes == 1 or len(chips) != 1 or n % nodes:
        return None
    near = [
        run
        for run in public_runs()
        if (run["collective"], run["gpus"]) == (judgement.collective, n // nodes)
        and is_chip(chips, [run["chip"]])
        and 0.5 <= run["nodes"] / nodes <= 2
        and 0.25 <= run["size"] / main.size <= 4
        and (run["size"], run["us"]) != (main.size, round(main.time * 1e6, 2))  # not itself
    ]
    if len(near) < 3:
        return None
    factor = lambda run: busbw_factor(run["collective"], run["gpus"] * run["nodes"])  # noqa: E731
    rates = sorted(run["size"] / run["us"] * 1e6 * factor(run) for run in near)
    places = tuple(sorted({run["nodes"] for run in near}))
    return Public(sum(rate < main.busbw for rate in rates), tuple(rates), places)


def is_chip(names, chips):
    """Whether all devices are one of these chips, excluding card versions used in other nodes."""
    words = "|".join(map(re.escape, chips))
    matches = (re.search(rf"\b(?:{words})\b", n) and not re.search(r"PCI|NVL\b", n) for n in names)
    return bool(names) and all(matches)


def is_card(names, pattern):
    """Whether all device names match `pattern`."""
    return bool(names) and all(re.search(pattern, name) for name in names)


def rate_of(row):
    """busbw (byte/s) of a published row."""
    return row.size / row.time * busbw_factor(row.collective, row.n)


def line_of(collective, n, nodes, inside, network, per_node):
    """The busbw (byte/s) at which the link is full: of a GPU's scale-up link on one node (of all
    nodes that it joins: `nodes` is 1), else of the node's adapters.

    Across nodes a ring leaves each node once, over all adapters. In an alltoall each GPU has its
    share of them, and what stays in the node is free; so has the root of a gather or a scatter,
    and the one GPU of a node that sends to the next.

    >>> line_of("all_reduce", 16, 2, 450e9, 400e9, 8), line_of("alltoall", 16, 2, 450e9, 400e9, 8)
    (400000000000.0, 93750000000.0)
    """
    if nodes == 1:
        return inside
    if collective == "alltoall":
        return network / per_node * ((n - 1) / n) / ((nodes - 1) / nodes)
    if collective in ("gather", "scatter", "sendrecv"):
        return network / per_node
    return network


def shares_near(collective, size, nodes):
    """Shares of their line that published rows of any link reached, lowest first: those nearest in
    nodes, and among them nearest in size. Across nodes a collective without any has a stand-in.
    """
    rows = [r for r in measurements() if (r.nodes > 1) == (nodes > 1)]
    names = {collective, STAND_INS.get(collective, collective)} if nodes > 1 else {collective}
    own = [r for r in rows if r.collective == collective]
    alike = own or [r for r in rows if r.collective in names]
    alike = _nearest(alike, lambda r: r.nodes / nodes)
    return sorted(_share_of(r) for r in _nearest(alike, lambda r: r.size / size))


def _nearest(rows, ratio):
    """The rows within a factor of two, else the nearest."""
    near = [row for row in rows if 0.5 <= ratio(row) <= 2]
    closest = min((abs(math.log(ratio(row))) for row in rows), default=0)
    return near or [row for row in rows if abs(math.log(ratio(row))) == closest]


def _share_of(row):
    fabric = FABRICS[row.fabric]
    network = fabric.rate(2) if fabric.network else 0.0
    line = line_of(row.collective, row.n, row.nodes, fabric.rate(1), network, PER_NODE)
    return rate_of(row) / line
