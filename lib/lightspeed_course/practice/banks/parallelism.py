"""Questions of chapter 6: the fourteen at the end of the notes that it reworks, each asked as a number where there is one."""

from __future__ import annotations

from lightspeed import energy, memory, parallel, pipeline, reliability
from lightspeed.catalog import accelerator, link, number
from lightspeed.collectives import bandwidth_bound
from lightspeed_course.practice.questions import Misconception, Parameter, Question, register
from lightspeed_course.show.format import si

CHAPTER = "06_parallelism"


def counted(unit, *choices):
    """A count or an amount, the first one canonical, shown with its unit."""
    return Parameter(choices[0], choices, show=lambda value: si(value, unit))


def plain(*choices):
    return Parameter(choices[0], choices, show=str)


def named(find, *keys):
    """A catalog key, shown by its name."""
    return Parameter(keys[0], keys, show=lambda key: find(key).name)


def gradient_bytes(params, n):
    return parallel.data_parallel_bytes(params, n)


gradients = Question(
    id="parallelism.gradient_bytes",
    chapter=CHAPTER,
    level="apply",
    prompt="Question 1: why must gradients be synchronised? Each of {{n}} GPUs saw other samples and has other gradients. A model of {{params}} has gradients of two bytes; a ring all-reduce makes them equal. How much does each GPU send in a step?",
    parameters={"params": counted("parameter", 8e9, 1e9, 3e9, 13e9), "n": plain(8, 4, 16, 64)},
    expected=gradient_bytes,
    unit="GB",
    solution=lambda params, n: f"The buffer is {si(2 * params, 'byte')}. A ring sends it twice, but for the share that a rank has itself: {2 * (n - 1) / n:.4g} times.",
    misconceptions=(
        Misconception("the buffer once", lambda params, n: 2 * params, "That is the size of the gradients. A sum that all must have goes round more than once."),
        Misconception("twice", lambda params, n: 2 * 2 * params, "Nearly: a rank keeps one share of the buffer to itself. How much does each pass leave to send?", slight=True),
        Misconception("a gather only", lambda params, n: gradient_bytes(params, n) / 2, "That is half of it: the sums are scattered. Who tells the others?"),
        Misconception("to every other rank", lambda params, n: 2 * params * (n - 1), "Nobody sends everything to everybody: each adds what it got and passes it on."),
        Misconception("fp32 gradients", lambda params, n: 2 * gradient_bytes(params, n), "How many bytes has a gradient here?"),
    ),
)

bubble = Question(
    id="parallelism.bubble_over_total",
    chapter=CHAPTER,
    level="apply",
    prompt="Question 2: why is there a bubble? A pipeline of {{p}} equal stages works on {{m}} micro-batches, all forward and all backward. Which share of the GPU time of the whole step is idle?",
    parameters={"p": plain(8, 4, 16), "m": plain(32, 16, 24, 64)},
    expected=lambda p, m: pipeline.bubble_over_total(p, m),
    unit="%",
    tolerance=0.01,
    solution=lambda p, m: f"The last stage waits while {p - 1} others fill, the first while they drain. The step lasts as long as $m + p - 1$ = {m + p - 1} micro-batches, {m} of which each stage works.",
    misconceptions=(
        Misconception("over ideal time", lambda p, m: pipeline.bubble_over_ideal(p, m), "You divided the idle time by the time of the work. The question says: of the whole step."),
        Misconception("all stages", lambda p, m: p / (m + p), "The stage that works first does not wait for itself. How many stages does the last one wait for?"),
        Misconception("fill only", lambda p, m: (p - 1) / 2 / (m + p - 1), "You counted the fill and forgot the drain, or the other way round."),
        Misconception("counted twice", lambda p, m: 2 * (p - 1) / (m + 2 * (p - 1)), "Each of fill and drain costs a forward or a backward slot for every stage, not both."),
    ),
)

