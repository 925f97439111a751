"""Questions of chapter 7, how long a collective takes: steps, latency, algorithms, levels, and
which test to run.
"""

from __future__ import annotations

from lightspeed import collectives as c
from lightspeed.catalog import accelerator, link, number
from lightspeed_course.practice.derivation import derivation, step
from lightspeed_course.practice.questions import Misconception, Parameter, Question, register
from lightspeed_models.nccl_tuner import NET_OVERHEAD, PLATEAU, tables
from lightspeed_show.format import si

CHAPTER = "07_nccl_bandwidth"

steps_question = Question(
    id="nccl.ring_steps",
    chapter=CHAPTER,
    level="recall",
    prompt=(
        "A ring all-reduce over {{nodes}} nodes with {{per_node}} GPUs each: how many steps does it"
        " take?"
    ),
    parameters={
        "nodes": Parameter(125, (4, 16, 32, 125)),
        "per_node": Parameter(8, (4, 8), show=str),
    },
    expected=lambda nodes, per_node: c.ring_steps("all_reduce", nodes * per_node),
    tolerance=0,
    solution=lambda nodes, per_node: derivation(
        step("The GPUs of the ring.", "nodes * per_node", nodes=nodes, per_node=per_node),
        step(
            "Once round to add and once to hand out, without the rank's own place.",
            "2 * (n - 1)",
            c.ring_steps("all_reduce", nodes * per_node),
            n=nodes * per_node,
        ),
    ),
    misconceptions=(
        Misconception(
            "nodes for ranks",
            lambda nodes, per_node: c.ring_steps("all_reduce", nodes),
            "Those are the steps between nodes. Who passes data on inside a node?",
        ),
        Misconception(
            "inside the nodes alone",
            lambda nodes, per_node: (
                c.ring_steps("all_reduce", nodes * per_node) - c.ring_steps("all_reduce", nodes)
            ),
            "Those stay inside a node. How does a chunk get from one node to the next?",
        ),
        Misconception(
            "one pass",
            lambda nodes, per_node: nodes * per_node - 1,
            "Now the sums are made. Do all ranks have them?",
        ),
        Misconception(
            "one for each rank",
            lambda nodes, per_node: nodes * per_node,
            "Follow one chunk around the ring, until each rank has its sum.",
        ),
        Misconception(
            "closing the ring",
            lambda nodes, per_node: 2 * nodes * per_node,
            "A chunk need not come back to where it started. Count the arrows, not the ranks.",
        ),
    ),
)


def of_the_whole(latency, nodes, per_node, size, network):
    """The share of a latency in a time whose other term is the bandwidth bound."""
    return latency / (latency + c.bandwidth_bound("all_reduce", size, nodes * per_node, network))


BASE, STEP = tables().base["Ring"][2] * 1e-6, tables().step
# On AMD hosts, such as those of a p5, posting a Simple message three times costs more than the step
# itself.
INSIDE = max(STEP["NVLINK"]["Ring"][2] * 1e-6, 3 * NET_OVERHEAD["amd"])


def latency_of_steps(nodes, per_node, inside, across, factor=1.0):
    """Seconds of all steps of a ring, with NCCL's base and its factor for large messages."""
    between = c.ring_steps("all_reduce", nodes)
    return factor * (
        BASE + between * across + (c.ring_steps("all_reduce", nodes * per_node) - between) * inside
    )


