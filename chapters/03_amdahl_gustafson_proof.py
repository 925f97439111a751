# %% [markdown]
# # 3. Amdahl and Gustafson: the proof
#
# The [lesson](03_amdahl_gustafson.ipynb) says that a serial share limits what more GPUs can give,
# that measured speedups tell you the share, and that a share which grows means communication. Here
# these laws meet what others published, and your own machine.

# %% tags=["setup"]
import math

import networkx as nx
import numpy as np

from lightspeed.catalog import accelerator, find, link
from lightspeed.collectives import bandwidth_bound
from lightspeed.roofline import transfer_time
from lightspeed.scaling import *
from lightspeed.training import *
from lightspeed_course import ask, Axis, Chart, figure, human_time, Line, Points
from lightspeed_course import residual_chart, Rule, si, sweep, table, weigh
from lightspeed_models.fits import fit_usl
from lightspeed_models.profiles import read_profile, scaling_runs

runs, h100, a100 = scaling_runs(), accelerator("h100_sxm"), accelerator("a100_80gb")
strong = []
for key in ("megatron_175b", "mlperf_gpt3_coreweave", "mlperf_deepseek_coreweave"):
    run = runs[key]
    size = np.array(run["n"], float) / run["n"][0]
    by_time = run["values"][0] / np.array(run["values"], float)
    gain = size / by_time if key == "megatron_175b" else by_time  # that one gives FLOP/s a GPU
    share = karp_flatt(gain[1], size[1])
    strong.append((run, share, size[-1], amdahl_speedup(size[-1], serial=share), gain[-1]))
series = {n: weigh(f"{n}-mlperf") for n in ("amdahl", "usl", "linear")}
batches = weigh("critical-batch")
own = runs["own_server_run"]
n_own, samples = np.array(own["n"], float), np.array(own["samples"], float)
speedups, confidence = np.median(samples[0]) / samples, 0.95
fit = fit_usl(np.repeat(n_own, samples.shape[1]), speedups.ravel(), confidence)
model_own = fit.baseline * usl_speedup(n_own, serial=fit.serial, kappa=fit.kappa)
l1 = runs["llama1"]
P, D, hours = (np.array(l1[name], float) for name in ("params", "tokens", "gpu_hours"))
each = mfu(P, D, hours * 3600, 1, a100.bf16)
predicted = training_time(training_flops(P, D), 1, a100.bf16, each[:3].mean()) / 3600


def row(law, off, fails, section):
    worst = si(float(np.max(off)), "%", 2)
    return [law, len(off), si(float(np.median(off)), "%", 2), worst, f"{fails} [↓](#{section})"]


def over(law):
    return np.abs(law.ratio - 1)


# %% [markdown]
# ## What is claimed, and how well it holds

# %% tags=["figure"]
table(
    [
        row(
            "Amdahl's law, its share from the first step of a table",
            [abs(said / got - 1) for *_, said, got in strong],
            "where the share grows",
            "Against-published-runs",
        ),
        row(
            "Amdahl's law, fitted to all sizes but the largest",
            over(series["amdahl"]),
            "far beyond the last size; batch or layout changed",
            "Predict-the-largest-system-of-a-series",
        ),
        row(
            "the same with a growing cost",
            over(series["usl"]),
            "few sizes cannot tell κ from the share",
            "Predict-the-largest-system-of-a-series",
        ),
        row(
            "Universal Scalability Law, on a job of our own",
            np.abs(speedups / model_own[:, None] - 1).ravel(),
            "beyond its points",
            "Fit-the-law-to-what-was-measured",
        ),
        row(
            "6PD / (NXU), one U for a family of models",
            np.abs(predicted / hours - 1),
            "another kind of GPU, another U",
            "Against-published-runs",
        ),
        row(
            "samples to a target, by batch",
            over(batches),
            "the smallest and the largest batch",
            "Predict-the-largest-system-of-a-series",
        ),
    ],
    ["law", "rows", "median error", "worst", "where it fails, and where this is shown"],
    caption="Errors of predicted over measured. MLPerf's are not verified by MLCommons.",
)

# %% [markdown]
# ## Against published runs
#
# **The equation** that turns FLOPs into days (chapter 1). Four models of one family were trained by
# one team on one kind of GPU, and their GPU-hours are public. Take the mean utilization of the
# three smaller ones and predict all four.

# %%
[si(share, "%") for share in each]

# %% tags=["figure"]
rows = zip(l1["models"], each, l1["gpu_hours"], predicted)
table(
    [[m, f"{u:.1%}", h, f"{x:,.0f}", f"{x / h - 1:+.0%}"] for m, u, h, x in rows],
    ["model", "MFU reached", "GPU-hours, published", "predicted", "error"],
    caption=(
        f"One utilization, {each[:3].mean():.1%}, for the whole family. The last row was not used."
    ),
)

# %% [markdown]
# For the largest model, whose hours were not used, the prediction is off by
# {{abs(predicted[-1] / hours[-1] - 1):.0%}}; in the worst row it is off by
# {{max(abs(predicted / hours - 1)):.0%}}. An estimate within ten per cent is worth having for a
# single division.
#
# **Strong scaling.** Take the share from the first step of each table, and let Amdahl's law predict
# the last.

# %% tags=["holds"]
assert P.argmax() == 3, "in the worst row"
assert 0.08 < max(abs(predicted / hours - 1)) < 0.1, "within ten per cent"

# %%
[si(share, "%") for _, share, *_ in strong]

