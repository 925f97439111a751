"""Questions of chapter 4, Little's law: what to recall, to work out, to write and to design."""

from __future__ import annotations

import math
from statistics import NormalDist

from lightspeed import queueing as q
from lightspeed import roofline, scaling
from lightspeed_course.practice.amounts import nice
from lightspeed_course.practice.derivation import derivation, step
from lightspeed_course.practice.parameters import plain
from lightspeed_course.practice.questions import Misconception, Parameter, Question, register
from lightspeed_show.format import si

CHAPTER = "04_littles_law"
RATE = "request/s"


def rate(canonical, *choices):
    """Requests per second, written as people say it."""
    return Parameter(canonical, choices, RATE, show=lambda value: f"{value:,} requests a second")


# --- Little's law -----------------------------------------------------------------------------

in_flight = Question(
    id="queueing.in_flight",
    chapter=CHAPTER,
    level="recall",
    prompt=(
        "A service takes in {{arrival_rate}} and answers each in {{latency}} on average. How many"
        " requests are inside at a time, on average?"
    ),
    parameters={
        "arrival_rate": rate(1000, *nice(200, 5000)),
        "latency": Parameter(50, (20, 50, 80, 120, 200), "ms"),
    },
    expected=q.concurrency,
    unit="request",
    tolerance=0.01,
    solution=lambda arrival_rate, latency: derivation(
        step(
            "Little's law: how many come in a second, times how long each stays.",
            "arrival_rate * latency",
            (q.concurrency(arrival_rate, latency), "request"),
            arrival_rate=(arrival_rate, RATE),
            latency=(latency, "s"),
        ),
        after=(
            "You need not know the shape of the traffic, the number of servers or the order of"
            " service."
        ),
    ),
    misconceptions=(
        Misconception(
            "a second's worth",
            lambda arrival_rate, latency: arrival_rate,
            "That many arrive in a second. Are they all still there when the second is over?",
        ),
        Misconception(
            "divided",
            lambda arrival_rate, latency: arrival_rate / latency,
            "Slower answers should leave more requests inside, not fewer. Check the units: which"
            " combination leaves only requests?",
        ),
        Misconception(
            "one at a time",
            lambda arrival_rate, latency: 1 / latency,
            "That is the rate per second of a server that takes one at a time. How many are inside"
            " when all of these requests get through?",
        ),
        Misconception(
            "only those who wait",
            lambda arrival_rate, latency: arrival_rate * latency - 1,
            "You need not subtract anyone: the law counts those in service as well.",
        ),
    ),
)

how_long = Question(
    id="queueing.how_long",
    chapter=CHAPTER,
    level="recall",
    prompt=(
        "A gauge shows {{inside}} requests in flight, a counter {{arrival_rate}}. Nobody measured"
        " latency. What is its mean?"
    ),
    parameters={"inside": plain(200, 60, 120, 200, 450), "arrival_rate": rate(40, 20, 40, 80, 150)},
    expected=q.latency,
    unit="s",
    tolerance=0.01,
    solution=lambda inside, arrival_rate: derivation(
        "Little's law, $L = \\lambda W$, joins three means. Two of them are given: solve for $W$.",
        step(
            "Divide those inside by those who come in a second.",
            "inside / arrival_rate",
            (q.latency(inside, arrival_rate), "s"),
            inside=(inside, "request"),
            arrival_rate=(arrival_rate, RATE),
        ),
        after="Two readings give a latency that was not measured, as long as the system is steady.",
    ),
    smaller="queueing.in_flight",
    misconceptions=(
        Misconception(
            "multiplied",
            lambda inside, arrival_rate: inside * arrival_rate,
            "Your units are requests squared per second. What should be left is seconds.",
        ),
        Misconception(
            "time between arrivals",
            lambda inside, arrival_rate: 1 / arrival_rate,
            "That is the time between two arrivals. How many of those pass while one request is"
            " inside?",
        ),
        Misconception(
            "half of it",
            lambda inside, arrival_rate: inside / arrival_rate / 2,
            "A request that you look at now is half way through on average. How long does it stay"
            " in all?",
        ),
    ),
    holds={
        "Nobody measured latency": "definition",
    },
)

checkpoint_memory = Question(
    id="queueing.checkpoint_memory",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "An inference service must handle {{arrivals}} at {{latency}} each. Every request in flight"
        " holds {{cache}} of KV cache. How much memory do the caches need?"
    ),
    parameters={
        "arrivals": rate(500, 200, 300, 500, 800),
        "latency": Parameter(100, (50, 100, 150, 250), "ms"),
        "cache": Parameter(2, (1, 2, 3, 5), "GB"),
    },
    expected=lambda arrivals, latency, cache: q.concurrency(arrivals, latency) * cache,
    unit="GB",
    tolerance=0.01,
    solution=lambda arrivals, latency, cache: derivation(
        step(
            "Little's law gives the requests inside.",
            "arrivals * latency",
            (q.concurrency(arrivals, latency), "request"),
            arrivals=(arrivals, RATE),
            latency=(latency, "s"),
        ),
        step(
            "Each of them holds a cache.",
            "inside * cache",
            inside=(q.concurrency(arrivals, latency), "request"),
            cache=(cache, "byte/request"),
        ),
        after="The weights of the model come on top.",
    ),
    smaller="queueing.in_flight",
    misconceptions=(
        Misconception(
            "a second's worth",
            lambda arrivals, latency, cache: arrivals * cache,
            "You keep every request of a whole second. How long does each hold its cache?",
        ),
        Misconception(
            "one request",
            lambda arrivals, latency, cache: cache,
            "That serves one request at a time. How many are inside together?",
        ),
        Misconception(
            "per second of latency",
            lambda arrivals, latency, cache: arrivals / latency * cache,
            "A longer stay needs more room. Multiply, and look at the units.",
        ),
        Misconception(
            "the number in flight",
            lambda arrivals, latency, cache: arrivals * latency * 1e9,
            "That is how many requests are in flight. How much does each of them hold?",
        ),
    ),
    holds={
        "Every request in flight": "definition",
        "You keep every request": "definition",
    },
)

