"""Two runs side by side: what differs between them, and by how much at each size."""

from dataclasses import dataclass
from typing import Any

from lightspeed_show.format import si

SAME = 0.05  # two runs of one machine differ by as much


@dataclass(frozen=True)
class Compared:
    """Two `Judged` runs of one collective, and (bytes, seconds, seconds) of common sizes."""

    first: Any
    second: Any
    times: tuple

    @property
    def ratios(self):
        """Return (bytes, time of the second run over that of the first)."""
        return [(size, b / a) for size, a, b in self.times]


def compare(first, second):
    """The `Compared` of two runs; None if they are not of one collective, or share no size."""
    if not first.verdicts or not second.verdicts or first.collective != second.collective:
        return None
    theirs = {v.size: v.time for v in second.verdicts}
    times = [(v.size, v.time, theirs[v.size]) for v in first.verdicts if v.size in theirs]
    return Compared(first, second, tuple(times)) if times else None


def alike(runs):
    """Return each run's `Compared` with the previous run on as many ranks and nodes."""
    pairs, before = [], {}
    for run in runs:
        key = (run.collective, run.n, run.nodes)
        if compared := before.get(key) and compare(before[key], run):
            pairs.append(compared)
        before[key] = run
    return pairs


def compared_in_words(compared, names=("the first run", "the second run")):
    """Describe two runs in lines: the largest size, the range, and what else differs."""
    one, other = names
    size, ratio = compared.ratios[-1]
    rates = [size / t for t in compared.times[-1][1:]]
    lines = [
        f"Compared: {compared.first.collective} at {si(float(size), 'byte')}: {other}"
        f" {_words(ratio)} {one} (algbw {si(rates[0], 'byte/s')}, then {si(rates[1], 'byte/s')})."
    ]
    low, high = (pick(compared.ratios, key=lambda r: r[1]) for pick in (min, max))
    if len(compared.times) > 1 and high[1] > (1 + SAME) * low[1]:
        lines.append(
            f"  Over the {len(compared.times)} sizes that both have, its time is from"
            f" {low[1]:.3g} ({si(float(low[0]), 'byte')}) to {high[1]:.3g}"
            f" ({si(float(high[0]), 'byte')}) times the other."
        )
    elif len(compared.times) > 1:
        lines.append(f"  It is so at all {len(compared.times)} sizes that both have.")
    differ = [
        f"{name}: {getattr(compared.first.facts, name).value} and"
        f" {getattr(compared.second.facts, name).value}"
        for name in ("ranks", "nodes")
        if getattr(compared.first.facts, name).value != getattr(compared.second.facts, name).value
    ]
    if compared.first.report.names != compared.second.report.names:
        differ.append("the devices")
    if differ:
        lines.append(f"  The runs differ in {'; '.join(differ)}: one does not repeat the other.")
    return lines


def _words(ratio):
    if ratio > 1 + SAME:
        return f"takes {ratio:.3g} times as long as"
    if ratio < 1 / (1 + SAME):
        return f"is {1 / ratio:.3g} times as fast as"
    return "takes as long, within 5 %, as"
