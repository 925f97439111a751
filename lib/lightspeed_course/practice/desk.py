"""The desk: what is remembered of every question, what is due, what was missed, what comes next.

Everything is computed from the store's events, each time: nothing else is kept, so that events of
earlier versions count, two open labs agree, and a killed kernel has lost nothing. An answer is a
`try` of any box or cell, or a `review` of a card. The first answer of a sitting says what was
remembered; a right one after a worked solution was shown says nothing.
"""

import graphlib
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache
from typing import Any

from lightspeed_course.practice import memory as m
from lightspeed_course.practice import store
from lightspeed_course.practice.questions import LEVELS, UnknownQuestion, bank, question, topics

TRICKLE = 0.5  # of a right answer's effect, for what it rests on
A_DAY = 10  # questions in ten minutes
KNOWN, NEAR = 0.1, 0.5  # decades, as of `cards`
HARDER = {level: float(n) for n, level in enumerate(LEVELS)}  # FSRS difficulty, at first


@cache
def catalogue():
    """Question id -> question, of all topics, in the order of the chapters."""
    return {q.id: q for topic in topics() for q in bank(topic)}


@cache
def parts(id):
    """The questions that one rests on: those of its text, and the smaller one that it offers. One
    that is new waits until they were answered right once; a right answer is credited, in part, to
    them; the placement test asks where most hangs on the answer.
    """
    q = question(id)
    return tuple(dict.fromkeys([*q.rests, *([q.smaller] if q.smaller else [])]))


@cache
def order():
    """Question ids, each after what it rests on, else as in the chapters."""
    sorter = graphlib.TopologicalSorter({id: parts(id) for id in catalogue()})
    return tuple(sorter.static_order())


@cache
def below(id):
    """Return everything that a question rests on, directly or indirectly."""
    return frozenset(parts(id)).union(*map(below, parts(id)))


def askable(id):
    """Whether a box can take the answer: functions need a cell."""
    return id in catalogue() and catalogue()[id].kind != "function"


@dataclass(frozen=True)
class Desk:
    """What the events say. `memories`: question id -> Memory; `right`, `tried`, `shown`, `guessed`:
    ids of questions; `missed`: those whose last answer was wrong; `placed`: those that the
    placement test found known; `days`: numbers of the days with an answer; `pace`: how long this
    learner remembers, over what is usual.
    """

    memories: Mapping[str, m.Memory]
    right: frozenset[str]
    tried: frozenset[str]
    shown: frozenset[str]
    guessed: frozenset[str]
    missed: frozenset[str]
    placed: frozenset[str]
    days: frozenset[int]
    pace: float
    placement: "Placement | None" = None

    def due_at(self, id):
        return self.memories[id].due(pace=self.pace)

    def due(self, now):
        """Return the questions that are due, those most likely forgotten first."""
        ready = [id for id in self.memories if askable(id) and self.due_at(id) <= now]
        return sorted(ready, key=lambda id: (self.memories[id].recall(now, self.pace), id))

    def to_write(self, now):
        """Return functions to write in a cell: those that are due, then new ones."""
        ready = [id for id in self.memories if not askable(id) and self.due_at(id) <= now]
        return ready + [id for id in self.following() if not askable(id)]

    def following(self):
        """New questions whose parts were all answered right, in the order of the chapters, from the
        one on with which the placement test says to begin.
        """
        solved_ids = self.right | self.placed
        begin = self.placement.begin if self.placement else ""
        ready = [
            id
            for id in order()
            if id not in self.memories
            and id not in self.placed
            and all(part in solved_ids for part in parts(id))
        ]
        return sorted(ready, key=lambda id: catalogue()[id].chapter < begin)

    def state(self, id, now):
        """Return a question's state for its box: "new", "guessed", "tried", "solved" or "due"."""
        if id in self.memories and self.due_at(id) <= now:
            return "due"
        if id in self.right:
            return "solved"
        return "tried" if id in self.tried else "guessed" if id in self.guessed else "new"

    def streak(self, now):
        """Days in a row with an answer, up to today or yesterday: today is not over yet."""
        day = day_of(now)
        last = day if day in self.days else day - 1
        count = 0
        while last - count in self.days:
            count += 1
        return count


def day_of(at):
    """The number of the day, by the local clock."""
    return date(*time.localtime(at)[:3]).toordinal()


@cache
def _level(id):
    """The level of a question, from its own topic alone; "" for one of an earlier version."""
    try:
        return question(id).level
    except UnknownQuestion:
        return ""


def _grade(event):
    """The grade of an answer; None if it is none, or if it says nothing."""
    if event.kind == "review":
        off = abs(event.detail["decades"])
        return m.RIGHT if off <= KNOWN else m.NEAR if off <= NEAR else m.WRONG
    if event.detail["kind"] in ("read", "type", "unanswered"):
        return None
    return m.RIGHT if event.detail["correct"] else m.WRONG


