"""Questions of chapter 3, Amdahl and Gustafson: what to recall, to work out, to write and to
design.
"""

from __future__ import annotations

import math

from lightspeed import scaling as s
from lightspeed_course.practice.amounts import powers_of_two
from lightspeed_course.practice.derivation import derivation, step
from lightspeed_course.practice.questions import Misconception, Parameter, Question, register
from lightspeed_show.format import si

CHAPTER = "03_amdahl_gustafson"
SHARES = (0.01, 0.02, 0.04, 0.05, 0.08, 0.1, 0.2)


def share(canonical, *choices):
    """A share of the time, shown in per cent."""
    return Parameter(100 * canonical, tuple(100 * c for c in choices or SHARES), "%")


def machines(canonical, low=8, high=1024):
    return Parameter(canonical, powers_of_two(low, high))


def times(x):
    return f"{si(x, '', 4)} times"


def days_of(seconds):
    return seconds / 86400, "day"


# --- recall -----------------------------------------------------------------------------------

limit = Question(
    id="scaling.limit",
    chapter=CHAPTER,
    level="recall",
    prompt=(
        "{{serial}} of a fixed job is serial. How many times faster can it become at most, with any"
        " number of processors?"
    ),
    parameters={"serial": share(0.05, 0.01, 0.02, 0.04, 0.05, 0.08, 0.2)},
    expected=lambda serial: s.amdahl_speedup(math.inf, serial=serial),
    solution=lambda serial: derivation(
        "The job takes its serial share and the rest over $n$. With more processors the rest"
        " shrinks to nothing.",
        step(
            "The serial share stays, so the speedup cannot pass one over it.",
            "1 / serial",
            s.amdahl_speedup(math.inf, serial=serial),
            serial=(serial, "%"),
        ),
        after="The law is Amdahl's; it holds for a job of fixed size.",
    ),
    misconceptions=(
        Misconception(
            "one over the parallel share",
            lambda serial: 1 / (1 - serial),
            "You divided by the part that goes away. Which part is left in the end?",
        ),
        Misconception(
            "a hundred processors",
            lambda serial: s.amdahl_speedup(100, serial=serial),
            "That is the speedup on a particular number of processors. What happens with more?",
        ),
        Misconception(
            "parallel over serial",
            lambda serial: (1 - serial) / serial,
            "Close: but the whole job is the baseline, not its parallel part alone.",
        ),
        Misconception(
            "no limit",
            lambda serial: s.gustafson_speedup(100, serial=serial),
            "That is a job that grows with the machine. This one is fixed.",
        ),
        Misconception(
            "the share itself",
            lambda serial: serial,
            "That is the share itself. Which one over which is asked?",
        ),
    ),
    holds={
        "the rest shrinks": "algebra",
    },
    smaller="scaling.offer",
)

grown = Question(
    id="scaling.grown_job",
    chapter=CHAPTER,
    level="recall",
    prompt=(
        "A job was made larger until it kept {{n}} processors busy; {{serial}} of that run is"
        " serial. How many times longer would one processor take for the same job?"
    ),
    parameters={"n": machines(1024, 64, 4096), "serial": share(0.05, 0.05, 0.08, 0.1, 0.2)},
    expected=lambda n, serial: s.gustafson_speedup(n, serial=serial),
    tolerance=0.01,
    solution=lambda n, serial: derivation(
        "Call the time of the large run one. One processor does the serial part in the same time,"
        " and the rest in $n$ times its time.",
        step(
            "Add the two. This is Gustafson's law: the share was measured on the large machine.",
            "serial + (1 - serial) * n",
            s.gustafson_speedup(n, serial=serial),
            serial=(serial, "%"),
            n=n,
        ),
    ),
    misconceptions=(
        Misconception(
            "Amdahl",
            lambda n, serial: s.amdahl_speedup(n, serial=serial),
            "Amdahl's law wants the share of the time on one processor. On which machine was this"
            " share measured?",
        ),
        Misconception(
            "all of it",
            lambda n, serial: n,
            "The serial part does not take longer on one processor.",
        ),
        Misconception(
            "the limit",
            lambda n, serial: 1 / serial,
            "That is the limit of a fixed job. This one grew with the machine.",
        ),
        Misconception(
            "the serial part grown",
            lambda n, serial: n * serial,
            "You let the serial part grow with the machine. Which part takes longer on one"
            " processor?",
        ),
    ),
    holds={
        "does the serial part in": lambda n, serial: (
            abs(s.gustafson_speedup(n, serial=serial) - serial - (1 - serial) * n) < 1e-9
        ),
    },
)

one_part = Question(
    id="scaling.one_part",
    chapter=CHAPTER,
    level="recall",
    prompt=(
        "A step takes {{whole}}, of which {{loading}} is loading. Loading is made {{factor}} times"
        " faster, and the rest stays. How long does the step take now?"
    ),
    parameters={
        "whole": Parameter(500, (400, 500, 600), "ms"),
        "loading": Parameter(200, (120, 160, 200), "ms"),
        "factor": Parameter(4, (4, 8)),
    },
    expected=lambda whole, loading, factor: whole - loading + loading / factor,
    unit="ms",
    tolerance=0.005,
    solution=lambda whole, loading, factor: derivation(
        step("What stays:", "whole - loading", whole=(whole, "s"), loading=(loading, "s")),
        step(
            "Add what is left of loading.",
            "whole - loading + loading / factor",
            (whole - loading + loading / factor, "s"),
            whole=(whole, "s"),
            loading=(loading, "s"),
            factor=factor,
        ),
    ),
    misconceptions=(
        Misconception(
            "everything faster",
            lambda whole, loading, factor: whole / factor,
            "That makes the whole step faster. Which part of it is loading?",
        ),
        Misconception(
            "loading takes no time",
            lambda whole, loading, factor: whole - loading,
            "That is the step without loading. How long does loading still take?",
        ),
        Misconception(
            "the new part subtracted",
            lambda whole, loading, factor: whole - loading / factor,
            "You took away what is left of loading. Take away what is saved.",
        ),
        Misconception(
            "what is saved",
            lambda whole, loading, factor: loading * (1 - 1 / factor),
            "That is the time that is saved. How long does the step still take?",
        ),
    ),
    holds={
        "Loading is made": "definition",
    },
)

