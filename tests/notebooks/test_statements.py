"""Statements are held like numbers: a false one stops the build, an excuse needs a reason, and
the scanner sees who has neither.
"""

import dataclasses
import re

import pytest

from lightspeed_authoring.build import build
from lightspeed_authoring.freshness import check_course
from lightspeed_authoring.gates import GateError, occurs, refusal, sentences, separate
from lightspeed_authoring.notebooks import read
from lightspeed_authoring.statements import (
    BOUND,
    EXCUSED,
    OPEN,
    false_statements,
    of_page,
    of_question,
    trigger,
    ungated,
)
from lightspeed_cli import main
from lightspeed_course.content.wrong_claims import claims
from lightspeed_course.practice.questions import bank, topics

# --- the course -----------------------------------------------------------------------------------


def test_every_statement_is_held_or_excused():
    assert ungated() == []


@pytest.mark.parametrize("topic", topics())
def test_the_statements_of_a_bank_hold_for_every_variant(topic):
    assert [fault for q in bank(topic) for fault in false_statements(q)] == []


def test_the_statements_of_the_gallery_hold():
    assert [fault for claim in claims() for fault in claim.false_statements()] == []


# --- what the scanner finds -----------------------------------------------------------------------

STATED = [
    "An H100 moves more bytes than an A100.",
    "It needs at most one bit.",
    "No law of the page knows it.",
    "Nothing is free.",
    "Neither of them scales.",
    "All three are memory-bound.",
    "Every curve flattens.",
    "It always rounds down.",
    "Only the first one is a law.",
    "Most of the time is communication.",
    "The nearest is bf16.",
    "This halves the bytes.",
    "It is twice the time.",
    "{{n}} times the bytes move.",
    "That takes ten times as long.",
    "Half of the codes are idle.",
    "It meets both bounds.",
    "The measured rate is below the ridge.",
    "They agree within {{error:.0%}}.",
    "Two links give the same rate as one.",
    "It is as large as the model.",
    "One node is enough.",
    "It does not fit.",
    "The tree is faster.",
    "> It **never** stalls.",
    "What is not needed is never moved.",
    "Where nothing fits, it stops.",
    "| a | it is larger than b |",
    "- two thirds of the bytes",
]
NOT_STATED = [
    "The ridge is {{ridge:.0f}} FLOP/byte.",
    "Is bf16 always better than fp16?",
    "Find the largest number of E4M3.",
    "Use fewer bits than before, and look.",
    "An all-reduce adds up and hands out.",
    "It is a matter of taste rather than of bytes.",
    "The table below has them.",
    "As well as the others, it does so.",
    "A test of interest, at the request of a guest.",
    "Chapter 2 has all that you need.",
    "`all` of `never > 2`",
    "$x > 2 \\text{ always}$",
    "```\nit is larger than nothing\n```",
    "[here](https://example.org/largest-of-all)",
    "<!-- never -->",
]


@pytest.mark.parametrize("text", STATED)
def test_finds_a_statement(text):
    assert [trigger(sentence) for sentence in sentences(text) if trigger(sentence)]


@pytest.mark.parametrize("text", NOT_STATED)
def test_finds_no_statement(text):
    assert [trigger(sentence) for sentence in sentences(text) if trigger(sentence)] == []


@pytest.mark.parametrize(
    ("text", "split"),
    [
        ("One. Two! Three? Four.", ["One.", "Two!", "Three?", "Four."]),
        (
            "See e.g. Fig. 2 of Dettmers et al. in 2022. Then go on.",
            ["See e.g. Fig. 2 of Dettmers et al. in 2022.", "Then go on."],
        ),
        ("By D. Patterson. bf16 is next.", ["By D. Patterson.", "bf16 is next."]),
        (
            "It is {{a.b:.1f}}. So $x. y$ and `a. b` stay.",
            ["It is {{a.b:.1f}}.", "So $x. y$ and `a. b` stay."],
        ),
        (
            "# A heading\nText under it.\n\n- an item\n- another. More.",
            ["A heading", "Text under it.", "an item", "another.", "More."],
        ),
        ("| one | two |\n|---|---|\n| three | four |", ["one", "two", "three", "four"]),
        ("> Quoted\n> on. Next.", ["Quoted on.", "Next."]),
        ("*Careful.* “It is.” (So be it.) End", ["*Careful.*", "“It is.”", "(So be it.)", "End"]),
        ("The law is\n\n$$a = b$$\n\nwhere. So.", ["The law is", "where.", "So."]),
    ],
)
def test_splits_sentences(text, split):
    assert [sentence.text for sentence in sentences(text)] == split


