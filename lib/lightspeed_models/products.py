"""The time of a matrix product to expect, where the roofline says what no kernel beats. Derived in
chapter 2.

The two clocks of the roofline run at shares of their rates and blur where they meet; before them
come a launch and the loop over the contracted dimension. Launch and loop are latencies, so they are
counted in cycles of the chip's clock. Four constants a number format, class of chip and library:
catalog/fitted_products.toml. A narrow product also has to make its activations narrow, unless they
come so: a pass over memory before it, of bytes that are counted.

Sources: Williams, Waterman and Patterson, "Roofline" (CACM 52(4), 2009); the rows and the fit are
those of `lightspeed evidence product-time`.
"""

import functools
from dataclasses import dataclass, replace
from typing import Any

from lightspeed.catalog import Entry, find, fitted
from lightspeed.elementwise import Result, Value
from lightspeed.errors import one_of
from lightspeed.law import ELEMENT_BYTES, check_fields, count, law, nonnegative, positive
from lightspeed.roofline import BANDWIDTH, PEAK, SHARE

# The depth at which `loop` is counted. Kernels cut a deep product into parts that run at once, so
# the loop grows as the root of the depth: cutting d into p parts takes d / p + p.
DEPTH = 4096
CYCLES = nonnegative(hint="Cycles of the chip's clock: 3 us at 1.8 GHz are 5,400.")


@law(
    "s",
    flops=nonnegative("FLOP"),
    size=nonnegative("byte"),
    depth=count(hint="The contracted dimension of the product, K or D."),
    peak=PEAK,
    bandwidth=BANDWIDTH,
    clock=positive("Hz"),
    compute_share=SHARE,
    memory_share=SHARE,
    launch=CYCLES,
    loop=CYCLES,
    narrowed=nonnegative("byte"),
)
def product_time(
    flops: Value,
    size: Value,
    depth: Value,
    peak: Value,
    bandwidth: Value,
    clock: Value,
    compute_share: Value = 1.0,
    memory_share: Value = 1.0,
    launch: Value = 0.0,
    loop: Value = 0.0,
    narrowed: Value = 0.0,
) -> Result:
    """Seconds of a matrix product: its launch, its loop, and both clocks at their shares.

    The two meet in a corner as the sides of a right angle do; far from it the longer is all. With
    shares of one, no latency and nothing `narrowed` before it (bytes, as `narrowing_bytes` counts
    them) the result is within a factor of 1.42 of the roofline.

    >>> product_time(6e12, 0.0, 4096, 1e15, 3e12, 1.8e9, compute_share=0.75)
    8 ms
    """
    rate = bandwidth * memory_share
    math, memory, before = flops / (peak * compute_share), size / rate, narrowed / rate
    return (launch + loop * (depth / DEPTH) ** 0.5) / clock + before + (math**2 + memory**2) ** 0.5


@law(
    "byte",
    B=count(),
    D=count(),
    narrow_bytes=ELEMENT_BYTES,
    wide_bytes=ELEMENT_BYTES,
    reads=count(hint="Twice where the scale of a row or tensor must be found before it is used."),
)
def narrowing_bytes(
    B: Value, D: Value, narrow_bytes: Value = 1, wide_bytes: Value = 2, reads: Value = 1
) -> Result:
    """Bytes of making activations X[B, D] narrow: they are read wide, `reads` times, and written.

    >>> narrowing_bytes(1024, 4096, reads=2)
    21 MB
    """
    return B * D * (reads * wide_bytes + narrow_bytes)


@dataclass(frozen=True)
class Kernel:
    """What a library's products reach in a format: shares and cycles of `product_time`."""

    compute_share: float
    memory_share: float
    launch: float
    loop: float

    def __post_init__(self) -> None:
        check_fields(self, SHARE, "compute_share", "memory_share")
        check_fields(self, CYCLES, "launch", "loop")


