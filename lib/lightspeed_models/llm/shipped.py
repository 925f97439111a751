"""Models by name, by config.json or by sizes: those that the course ships, and any other."""

import functools
import json
import re
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from lightspeed.errors import BadArgument, nearest
from lightspeed.law import checked, count
from lightspeed_models.llm.config import read_config
from lightspeed_models.llm.decoder import Decoder, Experts, Layer, Mlp
from lightspeed_models.llm.mixers import Attention

# Words that follow a model's name and leave its shape as it is.
SUFFIXES = re.compile(
    r"(-(instruct|chat|base|it|hf|thinking|terminus|exp|dynamic|quantized|kv|bf16|fp8|fp4|nvfp4"
    r"|mxfp4|int4|awq|gptq|w4a16|w8a8|v2|\d{4}))+$"
)
# Another name, without its punctuation -> the model that has its shape.
SAME_SHAPE = {
    "deepseekr1": "DeepSeek-V3", "deepseekv31": "DeepSeek-V3", "gpt2small": "GPT-2",
    "ernie4521ba3bpt": "ERNIE-4.5-21B-A3B", "glm46": "GLM-4.5",
    "kimik2": "Kimi-K2.5", "llama38b": "Llama-3.1-8B", "llama370b": "Llama-3.1-70B",
    "llama3370b": "Llama-3.1-70B", "llama3405b": "Llama-3.1-405B", "minimaxm2": "MiniMax-M2.5",
    "minimaxm21": "MiniMax-M2.5", "qwen3235b": "Qwen3-235B-A22B",
}  # fmt: skip


@functools.cache
def shipped() -> dict[str, Any]:
    """The config.json of each model that the course ships, by the model's name."""
    configs: dict[str, Any] = json.loads((files(__package__) / "models.json").read_text("utf-8"))
    return configs


def shape_of(name: str) -> str:
    """The shipped model whose shape one of this name has, "" if none has: whoever publishes or
    quantised it, however it is spelt.

    >>> {shape_of(name) for name in ("Qwen3-32B", "qwen3_32b", "Qwen/Qwen3-32B-FP8")}
    {'Qwen3-32B'}
    """
    plain = re.sub(r"[\s_]+", "-", name.rpartition("/")[2].lower()).removeprefix("meta-")
    bare = _bare(SUFFIXES.sub("", plain))
    return SAME_SHAPE.get(bare) or {_bare(one): one for one in shipped()}.get(bare, "")


def _bare(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _numbers(name: str) -> list[str]:
    return re.findall(r"\d+", name)


class UnknownModel(BadArgument):
    """A name that no shipped model has; the message says which one may be meant."""

    def __init__(self, name: str, hint: str) -> None:
        self.law, self.argument, self.value, self.expected = "decoder", "model", name, hint
        ValueError.__init__(self, f"no model {name!r}: {hint} Of any other, give its config.json.")


@functools.cache
def decoder(name: str) -> Decoder:
    """The `Decoder` of a shipped model, by any of its names. Raises UnknownModel for another.

    >>> decoder("nvidia/Llama-3.1-8B-Instruct-FP8").parameters
    8.03 billion parameters
    """
    shape = shape_of(name)
    if not shape:
        names, last = sorted(shipped()), name.rpartition("/")[2]
        # Another number is another model, no slip of the pen.
        alike = [one for one in names if re.findall(r"\d+", one) == re.findall(r"\d+", last)]
        near = nearest(last, alike)
        hint = f"did you mean {near}?" if near else f"there are {', '.join(names)}."
        raise UnknownModel(name, hint)
    return replace(read_config(shipped()[shape]), name=shape)


def load(model: str) -> Decoder:
    """The `Decoder` of a config.json, of the folder that holds one, or of a shipped model's name.

    Raises:
        ConfigRefused: a config.json whose keys can't all be counted.
        OSError, ValueError: no such file, no JSON object in it, or a name that is not known.
    """
    path = Path(model)
    if path.is_file() or path.suffix in (".json", ".gguf") or (path / "config.json").is_file():
        return read_config(path)
    return decoder(model)


def from_sizes(
    layers: int, width: int, heads: int, hidden: int, vocabulary: int, *, head_width: int = 0,
    kv_heads: int = 0, context: int = 0, mlp_matrices: int = 3, tied_embeddings: bool = False,
    experts: int = 0, active_experts: int = 0, shared_experts: int = 0, expert_hidden: int = 0,
    dense_layers: int = 0,
) -> Decoder:  # fmt: skip
    """The `Decoder` of a model of which a table gives sizes alone. With two MLP matrices it is a
    GPT: biases everywhere, norms with scale and shift, `context` learned positions; with three a
    Llama: a gated MLP, no bias. `dense_layers` of a model with experts have a plain MLP.

    >>> from_sizes(32, 4096, 32, 14336, 128256, kv_heads=8).parameters
    8.03 billion parameters
    """
    sizes = {"layers": layers, "width": width, "heads": heads, "hidden": hidden}
    sparse = layers - dense_layers if experts else 0
    sizes |= {"vocabulary": vocabulary} | ({"sparse layers": sparse} if experts else {})
    for name, value in sizes.items():
        checked("from_sizes", name, value, count())
    if mlp_matrices not in (2, 3):
        raise BadArgument("from_sizes", "mlp_matrices", mlp_matrices, "2 (a GPT) or 3 (gated)")
    gpt, kv_heads, head_width = mlp_matrices == 2, kv_heads or heads, head_width or width // heads
    biases = gpt * ((heads + 2 * kv_heads) * head_width + width)
    attention = Attention(width, heads, kv_heads, head_width, vectors=biases)
    norms, narrow = 2 * width * (1 + gpt), expert_hidden or hidden
    plain = Layer(attention, Mlp(width, hidden, mlp_matrices, gpt), norms, layers - sparse)
    kinds = [plain] if plain.repeat else []
    if experts:
        shared = Mlp(width, shared_experts * narrow, mlp_matrices) if shared_experts else None
        mlp = Experts(width, narrow, experts, active_experts, mlp_matrices, shared=shared)
        kinds.append(Layer(attention, mlp, norms, sparse))
    extras = width * (1 + gpt) + gpt * context * width
    return Decoder(width, vocabulary, tied_embeddings, tuple(kinds), extras)
