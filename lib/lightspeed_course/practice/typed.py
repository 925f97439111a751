"""What is typed into the box: a number, with a unit if need be, as people write it."""

import re
from dataclasses import dataclass

from lightspeed_course.practice.unit_table import UnknownUnit, known
from lightspeed_course.practice.unit_table import unit as unit_of


class Unreadable(Exception):
    """An answer whose value cannot be graded; `kind` is the verdict's kind."""

    def __init__(self, kind, message):
        super().__init__(message)
        self.kind, self.message = kind, message


@dataclass(frozen=True)
class Measured:
    """A number with its typed unit."""

    magnitude: float
    unit: str


NUMBER = (
    r"[+-]?(?=\.?\d)(?:\d{1,3}(?:[, ]\d{3})+(?!\d)|\d+(?:_\d+)*)?(?:\.\d*)?(?:[eE][+-]?\d{1,4})?"
)
WORD = r"[A-Za-zµ%]+(?:(?:\^|\*\*)-?[1-4])?"
LARGE = {"thousand": 1e3, "million": 1e6, "mn": 1e6, "billion": 1e9, "bn": 1e9, "trillion": 1e12}
SCALE = {"k": 1e3, "M": 1e6, **LARGE}
TYPED = re.compile(
    rf"""
    (?:(?:about|approximately|roughly|ca\.?)\s|[≈~=])?\s*(?P<dollar>\$)?\s*
    (?P<top>{NUMBER})(?:\s*/\s*(?P<bottom>{NUMBER}))?
    (?:\s*(?P<times>[x×*·])\s*10(?=\^|\*\*|[⁰¹²³⁴⁵⁶⁷⁸⁹⁻\d]|\s|$))?
    (?:(?:\^|\*\*)(?P<power>[+-]?\d{{1,3}})|(?P<raised>[⁻⁺]?[⁰¹²³⁴⁵⁶⁷⁸⁹]+))?\s*
    (?P<scale>(?:{"|".join(SCALE)})(?![A-Za-z/]))?\s*(?:-(?=fold))?
    (?P<unit>(?:1?\s*/\s*)?{WORD}(?:(?:\s*[*/·]\s*|\s+per\s+|\s+){WORD}|-[a-z]+)*)?
    (?P<fold>\s*[x×])?\.?
    """,
    re.VERBOSE,
)
# A quantity over a quantity: "312 TFLOP/s / 2.039 TB/s", "(6 GB) / (2 s)", "12 ms over 4".
QUOTIENT = re.compile(
    r"\(?(?P<top>\$?[\d.+≈~-].*?[A-Za-zµ%\d)])\s*(?:/|÷|\bover\b|\bdivided by\b)"
    r"\s*\(?(?P<bottom>\$?\.?\d(?:(?!/\s*[\d.])[^()])*)\)?"
)
RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+")
# As a text on screen may have them: signs and spaces that look alike.
ALIKE = str.maketrans("−μ\u00a0\u202f", "-µ  ")
# How people write units, as pint knows them.
SPELLED = (
    (r"\s+per\s+", "/"),
    (r"\s*[·*]\s*", "*"),
    (r"\b([kKMGTP]?)bps\b", r"\1bit/s"),
    (r"\b([KMGTP]?)Bps\b", r"\1B/s"),
    (r"\bFLOPS\b(?!/)", "FLOP/s"),
    (r"\b([KMGTPE]?)(?i:flops?)\b", r"\1FLOP"),
    (r"\b(kilo|mega|giga|tera|peta|exa)-?(?i:flops?)\b", r"\1FLOP"),
    (r"\b(?:rps|qps)\b|\breq/s(?:ec)?\b", "request/s"),
    (r"\breqs?\b", "request"),
    (r"\b(?:tok|toks)\b", "token"),
    (r"\b(?:hrs?|hs)\b", "hour"),
    (r"\bmins\b", "minute"),
    (r"\bsecs\b", "second"),
    (r"\b([mµun])secs?\b", r"\1s"),
    (r"\bd\b", "day"),
    (r"\b(?:per ?cent|pct)\b|%", "percent"),
    (r"\b(?:USD|US)\b", "dollar"),
    (r"\b[bB]yte/s(?:ec)?\b", "byte/s"),
    (r"\b([KMGTP])[bB]ytes?\b", r"\1B"),
    (r"\b([kKMGTP])b(?:its?|s)?\b", r"\1bit"),
    (r"/sec\b", "/s"),
)
# What is counted: a plain number where one is asked.
THINGS = (
    "gpu chip processor core server slot step rank replica stage node element code sequence sample"
    " token request user parameter message collective bit decibel"
)
COUNTED = re.compile(
    r"(?:more\s+|whole\s+)?(?:x|fold|db|times(?:\s+(?:the|as)\s+\w+)?"
    rf"|micro-?batch(?:es)?|all-?reduces?|(?:{THINGS.replace(' ', '|')})s?)"
    r"(?:\s*(?:/|per)\s*(?:weight|element|parameter|gpu|step))?",
    re.IGNORECASE,
)
# "58 MB per GPU" where MB are asked: of what it is said is in the question.
EACH = re.compile(
    r"\s*(?:/|\bper\b|\bfor each\b)\s*(?:gpu|rank|chip|node|parameter|weight|element|step|replica)"
    r"(?:\s+and\s+(?:token|step))?$",
    re.IGNORECASE,
)
ONES = (  # noqa: SIM905
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
    " sixteen seventeen eighteen nineteen"
).split()
TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()  # noqa: SIM905
PARTS = {"half": 2, "third": 3, "quarter": 4, "fifth": 5, "sixth": 6, "eighth": 8, "tenth": 10}
IN_WORDS = re.compile(
    rf"^(?:(?P<tens>{'|'.join(TENS)})(?:[- ](?P<unit>{'|'.join(ONES[1:10])}))?"
    rf"|(?P<ones>{'|'.join(ONES)}|an?(?=\s))|(?=half\b))"
    rf"(?:\s?(?P<hundred>hundred))?(?:[- ]?(?P<part>{'|'.join(PARTS)})s?)?(?![A-Za-z])"
    r"(?:\s+of\s+(?:an?\s+)?)?",
    re.IGNORECASE,
)


