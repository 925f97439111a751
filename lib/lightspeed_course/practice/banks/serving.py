"""Questions of chapter 4 on serving: Little's law joined to the roofline, by hand and as a
function.
"""

from __future__ import annotations

import math

from lightspeed import queueing, roofline, serving
from lightspeed.catalog import accelerator, find, number
from lightspeed_course.practice.derivation import derivation
from lightspeed_course.practice.derivation import step as line
from lightspeed_course.practice.parameters import chip, named, plain
from lightspeed_course.practice.questions import Misconception, Parameter, Question, register
from lightspeed_show.format import si

CHAPTER = "04_littles_law"
RATE = "request/s"


def chip_of(canonical, *choices):
    """A chip whose memory counts, shown with what the device reports of it."""
    return Parameter(
        canonical,
        choices,
        show=lambda key: (
            f"{accelerator(key).name} ({accelerator(key).hbm_capacity / 2**20:,.0f} MiB of memory"
            " per chip)"
        ),
    )


def label(key):
    """The GB of memory that the data sheet prints, as a number."""
    return float(number(f"{key}.hbm_capacity").others[0]["printed"].split()[0])


with_weights = Question(
    id="serving.capped_rate_with_weights",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "An {{key}} serves {{name}} with bf16 weights. A request holds {{cache}} of KV cache for"
        " {{latency}}. What is the most that it can serve, in whole requests at a time?"
    ),
    parameters={
        "key": chip_of("a100_80gb", "a100_40gb", "a100_80gb", "h100_sxm", "h200_sxm"),
        "name": named(find, "llama3_8b", "llama2_7b", "llama2_13b", "llama3_8b"),
        "cache": Parameter(1, (1, 1.5, 2), "GB"),
        "latency": Parameter(4, (2, 4, 5, 8), "s"),
    },
    expected=lambda key, name, cache, latency: queueing.throughput(
        slots(key, name, cache), latency
    ),
    unit=RATE,
    tolerance=0.01,
    solution=lambda key, name, cache, latency: derivation(
        line(
            "The weights.",
            "parameters * 2[byte/parameter]",
            (weight_bytes(name), "byte"),
            parameters=(find(name).parameters, "parameter"),
        ),
        line(
            "How many requests fit what they leave for caches?",
            "floor((memory - weights) / cache)",
            (slots(key, name, cache), "request"),
            memory=(accelerator(key).hbm_capacity, "byte"),
            weights=(weight_bytes(name), "byte"),
            cache=(cache, "byte/request"),
        ),
        line(
            "Little's law, solved for the rate.",
            "slots / latency",
            (queueing.throughput(slots(key, name, cache), latency), RATE),
            slots=(slots(key, name, cache), "request"),
            latency=(latency, "s"),
        ),
    ),
    smaller="queueing.capped_rate",
    misconceptions=(
        Misconception(
            "no weights",
            lambda key, name, cache, latency: queueing.throughput(
                accelerator(key).hbm_capacity // cache, latency
            ),
            "The model has to live somewhere too.",
        ),
        Misconception(
            "a byte a weight",
            lambda key, name, cache, latency: queueing.throughput(
                (accelerator(key).hbm_capacity - weight_bytes(name) / 2) // cache, latency
            ),
            "How wide is a bf16 weight?",
        ),
        Misconception(
            "fractions of a request",
            lambda key, name, cache, latency: queueing.throughput(
                (accelerator(key).hbm_capacity - weight_bytes(name)) / cache, latency
            ),
            "Half a cache does not serve half a request.",
            slight=True,
        ),
        Misconception(
            "the GB of the name",
            lambda key, name, cache, latency: queueing.throughput(
                max(0.0, label(key) * 1e9 - weight_bytes(name)) // cache, latency
            ),
            "You took the GB of the data sheet as decimal. The question says how many MiB the"
            " device reports.",
            slight=True,
        ),
        Misconception(
            "the slots",
            lambda key, name, cache, latency: slots(key, name, cache),
            "That is how many fit. How many leave in a second?",
        ),
        Misconception(
            "room for the weights alone",
            lambda key, name, cache, latency: queueing.throughput(
                weight_bytes(name) // cache, latency
            ),
            "You filled the room of the weights with caches. It is the rest that is free.",
        ),
        Misconception(
            "multiplied",
            lambda key, name, cache, latency: (
                (queueing.throughput(slots(key, name, cache), latency)) * latency**2
            ),
            "In yours a longer stay raises the rate. Does it?",
        ),
    ),
)


