"""What a diagnosis says: lines for the terminal and data."""

from __future__ import annotations

import json

from lightspeed_models.llm.decoder import Decoder
from lightspeed_show.format import si
from lightspeed_tools.trace.account import Account
from lightspeed_tools.trace.diagnosis import Diagnosis, Gain
from lightspeed_tools.trace.served import served
from lightspeed_tools.trace.verdict import duration, headline, percent, rank_name
from lightspeed_tools.trace.work import Row, collectives, compute_of

SHOWN = 6  # rows of a table in the terminal; --json has all
CHAPTER = "Why: lesson 11, with lesson 2 for roofs and lesson 7 for collectives."


def lines(diagnosis: Diagnosis, model: Decoder | None = None) -> list[str]:
    """Return the whole answer; with a model, compare a server's steps with their bound."""
    text = [headline(diagnosis), ""]
    if diagnosis.host:
        return [
            *text,
            *_operators(diagnosis),
            *(f"note: {note}" for note in diagnosis.notes),
            CHAPTER,
        ]
    text += _waits(diagnosis)
    several = len(diagnosis.all_accounts) > 1
    for trace, devices in zip(diagnosis.traces, diagnosis.accounts, strict=True):
        for account in devices:
            name = account.name or "device"
            rank = "" if trace.rank is None else f"rank {trace.rank}, "
            text += [f"{rank}{name} {account.device}, {trace.path}"] if several else [
                f"{rank}{name} {account.device}"]  # fmt: skip
            text += [f"  {line}" for line in _account(account)]
    text += ["", *_gains(diagnosis)]
    trace, account = diagnosis.traces[0], diagnosis.accounts[0][0]
    text += _compute(trace, account)
    text += [*_collectives(trace, account), *_served(trace, account, model)]
    text += ["", *(f"note: {note}" for note in diagnosis.notes), CHAPTER]
    return text


def _account(account: Account) -> list[str]:
    hidden = account.communication - account.exposed_communication
    copies = account.copy - account.exposed_copy
    rows = [
        ("span", account.span, f"first device event to last; {account.kernels:,} kernels"),
        ("compute", account.compute, ""),
        (
            "communication",
            account.exposed_communication,
            f"exposed; {duration(hidden)} more is hidden",
        ),
        ("copies", account.exposed_copy, f"exposed; {duration(copies)} more is hidden"),
        ("idle", account.idle, ""),
    ]
    text = [
        f"{name:<14}{duration(time):>10}{percent(time, account.span):>8}  {words}".rstrip()
        for name, time, words in rows
        if time or name in ("span", "compute", "idle")
    ]
    causes = sorted(account.causes.items(), key=lambda item: -item[1])
    text += [
        f"{'':4}{duration(time):>20}{percent(time, account.span):>8}  {name}"
        for name, time in causes
        if 1000 * time >= account.span
    ]
    return text


def _operators(diagnosis: Diagnosis) -> list[str]:
    """The host's operators of a profile without a device."""
    total = sum(time for _, time in diagnosis.host.values()) or 1.0
    return [
        f"  {count:>7,} × {name:<44}{si(time, 's'):>10}  {100 * time / total:.1f} %"
        for name, (count, time) in list(diagnosis.host.items())[: 2 * SHOWN]
    ]


def _waits(diagnosis: Diagnosis) -> list[str]:
    """Exposed communication of each rank, cut in two."""
    waits = diagnosis.waits
    if waits is None:
        return []
    text = [f"{'exposed':<14}{'waiting':>10}{'transfer':>10}{'others waited for it':>23}"]
    text += [
        f"{rank_name(diagnosis, at):<14}{duration(waiting):>10}{duration(transfer):>10}"
        f"{duration(caused):>23}"
        for at, (waiting, transfer, caused) in enumerate(
            zip(waits.waiting, waits.transferring, waits.caused, strict=True))
    ]  # fmt: skip
    return [*text, ""]


