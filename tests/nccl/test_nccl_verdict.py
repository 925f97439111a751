"""`lightspeed nccl report`: realistic logs in, the right verdict in words out, and a page that
never changes by itself.
"""

import html.parser

import pytest
from markupsafe import escape
from nccl_samples import measured, printed, row, under_mpirun

from lightspeed.collectives import busbw_factor
from lightspeed.errors import BadArgument
from lightspeed.models.nccl_fit import FABRICS, measurements
from lightspeed_course.nccl_report.log import ReportError, parse
from lightspeed_course.nccl_report.page import report_file, to_html
from lightspeed_course.nccl_report.verdict import (
    in_words,
    judge,
    judge_report,
    kind,
    published_near,
    sentences,
    spread,
)

H200 = "NVIDIA H200"
EFA = (
    "node-000:2000:2000 [0] NCCL INFO NET/OFI Selected Provider is efa (found 32 nics)",
    "NCCL version 2.21.5+cuda12.4",
)
SOCKET = (
    "node-000:2000:2000 [0] NCCL INFO NET/Socket : Using [0]eth0:10.0.0.1<0>",
    "node-000:2000:2011 [0] NCCL INFO Using network Socket",
)


def judged(text, **stated):
    (report,) = parse(text)
    return judge_report(report, **stated)


def says(run, *words):
    text = "\n".join(in_words(run))
    for word in words:
        assert word in text, f"{word!r} is not in\n{text}"


# ---------------------------------------------------------------- what is normal


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
    run = judged(printed(measured(series, nodes), n, nodes, collective, device, version))
    assert (run.fabric, run.n, run.nodes) == (fabric, n, nodes)
    assert run.main.level == "normal"
    assert not run.findings
    levels = [v.level for v in run.verdicts]
    assert levels.count("normal") >= 0.6 * len(levels)


