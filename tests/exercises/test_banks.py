"""Every question: right answers pass in any honest style, wrong ones are told apart."""

import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from lightspeed.units import Q
from lightspeed_course.practice.amounts import close, si_factor
from lightspeed_course.practice.causes import BANK, VAGUE
from lightspeed_course.practice.check import UNTOLD, diagnose
from lightspeed_course.practice.explain import WINDOW
from lightspeed_course.practice.questions import bank, question, topics
from lightspeed_course.practice.rows import rows
from lightspeed_course.practice.slips import factors

SEEDS = (None, *range(10))
QUESTIONS = [q for topic in ("sample", *topics()) for q in bank(topic)]

# What holds of every question: (check, kinds of question or none for all, seeds at each commit,
# seeds in all). A check with seeds has the first few at each commit, the others with what is slow.
CHECKS = []


def of_each(*kinds, few=0, of=None):
    """Registers a check of every question, or of those of some kinds."""

    def register(check):
        CHECKS.append((check, kinds, few, of))
        return check

    return register


@pytest.mark.parametrize("half", ["few", pytest.param("many", marks=pytest.mark.slow)])
@pytest.mark.parametrize("q", QUESTIONS, ids=lambda q: q.id)
def test_every_check_holds(q, half):
    faults = []
    for check, kinds, few, of in CHECKS:
        if (kinds and q.kind not in kinds) or (half == "many" and not few):
            continue
        seeds = {"seeds": SEEDS[few:of] if half == "many" else SEEDS[:few]} if few else {}
        try:
            check(q, **seeds)
        except Exception as fault:
            faults.append(f"{check.__name__}: {type(fault).__name__}: {fault}")
    assert not faults, "\n".join(faults)


@cache
def variant_of(id, seed=None):
    """One variant of each seed for all tests: some take a while to work out."""
    return question(id).variant(seed)


def rounded(values, tolerance):
    return [
        float(f"{v:.{max(2, 1 + int(-np.log10(max(tolerance, 1e-9)) + 0.999)) - 1}e}")
        for v in values
    ]


def test_the_registry_finds_a_question_by_its_prefix():
    for q in QUESTIONS:
        assert question(q.id) is q


@of_each()
def is_well_formed(q):
    variant = variant_of(q.id)
    assert variant.is_sound(), (
        "the canonical values are refused by `valid`, or a misconception is the right answer there"
    )
    assert (n := len(q.misconceptions)) >= 3, f"three misconceptions are asked, it has {n}"
    assert len({m.name for m in q.misconceptions}) == n, "two misconceptions have one name"
    short = [m.name for m in q.misconceptions if len(m.hint.split()) < 4]
    assert not short, f"hints of four words or more are asked, those of {short} are shorter"
    assert "us" not in {q.unit, *(p.unit for p in q.parameters.values())}, (
        "microseconds are written µs"
    )
    texts = [variant.prompt, variant.solution, *(variant.fill(m.hint) for m in q.misconceptions)]
    unfilled = [text for text in texts if "{{" in text]
    assert not unfilled, f"no parameter has the name in braces: {unfilled}"
    if q.kind == "choice":
        explained = {variant.wrong(m) for m in q.misconceptions} - {variant.right}
        assert explained == set(q.options) - {variant.right}, (
            "each wrong option needs a misconception"
        )
        assert len(explained) >= 3, "a choice has three wrong options at least"
    else:
        assert np.isfinite(variant.right).any(), f"the answer is {variant.right}"
        wrongs = [variant.wrong(m) for m in q.misconceptions]
        distinct = []
        for m, one in zip(q.misconceptions, wrongs, strict=True):
            assert np.isfinite(one).any(), f"{m.name}: no value at the canonical parameters"
            if not any(close(one, other, 1e-6) for other in distinct):
                distinct.append(one)
        assert len(distinct) >= 3, "three different wrong answers at least"
    if q.kind == "function":
        assert all(si_factor(p.unit) == 1 for p in q.parameters.values()), (
            "a function takes the library's own units"
        )
        assert si_factor(q.unit) == 1


WORDS = {"million": 1e6, "billion": 1e9, "trillion": 1e12}


