# %% [markdown]
# # 4. Little's law
#
# Traffic went up by a fifth overnight. Nothing was deployed, nothing broke, and the GPUs are not
# even full. Yet answers take far longer, and the slowest ones time out. How can so little extra
# load do that, and how much hardware would undo it?
#
# Two tools answer both questions: a law that holds for any traffic, and a formula that asks for a
# little more. Half an hour; all you need is a pencil. The evidence is on the
# [proof page](04_littles_law_proof.ipynb).

# %% tags=["setup"]
from lightspeed_course import Area, ask, Axis, Bars, Chart, figure, job, Line, Points, predict
from lightspeed_course import bench, reveal, Rule, si, sweep, table
from lightspeed.queueing import *

# %%
job.sheet(until="04")

# %% [markdown]
# **First, one from lesson 1.** How fast things come, times how long they take: this whole lesson
# turns on such a product.

# %%
ask("numbers.braking_distance", seed="again")

# %% [markdown]
# ## Guess first
#
# The story of the opening, with numbers. M/M/1 is explained below.

# %%
predict("queueing.a_little_more_traffic", ..., seed="dusk")

# %% [markdown]
# ## One law without assumptions
#
# How many requests are inside a service at a time? Watch a server for six seconds. Three requests
# come, stay for a while, and leave. A square is a second that a request spends inside.
#
# ```text
# request A   ■ ■ ■ . . .
# request B   . ■ ■ ■ . .
# request C   . . . . ■ ■
# inside      1 2 2 1 1 1
# ```
#
# Count the squares twice. By rows, the requests stay for three, three and two seconds: eight. By
# columns, the numbers inside add up to eight as well, because they are the same squares. **Request
# by request or moment by moment, the time spent inside adds up to the same area.**
#
# Real requests do not keep to whole seconds, so draw two staircases: one counts arrivals, the other
# those who have left.

# %% tags=["holds"]
import numpy as np

from lightspeed_models.simulators.queue_simulation import simulate

assert (
    lambda seen: (
        seen.sojourn.sum() == 8
        and [((seen.arrival <= t) & (t < seen.departure)).sum() for t in range(6)]
        == [1, 2, 2, 1, 1, 1]
    )
)(simulate(np.array([0.0, 1, 4]), np.array([3.0, 3, 2]), 3)), "are the same squares"

# %%
arrivals, services = [1, 2, 2.5, 5, 9, 10, 10.5], [2, 1, 1.5, 1, 2, 1, 1.5]
starts, leaves = [], [0.0]
for came, takes in zip(arrivals, services):
    starts.append(max(came, leaves[-1]))
    leaves.append(starts[-1] + takes)
leaves[1:]

# %% tags=["figure"]
events = sorted([0.0, *arrivals, *leaves[1:]])
corners = [t for t in events for _ in (0, 1)][1:]


def stairs(times):
    """How many of the times have passed, as the corners of a staircase over the events."""
    passed = [float(sum(at <= t for at in times)) for t in events]
    return [count for count in passed for _ in (0, 1)][:-1]


arrived, left = stairs(arrivals), stairs(leaves[1:])
figure(
    Chart(
        Axis("time", "s", domain=(0, 14)),
        Axis("requests so far", domain=(0, 8)),
        [
            Area(corners, left, arrived, "inside"),
            Line(corners, arrived, "arrived", "blue", label_at="above"),
            Line(corners, left, "left", "orange"),
        ],
        height=300,
    ),
    caption=(
        "The gap between the staircases, measured upwards, is how many are inside. Measured"
        " sideways, it is how long a request stays: these leave in the order in which they came."
    ),
    alt=(
        "Two rising staircases, arrivals above departures. The band between them is shaded; it"
        " closes where the server has nothing to do, and at the end."
    ),
)

# %% tags=["holds"]
assert all(a >= b for a, b in zip(arrived, left)), "arrivals above departures"
assert (
    any(a == b and 5 < t < 9 for a, b, t in zip(arrived, left, corners)) and arrived[-1] == left[-1]
), "it closes where the server has nothing to do"

