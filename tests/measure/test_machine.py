"""A record as hardware: laws and explorers take it, pages don't depend on it."""

import json

import pytest

from lightspeed.catalog import accelerator
from lightspeed.errors import BadArgument
from lightspeed.roofline import critical_batch, time_bounds
from lightspeed_course.explorers import menus, numbers, queueing, roofline
from lightspeed_tools.measure import compare_here, find, machine, row, show_recorded
from lightspeed_tools.measure.instruments.timing import Missing, Quantity
from lightspeed_tools.measure.pages import record_tables
from lightspeed_tools.measure.records import record


def laptop(**more):
    """A record of a made-up laptop: 200 GFLOP/s, 20 GB/s, 100 ns; one noisy peak; bf16 too."""
    steady = [0.99, 1, 1, 1, 1.01]
    found = [
        Quantity(
            "roofline.gemm",
            "FLOP/s",
            [f * 2e11 for f in steady],
            {"dtype": "fp32", "n": 1024, "threads": 2, "library": "numpy"},
            counted={"flops": 2.0, "bytes": 1.0},
        ),
        Quantity(
            "roofline.gemm",
            "FLOP/s",
            [f * 1e11 for f in steady],
            {"dtype": "fp32", "n": 64, "threads": 2, "library": "numpy"},
            counted={"flops": 2.0, "bytes": 1.0},
        ),
        Quantity(
            "roofline.gemm",
            "FLOP/s",
            [5e10, 1e11, 2e11, 9e10, 1e11],
            {"dtype": "bf16", "n": 64, "threads": 2, "library": "torch"},
        ),
        Quantity("host.triad_bandwidth", "byte/s", [f * 2e10 for f in steady], {"threads": 2}),
        Quantity("host.copy_bandwidth", "byte/s", [f * 1e10 for f in steady], {"threads": 1}),
        Quantity("host.latency", "s", [2e-9] * 5, {"size": 4096}, "lower"),
        Quantity("host.latency", "s", [1e-7] * 5, {"size": 2**28}, "lower"),
        Missing("gpu", "no GPU was found.", "Plug one in."),
    ]
    return record.new(
        found,
        name="Laptop, 2 cores",
        machine={"memory": 2**34, "memory_limit": 2**33, "usable_cores": 2},
        **more,
    )


def test_the_fastest_of_each_becomes_a_number_with_its_provenance():
    entry = machine.as_accelerator(laptop())
    assert (entry.fp32, entry.bf16, entry.hbm_bandwidth, entry.memory_latency) == (
        2e11,
        1e11,
        2e10,
        1e-7,
    )
    assert (entry.hbm_capacity, entry.core_count) == (2**33, 2)
    assert "fp64" not in entry
    with pytest.raises(AttributeError, match=r"has no fp64\. It has fp32"):
        _ = entry.fp64
    assert entry.fp32.printed == "200 GFLOP/s"
    assert entry.fp32.unit == "FLOP/s"
    assert "n 1024" in entry.fp32.note
    assert "repeats" in entry.fp32.note and "nothing can be concluded" in entry.bf16.note
    assert "Laptop" in str(entry.fp32.source)
    assert entry.fp32.quantity.units == accelerator("h100_sxm").bf16.quantity.units
    with pytest.raises(AttributeError):
        entry.fp32.note = "better"


def test_the_laws_take_it():
    entry = machine.as_accelerator(laptop())
    bounds = time_bounds(4e11, 2e10, entry.fp32, entry.hbm_bandwidth)
    assert (bounds.math, bounds.comms) == (2, 1)
    assert critical_batch(entry.fp32 / entry.hbm_bandwidth, 4) == 20


def test_a_record_with_one_part_gives_what_it_has():
    few = record.new(
        [Quantity("host.copy_bandwidth", "byte/s", (1e10,) * 5, {"threads": 1})], name="x"
    )
    assert set(machine.as_accelerator(few).numbers) == {"hbm_bandwidth"}
    assert not machine.as_accelerator(record.new([], name="x")).numbers


def test_own_and_shipped_machines_are_hardware(own_records):
    assert machine.OWN not in machine.measured()
    record.save(laptop())
    assert machine.hardware("measured:own").fp32 == 2e11
    assert machine.hardware("measured:own").name == "this machine (Laptop, 2 cores)"
    assert machine.hardware("measured:amd_epyc_2core").fp32 > 1e9
    assert machine.hardware("h100_sxm") is accelerator("h100_sxm")
    for slip in ("measured:amd_epic_2core", "h100"):
        with pytest.raises(BadArgument, match="Did you mean"):
            machine.hardware(slip)
    own = "this machine (Laptop, 2 cores)"
    assert own in menus.machines("bf16", "hbm_capacity") and own not in menus.machines("fp64")
    assert own in menus.machines(one_of=("fp64", "bf16"))


def test_a_newer_record_takes_over(own_records):
    record.save(laptop())
    assert machine.hardware("measured:own").name.endswith("(Laptop, 2 cores)")
    record.save(laptop() | {"name": "Desktop", "when": "2999-01-01T00:00:00Z"})
    assert machine.hardware("measured:own").name.endswith("(Desktop)")
    record.save(
        record.new([Quantity("scaling.time", "s", (1,))], name="one part")
        | {"when": "2999-01-02T00:00:00Z"}
    )
    assert machine.hardware("measured:own").name.endswith("(Desktop)")


EXPLORERS = {
    "roofline": roofline.explore,
    "transfer": numbers.explore,
    "serving": queueing.explore_serving,
}