@of_each("number", few=1, of=6)
def an_exact_answer_follows_from_the_numbers_as_they_are_shown(q, seeds):
    """Whoever calculates with the numbers of the prompt gets the answer: none is rounded further
    than the tolerance lets be."""
    for variant in (variant_of(q.id, seed) for seed in seeds):
        given = {}
        for name, p in q.parameters.items():
            value = variant.values[name]
            met = re.match(r"-?([\d.,]*\d)(?: (\w+))?", p.text(value))
            if met and isinstance(value, int | float) and value:
                read = float(met[1].replace(",", "")) * WORDS.get(met[2], 1)
                if 0 < abs(read / value - 1) < 0.1:  # else it is shown in another unit
                    given[name] = p.si(read)
        if given:
            again = float(q.expected(**variant.inputs() | given))
            assert close([again * 1.0], [float(q.expected(**variant.inputs()))], q.tolerance), given


def test_a_model_whose_weights_are_counted_exactly_is_shown_with_its_parameters():
    """70 billion in place of 70.55 are another whole number of requests."""
    for id in ("serving.slots_in_memory", "serving.batch_within_budget"):
        assert "70.554 billion parameters" in variant_of(id).prompt, id


def test_the_prompt_names_the_function_that_the_page_asks_for():
    pages = "".join(
        page.read_text() for page in (Path(__file__).parents[2] / "solutions").glob("*.py")
    )
    asked = re.findall(r'^check\("([\w.]+)", (\w+)\)', pages, re.MULTILINE)
    named = {id: name for id, name in asked if question(id).kind == "function"}
    assert len(named) >= 15
    for id, name in named.items():
        if id.startswith("puzzle."):  # its cell has the signature
            assert re.search(rf"def {name}\(.*check\(\"{id}\", {name}\)", pages, re.S), id
        else:
            assert f"Write `{name}(" in question(id).prompt, id
            assert f"def {name}(" in variant_of(id).solution, id


@of_each()
def a_prompt_speaks_of_no_other_question(q):
    """Each draws its own numbers: nobody can know what "the same model" before was."""
    assert not re.search(
        r"^(the same|now|again|still|then)\b|\b(as before|that machine|question (above|before))\b",
        q.prompt,
        re.IGNORECASE,
    )


@of_each(few=3)
def variants_are_drawn_from_the_seed_alone(q, seeds):
    for seed in seeds:
        variant = variant_of(q.id, seed)
        # another question, so it is drawn anew
        again = replace(q).variant(None if seed is None else str(seed))
        assert variant is not again and variant.values == again.values
        assert variant.is_sound()
        assert all(variant.values[n] in (*p.choices, p.canonical) for n, p in q.parameters.items())
    several = np.prod([max(1, len(p.choices)) for p in q.parameters.values()]) > 3
    if len(seeds) > 3 and q.kind != "function" and several:
        assert len({repr(variant_of(q.id, seed).values) for seed in seeds}) > 1


def right_answers(variant):
    q, right = variant.question, variant.right
    if q.kind == "choice":
        return {"key": right, "shouted": f"  {right.upper()} ", "text": variant.options[right]}
    if q.kind == "function":
        unit, inputs = q.unit or "dimensionless", map(variant.inputs, variant.samples)
        known = {repr([*i.values()]): q.expected(**i) for i in inputs}  # without another call

        def positional(*arguments):
            return known[repr([*arguments])]

        return {
            "by name": lambda **p: positional(*p.values()),
            "numpy": lambda **p: np.float64(positional(*p.values())),
            "quantity": lambda **p: Q(float(positional(*p.values())), unit),
            "positional": positional,
        }
    if q.kind == "array":
        return {
            "list": list(map(float, right)),
            "tuple": tuple(right),
            "array": right,
            "quantity": Q(right, q.unit or "dimensionless"),
            "quantities": [Q(v, q.unit or "dimensionless").to_base_units() for v in right],
            "rounded": rounded(right, q.tolerance),
        }
    value = float(right[0])
    return {
        "float": value,
        "numpy scalar": np.float64(value),
        "0-d array": np.array(value),
        "quantity": Q(value, q.unit or "dimensionless"),
        "quantity in base units": Q(value, q.unit or "dimensionless").to_base_units(),
        "rounded": rounded([value], q.tolerance)[0],
        **({"int": int(value)} if value % 1 == 0 else {}),
    }


