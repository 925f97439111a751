"""The desk: its memory's closed forms, what it computes from events, a sitting that loses nothing,
and simulated learners against fixed boxes.
"""

import math
import re
from itertools import pairwise
from statistics import mean

import learners
import pytest

from lightspeed_cli.main import main
from lightspeed_cli.today import hold
from lightspeed_course import ask, check, predict, reveal, today
from lightspeed_course.practice import desk, progress, store
from lightspeed_course.practice import memory as m
from lightspeed_course.practice.questions import question

DAY = m.DAY
START = 1_800_000_000.0
RIDGE, BATCH = "roofline.ridge", "roofline.h100_critical_batch"


def tried(id, correct, at, kind="magnitude"):
    kept = {"correct": correct, "kind": "right" if correct else kind, "name": "", "given": ""}
    store.record("try", id, {"seed": None, **kept}, at=at)


def right_of(variant):
    right = variant.right
    if variant.question.kind == "choice":
        return right
    return list(right) if variant.question.names else right[0]


# --- memory ---------------------------------------------------------------------------------------


def test_stability_is_the_days_to_ninety_percent():
    memory = m.first(m.RIGHT, START)
    assert memory.recall(START) == 1
    assert math.isclose(memory.recall(START + memory.stability * DAY), 0.9)
    for target in (0.8, 0.9, 0.95):
        due = memory.due(target)
        assert math.isclose(memory.recall(due), target)
    assert m.Memory(START, 0.01, 5).due() == START + m.SITTING, "not again in the same sitting"


def test_answers_move_stability_as_spacing_does():
    memory = m.first(m.RIGHT, START)
    soon, later = (m.after(memory, m.RIGHT, START + d * DAY).stability for d in (1, 8))
    assert memory.stability < soon < later, "what was nearly forgotten gains most"
    near = m.after(memory, m.NEAR, START + 8 * DAY).stability
    lapse = m.after(memory, m.WRONG, START + 8 * DAY)
    assert lapse.stability < memory.stability < near < later
    assert lapse.difficulty > memory.difficulty and lapse.lapses == 1
    hard = m.first(m.RIGHT, START, 3)
    assert m.after(hard, m.RIGHT, START + 8 * DAY).stability < later
    part = m.credited(memory, START + 8 * DAY, 0.5)
    assert memory.stability < part.stability < later and memory.at < part.at < START + 8 * DAY


def test_the_pace_of_a_learner_is_found():
    assert m.pace([]) == 1
    # of those asked after one stability, 71 % are right at a quarter of the pace, by the curve
    quarter = (1 + m.FACTOR * 4) ** m.DECAY
    answers = [(1.0, n < 400 * quarter) for n in range(400)]
    assert m.pace(answers) == pytest.approx(0.25, rel=0.2)
    assert m.pace([(1.0, True)] * 200) == max(m.PACES)


# --- what the events say --------------------------------------------------------------------------


def test_events_of_todays_store_count_without_a_change_to_it():
    store.record("guess", "numbers.dram_over_fma", {"value": 3.0}, at=START)
    store.record("review", "numbers.h100_peak", {"decades": 0.02, "value": 1}, at=START)
    tried(RIDGE, False, START)
    tried("numbers.gone", True, START)  # a question of an earlier version
    before = store.dumps()
    now = desk.read()
    assert now.guessed == {"numbers.dram_over_fma"} and now.missed == {RIDGE}
    assert now.right == {"numbers.h100_peak"} and set(now.memories) == {RIDGE, "numbers.h100_peak"}
    states = [now.state(id, START) for id in ("numbers.dram_over_fma", RIDGE, "numbers.h100_peak")]
    assert states == ["guessed", "tried", "solved"] and now.state(BATCH, START) == "new"
    assert store.dumps() == before, "nothing is written by reading"


