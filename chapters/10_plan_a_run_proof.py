# %% [markdown]
# # 10. Plan a run: the proof
#
# The [lesson](10_plan_a_run.ipynb) trusts a law of time and a count of memory with the choice of a
# plan. What would following them have cost, on runs that were really made?

# %% tags=["setup"]
import numpy as np

from lightspeed.catalog import fitted
from lightspeed_course import Axis, Chart, figure, job, Line, Points, residual_chart, table, weigh
from lightspeed_models.evidence.pairings import recipes, training
from lightspeed_models.evidence.sets import dataset
from lightspeed_models.evidence.run_classes import covered, groups_of
from lightspeed_models.stack import run_class
from lightspeed_tools.plan.followed import against_pick, followed, refused
from lightspeed_tools.plan.one_away import moves_of
from lightspeed_tools.plan.phrases import short

# %%
times, memory, tuned, recipe = (
    weigh(k) for k in ("step-expected", "memory-expected", "step-megatron", "step-recipes")
)
sweep = training.sweep(dataset("training_sweep"))

# %% tags=["figure"]
table(
    [
        ["a step, untuned runs", f"{times.all.rows:,}", f"{times.all.median:.0%}",
         "pipelines over many nodes"],
        ["a step, tuned runs on a chip left out", f"{tuned.all.rows:,}", f"{tuned.all.median:.0%}",
         "experts"],
        ["a step of tuned recipes, the model left out", f"{recipe.all.rows:,}",
         f"{recipe.all.median:.0%}", "fp8, and software of another year"],
        ["memory of the fullest GPU", f"{memory.all.rows:,}", f"{memory.all.median:.0%}",
         "the same plan run twice differs by as much"],
    ],
    ["what is claimed", "runs", "median error", "where it fails"],
    caption="Constants are fitted without the model, or without the chip, that they are judged on.",
)  # fmt: skip

# %% [markdown]
# ## Who runs it?
#
# The same plan on the same machines takes longer with one framework than with another, and no
# constant that one publisher's rows set knows of the next. So runs come in classes, and each group
# of rows is judged by constants in which its framework had no part, nor its model where all are
# NVIDIA's.

# %%
NAMES = ("nvidia", "megatron", "pytorch_fsdp", "unnamed")
classes = {name: (run_class(name), groups_of(run_class(name))) for name in NAMES}
ratios = {
    name: np.concatenate([g.measured / g.law for g in own]) for name, (_, own) in classes.items()
}

# %% tags=["figure"]
table(
    [
        [one.title, len(own), f"{len(ratios[name]):,}",
         f"{np.median([np.median(abs(one.centre * g.law / g.measured - 1)) for g in own]):.1%}",
         f"{one.low:.2f} to {one.high:.2f}", f"{covered(one):.0%}"]
        for name, (one, own) in classes.items()
    ],
    ["class", "groups", "runs", "error of a group, median", "four in five, of the law", "held"],
    caption="What was measured over what the law says. Groups weigh the same, and none of them has a"
    " part in its own prediction.",
)  # fmt: skip

# %% tags=["figure"]
drawn = [(name, one, np.concatenate([one.centre * g.law for g in own]),
          np.concatenate([g.measured for g in own]))
         for name, (one, own) in classes.items() if name != "unnamed"]  # fmt: skip
span = [0.1, 200]
figure(
    Chart(
        Axis("measured step", "s", domain=span, scale="log"),
        Axis("predicted step", "s", domain=span, scale="log"),
        [Line(span, span, label="the same", color="grey"),
         *(Points(took, law, one.title, color=color, size=4)
           for (_, one, law, took), color in zip(drawn, ("green", "orange", "blue"), strict=True))],
        height=420,
    ),
    caption="Each run by the law of its class, the framework or the model left out.",
    alt="Points along the line of equal times, from a tenth of a second to minutes, in three colours.",
)  # fmt: skip

# %% [markdown]
# Each range holds at least three quarters of its rows, and no class that is named is as wide as
# that of nobody: say who runs it, and the range shrinks. All of these are runs that somebody chose
# to publish, which tend to be well tuned; of runs that nobody shows the ranges know nothing.

