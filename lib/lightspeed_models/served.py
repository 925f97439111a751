"""A model served at a load: the time between its tokens and the time to the first, by
`lightspeed_models.llm.step.mixed_step` and the constants of an engine.

The load is a closed loop: so many requests are in flight, and each that ends makes room for the
next. Over the tokens of one request, as many others are read as are in flight, a chunk a step.
"""

import functools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from lightspeed.catalog import find
from lightspeed.elementwise import Result, Value, maximum, minimum
from lightspeed.errors import BadArgument
from lightspeed_models.inference_step import replica
from lightspeed_models.llm.decoder import Decoder, Experts
from lightspeed_models.llm.shipped import decoder, shape_of
from lightspeed_models.llm.step import IDEAL, Bill, Engine, Replica, cached_heads, step_bill

__all__ = (
    "Measured", "Refused", "Served", "between", "first", "measured", "measured_rows",
    "served_replica",
)  # fmt: skip

# Tokens of prompts that a replica of attention reads in a step: max_num_batched_tokens of vLLM and
# max_num_tokens of TensorRT-LLM in published configurations. The rows do not say theirs.
CHUNK = 8192
SYSTEMS = {  # as published -> as the catalog has it
    "b200_sxm": "b200", "b300_sxm": "b300", "h100": "h100_sxm", "h200": "h200_sxm",
    "a100_sxm": "a100_80gb",
}  # fmt: skip
FORMATS = ("bf16", "fp8", "fp4", "int4")
ENGINES = ("vllm", "trtllm", "sglang")
ALIASES = {name: name for name in ENGINES} | {"tensorrt-llm": "trtllm", "trt-llm": "trtllm"}
# As published -> whether the GPUs that decode read prompts too.
MODES = {"": True, "agg": True, "aggregated": True, "disagg": False, "disaggregated": False}
DRAFTS = "drafts"  # the mode of a run that says how many of its drafts were accepted
MOST = 100_000_000  # of anything that is counted in a row
# The number format of a model's weights as its makers publish them, where it is not bf16.
NATIVE = {
    "DeepSeek-V3": "fp8", "DeepSeek-V3.2": "fp8", "MiniMax-M2.5": "fp8", "Kimi-K2.5": "int4",
    "gpt-oss-120b": "fp4", "gpt-oss-20b": "fp4",
}  # fmt: skip
# Of a GPU's memory an engine takes, by default: gpu_memory_utilization of vLLM and
# mem_fraction_static of SGLang, weights included; free_gpu_memory_fraction of TensorRT-LLM, of what
# the weights leave.
TAKEN = {"vllm": 0.9, "sglang": 0.85, "trtllm": 0.9}
SLACK = 0.02  # a bound counts as beaten beyond the rounding of a data sheet
TWICE = "the same measurement stands there twice"
BEATEN = "faster than its bound: mislabelled, or it drafts tokens ahead"
RUNTIME = 2e9  # bytes a GPU for the runtime, its buffers and graphs


class Refused(ValueError):
    """A row or a layout that this law does not answer for; its text is the reason."""


def served_replica(system: str, tensor: int, data: int, number_format: str) -> Replica:
    """The `Replica` of a GPU. Weights of 4 bits on a GPU without such products, and 4-bit integers
    on any, are unpacked and multiplied in bf16.
    """
    chip = SYSTEMS.get(system, system)
    if number_format not in ("int4", "fp4") or (
        number_format == "fp4" and "fp4" in find(chip).numbers
    ):
        return replica(chip, tensor, data, number_format)
    packed = 0.5 + 1 / 16  # with a scale for 16 or 32 of them
    return replace(replica(chip, tensor, data, "bf16"), weight_bytes=packed)


