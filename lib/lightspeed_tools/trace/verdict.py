"""The first line of an answer: where the time went, what to fix first, and what is not known. What
no event of the file shows is not said; "healthy" takes evidence.
"""

from __future__ import annotations

import re

from lightspeed_show.format import si
from lightspeed_tools.trace.account import Account
from lightspeed_tools.trace.chips import chip_of
from lightspeed_tools.trace.diagnosis import WORTH, Diagnosis, Gain
from lightspeed_tools.trace.gaps import MOST, PAUSE, Stops
from lightspeed_tools.trace.reader import Trace
from lightspeed_tools.trace.steps import training_steps
from lightspeed_tools.trace.work import (
    NO_CHIP,
    NO_LAW,
    NOT_LINKED,
    NOT_RECORDED,
    Held,
    Row,
    held,
)  # fmt: skip

SLOW = 0.5  # of a roof: what reaches less is worth a look before all that is sound
POOR, LARGE = 0.3, 0.1  # share of its roof, and of the span, of an operator that stands out
LITTLE = 0.1  # of compute: too little to name its reason
FEW = 20  # kernels: fewer are no step
BRIEF = 10_000  # ns of a kernel: what a launch takes
PASSING = 2_000  # ns from kernel to kernel of a stream, whoever launches
SENDS_ALL = 0.9  # of the time: there is hardly any in which more could be hidden
REMEDIES = {
    NOT_RECORDED: "its shapes were not recorded (record_shapes=True keeps them)",
    NOT_LINKED: "no operator of the file launched its kernels, as in CUDA graphs (profile once"
                " without graphs, and with ProfilerActivity.CPU)",
    NO_LAW: "its operators have no law here{names} (hold their bytes and FLOPs to the chip by"
            " hand)",
    NO_CHIP: "the file names no chip of the catalog{chip} (state it: --hardware mi300x)",
}  # fmt: skip


def headline(found: Diagnosis) -> str:
    """Where the step went, what to fix first or what is not known, in a few sentences."""
    if found.host:
        return _of_the_host(found)
    trace, account = longest(found)
    sentences = [_where(found, account), _first(found, trace, account), _waits(found, account)]
    sentences.append(_aside(found))
    return " ".join(filter(None, sentences))


def longest(found: Diagnosis) -> tuple[Trace, Account]:
    """The device with the longest span, and its file."""
    pairs = [
        (trace, account)
        for trace, listed in zip(found.traces, found.accounts, strict=True)
        for account in listed
    ]
    return max(pairs, key=lambda pair: pair[1].span)


def rank_name(found: Diagnosis, at: int) -> str:
    """What a file's rank is called."""
    trace = found.traces[at]
    return f"rank {trace.rank}" if trace.rank is not None else trace.path


def _where(found: Diagnosis, account: Account) -> str:
    parts = {
        "compute": account.compute,
        "exposed communication": account.exposed_communication,
        "exposed copies": account.exposed_copy,
        "idle": account.idle,
    }
    if found.waits and account in found.all_accounts:
        at = found.all_accounts.index(account)
        late = found.waits.late
        whom = "a late rank" if late is None else rank_name(found, late)
        del parts["exposed communication"]
        parts[f"waiting for {whom if late != at else 'other ranks'}"] = found.waits.waiting[at]
        parts["transferring"] = found.waits.transferring[at]
    went = ", ".join(
        f"{percent(time, account.span)} {name}"
        for name, time in sorted(parts.items(), key=lambda part: -part[1])
        if time and 100 * time >= account.span
    )
    return f"{duration(account.span)}: {went or 'nothing ran'}."


def _first(found: Diagnosis, trace: Trace, account: Account) -> str:
    """What to fix first, or why that is not said."""
    if trace.captures and account.causes.get("compile", 0) > 0.5 * account.span:
        return (
            "This records how graphs are captured, not a run: kernels don't run in a capture."
            " Profile steps after the warm-up."
        )
    if found.closure is None or any(why.startswith("gains: ") for why in found.refused):
        reason = found.refused[0].partition(": ")[2]
        return f"What to fix first is not said: {reason}.{_puzzle(found)}"
    if found.worth:
        gain = found.worth[0]
        if gain.cause != "products" and _lost(held(trace, account), account) > gain.beyond:
            then = (
                gain.name if gain.premise else f"{gain.name}, at most {gain.gain:.2f} times faster"
            )
            return f"{_slow_compute(held(trace, account))}. Then: {then}."
        return _fix(found, gain)
    if found.unknown > WORTH - 1:
        return (
            f"What to fix first is not said: {100 * found.unknown:.0f} % of the time is"
            f" idle for no reason that the file tells.{_puzzle(found)}"
        )
    sent = account.communication / max(1, account.span)
    if sent > SENDS_ALL:
        return (
            f"Its links are busy {100 * sent:.0f} % of the time, so no better order helps: send"
            " less, or over faster links."
        )
    return _of_compute(found, trace, account)


