"""Questions of chapter 7, what the numbers of nccl-tests mean: algbw, busbw, factors, and the
link they are compared with.
"""

from __future__ import annotations

from lightspeed import collectives as c
from lightspeed.catalog import link
from lightspeed_course.practice.derivation import derivation, step
from lightspeed_course.practice.parameters import rate
from lightspeed_course.practice.questions import Misconception, Parameter, Question, register
from lightspeed_show.format import si

CHAPTER = "07_nccl_bandwidth"
RANKS = (4, 6, 8, 12, 16)


def gigabytes(canonical, *choices):
    return Parameter(canonical, choices, "GB")


def ranks(canonical=8, *choices):
    return Parameter(canonical, choices or RANKS, show=str)


# --- algbw and busbw --------------------------------------------------------------------------

algbw_question = Question(
    id="nccl.algbw",
    chapter=CHAPTER,
    level="recall",
    prompt=(
        "An all-reduce over {{n}} GPUs takes {{time}} for a buffer of {{size}} on each of them."
        " Which algbw does nccl-tests print?"
    ),
    parameters={
        "size": gigabytes(16, 1, 4, 8, 16),
        "time": Parameter(100, (20, 50, 80, 100, 200), "ms"),
        "n": ranks(),
    },
    expected=lambda size, time, n: c.algbw(size, time),
    unit="GB/s",
    solution=lambda size, time, n: derivation(
        step(
            "The buffer of one rank over the time.",
            "buffer / time",
            (float(c.algbw(size, time)), "byte/s"),
            buffer=(size, "byte"),
            time=(time, "s"),
        ),
        after=f"The algorithm and the {n} ranks do not come into it.",
    ),
    misconceptions=(
        Misconception(
            "busbw",
            lambda size, time, n: c.busbw("all_reduce", n, size / time),
            "That is the other column. Algbw does not say what crosses the links.",
        ),
        Misconception(
            "a share for each rank",
            lambda size, time, n: size / time / n,
            "Each rank holds a whole buffer of this size. Why divide it?",
        ),
        Misconception(
            "all buffers together",
            lambda size, time, n: n * size / time,
            "You added up the buffers of the ranks. Which one does the caller hand over?",
        ),
        Misconception(
            "one pass of the ring",
            lambda size, time, n: size / time * (n - 1) / n,
            "You counted what a rank sends in one of two passes. Algbw does not count what is"
            " sent.",
        ),
        Misconception(
            "multiplied",
            lambda size, time, n: size * time * 1e3,
            "You multiplied the numbers as they stand. What are gigabytes times milliseconds?",
        ),
    ),
)

busbw_question = Question(
    id="nccl.busbw",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "On {{nodes}} nodes of {{per_node}} GPUs, `all_reduce_perf` prints an algbw of {{algbw}}."
        " Which busbw stands beside it?"
    ),
    parameters={
        "algbw": rate(120, 80, 100, 120, 160),
        "nodes": Parameter(2, (2, 3)),
        "per_node": Parameter(4, (4, 8), show=str),
    },
    expected=lambda algbw, nodes, per_node: c.busbw("all_reduce", nodes * per_node, algbw),
    unit="GB/s",
    tolerance=0.01,
    solution=lambda algbw, nodes, per_node: derivation(
        step("The ranks.", "nodes * per_node", nodes=nodes, per_node=per_node),
        step(
            "A ring all-reduce sends this many buffers: the factor.",
            "2 * (n - 1) / n",
            float(c.busbw_factor("all_reduce", nodes * per_node)),
            n=nodes * per_node,
        ),
        step(
            "Busbw.",
            "factor * algbw",
            (float(c.busbw("all_reduce", nodes * per_node, algbw)), "byte/s"),
            factor=float(c.busbw_factor("all_reduce", nodes * per_node)),
            algbw=(algbw, "byte/s"),
        ),
    ),
    smaller="nccl.algbw",
    holds={
        "Twice is the limit": lambda **_: 1.99 < c.busbw_factor("all_reduce", 10**6) < 2,
    },
    misconceptions=(
        Misconception(
            "always twice",
            lambda algbw, nodes, per_node: 2 * algbw,
            "Twice is the limit for very many ranks. How many are there here?",
        ),
        Misconception(
            "nodes for ranks",
            lambda algbw, nodes, per_node: c.busbw("all_reduce", nodes, algbw),
            "You counted nodes, or took the algbw as it is. Who are the ranks of an all-reduce?",
        ),
        Misconception(
            "ranks of one node",
            lambda algbw, nodes, per_node: c.busbw("all_reduce", per_node, algbw),
            "You counted the GPUs of one node. Do the others not take part?",
        ),
        Misconception(
            "half the work",
            lambda algbw, nodes, per_node: c.busbw("all_gather", nodes * per_node, algbw),
            "An all-reduce is two passes. You counted one of them.",
        ),
        Misconception(
            "divided by the factor",
            lambda algbw, nodes, per_node: (
                algbw**2 / (c.busbw("all_reduce", nodes * per_node, algbw))
            ),
            "You divided by the factor. Does a rank of an all-reduce send more than its buffer, or"
            " less?",
        ),
    ),
)


