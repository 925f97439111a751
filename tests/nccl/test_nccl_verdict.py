"""`lightspeed nccl report`: logs in, the right verdict in words out, a stable page."""

import pytest
from nccl_samples import measured, printed, under_mpirun

from lightspeed.collectives import busbw_factor
from lightspeed_models.nccl_fit import FABRICS, measurements
from lightspeed_tools.nccl.advice import checks_of
from lightspeed_tools.nccl.judge import judge, judge_report
from lightspeed_tools.nccl.log import ReportError, parse
from lightspeed_tools.nccl.machine import described
from lightspeed_tools.nccl.page import read_runs, report_lines
from lightspeed_tools.nccl.published import kind, published_near, spread
from lightspeed_tools.nccl.sentences import in_words, sentences

H200 = "NVIDIA H200"
EFA = (
    "node-000:2000:2000 [0] NCCL INFO NET/OFI Selected Provider is efa (found 32 nics)",
    "NCCL version 2.21.5+cuda12.4",
)
SOCKET = (
    "node-000:2000:2000 [0] NCCL INFO NET/Socket : Using [0]eth0:10.0.0.1<0>",
    "node-000:2000:2011 [0] NCCL INFO Using network Socket",
)


def judged(text, hardware=None, nic=None, domain=None, **stated):
    (report,) = parse(text)
    return judge_report(report, described(hardware, nic, domain), **stated)


def report_file(path):
    return report_lines([path], [read_runs(path)])


def says(run, *words):
    text = "\n".join(in_words(run))
    for word in words:
        assert word in text, f"{word!r} is not in\n{text}"


# ---------------------------------------------------------------- what is normal


@pytest.mark.holds("nccl", "Nothing to check.")
def test_the_question_of_the_chapter():
    """125 nodes, 16 GB, algbw 156 GB/s: normal, at 78 % of the line."""
    run = judged(printed([(16_000_000_000, 16e9 / 156e9)], 1000, 125, log=EFA))
    assert (run.main.level, run.main.regime, run.nodes, run.fabric) == (
        "normal",
        "bandwidth-bound",
        125,
        "p5",
    )
    assert run.main.busbw == pytest.approx(311.7e9, rel=1e-3)
    assert run.main.share == pytest.approx(0.78, abs=0.002)
    says(
        run,
        "1,000 GPUs on 125 nodes",
        "78 % of the line, 400 GB/s",
        "That is normal",
        "Nothing to check",
        "Published nearby (32 nodes",
    )
    assert not run.findings


@pytest.mark.parametrize(
    ("series", "n", "nodes", "collective", "device", "fabric"),
    [
        ("a100_sweep", 8, 1, "all_reduce", "NVIDIA A100-SXM4-80GB", "a100"),
        ("h200_sweep", 8, 1, "all_reduce", H200, "h200"),
        ("p6_one_node", 8, 1, "all_reduce", "NVIDIA B200", "b200"),
        ("p5_all_reduce", 32, 4, "all_reduce", "NVIDIA H100 80GB HBM3", "p5"),
        ("p5_all_reduce", 256, 32, "all_reduce", "NVIDIA H100 80GB HBM3", "p5"),
        ("p5_alltoall", 64, 8, "alltoall", "NVIDIA H100 80GB HBM3", "p5"),
        ("p6_four_nodes", 32, 4, "all_reduce", "NVIDIA B200", "p6"),
    ],
)
@pytest.mark.parametrize("version", ["now", "2022", "old"])
def test_published_runs_are_normal_in_every_version(
    series, n, nodes, collective, device, fabric, version
):
    text = printed(measured(series, nodes), n, nodes, collective, device, version)
    run = judged(text, hardware=fabric if nodes > 1 else None)
    assert (run.fabric, run.n, run.nodes) == (fabric, n, nodes)
    assert run.main.level == "normal"
    assert not run.findings
    levels = [v.level for v in run.verdicts]
    assert levels.count("normal") >= 0.6 * len(levels)


