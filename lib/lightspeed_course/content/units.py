"""What the formulas of units.md call."""

from __future__ import annotations

WIDTHS = {"bf16": 2, "fp32": 4}
