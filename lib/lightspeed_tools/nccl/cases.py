"""What a run would be on each machine that its file leaves open: the networks that such nodes are
sold with (nodes.toml), else the usual ones; the links inside, where the hardware is not named.

Nothing is guessed: each level stands under its condition, a network that cannot have carried the
run is left out, and only where all that are left agree do they give the run a level.
"""

import functools
import math
import re
import tomllib
from dataclasses import dataclass, replace
from importlib.resources import files

from lightspeed.catalog import number
from lightspeed_models.evidence import peers
from lightspeed_tools.nccl.machine import Machine, described
from lightspeed_tools.nccl.published import (
    LARGE,
    PER_NODE,
    is_card,
    is_chip,
    line_of,
    shares_near,
    spread,
)
from lightspeed_tools.nccl.verdict import BEYOND, judge, leaves_node, level_of

# Scale-up links of a node of unknown GPUs, with a chip whose peers were measured, and whether
# switches add on them.
INSIDE = (
    ("NVLink 5", "nvlink5.bandwidth", "b200", True),
    ("NVLink 4", "nvlink4.bandwidth", "h100_sxm", True),
    ("NVLink 3", "nvlink3.bandwidth", "a100_80gb", False),
    ("a slot of PCIe 5", "pcie5_x16.bandwidth", "", False),
    ("a slot of PCIe 4", "pcie4_x16.bandwidth", "", False),
)
# Of cards that are sold with bridges and without: what may join them.
BRIDGED = {
    r"\bH[12]00 NVL\b": ("NVLink 4", "a slot of PCIe 5"),
    r"\bA[18]00\b.*PCI": ("NVLink 3", "a slot of PCIe 4"),
}
# Chips of other makers, which no NVLink joins.
OTHERS = (
    r"\b(?:AMD|Radeon|Instinct|MI\d{3}\w*|AWS|Trainium\d?|Inferentia\d?|Intel|Gaudi\d?|HL-\d+|TPU|Ascend|MLU\d*"
    r"|MetaX|MTT|DCU)\b"
)
ETHERNET = (400, 200, 100, 25, 10)  # Gbit/s of a port
DOMAIN = 72  # GPUs that NVLink 5 joins at most in what is sold
# Of links or usual networks as many are told: the slowest that could have carried it.
NEAREST = 3
RINGS = ("all_gather", "reduce_scatter")  # across nodes nothing but a ring runs them
LEVELS = ("normal", "slow", "very slow")


@dataclass(frozen=True)
class Case:
    """A machine that could have carried a run: `where` in words (across nodes: the adapters of
    one), so many nodes, products that are sold so, the level there (unknown if there is nothing to
    judge by) and the share of its line. `tree`: a ring would have needed more than the line, so
    the adapters carried each buffer once.
    """

    where: str
    nodes: int
    sold: tuple
    level: str
    share: float
    tree: bool = False


@dataclass(frozen=True)
class Span:
    """The range of byte/s of a node's adapters in which a run across nodes is normal: below it,
    they could not have carried the run; above it, the run is slow.
    """

    low: float
    high: float


def agreed(cases, sure, racks=False):
    """The level of a run whose machine is not known: that of all its cases, if they are what such
    nodes are sold with and the nodes are `sure`; "depends" if they differ. In `racks` some of
    the bytes may go by NVLink, so no network is called slow for them.
    """
    if not cases:
        return "unknown"
    levels = {case.level for case in cases}
    sold = all(case.sold for case in cases)
    if not (sure and sold and len(levels) == 1 and levels < {*LEVELS}):
        return "depends"
    level = levels.pop()
    return "depends" if racks and level != "normal" else level


def cases_of(report, facts, machine, row):
    """Return a run's `Case`s by its largest message, `row`; empty if it can't tell links apart."""
    n, collective = facts.ranks.value, facts.collective.value
    if not n or n < 2 or not collective or not row or row.size < LARGE:
        return ()
    layouts = (facts.nodes.value,) if facts.nodes.known else _layouts(n)
    cases = []
    for nodes in layouts:
        if nodes > 1 and n % nodes == 0:
            cases += _across(report, facts.adapters, (collective, row, n, nodes))
        elif nodes == 1 and not (machine and machine.inside):
            cases += _inside(report, collective, row, n)
    if (
        not cases
        and PER_NODE < n <= DOMAIN
        and not (machine and machine.inside)
        and not is_card(report.names, OTHERS)
    ):
        cases += _joined(collective, row, n)
    return tuple(cases)


