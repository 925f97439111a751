"""Solutions of the puzzles that are wrong or dear, and the kind of finding that each must earn."""

from lightspeed_course.puzzles.references import LOW, _attention, _bias_relu, _matmul, _split_k
from lightspeed_models.simulators.kernels import tl


def rows_in_columns_out(launch, x, y, M, N):
    """A transpose that stores a column a program."""

    def kernel(x, y, M, N, B):
        i, j = tl.program_id(0), tl.arange(0, B)
        tl.store(y + j * M + i, tl.load(x + i * N + j, mask=j < N), mask=j < N)

    launch(kernel, (M,), x, y, M, N, 128)


def two_launches(launch, x, b, y, M, N):
    """The sum goes to memory and comes back."""

    def relu(z, y, n, B):
        i = tl.program_id(0) * B + tl.arange(0, B)
        tl.store(y + i, tl.maximum(tl.load(z + i, mask=i < n), 0.0), mask=i < n)

    def add(x, b, z, N, B):
        i, j = tl.program_id(0), tl.arange(0, B)
        total = tl.load(x + i * N + j, mask=j < N) + tl.load(b + j, mask=j < N)
        tl.store(z + i * N + j, total, mask=j < N)

    z = launch.empty("z", M * N)
    launch(add, (M,), x, b, z, N, 128)
    launch(relu, (tl.cdiv(M * N, 256),), z, y, M * N, 256)


def three_passes(launch, x, y, M, N):
    """Softmax that reads each row three times."""

    def kernel(x, y, N, B):
        row, top, total = tl.program_id(0) * N, LOW, 0.0
        for start in range(0, N, B):
            j = start + tl.arange(0, B)
            top = max(top, tl.max(tl.load(x + row + j, mask=j < N, other=LOW), axis=0))
        for start in range(0, N, B):
            j = start + tl.arange(0, B)
            total += tl.sum(tl.exp(tl.load(x + row + j, mask=j < N, other=LOW) - top), axis=0)
        for start in range(0, N, B):
            j = start + tl.arange(0, B)
            powers = tl.exp(tl.load(x + row + j, mask=j < N) - top)
            tl.store(y + row + j, powers / total, mask=j < N)

    launch(kernel, (M,), x, y, N, 128)


def an_element_a_program(launch, a, b, c, M, N, K):
    """A matmul whose programs share nothing."""

    def kernel(a, b, c, N, K):
        i, j, k = tl.program_id(1), tl.program_id(0), tl.arange(0, K)
        row, column = tl.load(a + i * K + k), tl.load(b + k * N + j)
        tl.store(c + i * N + j, tl.sum(row * column, axis=0))

    launch(kernel, (N, M), a, b, c, N, K)


