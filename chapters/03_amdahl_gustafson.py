# %% [markdown]
# # 3. Amdahl and Gustafson
#
# The training job takes a week on the GPUs you have. Somebody offers you eight times as many.
# {{because design: a story}} Will it be done tomorrow? And what will it cost?
#
# Usually it will not, and it will cost more. This chapter says how much later, how much more, and
# which measurement you need before you promise anything.
#
# **You will be able to** work out from a profile how much any machine can speed up a job; tell
# strong from weak scaling; read a scaling table and say what holds it back; fit a law to measured
# speedups, with its uncertainty; and estimate how long a training run takes.
#
# **You need** chapter 1, and from chapter 2 the habit of asking what bounds a time. **Time:** two
# hours, with the problems.

# %%
import math

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np

from lightspeed.catalog import accelerator, find, link
from lightspeed_course import Axis, Bars, Chart, Line, Points, Rule, figure, human_time, si, sweep
from lightspeed_course import ask, cards, predict, reveal, table
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
# Take a job of fixed size and split its time on one processor into two shares. The share $s$ is
# serial: it runs on one processor, however many you have. The share $p = 1 - s$ can be divided. On
# $n$ processors the job takes
#
# $$\frac{T(n)}{T(1)} = s + \frac{p}{n} \qquad\text{so}\qquad S(n) = \frac{1}{s + \frac{p}{n} } \longrightarrow \frac{1}{s}$$
#
# This is Amdahl's law. The divided part shrinks and the serial part stays, so in the end only the
# serial part is left. {{because algebra}} Suppose some of a training step is serial: the
# interpreter, kernel launches, a logger.

# %%
serial, n_few = 0.05, 8
few, most = amdahl_speedup(n_few, serial=serial), amdahl_speedup(math.inf, serial=serial)
week, price = 7 * 86400, n_few / few
few, most, price

# %% [markdown]
# With {{serial:.0%}} serial, {{n_few}} processors give {{few:.2f}} times the speed, which is
# {{efficiency(few, n_few):.0%}} of what you pay for, and no number of processors gives more than
# {{most:.0f}}. {{holds amdahl_speedup(1e12, serial=serial) < most}} So if your week of training is
# like this, eight times the GPUs turn it into {{human_time(week / few)}}, not into one day, at
# {{price:.2f}} times the price. {{holds n_few == 8 and week / few > 86400}} In the table, the last
# column is the limit.

# %%
shares, counts = [0.5, 0.75, 0.9, 0.95, 0.99], [2, 8, 32, 100, 1000, math.inf]
sweep(amdahl_speedup, parallel=shares, n=counts)

# %% [markdown]
# Read along a row: each doubling of the processors multiplies the speedup by less than the one
# before. {{holds all(amdahl_speedup(4 * n, parallel=p) * amdahl_speedup(n, parallel=p) <
# amdahl_speedup(2 * n, parallel=p) ** 2 for p in shares for n in range(1, 1000))}}

# %%
slogan = amdahl_speedup(100, parallel=0.9)
slogan

# %% [markdown]
# Suppose that nine tenths of a job become a hundred times faster. Is the job ten times faster?
# {{because definition}} Look it up: the job is {{slogan:.2f}} times faster. Ten is the limit, and
# no factor reaches it. {{holds amdahl_speedup(1e12, parallel=0.9) < 10 and
# abs(amdahl_speedup(math.inf, parallel=0.9) - 10) < 1e-9}}

# %%
grid = np.geomspace(1, 1e4, 100)
fig, ax = plt.subplots(figsize=(7, 4))
ax.loglog(grid, grid, "--", color="grey", label="perfect")
for p in shares:
    ax.loglog(grid, amdahl_speedup(grid, parallel=p), label=f"p = {p:.0%}")
ax.set(xlabel="processors n", ylabel="speedup", ylim=(1, 300))
ax.legend()
plt.close(fig)
figure(
    fig,
    # holds "Every curve leaves": all(amdahl_speedup(1e4, parallel=p) > 0.98 / (1 - p) for p in
    #   shares)
    caption="Every curve leaves the diagonal and flattens at one over its serial share.",
    # holds "each starts on the diagonal": all(amdahl_speedup(1, parallel=p) == 1 for p in shares)
    alt=(
        "Speedup against processors on logarithmic axes for five parallel shares; each starts on"
        " the diagonal, bends away from it and levels off, the lowest at"
        f" {amdahl_speedup(math.inf, parallel=0.5):.0f}, the highest at"
        f" {amdahl_speedup(math.inf, parallel=0.99):.0f}."
    ),
)

# %% [markdown]
# That was matplotlib, as you would use it at work. A slider of ipywidgets takes few lines more:

# %%
from ipywidgets import Output, SelectionSlider

counts = [2**k for k in range(11)]
slider, reading = SelectionSlider(options=counts, value=n_few, description="n"), Output()


def read(change=None):
    reading.outputs = ()
    reading.append_stdout(f"{amdahl_speedup(slider.value, serial=serial):.1f} times as fast")


slider.observe(read, "value")
read()
display(slider, reading)

# %% [markdown]
# ### When is half of the money gone?
#
# Efficiency is speedup over processors. From Amdahl's law it is $1 / (1 + s (n - 1))$, and the
# price of the job, in processor-hours, is one over that. It reaches one half at $n = 1 + 1/s$: one
# more than the limit of the speedup. {{holds all(abs(processors_at_efficiency(0.5, parallel=p) -
# 1 - 1 / (1 - p)) < 1e-6 for p in shares)}} At that point the job costs twice as much, and if $s$
# is small, you have about half of the largest possible speedup.
# {{holds abs(amdahl_speedup(101, serial=0.01) / 100 - 0.5) < 0.01}}

# %%
half = [processors_at_efficiency(0.5, parallel=p) for p in shares]
there = [amdahl_speedup(n, parallel=p) for n, p in zip(half, shares)]
limits = [amdahl_speedup(math.inf, parallel=p) for p in shares]
serials = [si(1 - p, "%") for p in shares]
table(
    zip(serials, half, there, limits),
    ["serial share", "n at half efficiency", "speedup there", "limit"],
)

# %% [markdown]
# Turn this around and it becomes a budget. How small must the serial share be for a large machine
# to be used well? Compare your guess.

# %%
reveal("scaling.affordable_share")

