"""Questions of chapter 2: the five worked problems, int8 first (after Austin et al., "How to
Scale Your Model").
"""

from __future__ import annotations

from lightspeed import roofline as r
from lightspeed.catalog import accelerator, number
from lightspeed_course.practice.banks.roofline import (
    CHAPTER,
    bounds,
    ridge,
    ridge_step,
    size,
)
from lightspeed_course.practice.derivation import derivation, step
from lightspeed_course.practice.parameters import chip
from lightspeed_course.practice.questions import Misconception, Parameter, Question, register
from lightspeed_show.format import si

INT8_CHIPS = ("tpu_v5e", "tpu_v5p", "tpu_v6e", "a100_80gb", "h100_sxm")
SHAPE = {"B": size(64, 16, 512), "D": size(4096, 1024, 8192), "F": size(16384, 2048, 32768)}
SHAPE_PROMPT = (
    "An int8 matmul `X[B, D] @ Y[D, F] -> Z[B, F]` with B = {{B}}, D = {{D}}, F = {{F}}: operands"
    " and result take one byte an element."
)


def read_and_written(B, D, F, width=1):
    written = B * F * width
    return r.matmul_bytes(B, D, F, width, width, width) - written, written


int8_bytes = Question(
    id="roofline.int8_bytes",
    chapter=CHAPTER,
    level="apply",
    kind="array",
    names=("read", "written"),
    prompt=SHAPE_PROMPT + " How many bytes are read from memory, and how many are written back?",
    parameters=SHAPE,
    expected=read_and_written,
    unit="byte",
    tolerance=0.003,  # accepts the three digits that a table prints
    solution=lambda B, D, F: derivation(
        step(
            "Both operands are read, one byte an element.",
            "(B * D + D * F) * 1[byte]",
            (read_and_written(B, D, F)[0], "byte"),
            B=B,
            D=D,
            F=F,
        ),
        step(
            "The result is written, with a row for each row of X and a column for each column"
            " of Y.",
            "B * F * 1[byte]",
            (read_and_written(B, D, F)[1], "byte"),
            B=B,
            F=F,
        ),
    ),
    misconceptions=(
        Misconception(
            "weights only", lambda B, D, F: (D * F, B * F), "The activations are read too."
        ),
        Misconception(
            "two bytes",
            lambda B, D, F: read_and_written(B, D, F, 2),
            "Those are bf16 bytes. How wide is int8?",
        ),
        Misconception(
            "result in bf16",
            lambda B, D, F: (read_and_written(B, D, F)[0], 2 * B * F),
            "The result is int8 here, like the operands.",
        ),
        Misconception(
            "input read back as output",
            lambda B, D, F: (read_and_written(B, D, F)[0], B * D),
            "What shape has Z?",
        ),
        Misconception(
            "the result read as well",
            lambda B, D, F: (B * D + D * F + B * F, B * F),
            "You read the result as well. Is it there before the matmul?",
        ),
    ),
    smaller="roofline.int8_ops",
)

int8_ops = Question(
    id="roofline.int8_ops",
    chapter=CHAPTER,
    level="recall",
    prompt=SHAPE_PROMPT + " How many operations does it take?",
    parameters=SHAPE,
    expected=r.matmul_flops,
    unit="OP",
    tolerance=0.005,
    solution=lambda B, D, F: derivation(
        "Each of the $BF$ results is a sum of $D$ products.",
        step(
            "Each product is a multiplication, and is then added.",
            "2[OP] * B * D * F",
            (r.matmul_flops(B, D, F), "OP"),
            B=B,
            D=D,
            F=F,
        ),
        after="The precision changes how fast they run, not how many there are.",
    ),
    misconceptions=(
        Misconception(
            "multiplies only",
            lambda B, D, F: B * D * F,
            "Each product is also added to a sum. Is a multiply-add one operation?",
        ),
        Misconception(
            "int8 counts half",
            lambda B, D, F: B * D * F / 2,
            "A narrower operand makes an operation cheaper. Does it make it fewer?",
        ),
        Misconception("weights once", lambda B, D, F: 2 * D * F, "That is the work of one token."),
        Misconception(
            "doubled twice",
            lambda B, D, F: 2 * r.matmul_flops(B, D, F),
            "A multiply-add is two operations. Where does your other factor of two come from?",
        ),
    ),
)

