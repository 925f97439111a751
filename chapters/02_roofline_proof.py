# %% [markdown]
# # 2. The roofline: the proof
#
# [The lesson](02_roofline.ipynb) says that a kernel takes as long as the slower of two clocks, and
# that FLOPs over bytes against the ridge tells which. Here that is held against kernels which
# others measured, and against the machine in front of you.
#
# ## What is claimed, and how well it holds

# %% tags=["setup"]
import numpy as np
from lightspeed.catalog import accelerator, entries, find, link
from lightspeed.roofline import *
from lightspeed_course import (
    ask, Axis, Chart, figure, gallery, Line, Points, predict, residual_chart, reveal, roof_chart,
    Rule, si, Span, sweep, table, weigh,
)  # fmt: skip
from lightspeed_models.llm import decoder
from lightspeed_models.llm.shipped import shipped as shipped_models
from lightspeed_models.evidence.pairings.products import in_both, left_out, SET_BY

# %% tags=["figure"]
h100, h200, b200 = (accelerator(k) for k in ("h100_sxm", "h200_sxm", "b200"))
keys = (
    "v100_sxm", "a100_40gb", "a100_80gb", "h100_sxm", "h200_sxm", "b200", "mi300x",
    "tpu_v5e", "tpu_v5p", "tpu_v6e",
)  # fmt: skip
chips = [accelerator(k) for k in keys]


def dense(chip):
    """The peak of the matrix units for operands of two bytes: bf16, or fp16 on the V100."""
    return chip.bf16 if "bf16" in chip else chip.fp16


ridges_of = {c.key: ridge_point(dense(c), c.hbm_bandwidth) for c in chips}
ridge, D, F = ridge_point(h100.bf16, h100.hbm_bandwidth), 8192, 8192


def bound(e):
    """The chip, what is narrow, and the bounds of a measured product."""
    chip, narrow = accelerator(e.accelerator), e.precision == "fp8"
    weight = e.about.get("weight_bytes", 1 if narrow else 2)
    size = matmul_bytes(e.m, e.k, e.n, weight, 1 if narrow else 2, 2)
    peak = getattr(chip, e.precision)
    kind = "int8 weights" if weight == 1 and not narrow else e.precision
    return chip, kind, time_bounds(matmul_flops(e.m, e.k, e.n), size, peak, chip.hbm_bandwidth)


products = [e for e in entries("measured").values() if e.key.startswith("gemm_")]
products.sort(key=lambda e: (e.accelerator, e.precision, e.m))
rows = [(c, kind, e, i, i.lower / e.time) for e in products for c, kind, i in [bound(e)]]
shares = [share for *_, share in rows]
gemms = weigh("roofline-gemm")
full, kept = gemms.regime("compute-bound"), len(gemms.rows)
times, low, high = left_out(gemms.rows)
unseen = np.isfinite(times) & (gemms.rows["format"] == "bfloat16")
off = np.abs(times / gemms.rows["latency"] - 1)[unseen]
table(
    [
        ["a kernel takes at least its slower clock", f"{full.rows:,} compute-bound of {kept:,}",
         f"{si(full.ratios[1], '%', 2)} of the roof", f"{si(full.ratios[0], '%', 2)} (one in twenty is below)",
         "what fits a cache beats it", "[Thousands](#The-same-bound-against-tens-of-thousands-of-products)"],
        ["the same, one by one, by an operator table", f"{len(rows)} products",
         f"{si(np.median(shares), '%', 2)} of the roof", si(min(shares), "%", 2), "narrow formats",
         "[Check](#Check:-against-measured-kernels)"],
        ["both clocks at a share of their rates, on a chip left out", f"{len(off):,} bf16 products",
         f"{si(np.median(off), '%', 2)} off", f"{si(np.quantile(off, 0.95), '%', 2)} (one in twenty is beyond)",
         "chips unlike those that set it", "[Forecast](#A-forecast-with-an-interval)"],
    ],
    ["law", "rows tested", "median", "worst", "where it fails", "section"],
)  # fmt: skip

# %% [markdown]
# A *share of the roof* is the bound over the measured time: at one hundred per cent a kernel is as fast
# as the law allows, and above it the law is beaten.
#
# ## Check: against measured kernels
#
# A kernel cannot take less than the lower bound, and a bound that is far off is of little use. Here
# are matrix products measured by others, with three precisions on three chips, and the bound for
# each.

# %% tags=["holds"]
assert (
    len({e.accelerator for e in entries("measured").values() if e.key.startswith("gemm_")}) == 3
), "precisions on three chips"

# %%
len(rows)

# %%
columns = ["chip", "precision", "tokens", "lower bound", "measured", "share of roof", "bound by"]
table(
    [
        [c.name, kind, e.m, i.lower, e.time, si(s, "%"), "units" if i.compute_bound else "memory"]
        for c, kind, e, i, s in rows
    ],
    columns,
    caption=f"Weights of side {rows[0][2].n}, from the operator tables of aiconfigurator.",
)

