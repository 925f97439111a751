"""What nccl-tests prints, in several versions, around measured times of the catalog."""

from lightspeed.collectives import busbw_factor
from lightspeed_models.nccl_fit import measurements

HEAD_NOW = (
    "#       size         count      type   redop    root     time   algbw   busbw  #wrong     time"
    "   algbw   busbw  #wrong"
)
HEAD_2022 = (
    "#       size         count      type   redop    root     time   algbw   busbw #wrong     time "
    "  algbw   busbw #wrong"
)
HEAD_OLD = (
    "#       size         count    type   redop     time   algbw   busbw  error     time   algbw  "
    " busbw  error"
)
UNITS = (
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us) "
    " (GB/s)  (GB/s)"
)


def measured(series, nodes=None):
    """[(bytes, seconds)] of a published series."""
    return [
        (r.size, r.time) for r in measurements() if r.series == series and nodes in (None, r.nodes)
    ]


def row(size, time, collective, n, old=False, inside=None):
    """One line; the in-place time is a per cent shorter, or that of a stall."""
    text = ""
    checked = collective not in ("alltoall", "sendrecv")
    shared = collective in ("all_gather", "reduce_scatter", "alltoall", "gather", "scatter")
    for seconds in (time, inside or 0.99 * time):
        us = seconds * 1e6
        shown = f"{us:.0f}" if us >= 1e4 else f"{us:.1f}" if us >= 100 else f"{us:.2f}"
        algbw = size / float(shown) / 1e3
        text += (
            f" {shown:>8} {algbw:7.2f} {algbw * busbw_factor(collective, n):7.2f}"
            f" {'5e-07' if old else 'N/A' if seconds != time and not checked else '0':>6}"
        )
    redop = (
        "sum" if collective in ("all_reduce", "reduce_scatter", "reduce", "sendrecv") else "none"
    )
    rooted = collective in ("broadcast", "reduce", "gather", "scatter")
    root = "" if old else f" {0 if rooted else -1:>7}"
    return f"{size:>12} {size // 4 // (n if shared else 1):>13} {'float':>9} {redop:>7}{root}{text}"


def printed(
    rows,
    n,
    nodes=1,
    collective="all_reduce",
    device="NVIDIA H100 80GB HBM3",
    version="now",
    log=(),
    footer=True,
    inside=None,
):
    """A run's output; `version`: "now" (2.17), "2022", "old" (2020); `log`: lines of INFO;
    `inside`: size -> seconds in place.
    """
    lines = [f"$ mpirun -np {n} ./build/{collective}_perf -b 8 -e 16G -f 2 -g 1"]
    lines += [f"# Collective test starting: {collective}_perf"] if version == "now" else []
    lines += [
        (
            "# nThread 1 nGpus 1 minBytes 8 maxBytes 17179869184 step: 2(factor) warmup iters: 5"
            f" iters: 20 {'agg iters: 1 ' * (version != 'old')}validation: 1"
        ),
        "#",
        "# Using devices",
    ]
    per = n // nodes
    group = "" if version == "old" else "Group  0 "
    lines += [
        f"#  Rank {i:>2} {group}Pid {2000 + i} on node-{i // per:03} device {i % per:>2}"
        f" [0x{16 + i % per:02x}] {device}"
        for i in range(n)
    ]
    lines += list(log)
    lines += [
        "#",
        "#                                            out-of-place                       in-place",
        {"now": HEAD_NOW, "2022": HEAD_2022, "old": HEAD_OLD}[version],
        UNITS,
    ]
    stalls = inside or {}
    body = [row(s, time, collective, n, version == "old", stalls.get(s)) for s, time in rows]
    lines += body
    if footer:
        busbw = [
            float(line.split()[i])
            for line in body
            for i in ((6, 10) if version == "old" else (7, 11))
        ]
        lines += [
            "# Out of bounds values : 0 OK",
            f"# Avg bus bandwidth    : {sum(busbw) / len(busbw):g}",
            "#",
        ]
        lines += [f"# Collective test concluded: {collective}_perf"] if version == "now" else []
    return "\n".join(lines) + "\n"


def under_mpirun(text):
    """The same lines as `mpirun --tag-output` and a chatty job write them."""
    noise = (
        "[1,3]<stderr>:libibverbs: Warning: couldn't open config directory '/etc/libibverbs.d'.\n"
    )
    return "".join(
        noise * (i % 7 == 0) + f"[1,0]<stdout>:{line}\n" for i, line in enumerate(text.splitlines())
    )
