"""A counting machine: programs of blocks over arrays, run exactly, counted by what crosses.

A kernel is a Python function in the words of `tl`, which are Triton's. `launch` runs one program
for each place of a grid, in pure Python and without numpy, and returns a `Launch`: each load and
store with the sectors of memory that it touches. Counts of bytes, a model of the L2 cache, races,
diagnoses and pictures all follow from that one record. Two modes: with *values*, small and exact;
without, real sizes, where only shapes and addresses exist.

Not modelled: the L1 cache across loads, bank conflicts, pages of DRAM, multicast, clusters, clocks,
and the rounding of narrow formats.

    arrays.py     Array and Pointer: what a kernel is given
    indices.py    integers: places in an array, and masks
    blocks.py     numbers on the chip, and the FLOPs that they take
    accesses.py   one load or store: bytes, lanes, lines, sectors
    tl.py         the words of a kernel
    machine.py    launch
    cache.py      the L2 cache as a list of sectors, the least recently used leaves
    diagnosis.py  what crossed, in sentences
"""

from lightspeed_models.simulators.kernels import tl
from lightspeed_models.simulators.kernels.arrays import Array
from lightspeed_models.simulators.kernels.cache import CacheTraffic, l2_traffic
from lightspeed_models.simulators.kernels.diagnosis import Finding, diagnose
from lightspeed_models.simulators.kernels.machine import launch
from lightspeed_models.simulators.kernels.record import KernelError, Launch, Limits, Traffic

__all__ = (
    "Array", "CacheTraffic", "Finding", "KernelError", "Launch", "Limits", "Traffic",
    "diagnose", "l2_traffic", "launch", "tl",
)  # fmt: skip
