"""Every argument of every law refuses what it should, and says which argument it was."""

import math

import numpy as np
import pytest
from laws import LAWS, each, valid

from lightspeed.errors import BadArgument
from lightspeed.law import Argument
from lightspeed.units import Q

ARGUMENTS = [
    (f, n)
    for f, law in LAWS.items()
    for n, spec in law.arguments.items()
    if isinstance(spec, Argument)
]
# What no law can take, whatever its argument means.
ALWAYS_BAD = {
    "NaN": math.nan,
    "minus infinity": -math.inf,
    "string": "3",
    "None": None,
    "bool": True,
    "complex": 1 + 2j,
    "list": [1.0, 2.0],
    "empty array": np.array([]),
    "array with a NaN": np.array([1.0, math.nan]),
    "array of text": np.array(["a"]),
    "array of bools": np.array([True]),
}


def call_with(law, **changed):
    return law(**{n: valid(spec) for n, spec in law.arguments.items()} | changed)


def refuses(law, name, value):
    with pytest.raises(BadArgument) as error:
        call_with(law, **{name: value})
    assert error.value.argument == name
    assert f"{name} = " in str(error.value), str(error.value)
    assert "expected" in str(error.value)


@each("f", LAWS)
def test_valid_arguments_are_taken(f):
    call_with(LAWS[f])


@each("f, name", ARGUMENTS)
def test_never_a_number(f, name):
    for bad in ALWAYS_BAD.values():
        refuses(LAWS[f], name, bad)


@each("f, name", ARGUMENTS)
def test_out_of_range(f, name):
    spec = LAWS[f].arguments[name]
    if spec.low > -math.inf:
        refuses(LAWS[f], name, spec.low - 1)
        refuses(LAWS[f], name, np.array([valid(spec), spec.low - 1]))
    if spec.above and spec.low == 0:
        refuses(LAWS[f], name, 0)
    if spec.high < math.inf:
        refuses(LAWS[f], name, spec.high * 2)
    if spec.whole:
        refuses(LAWS[f], name, valid(spec) + 0.5)
    if not spec.infinite:
        refuses(LAWS[f], name, math.inf)


@each("f, name", ARGUMENTS)
def test_wrong_dimension(f, name):
    """Every other argument carries its right unit; this one is a length."""
    law = LAWS[f]
    quantities = {
        n: Q(valid(s), s.unit) if isinstance(s, Argument) else valid(s)
        for n, s in law.arguments.items()
    }
    wrong = "km" if law.arguments[name].unit != "m" else "s"
    with pytest.raises(BadArgument, match=name) as error:
        law(**quantities | {name: Q(valid(law.arguments[name]), wrong)})
    assert error.value.argument == name


@each("f, name", [(f, n) for f, n in ARGUMENTS if LAWS[f].arguments[n].unit])
def test_quantities_and_plain_numbers_do_not_mix(f, name):
    law = LAWS[f]
    with_unit = {
        n: s for n, s in law.arguments.items() if isinstance(s, Argument) and s.unit and n != name
    }
    if with_unit:
        refuses_mixture = {n: Q(valid(s), s.unit) for n, s in with_unit.items()}
        with pytest.raises(BadArgument, match="carries a unit"):
            call_with(law, **refuses_mixture)


@each(
    "f, name",
    [
        (f, n)
        for f, n in ARGUMENTS
        if n.endswith("_bytes") and "element" in LAWS[f].arguments[n].hint
    ],
)
def test_a_width_in_bits_is_called_out(f, name):
    with pytest.raises(BadArgument, match="bits"):
        call_with(LAWS[f], **{name: 16})


def test_another_registry_is_refused():
    import pint

    with pytest.raises(BadArgument, match=r"lightspeed.units.Q"):
        LAWS["roofline.compute_time"](pint.UnitRegistry().Quantity(3, "m"), Q(3, "FLOP/s"))


@each("f", LAWS)
def test_unknown_and_missing_names_are_type_errors(f):
    name = LAWS[f].__name__
    with pytest.raises(TypeError, match=f"{name}: there is no argument 'horsepower'"):
        call_with(LAWS[f], horsepower=3)
    with pytest.raises(TypeError, match=f"{name}: 29 arguments"):
        LAWS[f](*range(1, 30))