latency_share_question = Question(
    id="nccl.latency_share",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "{{nodes}} nodes of {{per_node}} GPUs reduce {{size}} on a ring that carries {{network}}"
        f" past each node. NCCL's own tables charge {si(BASE, 's')} once, {{{{inside}}}} for a step"
        " inside a node and {{across}} for a step between nodes. For a message of this size they"
        " multiply the sum by {{factor}}. What share of the whole time is that latency?"
    ),
    parameters={
        "nodes": Parameter(32, (16, 32, 64, 125)),
        "per_node": Parameter(8, show=str),
        "size": Parameter(2, (1, 2, 8, 16), "GB"),
        "network": Parameter(370, unit="GB/s"),
        "inside": Parameter(INSIDE * 1e6, unit="µs"),
        "across": Parameter(STEP["NET"]["Ring"][2], unit="µs"),
        "factor": Parameter(PLATEAU, show=str),
    },
    expected=lambda nodes, per_node, size, network, inside, across, factor: of_the_whole(
        latency_of_steps(nodes, per_node, inside, across, factor), nodes, per_node, size, network
    ),
    unit="%",
    tolerance=0.05,
    solution=lambda nodes, per_node, size, network, inside, across, factor: derivation(
        step(
            "A chunk goes around to be summed up, and around again: so often it changes nodes.",
            "2 * (nodes - 1)",
            c.ring_steps("all_reduce", nodes),
            nodes=nodes,
        ),
        step(
            "Its other steps stay inside a node.",
            "2 * (nodes * per_node - 1) - crossing",
            nodes=nodes,
            per_node=per_node,
            crossing=c.ring_steps("all_reduce", nodes),
        ),
        step(
            "The steps and what is charged once, times the factor.",
            "factor * (once + crossing * across + staying * inside)",
            (float(latency_of_steps(nodes, per_node, inside, across, factor)), "s"),
            factor=factor,
            once=(BASE, "s"),
            crossing=c.ring_steps("all_reduce", nodes),
            across=(across, "s"),
            staying=c.ring_steps("all_reduce", nodes * per_node)
            - c.ring_steps("all_reduce", nodes),
            inside=(inside, "s"),
        ),
        step(
            "The transfer.",
            "2 * (n - 1) / n * size / rate",
            (float(c.bandwidth_bound("all_reduce", size, nodes * per_node, network)), "s"),
            n=nodes * per_node,
            size=(size, "byte"),
            rate=(network, "byte/s"),
        ),
        step(
            "The share of the whole.",
            "latency / (latency + transfer)",
            (
                float(
                    of_the_whole(
                        latency_of_steps(nodes, per_node, inside, across, factor),
                        nodes,
                        per_node,
                        size,
                        network,
                    )
                ),
                "%",
            ),
            latency=(float(latency_of_steps(nodes, per_node, inside, across, factor)), "s"),
            transfer=(float(c.bandwidth_bound("all_reduce", size, nodes * per_node, network)), "s"),
        ),
    ),
    smaller="nccl.ring_steps",
    holds={
        "Most steps of this ring": lambda nodes, per_node, **_: (
            c.ring_steps("all_reduce", nodes) < c.ring_steps("all_reduce", nodes * per_node) / 2
        ),
        "That gap is the factor": "definition: of busbw",
    },
    misconceptions=(
        Misconception(
            "steps between nodes alone",
            lambda nodes, per_node, size, network, inside, across, factor: of_the_whole(
                factor * c.ring_steps("all_reduce", nodes) * across, nodes, per_node, size, network
            ),
            "Most steps of this ring never leave a node. They cost something, too.",
        ),
        Misconception(
            "every step at the network's price",
            lambda nodes, per_node, size, network, inside, across, factor: of_the_whole(
                factor * c.ring_steps("all_reduce", nodes * per_node) * across,
                nodes,
                per_node,
                size,
                network,
            ),
            "How many of the steps leave a node?",
        ),
        Misconception(
            "steps of one pass",
            lambda nodes, per_node, size, network, inside, across, factor: of_the_whole(
                latency_of_steps(nodes, per_node, inside, across, factor) / 2,
                nodes,
                per_node,
                size,
                network,
            ),
            "A chunk goes around to be summed up. What has to happen to the sum?",
        ),
        Misconception(
            "without the factor",
            lambda nodes, per_node, size, network, inside, across, factor: of_the_whole(
                latency_of_steps(nodes, per_node, inside, across), nodes, per_node, size, network
            ),
            "You added up the steps. What do the tables do with the sum for a large message?",
        ),
        Misconception(
            "latency over transfer",
            lambda nodes, per_node, size, network, inside, across, factor: (
                latency_of_steps(nodes, per_node, inside, across, factor)
                / c.bandwidth_bound("all_reduce", size, nodes * per_node, network)
            ),
            "You divided by the time of the bytes alone. The whole time has both parts.",
        ),
        Misconception(
            "what is missing to the line rate",
            lambda nodes, per_node, size, network, inside, across, factor: (
                1 - 1 / c.busbw_factor("all_reduce", nodes * per_node)
            ),
            "You compared an algbw with a line. That gap is the factor of busbw, and no latency at"
            " all.",
        ),
    ),
)


