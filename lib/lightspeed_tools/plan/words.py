"""The planner's answers in words."""

from __future__ import annotations

from statistics import median
from typing import Any

from lightspeed.values import si
from lightspeed_tools.plan.causes import SLOW
from lightspeed_tools.plan.search import ROOM

KWH = 3.6e6
APART = 0.05  # of a figure, from which on another count is worth a word


def line(one: dict[str, Any]) -> str:
    """Format a plan in one line."""
    low, high = (f"{end:.3g}" for end in one["range_seconds"])
    words = f"{one['plan']:<48} {one['step_seconds']:8.3g} s ({low} to {high}) "
    words += f"{one['memory_bytes'] / 1e9:6.1f} GB"
    return words + (
        f"  extrapolated: {'; '.join(one['extrapolated'])}" if one["extrapolated"] else ""
    )


def takes(one: dict[str, Any], data: dict[str, Any], rate: str = "") -> list[str]:
    """Describe a step's time, with its class's range, and the share of the peak."""
    if data["bound"]:
        return [
            f"  at least {one['step_seconds']:.3g} s a step: a bound, for {data['bound']}",
            f"  at most {utilization(one, data)}",
        ]
    low, high = one["range_seconds"]
    return [
        f"  {one['step_seconds']:.3g} s a step, {low:.3g} to {high:.3g} s in four runs of five "
        f"({one['runs']}; bound {one['bound_seconds']:.3g} s){', ' * bool(rate)}{rate}",
        f"  {utilization(one, data)}",
    ]


def utilization(one: dict[str, Any], data: dict[str, Any]) -> str:
    """Describe MFU by our count, its peak, and by other counts if they differ."""
    shares, peak = one["mfu_counts"], data["peak"] / 1e12
    mine = shares["causal"]
    others = [
        f"{shares[name]:.0%} as {who}"
        for name, who in (("whole", "torchtitan and PaLM count"), ("6PD", "6PD"))
        if abs(shares[name] / mine - 1) > APART
    ]
    words = f"; {', '.join(others)}" * bool(others)
    low, high = (mine * one["step_seconds"] / end for end in reversed(one["range_seconds"]))
    return (
        f"MFU {mine:.0%} ({low:.0%} to {high:.0%}) of {peak:,.0f} TFLOP/s {data['precision']} "
        f"(causal scores counted once{words})"
    )


def waterfall(one: dict[str, Any]) -> list[str]:
    """List the terms of a step, longest first."""
    terms = sorted(one["terms"].items(), key=lambda term: -term[1])
    least = one["step_seconds"] / 1000
    return [
        f"    {n:<10} {t:9.3g} s {t / one['step_seconds']:6.1%}" for n, t in terms if t >= least
    ]


def told(data: dict[str, Any]) -> str:
    """Format the whole answer."""
    best = data["best"]
    head = (
        f"{data['model']} ({si(data['parameters'], 'parameter')}) on {data['cluster']}, "
        f"{data['precision']}, steps of {data['batch_sequences']:,} x {data['sequence']:,} "
        "tokens"
    )
    lines = [head]
    if best is None:
        lines += ["No plan fits." if "nearest" in data else "No plan passes.", *nearest(data)]
    else:
        rate = si(data["tokens_per_second"], "token/s")
        lines += [
            f"Best by {data['stack']}: {best['plan']}",
            *takes(best, data, rate),
            f"  {best['memory_bytes'] / 1e9:.1f} of {data['capacity'] / 1e9:.1f} GB",
        ]
        if best["extrapolated"]:
            lines.append(f"  extrapolated: {'; '.join(best['extrapolated'])}")
        lines += waterfall(best)
        lines += [
            f"  {data['group']:,} plans are within the range of the best: a group from which to"
            " choose by what you know.",
            *measured(data),
            "",
            "Best inside what was measured:",
            "  " + (line(data["inside_measured"]) if data["inside_measured"] else "none"),
            "Three to measure, which differ:",
            *("  " + line(one) for one in data["to_measure"]),
            f"The first {len(data['top'])}:",
            *("  " + line(one) for one in data["top"]),
            "The front of time and memory:",
            *("  " + line(one) for one in data["front"]),
            "",
            *costs(data["cost"]),
            "What would change it:",
            *(changed(row, data["tokens_per_second"]) for row in data["changes"]),
        ]
    lines += ["", *refusals(data)]
    if best is not None:
        lines += nearest(data)
    lines += [f"Assumed: {words}." for words in data["assumed"]]
    return "\n".join(lines)


