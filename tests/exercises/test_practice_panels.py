"""ask, predict, reveal, calibration, cards and progress, driven as a reader drives them."""

import json
import math
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightspeed.units import Q
from lightspeed_course import ask, calibration, cards, check, predict, reveal
from lightspeed_course.practice import cards as d
from lightspeed_course.practice import desk, store
from lightspeed_course.practice.predict import misses, summary
from lightspeed_course.practice.questions import bank, question

WIDGET = "application/vnd.jupyter.widget-view+json"


def static(shown):
    """What stays of an output where there is no kernel; the same each time."""
    bundle = shown._repr_mimebundle_()
    assert bundle.pop(WIDGET)["model_id"] == shown.box.model_id
    assert bundle == {k: v for k, v in shown._repr_mimebundle_().items() if k != WIDGET}
    assert set(bundle) == {"text/markdown", "text/plain"}
    unfolded = re.sub(r"</?(details|summary)>", "", json.dumps(bundle))
    assert not any(sign in unfolded for sign in ("0x", "<", "Panel"))
    return bundle["text/markdown"]


def test_ask_shows_prompt_box_diagnosis_and_then_the_solution():
    panel = ask("sample.transfer")
    assert static(panel) == question("sample.transfer").variant().prompt
    assert panel.form.fields == [
        {"label": "Your answer", "unit": "ms", "placeholder": "such as 1.5e6 or 2/3"}
    ]
    assert not panel.form.extra_enabled
    panel.enter("0.6 s")
    assert "left one shard out" in panel.reply.value and "sol-bad" in panel.reply._dom_classes
    assert "<strong>Not yet.</strong>" in panel.reply.value
    assert panel.form.status.startswith("Not yet.")
    assert panel.form.extra_enabled
    panel.press_extra()
    assert "640 ms" in panel.after.value and "A worked solution" in panel.after.value
    panel.enter("640")
    assert "Right." in panel.reply.value and "sol-good" in panel.reply._dom_classes
    assert [e.kind for e in store.events()] == ["try", "solution", "try"]
    assert ask("sample.transfer").form.extra_enabled, "tried in an earlier session"


@pytest.mark.parametrize(
    "entered, said",
    [
        ("", "Type a number into the box"),
        ("   ", "Type a number into the box"),
        ("abc", "Not read"),
        ("1,5", "Not read"),
    ],
)
def test_what_cannot_be_read_is_no_try(entered, said):
    panel = ask("sample.transfer")
    panel.enter(entered)
    assert said in panel.reply.value and "dots" not in panel.reply.value
    assert not panel.form.extra_enabled and not store.events()


def test_ask_has_a_box_for_each_value_and_a_button_for_each_option():
    clocks = ask("sample.two_clocks")
    assert [f["label"] for f in clocks.form.fields] == ["arithmetic", "traffic"]
    clocks.enter("21.5", "")
    assert "Not answered" in clocks.reply.value
    right = question("sample.two_clocks").variant().right
    clocks.enter(str(right[0]), f"{right[1] / 1000} ms")
    assert "Right." in clocks.reply.value
    limit = ask("sample.step_limit")
    assert limit.form.fields == [
        {
            "label": "Your answer",
            "options": [list(o) for o in question("sample.step_limit").variant().options.items()],
        }
    ]
    assert "Twice the peak" in static(limit) and "Twice the peak" not in limit.prompt.value
    limit.enter("")
    assert "Choose one of the options" in limit.reply.value
    limit.enter("peak")
    assert "Two clocks" in limit.reply.value
    limit.enter("bandwidth")
    assert "Right." in limit.reply.value


def test_a_function_is_asked_in_words():
    shown = ask("sample.crossover_size")
    assert 'check("sample.crossover_size", name_of_your_function)' in repr(shown)
    assert repr(shown) == shown._repr_markdown_()


def test_ask_takes_its_seed_like_check(monkeypatch):
    monkeypatch.setenv("LIGHTSPEED_SEED", "ada")
    theirs = question("sample.transfer").variant("ada")
    assert (
        static(ask("sample.transfer"))
        == theirs.prompt
        != question("sample.transfer").variant().prompt
    )
    panel = ask("sample.transfer")
    panel.enter(repr(float(theirs.right[0])))
    assert "Right." in panel.reply.value