def weight_bytes(name, width=2):
    return find(name).parameters * width


def slots(key, name, cache):
    return serving.batch_that_fits(accelerator(key).hbm_capacity, weight_bytes(name), cache)


# --- the join with the roofline ---------------------------------------------------------------

SERVED = {
    "name": named(find, "llama3_70b", "llama2_70b", "llama3_70b"),
    "chips": plain(8, 4, 8, 16),
    "key": chip("h100_sxm", "a100_80gb", "h100_sxm", "h200_sxm", "b200"),
    "context": plain(4096, 2048, 4096, 8192, 16384),
}


def cache(name, context):
    m = find(name)
    return serving.kv_cache_bytes(m.layers, m.kv_heads, m.head_width, context)


def replica(name, chips, key, context):
    """Arguments of the laws of `serving` for bf16 weights and caches."""
    return {
        "parameters": find(name).parameters,
        "kv_bytes": cache(name, context),
        "peak": chips * accelerator(key).bf16,
        "bandwidth": chips * accelerator(key).hbm_bandwidth,
    }


def in_memory(name, chips, key, context):
    return serving.batch_that_fits(
        chips * accelerator(key).hbm_capacity, weight_bytes(name), cache(name, context)
    )


ROOM = SERVED | {"key": chip_of("h100_sxm", "a100_80gb", "h100_sxm", "h200_sxm", "b200")}
THE_REPLICA = (
    "{{name}} runs in bf16 on {{chips}} chips of one kind, {{key}}, that act as one, with"
    " {{context}} tokens in the cache of each request."
)

cache_of_a_request = Question(
    id="serving.cache_of_a_request",
    chapter=CHAPTER,
    level="recall",
    prompt=(
        "{{name}} keeps a key and a value of each token, in each layer and for each KV head, in"
        " bf16. How large is the cache of a request with {{context}} tokens?"
    ),
    parameters={
        "name": Parameter(
            "llama3_70b",
            ("llama2_7b", "llama3_8b", "llama3_70b"),
            show=lambda key: (
                f"{find(key).name} ({find(key).layers} layers, {find(key).kv_heads} KV heads,"
                f" {find(key).head_width} numbers a head)"
            ),
        ),
        "context": plain(4096, 2048, 4096, 8192),
    },
    expected=cache,
    unit="GB",
    solution=lambda name, context: derivation(
        line(
            "A token leaves a key and a value in each layer and KV head, in two bytes an element.",
            "2 * layers * KV_heads * head_width * 2[byte/token]",
            (cache(name, 1), "byte/token"),
            layers=find(name).layers,
            KV_heads=find(name).kv_heads,
            head_width=find(name).head_width,
        ),
        line(
            "The cache of a request.",
            "token * context",
            (cache(name, context), "byte"),
            token=(cache(name, 1), "byte/token"),
            context=(context, "token"),
        ),
    ),
    misconceptions=(
        Misconception(
            "half of it",
            lambda name, context: cache(name, context) / 2,
            "A token leaves a key and a value, and a number in bf16 has two bytes. Which of these"
            " twos is missing?",
        ),
        Misconception(
            "a layer",
            lambda name, context: cache(name, context) / find(name).layers,
            "That is the cache of a layer. How many layers keep one?",
        ),
        Misconception(
            "one head",
            lambda name, context: cache(name, context) / find(name).kv_heads,
            "That is for one head. How many keep a key and a value?",
        ),
        Misconception(
            "one token",
            lambda name, context: cache(name, context) / context,
            "That is the cache of one token. How many does the request have?",
        ),
    ),
    holds={
        "A token leaves a key and a value, and": "definition",
        "That is for one head": "definition",
    },
)

