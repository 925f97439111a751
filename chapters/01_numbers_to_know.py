# %% [markdown]
# # 1. Numbers to know
#
# For each request, a colleague wants to fetch a feature vector from a server across the country.
# Another wants to compute it again on the GPU. The review starts in a minute. Who is right?
#
# You can answer without a benchmark if you carry about ten numbers in your head, and know which of
# them to divide. This lesson gives you the numbers, and says how long you may trust each. It takes
# about half an hour, and all you need is arithmetic. The evidence is on the [proof
# page](01_numbers_to_know_proof.ipynb).

# %% tags=["setup"]
from lightspeed import datasheet, roofline
from lightspeed.catalog import accelerator, find, link, memory, parse
from lightspeed.training import training_flops, training_time
from lightspeed_models.llm import decoder
from lightspeed_course import ask, Axis, Bars, Boxes, cards, Chart, figure, human_time, job, predict
from lightspeed_course import bench, beside, reveal, si, table, Text

# %%
job.sheet(until="01")

# %% [markdown]
# ## Guess first
#
# Two numbers, one of distance and one of waiting. *HBM* is a GPU's own memory, a few centimetres
# from where it computes.

# %%
predict("numbers.fibre_kilometre", ...)

# %%
predict("numbers.hbm_latency", ...)

# %% [markdown]
# ## What are you waiting for?
#
# A lorry full of disks needs a day across the country and arrives with a petabyte. A ping takes a
# moment and arrives with a byte. Which one is faster? You can't say before you know how much you
# want to move, because you wait twice: for the first byte, and then for the rest. **Latency is the
# wait for the first byte; bandwidth says how quickly the rest follows.**
#
# $$T = \text{latency} + \frac{\text{size} }{\text{bandwidth} }$$
#
# Take a link of ten gigabits a second, with ten milliseconds on the way. A kilobyte needs less than
# a microsecond to enter it, and then ten milliseconds to arrive. A gigabyte needs eight tenths of a
# second to enter it, and ten milliseconds more hardly matter. Change the size, watch which of the
# two waits fills the bar, and find out when the lorry is there first.

# %% tags=["holds"]
from lightspeed_course.explorers.numbers import PING

wire = link("ethernet_10g")
assert PING == 10e-3 and wire.bandwidth == 10e9 / 8, "milliseconds on the way"
assert roofline.transfer_time(1e3, wire.bandwidth) < 1e-6, "less than a microsecond"
assert abs(roofline.transfer_time(1e9, wire.bandwidth) - 0.8) < 0.01, "eight tenths of a second"

# %%
from lightspeed_course.explorers.numbers import explore, explore_two_waits

explore_two_waits()

# %%
ping, bandwidth = 10e-3, link("ethernet_10g").bandwidth
turn = roofline.crossover_size(ping, bandwidth)
turn

# %% [markdown]
# Both waits are equal at {{si(turn, "byte")}}, which is nothing but latency times bandwidth.
# Compute that size before you buy anything, because it tells you what to buy: for a message far
# smaller a wider link hardly helps, and for one far larger a nearer server hardly does.
#
# ## How far away is everything?
#
# A register holds a number that the processor is just using. If it were a pencil on your desk,
# where would main memory be, and where the server across the country? Multiply each latency by one
# factor, so that the quickest takes as long as picking up the pencil. In this ladder of waits,
# the **memory hierarchy** and the networks beyond it, the
# rung you guessed is blank.

# %% tags=["holds"]
assert abs(roofline.transfer_time(turn, bandwidth) - ping) < 1e-12, "Both waits are equal"
assert abs(roofline.transfer_time(turn / 100, bandwidth, ping) / ping - 1) < 0.02 and (
    abs(roofline.transfer_time(100 * turn, bandwidth, ping) / (100 * turn / bandwidth) - 1) < 0.02
), (
    "because it tells you what to buy: for a message far smaller a wider link hardly helps, and for"
    " one far larger a nearer server hardly does"
)

# %% tags=["figure"]
from lightspeed_course.explorers.ladder import ladder, lanes