def test_the_first_answer_of_a_sitting_counts_and_a_copied_one_does_not():
    tried(RIDGE, False, START)
    tried(RIDGE, True, START + 60)
    now = desk.read()
    assert now.memories[RIDGE].lapses == 1 and now.memories[RIDGE].answers == 1
    assert RIDGE in now.right and not now.missed
    store.record("solution", BATCH, {}, at=START)
    tried(BATCH, True, START + 60)
    assert BATCH not in desk.read().right, "copied from the solution"
    tried(BATCH, True, START + DAY)
    assert BATCH in desk.read().right


def test_what_is_new_waits_for_what_it_rests_on_and_a_right_answer_trickles_down():
    part = question(RIDGE).rests[0]
    assert RIDGE not in desk.read().following() and part in desk.read().following()
    tried(part, True, START)
    assert RIDGE in desk.read().following()
    alone = desk.read().due_at(part)
    tried(RIDGE, True, START + 2 * DAY)
    assert desk.read().due_at(part) > alone


def test_every_name_in_the_graph_is_a_question_and_it_has_no_circle():
    named = {id for q in desk.catalogue().values() for id in q.rests}
    assert not named - set(desk.catalogue())
    assert len(desk.order()) == len(desk.catalogue())


def test_a_question_of_any_level_can_be_remembered():
    right = {"correct": True, "kind": "right"}
    events = [store.Event(START, "try", id, right) for id in desk.catalogue()]
    assert set(desk.read(events).memories) == set(desk.catalogue())


def test_topics_take_turns():
    ids = [f"{topic}.q{n}" for topic in ("a", "b", "c") for n in range(3)]
    mixed = desk.interleaved(ids)
    assert sorted(mixed) == ids
    assert all(a[0] != b[0] for a, b in pairwise(mixed))


def test_a_streak_lasts_until_a_day_was_missed():
    for n in (0, 1, 2):
        tried(RIDGE, True, START + n * DAY)
    streaks = [desk.read().streak(START + n * DAY) for n in (2, 3, 4)]
    assert streaks == [3, 3, 0], "today is not over yet"
    assert "3 days in a row" in desk.told(START + 2 * DAY)[0]
    assert "row" not in desk.told(START + 4 * DAY)[0], (
        "a streak that ended is not held up to anyone"
    )


def test_a_placement_test_tells_a_novice_from_an_expert():
    for knows, bounds in (
        (lambda id: True, (25, len(desk.catalogue()))),
        (lambda id: False, (0, 0)),
    ):
        answers = []
        while id := desk.placement_question(answers):
            assert id not in dict(answers) and desk.askable(id)
            answers.append((id, knows(id)))
        assert len(answers) == desk.A_DAY, "ten minutes"
        known, unknown = desk.known_after(answers)
        assert bounds[0] <= len(known) <= bounds[1], (len(known), len(unknown))
        assert not known & unknown


# --- a sitting ------------------------------------------------------------------------------------


def week(days, right, clock):
    """Sittings on as many days, each answer by `right(id, day)`; the ids asked, day by day."""
    asked = []
    for day in range(days):
        clock[0] = START + day * DAY
        sitting, today_ = desk.Sitting(lambda: clock[0]), []
        while sitting.variant:
            id = sitting.variant.question.id
            today_.append(id)
            wrong = "A" if sitting.variant.question.kind == "choice" else -1.0
            given = right_of(sitting.variant) if right(id, day) else wrong
            if sitting.variant.question.names and not right(id, day):
                given = [-1.0] * len(sitting.variant.question.names)
            sitting.answer(given)
            clock[0] += 30
            sitting.advance()
        asked.append(today_)
    return asked