def _gains(diagnosis: Diagnosis) -> list[str]:
    if diagnosis.closure is None:
        return [f"refused: {reason}" for reason in diagnosis.refused]
    text = [f"replayed, the span is {100 * diagnosis.closure:+.2f} % of the measured one off"]
    text += [f"refused: {reason}" for reason in diagnosis.refused]
    for gain in diagnosis.worth:
        figure = f"at most {gain.gain:6.2f} ×"
        why = f" ({gain.premise})" if gain.premise else ""
        text.append(f"  {'no figure' if why else figure:<16}  {gain.name}: {gain.advice}{why}")
    if diagnosis.worth:
        text.append("  waits hidden in this run may show up once a cause is gone; one at a time")
    return text


def _compute(trace, account) -> list[str]:
    """Operators against their roofs, and why the rest is held to none."""
    compute = compute_of(trace, account)
    text = ["", f"operators with a law and shapes are {100 * compute.covered:.0f} % of compute"]
    if compute.reasons:
        text[-1] += "; the rest: " + ", ".join(
            f"{reason} {100 * time / compute.whole:.0f} %"
            for reason, time in compute.reasons.items()
        )
    if not compute.rows:
        return text if compute.reasons else []
    for row in compute.rows[:SHOWN]:
        share = f"{100 * row.share:.0f} % of the roof" if row.share else "no roof is known"
        if row.share and row.share > 1:
            over = "caches hold what it reads" if row.work.kind == "pass" else "a shape is wrong"
            share += f": a clock, a type or {over}"
        size, form = shape_of(row), row.work.number_format
        text.append(f"  {row.count:>5} × {size:<44} {form:<5}{si(row.time, 's'):>9}  {share}")
    if compute.lawless:
        whole = compute.whole
        names = (f"{n} {100 * t / whole:.0f} %" for n, t in list(compute.lawless.items())[:4])
        text.append(f"  without a law: {', '.join(names)}")
    return text


def shape_of(row: Row) -> str:
    """Format an operator and its shape for a table."""
    kind, shape = row.work.kind, row.work.shape
    if kind == "product":
        batch, rows, depth, columns = shape
        return f"{batch} × " * (batch > 1) + f"[{rows}, {depth}] [{depth}, {columns}]"
    if kind == "attention":
        batch, heads, queries, keys, width, causal, back = shape
        way = "backward" if back else "forward"
        mask = ", causal" * causal
        return f"attention {way}, {batch} × {heads} heads, {queries} on {keys}, {width}{mask}"
    if kind == "grouped":
        tokens, top, experts, hidden = shape
        return f"{tokens} tokens × {top} of {experts} experts, width {hidden}"
    if kind == "convolution":
        image, filters, _, back = shape
        way = " backward" * back
        return f"convolution{way} {'×'.join(map(str, image))} by {'×'.join(map(str, filters))}"
    return f"{row.name[:28]}, {si(float(shape[0]), 'byte')}"


def _served(trace, account, model) -> list[str]:
    if model is None:
        return []
    name = model.name or "the model"
    text = ["", f"steps against {name}: weights read once, tokens computed, caches as far as told"]
    for s in served(trace, account, model)[:SHOWN]:
        text.append(
            f"  {s.count:>5} × {s.tokens} of prompts, {s.rows} decode"
            f"{f' with {s.cached:,.0f} cached each' * bool(s.cached)}  {si(s.time, 's')} each,"
            f" bound {si(s.bound, 's')}: {100 * s.share:.0f} %"
        )
    return text


def _collectives(trace, account) -> list[str]:
    entries = collectives(trace, account)
    if not entries:
        return []
    text = ["", "collectives (time includes waiting for other ranks)"]
    for c in entries[:SHOWN]:
        law = f"law of chapter 7: {si(c.expected, 's')}" if c.expected else "no law for this link"
        text.append(
            f"  {c.count:>5} × {c.name:<15}{si(c.size, 'byte'):>9} over {c.ranks:<4}"
            f" shortest {si(c.shortest, 's')}, {law}"
        )
    return text


