"""What the formulas of parallelism.md call."""

from lightspeed import energy, memory, parallel, pipeline
from lightspeed.catalog import accelerator, link, number
from lightspeed.collectives import bandwidth_bound
from lightspeed_course.practice.derivation import step
from lightspeed_course.practice.parameters import named
from lightspeed_models import training_step as ts
from lightspeed_models.llm import decoder
from lightspeed_models.llm.training import model_activation_bytes, training_memory
from lightspeed_models.plan import Plan, machine
from lightspeed_models.simulators import schedules as schedules

# What ZeRO-2 splits of a parameter's states.
STATES = memory.training_state_bytes(1)

SPLIT = float(STATES.gradients + STATES.optimizer)


def gradient_bytes(params, n):
    return parallel.data_parallel_bytes(params, n)


def three_collectives(size, n):
    return tuple(
        bandwidth_bound(c, size, n, 1.0) for c in ("all_reduce", "all_gather", "reduce_scatter")
    )


def times_plain(m, stage):
    """Bytes of a ZeRO stage over plain data parallelism, with m micro-batches; ranks cancel."""
    return parallel.data_parallel_bytes(1.0, 64, stage, m) / parallel.data_parallel_bytes(
        1.0, 64, 0, m
    )


CLUSTER = {
    "gpu": named(accelerator, "h100_sxm", "a100_80gb", "b200"),
    "network": named(link, "infiniband_ndr", "infiniband_hdr", "ethernet_400g"),
}


def all_reduce_time(rate, tokens, width, t):
    return parallel.tensor_parallel_bytes(tokens, width, t) / rate


def one_sum(tokens, width, t):
    return parallel.tensor_parallel_bytes(tokens, width, t) / 4


def needed(gpu, network):
    """Tokens per GPU for which arithmetic takes as long as the traffic."""
    return parallel.data_parallel_tokens(accelerator(gpu).bf16, link(network).bandwidth)


GPT3 = "gpt3_175b"

TOKENS = 4096  # of the sequence in the question of ZeRO's stages

# bytes a layer keeps for each of s b h
PER_ELEMENT = memory.activation_bytes(1, 1, 1, 1, recompute="selective")


def fewest_micro_batches(p, share):
    """The first m whose bubble is at most this share of the step: (p - 1) (1 - share) / share."""
    return next(m for m in range(1, 10_000) if pipeline.bubble_over_total(p, m) <= share + 1e-12)


def smallest_stage(model, gpu, n, recompute="full"):
    """The lowest stage of ZeRO with which one sequence fits; 4 if none does."""
    shape, capacity = decoder(model), accelerator(gpu).hbm_capacity
    use = (
        training_memory(shape, capacity, TOKENS, data=n, stage=s, recompute=recompute)
        for s in range(4)
    )
    return next((stage for stage, u in enumerate(use) if u.fits), 4)


def policy_use(model, gpu, n, stage):
    """Return the memory that one GPU needs at this stage of ZeRO."""
    return training_memory(
        decoder(model),
        accelerator(gpu).hbm_capacity,
        TOKENS,
        data=n,
        stage=stage,
        recompute="full",
    )


NIC = ("infiniband_hdr", "infiniband_ndr", "infiniband_xdr")

NEEDED = {
    "FSDP": "shards",
    "DDP": "reduce",
    "experts spread over the nodes": "exchange",
    "a pipeline with its stages on different nodes": "pairs",
}


def bill(n, days, power, pue):
    joules = energy.energy_of(power, days * 86400, n, pue)
    return energy.cost_of(joules, number("data_centre.electricity_price"))


PUE = float(number("data_centre.pue"))


def first_loss(model, t, p, data, m, gpu, network):
    plan = Plan(data=data, tensor=t, pipeline=p, micro_batches=m, recompute="selective")
    return ts.step(decoder(model), 2048, plan, machine(gpu, network)).largest_loss


def terms_of(t, p, data, m):
    """Seconds of a step of GPT-3, by term."""
    plan = Plan(data=data, tensor=t, pipeline=p, micro_batches=m, recompute="selective")
    return ts.step(decoder(GPT3), 2048, plan, machine("a100_80gb", "infiniband_hdr")).terms


FIRST = {
    "tensor": "The tensor-parallel traffic: a smaller group, or a faster link inside.",
    "bubble": "The bubble: more micro-batches, or an interleaved schedule.",
    "data": "The data-parallel traffic: more tokens a GPU, or a faster network.",
    "memory": "The passes through HBM between products: fuse more.",
}

KEPT = float(memory.activation_bytes(1, 1, 1, 1, recompute="selective"))


def idle_slots(p, m):
    return round(2 * m * pipeline.bubble_over_ideal(p, m))


def leave(n, tokens):
    return parallel.expert_parallel_bytes(tokens, 1, n, 1, element_bytes=1) / 4


def zero_stage_steps(model, n, gpu):
    return [
        step(
            f"Stage {stage}: what is held, and a tenth for buffers, beside what the GPU has.",
            "need / capacity",
            (policy_use(model, gpu, n, stage).total / accelerator(gpu).hbm_capacity, "%"),
            need=(float(policy_use(model, gpu, n, stage).total), "byte"),
            capacity=(accelerator(gpu).hbm_capacity, "byte"),
        )
        for stage in range(4)
    ]


def what_first_steps(t, p, data, m):
    return [
        step(
            f"{name.capitalize()}, as a share of the step.",
            "loss / step",
            loss=(float(seconds), "s"),
            step=(float(sum(terms_of(t, p, data, m).values())), "s"),
        )
        for name, seconds in terms_of(t, p, data, m).items()
        if seconds
    ]


llama = decoder("llama3_70b")
LLAMA_KEEPS = float(model_activation_bytes(llama, 1)) / (llama.depth * llama.width)


def held_by(stage, tokens, n):
    """Return the memory that one H100 needs for Llama 3 70B."""
    capacity = accelerator("h100_sxm").hbm_capacity
    return training_memory(llama, capacity, tokens, data=n, stage=stage)


def too_large(stage, tokens, n):
    """Return the split that fits the largest part, or the recipe that always fits."""
    use = held_by(stage, tokens, n)
    states = use.weights + use.gradients + use.optimizer
    return "states" if states > use.activations else "layers"


def which_split_steps(stage, tokens, n):
    use = held_by(stage, tokens, n)
    states = float(use.weights + use.gradients + use.optimizer)
    return [
        step("The states, over the capacity.", "states / capacity",
             (states / use.capacity, ""), states=(states, "byte"),
             capacity=(float(use.capacity), "byte")),
        step("The activations, over the capacity.", "activations / capacity",
             (float(use.activations / use.capacity), ""),
             activations=(float(use.activations), "byte"),
             capacity=(float(use.capacity), "byte")),
    ]  # fmt: skip