def test_nine_of_ten_test_rows_are_normal_by_construction():
    rows = [r for r in measurements() if not r.fitted and r.size >= 64e6]
    normal = [
        judge(r.collective, r.size, r.time, r.n, r.nodes, described(r.fabric)).level == "normal"
        for r in rows
    ]
    assert 0.8 <= sum(normal) / len(normal) < 1
    for message in ("large", "middle", "small"):
        for where in ("one node", "several nodes"):
            assert 1.1 <= spread(message, where) < 3
    assert spread("large", "one node") < spread("middle", "one node") < spread("small", "one node")
    assert kind(64e6, 2) == ("large", "several nodes")


# ---------------------------------------------------------------- what is not


@pytest.mark.parametrize("version", ["now", "2022", "old"])
def test_sockets_are_named_first(version):
    slow = [(size, 40 * time) for size, time in measured("p5_all_reduce", 4)]
    run = judged(under_mpirun(printed(slow, 32, 4, version=version, log=SOCKET)), "p5")
    assert run.main.level == "very slow"
    assert checks_of(run)[0].startswith("The log says NET/Socket")
    says(run, "far too slow", "39.1 times the time", "Check first:\n  1. The log says NET/Socket")


def test_sockets_are_suspected_without_a_log():
    slow = [(size, 40 * time) for size, time in measured("p5_all_reduce", 4)]
    run = judged(printed(slow, 32, 4), "p5")
    assert run.main.busbw < 12.5e9
    assert checks_of(run)[0].startswith("TCP sockets give such a rate")


def test_one_adapter_of_eight():
    run = judged(printed([(2**33, 2**33 * 1.9375 / 45e9)], 32, 4, log=EFA))
    assert "one of the node's adapters" in checks_of(run)[0]
    assert not any("sockets" in check for check in checks_of(run))


def test_a_pcie_path_inside_a_node():
    run = judged(
        printed(
            [(2**33, 2**33 * 1.75 / 24e9)],
            8,
            log=("node-000:1:1 [0] NCCL INFO Channel 00 : 0[0] -> 1[1] via SHM/direct/direct",),
        )
    )
    assert run.main.level == "very slow"
    assert "SHM" in checks_of(run)[0]
    assert "PCIe" in checks_of(run)[1]


@pytest.mark.holds("nccl", "The log names InfiniBand but no GDRDMA")
def test_infiniband_without_direct_memory_access():
    log = ("node-000:1:1 [0] NCCL INFO Channel 00/0 : 8[0] -> 0[0] [receive] via NET/IB/0",)
    slow = [(2**33, 2 * 8589934592 / 184.25e9)]
    assert any(
        "GDRDMA" in check for check in checks_of(judged(printed(slow, 32, 4, log=log), "p5"))
    )
    direct = (log[0] + "/GDRDMA",)
    assert not any(
        "no GDRDMA" in check for check in checks_of(judged(printed(slow, 32, 4, log=direct), "p5"))
    )


def test_a_slow_node_is_slow_and_not_very_slow():
    rows = [(size, 1.5 * time) for size, time in measured("p5_all_reduce", 4)]
    run = judged(printed(rows, 32, 4, log=EFA))
    assert run.main.level == "slow"
    assert any("slow node" in check for check in checks_of(run))


def test_normal_but_below_all_that_was_published_is_mixed():
    near = published_near("all_reduce", 2**30, 4, "p5")
    least = min(r.size / r.time * busbw_factor("all_reduce", r.n) for r in near)
    run = judged(
        printed([(2**30, 2**30 * busbw_factor("all_reduce", 32) / (0.98 * least))], 32, 4, log=EFA)
    )
    assert (run.main.level, run.level, run.above) == ("normal", "mixed", len(near))
    says(
        run,
        f"Normal by the model at 1.07 GB, but below all {len(near)} published runs nearby",
        "Check first:\n  1. Look for one slow node",
    )
    among = judged(
        printed([(2**30, 2**30 * busbw_factor("all_reduce", 32) / (1.05 * least))], 32, 4, log=EFA)
    )
    assert (among.level, among.above) == ("normal", 0)


