"""Chapter 5: the bits of one number in any format, and what they stand for.

`view` is pure: parameters in, a `View` out. `explore()` puts controls on it.
"""

import math
import string
import textwrap

from lightspeed.precision import FORMATS, Integer
from lightspeed_show import (
    Axis,
    Bars,
    Chart,
    Choice,
    Formula,
    Points,
    Text,
    View,
    explorer,
    si,
)
from lightspeed_show.explore import Control

THIN = 0.4  # of the room for a bar: leaves some above it for the number
TOGGLES = 16  # bits that the reader sets one by one; wider formats fill up the rest
NAMES = tuple(f"b{i}" for i in range(1, TOGGLES + 1))
RAISED = str.maketrans("-" + string.digits, "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
FIELDS = {"sign": "orange", "exponent": "blue", "mantissa": "green"}


class Bit(Control):
    """A toggle that a grid over the controls leaves alone: all would make 65,536 settings."""

    def sample(self, count):
        return [self.value]


def view(format, rest, **bits):
    """What the bits b1 (the first), b2, ... stand for; `rest` fills bits past the last."""
    f = FORMATS[format]
    code = code_of(f, rest, bits)
    value = f.decode(code)
    near = around(f, value)
    facts = {
        "value": written(f, value) if not math.isnan(value) else "not a number",
        "code": f"0x{code:0{-(-f.bits // 4)}X}",
        "bits": " | ".join(grouped(field) for field in f.fields(code) if field),
        "next below": written(f, near[0]),
        "next above": written(f, near[1]),
        "step here": number(f.spacing(value)) if math.isfinite(value) else "none",
        "step over value": (
            si(f.spacing(value) / abs(value), "%", 2) if math.isfinite(value) and value else "none"
        ),
        "largest": written(f, f.max),
        "smallest normal": "none" if isinstance(f, Integer) else written(f, f.smallest_normal),
        "smallest above zero": written(f, smallest(f)),
        "codes": si(2**f.bits, "", 4) if f.bits <= 32 else f"{2}{str(f.bits).translate(RAISED)}",
    }
    charts = (strip(f, code), extent(f, value), line(f, value))
    return View(charts, in_words(f, code, value, near), facts, formula=taken_apart(f, value))


def taken_apart(f, value):
    """The value as a number near one times a power of two; of an integer, or of a code without a
    value, there is nothing to take apart.
    """
    if isinstance(f, Integer) or not math.isfinite(value) or not value:
        return None
    power = math.frexp(max(abs(value), f.smallest_normal))[1] - 1
    parts = {"significand": (math.ldexp(value, -power), ""), "exponent": (power, "")}
    return Formula("value", "significand * 2 ** exponent", parts, (value, ""))


def code_of(f, rest, bits):
    """The code whose first bits are the toggles', as far as the format has bits."""
    text = "".join(str(int(bits.get(name, False))) for name in NAMES)
    return int((text + str(rest) * f.bits)[: f.bits], 2)


def bits_of(f, code):
    """The toggles that show a code."""
    text = "".join(f.fields(code)).ljust(TOGGLES, "0")
    return {name: text[i] == "1" for i, name in enumerate(NAMES)}


def grouped(field):
    """The bits of a field; those of a long one in fours from the right, as in the code."""
    if len(field) <= TOGGLES:
        return field
    return " ".join(textwrap.wrap(field[::-1], 4))[::-1]


def smallest(f):
    return 1.0 if isinstance(f, Integer) else f.smallest_subnormal


def around(f, value):
    """The nearest values below and above, or what stands for them past the ends."""
    if math.isnan(value):
        return (math.nan, math.nan)
    if math.isinf(value):
        return (f.max, math.nan) if value > 0 else (math.nan, f.min)
    return f.neighbours(value)


def number(x, digits=7, powered=3):
    """A value as the course writes it, however large or small: "65,504", "0.001953125".

    Where a power of ten is needed, with `powered` digits: "3.39 × 10³⁸".
    """
    if math.isnan(x):
        return "none"
    if math.isinf(x):
        return "infinity" if x > 0 else "-infinity"
    if x == 0:
        return "-0" if math.copysign(1, x) < 0 else "0"
    if 1e-4 <= abs(x) < 1e7:
        return f"{x:,.{digits}g}" if x % 1 else f"{x:,.0f}"
    mantissa, exponent = f"{x:.{powered - 1}e}".split("e")
    if "." in mantissa:
        mantissa = mantissa.rstrip("0").rstrip(".")
    return f"{mantissa} × {10}{str(int(exponent)).translate(RAISED)}"


def written(f, x):
    """A value with the digits that tell it from its neighbours, or all if they are few."""
    if isinstance(f, Integer) or not math.isfinite(x):
        return number(x)
    digits = digits_of(left(f, x))
    exact = (d for d in range(7, 13) if float(f"{x:.{d}g}") == x)
    return number(x, next(exact, max(7, digits)), max(3, digits))


def left(f, x):
    """How many significant bits a value has in its format: fewer below the smallest normal."""
    if abs(x) >= f.smallest_normal:
        return f.mantissa_bits + 1
    return int(abs(x) / f.smallest_subnormal).bit_length()


def digits_of(bits):
    """Decimal digits that tell numbers of so many bits apart."""
    return math.ceil(bits * math.log10(2)) + 1


def beside(f, near):
    """The neighbours as a sentence."""
    below, above = (written(f, v) for v in near)
    if "none" in (below, above):
        near = above if below == "none" else below
        return f"It is the last value on its side; its neighbour is {near}"
    return f"Its neighbours are {below} and {above}"


def in_words(f, code, value, near):
    """What kind of code it is, and how fine the format is here."""
    if math.isnan(value):
        return (
            f"Not a number: {f.name} keeps this code for results that have no value, such as "
            "infinity minus infinity."
        )
    if math.isinf(value):
        end = written(f, math.copysign(f.max, value))
        return f"Infinity: in {f.name} it stands for everything beyond {end}."
    between, text = beside(f, near), written(f, value)
    if isinstance(f, Integer):
        same = "The step is the same everywhere; a scale decides what it is worth."
        return f"The integer {text}. {between}. {same}"
    if value == 0:
        sign = " with a minus sign, equal to zero" * (math.copysign(1, value) < 0)
        least = written(f, smallest(f))
        return f"Zero{sign}. What is nearer to it than half of {least} is lost."
    if abs(value) < f.smallest_normal:
        bits = f"{left(f, value)} of {f.mantissa_bits + 1} significant bits"
        return f"Subnormal: {text}, with {bits} left. {between}."
    power = math.frexp(abs(value))[1] - 1
    digits = (f.mantissa_bits + 1) * math.log10(2)
    product = f"{written(f, value / 2.0**power)} times two to the power {power}"
    carries = f"The format carries about {digits:.1f} decimal digits."
    return f"Normal: {text} is {product}. {between}. {carries}"


def strip(f, code):
    """The bits, coloured by field."""
    start, marks = 0, []
    for (field, color), text in zip(FIELDS.items(), f.fields(code), strict=True):
        if text:
            at = range(start, start + len(text))
            name = "magnitude" if isinstance(f, Integer) and field == "mantissa" else field
            marks.append(
                Bars(
                    [f.name] * len(text),
                    [i + 1 for i in at],
                    [float(i) for i in at],
                    name,
                    list(text),
                    color,
                    width=0.95,
                )
            )
            start += len(text)
    x = Axis(domain=(0, f.bits), ticks=[(i + 0.5, str(i + 1)) for i in ticked(f.bits)])
    return Chart(x, Axis(scale="category", categories=[f.name]), marks, title="bits", height=150)


def ticked(width):
    """The places of the bits that get a number: all, or every fourth of a wide format."""
    return [i for i in range(width) if width <= TOGGLES or (i + 1) % 4 == 0]


def extent(f, value):
    """The magnitudes that the format has, and where this value lies among them.

    As powers of ten: the ratio of fp64's ends is itself no fp64.
    """
    low, high = smallest(f), f.max
    normal = low if isinstance(f, Integer) else f.smallest_normal
    ends, edge = (math.log10(low), math.log10(high)), [math.log10(normal)]
    kind = "integers" if isinstance(f, Integer) else "normal"
    marks = [Bars([f.name], [ends[1]], edge, kind, color="blue", width=THIN)]
    if normal > low:
        marks.insert(0, Bars([f.name], edge, [ends[0]], "subnormal", color="amber", width=THIN))
    if math.isfinite(value) and value:
        here, label = [math.log10(abs(value))], [written(f, value)]
        marks.append(Points(here, [f.name], labels=label, color="orange", size=8))
    wide = (ends[1] - ends[0]) * 0.1
    x = Axis(
        "magnitude",
        domain=(ends[0] - wide, ends[1] + wide),
        ticks=[(math.log10(v), number(v)) for v in sorted({low, 1.0, high})],
    )
    return Chart(x, Axis(scale="category", categories=[f.name]), marks, title="range", height=190)


def line(f, value):
    """The values nearest to this one, in steps; infinity lies one step past the last."""
    past = math.isinf(value)
    if math.isnan(value):
        return neighbours(f, [Text(0, f.name, "no number, no neighbours", "grey")])
    centre = math.copysign(f.max, value) if past else value
    values = [centre]
    for _ in range(3):
        values = [f.neighbours(values[0])[0], *values, f.neighbours(values[-1])[1]]
        values = [v for v in values if math.isfinite(v)]
    here = math.copysign(1, value) if past else 0
    places = {v: (v - centre) / f.spacing(centre) - here for v in values}
    near = [v for v in around(f, value) if math.isfinite(v)]
    marks = [
        points(f, [v for v in values if v not in (value, *near)], places, color="grey"),
        points(f, near, places, color="black", labels=True),
        (
            Text(0, f.name, number(value), "orange")
            if past
            else points(f, [centre], places, color="orange", labels=True, size=8)
        ),
    ]
    return neighbours(f, filter(None, marks), max(4, *(place + 1 for place in places.values())))


def neighbours(f, marks, end=4):
    x = Axis("steps from here", domain=(-4, end))
    return Chart(
        x, Axis(scale="category", categories=[f.name]), marks, title="neighbours", height=190
    )


def points(f, values, places, labels=False, **look):
    """Values at their places on the line, if there are any."""
    texts = [written(f, v) for v in values] if labels else ()
    return (
        Points([places[v] for v in values], [f.name] * len(values), labels=texts, **look)
        if values
        else None
    )


def explore():
    """The explorer of chapter 5."""
    first = bits_of(FORMATS["bf16"], FORMATS["bf16"].encode(math.pi))
    toggles = [
        Bit(name, f"bit {name[1:]}", (("0", False), ("1", True)), first[name], "toggle")
        for name in NAMES
    ]
    return explorer(
        view,
        [
            Choice("format", "format", {name: name for name in FORMATS}, "bf16"),
            Choice("rest", f"bits after bit {TOGGLES}", {"all zero": 0, "all one": 1}),
            *toggles,
        ],
        caption=(
            "Set a bit and see the value move; change the format to read the same bits anew. "
            "A narrow format uses the first toggles only."
        ),
        alt=(
            "A strip of bits coloured as sign, exponent and mantissa; a bar of the magnitudes that"
            " the format has, with the value on it; and the value between its neighbours on a"
            " number line."
        ),
    )
