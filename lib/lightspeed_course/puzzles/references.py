"""One right solution of each puzzle, within its bytes: kernels in the words of `tl`, and the
launches that run them. A puzzle's budget is what its reference asks for.
"""

from lightspeed_models.simulators.kernels import tl

LOW = -1e30  # below any score


def strided_copy(launch, x, y, n, stride):
    """y[i] = x[i * stride]."""
    launch(_strided_copy, (tl.cdiv(n, 64),), x, y, n, stride, 64)


def _strided_copy(x, y, n, stride, B):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y + i, tl.load(x + i * stride, mask=i < n), mask=i < n)


def transpose(launch, x, y, M, N):
    """y[j, i] = x[i, j]."""
    launch(_transpose, (tl.cdiv(M, 32), tl.cdiv(N, 32)), x, y, M, N, 32)


def _transpose(x, y, M, N, B):
    i = tl.program_id(0) * B + tl.arange(0, B)
    j = tl.program_id(1) * B + tl.arange(0, B)
    inside = (i < M)[:, None] & (j < N)[None, :]
    tile = tl.load(x + i[:, None] * N + j[None, :], mask=inside)
    inside = (j < N)[:, None] & (i < M)[None, :]
    tl.store(y + j[:, None] * M + i[None, :], tl.trans(tile), mask=inside)


def bias_relu(launch, x, b, y, M, N):
    """y = max(x + b, 0), the bias b added to each row."""
    launch(_bias_relu, (tl.cdiv(M, 16), tl.cdiv(N, 64)), x, b, y, M, N, 16, 64)


def _bias_relu(x, b, y, M, N, BM, BN):
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    j = tl.program_id(1) * BN + tl.arange(0, BN)
    inside = (i < M)[:, None] & (j < N)[None, :]
    rows = i[:, None] * N + j[None, :]
    bias = tl.load(b + j, mask=j < N)
    tl.store(y + rows, tl.maximum(tl.load(x + rows, mask=inside) + bias[None, :], 0.0), mask=inside)


def row_sum(launch, x, y, M, N):
    """y[i] = the sum of row i of x."""
    launch(_row_sum, (M,), x, y, N, 128)


def _row_sum(x, y, N, B):
    row = tl.program_id(0)
    total = tl.zeros((B,))
    for start in range(0, N, B):
        j = start + tl.arange(0, B)
        total = total + tl.load(x + row * N + j, mask=j < N)
    tl.store(y + row, tl.sum(total, axis=0))


def softmax(launch, x, y, M, N):
    """Each row of y: exp(x - its maximum) over their sum."""
    launch(_softmax, (M,), x, y, N, 512)


def _softmax(x, y, N, B):
    row, j = tl.program_id(0), tl.arange(0, B)
    scores = tl.load(x + row * N + j, mask=j < N, other=LOW)
    powers = tl.exp(scores - tl.max(scores, axis=0))
    tl.store(y + row * N + j, powers / tl.sum(powers, axis=0), mask=j < N)


def matmul(launch, a, b, c, M, N, K):
    """c = a b; M and N are multiples of 32, K of 16."""
    launch(_matmul, (M // 32, N // 32), a, b, c, N, K, 32, 32, 16)


def _matmul(a, b, c, N, K, BM, BN, BK):
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    j = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN))
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        left = tl.load(a + i[:, None] * K + k[None, :])
        right = tl.load(b + k[:, None] * N + j[None, :])
        total = total + tl.dot(left, right)
    tl.store(c + i[:, None] * N + j[None, :], total)


