# %% [markdown]
# # 2.2. The roofline: why is attention slow, and FlashAttention fast?
#
# You profile one layer of your model on a text of eight thousand tokens. The large matrices run as
# lesson 2 said they would. But attention, whose products a pencil puts at a quarter of a
# millisecond, takes more than four times that. A colleague changes one line of your code, and it is
# done in less than half a millisecond. No number was approximated, and the FLOPs even grew a little.
# What did the line save?
#
# Half an hour, and no GPU: everything here is counted. You need [lesson 2](02_roofline.ipynb). What
# the counts are worth beside a real profiler stands on the
# [proof page](02_roofline_proof.ipynb#Kernels,-against-public-profiles).

# %% tags=["holds"]
from lightspeed.catalog import accelerator
from lightspeed.kernels import naive_attention_bytes, query_block_bytes, rescaling_flops
chip = accelerator("h100_sxm")
pencil = 4 * 8 * 8192**2 * 128 / chip.bf16
assert naive_attention_bytes(8, 1, 8192, 128) / chip.hbm_bandwidth > 4 * pencil and (
    0.2e-3 < pencil < 0.3e-3
), "whose products a pencil puts at a quarter of a millisecond, takes more than four times that"
assert query_block_bytes(8, 8192, 128, 128) / chip.l2_bandwidth_measured < 0.5e-3, "it is done in less than half a millisecond"
from lightspeed_course.puzzles import attempt, references
assert attempt("attention", references.attention).right and rescaling_flops(8, 8192, 128, 128) > 0, "No number was approximated, and the FLOPs even grew"

# %% tags=["setup"]
from lightspeed.catalog import accelerator
from lightspeed.kernels import *
from lightspeed_course import ask, job, predict, reveal, si
from lightspeed_course.explorers.kernels import KEYS, REGISTERS, THREADS, clocks, explore_clocks, explore_moves
from lightspeed_models.simulators.kernels import Array, diagnose, launch, tl
from lightspeed_models.simulators.kernels.record import SECTOR, WARP

# %%
job.sheet(until="02.2")

# %% [markdown]
# **Guess first.** A softmax needs the largest number of a row, then the sum of the exponentials, and
# then it can divide. Written down like that, it reads each row three times. How much does it move?

# %%
predict("kernels.softmax_bytes", ..., seed="long")

# %% [markdown]
# ## What does attention write down?
#
# Each query is compared with each key, so the scores are a square: a number for each pair of tokens.
# A softmax makes weights of each row, and the weights add up the values. That is three steps, and in
# plain PyTorch each is a **kernel launch** of its own. But what one launch leaves for the next it
# has to leave in memory. Follow the blocks:

# %%
explore_moves()

# %% tags=["setup"]
h100, N, D = accelerator("h100_sxm"), job.LONG, 128
heads = 8  # of one GPU, with one head of keys between them
square = score_bytes(heads, N)
naive = naive_attention_bytes(heads, 1, N, D)
once = naive_attention_bytes(heads, 1, N, D, crossings=0)
flops = 4 * heads * N**2 * D

# %% [markdown]
# Every block of the square crosses four times: written as a score, read, written as a weight, read.
# In our layer one GPU has {{heads}} of the query heads, so its square is {{si(square, "byte")}} in
# bf16, and four crossings are nearly all of the {{si(naive, "byte")}} that go to memory and back.
# Queries, keys, values and result together are {{si(once, "byte")}}. So lesson 2's two clocks read

# %% tags=["holds"]
assert naive == once + 4 * square, "Every block of the square crosses four times"
assert 4 * square / naive > 0.98, "four crossings are nearly all of"

# %%
naive / h100.hbm_bandwidth, flops / h100.bf16

# %% [markdown]
# and memory's is {{naive / h100.hbm_bandwidth / (flops / h100.bf16):.1f}} times as long. This is the
# millisecond of your profile. It isn't the arithmetic that is slow, and it isn't the inputs. It is
# the square, which nobody asked for: it is written only because one launch has to tell the next.

# %% tags=["holds"]
assert naive / h100.hbm_bandwidth > 4 * flops / h100.bf16, "and memory's is {{naive / h100.hbm_bandwidth / (flops / h100.bf16):.1f}} times as long"

