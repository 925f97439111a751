"""Dimensions proved: the plain body of a law, run on pint quantities, ends in the declared unit.

A constant such as "two FLOPs per multiply-add" hides a unit; the table says which count
argument stands in for it. A law that is not in the table needs no help.
"""

import dataclasses

import pytest
from laws import LAWS, valid

from lightspeed.law import Argument
from lightspeed.units import Q

HIDDEN = {
    "roofline.matmul_flops": {"B": "FLOP"},
    "roofline.dot_flops": None,  # 2 n - 1 adds a bare one: counted by hand, not by dimension
    "roofline.dot_bytes": {},
    "roofline.critical_batch": {"ridge": "1/byte"},
    "roofline.critical_batch_exact": {"ridge": "1/byte"},
    "roofline.tile_intensity": None,  # bm + bn adds counts
    "roofline.attention_intensity": None,  # T G + S adds counts of two kinds
    "roofline.split_matmul_bounds": None,  # calls other laws, each proved
    "roofline.critical_depth": {"peak": "1/s"},
}


def proof_units(f):
    return {n: s.unit for n, s in LAWS[f].arguments.items() if isinstance(s, Argument)} | (
        HIDDEN.get(f) or {}
    )


@pytest.mark.parametrize(
    "f",
    [
        f
        for f in LAWS
        if HIDDEN.get(f, {}) is not None and f.split(".")[0] in ("roofline", "energy", "hardware")
    ],
)
def test_body_has_the_declared_dimension(f):
    law = LAWS[f]
    result = law.__wrapped__(
        **{n: Q(valid(law.arguments[n]), u) for n, u in proof_units(f).items()}
    )
    fields = dataclasses.fields(result) if dataclasses.is_dataclass(result) else [None]
    for field in fields:
        value = getattr(result, field.name) if field else result
        unit = law.returns.get(field.name, "") if field else law.returns
        assert isinstance(value, bool) or Q(value).dimensionality == Q(1, unit).dimensionality, (
            f"{f}: {value}"
        )