def factor_of(name):
    """A wrong factor that treats every collective as this one."""
    return lambda collective, n: c.busbw_factor(name, n)


factor_question = Question(
    id="nccl.factor",
    chapter=CHAPTER,
    level="apply",
    kind="function",
    prompt=(
        "Write `factor(collective, n)`: busbw over algbw, for the collectives `all_reduce`,"
        " `all_gather`, `reduce_scatter`, `alltoall` and `broadcast` over `n` ranks. Count the"
        " bytes that the busiest rank must send for each byte of the buffer."
    ),
    parameters={
        "collective": Parameter(
            "all_reduce", ("all_reduce", "all_gather", "reduce_scatter", "alltoall", "broadcast")
        ),
        "n": Parameter(8, (2, 3, 4, 8, 16, 64, 1000)),
    },
    edges=({"n": 2}, {"collective": "broadcast", "n": 2}),
    expected=c.busbw_factor,
    tolerance=0.001,
    solution=derivation(
        "Of the buffer a rank needs all but its own share, or must send all but that: $(n - 1)/n$.",
        "An all-reduce is a reduce-scatter and an all-gather.",
        "A broadcast passes the whole buffer on.",
        after=(
            '```python\ndef factor(collective, n):\n    if collective == "broadcast":\n'
            "        return 1\n"
            '    return (2 if collective == "all_reduce" else 1) * (n - 1) / n\n```'
        ),
    ),
    smaller="nccl.bytes_sent",
    misconceptions=(
        Misconception(
            "all alike",
            factor_of("all_reduce"),
            "You treat all as an all-reduce. How often does a byte travel in a gather?",
        ),
        Misconception(
            "once for all",
            factor_of("all_gather"),
            "An all-reduce first adds up and then hands out. How many passes is that?",
        ),
        Misconception(
            "twice, whatever n",
            lambda collective, n: {"all_reduce": 2, "broadcast": 1}.get(collective, 1) * n / n,
            "Try two ranks. How many bytes does each of them have to send?",
        ),
        Misconception(
            "per shard",
            lambda collective, n: (
                c.busbw_factor(collective, n) * (n if collective in c.ONCE else 1)
            ),
            "For gathers and scatters, nccl-tests counts the whole buffer, not one shard.",
        ),
        Misconception(
            "all-to-all as a broadcast",
            lambda collective, n: (
                1
                if collective in ("broadcast", "alltoall")
                else (1 + (collective == "all_reduce")) * (n - 1) / n
            ),
            "Look at your all-to-all: does a rank send itself its own piece?",
        ),
        Misconception(
            "a broadcast as a gather",
            lambda collective, n: (1 + (collective == "all_reduce")) * (n - 1) / n,
            "Look at your broadcast: how much of the buffer does its root have to send?",
        ),
    ),
)