@dataclass(frozen=True)
class Rates:
    """What a chip's products run at: the `Kernel` of their format, the `clock` (Hz), the bytes of
    an element, and the FLOP/s of what stays in 16 bits: of logits (`wide`), and of causal attention
    over long sequences (`scores`), half of it at a length of `ramp` tokens; narrow heads run at
    the power `narrow` of their width over 128.
    """

    kernel: Kernel
    clock: float
    element_bytes: float
    wide: float
    scores: float
    ramp: float
    narrow: float

    def __post_init__(self) -> None:
        check_fields(self, positive("Hz"), "clock")
        check_fields(self, ELEMENT_BYTES, "element_bytes")
        check_fields(self, PEAK, "wide", "scores")
        check_fields(self, nonnegative(), "ramp", "narrow")


# Format of training -> what it is called in the table of kernels, and bytes of an element.
FORMATS = {
    "bf16": ("bfloat16", 2.0), "fp16": ("bfloat16", 2.0), "fp8": ("fp8", 1.0),
    "fp4": ("nvfp4", 0.5),
}  # fmt: skip
CLASSES = {"h": "hopper", "gh": "hopper", "b": "blackwell", "gb": "blackwell"}
HOPPER_CLOCK = 1.83e9  # where the catalog says no clock: cycles are few beside the rest


def rates(gpu: str | Entry, precision: str = "bf16", like: str = "") -> Rates | None:
    """The `Rates` of a chip of the catalog, or of an entry of one's own, in a format of training;
    None where no kernel of its class was measured and none is named that it should be `like`.

    >>> rates("h100_sxm").wide < find("h100_sxm").numbers["bf16"]
    True
    >>> rates("trainium2", "fp8") is None
    True
    """
    name, element_bytes = FORMATS[one_of("rates", "precision", precision, tuple(FORMATS))]
    classes = _tables()[name]
    entry = find(gpu) if isinstance(gpu, str) else gpu
    gpu, sheet = entry.key, entry.numbers
    chip = gpu.partition("_")[0].rstrip("0123456789")
    family = "all" if "all" in classes else like or CLASSES.get(chip, "")
    half = next((kind for kind in ("bf16", "fp16") if kind in sheet), None)
    if family not in classes or half is None:
        return None
    library = "SGLang" if "SGLang" in classes[family]["launch"] else "TensorRT-LLM"
    wide, chips = float(sheet[half]), _tables(chips=True)
    clock = float(sheet.get("clock", HOPPER_CLOCK))
    own = fitted("attention")
    scores = own.get(CLASSES.get(chip, ""), own["all"])
    one = kernel(name, family, library)
    one = replace(one, compute_share=chips.get(name, {}).get(gpu, one.compute_share))
    share = chips["bfloat16"].get(gpu, kernel("bfloat16").compute_share)
    return Rates(
        one, clock, element_bytes, wide * share, wide * scores["share"], scores["ramp"],
        scores["narrow"],
    )  # fmt: skip


def kernel(number_format: str, chips: str = "all", library: str = "SGLang") -> Kernel:
    """The `Kernel` of a format, a class of chips and a library, as fitted.

    >>> kernel("bfloat16").compute_share > kernel("fp8", "hopper").compute_share
    True
    """
    tables = _tables()
    classes = tables[one_of("kernel", "number_format", number_format, tuple(tables))]
    row = classes[one_of("kernel", "chips", chips, tuple(classes))]
    launch = row["launch"][one_of("kernel", "library", library, tuple(row["launch"]))]
    return Kernel(row["compute_share"], row["memory_share"], launch, row["loop"])


@functools.cache
def _tables(chips: bool = False) -> dict[str, Any]:
    """The table of formats, or the shares of `chips` in some of them."""
    tables: dict[str, Any] = dict(fitted("products"))
    own = tables.pop("chips")
    return own if chips else {name: one for name, one in tables.items() if name != "source"}
