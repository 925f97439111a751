"""What the simulators of chapters 4 and 6 do, as profiles: a pipeline's schedule and a server's
steps. Where a GPU waits for another, a kernel of communication runs, as it does in truth.
"""

from __future__ import annotations

from lightspeed_models.simulators.schedules import Timeline
from lightspeed_models.simulators.serving import Served
from lightspeed_models.simulators.zero import step_events
from lightspeed_tools.trace.writer import COMPUTE, LAUNCH, NCCL, NETWORK, Recorder, collective

BEGIN = 15_000  # ns of the host before the device starts
NAMES = {"F": "forward", "B": "backward", "W": "weight_gradients"}


def of_schedule(timeline: Timeline, gradients: float = 1e-3) -> list[Recorder]:
    """A rank a stage: its passes, the receives that it waits in, and in the end a sum over all
    ranks that takes `gradients` (s) once everybody is there.
    """
    last = max(_ns(p.end) for p in timeline.passes) + BEGIN
    ranks = []
    for stage in range(timeline.stages):
        rank, free = Recorder(stage), BEGIN
        for p in timeline.of(stage):
            start, end = _ns(p.start) + BEGIN, _ns(p.end) + BEGIN
            if start > free:
                rank.launched(NCCL.format("SendRecv"), NETWORK, free, start)
            name = f"{NAMES[p.work.kind]}_{p.work.micro_batch}_gemm"
            rank.launched(name, COMPUTE, start, end)
            free = end
        details = collective("allreduce", 0, range(timeline.stages), "default_pg")
        name = NCCL.format("AllReduce_Sum")
        rank.launched(name, NETWORK, free, last + _ns(gradients), **details)
        ranks.append(rank)
    return ranks


def of_zero3(
    layers: int, forward: float, arrives: float, backward: float | None = None
) -> Recorder:
    """A forward and a backward pass under ZeRO-3 on one rank: seconds of a layer's arithmetic, and
    in which its weights arrive or its gradients leave. A layer waits for its weights, its gradients
    wait for the layer, and the weights of the next one are fetched first.
    """
    rank, links, free, arrived = Recorder(0), BEGIN, BEGIN, BEGIN
    sent, back = _ns(arrives), _ns(2 * forward if backward is None else backward)
    done: dict[int, int] = {}  # layers whose gradients are to be sent, and since when

    def send(what: str, layer: int, ready: int = 0) -> None:
        nonlocal links
        start = max(links, ready)
        links = start + sent
        rank.launched(NCCL.format(f"{what}_layer_{layer}"), NETWORK, start, links)

    for event in step_events(3, layers, 1):
        if event.layer is None or event.kind in ("drop", "scatter"):
            continue
        if event.kind == "gather":
            send("AllGather", event.layer)
            arrived = links
            for layer in [*done]:
                send("ReduceScatter", layer, done.pop(layer))
            continue
        start = max(free, arrived)
        free = start + (_ns(forward) if event.kind == "forward" else back)
        rank.launched(f"{event.kind}_layer_{event.layer}_gemm", COMPUTE, start, free)
        if event.kind == "backward":
            done[event.layer] = free
    for layer in [*done]:
        send("ReduceScatter", layer, done.pop(layer))
    return rank


def of_serving(served: Served, host: float = 0.0) -> Recorder:
    """The steps of a server that recorded them (`simulate(..., record=True)`), named as vLLM names
    them. `host`: the seconds of each step in which the scheduler works and the GPU does nothing.
    """
    rank, wait = Recorder(0), _ns(host)
    for group in served.steps:
        for n in range(group.steps):
            length = (group.end - group.start) / group.steps
            start, end = _ns(group.start + n * length), _ns(group.start + (n + 1) * length)
            reads = f"execute_context_{int(group.tokens > 0)}({group.tokens})"
            rank.of_host("user_annotation", f"{reads}_generation_{group.rows}({group.rows})",
                         start, end - start)  # fmt: skip
            what = "prefill_and_decode" if group.tokens else "decode"
            begin = min(start + max(wait, LAUNCH), end - 1)
            rank.clock = max(rank.clock, begin - LAUNCH)
            rank.launched(f"{what}_attention_and_gemm", COMPUTE, begin, end)
    return rank


def _ns(seconds: float) -> int:
    return round(seconds * 1e9)