rungs = [seconds for lane in lanes().values() for seconds in lane.values()]
figure(
    ladder(hidden="gpu_hbm"),
    caption="The ladder in lanes: what is alike has one colour. On the upper axis, each latency as "
    "a person would feel it. Messages and light are one way.",
    alt=f"Horizontal bars on a logarithmic axis, from {si(min(rungs), 's')} to "
    f"{si(max(rungs), 's')}, in five colours. The bar of the GPU's own memory is missing.",
)

# %% tags=["holds"]
drawn = [bar for bar in ladder(hidden="gpu_hbm").marks]
assert len(drawn) == 5 == len({bar.color for bar in drawn}), "in five colours"
assert sum(len(bar.at) for bar in drawn) == len(rungs) - 1, "own memory is missing"

# %%
reveal("numbers.hbm_latency")

# %%
scale, hbm, l1 = find("human_scale"), memory("gpu_hbm"), memory("gpu_l1")
nvlink, infiniband = link("nvlink4"), link("infiniband_ndr")
ways = memory("cpu_dram").latency, memory("path_country").latency
felt = [human_time(datasheet.human_scale(t, scale.tick, scale.feels_like)) for t in ways]
felt

# %% [markdown]
# So if you have the pencil after {{human_time(scale.feels_like)}}, main memory is {{felt[0]}} away,
# a walk across town, and light alone needs {{felt[1]}} to cross the country, one way.
#
# Before you compare two rungs, check that they measure the same kind of waiting; that is what the
# colours are for. In a memory it is the wait for one *load*, a read that the program needs before
# can go on. For a message it is the wait from program to program, software included: *NVLink*
# joins the GPUs of a host, and *InfiniBand* or Ethernet joins hosts, through the *leaf switch* that
# each is plugged into. (*RoCE* is InfiniBand's way to reach another host's memory, over Ethernet.)
#
# Even among loads, stay on one chip: HBM is {{hbm.latency / l1.latency:.2g}} times as far away as
# the GPU's own L1 cache.
#
# Like compared with like, the ladder has a surprise. Where the CPUs do the sending, from program to
# program, a GPU in the next host is about as far away as the next GPU of the same host. The wires
# don't take that time: InfiniBand's hardware needs {{si(infiniband.latency, "s")}} of the
# {{si(infiniband.end_to_end, "s")}}, and the rest is software. (Both are from one table, for sixty-four
# bytes. Between GPUs that send by themselves, NVLink needs {{si(nvlink.latency, "s")}}.)
# <small>[proof](01_numbers_to_know_proof.ipynb#Like-with-like)</small>
#
# ## What can money not buy?
#
# The lowest rungs are light in glass, and the speed of light is not for sale.

# %% tags=["holds"]
assert 0.7 < infiniband.end_to_end / nvlink.end_to_end < 1.3, (
    "a GPU in the next host is about as far away as the next GPU of the same host"
)
assert nvlink.latency < nvlink.end_to_end / 3, "Between GPUs that send by themselves"
assert 10 < hbm.latency / l1.latency < 20, "HBM is {{hbm.latency / l1.latency:.2g}} times as far away as the GPU's own L1 cache"
assert infiniband.latency < infiniband.end_to_end / 2, "and the rest is software"

# %%
reveal("numbers.fibre_kilometre")

# %%
country, hall = memory("path_country"), memory("path_hall")
(dean,) = (parse(o["printed"])[0] for o in hall.round_trip.others if o["source"].key == "dean_2012")
country.round_trip, hall.round_trip

# %% [markdown]
# Light in glass is a third slower than in vacuum. A faster switch or network card does not change
# that; a straighter path does, and so does one without glass, which is why traders pay for
# microwave links. Across the country and back, light in glass needs
# {{si(country.round_trip, "s")}}, whatever stands at its ends.
#
# But do not blame light for everything. For a kilometre and back it needs
# {{si(hall.round_trip, "s")}}, while the list that Jeff Dean made famous has {{si(dean, "s")}} for
# two programs in one data centre. The rest is switches, kernels and queues, and engineers do
# shorten those: a small message over InfiniBand needs {{si(infiniband.end_to_end, "s")}} one way.
# <small>[proof](01_numbers_to_know_proof.ipynb#Four-distances)</small>
#
# ## What does it cost to move a number?
#
# So far you've paid in time. You also pay in energy, so many joules or **picojoules** a byte, and
# there the distance counts even where the
# wait is hidden. How much more energy does it take to fetch two numbers than to multiply them?

