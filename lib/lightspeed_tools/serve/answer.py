"""What `lightspeed serve` says, in at most 25 lines of 100 columns and as data: the answer and its
range first, then the table, what would change it, and what it rests on.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import Any

from lightspeed.values import si
from lightspeed_models.llm.checkpoint import Checkpoint
from lightspeed_models.llm.step import engine
from lightspeed_models.served import ENGINES, SYSTEMS, Served
from lightspeed_models.served_law import BUSIEST
from lightspeed_models.served_ranges import MOST_INSIDE, Kind
from lightspeed_models.served_rows import Measured
from lightspeed_tools.serve import arrivals
from lightspeed_tools.serve.check import check, judge, nearest, read_rows
from lightspeed_tools.serve.files import LoadTest
from lightspeed_tools.serve.plan import (
    MEMORY,
    Job,
    Plan,
    changes,
    fewest,
    inside_at,
    layout_words,
    no_room,
    plans,
)

# Numbers of a card of one's own -> what is assumed where they are not said.
UNSAID = {
    "link": "no link, cards work alone: add link=32GB/s for PCIe 4, 64GB/s for PCIe 5",
    "fp8": "no fp8 units: add fp8=362TFLOPS, as the data sheet has it",
}
LESSON = "Why: lesson 9. `lightspeed evidence served-tokens` has the rows behind the ranges."
COLUMNS = 100


@dataclass(frozen=True)
class Answer:
    """Lines for a reader, the same content as data, and the command's exit status."""

    told: list[str]
    data: dict[str, Any]
    status: int = 0

    @property
    def lines(self) -> list[str]:
        """The lines, with long ones wrapped."""
        result: list[str] = []
        for line in self.told:
            long = len(line) > COLUMNS
            result += textwrap.wrap(line, COLUMNS, subsequent_indent="    ") if long else [line]
        return result


def subject(job: Job) -> str:
    """Describe the job in one line."""
    source = f" ({job.formats.source})" if job.formats.source else ""
    drafts = f"; {job.drafts} drafts a step, {job.kept:.2g} tokens" if job.drafts else ""
    return (
        f"{job.prompt:,} tokens in, {job.output:,} out; {job.engine};"
        f" {job.formats.words()}{source}{drafts}."
    )


def basis(job: Job) -> list[str]:
    """Describe the basis of the ranges, and what the answer omits."""
    lines = [f"Range of four in five: {job.kind.words}."]
    if job.lacks and not job.own_run:
        lines[0] += f" Extrapolated: no measured row has {', '.join(job.lacks)}."
    notes = [word for word in job.model.assumed if "tower" in word or "auto_map" in word]
    if job.model.tower:
        notes.append("images: the tower that sees is not in these times")
    lines += [f"Left out: {word}." for word in notes[:1]]
    unsaid = job.card.about.get("unsaid", ())
    return lines + [f"Assumed: {words}." for name, words in UNSAID.items() if name in unsaid]


def span(value: float, ends: tuple[float, float]) -> str:
    """Format a time with its range, in one unit."""
    words = si(value, "s", 3)
    number, _, unit = words.partition(" ")
    low, high = (f"{float(f'{float(number) * end:.2g}'):g}" for end in ends)
    return f"{number} {unit} ({low}–{high})"


def named(row: Measured, run: Served, kind: Kind) -> str:
    """Describe a measured row and its prediction; times outside their range are marked "out"."""
    chip = SYSTEMS.get(row.system, row.system).removesuffix("_sxm")
    times = row.told(engine(row.engine))
    off = [
        what for what, t, m, ends in (
            ("TPOT", times[0], row.per_token, kind.between),
            ("TTFT", times[1], row.first_token, kind.first),
        ) if not ends[0] <= m / t <= ends[1]
    ]  # fmt: skip
    words = (
        f"{row.model.rpartition('/')[2][:18]}, {row.run.decode.gpus} × {chip}, {row.engine}"
        f" {row.number_format}, {row.run.requests:g} in flight: {si(times[0], 's')} →"
        f" {si(row.per_token, 's')}, {si(times[1], 's')} → {si(row.first_token, 's')}"
    )
    return f"  {words}" + (f"; {', '.join(off)} out" if off else "")


def near_data(row: Measured) -> dict[str, Any]:
    """Return a measured row in plain numbers."""
    times = row.told(engine(row.engine))
    return {
        "model": row.model, "gpu": row.system, "gpus": row.run.decode.gpus, "engine": row.engine,
        "format": row.number_format, "prompt": row.run.prompt, "output": row.run.output,
        "in_flight": row.run.requests, "publisher": row.publisher, "tpot": row.per_token,
        "tpot_told": times[0], "ttft": row.first_token, "ttft_told": times[1],
    }  # fmt: skip