# %% tags=["holds"]
assert all(covered(one) >= 0.75 for one, _ in classes.values()), "three quarters of its rows"
wide = {name: one.high / one.low for name, (one, _) in classes.items()}
assert all(wide[name] < wide["unnamed"] for name in NAMES[:3]), "that of nobody"

# %% [markdown]
# ## What does following it cost?
#
# In the Ultra-Scale sweep somebody ran {{len(sweep.rows):,}} plans of several models on up to
# sixty-four nodes, so for each model and number of nodes we know which plan was really the best.
# Let the law choose among the same plans, with its memory *predicted*, and count a plan that failed
# as zero.

# %%
clean = followed(sweep.where(training.clean(sweep.rows)))
every = followed(sweep)
caught, false = refused(sweep)
later, fewer = refused(sweep, 0.86)  # assumed

# %% tags=["figure"]
table(
    [
        [name, len(one), f"{one.mean():.1%}", f"{np.quantile(one, 0.1):.1%}", f"{best.mean():.1%}"]
        for name, (one, best) in (("clean", clean), ("all", every))
    ],
    ["runs", "cells", "the first pick, mean", "tenth from below", "best of three"],
    caption="Tokens a second of the pick over those of the best plan that was run. Clean leaves out"
    " rows whose own repetition differs too much, by a rule stated before fitting.",
)

# %% [markdown]
# **Where it breaks.** Over all rows the first pick is far from the best in some cells, because a
# pipeline over sixty-four nodes stalled there and nothing that the law knows says so. Three picks
# that differ save most of it: {{every[1].mean():.0%}} in the mean instead of
# {{every[0].mean():.0%}}. Of the plans that failed, memory and two rules refuse {{caught:.0%}}, and
# {{false:.1%}} of those that ran. (A pipeline can't have more stages than layers, and nanotron's
# asks for nearly as many micro-batches.) If a plan might fill a little more of the card, it would
# be {{later:.0%}} and {{fewer:.1%}}, but then more of the first picks fail.

# %% tags=["holds"]
assert every[1].mean() > every[0].mean() + 0.05, "Three picks that"
assert np.quantile(every[0], 0.1) < 0.6, "far from the best in some"
assert caught > 15 * false, "Of the plans that failed"

# %% [markdown]
# ## Do two plans err together?
#
# The lesson says that errors of two plans hardly cancel. In the clean rows of the sweep, hold every other
# plan of the same model, nodes and batch against the one that the law picks:

# %%
clean_sweep = sweep.where(training.clean(sweep.rows))
leads = {}
for lead in (1.05, 1.1, 1.2):  # assumed: how far the law may put a plan behind its pick
    law, took = against_pick(clean_sweep, lead)
    leads[lead] = len(law), *np.quantile(took / law, (0.1, 0.5, 0.9)), (took > 1).mean()

# %% tags=["figure"]
table(
    [[f"{lead - 1:.0%}", pairs, f"{low:.2f} to {high:.2f}", f"{middle:.2f}", f"{wins:.0%}"]
     for lead, (pairs, low, middle, high, wins) in leads.items()],
    ["behind the pick by at most", "pairs", "ratio measured over by the law, four in five", "median", "the pick was faster"],
    caption="Were the errors common to both plans, the third column would hold nothing but ones.",
)  # fmt: skip

# %% [markdown]
# So they are not common, and the wider the lead, the safer the bet. These are runs of nanotron, not of Megatron, and we know no such sweep of Megatron.

# %% tags=["holds"]
assert all(high / low > 1.2 for _, low, _, high, _ in leads.values()), "So they are not common"
chances = [wins for *_, wins in leads.values()]
assert chances == sorted(chances) and chances[0] > 0.5, "the wider the lead, the safer the bet"

# %% [markdown]
# ## They chose this: why?
#
# NVIDIA tuned these runs by hand. Move each of them along one axis, with the rest as well as it can
# be: a move that would have been worse is a reason for the choice, and one that the law thinks
# better is either its error or something that the table doesn't say.

# %%
rows = dataset("dgx_cloud")
numbers, runs, _ = recipes.runs_of(rows)
wide = [run for i, run in zip(numbers, runs, strict=True) if rows["precision"][i] == "BF16"]
chosen = {run.name: (run, moves_of(run)) for run in reversed(wide)}
len(chosen)

