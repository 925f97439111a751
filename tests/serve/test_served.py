"""Published rows of serving: what is read of them, refused, fitted, and expected of the unseen."""

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lightspeed.catalog import find, fitted
from lightspeed_models.evidence.pairings.served import printed
from lightspeed_models.evidence.samplers.tables import _held_out
from lightspeed_models.evidence.served_fit import (
    Table,
    contradicted,
    engines_of,
    fit,
    left_out,
    ranges,
    steady,
)
from lightspeed_models.evidence.sets import dataset
from lightspeed_models.llm import decoder, engine
from lightspeed_models.llm.checkpoint import Formats
from lightspeed_models.served import ENGINES, Served, served_replica
from lightspeed_models.served_ranges import MOST_INSIDE
from lightspeed_models.served_rows import BEATEN, TWICE, Refused, measured, measured_rows

ROW = {
    "silicon_data_source": "x; silicon_concurrency=16; y", "backend": "vllm",
    "model_path": "Qwen/Qwen3-32B", "system": "h100_sxm", "precision": "fp8", "mode": "agg",
    "isl": "1024", "osl": "1024", "batch_size": "16", "tp_size": "2", "pp_size": "1",
    "silicon_ttft_ms": "100", "silicon_tpot_ms": "12",
}  # fmt: skip
EXPERTS = {"model_path": "deepseek-ai/DeepSeek-R1", "system": "h200_sxm"}
APART = {
    "mode": "disagg", "decode_tp_size": "2", "prefill_tp_size": "2", "decode_num_workers": "4",
    "prefill_num_workers": "1",
}  # fmt: skip


DATA = Path(__file__).parent / "data"
PUBLISHERS = ("inferencex", "nvidia", "cookbook")


@pytest.fixture(scope="module")
def judged():
    """(all measured rows as a table, both times of each by constants of other publishers)."""
    sets = ("served_models", "served_cookbook")
    table = Table([r for s in sets for r in measured_rows(printed(dataset(s)))[0].values()])
    return table, left_out(table)


def test_no_row_that_is_held_out_ships():
    rows = printed(dataset("served_models"))
    text = [
        {n: f"{v:g}" if isinstance(v, float) and v == v else str(v) for n, v in row.items()}
        for row in rows
    ]
    plain = [row for row in text if row["tp_size"] != "nan"]
    assert len(rows) == 3416 and len(plain) > 2400
    assert not any(map(_held_out, plain))
    assert _held_out(plain[0] | {"system": "gb300"})


def test_a_row_is_read_as_its_columns_say():
    one = measured(ROW)
    run = one.run
    assert (run.decode.tensor, run.decode.data, run.requests, run.together) == (2, 1, 16, True)
    assert (one.per_token, one.first_token) == (0.012, 0.1)
    assert run.capacity == 81559 * 2**20
    apart = measured(ROW | APART).run
    assert (apart.requests, apart.decoders, apart.readers) == (4, 4, 1)


def test_a_layout_written_as_a_product_is_that_of_its_gpus():
    both = {"tp_size": "64", "moe_tp_size": "8", "moe_ep_size": "8"}
    gpus = measured(ROW | EXPERTS | both).run.decode
    assert (gpus.tensor, gpus.data) == (8, 1)
    spread_out = {"tp_size": "1", "attention_dp_size": "64", "batch_size": "1"}
    spread_out |= {"silicon_data_source": "silicon_concurrency=64"}
    run = measured(ROW | EXPERTS | both | spread_out).run
    assert (run.decode.tensor, run.decode.data, run.requests) == (1, 8, 64)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"backend": "tgi"}, "engine"),
        ({"model_path": "acme/Unheard-1B"}, "model is not known"),
        ({"system": "z9000"}, "not in the catalog"),
        ({"precision": "fp12"}, "number format"),
        ({"isl": "0"}, "isl"),
        ({"silicon_tpot_ms": "-3"}, "silicon_tpot_ms"),
        ({"silicon_tpot_ms": "nan"}, "silicon_tpot_ms"),
        ({"silicon_ttft_ms": "fast"}, "silicon_ttft_ms"),
        ({"tp_size": "12"}, "more than eight"),
        ({"batch_size": "5"}, "contradict"),
        ({"attention_dp_size": "2", "batch_size": "8"}, "without experts"),
        (EXPERTS | {"tp_size": "4", "moe_tp_size": "2", "moe_ep_size": "1"}, "contradict"),
        ({"pp_size": "2"}, "pipeline"),
        ({"batch_size": "", "silicon_data_source": ""}, "neither"),
        (APART | {"decode_num_workers": ""}, "how many workers"),
        ({"mode": "both"}, "neither agg nor disagg"),
        ({"osl": "1"}, "no time between tokens"),
        ({"isl": "1e30"}, "isl is not a whole number up to"),
        (EXPERTS | {"tp_size": "1", "batch_size": "16"}, "weights do not fit"),
    ],
)
def test_a_row_that_says_too_little_is_refused_by_name(change, reason):
    with pytest.raises(Refused, match=reason):
        measured(ROW | change)


