# %% [markdown]
# # 5. Precision
#
# Your service answers fifty queries a second in fp32. The target is two hundred. "Switch to int8,"
# says a colleague, "a quarter of the bytes, four times the speed." Is it four? And will the answers
# still be right?
#
# The first question has a number for an answer, and you can find it before anybody touches the
# model. For the second you can find out what to look for. Thirty-five minutes; you need chapters 2
# and 4. The evidence is on the [proof page](05_precision_proof.ipynb).

# %% tags=["setup"]
from lightspeed.catalog import accelerator, number
from lightspeed_course import ask, Axis, Bars, Chart, figure, job, Line, Points, predict, reveal
from lightspeed_course import bench, beside, Rule, si, table
from lightspeed.precision import *
from lightspeed.quantization import *
from lightspeed.roofline import *

# %%
job.sheet(until="05")

# %% [markdown]
# ## Guess first
#
# One guess is about speed, the other about a sum. Write them down before you go on; a wrong one is
# worth more than none.

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
    f.decode(c) == (1 + f.decode(c) / 2 ** (e - f.bias) - 1) * 2.0 ** (e - f.bias)
    for f, c, e in [(FORMATS["fp8_e4m3"], 0b0_0111_010, 7), (FORMATS["fp16"], 15 << 10, 15)]
) and all(
    f.exponent_bits + f.mantissa_bits + 1 == f.bits
    for f in FORMATS.values()
    if hasattr(f, "exponent_bits") and f.name != "e8m0"
), "works like this, and differs in how it shares out its bits"
assert FORMATS["fp8_e4m3"].decode(0b0_1111_000) == 256 < FORMATS["fp8_e4m3"].max and (
    FORMATS["e8m0"].exponent_bits == FORMATS["e8m0"].bits
), "E4M3 gives the codes of infinity to numbers, and E8M0"

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
    " promised. The blue part halves from bar to bar, the grey part is nearly as long in each, and"
    " both narrow kernels take longer than promised.",
)

# %% tags=["holds"]
assert all(abs(a / b / 2 - 1) < 0.001 for a, b in zip(bytes_only, bytes_only[1:])), (
    "The blue parts shrink as promised"
)
assert max(rest) < 1.3 * min(rest), "the grey part is nearly as long"
assert times[1] > times[0] / 2 and times[2] > times[0] / 4, "kernels take longer than promised"

# %%
reveal("quantization.weight_only_speedup", seed="house")

# %% [markdown]
# Not two and four times as fast, but {{observed[16] / observed[8]:.2f}} and
# {{observed[16] / observed[4]:.1f}} times. A kernel pays some {{si(sum(rest) / 3, "s", 1)}} besides
# its bytes: to start, to fill the memory pipeline and to drain it. As in Amdahl's law, what does
# not shrink sets the limit. It is also all you need to know: take the grey part from the bf16
# kernel alone, and it predicts the others, on another chip too.
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
# Both are back, and far enough above the subnormals to keep all their bits. A small network that
# can't be trained in plain fp16 trains in scaled fp16 as it does in bf16.
# [proof](05_precision_proof.ipynb#Small-numbers-vanish) But bf16 has the range of fp32 and no scale
# to choose, and so it took over training. In eight bits the scale returns, one for each tensor.
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
# That is why matrix units multiply narrow numbers and *accumulate in fp32*. It costs no memory
# traffic, since the sum stays in the unit. In your own code, sums, means and losses want the same.
# [proof](05_precision_proof.ipynb#Long-sums-stall)
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

# %%
x = [0.5, -1.2, 3.0, -3.0]
scale = symmetric_scale(3.0, 8)
codes = [int(symmetric_code(v, scale, 127)) for v in x]
codes, float(scale)

# %% [markdown]
# The scale is what *one step* is worth. Whoever multiplies the code by the largest magnitude
# instead is off by a factor of {{max(codes)}}, and that happens. After a ReLU nothing is negative,
# and half of the codes stand idle; then a *zero point* shifts them.
# [proof](05_precision_proof.ipynb#Zero-points)

