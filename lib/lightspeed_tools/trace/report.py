"""What a diagnosis says: lines for the terminal and data."""

from __future__ import annotations

import json
import re

from lightspeed_models.llm.decoder import Decoder
from lightspeed_show.format import si
from lightspeed_tools.measure.instruments.gpu import catalog_key
from lightspeed_tools.trace.account import Account
from lightspeed_tools.trace.diagnosis import WORTH, Diagnosis
from lightspeed_tools.trace.reader import COMPUTE
from lightspeed_tools.trace.served import served
from lightspeed_tools.trace.work import attentions, collectives, products

SLOW = 0.5  # of a roof: what reaches less is worth a look before all that is sound
LITTLE = 0.1  # of compute: too little to judge it by
SENDS_ALL = 0.9  # of the time: there is hardly any in which more could be hidden
SHOWN = 6  # rows of a table in the terminal; --json has all
CHAPTER = "Chapters 2 (roofs) and 7 (collectives) of the course teach what is behind this."


def headline(found: Diagnosis) -> str:
    """Where the step went and what to fix first, in a sentence or two."""
    trace, account = max(
        ((t, a) for t, listed in zip(found.traces, found.accounts, strict=True) for a in listed),
        key=lambda pair: pair[1].span,
    )
    parts = {
        "compute": account.compute,
        "exposed communication": account.exposed_communication,
        "exposed copies": account.exposed_copy,
        "idle": account.idle,
    }
    went = ", ".join(
        f"{_percent(time, account.span)} {name}"
        for name, time in sorted(parts.items(), key=lambda part: -part[1])
        if time and 100 * time >= account.span
    )
    where = f"{_time(account.span)}: {went or 'nothing ran'}"
    if found.closure is None or any(why.startswith("gains: ") for why in found.refused):
        reason = found.refused[0].partition(": ")[2]
        return f"{where}. What to fix first is not said: {reason}.{_puzzle(found)}"
    if not found.worth and found.unknown > WORTH - 1:
        return (
            f"{where}. What to fix first is not said: {100 * found.unknown:.0f} % of the time is"
            f" idle for no reason that the file tells.{_puzzle(found)}"
        )
    waiting = _waiting(found, account)
    if found.worth:
        first = found.worth[0]
        who = f" ({found.slow_rank})" if first.cause == "rank" else ""
        gain = f"at most {first.gain:.2f} times faster"
        return f"{where}. Fix first: {first.name}{who}, {gain}.{waiting}"
    sent = account.communication / max(1, account.span)
    if sent > SENDS_ALL:
        most = account.span / max(1, account.compute)
        return (
            f"{where}. Its links are busy {100 * sent:.0f} % of the time, so no better order helps:"
            f" send less, or over faster links; at most {most:.2f} times faster if"
            f" nothing were sent.{waiting}"
        )
    covered, reached = _of_compute(trace, account)
    worth = f"is worth more than {100 * (WORTH - 1):.0f} %"
    share = f"products with shapes, {100 * covered:.0f} % of it, reach {100 * reached:.0f} %"
    if covered > SLOW and reached < SLOW and account.compute > SLOW * account.span:
        return (
            f"{where}. Fix first: compute itself; {share} of their roofs, and nothing else"
            f" {worth}.{waiting}"
        )
    sound = "No fault that these ranks tell" if waiting else "Healthy: nothing here"
    if covered < LITTLE:
        known = account.name and catalog_key(account.name)
        why = "has hardly any shapes of its products" if known else "names no chip of the catalog"
        aside = f", beside compute itself, of which nothing can be said: the file {why}"
    else:
        aside = f", beside compute itself: {share} of their roofs" * (reached <= 1)
    return f"{where}. {sound} {worth}{aside}.{waiting}"


def _waiting(found: Diagnosis, account: Account) -> str:
    """What some ranks of a job can't tell of exposed communication, if there is much of it."""
    world = max((trace.world or 1 for trace in found.traces), default=1)
    if len(found.traces) >= world or account.exposed_communication < (WORTH - 1) * account.span:
        return ""
    return (
        f" Whether communication waits for a slow rank, or its links are slow, takes all {world}"
        f" ranks; here {'is' if len(found.traces) == 1 else 'are'} {len(found.traces)}."
    )


def _puzzle(found: Diagnosis) -> str:
    """The longest gap that nothing explains, where there is much of that."""
    if found.unknown <= WORTH - 1 or not any(a.puzzle[0] for a in found.all_accounts):
        return ""
    (time, start, row), trace, account = max(
        (account.puzzle, trace, account)
        for trace, listed in zip(found.traces, found.accounts, strict=True)
        for account in listed
    )
    since = start - account.start
    early = "; work from before the profile may have run then" * (50 * since < account.span)
    kernel = _short(trace.names[trace.device.name[row]])
    return (
        f" The longest such gap, {_time(time)} before {kernel},"
        f" begins {_time(since)} after the first event{early}."
    )


