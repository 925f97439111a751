"""The units of units.txt by themselves: factor and dimensions of "GB/s", without pint.

pint serves arithmetic with units. To read an answer, to convert it and to compare its dimensions
takes a table and a few lines, and works where pint is not, as in a browser.

    >>> unit("Gbit/s").factor / unit("GB/s").factor
    0.125
"""

import re
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files

# The course's own base units are byte and kilogram; the file's are bit and gram.
BASE = {"[information]": 1 / 8, "[mass]": 1e-3}
RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
TOKEN = re.compile(r"\s*(?:(\*\*|\^)\s*|([*/·])\s*|(-?\d+(?:\.\d+)?(?:e-?\d+)?)|([^\W\d]\w*|%))")


class UnknownUnit(LookupError):
    """An unknown unit name; `.name` is the unknown part."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no unit {name!r}")
        self.name = name


@dataclass(frozen=True)
class Unit:
    """How many of the course's base units it is (byte, s, FLOP, kg, m, token, ...), its
    dimensions with their powers, and its name in symbols.
    """

    factor: float
    powers: tuple[tuple[str, int], ...] = ()
    symbol: str = ""

    @property
    def dimensions(self) -> dict[str, int]:
        return dict(self.powers)


@cache
def unit(text: str) -> Unit:
    """Parse a unit; raises UnknownUnit. An empty text is the plain number.

    >>> unit("FLOP/byte").dimensions
    {'[operation]': 1, '[information]': -1}
    """
    text_with_powers = re.sub(r"([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)", r"**\1", text).translate(RAISED)
    factors = [(_number(name) or _named(name), power) for name, power in _factors(text_with_powers)]
    symbols = [(part.symbol, power) for part, power in factors if part.symbol]
    return _product(factors, _in_symbols(symbols))


def known(name: str) -> bool:
    """Whether this one word is a unit.

    >>> known("token"), known("tokens"), known("GiB")
    (True, True, True)
    """
    try:
        _named(name)
    except UnknownUnit:
        return False
    return True


@cache
def base_unit(text: str) -> str:
    """The unit of the library in which an amount in this one is counted.

    >>> base_unit("GB/s"), base_unit("TFLOP/s"), base_unit("ms/token")
    ('byte/s', 'FLOP/s', 's/token')
    """
    bases = ("byte", "s", "m", "FLOP", "OP", "Hz", "W", "J")

    def base(word: re.Match[str]) -> str:
        own = unit(word[0]).dimensions
        return next((name for name in bases if unit(name).dimensions == own), word[0])

    return re.sub(r"[^\W\d]+", base, text)


def _factors(text: str) -> list[tuple[str, int]]:
    """The names and numbers of a product with their powers; a division counts for the next."""
    result: list[tuple[str, int]] = []
    at, sign, raised, dangling = 0, 1, False, False
    while token := TOKEN.match(text, at):
        at = token.end()
        power, sort, number, name = token.groups()
        dangling = bool(power or sort)
        if power:
            raised = True
        elif raised and number and result and re.fullmatch(r"-?\d{1,2}", number):
            result[-1] = result[-1][0], result[-1][1] * int(number)
            raised, sign = False, 1
        elif raised:
            raise UnknownUnit(text.strip())
        elif sort:
            sign = -1 if sort == "/" else 1
        else:
            result.append((number or name, sign))
            sign = 1
    if dangling or text[at:].strip() or (text.strip() and not result):
        raise UnknownUnit(text.strip())
    return result


def _number(text: str) -> Unit | None:
    return Unit(float(text), (), "") if text[0].isdigit() or text[0] == "-" else None


def _named(name: str) -> Unit:
    prefixes, units = _table()
    for prefix, (factor, symbol) in {"": (1.0, ""), **prefixes}.items():
        rest = name.removeprefix(prefix)
        singular = rest.removesuffix("s")  # "tokens", but no symbol of one letter has a plural
        if rest in units or (len(singular) > 1 and singular in units):
            one = units[rest if rest in units else singular]
            if rest != name or not prefix:
                return Unit(one.factor * factor, one.powers, symbol + one.symbol)
    raise UnknownUnit(name)


def _in_symbols(factors: list[tuple[str, int]]) -> str:
    def raised(symbol: str, power: int) -> str:
        digits = str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
        return symbol if power == 1 else symbol + digits

    above = "·".join(raised(s, p) for s, p in factors if p > 0)
    below = "".join("/" + raised(s, -p) for s, p in factors if p < 0)
    return f"{above or '1' * bool(below)}{below}"


@cache
def _table() -> tuple[dict[str, tuple[float, str]], dict[str, Unit]]:
    """Prefix -> (factor, symbol), name -> unit, from `name = definition = symbol = alias ...`."""
    prefixes: dict[str, tuple[float, str]] = {}
    units: dict[str, Unit] = {}
    for line in files("lightspeed").joinpath("units.txt").read_text("utf-8").splitlines():
        if not line.strip() or line.startswith(("#", "dimensionless")):
            continue
        name, definition, *others = (part.strip() for part in line.split("="))
        symbol = next((o for o in others[:1] if o != "_"), name).rstrip("-")
        names = [n.rstrip("-") for n in (name, *others) if n != "_"]
        if name.endswith("-"):
            base, _, power = definition.partition("**")
            prefixes |= dict.fromkeys(names, (float(base) ** float(power or 1), symbol))
        else:
            units |= dict.fromkeys(names, _defined(definition, symbol, prefixes, units))
    return prefixes, units


def _defined(
    definition: str,
    symbol: str,
    prefixes: dict[str, tuple[float, str]],
    units: dict[str, Unit],
) -> Unit:
    if definition.startswith("["):
        return Unit(BASE.get(definition, 1.0), ((definition, 1),), symbol)
    factors = []
    for name, power in _factors(definition):
        prefix = next((p for p in prefixes if name.startswith(p) and name[len(p) :] in units), "")
        base = _number(name) or units.get(name) or units[name[len(prefix) :]]
        if prefix and name not in units:
            base = replace(base, factor=base.factor * prefixes[prefix][0])
        factors.append((base, power))
    return _product(factors, symbol)


def _product(factors: list[tuple[Unit, int]], symbol: str) -> Unit:
    """Units, each raised to its power, as one of this name."""
    factor, powers = 1.0, dict[str, int]()
    for base, power in factors:
        factor *= base.factor**power
        for dimension, times in base.powers:
            powers[dimension] = powers.get(dimension, 0) + times * power
    return Unit(factor, tuple((d, p) for d, p in powers.items() if p), symbol)
