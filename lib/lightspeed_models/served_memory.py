"""Memory of a GPU that serves: weights in the checkpoint's formats, what an engine needs beside
them, and what is left for requests.

    room = share · memory − weights − other
    other = 0.3 GiB (several GPUs) + 7 · slots · vocabulary · 4 B + 38 · budget · width · 2 B

The three figures are fitted to what vLLM logged on eight cards; tests/serve holds ten logs.
"""

from typing import TypeAlias

from lightspeed.catalog import find
from lightspeed_models.llm.checkpoint import Formats, parts_of
from lightspeed_models.llm.decoder import Decoder
from lightspeed_models.llm.step import Replica, cached_heads

Share: TypeAlias = float
GIB = 2**30
DRIVER = 0.55 * GIB  # of what nvidia-smi prints CUDA sees so much less: 0.4 to 0.75 on eight cards
SGLANG = 0.86  # mem_fraction_static, computed for each card: 0.82 to 0.9, activations not included
LARGE = 70 * GIB  # from here on vLLM takes more slots and a larger budget, but not on an A100


def share_of(engine: str) -> Share:
    """Of a GPU's memory an engine takes, by default: gpu_memory_utilization of vLLM and
    mem_fraction_static of SGLang, weights included; free_gpu_memory_fraction of TensorRT-LLM, of
    what the weights leave.
    """
    if engine == "sglang":
        return SGLANG
    return float(find("tensorrt_llm" if engine == "trtllm" else "vllm").numbers["memory_share"])


def weight_bytes(
    model: Decoder, replica: Replica, formats: Formats | None = None, engine: str = "vllm"
) -> float:
    """Bytes of weights on each GPU: experts lie over all of them, the rest in each replica of
    attention. Without `formats` all have the width of the replica's, tables 16 bits.
    """
    parts = parts_of(model)
    rest = model.parameters - sum(parts.values())
    if formats is None:
        width = dict.fromkeys(parts, replica.weight_bytes) | {
            "tables": max(2.0, replica.weight_bytes)
        }
    else:
        width = {part: formats.width(part) for part in parts}
    experts = parts["experts"] * width["experts"] / replica.gpus
    if formats is not None and formats.experts == "mxfp4" and engine == "vllm":
        experts *= padding(model.width)
    others = sum(parts[part] * width[part] for part in parts if part != "experts") + 2.0 * rest
    return experts + others / replica.tensor


def padding(width: int) -> float:
    """How many times vLLM's MXFP4 kernels make the experts of such a width: to whole blocks."""
    return (-(-width // 256) * 256 / width) * (-(-width // 128) * 128 / width)


def other_bytes(model: Decoder, replica: Replica, capacity: float) -> float:
    """Bytes that vLLM needs on each GPU beside weights and caches: logits of all slots, activations
    of a step, and what several GPUs need to talk.
    """
    large = capacity >= LARGE and replica.memory > 2.1e12  # an A100 of 80 GB has 2.04 TB/s
    vllm = find("vllm").numbers
    slots, budget = (float(vllm[f"{n}{'' if large else '_small'}"]) for n in ("slots", "budget"))
    talk = 0.3 * GIB if replica.tensor > 1 else 0.0
    return talk + 7 * slots * model.vocabulary * 4 + 38 * budget * model.width * 2


def room_bytes(
    model: Decoder,
    replica: Replica,
    capacity: float,
    engine: str = "vllm",
    formats: Formats | None = None,
    share: Share | None = None,
) -> float:
    """Bytes for requests on each GPU; below 0 it does not start."""
    share = share or share_of(engine)
    weights, total = weight_bytes(model, replica, formats, engine), capacity - DRIVER
    if engine == "sglang":  # activations and graphs have the rest
        return share * total - weights
    other = other_bytes(model, replica, capacity)
    if engine == "trtllm":
        rest = total - weights - other
        return share * rest if rest > 0 else rest
    return share * total - weights - other


def request_bytes(model: Decoder, tokens: float, element_bytes: float, tensor: int = 1) -> float:
    """Bytes that a request of so many tokens holds on each GPU: each layer's cache or state lies
    over its own heads, and beyond them in copies.
    """
    total = 0.0
    for layer in model.layers:
        if layer.mixer:
            mixer = layer.mixer
            size = float(mixer.state(element_bytes, tokens)) + tokens * float(
                mixer.growth(element_bytes)
            )
            total += layer.repeat * size / min(tensor, cached_heads(mixer))
    return total