@pytest.mark.holds("nccl", "Above the line nothing is broken")
def test_nvls_above_the_link_is_no_alarm():
    run = judged(printed(measured("h200_nvls")[-1:], 8, device=H200))
    assert run.main.level == "normal"
    assert run.main.busbw > run.main.line
    says(run, "105 % of the line", "nothing is broken", "NCCL_ALGO=Ring")


def test_two_nodes_at_340_are_doubted():
    run = judged(printed([(16_000_000_000, 16e9 / 340e9)], 16, 2), "p5")
    assert run.level == "fast"
    says(run, "doubt the number of ranks")


def test_small_messages_are_bound_by_steps():
    run = judged(printed([(32768, 43.83e-6)], 8, device="NVIDIA A100-SXM4-80GB"))
    assert run.main.regime == "latency-bound"
    says(run, "Steps bound it", "-e 8G")


def test_a_network_that_is_not_named_is_not_guessed():
    text = printed(measured("p5_all_reduce", 4), 32, 4)
    run = judged(text)
    assert (run.level, run.main.line, run.confidence) == ("normal", None, "low")
    says(
        run,
        "that such nodes are sold with and that could have carried it",
        "normal on 8 x 400G a node (89 %; DGX H100, AWS p5 and p5e)",
        "State it with --nic",
    )
    assert "8 x 200G" not in "\n".join(in_words(run))  # it could not have carried this
    assert judged(text, hardware="p6").fabric == "p6"
    with pytest.raises(ReportError, match="--hardware 'p9': expected a chip"):
        judged(text, hardware="p9")
    run = judged(text, hardware="h100")  # a node of them, and no network
    assert run.machine.inside == 450e9 and run.main.line is None


def test_a_machine_that_cannot_have_carried_it_is_ruled_out():
    """223 GB/s of busbw between two nodes whose four adapters carry 50 GB/s."""
    run = judged(printed([(2**33, 2**33 / 118.87e9)], 16, 2, device="NVIDIA A100-SXM4-80GB"), "p4d")
    assert (run.machine, run.dropped.fabric) == (None, "p4d")
    assert [(c.where, c.level) for c in run.cases] == [("8 x 200G", "normal")]  # and not 4 x 100G
    says(run, "is ruled out")
    assert "450 %" not in "\n".join(in_words(run))


@pytest.mark.holds("nccl", "as much as {carried / each:.2g} of {have} adapters carry")
def test_a_network_may_be_described():
    rows = [(2**33, 2**33 * 1.875 / 90e9)]
    run = judged(printed(rows, 16, 2), nic="8x400G")
    assert (run.level, run.main.line) == ("very slow", 400e9)
    says(run, "as much as 1.8 of 8 adapters carry", "Confidence medium")
    assert judged(printed(rows, 16, 2), nic="4xHDR").level == "normal"
    rack = printed([(2**33, 2**33 * 1.97 / 835e9)], 72, 18, device="NVIDIA Graphics Device")
    assert (judged(rack).level, judged(rack).main.line) == ("depends", None)
    told = described(domain=72)
    assert told.joins(72, 18) and not told.joins(144, 36)
    for wrong in ("400G", "8x", "0x400G", "8x0G", "8*400G", "8x400GB/s"):
        with pytest.raises(ReportError, match="expected adapters of a node"):
            described(nic=wrong)


def test_a_machine_may_be_a_file(tmp_path):
    path = tmp_path / "cluster.toml"
    path.write_text('name = "our rack"\nnic = "4x400G"\ndomain = 72\ninside = "nvlink5"\n')
    told = described(file=str(path))
    assert (told.inside, told.network, told.domain) == (900e9, 200e9, 72)
    path.write_text('nics = "4x400G"\n')
    with pytest.raises(ReportError, match="no key 'nics'; there are name, nic"):
        described(file=str(path))
    path.write_text("nic = 4x400G\n")
    with pytest.raises(ReportError, match="is not TOML"):
        described(file=str(path))