# %% [markdown]
# On a thousand processors, even a serial share of one in a thousand costs half of the machine.
# {{holds abs(efficiency(amdahl_speedup(1000, serial=0.001), 1000) - 0.5) < 0.001}}
#
# ## From a profile to p
#
# The law is useless until you know $p$, and you have to measure $p$; you cannot guess it. Here is a
# breakdown of a job's time, in a JSON file.

# %%
import json
from pathlib import Path
from tempfile import mkdtemp

folder = Path(mkdtemp())
parts = {"setup": 0.1, "compute": 0.9, "finish": 0.1}
written = (folder / "step.json").write_text(json.dumps(parts))
breakdown = read_breakdown(folder / "step.json")
p = parallel_fraction(breakdown, ["compute"])
cores = 100
whole = profile_speedup(breakdown, {"compute": cores})
p, whole

# %%
reveal("scaling.profile")

# %% [markdown]
# The compute part takes {{si(breakdown["compute"], "s")}} of {{si(sum(breakdown.values()), "s")}}:
# {{p:.1%}}, because setup *and* finish are serial. On {{cores}} cores the whole is {{whole:.3f}}
# times faster, and {{profile_speedup(breakdown, {"compute": math.inf}):.1f}} times at most.
# {{holds whole < profile_speedup(breakdown, {"compute": math.inf})}} If you forget that finish is
# serial, you get {{breakdown["compute"] / (breakdown["setup"] + breakdown["compute"]):.0%}}; the
# gallery at the end of this page has a published case.
#
# ### What is the most that this can give?
#
# Ask this about each part before you change one. Suppose that a part took no time:

# %%
step = {"data loading": 0.110, "forward": 0.260, "backward": 0.520}
step |= {"gradient sync": 0.070, "optimizer": 0.030, "logging": 0.010}
twice = [profile_speedup(step, {part: 2}) for part in step]
no_time = [profile_speedup(step, {part: math.inf}) for part in step]
max(no_time)

# %% tags=["figure"]
portions = [si(time / sum(step.values()), "%") for time in step.values()]
table(
    zip(step, portions, twice, no_time),
    ["part", "share of the step", "if twice as fast", "if it took no time"],
    caption=(
        f"A made-up training step of {si(sum(step.values()), 's')}, its parts one after the other."
    ),
)

# %% [markdown]
# The last column is the most that any clever idea for that part can gain. {{holds
# all(profile_speedup(step, {part: 1e9}) < profile_speedup(step, {part: math.inf}) for part in
# step)}} Logging that takes no time makes the step
# {{profile_speedup(step, {"logging": math.inf}) - 1:.0%}} faster; a backward pass at twice the
# speed makes it {{profile_speedup(step, {"backward": 2}) - 1:.0%}} faster.
# {{holds profile_speedup(step, {"logging": math.inf}) < profile_speedup(step, {"backward": 2})}}
#
# ### A profile of this machine
#
# `cProfile` writes a file. `read_profile` adds up the functions that you name, each with the
# functions that it calls, and calls the rest "everything else". Name functions that do not call
# each other; otherwise their time would count twice, and `read_profile` refuses.
# {{because design: tests/laws/test_profiles.py}}

# %%
import cProfile


def tokenize():
    return np.array(
        [hash(word) % 1000 for word in ["the", "quick", "brown", "fox"] * 20_000], dtype=int
    )


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
# Here is a rule of thumb. If more than nineteen parts in twenty are parallel, throw cores at the
# job. {{because quotation}} From seven in ten up to there, eight to thirty-two cores are the sweet
# spot. If less than half is parallel, prefer one fast core. {{because quotation}} Rules like this
# are easy to check.

# %%
rule, many, sweet = [0.5, 0.7, 0.8, 0.95, 0.99], 100, 32
thrown = efficiency(amdahl_speedup(many, parallel=0.95), many)
at_sweet, half_at = amdahl_speedup(sweet, parallel=0.7), processors_at_efficiency(0.5, parallel=0.7)
thrown, at_sweet, half_at


# %% tags=["figure"]
def at_cost(p, n):
    gain = amdahl_speedup(n, parallel=p)
    return f"{gain:.1f} at {efficiency(gain, n):.0%}"


limits = {
    p: (processors_at_efficiency(0.5, parallel=p), amdahl_speedup(math.inf, parallel=p))
    for p in rule
}
table(
    [[si(p, "%"), *(at_cost(p, n) for n in (n_few, sweet, many)), *limits[p]] for p in rule],
    [
        "parallel share",
        *(f"speedup on {n}, at efficiency" for n in (n_few, sweet, many)),
        "n at half efficiency",
        "limit",
    ],
)

# %% [markdown]
# - **Throw cores at it:** where this part of the rule begins, at {{rule[3]:.0%}}, {{many}} cores
#   run at {{thrown:.0%}} efficiency. Of six that you pay for, five are wasted.
#   {{holds abs(1 - thrown - 5 / 6) < 0.005}}
# - **The sweet spot:** at {{rule[1]:.0%}}, half of the money is gone beyond {{half_at:.0f}}
#   processors, {{holds efficiency(amdahl_speedup(5, parallel=0.7), 5) < 0.5 <
#   efficiency(amdahl_speedup(4, parallel=0.7), 4)}} and {{sweet}} of them give {{at_sweet:.1f}}
#   times the speed.
# - **The fast core:** this one can be proved. At $p$ = {{rule[0]:.0%}} any number of processors
#   gives less than {{amdahl_speedup(math.inf, parallel=0.5):.0f}}, so one processor of twice the
#   speed is faster than all of them: it shortens the serial part, too.
#   {{holds amdahl_speedup(1e12, parallel=0.5) < 2}}
#
# The rule mixes two questions. What is the highest speedup (the last column), and what is it worth
# to you (the rest)? The law answers the first one; the second is for you to decide.

# %%
ask("scaling.fast_or_many")

# %% [markdown]
# ## A job that grows: weak scaling
#
# People who get a thousand GPUs rarely train last year's model in ten minutes. They train a larger
# one in the same time. So turn the question around: a job fills $n$ processors, and a share $s$ of
# *that* run is serial. How long would one processor take for it? The serial part takes as long as
# before, and the other part takes $n$ times as long. {{because algebra}}
#
# $$S(n) = s + n (1 - s) = n - s (n - 1)$$
#
# This is Gustafson's law. If $s$ is less than one, it has no limit.
# {{holds gustafson_speedup(1e9, serial=0.99) > 1e6}}

