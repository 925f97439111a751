"""A record: out as in, never overwritten, refused if damaged, and nobody named."""

import getpass
import json
import os
import platform
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightspeed_tools.measure.instruments.timing import Missing, Quantity
from lightspeed_tools.measure.records import record
from lightspeed_tools.measure.records.record import (
    NotMeasured,
    RecordError,
    all_of,
    find,
    load,
    save,
)

TEXT = st.text(
    st.characters(codec="utf-8", exclude_characters="/\\~:", exclude_categories=["Cs", "Cc"]),
    max_size=12,
)
NUMBERS = st.integers(-(10**6), 10**6).map(lambda k: k / 1024)  # short in binary, and in six digits


def some(*more, **fields):
    found = [
        Quantity("host.latency", "s", (1e-9, 2e-9, 3e-9), {"size": 4096}, "lower"),
        Quantity("host.latency", "s", (5e-9,) * 5, {"size": 8192}, "lower"),
        Quantity("host.copy_bandwidth", "byte/s", (1e9,) * 5, {"threads": 1}),
        Missing("gpu", "no GPU.", "Plug one in."),
        *more,
    ]
    return record.new(
        found, name="a machine", machine={"cores": 2}, versions={"numpy": "2.4.6"}, **fields
    )


def test_what_is_saved_is_what_is_loaded(tmp_path):
    first = some()
    assert load(save(first, tmp_path)) == first
    assert record.quantities(first)[0] == Quantity(
        "host.latency", "s", (1e-9, 2e-9, 3e-9), {"size": 4096}, "lower"
    )
    assert record.missing(first) == [Missing("gpu", "no GPU.", "Plug one in.")]


@given(
    st.lists(NUMBERS, min_size=1, max_size=8),
    st.dictionaries(
        st.sampled_from(["size", "n", "dtype"]),
        st.one_of(st.integers(), st.booleans(), TEXT),
        max_size=3,
    ),
    st.sampled_from(["higher", "lower"]),
    st.booleans(),
    st.sampled_from(["s", "", "byte/s", "1/s"]),
)
def test_every_quantity_comes_back(samples, parameters, better, varies, unit):
    rounded = [float(f"{x:.6g}") for x in samples]
    given_one = Quantity(
        "a.b", unit, rounded, parameters, better, varies=varies, counted={"flops": 2.0}
    )
    row = json.loads(json.dumps(record.as_row(given_one)))
    assert record._quantity(row) == given_one


def test_find_by_key_and_parameters():
    shown = some()
    assert find(shown, "host.latency", size=8192).value == 5e-9
    assert [q.parameters["size"] for q in all_of(shown, "host.latency")] == [4096, 8192]
    assert find(shown, "host.copy_bandwidth").value == 1e9
    with pytest.raises(NotMeasured, match="2 quantities fit; say which"):
        find(shown, "host.latency")
    with pytest.raises(NotMeasured, match=r"has no host\.latency with size 1"):
        find(shown, "host.latency", size=1)


def test_what_was_not_measured_says_why():
    with pytest.raises(NotMeasured, match=r"gpu\.gemm was not measured: no GPU\. Plug one in\."):
        find(some(), "gpu.gemm")


def test_the_one_without_further_parameters_is_meant():
    plain, more = (Quantity("a.b", "s", (v,), p) for v, p in ((1, {"n": 1}), (2, {"n": 1, "m": 2})))
    assert find(record.new([more, plain]), "a.b", n=1).value == 1


def test_nothing_is_written_over(tmp_path):
    same = some()
    paths = [save(same, tmp_path) for _ in range(3)]
    assert len(set(paths)) == 3 and len(list(tmp_path.iterdir())) == 3
    assert all(load(p) == same for p in paths)


def test_a_file_is_named_after_its_moment(tmp_path):
    shown = some() | {"when": "2026-11-21T08:00:00Z"}
    assert [save(shown, tmp_path).name for _ in range(2)] == [
        "measure-20261121T080000Z.json",
        "measure-20261121T080000Z-2.json",
    ]
    assert len("measure-20261121T080000Z") == record.DATED
    assert datetime.fromisoformat(some()["when"]).tzinfo


def test_a_write_that_fails_leaves_nothing(tmp_path, monkeypatch):
    def full(number):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        save(some(), tmp_path)
    assert not list(tmp_path.iterdir())