wait_for_both = Question(
    id="scaling.wait_for_both",
    chapter=CHAPTER,
    level="recall",
    prompt=(
        "Two tasks start at the same moment, each on a GPU of its own. One takes {{one}}, the other"
        " {{other}}. A third task needs both results. How soon can it start?"
    ),
    parameters={
        "one": Parameter(40, (30, 40, 45), "ms"),
        "other": Parameter(70, (50, 70, 80), "ms"),
    },
    expected=lambda one, other: max(one, other),
    unit="ms",
    tolerance=0.005,
    solution=lambda one, other: derivation(
        "The two run at the same time, so their times are not added.",
        step(
            "Both results are there when the slower task is done.",
            "max(one, other)",
            (max(one, other), "s"),
            one=(one, "s"),
            other=(other, "s"),
        ),
    ),
    misconceptions=(
        Misconception(
            "one after the other",
            lambda one, other: one + other,
            "That adds them up, as on one GPU. When does each of them end?",
        ),
        Misconception(
            "the first result",
            lambda one, other: min(one, other),
            "Then one result is there. What of the other?",
        ),
        Misconception(
            "the mean",
            lambda one, other: (one + other) / 2,
            "Work that is not shared does not level out. When does each of them end?",
        ),
        Misconception(
            "how long one waits",
            lambda one, other: abs(one - other),
            "So long the first result waits for the second. From when does the question count?",
        ),
    ),
    holds={
        "at the same moment": "definition",
        "Then one result is there": "definition",
    },
)

share_of_step = Question(
    id="scaling.share_of_step",
    chapter=CHAPTER,
    level="recall",
    prompt=(
        "A step computes for {{compute}} and then synchronises for {{sync}}. What share of the"
        " step is synchronisation?"
    ),
    parameters={
        "compute": Parameter(90, (80, 90, 120), "ms"),
        "sync": Parameter(30, (20, 30, 36), "ms"),
    },
    expected=lambda compute, sync: sync / (compute + sync),
    unit="%",
    solution=lambda compute, sync: derivation(
        step("The whole step:", "compute + sync", compute=(compute, "s"), sync=(sync, "s")),
        step(
            "The part over the whole.",
            "sync / (compute + sync)",
            (sync / (compute + sync), "%"),
            compute=(compute, "s"),
            sync=(sync, "s"),
        ),
    ),
    misconceptions=(
        Misconception(
            "over the other part",
            lambda compute, sync: sync / compute,
            "You took it over the computation. What is the whole here?",
        ),
        Misconception(
            "the other share",
            lambda compute, sync: compute / (compute + sync),
            "That is the share of the computation. Which of the two is asked?",
        ),
        Misconception(
            "a factor",
            lambda compute, sync: (compute + sync) / sync,
            "That says how many times the part fits into the whole. Turn it over.",
        ),
    ),
    holds={
        "how many times the part": "definition",
    },
)

half = Question(
    id="scaling.half_wasted",
    chapter=CHAPTER,
    level="recall",
    prompt=(
        "{{serial}} of a fixed job is serial. On how many processors has its efficiency fallen to"
        " one half?"
    ),
    parameters={"serial": share(0.01, 0.01, 0.02, 0.04, 0.05)},
    expected=lambda serial: s.processors_at_efficiency(0.5, serial=serial),
    tolerance=0.005,
    solution=lambda serial: derivation(
        "Efficiency is the speedup over $n$. By Amdahl's law that is $1 / (1 + s (n - 1))$.",
        "It is one half where $s (n - 1)$ is one.",
        step(
            "Solve for the processors: the limit of the speedup, and one.",
            "1 + 1 / serial",
            s.processors_at_efficiency(0.5, serial=serial),
            serial=(serial, "%"),
        ),
        after="From there on more than half of the money is wasted.",
    ),
    misconceptions=(
        Misconception(
            "half the limit",
            lambda serial: 0.5 / serial,
            "That is half of the largest speedup. On how many processors is the efficiency one"
            " half?",
        ),
        Misconception(
            "half of it serial",
            lambda serial: 1 / (1 - serial) * 2,
            "Write efficiency as the speedup over n, then set it to one half.",
        ),
        Misconception(
            "twice the limit",
            lambda serial: 2 / serial,
            "There the efficiency is lower still. Set the speedup over n to one half and solve.",
        ),
        Misconception(
            "one over the share",
            lambda serial: 1 / serial,
            "Nearly. Put that number into the efficiency: does it come to a half?",
            slight=True,
        ),
    ),
    holds={
        "That is half of the largest speedup": lambda serial: (
            abs(0.5 / serial - 0.5 * s.amdahl_speedup(math.inf, serial=serial)) < 1e-9
        ),
        "There the efficiency is lower": (
            lambda serial: s.amdahl_speedup(2 / serial, serial=serial) * serial / 2 < 0.5
        ),
        "more than half of the money": (
            lambda serial: s.amdahl_speedup(2 + 1 / serial, serial=serial) / (2 + 1 / serial) < 0.5
        ),
    },
    smaller="scaling.limit",
)

# --- predictions ------------------------------------------------------------------------------

