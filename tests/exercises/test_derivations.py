"""Worked solutions: a wrong line is refused, hints tell no result, and the way ends."""

import re

import pytest

from lightspeed_course.practice.ask import SMALLER, SOLUTION, ask
from lightspeed_course.practice.check import check
from lightspeed_course.practice.derivation import Step, derivation, step
from lightspeed_course.practice.questions import bank, question, topics
from lightspeed_course.practice.store import events

TAUGHT = [
    q
    for topic in (
        "numbers",
        "roofline",
        "scaling",
        "training",
        "queueing",
        "serving",
        "precision",
        "quantization",
        "parallelism",
        "nccl",
        "network",
    )
    for q in bank(topic)
]


def test_a_line_shows_formula_numbers_result_and_what_cancels():
    line = step(
        "The ridge.", "peak / bandwidth", peak=(312e12, "FLOP/s"), bandwidth=(2e12, "byte/s")
    )
    assert str(line) == (
        "The ridge.  \npeak ÷ bandwidth = 312 TFLOP/s ÷ 2 TB/s = **156 FLOP/byte** (s cancels)"
    )
    line = step("Days.", "2[FLOP] * n**2 / (rate * (1 - lost)) / 3600[s/h]",
                n=3, rate=(1e-3, "FLOP/s"), lost=(0.5, "%"))  # fmt: skip
    assert str(line).endswith(
        "\n2 FLOP × n² ÷ (rate × (1 − lost)) ÷ 3,600 s/h"
        " = 2 FLOP × 3² ÷ (0.001 FLOP/s × (1 − 50 %))"
        " ÷ 3,600 s/h = **10 h** (FLOP and s cancel)"
    )


def test_a_constant_with_a_unit_is_written_as_the_amounts_beside_it():
    line = step("All.", "n * (2[byte/parameter] + states)",
                n=(10, "parameter"), states=(14, "byte/parameter"))  # fmt: skip
    assert "10 parameters × (2 B/parameter + 14 B/parameter) = **160 bytes**" in str(line)
    decibels = step("Decibels.", "10 * log10(ratio)", ratio=1000.0)
    assert str(decibels).endswith("10 × log10(ratio) = 10 × log10(1,000) = **30**")


