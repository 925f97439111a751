"""Reading an answer: whatever a learner hands over becomes plain numbers in the asked unit, or a
clear reason why not.

Types are looked at directly, and values taken by the base type's own methods, so that an object
that lies about itself (`__class__`, `__eq__`, `__float__`) is turned away, not believed.
"""

from __future__ import annotations

import re
import sys
from decimal import Decimal
from fractions import Fraction

import numpy as np

from lightspeed.values import Amount, Whole
from lightspeed_course.practice.amounts import unit_words


class Unreadable(Exception):
    """An answer that cannot be judged by its value; `kind` is the kind of the verdict."""

    def __init__(self, kind, message):
        super().__init__(message)
        self.kind, self.message = kind, message


def numbers(answer, unit, names=(), infinite=False):
    """`answer` as a float64 array of finite values in `unit`: one, or one for each of `names`.
    Raises Unreadable.
    """
    size = max(1, len(names))
    values = _plain(_by_name(answer, names), unit, size)
    if len(values) != size:
        raise Unreadable(
            "type",
            f"You gave {_count(len(values))}; {_count(size)} {'is' if size == 1 else 'are'} asked.",
        )
    if np.isnan(values).any():
        raise Unreadable(
            "type", "You have nan, which is not a number. Look for 0/0 or inf - inf on the way."
        )
    if not infinite and np.isinf(values).any():
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
    kind = type(answer)
    if answer is None or answer is Ellipsis:
        raise Unreadable("unanswered", "Put your answer in place of the dots.")
    if issubclass(kind, (bool, np.bool_)):
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
    if issubclass(kind, (complex, np.complexfloating)):
        raise Unreadable(
            "type", "You gave a complex number. Look for a root or a power of a negative number."
        )
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
            raise Unreadable(
                "type",
                "You gave a whole number of hundreds of digits. Which unit, or which power, made it"
                " so large?",
            )
        return np.array([float(int.__pos__(answer))])
    if kind in (Fraction, Decimal):
        return np.array([float(answer)])
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
    return values.astype(np.float64).reshape(-1)


def _article(kind):
    name = type.__dict__["__name__"].__get__(kind)
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


def _in_unit(quantity, unit, size):
    from lightspeed.units import Q, ureg

    if quantity._REGISTRY is not ureg:
        raise Unreadable(
            "type",
            "You gave a quantity of another pint registry. Make it with `lightspeed.units.Q`.",
        )
    magnitude = quantity.magnitude
    # A law's result that pint was given with a unit: that unit counts, not its own.
    values = _plain(+magnitude if isinstance(magnitude, (Amount, Whole)) else magnitude, unit, size)
    here, asked = _counted(Q(1.0, quantity.units), Q(1.0, unit or "dimensionless"))
    if not here.is_compatible_with(asked):
        raise Unreadable(
            "dimension",
            f"You gave {_name(here)}, but the question asks for {_name(asked)}. "
            "Write down the units of everything you multiplied and divided, and cancel them.",
        )
    with np.errstate(all="ignore"):
        return values * here.to(asked.units).magnitude


def _counted(here, asked):
    """Both, and what is counted left out of what is asked if it is not in what is given: 5/s
    requests are 5 requests/s.
    """
    for count in ("token", "request"):
        power = asked.dimensionality.get(f"[{count}]", 0)
        if power and not here.dimensionality.get(f"[{count}]", 0):
            here = here * type(here)(1.0, count) ** power
    return here, asked


def _name(one):
    return (
        "a plain number" if one.dimensionless else f"an amount in {unit_words(f'{one.units:~P}')}"
    )


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


