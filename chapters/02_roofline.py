# %% [markdown]
# # 2. The roofline
#
# Your dashboard says that the GPU is fully utilized. Your profiler says that it does a few per cent
# of its peak FLOP/s. Both are right, and somebody wants to know whether a faster GPU would help.
#
# You can answer that with two divisions and a comparison, for a *kernel*, a program on the GPU, that
# you haven't even run. A quarter of an hour brings you to the law and what it says about a real
# layer, another to what it takes to count bytes right. You need chapter 1, for where the rates come
# from. The [proof page](02_roofline_proof.ipynb) holds the law against tens of thousands of measured
# kernels.

# %% tags=["setup"]
from lightspeed.catalog import accelerator
from lightspeed.roofline import *
from lightspeed_models.llm import decoder
from lightspeed_course import ask, Axis, Bars, bench, Chart, figure, job, Line, predict, reveal
from lightspeed_course import roof_chart, si, table
from lightspeed_course.explorers.traffic import explore_fusion, explore_tiles, explore_two_clocks

# %%
job.sheet(until="02")

# %% [markdown]
# **First, one from lesson 1.** You'll need it here.

# %%
ask("numbers.transfer_time", seed="again")

# %% [markdown]
# **Guess first.** A ReLU sets the negative numbers of a large tensor to zero, so it looks at each
# number just once. Write down what you expect before you go on; a wrong guess is worth more than
# none.

# %%
predict("roofline.relu_of_vector", ...)

# %% [markdown]
# ## Where does the time go?
#
# A chip has two jobs: it computes, and it fetches what it computes with. Each job has a rate, so
# each has a clock, and you read it with one division:
#
# $$T_\text{math} = \frac{\text{FLOPs} }{\text{peak FLOP/s} }
# \qquad T_\text{comms} = \frac{\text{bytes} }{\text{bandwidth} }$$
#
# These are the two rates of an H100, of its **tensor cores**, the units that multiply matrices,
# and of
# its memory:

# %%
h100 = accelerator("h100_sxm")
B, D = 64, 8192
h100.bf16, h100.hbm_bandwidth

# %% [markdown]
# Now take a pencil. Let {{B}} tokens, each a row of {{D:,}} numbers, pass a matrix of {{D:,}} by
# {{D:,}} weights. Each weight does one multiplication and one addition for each token, which is
# twice {{B}} × {{D:,}} × {{D:,}} FLOPs. And each has two bytes, {{si(2 * D * D, "byte")}} together;
# the tokens on their way in and out add little.

# %% tags=["holds"]
assert matmul_bytes(B, D, D) < 1.02 * 2 * D * D, "add little"

# %%
flops, moved = matmul_flops(B, D, D), matmul_bytes(B, D, D)
math, comms = flops / h100.bf16, moved / h100.hbm_bandwidth
flops, moved, si(math, "s"), si(comms, "s")

# %% [markdown]
# So the arithmetic needs {{si(math, "s")}}, and the bytes {{si(comms, "s")}}. A chip can compute one
# piece while the next one travels, so **the slower clock tells you when you are done**, and the
# tensor cores work for a fifth of the time. Watch both clocks on this product, in eight pieces, each
# of which can only be computed once its bytes are there.

# %% tags=["holds"]
assert time_bounds(flops, moved, h100.bf16, h100.hbm_bandwidth).lower == comms > math, (
    "the slower clock"
)
assert 0.19 < math / comms < 0.22, "for a fifth of the time"
assert explore_two_clocks().controls["pieces"].value == 8, "in eight pieces"

# %%
explore_two_clocks()

# %% [markdown]
# The thin orange bars are the tensor cores at work, and everything white beside them is waiting.
# Raise $B$, the number of tokens, and the waiting changes sides. If nothing overlapped, you would
# wait for the sum, so a real kernel is somewhere between:
#
# $$T_\text{lower} = \max(T_\text{math}, T_\text{comms})
# \qquad T_\text{upper} = T_\text{math} + T_\text{comms}$$
#
# A sum of two times is at most twice the longer one. So if a kernel runs at the chip's own rates, two
# divisions tell you its time within a factor of two; a real one has rates of its own, and may take
# longer than both bounds. Overlap is worth that factor if the clocks are equal, and next to nothing if
# one of them is much slower.
#
# ## And the ReLU?
#
# Now for your guess, an **elementwise operation**, by the same two clocks. Follow a single
# number. It starts in memory, two bytes
# wide. The chip has to fetch it, look at its sign once, and carry two bytes back, so four bytes
# travel for every operation. In a steady stream, where the wait of chapter 1 is hidden behind the
# numbers that are already on their way, only the bandwidth counts:

# %% tags=["holds"]
assert time_bounds(1e12, 1e8, h100.bf16, h100.hbm_bandwidth).math > 1e8 / h100.hbm_bandwidth, (
    "the waiting changes sides"
)
assert all(
    (bound := time_bounds(work, size, h100.bf16, h100.hbm_bandwidth)).upper <= 2 * bound.lower
    for work in (1, 1e3, 1e6)
    for size in (1, 1e3, 1e6)
), "most twice the longer"
assert (
    time_bounds(1, 1, 1, 1).upper == 2 * time_bounds(1, 1, 1, 1).lower
    and (relu := time_bounds(1e9, 4e9, h100.bf16, h100.hbm_bandwidth)).upper < 1.01 * relu.lower
), "them is much slower"

# %%
there_and_back = transfer_time(4, h100.hbm_bandwidth)
there_and_back, there_and_back * h100.fp32_vector

# %% [markdown]
# Four bytes take {{si(there_and_back, "s")}}. That sounds fast until you ask what the vector units
# could have done in the meantime: {{there_and_back * h100.fp32_vector:.0f}} operations. We asked
# them for one.

# %%
reveal("roofline.relu_of_vector")

# %% [markdown]
# Nothing is broken here, for the memory moves its bytes at full speed. Give the chip vector units
# of twice the peak, and they would show half the share and take just as long. It can look worse
# still: a tool that divides by the peak of the tensor cores, which a ReLU doesn't even use, shows
# {{1 / (there_and_back * h100.bf16):.2%}} for the very same kernel, in perfect health.
#
# ## Which clock will be the slower one?
#
# You don't have to run anything to find out. You need one number for the work: how many FLOPs it
# does for each byte that it moves, its **arithmetic intensity**. And you need one for the machine:
# how many FLOPs it could do while one byte arrives, its **ridge point**.
#
# $$T_\text{math} > T_\text{comms} \iff
# \underbrace{\frac{\text{FLOPs} }{\text{bytes} } }_\text{intensity of the work}
# > \underbrace{\frac{\text{peak FLOP/s} }{\text{bandwidth} } }_\text{ridge of the machine}$$
#
# If the intensity is above the ridge, arithmetic is the limit, and the operation is called
# **compute-bound**. If it is below, the chip waits for bytes, and it is called **memory-bound**,
# or **communication-bound** where the bytes cross a link between chips.

# %% tags=["holds"]
assert (slow := time_bounds(1e9, 4e9, h100.bf16, h100.hbm_bandwidth)).lower == slow.comms and abs(
    4e9 / slow.lower / h100.hbm_bandwidth - 1
) < 1e-12, "Nothing is broken here, for the memory moves its bytes at full speed"
assert attainable(elementwise_intensity(), 2 * h100.fp32_vector, h100.hbm_bandwidth) == attainable(
    elementwise_intensity(), h100.fp32_vector, h100.hbm_bandwidth
), "show half the share"
assert (
    abs(attainable(elementwise_intensity(), h100.bf16, h100.hbm_bandwidth) * there_and_back - 1)
    < 1e-12
), "for the very same kernel"
assert all(
    (
        time_bounds(f, 1.0, h100.bf16, h100.hbm_bandwidth).math
        > time_bounds(f, 1.0, h100.bf16, h100.hbm_bandwidth).comms
    )
    == (arithmetic_intensity(f, 1.0) > ridge_point(h100.bf16, h100.hbm_bandwidth))
    for f in (1.0, 200.0, 400.0)
), "above the ridge, arithmetic is the limit"

# %%
ridge = ridge_point(h100.bf16, h100.hbm_bandwidth)
elementwise_intensity(), round(flops / moved), ridge

# %% [markdown]
# The ReLU does {{elementwise_intensity():.2f}} FLOPs for each byte, our product of {{B}} tokens
# {{flops / moved:.0f}}, and the tensor cores of an H100 could do {{ridge:.0f}}. So below the
# ridge a kernel's intensity, divided by it, is the share of the peak that it can reach: for the ReLU the
# {{elementwise_intensity() / ridge:.2%}} that the tool showed, for the product the
# {{flops / moved / ridge:.0%}} of the time in which the orange bars work. From the V100 to the
# B200 the ridge has doubled, but not at each step, so look it up for
# [your chip](02_roofline_proof.ipynb#The-ridges-of-ten-chips).
#
# Now draw the rate that these two limits allow, from low intensity to high, and you have the
# picture that gave the law its name, the **roofline**:
#
# $$\text{attainable} = \min(\text{peak},\ \text{intensity} \times \text{bandwidth})$$

