"""Scripts of torch beside the lessons: shown as they are, with what they printed; a changed one is
named; and torch keeps, sends and orders what the lessons say.
"""

import itertools
import re

import pytest

from lightspeed.memory import training_state_bytes
from lightspeed.parallel import (
    context_parallel_bytes,
    data_parallel_bytes,
    hybrid_sharded_bytes,
)
from lightspeed_authoring import freshness
from lightspeed_course import in_torch
from lightspeed_course.in_torch import beside, markdown, records
from lightspeed_models.simulators.schedules import simulate


def test_a_page_shows_code_output_and_origin():
    for name, record in records().items():
        shown = markdown(name, record)
        assert record["code"].rstrip() in shown and record["output"].rstrip() in shown
        assert all(record[key] in shown for key in ("device", "torch", "date"))
        assert sum(bool(line.strip()) for line in record["code"].splitlines()) <= 20
    shown = markdown("01_copy", {"code": "print(1)\n"})
    assert "Not recorded yet" in shown and "It printed" not in shown


def test_a_script_that_changed_since_is_told(tmp_path):
    (tmp_path / "chapters").mkdir()
    (tmp_path / "benchmarks/beside").mkdir(parents=True)
    (tmp_path / "chapters/beside.toml").write_text("[a]\ncode = '''\nx = 1\n'''\n[b]\ncode = ''\n")
    (tmp_path / "benchmarks/beside/01_c.py").write_text("y = 1\n")
    assert [fault[:22] for fault in freshness.unrecorded(tmp_path)] == [
        "benchmarks/beside/01_c", "benchmarks/beside/a.py", "benchmarks/beside/b.py",
    ]  # fmt: skip
    assert freshness.unrecorded(freshness.ROOT) == []


def test_who_asks_for_another_or_has_no_torch_is_told(monkeypatch):
    with pytest.raises(ValueError, match=r"beside: name = 'relu': expected one of 01_copy"):
        beside("relu")
    monkeypatch.setattr(in_torch, "find_spec", lambda _: None)
    with pytest.raises(ValueError, match=r"run = True: torch is not installed here"):
        beside("01_copy", run=True)


def test_torch_keeps_sends_and_orders_what_the_laws_say():
    said = {name: record["output"] for name, record in records().items()}
    counted = [int(n) for n in re.findall(r": (\d+) bytes", said["06_kept"])]
    assert sum(counted) == training_state_bytes(1).total
    layers, calls = (
        4,
        [re.findall(r": (\d+)[,}]", line) for line in said["06_gathers"].splitlines()],
    )
    for (again, m), counts in zip(itertools.product((64, 1), (1, 3)), calls, strict=True):
        sent = hybrid_sharded_bytes(1, 64, 1, again, m, 1, 1).inside
        assert sum(map(int, counts)) / layers * 63 / 64 == pytest.approx(sent), (again, m)
        # FULL_SHARD is ZeRO-3; SHARD_GRAD_OP is ZeRO-2 for one micro-batch alone.
        zero = data_parallel_bytes(1, 64, 3 if again > 1 else 2, m, 1, 1)
        assert (sent == pytest.approx(zero)) == (again > 1 or m == 1)
    lines = re.findall(r"^(all_\w+)\.default: (\d+) bytes", said["06_context"], re.M)
    # Of four ranks, a gather sends to three others, an all-to-all to the next.
    sent = sum(int(size) * (3 if "gather" in name else 1) for name, size in lines)
    assert sent == context_parallel_bytes(64, 8 * 16, 4, framework="pytorch")
    rows = re.findall(r"^  ([FB]+)$", said["06_orders"], re.M)
    for kind, orders in (("gpipe", rows[:4]), ("1f1b", rows[4:])):
        kept = [max(o[:n].count("F") - o[:n].count("B") for n in range(17)) for o in orders]
        assert kept == list(simulate(kind, 4, 8).peak_activations)
