# %% [markdown]
# # 5. Precision: the proof
#
# The [lesson](05_precision.ipynb) says what narrow numbers do to the time and to the answers. This
# page holds what its sentences rest on, and where each of its laws stops.

# %% tags=["setup"]
import matplotlib.pyplot as plt
import numpy as np

from lightspeed.catalog import accelerator, energy, find, number
from lightspeed.energy import operation_energy
from lightspeed_course.explorers.precision import number as written
from lightspeed_course import ask, Axis, Bars, Chart, figure, Line, Points, residual_chart, Rule
from lightspeed_course import si, table, Text, weigh
from lightspeed_models.simulators.sums import accumulate
from lightspeed.precision import *
from lightspeed.quantization import *
from lightspeed.roofline import *

# %% tags=["figure"]
gemms = weigh("roofline-gemm")
kinds = {"bfloat16": "bf16", "fp8": "fp8", "nvfp4": "fp4"}


def share_of_roof(kind, bound, quantile=0.5):
    """Of products of a format in one regime of chapter 2: this quantile of their share."""
    own = (gemms.rows["format"] == kind) & (gemms.judged.regime == bound)
    return float(np.quantile(gemms.ratio[own], quantile))


small, _, *large = gemms.judged.regime.names
bounds, products = (*large, small), gemms.rows["format"].isin(kinds).sum()
by_bound = {kind: [share_of_roof(kind, bound) for bound in bounds] for kind in kinds}
v5e, h200, h100 = accelerator("tpu_v5e"), accelerator("h200_sxm"), accelerator("h100_sxm")
side, names = 8192, {16: "bf16", 8: "int8 weights", 4: "int4 weights"}
kernels = "matvec_h200_sxm_bf16", "gemm_h200_sxm_int8_weights_m1", "matvec_h200_sxm_int4_weights"
observed = {b: float(number(f"{kernel}.time")) for b, kernel in zip((16, 8, 4), kernels)}
bound = {
    b: transfer_time(matmul_bytes(1, side, side, weight_bytes=b / 8), h200.hbm_bandwidth)
    for b in observed
}
cases = [(f"H200, {names[b]}", bound[b], observed[b], observed[16] - bound[16]) for b in (8, 4)]
h100_bytes = {
    w: transfer_time(matmul_bytes(1, side, side, w, w, 2), h100.hbm_bandwidth) for w in (1, 2)
}
h100_fixed = number("gemm_h100_sxm_bf16_m1.time") - h100_bytes[2]
cases.append(("H100, fp8", h100_bytes[1], float(number("gemm_h100_sxm_fp8_m1.time")), h100_fixed))
which = [c[0] for c in cases]
alone = np.array([lower / t for _, lower, t, _ in cases], float)
more = np.array([(lower + fixed) / t for _, lower, t, fixed in cases], float)
check, promise = "#Check:-against-measured-kernels", "#What-narrow-formats-reach-of-their-promise"
columns = ["the lesson's law", "tested on", "in the median", "at worst", "where it fails"]
reach = [[f"{kinds[k]} {of[i]:.0%} of its roof" for k, of in by_bound.items()] for i in (0, 1)]
least = [f"a tenth of fp4 below {share_of_roof('nvfp4', b, 0.1):.0%}" for b in bounds]
fixed_cost = [f"off by {1 - np.median(more):.0%}", f"{1 - more.min():.0%}", "they also unpack"]
rows = [
    [f"[bytes and a fixed time]({check})", f"{len(cases)} kernels", *fixed_cost],
    [f"[half the bytes, half the time]({promise})", f"products, {products:,} in all"]
    + [", ".join(reach[0]), least[0], "short products"],
    [f"[twice the peak, twice the rate]({promise})", "the same"]
    + [", ".join(reach[1]), least[1], "arithmetic in four bits"],
]
table(rows, columns, caption="What is claimed about time, and how well it holds.")

# %% tags=["figure"]
normal = np.random.default_rng(3).standard_normal(100_000)
bits = np.arange(2.0, 13.0)
uniform = np.random.default_rng(4).uniform(-1, 1, 200_000)
apart = (5**0.5 - 1) / 2  # samples of the sine, in radians: no two meet it at the same phase
signals = {
    "sine": np.sin(np.arange(200_000.0) * apart),
    "uniform": uniform,
    "normal": normal,
}
measured, law = {}, {}
for n, s in signals.items():
    measured[n] = np.array([sqnr(s, quantize_symmetric(s, int(b)).values) for b in bits], float)
    law[n] = np.array([sqnr_law(int(b), crest_factor(s)) for b in bits], float)
off = {n: np.abs(measured[n] - law[n]) for n in law}
middle = np.median([off[n][bits >= 8] for n in law])
worst, tried = max(o.max() for o in off.values()), sum(o.size for o in off.values())
rows = [
    ["[a bit is worth six decibels](#How-much-noise?)", f"tensors, {tried} roundings"]
    + [f"off by {middle:.2f} dB from eight bits on", f"{worst:.1f} dB", "very few bits"],
    ["[a scale saves what vanishes](#Small-numbers-vanish)", "a small network"]
    + ["trains like bf16", "", "tensors of different size"],
    ["[eight bits keep the answers](#Will-the-answers-still-be-right?)", "the same"]
    + ["no loss seen", "", "four bits and fewer"],
]
table(rows, columns, caption="And about the answers.")

# %% [markdown]
# ## Check: against measured kernels
#
# The lesson says that a narrow kernel pays its bytes and a fixed time. Here are the three kernels of
# its picture, with the bytes of each at the full bandwidth of the memory.

# %% tags=["figure"]
names = {16: "bf16", 8: "int8 weights", 4: "int4 weights"}
table(
    [
        [names[b], bound[b], si(t, "s"), si(t - bound[b], "s")]
        + [f"{bound[16] / bound[b]:.1f}", f"{observed[16] / t:.2f}"]
        for b, t in observed.items()
    ],
    ["weights", "lower bound", "measured", "difference", "speedup promised", "speedup measured"],
    caption=f"One token, a {side} by {side} matrix, {h200.name}.",
)

# %% [markdown]
# The bytes fall to a quarter, and the column of differences stays between
# {{si(min(observed[b] - bound[b] for b in observed), "s", 2)}} and
# {{si(max(observed[b] - bound[b] for b in observed), "s", 2)}}. So take the fixed cost from the bf16
# kernel alone and predict the others with it, also on an H100.

# %% tags=["holds"]
assert abs(bound[4] / bound[16] - 1 / 4) < 0.001, "fall to a quarter"

# %% tags=["figure"]
figure(
    Chart(
        Axis("predicted over measured time", "%", domain=(0.4, 1.1)),
        Axis(scale="category", categories=which),
        [
            Points(alone, which, "bytes alone", color="orange", marker="triangle"),
            Points(more, which, "bytes and the fixed cost of bf16", color="blue"),
            Rule(x=1, label="prediction is right"),
        ],
        height=260,
    ),
    caption=f"The bytes alone are off by {1 - alone.max():.0%} to {1 - alone.min():.0%}. One more"
    f" number, taken from another kernel, leaves {1 - more.min():.0%} at most.",
    alt=f"Three rows with two markers each. The bytes alone reach {alone.min():.0%} to"
    f" {alone.max():.0%} of the measured time, with the fixed cost {more.min():.0%} to"
    f" {more.max():.0%}.",
)

# %% tags=["holds"]
assert (more > alone).all(), "One more number"

# %% [markdown]
# ## What it does to the roofline
#
# Here is the lesson's critical batch on a chip whose int8 rate is twice that of bf16, and then the
# whole bound over the batch.

# %%
wide, narrow = ridge_point(v5e.bf16, v5e.hbm_bandwidth), ridge_point(v5e.int8, v5e.hbm_bandwidth)
wide

# %%
turns = {
    "bf16 weights, bf16 units": (v5e.bf16, critical_batch(wide, 2)),
    "int8 weights, bf16 units": (v5e.bf16, critical_batch(wide, 1)),
    "int8 weights, int8 units": (v5e.int8, critical_batch(narrow, 1)),
}
turns["int8 weights, bf16 units"][1]

# %% tags=["figure"]
table(
    [[n, p, f"{b:.0f}"] for n, (p, b) in turns.items()],
    ["precision", "peak", "critical batch"],
    caption=f"Tokens from which a matmul is compute-bound on a {v5e.name}, B far below D and F.",
)

# %%
batch = np.unique(np.round(np.geomspace(1, 2048, 120)))
transfer_time(matmul_bytes(1, side, side), v5e.hbm_bandwidth)


# %%
def lower(peak, weight_bytes, activation_bytes):
    """The lower bound of a matmul over the batches."""
    moved = matmul_bytes(batch, side, side, weight_bytes, activation_bytes, 2)
    return time_bounds(matmul_flops(batch, side, side), moved, peak, v5e.hbm_bandwidth).lower


times = {
    "bf16": lower(v5e.bf16, 2, 2),
    "int8 weights": lower(v5e.bf16, 1, 2),
    "int8 both": lower(v5e.int8, 1, 1),
}
[round(float(bounds[0] * 1e6)) for bounds in times.values()]  # microseconds, one token

# %% tags=["figure"]
figure(
    Chart(
        Axis("batch", "token", "log", domain=(1, 3000)),
        Axis("lower bound", "s", "log", domain=(5e-5, 3e-3)),
        [
            Line(batch, times["bf16"], "", "blue"),
            Line(batch, times["int8 weights"], "int8 weights", "purple", dash=True),
            Line(batch, times["int8 both"], "int8 both", "orange"),
            Text(3, 1.15 * times["bf16"][0], "bf16", "blue"),
        ],
        height=340,
    ),
    caption="Narrow weights help on the left, where bytes decide. Only narrow arithmetic helps on"
    " the right.",
    alt="Three curves, level and then rising. int8 weights are at half the time of bf16 for small"
    " batches and meet it for large ones; int8 in both stays at half throughout.",
)

