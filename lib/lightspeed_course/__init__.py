"""What makes a page live: drawings, explorers, questions, measurements, and the tools that build
the course.

    from lightspeed_course import ask, check, figure, predict, reveal, table

These are the verbs of a page; the laws are in `lightspeed`. Nothing heavy loads before it is used.
"""

from lightspeed_course.lazy import lazy

__getattr__, __dir__, __all__ = lazy(
    __name__,
    {
        "practice.ask": ("ask",),
        "practice.check": ("check", "diagnose"),
        "practice.predict": ("calibration", "predict", "reveal"),
        "practice.cards": ("cards",),
        "practice.own_numbers": ("own_numbers",),
        "practice.progress": ("progress",),
        "practice.today": ("today",),
        "incidents.exercise": ("incident_sheet",),
        "incidents.room": ("incident",),
        "show.format": ("human_time", "plain", "si"),
        "show.chart": (
            "Area",
            "Axis",
            "Bars",
            "Boxes",
            "Chart",
            "Line",
            "Points",
            "Rule",
            "Span",
            "Text",
            "human_axis",
        ),
        "show.roof": ("roof_chart",),
        "show.page": ("figure", "table"),
        "show.sweep": ("sweep",),
        "show.explore": ("Choice", "LogSlider", "Slider", "Toggle", "View", "explorer"),
        "evidence.residuals": ("weigh",),
        "evidence.page": ("residual_chart",),
        "measure.records.record": ("shipped",),
        "measure.pages.record_tables": ("compare_here", "measure_here", "row", "show_recorded"),
        "wrong_claims": ("gallery",),
    },
)
