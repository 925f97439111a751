"""Rows of published runs of serving, as the law reads them, and the reasons of those it refuses.

A time to the first token is of a protocol, which its publisher fixes: InferenceX's are means over
ten waves of which the first comes all at once, of lengths of 80 to 100 % of the nominal ones;
NVIDIA's are the same with one length; SGLang's cookbook prints medians of a steady loop of random
lengths, with the mean number in flight.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from lightspeed.catalog import find
from lightspeed.errors import BadArgument
from lightspeed_models.llm import Decoder, Engine, Experts, Replica, decoder
from lightspeed_models.llm.shipped import shape_of
from lightspeed_models.served import (
    ENGINES,
    FORMATS,
    NATIVE,
    SLACK,
    SYSTEMS,
    Served,
    served_replica,
)  # fmt: skip

ALIASES = {name: name for name in ENGINES} | {"tensorrt-llm": "trtllm", "trt-llm": "trtllm"}
# As published -> whether the GPUs that decode read prompts too.
MODES = {"": True, "agg": True, "aggregated": True, "disagg": False, "disaggregated": False}
DRAFTS = "drafts"  # the mode of a run that says how many of its drafts were accepted
MOST = 100_000_000  # of anything that is counted in a row
TWICE = "the same measurement stands there twice"
BEATEN = "faster than its bound: mislabelled, or it drafts tokens ahead"
WAVES = 10  # requests of a run, in those that are in flight
NOMINAL = 0.9  # of the nominal lengths, InferenceX's mean


class Refused(ValueError):
    """A row or a layout that this law does not answer for; its text is the reason."""


@dataclass(frozen=True)
class Measured:
    """A published row as this law reads it: the load, the engine, and its two times (s); the
    publisher, and the waves of its protocol, 0 for a steady loop.
    """

    run: Served
    model: str
    system: str
    engine: str
    number_format: str
    per_token: float
    first_token: float
    publisher: str = ""
    waves: int = 0

    def told(self, engine: Engine) -> tuple[float, float]:
        """Seconds between tokens and to the first, by the law, in the protocol of the row."""
        return self.run.between(engine), self.run.first(engine, self.waves)


def measured(row: Mapping[str, Any], other: Decoder | None = None) -> Measured:
    """A row of AIConfigurator's `silicon_sample`, by its columns; `Refused` says why not. A model
    that is not known is taken to be the `other`.

    Where experts are split both ways the source writes the product of two layouts of the same
    GPUs: tensor 8 and expert 8 on eight GPUs stand as 64. Rows without batches have one worker.
    """
    engine = ALIASES.get(_plain(row, "backend"), "")
    if not engine:
        raise Refused("engine is not vllm, trtllm or sglang")
    name = str(row.get("model_path") or "")
    try:
        model = decoder(name)
    except ValueError:
        if other is None:
            raise Refused("model is not known") from None
        model = other
    together = MODES.get(_plain(row, "mode"))
    if together is None:
        drafts = row.get("mode") == DRAFTS
        raise Refused("it drafts tokens ahead" if drafts else "mode is neither agg nor disagg")
    prompt, output = _whole(row, "isl"), _whole(row, "osl")
    if output == 1:
        raise Refused("one token out: there is no time between tokens")
    match = re.search(r"silicon_concurrency=(\d+\.?\d*)", str(row.get("silicon_data_source") or ""))
    concurrency = float(match[1]) if match else _whole(row, "concurrency", 0)
    kind = _format(row)
    times = [_number(row, f"silicon_{name}_ms") / 1e3 for name in ("tpot", "ttft")]
    system = "_".join(_plain(row, "system").removeprefix("nvidia").split("-")).strip("_")
    system = SYSTEMS.get(system, system)
    decode = _replica(row, "" if together else "decode_", system, kind, model)
    batch = _whole(row, "batch_size" if together else "decode_batch_size", 0)
    workers = [
        0 if together else _whole(row, f"{one}_num_workers", 0) for one in ("decode", "prefill")
    ]
    if not together and not all(workers):
        raise Refused("how many workers decode and read prompts is not said")
    decoders, readers = (max(1, each) for each in workers)
    if not (batch or concurrency):
        raise Refused("the row gives neither batch nor concurrency")
    requests = concurrency / decoders or batch * decode.data
    clients = batch * (_whole(row, "attention_dp_size", 0) or 1)
    if together and batch and concurrency and abs(clients - concurrency) > 0.5:
        raise Refused("batch and concurrency contradict each other")
    prefill = decode if together else _replica(row, "prefill_", system, kind, model)
    run = Served(
        model, decode, prefill, float(find(system).hbm_capacity), requests, prompt, output,
        together, decoders, readers, engine,
    )  # fmt: skip
    if run.weights() > run.capacity * decode.gpus:
        raise Refused("the weights do not fit on the GPUs that it names")
    publisher = str(row.get("publisher") or "")
    if publisher == "nvidia":
        run = replace(run, even=True)
    elif publisher == "inferencex":
        mean = max(1, round(NOMINAL * prompt)), max(2, round(NOMINAL * output))
        gap = _gap(engine, system, name, requests, prompt)
        run = replace(run, prompt=mean[0], output=mean[1], gap=gap)
    waves = WAVES if publisher in ("nvidia", "inferencex") else 0
    return Measured(
        run, name, str(row["system"]), engine, kind, times[0], times[1], publisher, waves
    )


def _gap(engine: str, system: str, name: str, requests: float, prompt: int) -> int:
    """Steps between two looks at the queue: scheduler_recv_interval of InferenceX's recipes for
    SGLang on Blackwell and AMD.
    """
    if engine != "sglang" or system.startswith("h"):
        return 1
    shape = shape_of(name)
    if shape.startswith("DeepSeek"):
        return 30 if requests >= 16 and prompt < 5000 else 10
    return (30 if requests >= 16 else 10) if shape.startswith("Qwen3.5") else 1


def _plain(row: Mapping[str, Any], name: str) -> str:
    """A word in small letters, with hyphens for spaces and underscores in it."""
    return re.sub(r"[\s_]+", "-", str(row.get(name) or "").strip().lower())


def _number(row: Mapping[str, Any], name: str) -> float:
    try:
        value = float(row.get(name) or "nan")
    except ValueError:
        value = float("nan")
    if not 0 < value < float("inf"):
        raise Refused(f"{name} is not a number above 0")
    return value


def _whole(row: Mapping[str, Any], name: str, default: int | None = None) -> int:
    if default is not None and str(row.get(name, "")) in ("", "nan", "None", "0", "0.0"):
        return default
    value = _number(row, name)
    if value % 1 or value > MOST:
        raise Refused(f"{name} is not a whole number up to {MOST:,}")
    return int(value)


def _format(row: Mapping[str, Any]) -> str:
    """The number format: as told, else by the model's name, else as its makers publish it."""
    precision = _plain(row, "precision")
    if not precision:
        name = str(row["model_path"])
        match = re.search(r"(fp4|fp8|bf16|int4)(?![0-9])", name.lower())
        return match[1] if match else NATIVE.get(shape_of(name), "bf16")
    precision = {"nvfp4": "fp4", "mxfp4": "fp4", "bfloat16": "bf16", "w4a16": "int4"}.get(
        precision, precision
    )
    if precision not in FORMATS:
        raise Refused("number format is not bf16, fp8, fp4 or int4")
    return precision