def changed(row: dict[str, Any], rate: float) -> str:
    return f"  {row['what']}: {row['tokens_per_second'] / rate - 1:+.1%} tokens/s, {row['plan']}"


def measured(data: dict[str, Any]) -> list[str]:
    """List the nearest measured runs."""
    rows = [
        f"    {row['name']}, {row['precision']}, {row['gpus']:,} GPUs: "
        f"{row['measured_seconds']:.3g} s measured, {row['predicted_seconds']:.3g} s by the law "
        f"({row['error']:+.0%})"
        for row in data["nearest_measured"]
    ]
    return ["  The nearest runs that were measured:", *rows] if rows else []


def costs(cost: dict[str, Any]) -> list[str]:
    words = (
        f"{si(cost['tokens'], 'token')}: {cost['days']:.3g} days "
        f"({' to '.join(f'{end:.3g}' for end in cost['days_range'])}), "
        f"{si(cost['gpu_hours'], 'GPU-hour')} "
        f"({' to '.join(si(end, 'GPU-hour') for end in cost['gpu_hours_range'])}), failures aside"
    )
    if "energy_joules" in cost:
        energy = si(cost["energy_joules"] / KWH * 1e3, "Wh")
        words += f"; {energy} at {cost['watts']:.0f} W a GPU and a PUE of {cost['pue']:.2f}"
    save, restart = si(cost["save_seconds"], "s"), si(cost["restart_seconds"] / 60, "min")
    failures = (
        f"  {cost['days_with_failures']:.3g} days with failures as in Llama 3's training, one "
        f"in {si(cost['mtbf_seconds'] / 3600, 'h')}, if a save takes {save}, a restart {restart} "
        f"and nobody waits for a repair: {cost['spare_nodes']} nodes to spare."
    )
    return [words + ".", failures]


def nearest(data: dict[str, Any]) -> list[str]:
    """Describe the leanest plan that memory refused, and its excess."""
    if "nearest" not in data:
        return []
    one = data["nearest"]
    part, size = max(one["memory"].items(), key=lambda item: item[1])
    room = data["capacity"] * ROOM
    return [
        f"The leanest that does not fit: {one['plan']}: {one['memory_bytes'] / 1e9:.1f} of "
        f"{data['capacity'] / 1e9:.1f} GB ({part} {size / 1e9:.1f}), "
        f"{(one['memory_bytes'] - room) / 1e9:.1f} GB above the {ROOM:.0%} that are planned with."
    ]


def refusals(data: dict[str, Any]) -> list[str]:
    """List the refused plans by rule, with counts that add up."""
    rows = [
        f"{n:>14,}  {rule}: {data['rules'][rule]}"
        for rule, n in sorted(data["refused"].items(), key=lambda row: -row[1])
    ]
    return [
        f"{data['plans']:,} plans, none left out; {data['passing']:,} pass. Refused, each by the "
        "first rule that it breaks:",
        *rows,
    ]


def told_explained(data: dict[str, Any]) -> str:
    """Describe one plan beside the best."""
    yours, best = data["yours"], data["best"]
    lines = [
        f"{data['model']} on {data['cluster']}, {data['stack']}: {yours['plan']}",
        *takes(yours, data),
    ]
    if yours["extrapolated"]:
        lines.append(f"  extrapolated: {'; '.join(yours['extrapolated'])}")
    lines += [f"  forbidden: {words}" for words in data["broken"]]
    parts = sorted(yours["memory"].items(), key=lambda item: -item[1])
    lines.append(
        f"  memory: {data['verdict']}, {yours['memory_bytes'] / 1e9:.1f} of "
        f"{data['capacity'] / 1e9:.1f} GB: "
        + ", ".join(f"{n} {size / 1e9:.1f}" for n, size in parts)
    )
    lines += waterfall(yours)
    lines += told_measured(data["measured"], yours) if "measured" in data else []
    assumed = [f"Assumed: {words}." for words in data["assumed"]]
    lines += ["One move away, all else as well as it can be:"]
    for row in data["one_away"]:
        change = f"{row['change']:+7.1%}  " if "change" in row else ""
        lines.append(f"    {row['axis']:<10} {row['value']:>5,}  {change}{row['why']}")
    if best is None:
        return "\n".join([*lines, "No plan fits.", *assumed])
    gain = yours["step_seconds"] / best["step_seconds"] - 1
    lines += [
        f"Rank {data['rank']:,} of the {data['of']:,} plans that pass. The best, {best['plan']}, "
        f"takes {best['step_seconds']:.3g} s: yours takes {gain:+.1%}.",
    ]
    names = yours["terms"].keys() | best["terms"].keys()
    more = {n: yours["terms"].get(n, 0) - best["terms"].get(n, 0) for n in names}
    lines += [
        f"    {n:<10} {by:+9.3g} s"
        for n, by in sorted(more.items(), key=lambda row: -abs(row[1]))
        if abs(by) >= best["step_seconds"] / 1000
    ]
    return "\n".join([*lines, *assumed])


