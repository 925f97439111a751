"""What the formulas of parallelism.md call."""

from __future__ import annotations

from lightspeed import energy, memory, parallel, pipeline
from lightspeed.catalog import accelerator, link, number
from lightspeed.collectives import bandwidth_bound
from lightspeed.transformer import transformer
from lightspeed_course.models import training_step as ts
from lightspeed_course.models.plan import Plan, machine
from lightspeed_course.practice.derivation import derivation, step
from lightspeed_course.practice.parameters import named, plain
from lightspeed_course.practice.questions import Misconception, Question
from lightspeed_course.show.format import si
from lightspeed_course.simulators import schedules as schedules

CHAPTER = "06_parallelism"

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
    """Bytes of this stage of ZeRO over those of plain data parallelism, with m micro-batches;
    the number of ranks cancels.
    """
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
    """The tokens of a GPU for which arithmetic takes as long as the traffic."""
    return parallel.data_parallel_tokens(accelerator(gpu).bf16, link(network).bandwidth)


GPT3 = "gpt3_175b"

TOKENS = 4096  # of the sequence in the question of ZeRO's stages

# bytes a layer keeps for each of s b h
PER_ELEMENT = memory.activation_bytes(1, 1, 1, 1, recompute="selective")


def fewest_micro_batches(p, share):
    """The first m whose bubble is at most this share of the step: (p - 1) (1 - share) / share,
    rounded up.
    """
    return next(m for m in range(1, 10_000) if pipeline.bubble_over_total(p, m) <= share + 1e-12)


def smallest_stage(model, gpu, n, recompute="full"):
    """The lowest stage of ZeRO with which one sequence fits; 4 if none does."""
    shape, capacity = transformer(model), accelerator(gpu).hbm_capacity
    use = (
        memory.training_memory(shape, capacity, TOKENS, data=n, stage=s, recompute=recompute)
        for s in range(4)
    )
    return next((stage for stage, u in enumerate(use) if u.fits), 4)


def policy_use(model, gpu, n, stage):
    """What one GPU needs in this stage of ZeRO."""
    return memory.training_memory(
        transformer(model),
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

power = Question(
    id="parallelism.power_bill",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "What does the electricity of a run cost? {{n}} GPUs ({{gpu}}) run at their rated power for"
        " {{days}} days. Electricity costs "
    )
    + si(number("data_centre.electricity_price") * energy.JOULES_PER_KWH, "dollar", 2)
    + " a kWh, and with the building the power is "
    + f"{PUE:.2g}"
    + " times that of the GPUs. What is the bill, in dollars?",
    parameters={
        "n": plain(50_000, 10_000, 16_384),
        "gpu": named(accelerator, "h100_sxm", "b200"),
        "days": plain(60, 30, 90),
    },
    expected=lambda n, gpu, days: bill(n, days, accelerator(gpu).power, PUE),
    unit="dollar",
    tolerance=0.01,
    solution=lambda n, gpu, days: derivation(
        step(
            "The power of the GPUs, with the building.",
            "n * power * PUE",
            (n * accelerator(gpu).power * PUE, "W"),
            n=n,
            power=(accelerator(gpu).power, "W"),
            PUE=PUE,
        ),
        step(
            "Its energy over the time.",
            "power * time / joules_per_kWh",
            (energy.energy_of(accelerator(gpu).power, days * 86400, n, PUE) / 3.6e6, "kWh"),
            power=(n * accelerator(gpu).power * PUE, "W"),
            time=(days * 86400, "s"),
            joules_per_kWh=(energy.JOULES_PER_KWH, "J/kWh"),
        ),
        step(
            "The bill.",
            "energy * price",
            (float(bill(n, days, accelerator(gpu).power, PUE)), "dollar"),
            energy=(
                energy.energy_of(accelerator(gpu).power, days * 86400, n, PUE)
                / energy.JOULES_PER_KWH,
                "kWh",
            ),
            price=(
                number("data_centre.electricity_price") * energy.JOULES_PER_KWH,
                "dollar/kWh",
            ),
        ),
        after="Hosts, switches and storage come on top.",
    ),
    smaller="numbers.token_energy",
    holds={
        "times that of the GPUs": "definition",
    },
    misconceptions=(
        Misconception(
            "the PCIe card",
            lambda n, gpu, days: bill(n, days, accelerator("h100_pcie").power, PUE),
            "That is the power of the PCIe card. Which form is asked?",
        ),
        Misconception(
            "no building",
            lambda n, gpu, days: bill(n, days, accelerator(gpu).power, 1),
            "Cooling and conversion take power, too.",
        ),
        Misconception(
            "the PCIe card, no building",
            lambda n, gpu, days: bill(n, days, accelerator("h100_pcie").power, 1),
            "That is the bill of PCIe cards without the building. Check both premises.",
        ),
        Misconception(
            "a day has twelve hours",
            lambda n, gpu, days: bill(n, days, accelerator(gpu).power, PUE) / 2,
            "The job runs at night, too.",
        ),
        Misconception(
            "an hour a day",
            lambda n, gpu, days: (bill(n, days, accelerator(gpu).power, PUE)) / 24,
            "You paid for an hour of each day. How long does the job run?",
        ),
    ),
)


def first_loss(model, t, p, data, m, gpu, network):
    plan = Plan(data=data, tensor=t, pipeline=p, micro_batches=m, recompute="selective")
    return ts.step(transformer(model), 2048, plan, machine(gpu, network)).largest_loss


def terms_of(t, p, data, m):
    """Seconds of a step of GPT-3 by what takes them."""
    plan = Plan(data=data, tensor=t, pipeline=p, micro_batches=m, recompute="selective")
    return ts.step(transformer(GPT3), 2048, plan, machine("a100_80gb", "infiniband_hdr")).terms


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
