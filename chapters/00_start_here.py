# %% [markdown]
# # Speed of Light
#
# *An executable course on the performance of ML systems.*
#
# Every chapter starts with a question that an engineer was really asked, and ends with you able to
# answer it in two minutes on paper. Between the two you run code. No result on these pages was
# typed: results are computed by the small library `lightspeed`, constants are traced to their
# sources, and a test fails when one goes stale.
#
# ## Five minutes to see how it works
#
# Run a cell with Shift and Enter. This one fetches a number with its provenance.

# %%
from lightspeed.catalog import accelerator
from lightspeed_course import ask, incident, predict, progress, reveal, today

h100 = accelerator("h100_sxm")
print(h100.hbm_bandwidth.printed, "in", h100.hbm_bandwidth.source)
h100.hbm_bandwidth

# %% [markdown]
# A **law** is a plain function in SI units that reads like its equation. It takes numbers, numpy
# arrays, or quantities with units. This one gives the *ridge point* of a chip: how many operations
# it can do while one byte arrives from its memory.

# %%
from lightspeed.roofline import ridge_point
from lightspeed.units import Q

ridge_point(h100.bf16, h100.hbm_bandwidth)

# %%
print(ridge_point(h100.bf16.quantity, h100.hbm_bandwidth.quantity).to("FLOP/bit"))

# %% [markdown]
# And it refuses nonsense. **The next cell fails on purpose:** it divides FLOP/s by a size where a
# bandwidth belongs.

# %% tags=["raises-exception"]
ridge_point(h100.bf16.quantity, Q(3, "GB"))

# %% [markdown]
# **Predict before you look.** Type a guess in the box, or in place of the dots, and run the next
# cell; until then its answer is folded away. Guesses are kept on this machine only, and after a few
# of them `calibration()` shows by how much your intuition is off, in powers of ten.

# %%
predict("roofline.ridge", ...)

# %%
reveal("roofline.ridge")

# %% [markdown]
# **Questions** are checked at once. A wrong answer gets a diagnosis, not a red cross: try the
# sparse peak of the data sheet, or forget that a byte has eight bits. It also offers a smaller
# question, to try first. Hints come one step at a time, and after a try there is the whole
# derivation.

# %%
ask("roofline.h100_critical_batch")

# %% [markdown]
# **Explorers** have sliders. Until a kernel runs, you see a still picture. Every chapter has one.
# Its verdict is always also in words.
#
# Code that only draws a figure is folded away. Click the three dots to see it.
#
# ## The chapters
#
# 1. [Numbers to know](01_numbers_to_know.ipynb): what is fast, what is far, and what will still be
#    true in ten years.
# 2. [The roofline](02_roofline.ipynb): what bounds an operation, before you run it.
# 3. [Amdahl and Gustafson](03_amdahl_gustafson.ipynb): what more processors give, and when they
#    take it back.
# 4. [Little's law](04_littles_law.ipynb): how many at once, how long they wait, and serving a model
#    within a budget.
# 5. [Precision](05_precision.ipynb): what a format can hold, what is lost, and what narrower really
#    buys.
# 6. [Parallelism](06_parallelism.ipynb): what must fit, what must be sent, and which split to
#    change first.
# 7. [NCCL bandwidth](07_nccl_bandwidth.ipynb): whether a measured collective is normal, and what
#    bounds it.
# 8. [The network](08_network.ipynb): what a lost packet, a full queue or a wrong place costs a job.
#
# If you have twenty minutes for a chapter, read its sections marked with ◆. They lead from the
# opening question to its answer.
#
# Exercises for chapter N are in `exercises/`, next to this folder. Start with chapter 1, or with
# chapter 2 if you know what HBM is and roughly how far away it is.
#
# ## Ten minutes a day
#
# Run this cell on any day: it asks what is due and what comes next, with fresh numbers.
# `today(placement=True)` finds out first what you know already. In a terminal, `lightspeed today`
# does the same.

# %% tags=["holds"]
from pathlib import Path

assert all(
    any("\nexplore()" in page.read_text("utf-8") for page in Path().glob(f"{chapter}_*.py"))
    for chapter in {page.name[:2] for page in Path().glob("0[1-9]_*.py")}
), "Every chapter"

# %%
today()

# %% [markdown]
# ## An incident
#
# A job misses its plan, and you are called. You buy measurements, which cost time, then name the
# cause and the fix. `incident(2)` is another one.

# %%
incident(1)

# %% [markdown]
# ## Your work is yours
#
# This folder is your personal copy. Updates of the course never touch a page that you changed: the
# new version lands beside it. `lightspeed reset 02_roofline` in a terminal gives you a page as
# delivered and keeps a backup of yours. Predictions and progress live in one file in your home
# folder, and survive a crashed kernel.

# %%
progress()
