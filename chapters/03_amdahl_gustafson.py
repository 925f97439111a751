# %% [markdown]
# # 3. Amdahl and Gustafson
#
# The training job takes a week on the GPUs you have. Somebody offers you eight times as many. Is it done tomorrow? And
# what will it cost?
#
# Nearly always the honest answer is "no, and more". This chapter says how much later, how much more, and which
# measurement you need before you promise anything.
#
# **You will be able to** turn a profile into the most that any machine can give; tell strong from weak scaling; read a
# scaling table and say what holds it back; fit a law to measured speedups, with its uncertainty; and estimate how long a
# training run takes.
#
# **You need** chapter 1, and from chapter 2 only the habit of asking what bounds a time. **Time:** two hours, with the problems.

# %%
import math

import networkx as nx
import numpy as np

from lightspeed.catalog import accelerator, find, link
from lightspeed_course import (
    ask, Axis, Bars, cards, Chart, figure, human_time, Line, Points, predict, reveal, Rule, si,
    table,
)
from lightspeed_course.profiles import read_breakdown, read_profile, scaling_runs
from lightspeed.roofline import transfer_time
from lightspeed.scaling import *
from lightspeed.training import *

# %% [markdown]
# ## Before you read on
#
# Commit yourself to two numbers.

# %%
predict("scaling.profile", ...)

# %%
predict("scaling.affordable_share", ...)

# %% [markdown]
# ## One job, more processors: strong scaling
#
# Take a job of fixed size and split its time on one processor into two shares. The share $s$ is serial: it runs on one
# processor, whatever you buy. The share $p = 1 - s$ can be divided. On $n$ processors the job takes
#
# $$\frac{T(n)}{T(1)} = s + \frac{p}{n} \qquad\text{so}\qquad S(n) = \frac{1}{s + \frac{p}{n} } \longrightarrow \frac{1}{s}$$
#
# This is Amdahl's law. The divided part shrinks; the serial part stays; in the end only the serial part is left. Suppose
# some of a training step is serial: the interpreter, kernel launches, a logger.

# %%
serial, n_few = 0.05, 8
few, most = amdahl_speedup(n_few, serial=serial), amdahl_speedup(math.inf, serial=serial)
week, price = 7 * 86400, n_few / few
now = human_time(week / few)

# %% [markdown]
# With {{serial:.0%}} serial, {{n_few}} processors give {{few:.2f}} times the speed, {{efficiency(few, n_few):.0%}} of what was
# paid for, and no number of processors gives more than {{most:.0f}}. So if your week of training is like this, eight times the
# GPUs make {{now}} of it, not a day, at {{price:.2f}} times the price. The last column below is the limit.

# %%
slogan = amdahl_speedup(100, parallel=0.9)
shares, counts = [0.5, 0.75, 0.9, 0.95, 0.99], [2, 8, 32, 100, 1000, math.inf]
table(
    [[f"{p:.0%}"] + [f"{amdahl_speedup(n, parallel=p):.2f}" for n in counts] for p in shares],
    ["parallel share", *(f"n = {si(n)}" for n in counts)],
    caption="Speedup of a fixed job. Read along a row: most of what there is to gain comes early.",
)

# %% [markdown]
# A slogan says that making nine tenths of a job a hundred times faster makes the job ten times faster. Look it up: it is
# {{slogan:.2f}}. Ten is the limit, and no factor reaches it.

# %%
grid = np.geomspace(1, 1e4, 100)

# %% tags=["figure"]
colors = ("black", "purple", "blue", "green", "orange")
figure(
    Chart(
        Axis("processors n", "", "log"),
        Axis("speedup", "", "log", domain=(1, 300)),
        [Line(grid[grid < 300], grid[grid < 300], "perfect", "grey", dash=True, label_at="along")]
        + [Line(grid, amdahl_speedup(grid, parallel=p), f"p = {p:.0%}", c) for p, c in zip(shares, colors)],
        height=340,
    ),
    caption="Every curve leaves the diagonal and flattens at one over its serial share.",
    alt="Speedup against processors on logarithmic axes for five parallel shares; each follows the diagonal at first and then "
    f"levels off, the lowest at {amdahl_speedup(math.inf, parallel=0.5):.0f}, the highest at {amdahl_speedup(math.inf, parallel=0.99):.0f}.",
)

# %% [markdown]
# ### Where half of the money is gone
#
# Efficiency is speedup over processors. From Amdahl's law it is $1 / (1 + s (n - 1))$, and the price of the job, in
# processor-hours, is one over that. It reaches one half at $n = 1 + 1/s$: one past the limit of the speedup. There you have
# about half of all the speed that there is, at twice the price.

# %%
table(
    [[f"{1 - p:.0%}", f"{processors_at_efficiency(0.5, parallel=p):.0f}", f"{amdahl_speedup(processors_at_efficiency(0.5, parallel=p), parallel=p):.1f}", f"{amdahl_speedup(math.inf, parallel=p):.0f}"] for p in shares],
    ["serial share", "n at half efficiency", "speedup there", "limit"],
)

# %% [markdown]
# Turn it round and it becomes a budget. How small must the serial share be, for a large machine to be used well? Compare
# with your guess.

# %%
reveal("scaling.affordable_share")

# %% [markdown]
# On a thousand processors there is no such thing as a negligible serial part.
#
# ## From a profile to p
#
# The law is useless until you know $p$, and $p$ is measured, not felt. Here is a breakdown as a JSON file holds it.

# %%
import json
from pathlib import Path
from tempfile import mkdtemp

