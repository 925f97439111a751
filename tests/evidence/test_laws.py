"""What the measurements say of each law, and that no row was predicted by itself."""

import functools
import importlib
import json
from dataclasses import replace

import numpy as np
import pytest

from lightspeed_models.evidence.chips import FORMATS
from lightspeed_models.evidence.pairing import Judged, pairings
from lightspeed_models.evidence.pairings import scaling
from lightspeed_models.evidence.pairings.arrivals import blocks, variation
from lightspeed_models.evidence.pairings.roofline import KINDS
from lightspeed_models.evidence.report import furthest
from lightspeed_models.evidence.residuals import judged, weigh
from lightspeed_models.evidence.sets import Dataset, dataset, records
from lightspeed_models.evidence.word_column import Words

found = functools.cache(weigh)


def regime(key, name):
    return found(key).regime(name)


# What the measurements say: of a pairing and a regime, in figures of its `Error`.
CLAIMS = {
    "roofline-gemm": {  # a bound is beaten only where the cache explains it
        "compute-bound": "beaten == 0",
        "memory-bound": "beaten < 0.01",
        "memory-bound, within two L2 caches": "beaten < 0.05",
        "under 0.1 ms": "beaten < 0.02 and excused > 0.9",
    },
    "nccl-bound": {"all": "0 < beaten < 0.001 and excused == 1"},  # the switch may add
    "energy-token": {"all": "beaten == 0"},
    "step-megatron-bound": {"all": "beaten == 0"},
    "step-megascale-bound": {"all": "beaten == 0"},
    "ironwood-bound": {"all": "beaten == 0"},
    "kv-bandwidth": {  # the law exposes the tables of one library, until a release
        "TensorRT-LLM before 1.3.0rc20": "beaten > 0.2 and p95 < 2",
        "TensorRT-LLM 1.3.0rc20": "beaten < 0.03",
        "vLLM": "beaten < 0.03",
        "SGLang": "beaten < 0.03",
    },
    "little-serving": {"steady (p99 under 1.5 medians)": "rows == 133 and 0.98 < p50 < 1"},
    "little-burst": {"1 ms and more": "median < 0.01", "all": "median < 0.01"},
    "poisson-waits": {"Azure conv": "median < 0.25", "Azure code": "p95 < 0.2"},
    "mfu-6pd": {"16,384 tokens and more": "median > 0.5"},
    "amdahl-mlperf": {"all": "rows > 170 and median < 0.2 and 0.86 < covered < 0.96"},
    "usl-mlperf": {"all": "0.86 < covered < 0.96"},
    "linear-mlperf": {"all": "median > 0.3"},  # no law at all is worse
    "critical-batch": {
        "between measured batches": "median < 0.06",
        "all": "rows > 200 and p90 < 0.25",
    },
    "nccl-alpha-beta": {"all": "median < 0.13"},
    "expert-exchange": {"all": "median < 0.15"},
    "served-elsewhere": {"all": "median <= 0.27", "other models without experts": "median <= 0.2"},
    "step-megatron": {
        "all": "rows > 190 and median < 0.2",
        "no experts, fp8": "median < 0.13",
        "no experts, fp4": "median < 0.13",
    },
    "megatron-flops": {  # printed FLOPs follow from shapes
        "experts": "rows > 70 and median < 0.003 and p90 < 0.01",
        "no experts": "rows > 70 and median < 0.003 and p90 < 0.01",
    },
    "ironwood-flops": {"no windows": "rows == 14 and p90 < 1e-5", "windows": "p90 < 0.01"},
}


@pytest.mark.parametrize("key", CLAIMS)
def test_what_the_measurements_say(key):
    for name, claim in CLAIMS[key].items():
        error = regime(key, name)
        figures = vars(error) | dict(zip(("p5", "p50", "p95"), error.ratios, strict=True))
        assert eval(claim, {}, figures), (name, claim, error)


def test_every_pairing_names_a_law_a_set_and_a_chapter():
    for key, one in pairings().items():
        module, _, name = one.law.rpartition(".")
        assert callable(getattr(importlib.import_module(module), name)), key
        assert one.chapter in {f"{n:02}" for n in range(1, 12)}, key
        assert one.bound in ("", "least", "most"), key
        assert bool(one.excuse) <= bool(one.bound), key
        assert found(key).rows.record is records()[one.set], key
    assert {one.set for one in pairings().values()} == set(records()), "a set without a law"


