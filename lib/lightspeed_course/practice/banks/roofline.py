"""Questions of chapter 2, the roofline: what to recall, to work out, to write and to design."""

from __future__ import annotations

import math

from lightspeed import roofline as r
from lightspeed.catalog import accelerator
from lightspeed.roofline import WIDTH
from lightspeed_course.practice.amounts import powers_of_two
from lightspeed_course.practice.derivation import derivation, step
from lightspeed_course.practice.parameters import chip
from lightspeed_course.practice.questions import Misconception, Parameter, Question, register
from lightspeed_show.format import si

CHAPTER = "02_roofline"
GPUS = ("v100_sxm", "a100_80gb", "h100_sxm", "h200_sxm", "b200", "mi300x")


def size(canonical, low, high):
    """A matrix side or a batch: a power of two, written without separators."""
    return Parameter(canonical, powers_of_two(low, high), show=str)


def ridge(key, precision="bf16"):
    device = accelerator(key)
    return r.ridge_point(getattr(device, precision), device.hbm_bandwidth)


SISTERS = {"a100_80gb": "a100_40gb", "h100_sxm": "h100_pcie", "h200_sxm": "h100_sxm"}


def sister_ridge(key, rounded=False):
    """The ridge with the memory of another version of the chip, such as the A100 of 40 GB;
    rounded down as people quote it.
    """
    if key not in SISTERS:
        raise ValueError(f"{key} was sold with one memory only")
    bandwidth = accelerator(SISTERS[key]).hbm_bandwidth
    step = 10 ** (math.floor(math.log10(bandwidth)) - 1)
    return r.ridge_point(
        accelerator(key).bf16, math.floor(bandwidth / step) * step if rounded else bandwidth
    )


def ridge_step(key, precision="bf16"):
    """The line of a solution that works out a ridge."""
    device = accelerator(key)
    operation = "OP" if precision.startswith("int") else "FLOP"
    return step(
        "The ridge: what the chip can do while one byte arrives.",
        "peak / bandwidth",
        (ridge(key, precision), f"{operation}/byte"),
        peak=(getattr(device, precision), f"{operation}/s"),
        bandwidth=device.hbm_bandwidth,
    )


def clock_steps(B, D, F, key, t):
    """The lines that work out both clocks of a bf16 matmul."""
    shape = {"B": B, "D": D, "F": F}
    return (
        step(
            "The clock of the arithmetic.",
            "2[FLOP] * B * D * F / peak",
            t.math,
            **shape,
            peak=accelerator(key).bf16,
        ),
        step(
            "The clock of the bytes: three matrices, two bytes an element.",
            "(B * D + D * F + B * F) * 2[byte] / bandwidth",
            t.comms,
            **shape,
            bandwidth=accelerator(key).hbm_bandwidth,
        ),
    )


def wide(format):
    return WIDTH[format], "byte"


def bounds(key, precision, flops, size):
    device = accelerator(key)
    return r.time_bounds(flops, size, getattr(device, precision), device.hbm_bandwidth)


# --- the two clocks and the ridge -------------------------------------------------------------

ridge_question = Question(
    id="roofline.ridge",
    chapter=CHAPTER,
    level="recall",
    prompt="What is the ridge point of an {{key}} for dense bf16 matmuls fed from its HBM?",
    parameters={"key": chip("a100_80gb", "a100_80gb", "h100_sxm", "h200_sxm", "mi300x")},
    expected=ridge,
    unit="FLOP/byte",
    tolerance=0.03,
    solution=lambda key: derivation(ridge_step(key)),
    misconceptions=(
        Misconception(
            "sparse peak",
            lambda key: 2 * ridge(key),
            "That is the sparse rate. Data sheets print it first; your matrices are dense.",
        ),
        Misconception(
            "the memory of another version",
            sister_ridge,
            "This chip was sold with other memories too. How fast is that of the version asked"
            " about?",
        ),
        Misconception(
            "the memory of another version, rounded",
            lambda key: sister_ridge(key, rounded=True),
            "That looks like the memory of another version of this chip, rounded. How fast is that"
            " of the version asked about?",
        ),
        Misconception(
            "the link, not the memory",
            lambda key: r.ridge_point(accelerator(key).bf16, accelerator(key).link_bandwidth),
            "You divided by the rate of the link to other chips. The operands here come from HBM.",
        ),
        Misconception(
            "vector peak",
            lambda key: r.ridge_point(accelerator(key).fp32_vector, accelerator(key).hbm_bandwidth),
            "You took the fp32 rate of the vector units. Which units run a bf16 matmul?",
        ),
        Misconception(
            "half of the peak",
            lambda key: ridge(key) / 2,
            "That is half. Is yours the dense peak of bf16, and is a multiply-add two operations"
            " in it?",
        ),
    ),
)

