# %% [markdown]
# # Exercises 2.2: twelve kernels
#
# Write your answer in place of the dots and run the cell: `check` says whether it is right and, if not, what may have
# happened. No GPU is needed, as kernels are counted here; lesson 2.2 has what you need, and you may use
# `lightspeed.kernels`.

# %%
from lightspeed.catalog import accelerator
from lightspeed.kernels import *
from lightspeed_course import ask, check
from lightspeed_course.puzzles import PUZZLES
from lightspeed_course.puzzles.cases import SMS, TOY
from lightspeed_models.simulators.kernels import tl

# %% [markdown]
# Write each kernel so that it is right *and* asks for no more bytes than it must. `check` runs it on
# inputs that you don't see, in two orders of programs, and counts what crosses between memory and a
# small chip: it has {{SMS}} processors, on which a program has {{TOY.shared // 1024}} KiB of shared
# memory for operands of products, and {{TOY.registers}} registers a thread. What is wrong is told by
# what crossed.
#
# The words are Triton's: `tl.program_id`, `tl.arange`, `tl.load`, `tl.store`, `tl.dot` and some more;
# `help(tl)` lists them. A block has a power of two of places, a mask switches lanes off, and
# `x[:, None]` makes a column of a row. `print` works inside a kernel, and so does a breakpoint. In your
# solution `launch(kernel, grid, ...)` starts one program for each place of the grid, and
# `launch.empty("z", size)` makes an array for what one launch leaves to the next. Lesson 2.2 has an
# attention in these words.

# %% [markdown]
# ## Copy every s-th element

# %%
PUZZLES["strided_copy"]

# %%
def strided_copy_kernel(x, y, n, stride, B):
    # BEGIN SOLUTION
    # STUB: ...
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y + i, tl.load(x + i * stride, mask=i < n), mask=i < n)
    # END SOLUTION


def strided_copy(launch, x, y, n, stride):
    # BEGIN SOLUTION
    # STUB: ...
    launch(strided_copy_kernel, (tl.cdiv(n, 64),), x, y, n, stride, 64)
    # END SOLUTION


check("puzzle.strided_copy", strided_copy)

# %% [markdown]
# ## Transpose

# %%
PUZZLES["transpose"]

# %%
def transpose_kernel(x, y, M, N, B):
    # BEGIN SOLUTION
    # STUB: ...
    i = tl.program_id(0) * B + tl.arange(0, B)
    j = tl.program_id(1) * B + tl.arange(0, B)
    inside = (i < M)[:, None] & (j < N)[None, :]
    tile = tl.load(x + i[:, None] * N + j[None, :], mask=inside)
    inside = (j < N)[:, None] & (i < M)[None, :]
    tl.store(y + j[:, None] * M + i[None, :], tl.trans(tile), mask=inside)
    # END SOLUTION


def transpose(launch, x, y, M, N):
    # BEGIN SOLUTION
    # STUB: ...
    launch(transpose_kernel, (tl.cdiv(M, 32), tl.cdiv(N, 32)), x, y, M, N, 32)
    # END SOLUTION


check("puzzle.transpose", transpose)

# %% [markdown]
# ## Bias and ReLU

# %%
PUZZLES["bias_relu"]

# %%
def bias_relu_kernel(x, b, y, M, N, BM, BN):
    # BEGIN SOLUTION
    # STUB: ...
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    j = tl.program_id(1) * BN + tl.arange(0, BN)
    inside = (i < M)[:, None] & (j < N)[None, :]
    rows = i[:, None] * N + j[None, :]
    bias = tl.load(b + j, mask=j < N)
    tl.store(y + rows, tl.maximum(tl.load(x + rows, mask=inside) + bias[None, :], 0.0), mask=inside)
    # END SOLUTION


def bias_relu(launch, x, b, y, M, N):
    # BEGIN SOLUTION
    # STUB: ...
    launch(bias_relu_kernel, (tl.cdiv(M, 16), tl.cdiv(N, 64)), x, b, y, M, N, 16, 64)
    # END SOLUTION


check("puzzle.bias_relu", bias_relu)

# %% [markdown]
# ## Sum each row

# %%
PUZZLES["row_sum"]

# %%
def row_sum_kernel(x, y, N, B):
    # BEGIN SOLUTION
    # STUB: ...
    row = tl.program_id(0)
    total = tl.zeros((B,))
    for start in range(0, N, B):
        j = start + tl.arange(0, B)
        total = total + tl.load(x + row * N + j, mask=j < N)
    tl.store(y + row, tl.sum(total, axis=0))
    # END SOLUTION


def row_sum(launch, x, y, M, N):
    # BEGIN SOLUTION
    # STUB: ...
    launch(row_sum_kernel, (M,), x, y, N, 128)
    # END SOLUTION


check("puzzle.row_sum", row_sum)

# %% [markdown]
# ## Softmax of each row

# %%
PUZZLES["softmax"]

