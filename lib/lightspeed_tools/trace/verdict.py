"""The first line of an answer: where the time went, what to fix first, and what is not known. What
no event of the file shows is not said; "healthy" takes evidence.
"""

from __future__ import annotations

import re
from statistics import median_low

from lightspeed_models.cards import chip_of
from lightspeed_show.format import si
from lightspeed_tools.trace.account import Account
from lightspeed_tools.trace.diagnosis import WORTH, Diagnosis, Gain
from lightspeed_tools.trace.gaps import MOST, PAUSE, Stops
from lightspeed_tools.trace.reader import Trace
from lightspeed_tools.trace.steps import lengths, training_steps
from lightspeed_tools.trace.work import (
    NO_CHIP,
    NO_LAW,
    NOT_LINKED,
    NOT_RECORDED,
    Compute,
    Row,
    compute_of,
)  # fmt: skip

SLOW = 0.5  # of a roof: what reaches less is worth a look before all that is sound
POOR, LARGE = 0.3, 0.1  # share of its roof, and of the span, of an operator that stands out
LITTLE = 0.1  # of compute: too little to name its reason
FEW = 20  # kernels: fewer are no step
BRIEF = 10_000  # ns of a kernel: what a launch takes
PASSING = 2_000  # ns from kernel to kernel of a stream, whoever launches
SENDS_ALL = 0.9  # of the time: there is hardly any in which more could be hidden
REMEDIES = {
    NOT_RECORDED: "has no shapes, which were not recorded (record_shapes=True keeps them)",
    NOT_LINKED: "was launched by no operator of the file, as in CUDA graphs (profile once without"
                " graphs, and with ProfilerActivity.CPU)",
    NO_LAW: "is of operators without a law here{names} (hold their bytes and FLOPs to the chip by"
            " hand)",
    NO_CHIP: "the file names no chip of the catalog{chip} (state it: --hardware mi300x)",
}  # fmt: skip


def headline(diagnosis: Diagnosis) -> str:
    """Say where the step's time went, and what to fix first or what is unknown."""
    if diagnosis.host:
        return _of_the_host(diagnosis)
    trace, account = longest(diagnosis)
    sentences = [
        _where(diagnosis, trace, account),
        _first(diagnosis, trace, account),
        _waits(diagnosis, account),
    ]
    sentences.append(_aside(diagnosis))
    return " ".join(filter(None, sentences))


def longest(diagnosis: Diagnosis) -> tuple[Trace, Account]:
    """Return the device with the longest span, and its file."""
    pairs = [
        (trace, account)
        for trace, devices in zip(diagnosis.traces, diagnosis.accounts, strict=True)
        for account in devices
    ]
    return max(pairs, key=lambda pair: pair[1].span)


def rank_name(diagnosis: Diagnosis, at: int) -> str:
    """Return the name of a file's rank."""
    trace = diagnosis.traces[at]
    return f"rank {trace.rank}" if trace.rank is not None else trace.path


def _where(diagnosis: Diagnosis, trace: Trace, account: Account) -> str:
    """The span, the usual step where there are several, and the parts of the span."""
    parts = {
        "compute": account.compute,
        "exposed communication": account.exposed_communication,
        "exposed copies": account.exposed_copy,
        "idle": account.idle,
    }
    if diagnosis.waits and account in diagnosis.all_accounts:
        at = diagnosis.all_accounts.index(account)
        late = diagnosis.waits.late
        whom = "a late rank" if late is None else rank_name(diagnosis, late)
        del parts["exposed communication"]
        parts[f"waiting for {whom if late != at else 'other ranks'}"] = diagnosis.waits.waiting[at]
        parts["transferring"] = diagnosis.waits.transferring[at]
    went = ", ".join(
        f"{percent(time, account.span)} {name}"
        for name, time in sorted(parts.items(), key=lambda part: -part[1])
        if time and 100 * time >= account.span
    )
    marks = trace.step_marks()
    steps = ""
    if len(marks) > 1:
        each = median_low(lengths(trace, marks))
        steps = f" for {len(marks)} steps, {duration(each)} each in the median"
    return f"{duration(account.span)}{steps}: {went or 'nothing ran'}."


