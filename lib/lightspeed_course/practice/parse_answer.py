"""Reading an answer: whatever a learner hands over becomes plain numbers in the asked unit, or a
clear reason why not.

Types are looked at directly, and values taken by the base type's own methods, so that an object
that lies about itself (`__class__`, `__eq__`, `__float__`) is turned away, not believed.
"""

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
    """`answer` as finite `Values` in `unit`: one, or one for each name. Raises Unreadable."""
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
    """The values of a dict in the order of `names`, if it has just these; else as it is."""
    if not names or not issubclass(type(answer), dict):
        return answer
    by_name = {
        str.casefold(key).strip().replace(" ", "_"): value
        for key, value in dict.items(answer)
        if type(key) is str
    }
    if set(by_name) != {name.casefold() for name in names}:
        raise Unreadable("type", f"You gave a dict; its names must be {', '.join(names)}.")
    return [by_name[name.casefold()] for name in names]


def _count(n):
    return "one number" if n == 1 else f"{n} numbers"


def _plain(answer, unit, size):
    """The values of an answer of any type, by the first row of READERS that takes it."""
    return next(reader(answer, unit, size) for takes, reader in READERS if takes(answer, size))


def _array(values):
    if values.dtype.kind not in "iuf":
        raise Unreadable("type", "You gave an array that does not hold real numbers.")
    return values_of(values.astype("float64"))


def _article(kind):
    name = type.__dict__["__name__"].__get__(kind)
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


def _of_type(*types, numpy=(), size=1):
    """Whether an answer's own type is one of these, or numpy's, and has `size` values."""

    def takes(answer, size_of):
        loaded = sys.modules.get("numpy")
        classes = (*types, *(getattr(loaded, name) for name in numpy if loaded))
        return size_of >= size and issubclass(type(answer), classes)

    return takes


def _of_pints(answer, size):
    pint = sys.modules.get("pint")
    return pint is not None and issubclass(type(answer), pint.Quantity)


def _of_catalog(answer, size):
    catalog = sys.modules.get("lightspeed.catalog")
    return catalog is not None and type(answer) is catalog.Number


def _refuse(kind, message):
    def read(answer, unit, size):
        raise Unreadable(kind, message)

    return read


def _several(answer, unit, size):
    if len(answer) != size:
        raise Unreadable("type", f"You gave {_count(len(answer))}; {_count(size)} are asked.")
    return joined(numbers(value, unit) for value in answer)


def _float(answer, unit, size):
    return Values([float.__pos__(answer) if isinstance(answer, float) else float(answer)])


def _int(answer, unit, size):
    if int.bit_length(answer) > 1000:
        raise Unreadable(
            "type",
            "You gave a whole number of hundreds of digits. Which unit, or which power, made it so"
            " large?",
        )
    return Values([float(int.__pos__(answer))])


def _other(answer, unit, size):
    request = (
        "a number or a quantity is asked"
        if size == 1
        else f"{size} numbers are asked, as a list or a tuple, in the order of the question"
    )
    raise Unreadable("type", f"You gave {_article(type(answer))}; {request}.")


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


def _in_unit(magnitude, value_given, unit, size):
    here, unit_wanted = unit_of(value_given), unit_of(unit)
    values = _plain(magnitude, unit, size)
    if _counted(here, unit_wanted) != unit_wanted.dimensions:
        raise Unreadable(
            "dimension",
            f"You gave {_name(here)}, but the question asks for {_name(unit_wanted)}. "
            "Write down the units of everything you multiplied and divided, and cancel them.",
        )
    return values * (here.factor / unit_wanted.factor)


def _counted(here, unit):
    """The dimensions of what is given, with what is counted in those that are asked if it is not
    in them: 5/s requests are 5 requests/s.
    """
    mine, theirs = here.dimensions, unit.dimensions
    counts = {"[token]", "[request]"} & theirs.keys() - mine.keys()
    return mine | {count: theirs[count] for count in counts}


def _name(unit):
    return f"an amount in {unit_words(unit.symbol)}" if unit.powers else "a plain number"


def option(answer, options):
    """Return the key of the option named by its key or its text. Raises Unreadable for none."""
    if answer is None or answer is Ellipsis:
        raise Unreadable("unanswered", "Put the name of an option in place of the dots.")
    names = ", ".join(f'"{key}"' for key in options)
    if type(answer) is not str:
        raise Unreadable("type", f"Answer with the name of an option, in quotation marks: {names}.")
    reply = answer.strip().casefold()
    for same in (str, _joined):  # "ZeRO-1" is the option zero1, unless another is written so
        for key, text in options.items():
            if same(reply) in (same(key.casefold()), same(text.strip().casefold())):
                return key
    words = {word for word in re.findall(r"\w+", reply) if len(word) > 3}
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


# (condition, reader): the first condition that takes an answer has the reader. What is a subclass
# of something that is read, as a bool is an int, stands before it.
READERS = (
    (lambda answer, size: type(answer) is Values, lambda answer, *_: answer),
    (
        lambda answer, size: answer is None or answer is Ellipsis,
        _refuse("unanswered", "Put your answer in place of the dots."),
    ),
    (
        _of_type(bool, numpy=("bool_",)),
        _refuse("type", "You gave True or False; a number is asked. Did a comparison slip in?"),
    ),
    (
        _of_type(str),
        lambda answer, unit, size: _plain(parse(str.__str__(answer), unit), unit, size),
    ),
    (
        _of_type(bytes),
        _refuse(
            "type",
            "You gave text in bytes; a number is asked. Leave out the quotation marks and the b.",
        ),
    ),
    (
        _of_type(complex, numpy=("complexfloating",)),
        _refuse(
            "type", "You gave a complex number. Look for a root or a power of a negative number."
        ),
    ),
    (_of_type(list, tuple, size=2), _several),
    (_of_pints, _of_pint),
    (
        lambda answer, size: type(answer) is Measured,
        lambda answer, unit, size: _in_unit(answer.magnitude, answer.unit, unit, size),
    ),
    (
        _of_catalog,
        lambda answer, unit, size: _in_unit(float(answer), answer.unit, unit, size),
    ),
    (
        _of_type(numpy=("ndarray",)),
        lambda answer, *_: _array(
            sys.modules["numpy"].ndarray.view(answer, sys.modules["numpy"].ndarray)
        ),
    ),
    (_of_type(float), _float),
    (
        _of_type(numpy=("generic",)),
        lambda answer, unit, size: _float(sys.modules["numpy"].generic.item(answer), unit, size),
    ),
    (_of_type(int), _int),
    (
        lambda answer, size: type(answer) in (Fraction, Decimal),
        lambda answer, *_: Values([float(answer)]),
    ),
    (
        lambda answer, size: callable(answer),
        _refuse("type", "You gave a function; a number is asked. Did you forget to call it?"),
    ),
    (lambda answer, size: True, _other),
)
