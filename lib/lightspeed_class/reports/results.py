"""What became of an assignment, an outcome for each student: for feedback, export and report."""

from dataclasses import dataclass

from lightspeed_class.gradebook.records import Result
from lightspeed_class.lateness import late
from lightspeed_class.score import BY_HAND, number
from lightspeed_show.format import human_time


@dataclass(frozen=True)
class Outcome:
    """A result and its time. `late`: "", "2 days late", or "late" by an unknown time."""

    result: Result

    @property
    def late(self):
        seconds = self.result.lateness.seconds
        if seconds is None:
            return "late"  # Canvas says so, and its archives do not say by how much
        return f"{human_time(seconds)} late" if seconds else ""

    @property
    def cost(self):
        """The cost of lateness, in words; "" if nothing."""
        days, off = self.result.lateness.spent, self.result.off
        return ", ".join(
            [f"{days} late {'day' if days == 1 else 'days'} used"] * bool(days)
            + [f"{number(off)} {'point' if off == 1 else 'points'} off"] * bool(off)
        )

    @property
    def status(self):
        """The status: excused, missing, by hand, not graded, refused, or how the program ended: ok,
        time, memory, output, protocol, exit.
        """
        if self.result.excused:
            return "excused"
        if self.result.grading:
            return self.result.grading.graded.status
        if self.result.submission:
            return "not graded"
        return "missing" if self.result.points is None else "by hand"

    @property
    def at(self):
        """When it was handed in; None if unknown, as in archives of Canvas and Moodle."""
        submission = self.result.submission
        clock = submission and late(submission.source, 0.0, None)
        return (
            submission.at
            if submission and not clock and late(submission.source, 1.0, 0.0)
            else None
        )

    def points(self, question):
        """Return the points that count for a question: manual, else automatic; or None."""
        manual, score = self.result.manual.get(question), self.result.scores.get(question)
        if manual and manual.points is not None:
            return manual.points
        return score.points if score and score.kind != BY_HAND else None


def outcomes(book, name, section=""):
    """Return student id -> outcome, of all or of a section. Raises KeyError for an unknown name."""
    return [Outcome(r) for r in book.results(name, section=section)]


def outdated(book, *names):
    """Return a line for each assignment with points from earlier settings."""
    for name in names:
        if count := sum(r.outdated and not r.student.left for r in book.results(name)):
            yield (
                f"{name}: {count} graded under other points than it has now: lightspeed class"
                f" regrade {name}"
            )


def to_mark(questions):
    """Return how many questions are unmarked, in words; "" if none."""
    count = len(questions)
    return f"{count} question{'s' * (count > 1)} not marked yet" if count else ""


def said(entry):
    """Describe a manual entry in words."""
    if entry.undoes:
        return "the entry before undone"
    comment = "a comment" if entry.comment.strip() else ""
    text = ""
    if entry.points is not None:
        text = f"{number(entry.points)} {'point' if entry.points == 1 else 'points'} by hand"
    elif entry.items:
        text = f"{len(entry.items)} rubric item{'s' * (len(entry.items) > 1)}"
    return text or comment or "by hand: taken back"
