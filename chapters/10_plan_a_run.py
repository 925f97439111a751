# %% [markdown]
# # 10. Plan a run
#
# You mended the week. The plan of lesson 6.3 was reasoned out: tensor parallelism where the links
# are fast, a pipeline where they are slow, and the run fits its seven days again. Then somebody
# asks the question that you can't answer by reasoning: *was that the best plan?* There are tens of
# thousands, and a law that takes microseconds can try them all. You'll learn what to do with its
# answer.
#
# Half an hour; you need lessons 6.1 to 6.3. The evidence is on the
# [proof page](10_plan_a_run_proof.ipynb).

# %% tags=["setup"]
from lightspeed.catalog import find
from lightspeed.reliability import observed_mtbf, stretch, young_interval
from lightspeed_course import ask, Axis, Bars, bench, Chart, figure, job, predict, reveal, si, table
from lightspeed_course.explorers.planner import explore_planner
from lightspeed_models.stack import run_class, stack

# %% tags=["setup"]
powers = [2**n for n in range(7)]
ways = [(d, t, job.GPUS // d // t) for d in powers for t in powers if job.GPUS % (d * t) == 0]

# %%
job.sheet(until="10")

# %% [markdown]
# **First, one from lesson 6.3.** A plan begins with such a product.

# %%
ask("parallelism.data_ranks", seed="again")

# %% [markdown]
# **Guess.** Begin with the coarsest choice: how many ways of data, tensor and pipeline parallelism.
# How many plans does that make?

# %%
predict("planning.ways", ..., seed="c")

# %% [markdown]
# ## What is a plan?
#
# It starts with three factors whose product is the number of GPUs, a **parallelism layout**. Here
# each of them is a power of
# two, so six factors of two have to be dealt out to three owners. Lay six stones in a row, and put
# two sticks between them: the stones before the first stick belong to the data ways, those between
# the sticks to the tensor ways, and the rest to the pipeline. That makes eight places, of which you
# choose two for the sticks. How many ways is that?

# %% tags=["holds"]
assert len(ways) == 8 * 7 // 2, "choose two for the sticks"

# %%
reveal("planning.ways", seed="c")

# %% tags=["setup"]
anew = job.planned_anew()

# %% [markdown]
# You could try so few by hand. But each of them leaves choices open: sequences in a micro-batch,
# chunks of an interleaved pipeline, context ways, ZeRO's stage, what is computed again, and which
# ranks sit next to each other in a node. With all of these there are {{anew["plans"]:,}} plans for
# our *stack* (here Megatron, with constants fitted to tuned runs of it). {{anew["passing"]:,}} of
# them can run; the others break a rule, or don't fit
# ([proof](10_plan_a_run_proof.ipynb#Why-can-so-few-run?)).

# %% tags=["holds"]
assert anew["passing"] < anew["plans"] / 2, "the others break a rule"

# %% [markdown]
# ## Which is the fastest?
#
# Each dot is a split, with the rest of the choices made for it as well as they can be. To the right
# a GPU is fuller, and further down a step is shorter. Nothing may go right of the line, at four
# fifths of the card, since memory is predicted, too. Yours is the split of lesson 6.3, with its
# micro-batch and chunks now tuned like everybody's. Click where you expect the fastest one, then
# try tensor ways and stages.

# %%
explore_planner()

# %% [markdown]
# Look at the green line, the *front*. On it nothing is both leaner and faster, so whoever chooses a
# plan off it gives something away for nothing. It falls steeply at first: the leanest plans
# recompute everything and send all the time. Then it is nearly flat, and to save the last thirtieth
# of a step takes more than half as much memory again. Stop before that, and there is room left on
# the Tuesday when somebody makes the sequence longer.

# %% tags=["holds"]
from lightspeed_course.explorers.planner import every, front

lean = front(s for s in every(job.NETWORK, job.SEQUENCES, 85.5e9) if s.held <= 0.8 * 85.5e9)
assert all(a.held < b.held and a.time > b.time for a, b in zip(lean, lean[1:])), "nothing is both"
assert lean[0].time > 1.5 * lean[1].time and lean[0].plan.recompute == "full", "falls steeply"
assert 1 / 40 < 1 - lean[-1].time / lean[-3].time < 1 / 30, "the last thirtieth"
assert lean[-1].held / lean[-3].held - 1 > 0.5, "than half as much memory"

# %% tags=["setup"]
mine, tokens = job.explained(), job.SEQUENCES * job.SEQUENCE
ours, best = mine["yours"], anew["best"]
runs, ends, week = anew["runs"], best["range_seconds"], anew["cost"]["days_range"]
like = next(one for one in anew["nearest_measured"] if one["gpus"] == job.GPUS)

# %% [markdown]
# ## Why is it faster than ours?
#
# Plans are written short: `dp4` for data ways, `tp` for tensor, `pp` for pipeline, `vp` for chunks,
# `mbs` for sequences in a micro-batch, then ZeRO's stage and what is recomputed. Ours, as lesson
# 6.3 left it and with nothing tuned, comes out as number {{mine["rank"]}} of {{mine["of"]:,}}. The
# fastest is `{{best["plan"]}}`.
#
# By this stack's constants our plan needs {{si(ours["step_seconds"], "s")}} a step, a little less
# than the {{si(job.step("split").time, "s")}} of lesson 6.3, and the fastest
# {{si(best["step_seconds"], "s")}}. Where does the difference come from?

# %% tags=["holds"]
assert 0.8 < ours["step_seconds"] / job.step("split").time < 1, "a little"
assert best["step_seconds"] < 0.95 * ours["step_seconds"], "and the fastest"

# %% tags=["figure"]
names = [n for n in ours["terms"] if max(ours["terms"][n], best["terms"].get(n, 0)) > 0.1]
names.sort(key=lambda n: -abs(ours["terms"][n] - best["terms"].get(n, 0)))
figure(
    Chart(
        Axis("seconds of a step", domain=(0, 12)),
        Axis(scale="category", categories=[f"{n}, {who}" for n in names for who in ("ours", "best")]),
        [
            Bars([f"{n}, ours" for n in names], [ours["terms"][n] for n in names], label="ours",
                 color="orange"),
            Bars([f"{n}, best" for n in names], [best["terms"].get(n, 0.0) for n in names],
                 label="best", color="blue"),
        ],
        height=420,
    ),
    caption="Where the step goes, in our plan and in the fastest, the largest difference first. They"
    " compute nearly the same; ours waits for its tensor groups. (Memory is what passes through HBM"
    " between products, uneven what the fullest stage has beyond its share.)",
    alt="Pairs of bars for each part of a step. Compute is nearly alike; tensor traffic is long in"
    " ours and short in the best; sends between stages are the other way round.",
)  # fmt: skip

# %% tags=["holds"]
computes = ours["terms"]["compute"], best["terms"]["compute"]
assert abs(computes[0] / computes[1] - 1) < 0.05, "compute nearly the same"
assert ours["terms"]["tensor"] > 2.5 * best["terms"]["tensor"], "its tensor groups"
assert best["terms"]["pipeline"] > ours["terms"]["pipeline"], (
    "sends between stages are the other way"
)

# %% tags=["setup"]
from lightspeed_models.llm import decoder

megatron, bare, turns = stack("megatron_h100"), job.step("split").tensor, job.SEQUENCES // 2
layers, exposed = decoder(job.MODEL).depth / job.PIPELINE, (1 - megatron.overlap) * bare
starts = 8 * layers * turns * megatron.launch

# %% [markdown]
# In lesson 6.2 you learned that no batch pays for tensor parallelism's traffic, so you kept it
# inside the node. That was right but not enough, because it isn't free there either. Eight ways add
# up activations over NVLink four times a layer, which costs {{si(ours["terms"]["tensor"], "s")}} a
# step. {{best["degrees"]["tensor"]}} ways leave {{si(best["terms"]["tensor"], "s")}} of that, for two
# reasons. There are twice as many replicas, so each has half the sequences to add up; and a ring of four
# sends less of each than a ring of eight. Their wider products run a little faster, too.
#
# (Lesson 6.3 counted {{si(bare, "s")}} for the same bytes. It had everybody wait for all of them; Megatron
# cuts an exchange into pieces and sends these behind the product that they feed, which hides
# {{megatron.overlap:.0%}} of the time by these constants. That leaves {{si(exposed, "s")}}. And each of
# the eight exchanges in {{layers:.0f}} layers and {{turns}} micro-batches has to be started, which adds
# {{si(starts, "s")}}.)
#
# Why had you taken eight? To save memory, and there was memory to spare:
# {{si(ours["memory_bytes"], "byte")}} of {{si(anew["capacity"], "byte")}}. So the best plan takes fewer
# tensor ways, and fills more of the card. It pays for that between stages, where each rank now sends on
# a quarter of an activation instead of an eighth, and sends it twice, once for each of its two chunks.

# %% tags=["holds"]
assert ours["terms"]["tensor"] > 0.1 * ours["step_seconds"], "it isn't free there either"
assert abs((exposed + starts) / ours["terms"]["tensor"] - 1) < 1e-6, "has to be started, which adds"
assert (
    best["degrees"]["tensor"] < ours["degrees"]["tensor"]
    and best["memory_bytes"] > 0.7 * anew["capacity"]
), "takes fewer tensor ways"
assert best["terms"]["pipeline"] > ours["terms"]["pipeline"] and best["degrees"]["chunks"] == 2, (
    "once for each of its two chunks"
)
assert (best["degrees"]["tensor"], ours["degrees"]["tensor"]) == (4, 8), "instead of an eighth"
assert best["degrees"]["data"] == 2 * ours["degrees"]["data"], (
    "each has half the sequences to add up"
)
assert 1.02 < ours["terms"]["compute"] / best["terms"]["compute"] < 1.1, "run a little faster, too"

# %% [markdown]
# Could you have found that without a planner? Nearly. Take your plan, change one thing, and let the
# rest follow:

# %% tags=["figure"]
from lightspeed_tools.plan import one_away, phrases

asked = phrases.plan_of("dp2 tp8 pp4", job.GPUS, job.SEQUENCES)
near = one_away.one_away(job.planning(), asked)
NAMES = {"tensor": "tensor ways", "pipeline": "stages", "context": "context ways",
         "micro_size": "sequences in a micro-batch"}  # fmt: skip
moves = {(m["axis"], m["value"]): m["change"] for m in near if "change" in m}
slower = job.explained(best["plan"].replace("selective", "full"))["yours"]
table(
    [[f"{NAMES[axis]}: {getattr(asked, axis)} → {value}", f"{change:+.0%}"]
     for (axis, value), change in sorted(moves.items(), key=lambda move: move[1])],
    ["one move from ours", "time of a step"],
    caption="Below zero is faster. Two moves help, and the fastest plan makes both.",
)  # fmt: skip

# %% tags=["holds"]
helps = {move for move, change in moves.items() if change < 0}
assert helps == {("tensor", 4), ("micro_size", 2)}, "Two moves help"
assert best["degrees"]["tensor"] == 4 and "mbs2" in best["plan"], "makes both"

# %% [markdown]
# By hand you go in this order. **Make it fit**, the cheapest first: ZeRO's first stage and selective
# recomputing, which take hardly any time, then tensor ways inside the node, then stages. Recompute
# everything last: on the fastest plan that alone would turn {{si(best["step_seconds"], "s")}} into
# {{si(slower["step_seconds"], "s")}}. **Give back what you didn't need**: memory that is left over buys
# fewer ways or a larger micro-batch. **Then look at the longest wait.** Tensor traffic wants fewer tensor ways; a
# bubble wants more micro-batches or chunks; gradients that don't hide want fewer replicas or a
# larger batch. Stop when no single move helps.
#
# ## How far would you trust it?
#
# Not to the last second, and how far depends on who runs it. Of NVIDIA's own recipes, which this
# stack was fitted to, four runs in five take between {{runs["low"]:.0%}} and {{runs["high"]:.0%}}
# of what the law says. Others who run Megatron are slower, and PyTorch's FSDP has a law and a
# range of its own ([proof](10_plan_a_run_proof.ipynb#Who-runs-it?)). So expect
# {{si(ends[0], "s")}} to {{si(ends[1], "s")}} a step from the fastest, and
# {{week[0]:.1f}} to {{week[1]:.1f}} days for the run.
#
# But you don't want to know how long one plan takes, you want to know which of two is faster. If the
# law erred on both alike, its errors would cancel, and even a small lead would be safe. Do they? Somebody ran
# hundreds of plans of the same models on the same cluster, so you can look
# ([proof](10_plan_a_run_proof.ipynb#Do-two-plans-err-together?)). There they hardly cancel: what the runner-up took over what
# the favourite took strays from the law by as much as one run does here. Where the law saw up to a tenth
# between the two, its favourite really was faster in about four cases of five. So a lead of a few per
# cent is a bet with good odds, and not an answer.
#
# That is why the answer is a *group*. {{anew["group"]}} plans lie within the range of the best. To choose
# among them you measure: not the first three, which
# differ in a detail and fail together, but three that *differ*. One of them may even be slower
# than the whole group:

# %% tags=["holds"]
assert anew["group"] >= 5, "plans lie within the range of the best"
assert slower["step_seconds"] > 1.2 * best["step_seconds"], "Recompute everything last"
assert ends[0] < best["step_seconds"] < ends[1], "a step from the fastest"
assert run_class("megatron").centre > run_class("nvidia").centre, "who run Megatron are slower"
from lightspeed_models.evidence.pairings import training
from lightspeed_models.evidence.sets import dataset
from lightspeed_tools.plan.followed import against_pick

sweep = training.sweep(dataset("training_sweep"))
law, took = against_pick(sweep.where(training.clean(sweep.rows)), 1.1)
strayed = sorted(took / law)
ninth = strayed[int(0.9 * len(took))] / strayed[int(0.1 * len(took))]
assert len(took) > 100 and ninth > runs["high"] / runs["low"], "strays from the law by as much as one run"
assert 0.75 < (took > 1).mean() < 0.85, "really was faster in about four cases of five"

# %% tags=["figure"]
table(
    [[one["plan"], " to ".join(si(end, "s") for end in one["range_seconds"]),
      si(one["memory_bytes"], "byte"), "; ".join(one["extrapolated"]) or "–"]
     for one in anew["to_measure"]],
    ["measure these", "a step", "memory", "outside what was measured"],
    caption="Three good plans of different kinds. The last column says where the law had no run to"
    " learn from.",
)  # fmt: skip

# %% tags=["holds"]
kinds = {(one["degrees"]["tensor"], one["degrees"]["pipeline"]) for one in anew["to_measure"]}
assert len(kinds) == 3, "Three good plans of different kinds"

# %% tags=["setup"]
spread = job.explained("dp64 mbs8 zero3 full")
two, hidden = anew["to_measure"][1]["step_seconds"], spread["yours"]
contention = megatron.contention

# %% [markdown]
# The second has no pipeline. The law puts it {{two / best["step_seconds"] - 1:.0%}} behind, outside of the
# group, so why measure it? Because what slows one plan may spare another: where stages stall, this one
# doesn't. And ours, from lesson 6.3? It is in the group, but it isn't among the three, since its tensor
# ways are those of the second and its pipeline is that of the first.
#
# And the plan that broke in lesson 6.2, spread over all GPUs with ZeRO 3? In lesson 6.3 it
# recomputed everything to fit several sequences at a time, so a gathered layer met enough tokens,
# and it tied with our split. Here it takes {{si(hidden["step_seconds"], "s")}}, because what is
# hidden isn't free: arithmetic slows down while weights travel behind it. In published runs of a
# framework that always gathers its weights, that cost about {{contention:.0%}} of the time they
# travelled.

# %% tags=["holds"]
assert anew["to_measure"][1]["degrees"]["pipeline"] == 1, "The second has no pipeline"
assert two > ends[1] > ours["step_seconds"], "outside of the group"
assert ours["degrees"]["tensor"] == anew["to_measure"][1]["degrees"]["tensor"], "are those of the second"
assert ours["degrees"]["pipeline"] == best["degrees"]["pipeline"], "its pipeline is that of the first"
assert hidden["step_seconds"] > 1.1 * ours["step_seconds"], "because what is hidden isn't free"
assert 8 * job.SEQUENCE > job.tokens_to_hide() > job.SEQUENCE, "met enough"

# %% [markdown]
# ## What would change it?
#
# The best plan is the best for *this* cluster, and the useful question is what it is sensitive to.

# %% tags=["figure"]
rate, fast = anew["tokens_per_second"], job.planned_anew("infiniband_ndr")
table(
    [[c["what"], f"{c['tokens_per_second'] / rate - 1:+.1%}", c["plan"]] for c in anew["changes"]],
    ["change", "tokens a second", "the best plan then"],
    caption="What the same GPUs would do with more of something, planned anew each time.",
)

# %% [markdown]
# Twice the network would buy you no more than twice the batch does, and you get the batch for
# nothing if the loss allows it. (Chapter 7 found the network worth a lot on {{job.OFFERED}} GPUs
# with *our* plan. A plan and a network are chosen together.) With ports four times as fast,
# fewer stages win, since then it is cheap to sum the gradients of more replicas:
# {{fast["best"]["plan"]}}, in {{si(fast["best"]["step_seconds"], "s")}}.

# %% tags=["holds"]
gains = {c["what"]: c["tokens_per_second"] / rate - 1 for c in anew["changes"]}
assert gains["twice the network"] <= 1.05 * gains["twice the batch"], "no more than twice the batch"
fewer = fast["best"]["degrees"]["pipeline"] < best["degrees"]["pipeline"]
assert fewer and fast["best"]["degrees"]["data"] > best["degrees"]["data"], "fewer stages win"

# %% tags=["setup"]
record = find("llama3_record")  # of its training, as chapter 6 has it
effective = find("meta_roce").effective

# %% [markdown]
# ## They chose this: why?
#
# The same arithmetic reads other people's plans. DeepSeek-V3 was trained with no tensor parallelism
# at all, and now you can say why: most of its weights are experts, which are spread over GPUs
# without cutting a layer; its GPUs had NVLink cut to less than half; and its pipeline hid what
# traffic was left. Llama 3 405B took eight tensor ways, because a stage of it needs them to fit.
# Neither is a rule for your cluster.
#
# What the front doesn't show is what happens on the way. In {{record.length / 86400:.0f}} days on
# sixteen thousand GPUs Meta counted {{record.interruptions:.0f}} interruptions, and only
# {{record.planned:.0f}} of them were planned. Say that a save takes a minute and a restart ten,
# and that you save at the interval of lesson 6.3, $\sqrt{2 \delta M}$ for a save of $\delta$ and a time $M$
# between failures:

# %% tags=["holds"]
assert record.planned + record.unexpected == record.interruptions > 9 * record.planned, (
    "interruptions, and only {{record.planned:.0f}} of them were planned"
)

# %%
between = observed_mtbf(record.length, record.unexpected)
write, restart = 60.0, 600.0  # assumed
lost = stretch(young_interval(write, between), write, between, restart) - 1
si(between, "s"), si(lost, "%", 2)

# %% [markdown]
# With these the run takes {{lost:.0%}} longer than its steps. That is what two assumed times make of
# the record. Meta reports that more than {{effective:.0%}} of the time was effective, so the whole
# took at most {{1 / effective - 1:.0%}} longer: they saved or restarted faster than we assumed, and
# faster still is worth money. Every plan pays something here, and one that
# needs every last GPU also waits for each repair. So compare finished tokens a day, restarts
# included. On your {{job.GPUS}} GPUs that is a rounding error; on sixteen thousand it isn't.
#
# ## Decide

# %% tags=["holds"]
assert 0 < lost < 0.3, "longer than its steps"
quick = stretch(young_interval(write / 2, between), write / 2, between, restart / 2) - 1
assert quick < 1 / effective - 1 < lost, "saved or restarted faster than we assumed"

# %%
ask("planning.micro_batch", seed="again")

# %%
ask("planning.buy_what", seed="second")

# %%
ask("planning.which_three")

# %%
ask("planning.front", seed="again")

# %% [markdown]
# ## The answer
#
# **Was it the best plan?** Yes, no, or can't tell? A *no* needs a difference that is wider than the law's
# range, and a *yes* needs every other plan to lie outside it. Here the best takes
# {{best["step_seconds"] / ours["step_seconds"]:.0%}} of our plan's time, {{anew["cost"]["days"]:.1f}} days
# in place of {{ours["step_seconds"] / best["step_seconds"] * anew["cost"]["days"]:.1f}}, and ours lies
# inside the range of the best. So you **can't tell**: by the law ours is number
# {{mine["rank"]}} of {{mine["of"]:,}}, a bet of about four to one is against it, and an hour of each would
# say more.
#
# **Has anybody measured it for you?** Nearly. Look for the nearest measured run before you rent the hour.
# NVIDIA published one of the same model, on as many H100, with as many tokens in a step:
# {{like["plan"]["tensor"]}} tensor ways, {{like["plan"]["pipeline"]}} stages and
# {{like["plan"]["context"]}} context ways, for sequences four times as long. It took
# {{si(like["measured_seconds"], "s")}}, and the law says {{si(like["predicted_seconds"], "s")}}. That is
# the split of the fastest, and the law is good there. But its network is four times as fast, and no run
# of ours is among them, so it can't decide between the two.
#
# **What was wrong with it?** Nothing that you could have seen without counting. It saved memory
# that nobody needed, and paid for that in traffic.
#
# **What would you do on Monday?** Measure three plans that differ, and ours beside them, an hour each; take the one that
# wins on your cluster; and write down which of its numbers were outside what anyone had measured
# (**extrapolation**).

# %% tags=["holds"]
assert best["range_seconds"][0] < ours["step_seconds"] < best["range_seconds"][1], (
    "inside the range of the best"
)
assert ours["memory_bytes"] < 0.6 * anew["capacity"], "It saved memory that"
from lightspeed.catalog import link
from lightspeed_models.evidence.pairings.recipes import runs_of
from lightspeed_models.evidence.sets import dataset

(same,) = (r for r in runs_of(dataset("dgx_cloud"))[1] if r.time == like["measured_seconds"])
assert same.plan.sequences * same.sequence == tokens and same.sequence == 4 * job.SEQUENCE, (
    "as many tokens in a step"
)
assert like["gpus"] == job.GPUS and abs(like["error"]) < anew["stack_error"], (
    "the law is good there"
)
assert same.machine.network == 4 * link(job.NETWORK).bandwidth, "its network is four times as fast"
assert all(like["plan"][axis] == best["degrees"][axis] for axis in ("tensor", "pipeline")), (
    "the split of the fastest"
)

# %% [markdown] tags=["takeaway"]
# - *Where memory is left over, try fewer tensor ways: each of them costs traffic.*
# - *The best plan is a group as wide as the law's range: measure three that differ.*
# - *A plan and a network are chosen together, so ask what would change the answer before you buy.*

# %% [markdown] tags=["card"]
# | symbol | meaning | unit | for the job |
# |---|---|---|---|
# | $\binom{m + 2}{2}$ | ways to split $2^m$ GPUs in three | – | {{len(ways)}} |
# | predicted memory $\le$ four fifths of the card | what a plan may take | bytes | {{si(0.8 * anew["capacity"], "byte")}} |
# | time $\le$ the slow end of the best's range | the group that can't be told apart | s | {{anew["group"]}} plans |
# | $\sqrt{2 \delta M}$ | work between two saves | s | {{si(young_interval(write, between), "s")}} in Meta's record |

# %% [markdown]
# ## One reading
#
# A job misses its plan, and its profile shows that more time goes to products of matrices than the
# plan has for them. One of three suspects would have shown up in another row.

# %%
bench("10")

# %% [markdown]
# ## In your own framework
#
# What do you type to run `{{best["plan"]}}`? In Megatron-LM, or in torchtitan:
#
# ```sh
# --tensor-model-parallel-size {{best["degrees"]["tensor"]}} --sequence-parallel \
# --pipeline-model-parallel-size {{best["degrees"]["pipeline"]}} --num-virtual-stages-per-pipeline-rank {{best["degrees"]["chunks"]}} \
# --micro-batch-size {{best["degrees"]["micro_batch"]}} --global-batch-size {{job.SEQUENCES}} \
# --{{find("megatron").zero}} --recompute-activations    # zero1, selective; data ways are what is left
#
# --parallelism.tensor_parallel_degree {{best["degrees"]["tensor"]}} \
# --parallelism.pipeline_parallel_degree {{best["degrees"]["pipeline"]}} --parallelism.pipeline_parallel_schedule Interleaved1F1B \
# --parallelism.data_parallel_shard_degree {{best["degrees"]["data"]}}   # shards weights too: another law
# ```
#
# (Flags of {{find("megatron").name}}, {{find("megatron").release}}, and {{find("torchtitan").name}},
# {{find("torchtitan").release}}.) For a plan of your own, take the `config.json` beside your weights, and say
# your cluster in a line of `cluster.json`; a network may also be said as `"nic": "4x100G"`:
#
# ```json
# {"gpu": "{{job.GPU}}", "gpus": {{job.GPUS}}, "network": "{{job.NETWORK}}"}
# ```
#
# ```sh
# lightspeed plan config.json --cluster cluster.json \
#   --batch {{tokens}} --sequence {{job.SEQUENCE}}
# lightspeed plan config.json --cluster cluster.json \
#   --batch {{tokens}} --sequence {{job.SEQUENCE}} --explain "{{ours["plan"]}}"
# ```
#
# You get the group, the three to measure and the front; then your own step part by part, and each
# move away from it. `--stack fsdp` speaks for PyTorch, and with `--measured` you hear how what you
# measured compares, and what may explain it. `lightspeed fit-stack` makes a stack of a few runs of yours.
#
# [Exercises](../exercises/10_plan_a_run.ipynb) · [Proof](10_plan_a_run_proof.ipynb) · Next: [read a
# profile](11_profile.ipynb). Further: Narayanan and others (2021), *Efficient Large-Scale Language Model Training on
# GPU Clusters*; Isaev and others (2023), *Calculon*; the *Ultra-Scale Playbook* (2025).
