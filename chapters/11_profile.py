# %% [markdown]
# # 11. Reading a profile
#
# A training step is slower than you think it should be, so somebody records a profile. It shows a
# wall of coloured bars, and most of them say *communication*. "Hide that," says the meeting, "and
# we're more than twice as fast." Two weeks later the gradients travel in another order, the bars
# have moved, and the step takes as long as before.
#
# What did the profile say, and what did you read into it? You'll learn to turn the bars into an
# account that adds up, to know five ways in which it lies, and to say what a repair gains before
# anybody spends two weeks on it. Half an hour; you need chapters 2, 3 and 6.2. The evidence is on
# the [proof page](11_profile_proof.ipynb).

# %% tags=["setup"]
from lightspeed_course import ask, bench, figure, job, predict, reveal, si, table
from lightspeed_course.explorers.profile import FAULTS, MENDS, by_share, explore_profile, read
from lightspeed_models.training_runs import fit_share
from lightspeed_tools.trace.account import parts
from lightspeed_tools.trace.replay import replay
from lightspeed_tools.trace.tracks import tracks

# %%
job.sheet(until="11")

# %% [markdown]
# **First, one from lesson 3.** Keep the answer in mind; a profile will make you doubt it.

# %%
ask("scaling.one_part", seed="again")

# %% [markdown]
# ## Guess first

# %%
predict("profile.slow_rank", ..., seed="guess")

# %% [markdown]
# ## What is in a profile?
#
# A GPU runs *kernels*, one after the other on a *stream*, and two streams at once: products on one,
# say, and NCCL's collectives on another. The host only *launches* them, and runs ahead. A profiler
# writes down when each kernel started and ended, and when the host asked for it; **Nsight
# Systems** and PyTorch's **Kineto** do, and **Perfetto** draws it as a **trace**, with what your
# program names itself (**NVTX** ranges). That's all. The
# rest is your reading.
#
# What you get is a file, and most people look at it in Perfetto (drop it on `ui.perfetto.dev`). Here is
# a real one, as it shows there: the first fifth of a training step of a small network on a CPU.

# %% tags=["figure"]
from lightspeed_course import Axis, Boxes, Chart
from lightspeed_course.explorers.profile import recorded_slices

rows, colors = recorded_slices(), ("grey", "blue", "green", "orange")
ends, deep = max(end for _, end, *_ in rows), 1 + max(depth for *_, depth in rows)
marks = []
for depth in range(deep):
    own = [(a, b, deep - depth - 0.9, deep - depth - 0.1, name * (b - a > 0.0085 * len(name) * ends))
           for a, b, name, d in rows if d == depth]  # fmt: skip
    *sides, names = zip(*own)
    marks.append(Boxes(*sides, "", names, colors[depth % 4], soft=depth == 0))
figure(
    Chart(Axis("time", "s", domain=(0, ends)), Axis(domain=(0, deep)), marks, height=250, bare=True),
    caption="A real profile of the host: time runs to the right, and a box stands below whoever called it."
    " With a GPU, its streams stand under this as tracks of their own.",
    alt="Nested boxes over time. One box fills the first row; below it a row of operators such as"
    " aten::linear, and below those what they call in turn, narrower with each row.",
)  # fmt: skip

# %% tags=["holds"]
assert all(
    any(a <= start and end <= b and d == depth - 1 for a, b, _, d in rows)
    for start, end, _, depth in rows if depth
), "a box stands below whoever called it"

# %% [markdown]
# The words are the operators' own. Put yours beside them with `torch.profiler.record_function("data")`,
# or `torch.cuda.nvtx.range` for Nsight, and you find your code again.
#
# Our job exists on paper, so a simulator writes its profile. Here are the first layers under
# ZeRO-3. Before you look closer: which of the two tracks waits for the other?

# %% tags=["figure"]
trace, account = job.profile()
whole = tracks(trace, account)
first = 6 * job.layer_arrives()
zoomed = Chart(type(whole.x)("time", "s", domain=(0, first)), whole.y, whole.marks, height=170)
figure(
    zoomed,
    caption="The first layers of the job, on one GPU: short blocks of arithmetic, each behind the "
    "weights that it waited for.",
    alt="Two tracks over time. The lower one, communication, is filled from end to end; the upper "
    "one has a short block of compute at the start of each gap.",
)

