# %% [markdown]
# # 4. Little's law
#
# Traffic went up by a seventh overnight. Nothing was deployed, nothing broke, and the GPUs are not even full. Yet answers take
# more than twice as long, and the slowest ones time out. How can a little more load do that, and how much hardware takes it away?
#
# This chapter answers with one law that has no assumptions, one formula that has a few, and a join of both with the roofline
# that tells what a replica of a language model can promise.
#
# **You will be able to** turn requests per second and latency into memory, and memory into a ceiling on requests per second;
# say how latency grows with load, at the mean and in the tail; tell overload from bad luck; and choose the batch of a serving
# replica for a latency budget.
#
# **You need** chapter 2 for the last third. **Time:** two hours, with the problems.

# %%
import numpy as np

from lightspeed.catalog import accelerator, find, number
from lightspeed_course import (
    Area, ask, Axis, Chart, figure, human_time, Line, Points, predict, reveal, Rule, si, table,
)
from lightspeed.models.queue_simulation import (
    batch_means,
    number_inside,
    observed,
    poisson_arrivals,
    simulate,
    simulate_decoding,
)
from lightspeed.queueing import *
from lightspeed.serving import *
from lightspeed.units import Q

# %% [markdown]
# ## Before you read on
#
# The story of the opening, with numbers. Commit yourself before you compute anything.

# %%
predict("queueing.a_little_more_traffic", ...)

# %% [markdown]
# ## One law without assumptions
#
# Requests come in, stay for a while, and leave. Draw two staircases: one counts those who have arrived, the other those who
# have left. Here are a few requests at one server.

# %%
arrivals = np.array([1, 2, 2.5, 5, 9, 10, 10.5])
services = np.array([2, 1, 1.5, 1, 2, 1, 1.5])
path = simulate(arrivals, services)
seen = observed(path)
events = np.unique(np.concatenate([[0], arrivals, path.departure]))
time = np.repeat(events, 2)


def so_far(times):
    """How many of the times have passed, just before and just after each event."""
    return np.column_stack([np.searchsorted(times, events, side) for side in ("left", "right")]).ravel()


# %% tags=["figure"]
arrived, left = so_far(arrivals), so_far(path.departure)
figure(
    Chart(
        Axis("time", "s", domain=(0, 15)),
        Axis("requests so far", domain=(0, 8)),
        [Area(time, left, arrived, "inside"), Line(time, arrived, "arrived"), Line(time, left, "left", "orange")],
        height=300,
    ),
    caption="The gap between the staircases, measured upwards, is how many are inside. Measured sideways, it is how long a request stays.",
    alt="Two rising staircases, arrivals above departures. The band between them is shaded; it closes when the last request leaves.",
)

# %% [markdown]
# Take the shaded area in two ways. As a sum of vertical strips, it is the number inside, added up over time: the mean number
# inside $L$, times the length of the day $T$. As a sum of horizontal strips, one for each request, it is the times that they stayed: their
# number $n$, times the mean stay $W$. One area:
#
# $$L\,T = n\,W \qquad\Longrightarrow\qquad L = \lambda\,W \quad\text{with}\quad \lambda = n / T$$
#
# This is **Little's law**. Nothing was assumed about who comes when, how long service takes, how many servers there are, or
# in which order they work. Here a clock, a counter and a stopwatch each measure their own part.

# %%
table(
    [[f"{seen.L:.3f}", f"{seen.arrival_rate:.3f} /s", f"{seen.W:.3f} s", f"{seen.arrival_rate * seen.W:.3f}"]],
    ["L, from the count of those inside", "arrival rate", "W, from the stays", "arrival rate × W"],
)

# %% [markdown]
# The two sides agree to the last digit because the system is empty at both ends. Cut the day in the middle, and the requests
# still inside have not told their whole stay; the longer you watch, the less they matter.

# %%
rng = np.random.default_rng(4)
n = 10**6
long_run = simulate(poisson_arrivals(9, n, rng), rng.exponential(1 / 10, n))
cuts = [observed(long_run, until) for until in (10, 100, 1000, 10_000, 100_000)]
table(
    [[human_time(t), f"{o.L:.3f}", f"{o.arrival_rate * o.W:.3f}"] for t, o in zip((10, 100, 1000, 10_000, 100_000), cuts, strict=True)],
    ["watched for", "L", "arrival rate × W"],
    caption=f"A busy server, cut off in mid-flight. The run has {si(n, 'request')}.",
)

# %% [markdown]
# ### What it sizes
#
# A service takes in `qps` requests a second and answers each in `stay` seconds. Three functions, one law, in whatever you count.

