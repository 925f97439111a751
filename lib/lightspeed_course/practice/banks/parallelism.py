"""Questions of chapter 6: what each way of splitting sends, what it saves, and what holds a step
up.
"""

from __future__ import annotations

from lightspeed import memory, parallel, pipeline, reliability
from lightspeed.catalog import accelerator, link
from lightspeed.collectives import bandwidth_bound
from lightspeed_course.practice.derivation import derivation, step
from lightspeed_course.practice.parameters import counted, named, plain
from lightspeed_course.practice.questions import Misconception, Parameter, Question, register
from lightspeed_models.simulators import schedules
from lightspeed_show.format import si

CHAPTER = "06_parallelism"
# What ZeRO-2 splits of a parameter's states.
STATES = memory.training_state_bytes(1)
SPLIT = float(STATES.gradients + STATES.optimizer)


def gradient_bytes(params, n):
    return parallel.data_parallel_bytes(params, n)


gradients = Question(
    id="parallelism.gradient_bytes",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "Why must gradients be synchronised? Each of {{n}} GPUs saw other samples and has other"
        " gradients. A model of {{params}} has gradients of two bytes; a ring all-reduce adds them"
        " up. How much does each GPU send in a step?"
    ),
    parameters={"params": counted("parameter", 8e9, 1e9, 3e9, 13e9), "n": plain(8, 4, 16, 64)},
    expected=gradient_bytes,
    unit="GB",
    solution=lambda params, n: derivation(
        step(
            "The buffer of gradients.",
            "parameters * 2[byte/parameter]",
            parameters=(params, "parameter"),
        ),
        step(
            "A ring goes round with it twice, less the share that a rank has itself.",
            "2 * (n - 1) / n * buffer",
            (gradient_bytes(params, n), "byte"),
            n=n,
            buffer=(2 * params, "byte"),
        ),
    ),
    smaller="parallelism.three_collectives",
    holds={
        "goes round with it twice": lambda params, n: (
            abs(gradient_bytes(params, n) / (2 * params) - 2 * (n - 1) / n) < 1e-12
        ),
    },
    misconceptions=(
        Misconception(
            "the buffer once",
            lambda params, n: 2 * params,
            "That is the size of the gradients. Each GPU needs the sum. How often does the buffer"
            " go round?",
        ),
        Misconception(
            "twice",
            lambda params, n: 2 * 2 * params,
            "Nearly: a rank keeps one share of the buffer to itself. How much does each pass leave"
            " to send?",
            slight=True,
        ),
        Misconception(
            "a gather only",
            lambda params, n: gradient_bytes(params, n) / 2,
            "That is the reduce-scatter, or the all-gather. Which one is missing?",
        ),
        Misconception(
            "to every other rank",
            lambda params, n: 2 * params * (n - 1),
            "In a ring each GPU adds what it got and passes it on to one neighbour.",
        ),
        Misconception(
            "fp32 gradients",
            lambda params, n: 2 * gradient_bytes(params, n),
            "How many bytes does a gradient have here?",
        ),
    ),
)

bubble = Question(
    id="parallelism.bubble_over_total",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "Why is there a bubble? A pipeline of {{p}} equal stages works on {{m}} micro-batches,"
        " forward and backward. What share of the GPU time of the whole step is idle?"
    ),
    parameters={"p": plain(8, 4, 16), "m": plain(32, 16, 24, 64)},
    expected=lambda p, m: pipeline.bubble_over_total(p, m),
    unit="%",
    tolerance=0.01,
    solution=lambda p, m: derivation(
        "Count in the time of one micro-batch in a stage, forward and backward.",
        step(
            "The step lasts until the last micro-batch has passed the last stage.",
            "m + p - 1",
            m=m,
            p=p,
        ),
        step("Each stage works for $m$ of these. It waits for", "step - m", step=m + p - 1, m=m),
        step(
            "The share of the whole step.",
            "idle / step",
            (float(pipeline.bubble_over_total(p, m)), "%"),
            idle=p - 1,
            step=m + p - 1,
        ),
    ),
    smaller="parallelism.idle_slots",
    holds={
        "of {{p}} equal stages": "design",
    },
    misconceptions=(
        Misconception(
            "over ideal time",
            lambda p, m: pipeline.bubble_over_ideal(p, m),
            "You divided the idle time by the time of the work. The question says: of the whole"
            " step.",
        ),
        Misconception(
            "all stages",
            lambda p, m: p / (m + p),
            "The stage that works first does not wait for itself. How many stages does the last one"
            " wait for?",
        ),
        Misconception(
            "fill only",
            lambda p, m: (p - 1) / 2 / (m + p - 1),
            "You counted the fill and forgot the drain, or the other way round.",
        ),
        Misconception(
            "counted twice",
            lambda p, m: 2 * (p - 1) / (m + 2 * (p - 1)),
            "Fill and drain cost $p - 1$ slots of a forward and a backward pass together, not"
            " each.",
        ),
        Misconception(
            "stages over micro-batches",
            lambda p, m: p / m,
            "You divided the stages by the micro-batches. How many stages does the last one wait"
            " for, and how long is the whole step?",
        ),
    ),
)