folder = Path(mkdtemp())
written = (folder / "step.json").write_text(json.dumps({"setup": 0.1, "compute": 0.9, "finish": 0.1}))
breakdown = read_breakdown(folder / "step.json")
p = parallel_fraction(breakdown, ["compute"])
cores = 100
whole = profile_speedup(breakdown, {"compute": cores})

# %%
reveal("scaling.profile")

# %% [markdown]
# The compute part takes {{si(breakdown["compute"], "s")}} of {{si(sum(breakdown.values()), "s")}}: {{p:.1%}}, because setup
# *and* finish are serial. On {{cores}} cores the whole is {{whole:.3f}} times faster, and
# {{profile_speedup(breakdown, {"compute": math.inf}):.1f}} times at most. The note from which this example comes calls the part
# "{{breakdown["compute"] / (breakdown["setup"] + breakdown["compute"]):.0%}}" (one of the two serial parts was forgotten) and
# prints yet another speedup; the gallery at the end of this page has it.
#
# ### What is the most that this can give?
#
# Ask it of every part before you touch one. Suppose a part took no time at all:

# %%
step = {"data loading": 0.110, "forward": 0.260, "backward": 0.520, "gradient sync": 0.070, "optimizer": 0.030, "logging": 0.010}
table(
    [[part, f"{time / sum(step.values()):.0%}", f"{profile_speedup(step, {part: 2}):.2f}", f"{profile_speedup(step, {part: math.inf}):.2f}"] for part, time in step.items()],
    ["part", "share of the step", "if twice as fast", "if it took no time"],
    caption=f"A made-up training step of {si(sum(step.values()), 's')}, its parts one after the other.",
)

# %% [markdown]
# The last column is a ceiling on every clever idea for that part. Perfect logging is worth
# {{profile_speedup(step, {"logging": math.inf}) - 1:.0%}}; twice as fast a backward pass is worth
# {{profile_speedup(step, {"backward": 2}) - 1:.0%}}.
#
# ### A profile of this machine
#
# `cProfile` writes a file; `read_profile` takes the functions that you name, each with all that it calls, and puts the rest
# under "everything else". Name functions that do not call each other, or their time counts twice: it refuses that.

# %%
import cProfile


def tokenize():
    return np.array([hash(word) % 1000 for word in ["the", "quick", "brown", "fox"] * 20_000])


def multiply(tokens):
    weights = np.ones((1000, 256), "float32")
    return [weights[tokens[:4000]] @ weights.T for _ in range(3)]


def work():
    multiply(tokenize())


profiler = cProfile.Profile()
profiler.runcall(work)
profiler.dump_stats(folder / "out.prof")

# %% tags=["measured"]
here = read_profile(folder / "out.prof", ["tokenize", "multiply"])
table(
    [[part, si(time, "s"), f"{profile_speedup(here, {part: math.inf}):.2f}"] for part, time in here.items()],
    ["part", "time here", "the whole, if it took no time"],
)

# %% [markdown]
# ### A decision table, recomputed
#
# A widely copied rule says: above a parallel share of nineteen in twenty, throw cores at it; from seven in ten up to there, eight to
# thirty-two cores are the sweet spot; below one half, prefer one fast core. Rules like this are easily checked.

# %%
rule, many, sweet = [0.5, 0.7, 0.8, 0.95, 0.99], 100, 32
thrown = efficiency(amdahl_speedup(many, parallel=0.95), many)
at_sweet, half_at = amdahl_speedup(sweet, parallel=0.7), processors_at_efficiency(0.5, parallel=0.7)
table(
    [
        [f"{p:.0%}"]
        + [f"{amdahl_speedup(n, parallel=p):.1f} at {efficiency(amdahl_speedup(n, parallel=p), n):.0%}" for n in (8, sweet, many)]
        + [f"{processors_at_efficiency(0.5, parallel=p):.0f}", f"{amdahl_speedup(math.inf, parallel=p):.1f}"]
        for p in rule
    ],
    ["parallel share", *(f"speedup on {n}, at efficiency" for n in (8, sweet, many)), "n at half efficiency", "limit"],
)

# %% [markdown]
# - **Throw cores at it:** at {{rule[3]:.0%}}, {{many}} cores run at {{thrown:.0%}} efficiency. Five of six are paid for nothing.
# - **The sweet spot:** at {{rule[1]:.0%}}, half of the money is gone beyond {{half_at:.0f}} processors, and {{sweet}} of them give
#   {{at_sweet:.1f}} times the speed.
# - **The fast core:** this one is a theorem. At $p$ = {{rule[0]:.0%}} any number of processors gives less than
#   {{amdahl_speedup(math.inf, parallel=0.5):.0f}}, so one processor of twice the speed beats them all: it shortens the serial
#   part, too.
#
# The rule mixes two questions. What is the highest speedup (the last column), and what is it worth to you (the rest)?
# Only the first one is a law.

# %%
ask("scaling.fast_or_many")

# %% [markdown]
# ## A job that grows: weak scaling
#
# Nobody buys a thousand GPUs to train last year's model in ten minutes. They train a larger one in the same time. So turn
# the question round: a job fills $n$ processors, and a share $s$ of *that* run is serial. How long would one processor
# take for it? The serial part takes as long as before, the other part $n$ times as long.
#
# $$S(n) = s + n (1 - s) = n - s (n - 1)$$
#
# This is Gustafson's law. It has no limit.

# %%
n_many = 1000
grown = gustafson_speedup(n_few, serial=serial), gustafson_speedup(n_many, serial=serial)

