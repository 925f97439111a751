"""Training: FLOPs, days and how much of the peak was used. Derived in chapter 3.

Two utilizations are kept apart: `mfu` counts the FLOPs that the model needs, `hfu` also those
that the hardware did twice. `peak` is dense and per chip, in FLOP/s.

Sources: Kaplan et al. (2020) for 6 P D; Narayanan et al. (2021) for the count with attention and
logits; Chowdhery et al., "PaLM" (2022), appendix B, for MFU and HFU.
"""

from __future__ import annotations

from lightspeed.law import Argument, count, fraction, law, positive
from lightspeed.roofline import PEAK

UTILIZATION = Argument(high=1.0, hint="A utilization is a share of the peak, above 0 and at most 1: 40 % is 0.4.")
RECOMPUTED = fraction(hint="1 repeats the whole forward pass in the backward pass, 0 none of it.")
PARAMS, TOKENS = positive("parameter"), positive("token")
RUN = {"params": PARAMS, "tokens": TOKENS, "time": positive("s"), "n": count(), "peak": PEAK}


@law("FLOP", params=PARAMS, tokens=TOKENS, recomputed=RECOMPUTED)
def training_flops(params, tokens, recomputed=0.0):
    """FLOPs to train on `tokens`: 2 a parameter and token forward, 4 backward, 2 for a forward done again.

    `recomputed` is the share of the forward pass that the backward pass repeats. 6 P D leaves out
    attention scores, a few per cent for short sequences.

    >>> training_flops(70e9, 15e12)
    6.3e+24
    """
    return (6 + 2 * recomputed) * params * tokens


SHAPE = {"layers": count(), "hidden": count(), "vocabulary": count(), "sequence": count()}


@law("FLOP", tokens=TOKENS, recomputed=RECOMPUTED, **SHAPE)
def transformer_training_flops(tokens, layers, hidden, vocabulary, sequence, recomputed=0.0):
    """FLOPs to train a GPT of this shape, attention scores and logits included (Narayanan et al. 2021).

    >>> round(transformer_training_flops(3e11, 96, 12288, 51200, 2048) / 1e23, 2)
    3.23
    """
    block = 24 * layers * hidden**2 * (1 + sequence / (6 * hidden))
    return tokens * ((3 + recomputed) * block + 6 * hidden * vocabulary)


@law("s", flops=positive("FLOP"), n=count(), peak=PEAK, utilization=UTILIZATION)
def training_time(flops, n, peak, utilization):
    """Seconds of training on n chips of `peak` (FLOP/s); with 6 P D FLOPs this is 6PD / (N X U).

    >>> round(training_time(training_flops(1e9, 20e9), 1, 312e12, 0.4))
    961538
    """
    return flops / (n * peak * utilization)


@law(**RUN)
def mfu(params, tokens, time, n, peak):
    """Model FLOPs utilization: 6 P D, the work the model needs, over what n chips could do in `time` (s).

    >>> round(mfu(1e9, 20e9, 961538.5, 1, 312e12), 3)
    0.4
    """
    return 6 * params * tokens / (time * n * peak)


@law(**RUN, recomputed=RECOMPUTED)
def hfu(params, tokens, time, n, peak, recomputed=1.0):
    """Hardware FLOPs utilization: counts the recomputed share of the forward pass as work, too.

    >>> round(hfu(1e9, 20e9, 961538.5, 1, 312e12), 3)
    0.533
    """
    return (6 + 2 * recomputed) * params * tokens / (time * n * peak)
