"""What `lightspeed plan` says: the best way to train a model on a cluster, and why."""

import argparse
import json
import re
import sys

from lightspeed.errors import BadArgument
from lightspeed_cli import argument_types
from lightspeed_cli.errors import UserError
from lightspeed_tools.plan import answer, causes, check, deadline, inputs, one_away, phrases, words
from lightspeed_tools.plan.space import sequences_of

EXAMPLES = """examples:
  lightspeed plan llama3_70b --cluster h100_sxm:512 --batch 4M --sequence 8192
  lightspeed plan config.json --cluster cluster.json --batch 16M --sequence 8192 --limit context=2
  lightspeed plan llama3_70b --cluster h100_sxm:512 --batch 4M --explain "tp8 pp4 dp16"
  lightspeed plan llama2_7b --cluster a100:128 --nic 4x100G --batch 1M --sequence 4096 \
      --stack torchtitan --explain "hsdp 8, micro 2, compiled" --measured 4550tok/s
  lightspeed plan llama3_70b --cluster h100_sxm:4096 --batch 4M --deadline 60d --tokens 15T
  lightspeed plan --check published.json

cluster.json: {"gpu": "h100_sxm", "gpus": 512} and, where they differ from the usual, "network" or
"nic", "inside", "gpus_per_node", "precision", "memory_bytes". A card that the catalog lacks:
--cluster "memory=48GB,bandwidth=864GB/s,bf16=181TFLOPS,link=32GB/s:64"."""


def large(text):
    """Parse a number with k, M, B or T of a thousand each: tokens of a run.

    >>> large("15T"), large("1.4B")
    (15000000000000.0, 1400000000.0)
    """
    match = re.fullmatch(r"([\d.]+)\s*([kKmMbBtT]?)", text.strip())
    if not match:
        raise argparse.ArgumentTypeError(f"{text!r}: expected tokens, such as 15T or 300B")
    return argument_types.number(match[1]) * 1000 ** " kmbt".index(match[2].lower() or " ")


def setting(text):
    """Parse a field of a plan and its value."""
    name, equals, value = text.partition("=")
    if not equals or not value:
        raise argparse.ArgumentTypeError(f"{text!r}: expected FIELD=VALUE, such as tensor=8")
    return name.strip(), int(value) if value.strip().isdecimal() else value.strip()


def add(parser):
    """Put the arguments of the verb on its parser."""
    parser.epilog, parser.formatter_class = EXAMPLES, argparse.RawDescriptionHelpFormatter
    parser.add_argument("model", nargs="?", help="a key of the catalog, or a config.json")
    parser.add_argument("--cluster", metavar="GPU:N|FILE", help="h100_sxm:512, or a JSON file")
    parser.add_argument(
        "--batch", type=argument_types.tokens, metavar="TOKENS", help="of a step: 16M (of 1,024²)"
    )
    parser.add_argument("--sequence", type=argument_types.tokens, default=8192, metavar="TOKENS")
    parser.add_argument("--precision", default="bf16", choices=inputs.PRECISIONS)
    parser.add_argument(
        "--stack", default="",
        help="who runs it: nvidia (its recipes), megatron, fsdp or a framework of it; a stack of"
        " the catalog, or a file of fit-stack (default: not named, with a wide range)",
    )  # fmt: skip
    parser.add_argument("--nic", default="", help="adapters of a node and their rate: 4x100G")
    parser.add_argument("--inside", default="", help="the link in a node: pcie4, nvlink3, 25GB/s")
    parser.add_argument("--state", default="", help="what ails the cluster: slow_collectives")
    parser.add_argument(
        "--fix", type=setting, action="append", default=[], metavar="FIELD=N", help="tensor=8"
    )
    parser.add_argument(
        "--limit", type=setting, action="append", default=[], metavar="FIELD=N", help="context=2"
    )
    parser.add_argument("--top", type=argument_types.count, default=5, metavar="N")
    parser.add_argument("--explain", metavar="PLAN", help='your plan: "tp8 pp9 cp2 dp4"')
    parser.add_argument(
        "--measured", metavar="RATE",
        help="what your plan takes: 4550tok/s (of a GPU), 3.2s a step, or 42%% MFU (with --counts)",
    )  # fmt: skip
    parser.add_argument(
        "--counts", default="causal", choices=("causal", "whole", "6PD"),
        help="how a measured MFU counts attention's scores (%(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--deadline", type=argument_types.duration, metavar="TIME", help="60d: on how few GPUs?"
    )
    parser.add_argument("--tokens", type=large, default=1e12, help="of the run: 15T")
    parser.add_argument("--check", metavar="FILE", help="published runs beside the law")
    parser.add_argument("--json", action="store_true", help="as JSON")