def per_million(job: Job, gpus: int, served: float) -> float | None:
    """Return dollars per million output tokens at `served` requests/s; None without a price."""
    return job.price and job.price * gpus / 3600 / (served * job.output) * 1e6


def plan_data(plan: Plan, job: Job) -> dict[str, Any]:
    """Return a plan in plain numbers, with prices and joules per output token."""
    tokens = plan.rate * job.output
    power = job.card.numbers.get("power")
    between, first = job.kind.between, job.kind.first
    return {
        "layout": plan.layout,
        "requests_per_second": plan.rate,
        "rate_interval": [plan.low, plan.high],
        "in_flight": plan.requests,
        "tokens_per_second_per_gpu": tokens / job.gpus,
        "tpot": plan.per_token,
        "tpot_interval": [plan.per_token * end for end in between],
        "ttft": plan.first_token,
        "ttft_interval": [plan.first_token * end for end in first],
        "ttft_promised": plan.run.requests <= MOST_INSIDE,
        "time_reading": plan.reading,
        "binds": plan.binds,
        "stop": plan.stop,
        "dollars_per_million_tokens": per_million(job, job.gpus, plan.rate),
        "joules_per_token": float(power) * job.gpus / tokens if power else None,
    }


def table(plans: Sequence[Plan], job: Job, rows: Sequence[dict[str, Any]]) -> list[str]:
    """Format plans as lines."""
    lines = [
        f"  {'layout':<26}{'req/s':>7}{'tok/s/GPU':>10}{'TPOT':>22}{'TTFT':>22}{'p99 TTFT':>10}"
    ]
    for plan, row in zip(plans, rows, strict=True):
        late = row.get("at_random", {}).get("ttft", {}).get("p99")
        first = span(plan.first_token, job.kind.first) if row["ttft_promised"] else "not promised"
        lines.append(
            f"  {plan.layout:<26}{plan.rate:>7.3g}{row['tokens_per_second_per_gpu']:>10.4g}"
            f"{span(plan.per_token, job.kind.between):>22}{first:>22}"
            f"{si(late, 's', 2) if late else '–':>10}"
        )
    return lines


def costs(row: dict[str, Any]) -> str:
    """Return dollars and joules of the first plan."""
    words = []
    if row.get("dollars_per_million_tokens"):
        words.append(f"${row['dollars_per_million_tokens']:.3g} a million tokens written")
    if row.get("joules_per_token"):
        words.append(f"at most {si(row['joules_per_token'], 'J', 2)} a token, by the board's power")
    return f"It costs {', '.join(words)}." if words else ""


def planned(job: Job, top: int) -> Answer:
    """Return the layouts at their highest load within the latency targets."""
    layouts, refused = plans(job)
    top_plans = layouts[:top]
    rows = [plan_data(plan, job) for plan in top_plans]
    for plan, row in zip(top_plans, rows, strict=True):
        if not job.drafts:
            waits, each = arrivals.at_random(plan, job)
            row["at_random"] = {
                "ttft": arrivals.shares(waits), "tpot": arrivals.shares(each),
            }  # fmt: skip
    better = changes(job, layouts[0] if layouts else None)
    near = nearest(layouts[0].run, job) if layouts else []
    data = {
        "plans": rows,
        "refused": [{"layout": a, "reason": b} for a, b in refused],
        "changes": [{"change": a, "requests_per_second": b} for a, b in better],
        "nearest": [near_data(row) for row in near],
        "extrapolated": job.lacks,
        "kind": job.kind.words,
        "formats": job.formats.words(),
    }
    place = f"{job.gpus} × {job.card.key}"
    if not layouts:
        lines = [f"No layout keeps the promise on {place}.", subject(job)]
        lines += [f"Nearest: {refused[0][0]}: {refused[0][1]}."] if refused else [
            f"No layout of this model divides {job.gpus} GPUs."
        ]  # fmt: skip
        return Answer([*lines, *basis(job), LESSON], data, 1)
    best = layouts[0]
    holds = best.run.places() * (best.workers if best.run.together else best.run.decoders)
    ends = f"; more would break: {best.stop}"
    if best.stop == MEMORY:
        ends = f" at random, with room for uneven lengths (memory holds {holds:.0f})"
    lines = [
        f"{best.rate:.3g} requests/s at random ({best.low:.2g} to {best.high:.2g}) on {place}:"
        f" {best.layout}.",
        subject(job),
        f"{best.requests} in flight{ends}. Longest: {best.binds}.",
        *basis(job),
        "",
        *table(top_plans, job, rows),
    ]
    if words := costs(rows[0]):
        lines.append(words)
    if better:
        lines += ["What would change it:"]
        lines += [f"  {words}: {rate:.3g} requests/s" for words, rate in better[:2]]
    lines += refusals(refused, 1)
    lines += ["Nearest measured rows, TPOT and TTFT, told → measured:"]
    lines += [named(row, best.run, job.kind) for row in near]
    lines += ["p99 is the simulator's, of lengths up to twice the mean; no measurement held tails."]
    return Answer([*lines, LESSON], data)