collectives_in_a_step = Question(
    id="parallelism.tensor_collectives",
    chapter=CHAPTER,
    level="apply",
    prompt="Question 3: why is tensor parallelism so sensitive to latency? A model of {{layers}} layers is trained with {{m}} micro-batches a step, all layers on one tensor-parallel group, nothing recomputed. How many all-reduces of activations stand in the way of a step, where data parallelism has one of gradients?",
    parameters={"layers": plain(32, 24, 48, 96), "m": plain(16, 8, 32)},
    expected=lambda layers, m: 4 * layers * m,
    tolerance=0,
    solution=lambda layers, m: f"Attention and MLP each end in one, forward and backward: two times two, for each of {layers} layers and {m} micro-batches. None can start before the product before it has ended, and nothing can go on before it.",
    misconceptions=(
        Misconception("forward only", lambda layers, m: 2 * layers * m, "The backward pass has its own."),
        Misconception("one a layer", lambda layers, m: layers * m, "A layer has two blocks, and each is passed twice."),
        Misconception("one micro-batch", lambda layers, m: 4 * layers, "That is for one micro-batch."),
        Misconception("Q, K and V too", lambda layers, m: 8 * layers * m, "The first matrix of each block is split by columns. Does its result have to be put together?"),
    ),
)


def three_collectives(size, n):
    return tuple(bandwidth_bound(c, size, n, 1.0) for c in ("all_reduce", "all_gather", "reduce_scatter"))


three = Question(
    id="parallelism.three_collectives",
    chapter=CHAPTER,
    level="recall",
    kind="array",
    names=("all_reduce", "all_gather", "reduce_scatter"),
    prompt="Question 4: what tells all-reduce, all-gather and reduce-scatter apart? On {{n}} GPUs, the full buffer having {{size}}, how much does each GPU send in a ring of each?",
    parameters={"size": Parameter(1, (1, 2, 4), "GB"), "n": plain(8, 4, 16)},
    expected=three_collectives,
    unit="MB",
    tolerance=0.005,
    solution=lambda size, n: f"A reduce-scatter leaves each rank with its share of the sum, an all-gather gives the shares to all. Each passes on all shares of {si(size / n, 'byte')} but one. An all-reduce is the one after the other.",
    misconceptions=(
        Misconception("three alike", lambda size, n: (size * (n - 1) / n,) * 3, "One of the three is the other two in a row."),
        Misconception("only a share", lambda size, n: (2 * size / n, size / n, size / n), "That leaves a rank in one step. How many steps has a ring?"),
        Misconception("the whole buffer", lambda size, n: (2 * size, size, size), "A rank keeps one share to itself and need not send it."),
    ),
)

zero3 = Question(
    id="parallelism.zero3_bytes",
    chapter=CHAPTER,
    level="apply",
    prompt="Question 5: what does FSDP cost on the network? {{n}} GPUs train a model of {{params}} with ZeRO-3, weights and gradients in two bytes, one micro-batch a step. How much does each GPU send in a step?",
    parameters={"params": counted("parameter", 7e9, 3e9, 13e9, 30e9), "n": plain(16, 8, 32, 64)},
    expected=lambda params, n: parallel.data_parallel_bytes(params, n, stage=3),
    unit="GB",
    tolerance=0.01,
    solution=lambda params, n: f"Weights are gathered before the forward and before the backward pass, gradients scattered after it: three times {si(2 * params * (n - 1) / n, 'byte')}. DDP sends two thirds of that.",
    misconceptions=(
        Misconception("as much as DDP", lambda params, n: parallel.data_parallel_bytes(params, n), "That is what DDP and the first two stages send. What does a GPU lack that keeps a share of the weights?"),
        Misconception("weights only", lambda params, n: parallel.data_parallel_bytes(params, n, 3) * 2 / 3, "The gradients must be summed as well."),
        Misconception("the whole model", lambda params, n: 3 * 2 * params, "Nearly: each rank has a share of its own, which nobody sends it. How much is left?", slight=True),
        Misconception("gathered once", lambda params, n: parallel.data_parallel_bytes(params, n, 3) / 3, "The weights of a layer are freed after its forward pass, and there are gradients, too."),
        Misconception("optimizer too", lambda params, n: 16 * params * (n - 1) / n, "Each rank updates its own share. Do the optimizer's states ever travel?"),
    ),
)

states = Question(
    id="parallelism.zero_states",
    chapter=CHAPTER,
    level="apply",
    prompt="Question 5, the other half: what does it save? A model of {{params}} is trained with Adam in mixed precision, sixteen bytes a parameter, on {{n}} GPUs. How many bytes of states has each GPU with ZeRO-2?",
    parameters={"params": counted("parameter", 13e9, 7e9, 30e9), "n": plain(8, 16, 32)},
    expected=lambda params, n: memory.training_state_bytes(params, n=n, stage=2).total,
    unit="GB",
    tolerance=0.01,
    solution=lambda params, n: f"The weights stay whole, {si(2 * params, 'byte')}; gradients and optimizer, {si(14 * params, 'byte')}, are split over {n}.",
    misconceptions=(
        Misconception("stage 1", lambda params, n: memory.training_state_bytes(params, n=n, stage=1).total, "You left the gradients whole. What does the second stage split?"),
        Misconception("stage 3", lambda params, n: memory.training_state_bytes(params, n=n, stage=3).total, "The second stage leaves something whole, or no product could run without a gather."),
        Misconception("nothing split", lambda params, n: 16 * params, "That is DDP: every GPU has all of it."),
        Misconception("weights only", lambda params, n: 2 * params, "And the shares of the rest?"),
    ),
)