NUMBER = (
    r"[+-]?(?=\.?\d)(?:\d{1,3}(?:[, ]\d{3})+(?!\d)|\d+(?:_\d+)*)?(?:\.\d*)?(?:[eE][+-]?\d{1,4})?"
)
WORD = r"[A-Za-zµ%]+(?:(?:\^|\*\*)-?[1-4])?"
SCALE = {
    "k": 1e3,
    "M": 1e6,
    "thousand": 1e3,
    "million": 1e6,
    "mn": 1e6,
    "billion": 1e9,
    "bn": 1e9,
    "trillion": 1e12,
}
TYPED = re.compile(
    rf"(?:(?:about|approximately|roughly|ca\.?)\s|[≈~=])?\s*(?P<dollar>\$)?\s*(?P<top>{NUMBER})(?:\s*/\s*(?P<bottom>{NUMBER}))?"
    r"(?:\s*(?P<times>[x×*·])\s*10(?=\^|\*\*|[⁰¹²³⁴⁵⁶⁷⁸⁹⁻\d]|\s|$))?(?:(?:\^|\*\*)(?P<power>[+-]?\d{1,3})|(?P<raised>[⁻⁺]?[⁰¹²³⁴⁵⁶⁷⁸⁹]+))?"
    rf"\s*(?P<scale>(?:{'|'.join(SCALE)})(?![A-Za-z/]))?\s*(?:-(?=fold))?(?P<unit>(?:1?\s*/\s*)?{WORD}(?:(?:\s*[*/·]\s*|\s+per\s+|\s+){WORD}|-[a-z]+)*)?(?P<fold>\s*[x×])?\.?",
)
RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+")
# How people write units, as pint knows them; counted things are plain numbers where one is asked.
SPELLED = (
    (r"\s+per\s+", "/"), (r"\s*[·*]\s*", "*"), (r"\b([kKMGTP]?)bps\b", r"\1bit/s"), (r"\b([KMGTP]?)Bps\b", r"\1B/s"),
    (r"\bFLOPS\b(?!/)", "FLOP/s"), (r"\b([KMGTPE]?)(?i:flops?)\b", r"\1FLOP"), (r"\b(kilo|mega|giga|tera|peta|exa)-?(?i:flops?)\b", r"\1FLOP"),
    (r"\b(?:rps|qps)\b|\breq/s(?:ec)?\b", "request/s"), (r"\breqs?\b", "request"), (r"\b(?:tok|toks)\b", "token"),
    (r"\b(?:hrs?|hs)\b", "hour"), (r"\bmins\b", "minute"), (r"\bsecs\b", "second"), (r"\b([mµun])secs?\b", r"\1s"), (r"\bd\b", "day"),
    (r"\b(?:per ?cent|pct)\b", "percent"), (r"%", "percent"), (r"\b(?:USD|US)\b", "dollar"), (r"\b[bB]yte/s(?:ec)?\b", "byte/s"),
    (r"\b([KMGTP])[bB]ytes?\b", r"\1B"), (r"\b([kKMGTP])b(?:it)?s\b", r"\1bit"), (r"/sec\b", "/s"),
)  # fmt: skip
COUNTED = re.compile(
    r"(?:more\s+|whole\s+)?(?:x|times(?:\s+(?:the|as)\s+\w+)?|fold|gpus?|chips?|processors?|cores?|servers?|slots?|steps?|ranks?|replicas?|stages?|nodes?|elements?|codes?|"
    r"micro-?batch(?:es)?|sequences?|samples?|tokens?|requests?|users?|parameters?|messages?|collectives?|all-?reduces?|bits?|db|decibels?)"
    r"(?:\s*(?:/|per)\s*(?:weight|element|parameter|gpu|step))?",
    re.IGNORECASE,
)
# "58 MB per GPU" where MB are asked: of what it is said is in the question.
EACH = re.compile(
    r"\s*(?:/|\bper\b|\bfor"
    r" each\b)\s*(?:gpu|rank|chip|node|parameter|weight|element|step|replica)(?:\s+and\s+(?:token|step))?$",
    re.IGNORECASE,
)


