"""How well a question is remembered, from its answers: when it should be asked again.

The model is FSRS-4.5: a difficulty from 1 to 10, and a stability, the days in which the chance of a
right answer falls to 90 %. Both are updated with each answer, so each question finds its own pace.
The weights are the published defaults but for two, GENTLER, and a learner's own pace is estimated
on top of them.

Sources: Ye, Su and Cao, "A Stochastic Shortest Path Algorithm for Optimizing Spaced Repetition
Scheduling" (KDD 2022); open-spaced-repetition, "The Algorithm", FSRS-4.5.
"""

import math
from dataclasses import dataclass, replace

DAY = 86400.0
WRONG, NEAR, RIGHT = 1, 2, 3  # grades; FSRS calls them again, hard and good
PUBLISHED = (
    0.4872, 1.4003, 3.7145, 13.8206, 5.1618, 1.2298, 0.8975, 0.031, 1.6474, 0.1367, 1.0461, 2.1072,
    0.0793, 0.3246, 1.587, 0.2272, 2.8755,
)  # fmt: skip
# How much one miss adds to a difficulty, and how much of that is forgotten with each answer. With
# the published 0.8975 and 0.031, two misses mark a question as hard for months. At one target the
# published pair asks a little less and keeps a little less. This one was chosen on the simulated
# learners of tests/desk/learners.py; no learner was asked.
GENTLER = (0.45, 0.3)
WEIGHTS = (*PUBLISHED[:6], *GENTLER, *PUBLISHED[8:])
DECAY, FACTOR = -0.5, 19 / 81
# A question is due when its chance of a right answer has fallen to this. It keeps what the fixed
# boxes of `cards` keep, and was set on the learners of tests/desk/learners.py.
TARGET = 0.94
# Answers closer together are one sitting: the first tells what was remembered, later ones only
# what was read a minute ago.
SITTING = 8 * 3600.0


@dataclass(frozen=True)
class Memory:
    """What is known of one question: when it was last answered (seconds since 1970), how stable it
    is (days), how difficult (1 to 10), and how often it was answered and missed.
    """

    at: float
    stability: float
    difficulty: float
    answers: int = 1
    lapses: int = 0

    def passed(self, now):
        """How many of its stabilities have passed since it was answered."""
        return max(0.0, now - self.at) / DAY / self.stability

    def recall(self, now, pace=1.0):
        """The chance of a right answer now, for a learner of this `pace`."""
        return (1 + FACTOR * self.passed(now) / pace) ** DECAY

    def due(self, target=TARGET, pace=1.0):
        """When that chance will have fallen to the target; never before the next sitting."""
        days = pace * self.stability / FACTOR * (target ** (1 / DECAY) - 1)
        return self.at + max(DAY * days, SITTING)


def _bounded(difficulty):
    return min(10.0, max(1.0, difficulty))


def first(grade, at, harder=0.0):
    """The `Memory` after the first answer; `harder` is added to the difficulty."""
    difficulty = _bounded(WEIGHTS[4] - (grade - 3) * WEIGHTS[5] + harder)
    return Memory(at, WEIGHTS[grade - 1], difficulty, 1, int(grade == WRONG))


def after(memory, grade, at):
    """The `Memory` after one more answer."""
    w, s = WEIGHTS, memory.stability
    lapse = 1 - memory.recall(at)
    if grade == WRONG:
        retention = (s + 1) ** w[13] - 1
        stability = w[11] * memory.difficulty ** -w[12] * retention * math.exp(w[14] * lapse)
        stability = min(s, stability)
    else:
        gain = math.exp(w[8]) * (11 - memory.difficulty) * s ** -w[9]
        gain *= math.expm1(w[10] * lapse) * (w[15] if grade == NEAR else 1)
        stability = s * (1 + gain)
    difficulty = memory.difficulty - w[6] * (grade - 3)
    difficulty = _bounded(w[7] * w[4] + (1 - w[7]) * difficulty)
    lapses = memory.lapses + (grade == WRONG)
    return Memory(at, stability, difficulty, memory.answers + 1, lapses)


def credited(memory, at, share):
    """The `Memory` of a part of a question that was answered right: that share of what an answer
    of its own would have given. Its difficulty and its count of answers stay.

    The clock is turned back, not set to now, so that a part is still asked for by itself.
    """
    full = after(memory, RIGHT, at)
    stability = memory.stability + share * (full.stability - memory.stability)
    return replace(memory, stability=stability, at=memory.at + share * max(0.0, at - memory.at))


# The paces that are tried, from a quarter of the published stabilities to four times them.
PACES = tuple(2 ** (n / 4) for n in range(-8, 9))
PRIOR = 1.0  # the spread of log2 pace among learners, as wide as a factor of two


def pace(past):
    """How long this learner remembers, over what the weights expect: the likeliest pace for `past`
    (stabilities passed, right?), held to 1 by the prior while few.
    """

    def likelihood(pace):
        total = -0.5 * (math.log2(pace) / PRIOR) ** 2
        for interval, right in past:
            recall = (1 + FACTOR * interval / pace) ** DECAY
            total += math.log(recall if right else max(1 - recall, 1e-9))
        return total

    return max(PACES, key=likelihood)
