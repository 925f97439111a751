"""Pictures that play: at every moment of every setting they show a state of a law or a simulator
of the library, and what the picture says at its end is what the closed form says.
"""

import json
from itertools import pairwise

import numpy as np
import pytest

from lightspeed import roofline
from lightspeed.catalog import accelerator
from lightspeed.collectives import busbw_factor
from lightspeed.fabrics import ecmp_collisions
from lightspeed.memory import zero_bytes_per_device
from lightspeed.parallel import data_parallel_bytes
from lightspeed.pipeline import bubble_over_total, zero_bubble_over_ideal
from lightspeed.precision import FORMATS
from lightspeed.queueing import mmc
from lightspeed.scaling import processors_at_efficiency
from lightspeed_course.explorers import (
    allreduce,
    blocks,
    kernels,
    layer_clock,
    node_map,
    number_line,
    packets,
    requests,
    roundings,
    schedules,
    shards,
    shrinking,
    split_mlp,
    sums,
    tokens,
    traffic,
    wire,
)
from lightspeed_course.explorers import states as sixteen
from lightspeed_models import training_step
from lightspeed_models.plan import spans
from lightspeed_models.simulators.allreduce import states
from lightspeed_models.simulators.requests import decoded
from lightspeed_models.simulators.traffic import chain, overlapped, reads_of_strips, tile_order
from lightspeed_show import Axis, Bars, Boxes, Chart, Play, Points, Slider, Text, View, explorer

PICTURES = {
    "all-reduce": allreduce.explore_all_reduce,
    "schedules": schedules.explore_schedules,
    "two clocks": traffic.explore_two_clocks,
    "tiles": traffic.explore_tiles,
    "attention moves": kernels.explore_moves,
    "fusion": traffic.explore_fusion,
    "tokens": tokens.explore_tokens,
    "queue": requests.explore_queue,
    "batching": requests.explore_batching,
    "shards": shards.explore_shards,
    "blocks": blocks.explore_blocks,
    "sixteen bytes": sixteen.explore_states,
    "a sum": sums.explore_sum,
    "split MLP": split_mlp.explore_split_mlp,
    "layer clock": layer_clock.explore_layer_clock,
    "number line": number_line.explore_number_line,
    "roundings": roundings.explore_roundings,
    "shrinking": shrinking.explore_shrinking,
    "lost packet": packets.explore_lost,
    "incast": packets.explore_incast,
    "bins": packets.explore_bins,
}


@pytest.fixture(scope="module", params=PICTURES)
def picture(request):
    return PICTURES[request.param]()


def test_every_moment_can_be_drawn_and_the_slider_reaches_it(picture):
    names = [name for name, _ in picture.first.facts]
    most = 0
    for state in picture.grid(each=3, most=20):
        shown = picture.view(**state)
        most = max(most, shown.moments)
        assert [name for name, _ in shown.facts] == names, state
        json.dumps(shown.spec(), allow_nan=False)
    assert most <= len(picture.controls[picture.play].options)


def test_nothing_of_a_picture_jumps_from_moment_to_moment(picture):
    """Frame and axes stay where they are while it plays."""
    start = {name: control.value for name, control in picture.controls.items()}

    def frame(moment):
        charts = picture.view(**start | {picture.play: moment}).spec()["charts"]
        axes = [(spec["x"]["domain"], spec["y"]["domain"]) for spec in charts]
        return axes, [(spec["height"], spec["margin"], spec["key"]) for spec in charts]

    assert len({json.dumps(frame(m)) for m in range(picture.first.moments)}) == 1


def test_what_moves_has_one_place_at_a_time(picture):
    """A key that two things of one picture had would send both to the wrong place."""
    for state in picture.grid(each=3, most=20):
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
    return Axis(domain=(0, n + 1))


def demo():
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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.holds("explorers", "is no multiple of")
def test_a_schedule_that_is_not_possible_says_why():
    found = schedules.explore_schedules().at(schedule="interleaved", stages=4, micro_batches=6)
    assert found.moments == 1 and "6 is no multiple of 4" in found.verdict