def test_a_fault_in_a_handler_is_shown_to_the_reader(monkeypatch):
    monkeypatch.setattr(store, "record", lambda *a, **k: 1 / 0)
    panel = ask("sample.transfer")
    panel.enter("640")
    assert isinstance(panel.error, ZeroDivisionError)
    assert "fault in the course" in panel.reply.value and "ZeroDivisionError" in panel.reply.value


def test_what_a_reader_types_is_text_and_no_markup():
    panel = ask("sample.transfer")
    panel.enter("5 <script>alert(1)</script>")
    assert "<script>" not in panel.reply.value
    panel = ask("sample.step_limit")
    panel.enter("<b>peak</b>")
    assert "<b>" not in panel.reply.value


def test_formulas_reach_the_page_untouched():
    from lightspeed_course.practice.forms import as_html

    assert "&lt;script&gt;" in as_html("<script>alert(1)</script>")
    assert "&lt;b&gt;" in as_html("$<b>$")
    html = as_html(
        r"Let $B_{crit} \ll D_{x}$ and $$T = \frac{a}{b}\,,$$ with *words* and | pipes |."
    )
    assert r"$B_{crit} \ll D_{x}$" in html and r"\frac{a}{b}\," in html and "<em>words</em>" in html


def test_prediction_first_guess_counts_and_all_are_kept():
    asked = predict("sample.hop", ...)
    assert "put your number in place of the dots" in static(asked)
    assert "1.5" not in static(asked)
    assert repr(predict("sample.hop", 15)).startswith("**Recorded:** 15 µs")
    assert repr(predict("sample.hop", 1.5)).startswith("**Your first guess stays:** 15 µs")
    assert [e.detail["value"] for e in store.events("guess")] == [15, 1.5]
    assert "About ten times too high" in repr(reveal("sample.hop"))
    assert "1.5 µs" in repr(reveal("sample.hop"))


def test_a_guess_at_other_numbers_is_judged_by_those():
    id, seed = "scaling.affordable_share", "chapter"
    canonical, drawn = (question(id).variant(s).right[0] for s in (None, seed))
    assert drawn != canonical
    predict(id, drawn, seed=seed)
    assert "Right." in repr(reveal(id, seed=seed))
    assert "The value, for when you have guessed" in static(reveal(id))
    predict(id, canonical)
    assert "Right." in repr(reveal(id))
    assert misses() == {id: 0}


def test_a_guess_can_be_typed_into_the_box():
    asked = predict("sample.hop")
    asked.enter("150 ns")
    assert "<strong>Recorded:</strong>" in asked.reply.value
    assert asked.form.status.startswith("Recorded: 0.15 µs")
    assert "About ten times too low" in repr(reveal("sample.hop"))


@pytest.mark.parametrize("guess", [0, -1, math.nan, math.inf, Q(3, "GB"), None, True])
def test_a_guess_that_is_none_is_not_recorded(guess):
    assert repr(predict("sample.hop", guess)).startswith("**Not recorded.**")
    assert not store.events()


def test_reveal_asks_for_a_guess_first_but_stands_on_the_page_without_one():
    gate = reveal("sample.hop")
    before, folded = static(gate).split("</summary>")
    assert "1.5" not in before and before.startswith("<details>") and "1.5 µs" in folded
    assert "1.5" not in gate.prompt.value and "No guess yet" in gate.prompt.value
    assert gate.form.fields == []
    gate.enter()
    assert "1.5 µs" in gate.reply.value
    assert "1.5 µs" in repr(reveal("sample.hop", skip=True))


@pytest.mark.parametrize(
    "guess, said",
    [
        (1.5, "Right."),
        (1.6, "Right."),
        (1.66, "A little too high"),
        (1.2e-3, "About a thousand times too low"),
    ],
)
def test_what_reveal_says(guess, said):
    predict("sample.hop", guess)
    assert said in repr(reveal("sample.hop"))


def test_only_a_number_can_be_predicted():
    with pytest.raises(ValueError, match="number question"):
        predict("sample.step_limit", 1)


@pytest.mark.holds("practice", "No predictions recorded yet.")
def test_calibration(capsys):
    assert "No predictions recorded yet" in repr(calibration())
    predict("sample.hop", 15)
    predict("sample.ridge", question("sample.ridge").variant().right[0] / 100)
    predict("sample.hop", 1.5)
    assert calibration() is None
    said = capsys.readouterr().out
    assert "hop: about ten times too high; ridge: about a hundred times too low" in said