offer = Question(
    id="scaling.offer",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "A training job takes {{days}} on the GPUs you have. {{serial}} of that time stays as it"
        " is on more GPUs, and the rest is divided. How many days does it take on {{n}} times as"
        " many GPUs?"
    ),
    parameters={
        "days": Parameter(7, (7, 10, 14, 21), "day"),
        "serial": share(0.05, 0.04, 0.05, 0.08, 0.1),
        "n": Parameter(8, (4, 8, 16)),
    },
    expected=lambda days, serial, n: days / s.amdahl_speedup(n, serial=serial),
    unit="day",
    solution=lambda days, serial, n: derivation(
        step(
            "Split the time as it is now. The part that stays:",
            "serial * time",
            time=days_of(days),
            serial=(serial, "%"),
        ),
        step(
            "The rest is divided among the GPUs:",
            "(1 - serial) * time / n",
            time=days_of(days),
            serial=(serial, "%"),
            n=n,
        ),
        step(
            "Add what is left. Perfect scaling would leave the second part alone.",
            "serial * time + (1 - serial) * time / n",
            (days_of(days)[0] / s.amdahl_speedup(n, serial=serial), "day"),
            time=days_of(days),
            serial=(serial, "%"),
            n=n,
        ),
    ),
    misconceptions=(
        Misconception(
            "perfect scaling",
            lambda days, serial, n: days / n,
            "That is what perfect scaling gives. What becomes of the part that stays?",
        ),
        Misconception(
            "only the rest",
            lambda days, serial, n: (1 - serial) * days / n,
            "That is the divided part. The other part has to be done as well.",
        ),
        Misconception(
            "the share of the new time",
            lambda days, serial, n: days / n * (1 + serial),
            "The share is of the time on the GPUs you have, not of the shorter one.",
        ),
        Misconception(
            "a speedup",
            lambda days, serial, n: 86400 * s.amdahl_speedup(n, serial=serial),
            "That is a speedup, and not a time. How long does the job take, then?",
        ),
        Misconception(
            "all of it divided",
            lambda days, serial, n: days * (serial + 1 / n),
            "You divided the whole job and added the part that stays. Was that part divided as"
            " well?",
            slight=True,
        ),
    ),
    smaller="scaling.profile",
)

PROFILE = {
    "setup": Parameter(120, (100, 120, 150), "ms"),
    "compute": Parameter(800, (800, 900, 1200), "ms"),
    "finish": Parameter(80, (60, 80, 100), "ms"),
    "n": Parameter(50, (50, 100, 200)),
}


def parts(setup, compute, finish):
    return {"setup": setup, "compute": compute, "finish": finish}


def times_of(*of):
    return {name: (time, "s") for name, time in parts(*of).items()}


profile = Question(
    id="scaling.profile",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "A profile says: setup {{setup}}, compute {{compute}}, finish {{finish}}. Only the compute"
        " part is made {{n}} times faster. How many times faster is the whole?"
    ),
    parameters=PROFILE,
    expected=lambda setup, compute, finish, n: s.profile_speedup(
        parts(setup, compute, finish), {"compute": n}
    ),
    tolerance=0.01,
    solution=lambda setup, compute, finish, n: derivation(
        step(
            "Add up the whole profile.",
            "setup + compute + finish",
            **times_of(setup, compute, finish),
        ),
        step(
            "Add it up again for afterwards: one part becomes shorter, the others stay.",
            "setup + compute / n + finish",
            **times_of(setup, compute, finish),
            n=n,
        ),
        step(
            "Before over afterwards.",
            "(setup + compute + finish) / (setup + compute / n + finish)",
            s.profile_speedup(parts(setup, compute, finish), {"compute": n}),
            **times_of(setup, compute, finish),
            n=n,
        ),
        after=f"Even a compute part that takes no time would leave {si(setup + finish, 's')}.",
    ),
    misconceptions=(
        Misconception(
            "the factor of the part",
            lambda setup, compute, finish, n: n,
            "That part is faster by as much. The others are not.",
        ),
        Misconception(
            "the limit",
            lambda setup, compute, finish, n: s.profile_speedup(
                parts(setup, compute, finish), {"compute": math.inf}
            ),
            "That is what remains when compute takes no time at all. It still takes a little.",
        ),
        Misconception(
            "one serial part forgotten",
            lambda setup, compute, finish, n: s.profile_speedup(
                {"setup": setup, "compute": compute}, {"compute": n}
            ),
            "Add up the whole profile again: which parts are not made faster?",
        ),
        Misconception(
            "weighted average of the factors",
            lambda setup, compute, finish, n: (
                (setup + compute * n + finish) / (setup + compute + finish)
            ),
            "You averaged the factors by time. Add the times that remain instead.",
        ),
    ),
    holds={
        "Only the compute part": "definition",
        "That part is faster": "definition",
        "That is what remains": "definition",
        "Even a compute part": "algebra",
    },
    smaller="scaling.one_part",
)

affordable = Question(
    id="scaling.affordable_share",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "A fixed job must run on {{n}} GPUs with an efficiency of {{efficiency}}. What share of its"
        " time on one GPU may be serial?"
    ),
    parameters={"n": machines(1024, 64, 4096), "efficiency": share(0.8, 0.6, 0.7, 0.8, 0.9)},
    expected=lambda n, efficiency: (1 / efficiency - 1) / (n - 1),
    unit="%",
    tolerance=0.03,
    solution=lambda n, efficiency: derivation(
        "Efficiency is $1 / (1 + s (n - 1))$. Solve that for $s$: one over the efficiency, less"
        " one, is $s (n - 1)$.",
        step(
            "So the share is",
            "(1 / efficiency - 1) / (n - 1)",
            ((1 / efficiency - 1) / (n - 1), "%"),
            efficiency=(efficiency, "%"),
            n=n,
        ),
        step(
            "Check with Amdahl's law: the speedup over the processors is the efficiency asked for.",
            "1 / (serial + (1 - serial) / n) / n",
            (efficiency, "%"),
            serial=((1 / efficiency - 1) / (n - 1), "%"),
            n=n,
        ),
    ),
    misconceptions=(
        Misconception(
            "the share of the large run",
            lambda n, efficiency: (1 - efficiency) * n / (n - 1),
            "That is the share as seen on the large machine. The question asks for the time on one"
            " GPU.",
        ),
        Misconception(
            "the limit is n",
            lambda n, efficiency: 1 / n,
            "With that share n is the limit, which no machine reaches. What is the efficiency"
            " at n?",
        ),
        Misconception(
            "lost share over n",
            lambda n, efficiency: (1 - efficiency) / n,
            "Nearly: what you divided is a share of the time on n. How long is that time, if the"
            " perfect one is one over n?",
        ),
        Misconception(
            "one per cent",
            lambda n, efficiency: 0.01,
            "Try one per cent: what is the highest speedup that it allows?",
        ),
    ),
    holds={
        "With that share n is the limit": (
            lambda n, efficiency: abs(s.amdahl_speedup(math.inf, serial=1 / n) - n) < 1e-6
        ),
    },
    smaller="scaling.half_wasted",
)