collectives_in_a_step = Question(
    id="parallelism.tensor_collectives",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "What does tensor parallelism make a step wait for? A model of {{layers}} layers is trained"
        " with {{m}} micro-batches a step on a single tensor-parallel group, without recomputation."
        " How many all-reduces of activations stand in the way of a step, where data parallelism"
        " has one of gradients?"
    ),
    parameters={"layers": plain(32, 24, 48, 96), "m": plain(16, 8, 32)},
    expected=lambda layers, m: 4 * layers * m,
    tolerance=0,
    solution=lambda layers, m: derivation(
        "Attention and MLP each end in one all-reduce in the forward pass, and again in the"
        " backward pass.",
        step("Two blocks, two passes: for a layer and a micro-batch.", "2 * 2"),
        step(
            "Times the layers, times the micro-batches.",
            "4 * layers * m",
            4 * layers * m,
            layers=layers,
            m=m,
        ),
        after="Each has to wait for the product before it, and the next product waits for it.",
    ),
    smaller="parallelism.attention_forward",
    misconceptions=(
        Misconception(
            "forward only", lambda layers, m: 2 * layers * m, "The backward pass has its own."
        ),
        Misconception(
            "one a layer",
            lambda layers, m: layers * m,
            "A layer has two blocks, and each is passed forward and backward.",
        ),
        Misconception(
            "one micro-batch", lambda layers, m: 4 * layers, "That is for one micro-batch."
        ),
        Misconception(
            "Q, K and V too",
            lambda layers, m: 8 * layers * m,
            "The first matrix of each block is split by columns. Does its result have to be put"
            " together?",
        ),
        Misconception(
            "one layer",
            lambda layers, m: 4 * m,
            "That is for one layer. How many does the model have?",
        ),
    ),
)


def three_collectives(size, n):
    return tuple(
        bandwidth_bound(c, size, n, 1.0) for c in ("all_reduce", "all_gather", "reduce_scatter")
    )


three = Question(
    id="parallelism.three_collectives",
    chapter=CHAPTER,
    level="recall",
    kind="array",
    names=("all_reduce", "all_gather", "reduce_scatter"),
    prompt=(
        "What tells all-reduce, all-gather and reduce-scatter apart? On {{n}} GPUs, with a full"
        " buffer of {{size}}, how much does each GPU send in a ring of each?"
    ),
    parameters={"size": Parameter(1, (1, 2, 4), "GB"), "n": plain(8, 4, 16)},
    expected=three_collectives,
    unit="MB",
    tolerance=0.005,
    solution=lambda size, n: derivation(
        step("A share of the buffer.", "buffer / n", buffer=(size, "byte"), n=n),
        step(
            "A reduce-scatter leaves each rank with its share of the sum, an all-gather hands the"
            " shares round. In each of the two a rank passes on",
            "(n - 1) * share",
            (three_collectives(size, n)[1], "byte"),
            n=n,
            share=(size / n, "byte"),
        ),
        step(
            "An all-reduce is the one after the other.",
            "2 * passed",
            (three_collectives(size, n)[0], "byte"),
            passed=(three_collectives(size, n)[1], "byte"),
        ),
    ),
    misconceptions=(
        Misconception(
            "three alike",
            lambda size, n: (size * (n - 1) / n,) * 3,
            "One of the three is the other two in a row.",
        ),
        Misconception(
            "only a share",
            lambda size, n: (2 * size / n, size / n, size / n),
            "That leaves a rank in one step. How many steps does a ring take?",
        ),
        Misconception(
            "the whole buffer",
            lambda size, n: (2 * size, size, size),
            "A rank keeps one share to itself and need not send it.",
        ),
        Misconception(
            "a gather like a sum",
            lambda size, n: (
                bandwidth_bound("all_reduce", size, n, 1.0),
                bandwidth_bound("all_reduce", size, n, 1.0),
                bandwidth_bound("all_gather", size, n, 1.0),
            ),
            "Is anything added up in an all-gather? Compare the passes of the two.",
        ),
    ),
)

zero3 = Question(
    id="parallelism.zero3_bytes",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "What does FSDP cost on the network? {{n}} GPUs train a model of {{params}} with ZeRO-3,"
        " weights and gradients in two bytes, one micro-batch a step. How much does each GPU send"
        " in a step?"
    ),
    parameters={"params": counted("parameter", 7e9, 3e9, 13e9, 30e9), "n": plain(16, 8, 32, 64)},
    expected=lambda params, n: parallel.data_parallel_bytes(params, n, stage=3),
    unit="GB",
    tolerance=0.01,
    solution=lambda params, n: derivation(
        "Weights are gathered before the forward and before the backward pass, gradients scattered"
        " after it: three passes of one collective each.",
        step(
            "One of them sends",
            "(n - 1) / n * parameters * 2[byte/parameter]",
            n=n,
            parameters=(params, "parameter"),
        ),
        step(
            "Three passes.",
            "3 * one",
            (float(parallel.data_parallel_bytes(params, n, stage=3)), "byte"),
            one=(2 * params * (n - 1) / n, "byte"),
        ),
        after="DDP sends two thirds of that.",
    ),
    smaller="parallelism.gradient_bytes",
    holds={
        "DDP sends two thirds of that": lambda params, n: (
            abs(gradient_bytes(params, n) * 3 / 2 / parallel.data_parallel_bytes(params, n, 3) - 1)
            < 1e-12
        ),
    },
    misconceptions=(
        Misconception(
            "as much as DDP",
            lambda params, n: parallel.data_parallel_bytes(params, n),
            "That is what DDP and the first two stages send. What does a GPU lack that keeps a"
            " share of the weights?",
        ),
        Misconception(
            "weights only",
            lambda params, n: parallel.data_parallel_bytes(params, n, 3) * 2 / 3,
            "The gradients must be summed as well. And how often are the weights gathered?",
        ),
        Misconception(
            "the whole model",
            lambda params, n: 3 * 2 * params,
            "Nearly: each rank has a share of its own, which it need not receive. How much is"
            " left?",
            slight=True,
        ),
        Misconception(
            "gathered once",
            lambda params, n: parallel.data_parallel_bytes(params, n, 3) / 3,
            "The weights of a layer are freed after its forward pass, and there are gradients,"
            " too.",
        ),
        Misconception(
            "optimizer too",
            lambda params, n: 16 * params * (n - 1) / n,
            "Each rank updates its own share. Do the optimizer's states ever travel?",
        ),
        Misconception(
            "fp32",
            lambda params, n: 2 * (parallel.data_parallel_bytes(params, n, stage=3)),
            "How wide are the weights and the gradients here? Yours look like fp32.",
        ),
    ),
)


