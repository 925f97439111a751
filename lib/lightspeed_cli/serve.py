"""`lightspeed serve`: layouts of a model within a promise, or its error on published rows."""

import json
import math
import re
from pathlib import Path
from typing import Any

from lightspeed.catalog import entries
from lightspeed.errors import BadArgument, meant
from lightspeed.values import si
from lightspeed_cli import argument_types
from lightspeed_cli.errors import UserError
from lightspeed_models.llm import ConfigRefused, load
from lightspeed_models.served import ENGINES, FORMATS

LESSON = "Why: chapter 9; `lightspeed evidence served_models` has every row behind the interval."


def add(parser):
    """Put the arguments of the verb on its parser."""
    parser.add_argument(
        "model", nargs="?", help="a model, such as Qwen3-32B, or a config.json or its folder"
    )
    parser.add_argument("--gpus", type=argument_types.count, default=8, help="GPUs in all (8)")
    parser.add_argument("--hardware", metavar="GPU", help="such as b200 or h100_sxm")
    parser.add_argument("--format", choices=FORMATS, help="of the weights; fp8 where a GPU has it")
    parser.add_argument("--engine", choices=ENGINES, default="vllm", help="vllm by default")
    tokens, time = argument_types.tokens, argument_types.duration
    parser.add_argument("--in", dest="prompt", type=tokens, help="tokens read: 8k")
    parser.add_argument("--out", dest="output", type=tokens, help="written: 1k")
    parser.add_argument(
        "--trace", metavar="FILE", help="requests as they came (CSV, JSONL), simulated, with tails"
    )
    parser.add_argument("--ttft", type=time, default=math.inf, help="promise: first token, 500ms")
    parser.add_argument("--tpot", type=time, default=math.inf, help="promise: each token, 20ms")
    parser.add_argument("--gpu-hour", type=argument_types.price, metavar="$", help="price of one")
    parser.add_argument("--top", type=argument_types.count, default=5, help="plans to show (5)")
    parser.add_argument(
        "--check",
        metavar="FILE",
        help="published rows, or JSON of a serving benchmark, to judge; the model is that of rows"
        " whose own name is not known",
    )
    parser.add_argument("--json", action="store_true", help="as JSON")


def run(options):
    """Print plans, or the verdict on a file; status 1 where nothing keeps the promise."""
    if options.check:
        return _check(options)
    if not options.model or not options.hardware:
        raise UserError("name a model and --hardware, or rows to judge with --check FILE")
    if options.trace:
        return _replay(options)
    from lightspeed_tools.serve.arrivals import at_random, shares
    from lightspeed_tools.serve.plan import changes, errors, plans

    job = _job(options)
    found, refused = plans(job)
    off = errors(job.engine)
    better = changes(job, found[0] if found else None)
    shown = [_as_data(plan, job, off, options.gpu_hour) for plan in found[: options.top]]
    for plan, one in zip(found, shown, strict=False):
        waits, each = at_random(plan, job)
        one["at_random"] = {"ttft": shares(waits), "tpot": shares(each)}
    near, unseen = _near(found[0].run if found else None, job)
    if options.json:
        answer = {
            "plans": shown,
            "refused": [{"layout": a, "reason": b} for a, b in refused],
            "changes": [{"change": a, "requests_per_second": b} for a, b in better],
            "nearest": near,
            "extrapolated": unseen,
            "error": {name: table["error"] for name, table in off.items()},
        }
        print(json.dumps(answer, indent=1))
    else:
        print("\n".join(_told(options, job, shown, refused, better, near, unseen, off)))
    return 0 if shown else 1


