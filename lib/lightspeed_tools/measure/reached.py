"""The roof that a record shows a machine to have reached, without what measures it."""

from dataclasses import dataclass

from lightspeed_tools.measure.instruments.latency_levels import binary
from lightspeed_tools.measure.instruments.latency_levels import levels as levels_of
from lightspeed_tools.measure.instruments.timing import Unavailable
from lightspeed_tools.measure.records import record


@dataclass(frozen=True)
class Roof:
    """A machine's measured roof: `peaks` (type -> FLOP/s), `bandwidths` (level -> byte/s)."""

    peaks: dict
    bandwidths: dict

    @property
    def memory(self):
        """Bandwidth (byte/s) of main memory, the last level; raises Unavailable if not measured."""
        if not self.bandwidths:
            raise Unavailable("This record has no bandwidth.", "Run `lightspeed measure roofline`.")
        return list(self.bandwidths.values())[-1]


def roof(machine):
    """A record's `Roof`; levels are flat stretches of seconds a byte, the last is memory."""
    peaks = _best(record.all_of(machine, "roofline.gemm"), "dtype")
    best = _best(record.all_of(machine, "roofline.bandwidth"), "size")
    sizes = sorted(best)
    levels = levels_of(sizes, [1 / best[size] for size in sizes]) if sizes else []
    named = {f"up to {binary(level.high)}": 1 / level.latency for level in levels[:-1]}
    if sizes:  # a ladder whose end is not flat still ends in memory
        named["memory"] = (
            1 / levels[-1].latency if levels and levels[-1].high == sizes[-1] else best[sizes[-1]]
        )
    return Roof(peaks, named)


def _best(quantities, parameter):
    """The largest median for each value of a parameter, of trusted ones if there are any."""
    groups = {}
    for q in quantities:
        groups.setdefault(q.parameters[parameter], []).append(q)
    return {
        value: max(q.value for q in [q for q in group if q.trusted] or group)
        for value, group in groups.items()
    }