step_time = Question(
    id="serving.step_time",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "A replica reads memory at {{bandwidth}}. Its weights take {{weights}}, and the cache of a"
        " request {{kv}}. A batch of {{batch}} is decoded. How long does a step take, if it waits"
        " for memory alone?"
    ),
    parameters={
        "bandwidth": Parameter(20, (10, 20, 25), "TB/s"),
        "weights": Parameter(140, (80, 140), "GB"),
        "kv": Parameter(2, (1, 2, 4), "GB"),
        "batch": plain(10, 10, 20, 30),
    },
    # A peak so high that arithmetic never counts.
    expected=lambda bandwidth, weights, kv, batch: (
        serving.decode_step(batch, weights / 2, kv, 1e21, bandwidth).time
    ),
    unit="ms",
    solution=lambda bandwidth, weights, kv, batch: derivation(
        line(
            "The weights are read once for the whole batch, a cache for each request.",
            "weights + batch * cache",
            weights=(weights, "byte"),
            batch=(batch, "request"),
            cache=(kv, "byte/request"),
        ),
        line(
            "All of that at the speed of the memory.",
            "read / bandwidth",
            (serving.decode_step(batch, weights / 2, kv, 1e21, bandwidth).time, "s"),
            read=(weights + batch * kv, "byte"),
            bandwidth=(bandwidth, "byte/s"),
        ),
    ),
    smaller="serving.cache_of_a_request",
    misconceptions=(
        Misconception(
            "weights for each",
            lambda bandwidth, weights, kv, batch: batch * (weights + kv) / bandwidth,
            "You read the weights for each request. Which reads does the batch share?",
        ),
        Misconception(
            "one cache",
            lambda bandwidth, weights, kv, batch: (weights + kv) / bandwidth,
            "That is a batch of one. Whose cache may the others use?",
        ),
        Misconception(
            "no caches",
            lambda bandwidth, weights, kv, batch: weights / bandwidth,
            "That reads the weights. What does attention read?",
        ),
        Misconception(
            "no weights",
            lambda bandwidth, weights, kv, batch: batch * kv / bandwidth,
            "That reads the caches. What does each token have to pass?",
        ),
    ),
    holds={
        "The weights are read once": "definition",
        "All of that at the speed": "definition",
        "if it waits for memory alone": "definition",
        "You read the weights for each": "definition",
        "What does each token have": "definition",
    },
)

slots_in_memory = Question(
    id="serving.slots_in_memory",
    chapter=CHAPTER,
    level="apply",
    prompt=THE_REPLICA + " For how many requests at a time is there memory?",
    parameters=ROOM,
    expected=in_memory,
    tolerance=0,
    solution=lambda name, chips, key, context: derivation(
        line(
            "A token leaves a key and a value in each layer and KV head, in two bytes an element.",
            "2 * layers * KV_heads * head_width * 2[byte/token]",
            (cache(name, 1), "byte/token"),
            layers=find(name).layers,
            KV_heads=find(name).kv_heads,
            head_width=find(name).head_width,
        ),
        line(
            "The cache of a request.",
            "token * context",
            (cache(name, context), "byte"),
            token=(cache(name, 1), "byte/token"),
            context=(context, "token"),
        ),
        line(
            "The weights.",
            "parameters * 2[byte/parameter]",
            (weight_bytes(name), "byte"),
            parameters=(find(name).parameters, "parameter"),
        ),
        line(
            "What they leave, in caches.",
            "floor((chips * memory - weights) / cache)",
            (in_memory(name, chips, key, context), "request"),
            chips=chips,
            memory=(accelerator(key).hbm_capacity, "byte"),
            weights=(weight_bytes(name), "byte"),
            cache=(cache(name, context), "byte/request"),
        ),
    ),
    smaller="serving.cache_of_a_request",
    misconceptions=(
        Misconception(
            "no weights",
            lambda name, chips, key, context: (
                chips * accelerator(key).hbm_capacity // cache(name, context)
            ),
            "The weights need room too.",
        ),
        Misconception(
            "every query head has its own",
            lambda name, chips, key, context: (
                (chips * accelerator(key).hbm_capacity - weight_bytes(name))
                * find(name).kv_heads
                / find(name).heads
                // cache(name, context)
            ),
            "Groups of query heads share one KV head. Which count belongs in the cache, and is the"
            " cache in bytes or in bits?",
        ),
        Misconception(
            "decimal GB",
            lambda name, chips, key, context: (
                max(0.0, chips * label(key) * 1e9 - weight_bytes(name)) // cache(name, context)
            ),
            "You took the GB of the data sheet as decimal. Memory is sold in GiB: use what the"
            " device reports.",
            slight=True,
        ),
        Misconception(
            "all of the GiB",
            lambda name, chips, key, context: (
                (chips * label(key) * 2**30 - weight_bytes(name)) // cache(name, context)
            ),
            "That takes every GiB of the data sheet, or rounds up. What does the device report,"
            " and does a part of a request count?",
            slight=True,
        ),
        Misconception(
            "keys only",
            lambda name, chips, key, context: (
                (chips * accelerator(key).hbm_capacity - weight_bytes(name))
                // (cache(name, context) / 2)
            ),
            "A token leaves a key and a value.",
        ),
    ),
    valid=lambda **p: (
        p["chips"] * accelerator(p["key"]).hbm_capacity > 1.2 * weight_bytes(p["name"])
    ),
    holds={
        "That takes every GiB": "definition",
    },
)


