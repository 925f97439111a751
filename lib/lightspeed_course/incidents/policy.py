"""The cheapest way to the cause: what to buy next, given what is known.

Before an incident all causes of its setting are equally likely. Each is drawn SAMPLE times, and
each draw has its findings. The policy is the decision tree over these draws whose expected cost is
least: every purchase that tells draws apart is tried, and what follows it is priced the same way
(dynamic programming over the sets of draws that agree with what was found). It knows the laws, not
the incident: its draws have other seeds.
"""

import random
from collections import Counter
from functools import cache

from lightspeed_course.incidents.incident import SETTINGS, incident_of

SAMPLE = 6


@cache
def draws(setting_id):
    """Return (cause id, findings) of each draw."""
    setting = SETTINGS[setting_id]
    return tuple(
        (cause.id, incident_of(f"policy {cause.id} {n}", setting, cause).findings)
        for cause in setting.causes
        for n in range(SAMPLE)
    )


@cache
def consistent(setting_id, facts):
    """Return the numbers of the draws that agree with `facts`, (measurement, finding) pairs."""
    return frozenset(
        n
        for n, (_, findings) in enumerate(draws(setting_id))
        if all(findings[id] == finding for id, finding in facts)
    )


def causes(setting_id, draws_left):
    """Return cause id -> how many of these draws have it."""
    return Counter(draws(setting_id)[n][0] for n in draws_left)


def split(setting_id, numbers, measurement):
    """Return finding -> the draws with it."""
    parts: dict[str, set[int]] = {}
    for n in numbers:
        parts.setdefault(draws(setting_id)[n][1][measurement], set()).add(n)
    return {finding: frozenset(part) for finding, part in parts.items()}


@cache
def plan(setting_id, numbers):
    """Return (expected minutes, next measurement or None) for these draws."""
    if len(causes(setting_id, numbers)) <= 1:
        return 0.0, None
    options = []
    for m in SETTINGS[setting_id].measurements:
        parts = split(setting_id, numbers, m.id)
        if len(parts) > 1:
            after = sum(len(p) * plan(setting_id, p)[0] for p in parts.values()) / len(numbers)
            options.append((m.price + after, m.id))
    return min(options, default=(0.0, None))


def next_purchase(setting_id, findings):
    """Return what to buy after these findings (id -> finding); None to name the cause."""
    numbers = consistent(setting_id, frozenset(findings.items()))
    return plan(setting_id, numbers)[1]


def verdict(setting_id, findings):
    """Return the likeliest cause after these findings, and whether it is the only one left."""
    counts = causes(setting_id, consistent(setting_id, frozenset(findings.items())))
    return (counts.most_common(1)[0][0] if counts else None), len(counts) == 1


@cache
def opening(incident):
    """Return the measurement given at the start, drawn so that it leaves at least half of the
    causes: the best first purchase depends on it. None if nothing is known.
    """
    setting = incident.setting
    rng = random.Random(f"{incident.seed}\nopening")
    options = [m for m in setting.measurements if setting.has_opening and not m.write]
    for m in rng.sample(options, len(options)):
        facts = frozenset({(m.id, incident.findings[m.id])})
        if 2 * len(causes(setting.id, consistent(setting.id, facts))) >= len(setting.causes):
            return m
    return None


def opening_findings(incident):
    """Measurement id -> finding, before anything is bought."""
    m = opening(incident)
    return {m.id: incident.findings[m.id]} if m else {}


def brief(incident):
    """Return the reader's brief: the job's, and the measurement given at the start."""
    m = opening(incident)
    if m is None:
        return incident.brief
    return (
        f"{incident.brief}\n\nIt may be two things at once. Somebody has looked already at"
        f" *{m.name}*, and it costs you nothing:\n\n{incident.show(m.id)}"
    )


def solve(incident):
    """Return the policy's purchases in order, and the cause that it names."""
    findings = opening_findings(incident)
    purchases = []
    while (id := next_purchase(incident.setting.id, findings)) is not None:
        findings[id] = incident.findings[id]
        purchases.append(id)
    return purchases, verdict(incident.setting.id, findings)[0]
