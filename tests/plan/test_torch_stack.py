"""The stack of PyTorch FSDP: fitted again, and held to frameworks that had no part in it."""

import numpy as np
import pytest

from lightspeed.catalog import fitted
from lightspeed_models.evidence.pairings import products, torch_fsdp
from lightspeed_models.evidence.residuals import weigh
from lightspeed_models.evidence.sets import dataset
from lightspeed_models.llm import decoder
from lightspeed_models.plan import Plan
from lightspeed_models.stack import fsdp_stack, stack
from lightspeed_models.training_step import work
from lightspeed_tools.plan.inputs import cluster_of


def rows_of_catalog():
    table = fitted("stacks")["pytorch_fsdp"]
    return table["fitted"] | table["variants"]


def test_the_catalog_has_what_the_rows_give():
    """To what rows can tell: a tenth of the interval, and no constant outside of its own."""
    again = torch_fsdp.fitted(torch_fsdp.runs())
    assert again.keys() == rows_of_catalog().keys()
    for name, row in rows_of_catalog().items():
        value = min(again[name], 1.0) if name == "ampere" else again[name]
        assert value == pytest.approx(row["value"], abs=0.1 * (row["high"] - row["low"])), name
        assert row["low"] <= row["value"] <= row["high"]
    shipped = stack("pytorch_fsdp")
    for name, value in vars(torch_fsdp.COUNTED).items():
        if name not in (*torch_fsdp.START, "gradient_bytes"):
            assert getattr(shipped, name) == value, name


def test_a_framework_left_out():
    """The target: at most 10 % each, nine tenths of its rows within 25, 8 % in the mean."""
    every, expected = torch_fsdp.runs(), torch_fsdp.left_out()
    off = {}
    for run, time in zip(every, expected, strict=True):
        off.setdefault(run.framework, []).append(abs(time / run.timed.time - 1))
    medians = {name: np.median(each) for name, each in off.items()}
    assert len(off) == 4 and max(medians.values()) <= 0.10, medians
    assert max(np.quantile(each, 0.9) for each in off.values()) <= 0.25
    error = fitted("stacks")["pytorch_fsdp"]["error"]
    assert np.mean(list(medians.values())) == pytest.approx(error, abs=0.002) and error < 0.08
    assert weigh("step-frameworks").all.rows == 61


def test_a_framework_has_no_part_in_its_own_steps(monkeypatch):
    own = torch_fsdp.FOUNDRY
    before = torch_fsdp.left_out.__wrapped__()
    every = torch_fsdp.runs()
    halved = tuple(
        torch_fsdp.replace(r, timed=torch_fsdp.replace(r.timed, time=r.timed.time / 2))
        if r.framework == own else r
        for r in every
    )  # fmt: skip
    monkeypatch.setattr(torch_fsdp, "runs", lambda: halved)
    after = torch_fsdp.left_out.__wrapped__()
    mine = np.array([r.framework == own for r in every])
    assert np.allclose(after[mine], before[mine]) and not np.allclose(after[~mine], before[~mine])


def test_what_is_not_said_lies_between():
    eager, unsaid, compiled = (fsdp_stack("h100_sxm", True, on) for on in (False, None, True))
    assert eager.passes > unsaid.passes > compiled.passes == stack("pytorch_fsdp").passes
    assert fsdp_stack("h100_sxm", False, False) == fsdp_stack("h100_sxm", False, True)
    assert (
        fsdp_stack("a100_80gb", True).attention
        == fsdp_stack("h100_sxm", True, kernel="cudnn").attention
    )


def test_large_products_of_each_chip():
    """What a chip reaches is in the catalog where its class is not within 3 % of it."""
    rows, chips = dataset("gemm"), fitted("products")["chips"]
    for kind, table in chips.items():
        for chip, share in table.items():
            if chip != "a100_40gb":  # the same chip as with 80 GB
                count, found = products.share_of_chip(rows, chip, kind)
                assert count >= 12 and found == pytest.approx(share, abs=0.0051), (kind, chip)
    whole = fitted("products")["bfloat16"]["all"]["compute_share"]
    for chip in {"h100_sxm", "h200_sxm", "gb300"}:
        assert products.share_of_chip(rows, chip, "bfloat16")[1] == pytest.approx(whole, rel=0.03)


def test_context_parallelism_is_that_of_the_stack():
    """PyTorch's gradients of K and V go round in fp32: twice the bytes on two GPUs that Megatron's
    have, beside the two gathers.
    """
    model, machine = decoder("llama3_8b"), cluster_of("h100:16").machine
    ours, theirs = (
        work(model, 8192, Plan(data=8, context=2, stage=3), machine, one).context
        for one in (stack("pytorch_fsdp"), stack("megatron_h100"))
    )
    assert ours / theirs == pytest.approx((2 * 2 + 4 * 2) / (3 * 2))
