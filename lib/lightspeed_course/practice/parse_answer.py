"""Reading an answer: whatever a learner hands over becomes plain numbers in the asked unit, or a
clear reason why not.

Types are looked at directly, and values taken by the base type's own methods, so that an object
that lies about itself (`__class__`, `__eq__`, `__float__`) is turned away, not believed.
"""

from __future__ import annotations

import math
import re
import sys
from decimal import Decimal
from fractions import Fraction

from lightspeed.values import Amount, Whole
from lightspeed_course.practice.amounts import unit_words
from lightspeed_course.practice.typed import Measured, Unreadable, parse
from lightspeed_course.practice.unit_table import unit as unit_of
from lightspeed_course.practice.values import Values, joined, values_of


def numbers(answer, unit, names=(), infinite=False):
    """`answer` as `Values`, finite ones in `unit`: one, or one for each of `names`.
    Raises Unreadable.
    """
    size = max(1, len(names))
    values = _plain(_by_name(answer, names), unit, size)
    if len(values) != size:
        raise Unreadable(
            "type",
            f"You gave {_count(len(values))}; {_count(size)} {'is' if size == 1 else 'are'} asked.",
        )
    if any(map(math.isnan, values)):
        raise Unreadable(
            "type", "You have nan, which is not a number. Look for 0/0 or inf - inf on the way."
        )
    if not infinite and any(map(math.isinf, values)):
        raise Unreadable(
            "type",
            "You have infinity. Look for a division by zero, or for a number too large to hold.",
        )
    return values


def _by_name(answer, names):
    """The values of a dict in the order of `names`, if it has just these; anything else as it
    is.
    """
    if not names or not issubclass(type(answer), dict):
        return answer
    given = {
        str.casefold(key).strip().replace(" ", "_"): value
        for key, value in dict.items(answer)
        if type(key) is str
    }
    if set(given) != {name.casefold() for name in names}:
        raise Unreadable("type", f"You gave a dict; its names must be {', '.join(names)}.")
    return [given[name.casefold()] for name in names]


def _count(n):
    return "one number" if n == 1 else f"{n} numbers"


def _plain(answer, unit, size):
    kind, numpy = type(answer), sys.modules.get("numpy")
    if kind is Values:
        return answer
    if answer is None or answer is Ellipsis:
        raise Unreadable("unanswered", "Put your answer in place of the dots.")
    if issubclass(kind, (bool, numpy.bool_) if numpy else bool):
        raise Unreadable(
            "type", "You gave True or False; a number is asked. Did a comparison slip in?"
        )
    if issubclass(kind, str):
        return _plain(parse(str.__str__(answer), unit), unit, size)
    if issubclass(kind, bytes):
        raise Unreadable(
            "type",
            "You gave text in bytes; a number is asked. Leave out the quotation marks and the b.",
        )
    if issubclass(kind, (complex, numpy.complexfloating) if numpy else complex):
        raise Unreadable(
            "type", "You gave a complex number. Look for a root or a power of a negative number."
        )
    if issubclass(kind, (list, tuple)) and size > 1:
        if len(answer) != size:
            raise Unreadable("type", f"You gave {_count(len(answer))}; {_count(size)} are asked.")
        return joined(numbers(value, unit) for value in answer)
    if (pint := sys.modules.get("pint")) and issubclass(kind, pint.Quantity):
        return _of_pint(answer, unit, size)
    if kind is Measured:
        return _in_unit(answer.magnitude, answer.unit, unit, size)
    if "lightspeed.catalog" in sys.modules and kind is sys.modules["lightspeed.catalog"].Number:
        return _in_unit(float(answer), answer.unit, unit, size)
    if numpy and issubclass(kind, numpy.ndarray):
        return _array(numpy.ndarray.view(answer, numpy.ndarray))
    if numpy and issubclass(kind, numpy.generic) and not issubclass(kind, float):
        answer, kind = numpy.generic.item(answer), float
    if issubclass(kind, float):
        return Values([float.__pos__(answer) if isinstance(answer, float) else float(answer)])
    if issubclass(kind, int):
        if int.bit_length(answer) > 1000:
            raise Unreadable(
                "type",
                "You gave a whole number of hundreds of digits. Which unit, or which power, made it"
                " so large?",
            )
        return Values([float(int.__pos__(answer))])
    if kind in (Fraction, Decimal):
        return Values([float(answer)])
    if callable(answer):
        raise Unreadable(
            "type", "You gave a function; a number is asked. Did you forget to call it?"
        )
    asked = (
        "a number or a quantity is asked"
        if size == 1
        else f"{size} numbers are asked, as a list or a tuple, in the order of the question"
    )
    raise Unreadable("type", f"You gave {_article(kind)}; {asked}.")