half_question = Question(
    id="nccl.half_size",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "A ring all-reduce over {{n}} ranks that send {{bandwidth}} each, with {{latency}} a step."
        " From which message size on does it reach half of its best rate?"
    ),
    parameters={
        "n": Parameter(8, (4, 8, 16, 32)),
        "bandwidth": Parameter(50, (25, 50, 400, 450), "GB/s"),
        "latency": Parameter(5, (2, 3, 5, 10), "µs"),
    },
    expected=lambda n, bandwidth, latency: n * latency * bandwidth,
    unit="kB",
    solution=lambda n, bandwidth, latency: derivation(
        "A step costs $\\alpha$ and moves a chunk in $S / (n W)$. At half of the best rate the two"
        " are the same.",
        step(
            "So a chunk is what the link moves in one latency.",
            "latency * rate",
            latency=(latency, "s"),
            rate=(bandwidth, "byte/s"),
        ),
        step(
            "The message has one chunk for each rank.",
            "n * chunk",
            (n * latency * bandwidth, "byte"),
            n=n,
            chunk=(latency * bandwidth, "byte"),
        ),
        after="It grows with the ring, which is why long rings need long messages.",
    ),
    smaller="nccl.ring_steps",
    holds={
        "At half of the best rate": lambda n, bandwidth, latency: (
            abs(
                c.ring_time(n * latency * bandwidth, n, bandwidth)
                / c.ring_time(0.0, n, bandwidth, latency)
                - 1
            )
            < 1e-9
        ),
    },
    misconceptions=(
        Misconception(
            "one hop",
            lambda n, bandwidth, latency: latency * bandwidth,
            "That is the size of what a step sends. How large is the message then?",
        ),
        Misconception(
            "all steps on one message",
            lambda n, bandwidth, latency: c.ring_steps("all_reduce", n) * latency * bandwidth,
            "You compared the latencies of the whole ring with one transfer of the whole buffer."
            " How much does a rank send in all?",
        ),
        Misconception(
            "one pass",
            lambda n, bandwidth, latency: (n - 1) * latency * bandwidth,
            "Nearly. Into how many chunks is the buffer cut?",
        ),
        Misconception(
            "a two too many",
            lambda n, bandwidth, latency: 2 * (n * latency * bandwidth),
            "Nearly. In both passes there are steps, and bytes to send. Did you count the two in"
            " one of the terms only?",
        ),
    ),
)

ring_function = Question(
    id="nccl.ring_time",
    chapter=CHAPTER,
    level="apply",
    kind="function",
    prompt=(
        "Write `alpha_beta_ring(size, n, bandwidth, latency)`: the time of a ring all-reduce in the"
        " α–β model. `bandwidth` is what a rank sends, `latency` the cost of one step."
    ),
    parameters={
        "size": Parameter(1e9, (1024, 1e6, 1e8, 1e9, 16e9), "byte"),
        "n": Parameter(8, (2, 3, 8, 64, 1000)),
        "bandwidth": Parameter(50e9, (12.5e9, 50e9, 450e9), "byte/s"),
        "latency": Parameter(5e-6, (1e-6, 5e-6, 2e-5), "s"),
    },
    edges=({"n": 1}, {"size": 0.0}, {"latency": 0.0}),
    expected=lambda size, n, bandwidth, latency: c.ring_time(size, n, bandwidth, latency),
    unit="s",
    tolerance=0.001,
    solution=derivation(
        "The ring takes $2 (n - 1)$ steps.",
        "A step costs a latency and moves one chunk, $S / n$.",
        "Add the two for a step, and multiply by the steps.",
        after=(
            "```python\ndef alpha_beta_ring(size, n, bandwidth, latency):\n"
            "    return 2 * (n - 1) * (latency + size / (n * bandwidth))\n```"
        ),
    ),
    smaller="nccl.half_size",
    misconceptions=(
        Misconception(
            "one latency for all",
            lambda size, n, bandwidth, latency: latency + 2 * (n - 1) / n * size / bandwidth,
            "Try a tiny message. Can it be everywhere after one step?",
        ),
        Misconception(
            "whole buffer each step",
            lambda size, n, bandwidth, latency: 2 * (n - 1) * (latency + size / bandwidth),
            "A step sends one chunk. How large is it?",
        ),
        Misconception(
            "one pass",
            lambda size, n, bandwidth, latency: c.ring_time(
                size, n, bandwidth, latency, "all_gather"
            ),
            "You made the sums, and did not hand them out.",
        ),
        Misconception(
            "the buffer once",
            lambda size, n, bandwidth, latency: 2 * (n - 1) * latency + size / bandwidth,
            "The latencies are right. How much does a rank send in all of these steps?",
        ),
        Misconception(
            "n steps",
            lambda size, n, bandwidth, latency: 2 * n * (latency + size / (n * bandwidth)),
            "Try one rank: does it have to send anything?",
        ),
        Misconception(
            "no latency",
            lambda size, n, bandwidth, latency: 2 * (n - 1) / n * size / bandwidth,
            "Try a tiny message. How long does it take in yours?",
        ),
    ),
)