capped_rate = Question(
    id="queueing.capped_rate",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "There are {{memory}} for KV caches. A request needs {{cache}} and stays {{latency}}. What"
        " is the most that can be served?"
    ),
    parameters={
        "memory": Parameter(24, (16, 24, 40, 64), "GB"),
        "cache": Parameter(1, (1, 2, 4), "GB"),
        "latency": Parameter(50, (20, 50, 80, 100), "ms"),
    },
    expected=lambda memory, cache, latency: q.throughput(memory // cache, latency),
    unit=RATE,
    tolerance=0.01,
    solution=lambda memory, cache, latency: derivation(
        step(
            "Memory limits how many can be inside.",
            "floor(memory / cache)",
            memory=(memory, "byte"),
            cache=(cache, "byte/request"),
        ),
        step(
            "Each slot is free again after one latency: Little's law, solved for the rate.",
            "slots / latency",
            (q.throughput(memory // cache, latency), RATE),
            slots=(memory // cache, "request"),
            latency=(latency, "s"),
        ),
        after="It does not matter how many would like to come.",
    ),
    smaller="queueing.in_flight",
    misconceptions=(
        Misconception(
            "the slots",
            lambda memory, cache, latency: memory // cache,
            "That is how many are inside at a time. How often is each slot used in a second?",
        ),
        Misconception(
            "multiplied",
            lambda memory, cache, latency: memory // cache * latency,
            "A longer stay should lower the rate.",
        ),
        Misconception(
            "one slot", lambda memory, cache, latency: 1 / latency, "That is the rate of one slot."
        ),
    ),
    holds={
        "A longer stay should lower": lambda memory, cache, latency: (
            q.throughput(memory // cache, 2 * latency) < q.throughput(memory // cache, latency)
        ),
    },
)

# --- why latency explodes ---------------------------------------------------------------------

slowdown = Question(
    id="queueing.slowdown_at_ninety",
    chapter=CHAPTER,
    level="recall",
    prompt=(
        "One server, random arrivals, random service times (M/M/1). At {{load}} of its capacity,"
        " how many service times does a request spend in the system on average?"
    ),
    parameters={"load": Parameter(90, (80, 90, 95, 98), "%")},
    expected=lambda load: q.mm1(load, 1).W,
    tolerance=0.05,
    solution=lambda load: derivation(
        step("The share of the capacity that is free.", "1 - load", load=(load, "%")),
        step(
            "The time in the system is $1 / (\\mu - \\lambda)$. In service times that is one over"
            " the free share.",
            "1 / free",
            (q.mm1(load, 1).W, ""),
            free=(1 - load, "%"),
        ),
    ),
    misconceptions=(
        Misconception(
            "the wait alone",
            lambda load: q.mm1(load, 1).Wq,
            "That is the wait. The request is served as well.",
        ),
        Misconception(
            "in proportion",
            lambda load: 1 + load,
            "The wait does not grow in proportion to the load. What happens as the load comes near"
            " capacity?",
        ),
        Misconception(
            "fixed service times",
            lambda load: q.md1(load, 1).W,
            "That is for service times that never vary.",
        ),
        Misconception(
            "over the load",
            lambda load: 1 / load,
            "You divided by the load. What part of the server is left?",
        ),
        Misconception(
            "the free share",
            lambda load: 1 - load,
            "That is the part of the server that is free. Does the time become longer with it, or"
            " the other way round?",
        ),
    ),
    holds={
        "That is for service times": "definition",
    },
)

growth = Question(
    id="queueing.a_little_more_traffic",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "A server runs at {{load}} of its capacity; arrivals and service times are random (M/M/1)."
        " Traffic grows by {{more}}. By what factor does the mean time in the system grow?"
    ),
    parameters={
        "load": Parameter(80, (70, 75, 80), "%"),
        "more": Parameter(15, (10, 12, 15, 20), "%"),
    },
    expected=lambda load, more: q.mm1(load * (1 + more), 1).W / q.mm1(load, 1).W,
    tolerance=0.04,
    solution=lambda load, more: derivation(
        step(
            "The time before, in service times.",
            "1 / (1 - load)",
            (q.mm1(load, 1).W, ""),
            load=(load, "%"),
        ),
        step(
            "The growth is a share of the traffic, so it multiplies the load.",
            "load * (1 + more)",
            (load * (1 + more), "%"),
            load=(load, "%"),
            more=(more, "%"),
        ),
        step(
            "The time after.",
            "1 / (1 - load)",
            (q.mm1(load * (1 + more), 1).W, ""),
            load=(load * (1 + more), "%"),
        ),
        step(
            "Divide.",
            "after / before",
            after=q.mm1(load * (1 + more), 1).W,
            before=q.mm1(load, 1).W,
        ),
    ),
    smaller="queueing.slowdown_at_ninety",
    misconceptions=(
        Misconception(
            "in proportion",
            lambda load, more: 1 + more,
            "That would be right if requests did not wait for one another. Look at the capacity"
            " that is left, before and after.",
        ),
        Misconception(
            "the time after",
            lambda load, more: q.mm1(load * (1 + more), 1).W,
            "That is the time after the growth, in service times. How long was it before?",
        ),
        Misconception(
            "no change below full load",
            lambda load, more: 1.0,
            "A server that is not full still makes some requests wait: they come in bunches.",
        ),
        Misconception(
            "the wait alone",
            lambda load, more: q.mm1(load * (1 + more), 1).Wq / q.mm1(load, 1).Wq,
            "That is by how much the wait grows. The service itself does not.",
        ),
        Misconception(
            "points, not per cent",
            lambda load, more: (1 - load) / max(1 - load - more, 0.01),
            "You added the growth to the load. It is a share of the traffic, not of the capacity.",
        ),
    ),
)

tail = Question(
    id="queueing.tail_over_mean",
    chapter=CHAPTER,
    level="recall",
    prompt=(
        "In an M/M/1 queue, how many times the mean time in the system is its {{share}} percentile,"
        " whatever the load?"
    ),
    parameters={"share": Parameter(99, (90, 95, 99), "%", show=lambda value: f"{value}th")},
    expected=lambda share: q.sojourn_percentile(share, 1, 2) / q.mm1(1, 2).W,
    tolerance=0.05,
    solution=lambda share: derivation(
        "The time in the system is exponential: after $t$ means, the share of requests still inside"
        " is $e^{-t}$.",
        step("The share still inside at the percentile.", "1 - share", share=(share, "%")),
        step(
            "Solve $e^{-t}$ = that share for $t$, which counts means.",
            "ln(1 / left)",
            (q.sojourn_percentile(share, 1, 2) / q.mm1(1, 2).W, ""),
            left=(1 - share, "%"),
        ),
        after="It is the same at every load, so a long tail alone is no sign of overload.",
    ),
    smaller="queueing.slowdown_at_ninety",
    misconceptions=(
        Misconception(
            "three sigma",
            lambda share: 1 + 3 * q.mm1(1, 2).W,
            "Three standard deviations belong to a bell curve. Which distribution is this?",
        ),
        Misconception(
            "one in a hundred",
            lambda share: 1 / (1 - share),
            "One request in that many takes longer. How much longer is another matter: ask the"
            " distribution.",
        ),
        Misconception(
            "a bell curve",
            lambda share: NormalDist().inv_cdf(share),
            "That is near two numbers. One is the {{share}} percentile of a bell curve, in standard"
            " deviations from its mean; the other is the right distribution's, but for fewer of the"
            " requests. Which distribution, and which percentile, did you take?",
        ),
        Misconception(
            "the wait",
            lambda share: q.waiting_percentile(share, 1, 2) / q.mm1(1, 2).W,
            "That is the percentile of the wait alone, and it depends on the load.",
        ),
        Misconception(
            "the wrong tail",
            lambda share: -math.log(share),
            "You took the logarithm of the share that is below. Which share is to be above the"
            " percentile?",
        ),
        Misconception(
            "decades",
            lambda share: -math.log10(1 - share),
            "You counted powers of ten. By which base does this tail fall?",
        ),
    ),
    holds={
        "It is the same at every load": lambda share: (
            abs(
                q.sojourn_percentile(share, 9, 10) / q.mm1(9, 10).W
                - q.sojourn_percentile(share, 1, 2) / q.mm1(1, 2).W
            )
            < 1e-9
        ),
    },
)

headroom = Question(
    id="queueing.most_for_a_budget",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "One server takes {{service}} a request; arrivals and service times are random (M/M/1). The"
        " mean time in the system may be {{budget}}. How many requests a second may come?"
    ),
    parameters={
        "service": Parameter(20, (10, 20, 25, 40), "ms"),
        "budget": Parameter(100, (80, 100, 200, 250), "ms"),
    },
    expected=lambda service, budget: 1 / service - 1 / budget,
    unit=RATE,
    solution=lambda service, budget: derivation(
        step("What the server can do.", "1 / service", service=(service, "s/request")),
        step(
            "$W = 1 / (\\mu - \\lambda)$, so this rate must stay unused.",
            "1[request] / budget",
            budget=(budget, "s"),
        ),
        step(
            "The rest may come.",
            "capacity - unused",
            (1 / service - 1 / budget, RATE),
            capacity=(1 / service, RATE),
            unused=(1 / budget, RATE),
        ),
    ),
    smaller="queueing.slowdown_at_ninety",
    misconceptions=(
        Misconception(
            "all of the capacity",
            lambda service, budget: 1 / service,
            "At full load the queue grows without limit. What must stay unused?",
        ),
        Misconception(
            "one request a budget",
            lambda service, budget: 1 / budget,
            "That is the capacity that must stay free. How much is there in all?",
        ),
        Misconception(
            "budget less service",
            lambda service, budget: 1 / (budget - service),
            "The time left for waiting is not a time between arrivals. Start from the formula for"
            " the time in the system.",
        ),
        Misconception(
            "a sum of rates",
            lambda service, budget: 1 / service + 1 / budget,
            "You added what must stay unused. Would the server then keep up with its arrivals?",
        ),
    ),
    valid=lambda service, budget: budget >= 2.2 * service,
)

rest_of_a_service = Question(
    id="queueing.rest_of_a_service",
    chapter=CHAPTER,
    level="recall",
    prompt=(
        "Each request takes exactly {{service}} of one server, which is busy {{load}} of the time."
        " Requests come at random, and some find it idle. How much of the service in progress does"
        " a request find left, on average over all requests?"
    ),
    parameters={
        "service": Parameter(100, (50, 100, 200), "ms"),
        "load": Parameter(60, (30, 60, 70), "%"),
    },
    expected=lambda service, load: q.md1(load / service, 1 / service).Wq * (1 - load),
    unit="s",
    solution=lambda service, load: derivation(
        step(
            "Who finds the server busy comes at any moment of the service: half of it is left, on"
            " average.",
            "service / 2",
            service=(service, "s"),
        ),
        step(
            "Who finds it idle finds nothing. So take the share that finds it busy.",
            "load * half",
            (q.md1(load / service, 1 / service).Wq * (1 - load), "s"),
            load=(load, "%"),
            half=(service / 2, "s"),
        ),
        after=(
            "Divide that by the share of the time in which the server is idle, and you have the"
            " mean wait."
        ),
    ),
    misconceptions=(
        Misconception(
            "always busy",
            lambda service, load: service / 2,
            "That is what those find who find the server busy. What do the others find?",
        ),
        Misconception(
            "all of it",
            lambda service, load: load * service,
            "You let each service begin just as you come. When in the service do you come, on"
            " average?",
        ),
        Misconception(
            "the wait",
            lambda service, load: q.md1(load / service, 1 / service).Wq,
            "That is the whole wait. It also counts those who stand in front of you.",
        ),
    ),
    holds={
        "That is what those find": "definition",
        "Who finds it idle": "definition",
        "Who finds the server busy": "algebra",
        "That is the whole wait": "definition",
    },
)

any_service = Question(
    id="queueing.mixed_lengths",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "{{arrivals}} come at random to one server. A request takes {{service}} on average, with a"
        " standard deviation of {{spread}}, since answers differ in length. How long does a request"
        " wait on average?"
    ),
    parameters={
        "arrivals": rate(8, 5, 6, 8),
        "service": Parameter(100, (80, 100, 110), "ms"),
        "spread": Parameter(200, (150, 200, 300), "ms"),
    },
    expected=lambda arrivals, service, spread: q.mg1(arrivals, 1 / service, spread**2).Wq,
    unit="s",
    solution=lambda arrivals, service, spread: derivation(
        step(
            "The load.",
            "arrivals * service",
            (arrivals * service, "%"),
            arrivals=(arrivals, "1/s"),
            service=(service, "s"),
        ),
        step(
            "A long service keeps many arrivals waiting, so its square counts. The mean of the"
            " squared times: the variance plus the squared mean.",
            "spread**2 + service**2",
            spread=(spread, "s"),
            service=(service, "s"),
        ),
        step(
            "The law of Pollaczek and Khinchine.",
            "arrivals * squares / (2 * (1 - load))",
            (q.mg1(arrivals, 1 / service, spread**2).Wq, "s"),
            arrivals=(arrivals, "1/s"),
            squares=(spread**2 + service**2, "s*s"),
            load=(arrivals * service, "%"),
        ),
        after=(
            "With exponential service times it would be"
            f" {si(q.mm1(arrivals, 1 / service).Wq, 's')}. The spread makes the difference."
        ),
    ),
    smaller="queueing.rest_of_a_service",
    misconceptions=(
        Misconception(
            "exponential",
            lambda arrivals, service, spread: q.mm1(arrivals, 1 / service).Wq,
            "That assumes exponential service times, whose deviation equals their mean.",
        ),
        Misconception(
            "constant",
            lambda arrivals, service, spread: q.md1(arrivals, 1 / service).Wq,
            "That leaves the spread out.",
        ),
        Misconception(
            "no square of the load",
            lambda arrivals, service, spread: arrivals * spread**2 / (2 * (1 - arrivals * service)),
            "A term is missing: what is left of your formula if the service times do not vary?",
        ),
        Misconception(
            "with the service",
            lambda arrivals, service, spread: q.mg1(arrivals, 1 / service, spread**2).W,
            "That is the whole time in the system. How much of it is waiting?",
        ),
        Misconception(
            "without the half",
            lambda arrivals, service, spread: 2 * (q.mg1(arrivals, 1 / service, spread**2).Wq),
            "An arrival finds the service in progress half through, on average. Where is that in"
            " yours?",
        ),
    ),
    holds={
        "That assumes exponential": "definition",
    },
)

pooling = Question(
    id="queueing.where_to_queue",
    chapter=CHAPTER,
    level="design",
    kind="choice",
    prompt=(
        "Two replicas, each with a queue of its own, get half of the traffic each and are {{load}}"
        " busy. A request takes {{service}} of work; arrivals and service times are random. Which"
        " one change lowers the mean time in the system the most?"
    ),
    parameters={
        "load": Parameter(90, (80, 85, 90, 95), "%"),
        "service": Parameter(50, (20, 50, 100), "ms"),
    },
    options={
        "pool": "One queue that feeds both replicas.",
        "fast": "One replica of twice the speed, with one queue.",
        "steady": "Answers of one fixed length, the queues as they are.",
        "memory": "Twice the memory in both replicas.",
    },
    expected=lambda load, service: min(
        after_change(load, service).items(), key=lambda pair: pair[1]
    )[0],
    solution=lambda load, service: derivation(
        step(
            "As it is, with any memory: two queues of the M/M/1 kind.",
            "service / (1 - load)",
            (after_change(load, service)["memory"], "s"),
            service=(service, "s"),
            load=(load, "%"),
        ),
        step(
            "Fixed service times, M/D/1: the wait is divided by two.",
            "service * (1 + load / (2 * (1 - load)))",
            (after_change(load, service)["steady"], "s"),
            service=(service, "s"),
            load=(load, "%"),
        ),
        step(
            "One queue before both replicas (M/M/2): by Erlang C the share $2\\rho^2 / (1 + \\rho)$"
            " waits, for one over the capacity that is left, $1 / (2\\mu (1 - \\rho))$. With the"
            " service itself that comes to",
            "service / (1 - load**2)",
            (after_change(load, service)["pool"], "s"),
            service=(service, "s"),
            load=(load, "%"),
        ),
        step(
            "One replica of twice the speed.",
            "service / 2 / (1 - load)",
            (after_change(load, service)["fast"], "s"),
            service=(service, "s"),
            load=(load, "%"),
        ),
        after=(
            "One fast server is a little better than two slow ones behind one queue: it works at"
            " full speed even for a single request."
        ),
    ),
    smaller="queueing.slowdown_at_ninety",
    misconceptions=(
        Misconception(
            "pooling is the optimum",
            lambda **_: "pool",
            "A good change. But when one request is alone, who works on it?",
        ),
        Misconception(
            "only the spread matters",
            lambda **_: "steady",
            "It takes half of the wait away. How much do the others take?",
        ),
        Misconception(
            "room is speed", lambda **_: "memory", "More room to wait in does not shorten the wait."
        ),
    ),
    holds={
        "get half of the traffic": "definition",
        "One replica of twice the speed": "definition",
        "Twice the memory": "definition",
        "It takes half of the wait": lambda load, service: (
            abs(q.md1(load / service, 1 / service).Wq / q.mm1(load / service, 1 / service).Wq - 0.5)
            < 1e-9
        ),
        "One fast server is a little better": lambda load, service: (
            1 < after_change(load, service)["pool"] / after_change(load, service)["fast"] < 1.12
        ),
    },
)


def after_change(load, service):
    """Mean time in the system after each of the changes."""
    mu = 1 / service
    return {
        "pool": q.mmc(2 * load * mu, mu, 2).W,
        "fast": q.mm1(2 * load * mu, 2 * mu).W,
        "steady": q.md1(load * mu, mu).W,
        "memory": q.mm1(load * mu, mu).W,
    }


staffing = Question(
    id="queueing.slots_for_a_promise",
    chapter=CHAPTER,
    level="design",
    prompt=(
        "{{arrivals}} arrive at random, each takes {{service}} of a slot. How many slots does it"
        " take for at most {{share}} of the requests to wait?"
    ),
    parameters={
        "arrivals": rate(50, 20, 40, 50, 80),
        "service": Parameter(2, (1, 2, 3), "s"),
        "share": Parameter(5, (1, 5, 10), "%"),
    },
    expected=lambda arrivals, service, share: q.servers_for(arrivals * service, share),
    unit="",
    tolerance=0,
    solution=lambda arrivals, service, share: derivation(
        step(
            "By Little's law this many slots are busy on average.",
            "arrivals * service",
            arrivals=(arrivals, "1/s"),
            service=(service, "s"),
        ),
        "Raise the number of slots from there, and work out Erlang C, the share that waits, for"
        " each.",
        step(
            "The first number that keeps the promise has a reserve, counted in square roots of the"
            " load, of",
            "(slots - load) / sqrt(load)",
            slots=q.servers_for(arrivals * service, share),
            load=arrivals * service,
        ),
        after=(
            f"Erlang C falls below {si(share, '%')} at {q.servers_for(arrivals * service, share)}"
            " slots."
        ),
    ),
    smaller="queueing.in_flight",
    misconceptions=(
        Misconception(
            "the load",
            lambda arrivals, service, share: math.ceil(arrivals * service),
            "That many are busy on average. What happens in the busier half of the time?",
        ),
        Misconception(
            "a share on top",
            lambda arrivals, service, share: math.ceil(arrivals * service / (1 - share)),
            "Is that the load with the share on top of it? The reserve does not go by that share:"
            " ask for the chance that all slots are busy.",
        ),
        Misconception(
            "loss, or a share on top",
            lambda arrivals, service, share: loss_servers(arrivals * service, share),
            "Do requests go away here that find the slots busy, or do they wait? And if it is the"
            " load with the share on top: what does the reserve go by?",
        ),
        Misconception(
            "twice the share",
            lambda arrivals, service, share: q.servers_for(arrivals * service, 2 * share),
            "With so few slots, too many requests wait. Which share did you start from?",
        ),
        Misconception(
            "a bell curve",
            lambda arrivals, service, share: math.ceil(
                arrivals * service + NormalDist().inv_cdf(1 - share) * math.sqrt(arrivals * service)
            ),
            "That is a normal approximation, without a queue. What do those who wait add to the"
            " busy slots?",
            slight=True,
        ),
    ),
    valid=lambda arrivals, service, share: arrivals * service >= 20,
    holds={
        "Erlang C falls below": lambda arrivals, service, share: (
            q.erlang_c(arrivals * service, q.servers_for(arrivals * service, share))
            <= share
            < q.erlang_c(arrivals * service, q.servers_for(arrivals * service, share) - 1)
        ),
    },
)


def loss_servers(load, share):
    """The fewest servers with which at most this share would be turned away."""
    return next(n for n in range(1, 10_000) if q.erlang_b(load, n) <= share)


# --- overload ---------------------------------------------------------------------------------

drain = Question(
    id="queueing.after_the_burst",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "A service can do {{capacity}}. For {{length}} it gets {{burst}}, then {{normal}} again."
        " Nothing is shed. How long after the burst is the backlog gone?"
    ),
    parameters={
        "capacity": rate(100),
        "length": Parameter(5, (2, 5, 10), "min"),
        "burst": rate(120, 120, 130, 150),
        "normal": rate(90, 80, 90, 95),
    },
    expected=lambda capacity, length, burst, normal: q.drain_time(burst, length, normal, capacity),
    unit="min",
    solution=lambda capacity, length, burst, normal: derivation(
        step(
            "What comes beyond the capacity piles up.",
            "(burst - capacity) * length",
            burst=(burst, RATE),
            capacity=(capacity, RATE),
            length=(length, "s"),
        ),
        step(
            "Afterwards this much capacity is free to work it off.",
            "capacity - normal",
            capacity=(capacity, RATE),
            normal=(normal, RATE),
        ),
        step(
            "Divide.",
            "backlog / free",
            (q.drain_time(burst, length, normal, capacity), "s"),
            backlog=((burst - capacity) * length, "request"),
            free=(capacity - normal, RATE),
        ),
    ),
    smaller="queueing.in_flight",
    misconceptions=(
        Misconception(
            "over when the burst is",
            lambda capacity, length, burst, normal: length * (burst - capacity) / capacity,
            "The backlog shares the server with the new arrivals. How much of it is free?",
        ),
        Misconception(
            "as long as the burst",
            lambda capacity, length, burst, normal: length,
            "Compare the rate at which it filled with the rate at which it empties.",
        ),
        Misconception(
            "from the start of the burst",
            lambda capacity, length, burst, normal: (
                length + q.drain_time(burst, length, normal, capacity)
            ),
            "That counts from the moment at which the burst begins. From which moment does the"
            " question count?",
        ),
        Misconception(
            "all of the burst",
            lambda capacity, length, burst, normal: burst * length / (capacity - normal),
            "Most of the burst was served while it lasted. What was left over?",
        ),
    ),
    holds={
        "Nothing is shed": "definition",
        "Most of the burst was served": (
            lambda capacity, length, burst, normal: capacity / burst > 0.5
        ),
    },
)