# %% tags=["holds"]
assert abs(elementwise_intensity() / ridge * there_and_back * h100.bf16 - 1) < 1e-12, (
    "that the tool showed"
)
assert abs(flops / moved / ridge - math / comms) < 1e-12, "in which the orange bars work"
assert all(
    (abs(attainable(k, h100.bf16, h100.hbm_bandwidth) / h100.bf16 - k / ridge) < 1e-12)
    == (k <= ridge)
    for k in (0.25, 64, ridge, 1000)
), "below the ridge a kernel's intensity, divided by it, is the share of the peak that it can reach"
v100, h200, b200 = (accelerator(k) for k in ("v100_sxm", "h200_sxm", "b200"))
ridges = [
    ridge_point(c.fp16 if "bf16" not in c else c.bf16, c.hbm_bandwidth)
    for c in (v100, h100, h200, b200)
]
assert 1.8 < ridges[3] / ridges[0] < 2.2 and ridges[2] < ridges[1], "the ridge has doubled"

# %% tags=["figure"]
kernels = {
    "ReLU": elementwise_intensity(),
    "dot product": arithmetic_intensity(dot_flops(2**40), dot_bytes(2**40)),
    "large matmul": matmul_intensity(8192, 8192, 8192),
}
vector_ridge = ridge_point(h100.fp32_vector, h100.hbm_bandwidth)
lower_roof = Line(
    (vector_ridge, 1e4), (h100.fp32_vector, h100.fp32_vector),
    f"vector units, {si(h100.fp32_vector, 'FLOP/s')}", "purple", dash=True, label_at="above",
)  # fmt: skip
figure(
    roof_chart(
        h100.bf16, {"memory": h100.hbm_bandwidth}, kernels, x=(0.1, 1e4), y=(1e11, 3e15),
        peak_name="tensor cores", marks=[lower_roof], title=h100.name,
    ),
    caption="Three kernels on an H100. The first two are far down the slope, under the lower roof "
    "of the vector units; the third is under the flat roof of the tensor cores.",
    alt=f"A roofline with its ridge at {ridge:.0f} FLOP per byte. ReLU and the dot product lie low "
    f"on the slope, a large matmul lies on the flat part at {si(h100.bf16, 'FLOP/s')}. A second, "
    f"lower roof at {si(h100.fp32_vector, 'FLOP/s')} is that of the vector units.",
)  # fmt: skip

# %% tags=["holds"]
assert max(list(kernels.values())[:2]) * h100.hbm_bandwidth < h100.fp32_vector and (
    list(kernels.values())[2] > ridge > 100 * max(list(kernels.values())[:2])
), (
    "The first two are far down the slope, under the lower roof of the vector units"
)
assert h100.fp32_vector < h100.bf16, "lower roof at"

# %% [markdown]
# On the left memory is the limit, so twice the intensity gives twice the rate: that's the slope. On
# the right arithmetic is the limit, so more intensity adds nothing: that's the flat roof, and they
# meet at the ridge. The dot product reads four bytes for every multiplication and addition, however
# long its vectors are. ReLU and dot product run on the vector units, which have a roof of their own,
# with its ridge at {{vector_ridge:.0f}} FLOP/byte; even against this lower roof both are limited by
# memory. The product of two large matrices is another matter, because it uses each number many times.
#
# So what makes a kernel move to the right?
#
# ## Why does a batch help?
#
# Take one matrix of weights, and tokens that pass it (a **GEMM**; with one token alone a
# **GEMV**). The matrix comes down from memory once, and
# every token that passes is multiplied with all of it. Count along with the picture.

# %% tags=["holds"]
assert abs(ridge * h100.hbm_bandwidth / h100.bf16 - 1) < 1e-12, "they meet at the ridge"
assert attainable(20, h100.bf16, h100.hbm_bandwidth) == 2 * attainable(
    10, h100.bf16, h100.hbm_bandwidth
), "twice the intensity gives twice the rate"
assert (
    attainable(2000, h100.bf16, h100.hbm_bandwidth)
    == attainable(1000, h100.bf16, h100.hbm_bandwidth)
    == h100.bf16
), "intensity adds nothing"
assert (
    all(
    abs(2 / arithmetic_intensity(dot_flops(n), dot_bytes(n)) - 4) < 0.1 for n in (64, 4096, 10**6)
)
    and kernels["dot product"] <= 0.5
), "reads four bytes for every multiplication and addition, however long its vectors are"
assert h100.fp32_vector < h100.bf16, "roof of their own"
assert kernels["dot product"] < vector_ridge, "both are limited by memory"

# %%
from lightspeed_course.explorers.tokens import explore_tokens

