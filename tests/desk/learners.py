"""Simulated learners whose forgetting is known, and is not the desk's own model.

A learner forgets by halves: the chance of recall is 2^(-days / half-life). An answer lengthens the
half-life, by more the more was forgotten (the spacing effect), less for a difficult question; a
miss cuts it. Every third question rests on two others: it is right only if those are recalled, too,
and then they were retrieved. Learners differ in how long they remember at first (SLOW to QUICK).

`python tests/desk/learners.py` prints the table of policies: retention, reviews, and each part of
the desk left out.
"""

import random
from dataclasses import dataclass
from statistics import mean

from lightspeed_course.practice import memory as m
from lightspeed_course.practice.cards import box_after

DAYS, ITEMS, NEW_A_DAY = 365, 150, 3
EVERY = 5  # days between two looks into a head
SHARE = 0.5  # what a part gets of a retrieval inside a larger question, of a learner


@dataclass
class Trace:
    """One question in one head."""

    easy: float
    half_life: float = 0.0
    at: float = 0.0

    def recall(self, day):
        return 2 ** (-(day - self.at) / self.half_life) if self.half_life else 0.0

    def retrieve(self, day, share=1.0):
        """A right answer."""
        gain = self.easy * (1 - self.recall(day)) ** 0.7
        self.half_life *= 1 + share * (0.1 + 4 * gain)
        self.at += share * (day - self.at)

    def miss(self, day):
        """A wrong answer, after which the solution is read."""
        self.half_life = max(0.8, 0.35 * self.half_life)
        self.at = day


class Boxes:
    """The fixed boxes of `cards`."""

    def __init__(self):
        self.offs, self.last = {}, {}

    def answered(self, item, right, day):
        self.offs.setdefault(item, []).append(0.0 if right else 1.0)
        self.last[item] = day

    def due(self, item, day):
        return day >= self.last[item] + 2 ** (box_after(self.offs[item]) - 1)

    def urgency(self, item, day):
        return day - self.last[item]

    def credit(self, item, day):
        pass


class Desk:
    """The desk's scheduling, with parts of it left out on request."""

    def __init__(
        self, target=m.TARGET, difficulty=True, trickle=0.5, paced=True, weights=m.WEIGHTS
    ):
        self.target, self.difficulty, self.trickle, self.paced = target, difficulty, trickle, paced
        m.WEIGHTS = weights
        self.of, self.seen, self.pace = {}, [], 1.0

    def answered(self, item, right, day):
        grade, at = m.RIGHT if right else m.WRONG, day * m.DAY
        old = self.of.get(item)
        if old and self.paced:
            self.seen.append((old.passed(at), right))
            if len(self.seen) % 20 == 0:
                self.pace = m.pace(self.seen[-200:])
        new = m.after(old, grade, at) if old else m.first(grade, at)
        if not self.difficulty:
            new = m.Memory(new.at, new.stability, m.WEIGHTS[4])
        self.of[item] = new

    def due(self, item, day):
        return self.of[item].due(self.target, self.pace) <= day * m.DAY

    def urgency(self, item, day):
        return -self.of[item].recall(day * m.DAY)

    def credit(self, item, day):
        if self.trickle:
            self.of[item] = m.credited(self.of[item], day * m.DAY, self.trickle)


@dataclass
class Result:
    retention: float  # mean chance of recall over all questions that were met, all days
    late: float  # the same in the last quarter
    reviews: float  # a learner
    longest: float  # days that any due question waited
    weakest: float  # the least mean recall of a question, late


SLOW, USUAL, QUICK = 3.0, 8.0, 20.0  # days to forget half of what was just learned


def learn(policy, seed, retry=True, cap=25, kind=USUAL):
    """A learner who meets NEW_A_DAY questions a day and answers at most `cap` that are due."""
    rng = random.Random(seed)
    heads = [Trace(rng.lognormvariate(-0.3, 0.5)) for _ in range(ITEMS)]
    parts = {i: [j for j in (i - 1, i - 7) if i % 3 == 0 and j >= 0] for i in range(ITEMS)}
    reviews, waiting, longest, sums = 0, {}, 0, []

    def answer(item, day):
        right = all(rng.random() < heads[i].recall(day) for i in (item, *parts[item]))
        if right:
            for part in parts[item]:
                heads[part].retrieve(day, SHARE)
                policy.credit(part, day)
            heads[item].retrieve(day)
        else:
            heads[item].miss(day)
        policy.answered(item, right, day)
        return right

    met = []
    for day in range(DAYS):
        due = [i for i in met if policy.due(i, day)]
        waiting = {i: waiting.get(i, day) for i in due}
        for i in sorted(due, key=lambda i: policy.urgency(i, day), reverse=True)[:cap]:
            longest = max(longest, day - waiting.pop(i))
            if not policy.due(i, day):
                continue  # credited a minute ago, as part of another
            reviews += 1
            if not answer(i, day) and retry:
                reviews += 1
                heads[i].half_life *= 1.3  # at once, so it is short-lived
        for i in range(len(met), min(ITEMS, len(met) + NEW_A_DAY)):
            heads[i].half_life, heads[i].at = kind * rng.lognormvariate(0, 0.5), day
            policy.answered(i, True, day)
            met.append(i)
        if day % EVERY == 0:
            sums.append([heads[i].recall(day + 0.5) for i in met])
    quarter = sums[-len(sums) // 4 :]
    each = [mean(row[i] for row in quarter) for i in range(ITEMS)]
    longest = max([longest, *(DAYS - 1 - day for day in waiting.values())])
    return Result(mean(map(mean, sums)), mean(map(mean, quarter)), reviews, longest, min(each))


SEEDS = range(10, 13)  # the model was chosen on others


def average(make, seeds=SEEDS, **options):
    results = [learn(make(), seed, **options) for seed in seeds]
    return Result(
        *(mean(getattr(r, name) for r in results) for name in ("retention", "late", "reviews")),
        max(r.longest for r in results),
        min(r.weakest for r in results),
    )


POLICIES = {
    "fixed boxes": (Boxes, {}),
    "desk": (Desk, {}),
    "without the learner's pace": (lambda: Desk(paced=False), {}),
    "without difficulty": (lambda: Desk(difficulty=False), {}),
    "with the published difficulty": (lambda: Desk(weights=m.PUBLISHED), {}),
    "without credit for parts": (lambda: Desk(trickle=0.0), {}),
    "without retry": (Desk, {"retry": False}),
    **{f"at {t}": (lambda t=t: Desk(t), {}) for t in (0.85, 0.9, 0.97)},
}


if __name__ == "__main__":
    for words, kind in (("slow", SLOW), ("usual", USUAL), ("quick", QUICK)):
        print(f"{words:32} retention   late  reviews  longest wait  weakest")
        for name, (make, options) in POLICIES.items():
            r = average(make, kind=kind, **options)
            print(
                f"{name:32} {r.retention:9.3f} {r.late:6.3f} {r.reviews:8.0f}"
                f" {r.longest:13.0f} {r.weakest:8.2f}"
            )