def test_a_gate_belongs_to_the_sentence_before_it():
    text = (
        "# All {{because design}}\nFirst. {{holds x > 1}} Second\n{{holds y}}\nthird.\n\n$$a$$"
        " {{because algebra}}\n\nLast."
    )
    found = {s.text: [gate.condition or gate.reason for gate in s.gates] for s in sentences(text)}
    assert found == {
        "All": ["design"],
        "First.": ["x > 1"],
        "Second third.": ["y", "algebra"],
        "Last.": [],
    }
    assert [s.line for s in sentences(text)] == [0, 1, 1, 7]
    assert separate(text, markdown=True)[0] == "# All\nFirst. Second\nthird.\n\n$$a$$\n\nLast."


def test_gates_of_a_code_cell_are_lines():
    source = (
        'f(\n    caption=f"It is {x:.0f} times. All fit."\n)\n# holds "It is {…} times": x =='
        ' d["a:b"] and (\n#      y > 1)\n# because "All fit": advice'
    )
    clean, (first, second) = separate(source, markdown=False)
    assert clean == 'f(\n    caption=f"It is {x:.0f} times. All fit."\n)'
    assert (first.condition, first.line) == ('x == d["a:b"] and (\ny > 1)', 3)
    assert (second.reason, second.line) == ("advice", 5)
    assert separate(source, markdown=False, keep_lines=True)[0].count("\n") == source.count("\n")


REFUSED = {
    "because reason": "'fashion' is not a reason",
    "unfinished": "is not a Python expression",
    "nothing before": "behind its sentence",
    "words": "no string of the cell has the words 'never'",
    "form": "is written # holds",
    "unnamed test": "which test",
}


@pytest.mark.parametrize(
    ("text", "markdown", "words"),
    [
        ("All. {{because fashion}}", True, REFUSED["because reason"]),
        ("All. {{holds x >}}", True, REFUSED["unfinished"]),
        ("{{holds x}} All.", True, REFUSED["nothing before"]),
        ('f("always")\n# holds "never": x', False, REFUSED["words"]),
        ('f("always")\n# holds "always" x', False, REFUSED["form"]),
        ("All. {{because measured elsewhere: there}}", True, REFUSED["unnamed test"]),
    ],
)
def test_refuses_a_gate_that_says_nothing(text, markdown, words):
    with pytest.raises(GateError, match=words):
        separate(text, markdown)


def test_reasons_are_those_of_the_list():
    assert (
        refusal("definition: a ratio of rates") is None
        and refusal("measured elsewhere: tests/laws/test_energy.py") is None
    )
    assert refusal("definitional") and refusal("")


def test_words_are_compared_without_line_breaks_and_values():
    assert occurs("is {n:.0f} times", "it is\n\ufffc times the\n bytes") and not occurs(
        "is 2 times", "is \ufffc times"
    )


# --- pages ----------------------------------------------------------------------------------------

PAGE = """\
# %%
a, b = 1, 2
print("b is larger than a.")
# holds "b is larger than a": b > a

# %% [markdown]
# So a is
# smaller than b. {{holds a < b}} All agree. {{because definition}}
# None is left open.
"""


def built(tmp_path, source):
    (tmp_path / "chapters").mkdir(exist_ok=True)
    script = tmp_path / "chapters" / "01_page.py"
    script.write_text(source, encoding="utf-8")
    return build([script], tmp_path), script


def test_no_gate_reaches_a_reader(tmp_path):
    faults, script = built(tmp_path, PAGE)
    assert faults == []
    text = script.with_suffix(".ipynb").read_text("utf-8")
    assert "holds" not in text and "because" not in text and "smaller than b. All agree." in text
    assert [cell.id for cell in read(script)] != [] and "gates" not in text


