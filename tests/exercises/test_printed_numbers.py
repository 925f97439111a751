"""An answer worked out of the numbers that a prompt prints is right: what is printed is rounded,
and an exact question must not ask for more than it shows.
"""

import math
import re

from lightspeed_course.practice.amounts import close
from lightspeed_course.practice.questions import bank, topics

SEEDS = (None, *map(str, range(12)))
SCALES = [base**power for base in (10.0, 2.0**10) for power in range(-15, 16)]


def as_printed(parameter, value):
    """The value that somebody reads in the prompt; the value itself where no number stands."""
    number = re.search(r"\d[\d,]*\.?\d*", parameter.text(value))
    if type(value) not in (int, float) or not value or not number:
        return value
    shown = float(number[0].replace(",", ""))
    if not shown:
        return value
    scale = min(SCALES, key=lambda s: abs(math.log(abs(value) / (shown * s))))
    read = math.copysign(shown * scale, value)
    if not 1e-9 < abs(read / value - 1) < 0.02:  # the same, or not this number
        return value
    return round(read) if type(value) is int else read


def test_an_answer_by_the_printed_numbers_is_right():
    faults = []
    for q in (q for topic in topics() for q in bank(topic) if q.kind in ("number", "array")):
        for seed in SEEDS:
            variant = q.variant(seed)
            values = variant.values
            read = {name: as_printed(p, values[name]) for name, p in q.parameters.items()}
            if read == values:
                continue
            answer = variant.result(q.expected, read)
            if not close(answer, variant.right, q.tolerance or 1e-9):
                faults.append(f"{q.id}, seed {seed}: {read} gives {answer}, not {variant.right}")
    assert not faults, "\n".join(faults)


def test_a_rounded_premise_is_read_as_it_is_printed():
    (q,) = (q for q in bank("numbers") if q.id == "numbers.transfer_time")
    p = next(p for p in q.parameters.values() if not isinstance(p.canonical, str))
    rounded = type(p)(4_194_304, (), "", lambda v: f"{v / 1e6:.3g} million")
    assert as_printed(rounded, 4_194_304) == 4_190_000
    assert as_printed(type(p)(4096, (), "", "{:,}".format), 4096) == 4096