def times_plain(m, stage):
    """Bytes of this stage of ZeRO over those of plain data parallelism, with m micro-batches;
    the number of ranks cancels.
    """
    return parallel.data_parallel_bytes(1.0, 64, stage, m) / parallel.data_parallel_bytes(
        1.0, 64, 0, m
    )


accumulated = Question(
    id="parallelism.zero3_accumulated",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "A job of plain data parallelism adds up the gradients of {{m}} micro-batches before each"
        " optimizer step. It is switched to ZeRO-3, which gathers and scatters again in each"
        " micro-batch; weights and gradients have two bytes. How many times what plain data"
        " parallelism sends does each GPU now send in a step?"
    ),
    parameters={"m": plain(8, 4, 16, 32)},
    expected=lambda m: times_plain(m, 3),
    tolerance=0.01,
    solution=lambda m: derivation(
        "Let $G$ be the bytes of the gradients and $W$ those of the weights: here the two are"
        " alike. The share $(n - 1)/n$ is in each term, and cancels.",
        step("Plain data parallelism sends the gradients twice, once a step.", "2 * G", G=1),
        step(
            "Stage 3 gathers the weights twice and scatters the gradients, in each micro-batch.",
            "m * (G + 2 * W)",
            m=m,
            G=1,
            W=1,
        ),
        step("Divide.", "stage_3 / plain", times_plain(m, 3), stage_3=3 * m, plain=2),
    ),
    smaller="parallelism.zero3_bytes",
    holds={
        "sends the gradients twice": (
            lambda m: parallel.data_parallel_bytes(1.0, 64) == 2 * 2 * 63 / 64
        ),
        "gathers the weights twice": (
            lambda m: parallel.data_parallel_bytes(1.0, 64, 3, m) == m * (2 + 2 * 2) * 63 / 64
        ),
    },
    misconceptions=(
        Misconception(
            "one micro-batch",
            lambda m: times_plain(1, 3),
            "That is with one micro-batch. What does ZeRO-3 repeat in each of them, and what does"
            " plain data parallelism repeat?",
        ),
        Misconception(
            "stage 2",
            lambda m: times_plain(m, 2),
            "That is stage 2, which scatters gradients in each micro-batch, but keeps whole"
            " weights.",
        ),
        Misconception(
            "gathered once",
            lambda m: m,
            "In each micro-batch the weights are gathered before the forward pass, and again before"
            " the backward pass.",
        ),
        Misconception(
            "three passes",
            lambda m: 3 * m,
            "Three passes in each micro-batch is right. How many does the all-reduce of plain data"
            " parallelism make?",
        ),
        Misconception(
            "the same",
            lambda m: 1,
            "That holds for stage 1, which sends once a step. When must stage 3 have the weights?",
        ),
    ),
)

room = Question(
    id="parallelism.room_for_training",
    chapter=CHAPTER,
    level="recall",
    prompt=(
        "A model is trained with Adam in mixed precision: weights and gradients in two bytes, and"
        " in four bytes each a precise copy of the weights and two means that Adam keeps. How many"
        " times the room of the weights do all of these take together?"
    ),
    expected=lambda: memory.training_state_bytes(1).total / memory.training_state_bytes(1).weights,
    tolerance=0.01,
    solution=derivation(
        step(
            "Weight and gradient, in bytes for a parameter.",
            "weight + gradient",
            weight=2,
            gradient=2,
        ),
        step("The optimizer: the copy and the two means.", "3 * wide", wide=4),
        step(
            "Both, over the weight.",
            "(pair + optimizer) / weight",
            memory.training_state_bytes(1).total / memory.training_state_bytes(1).weights,
            pair=4,
            optimizer=12,
            weight=2,
        ),
    ),
    misconceptions=(
        Misconception(
            "without an optimizer",
            lambda: 2.0,
            "That is the weights and their gradients. What does Adam keep from step to step?",
        ),
        Misconception("no copy", lambda: 6.0, "One thing in four bytes is missing. Which one?"),
        Misconception(
            "no gradients",
            lambda: 7.0,
            "Nearly. Either the weights or their gradients are missing.",
            slight=True,
        ),
        Misconception(
            "four in two bytes",
            lambda: 4.0,
            "That counts four things of two bytes. How wide is what the optimizer keeps, and is the"
            " copy of the weights among it?",
        ),
        Misconception(
            "all in two bytes",
            lambda: 5.0,
            "That counts five things of two bytes. How wide is what the optimizer keeps?",
        ),
        Misconception(
            "bytes of a parameter",
            lambda: 16.0,
            "That is the number of bytes for each parameter. How many of them does the weight"
            " take?",
        ),
    ),
)