# %% tags=["holds"]
assert abs(memory("light").fibre / memory("light").vacuum - 2 / 3) < 0.005, "slower than in vacuum"
assert abs(country.round_trip - datasheet.round_trip(country.distance, memory("light").fibre)) < (
    1e-9
), 'light in glass needs {{si(country.round_trip, "s")}}, whatever stands at its ends'
assert abs(hall.round_trip - datasheet.round_trip(1e3, memory("light").fibre)) < 1e-12, (
    "For a kilometre and back"
)
assert dean > 10 * hall.round_trip, "programs in one data"
assert 2 * infiniband.end_to_end < dean / 10, "message over InfiniBand needs"

# %%
now = find("jouppi_7nm")
fetch, multiply = now.gddr6_64b_least, now.fp32_multiply
fetch, multiply

# %% tags=["figure"]
small, big = (float(e) ** 0.5 for e in (multiply, fetch))
figure(
    Chart(
        Axis(domain=(0, 3.63 * big)),
        Axis(domain=(0, 1.2 * big)),
        [
            Boxes([0], [big], [0], [big], label="fetch both from memory", color="orange"),
            Boxes([1.4 * big], [1.4 * big + small], [0], [small], label="multiply", color="blue"),
            Text(big / 2, 1.06 * big, si(fetch, "J")),
            Text(1.4 * big, 0.15 * big, si(multiply, "J"), anchor="start"),
        ],
        height=280,
        bare=True,
    ),
    caption=f"Two numbers of four bytes, in {now.process}: the areas are the energies.",
    alt="A large orange square, the energy of fetching two numbers from memory, beside a blue one "
    "that is hardly more than a dot, the energy of multiplying them.",
)

# %% tags=["holds"]
assert big > 15 * small and abs(big**2 / small**2 - fetch / multiply) < 1e-6, (
    "the areas are the energies"
)
assert small < 0.07 * big, "hardly more than a dot"

# %% [markdown]
# The blue dot is the multiplication. Fetching takes {{fetch / multiply:.0f}} times as much, and the
# reason is distance: a wire has to be charged along its whole length, and the memory is centimetres
# away, while the parts of a multiplier are micrometres apart. **So when you compare two ways to do
# something, count what each of them moves.** (This is memory on a board, GDDR6; the stacks of HBM
# are nearer, and cheaper to read. In an older process both numbers were larger.) So remember that it
# is hundreds of times as much, and look the digits up when you need them.
# <small>[proof](01_numbers_to_know_proof.ipynb#What-it-costs-to-move-a-word)</small>
#
# ## Which number is yours?
#
# You will often look such numbers up. These you'll need again and again: the peak and
# the memory rate of an H100 and of a B200.

# %% tags=["holds"]
older = find("horowitz_45nm")
assert fetch > 200 * multiply, "Fetching takes {{fetch / multiply:.0f}} times as much"
assert older.fp32_multiply > multiply and older.dram_64b_least > fetch, "In an older process both numbers were larger"
assert 100 < older.dram_64b_least / older.fp32_multiply < 1000 and fetch > 100 * multiply, (
    "it is hundreds of times as much"
)

# %%
from math import log2

h100, efa = accelerator("h100_sxm"), link("efa_p5")
old, new = accelerator("a100_80gb"), accelerator("b200")
doubling = (new.year - old.year) / log2(new.bf16 / old.bf16)  # in years
h100.bf16, h100.hbm_bandwidth, new.bf16, new.hbm_bandwidth