# %%
qps, stay, per_request, accelerator_memory = 1000, Q(50, "ms"), Q(1, "GB/request"), Q(24, "GB")
inside = concurrency(Q(qps, "request/s"), stay)
cache = concurrency(Q(qps, "request/s") * per_request, stay)
print(si(inside.magnitude, "request"), "at a time, which hold", si(cache.to("byte").magnitude, "byte"))

# %% [markdown]
# So {{qps:,}} requests a second at {{stay:~P}} are {{inside.magnitude:.0f}} requests in flight, and if each holds
# {{si(per_request.to("byte/request").magnitude, "byte")}} of KV cache and activations, they need {{cache.to("GB"):.0f~P}}. The law does not care what is counted: the
# second line is $L = \lambda W$ in bytes, at {{(Q(qps, "request/s") * per_request).to("TB/s"):.0f~P}} of cache that is taken up and given back.
#
# Now **turn the law round**. An accelerator has {{accelerator_memory:~P}}. Then it holds so many requests and no more, and each
# slot is free again after {{stay:~P}}.

# %%
fit = accelerator_memory / per_request
ceiling = throughput(fit, stay)
print(si(fit.magnitude, "request"), f"at a time, at most {ceiling.to('request/s').magnitude:.0f} a second")

# %% [markdown]
# At most {{ceiling.to("request/s").magnitude:.0f}} requests a second, however many arrive. Memory has become a ceiling on
# throughput. There are two ways up: a smaller cache, and a shorter stay.
#
# The calculation is from a textbook and leaves something out. See whether you can find it before the gallery at the end does.

# %%
ask("queueing.checkpoint_memory")

# %% [markdown]
# ## Why latency explodes
#
# Little's law links three numbers and fixes none. To know $W$ we need a model. The simplest one: one server, requests that
# arrive at random and independently of each other (Poisson), and service times that vary at random (exponential). It is called
# M/M/1. Two lines derive it.
#
# A request that arrives at random finds, on average, $L$ others inside. It waits for each of them and then for itself, and
# each takes $1/\mu$, where $\mu$ is the rate of the server. So $W = (L + 1)/\mu$. Put in $L = \lambda W$ and solve:
#
# $$W = \frac{1}{\mu - \lambda} = \frac{1/\mu}{1 - \rho} \qquad \rho = \lambda/\mu$$
#
# The service time is divided by the capacity that is *left*. Go from four fifths of full load to nine tenths, and what is left
# halves: latency doubles.

# %%
loads = np.linspace(0.01, 0.985, 60)
server = 10
rng = np.random.default_rng(1961)
dots, confidence = [0.3, 0.5, 0.7, 0.8, 0.9, 0.95], 0.95


def run_at(load):
    """The mean time in the system of a simulated run, with its confidence interval."""
    run = simulate(poisson_arrivals(load * server, n, rng), rng.exponential(1 / server, n))
    return batch_means(run.sojourn, confidence=confidence)


runs = [run_at(load) for load in dots]

# %% tags=["figure"]
figure(
    Chart(
        Axis("load", "%", domain=(0, 1)),
        Axis("time in system", "s", domain=(0, 4)),
        [
            Line(loads[loads < 0.976], mm1(loads[loads < 0.976] * server, server).W, "formula", label_at="above"),
            Points(dots, [run.mean for run in runs], label=f"simulated, {si(n, 'request')} each"),
            Rule(y=1 / server, label="service time"),
        ],
    ),
    caption=f"One server that does {server} requests a second. Each time that the free part of its capacity halves, the time in the system doubles.",
    alt="A curve of latency over load: flat on the left, bending upwards past eighty per cent and leaving the chart near full load. "
    "Simulated points lie on it.",
)

# %% [markdown]
# The points are a simulation that knows nothing of the formula: {{si(n, "request")}}, one after the other, each starting when it has
# arrived and its predecessor has left. Neighbours in a queue wait alike, so the confidence interval is taken over the means of
# long stretches, not over single requests.

# %%
table(
    [[si(r, "%"), f"{mm1(r * server, server).W:.3f} s", f"{run.mean:.3f} s", f"{run.low:.3f} to {run.high:.3f} s"] for r, run in zip(dots, runs, strict=True)],
    ["load", "formula", "simulated", "confidence interval"],
    caption=f"Confidence {si(confidence, '%')}.",
)

# %% [markdown]
# The nearer to full load, the wider the interval: a crowded queue forgets slowly. Now the guess of the opening.

# %%
reveal("queueing.a_little_more_traffic")

# %% [markdown]
# No one did anything wrong. The server had a fifth of its capacity to spare, the new traffic took more than half of that, and
# latency follows what is spare.
#
# ### The tail
#
# In M/M/1 the time in the system is itself exponential, so every percentile is a fixed multiple of the mean.