def budget_steps(budget, **p):
    """The lines that work out the largest batch whose step keeps the budget."""
    one = serving.decode_step(1, **replica(**p))
    batch = serving.batch_within(budget, **replica(**p))
    full = serving.decode_step(batch, **replica(**p))
    bandwidth = p["chips"] * accelerator(p["key"]).hbm_bandwidth
    read = (
        line(
            "Each step reads the weights once.",
            "weights / bandwidth",
            one.weights,
            weights=(weight_bytes(p["name"]), "byte"),
            bandwidth=(bandwidth, "byte/s"),
        ),
        line(
            "For each request it reads a cache.",
            "cache / bandwidth",
            (float(one.kv), "s/request"),
            cache=(cache(p["name"], p["context"]), "byte/request"),
            bandwidth=(bandwidth, "byte/s"),
        ),
        line(
            "Arithmetic runs beside reading the weights; a request takes",
            "2[FLOP/parameter/request] * parameters / peak",
            (float(one.math), "s/request"),
            parameters=(find(p["name"]).parameters, "parameter"),
            peak=(p["chips"] * accelerator(p["key"]).bf16, "FLOP/s"),
        ),
    )
    if full.compute_bound:
        return (
            *read,
            line(
                "For the batch, arithmetic takes longer than reading the weights and counts in"
                " their place.",
                "floor(budget / (arithmetic + cache))",
                (batch, "request"),
                budget=(budget, "s"),
                arithmetic=(float(one.math), "s/request"),
                cache=(float(one.kv), "s/request"),
            ),
        )
    return (
        *read,
        line(
            "Arithmetic hides behind the weights. What they leave of the budget, in caches.",
            "floor((budget - weights) / cache)",
            (batch, "request"),
            budget=(budget, "s"),
            weights=(float(one.weights), "s"),
            cache=(float(one.kv), "s/request"),
        ),
    )


