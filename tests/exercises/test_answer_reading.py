"""What a learner types into the box, and what they hand to check."""

import pytest

from lightspeed.units import Q, ureg
from lightspeed.values import Amount, Whole
from lightspeed_class.grading.decode import decode
from lightspeed_class.grading.student import encode
from lightspeed_course.practice.parse_answer import Unreadable, numbers, option, parse
from lightspeed_course.practice.typed import Measured

READ = {
    "243": 243.0,
    "1.5e6": 1.5e6,
    "1.5E-6": 1.5e-6,
    "1_500_000": 1.5e6,
    "1,500,000": 1.5e6,
    "1,500.25": 1500.25,
    "1 500 000": 1.5e6,
    "1\u202f500": 1500.0,
    "2/3": 2 / 3,
    "1e3 / 4": 250.0,
    ".5": 0.5,
    "3.": 3.0,
    "+7": 7.0,
    "-7": -7.0,
    "−7": -7.0,
    "  12  ": 12.0,
    "10^6": 1e6,
    "2**30": 2.0**30,
    "1.5 x 10^6": 1.5e6,
    "1.5×10^-6": 1.5e-6,
    "1.2 ms": Q(1.2, "ms"),
    "0.8 us": Q(0.8, "us"),
    "0.8µs": Q(0.8, "us"),
    "0.8 μs": Q(0.8, "us"),
    "12%": Q(12, "percent"),
    "400 Gbit/s": Q(400, "Gbit/s"),
    "400 Gb/s": Q(400, "Gbit/s"),
    "64 kb": Q(64, "kbit"),
    "64 GiB": Q(64, "GiB"),
    "2 FLOP/byte": Q(2, "FLOP/byte"),
    "989 TFLOP/s": Q(989, "TFLOP/s"),
    "1e5 tokens": 1e5,
    "20x": 20.0,
    "24 GPUs": 24.0,
    "1.5×10²": 150.0,
    "two thirds": 2 / 3,
    "400Gbps": Q(400, "Gbit/s"),
    "45 d": Q(45, "day"),
    "1/s": Q(1, "1/s"),
    "2/3 ms": Q(2 / 3, "ms"),
    "5 1/s": Q(5, "1/s"),
    "5/s": Q(5, "1/s"),
    "$5": Q(5, "dollar"),
    "3 m/s^2": Q(3, "m/s**2"),
}


@pytest.mark.parametrize("text", READ)
def test_is_read(text):
    read = parse(text)
    # pint reads the unit, and is told nothing of how it was read here
    assert (Q(read.magnitude, read.unit) if isinstance(read, Measured) else read) == READ[text]


QUOTIENTS = {  # and the unit that is asked
    ("312 TFLOP/s / 2.039 TB/s", "FLOP/byte"): Q(312, "TFLOP/s") / Q(2.039, "TB/s"),
    ("312e12 FLOP/s/2.039e12 B/s", "FLOP/byte"): Q(312, "TFLOP/s") / Q(2.039, "TB/s"),
    ("312 TFLOPS over 2,039 GB/s", "FLOP/byte"): Q(312, "TFLOP/s") / Q(2039, "GB/s"),
    ("(140 GB) / (3.35 TB/s)", "ms"): Q(140, "GB") / Q(3.35, "TB/s"),
    ("6 GB / 2 s", "GB/s"): Q(3, "GB/s"),
    ("6 GB / 2 s", "ms"): Q(3, "GB/s"),  # not what is asked, and said so as such
    ("312 TFLOP/s / 156 TFLOP/s", ""): 2.0,
    ("1,500 tokens / 3 s", "token/s"): Q(500, "token/s"),
    ("300 W / 8 GPUs", "W"): Q(37.5, "W"),
    ("5 ms / 2 / 2", "ms"): Q(1.25, "ms"),
    ("$12 / 3 h", "dollar/hour"): Q(4, "dollar/hour"),
    ("$2 per hour", "dollar/hour"): Q(2, "dollar/hour"),
}


@pytest.mark.parametrize("text, unit", QUOTIENTS)
def test_a_quantity_over_a_quantity_is_worked_out(text, unit):
    read, right = parse(text, unit), QUOTIENTS[text, unit]
    if isinstance(read, Measured):
        read, right = Q(read.magnitude, read.unit).to(right.units).magnitude, right.magnitude
    assert read == pytest.approx(right)


REFUSED = {
    "5 ms / 0 s": "divides by zero",
    "5 ms / 3 parsecs": "no unit",
    "": "Type a number",
    "   ": "Type a number",
    "1,5": "comma",
    "1,50 ms": "comma",
    "12,345,67": "comma",
    "abc": "not a number",
    "nan": "not a number",
    "inf": "not a number",
    "1.2.3": "not a number",
    "1e": "no unit 'e'",
    "--3": "not a number",
    "9**9**9": "not a number",
    "(1+1)": "not a number",
    "__import__('os').getcwd()": "not a number",
    "5 s**99999": "not a number",
    "1" * 81: "not a number",
    "1/0": "division by zero",
    "0^-1": "division by zero",
    "10^999": "too high",
    "3 parsecs": "no unit",
    "5 eval": "no unit",
}


@pytest.mark.parametrize("text", REFUSED)
def test_is_refused_with_a_reason(text):
    with pytest.raises(Unreadable, match=REFUSED[text]):
        parse(text)


def test_an_option_goes_by_its_name_or_its_text():
    options = {"peak": "Twice the peak.", "bandwidth": "Twice the bandwidth."}
    assert option(" PEAK ", options) == option("twice the peak.", options) == "peak"
    for wrong in ("peak bandwidth", "", 0, ["peak"], True):
        with pytest.raises(Unreadable, match='"peak", "bandwidth"'):
            option(wrong, options)


def test_a_result_of_a_law_is_a_plain_number_unless_it_is_made_a_quantity():
    """Who works in GB/s gives the laws GB/s: only the learner knows the result's unit."""
    assert numbers(Amount(210.0, "byte/s"), "GB/s") == (210.0,)
    assert numbers(Amount(4.25, "bit"), "") == (4.25,)
    assert decode(encode(Amount(210.0, "byte/s"))) == 210.0
    assert decode(encode(Whole(5, "byte"))) == 5
    for answer in (
        Q(Amount(1e-3, "s")),
        Q(Amount(1e-3, "s"), "s"),
        ureg.Quantity(Amount(1e-3, "s"), "s"),
    ):
        assert numbers(answer, "ms") == (1.0,)
        assert decode(encode(answer)).to("ms").magnitude == 1.0


@pytest.mark.holds("practice", "There is no such option.")
def test_an_option_in_other_words_is_read_or_asked_about():
    options = {"zero1": "ZeRO-1: the optimizer is split.", "zero2": "ZeRO-2: gradients, too."}
    for given in ("ZeRO-1", "zero 1", "Zero_1"):
        assert option(given, options) == "zero1"
    with pytest.raises(Unreadable, match='Do you mean "zero1"') as asked:
        option("optimizer only", options)
    assert '"zero2"' in asked.value.message  # and the others are still there to choose from
    for unclear in ("optimizer and gradients", "1", "split-1"):
        with pytest.raises(Unreadable, match="no such option"):
            option(unclear, options)
    assert option("- 1", {"- 1": "minus", "1": "plus"}) == "- 1"
    with pytest.raises(Unreadable, match="no such option"):
        option("-1", {"one": "1", "two": "2"})