# %% tags=["figure"]
shares = [0.5, 0.95, 0.99]
figure(
    Chart(
        Axis("load", "%", domain=(0, 1)),
        Axis("time in system", "s", "log", domain=(0.05, 100)),
        [Line(loads, sojourn_percentile(s, loads * server, server), f"{s:.0%} are faster", c) for s, c in zip(shares, ("green", "blue", "purple"), strict=True)],
        height=320,
    ),
    caption="The median, and the times that one request in twenty and one in a hundred exceed. The three curves keep their distance.",
    alt="Three curves of one shape on a logarithmic scale, rising together towards full load.",
)

# %% [markdown]
# One request in a hundred takes more than {{sojourn_percentile(0.99, 5, server) / mm1(5, server).W:.1f}} times the mean, at *every* load. A tail of that size
# is no sign of trouble; a mean that climbs is. Most dashboards show it the other way round.
#
# ### Not all answers are equally long
#
# Exponential service times are a middle case. If every request takes exactly as long, there is half the wait. If a few are
# very long, as the answers of a language model are, there is more. Pollaczek and Khinchine found that only two numbers of
# the distribution matter, the mean and the variance $\sigma^2$:
#
# $$W_q = \frac{\lambda\,(\sigma^2 + 1/\mu^2)}{2\,(1 - \rho)} \qquad L_q = \frac{\rho^2 + \lambda^2\sigma^2}{2\,(1 - \rho)}$$

# %%
rate, spreads = 8, [0, 0.5, 1, 2, 4]
long_every, long_factor = 10, 20
waits = {cv: mg1(rate, server, (cv / server) ** 2) for cv in spreads}
table(
    [[cv, si(q.Wq, "s"), si(q.W, "s"), f"{q.Wq / waits[1].Wq:.1f}"] for cv, q in waits.items()],
    ["deviation / mean of the service time", "wait", "time in system", "wait over that of M/M/1"],
    caption=f"One server at {rate / server:.0%} of its capacity. The mean service time is the same in every row.",
)

# %% [markdown]
# Capping the longest answers, or sending them to replicas of their own, shortens the queue for everybody without any
# hardware. Here is a mixture, simulated: one answer in {{long_every}} is {{long_factor}} times as long as the others.

# %%
kinds = rng.random(n) < 1 / long_every
mixed = np.where(kinds, long_factor, 1.0)
mixed *= 1 / server / mixed.mean()
run = batch_means(simulate(poisson_arrivals(rate, n, rng), mixed).waiting)
print(f"formula {mg1(rate, server, mixed.var()).Wq:.2f} s, simulated {run.low:.2f} to {run.high:.2f} s")

# %% [markdown]
# ### More servers, one queue
#
# With $c$ servers behind one queue (M/M/c), a request waits only if all of them are busy. Erlang worked out the probability a
# century ago, for telephone lines.

# %% tags=["figure"]
c_loads = np.linspace(0.3, 0.99, 50)
figure(
    Chart(
        Axis("load of each server", "%", domain=(0.3, 1)),
        Axis("requests that have to wait", "%", domain=(0, 1)),
        [Line(c_loads, erlang_c(c_loads * c, c), f"{c} server{'s' * (c > 1)}", color) for c, color in zip((1, 4, 16, 64, 256), ("blue", "sky", "green", "amber", "orange"), strict=True)],
    ),
    caption="A large pool can be nearly full and hardly anybody waits; a single server cannot.",
    alt="Curves of the share that waits over load. For one server it is the diagonal; the more servers, the longer it stays near zero and the later it rises.",
)

# %% [markdown]
# So pools want to be large. The reserve that a promise takes grows only as the square root of the load, which is one reason why
# shared clusters, large batches and a single queue in front of many replicas pay.

# %%
promise = 0.1
needs = {load: servers_for(load, promise) for load in (1, 10, 100, 1000)}
table(
    [[f"{load:,}", f"{c:,}", f"{c / load - 1:.0%}", f"{(c - load) / load**0.5:.1f}"] for load, c in needs.items()],
    ["servers busy on average", "servers needed", "reserve", "reserve in square roots of the load"],
    caption=f"So that at most {si(promise, '%')} of the requests wait.",
)

# %%
ask("queueing.where_to_queue")

# %% [markdown]
# ## Overload
#
# Above full load there is no steady state, and the library refuses to invent one.

# %% tags=["raises-exception"]
mm1(12, server)

# %% [markdown]
# What happens instead takes time, and that is its danger: the dashboard looks fine at first. One run each, below and above.

# %%
horizon, steps = 60, np.linspace(0, 60, 300)
capacity, burst, normal, burst_length = 100, 120, 90, 300