def test_twice_and_faster_than_the_bound():
    rows = [ROW, ROW, ROW | {"silicon_tpot_ms": "0.5"}, ROW | {"silicon_ttft_ms": "101"}]
    found, refused = measured_rows(rows)
    assert list(found) == [0, 3] and refused == {1: TWICE, 2: BEATEN}


@pytest.mark.parametrize(
    "change",
    [
        {"backend": "vLLM", "system": "H100", "precision": "FP8", "mode": "Agg"},
        {"system": "NVIDIA H100 SXM", "attention_dp_size": "0", "moe_ep_size": "0"},
        {"precision": "", "model_path": "RedHatAI/Qwen3-32B-FP8-dynamic"},
        {"silicon_data_source": "silicon_concurrency=..", "moe_tp_size": "nan"},
    ],
)
def test_a_row_in_other_words_is_the_same(change):
    assert measured(ROW | change).run == measured(ROW).run


def test_names_of_one_shape_and_formats_that_nobody_tells():
    shape = decoder("deepseek-ai/DeepSeek-V3")
    for name in ("nvidia/DeepSeek-R1-0528-NVFP4-v2", "DeepSeek-V3.1-Terminus", "deepseek-v3-0324"):
        assert decoder(name) == shape
    assert decoder("meta-llama/Meta-Llama-3.3-70B-Instruct") == decoder("Llama-3.1-70B")
    row = ROW | {"precision": "", "tp_size": "8", "system": "b200_sxm"}
    told = {"openai/gpt-oss-120b": "fp4", "MiniMaxAI/MiniMax-M2.5": "fp8", "Qwen/Qwen3-32B": "bf16"}
    for name, kind in told.items():
        assert measured(row | {"model_path": name}).number_format == kind
    other = measured(row | {"model_path": "acme/Unheard-1B"}, shape)
    assert other.run.model == shape and other.model == "acme/Unheard-1B"


def test_who_has_no_place_waits_for_one():
    """A closed loop of twice as many requests as places goes round in twice their time."""
    run = measured(ROW).run
    constants = engine("vllm")
    places = run.places()
    full, double = replace(run, requests=places), replace(run, requests=2 * places)
    assert full.waiting == 0 and double.inside == places
    assert double.between(constants) == full.between(constants)
    wait = double.first(constants) - full.first(constants)
    assert wait == pytest.approx(run.output * full.between(constants))
    small = replace(run, capacity=run.weights() / 2 / 0.9)  # by default not even one: set otherwise
    assert small.places() < 1 and small.inside == run.requests and small.waiting == 0


def test_a_first_token_is_told_in_the_protocol_of_its_publisher():
    plain, ours, theirs = (measured(ROW | {"publisher": p}) for p in ("", "nvidia", "inferencex"))
    assert (plain.waves, plain.run.even) == (0, False) and (ours.waves, ours.run.even) == (10, True)
    assert (theirs.run.prompt, theirs.run.output, theirs.run.gap) == (922, 922, 1)
    recipe = EXPERTS | {"backend": "sglang", "system": "b200_sxm", "publisher": "inferencex"}
    assert measured(ROW | recipe | {"tp_size": "8", "moe_tp_size": "8"}).run.gap == 30
    constants = engine("vllm")
    steadily, burst = plain.run.first(constants), plain.run.state(constants).burst
    assert plain.run.first(constants, 10) == pytest.approx((burst + 9 * steadily) / 10)


def test_the_shipped_engines_are_what_the_rows_give(judged):
    """Rounded to three digits; of another processor the fit may differ in the fourth."""
    table, _ = judged
    again = engines_of(fit(table.part(steady(table))))
    for key in ENGINES:
        for name in fitted("engines")[key]["fitted"]:
            assert getattr(again[key], name) == pytest.approx(getattr(engine(key), name), rel=0.02)


def off(told, real, mask):
    return float(np.median(np.abs(told[mask] / real[mask] - 1)))


# Publisher -> the most that TPOT and TTFT may be off in the median, by constants of the others:
# serving.md's table asks for 22 and 50 %, 35 and 28 % to the first token.
ASKED = {"inferencex": (0.18, 0.35), "nvidia": (0.21, 0.28), "cookbook": (0.22, 0.50)}


def test_what_is_expected_of_publishers_that_no_constant_has_seen(judged):
    table, (tokens, first) = judged
    good = table.together & ~contradicted(table.rows)
    for publisher, (most_token, most_first) in ASKED.items():
        own = good & (table.publisher == publisher)
        low = own & (table.load.inside <= MOST_INSIDE)
        assert off(tokens, table.per_token, own) <= most_token, publisher
        assert off(first, table.first_token, low) <= most_first, publisher
    told = engine_times(table)
    cookbook = table.publisher == "cookbook"
    assert off(told[0], table.per_token, cookbook) <= 0.22
    assert off(told[1], table.first_token, cookbook & ~table.slow) <= 0.30


def engine_times(table):
    constants = {name: np.array([getattr(engine(key), name) for key in ENGINES])
                 for name in fitted("engines")["vllm"]["fitted"]}  # fmt: skip
    return table.times(table.engine_of(constants))


