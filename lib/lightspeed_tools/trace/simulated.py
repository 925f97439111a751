"""What the simulator of ZeRO does, as a profile: where a layer waits for its weights, a kernel of
communication runs, as it does in truth.
"""

from __future__ import annotations

from lightspeed_models.simulators.zero import step_events
from lightspeed_tools.trace.writer import COMPUTE, NCCL, NETWORK, Recorder

BEGIN = 15_000  # ns of the host before the device starts


def of_zero3(
    layers: int, forward: float, arrives: float, backward: float | None = None
) -> Recorder:
    """Simulate a forward and a backward pass under ZeRO-3 on one rank, from the seconds of a
    layer's arithmetic and of its weights' arrival or gradients' departure. A layer waits for its
    weights, its gradients wait for the layer, and the next layer's weights are fetched first.
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


def _ns(seconds: float) -> int:
    return round(seconds * 1e9)