# %% tags=["figure"]
rows = []
for run, share, _, said, got in strong:
    gpus = f"{run['n'][0]:,} to {run['n'][-1]:,}"
    rows.append([run["name"], gpus, f"{share:.1%}", said, got, f"{said / got - 1:+.1%}"])
table(
    rows,
    ["run", "GPUs", "share, first step", "speedup predicted", "measured", "error"],
    caption="Two of the three lose as Amdahl's law says. In the third the share grows.",
)

# %% tags=["holds"]
assert [abs(predicted / got - 1) < 0.02 for *_, predicted, got in strong] == [True, True, False], (
    "Two of the three"
)

# %% [markdown]
# The error shows the trend of the share: one per cent or less where it is constant, and
# {{strong[-1][3] / strong[-1][4] - 1:.0%}} where it grows. Extrapolate Amdahl's law only after you
# have seen two shares agree.
#
# **Weak scaling.** In a paper on Megatron, the models grow with the machine.

# %% tags=["holds"]
assert all(abs(x / y - 1) < 0.01 for *_, x, y in strong[:2]), "where it is constant"

# %% tags=["figure"]
weak = runs["megatron_weak"]
n_weak, per_gpu = np.array(weak["n"], float), np.array(weak["values"], float) * 1e12
total, labels = n_weak * per_gpu, [f"{x / 1e9:,.1f} billion" for x in weak["params"]]
figure(
    Chart(
        Axis("GPUs", "", "log", domain=(50, 5e3)),
        Axis("FLOP/s of the whole machine", "FLOP/s", "log", domain=(5e15, 1e18)),
        [
            Line(n_weak, n_weak * per_gpu[0], "perfect", "grey", dash=True),
            Points(n_weak, total, labels=labels, color="blue"),
        ],
        height=320,
    ),
    caption="Weak scaling of GPT models on A100, recomputation included: the last point does "
    "better than perfect.",
    alt="Points that follow a diagonal and end slightly above it: from "
    f"{si(total[0], 'FLOP/s')} on {n_weak[0]:.0f} GPUs to {si(total[-1], 'FLOP/s')} on "
    f"{n_weak[-1]:,.0f}.",
)

# %% tags=["holds"]
assert per_gpu[-1] > per_gpu[0], "does better than perfect"
assert 1 < per_gpu[-1] / per_gpu[0] < 1.25, "end slightly above it"

# %% [markdown]
# With {{n_weak[-1] / n_weak[0]:.0f}} times the GPUs the machine does {{total[-1] / total[0]:.0f}}
# times the FLOP/s. Gustafson's law cannot give more than $n$. The law is not broken: the last model
# is {{weak["params"][-1] / weak["params"][0]:.0f}} times as large as the first. Its matrix products
# are larger, and larger products run closer to the peak (chapter 2), so each GPU became faster.

# %% tags=["holds"]
assert total[-1] / total[0] > n_weak[-1] / n_weak[0], "times the GPUs the machine does {{total[-1] / total[0]:.0f}} times the FLOP/s"
assert all(gustafson_speedup(n, serial=x) <= n for n in n_weak for x in (0.0, 0.1, 1.0)), (
    "cannot give more than"
)
assert weak["params"][-1] == max(weak["params"]) and len(weak["params"]) == len(n_weak), (
    "as large as the first"
)
assert weak["hidden"][-1] > weak["hidden"][0] and per_gpu[-1] > per_gpu[0], (
    "matrix products are larger"
)


# %% [markdown]
# ### Two published runs
#
# The lesson draws the shares of these two, and says that one job loses as much as serial work would
# take, and the other more and more. Here are their times.

# %%
rows, trends = [], []
for run in (runs["mlperf_gpt3_coreweave"], runs["mlperf_deepseek_coreweave"]):
    size = np.array(run["n"], float) / run["n"][0]
    speedup = run["values"][0] / np.array(run["values"], float)
    used, trend = efficiency(speedup, size), karp_flatt(speedup[1:], size[1:])
    trends.append(trend)
    lost = ["", *(si(share, "%") for share in trend)]
    for n, minutes, *laws, e, share in zip(run["n"], run["values"], size, speedup, used, lost):
        rows.append([run["name"], n, f"{minutes} min", *laws, si(e, "%"), share])
factor, gain = size[-1], speedup[-1]
[[si(share, "%") for share in trend] for trend in trends]

# %% tags=["figure"]
table(
    rows,
    ["run", "GPUs", "time", "size of the machine", "speedup", "efficiency", "Karp–Flatt share"],
    caption=(
        "MLPerf Training, three submissions each (v3.0 and v6.0). The benchmark is the same job on"
        " a larger machine: strong scaling."
    ),
)

# %% [markdown]
# In the first the share hardly moves, so a small serial part explains what is lost. The second was
# reported as near-linear. With {{factor:.0f}} times the GPUs it is {{gain:.2f}} times as fast,
# which is {{gain / factor:.0%}} efficient, and its share grows from row to row. A serial part would
# keep it constant, so by these times some cost grows with $n$. But they come without an interval:
# were the middle one {{(1 + trend[1]) / 2 * speedup[1] - 1:.1%}} longer, the two shares would
# agree.

# %% tags=["holds"]
assert abs(trends[0][1] - trends[0][0]) < 0.005, "explains what is lost"
assert factor == 4 and gain < 3, "times the GPUs it is {{gain:.2f}} times as fast"
assert trends[1][1] > 1.2 * trends[1][0], "its share grows from row to row"
assert size[1] == 2 and abs(karp_flatt(2 / (1 + trend[1]), 2) - trend[1]) < 1e-9, (
    "two shares would agree"
)

