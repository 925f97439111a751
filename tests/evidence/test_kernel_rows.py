"""Kernels whose rows do not ship: a few made up, by hand, and what was counted on all."""

import csv
import itertools
import json
from importlib.resources import files

import pytest

from lightspeed.catalog import accelerator
from lightspeed_models.evidence.pairing import pairings
from lightspeed_models.evidence.pairings.experts import BACK, OUT
from lightspeed_models.evidence.residuals import counted, to_count, weigh
from lightspeed_models.evidence.samplers.__main__ import count
from lightspeed_models.evidence.sets import dataset, records

DEVICE = {"framework": "any", "version": "1", "device": "NVIDIA H200"}
SHAPE = {"isl": 1, "tp_size": 1, "kv_cache_dtype": "bfloat16", "kernel_source": "k"}
LAYER = {"model": "deepseek-ai/DeepSeek-V3.2", "gemm_type": "bfloat16"}
STATE = {"phase": "generation", "num_v_heads": 64, "head_k_dim": 128, "head_v_dim": 128}
DEVICES = {"NVIDIA H200": "h200_sxm", "NVIDIA B200": "b200"}
TABLES = {
    "generation_mla": [DEVICE | SHAPE | {"num_heads": 128, "batch_size": 64, "step": 65535}],
    "mla_generation_module": [
        DEVICE | SHAPE | LAYER | {"model": "deepseek-ai/DeepSeek-V3"}
        | {"num_heads": 16, "batch_size": 64, "step": 65535}
    ],
    "dsa_generation_module": [
        DEVICE | SHAPE | LAYER | {"num_heads": 128, "batch_size": 64, "step": 65535},
        DEVICE | SHAPE | LAYER | {"model": "of nobody", "num_heads": 1, "batch_size": 1, "step": 1},
    ],
    "gdn": [
        DEVICE | STATE | {"batch_size": 256, "kernel_source": name, "model_name": "m"}
        for name in ("causal_conv1d_update", "fused_recurrent_gated_delta_rule_packed_decode")
    ],
    "kda": [
        DEVICE | STATE | {"batch_size": 256, "kernel_source": "chunk_kda", "model_name": "m"}
        | {"phase": "context"}
    ],
}  # fmt: skip