exchange = Question(
    id="parallelism.expert_exchange",
    chapter=CHAPTER,
    level="apply",
    prompt="Question 6: why do experts make all-to-all traffic? {{n}} GPUs hold an expert each. A GPU has {{tokens}} of width {{width}} in two bytes and sends each token to the {{k}} experts that its router chose, without favourites. How much leaves it in one such exchange?",
    parameters={"n": plain(8, 16, 32), "tokens": Parameter(4096, (2048, 4096, 8192), "", lambda x: si(x, "token")), "width": plain(4096, 5120, 8192), "k": plain(2, 1, 4)},
    expected=lambda n, tokens, width, k: parallel.expert_parallel_bytes(tokens, width, n, k) / 4,
    unit="MB",
    tolerance=0.01,
    solution=lambda n, tokens, width, k: f"A token has {si(2 * width, 'byte')} and goes to {k}; one in {n} finds its expert at home. A layer needs four of these: out and back, forward and backward.",
    misconceptions=(
        Misconception("all four", lambda n, tokens, width, k: parallel.expert_parallel_bytes(tokens, width, n, k), "That is a layer's whole step. The question is about one exchange."),
        Misconception("nobody stays", lambda n, tokens, width, k: tokens * width * 2 * k, "Some tokens have their expert on their own GPU."),
        Misconception("a copy for everyone", lambda n, tokens, width, k: tokens * width * 2 * (n - 1), "That would be an all-gather. A token goes to its own experts only."),
        Misconception("an n-th leaves", lambda n, tokens, width, k: tokens * width * 2 * k / n, "That is what stays, or goes to one of them."),
    ),
)

hot = Question(
    id="parallelism.hot_expert",
    chapter=CHAPTER,
    level="design",
    prompt="Question 6, the bad case: {{n}} GPUs hold an expert each, and {{share}} of all tokens want the same one. How many times longer does the exchange take than with a fair router, if each GPU sends and receives at the same rate at once?",
    parameters={"n": plain(8, 16, 32), "share": Parameter(50, (50, 40, 30), "%")},
    expected=lambda n, share: parallel.skewed_exchange(1000, 1000, n, share).hot_receives / parallel.skewed_exchange(1000, 1000, n, 1 / n).hot_receives,
    tolerance=0.01,
    solution=lambda n, share: f"The hot GPU receives the share {share:.0%} of what each other one has, in place of {1 / n:.1%}. The others wait for it: the longest of all sends and receives sets the time.",
    misconceptions=(
        Misconception("mean over the ranks", lambda n, share: 1.0 + share / n, "Do the others finish the layer before the hot one has its tokens?"),
        Misconception("senders only", lambda n, share: parallel.skewed_exchange(1000, 1000, n, share).other_sends / parallel.skewed_exchange(1000, 1000, n, 1 / n).other_sends, "You looked at what is sent. What does the hot GPU receive?"),
        Misconception("share of everything", lambda n, share: share * n * n / (n - 1), "Nearly. Some tokens start on the hot GPU, in both cases."),
        Misconception("share alone", lambda n, share: 1 / share, "Compare what the hot GPU receives with what a fair share would be."),
    ),
)

