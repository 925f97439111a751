"""Scripts of torch beside the lessons: shown as they are, with what they printed; a changed one is
named; and torch keeps, sends and orders what the lessons say.
"""

import re

import pytest

from lightspeed.collectives import busbw_factor
from lightspeed.memory import training_state_bytes
from lightspeed.parallel import (
    context_parallel_bytes,
    data_parallel_bytes,
    hybrid_sharded_bytes,
    tensor_parallel_bytes,
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
        most = 60 if name == "06_switches" else 20  # eleven switches, on a proof
        assert sum(bool(line.strip()) for line in record["code"].splitlines()) <= most
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
    sent = re.findall(r"^(.+): sends ([\d.]+), holds ([\d.]+)$", said["06_switches"], re.M)
    n, node, m, once = 64, 8, 3, 63 / 64
    sharded = {a: hybrid_sharded_bytes(1, n, 1, a, m, 1, 1).inside for a in (n, node, 1)}
    hybrid = hybrid_sharded_bytes(1, node, n // node, node, m, 1, 1)
    laws = {  # bytes sent and weights held between the passes, in copies of the model
        "DDP": (2 * m * once, 1), "no_sync": (data_parallel_bytes(1, n, 0, m, 1, 1), 1),
        "fully_shard": (data_parallel_bytes(1, n, 3, m, 1, 1), 1 / n),
        "reshard_after_forward=False": (sharded[1], 1),
        "reshard_after_forward=8": (sharded[node], 1 / node),
        "set_requires_gradient_sync": (sharded[n] - (m - 1) * once, 1 / n),
        "set_reshard_after_backward": (data_parallel_bytes(1, n, 2, m, 1, 1), 1),
        "both": (data_parallel_bytes(1, n, 1, m, 1, 1), 1),
        "2-D mesh": (hybrid.inside + m * hybrid.across, 1 / node),
        "set_requires_all_reduce": (hybrid.inside + hybrid.across, 1 / node),
        "reduce_dtype=float32": (hybrid_sharded_bytes(1, n, 1, n, m, 1, 2).inside, 1 / n),
    }  # fmt: skip
    assert [name for name, *_ in sent] == list(laws)
    for name, *counted in sent:
        assert [float(count) for count in counted] == pytest.approx(laws[name], abs=6e-4), name
    # Each all-reduce of an MLP is a fourth of a layer's with attention: one forward, one backward.
    first, other = re.findall(r"(\{.*\})", said["06_tensor"])
    assert first == "{'all_reduce': 2}" and "'all_gather_into_tensor': 2" in other
    ring = tensor_parallel_bytes(16, 64, 8, element_bytes=4)
    assert ring == 2 * 2 * busbw_factor("all_reduce", 8) * 16 * 64 * 4
    lines = re.findall(r"^(all_\w+)\.default: (\d+) bytes", said["06_context"], re.M)
    # Of four ranks, a gather sends to three others, an all-to-all to the next.
    sent = sum(int(size) * (3 if "gather" in name else 1) for name, size in lines)
    assert sent == context_parallel_bytes(64, 8 * 16, 4, framework="pytorch")
    rows = re.findall(r"^  ([FB]+)$", said["06_orders"], re.M)
    for kind, orders in (("gpipe", rows[:4]), ("1f1b", rows[4:])):
        kept = [max(o[:n].count("F") - o[:n].count("B") for n in range(17)) for o in orders]
        assert kept == list(simulate(kind, 4, 8).peak_activations)
