"""What makes a page live: drawings, explorers, questions, measurements.

    from lightspeed_course import ask, check, figure, predict, reveal, table

These are the verbs of a page; the laws are in `lightspeed`. Nothing heavy loads before it is used.
"""

from lightspeed_show.lazy import lazy

__getattr__, __dir__, __all__ = lazy(
    __name__,
    {
        ".practice.ask": ("ask",),
        ".practice.check": ("check", "diagnose"),
        ".practice.predict": ("calibration", "predict", "reveal"),
        ".practice.cards": ("cards",),
        ".practice.own_numbers": ("own_numbers",),
        ".practice.progress": ("progress",),
        ".practice.today": ("today",),
        ".practice.incident_question": ("incident_sheet",),
        ".practice.incident_room": ("incident",),
        ".practice.bench": ("bench",),
        ".content.wrong_claims": ("gallery",),
        ".in_torch": ("beside",),
        "lightspeed_show.format": ("human_time", "plain", "si"),
        "lightspeed_show.chart": (
            "Area", "Axis", "Bars", "Boxes", "Chart", "Line", "Points", "Rule", "Span", "Text",
            "human_axis",
        ),
        "lightspeed_show.roof": ("roof_chart",),
        "lightspeed_show.page": ("figure", "table"),
        "lightspeed_show.sweep": ("sweep",),
        "lightspeed_show.explore": ("Choice", "LogSlider", "Slider", "Toggle", "View", "explorer"),
        "lightspeed_models.evidence.residuals": ("weigh",),
        "lightspeed_models.evidence.page": ("residual_chart",),
        "lightspeed_models.evidence.sets": ("dataset",),
        "lightspeed_models.evidence.nccl_pictures": (
            "busbw_over_nodes", "busbw_over_size", "residual_rows",
        ),
        "lightspeed_tools.measure.records.record": ("shipped",),
        "lightspeed_tools.measure.pages.record_tables": (
            "compare_here", "measure_here", "row", "show_recorded",
        ),
        "lightspeed_tools.measure.pages.machine_figures": (
            "in_flight", "ladder_figure", "ladder_findings", "peaks_table", "roofline_figure",
            "roofline_table",
        ),
        "lightspeed_tools.measure.pages.network_figures": (
            "collectives_figure", "collectives_findings", "collectives_table",
        ),
    },
)  # fmt: skip
