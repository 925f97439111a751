"""Questions of chapter 6: claims to judge, each true for some values and false for others."""

from __future__ import annotations

from lightspeed import parallel
from lightspeed.catalog import accelerator, link
from lightspeed_course.practice.banks.parallelism import CHAPTER, CLUSTER, times_plain
from lightspeed_course.practice.derivation import derivation, step
from lightspeed_course.practice.parameters import counted, plain
from lightspeed_course.practice.questions import Misconception, Question, register


def needed(gpu, network):
    """The tokens of a GPU for which arithmetic takes as long as the traffic."""
    return parallel.data_parallel_tokens(accelerator(gpu).bf16, link(network).bandwidth)


hidden = Question(
    id="parallelism.claim_traffic_hides",
    chapter=CHAPTER,
    level="judge",
    kind="choice",
    prompt=(
        "“We train a dense model with FSDP over nodes of one {{gpu}} and one network port each"
        " ({{network}}). A GPU has {{tokens}} a step, so in the backward pass the arithmetic hides"
        " the traffic.” Does the claim hold at full peak and full rate?"
    ),
    parameters={"tokens": counted("token", 1024, 512, 4096, 16384, 32768), **CLUSTER},
    options={
        "holds": "It holds: the arithmetic takes longer.",
        "tokens": "It fails: a GPU has too few tokens.",
        "size": "It fails: that depends on the number of parameters.",
        "ranks": "It fails: the traffic of a GPU grows in proportion to the ranks.",
    },
    expected=lambda tokens, gpu, network: "holds" if tokens >= needed(gpu, network) else "tokens",
    solution=lambda tokens, gpu, network: derivation(
        "Per parameter the backward pass does four FLOPs for each token, and sends four bytes.",
        step(
            "The arithmetic of one parameter.",
            "4[FLOP/token] * tokens / peak",
            tokens=(tokens, "token"),
            peak=(accelerator(gpu).bf16, "FLOP/s"),
        ),
        step(
            "Its traffic. Compare.",
            "4[byte] / rate",
            rate=(link(network).bandwidth, "byte/s"),
        ),
    ),
    misconceptions=(
        Misconception(
            "the other side",
            lambda tokens, gpu, network: "tokens" if tokens >= needed(gpu, network) else "holds",
            "Write down both times for one parameter.",
        ),
        Misconception(
            "size counts", lambda **_: "size", "Both times are for one parameter. What cancels?"
        ),
        Misconception(
            "ranks count", lambda **_: "ranks", "What does a GPU send as the ring gets longer?"
        ),
    ),
    valid=lambda tokens, gpu, network: not 0.8 < tokens / needed(gpu, network) < 1.25,
    smaller="parallelism.critical_tokens",
)

half_more = Question(
    id="parallelism.claim_half_more",
    chapter=CHAPTER,
    level="judge",
    kind="choice",
    prompt=(
        "“ZeRO-3 sends half as much again as plain data parallelism.” The job adds up the gradients"
        " of {{m}} micro-batches in each step, and ZeRO-3 gathers and scatters in each of them."
        " Does the claim hold?"
    ),
    parameters={"m": plain(4, 1, 2, 8)},
    options={
        "holds": "It holds: three passes in place of two.",
        "more": "It fails: it sends more, since the passes come again in each micro-batch.",
        "same": "It fails: a reduce-scatter and an all-gather are an all-reduce.",
        "ranks": "It fails: it sends as many times as much as there are ranks.",
    },
    expected=lambda m: "holds" if m == 1 else "more",
    solution=lambda m: derivation(
        step("Plain data parallelism: a scatter and a gather, once a step.", "1 + 1"),
        step("ZeRO-3: two gathers and a scatter, for each micro-batch.", "m * (2 + 1)", m=m),
        step("Divide.", "ZeRO_3 / plain", times_plain(m, 3), ZeRO_3=3 * m, plain=2),
    ),
    misconceptions=(
        Misconception(
            "micro-batches not counted",
            lambda m: "more" if m == 1 else "holds",
            "How often in a step does each of the two jobs send?",
        ),
        Misconception(
            "two passes", lambda **_: "same", "How often are the weights gathered in stage 3?"
        ),
        Misconception(
            "ranks count", lambda **_: "ranks", "The share that a rank sends has a limit. Which?"
        ),
    ),
    smaller="parallelism.zero3_accumulated",
    holds={
        "half as much again": "quotation: a claim to be judged",
        "as many times as": "design: an option",
    },
)

register(hidden, half_more)
