"""Questions of chapter 6 that are one step of a larger one: what `check` offers after a wrong
answer.
"""

from __future__ import annotations

from lightspeed import memory, parallel, pipeline, reliability
from lightspeed_course.practice.banks.parallelism import CHAPTER
from lightspeed_course.practice.derivation import derivation, step
from lightspeed_course.practice.parameters import plain
from lightspeed_course.practice.questions import Misconception, Question, register
from lightspeed_models.simulators import schedules

KEPT = float(memory.activation_bytes(1, 1, 1, 1, recompute="selective"))


def idle_slots(p, m):
    return round(2 * m * pipeline.bubble_over_ideal(p, m))


idle = Question(
    id="parallelism.idle_slots",
    chapter=CHAPTER,
    level="recall",
    prompt=(
        "A pipeline of {{p}} stages works on {{m}} micro-batches in GPipe's order. A forward pass"
        " of a stage takes one slot, and so does a backward pass. For how many slots of the step"
        " does each GPU do nothing?"
    ),
    parameters={"p": plain(5, 3, 6, 8), "m": plain(12, 8, 24)},
    expected=idle_slots,
    tolerance=0,
    solution=lambda p, m: derivation(
        "The last GPU waits until the first micro-batch has passed the stages before it.",
        step("These are its slots of waiting, forward.", "p - 1", p=p),
        step("Backward the first GPU waits as long.", "2 * (p - 1)", idle_slots(p, m), p=p),
        after=f"It works for {2 * m} slots. The number of micro-batches does not change the wait.",
    ),
    holds={
        "does not change the wait": lambda p, m: idle_slots(p, 2 * m) == idle_slots(p, m),
    },
    misconceptions=(
        Misconception(
            "one way",
            lambda p, m: p - 1,
            "That is the forward half. What happens on the way back?",
        ),
        Misconception(
            "all stages",
            lambda p, m: 2 * p,
            "Does a stage wait for itself? How many others are there?",
        ),
        Misconception(
            "the work",
            lambda p, m: 2 * m,
            "In so many slots a GPU works. In how many does it wait?",
        ),
        Misconception(
            "all GPUs together",
            lambda p, m: 2 * p * (p - 1),
            "That is the blank area of the whole timeline. How much of it lies in one row?",
        ),
    ),
)

before_backward = Question(
    id="parallelism.before_first_backward",
    chapter=CHAPTER,
    level="recall",
    prompt=(
        "A 1F1B pipeline has {{p}} stages and runs {{m}} micro-batches. How many forward passes"
        " does the first stage run before its first backward pass?"
    ),
    parameters={"p": plain(6, 4, 8, 12), "m": plain(24, 16, 48)},
    expected=lambda p, m: schedules.simulate("1f1b", p, m).peak_activations[0],
    tolerance=0,
    solution=lambda p, m: derivation(
        "A backward pass of the first stage needs the gradient from the stage behind it, and so on"
        " to the end of the line.",
        step(
            "While the first micro-batch goes down the line, a new one follows it into each stage.",
            "stages",
            schedules.simulate("1f1b", p, m).peak_activations[0],
            stages=p,
        ),
        after=f"GPipe would run {m} first.",
    ),
    misconceptions=(
        Misconception(
            "GPipe",
            lambda p, m: m,
            "That is GPipe, which runs the forward passes first. Which one does 1F1B not wait for?",
        ),
        Misconception(
            "one and one",
            lambda p, m: 1,
            "Each in turn, once it goes on. When does the first gradient come back to it?",
        ),
        Misconception(
            "the first not counted",
            lambda p, m: p - 1,
            "Nearly: the micro-batch that comes back first was also run forward. Is it counted?",
        ),
        Misconception(
            "there and back",
            lambda p, m: 2 * p - 1,
            "So long is the way down and back. How many micro-batches may go in meanwhile, if"
            " each stage holds one for each stage from itself to the end?",
        ),
    ),
)


def leave(n, tokens):
    return parallel.expert_parallel_bytes(tokens, 1, n, 1, element_bytes=1) / 4


