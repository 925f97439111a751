"""Names of GPUs as people write them, and cards of one's own."""

import pytest

from lightspeed.errors import BadArgument
from lightspeed_models.cards import EXAMPLE, SIX, card, cards


def test_names_as_people_write_them_are_read_rightly():
    named = {
        "h100_sxm": ("H100 80GB", "NVIDIA H100 80GB HBM3", "H100 SXM5", "h100"),
        "h100_pcie": ("h100-pcie",), "gh200": ("gh200", "GH200 96GB"),
        "gh200_144gb": ("GH200 144GB",),
        "l4": ("l4", "NVIDIA L4"), "l40s": ("L40S",), "t4": ("Tesla T4",), "a10g": ("A10G",),
        "a100_40gb": ("A100 40GB",), "a100_80gb": ("A100-SXM4-80GB", "a100"), "h20": ("h20",),
        "a100_64gb": ("A100 64GB",), "h200_sxm": ("H200 141GB",), "b200": ("B200", "b200_sxm"),
        "rtx_4090": ("RTX 4090", "4090"), "rtx_5090": ("GeForce RTX 5090",),
        "rtx_6000_ada": ("rtx 6000 ada",), "dgx_spark": ("DGX Spark",), "mi300x": ("MI300X",),
        "a100_pcie_40gb": ("A100-PCIE-40GB",), "a100_pcie_80gb": ("A100 PCIe", "A100 80GB PCIe"),
        "h100_nvl": ("H100 NVL", "NVIDIA H100 NVL 94GB"), "h200_nvl": ("H200 NVL",),
        "a800": ("A800-SXM4-80GB",), "v100_sxm_16gb": ("Tesla V100-SXM2-16GB",),
        "v100_sxm": ("V100 32GB",), "m1_max": ("apple m1 max",),
    }  # fmt: skip
    for key, names in named.items():
        assert {words: card(words)[0].key for words in names} == dict.fromkeys(names, key)
    assert {card(words)[1] for words in ("8xH100", "8x H100 80GB", "8 H100", "8×h100_sxm")} == {8}


def test_a_card_of_ones_own_has_six_numbers():
    own = card(EXAMPLE)[0]
    values = [float(own.numbers[SIX[name][0]]) for name in SIX if name != "fp4"]
    assert values == [48e9, 864e9, 181e12, 362e12, 32e9] and "fp4" not in own
    words = "memory=48GB,bandwidth=864GB/s,bf16=181TFLOPS"
    for none in ("link=0", "link=0GB/s", "link=none"):
        alone = card(f"{words},{none}")[0]
        assert "link_bandwidth" not in alone and alone.unsaid == ("fp4", "fp8"), none


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("H100 94GB", "80 GiB"), ("RTX 7090", "catalog"), ("b20", "b200"),
        ("RTX 4090 Laptop GPU", "laptop"), ("A800 80GB PCIe", "catalog"),
        ("memory=48GB", "bandwidth, bf16 too"), ("memory=48", "byte above 0"),
        ("speed=1GB/s", "memory"),
        ("memory=48TFLOPS", "byte above 0"), ("memory=0GB,bandwidth=1GB/s", "memory, bf16 too"),
    ],
)  # fmt: skip
def test_a_card_that_is_none_is_refused(words, says):
    with pytest.raises(BadArgument, match=says):
        card(words)


def test_every_card_has_what_a_roof_needs():
    for key, entry in cards().items():
        memory, bandwidth = float(entry.hbm_capacity), float(entry.hbm_bandwidth)
        assert 5e9 < memory < 1e12 and 1e11 < bandwidth < 4e13, key
        assert card(key)[0].key == key
