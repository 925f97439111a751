# %% [markdown]
# # 11. Reading a profile: the proof
#
# The [lesson](11_profile.ipynb) turns a profile into an account, and says what a repair gains by
# running the step again without the cause. Here both are held against a count by hand and against
# jobs whose truth is known, and the course's own job against chapter 6's law.
#
# ## What is claimed, and how well it holds

# %%
import random

from lightspeed_course import job, si, table
from lightspeed_course.incidents import training, training_job, training_trace
from lightspeed_course.incidents.incident import incident_of
from lightspeed_tools.trace.account import parts
from lightspeed_tools.trace.cpu import own_times, recorded
from lightspeed_tools.trace.trials import MENDS, counted, drawn_events, summed, trials

# %%
SETS, EACH = 200, 4
rng = random.Random(11)
sets = [drawn_events(rng) for _ in range(SETS)]
wrong = sum(summed(parts(events)) != counted(events) for events in sets)
SETS, wrong

# %%
held = list(trials(EACH))
errors = sorted(abs(t.told / t.truth - 1) for t in held)
len(errors)

# %%
_, account = job.profile()
spread = job.step()
off = account.span * 1e-9 * job.SEQUENCES / job.GPUS / spread.time - 1
f"{off:+.1%}"

# %% tags=["figure"]
table(
    [
        ["the account adds up", f"{SETS} sets of kernels", f"{wrong} wrong", "", "names of kernels"],
        ["the replay closes", f"{len(held)} made jobs", "",
         f"{max(abs(t.closure) for t in held):.2%}", "waits that the file lacks"],
        ["a gain by replay", f"{len(held)} made jobs", f"{errors[len(errors) // 2]:.1%}",
         f"{errors[-1]:.1%}", "waits that held nothing up"],
        ["the job, event by event", "chapter 6's law", "", f"{abs(off):.1%}", "head and optimizer"],
    ],
    ["claim", "held against", "median error", "worst", "where it fails"],
)  # fmt: skip

# %% [markdown]
# Made jobs are the maker's idea of a run, and so is each replay; they share what we think a stream
# is. What they don't share is code: the maker's clock runs forward through the program, and the
# replay knows the events alone. Public profiles of real machines close less well, and some not at
# all; then `lightspeed trace` says no gain.
#
# ## The account against a brute-force count
#
# This tests the lesson's sentence that the four parts are the span. Kernels are drawn at random on
# a short axis, of all three kinds, and each nanosecond is asked which of them run. Of {{SETS}} sets,
# {{wrong}} came out otherwise.

# %% tags=["holds"]
assert wrong == 0, "came out otherwise"

# %%
events = sets[3]
events, summed(parts(events)), counted(events)

# %% [markdown]
# What the count can't test is which kernel is communication. That goes by names: NCCL, RCCL,
# DeepEP, NVSHMEM and others. A kernel that a collective launched and no rule knows is named in the
# report, and counted as compute.
#
# ## How far a replay may be trusted
#
# This tests the lesson's "at most". Each fault is put into {{EACH}} jobs of two ranks, drawn until
# the fault is worth at least a twentieth of the step. Told over true gain:

# %% tags=["holds"]
ratio = {f: [t.told / t.truth for t in held if t.fault == f] for f in MENDS}
assert all(0.99 < r < 1.08 for of in ratio.values() for r in of), "Told over true gain"

# %% tags=["figure"]
rows = []
for fault in MENDS:
    ratios = sorted(t.told / t.truth for t in held if t.fault == fault)
    gains = [t.truth for t in held if t.fault == fault]
    rows.append(
        [fault.replace("_", " "), f"{min(gains):.2f} to {max(gains):.2f}",
         f"{ratios[0]:.3f}", f"{ratios[-1]:.3f}"]
    )  # fmt: skip
table(rows, ["fault", "true gain", "told over true, least", "most"])

# %% [markdown]
# What is told is near the truth or a little above. It's above most for communication that nothing
# hides: the replay takes the wait away whole, and in truth some of it can't be hidden, since the
# last layer's gradients have nothing left to hide under. And it must be above where a wait left no
# mark. `benchmarks/trace.py` draws two hundred larger jobs of four ranks, and pairs of faults.
#
# ### Where it breaks
#
# A replay whose span differs from the recorded one by more than a few per cent has a wait in it
# that the file doesn't tell, and no gain is said. With files of some ranks only, a slow rank can't
# be told from a slow link. Sends and receives, as in a pipeline, keep their waits, since the file
# doesn't say between which ranks they go. A launch that the file lacks is put as early as its
# neighbours allow. Several devices in one file are accounted for and not replayed.
#
# ## The job, event by event
#
# This tests the lesson's sentence that the profile knows nothing of the law. The law of chapter 6
# adds terms; the profile is written by layers that wait for their weights, one after the other.

