"""A solution of a puzzle, tried: is it right in any order of programs, within the bytes, and if
not, what crossed.
"""

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

from lightspeed.errors import one_of
from lightspeed_course.puzzles import references
from lightspeed_course.puzzles.cases import PUZZLES, TOY, Case
from lightspeed_models.simulators.kernels import Array, KernelError, Launch, diagnose, launch

TOPIC = "puzzle"  # of the questions that a class asks: puzzle.softmax

CLOSE = 1e-6
SLACK = 1.02  # bytes beyond the budget that a tail may cost


@dataclass(frozen=True, repr=False)
class Attempt:
    """What became of a solution: `right`, `thrifty` (within the bytes), and the sentence.

    `bytes` and `budget` are those of the first case; `findings` say what crossed, the dearest
    first.
    """

    right: bool
    thrifty: bool
    sentence: str
    bytes: int = 0
    budget: int = 0
    findings: tuple[str, ...] = ()

    @property
    def solved(self) -> bool:
        """Right, and within the bytes."""
        return self.right and self.thrifty

    def __repr__(self) -> str:
        return self._repr_markdown_().replace("**", "")

    def _repr_markdown_(self) -> str:
        head = "Solved." if self.solved else "Not yet."
        listing = "".join(f"\n- {finding}" for finding in self.findings)
        return f"**{head}** {self.sentence}{listing}"


class Host:
    """What a solution gets as `launch`: it launches, and keeps each record."""

    def __init__(self, seed: float | None = None, values: bool = True) -> None:
        self.records: list[Launch] = []
        self._seed, self._values = seed, values

    def __call__(
        self, kernel: Callable[..., None], grid: tuple[int, ...], *arguments: object
    ) -> None:
        """Run the kernel over the grid."""
        self.records.append(
            launch(kernel, grid, *arguments, limits=TOY, seed=self._seed, values=self._values)
        )

    @staticmethod
    def empty(name: str, size: int, element_bytes: int = 4) -> Array:
        """An array of zeros between two launches."""
        return Array(name, [0.0] * size, element_bytes=element_bytes)

    @property
    def bytes(self) -> int:
        """Bytes that crossed in all launches."""
        return sum(record.traffic.crossing for record in self.records)


def attempt(name: str, solution: Callable[..., None], seed: int = 1) -> Attempt:
    """Try a solution of the puzzle `name` on cases drawn from `seed`.

    It is called with `launch` and the puzzle's arguments; `launch.empty(name, size)` gives an array
    for what one launch leaves to the next. Raises BadArgument for a name that no puzzle has.
    """
    puzzle = PUZZLES[one_of("attempt", "name", name, PUZZLES)]
    cases, hosts = puzzle.cases(seed), []
    for order in (None, seed):
        for case in map(Case.again, cases):
            host = Host(order)
            try:
                solution(host, *case.arguments)
            except KernelError as fault:
                return Attempt(False, False, str(fault))
            if wrong := _first_wrong(case, host, order is not None):
                return Attempt(False, False, wrong, findings=_sentences(host, wrong=True))
            hosts += [host] if order is None else []
    budgets = [_budget(name, case) for case in cases]
    over = [
        (host, budget)
        for host, budget in zip(hosts, budgets, strict=True)
        if host.bytes > SLACK * budget
    ]
    if over:
        host, budget = over[0]
        sentence = (
            f"The numbers are right, but {host.bytes:,} bytes cross where {budget:,} are enough."
        )
        return Attempt(True, False, sentence, host.bytes, budget, _sentences(host))
    sentence = f"{hosts[0].bytes:,} bytes cross; {budgets[0]:,} were allowed."
    return Attempt(True, True, sentence, hosts[0].bytes, budgets[0])


def _first_wrong(case: Case, host: Host, shuffled: bool) -> str:
    """The first number that is wrong, in words; nothing where all are right."""
    if not host.records:
        return "Nothing was launched: call launch(kernel, grid, ...) in your solution."
    if any(record.races for record in host.records):
        return "Two programs, or two lanes, store to one place."
    for name, expected in case.expected.items():
        numbers = case.arrays[name].values or []
        for place, (number, right) in enumerate(zip(numbers, expected, strict=False)):
            if not math.isclose(number, right, rel_tol=CLOSE, abs_tol=CLOSE):
                order = " when programs run in another order" if shuffled else ""
                return f"{name}[{place}] is {number:.6g}{order}; {right:.6g} is right."
    return ""


def _budget(name: str, case: Case) -> int:
    host = Host(values=False)
    getattr(references, name)(host, *case.arguments)
    return host.bytes


def _sentences(host: Host, wrong: bool = False) -> tuple[str, ...]:
    findings = diagnose(host.records)
    if wrong:
        findings = [finding for finding in findings if finding.kind in {"race", "hazard"}]
    return tuple(finding.sentence for finding in findings[:3])


# ---------------------------------------------------------------- for a class


@lru_cache(maxsize=64)  # a grader asks for some cases again
def crossing(name: str, solution: Callable[..., None], seed: float) -> float | None:
    """Run a solution on the case that `seed` draws: its numbers in one sum, each with a weight of
    its own, times its bytes over the budget in halves (1.5, 2, 2.5), or 1 within it. None where
    nothing was launched.

    Raises KernelError for what a GPU would refuse.
    """
    case, host = _graded_case(name, seed), Host(seed)
    solution(host, *case.arguments)
    if not host.records:
        return None
    if any(record.races for record in host.records):
        return math.nan
    excess = host.bytes / _budget(name, case)
    return _weighted(case, seed, case.values()) * (
        max(1.5, round(2 * excess) / 2) if excess > SLACK else 1
    )


@lru_cache(maxsize=1024)
def right_crossing(name: str, seed: float) -> float:
    """What `crossing` gives of a right solution within its bytes; nothing is launched for it."""
    case = _graded_case(name, seed)
    return _weighted(case, seed, case.expected)


def tried(question: str, function: Any) -> Any:
    """What the grader calls for an answer: of a puzzle its `crossing`, else the function itself."""
    topic, _, name = question.partition(".")
    return partial(crossing, name, function) if topic == TOPIC and callable(function) else function


def _graded_case(name: str, seed: float) -> Case:
    """One of the puzzle's sizes, the first more often, as its tails are harder."""
    sizes = PUZZLES[name].sizes
    numbers = random.Random(f"graded {name} {seed}")
    return PUZZLES[name].draw(numbers, **numbers.choice((sizes[0], *sizes)))


def _weighted(case: Case, seed: float, values: dict[str, list[float]]) -> float:
    weights = random.Random(f"weights {seed}")
    return math.fsum(
        weights.uniform(1, 2) * number for name in case.expected for number in values[name]
    )
