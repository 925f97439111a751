"""Published rows of serving: what is read of them, refused, fitted, and expected of the unseen."""

import numpy as np
import pytest

from lightspeed_models.evidence.pairings import served as pairing
from lightspeed_models.evidence.samplers.tables import _held_out
from lightspeed_models.evidence.served_fit import contradicted, engines_of, fit, spread
from lightspeed_models.evidence.sets import dataset
from lightspeed_models.inference_step import engine
from lightspeed_models.served import BEATEN, ENGINES, TWICE, Refused, measured, measured_rows

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


@pytest.fixture(scope="module")
def judged():
    return pairing.judged(dataset("served_models"))


def test_no_row_that_is_held_out_ships():
    rows = pairing.printed(dataset("served_models"))
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
    ],
)
def test_a_row_that_says_too_little_is_refused_by_name(change, reason):
    with pytest.raises(Refused, match=reason):
        measured(ROW | change)


def test_twice_and_faster_than_the_bound():
    rows = [ROW, ROW, ROW | {"silicon_tpot_ms": "0.5"}, ROW | {"silicon_ttft_ms": "101"}]
    found, refused = measured_rows(rows)
    assert list(found) == [0, 3] and refused == {1: TWICE, 2: BEATEN}


def test_the_shipped_engines_are_what_the_rows_give(judged):
    _, table, _, _ = judged
    again = engines_of(fit(table.part(table.together & ~contradicted(table.rows))))
    for key in ENGINES:
        for name in ("share", "math", "host", "expert_host", "front", "ahead", "reading", "crowd"):
            assert getattr(again[key], name) == pytest.approx(getattr(engine(key), name), rel=2e-3)


def test_what_is_expected_of_models_that_no_constant_has_seen(judged):
    """The targets: 14 % between tokens where prompts are read on the same GPUs, 25 % elsewhere; 35
    % to the first token of a closed loop, which is met on the same GPUs only.
    """
    _, table, (tokens, first), _ = judged

    def off(told, measured, mask):
        return np.median(np.abs(told[mask] / measured[mask] - 1))

    together = table.together
    assert together.sum() > 2000 and (~together).sum() > 100
    assert off(tokens, table.per_token, together) < 0.14
    assert off(tokens, table.per_token, ~together) < 0.25
    assert off(first, table.first_token, together) < 0.35
    assert off(first, table.first_token, ~together) > 0.35


def test_an_interval_of_80_percent_holds_75_to_85(judged):
    found = pairing.tokens(dataset("served_models"))
    inside = (found.low <= found.measured) & (found.measured <= found.high)
    assert 0.75 < inside.mean() < 0.85
    found = pairing.first(dataset("served_models"))
    inside = (found.low <= found.measured) & (found.measured <= found.high)
    assert 0.75 < inside.mean() < 0.85


def test_the_stated_interval_and_errors_are_those_of_the_rows(judged):
    from lightspeed_tools.serve.plan import errors

    _, table, times, _ = judged
    pairs = ("per_token", table.per_token, times[0]), ("first_token", table.first_token, times[1])
    for name, measured_, told in pairs:
        ratio = (measured_ / told)[table.together]
        low, high = spread(ratio, table.model[table.together])
        for i, key in enumerate(ENGINES):
            stated, own = errors(key)[name], table.together & (table.engine == i)
            assert (stated["low"], stated["high"]) == pytest.approx((low, high), rel=5e-3)
            error = np.median(np.abs(told[own] / measured_[own] - 1))
            assert stated["error"] == pytest.approx(error, abs=2e-3), (key, name)


def test_spread_weighs_models_by_the_root_of_their_rows():
    ratio = np.array([1.0] * 100 + [2.0] * 4)
    model = np.array(["a"] * 100 + ["b"] * 4)
    assert spread(ratio, model) == (1.0, 2.0)  # roots 10 and 2: b is the upper sixth
    assert spread(ratio[:0], model[:0]) == (0.0, float("inf"))