# %% [markdown]
# With a share of {{serial:.0%}} again: {{grown[0]:.2f}} on {{n_few}} processors and {{grown[1]:.2f}} on {{n_many:,}}, where
# Amdahl's law said {{few:.2f}} and {{amdahl_speedup(n_many, serial=serial):.1f}}. Efficiency never falls below
# {{1 - serial:.0%}}.

# %%
ask("scaling.grown_job")

# %% [markdown]
# ## One law, two baselines
#
# The laws are often set against each other, the pessimist and the optimist. They are one law. Amdahl's share is
# a share of the time on *one* processor, Gustafson's of the time on *n*. In the same run the two are different numbers,
# because the parallel part has become shorter and the serial part has not.
#
# $$s_n = \frac{s_1}{s_1 + \frac{1 - s_1}{n} } \qquad\qquad s_1 = \frac{s_n}{s_n + (1 - s_n)\, n}$$
#
# Put the converted share in, and both laws give the same speedup. A property test in this course's repository tries it on
# random shares and processors.

# %%
table(
    [
        [n, f"{serial:.0%}", f"{serial_on_n(n, serial_on_one=serial):.1%}", f"{amdahl_speedup(n, serial=serial):.3f}", f"{gustafson_speedup(n, serial=serial_on_n(n, serial_on_one=serial)):.3f}"]
        for n in (1, 8, 64, 1000)
    ],
    ["processors", "serial share on one", "the same work, as a share on n", "Amdahl", "Gustafson"],
    caption="One fixed job, described from both ends.",
)

# %% [markdown]
# So "our serial share is {{serial:.0%}}" is not yet a fact. On which machine was it measured? If it is {{serial:.0%}} of a run on
# {{n_many:,}} processors, it is {{serial_on_one(n_many, serial_on_n=serial):.3%}} of the same run on one. That is how small it must
# be to keep {{n_many:,}} processors busy, and why growing the job works: it makes the serial share small *in Amdahl's sense*.

# %% [markdown]
# ## From measured speedups back to a share
#
# You rarely know $s$. You have a scaling table. Solve Amdahl's law for it:
#
# $$e(n) = \frac{ \frac{1}{S} - \frac{1}{n} }{1 - \frac{1}{n} }$$
#
# This is the metric of Karp and Flatt, the serial share that *would* explain the speedup. The point is not its value but its
# trend. If it is constant in $n$, the loss really is serial work. If it grows, something else grows too.
#
# Here are two models, each trained to a fixed quality on three sizes of a cluster. The smallest run is the unit, since
# nobody has trained them on one GPU.

# %%
runs = scaling_runs()
rows = []
for run in (runs["mlperf_gpt3_coreweave"], runs["mlperf_deepseek_coreweave"]):
    for n, minutes in zip(run["n"], run["values"]):
        size, speedup = n / run["n"][0], run["values"][0] / minutes
        share = f"{karp_flatt(speedup, size):.1%}" if size > 1 else ""
        rows.append([run["name"], f"{n:,}", f"{minutes} min", f"{size:.2f}", f"{speedup:.2f}", f"{efficiency(speedup, size):.0%}", share])

# %%
table(
    rows,
    ["run", "GPUs", "time", "size of the machine", "speedup", "efficiency", "Karp–Flatt share"],
    caption="MLPerf Training, three submissions each (v3.0 and v6.0). The benchmark is the same job on a larger machine: strong scaling.",
)

# %%
deepseek = runs["mlperf_deepseek_coreweave"]
factor, gain = deepseek["n"][2] / deepseek["n"][0], deepseek["values"][0] / deepseek["values"][2]

# %% [markdown]
# In the first the share hardly moves: a small serial part explains what is lost. The second was reported as near-linear. With
# {{factor:.0f}} times the GPUs it is {{gain:.2f}} times faster, {{gain / factor:.0%}} efficient, and its share grows from row to row. No serial part
# does that. Something else grows with $n$.

# %%
ask("scaling.karp_flatt")

# %%
ask("scaling.diagnose")

# %% [markdown]
# ## The third term
#
# Texts on this topic like to say that synchronising gradients *is* the serial part. It is not. A serial part takes
# the same time on any number of processors. Communication takes more:
#
# $$\frac{T(n)}{T(1)} = s + \frac{p}{n} + c(n)$$
#
# Saturation is no longer the worst case. If $c(n)$ keeps growing, then from some $n$ on *the job becomes slower with every
# processor you add*.
#
# ### It grows, and how much depends on the message
#
# Here is a measured all-reduce between nodes of eight H100.

# %%
p5 = runs["p5_allreduce"]
sizes = {"small": 128 * 2**20, "large": 8 * 2**30}
seconds = {k: [sizes[k] / (rate * 1e9) for rate in p5[v]] for k, v in {"small": "values_128MiB", "large": "values_8GiB"}.items()}
table(
    [[si(sizes[k], "byte"), f"{p5[g][0]}", si(seconds[k][0], "s"), f"{p5[g][-1]}", si(seconds[k][-1], "s"), f"{seconds[k][-1] / seconds[k][0] - 1:+.0%}"] for k, g in {"small": "n_128MiB", "large": "n_8GiB"}.items()],
    ["message", "GPUs", "time", "GPUs", "time", "change"],
    caption="NCCL all-reduce over EFA, from crazyguitar/aws-gpu-communication-benchmark.",
)

# %% [markdown]
# A large message hardly notices the larger machine. A small one takes twice as long. The usual model says why. In a ring every
# GPU sends nearly two copies of the message, whatever their number, and takes $2 (n - 1)$ steps with a latency each:
#
# $$t(n) = \underbrace{2\,\frac{n - 1}{n}\,\frac{\text{bytes} }{\text{bandwidth} } }_\text{a plateau: as good as serial} + \underbrace{2\,(n - 1)\,\text{latency} }_\text{grows}$$
#
# ### Small batch, many GPUs
#
# Train a model with data parallelism on one fixed batch. Each GPU takes its part of the batch; then all gradients are reduced.

