"""Where the numbers on a data sheet come from, and how to feel their size. Used in chapter 1.

Plain numbers in SI (Hz, byte/s, FLOP/s, s, m), arrays of them, or quantities.

Sources: Bekman, "Machine Learning Engineering", accelerators chapter (peak from clock);
Austin et al., "How to Scale Your Model", GPU chapter (links and switches).
"""

from lightspeed.elementwise import Result, Value
from lightspeed.law import count, law, nonnegative, positive

__all__ = (
    "bundle_bandwidth", "bus_bandwidth", "clock_from_peak", "human_scale", "peak_from_clock",
    "round_trip",
)  # fmt: skip


@law("FLOP/s", clock=positive("Hz"), flops_per_clock=count("FLOP"), units=count())
def peak_from_clock(clock: Value, flops_per_clock: Value, units: Value) -> Result:
    """FLOP/s of `units` engines that each complete `flops_per_clock` FLOPs per cycle of `clock`
    (Hz).

    >>> peak_from_clock(1.83e9, 1024, 528)
    989 TFLOP/s
    """
    return clock * flops_per_clock * units


@law("Hz", peak=positive("FLOP/s"), flops_per_clock=count("FLOP"), units=count())
def clock_from_peak(peak: Value, flops_per_clock: Value, units: Value) -> Result:
    """The clock (Hz) at which `units` engines of `flops_per_clock` FLOPs reach `peak` (FLOP/s).

    >>> round(clock_from_peak(80e12, 2, 18944) / 1e9, 2)
    2.11
    """
    return peak / (flops_per_clock * units)


@law("byte/s", clock=positive("Hz"), bus_bytes=positive("byte"), transfers_per_clock=count())
def bus_bandwidth(clock: Value, bus_bytes: Value, transfers_per_clock: Value = 2) -> Result:
    """byte/s of a memory bus `bus_bytes` wide, with two transfers (DDR) per cycle of `clock` (Hz)
    by default.

    >>> bus_bandwidth(3.996e9, 1024)
    8.18 TB/s
    """
    return clock * bus_bytes * transfers_per_clock


@law(
    "byte/s",
    links=count(),
    bandwidth=positive("byte/s", hint="Give one link's rate in one direction."),
)
def bundle_bandwidth(links: Value, bandwidth: Value) -> Result:
    """byte/s, one direction, of `links` parallel links of `bandwidth` (byte/s, one direction) each.

    >>> bundle_bandwidth(18, 25e9)
    450 GB/s
    """
    return links * bandwidth


@law("s", distance=positive("m"), speed=positive("m/s"))
def round_trip(distance: Value, speed: Value) -> Result:
    """Minimum time (s) to travel `distance` (m) and back at `speed` (m/s): no software can beat it.

    >>> round_trip(4000e3, 200e6)
    40 ms
    """
    return 2 * distance / speed


@law("s", time=nonnegative("s"), unit=positive("s"), felt_as=positive("s"))
def human_scale(time: Value, unit: Value, felt_as: Value) -> Result:
    """`time` (s) on a clock slowed down until `unit` (s) lasts `felt_as` (s).

    >>> human_scale(300e-9, 0.3e-9, 10)
    10,000 s
    """
    return time * (felt_as / unit)
