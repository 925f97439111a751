"""Grading many: a pool of processes, each with one sandbox at a time, and a gradebook that only
this process writes.

A worker that is killed costs nothing but time: what it was at is tried again, alone. A submission
that cannot be graded is named, stays without a grading, and does not stop the others. Ctrl+C stops
the workers and their sandboxes at once, and raises KeyboardInterrupt; what is graded is kept.
"""

import contextlib
import ctypes
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    Future,
    ProcessPoolExecutor,
    wait,
)
from dataclasses import asdict, dataclass
from multiprocessing import resource_tracker
from multiprocessing.process import BaseProcess
from typing import Any

from lightspeed_class.gradebook.book import Gradebook
from lightspeed_class.gradebook.records import Submission
from lightspeed_class.grading.grade import (
    environment,
    grade,
    grader,
    identity,
    refused,
    repriced,
)
from lightspeed_class.grading.sandbox import Limits, door, ready
from lightspeed_class.intake.origins import Origins
from lightspeed_class.kept_questions import KeptQuestions
from lightspeed_class.notebooks import Assignment
from lightspeed_class.score import Graded, fingerprint

GRACE = 3  # seconds for a worker to close its sandbox before it is killed
# jobs for each worker that are handed out at a time, so that memory does not grow with the class
AHEAD = 2
WORK = 32  # characters of a key that say what was run; the rest is of the points
_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG


@dataclass(frozen=True)
class Tally:
    """The result of a run; `failed`: submission id -> reason; `unreadable` got no points."""

    graded: int
    failed: dict[int, str]
    seconds: float
    unreadable: int = 0


def job(
    content: bytes,
    assignment: Assignment,
    seed: str | None,
    secret: str,
    limits: Limits,
    isolated: bool | str,
    data: Any,
) -> Graded:
    """Grade one submission, in a worker."""
    try:
        return grade(content, assignment, seed, secret, limits, isolated, data)
    except SystemExit:  # of _stop(); the pool would keep it for a result and hand out the next one
        os._exit(1)


def _handed_out(
    pool: Any, book: Gradebook, submission: Submission, origins: Origins, archive: KeptQuestions,
    limits: Limits, isolated: bool,
) -> Future[Graded]:  # fmt: skip
    """The job of a submission, on its way to a worker."""
    content = book.content(submission.id)
    seed, assignment = origins.seed(submission.student, content), archive.assignment(submission)
    data = archive.data(submission, seed)
    future: Future[Graded]
    future = pool.submit(job, content, assignment, seed, book.secret, limits, isolated, data)
    return future


def grade_all(
    book: Gradebook,
    name: str,
    workers: int = 2,
    limits: Limits | None = None,
    isolated: bool = True,
    progress: Callable[[int, int, float], object] | None = None,
    regrade: bool = False,
    label: str = "",
    submit: Any = None,
) -> Tally:
    """Grade the ungraded submissions of an assignment; after a crash, another call continues.

    `regrade`: also submissions graded under another key; with a new `label`, all submissions.
    `submit`: an object with submit(function, *arguments) -> Future, used in place of a pool of
    `workers` processes.
    """
    start, limits, failed = time.monotonic(), limits or Limits(), {}
    ready(isolated)
    origins, archive = Origins(book, name), KeptQuestions(book, name)
    corrected = book.setting(f"corrected {name}") or ""
    key = " ".join([
        key_of(archive.assignment(), book.secret, limits, isolated, book.kinds(name), corrected),
        *label.split(),
    ])  # fmt: skip
    todo = book.pending(name, key if regrade else None)
    count = unreadable = 0

    def keep(submission: Submission, grading: Graded) -> None:
        nonlocal count, unreadable
        book.add_grading(submission.id, key, grading)
        count += 1
        unreadable += grading.status == "refused"
        if progress:
            progress(count, len(todo), (time.monotonic() - start) / count * (len(todo) - count))

    def hand_out(pool: Any, submission: Submission) -> Future[Graded]:
        return _handed_out(pool, book, submission, origins, archive, limits, isolated)

    def take(submission: Submission, future: Future[Graded]) -> None:
        # the grader's own: the student is not to blame, and nothing is kept
        if error := future.exception():
            failed[submission.id] = f"{type(error).__name__}: {error}"
        elif (grading := future.result()).late and workers > 1 and not again:
            late.append(submission)
        else:
            keep(submission, grading)

    queue: deque[Submission] = deque()
    again = False
    late: list[Submission] = []

    def retry(submission: Submission) -> None:
        with _pool(1) as alone:
            if _run(alone, deque([submission]), hand_out, take, 1):
                failed[submission.id] = (
                    "The worker was killed while it was at it, and so was a second one."
                )

    for submission in todo:
        if submission.refused:
            keep(submission, refused(submission.refused, archive.assignment(submission)))
        elif same := [] if label else _same_but_for_points(book, submission, key):
            keep(submission, repriced(same[-1], archive.assignment(submission)))
        else:
            queue.append(submission)
    # What waited for a busy machine gets a second turn, when the others are done.
    for again, ahead in ((False, AHEAD * workers), (True, workers)):
        queue = deque(late) if again else queue
        while queue:
            with contextlib.nullcontext(submit) if submit else _pool(workers) as pool:
                suspects = _run(pool, queue, hand_out, take, ahead)
            for submission in suspects:
                retry(submission)
    return Tally(count, failed, time.monotonic() - start, unreadable)