def as_data(diagnosis: Diagnosis, model: Decoder | None = None) -> dict:
    """Return the answer as plain data."""
    if diagnosis.host:
        return {
            "headline": headline(diagnosis), "devices": [], "notes": diagnosis.notes, "gains": [],
            "refused": diagnosis.refused, "closure": None,
            "operators": [{"name": name, "count": count, "us": time * 1e6}
                          for name, (count, time) in diagnosis.host.items()],
        }  # fmt: skip
    trace, account = diagnosis.traces[0], diagnosis.accounts[0][0]
    compute = compute_of(trace, account)
    return {
        "headline": headline(diagnosis),
        "devices": [
            _device(trace, account)
            for trace, accounts in zip(diagnosis.traces, diagnosis.accounts, strict=True)
            for account in accounts
        ],
        "closure": diagnosis.closure,
        **_of_ranks(diagnosis),
        "compute": {
            "held_to_a_roof": compute.covered, "reached": compute.reached,
            "not_held_us": {reason: 1e6 * time for reason, time in compute.reasons.items()},
        },
        "gains": [_gain(gain) for gain in diagnosis.gains],
        "refused": diagnosis.refused,
        "notes": diagnosis.notes,
        "products": {
            "share_of_compute": sum(r.time for r in compute.of("product")) / (compute.whole or 1.0),
            "rows": [_row(row) for row in compute.of("product")],
        },
        "attention": [
            _row(row) | {"shape": list(row.work.shape[:5]), "causal": row.work.shape[5]}
            for row in compute.of("attention")
        ],
        "operators": [_row(row) | {"kind": row.work.kind} for row in compute.rows],
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


def _of_ranks(diagnosis: Diagnosis) -> dict:
    """Waits and pauses by rank, and the steps that were set aside."""
    waits, aside = diagnosis.waits, diagnosis.aside
    return {
        "waits": waits and {
            "late_rank": None if waits.late is None else rank_name(diagnosis, waits.late),
            "waiting_us": [time / 1000 for time in waits.waiting],
            "transferring_us": [time / 1000 for time in waits.transferring],
        },
        "pauses": [
            {"rank": rank_name(diagnosis, at), "count": stops.count, "us": stops.total / 1000,
             "longest_us": stops.longest / 1000, "in": stops.what}
            for at, stops in enumerate(diagnosis.stops) if stops
        ],
        "set_aside": aside and {"steps": list(aside.steps), "of": aside.of,
                                "times_as_long": aside.times, "schedule": aside.schedule},
    }  # fmt: skip


def _row(row: Row) -> dict:
    return {
        "name": row.name, "shape": list(row.work.shape), "format": row.work.number_format,
        "count": row.count, "us": row.time * 1e6, "share_of_roof": row.share,
    }  # fmt: skip


def _gain(gain: Gain) -> dict:
    """A cause as data; without a figure where its premise can't be seen."""
    return {
        "cause": gain.cause, "name": gain.name, "advice": gain.advice,
        "gain_at_most": None if gain.premise else gain.gain,
        "beyond_others": None if gain.premise else gain.beyond, "premise": gain.premise,
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
    diagnosis: Diagnosis, against: Diagnosis | None = None, model: Decoder | None = None
) -> str:
    """Return one JSON document; `against` adds the other run's."""
    data = as_data(diagnosis, model) | ({"against": as_data(against)} if against else {})
    return json.dumps(data, indent=1, allow_nan=False)


def compared(diagnosis: Diagnosis, other: Diagnosis) -> list[str]:
    """Compare the longest span's parts of this run with the other's."""
    now, then = (max(d.all_accounts, key=lambda a: a.span) for d in (diagnosis, other))
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
    text = [
        f"{faster:.2f} times as fast as {other.traces[0].path}; {changed}."
        " Spans compare only if both files have the same steps.",
        f"{'':<14}{'there':>10}{'here':>10}{'change':>11}",
    ]
    text += [
        f"{name:<14}{duration(before):>10}{duration(after):>10}{_signed(after - before):>11}"
        for name, before, after in rows
    ]
    return text


def _signed(nanoseconds: int) -> str:
    return ("+" if nanoseconds > 0 else "-" if nanoseconds < 0 else "") + duration(abs(nanoseconds))