budget_batch = Question(
    id="serving.batch_within_budget",
    chapter=CHAPTER,
    level="design",
    prompt=THE_REPLICA
    + " A token may take {{budget}}. What is the largest batch that meets this, if it fits the"
    " memory?",
    parameters=SERVED | {"budget": Parameter(12, (10, 12, 15, 20), "ms")},
    expected=lambda budget, **p: serving.batch_within(budget, **replica(**p)),
    tolerance=0,
    solution=lambda budget, **p: derivation(*budget_steps(budget, **p)),
    smaller="serving.step_time",
    misconceptions=(
        Misconception(
            "no caches",
            lambda budget, **p: math.floor(
                roofline.critical_batch(
                    roofline.ridge_point(
                        accelerator(p["key"]).bf16, accelerator(p["key"]).hbm_bandwidth
                    )
                )
            ),
            "That is where the arithmetic catches up with the weights. What else is read in a"
            " step?",
        ),
        Misconception(
            "no weights",
            lambda budget, **p: budget // serving.decode_step(1, **replica(**p)).kv,
            "The weights are read in every step as well.",
        ),
        Misconception(
            "weights for each",
            lambda budget, **p: max(1, budget // serving.decode_step(1, **replica(**p)).time),
            "The weights are read once a step for the whole batch.",
        ),
        Misconception(
            "what fits the memory",
            lambda budget, **p: in_memory(**p),
            "That many fit the memory. How long does a step of that batch take?",
            slight=True,
        ),
        Misconception(
            "the knee",
            lambda budget, **p: math.floor(serving.knee_batch(**replica(**p))),
            "That is the knee, where throughput per latency is best. The budget allows another"
            " batch.",
            slight=True,
        ),
    ),
    valid=lambda budget, **p: (
        8 < serving.batch_within(budget, **replica(**p)) <= in_memory(**p)
        and serving.decode_step(1, **replica(**p)).weights < 0.8 * budget
    ),
    holds={
        "The weights are read in every step": "definition",
        "That is the knee": "definition",
    },
)

replica_rate = Question(
    id="serving.answers_per_second",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "A replica decodes {{batch}} requests together, one step takes {{step}}, and an answer has"
        " {{tokens}} tokens. How many answers does it finish, with the batch kept full?"
    ),
    parameters={
        "batch": plain(96, 16, 32, 96, 128),
        "step": Parameter(20, (10, 20, 25, 40), "ms"),
        "tokens": plain(400, 200, 400, 500, 800),
    },
    expected=lambda batch, step, tokens: serving.request_rate(batch, tokens, step),
    unit=RATE,
    solution=lambda batch, step, tokens: derivation(
        line(
            "How long an answer stays.",
            "tokens * step",
            tokens=(tokens, "token"),
            step=(step, "s/token"),
        ),
        line(
            "Little's law with the batch inside, solved for the rate.",
            "batch / stay",
            (serving.request_rate(batch, tokens, step), RATE),
            batch=(batch, "request"),
            stay=(tokens * step, "s"),
        ),
    ),
    smaller="queueing.capped_rate",
    misconceptions=(
        Misconception(
            "tokens, not answers",
            lambda batch, step, tokens: batch / step,
            "Those are tokens a second. How many make an answer?",
        ),
        Misconception(
            "steps, not answers",
            lambda batch, step, tokens: 1 / step / tokens,
            "That is for a batch of one.",
        ),
        Misconception(
            "the time of an answer",
            lambda batch, step, tokens: tokens * step,
            "That is how long one answer takes. How many are under way meanwhile?",
        ),
        Misconception(
            "steps a second",
            lambda batch, step, tokens: 1 / step,
            "Those are steps a second. How many steps does an answer take, and how many answers"
            " grow at once?",
            slight=True,
        ),
    ),
)


def power(batch, **p):
    """Throughput over latency, Kleinrock's power, at a batch that need not be whole."""
    step = serving.decode_step.__wrapped__(batch, **replica(**p))
    return batch / step.time**2


def power_at_best(**p):
    return max(power(batch, **p) for batch in range(1, 2000))