# %% tags=["figure"]
colors = {"bf16": "blue", "fp8": "orange", "int8 weights": "purple"}
markers = {"bf16": "circle", "fp8": "square", "int8 weights": "triangle"}
groups = {p: [(e.m, s) for _, kind, e, _, s in rows if kind == p] for p in colors}
full, narrow = ([s for p in ps for _, s in groups[p]] for ps in (["bf16"], ["fp8", "int8 weights"]))
figure(
    Chart(
        Axis("batch", "token", "log", domain=(0.7, 2e4)),
        Axis("lower bound over measured time", "%", domain=(0.4, 1.1)),
        [
            Rule(y=1, label="the roof"),
            *(Points(*zip(*g), p, (), colors[p], markers[p]) for p, g in groups.items()),
        ],
        height=320,
    ),
    caption="None of them beats the roof. In bf16 they reach most of it, in narrower formats about "
    "six tenths.",
    alt=f"Points below a rule at one hundred per cent: bf16 products between {min(full):.0%} and "
    f"{max(full):.0%}, fp8 and int8 weights between {min(narrow):.0%} and {max(narrow):.0%}.",
)

# %% tags=["holds"]
assert max(s for *_, s in rows) <= 1, "None of them beats the roof"
assert min(s for _, s in groups["bf16"]) > 0.6 and all(
    0.55 < s < 0.65 for _, s in groups["fp8"] + groups["int8 weights"]
), "In bf16 they reach most of it"
assert max(s for *_, s in rows) < 1, "Points below a rule at one hundred per cent"

# %% [markdown]
# The roofline bounds {{sum(share <= 1 for *_, share in rows)}} of {{len(rows)}} measurements from
# below. Its error is the gap: in bf16 the kernels reach {{min(s for _, s in groups["bf16"]):.0%}}
# to {{max(s for _, s in groups["bf16"]):.0%}} of it.
#
# ### Where it breaks
#
# - **Peaks are not reached.** The table below has the best matmul that a search over shapes has
#   found on each chip. Clocks fall as a chip heats up, and the units also wait for synchronisation
#   and at the edges of tiles.
# - **Narrow formats gain less than their width promises.** Look at the {{markers["fp8"]}} markers.
#   With half the bytes and twice the peak, the kernels come to about six tenths of the roof.
# - **Short kernels.** At a few tens of microseconds, the launch and the start of a kernel count.
#   The roofline does not have such a term, but the Iron Law of chapter 1 has.

# %% tags=["holds"]
assert all(share <= 1 for *_, share in rows), "measurements from below"
assert max(s for _, s in groups["fp8"]) < min(s for _, s in groups["bf16"]), "less than their width"
assert all(0.55 < s < 0.65 for _, s in groups["fp8"]), "and twice the peak"

# %%
best = [e for e in entries("measured").values() if e.key.startswith("mamf_")]
math_share = {(e.accelerator, e.precision): float(e.share) for e in best}
table(
    [[accelerator(e.accelerator).name, e.precision, e.matmul, si(e.share, "%")] for e in best],
    ["chip", "precision", "best measured matmul", "share of dense peak"],
    caption="Maximum achievable matmul FLOP/s (MAMF), from Machine Learning Engineering.",
)

# %% [markdown]
# Lower both roofs to what was measured, and the bound becomes an estimate. Take
# the share of peak from the table; where it has none for a chip and a format, take that of bf16 on
# the H100. Take the share of bandwidth, for all chips, from a single measurement, the smallest bf16
# product on the H100. Then test on the rows that the estimate has not seen.

# %%
[memory_share] = [s for c, k, e, _, s in rows if (c.key, k, e.m) == ("h100_sxm", "bf16", 1)]
si(memory_share, "%")

# %%
errors = []
for c, kind, e, ideal, share in rows:
    of_peak = math_share.get((c.key, e.precision), math_share["h100_sxm", "bf16"])
    estimate = max(ideal.math / of_peak, ideal.comms / memory_share)
    if share != memory_share:
        errors.append((c.name, kind, e.m, estimate / e.time - 1))
si(np.median([abs(error) for *_, error in errors]), "%")

# %%
columns = ["chip", "precision", "tokens", "estimate over measured"]
table([[c, kind, m, f"{error:+.0%}"] for c, kind, m, error in errors], columns)

# %% [markdown]
# The median error is {{np.median([abs(x[-1]) for x in errors]):.0%}}, the largest
# {{max(abs(x[-1]) for x in errors):.0%}}. In bf16 alone the two are
# {{np.median([abs(x[-1]) for x in errors if x[1] == "bf16"]):.0%}} and
# {{max(abs(x[-1]) for x in errors if x[1] == "bf16"):.0%}}, so two shares turn the bound into a
# usable estimate there. In narrow formats each estimate is too short, by
# {{min(-x[-1] for x in errors if x[1] != "bf16"):.0%}} to
# {{max(-x[-1] for x in errors if x[1] != "bf16"):.0%}}.
#
# ### The same bound against tens of thousands of products
#
# A handful of rows can agree by luck. NVIDIA publishes millions of products on ten GPUs, in several
# libraries and formats. A sample comes with the course; `lightspeed evidence roofline --data DIR`
# reads the whole. The table sorts the rows by their bound, not by the measured time. Memory-bound
# rows whose bytes fit into twice the L2 cache stand apart. First a forecast.

# %% tags=["holds"]
assert max(abs(x[-1]) for x in errors) < 0.5, "the largest"
assert np.median([abs(x[-1]) for x in errors if x[1] == "bf16"]) < 0.1, "into a usable estimate"
assert all(x[-1] < -0.15 for x in errors if x[1] != "bf16"), "estimate is too short"
assert (
    weigh("roofline-gemm").rows.record.full_rows > 2e6
    and len(weigh("roofline-gemm").rows["chip"].present()) == 10
), "several libraries and formats"

