"""What a record lets one conclude: samples that agree are not taken for the truth."""

import random

import pytest
from test_measured_roofline import machine as whole_machine

from lightspeed_show.layout import lay_out
from lightspeed_tools.measure import conditions, machine
from lightspeed_tools.measure.instruments import roofline
from lightspeed_tools.measure.instruments.timing import Quantity
from lightspeed_tools.measure.pages import report
from lightspeed_tools.measure.records import compare, record, trust


def served():
    """Latencies of single requests, which differ by nature."""
    rng = random.Random(0)
    stays = [rng.expovariate(50) for _ in range(100)]
    return [Quantity("queueing.latency", "s", stays, {"load": 0.5}, "lower", varies=True)]


def gemm(n, rate, wide=False, **more):
    return Quantity(
        "roofline.gemm",
        "FLOP/s",
        [rate * f for f in ((0.5, 1, 2) if wide else (0.99, 1, 1.01)) for _ in range(3)],
        {"dtype": "fp64", "n": n, "threads": 2, "library": "numpy"} | more,
    )


def said(found, environment=()):
    return report.verdict(record.new(found, environment=environment))


def test_what_varies_by_nature_is_not_among_what_repeats():
    first = said([*served(), gemm(64, 1e9), gemm(128, 1e9, wide=True)])[0]
    assert "1 of 2 quantities repeat within 10 %" in first
    assert "1 vary by nature and are not judged by spread" in first
    assert "trust" not in first and said(served())[0].startswith("1 quantities vary by nature")


def test_a_product_far_below_both_neighbours_is_not_believed():
    found = [gemm(64, 33e9), gemm(128, 262e6), gemm(1024, 34e9), gemm(1024, 1e9, threads=1)]
    assert list(trust.doubts(found)) == [found[1].label]
    text = " ".join(said(found))
    assert "3 of 4 quantities repeat" in text
    assert "n = 64 and 1024, are at 33 GFLOP/s and 34 GFLOP/s" in text
    assert "not to be believed" in report.to_html(record.new(found))
    # a rate that climbs is no dip
    assert not trust.doubts([gemm(64, 1e9), gemm(128, 10e9), gemm(256, 30e9)])


def checks(load, cores, taken):
    return [
        {
            "check": "load",
            "state": "warn",
            "words": f"load {load:.2f} before the start, on {cores} cores",
            "remedy": "",
        },
        {
            "check": "other processes",
            "state": "warn",
            "words": f"other processes took {taken:.2f} of a core while measuring",
            "remedy": "",
        },
    ]


def test_the_headline_says_that_the_machine_was_busy():
    assert "load 6.40 before the start, on 2 cores" in said([gemm(64, 1e9)], checks(6.4, 2, 0.1))[0]
    assert "took 1.20 of a core" in said([gemm(64, 1e9)], checks(0.4, 2, 1.2))[0]
    assert "busy" not in said([gemm(64, 1e9)], checks(1.9, 2, 0.3))[0]
    assert not conditions.crowded([])


def test_the_words_that_are_read_back_are_those_that_are_written():
    before = {
        "at": 0.0,
        "load": 6.4,
        "ticks": [0] * 10,
        "ours": 0.0,
        "swapped": None,
        "heat": None,
        "held": None,
    }
    rows = conditions.checks(
        before, before | {"at": 1.0, "ticks": [150, *[0] * 9]}, {"usable_cores": 2}
    )
    told = conditions.crowded(rows)
    assert "load 6.40 before the start, on 2 cores" in told and "other processes took" in told


def test_what_does_not_repeat_is_a_cross_and_may_stand_above_the_roof():
    shown = whole_machine()
    noisy = record.as_row(gemm(256, 300e9, wide=True, dtype="fp32", threads=4)) | {
        "counted": {"flops": 2 * 256**3, "bytes": 12 * 256**2}
    }
    shown["quantities"].append(noisy)
    spec = lay_out(roofline.machine_chart(shown))
    dots = {(m["marker"], m["color"]): m["y"] for m in spec["marks"] if m["type"] == "dot"}
    assert dots[roofline.NOISY, "orange"] == [300e9] and max(dots["circle", "orange"]) == 100e9
    assert "matmul, n = 256, too noisy" in {entry["text"] for entry in spec["key"]}
    assert roofline.NOISY not in {marker for _, marker in roofline.LOOKS.values()}
    assert spec["y"]["domain"][1] > 300e9


def test_bytes_and_rates_are_written_as_people_write_them():
    q = Quantity(
        "network.ring", "s", (1.0,) * 5, {"nodes": 4, "size": 2**21, "rate": 25000000.0}, "lower"
    )
    shown = record.new([q])
    for text in (
        "\n".join(report.in_words(shown)),
        "\n".join(compare.in_words(compare.compare(shown, shown))),
        report.to_html(shown),
    ):
        assert "network.ring, nodes 4, size 2 MiB, rate 25 MB/s" in text


def test_a_measured_machine_shows_a_format_that_it_has(own_records):
    from lightspeed_course.explorers.roofline import explore

    record.save(whole_machine(torch=False) | {"name": "Laptop"})
    shown = explore().at(hardware=machine.OWN, compute="bf16")
    assert "was not measured with bf16 matmuls; this is fp32" in shown.verdict
    assert shown.charts == explore().at(hardware=machine.OWN, compute="fp32").charts


@pytest.mark.slow
def test_a_page_fits_a_phone_and_the_dark():
    page = report.to_html(record.shipped()["intel_xeon_2core"])
    assert "prefers-color-scheme: dark" in page and 'name="viewport"' in page
    # each in a box that scrolls, or in paragraphs
    assert page.count("<table") == page.count('tabindex="0"><table')
    assert page.count("<figure>") == page.count('<figure><div class="wide"')
    assert "thin lines" not in page
