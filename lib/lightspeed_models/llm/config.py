"""A model's config.json, read into a `Decoder`: an allow-list of architectures, each with its own
defaults. Every key is used, known to change no count, or refused by name: a plausible wrong count
is worse than none.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from lightspeed.errors import BadArgument
from lightspeed_models.llm.decoder import Decoder
from lightspeed_models.llm.defaults import DEFAULTS
from lightspeed_models.llm.families import FAMILIES
from lightspeed_models.llm.keys import ConfigRefused, Keys
from lightspeed_models.llm.strangers import is_gguf, refuse_stranger, same_body
from lightspeed_models.llm.towers import tower


def read_config(config: str | Path | Mapping[str, Any]) -> Decoder:
    """The decoder that a config.json describes, given as a path or as a dict.

    Beside a path, `model.safetensors.index.json` is compared if it is there.

    Raises:
        ConfigRefused: an architecture that is not known, or a key that may change the count.
        FileNotFoundError, ValueError: no such file, or no JSON object in it.
    """
    path = None if isinstance(config, Mapping) else Path(config)
    if path is not None:
        path = path / "config.json" if path.is_dir() else path
        if is_gguf(path.read_bytes()[:4]):
            raise ConfigRefused(
                ["a GGUF file: its weights and its description are one. Give the config.json of the"
                 " model that it was made of, and the format by --weights int4"]
            )  # fmt: skip
        try:
            config = json.loads(path.read_text("utf-8"))
        except (UnicodeDecodeError, json.JSONDecodeError) as error:
            raise ValueError(f"{path}: not JSON: {error}") from error
    if not isinstance(config, Mapping):
        raise ValueError("a config.json holds one object, {...}")
    names = config.get("architectures") or []
    name = str(names[0] if isinstance(names, list) and names else names or "")
    kind, by_kind = config.get("model_type"), False
    if not name and isinstance(kind, str) and _plain(kind) in _KINDS:
        name, by_kind = _KINDS[_plain(kind)], True
    notes: list[str] = []
    if name not in FAMILIES:
        refuse_stranger(config, name)
        if isinstance(inside := config.get("llm_config"), Mapping):
            within = read_config(inside)
            note = f"{name}: its language part is counted ({within.name}), not its tower"
            return replace(within, name=name, assumed=(note, *within.assumed))
        body = same_body(config, name, _KINDS.get(_plain(str(kind)), ""))
        text = config.get("text_config")
        if body is None and isinstance(text, Mapping) and text.get("model_type"):
            within = read_config({**_LLAMA, **text} if text["model_type"] == "llama" else text)
            note = f"{name}: its language part is counted, not its tower"
            return replace(within, name=name, assumed=(note, *within.assumed))
        if body is None:
            near = get_close_matches(name, FAMILIES, 1, cutoff=0.95)  # a slip of the pen, no kin
            slip = f"; the nearest that is known: {near[0]}" if near else ""
            raise ConfigRefused([
                f"architectures = {names or None}: not known here{slip}. Its layers may differ from"
                " all that are, so that a count would be a guess; if it has the shape of a known"
                " one, say so in a copy of the file"
            ])  # fmt: skip
        name, note = body
        notes.append(note)
    inner = config.get("text_config") or {}
    if not isinstance(inner, Mapping):
        raise ConfigRefused([f"text_config = {inner!r}: an object with the text model's keys"])
    both = {key: inner[key] for key in inner if inner[key] is not None or key not in config}
    keys = Keys({**config, **both, "text_config": None}, DEFAULTS.get(name))
    try:
        decoder = FAMILIES[name](keys)
    except BadArgument as error:
        raise ConfigRefused([str(error)]) from error
    for key in sorted(keys.asked & inner.keys()):
        if None not in (config.get(key), inner[key]) and config[key] != inner[key]:
            twice = f"{config[key]!r} outside of text_config, {inner[key]!r} within"
            keys.refused.append(f"{key}: {twice}")
    keys.end()
    vision = tower(config, decoder.width)
    if vision is None and (config.get("vision_config") or name.endswith("ConditionalGeneration")):
        keys.assumed.append("the tower that sees is not counted: its kind is not known here")
    keys.assumed[:0] = notes
    if by_kind:
        keys.assumed.insert(0, f"architectures is missing: {name}, by model_type = {kind!r}")
    assumptions = tuple(dict.fromkeys(keys.assumed))
    decoder = replace(decoder, tower=vision or 0)
    if path is not None:
        dtype = config.get("dtype") or config.get("torch_dtype") or keys.config.get("dtype")
        plain = config.get("quantization_config") is None
        assumptions += _compared(path, decoder, _BYTES.get(str(dtype)) if plain else None)
    return replace(decoder, name=str(config.get("_name_or_path") or name), assumed=assumptions)


# What transformers' LlamaConfig takes where a text_config inside of another says no sizes.
_LLAMA = {
    "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
    "num_attention_heads": 32,
}  # fmt: skip


def _plain(kind: str) -> str:
    return kind.lower().removesuffix("_text").replace("_", "")


# The architecture that a `model_type` stands for, where a file names none.
_KINDS = {
    _plain(name.removesuffix("ForCausalLM").removesuffix("ForConditionalGeneration")): name
    for name in sorted(FAMILIES, key=lambda name: (name.endswith("ForCausalLM"), name))
}


_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}


def _compared(path: Path, decoder: Decoder, width: int | None) -> tuple[str, ...]:
    """What the index of the weights beside a config.json says of the count; `width` is the bytes of
    each, where the file says it.
    """
    index = path.with_name("model.safetensors.index.json")
    if not index.exists():
        return ()
    try:
        size = json.loads(index.read_text("utf-8"))["metadata"]["total_size"]
        each = size / (decoder.parameters + decoder.tower)
    except (OSError, ValueError, KeyError, TypeError):
        return (f"{index.name} has no metadata.total_size to compare with",)
    note = f"{index.name}: {size:,} bytes, {each:.4g} for each parameter counted here"
    if width and abs(each / width - 1) > 1e-3:
        more = "more is" if each > width else "less is"
        note += f"; {more} stored than counted, {each / width - 1:+.2%}"
    return (note,)