def live(load, seed=7):
    """The number inside over time, in one run from an empty start."""
    rng = np.random.default_rng(seed)
    count = round(1.3 * load * server * horizon)
    times, counts = number_inside(simulate(poisson_arrivals(load * server, count, rng), rng.exponential(1 / server, count)))
    return np.append(0, counts)[np.searchsorted(times, steps, side="right")]


# %% tags=["figure"]
figure(
    Chart(
        Axis("time", "s", domain=(0, horizon)),
        Axis("requests inside", domain=(0, 160)),
        [Line(steps, live(load), f"{load:.0%}", c) for load, c in ((0.8, "green"), (0.95, "blue"), (1.2, "orange"))],
        height=320,
    ),
    caption="Just below full load a queue comes and goes. Above it, it only comes.",
    alt="Three jagged lines: one stays near the floor, one wanders, and one climbs steadily.",
)

# %% [markdown]
# Overload is arithmetic, not probability: what arrives less what leaves piles up. Say a service with a capacity of
# {{capacity}} requests a second gets {{burst}} for {{human_time(burst_length)}}, and {{normal}} before and after.

# %%
backlog = (burst - capacity) * burst_length
after = drain_time(burst, burst_length, normal, capacity)
print(f"{si(backlog, 'request')} are waiting at the end of the burst, {si(backlog / capacity, 's')} of work; gone {human_time(after)} later")

# %% [markdown]
# Twice the length of the burst goes by before anybody has a short wait again, since only {{si((capacity - normal) / capacity, "%")}}
# of the capacity is free for the backlog. Clients that time out and try again make it worse.
#
# The cure is to **shed**: hold a bounded number and turn the rest away at once. A queue does not change how many are served. It
# decides how long they wait first.

# %%
rooms = [1, 5, 20, 100, 500]
full = {room: mmck(burst, capacity, 1, room) for room in rooms}
table(
    [[room, f"{q.throughput:.1f}/s", si(q.shed, "%"), si(q.W, "s")] for room, q in full.items()],
    ["places in the system", "served", "turned away", "time in system of those served"],
    caption=f"{burst} arrive a second at a server that can do {capacity}. At least {si(1 - capacity / burst, '%')} must go, whatever the queue.",
)

# %% [markdown]
# A place for {{rooms[2]}} gets nearly all of the throughput. Every further place buys only delay: under overload a queue is always full.
#
# ## The join: serving a language model
#
# Now give the server a roofline. A replica decodes a batch of requests together: each step gives each of them one token. Every
# step reads the weights once, and the cache of every request.
#
# $$t(B) = \frac{B \times \text{cache} }{\text{bandwidth} } + \max\left(\frac{\text{weights} }{\text{bandwidth} },\ \frac{2\,P\,B}{\text{peak} }\right)$$
#
# That is chapter 2. In the language of this chapter, **the batch is the number of servers, the step time makes the service
# time, and the memory left for caches caps the servers**. And these servers are odd ones: each that is busy slows down the
# others.
#
# Until further notice, prompts are read (*prefilled*) somewhere else, and requests arrive here with their caches ready.

# %%
model, chip, chips, context, answer = find("llama3_70b"), accelerator("h100_sxm"), 8, 8192, 500
per_token = kv_cache_bytes(model.layers, model.kv_heads, model.head_width, 1)
kv = per_token * context
replica = {"parameters": model.parameters, "kv_bytes": kv, "peak": chips * chip.bf16, "bandwidth": chips * chip.hbm_bandwidth}
weights = 2 * model.parameters
slots = batch_that_fits(chips * chip.hbm_capacity, weights, kv)

# %% [markdown]
# Take {{model.name}} in bf16 on {{chips}} GPUs, {{chip.name}}, as one replica. A token leaves {{si(per_token, "byte")}} in the cache, a
# request with {{context:,}} tokens {{si(kv, "byte")}}. The weights take {{si(weights, "byte")}} of {{si(chips * chip.hbm_capacity, "byte")}}, and what is left holds
# {{slots:.0f}} requests.

# %%
batches = [1, 8, 32, 64, 128, int(slots)]
parts = [decode_step(b, **replica) for b in batches]
table(
    [[b, si(p.weights, "s"), si(p.math, "s"), si(p.kv, "s"), si(p.time, "s"), f"{b / p.time:,.0f}"] for b, p in zip(batches, parts, strict=True)],
    ["batch", "read weights", "arithmetic", "read caches", "step", "token/s"],
    caption="One decode step. The weights are shared by the batch, the caches are not.",
)