def test_a_week_of_days():
    clock = [START]
    asked = week(7, lambda id, day: True, clock)
    assert all(5 <= len(day) <= desk.A_DAY for day in asked), [len(day) for day in asked]
    assert all(len(set(day)) == len(day) for day in asked), "what is right is not asked again"
    repeated = [id for day in asked[1:] for id in day if id in asked[0]]
    assert repeated, "what was learned on the first day comes back in the week"
    seeds = {e.detail["seed"] for e in store.events("try") if e.question == repeated[0]}
    assert len(seeds) > 1, "with fresh numbers"
    assert desk.read().streak(clock[0]) == 7


def test_a_miss_comes_back_at_the_end_of_the_sitting_with_other_numbers():
    clock, missed = [START], []

    def right(id, day):
        missed.append(id) if not missed else None
        return id != missed[0] or missed.count(id) > 2 or missed.append(id) is not None

    (asked,) = week(1, right, clock)
    first = asked[0]
    assert 2 <= asked.count(first) <= 1 + desk.Sitting.RETRIES and asked[1] != first
    told = [e.detail["seed"] for e in store.events("try", first)]
    assert len(set(told)) == len(told)


def test_a_killed_kernel_and_a_second_lab_lose_and_repeat_nothing():
    one, two = desk.Sitting(lambda: START), desk.Sitting(lambda: START)
    asked = one.variant
    assert two.variant.question.id == asked.question.id and two.variant.values == asked.values
    del two  # killed in mid-answer: nothing was kept, and the same is asked again
    again = desk.Sitting(lambda: START)
    assert again.variant.prompt == asked.prompt
    one.answer(right_of(asked))
    second = one.queue[0]
    tried(second, True, START + 1)  # in another lab, meanwhile
    one.advance()
    assert one.variant.question.id != second


def test_the_desk_on_a_page():
    panel = today(clock=lambda: START)
    assert not panel.error and "Due: none." in panel.prompt.value
    panel.enter("")
    assert not store.events()
    right = right_of(panel.sitting.variant)
    panel.enter(repr(right))
    assert "sol-good" in panel.reply._dom_classes and panel.form.action == "Next"
    panel.press_extra()
    assert "A worked solution" in panel.after.value
    panel.enter("")
    assert panel.form.action == "Check" and "1 of " in panel.prompt.value and not panel.error


def begin_all():
    """A right answer long ago to everything that a box can ask."""
    for id in filter(desk.askable, desk.catalogue()):
        tried(id, True, START - 400 * DAY)


def test_a_function_is_asked_last_and_written_in_a_cell():
    clock = [START]
    assert all(map(desk.askable, desk.Sitting(lambda: START, cells=True).queue)), "none begun"
    begin_all()
    panel = today(clock=lambda: clock[0])
    sitting = panel.sitting
    assert [desk.askable(id) for id in sitting.queue] == [True] * (desk.A_DAY - 2) + [False]
    while desk.askable(sitting.variant.question.id):
        sitting.answer(right_of(sitting.variant))
        sitting.advance()
    panel._draw()
    clock[0] += 60
    asked = sitting.variant
    id = asked.question.id
    assert f"check(&quot;{id}&quot;" in panel.prompt.value and panel.form.fields == []
    panel.enter()
    assert "Not checked yet" in panel.reply.value and sitting.variant is asked
    # Without a call of the law itself, which would be no answer.
    known = {repr(i): asked.question.expected(**i) for i in map(asked.inputs, asked.samples)}
    check(id, lambda **inputs: known[repr(inputs)], at=clock[0])
    panel.enter()
    assert "sol-good" in panel.reply._dom_classes and desk.read().memories[id].answers == 1
    panel.enter()
    assert "Done for today" in panel.prompt.value and not panel.error
    assert all(map(desk.askable, desk.Sitting(lambda: START).queue)), "a terminal has no cells"


