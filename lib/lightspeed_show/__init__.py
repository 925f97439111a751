"""How a law is drawn: charts as data, figures, tables, explorers; nothing heavy loads early."""

from lightspeed_show.lazy import lazy

__getattr__, __dir__, __all__ = lazy(
    __name__,
    {
        ".format": ("si", "human_time", "plain"),
        ".chart": (
            "Axis", "Line", "Points", "Bars", "Boxes", "Area", "Span", "Rule", "Text", "Chart",
            "human_axis",
        ),
        ".roof": ("roof_chart",),
        ".page": ("figure", "table"),
        ".formula": ("Formula",),
        ".explore": ("View", "explorer", "Choice", "Slider", "LogSlider", "Play", "Toggle"),
    },
)  # fmt: skip
