"""The split MLP between real processes, its prediction, and GPU parts without one."""

import importlib.util
import sys

import pytest

from lightspeed.catalog import accelerator
from lightspeed_tools.measure.instruments import gpu, launch, split_mlp
from lightspeed_tools.measure.instruments.timing import Quantity, Unavailable
from lightspeed_tools.measure.records import record

HAS_MPI = importlib.util.find_spec("mpi4py")


def split_rows(peak, link, slow=1.0, times=lambda time: [time] * 5, tokens=(16, 1024)):
    """A machine that obeys the laws, but for `times`; split ways take `slow` times longer."""

    def row(key, time, parameters, **counted):
        key, parameters = f"split.{key}", parameters | {"ranks": 2}
        return Quantity(key, "s", times(time), parameters, counted=counted)

    size = split_mlp.WIDTH * split_mlp.HIDDEN
    gradients = 2 * size * 4
    rows = [
        row("gemm", 2e9 / peak, {"n": 1000}, flops=2e9),
        row("all_reduce", gradients / link, {"size": gradients}),
    ]
    for n in tokens:
        states = n * split_mlp.WIDTH * 4
        rows.append(row("all_reduce", states / link, {"size": states}))
        for way, sent in (("tensor", states), ("data", gradients)):
            flops = split_mlp.FLOPS[way] * n * size
            time = slow * (flops / 2 / peak + sent / link)
            rows += [
                row(f"{way}_whole", flops / peak, {"tokens": n}, flops=flops),
                row(way, time, {"tokens": n}, flops=flops / 2, bytes=sent),
            ]
    return rows


def made_up(*machine, **more):
    return record.new(split_rows(*machine, **more))


def test_the_prediction_is_the_law():
    for found in split_mlp.splits(made_up(1e11, 4e9)):
        assert found.time == pytest.approx(found.predicted, rel=1e-4)  # a record keeps few digits
        assert found.speedup == pytest.approx(found.predicted_speedup, rel=1e-4)
        assert found.steady
    assert all(
        s.time == pytest.approx(1.5 * s.predicted, rel=1e-4)
        for s in split_mlp.splits(made_up(1e11, 4e9, slow=1.5))
    )


def test_only_the_split_of_data_gains_by_tokens():
    gain = {(s.way, s.tokens): s.predicted_speedup for s in split_mlp.splits(made_up(1e11, 4e9))}
    assert gain["tensor", 16] == pytest.approx(gain["tensor", 1024], rel=1e-4)
    assert gain["data", 16] < 1 < gain["data", 1024] < 2


def test_what_was_too_slow_is_left_out():
    whole = made_up(1e11, 4e9)
    part = {
        **whole,
        "quantities": [q for q in whole["quantities"] if q["key"] != "split.data_whole"],
    }
    assert {s.way for s in split_mlp.splits(part)} == {"tensor"}


@pytest.mark.slow
@pytest.mark.skipif(not HAS_MPI, reason="mpi4py is not installed: pip install '.[measure]'")
def test_the_split_mlp_is_the_whole_one(monkeypatch):
    said, real = [], split_mlp.answers
    monkeypatch.setattr(split_mlp, "answers", lambda *a: (said.append(x) or x for x in real(*a)))
    monkeypatch.setattr(split_mlp, "TOKENS", (16,))
    split_mlp.measure()  # raises Unavailable if a result differs
    assert {x["key"]: x["wrong"] for x in said if "wrong" in x} == dict.fromkeys(
        ("gemm", "tensor_whole", "tensor", "data_whole", "data", "all_reduce"), 0
    )


@pytest.mark.slow
@pytest.mark.skipif(not HAS_MPI, reason="mpi4py is not installed: pip install '.[measure]'")
def test_a_wrong_split_is_told(monkeypatch):
    real = split_mlp.answers
    monkeypatch.setattr(
        split_mlp, "answers", lambda *a: ({**said, "wrong": 1} for said in real(*a))
    )
    monkeypatch.setattr(split_mlp, "TOKENS", (16,))
    with pytest.raises(Unavailable, match="differs from the whole"):
        split_mlp.measure()


# ---------------------------------------------------------------- GPU


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("NVIDIA H100 80GB HBM3", "h100_sxm"),
        ("NVIDIA H100 PCIe", "h100_pcie"),
        ("NVIDIA H100 NVL", None),
        ("NVIDIA H200", "h200_sxm"),
        ("NVIDIA GH200 480GB", None),
        ("NVIDIA A100-SXM4-80GB", "a100_80gb"),
        ("NVIDIA A100-SXM4-40GB", "a100_40gb"),
        ("NVIDIA A100 80GB PCIe", None),
        ("NVIDIA A100-PCIE-40GB", None),
        ("Tesla V100-SXM2-32GB", "v100_sxm"),
        ("NVIDIA B200", "b200"),
        ("NVIDIA GB200", "gb200"),
        ("AMD Instinct MI300X", "mi300x"),
        ("AMD Instinct MI355X", "mi355x"),
        ("NVIDIA GeForce RTX 4090 D", None),
        ("NVIDIA GeForce RTX 4090", "rtx_4090"),
        ("NVIDIA A10", None),
        ("", None),
    ],
)
def test_a_device_is_found_in_the_catalog_or_not_at_all(name, key):
    assert gpu.catalog_key(name) == key


def test_every_key_of_the_table_is_in_the_catalog():
    for _, key in gpu.DEVICES:
        assert key is None or accelerator(key)


def test_peaks_are_dense_and_per_chip():
    h100 = accelerator("h100_sxm")
    found = gpu.peaks("NVIDIA H100 80GB HBM3")
    assert found["bf16"] == h100.bf16 != h100.bf16_sparse
    assert found["bandwidth"] == h100.hbm_bandwidth
    assert found["fp32"] == h100.fp32_vector and found["tf32"] == h100.tf32
    assert gpu.peaks("NVIDIA GeForce RTX 4090 D") == {}


def test_a_share_is_of_the_peak_of_its_type():
    name = "NVIDIA H100 80GB HBM3"
    h100 = accelerator("h100_sxm")
    product = Quantity("gpu.gemm", "FLOP/s", [h100.fp8 / 2] * 5, {"device": name, "dtype": "fp8"})
    copy = Quantity(
        "gpu.copy_bandwidth", "byte/s", [0.9 * h100.hbm_bandwidth] * 5, {"device": name}
    )
    assert gpu.share(product, name) == pytest.approx(0.5)
    assert gpu.share(copy, name) == pytest.approx(0.9)
    # it has no fp8, and another type does not stand in
    assert gpu.share(product, "NVIDIA A100-SXM4-80GB") is None
    assert gpu.share(copy, "an unknown GPU") is None


@pytest.mark.holds("measure", "all else works without")
def test_without_torch_the_message_says_what_is_left(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(Unavailable, match=r"PyTorch is not installed.*all else works without"):
        gpu.measure()


@pytest.mark.skipif(
    not importlib.util.find_spec("torch"), reason="PyTorch is not installed: pip install torch"
)
@pytest.mark.holds("measure", "PyTorch sees no GPU.")
def test_without_a_gpu_the_message_says_so():
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    with pytest.raises(Unavailable, match="PyTorch sees no GPU"):
        gpu.measure()


def test_the_environment_of_a_rank_has_one_thread():
    assert launch.clean({})["OMP_NUM_THREADS"] == "1"