# %% [markdown]
# ## How do you make it add up?
#
# Take a piece small enough to count. A product runs for eight milliseconds. A collective starts at
# four and ends at eleven. The next product starts at thirteen and ends at twenty.
#
# ```
# compute   ████████     ███████
# sends         ███████
# counted   CCCCCCCCEEEiiCCCCCCC     C compute, E exposed, i idle
# ```
#
# Each character is a millisecond. The kernels' times add up to twenty-two, which is more than the
# twenty that passed, because four of them were hidden under a product. So we count in an order.
# **Compute comes first; of communication only what sticks out of it counts, and of copies only what
# sticks out of both; the rest is idle.** Then the four parts add up to the span, to the nanosecond
# ([proof](11_profile_proof.ipynb#The-account-against-a-brute-force-count)).

# %% tags=["holds"]
ms = 1_000_000
found = parts([(0, 8 * ms, 0), (4 * ms, 11 * ms, 1), (13 * ms, 20 * ms, 0)])
assert 8 + 7 + 7 == 22 and found.end == 20 * ms, "add up to twenty-two, which is more than the twenty that passed"
assert found.communication - found.exposed_communication == 4 * ms, "four of them were hidden"
assert found.compute + found.exposed_communication + found.idle == found.end, "Then the four parts"

# %%
ms = 1_000_000  # a profile counts in nanoseconds
found = parts([(0, 8 * ms, 0), (4 * ms, 11 * ms, 1), (13 * ms, 20 * ms, 0)])
[si(t * 1e-9, "s") for t in (found.compute, found.exposed_communication, found.idle)]

# %%
ask("profile.exposed", seed="chapter")

# %% [markdown]
# ## What does the account not say?
#
# An account that adds up can still mislead you, and it does so in five ways.
#
# **Busy is not fast.** A kernel that crawls along the memory roof fills its track as well as one at
# the peak. Only the work over the time tells them apart, as in chapter 2; profiles have the shapes
# if you ask for them (`record_shapes=True`).
#
# **Communicating may be waiting.** A collective's kernel starts when *its* rank arrives, and then
# spins until the last one does. Look at the same all-reduces on two GPUs, one of which takes half
# as long again to compute as the other:

# %%
run, (fast, slow), truth = read("slow_rank")
rows = [
    [f"GPU {n}", *(si(t * 1e-9, "s") for t in (gpu.compute, gpu.communication))]
    for n, gpu in enumerate((fast, slow))
]
table(rows, ["", "computes", "communicates"])

# %% [markdown]
# The fast GPU seems to have a network problem: it communicates
# {{fast.communication / slow.communication:.1f}} times as long. In truth it has a slow neighbour.
# The shortest kernel of a collective, that of the rank that came last, is the transfer; all the
# rest is waiting. One rank's file can't tell you, so record all of them.

# %% tags=["holds"]
assert fast.communication > slow.communication and fast.compute < slow.compute, "it communicates {{fast.communication / slow.communication:.1f}} times as long"
transfers = sum(meeting.transfer for meeting in run.meetings)
assert abs(transfers / slow.communication - 1) < 0.2, "The shortest kernel of a collective, that of the rank that came last, is the transfer; all the rest"
assert abs((fast.compute + fast.communication) / (slow.compute + slow.communication) - 1) < 0.05, (
    "One rank's file can't tell you, so record all of them"
)

# %% [markdown]
# **Idle isn't always the host's fault.** Under CUDA graphs one launch starts hundreds of kernels.
# The host isn't asked between them, so nothing you do there mends their gaps.
#
# **Tools round.** Some move starts up and ends down to whole microseconds. For kernels of a few
# microseconds, that invents more idle time than there is.
#
# **The profiler is in the picture.** It writes down each operator and each launch, on the host,
# while your step runs. A step that was never short of launches may become so. Time a step
# *without* the profiler first (with a **synchronization** at both ends), and believe a gain on
# the host's side only if both show it
# ([proof](11_profile_proof.ipynb#Measure-it-here)).

