"""What a statement is: how texts are split, which sentences state, which are held."""

import dataclasses

import pytest

from lightspeed_authoring import signatures
from lightspeed_authoring.sentences import occurs, sentences
from lightspeed_authoring.statements import (
    ROOT,
    all_sentences,
    false_statements,
    loose_anchors,
    of_course,
    of_outside,
    of_page,
    of_question,
    trigger,
    unquantified,
)
from lightspeed_cli import main
from lightspeed_course.content.wrong_claims import claims
from lightspeed_course.practice.questions import bank, topics

# --- the course -----------------------------------------------------------------------------------


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


def test_words_are_compared_without_line_breaks_and_values():
    assert occurs("is {n:.0f} times", "it is\n\ufffc times the\n bytes")
    assert not occurs("is 2 times", "is \ufffc times")


# --- files ----------------------------------------------------------------------------------------

PAGE = """\
# %%
a, b = 1, 2
print("b is larger than a.")

# %% tags=["holds"]
assert b > a, "b is larger"

# %% [markdown]
# So a is
# smaller than b. None is left open.

# %% tags=["holds"]
assert a < b, "smaller than b"
"""


def test_lists_the_statements_of_a_page(tmp_path):
    (tmp_path / "chapters").mkdir()
    script = tmp_path / "chapters" / "01_page.py"
    script.write_text(PAGE, encoding="utf-8")
    assert [(s.place, s.text, s.held) for s in of_page(script)] == [
        ("3", "b is larger than a.", True),
        ("9", "So a is smaller than b.", True),
        ("10", "None is left open.", False),
    ]


def test_reads_what_stands_outside_the_pages(tmp_path):
    room = tmp_path / "lib/some_package/measure"
    for folder in (room, tmp_path / "docs", tmp_path / "tests/notebooks"):
        folder.mkdir(parents=True)
    (tmp_path / "README.md").write_text("# Name\n\nIt is never slow. Nothing else is.\n", "utf-8")
    (tmp_path / "docs/learn.md").write_text("It is larger than nothing.\n", "utf-8")
    (room / "words.py").write_text('"""All of it."""\nx = "a"\ny = "All is well."\n', "utf-8")
    claims = '# %% README.md\nassert x > 1, "never slow"\n# %% measure\nassert x, "All is"\n'
    (tmp_path / "tests/notebooks/outside.py").write_text(claims, "utf-8")
    found = {
        name: [(s.place, s.text, s.held) for s in stated]
        for name, stated in of_outside(tmp_path).items()
        if stated
    }
    assert found == {
        "README.md": [("3", "It is never slow.", True), ("3", "Nothing else is.", False)],
        "docs/learn.md": [("1", "It is larger than nothing.", False)],
        "measure": [("3", "All is well.", True)],
    }


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
        holds={"the same as": lambda **given: given[name] == canonical},
    )
    assert [s.held for s in of_question(told) if s.text == "It is the same as ever."] == [True]
    assert any("does not hold: the same as" in fault for fault in false_statements(told))
    assert not any("seed None" in fault for fault in false_statements(told))


def test_a_question_refuses_words_that_it_lacks():
    for words in ("no such words", "{{"):
        with pytest.raises(ValueError, match="no text of it has"):
            of_question(a_question(holds={words: lambda: True}))


def test_a_claim_whose_statement_is_false_is_not_shown():
    claim = dataclasses.replace(
        claims()[0], holds={"The text": "right > 0", "The add": "right < 0"}
    )
    assert claim.false_statements() == ["The add: right < 0"]
    with pytest.raises(
        ValueError, match="energy-of-a-multiply-add: does not hold: The add: right < 0"
    ):
        claim.markdown()


def test_the_command_counts_and_lists(capsys):
    assert not main(["statements", "chapters/00"])
    out = capsys.readouterr().out
    assert out.splitlines()[-1].split()[0] == "all" and "statements  held  not held" in out


def test_the_command_knows_no_file_of_that_name(capsys):
    assert main(["statements", "chapters/99"]) == 2
    assert (
        "no file of the course has chapters/99 in its name; there are chapters/00_checklist.py"
        in capsys.readouterr().err
    )