explore_tokens()

# %% [markdown]
# A weight is two bytes, and each token does one multiplication and one addition with it. That's one
# FLOP per byte for the first token, two once the second has passed, and $B$ for $B$ of them. So you
# need about as many tokens as the ridge has FLOPs per byte. **A large bf16 matmul is limited by
# arithmetic once its batch is about the ridge: {{critical_batch(ridge):.0f}} tokens on an H100.**
# That's its **critical batch**.
#
# The tokens bring bytes of their own, which is why it's only "about". In
# $X[B, D]\,Y[D, F] = Z[B, F]$ all three matrices are read or written, and each element of $Z$ takes
# $D$ multiplications and about as many additions:
#
# $$\text{intensity} = \frac{2BDF}{2BD + 2DF + 2BF}
# \approx B \quad \text{while } B \ll D, F$$
#
# For the exact batch, put the ridge in place of the intensity, and take one over both sides:
#
# $$\frac{1}{B_\text{crit} } = \frac{1}{\text{ridge} } - \frac{1}{D} - \frac{1}{F}$$
#
# A matrix of {{D:,}} by {{D:,}} then needs {{critical_batch_exact(D, D, ridge):.0f}} tokens. It
# doesn't matter whose tokens they are, as long as they share one copy of the weights: eight hundred
# users on eight copies make a batch of a hundred for each. And weights that are stored in one byte
# arrive in half the time, so half as many tokens will do: {{critical_batch(ridge, 1):.0f}}.
#
# Now you know why serving systems batch. A model that decodes (**decode**) makes one token for
# each request
# and step, and each step reads every weight once. With one user the batch is one, and the tensor
# cores idle nearly the whole time. When it reads a prompt (**prefill**), the tokens of the prompt
# pass together, and the batch is there for free.
#
# ## The job: one layer, on one GPU
#
# Now put the law to work. The model of our job is a stack of layers, one like the other, and the
# matrices of one are {{si(job.layer_bytes(), "byte")}}. All eighty don't fit on one H100, but a
# layer does, and by it you can compare two uses of the model: a user who waits for one token, and
# the training run, which sends {{job.SEQUENCE:,}} tokens at once.

# %% tags=["holds"]
assert critical_batch(ridge, 1) == critical_batch(ridge) / 2, "half as many tokens will do"
assert 1 <= critical_batch_exact(8192, 8192, ridge) / ridge < 1.1, (
    "limited by arithmetic once its batch"
)
assert all(matmul_intensity(b, D, D) < b < 1.01 * matmul_intensity(b, D, D) for b in (1, 2, 3)), "The tokens bring bytes of their own, which is why it's only"
assert abs(1 / (1 / ridge - 1 / D - 1 / D) - critical_batch_exact(D, D, ridge)) < 1e-6, "then needs"
assert attainable(matmul_intensity(1, D, D), h100.bf16, h100.hbm_bandwidth) / h100.bf16 < 0.01, (
    "nearly the whole time"
)

# %%
one, many = job.layer(1), job.layer(job.SEQUENCE)
between = job.step().memory / job.step().compute
one.comms, many.comms, many.math

# %% [markdown]
# For the user the layer has to be read, in {{si(one.comms, "s")}}, while its arithmetic would take
# {{one.math / one.comms:.2%}} of that. Over all layers and the output that makes
# {{si(job.read_time(), "s")}} a token, so as long as each token reads all the weights, that user
# gets {{1 / job.read_time():.0f}} tokens a second at most, at the bandwidth of one H100. The
# training run reads the same bytes in the same time, but has {{si(many.math, "s")}} of arithmetic
# to do, seven times as long as the reading. What lies between the products, norms and activations,
# adds reading of its own, about {{between:.0%}} of the arithmetic by chapter 6's model of a step. That
# can't make {{job.RUNNING}} days of a week. So the GPUs' own memory isn't what the run waits for:
# strike it off.
#
# The clocks change places at {{critical_batch_exact(8192, 28672, ridge):.0f}} tokens for the
# layer's largest matrices, which are wider than those above. Until then one more user costs next to
# nothing but their cache; the training run, far beyond, hardly notices the memory. Keep the
# {{si(many.math, "s")}} in mind: chapter 6 will ask how long the same layer takes to *arrive* from
# the other GPUs.
#
# **That is the whole law**: count FLOPs and bytes, divide, compare. If you stop here today, you can
# use it tomorrow. The next three questions are about counting bytes right.
#
# ## Does each matrix really come from memory only once?
#
# We assumed so, but a matrix of this size doesn't even fit on the chip. So the kernel cuts the
# result into tiles (**tiling**), and for each tile it reads a strip of rows from the left matrix
# and a strip of
# columns from the right one. The next tile needs a strip that was read before. Unless it was kept,
# it is read again; the numbers on the strips say how often.

