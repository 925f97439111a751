"""The expected time of a product: what it ends in, and what it can't beat."""

import itertools

import pytest

from lightspeed.catalog import accelerator, fitted
from lightspeed.errors import BadArgument
from lightspeed.roofline import time_bounds
from lightspeed_models.products import kernel, narrowing_bytes, product_time

H100 = accelerator("h100_sxm")
CHIP = (H100.bf16, H100.hbm_bandwidth)


def test_without_constants_it_is_the_roofline_with_a_round_corner():
    for flops, size in itertools.product((1e6, 1e9, 1e12), (1e3, 1e7, 1e10)):
        time = product_time(flops, size, 4096, *CHIP, H100.clock)
        lower = time_bounds(flops, size, *CHIP).lower
        assert lower <= time <= 2**0.5 * lower * (1 + 1e-12)


def test_no_kernel_beats_the_roofline():
    for key, classes in fitted("products").items():
        if key in ("source", "chips"):
            continue
        for chips, row in classes.items():
            for library in row["launch"]:
                constants = vars(kernel(key, chips, library))
                for flops, size in ((1e6, 1e3), (1e12, 1e10)):
                    time = product_time(flops, size, 512, *CHIP, H100.clock, **constants)
                    assert time > time_bounds(flops, size, *CHIP).lower, (key, chips, library)


def test_latencies_are_cycles():
    empty = product_time(0.0, 0.0, 4096, *CHIP, 1e9, launch=3000, loop=4000)
    assert empty == pytest.approx(7e-6)
    assert product_time(0.0, 0.0, 4096, *CHIP, 2e9, launch=3000, loop=4000) == pytest.approx(3.5e-6)
    # four times the depth, twice the loop
    deeper = product_time(0.0, 0.0, 4 * 4096, *CHIP, 1e9, launch=3000, loop=4000)
    assert deeper == pytest.approx(11e-6)


def test_activations_are_made_narrow_before_the_product():
    """Bytes at the rate of memory, after which the product takes what it takes."""
    moved = narrowing_bytes(512, 1024, narrow_bytes=1, wide_bytes=2, reads=2)
    assert moved == 512 * 1024 * (2 + 2 + 1)
    args = (1e9, 1e6, 1024, *CHIP, H100.clock)
    plain = product_time(*args, memory_share=0.5)
    with_it = product_time(*args, memory_share=0.5, narrowed=moved)
    assert with_it - plain == pytest.approx(moved / (H100.hbm_bandwidth * 0.5))
    with pytest.raises(BadArgument, match="reads"):
        narrowing_bytes(512, 1024, reads=0)


def test_wrong_names_are_answered():
    with pytest.raises(BadArgument, match="bfloat16"):
        kernel("bf16")
    with pytest.raises(BadArgument, match="hopper"):
        kernel("fp8", "ampere")
    with pytest.raises(BadArgument, match="launch"):
        product_time(1e9, 1e6, 64, *CHIP, 1e9, launch=-1.0)
