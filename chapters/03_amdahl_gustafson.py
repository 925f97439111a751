# %% [markdown]
# # 3. Amdahl and Gustafson
#
# The training job takes a week on the GPUs you have. Somebody offers you eight times as many. Will
# it be done tomorrow? And what will it cost?
#
# At the end of this lesson you'll have answers to both, and you'll know which measurement you need
# before you promise anything to anybody. You need chapter 1, and a little over half an hour. The
# evidence is on the [proof page](03_amdahl_gustafson_proof.ipynb).

# %% tags=["setup"]
from math import inf
from lightspeed.scaling import *
from lightspeed_course import Area, ask, Axis, Bars, cards, Chart, figure, job, Line, Points
from lightspeed_course import bench, beside, predict, reveal, Rule, si, table
from lightspeed_models.profiles import scaling_runs

# %%
job.sheet(until="03")

# %% [markdown]
# **First, one from lesson 2.** You'll need it here.

# %%
ask("roofline.h100_critical_batch", seed="again")

# %% [markdown]
# ## Guess first
#
# Say that a twentieth of the week does not care how many GPUs there are: the interpreter, a logger,
# a checkpoint that one process writes. Commit yourself to a number.

# %%
predict("scaling.offer", ...)

# %% [markdown]
# ## What happens as processors join?
#
# Do a small case first. A job takes ten minutes on one processor. Nine of these minutes are work
# that can be divided, and in the tenth only one processor can do anything. Now let others join, one
# at a time, and watch the two colours.

# %%
from lightspeed_course.explorers.shrinking import bill, explore_shrinking

explore_shrinking()

# %% [markdown]
# On nine processors the job takes two minutes. That is {{amdahl_speedup(9, serial=0.1):.0f}} times
# as fast, on nine machines that you pay for, and half of what is left is the grey minute. You can
# go on and make the blue bars as short as you like, but the job always takes more than one minute,
# so it is never ten times as fast. **The divided part shrinks and the serial part stays, so in the
# end only the serial part is left.**
#
# In general, call the serial share $s$. On $n$ processors the job takes
#
# $$\frac{T(n)}{T(1)} = s + \frac{1 - s}{n} \qquad\text{so}\qquad
# S(n) = \frac{1}{s + \frac{1 - s}{n} } \longrightarrow \frac{1}{s}$$
#
# This is Amdahl's law, and $S$ is the *speedup*. Because the job stays the same while the machine
# grows, people call it *strong* scaling. The offer is such a case, with the machine that you have
# as the one processor.

# %% tags=["holds"]
assert abs(amdahl_speedup(9, serial=0.1) - 10 / 2) < 1e-9, "That is {{amdahl_speedup(9, serial=0.1):.0f}} times as fast, on nine machines that you pay for"
assert serial_on_n(9, serial_on_one=0.1) == 0.5, "half of what is left is the grey minute"
assert amdahl_speedup(1e12, serial=0.1) < 10, "ten times as fast"
assert all(
    (1 - 0.1) / (2 * n) < (1 - 0.1) / n and amdahl_speedup(n, serial=0.1) < 1 / 0.1
    for n in (1, 8, 512)
) and serial_on_n(10**6, serial_on_one=0.1) > 0.9999, "the serial part stays, so in the end only the serial part is left"

# %%
serial, offered = 0.05, job.OFFERED / job.GPUS
fast, most = amdahl_speedup(offered, serial=serial), amdahl_speedup(inf, serial=serial)
fast, most

# %%
reveal("scaling.offer")

# %% [markdown]
# With {{serial:.0%}} serial, {{offered:.0f}} times the GPUs give {{fast:.2f}} times the speed, and
# no number of GPUs gives more than {{most:.0f}}. The week becomes {{7 / fast:.2f}} days, not one.
#
# ## When is half of the money gone?
#
# So far we've asked what becomes of the time. Now look at what you pay for, which is every
# processor until the job is done. Put eleven on it. What do ten of them do in the first minute?