# %%
predict("roofline.left_out_chip", ...)

# %%
too_fast = [one for one in gemms.rows.refused if one.reason.startswith("faster")]
table(
    [[e.regime, e.rows, si(e.ratios[1], "%"), si(e.beaten, "%")] for e in gemms.by_regime],
    ["regime", "rows", "median share of the roof", "rows that beat it"],
    caption=f"Left out as faulty: {len(gemms.rows.refused)} rows. {len(too_fast)} of them are "
    f"faster than the chip allows, such as {too_fast[0].name}: {too_fast[0].reason}.",
)

# %% tags=["holds"]
assert len(too_fast) < len(gemms.rows.refused), "of them are faster"

# %% tags=["figure"]
figure(
    residual_chart(gemms, dots=90, height=320),
    caption="Of the products that were kept, no compute-bound one beats the roof. Nearly all of "
    "those that beat it are short, and their operands fit the cache.",
    alt="The bound over the measured time, by regime: compute-bound products lie between "
    f"{gemms.regime('compute-bound').ratios[0]:.0%} and "
    f"{gemms.regime('compute-bound').ratios[2]:.0%} of the roof, short ones anywhere.",
)

# %% tags=["holds"]
assert gemms.regime("compute-bound").beaten == 0, "no compute-bound one beats the roof"
assert (gemms.judged.excused & (gemms.judged.regime == "under 0.1 ms"))[
    gemms.ratio > 1.02
].mean() > 0.9, "those that beat it"


# %%
def share(chip, kind, bound="compute-bound"):
    """The median share of the roof on a chip in a format."""
    own = (gemms.rows["chip"] == chip) & (gemms.rows["format"] == kind)
    return float(np.median(gemms.ratio[own & (gemms.judged.regime == bound)]))


over = gemms.ratio > 1.02
on_l40s = float(over[gemms.rows["chip"] == "l40s"].mean())
on_h100 = float(over[gemms.rows["chip"] == "h100_sxm"].mean())
peaks = accelerator("b200").fp4 / accelerator("b200").bf16
l40s = find("l40s")
in_cache = gemms.judged.excused[over & (gemms.rows["chip"] == "l40s")].mean()

own = (gemms.rows["chip"] == "b200") & (gemms.judged.regime == "compute-bound")
pairs = in_both(gemms.rows, own, "bfloat16", "nvfp4")
[[kind, si(share("b200", kind), "%")] for kind in ("bfloat16", "fp8", "nvfp4")]

# %%
reveal("roofline.left_out_chip")

# %% [markdown]
# What the rows teach:
#
# - **Memory is one level of several.** On an L40S {{on_l40s:.0%}} of the rows beat the roof of its
#   memory, on an H100 {{on_h100:.2%}}. The L40S has a slow memory behind a large cache, and a
#   benchmark that repeats one product finds its operands there.
# - **A narrow format is a promise.** In the median, bf16 reaches {{share("b200", "bfloat16"):.0%}}
#   of its own roof on a B200, fp8 {{share("b200", "fp8"):.0%}}, nvfp4
#   {{share("b200", "nvfp4"):.0%}}. With {{peaks:.0f}} times the peak of bf16, the {{len(pairs)}}
#   products that the sample has in both formats, in one library, are {{np.median(pairs):.1f}} times
#   as fast, in the median.
# - **A bound judges the data, too.** {{len(too_fast)}} rows were refused because no cache and no
#   clock explains their speed. The zero in the table is without the
#   {{sum("peak" in one.reason for one in too_fast)}} of them that beat a peak.

# %% tags=["holds"]
assert on_l40s > 10 * on_h100, "rows beat the roof"
assert (
    l40s.hbm_bandwidth < h100.hbm_bandwidth / 3
    and l40s.l2_capacity > h100.l2_capacity
    and in_cache > 0.9
), "finds its operands there"
assert share("b200", "bfloat16") > share("b200", "fp8") > share("b200", "nvfp4"), "roof on a B200"
assert len(pairs) > 10 and np.median(pairs) < 3, "products that the sample has in both formats, in one library, are {{np.median(pairs):.1f}} times as fast"
assert (lambda m, n, k, ms: matmul_flops(m, n, k) / (ms / 1e3) > h100.bf16)(
    *(float(part.split()[1]) for part in too_fast[0].name.split(", ")[3:])
), "no clock explains their"
assert gemms.regime("compute-bound").beaten == 0, "that beat a peak"

# %%
ask("roofline.beaten_by_cache")

# %% [markdown]
# ### A forecast with an interval
#
# The roofline is a bound. `product_time` says what to expect: both clocks at a share of their
# rates, after the time of a launch. The shares and the launch are set by products that were timed.
# So leave one chip out, set them by the others (`left_out` does that for each chip), and forecast
# the one that they have not seen. How far off the others are gives an interval, made to hold nine
# rows of ten.

# %%
took, wide = gemms.rows["latency"], gemms.rows["format"] == "bfloat16"
off, inside = np.abs(times / took - 1), (low <= took) & (took <= high)
forecast = {}
for chip in (*SET_BY, "l40s"):
    own = wide & (gemms.rows["chip"] == chip)
    forecast[chip] = (int(own.sum()), float(np.median(off[own])), float(inside[own].mean()))
