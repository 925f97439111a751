"""Energy, money and carbon of a computation. Used in chapters 1 and 6.

Plain numbers are in SI (W, s, J); prices are dollars per joule unless a quantity says
otherwise, so pass `Q(0.10, "dollar/kWh")` or divide by `JOULES_PER_KWH`.

Sources: Horowitz, "Computing's energy problem" (ISSCC 2014) for what an operation costs;
Touvron et al., "LLaMA" (2023) for GPU-hours x power x PUE.
"""

from lightspeed.elementwise import Result, Value
from lightspeed.law import Argument, count, law, nonnegative, positive

__all__ = (
    "JOULES_PER_KWH", "cost_of", "emissions_of", "energy_balance", "energy_of",
    "operation_energy",
)  # fmt: skip

JOULES_PER_KWH = 3.6e6
PUE = Argument(
    low=1.0,
    above=False,
    hint="PUE is the power of the whole site over the power of the machines: never below 1.",
)


@law("J", power=positive("W"), time=nonnegative("s"), devices=count(), pue=PUE)
def energy_of(power: Value, time: Value, devices: Value = 1, pue: Value = 1.0) -> Result:
    """Joules drawn by `devices` devices of `power` (W) each for `time` (s), at a site with this
    PUE.

    >>> energy_of(700.0, 3600.0) / JOULES_PER_KWH
    0.7
    """
    return power * time * devices * pue


@law("dollar", energy=nonnegative("J"), price=nonnegative("dollar/J"))
def cost_of(energy: Value, price: Value) -> Result:
    """Dollars for `energy` (J) at `price` (dollar/J).

    >>> round(cost_of(2e3 * JOULES_PER_KWH, 0.25 / JOULES_PER_KWH), 6)
    500.0
    """
    return energy * price


@law("kg", energy=nonnegative("J"), intensity=nonnegative("kg/J"))
def emissions_of(energy: Value, intensity: Value) -> Result:
    """Kilograms of CO2-equivalent for `energy` (J) on a grid of `intensity` (kg/J).

    >>> round(emissions_of(1e3 * JOULES_PER_KWH, 0.385 / JOULES_PER_KWH), 6)
    385.0
    """
    return energy * intensity


@law(
    "J",
    flops=nonnegative("FLOP"),
    size=nonnegative("byte"),
    per_flop=nonnegative("J/FLOP"),
    per_byte=nonnegative("J/byte"),
)
def operation_energy(flops: Value, size: Value, per_flop: Value, per_byte: Value) -> Result:
    """Joules to do `flops` FLOPs (J/FLOP) on `size` bytes fetched from one level (J/byte).

    >>> operation_energy(2, 4, 1e-12, 2e-12)
    10 pJ
    """
    return flops * per_flop + size * per_byte


@law("FLOP/byte", per_flop=positive("J/FLOP"), per_byte=positive("J/byte"))
def energy_balance(per_flop: Value, per_byte: Value) -> Result:
    """The intensity (FLOP/byte) at which arithmetic and data movement cost the same energy.

    >>> energy_balance(1e-12, 160e-12)
    160 FLOP/byte
    """
    return per_byte / per_flop