shed = Question(
    id="queueing.least_to_shed",
    chapter=CHAPTER,
    level="recall",
    prompt=(
        "{{arrivals}} arrive at a service that can do {{capacity}}. What share of them, at the"
        " least, has to be turned away for the queue to stop growing?"
    ),
    parameters={"arrivals": rate(120, 110, 120, 150, 200), "capacity": rate(100)},
    expected=lambda arrivals, capacity: 1 - capacity / arrivals,
    unit="%",
    tolerance=0.02,
    solution=lambda arrivals, capacity: derivation(
        step(
            "The share that can be served in the long run.",
            "capacity / arrivals",
            (capacity / arrivals, "%"),
            capacity=(capacity, RATE),
            arrivals=(arrivals, RATE),
        ),
        step(
            "The rest.",
            "1 - served",
            (1 - capacity / arrivals, "%"),
            served=(capacity / arrivals, "%"),
        ),
        after="A queue does not change that: it decides how long the others wait first.",
    ),
    misconceptions=(
        Misconception(
            "share of the capacity",
            lambda arrivals, capacity: arrivals / capacity - 1,
            "You divided by the capacity. The question asks for a share of what arrives.",
        ),
        Misconception(
            "none",
            lambda arrivals, capacity: 0.0,
            "A longer queue only delays the moment. What does it do after an hour?",
        ),
        Misconception(
            "what is kept",
            lambda arrivals, capacity: capacity / arrivals,
            "That is the share that gets through.",
        ),
    ),
    holds={
        "A longer queue only delays": lambda arrivals, capacity: (
            q.mmck(arrivals, capacity, 1, 200).shed >= 1 - capacity / arrivals
        ),
    },
)

