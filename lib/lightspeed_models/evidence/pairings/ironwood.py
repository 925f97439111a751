"""Google's training steps on TPU7x: the FLOPs that they count, and what the peak allows."""

from __future__ import annotations

import functools

import numpy as np

from lightspeed.catalog import find
from lightspeed.training import training_time
from lightspeed_models.evidence.pairing import Judged, Pairing
from lightspeed_models.evidence.word_column import Words
from lightspeed_models.llm.config import read_config
from lightspeed_models.llm.shipped import decoder

PEAKS = {"bf16": "bf16", "fp8_full": "fp8"}
NO_SHAPE = "the shape is not known here"
# What the table calls a model -> its name among the served models.
NAMES = {
    "deepseek-v3": "DeepSeek-V3",
    "gpt-oss-120b": "gpt-oss-120b",
    "llama3.1-405b": "Llama-3.1-405B",
    "llama3.1-70b": "Llama-3.1-70B",
    "qwen3-235b-a22b": "Qwen3-235B-A22B",
}
# Gemma 4 by the config.json of its release: five layers with a window of 1,024, then one without.
GEMMA = {
    "attention_k_eq_v": True, "global_head_dim": 512, "head_dim": 256, "sliding_window": 1024,
    "hidden_size_per_layer_input": 0, "num_kv_shared_layers": 0, "vocab_size": 262144,
}  # fmt: skip
SHAPES = {
    "gemma4-26b": {
        "hidden_size": 2816, "intermediate_size": 2112, "num_hidden_layers": 30,
        "num_attention_heads": 16, "num_key_value_heads": 8, "num_global_key_value_heads": 2,
        "enable_moe_block": True, "moe_intermediate_size": 704, "num_experts": 128,
        "top_k_experts": 8,
    },
    "gemma4-31b": {
        "hidden_size": 5376, "intermediate_size": 21504, "num_hidden_layers": 60,
        "num_attention_heads": 32, "num_key_value_heads": 16, "num_global_key_value_heads": 4,
    },
}  # fmt: skip


@functools.cache
def shape(name):
    """The `Decoder` of a model, or None."""
    if name in NAMES:
        return decoder(NAMES[name])
    if name not in SHAPES:
        return None
    text = GEMMA | SHAPES[name]
    kinds = [*["sliding_attention"] * 5, "full_attention"] * (text["num_hidden_layers"] // 6)
    return read_config(
        {
            "architectures": ["Gemma4ForConditionalGeneration"],
            "tie_word_embeddings": True,
            "text_config": text | {"layer_types": kinds},
        }
    )


def known(rows):
    """(the rows whose shape is known, what the others say of themselves and why they are left)."""
    has_shape = np.array([shape(name) is not None for name in rows["model"]])
    silent = tuple((rows.name(int(row)), NO_SHAPE) for row in np.flatnonzero(~has_shape))
    return rows.where(has_shape), silent


def needed(rows):
    """FLOPs to train on a token as MaxText counts them: a causal mask halves the scores."""
    pairs = zip(rows["model"], rows["sequence"], strict=True)
    return np.array([shape(n).flops_per_token(float(s) / 2, "training") for n, s in pairs])


def counted(rows):
    """The FLOP/s that the printed tokens/s take, beside the printed FLOP/s."""
    rows, silent = known(rows)
    kinds = ["windows" if n.startswith(("gemma", "gpt")) else "no windows" for n in rows["model"]]
    return Judged(
        needed(rows) * rows["rate"], rows["model_rate"], Words.of(kinds), rows.name, left=silent
    )


def at_peak(rows):
    """The time of a step whose every FLOP is done at the peak of its format."""
    rows, silent = known(rows)
    flops = needed(rows) * rows["batch"] * rows["sequence"]
    peak = rows["precision"].lookup(lambda p: getattr(find("tpu7x"), PEAKS[p]))
    regime = []
    for name, kind in zip(rows["model"], rows["precision"], strict=True):
        experts = bool(shape(name).experts)
        regime.append(f"{'experts' if experts else 'no experts'}, {PEAKS[kind]}")
    time = training_time(flops, rows["chips"], peak, 1.0)
    return Judged(time, rows["time"], Words.of(regime), rows.name, left=silent)


PAIRINGS = (
    Pairing(
        key="ironwood-flops",
        title="FLOPs of a training step by the shape of a model against those printed for TPU7x",
        law="lightspeed_models.llm.decoder.Decoder",
        set="ironwood",
        chapter="06",
        quantity="model FLOP/s of a chip",
        unit="FLOP/s",
        judge=counted,
        lesson="MaxText counts half of the scores, for the mask is causal",
    ),
    Pairing(
        key="ironwood-bound",
        title="The bound of a training step on TPU7x",
        law="lightspeed.training.training_time",
        set="ironwood",
        chapter="06",
        judge=at_peak,
        bound="least",
    ),
)