# %% tags=["holds"]
from lightspeed_course.content.profile import rounded_idle

assert rounded_idle(1000, 4e-6, 2e-7) > 4 * 1000 * 2e-7, "invents more idle time than there is"

# %%
ask("profile.own_time", seed="h")

# %% [markdown]
# ## Why isn't a share a bound?
#
# In chapter 3 you took a part's share and asked what happens if it takes no time. That was sound,
# because the parts came one after the other. In a profile they overlap. Take out what you see, and
# something else that was hidden under it comes to light; or the part was never what the step waited
# for; or, as with the slow GPU, you see the harm on one rank and the cause on another.
#
# Here are five jobs with one fault each, made by a simulator, so that the truth is known. We take
# the fault's share out of one GPU's own profile, or *replay* the step, which comes next. The slow
# GPU is GPU 1.

# %% tags=["figure"]
told = []
for words, fault in FAULTS.items():
    if fault:
        rebuilt, both, truth = read(fault)
        by_replay = replay(rebuilt) / replay(rebuilt, [MENDS[fault]])
        shares = [by_share(gpu, MENDS[fault]) for gpu in both]
        told.append((words, *shares, by_replay, truth))
table(
    [[words, *(f"{value:.2f}" for value in values)] for words, *values in told],
    ["what is wrong", "share, GPU 0", "share, GPU 1", "replay", "in truth"],
    caption="How many times faster the step is without the fault.",
)

# %% [markdown]
# Often the share is right, but nothing in the file tells you when. It says too little for late
# launches. And the slow GPU's own profile shows hardly anything of the fault: whoever reads that
# file alone finds a healthy GPU, and leaves a large gain where it is. How does the replay come
# closer?

# %% tags=["holds"]
share, again, true = ({row[0]: row[n] for row in told} for n in (2, 3, 4))
late, slower = "launches that are late", "one slow GPU"
assert true[late] > share[late] + 0.1, "too little for late launches"
assert true[slower] > share[slower] + 0.2, "hardly anything of the fault"
assert 2 <= sum(abs(share[w] / true[w] - 1) < 0.02 for w in true) < len(true), "Often the share is right, but nothing in the file tells you when"
assert all(abs(again[w] / true[w] - 1) < 0.1 for w in true), "replay come closer"

# %% [markdown]
# ## What happens without the cause?
#
# Run the step again, on paper. The profile tells which launch started which kernel, what ran before
# it on its stream, and what it waited for. So each kernel has a rule:
#
# $$\text{start} = \max(\text{launch},\ \text{end of the kernel before},\ \text{ends of what it
# waited for})$$
#
# A kernel takes as long as recorded; a collective ends one transfer after its last rank has come.
# Play that forward and you get the recorded span back, or else the rules are wrong for this file,
# and you must not believe them. Now change one thing: launches cost nothing, or the slow rank
# computes at the pace of the others. Play again. **The gain is the recorded span over the replayed
# one.**

# %%
rebuilt, _, truth = read("launch_bound")
recorded, without = replay(rebuilt), replay(rebuilt, ["launches"])
round(recorded / rebuilt.measured, 3), round(recorded / without, 2)

# %% [markdown]
# The first number says that the replay takes as long as the recording; the second is the gain,
# {{recorded / without:.2f}}, where the truth is {{truth:.2f}}. The truth took a second run of the
# job, the replay only the profile.
#
# Say *at most* all the same. A wait that never held anything up leaves no mark in a profile, and
# with one cause gone, it may show up. And not all of what is exposed can be hidden: for gradients
# at the end, the replay in the table promises a larger gain than there really is
# ([proof](11_profile_proof.ipynb#How-far-a-replay-may-be-trusted)). Whether anything else could
# have run meanwhile, no profile shows: there `lightspeed trace` names the cause, and no figure.

# %% tags=["holds"]
assert recorded / rebuilt.measured < 1.03, "as long as the recording"
assert 1 <= recorded / without / truth < 1.4, "where the truth is"

# %%
reveal("profile.slow_rank", seed="guess")

