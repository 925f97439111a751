# %% [markdown]
# # 5. Precision
#
# Your service answers fifty queries a second in fp32. The target is two hundred. "Switch to int8,"
# says a colleague, "a quarter of the bytes, four times the speed." Is it four? And will the answers
# still be right?
#
# The first question has a number for an answer, and you can find it before anybody touches the
# model. The second has been answered by people who tried it on dozens of models, if you can read
# what they published. Forty minutes; you need chapters 2 and 4. The evidence is on the
# [proof page](05_precision_proof.ipynb).

# %% tags=["setup"]
from lightspeed.catalog import accelerator, number
from lightspeed_course import ask, Axis, Bars, Boxes, Chart, figure, job, Line, Points, predict
from lightspeed_course import bench, beside, reveal, Rule, si, Span, table
from lightspeed.precision import *
from lightspeed.quantization import *
from lightspeed.roofline import *

# %%
job.sheet(until="05")

# %% [markdown]
# **First, one from lesson 4.** You'll need it here.

# %%
ask("serving.step_time", seed="again")

# %% [markdown]
# ## Guess first
#
# One guess is about speed, the other about a sum.

# %%
predict("quantization.weight_only_speedup", ..., seed="house")

# %%
predict("precision.sum_of_ones", ..., seed="first")

# %% [markdown]
# ## What is a number made of?
#
# You have four bits for a number: sixteen codes. Which numbers should they stand for? Evenly spaced
# ones would be poor at both ends: too coarse for small numbers, and too few to reach large ones.
# Watch what hardware does with them, power by power.

# %%
from lightspeed_course.explorers.number_line import explore_number_line
from lightspeed_course.explorers.precision import explore, number as written

explore_number_line()

# %% [markdown]
# **Above the smallest numbers, the *step* from one number to the next doubles with every power of
# two, so the largest relative error is the same in each.** This format is called E2M1, for two bits
# of exponent and one of mantissa, beside the bit of the sign. Read one code by hand:
# **{{" ".join(FORMATS["fp4_e2m1"].fields(0b0101))}}**.
#
# - The exponent field is two. A fixed *bias* is taken off, here one, so that there are fields for
#   small powers too: $2^1$.
# - The mantissa bit adds one half of that, if it is set. It is, so the code stands for one and a
#   half times $2^1$: {{written(FORMATS["fp4_e2m1"].decode(0b0101))}}.
#
# Nearly every floating-point format works like this, and differs in how it shares out its bits. (The
# exceptions are at the edges: E4M3 gives the codes of infinity to numbers, and E8M0, made for scales,
# has neither sign nor mantissa.) A code is a sign $s$, an exponent $e$ and a mantissa $f$ of $m$ bits. With the bias $\beta$ it stands for
#
# $$(-1)^s \times \left(1 + \frac{f}{2^m}\right) \cdot 2^{e-\beta}$$
#
# The leading one is not stored. An exponent field of zero means that there is no leading one, and
# that the power is the lowest, that of a field of one. Such numbers are **subnormal**: they fill
# the gap between the smallest normal number and zero.

# %% tags=["holds"]
assert FORMATS["fp4_e2m1"].decode(0b0101) == 1.5 * 2, "and a half times"
assert [FORMATS["bf16"].decode(c) / FORMATS["bf16"].smallest_normal for c in (1, 128)] == [
    2**-7,
    1,
], "power is the lowest"
assert all(
    f.decode((e << f.mantissa_bits) + m) == (1 + m / 2**f.mantissa_bits) * 2.0 ** (e - f.bias)
    for f in FORMATS.values()
    if hasattr(f, "exponent_bits") and f.name != "e8m0"
    for e in (1, f.bias)
    for m in (0, 1)
) and all(
    f.exponent_bits + f.mantissa_bits + 1 == f.bits
    for f in FORMATS.values()
    if hasattr(f, "exponent_bits") and f.name != "e8m0"
), "works like this, and differs in how it shares out its bits"
assert FORMATS["fp8_e4m3"].decode(0b0_1111_000) == 256 < FORMATS["fp8_e4m3"].max and (
    FORMATS["e8m0"].exponent_bits == FORMATS["e8m0"].bits
), "E4M3 gives the codes of infinity to numbers, and E8M0"

# %% [markdown]
# ### Try it
#
# Each box is a bit. Guess before you touch one: what is the largest number of E4M3, and what does
# fp16 stand for with all bits of its exponent set? Then find a subnormal.

# %%
explore()

# %% [markdown]
# ## Range or precision?
#
# So what would you do with sixteen bits? An exponent bit doubles the number of powers, which about
# squares the range. A mantissa bit halves the step. bf16 bought range with its bits, and fp16
# bought precision. In eight bits E5M2 and E4M3 disagree in the same way.

# %% tags=["holds"]
from math import log2

bf16, fp16 = FORMATS["bf16"], FORMATS["fp16"]
assert (
    abs(log2(fp16.max / fp16.smallest_normal) * 2**3 / log2(bf16.max / bf16.smallest_normal) - 1)
    < 0.06
), "about squares the range"
assert fp16.eps * 2 ** (fp16.mantissa_bits - bf16.mantissa_bits) == bf16.eps, "bit halves the step"

# %%
bf16, fp16, e4m3 = FORMATS["bf16"], FORMATS["fp16"], FORMATS["fp8_e4m3"]
compared = {n: FORMATS[n] for n in ("fp32", "bf16", "fp16", "fp8_e5m2", "fp8_e4m3")}
table(
    [
        [n, f.bits, written(f.eps), written(f.smallest_subnormal), written(f.max)]
        for n, f in compared.items()
    ],
    ["format", "bits", "step at one", "smallest above zero", "largest"],
    caption="bf16 reaches nearly as far as fp32, in steps eight times as coarse as those of fp16.",
)