CLUSTER = {"gpu": named(accelerator, "h100_sxm", "a100_80gb", "b200"), "network": named(link, "infiniband_ndr", "infiniband_hdr", "ethernet_400g")}
critical = Question(
    id="parallelism.critical_tokens",
    chapter=CHAPTER,
    level="apply",
    prompt="Question 7: how does a strategy shape the network? With FSDP over many nodes each {{gpu}} has a network port to itself ({{network}}). From how many tokens for each GPU on does it compute longer than it sends?",
    parameters=CLUSTER,
    expected=lambda gpu, network: parallel.data_parallel_tokens(accelerator(gpu).bf16, link(network).bandwidth),
    unit="token",
    tolerance=0.02,
    solution=lambda gpu, network: f"Per parameter the backward pass does four FLOPs a token and sends four bytes. So tokens must exceed $C / W$ = {si(accelerator(gpu).bf16, 'FLOP/s')} over {si(link(network).bandwidth, 'byte/s')}.",
    misconceptions=(
        Misconception("the ridge of memory", lambda gpu, network: accelerator(gpu).bf16 / accelerator(gpu).hbm_bandwidth, "You divided by the memory's bandwidth. Which link do the gradients cross?"),
        Misconception("the link inside", lambda gpu, network: accelerator(gpu).bf16 / accelerator(gpu).link_bandwidth, "That is the condition inside a node. The job spans many."),
        Misconception("a node's ports", lambda gpu, network: accelerator(gpu).bf16 / link(network).bandwidth / 8, "You gave a GPU the ports of its whole node, and let it send only its own part."),
    ),
)


def all_reduce_time(rate, tokens, width, t):
    return parallel.tensor_parallel_bytes(tokens, width, t) / rate


nvlink = Question(
    id="parallelism.tensor_over_network",
    chapter=CHAPTER,
    level="design",
    prompt="Question 8: why NVLink for tensor parallelism? A layer of width {{width}} is split over {{t}} GPUs ({{gpu}}). A micro-batch has {{tokens}}. How long do the four all-reduces of its activations take in bf16 if the group is spread over nodes and each GPU has a network port to itself ({{network}})?",
    parameters={"width": plain(8192, 4096, 12288), "t": plain(8, 4), "tokens": counted("token", 4096, 2048, 8192), **CLUSTER},
    expected=lambda width, t, tokens, gpu, network: all_reduce_time(link(network).bandwidth, tokens, width, t),
    unit="ms",
    tolerance=0.01,
    solution=lambda width, t, tokens, gpu, network: (
        f"Each GPU sends {si(parallel.tensor_parallel_bytes(tokens, width, t), 'byte')}. On {link(network).name} that takes {si(all_reduce_time(link(network).bandwidth, tokens, width, t), 's')}, "
        f"on the links inside a node {si(all_reduce_time(accelerator(gpu).link_bandwidth, tokens, width, t), 's')}, and nothing can hide it."
    ),
    misconceptions=(
        Misconception("on NVLink", lambda width, t, tokens, gpu, network: all_reduce_time(accelerator(gpu).link_bandwidth, tokens, width, t), "That is the time inside a node. This group is spread over nodes."),
        Misconception("twice", lambda width, t, tokens, gpu, network: 4 * 2 * tokens * width * 2 / link(network).bandwidth, "Nearly: each GPU keeps one share of what is added up to itself. How much does each pass leave to send?", slight=True),
        Misconception("forward only", lambda width, t, tokens, gpu, network: all_reduce_time(link(network).bandwidth, tokens, width, t) / 2, "Two of the four are in the backward pass."),
        Misconception("a gather for each", lambda width, t, tokens, gpu, network: all_reduce_time(link(network).bandwidth, tokens, width, t) * 3 / 4, "An all-reduce is a scatter of sums and a gather: count both, four times."),
        Misconception("the activations once", lambda width, t, tokens, gpu, network: 4 * tokens * width * 2 / link(network).bandwidth, "That sends each result once. A ring sends nearly twice its buffer."),
    ),
)

straggler = Question(
    id="parallelism.straggler",
    chapter=CHAPTER,
    level="apply",
    prompt="Question 9: how can one slow GPU delay a whole job? In any step each of {{n}} GPUs is slow with a chance of {{chance}}, and then takes {{slow}} times as long. All wait for the slowest. How much longer than a step without stragglers is the mean step?",
    parameters={"n": plain(1024, 512, 4096, 8192), "chance": Parameter(0.1, (0.1, 0.05, 0.02), "%"), "slow": plain(1.5, 1.3, 2.0)},
    expected=lambda n, chance, slow: reliability.straggler_stretch(n, chance, slow) - 1,
    unit="%",
    tolerance=0.02,
    solution=lambda n, chance, slow: f"All are fast with a probability of $(1 - q)^n$ = {(1 - chance) ** n:.1%}. In every other step the slowest sets the pace.",
    misconceptions=(
        Misconception("the mean GPU", lambda n, chance, slow: chance * (slow - 1), "That is how much slower the mean GPU is. Do the others wait for the mean?"),
        Misconception("always one slow", lambda n, chance, slow: slow - 1, "Some steps have no slow GPU at all. How many?"),
        Misconception("chances add up", lambda n, chance, slow: n * chance * (slow - 1), "The expected number of slow GPUs may exceed one; the probability of a slow step may not."),
    ),
)