def test_the_newest_that_has_what_is_asked(own_records):
    assert record.latest() is None
    old, new = some(), record.new([Quantity("scaling.time", "s", (1,))], name="new")
    save(old | {"when": "2026-01-01T00:00:00Z"})
    save(new | {"when": "2026-01-01T00:00:01Z"})
    assert record.latest()["name"] == "new"
    assert record.latest("host.latency")["name"] == "a machine"
    assert record.latest("gpu.gemm") is None
    # the twelfth of one second is newer than the second, which its name does not show
    for _ in range(11):
        path = save(new | {"when": "2026-01-01T00:00:01Z", "name": f"later {_}"})
    assert path.stem.endswith("-12") and record.latest()["name"] == "later 10"


def test_a_damaged_file_does_not_hide_the_others(own_records):
    save(some())
    (own_records / "measure-29991231T000000Z.json").write_text('{"schema": 1, "qua')
    assert record.latest()["name"] == "a machine"


def damaged():
    good = json.loads(record.dumps(some()))
    yield "cut", record.dumps(some())[:300], "not JSON"
    yield "bytes", b"\xff\xfe\x00", "not JSON"
    yield "deep", "[" * 100_000, "not JSON"
    yield "empty", "", "not JSON"
    yield "list", "[]", "not a record"
    yield "other", '{"cells": []}', "not a record"
    yield "newer", json.dumps(good | {"schema": 2}), "newer version of the course.*Update"
    yield "kind", json.dumps(good | {"kind": "guess"}), "samples or summary"
    yield "when", json.dumps(good | {"when": "yesterday"}), "damaged"
    yield (
        "field",
        json.dumps({k: v for k, v in good.items() if k != "machine"}),
        "its machine is missing",
    )
    yield "type", json.dumps(good | {"quantities": {}}), "its quantities is not a list"
    yield "row", json.dumps(good | {"quantities": [{"key": "a"}]}), "damaged"
    yield (
        "text",
        json.dumps(good | {"quantities": [{"key": "a", "unit": "s", "samples": ["fast"]}]}),
        "damaged",
    )
    yield (
        "nan",
        json.dumps(good | {"quantities": [{"key": "a", "unit": "s", "samples": [float("nan")]}]}),
        "finite",
    )
    yield (
        "unknown",
        json.dumps(good | {"quantities": [{"key": "a", "unit": "s", "samples": [1], "speed": 1}]}),
        "damaged",
    )
    yield (
        "stated",
        json.dumps(good | {"quantities": [{"key": "a", "unit": "s", "stated": {"median": 1}}]}),
        "has no samples",
    )
    yield "missing", json.dumps(good | {"missing": [{"what": "a"}]}), "damaged"


@pytest.mark.parametrize("text, words", [pytest.param(t, w, id=name) for name, t, w in damaged()])
def test_what_is_no_record_is_refused(text, words, tmp_path):
    path = tmp_path / "a.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(RecordError, match=words) as refused:
        load(path)
    assert "a.json" in str(refused.value) and "\n" not in str(refused.value)


def test_nobody_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(platform, "node", lambda: "wintermute.example.org")
    monkeypatch.setattr(getpass, "getuser", lambda: "molly")
    words = (
        f"could not open {tmp_path}/x of molly at wintermute, 10.1.2.3, fe:ed:de:ad:be:ef,"
        " C:\\Users\\molly\\x or ~/secret/file; kept: 5 byte/s, /proc/stat, 1/s"
    )
    shown = some(Missing("a", words), Quantity("b", "s", (1,), note="on wintermute.example.org"))
    assert load(save(shown, tmp_path)) == shown
    text = record.dumps(shown)
    for secret in ("wintermute", "molly", str(tmp_path), "10.1.2.3", "fe:ed", "secret"):
        assert secret not in text
    for kept in ("5 byte/s", "/proc/stat", "1/s", '"numpy": "2.4.6"', "a machine"):
        assert kept in text


def test_a_user_called_root_leaves_the_words_alone(monkeypatch):
    monkeypatch.setattr(getpass, "getuser", lambda: "root")
    assert record.without_names("needs root") == "needs root"


@pytest.mark.parametrize("name", record.shipped())
def test_a_shipped_record_is_whole_and_says_where_it_is_from(name):
    shown = record.shipped()[name]
    assert record.check(shown) is shown
    assert len(record.quantities(shown)) > 20
    if shown["kind"] == "summary":
        assert shown["source"] and not any(q.samples for q in record.quantities(shown))
    else:
        assert all(q.samples for q in record.quantities(shown)) and shown["environment"]


def test_two_machines_ship_and_the_readers_copy_is_his_own():
    assert {name for name, shown in record.shipped().items() if shown["kind"] == "samples"} >= {
        "amd_epyc_2core",
        "intel_xeon_2core",
    }
    record.shipped()["amd_epyc_2core"].clear()
    assert record.shipped()["amd_epyc_2core"]["schema"] == record.SCHEMA
