"""Does a report agree with itself? Each comparison allows exactly what printing rounds away."""

import re
from itertools import combinations

from lightspeed.collectives import COLLECTIVES, busbw_factor
from lightspeed_tools.nccl.log import Finding
from lightspeed_tools.nccl.published import PER_NODE


def check(report, n=None):
    """Return `Finding`s: rates that do not follow from n ranks, wrong results, a footer that
    contradicts the rows, and unreadable parts.
    """
    findings = [*report.failures]
    findings += [Finding(f.line, f"left out: {f.text}") for f in report.left_out]
    of_the_list = [
        f"device {index} of {host} is listed for several ranks: they share it, or several hosts"
        " have one name"
        for host, index in report.shared
    ]
    if _may_share_machines(report):
        of_the_list.append(
            f"{len(report.hosts)} hosts are named, of which some may be containers on one"
            " machine: their GPUs have different bus numbers; state the machines with --nodes"
        )
    findings += [Finding(0, words) for words in of_the_list]
    for row in report.rows:
        findings += _check_row(row, report.collective, n)
    if report.out_of_bounds:
        count = f"{report.out_of_bounds} values are out of bounds"
        wrong = f"{count}: the results are wrong, so the rates mean nothing"
        findings.append(Finding(0, wrong))
    if report.average_busbw is not None:
        mean = sum(row.busbw for row in report.rows) / len(report.rows)
        slack = max(row.half_digits[2] for row in report.rows) + 1e-5 * mean
        if abs(mean - report.average_busbw) > slack:
            printed = (
                f"the average bus bandwidth is printed as {report.average_busbw / 1e9:g} GB/s,"
                f" that of the rows here is {mean / 1e9:g}: rows were left out or changed"
            )
            findings.append(Finding(0, printed))
    return tuple(findings)


PODS = re.compile(r"-(?:worker|master|mpiworker)-\d+$")


def _may_share_machines(report):
    """Whether hosts are called as containers of Kubernetes are, the GPUs of two of them can be in
    one machine of eight, and NCCL says nothing of what it ran over.
    """
    buses = {host: {d.bus for d in report.devices if d.host == host} for host in report.hosts}
    if report.hints or not all(map(PODS.search, report.hosts)):
        return False
    return any(
        a.isdisjoint(b) and len(a | b) <= PER_NODE for a, b in combinations(buses.values(), 2)
    )


def _check_row(row, collective, n):
    place = "in place" if row.in_place else "out of place"
    _, half_algbw, half_busbw = row.half_digits
    if collective in COLLECTIVES and n:
        factor = busbw_factor(collective, n)
        slack = half_busbw + half_algbw * factor + 1e-6 * row.busbw
        if abs(row.busbw - row.algbw * factor) > slack:
            yield Finding(
                row.line,
                f"busbw {row.busbw / 1e9:g} GB/s {place}, but algbw x {factor:.4g} ({collective},"
                f" {n} ranks) is {row.algbw * factor / 1e9:.4g}",
            )
    if row.wrong and row.wrong >= 1:
        yield Finding(row.line, f"{row.wrong:g} wrong results {place}")