table(
    [[find(c).name, n, si(o, "%"), si(i, "%")] for c, (n, o, i) in forecast.items()],
    ["chip left out", "bf16 products", "median error", "inside the interval"],
)

# %% [markdown]
# On the first five chips the interval holds {{min(forecast[c][2] for c in SET_BY):.0%}} to
# {{max(forecast[c][2] for c in SET_BY):.0%}} of the rows, and on the L40S
# {{forecast["l40s"][2]:.0%}}. An interval speaks for chips like those that made it.

# %% tags=["holds"]
assert len(SET_BY) == 5 and min(forecast[c][2] for c in SET_BY) > 0.7, "chips the interval holds"
assert forecast["l40s"][2] < min(forecast[c][2] for c in SET_BY), "five chips the interval"

# %% [markdown]
# ## Measure it here
#
# The machine in front of you has a roofline too. Both of its roofs can be measured: the flat one
# with large matrix products, the slopes with loops that move bytes over more and more memory. Then
# come kernels whose FLOPs and bytes are *counted*, by the laws of this chapter, on vectors too
# large for the caches.
#
# Decide first, with the roofline in mind. Element by element, with $x$ and $y$ in fp32:
#
# - `axpy`, $y \leftarrow s\,x + y$; a **dot product**; a **ReLU** from one vector into another.
# - A **fused chain**, $y \leftarrow \max(s\,x + b, 0)$, in one pass, and the same **in three
#   passes**, one for each operator.
#
# Which of them does the most FLOP/s, and which the least? How many times faster is the fused chain?
# And which reach their roof? Put in your own shares.

# %%
from lightspeed_course import measure_here, shipped
from lightspeed_tools.measure.instruments.kernels import FLOPS, PASSES
from lightspeed_tools.measure.instruments.roofline import roof as roof_of
from lightspeed_tools.measure.pages.machine_figures import (
    peaks_table,
    roofline_figure,
    roofline_table,
)

guess = {"ReLU": 1.0, "axpy": 1.0, "dot product": 1.0}  # of its roof, from 0 to 1
guess

# %%
width = 4  # bytes of a number in fp32
loops = {
    "ReLU": "relu", "axpy": "axpy", "dot product": "dot", "fused chain": "fused",
    "in three passes": "unfused",
}  # fmt: skip
table(
    [
        [name, FLOPS[k], PASSES[k] * width, arithmetic_intensity(FLOPS[k], PASSES[k] * width)]
        for name, k in loops.items()
    ],
    ["kernel", "FLOPs per element", "bytes per element", "intensity"],
    caption="By count. According to the roofline, the rates of these kernels are proportional to "
    "their intensities.",
)

# %% tags=["measured"]
mine = measure_here("roofline")

# %% tags=["measured"]
roofline_figure(mine)

# %% tags=["measured"]
roofline_table(mine, guess)

# %% tags=["measured"]
peaks_table(mine)

# %% [markdown]
# ### Explain the difference
#
# - **A kernel that reads one vector and writes another, such as the ReLU, often stays below the
#   slope.** Before it overwrites part of a line, a processor fetches that line. The count says
#   {{PASSES["relu"] * width}} bytes per element; with that fetch
#   {{(PASSES["relu"] + 1) * width}} cross the bus. So the kernel can reach
#   {{PASSES["relu"] / (PASSES["relu"] + 1):.0%}} of the roof. `axpy` writes where it has just
#   read, so its count is right.
# - **A kernel that reads more than it writes, such as the dot product, can stay below it, too.**
#   The slope comes from a loop that reads and writes at once. A core can have only a limited number
#   of reads in flight, however idle the memory is.
# - **Fusion may save less time than it saves passes.** It does the same FLOPs in a third of the
#   counted bytes. But it writes into another vector and pays for that fetch, while two of the three
#   passes work in place and do not.
# - **Small products do not reach the flat roof** though their intensity exceeds the ridge by far.
#   Preparing the blocks, starting the threads and waiting for the last of them takes a time that
#   does not shrink with the matrix.
# - **A share of more than one** says that a roof was measured too low. The slope comes from a few
#   loops, not from a law of nature.
#
# ### The same on a recorded machine
#
# This is a rented virtual machine, measured for the course.

# %% tags=["holds"]
assert 3 * PASSES["fused"] == PASSES["unfused"] and FLOPS["fused"] == FLOPS["unfused"], (
    "a third of the counted"
)

# %%
recorded = shipped()["amd_epyc_2core"]
roofline_figure(recorded)

# %%
roofline_table(recorded)

# %%
first = roof_of(recorded)
ridge_point(max(first.peaks.values()), first.memory)

# %% [markdown]
# Compare this ridge, the highest of its types, with those of the ten chips. A CPU has few units for
# its bandwidth, so its ridge is far lower than that of an accelerator. Work that starves a GPU can
# keep a CPU busy, and a trick that saves bytes gains less there.
#
# ### And on another maker's
#
# While this one was measured, neighbours took a part of its time.

# %% tags=["holds"]
assert max(first.peaks.values()) / first.memory < min(ridges_of.values()) / 2, "ridge is far lower"