def _run(
    pool: Any,
    queue: deque[Submission],
    hand_out: Callable[[Any, Submission], Future[Graded]],
    take: Callable[[Submission, Future[Graded]], None],
    ahead: int,
) -> list[Submission]:
    """Work off the queue; when the pool breaks, stop and give those that it was at."""
    running: dict[Future[Graded], Submission] = {}
    suspects = []
    while queue or running:
        try:
            while queue and len(running) < ahead:
                with _without_interrupts():
                    running[hand_out(pool, queue[0])] = queue[0]
                queue.popleft()
        except BrokenExecutor:
            if not running:
                break
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            submission = running.pop(future)
            if isinstance(future.exception(), BrokenExecutor):
                suspects.append(submission)
            else:
                take(submission, future)
    return suspects


@contextlib.contextmanager
def _pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    """Worker processes. Where the block is left by an exception, as by Ctrl+C, they end at once."""
    before = multiprocessing.active_children()
    # nothing of the gradebook's open file gets into a worker
    context = multiprocessing.get_context("spawn")
    resource_tracker.ensure_running()  # not with the first worker: it lets interrupts through again
    pool = ProcessPoolExecutor(workers, context, _begin, (os.getpid(),))
    try:
        yield pool
    except BaseException:
        _end([p for p in multiprocessing.active_children() if p not in before])
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown()


def _end(workers: Iterable[BaseProcess]) -> None:
    """Stop these processes, each of which closes its sandbox; what does not listen is killed."""
    for worker in workers:
        worker.terminate()
    until = time.monotonic() + GRACE
    for worker in workers:
        worker.join(max(0, until - time.monotonic()))
        worker.kill()


@contextlib.contextmanager
def _without_interrupts() -> Iterator[None]:
    """Ctrl+C, which a terminal sends to all processes, waits for the end of this block; workers
    begun in it never get one.

    The mask is what a worker inherits. It does not keep the signal from this process, though:
    any other thread, such as one of numpy's, may take it, and Python then runs its handler here.
    Half of a worker's start would be written, and the worker would complain of the other half.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # interrupts are for the main thread
        return
    came = []
    handler = signal.signal(signal.SIGINT, lambda *what: came.append(what))
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        signal.signal(signal.SIGINT, handler)
        if came and callable(handler):
            handler(*came[0])


def _begin(parent: int) -> None:
    """A worker does not outlive the grader, even a killed one, nor its sandbox the worker."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    signal.signal(signal.SIGTERM, _stop)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
        if os.getppid() != parent:  # it went before we could ask
            os._exit(1)


def _stop(*_: Any) -> None:
    """Leave, by way of every `with`; once is enough."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise SystemExit


def _same_but_for_points(book: Gradebook, submission: Submission, key: str) -> list[Graded]:
    """Its gradings that everything but the points of the questions was the same for."""
    return [
        g.graded
        for g in book.gradings(submission.id)
        if g.key[:WORK] == key[:WORK] and len(g.key) == len(key)
    ]


def key_of(
    assignment: Assignment,
    secret: str,
    limits: Limits,
    isolated: bool | str,
    kinds: Iterable[str],
    corrected: str = "",
) -> str:
    """Hash what decides the scores, as two hashes in one: of the work, and of each question's
    points; `kinds`: the kinds released, since with both the notebook decides; `corrected`: the
    questions corrected since.
    """
    work = [
        assignment.name,
        assignment.cells,
        list(assignment.points),
        secret,
        asdict(limits),
        isolated,
        sorted(kinds),
        grader(),
        environment(),
        *[corrected] * bool(corrected),
    ]
    return fingerprint(work)[:WORK] + fingerprint(assignment.points)[:WORK]


def print_progress(count: int, total: int, seconds: float) -> None:
    """Print progress on one line; one line per tenth if the output is not a terminal."""
    terminal = sys.stderr.isatty()
    if terminal or count == total or count * 10 // total > (count - 1) * 10 // total:
        remaining = (
            f"about {seconds / 60:.0f} min left" if seconds >= 90 else f"about {seconds:.0f} s left"
        )
        remaining += ", more if one runs out of time"
        text = f"graded {count} of {total}, {remaining if count < total else 'done'}"
        print(
            f"\r{text:<70}" if terminal else text,
            end="" if terminal and count < total else "\n",
            file=sys.stderr,
            flush=True,
        )


def replay(book: Gradebook, id: int) -> tuple[bool, Graded, Graded, list[str]]:
    """Grade again under the same points: return (same?, before, after, parts that differ)."""
    (grading,) = book.gradings(id=id)
    before = grading.graded
    (submission,) = [s for s in book.submissions() if s.id == grading.submission]
    archive, seed = KeptQuestions(book, submission.assignment), before.record.get("seed")
    assignment = _asked(book, archive, submission, before)
    if submission.refused:
        after = refused(submission.refused, assignment)
    else:
        limits = Limits(**before.record["limits"])
        isolated = door(before.record["isolation"])
        after = grade(
            book.content(submission.id),
            assignment,
            seed,
            book.secret,
            limits,
            isolated,
            archive.data(submission, seed, grading.at),
        )
    differ = [name for name in after.record if after.record[name] != before.record.get(name)]
    return before.digest == after.digest, before, after, differ


def _asked(
    book: Gradebook, archive: KeptQuestions, submission: Submission, result: Graded
) -> Assignment:
    """What a grading judged, for the points of then: what the submission's release asked or, in a
    class that named no versions, what was the assignment then.
    """
    digest, points = result.record.get("assignment"), {s.question: s.out_of for s in result.scores}
    task: Assignment = archive.assignment(submission)
    candidates = [
        Assignment(task.name, task.cells, points, task.prose),
        *book.versions(submission.assignment),
    ]
    return next(
        (v for v in candidates if (identity(v) == digest if digest else v.points == points)), task
    )