def run(options):
    """Print the answer; return 1 if no plan fits or meets the deadline."""
    try:
        return _run(options)
    except BadArgument as error:
        raise UserError(str(error)) from None


def _run(options):
    if options.check:
        rows = check.checked_cases(inputs.read_json(options.check), options.stack)
        show(options, rows, words.told_check)
        return 0
    for name in ("model", "cluster", "batch"):
        if not getattr(options, name):
            raise UserError(f"{'--' * (name != 'model')}{name} is missing; see --help")
    setup = phrases.setup_of(options.explain or "", options.stack)
    job = job_of(options, setup)
    if options.measured and not options.explain:
        raise UserError("--measured needs --explain PLAN: which plan did you measure?")
    if options.explain:
        if job.setting.key == "pytorch_fsdp":
            setup.degrees.setdefault("stage", 3)
        plan = phrases.plan_of(setup, job.cluster.gpus, job.sequences)
        details = answer.explained(job, plan) | {"one_away": one_away.one_away(job, plan)}
        if options.measured:
            seconds = causes.measured_seconds(options.measured, job, options.counts)
            details["measured"] = causes.compared(job, plan, seconds, setup)
        show(options, details, words.told_explained)
        return 0
    if options.deadline:
        job = in_time(options, job)
        if job is None:
            return 1
    plans = answer.answer(job, options.top, options.tokens)
    show(options, plans, words.told)
    return 0 if plans["best"] else 1


def job_of(options, setup):
    """Return the `Job` described by the options and a plan's `Setup`."""
    name, model, defaults = inputs.model_of(options.model)
    cluster = inputs.cluster_of(options.cluster, options.precision, options.nic, options.inside)
    stack, machine = inputs.given_stack(
        options.stack, cluster, model, options.state, setup.compiled, setup.kernel
    )
    sequences = sequences_of(options.batch, options.sequence)
    for field, value in options.limit:
        if not isinstance(value, int):
            raise UserError(f"--limit {field}={value}: expected a whole number")
    return answer.Job(
        name, model, options.sequence, sequences, cluster, machine, stack, defaults,
        tuple(options.fix), tuple(options.limit),
    )  # fmt: skip


def in_time(options, job):
    """Return the job on the fewest GPUs that meet the deadline, None if none do."""
    first, last = deadline.least_gpus(job, options.deadline, options.tokens), job.cluster.gpus

    def watch(gpus):
        if sys.stderr.isatty():
            share = (gpus - first) / max(1, last - first)
            print(f"\r{gpus:,} GPUs [{'#' * int(30 * share):<30}]", end="", file=sys.stderr)

    fit = deadline.fewest(job, options.deadline, options.tokens, watch)
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    if fit:
        return fit[0]
    days = options.deadline / 86400
    text = f"No number of GPUs up to {last:,} meets {days:g} days."
    if options.json:
        print(json.dumps({"best": None, "refused": text}, indent=1))
    else:
        print(f"{text} At the peak alone it would take {first:,}.")
    return None


def show(options, data, text):
    lesson = "Why: lesson 10, and lessons 6.1 to 6.3 for what each way of splitting costs."
    print(json.dumps(data, indent=1, default=float) if options.json else f"{text(data)}\n{lesson}")
