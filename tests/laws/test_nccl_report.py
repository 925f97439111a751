"""The reader of nccl-tests output: versions, noise, truncation, errors by line."""

import pytest

from lightspeed_tools.nccl.consistency import check
from lightspeed_tools.nccl.facts import facts_of, ranks_of_rates
from lightspeed_tools.nccl.log import ReportError, parse
from lightspeed_tools.nccl.page import read_runs

# nccl-tests 2.17, 2 nodes x 4 GH200 under srun (CSCS documentation); sizes in between left out.
TODAY = """\
/nccl-tests-2.17.1/build/all_reduce_perf: /usr/lib/aarch64-linux-gnu/libnl-3.so.200: no version information available
# Collective test starting: all_reduce_perf
# nThread 1 nGpus 1 minBytes 8 maxBytes 134217728 step: 2(factor) warmup iters: 1 iters: 20 agg iters: 1 validation: 1 graph: 0
#
# Using devices
#  Rank  0 Group  0 Pid 204199 on  nid005471 device  0 [0009:01:00] NVIDIA GH200 120GB
#  Rank  1 Group  0 Pid 204200 on  nid005471 device  1 [0019:01:00] NVIDIA GH200 120GB
#  Rank  2 Group  0 Pid 204201 on  nid005471 device  2 [0029:01:00] NVIDIA GH200 120GB
#  Rank  3 Group  0 Pid 204202 on  nid005471 device  3 [0039:01:00] NVIDIA GH200 120GB
#  Rank  4 Group  0 Pid 155254 on  nid005487 device  0 [0009:01:00] NVIDIA GH200 120GB
#  Rank  5 Group  0 Pid 155255 on  nid005487 device  1 [0019:01:00] NVIDIA GH200 120GB
#  Rank  6 Group  0 Pid 155256 on  nid005487 device  2 [0029:01:00] NVIDIA GH200 120GB
#  Rank  7 Group  0 Pid 155257 on  nid005487 device  3 [0039:01:00] NVIDIA GH200 120GB
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
           8             2     float     sum      -1    17.93    0.00    0.00      0    17.72    0.00    0.00      0
      262144         65536     float     sum      -1    127.0    2.06    3.61      0    108.9    2.41    4.21      0
   134217728      33554432     float     sum      -1   1916.4   70.04  122.57      0   1907.8   70.35  123.11      0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 42.25
#
# Collective test concluded: all_reduce_perf
"""

# nccl-tests before 2022: no root, an error in place of #wrong; 8 V100.
OLD = """\
$ ./build/all_reduce_perf -b 8 -e 128M -f 2 -g 8
# nThread 1 nGpus 8 minBytes 8 maxBytes 134217728 step: 2(factor) warmup iters: 5 iters: 20 validation: 1
#
# Using devices
#   Rank  0 Pid    746 on 9a417caaf03b device  0 [0x4f] Tesla V100-SXM2-16GB
#   Rank  7 Pid    746 on 9a417caaf03b device  7 [0xdc] Tesla V100-SXM2-16GB
#
#                                                     out-of-place                       in-place
#       size         count    type   redop     time   algbw   busbw  error     time   algbw   busbw  error
#        (B)    (elements)                     (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
           8             2   float     sum    48.46    0.00    0.00  1e-07    48.17    0.00    0.00  1e-07
     8388608       2097152   float     sum    541.0   15.51   27.14  5e-07    540.1   15.53   27.18    N/A
"""

# The same columns under mpirun, NCCL_DEBUG=INFO in between; 2 nodes of one GPU, EFA.
MPIRUN = """\
[1,0]<stdout>:# nThread 1 nGpus 1 minBytes 8 maxBytes 1073741824 step: 2(factor) warmup iters: 5 iters: 100 agg iters: 1 validation: 1 graph: 0
[1,0]<stdout>:# Using devices
[1,0]<stdout>:#  Rank  0 Group  0 Pid     21 on test-worker-0 device  0 [0x35] NVIDIA A10G
[1,0]<stdout>:#  Rank  1 Group  0 Pid     21 on test-worker-1 device  0 [0xf5] NVIDIA A10G
[1,0]<stdout>:test-worker-0:21:21 [0] NCCL INFO NET/OFI Selected Provider is efa (found 1 nics)
[1,0]<stdout>:NCCL version 2.12.7+cuda11.4
[1,0]<stdout>:#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
[1,0]<stdout>:   536870912     134217728     float     sum      -1   171351    3.13    3.13      0   171823    3.12    3.12      0
[1,1]<stdout>:test-worker-1:21:21 [0] NCCL INFO comm 0x7f9c0c000f60 rank 1 nranks 2 - Destroy COMPLETE
[1,0]<stdout>:  1073741824     268435456     float     sum      -1   344981    3.11    3.11      0   344454    3.12    3.12      0
[1,0]<stdout>:# Out of bounds values : 0 OK
[1,0]<stdout>:# Avg bus bandwidth    : 3.12
"""