# %% [markdown]
# The shaded band is that area. Cut upwards, it is the mean number inside, $L$, times the time that
# you watch, $T$. Cut sideways, it is the number of requests, $n$, times their mean stay, $W$.
#
# $$L\,T = n\,W \qquad\Longrightarrow\qquad L = \lambda\,W \quad\text{with}\quad \lambda = n / T$$
#
# This is **Little's law**; $\lambda$ is the rate of arrivals. Nothing was assumed about who comes
# when, how long service takes, how many servers there are, or in what order they work. You only
# have to watch for so long that those still inside at the end hardly count.
# [proof](04_littles_law_proof.ipynb#The-law,-watched-for-longer)
#
# ### What it sizes
#
# A service takes in `rate` requests a second and answers each in `stay`. While a request of a
# language model is inside, it holds memory: its *KV cache*, the keys and values of the tokens so
# far. How many are in flight, and how many fit?

# %%
rate, stay, cache, memory = 400, 0.150, 2e9, 48e9  # assumed
inside = concurrency(rate, stay)
most_inside = memory / cache
ceiling = throughput(most_inside, stay)
inside, ceiling

# %% [markdown]
# So {{rate}} requests a second, each for {{si(stay, "s")}}, are {{inside:.0f}} in flight. If each
# holds {{si(cache, "byte")}}, they need {{si(inside * cache, "byte")}}. Now **turn the law round**.
# An accelerator has {{si(memory, "byte")}}, so it has room for {{most_inside:.0f}} at a time, and
# each slot is free again after {{si(stay, "s")}}. At most {{ceiling:.0f}} requests a second get
# through, however many arrive: memory has become a ceiling on throughput. Without more memory there
# are two ways to raise it, a smaller cache for each request and a shorter stay.
#
# The weights live in the same {{si(memory, "byte")}} and are missing from this sum. Subtract them
# first: if you forget, you promise too much.

# %% tags=["holds"]
assert abs(concurrency(ceiling, stay) * cache / memory - 1) < 1e-9, "At most"
assert (
    throughput(memory / (cache / 2), stay) > ceiling and throughput(most_inside, stay / 2) > ceiling
), "cache for each request"
assert throughput((memory - 16e9) / cache, stay) < ceiling, "promise too much"

# %% [markdown]
# ## Why latency explodes
#
# Little's law links three numbers, but it fixes none of them. So before any formula, watch a
# server. Requests come at random, and the load is nine tenths of what it can serve. Will a request
# find it idle, or will it wait? Play the run to its end, then the same requests at half load.

# %%
from lightspeed_course.explorers.requests import explore_batching, explore_queue

explore_queue()

# %% [markdown]
# At half load the server has time to catch up after a rush. At nine tenths it has less of it, and
# one rush runs into the next.
#
# How long does a request wait? **For the work that it finds: what is left of the service in
# progress, and a whole service for each request in the queue.** Do a case on paper. Each service
# takes one second, and requests come at random, eight in ten seconds. So the server is busy four
# fifths of the time. You arrive.
#
# - Four times in five you find the server busy, and then half a second of that service is left on
#   average. This part of your wait is two fifths of a second.
# - Then there is the queue. By Little's law it holds as many requests as come during one mean wait.
#   Four fifths of a request come in a second, and each takes one second to serve. So this part is
#   four fifths of the mean wait.
# - The mean wait, then, is two fifths of a second and four fifths of itself. So two fifths of a
#   second are one fifth of it, and the wait is {{md1(0.8, 1).Wq:.0f}} s.
#
# **Your wait contains the waits of those in front of you.** At four fifths of full load that turns
# less than half a second into two. In general, $\lambda$ requests a second, the **arrival rate**,
# come to a server that
# can do $\mu$ a second; its load, or **utilization**, is $\rho = \lambda/\mu$. With $R$ for what
# is left, on average, of
# the service in progress (nothing, if the server is idle), the wait is
#
# $$W_q = R + \rho\,W_q \qquad\Longrightarrow\qquad W_q = \frac{R}{1 - \rho}$$
#
# Three assumptions went in. Requests are served in the order in which they come. How long a service
# takes does not depend on how many wait. And you see the server in its average state, which holds
# if requests come independently of one another (**Poisson arrivals**). People who chat do,
# nearly; an
# editor that asks for completions sends them in bursts. [proof](04_littles_law_proof.ipynb#Do-requests-come-at-random?)
#
# Now for $R$. Take the seven requests from above, and draw what is left of the service in progress
# over time. Each service is a triangle, as high as it is long.

