"""How reality is timed: this machine beside the laws. Nothing heavy loads before it is used.

`instruments/` time one thing each (`timing` says what a measurement is), `runner` runs them,
`environment` and `conditions` say on what and how far to trust it, `records/` keeps and compares,
`pages/` shows, and `machine` makes of a record the hardware that explorers offer.
"""

from lightspeed_show.lazy import lazy

__getattr__, __dir__, __all__ = lazy(
    __name__,
    {
        ".instruments.timing": ("LIMIT", "Missing", "Quantity", "Unavailable", "seconds_of"),
        ".records.record": (
            "NotMeasured",
            "RecordError",
            "all_of",
            "find",
            "latest",
            "load",
            "save",
            "shipped",
        ),
        ".runner": ("measure",),
        ".machine": ("as_accelerator", "hardware"),
        ".pages.record_tables": ("compare_here", "measure_here", "row", "show_recorded"),
    },
)