states = Question(
    id="parallelism.zero_states",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "What does ZeRO save? A model of {{params}} is trained with Adam on {{n}} GPUs, weights and"
        " gradients in two bytes, sixteen bytes a parameter with the optimizer. How many bytes of"
        " states does each GPU hold with ZeRO-2?"
    ),
    parameters={"params": counted("parameter", 13e9, 7e9, 30e9), "n": plain(8, 16, 32)},
    expected=lambda params, n: memory.training_state_bytes(params, n=n, stage=2).total,
    unit="GB",
    tolerance=0.01,
    solution=lambda params, n: derivation(
        step(
            "The weights stay whole.",
            "parameters * 2[byte/parameter]",
            parameters=(params, "parameter"),
        ),
        step(
            "Gradients and optimizer are split.",
            "parameters * split / n",
            parameters=(params, "parameter"),
            split=(SPLIT, "byte/parameter"),
            n=n,
        ),
        step(
            "Together.",
            "weights + split",
            (float(memory.training_state_bytes(params, n=n, stage=2).total), "byte"),
            weights=(2 * params, "byte"),
            split=(14 * params / n, "byte"),
        ),
    ),
    smaller="parallelism.room_for_training",
    misconceptions=(
        Misconception(
            "stage 1",
            lambda params, n: memory.training_state_bytes(params, n=n, stage=1).total,
            "You left the gradients whole. What does the second stage split?",
        ),
        Misconception(
            "stage 3",
            lambda params, n: memory.training_state_bytes(params, n=n, stage=3).total,
            "What does the second stage leave whole, so that a product can run without a gather?",
        ),
        Misconception(
            "nothing split", lambda params, n: 16 * params, "That is DDP: the states are not split."
        ),
        Misconception("weights only", lambda params, n: 2 * params, "And the shares of the rest?"),
        Misconception(
            "no gradients",
            lambda params, n: 2 * params + 12 * params / n,
            "These are the weights and a share of the optimizer. What else do the states hold?",
        ),
        Misconception(
            "GiB",
            lambda params, n: (memory.training_state_bytes(params, n=n, stage=2).total) / 1.024**3,
            "Is that in GiB? The question asks for GB.",
        ),
    ),
)

exchange = Question(
    id="parallelism.expert_exchange",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "Why do experts make all-to-all traffic? {{n}} GPUs hold an expert each. A GPU has"
        " {{tokens}} of width {{width}} in two bytes and sends each token to the {{k}} experts that"
        " its router chose, without favourites. How much leaves it in one such exchange?"
    ),
    parameters={
        "n": plain(8, 16, 32),
        "tokens": Parameter(4096, (2048, 4096, 8192), "", lambda x: si(x, "token")),
        "width": plain(4096, 5120, 8192),
        "k": plain(2, 1, 4),
    },
    expected=lambda n, tokens, width, k: parallel.expert_parallel_bytes(tokens, width, n, k) / 4,
    unit="MB",
    tolerance=0.01,
    solution=lambda n, tokens, width, k: derivation(
        step("A token, in two bytes an element.", "width * 2[byte/token]", width=width),
        step(
            "The GPU sends one copy for each expert chosen, except to the expert at home: one in"
            " $n$.",
            "tokens * k * token * (n - 1) / n",
            (float(parallel.expert_parallel_bytes(tokens, width, n, k) / 4), "byte"),
            tokens=(tokens, "token"),
            k=k,
            token=(2 * width, "byte/token"),
            n=n,
        ),
        after="A layer needs four of these: out and back, forward and backward.",
    ),
    smaller="parallelism.tokens_that_leave",
    misconceptions=(
        Misconception(
            "all four",
            lambda n, tokens, width, k: parallel.expert_parallel_bytes(tokens, width, n, k),
            "That is a layer's whole step. The question is about one exchange.",
        ),
        Misconception(
            "nobody stays",
            lambda n, tokens, width, k: tokens * width * 2 * k,
            "Some tokens have their expert on their own GPU.",
        ),
        Misconception(
            "a copy for everyone",
            lambda n, tokens, width, k: tokens * width * 2 * (n - 1),
            "That would be an all-gather. A token goes to its own experts, not to each GPU.",
        ),
        Misconception(
            "an n-th leaves",
            lambda n, tokens, width, k: tokens * width * 2 * k / n,
            "That is what stays, or goes to one of them.",
        ),
        Misconception(
            "one expert a token",
            lambda n, tokens, width, k: (
                (parallel.expert_parallel_bytes(tokens, width, n, k) / 4) / k
            ),
            "You sent each token to one expert. How many does its router choose?",
            slight=True,
        ),
        Misconception(
            "there and back",
            lambda n, tokens, width, k: (
                2 * (parallel.expert_parallel_bytes(tokens, width, n, k) / 4)
            ),
            "That is the way there and the way back. How many exchanges does the question ask"
            " about?",
        ),
    ),
)

hot = Question(
    id="parallelism.hot_expert",
    chapter=CHAPTER,
    level="design",
    prompt=(
        "What does a popular expert cost? {{n}} GPUs hold an expert each, and {{share}} of the"
        " tokens want the same one. How many times as long does the exchange take as with a fair"
        " router, if each GPU sends and receives at the same rate at once?"
    ),
    parameters={"n": plain(8, 16, 32), "share": Parameter(50, (50, 40, 30), "%")},
    expected=lambda n, share: (
        parallel.skewed_exchange(1000, 1000, n, share).hot_receives
        / parallel.skewed_exchange(1000, 1000, n, 1 / n).hot_receives
    ),
    tolerance=0.01,
    solution=lambda n, share: derivation(
        "Each GPU sends and receives at once, so the longest of these sets the time.",
        step(
            "With a fair router an expert receives this share of the tokens.",
            "1 / n",
            (1 / n, "%"),
            n=n,
        ),
        step(
            "The popular one receives its share from as many GPUs.",
            "share / fair",
            parallel.skewed_exchange(1000, 1000, n, share).hot_receives
            / parallel.skewed_exchange(1000, 1000, n, 1 / n).hot_receives,
            share=(share, "%"),
            fair=(1 / n, "%"),
        ),
        after="The others wait for it.",
    ),
    smaller="parallelism.expert_exchange",
    holds={
        "the longest of these sets": lambda n, share: (
            (skew := parallel.skewed_exchange(1000, 1000, n, share)).hot_receives
            == max(vars(skew).values())
        ),
    },
    misconceptions=(
        Misconception(
            "mean over the ranks",
            lambda n, share: 1.0 + share / n,
            "Do the others finish the layer before the hot one has its tokens?",
        ),
        Misconception(
            "senders only",
            lambda n, share: (
                parallel.skewed_exchange(1000, 1000, n, share).other_sends
                / parallel.skewed_exchange(1000, 1000, n, 1 / n).other_sends
            ),
            "You looked at what is sent. What does the hot GPU receive?",
        ),
        Misconception(
            "share of everything",
            lambda n, share: share * n * n / (n - 1),
            "Nearly. Some tokens start on the hot GPU, in both cases.",
        ),
        Misconception(
            "share alone",
            lambda n, share: 1 / share,
            "Compare what the hot GPU receives with what a fair share would be.",
        ),
        Misconception(
            "all to one",
            lambda n, share: n,
            "So it would be if each token wanted the same expert. How many do?",
        ),
        Misconception(
            "the share itself",
            lambda n, share: share,
            "That is the share of the tokens. How large is a fair share?",
        ),
    ),
)