def test_residuals_are_what_a_loop_finds():
    rng = np.random.default_rng(3)
    measured = rng.uniform(1, 2, 60)
    predicted = measured * rng.uniform(0.5, 1.5, 60)
    words = Words.of(rng.choice(["a", "b"], 60))
    one = replace(
        pairings()["roofline-gemm"],
        judge=lambda rows: Judged(
            predicted, measured, words, str, predicted * 0.8, predicted * 1.2, measured > 1.5
        ),
    )
    result = judged(one, dataset("fsdp"))
    for error in (result.all, *result.by_regime):
        rows = [i for i in range(60) if error.regime in ("all", words[i])]
        off = sorted(abs(predicted[i] / measured[i] - 1) for i in rows)
        assert error.rows == len(rows)
        assert error.median == pytest.approx(np.median(off))
        beyond = [i for i in rows if predicted[i] > 1.02 * measured[i]]
        assert error.beaten == pytest.approx(len(beyond) / len(rows))
        excused = [i for i in beyond if measured[i] > 1.5]
        assert error.excused == pytest.approx(len(excused) / len(beyond))
        inside = [i for i in rows if 0.8 * predicted[i] <= measured[i] <= 1.2 * predicted[i]]
        assert error.covered == pytest.approx(len(inside) / len(rows))
    furthest = max(range(60), key=lambda i: predicted[i] / measured[i])
    assert result.worst[0] == (
        str(furthest),
        pytest.approx(predicted[furthest] / measured[furthest]),
    )


# ------------------------------------------------------------------ bounds


def test_cards_with_a_large_cache_beat_memory_more_often():
    beaten = found("roofline-gemm").judged
    over = beaten.predicted > 1.02 * beaten.measured
    chips = found("roofline-gemm").rows["chip"]
    # Cards with GDDR and a large cache beside it do it more often than all with stacked memory.
    gddr = chips.isin(("l40s", "rtx_pro_6000", "arc_b60"))
    assert over[gddr].mean() > 10 * over[~gddr].mean()


def test_narrow_formats_reach_less_of_their_own_roof():
    rows, judged_ = found("roofline-gemm").rows, found("roofline-gemm").judged
    share = {}
    for kind in ("bfloat16", "fp8", "nvfp4"):
        own = (
            (rows["format"] == kind)
            & (rows["chip"] == "b200")
            & (judged_.regime == "compute-bound")
        )
        share[kind] = np.median(judged_.predicted[own] / judged_.measured[own])
    assert share["bfloat16"] > share["fp8"] > share["nvfp4"]
    assert 0.35 < share["nvfp4"] < 0.55 < share["bfloat16"] < 0.75


def test_a_narrow_format_keeps_its_promise_to_memory_and_breaks_that_of_arithmetic():
    """By format, over every chip; a format that products are in has a name for readers."""
    one = found("roofline-formats")
    assert set(KINDS) == set(FORMATS)
    assert (one.ratio == found("roofline-gemm").ratio).all()
    assert sum(error.rows for error in one.by_regime) == one.all.rows
    share = {
        (kind, bound): np.median(one.ratio[(one.rows["format"] == kind) & (bounds == bound)])
        for bounds in (found("roofline-gemm").judged.regime,)
        for kind in ("bfloat16", "nvfp4")
        for bound in ("memory-bound", "compute-bound")
    }
    assert share["nvfp4", "memory-bound"] > 0.8 * share["bfloat16", "memory-bound"]
    assert share["nvfp4", "compute-bound"] < 0.7 * share["bfloat16", "compute-bound"]


def test_the_shares_that_the_catalog_states_are_those_of_the_rows():
    from lightspeed.catalog import find

    def share(chip, regime_):
        rows, of = found("roofline-gemm").rows, found("roofline-gemm").judged
        own = (rows["chip"] == chip) & (rows["format"] == "bfloat16") & (of.regime == regime_)
        return np.median(found("roofline-gemm").ratio[own])

    for chip, said in find("roof_share_bf16").numbers.items():
        assert share(chip, "compute-bound") == pytest.approx(said, abs=0.001), chip


# ------------------------------------------------------------------ estimates


def test_a_median_is_no_mean():
    names = ("steady (p99 under 1.5 medians)", "p99 of 1.5 to 4 medians", "p99 above 4 medians")
    steady, middle, skewed = (regime("little-serving", name).ratios[1] for name in names)
    assert steady > middle > skewed


def test_every_printed_mfu_is_reproduced_with_attention_counted():
    assert found("mfu-attention").all.rows == 216
    judged_ = found("mfu-attention").judged
    assert np.abs(judged_.predicted / judged_.measured - 1).max() < 3e-4


def test_intervals_cover_in_each_regime():
    for key in ("amdahl-mlperf", "usl-mlperf"):
        assert all(error.covered > 0.85 for error in found(key).by_regime), key


def test_every_batch_size_is_judged_or_listed_with_a_reason():
    one = found("critical-batch")
    rows = one.rows
    said = (rows["batch"] > 0) & (rows["samples"] > 0)
    of = list(zip(rows["benchmark"], rows["batch"], said, strict=True))
    points = {(name, batch) for name, batch, told in of if told}
    assert one.all.rows + len(one.judged.left) == len(points) + (~said).sum()
    assert all(reason for _, reason in one.judged.left)


def test_chat_comes_at_random_and_code_in_bursts():
    rows = dataset("arrivals")
    times = {name: rows["time"][rows["trace"] == name] for name in ("Azure code", "Azure conv")}
    assert variation(times["Azure conv"]) == pytest.approx(1.1, abs=0.05)
    assert variation(times["Azure code"]) > 10
    assert sum(len(part) for _, _, part in blocks(rows)) <= len(rows)


def test_a_chip_without_peers_has_no_alpha_and_beta():
    assert not any("l40s" in name for name, _ in found("nccl-alpha-beta").worst)


