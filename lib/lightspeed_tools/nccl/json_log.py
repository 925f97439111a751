"""The JSON that nccl-tests writes with -J, read into the same `Report` as its text."""

import json

from lightspeed.collectives import COLLECTIVES
from lightspeed_tools.nccl.log import Device, Finding, Report, ReportError
from lightspeed_tools.nccl.rows import Measured, agreeing

HALF = (5e-13, 0.5, 0.5)  # six decimals of µs and of GB/s


def looks_like_json(text):
    """Whether a text is what -J writes, and not a table."""
    return text.lstrip().startswith("{") and '"results"' in text


def parse_json(text, collective=None):
    """The one `Report` of a JSON file. Raises ReportError for a cut one, or no results."""
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise ReportError(
            error.lineno,
            "the JSON is not whole, as when the test was killed; its table on the terminal can be"
            " read instead",
        ) from None
    try:
        return (_report(document, collective),)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ReportError(
            0, f"the JSON is not that of nccl-tests -J: {type(error).__name__} {error}"
        ) from None


def _report(told, collective):
    config = told.get("config", {})
    report = Report(0, collective or _named(told.get("args", [])), bool(collective))
    report.threads, report.gpus = config.get("nthreads"), config.get("ngpus")
    report.max_bytes = config.get("maximum_bytes")
    report.devices = [
        Device(d["rank"], d["hostname"], d["device"], d["device_hex"], d["device_info"])
        for d in config.get("devices", [])
    ]
    # It names the first device of each process, and no other.
    report.elided = (report.threads or 1) * (report.gpus or 1) > 1
    if report.elided:
        report.said_ranks = {len(report.devices) * report.threads * report.gpus}
        report.said_nodes = {len(report.hosts)}
    if "nccl_version" in told:
        report.versions = (f"NCCL version {told['nccl_version']}",)
    rows = [row for result in told["results"] for row in _rows(result)]
    report.rows, bad, _ = agreeing(rows)
    report.left_out = [Finding(row.line, why) for row, why in bad]
    if not report.rows:
        raise ReportError(0, "the JSON holds no result")
    if "out_of_bounds" in told:
        report.out_of_bounds = int(told["out_of_bounds"]["count"])
    if "average_bus_bandwidth" in told:
        report.average_busbw = float(told["average_bus_bandwidth"]["bandwidth"]) * 1e9
    return report


def _named(args):
    program = str(args[0]).rpartition("/")[2] if args else ""
    name = program.removesuffix("_mpi").removesuffix("_perf")
    return name if name in COLLECTIVES else None


def _rows(result):
    for which in ("out_of_place", "in_place"):
        entry = result.get(which)
        if entry:
            yield Measured(
                line=0,
                in_place=which == "in_place",
                size=int(result["size"]),
                count=int(result["count"]),
                dtype=str(result["type"]),
                redop=str(result["redop"]),
                root=int(result["root"]),
                time=float(entry.get("time", entry.get("cpu_time"))) * 1e-6,
                algbw=float(entry["alg_bw"]) * 1e9,
                busbw=float(entry["bus_bw"]) * 1e9,
                wrong=None if entry.get("nwrong") is None else float(entry["nwrong"]),
                half_digits=HALF,
            )
