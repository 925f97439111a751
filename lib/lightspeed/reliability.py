"""Failures and checkpoints: how often a cluster stops, how often to save, what is lost (chapter 6).

Times in s. `mtbf` is the mean time between failures of the whole job, `write` the time for which a
checkpoint stops the work, `interval` the work between two checkpoints.

Sources: Young, "A first order approximation to the optimum checkpoint interval" (CACM 17(9), 1974);
Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps" (FGCS 22(3),
2006).
"""

from lightspeed.elementwise import INF, Result, Value, exp, expm1, minimum, where
from lightspeed.law import Argument, count, fraction, law, nonnegative, positive

__all__ = (
    "checkpoint_bytes", "cluster_mtbf", "daly_interval", "device_mtbf", "lost_share",
    "observed_mtbf", "straggler_stretch", "stretch", "survival", "young_interval",
)  # fmt: skip

MTBF = positive("s", hint="The MTBF of the whole job: a machine's own is `devices` times as long.")
WRITE = positive(
    "s", hint="The time for which a checkpoint stops the work; a copy in the background costs less."
)
INTERVAL = positive("s")
LONG = 600.0  # MTBFs: beyond, the exponentials leave the range of a double
TIME = nonnegative("s")


# ---------------------------------------------------------------- how often it stops


@law("s", time=positive("s"), failures=count())
def observed_mtbf(time: Value, failures: Value) -> Result:
    """Mean seconds between failures of a job that failed `failures` times in `time` (s).

    >>> round(observed_mtbf(54 * 86400, 419) / 3600, 2)
    3.09
    """
    return time / failures


@law("s", device_mtbf=positive("s"), devices=count())
def cluster_mtbf(device_mtbf: Value, devices: Value) -> Result:
    """Seconds between failures of a job that stops when any of its devices does: failure rates add.

    >>> cluster_mtbf(1e8, 10_000)
    10,000 s
    """
    return device_mtbf / devices


@law("s", mtbf=MTBF, devices=count())
def device_mtbf(mtbf: Value, devices: Value) -> Result:
    """Mean seconds between failures of one device, from that of a job on `devices` devices: the
    inverse of `cluster_mtbf`.

    >>> device_mtbf(10_000.0, 10_000)
    100,000,000 s
    """
    return mtbf * devices


@law(time=TIME, mtbf=MTBF)
def survival(time: Value, mtbf: Value) -> Result:
    """Probability that a job runs for `time` (s) without a failure, with failures independent of
    its age.

    >>> round(survival(3600.0, 3600.0), 3)
    0.368
    """
    return exp(-minimum(time / mtbf, LONG))


# ---------------------------------------------------------------- how often to save


@law("byte", parameters=positive("parameter"), parameter_bytes=positive("byte"))
def checkpoint_bytes(parameters: Value, parameter_bytes: Value = 14) -> Result:
    """Bytes that must be saved: by default 2 of weights, 4 of master weights and 8 of Adam a
    parameter.

    Gradients are not saved: the next step makes new ones.

    >>> checkpoint_bytes(1e9)
    14 GB
    """
    return parameters * parameter_bytes


@law("s", write=WRITE, mtbf=MTBF)
def young_interval(write: Value, mtbf: Value) -> Result:
    """Young's first-order optimum of the work between checkpoints, s: sqrt(2 write mtbf).

    >>> young_interval(50.0, 10_000.0)
    1,000 s
    """
    return (2 * write * mtbf) ** 0.5


@law("s", write=WRITE, mtbf=MTBF)
def daly_interval(write: Value, mtbf: Value) -> Result:
    """Daly's higher-order optimum of the work between checkpoints, s; `mtbf` itself once write >= 2
    mtbf.

    >>> round(daly_interval(5 * 60.0, 1440 * 60.0) / 60)
    117
    """
    root = (write / (2 * mtbf)) ** 0.5
    series = (2 * write * mtbf) ** 0.5 * (1 + root / 3 + root**2 / 9) - write
    return where(write < 2 * mtbf, series, mtbf)


@law(interval=INTERVAL, write=WRITE, mtbf=MTBF, restart=TIME)
def lost_share(interval: Value, write: Value, mtbf: Value, restart: Value = 0.0) -> Result:
    """Time lost per second of work, to first order: writing, plus half an interval redone and the
    restart for each failure.

    At Young's interval, without a restart time, it is sqrt(2 write / mtbf). Good while the losses
    are small.

    >>> lost_share(1000.0, 50.0, 10_000.0)
    0.1
    """
    return write / interval + (interval / 2 + restart) / mtbf


@law(interval=INTERVAL, write=WRITE, mtbf=MTBF, restart=TIME)
def stretch(interval: Value, write: Value, mtbf: Value, restart: Value = 0.0) -> Result:
    """Time of the job over its time without failures or checkpoints, to all orders (Daly 2006).

    Failures strike at a constant rate, also while writing and while restarting. Infinite where an
    interval is so long that no attempt will ever get through it.

    >>> round(stretch(1000.0, 50.0, 10_000.0) - 1, 3)
    0.107
    """
    attempt = (interval + write) / mtbf
    exponent = restart / mtbf + attempt
    finite = mtbf / interval * exp(minimum(exponent, LONG)) * -expm1(-minimum(attempt, LONG))
    return where(exponent < LONG, finite, INF)


# ---------------------------------------------------------------- the slowest rank


@law(
    ranks=count(),
    chance=fraction(),
    slowdown=Argument(
        low=1.0, above=False, hint="1 is as fast as the others, 2 takes twice as long."
    ),
)
def straggler_stretch(ranks: Value, chance: Value, slowdown: Value) -> Result:
    """Mean time of a synchronous step over that of a step without stragglers.

    Each rank is slow in a step with probability `chance`, by the factor `slowdown`; one slow rank
    delays all the others.

    >>> round(straggler_stretch(1000, 0.001, 2.0), 2)
    1.63
    """
    return 1 + (slowdown - 1) * (1 - (1 - chance) ** ranks)
