"""Questions of chapter 6: the checklist before a large run, item by item where an item is a
number.
"""

from __future__ import annotations

import math

from lightspeed import energy, memory, parallel, pipeline, reliability, training
from lightspeed.catalog import accelerator, link, number
from lightspeed.collectives import bandwidth_bound
from lightspeed.transformer import transformer
from lightspeed_course.practice.banks.parallelism import CHAPTER, CLUSTER
from lightspeed_course.practice.derivation import derivation, step
from lightspeed_course.practice.parameters import chip, counted, named, plain
from lightspeed_course.practice.questions import Misconception, Parameter, Question, register
from lightspeed_models import training_step as ts
from lightspeed_models.plan import Plan, machine
from lightspeed_models.simulators import schedules
from lightspeed_show.format import si

GPT3 = "gpt3_175b"
TOKENS = 4096  # of the sequence in the question of ZeRO's stages
# bytes a layer keeps for each of s b h
PER_ELEMENT = memory.activation_bytes(1, 1, 1, 1, recompute="selective")

groups = Question(
    id="parallelism.data_ranks",
    chapter=CHAPTER,
    level="recall",
    prompt=(
        "*Data-parallel group.* {{gpus}} GPUs run with tensor parallelism over {{t}} and pipeline"
        " parallelism over {{p}}. How many replicas of the model train side by side?"
    ),
    parameters={"gpus": plain(1024, 512, 2048), "t": plain(8, 4), "p": plain(16, 8)},
    expected=lambda gpus, t, p: gpus // Plan(tensor=t, pipeline=p).gpus,
    tolerance=0,
    solution=lambda gpus, t, p: derivation(
        step("The GPUs of one replica.", "t * p", t=t, p=p),
        step("The replicas.", "gpus / replica", gpus=gpus, replica=t * p),
    ),
    misconceptions=(
        Misconception(
            "the pipeline forgotten",
            lambda gpus, t, p: gpus // t,
            "A replica has several stages, each on a group of its own.",
        ),
        Misconception(
            "tensor parallelism forgotten",
            lambda gpus, t, p: gpus // p,
            "Each stage of a replica is spread over several GPUs.",
        ),
        Misconception(
            "a sum",
            lambda gpus, t, p: gpus // (t + p),
            "Each stage has a tensor-parallel group to itself. Do these add, or multiply?",
        ),
    ),
)

accumulation = Question(
    id="parallelism.accumulation",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "*Global batch, micro-batch, accumulation.* {{gpus}} GPUs run with tensor parallelism over"
        " {{t}} and pipeline parallelism over {{p}}. A step has {{batch}} sequences, in"
        " micro-batches of {{size}}. How many micro-batches does each replica run before the"
        " optimizer steps?"
    ),
    parameters={
        "gpus": plain(1024, 512),
        "t": plain(8, 4),
        "p": plain(4, 8),
        "batch": plain(2048, 1024, 4096),
        "size": plain(4, 2, 8),
    },
    expected=lambda gpus, t, p, batch, size: batch // (gpus // (t * p) * size),
    tolerance=0,
    solution=lambda gpus, t, p, batch, size: derivation(
        step("A replica takes $t p$ GPUs. So there are", "gpus / (t * p)", gpus=gpus, t=t, p=p),
        step(
            "The sequences of one replica.",
            "batch / replicas",
            batch=batch,
            replicas=gpus // (t * p),
        ),
        step(
            "It takes them in micro-batches.",
            "sequences / size",
            batch // (gpus // (t * p) * size),
            sequences=batch // (gpus // (t * p)),
            size=size,
        ),
        after="Their *number* fills the pipeline; their *size* fills the GPU and its memory.",
    ),
    smaller="parallelism.data_ranks",
    misconceptions=(
        Misconception(
            "sequences of a replica",
            lambda gpus, t, p, batch, size: batch // (gpus // (t * p)),
            "Those are sequences. How many does one micro-batch hold?",
        ),
        Misconception(
            "replicas forgotten",
            lambda gpus, t, p, batch, size: batch // size,
            "The replicas share the sequences of a step.",
        ),
        Misconception(
            "sizes multiplied",
            lambda gpus, t, p, batch, size: batch * size // (gpus // (t * p)),
            "A larger micro-batch makes fewer of them.",
        ),
        Misconception(
            "a replica on each tensor-parallel group",
            lambda gpus, t, p, batch, size: batch / (gpus // t) / size,
            "A replica has several stages, each on a group of its own. How many replicas are left?",
        ),
    ),
)

