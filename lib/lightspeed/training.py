"""Training: FLOPs, days and how much of the peak was used. Derived in chapter 3.

Two utilizations are kept apart: `mfu` counts the FLOPs that the model needs, `hfu` also those
that the hardware did twice. `peak` is dense and per chip, in FLOP/s: name it, and how the scores of
attention are counted (`COUNTS`), wherever you print one. At long sequences the same run is at 19,
42 or 65 %.

Sources: Kaplan et al. (2020) for 6 P D; Narayanan et al. (2021) for the count with attention and
logits; Chowdhery et al., "PaLM" (2022), appendix B, for MFU and HFU; McCandlish et al., "An
Empirical Model of Large-Batch Training" (2018) for the price of a large batch; Jordan et al.,
"Muon: An optimizer for hidden layers in neural networks" (2024).
"""

from lightspeed.elementwise import Result, Value, maximum, minimum
from lightspeed.law import Argument, count, fraction, law, nonnegative, positive
from lightspeed.roofline import PEAK

__all__ = (
    "hfu", "mfu", "newton_schulz_flops", "samples_to_target", "score_flops",
    "training_flops", "training_time", "transformer_training_flops",
)  # fmt: skip

UTILIZATION = Argument(
    high=1.0, hint="A utilization is a share of the peak, above 0 and at most 1: 40 % is 0.4."
)
RECOMPUTED = fraction(hint="1 repeats the whole forward pass in the backward pass, 0 none of it.")
PARAMETERS, TOKENS = positive("parameter"), positive("token")
RUN = {
    "parameters": PARAMETERS,
    "tokens": TOKENS,
    "time": positive("s"),
    "n": count(),
    "peak": PEAK,
    "scores": nonnegative("FLOP/token", hint="Of a token over all layers: `score_flops`."),
}
# The share of a sequence's square of scores that an MFU counts. "6PD" counts none (Kaplan et al.,
# many a script), "causal" those that a causal mask leaves (Megatron-Bridge, Lingua), "square" all
# (PaLM, torchtitan, OLMo-core, LLM Foundry).
COUNTS = {"6PD": 0.0, "causal": 0.5, "square": 1.0}


@law("FLOP", parameters=PARAMETERS, tokens=TOKENS, recomputed=RECOMPUTED)
def training_flops(parameters: Value, tokens: Value, recomputed: Value = 0.0) -> Result:
    """FLOPs to train on `tokens`: per parameter and token 2 forward, 4 backward, and 2 for a
    repeated forward pass.

    `recomputed` is the share of the forward pass that the backward pass repeats. 6 P D leaves out
    attention scores, a few per cent for short sequences.

    >>> training_flops(70e9, 15e12)
    6,300 ZFLOP
    """
    return (6 + 2 * recomputed) * parameters * tokens


SHAPE = {"layers": count(), "width": count(), "vocabulary": count(), "sequence": count()}


@law("FLOP", tokens=TOKENS, recomputed=RECOMPUTED, **SHAPE)
def transformer_training_flops(
    tokens: Value,
    layers: Value,
    width: Value,
    vocabulary: Value,
    sequence: Value,
    recomputed: Value = 0.0,
) -> Result:
    """FLOPs to train a GPT of this shape, logits and the whole square of attention scores included
    (Narayanan et al. 2021).

    >>> round(transformer_training_flops(3e11, 96, 12288, 51200, 2048) / 1e23, 2)
    3.23
    """
    block = 24 * layers * width**2 * (1 + sequence / (6 * width))
    return tokens * ((3 + recomputed) * block + 6 * width * vocabulary)


@law("s", flops=positive("FLOP"), n=count(), peak=PEAK, utilization=UTILIZATION)
def training_time(flops: Value, n: Value, peak: Value, utilization: Value) -> Result:
    """Seconds of training on n chips of `peak` (FLOP/s); with 6 P D FLOPs this is 6PD / (N X U).

    >>> round(training_time(training_flops(1e9, 20e9), 1, 312e12, 0.4))
    961538
    """
    return flops / (n * peak * utilization)


@law(
    "FLOP/token",
    layers=count(),
    width=count(hint="Query heads x head width."),
    sequence=count(),
    counting=tuple(COUNTS),
)
def score_flops(layers: Value, width: Value, sequence: Value, counting: str = "causal") -> Result:
    """FLOPs per token, forward and backward, for attention's scores and their products with the
    values, by the `COUNTS` of an MFU: 12 L h s for the whole square.

    >>> [round(score_flops(80, 8192, 131072, how) / 6 / 70.6e9, 2) for how in ("6PD", "causal")]
    [0.0, 1.22]
    """
    return 12 * COUNTS[counting] * layers * width * sequence


@law(**RUN)
def mfu(
    parameters: Value, tokens: Value, time: Value, n: Value, peak: Value, scores: Value = 0.0
) -> Result:
    """Model FLOPs utilization: the FLOPs the model needs over what n chips could do in `time` (s).
    Counts 6 P D alone, unless `scores` (`score_flops`) adds to it.

    >>> round(mfu(1e9, 20e9, 961538.5, 1, 312e12), 3)
    0.4
    """
    return (6 * parameters + scores) * tokens / (time * n * peak)


@law(**RUN, recomputed=RECOMPUTED)
def hfu(
    parameters: Value,
    tokens: Value,
    time: Value,
    n: Value,
    peak: Value,
    recomputed: Value = 1.0,
    scores: Value = 0.0,
) -> Result:
    """Hardware FLOPs utilization: counts the recomputed share of the forward pass as work, too.

    >>> round(hfu(1e9, 20e9, 961538.5, 1, 312e12), 3)
    0.533
    """
    forward = 2 * parameters + scores / 3
    return (3 + recomputed) * forward * tokens / (time * n * peak)


@law(batch=positive(), least=positive(), critical=positive())
def samples_to_target(batch: Value, least: Value, critical: Value) -> Result:
    """Samples until a model is good enough: `least` with tiny batches, twice that at `critical`.

    A large batch averages noise that small steps would have averaged on the way. Steps fall with
    the batch towards least / critical; samples rise without end.

    >>> samples_to_target(256, least=1e6, critical=256)
    2 million
    """
    return least * (1 + batch / critical)


@law(
    "FLOP",
    rows=count(),
    columns=count(),
    iterations=count(hint="5 in Muon. Each is a polynomial of the matrix of degree five."),
)
def newton_schulz_flops(rows: Value, columns: Value, iterations: Value = 5) -> Result:
    """FLOPs with which Muon makes one momentum matrix orthogonal, once a step.

    An iteration is A = X X', A A and a product with X: 4 m^2 n + 2 m^3, m being the shorter side.
    Beside 6 m n FLOPs for each token of a step that is at most `iterations` times m / tokens. It
    takes the whole matrix: where it is split over ranks, `parallel.muon_gathered_bytes` come first.

    >>> round(newton_schulz_flops(768, 768) / training_flops(768 * 768, 524288), 4)
    0.0073
    """
    short, long = minimum(rows, columns), maximum(rows, columns)
    return iterations * (4 * short**2 * long + 2 * short**3)