levels_question = Question(
    id="nccl.two_levels",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "An all-reduce of {{size}} over {{nodes}} nodes of {{per_node}} GPUs, in two levels:"
        " reduce-scatter inside, all-reduce of each share across, all-gather inside. A GPU sends"
        " {{inside}} inside its node and {{network}} across. Latency aside, and with no overlap of"
        " the levels, how long does it take?"
    ),
    parameters={
        "size": Parameter(8, (2, 4, 8, 16), "GB"),
        "nodes": Parameter(4, (2, 4, 16, 32)),
        "per_node": Parameter(8, (4, 8), show=str),
        "inside": Parameter(450, (300, 450), "GB/s"),
        "network": Parameter(50, (25, 50), "GB/s"),
    },
    expected=lambda **p: c.hierarchical_time(**p).upper,
    unit="ms",
    solution=lambda size, nodes, per_node, inside, network: derivation(
        step(
            "Inside: reduce-scatter and all-gather of the whole buffer.",
            "2 * (g - 1) / g * size / inside",
            (
                float(
                    c.hierarchical_time(
                        size=size, nodes=nodes, per_node=per_node, inside=inside, network=network
                    ).inside
                ),
                "s",
            ),
            g=per_node,
            size=(size, "byte"),
            inside=(inside, "byte/s"),
        ),
        step(
            "Between the two each GPU has a share of the buffer.",
            "size / g",
            size=(size, "byte"),
            g=per_node,
        ),
        step(
            "Across: all-reduce of that share with its peers.",
            "2 * (nodes - 1) / nodes * share / network",
            (
                float(
                    c.hierarchical_time(
                        size=size, nodes=nodes, per_node=per_node, inside=inside, network=network
                    ).across
                ),
                "s",
            ),
            nodes=nodes,
            share=(size / per_node, "byte"),
            network=(network, "byte/s"),
        ),
        step(
            "One after the other.",
            "inside + across",
            (
                float(
                    c.hierarchical_time(
                        size=size, nodes=nodes, per_node=per_node, inside=inside, network=network
                    ).upper
                ),
                "s",
            ),
            inside=(
                float(
                    c.hierarchical_time(
                        size=size, nodes=nodes, per_node=per_node, inside=inside, network=network
                    ).inside
                ),
                "s",
            ),
            across=(
                float(
                    c.hierarchical_time(
                        size=size, nodes=nodes, per_node=per_node, inside=inside, network=network
                    ).across
                ),
                "s",
            ),
        ),
    ),
    smaller="nccl.gather_time",
    misconceptions=(
        Misconception(
            "across alone",
            lambda **p: c.hierarchical_time(**p).across,
            "That is the time across. Which passes are left, and where do they run?",
        ),
        Misconception(
            "inside alone",
            lambda **p: c.hierarchical_time(**p).inside,
            "That is the time inside the nodes. What does each GPU still exchange with its peers in"
            " the other nodes?",
        ),
        Misconception(
            "whole buffer across",
            lambda size, nodes, per_node, inside, network: (
                c.hierarchical_time(size, per_node, nodes, inside, network).inside
                + c.bandwidth_bound("all_reduce", size, nodes, network)
            ),
            "After the reduce-scatter inside, how much does each GPU still have to send across?",
        ),
        Misconception(
            "one flat ring over single adapters",
            lambda size, nodes, per_node, inside, network: c.bandwidth_bound(
                "all_reduce", size, nodes * per_node, network
            ),
            "You sent the buffer around through one adapter. The adapters of a node work at the"
            " same time.",
        ),
        Misconception(
            "inside once",
            lambda size, nodes, per_node, inside, network: (
                c.hierarchical_time(size, per_node, nodes, inside, network).across
                + c.bandwidth_bound("all_gather", size, per_node, inside)
            ),
            "There are two passes inside a node: one before the network and one after.",
        ),
        Misconception(
            "nothing stays at home",
            lambda size, nodes, per_node, inside, network: (
                2 * size / inside + 2 * size / per_node / network
            ),
            "In each pass a GPU has one share at home already. Where does that come in?",
        ),
    ),
)