# %% tags=["holds"]
assert one.lower == one.comms and many.lower == many.math, "reads the same bytes in the same time"
assert 6.5 < many.math / many.comms < 7.5, "seven times as long"
assert many.comms < many.math and between < 0.1, "the GPUs' own memory isn't what the run"
assert job.layer(200).lower == one.lower and one.comms < many.lower, "next to nothing but"
assert h100.l2_capacity < 2 * D * D, "fit on the chip"

# %%
side, wide, high = 128, 11, 12
wave = tile_intensity(wide * side, high * side)
explore_tiles()

# %% [markdown]
# **Each strip is read once for each tile that needs it**, so larger tiles read less. For each step
# along $D$ a square tile of side $b$ reads $2b$ numbers of two bytes, and does
# $b^2$ multiplications and additions. Its intensity is $b/2$, and to be limited by arithmetic it
# needs a side of twice the ridge, {{2 * ridge:.0f}}. A tile that large wouldn't fit into one of the
# chip's *multiprocessors*, which take a tile each.
#
# So, only once? For a few tokens, yes: our {{B}} fit into one row of tiles, where no two need the
# same weights. For many it is more often, but it hardly matters, because the {{h100.sm_count:.0f}} multiprocessors
# of an H100 make as many tiles at once, a *wave*, and what one of them has read is still in the L2
# cache when its neighbour wants it. Together they read like one large tile, whose intensity is
# {{wave:.0f}} ([proof](02_roofline_proof.ipynb#Tiling-in-numbers)).
#
# ## What else saves bytes?
#
# After the matmul comes a ReLU. As two kernels, the first writes its result to memory, and the
# second reads it, sets the negative numbers to zero and writes it again. But when the first kernel
# had finished a tile, that tile was still on the chip. **A fused kernel applies the ReLU before the
# first write, and saves one read and one write of the whole result.** `torch.compile` does that for
# chains of elementwise operations. Fuse one below.