def test_unknown_hardware_is_not_judged():
    run = judged(printed(measured("a100_sweep"), 8, device="NVIDIA Nonesuch"))
    assert (run.fabric, run.main.level, run.main.line) == (None, "unknown", None)
    says(run, "NVIDIA Nonesuch", "Depends on the links inside", "with --hardware or --machine")


@pytest.mark.parametrize(
    "device", ["NVIDIA H100 PCIe", "NVIDIA A100-PCIE-40GB", "NVIDIA GB200", "Tesla V100-SXM2-16GB"]
)
def test_cards_and_relatives_are_not_taken_for_the_machine_that_was_measured(device):
    assert judged(printed([(2**30, 8.2e-3)], 8, device=device)).fabric is None


@pytest.mark.holds("nccl", "GPUs of a node take part", "No published run leaves GPUs of a node out")
def test_one_gpu_of_each_node_has_only_its_own_adapters():
    run = judged(printed([(2**30, 2**30 / 45e9)], 2, 2, log=EFA))
    assert (run.main.level, run.main.model, run.main.line) == ("unknown", None, 50e9)
    says(run, "Only 1 of 8 GPUs", "90 % of the line", "run the test on all of them")
    assert (
        judge("alltoall", 1e9, 0.02, 16, 2, described("p5")).line
        == pytest.approx(50e9 * (15 / 16) / (1 / 2))  # half of it stays in the node
    )


@pytest.mark.holds("nccl", "the model is not tested on it")
def test_an_untested_collective_says_so():
    run = judged(printed([(2**33, 2**33 / 300e9)], 8, collective="broadcast"))
    says(run, "the model is not tested on it")


# ---------------------------------------------------------------- files that are not whole


def test_a_file_that_ends_early(tmp_path):
    text = printed(measured("a100_sweep"), 8, device="NVIDIA A100-SXM4-80GB", footer=False)
    path = tmp_path / "run.log"
    path.write_text(text[:-40])
    lines = report_file(path)
    assert any("the test was to go to" in line or "closing lines" in line for line in lines)
    assert any("That is normal" in line for line in lines)


def test_no_table_and_no_file(tmp_path):
    path = tmp_path / "run.log"
    path.write_text("srun: error: Unable to allocate resources\n")
    with pytest.raises(ReportError, match="no table"):
        report_file(path)
    with pytest.raises(FileNotFoundError):
        report_file(tmp_path / "none.log")


def test_what_a_log_does_not_say_is_asked_for():
    rows = measured("p5_all_reduce", 4)
    text = printed(rows, 32, 4)
    bare = "\n".join(line for line in text.splitlines() if "Rank" not in line)
    run = judged(bare)
    assert (run.n, run.nodes, run.level) == (32, None, "depends")  # 32 from busbw / algbw
    assert run.facts.asks == ("State on how many nodes the 32 GPUs are with --nodes.",)
    says(run, "normal on 4 nodes with 8 x 400G each", "--nodes and --nic", "nodes not known")
    run = judged(bare, nodes=4, hardware="p5")
    assert (run.n, run.nodes, run.main.level, run.confidence) == (32, 4, "normal", "medium")
    with pytest.raises(ReportError, match="contradicts the file"):
        judged(text, ranks=2)
    with pytest.raises(ReportError, match="cannot be on 64 nodes"):
        judged(text, nodes=64)
    unnamed = "\n".join(line for line in text.splitlines() if "perf" not in line)
    assert judged(unnamed).facts.collective.how == "inferred"


@pytest.mark.holds("nccl", "one rank sends nothing")
def test_one_rank_is_no_run():
    lines = printed([(2**30, 1e-3)], 1).splitlines()
    assert judged("\n".join(lines)).level == "invalid"
    says(judged("\n".join(lines)), "one rank sends nothing", "MPI=1")


