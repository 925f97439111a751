"""Questions of chapter 7: claims to judge, each true for some values and false for others."""

from __future__ import annotations

from lightspeed import collectives as c
from lightspeed_course.practice.banks.nccl import CHAPTER, ranks
from lightspeed_course.practice.derivation import derivation, step
from lightspeed_course.practice.parameters import rate
from lightspeed_course.practice.questions import Misconception, Parameter, Question, register
from lightspeed_show.format import si

RATE = 50e9  # byte/s of a rank, before its links are doubled


def of_the_link(algbw, n, link):
    return c.busbw("all_reduce", n, algbw) / link


possible = Question(
    id="nccl.claim_on_a_ring",
    chapter=CHAPTER,
    level="judge",
    kind="choice",
    prompt=(
        "“{{n}} GPUs all-reduce on a ring at an algbw of {{algbw}}. Each sends {{link}} in one"
        " direction, so that is possible.” Does the claim hold?"
    ),
    parameters={
        "n": ranks(8, 4, 8, 16),
        "algbw": rate(280, 150, 220, 280),
        "link": rate(450, 300, 450),
    },
    options={
        "holds": "It holds: the busbw is within the link.",
        "busbw": "It fails: the busbw would be above the link.",
        "both": "It fails: half of that rate is for the other direction.",
        "ranks": "It fails: the ranks share the rate of one link.",
    },
    expected=lambda algbw, n, link: "holds" if of_the_link(algbw, n, link) <= 1 else "busbw",
    solution=lambda algbw, n, link: derivation(
        step(
            "What a rank sends: the busbw.",
            "2 * (n - 1) / n * algbw",
            (float(c.busbw("all_reduce", n, algbw)), "byte/s"),
            n=n,
            algbw=(algbw, "byte/s"),
        ),
        step(
            "Over what its link can carry.",
            "busbw / link",
            (float(of_the_link(algbw, n, link)), "%"),
            busbw=(float(c.busbw("all_reduce", n, algbw)), "byte/s"),
            link=(link, "byte/s"),
        ),
    ),
    misconceptions=(
        Misconception(
            "algbw is what is sent",
            lambda algbw, n, link: "busbw" if of_the_link(algbw, n, link) <= 1 else "holds",
            "Work out what a rank sends for each byte of the buffer.",
        ),
        Misconception(
            "both directions",
            lambda **_: "both",
            "For which direction does the claim give the rate?",
        ),
        Misconception(
            "one link for the ring", lambda **_: "ranks", "How many links does a ring of GPUs have?"
        ),
    ),
    valid=lambda algbw, n, link: algbw < link and not 0.97 < of_the_link(algbw, n, link) < 1.03,
    smaller="nccl.possible_algbw",
    holds={
        "the busbw would be above": "design: an option",
        "half of that rate": "design: an option",
    },
)


def speedup(n, size, latency):
    """How many times as fast a ring gets with links of twice the rate."""
    return c.ring_time(size, n, RATE, latency) / c.ring_time(size, n, 2 * RATE, latency)


links = Question(
    id="nccl.claim_faster_links",
    chapter=CHAPTER,
    level="judge",
    kind="choice",
    prompt=(
        "“{{n}} ranks all-reduce {{size}} on a ring, with "
        f"{si(RATE, 'byte/s')} a rank and {{{{latency}}}} a step."
        f" Links of {si(2 * RATE, 'byte/s')} will cut the time by a third at"
        " least.” Does the claim hold in the α–β model?"
    ),
    parameters={
        "n": Parameter(64, (8, 64), show=str),
        "size": Parameter(1, (1, 10, 200, 1000), "MB"),
        "latency": Parameter(5, (2, 5), "µs"),
    },
    options={
        "holds": "It holds: the transfer takes most of the time.",
        "steps": "It fails: the steps take too much of the time.",
        "busbw": "It fails: the busbw does not depend on the link.",
        "half": "It fails: twice the rate always halves the time.",
    },
    expected=lambda n, size, latency: "holds" if speedup(n, size, latency) >= 1.5 else "steps",
    solution=lambda n, size, latency: derivation(
        step("A step costs one latency,", "latency", latency=(latency, "s")),
        step(
            "and moves a chunk.",
            "size / (n * rate)",
            size=(size, "byte"),
            n=n,
            rate=(RATE, "byte/s"),
        ),
        step(
            "Before, over after.",
            "(latency + chunk) / (latency + chunk / 2)",
            float(speedup(n, size, latency)),
            latency=(latency, "s"),
            chunk=(size / n / RATE, "s"),
        ),
    ),
    misconceptions=(
        Misconception(
            "the other term",
            lambda n, size, latency: "steps" if speedup(n, size, latency) >= 1.5 else "holds",
            "Compare the latency of a step with the time of its chunk.",
        ),
        Misconception(
            "busbw is fixed", lambda **_: "busbw", "What does the busbw count, and who carries it?"
        ),
        Misconception(
            "bandwidth alone", lambda **_: "half", "Which part of a step does the link not change?"
        ),
    ),
    valid=lambda n, size, latency: not 1.4 < speedup(n, size, latency) < 1.6,
    smaller="nccl.half_size",
    holds={
        "by a third at least": "quotation: a claim to be judged",
        "most of the time": "design: an option",
        "always halves": "design: an option",
    },
)

register(possible, links)