def test_a_function_can_be_left_or_be_wrong():
    begin_all()

    def asked():
        panel = today(clock=lambda: START)
        panel.sitting.queue = panel.sitting.queue[-1:]
        panel.sitting.advance()
        panel._draw()
        return panel, panel.sitting.variant.question.id

    panel, id = asked()
    panel.press_extra()
    assert panel.sitting.variant is None and not store.events("try", id) and not panel.error
    panel, again = asked()
    assert again == id
    check(id, lambda *_: -1.0, at=START)
    panel.enter()
    assert "comes back another day" in panel.reply.value and panel.form.action == "Next"
    assert id in desk.read().missed and id in desk.read().to_write(START + 30 * DAY)


def test_a_box_says_how_its_question_stands():
    assert "Tried" not in ask(RIDGE).prompt.value
    check(RIDGE, 1.0)
    assert "Tried, not solved yet." in ask(RIDGE).prompt.value
    check(RIDGE, question(RIDGE).variant().right[0])
    panel = ask(RIDGE)
    assert re.search(r"Solved\. Due again in \d+ day", panel.prompt.value)
    assert panel.static == question(RIDGE).variant().prompt, "what is committed stays the same"


def test_after_run_all_a_reveal_shows_when_the_guess_is_there():
    guess, answer = predict("numbers.dram_over_fma"), reveal("numbers.dram_over_fma")
    assert "sol-empty" in answer.reply._dom_classes
    guess.enter("7")
    assert "Your first guess was" in answer.reply.value and not answer.error


def test_the_command_lists(capsys):
    tried(RIDGE, False, START)
    assert main(["today"]) == 0
    shown = capsys.readouterr().out
    assert f"Missed last time: {question(RIDGE).title}" in shown and "Next: DRAM over FMA" in shown
    assert "_" not in shown, "titles, not ids"


def test_progress_and_today_agree_on_what_is_due(capsys):
    for at in (START, START + 400 * DAY):
        due = desk.read().due(at)
        assert sum(row["due"] for row in progress.summary(at)) == len(due)
        assert desk.told(at)[1][0].startswith("Due: none.") == (not due)
        tried(RIDGE, True, START)
    assert due


def test_titles_tell_questions_apart():
    titles = {(q.chapter, q.title) for q in desk.catalogue().values()}
    assert len(titles) == len(desk.catalogue())
    assert question("numbers.dram_over_fma").title == "DRAM over FMA"


def test_a_sitting_in_a_terminal(capsys, monkeypatch):
    said = ["", "no number", "-1"]

    def answer(_):
        if said:
            return said.pop(0)
        raise EOFError

    monkeypatch.setattr("builtins.input", answer)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    assert main(["today"]) == 0
    told = [(e.kind, e.detail.get("kind")) for e in store.events()]
    assert told == [("try", "type"), ("try", "sign"), ("solution", None)]
    assert desk.read().memories["numbers.dram_over_fma"].answers == 1, "what is no number is none"
    said = capsys.readouterr().out
    assert "Type an answer" in said and "Ctrl-D leaves" in said
    assert "It comes again at the end, with other numbers." in said and "*" not in said


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("q", ""),
        ("quit", ""),
        ("?", "skip leaves this question"),
        ("help", "a number"),
        ("Skip", ""),
    ],
)
def test_a_word_of_command_is_no_answer(word, said, capsys, monkeypatch):
    words, prompts = [word], []

    def answer(_):
        prompts.append(capsys.readouterr().out)
        if words:
            return words.pop()
        raise EOFError

    monkeypatch.setattr("builtins.input", answer)
    hold(desk.Sitting(lambda: START))
    assert not store.events() and len(prompts) == (1 if word in ("q", "quit") else 2)
    if len(prompts) == 2:
        first, second = (text.strip().split("\n") for text in prompts)
        assert said in " ".join(second)
        assert (first[-3:] != second[-3:]) == (word == "Skip"), "another question, or the same"


