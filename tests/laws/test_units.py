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