def _first(diagnosis: Diagnosis, trace: Trace, account: Account) -> str:
    """What to fix first, or why that is not said."""
    if trace.captures and account.causes.get("compile", 0) > 0.5 * account.span:
        return (
            "This records how graphs are captured, not a run: kernels don't run in a capture."
            " Profile steps after the warm-up."
        )
    if diagnosis.closure is None or any(why.startswith("gains: ") for why in diagnosis.refused):
        reason = diagnosis.refused[0].partition(": ")[2]
        return f"What to fix first is not said: {reason}.{_puzzle(diagnosis)}"
    if diagnosis.worth:
        gain = diagnosis.worth[0]
        if gain.cause != "products" and _lost(compute_of(trace, account), account) > gain.beyond:
            then = (
                gain.name if gain.premise else f"{gain.name}, at most {gain.gain:.2f} times faster"
            )
            return f"{_slow_compute(compute_of(trace, account))}. Then: {then}."
        return _fix(diagnosis, gain)
    if diagnosis.unknown > WORTH - 1:
        return (
            f"What to fix first is not said: {100 * diagnosis.unknown:.0f} % of the time is"
            f" idle for no reason that the file tells.{_puzzle(diagnosis)}"
        )
    sent = account.communication / max(1, account.span)
    if sent > SENDS_ALL:
        return (
            f"Its links are busy {100 * sent:.0f} % of the time, so no better order helps: send"
            " less, or over faster links."
        )
    return _of_compute(diagnosis, trace, account)


def _fix(diagnosis: Diagnosis, gain: Gain) -> str:
    """The first cause, with its figure where the file shows what that takes for granted."""
    name = gain.name
    if gain.cause == "rank":
        name += f" ({diagnosis.slow_rank})"
    if gain.cause == "launches":
        gaps = [end - start for a in diagnosis.all_accounts for start, end, _ in a.gaps]
        short = sorted(gap for gap in gaps if PASSING < gap < PAUSE)
        if short:
            name += f" ({len(short):,} short gaps of {duration(short[len(short) // 2])} in the"
            name += " median: launch-bound)"
    if gain.cause == "pause":
        name += f" ({_stops(diagnosis)})"
    if gain.premise:
        return f"Fix first: {name}; by how much is not said: {gain.premise}."
    return f"Fix first: {name}, at most {gain.gain:.2f} times faster.{_once(diagnosis)}"


def _once(diagnosis: Diagnosis) -> str:
    """Whether most of a file without steps is one gap, which need not come again."""
    trace, account = longest(diagnosis)
    longest_gap = max((end - start for start, end, _ in account.gaps), default=0)
    if len(trace.steps()) > 1 or longest_gap < MOST * account.span:
        return ""
    unmarked = "" if trace.steps() else ", which has no steps"
    return (
        f" One gap is {percent(longest_gap, account.span)} of the file{unmarked}: if that was"
        " warm-up, schedule(wait=1, warmup=1, active=3, repeat=1) and prof.step() leave it out."
    )


def _lost(compute: Compute, account: Account) -> float:
    """How many times faster the span would be if the compute that is held to roofs reached half of
    them, 1 where it does: a yardstick of what to look at first, no promise.
    """
    if compute.covered <= SLOW or compute.reached >= SLOW or not account.span:
        return 1.0
    share = compute.covered * account.compute / account.span
    return 1 / (1 - share * (1 - compute.reached / SLOW))


def _slow_compute(compute: Compute) -> str:
    """That compute is far below its roofs, and where most is lost."""
    rows = [row for row in compute.rows if row.share is not None]
    worst = max(rows, key=lambda row: row.time - min(row.roof or 0.0, row.time))
    return f"Fix first: compute itself, which {_share(compute)}, most lost in {_named(worst)}"


def _share(compute: Compute) -> str:
    covered, reached = 100 * compute.covered, 100 * compute.reached
    return f"reaches {reached:.0f} % of its roofs ({covered:.0f} % of it is held to one)"