def _short(name: str) -> str:
    """The name of a kernel without its arguments and namespaces.

    >>> _short("void (anonymous namespace)::resolve_ids_kernel<long>(long*, int)")
    'resolve_ids_kernel'
    """
    plain = re.sub(r"\(anonymous namespace\)::|^void ", "", name)
    return re.split(r"[<(]", plain)[0].split("::")[-1].strip()[:60] or name[:60]


def _of_compute(trace, account) -> tuple[float, float]:
    """The share of compute whose roof is known, and what it reaches of that: busy is not fast."""
    judged = [(p.time, p.roof or 0.0) for p in products(trace, account)[0]]
    judged += [(a.time, a.roof or 0.0) for a in attentions(trace, account)]
    time, roof = (sum(part) for part in zip((0.0, 0.0), *(j for j in judged if j[1]), strict=True))
    device = trace.device
    whole = sum(device.duration[r] for r in account.rows if device.kind[r] == COMPUTE) * 1e-9
    return (time / whole if whole else 0.0, roof / time if time else 0.0)


def lines(found: Diagnosis, model: Decoder | None = None) -> list[str]:
    """The whole answer; with a model, a server's steps against what it takes."""
    told = [headline(found), ""]
    several = len(found.all_accounts) > 1
    for trace, listed in zip(found.traces, found.accounts, strict=True):
        for account in listed:
            name = account.name or "device"
            rank = "" if trace.rank is None else f"rank {trace.rank}, "
            told += [f"{rank}{name} {account.device}, {trace.path}"] if several else [
                f"{rank}{name} {account.device}"]  # fmt: skip
            told += [f"  {line}" for line in _account(account)]
    told += ["", *_gains(found)]
    trace, account = found.traces[0], found.accounts[0][0]
    told += [*_products(trace, account), *_attentions(trace, account)]
    told += [*_collectives(trace, account), *_served(trace, account, model)]
    told += ["", *(f"note: {note}" for note in found.notes), CHAPTER]
    return told


def _account(account: Account) -> list[str]:
    hidden = account.communication - account.exposed_communication
    copies = account.copy - account.exposed_copy
    rows = [
        ("span", account.span, f"first device event to last; {account.kernels:,} kernels"),
        ("compute", account.compute, ""),
        (
            "communication",
            account.exposed_communication,
            f"exposed; {_time(hidden)} more is hidden",
        ),
        ("copies", account.exposed_copy, f"exposed; {_time(copies)} more is hidden"),
        ("idle", account.idle, ""),
    ]
    told = [
        f"{name:<14}{_time(time):>10}{_percent(time, account.span):>8}  {words}".rstrip()
        for name, time, words in rows
        if time or name in ("span", "compute", "idle")
    ]
    causes = sorted(account.causes.items(), key=lambda item: -item[1])
    told += [
        f"{'':4}{_time(time):>20}{_percent(time, account.span):>8}  {name}"
        for name, time in causes
        if 1000 * time >= account.span
    ]
    return told


def _gains(found: Diagnosis) -> list[str]:
    if found.closure is None:
        return [f"refused: {reason}" for reason in found.refused]
    told = [f"replayed, the span is {100 * found.closure:+.2f} % of the measured one off"]
    told += [f"refused: {reason}" for reason in found.refused]
    for gain in found.worth:
        told.append(f"  at most {gain.gain:6.2f} ×  {gain.name}: {gain.advice}")
    if found.worth:
        told.append("  waits hidden in this run may show up once a cause is gone; one at a time")
    return told


def _products(trace, account) -> list[str]:
    listed, covered = products(trace, account)
    if not listed:
        return ["", "products: no shapes in the trace (record_shapes=True keeps them)"]
    told = ["", f"products with shapes are {100 * covered:.0f} % of compute"]
    for p in listed[:SHOWN]:
        batch, rows, depth, columns = p.shape
        size = f"{batch} × " * (batch > 1) + f"[{rows}, {depth}] [{depth}, {columns}]"
        share = f"{100 * p.share:.0f} % of the roof" if p.share else "no roof is known"
        if p.share and p.share > 1:
            share += ": a clock, a type or a shape is wrong"
        told.append(
            f"  {p.count:>5} × {size:<34} {p.number_format:<5}{si(p.time, 's'):>9}  {share}"
        )
    return told


def _attentions(trace, account) -> list[str]:
    listed = attentions(trace, account)
    told = ["", "attention, forward"] * bool(listed)
    for a in listed[:SHOWN]:
        batch, heads, queries, keys, width = a.shape
        size = f"{batch} × {heads} heads, {queries} on {keys}, width {width}{', causal' * a.causal}"
        share = f"{100 * a.share:.0f} % of the roof" if a.share else "no roof is known"
        told.append(f"  {a.count:>5} × {size}  {a.number_format}  {si(a.time, 's')}  {share}")
    return told