dot_question = Question(
    id="roofline.dot_intensity",
    chapter=CHAPTER,
    level="recall",
    prompt="A dot product of two long {{format}} vectors: what is its arithmetic intensity?",
    parameters={"format": Parameter("bf16", ("bf16", "fp32", "int8"))},
    expected=lambda format: r.arithmetic_intensity(
        r.dot_flops(10**9), r.dot_bytes(10**9, WIDTH[format])
    ),
    unit="FLOP/byte",
    solution=lambda format: derivation(
        step(
            "One pair of elements is multiplied, and the product is added up.", "1[FLOP] + 1[FLOP]"
        ),
        step("The pair is read, one element from each vector.", "2 * width", width=wide(format)),
        step(
            "FLOPs over bytes. The one number that is written does not show beside two long"
            " vectors.",
            "(1[FLOP] + 1[FLOP]) / (2 * width)",
            width=wide(format),
        ),
    ),
    misconceptions=(
        Misconception(
            "one vector",
            lambda format: 2 / WIDTH[format],
            "You moved one vector. Where does the other come from?",
        ),
        Misconception(
            "multiplies only",
            lambda format: 1 / (2 * WIDTH[format]),
            "You counted the multiplies. Who adds them up?",
        ),
        Misconception(
            "elements, not bytes",
            lambda format: 4 / WIDTH[format],
            "Your traffic looks like half an element a step. Write down what one step reads, in"
            " bytes.",
        ),
        Misconception(
            "one operation an element read",
            lambda format: 1 / (4 * WIDTH[format]),
            "Count again what is done with one pair of elements.",
        ),
        Misconception(
            "bytes for a FLOP",
            lambda format: WIDTH[format],
            "That is the ratio turned round: bytes for each FLOP. Which of the two is asked for"
            " one of the other?",
        ),
    ),
)

relu_question = Question(
    id="roofline.relu_share",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "A ReLU runs over a large tensor of two-byte numbers in the HBM of an {{key}}, one"
        " operation for each element. What share of the chip's dense matmul peak for such numbers"
        " can it reach?"
    ),
    parameters={"key": chip("a100_80gb", *GPUS)},
    expected=lambda key: r.elementwise_intensity() / ridge_fp16(key),
    unit="%",
    tolerance=0.03,
    solution=lambda key: derivation(
        step("Each element is read once and written once.", "2[byte] + 2[byte]"),
        step(
            "One operation is done for these bytes: the intensity.",
            "1[FLOP] / (2[byte] + 2[byte])",
            r.elementwise_intensity(),
        ),
        ridge_step(key, precision_of(key)),
        step(
            "Memory sets the rate, so the share is intensity over ridge.",
            "intensity / ridge",
            (r.elementwise_intensity() / ridge_fp16(key), "%"),
            intensity=r.elementwise_intensity(),
            ridge=ridge_fp16(key),
        ),
    ),
    misconceptions=(
        Misconception(
            "reads only",
            lambda key: r.elementwise_intensity(writes=0) / ridge_fp16(key),
            "The result has to go somewhere. Count the writes.",
        ),
        Misconception(
            "half of it",
            lambda key: r.elementwise_intensity() / ridge_fp16(key) / 2,
            "That is half. Is your peak the dense one, or one with sparsity? And how many bytes"
            " does an element take each way?",
        ),
        Misconception(
            "vector peak",
            lambda key: (
                r.elementwise_intensity()
                * accelerator(key).hbm_bandwidth
                / accelerator(key).fp32_vector
            ),
            "You took the peak of the vector units. They would run the ReLU, but the question asks"
            " for a share of the matmul peak.",
        ),
    ),
    smaller="roofline.ridge",
)


def precision_of(key):
    """The sixteen-bit format of the tensor cores: V100 has no bf16."""
    return "bf16" if "bf16" in accelerator(key) else "fp16"


