"""Labels can be read: in every explorer's states none lies on another or on a mark."""

import math

import pytest

from lightspeed_course.explorers import (
    allreduce,
    attention,
    blocks,
    kernels,
    nccl,
    number_line,
    numbers,
    packets,
    parallelism,
    precision,
    queueing,
    requests,
    roofline,
    scaling,
    schedules,
    shards,
    shrinking,
    tokens,
    traffic,
    wire,
)
from lightspeed_show.label_placement import Scale, text_width
from lightspeed_show.layout import NARROWEST, lay_out
from lightspeed_tools.measure.instruments.roofline import machine_chart
from lightspeed_tools.measure.pages.charts import ladder_chart
from lightspeed_tools.measure.records.record import shipped

EXPLORERS = {
    "roofline": roofline.explore, "transfer": numbers.explore,
    "generations": numbers.explore_generations, "scaling": scaling.explore,
    "queue": queueing.explore, "serving": queueing.explore_serving, "precision": precision.explore,
    "parallelism": parallelism.explore,
    "nccl": nccl.explore, "all-reduce": allreduce.explore_all_reduce,
    "schedules": schedules.explore_schedules,
    "two clocks": traffic.explore_two_clocks, "tiles": traffic.explore_tiles,
    "fusion": traffic.explore_fusion,
    "tokens": tokens.explore_tokens,
    "attention clocks": kernels.explore_clocks,
    "attention moves": kernels.explore_moves,
    "attention": attention.explore_attention,
    "requests": requests.explore_queue, "batching": requests.explore_batching,
    "shards": shards.explore_shards, "blocks": blocks.explore_blocks,
    "number line": number_line.explore_number_line,
    "shrinking": shrinking.explore_shrinking, "two waits": numbers.explore_two_waits,
    "wire": wire.explore_wire, "lost packet": packets.explore_lost,
    "incast": packets.explore_incast, "bins": packets.explore_bins,
}  # fmt: skip
RECORDED = ("amd_epyc_2core", "intel_xeon_2core")


def boxes_of(text, x, y):
    """A label's box, for one along a slope a row of small ones; as high as its digits."""
    px, py, wide = x.px(text["x"]), y.px(text["y"]), text_width(text["text"], bold=text["bold"])
    if "along" in text:
        ax, ay, bx, by = text["along"]
        angle = math.atan2(y.px(by) - y.px(ay), x.px(bx) - x.px(ax))
        px, py = px - text["dy"] * math.sin(angle), py + text["dy"] * math.cos(angle)
        steps = [wide * (i / 16 - 0.5) for i in range(17)]
        centres = [(px + s * math.cos(angle), py + s * math.sin(angle)) for s in steps]
        return [(cx - 4, cy - 4, cx + 4, cy + 4) for cx, cy in centres]
    left = px + text["dx"] - wide * {"start": 0, "middle": 0.5, "end": 1}[text["anchor"]]
    return [(left, py + text["dy"] - 6, left + wide, py + text["dy"] + 6)]


def obstacles(mark, x, y):
    """The boxes of markers and of bars; what was measured lies under all words."""
    if mark["type"] == "dot" and not mark["soft"]:
        r = mark["size"]
        return [
            (x.px(u) - r, y.px(v) - r, x.px(u) + r, y.px(v) + r)
            for u, v in zip(mark["x"], mark["y"], strict=True)
        ]
    if mark["type"] == "rect" and not mark["shade"]:
        sides = zip(mark["x1"], mark["x2"], mark["y1"], mark["y2"], strict=True)
        pairs = [(sorted((x.px(a), x.px(b))), sorted((y.px(c), y.px(d)))) for a, b, c, d in sides]
        return [
            (left + 1, top + 1, right - 1, bottom - 1) for (left, right), (top, bottom) in pairs
        ]
    return []


def apart(some, others):
    return not any(
        a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3] for a in some for b in others
    )


def unreadable(chart):
    """(label, what is wrong) of a chart at the narrowest width."""
    spec, found = lay_out(chart), []
    margin, height = spec["margin"], spec["height"]
    x = Scale(spec["x"]["domain"], spec["x"]["log"], margin["left"], NARROWEST - margin["right"])
    y = Scale(spec["y"]["domain"], spec["y"]["log"], height - margin["bottom"], margin["top"])
    placed = []
    for text in (mark for mark in spec["marks"] if mark["type"] == "text"):
        boxes = boxes_of(text, x, y)
        if not all(
            left >= 0 and right <= NARROWEST and top >= 0 and bottom <= height
            for left, top, right, bottom in boxes
        ):
            found.append((text["text"], "outside"))
        found += [(text["text"], other) for other, theirs in placed if not apart(boxes, theirs)]
        placed.append((text["text"], boxes))
        if text["color"] != "inside":
            found += [
                (text["text"], mark["type"])
                for mark in spec["marks"]
                if not apart(boxes, obstacles(mark, x, y))
            ]
    return found


@pytest.mark.parametrize("most", [20, pytest.param(80, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", EXPLORERS)
def test_labels_can_be_read_in_every_state(name, most):
    explorer = EXPLORERS[name]()
    for state in explorer.grid(each=4, most=most if not explorer.play else most // 4):
        for chart in explorer.view(**state).charts:
            assert unreadable(chart) == [], (chart.title, state)


def test_the_roof_has_room_for_the_point_at_any_batch():
    for _, batch in roofline.explore().controls["batch"].options:
        (chart,) = roofline.explore().at(batch=batch).charts
        assert unreadable(chart) == [], batch


def test_from_any_machine_to_any_other_no_factor_lies_on_a_bar():
    machines = numbers.machines(*numbers.NEEDED).values()
    for old in machines:
        for new in machines:
            (chart,) = numbers.generations_view(old, new).charts
            assert unreadable(chart) == [], (old, new)


@pytest.mark.parametrize("name", RECORDED)
@pytest.mark.parametrize("draw", [machine_chart, ladder_chart])
def test_labels_of_recorded_machines_can_be_read(draw, name):
    assert unreadable(draw(shipped()[name])) == []