# --- apply ------------------------------------------------------------------------------------

measured = Question(
    id="scaling.karp_flatt",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "On {{n}} GPUs a job runs {{speedup}} times as fast as on one. What serial share would"
        " explain that by Amdahl's law alone?"
    ),
    parameters={"n": Parameter(8, (8, 12, 16)), "speedup": Parameter(5, (4, 5, 6, 7))},
    expected=lambda n, speedup: s.karp_flatt(speedup, n),
    unit="%",
    solution=lambda n, speedup: derivation(
        step(
            "As a share of the time on one GPU, the job now takes", "1 / speedup", speedup=speedup
        ),
        step("Perfect scaling would leave", "1 / n", n=n),
        "Amdahl's law says $1/S = s + (1 - s)/n$. Collect $s$: $1/S - 1/n = s\\,(1 - 1/n)$.",
        step(
            "Divide. This is the Karp–Flatt metric.",
            "(1 / speedup - 1 / n) / (1 - 1 / n)",
            (s.karp_flatt(speedup, n), "%"),
            speedup=speedup,
            n=n,
        ),
    ),
    misconceptions=(
        Misconception(
            "lost efficiency",
            lambda n, speedup: 1 - speedup / n,
            "That is the share of the machine that was wasted. A small serial part wastes many"
            " processors.",
        ),
        Misconception(
            "one over the speedup",
            lambda n, speedup: 1 / speedup,
            "That would be all of the time that is left. Some of it is parallel work.",
        ),
        Misconception(
            "not renormalised",
            lambda n, speedup: 1 / speedup - 1 / n,
            "Nearly. In Amdahl's law s occurs in two places: as itself, and in the parallel share"
            " 1 - s.",
        ),
        Misconception(
            "Gustafson's share",
            lambda n, speedup: (n - speedup) / (n - 1),
            "That is the share of the time on the large machine, by Gustafson's law.",
        ),
    ),
    holds={
        "times as fast as on one": "definition",
        "That would be all of the time": lambda n, speedup: s.karp_flatt(speedup, n) < 1 / speedup,
    },
    smaller="scaling.limit",
)

peak = Question(
    id="scaling.peak",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "A fit to measured speedups gives a serial share of {{serial}} and a cost for each further"
        " processor of {{kappa}} of the time on one. On how many processors is the job fastest?"
    ),
    parameters={"serial": share(0.1, 0.1, 0.15, 0.2), "kappa": share(0.001, 0.0005, 0.001, 0.002)},
    expected=lambda serial, kappa: s.usl_peak(serial=serial, kappa=kappa),
    solution=lambda serial, kappa: derivation(
        "The time is $s + (1 - s)/n + κ (n - 1)$. Each further processor shortens the second term"
        " by about $(1 - s)/n^2$ and lengthens the third by κ.",
        "More pays until the first is down to the second: $n^2 = (1 - s)/κ$.",
        step(
            "Take the root.",
            "sqrt((1 - serial) / kappa)",
            s.usl_peak(serial=serial, kappa=kappa),
            serial=(serial, "%"),
            kappa=(kappa, "%"),
        ),
        step(
            "The speedup there is",
            "n / (1 + serial * (n - 1) + kappa * n * (n - 1))",
            s.usl_speedup(s.usl_peak(serial=serial, kappa=kappa), serial=serial, kappa=kappa),
            n=s.usl_peak(serial=serial, kappa=kappa),
            serial=(serial, "%"),
            kappa=(kappa, "%"),
        ),
    ),
    misconceptions=(
        Misconception(
            "no root",
            lambda serial, kappa: (1 - serial) / kappa,
            "Set the slope of the time to zero. What is the slope of 1/n?",
        ),
        Misconception(
            "all work is parallel",
            lambda serial, kappa: kappa**-0.5,
            "Only the parallel part becomes shorter with n.",
        ),
        Misconception(
            "Amdahl's limit",
            lambda serial, kappa: 1 / serial,
            "That is a speedup, and one that no longer applies: the third term turns the curve"
            " down.",
        ),
    ),
    holds={
        "Only the parallel part": "algebra",
        "one that no longer applies": lambda serial, kappa: (
            s.usl_speedup(s.usl_peak(serial=serial, kappa=kappa), serial=serial, kappa=kappa)
            < 1 / serial
        ),
    },
    smaller="scaling.limit",
)

price = Question(
    id="scaling.price",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "{{serial}} of a fixed job is serial. GPUs cost the same by the hour. How many times the"
        " price of one GPU does the job cost on {{n}}?"
    ),
    parameters={"serial": share(0.05), "n": machines(64, 16, 256)},
    expected=lambda serial, n: n / s.amdahl_speedup(n, serial=serial),
    solution=lambda serial, n: derivation(
        step(
            "By Amdahl's law the speedup is",
            "1 / (serial + (1 - serial) / n)",
            s.amdahl_speedup(n, serial=serial),
            serial=(serial, "%"),
            n=n,
        ),
        step(
            "Each of the GPUs is paid for, over a time shorter by that factor.",
            "n / speedup",
            n=n,
            speedup=s.amdahl_speedup(n, serial=serial),
        ),
        after="That is one over the efficiency: $1 + s (n - 1)$.",
    ),
    misconceptions=(
        Misconception(
            "the speedup",
            lambda serial, n: s.amdahl_speedup(n, serial=serial),
            "That is how much faster it is. How many GPUs are paid for meanwhile?",
        ),
        Misconception("the machines", lambda serial, n: n, "They are paid for a shorter time."),
        Misconception(
            "the limit",
            lambda serial, n: 1 / serial,
            "That is the limit of the speedup. Has the bill one?",
        ),
        Misconception(
            "efficiency",
            lambda serial, n: s.amdahl_speedup(n, serial=serial) / n,
            "That is the value you get for the money. Turn it over.",
        ),
        Misconception(
            "no loss", lambda serial, n: 1, "That is the price of a job that scales perfectly."
        ),
    ),
    holds={
        "That is the limit of the speedup": lambda serial, n: (
            abs(s.amdahl_speedup(math.inf, serial=serial) - 1 / serial) < 1e-9
        ),
    },
    smaller="scaling.offer",
)