def _job(options):
    from lightspeed_tools.serve.plan import Job

    hardware, kind = _hardware(options.hardware)
    kind = options.format or kind
    # Rows that are judged name their own.
    model: Any = _model(options.model) if options.model else None
    prompt = 8192 if options.prompt is None else options.prompt
    output = 1024 if options.output is None else options.output
    for name, value in (("in", prompt), ("out", output)):
        if value < 1:
            raise UserError(f"--{name} 0: at least one token")
    try:
        from lightspeed_models.served import served_replica

        served_replica(hardware, 1, 1, kind)
    except BadArgument as error:
        raise UserError(str(error)) from error
    return Job(
        model, hardware, options.gpus, kind, options.engine, prompt, output,
        options.tpot, options.ttft,
    )  # fmt: skip


def _replay(options):
    """The layouts under the requests of a file, simulated."""
    from lightspeed_tools.serve.arrivals import beside, mean_job, read_load, replays, shares
    from lightspeed_tools.serve.plan import errors

    if options.prompt is not None or options.output is not None:
        raise UserError("--trace has the tokens of each request: leave out --in and --out")
    try:
        load = read_load(Path(options.trace))
    except (OSError, ValueError) as error:
        raise UserError(str(error)) from error
    job = mean_job(_job(options), load)
    found, refused = replays(job, load)
    shown: list[dict[str, Any]] = [
        {
            "layout": one.layout,
            "within_promise": one.kept,
            "ttft": shares(one.first_token),
            "tpot": shares(one.per_token),
            "put_off": one.put_off,
            "prefix_found": one.found,
        }
        for one in found[: options.top]
    ]
    span, off = load.arrivals[-1], errors(job.engine)["per_token"]["error"]
    near: list[dict[str, Any]] = [
        {
            "row": f"{row.model}, {row.run.decode.gpus} × {row.system}, {row.engine}"
            f" {row.number_format}, {row.run.prompt} in {row.run.output} out,"
            f" {row.run.requests:g} in flight",
            "tpot": row.per_token,
            "tpot_told": told[0],
            "ttft": row.first_token,
            "ttft_told": told[1],
        }
        for row, told in (beside(found[0], job) if found else ())
    ]
    if options.json:
        answer = {
            "simulated": True,
            "requests": len(load.arrivals),
            "seconds": span,
            "layouts": shown,
            "refused": [{"layout": a, "reason": b} for a, b in refused],
            "nearest": near,
            "error": {"per_token": off},
        }
        print(json.dumps(answer, indent=1))
        return 0 if shown else 1
    promise = min(options.ttft, options.tpot) < math.inf
    lines = [
        f"{len(load.arrivals):,} requests over {si(span, 's')}, {job.prompt:,} tokens in and"
        f" {job.output:,} out on average ({job.gpus} × {job.hardware}, {job.number_format},"
        f" {job.engine}): simulated.",
        "",
    ]
    if shown:
        lines.append(
            f"  {'layout':<28}{'TTFT median':>13}{'p99':>10}{'TPOT median':>13}{'p99':>10}"
            f"{'put off':>10}" + ("  within the promise" if promise else "")
        )
    for one in shown:
        times = [one[name].get(key) for name in ("ttft", "tpot") for key in ("median", "p99")]
        words = ["none" if time is None else si(time, "s") for time in times]
        lines.append(
            "  {:<28}{:>13}{:>10}{:>13}{:>10}".format(one["layout"], *words)
            + f"{one['put_off']:>10.1%}"
            + (f"{one['within_promise']:>20.1%}" if promise else "")
        )
    lines += [f"  {layout}: refused, {reason}" for layout, reason in refused]
    if near:
        lines += ["", "The nearest measured rows, medians of closed loops (simulated → measured):"]
    for one in near:
        lines.append(
            f"  {one['row']}: TPOT {si(one['tpot_told'], 's')} → {si(one['tpot'], 's')},"
            f" TTFT {si(one['ttft_told'], 's')} → {si(one['ttft'], 's')}"
        )
    lines += [
        "",
        f"Simulated step by step; workers take turns. {job.engine}'s TPOT was off by {off:.0%} in"
        " the median on",
        "models that its constants had not seen. A first token in a crowd is told too short, and",
        "tails were held against no measurement. No draft is taken, and no worker only reads.",
        f"Prefixes: {shown[0]['prefix_found']:.0%} of prompts was found in the cache of the first."
        if shown and shown[0]["prefix_found"] is not None
        else "No prefix is shared: the file has no hash_ids.",
        LESSON,
    ]
    print("\n".join(lines))
    return 0 if shown else 1