# %% tags=["holds"]
assert (
    times["int8 weights"][0] < times["bf16"][0] and times["int8 weights"][-1] == times["bf16"][-1]
), "Narrow weights help on the left"
assert times["int8 both"][-1] < times["int8 weights"][-1] == times["bf16"][-1], (
    "Only narrow arithmetic helps on the right"
)
assert (
    abs(times["int8 weights"][0] / times["bf16"][0] - 1 / 2) < 0.001
    and np.abs(times["int8 both"] / times["bf16"] - 1 / 2).max() < 0.02
), "int8 weights are at half the time"

# %% [markdown]
# With weights alone in int8 the turn comes at {{turns["int8 weights, bf16 units"][1]:.0f}} tokens,
# and with bf16 at {{turns["bf16 weights, bf16 units"][1]:.0f}}. If the units compute in int8 too,
# it is back at {{turns["int8 weights, int8 units"][1]:.0f}}, since the ridge doubled as the bytes
# halved.

# %% tags=["holds"]
assert abs(narrow / wide - 2) < 0.01, "doubled as the bytes"

# %% [markdown]
# ## Where it breaks
#
# - **What is left has a sign.** All three predictions are too fast. Narrow kernels also unpack,
#   scale and convert, and the model has no term for it.
# - **The fixed cost is per kernel.** Larger matrices hide it: twice the side, four times the bytes,
#   the same cost. Fusing kernels and replaying a recorded graph of launches lower it.
# - **Beyond the critical batch** narrow weights save no time at all, and unpacking them costs some.
# - **The scales are bytes too**: {{bits_per_weight(4, 16, 32):g}} bits against four is
#   {{bits_per_weight(4, 16, 32) / 4 - 1:.1%}} more.

# %% tags=["holds"]
assert all(l + f < t for _, l, t, f in cases), "All three predictions"
assert abs(matmul_bytes(1, 2 * side, 2 * side) / matmul_bytes(1, side, side) / 4 - 1) < 0.001, (
    "four times the bytes"
)
assert (times["int8 weights"] == times["bf16"])[
    batch > turns["bf16 weights, bf16 units"][1] * 1.1
].all(), "no time at all"

# %% [markdown]
# ## What narrow formats reach of their promise
#
# The lesson says that narrow bytes keep their promise better than narrow arithmetic. Chapter 2
# weighed the roofline against public timings of matrix products. Some chips have them in
# bf16, fp8 and fp4, which is NVFP4. Take the compute-bound ones, and ask what each format reaches
# of its *own* peak.


# %%
def reached(chip, kind):
    """The shares of their own roof that compute-bound products reach."""
    rows, bound = gemms.rows, gemms.judged.regime == "compute-bound"
    return gemms.ratio[(rows["chip"] == chip) & (rows["format"] == kind) & bound]


chips = ("b200", "gb200", "b300", "gb300", "rtx_pro_6000")
shares = {chip: [float(np.median(reached(chip, kind))) for kind in kinds] for chip in chips}
best_ultra = max(reached(chip, "nvfp4").max() for chip in ("b300", "gb300"))
gain = {c: s[2] * find(c).fp4 / (s[0] * find(c).bf16) for c, s in shares.items()}
libraries = {x for x, chip in zip(gemms.rows["library"], gemms.rows["chip"]) if chip == "b300"}
by_release = ", ".join(sorted(libraries))
ultra = find("b300").fp4
table(
    [
        [find(c).name, *(si(x, "%", 2) for x in s), find(c).fp4 / find(c).bf16, gain[c]]
        for c, s in shares.items()
    ],
    ["chip", *kinds.values(), "fp4 over bf16, promised", "reached"],
    caption="Median share of the format's own roof, and what four bits gain.",
)

# %% [markdown]
# On each of these chips bf16 reaches a larger share than fp8, and fp8 a larger one than fp4. The
# fp4 peak of a B200 is {{find("b200").fp4 / find("b200").bf16:.0f}} times that of bf16; at these
# shares its products are {{gain["b200"]:.1f}} times as fast. For a B300 we have no data sheet, but
# the table of a simulator, AIConfigurator of {{ultra.source.date}}, and timings by {{by_release}},
# some of them release candidates. That table promises {{ultra / find("b300").bf16:.1f}} times, and
# these come to {{gain["b300"]:.1f}}: the promise grew, the gain has not yet. Even the best fp4
# product of a B300 or GB300 reached {{best_ultra:.0%}} of its roof.
#
# Those are the products that arithmetic bounds. What of those that memory bounds, and of the small
# ones?

# %% tags=["holds"]
assert all(a > b > c for a, b, c in shares.values()), "larger one than fp4"
assert gain["b200"] < 3, "these shares its products"
assert ultra.source.title.startswith("AIConfigurator"), "have no data sheet"
assert any("rc" in name for name in libraries), "we have no data"
assert gain["b300"] < 1.1 * gain["b200"] and ultra > 1.5 * find("b200").fp4, "gain has not yet"
assert best_ultra < 0.5, "Even the best fp4"

# %% tags=["figure"]
table(
    [[kinds[kind], *(si(share, "%", 2) for share in of)] for kind, of in by_bound.items()],
    ["format", *bounds],
    caption="Median share of the format's own roof, over "
    f"{products:,} products. The last column has the short ones, by their bound.",
)

# %%
formats = weigh("roofline-formats")
[e.regime for e in formats.by_regime]

# %% tags=["figure"]
figure(
    residual_chart(formats, dots=25, height=340),
    caption="Long products come nearer to their roof the wider their format is. The short ones "
    "are far below it in each format: a launch has no format. Nearly all that beat the bound have "
    "operands that fit the cache.",
    alt="The bound over the measured time of matrix products, by format. The middle of all rows "
    + ", ".join(f"of {e.regime} is {e.ratios[1]:.2f}" for e in formats.by_regime)
    + ".",
)

# %% tags=["holds"]
assert by_bound["nvfp4"][1] < by_bound["fp8"][1] < by_bound["bfloat16"][1], "Long products"
assert all(short < min(long) for *long, short in by_bound.values()), "short ones"
assert np.mean(formats.judged.excused[formats.ratio > 1]) > 0.9, "beat the bound"
assert all(e.ratios[1] < 1 for e in formats.by_regime), "middle of all rows"

# %% [markdown]
# - **Memory keeps the promise.** Where bytes decide, the shares depend little on the format:
#   {{by_bound["bfloat16"][0]:.0%}} in bf16, {{by_bound["fp8"][0]:.0%}} in fp8 and
#   {{by_bound["nvfp4"][0]:.0%}} in fp4. Half of the bytes is nearly half of the time.
# - **Arithmetic does not.** Where arithmetic decides they fall from {{by_bound["bfloat16"][1]:.0%}}
#   to {{by_bound["nvfp4"][1]:.0%}}. One reason is in the code that took these times: it starts from
#   bf16 activations, and most narrow products must first read them and write them narrow.

# %% tags=["holds"]
assert min(of[0] for of in by_bound.values()) > 0.8 * max(of[0] for of in by_bound.values()), (
    "little on the format"
)
assert by_bound["fp8"][0] > 0.9 * by_bound["bfloat16"][0], "half of the time"
assert by_bound["nvfp4"][1] < 0.7 * by_bound["bfloat16"][1], "arithmetic decides they fall"

# %%
ask("quantization.share_of_the_promise", seed="first")

# %% [markdown]
# ## Measure it here
#
# Let numpy add, in its own fp16, bf16, fp32 and fp64. Errors have laws: the running sum can be
# predicted to the last bit with `accumulate`, and no order of adding
# $n$ numbers that are not negative is worse than
#
# $$\frac{(n-1)\,u}{1 - (n-1)\,u}, \qquad u = \text{half a step at one}$$
#
# which says nothing once $(n-1)\,u$ reaches one.
#
# Decide first. How wrong is `x.sum()` of so many numbers in fp16, and in bf16? And is it faster
# than in fp32, since it reads half the bytes?

# %%
import math
import ml_dtypes
from lightspeed.precision import FORMATS

types = {"fp64": np.float64, "fp32": np.float32, "fp16": np.float16, "bf16": ml_dtypes.bfloat16}
draws = np.random.default_rng(0).random((90, 4096))
rows, n = [], draws.shape[1]
for name, kind in types.items():
    stored = FORMATS[name].round(draws).astype(kind)
    exact = np.array([math.fsum(row) for row in stored.astype(float)], float)
    sums = {
        "predicted": accumulate(draws, FORMATS[name]),
        "one after another": np.add.accumulate(stored, axis=-1)[:, -1],
        "numpy's own": stored.sum(axis=-1),
        "in fp32": stored.astype(np.float32).sum(axis=-1).astype(kind),
    }
    errors = [np.sqrt(np.mean((x.astype(float) / exact - 1) ** 2)) for x in sums.values()]
    most = (n - 1) * FORMATS[name].eps / 2
    limit = f"{most / (1 - most):.1e}" if most < 1 else "none"
    rows.append([name, *(f"{e:.1e}" for e in errors), limit])
table(rows, ["format", *sums, "bound"], f"Relative errors (rms) of adding {n:,} numbers.")

# %%
from lightspeed_course import shipped
from lightspeed_tools.measure.records.record import all_of, find as quantity

machines = [shipped()[name] for name in ("amd_epyc_2core", "intel_xeon_2core")]
rows = []
for q in all_of(machines[0], "precision.matmul"):
    kind = q.parameters["dtype"]
    w = [quantity(machine, "precision.matmul", dtype=kind) for machine in machines]
    rows.append([kind, *(si(x.value, x.unit) if x.trusted else "too noisy to say" for x in w)])
table(rows, ["product", *(m["name"] for m in machines)], "Recorded; int8 counts operations.")