CLUSTER = {
    "gpu": named(accelerator, "h100_sxm", "a100_80gb", "b200"),
    "network": named(link, "infiniband_ndr", "infiniband_hdr", "ethernet_400g"),
}
critical = Question(
    id="parallelism.critical_tokens",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "How does a strategy shape the network? An FSDP group has one {{gpu}} in each of many"
        " nodes, and each has a network port to itself ({{network}}). From how many tokens for"
        " each GPU on does it compute longer than it sends?"
    ),
    parameters=CLUSTER,
    expected=lambda gpu, network: parallel.data_parallel_tokens(
        accelerator(gpu).bf16, link(network).bandwidth
    ),
    unit="token",
    tolerance=0.02,
    solution=lambda gpu, network: derivation(
        "Per parameter the backward pass does four FLOPs for each token and sends four bytes: two"
        " for the gathered weight, two for the scattered gradient.",
        step(
            "The time of the arithmetic, for one token and parameter.",
            "4[FLOP/token] / peak",
            peak=(accelerator(gpu).bf16, "FLOP/s"),
        ),
        step(
            "The time of the traffic, for one parameter.",
            "4[byte] / rate",
            rate=(link(network).bandwidth, "byte/s"),
        ),
        step(
            "Where both are the same, the tokens are",
            "traffic / arithmetic",
            (
                float(
                    parallel.data_parallel_tokens(accelerator(gpu).bf16, link(network).bandwidth)
                ),
                "token",
            ),
            traffic=(4 / link(network).bandwidth, "s"),
            arithmetic=(4 / accelerator(gpu).bf16, "s/token"),
        ),
    ),
    smaller="roofline.ridge",
    holds={
        "no more than its own part": "definition",
    },
    misconceptions=(
        Misconception(
            "bits as bytes",
            lambda gpu, network: accelerator(gpu).bf16 / link(network).bandwidth / 8,
            "A factor of eight may be bits taken for bytes: ports are named by bits a second.",
        ),
        Misconception(
            "tensor parallelism inside",
            lambda gpu, network: parallel.data_parallel_tokens(
                accelerator(gpu).bf16, link(network).bandwidth, tensor=8
            ),
            "FSDP would need that much if each layer were split over the eight GPUs of a node. Is"
            " it here?",
        ),
        Misconception(
            "the ridge of memory",
            lambda gpu, network: accelerator(gpu).bf16 / accelerator(gpu).hbm_bandwidth,
            "You divided by the memory's bandwidth. Which link do the gradients cross?",
        ),
        Misconception(
            "the link inside",
            lambda gpu, network: accelerator(gpu).bf16 / accelerator(gpu).link_bandwidth,
            "That is the condition inside a node. The job spans many.",
        ),
        Misconception(
            "a node's ports",
            lambda gpu, network: accelerator(gpu).bf16 / link(network).bandwidth / 8,
            "You gave a GPU the ports of its whole node, and let it send no more than its own"
            " part.",
        ),
        Misconception(
            "twice",
            lambda gpu, network: (
                2 * (parallel.data_parallel_tokens(accelerator(gpu).bf16, link(network).bandwidth))
            ),
            "Is your peak the dense one, or one with sparsity? And is the port's rate that of each"
            " direction?",
        ),
        Misconception(
            "half",
            lambda gpu, network: (
                (parallel.data_parallel_tokens(accelerator(gpu).bf16, link(network).bandwidth)) / 2
            ),
            "That is half. Did you add the two directions of the port, or count a multiply-add as"
            " one operation?",
        ),
    ),
)


def all_reduce_time(rate, tokens, width, t):
    return parallel.tensor_parallel_bytes(tokens, width, t) / rate