int8_batch = Question(
    id="roofline.int8_critical_batch",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "Weights, activations and arithmetic are int8 on one {{key}}. From which batch on is a"
        " matmul compute-bound, as long as B is far below D and F?"
    ),
    parameters={"key": chip("tpu_v5e", *INT8_CHIPS, facts=("int8", "hbm_bandwidth"))},
    expected=lambda key: r.critical_batch(ridge(key, "int8"), 1),
    unit="token",
    tolerance=0.03,
    solution=lambda key: derivation(
        ridge_step(key, "int8"),
        "One byte of weight serves a multiplication and an addition for each token: the intensity"
        " is $2B$.",
        step(
            "Set that equal to the ridge. So $B$ is half the ridge.",
            "ridge / 2[OP/byte/token]",
            (r.critical_batch(ridge(key, "int8"), 1), "token"),
            ridge=(ridge(key, "int8"), "OP/byte"),
        ),
        after=(
            "Where the int8 peak is twice the bf16 peak, that is nearly the batch of bf16, because"
            " peak and width change together."
        ),
    ),
    holds={
        "is half the ridge": (
            lambda key: r.critical_batch(ridge(key, "int8"), 1) == ridge(key, "int8") / 2
        ),
        "that is nearly the batch of bf16": (
            lambda key: abs(ridge(key, "int8") / 2 / ridge(key) - 1) < 0.01
        ),
    },
    misconceptions=(
        Misconception(
            "intensity B",
            lambda key: ridge(key, "int8"),
            "That is the ridge, with the intensity set to B as in bf16. How many operations does"
            " one byte of int8 weight serve for each token?",
        ),
        Misconception(
            "bf16 peak",
            lambda key: r.critical_batch(ridge(key, "bf16"), 1),
            "You used the bf16 peak. The arithmetic is int8 here.",
        ),
        Misconception(
            "four-byte weights",
            lambda key: r.critical_batch(ridge(key, "int8"), 4),
            "How wide is one weight?",
        ),
    ),
    smaller="roofline.int8_ops",
)

int8_times = Question(
    id="roofline.int8_bounds",
    chapter=CHAPTER,
    level="apply",
    kind="array",
    names=("lower", "upper"),
    prompt=SHAPE_PROMPT
    + " It runs on one {{key}}. Between which two times does it take, the shorter if traffic and"
    " arithmetic overlap perfectly, the longer if they do not overlap?",
    parameters={
        **SHAPE,
        "key": chip(
            "tpu_v5e",
            "tpu_v5e",
            "tpu_v5p",
            "a100_80gb",
            "h100_sxm",
            facts=("int8", "hbm_bandwidth"),
        ),
    },
    expected=lambda B, D, F, key: both(int8_clocks(B, D, F, key)),
    unit="µs",
    solution=lambda B, D, F, key: derivation(
        step(
            "The clock of the arithmetic.",
            "2[OP] * B * D * F / peak",
            int8_clocks(B, D, F, key).math,
            B=B,
            D=D,
            F=F,
            peak=(accelerator(key).int8, "OP/s"),
        ),
        step(
            "The clock of the bytes: both operands and the result.",
            "(B * D + D * F + B * F) * 1[byte] / bandwidth",
            int8_clocks(B, D, F, key).comms,
            B=B,
            D=D,
            F=F,
            bandwidth=accelerator(key).hbm_bandwidth,
        ),
        step(
            "With perfect overlap the slower clock is the time.",
            "max(math, traffic)",
            int8_clocks(B, D, F, key).lower,
            math=int8_clocks(B, D, F, key).math,
            traffic=int8_clocks(B, D, F, key).comms,
        ),
        step(
            "Without overlap the two add up.",
            "math + traffic",
            int8_clocks(B, D, F, key).upper,
            math=int8_clocks(B, D, F, key).math,
            traffic=int8_clocks(B, D, F, key).comms,
        ),
    ),
    misconceptions=(
        Misconception(
            "math and traffic",
            lambda B, D, F, key: ordered(int8_clocks(B, D, F, key)),
            "Those are the two clocks. How do they combine if they overlap fully, and if not at"
            " all?",
        ),
        Misconception(
            "the smaller clock",
            lambda B, D, F, key: (
                min(ordered(int8_clocks(B, D, F, key))),
                int8_clocks(B, D, F, key).upper,
            ),
            "Both have to finish. Can it be over before the slower one is?",
        ),
        Misconception(
            "bf16 bytes",
            lambda B, D, F, key: both(int8_clocks(B, D, F, key, 2)),
            "You moved two bytes an element.",
        ),
        Misconception(
            "twice the bound",
            lambda B, D, F, key: (
                int8_clocks(B, D, F, key).lower,
                2 * int8_clocks(B, D, F, key).lower,
            ),
            "You added one clock to itself. Do the two clocks show the same time here?",
        ),
        Misconception(
            "the two clocks, memory first",
            lambda B, D, F, key: (int8_clocks(B, D, F, key).comms, int8_clocks(B, D, F, key).math),
            "Those are the two clocks: that of the bytes, and that of the arithmetic. Each has to"
            " run out; how long is it if they run at once, and how long if one after the other?",
            slight=True,
        ),
        Misconception(
            "bf16 peak",
            lambda B, D, F, key: bf16_bounds(B, D, F, key),
            "You took the peak of bf16 for the arithmetic. In which format is it?",
            slight=True,
        ),
    ),
    smaller="roofline.int8_bytes",
)