def _in_digits(match):
    """A number in words: "sixteen", "twenty-four", "two hundred", "half", "two thirds"."""
    tens, unit, ones = (match[name] and match[name].lower() for name in ("tens", "unit", "ones"))
    value = 10 * (TENS.index(tens) + 2) if tens else ONES.index(ones) if ones in ONES else 1
    value += ONES.index(unit) if unit else 0
    value *= 100 if match["hundred"] else 1
    return f"{value}/{PARTS[match['part'].lower()]} " if match["part"] else f"{value} "


def parse(text, unit_hint=""):
    """What was typed, as a number or `Measured`: "1.5e6", "2/3", "24 GPUs". Raises Unreadable."""
    text = text.strip().translate(ALIKE)
    text = IN_WORDS.sub(_in_digits, text) if len(text) <= 80 else text
    if not text:
        raise Unreadable("unanswered", "Type a number into the box.")
    match = TYPED.fullmatch(text) if len(text) <= 80 else None
    if match and match["dollar"] and match["bottom"] and match["unit"]:
        match = None  # "$12 / 3 h" is no number of dollars
    if not match and len(text) <= 80 and (quotient := QUOTIENT.fullmatch(_rates(text))):
        sides = quotient["top"].rstrip(")"), quotient["bottom"]
        words = re.compile("|".join(re.findall("[a-z]{4,}", unit_hint)) or r"(?!)")
        hints = (unit_hint if words.search(side) else "" for side in sides)  # tokens, where asked
        top, bottom = map(parse, sides, hints)
        return _quotient(top, bottom, unit_hint)
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
    unit = f"{'dollar ' * bool(match['dollar'])}{match['unit'] or ''}".strip()
    if not EACH.search(unit_hint):
        unit = EACH.sub("", unit)
    if not unit or (not unit_hint and COUNTED.fullmatch(unit)):
        return value
    spelled = _spelled(unit, unit_hint)
    try:
        unit_of(spelled)
    except UnknownUnit:
        advice = "Units are written like ms, GB/s, TFLOP/s or FLOP/byte; B is a byte, bit is a bit."
        raise Unreadable("type", f"There is no unit {unit!r} here. {advice}") from None
    return Measured(value, spelled)


def _rates(text):
    """TFLOPS beside another rate, GB/s, is one itself; alone it may be a plural."""
    return re.sub(r"FLOPS\b(?!/)", "FLOP/s", text) if re.search(r"/s|ps\b", text) else text


def _quotient(top, bottom, unit_hint):
    """One quantity over another, in the unit that is asked where it fits."""
    over, under = (
        each if isinstance(each, Measured) else Measured(each, "") for each in (top, bottom)
    )
    if not under.magnitude:
        raise Unreadable("type", "That divides by zero. Which of the two is the divisor?")
    value = over.magnitude / under.magnitude
    inverse = under.unit and f"/{under.unit.translate({ord('/'): '*', ord('*'): '/'})}"
    unit = unit_of(f"{over.unit or '1'}{inverse}")
    if not unit.powers:
        return value * unit.factor
    asked = unit_of(_spelled(unit_hint, ""))
    if asked.powers == unit.powers:
        return Measured(value * unit.factor / asked.factor, unit_hint)
    return Measured(value, unit.symbol)


def _spelled(unit, unit_hint):
    if re.fullmatch(r"(?:[KMGTPEZ]|[a-z]+-?)?(?:FLOPS|FLOPs|flops)", unit):
        # a plural, or a rate: as it is asked
        return f"{_spelled(unit[:-1], '')}{'/s' * unit_hint.endswith('FLOP/s')}"
    unit = f"1{unit}" if unit.startswith("/") else unit
    for pattern, spelling in SPELLED:
        unit = re.sub(pattern, spelling, unit)
    return _singular(unit)


def _singular(unit):
    """Without the s of a plural, where the table knows the singular only."""

    def one(match):
        word = match[0]
        return word[:-1] if word.endswith("s") and not known(word) and known(word[:-1]) else word

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