# %% tags=["holds"]
assert abs(scale * max(codes) - max(map(abs, x))) < 1e-12 and max(codes) == FORMATS["int8"].max, (
    "by a factor of"
)
assert sum(q < 0 for q in range(-max(codes), max(codes) + 1)) == max(codes), "half of the codes"

# %% [markdown]
# ## What does one outlier cost?
#
# Each further bit halves the step and with it the error. In decibels, ten times the decimal
# logarithm of the signal's power over that of the error, a bit is always worth
# {{sqnr_law(9) - sqnr_law(8):.2f}}. But the largest number sets the step for *all* that share its
# scale. Look what a single one does.

# %% tags=["holds"]
assert abs(sqnr_law(9) - sqnr_law(8) - sqnr_law(3) + sqnr_law(2)) < 1e-9, "a bit is always worth"
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
# dozen confines the outlier to its neighbours.
# [proof](05_precision_proof.ipynb#Share-the-scale-with-fewer)
#
# The scales are bytes too. Four bits with a scale of sixteen for each {{block}} are
# {{bits_per_weight(4, 16, block):g}} bits, not four. And products of codes are summed in int32 or
# fp32, because long sums stall. [proof](05_precision_proof.ipynb#A-real-int8-matmul)
#
# ## Will the answers still be right?
#
# Accuracy stays flat for a while and then falls off a cliff. A small network loses nothing that a
# test could see with weights in eight bits, a little in four, and more than a third of its right
# answers in two. [proof](05_precision_proof.ipynb#Will-the-answers-still-be-right?) Every model
# falls off somewhere; only your own test set can tell you where.
#
# ## The job: weights or caches?
#
# Back to the replica of chapter 4. It answers {{job.replica().rate:.1f}} requests a second at most, if
# each token may take {{si(job.BUDGET, "s")}}. You may store its weights in one byte in place of two, or
# its caches. Which?

# %% tags=["holds"]
assert abs(sqnr_law(8, 4) - sqnr_law(8, 8) - sqnr_law(9) + sqnr_law(8)) < 1e-9, "costs all of them"
assert bits_per_weight(4, 16, 32) == 4.5 and block == 32, "not four"
assert bits_per_weight(8, 16, 1024) - 8 < 0.02 < bits_per_weight(8, 16, 32) - 8, (
    "next to nothing more"
)

# %%
replica = job.replica()
stored = {"as it is": (2, 2), "weights": (1, 2), "caches": (2, 1), "both": (1, 1)}
promised = {name: job.replica(*widths) for name, widths in stored.items()}
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
# Somebody alone on the replica would say the weights. Their token comes after
# {{si(promised["weights"].alone, "s")}} instead of {{si(replica.alone, "s")}}, because a lone step
# reads almost nothing else. But you promised {{si(job.BUDGET, "s")}} to many, and a full step
# spends about a quarter of its time on weights. The rest reads {{replica.batch:.0f}} caches. So
# narrow weights bring {{promised["weights"].rate:.1f}} a second in place of {{replica.rate:.1f}},
# and no narrower ones would bring more, because now the arithmetic takes longer than reading them.
# Narrow caches double it, to {{promised["caches"].rate:.1f}}, and after that narrow weights add
# next to nothing.
#
# So **ask what the step reads before you choose a format.** Whether the answers survive caches in
# one byte is again for your test set to say. And fp8 for the training week, where arithmetic
# decides? Chapter 6 comes back to that.

# %% tags=["holds"]
assert shared[0] / step[0] < 0.3 and abs(shared[0] / step[0] - 1 / 4) < 0.02, "about a quarter of"
assert (
    job.weights() * promised["weights"].batch / (job.PER_NODE * h100.bf16)
    > job.weights() / 2 / rate_of_memory
), "the arithmetic takes longer"
assert abs(promised["caches"].rate / replica.rate - 2) < 0.01, "Narrow caches double it"
assert promised["both"].rate < 1.01 * promised["caches"].rate, "add next to nothing"
assert job.weights() / rate_of_memory > 0.95 * replica.alone, "a lone step"