def _fix(found: Diagnosis, gain: Gain) -> str:
    """The first cause, with its figure where the file shows what that takes for granted."""
    name = gain.name
    if gain.cause == "rank":
        name += f" ({found.slow_rank})"
    if gain.cause == "launches":
        gaps = [end - start for a in found.all_accounts for start, end, _ in a.gaps]
        short = sorted(gap for gap in gaps if PASSING < gap < PAUSE)
        if short:
            name += f" ({len(short):,} short gaps of {duration(short[len(short) // 2])} in the"
            name += " median: launch-bound)"
    if gain.cause == "pause":
        name += f" ({_stops(found)})"
    if gain.premise:
        return f"Fix first: {name}; by how much is not said: {gain.premise}."
    return f"Fix first: {name}, at most {gain.gain:.2f} times faster.{_once(found)}"


def _once(found: Diagnosis) -> str:
    """Whether most of a file without steps is one gap, which need not come again."""
    trace, account = longest(found)
    longest_gap = max((end - start for start, end, _ in account.gaps), default=0)
    if len(trace.steps()) > 1 or longest_gap < MOST * account.span:
        return ""
    return (
        f" One gap is {percent(longest_gap, account.span)} of the file, which has no steps: if that"
        " was warm-up, schedule(wait=1, warmup=1, active=3, repeat=1) and prof.step() leave it out."
    )


def _lost(compute: Held, account: Account) -> float:
    """How many times faster the span would be if the compute that is held to roofs reached half of
    them, 1 where it does: a yardstick of what to look at first, no promise.
    """
    if compute.covered <= SLOW or compute.reached >= SLOW or not account.span:
        return 1.0
    share = compute.covered * account.compute / account.span
    return 1 / (1 - share * (1 - compute.reached / SLOW))


def _slow_compute(compute: Held) -> str:
    """That compute is far below its roofs, and where most is lost."""
    listed = [row for row in compute.rows if row.share is not None]
    worst = max(listed, key=lambda row: row.time - min(row.roof or 0.0, row.time))
    return f"Fix first: compute itself: {_share(compute)}, most lost in {_named(worst)}"


def _share(compute: Held) -> str:
    covered, reached = 100 * compute.covered, 100 * compute.reached
    return f"{covered:.0f} % of it reach {reached:.0f} % of their roofs"


def _stops(found: Diagnosis) -> str:
    """Whose host stops, how often and for how long, and in what."""
    each: list[tuple[Stops, int]] = [(s, at) for at, s in enumerate(found.stops) if s is not None]
    worst, at = max(each, key=lambda pair: pair[0].total)
    others = [s.total for s, other in each if other != at]
    alone = len(found.traces) > 1 and worst.total > 2 * max(others, default=0)
    who = f"{rank_name(found, at)} alone, " if alone else ""
    times = f"{worst.count} times, for up to {duration(worst.longest)}"
    once = f"once, for {duration(worst.longest)}"
    what = (
        f", in {worst.what}"
        if worst.what
        else "; in what, the file does not tell: with_stack=True keeps Python's functions"
    )
    return f"{who}{times if worst.count > 1 else once}{what}"


def _of_compute(found: Diagnosis, trace: Trace, account: Account) -> str:
    """What is to be said of compute where nothing else is worth more."""
    compute = held(trace, account)
    worth = f"is worth more than {100 * (WORTH - 1):.0f} %"
    share = _share(compute)
    unknown = _not_known(found, trace, account, compute)
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
        said = f" Of compute, {share}." if compute.covered > SLOW else ""
        return f"Not known: {'; '.join(unknown)}.{said} Nothing that is known {worth}."
    return f"Healthy: {share}, steps are alike, and nothing {worth}."