ALLTOALL = """\
# Collective test starting: alltoall_perf
# nThread 1 nGpus 1 minBytes 524288 maxBytes 17179869184 step: 2(factor) warmup iters: 1 iters: 50 agg iters: 1 validation: 1 graph: 0
# Using devices
#  Rank  0 Group  0 Pid 568623 on   GPU-3882 device  0 [0008:06:00] NVIDIA GB300
#  Rank  3 Group  0 Pid 568628 on   GPU-3882 device  3 [0019:06:00] NVIDIA GB300
NCCL version 2.28.7+cuda13.0
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
  8589934592     536870912     float    none      -1    10308  833.31  624.98      0   9568.2  897.76  673.32    N/A
"""


def one(text, **more):
    (report,) = parse(text, **more)
    return report


def told(report):
    """(ranks, nodes) of a report."""
    facts = facts_of(report)
    return facts.ranks.value, facts.nodes.value


def changed(text, old, new):
    assert text.count(old) == 1
    return text.replace(old, new)


def test_todays_output():
    report = one(TODAY)
    assert (report.collective, *told(report)) == ("all_reduce", 8, 2)
    assert report.hosts == ("nid005471", "nid005487")
    assert report.names == ("NVIDIA GH200 120GB",)
    assert [(r.size, r.in_place) for r in report.rows[:2]] == [(8, False), (8, True)]
    last = report.rows[-1]
    assert (last.line, last.count, last.dtype, last.redop, last.root, last.wrong) == (
        20,
        33554432,
        "float",
        "sum",
        -1,
        0,
    )
    assert (last.time, last.algbw, last.busbw) == pytest.approx((1907.8e-6, 70.35e9, 123.11e9))
    assert report.average_busbw == 42.25e9
    assert not report.truncated
    assert check(report) == ()


def test_old_output_has_no_root_and_an_error():
    report = one(OLD)
    assert (report.collective, *told(report)) == ("all_reduce", 8, 1)
    assert report.rows[0].root is None
    assert report.rows[0].wrong == pytest.approx(1e-7)
    assert report.rows[-1].wrong is None
    assert report.truncated  # no footer
    assert check(report) == ()


def test_mpirun_prefixes_and_debug_lines():
    report = one(MPIRUN, collective="all_reduce")
    assert (*told(report), len(report.rows)) == (2, 2, 4)
    assert report.hints == ("EFA",)
    assert report.versions == ("NCCL version 2.12.7+cuda11.4",)
    assert check(report) == ()


def test_alltoall_counts_per_rank_and_its_size_is_the_whole_buffer():
    report = one(ALLTOALL)
    row, ranks = report.rows[0], told(report)[0]
    assert (report.collective, ranks) == ("alltoall", 4)
    assert row.size == row.count * 4 * ranks
    assert row.redop == "none"
    assert check(report) == ()


def test_one_column_of_results_extra_columns_and_time_stamps():
    head = (
        "# nccl-tests version 2.18.3 nccl-headers=23004 nccl-library=23004\n# Collective test"
        " starting: broadcast_perf_mpi\n"
    )
    single = (
        head
        + "#       size    count   type  redop  root   time   algbw   busbw  #wrong\n  34359738368"
        " 8589934592  float  none    0  875713  39.24   39.24       0\n"
    )
    report = one(single)
    assert (report.collective, report.rows[0].root, len(report.rows)) == ("broadcast", 0, 1)
    assert report.versions == ("nccl-tests version 2.18.3",)
    columns = "time algbw busbw #wrong i_min i_max i_p99 i_cv%"
    values = "100.0 10.00 17.50 0 98.1 103.2 103.0 1.25"
    stamped = (
        f"#  size count type redop root {columns} {columns} timestamp\n 1000000 250000 float sum -1"
        f" {values} {values} 2026-11-21 06:00:00\n"
    )
    report = one(stamped, collective="all_reduce")
    assert [r.busbw for r in report.rows] == [17.5e9, 17.5e9]
    assert ranks_of_rates(report.rows, "all_reduce") == (8, 8)


def test_several_runs_in_one_file():
    reports = parse(TODAY + "srun: job done\n" + ALLTOALL + changed(TODAY, "204199", "204111"))
    assert [r.collective for r in reports] == ["all_reduce", "alltoall", "all_reduce"]
    assert [told(r)[0] for r in reports] == [8, 4, 8]
    assert [r.truncated for r in reports] == [False, True, False]


@pytest.mark.parametrize(
    ("where", "after", "rows"),
    [("   134217728", 4, 4), ("   134217728", 70, 4), ("# Out of", 0, 6), ("# Out of", 9, 6)],
)
def test_a_file_cut_off_anywhere_keeps_the_rows_before(where, after, rows):
    report = one(TODAY[: TODAY.index(where) + after])
    assert (report.truncated, len(report.rows)) == (True, rows)
    assert all("left out" in finding.text for finding in check(report))


def test_a_run_killed_in_a_row_keeps_the_rows_before():
    cut = TODAY.index("   134217728") + 70
    report = one(
        TODAY[:cut]
        + "\nslurmstepd: error: *** JOB 1234 ON nid005471 CANCELLED DUE TO TIME LIMIT ***\n"
    )
    assert (report.truncated, len(report.rows)) == (True, 4)


