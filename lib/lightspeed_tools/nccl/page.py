"""The report of nccl-tests files: lines for the terminal, and data."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path

from lightspeed_tools.nccl.as_data import as_data
from lightspeed_tools.nccl.compare import alike, compare, compared_in_words
from lightspeed_tools.nccl.data_log import looks_like_data, parse_data
from lightspeed_tools.nccl.judge import judge_report
from lightspeed_tools.nccl.log import ReportError, collective_named, parse
from lightspeed_tools.nccl.machine import described
from lightspeed_tools.nccl.sentences import in_words


@dataclass(frozen=True)
class Stated:
    """What the reader states about a report's runs."""

    hardware: str | None = None
    nic: str | None = None
    domain: int | None = None
    machine: str | None = None
    ranks: int | None = None
    nodes: int | None = None
    collective: str | None = None


def read_runs(path, options=Stated()):
    """Read the `Judged` runs of a file, or of standard input ("-"). Raises ReportError (with the
    line) if it is not nccl-tests output, OSError for a missing file.
    """
    collective = collective_named(options.collective) if options.collective else None
    machine = described(options.hardware, options.nic, options.domain, options.machine)
    if str(path) == "-":
        text = sys.stdin.read()
    else:
        text = Path(path).read_text(encoding="utf-8", errors="replace")
    reports = (parse_data if looks_like_data(text) else parse)(text, collective)
    return [judge_report(report, machine, options.ranks, options.nodes) for report in reports]


def compared(files):
    """The `Compared` runs: those alike in one file; of two files, the pairs of one collective on
    as many ranks and nodes, else the last run of each.
    """
    if len(files) == 1:
        return alike(files[0])
    first, second = files
    key = lambda run: (run.collective, run.n, run.nodes)  # noqa: E731
    theirs = {key(run): run for run in second}
    comparisons = [compare(run, theirs[key(run)]) for run in first if key(run) in theirs]
    comparisons = comparisons or [compare(first[-1], second[-1])]
    if not any(comparisons):
        raise ReportError(
            0, "the two files share no collective with a common size, so nothing can be compared"
        )
    return [pair for pair in comparisons if pair]


def report_lines(paths, files):
    """The lines to print for one file, or for two side by side."""
    lines = []
    for path, runs in zip(paths, files, strict=True):
        for run in runs:
            lines += [*([""] if lines else []), *([f"{path}:"] if len(paths) > 1 else [])]
            lines += in_words(run)
    names = (
        ("the first file", "the second file")
        if len(paths) > 1
        else ("the run before", "the run after")
    )
    for pair in compared(files):
        lines += ["", *compared_in_words(pair, names)]
    return lines


def to_json(paths, files):
    """One JSON document for the judged runs of files."""
    data = [
        {"file": str(path), "runs": [as_data(run) for run in runs]}
        for path, runs in zip(paths, files, strict=True)
    ]
    pairs = [
        {"collective": pair.first.collective, "time_second_over_first": dict(pair.ratios)}
        for pair in compared(files)
    ]
    return json.dumps({"files": data, "compared": pairs}, indent=1, allow_nan=False)