# %%
n_many = 1000
grown = gustafson_speedup(n_few, serial=serial), gustafson_speedup(n_many, serial=serial)
grown

# %% [markdown]
# With a share of {{serial:.0%}} again: {{grown[0]:.2f}} on {{n_few}} processors and
# {{grown[1]:.2f}} on {{n_many:,}}, where Amdahl's law said {{few:.2f}} and
# {{amdahl_speedup(n_many, serial=serial):.1f}}. By Gustafson's law efficiency never falls below
# {{1 - serial:.0%}}. {{holds all(efficiency(gustafson_speedup(10.0**k, serial=serial), 10.0**k) >
# 1 - serial for k in range(9))}}

# %%
ask("scaling.grown_job")

# %% [markdown]
# ## One law, two baselines
#
# The two laws are often set against each other, as the pessimist and the optimist. They are one
# law. Amdahl's share is a share of the time on *one* processor, and Gustafson's of the time on *n*.
# {{because definition}} In the same run the two are different numbers, because on $n$ processors
# the parallel part has become shorter and the serial part has not.
# {{holds serial_on_n(n_few, serial_on_one=serial) > serial}}
#
# $$s_n = \frac{s_1}{s_1 + \frac{1 - s_1}{n} } \qquad\qquad s_1 = \frac{s_n}{s_n + (1 - s_n)\, n}$$
#
# Put the converted share in, and both laws give the same speedup. {{holds
# abs(gustafson_speedup(n_few, serial=serial_on_n(n_few, serial_on_one=serial)) - few) < 1e-9}} A
# property test in this course's repository tries it on random shares and processors.

# %%
rows = []
for n in (1, 8, 64, 1000):
    on_n = serial_on_n(n, serial_on_one=serial)
    both = amdahl_speedup(n, serial=serial), gustafson_speedup(n, serial=on_n)
    rows.append([n, si(serial, "%"), si(on_n, "%"), *both])
table(
    rows,
    ["processors", "serial share on one", "the same work, as a share on n", "Amdahl", "Gustafson"],
    caption="One fixed job, described from both ends.",
)

# %% [markdown]
# So if somebody says "our serial share is {{serial:.0%}}", ask on how many processors it was
# measured. If it is {{serial:.0%}} of a run on {{n_many:,}} processors, it is
# {{serial_on_one(n_many, serial_on_n=serial):.3%}} of the same run on one. That is how small it
# must be to keep {{n_many:,}} processors busy, and why growing the job works: it makes the serial
# share small *in Amdahl's sense*. {{holds abs(efficiency(amdahl_speedup(n_many,
# serial=serial_on_one(n_many, serial_on_n=serial)), n_many) - 0.95) < 0.001}}

# %% [markdown]
# ## From measured speedups back to a share
#
# You rarely know $s$. You have a scaling table. Solve Amdahl's law for it:
#
# $$e(n) = \frac{ \frac{1}{S} - \frac{1}{n} }{1 - \frac{1}{n} }$$
#
# This is the metric of Karp and Flatt, the serial share that *would* explain the speedup. Look at
# its trend more than at its value. {{because advice}} If it is constant in $n$, the loss behaves
# like serial work. If it grows, some cost grows with $n$.
#
# Here are two models, each trained to a fixed quality on three sizes of a cluster. In each, the
# smallest run is the unit, since nobody has published a run on one GPU. {{because history}}

# %%
runs = scaling_runs()
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
trends

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
# In the first the share hardly moves, so a small serial part explains what is lost.
# {{holds abs(trends[0][1] - trends[0][0]) < 0.005}} The second was reported as near-linear. With
# {{factor:.0f}} times the GPUs it is {{gain:.2f}} times as fast, which is {{gain / factor:.0%}}
# efficient, {{holds factor == 4 and gain < 3}} and its share grows from row to row.
# {{holds trends[1][1] > 1.2 * trends[1][0]}} A serial part would keep it constant, so here some
# cost grows with $n$.

# %%
ask("scaling.karp_flatt")

# %%
ask("scaling.diagnose")

# %% [markdown]
# ## The third term
#
# Synchronising the gradients is often called a serial part, but it is not one. A serial part takes
# the same time on any number of processors. Communication takes longer on more of them:
#
# $$\frac{T(n)}{T(1)} = s + \frac{p}{n} + c(n)$$
#
# Now the speedup can even fall. If $c(n)$ grows without limit, so does the time, and past some $n$
# *more processors make the job slower*. {{because algebra}}
#
# ### It grows, and how much depends on the message
#
# Here is a measured all-reduce between nodes of eight H100.

# %%
p5 = runs["p5_allreduce"]
sizes = {"small": 128 * 2**20, "large": 8 * 2**30}
rates = {"small": p5["values_128MiB"], "large": p5["values_8GiB"]}  # GB/s
gpus = {"small": p5["n_128MiB"], "large": p5["n_8GiB"]}
seconds = {k: [transfer_time(sizes[k], rate * 1e9) for rate in rates[k]] for k in sizes}
seconds

# %% tags=["figure"]
rows = []
for k, (first, *_, last) in seconds.items():
    change = f"{last / first - 1:+.0%}"
    rows.append([si(sizes[k], "byte"), gpus[k][0], first, gpus[k][-1], last, change])
table(
    rows,
    ["message", "GPUs", "time", "GPUs", "time", "change"],
    caption="NCCL all-reduce over EFA, from crazyguitar/aws-gpu-communication-benchmark.",
)

# %% [markdown]
# On the larger machine the large message takes a little longer, and the small one takes twice as
# long. {{holds seconds["large"][-1] / seconds["large"][0] < 1.2 and 2 < seconds["small"][-1] /
# seconds["small"][0] < 2.1}} The usual model says why. In a ring each GPU sends fewer than two
# copies of the message, however many GPUs there are.
# {{holds all(1 <= 2 * (k - 1) / k < 2 for k in range(2, 10_000))}} It does so in $2 (n - 1)$ steps,
# and each of them has a latency: {{because algebra}}
#
# $$t(n) = \underbrace{2\,\frac{n - 1}{n}\,\frac{\text{bytes} }{\text{bandwidth} } }_\text{a plateau: as good as serial} + \underbrace{2\,(n - 1)\,\text{latency} }_\text{grows}$$
#
# ### Small batch, many GPUs
#
# Train a model with data parallelism on one fixed batch. Each GPU computes gradients for its part
# of the batch; then the gradients of all GPUs are added up, by an all-reduce.
# {{because definition}}