# %% [markdown]
# ## The job
#
# Now our own profile. Lesson 6.2 said that a layer has {{si(job.layer(job.SEQUENCE).math, "s")}} of
# arithmetic at peak (and twice that backward), that products reach {{fit_share():.0%}} of the peak,
# and that a layer's weights take {{si(job.layer_arrives(), "s")}} to arrive, twice, and its
# gradients as long to leave. Before you look, what share of a step is exposed communication?

# %%
spread = job.step()
expected = spread.data / spread.time
seen = account.exposed_communication / account.span
f"{expected:.1%}", f"{seen:.1%}"

# %% tags=["setup"]
by_hand = 1 - job.layer(job.SEQUENCE).math / fit_share() / job.layer_arrives()

# %% [markdown]
# From those numbers you get {{by_hand:.0%}}. The law adds attention, the output head and passes
# through memory, and comes to the first number; the second is counted from the simulator's events.
# So {{seen:.0%}} of the time is exposed, and here is the meeting's sum: hide it, and the step is
# {{1 / (1 - seen):.1f}} times as fast. But look at the lower track of the first picture once more.
# It has no gap. The links are busy for {{account.communication / account.span:.1%}} of the time,
# and what is hidden must still be sent.
#
# **When the links never rest, no order of sending helps.** Fewer bytes do, or faster links, or more
# tokens for each weight that arrives, and those {{account.span / account.compute:.1f}} times are
# the most that any network can give you. Lesson 6.3 sends fewer bytes, with tensor and pipeline
# parallelism: {{job.step().time / job.step("split").time:.1f}} times as fast.

# %% tags=["holds"]
assert abs(expected - seen) < 0.02, "counted from the simulator's events"
assert expected < by_hand < expected + 0.05, "The law adds attention"
assert account.communication > 0.99 * account.span, "has no gap"
assert job.step().time / job.step("split").time < account.span / account.compute, "the most that"
assert 1 / (1 - seen) > 2, "hide it, and the step is {{1 / (1 - seen):.1f}} times as fast"
assert account.span / max(account.compute, account.communication) < 1.01, (
    "no order of sending helps"
)
assert job.step("split").data + job.step("split").tensor < job.step().data and (
    job.step().time > 1.5 * job.step("split").time
), "sends fewer bytes, with tensor and pipeline parallelism: {{job.step().time / job.step('split').time:.1f}} times as fast"

# %% [markdown]
# ## Try it
#
# Two GPUs, four tracks. Pick a fault, write down how many times faster the step would be without it, and
# then take it away. Which fault shows on the wrong GPU?

# %%
explore_profile()

# %% [markdown]
# ## Did the repair work?
#
# Record again, and compare the accounts, part by part, for the same steps. Here is a job before and
# after somebody took the prints out of its layers:

# %%
before, after = read("synchronize")[1][0], read("")[1][0]
PARTS = ("span", "compute", "exposed_communication", "idle")
rows = [
    [part.replace("_", " "), *(si(getattr(run, part) * 1e-9, "s") for run in (before, after))]
    for part in PARTS
]
table(rows, ["", "before", "after"])

# %% [markdown]
# The change is where it should be: in idle time. Compute stayed, so the steps really are the same
# ones. `lightspeed trace after.json --against before.json` prints this table for yours.

# %% tags=["holds"]
changed = {part: getattr(before, part) - getattr(after, part) for part in PARTS[1:]}
assert max(changed, key=changed.__getitem__) == "idle", "in idle time"
assert abs(after.compute / before.compute - 1) < 0.02, "Compute stayed"

# %% [markdown]
# ## Decide

# %%
ask("profile.what_first", seed="chapter")

# %%
ask("profile.what_waits", seed="h")

# %%
ask("profile.busy_share", seed="chapter")

# %% [markdown]
# ## The answer
#
# **What did the profile say?** That {{seen:.0%}} of the step is communication that nothing hides.
# That was right, and the account adds up.
#
# **What was read into it?** That what is exposed can be hidden. It can't, because the links were
# already busy from end to end. The two weeks bought another order of the same bytes, and the step
# takes as long as the bytes take.
#
# **What should the meeting have asked?** *What does the step wait for, and what happens without
# it?* Ask the first of the account, with the links' own time beside the exposed part. Ask the
# second of a replay, and never of a share.
#
# ## Remember