leaving_question = Question(
    id="nccl.share_that_leaves",
    chapter=CHAPTER,
    level="recall",
    prompt=(
        "In an `alltoall` over {{nodes}} nodes of {{per_node}} GPUs, the buffer of a GPU has a"
        " piece for each GPU. What share of the buffer is for other nodes?"
    ),
    parameters={
        "nodes": Parameter(5, (3, 5, 6, 10)),
        "per_node": Parameter(8, (4, 8), show=str),
    },
    expected=lambda nodes, per_node: 1 - 1 / nodes,
    unit="%",
    tolerance=0.01,
    solution=lambda nodes, per_node: derivation(
        step(
            "The pieces for GPUs of other nodes.",
            "(nodes - 1) * per_node",
            nodes=nodes,
            per_node=per_node,
        ),
        step(
            "Over the number of pieces.",
            "leaving / (nodes * per_node)",
            (1 - 1 / nodes, "%"),
            leaving=(nodes - 1) * per_node,
            nodes=nodes,
            per_node=per_node,
        ),
    ),
    misconceptions=(
        Misconception(
            "all but its own piece",
            lambda nodes, per_node: 1 - 1 / (nodes * per_node),
            "You kept one piece at home. How many receivers does a GPU have in its own node?",
        ),
        Misconception(
            "what stays",
            lambda nodes, per_node: 1 / nodes,
            "That part is for the node itself. What is left?",
        ),
        Misconception(
            "one other node",
            lambda nodes, per_node: 1 / (nodes - 1),
            "Count the pieces for all other nodes together. How many pieces are there in all?",
        ),
    ),
)

alltoall_question = Question(
    id="nccl.alltoall_across",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "An `alltoall` with a buffer of {{size}} on each GPU of {{nodes}} nodes, which have eight"
        " GPUs each. A GPU has {{network}} to the network in one direction. What stays in its node"
        " crosses NVLink in the meantime and is done sooner. How long does it take at best?"
    ),
    parameters={
        "size": Parameter(1, (0.5, 1, 2, 4), "GB"),
        "nodes": Parameter(4, (3, 4, 8)),
        "network": Parameter(50, (25, 50, 100), "GB/s"),
    },
    expected=lambda size, nodes, network: size * (1 - 1 / nodes) / network,
    unit="ms",
    solution=lambda size, nodes, network: derivation(
        step(
            "The share of a buffer that is for other nodes.",
            "1 - 1 / nodes",
            (1 - 1 / nodes, "%"),
            nodes=nodes,
        ),
        step(
            "It leaves through the adapter.",
            "share * size / rate",
            (size * (1 - 1 / nodes) / network, "s"),
            share=(1 - 1 / nodes, "%"),
            size=(size, "byte"),
            rate=(network, "byte/s"),
        ),
        after="A ring or a tree cannot save that: each byte is meant for one receiver.",
    ),
    smaller="nccl.share_that_leaves",
    holds={
        "is done sooner": lambda size, nodes, network: (
            1 / nodes / link("nvlink4").bandwidth < (1 - 1 / nodes) / network
        ),
    },
    misconceptions=(
        Misconception(
            "all but its own share",
            lambda size, nodes, network: size * (1 - 1 / (8 * nodes)) / network,
            "You kept back what is for the GPU itself. What about the other GPUs of its node?",
        ),
        Misconception(
            "everything leaves",
            lambda size, nodes, network: size / network,
            "Some of the buffer is for GPUs of the same node.",
        ),
        Misconception(
            "as an all-reduce",
            lambda size, nodes, network: 2 * size * (1 - 1 / nodes) / network,
            "Each byte is sent once, and is not added to another.",
        ),
        Misconception(
            "the node's whole rate",
            lambda size, nodes, network: size * (1 - 1 / nodes) / (8 * network),
            "The node's adapters serve its eight GPUs, which send at the same time.",
        ),
        Misconception(
            "what stays",
            lambda size, nodes, network: size / nodes / network,
            "That is the part for its own node. What part crosses the network?",
        ),
        Misconception(
            "both directions",
            lambda size, nodes, network: (size * (1 - 1 / nodes) / network) / 2,
            "Does a GPU that receives at the same time send any faster?",
        ),
        Misconception(
            "one adapter for the node",
            lambda size, nodes, network: 8 * (size * (1 - 1 / nodes) / network),
            "That sends what the whole node has through one adapter, or counts bits. How many"
            " adapters has the node, and what does each rate count?",
        ),
    ),
)

algorithms = {
    "ring": "A ring.",
    "doubling": "Recursive doubling: partners swap what they have.",
    "tree": "One tree, the whole message in each step.",
    "double_tree": "Two pipelined trees that share the message.",
}
TIMES = {
    "ring": c.ring_time,
    "doubling": c.recursive_doubling_time,
    "tree": c.tree_time,
    "double_tree": c.double_tree_time,
}


def fastest(size, n, bandwidth, latency):
    return min(TIMES, key=lambda name: TIMES[name](size, n, bandwidth, latency))


WON = {
    "doubling": "At this size steps take more time than bytes, and doubling has the fewest.",
    "double_tree": "Doubling sends far more bytes, and the ring takes far more steps. Two trees"
    " have few of both.",
}