# %%
llama, h100, ndr = find("llama2_7b"), accelerator("h100_sxm"), link("infiniband_ndr")
reached, gradients = 0.4, 2 * llama.parameters
batches = {"small batch": 2**18, "large batch": 2**22}


def ring(n):
    """Seconds to all-reduce the gradients over n GPUs, one port each."""
    return transfer_time(
        2 * (n - 1) / n * gradients, ndr.bandwidth, 2 * (n - 1) * ndr.nccl_step_simple
    )


def speedup_of(tokens, n):
    one = training_time(training_flops(llama.parameters, tokens), 1, h100.bf16, reached)
    return communication_speedup(n, serial=0.0, overhead=ring(n) / one)


# %%
curves = {name: speedup_of(tokens, grid) for name, tokens in batches.items()}
counts = np.arange(1.0, 10_001.0)
peaks = {name: speedup_of(tokens, counts) for name, tokens in batches.items()}
top = {name: (float(counts[c.argmax()]), float(c.max())) for name, c in peaks.items()}
top

# %% tags=["figure"]
figure(
    Chart(
        Axis("GPUs", "", "log", domain=(1, 1e4)),
        Axis("speedup", "", "log", domain=(1, 3e3)),
        [Line(grid[grid < 3e3], grid[grid < 3e3], "perfect", "grey", dash=True, label_at="along")]
        + [
            Line(grid, c, name, color)
            for (name, c), color in zip(curves.items(), ("orange", "blue"))
        ]
        + [
            Points([x], [y], color=color, drop=True)
            for (x, y), color in zip(top.values(), ("orange", "blue"))
        ],
    ),
    # holds "There is no serial work": abs(communication_speedup(1e9, serial=0.0, overhead=0.0) -
    #   1e9) < 1
    caption=(
        f"Strong scaling of {llama.name} with gradients in bf16 over {ndr.name}, no overlap:"
        f" batches of {si(batches['small batch'], 'token')} and"
        f" {si(batches['large batch'], 'token')}. There is no serial work in this model at all."
    ),
    alt=(
        "Two curves that follow the diagonal, flatten and then fall: the small batch peaks at a"
        f" speedup of {top['small batch'][1]:.0f}, the large one at {top['large batch'][1]:.0f}."
    ),
)

# %% [markdown]
# The small batch never gets beyond {{top["small batch"][1]:.0f}} times the speed of one GPU, and is
# fastest on about {{si(top["small batch"][0], "", 2)}} GPUs.
# {{holds peaks["small batch"].max() == top["small batch"][1] < top["large batch"][1]}} The large
# one reaches {{top["large batch"][1]:.0f}}, on about {{si(top["large batch"][0], "", 2)}}. Past its
# peak each gets slower. {{holds all((np.diff(c[c.argmax() :]) < 0).all() for c in peaks.values())}}
# What looked like a serial share is the plateau of the ring; what turns the curve down is latency.
# In practice the reduction overlaps with the backward pass, as a section below shows, and NCCL has
# trees for small messages (chapter 7). With a tree latency grows more slowly, but it still grows.
#
# ### The Universal Scalability Law
#
# A simple third term is one that grows by the same amount, $κ$, with each processor beyond the
# first: {{because definition}}
#
# $$S(n) = \frac{n}{1 + s\,(n - 1) + κ\,n\,(n - 1)} \qquad n^* = \sqrt{\frac{1 - s}{κ} }$$
#
# Gunther calls $s$ contention, and $κ$ coherence: the cost of each processor having to hear from
# each of the others. At $n^*$ the job is fastest. {{because algebra}} Because $n^*$ is a square
# root, a machine a hundred times as large needs a $κ$ ten thousand times as small.
# {{holds abs(usl_peak(serial=0.1, kappa=1e-8) / usl_peak(serial=0.1, kappa=1e-4) - 100) < 1e-6}}

# %%
ask("scaling.peak")

# %% [markdown]
# ## Try it
#
# The slider sets $s$ as Amdahl's share, of the time on one processor. Gustafson's line is drawn
# with the share that the same run has on $n$ processors, so the two laws meet at your $n$. {{holds
# abs(gustafson_speedup(32, serial=serial_on_n(32, serial_on_one=0.05)) - amdahl_speedup(32,
# serial=0.05)) < 1e-9}}
#
# Move $n$ to the right until half of the money is wasted; then until the job gets slower. Then go
# back. Divide $s$ by ten; then restore it and divide $κ$ by ten. Before each change, say
# which will # help more at the $n$ where you are.

# %%
from lightspeed_course.explorers.scaling import explore

explore()

# %% [markdown]
# ## Fit the law to what was measured
#
# This course ran a small experiment of its own. One process does some serial work, then starts $n$
# workers. Each of them waits for its part of a fixed time, as a host waits for a device, and then
# sends an array, which the first process receives and adds. With more workers the waits are
# shorter, but there are more messages. {{because definition}} The machine was shared, which may be
# why the samples scatter.

# %%
own = runs["own_server_run"]
n_own, samples = np.array(own["n"], float), np.array(own["samples"], float)
speedups, confidence = np.median(samples[0]) / samples, 0.95
fit = fit_usl(np.repeat(n_own, samples.shape[1]), speedups.ravel(), confidence)
low, high = fit.kappa_interval
round(fit.serial, 3), round(fit.kappa, 4), round(fit.peak, 1)

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
    # because "All samples that were taken": design
    # holds "by Amdahl's law it would never fall": (np.diff(amdahl) > 0).all() and
    #   np.median(speedups, axis=1).argmax() not in (0, 9)
    caption=(
        "All samples that were taken. The speedup rises, stops and falls; by Amdahl's law it would"
        " never fall."
    ),
    # holds "Measured speedups that rise": (np.diff(np.median(speedups, axis=1))[:
    #   np.median(speedups, axis=1).argmax()] > 0).all()
    #   and np.median(speedups, axis=1)[-1] < np.median(speedups, axis=1).max() < amdahl[-1]
    alt=(
        f"Measured speedups that rise to about {np.median(speedups, axis=1).max():.0f} near"
        f" {n_own[np.median(speedups, axis=1).argmax()]:.0f} workers and fall after; a fitted curve"
        " follows them, Amdahl's curve leaves upwards."
    ),
)