# %% tags=["holds"]
assert bf16.eps == 8 * fp16.eps and 0.99 < bf16.max / FORMATS["fp32"].max < 1, "eight times as"

# %% [markdown]
# What does a number become that is too large for its format? Infinity in some, NaN in others, so a
# cast to fp8 usually *saturates*: it stops at the largest value.
# [proof](05_precision_proof.ipynb#What-the-top-codes-are-for)
#
# ## Is it four times as fast?
#
# You know now what a narrow number is. Your colleague promised speed, so that comes first.
# **Bytes** fall as soon as a tensor is *stored* narrow, but the **peak** rises only if the units
# *compute* narrow. Chapter 2's critical batch tells the two apart. A token brings two operations
# for each weight, and a weight brings $w$ bytes, so a matmul turns compute-bound at a batch of
#
# $$B = \frac{w}{2} \cdot \frac{\text{peak} }{\text{bandwidth} }$$
#
# Half the bytes halve it, and twice the peak doubles it.

# %% tags=["holds"]
assert 2 * critical_batch(100, 1) == critical_batch(100, 2) == critical_batch(200, 2) / 2, (
    "Half the bytes halve it"
)

# %%
h100 = accelerator("h100_sxm")
wide = ridge_point(h100.bf16, h100.hbm_bandwidth)
narrow = ridge_point(h100.fp8, h100.hbm_bandwidth)
turns = critical_batch(wide, 2), critical_batch(wide, 1), critical_batch(narrow, 1)
[round(float(turn)) for turn in turns]

# %% [markdown]
# On an H100 in bf16 that is {{turns[0]:.0f}} tokens. With weights of one byte, widened on their way
# to the units, it is {{turns[1]:.0f}}: beyond that they save no time. If the units compute in eight
# bits too, it is back at {{turns[2]:.0f}}, and everything is twice as fast on either side of it.
#
# One user's query is a single token at a time, far below all three, so the bytes decide. Your
# service runs in fp32, but the kernels that were measured start at bf16, and int8 has half of its
# bytes. Does it take half the time? Here are three that NVIDIA's AIConfigurator measured on an
# H200, one token times a square matrix.

# %% tags=["holds"]
assert turns[1] == turns[0] / 2 and abs(turns[2] / turns[0] - 1) < 1e-3, "back at"
assert (
    matmul_flops(1, 8192, 8192) / matmul_bytes(1, 8192, 8192)
    < ridge_point(accelerator("h200_sxm").bf16, accelerator("h200_sxm").hbm_bandwidth) / 100
), "far below all three"
assert all(
    abs(matmul_bytes(1, 8192, 8192) / matmul_bytes(1, 8192, 8192, weight_bytes=2 / n) / n - 1)
    < 0.001
    for n in (2, 4)
), "int8 has half of"
assert h100.fp8 == 2 * h100.bf16, "everything is twice"

# %%
side, h200 = 8192, accelerator("h200_sxm")
kernels = "matvec_h200_sxm_bf16", "gemm_h200_sxm_int8_weights_m1", "matvec_h200_sxm_int4_weights"
observed = {b: float(number(f"{kernel}.time")) for b, kernel in zip((16, 8, 4), kernels)}


def by_bytes(bits):
    """Seconds to move one token's product, with weights of so many bits."""
    moved = matmul_bytes(1, side, side, weight_bytes=bits / 8)
    return float(transfer_time(moved, h200.hbm_bandwidth))


{bits: si(by_bytes(bits), "s") for bits in observed}

# %% tags=["figure"]
names = ["bf16", "int8 weights", "int4 weights"]
promised_rows = ["int8, promised", "int4, promised"]
bytes_only, times = [by_bytes(b) for b in observed], list(observed.values())
rest, hopes = [t - b for t, b in zip(times, bytes_only)], [times[0] / 2, times[0] / 4]
figure(
    Chart(
        Axis("time of the kernel", "s", domain=(0, 46e-6)),
        Axis(
            scale="category",
            categories=[names[0], promised_rows[0], names[1], promised_rows[1], names[2]],
        ),
        [
            Bars(names, rest, [0, 0, 0], "everything else", [si(r, "s", 2) for r in rest], "grey"),
            Bars(names, times, rest, "bytes", [si(b, "s", 2) for b in bytes_only], "blue"),
            Bars(promised_rows, hopes, [0, 0], "a half, a quarter of the first", (), "orange", 0.3),
        ],
        height=300,
    ),
    caption=f"One token, a matrix of {side:,} by {side:,}, {h200.name}. The blue parts shrink as"
    " promised; the grey one stays.",
    alt="Three bars of time, each a grey part and a blue one, and two thin ones that show what was"
    " promised. The blue part halves from bar to bar, the grey part is about as long in each, and"
    " both narrow kernels take longer than promised.",
)

# %% tags=["holds"]
assert all(abs(a / b / 2 - 1) < 0.001 for a, b in zip(bytes_only, bytes_only[1:])), (
    "The blue parts shrink as promised"
)
assert max(rest) < 1.3 * min(rest), "the grey part is about as long"
assert times[1] > times[0] / 2 and times[2] > times[0] / 4, "kernels take longer than promised"

# %%
reveal("quantization.weight_only_speedup", seed="house")

# %% [markdown]
# Not two and four times as fast, but {{observed[16] / observed[8]:.2f}} and
# {{observed[16] / observed[4]:.1f}} times. A kernel pays some {{si(sum(rest) / 3, "s", 1)}} besides
# its bytes: to start, to fill the memory pipeline and to drain it. As in Amdahl's law, what does
# not shrink sets the limit. And this one number is enough: measure the grey part of the bf16 kernel,
# which you have, and it tells you what the narrow ones will take, on another chip too.
# [proof](05_precision_proof.ipynb#Check:-against-measured-kernels)