# %% [markdown]
# ### Explain the difference
#
# - **Where a prediction stands, it should agree in every digit.** A format is fixed by its
#   definition, and adding one number after another leaves the machine no choice.
# - **numpy's own sum** adds in blocks and then adds the blocks, where it has such a loop for the
#   type. That is nearly the pairwise order, and it is why its errors are so far below the bound. If
#   its error in bf16 is that of one after another, it has no such loop for bf16, and `x.sum()` is
#   wrong without a warning. Give it `dtype=np.float32`.
# - **Narrow is not fast by itself.** A processor without units for fp16 widens each number, adds,
#   and rounds again. The bytes are fewer, and the time is longer: try `%timeit x.sum()` on each
#   type. Speed needs units, or a kernel that is bound by bytes. In the recorded products bf16
#   passes fp32 by far on the machine that has a unit for it.
#
# ## Gallery of wrong claims
#
# Each was published. Each is rebutted by a line that you can run.

# %%
from lightspeed_course import gallery

gallery("05")

# %% [markdown]
# ## What the model leaves out
#
# Quantization noise is taken as independent of the signal; with two or three bits it is not. Errors
# of many layers add up in ways that no decibel of one tensor predicts. Good quantizers keep the
# *output* right rather than each weight: GPTQ chooses the rounding, AWQ first scales up the
# channels that matter. KV caches and optimizer states are quantized too. Formats change what fits
# on a chip, and so how a model is split, which is chapter 6.

# %% [markdown]
# ## How formats share out their bits
#
# The lesson reads one code of four bits. Read pi in bf16 in the same way.

# %%
bf16, fp16 = FORMATS["bf16"], FORMATS["fp16"]
e4m3, e5m2 = FORMATS["fp8_e4m3"], FORMATS["fp8_e5m2"]
bf16

# %%
fields = bf16.fields(bf16.encode(np.pi))
sign, exponent, mantissa = (int(bits, 2) for bits in fields)
fields

# %% tags=["figure"]
table(
    [["bits", *fields], ["as a whole number", sign, exponent, mantissa]],
    ["pi in bf16", "sign", "exponent", "mantissa"],
    caption=f"The three fields of one code. The bias is {bf16.bias}.",
)

# %%
by_hand = (-1) ** sign * (1 + mantissa / 2**bf16.mantissa_bits) * 2.0 ** (exponent - bf16.bias)
by_hand, float(bf16.round(np.pi))

# %%
narrow_formats = ["fp8_e5m2", "fp8_e4m3", "fp6_e3m2", "fp6_e2m3", "fp4_e2m1", "e8m0"]
shown = ["fp64", "fp32", "tf32", "bf16", "fp16", *narrow_formats]
drawn = shown[1:]
{n: FORMATS[n].bits for n in shown}

# %% [markdown]
# Two rows of the next table look odd, so here is what they mean. tf32 is fp32 as the matrix units take it: in memory it keeps its four
# bytes. E8M0 is a power of two, the scale of a block of narrow numbers (below). The next figure is
# drawn by matplotlib in plain sight, so that you can copy it to work.

# %% tags=["holds"]
assert FORMATS["e8m0"].mantissa_bits == 0, "block of narrow numbers"

# %%
fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
left = np.zeros(len(drawn))
for part, color in enumerate(["tab:orange", "tab:blue", "tab:green"]):
    width = np.array([len(FORMATS[n].fields(0)[part]) for n in drawn], float)
    bars = ax.barh(drawn, width, left=left, color=color)
    ax.bar_label(bars, [f"{w:.0f}" if w else "" for w in width], label_type="center")
    left = left + width
ax.invert_yaxis()
ax.set_xlabel("bit")
ax.legend(["sign", "exponent", "mantissa"], loc="lower right")
figure(
    fig,
    caption="Bits of sign, exponent and mantissa. bf16 is the first half of fp32; E8M0 is an"
    " exponent and nothing else.",
    alt="Stacked bars, one for each format. fp32, tf32 and bf16 have an exponent of equal width"
    " and mantissas of falling width; fp16 has a narrower exponent and a wider mantissa than"
    " bf16; the formats of eight bits and fewer split what is left.",
)
plt.close(fig)

# %% tags=["holds"]
assert (bf16.exponent_bits, 2 * bf16.bits) == (
    FORMATS["fp32"].exponent_bits,
    FORMATS["fp32"].bits,
) and FORMATS["e8m0"].bits == FORMATS["e8m0"].exponent_bits, "bf16 is the first half of fp32"
assert (
    len({FORMATS[n].exponent_bits for n in drawn[:3]}) == 1
    and list(np.diff([FORMATS[n].mantissa_bits for n in drawn[:3]]) < 0) == [True, True]
    and fp16.exponent_bits < bf16.exponent_bits
    and fp16.mantissa_bits > bf16.mantissa_bits
), "fp32, tf32 and bf16 have an exponent of equal width"

# %% tags=["figure"]
columns = {
    "bits": "bits",
    "exponent_bits": "exponent",
    "mantissa_bits": "mantissa",
    "max": "largest",
    "smallest_normal": "smallest normal",
    "smallest_subnormal": "smallest above zero",
    "eps": "step at one",
}
table(
    [[n, *[written(getattr(FORMATS[n], what)) for what in columns]] for n in shown],
    ["format", *columns.values()],
    caption="All of it follows from the widths of the fields and the use of the top codes; the"
    " bias is half of the exponent's codes, less one.",
)

# %% tags=["holds"]
assert all(FORMATS[n].bias == 2 ** (FORMATS[n].exponent_bits - 1) - 1 for n in shown), (
    "All of it follows"
)

# %% [markdown]
# The smallest *normal* number of fp16 is {{written(fp16.smallest_normal)}}, and some tables stop
# there. Below it the format goes on, with fewer and fewer bits, to
# {{written(fp16.smallest_subnormal)}}.
#
# These are the steps at one of sixteen bits and of eight, and then the ranges.

# %% tags=["holds"]
assert fp16.round(fp16.smallest_normal / 2) > 0, "The smallest"
assert fp16.round(fp16.smallest_subnormal / 2) == 0, "Below it the format"

# %%
compared = ["bf16", "fp16", "fp8_e5m2", "fp8_e4m3"]
{n: FORMATS[n].eps for n in compared}

# %% tags=["figure"]
ranges = [n for n in drawn if n != "e8m0"]
lows, normals, tops = (
    np.array([getattr(FORMATS[n], what) for n in ranges], float)
    for what in ("smallest_subnormal", "smallest_normal", "max")
)
decades = [(10.0**p, written(10.0**p)) for p in range(-40, 41, 10)]
across = Axis("magnitude", scale="log", domain=(1e-46, 1e40), ticks=decades)
spans = [
    Bars(ranges, normals, lows, "subnormal", color="amber"),
    Bars(ranges, tops, normals, "normal", color="blue"),
    Rule(x=1),
]
figure(
    Chart(across, Axis(scale="category", categories=ranges), spans, height=340),
    caption="The magnitudes that each format has. The normal numbers of bf16 span what those of"
    " fp32 span; fp16 ends well inside.",
    alt="Horizontal bars on a logarithmic axis. fp32, tf32 and bf16 span about eighty decades,"
    " fp16 twelve, fp8 E5M2 nearly ten, the others fewer than six.",
)

# %% tags=["holds"]
assert (
    bf16.smallest_normal == FORMATS["fp32"].smallest_normal
    and 0.99 < bf16.max / FORMATS["fp32"].max < 1
    and fp16.max < bf16.max
    and fp16.smallest_subnormal > bf16.smallest_normal
), "The normal numbers of bf16 span"
assert (
    [76 < d < 84 for d in np.log10(tops / lows)[:3]] == 3 * [True]
    and 11.9 < np.log10(tops / lows)[3] < 12.1
    and 9 < np.log10(tops / lows)[4] < 10
    and max(np.log10(tops / lows)[5:]) < 6
), "fp32, tf32 and bf16 span about eighty decades"

# %% [markdown]
# ### What the top codes are for
#
# In fp16, bf16 and E5M2 the whole top exponent is kept for infinity and NaN. E4M3 has half as many
# exponents as E5M2 and can hardly afford that. It gives up infinity and keeps one code of each sign
# for NaN. The formats of six and four bits have neither. So a number that is too large for the last
# three of the formats below ends up as different things. *Saturating* casts, which stop at the
# largest value, are the usual choice for fp8.

# %% tags=["holds"]
assert 2 * 2**e4m3.exponent_bits == 2**e5m2.exponent_bits, "half as many exponents"
assert (
    np.isnan(e4m3.decode(np.arange(256, dtype=np.intp))).sum() == 2
    and not np.isinf(e4m3.decode(np.arange(256, dtype=np.intp))).any()
), "each sign for NaN"
assert all(
    np.isfinite(FORMATS[n].decode(np.arange(2 ** FORMATS[n].bits, dtype=np.intp))).all()
    for n in shown
    if n[:3] in ("fp6", "fp4") and n != "fp64"
), "four bits have neither"
assert [
    FORMATS[n].max < 1000 for n in ("bf16", "fp16", "fp8_e5m2", "fp8_e4m3", "fp6_e3m2", "fp4_e2m1")
] == 3 * [False] + 3 * [True], "formats below ends up"

# %%
too_large = 1000.0
names = ["bf16", "fp16", "fp8_e5m2", "fp8_e4m3", "fp6_e3m2", "fp4_e2m1"]
casts = [float(FORMATS[n].round(too_large)) for n in names]
casts

# %% tags=["figure"]
held = [float(FORMATS[n].round(too_large, saturate=True)) for n in names]
table(
    [[n, "NaN" if np.isnan(c) else written(c), written(h)] for n, c, h in zip(names, casts, held)],
    ["format", "plain cast", "saturating cast"],
    caption=f"What becomes of {written(too_large)}.",
)

# %% [markdown]
# ## Small numbers vanish
#
# The backward pass starts at the loss and sends a *signal* back through the layers: how much the
# loss changes with each number that a layer put out. The loss is an average over all tokens, so the
# signal of each token is divided by their number. In a large batch it is tiny.

# %%
tokens, slice_size = 2**24, 64
sizes = [32, 64, 64, 10]
directions = np.random.default_rng(5).normal(size=(sizes[0], sizes[-1]))
directions.shape

