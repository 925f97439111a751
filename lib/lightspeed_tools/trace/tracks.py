"""The tracks of a device as a chart: what it computed, what it sent, and when."""

from __future__ import annotations

from lightspeed_show.chart import Axis, Bars, Chart
from lightspeed_tools.trace.account import Account
from lightspeed_tools.trace.reader import COMMUNICATION, COMPUTE, COPY, Trace

TRACKS = ("compute", "communication and copies")
FINEST = 600  # parts of the width that a track is drawn in
LOOKS = {COMPUTE: ("compute", "blue", 0), COMMUNICATION: ("communication", "orange", 1)}
LOOKS |= {COPY: ("copies", "green", 1)}


def tracks(trace: Trace, account: Account) -> Chart:
    """Return a device's two tracks. Bars too close to be shown apart are merged."""
    device, grain = trace.device, max(1, account.span // FINEST)
    bars = []
    for kind, (label, color, track) in LOOKS.items():
        merged: list[list[int]] = []
        for row in account.rows:
            if device.kind[row] != kind:
                continue
            start = device.start[row] - account.start
            end = start + device.duration[row]
            if merged and start <= merged[-1][1] + grain:
                merged[-1][1] = max(merged[-1][1], end)
            else:
                merged.append([start, end])
        if merged:
            bars.append(Bars([track] * len(merged), [e * 1e-9 for _, e in merged],
                             [s * 1e-9 for s, _ in merged], label, color=color))  # fmt: skip
    span = max(account.span, 1) * 1e-9
    return Chart(
        Axis("time", "s", domain=(0, span)), Axis("", "", "category", categories=TRACKS), bars,
        height=170,
    )  # fmt: skip
