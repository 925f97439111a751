"""What `Q` refuses and what a rate may be given in."""

import pytest

from lightspeed.errors import BadArgument
from lightspeed.queueing import concurrency, mm1
from lightspeed.units import Q

REFUSED = {
    ("8 G",): "did you mean GB",
    (8, "G"): "did you mean GB",
    (49.9, "dB"): "decibel",
    (3, "furlong"): "no unit 'furlong'",
    (3, "GB/"): "expected a unit",
    ("3 GB)",): "expected a unit",
}


def test_a_unit_that_is_none_is_named_by_the_course():
    for given, words in REFUSED.items():
        with pytest.raises(BadArgument, match=r"^Q: ") as refused:
            Q(*given)
        assert words in str(refused.value), f"Q{given}: {refused.value}"


def test_a_frequency_is_a_rate_of_requests_and_of_nothing_else():
    for rate in (Q(9, "Hz"), Q(9, "1/s"), Q(9e-3, "kHz"), Q(540, "1/min")):
        queue = mm1(rate, Q(10, "request/s"))
        assert queue.W.to("s").magnitude == pytest.approx(1.0), f"{rate}"
        assert concurrency(rate, Q(2, "s")).to("request").magnitude == pytest.approx(18), f"{rate}"
    for other in (Q(9, "token/s"), Q(9, "byte/s"), Q(9, "s"), Q(9, "request")):
        with pytest.raises(BadArgument, match="arrival_rate"):
            mm1(other, Q(10, "request/s"))


def test_the_table_says_of_every_name_what_pint_says():
    from lightspeed_course.practice.unit_table import UnknownUnit, _table, known, unit

    prefixes, units = _table()
    wrong = []
    for name in (p + u + s for p in ("", *prefixes) for u in units for s in ("", "s")):
        if name.rstrip("s").endswith("%") and name != "%":
            continue  # pint splits a sign off before it looks for a prefix
        try:
            base = Q(1.0, name).to_base_units()
            power = dict(base.dimensionality)
            bits, grams = power.get("[information]", 0), power.get("[mass]", 0)
            there = base.magnitude / 8**bits / 1000**grams, power
        except BadArgument:
            there = None
        try:
            here = unit(name).factor, unit(name).dimensions
        except UnknownUnit:
            here = None
        alike = here and there and abs(here[0] / there[0] - 1) < 1e-12 and here[1] == there[1]
        if ((here or there) and not alike) or known(name) != bool(here):
            wrong.append((name, here, there))
    assert not wrong, wrong[:10]


@pytest.mark.parametrize("text", ["m/s**2", "kWh", "J/s", "1/s", "TFLOP/s/W", "FLOP/byte"])
def test_the_table_reads_a_product_as_pint_does(text):
    from lightspeed_course.practice.unit_table import unit

    here, there = unit(text), Q(1.0, text)
    assert here.symbol == f"{there.units:~P}" and there.is_compatible_with(here.symbol)


@pytest.mark.parametrize("text", ["m s**999", "s**", "parsec", "m/", "3 4 q", "(s)", "s**x", "**2"])
def test_the_table_refuses_what_is_no_unit(text):
    from lightspeed_course.practice.unit_table import UnknownUnit, unit

    with pytest.raises(UnknownUnit):
        unit(text)