# %% tags=["holds"]
assert abs(account.compute + account.exposed_communication + account.idle - account.span) < 1, (
    "of the step is communication that nothing hides"
)
assert account.communication > 0.99 * account.span, "another order of the same bytes, and the step takes as long as the bytes take"

# %% [markdown] tags=["takeaway"]
# - Count compute first, what sticks out of it second and the gaps last, and a profile adds up to its
#   span.
# - A collective that runs may be waiting, and only the files of all ranks tell how long.
# - A share is no bound on a gain: replay the step without the cause, and say "at most".

# %% tags=["holds"]
assert abs((fast.compute + fast.communication) / (slow.compute + slow.communication) - 1) < 0.05 and (
    fast.communication > 1.5 * slow.communication
), "only the files of all ranks"
assert any(row[4] > row[2] + 0.1 for row in told), "A share is no bound on"

# %% [markdown] tags=["card"]
# | formula | meaning | unit | for the job |
# |---|---|---|---|
# | span = compute + exposed + idle | parts of a device's time | s | {{si(account.span * 1e-9, "s")}} a micro-batch |
# | exposed / span | communication that nothing hides | – | {{seen:.0%}} |
# | transfer = end − last start | a collective without its waiting | s | {{si(job.layer_arrives(), "s")}} |
# | gain = span / replayed span | at most, with one cause gone | – | {{account.span / account.compute:.1f}}, if nothing were sent |

# %% [markdown]
# ## In your own framework
#
# ```python
# from torch.profiler import ProfilerActivity, profile, schedule
#
# kinds = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
# with profile(
#     activities=kinds,
#     schedule=schedule(wait=5, warmup=2, active=3, repeat=1),
#     on_trace_ready=lambda p: p.export_chrome_trace(f"rank{rank}.json"),
#     record_shapes=True,
# ) as p:
#     for batch in batches:
#         train(batch)
#         p.step()
# ```
#
# (`rank` is `torch.distributed.get_rank()`.) The file is written when the three steps are over. If you
# export after the loop instead, and let the schedule begin anew, what you recorded may be gone by then.
#
# Then `lightspeed trace rank*.json --step TIME`, with the time of a step that you took without
# the profiler. Its first line is where the time went, and what to fix first or what the file can't
# tell; with all ranks it says who waits for whom.
#
# ## What do you do on Monday?
#
# A profile is the second thing. In this order:
#
# **Time a step, rightly.** The host only launches, so a clock around `train(batch)` times the launches.
# Let it warm up, then take the median of many, between events that the GPU itself records:
#
# ```python
# begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
# begin.record(); train(batch); end.record()
# torch.cuda.synchronize()          # outside of what is timed
# print(begin.elapsed_time(end))    # milliseconds
# ```
#
# **Then see what fills the memory**, if a larger batch would help: `torch.cuda.memory._record_memory_history()`
# before a step, `torch.cuda.memory._dump_snapshot("step.pickle")` after it, and drop the file on
# `pytorch.org/memory_viz`. Blocks that stand for the whole step are states, those that pile up and vanish
# are activations (lesson 6.1).
#
# **Then look for what runs in the wrong format or alone.** Under `torch.autocast` a product that still
# takes fp32 shows as a slow kernel, and many short `aten::copy_` are casts that come again each step.
# Under `torch.compile`, each *graph break* leaves the compiled code for Python:
# `TORCH_LOGS=graph_breaks,recompiles python train.py` names the line. If launches are what you lack,
# `mode="reduce-overhead"` records them as a CUDA graph.
#
# **Then record**, account, replay, and change one thing.
#
# ## One reading
#
# The incident room sells the trace of rank 0, and for more of your minutes those of all ranks. Here
# are all of them, of a job that misses its plan. What do they tell you that the first alone
# couldn't?

# %%
bench("11")

# %% [markdown]
# `lightspeed incident` writes the files too, with `--files`. Say the gain of your fix before you
# hear it.
#
# ## Exercises
#
# [The exercises](../exercises/11_profile.ipynb) have traces to read, and an account to write. How
# far each sentence holds is on the [proof page](11_profile_proof.ipynb). Next: [the
# call](12_the_call.ipynb).