@pytest.mark.parametrize(
    "formula, gives, inputs, said",
    [
        ("a / b", (3.0, "FLOP/byte"), {"a": (4.0, "FLOP"), "b": (2.0, "byte")},
            "the library says 3"),
        ("a / b", (2.0, "byte"), {"a": (4.0, "FLOP"), "b": (2.0, "byte")},
            "comes out in FLOP/byte"),
        ("a + b", None, {"a": (4.0, "FLOP"), "b": (2.0, "byte")}, "FLOP and byte do not add up"),
        ("max(a, b)", None, {"a": (4.0, "s"), "b": 2.0}, "s and a plain number do not add up"),
    ],
)  # fmt: skip
def test_a_line_that_disagrees_is_refused(formula, gives, inputs, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        Step("Words.", formula, gives, inputs)


def test_every_question_is_derived():
    """For several draws: each line agrees with the library, or building it would have raised."""
    faults = []
    for q in TAUGHT:
        for seed in (None, 1, 2, 3):
            variant = q.variant(seed)
            if not variant.hints or not variant.solution:
                faults.append(f"{q.id}: no steps")
            numbers = {f"{v:.4g}" for v in variant.right} if q.kind in ("number", "array") else ()
            premises = {str(value) for value in variant.values.values()}
            for hint in variant.hints:
                told = {n.replace(",", "") for n in re.findall(r"\d[\d,]*(?:\.\d+)?", hint)}
                if told & set(numbers) - premises - {"1", "2", "4", "6", "8"}:
                    faults.append(f"{q.id}, seed {seed}: a hint tells the answer: {hint}")
    assert faults == []


def test_smaller_questions_exist_and_the_way_ends():
    for topic in topics():
        for q in bank(topic):
            seen = [q.id]
            while smaller := question(seen[-1]).smaller:
                assert smaller not in seen, f"{q.id}: {seen} comes back to {smaller}"
                seen.append(smaller)


def test_a_wrong_answer_is_offered_the_next_unsolved_smaller_question(monkeypatch):
    wrong = check("roofline.exact_critical_batch", 120)
    assert wrong.smaller == "roofline.weight_only_batch"
    assert 'ask("roofline.weight_only_batch")' in repr(wrong) and "int8" in wrong.offer
    assert check("roofline.weight_only_batch", 120).correct
    assert check("roofline.exact_critical_batch", 120).smaller == "roofline.ridge"
    assert check("roofline.ridge", 153).smaller == ""
    assert check("roofline.exact_critical_batch", 120).smaller == "", "all of them are solved"
    assert check("roofline.exact_critical_batch", ...).smaller == ""
    monkeypatch.setenv("LIGHTSPEED_CLASS", "format")
    assert check("roofline.h100_critical_batch", 1).offer == ""


def test_hints_come_one_at_a_time_and_the_solution_after_a_try():
    panel = ask("roofline.weight_only_batch")
    assert panel.form.extra == "Show hint 1 of 3" and panel.form.extra_enabled
    for shown in range(1, 4):
        panel.press_extra()
        assert panel.after.value.count("<li>") == shown
    assert "120" not in panel.after.value
    assert panel.form.extra == "Show a worked solution" and not panel.form.extra_enabled
    panel.enter("3")
    assert panel.form.extra_enabled
    panel.press_extra()
    assert "<strong>120.3 tokens</strong>" in panel.after.value
    assert [e.kind for e in events()] == ["hint", "hint", "hint", "try", "solution"]


def test_a_wrong_try_brings_the_whole_derivation_and_a_smaller_question_in_place():
    panel = ask("roofline.exact_critical_batch")
    assert panel.form.offers == [] and panel.form.extra.startswith("Show hint 1")
    panel.enter("120")
    assert "ask(" not in panel.reply.value, "no call is to be typed"
    assert panel.form.offers == [SMALLER, SOLUTION] and panel.form.extra.startswith("Show hint 1")
    panel.press_extra()
    assert panel.form.offers == [SMALLER, SOLUTION] and "Hints" in panel.after.value
    panel.press_offer(SMALLER)
    assert panel.form.offers == [SOLUTION] and "Hints" in panel.after.value
    heading, inner = panel.box.children[-2:]
    assert "smaller question" in heading.value and "stored as int8" in inner.children[0].value
    inner.children[1]._handle_custom_msg({"event": "submit", "values": ["120"]}, [])
    assert "Right." in inner.children[2].value
    panel.press_offer(SOLUTION)
    assert "226.8 tokens" in panel.after.value
    panel.enter("120")
    assert panel.form.offers == [SMALLER, SOLUTION], "the first one is solved: the next"
    panel.enter("226.8")
    assert panel.form.offers == [] and panel.form.extra == SOLUTION and panel.form.extra_enabled
    again = ask("roofline.exact_critical_batch")
    assert again.form.offers == [SOLUTION], "tried in an earlier session"


def test_a_smaller_question_that_is_a_function_is_asked_in_words():
    panel = ask("roofline.ridge")
    panel.open("**A smaller question**", ask("scaling.write_amdahl"))
    assert "Write it in a cell" in panel.box.children[-1].value


def test_who_is_right_needs_no_hints_and_a_class_gets_none(monkeypatch):
    panel = ask("roofline.ridge")
    panel.enter("153")
    assert panel.form.extra == "Show a worked solution" and panel.form.extra_enabled
    assert panel.form.offers == []
    monkeypatch.setenv("LIGHTSPEED_CLASS", "full")
    panel = ask("roofline.exact_critical_batch")
    panel.enter("120")
    assert panel.form.extra == "" and panel.form.offers == [SMALLER]
    monkeypatch.setenv("LIGHTSPEED_CLASS", "format")
    panel.enter("120")
    assert panel.form.offers == [], "what is not judged is not called wrong"


def test_a_text_is_a_step_without_a_formula():
    worked = derivation("First.", step("Then.", "1[byte] + 2[byte]"), after="So it is.")
    assert worked.hints == ["First.", "Then."]
    assert str(worked) == "1. First.\n2. Then.  \n   1 byte + 2 bytes = **3 bytes**\n\nSo it is."