def write(folder, name, rows):
    with open(folder / f"{name}_perf.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


@pytest.fixture
def folder(tmp_path):
    for name, rows in TABLES.items():
        write(tmp_path, name, [row | {"latency": 10} for row in rows])
    return tmp_path


def test_each_kind_is_read_and_bounded_by_hand(folder):
    rows = dataset("attention_kinds", folder)
    kinds = ["latent", "latent layer", "sparse layer", "gated delta"]
    assert list(rows["kind"]) == kinds  # convolutions and prompts stay out
    assert rows.reasons() == {"the shape of the model is not known": 1}
    h200 = accelerator("h200_sxm")
    token, tokens, batch = 576 * 2, 65536, 64
    layer = 7168 * 1536 + 1536 * 16 * 192 + 7168 * 576 + 512 * 16 * 256 + 16 * 128 * 7168
    whole = 7168 * 1536 + 1536 * 128 * 192 + 7168 * 576 + 512 * 128 * 256 + 128 * 128 * 7168
    index = 1536 * 64 * 128 + 7168 * (128 + 64)
    expected = [
        batch * 128 * 2 * (576 + 512) * tokens / h200.bf16,
        (batch * token * tokens + 2 * layer) / h200.hbm_bandwidth,
        (batch * (2048 * token + tokens * 132) + 2 * (whole + index)) / h200.hbm_bandwidth,
        2 * 256 * 64 * 128 * 128 * 4 / h200.hbm_bandwidth,
    ]
    found = weigh("attention-kinds", folder)
    assert found.judged.predicted == pytest.approx(expected)
    assert list(found.judged.regime) == [f"{kind}, h200_sxm" for kind in kinds]


def test_what_is_counted_comes_back_without_its_rows(folder, tmp_path):
    told = to_count(weigh("attention-kinds", folder))
    file = tmp_path / "counted.json"
    count(file, "attention_kinds", folder)
    assert json.loads(file.read_text()) == {"attention-kinds": told}
    assert told["rows"] == 4 and told["errors"][0]["beaten"] == 0


@pytest.fixture
def exchanges(tmp_path):
    """Made by the law: 40 µs and 15 GB/s an SM, or 16 µs and half of the link."""
    for name in ("normal", "ll"):
        suffix = "avg_t_us" if name == "ll" else "transmit_us"
        rows = []
        for (device, chip), nodes in itertools.product(DEVICES.items(), (1, 2)):
            for tokens in (1, 8, 32, 1024, 8192, 32768):
                row = {"framework": "sglang", "version": "1", "device": device, "node_num": nodes}
                row |= {"hidden_size": 7168, "num_token": tokens, "num_topk": 8}
                row |= {"num_experts": 256, "dispatch_sms": 20, "combine_sms": 20}
                for way, width in (("dispatch", OUT), ("combine", BACK)):
                    copies = 8 if name == "ll" else 8 * (1 - (7 / 8) ** 8)
                    size = tokens * copies * 7 / 8 * 7168 * width if tokens > 32 else 0
                    link = accelerator(chip).link_bandwidth
                    rate, start = (link / 2, 16) if name == "ll" else (20 * 15e9, 40)
                    row[f"{way}_{suffix}"] = start + 1e6 * size / rate
                rows.append(row)
        write(tmp_path, f"wideep_deepep_{name}", rows)
    return tmp_path


def test_what_made_the_times_of_exchanges_is_found_on_the_other_chip(exchanges):
    found = weigh("expert-exchange", exchanges)
    large = found.judged.measured > 50e-6
    assert found.ratio[large] == pytest.approx(1, rel=0.01)
    assert len(found.judged.left) == len(found.judged.predicted) == 48


def test_exchanges_of_a_chip_left_out_are_expected_and_sms_say_more_than_links():
    for error in weigh("expert-exchange").by_regime:
        assert error.median < (0.25 if error.regime.startswith("normal") else 0.45), error.regime


def test_experts_are_read_once_each_and_rows_that_read_fewer_stand_out():
    found = weigh("expert-products")
    doubted = found.regime("nvfp4 in SGLang 0.5.9 and 0.5.10")
    others = [e for e in found.by_regime if e.regime.startswith(("reading", "multiplying"))]
    assert doubted.beaten > 3 * max(error.beaten for error in others)
    assert all(error.beaten == 0 for error in others if error.regime.startswith("multiplying"))


def test_products_of_experts_by_hand(tmp_path):
    row = DEVICE | {"moe_dtype": "bfloat16", "distribution": "balanced", "num_tokens": 16}
    row |= {"hidden_size": 7168, "inter_size": 2048, "topk": 8, "num_experts": 256}
    row |= {"moe_tp_size": 2, "moe_ep_size": 1, "latency": 5}
    others = [row | {"distribution": "power_law_1.2"}, row | {"moe_ep_size": 8}]
    write(tmp_path, "moe", [row, *others])
    (predicted,) = weigh("expert-products", tmp_path).judged.predicted
    read = 16 * 8 * 3 * 7168 * 1024 * 2 + 16 * 7168 * (2 + 2)  # no two tokens share an expert
    assert predicted == pytest.approx(read / accelerator("h200_sxm").hbm_bandwidth)


@pytest.mark.holds("docs/evidence.md", "counted on all of their rows")
def test_what_does_not_ship_was_counted_on_all_of_it():
    told = json.loads(files("lightspeed_models.evidence").joinpath("counted.json").read_text())
    unshipped = {key for key, one in pairings().items() if not records()[one.set].ships}
    assert set(told) == unshipped
    for key in unshipped:
        found = counted(pairings()[key])
        everything, *regimes = told[key]["errors"]
        assert sum(error["rows"] for error in regimes) == everything["rows"] <= len(found.rows)
        assert len(found.rows) + sum(found.rows.reasons().values()) == found.rows.record.full_rows


def test_no_step_beats_the_bytes_of_its_kind_but_of_one_kernel():
    found = weigh("attention-kinds")
    for error in found.by_regime:
        if error.regime.startswith("short"):
            assert error.beaten < 0.01 and error.excused == 1
        elif "unpacked" in error.regime:
            assert error.ratios[2] < 1.2
        else:
            assert error.beaten == 0, error.regime
    sparse, latent = (
        [e.ratios[1] for e in found.by_regime if e.regime.startswith(f"{kind} layer")]
        for kind in ("sparse", "latent")
    )
    # Picking tokens saves bytes, and adds kernels that do not run at the speed of memory.
    assert max(sparse) < min(latent)