def told_measured(data: dict[str, Any], yours: dict[str, Any]) -> list[str]:
    """Compare a measured step with the law, and explain it."""
    where = "within" if data["inside"] else "outside of"
    lines = [
        f"You measure {data['seconds']:.3g} s, "
        f"{si(data['tokens_per_second_per_gpu'], 'token/s')} a GPU: "
        f"{data['ratio']:.2f} times the law, {where} what such runs show.",
    ]
    if data["faster"]:
        return [
            *lines,
            "  Faster than such runs show: no cause is sought; check micro batch, compiled and"
            " recomputation in --explain.",
        ]
    if data["inside"] or data["ratio"] < SLOW:
        ends = " to ".join(f"{end:.2f}" for end in data["range"])
        lines.append(f"  Plans of its kind ({data['kind']}): times {data['factor']:.2f} ({ends}).")
    if not data["causes"]:
        return [
            *lines,
            "  No cause that the law knows comes near it. Is it this plan, in this unit?",
        ]
    if data["named"]:
        lines.append(f"  It is most likely that {data['named']}.")
    elif data["ratio"] < SLOW:
        lines.append("  That needs no cause.")
    else:
        tells = f" This would tell: {data['tells'][0]}." if data["tells"] else ""
        lines.append(f"  One step can't tell why.{tells}")
    rows = [c for c in data["causes"] if c["odds"] >= 0.05]
    return lines + [f"    {c['odds']:4.0%}  {c['name']} ({c['seconds']:.3g} s)" for c in rows]


def told_check(rows: list[dict[str, Any]]) -> str:
    """Compare published runs with the law."""
    lines = [f"{'':<34} {'predicted':>10} {'measured':>10} {'error':>7} {'rank':>9}  memory"]
    for row in rows:
        if row["refused"]:
            lines.append(f"{row['name']:<34} refused: {row['refused']}")
            continue
        error = f"{row['error']:+.1%}" if row["error"] is not None else "-"
        measured = f"{row['measured_seconds']:.4g}" if row["measured_seconds"] else "-"
        lines.append(
            f"{row['name']:<34} {row['predicted_seconds']:>8.4g} s {measured:>8} s {error:>7} "
            f"{row['runs']} {row['low_seconds']:.4g} to {row['high_seconds']:.4g} s{inside(row)} "
            f"{row['rank']:>5,} of {row['of']:,}, gain {row['claimed_gain']:.1%}  "
            f"{row['memory']['verdict']}"
        )
        lines += [f"    assumed: {words}" for words in row["assumed"]]
    return "\n".join([*lines, *by_class(rows)])


def inside(row: dict[str, Any]) -> str:
    return "" if row["inside"] is None else " (inside)" if row["inside"] else " (outside)"


def by_class(rows: list[dict[str, Any]]) -> list[str]:
    """Return a line per class of runs: size and sign of the error, and how many ranges hold."""
    lines = []
    scored = [row for row in rows if not row["refused"] and row["error"] is not None]
    for name in dict.fromkeys(row["runs"] for row in scored):
        own = [row for row in scored if row["runs"] == name]
        off = [row["error"] for row in own]
        ranks = sum(row["rank"] <= 10 for row in own)
        hits = sum(row["inside"] for row in own)
        lines.append(
            f"{name}: {len(own)} cases, error {median(map(abs, off)):.1%} in the median (bias "
            f"{median(off):+.1%}), {hits} inside their range, {ranks} of the published plans among "
            "the law's first ten."
        )
    return lines
