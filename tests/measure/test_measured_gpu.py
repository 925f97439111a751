"""The GPU part on machines without one: devices, peaks, shares, messages."""

import importlib.util
import sys

import pytest

from lightspeed.catalog import accelerator
from lightspeed_tools.measure.instruments import gpu
from lightspeed_tools.measure.instruments.timing import Quantity, Unavailable


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