# %% [markdown]
# And a large batch, beyond the critical one? There you need narrow *arithmetic*, and it falls
# short as well: the higher a format's peak, the smaller the share that products reach. [proof](05_precision_proof.ipynb#What-narrow-formats-reach-of-their-promise)
#
# ## Where do small numbers go?
#
# Now for the answers. Training shows first what a narrow number can't do. The backward pass starts
# at the loss and sends a *signal* back through the layers: how much the loss changes with each
# number that a layer put out. But the loss is an average over all tokens of the batch, so the
# signal of each token is divided by their number. What is left of it in a large batch?

# %% tags=["holds"]
from lightspeed_course import weigh

gemms = weigh("roofline-gemm")
own = {
    kind: gemms.ratio[
        (gemms.rows["format"] == kind) & (gemms.judged.regime == "compute-bound")
    ].mean()
    for kind in ("bfloat16", "fp8", "nvfp4")
}
assert own["bfloat16"] > own["fp8"] > own["nvfp4"], "the smaller the share"

# %%
tokens, signals = 2**24, [1.0, 0.4]
{f.name: [written(f.round(s / tokens)) for s in signals] for f in (bf16, fp16)}

# %% [markdown]
# With {{si(tokens, "token")}}, a signal of one becomes {{written(1 / tokens)}}, and that is exactly
# the smallest number that fp16 has. A signal four tenths as large is lost: **it becomes zero, and a
# weight that gets zeros learns nothing.** bf16 has plenty of powers left below.
#
# The remedy is cheap. Multiply the loss by a constant, the **loss scale**; by the chain rule every
# gradient grows by it; divide it out when you update the weights, which are kept in a wider format.

# %% tags=["holds"]
assert 1 / tokens == fp16.smallest_subnormal, "exactly the smallest number"
assert fp16.round(0.4 / tokens) == 0, "four tenths as large is lost"
assert bf16.smallest_subnormal < 1e-30 / tokens, "plenty of powers"

# %%
loss_scale = 2.0**16
[float(fp16.round(s / tokens * loss_scale)) * tokens / loss_scale for s in signals]

# %% [markdown]
# Both are back, far enough above the subnormals to keep all bits. [proof](05_precision_proof.ipynb#Small-numbers-vanish) But bf16 has the range of fp32 and no scale
# to choose, and so it took over training. In eight bits the scale returns, one a tensor or a block.
# [proof](05_precision_proof.ipynb#Training-in-eight-bits,-and-in-four)
#
# ## Why do long sums stall?
#
# Range is one way to lose a number. Steps are the other. A sum grows, but its terms do not, and
# once the step of the format is more than twice the term, adding the term changes nothing. At
# exactly twice it is a tie, and a tie goes to the even code. Add ones in bf16, like grains of sand:

# %% tags=["holds"]
assert all(
    abs(fp16.round(s / tokens * loss_scale) * tokens / loss_scale - s) < 0.001 for s in signals
), "Both are back"
assert 0.4 / tokens * loss_scale > fp16.smallest_normal, "far enough above the subnormals"
assert all(bf16.round(2.0**k + 1) == 2.0**k for k in range(9, 100)) and bf16.spacing(2.0**9) > 2, (
    "the term changes nothing"
)
assert bf16.spacing(2.0**8) == 2 and bf16.round(2.0**8 + 1) == 2.0**8, "At exactly twice"

# %% tags=["figure"]
ones, total, reached = range(244, 269), 0.0, {}
for n in range(1, max(ones) + 1):
    total = float(bf16.round(total + 1))
    reached[n] = total
stuck = [n for n in ones if reached[n] != n]
held_numbers = [v for v in range(244, 269) if bf16.round(float(v)) == v]
figure(
    Chart(
        Axis("ones added", domain=(243, 269)),
        Axis("sum in bf16", domain=(243, 269), ticks=[244, 248, 252, 256, 260, 264, 268]),
        [
            Line([243, 269], [243, 269], "exact", "black", dash=True),
            *(Line([243, 269], [v, v], "", "grey", width=0.5) for v in held_numbers),
            Points(list(ones), [reached[n] for n in ones], "sum so far", color="blue"),
            Points(
                stuck, [total + 1] * len(stuck), "one more, before it is rounded", marker="cross"
            ),
        ],
        height=360,
    ),
    caption=f"Grey: the numbers that bf16 has. From {total:.0f} on they are two apart, so each grain"
    " lands halfway and is rounded back.",
    alt=f"Dots climb a dashed diagonal one by one to {total:.0f} and then run level, while crosses one"
    " above them lie between two grey lines.",
)

# %% tags=["holds"]
assert bf16.spacing(total) == 2 and bf16.round(total + 1) == total == 256, "From {} on they are"
assert all(reached[n] == n for n in ones if n <= total) and {reached[n] for n in stuck} == {
    total
}, "one by one to"

# %%
reveal("precision.sum_of_ones", seed="first")

# %% [markdown]
# That is why matrix units multiply narrow numbers and *accumulate in fp32* (**mixed precision**).
# It costs no memory
# traffic, since the sum stays in the unit. In your own code, sums, means and losses want the
# same. (**Stochastic rounding**, up or down by chance, keeps such a sum right on average.)
# [proof](05_precision_proof.ipynb#Long-sums-stall)
#
# ## When does a weight stop learning?
#
# A weight in training is such a sum: a number of ordinary size, to which thousands of small updates
# are added. Keep it in bf16 alone, and an update of less than half a step is taken back by the
# rounding, every time. Half a step of bf16 is {{bf16.eps / 4:.2%}} to {{bf16.eps / 2:.2%}} of the
# weight, and Adam moves a weight by about the learning rate at most. So take a
# weight of ordinary size and a rate for fine-tuning, and watch three ways to round.

