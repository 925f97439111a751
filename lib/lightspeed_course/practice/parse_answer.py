"""Reading an answer: whatever a learner hands over becomes plain numbers in the asked unit, or a clear reason why not.

Types are looked at directly, and values taken by the base type's own methods, so that an object
that lies about itself (`__class__`, `__eq__`, `__float__`) is turned away, not believed.
"""

from __future__ import annotations

import re
import sys
from decimal import Decimal
from fractions import Fraction

import numpy as np

from lightspeed_course.practice.amounts import unit_words


class Unreadable(Exception):
    """An answer that cannot be judged by its value; `kind` is the kind of the verdict."""

    def __init__(self, kind, message):
        super().__init__(message)
        self.kind, self.message = kind, message


def numbers(answer, unit, size=1, infinite=False):
    """`answer` as a float64 array of `size` finite values in `unit`. Raises Unreadable."""
    values = _plain(answer, unit, size)
    if len(values) != size:
        raise Unreadable("type", f"You gave {_count(len(values))}; {_count(size)} {'is' if size == 1 else 'are'} asked.")
    if np.isnan(values).any():
        raise Unreadable("type", "You have nan, which is not a number. Look for 0/0 or inf - inf on the way.")
    if not infinite and np.isinf(values).any():
        raise Unreadable("type", "You have infinity. Look for a division by zero, or for a number too large to hold.")
    return values


def _count(n):
    return "one number" if n == 1 else f"{n} numbers"


def _plain(answer, unit, size):
    kind = type(answer)
    if answer is None or answer is Ellipsis:
        raise Unreadable("unanswered", "Put your answer in place of the dots.")
    if issubclass(kind, (bool, np.bool_)):
        raise Unreadable("type", "You gave True or False; a number is asked. Did a comparison slip in?")
    if issubclass(kind, (str, bytes)):
        raise Unreadable("type", "You gave text; a number is asked. Leave out the quotation marks.")
    if issubclass(kind, (complex, np.complexfloating)):
        raise Unreadable("type", "You gave a complex number. Look for a root or a power of a negative number.")
    if issubclass(kind, (list, tuple)) and size > 1:
        if len(answer) != size:
            raise Unreadable("type", f"You gave {_count(len(answer))}; {_count(size)} are asked.")
        return np.concatenate([numbers(value, unit) for value in answer])
    if "pint" in sys.modules and issubclass(kind, sys.modules["pint"].Quantity):
        return _in_unit(answer, unit, size)
    if "lightspeed.catalog" in sys.modules and kind is sys.modules["lightspeed.catalog"].Number:
        return _in_unit(answer.quantity, unit, size)
    if issubclass(kind, np.ndarray):
        return _array(np.ndarray.view(answer, np.ndarray))
    if issubclass(kind, np.generic) and not issubclass(kind, float):
        answer, kind = np.generic.item(answer), float
    if issubclass(kind, float):
        return np.array([float.__pos__(answer) if isinstance(answer, float) else float(answer)])
    if issubclass(kind, int):
        if int.bit_length(answer) > 1000:
            raise Unreadable("type", "You gave a whole number of hundreds of digits. Which unit, or which power, made it so large?")
        return np.array([float(int.__pos__(answer))])
    if kind in (Fraction, Decimal):
        return np.array([float(answer)])
    if callable(answer):
        raise Unreadable("type", "You gave a function; a number is asked. Did you forget to call it?")
    asked = "a number or a quantity is asked" if size == 1 else f"{size} numbers are asked, as a list or a tuple, in the order of the question"
    raise Unreadable("type", f"You gave {_article(kind)}; {asked}.")


def _array(values):
    if values.dtype.kind not in "iuf":
        raise Unreadable("type", "You gave an array that does not hold real numbers.")
    return values.astype(np.float64).reshape(-1)


def _article(kind):
    name = type.__dict__["__name__"].__get__(kind)
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