# %% [markdown]
# ## Where it breaks
#
# - **The baseline moves.** Superlinear speedups may come from caches, from better shapes, or from a
#   bad first measurement. The laws take one processor's speed as given.
# - **The job is not quite the same.** A larger batch may need more tokens for the same quality.
#   MLPerf times contain that; efficiency in FLOP/s does not.
# - **$κ$ is a straight line.** The cost of a ring has a plateau and a slope, and that of a tree a
#   logarithm. The law with one $κ$ fits well near the points and predicts little beyond them.

# %% [markdown]
# ## Predict the largest system of a series
#
# Submitters to MLPerf time one benchmark on systems of several sizes. Take each such series, fit a
# law to its smaller systems, and predict the largest, which the fit has not seen. The medians and
# speedups are ours: MLCommons has not verified them. Each forecast comes with an interval, taken
# from the series of *other* benchmarks.

# %%
amdahl, reach = series["amdahl"], series["amdahl"].by_regime
late = int((amdahl.judged.predicted > amdahl.judged.measured).sum())
table(
    [
        [law.regime, law.rows, *(si(e.median, "%") for e in (law, *others)), si(law.covered, "%")]
        for law, *others in zip(*((w.all, *w.by_regime) for w in series.values()))
    ],
    ["largest over next", "series", "Amdahl", "with κ", "half the time on twice", "inside"],
    caption="Median error by law, and the share of series inside Amdahl's interval, which is made"
    " to hold nine of ten. Unverified by MLCommons.",
)

# %%
spread = float(np.nanmedian(batches.rows["spread"]))
si(spread, "%"), late

# %% tags=["figure"]
figure(
    residual_chart(amdahl, dots=90, height=300),
    caption="The further the reach, the wider the error of Amdahl's law (unverified results).",
    alt="Predicted over measured time, around one; median errors by how far the forecast reaches: "
    + ", ".join(f"{e.median:.0%} ({e.regime})" for e in reach),
)

# %% tags=["holds"]
assert [e.median for e in reach] == sorted(e.median for e in reach), "The further the reach"

# %% [markdown]
# - **A law helps.** Amdahl's median error is {{amdahl.all.median:.0%}}, that of "half the time on
#   twice the GPUs" {{series["linear"].all.median:.0%}}. The third term does not help here: a few
#   sizes cannot tell $κ$ from the serial share.
# - **A series is not one job.** In {{late}} of {{amdahl.all.rows}} series the forecast is too long,
#   which no growing cost explains: a larger system may also change its batch, layout or software.
# - **A speedup needs an interval.** The runs of one system differ among themselves: the standard
#   deviation of their times is {{spread:.1%}} of the mean, in the median. For the DeepSeek runs
#   above, less would make the two shares agree.
# - **More GPUs, more work.** A larger system is kept busy by a larger batch $B$, and that may need
#   more samples: $D_0 (1 + B / B_c)$. Tiny batches need $D_0$, and the *critical batch* $B_c$ needs
#   twice as many. Fit this formula to all batch sizes of a benchmark but one, and ask for that one:
#   in {{batches.all.rows}} cases it is {{batches.all.median:.0%}} off in the median. Where the one
#   is the smallest or the largest, a tenth of the errors exceed {{batches.by_regime[1].p90:.0%}}.

# %% tags=["holds"]
assert amdahl.all.median < series["linear"].all.median / 2, "the time on twice"
assert series["usl"].all.median > amdahl.all.median, "few sizes cannot tell"
assert late > amdahl.all.rows / 2, "no growing cost explains"
assert spread > (1 + trends[1][1]) / (1 + trends[1][0]) - 1 > 0, "make the two shares"
assert batches.by_regime[1].regime == "smallest or largest batch", "smallest or the largest"
assert samples_to_target(500, 1e6, 500) == 2e6, "needs twice as many"

# %%
ask("training.large_batch")


# %% [markdown]
# ## A cost that grows, and how fast depends on the message
#
# An *all-reduce* adds up an array over all GPUs, and gives each of them the sum. Training uses it
# for gradients. Here it is measured, between hosts of eight H100.

# %%
p5, grid = runs["p5_allreduce"], np.geomspace(1, 1e4, 100)
sizes = {"small": 128 * 2**20, "large": 8 * 2**30}
rates = {"small": p5["values_128MiB"], "large": p5["values_8GiB"]}  # GB/s
gpus = {"small": p5["n_128MiB"], "large": p5["n_8GiB"]}
took = {k: [transfer_time(sizes[k], rate * 1e9) for rate in rates[k]] for k in sizes}
took

# %% tags=["figure"]
rows = []
for k, (first, *_, last) in took.items():
    change = f"{last / first - 1:+.0%}"
    rows.append([si(sizes[k], "byte"), gpus[k][0], first, gpus[k][-1], last, change])
table(
    rows,
    ["message", "GPUs", "time", "GPUs", "time", "change"],
    caption="NCCL's all-reduce on AWS, from crazyguitar/aws-gpu-communication-benchmark.",
)