# %% tags=["holds"]
halves = [bf16.spacing(w) / 2 / w for w in (1.0, 2 - bf16.eps)]
assert halves[0] == bf16.eps / 2 and abs(halves[1] / (bf16.eps / 4) - 1) < 0.01, (
    "Half a step of bf16 is"
)
assert all(
    bf16.round(w + part * bf16.spacing(w)) == w
    for w in (0.75, 1.25, 3.0)
    for part in (-0.49, -0.1, 0.1, 0.49)
), "less than half a step is taken back by the rounding, every time"

# %%
from lightspeed_course.explorers.roundings import explore_roundings, standing_still

explore_roundings()

# %%
still = {rate: standing_still(rate) for rate in (1e-4, 2e-5, 1e-5)}

# %% [markdown]
# Of weights that are spread as usual, {{still[1e-4]:.0%}} never move at a rate of {{written(1e-4)}},
# {{still[2e-5]:.0%}} at a fifth of it and {{still[1e-5]:.0%}} at a tenth: the smaller the rate, the
# more of them stand still. The loss goes down a little, then no further, and nothing looks broken.
# That is why training in *mixed precision* updates a **master copy** of the weights in fp32 and
# rounds it for the next step; lesson 6.1 pays four bytes a parameter for it. Whoever has no room for
# those rounds at random (**stochastic rounding**), or keeps what was rounded off and adds it to
# the next update, as **Kahan** did with sums.
#
# ## Where does an integer get its range?
#
# Integers are evenly spaced. That is fine within one tensor and hopeless across many, so each
# tensor brings a **scale** of its own, which its numbers share: $x \approx q \cdot s$. Symmetric
# quantization lets the largest magnitude take the largest code, and leaves out the one code that
# has no partner on the other side of zero:
#
# $$s = \frac{\max |x|}{2^{b-1} - 1}, \qquad q = \text{round}\left(\frac{x}{s}\right)$$

# %% tags=["holds"]
assert symmetric_code(-9.0, symmetric_scale(9.0, 8), 127) == -(2**7) + 1, "has no partner"
assert still[1e-4] < still[2e-5] < still[1e-5], "the smaller the rate, the more of them stand still"

# %%
x = [0.5, -1.2, 3.0, -3.0]
scale = symmetric_scale(3.0, 8)
codes = [int(symmetric_code(v, scale, 127)) for v in x]
codes, float(scale)

# %% [markdown]
# The scale is what *one step* is worth: multiply the code by it, and you have the number back. After
# a ReLU half of the codes stand idle; then a
# [zero point](05_precision_proof.ipynb#Zero-points) shifts them. Where weights alone are stored
# so and widened before the product (**weight-only quantization**, as in int4), **GPTQ** chooses the
# codes, **AWQ** the scales, **NF4** spaces them like a bell curve, and **GGUF** files mix widths.

# %% tags=["holds"]
assert all(abs(code * scale - v) <= scale / 2 + 1e-12 for code, v in zip(codes, x)), (
    "multiply the code by it, and you have the number back"
)
assert sum(q < 0 for q in range(-max(codes), max(codes) + 1)) == max(codes), "half of the codes"

# %% [markdown]
# ## What does one outlier cost?
#
# Each further bit halves the step and with it the error, so the *power* of the error, its square,
# falls to a quarter. But the largest number sets the step for *all* that share its scale. Look what a single
# one does.

# %% tags=["holds"]
assert abs(10 ** ((sqnr_law(9) - sqnr_law(8)) / 10) - 4) < 1e-9, "its square, falls to a quarter"
assert 1.99 < symmetric_scale(1.0, 8) / symmetric_scale(1.0, 9) < 2.01, "halves the step"
assert symmetric_scale(2.0, 8) == 2 * symmetric_scale(1.0, 8), "sets the step for"

# %% tags=["figure"]
from statistics import NormalDist

dots = [NormalDist().inv_cdf((i + 0.5) / 200) for i in range(200)]
largest, times_larger, block = max(dots), 100, 32
heights = [0.3 + 0.4 * ((i * 0.618) % 1) for i in range(200)]


def ticks_and_dots(most, title):
    """The numbers as they are, above the values that int8 has for them."""
    step = float(symmetric_scale(most, 8))
    kept = sorted({round(v / step) for v in dots})
    there = [k * step for k in range(-127, 128) if abs(k * step) <= 1.1 * largest]
    marks = [
        Points(there, [0.12] * len(there), "what int8 can store", color="orange", size=3),
        Points(dots, heights, "the numbers", color="blue", size=3),
    ]
    across = Axis("value", domain=(-3.4, 3.4))
    return len(kept), Chart(across, Axis(domain=(0, 0.85), ticks=()), marks, title, height=170)


fine, without = ticks_and_dots(largest, "their own scale")
coarse, with_one = ticks_and_dots(times_larger * largest, "one scale with an outlier, far right")
figure(
    [without, with_one],
    caption=f"{len(dots)} numbers and what int8 has for them: {fine} different values above. Below, one"
    f" more number is {times_larger} times as large, and {coarse} values are left for all the others.",
    alt="Two panels of dots over a row of ticks. Above, the ticks stand close together; below, only"
    " three ticks are left under the same dots.",
)

# %% tags=["holds"]
assert fine > 60 and coarse == 3, "only three ticks are left"