@pytest.mark.parametrize(
    ("old", "new", "line", "why"),
    [
        ("1916.4   70.04", "1916.4   7o.04", 20, "7o.04"),
        ("    127.0    2.06    3.61", "    127.0    2.06", 19, "where the header has"),
        ("    127.0    2.06    3.61", "    127.0    2.06    3.61    3.61", 19, "the header has"),
        ("    127.0    2.06", "   -127.0    2.06", 19, "neither a time nor a rate"),
        ("    127.0    2.06", "      nan    2.06", 19, "neither a time nor a rate"),
        ("1916.4   70.04", "1916.4   70.94", 20, "do not agree"),
        ("# Avg bus bandwidth    : 42.25", "# Avg bus bandwidth    : n/a", 22, "not a number"),
    ],
)
def test_a_malformed_line_is_left_out_and_named(old, new, line, why):
    report = one(changed(TODAY, old, new))
    (found,) = [f for f in check(report) if f.line]
    assert found.line == line and why in found.text and found.text.startswith("left out")
    assert told(report) == (8, 2)


def test_a_damaged_header_costs_no_row():
    columns = "root     time   algbw   busbw #wrong     time"
    report = one(changed(TODAY, columns, columns.replace("time", "tiem", 1)))
    assert len(report.rows) == 6 and check(report) == ()


@pytest.mark.parametrize(
    "text", ["", "\n\n", "hello\n8 2 float\n", TODAY[: TODAY.index("           8 ")]]
)
def test_no_result_is_an_error(text):
    with pytest.raises(ReportError, match="no table of nccl-tests") as error:
        parse(text)
    assert error.value.line == 0


def test_a_failed_test_says_where():
    log = (
        TODAY[: TODAY.index("           8 ")]
        + "nid006352: Test NCCL failure common.cu:958 'unhandled system error (run with"
        " NCCL_DEBUG=INFO for details)'\n"
    )
    with pytest.raises(ReportError, match="failed before it measured") as error:
        parse(log)
    assert error.value.line == 18
    half = (
        TODAY[: TODAY.index("   134217728")]
        + "nid1: Test CUDA failure common.cu:303 'unspecified launch failure'\n"
    )
    report = one(half)
    assert [f.line for f in check(report)] == [20]


def test_rates_that_do_not_follow_are_found():
    wrong = [
        ("70.35  123.11", "70.35  140.70", "busbw"),  # "busbw is about twice algbw"
        ("122.57      0", "122.57      3", "3 wrong results"),
        ("Out of bounds values : 0 OK", "Out of bounds values : 7 FAILED", "out of bounds"),
        ("bandwidth    : 42.25", "bandwidth    : 52.25", "average"),
    ]
    for old, new, what in wrong:
        findings = check(one(changed(TODAY, old, new)), 8)
        assert any(what in finding.text for finding in findings), what
    assert check(one(TODAY), 16)  # 16 ranks would have another factor


def test_a_binary_without_mpi_is_recognized():
    """Each process prints its own list, table and rows."""
    lines = ALLTOALL.splitlines()
    twice = "\n".join(line for line in lines for _ in range(2))
    assert one(twice).apart
    assert not one(ALLTOALL).apart
    repeated = ALLTOALL + lines[-1] + "\n"  # the same size again: -N
    assert not one(repeated).apart


def test_ranks_from_the_factor_alone():
    for text, ranks in ((TODAY, 8), (OLD, 8), (ALLTOALL, 4)):
        report = one(text)
        assert ranks_of_rates(report.rows, report.collective) == (ranks, ranks)
    lone = one(
        "#  size count type redop root time algbw busbw #wrong\n 33554432 8388608 float none -1"
        " 19.56 1715.44 0.00 0\n",
        collective="alltoall",
    )
    assert ranks_of_rates(lone.rows, "alltoall") == (1, 1)  # one rank: busbw is 0
    low, high = ranks_of_rates(one(TODAY).rows, "broadcast")
    assert low > high  # its busbw is its algbw, whatever n
    large = "1000000000 250000000 float sum -1 6410.0 156.01 311.71 0"
    head = "# size count type redop root time algbw busbw #wrong\n"
    low, high = ranks_of_rates(one(head + large, collective="all_reduce").rows, "all_reduce")
    assert low < 1000 < high  # of a thousand ranks five digits tell no more


def test_hints_name_the_transport():
    log = (
        "node1:1:1 [0] NCCL INFO Channel 00/0 : 8[0] -> 0[0] [receive] via"
        " NET/IB/0/GDRDMA\nnode1:1:1 [0] NCCL INFO Using network Socket\n"
    )
    assert one(log + TODAY).hints == ("sockets", "InfiniBand", "GPUDirect RDMA")
    always = (
        "node1:1:1 [0] NCCL INFO NET/Socket : Using [0]eth0\n"
        "node1:1:1 [0] NCCL INFO NET/IB : No device found.\n"
    )
    assert one(always + TODAY).hints == ()


def test_a_file_is_read(tmp_path):
    path = tmp_path / "run.log"
    path.write_bytes(TODAY.encode() + b"\xff\xfe noise\n")
    assert len(read_runs(path)[0].report.rows) == 6
