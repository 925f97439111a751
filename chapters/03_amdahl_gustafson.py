# %% [markdown]
# # 3. Amdahl and Gustafson
#
# The training job takes a week on the GPUs you have. Somebody offers you eight times as many. Will
# it be done tomorrow? And what will it cost?
#
# Usually it will not, and it will cost more. This chapter says how much later, how much more, and
# which measurement you need before you promise anything.
#
# **You will be able to** work out from a profile how much any machine can speed up a job; tell
# strong from weak scaling; read a scaling table and say what holds it back; fit a law to measured
# speedups, with its uncertainty; and estimate how long a training run takes.
#
# **You need** chapter 1, and from chapter 2 the habit of asking what bounds a time. **Time:** two
# hours, with the problems. **In twenty minutes:** the sections marked with ◆, each up to its first
# subsection; the last of them answers the question.

# %%
import math

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np

from lightspeed.catalog import accelerator, find, link
from lightspeed.collectives import bandwidth_bound
from lightspeed_course import Axis, Bars, Chart, Line, Points, Rule, figure, human_time, si, sweep
from lightspeed_course import ask, cards, predict, residual_chart, reveal, table, weigh
from lightspeed_models.fits import fit_usl
from lightspeed_models.profiles import read_profile, scaling_runs
from lightspeed.roofline import transfer_time
from lightspeed.scaling import *
from lightspeed.training import *

# %% [markdown]
# ## ◆ Before you read on
#
# Commit yourself to a number.

# %%
predict("scaling.offer", ...)

# %% [markdown]
# ## ◆ Watch a job shrink
#
# A part of the job does not care how many GPUs there are: the interpreter, a logger, a checkpoint
# that one process writes. Draw it in grey, and the part that can be divided in blue. Then add
# processors.

# %%
serial, n_few = 0.05, 8
counts = [1, 2, 4, n_few, 32, 1000]
names = [f"{n:,}" for n in counts]
fig, ax = plt.subplots(figsize=(8, 2.6), layout="constrained")
ax.barh(names, [serial] * len(counts), color="tab:gray", label="serial")
ax.barh(names, [(1 - serial) / n for n in counts], left=serial, label="divided")
ax.set(xlabel="time, as a share of the time on one", ylabel="processors")
ax.invert_yaxis()
ax.legend()
plt.close(fig)
figure(
    fig,
    caption=f"One job of which {serial:.0%} is serial. The blue part shrinks, the grey one stays.",
    alt=f"Six stacked bars. The grey part is {serial:.0%} of the time on one processor in each of "
    "them. The blue part shrinks from bar to bar and can hardly be seen in the last.",
)

# %% tags=["holds"]
assert all(
    b < a
    for a, b in zip([(1 - serial) / n for n in counts], [(1 - serial) / n for n in counts[1:]])
), "The blue part shrinks, the grey one stays"

# %% [markdown]
# **The divided part shrinks and the serial part stays, so in the end only the serial part is
# left.** Do a case on paper. A job takes ten minutes, of which one is serial.
#
# - On three processors the other nine minutes become three. The job takes four: it is
#   {{amdahl_speedup(3, serial=0.1):.1f}} times as fast.
# - On nine processors they become one. The job takes two: {{amdahl_speedup(9, serial=0.1):.0f}}
#   times as fast, on nine machines that you pay for.
# - On any number it takes more than one minute, so it is never ten times as fast.
#
# In general, call the serial share $s$, and the rest $p = 1 - s$. On $n$ processors the job takes
#
# $$\frac{T(n)}{T(1)} = s + \frac{p}{n} \qquad\text{so}\qquad
# S(n) = \frac{1}{s + \frac{p}{n} } \longrightarrow \frac{1}{s}$$
#
# This is Amdahl's law. $S$ is the *speedup*. Because the job stays the same on a larger machine,
# this scaling is called *strong*.

# %% tags=["holds"]
assert abs(amdahl_speedup(3, serial=0.1) - 10 / 4) < 1e-9, "The job takes four"
assert abs(amdahl_speedup(9, serial=0.1) - 10 / 2) < 1e-9, "machines that you pay"
assert amdahl_speedup(1e12, serial=0.1) < 10, "ten times as fast"

# %%
few, most = amdahl_speedup(n_few, serial=serial), amdahl_speedup(math.inf, serial=serial)
week, price = 7 * 86400, n_few / few
few, most, price

# %%
reveal("scaling.offer")

# %% [markdown]
# With {{serial:.0%}} serial, {{n_few}} times the GPUs give {{few:.2f}} times the speed. The week
# becomes {{human_time(week / few)}}, not one day. You pay for {{n_few}} machines over that time,
# {{price:.2f}} times what the job cost before. And no number of GPUs gives more than {{most:.0f}}.
# Here are other shares; the last row is the limit.