def read(events=None):
    """The `Desk` of these events, by default those of the store."""
    memories: dict[str, m.Memory] = {}
    right, tries, shown_at, guessed, missed, days = set(), set(), {}, set(), set(), set()
    reviews, placement = [], []
    # Those of two labs, or of a file that was read in, may lie in another order than they happened.
    for e in sorted(store.events() if events is None else events, key=lambda e: e.at):
        id = e.question
        if not _level(id):
            continue
        if e.kind == "guess":
            guessed.add(id)
        elif e.kind == "solution":
            shown_at[id] = e.at
        elif e.kind == "placement":
            placement.append((id, e.detail["correct"]))
        if e.kind not in ("try", "review") or (grade := _grade(e)) is None:
            continue
        days.add(day_of(e.at))
        tries.add(id)
        if grade == m.WRONG:
            missed.add(id)
        else:
            missed.discard(id)
        # What was copied from a solution just shown was not remembered.
        if grade != m.WRONG and e.at - shown_at.get(id, -m.SITTING) < m.SITTING:
            continue
        if grade != m.WRONG:
            right.add(id)
        old = memories.get(id)
        if old is None:
            memories[id] = m.first(grade, e.at, HARDER[_level(id)])
        elif e.at - old.at >= m.SITTING:
            reviews.append((old.passed(e.at), grade != m.WRONG))
            memories[id] = m.after(old, grade, e.at)
        else:
            continue  # again in one sitting
        if grade == m.RIGHT:
            for part in parts(id):
                if part in memories:
                    memories[part] = m.credited(memories[part], e.at, TRICKLE)
    return Desk(
        memories,
        frozenset(right),
        frozenset(tries),
        frozenset(shown_at),
        frozenset(guessed),
        frozenset(missed),
        known_after(placement)[0],
        frozenset(days),
        m.pace(reviews[-200:]),
        placement_of(placement),
    )


# --- a sitting ----------------------------------------------------------------------------------


def interleaved(ids):
    """Return the questions with neighbours of different topics if possible."""
    by_topic: dict[str, list[str]] = {}
    for id in ids:
        by_topic.setdefault(id.partition(".")[0], []).append(id)
    result, last = [], ""
    while by_topic:
        # The longest row first, or it would stand alone at the end.
        last = max(by_topic, key=lambda topic: (topic != last, len(by_topic[topic])))
        result.append(by_topic[last].pop(0))
        if not by_topic[last]:
            del by_topic[last]
    return result