# %% [markdown]
# From a batch of one to {{batches[2]}}, throughput grows {{(batches[2] / parts[2].time) / (batches[0] / parts[0].time):.0f}} times and a token takes
# {{parts[2].time / parts[0].time:.1f}} times as long: nearly free. From {{batches[3]}} to {{batches[-1]}} throughput grows by
# {{(batches[-1] / parts[-1].time) / (batches[3] / parts[3].time) - 1:.0%}} and the token takes {{parts[-1].time / parts[3].time - 1:.0%}} longer. In between
# lies the **knee**. Kleinrock's definition of it is the batch at which throughput divided by latency is greatest. Here it
# has a short form: the caches take as long to read as the weights (or the arithmetic does, if that comes first).
#
# $$B_\text{knee} = \min\left(\frac{\text{weights} }{\text{cache} },\ B_\text{crit}\right)$$

# %%
knee = knee_batch(**replica)
budget = 0.02
allowed = batch_within(budget, **replica)
every = np.arange(1, 400)
curves = {c: decode_step(every, **(replica | {"kv_bytes": per_token * c})).time for c in (2048, 8192, 32768)}
marks = {"knee": round(knee), "budget": int(allowed), "memory full": int(slots)}

# %% tags=["figure"]
figure(
    Chart(
        Axis("time per token", "s", domain=(0, 0.05)),
        Axis("throughput of the replica, token/s", domain=(0, 27_000)),
        [
            *[Line(t[t < 0.05], (every / t)[t < 0.05], f"{c:,} tokens", color) for (c, t), color in zip(curves.items(), ("green", "blue", "amber"), strict=True)],
            Points([decode_step(b, **replica).time for b in marks.values()], [b / decode_step(b, **replica).time for b in marks.values()], labels=[f"{name}, {b}" for name, b in marks.items()]),
            Rule(x=budget, label=f"{si(budget, 's')} a token"),
        ],
    ),
    caption=f"Every point of a curve is a batch; the curves differ in the tokens that each cache holds. Marked is {context:,}: the knee, the largest batch within the budget, and the largest that fits.",
    alt="Throughput over time per token: curves that rise steeply and then flatten, lower for longer contexts. On the middle one, three marked batches from the knee to the one that fills the memory.",
)

# %% [markdown]
# A budget of {{si(budget, "s")}} a token allows a batch of {{allowed:.0f}}, memory allows {{slots:.0f}}; the smaller one counts. With
# a longer context the whole curve sinks, since caches are read at every step: at {{max(curves):,}} tokens the ceiling on throughput is
# {{replica["bandwidth"] / (per_token * max(curves)):,.0f}} tokens a second, whatever the batch.
#
# ### From tokens back to requests
#
# An answer has {{answer}} tokens and so stays {{answer}} steps. Little's law with $L$ the batch gives the most requests a second.

# %%
step = decode_step(int(allowed), **replica).time
most = request_rate(int(allowed), answer, step)
print(f"{allowed:.0f} requests inside, each for {answer * step:.1f} s: {most:.1f} requests/s")

# %% [markdown]
# Up to what share of that may we go? In a queue of one server, nine tenths of full load meant ten service times. A replica is kinder,
# for two reasons: it has {{allowed:.0f}} slots, so hardly anybody waits; and with fewer inside, its steps are shorter. `serving_queue`
# solves the chain of states in which $n$ requests inside leave at the rate $n / (\text{tokens} \times t(n))$.

# %%
use = np.linspace(0.02, 0.99, 50)
queues = serving_queue(use * most, answer, int(allowed), **replica)
fixed = mmc(use * most, 1 / (answer * step), int(allowed))

# %% tags=["figure"]
figure(
    Chart(
        Axis("arrivals, share of the most it can do", "%", domain=(0, 1)),
        Axis("time for an answer", "s", domain=(0, 20)),
        [
            Line(use, queues.W, "in all", "blue"),
            Line(use, queues.W - queues.Wq, "decoding", "green", dash=True),
            Line(use, fixed.W, "if steps were always full", "grey"),
        ],
        height=320,
    ),
    caption="A replica under load. Latency grows because steps get longer, long before anybody waits.",
    alt="Time for an answer over the load. The blue curve grows gently from the left and turns up at the very end; the time spent decoding stays below it only there. A grey line for constant steps is flat until the end.",
)

# %% [markdown]
# Half loaded, an answer takes {{queues.W[25]:.1f}} s; idle, it would take {{answer * decode_step(1, **replica).time:.1f}} s. Monitoring that watches the
# length of the queue sees nothing at all until {{use[np.argmax(queues.wait_probability > 0.01)]:.0%}}, where one request in a hundred begins to wait.
# Watch the batch instead: by Little's law it *is* the load.
#
# Does the chain deserve trust? Here the replica runs step by step: requests join between steps, each leaves after its own
# number of tokens.