# ---------------------------------------------------------------- a layer's clock (chapter 6)


def drawn_in(row, **state):
    (chart,) = layer_clock.explore_layer_clock().at(**state).charts
    (bars,) = (m for m in chart.marks if isinstance(m, Bars) and m.at[0] == row)
    return sum(b - a for a, b in zip(bars.start, bars.to, strict=True)) / chart.x.domain[1]


@pytest.mark.holds("explorers", "The GPU never waits")
def test_four_fifths_are_blank_and_the_tokens_of_the_law_fill_them():
    assert drawn_in("computing") == pytest.approx(2048 / 9895, rel=1e-3)
    assert drawn_in("arriving") == pytest.approx(1)
    for way in layer_clock.WAYS_IN:
        turn = layer_clock.enough(way)
        exact = next(n for n in layer_clock.explore_layer_clock().controls["tokens"].options
                     if n[1] >= turn)[1]  # fmt: skip
        assert drawn_in("computing", way=way, tokens=exact) == pytest.approx(1, rel=1e-3)
        assert drawn_in("computing", way=way, tokens=256) == pytest.approx(256 / turn)
    # More tokens than that, and it is the links that rest.
    assert drawn_in("arriving", tokens=131072) < 0.2


def test_the_turn_of_the_layer_is_that_of_a_single_weight():
    """Brute force over whole layers against C / (8 R), which knows no model."""
    for way, (links, rate) in layer_clock.WAYS_IN.items():
        arrival = 2 * layer_clock.LAYER / (links * rate)
        least = next(t for t in range(1, 10**6)
                     if 2 * t * layer_clock.LAYER / layer_clock.GPU.bf16 >= arrival)  # fmt: skip
        assert least == -(-layer_clock.enough(way) // 1)


# ---------------------------------------------------------------- sums, cuts, a map (chapter 6)


@pytest.mark.holds(
    "explorers",
    "collected one quarter from everybody",
    "No two have the same quarter",
    "A column is a quarter of the gradient",
    "Four GPUs by four quarters",
    "First each row has one colour",
)
def test_the_halves_of_a_sum_are_those_of_a_ring():
    """Whose numbers each GPU holds: at the start, and where the sum is finished."""
    ring = states("ring", sums.GPUS)
    for moment, state in ((0, ring[0]), (1, ring[sums.GPUS - 1]), (2, ring[-1])):
        held = {}
        for holder, quarter, giver in sums.pieces(moment):
            held.setdefault((holder, quarter), []).append(giver)
        assert all(len(givers) == len(set(givers)) for givers in held.values())
        if moment == 1:  # which quarter is whose is free; a ring's scatter leaves its parts behind
            whole = [row for row in state.held for cell in row if len(cell) == sums.GPUS]
            assert len(whole) == len(held) == len({h for h, _ in held}) == len({q for _, q in held})
        else:
            assert {place: set(givers) for place, givers in held.items()} == {
                (gpu, k): set(cell) for gpu, row in enumerate(state.held)
                for k, cell in enumerate(row)
            }  # fmt: skip
        share = float(shown(sums.view, moment=moment)["sent by each GPU so far"].split()[0])
        assert share == pytest.approx(max(state.sent))


@pytest.mark.holds(
    "explorers",
    "every GPU keeps everything of every weight",
    "The optimizer has six squares",
    "with four groups of eight squares",
    "more squares stay on the diagonal alone",
)
def test_the_squares_of_a_weight_are_the_bytes_of_each_stage():
    for stage in range(4):
        (chart,) = sixteen.view(stage, 2).charts
        squares = sum(len(m.x1) for m in chart.marks if isinstance(m, Boxes) and not m.soft)
        law = zero_bytes_per_device(1, sixteen.GPUS, stage)
        assert 2 * squares / sixteen.GPUS / sixteen.WEIGHTS == law
    (chart,) = sixteen.view(0, 0).charts
    weights, *others = (m for m in chart.marks if isinstance(m, Boxes) and not m.soft)
    assert len(weights.x1) == 16 and not any(x for m in others for x in m.x2)


@pytest.mark.parametrize("cut", [split_mlp.FIRST, split_mlp.OTHER])
@pytest.mark.holds(
    "explorers",
    "Each has half of the columns of",
    "make half of the hidden columns",
    "neither GPU needs the other",
    "out comes a part of every number",
    "Now each GPU has half of the rows",
    "a part is no use to ReLU",
    "make half of the columns of the result",
)
def test_the_parts_that_a_gpu_has_make_the_whole_mlp(cut):
    """Each GPU multiplies what is coloured in its row, and nothing else."""
    t, wide, hidden = 6, 8, 12
    rng = np.random.default_rng(6)
    shapes = {"X": (t, wide), "up": (wide, hidden), "down": (hidden, wide)}
    tensors = {name: rng.standard_normal(shape) for name, shape in shapes.items()}

    def mine(name, gpu):
        of = tensors[name]
        (a, b), (top, low) = split_mlp.owned(cut, gpu)[name]
        rows, columns = of.shape
        return of[round(top * rows) : round(low * rows), round(a * columns) : round(b * columns)]

    first = [mine("X", gpu) @ mine("up", gpu) for gpu in range(2)]
    if cut == split_mlp.OTHER:
        first = [sum(first)] * 2
    parts = [np.maximum(h, 0) @ mine("down", gpu) for gpu, h in enumerate(first)]
    found = sum(parts) if cut == split_mlp.FIRST else np.hstack(parts)
    assert np.allclose(found, np.maximum(tensors["X"] @ tensors["up"], 0) @ tensors["down"])


@pytest.mark.holds(
    "explorers",
    "the first and only time that they talk",
    "They have talked twice",
    "on the widest tensor of the block",
)
def test_columns_first_talk_once_and_send_less():
    ends = [split_mlp.exchanged(cut, 4) for cut in (split_mlp.FIRST, split_mlp.OTHER)]
    assert [count for count, _ in ends] == [1, 2]
    assert ends[0][1] == 2 * 2048 * 8192 and ends[1][1] == 2 * 2048 * (28672 + 8192 / 2)


@pytest.mark.parametrize("order", node_map.ORDERS)
def test_groups_on_the_map_divide_the_gpus(order):
    here = node_map.plan(order)
    for axis in node_map.COLORS:
        groups = {tuple(node_map.group(gpu, axis, order)) for gpu in range(64)}
        assert sorted(rank for members in groups for rank in members) == list(range(64))
        apart = any(len({rank // 8 for rank in members}) > 1 for members in groups)
        assert apart == spans(here, 8, axis)
    size, rate = node_map.traffic(order)["tensor"]
    took = training_step.step(node_map.MODEL, node_map.SEQUENCE, here, node_map.CLUSTER)
    assert took.tensor == pytest.approx(size / rate)


def test_every_gpu_of_the_map_can_be_drawn():
    found = node_map.explore_map()
    names = [name for name, _ in found.first.facts]
    for state in found.grid(each=9):
        view = found.view(**state)
        assert [name for name, _ in view.facts] == names
        boxes = [m for m in view.charts[0].marks if isinstance(m, Boxes) and m.label]
        assert [len(m.x1) for m in boxes] == [7, 3, 1, 1]


# ---------------------------------------------------------------- an all-reduce (chapter 7)


@pytest.mark.holds("explorers", "filled as far as the numbers of all GPUs")
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


# ---------------------------------------------------------------- what crosses the bus (chapter 2)


def test_overlap_is_between_the_bounds_and_falls_with_the_pieces_as_the_closed_form():
    for load, compute in ((8.0, 4.0), (1.0, 7.0), (3.0, 3.0), (0.0, 2.0), (5.0, 0.0)):
        bounds = roofline.time_bounds(compute, load, 1.0, 1.0)
        for pieces in (1, 2, 3, 8, 100):
            run = overlapped(pieces, load, compute)
            took = max(run[-1].ends, run[-1].loaded)
            assert took == pytest.approx(bounds.lower + min(load, compute) / pieces)
            assert bounds.lower <= took <= bounds.upper + 1e-12
            for before, piece in pairwise(run):
                assert piece.begins >= max(piece.loaded, before.ends) - 1e-12
                assert piece.loads == pytest.approx(before.loaded)


def test_both_clocks_end_with_all_bytes_and_all_flops():
    clocks = traffic.explore_two_clocks().at
    for batch in (1, 64, 4096):
        for pieces in (1, 4, 16):
            facts = shown(clocks, batch=batch, pieces=pieces, moment=traffic.SLICES)
            for name, law in (
                ("moved", roofline.matmul_bytes),
                ("computed", roofline.matmul_flops),
            ):
                so_far, whole = facts[name].split(" of ")
                unit = "byte" if name == "moved" else "FLOP"
                assert so_far == whole == traffic.si(law(batch, 8192, 8192), unit)


@pytest.mark.holds("explorers", "X and Y have crossed the bus")
def test_tiles_read_what_the_law_says():
    for side in (512, 4096):
        for across in (1, 2, 4, 8):
            tile = side // across
            facts = shown(traffic.tiles_view, side=side, across=across, moment=across**2)
            rows, columns = reads_of_strips(across, across, across**2)
            assert set(rows) == set(columns) == {across}
            moved = roofline.tiled_matmul_bytes(side, side, side, tile, tile)
            written = 2 * side * side
            assert facts["bytes read"] == traffic.si(moved - written, "byte")
            assert facts["bytes written"] == traffic.si(written, "byte")
            assert facts["if each matrix moved once"] == traffic.si(
                roofline.tiled_matmul_bytes(side, side, side, side, side), "byte"
            )
            found = traffic.tiles_view(side, across, across**2).verdict
            intensity = roofline.matmul_flops(side, side, side) / moved
            assert traffic.si(intensity, "FLOP/byte") in found
            ridge = accelerator("h100_sxm").bf16 / accelerator("h100_sxm").hbm_bandwidth
            assert ("above" in found) == (intensity >= ridge)


def test_each_tile_reads_its_own_row_and_column():
    for across in (1, 2, 4, 8):
        order = tile_order(across, across)
        for done in range(1, across**2 + 1):
            before = reads_of_strips(across, across, done - 1)
            after = reads_of_strips(across, across, done)
            grown = [
                [i for i, (a, b) in enumerate(zip(x, y, strict=True)) if b > a]
                for x, y in zip(before, after, strict=True)
            ]
            assert grown == [[order[done - 1][0]], [order[done - 1][1]]]


@pytest.mark.holds("explorers", "Every number was read")
def test_a_chain_moves_the_bytes_of_its_kernels():
    for passes in range(1, 5):
        for fused in (False, True):
            events = chain(passes, traffic.BLOCKS, fused)
            end = traffic.fusion_view(passes, fused, 2**28, len(events))
            kernels = 1 if fused else passes
            intensity = roofline.elementwise_intensity(passes / kernels)
            assert traffic.si(intensity, "FLOP/byte") in end.verdict, (passes, fused)
            moved = passes * 2**28 / intensity
            assert dict(end.facts)["moved"] == traffic.si(moved, "byte")


def test_a_block_is_where_the_event_before_left_it():
    """Nothing is applied to a block that is not in the units, or read before it was written."""
    for passes in range(1, 5):
        for fused in (False, True):
            memory, units = {(0, b) for b in range(3)}, None
            for event in chain(passes, 3, fused):
                if event.kind == "read":
                    assert (event.array, event.block) in memory and units is None
                    units = event.array, event.block
                elif event.kind == "apply":
                    assert units == (event.array - 1, event.block)
                    units = event.array, event.block
                else:
                    assert units == (event.array, event.block)
                    memory.add(units)
                    units = None
            assert {(passes, b) for b in range(3)} <= memory


# ---------------------------------------------------------------- requests (chapter 4)


def test_every_request_is_in_one_place_and_only_from_its_arrival_to_its_leaving():
    for load in requests.LOADS:
        for servers in (1, requests.SERVERS):
            visits = requests.run(load, servers, 2)
            for moment in range(0, requests.MOMENTS, 7):
                time = moment * requests.STEP
                found = requests.queue_view(load, servers, 2, moment)
                dots = {m.label: m for m in found.charts[0].marks if isinstance(m, Points)}
                served = {int(k) for k in dots["is served"].keys if k}
                waits = {int(k) for k in dots["waits"].keys if k}
                now = {i for i, v in enumerate(visits) if v.arrives <= time < v.leaves}
                assert served == {i for i in now if visits[i].starts <= time}
                waiting = sorted(now - served)
                assert waits == set(waiting[: requests.ROOM])
                assert dict(found.facts)["waiting now"] == requests.si(len(waiting))
                assert len(served) <= servers
                staircase = found.charts[1].marks[0]
                assert staircase.y[-1] == len(now)


def test_the_mean_inside_is_the_area_under_the_staircase():
    for moment in (1, 30, requests.MOMENTS - 1):
        found = requests.queue_view(0.9, 2, 1, moment)
        line = found.charts[1].marks[0]
        area = sum((b - a) * y for a, b, y in zip(line.x, line.x[1:], line.y, strict=False))
        time = moment * requests.STEP
        inside = requests.inside_so_far(requests.run(0.9, 2, 1), time)
        assert inside == pytest.approx(area / time)
        assert dict(found.facts)["inside, mean so far"] == requests.si(inside)


def test_many_runs_have_the_mean_of_the_formula():
    """Of runs so short that start empty, the mean is below the formula's, and near it."""
    for load, servers in ((0.5, 1), (0.5, 4), (0.8, 4)):
        means = [
            requests.inside_so_far(requests.run(load, servers, seed), requests.HORIZON)
            for seed in range(150)
        ]
        assert sum(means) / 150 == pytest.approx(mmc(load * servers, 1.0, servers).L, rel=0.2)


def test_slots_at_work_add_up_to_the_tokens():
    at = requests.explore_batching().at
    for continuous in (False, True):
        for slots in range(2, requests.SLOTS + 1):
            last = requests.batching_view(continuous, True, slots, 1, 0).moments - 1
            made = 0
            for moment in range(1, last + 1):
                facts = shown(at, continuous=continuous, slots=slots, moment=moment)
                made += int(facts["slots at work"].split()[0])
                assert facts["tokens so far"].split()[0] == str(made)
            assert made == sum(requests.lengths(1, True))


def test_batching_tells_the_steps_of_both_ways():
    tokens = requests.lengths(1, True)
    for slots in range(2, requests.SLOTS + 1):
        static = sum(max(tokens[i : i + slots]) for i in range(0, len(tokens), slots))
        last = requests.batching_view(True, True, slots, 1, 0).moments - 1
        words = requests.batching_view(True, True, slots, 1, last).verdict
        assert f"in {last} steps" in words and f"take {static}." in words
        same = requests.batching_view(True, False, slots, 1, 0).moments
        assert same == requests.batching_view(False, False, slots, 1, 0).moments


def test_a_busy_server_has_less_time_to_catch_up_in():
    """What chapter 4 says of the runs: at half load idle more often, and fewer inside."""
    for seed in requests.RUNS.values():
        for servers in range(1, requests.SERVERS + 1):
            half, busy = (requests.run(load, servers, seed) for load in (0.5, 0.9))
            idle = [
                1 - sum(min(v.leaves, 60) - v.starts for v in run if v.starts < 60) / 60 / servers
                for run in (half, busy)
            ]
            assert idle[0] > idle[1], (seed, servers)
            assert requests.inside_so_far(half, 60) < requests.inside_so_far(busy, 60)


def test_with_continuous_batching_slots_idle_only_once_nobody_waits():
    for seed in (1, 2, 3):
        for slots in range(2, requests.SLOTS + 1):
            visits = decoded(requests.lengths(seed, True), slots)
            last_start = max(v.starts for v in visits)
            for step in range(1, last_start + 1):
                assert sum(v.starts < step <= v.leaves for v in visits) == slots
            static = decoded(requests.lengths(seed, True), slots, continuous=False)
            assert max(v.leaves for v in visits) < max(v.leaves for v in static)


# ---------------------------------------------------------------- ZeRO (chapter 6)


def test_as_many_blocks_are_drawn_as_are_held():
    for stage in range(4):
        for gpus in range(2, shards.MOST_GPUS + 1):
            states, _ = shards.run(stage, gpus, 2)
            for moment, state in enumerate(states):
                found = shards.view(stage, gpus, 2, moment)
                drawn = [m for m in found.charts[0].marks if isinstance(m, Boxes) and not m.soft]
                blocks = {
                    (mark.x1[i], mark.y1[i]) for mark in drawn for i, k in enumerate(mark.keys) if k
                }
                held = sum(
                    shards.layers_held(getattr(state, what), gpus) * gpus
                    for what in ("weights", "gradients")
                )
                assert len(blocks) == round(gpus * held), (stage, gpus, moment)


def test_the_bytes_sent_in_the_end_are_those_of_the_law():
    for stage in range(4):
        for gpus in range(2, shards.MOST_GPUS + 1):
            for micro_batches in range(1, shards.MICRO_BATCHES + 1):
                last = (
                    shards.explore_shards()
                    .at(stage=stage, gpus=gpus, micro_batches=micro_batches)
                    .moments
                    - 1
                )
                facts = dict(shards.view(stage, gpus, micro_batches, last).facts)
                law = data_parallel_bytes(shards.PARAMETERS, gpus, stage, micro_batches)
                assert facts["sent by each GPU"] == shards.si(law, "byte")


# ---------------------------------------------------------------- formats (chapter 5)


def test_the_line_has_every_value_of_the_format_once():
    for name in number_line.NAMES:
        groups = number_line.binades(name)
        every = [v for values in groups for v in values]
        assert every == [float(v) for v in FORMATS[name].values() if v >= 0], name
        for moment, now in enumerate(groups):
            line = number_line.view(name, moment).charts[0]
            drawn = [x for m in line.marks for x, k in zip(m.x, m.keys, strict=True) if k]
            assert sorted(drawn) == every[: sum(map(len, groups[: moment + 1]))]
            assert all(b - a == FORMATS[name].spacing(a) for a, b in pairwise(now)), (name, moment)


@pytest.mark.holds(
    "explorers", "The step has doubled", "on the logarithmic one each power has as many"
)
def test_gaps_double_with_each_power_and_each_power_has_as_many_values():
    for name in number_line.NAMES:
        low, *powers = number_line.binades(name)
        gaps = [FORMATS[name].spacing(values[0]) for values in powers]
        assert all(b == 2 * a for a, b in pairwise(gaps)), name
        assert FORMATS[name].spacing(low[-1]) == gaps[0]
        # the top codes of some formats are no numbers, or infinity
        assert {len(values) for values in powers[:-1]} == {2 ** FORMATS[name].mantissa_bits}


@pytest.mark.holds("explorers", "are crowded below 1")
def test_the_share_below_one_is_counted():
    for name in number_line.NAMES:
        groups = number_line.binades(name)
        every = [float(v) for v in FORMATS[name].values() if v >= 0]
        share = number_line.si(sum(v < 1 for v in every) / len(every), "%", 2)
        assert f"{share} of all values" in number_line.view(name, len(groups) - 1).verdict


# ---------------------------------------------------------------- the wire (chapter 7)


def area(boxes):
    sides = zip(boxes.x1, boxes.x2, boxes.y1, boxes.y2, strict=True)
    return sum((b - a) * (d - c) for a, b, c, d in sides)


@pytest.mark.holds(
    "explorers",
    "The wire always carries the same rate",
    "as high as the algbw",
    "as high as the busbw",
)
def test_the_areas_are_the_buffer_and_what_crosses_the_wire():
    for collective in wire.PASSES:
        for ranks in (2, 3, 8, 1000):
            waited, carried = wire.view(collective, ranks).charts
            buffer, crossed = (
                [mark for mark in chart.marks if isinstance(mark, Boxes)]
                for chart in (waited, carried)
            )
            size = wire.transfer()[0]
            assert sum(map(area, buffer)) == pytest.approx(size)
            factor = busbw_factor(collective, ranks)
            assert sum(map(area, crossed)) == pytest.approx(factor * size), (collective, ranks)
            assert buffer[0].x2[0] == pytest.approx(crossed[-1].x2[0]), "done at the same time"


# ---------------------------------------------------------------- blocks (chapter 9)


@pytest.mark.parametrize(("pool", "answer"), [(12, 20), (16, 16), (20, 12), (28, 4)])
def test_blocks_hold_the_caches_and_an_eviction_costs_them(pool, answer):
    ran, every = blocks.run(pool, answer), blocks.states(pool, answer)
    holds = owes = {}
    read, again = [0] * blocks.REQUESTS, 0
    for now in every:
        cells = [cell for own in now.cells.values() for cell in own]
        assert len(cells) == len(set(cells)) and set(cells) <= set(range(pool))
        assert now.cells.keys() == now.tokens.keys() and not now.tokens.keys() & {*now.waiting}
        assert len(now.tokens) <= blocks.SLOTS
        owes = owes | now.evicted
        for who, many in now.tokens.items():
            assert len(now.cells[who]) == -(-many // blocks.BLOCK)
            if who in now.writers:
                assert many == holds[who] + 1
            else:
                read[who] += many - holds.get(who, 0)
                again += (who in owes) * (many - holds.get(who, 0))
                assert many <= owes.get(who, blocks.PROMPT)
        for who, more in now.evicted.items():
            # The prompt and what it wrote, of which the last was not in its cache yet.
            assert more == max(blocks.PROMPT, holds[who] + 1) and who in now.waiting
        if now.waiting and not now.evicted and now.room and len(now.tokens) < blocks.SLOTS:
            assert now.wants > pool - len(cells), "who waits could have had a place"
        assert now.again == again
        holds = now.tokens
    assert [sum(who in now.evicted for now in every) for who in range(blocks.REQUESTS)] == (
        ran.put_off
    )
    assert len(every) == max(ran.last)
    for who, many in enumerate(read):
        assert (many > blocks.PROMPT) == (ran.put_off[who] > 0)
        ends = next(now for now in reversed(every) if who in now.tokens)
        assert ends.tokens[who] == blocks.PROMPT + answer - 1


@pytest.mark.holds("explorers", "Those who write need more blocks than are free")
def test_blocks_open_where_one_is_evicted_and_a_newcomer_waits():
    now = blocks.states(16, 16)[blocks.explore_blocks().first.opens]
    assert (
        now.evicted
        and set(now.waiting) - now.back
        and "gives up 3" in blocks.view(16, 16, blocks.explore_blocks().first.opens).verdict
    )


@pytest.mark.parametrize("pool", [12, 16])
def test_as_many_run_in_a_full_pool_as_the_law_says_fit(pool):
    every = [len(now.tokens) for now in blocks.states(pool, 16) if now.waiting]
    law = blocks.view(pool, 16, 0).formula.result[0]
    assert np.mean(every) == pytest.approx(law, rel=0.25)


# ---------------------------------------------------------------- packets (chapter 8)


def test_a_loss_costs_a_window_a_packet_or_all_that_was_sent():
    for window in range(packets.WINDOWS[0], packets.WINDOWS[1] + 1, 2):
        costs = {
            "selective_repeat": (1, 0),
            "go_back_n": (window, window - 1),
            "go_back_zero": (window + packets.BEFORE, window - 1),
        }
        for rule, (cost, thrown) in costs.items():
            last = packets.lost_view(rule, window, 0).moments - 1
            facts = shown(packets.lost_view, rule=rule, window=window, moment=last)
            assert facts["sent"] == str(packets.PACKETS + cost), (rule, window)
            assert facts["kept"] == f"{packets.PACKETS} of {packets.PACKETS}"
            assert facts["thrown away"] == str(thrown), (rule, window)


def test_a_tank_is_as_full_as_the_queue_and_tells_its_time_at_the_end_only():
    explorer = packets.explore_incast()
    foot, brim = packets.TANK[2:]
    for control in packets.CONTROLS:
        for moment in range(explorer.at(control=control).moments):
            found = explorer.at(control=control, moment=moment)
            (water,) = (m for m in found.charts[0].marks if getattr(m, "keys", ()) == ("queue",))
            facts = dict(found.facts)
            full = (water.y2[0] - foot) / (brim - foot)
            queue = packets.si(full * explorer.params["buffer"], "byte")
            assert full <= 1 and (moment != found.opens or control != "nothing" or full > 0.75)
            assert facts["in the queue"] == queue, (control, moment)
            assert (facts["it took"] == "play to the end") == (moment < found.moments - 1)
        ran = packets.run(16, packets.BURST, packets.LINK, 2e6, control, packets.TIMERS[1])
        assert facts["it took"] == packets.si(ran.end, "s")
        assert facts["packets lost so far"] == f"{ran.lost:,}"


@pytest.mark.holds("explorers", "Some columns are empty")
def test_hashed_flows_leave_as_many_links_idle_as_the_law_says():
    for flows in (8, 32):
        throws = [packets.loads(packets.thrown(flows, seed)) for seed in range(3000)]
        law = ecmp_collisions(flows, packets.LINKS)
        idle = np.mean([throw.count(0) for throw in throws]) / packets.LINKS
        assert idle == pytest.approx(law.idle, abs=0.012)
        assert np.mean([max(throw) for throw in throws]) == pytest.approx(law.fullest, rel=0.02)
    opened = packets.explore_bins().first.charts[0]
    (balls,) = (mark for mark in opened.marks if isinstance(mark, Boxes))
    places = [int(x) for x in balls.x1]
    counts = [places.count(place) for place in range(packets.LINKS)]
    assert (counts.count(0), max(counts), sum(counts)) == (2, 3, 8)


@pytest.mark.holds(
    "explorers", "makes better use of that one reading", "a count of FLOP per byte rises by one"
)
def test_each_token_adds_its_flops_and_the_matrix_is_read_once():
    picture = tokens.explore_tokens()
    for weights, width in (("bf16", 2), ("int8", 1), ("int4", 0.5)):
        for passed in range(1, tokens.TOKENS + 1):
            facts = shown(picture.at, weights=weights, moment=passed + 1)
            by_hand = 2 * passed / (width + 4 * passed / tokens.SIDE)
            assert facts["FLOP for each byte"] == tokens.si(by_hand, digits=2)
            assert facts["read for all of them"] == tokens.si(width * tokens.SIDE**2, "byte")
            assert facts["could pass while it is read"] == tokens.si(
                width / 2 * accelerator("h100_sxm").bf16 / accelerator("h100_sxm").hbm_bandwidth,
                "token",
            )


# ---------------------------------------------------------------- a job that shrinks (chapter 3)


def drawn_time(bars):
    """Processor-minutes of the bars of one kind."""
    return sum(end - start for end, start in zip(bars.to, bars.start, strict=True))


@pytest.mark.holds("explorers", "have a blue bar of the same length")
def test_all_work_is_drawn_on_any_number_of_processors():
    for moment in range(shrinking.MOST):
        serial, divided = (
            m for m in shrinking.view(moment).charts[0].marks if isinstance(m, shrinking.Bars)
        )
        assert drawn_time(serial) == shrinking.SERIAL
        assert drawn_time(divided) == pytest.approx(shrinking.WHOLE - shrinking.SERIAL)
        assert len(set(divided.to)) == 1, "everybody is done at the same moment"


def test_half_of_the_bill_is_idle_where_the_law_says():
    n = round(processors_at_efficiency(0.5, serial=shrinking.SERIAL / shrinking.WHOLE))
    *work, idle = (m for m in shrinking.bill(n).marks if isinstance(m, shrinking.Bars))
    assert drawn_time(idle) == pytest.approx(sum(map(drawn_time, work)))
    assert f"{2 * shrinking.WHOLE} processor-minutes" in dict(shrinking.view(n - 1).facts).values()