# --- functions to write -----------------------------------------------------------------------

mm1_function = Question(
    id="queueing.mm1_function",
    chapter=CHAPTER,
    level="apply",
    kind="function",
    prompt=(
        "Write `time_in_system(arrival_rate, service_rate)` for M/M/1, in seconds. Without a steady"
        " state, return infinity."
    ),
    parameters={
        "arrival_rate": Parameter(9, (1, 5, 8, 9, 12), RATE),
        "service_rate": Parameter(10, (6, 10, 11, 20), RATE),
    },
    edges=({"arrival_rate": 10}, {"arrival_rate": 0}),
    expected=lambda arrival_rate, service_rate: (
        q.mm1(arrival_rate, service_rate).W if arrival_rate < service_rate else math.inf
    ),
    unit="s",
    tolerance=0.001,
    solution=derivation(
        "An arrival waits for the rest $R$ of the service in progress, and for a whole service of"
        " each request in the queue. By Little's law that is $W_q = R + \\rho W_q$.",
        "An exponential time has no memory: whoever finds the server busy has a whole mean service"
        " before them, so $R = \\rho / \\mu$.",
        "Solve for $W_q$ and add the request's own service: $W = 1 / (\\mu - \\lambda)$. At full"
        " load and beyond, return infinity.",
        after=(
            "```python\ndef time_in_system(arrival_rate, service_rate):\n    return 1 /"
            " (service_rate - arrival_rate) if arrival_rate < service_rate else math.inf\n```"
        ),
    ),
    smaller="queueing.slowdown_at_ninety",
    misconceptions=(
        Misconception(
            "a negative time",
            lambda arrival_rate, service_rate: (
                1 / (service_rate - arrival_rate) if arrival_rate != service_rate else math.inf
            ),
            "What does a time below zero mean? Look at arrivals faster than the server.",
        ),
        Misconception(
            "the wait",
            lambda arrival_rate, service_rate: (
                q.mm1(arrival_rate, service_rate).Wq if arrival_rate < service_rate else math.inf
            ),
            "That is the wait without the service.",
        ),
        Misconception(
            "just the service",
            lambda arrival_rate, service_rate: 1 / service_rate,
            "That would be right if requests did not wait for one another.",
        ),
        Misconception(
            "the number inside",
            lambda arrival_rate, service_rate: (
                q.mm1(arrival_rate, service_rate).L if arrival_rate < service_rate else math.inf
            ),
            "That is how many requests are inside. Little's law makes a time of it.",
        ),
        Misconception(
            "no queue below full load",
            lambda arrival_rate, service_rate: (
                1 / service_rate if arrival_rate < service_rate else math.inf
            ),
            "Is that the time of a request that meets others? What happens as the arrivals near"
            " the service rate?",
        ),
    ),
    holds={
        "whoever finds the server busy": "definition: no memory",
    },
)