# %%
llama, h100, ndr = find("llama2_7b"), accelerator("h100_sxm"), link("infiniband_ndr")
reached, gradients = 0.4, 2 * llama.parameters
batches = {"small batch": 2**18, "large batch": 2**22}


def ring(n):
    """Seconds to all-reduce the gradients over n GPUs, one port each."""
    return transfer_time(2 * (n - 1) / n * gradients, ndr.bandwidth, 2 * (n - 1) * ndr.nccl_step_simple)


def speedup_of(tokens, n):
    one = training_time(training_flops(llama.parameters, tokens), 1, h100.bf16, reached)
    return communication_speedup(n, serial=0.0, overhead=ring(n) / one)


# %%
curves = {name: speedup_of(tokens, grid) for name, tokens in batches.items()}
counts = np.arange(1, 10_001)
peaks = {name: speedup_of(tokens, counts) for name, tokens in batches.items()}
top = {name: (float(counts[c.argmax()]), c.max()) for name, c in peaks.items()}

# %% tags=["figure"]
figure(
    Chart(
        Axis("GPUs", "", "log", domain=(1, 1e4)),
        Axis("speedup", "", "log", domain=(1, 3e3)),
        [Line(grid[grid < 3e3], grid[grid < 3e3], "perfect", "grey", dash=True, label_at="along")]
        + [Line(grid, c, name, color) for (name, c), color in zip(curves.items(), ("orange", "blue"))]
        + [Points([x], [y], color=color, drop=True) for (x, y), color in zip(top.values(), ("orange", "blue"))],
    ),
    caption=f"Strong scaling of {llama.name} with gradients in bf16 over {ndr.name}, no overlap: batches of {si(batches['small batch'], 'token')} and {si(batches['large batch'], 'token')}. There is no serial work in this model at all.",
    alt=f"Two curves that follow the diagonal, flatten and then fall: the small batch peaks at a speedup of {top['small batch'][1]:.0f}, the large one at {top['large batch'][1]:.0f}.",
)

# %% [markdown]
# The small batch never gets beyond {{top["small batch"][1]:.0f}} times the speed of one GPU, and is fastest on about
# {{si(top["small batch"][0], "", 2)}} GPUs. The large one reaches {{top["large batch"][1]:.0f}}, on about {{si(top["large batch"][0], "", 2)}}. Past its peak
# each gets slower. What looked like a serial share is the plateau of the ring; what
# turns the curve down is latency. Real frameworks overlap the reduction with the backward pass and use trees at small sizes, and
# chapter 7 does that properly. The shape stays.
#
# ### The Universal Scalability Law
#
# The simplest third term is one that grows by the same amount, $κ$, with every processor beyond the first:
#
# $$S(n) = \frac{n}{1 + s\,(n - 1) + κ\,n\,(n - 1)} \qquad n^* = \sqrt{\frac{1 - s}{κ} }$$
#
# Gunther calls $s$ contention and $κ$ coherence: the price of everybody having to hear from everybody. At $n^*$ the job
# is fastest. It is a square root, so a machine a hundred times as large needs a $κ$ ten thousand times as small.

# %%
ask("scaling.peak")

# %% [markdown]
# ## Try it
#
# Drag $n$ to the right until the money is half wasted; then until it gets slower. Go back, and make $s$ ten times smaller; then
# leave $s$ and make $κ$ ten times smaller. Before each change, say which will help more at the $n$ where you are.

# %%
from lightspeed_course.explorers.scaling import explore

explore()

# %% [markdown]
# ## Fit the law to what was measured
#
# This course ran a small cluster of its own. One process does some serial work, then starts $n$ workers; each
# waits for its part of a fixed time, as a host waits for a device, and then sends an array, which the first process
# receives and adds. More workers, shorter waits, more messages. Other people were using the machine at the time, which is where
# the scatter comes from.

# %%
own = runs["own_server_run"]
n_own, samples = np.array(own["n"]), np.array(own["samples"])
speedups, confidence = np.median(samples[0]) / samples, 0.95
fit = fit_usl(np.repeat(n_own, samples.shape[1]), speedups.ravel(), confidence)
low, high = fit.kappa_interval
table(
    [
        ["serial share s", f"{fit.serial:.1%}", f"{fit.serial_interval[0]:.1%} to {fit.serial_interval[1]:.1%}"],
        ["growing cost κ", f"{fit.kappa:.2%}", f"{low:.2%} to {high:.2%}"],
        ["fastest at n*", f"{fit.peak:.1f}", f"{fit.peak_interval[0]:.1f} to {fit.peak_interval[1]:.1f}"],
    ],
    ["", "fit", f"interval, {confidence:.0%}"],
    caption=f"{own['name']}: {speedups.size} samples on {own['machine']}, {own['date']:%Y}.",
)