mapping = Question(
    id="parallelism.stage_in_flight",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "*Pipeline stage mapping.* A 1F1B pipeline of {{p}} stages runs {{m}} micro-batches. For"
        " how many of them does stage {{i}} hold activations at once, the first stage being"
        " number 1?"
    ),
    parameters={"p": plain(8, 6, 16), "m": plain(32, 24, 64), "i": plain(3, 2, 4)},
    expected=lambda p, m, i: schedules.simulate("1f1b", p, m).peak_activations[i - 1],
    tolerance=0,
    solution=lambda p, m, i: derivation(
        "In 1F1B a stage starts its first backward pass when a micro-batch has come back from the"
        " end.",
        step(
            "Before that it runs one forward pass for each stage from itself to the end.",
            "p - i + 1",
            schedules.simulate("1f1b", p, m).peak_activations[i - 1],
            p=p,
            i=i,
        ),
        "From then on each backward pass frees what the next forward pass takes.",
        after=f"GPipe would hold {m}.",
    ),
    smaller="parallelism.before_first_backward",
    misconceptions=(
        Misconception(
            "GPipe",
            lambda p, m, i: m,
            "That is GPipe, which puts the forward passes first. What is the point of 1F1B?",
        ),
        Misconception(
            "all stages",
            lambda p, m, i: p,
            "That is the first stage. A later one waits less long for its first backward pass.",
        ),
        Misconception(
            "the stages before",
            lambda p, m, i: i,
            "Count the stages that a micro-batch still has to pass, there and back.",
        ),
        Misconception(
            "without itself",
            lambda p, m, i: p - i,
            "So many stages come after it. Does it hold nothing of its own while they work?",
        ),
    ),
)


def fewest_micro_batches(p, share):
    """The first m whose bubble is at most this share of the step: (p - 1) (1 - share) / share,
    rounded up.
    """
    return next(m for m in range(1, 10_000) if pipeline.bubble_over_total(p, m) <= share + 1e-12)


bubble_share = Question(
    id="parallelism.fewest_micro_batches",
    chapter=CHAPTER,
    level="design",
    prompt=(
        "*Pipeline bubble.* A pipeline has {{p}} equal stages. How many micro-batches keep its"
        " bubble to at most {{share}} of the whole step?"
    ),
    parameters={"p": plain(8, 6, 12, 16), "share": Parameter(10, (10, 5, 20), "%")},
    expected=fewest_micro_batches,
    tolerance=0,
    solution=lambda p, share: derivation(
        "The bubble is $(p - 1) / (m + p - 1)$ of the step. Let it be the share, and solve for"
        " $m$.",
        step(
            "$m = (p - 1) (1 - s) / s$, and the next whole number.",
            "ceil((p - 1) * (1 - share) / share)",
            fewest_micro_batches(p, share),
            p=p,
            share=(share, "%"),
        ),
    ),
    smaller="parallelism.bubble_over_total",
    holds={
        "has {{p}} equal stages": "design",
    },
    misconceptions=(
        Misconception(
            "over ideal time",
            lambda p, share: math.ceil((p - 1) / share - 1e-9),
            "That is this share of the *work*. The question says: of the whole step.",
        ),
        Misconception(
            "all stages",
            lambda p, share: math.ceil(p / share - 1e-9),
            "How many stages does a stage wait for?",
        ),
        Misconception(
            "as many as stages",
            lambda p, share: p,
            "Work out the share with this m. Then solve for m.",
        ),
    ),
)


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


policy = Question(
    id="parallelism.zero_stage",
    chapter=CHAPTER,
    level="design",
    kind="choice",
    prompt=(
        "*Sharding policy.* {{model}} is to be trained with Adam, gradients in two bytes and"
        " sixteen bytes a parameter together, on {{n}} {{gpu}} by data parallelism alone, one"
        " sequence of "
    )
    + f"{TOKENS:,}"
    + " tokens at a time, with full recomputation, logits in four bytes, and a tenth on top for"
    " buffers and fragmentation. Which is the lowest stage of ZeRO that fits?",
    parameters={
        "model": Parameter(
            "llama2_13b",
            ("llama2_13b", "llama3_8b", "llama2_7b"),
            show=lambda k: {
                "llama2_13b": "Llama 2 13B",
                "llama3_8b": "Llama 3 8B",
                "llama2_7b": "Llama 2 7B",
            }[k],
        ),
        "n": plain(8, 16, 32),
        "gpu": chip("h100_sxm", "a100_40gb", "h200_sxm", facts=("hbm_capacity",)),
    },
    options={
        "ddp": "Plain DDP, without any split.",
        "zero1": "ZeRO-1: the optimizer's states are split.",
        "zero2": "ZeRO-2: the gradients, too.",
        "zero3": "ZeRO-3 or FSDP: the weights, too.",
        "none": "Not even ZeRO-3 fits.",
    },
    expected=lambda model, n, gpu: ("ddp", "zero1", "zero2", "zero3", "none")[
        smallest_stage(model, gpu, n)
    ],
    solution=lambda model, n, gpu: derivation(
        "Each stage of ZeRO splits one more thing over the ranks: the optimizer, the gradients, the"
        " weights. Activations and logits stay.",
        *(
            step(
                f"Stage {stage}: what is held, and a tenth for buffers, beside what the GPU has.",
                "need / capacity",
                (policy_use(model, gpu, n, stage).total / accelerator(gpu).hbm_capacity, "%"),
                need=(float(policy_use(model, gpu, n, stage).total), "byte"),
                capacity=(accelerator(gpu).hbm_capacity, "byte"),
            )
            for stage in range(4)
        ),
        after="Take the first that fits: a later one sends at least as much.",
    ),
    smaller="parallelism.zero_states",
    holds={
        "the lowest stage": "design",
        "sends at least as much": lambda n, **_: (
            (sent := [parallel.data_parallel_bytes(1e9, n, s) for s in range(4)]) == sorted(sent)
        ),
    },
    misconceptions=(
        Misconception(
            "weights fit, so all fits",
            lambda **_: "ddp",
            "The weights are two of sixteen bytes a parameter. Where is the rest?",
        ),
        Misconception(
            "more is safer",
            lambda **_: "zero3",
            "It may fit, but what does it send that an earlier stage does not? Take the first that"
            " fits.",
        ),
        Misconception(
            "optimizer only",
            lambda **_: "zero1",
            "Add up what this stage leaves whole, and the activations. Does that fit, and does"
            " plain DDP fit, too?",
        ),
        Misconception(
            "gradients as well",
            lambda **_: "zero2",
            "Add up the weights, which this stage leaves whole, and the activations. Does that fit,"
            " and would splitting the optimizer's states alone be enough?",
        ),
        Misconception(
            "too large for data parallelism",
            lambda **_: "none",
            "Split the sixteen bytes a parameter over the ranks. What is left?",
        ),
    ),
)

