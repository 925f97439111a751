"""Pictures that play: at every moment of every setting they show a state of a law or a simulator
of the library, and what the picture says at its end is what the closed form says.
"""

import json

import pytest

from lightspeed.collectives import busbw_factor
from lightspeed.models.allreduce import states
from lightspeed.pipeline import bubble_over_total, zero_bubble_over_ideal
from lightspeed_course.explorers import allreduce, schedules
from lightspeed_course.show import Boxes, Chart, Play, Text, View, explorer

PICTURES = {
    "all-reduce": allreduce.explore_all_reduce,
    "schedules": schedules.explore_schedules,
}


@pytest.fixture(scope="module", params=PICTURES)
def picture(request):
    return PICTURES[request.param]()


def test_every_moment_can_be_drawn_and_the_slider_reaches_it(picture):
    names = [name for name, _ in picture.first.facts]
    most = 0
    states = list(picture.grid(each=3))
    for state in states[:: max(1, len(states) // 150)]:
        shown = picture.view(**state)
        most = max(most, shown.moments)
        assert [name for name, _ in shown.facts] == names, state
        json.dumps(shown.spec(), allow_nan=False)
    assert most <= len(picture.controls[picture.play].options)


def test_nothing_of_a_picture_jumps_from_moment_to_moment(picture):
    """Frame and axes stay where they are while it plays."""
    start = {name: control.value for name, control in picture.controls.items()}

    def frame(moment):
        (spec,) = picture.view(**start | {picture.play: moment}).spec()["charts"]
        return spec["height"], spec["margin"], spec["x"]["domain"], spec["y"]["domain"], spec["key"]

    assert len({json.dumps(frame(m)) for m in range(picture.first.moments)}) == 1


def test_what_moves_has_one_place_at_a_time(picture):
    """A key that two things of one picture had would send both to the wrong place."""
    for state in picture.grid(each=3):
        for chart in picture.view(**state).spec()["charts"]:
            for kind in ("rect", "dot"):
                keys = [
                    key
                    for mark in chart["marks"]
                    if mark["type"] == kind
                    for key in mark["keys"]
                    if key
                ]
                assert len(keys) == len(set(keys)), state


# ---------------------------------------------------------------- how any picture behaves


def count(n, moment=0):
    squares = Boxes([0], [moment + 1], [0], [1], labels=["a"], keys=["a"])
    words = [f"{i} of {n}" for i in range(n + 1)][moment]
    return View(Chart(*2 * (axis(n),), [squares], bare=True), words, {"at": words}, n + 1)


def axis(n):
    from lightspeed_course.show import Axis

    return Axis(domain=(0, n + 1))


def demo():
    from lightspeed_course.show import Slider

    controls = [Slider("n", "n", 1, 5, 5), Play("moment", "moment", 5)]
    return explorer(count, controls, caption="c", alt="a")


def test_past_its_end_a_picture_shows_its_last_moment():
    e = demo()
    assert e.set(moment=5).verdict == "5 of 5"
    assert e.set(n=2).verdict == "2 of 2"
    assert e.params == {"n": 2, "moment": 2} and e.error is None
    e.receive({"turn": 1, "at": {"n": 1, "moment": 5}})
    assert e.shown.verdict == "2 of 2"


def test_without_a_kernel_it_is_a_strip_of_stills():
    e = demo()
    assert [title for title, _ in e.stills()] == ["moment: 2", "moment: 3", "moment: 5"]
    bundle = e._repr_mimebundle_()
    assert bundle["text/plain"] == "5 of 5"
    for title in ("moment: 2", "moment: 3", "moment: 5"):
        assert title.replace(" ", "%20") in bundle["text/html"] or title in bundle["text/html"]
    assert "moment: 0" not in bundle["text/html"]


def test_a_bare_chart_has_no_axes():
    spec = demo().first.spec()["charts"][0]
    assert spec["bare"] and not spec["x"]["ticks"] and not spec["y"]["ticks"]


def test_a_label_is_written_where_it_has_room():
    wide = Boxes([0, 5], [5, 5.1], [0, 0], [1, 1], labels=["room", "none"])
    chart = Chart(axis(9), axis(0), [wide, Text(0, 0.5, "note")], bare=True)
    texts = [m["text"] for m in View(chart, "v").spec()["charts"][0]["marks"] if "text" in m]
    assert "room" in texts and "none" not in texts


# ---------------------------------------------------------------- schedules (chapter 6)


def shown(shape, **how):
    return dict(shape(**how).facts)


EVERY_STEP = [
    (schedule, stages, micro_batches)
    for schedule in schedules.NAMES.values()
    for stages in range(2, schedules.STAGES + 1)
    for micro_batches in range(1, schedules.MICRO_BATCHES + 1)
    if schedule != "interleaved" or micro_batches % stages == 0
]


def test_the_bubble_at_the_end_is_that_of_the_law():
    for schedule, stages, micro_batches in EVERY_STEP:
        run = schedules.run(schedule, stages, micro_batches)
        idle = schedules.idle_so_far(run, run.span)
        if schedule not in schedules.SPLIT:
            chunks = 2 if schedule == "interleaved" else 1
            assert idle == pytest.approx(bubble_over_total(stages, micro_batches, chunks))
        elif schedule == "zb_h1" and micro_batches >= stages:
            over = zero_bubble_over_ideal(stages, micro_batches, 1.0, 1.0, 1.0)
            assert idle == pytest.approx(over / (1 + over)), (stages, micro_batches)


def test_at_each_moment_the_busy_gpus_are_those_that_the_timeline_counts():
    for how in EVERY_STEP[::3]:
        run = schedules.run(*how)
        step = 1 / run.chunks
        shares, area = run.utilization(step), 0.0
        for moment in range(1, schedules.moments(run)):
            time = moment * step
            busy = sum(each is not None for each in schedules.doing(run, time))
            assert busy / run.stages == pytest.approx(shares[moment - 1]), (how, moment)
            area += busy * step
            idle = 1 - area / (run.stages * time)
            assert schedules.idle_so_far(run, time) == pytest.approx(idle), (how, moment)


def test_the_most_micro_batches_held_is_the_peak_of_the_schedule():
    for how in EVERY_STEP[::3]:
        run = schedules.run(*how)
        over_time = [
            schedules.held(run, moment / run.chunks) for moment in range(schedules.moments(run))
        ]
        peaks = [max(column) for column in zip(*over_time, strict=True)]
        assert peaks == pytest.approx(list(run.peak_activations)), how
        assert not any(over_time[-1]), how


def test_a_schedule_that_is_not_possible_says_why():
    found = schedules.view("interleaved", 4, 6)
    assert found.moments == 1 and "6 is no multiple of 4" in found.verdict


# ---------------------------------------------------------------- an all-reduce (chapter 7)


def test_boxes_are_filled_as_far_as_the_sum_has_come():
    for algorithm in allreduce.NAMES.values():
        for n in range(2, allreduce.MOST + 1):
            for moment, state in enumerate(states(algorithm, n)):
                (chart,) = allreduce.view(algorithm, n, moment).charts
                drawn = [m for m in chart.marks if isinstance(m, Boxes) and not m.soft]
                drawn = [m for m in drawn if m.label != "a part of the sum"]
                high = {round((b - a) / allreduce.BOX[1] * n, 6) for m in drawn
                        for a, b in zip(m.y1, m.y2, strict=True) if b > a}  # fmt: skip
                arrived = {len(state.held[s.target][s.chunk]) for s in state.arrived}
                full = {n for row in state.held for cell in row if len(cell) == n}
                assert high == arrived | full, (algorithm, n, moment)


def test_the_facts_at_the_end_are_those_of_the_laws():
    for n in range(2, allreduce.MOST + 1):
        facts = shown(allreduce.view, algorithm="ring", ranks=n, moment=2 * (n - 1))
        sent = allreduce.si(busbw_factor("all_reduce", n))
        assert facts["sent by the busiest GPU"] == f"{sent} of its buffer"
        assert facts["GPUs with the whole sum"] == f"{n} of {n}"