# %% [markdown]
# Take a small network and a batch of {{si(tokens, "token")}}, as in large training runs. The cells
# below compute {{slice_size}} of its tokens, one example each, and divide by all.


# %%
def layers_of(rng):
    """Random weights of a ReLU network with these sizes."""
    return [rng.normal(0, (2 / a) ** 0.5, (a, b)) for a, b in zip(sizes, sizes[1:])]


def outputs(weights, x):
    for w in weights[:-1]:
        x = np.maximum(x @ w, 0)
    return x @ weights[-1]


def examples(rng, n):
    """Random inputs, each labelled with the direction on which its projection is largest."""
    x = rng.normal(size=(n, sizes[0]))
    return x, (x @ directions).argmax(axis=1)


some = examples(np.random.default_rng(1), slice_size)
[w.shape for w in layers_of(np.random.default_rng(0))]

# %% [markdown]
# Every tensor but the last layer's scores passes through `store` before it is used again, as on
# hardware that keeps it in sixteen bits. The scores go to the softmax, which is commonly kept wide.


# %%
def gradients(weights, x, labels, store, scale=1.0):
    """Of the mean loss over the batch, times a loss scale; and the signal at the first layer."""
    layers, weights = [store(x)], [store(w) for w in weights]
    for w in weights[:-1]:
        layers.append(store(np.maximum(layers[-1] @ w, 0)))
    scores = layers[-1] @ weights[-1]
    error = np.exp(scores - scores.max(axis=1, keepdims=True))
    error /= error.sum(axis=1, keepdims=True)
    error[np.arange(len(labels), dtype=np.intp), labels] -= 1
    error, found = store(error * (scale / tokens)), []
    for k in reversed(range(len(weights))):
        found.insert(0, store(layers[k].T @ error))
        if k:
            error = store(error @ weights[k].T * (layers[k] > 0))
    return found, error[layers[1] > 0]


# %% [markdown]
# First look at the signal itself. How large are its elements, and how many of them does fp16 turn
# into zero?

# %%
weights = layers_of(np.random.default_rng(0))
_, exact = gradients(weights, *some, lambda v: v)
lost = {n: float(np.mean(FORMATS[n].round(exact) == 0)) for n in compared}
lost

# %% tags=["figure"]
edges = np.arange(-42.0, -12.0)
share = np.histogram(np.log2(np.abs(exact)), bins=edges)[0] / exact.size
middle = 2.0 ** (edges[:-1] + 0.5)
figure(
    Chart(
        Axis("magnitude of an element", scale="log", domain=(2.0**-42, 2.0**-12)),
        Axis("share of the elements", "%", domain=(0, 0.3)),
        [
            Line(middle, share, "signal at the first layer", "blue", label_at="above"),
            Rule(x=fp16.smallest_subnormal / 2, label="fp16: zero below"),
            Rule(x=fp16.smallest_normal, label="fp16: full precision above"),
        ],
        height=320,
    ),
    caption=f"In fp16 {lost['fp16']:.0%} of these elements become zero, and the others are"
    " subnormal and lose bits. In bf16 none become zero.",
    alt="A histogram of magnitudes on a logarithmic axis. Nearly all of it lies left of the mark"
    " below which fp16 has only zero, and its right edge just passes that mark; none of it"
    " reaches the normal numbers of fp16.",
)

# %% tags=["holds"]
assert np.abs(exact).max() < fp16.smallest_normal, "the others are subnormal"
assert lost["bf16"] == 0, "In bf16 none become zero"
assert 0.97 < np.mean(np.abs(exact) < fp16.smallest_subnormal / 2) < 1, "Nearly all of it lies left"
assert np.abs(exact).max() < fp16.smallest_normal, "none of it reaches"

# %% [markdown]
# Now train with it, without the lesson's loss scale and with it; with a power of two nothing
# changes but the position in the range.

# %% tags=["holds"]
assert np.array_equal(bf16.round(exact * 2.0**16) / 2.0**16, bf16.round(exact)), (
    "power of two nothing"
)


# %%
def train(store, scale=1.0, steps=100, rate=0.5):
    """The loss after each step; the weights are kept in full precision."""
    rng, weights, losses = np.random.default_rng(0), layers_of(np.random.default_rng(0)), []
    test = examples(np.random.default_rng(2), 512)
    for _ in range(steps):
        found, _ = gradients(weights, *examples(rng, slice_size), store, scale)
        for w, g in zip(weights, found):
            w -= rate * g / scale * (tokens / slice_size)
        scores = outputs(weights, test[0])
        highest = scores.max(axis=1)
        correct = scores[np.arange(len(test[1]), dtype=np.intp), test[1]]
        losses.append(
            float(
                np.mean(highest + np.log(np.exp(scores - highest[:, None]).sum(axis=1)) - correct)
            )
        )
    return losses


# %%
loss_scale = 2.0**16
first_layer = gradients(weights, *some, fp16.round)[0][0]
float(np.mean(first_layer != 0))

# %%
losses = train(fp16.round), train(fp16.round, loss_scale), train(bf16.round)
runs = dict(zip(["fp16", f"fp16, loss × {loss_scale:,.0f}", "bf16"], losses))
ends = [float(np.mean(run[-20:])) for run in losses]  # one step's loss jumps about
[round(end, 2) for end in ends]

# %% tags=["figure"]
looks = {"fp16": ("orange", False), "bf16": ("blue", True)}
figure(
    Chart(
        Axis("step", domain=(0, 100)),
        Axis("loss", scale="log", domain=(0.4, 40)),
        [
            Line(np.arange(1.0, 101.0), y, n, *looks.get(n, ("green", False)))
            for n, y in runs.items()
        ],
        height=320,
    ),
    caption=(
        "The same network, data and rate. Only the storage of the tensors differs. bf16 and"
        " scaled fp16 are nearly the same curve."
    ),
    alt=(
        "Loss against step on a logarithmic axis. Plain fp16 jumps about above the others; fp16"
        f" with a loss scale and bf16 fall together to {runs['bf16'][-1]:.1f}."
    ),
)

# %% tags=["holds"]
assert np.abs(np.array(runs["bf16"]) / list(runs.values())[1] - 1).max() < 0.12, (
    "nearly the same curve"
)
assert all((np.array(runs["fp16"]) >= y)[1:].all() for y in runs.values()) and round(
    list(runs.values())[1][-1], 1
) in (0.5, 0.6), "Plain fp16 jumps about above the others"

# %% [markdown]
# A weight's gradient sums the signals of the whole slice, so it is lost less often than one of
# them. Plain fp16 keeps {{np.mean(first_layer != 0):.0%}} of the first layer's gradient, each
# element a small whole number of times the smallest one it has. Its loss does not settle: its
# median over the run is {{np.median(runs["fp16"]):.1f}}, more than the {{np.log(sizes[-1]):.1f}} of
# a network that guesses evenly among its {{sizes[-1]}} classes. Over the last twenty steps the
# scaled run has {{ends[1]:.2f}} on average, bf16 {{ends[2]:.2f}}. This is why bf16 took over
# training: the range of fp32, and no scale to choose.
#
# Who chooses the scale? A loop does. It starts far too high. When a gradient overflows it skips the
# step and halves the scale, and after some good steps it doubles the scale again.

# %% tags=["holds"]
assert np.mean(first_layer == 0) < lost["fp16"], "than one of them"
assert 0 < np.abs(first_layer).max() / fp16.smallest_subnormal < 10, "of times the smallest"
assert np.median(runs["fp16"]) > np.log(sizes[-1]), "more than the"


# %%
def dynamic(scale, patience=20, steps=100):
    """The loss scale at each step of a run that finds it by itself."""
    rng, weights, seen, good = np.random.default_rng(0), layers_of(np.random.default_rng(0)), [], 0
    for _ in range(steps):
        seen.append(scale)
        with np.errstate(all="ignore"):
            found, _ = gradients(weights, *examples(rng, slice_size), fp16.round, scale)
        if all(np.isfinite(g).all() for g in found):
            for w, g in zip(weights, found):
                w -= 0.5 * g / scale * (tokens / slice_size)
            good += 1
            scale *= 2 if good % patience == 0 else 1
        else:
            scale, good = scale / 2, 0
    return seen


# %%
seen = dynamic(2.0**44)
[round(float(np.log2(scale))) for scale in seen[::10]]

# %% tags=["figure"]
figure(
    Chart(
        Axis("step", domain=(0, 100)),
        Axis(
            "loss scale",
            scale="log",
            domain=(min(seen) / 4, max(seen) * 4),
            ticks=[(2.0**p, f"2^{p}") for p in range(32, 47, 2)],
        ),
        [Line(np.arange(1.0, 101.0), seen, "loss scale", "green", label_at="above")],
        height=280,
    ),
    caption="It falls while gradients overflow, then probes upward now and then and is put back."
    f" The {loss_scale:,.0f} from above does as well and is far below: fp16 has room between"
    " signals that vanish and gradients that overflow.",
    alt=(
        "A staircase that falls steeply in the first steps, then stays nearly level with small"
        " steps up and down."
    ),
)

# %% tags=["holds"]
assert min(seen) > 1000 * loss_scale and abs(ends[1] / ends[2] - 1) < 0.05, (
    "does as well and is far below"
)
assert (
    seen[0] > 100 * max(seen[20:])
    and max(seen[20:]) <= 4 * min(seen[20:])
    and {1, -1} <= set(np.sign(np.diff(seen[20:])))
), "It falls while gradients overflow"

# %% [markdown]
# ## Long sums stall
#
# The lesson adds ones in bf16 until the sum no longer moves. Here it is in fp16, at the end.

# %%
ones = accumulate(np.ones(10_000), fp16)
float(ones)

# %% tags=["figure"]
table(
    [
        [written(total), written(fp16.spacing(total)), written(fp16.round(total + 1))]
        for total in (ones / 2, ones - 1, ones)
    ],
    ["sum so far", "step of fp16 there", "sum plus one, stored"],
    caption="The last row is a tie, and the even code is the sum as it was.",
)

