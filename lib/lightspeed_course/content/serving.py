"""What the formulas of serving.md call."""

from lightspeed import serving
from lightspeed.attention import attention_bytes, index_bytes
from lightspeed.catalog import accelerator, find, number
from lightspeed.experts import rows_per_expert
from lightspeed_course.practice.derivation import step as line
from lightspeed_course.practice.questions import Parameter
from lightspeed_models.llm import decoder
from lightspeed_show.format import si


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


def sized(canonical, *choices):
    """A model shown with its parameters, exactly enough for an answer in whole requests."""
    return Parameter(
        canonical,
        choices,
        show=lambda key: f"{find(key).name} ({si(find(key).parameters, 'parameter', 5)})",
    )


def label(key):
    """The GB of memory that the data sheet prints, as a number."""
    return float(number(f"{key}.hbm_capacity").others[0]["printed"].split()[0])


def weight_bytes(name, width=2):
    return find(name).parameters * width


def slots(key, name, cache):
    return serving.batch_that_fits(accelerator(key).hbm_capacity, weight_bytes(name), cache)


def cache(name, context):
    m = decoder(name)
    return serving.kv_cache_bytes(m.depth, m.attention.kv_heads, m.attention.head_width, context)


def cache_of_token(kv_heads, key_width, value_width):
    """Bytes that a layer caches per token."""
    return attention_bytes(1, kv_heads, key_width, value_width)


def key_of_index(width):
    """Bytes of a token's key in an index."""
    return index_bytes(1, width)


def tokens_an_expert(tokens, experts, active):
    """Tokens of a batch per expert that is read."""
    return rows_per_expert(tokens, experts, active)


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


def budget_steps(budget, **p):
    """Return the lines that compute the largest batch whose step is within the budget."""
    one = serving.decode_step(1, **replica(**p))
    batch = serving.batch_within(budget, **replica(**p))
    full = serving.decode_step(batch, **replica(**p))
    bandwidth = p["chips"] * accelerator(p["key"]).hbm_bandwidth
    reading = (
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
            *reading,
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
        *reading,
        line(
            "Arithmetic hides behind the weights. What they leave of the budget, in caches.",
            "floor((budget - weights) / cache)",
            (batch, "request"),
            budget=(budget, "s"),
            weights=(float(one.weights), "s"),
            cache=(float(one.kv), "s/request"),
        ),
    )


def power(batch, **p):
    """Throughput over latency, Kleinrock's power, at a batch that need not be whole."""
    step = serving.decode_step.__wrapped__(batch, **replica(**p))
    return batch / step.time**2


def power_at_best(**p):
    return max(power(batch, **p) for batch in range(1, 2000))


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
