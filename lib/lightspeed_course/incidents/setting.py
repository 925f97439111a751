"""What a setting of incidents is made of: causes, and measurements that can be bought."""

import functools
from collections.abc import Callable
from dataclasses import dataclass

STANDSTILL = 3  # a minute of the whole cluster, over one of whoever is looking


@dataclass(frozen=True)
class Cause:
    """A way to break a job. `damage(rng, job)` breaks a sound one; `mend(job)` fixes any job."""

    id: str
    name: str
    fix: str
    damage: Callable
    mend: Callable
    parts: tuple["Cause", ...] = ()  # the two that it is made of, if it is two at once

    @property
    def faults(self):
        """What is wrong, one by one: its parts, or the cause itself."""
        return self.parts or (self,)


def _together(one, other):
    """Combine two causes into one: the fix of either repairs a part."""
    return Cause(
        f"{one.id}+{other.id}",
        f"Two at once: {one.name} {other.name}",
        f"Both: {one.fix} {other.fix}",
        lambda rng, job: other.damage(rng, one.damage(rng, job)),
        lambda job: other.mend(one.mend(job)),
        (one, other),
    )


@dataclass(frozen=True)
class Measurement:
    """What can be bought: `read(job, rng)` are its numbers, `show(job, reading)` their table, and
    `tell(job, reading)` what an expert sees in them, in a few words. What comes as files too has
    `write(job, folder)`; what `stops` the job costs more than the minutes of who looks.
    """

    id: str
    name: str
    minutes: int
    read: Callable
    show: Callable
    tell: Callable
    write: Callable | None = None
    stops: bool = False

    @property
    def price(self):
        """Minutes that count: while the job stands still, all its GPUs are paid for nothing."""
        return self.minutes * (STANDSTILL if self.stops else 1)

    @property
    def offer(self):
        """Name and price, as offered."""
        stands = f" in which the job stands still: counts as {self.price}" if self.stops else ""
        return f"{self.name}, {self.minutes} min{stands}"


@dataclass(frozen=True)
class Setting:
    """A kind of job: `plan(rng)` draws a sound one, `rate(job)` is what is complained about,
    relative to the plan (1 is as planned, less is worse), `brief(job)` says so. `pace(job)` is
    what a repair raises, called `paced`. Of the `single` causes those that `pairs` names by their
    ids may also come two at once.
    """

    id: str
    plan: Callable
    rate: Callable
    brief: Callable
    single: tuple[Cause, ...]
    measurements: tuple[Measurement, ...]
    pace: Callable
    paced: str
    pairs: tuple[tuple[str, str], ...] = ()
    has_opening: bool = True  # somebody has measured something already

    @functools.cached_property
    def causes(self):
        """All that may be wrong: the single causes, then the pairs."""
        by_id = {cause.id: cause for cause in self.single}
        return (*self.single, *(_together(by_id[one], by_id[other]) for one, other in self.pairs))

    def cause(self, id):
        return next(c for c in self.causes if c.id == id)

    def measurement(self, id):
        return next(m for m in self.measurements if m.id == id)

    def ordered(self, what):
        """Return measurements or causes in an order that reveals nothing."""
        return sorted(getattr(self, what), key=lambda each: each.name)

    @property
    def fixes(self):
        """Return the causes in the order of their fixes, which differs from that of the causes."""
        return sorted(self.causes, key=lambda cause: cause.fix)


def roughly(share):
    """Describe in words how much of the planned performance remains, as a complaint does."""
    return (
        "less than half of it"
        if share < 0.5
        else "half to three quarters of it"
        if share < 0.75
        else "more than three quarters of it"
    )


def noisy(rng, value, spread=0.01):
    """Return a value with an instrument's noise."""
    return value * rng.uniform(1 - spread, 1 + spread)


def grid(heads, rows):
    """Format rows as a Markdown table that also aligns as text."""
    rows = [tuple(map(str, row)) for row in [heads, *rows]]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["| " + " | ".join(map(str.rjust, row, widths)) + " |" for row in rows]
    ruler = "|" + "|".join("-" * (width + 1) + ":" for width in widths) + "|"
    return "\n".join([lines[0], ruler, *lines[1:]])