# %% tags=["holds"]
assert abs(md1(0.8, 1).L - md1(0.8, 1).Lq - 4 / 5) < 1e-12, "four fifths of the time"
assert abs(md1(0.8, 1).Wq * (1 - 0.8) - 2 / 5) < 1e-12, "wait is two fifths of a second"
assert abs(md1(0.8, 1).Lq - concurrency(0.8, md1(0.8, 1).Wq)) < 1e-12, "as many requests as come"
assert abs(concurrency(0.8, 1) - 4 / 5) < 1e-12, "Four fifths of a request"
assert abs(md1(0.8, 1).Wq - 0.8 * 0.5 / (1 - 0.8)) < 1e-9, "So two fifths of a second"
assert 0.8 * 0.5 < 0.5 and abs(md1(0.8, 1).Wq - 2) < 1e-9, "turns less than half"

# %% tags=["figure"]
edges = [t for begin, end in zip(starts, leaves[1:]) for t in (begin, begin, end)]
left_of = [height for s in services for height in (0.0, float(s), 0.0)]
rest = sum(s**2 for s in services) / 2 / max(leaves)
figure(
    Chart(
        Axis("time", "s", domain=(0, 14)),
        Axis("left of the service", "s", domain=(0, 2.4)),
        [Area(edges, [0.0] * len(edges), left_of, color="blue"), Rule(y=rest, label="mean")],
        height=240,
    ),
    caption=f"Whoever arrives at random finds {rest:.2f} s of a service left, on average: the area"
    " of the triangles over the time.",
    alt=f"Seven triangles in a row, two of them twice as high as the lowest, and a line at their"
    f" mean height, {rest:.2f} s.",
)

# %% tags=["holds"]
looks = [k * max(leaves) / 5000 for k in range(5001)]
found = [sum(e - t for b, e in zip(starts, leaves[1:]) if b <= t < e) for t in looks]
assert abs(rest - sum(found) / len(found)) < 0.01, "Whoever arrives at random"
assert sorted(services)[-2:] == [2, 2] and min(services) == 1, "two of them twice as high"

# %% [markdown]
# A service of $s$ seconds makes a triangle with an area of $s^2/2$. A service twice as long counts
# four times: you are twice as likely to meet it, and twice as much of it is left. With $\lambda$
# triangles a second, $R$ is $\lambda/2$ times the mean of $s^2$. (So far services may have any
# spread: that is an **M/G/1** queue, and this its *Pollaczek-Khinchine* formula.)
#
# In the case on paper each service took a second. But the answers of a language model differ in
# length, and a common model is the *exponential* distribution: many short ones, a few long ones.
# Its mean square is twice that of equal services. So twice as much is left, and you wait
# {{mm1(0.8, 1).Wq:.0f}} s where you waited {{md1(0.8, 1).Wq:.0f}}. For such services
# $R = \lambda/\mu^2 = \rho/\mu$, and if you add a request's own service to its wait,
#
# $$W = \frac{\rho/\mu}{1 - \rho} + \frac{1}{\mu} = \frac{1/\mu}{1 - \rho}
# = \frac{1}{\mu - \lambda}$$
#
# This queue is called **M/M/1**, and each M stands for *memoryless*: however long a service has
# lasted,
# a whole mean one is still to come. For a server that can do ten requests a second:

# %% tags=["holds"]
assert abs(md1(0.1, 1 / 3).Wq * (1 - 0.3) - 0.1 * 3**2 / 2) < 1e-12, "triangle with an area"
assert abs(md1(0.1, 1 / 2).Wq * (1 - 0.2) - 4 * md1(0.1, 1).Wq * (1 - 0.1)) < 1e-12, (
    "twice as long counts"
)
assert abs(mg1(0.5, 1, 3).Wq * (1 - 0.5) - 0.5 / 2 * (3 + 1**2)) < 1e-12, "times the mean"
assert abs(mm1(0.8, 1).Wq - 2 * md1(0.8, 1).Wq) < 1e-9, "So twice as much"
assert abs(mg1(0.5, 1, 1).Wq / md1(0.5, 1).Wq - 2) < 1e-12, (
    "mean square is twice that of equal services"
)