def test_a_file_that_contradicts_itself():
    text = printed([(2**30, 8.2e-3)], 8, device="NVIDIA A100-SXM4-80GB", footer=False)
    words = text.splitlines()[-1].split()
    words[7] = f"{2 * float(words[6]):.2f}"  # "busbw is about twice algbw"
    run = judged("\n".join([*text.splitlines()[:-1], "  ".join(words)]) + "\n")
    assert run.findings and run.level == "unknown"
    says(run, "About the file", "busbw")


@pytest.mark.holds("nccl", "the test reports wrong results")
def test_wrong_results_are_no_measurement():
    run = judged(printed(measured("a100_sweep"), 8).replace("values : 0 OK", "values : 9 FAILED"))
    assert run.level == "invalid"
    says(run, "the test reports wrong results")


def test_two_runs_stand_side_by_side(tmp_path):
    one, two = tmp_path / "one.log", tmp_path / "two.log"
    rows = measured("a100_sweep")
    one.write_text(printed(rows, 8, device="NVIDIA A100-SXM4-80GB"))
    two.write_text(printed([(s, 2 * t) for s, t in rows], 8, device="NVIDIA A100-SXM4-80GB"))
    lines = report_lines([one, two], [read_runs(one), read_runs(two)])
    assert any("the second file takes 2 times as long as the first file" in x for x in lines)
    gathered = printed(rows, 8, collective="all_gather", device="NVIDIA A100-SXM4-80GB")
    two.write_text(gathered)
    with pytest.raises(ReportError, match="share no collective"):
        report_lines([one, two], [read_runs(one), read_runs(two)])


def test_several_runs_in_one_file(tmp_path):
    path = tmp_path / "all.log"
    path.write_text(
        printed(measured("p5_all_reduce", 4), 32, 4, log=EFA)
        + "srun: done\n"
        + printed(measured("p5_alltoall", 4), 32, 4, "alltoall", log=EFA)
    )
    lines = report_file(path)
    assert sum("That is normal" in line for line in lines) == 2


def test_published_near_prefers_the_nearest():
    near = published_near("all_reduce", 2**33, 16, "p5")
    assert {r.nodes for r in near} == {8, 16, 32}
    assert all(r.fabric == "p5" for r in near)
    assert {r.nodes for r in published_near("all_reduce", 2**33, 512, "p5")} == {32}
    assert published_near("broadcast", 2**33, 16, "p5") == []
    assert set(FABRICS) >= {"p5", "p6"}


def test_peers_are_asked_at_a_size_that_both_have():
    """busbw rises with the size: 474 GB/s at 4 GB is no more than theirs at 512 MB."""
    rows = [(2**29, 2.1758e-3), (2**32, 15.87e-3)]
    said = " ".join(sentences(judged(printed(rows, 8))))
    assert "this run, at 432 GB/s there, is below all of them" in said
    said = " ".join(sentences(judged(printed(rows[1:], 8))))
    assert "this run, at 4.29 GB, is above all" in said


def test_four_gpus_of_a_node_are_not_measured_by_eight():
    """The switches give eight GPUs a higher busbw than four: runs of eight say nothing of four."""
    run = judged(printed([(2**33, 2**33 * 1.5 / 340e9)], 4))
    assert (run.level, run.above) == ("normal", 0)
    assert {r.n for r in published_near("all_reduce", 2**33, 1, "h100", 4)} == {4}


def test_a_curve_that_falls_has_no_two_ends():
    sizes = [2**k for k in range(20, 34)]
    rising = [(s, 20e-6 + s * 1.75 / 460e9) for s in sizes]
    falling = [(s, 20e-6 + s * 1.75 / (460e9 if s < 2**29 else 300e9)) for s in sizes]
    assert "before the first byte" in " ".join(sentences(judged(printed(rising, 8))))
    said = " ".join(sentences(judged(printed(falling, 8))))
    assert "does not return" in said and "before the first byte" not in said


# ---------------------------------------------------------------- what the file leaves open


