"""`lightspeed serve`: layouts of a model within a promise, one case, or a verdict on a file."""

import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from lightspeed.catalog import measured
from lightspeed.errors import BadArgument
from lightspeed.inference import drafted_tokens
from lightspeed_cli import argument_types
from lightspeed_cli.errors import UserError
from lightspeed_models.llm import ConfigRefused
from lightspeed_models.served import ENGINES


def add(parser):
    """Put the arguments of the verb on its parser."""
    count, tokens, time = argument_types.count, argument_types.tokens, argument_types.duration
    text, number = parser.add_argument, argument_types.positive
    text("model", nargs="?", help="a model, such as Qwen3-32B, or a config.json or its folder")
    text("--hardware", "--gpu", dest="hardware", metavar="GPU",
         help="such as h100, 8xH100, or six numbers: memory=48GB,bandwidth=864GB/s,bf16=181TFLOPS,"
         "fp8=362TFLOPS,fp4=0,link=32GB/s")  # fmt: skip
    text("--gpus", type=count, help="GPUs in all (8)")
    text("--weights", "--format", dest="weights", metavar="FORMAT",
         help="if not the checkpoint's own: bf16, fp8, int4, nvfp4, mxfp4")  # fmt: skip
    text("--cache", choices=("bf16", "fp8"), help="of the caches; bf16 unless the checkpoint says")
    text("--engine", choices=ENGINES, default="vllm", help="vllm by default")
    text(
        "--memory-share", type=number, metavar="X", help="of memory the engine takes (its default)"
    )
    text("--in", dest="prompt", type=tokens, help="tokens read: 8k")
    text("--out", dest="output", type=tokens, help="written: 1k")
    text("--ttft", type=time, default=math.inf, help="promise: first token, 500ms")
    text("--tpot", type=time, default=math.inf, help="promise: each token, 20ms")
    text("--layout", metavar="WORDS", help="one layout: tp4, or tp2dp4 with replicas of attention")
    text("--tp", type=count, metavar="N", help="the same as --layout tpN")
    text("--concurrency", type=number, metavar="C", help="requests in flight on the layout")
    text("--rate", type=number, metavar="R", help="requests a second: how many GPUs for them?")
    text("--drafts", type=count, metavar="K", help="tokens drafted a step (speculation)")
    text("--kept", type=number, metavar="A", help="how often the first draft is kept (0.84)")
    text(
        "--trace", metavar="FILE", help="requests as they came (CSV, JSONL), simulated, with tails"
    )
    text("--check", metavar="FILE", help="a load test as its tool wrote it, or published rows")
    text("--plan-by", metavar="FILE", help="plan by a load test of your own: it sets the level")
    text("--gpu-hour", type=argument_types.positive, metavar="$", help="price of one GPU")
    text("--top", type=count, default=4, help="plans to show (4)")
    text("--json", action="store_true", help="as JSON")


def run(options):
    """Print plans, a case or a verdict; return 1 if nothing meets the latency targets."""
    from lightspeed_tools.serve import answer, files

    if options.gpu_hour and (options.check or options.trace):
        verb = "--check" if options.check else "--trace"
        raise UserError(f"{verb} has no price: leave out --gpu-hour, or plan the load without it")
    try:
        if options.check:
            tests = files.load_tests(Path(options.check), options.prompt or 0, options.output or 0)
            if tests is None:
                report = answer.rows(
                    Path(options.check), _model(options) if options.model else None
                )
            else:
                report = answer.tests(tests, _job(options), _name(options))
        elif options.trace:
            if options.prompt is not None or options.output is not None:
                raise UserError("--trace has the tokens of each request: leave out --in and --out")
            report = answer.trace(_job(options), Path(options.trace), options.top)
        else:
            job = _job(options)
            if options.plan_by:
                job = _by_run(job, options)
            report = _planned(answer, job, options)
    except (OSError, ValueError) as error:
        raise UserError(str(error)) from error
    if options.json:
        print(json.dumps(report.data, indent=1))
    else:
        print("\n".join(report.lines))
    return report.status


def _planned(answer, job, options):
    """A case where one is put, GPUs for a rate, or plans."""
    if options.concurrency:
        if not job.layout:
            raise UserError("--concurrency needs a layout to be on: add --layout tp4")
        return answer.case(job, options.concurrency)
    if options.rate and options.gpus is None and not job.layout:
        return answer.sized(job, options.rate, options.top)
    if options.rate:
        return answer.case(job, rate=options.rate)
    return answer.planned(job, options.top)


def _by_run(job, options):
    """The job at the level of the first load test of a file."""
    from lightspeed_tools.serve import check, files

    tests = files.load_tests(Path(options.plan_by), options.prompt or 0, options.output or 0)
    if not tests:
        raise UserError(f"--plan-by {options.plan_by}: a load test, not a table of rows")
    verdict = check.judge(tests[0], job)
    return replace(job, levels=verdict.levels, own_run=True)


def _job(options):
    from lightspeed_models.cards import card
    from lightspeed_tools.serve.plan import Job, layout_of

    if not options.model or not options.hardware:
        raise UserError("give a model and --hardware, or rows to check with --check FILE")
    entry, many = card(options.hardware)
    checkpoint = _model(options)
    formats = checkpoint.formats.quantized(options.weights or "", options.cache or "")
    prompt = 8192 if options.prompt is None else options.prompt
    output = 1024 if options.output is None else options.output
    for name, value in (("in", prompt), ("out", output)):
        if value < 1:
            raise UserError(f"--{name} 0: at least one token")
    limit = checkpoint.context
    if limit and prompt + output > limit and not (options.check or options.trace):
        raise UserError(
            f"--in {prompt} and --out {output} are {prompt + output:,} tokens: the model's own"
            f" context ends at {limit:,}"
        )
    words = options.layout or (f"tp{options.tp}" if options.tp else "")
    layout = layout_of(words) if words else None
    ways = layout[0] * layout[1] if layout else 1
    alone = "link_bandwidth" not in entry
    gpus = options.gpus or many or (ways if layout else 1 if alone else 8)
    if gpus % ways:
        raise UserError(f"--layout {words} takes {ways} GPUs, which don't divide {gpus}")
    drafts = options.drafts or 0
    first = 0.84 if options.kept is None else options.kept
    accepted_tokens = float(
        drafted_tokens(first, drafts, measured("serving")["acceptance"]["fading"])
    )
    return Job(
        checkpoint.model, entry, gpus, formats, options.engine, prompt, output, options.tpot,
        options.ttft, layout, options.memory_share, drafts=drafts, kept=accepted_tokens,
        price=options.gpu_hour,
    )  # fmt: skip


def _model(options) -> Any:
    """The checkpoint of a config.json, its folder, or a known name."""
    from lightspeed_models.llm.checkpoint import read_checkpoint

    try:
        return read_checkpoint(options.model)
    except ConfigRefused as error:
        raise UserError("not counted: " + "; ".join(error.refused)) from error
    except (BadArgument, OSError, ValueError) as error:
        raise UserError(str(error)) from error


def _name(options) -> str:
    """The model's name as given, without the publisher; "" for a file."""
    word = options.model or ""
    return "" if Path(word).exists() else re.sub(r"^.*/", "", word)