def split_k(launch, a, b, c, K):
    """c = a b of 16 by K and K by 16, c full of zeros: eight programs share the long side."""
    launch(_split_k, (1, 1, 8), a, b, c, K, K // 8)


def _split_k(a, b, c, K, part):
    i, j = tl.arange(0, 16), tl.arange(0, 16)
    total = tl.zeros((16, 16))
    first = tl.program_id(2) * part
    for start in range(first, first + part, 16):
        k = start + tl.arange(0, 16)
        left = tl.load(a + i[:, None] * K + k[None, :])
        total = total + tl.dot(left, tl.load(b + k[:, None] * 16 + j[None, :]))
    tl.atomic_add(c + i[:, None] * 16 + j[None, :], total)


def rms_norm(launch, x, w, y, M, N):
    """Each row of y: x / sqrt(mean of x² + 1e-5) times the weights w."""
    launch(_rms_norm, (M,), x, w, y, N, 512)


def _rms_norm(x, w, y, N, B):
    row, j = tl.program_id(0), tl.arange(0, B)
    v = tl.load(x + row * N + j, mask=j < N)
    scale = tl.rsqrt(tl.sum(v * v, axis=0) / N + 1e-5)
    tl.store(y + row * N + j, v * scale * tl.load(w + j, mask=j < N), mask=j < N)


def rope(launch, x, cos, sin, T, H, D):
    """Turn each pair (i, i + D/2) of each head in place by its token's angle."""
    launch(_rope, (T,), x, cos, sin, H, D)


def _rope(x, cos, sin, H, D):
    t, i = tl.program_id(0), tl.arange(0, D // 2)
    c, s = tl.load(cos + t * (D // 2) + i), tl.load(sin + t * (D // 2) + i)
    for h in range(H):
        first = x + (t * H + h) * D + i
        second = first + D // 2
        a, b = tl.load(first), tl.load(second)
        tl.store(first, a * c - b * s)
        tl.store(second, b * c + a * s)


def paged_gather(launch, pages, table, out, L, D):
    """Row t of out is row t % 16 of page table[t // 16], for the L tokens of a request."""
    launch(_paged_gather, (tl.cdiv(L, 16),), pages, table, out, L, D)


def _paged_gather(pages, table, out, L, D):
    j = tl.program_id(0)
    page = tl.load(table + j)
    t, d = tl.arange(0, 16), tl.arange(0, D)
    inside = (j * 16 + t < L)[:, None] & (d < D)[None, :]
    rows = t[:, None] * D + d[None, :]
    tl.store(
        out + j * 16 * D + rows, tl.load(pages + page * 16 * D + rows, mask=inside), mask=inside
    )


def attention(launch, q, k, v, o, N, D):
    """o = softmax(q k' / sqrt(D)) v, one head; N is a multiple of 32."""
    launch(_attention, (N // 32,), q, k, v, o, N, D, 1, False)


def gqa_causal(launch, q, k, v, o, H, G, N, D):
    """H heads of queries, G of them for each head of keys and values; a token sees itself and what
    came before.
    """
    launch(_attention, (N // 32, H), q, k, v, o, N, D, G, True)


def _attention(q, k, v, o, N, D, G, causal):
    block, head = tl.program_id(0), tl.program_id(1)
    i, d = block * 32 + tl.arange(0, 32), tl.arange(0, D)
    rows = head * N * D + i[:, None] * D + d[None, :]
    queries = tl.load(q + rows)
    top, total, result = tl.full((32,), LOW), tl.zeros((32,)), tl.zeros((32, D))
    for start in range(0, (block + 1) * 32 if causal else N, 32):
        j = start + tl.arange(0, 32)
        places = head // G * N * D + j[:, None] * D + d[None, :]
        scores = tl.dot(queries, tl.trans(tl.load(k + places))) * D**-0.5
        if causal:
            scores = tl.where(i[:, None] >= j[None, :], scores, LOW)
        higher = tl.maximum(top, tl.max(scores, axis=1))
        powers, shrink = tl.exp(scores - higher[:, None]), tl.exp(top - higher)
        total = total * shrink + tl.sum(powers, axis=1)
        result = result * shrink[:, None] + tl.dot(powers, tl.load(v + places))
        top = higher
    tl.store(o + rows, result / total[:, None])