# %%
sizes = [0.0] + [decode_step(b, **replica).time for b in range(1, int(allowed) + 1)]
checks = []
for share in (0.3, 0.6, 0.9):
    run = simulate_decoding(poisson_arrivals(share * most, 20_000, rng), rng.geometric(1 / answer, 20_000), int(allowed), sizes.__getitem__)
    checks.append((share, serving_queue(share * most, answer, int(allowed), **replica).W, batch_means(run.sojourn)))
table(
    [[si(s, "%"), f"{w:.2f} s", f"{r.low:.2f} to {r.high:.2f} s"] for s, w, r in checks],
    ["share of the most", "chain of states", "simulated step by step"],
)

# %% [markdown]
# ### Who reads the prompts?
#
# Every answer needs its prompt read first, at two FLOPs per parameter and token. Little's law counts the servers that this
# keeps busy: the rate of requests, times how long each takes.

# %%
prompt = context - answer // 2
prefill = prefill_time(prompt, model.parameters, chips * chip.bf16)
feeders = prefill_servers(prefill, int(allowed), step, answer)
shared = 1 / (prefill + answer * step / allowed)
print(f"{si(prefill, 's')} a prompt at the very least: {feeders:.1f} replicas that prefill for one that decodes")

# %% [markdown]
# With prompts of {{prompt:,}} tokens, reading them is most of the work: {{feeders:.1f}} replicas must do nothing else to keep this
# one supplied. If one replica did both, each request would cost it its prefill and its share of the steps, and the ceiling would
# fall from {{most:.1f}} to {{shared:.1f}} requests a second. A ceiling from decoding alone is a promise that somebody else keeps.
#
# ### A latency budget, end to end
#
# Chapter 1 has latency budgets. For a dialogue, {{si(number("attention.latency"), "s")}} is where attention goes. Does the replica keep an answer of
# {{answer}} tokens within it, and up to which load?

# %%
limit = number("attention.latency")
within = use[limit >= queues.W].max()
print(f"up to {within:.0%} of the most, or {within * most:.1f} requests/s")
print(f"alone, a request would take {si(answer * sizes[1], 's')} for its tokens and {si(prefill, 's')} for its prompt")

# %% [markdown]
# ## Try it
#
# Two explorers. In the first, find the load at which a request takes twice its service time on average: for one server, then for
# many. Then make the caches so large that memory is the limit.

# %%
from lightspeed_course.explorers.queueing import explore, explore_serving

explore()

# %% [markdown]
# In the second, a model on hardware. What decides, the budget or the memory? Change the hardware and see what flips; then lengthen
# the context.

# %%
explore_serving()

# %% [markdown]
# ## Worked problems
#
# Pencil first. The first three are the checkpoint of the textbook that this chapter reworks; the last of them you met above.

# %%
ask("queueing.checkpoint_hardware")

# %%
ask("queueing.checkpoint_scaling")

# %%
ask("queueing.capped_rate")

# %% [markdown]
# ### A queue with a promise

# %%
ask("queueing.most_for_a_budget")

# %%
ask("queueing.mixed_lengths")

# %%
ask("queueing.slots_for_a_promise")

# %% [markdown]
# ### A replica with a budget

# %%
ask("serving.slots_in_memory")

# %%
ask("serving.batch_within_budget")

# %%
ask("serving.what_limits_it")

# %% [markdown]
# ## Check: against measured serving
#
# NVIDIA published throughput for batches of known size: so many prompts are read, then decoded together to the end. The model above
# predicts each from the data sheet: the time of the prefill plus one step for each token, with caches that grow.

# %%
source, measured = measured_runs()
rows = []
for run in measured:
    m, c, n_gpus = find(run["model"]), accelerator(run["accelerator"]), run["gpus"]
    width = {"fp8": 1, "bf16": 2}[run["precision"]]
    cell = kv_cache_bytes(m.layers, m.kv_heads, m.head_width, 1, width)
    bound = generation_time(
        run["batch"], run["input"], run["output"], m.parameters, cell, n_gpus * getattr(c, run["precision"]), n_gpus * c.hbm_bandwidth, width
    )
    ideal = run["batch"] * run["output"] / bound / n_gpus
    rows.append((m.name, c.name, run, ideal, run["throughput"] / ideal))

# %%
table(
    [[m, c, r["gpus"], r["batch"], f"{r['input']} → {r['output']}", f"{ideal:,.0f}", f"{r['throughput']:,}", si(share, "%", 2)] for m, c, r, ideal, share in rows],
    ["model", "chip", "GPUs", "batch", "prompt → answer", "at best", "measured", "share"],
    caption=f"Output tokens per second and GPU. Measured: {source['author']}, {source['title']}.",
)