def int8_clocks(B, D, F, key, width=1):
    return bounds(
        key, "int8", r.matmul_flops(B, D, F), r.matmul_bytes(B, D, F, width, width, width)
    )


def bf16_bounds(B, D, F, key):
    return both(bounds(key, "bf16", r.matmul_flops(B, D, F), r.matmul_bytes(B, D, F, 1, 1, 1)))


def both(t):
    return t.lower, t.upper


def ordered(t):
    return t.math, t.comms


weights_only = Question(
    id="roofline.weight_only_batch",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "On one {{key}} the weights are stored as int8, but activations and arithmetic are bf16."
        " From which batch on is a matmul compute-bound, as long as B is far below D and F?"
    ),
    parameters={"key": chip("tpu_v5e", *INT8_CHIPS, facts=("bf16", "hbm_bandwidth"))},
    expected=lambda key: r.critical_batch(ridge(key), 1),
    unit="token",
    tolerance=0.03,
    solution=lambda key: derivation(
        ridge_step(key),
        "A weight of one byte serves a multiplication and an addition for each token: the intensity"
        " is $2B$.",
        step(
            "Set that equal to the ridge. Half the traffic at the same peak: half the batch.",
            "ridge / 2[FLOP/byte/token]",
            (r.critical_batch(ridge(key), 1), "token"),
            ridge=ridge(key),
        ),
    ),
    holds={
        "Half the traffic": (
            lambda key: r.critical_batch(ridge(key), 1) == r.critical_batch(ridge(key)) / 2
        )
    },
    misconceptions=(
        Misconception(
            "bf16 weights",
            lambda key: r.critical_batch(ridge(key), 2),
            "Nothing changed? How many bytes of weight are read now?",
        ),
        Misconception(
            "int8 arithmetic",
            lambda key: r.critical_batch(ridge(key, "int8"), 2),
            "You used the int8 peak. The operands are widened before the units see them.",
        ),
        Misconception(
            "a quarter",
            lambda key: r.critical_batch(ridge(key), 0.5),
            "You changed too much. Which of the two has changed, traffic or arithmetic?",
        ),
        Misconception(
            "narrower is harder",
            lambda key: 2 * ridge(key),
            "Fewer bytes for the same work: does the turn come earlier, or later? And is your peak"
            " that of bf16, or of int8?",
        ),
    ),
    smaller="roofline.ridge",
)