def ridge_fp16(key):
    return ridge(key, precision_of(key))


gemm_question = Question(
    id="roofline.gemm_intensity",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "Two square bf16 matrices of {{n}} by {{n}} are multiplied; each operand is read once and"
        " the result written once. What is the arithmetic intensity?"
    ),
    parameters={"n": size(4096, 256, 16384)},
    expected=lambda n: r.matmul_intensity(n, n, n),
    unit="FLOP/byte",
    solution=lambda n: derivation(
        step(
            "Each of the results takes as many multiplications and additions as a row is long.",
            "2[FLOP] * n**3",
            r.matmul_flops(n, n, n),
            n=n,
        ),
        step("Three matrices cross the bus.", "3 * n**2 * 2[byte]", r.matmul_bytes(n, n, n), n=n),
        step(
            "FLOPs over bytes.",
            "flops / traffic",
            (r.matmul_intensity(n, n, n), "FLOP/byte"),
            flops=r.matmul_flops(n, n, n),
            traffic=r.matmul_bytes(n, n, n),
        ),
        after="That is a third of $n$: $2n^3$ over $6n^2$.",
    ),
    holds={"a third of $n$": lambda n: abs(r.matmul_intensity(n, n, n) / n - 1 / 3) < 1e-9},
    misconceptions=(
        Misconception(
            "result not written",
            lambda n: r.matmul_flops(n, n, n) / (2 * n * n * 2),
            "You counted two matrices. How many cross the bus?",
        ),
        Misconception(
            "weights only",
            lambda n: r.matmul_flops(n, n, n) / (n * n * 2),
            "That counts one matrix. The short form is for a small batch. Is this one?",
        ),
        Misconception(
            "a multiply-add is one",
            lambda n: r.matmul_intensity(n, n, n) / 2,
            "A multiply-add is two operations, on data sheets too.",
        ),
        Misconception(
            "fp32 operands",
            lambda n: r.matmul_intensity(n, n, n, 4, 4, 4),
            "How wide is a bf16 element?",
        ),
        Misconception(
            "one byte an element",
            lambda n: 2 * (r.matmul_intensity(n, n, n)),
            "How many bytes does a bf16 element take, and how many operations is a multiply-add?",
        ),
    ),
    smaller="roofline.dot_intensity",
)

attainable_question = Question(
    id="roofline.attainable",
    chapter=CHAPTER,
    level="apply",
    kind="function",
    prompt="Write `roof(intensity, peak, bandwidth)`: the height of the roof, in FLOP/s.",
    parameters={
        "intensity": Parameter(0.25, (0.25, 0.5, 8, 64, 300, 2000, 1e5), "FLOP/byte"),
        "peak": Parameter(312e12, (19.5e12, 197e12, 989e12), "FLOP/s"),
        "bandwidth": Parameter(2e12, (0.8e12, 2e12, 8e12), "byte/s"),
    },
    expected=r.attainable,
    unit="FLOP/s",
    tolerance=0.001,
    solution=(
        derivation(
            "Memory delivers `bandwidth` bytes a second. Each lets the units do `intensity` FLOPs.",
            "The units stop at their peak.",
            "Both limits hold at once, so the lower one counts.",
            after=(
                "```python\ndef roof(intensity, peak, bandwidth):\n    return min(peak, intensity *"
                " bandwidth)\n```"
            ),
        )
    ),
    misconceptions=(
        Misconception(
            "the slope without a roof",
            lambda intensity, peak, bandwidth: intensity * bandwidth,
            "Try a very high intensity. Is there a limit?",
        ),
        Misconception(
            "the roof without a slope",
            lambda intensity, peak, bandwidth: peak,
            "Try a very low intensity. Who feeds the units?",
        ),
        Misconception(
            "the higher of the two",
            lambda intensity, peak, bandwidth: max(peak, intensity * bandwidth),
            "Both limits hold at once. Which one do you meet first?",
        ),
        Misconception(
            "divided by the intensity",
            lambda intensity, peak, bandwidth: min(peak, bandwidth / intensity),
            "Write the units: does a byte that serves more FLOPs let the units do more, or less?",
        ),
    ),
    smaller="roofline.ridge",
)