# %% tags=["figure"]
groups = {"one GPU, fp8": [], "one GPU, fp16": [], "several GPUs, fp8": []}
for _, _, r, _, share in rows:
    name = "several GPUs, fp8" if r["gpus"] > 1 else "one GPU, fp8" if r["precision"] == "fp8" else "one GPU, fp16"
    groups[name].append((r["batch"], share))
looks = dict(zip(groups, (("blue", "circle"), ("purple", "triangle"), ("orange", "square")), strict=True))
span = {name: " to ".join(f"{end(share for _, share in points):.0%}" for end in (min, max)) for name, points in groups.items()}
figure(
    Chart(
        Axis("batch", "request", "log", domain=(30, 2000)),
        Axis("measured over bound", "%", domain=(0, 1.1)),
        [Rule(y=1, label="the bound")] + [Points(*zip(*points, strict=True), label=kind, color=looks[kind][0], marker=looks[kind][1]) for kind, points in groups.items()],
        height=320,
    ),
    caption="Nothing beats the bound. One GPU comes near to it; several that share a model do not.",
    alt=f"Points below a rule at one hundred per cent: one GPU in fp16 at {span['one GPU, fp16']}, in fp8 at {span['one GPU, fp8']}, several GPUs at {span['several GPUs, fp8']}.",
)

# %% [markdown]
# ### Where it breaks
#
# - **One GPU in fp16** reaches {{span["one GPU, fp16"]}} of the bound, whatever the batch: bandwidth and peak are never used in
#   full, and there are gaps between kernels. One factor for the chip would repair that.
# - **One GPU in fp8** reaches {{span["one GPU, fp8"]}}, the least in the run with the largest batch, in which arithmetic is the
#   limit. Narrow formats fall short of their peak, as in chapter 2.
# - **Several GPUs** reach {{span["several GPUs, fp8"]}}. "Chips that act as one" is the weakest assumption of this chapter: they exchange
#   activations twice in every layer, and wait for each other. Chapters 6 and 7 price that. Until then, take the replica of
#   {{chips}} above as an upper bound.
#
# Does one factor turn the bound into an estimate? Take it from the smallest batch of each group, and predict the others.

# %%
factors = {name: min(points) for name, points in groups.items()}
table(
    [[name, batch, f"{factors[name][1] / share - 1:+.0%}"] for name, points in groups.items() for batch, share in sorted(points)[1:]],
    ["group", "batch", "estimate over measured"],
    caption="Rows that the factor has not seen.",
)

# %% [markdown]
# On one A100, yes. In fp8 it fails as soon as arithmetic counts, and across GPUs a single factor predicts nothing.
#
# Memory is a check too. Every published batch had to fit, and all of them do by our count, but for one that misses by a hair.

# %%
for m, c, r, _, _ in rows:
    width = {"fp8": 1, "bf16": 2}[r["precision"]]
    shape, total = find(r["model"]), r["gpus"] * accelerator(r["accelerator"]).hbm_capacity
    need = width * shape.parameters + r["batch"] * kv_cache_bytes(shape.layers, shape.kv_heads, shape.head_width, r["input"] + r["output"], width)
    if need > total:
        print(f"{m} on {c}, batch {r['batch']}: {si(need, 'byte')} needed, {si(total, 'byte')} on the data sheet, {si(total / 1e9 * 2**30, 'byte')} if those GB are GiB")

# %% [markdown]
# It did run, so the GB of that data sheet must be GiB: memory comes in powers of two. The trap of chapter 1 works in your favour
# for once.

# %% [markdown]
# ## Measure it here
#
# So far every queue was a formula or a simulation. Now one process of your machine serves requests and another sends them, over the loopback
# network. Serving is a wait, which stands for a device at work, so a laptop can play many servers at a time: three kinds at
# five loads each, side by side. The sender is an *open* loop: it sends each request at the time it is due, whatever has become of the others.
#
# What do you expect? Here are the formulas, in service times. Pick the server with the highest latency, and say whether a
# run of a few seconds will show that number. And which of the two laws, Little's or the formula, will hold better?

# %%
from lightspeed_course import measure_here, shipped
from lightspeed_course.measure.pages.scaling_figures import (
    queueing_latency,
    queueing_little,
    queueing_omission,
    queueing_tail,
)
from lightspeed_course.measure.instruments.queueing import LOADS

table(
    [[si(level, "%"), f"{mm1(level, 1).W:.1f}", f"{md1(level, 1).W:.1f}", f"{mmc(4 * level, 1, 4).W:.2f}"] for level in LOADS],
    ["load", "M/M/1", "M/D/1, fixed services", "M/M/4, four servers"],
    caption="Mean latency in service times, if the queue runs for ever.",
)

