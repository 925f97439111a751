"""What became of an assignment, one outcome for each student of the roster: what feedback,
export and report tell of.
"""

from __future__ import annotations

from dataclasses import dataclass

from lightspeed_class.gradebook import Result
from lightspeed_class.intake.match_submissions import late
from lightspeed_course.show.format import human_time


@dataclass(frozen=True)
class Outcome:
    """A result and its place in time. `late`: "" or "2 days late", "late" if it is not known by
    how much.
    """

    result: Result
    late: str

    @property
    def status(self):
        """missing, by hand, not graded, refused, or how the program ended: ok, time, memory,
        output, protocol, exit.
        """
        if self.result.grading:
            return self.result.grading.graded.status
        if self.result.submission:
            return "not graded"
        return "missing" if self.result.points is None else "by hand"

    @property
    def at(self):
        """When it was handed in; None if nobody can tell, as the times in archives of Canvas and
        Moodle are those of the download.
        """
        submission = self.result.submission
        marked = submission and late(submission.source, 0.0, None)
        return (
            submission.at
            if submission and not marked and late(submission.source, 1.0, 0.0)
            else None
        )

    def points(self, question):
        """The points that count for a question: those given by hand, else the automatic ones;
        None if there are neither.
        """
        manual, score = self.result.manual.get(question), self.result.scores.get(question)
        if manual and manual.points is not None:
            return manual.points
        return score.points if score else None


def outcomes(book, name):
    """Those of an assignment, by student id. Raises KeyError for an unknown assignment."""
    due = book.setting(f"due {name}")
    return [
        Outcome(r, lateness(r.submission, float(due) if due else None) if r.submission else "")
        for r in book.results(name)
    ]


def outdated(book, *names):
    """A line for each assignment of which somebody's points are those of earlier settings."""
    for name in names:
        if count := sum(r.outdated and not r.student.left for r in book.results(name)):
            yield (
                f"{name}: {count} graded under other points than it has now: lightspeed class"
                f" regrade {name}"
            )


def lateness(submission, due=None):
    """How late a submission is, in words; "" if it is not or nobody can tell. `due` in seconds
    since 1970.
    """
    if late(submission.source, 0.0, None):
        return "late"  # Canvas says so, and its archives do not say by how much
    return (
        f"{human_time(submission.at - due)} late"
        if late(submission.source, submission.at, due)
        else ""
    )


def number(value):
    """Points as people write them: 14, 14.5."""
    return f"{value:.10g}"


def short(question):
    """The name of a question without its topic, as a heading: "What shortens it"."""
    return question.partition(".")[2].replace("_", " ").capitalize()
