"""What the formulas of profile.md call."""

KINDS = {"compute": 0, "communication": 1, "copy": 2}


def part(name, **tracks):
    """Seconds of a part of the account, of tracks such as compute=[(0.0, 0.01)]."""
    from lightspeed_tools.trace.account import parts  # the other questions stand without the tools

    rows = [
        (round(start * 1e9), round(end * 1e9), KINDS[kind])
        for kind, spans in tracks.items()
        for start, end in spans
    ]
    account = parts(sorted(rows))
    return (account.end - account.start if name == "span" else getattr(account, name)) * 1e-9


def two(name, first, collective, last):
    """A part of a step in which a product, a collective and a product ran, as (start, end)."""
    return part(name, compute=[first, last], communication=[collective])


def largest(**values):
    """The name of the largest value."""
    return max(values, key=values.__getitem__)


def rounded_idle(n, period, lead):
    """Idle seconds shown by a tool that rounds starts up and ends down to whole µs."""
    starts = [round((period * k + lead) * 1e9) for k in range(n + 1)]
    ends = [start - round(lead * 1e9) for start in starts[1:]]
    starts_up = [-(-start // 1000) for start in starts[1:]]
    return sum(start - end // 1000 for start, end in zip(starts_up, ends, strict=True)) * 1e-6


def replayed(own, other, transfer):
    """Return how many times longer a step is than if both ranks computed as long as `own`."""
    return (max(own, other) + transfer) / (own + transfer)