NIC = ("infiniband_hdr", "infiniband_ndr", "infiniband_xdr")
nic = Question(
    id="parallelism.nic_time",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "*NIC bandwidth.* {{nodes}} nodes, one GPU and one network port each ({{network}}), train"
        " {{params}} by data parallelism. How long does the all-reduce of bf16 gradients take, if"
        " nothing hides it?"
    ),
    parameters={
        "nodes": plain(16, 8, 32),
        "network": named(link, "infiniband_ndr", *NIC),
        "params": counted("parameter", 7e9, 1.5e9, 3e9),
    },
    expected=lambda nodes, network, params: bandwidth_bound(
        "all_reduce", 2 * params, nodes, link(network).bandwidth
    ),
    unit="ms",
    tolerance=0.01,
    solution=lambda nodes, network, params: derivation(
        step("The gradients.", "parameters * 2[byte/parameter]", parameters=(params, "parameter")),
        step(
            "They go round twice, less a share, past each port.",
            "2 * (n - 1) / n * gradients / rate",
            (
                float(bandwidth_bound("all_reduce", 2 * params, nodes, link(network).bandwidth)),
                "s",
            ),
            n=nodes,
            gradients=(2 * params, "byte"),
            rate=(link(network).bandwidth, "byte/s"),
        ),
    ),
    smaller="parallelism.gradient_bytes",
    holds={
        "go round twice": lambda nodes, network, params: (
            abs(
                bandwidth_bound("all_reduce", 2 * params, nodes, 1.0) / (2 * params)
                - 2 * (nodes - 1) / nodes
            )
            < 1e-12
        ),
    },
    misconceptions=(
        Misconception(
            "bits as bytes",
            lambda nodes, network, params: (
                bandwidth_bound("all_reduce", 2 * params, nodes, link(network).bandwidth) / 8
            ),
            "Ports are named by bits a second. How many bytes is that?",
        ),
        Misconception(
            "the buffer once",
            lambda nodes, network, params: 2 * params / link(network).bandwidth,
            "How often does the buffer go round in an all-reduce?",
        ),
        Misconception(
            "twice",
            lambda nodes, network, params: 2 * 2 * params / link(network).bandwidth,
            "Nearly: a node keeps one share of the buffer to itself. How much does each pass leave"
            " to send?",
            slight=True,
        ),
        Misconception(
            "both directions added",
            lambda nodes, network, params: bandwidth_bound(
                "all_reduce", 2 * params, nodes, 2 * link(network).bandwidth
            ),
            "A ring sends and receives at once: what a node sends goes out in one direction.",
        ),
        Misconception(
            "fp32 gradients",
            lambda nodes, network, params: bandwidth_bound(
                "all_reduce", 4 * params, nodes, link(network).bandwidth
            ),
            "The gradients are bf16 here.",
        ),
    ),
)

