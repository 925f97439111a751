"""Models by name: those whose config.json the course ships, and one place that reads any model."""

import functools
import json
import re
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from lightspeed.errors import nearest
from lightspeed_models.llm.config import read_config
from lightspeed_models.llm.decoder import Decoder

__all__ = ("decoder", "load", "shape_of", "shipped")

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


@functools.cache
def decoder(name: str) -> Decoder:
    """The `Decoder` of a shipped model, by any of its names. Raises ValueError for another.

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
        raise ValueError(f"no model {name!r}: {hint} Of any other, give its config.json.")
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