# %%
other = shipped()["intel_xeon_2core"]
roofline_figure(other)

# %%
second = roof_of(other)
gains = [r.peaks["bf16"] / r.peaks["fp32"] for r in (first, second)]
table(
    [
        *(
            [f"{kind} product", *(si(r.peaks[kind], "FLOP/s") for r in (first, second))]
            for kind in ("fp32", "bf16")
        ),
        ["memory", *(si(r.memory, "byte/s") for r in (first, second))],
        ["ridge in fp32", *(r.peaks["fp32"] / r.memory for r in (first, second))],
    ],
    ["all cores", "AMD EPYC", "Intel Xeon"],
)

# %% [markdown]
# In fp32 the two are nearly alike: the second reaches
# {{second.peaks["fp32"] / first.peaks["fp32"]:.0%}} of the first. From memory it gets
# {{second.memory / first.memory:.0%}}. So its ridge is the higher one. A kernel between the two
# ridges is compute-bound on one machine and memory-bound on the other.
#
# bf16 gains a factor of {{gains[0]:.1f}} on the first. A vector of the processor holds twice as
# many numbers of half the size. On the second bf16 gains a factor of {{gains[1]:.1f}}. There
# PyTorch takes a unit that multiplies whole tiles of matrices (`amx_bf16`).
#
# ## Kernels, against public profiles
#
# Lesson 2.2 counts what kernels ask for on a machine that executes nothing but loads and stores. Is
# that what a profiler sees? Others published counters of Nsight Compute. The traffic with L2 follows
# from the tile alone, that with DRAM from a cache in which the least recently used sector leaves:

# %% tags=["holds"]
assert 0.8 < second.peaks["fp32"] / first.peaks["fp32"] < 1.25, "two are nearly alike"
assert second.peaks["fp32"] / second.memory > first.peaks["fp32"] / first.memory, (
    "ridge is the higher"
)

# %% tags=["setup"]
from lightspeed.catalog import measured
from lightspeed_course.explorers.kernels import clocks

PROFILES, TILE = measured("kernels"), 128
fa3, qkv = PROFILES["attention"], PROFILES["gemm"][0]


def asked_for(r):
    """GiB that the operands of all layers ask of L2, by the law of tiles."""
    size = tiled_matmul_bytes(r["rows"], r["n"], r["k"], TILE, TILE) - 2 * r["rows"] * r["n"]
    return round(r["layers"] * size / 2**30, 2)


# %%
table(
    [
        [r["name"], r["l2_in"], asked_for(r), r["dram_in"], r["counted_in"], r["other_order"]]
        for r in PROFILES["gemm"]
    ],
    ["product", "L2, printed", "L2, counted", "DRAM, printed", "DRAM, counted", "rows first"],
    caption=f"GiB that two matmuls of GPT-2 read on an A100, in tiles of {TILE} by {TILE}.",
)

# %% tags=["setup"]
order_gain = qkv["other_order"] / qkv["counted_in"]
best = clocks("h100_sxm", "one, in tiles", 8192, TILE, False)
ceiling = best.flops / best.bound

# %% [markdown]
# L2's bytes agree within one per cent, so you can read the size of a library's tile off a profile.
# DRAM's come out a little low, because a profile also has what the model leaves out: pages, prefetch
# and the other half of this chip's cache. And the last column is the same product with the other
# side of the grid first, {{order_gain:.0f}} times the bytes in the first row.
#
# A launch of attention reaches at most what L2 allows at its block of queries. FlashAttention-3 was
# published at {{si(fa3["low"], "FLOP/s")}} to {{si(fa3["high"], "FLOP/s")}} on an H100, under the
# {{si(ceiling, "FLOP/s")}} of a block of {{TILE}} queries. Its authors report more for longer texts,
# which is above what this rate of L2 allows: the bound is as good as the rate that somebody measured.
# Not modelled are the L1 cache across loads, bank conflicts, multicast to clusters of SMs, and clocks.
#
# ## Gallery of wrong claims
#
# Each was published. Each is rebutted by a line that you can run.

# %% tags=["holds"]
assert all(abs(asked_for(r) / r["l2_in"] - 1) < 0.01 for r in PROFILES["gemm"]), (
    "L2's bytes agree within one per cent"
)
assert all(0.9 < r["counted_in"] / r["dram_in"] < 1 for r in PROFILES["gemm"]), (
    "DRAM's come out a little low, because a profile also has what the model leaves out: pages, prefetch and the other half of"
)
assert fa3["high"] < ceiling, 'was published at {{si(fa3["low"], "FLOP/s")}} to {{si(fa3["high"], "FLOP/s")}} on an H100, under'

# %%
gallery("02")

# %% [markdown]
# ## What the model leaves out
#
# It leaves out latency and the cost of a launch, caches that happen to keep data, units that are
# busy with address arithmetic, and power limits. It takes one memory and one peak at a time, and
# the two extremes of overlap. Use it to know what to look at first, not to promise a number.
#
# ## The ridges of ten chips

# %%
v6e, v5e = accelerator("tpu_v6e"), accelerator("tpu_v5e")
rows = [[c.name, dense(c), c.hbm_bandwidth, ridges_of[c.key]] for c in chips]
columns = ["chip", "dense peak", "memory bandwidth", "ridge"]
v100 = accelerator("v100_sxm")
table(rows, columns, caption="Ridge points, for dense products of operands of two bytes.")

