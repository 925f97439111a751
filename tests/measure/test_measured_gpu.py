"""The GPU part on machines without one: devices, peaks, shares, messages."""

import importlib.util
import sys

import pytest

from lightspeed_tools.measure.instruments import gpu
from lightspeed_tools.measure.instruments.timing import Unavailable


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