def task_graph(load, longer, shorter, reduce):
    return s.work_span(
        {
            "load": (load, ()),
            "longer": (longer, ("load",)),
            "shorter": (shorter, ("load",)),
            "reduce": (reduce, ("longer", "shorter")),
        }
    )


critical = Question(
    id="scaling.critical_path",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "A step loads a batch ({{load}}), then runs two independent branches ({{longer}} and"
        " {{shorter}}), then reduces both results ({{reduce}}). How long does it take at least, on"
        " any number of processors?"
    ),
    parameters={
        "load": Parameter(10, (5, 10, 15), "ms"),
        "longer": Parameter(60, (50, 60, 70), "ms"),
        "shorter": Parameter(30, (20, 30, 35), "ms"),
        "reduce": Parameter(20, (8, 20, 25), "ms"),
    },
    expected=lambda **steps: task_graph(**steps).span,
    unit="ms",
    tolerance=0.005,
    solution=lambda **steps: derivation(
        "The branches run at the same time, but the reduction waits for both of them.",
        step(
            "So the longest chain goes through the slower branch.",
            "load + max(longer, shorter) + reduce",
            (task_graph(**steps).span, "s"),
            **{name: (time, "s") for name, time in steps.items()},
        ),
        step(
            "The whole work, for comparison.",
            "load + longer + shorter + reduce",
            (task_graph(**steps).work, "s"),
            **{name: (time, "s") for name, time in steps.items()},
        ),
        after=(
            f"So no machine gives more than {times(task_graph(**steps).parallelism)} the speed of"
            " one processor."
        ),
    ),
    misconceptions=(
        Misconception(
            "all the work",
            lambda **steps: task_graph(**steps).work,
            "That is the time on one processor. Which steps need not wait for each other, and can"
            " run at the same time?",
        ),
        Misconception(
            "the longest step",
            lambda load, longer, shorter, reduce: max(load, longer, shorter, reduce),
            "Some steps cannot start before others end.",
        ),
        Misconception(
            "the shorter branch",
            lambda load, longer, shorter, reduce: load + min(longer, shorter) + reduce,
            "The reduction waits for both branches. For which of them longer?",
        ),
        Misconception(
            "branches averaged",
            lambda load, longer, shorter, reduce: load + (longer + shorter) / 2 + reduce,
            "Two processors share the branches, but one step runs on one of them.",
        ),
        Misconception(
            "before the reduction, in a row",
            lambda load, longer, shorter, reduce: load + longer + shorter,
            "Those are the steps before the reduction, one after the other. Which can run at the"
            " same time, and what comes after them?",
        ),
        Misconception(
            "no reduction",
            lambda load, longer, shorter, reduce: load + longer,
            "Your step ends with the longer branch. What needs its result?",
        ),
    ),
    holds={
        "the longest chain": lambda load, longer, shorter, reduce: (
            abs(
                task_graph(load, longer, shorter, reduce).span
                - load
                - max(longer, shorter)
                - reduce
            )
            < 1e-12
        ),
        "no machine gives more": lambda **steps: (
            task_graph(**steps).parallelism * task_graph(**steps).span
            <= task_graph(**steps).work * (1 + 1e-12)
        ),
    },
    smaller="scaling.wait_for_both",
)

accumulate = Question(
    id="scaling.accumulation",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "Computing one micro-batch takes {{compute}}, synchronising the gradients {{sync}}, with no"
        " overlap. The gradients are synchronised once for {{k}} micro-batches. What share of the"
        " time is synchronisation?"
    ),
    parameters={
        "compute": Parameter(80, (60, 80, 120), "ms"),
        "sync": Parameter(40, (20, 40, 50), "ms"),
        "k": Parameter(4, (4, 8)),
    },
    expected=lambda compute, sync, k: sync / (sync + k * compute),
    unit="%",
    solution=lambda compute, sync, k: derivation(
        step(
            "One optimizer step has the $k$ micro-batches and one synchronisation.",
            "k * compute + sync",
            k=k,
            compute=(compute, "s"),
            sync=(sync, "s"),
        ),
        step(
            "The share of the synchronisation.",
            "sync / (k * compute + sync)",
            (sync / (k * compute + sync), "%"),
            k=k,
            compute=(compute, "s"),
            sync=(sync, "s"),
        ),
        step(
            "Without accumulation it was",
            "sync / (compute + sync)",
            (sync / (compute + sync), "%"),
            compute=(compute, "s"),
            sync=(sync, "s"),
        ),
        after="The batch grew by the same factor: weak scaling.",
    ),
    misconceptions=(
        Misconception(
            "every time",
            lambda compute, sync, k: sync / (sync + compute),
            "That synchronises after every micro-batch.",
        ),
        Misconception(
            "against compute",
            lambda compute, sync, k: sync / (k * compute),
            "A share is of the whole time, synchronisation included.",
        ),
        Misconception(
            "the share divided",
            lambda compute, sync, k: sync / (sync + compute) / k,
            "The whole becomes longer, too. Add up the times of one optimizer step.",
        ),
        Misconception(
            "one computation, many synchronisations",
            lambda compute, sync, k: k * sync / (k * sync + compute),
            "You synchronise several times for one micro-batch. Which of the two happens more"
            " often?",
        ),
    ),
    holds={
        "That synchronises after every": "definition",
        "The whole becomes longer": lambda compute, sync, k: k * compute + sync > compute + sync,
    },
    smaller="scaling.share_of_step",
)