# %%
sweep(mm1, "W", arrival_rate=[3, 5, 8, 9, 9.5, 9.8], service_rate=10)

# %% [markdown]
# The service time is divided by the capacity that is *left*. Go from four fifths of full load to
# nine tenths, and what is left halves, so latency doubles. A million simulated requests agree.
# [proof](04_littles_law_proof.ipynb#The-curve,-simulated) Now look at your guess.

# %% tags=["holds"]
assert abs(mm1(0.9, 1).W / mm1(0.8, 1).W - 2) < 1e-12, "what is left halves"

# %%
reveal("queueing.a_little_more_traffic", seed="dusk")

# %% [markdown]
# A fifth of the capacity was free. The new traffic took four fifths of that, so a fifth of it is
# left, and latency is one over what is left.
#
# ## What about the slowest, and the longest?
#
# In this queue the whole time of a request is exponential again, so a share of $e^{-x}$ takes more
# than $x$ times the mean: one in a hundred more than
# {{sojourn_percentile(0.99, 5, 10) / mm1(5, 10).W:.1f}} times, at *every* load. A tail of that size is
# normal; a rising mean is the sign of trouble. (Such a time is the **p99**, or *tail latency*,
# and a promise about it an **SLO**.) [proof](04_littles_law_proof.ipynb#The-tail)
#
# Lengths matter as squares, like the triangles. Cap the longest answers at half their length, and
# everybody's wait falls for two reasons: less is left of the service in progress, and more of the
# capacity is free. [proof](04_littles_law_proof.ipynb#Answers-of-different-length)
#
# ## More servers, one queue
#
# One server at half load makes every second request wait. What if you put two of them, each at half
# load, behind *one* queue? Then a request waits only if both are busy. How often is that?

# %% tags=["holds"]
assert abs(1 - mm1(0.8, 1).rho - 1 / 5) < 1e-12, "A fifth of the capacity"
assert (
    abs(mm1(0.8 * 1.2, 1).rho - mm1(0.8, 1).rho - 4 / 5 * (1 - mm1(0.8, 1).rho)) < 1e-9
    and abs(mm1(0.8 * 1.2, 1).W / mm1(0.8, 1).W - 5) < 1e-9
), "a fifth of it is left"
tails = [sojourn_percentile(0.99, r, 1) / mm1(r, 1).W for r in (0.1, 0.5, 0.95)]
assert max(tails) - min(tails) < 1e-9, "A tail of that size is normal"
assert abs(erlang_c(0.5, 1) - 1 / 2) < 1e-12, "makes every second request wait"

# %% tags=["setup"]
from lightspeed_course.content.queueing import pencil, spare_for

pool = 100  # assumed

# %% tags=["figure"]
states = ["nobody inside", "one inside", "two or more"]
waits = float(erlang_c(1.0, 2))
figure(
    Chart(
        Axis("share of the time", "%", domain=(0, 0.4)),
        Axis(scale="category", categories=states),
        [
            Bars(states[:2], [(1 - waits) / 2] * 2, label="a server is free", color="blue"),
            Bars(states[2:], [waits], label="both are busy", color="orange"),
        ],
        height=220,
    ),
    caption="Two servers at half load, behind one queue: a third of the time each, so one request in"
    " three waits.",
    alt="Three bars of equal length: nobody inside, one inside, and two or more.",
)

# %% tags=["holds"]
from lightspeed_models.simulators.queue_simulation import number_inside, poisson_arrivals, simulate

import numpy as np