# %% tags=["holds"]
assert tiled_matmul_bytes(D, D, D, D // 4, D // 4) == 9 * 2 * D * D, "for each tile that needs it"
assert tiled_matmul_bytes(D, D, D, 256, 256) < tiled_matmul_bytes(D, D, D, 128, 128), (
    "larger tiles read less"
)
assert tile_intensity(600, 600) == 300, "side of twice the ridge"
assert B <= side and all(
    tiled_matmul_bytes(b, D, D, b, side) < 2 * D * D * 2 <= tiled_matmul_bytes(2 * b, D, D, b, side)
    for b in (1, B)
), "fit into one row of tiles, where no two need the same weights"
assert wide * high == h100.sm_count, "as many tiles at once"
assert (wide + high) * side * D * 2 < h100.l2_capacity, "still in the L2 cache"
assert tile_intensity(side, side) < ridge < wave, "Together they read like one large tile"

# %%
attention = decoder(job.MODEL).attention
heads = attention.heads // attention.kv_heads
explore_fusion()

# %% [markdown]
# ## Why doesn't the batch help attention?
#
# You batch hundreds of users, the matmuls of the model are past the ridge, and attention still does
# a few per cent of the peak. What's different there?
#
# When a model decodes, a new token looks at a cached key and a cached value, its **KV cache**,
# for each earlier token
# of *its own* sequence. With each number of the cache it does a multiplication and an addition, and
# it reads two bytes for that: one FLOP per byte, however long the context. Another user brings
# another cache. **The cache is to attention what the weights are to a matmul, but users don't share
# it.**
#
# Two things do share it. In most models a group of query heads uses the keys and values of one *KV head* (**grouped-query attention**, GQA), so the intensity of decoding is nearly the size of that group: {{heads}} heads in the
# model of our job. That is far below the ridge, so attention stays memory-bound while it decodes.
# And in prefill the tokens of a prompt pass the cache together, as a batch passes a weight matrix, so
# a few hundred of them reach the ridge ([proof](02_roofline_proof.ipynb#Attention-derived)).

# %% tags=["holds"]
from lightspeed_models.llm.shipped import shipped

known = [decoder(name).attention for name in shipped()]
assert sum(m.heads > getattr(m, "kv_heads", m.heads) for m in known) > len(known) / 2, "In most models"
assert all(abs(attention_intensity(1, n, 1) - 1) < 0.001 for n in (8192, 32768, 100 * 32768)), (
    "one FLOP per byte, however long the context"
)
assert 0.99 * heads < attention_intensity(1, 32768, heads) < heads, "size of that group"
assert heads < ridge / 10, "far below the ridge"
assert ridge < 512 and 300 < ridge * (heads + 1) / heads < 400, "a few hundred of them"

# %% [markdown]
# ## And if neither clock explains it?
#
# There is a third clock, and it doesn't run on the GPU. Each kernel has to be launched: Python calls
# PyTorch, which looks up the kernel (its *dispatch*), and the driver puts it into a queue. That
# takes a few microseconds of the *host*, whatever the size of the kernel. As a rule nobody sees
# them, because the host doesn't wait for the GPU. It runs ahead and fills the queue while the GPU
# still works. But if the kernels are shorter than their launches, the GPU waits for the next one.
#
# Take our model on eight GPUs, an eighth of each layer on each, and a single user. Say that a layer
# is fifteen kernels, and that each takes six microseconds to launch.

# %%
from lightspeed.catalog import find
from lightspeed.inference import launched_time

kernels, launch = 15, 6e-6  # assumed
in_graph = find("graph_sglang").launch_of_a_kernel  # as somebody measured it
layers, work = decoder(job.MODEL).depth, job.layer(1).comms / 8
eager = layers * launched_time(kernels, work, launch)
si(layers * work, "s"), si(eager, "s"), si(layers * launched_time(kernels, work, in_graph), "s")

# %% tags=["figure"]
def timeline(length, cost, title):
    """Both lanes of a few kernels: when the host has launched each, and when the GPU runs it."""
    queued = [(i + 1) * cost for i in range(8)]
    begun, free = [], 0.0
    for at in queued:
        begun.append(max(at, free))
        free = begun[-1] + length
    lanes = [Bars(["host"] * 8, queued, [at - cost for at in queued], "launches", color="grey"),
             Bars(["GPU"] * 8, [b + length for b in begun], begun, "kernels", color="blue")]
    across = Axis("time", "s", domain=(0, 76e-6))
    rows = Axis(scale="category", categories=["host", "GPU"])
    return begun, Chart(across, rows, lanes, title, height=130)  # fmt: skip


short = work / kernels
ahead, first = timeline(8e-6, launch, "longer kernels: the host runs ahead")
behind, second = timeline(short, launch, "a lone token: the GPU waits for the host")
graphed, third = timeline(short, in_graph, "the same as a CUDA graph")
figure(
    [first, second, third],
    caption="Eight kernels, each launched before it runs. White between two blue bars is the GPU"
    " waiting for a launch.",
    alt="Three pairs of lanes. Above, grey launches end before the blue kernels, which follow one"
    " another without a gap. In the middle the blue kernels begin as their launches end, and a gap"
    " follows each. Below, the launches are over early and the kernels are close together again.",
)  # fmt: skip

# %% tags=["holds"]
assert behind[1] - behind[0] > 1.2 * short and abs(graphed[1] - graphed[0] - short) < 1e-12, (
    "a gap follows each"
)
assert abs(ahead[1] - ahead[0] - 8e-6) < 1e-12, "which follow one another without a gap"

# %% [markdown]
# Memory's clock says {{si(layers * work, "s")}} a token, but the launches take {{si(eager, "s")}}, so
# the host sets the pace. Nothing on the data sheet of the GPU would change that: a faster one would
# only wait longer. What helps is to launch less often. A **CUDA graph** records the launches once
# and replays them as one, at about {{si(in_graph, "s")}} a kernel; engines decode like that. And
# `torch.compile` fuses small kernels into fewer.
#
# How do you tell the three regimes apart? Change something, and see whether the time follows:

# %% tags=["holds"]
assert layers * work < eager and abs(eager / (layers * kernels * launch) - 1) < 1e-9, (
    "the host sets the pace"
)
assert launched_time(kernels, work / 2, launch) == launched_time(kernels, work, launch), (
    "a faster one would only wait longer"
)
assert launched_time(kernels, work, in_graph) < launched_time(kernels, work, launch), (
    "What helps is to launch less often"
)

# %% [markdown]
# | regime | its sign | what helps, in PyTorch |
# |---|---|---|
# | compute | twice the tokens take twice as long | `bfloat16` or fp8 products, more GPUs, fewer FLOPs |
# | memory | twice the tokens for the same weights hardly take longer; half the bytes take half the time | a larger batch, `torch.compile` for fusion, weights and caches in fewer bits |
# | host | neither matters; a profile has gaps between kernels, and the GPU's lane ends with the host's | `torch.compile(mode="reduce-overhead")` or `torch.cuda.CUDAGraph`, a larger batch, no `.item()` or `print(loss)` in each step |
#
# The last hint is about losing the lead. `.item()` brings a number to the host, so the host waits
# until the GPU is done, and starts anew with an empty queue.
#
# ### Two chips, one product
#
# The same two divisions work for a *link*. Split our product along $D$ over two chips. Each then
# does half of it, $B D F$ FLOPs, and has half of every sum, so it sends its $B \times F$ partial
# sums to the other one, two bytes each. Its FLOPs over the bytes that it *sends* are
#
# $$\frac{B D F}{2 B F} = \frac{D}{2} \quad\text{against}\quad \frac{\text{peak} }{\text{link} }$$
#
# **The batch cancels.** Here more tokens don't help, because each brings sums of its own to send.
# Widen the matrix, and it gains.

# %% tags=["holds"]
assert all(
    abs(matmul_flops(b, D, D) / 2 / (2 * b * D) - D / 2) < 1e-9 for b in (1, B, job.SEQUENCE)
), "Here more tokens don't help, because each brings sums of its own to send"

# %%
from lightspeed.catalog import link

nvlink, port = link("nvlink4").bandwidth, link(job.NETWORK).bandwidth
2 * ridge_point(h100.bf16, nvlink), 2 * ridge_point(h100.bf16, port)

# %% [markdown]
# Over the NVLink of an H100 the matrix has to be {{2 * ridge_point(h100.bf16, nvlink):,.0f}} deep before
# the chips compute longer than they send, and ours of {{D:,}} is. Through the port of our job it
# would have to be {{2 * ridge_point(h100.bf16, port):,.0f}}, and no model is. That is why such splits
# stay inside a node; [lesson 6.2](06_parallelism_2_sent.ipynb) builds on it.

# %% tags=["holds"]
from lightspeed_models.llm.shipped import shipped

deepest = max(decoder(name).width for name in shipped())  # an MLP may be four times as deep
assert 2 * ridge_point(h100.bf16, nvlink) < D and 4 * deepest < 2 * ridge_point(h100.bf16, port), (
    "it would have to be {{2 * ridge_point(h100.bf16, port):,.0f}}, and no model is"
)

# %% [markdown]
# ## Try it
#
# Choose the hardware and the formats, then drag $B$. Before the first move the picture asks you
# where the point will go; click there. Then find a setting in which a better memory would be
# wasted.

# %%
from lightspeed_course.explorers.roofline import explore

explore()

# %% [markdown]
# ## Decide
#
# Pencil first. A wrong answer is diagnosed, and after it the whole derivation is there to open.

# %%
ask("roofline.layer_of_the_job")

# %%
ask("roofline.weight_only_batch", seed="chapter")

# %%
ask("roofline.what_shortens_it", seed="chapter")

# %%
ask("roofline.claim_upgrade", seed="chapter")

# %% [markdown]
# ## The answer
#
# **How can the dashboard and the profiler both be right?** “GPU utilization” is the share of time
# in which at least one kernel was running, whatever that kernel did. It counts a kernel that waits
# for memory like one that computes, while the profiler counts FLOPs. So a busy chip at a few per
# cent of its peak is just what memory-bound work looks like.
#
# **Would a faster GPU help?** Let the chip change, and time two kernels: a ReLU over a billion
# numbers, and {{2 * job.SEQUENCE:,}} tokens times our matrix of {{D:,}} by {{D:,}}.

# %% tags=["figure"]
numbers = 1e9  # assumed
work = {
    "the ReLU": (numbers, 4 * numbers),
    "the matmul": tuple(law(2 * job.SEQUENCE, D, D) for law in (matmul_flops, matmul_bytes)),
}
offers = {
    "H100, as it is": (h100.bf16, h100.hbm_bandwidth),
    "the same with twice the peak": (2 * h100.bf16, h100.hbm_bandwidth),
    "the same with twice the bandwidth": (h100.bf16, 2 * h100.hbm_bandwidth),
    "H200": (accelerator("h200_sxm").bf16, accelerator("h200_sxm").hbm_bandwidth),
    "B200": (accelerator("b200").bf16, accelerator("b200").hbm_bandwidth),
}
least = {o: [time_bounds(*w, *rates).lower for w in work.values()] for o, rates in offers.items()}
now, more_peak, more_bandwidth, on_h200, on_b200 = least.values()
table([[offer, *times] for offer, times in least.items()], ["lower bound on", *work])

# %% [markdown]
# For the ReLU a GPU is faster by as much as its memory is, and by nothing else. The H200 has the
# tensor cores of the H100 and a faster memory: {{now[0] / on_h200[0]:.1f}} times as fast here, and
# not a bit faster for the large matmul, where the peak counts. The B200 has more of both and is
# faster at both.
#
# **What do you do on Tuesday morning?** Divide the kernel's FLOPs by its bytes, and compare with
# the ridge. Below it, three things cost no hardware: fuse the kernel with its neighbours, give it a
# larger batch, or store its numbers in a narrower format. Above it, more peak helps. How far can
# you trust the bound? Measured bf16 products reach most of it, those in fp8 about six tenths
# ([proof](02_roofline_proof.ipynb#Check:-against-measured-kernels)). And if a step takes much longer
# than both clocks say, look for gaps between its kernels, and at the link.
#
# ## Remember

# %% tags=["holds"]
assert more_peak[0] == now[0] == 2 * more_bandwidth[0], "a GPU is faster"
h200, b200 = accelerator("h200_sxm"), accelerator("b200")
assert h200.bf16 == h100.bf16 and on_h200[0] < now[0], "a faster memory: {{now[0] / on_h200[0]:.1f}} times as fast here"
assert on_h200[1] == now[1] == more_bandwidth[1] == 2 * more_peak[1], "not a bit faster"
assert b200.bf16 > h200.bf16 and b200.hbm_bandwidth > h200.hbm_bandwidth and (
    on_b200[0] < on_h200[0] and on_b200[1] < on_h200[1]
), "The B200 has more of both and is faster at both"
from lightspeed.catalog import entries

reached = {
    (e.precision, e.key): time_bounds(
        matmul_flops(e.m, e.k, e.n),
        matmul_bytes(e.m, e.k, e.n, *((1, 1, 2) if e.precision == "fp8" else (2, 2, 2))),
        getattr(h100, e.precision),
        h100.hbm_bandwidth,
    ).lower
    / e.time
    for e in entries("measured").values()
    if e.key.startswith("gemm_h100")
}
assert {p for p, _ in reached} == {"bf16", "fp8"} and all(
    0.6 < share < 1 if p == "bf16" else 0.55 < share < 0.65 for (p, _), share in reached.items()
), "bf16 products reach most of it, those in fp8 about six tenths"

# %% [markdown] tags=["takeaway"]
# - An operation takes at least as long as the slower of two clocks, its arithmetic and its bytes.
# - Divide FLOPs by bytes and compare with the chip's ridge before you buy anything.
# - A batch raises the intensity because its tokens share one reading of the weights; in decoding
#   each sequence reads a cache of its own.

# %% [markdown] tags=["card"]
# | formula | what it is | unit | for the job's layer |
# |---|---|---|---|
# | $\max(\text{FLOPs}/\text{peak},\ \text{bytes}/\text{bandwidth})$ | shortest time, all overlapped | s | {{si(one.lower, "s")}} for one token, {{si(many.lower, "s")}} for {{job.SEQUENCE:,}} |
# | FLOPs / bytes | arithmetic intensity | FLOP/byte | {{one.math / one.comms * ridge:.0f}} for one token |
# | peak / bandwidth | ridge of the machine | FLOP/byte | {{ridge:.0f}} on an H100 |
# | $\max(\text{kernels} \times \text{launch},\ \text{work})$ | a step whose kernels the host launches | s | {{si(eager, "s")}} for a lone token on eight GPUs, if a launch takes {{si(launch, "s")}} |
# | ridge × bytes of a weight / 2 | critical batch | token | {{critical_batch(ridge):.0f}} in bf16, {{critical_batch(ridge, 1):.0f}} with weights of one byte |

# %% [markdown]
# ## In your own framework
#
# Both halves of the dashboard's riddle in one script. Look at what the same matrix yields when one
# row, then many, share a reading of it. And if you have a GPU, keep an eye on `nvidia-smi`
# meanwhile: it calls the chip fully utilized from the first line to the last.

# %% tags=["figure"]
from lightspeed_course import beside

beside("02_two_clocks")

# %% [markdown]
# ## One reading
#
# A job misses its plan. Somebody times a large matrix product on one of its GPUs and puts it under
# the roofline. What does that tell you?

# %%
bench("02")

# %% [markdown]
# ## Exercises, and on
#
# [The exercises](../exercises/02_roofline.ipynb) have functions to write, a tile to size, and a
# batch and a precision to choose for a latency budget. What was measured, and where the law fails,
# is on the [proof page](02_roofline_proof.ipynb). Next comes
# [one kernel, attention](02_roofline_2_kernels.ipynb), in which everything on this page meets.
#
# ## Further reading
#
# - Williams, Waterman and Patterson, *Roofline: an insightful visual performance model for
#   multicore architectures* (2009): the original.
# - Austin et al., *How to Scale Your Model* (2025), chapter 1: the same law on TPUs.
