"""What to fix first, and what it gains at most: the causes of a profile, each taken away in a
replay.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median_low

from lightspeed_tools.trace.account import Account, accounts
from lightspeed_tools.trace.cpu import host_events, own_times
from lightspeed_tools.trace.gaps import Stops, stops_of
from lightspeed_tools.trace.pieces import TraceError
from lightspeed_tools.trace.reader import COMMUNICATION, COMPUTE, Trace, read
from lightspeed_tools.trace.rebuild import of_a_pair, rebuild
from lightspeed_tools.trace.replay import replay
from lightspeed_tools.trace.steps import Aside, alike
from lightspeed_tools.trace.waits import Waits, waits_of
from lightspeed_tools.trace.work import expect

WORTH = 1.05  # a smaller gain is within what steps differ by
CLOSES = 0.03
MOSTLY = 0.5  # idle for no known reason: what is left says nothing of the whole
SLOWED = 1.05  # a profile this much slower than the run without it is about the profiler
# Cause -> what is gone before it is judged, its name, and what to do. Overlap can hide what a slow
# link and a slow rank leave over, and a graph takes the launches that are left.
FIRST = ("loader", "compile", "allocator", "pause", "synchronize", "products")
CAUSES = {
    "loader": ((), "the input pipeline", "load ahead: more workers, prefetching, pinned memory"),
    "compile": ((), "compiling, or capturing graphs, inside the step", "warm up before, and keep"
                " shapes fixed"),
    "allocator": ((), "the allocator asking the driver", "keep blocks: expandable segments, or a"
                  " smaller peak of memory"),
    "pause": ((), "the host stopping", "do what it does there less often, or in another thread"),
    "synchronize": ((), "the host waiting for the device", "remove .item(), .cpu() and prints from"
                    " the step"),
    "rank": ((), "a slow rank", "see why this rank computes longer: clock, input, other jobs"),
    "link": ((), "communication slower than its law", "see links, topology, NCCL's settings"),
    "products": ((), "products cut in small pieces", "do them at once: batch them, or fuse"),
    "copies": ((), "copies that nothing hides", "pin memory, copy asynchronously, or not at all"),
    "overlap": (("rank", "link"), "communication that nothing hides", "start it earlier, under"
                " compute"),
    "launches": (FIRST, "the host launching too late", "CUDA graphs, torch.compile, or larger"
                 " kernels"),
}  # fmt: skip
UNKNOWN = ("no launch in the trace", "inside a graph", "unexplained")
OF_THE_HOST = ("launches", "synchronize", "compile")
# What a replay without these takes for granted and no file shows: they have no figure.
PREMISES = {
    "overlap": "whether anything else could run meanwhile, the file does not show",
    "products": "whether one needs another's result, the file does not show",
}


@dataclass(frozen=True)
class Gain:
    """A cause, and how many times faster the profile's span would be without it, at most.

    `beyond` is what is left of that once the causes that would take it along are gone: a graph
    hides a synchronize's cost, and overlap a slow link's, but neither mends it.
    """

    cause: str
    name: str
    advice: str
    gain: float
    beyond: float

    @property
    def premise(self) -> str:
        """What the gain assumes and the file does not show, "" if nothing."""
        return PREMISES.get(self.cause, "")


@dataclass
class Diagnosis:
    """What was found in the files of one job: its accounts by file, the closure of the replay
    (replayed over measured span - 1; None without a replay), the gains, first what to fix first,
    what was refused and what else is to be said; the steps that were set aside, the waits of all
    ranks (None: can't tell), and the pauses of each rank's host.
    """

    traces: list[Trace]
    accounts: list[list[Account]]
    closure: float | None = None
    gains: list[Gain] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    slow_rank: str = ""
    aside: Aside | None = None
    waits: Waits | None = None
    stops: list[Stops | None] = field(default_factory=list)
    host: dict[str, tuple[int, float]] = field(default_factory=dict)  # without a device

    @property
    def world(self) -> int:
        """Ranks of the job, as far as the files show."""
        return max((trace.world or 1 for trace in self.traces), default=1)

    @property
    def whole(self) -> bool:
        """Whether all ranks of a multi-rank job are given."""
        return len(self.traces) >= max(2, self.world)

    @property
    def all_accounts(self) -> list[Account]:
        """The accounts of all devices of all files."""
        return [account for listing in self.accounts for account in listing]

    @property
    def unknown(self) -> float:
        """The largest share of a device's span that is idle for no reason in the file."""
        return max(
            sum(account.causes.get(cause, 0) for cause in UNKNOWN) / max(1, account.span)
            for account in self.all_accounts
        )

    @property
    def worth(self) -> list[Gain]:
        """The gains worth an hour's work."""
        return [gain for gain in self.gains if gain.beyond >= WORTH]


def diagnose(
    paths: Sequence[str], heard=lambda done: None, step: float | None = None, hardware: str = ""
) -> Diagnosis:
    """The `Diagnosis` of the profiles of one job's ranks. `step`: seconds of a step without the
    profiler; `hardware`: the chip, where the files name none.

    Raises TraceError for a file that can't be read, or for files of different jobs.
    """
    before = 0

    def of_this(done: int) -> None:
        heard(before + done)

    traces = []
    for path in paths:
        latest = 0

        def of_file(done: int) -> None:
            nonlocal latest
            latest = done
            of_this(done)

        traces.append(read(path, of_file))
        before += latest
    bare = [trace.path for trace in traces if not len(trace.device)]
    if bare and len(bare) < len(traces):
        raise TraceError(f"{bare[0]}: no device events, which other files here have")
    if bare:
        case = Diagnosis(traces, [[] for _ in traces])
        case.host = own_times(event for trace in traces for event in host_events(trace))
        return case
    _one_job(traces)
    order = sorted(range(len(traces)), key=lambda at: (traces[at].rank or 0, at))
    for trace in traces:
        trace.hardware = hardware
    traces, aside = alike([traces[at] for at in order])
    case = Diagnosis(traces, [accounts(trace) for trace in traces], aside=aside)
    case.stops = [
        stops_of(trace, [pause for account in devices for pause in account.pauses])
        for trace, devices in zip(case.traces, case.accounts, strict=True)
    ]
    _say(case)
    _judge(case, step)
    return case


def _one_job(traces: list[Trace]) -> None:
    """Raise TraceError if the files can't be ranks of one job."""
    if len(traces) < 2:
        return
    for path, times in Counter(trace.path for trace in traces).items():
        if times > 1:
            raise TraceError(f"{path} is given {times} times; expected one file a rank")
    for trace in traces:
        if (trace.rank or 0) >= (trace.world or 1 << 62):
            raise TraceError(
                f"{trace.path}: rank {trace.rank} of {trace.world} ranks; expected 0 to"
                f" {(trace.world or 1) - 1}"
            )
    worlds = {trace.world for trace in traces} - {None}
    if len(worlds) > 1:
        sizes = ", ".join(f"{trace.path} says {trace.world}" for trace in traces if trace.world)
        raise TraceError(f"ranks of different jobs: how many ranks there are differs: {sizes}")
    ranks = Counter(trace.rank for trace in traces if trace.rank is not None)
    for rank, times in ranks.items():
        if times > 1:
            same = " and ".join(trace.path for trace in traces if trace.rank == rank)
            raise TraceError(
                f"{same} are both of rank {rank}: files of one job have different ranks; to compare"
                " two runs give the other after --against"
            )
    spans = [(_began(trace), _ended(trace), trace.path) for trace in traces]
    if max(s for s, _, _ in spans) >= min(e for _, e, _ in spans):
        early, late = min(spans), max(spans)
        raise TraceError(
            f"ranks of different jobs: {early[2]} has ended before {late[2]} begins; expected"
            " profiles of the same steps"
        )


def _began(trace: Trace) -> int:
    return min(trace.device.start) + _base(trace)


def _ended(trace: Trace) -> int:
    device = trace.device
    return max(s + d for s, d in zip(device.start, device.duration, strict=True)) + _base(trace)


def _base(trace: Trace) -> int:
    base = trace.about.get("baseTimeNanoseconds")
    return base if isinstance(base, int) else 0


def _say(case: Diagnosis) -> None:
    """What the files leave open."""
    for trace in case.traces:
        if trace.left_out:
            case.notes.append(
                f"{trace.path}: {trace.left_out:,} device events without a start or a duration are"
                " left out"
            )
        if trace.graph_rows:
            case.notes.append(
                f"{trace.path}: {trace.graph_rows:,} kernels ran in graphs: gaps inside a graph may"
                " be the recording's, and their shapes are unknown"
            )
        during = _unknown_communication(trace)
        if during:
            case.notes.append(
                f"{trace.path}: counted as compute, though a collective launched it: {during}"
            )
    pairs = sum(
        trace.device.kind[row] == COMMUNICATION and of_a_pair(trace, row)
        for trace in case.traces
        for row in range(len(trace.device))
    )
    if pairs:
        case.notes.append(
            f"{pairs:,} kernels send and receive between ranks that the file does not name: their"
            " waits, such as a pipeline's bubble, stay as they are in each gain"
        )
    steps = sorted({len(trace.steps()) for trace in case.traces} - {0})
    if steps:
        count = f"{' and '.join(map(str, steps))} step{'s' * (steps != [1])}"
        case.notes.append(
            f"{count} annotated; the span is from the first device event to the last, not of whole"
            " steps"
        )
    if len(case.traces) < case.world:
        case.notes.append(
            f"{len(case.traces)} of {case.world} ranks: how much of communication is waiting for"
            " a slow rank, and whether a link is slow, takes all of them"
        )


def _unknown_communication(trace: Trace) -> str:
    """The kernels of a collective that no rule knows by name."""
    device = trace.device
    names = {
        trace.names[device.name[row]]
        for row in range(len(device) if trace.collective_operators else 0)
        if device.kind[row] == COMPUTE and device.outer[row] in trace.collective_operators
    }
    return ", ".join(sorted(names)[:3])


def _judge(case: Diagnosis, step: float | None) -> None:
    """Closure and gains, or why there are none."""
    several = [t.path for t, a in zip(case.traces, case.accounts, strict=True) if len(a) > 1]
    if several:
        case.refused.append(f"gains: {', '.join(several)} has several devices in one file; give"
                             " one file a rank")  # fmt: skip
        return
    devices = [account for found_here in case.accounts for account in found_here]
    run = rebuild(case.traces, devices)
    if case.whole:
        case.waits = waits_of(run)
    if len(case.traces) > 1 and not run.meetings:
        case.refused.append(
            "gains: the ranks' collectives can't be matched: there are none, or their numbers"
            " differ"
        )
        return
    expect(run, case.traces, devices)
    base = replay(run)
    if not run.measured or not base:
        case.refused.append("gains: nothing took any time")
        return
    case.closure = base / run.measured - 1
    if abs(case.closure) > CLOSES:
        case.refused.append(
            f"gains: the replay is {100 * case.closure:+.1f} % off the measured span, and speaks"
            f" only within {100 * CLOSES:.0f} %: the file does not tell what this run waited for"
        )
        return
    if case.unknown > MOSTLY:
        case.refused.append(
            f"gains: {100 * case.unknown:.0f} % of the time is idle for no reason that the file"
            " tells"
        )
        return
    slowed = _slowed(case, step)
    alone = sum(op.group is not None and op.meeting is None for ops in run.operations for op in ops)
    if alone and case.whole:
        case.notes.append(
            f"{alone:,} collectives at the edges of the recordings are not on all ranks: their"
            " waits stay as they are, so gains of ranks and links may be larger than said"
        )
    for cause, (gone, name, advice) in CAUSES.items():
        if cause in OF_THE_HOST and slowed:
            continue
        if cause in ("rank", "link") and not case.whole:
            continue
        gain = base / max(1, replay(run, [cause]))
        rest = replay(run, gone) / max(1, replay(run, (*gone, cause))) if gone else gain
        if min(gain, rest) > 1.001:
            case.gains.append(Gain(cause, name, advice, gain, min(gain, rest)))
    case.gains.sort(key=lambda gain: -gain.beyond)
    if step is None and any(gain.cause in OF_THE_HOST for gain in case.worth):
        case.notes.append(
            "a profiler makes the host slower: --step 17.8ms, the time of a step without it, says"
            " whether these gains are real"
        )
    case.slow_rank = _slow_rank(case)


def _slow_rank(case: Diagnosis) -> str:
    """Which ranks compute the longest: the slowest, and those that are nearly as slow."""
    times = [account.compute for account in case.all_accounts]
    usual, most = median_low(times), max(times)
    slow = [at for at, time in enumerate(times) if time > (usual + most) / 2 or time == most]
    ranks = [case.traces[at].rank for at in slow]
    if None in ranks:
        return ", ".join(case.traces[at].path for at in slow[:3])
    several = len(ranks) > 1
    return f"rank{'s' * several} {', '.join(map(str, ranks[:8]))}{', …' * (len(ranks) > 8)}"


def _slowed(case: Diagnosis, step: float | None) -> bool:
    """Whether the profiler itself slowed the run; says so."""
    if step is None:
        return False
    lengths = [
        (steps[-1][1] - steps[0][0]) / len(steps) * 1e-9
        for steps in (trace.steps() for trace in case.traces)
        if steps
    ]
    if not lengths:
        case.refused.append("--step: no steps are annotated, so there is none to compare with")
        return False
    ratio = max(lengths) / step
    if ratio > SLOWED:
        case.refused.append(
            f"gains of the host: a step takes {max(lengths) * 1e3:.3g} ms here and"
            f" {step * 1e3:.3g} ms without the profiler, which makes launches late itself"
        )
    return ratio > SLOWED