# %% [markdown]
# **Every doubling of the peak costs all of them a bit.** Activations of language models have such
# outliers, in a few fixed channels (Dettmers et al., 2022). So let fewer numbers share a scale: one
# for each output channel of the weights costs next to nothing more, and one for each block of a few
# dozen confines the outlier to its neighbours. Or move it: **SmoothQuant** hands a channel's
# factor to the weights.
# [proof](05_precision_proof.ipynb#Share-the-scale-with-fewer)
#
# The scales are bytes too. If {{block}} weights of four bits share a scale that has sixteen, each
# weight really takes {{bits_per_weight(4, 16, block):g}} bits, not four.
# [proof](05_precision_proof.ipynb#Blocks:-true-bits-per-weight)
#
# ## Will the answers still be right?
#
# Now round the weights of a real model, give it real text, and look how far its probabilities for
# the next word move. The usual measure is the **KL divergence** from the model as it was: zero if
# nothing moves, and for small shifts it grows as their square, so as the *power* of the rounding
# error. You know what a bit does to that: take one away, and the power is four times as large. So
# should the divergence be.

# %% tags=["holds"]
import math

assert all(
    abs(sqnr_law(8, p) - sqnr_law(8, 2 * p) - sqnr_law(9) + sqnr_law(8)) < 1e-9 for p in (1, 4, 64)
), "Every doubling of the peak costs all of them"
assert bits_per_weight(4, 16, 32) == 4.5 and block == 32, "bits, not four"
assert bits_per_weight(8, 16, 1024) - 8 < 0.02 < bits_per_weight(8, 16, 32) - 8, (
    "next to nothing more"
)
moved = [0.5 * math.log(0.25 / (0.25 - shift**2)) for shift in (bf16.eps, 2 * bf16.eps)]
assert abs(moved[1] / moved[0] - 4) < 0.01, "for small shifts it grows as their square"

# %% tags=["setup"]
import math
from statistics import linear_regression, median, quantiles

from lightspeed_models.accuracy import compared_recipes, scores

kl = {m: [s for s in scores("kld") if s.model == m] for m in ("Llama-3-8B", "Llama-2-7B")}

# %%
slopes = {
    m: math.exp(-linear_regression([s.bits for s in of], [math.log(s.value) for s in of])[0])
    for m, of in kl.items()
}
kinds = {
    "fp8": "FP8", "int8": "INT8 W8A8", "caches in int8": "KV INT8", "Q4_K_M": "GGUF Q4_K_M",
    "NVFP4": "NVFP4", "int4 weights": "INT4", "caches in int4": "KV INT4", "MXFP4": "MXFP4",
    "int3 weights": "INT3", "int2 weights": "INT2",
}  # fmt: skip
easy, many = ("MMLU", "GSM8K"), "long reasoning, or code"
of_kind = {name: [s for s in scores(bits=key) if not s.plain] for name, key in kinds.items()}
common = {name: [s for s in of if s.test in easy] for name, of in of_kind.items()}
place = {name: float(len(kinds) - i) for i, name in enumerate(kinds)}
left = {name: median(s.left for s in of) for name, of in common.items()}
tenths = {
    name: quantiles([s.left for s in of], n=10, method="inclusive")[::8]
    for name, of in common.items()
}
noise = {test: median(s.noise for s in scores() if s.test == test) for test in easy}

# %% tags=["figure"]


def strip(test, color):
    """The dots of a test, or of all long ones, a little apart so that few lie on another."""
    dots = [
        (s.left, place[name] + 0.5 * ((i * 0.618) % 1 - 0.5))
        for name, of in of_kind.items()
        for i, s in enumerate(of)
        if s.test == test or (test == many and s.long)
    ]
    return Points(*zip(*dots), test, color=color, size=3)


six = next(s for s in kl["Llama-3-8B"] if s.format.endswith("Q6_K"))
law = [six.value * 4 ** (six.bits - b) for b in (9, 3)]
above = [
    Points([s.bits for s in of], [s.value for s in of], model, color=color)
    for (model, of), color in zip(kl.items(), ("blue", "orange"))
]
boxes = [(*tenths[name], at - 0.4, at + 0.4) for name, at in place.items()]
figure(
    [
        Chart(
            Axis("bits a weight", domain=(9, 2.8)),
            Axis("KL divergence", scale="log", domain=(1e-4, 2)),
            [Line([9, 3], law, "four times a bit", "black", dash=True), *above],
            "how far the probabilities move", height=240,
        ),
        Chart(
            Axis("of the score is left", "%", domain=(0.6, 1.1)),
            Axis(domain=(0.3, 10.7), ticks=[(at, name) for name, at in place.items()]),
            [
                Span(x=(1 - 2 * noise["GSM8K"], 1 + 2 * noise["GSM8K"]), label="GSM8K's own noise"),
                Boxes(*zip(*boxes), "four fifths of MMLU and GSM8K", color="grey", soft=True),
                *map(strip, (*easy, many), ("blue", "green", "orange")),
                Rule(x=1),
            ],
            "how many answers stay right", height=420,
        ),
    ],
    caption="Above, formats of llama.cpp on one text. Below, a dot is one model on one test, beside"
    " its own score in sixteen bits in the same table; what was merely rounded is left out. No"
    " stretch above is flat. Below, the middle of each row down to four bits stays near the line,"
    " MXFP4 aside, and with three and two bits it is far from it.",
    alt="Above, dots of two models rise from left to right beside a straight dashed line, on a"
    " logarithmic axis. Below, ten strips of dots: those of eight bits are centred on the line,"
    " those of four bits a little left of it, MXFP4, int3 and int2 far left.",
)  # fmt: skip

# %% [markdown]
# And so it nearly is: {{slopes["Llama-3-8B"]:.1f}} times for each bit in Llama 3 8B,
# {{slopes["Llama-2-7B"]:.1f}} in Llama 2 7B. (Some tensors have more bits than others, which may
# make the difference.) No stretch is flat, so there is no width at which rounding begins
# to matter. And yet the right answers hardly move down to four bits, and then fall. **The cliff
# belongs to the test.** A multiple-choice answer changes only when the shift passes the margin by
# which the right choice was ahead, and most margins are wide. What does a format cost, then?