# %% tags=["holds"]
assert abs(few * (serial + (1 - serial) / n_few) - 1) < 1e-9, "times the GPUs give"
assert n_few == 8 and week / few > 86400, "what the job cost"
assert amdahl_speedup(1e12, serial=serial) < most, "no number of GPUs"

# %%
shares, sizes = [0.5, 0.75, 0.9, 0.95, 0.99], [2, 8, 32, 128, 512, math.inf]
sweep(amdahl_speedup, n=sizes, parallel=shares)

# %% [markdown]
# Read down a column to {{sizes[-2]}}: each step takes four times the processors, and multiplies the
# speedup by less than the step before.
#
# For other numbers of processors, a slider of ipywidgets:

# %% tags=["holds"]
assert all(sizes[i + 1] == 4 * sizes[i] for i in range(4)) and all(
    amdahl_speedup(16 * n, parallel=p) * amdahl_speedup(n, parallel=p)
    < amdahl_speedup(4 * n, parallel=p) ** 2
    for p in shares
    for n in range(1, 500)
), "less than the step"

# %%
from IPython.display import display
from ipywidgets import Output, SelectionSlider

options = [2**k for k in range(11)]
slider, reading = SelectionSlider(options=options, value=n_few, description="n"), Output()


def read(change=None):
    reading.outputs = ()
    reading.append_stdout(f"{amdahl_speedup(slider.value, serial=serial):.1f} times as fast")


slider.observe(read, "value")
read()
display(slider, reading)

# %% [markdown]
# ## ◆ When is half of the money gone?
#
# You pay for each processor until the job is done. Take the ten-minute job again, with its serial
# minute. On nine processors it takes two minutes, so you pay for eighteen. How many processors
# double the bill?
#
# On eleven, the other nine minutes take nine elevenths of one. Add the serial minute: twenty
# elevenths, and eleven processors to pay for make twenty minutes. **In the serial minute you pay
# for all of them, and use one.**
#
# *Efficiency* is speedup over processors: what you get for what you pay. From Amdahl's law it is
# $1 / (1 + s (n - 1))$, and the price of the job is one over that. It reaches one half at
# $n = 1 + 1/s$: one more than the limit of the speedup. At that point the job costs twice as much,
# and if $s$ is small, you have about half of the largest possible speedup.

# %% tags=["holds"]
assert abs(9 * 10 / amdahl_speedup(9, serial=0.1) - 18) < 1e-9, "you pay for eighteen"
assert abs(11 * 10 / amdahl_speedup(11, serial=0.1) - 20) < 1e-9, "pay for make twenty"
assert all(
    abs(processors_at_efficiency(0.5, parallel=p) - 1 - 1 / (1 - p)) < 1e-6 for p in shares
), "more than the limit"
assert abs(amdahl_speedup(101, serial=0.01) / 100 - 0.5) < 0.01, "half of the largest"

# %%
half = [processors_at_efficiency(0.5, parallel=p) for p in shares]
there = [amdahl_speedup(n, parallel=p) for n, p in zip(half, shares)]
limits = [amdahl_speedup(math.inf, parallel=p) for p in shares]
half

# %% tags=["figure"]
serials = [si(1 - p, "%") for p in shares]
table(
    zip(serials, half, there, limits),
    ["serial share", "n at half efficiency", "speedup there", "limit"],
)

# %% [markdown]
# Turn this around and it becomes a budget. How small must the serial share be for a large machine
# to be used well? Guess first.

# %%
predict("scaling.affordable_share", ..., seed="guess")

# %%
reveal("scaling.affordable_share", seed="guess")

# %% [markdown]
# At an efficiency of four fifths the job costs a quarter more, so $s (n - 1)$ may be a quarter. On
# a thousand processors, even a serial share of one in a thousand costs half of the machine.
#
# ## ◆ From a profile to p
#
# The law is useless until you know $p$, and you have to measure $p$. Start with a guess all the
# same.

# %% tags=["holds"]
assert all(
    abs(efficiency(amdahl_speedup(n, serial=1 / 4 / (n - 1)), n) - 4 / 5) < 1e-9
    for n in (2, 8, 1000)
), "four fifths the job"
assert abs(efficiency(amdahl_speedup(1000, serial=0.001), 1000) - 0.5) < 0.001, (
    "half of the machine"
)

# %%
predict("scaling.profile", ..., seed="open")

# %% [markdown]
# Three parts, one after the other: add up what each takes *afterwards*.

# %%
reveal("scaling.profile", seed="open")

# %% [markdown]
# Here is the same breakdown, in seconds. `read_breakdown("step.json")` reads one from a file.

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
#
# The same sum answers the question to ask before you change anything: what is the most that this
# can give? Suppose that a part took no time:

# %% tags=["holds"]
assert whole < profile_speedup(breakdown, {"compute": math.inf}), "times at most"

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
    caption=f"A made-up training step of {si(sum(step.values()), 's')}.",
)

