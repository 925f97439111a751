"""Tables of others, held to the laws: Megatron-Bridge's FLOPs and steps, MLPerf's latencies."""

import functools

import numpy as np
import pytest

from lightspeed_models.evidence.pairings import ironwood, megascale, megatron
from lightspeed_models.evidence.residuals import judged, weigh
from lightspeed_models.evidence.sets import Dataset, checked, dataset, read_csv, records, shipped

found = functools.cache(weigh)


def test_gpt_oss_was_counted_otherwise_before_a_release():
    """The same model, a sixth less."""
    one = found("megatron-flops")
    off = {
        release: {
            round(float(one.ratio[i]), 1)
            for i in range(one.all.rows)
            if "GPT OSS" in (name := one.judged.names(i)) and name.startswith(release)
        }
        for release in ("26.04", "26.06", "26.08")
    }
    assert off == {"26.04": {1.2}, "26.06": {1.0}, "26.08": {1.0}}


def test_shapes_have_the_parameters_that_their_makers_state():
    for name, billions, active in (("Qwen3_30B_a3B", 30.5, 3.3), ("GPT OSS 120B", 116.8, None)):
        shape = megatron.MODELS[name]
        assert abs(shape.parameters / 1e9 - billions) < 0.05, name
        assert active is None or abs(shape.active_parameters / 1e9 - active) < 0.06, name


def test_a_system_has_no_part_in_its_own_steps():
    rows, one = dataset("megatron_bridge"), found("step-megatron")
    assert len(one.judged.left) + one.all.rows == len(one.rows)
    slower = dict(rows.columns)
    own = rows["system"] == "DGX-H100"
    slower["rate"] = np.where(own, rows["rate"] / 2, rows["rate"])
    after = judged(one.pairing, Dataset(rows.record, slower)).judged
    mine = np.array(["DGX-H100" in one.judged.names(i) for i in range(one.all.rows)])
    assert mine.sum() > 10
    assert (after.predicted[mine] == one.judged.predicted[mine]).all()
    assert not (after.predicted[~mine] == one.judged.predicted[~mine]).all()


def test_steps_on_tpus_are_counted_by_shape_or_left():
    counted = found("ironwood-flops")
    assert counted.all.rows + len(counted.judged.left) == len(counted.rows) == 22
    left = {name.split(",")[0] for name, _ in counted.judged.left}
    assert left == {"gemma4-2b", "gemma4-4b", "wan2.1-14b"}
    # The printed times, tokens and rates are one measurement, but for what was rounded.
    rows = dataset("ironwood")
    tokens = rows["batch"] * rows["sequence"] / (rows["chips"] * rows["time"])
    printed = ~np.isnan(rows["rate"])
    assert printed.sum() == 21 and np.allclose(tokens[printed], rows["rate"][printed], rtol=0.01)
    for name, billions in (("gemma4-26b", 25.2), ("gemma4-31b", 30.7)):  # as published
        assert abs(ironwood.shape(name).parameters / 1e9 - billions) < 0.06, name


@pytest.mark.holds(
    "evidence", "Megatron-LM is expected to a tenth", "which overlaps what the law adds"
)
def test_twelve_thousand_gpus_are_shown_and_not_tuned_for():
    """MegaScale's Table 2. The share of the peak is that of another paper's run."""
    printed = found("megascale-flops")
    assert printed.all.rows == 16
    assert printed.regime("Megatron-LM").p90 < 0.007  # a digit of the printed times
    # Attention over a window needs less than is counted here, never more.
    assert 1 < printed.regime("MegaScale").ratios[0] < printed.regime("MegaScale").ratios[2] < 1.02
    plain = found("step-megascale").regime("Megatron-LM")
    assert plain.median < 0.07 and plain.p90 < 0.13
    overlapped = found("step-megascale").regime("MegaScale")  # what the law adds
    assert 1.1 < overlapped.ratios[0] < overlapped.ratios[2] < 1.35
    # Throughput as printed: tokens of a step over its time.
    rows = dataset("megascale")
    tokens = {(256, "Megatron-LM"): 39.3e3, (12288, "MegaScale"): 1984.0e3}
    for (gpus, system), rate in tokens.items():
        (own,) = np.flatnonzero((rows["devices"] == gpus) & (rows["system"] == system))
        assert abs(rows["batch"][own] * megascale.SEQUENCE / rows["time"][own] / rate - 1) < 0.002


def test_a_mean_that_cannot_be_is_a_sum_that_overflowed():
    """The rule asks only whether a mean can go with its median. What it refuses is what has too
    many nanoseconds for 64 bits, and nothing else in the table is.
    """
    record = records()["mlperf_inference"]
    printed = read_csv(record, shipped("mlperf_inference"))
    refused = np.zeros(len(printed["latency_mean"]), bool)
    refused[[one.row for one in checked(record, printed).refused]] = True
    assert refused.sum() == 93
    samples = printed["sample_rate"] * printed["latency_p99"] / 0.99 / 1e9
    offline = printed["scenario"] == "Offline"
    least = samples * printed["latency_median"] / 2**64
    assert (offline[refused]).all() and (least[refused] > 1).all()
    assert (least[offline & ~refused] < 1.1).all()
    # Put back a whole number of times 2^64, the mean of a steady burst is half of its last.
    wrapped = 2**64 / samples
    whole = np.round((printed["latency_median"] - printed["latency_mean"]) / wrapped)
    mended = (printed["latency_mean"] + whole * wrapped) / (printed["latency_p99"] / 0.99)
    assert abs(np.median(mended[refused]) - 0.5) < 0.005