leaving = Question(
    id="parallelism.tokens_that_leave",
    chapter=CHAPTER,
    level="recall",
    prompt=(
        "{{n}} GPUs hold an expert each. A GPU has {{tokens}} tokens, and its router sends each to"
        " one expert, as many to one as to any other. How many tokens leave the GPU?"
    ),
    parameters={"n": plain(4, 8, 16), "tokens": plain(64, 48, 96)},
    expected=leave,
    tolerance=0,
    solution=lambda n, tokens: derivation(
        step("One expert gets", "tokens / n", tokens=tokens, n=n),
        step(
            "One of the experts is at home. To the others go",
            "tokens - stay",
            leave(n, tokens),
            tokens=tokens,
            stay=tokens // n,
        ),
    ),
    misconceptions=(
        Misconception(
            "all of them", lambda n, tokens: tokens, "Where is the expert that some of them want?"
        ),
        Misconception(
            "one expert's",
            lambda n, tokens: tokens / n,
            "So many want one expert. How many experts are elsewhere?",
        ),
        Misconception(
            "to everybody",
            lambda n, tokens: tokens * (n - 1),
            "That is a gather, which hands each token round. Here a token goes to one expert.",
        ),
    ),
)

rates = Question(
    id="parallelism.rates_add",
    chapter=CHAPTER,
    level="recall",
    prompt=(
        "A GPU fails once in {{hours}} hours on average, each by itself. How many hours pass on"
        " average until one of {{n}} such GPUs fails?"
    ),
    parameters={"hours": plain(50_000, 40_000, 80_000), "n": plain(2000, 500, 4000)},
    expected=lambda hours, n: reliability.cluster_mtbf(hours * 3600, n),
    unit="h",
    tolerance=0.01,
    solution=lambda hours, n: derivation(
        "Rates of failure add up over the GPUs.",
        step(
            "So the time between two failures is shared by them.",
            "alone / n",
            (float(reliability.cluster_mtbf(hours * 3600, n)), "s"),
            alone=(hours * 3600, "s"),
            n=n,
        ),
    ),
    misconceptions=(
        Misconception(
            "times add",
            lambda hours, n: hours * 3600 * n,
            "With more parts, does something break sooner or later?",
        ),
        Misconception(
            "as for one",
            lambda hours, n: hours * 3600,
            "That is one GPU's. How much more often does something fail among many?",
        ),
        Misconception(
            "half of it",
            lambda hours, n: hours * 3600 / n / 2,
            "Nearly: the time until a failure is a mean already. Is there a reason to take half of"
            " it?",
        ),
    ),
)

layer_keeps = Question(
    id="parallelism.kept_by_a_layer",
    chapter=CHAPTER,
    level="recall",
    prompt=(
        "A layer of a GPT of width {{width}}, all in two bytes, keeps for the backward pass of a"
        " token: the inputs of two norms, their outputs, queries, keys, values, the heads' result,"
        " and the hidden vector of the MLP, four times as wide, before and after its non-linearity."
        " Two dropouts keep a byte for each element of the width. How many bytes are these, without"
        " attention scores?"
    ),
    parameters={"width": plain(1024, 2048, 4096)},
    expected=lambda width: memory.activation_bytes(1, 1, width, 1, recompute="selective"),
    unit="kB",
    tolerance=0.01,
    solution=lambda width: derivation(
        step("Vectors of the model's width, in two bytes.", "2 * (2 + 2 + 3 + 1)"),
        step("The hidden vector, twice, and four times as wide.", "2 * 2 * 4"),
        step("The dropouts.", "2 * 1"),
        step(
            "Together, for each unit of the width.",
            "kept * width",
            (float(memory.activation_bytes(1, 1, width, 1, recompute="selective")), "byte"),
            kept=(KEPT, "byte"),
            width=width,
        ),
    ),
    holds={
        "four times as wide": "design",
    },
    misconceptions=(
        Misconception(
            "a hidden vector once",
            lambda width: (KEPT - 8) * width,
            "The non-linearity has an input and an output. Which of them does its gradient need,"
            " and which one the matrix behind it?",
        ),
        Misconception(
            "elements for bytes",
            lambda width: KEPT / 2 * width,
            "How many bytes does an element of a vector take?",
        ),
        Misconception(
            "a hidden vector as wide as the model",
            lambda width: (KEPT - 12) * width,
            "How many times as wide as the model is the hidden vector of the MLP?",
        ),
        Misconception(
            "no dropout",
            lambda width: (KEPT - 2) * width,
            "Nearly. Which values a dropout dropped must be known in the backward pass, too.",
            slight=True,
        ),
    ),
)

register(idle, before_backward, leaving, rates, layer_keeps)
