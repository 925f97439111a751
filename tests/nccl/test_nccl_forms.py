"""Forms in which people post nccl-tests output, each seen in a public issue or repository and set
again here with rates of our own: what each says is read, what it does not say is not.
"""

import pytest
from nccl_samples import printed

from lightspeed_tools.nccl.facts import facts_of
from lightspeed_tools.nccl.judge import judge_report
from lightspeed_tools.nccl.log import ReportError, parse
from lightspeed_tools.nccl.sentences import in_words

ROWS = [(2**26, 2**26 / 50e9), (2**30, 2**30 / 60e9)]
H100 = "NVIDIA H100 80GB HBM3"


def table(collective="all_reduce", n=16, nodes=2, **more):
    return printed(ROWS, n, nodes, collective, more.pop("device", H100), **more)


def without(text, *words):
    return "\n".join(x for x in text.splitlines() if not any(w in x for w in words))


def said_by_nccl(n, nodes):
    per = n // nodes
    return tuple(
        f"[0] worker-{i // per}:77:99 [{i % per}] NCCL INFO comm 0x56 rank {i} nRanks {n} nNodes"
        f" {nodes} localRanks {per} localRank {i % per} MNNVL 0"
        for i in range(n)
    )


OF_2017 = """nThread 1 nGpus 8 minBytes 33554432 maxBytes 67108864 step: 2(factor) iters: 20
# Using devices
#   Rank  0 on    dgx device  0 [0x06] Tesla P100-SXM2-16GB
#   Rank  1 on    dgx device  1 [0x07] Tesla P100-SXM2-16GB
#                                                 out-of-place                    in-place
#      bytes             N    type      op     time  algbw  busbw      res     time  algbw  busbw      res
    33554432       8388608   float     sum    1.550  21.65  21.65    1e-07    1.560  21.51  21.51    1e-07
 Out of bounds values : 0 OK
 Avg bus bandwidth    : 21.58
"""

LEADING = """
 p4dn        size         count      type   redop     time   algbw   busbw  error
   1   1073741824     268435456     float     sum   8142.6  131.87  230.77  2e-07
   2   1073741824     268435456     float     sum    35215   30.49   57.17  4e-07
   4   1073741824     268435456     float     sum    70253   15.28   29.61  1e-06
"""  # the nodes of each row in a column of their own

SENDRECV_2022 = """./build/sendrecv_perf -b 36M -e 36M -g 2 -d uint8
# nThread 1 nGpus 2 minBytes 37748736 maxBytes 37748736 step: 1048576(bytes) validation: 1
#   Rank  0 Pid   5897 on         x0 device  0 [0x05] NVIDIA GeForce GTX 1080
#   Rank  1 Pid   5897 on         x0 device  1 [0x06] NVIDIA GeForce GTX 1080
#       size         count      type     time   algbw   busbw  error     time   algbw   busbw  error
    37748736      37748736     uint8   6485.7    5.82    5.82  0e+00   6496.1    5.81    5.81  3e+02
"""

BROADCAST_2021 = """$ mpirun -np 2 --host 10.0.0.48:1,10.0.0.52:1 ./build/broadcast_perf -b 8 -e 2G -g 1 -c 0
#   Rank  0 Pid  14926 on v100-gpu-1 device  0 [0x00] Tesla V100-PCIE-16GB
#   Rank  1 Pid   9210 on v100-gpu-5 device  0 [0x00] Tesla V100-PCIE-16GB
#       size         count    type    root     time   algbw   busbw  error     time   algbw   busbw  error
  2147483648     536870912   float       0   715827    3.00    3.00    N/A   715827    3.00    3.00    N/A
"""

ONE_COLUMN = """# Collective test starting: all_reduce_perf
#   Rank 0 Group 0 Pid 52 on box device 0 [0000:18:00] NVIDIA H200 NVL
#   Rank 1 Group 0 Pid 52 on box device 1 [0000:67:00] NVIDIA H200 NVL
#       size    count   type  redop  root   time   algbw   busbw  #wrong
  1073741824 268435456  float    sum    -1  10737.4  100.00  100.00       0
"""

SHARED_DEVICE = """# Collective test starting: all_gather_perf_mpi
#  Rank  0 Group  0 Pid 2329560 on lab device 0 [0000:02:00] NVIDIA GeForce RTX 5090
#  Rank  1 Group  0 Pid 2329561 on lab device 0 [0000:02:00] NVIDIA GeForce RTX 5090
#       size      count    type   redop    root     time   algbw   busbw  #wrong
     8388608    1048576   float    none      -1  2277.03    3.68    1.84       0
"""  # one host twice, or two of one name

FLUSHED = """[0] # Collective test starting: all_reduce_perf
[0] #       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
[0]     67108864      16777216     float     sum      -1[0]    1342.2   50.00   96.88      0[0]    1340.0   50.08   97.03      0
[0]   1073741824     268435456     float     sum      -1[0]     21475   50.00   96.88      0[0]     21470   50.01   96.90      0
"""  # a tag wherever the test flushed its output