helps_question = Question(
    id="roofline.what_shortens_it",
    chapter=CHAPTER,
    level="design",
    kind="choice",
    prompt=(
        "A bf16 matmul of {{batch}} tokens with weights of {{D}} by {{D}} runs on an {{key}}. Which"
        " one change shortens it?"
    ),
    parameters={
        "batch": Parameter(16, (8, 16, 32, 2048, 4096), show=str),
        "D": size(8192, 4096, 16384),
        "key": chip("a100_80gb", "a100_80gb", "h100_sxm", "h200_sxm"),
    },
    options={
        "bandwidth": "Twice the HBM bandwidth.",
        "peak": "Twice the peak FLOP/s.",
        "capacity": "Twice the HBM capacity.",
        "link": "Twice the NVLink rate.",
    },
    expected=lambda batch, D, key: "peak" if square(batch, D, key).compute_bound else "bandwidth",
    solution=lambda batch, D, key: derivation(
        *clock_steps(batch, D, D, key, square(batch, D, key)),
        "They overlap, so the longer clock is the time, and a shorter one elsewhere changes"
        " nothing.",
    ),
    holds={
        "They overlap": lambda batch, D, key: shortens(
            batch, D, key, "peak" if square(batch, D, key).compute_bound else "bandwidth"
        ),
        "Twice the HBM bandwidth": "design: an option",
        "Twice the peak": "design: an option",
        "Twice the HBM capacity": "design: an option",
        "Twice the NVLink rate": "design: an option",
    },
    misconceptions=(
        Misconception(
            "the shorter clock",
            lambda batch, D, key: "bandwidth" if square(batch, D, key).compute_bound else "peak",
            "Two clocks run at once. Which of them do you wait for?",
        ),
        Misconception(
            "capacity is speed",
            lambda **_: "capacity",
            "More room for the weights does not make reading them faster.",
        ),
        Misconception("the link", lambda **_: "link", "Do the operands leave the chip here?"),
    ),
    smaller="roofline.ridge",
)


def shortens(batch, D, key, what):
    """Whether twice this, and not twice the other, shortens the lower bound."""
    device, t = accelerator(key), square(batch, D, key)
    work = r.matmul_flops(batch, D, D), r.matmul_bytes(batch, D, D)
    peak = r.time_bounds(*work, 2 * device.bf16, device.hbm_bandwidth).lower < t.lower
    bandwidth = r.time_bounds(*work, device.bf16, 2 * device.hbm_bandwidth).lower < t.lower
    return peak != bandwidth and {"peak": peak, "bandwidth": bandwidth}[what]


def square(batch, D, key):
    return bounds(key, "bf16", r.matmul_flops(batch, D, D), r.matmul_bytes(batch, D, D))


# --- beyond one matmul from one memory -------------------------------------------------------

depth = Question(
    id="roofline.critical_depth",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "Two chips, each a {{key}}, split the contraction of a bf16 matmul. Each sends its partial"
        " sums, also bf16, to the other over one link of {{link}} in each direction. From which"
        " contraction length D on is it compute-bound?"
    ),
    parameters={
        "key": chip("tpu_v5e", "tpu_v5e", "tpu_v5p", facts=("bf16",)),
        "link": Parameter(45, (25, 45, 50, 90), "GB/s"),
    },
    expected=lambda key, link: r.critical_depth(accelerator(key).bf16, link),
    unit="",
    tolerance=0.02,
    solution=lambda key, link: derivation(
        "Two chips share $2BDF$ FLOPs, so each does $BDF$.",
        "It sends its partial sums, $BF$ elements of two bytes. So the intensity of the exchange is"
        " $D/2$; the batch cancels.",
        step(
            "The ridge of the link.",
            "peak / link",
            peak=accelerator(key).bf16,
            link=(link, "byte/s"),
        ),
        step(
            "Set $D/2$ equal to it.",
            "2[byte/FLOP] * peak / link",
            (r.critical_depth(accelerator(key).bf16, link), ""),
            peak=accelerator(key).bf16,
            link=(link, "byte/s"),
        ),
    ),
    misconceptions=(
        Misconception(
            "ridge of the link",
            lambda key, link: accelerator(key).bf16 / link,
            "That is the ridge of the link. What is the intensity of the exchange, in terms of D,"
            " when two chips split the work?",
        ),
        Misconception(
            "memory instead of link",
            lambda key, link: 2 * ridge(key),
            "You used HBM. What travels here is the partial sums, over the link.",
        ),
        Misconception(
            "all the FLOPs on one chip",
            lambda key, link: accelerator(key).bf16 / link / 2,
            "The work is shared by two chips. How much does each do?",
        ),
        Misconception(
            "one direction at a time",
            lambda key, link: 2 * (r.critical_depth(accelerator(key).bf16, link)),
            "That has the two chips send one after the other. How many directions does the link"
            " have?",
        ),
    ),
    smaller="roofline.ridge",
)