@of_each(few=2, of=5)
def right_answers_pass_in_every_honest_style(q, seeds):
    for seed in seeds:
        variant = variant_of(q.id, seed)
        for style, answer in right_answers(variant).items():
            verdict = diagnose(variant, answer)
            assert verdict.correct and verdict.kind == "right", f"{style}, seed {seed}: {verdict}"


@of_each(few=1, of=3)
def a_law_of_the_library_is_no_answer_to_write_it(q, seeds):
    """Under its own name, inside another function, or turned into another number on the way."""
    for variant in (variant_of(q.id, seed) for seed in seeds):
        if q.kind != "function" or not variant.library["gives"]:
            continue
        for called in (q.expected, lambda **p: float(q.expected(**p)) * 1.0):
            verdict = diagnose(variant, called)
            assert (verdict.correct, verdict.kind) == (False, "library"), verdict
            assert verdict.name in variant.library["gives"] and verdict.name in verdict.message


def test_what_a_student_with_the_library_cannot_look_up():
    """docs/teach.md names them."""
    functions = (q for topic in topics() for q in bank(topic) if q.kind == "function")
    alone = [q.id for q in functions if not variant_of(q.id).library["gives"]]
    teach = (Path(__file__).parents[2] / "docs/teach.md").read_text()
    assert alone == re.findall(r"`([\w.]+)` alone asks for a function", teach)


def wrong_answer(variant, misconception):
    q = variant.question
    if q.kind == "function":
        return misconception.wrong
    wrong = variant.wrong(misconception)
    return wrong if q.kind == "choice" else list(wrong) if q.kind == "array" else wrong[0]


@of_each(few=2)
def each_misconception_is_met_with_its_own_message(q, seeds):
    for seed in seeds:
        variant = variant_of(q.id, seed)
        for m in q.misconceptions:
            wrong = variant.wrong(m)
            if q.kind == "choice":
                if wrong == variant.right:
                    continue
            elif q.kind != "function" and not np.isfinite(wrong).all():
                assert seed is not None, f"{m.name}: no value at the canonical parameters"
                continue
            verdict = diagnose(variant, wrong_answer(variant, m))
            assert not verdict.correct, f"{m.name}, seed {seed}"
            assert verdict.kind == "misconception", (
                f"{m.name}, seed {seed}: {verdict.kind}: {verdict}"
            )
            assert m.name in verdict.name, f"{m.name}, seed {seed}: taken for {verdict.name}"
            assert variant.fill(m.hint) in verdict.message


@of_each()
def stubs_fail(q):
    stubs = [..., None, 0.0, "", NotImplemented]
    if q.kind == "function":
        stubs += [lambda *a, **p: None, lambda *a, **p: ..., lambda: 1.0]
    for stub in stubs:
        assert not diagnose(variant_of(q.id), stub).correct
    assert diagnose(variant_of(q.id), ...).kind == "unanswered"


NUMBER = re.compile(r"(?<![\w.])(\d[\d,]*\.?\d*(?:e-?\d+)?)(\s*[^\W\d]*)")


def tells(text, variant):
    """Whether a text writes the right value, in the asked unit or with the unit's own words."""
    if variant.question.kind == "choice":
        return False
    quantities = {variant.right[0]} if variant.question.kind == "number" else set(variant.right)
    found = [float(n.replace(",", "")) for n, _ in NUMBER.findall(text)]
    return any(close(f, value, 1e-3) for f in found for value in quantities)


@of_each("number", "array")
def neither_prompt_nor_hint_tells_the_answer(q):
    variant = variant_of(q.id)
    premises = " ".join(p.text(variant.values[n]) for n, p in q.parameters.items())
    if not tells(premises, variant):  # a premise may happen to be the same number
        assert not tells(variant.fill(q.prompt), variant), variant.prompt
    for m in q.misconceptions:
        assert not tells(re.sub(r"\{\{.*?\}\}", "", m.hint), variant), m.hint