def test_a_placement_test_in_a_terminal_says_what_it_found(capsys, monkeypatch):
    def answer(_):
        told.append(sitting.variant.question.id)
        given = right_of(sitting.variant)
        return ", ".join(map(repr, given)) if isinstance(given, list) else str(given)

    told, sitting = [], desk.Sitting(lambda: START, placement=True)
    monkeypatch.setattr("builtins.input", answer)
    hold(sitting)
    known = len(desk.read().placed)
    assert len(told) == len(store.events("placement")) == desk.A_DAY and known >= 25
    assert f"{known} known by the placement test" in capsys.readouterr().out
    assert not set(desk.read().following()) & desk.read().placed, "what is known is not new"


def test_a_question_of_the_placement_test_that_is_skipped_is_not_known_and_not_asked_again():
    asked, sitting = [], desk.Sitting(lambda: START, placement=True)
    while sitting.variant is not None:
        asked.append(sitting.variant.question.id)
        sitting.advance()
    assert len(asked) == len(set(asked)) == len(store.events("placement"))
    assert str(desk.read().placement).startswith("Placement: begin with lesson 1")
    assert desk.Sitting(lambda: START, placement=True).variant is None, "it is over"


@pytest.mark.parametrize("last", ["", "02", "06"])
def test_a_placement_test_says_where_to_begin_and_the_desk_follows(last, capsys):
    """Somebody who knows all chapters up to `last`, and nothing beyond."""
    sitting = desk.Sitting(lambda: START, placement=True)
    assert desk.read().placement is None
    while sitting.variant is not None:
        if sitting.variant.question.chapter[:2] <= last:
            sitting.answer(right_of(sitting.variant))
        sitting.advance()
    read = desk.read()
    place, new = read.placement, read.following()
    assert place.begin[:2] <= f"{int(last or 0) + 1:02}" and place.begin not in place.skip
    assert all(name[:2] <= last for name in place.skip), "nothing is skipped that is not known"
    assert bool(place.skip) == bool(last) and len(place.reasons) <= desk.A_DAY
    later = [desk.catalogue()[id].chapter >= place.begin for id in new]
    assert later == sorted(later, reverse=True), "earlier chapters come last"
    assert desk.told(START)[1][0] == str(place)
    assert main(["progress"]) == 0 and str(place) in capsys.readouterr().out
    progress.progress(lambda: START)
    assert str(place) in capsys.readouterr().out, "on a page, too"


# --- simulated learners ---------------------------------------------------------------------------


@pytest.mark.slow
def test_learners_keep_as_much_as_with_boxes_in_three_quarters_of_the_reviews():
    kinds = (learners.SLOW, learners.USUAL, learners.QUICK)
    boxes, ours = (
        [learners.average(make, kind=kind) for kind in kinds]
        for make in (learners.Boxes, learners.Desk)
    )
    kept = [mean(r.retention for r in each) for each in (boxes, ours)]
    reviews = [sum(r.reviews for r in each) for each in (boxes, ours)]
    assert kept[1] >= kept[0] - 0.005, kept
    assert reviews[1] <= 0.75 * reviews[0], reviews
    assert max(r.longest for r in ours) <= 30, "nothing starves"
    assert min(r.weakest for r in ours) > 0.5, "no question is given up"


@pytest.mark.slow
def test_what_each_part_of_the_desk_is_worth():
    """The README: the pace earns most, parts some, difficulty and retry nothing visible."""
    kinds = (learners.SLOW, learners.USUAL, learners.QUICK)

    def total(policy):
        make, options = learners.POLICIES[policy]
        each = [learners.average(make, kind=kind, **options) for kind in kinds]
        return mean(r.retention for r in each), sum(r.reviews for r in each)

    kept, reviews = total("desk")
    without = {name: total(name) for name in learners.POLICIES if name.startswith("without")}
    assert without["without the learner's pace"][0] < kept - 0.03
    less, more = without["without credit for parts"]
    assert less < kept and more > 1.03 * reviews
    for name in ("without difficulty", "without retry"):
        assert abs(without[name][0] - kept) < 0.005, name
        assert abs(without[name][1] / reviews - 1) < 0.02, name
