"""Questions of one step, on the way to those of chapter 1: an amount, a rate, a time."""

from __future__ import annotations

from lightspeed import datasheet, energy
from lightspeed_course.practice.derivation import derivation, step
from lightspeed_course.practice.parameters import plain
from lightspeed_course.practice.questions import Misconception, Parameter, Question, register

CHAPTER = "01_numbers_to_know"
WIDTHS = {"bf16": 2, "fp32": 4}

matrix_bytes = Question(
    id="units.matrix_bytes",
    chapter=CHAPTER,
    level="recall",
    prompt="A matrix of {{rows}} by {{columns}} weights is kept in {{format}}. How large is it?",
    parameters={
        "rows": plain(4096, 1024, 4096, 8192),
        "columns": plain(2048, 2048, 5120),
        "format": Parameter("fp32", ("bf16", "fp32")),
    },
    expected=lambda rows, columns, format: rows * columns * WIDTHS[format],
    unit="MB",
    tolerance=0.02,
    solution=lambda rows, columns, format: derivation(
        step("Count the weights.", "rows * columns", rows=rows, columns=columns),
        step(
            "Each takes its width.",
            "rows * columns * width",
            rows=rows,
            columns=columns,
            width=(WIDTHS[format], "byte"),
        ),
    ),
    misconceptions=(
        Misconception(
            "bits",
            lambda rows, columns, format: 8 * rows * columns * WIDTHS[format],
            "You counted bits. How many of them are a byte?",
        ),
        Misconception(
            "another format",
            lambda rows, columns, format: rows * columns * 8 // WIDTHS[format],
            "That is another format. How many bits does the name of this one tell?",
        ),
        Misconception(
            "elements, not bytes",
            lambda rows, columns, format: rows * columns,
            "That is the number of weights. How many bytes does each one take?",
        ),
        Misconception(
            "added, not multiplied",
            lambda rows, columns, format: (rows + columns) * WIDTHS[format],
            "That is one row and one column. How many weights does the whole matrix have?",
        ),
    ),
)

metres = Question(
    id="units.metres_a_second",
    chapter=CHAPTER,
    level="recall",
    prompt="How far does a car at {{speed}} go in one second?",
    parameters={"speed": Parameter(90, (36, 72, 90, 120), "km/h")},
    expected=lambda speed: speed,  # in SI, the way of one second
    unit="m",
    tolerance=0.02,
    solution=lambda speed: derivation(
        step(
            "An hour has sixty minutes of sixty seconds. Divide its way by them.",
            "hourly / seconds",
            (speed, "m"),
            hourly=(3600 * speed, "m"),
            seconds=3600,
        )
    ),
    misconceptions=(
        Misconception(
            "multiplied, not divided",
            lambda speed: 3.6 * 3.6 * speed,
            "You multiplied. Should the way of a second be longer or shorter?",
        ),
        Misconception(
            "the way of a minute",
            lambda speed: 60 * speed,
            "That is the way of a minute. How many seconds does an hour have?",
        ),
        Misconception(
            "kilometres an hour taken for metres a second",
            lambda speed: 3.6 * speed,
            "The speed is in kilometres an hour. What is it in metres a second?",
        ),
    ),
)

stretch = Question(
    id="units.stretch",
    chapter=CHAPTER,
    level="recall",
    prompt=(
        "In a film of a chip in slow motion, {{tick}} lasts {{felt}}. How many times slower than"
        " the chip is the film?"
    ),
    parameters={
        "tick": Parameter(2, (0.5, 2, 5), "ns"),
        "felt": Parameter(10, (10, 30, 60), "s"),
    },
    expected=lambda tick, felt: datasheet.human_scale(1.0, tick, felt),
    unit="",
    tolerance=0.02,
    solution=lambda tick, felt: derivation(
        step(
            "Put both times into seconds, and divide what it lasts by what it takes.",
            "felt / tick",
            (datasheet.human_scale(1.0, tick, felt), ""),
            felt=(felt, "s"),
            tick=(tick, "s"),
        )
    ),
    misconceptions=(
        Misconception(
            "upside down",
            lambda tick, felt: tick / felt,
            "You divided the chip's time by the film's. Which of them is slow?",
        ),
        Misconception(
            "units not converted",
            lambda tick, felt: felt / (tick * 1e9),
            "You divided seconds by nanoseconds as if they were one unit. Convert one of them.",
        ),
        Misconception(
            "microseconds",
            lambda tick, felt: felt / (tick * 1e3),
            "How many nanoseconds does a second have? Go through the prefixes again.",
        ),
    ),
)

core_rate = Question(
    id="units.core_rate",
    chapter=CHAPTER,
    level="recall",
    prompt=(
        "One tensor core finishes {{fmas}} multiply-adds in each cycle of a clock of {{clock}}. How"
        " many floating-point operations is that in a second?"
    ),
    parameters={
        "fmas": plain(256, 256, 512, 1024),
        "clock": Parameter(1500, (1200, 1500, 2000), "MHz"),
    },
    expected=lambda fmas, clock: datasheet.peak_from_clock(clock, 2 * fmas, 1),
    unit="TFLOP/s",
    tolerance=0.02,
    solution=lambda fmas, clock: derivation(
        step(
            "A multiply-add is a multiplication and an addition.",
            "2[FLOP] * multiply_adds",
            multiply_adds=fmas,
        ),
        step(
            "So many in each cycle, and the clock says how many cycles a second has.",
            "clock * 2[FLOP] * multiply_adds",
            (datasheet.peak_from_clock(clock, 2 * fmas, 1), "FLOP/s"),
            clock=(clock, "Hz"),
            multiply_adds=fmas,
        ),
    ),
    misconceptions=(
        Misconception(
            "a multiply-add is one",
            lambda fmas, clock: clock * fmas,
            "A multiply-add does two operations. Did you count both?",
        ),
        Misconception(
            "cycles alone",
            lambda fmas, clock: 2 * clock,
            "That is one multiply-add a cycle. How many does this core finish?",
        ),
        Misconception(
            "cycles over operations",
            lambda fmas, clock: clock / (2 * fmas),
            "You divided. What happens to the rate when a cycle finishes more?",
        ),
    ),
)

request_energy = Question(
    id="units.request_energy",
    chapter=CHAPTER,
    level="recall",
    prompt=(
        "A GPU rated {{power}} works for {{time}} on one request alone. What is the most energy"
        " that the request can cost?"
    ),
    parameters={
        "power": Parameter(400, (400, 700, 1000), "W"),
        "time": Parameter(0.5, (0.2, 0.5, 4), "s"),
    },
    expected=lambda power, time: energy.energy_of(power, time),
    unit="J",
    tolerance=0.02,
    solution=lambda power, time: derivation(
        step(
            "A watt is a joule in each second. Multiply by the seconds.",
            "power * time",
            (energy.energy_of(power, time), "J"),
            power=(power, "W"),
            time=(time, "s"),
        )
    ),
    misconceptions=(
        Misconception(
            "divided by the time",
            lambda power, time: power / time,
            "By that, a slow request costs little. Does it?",
        ),
        Misconception(
            "power taken for energy",
            lambda power, time: power,
            "That is the energy of one second. How long does the request take?",
        ),
        Misconception(
            "milliseconds",
            lambda power, time: power * time * 1e-3,
            "The time is in seconds already. Which unit did you convert from?",
        ),
    ),
)

register(matrix_bytes, metres, stretch, core_rate, request_energy)
