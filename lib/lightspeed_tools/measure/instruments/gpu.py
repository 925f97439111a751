"""A GPU through PyTorch: bandwidth of its memory, matrix products by type and shape, and what a
launch costs.

The authors could not run this: their machines have no GPU. It is short for that reason, and its
messages are tested.
"""

from lightspeed_models.cards import chip_of
from lightspeed_tools.measure.instruments.timing import Missing, Quantity, Unavailable, seconds_of

GIB = 2**30
SHAPES = {
    True: ((4096, 4096, 4096),),
    False: (
        (4096, 4096, 4096),
        (8192, 8192, 8192),
        (1, 8192, 8192),
        (64, 8192, 8192),
        (512, 8192, 8192),
    ),
}
# Catalog name of a peak -> PyTorch's type; tf32 is fp32 with the products rounded.
TYPES = {
    "bf16": "bfloat16",
    "fp16": "float16",
    "tf32": "float32",
    "fp32": "float32",
    "fp8": "float8_e4m3fn",
    "int8": "int8",
}


def measure(quick=True, report=None):
    """Measure the first CUDA device. Raises Unavailable without PyTorch or a GPU."""
    try:
        import torch
    except ImportError as error:
        raise Unavailable(
            "PyTorch is not installed, so a GPU cannot be measured.",
            "pip install torch, if this machine has a GPU; all else works without.",
        ) from error
    if not torch.cuda.is_available():
        raise Unavailable(
            "PyTorch sees no GPU.",
            "Nothing to do if there is none; else install the PyTorch that fits your driver.",
        )
    name = torch.cuda.get_device_name(0)
    if report:
        chip = chip_of(name)
        report(f"{name}; catalog: {chip.key if chip else 'no entry'}")
    quantities = [*_memory(torch, name), *_launches(torch, name)]
    for dtype in TYPES:
        for shape in SHAPES[quick]:
            try:
                quantities.append(_product(torch, dtype, shape, name))
            # a type that this device or PyTorch lacks
            except (RuntimeError, ValueError, AttributeError) as error:
                why = f"not on this device: {str(error).splitlines()[0][:120]}"
                quantities.append(Missing(f"gpu.gemm.{dtype}", why))
                break
        torch.cuda.empty_cache()
    return quantities


def _seconds(torch, call, repeat=15, least=0.02):
    """Seconds of a call on the GPU, by events around calls enough for `least` seconds."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def batch(loops):
        start.record()
        for _ in range(loops):
            call()
        end.record()
        end.synchronize()
        return start.elapsed_time(end) * 1e-3  # elapsed_time is in ms

    batch(3)
    loops = max(1, min(10_000, round(least / max(batch(3) / 3, 1e-7))))
    return [batch(loops) / loops for _ in range(repeat)]


def _memory(torch, name):
    """Copy and triad: every byte read and every byte written counts once."""
    free, _ = torch.cuda.mem_get_info()
    count = min(GIB, free // 8) // 4  # far larger than any L2
    a, b, c = (torch.ones(count, device="cuda") for _ in range(3))
    for key, call, arrays in (
        ("copy", lambda: a.copy_(b), 2),
        ("triad", lambda: torch.add(b, c, alpha=3.0, out=a), 3),
    ):
        rates = [arrays * 4 * count / t for t in _seconds(torch, call)]
        which = {"device": name, "size": 4 * count}
        yield Quantity(f"gpu.{key}_bandwidth", "byte/s", rates, which)


def _launches(torch, name):
    """An add of one element: the gap between launches by the GPU's clock, and the host's wait."""
    x = torch.zeros(1, device="cuda")

    def there_and_back():
        x.add_(1)
        torch.cuda.synchronize()

    apart, waits = _seconds(torch, lambda: x.add_(1)), seconds_of(there_and_back)
    yield Quantity("gpu.launch", "s", apart, {"device": name}, better="lower")
    yield Quantity("gpu.launch_host", "s", waits, {"device": name}, better="lower")


def _product(torch, dtype, shape, name):
    m, k, n = shape
    kind = getattr(torch, TYPES[dtype])
    if dtype == "int8":
        a, b = (torch.randint(-8, 8, s, dtype=kind, device="cuda") for s in ((m, k), (k, n)))
        call = lambda: torch._int_mm(a, b)  # noqa: E731
    elif dtype == "fp8":
        # columns first, as cuBLAS wants it
        a, b = (torch.randn(s, k, device="cuda").to(kind) for s in (m, n))
        b = b.t()
        one = torch.ones((), device="cuda")
        call = lambda: torch._scaled_mm(a, b, scale_a=one, scale_b=one, out_dtype=torch.bfloat16)  # noqa: E731
    else:
        a, b = (torch.randn(s, device="cuda").to(kind) for s in ((m, k), (k, n)))
        call = lambda: a @ b  # noqa: E731
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = dtype == "tf32"
    try:
        rates = [2 * m * k * n / t for t in _seconds(torch, call)]
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before
    which = {"device": name, "dtype": dtype, "m": m, "k": k, "n": n}
    return Quantity("gpu.gemm", "FLOP/s", rates, which, counted={"flops": 2 * m * k * n})
