"""Does a report agree with itself? Each comparison allows exactly what printing rounds away."""

from __future__ import annotations

from lightspeed.collectives import COLLECTIVES, busbw_factor
from lightspeed_course.nccl_report.log import Finding


def check(report, n=None):
    """`Finding`s: rates that do not follow from n ranks, wrong results, a footer that is not of
    these rows, and what could not be read.
    """
    findings = [*report.failures]
    findings += [Finding(f.line, f"left out: {f.text}") for f in report.left_out]
    for row in report.rows:
        findings += _check_row(row, report.collective, n)
    if report.out_of_bounds:
        findings.append(
            Finding(
                0,
                f"{report.out_of_bounds} values are out of bounds: the results are wrong, so the"
                " rates mean nothing",
            )
        )
    if report.average_busbw is not None:
        mean = sum(row.busbw for row in report.rows) / len(report.rows)
        slack = max(row.half_digits[2] for row in report.rows) + 1e-5 * mean
        if abs(mean - report.average_busbw) > slack:
            findings.append(
                Finding(
                    0,
                    f"the average bus bandwidth is printed as {report.average_busbw / 1e9:g} GB/s,"
                    f" that of the rows here is {mean / 1e9:g}: rows were left out or changed",
                )
            )
    return tuple(findings)


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