TESTS = {
    "reduce": "all_reduce_perf alone.",
    "shards": "all_gather_perf and reduce_scatter_perf.",
    "exchange": "alltoall_perf.",
    "pairs": "sendrecv_perf.",
}
NEEDED = {
    "FSDP": "shards",
    "DDP": "reduce",
    "experts spread over the nodes": "exchange",
    "a pipeline with its stages on different nodes": "pairs",
}
benchmark = Question(
    id="parallelism.which_benchmark",
    chapter=CHAPTER,
    level="recall",
    kind="choice",
    prompt=(
        "*Benchmarks.* A job uses {{strategy}}. Which of the nccl-tests measures what it will send"
        " between nodes?"
    ),
    parameters={"strategy": Parameter("FSDP", tuple(NEEDED))},
    options=TESTS,
    expected=lambda strategy: NEEDED[strategy],
    solution=lambda strategy: derivation(
        f"What does the job send between nodes? Here: {strategy}.",
        "DDP sums gradients (all-reduce). FSDP gathers weights and scatters sums. Experts exchange"
        " tokens. A pipeline sends from stage to stage.",
        "Take the test that sends in the same pattern.",
        after="A good all-reduce, with switches that add, says little about the others.",
    ),
    holds={
        "An all-to-all sends": "definition",
    },
    misconceptions=(
        Misconception(
            "all-reduce says all",
            lambda strategy: "reduce",
            "Does this job ever need a sum of everything on every rank?",
        ),
        Misconception(
            "tokens are exchanged",
            lambda strategy: "exchange",
            "An all-to-all sends each rank something else. Does each rank get something else here?",
        ),
        Misconception(
            "neighbours only", lambda strategy: "pairs", "Does a rank talk to its neighbour only?"
        ),
        Misconception(
            "shards everywhere", lambda strategy: "shards", "Are weights kept in shards here?"
        ),
    ),
)

failures = Question(
    id="parallelism.cluster_mtbf",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "*Before the checkpoint period.* A job on {{n}} GPUs was interrupted {{failures}} times in"
        " {{days}} days. How many hours between failures should a job on {{more}} of the same GPUs"
        " expect?"
    ),
    parameters={
        "n": plain(16384, 8192),
        "failures": plain(419, 200, 300),
        "days": plain(54, 30, 60),
        "more": plain(100_000, 50_000, 25_000),
    },
    expected=lambda n, failures, days, more: reliability.cluster_mtbf(
        reliability.device_mtbf(reliability.observed_mtbf(days * 86400, failures), n), more
    ),
    unit="h",
    solution=lambda n, failures, days, more: derivation(
        step(
            "How long the job ran between two failures.",
            "time / failures",
            time=(days * 86400, "s"),
            failures=failures,
        ),
        step(
            "A GPU alone fails rarely: multiply by the GPUs that ran.",
            "n * between",
            (float(reliability.device_mtbf(days * 86400 / failures, n)), "s"),
            n=n,
            between=(days * 86400 / failures, "s"),
        ),
        step(
            "More GPUs fail more often in proportion.",
            "alone / more",
            (
                float(
                    reliability.cluster_mtbf(
                        reliability.device_mtbf(
                            reliability.observed_mtbf(days * 86400, failures), n
                        ),
                        more,
                    )
                ),
                "s",
            ),
            alone=(n * days * 86400 / failures, "s"),
            more=more,
        ),
    ),
    smaller="parallelism.rates_add",
    misconceptions=(
        Misconception(
            "the same job",
            lambda n, failures, days, more: reliability.observed_mtbf(days * 86400, failures),
            "That is the job that ran. The new one has more GPUs to lose.",
        ),
        Misconception(
            "one GPU",
            lambda n, failures, days, more: reliability.device_mtbf(
                reliability.observed_mtbf(days * 86400, failures), n
            ),
            "That is a single GPU's.",
        ),
        Misconception(
            "more last longer",
            lambda n, failures, days, more: (
                reliability.observed_mtbf(days * 86400, failures) * more / n
            ),
            "With more parts, does something break sooner or later?",
        ),
    ),
)