# %% tags=["holds"]
assert abs(fast * (serial + (1 - serial) / offered) - 1) < 1e-9, "{{offered:.0f}} times the GPUs give {{fast:.2f}} times the speed"
assert all(amdahl_speedup(n, serial=serial) < most for n in (1, 8, 10**6, 10**12)), (
    "no number of GPUs gives more than {{most:.0f}}"
)
assert 7 / fast > 1, "days, not one"

# %% tags=["figure"]
figure(
    bill(11),
    caption="The bill is the area of all bars. Half of it is orange: paid for, and idle.",
    alt="Eleven rows. The first begins with a grey minute, the ten others with an orange one; "
    "then all rows are blue for somewhat less than a minute.",
)

# %% tags=["holds"]
bars = [mark for mark in bill(11).marks if isinstance(mark, Bars)]
grey, blue, orange = (sum(b - a for a, b in zip(bar.start, bar.to)) for bar in bars)
assert abs(grey + blue + orange - 11 * 10 / amdahl_speedup(11, serial=0.1)) < 1e-9, "The bill is the area of all bars"
assert abs(orange / (grey + blue + orange) - 0.5) < 1e-9, "Half of it is orange"

# %% [markdown]
# Eleven processors finish in a little under two minutes, and you pay all eleven to the end: twenty
# minutes, which is twice the old bill. **In the serial minute you pay for all of them, and use
# one.**
#
# **Parallel efficiency** is speedup over processors: what you get for what you pay. From Amdahl's
# law it is
# $1 / (1 + s (n - 1))$, and the price of the job is one over that. It reaches one half at
# $n = 1 + 1/s$, one more than the limit of the speedup. So on that many processors half of the
# money is gone, and if $s$ is small, you have about half of the largest speedup that you could ever
# buy.

# %% tags=["holds"]
assert abs(11 * 10 / amdahl_speedup(11, serial=0.1) - 20) < 1e-9, "which is twice the old bill"
shares = [0.5, 0.75, 0.9, 0.95, 0.99]
assert all(
    abs(processors_at_efficiency(0.5, parallel=p) - 1 - 1 / (1 - p)) < 1e-6 for p in shares
), "more than the limit"
assert abs(amdahl_speedup(101, serial=0.01) / 100 - 0.5) < 0.01, "half of the largest"

# %% [markdown]
# Turn this around and it becomes a budget. How small must the serial share be for a large machine
# to be used well?

# %%
predict("scaling.affordable_share", ..., seed="guess")

# %%
reveal("scaling.affordable_share", seed="guess")

# %% [markdown]
# If you accept an efficiency of four fifths, the job costs a quarter more, so $s (n - 1)$ may be a
# quarter: the larger the machine, the smaller the share that you can afford. On a thousand
# processors, even a serial share of one in a thousand costs you half of the machine.
#
# ## How large is your serial share?
#
# All of this hangs on one number that nobody hands you, but a profile has it, if you read it right.
# Guess first, because the surprise is half of the lesson.

# %% tags=["holds"]
assert all(
    abs(efficiency(amdahl_speedup(n, serial=1 / 4 / (n - 1)), n) - 4 / 5) < 1e-9
    for n in (2, 8, 1000)
), "four fifths, the job"
assert abs(efficiency(amdahl_speedup(1000, serial=0.001), 1000) - 0.5) < 0.001, (
    "half of the machine"
)

# %%
predict("scaling.profile", ..., seed="open")

# %%
reveal("scaling.profile", seed="open")

# %% [markdown]
# The parts follow one another, so add up what each takes *afterwards*. The two that are not made
# faster, at both ends of the job, are its serial part. The same sum tells you, before you change
# anything, the most that a change can give. Suppose that one part of a training step took no time
# at all:

# %%
step = {"data loading": 0.110, "forward": 0.260, "backward": 0.520}  # seconds, assumed
step |= {"gradient sync": 0.070, "optimizer": 0.030, "logging": 0.010}
at_most = {part: profile_speedup(step, {part: inf}) for part in step}