def _in_unit(quantity, unit, size):
    from lightspeed.units import Q, ureg

    if quantity._REGISTRY is not ureg:
        raise Unreadable("type", "You gave a quantity of another pint registry. Make it with `lightspeed.units.Q`.")
    values = _plain(quantity.magnitude, unit, size)
    here, asked = Q(1.0, quantity.units), Q(1.0, unit or "dimensionless")
    if not here.is_compatible_with(asked):
        raise Unreadable(
            "dimension",
            f"You gave {_name(here)}, but the question asks for {_name(asked)}. "
            "Write down the units of everything you multiplied and divided, and cancel them.",
        )
    with np.errstate(all="ignore"):
        return values * here.to(asked.units).magnitude


def _name(one):
    return "a plain number" if one.dimensionless else f"an amount in {unit_words(f'{one.units:~P}')}"


def option(answer, options):
    """The key of the option that the answer names, by its key or its text. Raises Unreadable."""
    if answer is None or answer is Ellipsis:
        raise Unreadable("unanswered", "Put the name of an option in place of the dots.")
    names = ", ".join(f'"{key}"' for key in options)
    if type(answer) is not str:
        raise Unreadable("type", f"Answer with the name of an option, in quotation marks: {names}.")
    given = answer.strip().casefold()
    for key, text in options.items():
        if given in (key.casefold(), text.strip().casefold()):
            return key
    raise Unreadable("type", f"There is no such option. They are {names}.")


NUMBER = r"[+-]?(?=\.?\d)(?:\d{1,3}(?:[, ]\d{3})+(?!\d)|\d+(?:_\d+)*)?(?:\.\d*)?(?:[eE][+-]?\d{1,4})?"
WORD = r"[A-Za-zµ%]+(?:(?:\^|\*\*)-?[1-4])?"
TYPED = re.compile(
    rf"(?P<dollar>\$)?\s*(?P<top>{NUMBER})(?:\s*/\s*(?P<bottom>{NUMBER}))?"
    r"(?:\s*(?P<times>[x×*·])\s*10)?(?:(?:\^|\*\*)(?P<power>[+-]?\d{1,3}))?"
    rf"\s*(?P<unit>(?:1?\s*/\s*)?{WORD}(?:\s*[*/·]\s*{WORD})*)?"
)


def parse(text):
    """What a learner typed, as a number or a quantity: "1.5e6", "1,500,000", "2/3", "0.8 µs". Raises Unreadable."""
    text = text.strip().replace("−", "-").replace("μ", "µ").replace("\u00a0", " ").replace("\u202f", " ")
    if not text:
        raise Unreadable("unanswered", "Type a number into the box.")
    match = TYPED.fullmatch(text) if len(text) <= 80 else None
    if not match:
        raise Unreadable("type", _advice(text))
    try:
        value = _value(**{k: match[k] for k in ("top", "bottom", "times", "power")})
    except (ArithmeticError, ValueError):
        raise Unreadable("type", "That number cannot be worked out. Is there a division by zero, or a power too high?") from None
    unit = "dollar" if match["dollar"] else (match["unit"] or "").replace("·", "*")
    if not unit:
        return value
    from lightspeed.units import Q

    try:
        return Q(value, f"1{unit}" if unit.startswith("/") else unit)
    except Exception:
        advice = "Units are written like ms, GB/s, TFLOP/s or FLOP/byte; B is a byte, bit is a bit."
        raise Unreadable("type", f"There is no unit {unit!r} here. {advice}") from None


def _value(top, bottom, times, power):
    top = float(re.sub("[, _]", "", top))
    if bottom and (times or power):
        raise ValueError("a fraction and a power of ten")
    if bottom:
        return top / float(re.sub("[, _]", "", bottom))
    if times:
        return top * 10.0 ** int(power or 1)
    return top ** int(power or 1)


def _advice(text):
    if re.fullmatch(r"[+-]?\d+(,\d*)+\D*", text):
        return "Is the comma a decimal point? Write 1.5 for one and a half, 1,500 for thousands."
    return "That is not a number that can be read here. Write it like 1.5e6, 1,500,000, 2/3 or 0.8 µs."