def refusals(refused: list[tuple[str, str]], most: int) -> list[str]:
    """List the first refused layouts."""
    lines = [f"Refused: {layout}: {reason}"[:COLUMNS] for layout, reason in refused[:most]]
    if len(refused) > most:
        lines.append(f"  and {len(refused) - most} more (--json has all)")
    return lines


def case(job: Job, concurrency: float = 0.0, rate: float = 0.0) -> Answer:
    """Describe one layout at one load: `concurrency` in flight, or `rate` requests a second;
    without a layout, the best one at that rate.
    """
    constants, tensor_data = job.constants, job.layout
    if tensor_data is None:
        layouts = [plan for plan in plans(job)[0] if plan.rate >= rate]
        return _at_rate(job, layouts, rate)
    run = job.served(*tensor_data, random=bool(rate))
    workers = job.gpus // run.decode.gpus
    words = layout_words(run, workers)
    if run.room() <= 0 or run.places() < 1:
        reason = no_room(run) if run.room() <= 0 else "memory holds not one request of this length"
        lines = [f"{words} of {job.card.key} does not start: {reason}.", subject(job), LESSON]
        return Answer(lines, {"layout": words, "refused": reason}, 1)
    if rate:
        inside = inside_at(run, workers, rate, job, constants)
        if inside is None:
            return _no_queue(job, words, rate)
        concurrency = inside * workers
    loaded = replace(run, requests=concurrency / workers)
    state = loaded.state(constants)
    between = job.levels[0] * float(state.between)
    first = job.levels[1] * loaded.first(constants)
    served = concurrency / (first + job.output * between)
    keeps = between <= job.per_token and first <= job.first_token
    data = {
        "layout": words, "in_flight": concurrency, "requests_per_second": served,
        "tpot": between, "tpot_interval": [between * end for end in job.kind.between],
        "ttft": first, "ttft_interval": [first * end for end in job.kind.first],
        "ttft_promised": loaded.inside <= MOST_INSIDE, "time_reading": float(state.reading),
        "places": run.places() * workers, "kind": job.kind.words, "extrapolated": job.lacks,
        "dollars_per_million_tokens": per_million(job, job.gpus, served),
        "keeps_promise": keeps, "nearest": [near_data(row) for row in nearest(loaded, job)],
    }  # fmt: skip
    wait = span(first, job.kind.first) if data["ttft_promised"] else (
        f"{si(first, 's')}, not promised above {MOST_INSIDE} in flight on a worker"
    )  # fmt: skip
    lines = [
        f"TPOT {span(between, job.kind.between)}, TTFT {wait}: {words} of {job.card.key}.",
        subject(job),
        f"{concurrency:.4g} in flight make {served:.3g} requests/s; memory holds"
        f" {run.places() * workers:.0f}; {float(state.reading):.0%} of the time reads prompts.",
        *basis(job),
    ]
    if loaded.waiting:
        waits = si(loaded.waiting * between, "s")
        lines.append(f"Of these only {loaded.inside:.0f} have a place: the others wait {waits}.")
    elif state.reading > BUSIEST:
        lines.append(f"Over {BUSIEST:.0%} of the time reads: at random, no queue stands this rate.")
    if min(job.per_token, job.first_token) < inf:
        lines.append("It keeps the promise." if keeps else "It breaks the promise.")
    lines += filter(None, [costs(data)])
    lines += ["Nearest measured rows, TPOT and TTFT, told → measured:"]
    lines += [named(row, loaded, job.kind) for row in nearest(loaded, job)]
    return Answer([*lines, LESSON], data, 0 if keeps else 1)


def _no_queue(job: Job, words: str, rate: float) -> Answer:
    line = f"No queue stands {rate:g} requests/s at random on {words} of {job.card.key}."
    return Answer([line, subject(job), LESSON], {"layout": words, "refused": line}, 1)


