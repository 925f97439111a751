"""What others asked and measured, as logs whose truth is known: stalls, NVLS off, all kinds of
collectives over nodes, and results as data.
"""

import csv
import io
import json

import pytest
from nccl_samples import printed

from lightspeed.collectives import busbw_factor
from lightspeed_cli.main import main
from lightspeed_tools.nccl.advice import checks_of
from lightspeed_tools.nccl.data_log import parse_data
from lightspeed_tools.nccl.judge import judge_report
from lightspeed_tools.nccl.log import ReportError, parse
from lightspeed_tools.nccl.machine import described
from lightspeed_tools.nccl.sentences import in_words, sentences
from lightspeed_tools.nccl.shape import fall_of

GIB = 2**30


def run_of(text, hardware=None, nic=None):
    (report,) = parse(text)
    return judge_report(report, described(hardware, nic))


def large(busbw, n, nodes, collective="all_reduce", device="NVIDIA H100 80GB HBM3", size=GIB):
    """One size at so many GB/s of busbw."""
    time = size * busbw_factor(collective, n) / (busbw * 1e9)
    return printed([(size, time)], n, nodes, collective, device)


def sweep(stall=(), inside=()):
    """1 MB to 8 GB over two nodes at 430 GB/s, with messages (powers of two) that take 90 ms."""
    sound = {2**k: 40e-6 + 2**k * 1.875 / 430e9 for k in range(20, 34)}
    rows = [(size, max(time, 0.09 * (size in [2**k for k in stall])))
            for size, time in sound.items()]  # fmt: skip
    return printed(rows, 16, 2, inside=sound | {2**k: 0.09 for k in inside})


@pytest.mark.parametrize(
    ("stall", "inside", "says"),
    [
        (range(23, 31), (), "Stalls at 8 sizes out of place, up to 1,1"),
        ((), range(23, 34), "Stalls at 11 sizes in place, up to 1,1"),
    ],
)
def test_stalls_are_seen_in_both_halves_whatever_the_machine(stall, inside, says):
    for machine in ({}, {"nic": "8x400Gbps"}):
        run = run_of(sweep(stall, inside), **machine)
        assert run.level == "mixed" and says in in_words(run)[1], machine
        assert "lost and sent again" in " ".join(sentences(run))
        assert "retransmissions" in " ".join(checks_of(run))
    sound = run_of(sweep())
    assert (sound.level, sound.stalls) == ("normal", ())


def test_stalls_that_grow_with_the_bytes_are_no_timers():
    slow = {2**k: 3 * (40e-6 + 2**k * 1.875 / 430e9) for k in range(24, 34)}
    rows = [(s, t / 3) for s, t in slow.items()]
    run = run_of(printed(rows, 16, 2, inside=slow))
    assert run.level == "mixed" and "lost and sent again" not in " ".join(sentences(run))


def test_a_ring_on_one_node_is_normal_for_its_setting_and_nvls_is_named():
    for busbw, ring in ((370, True), (480, False)):
        run = run_of(large(busbw, 8, 1, size=8 * GIB))
        assert (run.level, run.main.ring) == ("normal", ring)
        assert ("NCCL_NVLS_ENABLE is not 0" in " ".join(checks_of(run))) is ring
    assert "Normal for a ring" in in_words(run_of(large(370, 8, 1, size=8 * GIB)))[1]
    assert run_of(large(200, 8, 1, size=8 * GIB)).level in ("slow", "very slow")


@pytest.mark.parametrize(
    ("collective", "busbw", "n", "nodes", "device", "level"),
    [
        ("all_reduce", 320, 32, 4, "NVIDIA H100 80GB HBM3", {"normal"}),
        ("all_reduce", 180, 32, 4, "NVIDIA H100 80GB HBM3", {"slow", "very slow"}),
        ("reduce_scatter", 100, 16, 2, "NVIDIA H100 80GB HBM3", {"slow", "very slow"}),
        ("all_gather", 101, 16, 2, "NVIDIA H100 80GB HBM3", {"slow", "very slow"}),
        ("alltoall", 25, 16, 2, "NVIDIA H100 80GB HBM3", {"slow", "very slow"}),
        ("sendrecv", 13, 16, 2, "NVIDIA H100 80GB HBM3", {"slow", "very slow"}),
        ("sendrecv", 45, 16, 2, "NVIDIA H100 80GB HBM3", {"normal"}),
        ("reduce_scatter", 350, 16, 2, "NVIDIA H100 80GB HBM3", {"normal"}),
        ("alltoall", 20, 128, 16, "NVIDIA H20", {"slow", "very slow"}),
    ],
)
def test_each_collective_over_nodes_is_held_to_its_line(collective, busbw, n, nodes, device, level):
    run = run_of(large(busbw, n, nodes, collective, device), nic="8x400G")
    assert run.level in level, in_words(run)[1]


