"""A busbw among its peers, against a loop over the rows."""

import numpy as np
import pytest

from lightspeed.catalog import find
from lightspeed.collectives import busbw_factor
from lightspeed.errors import BadArgument
from lightspeed_models.evidence.peers import OPERATIONS, percentile
from lightspeed_models.evidence.sets import dataset

rows = dataset("nccl")
NVLINK4 = ("h100_sxm", "h200_sxm")


def loop(chips, ranks, operation, size, formats):
    """busbw of every row of exactly this size."""
    return sorted(
        size / t * busbw_factor(operation, ranks)
        for c, r, o, f, e, t in zip(
            *(rows[n] for n in ("chip", "ranks", "operation", "format", "elements", "latency")),
            strict=True,
        )
        if c in chips and r == ranks and o == operation and f in formats
        and e * (2 if f == "half" else 1) == size
    )  # fmt: skip


@pytest.mark.parametrize("operation", OPERATIONS)
def test_peers_are_the_rows_of_one_size(operation):
    adds = operation in ("all_reduce", "reduce_scatter")
    expected = loop(NVLINK4, 8, operation, 2**26, ("half",) if adds else ("half", "int8"))
    middle = float(np.median(expected))
    found = percentile(middle, "h100_sxm", 8, operation, 2**26)
    assert found.busbw == pytest.approx(expected) and found.chips == NVLINK4
    assert found.percentile == pytest.approx(0.5, abs=0.1)
    assert percentile(1.0, "h100_sxm", 8, operation, 2**26).percentile == 0
    assert percentile(1e15, "h100_sxm", 8, operation, 2**26).percentile == 1


def test_the_two_rates_that_the_catalog_states_are_those_of_the_rows():
    for chip, said in find("nvlink4_all_reduce").numbers.items():
        rates = loop((chip,), 8, "all_reduce", 2**29, ("half",))
        assert np.median(rates) == pytest.approx(said, rel=0.002), chip


def test_integers_are_no_peers_of_floats_where_something_is_added():
    floats = percentile(4e11, "h100_sxm", 8, "all_reduce", 2**29)
    integers = percentile(4e11, "h100_sxm", 8, "all_reduce", 2**29, integer=True)
    assert integers.median < 0.85 * floats.median


def test_between_two_sizes_lies_between_two_rates():
    rates = [
        percentile(1e9, "b200", 8, "all_gather", s).median for s in (2**24, 2**24 * 1.4, 2**25)
    ]
    assert rates == sorted(rates)


def test_beyond_the_largest_size_it_is_the_largest_and_says_so():
    assert percentile(4e11, "h100_sxm", 8, "all_reduce", 16e9).size == 2**29


def test_without_peers_there_is_no_answer():
    assert percentile(4e11, "h100_sxm", 16, "all_reduce", 1e9) is None
    assert percentile(4e11, "h100_sxm", 8, "all_reduce", 1) is None
    assert percentile(4e11, "mi300x", 8, "all_reduce", 1e9) is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"busbw": 0},
        {"busbw": float("nan")},
        {"chip": "h100_sxn"},
        {"ranks": 2.5},
        {"operation": "allreduce"},
        {"size": -1},
    ],
)
def test_a_slip_is_named(wrong):
    given = {"busbw": 4e11, "chip": "h100_sxm", "ranks": 8, "operation": "all_reduce", "size": 1e9}
    with pytest.raises(BadArgument, match=next(iter(wrong)) + "|key"):
        percentile(**given | wrong)