def _hardware(word):
    """(the catalog's key of a GPU, its number format): b200, h100 for h100_sxm."""
    word = re.sub(r"[\s-]+", "_", word.strip().lower()).removeprefix("nvidia_")
    known = {
        key: entry.numbers
        for kind in ("accelerators", "tested")
        for key, entry in entries(kind).items()
    }
    needed = ("bf16", "hbm_bandwidth", "hbm_capacity", "link_bandwidth")
    gpus = {key: numbers for key, numbers in known.items() if {*needed} <= numbers.keys()}
    for key in (word, f"{word}_sxm", word.removesuffix("_sxm")):
        if key in gpus:
            return key, "fp8" if "fp8" in gpus[key] else "bf16"
        if key in known:
            lacks = ", ".join(name for name in needed if name not in known[key])
            raise UserError(f"--hardware {word}: the catalog has no {lacks} of it")
    raise UserError(f"--hardware {word}: not a GPU of the catalog; {meant(word, list(gpus))}")


def _model(word):
    """The decoder of a config.json, its folder, or a known name."""
    try:
        return load(word)
    except ConfigRefused as error:
        raise UserError("not counted: " + "; ".join(error.refused)) from error
    except (OSError, ValueError) as error:
        raise UserError(str(error)) from error


def _as_data(plan, job, off, price):
    """A plan in plain numbers; prices a million tokens that are written."""
    token, wait = float(plan.per_token), float(plan.first_token)
    first, each = off["first_token"], off["per_token"]
    written = plan.rate * job.output
    return {
        "layout": plan.layout,
        "requests_per_second": float(plan.rate),
        "in_flight": plan.requests,
        "tokens_per_second_per_gpu": float(written / job.gpus),
        "tpot": token,
        "tpot_interval": [token * each["low"], token * each["high"]],
        "ttft": wait,
        "ttft_interval": [wait * first["low"], wait * first["high"]],
        "binds": plan.binds,
        "stop": plan.stop,
        "dollars_per_million_tokens": price * job.gpus / 3600 / written * 1e6 if price else None,
    }


def _near(run, job):
    """The nearest measured rows with what is expected of them, and what nobody measured."""
    if run is None:
        return [], []
    from lightspeed_tools.serve.check import expected, nearest

    rows, unseen = nearest(run, job)
    told = [
        {
            "model": row.model,
            "gpu": row.system,
            "gpus": row.run.decode.gpus,
            "engine": row.engine,
            "format": row.number_format,
            "prompt": row.run.prompt,
            "output": row.run.output,
            "in_flight": row.run.requests,
            "tpot": row.per_token,
            "tpot_told": expected(row)[0],
            "ttft": row.first_token,
            "ttft_told": expected(row)[1],
        }
        for row in rows
    ]
    return told, unseen