saving = {"write": Parameter(30, (30, 60, 120), "s"), "mtbf": Parameter(3, (2, 3, 6), "h")}
interval = Question(
    id="parallelism.checkpoint_interval",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "*Checkpoint period.* A checkpoint stops the job for {{write}}, and the job fails once in"
        " {{mtbf}} on average. How much work should lie between two checkpoints, to first order?"
    ),
    parameters=saving,
    expected=lambda write, mtbf: reliability.young_interval(write, mtbf),
    unit="min",
    tolerance=0.03,
    solution=lambda write, mtbf: derivation(
        "With the interval $\\tau$, writing costs $\\delta / \\tau$ of the time.",
        "A failure comes half an interval after a checkpoint on average: redoing costs $\\tau /"
        " 2M$.",
        step(
            "The sum is least where the two are equal.",
            "sqrt(2 * write * mtbf)",
            (float(reliability.young_interval(write, mtbf)), "s"),
            write=(write, "s"),
            mtbf=(mtbf, "s"),
        ),
        after=f"Daly's longer series says {si(reliability.daly_interval(write, mtbf), 's')}.",
    ),
    smaller="parallelism.cluster_mtbf",
    holds={
        "The sum is least where": lambda write, mtbf: (
            min(
                (0.5, 0.9, 1.0, 1.1, 2.0),
                key=lambda f: reliability.lost_share(
                    f * reliability.young_interval(write, mtbf), write, mtbf
                ),
            )
            == 1.0
        ),
    },
    misconceptions=(
        Misconception(
            "no two",
            lambda write, mtbf: (write * mtbf) ** 0.5,
            "How much of an interval does a failure destroy on average: all of it?",
        ),
        Misconception(
            "plus the write time, twice over",
            lambda write, mtbf: reliability.young_interval(write, mtbf) + 2 * write,
            "Daly's correction takes the write time off; it does not add it.",
        ),
        Misconception(
            "half the MTBF",
            lambda write, mtbf: mtbf / 2,
            "Then a failure often comes before the next checkpoint. What does writing cost?",
        ),
        Misconception(
            "no root, or the time between failures",
            lambda write, mtbf: 2 * write * mtbf / 60,
            "Is that a product of two times? Its root is still to be taken. Or the time between"
            " failures? Would a job then get to its next checkpoint?",
        ),
        Misconception(
            "two twice",
            lambda write, mtbf: math.sqrt(4 * write * mtbf),
            "Where does each two in your root come from? Is one of them there by mistake?",
        ),
    ),
)

lost = Question(
    id="parallelism.lost_share",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "*Checkpoint period, the price.* With the best interval to first order, a checkpoint of"
        " {{write}}, a failure every {{mtbf}} and {{restart}} to get going again, how much time is"
        " lost, as a share of the work done, to first order?"
    ),
    parameters={**saving, "restart": Parameter(5, (5, 10), "min")},
    expected=lambda write, mtbf, restart: reliability.lost_share(
        reliability.young_interval(write, mtbf), write, mtbf, restart
    ),
    unit="%",
    solution=lambda write, mtbf, restart: derivation(
        step(
            "The interval to first order.",
            "sqrt(2 * write * mtbf)",
            (float(reliability.young_interval(write, mtbf)), "s"),
            write=(write, "s"),
            mtbf=(mtbf, "s"),
        ),
        step(
            "Writing, redoing half an interval, and restarting, as shares of the time.",
            "write / interval + interval / (2 * mtbf) + restart / mtbf",
            (
                float(
                    reliability.lost_share(
                        reliability.young_interval(write, mtbf), write, mtbf, restart
                    )
                ),
                "%",
            ),
            write=(write, "s"),
            interval=(float(reliability.young_interval(write, mtbf)), "s"),
            mtbf=(mtbf, "s"),
            restart=(restart, "s"),
        ),
    ),
    smaller="parallelism.checkpoint_interval",
    misconceptions=(
        Misconception(
            "writing only",
            lambda write, mtbf, restart: write / reliability.young_interval(write, mtbf),
            "Each failure also destroys what was done since the last checkpoint.",
        ),
        Misconception(
            "no restart",
            lambda write, mtbf, restart: (2 * write / mtbf) ** 0.5,
            "After each failure the job must start again.",
        ),
        Misconception(
            "a whole interval redone",
            lambda write, mtbf, restart: (
                write / reliability.young_interval(write, mtbf)
                + (reliability.young_interval(write, mtbf) + restart) / mtbf
            ),
            "A failure comes anywhere in the interval. How much of it is lost on average?",
        ),
        Misconception(
            "no writing",
            lambda write, mtbf, restart: (
                (
                    reliability.lost_share(
                        reliability.young_interval(write, mtbf), write, mtbf, restart
                    )
                )
                - write / reliability.young_interval(write, mtbf)
            ),
            "The checkpoints themselves take time, too. Where is it in yours?",
        ),
    ),
)