neighbouring_states = Question(
    id="queueing.neighbouring_states",
    chapter=CHAPTER,
    level="recall",
    prompt=(
        "{{arrivals}} come at random to a pool with a server free for each of them, and a server"
        " does {{service}} (M/M/c). Over a long time, there are {{inside}} requests inside for some"
        " of the time, and one fewer for some. What is the first over the second?"
    ),
    parameters={
        "arrivals": rate(6, 6, 12, 20),
        "service": rate(2, 2, 4, 5),
        "inside": plain(4, 4, 5, 6),
    },
    expected=lambda arrivals, service, inside: q.concurrency(arrivals, 1 / service) / inside,
    tolerance=0.01,
    solution=lambda arrivals, service, inside: derivation(
        "Over a long time, the number inside goes up to this number as often as it comes down from"
        " it. It goes up as requests arrive. It comes down as they leave.",
        step(
            "With so many inside, so many servers are at work.",
            "inside * service",
            inside=inside,
            service=(service, RATE),
        ),
        step(
            "The times are in proportion to the rates, turned round.",
            "arrivals / leaving",
            (q.concurrency(arrivals, 1 / service) / inside, ""),
            arrivals=(arrivals, RATE),
            leaving=(inside * service, RATE),
        ),
    ),
    misconceptions=(
        Misconception(
            "one server at work",
            lambda arrivals, service, inside: arrivals / service,
            "That lets one server work at a time. How many are at work here?",
        ),
        Misconception(
            "one fewer at work",
            lambda arrivals, service, inside: arrivals / service / (inside - 1),
            "From which of the two numbers does the last step down start? So many are at work.",
        ),
        Misconception(
            "the other way up",
            lambda arrivals, service, inside: inside * service / arrivals,
            "Faster arrivals should make the larger number more frequent. Do they, in yours?",
        ),
    ),
    valid=lambda arrivals, service, inside: arrivals != inside * service,
    holds={
        "That lets one server work": "definition",
        "With so many inside": "definition",
        "the number inside goes up to this number as often": "algebra",
        "one fewer for some": "definition",
        "Faster arrivals should make": lambda arrivals, service, inside: (
            2 * arrivals / service / inside > arrivals / service / inside
        ),
    },
)