knee = Question(
    id="serving.knee",
    chapter=CHAPTER,
    level="design",
    prompt=THE_REPLICA + " At what batch is throughput per latency best, the knee of the curve?",
    parameters=ROOM,
    expected=lambda **p: serving.knee_batch(**replica(**p)),
    tolerance=0.03,
    solution=lambda **p: derivation(
        "A step reads the weights once and a cache for each request: $t(B) = t_w + B t_c$ as long"
        " as the arithmetic hides.",
        "Throughput over latency is $B / t(B)^2$. Its slope is zero where the caches take as long"
        " to read as the weights.",
        line(
            "So the batch is the ratio of the two.",
            "weights / cache",
            (serving.knee_batch(**replica(**p)), "request"),
            weights=(weight_bytes(p["name"]), "byte"),
            cache=(cache(p["name"], p["context"]), "byte/request"),
        ),
        after="Below the roof of the arithmetic, throughput over latency is best at that batch.",
    ),
    smaller="serving.step_time",
    misconceptions=(
        Misconception(
            "the ridge",
            lambda **p: accelerator(p["key"]).bf16 / accelerator(p["key"]).hbm_bandwidth,
            "That is where a matmul turns compute-bound. Do the caches not catch up with the"
            " weights earlier?",
        ),
        Misconception(
            "what fits",
            in_memory,
            "That is how many the memory holds. The knee is about time, not room.",
        ),
        Misconception(
            "one",
            lambda **p: 1.0,
            "A batch of one has the best latency, but little throughput. Divide one by the other.",
        ),
        Misconception(
            "keys only",
            lambda **p: 2 * (serving.knee_batch(**replica(**p))),
            "A token leaves a key and a value: are both in your cache? And how wide is an element,"
            " two bytes?",
        ),
    ),
    valid=lambda **p: (
        p["chips"] * accelerator(p["key"]).hbm_capacity > 1.2 * weight_bytes(p["name"])
        and serving.knee_batch(**replica(**p))
        < 0.8 * accelerator(p["key"]).bf16 / accelerator(p["key"]).hbm_bandwidth
    ),
    holds={
        "Below the roof of the arithmetic": lambda **p: (
            abs(power_at_best(**p) / power(serving.knee_batch(**replica(**p)), **p) - 1) < 0.01
        ),
        "A batch of one has": lambda **p: (
            power(1, **p) < 0.5 * power_at_best(**p)
            and serving.decode_step(1, **replica(**p)).time
            < serving.decode_step(2, **replica(**p)).time
        ),
    },
)

what_limits = Question(
    id="serving.what_limits_it",
    chapter=CHAPTER,
    level="design",
    kind="choice",
    prompt=THE_REPLICA
    + " A token may take {{budget}}, and more requests come than it can finish. Which one change"
    " lets it finish more of them?",
    parameters=ROOM | {"budget": Parameter(15, (10, 12, 15, 20, 30, 40), "ms")},
    options={
        "memory": "Twice the memory, no faster than before.",
        "budget": "Twice the time for a token.",
        "peak": "Twice the peak FLOP/s.",
        "queue": "A queue twice as long in front of it.",
    },
    expected=lambda **p: best_change(**p),
    solution=lambda budget, **p: derivation(
        line(
            "Room: the memory that the weights leave, in caches.",
            "floor((memory - weights) / cache)",
            (in_memory(**p), "request"),
            memory=(p["chips"] * accelerator(p["key"]).hbm_capacity, "byte"),
            weights=(weight_bytes(p["name"]), "byte"),
            cache=(cache(p["name"], p["context"]), "byte/request"),
        ),
        "So much for room. The other cap is time.",
        *budget_steps(budget, **p),
        "The lower of the two caps is the one worth raising.",
        after="; ".join(
            f"{name}: {si(tokens, 'token')}/s"
            for name, tokens in after_change(budget=budget, **p).items()
        )
        + ".",
    ),
    smaller="serving.batch_within_budget",
    misconceptions=(
        Misconception(
            "the other cap",
            lambda **p: "budget" if best_change(**p) == "memory" else "memory",
            "There are two caps on the batch, room and time. Work out both: which one is met"
            " first?",
        ),
        Misconception(
            "arithmetic",
            lambda **_: "peak",
            "Compare the time of the arithmetic with the time to read the weights.",
        ),
        Misconception(
            "patience", lambda **_: "queue", "Those who stand in a queue are not being served."
        ),
    ),
    valid=lambda budget, **p: (
        best_change(budget=budget, **p) in ("memory", "budget")
        and p["chips"] * accelerator(p["key"]).hbm_capacity > 1.2 * weight_bytes(p["name"])
        and serving.batch_within(budget, **replica(**p)) > 0
        and 1.05 * sorted(after_change(budget=budget, **p).values())[-2]
        < max(after_change(budget=budget, **p).values())
    ),
    holds={
        "more requests come than it can finish": "definition",
        "Twice the memory": "definition",
        "Twice the time": "definition",
        "Twice the peak": "definition",
        "A queue twice as long": "definition",
    },
)


def best_change(**p):
    return max(after_change(**p).items(), key=lambda pair: pair[1])[0]