ONES = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
]
TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
PARTS = {"half": 2, "third": 3, "quarter": 4, "fifth": 5, "sixth": 6, "eighth": 8, "tenth": 10}
IN_WORDS = re.compile(
    rf"^(?:(?P<tens>{'|'.join(TENS)})(?:[-"
    rf" ](?P<unit>{'|'.join(ONES[1:10])}))?|(?P<ones>{'|'.join(ONES)}|an?(?=\s))|(?=half\b))"
    r"(?:\s?(?P<hundred>hundred))?(?:[-"
    rf" ]?(?P<part>{'|'.join(PARTS)})s?)?(?![A-Za-z])(?:\s+of\s+(?:an?\s+)?)?",
    re.IGNORECASE,
)


def _in_digits(match):
    """A number that is written out: "sixteen", "twenty-four", "two hundred", "half", "two
    thirds".
    """
    tens, unit, ones = (match[name] and match[name].lower() for name in ("tens", "unit", "ones"))
    value = 10 * (TENS.index(tens) + 2) if tens else ONES.index(ones) if ones in ONES else 1
    value += ONES.index(unit) if unit else 0
    value *= 100 if match["hundred"] else 1
    return f"{value}/{PARTS[match['part'].lower()]} " if match["part"] else f"{value} "


def parse(text, asked=""):
    """What a learner typed, as a number or a quantity: "1.5e6", "1,500,000", "2/3", "0.8 µs",
    "24 GPUs", "400 Gbps". Raises Unreadable.
    """
    text = (
        text.strip()
        .replace("−", "-")
        .replace("μ", "µ")
        .replace("\u00a0", " ")
        .replace("\u202f", " ")
    )
    text = IN_WORDS.sub(_in_digits, text) if len(text) <= 80 else text
    if not text:
        raise Unreadable("unanswered", "Type a number into the box.")
    match = TYPED.fullmatch(text) if len(text) <= 80 else None
    if not match:
        raise Unreadable("type", _advice(text))
    try:
        value = _value(
            match["top"],
            match["bottom"],
            match["times"],
            match["power"] or (match["raised"] or "").translate(RAISED),
        )
    except (ArithmeticError, ValueError):
        raise Unreadable(
            "type",
            "That number cannot be worked out. Is there a division by zero, or a power too high?",
        ) from None
    value *= SCALE.get(match["scale"], 1)
    unit = "dollar" if match["dollar"] else (match["unit"] or "")
    if not EACH.search(asked):
        unit = EACH.sub("", unit)
    if not unit or (not asked and COUNTED.fullmatch(unit)):
        return value
    from lightspeed.units import Q

    try:
        return Q(value, _spelled(unit, asked))
    except Exception:
        advice = "Units are written like ms, GB/s, TFLOP/s or FLOP/byte; B is a byte, bit is a bit."
        raise Unreadable("type", f"There is no unit {unit!r} here. {advice}") from None


def _spelled(unit, asked):
    if re.fullmatch(r"(?:[KMGTPEZ]|[a-z]+-?)?(?:FLOPS|FLOPs|flops)", unit):
        # a plural, or a rate: as it is asked
        return f"{_spelled(unit[:-1], '')}{'/s' * asked.endswith('FLOP/s')}"
    unit = f"1{unit}" if unit.startswith("/") else unit
    for pattern, written in SPELLED:
        unit = re.sub(pattern, written, unit)
    return _singular(unit)


def _singular(unit):
    """Without the s of a plural, where pint knows the singular only: "tokens/GPU" stays unknown,
    "requests/second" does not.
    """
    from lightspeed.units import ureg

    def one(match):
        word = match[0]
        return (
            word if word in ureg or not word.endswith("s") or word[:-1] not in ureg else word[:-1]
        )

    return re.sub(r"[A-Za-zµ]+", one, unit)


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
    return (
        "That text is not a number that can be read here. Write it like 1.5e6, 1,500,000, 2/3 or"
        " 0.8 µs."
    )