def _at_rate(job: Job, layouts: list[Plan], rate: float) -> Answer:
    """The best layout of the job's GPUs for requests that come at this rate."""
    if not layouts:
        return _no_queue(job, f"{job.gpus} GPUs", rate)
    constants = job.constants
    options = [
        case(replace(job, layout=(p.run.decode.tensor, p.run.decode.data)), rate=rate)
        for p in layouts if p.run.together and inside_at(p.run, p.workers, rate, job, constants)
    ]  # fmt: skip
    if not options:
        return _no_queue(job, f"{job.gpus} GPUs", rate)
    return min(options, key=lambda one: (one.status, one.data["ttft"]))


def sized(job: Job, rate: float, top: int) -> Answer:
    """Return how many GPUs serve `rate` requests a second within the latency targets."""
    sizes = fewest(job, rate)[:top]
    rows = [
        {
            "gpus": gpus, "replicas": gpus // plan.run.decode.gpus, "layout": plan.layout,
            "rate_of_one": plan.rate, "rate_interval": [plan.low, plan.high],
            "tpot": plan.per_token, "ttft": plan.first_token, "in_flight_of_one": plan.requests,
            "dollars_per_million_tokens": per_million(job, gpus, rate),
        }
        for gpus, plan in sizes
    ]  # fmt: skip
    data = {"rate": rate, "sizes": rows, "kind": job.kind.words, "extrapolated": job.lacks}
    if not sizes:
        line = f"No layout of {job.card.key} keeps the promise, however many there are."
        return Answer([line, subject(job), *basis(job), LESSON], data, 1)
    gpus, best = sizes[0]
    least, most = (-(-rate // end) * best.run.decode.gpus if end else inf
                   for end in (best.high, best.low))  # fmt: skip
    ends = f"{least:.0f} to {most:.0f}" if most < inf else f"{least:.0f} or more"
    lines = [
        f"{gpus} × {job.card.key} ({ends}) for {rate:g} requests/s at random:"
        f" {gpus // best.run.decode.gpus} × {best.layout.partition('× ')[2]}.",
        subject(job),
        *basis(job),
        "",
        f"  {'GPUs':>6}{'replicas':>10}  {'each':<16}{'req/s each':>11}{'TPOT':>22}{'TTFT':>22}",
    ]
    for (gpus, plan), row in zip(sizes, rows, strict=True):
        lines.append(
            f"  {gpus:>6}{row['replicas']:>10}  {plan.layout.partition('× ')[2]:<16}"
            f"{plan.rate:>11.3g}{span(plan.per_token, job.kind.between):>22}"
            f"{span(plan.first_token, job.kind.first):>22}"
        )
    lines += filter(None, [costs(rows[0])])
    unit = min(plan.run.decode.gpus for _, plan in sizes)
    if 2 * unit < sizes[0][0]:  # two pools need fewer at least
        lines.append(
            "Tried: cards that read and decode together. Of pools apart some may do: in place of"
            f" --rate say --gpus {sizes[0][0] - unit}."
        )
    return Answer([*lines, LESSON], data)


def tests(load_tests: list[LoadTest], job: Job, name: str) -> Answer:
    """Describe the user's load tests: input, prediction, measurement, and possible faults."""
    lines: list[str] = []
    rows: list[dict[str, Any]] = []
    for test in load_tests[:6]:
        one = judge(test, job)
        words = layout_words(one.run, max(1, job.gpus // one.run.decode.gpus))
        rows.append({
            "tool": test.tool, "prompt": test.prompt, "output": test.output,
            "in_flight": test.inside, "tpot": test.between, "tpot_told": one.between,
            "ttft": test.first, "ttft_told": one.first, "tpot_inside": one.inside(0),
            "ttft_inside": one.inside(1), "kind": one.kind.words, "doubts": one.doubts(job, name),
        })  # fmt: skip
        both = [one.inside(0), one.inside(1)]
        verdict = "normal" if all(both) else "out of the range" if not any(both) else (
            "TPOT normal, TTFT out of the range" if both[0] else "TTFT normal, TPOT out of it"
        )  # fmt: skip
        lines += [
            f"{verdict.capitalize()}: {test.tool}, {test.inside:.3g} in flight,"
            f" {test.prompt:.0f} in, {test.output:.0f} out, on {words} of {job.card.key}.",
            f"  TPOT {si(test.between, 's')} measured, told {span(one.between, one.kind.between)};"
            f" TTFT {si(test.first, 's')}, told {span(one.first, one.kind.first)}.",
            *(f"  May be off: {doubt}." for doubt in rows[-1]["doubts"]),
        ]
    lines += [f"Understood: {job.engine}; {job.formats.words()} ({job.formats.source})."]
    lines += basis(job)
    if len(load_tests) > 6:
        lines.append(f"and {len(load_tests) - 6} more load tests")
    lines.append("Plan by it: the same with --plan-by in place of --check narrows the ranges.")
    return Answer([*lines, LESSON], {"judged": len(rows), "tests": rows})


def rows(path: Path, other: Checkpoint | None) -> Answer:
    """Compare published rows with predictions, by engine."""
    verdict = check(read_rows(path), other.model if other else None)
    figures = verdict.as_data()
    lines = [f"{figures['judged']:,} of {figures['rows']:,} rows judged."]
    for key, words in (("tpot", "TPOT, between tokens"), ("ttft", "TTFT, to the first token")):
        if figures[key]:
            median, mean, worst = (figures[key][k] for k in ("median", "mean", "p90"))
            ratio = verdict.per_token if key == "tpot" else verdict.first_token
            lines.append(
                f"  {words:<26} off by {median:.3g} % in the median, {mean:.3g} in the mean,"
                f" {worst:.3g} at p90; predicted too long in {(ratio > 1).mean():.0%}"
            )
    for name in ENGINES:
        own = [i for i, one in enumerate(verdict.judged) if one.engine == name]
        if own and len(own) < len(verdict.judged):
            off = sorted(abs(verdict.per_token[own] - 1))[len(own) // 2]
            lines.append(f"  {name}: {len(own):,} rows, TPOT off by {off:.0%} in the median")
    if figures["refused"]:
        lines.append("Not judged:")
        lines += [f"  {many:,} × {reason}" for reason, many in figures["refused"].items()]
    lines.append("Rows of a publisher that set constants look better here than new ones.")
    return Answer([*lines, LESSON], figures)


def trace(job: Job, path: Path, top: int) -> Answer:
    """Simulate the layouts under the requests of a file."""
    load = arrivals.read_load(path)
    job = arrivals.mean_job(job, load)
    replays, refused = arrivals.replays(job, load)
    layouts: list[dict[str, Any]] = [
        {
            "layout": one.layout, "within_promise": one.kept,
            "ttft": arrivals.shares(one.first_token), "tpot": arrivals.shares(one.per_token),
            "put_off": one.put_off, "prefix_found": one.found,
        }
        for one in replays[:top]
    ]  # fmt: skip
    beside = arrivals.beside(replays[0], job) if replays else []
    data = {
        "simulated": True, "requests": len(load.arrivals), "seconds": load.arrivals[-1],
        "layouts": layouts, "refused": [{"layout": a, "reason": b} for a, b in refused],
        "nearest": [near_data(row) | {"simulated": times} for row, times in beside],
        "kind": job.kind.words,
    }  # fmt: skip
    lines = [
        f"{len(load.arrivals):,} requests over {si(load.arrivals[-1], 's')} on {job.gpus} ×"
        f" {job.card.key}, simulated step by step; workers take turns.",
        subject(job),
        *basis(job),
    ]
    if layouts:
        lines += [
            "",
            f"  {'layout':<22}{'TTFT median':>12}{'p99':>10}{'TPOT median':>13}{'p99':>10}"
            f"{'put off':>9}{'in promise':>12}",
        ]
    for one in layouts:
        times = [one[name].get(key) for name in ("ttft", "tpot") for key in ("median", "p99")]
        words = ["none" if time is None else si(time, "s", 3) for time in times]
        lines.append(
            "  {:<22}{:>12}{:>10}{:>13}{:>10}".format(one["layout"], *words)
            + f"{one['put_off']:>9.1%}{one['within_promise']:>12.1%}"
        )
    lines += refusals(refused, 2)
    for row, (token, wait) in beside:
        lines.append(
            f"  measured: {row.run.decode.gpus} × {row.system}, {row.run.requests:g} in flight:"
            f" TPOT {si(token, 's')} → {si(row.per_token, 's')}, TTFT {si(wait, 's')} →"
            f" {si(row.first_token, 's')}"
        )
    found_part = layouts[0]["prefix_found"] if layouts else None
    lines.append(
        f"Prefixes: {found_part:.0%} of prompts was found in the cache of the first."
        if found_part is not None
        else "No prefix is shared: the file has no hash_ids. No draft is taken."
    )
    return Answer([*lines, LESSON], data, 0 if layouts else 1)