# %%
by_law = {"compute": spread.compute + spread.memory, "exposed": spread.data}
by_event = {"compute": account.compute, "exposed": account.exposed_communication}
table(
    [[n, f"{by_law[n] / spread.time:.1%}", f"{by_event[n] / account.span:.1%}"] for n in by_law],
    ["part of the step", "by the law", "by events"],
)

# %% [markdown]
# The span differs by {{abs(off):.1%}}: the layers alone are less than the model, which has its
# vocabulary, too.
#
# ## The room's files
#
# The incident room sells profiles of jobs with hundreds of GPUs. Its simulator is the law of a
# step, and the files must say the same. For each cause, the span of rank 0 over the job's own time:

# %%
rows = []
for cause in training.CAUSES:
    case = incident_of("proof", training.TRAINING, cause).job
    ends = [
        e["ts"] + e["dur"] for e in training_trace.ranks(case)[0].events if e["cat"] == "kernel"
    ]
    begins = training_trace.BEGIN / 1000
    rows.append([cause.id, f"{(max(ends) - begins) * 1e-6 / training_job.time(case):.5f}"])
table(rows, ["cause", "span over the job's time"])

# %% [markdown]
# They do, to within a ten-thousandth.

# %% tags=["holds"]
assert all(abs(float(row[1]) - 1) < 1e-4 for row in rows), "They do, to within"

# %%
kept = recorded()
told = kept["recorded"]

# %% [markdown]
# ## Measure it here
#
# This tests the lesson's fifth lie on a machine that you have: no GPU is needed. Decide first. A
# small network of a dozen layers takes its training step on one core. How much longer does the step
# take while the profiler watches? Write it down, and run this where torch is installed:
#
# ```python
# import statistics, time, torch
# from torch.profiler import ProfilerActivity, profile
#
# torch.set_num_threads({{told["threads"]}})
# n = {{told["width"]}}
# layers = [m for _ in range({{told["layers"]}}) for m in (torch.nn.Linear(n, n), torch.nn.ReLU())]
# model, x = torch.nn.Sequential(*layers), torch.randn({{told["batch"]}}, n)
#
# def seconds():
#     began = time.perf_counter()
#     model(x).square().mean().backward()
#     return time.perf_counter() - began
#
# plain = statistics.median(seconds() for _ in range(n))
# with profile(activities=[ProfilerActivity.CPU], record_shapes=True):
#     watched = statistics.median(seconds() for _ in range(n))
# print(watched / plain)
# ```
#
# The course has no torch, so here is what `benchmarks/cpu_profile.py` recorded once, on a shared
# machine.

# %%
told["torch"], si(told["plain"], "s"), si(told["profiled"], "s")

# %% [markdown]
# Watched, the step took {{told["profiled"] / told["plain"]:.1f}} times as long. Layers this small
# are launch-bound, so nearly all of what the profiler costs is on the step's own path. Here is
# where the host's time went, each operator without those that it calls:

# %% tags=["holds"]
assert told["profiled"] > 1.3 * told["plain"], 'Watched, the step took {{told["profiled"] / told["plain"]:.1f}} times as long'

# %%
own = own_times(kept["traceEvents"])
rows = [[name, calls, si(seconds, "s")] for name, (calls, seconds) in list(own.items())[:8]]
table(rows, ["operator", "calls", "time of its own"])

# %% [markdown]
# `lightspeed trace` prints the same table for this file, and says that it has no device: of steps,
# waits and roofs there's nothing to account for. If your ratio is another one, it's because a profiler costs about the same for each operator,
# however long the operator takes. Make the layers wider, and watch the ratio fall.
#
# ## What the model leaves out
#
# Kernels of one GPU slow each other down: a collective takes memory bandwidth and multiprocessors
# from the product beside it, so a product whose collective is gone may be faster than recorded. The
# replay keeps every kernel's own time. Copies over PCIe are counted, and not held to a law. Power
# isn't in the file at all: a step that waits less may run at a lower clock.
#
# ## Further reading
#
# - PyTorch, *torch.profiler*: what is recorded, and what it costs.
# - Meta, *Holistic Trace Analysis*: shares of idle, exposed communication and kernels, by rank.
# - Zhu and others, *Daydream* (2020): what a change to a network would gain, by replaying a trace.
# - Hu and others, *dPRO* (2022): the same over many ranks, with clocks set right.