def _served(trace, account, model) -> list[str]:
    if model is None:
        return []
    name = model.name or "the model"
    told = ["", f"steps against {name}: weights read once, tokens computed, caches as far as told"]
    for s in served(trace, account, model)[:SHOWN]:
        told.append(
            f"  {s.count:>5} × {s.tokens} of prompts, {s.rows} decode"
            f"{f' with {s.cached:,.0f} cached each' * bool(s.cached)}  {si(s.time, 's')} each,"
            f" bound {si(s.bound, 's')}: {100 * s.share:.0f} %"
        )
    return told


def _collectives(trace, account) -> list[str]:
    listed = collectives(trace, account)
    if not listed:
        return []
    told = ["", "collectives (time includes waiting for other ranks)"]
    for c in listed[:SHOWN]:
        law = f"law of chapter 7: {si(c.expected, 's')}" if c.expected else "no law for this link"
        told.append(
            f"  {c.count:>5} × {c.name:<15}{si(c.size, 'byte'):>9} over {c.ranks:<4}"
            f" shortest {si(c.shortest, 's')}, {law}"
        )
    return told


def as_data(found: Diagnosis, model: Decoder | None = None) -> dict:
    """The same as plain data."""
    trace, account = found.traces[0], found.accounts[0][0]
    listed, covered = products(trace, account)
    return {
        "headline": headline(found),
        "devices": [
            _device(trace, account)
            for trace, accounts in zip(found.traces, found.accounts, strict=True)
            for account in accounts
        ],
        "closure": found.closure,
        "gains": [
            {"cause": g.cause, "name": g.name, "advice": g.advice, "gain_at_most": g.gain,
             "beyond_others": g.beyond}
            for g in found.gains
        ],
        "refused": found.refused,
        "notes": found.notes,
        "products": {
            "share_of_compute": covered,
            "rows": [
                {"name": p.name, "shape": list(p.shape), "format": p.number_format,
                 "count": p.count, "us": p.time * 1e6, "share_of_roof": p.share}
                for p in listed
            ],
        },
        "attention": [
            {"shape": list(a.shape), "causal": a.causal, "format": a.number_format,
             "count": a.count, "us": a.time * 1e6, "share_of_roof": a.share}
            for a in attentions(trace, account)
        ],
        "served": [
            {"prompt_tokens": s.tokens, "rows": s.rows, "cached_each": s.cached,
             "count": s.count, "us": s.time * 1e6,
             "bound_us": s.bound * 1e6}
            for s in (served(trace, account, model) if model else ())
        ],
        "collectives": [
            {"name": c.name, "bytes": c.size, "ranks": c.ranks, "count": c.count,
             "us": c.time * 1e6, "shortest_us": c.shortest * 1e6,
             "expected_us": c.expected * 1e6 if c.expected else None}
            for c in collectives(trace, account)
        ],
    }  # fmt: skip


def _device(trace, account: Account) -> dict:
    return {
        "file": trace.path,
        "rank": trace.rank,
        "device": account.device,
        "name": account.name,
        "span_us": account.span / 1000,
        "compute_us": account.compute / 1000,
        "communication_us": account.communication / 1000,
        "exposed_communication_us": account.exposed_communication / 1000,
        "copy_us": account.copy / 1000,
        "exposed_copy_us": account.exposed_copy / 1000,
        "idle_us": account.idle / 1000,
        "kernels": account.kernels,
        "idle_by_cause_us": {name: time / 1000 for name, time in account.causes.items()},
    }


def to_json(
    found: Diagnosis, against: Diagnosis | None = None, model: Decoder | None = None
) -> str:
    """One JSON document; with `against`, that of the other run beside it."""
    data = as_data(found, model) | ({"against": as_data(against)} if against else {})
    return json.dumps(data, indent=1, allow_nan=False)


def compared(found: Diagnosis, other: Diagnosis) -> list[str]:
    """What changed from the other run to this one: the parts of the longest span of each."""
    now, then = (max(d.all_accounts, key=lambda a: a.span) for d in (found, other))
    faster = then.span / now.span if now.span else 1.0
    rows = [
        (name, getattr(then, field), getattr(now, field))
        for name, field in (
            ("span", "span"), ("compute", "compute"), ("communication", "exposed_communication"),
            ("copies", "exposed_copy"), ("idle", "idle"),
        )
    ]  # fmt: skip
    most = max(rows[1:], key=lambda row: abs(row[2] - row[1]))
    changed = f"most of the change is in {most[0]}" if most[1] != most[2] else "nothing changed"
    told = [
        f"{faster:.2f} times as fast as {other.traces[0].path}; {changed}."
        " Spans compare only if both files have the same steps.",
        f"{'':<14}{'there':>10}{'here':>10}{'change':>11}",
    ]
    told += [
        f"{name:<14}{_time(before):>10}{_time(after):>10}{_signed(after - before):>11}"
        for name, before, after in rows
    ]
    return told


def _time(nanoseconds: int) -> str:
    return si(nanoseconds * 1e-9, "s")


def _signed(nanoseconds: int) -> str:
    return ("+" if nanoseconds > 0 else "-" if nanoseconds < 0 else "") + _time(abs(nanoseconds))


def _percent(time: int, span: int) -> str:
    return f"{100 * time / span:.1f} %" if span else "0 %"