@pytest.mark.slow
def test_a_page_with_gates_is_the_page_without(tmp_path):
    _, script = built(tmp_path, PAGE)
    gated = script.with_suffix(".ipynb").read_bytes()
    built(
        tmp_path,
        PAGE.replace('# holds "b is larger than a": b > a\n', "")
        .replace(" {{holds a < b}}", "")
        .replace(" {{because definition}}", ""),
    )
    assert script.with_suffix(".ipynb").read_bytes() == gated


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            "a < b",
            "a > b",
            (
                "chapters/01_page.py:8: cell .* does not hold: So a is smaller than b.\n    a > b"
                " is false"
            ),
        ),
        (
            "a < b",
            "a and b",
            "smaller than b.\n    a and b is 2, a int; a condition is True or False",
        ),
        pytest.param(
            "a < b", "a < c", "smaller than b.\n    a < c: NameError", marks=pytest.mark.slow
        ),
        (
            'than a": b > a',
            'than a": b < a',
            "chapters/01_page.py:4: cell .* does not hold: b is larger than a\n    b < a is false",
        ),
        ("because definition", "because so", "chapters/01_page.py:8: 'so' is not a reason"),
        (
            '# holds "b is',
            '# holds "c is',
            "chapters/01_page.py:4: no string of the cell has the words 'c is larger than a'",
        ),
    ],
)
def test_a_false_statement_stops_the_build(tmp_path, old, new, words):
    (fault,), script = built(tmp_path, PAGE.replace(old, new))
    assert re.search(words, fault), fault
    assert not script.with_suffix(".ipynb").exists()


def test_numpy_says_true_too(tmp_path):
    assert built(tmp_path, PAGE.replace("a < b", "__import__('numpy').float64(a) < b"))[0] == []


def test_lists_the_statements_of_a_page(tmp_path):
    _, script = built(tmp_path, PAGE)
    assert [(s.place, s.text, s.state) for s in of_page(script)] == [
        ("3", "b is larger than a.", BOUND),
        ("7", "So a is smaller than b.", BOUND),
        ("8", "All agree.", EXCUSED),
        ("9", "None is left open.", OPEN),
    ]


# --- questions, gallery, command ------------------------------------------------------------------


def a_question(**changed):
    return dataclasses.replace(bank("roofline")[0], **changed)


def test_a_statement_of_a_question_is_held_for_each_variant():
    numbers = [q for q in bank("roofline") if q.kind == "number"]
    q, name = next(
        (q, n)
        for q in numbers
        for n, p in q.parameters.items()
        if p.choices and not isinstance(p.canonical, str)
    )
    canonical = q.variant().inputs()[name]
    told = dataclasses.replace(
        q,
        solution="It is the same as ever.",
        holds={"same as": lambda **given: given[name] == canonical},
    )
    assert [s.state for s in of_question(told) if s.text == "It is the same as ever."] == [BOUND]
    assert any("does not hold: same as" in fault for fault in false_statements(told))
    assert not any("seed None" in fault for fault in false_statements(told))


@pytest.mark.parametrize("words", ["no such words", "{{"])
def test_a_question_refuses_to_hold_words_that_it_lacks(words):
    with pytest.raises(ValueError, match="no text of it has"):
        of_question(a_question(holds={words: lambda: True}))


def test_a_claim_whose_statement_is_false_is_not_shown():
    claim = dataclasses.replace(
        claims()[0], holds={"The text": "right > 0", "The add": "right < 0", "J": "because: design"}
    )
    assert claim.false_statements() == ["The add: right < 0"]
    with pytest.raises(
        ValueError, match="energy-of-a-multiply-add: does not hold: The add: right < 0"
    ):
        claim.markdown()


def test_the_command_lists_what_is_open(capsys):
    assert main(["statements", "chapters/00"]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[-1].split()[0] == "all" and "statements  bound  excused  open" in out


def test_the_command_knows_no_file_of_that_name(capsys):
    assert main(["statements", "chapters/99"]) == 2
    assert (
        "no file of the course has chapters/99 in its name; there are chapters/00_start_here.py"
        in capsys.readouterr().err
    )


def test_check_says_where_statements_are_open(monkeypatch, samples):
    monkeypatch.setattr(
        "lightspeed_authoring.freshness.ungated",
        lambda: ["chapters/01: 2 statements that nothing holds"],
    )
    monkeypatch.setattr("lightspeed_authoring.freshness.unbound_in_library", list)
    assert check_course(root=samples) == ["chapters/01: 2 statements that nothing holds"]


def test_a_gate_may_break_lines_in_a_quotation():
    text = "> It is larger than a. {{holds b\n> > a}} Next."
    clean, (gate,) = separate(text, markdown=True)
    assert " ".join(gate.condition.split()) == "b > a" and clean == "> It is larger than a. Next."