@of_each()
def the_worked_solution_has_the_answer_and_its_steps(q):
    variant = variant_of(q.id)
    steps, _, answer = variant.solution.partition("**Answer:**")
    assert len(steps.split()) >= 4
    if q.kind == "function":
        assert "```python" in variant.solution
    else:
        assert variant.answer in answer
    others = [
        o for o in (variant_of(q.id, seed) for seed in SEEDS[1:6]) if o.values != variant.values
    ]
    if q.kind in ("number", "array") and others:
        assert any(o.solution.partition("**Answer:**")[0] != steps for o in others), (
            "the steps show no computed number"
        )


@of_each("number", "array", few=1, of=4)
def generic_slips_are_named(q, seeds):
    for seed in seeds:
        variant = variant_of(q.id, seed)
        table = q.tolerance >= 0.05 and any(rows(variant))
        for name, factor, _ in factors(variant):
            # The library's own unit leaves a factor in one direction only; a few digits do not show
            # a factor near one.
            for ratio in (factor,) if name == "unit" else (factor, 1 / factor):
                answer = variant.right * ratio
                verdict = diagnose(variant, list(answer) if q.kind == "array" else answer[0])
                right = close(answer, variant.right, q.tolerance)
                if right and table and not verdict.correct:
                    assert verdict.kind == "close", "another row of the table is nearer"
                    continue
                assert verdict.correct == right, f"{name}, seed {seed}: {verdict}"
                explained = any(close(answer, variant.wrong(m), WINDOW) for m in q.misconceptions)
                if right or explained or verdict.name == "not whole":
                    continue
                told = named(variant, verdict)
                assert all(
                    any(close(answer, c.values, WINDOW) for c in told[each]) for each in told
                )
                if verdict.kind == "misconception":  # what is written stands alone
                    assert all(c.rank == BANK for cs in told.values() for c in cs), verdict
                    continue
                # Of the others one is told; where several explain it, none, or what they share.
                exact, rounded = (explaining(variant, answer, off) for off in (1e-6, WINDOW))
                if UNTOLD in verdict.message or verdict.name == "factor of two":
                    assert len(exact) != 1 and len(told) <= 1, f"{name}, seed {seed}: {verdict}"
                    continue
                assert verdict.kind == "slip" and len(told) == 1, f"{name}, seed {seed}: {verdict}"
                assert verdict.name in rounded, f"{name}, seed {seed}: {verdict}"


def explaining(variant, answer, off):
    """The names of the causes that lead to these values, told or not, the vague left out."""
    causes = (c for c in (*variant.causes, *variant.further) if c.rank < VAGUE)
    return {c.name for c in causes if close(answer, c.values, off)}


def named(variant, verdict):
    """The causes that a verdict names, by their words."""
    found = {}
    for cause in (*variant.causes, *variant.further):
        words = cause.reason if cause.rank == VAGUE else cause.words
        if words in verdict.message:
            found.setdefault(words, []).append(cause)
    return found


def test_slips_of_bytes_are_for_questions_with_bytes():
    def offered(id):
        return {name for name, _, _ in factors(variant_of(id))}

    assert {"bits and bytes", "binary prefix", "factor of two"} <= offered(
        "numbers.transfer_time"
    ) & offered("numbers.inference_memory")
    for id in (
        "numbers.hbm_latency",
        "numbers.country_round_trip",
        "numbers.braking_distance",
        "scaling.critical_path",
    ):
        assert offered(id).isdisjoint({"bits and bytes", "binary prefix"}), id
    for reasons in (
        [reason for _, _, reason in factors(variant_of(id))]
        for id in ("numbers.braking_distance", "numbers.country_round_trip")
    ):
        assert not any("multiply-add" in reason or "sparse" in reason for reason in reasons)


BOUND = re.compile(
    r"\b(largest|smallest|fewest)\b|how many"
    r" (requests|slots|GPUs|micro-batches|ranks|replicas|steps)",
    re.I,
)


@of_each("number", few=2)
def a_count_that_is_a_bound_must_be_exact(q, seeds):
    variants = [variant_of(q.id, seed) for seed in seeds]
    counts = q.unit in ("", "token", "request") and all(v.right[0] % 1 == 0 for v in variants)
    by_pencil = "one slot more or less doesn't matter" in q.prompt
    if counts and not by_pencil and BOUND.search(variants[0].fill(q.prompt)):
        for variant in variants:
            assert not any(
                diagnose(variant, float(variant.right[0]) + by).correct for by in (-1, 1)
            )


