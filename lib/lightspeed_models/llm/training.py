"""What a model keeps while it trains: activations by its layers' own tensors, states, and whether
all of it fits. `lightspeed.memory` has the laws that take counts.

Sources: Korthikanti et al. (2022) and Megatron-LM, theoretical_memory_usage.py, for what a layer
keeps; DeepSeek-V3 technical report (2024) for compressed attention.
"""

from typing import Any

from lightspeed.elementwise import Result, Value, minimum, where
from lightspeed.errors import BadArgument
from lightspeed.law import checked, count, nonnegative, positive
from lightspeed.memory import (
    RECOMPUTE,
    SPLITS,
    MemoryUse,
    held_in_flight,
    kept_on_rank,
    training_state_bytes,
)
from lightspeed_models.llm.decoder import Decoder, Experts, Layer
from lightspeed_models.llm.mixers import Attention, LatentAttention


def checked_layers(layers: tuple[Layer, ...], name: str = "") -> None:
    """Raise BadArgument for layers of which no training step was measured, by their names."""
    others = {
        type(layer.mixer).__name__ if layer.mixer else "layers without attention"
        for layer in layers
        if not isinstance(layer.mixer, Attention | LatentAttention)
    }
    if any(layer.mlp is None for layer in layers):
        others.add("layers without an MLP")
    if others:
        hint = f"It has {', '.join(sorted(others))}, of which no law here knows the training step."
        raise BadArgument("training", "model", name, "layers of attention with an MLP", hint)


def seen(mixer: Attention | LatentAttention, sequence: Value) -> Result:
    """Tokens that a token of a causal sequence attends to, on average."""
    most = getattr(mixer, "window", 0) or mixer.index_top or sequence
    most = where(most < sequence, most, sequence)
    return most - most**2 / (2 * sequence)


def kept_bytes_per_token(layer: Layer) -> tuple[float, float]:
    """Bytes that a layer keeps of a token for its backward pass, in 2-byte elements, attention
    scores aside.

    A pair. First what tensor parallelism leaves whole: inputs and outputs of the two norms, and
    the one-byte masks of a GPT's two dropouts. Then what it splits: Q, K, V and the heads'
    result, and as many hidden vectors as the MLP has matrices. Of experts, those that a token
    uses, and its copies sent to them.

    >>> from lightspeed_models.llm import decoder
    >>> gpt3 = decoder("gpt3_175b")
    >>> [kept / gpt3.width for kept in kept_bytes_per_token(gpt3.layers[0])]
    [10.0, 24.0]
    """
    mixer, mlp = layer.mixer, layer.mlp
    checked_layers((layer,))
    assert isinstance(mixer, Attention | LatentAttention) and mlp is not None
    masks = 2 * mixer.width if _gpt(layer) else 0
    if isinstance(mlp, Experts):
        shared = mlp.shared.hidden if mlp.shared else 0
        hidden = mlp.matrices_each * (mlp.active * mlp.hidden + shared) + mlp.active * mlp.width
    else:
        hidden = mlp.matrices_each * mlp.hidden
    return 8 * mixer.width + masks, 2 * (_kept_by_attention(mixer) + hidden)


def _gpt(layer: Layer) -> bool:
    """Whether a layer drops out: two matrices with biases, as GPT-2 and GPT-3 have them."""
    return not isinstance(layer.mlp, Experts) and layer.mlp is not None and layer.mlp.bias


def _kept_by_attention(mixer: Attention | LatentAttention) -> int:
    if isinstance(mixer, Attention):
        return (mixer.heads + mixer.kv_heads) * (mixer.head_width + mixer.values)
    # The compressed vectors stay before and after their norms.
    compressed = 2 * (mixer.query_rank + mixer.kv_rank) + mixer.rotary
    return compressed + 2 * mixer.heads * (mixer.plain + mixer.rotary + mixer.value_width)


def model_activation_bytes(
    model: Decoder,
    sequence: Value,
    batch: Value = 1,
    tensor: Value = 1,
    pipeline: Value = 1,
    interleave: Value = 1,
    split: str = "tensor",
    recompute: str = "selective",
) -> Result:
    """Bytes of activations of a model on a device of the first stage, from its layers' own tensors.

    For a GPT that is `lightspeed.memory.activation_bytes`. "selective", which is what
    FlashAttention does, keeps no scores; "none" keeps them, in 5 bytes each with dropout (a GPT)
    and in 2 without.

    >>> from lightspeed_models.llm import decoder
    >>> llama = decoder("llama3_70b")
    >>> round(model_activation_bytes(llama, 8192) / (80 * 8192 * 8192), 1)
    33.5
    """
    this, whole = "model_activation_bytes", count()
    counts = {"sequence": sequence, "batch": batch, "tensor": tensor}
    counts |= {"pipeline": pipeline, "interleave": interleave}
    for name, value in counts.items():
        checked(this, name, value, whole)
    checked(this, "split", split, SPLITS)
    checked(this, "recompute", recompute, RECOMPUTE)
    activations: Value = 0.0
    for layer in model.layers:
        undivided, divided = kept_bytes_per_token(layer)
        mixer: Any = layer.mixer
        most = minimum(sequence, mixer.window or sequence) if hasattr(mixer, "window") else sequence
        scores = (5 if _gpt(layer) else 2) * mixer.heads * most
        divided = divided + where(recompute == "none", scores, 0)
        entering = 2 * model.width
        each = kept_on_rank(undivided, divided, entering, tensor, split, recompute)
        activations = activations + layer.repeat * each
    return sequence * batch * activations * held_in_flight(pipeline, interleave)


def training_memory(
    model: Decoder,
    capacity: Value,
    sequence: Value,
    batch: Value = 1,
    data: Value = 1,
    tensor: Value = 1,
    pipeline: Value = 1,
    interleave: Value = 1,
    stage: Value = 0,
    recipe: str = "16",
    split: str = "tensor",
    recompute: str = "selective",
    waste: Value = 0.1,
) -> MemoryUse:
    """The `MemoryUse` (byte) of a device of the first stage while it trains a model.

    `batch` counts the sequences of a micro-batch, `data`, `tensor`, `pipeline` are the three
    degrees, `stage` is ZeRO's; parameters are split evenly over tensor x pipeline. `logits` are
    those of one micro-batch in fp32, kept where there is one stage. `waste` is the share of the sum
    lost to temporary buffers and fragmentation. Activations are `model_activation_bytes`, by
    default without attention scores.

    >>> from lightspeed_models.llm import decoder
    >>> llama = decoder("llama3_8b")
    >>> use = training_memory(llama, 80e9, 8192, data=8, stage=3, recompute="full")
    >>> use.fits, use.largest
    (True, 'optimizer')
    """
    capacity = checked("training_memory", "capacity", capacity, positive("byte"))
    waste = checked("training_memory", "waste", waste, nonnegative())
    states = training_state_bytes(model.parameters / (tensor * pipeline), recipe, data, stage)
    activations = model_activation_bytes(
        model, sequence, batch, tensor, pipeline, interleave, split, recompute
    )
    logits = where(pipeline == 1, 4 * sequence * batch * model.vocabulary / tensor, 0.0)
    total = states.total + activations + logits
    return MemoryUse(
        states.weights,
        states.gradients,
        states.optimizer,
        activations,
        logits,
        waste * total,
        (1 + waste) * total,
        capacity,
    )