nvlink = Question(
    id="parallelism.tensor_over_network",
    chapter=CHAPTER,
    level="design",
    prompt=(
        "Why NVLink for tensor parallelism? A layer of width {{width}} is split over {{t}} GPUs"
        " ({{gpu}}). A micro-batch has {{tokens}}. How long do the four all-reduces of its"
        " activations take in bf16 if the group has one GPU in each of {{t}} nodes, each with one"
        " network port ({{network}})?"
    ),
    parameters={
        "width": plain(8192, 4096, 12288),
        "t": plain(8, 4),
        "tokens": counted("token", 4096, 2048, 8192),
        **CLUSTER,
    },
    expected=lambda width, t, tokens, gpu, network: all_reduce_time(
        link(network).bandwidth, tokens, width, t
    ),
    unit="ms",
    tolerance=0.01,
    solution=lambda width, t, tokens, gpu, network: derivation(
        step(
            "The activations of a micro-batch.",
            "tokens * width * 2[byte/token]",
            tokens=(tokens, "token"),
            width=width,
        ),
        step(
            "Four all-reduces of them, with the two passes of a ring.",
            "4 * 2 * (t - 1) / t * activations",
            (float(parallel.tensor_parallel_bytes(tokens, width, t)), "byte"),
            t=t,
            activations=(2 * tokens * width, "byte"),
        ),
        step(
            "Over the network port.",
            "sent / rate",
            (float(all_reduce_time(link(network).bandwidth, tokens, width, t)), "s"),
            sent=(float(parallel.tensor_parallel_bytes(tokens, width, t)), "byte"),
            rate=(link(network).bandwidth, "byte/s"),
        ),
        after=(
            f"On the links inside a node of {accelerator(gpu).name} it takes"
            f" {si(all_reduce_time(accelerator(gpu).link_bandwidth, tokens, width, t), 's')}, and"
            " the next product has to wait for it."
        ),
    ),
    smaller="parallelism.attention_forward",
    misconceptions=(
        Misconception(
            "on NVLink",
            lambda width, t, tokens, gpu, network: all_reduce_time(
                accelerator(gpu).link_bandwidth, tokens, width, t
            ),
            "That is the time inside a node. This group is spread over nodes.",
        ),
        Misconception(
            "twice",
            lambda width, t, tokens, gpu, network: (
                4 * 2 * tokens * width * 2 / link(network).bandwidth
            ),
            "Nearly: each GPU keeps one share of what is added up to itself. How much does each"
            " pass leave to send?",
            slight=True,
        ),
        Misconception(
            "forward only",
            lambda width, t, tokens, gpu, network: (
                all_reduce_time(link(network).bandwidth, tokens, width, t) / 2
            ),
            "Two of the four are in the backward pass.",
        ),
        Misconception(
            "a gather for each",
            lambda width, t, tokens, gpu, network: (
                all_reduce_time(link(network).bandwidth, tokens, width, t) * 3 / 4
            ),
            "An all-reduce is a scatter of sums and a gather: count both, four times.",
        ),
        Misconception(
            "the activations once",
            lambda width, t, tokens, gpu, network: 4 * tokens * width * 2 / link(network).bandwidth,
            "That sends each result once. How often does a buffer go round in a ring?",
        ),
        Misconception(
            "one all-reduce",
            lambda width, t, tokens, gpu, network: (
                (all_reduce_time(link(network).bandwidth, tokens, width, t)) / 4
            ),
            "That is one of the four all-reduces. What of the others?",
        ),
        Misconception(
            "bits as bytes",
            lambda width, t, tokens, gpu, network: (
                (all_reduce_time(link(network).bandwidth, tokens, width, t)) / 8
            ),
            "A factor of eight may be bits taken for bytes: ports are named by bits a second.",
        ),
    ),
)

straggler = Question(
    id="parallelism.straggler",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "How can one slow GPU delay a whole job? In any step each of {{n}} GPUs is slow with a"
        " chance of {{chance}}, and then takes {{slow}} times its usual time. The others wait for"
        " the slowest. How much longer than a step without stragglers is the mean step?"
    ),
    parameters={
        "n": plain(1024, 512, 4096, 8192),
        "chance": Parameter(0.1, (0.1, 0.05, 0.02), "%"),
        "slow": plain(1.5, 1.3, 2.0),
    },
    expected=lambda n, chance, slow: reliability.straggler_stretch(n, chance, slow) - 1,
    unit="%",
    tolerance=0.02,
    solution=lambda n, chance, slow: derivation(
        "The chance that a GPU is fast counts once for each of them. Multiply.",
        step(
            "So some GPU is slow in this share of the steps.",
            "1 - fast",
            (1 - (1 - chance) ** n, "%"),
            fast=((1 - chance) ** n, "%"),
        ),
        step(
            "Then a slow GPU sets the pace, and adds its excess.",
            "share * (slow - 1)",
            (float(reliability.straggler_stretch(n, chance, slow) - 1), "%"),
            share=(1 - (1 - chance) ** n, "%"),
            slow=slow,
        ),
        after=f"Fast means $(1 - q)^n$, here {(1 - chance) ** n:.1%} of the steps.",
    ),
    smaller="network.any_hit",
    holds={
        "times its usual time": "definition",
        "wait for the slowest": "definition",
        "may be above one": "definition",
    },
    misconceptions=(
        Misconception(
            "the share of slow steps",
            lambda n, chance, slow: 1 - (1 - chance) ** n,
            "That is the share of steps in which some GPU is slow. How much longer does such a step"
            " take?",
            slight=True,
        ),
        Misconception(
            "the whole step",
            lambda n, chance, slow: reliability.straggler_stretch(n, chance, slow),
            "That is the whole mean step. How much *longer* than a step without stragglers is it?",
        ),
        Misconception(
            "the mean GPU",
            lambda n, chance, slow: chance * (slow - 1),
            "That is how much slower the mean GPU is. Do the others wait for the mean?",
        ),
        Misconception(
            "always one slow",
            lambda n, chance, slow: slow - 1,
            "In what share of the steps is no GPU slow?",
        ),
        Misconception(
            "chances add up",
            lambda n, chance, slow: n * chance * (slow - 1),
            "The expected number of slow GPUs may be above one. Can the probability of a slow"
            " step be?",
        ),
    ),
)