def _array(values):
    if values.dtype.kind not in "iuf":
        raise Unreadable("type", "You gave an array that does not hold real numbers.")
    return values_of(values.astype("float64"))


def _article(kind):
    name = type.__dict__["__name__"].__get__(kind)
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


def _of_pint(quantity, unit, size):
    from lightspeed.units import ureg

    if quantity._REGISTRY is not ureg:
        raise Unreadable(
            "type",
            "You gave a quantity of another pint registry. Make it with `lightspeed.units.Q`.",
        )
    magnitude = quantity.magnitude
    # A law's result that pint was given with a unit: that unit counts, not its own.
    plain = +magnitude if isinstance(magnitude, (Amount, Whole)) else magnitude
    return _in_unit(plain, f"{quantity.units:~P}", unit, size)


def _in_unit(magnitude, given, unit, size):
    here, asked = unit_of(given), unit_of(unit)
    values = _plain(magnitude, unit, size)
    if _counted(here, asked) != asked.dimensions:
        raise Unreadable(
            "dimension",
            f"You gave {_name(here)}, but the question asks for {_name(asked)}. "
            "Write down the units of everything you multiplied and divided, and cancel them.",
        )
    return values * (here.factor / asked.factor)


def _counted(here, asked):
    """The dimensions of what is given, with what is counted in those that are asked if it is not
    in them: 5/s requests are 5 requests/s.
    """
    found, wanted = here.dimensions, asked.dimensions
    counts = {"[token]", "[request]"} & wanted.keys() - found.keys()
    return found | {count: wanted[count] for count in counts}


def _name(unit):
    return f"an amount in {unit_words(unit.symbol)}" if unit.powers else "a plain number"


def option(answer, options):
    """The key of the option that the answer names, by its key or its text. Raises Unreadable."""
    if answer is None or answer is Ellipsis:
        raise Unreadable("unanswered", "Put the name of an option in place of the dots.")
    names = ", ".join(f'"{key}"' for key in options)
    if type(answer) is not str:
        raise Unreadable("type", f"Answer with the name of an option, in quotation marks: {names}.")
    given = answer.strip().casefold()
    for same in (str, _joined):  # "ZeRO-1" is the option zero1, unless another is written so
        for key, text in options.items():
            if same(given) in (same(key.casefold()), same(text.strip().casefold())):
                return key
    words = {word for word in re.findall(r"\w+", given) if len(word) > 3}
    near = [
        key for key, text in options.items() if words & set(re.findall(r"\w+", text.casefold()))
    ]
    if len(near) == 1:
        [key] = near
        raise Unreadable(
            "type",
            f'There is no such option. Do you mean "{key}"? It says: {options[key].strip()}'
            f" Answer with the name of an option: {names}.",
        )
    raise Unreadable("type", f"There is no such option. They are {names}.")


def _joined(text):
    """A name without spaces or hyphens after its letters: "zero 1" and "zero-1" are "zero1"."""
    return re.sub(r"(?<=[a-z])[\s_-]+(?=\w)", "", text)