# %% [markdown]
# Looking them up has three traps, and each is worth a factor of two or more. Data sheets like to
# print the *sparse* peak, which counts zeros that are skipped (**structured sparsity**): of the
# {{si(h100.bf16_sparse, "FLOP/s")}} of an H100 your dense matrices get half. They add up both
# directions of a link, but a transfer goes one way: {{si(nvlink.bandwidth, "byte/s")}} of NVLink's
# {{si(nvlink.bandwidth_bidirectional, "byte/s")}}. And they don't say who shares it: the
# {{si(efa.bandwidth_per_node, "byte/s")}} of a P5 instance at Amazon are the node's, so each of its
# {{efa.gpus:.0f}} GPUs has {{si(efa.bandwidth, "byte/s")}}.
#
# How long may you trust such a number? That depends on where it comes from. The speed of light and
# the FLOPs of a product will be the same in ten years. A ratio drifts, but keeps its order of
# magnitude. A rate of one product is soon out of date:
# from the A100 to the B200, the peak doubled every {{si(doubling, digits=2)}} years.
# <small>[proof](01_numbers_to_know_proof.ipynb#Which-ratios-survive-a-generation?)</small>
#
# ## Can a machine catch your slips?
#
# Many of them, because a wrong equation often has wrong units. How long does an H100 need to read
# the weights of a model? Divide the bytes by its *peak*, by mistake:

# %% tags=["holds"]
assert h100.bf16_sparse == 2 * h100.bf16, "your dense matrices get half"
assert nvlink.bandwidth_bidirectional == 2 * nvlink.bandwidth, "add up both"
assert efa.bandwidth * efa.gpus == efa.bandwidth_per_node, "don't say who shares it"
assert abs(old.bf16 * 2 ** ((new.year - old.year) / doubling) / new.bf16 - 1) < 1e-9 and doubling < 3, (
    "soon out of date: from the A100 to the B200, the peak doubled every {{si(doubling, digits=2)}} years"
)

# %% tags=["raises-exception"]
from lightspeed.units import Q

roofline.compute_time(Q(14, "GB"), h100.bf16.quantity)

# %%
ridge = h100.bf16 / h100.hbm_bandwidth
si(ridge, "FLOP/byte")

# %% [markdown]
# So the library refuses what has the wrong dimension, and converts what has the right one, bits to
# bytes and milliseconds to seconds. If you do it by hand, write the units beside the numbers:
# that is **dimensional analysis**. To
# compare FLOPs with bytes, turn both into time, each by its own rate. In the time in which one byte
# arrives, an H100 can do {{ridge:.0f}} FLOPs. Chapter 2 calls that the *ridge*.
# <small>[proof](01_numbers_to_know_proof.ipynb#Check-an-equation-by-its-units)</small>
#
# ## The job: is a week a sound plan?
#
# Let's plan something with these numbers, as **napkin math**. This job stays with us through all
# chapters.

# %% tags=["holds"]
assert abs(roofline.ridge_point(h100.bf16, h100.hbm_bandwidth) - ridge) < 1e-9 and ridge > 200, (
    "In the time in which one byte arrives, an H100 can do"
)

# %%
model, tokens, gpus, reached = find(job.MODEL), job.TOKENS, job.GPUS, job.UTILIZATION
weights = 2 * model.parameters  # bytes, in bf16
si(weights, "byte"), si(h100.hbm_capacity, "byte"), si(job.read_time(), "s")

# %% [markdown]
# {{model.name}} is to be trained further on {{si(tokens, "token")}}, by {{gpus}} H100 in nodes of
# eight. Somebody has promised it within a week. Before you believe that, ask three questions.
#
# **Does it fit?** Its {{si(model.parameters, "parameter")}} of two bytes are
# {{si(weights, "byte")}}. An H100 would read them in {{si(weights / h100.hbm_bandwidth, "s")}}, but
# it can't even hold them: its “{{h100.hbm_capacity.others[0]["printed"]}}” are the
# {{h100.hbm_capacity.printed}} that its driver reports, {{si(h100.hbm_capacity, "byte")}}.

# %% tags=["figure"]
cards_of = [k * h100.hbm_capacity for k in range(9)]
figure(
    Chart(
        Axis("memory", "byte", domain=(0, 7.2e11)),
        Axis(scale="category", categories=["the weights", "one H100", "a node of eight"]),
        [
            Bars(["the weights"], [weights], labels=[si(weights, "byte")], color="orange"),
            Bars(["one H100"], [cards_of[1]], labels=[si(cards_of[1], "byte")]),
            Bars(["a node of eight"] * 8, cards_of[1:], start=cards_of[:8]),
        ],
        height=170,
    ),
    caption="The weights need two cards, and a node has room for much more. Training will use it.",
    alt="Three bars. The weights are longer than one H100, and a fifth of the eight of a node.",
)