# %% tags=["holds"]
assert fp16.spacing(ones) == 2 and fp16.round(ones + 1) == ones, "The last row is a tie"

# %% [markdown]
# Here are sums of uniform random numbers from zero to one, four ways. **Running**: one after
# another in bf16. **Pairwise**: halves, quarters and so on, so that sums of like size meet.
# **fp32**: a wide accumulator, stored in bf16 at the end. **Stochastic**: rounded up or down at
# random, with the probability that keeps the mean right.

# %%
terms = np.random.default_rng(0).random(2**13)
counts = 2 ** np.arange(2.0, 14.0)
prefixes = np.where(np.arange(terms.size, dtype=float) < counts[:, None], terms, 0.0)
prefixes.shape

# %%
sums = {
    "running": accumulate(prefixes, bf16),
    "pairwise": accumulate(prefixes, bf16, order="pairwise"),
    "fp32": accumulate(prefixes, bf16, accumulator=FORMATS["fp32"]),
    "stochastic": accumulate(prefixes, bf16, rng=np.random.default_rng(1)),
}
errors = {n: s / bf16.round(prefixes).sum(axis=1) for n, s in sums.items()}
{n: round(float(error[-1]), 3) for n, error in errors.items()}

# %% tags=["figure"]
figure(
    Chart(
        Axis("numbers added", scale="log", domain=(3, 2e4)),
        Axis("sum over the exact sum", "%", domain=(0, 1.2)),
        [
            Line(counts, errors[n], n, c, dash=n == "fp32")
            for n, c in zip(errors, ("orange", "green", "black", "purple"))
        ]
        + [Rule(y=1)],
        height=320,
    ),
    caption="The running sum stalls and then falls behind without bound. The other three do not.",
    alt=(
        f"The running sum drops to {errors['running'][-1]:.0%} of the exact one; pairwise and fp32"
        " stay at one hundred per cent, stochastic rounding wavers around it."
    ),
)

# %% tags=["holds"]
assert (
    len(set(sums["running"][-4:])) == 1
    and max(abs(errors[n] - 1).max() for n in errors if n != "running") < 0.08
), "The running sum stalls"
assert (
    max(abs(errors[n] - 1).max() for n in ("pairwise", "fp32")) < 0.01
    and errors["stochastic"].min() < 1 < errors["stochastic"].max()
), "pairwise and fp32 stay at one hundred per cent"

# %% [markdown]
# After {{counts[-1]:,.0f}} numbers the running sum is at {{written(sums["running"][-1])}} of
# {{written(round(prefixes[-1].sum()))}}. This is why matrix units multiply narrow numbers and
# *accumulate in fp32*: it costs no memory traffic, since the sum stays in the unit. Stochastic
# rounding is right on average and needs no wide accumulator, which helps where a narrow number is
# updated many times, a little each time, such as weights kept in bf16.

# %% tags=["holds"]
assert (
    abs(bf16.round(np.full(10_000, 256.5), rng=np.random.default_rng(0)).mean() - 256.5) < 0.05
), "needs no wide accumulator"

# %% [markdown]
# ## Zero points
#
# The lesson's scale is symmetric. Here it is for four numbers, and then for data that are not.

# %%
x = np.array([0.5, -1.2, 3.0, -3.0])
symmetric = quantize_symmetric(x, bits=8)
symmetric.codes, float(symmetric.scale)

# %% tags=["figure"]
table(
    [
        [written(v), int(q), f"{s:.4f}", f"{s - v:+.4f}"]
        for v, q, s in zip(x, symmetric.codes, symmetric.values)
    ],
    ["value", "code", "stored value", "error"],
    caption=f"Eight bits; the scale is {symmetric.scale:.5f}, the largest magnitude over"
    f" {symmetric.codes.max()}.",
)

# %% tags=["holds"]
assert np.isclose(symmetric.scale * symmetric.codes.max(), np.abs(x).max()), (
    "the largest magnitude over"
)

# %% [markdown]
# After a ReLU nothing is negative, and nearly half of the symmetric codes stand idle.
# **Asymmetric** quantization counts its codes from zero up and spreads them over the range that is
# there, widened to include zero if need be. It shifts them by a **zero point**, a whole number, so
# that zero stays exact. It has to: padding and switched-off units are zeros, and there are many.
#
# $$s = \frac{x_\text{max} - x_\text{min} }{2^b - 1}, \qquad
# q = \text{round}\left(\frac{x}{s}\right) + z, \qquad
# z = \text{round}\left(\frac{-x_\text{min} }{s}\right)$$
#
# Which is better? Divide the mean square of the signal by that of the error, and take ten times the
# logarithm: the **SQNR**, the ratio of signal to quantization noise in decibels.

# %% tags=["holds"]
assert (
    quantize_symmetric(np.maximum(np.linspace(-3, 3, 999), 0)).codes.min() == 0
    and 0.49 < np.mean(np.unique(quantize_symmetric(np.linspace(-3, 3, 999)).codes) < 0) < 0.5
), "half of the symmetric"
assert (
    quantize_asymmetric(np.array([-0.7, 0.0, 2.4])).values[1] == 0
    and quantize_asymmetric(np.array([1.0, 3.0])).scale == 3.0 / 255
), "that zero stays exact"

# %%
relu = np.maximum(normal, 0)
tensors = {
    "weights (both signs)": normal,
    "after a ReLU": relu,
    "after a ReLU, shifted": relu - 0.2,
}
[int(quantize_asymmetric(t).zero_point) for t in tensors.values()]

# %% tags=["figure"]
rows = [
    [
        name,
        f"{sqnr(t, quantize_symmetric(t).values):.1f}",
        f"{sqnr(t, quantize_asymmetric(t).values):.1f}",
        int(quantize_asymmetric(t).zero_point),
    ]
    for name, t in tensors.items()
]
table(
    rows,
    ["tensor", "symmetric, dB", "asymmetric, dB", "zero point"],
    caption="Signal over quantization noise in int8. One bit is worth about six decibels, and it"
    " is the bit that one-sided data waste.",
)

# %% tags=["holds"]
assert (
    abs(
        sqnr(tensors["after a ReLU"], quantize_asymmetric(tensors["after a ReLU"]).values)
        - sqnr(tensors["after a ReLU"], quantize_symmetric(tensors["after a ReLU"]).values)
        - (sqnr_law(9) - sqnr_law(8))
    )
    < 0.3
), "it is the bit that one-sided data waste"

# %% [markdown]
# ## How much noise?
#
# Rounding to a step $\Delta$ makes an error between $-\Delta/2$ and $\Delta/2$. If it is spread
# evenly, its mean square is a twelfth of $\Delta^2$. With $2^b$ steps over twice the peak, $\Delta
# = 2\,\text{peak} / 2^b$, so the mean square is a third of $\text{peak}^2 / 4^b$, and
#
# $$\text{SQNR} = \frac{\text{rms}^2}{\text{mean squared error} } =
# 3 \cdot 4^b \left(\frac{\text{rms} }{\text{peak} }\right)^2$$
#
# Each bit is a factor of four, in decibels ten times its logarithm:
# {{sqnr_law(9) - sqnr_law(8):.2f}}. The last factor is one over the square of the **crest factor**,
# the peak over the rms. A sine has $\sqrt{2}$, so for one that fills the range the law becomes
# ${{sqnr_law(9) - sqnr_law(8):.2f}}\,b + {{sqnr_law(8) - 8 * (sqnr_law(9) - sqnr_law(8)):.2f}}$ dB.

# %% tags=["holds"]
assert np.isclose(sqnr_law(8, 5), 10 * np.log10(3 * 4**8 / 5**2)), "over twice the peak"
assert np.isclose(sqnr_law(9) - sqnr_law(8), 10 * np.log10(4)), "ten times its logarithm"
assert abs(crest_factor(np.sin(np.arange(1e5) / 9)) - 2**0.5) < 0.001, "range the law becomes"

# %% tags=["figure"]
colors = dict(zip(signals, ("blue", "green", "orange")))
widths = Axis("bits", domain=(1.5, 13.5), ticks=[2, 4, 6, 8, 10, 12])
left_out = 20 * np.log10(1 - 2.0 ** (1 - bits))
laws = [Line(bits, law[n], "", c, dash=True) for n, c in colors.items()]
found = [Points(bits, measured[n], n, color=c) for n, c in colors.items()]
rest = [Points(bits, measured[n] - law[n], n, color=c) for n, c in colors.items()]
rest += [Line(bits, left_out, "two steps fewer", "black", dash=True), Rule(y=0)]
figure(
    [
        Chart(widths, Axis("SQNR, dB", domain=(0, 80)), laws + found),
        Chart(widths, Axis("measured less law, dB", domain=(-7, 1)), rest, height=280),
    ],
    caption="Dashed: the law with each signal's own crest factor. Below: what is left. Uniform"
    " numbers follow the black line: symmetric codes make two steps fewer between the peaks than"
    " the law counts; with two bits the others lose less than that.",
    alt="Three rising series of points on dashed lines that climb six decibels a bit; in the"
    " lower panel, residuals that rise from several decibels below zero at two bits and are"
    " at zero from eight bits on.",
)

# %% tags=["holds"]
assert all(
    2 * FORMATS[n].max == 2 ** FORMATS[n].bits - 2 for n in ("int8", "int4")
) and np.allclose(left_out, 20 * np.log10((2**bits - 2) / 2**bits)), (
    "two steps fewer between the peaks"
)
assert (
    min(measured[n][0] - law[n][0] for n in ("sine", "normal")) > 20 * np.log10(1 / 2) + 1
    and np.abs(measured["uniform"] - law["uniform"] - 20 * np.log10(1 - 2.0 ** (1 - bits))).max()
    < 0.03
), "with two bits the others lose less than that"
assert (
    max(measured[n][0] - law[n][0] for n in law) < -3
    and max(np.abs(measured[n] - law[n])[bits >= 8].max() for n in law) < 0.1
), "residuals that rise from several decibels below zero"

# %% [markdown]
# How many bits would you pay for? In the notebook, move the slider. It is made with ipywidgets
# alone.