# %% [markdown]
# ## Try it
#
# Each box is a bit. Guess before you touch one: what is the largest number of E4M3, and what does
# fp16 stand for with all bits of its exponent set? Then find a subnormal.

# %%
explore()

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
# already. int4 would pass, at {{served["int4"]:.0f}}, and in the small network of the proof page it
# cost right answers.
#
# **What would get you there?** Serve two queries together. Below the critical batch they share one
# reading of the weights, and int8 answers {{together:.0f}} a second. And once the replica is full
# of users with long contexts, look at the caches first.
#
# **Will the answers still be right?** With weights in eight bits and a scale for each channel, most
# likely: the network of the proof page lost nothing that its test could see. It is outliers in the
# activations that you should look for, and your own task that has to say.

# %% tags=["holds"]
assert served["int8"] < 200 < served["int4"], "target of two hundred"
assert served["int8"] / rate_now < 3, "there with bf16 already"
assert together > 200 and critical_batch(ridge_point(h200.bf16, h200.hbm_bandwidth), 1) > 2, (
    "Below the critical batch"
)

# %% [markdown]
# ## Remember

# %% [markdown] tags=["takeaway"]
# - Fewer bytes help where bytes decide; a higher peak helps only if the units compute narrow.
# - A format gives either range or precision, and a shared scale buys range for integers.
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
assert caches[0] > 2 * shared[0] and all(
    job.replica(2, 1, n).rate > job.replica(1, 2, n).rate for n in (4096, 8192, 32_768)
), "A replica full of long contexts reads caches above all, so narrow those first"
assert all(job.replica(1, 2, n, peak=2).rate > 1.2 * job.replica(2, 1, n).rate for n in (300, 500)), (
    "with short ones, narrow arithmetic brings more"
)

# %% [markdown] tags=["card"]
# | formula | what it says | unit | for the job |
# |---|---|---|---|
# | $(-1)^s\,(1 + f/2^m)\,2^{e-\beta}$ | value of a code | | at most {{e4m3.max:g}} in E4M3 |
# | $\max \lvert x \rvert / (2^{b-1} - 1)$ | what one step of an integer is worth | of $x$ | a step is {{scale / max(x):.1%}} of the largest |
# | ${{sqnr_law(9) - sqnr_law(8):.2f}}\,b + {{sqnr_law(8, 1) - 8 * (sqnr_law(9) - sqnr_law(8)):.2f}} - \text{crest}$ | signal over rounding noise, with the peak over the rms as crest | dB | {{sqnr_law(8, 4):.0f}} in int8, if the peak is four times the rms |
# | $w/2 \cdot \text{peak} / \text{bandwidth}$ | critical batch for weights of $w$ bytes | token | {{turns[0]:.0f}} in bf16, {{turns[1]:.0f}} with weights of one byte |
# | $b + \text{scale} / \text{block}$ | true bits of a weight | bit | {{bits_per_weight(4, 16, block):g}} for four bits in blocks of {{block}} |

# %% [markdown]
# ## In your own framework
#
# Three of this lesson's surprises, on any machine: what a number becomes in eight bits, what
# overflows in sixteen, and a sum that stalls. The same sum does not stall in `sum()`, because that
# adds up in more bits than it stores.

# %% tags=["figure"]
beside("05_formats")

# %% [markdown]
# ## One reading
#
# A peak that is twice as high makes a plan that no machine can keep, if the plan takes it at the
# share that wider products reach. Here is the course's job, below its plan. Which suspect does its
# profile rule out?

# %%
bench("05")

# %% [markdown]
# ## Exercises, and on
#
# [The exercises](../exercises/05_precision.ipynb) have these questions with other numbers, and a
# decoder, a rounding function and a quantizer to write. Next the job is
# [trained](06_parallelism.ipynb), and dies in its first step.
#
# ## Further reading
#
# - Micikevicius et al., *Mixed precision training* (2018): loss scaling and master weights.
# - Jacob et al., *Quantization and training of neural networks for efficient
#   integer-arithmetic-only inference* (2018).
# - Xiao et al., *SmoothQuant* (2023): how to live with outliers.