def test_a_gather_that_was_not_validated_in_place_is_known_by_its_name():
    text = large(101, 16, 2, "all_gather").replace("      0\n", "    N/A\n")
    run = run_of(text)
    assert (run.collective, run.n, run.nodes) == ("all_gather", 16, 2)


@pytest.mark.parametrize(
    ("hardware", "inside", "domain"),
    [("H20", 450e9, 8), ("mi300x", 448e9, 8), ("GB200", 900e9, 72), ("h800", 200e9, 8),
     ("v100_sxm", 150e9, 8), ("L40S", 31.5e9, 8)],
)  # fmt: skip
def test_any_chip_with_known_links_may_be_stated(hardware, inside, domain):
    machine = described(hardware, "8x400 Gb/s")
    assert machine.inside == pytest.approx(inside, rel=1e-2) and machine.domain == domain
    assert machine.network == 400e9


def test_what_falls_and_comes_back_is_not_lost():
    def fall(rates):
        rows = [(2**k, 2**k * 1.75 / (rate * 1e9)) for k, rate in enumerate(rates, 24)]
        return fall_of(run_of(printed(rows, 8)).verdicts)

    back, gone = fall([300, 400, 460, 300, 465, 470]), fall([300, 400, 460, 455, 300, 310])
    assert back.returns and back.end == 2**27
    assert not gone.returns and gone.end == 2**28
    assert fall([300, 400, 440, 450, 460, 465]) is None


def rccl(rows, n, as_csv):
    """What rccl-tests' Reporter writes (src/common.cu): six digits, a row each half."""
    told = [
        {"numCycle": 1, "name": "AllReduce", "nodes": 1, "ranks": n, "ranksPerNode": n,
         "gpusPerRank": 1, "size": size, "type": "float", "redop": "sum", "inPlace": half,
         "time": float(f"{us:.6g}"), "algBw": float(f"{size / us / 1e3:.6g}"),
         "busBw": float(f"{size / us / 1e3 * 2 * (n - 1) / n:.6g}"), "wrong": "0"}
        for size, us in rows for half in (0, 1)
    ]  # fmt: skip
    if not as_csv:
        return json.dumps(told).replace('"0"', "N/A")
    out = io.StringIO()
    names = {"name": "collective", "inPlace": "inplace", "algBw": "algbw", "busBw": "busbw",
             "wrong": "#wrong"}  # fmt: skip
    writer = csv.writer(out)
    writer.writerow([names.get(name, name) for name in told[0]])
    writer.writerows(row.values() for row in told)
    return out.getvalue()


@pytest.mark.parametrize("as_csv", [False, True])
def test_results_of_rccl_tests_are_read_as_data(tmp_path, capsys, as_csv):
    path = tmp_path / "out"
    path.write_text(rccl([(2**27, 800.0), (GIB, 6300.0)], 8, as_csv))
    (report,) = parse_data(path.read_text())
    assert (report.collective, report.said_ranks, report.said_nodes) == ("all_reduce", {8}, {1})
    assert [row.in_place for row in report.rows] == [False, True] * 2
    assert main(["nccl", "report", str(path), "--hardware", "mi300x"]) == 0
    told = capsys.readouterr().out
    assert "all_reduce, 8 GPUs on 1 node, MI300X" in told and "298 GB/s" in told
    with pytest.raises(ReportError, match="not a row of rccl-tests"):
        parse_data(path.read_text().replace("134217728", "null"))


def test_a_gate_may_ask_for_every_size_in_both_halves(tmp_path, capsys):
    path = tmp_path / "run.log"
    path.write_text(sweep(inside=[28]))
    gate = ["nccl", "report", str(path), "--nic", "8x400G", "--at-least", "70%"]
    assert main(gate) == 0
    assert main([*gate, "--from", "64M"]) == 1
    error = capsys.readouterr().err
    assert "268 MB in place" in error and error.count("\n") == 1
    assert main([*gate, "--from", "16G"]) == 2
    assert "no message as large as --from" in capsys.readouterr().err
