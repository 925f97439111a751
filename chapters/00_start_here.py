# %% [markdown]
# # Speed of Light
#
# *Learn to say how fast an ML system can be, and what holds it back, before you run it.*
#
# You have a job. A model of seventy billion parameters is to be trained further by a rented
# cluster, in a week, and then to answer users. Somebody has planned it, and somebody will ask you
# whether the plan is any good: what it weighs, what one layer costs, whether twice the GPUs would
# help, why it runs at half of its speed, and which cable it was. Each lesson of this course answers
# one such question, with a law that fits on a card, and puts it to work on this job. The sheet
# below begins nearly empty, and each lesson fills in a line.
#
# It is for whoever trains, serves or pays for models on more than one GPU. You need Python enough to
# read ten lines, school arithmetic, and no GPU. Each lesson takes half an hour or a little more.

# %% tags=["setup"]
from lightspeed.catalog import accelerator
from lightspeed_course import ask, incident, job, predict, progress, reveal, si, today

# %%
job.sheet(until="01")

# %% [markdown]
# ## A guess to begin with
#
# One user waits for one answer, token by token. For each token the GPU has to read every weight of
# the model once. How fast can that be? Write down a guess, however rough: your guesses stay on your
# machine, and after a few of them `calibration()` shows how far off your intuition is.

# %%
predict("roofline.token_of_the_job", ...)

# %%
reveal("roofline.token_of_the_job")

# %% [markdown]
# That was a division, and it already says how many tokens a second that user gets at most, as long
# as each token takes a reading of its own.
#
# ## How a lesson goes
#
# A story, a guess, a picture that you move, and the law behind it; then the job, and a few
# decisions with a pencil. It takes half an hour or a little more, and every chapter has an explorer
# in which you drag the law itself. Beside each lesson stands its proof: the law against
# measurements of others, where it fails, and how to measure it on your own machine. Every result on
# these pages is computed, never typed. Constants carry their source, and a test fails when one goes
# stale.
#
# Questions are checked at once, and a wrong answer gets a diagnosis, not a red cross. The next one belongs to lesson 2, which explains its letters, so be wrong on purpose: divide its peak
# by the {{si(accelerator("h100_sxm").hbm_bandwidth, "byte/s")}} of the memory.

# %% tags=["holds"]
from pathlib import Path

assert all(
    any("\nexplore" in page.read_text("utf-8") for page in Path().glob(f"{chapter}_*.py"))
    for chapter in {page.name[:2] for page in Path().glob("[01][0-9]_*.py")} - {"00", "12"}
), "every chapter has an explorer"

# %% [markdown] tags=["lab"]
# In a notebook, choose *Run*, *Run All Cells* first, because what a page imports is folded away at its
# top, as is code that only draws. From then on Shift and Enter run the cell you are in.

# %%
ask("roofline.h100_critical_batch")

# %% [markdown]
# ## The lessons
#
# 1. [Numbers to know](01_numbers_to_know.ipynb): what is fast, what is far, and is a week a sound
#    plan?
# 2. [The roofline](02_roofline.ipynb): what bounds an operation, before you run it; then
#    [kernels](02_roofline_2_kernels.ipynb): why attention is slow, and FlashAttention fast.
# 3. [Amdahl and Gustafson](03_amdahl_gustafson.ipynb): what more processors give, and when they
#    take it back.
# 4. [Little's law](04_littles_law.ipynb): how many at once, and how long they wait; then [what a
#    replica promises](04_littles_law_1_replica.ipynb), and [what a step
#    reads](04_littles_law_2_attention.ipynb) of long texts.
# 5. [Precision](05_precision.ipynb): what a format can hold, what is lost, and what narrower really
#    buys.
# 6. Parallelism: [what must fit](06_parallelism.ipynb), [what must be
#    sent](06_parallelism_2_sent.ipynb), and [who waits for whom](06_parallelism_3_waits.ipynb).
# 7. [NCCL bandwidth](07_nccl_bandwidth.ipynb): whether a measured collective is normal, and what
#    bounds it.
# 8. [The network](08_network.ipynb): what a lost packet, a full queue or a wrong place costs a job.
# 9. [Serving](09_serving.ipynb): what an engine and its prompts leave of a replica's promise.
# 10. [Plan a run](10_plan_a_run.ipynb): the best of all plans, and how far to trust it.
# 11. [Reading a profile](11_profile.ipynb): where the step went, and what is worth fixing.
#
# 12. [The call](12_the_call.ipynb): your phone rings, and you know how to work.
#
# The sections of a page stand under *Contents*: on the web below its title, in JupyterLab in the bar at
# the left. Each chapter has exercises; the first are [those of lesson
# 1](../exercises/01_numbers_to_know.ipynb). Words are in the [glossary](00_glossary.ipynb). Start with lesson 1, or with lesson 2 if you know what HBM is and roughly how far away it
# is.
#
# ## The incident room
#
# A job misses its plan, and you are called. You buy measurements, which cost minutes, and then name
# the cause and the fix. Take one now and fail; take it again after lesson 12.

# %%
incident(1)

# %% [markdown]
# ## Ten minutes a day
#
# Run this cell on any day: it asks what is due and what comes next, with fresh numbers.
# `today(placement=True)` finds out first what you know already, and says with which lesson to begin.

# %%
today()

# %% [markdown]
# ## Your work is yours
#
# Predictions and progress stay on your machine, and nothing is sent anywhere.

# %% [markdown] tags=["lab"]
# This folder is your personal copy. Updates of the course never touch a page that you changed: the
# new version lands beside it. `lightspeed reset 02_roofline` in a terminal gives you a page as
# delivered and keeps a backup of yours. What you
# answered lives in one file in your home folder, and survives a crashed kernel. In a terminal,
# `lightspeed today` asks what is due, and `lightspeed --help` lists the tools for your own questions.

# %%
progress()