def test_the_ratio_is_as_flat_over_load_as_was_asked(judged):
    """Told over measured at 40 to 130 in flight, over that at one: at least 0.8, 0.67 before."""
    table, (tokens, _) = judged
    own = (table.publisher == "cookbook") & ~table.slow
    ratio, inside = tokens / table.per_token, table.load.inside
    crowd, one = (np.median(ratio[own & mask]) for mask in (
        (inside > 40) & (inside < 130), inside < 1.5))  # fmt: skip
    assert crowd / one >= 0.8


def test_requests_a_second_of_the_cookbook(judged):
    table, _ = judged
    rows = [r for r in table.rows if r.publisher == "cookbook"]
    real = dataset("served_cookbook")["requests_per_second"]
    told = [r.run.state(engine(r.engine)).rate for r in rows]
    assert np.median(np.abs(np.array(told) / real - 1)) <= 0.25


def test_ranges_hold_on_the_publisher_that_is_left_out(judged):
    """At least 70 % of times between tokens and 75 % to the first, of each publisher, by ranges
    whose half-width is at most 1.5 and 2.5 in the median.
    """
    table, told = judged
    good = table.together & ~contradicted(table.rows)
    for which, (real, share, wide) in enumerate(
        ((table.per_token, 0.7, 1.5), (table.first_token, 0.75, 2.5))
    ):
        low, high = np.transpose(ranges(table, which))
        ratio = real / told[which]
        for publisher in PUBLISHERS:
            own = good & (table.publisher == publisher)
            own &= (table.load.inside <= MOST_INSIDE) | (which == 0)
            held = (low[own] <= ratio[own]) & (ratio[own] <= high[own])
            assert held.mean() >= share, (publisher, which)
            assert np.median(np.sqrt(high[own] / low[own])) <= wide, (publisher, which)


def test_one_run_of_ones_own_narrows_the_others(judged):
    """After a row of a layout has set the level, four in five of its others lie within × 1.17 and
    1.21 on two publishers; on the cookbook, whose runs were tuned least, within 1.31 (asked: 1.3).
    """
    table, (tokens, _) = judged
    apart = []
    for publisher in PUBLISHERS:
        groups = {}
        for i, row in enumerate(table.rows):
            low = row.run.requests <= MOST_INSIDE and not row.run.waiting
            if row.publisher == publisher and row.run.together and low:
                key = (row.model, row.system, row.engine, row.number_format, row.run.decode)
                groups.setdefault(key, []).append(i)
        off = []
        for rows in (rows for rows in groups.values() if len(rows) > 2):
            rows.sort(key=lambda i: table.rows[i].run.requests)
            middle = rows[len(rows) // 2]
            level = table.per_token[middle] / tokens[middle]
            off += [
                abs(np.log(table.per_token[i] / tokens[i] / level)) for i in rows if i != middle
            ]
        apart.append(np.exp(np.quantile(off, 0.8)))
    assert apart[0] <= 1.2 and apart[1] <= 1.25 and apart[2] <= 1.32, apart


def test_throughput_at_saturation_of_the_overview_of_tensorrt_llm():
    """88 points of its performance overview, which no constant has seen: the most tokens a second
    that any load makes. Asked: 27 % where attention is replicated.
    """
    constants, ratios = engine("trtllm"), {True: [], False: []}
    with open(DATA / "trtllm_overview.csv", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            kind = "nvfp4" if row["format"] == "fp4" else row["format"]
            formats, data = Formats(kind, kind, kind, cache="fp8"), int(row["attention"])
            gpus = served_replica(row["system"], int(row["tensor"]), data, row["format"], formats)
            run = Served(
                decoder(row["model"]), gpus, gpus, float(find(row["system"]).hbm_capacity), 1,
                int(row["isl"]), int(row["osl"]), engine="trtllm", formats=formats,
            )  # fmt: skip
            loads = np.floor(np.geomspace(1, min(run.places(), 4096), 60))
            told = run.state(constants, loads).rate.max() * run.output / gpus.gpus
            ratios[data > 1].append(told / float(row["output_tokens_per_second_per_gpu"]))
    assert sum(map(len, ratios.values())) == 88
    for replicated, most in ((True, 0.27), (False, 0.2)):
        assert np.median(np.abs(np.array(ratios[replicated]) - 1)) <= most, replicated


def test_the_wall_is_told_where_there_is_one(judged):
    table, (_, first) = judged
    full, late = (table.waiting > 0) & table.together, (table.first_token > 5) & table.together
    assert (full & late).sum() > 0.9 * full.sum() > 15
    assert np.median(np.abs(first / table.first_token - 1)[full]) < 0.4


def test_the_stated_errors_are_those_of_the_rows(judged):
    table, (tokens, first) = judged
    good = table.together & ~contradicted(table.rows)
    for i, key in enumerate(ENGINES):
        stated, own = fitted("engines")[key]["left_out"], good & (table.engine == i)
        placed = own & (table.waiting == 0)
        assert stated["per_token"]["error"] == pytest.approx(
            off(tokens, table.per_token, own), abs=0.01
        )
        assert stated["first_token"]["error"] == pytest.approx(
            off(first, table.first_token, placed), abs=0.01
        )