best_question = Question(
    id="nccl.best_algorithm",
    chapter=CHAPTER,
    level="design",
    kind="choice",
    prompt=(
        "{{n}} ranks all-reduce {{size}}. Each sends {{bandwidth}}, a step costs {{latency}}. Which"
        " algorithm is fastest in the α–β model?"
    ),
    parameters={
        "n": Parameter(512, (64, 128, 256, 512), show=str),
        "size": Parameter(16, (1, 4, 16, 4000), "kB", show=lambda kb: si(kb * 1e3, "byte")),
        "bandwidth": Parameter(50, (25, 50), "GB/s"),
        "latency": Parameter(5, (2, 5, 10), "µs"),
    },
    options=algorithms,
    expected=fastest,
    solution=lambda size, n, bandwidth, latency: derivation(
        "Write down for each algorithm its steps, each with a latency, and the bytes that a rank"
        " sends.",
        step(
            "The ring.",
            "2 * (n - 1) * (latency + size / (n * rate))",
            (float(c.ring_time(size, n, bandwidth, latency)), "s"),
            n=n,
            latency=(latency, "s"),
            size=(size, "byte"),
            rate=(bandwidth, "byte/s"),
        ),
        *(
            step(
                f"{words}. Its time, over that of the ring.",
                "time / ring",
                time=(float(TIMES[name](size, n, bandwidth, latency)), "s"),
                ring=(float(c.ring_time(size, n, bandwidth, latency)), "s"),
            )
            for name, words in (
                ("doubling", "Recursive doubling has $\\log_2 n$ rounds of swaps"),
                ("tree", "One tree goes up and down with the whole message"),
                ("double_tree", "Two trees share the message and send it in pieces"),
            )
        ),
        after=WON[fastest(size, n, bandwidth, latency)],
    ),
    smaller="nccl.half_size",
    holds={
        "It sends the fewest bytes": lambda n, **_: (
            c.ring_time(1.0, n, 1.0) == min(time(1.0, n, 1.0) for time in TIMES.values())
        ),
        "At this size steps": lambda size, n, bandwidth, latency: (
            fastest(size, n, bandwidth, latency) != "doubling"
            or (
                c.recursive_doubling_time(size, n, bandwidth)
                < 0.5 * c.recursive_doubling_time(0.0, n, bandwidth, latency)
                and c.recursive_doubling_time(0.0, n, bandwidth, latency)
                == min(time(0.0, n, bandwidth, latency) for time in TIMES.values())
            )
        ),
    },
    misconceptions=(
        Misconception(
            "fewest bytes wins",
            lambda **_: "ring",
            "It sends the fewest bytes. What do its steps cost beside them? Count the steps.",
        ),
        Misconception(
            "a logarithm is a logarithm",
            lambda **_: "tree",
            "Up the tree and down again: how many steps is that in all?",
        ),
        Misconception(
            "the other term",
            lambda **v: "double_tree" if fastest(**v) == "doubling" else "doubling",
            "One of the two has fewer steps, the other sends fewer bytes. Which takes longer at"
            " this size?",
        ),
    ),
)

# Which collective carries most of a strategy's bytes, and the ones that one may take it for.
TESTS = {
    "all_reduce": "all_reduce_perf",
    "gather_scatter": "all_gather_perf and reduce_scatter_perf",
    "alltoall": "alltoall_perf",
    "sendrecv": "sendrecv_perf",
}
STRATEGIES = {
    "FSDP, all weights sharded": "gather_scatter",
    "a mixture of experts, spread over the GPUs": "alltoall",
    "a pipeline of stages": "sendrecv",
    "plain data parallelism (DDP)": "all_reduce",
}
SLIPS = {
    "all_reduce": ("gather_scatter", "alltoall", "sendrecv"),
    "gather_scatter": ("all_reduce", "alltoall", "sendrecv"),
    "alltoall": ("all_reduce", "gather_scatter", "sendrecv"),
    "sendrecv": ("all_reduce", "gather_scatter", "alltoall"),
}


def slip(which):
    return lambda strategy: SLIPS[STRATEGIES[strategy]][which]


# What each rank has before and after, and the collective that does it.
MOVES = {
    "a shard of the weights, and at the end all shards": "all_gather",
    "gradients of its own, and at the end one shard of their sum": "reduce_scatter",
    "gradients of its own, and at the end the whole of their sum": "all_reduce",
    "tokens for every other rank, and at the end those that the others had for it": "alltoall",
}
# Whether numbers are added up on the way, and whether a rank ends with the whole.
KINDS = {
    "all_reduce": (True, True),
    "all_gather": (False, True),
    "reduce_scatter": (True, False),
    "alltoall": (False, False),
}


