"""Processes of a measurement: fresh ones, the same on every system and in a notebook, and gone
afterwards whatever happens.

They are started by spawn: nothing of the parent gets into them, and no copy of a pipe's end keeps
another one open. The same goes for threads and event loops: a notebook's own do not disturb them.
"""

import contextlib
import multiprocessing
import signal
import time

from lightspeed_tools.measure.instruments.timing import Unavailable

START = 60  # s that a fresh process may take until it is ready
LEAVE = 1.0  # s that all of them together may take to leave by themselves
UNGUARDED = (
    'In a script, measure under `if __name__ == "__main__":`, because each new process reads the'
    " script once more."
)


@contextlib.contextmanager
def crew(*works):
    """Pipes to fresh processes that run work(pipe) for each of `works`, gone when the block is
    left, by Ctrl+C too. Raises Unavailable if they do not start.
    """
    context = multiprocessing.get_context("spawn")
    pipes, processes = [], []
    try:
        for work in works:
            ours, theirs = context.Pipe()
            pipes.append(ours)
            process = context.Process(target=_begin, args=(work, theirs), daemon=True)
            try:
                process.start()
            except (OSError, RuntimeError) as error:
                raise Unavailable(f"No process could be started: {error}.", UNGUARDED) from error
            finally:
                theirs.close()
            processes.append(process)
        for pipe in pipes:
            receive(pipe, START)
        yield pipes
    finally:
        for pipe in pipes:
            pipe.close()
        end = time.monotonic() + LEAVE
        for process in processes:
            process.join(max(0.0, end - time.monotonic()))
            if process.is_alive():
                process.kill()
                process.join()
            process.close()


def receive(pipe, limit):
    """What the process at the other end sends in `limit` seconds. Raises Unavailable."""
    try:
        if not pipe.poll(limit):
            raise Unavailable(
                f"A process did not answer within {limit:.0f} s.",
                "Measure again when the machine is less busy.",
            )
        answer = pipe.recv()
    except (EOFError, OSError) as error:
        raise Unavailable(
            "A process of the measurement ended before it had answered.", UNGUARDED
        ) from error
    if isinstance(answer, Failed):
        raise Unavailable(f"A process of the measurement failed: {answer.args[0]}.")
    return answer


class Failed(Exception):
    """What went wrong in another process, in words."""


def _begin(work, pipe):
    # Ctrl+C reaches the parent, which then ends this process
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        pipe.send("ready")
        work(pipe)
    except (EOFError, BrokenPipeError):  # the parent has gone, or has had enough
        return
    except Exception as error:
        with contextlib.suppress(OSError):
            pipe.send(Failed(f"{type(error).__name__}: {error}"))