# %% [markdown]
# The interval of $κ$ lies well above zero, so the peak is real: more than about {{fit.peak:.0f}}
# workers make this job slower. {{holds low > 5 * fit.kappa_error}} The serial loop alone is
# {{np.median(own["serial_samples"]) / np.median(samples[0]):.1%}} of the time on one worker. The
# fit finds more than that, since even one worker sends a message that has to be received.
# {{holds np.median(own["serial_samples"]) / np.median(samples[0]) < fit.serial}}
#
# Without an interval you cannot know what a fit is worth: with four points and three unknowns,
# almost any fit looks good. {{because advice}} `fit_usl` refuses to fit fewer than four, and it
# also fits the time on one processor, because that is a measurement like the others.
# {{because design}}
#
# ### The same law on somebody else's data
#
# A database server was loaded by one to thirty-two threads; the data and a fit were published.

# %%
mysql = runs["mysql_cisco"]
n_sql, rate = np.array(mysql["n"], float), np.array(mysql["values"], float)
sql = fit_usl(n_sql, rate / rate[0])
expected = rate[0] * sql.baseline * usl_speedup(n_sql, serial=sql.serial, kappa=sql.kappa)
round(sql.serial, 4), round(sql.kappa, 5), round(sql.peak, 1)

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
    # holds "they wander": (np.diff(np.sign(rate / expected - 1)) != 0).sum() < len(n_sql) / 4
    caption=(
        "Residuals of the database. They are small, but they are not noise, because they wander."
    ),
    # holds "Residuals within": (np.diff(np.sign(rate / expected - 1)) != 0).sum() < len(n_sql) / 4
    alt=(
        f"Residuals within {np.abs(rate / expected - 1).max():.0%} of the fit that run in long"
        " waves above and below it."
    ),
)

# %% [markdown]
# The published fit has a share of {{mysql["published_serial"]:.2%}} and a $κ$ of
# {{mysql["published_kappa"]:.3%}}. It takes the errors at all points to be of one size; ours takes
# them in proportion to the speedup, and finds {{sql.serial:.2%}} and {{sql.kappa:.3%}}. {{because
# measured elsewhere: tests/laws/test_scaling.py shows that the weights make the difference}} The
# published share lies outside our interval, from {{sql.serial_interval[0]:.2%}} to
# {{sql.serial_interval[1]:.2%}}. {{holds mysql["published_serial"] > sql.serial_interval[1]}} Both
# fits answer their own question correctly. But the interval describes scatter around the law, and
# where residuals wander, the law itself holds only approximately. {{because definition}} So trust
# the peak near {{sql.peak:.0f}} threads more than the second digit of $s$.
# {{holds np.ptp(sql.peak_interval) / sql.peak < np.ptp(sql.serial_interval) / sql.serial}}
#
# ### When cores have to be shared
#
# Here is one more run of ours: counting loops, a serial part first, then pieces of one size on one
# to four processes. The machine has two cores.
# {{holds runs["own_cpu_run"]["cores"] == 2 and runs["own_cpu_run"]["n"] == [1, 2, 3, 4]}}

# %%
cpu = runs["own_cpu_run"]
times_cpu, alone = np.median(cpu["samples"], axis=1), np.median(cpu["serial_samples"])
s_cpu, cores_cpu = alone / times_cpu[0], cpu["cores"]
profile = {"serial": alone, "rest": times_cpu[0] - alone}
rows = []
for n, time in zip(cpu["n"], times_cpu):
    law, shared = amdahl_speedup(n, serial=s_cpu), amdahl_speedup(min(n, cores_cpu), serial=s_cpu)
    whole_pieces = profile_speedup(profile, {"rest": n / math.ceil(n / cores_cpu)})
    rows.append([n, times_cpu[0] / time, law, shared, whole_pieces])
s_cpu

# %% tags=["figure"]
table(
    rows,
    [
        "processes",
        "measured speedup",
        "Amdahl, n processes",
        f"Amdahl, at most {cores_cpu} cores",
        "whole pieces on cores",
    ],
    caption=(
        f"{cpu['name']}, medians of {len(cpu['samples'][0])}. By count of loops"
        f" {cpu['serial_by_count']:.0%} are serial, by time {s_cpu:.0%}."
    ),
)

# %% [markdown]
# Processes beyond the cores gain little or nothing: {{holds times_cpu[1] / times_cpu[3] < 1.1}}
# with three pieces on two cores, one core has to do two of them, and a third process makes the job
# *slower* than two do. {{holds times_cpu[2] > times_cpu[1]}} So imbalance can be a third term as
# well. And note the caption: a share is a share of the *time*. Counting pieces of work gives
# another number, since some take longer than others.
# {{holds abs(s_cpu - cpu["serial_by_count"]) > 0.01}}
#
# ## What is serial in training
#
# Each of these causes has a size that you can compute, and a remedy.

# %%
load, compute, sync, k = 0.05, 0.45, 0.06, 8
kernel, launch = 2e-6, 5e-6
divergent = 0.3
lost = [load / (load + compute), sync / (sync + compute), sync / (sync + k * compute)]
lost += [1 - kernel / launch, divergent / (1 + divergent)]
lost

# %% tags=["figure"]
causes = [
    (
        "data loading, not overlapped",
        "the step waits for its batch",
        "prefetch; more loader processes",
    ),
    (
        "gradient sync, not overlapped",
        "everybody waits for the slowest link",
        "overlap with backward; larger batch",
    ),
    (
        f"the same, gradients of {k} micro-batches",
        "accumulate, then reduce once",
        "a larger batch, which training must tolerate",
    ),
    (
        "many small kernels",
        f"launched every {si(launch, 's')}, done in {si(kernel, 's')}",
        "fuse; graphs of kernels",
    ),
    (
        "warp divergence",
        f"both sides of a branch, for {divergent:.0%} of the work",
        "sort the work; branch per warp",
    ),
]
table(
    [[cause, why, f"{share:.0%}", remedy] for (cause, why, remedy), share in zip(causes, lost)],
    ["cause", "why", "share of the time lost", "remedy"],
    caption="The premises are ours; put in your own.",
)

