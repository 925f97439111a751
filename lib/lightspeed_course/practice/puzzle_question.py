"""A puzzle of lesson 2.2 as a question that a class releases and grades: puzzle.softmax.

The answer is the solution itself. `check` tries it as `attempt` does and says what crossed; the
grader calls it on cases that nobody was told of, in its sandbox, and compares what it leaves and
how many bytes crossed (`lightspeed_course.puzzles.attempts.crossing`).
"""

from functools import cache, partial

from lightspeed_course.practice.question_model import Misconception, Parameter, Question
from lightspeed_course.puzzles.attempts import IDLE, TOPIC, right_crossing
from lightspeed_course.puzzles.cases import PUZZLES

ASKS = (
    "*Write a function of `launch` and the arrays and sizes that the text names. It launches your"
    " kernel, is right, and lets no more bytes cross than it must.*"
)
STEPS = (
    "Count what has to cross: each number that is read, once, and each that is written, once.\n\n"
    "Give each program a block that fits on the chip, and keep on the chip what it needs again.\n\n"
    "The page of solutions has a kernel within these bytes."
)
# how many times the budget crosses, its name, its hint
DEAR = (
    (2.0, "everything twice", "Which array is read again, or written only to be read back?"),
    (1.5, "half of it again", "Is one of the arrays read twice, or a part of it by two programs?"),
    (
        IDLE,
        "an idle chip",
        "Do at least four programs share the work, and does a kernel load every number it needs?",
    ),
    (4.0, "four times", "Do neighbouring lanes ask for neighbours, or for whole sectors each?"),
)


class PuzzleQuestion(Question):
    """A question whose function the counting machine runs; `asks` is its form, in words."""

    asks = ASKS


@cache
def puzzle_question(id: str) -> PuzzleQuestion:
    """The puzzle of this id; LookupError for one that there is not."""
    name = id.partition(".")[2]
    if name not in PUZZLES:
        raise LookupError(f"puzzles are {', '.join(f'{TOPIC}.{each}' for each in PUZZLES)}")

    def dear(times: float, seed: float) -> float:
        return times * right_crossing(name, seed)

    return PuzzleQuestion(
        id=id,
        chapter="02_roofline_2_kernels",
        level="design",
        kind="function",
        prompt=PUZZLES[name].text,
        expected=partial(right_crossing, name),
        solution=STEPS,
        misconceptions=tuple(
            Misconception(words, partial(dear, times), hint) for times, words, hint in DEAR
        ),
        parameters={"seed": Parameter(1.0, (2.0, 1e6))},
        tolerance=1e-6,
        why="What crosses is what a kernel that waits for memory takes its time for.",
    )