def after_change(budget, **p):
    """Tokens per second at the best batch allowed, after each of the changes."""
    fit, now = in_memory(**p), replica(**p)
    faster = now | {"peak": 2 * now["peak"]}
    room = fit + p["chips"] * accelerator(p["key"]).hbm_capacity // now["kv_bytes"]

    def rate(fit, budget, replica):
        batch = min(fit, serving.batch_within(budget, **replica))
        return batch / serving.decode_step(batch, **replica).time if batch else 0.0

    return {
        "memory": rate(room, budget, now),
        "budget": rate(fit, 2 * budget, now),
        "peak": rate(fit, budget, faster),
        "queue": rate(fit, budget, now),
    }


capacity_function = Question(
    id="serving.capacity_function",
    chapter=CHAPTER,
    level="design",
    kind="function",
    prompt=(
        "Write `most_requests(memory, weight_bytes, kv_bytes, latency)`: the most requests per"
        " second that a replica can finish, with whole requests in memory beside the weights. If"
        " the weights do not fit, the answer is zero."
    ),
    parameters={
        "memory": Parameter(80e9, (16e9, 40e9, 80e9, 640e9), "byte"),
        "weight_bytes": Parameter(16e9, (7e9, 16e9, 26e9, 140e9), "byte"),
        "kv_bytes": Parameter(1.3e9, (1.3e8, 1.3e9, 2.7e9), "byte"),
        "latency": Parameter(5, (0.5, 5, 20), "s"),
    },
    edges=(
        {"memory": 10e9, "weight_bytes": 140e9, "kv_bytes": 1.3e8, "latency": 0.5},
        {"memory": 17e9},
    ),
    expected=lambda memory, weight_bytes, kv_bytes, latency: queueing.throughput(
        serving.batch_that_fits(memory, min(weight_bytes, memory), kv_bytes), latency
    ),
    unit=RATE,
    tolerance=0.001,
    solution=derivation(
        "What the weights leave is divided into whole caches; cut off the part of one.",
        "If the weights do not fit, nothing is left: cut off at zero.",
        "Little's law: the slots over the latency is the rate.",
        after=(
            "```python\ndef most_requests(memory, weight_bytes, kv_bytes, latency):\n"
            "    return max(0, (memory - weight_bytes) // kv_bytes) / latency\n```"
        ),
    ),
    smaller="serving.capped_rate_with_weights",
    misconceptions=(
        Misconception(
            "fractions of a request",
            lambda memory, weight_bytes, kv_bytes, latency: (
                max(0, memory - weight_bytes) / kv_bytes / latency
            ),
            "Half a cache does not serve half a request.",
        ),
        Misconception(
            "no weights",
            lambda memory, weight_bytes, kv_bytes, latency: memory // kv_bytes / latency,
            "Where is the model?",
        ),
        Misconception(
            "fractions, and below zero",
            lambda memory, weight_bytes, kv_bytes, latency: (
                (memory - weight_bytes) / kv_bytes / latency
            ),
            "Two things: half a cache does not serve half a request, and what do you return when"
            " the weights are larger than the memory?",
        ),
        Misconception(
            "below zero",
            lambda memory, weight_bytes, kv_bytes, latency: (
                (memory - weight_bytes) // kv_bytes / latency
            ),
            "What do you return when the weights are larger than the memory?",
        ),
        Misconception(
            "the slots",
            lambda memory, weight_bytes, kv_bytes, latency: max(
                0, (memory - weight_bytes) // kv_bytes
            ),
            "That is how many fit. How many of them leave in a second?",
        ),
        Misconception(
            "multiplied by the latency",
            lambda memory, weight_bytes, kv_bytes, latency: (
                max(0, (memory - weight_bytes) // kv_bytes) * latency
            ),
            "In yours a longer stay raises the rate. Does it?",
        ),
    ),
    holds={
        "If the weights do not fit": "definition",
        "Two things": "definition",
    },
)

register(
    with_weights,
    cache_of_a_request,
    step_time,
    slots_in_memory,
    budget_batch,
    replica_rate,
    knee,
    what_limits,
    capacity_function,
)