# %%
from ipywidgets import Output, SelectionSlider

choices = list(range(2, 17))
slider, reading = SelectionSlider(options=choices, value=6, description="bits"), Output()


def read(change=None):
    reading.outputs = ()
    reading.append_stdout(f"{sqnr_law(slider.value):.1f} dB for a sine that fills the range")


slider.observe(read, "value")
read()
display(slider, reading)

# %% [markdown]
# ### Outliers
#
# The lesson's outlier, in numbers. It raises the peak and leaves the rest where they were:
# every doubling of the peak costs all of them a bit. Language models have such outliers in their
# activations, in a few fixed channels (Dettmers et al., 2022).

# %% tags=["holds"]
assert np.isclose(sqnr_law(8, 4) - sqnr_law(8, 8), sqnr_law(9) - sqnr_law(8)), "costs all of them"

# %%
heights = [1, 2, 4, 8, 16, 32, 64]
peak = np.abs(normal).max()
with_outlier = [np.append(normal, h * peak) for h in heights]
float(peak)

# %%
others = [sqnr(normal, quantize_symmetric(y).values[:-1]) for y in with_outlier]
crests = [peak * h / normal.std() for h in heights]  # the others' rms: the noise is theirs
predicted = [sqnr_law(8, crest) for crest in crests]
float(predicted[0] - predicted[1])

# %% tags=["figure"]
table(
    [
        [h, f"{crest:.1f}", f"{other:.1f}", f"{said:.1f}"]
        for h, crest, other, said in zip(heights, crests, others, predicted)
    ],
    ["outlier over the peak", "over the others' rms", "SQNR of the others, dB", "law, dB"],
    caption="One value among a hundred thousand, int8, one scale for all.",
)

# %% tags=["holds"]
assert normal.size == 100_000, "One value among a hundred thousand"

# %% [markdown]
# ### Share the scale with fewer
#
# So which numbers should share a scale? One for the tensor is the least to store, and one for each
# output channel costs next to nothing more. One for each block of a few dozen confines an outlier
# to its neighbours.

# %% tags=["holds"]
assert bits_per_weight(8, 16, 1024) - 8 < 0.02 < bits_per_weight(8, 16, 32) - 8, (
    "next to nothing more"
)

# %%
B, D, F = 64, 1024, 1024
rng = np.random.default_rng(2)
W = rng.normal(0, D**-0.5, (D, F)) * np.exp(rng.normal(0, 0.3, F))
W.shape

# %%
spiked = W.copy()
spiked[rng.integers(D, size=20), rng.integers(F, size=20)] *= 30
crest_factor(W), crest_factor(spiked)

# %%
block = 32
groups = {"tensor": {}, "output channel": {"axis": 0}, f"block of {block}": {"block": block}}
list(groups)


# %%
def noise(w, bits, group):
    """SQNR of a weight matrix; transposed, so that a block lies within an output channel."""
    return sqnr(w.T, quantize_symmetric(w.T, bits, **group).values)


[round(noise(W, 8, group), 1) for group in groups.values()]

# %% tags=["figure"]
table(
    [
        [name, *[f"{noise(w, b, group):.1f}" for w in (W, spiked) for b in (8, 4)]]
        for name, group in groups.items()
    ],
    ["one scale for each", "int8", "int4", "int8, with outliers", "int4, with outliers"],
    caption=(
        f"SQNR in dB of a {D} by {F} weight matrix whose channels differ in size. Blocks"
        " hardly notice the outliers."
    ),
)

# %% tags=["holds"]
assert all(
    noise(W, b, groups[f"block of {block}"]) - noise(spiked, b, groups[f"block of {block}"]) < 0.5
    for b in (8, 4)
), "Blocks hardly notice"

# %% [markdown]
# ## A real int8 matmul
#
# The units multiply codes, not values. For token $b$ and output $f$ they add over the inputs $d$.
# One sum of whole numbers will do if the scales can be taken out of it,
#
# $$\sum_d x_{bd}\, w_{df} \approx \sum_d (q_{bd}\, s_b)(p_{df}\, t_f)
# = s_b\, t_f \sum_d q_{bd}\, p_{df}$$
#
# so $X$ may have a scale for each row, a token, and $W$ one for each column, an output channel.
# Within one sum neither may vary along $d$. (Blocks, below, take a sum for each block.) The sum is
# exact in a wide integer.

# %%
X = rng.normal(size=(B, D)) * np.exp(rng.normal(0, 0.5, (B, 1)))
outlying = X.copy()
outlying[:, [7, 300, 801]] *= 60
crest_factor(X), crest_factor(outlying)

# %%
qx, qw = quantize_symmetric(X, axis=0), quantize_symmetric(W, axis=1)
largest = int(np.abs(qx.codes @ qw.codes).max())
largest

# %% tags=["figure"]
codes = [int(np.abs(q.codes).max()) for q in (qx, qw)]
sums_held = [largest, int(FORMATS["int8"].max) ** 2 * D, 2**31 - 1]
table(
    [[*map(si, codes), *(f"{held:,}" for held in sums_held)]],
    ["largest code of X", "of W", "largest sum", "largest possible sum", "largest int32"],
    caption=(
        "An int32 accumulator holds the sum of this contraction, and of any of up to"
        f" {(2**31 - 1) // int(FORMATS['int8'].max) ** 2:,} products."
    ),
)

# %% tags=["holds"]
assert (2**31 - 1) // int(FORMATS["int8"].max) ** 2 > 130_000 > D, (
    "An int32 accumulator holds the sum"
)


# %%
def variants(X, W):
    """The product in several precisions, each as its SQNR against float64."""
    exact, cast = X @ W, quantize_symmetric
    products = {
        "bf16, both": bf16.round(X) @ bf16.round(W),
        "int8 weights only": X @ cast(W, axis=1).values,
        "int4 weights only, in blocks": X @ cast(W.T, 4, block=32).values.T,
        "int8 both, one scale each": quantized_matmul(cast(X), cast(W)),
        "int8 both, by token and channel": quantized_matmul(cast(X, axis=0), cast(W, axis=1)),
    }
    return {n: sqnr(exact, p) for n, p in products.items()}


plain_case, outlier_case = variants(X, W), variants(outlying, W)
{n: round(plain_case[n] - outlier_case[n], 1) for n in plain_case}

# %%
channel = np.sqrt(np.abs(outlying).max(axis=0) / np.abs(W).max(axis=1))
smooth_case = variants(outlying / channel, W * channel[:, None])
{n: round(smooth_case[n], 1) for n in smooth_case}

# %% tags=["figure"]
table(
    [
        [n, f"{plain_case[n]:.1f}", f"{outlier_case[n]:.1f}", f"{smooth_case[n]:.1f}"]
        for n in plain_case
    ],
    ["product", "ordinary activations", "three outlying channels", "the same, smoothed"],
    caption=f"SQNR in dB of a product of {B} tokens with a {D} by {F} matrix.",
)

# %% [markdown]
# Weights alone in int8 hardly mind the outliers. With activations in int8 too, three channels out
# of {{D:,}} cost
# {{plain_case["int8 both, by token and channel"] - outlier_case["int8 both, by token and channel"]:.0f}}
# dB, since a scale for each token does not help against channels. The last column divides each
# channel of $X$ by a constant and multiplies the matching row of $W$ by it, chosen so that both end
# with the same largest magnitude. The product is the same, and
# {{smooth_case["int8 both, by token and channel"] - outlier_case["int8 both, by token and channel"]:.0f}}
# dB come back (Xiao et al., 2023). int4 in blocks gains too: the three rows of $W$ that carry most
# of the product grow, and each takes the largest codes of its blocks.
#
# ## Will the answers still be right?
#
# Train the small network properly, then quantize its weights and count right answers.

# %% tags=["holds"]
assert abs(plain_case["int8 weights only"] - outlier_case["int8 weights only"]) < 0.1, (
    "hardly mind the outliers"
)
assert np.allclose(
    np.abs(outlying / channel).max(axis=0), np.abs(W * channel[:, None]).max(axis=1)
), "the same largest magnitude"
assert ((outlying[:, [7, 300, 801]] @ W[[7, 300, 801]]) ** 2).sum() > 0.8 * (
    (outlying @ W) ** 2
).sum() and channel[[7, 300, 801]].min() > 2 * np.delete(channel, [7, 300, 801]).max(), (
    "takes the largest codes"
)
assert (
    smooth_case["int4 weights only, in blocks"] - outlier_case["int4 weights only, in blocks"] > 4
), "each takes the largest"


# %%
def trained(steps=500, n=128):
    rng, weights = np.random.default_rng(7), layers_of(np.random.default_rng(0))
    for step in range(steps):
        found, _ = gradients(weights, *examples(rng, n), lambda v: v)
        for w, g in zip(weights, found):
            w -= 0.5 * (1 - step / steps) * g * (tokens / n)
    return weights


model, (tested, labels) = trained(), examples(np.random.default_rng(8), 4096)


def accuracy(weights):
    return float(np.mean(outputs(weights, tested).argmax(axis=1) == labels))


accuracy(model)


# %%
def quantized(bits, **group):
    return [quantize_symmetric(w, bits, **group).values for w in model]


widths_tried = [8, 6, 5, 4, 3, 2]
by_tensor = [accuracy(quantized(b)) for b in widths_tried]
by_channel = [accuracy(quantized(b, axis=1)) for b in widths_tried]
kept = {"tensor": by_tensor, "output channel": by_channel}
[round(share, 3) for share in by_channel]

# %% tags=["figure"]
figure(
    Chart(
        Axis("bits of a weight", domain=(9, 2), ticks=widths_tried),
        Axis("right answers", "%", domain=(0, 1)),
        [Line(widths_tried, kept[w], f"scale by {w}", c) for w, c in zip(kept, ("orange", "green"))]
        + [Rule(y=accuracy(model), label="not quantized")],
        height=320,
    ),
    caption=(
        "Eight bits cost nothing that can be seen, four cost a little, two cost more than a"
        " third of the right answers. What the scale is shared by matters more the fewer the"
        " bits."
    ),
    alt=(
        f"Accuracy against bits. Both lines start at {accuracy(model):.0%} with eight bits; by"
        f" channel {kept['output channel'][3]:.0%} is left at four bits and"
        f" {kept['output channel'][-1]:.0%} at two; one scale for a tensor falls earlier."
    ),
)