# %% tags=["holds"]
assert 2.5 < min(slopes.values()) and max(slopes.values()) < 4, "And so it nearly is"
assert all(
    a.value < b.value
    for of in kl.values()
    for line in [sorted(of, key=lambda s: -s.bits)]
    for a, b in zip(line, line[1:])
), "No stretch is flat, so there is no width"
assert (
    all(left[n] > 0.97 for n in list(kinds)[:7])
    and max(left[n] for n in ("MXFP4", "int3 weights", "int2 weights")) < 0.95
), "right answers hardly move down to four bits, and then fall"

# %% tags=["figure"]
rows = {
    "fp8": "fp8, weights and activations", "int8": "int8, weights and activations",
    "int4 weights": "int4 weights (GPTQ, AWQ, AutoRound)", "NVFP4": "NVFP4, weights and activations",
    "MXFP4": "MXFP4, the same, simulated", "int3 weights": "int3 weights",
    "caches in int8": "caches in int8", "caches in int4": "caches in int4",
}  # fmt: skip
scored = [[text, left[n], common[n], tenths[n]] for n, text in rows.items()]
table(
    [
        [text, f"{middle:.1%}", f"{low:.1%}", f"{min(s.left for s in of):.1%}",
         f"{len(of)} ({len({s.model for s in of})})"]
        for text, middle, of, (low, _) in scored
    ],
    ["format", "of the score left", "nine in ten above", "worst", "scores (models)"],
    caption="MMLU and GSM8K, as makers of formats and engines published them.",
)  # fmt: skip

# %% tags=["setup"]
sizes = {"small": (0, 6e9), "large": (1e10, 1e12)}  # assumed
on_mmlu = [s for s in common["int4 weights"] if s.test == "MMLU"]
sized = {n: median(s.left for s in on_mmlu if low <= s.parameters < high)
         for n, (low, high) in sizes.items()}  # fmt: skip

# %% tags=["setup"]
hard = median(s.left for s in of_kind["int4 weights"] if s.long)
sure = 2 + NormalDist().inv_cdf(0.8)
fp8_least = sorted(common["fp8"], key=lambda s: s.left)[:2]
points = {n: sum(s.value - s.baseline for s in of) / len(of) for n, of in common.items()}
pairs = compared_recipes(easy)
quiet = sum(abs(s.left - 1) <= 2 * s.noise for s in common["fp8"]) / len(common["fp8"])

# %% [markdown]
# The worst of fp8, {{fp8_least[0].left:.1%}} of GSM8K in {{fp8_least[0].model}}, doesn't fit the rest. It
# is one of the smallest models here, and its makers gave each tensor one scale, fixed beforehand; which
# of the two did it is not known. (Of the next worst, {{fp8_least[1].model}}, the same document prints
# another score for sixteen bits elsewhere.)
#
# Three things decide as much as the width. **The recipe**: in all of the {{len(pairs)}} published
# comparisons within one table, weights that were fitted to real text (or to their own errors) keep
# more than weights merely rounded to nearest. And four-bit *arithmetic* costs more than four-bit
# weights: {{-points["NVFP4"]:.1f}} points in NVFP4 and {{-points["MXFP4"]:.1f}} in MXFP4 against
# {{-points["int4 weights"]:.1f}} ([proof](05_precision_proof.ipynb#Formats-of-real-models)). **The
# size**: int4 weights leave {{sized["small"]:.1%}} of MMLU to models of fewer than six billion
# parameters, {{sized["large"]:.1%}} to those of more than ten. **The task**: on long reasoning and
# code they leave {{hard:.1%}}.
#
# ## How many questions does your own test need?
#
# Most single dots say nothing: {{quiet:.0%}} of those of fp8 lie within their own test's noise. So put
# the same questions to both versions of your model, and count those that one gets right and the
# other wrong. The share of such *changed* answers is all that matters: with $n$ questions the
# difference has a standard error of $\sqrt{\text{changed}/n}$, and a loss stands out at twice that:
#
# $$n = \text{changed} \cdot \left(\frac{2}{\text{loss} }\right)^2$$
#
# To see a point lost, if one answer in twenty changes, takes
# {{questions_to_see(0.01, 0.05):,.0f}} questions. But that loss lies *just* at twice its error, and
# chance shows less as often as more, so you'd miss it every other time: the test has a **power** of one
# half. To see it in four cases of five, it has to lie {{sure:.2f}} errors from zero, which takes
# {{questions_to_see(0.01, 0.05, sure):,.0f}} questions, twice as many.
#
# If you compare scores of two separate runs, $2p(1-p)$ of the answers may differ by luck alone, and at
# eight right in ten it takes {{questions_to_see(0.01, 2 * 0.8 * 0.2):,.0f}} even for a power of one
# half. HumanEval has {{next(s.questions for s in scores() if s.test == "HumanEval")}}.

# %% tags=["holds"]
assert max(points["NVFP4"], points["MXFP4"]) < points["int4 weights"], (
    "four-bit *arithmetic* costs more than four-bit weights"
)
assert len(pairs) > 10 and all(fitted > plain for fitted, plain in pairs), (
    "comparisons within one table, weights that were fitted to real text"
)
assert sized["small"] < sized["large"] < 1 and hard < left["int4 weights"], (
    "on long reasoning and code they leave"
)
assert quiet > 0.8, "Most single dots say nothing"
by_chance = NormalDist().cdf
assert abs(by_chance(2 - 2) - 1 / 2) < 1e-9, "the test has a **power** of one"
assert abs(by_chance(sure - 2) - 0.8) < 1e-9, "To see it in four cases of five"
assert 1.9 < questions_to_see(0.01, 0.05, sure) / questions_to_see(0.01, 0.05) < 2.1, "twice as many"
assert [s.method for s in fp8_least] == ["static per tensor"] * 2 and fp8_least[0].parameters < 1e9, (
    "is one of the smallest models here, and its makers gave each tensor one scale"
)
assert len({
    s.baseline for s in scores()
    if (s.model, s.test, s.source) == (fp8_least[1].model, "GSM8K", fp8_least[1].source)
}) > 1, "the same document prints another score for sixteen bits elsewhere"
assert questions_to_see(0.01, 2 * 0.8 * 0.2) > 6 * questions_to_see(0.01, 0.05), (
    "may differ by luck alone"
)

