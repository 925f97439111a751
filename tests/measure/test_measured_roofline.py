"""The machine's roofline: counted work by the laws, real threads, records' conclusions."""

import pytest

from lightspeed import roofline as law
from lightspeed_show.layout import lay_out
from lightspeed_tools.measure.environment import usable_cores
from lightspeed_tools.measure.instruments import kernels, latency_levels
from lightspeed_tools.measure.instruments import roofline as measured
from lightspeed_tools.measure.instruments.timing import Missing, Quantity, Unavailable
from lightspeed_tools.measure.records import record

MIB = 2**20


def made(rate, key="roofline.kernel", **parameters):
    """A quantity whose samples all are `rate`; its work is counted as the parts count it."""
    counted = parameters.pop("counted", {})
    return Quantity(key, parameters.pop("unit", "FLOP/s"), [rate] * 7, parameters, counted=counted)


def machine(torch=True):
    """100 GFLOP/s in fp32, half in fp64, a cache of 1 MiB at 80 GB/s, memory at 20 GB/s."""
    found = []
    for dtype, peak in (("fp32", 100e9), ("fp64", 50e9)):
        for n, share in ((64, 0.5), (512, 0.9), (2048, 1.0)):
            width = measured.WIDTH[dtype]
            counted = {
                "flops": law.matmul_flops(n, n, n),
                "bytes": law.matmul_bytes(n, n, n, width, width, width),
            }
            found.append(
                made(
                    share * peak,
                    "roofline.gemm",
                    dtype=dtype,
                    n=n,
                    threads=4,
                    library="numpy",
                    counted=counted,
                )
            )
        found.append(
            made(
                0.3 * peak,
                "roofline.gemm",
                dtype=dtype,
                n=512,
                threads=1,
                library="numpy",
                counted=counted,
            )
        )
    if torch:
        found += [
            made(rate, "roofline.gemm", dtype=d, n=1024, threads=4, library="torch")
            for d, rate in (("fp32", 90e9), ("bf16", 30e9), ("int8", 300e9))
        ]
    for size in latency_levels.sizes(256 * MIB, 16384):
        rates = {"read": 60e9, "axpy": 80e9} if size <= MIB else {"read": 20e9, "axpy": 18e9}
        found += [
            made(rate, "roofline.bandwidth", unit="byte/s", kernel=name, size=size, threads=4)
            for name, rate in rates.items()
        ]
    n = 2**24
    found.append(
        made(
            4.5e9,
            kernel="dot",
            dtype="fp32",
            threads=4,
            library="numba",
            counted={"flops": 2 * n, "bytes": 8 * n},
        )
    )
    found.append(
        made(
            1.25e9,
            kernel="relu",
            dtype="fp32",
            threads=4,
            library="numba",
            counted={"flops": n, "bytes": 8 * n},
        )
    )
    return record.new(found, machine={"usable_cores": 4})


def test_the_roof_is_the_best_that_was_reached():
    roof = measured.roof(machine())
    assert roof.peaks == {"fp32": 100e9, "fp64": 50e9, "bf16": 30e9, "int8": 300e9}
    assert roof.bandwidths == pytest.approx({"up to 1 MiB": 80e9, "memory": 20e9})
    assert roof.memory == pytest.approx(20e9)


def test_a_noisy_rate_is_no_roof_if_there_is_a_steady_one():
    noisy = Quantity(
        "roofline.gemm",
        "FLOP/s",
        [1e9, 9e11, 9e11, 1e9, 9e11, 9e11, 1e10],
        {"dtype": "fp32", "n": 64, "threads": 2, "library": "numpy"},
    )
    assert measured.roof(record.new([noisy, made(1e11, "roofline.gemm", dtype="fp32")])).peaks == {
        "fp32": 1e11
    }
    assert measured.roof(record.new([noisy])).peaks == {"fp32": 9e11}