def _stops(diagnosis: Diagnosis) -> str:
    """Whose host stops, how often and for how long, and in what."""
    each: list[tuple[Stops, int]] = [
        (s, at) for at, s in enumerate(diagnosis.stops) if s is not None
    ]
    worst, at = max(each, key=lambda pair: pair[0].total)
    others = [s.total for s, other in each if other != at]
    alone = len(diagnosis.traces) > 1 and worst.total > 2 * max(others, default=0)
    who = f"{rank_name(diagnosis, at)} alone, " if alone else ""
    times = f"{worst.count} times, for up to {duration(worst.longest)}"
    once = f"once, for {duration(worst.longest)}"
    what = (
        f", in {worst.what}"
        if worst.what
        else "; in what, the file does not tell: with_stack=True keeps Python's functions"
    )
    return f"{who}{times if worst.count > 1 else once}{what}"


def _of_compute(diagnosis: Diagnosis, trace: Trace, account: Account) -> str:
    """What is to be said of compute where nothing else is worth more."""
    compute = compute_of(trace, account)
    worth = f"is worth more than {100 * (WORTH - 1):.0f} %"
    share = _share(compute)
    unknown = _not_known(diagnosis, trace, account, compute)
    if account.kernels < FEW and account.compute < BRIEF * account.kernels:
        return f"Not judged: {'; '.join(unknown)}."
    poor = _poor(compute, account)
    if _lost(compute, account) > WORTH:
        return f"{_slow_compute(compute)}; nothing else {worth}."
    if poor:
        return f"Fix first: {_named(poor)}; nothing else {worth}."
    if account.kernels < FEW:
        return f"Not judged: {'; '.join(unknown)}."
    if unknown:
        note = f" Compute {share}." if compute.covered > SLOW else ""
        return f"Not known: {'; '.join(unknown)}.{note} Nothing that is known {worth}."
    return f"Healthy: compute {share}, steps are alike, and nothing {worth}."


def _poor(compute: Compute, account: Account) -> Row | None:
    """The operator that loses most against its roof, if it stands out."""
    rows = [row for row in compute.rows if row.share is not None and row.share < POOR]
    worst = max(rows, key=lambda row: row.time - (row.roof or 0.0), default=None)
    return worst if worst and worst.time > LARGE * 1e-9 * account.span else None


def _named(row: Row) -> str:
    share, whole = 100 * (row.share or 0.0), si(row.time, "s")
    return f"{row.name} ({row.count:,} × in {whole}, {share:.0f} % of its roof)"


def _not_known(diagnosis: Diagnosis, trace: Trace, account: Account, compute: Compute) -> list[str]:
    """What it would take to call the job healthy, and is not known; most telling first."""
    unknowns = []
    if account.kernels < FEW:
        one = account.kernels == 1
        unknowns.append(
            f"{account.kernels} kernel{'' if one else 's'} in {duration(account.span)}"
            f" make{'s' if one else ''} no step: profile a few whole ones"
        )
    if compute.covered <= SLOW:
        reasons = {
            reason: time / compute.whole for reason, time in compute.reasons.items()
            if time > LITTLE * compute.whole
        }  # fmt: skip
        if chip_of(account.name) is None:
            reasons.setdefault(NO_CHIP, 1.0)
        names = ", ".join(name for name in list(compute.lawless)[:3])
        chip = f": {account.name}" if account.name else ""
        words = [
            f"{100 * share:.0f} % of it " * (reason != NO_CHIP)
            + REMEDIES[reason].format(names=f": {names}" * bool(names), chip=chip)
            for reason, share in reasons.items()
        ]
        unknowns.append(f"whether compute is fast, since {', and '.join(words)}")
    steps = len(training_steps(trace)) or len(trace.steps())
    if steps < 2:
        unknowns.append(
            "whether steps are alike, since " + ("one is" if steps else "none are")
            + " annotated (prof.step() does)"
        )  # fmt: skip
    return unknowns