# %%
changes = [m["change"] for _, moves in chosen.values() for m in moves if "change" in m]
better = sum(change < -0.005 for change in changes)
len(changes), better


# %% tags=["figure"]
def said(moves):
    """The moves along an axis in a cell."""
    return "; ".join(
        f"{m['value']}: {m['change']:+.0%}" if "change" in m else f"{m['value']}: {m['why']}"
        for m in moves
    )


table(
    [
        [name, run.plan.gpus, short(run.plan).removesuffix(" zero1 selective"),
         *(said([m for m in moves if m["axis"] == axis]) for axis in ("tensor", "pipeline", "context"))]
        for name, (run, moves) in sorted(chosen.items())
    ],
    ["run, bf16", "H100", "chosen", "tensor ways", "stages", "context ways"],
    caption="Half and twice as many ways, and how much longer the law says that a step would take.",
)  # fmt: skip

# %% [markdown]
# Of {{len(changes)}} moves that are possible the law thinks {{better}} better, and by
# {{-min(changes):.1%}} at most, which is less than its own error. Twice the tensor ways cost all of
# them something, and half of them make activations be computed again, or don't divide: tensor ways
# are where memory puts them.

# %% tags=["holds"]
assert 0 < better < len(changes) / 10, "moves that are possible"
assert -min(changes) < fitted("stacks")["megatron_h100"]["error"], "than its own error"
pairs = [(run.plan.tensor, m) for run, ms in chosen.values() for m in ms if m["axis"] == "tensor"]
wider = [m["change"] for now, m in pairs if m["value"] > now]
assert len(wider) == len(chosen) and min(wider) > 0, "Twice the tensor ways cost all"
fewer_ways = [m["why"] for now, m in pairs if m["value"] < now]
assert all("again" in why or "divide" in why for why in fewer_ways), "or don't divide"

# %% tags=["setup"]
anew = job.planned_anew()

# %% [markdown]
# ## Why can so few run?
#
# The lesson counts {{anew["plans"]:,}} plans and says that {{anew["passing"]:,}} can run. Each of
# the others is counted under the first rule that it breaks:

# %% tags=["figure"]
table(
    [*([anew["rules"][rule], f"{n:,}"] for rule, n in anew["refused"].items()),
     ["**can run**", f"**{anew['passing']:,}**"]],
    ["first rule that a plan breaks", "plans"],
    caption="The numbers add up, and no plan is left out without a reason.",
)  # fmt: skip

# %% tags=["holds"]
assert anew["passing"] + sum(anew["refused"].values()) == anew["plans"], "The numbers add up"

# %% [markdown]
# ## How well does a step hold?


# %%
def cloud(found, what):
    """What is expected of each run over what was measured."""
    half = f"{what}, expected over measured: half of them within {found.all.median:.0%}."
    return figure(
        residual_chart(found, height=300), half, f"A cloud around the right answer: {what}."
    )


cloud(times, "A step of every untuned run")

# %%
cloud(tuned, "A step of every tuned run, on a chip that was left out")

# %% [markdown]
# ## How well does memory hold?

# %%
cloud(memory, "Memory of the fullest GPU of every run")

# %% [markdown]
# ## What the model leaves out
#
# - **The optimizer's curse.** Whoever takes the best of tens of thousands of predictions takes one whose
#   error is kind. So the gain that the planner claims over a plan of yours is too large by about the
#   law's own error; the group and the three are there for that.
# - **Small experts** in the stack for H100s: what a layer waits for its host comes from two models and newer
#   software halves it, so there the error is {{fitted("stacks")["megatron_h100_experts"]["error"]:.0%}} and more.
# - **The cluster's state**, unless you tell it (`--state`): one sick node costs more than most choices.
# - **Data loading, evaluation and the host's own pauses.**
#
# ## Measure it here
#
# A few runs of your own make a stack of your own, and published ones tell how far the law is off:
#
# ```sh
# lightspeed plan --check published.json
# ```
#
# ## Further reading
#
# Tazi and others, *The Ultra-Scale Playbook* (2025), for the sweep. Narayanan and others (2021).
# Isaev and others, *Calculon* (2023).
