"""Cards: the numbers to know, drilled by spaced repetition and scored by decades.

Leitner's boxes: a card answered within KNOWN decades moves up one box, within NEAR it stays,
further off it goes back to the first. A card in box n comes back after 2^(n-1) days.
"""

import math
import time

from lightspeed_course.practice import store
from lightspeed_course.practice.amounts import amount, times
from lightspeed_course.practice.forms import Panel, as_html, number_field, unread
from lightspeed_course.practice.parse_answer import Unreadable, numbers
from lightspeed_course.practice.predict import decades
from lightspeed_course.practice.questions import bank

KNOWN, NEAR = 0.1, 0.5
BOXES = 6
DAY = 86400.0


def box_after(reviews):
    """The box (from 1) of a card by its reviews, decades by which each was off; 0 if new."""
    box = 0
    for off in reviews:
        box = min(box + 1, BOXES) if abs(off) <= KNOWN else max(box, 1) if abs(off) <= NEAR else 1
    return box


def due_at(reviews):
    """When a card is due, in seconds since 1970, by its (time, decades off) reviews; new: -inf."""
    if not reviews:
        return -math.inf
    return reviews[-1][0] + DAY * 2 ** (box_after([off for _, off in reviews]) - 1)


def deck(topic):
    """The cards of a topic: its number questions of level "recall"."""
    return [q for q in bank(topic) if q.kind == "number" and q.level == "recall"]


def reviews_by_card():
    """Question id -> its reviews as (time, decades off), in order."""
    reviews = {}
    for event in store.events("review"):
        reviews.setdefault(event.question, []).append((event.at, event.detail["decades"]))
    return reviews


def due(topic, now):
    """A topic's cards that are due, longest overdue first, before all new ones in order."""
    reviews = reviews_by_card()
    waiting = [(due_at(reviews.get(q.id, [])), n, q) for n, q in enumerate(deck(topic))]
    return [q for at, _, q in sorted(waiting, key=lambda w: w[:2]) if at <= now]


def cards(topic, clock=time.time):
    """A drill over the cards of a topic that are due, as the last value of a cell."""
    if not deck(topic):
        raise ValueError(f"cards: no number questions of level recall in the topic {topic!r}")
    return Drill(topic, clock)


class Drill(Panel):
    """A session: a card, the answer, how far off, the next card. Enter checks and goes on."""

    def __init__(self, topic, clock):
        self.clock = clock
        self.queue = due(topic, clock())
        self.count, self.offs, self.answered = len(self.queue), [], False
        static = (
            f"**Cards: {topic}.** {len(deck(topic))} numbers to know. Run this cell to drill those"
            " that are due. An answer within a quarter moves a card to a longer interval, one off"
            " by more than a factor of three brings it back tomorrow."
        )
        super().__init__("", [], self._step, static=static)
        self._deal()

    def _step(self, values):
        if self.answered or not self.queue:
            self.queue = self.queue[1:]
            self._deal()
            return "", self.status, "plain"
        variant = self.queue[0].variant()
        unit, true = variant.question.unit, variant.right[0]
        try:
            guess = float(numbers(values[0], unit)[0])
        except Unreadable as problem:
            return unread(problem)
        if guess <= 0:
            return unread(Unreadable("type", "A value above zero is asked."))
        off = decades(guess, true)
        at = self.clock()
        past = [o for _, o in reviews_by_card().get(variant.question.id, [])]
        store.record("review", variant.question.id, {"decades": off, "value": guess}, at=at)
        self.offs.append(off)
        self.answered = True
        self.form.action = "Next card" if len(self.queue) > 1 else "Finish"
        days = 2 ** (box_after([*past, off]) - 1)
        verdict = "Known." if abs(off) <= KNOWN else "Near." if abs(off) <= NEAR else "Not yet."
        way = "" if abs(off) < 0.05 else f", {times(off)} too {'high' if off > 0 else 'low'}"
        again = f"Again in {days} day{'s' * (days > 1)}."
        text = f"You said {amount(guess, unit)}{way}."
        reply = f"**{verdict}** {text} {again}\n\n{variant.solution}" + _notice()
        return (
            reply,
            f"{verdict} {text} {again}",
            "good" if abs(off) <= KNOWN else "plain" if abs(off) <= NEAR else "bad",
        )

    def _deal(self):
        """Put the next card on the table, or the sum of the session."""
        self.answered = False
        if self.queue:
            q = self.queue[0]
            self.status = f"Card {self.count - len(self.queue) + 1} of {self.count}"
            self.prompt.value = as_html(f"*{self.status}.* {q.variant().fill(q.prompt)}")
            self.form.fields, self.form.action = [number_field(q.unit)], "Check"
            return
        hits = sum(abs(off) <= KNOWN for off in self.offs)
        self.status = (
            f"Done: {hits} of {len(self.offs)} known."
            if self.offs
            else "No card is due. Come back tomorrow."
        )
        self.prompt.value = as_html(f"**{self.status}**")
        self.form.fields, self.form.action = [], ""


def _notice():
    notice = store.take_notice()
    return f"\n\n*{notice}*" if notice else ""