# --- functions to write -----------------------------------------------------------------------

NUMBERS = {
    "n": Parameter(8, (1, 2, 8, 100, 5000)),
    "serial": Parameter(0.05, (0.01, 0.05, 0.2, 0.5)),
}

write_amdahl = Question(
    id="scaling.write_amdahl",
    chapter=CHAPTER,
    level="apply",
    kind="function",
    prompt=(
        "Write `amdahl(n, serial)`: the speedup of a fixed job on n processors, from its serial"
        " share on one."
    ),
    parameters=NUMBERS,
    edges=({"serial": 0.0}, {"serial": 1.0}),
    expected=lambda n, serial: s.amdahl_speedup(n, serial=serial),
    tolerance=0.001,
    solution=(
        derivation(
            "Take the time on one processor as one. The serial share of it stays.",
            "The rest is divided by `n`.",
            "The speedup is one over the time that remains.",
            after=(
                "```python\ndef amdahl(n, serial):\n    return 1 / (serial + (1 - serial) / n)\n```"
            ),
        )
    ),
    misconceptions=(
        Misconception(
            "shares swapped",
            lambda n, serial: 1 / ((1 - serial) + serial / n),
            "Try a serial share near zero: does your job scale?",
        ),
        Misconception(
            "Gustafson",
            lambda n, serial: n - serial * (n - 1),
            "That is the other law: its share is of the time on n processors.",
        ),
        Misconception(
            "everything divided",
            lambda n, serial: n / (serial + (1 - serial)),
            "Only one of the two parts becomes shorter with n.",
        ),
        Misconception(
            "time, not speedup",
            lambda n, serial: serial + (1 - serial) / n,
            "That is the time that remains. How many times shorter is it?",
        ),
        Misconception(
            "the limit",
            lambda n, serial: 1 / serial,
            "Try one processor. What is your speedup there?",
        ),
    ),
    holds={
        "Only one of the two parts": "algebra",
    },
    smaller="scaling.offer",
)

write_usl = Question(
    id="scaling.write_usl",
    chapter=CHAPTER,
    level="apply",
    kind="function",
    prompt=(
        "Write `usl(n, serial, kappa)`: Amdahl's law with a third term, a cost of kappa of the time"
        " on one processor for each processor beyond the first."
    ),
    parameters={**NUMBERS, "kappa": Parameter(1e-3, (1e-5, 1e-3, 0.02))},
    edges=({"kappa": 0.0}, {"serial": 0.0}),
    expected=lambda n, serial, kappa: s.usl_speedup(n, serial=serial, kappa=kappa),
    tolerance=0.001,
    solution=(
        derivation(
            "Take the time on one processor as one. By Amdahl's law `serial + (1 - serial) / n`"
            " remains.",
            "Each processor beyond the first costs `kappa` more, so add `kappa * (n - 1)`.",
            "The speedup is one over the time that remains.",
            after=(
                "```python\ndef usl(n, serial, kappa):\n"
                "    return 1 / (serial + (1 - serial) / n + kappa * (n - 1))\n```"
            ),
        )
    ),
    misconceptions=(
        Misconception(
            "kappa divided by n",
            lambda n, serial, kappa: n / (1 + serial * (n - 1) + kappa * (n - 1)),
            "Your third term shrinks with n like the divided work. Does this cost shrink as well?",
        ),
        Misconception(
            "no third term",
            lambda n, serial, kappa: s.amdahl_speedup(n, serial=serial),
            "Let n grow: does your speedup ever fall?",
        ),
        Misconception(
            "cost at n = 1",
            lambda n, serial, kappa: 1 / (serial + (1 - serial) / n + kappa * n),
            "What is your speedup on one processor? It should be one.",
        ),
        Misconception(
            "subtracted from the speedup",
            lambda n, serial, kappa: s.amdahl_speedup(n, serial=serial) - kappa * (n - 1),
            "The cost is a time. Add it where the other times are.",
        ),
        Misconception(
            "n for n - 1",
            lambda n, serial, kappa: n / (1 + serial * n + kappa * n * n),
            "What is your speedup on one processor? Count those beyond the first, in both terms.",
        ),
    ),
    smaller="scaling.write_amdahl",
)

write_share = Question(
    id="scaling.write_karp_flatt",
    chapter=CHAPTER,
    level="apply",
    kind="function",
    prompt=(
        "Write `serial_share(speedup, n)`: the serial share that explains a measured speedup by"
        " Amdahl's law."
    ),
    parameters={
        "speedup": Parameter(5.0, (1.5, 1.9, 5.0, 7.0)),
        "n": Parameter(8, (2, 8, 64, 512)),
    },
    edges=({"speedup": 9.0}, {"speedup": 8.0}, {"speedup": 1.0}),
    expected=s.karp_flatt,
    tolerance=0.001,
    solution=(
        derivation(
            "Amdahl's law says $1/S = s + (1 - s)/n$.",
            "Collect $s$: $1/S - 1/n = s\\,(1 - 1/n)$. Then divide.",
            after=(
                "```python\ndef serial_share(speedup, n):\n    return (1 / speedup - 1 / n) / (1 -"
                " 1 / n)\n```\n\nA speedup above n gives a negative share: superlinear, for"
                " instance because the parts fit into caches."
            ),
        )
    ),
    misconceptions=(
        Misconception(
            "not renormalised",
            lambda speedup, n: 1 / speedup - 1 / n,
            "Try a speedup of one: everything is serial then.",
        ),
        Misconception(
            "lost efficiency",
            lambda speedup, n: 1 - speedup / n,
            "Put your share back into Amdahl's law. Does the speedup come out?",
        ),
        Misconception(
            "cut off at zero",
            lambda speedup, n: max(0.0, (1 / speedup - 1 / n) / (1 - 1 / n)),
            "What does a speedup above n tell you? Do not hide it.",
        ),
        Misconception(
            "Gustafson's share",
            lambda speedup, n: (n - speedup) / (n - 1),
            "That is the share of the time on n processors, Gustafson's baseline. Amdahl's is the"
            " time on one.",
        ),
        Misconception(
            "one over the speedup",
            lambda speedup, n: 1 / speedup,
            "That is the time that is left. Is a part of it parallel work?",
        ),
    ),
    holds={
        "A speedup above n": lambda speedup, n: s.karp_flatt(1.1 * n, n) < 0,
    },
    smaller="scaling.karp_flatt",
)