written = Question(
    id="parallelism.checkpoint_write",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "*Checkpoint, storage.* A model of {{params}} is saved with its weights in two bytes and"
        " Adam's states in twelve. The file system takes {{rate}}. How long does the write last?"
    ),
    parameters={
        "params": counted("parameter", 175e9, 70e9, 405e9),
        "rate": Parameter(50, (50, 100, 200), "GB/s"),
    },
    expected=lambda params, rate: reliability.checkpoint_bytes(params) / rate,
    unit="s",
    solution=lambda params, rate: derivation(
        step(
            "Weights and the states of Adam.",
            "parameters * saved",
            (float(reliability.checkpoint_bytes(params)), "byte"),
            parameters=(params, "parameter"),
            saved=(float(reliability.checkpoint_bytes(1)), "byte/parameter"),
        ),
        step(
            "At the rate of the file system.",
            "checkpoint / rate",
            checkpoint=(float(reliability.checkpoint_bytes(params)), "byte"),
            rate=(rate, "byte/s"),
        ),
        after="Gradients are not saved: the next step makes new ones.",
    ),
    smaller="parallelism.room_for_training",
    misconceptions=(
        Misconception(
            "weights only",
            lambda params, rate: 2 * params / rate,
            "From weights alone Adam starts without its moments.",
        ),
        Misconception(
            "gradients too",
            lambda params, rate: 16 * params / rate,
            "Which of the sixteen bytes does the next step make anew?",
        ),
        Misconception(
            "moments only",
            lambda params, rate: 12 * params / rate,
            "The weights in two bytes are part of the file here.",
        ),
    ),
)


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
first = Question(
    id="parallelism.what_first",
    chapter=CHAPTER,
    level="design",
    kind="choice",
    prompt=(
        "*Overlap, bubble, traffic: what first?* GPT-3 175B is trained on A100s, tensor parallel"
        " over {{t}} inside a node, in a pipeline of {{p}}, {{data}} replicas, {{m}} micro-batches"
        " of one sequence each, selective recomputation, matrix products at full peak, and HDR"
        " InfiniBand between nodes. By the"
        " sum of bounds of this chapter, which loss is the largest?"
    ),
    parameters={
        "t": plain(8, 4, 2),
        "p": plain(16, 8, 4),
        "data": plain(4, 16, 64),
        "m": plain(16, 8, 64, 128),
    },
    options=FIRST,
    expected=lambda t, p, data, m: first_loss(GPT3, t, p, data, m, "a100_80gb", "infiniband_hdr"),
    solution=lambda t, p, data, m: derivation(
        "Estimate each loss in seconds: the bubble, the traffic that is not hidden, the passes"
        " through memory.",
        *(
            step(
                f"{name.capitalize()}, as a share of the step.",
                "loss / step",
                loss=(float(seconds), "s"),
                step=(float(sum(terms_of(t, p, data, m).values())), "s"),
            )
            for name, seconds in terms_of(t, p, data, m).items()
            if seconds
        ),
    ),
    smaller="parallelism.bubble_over_total",
    misconceptions=(
        Misconception(
            "the network, always",
            lambda **_: "data",
            "It is sent once a step, and partly behind the backward pass. How often is the rest"
            " paid?",
        ),
        Misconception(
            "tensor parallelism, always",
            lambda **_: "tensor",
            "It is frequent, but it runs on the link inside the node. Compute the other terms,"
            " too.",
        ),
        Misconception(
            "memory, always",
            lambda **_: "memory",
            "Chapter 2 taught you to look there. How many bytes are these, beside the products?",
        ),
        Misconception(
            "the bubble, always",
            lambda **_: "bubble",
            "How many micro-batches are there for each stage?",
        ),
    ),
    valid=lambda **plan: (
        first_loss(GPT3, gpu="a100_80gb", network="infiniband_hdr", **plan) in FIRST
    ),
)

ways = Question(
    id="parallelism.tensor_ways",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "*Tensor-parallel group.* An MLP of two matrices has a hidden width of {{hidden}}; the GPUs"
        " ({{gpu}}) are joined by their own links. Over how many GPUs, not rounded, can it be split"
        " before it sends longer than it computes?"
    ),
    parameters={"hidden": plain(28672, 14336, 53248), "gpu": CLUSTER["gpu"]},
    expected=lambda hidden, gpu: parallel.tensor_parallel_ways(
        hidden, accelerator(gpu).bf16, accelerator(gpu).link_bandwidth
    ),
    unit="",
    tolerance=0.01,
    solution=lambda hidden, gpu: derivation(
        "A GPU's part of the products shrinks with the group, and what it sends does not. Tokens"
        " are both computed and sent, so they cancel.",
        step(
            "With a rate $R$ and a peak $C$, the two times are the same at $F R / C$.",
            "hidden * rate / peak * 1[FLOP/byte]",
            float(
                parallel.tensor_parallel_ways(
                    hidden, accelerator(gpu).bf16, accelerator(gpu).link_bandwidth
                )
            ),
            hidden=hidden,
            rate=(accelerator(gpu).link_bandwidth, "byte/s"),
            peak=(accelerator(gpu).bf16, "FLOP/s"),
        ),
    ),
    smaller="parallelism.attention_forward",
    misconceptions=(
        Misconception(
            "a third matrix",
            lambda hidden, gpu: (
                1.5 * hidden * accelerator(gpu).link_bandwidth / accelerator(gpu).bf16
            ),
            "A gated MLP has three matrices. How many has this one?",
        ),
        Misconception(
            "both directions",
            lambda hidden, gpu: (
                hidden * accelerator(gpu).link_bandwidth_bidirectional / accelerator(gpu).bf16
            ),
            "A data sheet adds both directions of a link. A rank sends in one.",
        ),
        Misconception(
            "the sparse peak",
            lambda hidden, gpu: (
                hidden * accelerator(gpu).link_bandwidth / accelerator(gpu).bf16_sparse
            ),
            "That is the sparse peak.",
        ),
        Misconception(
            "memory",
            lambda hidden, gpu: hidden * accelerator(gpu).hbm_bandwidth / accelerator(gpu).bf16,
            "Activations cross the link between GPUs, not the memory bus.",
        ),
        Misconception(
            "upside down",
            lambda hidden, gpu: (
                hidden / (accelerator(gpu).bf16 / accelerator(gpu).link_bandwidth) ** 2
            ),
            "Write the two times and set them equal: each of the rates occurs once.",
        ),
        Misconception(
            "the network",
            lambda hidden, gpu: parallel.tensor_parallel_ways(
                hidden, accelerator(gpu).bf16, link("infiniband_ndr").bandwidth
            ),
            "That is the rate of the network. Which link joins these GPUs?",
        ),
    ),
)