# ------------------------------------------------------------------ no row predicts itself


def changed(rows, mask, by=10.0, column="latency"):
    columns = dict(rows.columns)
    columns[column] = np.where(mask, columns[column] * by, columns[column])
    return Dataset(rows.record, columns, rows.refused)


@pytest.mark.holds("docs/evidence.md", "no row is predicted by itself")
def test_a_chip_has_no_part_in_its_own_prediction():
    one, rows = pairings()["nccl-alpha-beta"], dataset("nccl")
    rows = rows.where(rows["operation"] == "all_reduce")
    before = one.judge(rows)
    for chip in ("h100_sxm", "b200"):
        after = one.judge(changed(rows, rows["chip"] == chip))
        same = np.array(
            [name.startswith(chip) for name in map(before.names, range(len(before.measured)))]
        )
        assert same.sum() > 100
        assert (after.predicted[same] == before.predicted[same]).all()
        assert not (after.predicted[~same] == before.predicted[~same]).all()


def test_a_chip_alone_has_no_one_to_predict_it():
    """A stranger's table of one chip: a reason, and no answer made of its own rows."""
    rows = dataset("gemm")
    rows = rows.where(rows["chip"] == "gb300")
    for key in ("product-time", "product-time-narrow"):
        with pytest.raises(ValueError, match=f"{key}: none of the .* rows says enough"):
            judged(pairings()[key], rows)
    assert judged(pairings()["roofline-gemm"], rows).all.rows == len(rows)


def test_the_largest_system_has_no_part_in_its_own_prediction():
    rows = dataset("mlperf_training")
    before = scaling.largest_from_smaller(rows, scaling.amdahl)
    last = [one.largest for one in scaling.series(rows)]
    faster = np.isin(np.arange(len(rows)), last)
    after = scaling.largest_from_smaller(changed(rows, faster, 0.99, "time"), scaling.amdahl)
    assert (after.predicted == before.predicted).all()
    assert after.measured == pytest.approx(before.measured * 0.99)
    # An interval comes from other benchmarks alone.
    bert = (rows["benchmark"] == "bert") & faster
    after = scaling.largest_from_smaller(changed(rows, bert, 0.99, "time"), scaling.amdahl)
    own = np.array(["bert" in before.names(i) for i in range(len(before.low))])
    assert own.sum() > 10 and (after.high[own] == before.high[own]).all()


def test_fits_find_what_made_the_times():
    n = np.array([8.0, 16, 64, 512])
    assert scaling.amdahl(n, 5 + 800 / n)(4096) == pytest.approx(5 + 800 / 4096)
    time = 100 * (1 + 0.02 * (n - 1) + 1e-5 * n * (n - 1)) / n
    assert scaling.usl(n, time)(2048) == pytest.approx(
        100 * (1 + 0.02 * 2047 + 1e-5 * 2048 * 2047) / 2048
    )
    assert scaling.amdahl(n, 800 / n**1.2)(1024) <= 800 / 512**1.2  # superlinear: no serial part


def test_an_interval_by_ranks_covers_as_often_as_it_says():
    rng = np.random.default_rng(5)
    inside = []
    for _ in range(1000):
        *seen, new = rng.lognormal(0, 0.4, 40).tolist()
        low, high = scaling.conformal(np.array(seen))
        inside.append(low <= new <= high)
    assert np.mean(inside) == pytest.approx(0.9, abs=0.03)


# ------------------------------------------------------------------ what a user sees


def test_the_command(tmp_path, capsys):
    from lightspeed_cli.main import main

    out = tmp_path / "out.json"
    assert main(["evidence", "little-serving", "--json", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "lightspeed.queueing.concurrency" in printed and "133" in printed
    (told,) = json.loads(out.read_text())
    assert told["rows"] == 838 and told["all"]["median_error"] < 0.12
    assert main(["evidence", "concurrency", "--json", str(out)]) == 2  # a file is never overwritten
    assert "exists" in capsys.readouterr().err
    assert main(["evidence", "litle-serving"]) == 2
    assert "did you mean little-serving?" in capsys.readouterr().err
    assert main(["evidence", "gemm", "--data", str(tmp_path)]) == 2
    assert "gemm" in capsys.readouterr().err


@pytest.mark.slow
def test_the_page_fetches_nothing_and_ranks_what_cannot_be_predicted():
    from lightspeed_models.evidence.page import ranking, to_html

    shown = [found(key) for key in ("little-serving", "mfu-6pd", "energy-token")]
    text = to_html(shown)
    assert "<script" not in text and "src=" not in text
    assert all(one.pairing.title in text.replace("&#39;", "'") for one in shown)
    assert [one.pairing.key for one in ranking(shown)] == ["mfu-6pd", "little-serving"]


def test_a_bound_that_holds_has_nothing_beyond_it():
    words = {key: furthest(found(key)) for key in ("energy-token", "nccl-bound", "mfu-6pd")}
    assert words == {
        "energy-token": "Closest to it",
        "nccl-bound": "Furthest beyond it",
        "mfu-6pd": "Furthest off",
    }
