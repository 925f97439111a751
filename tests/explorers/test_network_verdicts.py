"""What the explorers of chapter 8 say of all choices of their menus holds for all of them.

Each sentence is read from the verdict, and held to runs and loads of its own.
"""

import json
import random
import re
from collections import Counter

import pytest

from lightspeed import networks as net
from lightspeed.catalog import link
from lightspeed_course.explorers import network
from lightspeed_models.simulators.fabric_traffic import TRAFFIC, Fabric, flows_of, load
from lightspeed_show import si

STATES = 40


def sampled(explorer, seed):
    draw = random.Random(seed)
    yield explorer.params, explorer.first
    for _ in range(STATES):
        state = {n: draw.choice(c.options)[1] for n, c in explorer.controls.items()}
        yield state, explorer.view(**state)


def test_settings_can_be_drawn_and_have_the_same_facts():
    for explorer, settings in (
        (network.explore(), [{}, {"control": "marks and pauses"}, {"senders": 2, "buffer": 3.2e7}]),
        (network.explore_fabric(), [{}, {"design": "rack", "nodes": 2}, {"traffic": TRAFFIC[3]}]),
    ):
        facts = [label for label, _ in explorer.first.facts]
        for change in settings:
            shown = explorer.view(**explorer.params | change)
            assert shown.verdict and [label for label, _ in shown.facts] == facts, change
            json.dumps(shown.spec(), allow_nan=False)


def test_pauses_cost_nothing_with_room_and_time_without():
    kept = network.explore().at(control="pauses")
    assert "Nothing was lost" in kept.verdict and "as long as the link takes" in kept.verdict
    assert network.run(16, 262144.0, "ethernet_400g", 2e6, "pauses", network.TIMERS[1]).paused > 0.5
    tight = 16 * net.pfc_headroom(link("ethernet_400g").bandwidth, network.DELAY, network.PACKET)
    narrow = network.explore().at(buffer=float(tight) + 3 * network.PACKET, control="pauses")
    assert "Nothing was lost" in narrow.verdict and "longer than the link needs" in narrow.verdict
    full = network.explore().at(buffer=float(tight) + network.PACKET, control="pauses")
    assert "fills the buffer: it cannot pause" in full.verdict


def test_marks_alone_come_too_late_for_a_burst():
    here = (16, 262144.0, "ethernet_400g", 2e6)
    marks, nothing = (network.run(*here, c, network.TIMERS[1]) for c in ("marks", "nothing"))
    assert 0 < marks.marked < 0.01 * marks.sent
    assert marks.lost == nothing.lost and marks.end == pytest.approx(nothing.end)


def test_a_crossed_ring_is_mended_but_for_a_quarter():
    explorer = network.explore_fabric()
    assert "The job waits for a link" in explorer.first.verdict
    assert "100 % of the bytes cross a spine" in explorer.first.verdict
    mended = explorer.view(**explorer.params | {"traffic": "ring"}).verdict
    assert "waits for its own adapters" in mended and "25 % of the bytes cross a spine" in mended


@pytest.mark.slow
@pytest.mark.holds(
    "explorers",
    "Nothing was lost: the port stopped",
    "Nothing was lost: the buffer held",
    "and a timer had to ring",
    "longer than the link needs",
    "Of the four settings, first done",
)
def test_an_incast_says_what_its_packets_did():
    explorer, met = network.explore(), Counter()
    for state, shown in sampled(explorer, 8):
        words, facts = shown.verdict, dict(shown.facts)
        everything = dict(explorer.controls["control"].options).values()
        runs = {
            name: network.run(**{k: v for k, v in state.items() if k != "control"}, control=name)
            for name in everything
        }
        here = runs[state["control"]]
        line = float(link(state["link_key"]).bandwidth)
        ideal = net.incast_time(state["senders"], state["burst"], line) + 2 * network.DELAY
        # each byte arrived, whatever was lost on the way
        whole = round(state["burst"] / network.PACKET) * network.PACKET
        assert set(here.delivered) == {whole}, state
        # a port never drains faster than its line
        assert min(run.end for run in runs.values()) >= ideal * (1 - 1e-9), state
        assert ("Nothing was lost" in words) == (here.lost == 0 and "cannot pause" not in words)
        if state["senders"] <= int(facts["senders that fit at once"].replace(",", "")):
            met["fits"] += 1
            assert runs["nothing"].lost == 0, state
        ends = "It took as long as the link takes." in words
        assert ends == (here.end < 1.02 * ideal), state
        met["timer"] += "a timer had to ring" in words
        assert ("a timer had to ring" in words) == (here.timeouts > 0 and not ends), state
        first, short = re.search(r"first done: (.*?); shortest queue: (.*?)\.", words).groups()
        # every setting of the menu was run: those named end first, and no other does
        for name in everything:
            named_first, named_short = (f"“{name}”" in names for names in (first, short))
            soonest = min(run.end for run in runs.values())
            shortest = min(run.longest_queue for run in runs.values())
            assert named_first == (runs[name].end <= soonest * 1.001), (state, name)
            assert named_short == (runs[name].longest_queue <= shortest * 1.001), (state, name)
        if "cannot pause" in words:
            met["no headroom"] += 1
            headroom = net.pfc_headroom(line, network.DELAY, network.PACKET) * state["senders"]
            assert state["buffer"] < headroom + 2 * network.PACKET, state
    assert min(met[kind] for kind in ("fits", "timer", "no headroom")) > 3, met


@pytest.mark.slow
@pytest.mark.holds(
    "explorers",
    "times as long as for its adapters",
    "No other design, place or route",
    "Of all designs, places and routes",
)
def test_a_fabric_says_what_each_link_carries():
    explorer, met = network.explore_fabric(), Counter()
    menus = {name: [v for _, v in c.options] for name, c in explorer.controls.items()}

    def of(design, traffic, place, nodes, oversubscription, route):
        fabric = Fabric(4, 4, 8, 4, oversubscription=oversubscription, design=design)
        order = range(nodes)
        if place == "scattered":
            order = random.Random(21).sample(range(16), nodes)
        how, parts = network.ROUTES[route]
        flows = flows_of(traffic, list(order), 8, 1e9)
        return load(fabric, flows, how, random.Random(8), parts)

    for state, shown in sampled(explorer, 9):
        found, words = of(**state), f"{shown.verdict} {shown.advice}"
        alone = 1e9 / 50e9
        waits = found.time > alone * 1.001
        assert ("waits for its own adapters" in words) == (not waits), state
        if ratio := re.search(r", ([\d.]+) times as long as for its adapters", words):
            met["waits"] += 1
            assert ratio[1] == f"{found.time / alone:.3g}", state
        share = found.spine / (found.spine + found.leaf)
        assert f"{si(share, '%', 2)} of the bytes cross a spine." in words, state
        # every other design, place and route of the menus
        best = min(
            of(**state | {"design": d, "place": p, "route": r}).time
            for d in menus["design"]
            for p in menus["place"]
            for r in menus["route"]
        )
        if "No other design, place or route" in words:
            met["best"] += 1
            assert found.time <= best * 1.001, state
        else:
            said = re.search(r"the fastest takes (.*?): (\w+), (\w+), (.*?)\.", words)
            assert said[1] == si(best, "s"), state
            named = state | {"design": said[2], "place": said[3], "route": said[4]}
            assert of(**named).time <= best * 1.001, state
    assert met["waits"] > 10 and met["best"] > 3, met