def other_kind(adds, whole):
    """The collective that differs in adding, in what a rank ends with, or in both."""
    kinds = {kind: name for name, kind in KINDS.items()}

    def named(has):
        added, ends = KINDS[MOVES[has]]
        return kinds[added != adds, ends != whole]

    return named


name_question = Question(
    id="nccl.collective_name",
    chapter=CHAPTER,
    level="recall",
    kind="choice",
    prompt="Each rank has {{has}}. Which collective does that?",
    parameters={"has": Parameter(next(iter(MOVES)), tuple(MOVES))},
    options={name: f"`{name}`" for name in KINDS},
    expected=lambda has: MOVES[has],
    solution=lambda has: derivation(
        "Are numbers added up on the way? If so it is a *reduce*.",
        "Does a rank end with the whole, or with a part of its own? The whole: *all-*; a part:"
        " *scatter*.",
        after=f"Here it is `{MOVES[has]}`.",
    ),
    misconceptions=(
        Misconception(
            "adding", other_kind(True, False), "Are numbers added up on the way, or only moved?"
        ),
        Misconception(
            "what is left with whom",
            other_kind(False, True),
            "What does a rank have at the end: the whole, or a part of its own?",
        ),
        Misconception(
            "both",
            other_kind(True, True),
            "Ask two things: is anything added up, and does a rank end with the whole?",
        ),
    ),
)

test_question = Question(
    id="nccl.which_test",
    chapter=CHAPTER,
    level="design",
    kind="choice",
    prompt=(
        "You are about to train with {{strategy}}. Which of the nccl-tests tells you most about"
        " your communication?"
    ),
    parameters={"strategy": Parameter("FSDP, all weights sharded", tuple(STRATEGIES))},
    options=TESTS,
    expected=lambda strategy: STRATEGIES[strategy],
    solution=lambda strategy: derivation(
        f"What does {strategy} send in a step, and how large are the messages?",
        "Sums of gradients: all-reduce. Gathered weights and scattered sums: its two parts."
        " Tokens to experts: `alltoall`. From stage to stage: send and receive.",
        after=(
            f"With {strategy}, most bytes move in what {TESTS[STRATEGIES[strategy]]} measures. Run"
            " it at your own message size."
        ),
    ),
    smaller="nccl.collective_name",
    holds={"most bytes move": "definition: of the strategy"},
    misconceptions=(
        Misconception(
            "the first that comes to mind",
            slip(0),
            "Write down what this strategy sends, when, and to whom.",
        ),
        Misconception(
            "another strategy's",
            slip(1),
            "That is what another strategy sends. Who needs which bytes here?",
        ),
        Misconception(
            "a third one's", slip(2), "Think of one layer, forward and backward: who talks to whom?"
        ),
    ),
)


def fsdp_over_ddp(micro_batches):
    """Bytes that a rank sends in a step, over those of one all-reduce; (n - 1)/n cancels."""
    gather, scatter = (c.busbw_factor(name, 64) for name in ("all_gather", "reduce_scatter"))
    return micro_batches * (2 * gather + scatter) / c.busbw_factor("all_reduce", 64)


fsdp_question = Question(
    id="nccl.fsdp_over_ddp",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "A step adds up the gradients of {{micro_batches}} micro-batches. In each of them FSDP"
        " gathers the weights before the forward pass and again before the backward pass, and"
        " scatters the reduced gradients. DDP all-reduces the gradients once, at the end. Weights"
        " and gradients have the same width. How many times the bytes of DDP does a rank send"
        " under FSDP?"
    ),
    parameters={"micro_batches": Parameter(6, (4, 6, 8))},
    expected=fsdp_over_ddp,
    solution=lambda micro_batches: derivation(
        step(
            "Two gathers and one scatter for each micro-batch.",
            "micro_batches * (2 * gather + scatter)",
            micro_batches=micro_batches,
            gather=1,
            scatter=1,
        ),
        step(
            "An all-reduce is one scatter and one gather.", "scatter + gather", scatter=1, gather=1
        ),
        step(
            "The share $(n - 1)/n$ is in both, and cancels.",
            "passes / all_reduce",
            float(fsdp_over_ddp(micro_batches)),
            passes=3 * micro_batches,
            all_reduce=2,
        ),
    ),
    smaller="nccl.bytes_sent",
    misconceptions=(
        Misconception(
            "one micro-batch",
            lambda micro_batches: fsdp_over_ddp(1),
            "That is for one micro-batch. What is done again for the next one, and what is not?",
        ),
        Misconception(
            "gathered once",
            lambda micro_batches: 1.0 * micro_batches,
            "The weights were thrown away after the forward pass. What does the backward pass"
            " need?",
        ),
        Misconception(
            "an all-reduce is one pass",
            lambda micro_batches: 3.0 * micro_batches,
            "An all-reduce adds up and hands out. How many passes is that?",
        ),
        Misconception(
            "three calls to one",
            lambda micro_batches: 3.0,
            "You counted calls, and those of one micro-batch. How many passes is an all-reduce,"
            " and how often is each call made?",
        ),
        Misconception(
            "gradients scattered once",
            lambda micro_batches: micro_batches + 0.5,
            "You scatter the gradients once. How often does this FSDP scatter them?",
        ),
    ),
)