def of_machines(explorer):
    """(control, value) of each measured machine on an explorer's menus."""
    return [
        (c.name, v)
        for c in explorer.controls.values()
        for _, v in c.options
        if str(v).startswith(machine.SHIPPED)
    ]


@pytest.mark.parametrize("name", EXPLORERS)
def test_what_an_explorer_shows_at_first_is_the_same_for_every_reader(name, own_records):
    before = EXPLORERS[name]()
    record.save(laptop())
    after = EXPLORERS[name]()
    # Only the sentence on the other machines of the menu counts the reader's own among them.
    words = [e.first.verdict.partition("It would be")[0] for e in (before, after)]
    assert words[0] == words[1] and after.params == before.params
    assert after.first.spec() | {"verdict": ""} == before.first.spec() | {"verdict": ""}
    assert len(of_machines(after)) == len(of_machines(before)) + 1


@pytest.mark.slow
@pytest.mark.parametrize("name", EXPLORERS)
def test_every_measured_machine_can_be_drawn(name, own_records):
    record.save(laptop())
    e = EXPLORERS[name]()
    facts = [label for label, _ in e.first.facts]
    rest = list(e.grid(each=2, most=40))
    for control, value in of_machines(e):
        for params in rest:
            shown = e.view(**params | {control: value})
            assert shown.verdict and [label for label, _ in shown.facts] == facts
            json.dumps(shown.spec(), allow_nan=False)


def test_the_roofline_of_a_laptop():
    shown = roofline.explore().at(
        hardware="measured:notes_2core_48mib",
        compute="fp32",
        weights="fp32",
        activations="fp32",
        batch=4096,
    )
    assert shown.verdict.startswith("Compute-bound")
    lacking = roofline.explore().at(hardware="measured:notes_2core_48mib", compute="fp8")
    assert "was not measured with fp8" in lacking.verdict and "this is bf16" in lacking.verdict


# ---------------------------------------------------------------- tables in chapters


@pytest.fixture
def shown_table(monkeypatch):
    """The rows, columns and captions of the tables shown."""
    seen = []
    monkeypatch.setattr(
        record_tables,
        "table",
        lambda rows, columns, caption="": seen.append((rows, columns, caption)),
    )
    return seen


ROWS = [
    row("triad", "host.triad_bandwidth", threads=2),
    row(
        "copy",
        "host.copy_bandwidth",
        law=lambda r: find(r, "host.triad_bandwidth", threads=2).value / 2,
        threads=1,
    ),
    row("bf16", "roofline.gemm", law=1e11, dtype="bf16"),
    row("fp64", "roofline.gemm", law=lambda r: find(r, "no.such").value, dtype="fp64"),
]


def test_a_record_beside_a_law(shown_table):
    show_recorded(laptop(), ROWS, "What we saw.")
    ((rows, columns, caption),) = shown_table
    assert columns == ["quantity", "measured", "spread", "the law says", "measured over law"]
    assert rows[0] == ["triad", "20 GB/s", "0.71 %", "–", "–"]
    assert rows[1] == ["copy", "10 GB/s", "0.71 %", "10 GB/s", "1.00"]
    assert rows[2][2:] == ["51 %, above 10 %", "100 GFLOP/s", "too noisy to say"]
    assert rows[3] == ["fp64", "–", "not measured", "–", "–"]
    assert caption.startswith("What we saw. Recorded on Laptop, 2 cores, 20")


def test_a_table_without_a_law_has_no_columns_for_it(shown_table):
    show_recorded("notes_2core_48mib", ROWS[:1])
    ((rows, columns, caption),) = shown_table
    assert columns == ["quantity", "measured", "spread"]
    assert rows == [["triad", "24.6 GB/s", "2.3 %"]]
    assert "samples were not kept" in caption and "Source: " in caption
    with pytest.raises(BadArgument, match="Did you mean"):
        show_recorded("notes_2core", ROWS)


def test_this_machine_beside_the_shipped_ones(shown_table, capsys):
    compare_here(laptop(), ROWS)
    ((rows, columns, _),) = shown_table
    others = columns[5:]
    assert columns[:5] == ["quantity", "the law says, here", "here", "spread", "here over law"]
    assert others and set(others) <= {r["name"] for r in record.shipped().values()}
    assert all(any(cell != "–" for cell in column) for column in list(zip(*rows, strict=True))[5:])
    assert len(others) < len(record.shipped()), "one of them has none of these rows"
    assert rows[1][:5] == ["copy", "10 GB/s", "10 GB/s", "0.71 %", "1.00"]
    assert rows[0][-1] == "24.6 GB/s"
    assert "gpu: no GPU was found. Plug one in." in capsys.readouterr().out


def test_nothing_measured_yet_is_said(shown_table, capsys, own_records):
    compare_here(None, ROWS)
    assert not shown_table and "lightspeed measure all" in capsys.readouterr().out
    record.save(laptop())
    compare_here(None, ROWS)
    assert shown_table[0][0][0][2] == "20 GB/s"


def test_spreads_in_few_words():
    assert record_tables.spread(Quantity("a", "s", (1, 2))) == "not known from 2"
    assert record_tables.spread(Quantity("a", "s", range(9), varies=True)) == "varies by nature"
    assert record_tables.spread(Quantity("a", "s", stated={"median": 1})) == "not stated"
    assert record_tables.si_of(120.0, "1/s") == "120/s"
