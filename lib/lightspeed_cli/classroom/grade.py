"""Grade what has no score yet."""

import contextlib
import os
import signal
import sys

from lightspeed_class.listed import listed
from lightspeed_cli.argument_types import count
from lightspeed_cli.classroom.arguments import flag, option
from lightspeed_cli.classroom.common import known, say_changed, say_outdated, say_points, who
from lightspeed_cli.errors import UserError

CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2
WORDS = "grade what has no score yet; after an interruption it goes on"
ARGUMENTS = (
    option(
        "--workers",
        type=count,
        default=CORES,
        metavar="N",
        help="processes at a time (default: %(default)s)",
    ),
    option(
        "--container",
        choices=("podman", "docker"),
        help="run submissions in containers, where bubblewrap does not work",
    ),
    flag("--not-isolated", "grade without a sandbox: submissions can do all that you can do"),
    option("--dask", metavar="ADDRESS", help="grade on this Dask cluster, such as tcp://host:8786"),
)


def run(options, course, book, regrade=False):
    from lightspeed_class.grading.batch import grade_all, print_progress

    name = known(book, options.name)
    if options.container and (options.not_isolated or options.dask):
        raise UserError("--container goes with neither --not-isolated nor --dask")
    say_points(course, book, name)
    with contextlib.ExitStack() as stack:
        isolated = options.container or not options.not_isolated
        workers, cluster = options.workers, None
        stack.enter_context(_stoppable())
        if options.dask:
            from lightspeed_class.grading.cluster import connected

            cluster = stack.enter_context(connected(options.dask, isolated))
            workers = cluster.workers
        tally = grade_all(
            book,
            name,
            workers,
            isolated=isolated,
            progress=print_progress,
            regrade=regrade,
            submit=cluster,
        )
    unreadable = f", of which {tally.unreadable} could not be read" if tally.unreadable else ""
    print(
        f"{name}: {tally.graded} graded in {tally.seconds:.1f} s{unreadable}"
        + ", NOT ISOLATED" * options.not_isolated
        + "."
    )
    if missing := [
        who(r.student)
        for r in book.results(name)
        if not (r.submission or r.excused or r.student.left)
    ]:
        print(f"  nothing from {listed(missing)}")
    say_outdated(book, name)
    if getattr(options, "questions", "released") == "released":
        say_changed(book, name)
    students = {s.id: s.student for s in book.submissions(name)}
    for submission, why in tally.failed.items():
        print(
            f"  not graded: submission {submission} of {students[submission]}: {why}; the next run"
            " tries it again",
            file=sys.stderr,
        )
    return 1 if tally.failed else 0


@contextlib.contextmanager
def _stoppable():
    """The first Ctrl+C stops the work and says so; a second one does not wait for that."""

    def stop(*_):
        signal.signal(signal.SIGINT, lambda *_: os._exit(130))
        # not print(), which may be at work
        os.write(2, b"\nstopping; what is graded is kept, run it again\n")
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is stop:
            signal.signal(signal.SIGINT, before)