def sitting(desk, now, count=A_DAY, cells=False):
    """The questions of one sitting: what is due, then what is new, interleaved. Two in ten are new
    at least, while there are any: else a learner with much to repeat would never go on. Where there
    are `cells` to write in, the last one is a function, of a topic that was begun: it takes as long
    as several others.
    """
    topics = {id.partition(".")[0] for id in desk.right}
    write = [id for id in desk.to_write(now) if id.partition(".")[0] in topics][: int(cells)]
    count -= len(write)
    new = [id for id in desk.following() if askable(id)]
    due = desk.due(now)[: count - min(len(new), max(1, count // 5))]
    return interleaved(due + new[: count - len(due)]) + write


def seed_of(id):
    """The seed of a question's next variant: fresh numbers with each answer, the same until there
    is one, in every open lab and after a killed kernel.
    """
    count = sum(e.kind in ("try", "placement") for e in store.events(question=id))
    return f"desk {count}" if count else None


# --- the placement test -------------------------------------------------------------------------


def known_after(answers):
    """(known, not known) after answers of a placement test: who is right knows what it rests on;
    who is wrong does not know what rests on it.
    """
    sure, unknown = set(), set()
    for id, correct in answers:
        if correct:
            sure |= {id, *below(id)}
        else:
            unknown |= {id, *(other for other in catalogue() if id in below(other))}
    return frozenset(sure - unknown), frozenset(unknown)


def placement_question(answers):
    """Return the next question, where either answer tells most; None if nothing is left."""
    sure, unknown = known_after(answers)
    ids = {id for id, _ in answers}
    open_ = [i for i in order() if i not in sure and i not in unknown and i not in ids]
    if len(ids) >= A_DAY:
        return None

    def told(id):
        up = sum(id in below(other) for other in open_)
        return (min(up, sum(part in open_ for part in below(id))), up + len(below(id)))

    return max((i for i in open_ if askable(i)), key=told, default=None)


@dataclass(frozen=True)
class Placement:
    """Where to begin: a chapter, those that can be skipped, those that are weak, and why, as
    (title of a question, whether it was answered right).
    """

    begin: str
    skip: tuple[str, ...]
    weak: tuple[str, ...]
    reasons: tuple[tuple[str, bool], ...]

    def __str__(self):
        def named(chapters):
            return ", ".join(f"{int(name[:2])}" for name in chapters)

        parts = [f"begin with lesson {int(self.begin[:2])}"] if self.begin else ["take a call"]
        parts += [f"skip {named(self.skip)}"] * bool(self.skip)
        parts += [f"weak in {named(self.weak)}"] * bool(self.weak)
        right, wrong = (
            ", ".join(title for title, correct in self.reasons if correct is outcome) or "nothing"
            for outcome in (True, False)
        )
        return f"Placement: {'; '.join(parts)}. Right: {right}. Not: {wrong}."


def placement_of(answers):
    """The `Placement` of a test that is over, else None. A chapter counts as known if the answers
    show one of its questions to be known and none unknown; as weak if an answer to one was wrong.
    """
    # Without an answer no topic is read: a page opens its boxes before it has them all.
    if not answers or (len(dict(answers)) < A_DAY and placement_question(answers) is not None):
        return None
    sure_ids, unknown = known_after(answers)
    chapters = sorted({q.chapter for q in catalogue().values()})
    solid, open_ = ({catalogue()[id].chapter for id in ids} for ids in (sure_ids, unknown))
    sure = [name for name in chapters if name in solid - open_]
    begin = next((name for name in chapters if name not in sure), "")
    wrong = {catalogue()[id].chapter for id, correct in answers if not correct}
    return Placement(
        begin,
        tuple(sure),
        tuple(name for name in chapters if name in wrong and name != begin),
        tuple((catalogue()[id].title, correct) for id, correct in answers),
    )


def placement_answers():
    """(id, correct) of the placement test so far."""
    return [(e.question, e.detail["correct"]) for e in store.events("placement")]


class Sitting:
    """A sitting; `variant` is None once it is over. A missed question comes back at its end with
    other numbers, RETRIES times at most; answers elsewhere are passed over.
    """

    RETRIES = 2

    def __init__(self, clock, placement=False, cells=False):
        self.clock, self.placement = clock, placement
        self.queue = [] if placement else sitting(read(), clock(), cells=cells)
        self.started, self.asked, self.solved = clock(), {}, 0
        self.variant: Any = None
        self.advance()

    def advance(self):
        """Ask the next question. In the placement test a skipped one counts as not known."""
        if self.placement and self.variant is not None:
            id = self.variant.question.id
            if id not in dict(placement_answers()):
                skipped = {"seed": self.variant.seed, "correct": False, "skipped": True}
                store.record("placement", id, skipped, at=self.clock())
        self.variant = None
        if self.placement:
            self._deal(placement_question(placement_answers()))
        while self.variant is None and self.queue:
            id = self.queue.pop(0)
            has_answer = any(e.at >= self.started for e in store.events("try", id))
            if id in self.asked or not has_answer:
                self._deal(id)

    def _deal(self, id):
        self.dealt = self.clock()
        # `check` in a cell knows no seed: a function is asked as it stands
        seed = seed_of(id) if id and askable(id) else None
        self.variant = catalogue()[id].variant(seed) if id else None

    def checked(self):
        """Whether the current function was right when last checked; None before that."""
        tries = store.events("try", self.variant.question.id)
        verdicts = [e for e in tries if e.at >= self.dealt and _grade(e) is not None]
        return bool(verdicts[-1].detail["correct"]) if verdicts else None

    def shown(self):
        """Record that this question's worked solution was shown."""
        detail = {"seed": self.variant.seed}
        store.record("solution", self.variant.question.id, detail, at=self.clock())

    def answer(self, value):
        """Return the verdict on an answer, and record it."""
        from lightspeed_course.practice.check import check, diagnose

        id, seed = self.variant.question.id, self.variant.seed
        if self.placement:
            verdict = diagnose(self.variant, value)
            if verdict.kind not in ("unanswered", "type"):
                details = {"seed": seed, "correct": verdict.correct}
                store.record("placement", id, details, at=self.clock())
            return verdict
        verdict = check(id, value, seed, self.clock())
        if verdict.kind in ("unanswered", "type"):
            return verdict
        self.asked[id] = self.asked.get(id, 0) + 1
        self.solved += verdict.correct
        if not verdict.correct and self.asked[id] <= self.RETRIES:
            self.queue.append(id)
        return verdict


def told(now):
    """Describe the desk: (heading, lines), the same on a page and in a terminal."""
    desk = read()
    due, following = desk.due(now), desk.following()
    new = [id for id in following if askable(id)]
    streak = desk.streak(now)
    lines = [
        f"Due: {_some(due)}",
        f"Missed last time: {_some(sorted(desk.missed))}",
        f"Next: {_some(new)}",
        f"To write in a cell: {_some(desk.to_write(now))}",
    ]
    if desk.placement:
        lines.insert(0, str(desk.placement))
    solved = len(desk.right)
    heading = f"{solved} of {len(catalogue())} questions solved"
    heading += f", {len(desk.placed)} known by the placement test" * bool(desk.placed)
    heading += f", {streak} days in a row" * (streak > 1)
    return f"{heading}.", lines


def _some(ids, most=4):
    if not ids:
        return "none."
    more = f" and {len(ids) - most} more" if len(ids) > most else ""
    return f"{', '.join(question(id).title for id in ids[:most])}{more}."


def state_words(id, now):
    """The state of a question in words, for its box; "" for a new one."""
    desk = read()
    state = desk.state(id, now)
    if state == "solved":
        days = max(1, round((desk.due_at(id) - now) / m.DAY))
        return f"Solved. Due again in {days} day{'s' * (days != 1)}."
    words = {
        "due": "Due: answer it again.",
        "tried": "Tried, not solved yet.",
        "guessed": "Guessed.",
    }
    return words.get(state, "")
