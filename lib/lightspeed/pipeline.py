"""The pipeline's bubble in closed form: GPUs that wait while a step fills and drains the stages
(chapter 6).

`stages` (p) counts GPUs in the pipeline, `micro_batches` (m) what a step is cut into, `chunks` (v)
the pieces of the model that each GPU holds. Stages and passes are taken as equal; schedules of any
others are run by `lightspeed_models.simulators.schedules`.

Sources: Huang et al., GPipe (2019); Narayanan et al. (2019, 2021) for 1F1B and interleaving; Qi et
al., Zero Bubble Pipeline Parallelism (2023).
"""

from lightspeed.elementwise import Result, Value, any_of
from lightspeed.errors import BadArgument
from lightspeed.law import checked, count, law, positive

__all__ = (
    "bubble_over_ideal", "bubble_over_total", "shared_slot_utilization", "zero_bubble_over_ideal",
)  # fmt: skip

STAGES = count(hint="Stages are GPUs in one pipeline.")
MICRO_BATCHES = count(
    hint="How many micro-batches a step is cut into, not how many samples are in one."
)
CHUNKS = count(hint="Chunks of the model on each GPU: 1 unless interleaved.")


def _divisible(law: str, stages: Value, micro_batches: Value, chunks: Value) -> None:
    if any_of((chunks > 1) & (micro_batches % stages > 0)):
        raise BadArgument(
            law, "micro_batches", micro_batches, "a multiple of the stages where chunks > 1",
            "An interleaved pipeline goes round in groups of as many micro-batches as stages.",
        )  # fmt: skip


@law(stages=STAGES, micro_batches=MICRO_BATCHES, chunks=CHUNKS)
def bubble_over_total(stages: Value, micro_batches: Value, chunks: Value = 1) -> Result:
    """The pipeline bubble: idle share of the whole step, for GPipe, 1F1B and (chunks > 1)
    interleaved 1F1B: (p - 1) / (v m + p - 1). Interleaving goes round in groups of p micro-batches,
    so p divides m.

    >>> round(bubble_over_total(4, 4), 3)
    0.429
    """
    _divisible("bubble_over_total", stages, micro_batches, chunks)
    return (stages - 1) / (chunks * micro_batches + stages - 1)


@law(stages=STAGES, micro_batches=MICRO_BATCHES, chunks=CHUNKS)
def bubble_over_ideal(stages: Value, micro_batches: Value, chunks: Value = 1) -> Result:
    """Idle time over the time of a step without idle time: (p - 1) / (v m). The same bubble as
    `bubble_over_total` with another denominator; here v divides the bubble.

    >>> bubble_over_ideal(4, 4)
    0.75
    """
    _divisible("bubble_over_ideal", stages, micro_batches, chunks)
    return (stages - 1) / (chunks * micro_batches)


@law(
    stages=STAGES,
    micro_batches=MICRO_BATCHES,
    forward=positive("s"),
    backward=positive("s"),
    weight=positive("s"),
)
def zero_bubble_over_ideal(
    stages: Value, micro_batches: Value, forward: Value, backward: Value, weight: Value
) -> Result:
    """Idle over ideal time of schedule zb_h1, times of one pass in s, with `backward` the input
    gradient alone.

    Weight gradients fill what 1F1B leaves idle: (p - 1)(F + B - W) in place of (p - 1)(F + B + W).
    Exact for F = B = W; for others it is the authors' estimate. It takes m >= p: with fewer there
    are not enough weight gradients to fill the gaps.

    >>> zero_bubble_over_ideal(4, 4, 1.0, 1.0, 1.0)
    0.25
    """
    if any_of(micro_batches < stages):
        raise BadArgument(
            "zero_bubble_over_ideal", "micro_batches", micro_batches, "at least the stages",
            "Fewer do not fill the gaps: run `simulate(\"zb_h1\", ...)`.",
        )  # fmt: skip
    return (
        (stages - 1)
        * (forward + backward - weight)
        / (micro_batches * (forward + backward + weight))
    )


def shared_slot_utilization(stages: int, micro_batches: int) -> tuple[float, ...]:
    """Share of busy GPUs per step if a GPU could do a forward and a backward pass in one step.

    No GPU can. This is the count of a published table of ten steps, which the gallery of chapter 6
    rebuts.

    >>> [round(100 * u) for u in shared_slot_utilization(4, 4)]
    [25, 50, 75, 100, 75, 75, 100, 75, 50, 25]
    """
    this = "shared_slot_utilization"
    p = int(checked(this, "stages", stages, STAGES))
    m = int(checked(this, "micro_batches", micro_batches, MICRO_BATCHES))
    steps = range(m + 2 * (p - 1))
    # Stage i sees micro-batch k go forward in step i + k and come back in step k + 2 (p - 1) - i.
    busy = [sum(0 <= t - i < m or 0 <= t - 2 * (p - 1) + i < m for i in range(p)) for t in steps]
    return tuple(b / p for b in busy)
