"""Runs that others published, by their numbers (public.toml): what each is told without options."""

from nccl_samples import printed

from lightspeed_tools.nccl.cases import sold_nodes
from lightspeed_tools.nccl.judge import judge_report
from lightspeed_tools.nccl.log import parse
from lightspeed_tools.nccl.machine import described
from lightspeed_tools.nccl.published import public_near, public_runs

DEVICES = {
    "A100": "NVIDIA A100-SXM4-40GB", "H100": "NVIDIA H100 80GB HBM3", "MI300X":
    "AMD Instinct MI300X", "GH200": "NVIDIA GH200 120GB", "RTX 6000D": "NVIDIA RTX 6000D",
}  # fmt: skip


def judged(run, **options):
    n = run["nodes"] * run["gpus"]
    device = DEVICES.get(run["chip"], f"NVIDIA {run['chip']}")
    rows = [(run["size"], run["us"] / 1e6)]
    (report,) = parse(printed(rows, n, run["nodes"], run["collective"], device))
    return judge_report(report, described(**options) if options else None)


def test_each_is_what_its_page_says():
    for run in public_runs():
        found = judged(run)
        facts = (found.collective, found.n, found.nodes)
        assert facts == (run["collective"], run["gpus"] * run["nodes"], run["nodes"]), run


def test_none_is_told_that_its_own_network_could_not_have_carried_it():
    """The network that the page names is among the cases, and is not ruled out when stated."""
    wrong = []
    for run in public_runs():
        if "nic" not in run:
            continue
        network = described(nic=run["nic"]).network
        cases = [described(nic=case.where.replace(" ", "")).network for case in judged(run).cases]
        if network not in cases or judged(run, nic=run["nic"]).dropped:
            wrong.append((run, cases))
    assert len(public_runs()) >= 20 and not wrong


def test_eight_in_ten_get_a_level_or_a_few():
    levels = [judged(run).level for run in public_runs()]
    assert sum(level != "unknown" for level in levels) >= 0.8 * len(levels)
    assert sum(level not in ("unknown", "depends") for level in levels) >= len(levels) / 2


def test_a_run_is_no_peer_of_itself():
    runs = [run for run in public_runs() if (run["chip"], run["nodes"]) == ("H200", 8)]
    found = public_near(judged(min(runs, key=lambda run: run["us"])))
    assert (len(found.busbw), found.slower) == (len(runs) - 1, len(runs) - 1)
    slowest = public_near(judged(max(runs, key=lambda run: run["us"])))
    assert slowest.slower == 0


def test_a_stated_p4d_may_add_by_a_tree():
    """Two p4de reach 78 GB/s of busbw on 50 GB/s: no reason to doubt the number of ranks."""
    run = next(run for run in public_runs() if run["chip"] == "A100" and run["us"] == 51406)
    assert judged(run, hardware="p4d").level == "normal"
    faster = run | {"us": run["us"] / 1.3}
    assert judged(faster, hardware="p4d").dropped  # even a tree sends each buffer once


def test_nodes_as_sold_have_a_source():
    from lightspeed.catalog import sources

    for node in sold_nodes():
        assert node["source"] in sources() or node["source"].startswith("https://"), node
        assert described(nic=node["nic"]).network and node["gpus"] in (1, 4, 8), node
