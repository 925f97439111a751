"""The counting machine against closed forms, numpy, and what public profiles printed."""

import hashlib
import json
import math
from pathlib import Path

import numpy as np
import pytest
from wrong import DEAR, WRONG, on_the_host, one_program, turned_places, wide_blocks

from lightspeed import kernels, roofline
from lightspeed.catalog import measured
from lightspeed_course.puzzles import PUZZLES, attempt, references
from lightspeed_course.puzzles.attempts import IDLE, Host, crossing, right_crossing
from lightspeed_course.puzzles.cases import TOY
from lightspeed_models.simulators.kernels import (
    Array,
    KernelError,
    diagnose,
    l2_traffic,
    launch,
    tl,
)

PROFILES = measured("kernels")


def blank(name, size, element_bytes=2):
    """An array that has a size only."""
    return Array(name, size=size, element_bytes=element_bytes)


def softmax_in_passes(x, y, N, B, passes):
    """A softmax over rows of N that reads its input so many times; counts only."""
    row = tl.program_id(0) * N
    for turn in range(passes):
        for start in range(0, N, B):
            j = start + tl.arange(0, B)
            v = tl.load(x + row + j)
            if turn == passes - 1:
                tl.store(y + row + j, tl.exp(v - 1.0))


def test_bytes_that_kernels_ask_for_are_the_closed_forms():
    for passes in (1, 2, 3):
        x, y = blank("x", 64 * 512, 4), blank("y", 64 * 512, 4)
        record = launch(softmax_in_passes, (64,), x, y, 512, 128, passes, values=False)
        assert record.traffic.bytes == kernels.softmax_bytes(64, 512, passes)
    for m, n, k, bm, bn in ((128, 256, 64, 32, 64), (64, 64, 512, 64, 16)):
        a, b, c = blank("a", m * k), blank("b", k * n), blank("c", m * n)
        grid = (m // bm, n // bn)
        record = launch(references._matmul, grid, a, b, c, n, k, bm, bn, 32, values=False)
        assert record.traffic.bytes == roofline.tiled_matmul_bytes(m, n, k, bm, bn)
        assert record.tensor == roofline.matmul_flops(m, n, k)
    for heads, n, d in ((1, 256, 64), (4, 512, 128)):
        arrays = [blank(name, heads * n * d) for name in "qkvo"]
        for causal, law in ((False, kernels.query_block_bytes), (True, kernels.causal_block_bytes)):
            options = (n, d, 1, causal)
            record = launch(
                references._attention, (n // 32, heads), *arrays, *options, values=False
            )
            assert record.traffic.bytes == law(heads, n, d, 32), causal
            if not causal:
                assert record.tensor == 4 * heads * n * n * d
    for stride in (1, 2, 4, 8, 32):
        x, y = blank("x", 4096 * stride, 4), blank("y", 4096, 4)
        record = launch(references._strided_copy, (64,), x, y, 4096, stride, 64, values=False)
        assert record.traffic_of("x").crossing_in == kernels.strided_bytes(4096, stride), stride


def test_with_and_without_values_the_same_is_counted():
    for name, puzzle in PUZZLES.items():
        for case in puzzle.cases(3):
            real, shape = Host(), Host(values=False)
            for host in (real, shape):
                getattr(references, name)(host, *case.arguments)
            assert real.bytes == shape.bytes, name
            flops = [
                [(record.tensor, record.vector, record.special) for record in host.records]
                for host in (real, shape)
            ]
            assert flops[0] == flops[1], name


def test_cases_expect_what_numpy_computes():
    def of(case, name, *shape):
        return np.array(case.arrays[name].values).reshape(shape)

    def attention(q, k, v, causal):
        s = q @ k.T / math.sqrt(q.shape[1])
        s = np.where(np.tri(len(s)) > 0, s, -np.inf) if causal else s
        p = np.exp(s - s.max(1, keepdims=True))
        return p / p.sum(1, keepdims=True) @ v

    for name, puzzle in PUZZLES.items():
        for case, size in zip(puzzle.cases(5), puzzle.sizes, strict=True):
            match name:
                case "softmax":
                    x = of(case, "x", size["M"], size["N"])
                    x = np.exp(x - x.max(1, keepdims=True))
                    want = x / x.sum(1, keepdims=True)
                case "matmul":
                    m, n, k = size["M"], size["N"], size["K"]
                    want = of(case, "a", m, k) @ of(case, "b", k, n)
                case "rms_norm":
                    x = of(case, "x", size["M"], size["N"])
                    scale = np.sqrt((x * x).mean(1, keepdims=True) + 1e-5)
                    want = x / scale * of(case, "w", size["N"])
                case "rope":
                    t, h, d = size["T"], size["H"], size["D"]
                    pairs = of(case, "x", t, h, 2, d // 2)
                    turn = of(case, "cos", t, d // 2) + 1j * of(case, "sin", t, d // 2)
                    z = (pairs[:, :, 0] + 1j * pairs[:, :, 1]) * turn[:, None]
                    want = np.stack([z.real, z.imag], 2)
                case "attention" | "gqa_causal":
                    h, g = size.get("H", 1), size.get("G", 1)
                    n, d = size["N"], size["D"]
                    q = of(case, "q", h, n, d)
                    k, v = (of(case, x, h // g, n, d) for x in "kv")
                    causal = name == "gqa_causal"
                    want = [attention(q[i], k[i // g], v[i // g], causal) for i in range(h)]
                case _:
                    continue
            (expected,) = case.expected.values()
            np.testing.assert_allclose(np.ravel(want), expected, atol=1e-9, err_msg=name)


def test_references_solve_their_puzzles_and_earn_no_finding_of_bytes():
    for name, puzzle in PUZZLES.items():
        for seed in (1, 2):
            tried = attempt(name, getattr(references, name), seed)
            assert tried.solved, (name, tried.sentence)
        for case in puzzle.cases(1):
            host = Host(values=False)
            getattr(references, name)(host, *case.arguments)
            kinds = {finding.kind for finding in diagnose(host.records)}
            kinds -= {"uncoalesced"} if name == "strided_copy" else set()  # as it was asked
            assert not kinds - {"shared", "few_programs", "masked"}, (name, kinds)


def test_the_references_ran_under_tritons_own_interpreter():
    record = json.loads((Path(__file__).parent / "with_triton.json").read_text())
    source = Path(references.__file__).read_bytes()
    assert record["references"] == hashlib.sha256(source).hexdigest(), "run with_triton.py again"
    assert record["errors"].keys() == PUZZLES.keys()
    assert max(record["errors"].values()) < 1e-4, "fp32"


def test_each_dear_or_wrong_solution_is_told_by_what_crossed():
    for name, solution, kind, words in DEAR:
        tried = attempt(name, solution)
        assert tried.right and not tried.thrifty, (name, tried.sentence)
        assert words in tried.findings[0], (name, kind, tried.findings)
    for name, solution, kind, words in WRONG:
        tried = attempt(name, solution)
        assert not tried.right, name
        assert words in " ".join((tried.sentence, *tried.findings)), (name, kind, tried)
    assert attempt("transpose", turned_places).solved, "its text says that this is allowed"
    case = PUZZLES["bias_relu"].cases(1)[1]
    host = Host()
    wide_blocks(host, *case.arguments)
    assert "lanes are masked" in " ".join(f.sentence for f in diagnose(host.records))


def test_cheats_fail():
    kept = {}

    def keep(x, y, n, stride, B):
        i = tl.program_id(0) * B + tl.arange(0, B)
        if "block" not in kept:
            kept["block"] = tl.load(x + i * stride, mask=i < n)
        tl.store(y + i, kept["block"], mask=i < n)

    def keeps_a_block(launch, x, y, n, stride):
        launch(keep, (tl.cdiv(n, 64),), x, y, n, stride, 64)

    def reads_data(launch, x, y, n, stride):
        launch(lambda x, y: tl.store(y + 0, x.values[0]), (1,), x, y)

    def copies_on_the_host(launch, x, y, n, stride):
        y.values[:] = x.values[::stride]

    def one_block(launch, a, b, c, K):
        launch(references._matmul, (1, 1), a, b, c, 16, K, 16, 16, K)

    def one_tile(launch, a, b, c, M, N, K):
        launch(references._matmul, (1, 1), a, b, c, N, K, M, N, 16)

    def endless(launch, x, y, n, stride):
        def kernel(x):
            while True:
                tl.load(x + 0)

        launch(kernel, (1,), x)

    for name, cheat, words in (
        ("strided_copy", keeps_a_block, "a block of another program"),
        ("strided_copy", copies_on_the_host, "Nothing was launched"),
        ("strided_copy", endless, "does a loop end?"),
        ("split_k", one_block, "Take smaller blocks"),
        ("matmul", one_tile, "only 1.0 of the chip's 4 processors are busy"),
        ("row_sum", on_the_host, "no program loads 48,000 bytes of x"),
    ):
        tried = attempt(name, cheat)
        assert not tried.solved and words in tried.sentence, (cheat.__name__, tried)
    with pytest.raises(AttributeError):  # a pointer has no numbers
        attempt("strided_copy", reads_data)


def test_a_grader_sees_an_idle_chip_and_memory_that_was_not_read():
    for name, solution in (("split_k", one_program), ("row_sum", on_the_host)):
        for seed in (2.0, 3.0):
            right = pytest.approx(IDLE * right_crossing(name, seed), rel=1e-9)
            assert crossing(name, solution, seed) == right, name


def test_what_a_gpu_would_refuse_is_named():
    x = Array("x", [1.0] * 300)
    y = Array("y", [0.0] * 300)

    def run(kernel, *grid):
        with pytest.raises(KernelError) as fault:
            launch(kernel, grid or (1,), x, y, limits=TOY)
        return str(fault.value)

    def forgets(x, y):
        i = tl.program_id(0) * 128 + tl.arange(0, 128)
        tl.store(y + i, tl.load(x + i))

    def negative(x, y):
        tl.load(x + tl.arange(0, 8) - 4)

    def no_power(x, y):
        tl.arange(0, 100)

    def narrow(x, y):
        block = tl.load(x + tl.arange(0, 8)[:, None] * 8 + tl.arange(0, 8)[None, :])
        tl.dot(block, block)

    def overflow(x, y):
        tl.exp(tl.load(x + tl.arange(0, 8)) * 1000.0)

    def shapes(x, y):
        tl.store(y + tl.arange(0, 8), tl.load(x + tl.arange(0, 16)))

    for kernel, grid, words in (
        (forgets, (3,), "Program (2,): load of x: index 383 is out of range, it has 300 elements"),
        (negative, (1,), "index -4 is out of range"),
        (no_power, (1,), "Triton wants a power of two"),
        (narrow, (1,), "Triton wants sides of at least 16"),
        (overflow, (1,), "subtract the row's maximum first"),
        (shapes, (1,), "a block of shape (16,) to places of (8,)"),
    ):
        assert words in run(kernel, *grid), kernel.__name__
    with pytest.raises(KernelError, match="inside a kernel only"):
        tl.program_id(0)


def test_backward_with_recomputation_has_five_products_and_their_bytes():
    def keys_and_values(q, k, v, do, lse, delta, dk, dv, N, D, B):
        j, d = tl.program_id(0) * B + tl.arange(0, B), tl.arange(0, D)
        keys = tl.load(k + j[:, None] * D + d[None, :])
        values = tl.load(v + j[:, None] * D + d[None, :])
        gk, gv = tl.zeros((B, D)), tl.zeros((B, D))
        for start in range(0, N, B):
            i = start + tl.arange(0, B)
            x = tl.load(q + i[:, None] * D + d[None, :])
            g = tl.load(do + i[:, None] * D + d[None, :])
            s = tl.dot(x, tl.trans(keys)) * D**-0.5
            p = tl.exp(s - tl.load(lse + i)[:, None])
            gv = gv + tl.dot(tl.trans(p), g)
            ds = p * (tl.dot(g, tl.trans(values)) - tl.load(delta + i)[:, None]) * D**-0.5
            gk = gk + tl.dot(tl.trans(ds), x)
        tl.store(dk + j[:, None] * D + d[None, :], gk)
        tl.store(dv + j[:, None] * D + d[None, :], gv)

    n, d, b = 64, 16, 16
    rng = np.random.default_rng(0)
    q, k, v, g = (rng.standard_normal((n, d)) for _ in range(4))
    s = q @ k.T / d**0.5
    lse = np.log(np.exp(s).sum(1))
    p = np.exp(s - lse[:, None])
    delta = (g * (p @ v)).sum(1)
    ds = p * (g @ v.T - delta[:, None]) / d**0.5
    arrays = [
        Array(name, x.ravel().tolist(), element_bytes=2)
        for name, x in zip(("q", "k", "v", "do"), (q, k, v, g), strict=True)
    ]
    sums = [Array("lse", lse.tolist()), Array("delta", delta.tolist())]
    out = [Array(name, [0.0] * (n * d), element_bytes=2) for name in ("dk", "dv")]
    record = launch(keys_and_values, (n // b,), *arrays, *sums, *out, n, d, b)
    np.testing.assert_allclose(out[0].values, (ds.T @ q).ravel(), atol=1e-12)
    np.testing.assert_allclose(out[1].values, (p.T @ g).ravel(), atol=1e-12)
    # Four of the five products are here; the fifth, dQ = dS K, is the other kernel's.
    five = kernels.backward_attention_flops(1, n, d)
    assert record.tensor == five - kernels.backward_attention_flops(1, n, d, 4) + 3 * 2 * n * n * d


def test_l2_keeps_the_least_recent_out_and_reads_each_sector_once_if_all_fits():
    x, y = blank("x", 64 * 512, 4), blank("y", 64 * 512, 4)
    record = launch(softmax_in_passes, (64,), x, y, 512, 128, 3, values=False)
    size = 64 * 512 * 4
    everything = l2_traffic(record, 10 * size, 8)
    assert (everything.read, everything.write, everything.dirty) == (size, 0, size)
    nothing = l2_traffic(record, 32, 1)
    assert nothing.read == 3 * size and nothing.write + nothing.dirty == size
    # What crosses DRAM never grows with the cache.
    sizes = [l2_traffic(record, share * size, 8).read for share in (0.01, 0.1, 0.5, 1, 2)]
    assert sizes == sorted(sizes, reverse=True)


def reads_three_writes_two(x, y, N, B):
    """The softmax of the repository QuantizedMHA: read; read, write; read, write."""
    row = tl.program_id(0) * N
    for start in range(0, N, B):
        tl.load(x + row + start + tl.arange(0, B))
    for array in (x, y):
        for start in range(0, N, B):
            j = row + start + tl.arange(0, B)
            tl.store(y + j, tl.load(array + j))


def test_l2_hits_are_what_a_public_profile_printed():
    # QuantizedMHA, profiles/md/run2, an L4: 80.00 % of the softmax, 98.84 % of its flash kernel.
    n = 1024
    softmax = launch(
        reads_three_writes_two,
        (n,),
        blank("x", n * n, 4),
        blank("y", n * n, 4),
        n,
        256,
        values=False,
    )
    assert l2_traffic(softmax, 4 << 20, 58 * 6).hits == pytest.approx(
        PROFILES["hits"]["softmax"], abs=0.03
    )
    n, d = 2048, 32
    arrays = [blank(name, n * d, 4) for name in "qkvo"]
    flash = launch(references._attention, (n // 32,), *arrays, n, d, 1, False, values=False)
    assert l2_traffic(flash, 48e6, 58 * 3).hits == pytest.approx(
        PROFILES["hits"]["flash"], abs=0.03
    )


def tiled_matmul(a, b, c, N, K, B, depth, columns_first):
    """A matmul of square tiles whose programs go along columns or rows first."""
    i = tl.program_id(1 if columns_first else 0) * B + tl.arange(0, B)
    j = tl.program_id(0 if columns_first else 1) * B + tl.arange(0, B)
    total = tl.zeros((B, B))
    for start in range(0, K, depth):
        k = start + tl.arange(0, depth)
        left = tl.load(a + i[:, None] * K + k[None, :])
        total = total + tl.dot(left, tl.load(b + k[:, None] * N + j[None, :]))
    tl.store(c + i[:, None] * N + j[None, :], total)


@pytest.mark.slow
@pytest.mark.parametrize("row", PROFILES["gemm"], ids=lambda row: row["name"])
def test_a_gemm_crosses_what_nsight_compute_counted(row):
    """L2 within 1 %, DRAM within 10 %; what the catalog says that the machine counts is counted."""
    rows, n, k = (row[name] for name in ("rows", "n", "k"))
    a, b, c = blank("a", rows * k), blank("b", k * n), blank("c", rows * n)
    orders = {}
    for columns_first in (True, False):
        grid = (n // 128, rows // 128) if columns_first else (rows // 128, n // 128)
        sizes = (n, k, 128, 128, columns_first)
        record = launch(tiled_matmul, grid, a, b, c, *sizes, values=False)
        orders[columns_first] = l2_traffic(record, 20e6, 108, 256)
    traffic, gib = record.traffic, 2**30 / row["layers"]
    assert traffic.bytes_in / gib == pytest.approx(row["l2_in"], rel=0.01)
    assert traffic.bytes_out / gib == pytest.approx(row["l2_out"], rel=0.01)
    assert orders[True].read / gib == pytest.approx(row["dram_in"], rel=0.1)
    assert orders[True].write / gib == pytest.approx(row["dram_out"], rel=0.1)
    assert round(orders[True].read / gib, 2) == row["counted_in"]
    assert round(orders[True].write / gib, 2) == row["counted_out"]
    assert orders[False].read / gib == pytest.approx(row["other_order"], rel=0.02)


def test_occupancy_and_waves_are_what_a_profile_printed():
    # An L4's SMs: programs by registers and by warps.
    ada = {"sm_shared": 100 * 1024, "sm_threads": 1536, "sm_programs": 24}
    assert kernels.programs_per_sm(0, 40, 256, **ada) == 6
    for row in PROFILES["waves"]:
        waves = kernels.waves(row["programs"], row["sms"], row["together"])
        assert waves == pytest.approx(row["waves"], abs=0.005)