# --- design -----------------------------------------------------------------------------------

STEP = {"load": 0.15, "forward": 0.25, "backward": 0.45, "optimizer": 0.15}


def gains(products, load):
    """What each change makes of the whole step."""
    changes = {
        "products": {"forward": products, "backward": products},
        "loader": {"load": load},
        "optimizer": {"optimizer": math.inf},
        "backward": {"backward": 2.0},
    }
    return {name: s.profile_speedup(STEP, factors) for name, factors in changes.items()}


where = Question(
    id="scaling.where_to_work",
    chapter=CHAPTER,
    level="design",
    kind="choice",
    prompt=(
        f"A training step spends {si(STEP['load'], '%')} of its time loading,"
        f" {si(STEP['forward'], '%')} forward, {si(STEP['backward'], '%')} backward and"
        f" {si(STEP['optimizer'], '%')} in the optimizer, one after the other. You have time for"
        " one change: matrix products {{products}} times faster, forward and backward; loading"
        " {{load}} times faster; backward twice as fast by less recomputation; or an optimizer"
        " that takes no time. Which helps most?"
    ),
    parameters={
        "products": Parameter(1.25, (1.1, 1.2, 1.25, 1.5), show=lambda v: si(v)),
        "load": Parameter(10, (4, 10, 20)),
    },
    options={
        "products": "The matrix products.",
        "loader": "The loader.",
        "optimizer": "The optimizer.",
        "backward": "The backward pass.",
    },
    expected=lambda products, load: max(gains(products, load), key=gains(products, load).get),
    solution=lambda products, load: derivation(
        "Call the step one, and work out what is left of it after each change.",
        step(
            "Forward and backward, with the faster products.",
            "1 / (1 - both + both / factor)",
            gains(products, load)["products"],
            both=(STEP["forward"] + STEP["backward"], "%"),
            factor=products,
        ),
        step(
            "The loader.",
            "1 / (1 - load + load / factor)",
            gains(products, load)["loader"],
            load=(STEP["load"], "%"),
            factor=load,
        ),
        step(
            "Without the optimizer.",
            "1 / (1 - optimizer)",
            gains(products, load)["optimizer"],
            optimizer=(STEP["optimizer"], "%"),
        ),
        step(
            "With the faster backward pass.",
            "1 / (1 - backward + backward / 2)",
            gains(products, load)["backward"],
            backward=(STEP["backward"], "%"),
        ),
        after="A large factor on a small part is a small gain.",
    ),
    misconceptions=(
        Misconception(
            "the largest part counts",
            lambda **_: "products",
            "The largest share is touched, but by how much? Compute the time that is saved.",
        ),
        Misconception(
            "the largest factor",
            lambda **_: "loader",
            "A large factor on a small share. How much time can it save at most?",
        ),
        Misconception(
            "to zero is best",
            lambda **_: "optimizer",
            "Nothing beats zero for that part. But how large is the part?",
        ),
    ),
    holds={
        "You have time for one change": "definition",
        "Nothing beats zero": "algebra",
    },
    smaller="scaling.profile",
)


def better(parallel, factor, n):
    """One processor `factor` times as fast, or n of the old ones."""
    return "fast" if factor > s.amdahl_speedup(n, parallel=parallel) else "many"


fast_core = Question(
    id="scaling.fast_or_many",
    chapter=CHAPTER,
    level="design",
    kind="choice",
    prompt=(
        "{{parallel}} of a fixed job is parallel. For the same money you can have one processor"
        " that is {{factor}} times as fast, or {{n}} of the present kind. Which makes the job"
        " faster?"
    ),
    parameters={
        "parallel": share(0.6, 0.4, 0.5, 0.6, 0.8, 0.9),
        "factor": Parameter(3, (2, 3, 4)),
        "n": machines(64, 16, 256),
    },
    options={
        "fast": "One fast processor.",
        "many": "The many.",
        "same": "Both the same.",
        "unknown": "It depends on the size of the job.",
    },
    expected=better,
    solution=lambda parallel, factor, n: derivation(
        "The fast processor shortens both parts, by its factor.",
        step(
            "The many shorten the parallel part. By Amdahl's law that gives",
            "1 / (1 - parallel + parallel / n)",
            s.amdahl_speedup(n, parallel=parallel),
            parallel=(parallel, "%"),
            n=n,
        ),
        step(
            "and of any number at most",
            "1 / (1 - parallel)",
            s.amdahl_speedup(math.inf, parallel=parallel),
            parallel=(parallel, "%"),
        ),
        f"Compare with {factor}.",
    ),
    misconceptions=(
        Misconception(
            "more is faster",
            lambda parallel, factor, n: "many" if better(parallel, factor, n) == "fast" else "fast",
            "Compute the speedup of both. Which parts does each of them shorten?",
        ),
        Misconception(
            "the product counts",
            lambda **_: "same",
            "Total capacity is not the measure: who works on the serial part?",
        ),
        Misconception(
            "size",
            lambda **_: "unknown",
            "The shares are given. Is anything left that the size could change?",
        ),
    ),
    holds={
        "For the same money": "definition",
        "and of any number at most": lambda parallel, factor, n: (
            s.amdahl_speedup(n, parallel=parallel) < s.amdahl_speedup(math.inf, parallel=parallel)
        ),
    },
    smaller="scaling.limit",
)


def needed(hours, deadline, serial):
    wanted = hours / deadline
    # 38 must not become 39 by rounding
    return math.ceil((1 - serial) / (1 / wanted - serial) - 1e-9)