def test_two_nodes_may_add_by_a_tree():
    """339 GB/s of busbw on 8 x 200G were published (A3 Mega): of two nodes each sends its buffer
    once, where a ring would have needed 170 % of the line.
    """
    run = judged(printed([(2**33, 47505e-6)], 16, 2))
    assert [(c.where, c.level, c.tree) for c in run.cases] == [
        ("8 x 400G", "normal", False),
        ("8 x 200G", "normal", True),
    ]
    assert (run.level, run.confidence) == ("normal", "low")
    four = judged(printed([(2**33, 2**33 * 1.9375 / 339e9)], 32, 4))
    assert [c.where for c in four.cases] == ["8 x 400G"]  # a tree of four sends more


def test_where_a_run_would_be_normal_is_a_range():
    """Inside it the same run is normal with --nic, above it is slow, below it is ruled out."""
    text = printed([(2**33, 2**33 * 1.875 / 89.9e9)], 16, 2, device="NVIDIA RTX PRO 6000")
    run = judged(text)
    low, high = (8e-9 * rate for rate in (run.span.low, run.span.high))
    for gbit, level in ((high * 0.98, "normal"), (high * 1.02, "slow"), (low * 1.02, "normal")):
        assert judged(text, nic=f"1x{gbit:.0f}G").level == level, gbit
    assert judged(text, nic=f"1x{low * 0.97:.0f}G").dropped
    assert run.level == "depends"  # nobody sells this as one machine


def test_a_table_alone_is_told_what_it_would_be():
    """Neither nodes nor GPUs are named: 469 GB/s over 8 is more than NVLink 3 carries."""
    rows = printed([(2**31, 2**31 * 1.75 / 469e9)], 8).splitlines()
    run = judged("\n".join(line for line in rows if "Rank" not in line and "perf" not in line))
    assert (run.main, run.level) == (None, "depends")
    assert [(c.where, c.level) for c in run.cases] == [
        ("one node with NVLink 5", "slow"),
        ("one node with NVLink 4", "normal"),
    ]
    says(run, "Depends on the nodes and the links inside", "with --nodes and --hardware")


def test_a_rack_is_thought_of_where_no_network_could_have_carried_it():
    rows = printed([(2**33, 2**33 * (142 / 72) / 835e9)], 72, 18).splitlines()
    run = judged("\n".join(line for line in rows if "Rank" not in line))
    assert [(c.where, c.level) for c in run.cases] == [
        ("NVLink 5 that joins all 72 GPUs", "normal")
    ]


def test_sockets_are_no_adapters():
    rows = [(2**30, 2**30 * 1.5 / 1.1e9)]
    run = judged(printed(rows, 4, 2, log=SOCKET))
    says(run, "The network is TCP sockets over eth0", "normal on 1 x 10G a node (88 %)")
    assert not any(case.sold for case in run.cases)


def test_efa_names_its_instance():
    """Only AWS has EFA, and one instance of it eight H100."""
    log = ("node-000:1:1 [0] NCCL INFO Using network AWS Libfabric",)
    rows = measured("p5_all_reduce", 4)
    run = judged(printed(rows, 32, 4, log=log))
    assert (run.fabric, run.level, run.confidence) == ("p5", "normal", "medium")
    assert judged(printed(rows, 8, 4, log=log)).fabric is None  # two of its eight, or another
    assert judged(printed(rows, 32, 4, device="NVIDIA B300", log=log)).fabric is None


ABORTED = (
    "node-003:77:99 [3] Test NCCL failure common.cu:300 'unhandled cuda error'",
    "srun: error: node-003: task 3: Killed",
    "mpirun noticed that process rank 3 with PID 77 on node node-003 exited on signal 9 (Killed).",
    "MPI_ABORT was invoked on rank 3 in communicator MPI_COMM_WORLD",
)


