"""Where ticks go on a linear or a logarithmic axis, and what they say."""

import math

from .format import plain, prefixed, si


def linear_ticks(domain, unit, pixels, room, size):
    """[(value, text)], [] at steps of 1, 2 or 5 times a power of ten."""
    low, high = sorted(domain)
    for count in (8, 6, 5, 4, 3, 2):
        step = _step((high - low) / count)
        first = math.ceil(low / step - 1e-9)
        values = [step * k for k in range(first, math.floor(high / step + 1e-9) + 1)]
        ticks = [(value, tick_text(value, unit)) for value in values]
        if _fits(ticks, pixels, room, size):
            break
    return ticks, []


def log_ticks(domain, unit, pixels, room, size):
    """[(value, text)], [minor values]: powers of ten, thinned to every second, third ... where
    they are many; 1, 2, 5 where they are few.
    """
    low, high = sorted(domain)
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    if math.log10(high / low) < 0.5:
        return linear_ticks(domain, unit, pixels, room, size)
    if last - first < 2:
        values = [m * 10.0**k for k in range(first - 1, last + 1) for m in (1, 2, 5)]
        ticks = [
            (value, tick_text(value, unit))
            for value in values
            if low <= value * (1 + 1e-9) and value <= high * (1 + 1e-9)
        ]
        if _fits(ticks, pixels, room, size):
            return ticks, []
    # 1 ns, 1 µs, 1 ms rather than 1 ns, 100 ns, 10 µs
    for stride in (1, 3, 6, 9, 12) if prefixed(unit) else (1, 2, 3, 4, 6, 12):
        ticks = [
            (10.0**k, tick_text(10.0**k, unit)) for k in range(first, last + 1) if k % stride == 0
        ]
        if _fits(ticks, pixels, room, size):
            break
    steps = [1] if last - first > 5 else range(1, 10)
    minor = [m * 10.0**k for k in range(first - 1, last + 1) for m in steps]
    labelled = {value for value, _ in ticks}
    return ticks, [value for value in minor if low <= value <= high and value not in labelled]


def _fits(ticks, pixels, room, size):
    if room is not None:
        return len(ticks) <= max(room, 2)
    widest = max((len(text) for _, text in ticks), default=1) * 0.6 * size
    return len(ticks) * (widest + 16) <= pixels


def tick_text(value, unit):
    """Units with prefixes at each tick, others once in the axis' label."""
    if value == 0:
        return "0"
    return si(value, unit, 4) if prefixed(unit) or unit in ("%", "dollar") else plain(value, 4)


def _step(rough):
    power = 10.0 ** math.floor(math.log10(rough))
    return next(m * power for m in (1, 2, 5, 10) if m * power >= rough * (1 - 1e-9))