def _waits(diagnosis: Diagnosis, account: Account) -> str:
    """What some ranks of a job can't tell of exposed communication, if there is much of it; and
    that of all, whether one is late.
    """
    if diagnosis.waits and diagnosis.waits.late is not None:
        at = diagnosis.waits.late
        longest_wait = max(diagnosis.waits.waiting)
        if diagnosis.all_accounts[at] is account and longest_wait > (WORTH - 1) * account.span:
            share = percent(longest_wait, account.span)
            return f"The others wait for {rank_name(diagnosis, at)}, up to {share} of the time."
    much = account.exposed_communication >= (WORTH - 1) * account.span
    if diagnosis.waits or not much or diagnosis.world <= len(diagnosis.traces) == 1:
        return ""
    here = f"here {'is' if len(diagnosis.traces) == 1 else 'are'} {len(diagnosis.traces)}"
    if len(diagnosis.traces) >= diagnosis.world:
        return "How much of communication is waiting can't be told: its collectives don't match."
    return (
        "How much of communication is waiting for a late rank, and whether its links are slow,"
        f" can't be told from one rank: it takes all {diagnosis.world} ranks; {here}."
    )


def _aside(diagnosis: Diagnosis) -> str:
    """The steps that were set aside, and how not to record them."""
    aside = diagnosis.aside
    if aside is None:
        return ""
    which = ", ".join(map(str, aside.steps[:5])) + ", …" * (len(aside.steps) > 5)
    several = len(aside.steps) > 1
    return (
        f"Set aside: step{'s' * several} {which} of {aside.of}, which took up to"
        f" {aside.times:,.0f} times as long as the others{f' ({aside.what})' * bool(aside.what)};"
        f" {aside.schedule} leaves warm-up out."
    )


def _puzzle(diagnosis: Diagnosis) -> str:
    """The longest gap that nothing explains, where there is much of that."""
    if diagnosis.unknown <= WORTH - 1 or not any(a.puzzle[0] for a in diagnosis.all_accounts):
        return ""
    (time, start, row), trace, account = max(
        (
            (account.puzzle, trace, account)
            for trace, devices in zip(diagnosis.traces, diagnosis.accounts, strict=True)
            for account in devices
        ),
        key=lambda entry: entry[0],
    )
    since = start - account.start
    early = "; work from before the profile may have run then" * (50 * since < account.span)
    kernel = short_name(trace.names[trace.device.name[row]])
    return (
        f" The longest such gap, {duration(time)} before {kernel},"
        f" begins {duration(since)} after the first event{early}."
    )


def _of_the_host(diagnosis: Diagnosis) -> str:
    """A profile without a device."""
    calls = sum(len(trace.calls) for trace in diagnosis.traces)
    total = sum(time for _, time in diagnosis.host.values())
    name, (count, time) = next(iter(diagnosis.host.items()))
    gpu = (
        f" It launched work on a GPU ({calls:,} calls) that the file does not have: ask for"
        " ProfilerActivity.CUDA."
        if calls
        else " If a GPU was used, ProfilerActivity.CUDA records it."
    )
    return (
        f"CPU only: {si(total, 's')} in operators, most in {name} ({count:,} × in {si(time, 's')},"
        f" {100 * time / total if total else 0:.0f} %).{gpu}"
    )


def short_name(name: str) -> str:
    """Return a kernel's name without arguments and namespaces.

    >>> short_name("void (anonymous namespace)::resolve_ids_kernel<long>(long*, int)")
    'resolve_ids_kernel'
    """
    plain = re.sub(r"\(anonymous namespace\)::|^void ", "", name)
    return re.split(r"[<(]", plain)[0].split("::")[-1].strip()[:60] or name[:60]


def duration(nanoseconds: int) -> str:
    """Format nanoseconds for the reader."""
    return si(nanoseconds * 1e-9, "s")


def percent(time: int, span: int) -> str:
    """Format a part of a span as a percentage."""
    return f"{100 * time / span:.1f} %" if span else "0 %"
