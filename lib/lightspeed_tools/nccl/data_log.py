"""Results as data, read into the same `Report` as the tables: the JSON that nccl-tests writes with
-J, and the JSON and CSV that rccl-tests writes with -Z and -x.
"""

import csv
import json
import re

from lightspeed.collectives import COLLECTIVES
from lightspeed_tools.nccl.log import Device, Finding, Report, ReportError
from lightspeed_tools.nccl.rows import Measured, agreeing

HALF = (5e-13, 0.5, 0.5)  # six decimals of µs and of GB/s


def looks_like_data(text):
    """Whether a text is JSON or CSV output of nccl-tests, and not a table."""
    start = text.lstrip("\ufeff \r\n\t")
    if start.startswith(("{", "[")):
        return '"results"' in text or '"busBw"' in text
    return {"size", "time", "algbw", "busbw"} <= {*_columns(start)}


def parse_data(text, collective=None):
    """Parse the `Report`s of a JSON or CSV file. Raises ReportError if it is truncated or empty."""
    start = text.lstrip("\ufeff \r\n\t")
    if not start.startswith(("{", "[")):
        lines = start.splitlines()
        return _rccl(csv.DictReader(lines[1:], _columns(start)), collective)
    try:
        document = json.loads(re.sub(r'("wrong"\s*:\s*)N/A', r'\1"N/A"', start))
    except json.JSONDecodeError as error:
        raise ReportError(
            error.lineno,
            "the JSON is not whole, as when the test was killed; its table on the terminal can be"
            " read instead",
        ) from None
    if isinstance(document, list):
        return _rccl(({k.lower(): v for k, v in row.items()} for row in document), collective)
    try:
        return (_report(document, collective),)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ReportError(
            0, f"nccl-tests -J did not write this JSON: {type(error).__name__} {error}"
        ) from None


def _report(data, collective):
    config = data.get("config", {})
    report = Report(0, collective or _named(data.get("args", [])), bool(collective))
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
    if "nccl_version" in data:
        report.versions = (f"NCCL version {data['nccl_version']}",)
    rows = [row for result in data["results"] for row in _rows(result)]
    report.rows, bad, _ = agreeing(rows)
    report.left_out = [Finding(row.line, why) for row, why in bad]
    if not report.rows:
        raise ReportError(0, "the JSON holds no result")
    if "out_of_bounds" in data:
        report.out_of_bounds = int(data["out_of_bounds"]["count"])
    if "average_bus_bandwidth" in data:
        report.average_busbw = float(data["average_bus_bandwidth"]["bandwidth"]) * 1e9
    return report


def _columns(text):
    """The names of a CSV's columns in one spelling."""
    header = text.partition("\n")[0].strip().lower()
    return [name.strip(' "#') for name in header.split(",")]


def _rccl(rows, collective):
    """A `Report` for each collective, cycle and number of ranks that rccl-tests wrote."""
    reports, number = {}, 0
    for number, row in enumerate(rows, 2):
        try:
            name = str(row.get("name") or row.get("collective") or "").strip(' "')
            ranks = int(row.get("ranks") or row.get("gpus") or 0) * int(row.get("gpusperrank") or 1)
            nodes = int(row.get("nodes") or 0)
            key = (name, row.get("numcycle"), ranks, nodes, row.get("type"), row.get("redop"))
            report = reports.get(key)
            if report is None:
                plain = {one.replace("_", ""): one for one in COLLECTIVES}
                name_here = plain.get(re.sub(r"[\s_-]", "", name.lower()))
                report = reports[key] = Report(number, collective or name_here, bool(collective))
                report.said_ranks = {ranks} if ranks else set()
                report.said_nodes = {nodes} if nodes else set()
            report.rows.append(_rccl_row(number, row))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ReportError(
                number, f"not a row of rccl-tests: {type(error).__name__} {error}; expected size,"
                " type, redop, inplace, time (us), algbw and busbw (GB/s)"
            ) from None  # fmt: skip
    for report in reports.values():
        report.rows, bad, _ = agreeing(report.rows)
        report.left_out = [Finding(row.line, why) for row, why in bad]
        if report.rows:  # a file of results has no closing lines
            report.average_busbw = sum(row.busbw for row in report.rows) / len(report.rows)
    whole = tuple(report for report in reports.values() if report.rows)
    if not whole:
        raise ReportError(number, "the file holds no result whose size, time and algbw agree")
    return whole


def _rccl_row(line, row):
    """One measurement; its numbers have six digits."""
    time, algbw, busbw = (float(row[name]) for name in ("time", "algbw", "busbw"))
    halves = (5e-6 * time * 1e-6, 5e-6 * algbw * 1e9 + 0.5, 5e-6 * busbw * 1e9 + 0.5)
    wrong = str(row.get("wrong", "N/A")).strip(' "')
    return Measured(
        line=line, in_place=str(row["inplace"]).strip(' "').lower() in ("1", "true"),
        size=int(row["size"]), count=0, dtype=str(row["type"]).strip(' "'),
        redop=str(row.get("redop") or "").strip(' "'), root=None, time=time * 1e-6,
        algbw=algbw * 1e9, busbw=busbw * 1e9,
        wrong=float(wrong) if wrong.lstrip("-").isdigit() and int(wrong) >= 0 else None,
        half_digits=halves,
    )  # fmt: skip


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