# %% tags=["measured"]
mine = measure_here("queueing")

# %% [markdown]
# ### Three instruments
#
# The server looks at random moments at how many are inside. The sender counts requests, and stops the time of each. Neither knows what the other has
# seen, and they share no clock.

# %% tags=["measured"]
queueing_little(mine)

# %% [markdown]
# Little's law holds in every row, though no row is in a steady state: it needs none. What keeps the ratio from one is mostly chance: $L$ comes from
# looks at random moments, and the deviation after ± says how far that may be off. Where the ratio is lower than this explains, it is still no failure of
# the law. The two sides have drawn the border of the system differently: the sender's $W$ has the way to the server and back in it, and those under way
# are not yet inside, or no longer.
#
# ### The formula, and so short a run

# %% tags=["measured"]
queueing_latency(mine)

# %% [markdown]
# Now compare your guess. There are three reasons why a point may lie off the curve, and the figure keeps them apart.
#
# - **The run is short.** The formulas speak of a queue that has run for ever. This one began empty, and near full load it
#   would need far longer to grow than it was given. The band shows where nine of ten runs of this length fall, from simulations of each. Towards full load
#   it is wide, and its middle lies below the curve: a short load test flatters.
# - **It was this run and no other.** A cross is an ideal queue that got the very same arrivals and services. Between the cross and the middle of the band
#   lies luck.
# - **The server is not ideal.** That is all that is left between cross and point: timers that end late, two processes that
#   take turns on the cores. The first is measured as it happens and is in the curve already.
#
# If the cell refused to draw, then the sender was late. An open loop that does not send on time is not the load that was asked for, and every
# number after it would be about something else.
#
# ### What a closed loop does not see
#
# Many load testers send a request, wait for the answer, and then send the next one. Here such a tester has the same arrivals and services as the
# open loop at one of the loads above, and starts its clock when it sends.

# %% tags=["measured"]
queueing_omission(mine)

# %% [markdown]
# The same requests, the same server, and the latency is gone. It was not avoided, it was not looked at: while the tester waits for an answer, the requests
# that are due meanwhile queue in the tester, where no clock runs. By Little's law the tester keeps $L$ at one, and so it can never see a queue.
# Count from the time at which each request was due, and the closed loop tells what the open one does, and a little more: it pays the way
# there and back between every two requests. The mistake is known as *coordinated omission*; a benchmark that does not say "open loop" probably makes it.
#
# ### The same on a recorded machine
#
# Here is such a measurement from a machine that was recorded for this course, with the tail of one server.

# %%
recorded = shipped()["amd_epyc_2core"]
queueing_little(recorded)

# %%
queueing_latency(recorded)

# %%
queueing_tail(recorded)

# %%
queueing_omission(recorded)

# %% [markdown]
# On another machine neighbours took a part of the processor time while it was measured. Does that break Little's law?

# %%
other = shipped()["intel_xeon_2core"]
queueing_little(other)

# %%
queueing_latency(other)

# %% [markdown]
# It does not. Timers end later here and the way there and back is longer, which is the distance between the two columns at low load. The formulas of
# latency assume a server; Little's law assumes only that requests come and go.
#
# ## Gallery of wrong claims
#
# Each was published. Each is rebutted by a line that you can run.

# %%
from lightspeed_course import gallery

gallery("04")

# %% [markdown]
# ## Exercises
#
# `exercises/04_littles_law.ipynb` has the problems of this page and more: Erlang's formula to write so that it survives thousands of servers, a
# burst to survive, and a replica to size.
#
# ## What the model leaves out
#
# Arrivals that come in bunches or react to latency: users who retry, agents that wait for an answer before they ask again. Prompts that share
# a cache. Prefill, which interrupts decoding in the same replica or runs on replicas of its own. Answers whose lengths are known in advance, so that
# short ones could go first. Speculative decoding, which gives more than one token a step. Little's law survives all of these; the
# formulas for $W$ do not, and a simulation does.
#
# ## Further reading
#
# - Little, *A proof for the queuing formula L = λW* (Operations Research, 1961); and his look back after half a century (2011).
# - Kleinrock, *Queueing Systems*, volume 1 (1975): every formula of this page with its proof.
# - Harchol-Balter, *Performance Modeling and Design of Computer Systems* (2013): for computer people.
# - Dean and Barroso, *The tail at scale* (CACM 2013): what to do about the slowest one in a hundred.
# - Yu and others, *Orca* (OSDI 2022) and Kwon and others, *PagedAttention* (SOSP 2023): batches that requests join and leave at every step, and caches without gaps.