# %% [markdown]
# From the V100 to the B200, the peak has grown {{dense(b200) / dense(v100):.0f}} times and the
# bandwidth {{b200.hbm_bandwidth / v100.hbm_bandwidth:.1f}} times, so the ridge has doubled. But it
# has not moved to the right at each step. The H200 put new memory beside the units of the H100. The
# B200 has new units and new memory, and its ridge is still below that of the H100. So look it up
# for your chip.
#
# ## Two memories, one roof
#
# HBM is one of several memories. The units of a TPU work on what lies in VMEM, a scratchpad on the
# chip that is much smaller than HBM and much faster. What already lies there need not come from
# HBM. So the same flat line gets a second slope.

# %% tags=["holds"]
assert 1.8 < ridges_of["b200"] / ridges_of["v100_sxm"] < 2.2, "the ridge has doubled"
assert h200.bf16 == h100.bf16 and h200.hbm_bandwidth > h100.hbm_bandwidth, "units of the H100"
assert ridges_of["h200_sxm"] < ridges_of["b200"] < ridges_of["h100_sxm"], "ridge is still below"
assert v5e.vmem_capacity < v5e.hbm_capacity / 100 and v5e.vmem_bandwidth > 10 * v5e.hbm_bandwidth, (
    "much smaller than HBM"
)

# %%
memories = {"HBM": v5e.hbm_bandwidth, "VMEM": v5e.vmem_bandwidth}
ridges = {name: ridge_point(v5e.bf16, rate) for name, rate in memories.items()}
ridges

# %% tags=["figure"]
regions = [
    Span(x=(None, ridges["VMEM"]), label="bound by both", color="orange"),
    Span(x=(ridges["VMEM"], ridges["HBM"]), label="bound by HBM only", color="amber"),
    Span(x=(ridges["HBM"], None), label="compute-bound", color="green"),
]
figure(
    roof_chart(v5e.bf16, memories, x=(1, 1e4), y=(5e11, 5e14), marks=regions, title=v5e.name),
    caption="Between the ridges, work is memory-bound out of HBM and compute-bound out of VMEM. "
    f"Staying on the chip is worth up to a factor of {v5e.vmem_over_hbm:.0f}.",
    alt=f"Two slopes meet one flat roof, the VMEM slope at {ridges['VMEM']:.0f} and the HBM slope "
    f"at {ridges['HBM']:.0f} FLOP per byte; three shaded regions are bound by "
    "both memories, by HBM only, and by the units.",
)

# %% tags=["holds"]
assert ridges["VMEM"] < ridges["HBM"], "Two slopes meet one flat roof"

# %% [markdown]
# Out of VMEM the critical batch falls from {{ridges["HBM"]:.0f}} to {{ridges["VMEM"]:.0f}} tokens.
# The VMEM of a {{v5e.name}} holds {{v5e.vmem_capacity.printed}}, so this is for weights that fit
# there, or that are fetched ahead of time.
#
# ## Tiling in numbers
#
# With $n$ tiles across, both matrices are read $n$ times and the result is written once, so
# $2n + 1$ matrices cross the bus in place of three. A tile of $b_m \times b_n$ does $b_m b_n$
# multiplications and additions for each $b_m + b_n$ elements of two bytes that it reads:
#
# $$\text{intensity of a tile} = \frac{2\,b_m b_n}{2\,(b_m + b_n)} = \frac{b_m b_n}{b_m + b_n}$$
#
# The table has what moves if every tile fetches its own strips, in place of
# {{si(matmul_bytes(D, D, D), "byte")}}.