def stores_of_parts(launch, a, b, c, K):
    """Split-K that stores where it should add."""

    def kernel(a, b, c, K, part):
        i, k0, total = tl.arange(0, 16), tl.program_id(0) * part, tl.zeros((16, 16))
        for start in range(k0, k0 + part, 16):
            k = start + tl.arange(0, 16)
            left = tl.load(a + i[:, None] * K + k[None, :])
            total = total + tl.dot(left, tl.load(b + k[:, None] * 16 + i[None, :]))
        tl.store(c + i[:, None] * 16 + i[None, :], total)

    launch(kernel, (8,), a, b, c, K, K // 8)


def neighbours(launch, x, cos, sin, T, H, D):
    """Pairs of neighbours, as if a rotation did not care: each load uses half of its sectors."""

    def kernel(x, cos, sin, H, D):
        t, h, i = tl.program_id(0), tl.program_id(1), tl.arange(0, D // 2)
        first = x + (t * H + h) * D + 2 * i
        a, b = tl.load(first), tl.load(first + 1)
        c, s = tl.load(cos + t * (D // 2) + i), tl.load(sin + t * (D // 2) + i)
        tl.store(first, a * c - b * s)
        tl.store(first + 1, b * c + a * s)

    launch(kernel, (T, H), x, cos, sin, H, D)


def square_in_memory(launch, q, k, v, o, N, D):
    """Attention in three launches, its scores in memory."""

    def scores(q, k, s, N, D):
        i, d = tl.program_id(0) * 32 + tl.arange(0, 32), tl.arange(0, D)
        queries = tl.load(q + i[:, None] * D + d[None, :])
        j = tl.program_id(1) * 32 + tl.arange(0, 32)
        keys = tl.load(k + j[:, None] * D + d[None, :])
        tl.store(s + i[:, None] * N + j[None, :], tl.dot(queries, tl.trans(keys)) * D**-0.5)

    def normalize(s, N, B):
        row, j = tl.program_id(0) * N, tl.arange(0, B)
        x = tl.load(s + row + j, mask=j < N, other=LOW)
        powers = tl.exp(x - tl.max(x, axis=0))
        tl.store(s + row + j, powers / tl.sum(powers, axis=0), mask=j < N)

    s = launch.empty("s", N * N, 2)
    launch(scores, (N // 32, N // 32), q, k, s, N, D)
    launch(normalize, (N,), s, N, 128)
    launch(_matmul, (N // 16, D // 16), s, v, o, D, N, 16, 16, 16)


def all_blocks(launch, q, k, v, o, H, G, N, D):
    """Causal attention that reads what its mask throws away."""

    def kernel(q, k, v, o, N, D, G):
        block, head = tl.program_id(0), tl.program_id(1)
        i, d = block * 32 + tl.arange(0, 32), tl.arange(0, D)
        rows = head * N * D + i[:, None] * D + d[None, :]
        queries = tl.load(q + rows)
        top, total, result = tl.full((32,), LOW), tl.zeros((32,)), tl.zeros((32, D))
        for start in range(0, N, 32):
            j = start + tl.arange(0, 32)
            places = head // G * N * D + j[:, None] * D + d[None, :]
            s = tl.dot(queries, tl.trans(tl.load(k + places))) * D**-0.5
            s = tl.where(i[:, None] >= j[None, :], s, LOW)
            higher = tl.maximum(top, tl.max(s, axis=1))
            powers, shrink = tl.exp(s - higher[:, None]), tl.exp(top - higher)
            total = total * shrink + tl.sum(powers, axis=1)
            result = result * shrink[:, None] + tl.dot(powers, tl.load(v + places))
            top = higher
        tl.store(o + rows, result / total[:, None])

    launch(kernel, (N // 32, H), q, k, v, o, N, D, G)


def wide_blocks(launch, x, b, y, M, N):
    """Blocks of 256 columns for a hundred: most lanes are off."""
    launch(_bias_relu, (tl.cdiv(M, 16), 1), x, b, y, M, N, 16, 256)


def in_place(launch, x, y, M, N):
    """A transpose that stores to its own input."""

    def kernel(x, y, M, N, B):
        i = tl.program_id(0) * B + tl.arange(0, B)
        j = tl.program_id(1) * B + tl.arange(0, B)
        inside = (i < M)[:, None] & (j < N)[None, :]
        tile = tl.load(x + i[:, None] * N + j[None, :], mask=inside)
        inside = (j < N)[:, None] & (i < M)[None, :]
        tl.store(x + j[:, None] * M + i[None, :], tl.trans(tile), mask=inside)

    launch(kernel, (tl.cdiv(M, 16), tl.cdiv(N, 16)), x, y, M, N, 16)


def turned_places(launch, x, y, M, N):
    """A right transpose without tl.trans: the tile is stored at turned places."""

    def kernel(x, y, M, N, B):
        i = tl.program_id(0) * B + tl.arange(0, B)
        j = tl.program_id(1) * B + tl.arange(0, B)
        inside = (i < M)[:, None] & (j < N)[None, :]
        tile = tl.load(x + i[:, None] * N + j[None, :], mask=inside)
        tl.store(y + j[None, :] * M + i[:, None], tile, mask=inside)

    launch(kernel, (tl.cdiv(M, 32), tl.cdiv(N, 32)), x, y, M, N, 32)


def one_program(launch, a, b, c, K):
    """Split-K that nobody shares."""
    launch(_split_k, (1,), a, b, c, K, K)


def no_other(launch, x, y, M, N):
    """A softmax whose masked lanes hold 0."""

    def kernel(x, y, N, B):
        row, j = tl.program_id(0) * N, tl.arange(0, B)
        scores = tl.load(x + row + j, mask=j < N)
        powers = tl.exp(scores - tl.max(scores, axis=0))
        tl.store(y + row + j, powers / tl.sum(powers, axis=0), mask=j < N)

    launch(kernel, (M,), x, y, N, 512)


def no_other_in_the_sum(launch, x, y, M, N):
    """Softmax whose maximum is right, and whose sum counts masked lanes."""

    def kernel(x, y, N, B):
        row, j = tl.program_id(0) * N, tl.arange(0, B)
        top = tl.max(tl.load(x + row + j, mask=j < N, other=LOW), axis=0)
        powers = tl.exp(tl.load(x + row + j, mask=j < N) - top)
        tl.store(y + row + j, powers / tl.sum(powers, axis=0), mask=j < N)

    launch(kernel, (M,), x, y, N, 512)


def small_tiles(launch, a, b, c, M, N, K):
    """A matmul in the smallest tiles that there are."""
    launch(_matmul, (M // 16, N // 16), a, b, c, N, K, 16, 16, 16)


def tables_for_each_head(launch, x, cos, sin, T, H, D):
    """RoPE with a program for each head, each with the tables of its token."""

    def kernel(x, cos, sin, H, D):
        t, h, i = tl.program_id(0), tl.program_id(1), tl.arange(0, D // 2)
        first = x + (t * H + h) * D + i
        a, b = tl.load(first), tl.load(first + D // 2)
        c, s = tl.load(cos + t * (D // 2) + i), tl.load(sin + t * (D // 2) + i)
        tl.store(first, a * c - b * s)
        tl.store(first + D // 2, b * c + a * s)

    launch(kernel, (T, H), x, cos, sin, H, D)


def on_the_host(launch, x, y, M, N):
    """A row sum that the kernel only stores."""

    def kernel(y, totals):
        tl.store(y + tl.program_id(0), totals[tl.program_id(0)])

    launch(kernel, (M,), y, [sum(x.values[row * N : row * N + N]) for row in range(M)])


def no_column_mask(launch, x, b, y, M, N):
    """Bias and ReLU whose blocks run past the end of a row into the next."""

    def kernel(x, b, y, M, N):
        i, j = tl.program_id(0) * 16 + tl.arange(0, 16), tl.program_id(1) * 64 + tl.arange(0, 64)
        rows = i[:, None] * N + j[None, :]
        inside, bias = rows < M * N, tl.load(b + j, mask=j < N)
        total = tl.load(x + rows, mask=inside) + bias[None, :]
        tl.store(y + rows, tl.maximum(total, 0.0), mask=inside)

    launch(kernel, (tl.cdiv(M, 16), tl.cdiv(N, 64)), x, b, y, M, N)


def short_grid(launch, q, k, v, o, N, D):
    """Attention whose grid leaves the last rows out."""
    launch(_attention, (N // 64 or 1,), q, k, v, o, N, D, 1, False)


def own_keys(launch, q, k, v, o, H, G, N, D):
    """Grouped attention that looks for a head of keys for each of queries."""
    launch(_attention, (N // 32, H), q, k, v, o, N, D, 1, True)


# puzzle, solution, kind of its dearest finding, words that the learner reads
DEAR = [
    ("transpose", rows_in_columns_out, "uncoalesced", "32 lanes touch 32 lines"),
    ("bias_relu", two_launches, "round_trip", "launch 1 stores z and launch 2 reads it back"),
    ("softmax", three_passes, "again", "times by the same program"),
    ("matmul", an_element_a_program, "uncoalesced", "of the bytes that cross are asked for"),
    ("attention", square_in_memory, "round_trip", "launch 1 stores s"),
    ("gqa_causal", all_blocks, "hidden", "hides every score"),
    ("split_k", one_program, "few_programs", "1 program for 4 SMs"),
    ("matmul", small_tiles, "shared", "a is read by 2.0 programs"),
    ("rope", tables_for_each_head, "shared", "cos is read by 4.0 programs"),
]
WRONG = [
    ("split_k", stores_of_parts, "race", "both store to c[0]"),
    ("transpose", in_place, "hazard", "stores in the same launch"),
    ("rope", neighbours, None, "is right"),
    ("softmax", no_other, "filler", "count as 0 in tl.max"),
    ("softmax", no_other_in_the_sum, "filler", "in tl.sum: load them with an `other`"),
    ("bias_relu", no_column_mask, "race", "lies in the next row: mask its columns"),
    ("attention", short_grid, None, "does the grid reach the end"),
    ("gqa_causal", own_keys, None, "A mask would not help: look at the offset"),
]