# %% [markdown]
# Logging that takes no time makes the step {{profile_speedup(step, {"logging": math.inf}) - 1:.0%}}
# faster; a backward pass at twice the speed makes it
# {{profile_speedup(step, {"backward": 2}) - 1:.0%}} faster.
#
# ### A profile of this machine
#
# `cProfile` writes a file. `read_profile` adds up the functions that you name, each with the
# functions that it calls, and calls the rest "everything else". Name functions that do not call
# each other; otherwise their time would count twice, and `read_profile` refuses.

# %% tags=["holds"]
assert profile_speedup(step, {"logging": math.inf}) < profile_speedup(step, {"backward": 2}), (
    "twice the speed makes"
)

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

# %% tags=["measured"]
here = read_profile(saved, ["tokenize", "multiply"])
at_most = [f"{profile_speedup(here, {part: math.inf}):.2f}" for part in here]
table(
    [[part, si(t, "s"), most] for (part, t), most in zip(here.items(), at_most)],
    ["part", "time here", "the whole, if it took no time"],
)

# %% [markdown]
# ### One fast processor, or many?
#
# A faster processor shortens the serial part, too. Many slower ones never give more than $1 / s$,
# so one that is faster than that beats any number of them.

# %% tags=["holds"]
assert all(amdahl_speedup(10.0**k, parallel=p) < 1 / (1 - p) for p in shares for k in range(9)), (
    "faster than that beats"
)

# %%
ask("scaling.fast_or_many", seed="chapter")

# %% [markdown]
# ## ◆ A job that grows: weak scaling
#
# People who get a thousand GPUs rarely train last year's model in ten minutes. They train a larger
# one in the same time. So turn the question around. Take the ten minutes from above again, one of
# them serial, but now as measured on nine processors. How long would one processor take for this
# job?
#
# The serial minute stays a minute. The other nine minutes were done by nine processors at once, so
# one alone needs eighty-one. Together that is {{10 * gustafson_speedup(9, serial=0.1):.0f}}
# minutes: the nine are {{gustafson_speedup(9, serial=0.1):.1f}} times as fast as the one.

# %% tags=["holds"]
assert abs(gustafson_speedup(9, serial=0.1) - 82 / 10) < 1e-9, "times as fast as"

# %% tags=["figure"]
sizes = {"fixed job, on one": 9, "fixed job, on nine": 1}
sizes |= {"grown job, on one": 81, "grown job, on nine": 9}
figure(
    Chart(
        Axis("time", "min", domain=(0, 85)),
        Axis(scale="category", categories=list(sizes)),
        [
            Bars(list(sizes), [1] * 4, label="serial", color="grey"),
            Bars(
                list(sizes),
                [1 + rest for rest in sizes.values()],
                start=[1] * 4,
                label="divided",
                color="blue",
            ),
        ],
        height=210,
    ),
    caption="On nine processors the serial minute is half of the fixed job, and a tenth of the "
    "grown one.",
    alt="Four bars with a grey start of one minute each. The blue rest takes nine minutes and one "
    "for the fixed job, eighty-one and nine for the grown one.",
)

# %% tags=["holds"]
assert (
    abs(serial_on_n(9, serial_on_one=0.1) - 1 / 2) < 1e-9
    and abs(serial_on_one(9, serial_on_n=0.1) - 1 / 82) < 1e-9
), "On nine processors"

# %% [markdown]
# **If the job grows with the machine, the serial part stays small beside it.** In general, a share
# $s$ of the time *on $n$ processors* is serial, and the rest would take $n$ times as long on one:
#
# $$S(n) = s + n (1 - s) = n - s (n - 1)$$
#
# This is Gustafson's law. If $s$ is less than one, it has no limit. A job that is made larger along
# with the machine scales *weakly*.

# %% tags=["holds"]
assert gustafson_speedup(1e9, serial=0.99) > 1e6, "it has no limit"

# %%
n_many = 1000
grown = gustafson_speedup(n_few, serial=serial), gustafson_speedup(n_many, serial=serial)
grown

# %% [markdown]
# With a share of {{serial:.0%}} again: {{grown[0]:.2f}} on {{n_few}} processors and
# {{grown[1]:.2f}} on {{n_many:,}}, where Amdahl's law gives {{few:.2f}} and
# {{amdahl_speedup(n_many, serial=serial):.1f}}. By Gustafson's law efficiency never falls below
# {{1 - serial:.0%}}.

# %% tags=["holds"]
assert all(
    efficiency(gustafson_speedup(10.0**k, serial=serial), 10.0**k) > 1 - serial for k in range(9)
), "efficiency never falls below"

# %%
ask("scaling.grown_job", seed="chapter")