deadline = Question(
    id="scaling.deadline",
    chapter=CHAPTER,
    level="design",
    prompt=(
        "An evaluation takes {{hours}} on one GPU and must be done in {{deadline}}. {{serial}} of"
        " it is serial. How many GPUs does it take?"
    ),
    parameters={
        "hours": Parameter(100, (80, 100, 120), "h"),
        "deadline": Parameter(9, (8.5, 9, 9.5), "h"),
        "serial": share(0.05, 0.03, 0.05),
    },
    expected=needed,
    tolerance=0,
    solution=lambda hours, deadline, serial: derivation(
        step(
            "How many times faster must it be?",
            "time / deadline",
            time=(hours / 3600, "h"),
            deadline=(deadline / 3600, "h"),
        ),
        step(
            "Amdahl allows less than one over the serial share, so it can be done.",
            "1 / serial",
            serial=(serial, "%"),
        ),
        "Solve $1/S = s + (1 - s)/n$ for $n$, and round up.",
        step(
            "The number of GPUs.",
            "ceil((1 - serial) / (1 / speedup - serial))",
            needed(hours, deadline, serial),
            serial=(serial, "%"),
            speedup=hours / deadline,
        ),
        step(
            "On that many the job costs this many times what it costs on one.",
            "1 + serial * (n - 1)",
            serial=(serial, "%"),
            n=needed(hours, deadline, serial),
        ),
    ),
    misconceptions=(
        Misconception(
            "perfect scaling",
            lambda hours, deadline, serial: math.ceil(hours / deadline),
            "That many would do if nothing were serial.",
        ),
        Misconception(
            "the next power of two",
            lambda hours, deadline, serial: 2 ** math.ceil(math.log2(hours / deadline)),
            "That is the first power of two above perfect scaling. Does the serial part leave that"
            " much time to the rest?",
        ),
        Misconception(
            "rounded down",
            lambda hours, deadline, serial: needed(hours, deadline, serial) - 1,
            "Nearly. Is the job done in time on that many?",
        ),
        Misconception(
            "the parallel part alone",
            lambda hours, deadline, serial: math.ceil((1 - serial) * hours / deadline),
            "The serial part also needs its share of the deadline.",
        ),
        Misconception(
            "the limit",
            lambda hours, deadline, serial: math.ceil(1 / serial),
            "That is the highest speedup, not the number of GPUs.",
        ),
    ),
    holds={
        "That many would do": "algebra",
        "That is the first power of two": "definition",
        "That is the highest speedup": (
            lambda hours, deadline, serial: s.amdahl_speedup(1e12, serial=serial) < 1 / serial
        ),
        "Amdahl allows": lambda hours, deadline, serial: hours / deadline < 1 / serial,
        "On that many the job costs": lambda hours, deadline, serial: (
            s.amdahl_speedup(needed(hours, deadline, serial), serial=serial)
            >= hours / deadline - 1e-9
            > s.amdahl_speedup(needed(hours, deadline, serial) - 1, serial=serial)
        ),
    },
    smaller="scaling.limit",
)

TREND = {
    "overhead": "Something grows with n: communication, waiting or imbalance.",
    "serial": "A fixed serial part, as in Amdahl's law.",
    "superlinear": "The job scales better than linearly.",
    "nothing": "Nothing is lost; the machine is simply larger.",
}


def growth(small, large):
    """How many times larger the Karp-Flatt share is on 16 processors than on 4."""
    return s.karp_flatt(large, 16) / s.karp_flatt(small, 4)


def diagnosis(small, large):
    """From speedups on 4 and on 16 processors: is the Karp-Flatt share constant?"""
    first, second = s.karp_flatt(small, 4), s.karp_flatt(large, 16)
    if first < 0 or second < 0:
        return "superlinear"
    return "overhead" if second > 1.1 * first else "serial"


trend = Question(
    id="scaling.diagnose",
    chapter=CHAPTER,
    level="design",
    kind="choice",
    prompt=(
        "On four GPUs a job runs {{small}} times as fast as on one, on sixteen {{large}} times."
        " What holds it back?"
    ),
    parameters={
        "small": Parameter(3.5, (3.5, 3.6), show=str),
        "large": Parameter(8.0, (7.0, 8.0, 9.3, 10.3), show=str),
    },
    options=TREND,
    expected=diagnosis,
    # The share either stays within three per cent of itself or grows by more than a fifth.
    valid=lambda small, large: abs(growth(small, large) - 1) < 0.03 or growth(small, large) > 1.2,
    solution=lambda small, large: derivation(
        step(
            "The serial share that explains the speedup on four.",
            "(1 / speedup - 1 / 4) / (1 - 1 / 4)",
            (s.karp_flatt(small, 4), "%"),
            speedup=small,
        ),
        step(
            "And the one that explains the speedup on sixteen.",
            "(1 / speedup - 1 / n) / (1 - 1 / n)",
            (s.karp_flatt(large, 16), "%"),
            n=16,
            speedup=large,
        ),
        "Serial work would keep it constant. A cost that grows makes it grow.",
    ),
    misconceptions=(
        Misconception(
            "always serial",
            lambda small, large: "serial" if diagnosis(small, large) == "overhead" else "overhead",
            "Work out the share that explains each of the two speedups, and compare.",
        ),
        Misconception(
            "more is more",
            lambda **_: "superlinear",
            "Is the speedup above the number of GPUs anywhere?",
        ),
        Misconception(
            "no loss", lambda **_: "nothing", "Compare each speedup with the number of GPUs."
        ),
    ),
    holds={
        "times as fast as on one": "definition",
        "scales better than linearly": "definition",
        "Nothing is lost": "definition",
        "Serial work would keep it constant": lambda small, large: (
            diagnosis(small, large) != "serial" or abs(growth(small, large) - 1) < 0.03
        ),
    },
    smaller="scaling.karp_flatt",
)

register(
    offer,
    limit,
    grown,
    one_part,
    wait_for_both,
    share_of_step,
    half,
    profile,
    affordable,
    measured,
    peak,
    price,
    critical,
    accumulate,
    write_amdahl,
    write_usl,
    write_share,
    where,
    fast_core,
    deadline,
    trend,
)