erlang_function = Question(
    id="queueing.erlang_c_function",
    chapter=CHAPTER,
    level="design",
    kind="function",
    prompt=(
        "Write `share_that_waits(load, servers)`: the share of requests that wait in M/M/c, with"
        " `load` the number of servers busy on average, below `servers`. It must work for thousands"
        " of servers, where factorials overflow."
    ),
    parameters={
        "load": Parameter(10, (3.2, 9, 10, 45, 90, 950, 3950), show=str),
        "servers": Parameter(15, (4, 10, 12, 50, 100, 1000, 4000), show=str),
    },
    edges=({"load": 3950, "servers": 4000}, {"load": 0.9, "servers": 1}),
    valid=lambda load, servers: 0.7 * servers <= load < servers or (load, servers) == (10, 15),
    expected=q.erlang_c,
    tolerance=0.001,
    solution=derivation(
        "Start from the loss formula, Erlang B, with $a$ the load: $1 / B_k$ is the sum of the"
        " terms $a^j / j!$ up to $k$, over the last of them. Zero servers lose each request:"
        " $B_0 = 1$.",
        "Add one server at a time. The last term is $a / k$ of the one before, so"
        " $1 / B_k = 1 + (k / a) / B_{k-1}$. That is $B_k = a B_{k-1} / (k + a B_{k-1})$.",
        "Those who are not lost but wait keep the servers busy: with $\\rho = a / c$ the share that"
        " waits is $B / (1 - \\rho (1 - B))$.",
        after=(
            "```python\ndef share_that_waits(load, servers):\n    b = 1\n"
            "    for k in range(1, servers + 1):\n        b = load * b / (k + load * b)\n"
            "    rho = load / servers\n    return b / (1 - rho * (1 - b))\n```"
        ),
    ),
    smaller="queueing.neighbouring_states",
    misconceptions=(
        Misconception(
            "loss, not waiting",
            lambda load, servers: q.erlang_b(load, servers),
            "That is Erlang B: those who find all servers busy go away. Here they stay, and keep"
            " the servers busy.",
        ),
        Misconception(
            "the load",
            lambda load, servers: load / servers,
            "That is how busy one server is. All have to be busy at once for a request to wait.",
        ),
        Misconception(
            "independent servers",
            lambda load, servers: (load / servers) ** servers,
            "The servers are not busy independently of each other: a shared queue ties them"
            " together.",
        ),
    ),
    holds={
        "That is Erlang B": "definition",
        "All have to be busy": "definition",
    },
)

