"""Machines that `lightspeed measure` recorded, in the shape of accelerators; none where the tools
are not installed.
"""

from lightspeed.catalog import accelerator

try:
    from lightspeed_tools.measure.machine import hardware, measured, paths
except ModuleNotFoundError as missing:
    if not (missing.name or "").startswith("lightspeed_tools"):
        raise
    hardware = accelerator

    def measured():
        """No machine: the tools that measure are not here."""
        return {}

    paths = measured