def test_readme_counts_what_is_held():
    """The figure that README prints, in place of promising that every sentence is held."""
    every = [statement for stated in of_course().values() for statement in stated]
    held = sum(statement.held for statement in every)
    words = " ".join((ROOT / "README.md").read_text("utf-8").split())
    said = (
        f"Of the {all_sentences():,} sentences of the course {len(every):,} compare, rank or count "
        f"out. {held:,} of these, {held / len(every):.0%} of them and {held / all_sentences():.0%} "
        "of all, are held"
    )
    assert said in words, f"README: write {said}"


def test_a_sentence_is_held_only_if_an_anchor_has_what_it_compares(tmp_path):
    page = tmp_path / "chapters/01_page.py"
    page.parent.mkdir()
    page.write_text(
        "# %%\na, b = 1, 2\n\n# %% [markdown]\n# So a is larger than b, by far. None fits.\n\n"
        '# %% tags=["holds"]\nassert a < b, "by far"\nassert b > a, "None fits"\n'
    )
    assert [(one.held, one.loose) for one in of_page(page)] == [(False, True), (True, False)]
    (fault,) = loose_anchors([page])
    assert "no anchor has the words 'than' of “So a is larger than b, by far.”" in fault


def test_a_changed_sentence_or_condition_is_to_be_read_again(tmp_path):
    page, signed = tmp_path / "chapters/01_page.py", tmp_path / "signed.json"
    page.parent.mkdir()
    text = (
        "# %%\na, b = 1, 2\n\n# %% [markdown]\n# So a is less than b. Well.\n\n"
        '# %% tags=["holds"]\nassert a < b, "less than b"\n'
    )
    page.write_text(text)
    assert signatures.sign([page], "", signed) == 1 and not signatures.unsigned([page], signed)
    assert signatures.read_by_two(signed) == (0, 1)
    for old, new in (("So a", "So b"), ("a < b", "a <= b"), ("b. Well", "b by far. Well")):
        page.write_text(text.replace(old, new))
        (fault,) = signatures.unsigned([page], signed)
        assert "01_page.py:8: this or its condition is new" in fault, old
        assert signatures.sign([page], "Ada", signed) == 1 == signatures.read_by_two(signed)[0]
        page.write_text(text)
        signatures.sign([page], "", signed)
    page.write_text(text.replace("Well.", "Hm.").replace("a < b", "a  <  b"))
    assert not signatures.unsigned([page], signed), "another sentence, another layout"


def test_a_quantifier_has_one_in_its_condition(tmp_path):
    page = tmp_path / "chapters/01_page.py"
    page.parent.mkdir()
    text = (
        "# %%\nwaits = [3, 2, 1]\n\n# %% [markdown]\n# Every wait is short. {}\n\n"
        '# %% tags=["holds"]\nassert {}, "{}"\n'
    )
    for condition, words, faults in (
        ("waits[0] < 4", "Every wait", 1),
        ("all(w < 4 for w in waits)", "Every wait", 0),
        ("sum(waits) == 6", "Every wait", 0),
        ("waits[0] > 2", "nearly all", 0),
        ("waits[0] > 2", "no other", 1),
    ):
        page.write_text(text.format(f"It is {words}." * (words not in text), condition, words))
        assert len(unquantified([page])) == faults, (condition, words)


def test_what_no_condition_holds_is_read_again_too(tmp_path):
    page, signed = tmp_path / "chapters/01_page.py", tmp_path / "signed.json"
    page.parent.mkdir()
    text = (
        "# %%\na, b = 1, 2\n\n# %% [markdown]\n# It waits, because memory is far. It takes half.\n"
        "# It is {{a}} GB. A plain word.\n\n# %%\n"
        'caption = "Bars that show how long it waits here."\n'
    )
    page.write_text(text)
    assert signatures.sign([page], "", signed) == 4
    for old, new in (("far", "near"), ("half", "a third"), ("GB", "TB"), ("long", "often")):
        page.write_text(text.replace(old, new))
        assert len(signatures.unsigned([page], signed)) == 1, new
    page.write_text(text.replace("plain", "simple"))
    assert not signatures.unsigned([page], signed)