# --- the other questions of the source's checkpoint -------------------------------------------

checkpoint_hardware = Question(
    id="queueing.checkpoint_hardware",
    chapter=CHAPTER,
    level="recall",
    kind="array",
    names=("memory_bound", "compute_bound"),
    prompt=(
        "A new accelerator has {{peaks}} the peak and the same memory bandwidth. What is the"
        " speedup of a workload that is memory-bound on the old one, and of one that stays"
        " compute-bound on the new?"
    ),
    parameters={"peaks": Parameter(2, (2, 3, 4), show=lambda n: f"{n}×")},
    expected=lambda peaks: tuple(
        roofline.attainable(i, 1.0, 1.0) ** -1 * roofline.attainable(i, float(peaks), 1.0)
        for i in (0.1, 100.0)
    ),
    tolerance=0.01,
    solution=lambda peaks: derivation(
        "Memory-bound work runs at intensity times bandwidth, compute-bound work at the peak.",
        step("The bandwidth of the new chip over that of the old one.", "new / old", new=1, old=1),
        step("The peak of the new chip over that of the old one.", "new / old", new=peaks, old=1),
        after=(
            "The slope of the roof did not move, only its flat part. Memory-bound work gains"
            " nothing; compute-bound work gains all of it, as long as it stays right of the new"
            " ridge."
        ),
    ),
    smaller="roofline.ridge",
    misconceptions=(
        Misconception(
            "everything is faster",
            lambda peaks: (peaks, peaks),
            "Which clock does memory-bound work wait for?",
        ),
        Misconception(
            "nothing is faster",
            lambda peaks: (1, 1),
            "Which clock does compute-bound work wait for?",
        ),
        Misconception(
            "the other way round",
            lambda peaks: (peaks, 1),
            "Which of the two waits for arithmetic?",
        ),
    ),
    holds={
        "The slope of the roof": "definition",
        "Memory-bound work gains nothing": lambda peaks: (
            roofline.attainable(0.1, float(peaks), 1.0) == roofline.attainable(0.1, 1.0, 1.0)
            and abs(
                roofline.attainable(100.0, float(peaks), 1.0) / roofline.attainable(100.0, 1.0, 1.0)
                - peaks
            )
            < 1e-9
        ),
    },
)

