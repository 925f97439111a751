"""Chapter 11 in motion: a faulty job's profile, and its clock run again without a cause."""

import functools

from lightspeed_show import Axis, Bars, Chart, Choice, View, explorer, si
from lightspeed_tools.trace import made
from lightspeed_tools.trace.account import accounts
from lightspeed_tools.trace.cpu import recorded
from lightspeed_tools.trace.reader import COMMUNICATION, COMPUTE, of_events
from lightspeed_tools.trace.rebuild import rebuild
from lightspeed_tools.trace.replay import replay
from lightspeed_tools.trace.writer import about

FAULTS = {
    "a loader that is late": "loader", "one slow GPU": "slow_rank",
    "launches that are late": "launch_bound", "prints in the step": "synchronize",
    "gradients at the end": "no_overlap", "nothing": "",
}  # fmt: skip
SIZES = {"loader": 3, "slow_rank": 1.5, "launch_bound": 30, "synchronize": 0.3, "no_overlap": 1}
CAUSES = {
    "nothing": "", "the loader": "loader", "the slow GPU's delay": "rank",
    "the cost of launches": "launches", "the host's waits": "synchronize",
    "exposed communication": "overlap",
}  # fmt: skip
MENDS = dict(zip(SIZES, ("loader", "rank", "launches", "synchronize", "overlap"), strict=True))
LANES = ("GPU 0 computes", "GPU 0 sends", "GPU 1 computes", "GPU 1 sends")
FINEST = 400  # what is closer together than this part of the picture is drawn as one


def job(fault):
    """Return a step of two GPUs with this fault."""
    faults = {fault: SIZES[fault]} if fault else {}
    return made.Job(ranks=2, layers=4, hidden=2048, tokens=2048, steps=2, faults=faults)


@functools.cache
def read(fault):
    """Return the run recovered from a profile of this job, the accounts of its GPUs, and the true
    speedup without the fault.
    """
    ranks = made.run(job(fault))
    traces = [of_events(rank.events, about(rank.number, 2, fault)) for rank in ranks]
    by_rank = [accounts(trace)[0] for trace in traces]
    truth = made.span(ranks) / made.span(made.run(job("")))
    return rebuild(traces, by_rank), by_rank, truth


def by_share(account, cause):
    """The gain by the share of a GPU's time in which this cause is seen."""
    shares = {
        "loader": account.causes.get("loader", 0),
        "launches": account.causes.get("launches late", 0) + account.causes.get("launch to start",
                                                                                 0),
        "synchronize": account.causes.get("after a synchronize", 0),
        "rank": account.exposed_communication,
        "overlap": account.exposed_communication,
    }  # fmt: skip
    return account.span / (account.span - shares[cause])


def view(fault, gone):
    """The tracks of both GPUs as recorded, and with a cause taken away."""
    run, by_rank, truth = read(fault)
    before = replay(run)
    recorded = _rows(run)
    after = replay(run, [gone] if gone else [])
    replayed = _rows(run)
    facts = {
        "step": si(before * 1e-9, "s"),
        "without it": si(after * 1e-9, "s"),
        "gain by replay": f"{before / after:.2f}",
        "by GPU 0's share": f"{by_share(by_rank[0], gone) if gone else 1:.2f}",
        "by GPU 1's share": f"{by_share(by_rank[1], gone) if gone else 1:.2f}",
        "in truth": f"{truth:.2f}" if gone and MENDS.get(fault) == gone else "–",
    }  # fmt: skip
    charts = (
        _tracks(recorded, before, "as recorded"),
        _tracks(replayed, before, "replayed"),
    )
    return View(charts, _verdict(fault, gone, before / after), facts)


def _verdict(fault, gone, gain):
    if not gone:
        return "Where is the time? Say what you would take away, and what it gains; then choose it."
    if MENDS.get(fault) == gone:
        return f"That was it: the step is {gain:.2f} times as fast at most."
    if gain < 1.01:
        return "Nothing changes: this is not what the step waits for."
    return f"It helps: {gain:.2f} times at most. Is there more in another cause?"


def _rows(run):
    """(lane, kind, start, end) of what ran in the last replay, in s from its first start."""
    rows = [
        (2 * rank + (op.kind == COMMUNICATION), op.kind, *op.ran)
        for rank, operations in enumerate(run.operations)
        for op in operations
    ]
    first = min(start for _, _, start, _ in rows)
    return [(lane, kind, (a - first) * 1e-9, (b - first) * 1e-9) for lane, kind, a, b in rows]


def _tracks(rows, span, title):
    """Four tracks on an axis that is as long as the recorded step."""
    whole, bars = span * 1e-9, []
    for kind, label, color in ((COMPUTE, "computes", "blue"), (COMMUNICATION, "sends", "orange")):
        blocks: list[list[float]] = []
        kernels = sorted(row for row in rows if row[1] == kind and row[3] > row[2])
        for lane, _, start, end in kernels:
            if blocks and blocks[-1][0] == lane and start <= blocks[-1][2] + whole / FINEST:
                blocks[-1][2] = max(blocks[-1][2], end)
            else:
                blocks.append([lane, start, end])
        if blocks:
            lanes, starts, ends = zip(*blocks, strict=True)
            bars.append(Bars(lanes, [min(e, whole) for e in ends], starts, label, color=color))
    return Chart(
        Axis(f"{title}: time", "s", domain=(0, whole)),
        Axis("", "", "category", categories=LANES), bars, height=190,
    )  # fmt: skip


def explore_profile():
    """Two GPUs, four tracks: choose what to take away, and see the step run again."""
    return explorer(
        view,
        [
            Choice("fault", "what is wrong", FAULTS),
            Choice("gone", "take away", CAUSES),
        ],
        caption="The same step above and below, on one axis: as recorded, and without a cause.",
        alt="Two Gantt charts of two GPUs, each with a track for computing and one for sending.",
    )


def recorded_slices(share=1 / 5):
    """(start, end, name, depth) of the host's slices in the first `share` of the step that
    `benchmarks/cpu_profile.py` recorded, in seconds; a slice is one deeper than the one around it.
    """
    events = sorted(
        (e for e in recorded()["traceEvents"] if e.get("ph") == "X" and "dur" in e),
        key=lambda e: (e["ts"], -e["dur"]),
    )
    first = events[0]
    limit, around, slices = first["ts"] + share * first["dur"], [], []
    for e in (e for e in events if e["tid"] == first["tid"] and e["ts"] < limit):
        start, end = e["ts"], min(e["ts"] + e["dur"], limit)
        while around and around[-1] <= start:
            around.pop()
        seconds = (1e-6 * (start - first["ts"]), 1e-6 * (end - first["ts"]))
        slices.append((*seconds, e["name"].partition("#")[0], len(around)))
        around.append(end)
    return slices