# %% [markdown]
# Why not do all three steps in one launch, then, and keep the square on the chip? That is **kernel
# fusion**, and for a bias and a ReLU it's as easy as it sounds. Here two things are in the way. A
# row of {{N:,}} scores doesn't fit beside the others in what one processor has, and a softmax can't
# divide before it has seen the end of the row.
#
# ## Must a softmax see the whole row first?
#
# No, and this is the one idea that everything else hangs on. Walk along the row in pieces, and keep
# two numbers: the largest score so far, $m$, and the sum of $e^{x - m}$ so far, $\ell$. A new piece
# may bring a larger maximum $m'$. Then every term that was added is too large by the same factor,
# because $e^{x-m'} = e^{x-m} \cdot e^{m-m'}$. So you don't go back. You shrink the sum, and go on:
#
# $$\ell \leftarrow \ell \cdot e^{m - m'} + \sum_\text{piece} e^{x - m'}$$
#
# This is **online softmax**. Try it on a row whose pieces grow:

# %%
import math

row, m, total = [1.0, 3.0, 2.0, 5.0], -math.inf, 0.0
for x in row:
    higher = max(m, x)
    total = total * math.exp(m - higher) + math.exp(x - higher)
    m = higher
total, sum(math.exp(x - max(row)) for x in row)

# %% [markdown]
# It is the same sum, with each number looked at once. And the values that were added up so far can be
# shrunk by the same factor. So one program may hold a block of queries, walk over keys and values in
# tiles, and never have more of the square than one tile. It is written in **Triton**, whose words you
# meet in this order:
#
# | word | what it does |
# |---|---|
# | `tl.program_id(0)` | the number of this program; the same code runs once for each |
# | `tl.arange(0, B)` | the integers below B, a block of them |
# | `i[:, None]`, `d[None, :]` | a column and a row; their sum is a table of places |
# | `tl.load(q + places)`, `tl.store` | bring a block from memory, and write one back |
# | `tl.full`, `tl.zeros` | a block of one number |
# | `tl.dot`, `tl.trans` | a product on tensor cores, and a block turned |
# | `tl.max(x, axis=1)`, `tl.sum` | of each row |
# | `tl.maximum`, `tl.exp`, `+ - * /` | of each number |

# %% tags=["holds"]
assert abs(total - sum(math.exp(x - max(row)) for x in row)) < 1e-12, "It is the same sum"

# %%
def attention(q, k, v, o, N, D, B):
    i, d = tl.program_id(0) * B + tl.arange(0, B), tl.arange(0, D)
    queries = tl.load(q + i[:, None] * D + d[None, :])
    top, total, result = tl.full((B,), -1e30), tl.zeros((B,)), tl.zeros((B, D))
    for start in range(0, N, B):
        places = (start + tl.arange(0, B))[:, None] * D + d[None, :]
        scores = tl.dot(queries, tl.trans(tl.load(k + places))) * D**-0.5
        higher = tl.maximum(top, tl.max(scores, axis=1))
        weights, shrink = tl.exp(scores - higher[:, None]), tl.exp(top - higher)
        total = total * shrink + tl.sum(weights, axis=1)
        result = result * shrink[:, None] + tl.dot(weights, tl.load(v + places))
        top = higher
    tl.store(o + i[:, None] * D + d[None, :], result / total[:, None])


# %% [markdown]
# That is FlashAttention's forward pass, whole. It runs here, without a GPU, on a machine that does
# nothing but count: `launch` runs one *program*, a **thread block** in CUDA, for each block of
# queries, and
# keeps a record of each load and store. One head of our layer, shapes only:

