"""Questions of chapter 3: claims to judge, each true for some values and false for others."""

from __future__ import annotations

from lightspeed import scaling as s
from lightspeed_course.practice.banks.scaling import CHAPTER, share
from lightspeed_course.practice.derivation import derivation, step
from lightspeed_course.practice.questions import Misconception, Parameter, Question, register

LINEAR = 0.9

near_linear = Question(
    id="scaling.claim_near_linear",
    chapter=CHAPTER,
    level="judge",
    kind="choice",
    prompt=(
        "“From {{n}} GPUs to {{factor}} times as many our training became {{gain}} times as fast:"
        " near-linear.” Call scaling near-linear if at least nine tenths of the larger machine are"
        " used well. Does the claim hold?"
    ),
    parameters={
        "n": Parameter(512, (64, 256, 512)),
        "factor": Parameter(4, (4, 8)),
        "gain": Parameter(2.9, (2.7, 2.9, 3.7, 3.8, 7.4, 7.6), show=str),
    },
    options={
        "holds": "It holds: the efficiency is above nine tenths.",
        "fails": "It fails: the efficiency is below nine tenths.",
        "one": "Nobody can tell without a run on one GPU.",
        "faster": "It holds: more GPUs made the training faster.",
    },
    expected=lambda n, factor, gain: "holds" if s.efficiency(gain, factor) >= LINEAR else "fails",
    solution=lambda n, factor, gain: derivation(
        "Take the smaller machine as the unit. What counts is how much larger the machine became.",
        step(
            "Efficiency is speedup over size.",
            "gain / factor",
            (s.efficiency(gain, factor), "%"),
            gain=gain,
            factor=factor,
        ),
        step(
            "The serial share that would explain it.",
            "(1 / gain - 1 / factor) / (1 - 1 / factor)",
            (s.karp_flatt(gain, factor), "%"),
            gain=gain,
            factor=factor,
        ),
    ),
    misconceptions=(
        Misconception(
            "not divided",
            lambda n, factor, gain: "fails" if s.efficiency(gain, factor) >= LINEAR else "holds",
            "Divide the gain by how much larger the machine became.",
        ),
        Misconception(
            "one is the only unit",
            lambda **_: "one",
            "A ratio of two runs needs two runs. Can the smaller one be the unit?",
        ),
        Misconception(
            "faster is enough",
            lambda **_: "faster",
            "Faster it is. But how much of what was added is used well?",
        ),
    ),
    valid=lambda n, factor, gain: gain < factor and gain > factor / 2,
    smaller="scaling.karp_flatt",
    holds={
        "times as many our training": "quotation: a claim to be judged",
        "Call scaling near-linear": "definition",
        "the efficiency is above": "design: an option",
        "the efficiency is below": "design: an option",
        "Nobody can tell": "design: an option",
        "more GPUs made": "design: an option",
        "how much larger the machine became": "definition",
        "Faster it is": "definition",
    },
)

whose_share = Question(
    id="scaling.claim_limit",
    chapter=CHAPTER,
    level="judge",
    kind="choice",
    prompt=(
        "“{{serial}} of our run is serial; we measured that on {{n}} GPU(s). So by Amdahl's law no"
        " machine does this job faster than one GPU by a factor above one over that share.” Does"
        " the claim hold?"
    ),
    parameters={"serial": share(0.05, 0.02, 0.05, 0.1), "n": Parameter(64, (1, 64, 256, 1024))},
    options={
        "holds": "It holds.",
        "baseline": "It fails: the law wants the share of the time on one GPU.",
        "gustafson": "It fails: by Gustafson's law a job of fixed size has no limit.",
        "efficiency": "It fails: the limit is one over the efficiency.",
    },
    expected=lambda serial, n: "holds" if n == 1 else "baseline",
    solution=lambda serial, n: derivation(
        "Amdahl's share is a share of the time on one processor. Convert what was measured.",
        step(
            "On one GPU the divided part takes n times as long, so the share is",
            "serial / (serial + (1 - serial) * n)",
            (s.serial_on_one(n, serial_on_n=serial), "%"),
            serial=(serial, "%"),
            n=n,
        ),
        step(
            "The limit is one over that.",
            "1 / share",
            share=(s.serial_on_one(n, serial_on_n=serial), "%"),
        ),
        step("The claim has", "1 / serial", serial=(serial, "%")),
    ),
    misconceptions=(
        Misconception(
            "whose time",
            lambda serial, n: "baseline" if n == 1 else "holds",
            "On which machine was the share measured, and on which does the law want it?",
        ),
        Misconception(
            "the other law",
            lambda **_: "gustafson",
            "Gustafson's job grows with the machine. Does this one?",
        ),
        Misconception(
            "efficiency for speedup",
            lambda **_: "efficiency",
            "One over the efficiency is a price. What is the limit of the speedup?",
        ),
    ),
    smaller="scaling.limit",
    holds={
        "no machine does this job": "quotation: a claim to be judged",
        "a job of fixed size has no limit": "design: an option",
        "the limit is one over": "design: an option",
        "times as long, so the share": "algebra",
    },
)

register(near_linear, whose_share)
