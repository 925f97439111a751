"""Grading on a Dask cluster that is there already: the same work, sent to its workers instead of to
processes here.

    with connected("tcp://10.0.0.5:8786") as cluster:
        grade_all(book, "02_roofline", workers=cluster.workers, submit=cluster)

Every worker must have bubblewrap and this version of the course, Python and packages; all are asked
before the batch, and each again with every job, so that one that joins later cannot give other
marks. A worker runs one sandbox at a time, however many threads it has: start them with `dask
worker ADDRESS --nworkers N --nthreads 1`.

A submission cannot take its worker down, which only waits for the sandbox; the machine may. Dask
then gives what that worker was at to another one, until `distributed.scheduler.allowed-failures`
workers (3, by default) have gone with it: then it is `failed`, has no grading, and the next run
tries it again. Nothing that raised an error is repeated. While no worker is left, the batch waits
for one.

Between the grader and the workers go, as Dask's messages, the notebook's bytes, the assignment, the
class's secret and the scores, which our code made from checked JSON; no object of a submission is
ever pickled or unpickled. But Dask asks for no password: whoever reaches the scheduler can read
these and run code on it, so it belongs on a closed network, or behind TLS (an address tls://...,
and the certificates in Dask's own configuration).
"""

from __future__ import annotations

import contextlib
import platform
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from importlib.metadata import version
from typing import Any

from lightspeed_class.grading.grade import environment, grader
from lightspeed_class.grading.sandbox import NoSandbox, available

PATIENCE = 10  # seconds for the scheduler to answer
INSTALL = (
    "Grading on a cluster needs Dask: pip install distributed; in a checkout of the course,"
    " pip install '.[dask]'"
)
# the limit of processes holds for a user, and a worker's sandboxes are of one
_alone = threading.Lock()


class NoCluster(RuntimeError):
    """The cluster is unusable or lost; the message says why, and what to fix."""


@contextlib.contextmanager
def connected(address: str, isolated: bool = True) -> Iterator[Cluster]:
    """Connect to the scheduler, check every worker, and return a `submit=` for batch.grade_all.
    Raises NoCluster, also during the batch if the scheduler is lost; finished gradings are kept.
    """
    try:
        from distributed import Client
    except ImportError:
        raise NoCluster(INSTALL) from None
    try:
        client = Client(address, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise NoCluster(
            f"No Dask scheduler answers at {address}: {str(error) or type(error).__name__}. An"
            " address is like tcp://10.0.0.5:8786."
        ) from None
    try:
        needs = about(isolated)
        answers = client.run(about, isolated, on_error="return")
        if not answers:
            raise NoCluster(
                f"The cluster at {address} has no workers. Start some: dask worker {address}"
                " --nthreads 1"
            )
        faults = [
            f"Worker {worker}: {fault}"
            for worker, it in sorted(answers.items())
            if (fault := unfit(needs, it))
        ]
        if faults:
            raise NoCluster("\n".join(faults))
        yield Cluster(client, needs, isolated, len(answers))
    finally:
        client.close()


class Cluster:
    """The executor that batch.grade_all submits jobs to. `workers`: their number at the start."""

    def __init__(self, client: Any, needs: dict[str, str], isolated: bool, workers: int) -> None:
        self._client, self._wanted, self._isolated, self.workers = client, needs, isolated, workers
        self._pool = client.get_executor(pure=False, retries=0)

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        if self._client.status != "running":
            raise NoCluster(
                "The scheduler of the cluster has gone. What is graded is kept; run the batch"
                " again."
            )
        outcome: Future[Any] = Future()
        self._pool.submit(
            checked, self._wanted, self._isolated, function, *arguments
        ).add_done_callback(lambda task: _pass_on(task, outcome))
        return outcome


def checked(
    needs: dict[str, str], isolated: bool, function: Callable[..., Any], *arguments: Any
) -> Any:
    """Run the job on a worker that may have joined after the check of the others."""
    if fault := unfit(needs, about(isolated)):
        raise NoCluster(f"A worker on {platform.node()}: {fault}")
    with _alone:
        return function(*arguments)


def about(isolated: bool) -> dict[str, str]:
    """Return what a worker and the grader must share; `sandbox`: what prevents it, or nothing."""
    sandbox = ""
    if isolated:
        try:
            available()
        except NoSandbox as missing:
            sandbox = str(missing)
    return {
        "lightspeed": version("speed-of-light"),
        "grader": grader(),
        **environment(),
        "sandbox": sandbox,
    }


def unfit(needs: dict[str, str], answer: Any) -> str:
    """Return why a worker cannot grade, or ""; `answer`: about()'s result or exception."""
    if isinstance(answer, ImportError):
        return f"it cannot import the course ({answer}). Install the same version of it there."
    if isinstance(answer, Exception):
        return f"it did not say what it has: {type(answer).__name__}: {answer}"
    if answer["sandbox"]:
        return str(answer["sandbox"])
    for name, value in needs.items():
        if answer.get(name) != value:
            what = (
                "the grader's code differs from the one here"
                if name == "grader"
                else f"{name} is {answer.get(name)}, here it is {value}"
            )
            return f"{what}. Install the same version of everything there."
    return ""


def _pass_on(task: Any, outcome: Future[Any]) -> None:
    """A lost connection cancels Dask's futures; for the batch that is an error like others."""
    if task.cancelled():
        outcome.set_exception(NoCluster("The connection to the cluster was lost."))
    elif error := task.exception():
        outcome.set_exception(error)
    else:
        outcome.set_result(task.result())
