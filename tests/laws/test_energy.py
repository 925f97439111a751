"""Energy, money and carbon: closed forms and the units that people mix up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightspeed import energy
from lightspeed.errors import BadArgument
from lightspeed.units import Q


def test_kilowatt_hours_by_quantity_and_by_hand():
    joules = energy.energy_of(Q(350, "W"), Q(60, "day"), 50_000)
    assert joules.to("MWh").magnitude == pytest.approx(0.35e-3 * 24 * 60 * 50_000)
    dollars = energy.cost_of(joules, Q(0.10, "dollar/kWh"))
    assert dollars.to("dollar").magnitude == pytest.approx(2.52e6)


def test_a_pue_below_one_is_refused():
    with pytest.raises(BadArgument, match="PUE"):
        energy.energy_of(700.0, 3600.0, pue=0.9)


@given(st.floats(1e-15, 1e-9), st.floats(1e-15, 1e-9))
def test_at_the_balance_both_halves_cost_the_same(per_flop, per_byte):
    intensity = energy.energy_balance(per_flop, per_byte)
    arithmetic = energy.operation_energy(intensity, 0, per_flop, per_byte)
    movement = energy.operation_energy(0, 1, per_flop, per_byte)
    assert arithmetic == pytest.approx(movement)