# %% tags=["holds"]
assert max(abs(kept[w][0] - accuracy(model)) for w in kept) < 0.002 and all(
    0.01 < accuracy(model) - kept[w][3] < 0.05 and kept[w][-1] < accuracy(model) * 2 / 3
    for w in kept
), "Eight bits cost nothing that can be seen"
assert (np.diff(np.subtract(kept["output channel"], kept["tensor"])[1:]) > 0).all(), (
    "What the scale is shared by matters more"
)
assert np.less(kept["tensor"], kept["output channel"])[2:].all() and {
    f"{kept[w][0]:.0%}" for w in kept
} == {f"{accuracy(model):.0%}"}, "one scale for a tensor falls earlier"

# %% [markdown]
# Accuracy looks flat for a while and then falls. With weights in bf16 the network answers
# {{accuracy([bf16.round(w) for w in model]):.1%}} correctly where it answered
# {{accuracy(model):.1%}}, and with int8 {{by_channel[0]:.1%}}: no difference that this test could
# see. int4 leaves {{by_channel[3]:.1%}}, a loss that it did see.

# %% tags=["holds"]
assert (
    max(abs(a - accuracy(model)) for a in (accuracy([bf16.round(w) for w in model]), by_channel[0]))
    < 2 * (0.07 * 0.93 / 4096) ** 0.5
), "no difference that this"
assert by_channel[3] < accuracy(model) - 2 * (0.07 * 0.93 / 4096) ** 0.5, "a loss that it did see"

# %% [markdown]
# ### Formats of real models
#
# This tests what the lesson says of real models. Each row below is a score that somebody published
# beside the same model's score in sixteen bits, in one table, under an open licence.

# %% tags=["figure"]
from lightspeed_models.accuracy import compared_recipes, scores

easy = ("MMLU", "GSM8K")
formats = {"fp8": "FP8", "int8": "INT8 W8A8", "int4 weights": "INT4", "NVFP4": "NVFP4",
           "MXFP4": "MXFP4", "caches in int8": "KV INT8", "caches in int4": "KV INT4"}  # fmt: skip
judged = {
    n: [s for s in scores(bits=key) if s.test in easy and not s.plain] for n, key in formats.items()
}
below = {n: sum(s.left < 1 - 2 * s.noise for s in of) for n, of in judged.items()}
over = {n: sum(s.left > 1 + 2 * s.noise for s in of) for n, of in judged.items()}
rows = [
    [n, len(of), f"{sum(s.value - s.baseline for s in of) / len(of):+.1f}",
     sum(s.left < 1 for s in of), below[n], over[n]]
    for n, of in judged.items()
]  # fmt: skip
heads = ["MMLU and GSM8K", "scores", "points, on average", "lower", "by two errors", "higher, ditto"]
table(rows, heads, caption="What formats cost, and what of it is more than the test's own noise.")

# %% tags=["setup"]
bases = {s.baseline for s in scores() if (s.model, s.test) == ("Llama-3.1-8B-Instruct", "GSM8K")}

# %% [markdown]
# Of fp8 {{below["fp8"]}} of {{len(judged["fp8"])}} scores are lower by more than two standard errors,
# and in no row is one higher by as much. So single differences are mostly noise, while their sum is
# not. {{len(scores())}} scores of {{len({s.model for s in scores()})}} models come from
# {{len({s.source for s in scores()})}} documents. In {{sum(f > p for f, p in compared_recipes(easy))}} of
# {{len(compared_recipes(easy))}} comparisons within a table a fitted recipe beats rounding to nearest.
#
# What these rows can't say: they have no NF4, no cache at a very long context, and none of the
# MXFP4 scores was made by the hardware. And quotients must stay within a table. The same instructed
# Llama has {{min(bases):.1f}} on GSM8K in one of them and {{max(bases):.1f}} in another, before
# anybody quantized it: more than most formats cost.

# %% tags=["holds"]
assert sum(over.values()) == 0 and below["fp8"] < 0.1 * len(judged["fp8"]), (
    "in no row is one higher by as much"
)
assert 100 * (1 - min(bases) / max(bases)) > 2, "more than most formats cost"

# %% [markdown]
# ## Blocks: true bits per weight
#
# The B200 and the MI355X put the block into the hardware. An *MX* (microscaling) block is
# {{BLOCK_FORMATS["mxfp4"].block}} small numbers under one power of two. An NVFP4 block is
# {{BLOCK_FORMATS["nvfp4"].block}} under an E4M3 number, and a second scale in fp32, one for the
# tensor, brings those numbers into the range of E4M3.
#
# These scales do vary along $d$. So each block $k$ has a sum of its own, which the unit multiplies
# by both scales before it adds it to the others in fp32:
#
# $$\sum_d x_{bd}\, w_{df} \approx \sum_k s_{bk}\, t_{kf} \sum_{d \in k} q_{bd}\, p_{df}$$
#
# And the scales are not free.

# %% tags=["holds"]
assert BLOCK_FORMATS["mxfp4"].scale is FORMATS["e8m0"] and FORMATS["e8m0"].mantissa_bits == 0, (
    "numbers under one power"
)
assert BLOCK_FORMATS["nvfp4"].scale is e4m3, "under an E4M3 number"


# %%
def stored(bits, size):
    """Passes a tensor through integers with an fp16 scale for each block."""
    return lambda t: quantize_symmetric(t, bits, block=size).values


blocks = {
    n: (f.element.name, f.block, f.scale.name, f.bits_per_weight, f.round)
    for n, f in BLOCK_FORMATS.items()
}
for name in ("Q8_0", "Q4_0"):
    size, width, scale_bits = GGML_BLOCKS[name]
    true = bits_per_weight(width, scale_bits, size)
    blocks[name] = ("int8" if width == 8 else "int4", size, "fp16", true, stored(width, size))
{n: true for n, (*_, true, _) in blocks.items()}

# %%
samples = {"normal": normal[: 2**16], "heavy": np.random.default_rng(9).standard_t(4, 2**16)}
parameters = number("llama2_70b.parameters")
weight_bytes(parameters, 16)

# %% tags=["figure"]
decibels = {
    n: [f"{sqnr(t, store(t)):.1f}" for t in samples.values()] for n, (*_, store) in blocks.items()
}
table(
    [
        [n, element, size, scale, f"{true:g}", weight_bytes(parameters, true), *decibels[n]]
        for n, (element, size, scale, true, _) in blocks.items()
    ],
    ["format", "element", "block", "scale", "bits a weight"]
    + ["Llama 2 70B", "normal weights, dB", "heavy tails, dB"],
    caption=(
        "Block formats; heavy tails are Student's t. The last two are those of ggml, the library of"
        " llama.cpp, here with symmetric codes. The fp32"
        " scale of NVFP4 is not counted: it serves the whole tensor."
    ),
)

# %% tags=["figure"]
points = {
    n: (true, sqnr(samples["heavy"], store(samples["heavy"])))
    for n, (_, _, _, true, store) in blocks.items()
}
slope = sqnr_law(9) - sqnr_law(8)
start, level = points["mxfp4"]
marks = [
    Points(*zip(*points.values()), labels=list(points), color="blue"),
    Line(
        [start, 9],
        [level, level + (9 - start) * slope],
        f"{slope:.2f} dB a bit, from mxfp4",
        "grey",
        dash=True,
        label_at="along",
    ),
]
across, up = Axis("true bits per weight", domain=(3.5, 9.5)), Axis("SQNR, dB", domain=(10, 50))
figure(
    Chart(across, up, marks, height=360),
    caption="Heavy tails. Within a block the scale provides the range, so a wide exponent of the"
    " elements is wasted: E2M3 does with six bits what E4M3 does with eight. At eight bits"
    " integers are well ahead; at four, NVFP4 is.",
    alt="Points of SQNR against true bits per weight. NVFP4 lies above MXFP4 for a quarter of a"
    " bit more; MXFP6 E2M3 is level with MXFP8 E4M3; Q8_0 is far above both.",
)

# %% tags=["holds"]
assert abs(points["mxfp6_e2m3"][1] - points["mxfp8_e4m3"][1]) < 0.5, "E2M3 does with six bits"
assert (
    points["Q8_0"][1] > points["mxfp8_e4m3"][1] + 10
    and points["nvfp4"][1] > max(points["Q4_0"][1], points["mxfp4"][1]) + 2
), "At eight bits integers are well ahead"
assert (
    points["nvfp4"][1] > points["mxfp4"][1]
    and points["nvfp4"][0] - points["mxfp4"][0] == 1 / 4
    and points["Q8_0"][1] > points["mxfp6_e2m3"][1] + 10
), "NVFP4 lies above MXFP4"

# %% [markdown]
# ## Training in eight bits, and in four
#
# Training is mostly matrix products, and the units of an H100 do twice as many operations a second
# in fp8 as in bf16. But E4M3 has far less range. Store the tensors of the small network in E4M3,
# with the loss scale that saved fp16. What will happen? Would a scale for each tensor help?

# %% tags=["holds"]
assert accelerator("h100_sxm").fp8 == 2 * accelerator("h100_sxm").bf16, "twice as many operations"
assert bf16.max / bf16.smallest_subnormal > 1e30 * e4m3.max / e4m3.smallest_subnormal, (
    "E4M3 has far less"
)


# %%
def scaled(format):
    """A store that scales each tensor to the range of the format."""

    def store(t):
        t = t.astype(np.float32).astype(float)  # what the units sum in, whatever their order
        scale = (np.abs(t).max() or 1.0) / format.max
        return format.round(t / scale, saturate=True) * scale

    return store


scaled(e4m3)(np.array([3e-9, 1e-9]))

