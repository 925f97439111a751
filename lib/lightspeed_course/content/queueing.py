"""What the formulas of queueing.md call."""

import math
from statistics import NormalDist as NormalDist

from lightspeed import queueing as q
from lightspeed_course.practice.questions import Parameter

RATE = "request/s"


def rate(canonical, *choices):
    """Requests per second, written as people say it."""
    return Parameter(canonical, choices, RATE, show=lambda value: f"{value:,} requests a second")


def after_change(load, service):
    """Mean time in the system after each of the changes."""
    mu = 1 / service
    return {
        "pool": q.mmc(2 * load * mu, mu, 2).W,
        "fast": q.mm1(2 * load * mu, 2 * mu).W,
        "steady": q.md1(load * mu, mu).W,
        "memory": q.mm1(load * mu, mu).W,
    }


def spare_for(share):
    """The spare servers, in square roots of the load, by the share that may wait."""
    return {0.5: 0.5, 0.2: 1.06, 0.1: 1.42, 0.05: 1.75, 0.01: 2.44}[share]


def pencil(load, share):
    """Return the servers by the formula of lesson 4, before rounding up."""
    return load + spare_for(share) * math.sqrt(load)


def loss_servers(load, share):
    """The fewest servers with which at most this share would be turned away."""
    return next(n for n in range(1, 10_000) if q.erlang_b(load, n) <= share)


def after_growth(load):
    """Return what 10% more traffic does to an M/M/1 server."""
    if 1.1 * load >= 1:
        return "unstable"
    return "holds" if q.mm1(1.1 * load, 1).W <= 1.25 * q.mm1(load, 1).W else "steep"


def spare(load):
    """Return the slots of a pool with one in twenty to spare."""
    return math.ceil(1.05 * load - 1e-9)
