"""The court of measurements: every law held against public rows of data.

A *set* is a table of public measurements with its origin (`sets.toml`, read by `sets.dataset`). A
*pairing* says which law is held against which set, what was fitted on what, and in which regimes
(`pairings/`). `residuals` counts how far off a law is, and `report` prints and draws it. What ships
is a stratified sample of each set; the full sets are read from a folder of checkouts.
"""

from lightspeed_show.lazy import lazy

__getattr__, __dir__, __all__ = lazy(
    __name__,
    {
        ".sets": ("Dataset", "dataset"),
        ".pairing": ("Judged", "Pairing", "pairings"),
        ".residuals": ("Residuals", "judged", "weigh"),
    },
)