# %% [markdown]
# ## One law, two baselines
#
# How can two laws give different speedups for one job? They do not. The ten-minute job is serial
# for one minute of ten on one processor, and for one minute of two on nine: a tenth, and a half.
# Gustafson's law with a half gives {{gustafson_speedup(9, serial=0.5):.0f}} on nine, as Amdahl's
# law does with a tenth. **Amdahl's share is a share of the time on *one* processor, and Gustafson's
# of the time on *n*.** In general
#
# $$s_n = \frac{s_1}{s_1 + \frac{1 - s_1}{n} } \qquad\qquad s_1 = \frac{s_n}{s_n + (1 - s_n)\, n}$$
#
# Here is a job with {{serial:.0%}}, and what both laws say of it on {{n_many:,}}.

# %% tags=["holds"]
assert abs(serial_on_n(9, serial_on_one=0.1) - 0.5) < 1e-9, "ten on one processor"
assert abs(gustafson_speedup(9, serial=0.5) - amdahl_speedup(9, serial=0.1)) < 1e-9, (
    "does with a tenth"
)
assert (
    abs(gustafson_speedup(n_few, serial=serial_on_n(n_few, serial_on_one=serial)) - few) < 1e-9
), "what both laws say"

# %%
sweep(serial_on_n, n=[1, 8, 64, 1000], serial_on_one=serial)

# %%
on_thousand = serial_on_n(n_many, serial_on_one=serial)
amdahl_speedup(n_many, serial=serial), gustafson_speedup(n_many, serial=on_thousand)

# %% [markdown]
# So if somebody says "our serial share is {{serial:.0%}}", ask on how many processors it was
# measured. If it is {{serial:.0%}} of a run on {{n_many:,}} processors, it is
# {{serial_on_one(n_many, serial_on_n=serial):.3%}} of the same run on one. That is why growing the
# job works: it makes the serial share small *in Amdahl's sense*.

# %% tags=["holds"]
assert (
    abs(
        efficiency(amdahl_speedup(n_many, serial=serial_on_one(n_many, serial_on_n=serial)), n_many)
        - 0.95
    )
    < 0.001
), "makes the serial share"

# %% [markdown]
# ## ◆ From measured speedups back to a share
#
# You rarely know $s$. You have a scaling table: a speedup $S$ for each number of processors $n$.
# Ask which serial share *would* explain it, and call that share $e(n)$. Solve Amdahl's law for it:
#
# $$e(n) = \frac{ \frac{1}{S} - \frac{1}{n} }{1 - \frac{1}{n} }$$
#
# This is the metric of Karp and Flatt. The ten-minute job has a speedup of
# {{amdahl_speedup(3, serial=0.1):.1f}} on three processors, and of
# {{amdahl_speedup(9, serial=0.1):.0f}} on nine. Both give {{karp_flatt(2.5, 3):.0%}}. **If the
# share is constant in $n$, the loss behaves like serial work; if it grows, some cost grows with
# $n$.**
#
# Here are two models, each trained to a fixed quality on three sizes of a cluster. In each, the
# smallest run is the unit, since nobody has published a run on one GPU. The share is then one of
# *its* time: what more GPUs do not shorten.

# %% tags=["holds"]
assert abs(karp_flatt(2.5, 3) - karp_flatt(5, 9)) < 1e-9, "Both give"

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
assert factor == 4 and gain < 3, "share grows from row"
assert trends[1][1] > 1.2 * trends[1][0], "from row to row"
assert size[1] == 2 and abs(karp_flatt(2 / (1 + trend[1]), 2) - trend[1]) < 1e-9, (
    "two shares would agree"
)

# %%
ask("scaling.karp_flatt", seed="chapter")

# %%
ask("scaling.diagnose", seed="chapter")

# %% [markdown]
# ## ◆ The third term
#
# You double the GPUs, and the job takes *longer*. By either law this cannot happen. What is
# missing?
#
# A serial part takes the same time on any number of processors. Communication takes longer on more
# of them. Do a case on paper: a job without any serial part, and each processor beyond the first
# has to send a message that takes one per cent of the time on one.
#
# - On ten processors the work takes a tenth, and nine messages take nine per cent. Together
#   {{1 / usl_speedup(10, serial=0, kappa=0.01):.0%}}: {{usl_speedup(10, serial=0, kappa=0.01):.1f}}
#   times as fast.
# - On twenty, {{1 / usl_speedup(20, serial=0, kappa=0.01):.0%}}:
#   {{usl_speedup(20, serial=0, kappa=0.01):.1f}} times as fast, on twice the machine. Karp and
#   Flatt's share has doubled.
#
# **The divided part shrinks with $n$, and a cost $c(n)$ grows with it.** At first one more
# processor saves more than it costs; past some $n$, here ten, it costs more than it saves, and the
# job becomes slower.
#
# $$\frac{T(n)}{T(1)} = s + \frac{p}{n} + c(n)$$
#
# The simplest cost is this one: the same amount, $κ$, for each processor beyond the first, so
# $c(n) = κ\,(n - 1)$. Put that in, take one over the time, and multiply numerator and denominator
# by $n$. This is the *Universal Scalability Law*. The job is fastest at $n^*$, where one more
# processor shortens the second term by as much as it lengthens the third:
#
# $$S(n) = \frac{n}{1 + s\,(n - 1) + κ\,n\,(n - 1)} \qquad n^* = \sqrt{\frac{1 - s}{κ} }$$
#
# Gunther, who found it, calls $s$ contention and $κ$ coherence. For a peak on a hundred times as
# many processors $κ$ must be ten thousand times as small.

