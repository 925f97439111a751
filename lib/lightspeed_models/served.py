"""A model served at a load: bills of its two kinds of step, room for its requests, and the state
that `served_law` makes of them. Rows of published runs are read in `served_rows`.
"""

import functools
from dataclasses import dataclass
from typing import Any

from lightspeed.catalog import Entry, find
from lightspeed.elementwise import maximum, minimum, where
from lightspeed.errors import BadArgument, one_of
from lightspeed_models.llm import IDEAL, Bill, Decoder, Engine, Replica, step_bill
from lightspeed_models.llm.checkpoint import WIDTHS, Formats
from lightspeed_models.llm.step import WEIGHTS
from lightspeed_models.served_law import CHUNK, SPREAD, Load, Pace, State, state
from lightspeed_models.served_memory import Share, request_bytes, room_bytes, weight_bytes

SYSTEMS = {  # as published -> as the catalog has it
    "b200_sxm": "b200", "b300_sxm": "b300", "h100": "h100_sxm", "h200": "h200_sxm",
    "a100_sxm": "a100_80gb",
}  # fmt: skip
# The number format of a model's weights as its makers publish them, where it is not bf16.
NATIVE = {
    "DeepSeek-V3": "fp8", "DeepSeek-V3.2": "fp8", "MiniMax-M2.5": "fp8", "Kimi-K2.5": "int4",
    "gpt-oss-120b": "fp4", "gpt-oss-20b": "fp4",
}  # fmt: skip
FORMATS = ("bf16", "fp8", "fp4", "int4")
ENGINES = ("vllm", "trtllm", "sglang")
SLACK = 0.02  # a bound counts as beaten beyond the rounding of a data sheet


def served_replica(
    system: str | Entry, tensor: int, data: int, number_format: str, formats: Formats | None = None
) -> Replica:
    """The `Replica` of a GPU. Weights in a format that a GPU can't multiply are unpacked and
    multiplied in bf16 (fp16 where it has no bf16). `formats` are the checkpoint's own.
    """
    entry = find(SYSTEMS.get(system, system)) if isinstance(system, str) else system
    rates = entry.numbers
    wide = float(rates["bf16" if "bf16" in rates else "fp16"])
    kind = one_of("served_replica", "number_format", number_format, (*FORMATS, "int8"))
    peak = float(rates[kind]) if kind in ("fp8", "fp4", "int8") and kind in rates else wide
    width = WIDTHS["int4"] if kind in ("int4", "fp4") else WIDTHS[kind]
    cache = 1.0 if kind in rates and kind in WEIGHTS and WEIGHTS[kind][1] == 1 else 2.0
    if formats is not None:
        width, cache = formats.width("experts"), WIDTHS[formats.cache]
    # A card without links stands alone: what it would exchange, it exchanges over no wire.
    link = float(rates.get("link_bandwidth", rates["hbm_bandwidth"]))
    if tensor * data > 1 and "link_bandwidth" not in rates:
        why = f"{entry.name} has no link"
        if "link" in entry.about.get("unsaid", ()):
            why = "your card's link is not said; add link=32GB/s"
        raise BadArgument("served_replica", "tensor", tensor, f"1: {why}")
    return Replica(peak, float(rates["hbm_bandwidth"]), link, tensor, data, width, cache, wide)


