"""This machine's own roofline, and real kernels under it. Chapter 2.

The roofs are rates that something here reached: the best matrix product of each type, and at each
working-set size the best of four loops that move bytes. FLOPs and bytes are counted by the laws,
never by the hardware's counters.
"""

from dataclasses import dataclass

import numpy as np

from lightspeed import roofline as law
from lightspeed_tools.measure.environment import importable, usable_cores
from lightspeed_tools.measure.instruments import kernels, latency_levels, memory_and_io
from lightspeed_tools.measure.instruments.timing import Missing, Quantity, Unavailable, seconds_of
from lightspeed_tools.measure.reached import roof
from lightspeed_tools.measure.records import record, trust

# loops whose best rate is the bandwidth; axpy updates a vector in place
MOVERS = ("read", "copy", "triad", "axpy")
LOOPS = ("dot", "axpy", "relu", "fused", "unfused")
# levels of memory nearer than by this factor are one slope, that of the larger
APART = 1.6
WIDTH = {"fp64": 8, "fp32": 4, "bf16": 2, "int8": 1}
NUMPY = {"fp64": np.float64, "fp32": np.float32}
SIDES = (64, 128, 256, 512, 1024, 2048, 4096)  # of the matrices in a product
NOISY = "cross"  # the mark of what does not repeat, in every figure of measurements
# kernel -> (name, color, marker)
DRAWN = {
    "dot": ("dot product", "green", "diamond"),
    "axpy": ("axpy", "black", "circle"),
    "relu": ("ReLU", "purple", "square"),
    "fused": ("fused chain", "amber", "star"),
    "unfused": ("the chain in three passes", "sky", "triangle"),
    "gemv": ("matrix times vector", "grey", "square"),
}
NAMES = {kernel: name for kernel, (name, *_) in DRAWN.items()}
LOOKS = {name: look for name, *look in DRAWN.values()}


def measure(quick=True, report=None):
    """Peaks, bandwidths and kernels here, [Quantity | Missing]: `roofline.gemm` and `.kernel` in
    FLOP/s (OP/s), `counted`; `.bandwidth` in byte/s over `size` bytes.
    """
    say, quantities = report or (lambda text: None), []
    for key, name, part in (
        ("gemm", "matrix products by type and size", gemms),
        ("gemm", "matrix products in torch", torch_gemms),
        ("bandwidth", "bandwidth over the working set", bandwidths),
        ("kernel", "kernels", loops),
    ):
        say(name)
        try:
            quantities += part(quick)
        except Unavailable as reason:
            quantities.append(Missing(f"roofline.{key}", reason.why, reason.remedy))
    return quantities


def gemms(quick=True):
    """Measure square products in numpy, in fp32 and fp64, on all cores."""
    quantities = []
    for dtype in NUMPY:
        for n in SIDES[: -1 if quick else None]:
            quantities.append(gemm(dtype, n, quick))
            # s; the next takes eight times as long
            if quantities[-1].counted["flops"] / quantities[-1].value > (0.2 if quick else 1.0):
                break
    return quantities


def gemm(dtype, n, quick=True):
    """Measure a product of two n by n matrices in numpy, on all threads of its BLAS."""
    x, y = np.random.default_rng(0).random((2, n, n)).astype(NUMPY[dtype])
    out = np.empty_like(x)
    return _gemm(lambda: np.matmul(x, y, out=out), dtype, n, usable_cores(), "numpy", quick)


def torch_gemms(quick=True):
    """Measure square products in torch, if installed: fp32, bf16, int8 into int32."""
    torch = importable("torch")
    if not torch:
        raise Unavailable(
            "torch is not installed, so there are no products in bf16 and int8.",
            "Install it with: pip install torch",
        )
    quantities, n = [], 1024 if quick else 2048
    how = n, torch.get_num_threads(), "torch", quick
    for dtype, kind in (("fp32", torch.float32), ("bf16", torch.bfloat16)):
        x = torch.ones(n, n, dtype=kind)
        quantities.append(_gemm(lambda x=x: x @ x, dtype, *how))
    x = torch.ones(n, n, dtype=torch.int8)
    columns = x.t().contiguous().t()
    try:
        quantities.append(_gemm(lambda: torch._int_mm(x, columns), "int8", *how))
    except (AttributeError, RuntimeError) as error:
        why = f"int8: this torch has no such product ({type(error).__name__})."
        quantities.append(Missing("roofline.gemm", why))
    return quantities


def _gemm(product, dtype, n, threads, library, quick):
    width = WIDTH[dtype]
    size = law.matmul_bytes(n, n, n, width, width, 4 if dtype == "int8" else width)
    seconds = seconds_of(product, 7 if quick else 15, least=0.002)
    counted = {"flops": law.matmul_flops(n, n, n), "bytes": size}
    parameters = {"dtype": dtype, "n": n, "threads": threads, "library": library}
    return _rate("roofline.gemm", seconds, counted, parameters)


def bandwidths(quick=True):
    """Measure the rates of all MOVERS for each working set, on all cores, in fp64."""
    threads = usable_cores()
    smallest = 4096 * threads
    quantities = []
    for size in latency_levels.sizes(max(64 * smallest, _far(quick)), smallest):
        for name in MOVERS:
            seconds, counted = kernels.samples(name, threads, size, np.float64, 9 if quick else 21)
            rates = [counted["bytes"] / t for t in seconds]
            parameters = {"kernel": name, "size": size, "threads": threads}
            quantities.append(Quantity("roofline.bandwidth", "byte/s", rates, parameters))
    return quantities