activations = Question(
    id="parallelism.activations",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "*Memory headroom.* A GPT of {{layers}} layers, width {{width}} and {{heads}} heads, its"
        " MLP four times that width, with dropout, runs one sequence of {{s}} tokens, in two bytes,"
        " on one GPU. How much room do the activations take with selective recomputation, which"
        " drops the scores?"
    ),
    parameters={
        "layers": plain(48, 32, 40),
        "width": plain(6144, 4096, 5120),
        "heads": plain(64, 32, 40),
        "s": plain(2048, 4096),
    },
    expected=lambda layers, width, heads, s: memory.activation_bytes(
        s, 1, width, heads, layers, recompute="selective"
    ),
    unit="GB",
    tolerance=0.01,
    solution=lambda layers, width, heads, s: derivation(
        step(
            "A layer keeps so many bytes for each token and element of the width.",
            "per_element * s * width",
            per_element=(float(PER_ELEMENT), "byte"),
            s=s,
            width=width,
        ),
        step(
            "Times the layers.",
            "layers * layer",
            (
                float(memory.activation_bytes(s, 1, width, heads, layers, recompute="selective")),
                "byte",
            ),
            layers=layers,
            layer=(PER_ELEMENT * s * width, "byte"),
        ),
        after=(
            "With the scores it would be"
            f" {si(memory.activation_bytes(s, 1, width, heads, layers), 'byte')}, with full"
            " recomputation"
            f" {si(memory.activation_bytes(s, 1, width, heads, layers, recompute='full'), 'byte')}."
        ),
    ),
    smaller="parallelism.kept_by_a_layer",
    holds={
        "four times that width": "design",
    },
    misconceptions=(
        Misconception(
            "no dropout",
            lambda layers, width, heads, s: (
                memory.activation_bytes(s, 1, width, heads, layers, recompute="selective")
                * (PER_ELEMENT - 2)
                / PER_ELEMENT
            ),
            "With dropout a layer also keeps which values it dropped, one byte each, in two"
            " places.",
        ),
        Misconception(
            "scores kept",
            lambda layers, width, heads, s: memory.activation_bytes(s, 1, width, heads, layers),
            "Those grow with the square of the sequence, and are what this drops.",
        ),
        Misconception(
            "what tensor parallelism cuts",
            lambda layers, width, heads, s: 24 * s * width * layers,
            "Those are the bytes that tensor parallelism would cut. Which does one GPU keep, too?",
        ),
        Misconception(
            "bytes counted twice",
            lambda layers, width, heads, s: (
                2 * memory.activation_bytes(s, 1, width, heads, layers, recompute="selective")
            ),
            "The chapter's count of a layer is in bytes already, not in elements.",
        ),
        Misconception(
            "all recomputed",
            lambda layers, width, heads, s: memory.activation_bytes(
                s, 1, width, heads, layers, recompute="full"
            ),
            "That keeps the input of each layer alone.",
        ),
        Misconception(
            "one layer",
            lambda layers, width, heads, s: memory.activation_bytes(
                s, 1, width, heads, 1, recompute="selective"
            ),
            "Each layer keeps its own until the backward pass comes by.",
        ),
    ),
)