# %% tags=["holds"]
assert all(
    law(2 * n, serial=0.05) > law(n, serial=0.05)
    for law in (amdahl_speedup, gustafson_speedup)
    for n in (1, 8, 64, 512)
), "law this cannot happen"
assert abs(usl_speedup(10, serial=0, kappa=0.01) - 1 / (1 / 10 + 0.09)) < 1e-9, (
    "Together {{1 / usl_speedup(10, serial=0, kappa=0.01):.0%}}: {{usl_speedup(10, serial=0, kappa=0.01):.1f}} times as fast"
)
assert abs(usl_speedup(20, serial=0, kappa=0.01) - 1 / (1 / 20 + 0.19)) < 1e-9, (
    "on twice the machine"
)
assert (
    abs(
        karp_flatt(usl_speedup(20, serial=0, kappa=0.01), 20)
        - 2 * karp_flatt(usl_speedup(10, serial=0, kappa=0.01), 10)
    )
    < 1e-9
), "Flatt's share has doubled"
assert [
    usl_speedup(n + 1, serial=0, kappa=0.01) > usl_speedup(n, serial=0, kappa=0.01)
    for n in range(1, 99)
] == [n < 10 for n in range(1, 99)], "more than it saves"
assert abs(usl_peak(serial=0.1, kappa=1e-8) / usl_peak(serial=0.1, kappa=1e-4) - 100) < 1e-6, (
    "a hundred times as many"
)
assert all(
    usl_speedup(usl_peak(serial=0, kappa=0.01), serial=0, kappa=0.01)
    >= usl_speedup(n, serial=0, kappa=0.01)
    for n in range(1, 100)
), "The job is fastest at"

# %%
ask("scaling.peak", seed="read")

# %% [markdown]
# ## ◆ Try it
#
# The slider sets $s$ as Amdahl's share, of the time on one processor. Gustafson's line is for a job
# that grows from the run at your $n$, so the two laws meet there.
#
# Move $n$ to the right until half of the money is wasted; then on, until the job gets slower. Go
# back to where half is wasted. Divide $s$ by ten; then restore it and divide $κ$ by ten. Before
# each change, say which will help more there.

# %% tags=["holds"]
assert (
    abs(
        gustafson_speedup(32, serial=serial_on_n(32, serial_on_one=0.05))
        - amdahl_speedup(32, serial=0.05)
    )
    < 1e-9
), "two laws meet there"
assert (
    efficiency(usl_speedup(8, serial=0.05, kappa=2e-4), 8) > 0.5
    and 8 < usl_peak(serial=0.05, kappa=2e-4) < 10_000
), "half of the money"

# %%
from lightspeed_course.explorers.scaling import explore

explore()

# %% [markdown]
# ## A cost that grows, and how fast depends on the message
#
# An *all-reduce* adds up an array over all GPUs, and gives each of them the sum. Training uses it
# for gradients. Here it is measured, between hosts of eight H100.

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
    seconds["large"][-1] / seconds["large"][0] < 1.2
    and 2 < seconds["small"][-1] / seconds["small"][0] < 2.1
), "takes twice as long"
assert all(1 <= bandwidth_bound("all_reduce", 1, k, 1) < 2 for k in range(2, 10_000)), (
    "fewer than two copies"
)

