"""A language model: layers, read from a config.json by its path or by the model's name, and what
a step of serving or of training takes of them.
"""

from lightspeed_models.llm.config import read_config
from lightspeed_models.llm.decoder import Decoder, Experts, Layer, Mlp
from lightspeed_models.llm.keys import ConfigRefused
from lightspeed_models.llm.shipped import decoder, from_sizes, load
from lightspeed_models.llm.step import (
    IDEAL,
    Bill,
    Engine,
    Replica,
    engine,
    mixed_step,
    replica,
    step_bill,
)
from lightspeed_models.llm.training import model_activation_bytes, training_memory

__all__ = (
    "IDEAL", "Bill", "ConfigRefused", "Decoder", "Engine", "Experts", "Layer", "Mlp", "Replica",
    "decoder", "engine", "from_sizes", "load", "mixed_step", "model_activation_bytes",
    "read_config", "replica", "step_bill", "training_memory",
)  # fmt: skip