def test_a_bandwidth_that_only_falls_still_ends_in_memory():
    falling = [
        made(
            1e11 / 2**k,
            "roofline.bandwidth",
            unit="byte/s",
            kernel="read",
            size=2**k * 4096,
            threads=1,
        )
        for k in range(10)
    ]
    assert measured.roof(record.new(falling)).bandwidths == pytest.approx(
        {"memory": 1e11 / 2**9}, rel=1e-4
    )
    with pytest.raises(Unavailable, match="lightspeed measure roofline"):
        _ = measured.roof(record.new([])).memory


def test_points_stand_under_the_roof_of_the_law():
    found = {p.name: p for p in measured.points(machine())}
    dot, relu, small = found["dot product"], found["ReLU"], found["matmul, n = 64"]
    assert dot.intensity == pytest.approx(law.dot_flops(2**24) / law.dot_bytes(2**24, 4))
    assert dot.roof == pytest.approx(0.25 * 20e9)
    assert dot.share == pytest.approx(0.9)
    assert dot.trusted
    assert relu.intensity == law.elementwise_intensity(1, 1, 1, 4)
    assert relu.share == pytest.approx(0.5)
    assert small.intensity == pytest.approx(law.matmul_intensity(64, 64, 64, 4, 4, 4))
    assert small.roof == 100e9
    assert found["matmul, n = 2048"].share == pytest.approx(1)
    assert len(found) == 5
    assert list(found.values()) == sorted(found.values(), key=lambda p: p.intensity)


def test_slower_than_fp32_is_emulated():
    assert measured.emulated(machine()) == ["bf16"]
    assert measured.emulated(machine(torch=False)) == []


def test_the_chart_has_a_slope_for_each_level_and_a_dot_for_each_kernel():
    spec = lay_out(measured.machine_chart(machine(), "Mine"))
    texts = [mark["text"] for mark in spec["marks"] if mark["type"] == "text"]
    assert {"memory, 20 GB/s", "up to 1 MiB, 80 GB/s", "fp32, 100 GFLOP/s"} <= set(texts)
    assert {"dot product", "ReLU", "matmul, n = 64 to 2048"} <= {
        entry["text"] for entry in spec["key"]
    }
    dots = [
        (x, y)
        for mark in spec["marks"]
        if mark["type"] == "dot"
        for x, y in zip(mark["x"], mark["y"], strict=True)
    ]
    assert len(dots) == 5 and (0.125, 1.25e9) in dots


@pytest.mark.parametrize("dtype", ["fp32", "fp64"])
def test_a_product_is_counted_by_the_laws(dtype):
    q = measured.gemm(dtype, 128)
    width = measured.WIDTH[dtype]
    assert q.counted == {
        "flops": law.matmul_flops(128, 128, 128),
        "bytes": law.matmul_bytes(128, 128, 128, width, width, width),
    }
    assert q.parameters == {"dtype": dtype, "n": 128, "threads": usable_cores(), "library": "numpy"}
    assert q.unit == "FLOP/s"
    assert q.value > 0


def test_without_torch_the_narrow_types_are_missing(monkeypatch):
    monkeypatch.setattr(measured, "importable", lambda package: None)
    for part in ("gemms", "bandwidths", "loops"):
        monkeypatch.setattr(measured, part, lambda quick: [])
    [missing] = measured.measure()
    assert missing.key == "roofline.gemm"
    assert "torch" in missing.why
    assert "pip install torch" in missing.remedy


@pytest.mark.slow
def test_the_loops_over_vectors_count_what_they_do(monkeypatch):
    monkeypatch.setattr(measured, "_far", lambda quick: 2**20)
    found = [q for q in measured.loops() if not isinstance(q, Missing)]
    for q in found:
        name, counted = q.parameters["kernel"], q.counted
        if name == "gemv":
            n = q.parameters["n"]
            assert counted == {
                "flops": law.matmul_flops(1, n, n),
                "bytes": law.matmul_bytes(1, n, n, 4, 4, 4),
            }
        else:
            elements = counted["flops"] // kernels.FLOPS[name]
            assert counted["bytes"] == kernels.bytes_moved(name, elements, 4)
    assert {"dot", "relu", "unfused", "gemv"} <= {q.parameters["kernel"] for q in found}