# %% tags=["figure"]
table(
    [[part, si(t / sum(step.values()), "%"), at_most[part]] for part, t in step.items()],
    ["part", "share of the step", "if it took no time, times as fast"],
    caption=f"A made-up training step of {si(sum(step.values()), 's')}.",
)

# %% [markdown]
# Even if logging cost nothing at all, the step would be only {{at_most["logging"] - 1:.0%}} faster.
# A backward pass at merely twice the speed makes it
# {{profile_speedup(step, {"backward": 2}) - 1:.0%}} faster. So work where the time is.
#
# ## What if the job grows, too?
#
# People who get a thousand GPUs rarely train last year's model in ten minutes. They train a
# larger one in the same time. (Or with a larger batch, as far as the **critical batch size** lets
# that pay.) So turn the question around: take the ten minutes again, one of them serial,
# but now as measured on *nine* processors. How long would one processor need for this job?
#
# The serial minute stays a minute. The other nine minutes were done by nine processors at once, so
# one alone needs eighty-one. Together that is {{10 * gustafson_speedup(9, serial=0.1):.0f}}
# minutes: the nine are {{gustafson_speedup(9, serial=0.1):.1f}} times as fast as the one.

# %% tags=["holds"]
assert profile_speedup(step, {"logging": inf}) < profile_speedup(step, {"backward": 2}), (
    "twice the speed makes"
)
assert max(at_most, key=at_most.get) == max(step, key=step.get), "work where the time is"
assert abs(gustafson_speedup(9, serial=0.1) - 82 / 10) < 1e-9, "times as fast as"