busbw_function = Question(
    id="nccl.busbw_function",
    chapter=CHAPTER,
    level="apply",
    kind="function",
    prompt=(
        "Write `all_reduce_busbw(size, time, n)`: the busbw that nccl-tests prints for an"
        " all-reduce."
    ),
    parameters={
        "size": Parameter(1e9, (65536, 1e6, 1e9, 16e9), "byte"),
        "time": Parameter(0.08, (2e-5, 1e-3, 0.08, 0.1), "s"),
        "n": Parameter(8, (2, 3, 8, 64, 1000)),
    },
    edges=({"n": 1}, {"n": 2}),
    expected=lambda size, time, n: c.busbw("all_reduce", n, c.algbw(size, time)),
    unit="byte/s",
    tolerance=0.001,
    solution=derivation(
        "The algbw is the buffer over the time.",
        "The factor is what a rank sends for each byte of the buffer: $2 (n - 1) / n$.",
        "Busbw is the one times the other. With a single rank it is zero.",
        after=(
            "```python\ndef all_reduce_busbw(size, time, n):\n    return size / time * 2 * (n - 1)"
            " / n\n```"
        ),
    ),
    smaller="nccl.busbw",
    misconceptions=(
        Misconception(
            "always twice", lambda size, time, n: 2 * size / time, "Try one rank: is anything sent?"
        ),
        Misconception(
            "algbw",
            lambda size, time, n: size / time,
            "That is the rate for the caller. How much does a rank send?",
        ),
        Misconception(
            "one pass",
            lambda size, time, n: size / time * (n - 1) / n,
            "First the sums are made, then they are handed out.",
        ),
        Misconception(
            "steps, not shares",
            lambda size, time, n: size / time * 2 * (n - 1),
            "In each of these steps a part of the buffer moves. What part?",
        ),
        Misconception(
            "multiplied by the time",
            lambda size, time, n: 2 * (n - 1) / n * size * time,
            "In yours an all-reduce that takes longer has a higher rate. Is that so?",
        ),
    ),
)

ranks_question = Question(
    id="nccl.ranks_from_ratio",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "A log has lost its list of devices. In each row of `all_reduce_perf`, busbw is {{ratio}}"
        " times algbw. How many ranks were there?"
    ),
    parameters={"ratio": Parameter(1.875, (1.5, 1.75, 1.875, 1.9375), show=str)},
    expected=lambda ratio: round(2 / (2 - ratio)),
    tolerance=0,
    solution=lambda ratio: derivation(
        "The ratio is the factor of an all-reduce, $2 (n - 1) / n$.",
        step("Solve for $n$.", "2 / (2 - ratio)", round(2 / (2 - ratio)), ratio=ratio),
    ),
    smaller="nccl.busbw",
    misconceptions=(
        Misconception(
            "one rank lost", lambda ratio: 2 / (2 - ratio) - 1, "Solve for n, not for n - 1."
        ),
        Misconception(
            "one pass",
            lambda ratio: 1 / (2 - ratio),
            "Write down the factor of an all-reduce, with both passes, and solve it.",
        ),
        Misconception(
            "steps",
            lambda ratio: 2 * (2 / (2 - ratio) - 1),
            "You counted the steps of a ring. The ranks are fewer.",
        ),
    ),
)

sent_question = Question(
    id="nccl.bytes_sent",
    chapter=CHAPTER,
    level="apply",
    prompt="A ring all-reduce of {{size}} over {{n}} ranks. How many bytes leave each rank?",
    parameters={"size": gigabytes(1, 1, 2, 8, 16), "n": ranks(8, 4, 6, 8, 12)},
    expected=lambda size, n: size * c.busbw_factor("all_reduce", n),
    unit="GB",
    tolerance=0.01,
    smaller="nccl.ring_steps",
    solution=lambda size, n: derivation(
        step(
            "The ring cuts the buffer into one chunk for each rank.",
            "buffer / n",
            buffer=(size, "byte"),
            n=n,
        ),
        step(
            "Once round to add and once to hand out, without the rank's own place: the steps.",
            "2 * (n - 1)",
            c.ring_steps("all_reduce", n),
            n=n,
        ),
        step(
            "In each step a rank sends one chunk.",
            "steps * chunk",
            (float(size * c.busbw_factor("all_reduce", n)), "byte"),
            steps=2 * (n - 1),
            chunk=(size / n, "byte"),
        ),
    ),
    misconceptions=(
        Misconception(
            "the buffer once",
            lambda size, n: size,
            "A rank does not send its whole buffer once. Follow one chunk around the ring.",
        ),
        Misconception(
            "twice",
            lambda size, n: 2 * size,
            "Nearly. In each of the two passes a rank keeps one of the chunks as its own. Which"
            " one?",
        ),
        Misconception(
            "one pass",
            lambda size, n: size * (n - 1) / n,
            "After that each rank holds one finished chunk. Who gets the others?",
        ),
        Misconception(
            "the whole buffer in each step",
            lambda size, n: size * 2 * (n - 1),
            "The buffer is cut. How large is what a step sends? And is your answer in bits, or in"
            " bytes?",
        ),
    ),
)