def _poor(compute: Held, account: Account) -> Row | None:
    """The operator that loses most against its roof, if it stands out."""
    listed = [row for row in compute.rows if row.share is not None and row.share < POOR]
    worst = max(listed, key=lambda row: row.time - (row.roof or 0.0), default=None)
    return worst if worst and worst.time > LARGE * 1e-9 * account.span else None


def _named(row: Row) -> str:
    share, whole = 100 * (row.share or 0.0), si(row.time, "s")
    return f"{row.name} ({row.count:,} × in {whole}, {share:.0f} % of its roof)"


def _not_known(found: Diagnosis, trace: Trace, account: Account, compute: Held) -> list[str]:
    """What it would take to call the job healthy, and is not known; most telling first."""
    told = []
    if account.kernels < FEW:
        told.append(f"{account.kernels} kernel{'s' * (account.kernels > 1)} in"
                    f" {duration(account.span)} are no step: profile a few whole ones")  # fmt: skip
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
            (f"of {100 * share:.0f} % of it " if share < 1 else "") +
            REMEDIES[reason].format(names=f": {names}" * bool(names), chip=chip)
            for reason, share in reasons.items()
        ]  # fmt: skip
        told.append(f"whether compute is fast, since {', and '.join(words)}")
    steps = len(training_steps(trace)) or len(trace.steps())
    if steps < 2:
        told.append(
            "whether steps are alike, since " + ("one is" if steps else "none are")
            + " annotated (prof.step() does)"
        )  # fmt: skip
    return told


def _waits(found: Diagnosis, account: Account) -> str:
    """What some ranks of a job can't tell of exposed communication, if there is much of it; and
    that of all, whether one is late.
    """
    if found.waits and found.waits.late is not None:
        at = found.waits.late
        longest_wait = max(found.waits.waiting)
        if found.all_accounts[at] is account and longest_wait > (WORTH - 1) * account.span:
            share = percent(longest_wait, account.span)
            return f"The others wait for {rank_name(found, at)}, up to {share} of the time."
    much = account.exposed_communication >= (WORTH - 1) * account.span
    if found.waits or not much or found.world <= len(found.traces) == 1:
        return ""
    here = f"here {'is' if len(found.traces) == 1 else 'are'} {len(found.traces)}"
    if len(found.traces) >= found.world:
        return "How much of communication is waiting can't be told: its collectives don't match."
    return (
        "How much of communication is waiting for a late rank, and whether its links are slow,"
        f" can't be told from one rank: it takes all {found.world} ranks; {here}."
    )


def _aside(found: Diagnosis) -> str:
    """The steps that were set aside, and how not to record them."""
    aside = found.aside
    if aside is None:
        return ""
    which = ", ".join(map(str, aside.steps[:5])) + ", …" * (len(aside.steps) > 5)
    several = len(aside.steps) > 1
    return (
        f"Set aside: step{'s' * several} {which} of {aside.of}, which took up to"
        f" {aside.times:,.0f} times as long as the others{f' ({aside.what})' * bool(aside.what)};"
        f" {aside.schedule} leaves warm-up out."
    )


def _puzzle(found: Diagnosis) -> str:
    """The longest gap that nothing explains, where there is much of that."""
    if found.unknown <= WORTH - 1 or not any(a.puzzle[0] for a in found.all_accounts):
        return ""
    (time, start, row), trace, account = max(
        (
            (account.puzzle, trace, account)
            for trace, listed in zip(found.traces, found.accounts, strict=True)
            for account in listed
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


def _of_the_host(found: Diagnosis) -> str:
    """A profile without a device."""
    calls = sum(len(trace.calls) for trace in found.traces)
    total = sum(time for _, time in found.host.values())
    name, (count, time) = next(iter(found.host.items()))
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
    """The name of a kernel without its arguments and namespaces.

    >>> short_name("void (anonymous namespace)::resolve_ids_kernel<long>(long*, int)")
    'resolve_ids_kernel'
    """
    plain = re.sub(r"\(anonymous namespace\)::|^void ", "", name)
    return re.split(r"[<(]", plain)[0].split("::")[-1].strip()[:60] or name[:60]


def duration(nanoseconds: int) -> str:
    """Nanoseconds as one reads them."""
    return si(nanoseconds * 1e-9, "s")


def percent(time: int, span: int) -> str:
    """A part of a span."""
    return f"{100 * time / span:.1f} %" if span else "0 %"