@dataclass(frozen=True)
class Served:
    """A model on the GPUs that decode and those that read prompts, which may be the same.

    `requests` are in flight on one worker of those that decode, `decoders` in number; `readers`
    read prompts. `capacity` is a GPU's memory in bytes, `engine` one of `ENGINES`.

    Where memory holds fewer than those in flight, the others wait for a place.
    """

    model: Decoder
    decode: Replica
    prefill: Replica
    capacity: float
    requests: float
    prompt: int
    output: int
    together: bool = True
    decoders: int = 1
    readers: int = 1
    engine: str = "vllm"

    @functools.cached_property
    def inside(self) -> float:
        """Requests of those in flight that have a place; all, where memory by an engine's own
        setting would not even hold one: then it was set otherwise.
        """
        places = self.places()
        return min(self.requests, places) if places >= 1 else self.requests

    @property
    def waiting(self) -> float:
        """Tokens that others write before a request gets a place: a closed loop of so many more
        than there are places goes round in the time of all.
        """
        return (self.requests / self.inside - 1) * self.output

    @property
    def held(self) -> float:
        """Tokens that a request holds on average, half of its own written."""
        return self.prompt + self.output / 2

    @property
    def chunk(self) -> float:
        """Tokens of prompts in a step that reads some: of one, or of those that come a step."""
        return min(CHUNK * self.decode.data, self.prompt * max(1, self.inside / self.output))

    @property
    def reads(self) -> float:
        """Steps that read prompts, for each step of decoding, on the GPUs that decode."""
        return self.inside * self.prompt / self.output / self.chunk if self.together else 0.0

    @property
    def crowd(self) -> float:
        """Other requests that a replica of attention that reads prompts has in flight."""
        return max(0, self.inside * self.decoders / self.readers / self.prefill.data - 1)

    def decoding(self) -> Bill:
        """The step that gives each request its next token."""
        return step_bill(self.model, self.decode, 0, self.inside, self.held)

    def mixed(self) -> Bill:
        """The step that reads a chunk beside all requests."""
        many = max(1, self.chunk / self.prompt)
        tokens = self.chunk if self.together else 0
        return step_bill(
            self.model, self.decode, tokens, self.inside, self.held, self.prompt / 2, many
        )

    def own_chunk(self) -> Bill:
        """The step that reads a chunk of one prompt a replica of attention, beside the others."""
        data = self.prefill.data
        rows = max(0, self.inside - data) if self.together else 0
        tokens = min(self.prompt, CHUNK) * data
        return step_bill(self.model, self.prefill, tokens, rows, self.held, self.prompt / 2, data)

    def bound(self) -> float:
        """Seconds between tokens that no engine beats: a step of decoding by data sheets alone."""
        return self.decoding().step(IDEAL).time

    def between(self, engine: Engine) -> float:
        """Seconds between the tokens of a request."""
        steps = self.decoding().step(engine).time, self.mixed().step(engine).time
        return float(between(self.reads, *steps))

    def first(self, engine: Engine) -> float:
        """Seconds to the first token."""
        steps = self.decoding().step(engine).time, self.own_chunk().step(engine).time
        wait = self.waiting * self.between(engine)
        return float(wait + first(self.prompt, self.crowd, *steps, engine))

    def weights(self) -> float:
        """Bytes of weights on the GPUs that decode: experts once, the rest in each replica."""
        experts = sum(
            layer.repeat * layer.mlp.experts * layer.mlp.expert.matrices
            for layer in self.model.layers
            if isinstance(layer.mlp, Experts)
        )
        rest = self.model.parameters - experts
        return float((rest * self.decode.data + experts) * self.decode.weight_bytes)

    def room(self) -> float:
        """Bytes for requests on the GPUs that decode; below 0 the weights don't fit."""
        taken, gpus = TAKEN[self.engine], self.decode.gpus
        if self.engine == "trtllm":
            left = (self.capacity - RUNTIME) * gpus - self.weights()
            return taken * left if left > 0 else left
        return (self.capacity * taken - RUNTIME) * gpus - self.weights()

    def places(self) -> float:
        """Requests whose caches and states fit; beyond its heads a cache is there in copies.
        TensorRT-LLM admits a request when it could be written to its end, the others when they hold
        what there is on average.
        """
        heads = max((cached_heads(la.mixer) for la in self.model.layers if la.mixer), default=1)
        copies = max(1, self.decode.tensor / heads)
        tokens = self.prompt + self.output if self.engine == "trtllm" else self.held
        held = self.model.request_bytes(int(tokens), self.decode.cache_bytes)
        return max(0.0, self.room() / (held * copies))

    def tokens(self) -> float:
        """Tokens of all requests that fit."""
        each = self.prompt + self.output if self.engine == "trtllm" else self.held
        return self.places() * each