# Answers that readers gave, and the mistake behind each; with what else leads there.
MET = {
    ("roofline.ridge", 201): "the memory of another version",
    ("roofline.ridge", 208): "the memory of another version, rounded",
    ("roofline.matrix_per_row", 256): "the short form of bf16",
    ("numbers.dram_over_fma", 582): "a multiplication only",
    ("numbers.country_round_trip", 20.7): "one way",
    ("numbers.country_round_trip", 20): "one way",
    ("numbers.country_requests", 20.7): "one way",
    ("numbers.recompute_or_fetch", 295): "per byte",
    ("scaling.deadline", 16): "the next power of two",
    ("parallelism.gradient_bytes", 32): "twice",
    ("parallelism.zero3_bytes", 42): "the whole model",
    ("parallelism.nic_time", 560): "twice",
    ("serving.capped_rate_with_weights", 17.46): "fractions of a request",
    ("serving.slots_in_memory", 371): "decimal GB",
    ("serving.slots_in_memory", 405): "all of the GiB",
    ("serving.slots_in_memory", 808): "keys only",
    ("serving.batch_within_budget", 404): "what fits the memory",
    ("queueing.tail_over_mean", 2.33): "a bell curve",
    ("queueing.slots_for_a_promise", 105): "loss, or a share on top",
    ("roofline.relu_share", 0.0817): "half of it",
    ("roofline.weight_only_batch", 481): "narrower is harder",
    ("roofline.int8_bounds", (83.5, 21.9)): "the two clocks, memory first",
    ("quantization.bits_per_weight", 4.5): "twice the scale",
    ("precision.decode", 5.5): "the mantissa misread",
    ("parallelism.attention_forward", 0): "nothing is sent",
    ("parallelism.mlp_backward", 939.5): "weight gradients of one matrix",
    ("parallelism.checkpoint_interval", 180): "no root, or the time between failures",
    ("scaling.critical_path", 100): "before the reduction, in a row",
}


@pytest.mark.parametrize("id, answer", MET)
def test_a_mistake_that_readers_made_is_named(id, answer):
    verdict = diagnose(variant_of(id), answer)
    assert (verdict.kind, verdict.name) == ("misconception", MET[id, answer]), verdict


# Slips that readers made: by the question's own tolerance, between units of time, and a count that
# kept its fraction.
SLIPPED = {
    ("roofline.relu_share", 0.0016): "percent",
    ("roofline.relu_share", 0.00163): "percent",
    ("parallelism.checkpoint_interval", 0.22): "time unit",
    ("numbers.country_requests", 0.69): "time unit",
    ("serving.slots_in_memory", 404.6): "not whole",
    ("scaling.deadline", 23.4): "not whole",
}


@pytest.mark.parametrize("id, answer", SLIPPED)
def test_a_slip_that_readers_made_is_named(id, answer):
    verdict = diagnose(variant_of(id), answer)
    assert (verdict.kind, verdict.name) == ("slip", SLIPPED[id, answer]), verdict
    if SLIPPED[id, answer] == "not whole":
        assert "Did you round" not in verdict.message and "whole ones" in verdict.message
    if answer == 0.22:
        assert "library's own unit" not in verdict.message, (
            "hours are too few minutes; seconds would be too many"
        )


def test_what_cannot_be_told_from_the_value_is_not_said():
    assert "binary" not in diagnose(variant_of("numbers.training_bytes"), 14).message
    assert "less one" not in diagnose(variant_of("numbers.training_flops"), 4.2e10).message
    known = diagnose(variant_of("numbers.hbm_latency"), 600).message
    assert "number to know" in known and "factor with its unit" not in known
    assert "factor with its unit" in diagnose(variant_of("numbers.human_scale"), 12).message


def test_a_small_whole_number_is_not_taken_for_a_binary_prefix():
    assert diagnose(variant_of("serving.capped_rate_with_weights"), 17).kind == "close"
    time = variant_of("numbers.transfer_time")
    assert diagnose(time, round(time.right[0] * 1.048576, 1)).name == "binary prefix"
    assert diagnose(time, 940).name != "binary prefix", (
        "two digits do not tell it from other errors"
    )


