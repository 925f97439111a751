"""What to look at, and which test to run next, most likely first."""

from lightspeed_tools.nccl.shape import retransmits

SOCKETS = 12.5e9  # byte/s: what TCP over one fast port gives at best


def checks_of(run):
    """Return the checks that a verdict suggests: on the largest message first, then on the rest."""
    if run.level == "invalid":
        return () if run.wrong else (_built(run),)
    if run.main is None:
        return tuple(_stalls(run))
    checks = [*_heard(run), *_stalls(run), *_of_verdict(run, run.main)]
    if run.level == "mixed" and run.slow:
        checks += _of_verdict(run, max(run.slow, key=lambda v: v.size))
    elif run.level == "mixed" and run.above:
        checks += _slow_links(run, run.main)
    return tuple(dict.fromkeys(checks))


def _stalls(run):
    if not run.stalls or run.level == "invalid":
        return
    halves = {stall.in_place for stall in run.stalls}
    if (run.nodes or 2) > 1 and retransmits(run.stalls):
        yield (
            "Look for lost packets: retransmissions and out-of-sequence counters of each adapter"
            " (/sys/class/infiniband/*/ports/1/hw_counters), ECN and PFC of RoCE on the switches,"
            " a cable with symbol errors; NCCL_IB_TIMEOUT sets the timer."
        )
    yield (
        "Run the test again, longer (-n 100 -w 20): do the same sizes stall?"
        + (" In place alone can mean buffers that are registered or mapped anew: compare with -R 1."
           if halves == {True} else "")
    )  # fmt: skip


def _built(run):
    return (
        "Build nccl-tests with make MPI=1 and start it with mpirun or srun; the list of devices"
        " then names each rank once."
    )


def _heard(run):
    """What NCCL's messages ask for by themselves."""
    hints, nodes = run.report.hints, run.nodes
    off = run.level not in ("normal", "unknown")
    if "sockets" in hints and nodes > 1:
        yield (
            "The log says NET/Socket: NCCL fell back to TCP. Look for the network plugin"
            " (aws-ofi-nccl, libibverbs) in the log of NCCL_DEBUG=INFO, and set NCCL_NET so that a"
            " fallback is an error."
        )
    if "shared memory" in hints and nodes == 1:
        yield (
            "The log says SHM: GPUs talk through the host's memory. Look at nvidia-smi topo -m, at"
            " NCCL_P2P_DISABLE, and at PCIe ACS settings."
        )
    if "no GPUDirect RDMA" in hints and nodes > 1:
        yield (
            "The log says that GPUDirect RDMA is disabled: data goes through host memory. Load the"
            " peer memory module (nvidia-peermem), or allow DMA-BUF."
        )
    elif nodes > 1 and "InfiniBand" in hints and "GPUDirect RDMA" not in hints and off:
        yield (
            "The log names InfiniBand but no GDRDMA: data may go through host memory. Is the"
            " peer memory module loaded?"
        )


def _of_verdict(run, verdict):
    if verdict.level in ("slow", "very slow") and verdict.regime != "latency-bound":
        yield from _slow_links(run, verdict)
    if verdict.ring:
        yield (
            "If the switches should add: see that NCCL_NVLS_ENABLE is not 0 and NCCL_ALGO not Ring,"
            " and look for NVLS in the log of NCCL_DEBUG=INFO (it takes the fabric manager and"
            " multicast of the driver)."
        )
    if verdict.regime == "latency-bound":
        yield (
            "The message is small for this many ranks. Compare at the size that your job sends, and"
            " use -e 8G to see the plateau."
        )
    above = verdict.line and verdict.busbw > verdict.line
    if above and run.collective == "all_reduce":
        yield (
            "To read a rate of the wire, run again with NCCL_ALGO=Ring (or NCCL_NVLS_ENABLE=0"
            " inside a node)."
        )
    if verdict.level == "fast":
        yield (
            "Check that ranks and nodes are what the log says, and that the test validated its"
            " results (-c 1)."
        )


def _slow_links(run, verdict):
    bus, line = verdict.busbw, verdict.line
    if run.nodes == 1:
        if bus < 0.15 * line:
            yield (
                "This is a rate of PCIe, not of the scale-up links. Is NVLink up (nvidia-smi nvlink"
                " -s), and is P2P allowed?"
            )
        yield (
            "Look for other jobs on the node, for throttled clocks, and for a GPU with fewer active"
            " links than the others."
        )
        return
    if "sockets" in run.report.hints:
        pass  # said already
    elif bus <= SOCKETS:
        yield (
            "TCP sockets give such a rate. Look for NET/Socket in the log of NCCL_DEBUG=INFO: the"
            " transport may have fallen back."
        )
    elif bus < 0.2 * line:
        yield (
            "This is about what one of the node's adapters carries. Check NCCL_IB_HCA or FI_EFA"
            " settings, and that every GPU is near its own adapter (nvidia-smi topo -m)."
        )
    yield (
        "Look for one slow node: run the test on halves of the nodes, and again on halves of the"
        " slow half."
    )
    if run.machine and run.machine.joins(run.n, run.nodes):
        yield (
            "Check that every scale-up link is up (nvidia-smi nvlink -s), that all nodes are of one"
            " domain, and that no other job shares it."
        )
        return
    yield (
        "Check that GPUDirect RDMA is on, that adapters run at full width and speed, and that no"
        " other job shares the fabric."
    )