# %% tags=["holds"]
assert h100.hbm_capacity < weights < 2 * h100.hbm_capacity, "The weights need two cards"
assert find("adam_mixed_precision").total * model.parameters == 8 * weights, "Training will use it"
assert 0.18 < weights / (8 * h100.hbm_capacity) < 0.22, "a fifth of the eight of a node"

# %%
from lightspeed_models.profiles import scaling_runs

(*_, many) = scaling_runs()["llama3_405b"]["n"]
forward, training = 2 * model.parameters, training_flops(model.parameters, 1)
shape = decoder(job.MODEL)
looked_up = shape.width * shape.vocabulary / shape.parameters
si(forward, "FLOP"), si(training, "FLOP")

# %% [markdown]
# **What does a token cost?** In a dense transformer, a token that passes through meets each matrix
# once, and each of its weights in one multiplication and one addition: two FLOPs a parameter,
# {{si(forward, "FLOP")}}. Training also goes back, with two such steps for each weight: one for the
# gradient of what came in, one for the gradient of the weight. So it needs six,
# {{si(training, "FLOP")}}. (Both count the table of embeddings, too, in which a token only looks up
# its row, {{looked_up:.1%}} of the weights here. And they leave out attention, which is small as long as
# the context is short beside the length of a token's vector, {{shape.width:,}}.)
#
# **How long does it take?** All the FLOPs, over what the machine gets done. With $P$ parameters
# and $D$ tokens (how many tokens a model deserves is what **scaling laws** such as Chinchilla's
# say), on $N$ chips with a peak of $X$, of which the run reaches a share $U$:
#
# $$T = \frac{6\,P\,D}{N\,X\,U}$$
#
# No run reaches the whole peak. Take {{reached:.0%}}, which is what the {{many:,}} H100 that
# trained Llama 3.1 405B got.
# <small>[proof](03_amdahl_gustafson_proof.ipynb#Against-published-runs)</small>

# %% tags=["holds"]

met = shape.flops_per_token(0, "prefill") / 2  # weights that take a multiplication and an addition
assert abs(met / (shape.parameters * (1 - looked_up)) - 1) < 1e-4, (
    "meets each matrix once, and each of its weights in one multiplication and one addition"
)
assert abs(met + looked_up * shape.parameters - shape.parameters) < 1e-4 * met and looked_up < 0.02, "in which a token only looks up its row"
assert training_flops(1, 1) == 6 and training == 3 * forward, "So it needs six"
rate = scaling_runs()["llama3_405b"]["values"][-1] * 1e12  # FLOP/s a GPU
assert abs(rate / h100.bf16 - reached) < 0.01 and reached < 1, "what the {{many:,}} H100 that"

# %%
planned = training_time(training * tokens, gpus, h100.bf16, reached)
hours = gpus * planned / 3600
human_time(planned), si(hours)

# %% [markdown]
# {{human_time(planned)}}, and {{si(hours, "", 3)}} GPU-hours: the promise holds, by this count.
# What the count does not know is how often the GPUs will wait for one another, and for their
# network, which is a cheap one. All that is hidden in the {{reached:.0%}}. So if the run takes
# {{job.RUNNING}} days, as the sheet says, it isn't because somebody multiplied wrongly: strike the
# plan off the list of suspects.
#
# ## Try it
#
# Choose a path, from a cache to the far side of an ocean. Before you move the size, say which of
# the two waits decides there, or whether both do.

# %% tags=["holds"]
assert abs(planned - job.WEEK * 86400) < 0.05 * 86400 and planned < job.WEEK * 86400, (
    "the promise holds"
)
assert abs(planned - job.planned()) < 1 and weights == job.weights(), "by this count"
assert planned < 0.6 * job.RUNNING * 86400, "it isn't because somebody multiplied wrongly"

# %%
explore()