def _told(options, job, shown, refused, better, near, unseen, off):
    load = f"{job.gpus} × {job.hardware}, {job.number_format}, {job.engine}"
    sizes = f"{job.prompt:,} tokens in and {job.output:,} out"
    if shown:
        best = shown[0]
        lines = [
            f"{best['requests_per_second']:.3g} requests/s at most: {best['layout']} ({load}).",
            f"{sizes}; {best['in_flight']} in flight; more would break: {best['stop']}.",
            "",
            f"  {'layout':<36}{'req/s':>7}{'tok/s/GPU':>11}{'in flight':>11}"
            f"{'TPOT, 80 % of rows':>27}{'TTFT, 80 % of rows':>28}  longest part",
        ]
        for one in shown:
            cost = one["dollars_per_million_tokens"]
            lines.append(
                f"  {one['layout']:<36}{one['requests_per_second']:>7.3g}"
                f"{one['tokens_per_second_per_gpu']:>11.4g}{one['in_flight']:>11}"
                f"{_span(one['tpot'], one['tpot_interval']):>27}"
                f"{_span(one['ttft'], one['ttft_interval']):>28}  {one['binds']}"
                + (f", ${cost:.3g} a million tokens written" if cost else "")
            )
    else:
        lines = [f"No layout keeps the promise ({load}; {sizes})."]
        if refused:
            lines.append("Nearest: {}: {}.".format(*refused[0]))
    if shown:
        lines += ["", "If requests come at random at this rate (simulated, median and p99):"]
    for one in shown:
        first, each = one["at_random"]["ttft"], one["at_random"]["tpot"]
        lines.append(
            f"  {one['layout']:<36}TTFT {si(first['median'], 's')}, {si(first['p99'], 's')}; TPOT"
            f" {si(each['median'], 's')}, {si(each['p99'], 's')}"
        )
    if better:
        lines += ["", "What would change it:"]
        lines += [f"  {words}: {rate:.3g} requests/s" for words, rate in better]
    if refused:
        lines += ["", "Refused:"]
        lines += [f"  {layout}: {reason}" for layout, reason in refused[: options.top]]
        if len(refused) > options.top:
            lines.append(f"  and {len(refused) - options.top} more (--json has all)")
    if near:
        lines += ["", "The nearest measured rows (told → measured):"]
        for row in near:
            lines.append(
                f"  {row['model']}, {row['gpus']} × {row['gpu']}, {row['engine']} {row['format']},"
                f" {row['prompt']} in {row['output']} out, {row['in_flight']:g} in flight:"
                f" TPOT {si(row['tpot_told'], 's')} → {si(row['tpot'], 's')},"
                f" TTFT {si(row['ttft_told'], 's')} → {si(row['ttft'], 's')}"
            )
    if unseen:
        lines.append(f"Extrapolated: no measured row has {', '.join(unseen)}.")
    tpot, ttft = (off[name]["error"] for name in ("per_token", "first_token"))
    lines += [
        "",
        f"On models that its constants had not seen, {job.engine}'s TPOT is off by {tpot:.0%} and"
        f" TTFT by {ttft:.0%} in the median. Tails are the simulator's: no measurement held them.",
        LESSON,
    ]
    return lines


def _span(value, interval):
    low, high = (si(end, "s", 2) for end in interval)
    return f"{si(value, 's')} ({low} to {high})"


def _check(options):
    from lightspeed_tools.serve.check import check, read_rows

    job, name, word = None, "", options.model or ""
    other = _model(word) if word else None
    if options.hardware:
        job = _job(options)
        name = word
    try:
        verdict = check(read_rows(Path(options.check), job, name), other)
    except (OSError, ValueError) as error:
        raise UserError(str(error)) from error
    figures = verdict.as_data()
    if options.json:
        print(json.dumps(figures, indent=1))
        return 0
    lines = [f"{figures['judged']:,} of {figures['rows']:,} rows judged."]
    for key, words in (("tpot", "TPOT, between tokens"), ("ttft", "TTFT, to the first token")):
        if figures[key]:
            median, mean, worst = (figures[key][k] for k in ("median", "mean", "p90"))
            ratio = verdict.per_token if key == "tpot" else verdict.first_token
            above = (ratio > 1).mean()
            lines.append(
                f"  {words:<26} off by {median:.3g} % in the median, {mean:.3g} in the mean,"
                f" {worst:.3g} at p90; told too long in {above:.0%} of rows"
            )
    if figures["refused"]:
        lines.append("Not judged:")
        lines += [f"  {many:,} × {reason}" for reason, many in figures["refused"].items()]
    lines += [
        "Where it is off: drafts of tokens ahead, versions and settings of an engine and how",
        "requests came are not in the rows; models in the fit look better here than new ones.",
        LESSON,
    ]
    print("\n".join(lines))
    return 0