# %% [markdown]
# On the larger machine the large message takes a little longer, and the small one takes twice as
# long. The usual model says why. In a *ring* each GPU passes pieces of the array on to the next
# one, until the sums have come round. Each sends fewer than two copies of the array, however many
# GPUs there are. It does so in $2 (n - 1)$ steps, and each of them has a latency:
#
# $$t(n) = \underbrace{2\,\frac{n - 1}{n}\,\frac{\text{bytes} }{\text{bandwidth} } }
# _\text{nearly constant, like serial work}
# + \underbrace{2\,(n - 1)\,\text{latency} }_\text{grows}$$
#
# ### Small batch, many GPUs
#
# Train a model with data parallelism on one fixed batch. Each GPU computes gradients for its part
# of the batch; then an all-reduce adds them up.

# %% tags=["holds"]
assert (
    took["large"][-1] / took["large"][0] < 1.2 and 2 < took["small"][-1] / took["small"][0] < 2.1
), "takes twice as long"
assert all(1 <= bandwidth_bound("all_reduce", 1, k, 1) < 2 for k in range(2, 10_000)), (
    "fewer than two copies"
)

# %%
llama, ndr = find("llama2_7b"), link("infiniband_ndr")
reached, gradients = 0.4, 2 * llama.parameters
token_batches = {"small batch": 2**18, "large batch": 2**22}


def ring(n):
    """Seconds to all-reduce the gradients over n GPUs, one port each."""
    return transfer_time(
        2 * (n - 1) / n * gradients, ndr.bandwidth, 2 * (n - 1) * ndr.nccl_step_simple
    )


def speedup_of(tokens, n):
    one = training_time(training_flops(llama.parameters, tokens), 1, h100.bf16, reached)
    return communication_speedup(n, serial=0.0, overhead=ring(n) / one)


# %%
curves = {name: speedup_of(tokens, grid) for name, tokens in token_batches.items()}
counts = np.arange(1.0, 10_001.0)
peaks = {name: speedup_of(tokens, counts) for name, tokens in token_batches.items()}
top = {name: (float(counts[c.argmax()]), float(c.max())) for name, c in peaks.items()}
{name: [si(n), si(gained)] for name, (n, gained) in top.items()}

# %% tags=["figure"]
colors = {"small batch": "orange", "large batch": "blue"}
figure(
    Chart(
        Axis("GPUs", "", "log", domain=(1, 1e4)),
        Axis("speedup", "", "log", domain=(1, 3e3)),
        [
            Line([1, 3e3], [1, 3e3], "perfect", "grey", dash=True, label_at="along"),
            *[Line(grid, c, name, colors[name]) for name, c in curves.items()],
            *[Points([x], [y], color=colors[name], drop=True) for name, (x, y) in top.items()],
        ],
    ),
    caption=f"Strong scaling of {llama.name} at {reached:.0%} of peak, with gradients in bf16 over "
    f"a port of {si(ndr.bandwidth, 'byte/s')} for each GPU, {si(ndr.nccl_step_simple, 's')} for "
    "each step of the ring, no overlap: "
    f"batches of {si(token_batches['small batch'], 'token')} and "
    f"{si(token_batches['large batch'], 'token')}. "
    "There is no serial work in this model at all.",
    alt="Two curves that follow the diagonal, flatten and then fall: the small batch peaks at a "
    f"speedup of {top['small batch'][1]:.0f}, the large one at {top['large batch'][1]:.0f}.",
)

# %% tags=["holds"]
assert abs(communication_speedup(1e9, serial=0.0, overhead=0.0) - 1e9) < 1, (
    "There is no serial work"
)

# %% [markdown]
# The small batch never gets beyond {{top["small batch"][1]:.0f}} times the speed of one GPU, and is
# fastest on about {{si(top["small batch"][0], "", 2)}} GPUs. The large one reaches
# {{top["large batch"][1]:.0f}}, on about {{si(top["large batch"][0], "", 2)}}. Past it each gets
# slower. What looks like a serial share is the first term of the ring; what turns the curve down is
# latency. In practice the reduction overlaps with the backward pass (chapter 6), and for small
# messages NCCL has trees (chapter 7), with which latency grows more slowly.

# %% tags=["holds"]
assert peaks["small batch"].max() == top["small batch"][1] < top["large batch"][1], (
    "batch never gets beyond"
)
assert all((np.diff(c[c.argmax() :]) < 0).all() for c in peaks.values()), "it each gets slower"

# %% [markdown]
# ## Fit the law to what was measured
#
# This course ran a small experiment of its own. One process does some serial work, then starts $n$
# workers. Each of them waits for its part of a fixed time, as a host waits for a device, and then
# sends an array, which the first process receives and adds. With more workers the waits are
# shorter, but there are more messages. The machine was shared.

# %%
low, high = fit.kappa_interval
si(fit.serial, "%"), si(fit.kappa, "%"), si(fit.peak)

# %% tags=["figure"]
table(
    [
        [
            "serial share s",
            f"{fit.serial:.1%}",
            f"{fit.serial_interval[0]:.1%} to {fit.serial_interval[1]:.1%}",
        ],
        ["growing cost κ", f"{fit.kappa:.2%}", f"{low:.2%} to {high:.2%}"],
        [
            "fastest at n*",
            f"{fit.peak:.1f}",
            f"{fit.peak_interval[0]:.1f} to {fit.peak_interval[1]:.1f}",
        ],
    ],
    ["", "fit", f"interval, {confidence:.0%}"],
    caption=f"{own['name']}: {speedups.size} samples on {own['machine']}, {own['date']:%Y}.",
)