@dataclass(frozen=True)
class Served:
    """A model on the GPUs that decode and those that read prompts, which may be the same.

    `requests` are in flight on one worker of those that decode, `decoders` in number; `readers`
    read prompts. `capacity` is a GPU's memory in bytes, `engine` one of `ENGINES`. Prompts and
    answers are so long on average; `even`: all of one length; `random`: requests come one by one.
    `gap`: steps between two looks at the queue. `share` is what the engine takes of memory, its
    default where nothing is said. With `drafts` guesses a step, which cost nothing themselves, a
    step gives `kept` tokens.

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
    even: bool = False
    gap: int = 1
    formats: Formats | None = None
    share: Share | None = None
    drafts: int = 0
    kept: float = 1.0
    random: bool = False

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
        """Tokens that a request holds on average, half of its own written; of random lengths the
        longer ones stay longer.
        """
        return self.prompt + self.output / 2 * (1 + SPREAD if self.random else 1)

    def decoding(self, rows: Any = None) -> Bill:
        """The step that gives each request its next token, or checks its guesses."""
        rows = self.inside if rows is None else rows
        checked, before = self.drafts * rows, self.held if self.drafts else 0
        return step_bill(self.model, self.decode, checked, rows, self.held, before, 0)

    @functools.cached_property
    def reading(self) -> Bill:
        """The step that reads one prompt, or the first chunk of it, and nothing beside."""
        piece = min(self.prompt, CHUNK)
        return step_bill(self.model, self.prefill, piece, 0, 0, self.prompt / 2)

    def bound(self) -> float:
        """Seconds between tokens that no engine beats: a step of decoding by data sheets alone."""
        return self.decoding().step(IDEAL).time

    def load(self, rows: Any = None) -> Load:
        """The `Load` of so many requests inside, of those that are."""
        return Load(
            self.inside if rows is None else rows, self.prompt, self.output, self.decode.data,
            self.engine == "sglang", self.even, self.gap, self.kept, self.random,
        )  # fmt: skip

    def state(self, engine: Engine, rows: Any = None) -> State:
        """The `State` of the load, or of other numbers of requests inside: arrays give each."""
        inside = self.inside if rows is None else rows
        if self.together:
            return state(
                pace_of(self.decoding(inside), self.reading, engine),
                self.load(inside),
                engine.front,
            )
        return apart(self, engine, inside)

    def between(self, engine: Engine) -> float:
        """Seconds between the tokens of a request."""
        return float(self.state(engine).between)

    def first(self, engine: Engine, waves: float = 0) -> float:
        """Seconds to the first token, the wait for a place included: in the steady state, or on
        average over so many waves of which the first came all at once.
        """
        state = self.state(engine)
        wait = self.waiting * state.between
        return float(wait + (state.over(waves) if waves else state.first))

    def weights(self) -> float:
        """Bytes of weights on the GPUs that decode: experts once, the rest in each replica."""
        return weight_bytes(self.model, self.decode, self.formats, self.engine) * self.decode.gpus

    def room(self) -> float:
        """Bytes for requests on the GPUs that decode; below 0 the weights don't fit."""
        each = room_bytes(
            self.model, self.decode, self.capacity, self.engine, self.formats, self.share
        )
        return each * self.decode.gpus

    def places(self) -> float:
        """Requests whose caches and states fit. TensorRT-LLM admits a request when it could be
        written to its end, the others when they hold what there is on average.
        """
        tokens = self.prompt + self.output if self.engine == "trtllm" else self.held
        each = request_bytes(self.model, tokens, self.decode.cache_bytes, self.decode.tensor)
        return max(0.0, self.room() / self.decode.tensor / each)

    def tokens(self) -> float:
        """Tokens of all requests that fit."""
        each = self.prompt + self.output if self.engine == "trtllm" else self.held
        return self.places() * each


def pace_of(decoding: Bill, reading: Bill, engine: Engine) -> Pace:
    """The `Pace` of a layout, by the bill of a step of all its rows and that of a prompt alone."""
    math = where(engine.math > 0, engine.math, engine.share)
    experts = where(engine.experts > 0, engine.experts, math)
    memory, own = reading.memory * engine.share, reading.tokens
    plain = reading.flops / reading.peak + reading.score_flops / reading.wide_peak
    return Pace(
        decoding.step(engine).time,
        engine.reading * reading.plain_layers + engine.expert_reading * reading.expert_layers,
        reading.kv_bytes / memory + engine.hop * reading.hops,
        reading.weight_bytes / memory,
        plain / math / own,
        reading.expert_flops / (reading.peak * experts) / own,
        reading.exchange / own,
        decoding.kv_bytes / (decoding.memory * engine.share) / decoding.rows,
        engine.row,
    )


def apart(run: Served, engine: Engine, inside: Any) -> State:
    """The `State` where other GPUs read prompts: these come to them at random, as fast as the
    answers of those that decode end, and the caches go over the links.
    """
    decoding = run.decoding(inside)
    pace, data = pace_of(decoding, run.reading, engine), run.prefill.data
    piece, step = min(run.prompt, CHUNK), pace.decoding
    chunks, full = max(1, run.prompt / CHUNK), data * max(1, CHUNK // run.prompt)
    rate = inside * run.decoders * run.kept / (run.output * step) / run.readers

    def reading(prompts: Any) -> Any:
        """Seconds to read so many prompts side by side on a reader."""
        return pace.reading(piece * maximum(1, prompts / data), piece * prompts, 0) * chunks

    one, most = reading(1), reading(full)
    more = (most - one) / max(1, full - 1)  # seconds for each prompt more in a step
    # Those that came while a step read are read together in the next.
    together = minimum(maximum(1, rate * (one - more) / maximum(1 - rate * more, 1e-9)), full)
    own, part = reading(together), together / full
    wait = minimum(rate * own / together, 0.97)
    transfer = run.model.request_bytes(run.prompt, run.decode.cache_bytes)
    transfer = float(transfer) / (run.decode.link * run.decode.gpus)
    spread = 1 + SPREAD if run.random else 1.0
    busy = minimum(rate * most / full, 0.97)
    queue = own * spread * wait / 2 * (1 + part * busy / (1 - busy))
    first = engine.front + own + queue + transfer
    each = step / run.kept
    return State(each, first, first, busy, inside * run.decoders / (first + run.output * each))
