"""What a question is: data, and Python that works out its answers."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from lightspeed_course.practice.amounts import amount, si_factor
from lightspeed_course.practice.derivation import Derivation
from lightspeed_course.practice.variants import Variant, drawn, seeded

LEVELS = ("recall", "apply", "design", "judge")
KINDS = ("number", "choice", "array", "function")
# Words of ids that a title has in capitals.
ACRONYMS = {
    *("ddp", "dram", "ecmp", "fma", "flop", "fsdp", "gemm", "gpu", "h100", "hbm", "hfu", "l1"),
    *("mfu", "mlp", "mtbf", "ndr", "nic", "sqnr", "usl"),
}
INCIDENT = "incident"  # the topic of incidents, and their kind


@dataclass(frozen=True)
class Parameter:
    """A premise: its canonical value and the values of its variants, in `unit` as the prompt shows
    it.

    A text (a key of the catalog) is a value too; `show(value)` is how the prompt writes it.
    """

    canonical: object
    choices: tuple = ()
    unit: str = ""
    show: Callable | None = None

    def text(self, value):
        if self.show:
            return self.show(value)
        return value if isinstance(value, str) else amount(value, self.unit, 6)

    def si(self, value):
        """The value as the library takes it; counts stay whole numbers."""
        factor = 1 if isinstance(value, str) else si_factor(self.unit)
        return value if factor == 1 else value * factor


@dataclass(frozen=True)
class Misconception:
    """A misconception: `wrong(**parameters)` is its answer, `hint` what to think about. A `slight`
    one may be within some variants' tolerance.
    """

    name: str
    wrong: Callable
    hint: str
    slight: bool = False


@dataclass(frozen=True, eq=False)
class Question:
    """One question. `expected`, every `wrong` and `solution` take the parameters in SI; results are
    in SI too.

    number    one value, asked in `unit`
    array     several values in one unit, named by `names`
    choice    `expected` returns a key of `options` (key -> text)
    function  the learner writes a function of the parameters; `expected` is the library's own.
              It is tried on draws from the parameters' choices and on `edges` (dicts of values).

    `solution` is a derivation, or a function of the parameters that gives one; its steps are also
    the hints. `smaller` names the question to try next after a wrong answer: a step of this one.

    `valid(**parameters)` refuses draws that would change what the question is about.

    `rests` names the questions that it rests on: who answers it has used them.

    `holds` keeps its statements true: words of the prompt, an option, a hint or the solution -> a
    function of the parameters that is True for each variant. Tests evaluate it, a learner's machine
    never.

    `why` is one sentence, true for each variant, on why the answer matters; it is shown to who is
    right.
    """

    id: str
    chapter: str
    level: str
    prompt: str
    expected: Callable
    solution: str | Derivation | Callable
    misconceptions: tuple[Misconception, ...]
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    unit: str = ""
    tolerance: float = 0.02
    kind: str = "number"
    options: Mapping[str, str] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    edges: tuple[Mapping, ...] = ()
    valid: Callable | None = None
    smaller: str = ""
    rests: tuple[str, ...] = ()
    holds: Mapping[str, Callable] = field(default_factory=dict)
    why: str = ""

    def __post_init__(self):
        def refuse(condition, reason):
            if condition:
                raise ValueError(f"question {self.id}: {reason}")

        refuse(
            not re.fullmatch(r"[a-z][a-z0-9]*\.[a-z]\w*", self.id),
            "the id is topic.name, in lower case",
        )
        refuse(self.level not in LEVELS, f"level is one of {', '.join(LEVELS)}")
        refuse(self.kind not in KINDS, f"kind is one of {', '.join(KINDS)}")
        refuse(
            (self.kind == "choice") != bool(self.options),
            "a choice, and only a choice, has options",
        )
        refuse((self.kind == "array") != bool(self.names), "an array, and only an array, has names")
        refuse(not 0 <= self.tolerance < 0.5, "tolerance is relative, from 0 to below 0.5")

    @property
    def title(self):
        """What a reader sees in place of the id: "DRAM over FMA" of numbers.dram_over_fma."""
        words = self.id.partition(".")[2].split("_")
        first, *more = [word.upper() if word in ACRONYMS else word for word in words]
        return " ".join([first[0].upper() + first[1:], *more])

    def variant(self, seed=None):
        """The question with the parameters that `seed` draws; the canonical ones without a seed."""
        return _variant(self, None if seed is None else str(seed))


@lru_cache(maxsize=256)  # who tries again does not wait again for what was worked out
def _variant(q, seed):
    several = any(p.choices for p in q.parameters.values())
    if seed is None or q.kind == "function" or not several:
        return Variant(q, seed, {name: p.canonical for name, p in q.parameters.items()})
    rng = seeded(q.id, seed)
    for turn in range(500):
        variant = Variant(q, seed, drawn(q, seed, turn, rng))
        if variant.is_sound():
            return variant
    raise ValueError(
        f"question {q.id}: 500 draws gave no valid variant; widen the choices or `valid`"
    )