decode = Question(
    id="roofline.decode_attention",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "Decoding: one query token over {{S}} cached tokens in bf16, with {{G}} query heads to each"
        " KV head. What is the arithmetic intensity of attention?"
    ),
    parameters={"S": size(8192, 1024, 65536), "G": Parameter(8, (2, 4, 8, 16), show=str)},
    expected=lambda S, G: r.attention_intensity(1, S, G),
    unit="FLOP/byte",
    solution=lambda S, G: derivation(
        step(
            "For each number of a cached key and of its value, the queries of a group do a"
            " multiplication and an addition each.",
            "4[FLOP] * S * G",
            S=S,
            G=G,
        ),
        step(
            "The group reads the key and the value once. Its queries and results are few.",
            "4[byte] * S + 4[byte] * G",
            S=S,
            G=G,
        ),
        step(
            "FLOPs over bytes. This is $TSG / (TG + S)$ with one new token.",
            "4[FLOP] * S * G / (4[byte] * S + 4[byte] * G)",
            (r.attention_intensity(1, S, G), "FLOP/byte"),
            S=S,
            G=G,
        ),
        after="A longer context only brings it closer to the number of query heads to a KV head.",
    ),
    holds={
        "A longer context": (
            lambda S, G: r.attention_intensity(1, S, G) < r.attention_intensity(1, 10 * S, G) < G
        )
    },
    misconceptions=(
        Misconception(
            "no sharing",
            lambda S, G: r.attention_intensity(1, S, 1),
            "Heads of a group share one KV head. How many queries use each cached element?",
        ),
        Misconception(
            "prefill",
            lambda S, G: r.attention_intensity(S, S, G),
            "That is a whole prompt at once. How many queries are there when decoding?",
        ),
        Misconception(
            "only the keys",
            lambda S, G: 2 * r.attention_intensity(1, S, G),
            "You read the keys. The values are read as well.",
        ),
        Misconception(
            "half",
            lambda S, G: (r.attention_intensity(1, S, G)) / 2,
            "That is half. Is a multiply-add two operations, and how many bytes does an element"
            " take?",
        ),
    ),
    smaller="roofline.dot_intensity",
)

tile = Question(
    id="roofline.tile_side",
    chapter=CHAPTER,
    level="design",
    prompt=(
        "A large bf16 matmul on an {{key}} computes its result in square tiles, and reads a strip"
        " of each operand for each tile. How long must a tile's side be, in elements, for HBM not"
        " to be the limit?"
    ),
    parameters={"key": chip("a100_80gb", "a100_80gb", "h100_sxm", "h200_sxm", "b200")},
    expected=lambda key: ridge(key) * WIDTH["bf16"],
    unit="",
    tolerance=0.03,
    solution=lambda key: derivation(
        ridge_step(key),
        "For each step of the contraction a square tile of side $b$ does $2b^2$ FLOPs, and reads"
        " two strips of $b$ elements, two bytes each: $4b$ bytes. Its intensity is half of $b$.",
        step(
            "Set that equal to the ridge.",
            "2[byte/FLOP] * ridge",
            (ridge(key) * WIDTH["bf16"], ""),
            ridge=ridge(key),
        ),
        after=(
            "Kernels take the next power of two, or let neighbouring tiles share strips in the L2"
            " cache."
        ),
    ),
    holds={"half of $b$": lambda key: r.tile_intensity(600, 600) == 300},
    misconceptions=(
        Misconception(
            "intensity is the side",
            ridge,
            "Work out the intensity of one tile: how many bytes are the two strips that it reads"
            " for each step of the contraction?",
        ),
        Misconception(
            "one strip",
            lambda key: ridge(key) * WIDTH["bf16"] / 4,
            "A tile reads a strip of both operands.",
        ),
        Misconception(
            "sparse peak",
            lambda key: 2 * ridge(key) * WIDTH["bf16"],
            "You aimed for the sparse peak.",
        ),
        Misconception(
            "as for whole matrices",
            lambda key: 3 * ridge(key),
            "So long a side have square matrices that are read whole and written once. What does a"
            " tile read for a step of the contraction?",
        ),
    ),
    smaller="roofline.ridge",
)