draws = np.random.default_rng(4)
ran = simulate(poisson_arrivals(1, 200_000, draws), draws.exponential(1, 200_000), 2)
times, counts = number_inside(ran)
spent = [np.diff(times)[counts[:-1] == k].sum() / (times[-1] - times[0]) for k in (0, 1)]
assert all(abs(share - 1 / 3) < 0.01 for share in spent) and abs(waits - 1 / 3) < 1e-9, (
    "one request in three waits"
)

# %% [markdown]
# **Servers that share a queue help one another: nobody waits while one of them is free.** The more
# there are, the more they help. How many does a promise need? The exact answer is a formula of the
# telephone engineer Erlang, his **Erlang C**, and it takes a computer. But the spare servers that it
# asks for grow only like the square root of the load $a = \lambda/\mu$, the number that is busy on
# average. So a promise is a line for the pencil:
#
# $$\text{servers} = a + k\sqrt{a}, \text{ rounded up}$$
#
# | share that may wait | half | a fifth | a tenth | one in twenty | one in a hundred |
# |---|---|---|---|---|---|
# | $k$ | {{spare_for(0.5):g}} | {{spare_for(0.2):g}} | {{spare_for(0.1):g}} | {{spare_for(0.05):g}} | {{spare_for(0.01):g}} |
#
# From a load of one half on, this is right or one server off. A load of {{pool}} needs
# {{pencil(pool, 0.1):.1f}}, so {{servers_for(pool, 0.1):.0f}} servers, to let nine in ten start at
# once: {{servers_for(pool, 0.1) / pool - 1:.0%}} more than are busy. A load of four needs twice as many as are busy, because a small pool
# has little to share. So put one queue in front of many replicas.
# [proof](04_littles_law_proof.ipynb#The-pool,-state-by-state)
#
# ## Overload
#
# At full load and above there is no steady state, and no formula for one. What happens is plain
# arithmetic: what arrives less what leaves piles up.

# %% tags=["holds"]
from math import ceil

loads = [a / 4 for a in range(2, 240)] + [80, 100.3, 150, 200.7, 400, 800.2, 1600]
assert all(
    abs(servers_for(a, share) - ceil(pencil(a, share))) <= 1
    for share in (0.5, 0.2, 0.1, 0.05, 0.01)
    for a in loads
), "From a load of one half on, this is right or one server off"
assert servers_for(pool, 0.1) == ceil(pencil(pool, 0.1)), "to let nine in ten"
assert servers_for(4, 0.1) == 2 * 4 and all(
    servers_for(a, 0.1) / a > servers_for(4 * a, 0.1) / (4 * a) for a in (1, 4, 16, 64)
), "A load of four needs twice as many as are busy, because a small pool has little to share"
assert erlang_c(1.0, 2) < erlang_c(0.5, 1), "the more they help"
assert (servers_for(1600, 0.1) - 1600) / (servers_for(16, 0.1) - 16) < 1.2 * 10, (
    "asks for grow only like the square root of the load"
)

# %%
capacity, burst, normal, burst_length = 80, 100, 70, 180
after = drain_time(burst, burst_length, normal, capacity)
full = {room: mmck(burst, capacity, 1, room) for room in (20, 500)}
{room: (round(float(q.throughput), 1), si(q.W, "s")) for room, q in full.items()}

# %% [markdown]
# A service that can do {{capacity}} requests a second gets {{burst}} for {{si(burst_length, "s")}}
# and {{normal}} after that. The backlog grows by {{burst - capacity}} a second and shrinks by
# {{capacity - normal}}, and takes {{si(after, "s")}} more to drain, twice as long as the burst.
# Clients that time out and try again make it worse.
#
# The cure is to **shed** load (admission control, or **backpressure**): hold a limited number of
# requests and turn the rest away at once.
# Room for {{max(full)}} serves hardly anybody more than room for {{min(full)}}:
# {{full[500].throughput:.1f}} a second against {{full[20].throughput:.1f}}. It only keeps those who
# are served for {{si(full[500].W, "s")}}, against {{si(full[20].W, "s")}}.
# [proof](04_littles_law_proof.ipynb#Overload,-run-by-run)
#
# ## The job: how many at once?
#
# Once it is trained, the model is to answer {{job.ASKED}} requests a second, in {{job.ANSWER}} tokens
# each, and whoever reads along should get a token every {{si(job.BUDGET, "s")}}. Nobody has chosen a
# machine yet. What can you say already?