def test_calibration_in_a_sentence():
    assert summary([1.0]) == "Your prediction was off by a factor of 10, too high (1 of 1)."
    assert (
        summary([-1.0, -2.0, 0.0])
        == "Your 3 predictions were typically off by a factor of 10, too low (2"
        " of 3)."
    )
    assert "equally often too high and too low" in summary([1.0, -1.0])


def test_boxes_and_intervals():
    assert d.box_after([]) == 0
    assert d.box_after([0.0]) == 1
    assert d.box_after([0.0, 0.05, -0.1]) == 3
    assert d.box_after([0.0, 0.05, 0.3]) == 2
    assert d.box_after([0.3]) == 1
    assert d.box_after([0.0, 0.05, -0.7]) == 1
    assert d.box_after([0.0] * 20) == d.BOXES
    assert d.due_at([]) == -math.inf
    assert d.due_at([(0.0, 0.0), (1000.0, 0.0)]) == 1000.0 + 2 * d.DAY


@given(st.lists(st.floats(-9, 9), max_size=30))
@pytest.mark.holds("practice", "An answer within a quarter moves a card")
def test_a_card_is_always_in_a_box_and_a_worse_answer_never_helps(offs):
    assert 0 <= d.box_after(offs) <= d.BOXES
    assert d.box_after([*offs, 0.0]) >= d.box_after([*offs, 0.3]) >= d.box_after([*offs, 3.0]) == 1


@pytest.mark.holds("practice", "No card is due.")
def test_a_drill_from_the_first_card_to_the_next_day():
    now = 1e9
    session = cards("sample", clock=lambda: now)
    text = static(session)
    assert "2 numbers to know" in text and "1.5" not in text
    assert "Card 1 of 2" in session.prompt.value and "one hop" in session.prompt.value
    session.enter("nonsense")
    session.enter("0")
    assert not store.events() and "Not read" in session.reply.value
    session.enter("1.6 us")
    assert "Known." in session.reply.value
    assert "Again in 1 day" in session.reply.value
    assert session.form.action == "Next card"
    session.enter("")
    assert "Card 2 of 2" in session.prompt.value and session.reply.value == ""
    session.enter(str(question("sample.ridge").variant().right[0] * 100))
    assert "about a hundred times too high" in session.reply.value
    assert session.form.action == "Finish"
    session.enter("")
    assert "1 of 2 known" in session.prompt.value
    assert session.form.fields == []
    assert session.form.action == ""
    session.enter()
    assert session.error is None
    assert [e.at for e in store.events("review")] == [now, now]

    assert "No card is due" in cards("sample", clock=lambda: now + 0.9 * d.DAY).prompt.value
    later = now + d.DAY + 1
    again = cards("sample", clock=lambda: later)
    assert again.count == 2
    again.enter("1.5")
    assert "Again in 2 days" in again.reply.value
    assert [q.id for q in d.due("sample", later + d.DAY + 1)] == ["sample.ridge"]


def test_a_topic_without_cards():
    with pytest.raises(ValueError, match="no number questions"):
        cards("nothing")


def test_progress_by_chapter(monkeypatch, capsys):
    from lightspeed_course.practice import progress

    monkeypatch.setattr(progress, "topics", lambda: ["sample"])
    monkeypatch.setattr(desk, "catalogue", lambda: {q.id: q for q in bank("sample")})
    check("sample.transfer", 600)
    check("sample.transfer", 640)
    check("sample.hop", 1.5)
    check("sample.hop", 99)
    check("sample.ridge", 1)
    rows, later = progress.summary(time.time()), progress.summary(time.time() + 400 * d.DAY)
    assert [list(row.values()) for row in rows] == [
        ["01_numbers_to_know", 2, 1, 1, 1, 0],
        ["02_roofline", 4, 2, 1, 0, 0],
    ]
    assert [row["due"] for row in later] == [1, 2], "what was answered; what is new is not due"
    progress.progress()
    assert "| 02_roofline | 4 | 2 | 1 | 0 | 0 |" in capsys.readouterr().out


def test_the_notice_that_nothing_is_saved_is_shown_once_in_the_panel(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("LIGHTSPEED_DATA", str(tmp_path / "file"))
    panel = ask("sample.transfer")
    panel.enter("640")
    assert "not being saved" in panel.reply.value
    panel.enter("640")
    assert "not being saved" not in panel.reply.value
