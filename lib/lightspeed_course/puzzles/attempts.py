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
from lightspeed_course.puzzles.cases import PUZZLES, SMS, TOY, Case
from lightspeed_models.simulators.kernels import Array, KernelError, Launch, diagnose, launch
from lightspeed_models.simulators.kernels.record import SECTOR

TOPIC = "puzzle"  # of the questions that a class asks: puzzle.softmax

CLOSE = 1e-6
IDLE = -1.0  # what `crossing` multiplies by where right numbers came by the wrong way
SLACK = 1.02  # bytes beyond the budget that a tail may cost
UNEVEN = 0.75  # of the processors that the reference keeps busy; shares need not be equal


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
        """Whether the solution is right and within the bytes."""
        return self.right and self.thrifty

    def __repr__(self) -> str:
        return self._repr_markdown_().replace("**", "")

    def _repr_markdown_(self) -> str:
        head = "Solved." if self.solved else "Not yet."
        listing = "".join(f"\n- {finding}" for finding in self.findings)
        return f"**{head}** {self.sentence}{listing}"


class Host:
    """The `launch` that a solution gets: it launches, and keeps each record."""

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
        """Return the bytes that crossed in all launches."""
        return sum(record.traffic.crossing for record in self.records)

    @property
    def busy(self) -> float:
        """Processors that have bytes to move, by the longest program of each launch."""
        longest = sum(
            max(sum(access.crossing for access in program) for program in record.programs)
            for record in self.records
        )
        return min(self.bytes / longest if longest else 1.0, SMS)

    def sectors(self, array: str) -> set[int]:
        """Sectors of an array that were read."""
        return {
            sector - access.address // SECTOR
            for record in self.records
            for access in record.accesses
            if access.array == array and not access.store
            for first, end in access.sectors
            for sector in range(first, end)
        }


def attempt(name: str, solution: Callable[..., None], seed: int = 1) -> Attempt:
    """Try a solution of the puzzle `name` on cases drawn from `seed`.

    It is called with `launch` and the puzzle's arguments; `launch.empty(name, size)` gives an array
    for what one launch leaves to the next. Raises BadArgument for a name that no puzzle has.
    """
    cases = PUZZLES[one_of("attempt", "name", name, PUZZLES)].cases(seed)
    moved, allowed = 0, 0
    for order in (None, seed):
        for case in map(Case.again, cases):
            host = Host(order)
            try:
                solution(host, *case.arguments)
            except KernelError as fault:
                return Attempt(False, False, str(fault))
            if wrong := _first_wrong(case, host, order is not None):
                return Attempt(False, False, wrong, findings=_errors(host))
            if order is not None:
                continue  # what crosses does not depend on the order
            reference = _reference(name, case)
            if short := _shortfall(host, reference):
                dear = (host.bytes, reference.bytes, _costs(host, reference))
                return Attempt(True, False, f"The numbers are right, but {short}", *dear)
            moved, allowed = moved or host.bytes, allowed or reference.bytes
    sentence = f"{moved:,} bytes cross; {allowed:,} were allowed."
    return Attempt(True, True, sentence, moved, allowed)


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
                wrong = f"{name}[{place}] is {number:.6g}{order}; {right:.6g} is right."
                return f"{wrong} {_unstored(name, place, len(expected), host)}".rstrip()
    return ""


def _unstored(name: str, place: int, size: int, host: Host) -> str:
    """How much of an array no program stores, if this place is among it."""
    elements = {at for record in host.records for at in record.writers.get(name, ())}
    if place in elements or any(a.atomic for r in host.records for a in r.accesses):
        return ""
    return (
        f"No program stores to it, nor to {size - len(elements) - 1:,} others of {size:,}: does the"
        " grid reach the end of each side, and is the mask of the store too narrow?"
    )


def _reference(name: str, case: Case) -> Host:
    host = Host(values=False)
    getattr(references, name)(host, *case.arguments)
    return host


def _shortfall(host: Host, reference: Host) -> str:
    """What right numbers don't show: bytes beyond the budget, processors that idle, memory that was
    never read; nothing where all is well.
    """
    if host.bytes > SLACK * reference.bytes:
        return f"{host.bytes:,} bytes cross where {reference.bytes:,} are enough."
    if host.busy < UNEVEN * reference.busy:
        return (
            f"only {host.busy:.1f} of the chip's {SMS} processors are busy, where"
            f" {reference.busy:.1f} could be: give the work to more programs, in like shares."
        )
    for array in sorted({a.array for r in reference.records for a in r.accesses if not a.store}):
        if unread := reference.sectors(array) - host.sectors(array):
            return (
                f"no program loads {len(unread) * SECTOR:,} bytes of {array} on which the result"
                " depends: read arrays in the kernel, with tl.load."
            )
    return ""


def _errors(host: Host) -> tuple[str, ...]:
    wrong = (f for f in diagnose(host.records, SMS) if f.kind in {"race", "hazard", "filler"})
    return tuple(finding.sentence for finding in wrong)[:3]


def _costs(host: Host, reference: Host) -> tuple[str, ...]:
    """What crossed, the dearest first, without what the reference pays as well."""
    fair = {(f.kind, f.array): f.cost for f in diagnose(reference.records, SMS)}
    dear = (f for f in diagnose(host.records, SMS) if f.cost > fair.get((f.kind, f.array), -1.0))
    return tuple(finding.sentence for finding in dear)[:3]


# ---------------------------------------------------------------- for a class


@lru_cache(maxsize=64)  # a grader asks for some cases again
def crossing(name: str, solution: Callable[..., None], seed: float) -> float | None:
    """Run a solution on the case that `seed` draws: its numbers in one sum, each with a weight of
    its own, times its bytes over the budget in halves (1.5, 2, 2.5), or 1 within it; `IDLE` where
    processors idle or memory was not read. None where nothing was launched.

    Raises KernelError for what a GPU would refuse.
    """
    case, host = _graded_case(name, seed), Host(seed)
    solution(host, *case.arguments)
    if not host.records:
        return None
    if any(record.races for record in host.records):
        return math.nan
    reference = _reference(name, case)
    excess = host.bytes / reference.bytes
    factor: float = max(1.5, round(2 * excess) / 2) if excess > SLACK else 1
    if factor == 1 and _shortfall(host, reference):
        factor = IDLE
    return _weighted(case, seed, case.values()) * factor


@lru_cache(maxsize=1024)
def right_crossing(name: str, seed: float) -> float:
    """Return the `crossing` of a right solution within its bytes, without launching."""
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