bidirectional_question = Question(
    id="nccl.one_direction",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "A data sheet says NVLink {{printed}}, and counts both directions. A ring all-reduce"
        " reaches a busbw of {{busbw}} on it. What share of the line is that?"
    ),
    parameters={
        "printed": Parameter(900, (600, 900), "GB/s"),
        "busbw": Parameter(360, (210, 230, 240, 270, 360), "GB/s"),
    },
    expected=lambda printed, busbw: busbw / (printed / 2),
    unit="%",
    tolerance=0.02,
    solution=lambda printed, busbw: derivation(
        "A rank sends to one neighbour while it receives from the other. Busbw counts what it"
        " sends.",
        step("The line in one direction.", "printed / 2", printed=(printed, "byte/s")),
        step(
            "The share.",
            "busbw / line",
            (busbw / (printed / 2), "%"),
            busbw=(busbw, "byte/s"),
            line=(printed / 2, "byte/s"),
        ),
    ),
    smaller="nccl.algbw",
    misconceptions=(
        Misconception(
            "both directions",
            lambda printed, busbw: busbw / printed,
            "Busbw counts what a rank sends. What part of the printed rate is for sending?",
        ),
        Misconception(
            "the line of the network",
            lambda printed, busbw: busbw / link("efa_p5").bandwidth_per_node,
            "That is the network's line. The question is about NVLink.",
        ),
        Misconception(
            "bits",
            lambda printed, busbw: busbw / (printed / 8),
            "NVLink is named in bytes, not in bits.",
        ),
    ),
    valid=lambda printed, busbw: busbw < printed / 2,
)

left_out = Question(
    id="nccl.left_out_chip",
    chapter=CHAPTER,
    level="design",
    prompt=(
        "Eight H100 of one node reduce {{size}} of floats at a busbw of {{seen}}, in the median of"
        " public rows. The H200 has the same NVLink and more memory bandwidth; its rows were left"
        " out. What busbw do you expect of eight H200?"
    ),
    parameters={
        "seen": Parameter(445, unit="GB/s"),
        "size": Parameter(2**29, show=lambda size: f"{size / 2**20:.0f} MiB"),
    },
    expected=lambda seen, size: number("nvlink4_all_reduce.h200_sxm"),
    unit="GB/s",
    tolerance=0.05,
    solution=lambda seen, size: derivation(
        "What limits a message of this size: the link between the GPUs, or their memory?",
        "The link decides, so the number carries over to a chip with the same one.",
        step(
            "What the left-out rows say, over what you saw.",
            "left_out / seen",
            (float(number("nvlink4_all_reduce.h200_sxm") / seen), "%"),
            left_out=(float(number("nvlink4_all_reduce.h200_sxm")), "byte/s"),
            seen=(seen, "byte/s"),
        ),
    ),
    smaller="nccl.one_direction",
    holds={
        "The link decides": lambda seen, size: (
            abs(number("nvlink4_all_reduce.h200_sxm") / seen - 1) < 0.05
            and link("nvlink4").bandwidth == accelerator("h200_sxm").link_bandwidth
        ),
    },
    misconceptions=(
        Misconception(
            "memory decides",
            lambda seen, size: (
                seen * accelerator("h200_sxm").hbm_bandwidth / accelerator("h100_sxm").hbm_bandwidth
            ),
            "You scaled with the memory. Which of the two is slower for this collective, memory or"
            " link?",
        ),
        Misconception(
            "both directions",
            lambda seen, size: 2 * seen,
            "Busbw counts one direction of the link. How fast is that one?",
        ),
        Misconception(
            "algbw",
            lambda seen, size: c.algbw_from_busbw("all_reduce", 8, seen),
            "That is the algbw of the H100. The question asks for the busbw.",
        ),
    ),
)

register(
    steps_question,
    bidirectional_question,
    latency_share_question,
    half_question,
    ring_function,
    levels_question,
    leaving_question,
    alltoall_question,
    best_question,
    name_question,
    test_question,
    fsdp_question,
    left_out,
)