def span_of(facts, row):
    """The `Span` of a run across known nodes; None where no published run is near."""
    n, nodes, collective = facts.ranks.value, facts.nodes.value, facts.collective.value
    if not n or not nodes or nodes == 1 or n % nodes or not row or row.size < LARGE:
        return None
    shares = shares_near(collective, row.size, nodes)
    if not shares:
        return None
    verdict = judge(collective, row.size, row.time, n, nodes)
    per_byte = line_of(collective, n, nodes, 0.0, 1.0, n // nodes)
    high = verdict.busbw * spread("large", "several nodes") / shares[0] / per_byte
    return Span(_least(collective, verdict.algbw, n, nodes) / BEYOND, high)


def _layouts(n):
    """The nodes of which n GPUs usually are: of eight, or all in one, or each in its own."""
    if n % PER_NODE == 0:
        return (n // PER_NODE,)
    return (1, n) if n < PER_NODE else ()


def _least(collective, rate, n, nodes):
    """byte/s that a node sends at least; an all-reduce by ranks, as few switches add."""
    least = leaves_node(collective, rate, nodes, n // nodes)
    return least * (2 * (nodes - 1) / nodes if collective == "all_reduce" else 1)


# ---------------------------------------------------------------- across nodes


def _across(report, adapters, run):
    collective, row, n, nodes = run
    each = n // nodes
    least = _least(collective, row.size / row.time, n, nodes)
    cases = []
    for (count, rate), sold in _networks(report, adapters, each).items():
        network = described(nic=f"{count}x{rate}G")
        if least > BEYOND * network.network:
            continue
        verdict = judge(collective, row.size, row.time, n, nodes, replace(network, gpus=each))
        above = verdict.share > BEYOND * _most(verdict)
        if above and collective in RINGS:
            continue
        tree = collective == "all_reduce" and above
        level = "normal" if tree else verdict.level
        cases.append(Case(f"{count} x {rate}G", nodes, sold, level, verdict.share, tree))
    return cases if any(case.sold for case in cases) else cases[-NEAREST:]


def _most(verdict):
    """The highest share of a line that was published near, but at least all of it."""
    return max(1.0, *verdict.shares) if verdict.shares else 1.0


def _networks(report, adapters, each):
    """{(adapters, Gbit/s of each): products that are sold with as much}, fastest first."""
    if "sockets" in report.hints:
        return {(1, rate): () for rate in ETHERNET}
    sold = {}
    for node in sold_nodes():
        if node["gpus"] == each and is_chip(report.names, node["chip"]):
            sold.setdefault(described(nic=node["nic"]).network, []).append(node)
    products = [sold[total] for total in sorted(sold, reverse=True)]
    if adapters.known:  # as many as NCCL uses
        products = [
            nodes for nodes in products if any(_nics(x)[0] == adapters.value for x in nodes)
        ]
    if products:
        return {_nics(nodes[0]): tuple(x["name"] for x in nodes) for nodes in products}
    rates = ((800,) if any(re.search(r"B300\b", name) for name in report.names) else ()) + ETHERNET
    usual = [(adapters.value or each, rate) for rate in rates]
    usual += [(4, 200)] * (each == PER_NODE and not adapters.known)
    return {nics: () for nics in sorted(usual, key=lambda nics: -nics[0] * nics[1])}


@functools.cache
def sold_nodes():
    """Return the nodes of nodes.toml."""
    text = files("lightspeed_tools.nccl").joinpath("nodes.toml").read_text("utf-8")
    return tuple(tomllib.loads(text)["node"])


def _nics(node):
    count, _, rate = node["nic"].removesuffix("G").partition("x")
    return int(count), int(rate)


# ---------------------------------------------------------------- one node


def _inside(report, collective, row, n):
    """A node of unknown GPUs, on the links inside that could have carried the run."""
    rate, bus = row.size / row.time, judge(collective, row.size, row.time, n).busbw
    cases = []
    # A card whose bridges join pairs or fours is no peer of a board that joins all eight.
    bridged = [links for card, links in BRIDGED.items() if is_card(report.names, card)]
    for name, key, chip, adds in INSIDE:
        line = float(number(key))
        if (rate if adds and collective == "all_reduce" else bus) > BEYOND * line:
            continue
        if bridged and name not in bridged[0]:
            continue
        if name.startswith("NVLink") and is_card(report.names, OTHERS):
            continue
        level = _among(report, collective, row, n, chip) if chip and not bridged else "unknown"
        cases.append(Case(f"one node with {name}", 1, (), level, bus / line))
    return cases[-NEAREST:]


def _joined(collective, row, n):
    """A rack whose NVLink joins all GPUs, where no usual network could have carried the run."""
    name, key, _, _ = INSIDE[0]
    rack = Machine(name, "", "given", inside=float(number(key)), domain=n)
    verdict = judge(collective, row.size, row.time, n, 1, rack)
    if verdict.algbw <= BEYOND * verdict.line:
        yield Case(f"{name} that joins all {n} GPUs", 1, (), verdict.level, verdict.share)


def _among(report, collective, row, n, chip):
    """The level of a rate among the sweeps of a chip's peers, at the largest size of both."""
    if collective not in peers.OPERATIONS:
        return "unknown"
    integer = any("int" in one.dtype for one in report.rows)

    def among(one):
        bus = judge(collective, one.size, one.time, n).busbw
        return bus, peers.percentile(bus, chip, n, collective, one.size, integer)

    _, place = among(row)
    if not place or place.peers < 3:
        return "unknown"
    # busbw rises with the size: beside theirs, a larger message would look better than it is.
    both = [r for r in report.rows if place.size / 2 < r.size <= place.size and r.time]
    bus, place = among(max(both, key=lambda r: (r.size, not r.in_place), default=row))
    return level_of(place.busbw[0] / bus, spread("large", "one node"), fastest=math.inf)