gather_question = Question(
    id="nccl.gather_time",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "In FSDP each of {{n}} GPUs holds a shard of {{shard}} of a layer. At best, how long does"
        " the all-gather take if a GPU receives {{bandwidth}} in one direction?"
    ),
    parameters={
        "shard": Parameter(50, (10, 20, 50, 100), "MB"),
        "n": ranks(),
        "bandwidth": rate(450, 50, 300, 450),
    },
    expected=lambda shard, n, bandwidth: c.bandwidth_bound("all_gather", n * shard, n, bandwidth),
    unit="µs",
    solution=lambda shard, n, bandwidth: derivation(
        step(
            "Each GPU lacks the shards of the others.",
            "(n - 1) * shard",
            n=n,
            shard=(shard, "byte"),
        ),
        step(
            "They come in at the rate of the link.",
            "lacks / rate",
            (float(c.bandwidth_bound("all_gather", n * shard, n, bandwidth)), "s"),
            lacks=((n - 1) * shard, "byte"),
            rate=(bandwidth, "byte/s"),
        ),
        after=f"In nccl-tests $S$ is {si(n * shard, 'byte')}, and $S (n - 1)/n$ is the same.",
    ),
    smaller="nccl.bytes_sent",
    misconceptions=(
        Misconception(
            "shard for buffer",
            lambda shard, n, bandwidth: c.bandwidth_bound("all_gather", shard, n, bandwidth),
            "S counts the gathered buffer. How many shards have to arrive?",
        ),
        Misconception(
            "its own as well",
            lambda shard, n, bandwidth: n * shard / bandwidth,
            "One of the shards is at home already.",
        ),
        Misconception(
            "as an all-reduce",
            lambda shard, n, bandwidth: c.bandwidth_bound("all_reduce", n * shard, n, bandwidth),
            "Here the data are not added up. You took the factor of another collective.",
        ),
        Misconception(
            "one shard",
            lambda shard, n, bandwidth: shard / bandwidth,
            "That is one shard. How many have to arrive?",
        ),
        Misconception(
            "both directions",
            lambda shard, n, bandwidth: (
                (c.bandwidth_bound("all_gather", n * shard, n, bandwidth)) / 2
            ),
            "You gave what arrives the rate of both directions. How fast is one?",
        ),
    ),
)

# --- the link ---------------------------------------------------------------------------------


def efa(name="bandwidth_per_node"):
    return float(getattr(link("efa_p5"), name))