# %% [markdown]
# ## The job: weights or caches?
#
# Back to the replica of chapter 4. It answers {{job.replica().rate:.1f}} requests a second at most, if
# each token may take {{si(job.BUDGET, "s")}}. You may store its weights in one byte in place of two, or
# its caches. Which?

# %%
replica = job.replica()
stored = {"as it is": (2, 2), "weights": (1, 2), "caches": (2, 1), "both": (1, 1)}
promised = {name: job.replica(*widths) for name, widths in stored.items()}
alone_layer = 5e-3  # assumed: the forward pass of a layer, timed on one GPU of the job
{name: round(promise.rate, 1) for name, promise in promised.items()}

# %% tags=["figure"]
rows = [f"{name}: {p.rate:.1f} a second" for name, p in promised.items()]
step = [p.batch / (job.ANSWER * p.rate) for p in promised.values()]
rate_of_memory = job.PER_NODE * h100.hbm_bandwidth
caches = [p.batch * p.per_token * job.LONG / rate_of_memory for p in promised.values()]
shared = [t - c for t, c in zip(step, caches)]
said = [f"{p.batch:.0f} caches, {si(c, 's')}" for p, c in zip(promised.values(), caches)]
figure(
    Chart(
        Axis("time of a step", "s", domain=(0, 0.021)),
        Axis(scale="category", categories=rows),
        [
            Bars(
                rows,
                shared,
                [0] * 4,
                "weights, or arithmetic if it is longer",
                [si(s, "s", 2) for s in shared],
                "blue",
            ),
            Bars(rows, step, shared, "caches", said, "orange"),
            Rule(x=job.BUDGET, label="promised"),
        ],
        height=300,
    ),
    caption=f"What fills {si(job.BUDGET, 's')} of the replica, with weights, caches or both in one"
    " byte. Only narrow caches let twice as many users into the same step.",
    alt="Four bars of equal length, a short blue part and a long orange one. With narrow weights the"
    " blue part shrinks and a few more caches fit; with narrow caches twice as many do.",
)

# %% tags=["holds"]
kept_at_once = [p.batch for p in promised.values()]
assert [b > 1.9 * kept_at_once[0] for b in kept_at_once] == [False, False, True, True], (
    "Only narrow caches"
)
assert max(step) < 1.01 * min(step) and all(b < c for b, c in zip(shared, caches)), (
    "Four bars of equal length"
)
assert kept_at_once[2] == 2 * kept_at_once[0] and shared[1] < shared[0], "twice as many do"

# %% [markdown]
# Somebody alone would say the weights: their token comes after
# {{si(promised["weights"].alone, "s")}} instead of {{si(replica.alone, "s")}}, because a lone step
# reads little else. But you promised {{si(job.BUDGET, "s")}} to many, and a full step
# spends about a quarter of its time on weights. The rest reads {{replica.batch:.0f}} caches. So
# narrow weights bring {{promised["weights"].rate:.1f}} a second in place of {{replica.rate:.1f}},
# and no narrower ones bring more, because now the arithmetic takes longer than reading them.
# Narrow caches double it, to {{promised["caches"].rate:.1f}}; then weights only *stored* narrow add next
# to nothing. Multiplied so, too, they come to {{job.replica(1, 1, peak=2).rate:.1f}}.
#
# And the {{job.RUNNING}} days of training? Products in TF32, which PyTorch offers for fp32, have half of
# the peak, so a week would become two. But then a layer would take at least
# {{si(2 * job.layer(job.SEQUENCE).math, "s")}}, and in the profile of one GPU it takes
# {{si(alone_layer, "s")}}. Strike wide products off.
#
# So **ask what the step reads before you choose a format.** Do the answers survive **KV cache quantization**? Caches in int8
# left {{left["caches in int8"]:.1%}} of the scores above, though no test with a very long text is
# among those.

# %% tags=["holds"]
assert shared[0] / step[0] < 0.3 and abs(shared[0] / step[0] - 1 / 4) < 0.02, "about a quarter of"
assert (
    job.weights() * promised["weights"].batch / (job.PER_NODE * h100.bf16)
    > job.weights() / 2 / rate_of_memory
), "arithmetic takes longer"
assert abs(promised["caches"].rate / replica.rate - 2) < 0.01, "Narrow caches double it"
assert promised["both"].rate < 1.01 * promised["caches"].rate, "add next to nothing"
assert job.weights() / rate_of_memory > 0.95 * replica.alone, "a lone step"
assert h100.tf32 * 2 == h100.bf16 and 1.8 * job.WEEK < job.RUNNING < 2.2 * job.WEEK, (
    "have half of the peak, so a week would become two"
)
assert job.layer(job.SEQUENCE).math < alone_layer < 2 * job.layer(job.SEQUENCE).math, (
    "in the profile of one GPU it takes"
)

# %% [markdown]
# ## Decide

# %%
ask("quantization.which_int8", seed="page")

# %%
ask("quantization.weights_or_cache", seed="here")

# %%
ask("precision.loss_scale", seed="chapter")

# %%
ask("quantization.bits_per_weight", seed="chapter")

# %%
ask("quantization.questions_needed", seed="chapter")

# %% [markdown]
# ## Back to the service
#
# It answers fifty queries a second in fp32, and should answer two hundred. Say that each of its
# kernels is the product of one token with a matrix, as measured above, and pays the same grey part.

