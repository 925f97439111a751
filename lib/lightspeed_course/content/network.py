"""What the formulas of network.md call."""

from __future__ import annotations

from lightspeed import fabrics
from lightspeed import networks as net
from lightspeed.collectives import hierarchical_time
from lightspeed_course.practice.derivation import derivation, step
from lightspeed_course.practice.parameters import plain
from lightspeed_course.practice.questions import Misconception, Parameter, Question

CHAPTER = "08_network"


def loss(canonical, *choices):
    return Parameter(canonical, choices, "%")


def line(canonical=400, *choices):
    return Parameter(canonical, choices or (100, 200, 400), "Gbit/s")


def job_speed(compute, traffic, loss, window):
    """Speed of a job over that of one without a loss: its traffic takes longer, the rest does
    not.
    """
    return (compute + traffic) / (compute + traffic / net.go_back_n(loss, window))


cable = Question(
    id="network.cable",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "A step computes for {{compute}} and then communicates for {{traffic}}. One cable begins to"
        " lose {{loss}} of its packets. Its adapter *goes back n*: for each loss it sends the"
        " {{window}} packets of a round trip again. All ranks wait for it. What share of its speed"
        " does the job keep?"
    ),
    parameters={
        "compute": Parameter(400, (200, 300, 400), "ms"),
        "traffic": Parameter(100, (100, 150), "ms"),
        "loss": loss(0.5, 0.5, 1, 2),
        "window": plain(300, 100, 300, 200),
    },
    expected=job_speed,
    unit="%",
    solution=lambda compute, traffic, loss, window: derivation(
        step(
            "Go back n: a packet takes itself, and a window for each try that fails, p/(1 − p) of"
            " them. That is, in packet times,",
            "1 + window * p / (1 - p)",
            1 / net.go_back_n(loss, window),
            window=window,
            p=loss,
        ),
        step(
            "The traffic takes as many times as long.",
            "traffic * packet_times",
            traffic=(traffic, "s"),
            packet_times=1 / net.go_back_n(loss, window),
        ),
        step(
            "The step before, over the step now.",
            "(compute + traffic) / (compute + slow_traffic)",
            job_speed(compute, traffic, loss, window),
            compute=(compute, "s"),
            traffic=(traffic, "s"),
            slow_traffic=(traffic / net.go_back_n(loss, window), "s"),
        ),
    ),
    holds={
        "All ranks wait": "definition: of a synchronous step",
        "The traffic takes as many times": lambda compute, traffic, loss, window: (
            abs(job_speed(0.0, traffic, loss, window) - net.go_back_n(loss, window)) < 1e-12
        ),
    },
    smaller="network.goodput",
    misconceptions=(
        Misconception(
            "only the lost packets",
            lambda compute, traffic, loss, window: (
                (compute + traffic) / (compute + traffic / net.selective_repeat(loss))
            ),
            "You counted the lost packets. What does this adapter send again besides them?",
            slight=True,
        ),
        Misconception(
            "the whole step waits",
            lambda compute, traffic, loss, window: net.go_back_n(loss, window),
            "That is the goodput of the cable. Does the step compute more slowly, too?",
        ),
        Misconception(
            "what it lost",
            lambda compute, traffic, loss, window: 1 - job_speed(compute, traffic, loss, window),
            "You give the share that is gone. The question asks for what is kept.",
        ),
        Misconception(
            "times as long",
            lambda compute, traffic, loss, window: 1 / job_speed(compute, traffic, loss, window),
            "That is the step now over the step before. Is a speed a time, or one over it?",
        ),
    ),
)