# %% [markdown]
# ## Decide

# %%
ask("numbers.what_helps", seed="chapter")

# %%
ask("numbers.recompute_or_fetch", seed="chapter")

# %%
ask("numbers.country_requests", seed="chapter")

# %%
ask("numbers.week", seed="guess")

# %% [markdown]
# ## Back to the review

# %%
params = 7e9  # assumed
once = 2 * params / h100.hbm_bandwidth  # a pass over the weights of a model, in bf16
whole = h100.hbm_capacity / h100.hbm_bandwidth
si(once, "s"), si(whole, "s")

# %% tags=["figure"]
table(
    [
        ["light, across the country and back", country.round_trip],
        [f"an H100 reads the weights of {si(params, 'parameter')}", si(once, "s")],
        ["an H100 reads all its memory", si(whole, "s")],
        ["a round trip in one data centre, software included", si(dean, "s")],
    ],
    ["", "time"],
)

# %% [markdown]
# **Which is sooner?** To compute one vector for one request, the GPU takes each weight of a model
# from its memory once, multiplies and adds. {{si(params, "parameter")}} of two bytes are
# {{si(2 * params, "byte")}}, and an H100 reads {{si(h100.hbm_bandwidth, "byte/s")}}. Its
# arithmetic keeps up easily, so the time is that of reading. Even a model that fills the whole
# memory is read before the light is back. If the question is latency, compute it again.
#
# **Which is cheaper?** While a request waits for the network, the GPU works for others. A request
# that computes its vector alone occupies the GPU for {{si(once, "s")}}, so one GPU serves at most
# {{1 / once:.0f}} of them a second. If the answer may take {{si(country.round_trip, "s", 2)}}, or
# can be asked for early, fetch it.
#
# **And if you moved the server?** In the same data centre the answer is there in
# {{si(dean, "s")}}, before the GPU has read the model.

# %% tags=["holds"]
assert h100.bf16 / h100.hbm_bandwidth > 200, "arithmetic keeps up easily"
assert once < whole < country.round_trip, "read before the light"
assert dean < once, "data centre the answer"

# %% [markdown]
# ## Remember

# %% [markdown] tags=["takeaway"]
# - There are two ways to wait, and the size at which they are equal tells you which one you can
#   buy.
# - Compare like with like: one kind of latency, one direction, one user.
# - In a dense model a token costs two operations for each parameter, as long as the context is
#   short, and training costs six.

# %% [markdown] tags=["card"]
# | formula | meaning | unit | for the job |
# |---|---|---|---|
# | $\text{latency} + \text{size} / \text{bandwidth}$ | time of a transfer | s | {{si(weights / h100.hbm_bandwidth, "s")}} for the weights |
# | $\text{latency} \times \text{bandwidth}$ | size at which both waits are equal | byte | {{si(roofline.crossover_size(infiniband.end_to_end, infiniband.bandwidth), "byte")}} on InfiniBand NDR |
# | $2P$ | forward pass of a token | FLOP | {{si(forward, "FLOP")}} |
# | $6P$ | training on a token | FLOP | {{si(training, "FLOP")}} |
# | $6PD / (NXU)$ | time of a training run | s | {{human_time(planned)}} |

# %% [markdown]
# ## In your own framework
#
# Copy four bytes, then a gigabyte, and you have both waits of this lesson: the first line is all
# latency, the second all bandwidth. Where there is a GPU, the script copies from pinned memory,
# over PCIe.

# %% tags=["figure"]
beside("01_copy")

# %% [markdown]
# ## One reading
#
# A job misses its plan. Somebody puts how it was started beside what the plan says. Most of its
# terms come in chapter 6, but the table is enough to let one of three suspects go.

# %%
bench("01")

# %% [markdown]
# ## Exercises
#
# [The exercises](../exercises/01_numbers_to_know.ipynb) have more problems, from recall to design,
# and these with other numbers. The numbers worth carrying come back as cards. Next: [the
# roofline](02_roofline.ipynb). Read on: Dean,
# *Numbers everyone should know* (2009); Horowitz, *Computing's energy problem* (2014), the table of
# energies.

# %%
cards("numbers")