# A model whose weights at two bytes do not fit beside its cache.
BUDGET = {
    "params": Parameter(
        13 * 10**9, tuple(n * 10**9 for n in (8, 10, 12, 13)), show=lambda n: si(n)
    ),
    "key": chip("tpu_v5e", facts=("bf16", "hbm_bandwidth", "hbm_capacity")),
    "budget": Parameter(20, (18, 20, 25), "ms"),
}


def step_of(params, key, batch, width):
    """One decode step without attention: every weight read once, two FLOPs a weight and token."""
    return bounds(key, "bf16", 2 * params * batch, params * width)


def largest_batch(params, key, budget, peak="bf16"):
    return math.floor(budget * getattr(accelerator(key), peak) / (2 * params))


precision_for_budget = Question(
    id="roofline.budget_precision",
    chapter=CHAPTER,
    level="design",
    kind="choice",
    prompt=(
        "A dense model of {{params}} parameters decodes on one {{key}}. Each step reads the weights"
        " once, and may take {{budget}}. Which is the widest format for the weights that fits the"
        " memory and can be read in time?"
    ),
    parameters=BUDGET,
    options={f: f"{f} weights" for f in ("fp32", "bf16", "int8", "int4")},
    expected=lambda params, key, budget: widest(params, key, budget),
    solution=lambda params, key, budget: derivation(
        *(
            step(
                f"In {format} the weights take",
                "parameters * width",
                parameters=(params, "parameter"),
                width=(WIDTH[format], "byte/parameter"),
            )
            for format in ("bf16", "int8", "int4")
        ),
        f"The chip holds {si(accelerator(key).hbm_capacity, 'byte')}. Compare the three with it.",
        *(
            step(
                f"In {format} reading them takes",
                "weights / bandwidth",
                weights=(params * WIDTH[format], "byte"),
                bandwidth=accelerator(key).hbm_bandwidth,
            )
            for format in ("int8", "int4")
        ),
        f"The step may take {si(budget, 's')}. Compare the times with that, and keep the"
        " format that passes both.",
    ),
    misconceptions=(
        Misconception(
            "fp32 is safe",
            lambda **_: "fp32",
            "Multiply parameters by bytes, and compare with the memory of one chip.",
        ),
        Misconception(
            "bf16 is the default",
            lambda **_: "bf16",
            "Multiply parameters by bytes, and compare with the memory of one chip. Then divide by"
            " the bandwidth.",
        ),
        Misconception(
            "narrower is always needed",
            lambda **_: "int4",
            "Is there a wider format that fits and can be read in time?",
        ),
    ),
    valid=lambda params, key, budget: widest(params, key, budget) == "int8",
    smaller="numbers.inference_memory",
)


def widest(params, key, budget):
    device = accelerator(key)
    for name in ("fp32", "bf16", "int8"):
        size = params * WIDTH[name]
        if size <= device.hbm_capacity and size / device.hbm_bandwidth <= budget:
            return name
    return "int4"