# %% tags=["figure"]
upto = grid[grid < 40]
model = fit.baseline * usl_speedup(upto, serial=fit.serial, kappa=fit.kappa)
no_peak, middle = amdahl_speedup(upto, serial=fit.serial), np.median(speedups, axis=1)
figure(
    Chart(
        Axis("workers n", "", "log", domain=(0.9, 40)),
        Axis("speedup", "", domain=(0, 14)),
        [
            Line(upto, no_peak, "Amdahl, same s", "blue", dash=True),
            Line(upto, model, "fit", "orange"),
            Points(np.repeat(n_own, samples.shape[1]), speedups.ravel(), color="black", size=2),
            Rule(x=fit.peak, label=f"n* {fit.peak:.0f}"),
        ],
    ),
    caption="All samples that were taken. The speedup rises, stops and falls; by Amdahl's law it "
    "would never fall.",
    alt=f"Measured speedups that rise to about {middle.max():.0f} near "
    f"{n_own[middle.argmax()]:.0f} workers and fall after; a fitted curve follows them, Amdahl's "
    "curve leaves upwards.",
)

# %% tags=["holds"]
assert (np.diff(no_peak) > 0).all() and middle.argmax() not in (0, 9), (
    "by Amdahl's law it would never fall"
)
assert (np.diff(middle)[: middle.argmax()] > 0).all() and middle[-1] < middle.max() < no_peak[-1], (
    "Measured speedups that rise"
)

# %% [markdown]
# The interval of $κ$ lies well above zero, so the peak is real: more than about {{fit.peak:.0f}}
# workers make this job slower. The serial loop alone is
# {{np.median(own["serial_samples"]) / np.median(samples[0]):.1%}} of the time on one worker. The
# fit finds more than that, since even one worker sends a message that has to be received.
#
# The fit has three unknowns: $s$, $κ$, and the time on one worker, which scatters like the others.
# With four points almost any such fit looks good, so look at the interval. `fit_usl` refuses fewer.

# %% tags=["holds"]
assert low > 5 * fit.kappa_error, "lies well above zero"
assert np.median(own["serial_samples"]) / np.median(samples[0]) < fit.serial, (
    "more than that, since"
)


# %% [markdown]
# ## How long does a training run take?
#
# Somebody asks how long a model will train on a cluster that you do not have yet. Start small, with
# one token on one chip. Training takes $6$ FLOPs for each parameter and token (chapter 1);
# attention scores are not counted.

# %%
params, corpus, cluster, reached_there = 405e9, 15e12, 16384, 0.4  # assumed
a_token = training_flops(params, 1)
a_second = h100.bf16 * reached_there / a_token
alone, together = (
    training_time(training_flops(params, corpus), n, h100.bf16, reached_there) for n in (1, cluster)
)
a_token, round(a_second), human_time(alone), human_time(together)

# %% [markdown]
# With {{si(params, "parameter")}}, a token takes {{si(a_token, "FLOP")}}. An H100 that reaches
# {{reached_there:.0%}} of its peak gets through {{a_second:.0f}} tokens a second. It would be busy
# with {{si(corpus, "token")}} for {{human_time(alone)}}, and {{cluster:,}} of them for
# {{human_time(together)}}. In general, with $P$ parameters and $D$ tokens, on $N$ chips with a peak
# of $X$ FLOP/s of which the run reaches a share $U$, training lasts
#
# $$T = \frac{6\,P\,D}{N\,X\,U}$$
#
# The equation divides by $N$ as if the work split perfectly. Everything that this chapter is about
# is hidden in $U$, which falls as more chips work on the same job.

# %% tags=["holds"]
assert abs(alone - corpus / a_second) < 1e-6 * alone, "It would be busy"
assert all(
    efficiency(amdahl_speedup(2 * n, serial=1e-6), 2 * n)
    < efficiency(amdahl_speedup(n, serial=1e-6), n)
    for n in (8, cluster)
), "Everything that this chapter"

# %% [markdown]
# ### MFU and HFU
#
# $U$ comes in two kinds. **Model FLOPs utilization** (MFU) counts the work that the model needs,
# $6PD$. **Hardware FLOPs utilization** (HFU) also counts work that is done twice: to save memory,
# training often throws activations away and runs the forward pass again, which makes $8PD$ if all
# of it is repeated. HFU is never below MFU. Only MFU belongs in the equation above.

# %% tags=["holds"]
assert all(
    hfu(params, corpus, 1e6, 1, h100.bf16, share) >= mfu(params, corpus, 1e6, 1, h100.bf16)
    for share in (0.0, 0.5, 1.0)
), "HFU is never below"

# %%
used_runs = runs["utilization"]
full = training_flops(1, 1, recomputed=1) / training_flops(1, 1)
round(full, 3)

# %% tags=["figure"]
pairs = list(zip(used_runs["models"], used_runs["mfu"], used_runs["hfu"]))
table(
    [[m, si(a, "%"), si(b, "%"), f"{b / a:.3f}"] for m, a, b in pairs],
    ["run", "MFU", "HFU", "HFU over MFU"],
    caption=(
        f"The same runs, counted both ways. A full repetition would give {full:.3f}; these repeat"
        " less."
    ),
)

# %% tags=["holds"]
assert all(b / a < full for a, b in zip(used_runs["mfu"], used_runs["hfu"])), "these repeat less"

# %%
shape_1t = (weak["layers"][-1], weak["hidden"][-1], weak["vocabulary"], weak["sequence"])
hardware = weak["values"][-1] * 1e12 / a100.bf16
model_flops = transformer_training_flops(1.0, *shape_1t)
needed = hardware * model_flops / transformer_training_flops(1.0, *shape_1t, recomputed=1)
si(hardware, "%"), si(needed, "%")