@pytest.mark.parametrize("failure", ABORTED)
def test_an_aborted_run_is_not_normal(failure):
    text = printed(measured("a100_sweep"), 8, device="NVIDIA A100-SXM4-80GB", footer=False)
    run = judged(f"{text}{failure}\n")
    assert (run.level, run.confidence, run.main.level) == ("aborted", None, "normal")
    first = in_words(run)[1]
    assert first.startswith("  Aborted: ") and "As far as it went: normal" in first
    ended = printed(measured("a100_sweep"), 8, device="NVIDIA A100-SXM4-80GB")
    assert judged(f"{ended}{failure}\n").level == "normal"  # it had ended


@pytest.mark.parametrize(
    ("device", "line"),
    [
        ("NVIDIA H800", 200e9),
        ("NVIDIA H20", 450e9),
        ("NVIDIA H20-3e", 450e9),
        ("AMD Instinct MI325X", 448e9),
        ("AMD Instinct MI355X", 535.5e9),
        ("NVIDIA B300 SXM6 AC", 900e9),
        ("NVIDIA GeForce RTX 5090", 63.0e9),
        ("NVIDIA L40S", 31.5e9),
        ("NVIDIA A800-SXM4-80GB", 200e9),
        ("NVIDIA A800 80GB PCIe", None),
        ("NVIDIA H200 NVL", None),
    ],
)
def test_the_link_inside_is_that_of_the_chip(device, line):
    run = judged(printed([(2**30, 2**30 * 1.75 / 20e9)], 8, device=device))
    assert run.main.line == (line and pytest.approx(line, rel=1e-3))


@pytest.mark.holds("nccl", "public sweeps over as many are as slow")
def test_a_model_of_eight_gpus_does_not_overrule_peers_of_two():
    """Two B200 gather at 428 GB/s: 44 public sweeps over two reach 421 to 448 GB/s."""
    rows = [(2**29, 626.8e-6), (2**33, 8897.6e-6)]
    run = judged(printed(rows, 2, collective="all_gather", device="NVIDIA B200"))
    assert run.main.ratio > run.main.spread and run.level == "normal"
    half = [(size, 2 * time) for size, time in rows]
    run = judged(printed(half, 2, collective="all_gather", device="NVIDIA B200"))
    assert run.level == "very slow"


def test_chips_of_other_makers_are_not_set_beside_nvlink():
    rows = [(2**28, 2**28 * 1.5 / 67e9), (2**30, 2**30 * 1.5 / 67e9)]
    for device in ("AWS Trainium2", "Intel Gaudi3", "AMD Instinct MI250X"):
        run = judged(printed(rows, 4, device=device))
        assert run.level == "unknown" and not run.cases
        said = in_words(run)
        assert device in said[0] and "Not judged" in said[1]
    # 33,554,432 B in 768 us are 43.69 GB/s: its guide prints 40.69
    with pytest.raises(ReportError, match=r"line 2: .*nccom-test, whose GB are GiB"):
        parse(
            "    nccom-test -r 2 allr\n"
            "    size(B)    count(elems)     type    time(us)    algbw(GB/s)    busbw(GB/s)\n"
            "   33554432        33554432    uint8         768          40.69          40.69\n"
        )


def test_a_ring_is_not_normal_on_half_of_what_it_needs():
    """Eight GB300 of two nodes gather at 357 GB/s: 4 x 400G carry 200."""
    run = judged(printed([(2**34, 42.09e-3)], 8, 2, "all_gather", "NVIDIA GB300"))
    assert [case.where for case in run.cases] == ["4 x 800G"] and run.level == "normal"


def test_three_sizes_within_a_tenth_are_no_fall():
    near = [(100e6, 200e-3), (105e6, 260e-3), (110e6, 290e-3), (115e6, 305e-3)]
    far = [(size * 2**i, time * 2**i) for i, (size, time) in enumerate(near)]
    for rows, falls in ((near, False), (far, True)):
        rows = [(round(size), time) for size, time in rows]
        run = judged(printed(rows, 3, 3, device="Tesla T4"))
        assert any("falls by" in words for words in sentences(run)) is falls