@pytest.mark.parametrize(
    "id, factor",
    [
        ("roofline.gemm_intensity", 2),
        ("roofline.decode_attention", 0.5),
        ("parallelism.zero3_bytes", 2),
        ("numbers.h100_memory", 2),
        ("serving.answers_per_second", 2),
    ],
)
def test_the_reasons_for_a_factor_of_two_are_of_the_question(id, factor):
    variant = variant_of(id)
    verdict = diagnose(variant, variant.right[0] * factor)
    assert "sparse" not in verdict.message
    assert "two directions" not in verdict.message
    assert "here: ." not in verdict.message
    assert ("multiply-add" in verdict.message) == (variant.question.unit == "FLOP/byte")


def test_peaks_and_links_keep_their_reasons():
    def reasons(id):
        return " ".join(reason for _, _, reason in factors(variant_of(id)))

    assert "sparse" in reasons("roofline.relu_share")
    assert "sparse" in reasons("numbers.dense_peak")
    assert "directions" not in reasons("numbers.dense_peak")
    assert "two directions" in reasons("parallelism.nic_time")
    assert "sparse" not in reasons("parallelism.nic_time")
    assert "two directions" in reasons("numbers.nvlink_one_way")


@of_each("array")
def the_right_values_in_another_order_are_told(q):
    for seed in SEEDS[:4]:
        variant = variant_of(q.id, seed)
        verdict = diagnose(variant, list(variant.right[::-1]))
        assert (
            verdict.correct or verdict.kind == "misconception" or verdict.name == "another order"
        ), verdict
        if verdict.name == "another order":
            assert ", ".join(q.names) in verdict.message


SWAPPED = {
    "roofline.attainable": lambda i, b, p: min(p, i * b),
    "queueing.mm1_function": lambda s, a: 1 / (s - a) if a < s else float("inf"),
    "serving.capacity_function": lambda w, m, c, t: max(0, (m - w) // c) / t,
    "scaling.write_amdahl": lambda s, n: 1 / (s + (1 - s) / n),
    "nccl.factor": lambda n, c: 1 if c == "broadcast" else (1 + (c == "all_reduce")) * (n - 1) / n,
}


@pytest.mark.parametrize("id", SWAPPED)
def test_arguments_in_another_order_are_told(id):
    verdict = diagnose(variant_of(id), SWAPPED[id])
    assert (verdict.kind, verdict.name) == ("slip", "another order"), verdict
    assert f"Asked is the order {', '.join(question(id).parameters)}." in verdict.message


@of_each("function")
def no_order_is_seen_in_a_constant_or_in_a_function_that_stops(q):
    for constant in (0.0, 1.0):
        assert diagnose(variant_of(q.id), lambda *a, c=constant: c).name != "another order"
    edge = variant_of(q.id).inputs(variant_of(q.id).samples[-1])

    def stops(*arguments):
        if arguments == tuple(edge.values()):
            raise ValueError("an edge")
        return q.expected(*arguments)

    verdict = diagnose(variant_of(q.id), stops)
    assert verdict.kind == "error" and "(`an edge`)" in verdict.message, verdict


@of_each("number", "array")
def a_wrong_dimension_is_met_first(q):
    variant = variant_of(q.id)
    other = "kilogram ** 3"
    answer = Q(variant.right, other) if q.kind == "array" else Q(variant.right[0], other)
    assert diagnose(variant, answer).kind == "dimension"


@of_each("number", "array")
def no_message_on_a_wrong_answer_has_the_right_one(q):
    variant = variant_of(q.id)
    for factor in (0.3, 0.7, 1.4, 3.3, 33, 7e4):
        answer = variant.right * factor
        if close(answer, variant.right, 5 * q.tolerance):
            continue
        verdict = diagnose(variant, list(answer) if q.kind == "array" else answer[0])
        assert not verdict.correct
        reason = (
            verdict.message.partition(". ")[2]
            if q.kind == "number"
            else verdict.message.rpartition(": ")[2]
        )
        reason = re.sub(r"about \d+ decade", "", reason)
        assert not re.search(rf"(?<![\d.,]){re.escape(variant.answer)}", verdict.message)
        assert not tells(reason, variant), verdict.message
