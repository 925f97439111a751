"""NCCL's tuner: ours against NCCL's own code by release, and a table that a job printed."""

import csv
from pathlib import Path

import pytest

from lightspeed.errors import BadArgument
from lightspeed_models import nccl_tuner
from lightspeed_tools.nccl.tuning_log import read_tuning_tables

EXPECTED = Path(__file__).with_name("nccl_tuning_expected.csv")
LOG = Path(__file__).parents[1].joinpath("nccl", "tuning_2.29.7.log").read_text()
NUMBERS = ("latency_us", "algbw_GBps", "time_us")


def expected():
    """(release, job, size) -> {(algorithm, protocol): (latency, ...)} by NCCL's own code."""
    lines = [line for line in EXPECTED.read_text().splitlines() if not line.startswith("#")]
    found = {}
    for row in csv.DictReader(lines):
        state = tuple(v for k, v in row.items() if k not in (*NUMBERS, "algorithm", "protocol"))
        values = [float(row[name]) for name in NUMBERS]
        found.setdefault(state, (row, {}))[1][row["algorithm"], row["protocol"]] = values
    return found.values()


def job_of(row):
    return nccl_tuner.Job(
        int(row["n"]),
        int(row["nodes"]),
        row["collective"],
        row["architecture"],
        float(row["inside"]) * 1e9,
        float(row["across"]) * 1e9,
        int(row["channels"]),
        cpu=row["cpu"],
        link=row["link"],
        net_latency=float(row["net_latency_us"]) * 1e-6,
        release=row["release"],
    )


def test_every_release_computes_what_its_source_computes():
    """Latency, bandwidth, time and choice, to a float's seven digits, in random states."""
    seen, wrong = set(), []
    for row, theirs in expected():
        job, size = job_of(row), float(row["size"])
        ours = {(c.algorithm, c.protocol): c for c in nccl_tuner.choices(job, size)}
        table = nccl_tuner.tuning_table(job)
        seen.add(job.release)
        if ours.keys() != theirs.keys():
            wrong.append((job, size, ours.keys() ^ theirs.keys()))
            continue
        for key, values in theirs.items():
            got = table[key].latency * 1e6, table[key].bandwidth / 1e9, ours[key].time * 1e6
            if got != pytest.approx(values, rel=1e-5):
                wrong.append((job, size, key, got, values))
        fastest = min(theirs, key=lambda key: theirs[key][2])
        if ours[fastest].time > min(c.time for c in ours.values()) * (1 + 1e-5):
            wrong.append((job, size, "choice", fastest))
    assert seen == set(nccl_tuner.RELEASES)
    assert not wrong, f"{len(wrong)} differ, such as {wrong[0]}"


def test_the_errors_of_one_table_for_all_would_be_seen():
    """The comparison can fail: another release, CPU or no flush gives other numbers."""
    for change in ({"release": "2.21.5"}, {"cpu": "intel"}, {"net_latency": 0.0}):
        differs = 0
        for row, theirs in expected():
            if (
                row["release"] != nccl_tuner.NEWEST
                or row["collective"] != "all_reduce"
                or row["architecture"] == "blackwell"
            ):
                continue
            table = nccl_tuner.tuning_table(nccl_tuner.Job(**{**vars(job_of(row)), **change}))
            differs += any(
                k in table and table[k].latency * 1e6 != pytest.approx(v[0], rel=1e-4)
                for k, v in theirs.items()
            )
        assert differs > 3, change


def test_tables_name_their_commit():
    commits = {nccl_tuner.tables(release).commit for release in nccl_tuner.RELEASES}
    assert len(commits) == len(nccl_tuner.RELEASES)
    assert all(len(commit) == 40 for commit in commits)
    assert list(nccl_tuner.RELEASES) == sorted(
        nccl_tuner.RELEASES, key=lambda name: [int(part) for part in name.split(".")]
    )


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"n": 8, "release": "2.99"}, "release"),
        ({"n": 8, "architecture": "blackwell", "release": "2.21.5"}, "architecture"),
        ({"n": 8, "cpu": "AMD"}, "cpu"),
        ({"n": 2, "nodes": 4}, "n"),
        ({"n": 8, "collective": "all_gather", "release": "2.25.1"}, "collective"),
    ],
)
def test_a_job_refuses(given, name):
    with pytest.raises(BadArgument) as error:
        nccl_tuner.Job(**given)
    assert error.value.argument == name