# %%
q, k, v, o = (Array(name, size=N * D, element_bytes=2) for name in "qkvo")
block = 64
one_head = launch(attention, (N // block,), q, k, v, o, N, D, block, values=False)
si(heads * one_head.traffic.bytes, "byte"), si(query_block_bytes(heads, N, D, block), "byte")

# %% [markdown]
# The machine and the closed form agree to the byte. And they say something that you may not have
# expected.
#
# ## Where did the bytes go?
#
# {{si(query_block_bytes(heads, N, D, block), "byte")}} are what the naive version moved. Nothing of the
# square is written, and yet as much crosses! Look at who asks for what. Every block of queries walks
# over all keys and values, and with {{block}} queries in a block there are {{N // block}} such walks
# a head.
# The difference is *where* those bytes come from. Keys and values of a head are
# {{si(2 * N * D * 2, "byte")}}, which fit in the L2 cache, so DRAM delivers them once and L2 the
# rest. Fusing has moved the traffic one level up, to a memory that is faster, but not infinitely so.
# Guess which block makes L2 fast enough before you move it:

# %% tags=["holds"]
assert heads * one_head.traffic.bytes == query_block_bytes(heads, N, D, block), (
    "The machine and the closed form agree"
)
assert abs(query_block_bytes(heads, N, D, block) / naive - 1) < 0.01, "are what the naive version moved"
assert one_head.traffic_of("k").bytes == (N // block) * N * D * 2, "Every block of queries walks"
assert {access.array for access in one_head.accesses} == {*"qkvo"}, "Nothing of the square is written"
assert 2 * N * D * 2 < h100.l2_capacity, "which fit in the L2 cache"
assert h100.hbm_bandwidth < h100.l2_bandwidth_measured < 2 * h100.hbm_bandwidth, (
    "to a memory that is faster, but not infinitely"
)

# %%
explore_clocks()

# %% tags=["setup"]
blocks = 64, 128, 256
small, large, wide = (clocks("h100_sxm", "one, in tiles", N, b, False) for b in blocks)
faster = h100.l2_bandwidth / h100.l2_bandwidth_measured
warps, most = large.together * 128 // WARP, 2 * 1024 // WARP

# %% [markdown]
# Twice the queries in a block ask half as often. At {{blocks[0]}}, L2 allows
# {{si(small.flops / small.bound, "FLOP/s")}}; at {{blocks[1]}},
# {{si(large.flops / large.bound, "FLOP/s")}}, by the rate that somebody measured of it (the data
# sheet's width and clock would give {{faster:.1f}} times as much). So the block wants to be large.
# What stops it? What the block is working on lives in registers. With {{KEYS}} keys in a tile, each
# of {{blocks[1]}} queries has {{KEYS}} scores and {{D}} numbers of its result, so the block has
# {{blocks[1] * (KEYS + D):,}} numbers, a register each. Its {{THREADS}} threads share them:
# {{large.registers:.0f}} registers a thread, of the {{REGISTERS}} that it has. At {{blocks[2]}}
# queries it would need {{wide.registers:.0f}}.
#
# With such a block just {{large.together}} programs fit on a processor (an **SM**), {{warps}} warps
# of the {{most}} that it could hold. A profiler calls this an **occupancy** of {{warps / most:.1%}},
# and some guides would have you raise it. But occupancy is a means: warps that wait are there to hide the way to memory. A
# kernel that asks for its next tile early hides it with few. Here more programs would mean smaller
# blocks, and smaller blocks ask L2 more often.

# %% tags=["holds"]
assert small.slowest == large.slowest == "L2" and large.l2 < 0.51 * small.l2, (
    "Twice the queries in a block ask half as often"
)
assert large.registers == blocks[1] * (KEYS + D) / THREADS <= REGISTERS < wide.registers, "{{large.registers:.0f}} registers a thread, of the {{REGISTERS}} that it has"
assert warps / most == 1 / 8 and programs_per_sm(0, 16, 1024) == 2, "A profiler calls this"
assert large.together == programs_per_sm(2 * D * (blocks[1] + 2 * 64), large.registers, 128), "just {{large.together}} programs fit on a processor"
assert h100.l2_bandwidth == faster * h100.l2_bandwidth_measured and faster > 1, "width and clock would give {{faster:.1f}} times as much"
assert small.l2 > large.l2, "smaller blocks ask L2 more often"

# %%
ask("kernels.block_ceiling", seed="long")

# %%
ask("kernels.raise_occupancy", seed="b")

# %% [markdown]
# ## Is a byte that you ask for the byte that crosses?
#
# Not always. Memory crosses in *sectors* of {{SECTOR}} bytes, and the {{WARP}} threads of a *warp* ask
# together. If they
# ask for neighbours, each sector is used whole: the load is **coalesced**. If each asks for a number
# of its own row, a whole sector crosses for the sake of two or four bytes. Here is a transpose that
# reads rows and writes columns:

# %% tags=["holds"]
assert strided_bytes(1024, 1, 4) == 4 * 1024 < strided_bytes(1024, 256, 4), (
    "ask for neighbours, each sector is used whole"
)

# %%
def transpose(x, y, M, N):
    i, j = tl.program_id(0), tl.arange(0, N)
    tl.store(y + j * M + i, tl.load(x + i * N + j))


x, y = (Array(name, size=256 * 256) for name in "xy")
columns = launch(transpose, (256,), x, y, 256, 256, values=False)
[finding.sentence for finding in diagnose([columns])]

# %% [markdown]
# The stores move {{columns.traffic.crossing_out / columns.traffic.bytes_out:.0f}} times what they
# store. A transpose in square tiles, which turns each tile on the chip, moves every byte once. And
# the *order* in which programs start is worth as much. A product's neighbouring tiles share a strip;
# if they run at the same time, one reads it from DRAM and the others find it in L2. On the proof
# page one and the same product reads over ten times as much from DRAM by nothing but which side of
# the grid runs first.

# %% tags=["holds"]
from lightspeed.catalog import measured
from lightspeed_course.puzzles.references import _transpose
tiles = launch(_transpose, (8, 8), x, y, 256, 256, 32, values=False)
assert tiles.traffic.crossing == 2 * 4 * 256**2 < columns.traffic.crossing, "A transpose in square tiles, which turns each tile on the chip, moves every byte once"
assert all(row["other_order"] > 10 * row["counted_in"] for row in measured("kernels")["gemm"][:1]), "reads over ten times as much from DRAM by nothing but which side"
assert columns.traffic.crossing_out == 8 * columns.traffic.bytes_out, "The stores move {{columns.traffic.crossing_out / columns.traffic.bytes_out:.0f}} times what they store"

# %%
ask("kernels.sector_share", seed="chapter")

# %% tags=["setup"]
from lightspeed_models.llm import decoder

backward = backward_attention_flops(heads, N, D)
kept = si(square, "byte")
layers, parts, short = decoder(job.MODEL).depth, int(h100.sm_count), 512
wait = 700e-9  # assumed: a load from DRAM, until it is here

# %% [markdown]
# ## What does training keep, and what does one token read?
#
# The backward pass needs the weights of attention again. To keep them would take {{kept}} a layer,
# {{si(layers * square, "byte")}} for all {{layers}}: as much as the GPU has. So FlashAttention keeps
# a maximum and a sum a row, one number, and makes each tile of the square anew. That is a fifth
# product where four would do, {{backward / flops:.1f}} times the forward pass in place of
# {{backward_attention_flops(heads, N, D, 4) / flops:.0f}}, and it's *faster*, for the reason that
# you know by now.
#
# And when the model writes? One token is one query. With a program for each head of keys, a lone
# request starts a single one here, and one SM of {{parts}} would read everything while the others idle.
# So the context is split, each part makes its own maximum and sum, and the parts are put together as
# pieces of a row are: with the same shrinking, of results that were divided by sums of their own.

# %% tags=["holds"]
assert backward == 5 / 4 * backward_attention_flops(heads, N, D, 4), "a fifth product where four would do, {{backward / flops:.1f}} times the forward pass"
assert waves(1, parts) * parts == 1, "one SM of {{parts}} would read everything while the others idle"
assert 0.9 < layers * square / h100.hbm_capacity < 1.1, "as much as the GPU has"

# %%
def part(scores, values):
    weights = [math.exp(x - max(scores)) for x in scores]
    return max(scores), sum(weights), sum(map(float.__mul__, weights, values)) / sum(weights)


values = [10.0, 20.0, 30.0, 40.0]
(m1, l1, o1), (m2, l2, o2) = part(row[:2], values[:2]), part(row[2:], values[2:])
l1, l2 = l1 * math.exp(m1 - max(m1, m2)), l2 * math.exp(m2 - max(m1, m2))
(l1 * o1 + l2 * o2) / (l1 + l2), part(row, values)[2]

# %% [markdown]
# Two halves, and the same result as from the whole. What that costs here is
# {{si(partial_bytes(heads, D, parts), "byte")}} beside {{si(2 * N * D * 2, "byte")}} of keys and
# values, and a second launch.

# %% tags=["holds"]
assert partial_bytes(heads, D, parts) < 2 * N * D * 2, "What that costs here is"
assert abs((l1 * o1 + l2 * o2) / (l1 + l2) - part(row, values)[2]) < 1e-12, "Two halves, and the same result as from the whole"

# %%
ask("kernels.split_decode", seed="chapter")

# %%
ask("kernels.keep_or_recompute", seed="chapter")

# %%
reveal("kernels.softmax_bytes", seed="long")

# %% [markdown]
# ## What did the line save?
#
# The square. `scaled_dot_product_attention` picks a fused kernel, `torch.compile` would fuse what is
# elementwise around it, and both do what you have done by hand: they keep on the chip what only the
# next step needs. The FLOPs grew, by the shrinking, by
# {{rescaling_flops(heads, N, D, 128) / flops:.1%}}. DRAM's clock fell from
# {{si(naive / h100.hbm_bandwidth, "s")}} to {{si(once / h100.hbm_bandwidth, "s")}}, and what is left
# is L2's, {{si(large.times[1], "s")}} at the larger block, against the {{si(flops / h100.bf16, "s")}} of
# the products.
#
# **What does a compiler do about it?** `torch.compile` fuses a chain of elementwise operations by
# itself, so each result in between stays in registers. It doesn't invent online softmax: that a sum
# can be mended is an idea, and the fused attention was written by people. What a compiler takes away
# as well is launches, whose cost is the host's
# ([lesson 2](02_roofline.ipynb#And-if-neither-clock-explains-it?)), as recording a step once does
# (**CUDA graphs**).
#
# **And if neither of them explains the time?** Then too few bytes are on their way. Memory takes
# {{si(wait, "s")}} or so to answer, so at its rate each SM must have
# {{si(h100.hbm_bandwidth * wait / parts, "byte")}} on their way at any moment: asked for by many warps,
# or by few with wide and early loads.
#
# **Does it help a short text?** Less. The square grows with the square of the text, all else with
# its length; at {{short}} tokens a head's square is {{short / D:.0f}} times its keys, at {{N:,}}
# {{N / D:.0f}} times.
#
# **Is it the end?** No: a causal mask lets a kernel skip the tiles that are hidden whole, about
# half of them.

# %% tags=["holds"]
assert once / h100.hbm_bandwidth < large.times[1] < naive / h100.hbm_bandwidth, (
    "DRAM's clock fell from"
)
assert all(
    score_bytes(8, 2 * n) == 4 * score_bytes(8, n)
    and naive_attention_bytes(8, 1, 2 * n, D, crossings=0) == 2 * naive_attention_bytes(8, 1, n, D, crossings=0)
    for n in (short, N)
), "The square grows with the square of the text, all else with its length"
assert 0.5 < causal_block_bytes(8, N, D, 128) / query_block_bytes(8, N, D, 128) < 0.52, (
    "about half of them"
)

# %% [markdown] tags=["takeaway"]
# - What one launch leaves for the next crosses memory twice, unless it fits in L2; a fused kernel
#   keeps it on the chip.
# - Online softmax makes attention fusible: shrink what you have by $e^{m-m'}$ and go on.
# - Keys and values that fit in L2 are asked of it once for each block of queries: twice the block
#   asks half as often, until a thread runs out of registers.

# %% [markdown] tags=["card"]
# | formula | meaning | unit | for the job |
# |---|---|---|---|
# | $c\,h N^2 e$ | traffic of the square of $h$ heads that crosses $c$ times, $N$ tokens, $e$ bytes a number | byte | {{si(4 * square, "byte")}} |
# | $2 h N d\,(1 + N/b)\,e$ | online attention asks for, with $b$ queries in a block, $d$ numbers a head | byte | {{si(query_block_bytes(heads, N, D, 128), "byte")}} |
# | $2 (h + k) N d\,e$ | fused attention takes from DRAM and leaves there: Q, K, V and O once, $k$ heads of keys that fit in L2 | byte | {{si(once, "byte")}} |
# | $(p + 1)\,R C\,e$ | softmax of $R$ rows of $C$ numbers in $p$ passes; the job's square ($R = hN$, $C = N$) in one: read, written | byte | {{si(softmax_bytes(heads * N, N, 1, 2), "byte")}} |
# | $\min(s\,e, q)$ | crosses for each number, $s$ apart, in sectors of $q$ = {{SECTOR}} bytes | byte | {{strided_bytes(1, D, 2):.0f}} |

# %% [markdown]
# ## Puzzles, next
#
# [Twelve puzzles](../exercises/02_roofline_2_kernels.ipynb): write each kernel, right and within its
# bytes; what crossed is told to you. Next: [many processors](03_amdahl_gustafson.ipynb).