scaling_out = Question(
    id="parallelism.batch_for_64",
    chapter=CHAPTER,
    level="design",
    prompt=(
        "What to check before going from eight GPUs to {{n}}? One thing is a number. The eight were"
        " in one node. The {{n}} are in a node each: a {{gpu}} with one network port ({{network}})."
        " With data parallelism, how many tokens must a step of the whole job have so that the"
        " gradients of a dense model can hide behind arithmetic?"
    ),
    parameters={"n": plain(64, 128, 256), **CLUSTER},
    expected=lambda n, gpu, network: (
        n * parallel.data_parallel_tokens(accelerator(gpu).bf16, link(network).bandwidth)
    ),
    unit="token",
    tolerance=0.02,
    solution=lambda n, gpu, network: derivation(
        step(
            "The tokens of one GPU for which both times match.",
            "peak / rate * 1[byte*token/FLOP]",
            (
                float(
                    parallel.data_parallel_tokens(accelerator(gpu).bf16, link(network).bandwidth)
                ),
                "token",
            ),
            peak=(accelerator(gpu).bf16, "FLOP/s"),
            rate=(link(network).bandwidth, "byte/s"),
        ),
        step(
            "The whole job.",
            "n * tokens",
            n=n,
            tokens=(
                float(
                    parallel.data_parallel_tokens(accelerator(gpu).bf16, link(network).bandwidth)
                ),
                "token",
            ),
        ),
        after="Inside a node fewer will do, so a batch for eight GPUs does not tell.",
    ),
    smaller="parallelism.critical_tokens",
    misconceptions=(
        Misconception(
            "bits as bytes",
            lambda n, gpu, network: (
                n
                * parallel.data_parallel_tokens(accelerator(gpu).bf16, link(network).bandwidth)
                / 8
            ),
            "A factor of eight may be bits taken for bytes: ports are named by bits a second.",
        ),
        Misconception(
            "for one GPU",
            lambda n, gpu, network: parallel.data_parallel_tokens(
                accelerator(gpu).bf16, link(network).bandwidth
            ),
            "That is what each GPU needs. How many are there?",
        ),
        Misconception(
            "the eight of before",
            lambda n, gpu, network: (
                8 * parallel.data_parallel_tokens(accelerator(gpu).bf16, link(network).bandwidth)
            ),
            "You kept the batch of eight GPUs.",
        ),
        Misconception(
            "inside a node",
            lambda n, gpu, network: (
                n
                * parallel.data_parallel_tokens(
                    accelerator(gpu).bf16, accelerator(gpu).link_bandwidth
                )
            ),
            "The traffic now leaves the node.",
        ),
        Misconception(
            "twice",
            lambda n, gpu, network: (
                2
                * (
                    n
                    * parallel.data_parallel_tokens(accelerator(gpu).bf16, link(network).bandwidth)
                )
            ),
            "Is your peak the dense one, or one with sparsity? And is the port's rate that of each"
            " direction?",
        ),
    ),
)


def one_sum(tokens, width, t):
    return parallel.tensor_parallel_bytes(tokens, width, t) / 4


attention = Question(
    id="parallelism.attention_forward",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "What do Q, K and V send? Attention of width {{width}} is split over {{t}} GPUs by heads,"
        " as many KV heads as query heads. A micro-batch has {{tokens}}, in bf16. How much does"
        " each GPU send in the forward pass of the attention block?"
    ),
    parameters={
        "width": plain(8192, 4096, 12288),
        "t": plain(8, 4, 2),
        "tokens": counted("token", 2048, 4096, 8192),
    },
    expected=one_sum,
    unit="MB",
    tolerance=0.01,
    solution=lambda width, t, tokens: derivation(
        "Nothing for Q, K and V: a head needs just its own columns of them, and those are on one"
        " GPU.",
        "The output projection is split by rows and leaves partial sums, one from each GPU.",
        step("The result of the block.", "tokens * width * 2[byte]", tokens=tokens, width=width),
        step(
            "One all-reduce adds the parts.",
            "2 * (t - 1) / t * result",
            (float(one_sum(tokens, width, t)), "byte"),
            t=t,
            result=(2 * tokens * width, "byte"),
        ),
    ),
    smaller="parallelism.gradient_bytes",
    holds={
        "Nothing for Q, K and V": "definition",
    },
    misconceptions=(
        Misconception(
            "Q and K gathered, then the sum",
            lambda width, t, tokens: 2 * one_sum(tokens, width, t),
            "Which head would read the K of another head? Or did you count the backward pass, too?",
        ),
        Misconception(
            "Q, K and V gathered",
            lambda width, t, tokens: 3 / 2 * one_sum(tokens, width, t),
            "A head reads its own Q, K and V. Where are they?",
        ),
        Misconception(
            "twice",
            lambda width, t, tokens: 2 * tokens * width * 2,
            "Nearly: each GPU keeps one share of what is added up to itself. How much does each"
            " pass leave to send?",
            slight=True,
        ),
        Misconception(
            "one gather",
            lambda width, t, tokens: one_sum(tokens, width, t) / 2,
            "The output projection leaves partial sums: they must be added, not put side by side.",
        ),
        Misconception(
            "the whole layer",
            lambda width, t, tokens: 4 * one_sum(tokens, width, t),
            "That includes the MLP or the backward pass.",
        ),
        Misconception(
            "nothing is sent",
            lambda width, t, tokens: 0,
            "Each head has its own Q, K and V, so they need not travel. What does the output"
            " projection leave on each GPU?",
        ),
        Misconception(
            "an all-reduce each",
            lambda width, t, tokens: 3 * one_sum(tokens, width, t),
            "You sum up Q, K and V. Which result of the block is a sum of parts that lie on"
            " different GPUs?",
        ),
        Misconception(
            "the buffer once",
            lambda width, t, tokens: 2 * tokens * width,
            "That is how large the activations are. How often does a buffer go round in a ring?",
        ),
    ),
)