FORMS = {
    "a tag at each flush": (FLUSHED, ("all_reduce", 32, None)),
    "kubernetes, indented": (
        "".join(f"        [1,0]<stdout>:{x}\n" for x in table().splitlines()),
        ("all_reduce", 16, 2),
    ),
    "marks eaten by Markdown": (table().replace("\n#", "\n "), ("all_reduce", 16, 2)),
    "an address before each line": (
        "".join(f"10.3.35.83: {x}\n" for x in table(version="old").splitlines()),
        ("all_reduce", 16, 2),
    ),
    "quoted in a mail": ("".join(f"> {x}\n" for x in table().splitlines()), ("all_reduce", 16, 2)),
    "a list cut to its ends": (
        without(table(n=144, nodes=18), *(f"Rank {i:>2} " for i in range(2, 142))),
        ("all_reduce", 144, 18),
    ),
    "a table alone": (without(table(), "Rank", "perf", "nThread"), ("all_reduce", 16, None)),
    "NCCL's messages, no list": (
        without(table(log=said_by_nccl(16, 2)), "Group  0"),
        ("all_reduce", 16, 2),
    ),
    "two of eight lists lost": (
        without(table(n=8, nodes=1, version="2022"), "Rank  6", "Rank  7", "perf"),
        ("all_reduce", 8, None),
    ),
    "under srun": (
        "$ srun -N2 --ntasks-per-node=8 /t/build/reduce_scatter_perf -b 8 -e 4G -f 2\n"
        + without(table("reduce_scatter"), "Rank", "mpirun"),
        ("reduce_scatter", 16, 2),
    ),
    "gather": (table("gather"), ("gather", 16, 2)),
    "scatter": (table("scatter"), ("scatter", 16, 2)),
    "alltoall": (table("alltoall"), ("alltoall", 16, 2)),
    "rccl-tests": (
        table(n=8, nodes=1, device="AMD Instinct MI300X")
        .replace("# Out of", "# Errors with asterisks exceed the maximum threshold.\n# Out of")
        .replace("# Using", "rccl-tests: Version develop:83d38d9\n# Using"),
        ("all_reduce", 8, 1),
    ),
    "the nodes in a column": (LEADING, (None, None, None)),
    "sendrecv of 2022": (SENDRECV_2022, ("sendrecv", 2, 1)),
    "broadcast of 2021": (BROADCAST_2021, ("broadcast", 2, 2)),
    "one column of results": (ONE_COLUMN, ("all_reduce", 2, 1)),
    "two ranks on one device": (SHARED_DEVICE, ("all_gather", 2, None)),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_form_is_read_as_it_is(form):
    text, expected = FORMS[form]
    (report,) = parse(text)
    facts = facts_of(report)
    assert (facts.collective.value, facts.ranks.value, facts.nodes.value) == expected
    assert in_words(judge_report(report))


def test_the_time_of_2017_is_in_milliseconds():
    (report,) = parse(OF_2017)
    assert report.rows[0].time == pytest.approx(1.55e-3)
    assert len(report.rows) == 2


@pytest.mark.holds("nccl", "several processes tested each by itself")
def test_processes_that_do_not_join_are_told():
    """Two hosts, built without MPI: each writes its own list, table and rows into one log."""
    text = table(n=8, nodes=1)
    twice = "\n".join(line for line in text.splitlines() for _ in range(2))
    run = judge_report(*parse(twice))
    assert run.level == "invalid" and "MPI=1" in "\n".join(in_words(run))


def test_single_ranks_are_told_where_nothing_was_measured():
    """Eight processes built without MPI take the same GPU, and most of them find it full."""
    full = "node1: Test CUDA failure common.cu:1005 'out of memory'"
    heads = [
        f"#  Rank  0 Group  0 Pid {pid} on node1 device  0 [0x1a] NVIDIA H100" for pid in range(8)
    ]
    cause = "8 processes list themselves as rank 0 .* make MPI=1"
    for log in (heads, [line for head in heads for line in (head, full)], [*heads, full]):
        with pytest.raises(ReportError, match=cause):
            parse("\n".join(log))
    joined = [head.replace("Rank  0", f"Rank  {rank}") for rank, head in enumerate(heads)]
    for log in (joined, heads[:1]):
        with pytest.raises(ReportError, match="failed before") as refused:
            parse("\n".join([*log, full]))
        assert "MPI" not in str(refused.value)


def test_adapters_are_those_that_nccl_names():
    log = tuple(
        f"node-00{i}:77:99 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB/SHARP [1]mlx5_1:1/RoCE"
        f" [2]mlx5_4:1/IB [RO]; OOB eth0:10.20.0.12{i}<0>"
        for i in range(2)
    )
    adapters = facts_of(*parse(table(log=log))).adapters
    assert (adapters.value, adapters.how) == (3, "stated")
    assert "for each of 3 adapters" in "\n".join(in_words(judge_report(*parse(table(log=log)))))