share_question = Question(
    id="nccl.share_of_line",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "{{nodes}} nodes of {{per_node}} GPUs, an all-reduce of sixteen gigabytes, algbw {{algbw}}."
        " A node can send {{network}} in one direction. What share of their line do the nodes use?"
    ),
    parameters={
        "nodes": Parameter(32, (16, 32, 64, 125)),
        "per_node": Parameter(8, show=str),
        "algbw": rate(170, 130, 140, 156, 170, 180),
        "network": rate(400, 400),
    },
    expected=lambda nodes, per_node, algbw, network: (
        c.busbw("all_reduce", nodes * per_node, algbw) / network
    ),
    unit="%",
    tolerance=0.03,
    solution=lambda nodes, per_node, algbw, network: derivation(
        step("The ranks.", "nodes * per_node", nodes=nodes, per_node=per_node),
        step(
            "The busbw. A ring enters and leaves each node, so this is what a node sends.",
            "2 * (n - 1) / n * algbw",
            (float(c.busbw("all_reduce", nodes * per_node, algbw)), "byte/s"),
            n=nodes * per_node,
            algbw=(algbw, "byte/s"),
        ),
        step(
            "Over the line rate of a node.",
            "busbw / line",
            (float(c.busbw("all_reduce", nodes * per_node, algbw) / network), "%"),
            busbw=(float(c.busbw("all_reduce", nodes * per_node, algbw)), "byte/s"),
            line=(network, "byte/s"),
        ),
    ),
    smaller="nccl.busbw",
    misconceptions=(
        Misconception(
            "algbw against the link",
            lambda nodes, per_node, algbw, network: algbw / network,
            "Algbw is how fast the caller's buffer is done. What does the line carry meanwhile?",
        ),
        Misconception(
            "one GPU's part of the line",
            lambda nodes, per_node, algbw, network: (
                c.busbw("all_reduce", nodes * per_node, algbw) / (network / per_node)
            ),
            "The rings enter and leave each node as a whole, over the lines of its eight GPUs"
            " together.",
        ),
        Misconception(
            "NVLink",
            lambda nodes, per_node, algbw, network: (
                c.busbw("all_reduce", nodes * per_node, algbw) / link("nvlink4").bandwidth
            ),
            "You compared with the link inside the node. Which line is the slower one?",
        ),
    ),
)

node_rate_question = Question(
    id="nccl.rate_per_gpu",
    chapter=CHAPTER,
    level="recall",
    prompt=(
        "A node with eight GPUs has {{adapters}} adapters of {{adapter}} each. What is the network"
        " share of one GPU, in one direction?"
    ),
    parameters={
        "adapters": Parameter(32, (16, 32)),
        "adapter": Parameter(100, (100, 200), "Gbit/s"),
    },
    expected=lambda adapters, adapter: adapters * adapter / 8,
    unit="GB/s",
    solution=lambda adapters, adapter: derivation(
        step(
            "What the node sends, in one direction.",
            "adapters * adapter",
            adapters=adapters,
            adapter=(adapter, "byte/s"),
        ),
        step(
            "Eight GPUs share that.",
            "node / 8",
            (adapters * adapter / 8, "byte/s"),
            node=(adapters * adapter, "byte/s"),
        ),
        after="Adapters are named in bits per second and per direction.",
    ),
    misconceptions=(
        Misconception(
            "the node's rate",
            lambda adapters, adapter: adapters * adapter,
            "That is the whole node's, or one GPU's in bits. How many GPUs share it, and which"
            " unit is"
            " asked?",
        ),
        Misconception(
            "one adapter",
            lambda adapters, adapter: adapter,
            "That is one adapter. How many has each GPU?",
        ),
        Misconception(
            "both directions",
            lambda adapters, adapter: 2 * adapters * adapter / 8,
            "Adapters are named per direction, and that is what busbw is compared with.",
        ),
    ),
)

