"""A network of nodes inside this machine: a ring and a tree all-reduce over links of a known rate.
Measured for chapter 7.

Each node is a process in a network namespace of its own, joined to a bridge by a pair of virtual
interfaces that `tc` shapes in both directions. The namespaces have no name: they, their interfaces
and their processes end with the process that holds them, however that ends, and no packet leaves
them. Linux only; it takes root, or the right to make user namespaces, and the commands `unshare`,
`ip` and `tc`. Processes talk through plain TCP sockets, because an MPI would find that all nodes
share a memory and go past the links.
"""

import json
import os
import shutil
import sys
from dataclasses import dataclass
from typing import Any

from lightspeed.collectives import ring_time, tree_time
from lightspeed.errors import one_of
from lightspeed_models.fits import fit_alpha_beta
from lightspeed_tools.measure.instruments.launch import answers, clean, module
from lightspeed_tools.measure.instruments.timing import Quantity, Unavailable
from lightspeed_tools.measure.records.record import NotMeasured, all_of

# byte/s each way, 200 Mbit/s: beyond that, processes are slower than the links
RATE = 25e6
NODES = (2, 3, 4, 5, 6)
SIZES = (1024, 2**20)  # bytes: one for steps, one for bytes
LAWS: dict[str, Any] = {"ring": ring_time, "tree": tree_time}
PATIENCE = 60  # s without any answer
REMEDY = (
    "On Linux: apt-get install iproute2 util-linux, and run as root or allow user namespaces"
    " (sysctl kernel.unprivileged_userns_clone=1, or"
    " kernel.apparmor_restrict_unprivileged_userns=0)."
)
HEADERS = 66  # bytes of Ethernet, IPv4 and TCP with time stamps in front of what a packet carries


def measure(quick=True, report=None):
    """Times of ring and tree over 2 to 6 nodes, two messages. Raises Unavailable without rights."""
    sizes = SIZES if quick else (*SIZES, 2**16, 4 * 2**20)
    return quantities(run(NODES, sizes, repeat=5 if quick else 9, report=report))


def run(nodes=NODES, sizes=SIZES, algorithms=("ring", "tree"), rate=RATE, repeat=5, report=None):
    """What each all-reduce gave: algorithm, nodes, size, samples (s), wrong, and by node what it
    sent (`payload`) and its interface counted (`wire`, `packets`).
    """
    if sys.platform != "linux":
        raise Unavailable("Networks can be emulated on Linux only.")
    lacking = [name for name in ("unshare", "ip", "tc") if not _tool(name)]
    if lacking:
        raise Unavailable(f"No {' and no '.join(lacking)} on this machine.", REMEDY)
    job = {
        "nodes": list(nodes),
        "sizes": list(sizes),
        "algorithms": list(algorithms),
        "rate": rate,
        "repeat": repeat,
    }
    quantities, why = [], ""
    for isolate in (["--user", "--map-root-user", "--net"], ["--net"]):
        python = [_tool("unshare"), *isolate, "--", sys.executable]
        command = [*python, *module("nodes", json.dumps(job))]
        try:
            for said in answers(command, PATIENCE, clean()):
                quantities.append(said)
                if report and said["size"] == max(sizes):
                    report(f"{said['algorithm']} over {said['nodes']} nodes")
            return quantities
        except Unavailable as error:
            why = why or error.why
            if quantities or os.geteuid() != 0:
                break
    raise Unavailable(
        f"No network of nodes could be made here: {why}", "" if quantities else REMEDY
    )


def _tool(name):
    """The path of a system tool; the folders for root are not on everybody's path."""
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")


def quantities(found):
    """The `Quantity`s of a run. Raises Unavailable for a wrong sum, which no time makes good."""
    wrong = [row for row in found if row["wrong"]]
    if wrong:
        raise Unavailable(
            f"{wrong[0]['algorithm']} over {wrong[0]['nodes']} nodes gave {wrong[0]['wrong']} wrong"
            " sums."
        )
    return [
        Quantity(
            f"network.{r['algorithm']}",
            "s",
            tuple(r["samples"]),
            {"nodes": r["nodes"], "size": r["size"], "rate": r["rate"]},
            better="lower",
            counted={"bytes": max(r["payload"])},
        )
        for r in found
    ]


@dataclass(frozen=True)
class Effect:
    """What the number of nodes did: the fitted `alpha` of a step (s) and `bandwidth` (byte/s),
    and (nodes, size, measured, fitted time) rows.
    """

    alpha: float
    bandwidth: float
    rows: tuple


def node_effect(record, algorithm="ring"):
    """The `Effect` in a record: t = steps x alpha + bytes / W by the law, over all steady times.
    Raises NotMeasured below two sizes, and three numbers of nodes for each.
    """
    law = LAWS[one_of("node_effect", "algorithm", algorithm, tuple(LAWS))]
    points = [
        (q.parameters["nodes"], q.parameters["size"], q.value)
        for q in all_of(record, f"network.{algorithm}")
        if q.trusted
    ]
    sizes = [size for _, size, _ in points]
    if sum(sizes.count(size) >= 3 for size in set(sizes)) < 2:
        raise NotMeasured(f"the times of the {algorithm} scatter too much")
    import numpy

    steps = numpy.array([law(0.0, n, 1.0, 1.0) for n, _, _ in points], float)
    sent = numpy.array([law(float(size), n, 1.0) for n, size, _ in points], float)
    times = numpy.array([time for _, _, time in points], float)
    fit = fit_alpha_beta(sent, times, steps)
    return Effect(
        fit.latency,
        fit.bandwidth,
        tuple(
            (n, size, time, law(float(size), n, fit.bandwidth, fit.latency))
            for n, size, time in points
        ),
    )


def ring_payload(size, n, element_bytes=4):
    """Bytes that each rank of a ring sends for `size` bytes, counted chunk by chunk, so exact where
    n does not divide them.

    >>> ring_payload(4096, 4), ring_payload(4096, 2)
    ([6144, 6144, 6144, 6144], [4096, 4096])
    """
    import numpy

    from lightspeed_models.simulators.ring import ring_schedule

    chunks = [
        len(part) * element_bytes
        for part in numpy.array_split(numpy.empty(size // element_bytes), n)
    ]
    sent = [0] * n
    for step in ring_schedule(n):
        for rank, chunk in step.sends:
            sent[rank] += chunks[chunk]
    return sent