window = Question(
    id="network.window",
    chapter=CHAPTER,
    level="recall",
    prompt=(
        "An adapter of {{bandwidth}} sends packets of {{packet}}; a round trip takes"
        " {{round_trip}}. How many packets are on the way before the first one can be answered?"
    ),
    parameters={
        "bandwidth": line(),
        "packet": Parameter(4096, (1024, 2048, 4096), "byte"),
        "round_trip": Parameter(10, (8, 10, 20), "µs"),
    },
    expected=net.window_packets,
    solution=lambda bandwidth, packet, round_trip: derivation(
        step(
            "What the line carries in a round trip.",
            "bandwidth * round_trip",
            bandwidth=(bandwidth, "byte/s"),
            round_trip=(round_trip, "s"),
        ),
        step(
            "In packets.",
            "carried / packet",
            float(net.window_packets(bandwidth, round_trip, packet)),
            carried=(bandwidth * round_trip, "byte"),
            packet=(packet, "byte"),
        ),
    ),
    misconceptions=(
        Misconception(
            "bits for bytes",
            lambda bandwidth, packet, round_trip: 8 * bandwidth * round_trip / packet,
            "The line is named in bits, the packet in bytes.",
        ),
        Misconception(
            "one way",
            lambda bandwidth, packet, round_trip: bandwidth * round_trip / 2 / packet,
            "The answer has to come back, too. For how long does the sender go on?",
        ),
        Misconception(
            "bytes, not packets",
            lambda bandwidth, packet, round_trip: bandwidth * round_trip,
            "Those are bytes on the way. How many packets do they make?",
        ),
    ),
)

budget = Question(
    id="network.loss_budget",
    chapter=CHAPTER,
    level="design",
    prompt=(
        "An adapter goes back n and has {{window}} packets on the way. At what rate of loss does it"
        " still reach {{share}} of its line?"
    ),
    parameters={
        "window": plain(125, 60, 125, 250),
        "share": Parameter(95, (90, 95, 99), "%"),
    },
    expected=lambda window, share: (1 - share) / (1 - share + share * window),
    unit="%",
    tolerance=0.03,
    solution=lambda window, share: derivation(
        "Write goodput as $(1 - p)/(1 - p + pW)$, set it to the share $s$, and solve for $p$.",
        step(
            "What may be wasted, over itself and a window for each packet that has to arrive:",
            "(1 - share) / (1 - share + share * window)",
            share=share,
            window=window,
        ),
        after=(f"That is one packet in {(1 - share + share * window) / (1 - share):,.0f}."),
    ),
    smaller="network.goodput",
    misconceptions=(
        Misconception(
            "as much as may be lost",
            lambda window, share: 1 - share,
            "That holds if a loss costs one packet. What does it cost here?",
        ),
        Misconception(
            "the share kept, spread",
            lambda window, share: share / window,
            "You spread what is kept over the window. What may be lost is the rest.",
        ),
        Misconception(
            "one loss a window",
            lambda window, share: 1 / window,
            "With one loss a window each packet costs a second one. Is that the share you want?",
        ),
    ),
)

MEDIAN = 0.5

LINK = 400e9  # bit/s

LARGE_DOMAIN = 72  # GPUs of one NVLink domain

RATIOS = (1, 2, 3)


def on_spines(per_node, nodes):
    return fabrics.alltoall_places(per_node, nodes, nodes).spine


def price(gpus, radix, ratio, switch, cable):
    """Dollars for a leaf-spine of this ratio."""
    parts = fabrics.leaf_spine(gpus, radix, ratio)
    return (parts.leaves + parts.spines) * switch + parts.cables * cable


def fitting(gpus, radix, switch, cable, budget):
    """The name of the smallest ratio that the budget pays for."""
    ratio = next((r for r in RATIOS if price(gpus, radix, r, switch, cable) <= budget), None)
    return f"r{ratio}" if ratio else "none"


def across_time(domain, size, gpus, inside, network):
    return hierarchical_time(size, domain, gpus // domain, inside, network).across


SIGNS = {
    "an adapter's `out_of_sequence` counter grows on one host, and its link is never paused": (
        "loss"
    ),
    "a switch port counts many received pause frames, and no packet is dropped": "pause",
    "`np_ecn_marked_roce_packets` grows at one receiver while its neighbours are quiet": "incast",
    "uplinks of one leaf differ by a factor of four in bytes, and the leaf drops nothing": "hash",
}

CAUGHT = {
    "packets of a flow come out of order, or are missing": "gap",
    "a queue was full, and packets were thrown away": "drop",
    "a port was told to stop": "pause",
    "a queue grew, and the sender has to slow down": "mark",
}

COUNTERS = {
    "gap": "`out_of_sequence`",
    "drop": "`rx_discards_phy`",
    "pause": "`rx_prio3_pause`",
    "mark": "`np_ecn_marked_roce_packets`",
}
