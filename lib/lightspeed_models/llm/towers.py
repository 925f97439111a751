"""The tower by which a model sees: its parameters, from the `vision_config` of a config.json.

Sources: the public configuration and modelling code of each (huggingface/transformers 5.24). Towers
of sound, and those that are not in the table, are left out of a count, which says so.
"""

from collections.abc import Callable, Mapping
from typing import Any

from lightspeed_models.llm.decoder import Mlp
from lightspeed_models.llm.keys import ConfigRefused, Keys


def tower(config: Mapping[str, Any], width: int) -> int | None:
    """Parameters of the tower and of what leads from it to a model of this width; None where there
    is none, or none that is known.
    """
    vision = config.get("vision_config")
    if not isinstance(vision, Mapping):
        return None
    whose = str(config.get("model_type"))
    kind = str(vision.get("model_type") or _KINDS.get(whose))
    if kind == "clip_vision_model":  # by many models, and what leads from it by each of its own
        kind = whose
    if kind not in _TOWERS:
        return None
    try:
        return _TOWERS[kind](Keys(vision), Keys(config), width)
    except (ConfigRefused, TypeError, IndexError):
        return None


def _blocks(width: int, hidden: int, *, gated: bool = False, biases: str = "") -> int:
    """A block of attention and an MLP, with two norms. The letters say what has a bias: q for
    queries, keys and values, o for what leaves attention, m for the MLP, n for the norms.
    """
    mlp = Mlp(width, hidden, 3 if gated else 2, "m" in biases)
    attention = 4 * width**2 + width * (3 * ("q" in biases) + ("o" in biases))
    return attention + mlp.matrices + mlp.vectors + 2 * width * (2 if "n" in biases else 1)


def _two_steps(inner: int, outer: int) -> int:
    """What leads to the language model: two matrices with biases."""
    return inner * inner + inner + inner * outer + outer


def _qwen2(v: Keys, model: Keys, width: int) -> int:
    inner, out = v.whole("embed_dim"), v.whole("hidden_size")
    block = _blocks(inner, int(inner * v("mlp_ratio", default=4)), biases="qomn")
    return _qwen_in(v, inner) + v.whole("depth") * block + 2 * inner + _merged(v, inner, out)


def _qwen2_5(v: Keys, model: Keys, width: int) -> int:
    inner, out = v.whole("hidden_size"), v.whole("out_hidden_size")
    block = _blocks(inner, v.whole("intermediate_size"), gated=True, biases="qom")
    return _qwen_in(v, inner) + v.whole("depth") * block + inner + _merged(v, inner, out)


def _qwen3(v: Keys, model: Keys, width: int) -> int:
    """With mergers of their own for the layers of `deepstack_visual_indexes`."""
    inner, out = v.whole("hidden_size"), v.whole("out_hidden_size")
    block = _blocks(inner, v.whole("intermediate_size"), biases="qomn")
    places = (1 + v.whole("num_position_embeddings")) * inner
    deep = len(v("deepstack_visual_indexes", default=()))
    wide = inner * v.whole("spatial_merge_size") ** 2
    mergers = (1 + deep) * _two_steps(wide, out) + 2 * inner + deep * 2 * wide
    return _qwen_in(v, inner) + places + v.whole("depth") * block + mergers


def _qwen_in(v: Keys, inner: int) -> int:
    patch = v.whole("patch_size") ** 2 * v.whole("temporal_patch_size", default=2)
    return inner * patch * v.whole("in_channels", "in_chans", default=3)


def _merged(v: Keys, inner: int, out: int) -> int:
    return _two_steps(inner * v.whole("spatial_merge_size", default=2) ** 2, out)


