"""Concept tests: a class votes on a question, talks about it, and votes again.

Each chapter has a pair of them, taken from the banks. After each comes the same question with other
numbers and another right answer: it shows who took over the reason, and who only the answer.
"""

import math
from dataclasses import dataclass
from string import ascii_uppercase

from lightspeed_course.practice.amounts import amount
from lightspeed_course.practice.questions import question
from lightspeed_course.practice.variants import Variant

# What a room can settle by talking, without a calculator.
PAIRS = {
    "01_numbers_to_know": ("numbers.claim_wider_link", "numbers.claim_hbm_over_l1"),
    "02_roofline": ("roofline.claim_upgrade", "roofline.claim_more_users"),
    "02_roofline_2_kernels": ("kernels.split_decode", "kernels.registers_of_block"),
    "03_amdahl_gustafson": ("scaling.claim_near_linear", "scaling.claim_limit"),
    "04_littles_law": ("queueing.claim_a_tenth", "queueing.claim_spare_slots"),
    "05_precision": ("precision.claim_exact_count", "precision.claim_int8_arithmetic"),
    "06_parallelism": ("parallelism.claim_traffic_hides", "parallelism.claim_half_more"),
    "07_nccl_bandwidth": ("nccl.claim_on_a_ring", "nccl.claim_faster_links"),
    "08_network": ("network.first_counter", "network.rail_spine"),
    "09_serving": ("inference.first_suspect", "inference.read_the_log"),
    "10_plan_a_run": ("planning.buy_what", "planning.front"),
    "11_profile": ("profile.transfer", "profile.exposed"),
}
HOW = """\
Show a question and let everybody vote alone, all at once. If nearly all are right, or nearly none,
explain. Otherwise let them talk for two minutes with somebody who chose another letter, and vote
again on the same question. Then put the second question of the test, and vote alone.
"""


@dataclass(frozen=True)
class Option:
    """An option to vote for; `say` helps those who chose it, empty for the right answer."""

    letter: str
    text: str
    right: bool
    say: str = ""


def options(variant: Variant) -> tuple[Option, ...]:
    """Return the options of a choice; for a number, the right value and each misconception's."""
    q = variant.question
    if q.kind == "choice":
        texts, key = variant.options, str
    else:
        # one misconception may lead to no number, and two to the same
        led = [variant.right, *(variant.wrong(m) for m in q.misconceptions)]
        numbers = sorted({value for [value] in led if math.isfinite(value)})
        labels = [amount(v, q.unit, 3) for v in numbers]
        texts, key = dict(zip(labels, labels, strict=True)), _text(q.unit)
    says = {key(variant.wrong(m)): m.hint for m in reversed(q.misconceptions)}
    right = key(variant.right)
    return tuple(
        Option(letter, text, k == right, "" if k == right else says.get(k, ""))
        for letter, (k, text) in zip(ascii_uppercase, texts.items(), strict=False)
    )


def _text(unit):
    return lambda values: amount(values[0], unit, 3) if math.isfinite(values[0]) else ""


def concept_tests(chapter: str, seed: str = "room") -> list[tuple[Variant, Variant]]:
    """Return a chapter's concept tests: a variant to vote on twice, then another variant."""
    tests = []
    for id in PAIRS[chapter]:
        q = question(id)
        variants = [q.variant(f"{seed} {n}") for n in range(100)]
        again = [v for v in variants if v.right != variants[0].right]
        tests.append((variants[0], again[0]))
    return tests


def page(chapter: str, seed: str = "room") -> str:
    """Return the tests as Markdown: the questions to show, then the key for the teacher."""
    slides, key = [f"# Concept tests: {chapter}\n\n{HOW}"], ["# Key"]
    for number, pair in enumerate(concept_tests(chapter, seed), 1):
        for part, variant in zip("ab", pair, strict=True):
            name, votes = f"{number}{part}", options(variant)
            choices = "\n".join(f"- **{o.letter}** {o.text}" for o in votes)
            slides.append(f"## {name}\n\n{variant.fill(variant.question.prompt)}\n\n{choices}")
            replies = [f"- To **{o.letter}**: {o.say}" for o in votes if o.say]
            right = next(o.letter for o in votes if o.right)
            head = f"## {name}: {right}\n\n`{variant.question.id}`"
            key.append("\n\n".join([head, variant.solution, "\n".join(replies)]))
    return "\n\n".join([*slides, *key]) + "\n"