# %% tags=["figure"]
model = fit.baseline * usl_speedup(grid[grid < 40], serial=fit.serial, kappa=fit.kappa)
amdahl = amdahl_speedup(grid[grid < 40], serial=fit.serial)
figure(
    Chart(
        Axis("workers n", "", "log", domain=(0.9, 40)),
        Axis("speedup", "", domain=(0, 14)),
        [
            Line(grid[grid < 40], amdahl, "Amdahl, same s", "blue", dash=True),
            Line(grid[grid < 40], model, "fit", "orange"),
            Points(np.repeat(n_own, samples.shape[1]), speedups.ravel(), color="black", size=2),
            Rule(x=fit.peak, label=f"n* {fit.peak:.0f}"),
        ],
    ),
    caption="Every sample that was taken. The speedup rises, stops and falls; Amdahl's law knows only the first two.",
    alt=f"Measured speedups that rise to about {np.median(speedups, axis=1).max():.0f} near {n_own[np.median(speedups, axis=1).argmax()]} workers and fall after; a fitted curve follows them, Amdahl's curve leaves upwards.",
)

# %% [markdown]
# The interval of $κ$ lies well above zero, so the peak is real: more than about {{fit.peak:.0f}} workers make this job slower. The
# serial loop alone is {{np.median(own["serial_samples"]) / np.median(samples[0]):.1%}} of the time on one worker; the fit finds a
# little more, because one message has to be received even then.
#
# A fit without an interval is a decoration. Four points and two unknowns always look good. `fit_usl` refuses fewer points than it
# can judge by, and it fits the time on one processor, too, because that is a measurement like the others.
#
# ### The same law on somebody else's data
#
# A database server was loaded by one to thirty-two threads; the data and a fit were published.

# %%
mysql = runs["mysql_cisco"]
n_sql, rate = np.array(mysql["n"]), np.array(mysql["values"])
sql = fit_usl(n_sql, rate / rate[0])
expected = rate[0] * sql.baseline * usl_speedup(n_sql, serial=sql.serial, kappa=sql.kappa)

# %% tags=["figure"]
figure(
    Chart(
        Axis("threads n", ""),
        Axis("measured over fitted", "%", domain=(0.9, 1.1)),
        [Line(n_sql, rate / expected, "", "blue"), Points(n_sql, rate / expected, color="blue"), Rule(y=1, label="fit")],
        height=240,
    ),
    caption="Residuals of the database. They are small, and they are not noise: they wander.",
    alt=f"Residuals within {np.abs(rate / expected - 1).max():.0%} of the fit that run in long waves above and below it.",
)

# %% [markdown]
# Published were a share of {{mysql["published_serial"]:.2%}} and a $κ$ of {{mysql["published_kappa"]:.3%}}, with all errors of one size. Here, with errors
# in proportion to the speedup, it is {{sql.serial:.2%}} and {{sql.kappa:.3%}}; a test in the repository shows that the weights make the whole
# difference. The published share lies outside our interval, from {{sql.serial_interval[0]:.2%}} to {{sql.serial_interval[1]:.2%}}. Both fits
# are right about their own question. The interval speaks of scatter around the law, and where residuals wander the law itself is
# only nearly true: trust the peak near {{sql.peak:.0f}} threads more than the second digit of $s$.
#
# ### More processes than cores
#
# One more run of ours: counting loops, a serial part first, then equal pieces on one to four processes. The machine has two cores.

# %%
cpu = runs["own_cpu_run"]
times_cpu, alone = np.median(cpu["samples"], axis=1), np.median(cpu["serial_samples"])
s_cpu, cores_cpu = alone / times_cpu[0], cpu["cores"]
rows = []
for n, time in zip(cpu["n"], times_cpu):
    shared = amdahl_speedup(min(n, cores_cpu), serial=s_cpu)
    whole_pieces = profile_speedup({"serial": alone, "rest": times_cpu[0] - alone}, {"rest": n / math.ceil(n / cores_cpu)})
    rows.append([n, f"{times_cpu[0] / time:.2f}", f"{amdahl_speedup(n, serial=s_cpu):.2f}", f"{shared:.2f}", f"{whole_pieces:.2f}"])

# %%
table(
    rows,
    ["processes", "measured speedup", "Amdahl, n processes", f"Amdahl, at most {cores_cpu} cores", "whole pieces on cores"],
    caption=f"{cpu['name']}, medians of {len(cpu['samples'][0])}. By count of loops {cpu['serial_by_count']:.0%} are serial, by time {s_cpu:.0%}.",
)

# %% [markdown]
# Processes beyond the cores bring nothing; with three pieces on two cores one core has to do two of them, and a third process
# makes the job *slower* than two. Imbalance is a third term as well. And note the caption: a share is a share of the *time*. Counting work
# items gives another number, since not all of them take equally long.
#
# ## What is serial in training
#
# None of these is a law of nature. Each has a size that you can compute, and a remedy.

# %%
load, compute, sync, k = 0.05, 0.45, 0.06, 8
kernel, launch = 2e-6, 5e-6
divergent = 0.3
causes = [
    ["data loading, not overlapped", "the step waits for its batch", load / (load + compute), "prefetch; more loader processes"],
    ["gradient sync, not overlapped", "everybody waits for the slowest link", sync / (sync + compute), "overlap with backward; larger batch"],
    [f"the same, gradients of {k} micro-batches", "accumulate, then reduce once", sync / (sync + k * compute), "a larger batch, which training must tolerate"],
    ["many small kernels", f"launched every {si(launch, 's')}, done in {si(kernel, 's')}", 1 - kernel / launch, "fuse; graphs of kernels"],
    ["warp divergence", f"both sides of a branch, for {divergent:.0%} of the work", divergent / (1 + divergent), "sort the work; branch per warp"],
]
table([[a, b, f"{c:.0%}", d] for a, b, c, d in causes], ["cause", "why", "share of the time lost", "remedy"], caption="The premises are ours; put in your own.")

# %% [markdown]
# Two of these deserve a second look. Gradient accumulation does not make synchronisation cheaper; it makes the job larger, from
# {{causes[1][2]:.0%}} to {{causes[2][2]:.0%}}: weak scaling in disguise. And a GPU that waits for launches looks busy to the host,
# which does nothing but launch.

