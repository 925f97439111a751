"""A roofline as a chart: one flat roof, a slope for each bandwidth, and the kernels under them."""

from .chart import Axis, Chart, Line, Points, Rule
from .format import si

SLOPE_COLORS = ("blue", "purple", "sky")


def roof_chart(
    peak,
    bandwidths,
    kernels=(),
    x=(0.1, 1e4),
    y=(1e11, 1e15),
    peak_name="peak",
    moving=False,
    marks=(),
    title="",
    drag=(None, None),
):
    """The chart of `peak` (FLOP/s, or None where there is none) over `bandwidths` (name -> byte/s).

    `kernels`: name -> intensity in FLOP/byte; each is drawn where the first bandwidth allows it,
    with drop lines if it is the one that moves (see Points for `drag`). `marks` are drawn
    underneath. `x` and `y` are the domains.
    """
    low, high = x
    slopes = []
    for (name, bandwidth), color in zip(bandwidths.items(), SLOPE_COLORS, strict=False):
        end = min(high, peak / bandwidth) if peak else high
        rates, words = (low * bandwidth, end * bandwidth), f"{name}, {si(bandwidth, 'byte/s')}"
        slopes.append(Line((low, end), rates, words, color, label_at="along"))
    roof = []
    if peak:
        ridges = [peak / b for b in bandwidths.values()]
        words = f"{peak_name}, {si(peak, 'FLOP/s')}"
        roof = [
            Line((min(ridges), high), (peak, peak), words, "green", label_at="above"),
            *[Rule(x=r, label=f"ridge {r:.{0 if r >= 10 else 1}f}") for r in ridges if r < high],
        ]
    first = next(iter(bandwidths.values()))
    look = {"color": "orange", "size": 8 if moving else 5, "drop": moving, "drag": drag}
    points = [
        Points((i,), (min(i * first, peak or i * first),), labels=(name,), **look)
        for name, i in dict(kernels).items()
    ]
    return Chart(
        Axis("arithmetic intensity", "FLOP/byte", "log", domain=x),
        Axis("attainable", "FLOP/s", "log", domain=y),
        (*marks, *slopes, *roof, *points),
        title=title,
    )