def test_an_old_release_says_which_gpus_it_knows():
    with pytest.raises(BadArgument, match="a release that knows blackwell"):
        nccl_tuner.nccl_choices(1e6, 8, architecture="blackwell", release="2.21.5")


# ---------------------------------------------------------------- what a job printed


def test_a_printed_table_is_read_and_is_what_the_model_says():
    """NCCL 2.29.7, two hosts of one RTX 5090 over sockets: yunwei37's nccl-eBPF, public."""
    (table,) = read_tuning_tables(LOG)
    assert list(table) == ["broadcast", "reduce", "all_gather", "reduce_scatter", "all_reduce"]
    assert {key for costs in table.values() for key in costs} == {
        ("Ring", "LL"), ("Ring", "Simple"), ("Tree", "LL"), ("Tree", "Simple"), ("PAT", "Simple")
    }  # fmt: skip
    for collective in ("all_reduce", "all_gather", "reduce_scatter"):
        # The ring's 2.4 GB/s in both directions of one socket; trees and PAT find 4.8.
        job = nccl_tuner.Job(
            2, 2, collective, "blackwell", 2.4e9, 2.4e9, 4, link="PCI", release="2.29.7"
        )
        ours = nccl_tuner.tuning_table(job)
        assert ours.keys() == table[collective].keys()
        for (algorithm, protocol), cost in table[collective].items():
            twice = 1 if algorithm == "Ring" else 2
            mine = ours[algorithm, protocol]
            assert mine.latency * 1e6 == pytest.approx(cost.latency * 1e6, abs=0.051)
            assert mine.bandwidth * twice / 1e9 == pytest.approx(cost.bandwidth / 1e9, abs=0.051)


def test_a_printed_table_takes_the_place_of_the_model():
    (table,) = read_tuning_tables(LOG)
    job = nccl_tuner.Job(2, 2, architecture="blackwell", channels=4, link="PCI", release="2.29.7")
    small, large = (nccl_tuner.choices(job, size, table["all_reduce"])[0] for size in (1024, 2**27))
    assert (small.algorithm, small.protocol) == ("Ring", "LL")
    assert (large.algorithm, large.protocol) == ("Ring", "Simple")
    assert large.latency == pytest.approx(1.4 * 36.4e-6)


def test_other_processes_may_write_in_between():
    noise = "lab:9:9 [1] NCCL INFO Trees [0] -1/-1/-1->1->0\n"
    assert read_tuning_tables(
        "".join(line + "\n" + noise for line in LOG.splitlines())
    ) == read_tuning_tables(LOG)


def test_each_communicator_has_its_table():
    assert (
        len(read_tuning_tables(LOG + LOG.replace("AllReduce |    16.8", "AllReduce |    17.8")))
        == 2
    )
    first, second = read_tuning_tables(LOG + LOG.replace("16.8/", "17.8/"))
    assert second["all_reduce"]["Tree", "LL"].latency == pytest.approx(17.8e-6)
    assert first["all_reduce"]["Tree", "LL"].latency == pytest.approx(16.8e-6)


def test_the_wide_table_of_old_releases():
    """The header of NVIDIA/nccl issue 340 (NCCL 2.6.4); its rows were cut, so made up."""
    head = (
        "w:5637:5670 [0] NCCL INFO Latency/AlgBw |    Tree/    LL |    Tree/ LL128 |    Tree/Simple"
        " |    Ring/    LL |"
    )
    row = (
        "w:5637:5670 [0] NCCL INFO     AllReduce |     9.0/  11.0 |    14.0/   0.0 |    28.0/  20.0"
        " |     4.2/   5.3 |"
    )
    (table,) = read_tuning_tables(f"{head}\n{row}\n")
    assert list(table["all_reduce"]) == [("Tree", "LL"), ("Tree", "Simple"), ("Ring", "LL")]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("no table here", "NCCL_DEBUG_SUBSYS=INIT,TUNING"),
        (LOG.replace("36.4/   1.9 |", "36.4/   1."), "cut"),
        (LOG.replace("36.4/   1.9 |", "36.4/   fast |"), "latency/bandwidth"),
        ("h [0] NCCL INFO     AllReduce |    16.8/   0.5 |", "above it"),
        ("h [0] NCCL INFO Latency/AlgBw |    Tree/    LLL |", "one of LL, LL128, Simple"),
    ],
)
def test_a_log_that_cannot_be_read_says_why(text, said):
    with pytest.raises(BadArgument, match=said):
        read_tuning_tables(text)
