"""The score of an incident: cause, fix, and what was paid for knowing, beside what the policy pays
that is cheapest over all causes. In one incident luck may pay less.

A purchase is wrong if nothing that was still possible would have shown anything else. Suspects that
were ruled out earn up to READING, if the cause that was named is not among them. Naming the right
cause earns its points in full when no other is left, and a share of them where others are: who
guesses gets what a guess is worth, and nothing for its cost.
A gain of the fix that was said earns up to GAIN back of what purchases lost, if it is the
simulator's to within NEAR.
"""

from dataclasses import dataclass

from lightspeed_course.incidents import policy

READING, CAUSE, FIX, COST, WRONG = 20, 30, 20, 30, 5
GAIN, NEAR = 10, 0.1
# Cause -> the lesson that teaches it, its page and the section.
TAUGHT = {
    "slow_nic": ("8", "08_network", "Why does everybody wait?"),
    "numa": ("7", "07_nccl_bandwidth", "Which wire?"),
    "tensor_over_network": ("6.2", "06_parallelism_2_sent", "Who should sit next to whom?"),
    "straggler": ("6.3", "06_parallelism_3_waits", "Who waits for the last rank?"),
    "throttling": ("6.3", "06_parallelism_3_waits", "Who waits for the last rank?"),
    "padding": ("3", "03_amdahl_gustafson", "The job: tomorrow?"),
    "recompute": ("6.1", "06_parallelism", "What does a token leave behind?"),
    "sparse_peak": ("1", "01_numbers_to_know", "Which number is yours?"),
    "narrow_plan": ("5", "05_precision", "Is it four times as fast?"),
    "bursty_arrivals": ("4", "04_littles_law", "Why latency explodes"),
    "more_traffic": ("4", "04_littles_law", "Why latency explodes"),
    "longer_answers": ("4", "04_littles_law", "One law without assumptions"),
    "mixed_lengths": ("4", "04_littles_law", "What about the slowest, and the longest?"),
    "replica_down": ("4", "04_littles_law", "More servers, one queue"),
    "few_blocks": ("9", "09_serving", "Why does a first token suddenly take ten times as long?"),
    "no_prefixes": ("9", "09_serving", "Must every prompt be read?"),
    "large_chunk": ("9", "09_serving", "What happens when somebody new comes?"),
    "slow_rank": ("9", "09_serving", "What does a step cost?"),
    "lost_drafts": ("9", "09_serving", "Can a step give more than one token?"),
}


@dataclass(frozen=True)
class Score:
    """The result of an incident; minutes are those paid, and the policy's."""

    cause: bool
    fix: bool
    proved: bool
    minutes: int
    best: int
    wrong: tuple[str, ...]
    gain: bool = False
    left: int = 1  # causes that the readings leave, and of how many; 0 if they rule out the named
    suspects: int = 2  # before anything was bought
    part: bool = False  # the cause that was named is one of the two

    @property
    def points(self):
        """Points out of 100."""
        if not self.left:
            return 0
        reading = READING * (self.suspects - self.left) / (self.suspects - 1)
        if not self.cause:
            return round(reading + CAUSE / 2 * self.part / self.left)
        # who paid nothing has proved nothing
        cost = COST * min(1.0, self.best / self.minutes) if self.proved else 0.0
        earned = max(0.0, cost - WRONG * len(self.wrong)) + GAIN * self.gain
        if not self.proved:
            return round(reading + (CAUSE + FIX * self.fix) / self.left)
        return round(reading + CAUSE + FIX * self.fix + min(COST, earned))


def score(incident, purchases, cause, fix, gain=None):
    """Return the `Score` of purchases in order, cause and fix (a cause's id), and the claimed gain
    of the fix. Raises UnknownChoice.
    """
    for id in purchases:
        incident.named("measurements", id)
    for id in (cause, fix):
        incident.named("causes", id)
    purchases = list(dict.fromkeys(purchases))
    findings = policy.opening_findings(incident)
    start = policy.consistent(incident.setting.id, frozenset(findings.items()))
    wrong = []
    for id in purchases:
        numbers = policy.consistent(incident.setting.id, frozenset(findings.items()))
        if len(policy.split(incident.setting.id, numbers, id)) <= 1:
            wrong.append(id)
        findings[id] = incident.findings[id]
    best, _ = policy.solve(incident)
    left = policy.causes(
        incident.setting.id, policy.consistent(incident.setting.id, frozenset(findings.items()))
    )
    return Score(
        cause == incident.cause.id,
        fix == incident.cause.id,
        policy.verdict(incident.setting.id, findings)[1],
        incident.minutes(purchases),
        incident.minutes(best),
        tuple(wrong),
        gain is not None and abs(gain / incident.gain - 1) <= NEAR,
        len(left) if cause in left else 0,
        len(policy.causes(incident.setting.id, start)),
        cause in {part.id for part in incident.cause.parts},
    )


def _effect(incident, fix):
    """What the fix of a cause does to the job, in words."""
    pace = incident.setting.pace
    gain = pace(incident.setting.cause(fix).mend(incident.job)) / pace(incident.job)
    if fix == incident.cause.id:
        return "is the right one"
    if fix in {part.id for part in incident.cause.parts}:
        return f"mends a part: {gain:.2f} times, and the other fault stays"
    return "also mends what was not broken" if gain == incident.gain > 1 else "leaves it"


def debrief(incident, purchases, cause, fix, gain=None):
    """Return (score, debriefing text)."""
    s = score(incident, purchases, cause, fix, gain)
    best, _ = policy.solve(incident)
    names = {m.id: m.name for m in incident.setting.measurements}

    def path(ids, wrong=()):
        return "".join(
            f"\n- {names[id]} ({incident.setting.measurement(id).price} min):"
            f" {incident.findings[id]}"
            + "; nothing that was possible would have shown anything else"
            * (id in wrong)
            for id in ids
        )

    lines = [
        f"**{'Solved.' if s.cause else 'Not solved.'}** {incident.cause.name}"
        + f" You named: {incident.setting.cause(cause).name}" * (not s.cause)
    ]
    if not s.cause:
        for fault in (each for each in incident.cause.faults if each.id != cause):
            lesson, page, section = TAUGHT[fault.id]
            place = f"{page}.ipynb#{section.replace(' ', '-')}"
            lines.append(f"[Lesson {lesson}]({place}) has what tells it from others: *{section}*")
    lines.append(f"Your fix {_effect(incident, fix)}. The fix: {incident.cause.fix}")
    guess = "" if gain is None else f" You said {gain:.2f}{', which is near.' if s.gain else '.'}"
    lines.append(
        f"What it gains: {incident.gain:.2f} times {incident.setting.paced}, by the"
        f" simulator.{guess}"
    )
    if s.cause and not s.proved:
        lines.append("What you bought left another cause possible: this was a guess.")
    lines.append(
        f"**{s.points} of 100.** You paid {s.minutes} min. The policy that is cheapest on average"
        f" over all causes pays {s.best} here."
    )
    if purchases:
        lines.append(f"What you bought:\n{path(dict.fromkeys(purchases), s.wrong)}")
    lines.append(f"What the policy buys:\n{path(best)}")
    return s, "\n\n".join(lines)
