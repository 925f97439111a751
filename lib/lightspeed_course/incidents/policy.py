"""The cheapest way to the cause: what to buy next, given what is known.

Before an incident all causes of its setting are equally likely. Each is drawn SAMPLE times, and
each draw has its findings. The policy is the decision tree over these draws whose expected cost is
least: every purchase that tells draws apart is tried, and what follows it is priced the same way
(dynamic programming over the sets of draws that agree with what was found). It knows the laws, not
the incident: its draws have other seeds.
"""

from collections import Counter
from functools import cache

from lightspeed_course.incidents.incident import SETTINGS, incident_of

SAMPLE = 6


@cache
def draws(setting_id):
    """(cause id, findings) of each draw."""
    setting = SETTINGS[setting_id]
    return tuple(
        (cause.id, incident_of(f"policy {cause.id} {n}", setting, cause).findings)
        for cause in setting.causes
        for n in range(SAMPLE)
    )


@cache
def consistent(setting_id, found):
    """The numbers of the draws that agree with findings, a frozenset of (measurement, finding)."""
    return frozenset(
        n
        for n, (_, findings) in enumerate(draws(setting_id))
        if all(findings[id] == finding for id, finding in found)
    )


def causes(setting_id, left):
    """Cause id -> how many of these draws it has."""
    return Counter(draws(setting_id)[n][0] for n in left)


def split(setting_id, left, measurement):
    """Finding -> the draws that have it."""
    parts: dict[str, set[int]] = {}
    for n in left:
        parts.setdefault(draws(setting_id)[n][1][measurement], set()).add(n)
    return {finding: frozenset(part) for finding, part in parts.items()}


@cache
def plan(setting_id, left):
    """(expected minutes, measurement to buy or None) for these draws."""
    if len(causes(setting_id, left)) <= 1:
        return 0.0, None
    options = []
    for m in SETTINGS[setting_id].measurements:
        parts = split(setting_id, left, m.id)
        if len(parts) > 1:
            after = sum(len(p) * plan(setting_id, p)[0] for p in parts.values()) / len(left)
            options.append((m.minutes + after, m.id))
    return min(options, default=(0.0, None))


def next_purchase(setting_id, findings):
    """What to buy after these findings (measurement id -> finding); None to name the cause."""
    left = consistent(setting_id, frozenset(findings.items()))
    return plan(setting_id, left)[1]


def verdict(setting_id, findings):
    """The likeliest cause after these findings, and whether no other one is left."""
    left = causes(setting_id, consistent(setting_id, frozenset(findings.items())))
    return (left.most_common(1)[0][0] if left else None), len(left) == 1


def solve(incident):
    """What the policy buys in this incident, in order, and the cause that it names."""
    found: dict[str, str] = {}
    while (id := next_purchase(incident.setting.id, found)) is not None:
        found[id] = incident.findings[id]
    return list(found), verdict(incident.setting.id, found)[0]
