"""Measured rows under curves are the evidence's that fit the state, or it says so."""

import gzip
import itertools

import numpy as np
import pytest

from lightspeed.catalog import link
from lightspeed_course.explorers import nccl, published, queueing, roofline
from lightspeed_models.evidence import dataset
from lightspeed_models.evidence.samplers import explorers as sampler
from lightspeed_models.nccl_fit import FABRICS, measurements

MOST = 200  # dots of a state
WEIGHT = 60_000  # bytes, compressed
NAMES = {"a100_80gb": "nvlink3", "h100_sxm": "nvlink4", "h200_sxm": "nvlink4", "b200": "nvlink5"}


def dots(shown):
    """(x, y) of the measured dots of a view; the words say how many."""
    found = [m for chart in shown.charts for m in chart.marks if getattr(m, "soft", False)]
    pairs = [pair for mark in found for pair in zip(mark.x, mark.y, strict=True)]
    assert (shown.measured == published.NONE) == (not pairs), shown.measured
    if pairs:
        assert f": {len(pairs)} " in shown.measured and "Source: " in shown.measured
    assert len(pairs) <= MOST
    return pairs


def near(pair, rows):
    return np.any(np.all(np.isclose(pair, rows, rtol=1e-3), axis=1))


def test_the_file_is_what_the_sampler_writes_and_light():
    assert sampler.thinned() == sampler.FILE.read_text("utf-8")
    assert len(gzip.compress(sampler.FILE.read_bytes())) < WEIGHT


@pytest.mark.holds("explorers", "products measured on this chip in these formats")
def test_dots_of_a_roof_are_products_of_that_chip_at_those_widths():
    rows, drawn = dataset("gemm"), 0
    formats = {
        ("bf16", "bf16", "bf16"): ["bfloat16"], ("int8", "bf16", "bf16"): ["int8_wo"],
        ("int4", "bf16", "bf16"): ["int4_wo"], ("int8", "int8", "int8"): ["sq"],
        ("fp8", "fp8", "fp8"): ["fp8", "fp8_static", "fp8_block"],
    }  # fmt: skip
    widths = {"bf16": 2, "int8": 1, "fp8": 1, "int4": 0.5}
    sizes = {name: roofline.explore().params[name] for name in ("batch", "contraction", "output")}
    for chip in (*NAMES, "gb200", "mi300x", "tpu_v5p"):
        for kind in itertools.product(widths, ("bf16", "int8", "fp8"), ("bf16", "int8", "fp8")):
            shown = dots(roofline.view(chip, *kind, **sizes))
            own = (rows["chip"] == chip) & rows["format"].isin(formats.get(kind, []))
            if not own.any():
                assert not shown, (chip, kind)
                continue
            m, k, n, t = (rows[c][own] for c in ("m", "k", "n", "latency"))
            size = m * k * widths[kind[1]] + k * n * widths[kind[0]] + 2 * m * n
            all_of_them = np.column_stack([2 * m * k * n / size, 2 * m * k * n / t])
            wrong = [pair for pair in shown if not near(pair, all_of_them)]
            assert shown and not wrong, (chip, kind, wrong[:3])
            drawn += 1
    assert drawn == 16


def test_dots_of_a_collective_ran_over_those_links_and_ranks():
    rows, seen = dataset("nccl"), set()
    half = rows["format"] == "half"
    for collective, per_node, nodes, inside, network in itertools.product(
        nccl.COLLECTIVES,
        (1, 2, 4, 8, 16),
        (1, 2, 16, 32, 128),
        nccl.INSIDE,
        ("efa_p5", "infiniband_ndr"),
    ):
        n = per_node * nodes
        shown = dots(
            nccl.view(collective, per_node, nodes, 1e6, inside, network, 3.4e-6, 14e-6, False)
        )
        chips = [chip for chip, key in NAMES.items() if key == inside]
        own = (
            half
            & (rows["operation"] == collective)
            & (rows["ranks"] == n)
            & rows["chip"].isin(chips)
        )
        pairs = [*zip(2 * rows["elements"][own], rows["latency"][own], strict=True)] * (nodes == 1)
        pairs += [
            (r.size, r.time)
            for r in measurements()
            if (r.collective, r.nodes, r.n) == (collective, nodes, n)
            and FABRICS[r.fabric].inside == f"{inside}.bandwidth"
            and (nodes == 1 or FABRICS[r.fabric].network.startswith(f"{network}."))
        ]
        if not pairs:
            assert not shown
            continue
        factor = (n - 1) / n * (2 if collective == "all_reduce" else 1)
        line = link(inside).bandwidth if nodes == 1 else link(network).bandwidth
        if nodes > 1 and collective != "alltoall":
            line = min(link(inside).bandwidth, per_node * link(network).bandwidth)
        every = np.array([(size, factor * size / time / line) for size, time in pairs])
        wrong = [pair for pair in shown if not near(pair, every)]
        assert shown and not wrong, (collective, n, inside, wrong[:3])
        seen.add((collective, nodes))
    assert len(seen) > 8


def test_dots_of_a_replica_are_that_model_on_so_many_of_those_chips():
    rows, drawn = dataset("serving_energy"), 0
    names = {"llama3_70b": "Llama 3.", "llama3_8b": "Llama 3.1 8B", "qwen3_32b": "Qwen 3 32B"}
    chips = {"h100_sxm": "H100", "b200": "B200", "a100_80gb": "A100"}
    for (key, chip), (model, start), count, weights in itertools.product(
        chips.items(), names.items(), (1, 2, 4, 8), ("bf16", "int8")
    ):
        shown = dots(
            queueing.explore_serving().at(hardware=key, chips=count, model=model, weights=weights)
        )
        mine = [name for name in rows["model"].names if name.startswith(start)]
        mine = [name for name in mine if "70B" in name] if model == "llama3_70b" else mine
        own = (rows["chip"] == chip) & rows["model"].isin(mine) & (rows["devices"] == count)
        own &= (rows["format"] == "bfloat16") & (weights == "bf16")
        every = np.column_stack([rows["latency_median"][own], rows["rate"][own]])
        wrong = [pair for pair in shown if not near(pair, every)]
        assert bool(shown) == bool(own.any()) and not wrong, (key, model, count, wrong[:3])
        drawn += bool(shown)
    assert drawn >= 5


@pytest.mark.parametrize(
    ("explorer", "state"),
    [
        (nccl.explore, {"nodes": 1}), (queueing.explore_serving, {"chips": 4}),
        (roofline.explore, {}),
    ],
)  # fmt: skip
def test_each_dot_says_what_was_measured(explorer, state):
    charts = explorer().at(**state).spec()["charts"]
    tips = [t for c in charts for m in c["marks"] if m.get("soft") for t in m["tips"]]
    assert len(tips) > 20 and all(tip.startswith("measured: ") for tip in tips)