def between(reads: Value, decoding: Value, mixed: Value) -> Result:
    """Seconds between tokens: some steps read prompts beside decoding; where there is more to read
    than steps, decoding waits for the rest.
    """
    return (1 - minimum(reads, 1)) * decoding + reads * mixed


def first(prompt: Value, crowd: Value, decoding: Value, chunk: Value, engine: Engine) -> Result:
    """Seconds to the first token: a front, the steps that are queued, one's own chunks, and those
    of others that came in the same moment, whose number swings with the root of those in flight.
    """
    own = maximum(1, prompt / CHUNK) * chunk * engine.reading
    return engine.front + engine.ahead * decoding + own * (1 + engine.crowd * crowd**0.5)


@dataclass(frozen=True)
class Measured:
    """A published row as this law reads it: the load, the engine, and its two times (s)."""

    run: Served
    model: str
    system: str
    engine: str
    number_format: str
    per_token: float
    first_token: float


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
    told = re.search(r"silicon_concurrency=(\d+\.?\d*)", str(row.get("silicon_data_source") or ""))
    concurrency = float(told[1]) if told else _whole(row, "concurrency", 0)
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
        raise Refused("neither batch nor concurrency is given")
    requests = concurrency / decoders or batch * decode.data
    stated = batch * (_whole(row, "attention_dp_size", 0) or 1)
    if together and batch and concurrency and abs(stated - concurrency) > 0.5:
        raise Refused("batch and concurrency contradict each other")
    prefill = decode if together else _replica(row, "prefill_", system, kind, model)
    run = Served(
        model, decode, prefill, float(find(system).hbm_capacity), requests, prompt, output,
        together, decoders, readers, engine,
    )  # fmt: skip
    if run.weights() > run.capacity * decode.gpus:
        raise Refused("the weights do not fit on the GPUs that it names")
    return Measured(run, name, str(row["system"]), engine, kind, *times)


def _plain(row: Mapping[str, Any], name: str) -> str:
    """A word in small letters, with hyphens for spaces and underscores in it."""
    return re.sub(r"[\s_]+", "-", str(row.get(name) or "").strip().lower())


def _number(row: Mapping[str, Any], name: str) -> float:
    try:
        value = float(row.get(name) or "nan")
    except ValueError:
        value = float("nan")
    if not 0 < value < float("inf"):
        raise Refused(f"{name} is no number above 0")
    return value


def _whole(row: Mapping[str, Any], name: str, default: int | None = None) -> int:
    if default is not None and str(row.get(name, "")) in ("", "nan", "None", "0", "0.0"):
        return default
    value = _number(row, name)
    if value % 1 or value > MOST:
        raise Refused(f"{name} is no whole number up to {MOST:,}")
    return int(value)


def _format(row: Mapping[str, Any]) -> str:
    """The number format: as told, else by the model's name, else as its makers publish it."""
    told = _plain(row, "precision")
    if not told:
        name = str(row["model_path"])
        named = re.search(r"(fp4|fp8|bf16|int4)(?![0-9])", name.lower())
        return named[1] if named else NATIVE.get(shape_of(name), "bf16")
    told = {"nvfp4": "fp4", "mxfp4": "fp4", "bfloat16": "bf16", "w4a16": "int4"}.get(told, told)
    if told not in FORMATS:
        raise Refused("number format is not bf16, fp8, fp4 or int4")
    return told


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
    found, refused = dict[int, Measured](), dict[int, str]()
    seen = set[str]()
    for i, row in enumerate(rows):
        try:
            one = measured(row, other)
        except Refused as error:
            refused[i] = str(error)
            continue
        key = f"{one.per_token:.6g} {one.first_token:.6g} {one.model}"
        if key in seen:
            refused[i] = TWICE
        elif one.per_token < one.run.bound() / (1 + SLACK):
            refused[i] = BEATEN
        else:
            found[i] = one
        seen.add(key)
    return found, refused