def _siglip(v: Keys, model: Keys, width: int) -> int:
    """Gemma 3's, without the head that pools."""
    inner, patch = v.whole("hidden_size"), v.whole("patch_size")
    if v.flag("vision_use_head", True):
        raise ConfigRefused(["vision_use_head is not false: known is a tower without its head"])
    places = inner * (v.whole("image_size") // patch) ** 2
    block = _blocks(inner, v.whole("intermediate_size"), biases="qomn")
    start = inner * (3 * patch**2 + 1) + places
    return start + v.whole("num_hidden_layers") * block + 3 * inner + inner * width


def _gemma4(v: Keys, model: Keys, width: int) -> int:
    inner, patch = v.whole("hidden_size"), v.whole("patch_size")
    block = _blocks(inner, v.whole("intermediate_size"), gated=True) + 2 * inner
    block += 2 * v.whole("head_dim")
    start = inner * (3 * patch**2 + 2 * v.whole("position_embedding_size", default=10240))
    return start + v.whole("num_hidden_layers") * block + inner * width


def _llama4(v: Keys, model: Keys, width: int) -> int:
    inner, patch = v.whole("hidden_size"), v.whole("patch_size")
    hidden, ahead = v.whole("intermediate_size"), v.whole("projector_input_dim")
    places = (v.whole("image_size") // patch) ** 2 + 1
    start = inner * (1 + places + 3 * patch**2 + 4)
    block = _blocks(inner, hidden, biases="qomn")
    ways = hidden * ahead + ahead * v.whole("projector_output_dim")
    return (
        start + v.whole("num_hidden_layers") * block + ways + v.whole("vision_output_dim") * width
    )


def _pixtral(v: Keys, model: Keys, width: int) -> int:
    inner, patch = v.whole("hidden_size"), v.whole("patch_size")
    merge = model.whole("spatial_merge_size", default=2) ** 2
    biases = 2 * width * model.flag("multimodal_projector_bias")
    ways = inner + merge * inner**2 + inner * width + width**2 + biases
    block = _blocks(inner, v.whole("intermediate_size"), gated=True)
    return inner * (3 * patch**2 + 1) + v.whole("num_hidden_layers") * block + ways


def _kimi(v: Keys, model: Keys, width: int) -> int:
    inner, patch = v.whole("vt_hidden_size", "hidden_size"), v.whole("patch_size")
    places = v.whole("init_pos_emb_height") * v.whole("init_pos_emb_width")
    block = _blocks(inner, v.whole("vt_intermediate_size", "intermediate_size"), biases="qomn")
    depth = v.whole("vt_num_hidden_layers", "num_hidden_layers")
    merge = v("merge_kernel_size", default=[2, 2])
    ways = 2 * inner + _two_steps(inner * merge[0] * merge[1], width)
    return inner * (3 * patch**2 + 1 + places + 2) + depth * block + ways


def _minimax(v: Keys, model: Keys, width: int) -> int:
    inner, out = v.whole("hidden_size"), v.whole("projection_dim")
    patch = v.whole("patch_size") ** 2 * 3 * 2
    block = _blocks(inner, v.whole("intermediate_size"), biases="qomn")
    ways = inner * out + out + out * out + out + 4 * out * width + width + width * width + width
    return inner * (patch + 2) + v.whole("num_hidden_layers") * block + ways


_TOWERS: dict[str, Callable[[Keys, Keys, int], int]] = {
    "gemma4_vision": _gemma4,
    "kimi_k25_vision": _kimi,
    "llama4_vision_model": _llama4,
    "minimax_m3_vl": _minimax,
    "pixtral": _pixtral,
    "qwen2_vl_vision": _qwen2,
    "qwen2_5_vl_vision": _qwen2_5,
    "qwen3_vl_vision": _qwen3,
    "qwen3_vl_moe_vision": _qwen3,
    "qwen3_5_vision": _qwen3,
    "qwen3_5_moe_vision": _qwen3,
    "siglip_vision_model": _siglip,
}
# A tower that does not say its own kind, by the kind of the model.
_KINDS = {
    "kimi_k25": "kimi_k25_vision", "qwen2_vl": "qwen2_vl_vision", "llama4": "llama4_vision_model",
    "qwen2_5_vl": "qwen2_5_vl_vision", "qwen3_vl": "qwen3_vl_vision",
    "qwen3_vl_moe": "qwen3_vl_vision", "qwen3_5": "qwen3_5_vision", "qwen3_5_moe": "qwen3_5_vision",
}  # fmt: skip
# Files of 2025 name the tower by its model, and Qwen's write one key for all.
_TOWERS |= {name: _TOWERS[kind] for name, kind in _KINDS.items()}