schedule = Question(
    id="parallelism.step_span",
    chapter=CHAPTER,
    level="design",
    kind="function",
    prompt=(
        "Write `step_span(p, m, forward, backward)`: the time in s of a GPipe step over `p` equal"
        " stages and `m` micro-batches, given the times in s of a forward and a backward pass of"
        " one stage over one micro-batch."
    ),
    parameters={
        "p": plain(4, 1, 2, 8),
        "m": plain(8, 1, 4, 32),
        "forward": Parameter(0.1, (0.05, 0.1, 0.3), "s"),
        "backward": Parameter(0.2, (0.1, 0.2, 0.25), "s"),
    },
    edges=({"p": 1}, {"m": 1}),
    expected=lambda p, m, forward, backward: (
        schedules.simulate("gpipe", p, m, forward, backward).span
    ),
    unit="s",
    tolerance=0.001,
    solution=derivation(
        "The micro-batches enter the first stage one by one: $m$ forward times.",
        "The last one has the other $p - 1$ stages before it.",
        "The way back takes as many backward times.",
        after=(
            "```python\ndef step_span(p, m, forward, backward):\n"
            "    return (m + p - 1) * (forward + backward)\n```"
        ),
    ),
    smaller="parallelism.pipeline_steps",
    misconceptions=(
        Misconception(
            "no fill",
            lambda p, m, forward, backward: m * (forward + backward),
            "When does the last stage get its first input?",
        ),
        Misconception(
            "all stages",
            lambda p, m, forward, backward: (m + p) * (forward + backward),
            "Try one stage and one micro-batch.",
        ),
        Misconception(
            "fill once",
            lambda p, m, forward, backward: m * (forward + backward) + (p - 1) * forward,
            "The backward pass fills and drains the pipeline, too.",
        ),
        Misconception(
            "one after the other",
            lambda p, m, forward, backward: m * p * (forward + backward),
            "Stages work on different micro-batches at once.",
        ),
        Misconception(
            "forward only",
            lambda p, m, forward, backward: (m + p - 1) * forward,
            "Those are the forward passes. When do the backward passes come?",
        ),
    ),
)

long_sequences = Question(
    id="parallelism.flops_of_long_sequences",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "A GPT of {{layers}} layers, {{width}} wide, its MLP four times that width, with a"
        " vocabulary of {{vocabulary}}, is trained on sequences of {{sequence}} tokens. Its MFU is"
        " worked out with six FLOPs for each parameter and token, the table of words counted once."
        " By what factor must that be raised to count attention's scores, too, without a causal"
        " mask?"
    ),
    parameters={
        "layers": Parameter(32, (24, 32), show=str),
        "width": Parameter(4096, (2048, 4096), show=lambda v: f"{v:,}"),
        "vocabulary": Parameter(52_000, (32_000, 52_000), show=lambda v: f"{v:,}"),
        "sequence": Parameter(32768, (16384, 32768, 65536), show=lambda v: f"{v:,}"),
    },
    expected=lambda layers, width, vocabulary, sequence: (
        training.transformer_training_flops(1, layers, width, vocabulary, sequence)
        / training.training_flops(12 * layers * width**2 + vocabulary * width, 1)
    ),
    unit="",
    tolerance=0.03,
    solution=lambda layers, width, vocabulary, sequence: derivation(
        step(
            "Work with parameters: six FLOPs for each of them and a token.",
            "6 * (weights * layers * width**2 + vocabulary * width)",
            weights=12,
            layers=layers,
            width=width,
            vocabulary=vocabulary,
        ),
        step(
            "Work without parameters: a token attends to the others, in scores and in"
            " values, forward and backward.",
            "2 * 6 * layers * width * sequence",
            layers=layers,
            width=width,
            sequence=sequence,
        ),
        step(
            "Both, over the first.",
            "1 + scores / products",
            float(
                training.transformer_training_flops(1, layers, width, vocabulary, sequence)
                / training.training_flops(12 * layers * width**2 + vocabulary * width, 1)
            ),
            scores=12 * layers * width * sequence,
            products=6 * (12 * layers * width**2 + vocabulary * width),
        ),
    ),
    smaller="training.flops_per_parameter",
    holds={
        "four times that width": "design",
    },
    misconceptions=(
        Misconception(
            "nothing missing",
            lambda layers, width, vocabulary, sequence: 1.0,
            "Six FLOPs a parameter count parameters. Which FLOPs of attention have none?",
        ),
        Misconception(
            "half of them",
            lambda layers, width, vocabulary, sequence: (
                1
                + (
                    training.transformer_training_flops(1, layers, width, vocabulary, sequence)
                    / training.training_flops(12 * layers * width**2 + vocabulary * width, 1)
                    - 1
                )
                / 2
            ),
            "That is the causal half. The question counts the whole, as the tables do.",
        ),
        Misconception(
            "upside down",
            lambda layers, width, vocabulary, sequence: (
                training.training_flops(12 * layers * width**2 + vocabulary * width, 1)
                / training.transformer_training_flops(1, layers, width, vocabulary, sequence)
            ),
            "That is the part over the whole. By what factor must it be raised?",
        ),
        Misconception(
            "what is added",
            lambda layers, width, vocabulary, sequence: (
                (
                    training.transformer_training_flops(1, layers, width, vocabulary, sequence)
                    / training.training_flops(12 * layers * width**2 + vocabulary * width, 1)
                )
                - 1
            ),
            "That is what attention adds. By what factor does the whole grow?",
        ),
    ),
)

register(
    groups,
    accumulation,
    mapping,
    bubble_share,
    policy,
    nic,
    benchmark,
    failures,
    interval,
    lost,
    written,
    power,
    first,
    ways,
    activations,
    schedule,
    long_sequences,
)
