"""Questions of chapter 1: claims to judge, each true for some values and false for others."""

from __future__ import annotations

from lightspeed import roofline
from lightspeed.catalog import memory
from lightspeed_course.practice.banks.numbers import CHAPTER
from lightspeed_course.practice.derivation import derivation, step
from lightspeed_course.practice.questions import Misconception, Parameter, Question, register


def share_of_latency(size, bandwidth, latency):
    return latency / roofline.transfer_time(size, bandwidth, latency)


wider_link = Question(
    id="numbers.claim_wider_link",
    chapter=CHAPTER,
    level="judge",
    kind="choice",
    prompt=(
        "A request moves {{size}} over {{bandwidth}} and {{latency}} of latency. “We order a link"
        " of twice the rate. That will halve the time of a request.” Does the claim hold?"
    ),
    parameters={
        "size": Parameter(100, (1, 10, 100, 5e6, 2e7), "kB"),
        "bandwidth": Parameter(10, (10, 25), "Gbit/s"),
        "latency": Parameter(40, (20, 40), "ms"),
    },
    options={
        "holds": "It holds.",
        "latency": "It fails: the time is nearly all latency, which the link does not change.",
        "bits": "It fails: rates of links are in bits, so the gain is an eighth of that.",
        "directions": (
            "It fails: a link's rate is of both directions, so the gain is a half of that."
        ),
    },
    expected=lambda size, bandwidth, latency: (
        "latency" if share_of_latency(size, bandwidth, latency) > 0.5 else "holds"
    ),
    solution=lambda size, bandwidth, latency: derivation(
        step(
            "The part that a wider link shortens.",
            "size / bandwidth",
            size=(size, "byte"),
            bandwidth=(bandwidth, "byte/s"),
        ),
        step(
            "The time now.",
            "size / bandwidth + latency",
            roofline.transfer_time(size, bandwidth, latency),
            size=(size, "byte"),
            bandwidth=(bandwidth, "byte/s"),
            latency=(latency, "s"),
        ),
        step(
            "The time with the new link, as a share of that.",
            "(size / (2 * bandwidth) + latency) / now",
            (
                roofline.transfer_time(size, 2 * bandwidth, latency)
                / roofline.transfer_time(size, bandwidth, latency),
                "%",
            ),
            size=(size, "byte"),
            bandwidth=(bandwidth, "byte/s"),
            latency=(latency, "s"),
            now=roofline.transfer_time(size, bandwidth, latency),
        ),
    ),
    misconceptions=(
        Misconception(
            "one term forgotten",
            lambda size, bandwidth, latency: (
                "holds" if share_of_latency(size, bandwidth, latency) > 0.5 else "latency"
            ),
            "Work out both terms of the transfer. Which of them does the link change?",
        ),
        Misconception(
            "bits change the ratio",
            lambda **_: "bits",
            "Old and new rate are in the same unit. Does the unit change their ratio?",
        ),
        Misconception(
            "directions change the ratio",
            lambda **_: "directions",
            "Old and new rate are counted alike. Does the way of counting change their ratio?",
        ),
    ),
    valid=lambda size, bandwidth, latency: (
        not 0.05 < share_of_latency(size, bandwidth, latency) < 0.95
    ),
    smaller="numbers.transfer_time",
    holds={
        "twice the rate": "quotation: a claim to be judged",
        "That will halve": "quotation: a claim to be judged",
        "the time is nearly all latency": "design: an option",
        "the gain is an eighth": "design: an option",
        "the gain is a half": "design: an option",
        "of both directions": "design: an option",
    },
)

like_with_like = Question(
    id="numbers.claim_hbm_over_l1",
    chapter=CHAPTER,
    level="judge",
    kind="choice",
    prompt=(
        "A slide says: “On an H100, main memory is this many times as far away as the L1 cache.”"
        " Its author divided the latency of a load from HBM by that of {{level}}. Is the ratio what"
        " the slide says it is?"
    ),
    parameters={
        "level": Parameter(
            "cpu_l1",
            ("cpu_l1", "gpu_l1"),
            show=lambda key: {"cpu_l1": "a CPU's L1 cache", "gpu_l1": "a GPU's L1 cache"}[key],
        )
    },
    options={
        "holds": "Yes: both latencies are of one kind of chip.",
        "mixed": "No: it divides a latency of one chip by a latency of another.",
        "bandwidth": "No: a distance is a ratio of bandwidths.",
        "energy": "No: a distance is a ratio of energies.",
    },
    expected=lambda level: "holds" if level == "gpu_l1" else "mixed",
    solution=lambda level: derivation(
        step(
            "The ratio on the slide.",
            "HBM / L1",
            HBM=memory("gpu_hbm").latency,
            L1=memory(level).latency,
        ),
        step(
            "Like with like: both of the GPU.",
            "HBM / L1",
            HBM=memory("gpu_hbm").latency,
            L1=memory("gpu_l1").latency,
        ),
        "Ask of each number in a ratio which chip it is from.",
    ),
    misconceptions=(
        Misconception(
            "whose cache",
            lambda level: "mixed" if level == "gpu_l1" else "holds",
            "Whose L1 cache is it? Whose memory is HBM?",
        ),
        Misconception(
            "distance is bandwidth",
            lambda **_: "bandwidth",
            "Bandwidth says how much arrives, once it arrives. What says how long you wait?",
        ),
        Misconception(
            "distance is energy",
            lambda **_: "energy",
            "Energy grows with distance, but the slide speaks of time.",
        ),
    ),
    smaller="numbers.hbm_latency",
    holds={
        "this many times as far": "quotation: a claim to be judged",
        "both latencies are of one kind": "design: an option",
        "it divides a latency": "design: an option",
        "a distance is a ratio of bandwidths": "design: an option",
        "a distance is a ratio of energies": "design: an option",
    },
)

register(wider_link, like_with_like)
