"""Universal sentences of chapter 7's explorer, against brute force over all they mean."""

import functools
import random
import re

import pytest

from lightspeed.catalog import link
from lightspeed.units import Q
from lightspeed_course.explorers import nccl
from lightspeed_course.explorers.numbers import DECIDES
from lightspeed_show import si

STATES, SEED = 320, 20261122
NAMES = {link(key).name: key for key in (*nccl.INSIDE, *nccl.NETWORK)}
DIGITS = 0.006  # facts show three digits


@functools.cache
def states():
    """Settings drawn from all options of all controls, one rank alone left out, with what the
    explorer shows.

    Every other one is an all-reduce on switches that add, which chance alone would seldom draw.
    """
    draw, controls = random.Random(SEED), nccl.explore().controls.values()
    found = []
    while len(found) < STATES:
        state = {control.name: draw.choice(control.options)[1] for control in controls}
        if len(found) % 2:
            state |= {
                "collective": "all_reduce",
                "switch": True,
                "inside": draw.choice(("nvlink4", "nvlink5")),
            }
        if state["per_node"] * state["nodes"] > 1:
            found.append((state, nccl.view(**state)))
    return found


def times_of(state):
    """The algorithms of a state: name -> seconds as a function of the size."""
    return nccl.times_of(**{name: value for name, value in state.items() if name != "size"})


def seconds(text):
    return Q(text).to("s").magnitude


def time_shown(state):
    """Seconds of the fastest algorithm, with the digits that the explorer shows."""
    return seconds(si(min(time(state["size"]) for time in times_of(state).values()), "s"))


def said(pattern):
    """(state, facts, match) wherever a verdict says this; enough to mean something."""
    found = [
        (state, dict(shown.facts), re.search(pattern, f"{shown.verdict} {shown.advice}"))
        for state, shown in states()
    ]
    found = [row for row in found if row[2]]
    assert len(found) >= 10, f"only {len(found)} verdicts say {pattern}"
    return found


def one_link_changed(state):
    """Every choice of either menu that this state does not have already."""
    for name, menu, used in (
        ("inside", nccl.INSIDE, state["per_node"] > 1),
        ("network", nccl.NETWORK, state["nodes"] > 1),
    ):
        yield from ((key, state | {name: key}) for key in menu if used and key != state[name])


@pytest.mark.slow
def test_every_state_says_what_takes_its_time():
    for state, shown in states():
        times = times_of(state)
        best = min(times, key=lambda name: times[name](state["size"]))
        share = times[best](0.0) / times[best](state["size"])
        kind = (
            "Latency-bound"
            if share >= DECIDES
            else "Bandwidth-bound"
            if share <= 1 - DECIDES
            else "Both matter"
        )
        assert shown.verdict.startswith(kind), state


@pytest.mark.slow
def test_no_algorithm_is_faster_than_the_fastest():
    for state, facts, match in said(r"Fastest is the (.+?) algorithm"):
        times = {name: time(state["size"]) for name, time in times_of(state).items()}
        assert match[1] == facts["fastest"]
        assert times[match[1]] == min(times.values()), state


@pytest.mark.slow
@pytest.mark.holds("explorers", "Half of the best rate is reached from")
def test_from_its_size_on_half_of_the_best_rate_is_reached_and_before_it_is_not():
    for state, _, match in said(r"Half of the best rate is reached from (\S+ \S+) on"):
        half = Q(match[1]).to("byte").magnitude
        times = times_of(state)

        def rate(size, times=times):
            return size / min(time(size) for time in times.values())

        best = max(rate(10.0**power) for power in range(3, 19))
        assert rate(half * (1 - DIGITS)) < best / 2 * 1.001, state
        for power in range(40):
            assert rate(half * (1 + DIGITS) * 1.5**power) >= best / 2 * 0.999, state


@pytest.mark.slow
def test_no_other_link_of_the_menus_does_better_than_the_best_other_link():
    for state, facts, match in said(r"the best other link of the menus, (.+), to (\S+ \S+)\."):
        others = {key: time_shown(changed) for key, changed in one_link_changed(state)}
        assert others[NAMES[match[1]]] == seconds(match[2]) == min(others.values()), state
        assert seconds(match[2]) <= seconds(facts["time"]), state


def test_where_no_other_link_helps_none_does():
    for state, facts, _ in said(r"no other link of the menus makes it faster"):
        for key, changed in one_link_changed(state):
            assert time_shown(changed) >= seconds(facts["time"]), (state, key)


@pytest.mark.holds("explorers", "Steps at half the cost would bring it to")
def test_cheaper_steps_bring_what_is_said():
    for state, _, match in said(r"Steps at half the cost would bring it to (\S+ \S+);"):
        assert time_shown(
            state | {"hop": state["hop"] / 2, "alpha": state["alpha"] / 2}
        ) == seconds(match[1]), state


@pytest.mark.holds(
    "explorers",
    "The switch has nothing to add",
    "has no switch that adds here",
    "the switch is not asked to add",
)
def test_where_the_box_changes_nothing_it_changes_nothing():
    for state, facts, _ in said(r"the box changes nothing|nothing to add"):
        assert dict(nccl.view(**state | {"switch": False}).facts) == facts, state


@pytest.mark.holds("explorers", "algorithm is faster here: with the switch")
def test_where_another_algorithm_is_faster_than_the_switch_it_is():
    for state, facts, match in said(
        r"The switch adds, but the (.+) algorithm is faster here: with the switch it takes (\S+"
        r" \S+)\."
    ):
        assert facts["fastest"] == match[1] != "switch"
        assert seconds(match[2]) >= seconds(facts["time"]), state
        assert dict(nccl.view(**state | {"switch": False}).facts)["time"] == facts["time"], state


def test_a_ticked_box_is_always_answered():
    answers = (
        r"box changes nothing|nothing to add|is faster here: with the switch|through the switch,"
    )
    for state, shown in states():
        assert bool(re.search(answers, shown.verdict)) == state["switch"], state


def test_busbw_is_above_the_line_only_where_fewer_bytes_cross_it():
    """Ranks that add and one link each can't: the switch, traffic at home, or fewer bytes."""
    for state, facts, _ in said(r"though no link carries more than it can"):
        kinds = {"switch", "pairwise", "two levels", "double tree"}
        assert facts["fastest"] in kinds, state
        assert facts["fastest"] == "switch" or state["nodes"] > 1, state


@pytest.mark.parametrize("key", nccl.INSIDE)
def test_only_switches_that_were_measured_add(key):
    assert (nccl.adders(key) > 0) == (key in ("nvlink4", "nvlink5"))