def _replica(row: Mapping[str, Any], whose: str, system: str, kind: str, model: Decoder) -> Replica:
    tensor, data = _whole(row, f"{whose}tp_size"), _whole(row, f"{whose}attention_dp_size", 1)
    sparse = any(isinstance(layer.mlp, Experts) for layer in model.layers)
    split, expert = (_whole(row, f"{whose}moe_{n}_size", 0) if sparse else 0 for n in ("tp", "ep"))
    if split == expert > 1 and tensor * data == split * expert:
        tensor, data, expert = (split, 1, 1) if data == 1 else (1, split, 1)
    elif tensor == data > 1 and split == 1 and expert == tensor * data:
        tensor, expert = 1, data
    if tensor > 8:
        raise Refused("more than eight GPUs split a layer: several workers in one layout")
    if sparse and split and expert and split * expert != tensor * data:
        raise Refused("layouts of attention and of experts contradict each other")
    if not sparse and data > 1:
        raise Refused("replicas of attention for a model without experts")
    if _whole(row, f"{whose}pp_size", 1) > 1:
        raise Refused("a pipeline")
    try:
        return served_replica(system, tensor, data, kind)
    except BadArgument as error:
        raise Refused(f"{system} in {kind}: not in the catalog") from error


def measured_rows(
    rows: Iterable[Mapping[str, Any]], other: Decoder | None = None
) -> tuple[dict[int, Measured], dict[int, str]]:
    """(number of a row -> what this law reads of it, number -> why it refuses it). A measurement
    that is there twice counts once, and one that beats its bound by more than the rounding of a
    data sheet is mislabelled or drafts tokens ahead.
    """
    by_number, reasons = dict[int, Measured](), dict[int, str]()
    keys = set[str]()
    for i, row in enumerate(rows):
        try:
            one = measured(row, other)
        except Refused as error:
            reasons[i] = str(error)
            continue
        key = f"{one.per_token:.6g} {one.first_token:.6g} {one.model}"
        if key in keys:
            reasons[i] = TWICE
        elif one.per_token < one.run.bound() / (1 + SLACK):
            reasons[i] = BEATEN
        else:
            by_number[i] = one
        keys.add(key)
    return by_number, reasons
