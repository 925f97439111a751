"""Do requests come at random? Traces of services, and one made up for a benchmark, against what
Poisson arrivals would do.
"""

from __future__ import annotations

import numpy as np

from lightspeed.queueing import mmc
from lightspeed_models.evidence.pairing import Judged, Pairing
from lightspeed_models.evidence.word_column import Words
from lightspeed_models.simulators.queue_simulation import simulate

BLOCK = 500  # requests: a few minutes, in which a rate can be said to hold
SERVERS, UTILIZATION = 4, 0.7


def gaps(times):
    """Seconds between requests, times in any order."""
    return np.diff(np.sort(times))


def variation(times):
    """Standard deviation over mean of the gaps: 1 if requests come at random (Poisson)."""
    between = gaps(times)
    return float(between.std() / between.mean())


def blocks(rows):
    """(trace, number, times from 0) of each run of `BLOCK` requests of a trace."""
    for trace in rows["trace"].present():
        times = np.sort(rows["time"][rows["trace"] == trace])
        for i in range(len(times) // BLOCK):
            part = times[i * BLOCK : (i + 1) * BLOCK]
            if part[-1] > part[0]:
                yield trace, i, part - part[0]


def waits(rows):
    """The mean wait of M/M/c beside that of the same queue fed by the trace.

    The service is the model's own (exponential, so that rho is `UTILIZATION` at the block's own
    rate); only the arrivals are the trace's. What differs is the burstiness.
    """
    rng = np.random.default_rng(12)
    parts = []
    for trace, i, times in blocks(rows):
        rate = (BLOCK - 1) / times[-1]
        service = UTILIZATION * SERVERS / rate
        # Several draws: the wait of 500 requests varies by itself.
        draws = [rng.exponential(service, BLOCK) for _ in range(5)]
        measured = np.mean([simulate(times, each, SERVERS).waiting.mean() for each in draws])
        name = f"{trace}, requests {i * BLOCK:,} to {(i + 1) * BLOCK:,}"
        parts.append((float(mmc(rate, 1 / service, SERVERS).Wq), measured, trace, name))
    predicted, measured, traces, names = zip(*parts, strict=True)
    return Judged(np.array(predicted), np.array(measured), Words.of(traces), names.__getitem__)


PAIRINGS = (
    Pairing(
        key="poisson-waits",
        title="The wait of M/M/c on the arrivals of traces",
        law="lightspeed.queueing.mmc",
        set="arrivals",
        chapter="04",
        quantity="mean wait",
        unit="s",
        judge=waits,
        fitted="the rate of each block of 500 requests is given, as the law needs it",
        lesson="chat comes nearly at random; code completion comes in bursts",
    ),
)
