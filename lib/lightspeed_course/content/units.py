"""What the formulas of units.md call."""

WIDTHS = {"bf16": 2, "fp32": 4}