# %%
ask("scaling.accumulation")

# %% [markdown]
# ### Map is parallel; reduce is a tree
#
# Adding up $n$ partial results one after the other takes $n - 1$ steps on one processor. In a tree the same additions take
# $\log_2 n$ levels. All the work together is called *work*; the longest chain of steps that must wait for each other is the *span*, or critical
# path. No number of processors is faster than the span.

# %%
def tree(n):
    """n tasks of one second each, and the pairwise additions of their results, a millisecond each."""
    graph = nx.DiGraph()
    graph.add_nodes_from(((0, i) for i in range(n)), time=1.0)
    level, width = 0, n
    while width > 1:
        for i in range(width // 2):
            graph.add_node((level + 1, i), time=1e-3)
            graph.add_edges_from([((level, 2 * i), (level + 1, i)), ((level, 2 * i + 1), (level + 1, i))])
        level, width = level + 1, width // 2
    return graph


table(
    [[n, si(work_span(tree(n)).work, "s", 4), si(work_span(tree(n)).span, "s", 4), f"{work_span(tree(n)).parallelism:.1f}"] for n in (8, 64, 512)],
    ["tasks", "work", "span", "work over span"],
    caption="Map and tree reduction. Work over span is the largest speedup that the shape of the job allows.",
)

# %% [markdown]
# ### The critical path of a training step
#
# Now four layers, forward and backward, and a reduction of each layer's gradients that can start as soon as they exist. The network carries one reduction at a time.

# %%
def training_step(layers=4, forward=10e-3, backward=20e-3, reduce=15e-3, optimizer=10e-3):
    graph = nx.DiGraph()
    order = [f"F{i + 1}" for i in range(layers)] + [f"B{i}" for i in range(layers, 0, -1)]
    for name in order:
        graph.add_node(name, time=forward if name[0] == "F" else backward)
    nx.add_path(graph, order)
    reductions = [f"R{i}" for i in range(layers, 0, -1)]
    graph.add_nodes_from(reductions, time=reduce)
    nx.add_path(graph, [*reductions, "optimizer"])
    graph.nodes["optimizer"]["time"] = optimizer
    graph.add_edges_from((f"B{i}", f"R{i}") for i in range(1, layers + 1))
    return graph


fast, slow = training_step(), training_step(reduce=30e-3)
shape = {name: work_span(g) for name, g in (("fast network", fast), ("slow network", slow))}

# %% tags=["figure"]
def ends(graph):
    """When each task is done, if nothing waits for anything but its inputs."""
    return {v: work_span(graph.subgraph(nx.ancestors(graph, v) | {v})).span for v in graph}


def gantt(graph, title):
    lanes = {"F": ("compute", "blue"), "B": ("compute", "green"), "o": ("compute", "grey"), "R": ("network", "orange")}
    bars = []
    for kind, (lane, color) in lanes.items():
        tasks = [(v, end) for v, end in ends(graph).items() if v[0] == kind]
        start = [end - graph.nodes[v]["time"] for v, end in tasks]
        bars.append(Bars([lane] * len(tasks), [end for _, end in tasks], start=start, labels=[v if v[0] != "o" else "" for v, _ in tasks], color=color))
    return Chart(Axis("time", "s", domain=(0, 0.2)), Axis(scale="category", categories=["compute", "network"]), bars, title=title, height=150)


figure(
    [gantt(fast, "fast network"), gantt(slow, "slow network")],
    caption="Forward, backward, reductions, and the optimizer in grey. Above, all reductions but the last hide behind the backward pass. Below, the network is the critical path.",
    alt="Two Gantt charts. With the fast network the reductions run under the backward pass and end shortly after it; with the slow one they form an unbroken chain that ends much later.",
)

# %% [markdown]
# Without overlap both steps would take all their work, {{si(shape["fast network"].work, "s")}} and
# {{si(shape["slow network"].work, "s")}}. With it they take {{si(shape["fast network"].span, "s")}} and {{si(shape["slow network"].span, "s")}}. On the
# slow network the path leaves the backward pass at once: {{" → ".join(shape["slow network"].path[4:])}}. A faster GPU would
# hardly help there. The critical path says which part to make faster *next*; a profile, which adds up all parts, cannot.

# %%
ask("scaling.critical_path")

# %% [markdown]
# ## How long does the training take?
#
# For a transformer most of the work is matrix products, and each parameter meets each token once in a pass. A multiply and
# an add forward; twice that backward. So $6$ FLOPs for each of $P$ parameters and $D$ tokens, on $N$ chips with a peak of $X$
# FLOP/s, of which the run reaches a share $U$:
#
# $$T = \frac{6\,P\,D}{N\,X\,U}$$

# %%
a100 = accelerator("a100_80gb")
params, tokens_seen, used = 1e9, 20e9, 0.4
alone_days = training_time(training_flops(params, tokens_seen), 1, a100.bf16, used)
llama70 = training_time(training_flops(70e9, 15e12), 4096, h100.bf16, 0.45)

# %% [markdown]
# A model of {{si(params, "parameter")}}, {{si(tokens_seen, "token")}}, one A100 at {{used:.0%}}: {{alone_days:,.0f}} seconds, or
# {{human_time(alone_days)}}. Seventy billion parameters and fifteen trillion tokens on four thousand H100: {{human_time(llama70)}}.
#
# The equation divides by $N$ without a blush. All that this chapter is about hides in $U$, which falls as $N$ grows.

# %%
ask("training.days")

# %% [markdown]
# ### MFU and HFU
#
# $U$ comes in two kinds. **Model FLOPs utilization** counts the work that the model needs, $6PD$. **Hardware FLOPs utilization**
# also counts work done twice: to save memory, training often throws activations away and runs the forward pass again, for $8PD$
# if all of it is repeated. HFU is never below MFU. Only MFU belongs into the equation above.

# %%
used_runs = runs["utilization"]
table(
    [[m, f"{a:.1%}", f"{b:.1%}", f"{b / a:.3f}"] for m, a, b in zip(used_runs["models"], used_runs["mfu"], used_runs["hfu"])],
    ["run", "MFU", "HFU", "HFU over MFU"],
    caption=f"The same runs, counted both ways. A full repetition would give {hfu(1e9, 1e9, 1e6, 1, 1e15) / mfu(1e9, 1e9, 1e6, 1, 1e15):.3f}; these repeat less.",
)

# %%
weak = runs["megatron_weak"]
shape_1t = (weak["layers"][-1], weak["hidden"][-1], weak["vocabulary"], weak["sequence"])
hardware = weak["values"][-1] * 1e12 / a100.bf16
needed = hardware * transformer_training_flops(1.0, *shape_1t) / transformer_training_flops(1.0, *shape_1t, recomputed=1)

# %% [markdown]
# It matters when you compare. A famous table gives {{hardware:.0%}} of peak for a model of a trillion parameters. Its FLOP count includes a
# repeated forward pass, so that is HFU; the MFU is {{needed:.0%}}. Beside another paper's MFU of forty per cent it is not the
# winner.

# %%
ask("training.mfu_from_hfu")

# %% [markdown]
# ## Check: against published runs
#
# **The equation.** Four models of one family were trained by one team on one kind of GPU, and their GPU-hours are public. Take the mean
# utilization of the three smaller ones and predict all four.

# %%
l1 = runs["llama1"]
P, D, hours = (np.array(l1[name]) for name in ("params", "tokens", "gpu_hours"))
each = mfu(P, D, hours * 3600, 1, a100.bf16)
predicted = training_time(training_flops(P, D), 1, a100.bf16, each[:3].mean()) / 3600
table(
    [[m, f"{u:.1%}", f"{h:,}", f"{x:,.0f}", f"{x / h - 1:+.0%}"] for m, u, h, x in zip(l1["models"], each, l1["gpu_hours"], predicted)],
    ["model", "MFU reached", "GPU-hours, published", "predicted", "error"],
    caption=f"One utilization, {each[:3].mean():.1%}, for the whole family. The last row was not used.",
)

# %% [markdown]
# The largest model, whose hours were not used, is off by {{abs(predicted[-1] / hours[-1] - 1):.0%}}; the worst row by
# {{max(abs(predicted / hours - 1)):.0%}}. An estimate within ten per cent from one division is worth having, and it is
# no better than that.
#
# **Strong scaling.** Take the share from the first step of each table, and let Amdahl's law predict the last.

# %%
strong = []
for key in ("megatron_175b", "mlperf_gpt3_coreweave", "mlperf_deepseek_coreweave"):
    run = runs[key]
    size = np.array(run["n"]) / run["n"][0]
    gain = size * run["values"] / run["values"][0] if key == "megatron_175b" else run["values"][0] / np.array(run["values"])
    share = karp_flatt(gain[1], size[1])
    strong.append((run, share, size[-1], amdahl_speedup(size[-1], serial=share), gain[-1]))
table(
    [[r["name"], f"{r['n'][0]:,} to {r['n'][-1]:,}", f"{s:.1%}", f"{predicted:.2f}", f"{got:.2f}", f"{predicted / got - 1:+.1%}"] for r, s, _, predicted, got in strong],
    ["run", "GPUs", "share, first step", "speedup predicted", "measured", "error"],
    caption="Two of the three lose as Amdahl's law says. The third has a term that grows.",
)

# %% [markdown]
# The error is the third term at work: one per cent, or less, where the share is constant, and {{strong[-1][3] / strong[-1][4] - 1:.0%}} where it is
# not. Extrapolate Amdahl's law only after you have seen two shares agree.
#
# **Weak scaling.** The same table that gave {{hardware:.0%}} has models that grow with the machine.

# %% tags=["figure"]
n_weak, per_gpu = np.array(weak["n"]), np.array(weak["values"]) * 1e12
total = n_weak * per_gpu
figure(
    Chart(
        Axis("GPUs", "", "log", domain=(50, 5e3)),
        Axis("FLOP/s of the whole machine", "FLOP/s", "log", domain=(5e15, 1e18)),
        [
            Line(n_weak, n_weak * per_gpu[0], "perfect", "grey", dash=True),
            Points(n_weak, total, labels=[f"{x / 1e9:.0f} billion" for x in weak["params"]], color="blue"),
        ],
        height=320,
    ),
    caption="Weak scaling of GPT models on A100, recomputation included: the last point does better than perfect.",
    alt=f"Points that follow a diagonal and end slightly above it: from {si(total[0], 'FLOP/s')} on {n_weak[0]} GPUs to {si(total[-1], 'FLOP/s')} on {n_weak[-1]:,}.",
)

# %% [markdown]
# With {{n_weak[-1] / n_weak[0]:.0f}} times the GPUs the machine does {{total[-1] / total[0]:.0f}} times the FLOP/s. Gustafson's law cannot give more than
# $n$. The law is not broken: the last model is {{weak["params"][-1] / weak["params"][0]:.0f}} times as large as the first, its matrix
# products are larger, and larger products run closer to the peak (chapter 2). The unit itself became faster.
#
# ### Where it breaks
#
# - **The baseline moves.** Superlinear speedups come from caches, from better shapes, or from a bad first measurement. The laws take one
#   processor's speed as given.
# - **The job is not quite the same.** A larger batch needs more tokens for the same quality. MLPerf times contain that; efficiency in FLOP/s does not.
# - **Utilization is not a constant.** In one family of models it ranged from {{each.min():.0%}} to {{each.max():.0%}}.
# - **$κ$ is a straight line.** A ring has a plateau and a slope, a tree a logarithm. The law with one $κ$ fits well near the points and
#   predicts little beyond them.
#
# A standard text calls it a fallacy that doubling accelerators halves training time, and adds that this "assumes perfect strong scaling
# (Amdahl's Law)". It is a fallacy *because* of Amdahl's law, and the third term makes it worse.

# %% [markdown]
# ## Measure it here
#
# A law about processors deserves to be tried on some. The library has three jobs whose serial share is known, because it is *counted*: so many
# equal pieces of work, of which one process must do the first before the rest is split.
#
# - **Counting loops** keeps a core busy. Processes beyond your cores have nothing to run on.
# - **Waiting** stands for a host whose devices do the work. Any machine can wait with many processes.
# - **Waiting, then a message** is the same, but each process then sends an array, and one process receives and adds them all.
#
# Before you measure, say what you expect. How fast is the second job with sixteen processes? Does the share of Karp and Flatt stay
# the same from two processes to sixteen, in the second job and in the third? On how many processes is the third job fastest?

# %%
from lightspeed_course import measure_here, shipped
from lightspeed_course.measure.pages.scaling_figures import (
    scaling_figure,
    scaling_findings,
    scaling_table,
)
from lightspeed_course.measure.instruments.scaling import PARTS

pieces = sum(PARTS["wait"])
table(
    [[n, f"{amdahl_speedup(n, serial=PARTS['wait'][0] / pieces):.2f}"] for n in (2, 4, 8, 16)],
    ["processes", "speedup, if Amdahl's law is all there is"],
    caption=f"Serial is one of {pieces} pieces of waiting; of counting loops it is one of {sum(PARTS['count'])}.",
)

# %% tags=["measured"]
mine = measure_here("scaling")

# %% tags=["measured"]
scaling_figure(mine)

# %% tags=["measured"]
scaling_findings(mine)

# %% [markdown]
# ### Explain the difference
#
# - **Waiting** keeps to Amdahl's law as nothing else does, since a wait costs no processor. What is missing are the moments in which a process
#   is told to start, wakes up and answers. They do not shrink with $n$, so they count as serial, and there are more of them with more processes.
# - **The message** is the third term. Every process adds the same time to the queue in front of the one that receives. So the share grows
#   from row to row of the table below, $κ$ is above zero, and there is an $n$ that should not be exceeded.
# - **Counting loops** stops at your cores. If it falls short before, then the cores are not really yours, or not really alike: other programs use
#   them, two of them share one core's units (SMT), a virtual machine has fewer than it says, or the clock goes down when all are busy. The
#   share by count is then no longer the share by time.
#
# If it said that the times scatter too much, the machine was busy with something else. Close what you can and run the cells again;
# an average over noise would look just as precise and mean nothing.

# %% tags=["measured"]
scaling_table(mine)

# %% [markdown]
# ### The same on a recorded machine
#
# Here is the same measurement from a machine that was recorded for this course, every sample of which is in the repository.

# %%
recorded = shipped()["amd_epyc_2core"]
scaling_figure(recorded)

# %%
scaling_findings(recorded)

# %% [markdown]
# And here from one whose neighbours took a part of its time. Its record says so at the top, and its findings say what follows:

# %%
other = shipped()["intel_xeon_2core"]
print(next(check["words"] for check in other["environment"] if check["check"] == "stolen time"))
scaling_findings(other)

# %%
scaling_figure(other)

# %% [markdown]
# Its points would pass for a curve, and a fit through them would have printed as many digits as the one above. A speedup is a ratio
# of two times. If either scatters by more than the effect that you look for, the honest result is none.
#
# ## Worked problems
#
# Pencil first.

# %%
ask("scaling.where_to_work")

# %%
ask("scaling.deadline")

# %%
ask("scaling.price")

# %%
ask("training.mfu")

# %% [markdown]
# ## Gallery of wrong claims

# %%
from lightspeed_course import gallery

gallery("03")

# %% [markdown]
# ## Exercises
#
# `exercises/03_amdahl_gustafson.ipynb` has the problems of this page and more: three laws to write as functions, and a profile to act on.
# The numbers worth carrying in your head come back as cards.

# %%
cards("scaling")

# %% [markdown]
# ## What the model leaves out
#
# Queues: a shared resource slows down long before it is full, and chapter 4 shows how fast. Failures: a machine of a
# thousand parts is down more often than one (chapter 6). Variation: all wait for the slowest, and with more processors the slowest is slower. Algorithms: a method
# that parallelises well may need more steps.
#
# ## Further reading
#
# - Amdahl, *Validity of the single processor approach to achieving large scale computing capabilities* (1967): three pages, and no formula.
# - Gustafson, *Reevaluating Amdahl's law* (1988): two pages that answer them.
# - Karp and Flatt, *Measuring parallel processor performance* (1990): the metric, and why its trend tells more than the speedup.
# - Gunther, *Guerrilla Capacity Planning* (2007): the Universal Scalability Law, by its author.
# - Chowdhery et al., *PaLM* (2022), appendix B: MFU, defined by those who named it.