# %%
def softmax_kernel(x, y, N, B):
    # BEGIN SOLUTION
    # STUB: ...
    row, j = tl.program_id(0), tl.arange(0, B)
    scores = tl.load(x + row * N + j, mask=j < N, other=-1e30)
    powers = tl.exp(scores - tl.max(scores, axis=0))
    tl.store(y + row * N + j, powers / tl.sum(powers, axis=0), mask=j < N)
    # END SOLUTION


def softmax(launch, x, y, M, N):
    # BEGIN SOLUTION
    # STUB: ...
    launch(softmax_kernel, (M,), x, y, N, 512)
    # END SOLUTION


check("puzzle.softmax", softmax)

# %% [markdown]
# ## Matmul in tiles

# %%
PUZZLES["matmul"]

# %%
def matmul_kernel(a, b, c, N, K, BM, BN, BK):
    # BEGIN SOLUTION
    # STUB: ...
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    j = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN))
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        left = tl.load(a + i[:, None] * K + k[None, :])
        right = tl.load(b + k[:, None] * N + j[None, :])
        total = total + tl.dot(left, right)
    tl.store(c + i[:, None] * N + j[None, :], total)
    # END SOLUTION


def matmul(launch, a, b, c, M, N, K):
    # BEGIN SOLUTION
    # STUB: ...
    launch(matmul_kernel, (M // 32, N // 32), a, b, c, N, K, 32, 32, 16)
    # END SOLUTION


check("puzzle.matmul", matmul)

# %% [markdown]
# ## Matmul with a long side

# %%
PUZZLES["split_k"]

# %%
def split_k_kernel(a, b, c, K, part):
    # BEGIN SOLUTION
    # STUB: ...
    i, j = tl.arange(0, 16), tl.arange(0, 16)
    total = tl.zeros((16, 16))
    first = tl.program_id(2) * part
    for start in range(first, first + part, 16):
        k = start + tl.arange(0, 16)
        left = tl.load(a + i[:, None] * K + k[None, :])
        total = total + tl.dot(left, tl.load(b + k[:, None] * 16 + j[None, :]))
    tl.atomic_add(c + i[:, None] * 16 + j[None, :], total)
    # END SOLUTION


def split_k(launch, a, b, c, K):
    # BEGIN SOLUTION
    # STUB: ...
    launch(split_k_kernel, (1, 1, 8), a, b, c, K, K // 8)
    # END SOLUTION


check("puzzle.split_k", split_k)

# %% [markdown]
# ## RMSNorm

# %%
PUZZLES["rms_norm"]

# %%
def rms_norm_kernel(x, w, y, N, B):
    # BEGIN SOLUTION
    # STUB: ...
    row, j = tl.program_id(0), tl.arange(0, B)
    v = tl.load(x + row * N + j, mask=j < N)
    scale = tl.rsqrt(tl.sum(v * v, axis=0) / N + 1e-5)
    tl.store(y + row * N + j, v * scale * tl.load(w + j, mask=j < N), mask=j < N)
    # END SOLUTION


def rms_norm(launch, x, w, y, M, N):
    # BEGIN SOLUTION
    # STUB: ...
    launch(rms_norm_kernel, (M,), x, w, y, N, 512)
    # END SOLUTION


check("puzzle.rms_norm", rms_norm)

# %% [markdown]
# ## RoPE in place

# %%
PUZZLES["rope"]

# %%
def rope_kernel(x, cos, sin, H, D):
    # BEGIN SOLUTION
    # STUB: ...
    t, i = tl.program_id(0), tl.arange(0, D // 2)
    c, s = tl.load(cos + t * (D // 2) + i), tl.load(sin + t * (D // 2) + i)
    for h in range(H):
        first = x + (t * H + h) * D + i
        second = first + D // 2
        a, b = tl.load(first), tl.load(second)
        tl.store(first, a * c - b * s)
        tl.store(second, b * c + a * s)
    # END SOLUTION


def rope(launch, x, cos, sin, T, H, D):
    # BEGIN SOLUTION
    # STUB: ...
    launch(rope_kernel, (T,), x, cos, sin, H, D)
    # END SOLUTION


check("puzzle.rope", rope)

# %% [markdown]
# ## Gather a paged cache

# %%
PUZZLES["paged_gather"]

# %%
def paged_gather_kernel(pages, table, out, L, D):
    # BEGIN SOLUTION
    # STUB: ...
    j = tl.program_id(0)
    page = tl.load(table + j)
    t, d = tl.arange(0, 16), tl.arange(0, D)
    inside = (j * 16 + t < L)[:, None] & (d < D)[None, :]
    rows = t[:, None] * D + d[None, :]
    tl.store(
        out + j * 16 * D + rows, tl.load(pages + page * 16 * D + rows, mask=inside), mask=inside
    )
    # END SOLUTION


def paged_gather(launch, pages, table, out, L, D):
    # BEGIN SOLUTION
    # STUB: ...
    launch(paged_gather_kernel, (tl.cdiv(L, 16),), pages, table, out, L, D)
    # END SOLUTION


check("puzzle.paged_gather", paged_gather)

# %% [markdown]
# ## Online attention

# %%
PUZZLES["attention"]

# %%
def attention_kernel(q, k, v, o, N, D, G, causal):
    # BEGIN SOLUTION
    # STUB: ...
    block, head = tl.program_id(0), tl.program_id(1)
    i, d = block * 32 + tl.arange(0, 32), tl.arange(0, D)
    rows = head * N * D + i[:, None] * D + d[None, :]
    queries = tl.load(q + rows)
    top, total, result = tl.full((32,), -1e30), tl.zeros((32,)), tl.zeros((32, D))
    for start in range(0, (block + 1) * 32 if causal else N, 32):
        j = start + tl.arange(0, 32)
        places = head // G * N * D + j[:, None] * D + d[None, :]
        scores = tl.dot(queries, tl.trans(tl.load(k + places))) * D**-0.5
        if causal:
            scores = tl.where(i[:, None] >= j[None, :], scores, -1e30)
        higher = tl.maximum(top, tl.max(scores, axis=1))
        powers, shrink = tl.exp(scores - higher[:, None]), tl.exp(top - higher)
        total = total * shrink + tl.sum(powers, axis=1)
        result = result * shrink[:, None] + tl.dot(powers, tl.load(v + places))
        top = higher
    tl.store(o + rows, result / total[:, None])
    # END SOLUTION


def attention(launch, q, k, v, o, N, D):
    # BEGIN SOLUTION
    # STUB: ...
    launch(attention_kernel, (N // 32,), q, k, v, o, N, D, 1, False)
    # END SOLUTION


check("puzzle.attention", attention)

# %% [markdown]
# ## Grouped and causal attention

# %%
PUZZLES["gqa_causal"]

# %%
def gqa_causal(launch, q, k, v, o, H, G, N, D):
    # BEGIN SOLUTION
    # STUB: ...
    launch(attention_kernel, (N // 32, H), q, k, v, o, N, D, G, True)
    # END SOLUTION


check("puzzle.gqa_causal", gqa_causal)

# %% [markdown]
# ## Questions

# %%
ask("kernels.naive_times")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # times
h100 = accelerator("h100_sxm")
moved = naive_attention_bytes(1, 1, 8192, 128)
answer = (moved / h100.hbm_bandwidth) / (4 * 8192**2 * 128 / h100.bf16)
# END SOLUTION
check("kernels.naive_times", answer)

# %%
ask("kernels.softmax_bytes")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # GB
answer = softmax_bytes(16384, 16384, 3) / 1e9
# END SOLUTION
check("kernels.softmax_bytes", answer)

# %%
ask("kernels.sector_share")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # per cent
answer = 100 * 4 / 32
# END SOLUTION
check("kernels.sector_share", answer)

# %%
ask("kernels.which_tile")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # elements
answer = 4 * 24576 * 2304 * 768 / 1.36e9
# END SOLUTION
check("kernels.which_tile", answer)

# %%
ask("kernels.block_ceiling")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # TFLOP/s
answer = 4 * 64 * 128 / 512 * 5.5
# END SOLUTION
check("kernels.block_ceiling", answer)

# %%
ask("kernels.registers_of_block")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # registers
answer = (64 + 128) * 128 / 128
# END SOLUTION
check("kernels.registers_of_block", answer)

# %%
ask("kernels.raise_occupancy")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # one of the words
answer = "slower"
# END SOLUTION
check("kernels.raise_occupancy", answer)

# %%
ask("kernels.split_decode")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # one of the words
answer = "split"
# END SOLUTION
check("kernels.split_decode", answer)

# %%
ask("kernels.backward_memory")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # GB
answer = score_bytes(8, 8192) / 1e9
# END SOLUTION
check("kernels.backward_memory", answer)

# %%
ask("kernels.last_wave")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # per cent
answer = 100 * (1 - waves(300, 132, 2) / 2)
# END SOLUTION
check("kernels.last_wave", answer)

# %%
ask("kernels.fused_chain")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # µs
answer = 4 * 2 * 2 * 2**26 / accelerator("h100_sxm").hbm_bandwidth * 1e6
# END SOLUTION
check("kernels.fused_chain", answer)

# %%
ask("kernels.graph_or_fusion")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # one of the words
answer = "graph"
# END SOLUTION
check("kernels.graph_or_fusion", answer)

# %%
ask("kernels.largest_block")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # one of the words
answer = "b128"
# END SOLUTION
check("kernels.largest_block", answer)

# %%
ask("kernels.bytes_in_flight")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # kB
answer = accelerator("h100_sxm").hbm_bandwidth * 700e-9 / 132 / 1e3
# END SOLUTION
check("kernels.bytes_in_flight", answer)

# %%
ask("kernels.below_both_clocks")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # one of the words
answer = "wider"
# END SOLUTION
check("kernels.below_both_clocks", answer)

# %%
ask("kernels.keep_or_recompute")

# %%
# BEGIN SOLUTION
# STUB: answer = ...  # one of the words
answer = "again"
# END SOLUTION
check("kernels.keep_or_recompute", answer)
