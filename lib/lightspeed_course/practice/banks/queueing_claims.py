"""Questions of chapter 4: claims to judge, each true for some values and false for others."""

from __future__ import annotations

import math

from lightspeed import queueing as q
from lightspeed_course.practice.banks.queueing import CHAPTER
from lightspeed_course.practice.derivation import derivation, step
from lightspeed_course.practice.parameters import plain
from lightspeed_course.practice.questions import Misconception, Parameter, Question, register


def after_growth(load):
    """What a tenth more traffic does to an M/M/1 server."""
    if 1.1 * load >= 1:
        return "unstable"
    return "holds" if q.mm1(1.1 * load, 1).W <= 1.25 * q.mm1(load, 1).W else "steep"


tenth = Question(
    id="queueing.claim_a_tenth",
    chapter=CHAPTER,
    level="judge",
    kind="choice",
    prompt=(
        "“Our one server (M/M/1) is {{load}} busy. A tenth more traffic will make the mean time in"
        " the system longer by a quarter at most.” Does the claim hold?"
    ),
    parameters={"load": Parameter(80, (20, 40, 50, 80, 85, 95), "%")},
    options={
        "holds": "It holds: enough of the server is free.",
        "steep": "It fails: the share that is free shrinks too much.",
        "unstable": "It fails: the queue then grows without limit.",
        "doubles": "It fails: any growth of traffic doubles the time.",
    },
    expected=after_growth,
    solution=lambda load: derivation(
        step(
            "The load after the growth.", "load * (1 + growth)", load=(load, "%"), growth=(0.1, "%")
        ),
        "Compare it with full load first.",
        step("The free share before.", "1 - load", load=(load, "%")),
        step("The free share after.", "1 - load", load=(1.1 * load, "%")),
        "The time goes as one over the free share. Compare the two shares.",
    ),
    misconceptions=(
        Misconception(
            "in proportion",
            lambda load: "steep" if after_growth(load) == "holds" else "holds",
            "Work out the share of the server that is free, before and after.",
        ),
        Misconception(
            "full load",
            lambda load: "steep" if after_growth(load) == "unstable" else "unstable",
            "What is the load after the growth: is it full?",
        ),
        Misconception("always steep", lambda **_: "doubles", "Try a server that is almost idle."),
    ),
    smaller="queueing.a_little_more_traffic",
    holds={
        "longer by a quarter at most": "quotation: a claim to be judged",
        "enough of the server": "design: an option",
        "doubles the time": "design: an option",
    },
)


def spare(load):
    """The slots of a pool with one in twenty to spare."""
    return math.ceil(1.05 * load - 1e-9)


pool = Question(
    id="queueing.claim_spare_slots",
    chapter=CHAPTER,
    level="judge",
    kind="choice",
    prompt=(
        "“Requests arrive at random and keep {{load}} slots busy on average. With a twentieth more"
        " slots than that, a tenth of the requests wait at most.” Does the claim hold (M/M/c)?"
    ),
    parameters={"load": plain(100, 20, 100, 200, 2000, 4000)},
    options={
        "holds": "It holds: a pool of this size evens its requests out.",
        "small": "It fails: a pool of this size needs a larger share in reserve.",
        "share": "It fails: the reserve has to be a tenth, like the share that waits.",
        "none": "It fails: with random arrivals most requests wait in any pool.",
    },
    expected=lambda load: "holds" if q.erlang_c(load, spare(load)) <= 0.1 else "small",
    solution=lambda load: derivation(
        step(
            "The slots.", "ceil(load * (1 + reserve))", spare(load), load=load, reserve=(0.05, "%")
        ),
        step(
            "The reserve in square roots of the load.",
            "(slots - load) / sqrt(load)",
            slots=spare(load),
            load=load,
        ),
        step(
            "Erlang C gives the share that waits. Compare it with a tenth.",
            "waits",
            (float(q.erlang_c(load, spare(load))), "%"),
            waits=(float(q.erlang_c(load, spare(load))), "%"),
        ),
    ),
    misconceptions=(
        Misconception(
            "a share for each size",
            lambda load: "small" if q.erlang_c(load, spare(load)) <= 0.1 else "holds",
            "Count the reserve in square roots of the load.",
        ),
        Misconception(
            "the share that waits",
            lambda **_: "share",
            "What has the one share to do with the other?",
        ),
        Misconception(
            "pools do not help", lambda **_: "none", "Work out Erlang C for a pool of thousands."
        ),
    ),
    smaller="queueing.slots_for_a_promise",
    holds={
        "a tenth of the requests wait at most": "quotation: a claim to be judged",
        "most requests wait": "design: an option",
    },
)

register(tenth, pool)