# %%
rate_now, fixed = 50, sum(rest) / 3


def kernel_time(bits, queries=1):
    moved = matmul_bytes(queries, side, side, weight_bytes=bits / 8)
    return transfer_time(moved, h200.hbm_bandwidth, latency=fixed)


served = {
    f"{kind}{bits}": rate_now * kernel_time(32) / kernel_time(bits)
    for kind, bits in (("bf", 16), ("int", 8), ("int", 4))
}
together = 2 * rate_now * kernel_time(32) / kernel_time(8, queries=2)
{name: round(float(rate)) for name, rate in served.items()}

# %% [markdown]
# **Is it four times?** No. int8 comes to {{served["int8"]:.0f}} queries a second,
# {{served["int8"] / rate_now:.1f}} times the rate, and misses the target of two hundred.
# {{(served["bf16"] - rate_now) / (served["int8"] - rate_now):.0%}} of that gain is there with bf16
# already. int4 would pass, at {{served["int4"]:.0f}}.
#
# **What would get you there?** Serve two queries together. Below the critical batch they share one
# reading of the weights, and int8 answers {{together:.0f}} a second. And once the replica is full
# of users with long contexts, look at the caches first.
#
# **Will the answers still be right?** Nearly all of them. On the tests above fp8 and well-made int8
# cost less than half a point on average, int4 weights one to two points, and more with small
# models, long reasoning and code. Measure yours with the same questions before and after, and
# enough of them to see the loss that you would mind.

# %% tags=["holds"]
assert served["int8"] < 200 < served["int4"], "target of two hundred"
assert served["int8"] / rate_now < 3, "there with bf16 already"
assert 0 > min(points["fp8"], points["int8"]) > -0.5 and -2 < points["int4 weights"] < -1, (
    "fp8 and well-made int8 cost less than half a point on average, int4 weights one to two points"
)
assert together > 200 and critical_batch(ridge_point(h200.bf16, h200.hbm_bandwidth), 1) > 2, (
    "Below the critical batch"
)

# %% [markdown]
# ## Remember

# %% [markdown] tags=["takeaway"]
# - Fewer bytes help where bytes decide; a higher peak helps only if the units compute narrow.
# - One bit less is about four times the rounding noise: the probabilities of a model feel each bit,
#   its right answers only the last few.
# - A replica full of long contexts reads caches above all, so narrow those first; with short ones,
#   narrow arithmetic brings more.

# %% tags=["holds"]
few, many = (
    [
        time_bounds(2 * side**2 * b, w * side**2, peak, h100.hbm_bandwidth).lower
        for w, peak in ((2, h100.bf16), (1, h100.bf16), (1, h100.fp8))
    ]
    for b in (1, 2048)
)
assert few[1] == few[2] == few[0] / 2 and many[0] == many[1] == 2 * many[2], "Fewer bytes help"
assert all(2.5 < slope < 4.5 for slope in slopes.values()) and all(
    left[n] > 0.97 for n in list(kinds)[:7]
), "the probabilities of a model feel each bit, its right answers only the last few"
assert caches[0] > 2 * shared[0] and all(
    job.replica(2, 1, n).rate > job.replica(1, 2, n).rate for n in (4096, 8192, 32_768)
), "A replica full of long contexts reads caches above all, so narrow those first"
assert all(
    job.replica(1, 2, n, peak=2).rate > 1.2 * job.replica(2, 1, n).rate for n in (300, 500)
), "with short ones, narrow arithmetic brings more"

# %% [markdown] tags=["card"]
# | formula | what it says | unit | for the job |
# |---|---|---|---|
# | $(-1)^s\,(1 + f/2^m)\,2^{e-\beta}$ | value of a code | | at most {{e4m3.max:g}} in E4M3 |
# | $\max \lvert x \rvert / (2^{b-1} - 1)$ | what one step of an integer is worth | of $x$ | a step is {{scale / max(x):.1%}} of the largest |
# | ${{sqnr_law(9) - sqnr_law(8):.2f}}\,b + {{sqnr_law(8, 1) - 8 * (sqnr_law(9) - sqnr_law(8)):.2f}} - \text{crest}$ | signal over rounding noise, with the peak over the rms as crest | dB | {{sqnr_law(8, 4):.0f}} in int8, if the peak is four times the rms |
# | $w/2 \cdot \text{peak} / \text{bandwidth}$ | critical batch for weights of $w$ bytes | token | {{turns[0]:.0f}} in bf16, {{turns[1]:.0f}} with weights of one byte |
# | $\text{changed} \cdot (2/\text{loss})^2$ | questions that show a loss every other time; twice as many, four times in five | | {{questions_to_see(0.01, 0.05):,.0f}} for a point, if one answer in twenty changes |
# | $b + \text{scale} / \text{block}$ | true bits of a weight | bit | {{bits_per_weight(4, 16, block):g}} for four bits in blocks of {{block}} |

# %% [markdown]
# ## In your own framework
#
# Three of this lesson's surprises, on any machine. The same sum does not stall in `sum()`, because that
# adds up in more bits than it stores.

# %% tags=["figure"]
beside("05_formats")

# %% [markdown]
# ## One reading
#
# Here is the course's job, below its plan. Which suspect does its profile rule out?

# %%
bench("05")

# %% [markdown]
# ## Exercises, and on
#
# [The exercises](../exercises/05_precision.ipynb) have a decoder, a rounding function and a
# quantizer to write. Next the job is
# [trained](06_parallelism.ipynb), and dies in its first step.
#
# ## Further reading
#
# - Micikevicius et al., *Mixed precision training* (2018): loss scaling and master weights.
# - Xiao et al., *SmoothQuant* (2023): how to live with outliers.