# %% [markdown]
# The larger number becomes {{e4m3.max:g}}, the last of E4M3. A third of that is
# {{e4m3.max / 3:.1f}}, and the nearest number of the format is {{e4m3.round(e4m3.max / 3):g}}: that
# is the error of the smaller one.

# %% tags=["holds"]
assert (
    abs(e4m3.round(e4m3.max / 3) / (e4m3.max / 3) - scaled(e4m3)(np.array([3e-9, 1e-9]))[1] / 1e-9)
    < 1e-6
), "and the nearest number"

# %%
narrow_runs = {
    "bf16": runs["bf16"],
    "fp8, loss scale": train(lambda t: e4m3.round(t, saturate=True), loss_scale),
    "fp8, a scale per tensor": train(scaled(e4m3)),
    "fp4, a scale per tensor": train(scaled(FORMATS["fp4_e2m1"])),
}
ends = {n: float(np.mean(run[-20:])) for n, run in narrow_runs.items()}
{n: round(end, 2) for n, end in ends.items()}

# %% tags=["figure"]
colors = ("blue", "orange", "green", "purple")
figure(
    Chart(
        Axis("step", domain=(0, 100)),
        Axis("loss", scale="log", domain=(0.4, 40)),
        [
            Line(np.arange(1.0, 101.0), run, n, c, dash=n == "bf16")
            for (n, run), c in zip(narrow_runs.items(), colors, strict=True)
        ],
        height=320,
    ),
    caption="With a scale for each tensor, eight bits train this network as bf16 does. Four bits"
    " end higher.",
    alt="Loss against step. fp8 with a loss scale stays high; fp8 with a scale for each tensor"
    f" ends beside bf16, near {ends['bf16']:.1f}, and fp4"
    f" at {ends['fp4, a scale per tensor']:.1f}.",
)

# %% tags=["holds"]
assert (
    abs(ends["fp8, a scale per tensor"] / ends["bf16"] - 1) < 0.1
    and ends["fp8, loss scale"] > 2 * ends["bf16"]
), "With a scale for each tensor"
assert ends["fp4, a scale per tensor"] > 1.05 * ends["bf16"], "end higher"

# %% [markdown]
# The loss scale of fp16 is too small here: {{np.mean(e4m3.round(exact * loss_scale) == 0):.0%}} of
# the signal at the first layer still becomes zero. A larger one would save this small network. In a
# large model some tensors would then overflow while others still vanish. **So in eight bits each
# tensor gets a scale of its own.** To find its largest magnitude the tensor is read once more
# before it is cast; *delayed scaling* takes it from the steps before.
#
# ### The weights that the optimizer keeps
#
# A weight is one, and the update is a hundredth. In E4M3 the next number above one is
# {{1 + e4m3.eps:.3f}}, so the weight stays where it is, step after step. So the optimizer keeps
# *master weights* in fp32, and a narrow copy goes to the matrix products. Two recipes, beside that
# of bf16:

# %% tags=["holds"]
assert (
    np.mean(e4m3.round(exact * loss_scale) == 0)
    > 0.5
    > np.mean(fp16.round(exact * loss_scale) == 0)
), "layer still becomes zero"
assert e4m3.round(1.01) == 1, "the next number above"

# %%
fp8, four, adam = find("adam_fp8"), find("nvfp4_training"), find("adam_mixed_precision")
nvfp4, narrowest = BLOCK_FORMATS["nvfp4"], FORMATS["fp4_e2m1"]
fp8.total, adam.total - adam.gradients + fp8.gradients

# %% tags=["figure"]
along = "{0} along the sum; of weights, {0} × {0}"
left = "softmax, norms"
wide = f"{left}, embedding, output, attention", f"{left}, {si(four.wide, '%')} of linear layers"
sums = f"about {fp8.accumulator_bits:.0f} bits, then fp32"
table(
    [
        ["operands of matrix products", "bf16", "E4M3", "NVFP4"],
        ["gradients that flow back", "bf16", "E4M3 (in others E5M2)", "NVFP4, rounded at random"],
        ["a scale for each", "–", along.format(f"{fp8.group:.0f}"), along.format(nvfp4.block)],
        ["running sum", "fp32", sums, "fp32"],
        ["master weights, summed gradients", "fp32", "fp32", "fp32"],
        ["Adam's two moments", "fp32", "bf16", "fp32"],
        ["left wide", left, *wide],
    ],
    ["", "bf16", "fp8, DeepSeek-V3", "fp4, NVIDIA"],
    caption="After the two reports (DeepSeek-AI, 2024; NVIDIA, 2025).",
)

# %% [markdown]
# Narrow products save time and shrink the activations that are kept. The states of the weights
# shrink less. Weight, gradient, master weight and two moments of DeepSeek-V3 take
# {{fp8.weights:.0f}} + {{fp8.gradients:.0f}} + {{fp8.master_weights:.0f}} + {{fp8.momentum:.0f}} +
# {{fp8.variance:.0f}} = {{fp8.total:.0f}} bytes, those of the column of bf16
# {{adam.total - adam.gradients + fp8.gradients:.0f}}, and most of the saving comes from the moments
# in bf16, not from fp8.

# %% tags=["holds"]
assert 0.5 < fp8.total / (adam.total - adam.gradients + fp8.gradients) < 0.8, "most of the saving"
assert adam.momentum + adam.variance - fp8.momentum - fp8.variance > 0.5 * (
    adam.total - adam.gradients + fp8.gradients - fp8.total
), "most of the saving comes"

# %%
unit = Format("running sum", 8, int(fp8.accumulator_bits) - 1, bias=127)
grown, small = 4096.0, 0.2
tossed = float(narrowest.round(np.full(10_000, small), rng=np.random.default_rng(0)).mean())
unit.spacing(grown), tossed

# %% [markdown]
# ### Where training breaks
#
# - **The sum.** With {{fp8.accumulator_bits:.0f}} bits, a sum that has reached {{written(grown)}}
#   moves in steps of {{unit.spacing(grown):g}}: it begins to stall, as the sum of ones did.
#   DeepSeek-V3 moves it to fp32 after every {{fp8.group:.0f}} products.
# - **Small gradients.** In fp4 the first number above zero is
#   {{written(narrowest.smallest_subnormal)}}, so a gradient that is {{small:g}} after scaling
#   becomes zero. Rounded at random, such gradients keep their mean, {{tossed:.2f}} here.
# - **Two copies of a weight.** The forward pass sums along its rows, the backward pass along its
#   columns. Blocks along the sum would cut the matrix differently in each, and the two passes would
#   see different weights. So the recipe uses square blocks.
# - **Outliers.** One of them sets the scale of its whole block. For the gradients of weights, the
#   recipe first spreads it over the {{nvfp4.block}} numbers of its block: it multiplies the block
#   with a matrix that keeps lengths, a *rotation* with random signs. The other matrix of the
#   product is rotated as well, and in a sum of products the two rotations cancel.
#
# Does it hold at scale? NVIDIA trained {{si(four.parameters, "parameter")}} on
# {{si(four.tokens, "token")}} in this way. On MMLU-Pro the model answers {{four.mmlu_pro:.2%}}
# correctly, and its twin in fp8 {{four.mmlu_pro_fp8:.2%}}. They report that training diverged when
# every linear layer was in fp4.

# %% tags=["holds"]
assert 0 < small < narrowest.smallest_subnormal / 2, "first number above zero"
assert narrowest.round(small) == 0 and abs(tossed - small) < 0.01, "gradients keep their mean"
assert four.mmlu_pro_fp8 - four.mmlu_pro < 0.001, "MMLU-Pro the model answers"

# %% [markdown]
# ## And to energy
#
# Take one weight, read from DRAM once, and one multiply-add with it for each use, by Horowitz's
# table of an old process:

# %%
joules = energy("horowitz_45nm")
operation_energy(1, 4, joules.fp32_fma, joules.dram_per_byte)

# %%
units = {"fp32": (4, joules.fp32_fma), "fp16": (2, joules.fp16_fma), "int8": (1, joules.int8_fma)}
rows = []
for name, (size, operation) in units.items():
    once = operation_energy(1, size, operation, joules.dram_per_byte)
    often = operation_energy(1000, size, operation, joules.dram_per_byte) / 1000
    rows.append((name, operation, size * joules.dram_per_byte, once, often))
once

# %% tags=["figure"]
table(
    [[name, *[si(energy, "J") for energy in row]] for name, *row in rows],
    [
        "format",
        "multiply-add",
        "reading the weight",
        "used once, per use",
        "used a thousand times, per use",
    ],
)

# %% [markdown]
# A multiply-add in fp32 takes {{rows[0][1] / rows[2][1]:.0f}} times the energy of one in int8. Used
# once, though, a weight in fp32 takes {{rows[0][3] / rows[2][3]:.1f}} times what it takes in int8:
# reading it costs far more than using it, and the bytes fell to a quarter. The gain of the units
# appears only with reuse. That is so in newer processes, too: at {{energy("jouppi_7nm").process}}
# four bytes from GDDR6 take over a hundred times the energy of an fp32 multiplication (Jouppi et
# al., 2021).

# %% tags=["holds"]
assert rows[0][1] > rows[1][1] > rows[2][1], "multiply-add in fp32 takes"
assert min(read / fma for _, fma, read, _, _ in rows) > 100 and rows[0][2] == 4 * rows[2][2], (
    "far more than using"
)
assert rows[0][4] / rows[2][4] > 3 * rows[0][3] / rows[2][3], "appears only with reuse"
assert energy("jouppi_7nm").gddr6_64b_least / 2 > 100 * energy("jouppi_7nm").fp32_multiply, (
    "a hundred times the energy"
)

# %% [markdown]
# ## Further reading
#
# - Goldberg, *What every computer scientist should know about floating-point arithmetic* (1991).
# - Dettmers et al., *LLM.int8()* (2022), and Xiao et al., *SmoothQuant* (2023): outliers, and two
#   ways to live with them.
# - Open Compute Project, *Microscaling formats specification* (2023): MX.