exact_batch = Question(
    id="roofline.exact_critical_batch",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "Count every byte. On one {{key}}: int8 weights of {{D}} by {{D}}, bf16 activations, result"
        " and arithmetic. At which batch does the matmul reach the ridge?"
    ),
    parameters={
        "D": size(1024, 1024, 8192),
        "key": chip("tpu_v5e", "tpu_v5e", "a100_80gb", "h100_sxm", facts=("bf16", "hbm_bandwidth")),
    },
    expected=lambda D, key: r.critical_batch_exact(D, D, ridge(key), 1, 2, 2),
    unit="token",
    tolerance=0.02,
    solution=lambda D, key: derivation(
        ridge_step(key),
        "FLOPs: $2BD^2$. Bytes: $D^2$ for the weights, $2BD$ for the activations, and $2BD$ for the"
        " result.",
        "Set FLOPs equal to ridge times bytes, and collect $B$: it is the ridge times $D^2$, over"
        " $2D^2$ less the ridge times $4D$.",
        step(
            "Put the numbers in.",
            "ridge * D**2 * 1[byte] / (2[FLOP/token] * D**2 - ridge * 4[byte/token] * D)",
            (r.critical_batch_exact(D, D, ridge(key), 1, 2, 2), "token"),
            ridge=ridge(key),
            D=D,
        ),
        after=(
            f"The short form gives {si(r.critical_batch(ridge(key), 1), 'token')}; the activations"
            " cost the rest."
        ),
    ),
    misconceptions=(
        Misconception(
            "the short form",
            lambda D, key: r.critical_batch(ridge(key), 1),
            "That ignores the activations. Are they small beside weights of this size?",
        ),
        Misconception(
            "no write",
            lambda D, key: r.critical_batch_exact(D, D, ridge(key), 1, 2, 1e-9),
            "The result has to be written.",
        ),
        Misconception(
            "bf16 weights",
            lambda D, key: r.critical_batch_exact(D, D, ridge(key), 2, 2, 2),
            "The weights are one byte wide.",
        ),
        Misconception(
            "one-byte activations",
            lambda D, key: r.critical_batch_exact(D, D, ridge(key), 1, 1, 1),
            "The weights are int8. Are the activations?",
        ),
        Misconception(
            "int8 arithmetic",
            lambda D, key: r.critical_batch_exact(D, D, ridge(key, "int8"), 1, 2, 2),
            "You used the int8 peak. In which format is the arithmetic?",
        ),
    ),
    smaller="roofline.weight_only_batch",
)

per_row = Question(
    id="roofline.matrix_per_row",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "Each of {{B}} tokens has a weight matrix of its own: `int8[B, D] , int8[B, D, F] ->"
        " int8[B, F]` with D = {{D}} and F = {{F}}. What is the arithmetic intensity?"
    ),
    parameters={"B": size(256, 32, 1024), "D": size(4096, 1024, 8192), "F": size(4096, 1024, 8192)},
    expected=lambda B, D, F: r.arithmetic_intensity(
        r.matmul_flops(B, D, F), r.batched_matmul_bytes(B, D, F, 1, 1, 1)
    ),
    unit="FLOP/byte",
    solution=lambda B, D, F: derivation(
        step(
            "The work is that of any matmul of this shape.",
            "2[FLOP] * B * D * F",
            r.matmul_flops(B, D, F),
            B=B,
            D=D,
            F=F,
        ),
        step(
            "But each token reads a matrix of its own.",
            "(B * D + B * D * F + B * F) * 1[byte]",
            r.batched_matmul_bytes(B, D, F, 1, 1, 1),
            B=B,
            D=D,
            F=F,
        ),
        step(
            "FLOPs over bytes. Each weight is used for one token, so the batch cancels.",
            "flops / traffic",
            flops=r.matmul_flops(B, D, F),
            traffic=r.batched_matmul_bytes(B, D, F, 1, 1, 1),
        ),
        after=(
            "Every accelerator of the chapter has a far higher ridge, so this is memory-bound there"
            " at any size."
        ),
    ),
    holds={
        "Every accelerator of the chapter": lambda B, D, F: (
            r.matmul_flops(B, D, F) / r.batched_matmul_bytes(B, D, F, 1, 1, 1)
            < min(ridge(key, "int8") for key in INT8_CHIPS) / 50
        )
    },
    misconceptions=(
        Misconception(
            "shared weights",
            lambda B, D, F: r.matmul_intensity(B, D, F, 1, 1, 1),
            "You read one matrix. How many are there here?",
        ),
        Misconception(
            "the short form", lambda B, D, F: 2 * B, "That needs one matrix that all tokens share."
        ),
        Misconception(
            "the short form of bf16",
            lambda B, D, F: B,
            "That is a bf16 matrix that all tokens share. How many tokens use one of these"
            " matrices?",
        ),
        Misconception(
            "bf16 bytes",
            lambda B, D, F: r.arithmetic_intensity(
                r.matmul_flops(B, D, F), r.batched_matmul_bytes(B, D, F)
            ),
            "The matrices are int8.",
        ),
        Misconception(
            "shared weights, one side",
            lambda B, D, F: 2 * B * D * F / (D * F + B * F),
            "You read one matrix, and one of the two sides. How many matrices are there here?",
        ),
    ),
    smaller="roofline.int8_bytes",
)