# %% tags=["holds"]
assert after == 2 * burst_length, "twice as long"
assert full[500].throughput < 1.01 * full[20].throughput and full[500].W > 20 * full[20].W, (
    "hardly anybody more"
)

# %%
stays = job.ANSWER * job.BUDGET
load, slots = job.at_once()
preparing, planned_rate = 0.1, job.TOKENS / job.SEQUENCE / job.planned()  # assumed: s a sequence
load, slots, concurrency(planned_rate, preparing)

# %% [markdown]
# A request stays for {{si(stays, "s")}}, so {{load:.0f}} are under way at a time, whatever the traffic
# is like. If one in ten may wait for a slot, the pencil says {{pencil(load, job.LATE):.1f}}: so it
# takes {{slots}} slots. Can eight GPUs have so many, and still keep that pace? That is the
# [next lesson's](04_littles_law_1_replica.ipynb) question.
#
# And the training run, which will take {{job.RUNNING}} days? Perhaps its GPUs wait for whoever loads
# their data. By its plan the run takes {{planned_rate:.0f}} sequences a second. Say that it takes
# {{si(preparing, "s")}} to read one and cut it into tokens: then
# {{concurrency(planned_rate, preparing):.0f}} are being prepared at a time, and eight hosts have cores
# enough for that. Strike the loader off.

# %% tags=["holds"]
from math import ceil

assert abs(load - concurrency(job.ASKED, stays)) < 1e-9, "are under way at a time, whatever the traffic"
assert slots == ceil(pencil(load, job.LATE)), "If one in ten may wait for a slot, the pencil says"
assert concurrency(planned_rate, 10 * preparing) < 8 * 8, "eight hosts have cores"

# %% [markdown]
# ## Try it
#
# At which load does a request take twice its service time? Guess, then raise the arrivals; then with
# one server. The upper curve is the slowest of a hundred.

# %%
from lightspeed_course.explorers.queueing import explore

explore()

# %% [markdown]
# ## Decide

# %%
ask("queueing.where_to_queue", seed="chapter")

# %%
ask("queueing.slots_for_a_promise", seed="chapter")

# %%
ask("queueing.capped_rate", seed="chapter")

# %% [markdown]
# ## Back to the overnight traffic

# %%
before, more = 0.8, 0.2  # load and growth; a service of the old server takes a second
traffic = before * (1 + more)
ways = {
    "before": (before, 1, 1),
    "after": (traffic, 1, 1),
    "server faster by the growth": (traffic, 1 + traffic - before, 1),
    "two servers, one queue": (traffic, 1, 2),
}
means = {name: float(mmc(*way).W) for name, way in ways.items()}
slowest = {name: float(sojourn_percentile(0.99, *way)) for name, way in ways.items()}
mean_before, mean_after, mean_faster, mean_two = means.values()
refused = mmck(traffic, 1, 1, 8)

# %% tags=["figure"]
table(
    [[name, f"{means[name]:.1f} s", f"{slowest[name]:.1f} s"] for name in ways],
    ["", "mean time in system", "99th percentile"],
    caption="A service of the old server takes a second.",
)

# %% [markdown]
# **How can so little extra load do that?** The server was {{before:.0%}} busy; with {{more:.0%}}
# more traffic it is at {{traffic:.0%}} and still not full. But a fifth of its capacity was free
# before, and now {{1 - traffic:.0%}} is, and here latency is the service time over what is left:
# {{mean_after / mean_before:.0f}} times as long. The slowest of a hundred take
# {{slowest["after"]:.0f}} s where they took {{slowest["before"]:.0f}} s: in this queue every
# percentile grows as the mean does. Those are the ones that time out.
#
# **How much hardware undoes it?** Latency depends on what is *left*, so add as much capacity as
# traffic was added: {{traffic - before:.0%}} of the server. A second server behind the same queue
# does far more: no one waits unless both are busy, and the mean falls to {{mean_two:.1f}} s.
#
# **And if you can buy nothing before tonight?** Turn some requests away at once: room for eight of
# them inside turns away {{refused.shed:.0%}} and brings the others back to {{refused.W:.1f}} s.

