"""Files that are no config.json of a language model known here: what they are, and the way on."""

from collections.abc import Mapping
from typing import Any

from lightspeed_models.llm.families import FAMILIES
from lightspeed_models.llm.keys import ConfigRefused

ENCODERS = (
    "bert",
    "roberta",
    "electra",
    "deberta",
    "bge",
    "gte",
    "modernbert",
    "clip",
    "siglip",
    "vit",
)
# Heads on the body of a language model: what they add is a few rows.
HEADS = ("ForSequenceClassification", "ForTokenClassification", "ForRewardModel", "RewardModel",
         "ForQuestionAnswering", "ForSequenceEmbedding", "ForEmbedding", "Model")  # fmt: skip


def is_gguf(data: bytes) -> bool:
    """Whether these are the first bytes of a GGUF file."""
    return data.startswith(b"GGUF")


def refuse_stranger(config: Mapping[str, Any], name: str) -> None:
    """Raise ConfigRefused for a file of another kind, with the way on."""
    small, kind = name.lower(), str(config.get("model_type") or "").lower()
    if config.get("peft_type"):
        base = config.get("base_model_name_or_path") or "the model that it was trained on"
        _refuse(
            f"an adapter ({config['peft_type']}, rank {config.get('r')}): it has no layers of its"
            f" own. Give the config.json of its base, {base}"
        )
    if "dim" in config and "n_layers" in config:
        _refuse(
            "a vendor's own params.json: its keys leave out what changes a count. Give the"
            " config.json of the same model, in the folder of its transformers version"
        )
    if config.get("_class_name") or "_diffusers_version" in config or "unet" in small:
        _refuse(
            "a diffusion model: it makes no tokens one by one, and keeps no caches. serve and model"
            " count language models"
        )
    if "eagle" in small or "medusa" in small or "speculator" in small or "eagle" in kind:
        _refuse(
            f"a draft head ({name}): it runs beside another model. Give that model's config.json,"
            " and to `serve` how many tokens are drafted, --drafts 3"
        )
    if config.get("is_encoder_decoder") or "whisper" in small or kind in ("t5", "bart", "whisper"):
        _refuse(
            f"an encoder and a decoder ({name or kind}): its cost is that of what it reads. serve"
            " and model count models that only decode"
        )
    if any(word in small or word in kind for word in ENCODERS):
        _refuse(
            f"an encoder ({name or kind}): it reads whole texts at once, keeps no caches and writes"
            " nothing. serve and model count models that decode"
        )


def same_body(config: Mapping[str, Any], name: str, by_type: str) -> tuple[str, str] | None:
    """(the architecture whose layers those of this name are, why), if its keys say so: another
    head on a known body, or code of one's own for a known `model_type`.
    """
    for head in HEADS:
        if name.endswith(head):
            body = name.removesuffix(head) + "ForCausalLM"
            if body in FAMILIES:
                return (
                    body,
                    f"{name}: counted as {body}, whose body it has; its head is not counted",
                )
    if by_type and config.get("auto_map"):
        kind = config.get("model_type")
        return by_type, (
            f"{name} is code of its own (auto_map): counted as what its keys say of a {kind}"
            f" model, {by_type}; its code may differ"
        )
    return None


def _refuse(reason: str) -> None:
    raise ConfigRefused([reason])