# %% tags=["holds"]
assert tiled_matmul_bytes(D, D, D, D // 4, D // 4) == 9 * 2 * D * D, "matrices cross the bus"


# %%
def tiled(b):
    """Tile side, its intensity, bytes moved and the lower bound, on an H100."""
    moved = tiled_matmul_bytes(D, D, D, b, b)
    lower = time_bounds(matmul_flops(D, D, D), moved, h100.bf16, h100.hbm_bandwidth).lower
    bound = "memory" if tile_intensity(b, b) < ridge else "units"
    return [b, tile_intensity(b, b), moved, lower, bound]


table(
    [tiled(b) for b in (64, 128, 256, 512, 1024)],
    ["tile side", "intensity", "bytes moved", "lower bound", "bound by"],
    caption=f"A bf16 matmul of side {D} on an {h100.name}, if every strip came from HBM.",
)

# %% [markdown]
# But large tiles are few. An H100 has {{h100.sm_count:.0f}} multiprocessors, each with a tile of
# its own, and in the last row of the table there are {{(D // 1024) ** 2}} tiles. So more than half
# would have none. Real kernels take smaller tiles, and let neighbouring ones share strips in the L2
# cache. On a GPU that cache is one more slope, between those of HBM and of the shared memory.
#
# ## Fusion in numbers
#
# How much is it worth to apply the ReLU before the first write of a matmul's result?

# %% tags=["holds"]
assert h100.sm_count / 2 > (D // 1024) ** 2, "half would have none"
assert (
    h100.hbm_bandwidth < h100.l2_bandwidth_measured < h100.l2_bandwidth < h100.shared_bandwidth
), "between those of HBM"

# %%
B = 512
product, relu = matmul_bytes(B, D, F), B * F * (2 + 2)
matmul_alone = time_bounds(matmul_flops(B, D, F), product, h100.bf16, h100.hbm_bandwidth).lower
relu_alone = time_bounds(B * F, relu, h100.bf16, h100.hbm_bandwidth).lower
fused = time_bounds(matmul_flops(B, D, F) + B * F, product, h100.bf16, h100.hbm_bandwidth).lower
saved = matmul_alone + relu_alone - fused
matmul_alone, relu_alone, fused

# %% [markdown]
# On an {{h100.name}}, with {{B}} tokens, the lower bound is {{si(matmul_alone, "s")}} for the
# matmul and {{si(relu_alone, "s")}} for the ReLU, which does {{B * F / matmul_flops(B, D, F):.4%}}
# of the FLOPs. Fusion saves {{si(saved, "s")}}, or {{saved / (matmul_alone + relu_alone):.0%}} of
# the total.
#
# ## The exact curve
#
# The lesson says that the intensity is "about" the batch, because the tokens bring bytes of their
# own. By how much is it less?

# %%
batches = (1, 16, 64, 256, 512, 2048)
reached = {b: attainable(matmul_intensity(b, D, F), h100.bf16, h100.hbm_bandwidth) for b in batches}
table(
    [[b, matmul_intensity(b, D, F), si(reached[b] / h100.bf16, "%")] for b in batches],
    ["tokens B", "intensity", "share of peak at best"],
    caption=f"D = F = {D} on an {h100.name}. The exact intensity stays below B, by more the larger "
    "the batch.",
)

# %% tags=["holds"]
assert (
    all(matmul_intensity(b, D, F) < b for b in batches)
    and 1 - matmul_intensity(1, D, F) < 0.001
    and 1 - matmul_intensity(2048, D, F) / 2048 > 0.3
), "The exact intensity stays below B"

# %% [markdown]
# It matters more where weights are narrow. Give them one byte, leave everything else in bf16, and ask
# how large a batch reaches the peak of a TPU.

# %%
v6e = accelerator("tpu_v6e")
tokens = np.arange(1.0, 1025.0)


def curve(side):
    """Attainable FLOP/s for each batch: int8 weights, bf16 activations and arithmetic on a v6e."""
    intensity = matmul_intensity(tokens, side, side, weight_bytes=1)
    return attainable(intensity, v6e.bf16, v6e.hbm_bandwidth)


ridge_v6e = ridge_point(v6e.bf16, v6e.hbm_bandwidth)
large, small = 4096, 2048
turn = {d: critical_batch_exact(d, d, ridge_v6e, weight_bytes=1) for d in (large, small)}
turn

# %% tags=["figure"]
figure(
    Chart(
        Axis("batch", "token", domain=(0, 1024)),
        Axis("attainable", "FLOP/s", domain=(0, 1.05e15)),
        [
            Line(tokens, curve(large), f"D = F = {large}", "blue"),
            Line(tokens, curve(small), f"D = F = {small}", "orange", dash=True),
            *[Rule(x=b, label=f"{b:.0f}") for b in turn.values()],
        ],
    ),
    caption="Both reach the peak. The smaller matrix needs a batch "
    f"{turn[small] / turn[large]:.1f} times as large, because its activations are not small "
    "beside its weights.",
    alt=f"Two rising curves that flatten at the peak of a {v6e.name}: the larger matrix "
    f"at {turn[large]:.0f} tokens, the smaller at {turn[small]:.0f}.",
)

# %% tags=["holds"]
assert curve(large)[-1] == curve(small)[-1] == v6e.bf16, "Both reach the peak"
assert 1.2 < turn[small] / turn[large] < 2, "The smaller matrix needs a batch {x} times as large"
assert turn[large] < turn[small], "tokens, the smaller at"

# %% [markdown]
# With weights of one byte half as much is read, so the short form promises half of the ridge,
# {{critical_batch(ridge_v6e, 1):.0f}} tokens. The large matrix needs
# {{turn[large] / critical_batch(ridge_v6e, 1) - 1:.0%}} more, and the small one
# {{turn[small] / critical_batch(ridge_v6e, 1) - 1:.0%}}. Half as wide once more, and no batch
# reaches the ridge: the activations alone keep it away.
#
# ## A roofline with a link in it
#
# Split the contracted dimension over two chips. Each multiplies half of $X$'s columns with half of
# $Y$'s rows and holds a partial sum of the whole result. They exchange those and add. Each chip
# does half of the FLOPs, at $C$ FLOP/s, and sends $BF$ elements of two bytes over the link, at $W$
# bytes a second, both ways at once.
#
# $$T_\text{math} = \frac{2BDF}{2 C} \qquad T_\text{comms} = \frac{2BF}{W}
# \qquad T_\text{math} > T_\text{comms} \iff \frac{D}{2} > \frac{C}{W}$$
#
# The batch cancels. What counts is $D$. The table is for two {{accelerator("tpu_v5p").name}} chips
# and one link of {{si(link("ici_v5p").bandwidth_per_link, "byte/s")}} in each direction.

# %% tags=["holds"]
assert critical_batch(ridge_v6e, 1) == ridge_v6e / 2, "half of the ridge"
assert critical_batch_exact(1024, 1024, ridge_v6e, weight_bytes=1) == float("inf"), (
    "Half as wide once"
)
assert split_matmul_bounds(1024, D, F, v5e.bf16, 45e9).math == compute_time(
    matmul_flops(1024, D, F) / 2, v5e.bf16
), "half of the FLOPs"

# %%
v5p, one_way = accelerator("tpu_v5p"), link("ici_v5p").bandwidth_per_link
contractions = [2048, 4096, 8192, 16384]
sweep(split_matmul_bounds, D=contractions, B=1024, F=F, peak=v5p.bf16, bandwidth=one_way)

# %% [markdown]
# The batch is large enough that memory is not the limit. The ridge of this link is
# {{ridge_point(v5p.bf16, one_way):.0f}} FLOP/byte and the turn comes at D =
# {{critical_depth(v5p.bf16, one_way):.0f}}. Each memory and each link has a roofline of its own,
# and its critical quantity need not be the batch. Chapter 6 does this calculation for the ways to
# split a model.
#
# ## Attention derived
#
# Take one head and one new token. The head has a cached key and a cached value for each earlier
# token of that sequence, $H$ numbers each. For each of them
#
# - the query is multiplied with the key: $H$ multiplications and additions, $2H$ FLOPs;
# - the value is multiplied with the score that results, and added up: $2H$ FLOPs more;
# - key and value are read: $2H$ numbers of two bytes, $4H$ bytes.
#
# That is $4H$ FLOPs for $4H$ bytes: one FLOP per byte, for any $H$ and any number of cached tokens.
# In most models of our catalog, $G$ query heads use the keys and values of one KV head, and in
# prefill the $T$ tokens of a prompt pass the cache together. So each cached number serves $TG$
# queries. With $K$ KV heads and $S$
# cached tokens there are
#
# $$4\,TSGKH \text{ FLOPs} \qquad\text{and}\qquad
# \underbrace{4\,SKH}_\text{keys and values} + \underbrace{4\,TGKH}_\text{queries and results}
# \text{ bytes}$$
#
# if the scores stay on the chip. We leave the softmax out. $K$ and $H$ cancel:
#
# $$\text{intensity} = \frac{TSG}{TG + S}$$

# %% tags=["holds"]
assert all(
    matmul_intensity(1024, d // 2, F) > ridge_point(v5p.bf16, v5p.hbm_bandwidth)
    for d in contractions
), "large enough that memory"
assert (
    np.mean([m.heads > getattr(m, "kv_heads", 1) for m in (decoder(n).attention for n in shipped_models())])
    > 0.5
), "most models of our"

# %%
G, S = 4, 32768
prefill, decode = attention_intensity(S, S, G), attention_intensity(1, S, G)
alone = attention_intensity(1, S, 1)
prefill, decode, alone

# %% [markdown]
# These are for {{S}} cached tokens: prefill, decoding with {{G}} query heads to each KV head, and
# decoding without sharing. In prefill $S = T$, and the formula is $TG / (G + 1)$, here
# {{G / (G + 1):.0%}} of $T$: {{ridge * (G + 1) / G:.0f}} tokens of a prompt reach the ridge of an
# H100. When decoding $T = 1$, and it is nearly $G$, however long the context is. So while $G$ is
# far below the ridge, attention is memory-bound when decoding. All this is *full* attention, in
# which a token attends to all before it. Sparse attention reads a selection of the cache, and
# linear attention a state that does not grow.
#
# ### When does attention outweigh its own projections?
#
# Let the width be $D = NH$, with $N = GK$ query heads. Over a prompt of $T$ tokens
#
# | | shape of the weights | FLOPs |
# |---|---|---|
# | projections of queries and of the output | $D \times D$ each | $2 \cdot 2TD^2$ |
# | projections of keys and of values | $D \times D\,K/N$ each | $2 \cdot 2TD^2\,K/N$ |
# | attention itself, $S = T$ | | $4T^2D$ |
#
# Set the third row equal to the sum of the first two, and divide by $4TD$:
#
# $$T = D\left(1 + \frac{K}{N}\right)$$
#
# For D = {{D}} that is {{attention_crossover(D):,.0f}} tokens if each query head has keys and
# values of its own, and {{attention_crossover(D, G):,.0f}} if {{G}} heads share them. In a causal
# model about half of the scores are masked. Kernels that skip those double the number.
#
# ## Further reading
#
# - Bekman, *Machine Learning Engineering*: how to measure the achievable peak of your own machine.
# - NVIDIA, *AIConfigurator*: the operator tables that the products above come from.

# %% tags=["holds"]
assert abs(attention_intensity(3000, 3000, G) / (3000 * G / (G + 1)) - 1) < 1e-12, (
    "ridge of an H100"
)
assert attention_intensity(1, 100 * S, G) < G < 1.01 * attention_intensity(1, S, G), (
    "however long the context"
)
assert min(ridges_of.values()) / 10 > G, "far below the ridge"
assert (
    abs(
        attention_crossover(D, G)
        * 4
        * D
        * attention_crossover(D, G)
        / (4 * attention_crossover(D, G) * D**2 * (1 + 1 / G))
        - 1
    )
    < 1e-12
), "equal to the sum"
assert abs(2 * (2 * attention_crossover(D, G)) / (4 * D * (1 + 1 / G)) - 1) < 1e-12, (
    "those double the number"
)
