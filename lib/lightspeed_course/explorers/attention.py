"""Chapter 4: what a request holds and what a step reads of it, over context, by kind of attention.

`view` is pure: a model, another to compare it with, and a context in, a `View` out.
"""

import functools

from lightspeed_models.llm import decoder
from lightspeed_models.llm.mixers import Attention, CompressedAttention, LatentAttention
from lightspeed_show import (
    Axis,
    Chart,
    Choice,
    Formula,
    Line,
    LogSlider,
    Points,
    View,
    explorer,
    si,
)
from lightspeed_show.spaced import by_ratio

# Each kind of attention once, by their names on the hub, in the order of their years.
MODELS = (
    "Llama-2-7B", "Llama-3.1-70B", "gpt-oss-120b", "DeepSeek-V3", "DeepSeek-V3.2",
    "DeepSeek-V4-Flash", "Qwen3.5-397B-A17B", "Nemotron-3-Ultra",
)  # fmt: skip
LOW, HIGH = 256, 2**20
CONTEXTS = tuple(by_ratio(LOW, HIGH, 49))
RANGE = (1e5, 1e12)  # byte: the axes of all models
ROOM = 100e9  # byte


def kinds(name):
    """Describe the layers of a model that mix tokens."""
    counts = {}
    for layer in decoder(name).layers:
        if layer.mixer:
            kind = words(layer.mixer)
            counts[kind] = counts.get(kind, 0) + layer.repeat
    return ", ".join(f"{n} × {kind}" for kind, n in counts.items())


def words(mixer):
    """Describe what a layer keeps of a text."""
    if isinstance(mixer, LatentAttention):
        top = f", {mixer.index_top:,} of them read" if mixer.index_top else ""
        return f"a vector a token{top}"
    if isinstance(mixer, CompressedAttention):
        far = f" and a vector for {mixer.ratio}" if mixer.ratio else ""
        return f"{mixer.window} tokens{far}"
    if isinstance(mixer, Attention):
        span = f"the last {mixer.window} tokens" if mixer.window else "all tokens"
        return f"{mixer.kv_heads} KV heads of {span}"
    return "a state"


@functools.lru_cache(maxsize=64)
def curves(name, element_bytes):
    """Bytes that a request holds and that a step reads, over CONTEXTS."""
    model = decoder(name)
    sizes = [float(model.request_bytes(c, element_bytes)) for c in CONTEXTS]
    return sizes, [float(model.read_bytes(c, element_bytes)) for c in CONTEXTS]


def view(model, other, context, element_bytes):
    """One request of each of two models at this context."""
    one, two = decoder(model), decoder(other)
    sizes, traffic = (
        [law(m, context, element_bytes) for m in (one, two)]
        for law in (type(one).request_bytes, type(one).read_bytes)
    )
    flops = one.flops_per_token(context, "decode") - one.flops_per_token(0, "decode")
    facts = {
        "its layers": kinds(model),
        "held by a request": si(sizes[0], "byte"),
        "read of it by a step": si(traffic[0], "byte"),
        "arithmetic on that": si(flops / traffic[0], "FLOP/byte"),
        f"requests in {si(ROOM, 'byte')}": si(int(ROOM // sizes[0])),
    }
    growth, state = one.kv_cache_bytes_per_token(element_bytes), one.state_bytes(element_bytes)
    law = Formula(
        "held",
        "state + context * each_token",
        {"state": (state, "byte"), "context": (context, ""), "each_token": (growth, "byte")},
        (state + context * growth, "byte"),
    )
    charts = [
        chart(title, axis, which, at, (model, other), context, element_bytes)
        for title, axis, which, at in (
            ("What a request holds", "memory of a request", 0, sizes),
            ("What a step reads of it", "bytes of a step", 1, traffic),
        )
    ]
    return View(charts, verdict(model, other, traffic, sizes), facts, formula=law)


def chart(title, axis, which, at, pair, context, element_bytes):
    """All models in grey, the two in colour, and where this context lies on them."""
    grey = [
        Line(CONTEXTS, curves(name, element_bytes)[which], color="grey", width=0.7)
        for name in MODELS
        if name not in pair
    ]
    colours = dict(zip(pair[::-1], ("blue", "orange"), strict=True))
    lines = [
        Line(CONTEXTS, curves(name, element_bytes)[which], name, colour)
        for name, colour in colours.items()
    ]
    here = Points((context,), (at[0],), drop=True, size=7, drag=("context", None))
    return Chart(
        Axis("context", "token", "log", domain=(LOW, HIGH)),
        Axis(axis, "byte", "log", domain=RANGE),
        [*grey, *lines, here],
        title=title,
        height=270,
    )


def verdict(one, other, traffic, sizes):
    """Say which of the two reads less, and what that means for the memory."""
    if one == other:
        return f"A step reads {si(traffic[0], 'byte')} of this request's memory."
    less, more = (one, other) if traffic[0] <= traffic[1] else (other, one)
    times = max(traffic) / min(traffic)
    if times < 1.005:
        return f"Both read {si(traffic[0], 'byte')} of a request's memory in a step."
    memory = sizes[1] / sizes[0] if less == one else sizes[0] / sizes[1]
    holds = (
        f"and holds {si(memory)} × less memory"
        if memory >= 1.005
        else f"but holds {si(1 / memory)} × as much memory"
        if memory <= 0.995
        else "and holds as much memory"
    )
    return f"{less} reads {si(times)} × less in a step than {more}, {holds}."


def explore_attention():
    """Explore what a decoding step reads."""
    return explorer(
        view,
        [
            Choice("model", "model", [*MODELS], "Qwen3.5-397B-A17B"),
            Choice("other", "beside", [*MODELS], "Llama-3.1-70B"),
            LogSlider("context", "context", LOW, HIGH, 131072, base=2, unit="token", whole=True),
            Choice("element_bytes", "caches in", {"bf16": 2, "fp8": 1}),
        ],
        caption=(
            "Grey lines are the other models of the menu. Move the context: which of them climb, "
            "and which stay?"
        ),
        alt=(
            "Two charts over the context of a request, from hundreds of tokens to a million: the "
            "memory that it holds and the bytes of it that a step reads. One line a model, two "
            "of them in colour, with a point at the chosen context."
        ),
    )
