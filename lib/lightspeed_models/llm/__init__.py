"""A language model: layers, read from its config.json, and what a step of serving takes of them."""

from lightspeed_models.llm.config import read_config
from lightspeed_models.llm.decoder import Decoder, Experts, Layer, Mlp
from lightspeed_models.llm.keys import ConfigRefused
from lightspeed_models.llm.shipped import decoder, load
from lightspeed_models.llm.step import IDEAL, Bill, Engine, Replica, mixed_step, step_bill

__all__ = (
    "IDEAL", "Bill", "ConfigRefused", "Decoder", "Engine", "Experts", "Layer", "Mlp", "Replica",
    "decoder", "load", "mixed_step", "read_config", "step_bill",
)  # fmt: skip