checkpoint_scaling = Question(
    id="queueing.checkpoint_scaling",
    chapter=CHAPTER,
    level="recall",
    kind="array",
    names=("amdahl_limit", "gustafson"),
    prompt=(
        "A training pipeline is {{serial}} serial. What is the most that any number of accelerators"
        " can speed it up (Amdahl)? And what is the scaled speedup with {{n}} of them (Gustafson)?"
    ),
    parameters={"serial": Parameter(10, (5, 10, 20), "%"), "n": plain(256, 64, 128, 256)},
    expected=lambda serial, n: (1 / serial, scaling.gustafson_speedup(n, serial=serial)),
    tolerance=0.01,
    solution=lambda serial, n: derivation(
        step(
            "Amdahl keeps the job. With ever more accelerators the serial part is what remains.",
            "1 / serial",
            serial=(serial, "%"),
        ),
        step(
            "Gustafson keeps the time and grows the parallel part of the job.",
            "n - serial * (n - 1)",
            (scaling.gustafson_speedup(n, serial=serial), ""),
            n=n,
            serial=(serial, "%"),
        ),
        after="Chapter 3 has both as one law.",
    ),
    smaller="scaling.limit",
    misconceptions=(
        Misconception(
            "all of them", lambda serial, n: (n, n), "The serial part does not get any shorter."
        ),
        Misconception(
            "Amdahl twice",
            lambda serial, n: (1 / serial, scaling.amdahl_speedup(n, serial=serial)),
            "Your second number keeps the size of the job. Gustafson lets it grow.",
        ),
        Misconception(
            "no serial part in the scaled job",
            lambda serial, n: (1 / serial, n),
            "The scaled job has a serial part too. It just does not grow.",
        ),
        Misconception(
            "Amdahl on this many",
            lambda serial, n: (
                scaling.amdahl_speedup(n, serial=serial),
                scaling.gustafson_speedup(n, serial=serial),
            ),
            "Your first number is for this many accelerators. What is the most with any number?",
        ),
        Misconception(
            "one over the parallel share",
            lambda serial, n: (1 / (1 - serial), scaling.gustafson_speedup(n, serial=serial)),
            "You divided by the part that goes away. Which part is left in the end?",
        ),
        Misconception(
            "shares interchanged",
            lambda serial, n: (1 / serial, 1 - serial + serial * n),
            "In your second number the serial part grows. Which part of the job grows with the"
            " machine?",
        ),
    ),
    holds={
        "The serial part does not get": "definition",
    },
)

mean_from_flight = Question(
    id="queueing.mean_from_flight",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "A server of language models holds {{inside}} requests in flight and gives {{rate}} tokens"
        " a second. Its page reports a *median* of {{median}} between the tokens of a request. What"
        " is the *mean* time between them?"
    ),
    parameters={
        "inside": Parameter(463, (256, 463, 900), show=str),
        "rate": Parameter(2300, (2300, 4000), show=lambda value: f"{value:,}"),
        "median": Parameter(15, (15, 25), "ms"),
    },
    expected=lambda inside, rate, median: q.latency(inside, rate),
    unit="s",
    solution=lambda inside, rate, median: derivation(
        "Each request in flight waits for its next token, so the server holds one token in the"
        " making for each.",
        step(
            "Little's law, solved for the time.",
            "inside / rate",
            (q.latency(inside, rate), "s"),
            inside=(inside, "token"),
            rate=(rate, "token/s"),
        ),
        after=(
            f"The median says {si(median, 's')}: a few long pauses make the difference, and the"
            " median does not see them."
        ),
    ),
    smaller="queueing.how_long",
    holds={
        "The median says": lambda inside, rate, median: inside / rate > 1.5 * median,
    },
    misconceptions=(
        Misconception(
            "the median",
            lambda inside, rate, median: median,
            "Little's law is about means. Does this number agree with the other two?",
        ),
        Misconception(
            "rate over number",
            lambda inside, rate, median: rate / inside,
            "That is the rate of one request, in tokens a second. What is its inverse?",
        ),
        Misconception(
            "number from the median",
            lambda inside, rate, median: rate * median,
            "That is a number in flight, if the median were the mean. The number is given.",
        ),
        Misconception(
            "between two tokens of all",
            lambda inside, rate, median: 1 / rate,
            "That is the time between two tokens of the whole server. How many requests share"
            " them?",
        ),
    ),
)

register(
    in_flight, how_long, checkpoint_memory, capped_rate, slowdown, growth, tail, headroom,
    rest_of_a_service, any_service, pooling, staffing, drain, shed, mm1_function,
    neighbouring_states, erlang_function,
    checkpoint_hardware, checkpoint_scaling, mean_from_flight)  # fmt: skip