def loops(quick=True):
    """Measure kernels over huge fp32 vectors, and a matrix-vector product, on all cores."""
    threads, size, quantities = usable_cores(), _far(quick), []
    for name in LOOPS:
        seconds, counted = kernels.samples(name, threads, size, np.float32, 15 if quick else 31)
        which = {"kernel": name, "dtype": "fp32", "threads": threads}
        which["library"] = "numba"
        quantities.append(_rate("roofline.kernel", seconds, counted, which))
    n = int((size / 4) ** 0.5)
    matrix = np.ones((n, n), np.float32)
    vector = np.ones(n, np.float32)
    out = np.empty(n, np.float32)
    seconds = seconds_of(
        lambda: np.matmul(matrix, vector, out=out), 15 if quick else 31, least=0.002
    )
    counted = {"flops": law.matmul_flops(1, n, n), "bytes": law.matmul_bytes(1, n, n, 4, 4, 4)}
    which = {"kernel": "gemv", "dtype": "fp32", "n": n, "threads": threads, "library": "numpy"}
    return [*quantities, _rate("roofline.kernel", seconds, counted, which)]


def _rate(key, seconds, counted, parameters):
    unit = "OP/s" if parameters["dtype"] == "int8" else "FLOP/s"
    return Quantity(key, unit, [counted["flops"] / t for t in seconds], parameters, counted=counted)


def _far(quick):
    """Bytes of vectors that no cache holds, as long as the free memory allows."""
    return 2 * memory_and_io.far_size(quick)


# ---------------------------------------------------------------- conclusions


@dataclass(frozen=True)
class Point:
    """A kernel: intensity (FLOP/byte), rate and the roof above it (FLOP/s), and whether its
    spread and its neighbours allow a conclusion.
    """

    name: str
    intensity: float
    rate: float
    roof: float
    trusted: bool

    @property
    def share(self):
        return self.rate / self.roof


def emulated(machine):
    """Return the types whose torch products are slower than fp32's and so are emulated."""
    torch = {
        q.parameters["dtype"]: q.value
        for q in record.all_of(machine, "roofline.gemm", library="torch")
    }
    return [dtype for dtype in torch if WIDTH[dtype] < 4 and torch[dtype] < torch["fp32"]]


def points(shown):
    """Return a record's fp32 kernels and products as `Point`s under its roof, by intensity."""
    machine = roof(shown)
    measured = [(NAMES[q.parameters["kernel"]], q) for q in record.all_of(shown, "roofline.kernel")]
    most = max(
        (q.parameters["threads"] for q in record.all_of(shown, "roofline.gemm", library="numpy")),
        default=1,
    )
    measured += [
        (f"matmul, n = {q.parameters['n']}", q)
        for q in record.all_of(shown, "roofline.gemm", library="numpy", dtype="fp32", threads=most)
    ]
    dots, doubted = [], trust.doubts([q for _, q in measured])
    for name, q in measured:
        intensity = law.arithmetic_intensity(q.counted["flops"], q.counted["bytes"])
        above = law.attainable(intensity, machine.peaks["fp32"], machine.memory)
        steady = q.trusted and q.label not in doubted
        dots.append(Point(name, intensity, q.value, above, steady))
    return sorted(dots, key=lambda p: p.intensity)


def machine_chart(shown, title=""):
    """A record's roofline as a chart: slopes of levels, roofs of fp32 and fp64, kernels."""
    from lightspeed_show import Line, Points, roof_chart, si

    machine, kernels_seen = roof(shown), points(shown)
    peak = machine.peaks["fp32"]
    low, high = 0.02, 3000
    marks = [
        Line(
            (machine.peaks[d] / machine.memory, high),
            (machine.peaks[d],) * 2,
            f"{d}, {si(machine.peaks[d], 'FLOP/s')}",
            "grey",
            dash=True,
            label_at="above",
        )
        for d in machine.peaks
        if d in ("fp64", "bf16")
    ]
    # Main memory is the roof above vectors that fit nowhere else; the caches are slopes beside it.
    *near, (name, memory) = machine.bandwidths.items()
    apart, below = [], memory
    for level, bandwidth in reversed(near):
        # else neither the slopes nor their labels could be told apart
        if bandwidth > APART * below:
            apart.append((level, bandwidth))
            below = bandwidth
    for (level, bandwidth), color in zip(apart, ("purple", "amber", "grey", "sky"), strict=False):
        ends = (low, peak / bandwidth, peak / memory)
        marks.append(
            Line(
                ends,
                (low * bandwidth, peak, peak),
                f"{level}, {si(bandwidth, 'byte/s')}",
                color,
                dash=True,
                label_at="along",
            )
        )
    products = [p for p in kernels_seen if p.name.startswith("matmul, ")]
    loops = [p for p in kernels_seen if p not in products]
    marks += [
        Points(
            [p.intensity],
            [p.rate],
            p.name if p.trusted else f"{p.name}, too noisy",
            color=LOOKS[p.name][0],
            marker=LOOKS[p.name][1] if p.trusted else NOISY,
        )
        for p in loops
    ]
    steady, noisy = ([p for p in products if p.trusted is kind] for kind in (True, False))
    for kind, words, marker in ((steady, "", "circle"), (noisy, ", too noisy", NOISY)):
        if kind:
            more = f" to {kind[-1].name.rpartition(' ')[2]}" if len(kind) > 1 else ""
            x, y = zip(*((p.intensity, p.rate) for p in kind), strict=True)
            label = f"{kind[0].name}{more}{words}"
            marks.append(Points(x, y, label, color="orange", marker=marker))
    top = max([*machine.peaks.values(), *(p.rate for p in kernels_seen)]) * 3
    return roof_chart(
        peak,
        {name: memory},
        x=(low, high),
        y=(min(p.rate for p in kernels_seen) / 4, top),
        peak_name="fp32",
        marks=marks,
        title=title,
    )