steps = Question(
    id="parallelism.pipeline_steps",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "Why does utilization change from step to step? A pipeline of {{p}} stages runs {{m}}"
        " micro-batches, and a forward and a backward pass of a stage take one time step each. How"
        " many time steps does a training step take at least, in GPipe or 1F1B?"
    ),
    parameters={"p": plain(4, 6, 8), "m": plain(4, 8, 12)},
    expected=lambda p, m: len(schedules.simulate("1f1b", p, m, backward=1.0).utilization(1.0)),
    tolerance=0,
    solution=lambda p, m: derivation(
        step(
            "Forward: the micro-batches enter one by one, and the last has the other stages"
            " before it.",
            "m + p - 1",
            m=m,
            p=p,
        ),
        step(
            "Backward takes as long.",
            "2 * (m + p - 1)",
            len(schedules.simulate("1f1b", p, m, backward=1.0).utilization(1.0)),
            m=m,
            p=p,
        ),
        after=(
            f"A GPU does one pass at a time, so {2 * m * p} passes on {p} GPUs take at least"
            f" {2 * m} steps, and fill and drain come on top."
        ),
    ),
    smaller="parallelism.bubble_over_total",
    holds={
        "take at least": lambda p, m: 2 * m * p / p == 2 * m,
    },
    misconceptions=(
        Misconception(
            "two passes in one step",
            lambda p, m: len(pipeline.shared_slot_utilization(p, m)),
            "Your count lets a GPU do a forward and a backward pass in the same time step. It does"
            " one pass at a time.",
        ),
        Misconception(
            "no fill",
            lambda p, m: 2 * m,
            "That is the work of one stage. When does the last stage start?",
        ),
        Misconception(
            "no overlap",
            lambda p, m: 2 * m * p,
            "That runs one micro-batch at a time through the pipeline.",
        ),
        Misconception("forward only", lambda p, m: m + p - 1, "And the way back?"),
        Misconception(
            "fill forward only",
            lambda p, m: 2 * m + p - 1,
            "That fills the pipeline once. Does the first stage get its first gradient at once?",
        ),
        Misconception(
            "all stages",
            lambda p, m: 2 * (p + m),
            "Does a stage wait for itself? How many others have to come before the last one?",
        ),
    ),
)


backward = Question(
    id="parallelism.mlp_backward",
    chapter=CHAPTER,
    level="design",
    prompt=(
        "Which collective matters in the backward pass of tensor parallelism? An MLP of two"
        " matrices, width {{width}} and hidden width {{hidden}}, is split over {{t}} GPUs. A"
        " micro-batch has {{tokens}}, in bf16. How much does each GPU send in the backward pass of"
        " the MLP?"
    ),
    parameters={
        "width": plain(8192, 4096, 12288),
        "hidden": plain(32768, 16384, 49152),
        "t": plain(8, 4),
        "tokens": counted("token", 2048, 1024, 4096),
    },
    expected=lambda width, hidden, t, tokens: one_sum(tokens, width, t),
    unit="MB",
    tolerance=0.01,
    solution=lambda width, hidden, t, tokens: derivation(
        "Each GPU has its own columns and rows of the weights and computes their gradients alone.",
        "The gradient of the input is a sum of one part from each GPU.",
        step("That gradient.", "tokens * width * 2[byte]", tokens=tokens, width=width),
        step(
            "One all-reduce of it.",
            "2 * (t - 1) / t * gradient",
            (float(one_sum(tokens, width, t)), "byte"),
            t=t,
            gradient=(2 * tokens * width, "byte"),
        ),
        after=f"The hidden width, {hidden:,}, does not come into it.",
    ),
    smaller="parallelism.attention_forward",
    misconceptions=(
        Misconception(
            "weight gradients",
            lambda width, hidden, t, tokens: 2 * 2 * width * hidden * 2 * (t - 1) / t / t,
            "Does any other GPU of the group hold these weights?",
        ),
        Misconception(
            "all weight gradients",
            lambda width, hidden, t, tokens: 2 * 2 * width * hidden * 2 * (t - 1) / t,
            "Each weight lives on one GPU of the group. With whom would it be averaged?",
        ),
        Misconception(
            "the hidden layer",
            lambda width, hidden, t, tokens: 2 * tokens * hidden * 2 * (t - 1) / t,
            "The hidden layer is split by columns, and stays split. What is put together?",
        ),
        Misconception(
            "twice",
            lambda width, hidden, t, tokens: 2 * tokens * width * 2,
            "Nearly: each GPU keeps one share of what is added up to itself. How much does each"
            " pass leave to send?",
            slight=True,
        ),
        Misconception(
            "a gather",
            lambda width, hidden, t, tokens: one_sum(tokens, width, t) / 2,
            "The parts must be added up, and each GPU needs the sum.",
        ),
        Misconception(
            "an all-reduce for each matrix",
            lambda width, hidden, t, tokens: 2 * one_sum(tokens, width, t),
            "You sum up behind both matrices. Which of the two gradients has its parts on"
            " different GPUs?",
        ),
        Misconception(
            "weight gradients of one matrix",
            lambda width, hidden, t, tokens: one_sum(hidden, width, t),
            "So large are the gradients of weights, of one matrix or in one pass. Does any other"
            " GPU of the group hold these weights?",
            slight=True,
        ),
    ),
)

register(
    gradients, bubble, collectives_in_a_step, three, zero3, accumulated, room, states, exchange,
    hot, critical, nvlink, straggler, scaling_out, attention, steps, backward,
)  # fmt: skip