# %% [markdown]
# Two of these deserve a second look. Gradient accumulation does not make synchronisation cheaper.
# It makes the job larger, so that the share falls from {{lost[1]:.0%}} to
# {{lost[2]:.0%}}: this is weak scaling. {{holds lost[2] < lost[1]}} And while a GPU
# waits for launches, the host is fully busy with launching.

# %%
ask("scaling.accumulation")

# %% [markdown]
# ### Map is parallel; reduce is a tree
#
# Adding up $n$ partial results one after the other takes $n - 1$ steps on one processor. In a tree
# the same additions take $\lceil \log_2 n \rceil$ levels. The time of all steps together is called
# the *work*. {{because definition}} The longest chain of steps that must wait for one another is
# the *span*, or critical path. {{because definition}} No number of processors finishes sooner than
# the span. {{because algebra}}


# %%
def tree(n):
    """n tasks (a power of two) of a second each; pairwise additions of a millisecond each."""
    graph = nx.DiGraph()
    graph.add_nodes_from(((0, i) for i in range(n)), time=1.0)
    level, width = 0, n
    while width > 1:
        for i in range(width // 2):
            graph.add_node((level + 1, i), time=1e-3)
            graph.add_edges_from(
                [((level, 2 * i), (level + 1, i)), ((level, 2 * i + 1), (level + 1, i))]
            )
        level, width = level + 1, width // 2
    return graph


trees = {n: work_span(tree(n)) for n in (8, 64, 512)}
table(
    [[n, si(t.work, "s", 4), si(t.span, "s", 4), t.parallelism] for n, t in trees.items()],
    ["tasks", "work", "span", "work over span"],
    # because "Work over span is the largest": algebra
    caption=(
        "Map and tree reduction. Work over span is the largest speedup that the shape of the job"
        " allows."
    ),
)

# %% [markdown]
# ### The critical path of a training step
#
# Now take four layers, forward and backward, and a reduction of each layer's gradients that can
# start as soon as they exist. The network carries one reduction at a time.


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
faster_gpu = work_span(
    training_step(forward=5e-3, backward=10e-3, reduce=30e-3, optimizer=5e-3)
).span
shape["fast network"].span, shape["slow network"].span, faster_gpu


# %% tags=["figure"]
def ends(graph):
    """When each task is done, if it starts as soon as its inputs exist."""
    return {v: work_span(graph.subgraph(nx.ancestors(graph, v) | {v})).span for v in graph}


def gantt(graph, title):
    lanes = {
        "F": ("compute", "blue"),
        "B": ("compute", "green"),
        "o": ("compute", "grey"),
        "R": ("network", "orange"),
    }
    bars = []
    for kind, (lane, color) in lanes.items():
        tasks = [(v, end) for v, end in ends(graph).items() if v[0] == kind]
        start = [end - graph.nodes[v]["time"] for v, end in tasks]
        bars.append(
            Bars(
                [lane] * len(tasks),
                [end for _, end in tasks],
                start=start,
                labels=[v if v[0] != "o" else "" for v, _ in tasks],
                color=color,
            )
        )
    return Chart(
        Axis("time", "s", domain=(0, 0.2)),
        Axis(scale="category", categories=["compute", "network"]),
        bars,
        title=title,
        height=150,
    )


figure(
    [gantt(fast, "fast network"), gantt(slow, "slow network")],
    # holds "all reductions but the last": (e := ends(fast))["R2"] < e["B1"] < e["R1"]
    # holds "most of the critical path": sum(30e-3 for v in shape["slow network"].path if v[0] ==
    #   "R") > 0.5 * shape["slow network"].span
    caption=(
        "Forward, backward, reductions, and the optimizer in grey. Above, all reductions but the"
        " last hide behind the backward pass. Below, the network is most of the critical path."
    ),
    # holds "they form an unbroken chain": ends(slow)["R1"] > 1.3 * ends(slow)["B1"] and
    #   ends(fast)["R1"] < 1.2 * ends(fast)["B1"]
    alt=(
        "Two Gantt charts. With the fast network the reductions run under the backward pass and end"
        " shortly after it; with the slow one they form an unbroken chain that ends much later."
    ),
)

# %% [markdown]
# Without overlap the two steps would take as long as all of their work,
# {{si(shape["fast network"].work, "s")}} and {{si(shape["slow network"].work, "s")}}.
# {{because definition}} With overlap they take {{si(shape["fast network"].span, "s")}} and
# {{si(shape["slow network"].span, "s")}}. On the slow network the path leaves the backward pass
# after one layer: {{" → ".join(shape["slow network"].path[4:])}}.
# {{holds sum(v[0] == "B" for v in shape["slow network"].path) == 1}}
#
# What should you make faster there? A profile adds up all parts: it shows more time on the GPU than
# on the network. {{holds sum(t for v, t in slow.nodes(data="time") if v[0] != "R") > sum(t for v, t
# in slow.nodes(data="time") if v[0] == "R")}} But a GPU of twice the speed would shorten the step
# by {{1 - faster_gpu / shape["slow network"].span:.0%}}, and a network of twice the speed by
# {{1 - shape["fast network"].span / shape["slow network"].span:.0%}}.
# {{holds shape["fast network"].span < faster_gpu}} The critical path shows that; the profile
# cannot, because it does not know what waits for what.

# %%
ask("scaling.critical_path")

# %% [markdown]
# ## How long does the training take?
#
# In a transformer most of the work is matrix products, and each parameter meets each token once in
# a pass. {{because definition}} That is one multiply and one add in the forward pass, and twice as
# much in the backward pass. {{because definition}} So training takes $6$ FLOPs for each of $P$
# parameters and $D$ tokens; attention scores are not counted. On $N$ chips with a peak of $X$
# FLOP/s, of which the run reaches a share $U$, it lasts
#
# $$T = \frac{6\,P\,D}{N\,X\,U}$$

# %%
a100 = accelerator("a100_80gb")
params, tokens_seen, used = 1e9, 20e9, 0.4
alone_days = training_time(training_flops(params, tokens_seen), 1, a100.bf16, used)
large, corpus, cluster, used_there = 70e9, 15e12, 4096, 0.45
llama70 = training_time(training_flops(large, corpus), cluster, h100.bf16, used_there)
alone_days, llama70

# %% [markdown]
# A model of {{si(params, "parameter")}} and {{si(tokens_seen, "token")}} keeps one A100 at
# {{used:.0%}} of its peak busy for {{alone_days:,.0f}} seconds, or {{human_time(alone_days)}}. With
# {{si(large, "parameter")}} and {{si(corpus, "token")}}, {{cluster:,}} H100 at {{used_there:.0%}}
# take {{human_time(llama70)}}.
#
# The equation divides by $N$ as if the work split perfectly. Everything that this chapter is about
# is hidden in $U$, which falls as more chips work on the same job. {{holds
# all(efficiency(amdahl_speedup(2 * n, serial=1e-6), 2 * n) < efficiency(amdahl_speedup(n,
# serial=1e-6), n) for n in (8, cluster))}}

# %%
ask("training.days")

# %% [markdown]
# ### MFU and HFU
#
# $U$ comes in two kinds. **Model FLOPs utilization** (MFU) counts the work that the model needs,
# $6PD$. **Hardware FLOPs utilization** (HFU) also counts work that is done twice: to save memory,
# training often throws activations away and runs the forward pass again, which makes $8PD$ if all
# of it is repeated. {{because definition}} HFU is never below MFU. {{holds all(hfu(params,
# tokens_seen, 1e6, 1, a100.bf16, share) >= mfu(params, tokens_seen, 1e6, 1, a100.bf16) for share in
# (0.0, 0.5, 1.0))}} Only MFU belongs in the equation above. {{because definition}}

# %%
used_runs = runs["utilization"]
pairs = list(zip(used_runs["models"], used_runs["mfu"], used_runs["hfu"]))
table(
    [[m, si(a, "%"), si(b, "%"), f"{b / a:.3f}"] for m, a, b in pairs],
    ["run", "MFU", "HFU", "HFU over MFU"],
    # holds "these repeat less": all(b / a < hfu(1e9, 1e9, 1e6, 1, 1e15) / mfu(1e9, 1e9, 1e6, 1,
    #   1e15) for a, b in zip(used_runs["mfu"], used_runs["hfu"]))
    caption=(
        "The same runs, counted both ways. A full repetition would give"
        f" {hfu(1e9, 1e9, 1e6, 1, 1e15) / mfu(1e9, 1e9, 1e6, 1, 1e15):.3f}; these repeat less."
    ),
)

# %%
weak = runs["megatron_weak"]
shape_1t = (weak["layers"][-1], weak["hidden"][-1], weak["vocabulary"], weak["sequence"])
hardware = weak["values"][-1] * 1e12 / a100.bf16
model_flops = transformer_training_flops(1.0, *shape_1t)
needed = hardware * model_flops / transformer_training_flops(1.0, *shape_1t, recomputed=1)
hardware, needed

# %% [markdown]
# The difference matters when you compare. The paper on Megatron gives {{hardware:.0%}} of peak for
# a model of a trillion parameters. Its count of FLOPs includes a repeated forward pass, so that is
# HFU; the MFU is {{needed:.0%}}. Beside another paper's MFU of forty per cent, it is the lower of
# the two. {{holds needed < 0.4 < hardware}}

# %%
ask("training.mfu_from_hfu")

# %% [markdown]
# ## Check: against published runs
#
# **The equation.** Four models of one family were trained by one team on one kind of GPU, and their
# GPU-hours are public. Take the mean utilization of the three smaller ones and predict all four.

# %%
l1 = runs["llama1"]
P, D, hours = (np.array(l1[name], float) for name in ("params", "tokens", "gpu_hours"))
each = mfu(P, D, hours * 3600, 1, a100.bf16)
predicted = training_time(training_flops(P, D), 1, a100.bf16, each[:3].mean()) / 3600
each

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
# {{max(abs(predicted / hours - 1)):.0%}}. {{holds P.argmax() == 3}} An estimate within ten per cent
# is worth having for a single division, but do not expect more of it.
# {{holds 0.08 < max(abs(predicted / hours - 1)) < 0.1}}
#
# **Strong scaling.** Take the share from the first step of each table, and let Amdahl's law predict
# the last.

# %%
strong = []
for key in ("megatron_175b", "mlperf_gpt3_coreweave", "mlperf_deepseek_coreweave"):
    run = runs[key]
    size = np.array(run["n"], float) / run["n"][0]
    by_time = run["values"][0] / np.array(run["values"], float)
    gain = size / by_time if key == "megatron_175b" else by_time  # that one gives FLOP/s a GPU
    share = karp_flatt(gain[1], size[1])
    strong.append((run, share, size[-1], amdahl_speedup(size[-1], serial=share), gain[-1]))
[float(share) for _, share, *_ in strong]

# %% tags=["figure"]
rows = []
for run, share, _, said, got in strong:
    gpus = f"{run['n'][0]:,} to {run['n'][-1]:,}"
    rows.append([run["name"], gpus, f"{share:.1%}", said, got, f"{said / got - 1:+.1%}"])
table(
    rows,
    ["run", "GPUs", "share, first step", "speedup predicted", "measured", "error"],
    # holds "Two of the three": [abs(predicted / got - 1) < 0.02 for *_, predicted, got in strong]
    #   == [True, True, False]
    caption="Two of the three lose as Amdahl's law says. The third has a term that grows.",
)

# %% [markdown]
# The error shows the third term: it is one per cent or less where the share is constant, and
# {{strong[-1][3] / strong[-1][4] - 1:.0%}} where it is not.
# {{holds all(abs(x / y - 1) < 0.01 for *_, x, y in strong[:2])}} Extrapolate Amdahl's law only
# after you have seen two shares agree. {{because advice}}
#
# **Weak scaling.** The same table that gave {{hardware:.0%}} has models that grow with the machine.

# %% tags=["figure"]
n_weak, per_gpu = np.array(weak["n"], float), np.array(weak["values"], float) * 1e12
total = n_weak * per_gpu
figure(
    Chart(
        Axis("GPUs", "", "log", domain=(50, 5e3)),
        Axis("FLOP/s of the whole machine", "FLOP/s", "log", domain=(5e15, 1e18)),
        [
            Line(n_weak, n_weak * per_gpu[0], "perfect", "grey", dash=True),
            Points(
                n_weak,
                total,
                labels=[f"{x / 1e9:.0f} billion" for x in weak["params"]],
                color="blue",
            ),
        ],
        height=320,
    ),
    # holds "does better than perfect": per_gpu[-1] > per_gpu[0]
    caption=(
        "Weak scaling of GPT models on A100, recomputation included: the last point does better"
        " than perfect."
    ),
    # holds "end slightly above it": 1 < per_gpu[-1] / per_gpu[0] < 1.25
    alt=(
        f"Points that follow a diagonal and end slightly above it: from {si(total[0], 'FLOP/s')} on"
        f" {n_weak[0]:.0f} GPUs to {si(total[-1], 'FLOP/s')} on {n_weak[-1]:,.0f}."
    ),
)

# %% [markdown]
# With {{n_weak[-1] / n_weak[0]:.0f}} times the GPUs the machine does {{total[-1] / total[0]:.0f}}
# times the FLOP/s. {{holds total[-1] / total[0] > n_weak[-1] / n_weak[0]}} Gustafson's law cannot
# give more than $n$.
# {{holds all(gustafson_speedup(n, serial=x) <= n for n in n_weak for x in (0.0, 0.1, 1.0))}} The
# law is not broken: the last model is {{weak["params"][-1] / weak["params"][0]:.0f}} times as large
# as the first.
# {{holds weak["params"][-1] == max(weak["params"]) and len(weak["params"]) == len(n_weak)}} Its
# matrix products are larger, and larger products run closer to the peak (chapter 2), so each GPU
# became faster. {{holds weak["hidden"][-1] > weak["hidden"][0] and per_gpu[-1] > per_gpu[0]}}
#
# ### Where it breaks
#
# - **The baseline moves.** Superlinear speedups may come from caches, from better shapes, or from a
#   bad first measurement. The laws take one processor's speed as given.
# - **The job is not quite the same.** A larger batch may need more tokens for the same quality.
#   MLPerf times contain that; efficiency in FLOP/s does not.
# - **Utilization is not a constant.** In one family of models it ranged from {{each.min():.0%}} to
#   {{each.max():.0%}}.
# - **$κ$ is a straight line.** The cost of a ring has a plateau and a slope, and that of a tree a
#   logarithm. The law with one $κ$ fits well near the points and predicts little beyond them.

# %% [markdown]
# ## Measure it here
#
# A law about processors should be tried on some. The library has three jobs whose serial share is
# known, because it is *counted*: each job is a number of pieces of one size, and one process must
# do the first of them before the rest is split.
#
# - **Counting loops** keeps a core busy. Processes beyond your cores have to share them.
#   {{because definition}}
# - **Waiting** stands for a host whose devices do the work. Any machine can wait with many
#   processes.
# - **Waiting, then a message** is like the second job, but each process then sends an array, and
#   one process receives these and adds them.
#
# Before you measure, say what you expect. How many times faster is the second job with sixteen
# processes? Does the share of Karp and Flatt stay the same from two processes to sixteen, in the
# second job and in the third? On how many processes is the third job fastest?

# %%
from lightspeed_course import measure_here, shipped
from lightspeed_course.measure.pages.scaling_figures import (
    scaling_figure,
    scaling_findings,
    scaling_table,
)
from lightspeed_course.measure.instruments.scaling import PARTS

pieces = sum(PARTS["wait"])
first = PARTS["wait"][0] / pieces
table(
    [[n, amdahl_speedup(n, serial=first)] for n in (2, 4, 8, 16)],
    ["processes", "speedup, if Amdahl's law is all there is"],
    caption=(
        f"Serial is one of {pieces} pieces of waiting; of counting loops it is one of"
        f" {sum(PARTS['count'])}."
    ),
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
# - **Waiting** follows Amdahl's law closely, because a process that waits leaves the processor to
#   others. What is missing is the time in which a process is told to start, wakes up and answers.
#   That time does not shrink with $n$, so it counts as serial, and it is spent more often with more
#   processes. {{because measured elsewhere: tests/measure/test_measured_scaling.py}}
# - **The message** is the third term. Each process adds about the same time to the queue in front
#   of the one that receives. So the share grows from row to row of the table below, $κ$ is above
#   zero, and past some $n$ the job becomes slower. {{because algebra}}
# - **Counting loops** stops at your cores. If it falls short before that, you do not have the cores
#   to yourself, or they are not alike: other programs use them, two of them share one core's units
#   (SMT), a virtual machine has fewer than it reports, or the clock rate drops when all are busy.
#   {{because definition}} Then the share by count is not the share by time.
#
# If the cell said that the times scatter too much, the machine was busy with something else. Close
# what you can and run the cells again. An average over noise would look just as precise and mean
# nothing. {{because advice}}

# %% tags=["measured"]
scaling_table(mine)

# %% [markdown]
# ### The same on a recorded machine
#
# Here is the same measurement from a machine that was recorded for this course. The repository has
# each of its samples.

# %%
recorded = shipped()["amd_epyc_2core"]
scaling_figure(recorded)

# %%
scaling_findings(recorded)

# %% [markdown]
# And here is one from a machine that lost part of its time to others on the same hardware. Its
# record says so at the top, and its findings say what follows:

# %%
other = shipped()["intel_xeon_2core"]
stolen = next(check for check in other["environment"] if check["check"] == "stolen time")
print(stolen["words"])
scaling_findings(other)

# %%
scaling_figure(other)

# %% [markdown]
# Its points look like a curve, and a fit through them would have printed as many digits as the one
# above. {{because definition}} But a speedup is a ratio of two times. If either scatters by more
# than the effect that you look for, the honest answer is that you do not know. {{because advice}}
#
# ## Worked problems
#
# Work with a pencil first.

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
# `exercises/03_amdahl_gustafson.ipynb` has the problems of this page, and others: three laws to
# write as functions, and a profile to act on. The numbers worth remembering come back as cards.

# %%
cards("scaling")

# %% [markdown]
# ## What the model leaves out
#
# The model leaves out queues: a shared resource slows down long before it is full, and chapter 4
# shows by how much. It leaves out failures: a machine of a thousand parts fails more often than one
# part (chapter 6). {{because definition}} It leaves out variation: all processors wait for the
# slowest, and among more of them the slowest is slower. {{because algebra}} And it leaves out
# algorithms: a method that runs well in parallel may need more steps. {{because definition}}
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