possible_question = Question(
    id="nccl.possible_algbw",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "Somebody reports the algbw of an all-reduce on a ring through the GPUs of {{nodes}} nodes,"
        " eight in each. Inside a node a GPU sends {{inside}} in one direction. Above which algbw"
        " can the report not be true, however good the network?"
    ),
    parameters={"nodes": Parameter(2, (2, 3)), "inside": rate(450, 300, 450, 900)},
    expected=lambda nodes, inside: c.algbw_from_busbw("all_reduce", 8 * nodes, inside),
    unit="GB/s",
    tolerance=0.01,
    solution=lambda nodes, inside: derivation(
        "On a ring the busbw cannot exceed the link that each GPU sends on.",
        step(
            "The factor between the two rates.",
            "2 * (n - 1) / n",
            float(c.busbw_factor("all_reduce", 8 * nodes)),
            n=8 * nodes,
        ),
        step(
            "So the algbw is limited to",
            "link / factor",
            (float(c.algbw_from_busbw("all_reduce", 8 * nodes, inside)), "byte/s"),
            link=(inside, "byte/s"),
            factor=float(c.busbw_factor("all_reduce", 8 * nodes)),
        ),
    ),
    smaller="nccl.busbw",
    holds={
        "Twice is the factor": lambda **_: 1.99 < c.busbw_factor("all_reduce", 10**6) < 2,
        "On a ring the busbw cannot exceed": (
            "algebra: in a ring each GPU sends that much, most of them over the link inside"
        ),
    },
    misconceptions=(
        Misconception(
            "the link itself",
            lambda nodes, inside: inside,
            "It is the busbw that the link bounds. What is the algbw then?",
        ),
        Misconception(
            "half the link",
            lambda nodes, inside: inside / 2,
            "Twice is the factor of a very large ring. How many ranks are there?",
        ),
        Misconception(
            "one node",
            lambda nodes, inside: c.algbw_from_busbw("all_reduce", 8, inside),
            "You took the factor of one node. The GPUs of the others are ranks, too.",
        ),
        Misconception(
            "one pass",
            lambda nodes, inside: c.algbw_from_busbw("all_gather", 8 * nodes, inside),
            "That would hold for a gather. Here two passes use the link.",
        ),
        Misconception(
            "multiplied",
            lambda nodes, inside: inside * c.busbw_factor("all_reduce", 8 * nodes),
            "You multiplied by the factor. Which of the two rates of an all-reduce is the higher"
            " one?",
        ),
    ),
)

switch_question = Question(
    id="nccl.switch_busbw",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "The NVLink switch adds: each of {{n}} GPUs sends its buffer up once and receives the sum"
        " once, at {{rate}} in each direction. Which busbw does nccl-tests print for a large"
        " all-reduce?"
    ),
    parameters={"n": ranks(8, 4, 6, 8), "rate": rate(270, 250, 260, 270, 480)},
    expected=lambda n, rate: c.busbw("all_reduce", n, c.algbw(1e9, c.in_network_time(1e9, rate))),
    unit="GB/s",
    tolerance=0.01,
    solution=lambda n, rate: derivation(
        "The buffer goes up once, so the time is the buffer over the rate: the algbw is the rate,"
        " with any number of ranks.",
        step(
            "The printed busbw multiplies it by the factor of a ring.",
            "2 * (n - 1) / n * algbw",
            (
                float(c.busbw("all_reduce", n, c.algbw(1e9, c.in_network_time(1e9, rate)))),
                "byte/s",
            ),
            n=n,
            algbw=(rate, "byte/s"),
        ),
        after="That counts a traffic that did not happen.",
    ),
    smaller="nccl.busbw",
    holds={
        "the algbw is the rate": lambda n, rate: (
            c.algbw(1e9, c.in_network_time(1e9, rate)) == c.algbw(2e9, c.in_network_time(2e9, rate))
        ),
    },
    misconceptions=(
        Misconception(
            "the wire",
            lambda n, rate: rate,
            "That is what the wire carries. nccl-tests does not know about the switch: by what"
            " factor does it multiply?",
        ),
        Misconception(
            "always twice",
            lambda n, rate: 2 * rate,
            "The factor depends on the number of ranks, here too. What does a rank keep as its"
            " own?",
        ),
        Misconception(
            "one pass",
            lambda n, rate: rate * (n - 1) / n,
            "The program applies the factor of the collective, not that of the algorithm. Which"
            " collective is it, and has it one pass or two?",
        ),
        Misconception(
            "divided by the factor",
            lambda n, rate: (
                rate**2 / (c.busbw("all_reduce", n, c.algbw(1e9, c.in_network_time(1e9, rate))))
            ),
            "You divided by the factor. Which of its two columns does the program work out from"
            " the other, and how?",
        ),
    ),
)

register(
    algbw_question,
    node_rate_question,
    busbw_question,
    factor_question,
    busbw_function,
    ranks_question,
    sent_question,
    gather_question,
    share_question,
    possible_question,
    switch_question,
)