scaling_out = Question(
    id="parallelism.batch_for_64",
    chapter=CHAPTER,
    level="design",
    prompt="Question 10: what to check before going from eight GPUs to {{n}}? One thing is a number. With data parallelism over nodes of {{gpu}}, a network port for each GPU ({{network}}), how many tokens must a step of the whole job have so that the gradients of a dense model can hide behind arithmetic?",
    parameters={"n": plain(64, 128, 256), **CLUSTER},
    expected=lambda n, gpu, network: n * parallel.data_parallel_tokens(accelerator(gpu).bf16, link(network).bandwidth),
    unit="token",
    tolerance=0.02,
    solution=lambda n, gpu, network: f"$C / W$ = {si(parallel.data_parallel_tokens(accelerator(gpu).bf16, link(network).bandwidth), 'token')} for each of {n} GPUs. If eight GPUs ran with less a GPU inside a node, the same batch will not do across nodes.",
    misconceptions=(
        Misconception("for one GPU", lambda n, gpu, network: parallel.data_parallel_tokens(accelerator(gpu).bf16, link(network).bandwidth), "That is what each GPU needs. How many are there?"),
        Misconception("the eight of before", lambda n, gpu, network: 8 * parallel.data_parallel_tokens(accelerator(gpu).bf16, link(network).bandwidth), "You kept the batch of eight GPUs."),
        Misconception("inside a node", lambda n, gpu, network: n * parallel.data_parallel_tokens(accelerator(gpu).bf16, accelerator(gpu).link_bandwidth), "The traffic now leaves the node."),
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
    prompt="Question 11: what does the power example say? {{n}} GPUs ({{gpu}}) run at their rated power for {{days}} days. Electricity costs " + si(number("data_centre.electricity_price") * energy.JOULES_PER_KWH, "dollar", 2) + " a kWh, and the building takes " + f"{PUE:.2g}" + " times what the GPUs take. What is the bill, in dollars?",
    parameters={"n": plain(50_000, 10_000, 16_384), "gpu": named(accelerator, "h100_sxm", "b200"), "days": plain(60, 30, 90)},
    expected=lambda n, gpu, days: bill(n, days, accelerator(gpu).power, PUE),
    unit="dollar",
    tolerance=0.01,
    solution=lambda n, gpu, days: f"{n:,} of {si(accelerator(gpu).power, 'W')} are {si(n * accelerator(gpu).power, 'W')}, with the building {si(n * accelerator(gpu).power * PUE, 'W')}, for {days * 24:,} hours. Hosts, switches and storage come on top.",
    misconceptions=(
        Misconception("the PCIe card", lambda n, gpu, days: bill(n, days, accelerator("h100_pcie").power, PUE), "That is the power of the PCIe card, which no such cluster is built of."),
        Misconception("no building", lambda n, gpu, days: bill(n, days, accelerator(gpu).power, 1), "Cooling and conversion take power, too."),
        Misconception("the notes' bill", lambda n, gpu, days: bill(n, days, accelerator("h100_pcie").power, 1), "The arithmetic of the notes is right. Look at their two premises."),
        Misconception("a day has twelve hours", lambda n, gpu, days: bill(n, days, accelerator(gpu).power, PUE) / 2, "The job runs at night, too."),
    ),
)


def one_sum(tokens, width, t):
    return parallel.tensor_parallel_bytes(tokens, width, t) / 4


attention = Question(
    id="parallelism.attention_forward",
    chapter=CHAPTER,
    level="apply",
    prompt="Question 12: what do Q, K and V send? Attention of width {{width}} is split over {{t}} GPUs by heads, as many KV heads as query heads. A micro-batch has {{tokens}}, in bf16. How much does each GPU send in the forward pass of the attention block?",
    parameters={"width": plain(8192, 4096, 12288), "t": plain(8, 4, 2), "tokens": counted("token", 2048, 4096, 8192)},
    expected=one_sum,
    unit="MB",
    tolerance=0.01,
    solution=lambda width, t, tokens: "Nothing for Q, K and V: a head needs its own rows and columns only, and they are all on one GPU. The output projection is split by rows and leaves partial sums: one all-reduce of the block's result, " + si(tokens * width * 2, "byte") + ".",
    misconceptions=(
        Misconception("Q and K gathered, then the sum", lambda width, t, tokens: 2 * one_sum(tokens, width, t), "The notes gather Q and K. Which head would read the K of another head?"),
        Misconception("Q, K and V gathered", lambda width, t, tokens: 3 / 2 * one_sum(tokens, width, t), "A head reads its own part of all three. Where is it?"),
        Misconception("twice", lambda width, t, tokens: 2 * tokens * width * 2, "Nearly: each GPU keeps one share of what is added up to itself. How much does each pass leave to send?", slight=True),
        Misconception("one gather", lambda width, t, tokens: one_sum(tokens, width, t) / 2, "The output projection leaves partial sums: they must be added, not put side by side."),
        Misconception("the whole layer", lambda width, t, tokens: 4 * one_sum(tokens, width, t), "That includes the MLP or the backward pass."),
    ),
)

steps = Question(
    id="parallelism.pipeline_steps",
    chapter=CHAPTER,
    level="apply",
    prompt="Question 13: why does utilisation change from step to step? A pipeline of {{p}} stages runs {{m}} micro-batches, and a forward and a backward pass of a stage take one time step each. How many time steps does a training step take at least, in GPipe or 1F1B?",
    parameters={"p": plain(4, 6, 8), "m": plain(4, 8, 12)},
    expected=lambda p, m: len(pipeline.simulate("1f1b", p, m, backward=1.0).utilisation(1.0)),
    tolerance=0,
    solution=lambda p, m: f"{m} micro-batches enter one by one and the last needs {p - 1} further steps to reach the end; backward takes as long: $2 (m + p - 1)$. A GPU does one pass at a time, so {2 * m * p} passes on {p} GPUs never fit in fewer than {2 * m} steps, and fill and drain come on top.",
    misconceptions=(
        Misconception("two passes in one step", lambda p, m: len(pipeline.shared_slot_utilisation(p, m)), "Your count lets a GPU do a forward and a backward pass in the same time step, as the ten-step table of the notes does."),
        Misconception("no fill", lambda p, m: 2 * m, "That is the work of one stage. When does the last stage start?"),
        Misconception("no overlap", lambda p, m: 2 * m * p, "That runs one micro-batch at a time through all stages."),
        Misconception("forward only", lambda p, m: m + p - 1, "And the way back?"),
    ),
)


backward = Question(
    id="parallelism.mlp_backward",
    chapter=CHAPTER,
    level="design",
    prompt="Question 14: which collective matters in the backward pass of tensor parallelism? An MLP of two matrices, width {{width}} and hidden width {{hidden}}, is split over {{t}} GPUs. A micro-batch has {{tokens}}, in bf16. How much does each GPU send in the backward pass of the MLP?",
    parameters={"width": plain(8192, 4096, 12288), "hidden": plain(32768, 16384, 49152), "t": plain(8, 4), "tokens": counted("token", 2048, 1024, 4096)},
    expected=lambda width, hidden, t, tokens: one_sum(tokens, width, t),
    unit="MB",
    tolerance=0.01,
    solution=lambda width, hidden, t, tokens: "Each GPU has its own columns and rows of the weights and computes their gradients alone. What is incomplete is the gradient of the input, to which all have a part: one all-reduce of " + si(2 * tokens * width, "byte") + ".",
    misconceptions=(
        Misconception("weight gradients", lambda width, hidden, t, tokens: 2 * 2 * width * hidden * 2 * (t - 1) / t / t, "The notes all-reduce the gradients of the weights. Does any other GPU hold these weights?"),
        Misconception("all weight gradients", lambda width, hidden, t, tokens: 2 * 2 * width * hidden * 2 * (t - 1) / t, "Each weight lives on one GPU of the group. With whom would it be averaged?"),
        Misconception("the hidden layer", lambda width, hidden, t, tokens: 2 * tokens * hidden * 2 * (t - 1) / t, "The hidden layer is split by columns and never put together."),
        Misconception("twice", lambda width, hidden, t, tokens: 2 * tokens * width * 2, "Nearly: each GPU keeps one share of what is added up to itself. How much does each pass leave to send?", slight=True),
        Misconception("a gather", lambda width, hidden, t, tokens: one_sum(tokens, width, t) / 2, "The parts must be added up and all must have the sum."),
    ),
)

register(gradients, bubble, collectives_in_a_step, three, zero3, states, exchange, hot, critical, nvlink, straggler, scaling_out, power, attention, steps, backward)
