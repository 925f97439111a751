"""A served model at a load, in closed form: time between tokens and to the first from one state.

There are two kinds of step. One gives each request its next token; one reads prompts, kernel by
kernel, for as long as its launches and its work take, and who decodes meanwhile is a rule of the
engine: nobody under SGLang, which reads alone; all of them under vLLM and TensorRT-LLM.

The simulator beside (`simulators.serving`) runs the same steps one by one, and a test holds the two
together. Sources: the schedulers of the three engines, as catalog/software.toml dates them.
"""

from dataclasses import dataclass

from lightspeed.elementwise import Result, Value, maximum, minimum, where

# Tokens of prompts that a replica of attention reads in a step: max_num_batched_tokens of `vllm
# serve` on an H100, max_num_tokens of TensorRT-LLM, chunked_prefill_size of SGLang.
CHUNK = 8192
BUSIEST = 0.8  # of the time that reads: beyond, no queue stands it
SPREAD = 1 / 3  # squared coefficient of variation of lengths that are even up to twice the mean
CONFIRMED = 0.45  # of the time that reads: up to here the simulator agrees to 15 %


@dataclass(frozen=True)
class Pace:
    """What the steps of a layout take (s): `decoding` a step that gives each row a token; of one
    that reads, `launch`, what it takes to `start`, the `floor` of reading weights, `token` and
    `expert` of arithmetic for each token of a replica of attention and of all, `exchange` for each
    of a replica's, and what each row of a replica adds beside, `cache`, and `row` after all work.
    """

    decoding: Value
    launch: Value
    start: Value
    floor: Value
    token: Value
    expert: Value
    exchange: Value
    cache: Value
    row: Value

    def reading(self, own: Value, tokens: Value, rows: Value) -> Result:
        """Seconds of a step that reads `own` tokens on the busiest replica of attention,
        `tokens` on all, beside so many rows of that replica: at least the step of these.
        """
        work = maximum(self.floor, self.token * own + self.expert * tokens)
        work = work + self.start + self.exchange * own + self.cache * rows
        time = (self.launch**2 + work**2) ** 0.5 + self.row * rows
        return where(rows > 0, maximum(time, self.decoding), time)


@dataclass(frozen=True)
class Load:
    """Requests `inside`, tokens of a prompt and an answer, on `data` replicas of attention.

    `alone`: the engine reads prompts apart from decoding. `even`: all lengths are one, so that a
    closed loop ends and begins in step. `gap`: steps between two looks at the queue. `kept`: tokens
    that a step of decoding gives to each, more than one where guesses are checked. `random`:
    requests come one by one, of lengths up to twice the mean; in a closed loop the replicas of
    attention get their prompts side by side.
    """

    inside: Value
    prompt: Value
    output: Value
    data: Value = 1
    alone: Value = False
    even: Value = False
    gap: Value = 1
    kept: Value = 1
    random: Value = False
    chunk: Value = CHUNK


@dataclass(frozen=True)
class State:
    """Seconds between tokens; to the first token in the steady state and, on average, where all
    come at once; the share of time that reads prompts; requests a second.
    """

    between: Result
    first: Result
    burst: Result
    reading: Result
    rate: Result

    def over(self, waves: Value) -> Result:
        """Seconds to the first token, the mean of so many waves of which the first is a burst."""
        return (self.burst + (waves - 1) * self.first) / waves


def state(pace: Pace, load: Load, front: Value = 0.0) -> State:
    """The `State` of a load at a pace.

    With c inside, o tokens out and k prompts a reading step R: TPOT = D + c/(o k) R where prompts
    are read alone, D + c/(o k) (R − D) beside; the share of time that reads U = c/(o k) R / TPOT;
    TTFT = front + (1 − U) D/2 + R + R U/2 (1 + l U/(1 − U)), l the part of its budget that such a
    step takes. Closed loops and random arrivals of one rate are one state.

    >>> pace = Pace(0.02, 0.05, 0.0, 0.02, 2e-5, 0.0, 0.0, 0.0, 0.0)
    >>> beside = state(pace, Load(16, 1000, 500))
    >>> round(beside.between, 4), round(beside.first, 3), round(beside.rate, 2)
    (0.0211, 0.065, 1.51)
    """
    c, p, o = load.inside, load.prompt, load.output
    budget = load.chunk * load.data
    chunks = -(-p // load.chunk)  # of a prompt
    others = where(load.alone, 0, maximum(c - 1, 0) / load.data)
    decoding = pace.decoding

    def step(prompts: Value) -> Result:
        """Seconds to read so many prompts side by side, in as many steps as they need."""
        tokens = minimum(prompts * p, budget)
        own = maximum(tokens / load.data, minimum(p, load.chunk))
        return pace.reading(own, tokens, others) * maximum(1, p / load.chunk)

    most = maximum(load.data, budget // p)  # prompts that a full step has room for
    full = minimum(most, maximum(1, c))
    side = where(load.random, 1, minimum(load.data, maximum(c, 1)))
    together = minimum(maximum(side, load.gap * c / o), most)
    whole, own = step(full), step(together)
    reads = c / o / together  # prompts' steps for each token of an answer
    token = decoding / load.kept
    beside = token + reads * maximum(own - token * chunks, 0)
    # In step for ever: who ends together is read together, and all the others wait.
    lockstep = token + 0.5 * c / o * whole / full
    apart = where(load.even, lockstep, token + reads * own)
    between = where(load.alone, apart, beside)
    busy = minimum(reads * own / between, 0.97)
    part = minimum(1, together * p / budget)
    queue = own * busy / 2 * (1 + part * busy / (1 - busy))
    queue = queue * where(load.random, 1 + SPREAD, 1)
    queue = minimum(queue, own * maximum(c - 1, 0) / 2 / together)
    steady = front + (1 - busy) * decoding * load.gap / 2 + own + queue
    steps = -(-c // full)
    burst = front + whole * (steps + 1) / 2
    first = where(load.alone * load.even > 0, burst, steady)
    return State(between, first, burst, busy, c / (first + o * between))