batch_for_budget = Question(
    id="roofline.budget_batch",
    chapter=CHAPTER,
    level="design",
    prompt=(
        "A dense model of {{params}} parameters, with int8 weights and bf16 arithmetic, decodes on"
        " one {{key}}. Each step reads the weights once, and may take {{budget}}. Leave attention"
        " and activations out. What is the largest batch that meets the budget, if traffic and"
        " arithmetic overlap?"
    ),
    parameters=BUDGET,
    expected=largest_batch,
    unit="token",
    tolerance=0,
    solution=lambda params, key, budget: derivation(
        step(
            "Reading the weights takes as long for one token as for many. Compare with the budget.",
            "weights / bandwidth",
            step_of(params, key, 1, 1).comms,
            weights=(params, "byte"),
            bandwidth=accelerator(key).hbm_bandwidth,
        ),
        step(
            "Arithmetic grows with the batch. One token takes",
            "2[FLOP/parameter/token] * parameters / peak",
            parameters=(params, "parameter"),
            peak=accelerator(key).bf16,
        ),
        step(
            "The two overlap, so arithmetic may fill the whole budget.",
            "floor(budget / time_of_a_token)",
            (largest_batch(params, key, budget), "token"),
            budget=(budget, "s"),
            time_of_a_token=(2 * params / accelerator(key).bf16, "s/token"),
        ),
    ),
    misconceptions=(
        Misconception(
            "stop at the ridge",
            lambda params, key, budget: math.floor(r.critical_batch(ridge(key), 1)),
            "That is where the step begins to grow. Does the budget end there?",
        ),
        Misconception(
            "no overlap",
            lambda params, key, budget: max(
                1,
                math.floor(
                    (budget - step_of(params, key, 1, 1).comms) / step_of(params, key, 1, 1).math
                ),
            ),
            "You added the two times. The question lets them overlap.",
        ),
        Misconception(
            "int8 arithmetic",
            lambda params, key, budget: largest_batch(params, key, budget, "int8"),
            "You used the int8 peak. In which format is the arithmetic?",
        ),
        Misconception(
            "one FLOP a weight",
            lambda params, key, budget: math.floor(budget * accelerator(key).bf16 / params),
            "A weight takes part in a multiply and an add for each token.",
        ),
    ),
    valid=lambda params, key, budget: (
        params * 1.05 / accelerator(key).hbm_bandwidth < budget
        and params < accelerator(key).hbm_capacity
    ),
    smaller="roofline.weight_only_batch",
)

exact_function = Question(
    id="roofline.critical_batch_function",
    chapter=CHAPTER,
    level="design",
    kind="function",
    prompt=(
        "Write `turning_batch(D, F, ridge, weight_bytes, activation_bytes)`: the batch at which"
        " `X[B, D] @ Y[D, F]` reaches the ridge, counting weights, activations and a result as wide"
        " as the activations. Return infinity if a batch never does."
    ),
    holds={"Return infinity": "design: what the function returns"},
    parameters={
        "D": size(4096, 512, 16384),
        "F": size(4096, 512, 16384),
        "ridge": Parameter(240, (50, 153, 240, 295, 600), "FLOP/byte"),
        "weight_bytes": Parameter(1, (0.5, 1, 2), "byte"),
        "activation_bytes": Parameter(2, (1, 2, 4), "byte"),
    },
    edges=({"D": 128, "F": 128},),
    expected=lambda D, F, ridge, weight_bytes, activation_bytes: r.critical_batch_exact(
        D, F, ridge, weight_bytes, activation_bytes, activation_bytes
    ),
    unit="token",
    tolerance=0.001,
    solution=(
        derivation(
            "Count FLOPs: $2BDF$. Count bytes: $BD$ and $BF$ activations, $DF$ weights.",
            "Set FLOPs equal to ridge times bytes. The batch appears on both sides; collect it.",
            "If its factor is zero or negative, the activations alone keep the matmul from the"
            " ridge, and the answer is infinity.",
            after=(
                "```python\ndef turning_batch(D, F, ridge, weight_bytes, activation_bytes):\n"
                "    gained = 2 * D * F - ridge * (D + F) * activation_bytes\n"
                "    return ridge * D * F * weight_bytes / gained if gained > 0 else math.inf\n```"
            ),
        )
    ),
    misconceptions=(
        Misconception(
            "the short form",
            lambda D, F, ridge, weight_bytes, activation_bytes: ridge * weight_bytes / 2,
            "That is the limit of large D and F. Try a small matrix.",
        ),
        Misconception(
            "no result",
            lambda D, F, ridge, weight_bytes, activation_bytes: r.critical_batch_exact(
                D, F, ridge, weight_bytes, activation_bytes, 1e-9
            ),
            "Is the result written back?",
        ),
        Misconception(
            "a negative batch",
            lambda D, F, ridge, weight_bytes, activation_bytes: (
                ridge * D * F * weight_bytes / (2 * D * F - ridge * (D + F) * activation_bytes)
            ),
            "What does a batch below zero mean? Look at small matrices.",
        ),
    ),
    smaller="roofline.exact_critical_batch",
)

register(
    ridge_question,
    dot_question,
    relu_question,
    gemm_question,
    attainable_question,
    helps_question,
    depth,
    decode,
    tile,
    precision_for_budget,
    batch_for_budget,
    exact_function,
)
