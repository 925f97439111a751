"""An incident kept event by event: it survives a killed kernel, and two open labs see the same."""

from dataclasses import dataclass
from itertools import count

from lightspeed_course.incidents.incident import Incident, id_of, incident_of
from lightspeed_course.incidents.score import debrief
from lightspeed_course.incidents.week import WEEK
from lightspeed_course.practice import store

KIND = "incident"


@dataclass(frozen=True)
class State:
    """Purchases in order, and the first named (cause, fix, gain or None), or None."""

    bought: tuple[str, ...]
    named: tuple[str, str, float | None] | None


def state(incident):
    """Return the `State` in the store."""
    purchases: dict[str, None] = {}
    for event in store.events(KIND, incident.id):
        if "cause" in event.detail:
            detail = event.detail
            return State(tuple(purchases), (detail["cause"], detail["fix"], detail.get("gain")))
        purchases.setdefault(event.detail["buy"])
    return State(tuple(purchases), None)


def buy(incident, id):
    """Buy a measurement and return what it prints. Repeated purchases are free.

    Raises UnknownChoice.
    """
    now = state(incident)
    if incident.named("measurements", id) not in now.bought and not now.named:
        store.record(KIND, incident.id, {"buy": id})
    return incident.show(id)


def name(incident, cause, fix, gain=None):
    """Name cause and fix (a cause's id), and how many times better it makes the job; the debrief.
    It ends the incident: the first naming counts. Raises UnknownChoice.
    """
    for id in (cause, fix):
        incident.named("causes", id)
    now = state(incident)
    if not now.named:
        result, words = debrief(incident, now.bought, cause, fix, gain)
        detail = {"cause": cause, "fix": fix, "solved": result.cause, "points": result.points}
        detail |= {} if gain is None else {"gain": gain}
        store.record(KIND, incident.id, detail)
        return words
    return debrief(incident, now.bought, *now.named)[1]


def following(setting=None):
    """The seed of the first incident, counted from 1, that is not ended: any, or the week's."""
    over = {e.question for e in store.events(KIND) if "cause" in e.detail}
    return next(str(n) for n in count(1) if id_of(n, setting) not in over)


def opened(seed=None, job=None) -> Incident:
    """The `Incident` of a seed, without one the first that is not ended; with `job="week"` one of
    the course's own job. Raises ValueError for another job.
    """
    if job not in (None, WEEK.id):
        raise ValueError(f"incident: job = {job!r}: expected 'week', or no job to have any drawn")
    setting = WEEK if job else None
    return incident_of(following(setting) if seed is None else seed, setting)