def printed_sparse(key):
    """The chip, and the rate in large print on its data sheet."""
    device = accelerator(key)
    return f"{device.name} prints {device.bf16_sparse / 1e12:.0f} TFLOPS"


spec_sheet = Question(
    id="roofline.h100_critical_batch",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "The data sheet of an {{key}} for bf16, with a footnote: with sparsity."
        " From which batch on is a dense bf16 matmul compute-bound, as long as B is far below D"
        " and F?"
    ),
    parameters={
        "key": Parameter(
            "h100_sxm", ("h100_sxm", "h200_sxm", "b200", "a100_80gb"), show=printed_sparse
        ),
    },
    expected=lambda key: r.critical_batch(ridge(key)),
    unit="token",
    tolerance=0.03,
    solution=lambda key: derivation(
        step(
            "The printed rate counts zeros that are skipped. The dense rate is half.",
            "printed / 2",
            accelerator(key).bf16,
            printed=accelerator(key).bf16_sparse,
        ),
        ridge_step(key),
        step(
            "A weight of two bytes serves two FLOPs for each token, so the intensity is the batch.",
            "ridge / 1[FLOP/byte/token]",
            (r.critical_batch(ridge(key)), "token"),
            ridge=ridge(key),
        ),
    ),
    holds={
        "The dense rate is half": (
            lambda key: accelerator(key).bf16 == accelerator(key).bf16_sparse / 2
        )
    },
    misconceptions=(
        Misconception(
            "sparse peak",
            lambda key: r.critical_batch(2 * ridge(key)),
            "You used the sparse rate. What can a dense matmul reach?",
        ),
        Misconception(
            "halved twice",
            lambda key: r.critical_batch(ridge(key), 1),
            "Sparsity halves the peak; did something halve the bytes as well?",
        ),
        Misconception(
            "the link, not the memory",
            lambda key: r.critical_batch(
                r.ridge_point(accelerator(key).bf16, accelerator(key).link_bandwidth)
            ),
            "You divided by the rate of NVLink. The weights here come from HBM.",
        ),
    ),
    smaller="roofline.ridge",
)


SEEN = ("a100_80gb", "h100_sxm", "h200_sxm")


def roof_share(key):
    return number(f"roof_share_bf16.{key}")


def share_on(key):
    return f"{si(roof_share(key), '%', 2)} of the roof on an {accelerator(key).name}"


left_out = Question(
    id="roofline.left_out_chip",
    chapter=CHAPTER,
    level="design",
    prompt=(
        "Compute-bound bf16 products reach, in the median of public rows,"
        f" {', '.join(map(share_on, SEEN))}."
        " The NVIDIA L40S, a card for PCIe, was left out. What share of its roof do you expect"
        " there?"
    ),
    parameters={"chip": Parameter("l40s")},
    expected=lambda chip: roof_share(chip),
    unit="%",
    tolerance=0.1,
    solution=lambda chip: derivation(
        step(
            "The three shares, in the mean.",
            "(first + second + third) / 3",
            **{
                name: (roof_share(key), "%")
                for name, key in zip(("first", "second", "third"), SEEN, strict=True)
            },
        ),
        step(
            "The rows of the fourth chip say less. It reaches this share of that mean:",
            "fourth / mean",
            (3 * roof_share(chip) / sum(map(roof_share, SEEN)), "%"),
            fourth=(roof_share(chip), "%"),
            mean=(sum(map(roof_share, SEEN)) / 3, "%"),
        ),
        after="Three chips that agree are no interval for a fourth of another kind: a share is"
        " carried over to chips of the same class, and measured on the others.",
    ),
    holds={
        "Three chips that agree are no interval": (
            lambda chip: (
                max(map(roof_share, SEEN)) - min(map(roof_share, SEEN)) < 0.02
                and min(map(roof_share, SEEN)) - roof_share(chip) > 0.1
            )
        ),
        "Compute-bound bf16 products reach": (
            lambda chip: all(0.7 < roof_share(key) < 0.8 for key in SEEN)
        ),
    },
    misconceptions=(
        Misconception(
            "like the others",
            lambda chip: sum(map(roof_share, SEEN)) / len(SEEN),
            "That is what three boards of one class agree on. Is this one of them?",
        ),
        Misconception(
            "the roof itself",
            lambda chip: 1.0,
            "That is the bound. What did the other chips reach of theirs?",
        ),
        Misconception(
            "half of the others",
            lambda chip: sum(map(roof_share, SEEN)) / len(SEEN) / 2,
            "A smaller chip has a lower roof, too. What is the share a share of?",
        ),
    ),
    smaller="roofline.share_of_roof",
)