# %% [markdown]
# The paper on Megatron gives {{hardware:.0%}} of peak for a model of a trillion parameters. Its
# count of FLOPs includes a repeated forward pass, so that is HFU; the MFU is {{needed:.0%}}.

# %% [markdown]
# ## What is serial in training
#
# Each of these causes has a size that you can compute, and a remedy.

# %%
load, compute, sync, k = 0.05, 0.45, 0.06, 8
kernel, launch = 2e-6, 5e-6  # assumed
lost = [load / (load + compute), sync / (sync + compute), sync / (sync + k * compute)]
lost += [1 - kernel / launch]
[si(share, "%") for share in lost]

# %% tags=["figure"]
cause = [
    "data loading, not overlapped", "gradient sync, not overlapped",
    f"the same, gradients of {k} micro-batches", "many small kernels",
]  # fmt: skip
why = [
    "the step waits for its batch", "everybody waits for the slowest link",
    "accumulate, then reduce once", f"launched every {si(launch, 's')}, done in {si(kernel, 's')}",
]  # fmt: skip
remedy = [
    "prefetch; more loader processes", "overlap with backward; larger batch",
    "a larger batch, which training must tolerate", "fuse; launch many at once (CUDA graphs)",
]  # fmt: skip
table(
    zip(cause, why, [si(share, "%", 2) for share in lost], remedy),
    ["cause", "why", "share of the time lost", "remedy"],
    caption="The premises are ours; put in your own.",
)

# %% [markdown]
# Gradient accumulation does not make synchronisation cheaper. It makes each step larger, so that
# the share falls from {{lost[1]:.0%}} to {{lost[2]:.1%}}: for the step this is weak scaling.

# %% tags=["holds"]
assert lost[2] < lost[1], "this is weak scaling"

# %% [markdown]
# ### Map is parallel; reduce is a tree
#
# Adding up $n$ partial results one after the other takes $n - 1$ steps on one processor. In a tree
# the same additions take $\lceil \log_2 n \rceil$ levels. The time of all steps together is called
# the *work*. The longest chain of steps that must wait for one another is the *span*, or critical
# path. No number of processors finishes sooner than the span.


# %% tags=["holds"]
from lightspeed.scaling import greedy_bounds

assert min(vars(greedy_bounds(100, 10, 1e6)).values()) == 10, "finishes sooner than the span"