# %%
llama, h100, ndr = find("llama2_7b"), accelerator("h100_sxm"), link("infiniband_ndr")
reached, gradients = 0.4, 2 * llama.parameters
batches = {"small batch": 2**18, "large batch": 2**22}
grid = np.geomspace(1, 1e4, 100)


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
    f"batches of {si(batches['small batch'], 'token')} and {si(batches['large batch'], 'token')}. "
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
# latency. In practice the reduction overlaps with the backward pass (below), and for small messages
# NCCL has trees (chapter 7), with which latency grows more slowly.

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
own = runs["own_server_run"]
n_own, samples = np.array(own["n"], float), np.array(own["samples"], float)
speedups, confidence = np.median(samples[0]) / samples, 0.95
fit = fit_usl(np.repeat(n_own, samples.shape[1]), speedups.ravel(), confidence)
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
amdahl, middle = amdahl_speedup(upto, serial=fit.serial), np.median(speedups, axis=1)
figure(
    Chart(
        Axis("workers n", "", "log", domain=(0.9, 40)),
        Axis("speedup", "", domain=(0, 14)),
        [
            Line(upto, amdahl, "Amdahl, same s", "blue", dash=True),
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
assert (np.diff(amdahl) > 0).all() and middle.argmax() not in (0, 9), (
    "by Amdahl's law it would never fall"
)
assert (np.diff(middle)[: middle.argmax()] > 0).all() and middle[-1] < middle.max() < amdahl[-1], (
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

# %%
ask("scaling.accumulation", seed="chapter")

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
# ### The critical path of a training step
#
# Now take four layers, forward and backward, and a reduction of each layer's gradients that can
# start as soon as they exist. The network carries one reduction at a time.


# %%
def training_step(layers=4, forward=10e-3, backward=20e-3, reduce=15e-3, optimizer=10e-3):
    """Forward and backward in order; each layer's reduction after its backward pass."""
    first_to_last = range(1, layers + 1)
    compute = [f"F{i}" for i in first_to_last] + [f"B{i}" for i in reversed(first_to_last)]
    graph = nx.DiGraph([(f"B{i}", f"R{i}") for i in first_to_last])
    nx.add_path(graph, compute)
    nx.add_path(graph, [*(f"R{i}" for i in reversed(first_to_last)), "optimizer"])
    takes = {"F": forward, "B": backward, "R": reduce, "o": optimizer}
    nx.set_node_attributes(graph, {task: takes[task[0]] for task in graph}, "time")
    return graph


fast, slow = training_step(), training_step(reduce=30e-3)
shape = {name: work_span(g) for name, g in (("fast network", fast), ("slow network", slow))}
faster = training_step(forward=5e-3, backward=10e-3, reduce=30e-3, optimizer=5e-3)
faster_gpu = work_span(faster).span
shape["fast network"].span, shape["slow network"].span, faster_gpu


# %%
def ends(graph):
    """When each task is done, if it starts as soon as its inputs exist."""
    return {v: work_span(graph.subgraph(nx.ancestors(graph, v) | {v})).span for v in graph}


done = ends(slow)
done["B1"], done["R1"]


# %% tags=["figure"]
def gantt(graph, title):
    bars = []
    for kind, color in zip("FBoR", ("blue", "green", "grey", "orange")):
        done = {v: end for v, end in ends(graph).items() if v[0] == kind}
        begun = [end - graph.nodes[v]["time"] for v, end in done.items()]
        lane = ["network" if kind == "R" else "compute"] * len(done)
        names = [v if kind != "o" else "" for v in done]
        bars.append(Bars(lane, list(done.values()), start=begun, labels=names, color=color))
    lanes = Axis(scale="category", categories=["compute", "network"])
    return Chart(Axis("time", "s", domain=(0, 0.2)), lanes, bars, title=title, height=150)


figure(
    [gantt(fast, "fast network"), gantt(slow, "slow network")],
    caption="Forward, backward, reductions, and the optimizer in grey. Above, all reductions but "
    "the last hide behind the backward pass. Below, the network is most of the critical path.",
    alt="Two Gantt charts. With the fast network the reductions run under the backward pass and "
    "end shortly after it; with the slow one they form an unbroken chain that ends much later.",
)

# %% tags=["holds"]
assert (e := ends(fast))["R2"] < e["B1"] < e["R1"], "all reductions but the last"
assert (
    sum(30e-3 for v in shape["slow network"].path if v[0] == "R") > 0.5 * shape["slow network"].span
), "most of the critical path"
assert ends(slow)["R1"] > 1.3 * ends(slow)["B1"] and ends(fast)["R1"] < 1.2 * ends(fast)["B1"], (
    "they form an unbroken chain"
)

# %% [markdown]
# Without overlap the two steps would take as long as all of their work,
# {{si(shape["fast network"].work, "s")}} and {{si(shape["slow network"].work, "s")}}. With overlap
# they take {{si(shape["fast network"].span, "s")}} and {{si(shape["slow network"].span, "s")}}. On
# the slow network the backward pass is over after {{si(done["B1"], "s")}}, the last reduction after
# {{si(done["R1"], "s")}}: the path leaves the backward pass after one layer:
# {{" → ".join(shape["slow network"].path[4:])}}.
#
# What should you make faster there? A profile adds up all parts: it shows more time on the GPU than
# on the network. But a GPU of twice the speed would shorten the step by
# {{1 - faster_gpu / shape["slow network"].span:.0%}}, and a network of twice the speed by
# {{1 - shape["fast network"].span / shape["slow network"].span:.0%}}. The critical path shows that;
# the profile cannot, because it does not know what waits for what.

# %% tags=["holds"]
assert done["B1"] < done["R1"], "pass after one layer"
assert sum(v[0] == "B" for v in shape["slow network"].path) == 1, "leaves the backward pass"
assert sum(t for v, t in slow.nodes(data="time") if v[0] != "R") > sum(
    t for v, t in slow.nodes(data="time") if v[0] == "R"
), "adds up all parts"
assert shape["fast network"].span < faster_gpu, "of twice the speed"

# %%
ask("scaling.critical_path", seed="chapter")

# %% [markdown]
# ## How long does the training take?
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

# %%
ask("training.days", seed="chapter")

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
used_runs, a100 = runs["utilization"], accelerator("a100_80gb")
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
weak = runs["megatron_weak"]
shape_1t = (weak["layers"][-1], weak["hidden"][-1], weak["vocabulary"], weak["sequence"])
hardware = weak["values"][-1] * 1e12 / a100.bf16
model_flops = transformer_training_flops(1.0, *shape_1t)
needed = hardware * model_flops / transformer_training_flops(1.0, *shape_1t, recomputed=1)
si(hardware, "%"), si(needed, "%")

# %% [markdown]
# The paper on Megatron gives {{hardware:.0%}} of peak for a model of a trillion parameters. Its
# count of FLOPs includes a repeated forward pass, so that is HFU; the MFU is {{needed:.0%}}.

# %%
ask("training.mfu_from_hfu", seed="chapter")

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
strong = []
for key in ("megatron_175b", "mlperf_gpt3_coreweave", "mlperf_deepseek_coreweave"):
    run = runs[key]
    size = np.array(run["n"], float) / run["n"][0]
    by_time = run["values"][0] / np.array(run["values"], float)
    gain = size / by_time if key == "megatron_175b" else by_time  # that one gives FLOP/s a GPU
    share = karp_flatt(gain[1], size[1])
    strong.append((run, share, size[-1], amdahl_speedup(size[-1], serial=share), gain[-1]))
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
# **Weak scaling.** The same table that gave {{hardware:.0%}} has models that grow with the machine.

# %% tags=["holds"]
assert all(abs(x / y - 1) < 0.01 for *_, x, y in strong[:2]), "where it is constant"

# %% tags=["figure"]
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
#
# ### Where it breaks
#
# - **The baseline moves.** Superlinear speedups may come from caches, from better shapes, or from a
#   bad first measurement. The laws take one processor's speed as given.
# - **The job is not quite the same.** A larger batch may need more tokens for the same quality.
#   MLPerf times contain that; efficiency in FLOP/s does not.
# - **$κ$ is a straight line.** The cost of a ring has a plateau and a slope, and that of a tree a
#   logarithm. The law with one $κ$ fits well near the points and predicts little beyond them.

# %% tags=["holds"]
assert total[-1] / total[0] > n_weak[-1] / n_weak[0], "GPUs the machine does"
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
# ### Predict the largest system of a series
#
# Submitters to MLPerf time one benchmark on systems of several sizes. Take each such series, fit a
# law to its smaller systems, and predict the largest, which the fit has not seen. The medians and
# speedups are ours: MLCommons has not verified them. Each forecast comes with an interval, taken
# from the series of *other* benchmarks.

# %%
series = {n: weigh(f"{n}-mlperf") for n in ("amdahl", "usl", "linear")}
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
batches = weigh("critical-batch")
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
from lightspeed.training import samples_to_target

assert samples_to_target(500, 1e6, 500) == 2e6, "needs twice as many"

# %%
ask("training.large_batch")

# %% [markdown]
# ## Measure it here
#
# The library has three jobs whose serial share is known, because it is *counted*: each job is a
# number of pieces of one size, and one process must do the first of them before the rest is split.
#
# - **Counting loops** keeps a core busy. Processes beyond your cores have to share them.
# - **Waiting** stands for a host whose devices do the work. Any machine can wait with many
#   processes.
# - **Waiting, then a message** is like the second job, but each process then sends an array, and
#   one process receives these and adds them.

# %%
from lightspeed_course import measure_here, shipped
from lightspeed_tools.measure.pages.scaling_figures import (
    scaling_figure,
    scaling_findings,
    scaling_table,
)
from lightspeed_tools.measure.instruments.scaling import PARTS

pieces = sum(PARTS["wait"])
first = PARTS["wait"][0] / pieces
si(first, "%")

# %% [markdown]
# Before you measure, say what you expect, if {{first:.0%}} of the jobs that wait is serial. How
# many times faster is the second job with sixteen processes? Does the share of Karp and Flatt stay
# the same from two processes to sixteen, in the second job and in the third? On how many processes
# is the third job fastest?

# %%
table(
    [[n, amdahl_speedup(n, serial=first)] for n in (2, 4, 8, 16)],
    ["processes", "speedup, if Amdahl's law is all there is"],
    caption=f"Serial is one of {pieces} pieces of waiting; of counting loops it is one of "
    f"{sum(PARTS['count'])}.",
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
#   processes.
# - **The message** is the third term. Each process adds about the same time to the queue in front
#   of the one that receives. So the share grows from row to row of the table below, $κ$ is above
#   zero, and past some $n$ the job becomes slower.
# - **Counting loops** stops at your cores. If it falls short before that, you do not have the cores
#   to yourself, or they are not alike: other programs use them, two of them share one core's units
#   (SMT), a virtual machine has fewer than it reports, or the clock rate drops when all are busy.
#   And three pieces on two cores leave two of them to one core, so a third process can make the job
#   slower.
#
# If the cell said that the times scatter too much, the machine was busy with something else. Close
# what you can and run the cells again.

# %% tags=["measured"]
scaling_table(mine)

# %% [markdown]
# ### When the times scatter
#
# Here is the record of a machine that lost part of its time to others on the same hardware, and
# what follows:

# %%
other = shipped()["intel_xeon_2core"]
stolen = next(check for check in other["environment"] if check["check"] == "stolen time")
print(stolen["words"])
scaling_findings(other)

# %% [markdown]
# A fit through its points would have printed as many digits as the one above. But a speedup is a
# ratio of two times. If either scatters by more than the effect that you look for, the answer is
# that you do not know.
#
# ## Worked problems
#
# Take a pencil.

# %%
ask("scaling.where_to_work", seed="read")

# %%
ask("scaling.deadline", seed="chapter")

# %%
ask("scaling.price", seed="chapter")

# %%
ask("training.mfu", seed="read")

# %% [markdown]
# ## Gallery of wrong claims

# %%
from lightspeed_course import gallery

gallery("03")

# %% [markdown]
# ## ◆ Back to the offer
#
# Eight times as many GPUs for a job that takes a week. The machine you have is the unit, so what
# counts is the share of *its* time that the new GPUs do not shorten. Here are a few, two of them
# from the runs above.

# %%
offered = 8
stay = {
    "nothing: perfect scaling": 0.0,
    "as in the GPT-3 runs above": float(trends[0][-1]),
    "as in the DeepSeek runs above": float(trends[1][-1]),
    "a twentieth": 0.05,
    "a tenth": 0.1,
}
gained = {what: amdahl_speedup(offered, serial=share) for what, share in stay.items()}
perfect, gpt3, deepseek, twentieth, tenth = gained.values()
gpt3, deepseek, twentieth

# %% tags=["figure"]
table(
    [[w, si(stay[w], "%"), human_time(week / g), offered / g] for w, g in gained.items()],
    ["what does not get shorter", "share", "a week becomes", "times the price"],
    caption=f"By Amdahl's law, on {offered} times the machine.",
)

# %% tags=["holds"]
assert perfect == offered == 8, "on {offered} times the machine"

# %% [markdown]
# **Will it be done tomorrow?** For a week to become a day the job has to be seven times as fast. On
# eight times the machine that needs a share below {{karp_flatt(7, offered):.1%}}. Neither of the
# two published runs is there: the better one would make it {{week / gpt3 / 3600:.0f}} hours.
#
# **What will it cost?** Eight over the speedup: with a twentieth that stays, {{price:.2f}} times
# what it costs now. The rest of the bill is the price of waiting less.
#
# **What to measure first.** Run the job for an hour on the machine you have, on twice, and on four
# times as much, with the same batch in all: one that grows with the machine is weak scaling. The
# speedup is the ratio of the steps done. Work out the share of Karp and Flatt from each. If it
# stays, Amdahl's law gives the time on the large one. If it grows, the offer is worse: ask how the
# batch can grow, or how the communication can hide, before you ask for GPUs.
#
# **Or use the offer otherwise.** Train a model that is more work, in the same week. Then the law is
# Gustafson's, and with a twentieth of that week serial you get
# {{gustafson_speedup(offered, serial=serial):.2f}} times the work for eight times the price.
#
# ## Exercises
#
# `exercises/03_amdahl_gustafson.ipynb` has these problems with other numbers, and more: three laws
# to write as functions, and a profile to act on. The numbers worth remembering come back as cards.

# %% tags=["holds"]
assert week == 7 * 86400, "seven times as fast"
assert abs(amdahl_speedup(offered, serial=karp_flatt(7, offered)) - 7) < 1e-9, "needs a share below"
assert deepseek < gpt3 < 7, "Neither of the two"
assert abs(price - offered / twentieth) < 1e-9, "what it costs now"
assert gustafson_speedup(offered, serial=serial) > twentieth, "eight times the price"

# %%
cards("scaling")

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
assert (np.diff(np.sign(rate / expected - 1)) != 0).sum() < len(n_sql) / 4, "Residuals within"

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