def test_nine_of_ten_test_rows_are_normal_by_construction():
    rows = [r for r in measurements() if not r.fitted and r.size >= 64e6]
    normal = [
        judge(r.collective, r.size, r.time, r.n, r.nodes, r.fabric).level == "normal" for r in rows
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
    run = judged(under_mpirun(printed(slow, 32, 4, version=version, log=SOCKET)))
    assert run.main.level == "very slow"
    assert run.main.checks[0].startswith("The log says NET/Socket")
    says(run, "far too slow", "39.1 times the time", "Check first:\n  1. The log says NET/Socket")


def test_sockets_are_suspected_without_a_log():
    slow = [(size, 40 * time) for size, time in measured("p5_all_reduce", 4)]
    run = judged(printed(slow, 32, 4))
    assert run.main.busbw < 12.5e9
    assert run.main.checks[0].startswith("This is what TCP sockets give")


def test_one_adapter_of_eight():
    run = judged(printed([(2**33, 2**33 * 1.9375 / 45e9)], 32, 4, log=EFA))
    assert "one of the node's adapters" in run.main.checks[0]
    assert not any("sockets" in check for check in run.main.checks)


def test_a_pcie_path_inside_a_node():
    run = judged(
        printed(
            [(2**33, 2**33 * 1.75 / 24e9)],
            8,
            log=("node-000:1:1 [0] NCCL INFO Channel 00 : 0[0] -> 1[1] via SHM/direct/direct",),
        )
    )
    assert run.main.level == "very slow"
    assert "SHM" in run.main.checks[0]
    assert "PCIe" in run.main.checks[1]


def test_infiniband_without_direct_memory_access():
    log = ("node-000:1:1 [0] NCCL INFO Channel 00/0 : 8[0] -> 0[0] [receive] via NET/IB/0",)
    slow = [(2**33, 2 * 8589934592 / 184.25e9)]
    assert any("GDRDMA" in check for check in judged(printed(slow, 32, 4, log=log)).main.checks)
    direct = (log[0] + "/GDRDMA",)
    assert not any(
        "no GDRDMA" in check for check in judged(printed(slow, 32, 4, log=direct)).main.checks
    )


def test_a_slow_node_is_slow_and_not_very_slow():
    rows = [(size, 1.5 * time) for size, time in measured("p5_all_reduce", 4)]
    run = judged(printed(rows, 32, 4, log=EFA))
    assert run.main.level == "slow"
    assert any("slow node" in check for check in run.main.checks)


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


def test_nvls_above_the_link_is_no_alarm():
    run = judged(printed(measured("h200_nvls")[-1:], 8, device=H200))
    assert run.main.level == "normal"
    assert run.main.busbw > run.main.line
    says(run, "105 % of the line", "nothing is broken", "NCCL_ALGO=Ring")


def test_two_nodes_at_340_are_doubted():
    verdict = judge("all_reduce", 16e9, 16e9 / 340e9, 16, 2, "p5")
    assert verdict.level == "fast"
    assert "doubt the number of ranks" in " ".join(verdict.words)


def test_small_messages_are_bound_by_steps():
    run = judged(printed([(32768, 43.83e-6)], 8, device="NVIDIA A100-SXM4-80GB"))
    assert run.main.regime == "latency-bound"
    says(run, "Steps bound it", "-e 8G")


def test_a_guess_is_said_and_can_be_overruled():
    text = printed(measured("p5_all_reduce", 4), 32, 4)
    says(judged(text), "guessed", "--hardware")
    assert "guessed" not in "\n".join(in_words(judged(text, hardware="p5")))
    assert judged(text, hardware="p6").fabric == "p6"
    with pytest.raises(BadArgument, match="hardware"):
        judged(text, hardware="p9")
    with pytest.raises(ReportError, match="is one node"):
        judged(text, hardware="h100")


def test_unknown_hardware_is_not_judged():
    run = judged(printed(measured("a100_sweep"), 8, device="NVIDIA GH200 120GB"))
    assert (run.fabric, run.main.level, run.main.line) == (None, "unknown", None)
    says(run, "hardware not stated", "State it with --hardware")
    assert to_html([run], "x").count("<svg") == 1


@pytest.mark.parametrize(
    "device", ["NVIDIA H100 PCIe", "NVIDIA A100-PCIE-40GB", "NVIDIA GB200", "Tesla V100-SXM2-16GB"]
)
def test_cards_and_relatives_are_not_taken_for_the_machine_that_was_measured(device):
    assert judged(printed([(2**30, 8.2e-3)], 8, device=device)).fabric is None


def test_one_gpu_of_each_node_has_only_its_own_adapters():
    run = judged(printed([(2**30, 2**30 / 45e9)], 2, 2, log=EFA))
    assert (run.main.level, run.main.model, run.main.line) == ("unknown", None, 50e9)
    says(run, "Only 1 of 8 GPUs", "90 % of that", "Run the test on all GPUs")
    assert "<svg" in to_html([run], "x")
    assert (
        judge("alltoall", 1e9, 0.02, 8, 2, "p5").line
        == judge("alltoall", 1e9, 0.02, 16, 2, "p5").line
        == 50e9
    )


def test_an_untested_collective_says_so():
    run = judged(printed([(2**33, 2**33 / 300e9)], 8, collective="broadcast"))
    says(run, "the model is not tested on it")


# ---------------------------------------------------------------- files that are not whole


def test_a_file_that_ends_early(tmp_path):
    text = printed(measured("a100_sweep"), 8, device="NVIDIA A100-SXM4-80GB", footer=False)
    path = tmp_path / "run.log"
    path.write_text(text[:-40])
    lines = report_file(path)
    assert any("ends before the run does" in line for line in lines)
    assert any("That is normal" in line for line in lines)


def test_a_malformed_row_is_an_error_with_its_line(tmp_path):
    text = printed(measured("a100_sweep"), 8)
    wrong = text.replace(
        row(*measured("a100_sweep")[3], "all_reduce", 8),
        row(*measured("a100_sweep")[3], "all_reduce", 8).replace("float", "float  sum"),
    )
    number = next(i for i, line in enumerate(wrong.splitlines(), 1) if "float  sum" in line)
    path = tmp_path / "run.log"
    path.write_text(wrong)
    with pytest.raises(ReportError) as error:
        report_file(path)
    assert error.value.line == number
    assert str(error.value).startswith(f"line {number}: ")


def test_no_table_and_no_file(tmp_path):
    path = tmp_path / "run.log"
    path.write_text("srun: error: Unable to allocate resources\n")
    with pytest.raises(ReportError, match="no table"):
        report_file(path)
    with pytest.raises(FileNotFoundError):
        report_file(tmp_path / "none.log")


def test_what_a_log_does_not_say_must_be_stated():
    rows = measured("p5_all_reduce", 4)
    bare = "\n".join(line for line in printed(rows, 32, 4).splitlines() if "Rank" not in line)
    with pytest.raises(ReportError, match="--nodes"):
        judged(bare)
    run = judged(bare, nodes=4, hardware="p5")
    assert (run.n, run.nodes, run.main.level) == (32, 4, "normal")  # 32 from busbw / algbw
    lone = printed([(2**30, 1e-3)], 1)
    with pytest.raises(ReportError, match="MPI=1"):
        judged(lone)
    with pytest.raises(ReportError, match="cannot be on"):
        judged(printed(rows, 32, 4), ranks=2)
    unnamed = "\n".join(line for line in printed(rows, 32, 4).splitlines() if "perf" not in line)
    with pytest.raises(ReportError, match="--collective"):
        judged(unnamed)


def test_a_file_that_contradicts_itself():
    text = printed([(2**30, 8.2e-3)], 8, device="NVIDIA A100-SXM4-80GB", footer=False)
    words = text.splitlines()[-1].split()
    words[7] = f"{2 * float(words[6]):.2f}"  # "busbw is about twice algbw"
    run = judged("\n".join([*text.splitlines()[:-1], "  ".join(words)]) + "\n")
    assert run.findings
    says(run, "contradicts itself", "busbw")


def test_several_runs_in_one_file(tmp_path):
    path = tmp_path / "all.log"
    path.write_text(
        printed(measured("p5_all_reduce", 4), 32, 4)
        + "srun: done\n"
        + printed(measured("p5_alltoall", 4), 32, 4, "alltoall")
    )
    lines = report_file(path, page=tmp_path / "all.html")
    assert sum("That is normal" in line for line in lines) == 2
    assert (tmp_path / "all.html").read_text().count("<h2>") == 2


# ---------------------------------------------------------------- the page


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.links, self.open = [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.links += [
            value
            for name, value in attributes
            if name in ("src", "href", "xlink:href") and value and not value.startswith("#")
        ]
        if tag not in ("meta", "link", "br", "path", "use", "rect", "line", "polyline", "circle"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag in self.open:
            while self.open.pop() != tag:
                pass


@pytest.mark.parametrize(
    ("series", "n", "nodes", "device"),
    [
        ("a100_sweep", 8, 1, "NVIDIA A100-SXM4-80GB"),
        ("p5_all_reduce", 32, 4, "NVIDIA H100 80GB HBM3"),
    ],
)
def test_the_page_is_whole_and_always_the_same(series, n, nodes, device):
    run = judged(printed(measured(series, nodes), n, nodes, device=device))
    text = to_html([run], "run.log")
    assert text == to_html(
        [judged(printed(measured(series, nodes), n, nodes, device=device))], "run.log"
    )
    page = Page(text)
    assert page.open == []
    assert page.tags.count("svg") == 2
    assert page.links == []
    assert "script" not in page.tags
    for sentence in sentences(run):
        assert escape(sentence) in text


def test_what_the_file_says_is_text_not_markup():
    bad = printed(
        [(2**30, 8.2e-3)],
        8,
        device="NVIDIA A100 <script>alert(1)</script>",
        log=("NCCL version <b>2.21</b>",),
    )
    text = to_html([judged(bad)], "<img src=x>.log")
    assert "<script>" not in text
    assert "<b>" not in text
    assert "<img" not in text


def test_one_size_and_one_direction_can_be_drawn():
    assert to_html([judged(printed([(2**30, 8.2e-3)], 8))], "x").count("<svg") == 2


def test_published_near_prefers_the_nearest():
    near = published_near("all_reduce", 2**33, 16, "p5")
    assert {r.nodes for r in near} == {8, 16, 32}
    assert all(r.fabric == "p5" for r in near)
    assert {r.nodes for r in published_near("all_reduce", 2**33, 512, "p5")} == {32}
    assert published_near("broadcast", 2**33, 16, "p5") == []
    assert set(FABRICS) >= {"p5", "p6"}