# %% tags=["holds"]
assert traffic < 1, "and still not full"
assert abs(mean_after / mean_before - (1 - before) / (1 - traffic)) < 1e-9, "over what is left"
assert abs(slowest["after"] / slowest["before"] - mean_after / mean_before) < 1e-9 and all(
    abs(
        sojourn_percentile(q, traffic, 1, 1) / sojourn_percentile(q, before, 1, 1)
        - mean_after / mean_before
    )
    < 1e-9
    for q in (0.1, 0.5, 0.9, 0.99, 0.999)
), "queue every percentile grows"
assert abs(mean_faster - mean_before) < 1e-9, "as much capacity as traffic"
assert mean_two < 0.5 * mean_before, "no one waits unless"
assert mean_before > refused.W, "buy nothing before tonight"

# %% [markdown]
# ## Remember

# %% [markdown] tags=["takeaway"]
# - What is inside equals the rate times the stay, whatever the traffic.
# - With random arrivals and services, latency is one over the capacity that is left of one server, so
#   its last tenth costs more than the first nine.
# - Servers behind one queue need to spare only a few square roots of their load, so the larger the
#   pool, the smaller the share that stands idle.

# %% tags=["holds"]
loads = [n / 100 for n in range(1, 100)]
assert all(abs(mm1(load, 1).W - 1 / (1 - load)) < 1e-9 for load in loads), (
    "With random arrivals and services, latency is one over the capacity that is left of one server"
)
assert mm1(0.99, 1).W - mm1(0.9, 1).W > mm1(0.9, 1).W, (
    "its last tenth costs more than the first nine"
)
assert all(
    servers_for(4 * a, share) / (4 * a) < servers_for(a, share) / a
    for a in (2, 10, 100)
    for share in (0.2, 0.1, 0.01)
), "the larger the pool, the smaller the share that stands idle"

# %% [markdown] tags=["card"]
# | formula | what it says | unit | for the job |
# |---|---|---|---|
# | $L = \lambda W$ | what is inside | request | {{job.ASKED}} a second × {{si(stays, "s")}} = {{load:.0f}} |
# | $W_q = R / (1 - \rho)$, $R = \lambda(\sigma^2 + 1/\mu^2)/2$ | the wait (Pollaczek and Khinchine) | s | {{md1(0.8, 1).Wq:.0f}} services at four fifths of full load, all alike |
# | $1 / (\mu - \lambda)$ | time in M/M/1 | s | {{mm1(0.9, 1).W:.0f}} services at nine tenths |
# | $a + k\sqrt{a}$ | servers behind one queue | | {{slots}} for a load of {{load:.0f}}, if one in ten may wait |

# %% [markdown]
# ## In your own load test
#
# A vLLM server exports how many requests are running and how many wait, how many it finished, and how
# long they stayed, the queue included: multiply the rate by the stay and you should get the first two
# together. The rate times the time in the queue gives those that wait, so you see which part of the
# stay has grown. If a load tester sends
# its next request only after an answer (a **closed loop**), it never sees the queue: it holds
# back what your users would have sent. Ask for an **open loop**.
# [proof](04_littles_law_proof.ipynb#What-a-closed-loop-does-not-see)

# %% [markdown]
# ## One reading
#
# Users wait longer than planned. How many replicas are busy is an $L$ too, the arrivals times the
# time of a service. So which suspect would have raised it?

# %%
bench("04")

# %% [markdown]
# ## Exercises, and on
#
# [The exercises](../exercises/04_littles_law.ipynb) have these questions with other numbers,
# Erlang's formula to write, and a burst to survive. Next: what eight GPUs can promise, a
# [replica](04_littles_law_1_replica.ipynb) whose servers slow one another down.
#
# ## Further reading
#
# - Little, *A proof for the queuing formula L = λW* (Operations Research, 1961).
# - Harchol-Balter, *Performance Modeling and Design of Computer Systems* (2013).
# - Dean and Barroso, *The tail at scale* (2013): what a promise about the slowest costs.