# %% tags=["figure"]
sizes = {"fixed job, on one": 9, "fixed job, on nine": 1}
sizes |= {"grown job, on one": 81, "grown job, on nine": 9}
ends = [1 + rest for rest in sizes.values()]
figure(
    Chart(
        Axis("time", "min", domain=(0, 85)),
        Axis(scale="category", categories=list(sizes)),
        [
            Bars(list(sizes), [1] * 4, label="serial", color="grey"),
            Bars(list(sizes), ends, start=[1] * 4, label="divided", color="blue"),
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
), "the serial minute is half of the fixed job, and a tenth of the grown one"

# %% [markdown]
# **If the job grows with the machine, the serial part stays small beside it.** In general, a share
# $s$ of the time *on $n$ processors* is serial, and the rest would take $n$ times as long on one:
#
# $$S(n) = s + n (1 - s) = n - s (n - 1)$$
#
# This is **Gustafson's law**. If $s$ is less than one, it has no limit. A job that is made larger
# along
# with the machine scales *weakly* (**weak scaling**), and its efficiency never falls below {{1 - serial:.0%}} if
# {{serial:.0%}} of each run is serial.
#
# How can two laws give two speedups for one job? They don't. **Amdahl's share is a share of the
# time on *one* processor, and Gustafson's of the time on *n*.** The serial minute is a tenth of the
# fixed job on one, and half of it on nine; put each share into its own law, and both say
# {{gustafson_speedup(9, serial=0.5):.0f}}. So if somebody says "our serial share is
# {{serial:.0%}}", ask on how many processors it was measured. On a thousand, it is
# {{serial_on_one(1000, serial_on_n=serial):.3%}} of the same run on one.
# <small>[proof](03_amdahl_gustafson_proof.ipynb#One-law,-two-baselines)</small>
#
# ## What do your own measurements say?
#
# You rarely know $s$. What you have is a scaling table: a speedup $S$ for each number of processors
# $n$. So ask which serial share *would* explain it, and call that share $e(n)$. Solve Amdahl's law
# for it:
#
# $$e(n) = \frac{ \frac{1}{S} - \frac{1}{n} }{1 - \frac{1}{n} }$$
#
# This is the **Karp-Flatt metric**. The ten-minute job has a speedup of
# {{amdahl_speedup(3, serial=0.1):.1f}} on three processors and of
# {{amdahl_speedup(9, serial=0.1):.0f}} on nine, and both give {{karp_flatt(2.5, 3):.0%}}. Real jobs
# need not agree with themselves like that. Here are two, each trained to a fixed quality on three
# sizes of a cluster; the smallest run is the unit, so the share is one of *its* time.

# %% tags=["holds"]
assert all(
    gustafson_speedup(10 * n, serial=0.99) > 9 * gustafson_speedup(n, serial=0.99)
    for n in (10**4, 10**6, 10**9)
), "it has no limit"
assert all(
    efficiency(gustafson_speedup(10.0**k, serial=serial), 10.0**k) > 1 - serial for k in range(9)
), "efficiency never falls below"
assert abs(serial_on_n(9, serial_on_one=0.1) - 0.5) < 1e-9, "and half of it on nine"
assert (
    abs(gustafson_speedup(9, serial=0.5) - amdahl_speedup(9, serial=0.1)) < 1e-9
    and abs(amdahl_speedup(9, serial=0.1) - 5) < 1e-9
), "How can two laws"
assert abs(karp_flatt(2.5, 3) - karp_flatt(5, 9)) < 1e-9, "and both give"
assert abs(amdahl_speedup(3, serial=0.1) - 10 / 4) < 1e-9, "The ten-minute job has a speedup"

# %%
runs, trends = scaling_runs(), {}
for name in ("mlperf_gpt3_coreweave", "mlperf_deepseek_coreweave"):
    n, minutes = runs[name]["n"], runs[name]["values"]
    trends[name] = [
        (gpus / n[0], karp_flatt(minutes[0] / time, gpus / n[0]))
        for gpus, time in zip(n[1:], minutes[1:])
    ]
gpt3, deepseek = ([share for _, share in rows] for rows in trends.values())
[si(share, "%") for share in gpt3], [si(share, "%") for share in deepseek]

# %% tags=["setup"]
per_gpu = 0.84  # assumed

# %% tags=["figure"]
looks = {"GPT-3, H100": "blue", "DeepSeek-V3, GB300": "orange"}
series = [(label, color, rows) for (label, color), rows in zip(looks.items(), trends.values())]
figure(
    Chart(
        Axis(
            "size of the machine, smallest run = one",
            "",
            "log",
            domain=(1.5, 6),
            ticks=(2, 3, 4, 5),
        ),
        Axis("serial share that would explain it", "%", domain=(0, 0.2)),
        [Line(*zip(*rows), label, color) for label, color, rows in series]
        + [Points(*zip(*rows), color=color) for _, color, rows in series],
        height=260,
    ),
    caption="One share hardly moves, the other grows: two jobs that need different remedies. "
    "Times by MLPerf Training v3.0 and v6.0.",
    alt="Two lines over the size of the machine: the share of GPT-3 is flat, that of DeepSeek-V3 "
    "rises.",
)

# %% tags=["holds"]
assert abs(gpt3[1] - gpt3[0]) < 0.005 < deepseek[1] - deepseek[0], "One share hardly moves"
assert abs(gpt3[1] / gpt3[0] - 1) < 0.1 and deepseek[1] > 1.2 * deepseek[0], "that of DeepSeek-V3"

# %% [markdown]
# **If the share is constant in $n$, the loss behaves like serial work; if it grows, some cost grows
# with $n$.** The GPT-3 runs lose what a serial part of {{gpt3[-1]:.1%}} would take. Those of
# DeepSeek-V3 were reported as near-linear, but their share grows, so by these times no serial part
# explains it. What does? We'll come to that.
# <small>[proof](03_amdahl_gustafson_proof.ipynb#Two-published-runs)</small>
#
# ### And from a table at a fixed batch for each GPU?
#
# That is the table which most teams have: the batch grew with the machine. Then Karp and Flatt's
# formula is the wrong one, since it asks for one job in less time. Take the throughput *of a GPU*,
# and divide it by that of the smallest run. With {{per_gpu:.0%}} left, a step spends
# {{1 - per_gpu:.0%}} of its time on something other than work. Say that this doesn't shrink if you now
# split the same batch over more GPUs, as sums of gradients don't. Then **one minus the efficiency at a fixed batch per GPU is the
# share for Amdahl's law**: on twice the machine, {{amdahl_speedup(2, serial=1 - per_gpu):.2f}} times as
# fast and on eight times {{amdahl_speedup(8, serial=1 - per_gpu):.2f}}, at most.

# %% tags=["holds"]
work, lost = per_gpu, 1 - per_gpu  # of a step
assert all(
    abs((work + lost) / (work / n + lost) - amdahl_speedup(n, serial=lost)) < 1e-9 for n in (2, 8, 64)
), "one minus the efficiency at a fixed batch per GPU is the share for Amdahl's law"
assert all(
    1 / (work / 8 + cost) <= amdahl_speedup(8, serial=lost) for cost in (lost, 1.5 * lost)
), "fast and on eight times {{amdahl_speedup(8, serial=1 - per_gpu):.2f}}, at most"
assert gpt3[-1] > 0, "what a serial part of"
assert deepseek[1] > 1.2 * deepseek[0] and all(
    abs(karp_flatt(amdahl_speedup(n, serial=s), n) - s) < 1e-9 for s in deepseek for n in (2, 64)
), "no serial part explains it"

# %% [markdown]
# ## Can more processors make it slower?
#
# You double the GPUs, and the job takes *longer*. By either law this cannot happen. Yet it does,
# because both laws assume that what is not divided stays as long as it was, while communication
# takes longer on more processors. Do a case on paper again. Take a job without any serial part, in
# which each processor beyond the first has to send a message that takes one per cent of the time on
# one.
#
# - On ten processors the work takes a tenth, and nine messages take nine per cent. Together
#   {{1 / usl_speedup(10, serial=0, kappa=0.01):.0%}}: {{usl_speedup(10, serial=0, kappa=0.01):.1f}}
#   times as fast.
# - On twenty, {{1 / usl_speedup(20, serial=0, kappa=0.01):.0%}}:
#   {{usl_speedup(20, serial=0, kappa=0.01):.1f}} times as fast, on twice the machine. Karp and
#   Flatt's share has doubled.
#
# **The divided part shrinks with $n$, and a cost grows with it.** At first one more processor saves
# more than it costs; past some $n$, here ten, it costs more than it saves. If each processor beyond
# the first costs the same share $κ$ of the time on one, this is the *Universal Scalability Law*,
# and the job is fastest at $n^*$:
#
# $$\frac{T(n)}{T(1)} = s + \frac{1 - s}{n} + κ\,(n - 1) \qquad n^* = \sqrt{\frac{1 - s}{κ} }$$
#
# The root matters: for a peak on a hundred times as many processors, $κ$ must be ten thousand times as
# small.

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
), "the job is fastest at"

# %% tags=["setup"]
p5, gib = runs["p5_allreduce"], 2**30  # all-reduces, by size
rate, small_rate = p5["values_8GiB"], p5["values_128MiB"]
large, small = rate[0] / rate[-1], small_rate[0] / small_rate[-1]
far = p5["n_8GiB"][0], p5["n_8GiB"][-1]

# %% [markdown]
# Is the cost of real communication of this kind? Yes and no. To add up their gradients, GPUs often
# stand in a *ring* and pass pieces round. Each sends fewer than two copies of all the gradients,
# however many GPUs there are, so that part behaves like serial work. But the pieces need
# $2 (n - 1)$ steps, each step has a latency, and that part grows. Which one you see depends on the
# size of the message: between hosts of eight H100, one of {{si(8 * gib, "byte")}} takes
# {{large - 1:.0%}} longer on {{far[1]}} GPUs than on {{far[0]}}, and one of {{si(gib / 8, "byte")}}
# takes {{small:.1f}} times as long.
# <small>[proof](03_amdahl_gustafson_proof.ipynb#A-cost-that-grows,-and-how-fast-depends-on-the-message)</small>
#
# ## The job: tomorrow?
#
# For the week to become a day, the job has to be seven times as fast on eight times the machine.
# You know the law that turns a speedup into a share:

# %% tags=["holds"]
from lightspeed.collectives import bandwidth_bound

assert large < 1.2 and 2 < small < 2.1, "and one of {{si(gib / 8, 'byte')}} takes {{small:.1f}} times as long"
assert all(1 <= bandwidth_bound("all_reduce", 1, k, 1) < 2 for k in range(2, 10_000)), (
    "fewer than two copies"
)

# %%
saving = 60 / (60 + 1800)  # assumed
needed, reached = karp_flatt(job.WEEK, offered), job.UTILIZATION  # seven times as fast
si(needed, "%")

# %% tags=["figure"]
from lightspeed_show.spaced import by_ratio

gpus = by_ratio(job.GPUS, 2 * job.OFFERED, 41)
days = {
    s: [job.WEEK / amdahl_speedup(n / job.GPUS, serial=s) for n in gpus]
    for s in (0.01, needed, 0.1)
}
figure(
    Chart(
        Axis(
            "GPUs", "", "log", domain=(job.GPUS, 2 * job.OFFERED), ticks=(64, 128, 256, 512, 1024)
        ),
        Axis("days", "", "log", domain=(0.4, 8), ticks=(0.5, 1, 2, 4, 7)),
        [
            Area(gpus, days[0.01], days[0.1], f"shares from {0.01:.0%} to {0.1:.0%}"),
            Line(gpus, days[needed], f"{needed:.1%}"),
            Rule(y=1, label="tomorrow", color="green"),
            Rule(x=job.OFFERED, label="offered"),
        ],
        height=300,
    ),
    caption=f"Where the offer ends depends on the share. Only below {needed:.1%} is it tomorrow.",
    alt="A band of falling curves over the number of GPUs, from a week on the machine that there "
    "is. One curve of the band meets one day where the offer stands.",
)

# %% tags=["holds"]
assert abs(needed - job.share_for_a_day()) < 1e-12, "share. Only below"
assert abs(job.WEEK / amdahl_speedup(offered, serial=needed) - 1) < 1e-9, (
    "One curve of the band meets"
)
assert all(
    (7 / amdahl_speedup(offered, serial=s) < 1) == (s < needed) for s in (0, 0.01, 0.02, 0.021, 0.1)
), "Only below {x} is it tomorrow"

# %% [markdown]
# So the share must be below {{needed:.1%}} of the time on the machine that you have, and it must
# not grow. Which share does *this* job have? That depends on what the GPUs have to send one
# another. It ends somewhere in the band, and chapter 7 will find out where.
#
# One suspect of the {{job.RUNNING}} days is on that list already: the time to save, in which all GPUs
# stand. Say that a save takes a minute and comes every half hour. Then it is {{saving:.1%}} of the
# time, and by Amdahl's law the run would be {{1 / (1 - saving):.2f}} times as fast if saving cost
# nothing at all. To make a week of {{job.RUNNING}} days it would have to take nearly half of the time.
# Strike it off.
#
# The formula of chapter 1 won't tell you the share, because it divides by the GPUs as if the work split
# perfectly. Everything that this lesson is about is hidden in its utilization: with a share of
# {{serial:.0%}}, the {{reached:.0%}} of the plan become
# {{reached * efficiency(fast, offered):.0%}}.
#
# (Others call this share **MFU**, *model FLOPs utilization*. If they print HFU, of the hardware, it
# also counts what is done twice to save memory, so it is never below MFU.
# [proof](03_amdahl_gustafson_proof.ipynb#MFU-and-HFU))
#
# ## Try it
#
# Before you touch anything: on about how many processors is half of the money gone, with the
# {{serial:.0%}} that the explorer starts at? Move $n$ there and look. Then go on until the job gets
# slower, and find out which of the two, $s$ or $κ$, you should have made smaller.

# %% tags=["holds"]
assert all(
    efficiency(amdahl_speedup(2 * n, serial=1e-6), 2 * n)
    < efficiency(amdahl_speedup(n, serial=1e-6), n)
    for n in (8, 16384)
), "Everything that this lesson"
assert reached * efficiency(fast, offered) < reached, "of the plan become"
assert 1 / (1 - saving) < 1.05 < job.RUNNING / job.WEEK, "saving cost nothing at all"
assert 0.4 < 1 - job.WEEK / job.RUNNING < 0.5, "it would have to take nearly half of the time"
from lightspeed.training import hfu, mfu

assert all(
    hfu(1e9, 1e9, 1e6, 1, 1e15, share) >= mfu(1e9, 1e9, 1e6, 1, 1e15) and needed > 0
    for share in (0.0, 0.5, 1.0)
), "it is never below"
assert (
    efficiency(usl_speedup(8, serial=serial, kappa=2e-4), 8) > 0.5
    and 8 < usl_peak(serial=serial, kappa=2e-4) < 10_000
), "until the job gets slower"

# %%
from lightspeed_course.explorers.scaling import explore

explore()

# %% [markdown]
# ## Decide

# %%
ask("scaling.where_to_work", seed="read")

# %%
ask("scaling.diagnose", seed="chapter")

# %%
ask("scaling.price", seed="chapter")

# %%
ask("scaling.deadline", seed="chapter")

# %% [markdown]
# ## Back to the offer
#
# Eight times as many GPUs for a job that needs a week. The machine you have is the unit, so what
# counts is the share of *its* time that the new GPUs do not shorten. Here are a few, two of them
# from the runs above.

# %%
stay = {"nothing: perfect scaling": 0.0, "as in the GPT-3 runs": gpt3[-1]}
stay |= {"a twentieth": serial, "a tenth": 0.1, "as in the DeepSeek-V3 runs": deepseek[-1]}
gained = {what: amdahl_speedup(offered, serial=share) for what, share in stay.items()}

# %% tags=["figure"]
table(
    [[w, si(stay[w], "%"), f"{7 / g:.2f} days", offered / g] for w, g in gained.items()],
    ["what does not get shorter", "share", "a week becomes", "times the price"],
    caption=f"By Amdahl's law, on {offered:.0f} times the machine.",
)

# %% tags=["holds"]
perfect, like_gpt3, twentieth, tenth, like_deepseek = gained.values()
assert perfect == offered == 8, "on {offered:.0f} times the machine"

# %% [markdown]
# **Will it be done tomorrow?** Only if less than {{needed:.1%}} of the week stays as it is. Neither
# of the two published runs is there: the better one would make it
# {{7 * 24 / amdahl_speedup(offered, serial=gpt3[-1]):.0f}} hours.
#
# **What will it cost?** Eight over the speedup: with a twentieth that stays,
# {{offered / fast:.2f}} times what it costs now. You pay the difference for waiting less.
#
# **What should you measure first?** Run the job for an hour on the machine you have, on twice, and
# on four times as much, with the same batch in all three, since one that grows with the machine is
# weak scaling, and its table is read as above. The speedup is the ratio of the steps done, and from
# each one you get a share. If
# the shares agree, Amdahl's law gives the time on the large machine. If they grow, the offer is
# worse than that, and you should ask how the batch can grow or how the communication can hide,
# before you ask for GPUs.
#
# **Or use the offer otherwise.** Train a model that is more work, in the same week. Then the law is
# Gustafson's, and with a twentieth of that week serial you get
# {{gustafson_speedup(offered, serial=serial):.2f}} times the work for eight times the price.

# %% tags=["holds"]
like_gpt3, twentieth = list(gained.values())[1:3]
assert all(
    (amdahl_speedup(offered, serial=s) > 7) == (s < needed) for s in (0, needed / 2, 2 * needed, 0.5)
), "Only if less than {{needed:.1%}} of the week stays as it is"
assert max(like_gpt3, list(gained.values())[-1]) < 7, "Neither of the two"
assert abs(offered / fast - offered / twentieth) < 1e-9, "with a twentieth that stays, {{offered / fast:.2f}} times what it costs now"
assert gustafson_speedup(offered, serial=serial) > twentieth, "eight times the price"

# %% [markdown]
# ## Remember

# %% [markdown] tags=["takeaway"]
# - In a job of fixed size, what does not shrink decides in the end, and sets a limit of one over its
#   share $s$.
# - On $1 + 1/s$ processors half of the money is gone.
# - A share that stays means a loss like serial work; one that grows means a cost that grows, such as
#   communication, waiting or imbalance.

# %% tags=["holds"]
from math import log2

shares = {
    name: [karp_flatt(1 / time(n), n) for n in (2, 8, 64)]
    for name, time in {
        "serial": lambda n: 1 / amdahl_speedup(n, serial=serial),
        "communication": lambda n: 1 / n + 0.001 * (n - 1),
        "waiting": lambda n: 1 / n + 0.001 * log2(n),  # a barrier has more rounds
        "imbalance": lambda n: max(1 / n, 0.05),  # one piece is larger than its share
    }.items()
}
assert max(shares["serial"]) - min(shares["serial"]) < 1e-9, "A share that stays means a loss like serial work"
assert all(
    shares[name] == sorted(shares[name]) and shares[name][-1] > 2 * shares[name][0]
    for name in ("communication", "waiting", "imbalance")
), "one that grows means a cost that grows, such as communication, waiting or imbalance"

# %% [markdown] tags=["card"]
# | formula | meaning | unit | for the job, on {{offered:.0f}} times the machine |
# |---|---|---|---|
# | $1 / (s + (1 - s)/n)$ | speedup of a fixed job (Amdahl) | – | {{fast:.2f}}, if $s$ is {{serial:.0%}} |
# | $S / n$ | efficiency; the price is one over it | – | {{efficiency(fast, offered):.0%}} |
# | $n - s_n (n - 1)$ | speedup of a grown job (Gustafson) | – | {{gustafson_speedup(offered, serial=serial):.2f}} |
# | $(1/S - 1/n) / (1 - 1/n)$ | the share that explains $S$ (Karp and Flatt) | – | {{needed:.1%}} for a day |
# | $\sqrt{(1 - s)/κ}$ | fastest number of processors | – | beyond the offer if $κ$ is below {{(1 - serial) / offered**2:.1%}} |

# %% tags=["holds"]
assert all(
    (usl_peak(serial=serial, kappa=k * (1 - serial) / offered**2) > offered) == (k < 1)
    for k in (0.1, 0.9, 1.1, 10)
), "beyond the offer if $κ$ is below"

# %% [markdown]
# ## In your own framework
#
# A profiler hands you the shares that this lesson started from. Name the parts of your step, as
# here, and ask of each one: would more GPUs make it shorter, or leave it as it is? The optimizer,
# for instance, does the same work on every GPU of plain data parallelism, however many there are.

# %% tags=["figure"]
beside("03_profile")

# %% [markdown]
# ## One reading
#
# A job misses its plan. Somebody takes a profile of a step on one of its GPUs. You know what to do
# with the parts of a step: which of them grew, and what can't be the cause, then?

# %%
bench("03")

# %% [markdown]
# ## Exercises
#
# [The exercises](../exercises/03_amdahl_gustafson.ipynb) have such problems with other
# numbers, and more: three laws to write as functions, and a profile to act on. The [proof
# page](03_amdahl_gustafson_proof.ipynb) holds these laws against published runs, and asks your own
# machine. Next: [Little's law](04_littles_law.ipynb). Read on: Amdahl, *Validity of the single processor approach* (1967), three pages without
# a formula; Gustafson, *Reevaluating Amdahl's law* (1988), a reply of two.

# %%
cards("scaling")