# %%
def tree(n):
    """n tasks (a power of two) of a second each; pairwise additions of a millisecond each."""
    graph = nx.DiGraph()
    graph.add_nodes_from(((0, i) for i in range(n)), time=1.0)
    for level in range(int(math.log2(n))):
        for i in range(n >> level):
            graph.add_edge((level, i), (level + 1, i // 2))
    for node in graph:
        graph.nodes[node].setdefault("time", 1e-3)
    return graph


trees = {n: work_span(tree(n)) for n in (8, 64, 512)}
table(
    [[n, si(t.work, "s", 4), si(t.span, "s", 4), t.parallelism] for n, t in trees.items()],
    ["tasks", "work", "span", "work over span"],
    caption="Map and tree reduction. Work over span is the largest speedup that the shape of the "
    "job allows.",
)


# %% [markdown]
# [Chapter 6](06_parallelism_proof.ipynb#The-critical-path-of-a-training-step) follows such a path
# through a training step, with its network beside its GPUs.

# %% [markdown]
# ## Measure it here
#
# A job whose serial share is known, because it is *counted*: twenty pieces of waiting, of which one
# must be done before the rest is split over $n$ threads. Waiting stands for a host whose devices do
# the work, so any machine can wait with many. How many times faster is it with sixteen? Does the
# share of Karp and Flatt stay the same?

# %%
from concurrent.futures import ThreadPoolExecutor
from statistics import median
from time import perf_counter, sleep

pieces, piece = 20, 0.005  # s


def job(n):
    """Seconds of one piece alone, and then of the others split over n threads."""
    begin = perf_counter()
    sleep(piece)
    with ThreadPoolExecutor(n) as pool:
        list(pool.map(sleep, [(pieces - 1) * piece / n] * n))
    return perf_counter() - begin


# %% tags=["timed"]
alone, rows = median(job(1) for _ in range(5)), []
for n in (2, 4, 8, 16):
    gain, law = alone / median(job(n) for _ in range(5)), amdahl_speedup(n, serial=1 / pieces)
    serial = max(karp_flatt(gain, n), 0)  # noise can make a short job faster than all n threads
    rows.append([n, f"{law:.2f}", f"{gain:.2f}", f"{serial:.3f}"])
table(rows, ["threads", "Amdahl's law", "here", "share of Karp and Flatt"])

# %% [markdown]
# On recorded machines the same was done by processes, in three jobs. **count** keeps a core busy
# with loops; processes beyond the cores have to share them. **wait** is the job above. **message**
# is like it, but each process then sends an array, and one process receives these and adds them.

# %%
from lightspeed_course import shipped
from lightspeed_tools.measure.records.record import all_of

recorded, rows = shipped()["amd_epyc_2core"], []
for name in ("count", "wait", "message"):
    times = {q.parameters["n"]: q for q in all_of(recorded, "scaling.time", job=name)}
    for n, q in times.items():
        most = min(n, q.parameters["cpus"]) if name == "count" else n
        law = amdahl_speedup(most, serial=q.counted["serial"])
        gain = times[1].value / q.value
        share = f"{karp_flatt(gain, n):.1%}" if n > 1 else ""
        rows.append([name, n, f"{law:.2f}", f"{gain:.2f}", share if q.trusted else "too noisy"])
table(rows, ["job", "processes", "Amdahl's law", "measured", "share of Karp and Flatt"])

# %%
gains = [(n, times[1].value / t) for n, q in times.items() for t in q.samples]
third = fit_usl(*np.array(gains, float).T)
third.kappa_interval, third.peak

# %% [markdown]
# ### Explain the difference
#
# - **Waiting** follows Amdahl's law closely, because a process that waits leaves the processor to
#   others. What is missing is the time in which a process is told to start, wakes up and answers.
#   That time does not shrink with $n$, so it counts as serial, and it is spent more often with more
#   processes.
# - **The message** is the third term. Each process adds about the same time to the queue in front
#   of the one that receives. So the share grows from row to row of the table, $κ$ is above zero,
#   and past some $n$ the job becomes slower.
# - **Counting loops** stops at your cores. If it falls short before that, you do not have the cores
#   to yourself, or they are not alike: other programs use them, two of them share one core's units
#   (SMT), a virtual machine has fewer than it reports, or the clock rate drops when all are busy.
#   And three pieces on two cores leave two of them to one core, so a third process can make the job
#   slower.

# %% [markdown]
# ### When the times scatter
#
# Here is the record of a machine that lost part of its time to others on the same hardware, and
# the runs of each job that repeat within a tenth:

# %%
other = shipped()["intel_xeon_2core"]
stolen = next(check for check in other["environment"] if check["check"] == "stolen time")
print(stolen["words"])
steady = {
    name: [q.parameters["n"] for q in all_of(other, "scaling.time", job=name) if q.trusted]
    for name in ("count", "wait", "message")
}
steady

# %% [markdown]
# A fit through the others would have printed as many digits as the one above. But a speedup is a
# ratio of two times. If either scatters by more than the effect that you look for, the answer is
# that you do not know.


# %% [markdown]
# ## Gallery of wrong claims

# %%
from lightspeed_course import gallery

gallery("03")

# %% [markdown]
# ## A profile of this machine
#
# Where does a share come from? The lesson adds up three parts, in seconds;
# `read_breakdown("step.json")` reads such a list from a file.

# %%
breakdown = {"setup": 0.1, "compute": 0.9, "finish": 0.1}
p = parallel_fraction(breakdown, ["compute"])
cores = 100
whole = profile_speedup(breakdown, {"compute": cores})
si(p, "%"), whole

# %% [markdown]
# The compute part takes {{si(breakdown["compute"], "s")}} of {{si(sum(breakdown.values()), "s")}}:
# {{p:.1%}}, because setup *and* finish are serial. If {{cores}} cores divide it, the whole is
# {{whole:.2f}} times faster, and {{profile_speedup(breakdown, {"compute": math.inf}):.1f}} times at
# most.

# %% tags=["holds"]
assert whole < profile_speedup(breakdown, {"compute": math.inf}), "times at most"

# %% [markdown]
# `cProfile` writes a file of another kind. `read_profile` adds up the functions that you name, each
# with the functions that it calls, and calls the rest "everything else". Name functions that do not
# call each other; otherwise their time would count twice, and `read_profile` refuses.

# %%
import cProfile
from pathlib import Path
from tempfile import mkdtemp


def tokenize():
    return np.array([hash(word) % 1000 for word in ["the", "quick", "fox"] * 25_000], np.int64)


def multiply(tokens):
    weights = np.ones((1000, 256), "float32")
    return [weights[tokens[:4000]] @ weights.T for _ in range(3)]


profiler, saved = cProfile.Profile(), Path(mkdtemp()) / "out.prof"
profiler.runcall(lambda: multiply(tokenize()))
profiler.dump_stats(saved)

# %% tags=["timed"]
here = read_profile(saved, ["tokenize", "multiply"])
at_most = [f"{profile_speedup(here, {part: math.inf}):.2f}" for part in here]
table(
    [[part, si(t, "s"), most] for (part, t), most in zip(here.items(), at_most)],
    ["part", "time here", "the whole, if it took no time"],
)


# %% [markdown]
# ## What other shares give

# %%
shares, sizes = [0.5, 0.75, 0.9, 0.95, 0.99], [2, 8, 32, 128, 512, math.inf]
sweep(amdahl_speedup, n=sizes, parallel=shares)

# %% [markdown]
# Read down a column to {{sizes[-2]}}: each step takes four times the processors, and multiplies the
# speedup by less than the step before. The last row is the limit.
#
# ## One fast processor, or many?
#
# A faster processor shortens the serial part, too. Many slower ones never give more than $1 / s$,
# so one that is faster than that beats any number of them.

# %% tags=["holds"]
assert all(sizes[i + 1] == 4 * sizes[i] for i in range(4)) and all(
    amdahl_speedup(16 * n, parallel=p) * amdahl_speedup(n, parallel=p)
    < amdahl_speedup(4 * n, parallel=p) ** 2
    for p in shares
    for n in range(1, 500)
), "less than the step"
assert all(amdahl_speedup(10.0**k, parallel=p) < 1 / (1 - p) for p in shares for k in range(9)), (
    "faster than that beats"
)

# %% [markdown]
# ## One law, two baselines
#
# The lesson says that Amdahl's and Gustafson's laws agree once each has its own share. From
# one share to the other leads Amdahl's law alone: on $n$ processors the serial part takes as
# long as on one, and the rest an $n$-th of its time.
#
# $$s_n = \frac{s_1}{s_1 + \frac{1 - s_1}{n} } \qquad\qquad s_1 = \frac{s_n}{s_n + (1 - s_n)\, n}$$
#
# Here is one job, with its share on more and more processors, and what both laws say of it on the
# last.

# %% tags=["holds"]
assert abs(serial_on_n(9, serial_on_one=0.1) - 0.5) < 1e-9, "an $n$-th of its time"
assert abs(gustafson_speedup(9, serial=0.5) - amdahl_speedup(9, serial=0.1)) < 1e-9, (
    "laws agree once each"
)

# %%
serial, most = 0.05, 1000
sweep(serial_on_n, n=[1, 8, 64, most], serial_on_one=serial)

# %%
on_most = serial_on_n(most, serial_on_one=serial)
amdahl_speedup(most, serial=serial), gustafson_speedup(most, serial=on_most)

# %% [markdown]
# That is why growing a job works: it makes the serial share small *in Amdahl's sense*. A run on
# {{most:,}} processors with {{serial:.0%}} serial has an efficiency of
# {{efficiency(gustafson_speedup(most, serial=serial), most):.0%}}, because it is a job of which one
# processor would spend {{serial_on_one(most, serial_on_n=serial):.3%}} on serial work. A fixed job
# of which {{serial:.0%}} is serial on *one* keeps
# {{efficiency(amdahl_speedup(most, serial=serial), most):.1%}}.

# %% tags=["holds"]
assert (
    abs(
        efficiency(amdahl_speedup(most, serial=serial_on_one(most, serial_on_n=serial)), most)
        - 0.95
    )
    < 0.001
), "because it is a job of which"
assert all(
    abs(
        gustafson_speedup(n, serial=serial_on_n(n, serial_on_one=serial))
        - amdahl_speedup(n, serial=serial)
    )
    < 1e-9
    for n in (8, 32, most)
), "That is why growing"

# %% [markdown]
# ## For a second reading
#
# A fit to somebody else's data, with a catch: a database server was loaded by one to thirty-two
# threads; the data and a fit were published.

# %%
mysql = runs["mysql_cisco"]
n_sql, rate = np.array(mysql["n"], float), np.array(mysql["values"], float)
sql = fit_usl(n_sql, rate / rate[0])
expected = rate[0] * sql.baseline * usl_speedup(n_sql, serial=sql.serial, kappa=sql.kappa)
si(sql.serial, "%"), si(sql.kappa, "%"), si(sql.peak)

# %% tags=["figure"]
figure(
    Chart(
        Axis("threads n", ""),
        Axis("measured over fitted", "%", domain=(0.9, 1.1)),
        [
            Line(n_sql, rate / expected, "", "blue"),
            Points(n_sql, rate / expected, color="blue"),
            Rule(y=1, label="fit"),
        ],
        height=240,
    ),
    caption=(
        "Residuals of the database. They are small, but they are not noise, because they wander."
    ),
    alt=(
        f"Residuals within {np.abs(rate / expected - 1).max():.0%} of the fit that run in long"
        " waves above and below it."
    ),
)

# %% tags=["holds"]
assert (np.diff(np.sign(rate / expected - 1)) != 0).sum() < len(n_sql) / 4, "they wander"
assert (np.diff(np.sign(rate / expected - 1)) != 0).sum() < len(n_sql) / 4, "run in long waves above and below it"


# %% [markdown]
# The published fit has a share of {{mysql["published_serial"]:.2%}} and a $κ$ of
# {{mysql["published_kappa"]:.3%}}. It takes the errors at all points to be of one size; ours takes
# them in proportion to the speedup, and finds {{sql.serial:.2%}} and {{sql.kappa:.3%}}. The
# published share lies outside our interval, from {{sql.serial_interval[0]:.2%}} to
# {{sql.serial_interval[1]:.2%}}. But the interval describes scatter around the law, and where
# residuals wander, the law itself holds only approximately. So trust the peak near {{sql.peak:.0f}}
# threads more than the second digit of $s$.
#
# ## What the model leaves out
#
# The model leaves out queues: a shared resource slows down long before it is full, and chapter 4
# shows by how much. It leaves out failures: a machine of a thousand parts fails more often than one
# part (chapter 6). It leaves out variation: all processors wait for the slowest, and among more of
# them the slowest is slower. And it leaves out algorithms: a method that runs well in parallel may
# need more steps.
#
# ## Further reading
#
# - Amdahl, *Validity of the single processor approach to achieving large scale computing
#   capabilities* (1967): three pages, without a formula.
# - Gustafson, *Reevaluating Amdahl's law* (1988): a reply of two pages.
# - Karp and Flatt, *Measuring parallel processor performance* (1990): the metric, and why its trend
#   is worth looking at.
# - Gunther, *Guerrilla Capacity Planning* (2007): the Universal Scalability Law, by its author.
# - Chowdhery et al., *PaLM* (2022), appendix B: MFU, defined by those who named it.

# %% tags=["holds"]
assert mysql["published_serial"] > sql.serial_interval[1], "lies outside our interval"
assert np.ptp(sql.peak_interval) / sql.peak < np.ptp(sql.serial_interval) / sql.serial, (
    "more than the second"
)