share = Question(
    id="roofline.share_of_roof",
    chapter=CHAPTER,
    level="recall",
    prompt=(
        "The lower bound of a product on a chip is {{bound}}. It is timed at {{time}}."
        " What share of the roof does it reach?"
    ),
    parameters={
        "bound": Parameter(120e-6, (80e-6, 90e-6, 120e-6, 140e-6), "s"),
        "time": Parameter(160e-6, (150e-6, 160e-6, 200e-6), "s"),
    },
    expected=lambda bound, time: bound / time,
    unit="%",
    tolerance=0.02,
    solution=lambda bound, time: derivation(
        "The roof is a rate, and the bound is the time at that rate. A rate is FLOPs over time, and"
        " the FLOPs cancel.",
        step(
            "Bound over measured time.", "bound / time", (bound / time, "%"), bound=bound, time=time
        ),
    ),
    misconceptions=(
        Misconception(
            "time over bound",
            lambda bound, time: time / bound,
            "That is the time over the bound. Would a slow kernel have a large share?",
        ),
        Misconception(
            "what is missing",
            lambda bound, time: 1 - bound / time,
            "That is the part of the time that the bound leaves unexplained. What is the rest?",
        ),
        Misconception(
            "over the bound",
            lambda bound, time: time / bound - 1,
            "That is the time lost, over the bound. Which of the two is the whole here?",
        ),
    ),
)

in_the_cache = Question(
    id="roofline.beaten_by_cache",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "On an L40S (memory {{bandwidth}}, L2 cache {{cache}}) a bf16 product of a few rows and a"
        " matrix of {{size}} is timed at {{time}}, run after run on the same data. How many times"
        " the bandwidth of memory would that take, if every byte came from memory?"
    ),
    parameters={
        "bandwidth": Parameter(864e9, unit="byte/s"),
        "cache": Parameter(96e6, unit="byte"),
        "size": Parameter(13.1e6, (6.5e6, 20e6, 26e6), "byte"),
        "time": Parameter(6.2e-6, (5e-6, 7e-6), "s"),
    },
    expected=lambda bandwidth, cache, size, time: r.transfer_time(size, bandwidth) / time,
    unit="",
    tolerance=0.03,
    solution=lambda bandwidth, cache, size, time: derivation(
        step(
            "From memory the matrix takes",
            "size / bandwidth",
            (r.transfer_time(size, bandwidth), "s"),
            size=(size, "byte"),
            bandwidth=(bandwidth, "byte/s"),
        ),
        step(
            "How many times the measured time is that?",
            "size / bandwidth / time",
            size=(size, "byte"),
            bandwidth=(bandwidth, "byte/s"),
            time=(time, "s"),
        ),
        after="The matrix fits the cache, and stays there from one run to the next: the bound was"
        " asked for the wrong level.",
    ),
    holds={
        "The matrix fits the cache": lambda bandwidth, cache, size, time: size < cache,
    },
    misconceptions=(
        Misconception(
            "time over bound",
            lambda bandwidth, cache, size, time: time / r.transfer_time(size, bandwidth),
            "Upside down: this is the measured time over the bound.",
        ),
        Misconception(
            "the cache's size",
            lambda bandwidth, cache, size, time: r.transfer_time(cache, bandwidth) / time,
            "That is what fits the cache. Which bytes are read?",
        ),
        Misconception(
            "the rate itself",
            lambda bandwidth, cache, size, time: size / time / 1e12,
            "That is the rate, in TB/s. How many times that of the memory is it?",
        ),
        Misconception(
            "memory is the limit",
            lambda **_: 1.0,
            "That is all that memory can do. What rate do the bytes and the measured time give?",
        ),
        Misconception(
            "bits",
            lambda bandwidth, cache, size, time: 8 * r.transfer_time(size, bandwidth) / time,
            "Size and bandwidth are both in bytes. Where does the eight come from?",
        ),
    ),
    smaller="roofline.share_of_roof",
)

register(
    int8_bytes,
    int8_ops,
    int8_batch,
    int8_times,
    weights_only,
    exact_batch,
    per_row,
    spec_sheet,
    share,
    left_out,
    in_the_cache,
)
