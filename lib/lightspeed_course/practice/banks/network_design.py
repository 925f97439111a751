"""Questions of chapter 8, what happens on a fabric: collisions, rails, parts and their price, two
levels, and what to look at when a job is slow.
"""

from __future__ import annotations

from lightspeed import fabrics
from lightspeed.collectives import hierarchical_time
from lightspeed_course.practice.banks.network import CHAPTER
from lightspeed_course.practice.derivation import derivation, step
from lightspeed_course.practice.parameters import plain, rate
from lightspeed_course.practice.questions import Misconception, Parameter, Question, register
from lightspeed_show.format import si

LINK = 400e9  # bit/s
LARGE_DOMAIN = 72  # GPUs of one NVLink domain

RATIOS = (1, 2, 3)


# --- collisions -------------------------------------------------------------------------------

pair = Question(
    id="network.ecmp_pair",
    chapter=CHAPTER,
    level="recall",
    prompt=(
        "Two flows are hashed to {{paths}} links that are alike, each by itself. With what"
        " probability do they share one?"
    ),
    parameters={"paths": plain(8, 4, 8, 16)},
    expected=lambda paths: 1 - fabrics.ecmp_collisions(2, paths).none,
    unit="%",
    solution=lambda paths: derivation(
        "Put the first flow anywhere.",
        step(
            "The second draws the link of the first with probability",
            "1 / paths",
            float(1 - fabrics.ecmp_collisions(2, paths).none),
            paths=paths,
        ),
    ),
    misconceptions=(
        Misconception(
            "one link named",
            lambda paths: 1 / paths**2,
            "So often do both draw one link that you named before. Does it matter which it is?",
        ),
        Misconception(
            "one for each flow",
            lambda paths: 2 / paths,
            "You counted a chance for each of them. The first cannot collide: with whom?",
        ),
        Misconception(
            "apart",
            lambda paths: 1 - 1 / paths,
            "So often do they stay apart. What is asked?",
        ),
    ),
)

apart = Question(
    id="network.ecmp_none",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "{{flows}} flows are hashed to {{paths}} links that are alike, each by itself. With what"
        " probability does each flow get a link to itself?"
    ),
    parameters={"flows": plain(4, 3, 4, 6), "paths": plain(8, 8, 16)},
    expected=lambda flows, paths: fabrics.ecmp_collisions(flows, paths).none,
    unit="%",
    solution=lambda flows, paths: derivation(
        "The first flow is free to choose. The next has one link less, and so on.",
        step(
            "A choice that misses the taken links, for each flow: multiply.",
            " * ".join(f"(paths - {i}) / paths" for i in range(1, flows)),
            float(fabrics.ecmp_collisions(flows, paths).none),
            paths=paths,
        ),
    ),
    smaller="network.ecmp_pair",
    misconceptions=(
        Misconception(
            "flows over links",
            lambda flows, paths: flows / paths,
            "That share of the links would carry a flow if they were dealt out. But they are"
            " hashed: write the chance of the second flow, then of the third.",
        ),
        Misconception(
            "enough links",
            lambda flows, paths: 1.0,
            "The links would do. Does a hash know which of them are taken?",
        ),
        Misconception(
            "one pair",
            lambda flows, paths: 1 - 1 / paths,
            "That is two flows. How many pairs can collide here?",
        ),
        Misconception(
            "some pair collides",
            lambda flows, paths: 1 - fabrics.ecmp_collisions(flows, paths).none,
            "That is the chance that some of them share a link.",
        ),
        Misconception(
            "pairs by themselves",
            lambda flows, paths: (1 - 1 / paths) ** (flows * (flows - 1) // 2),
            "That takes the pairs as independent. What does a third flow have to miss, once two"
            " have missed each other?",
            slight=True,
        ),
    ),
)

idle = Question(
    id="network.ecmp_idle",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "{{flows}} flows are hashed to {{paths}} uplinks. What share of the uplinks carries"
        " nothing, on average?"
    ),
    parameters={"flows": plain(16, 8, 16, 32), "paths": plain(16, 8, 16)},
    expected=lambda flows, paths: fabrics.ecmp_collisions(flows, paths).idle,
    unit="%",
    solution=lambda flows, paths: derivation(
        step(
            "One flow misses a given link with probability",
            "1 - 1 / paths",
            paths=paths,
        ),
        step(
            "A link is idle if each of the flows misses it: multiply.",
            f"misses**{flows}",
            float(fabrics.ecmp_collisions(flows, paths).idle),
            misses=1 - 1 / paths,
        ),
    ),
    holds={"carries nothing": "definition: of idle"},
    smaller="network.ecmp_none",
    misconceptions=(
        Misconception(
            "none is idle",
            lambda flows, paths: max(1 - flows / paths, 0.0),
            "You dealt them out like cards. A hash deals with its eyes shut.",
        ),
        Misconception(
            "one over links",
            lambda flows, paths: 1 / paths,
            "One flow hits a given link so often. How often does it miss it, and how often do all?",
        ),
        Misconception(
            "the busy ones",
            lambda flows, paths: 1 - fabrics.ecmp_collisions(flows, paths).idle,
            "That is the share of links that carry something.",
        ),
        Misconception(
            "one flow",
            lambda flows, paths: 1 - 1 / paths,
            "That is the chance that one flow misses a link. How many flows are there?",
        ),
    ),
)


# --- rails and oversubscription ---------------------------------------------------------------


def on_spines(per_node, nodes):
    return fabrics.alltoall_places(per_node, nodes, nodes).spine


mates = Question(
    id="network.rail_mates",
    chapter=CHAPTER,
    level="recall",
    prompt=(
        "{{nodes}} nodes of {{per_node}} GPUs hang on rails: GPU i of each node on leaf i. How many"
        " other GPUs hang on the same leaf as yours?"
    ),
    parameters={"nodes": plain(16, 8, 16, 32), "per_node": plain(8, 4, 8)},
    expected=lambda nodes, per_node: (
        fabrics.alltoall_places(per_node, nodes, nodes).leaf * (nodes * per_node - 1)
    ),
    tolerance=0.001,
    solution=lambda nodes, per_node: derivation(
        f"Of each node's {per_node} GPUs one is on your rail.",
        step("Leave out your own node.", "nodes - 1", nodes=nodes),
    ),
    misconceptions=(
        Misconception(
            "yours, too",
            lambda nodes, per_node: nodes,
            "How many of these are others?",
        ),
        Misconception(
            "those of the node",
            lambda nodes, per_node: per_node - 1,
            "Those share your node. Do they share your leaf?",
        ),
        Misconception(
            "everybody else",
            lambda nodes, per_node: nodes * per_node - 1,
            "Those are the other GPUs of the job. Which of them have your place in their node?",
        ),
    ),
)

rails = Question(
    id="network.rail_spine",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "{{nodes}} nodes of {{per_node}} GPUs hang on rails: GPU i of each node on leaf i. Each GPU"
        " sends the same to each other GPU, each message straight from its own adapter to"
        " the receiver's. What share of what a GPU sends crosses a spine?"
    ),
    parameters={"nodes": plain(32, 8, 16, 32), "per_node": plain(8, 4, 8)},
    expected=lambda nodes, per_node: on_spines(per_node, nodes),
    unit="%",
    solution=lambda nodes, per_node: derivation(
        step("The other GPUs.", "nodes * per_node - 1", nodes=nodes, per_node=per_node),
        step(
            "Of these, on another rail of another node, so that two leaves lie between:",
            "(nodes - 1) * (per_node - 1)",
            nodes=nodes,
            per_node=per_node,
        ),
        step(
            "Each gets the same. The share over a spine:",
            "far / others",
            float(on_spines(per_node, nodes)),
            far=(nodes - 1) * (per_node - 1),
            others=nodes * per_node - 1,
        ),
        after=(
            "With PXN a GPU hands these to its neighbour on the right rail, and the spine stays"
            " empty."
        ),
    ),
    smaller="network.rail_mates",
    misconceptions=(
        Misconception(
            "handed over first",
            lambda nodes, per_node: 0.0,
            "With PXN, yes. But here each message goes straight to its receiver's adapter.",
        ),
        Misconception(
            "all other rails",
            lambda nodes, per_node: (per_node - 1) / per_node,
            "Some GPUs on other rails sit in your own node. Does what they get go through a leaf?",
        ),
        Misconception(
            "rails keep it all",
            lambda nodes, per_node: (per_node - 1) / (nodes * per_node - 1),
            "You counted the GPUs of its own node. Who sits on another rail of another node?",
        ),
        Misconception(
            "all that leaves the node",
            lambda nodes, per_node: (nodes - 1) * per_node / (nodes * per_node - 1),
            "Of what leaves the node, a part turns round at a leaf.",
        ),
        Misconception(
            "the same rail",
            lambda nodes, per_node: (nodes - 1) / (nodes * per_node - 1),
            "Those are on its own rail, and their leaf joins them.",
        ),
    ),
)

across = Question(
    id="network.across_rate",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "Each GPU has an adapter of {{bandwidth}}. The leaves are oversubscribed {{ratio}} to 1,"
        " and {{leaving}} of the traffic leaves the leaf, spread evenly. At what rate can each GPU"
        " send?"
    ),
    parameters={
        "bandwidth": rate(50, 25, 50),
        "ratio": plain(4, 2, 3, 4),
        "leaving": Parameter(75, (60, 75, 90), "%"),
    },
    expected=lambda bandwidth, ratio, leaving: fabrics.across_rate(bandwidth, ratio, leaving),
    unit="GB/s",
    solution=lambda bandwidth, ratio, leaving: derivation(
        step(
            "A GPU's part of the uplinks.",
            "bandwidth / ratio",
            bandwidth=(bandwidth, "byte/s"),
            ratio=ratio,
        ),
        step(
            "That is full when the part that leaves fills it. All that the GPU sends is then",
            "uplink / leaving",
            (fabrics.across_rate(bandwidth, ratio, leaving), "byte/s"),
            uplink=(bandwidth / ratio, "byte/s"),
            leaving=leaving,
        ),
    ),
    smaller="nccl.rate_per_gpu",
    misconceptions=(
        Misconception(
            "the part that leaves",
            lambda bandwidth, ratio, leaving: leaving * bandwidth,
            "So much wants to leave at full rate. How much of it can the uplinks take?",
        ),
        Misconception(
            "all of it leaves",
            lambda bandwidth, ratio, leaving: bandwidth / ratio,
            "A part of the traffic stays with its leaf and turns round there.",
        ),
        Misconception(
            "two streams",
            lambda bandwidth, ratio, leaving: (
                (1 - leaving) * bandwidth + leaving * bandwidth / ratio
            ),
            "You averaged two rates. The GPU sends one mix, and the slow part holds it up.",
        ),
        Misconception(
            "the adapter's rate",
            lambda bandwidth, ratio, leaving: bandwidth,
            "Add up what the GPUs of a leaf want to send up. Does it fit?",
        ),
    ),
)

# --- parts and their price --------------------------------------------------------------------

hosts = Question(
    id="network.fat_tree",
    chapter=CHAPTER,
    level="recall",
    prompt=(
        "How many links to GPUs can a fat tree of full bandwidth have, with switches of {{radix}}"
        " ports in {{levels}} layers?"
    ),
    parameters={"radix": plain(64, 32, 64, 128), "levels": plain(2, 2, 3)},
    expected=lambda radix, levels: fabrics.fat_tree_hosts(radix, levels),
    tolerance=0.001,
    solution=lambda radix, levels: derivation(
        step("Each layer but the top turns half of its ports down.", "ports / 2", ports=radix),
        "The top turns all of them down, twice as many.",
        step(
            "Multiply over the layers.",
            f"2 * half**{levels}",
            float(fabrics.fat_tree_hosts(radix, levels)),
            half=radix // 2,
        ),
    ),
    holds={
        "Each layer but the top": "definition: of a fat tree",
        "The top turns all": "definition: of a fat tree",
    },
    misconceptions=(
        Misconception(
            "all ports down",
            lambda radix, levels: radix**levels,
            "If a switch turns its ports down, how does it reach the layer above?",
        ),
        Misconception(
            "not halved",
            lambda radix, levels: 2 * radix**levels,
            "How many of its ports does a leaf turn down?",
        ),
        Misconception(
            "half in each layer",
            lambda radix, levels: (radix / 2) ** levels,
            "The top layer does not have to go up.",
        ),
        Misconception(
            "one layer more",
            lambda radix, levels: fabrics.fat_tree_hosts(radix, levels + 1),
            "Count the layers of switches, without the GPUs.",
        ),
    ),
)


def price(gpus, radix, ratio, switch, cable):
    """Dollars for a leaf-spine of this ratio."""
    parts = fabrics.leaf_spine(gpus, radix, ratio)
    return (parts.leaves + parts.spines) * switch + parts.cables * cable


def fitting(gpus, radix, switch, cable, budget):
    """The name of the smallest ratio that the budget pays for."""
    ratio = next((r for r in RATIOS if price(gpus, radix, r, switch, cable) <= budget), None)
    return f"r{ratio}" if ratio else "none"


fabric = Question(
    id="network.budget",
    chapter=CHAPTER,
    level="design",
    kind="choice",
    prompt=(
        f"You join {{{{gpus}}}} GPUs, one link of {si(LINK, 'bit/s')} each, with switches of"
        " {{radix}} ports in two layers. A switch costs {{switch}} dollars, a cable with its optics"
        " {{cable}} dollars, and you have {{budget}} dollars. What is the lowest"
        " oversubscription that you can pay?"
    ),
    parameters={
        "gpus": plain(1024, 1024, 2048),
        "radix": plain(64, 64, 128),
        "switch": Parameter(20_000, (20_000, 30_000), show=lambda v: f"{v:,}"),
        "cable": Parameter(1000, (600, 1000), show=lambda v: f"{v:,}"),
        "budget": Parameter(3_000_000, (2_000_000, 3_000_000, 4_300_000), show=lambda v: f"{v:,}"),
    },
    options={
        "r1": "1 to 1, full bandwidth",
        "r2": "2 to 1",
        "r3": "3 to 1",
        "none": "none of these",
    },
    expected=fitting,
    solution=lambda gpus, radix, switch, cable, budget: derivation(
        "A leaf turns `ratio` times as many ports down as up. Round up to whole switches.",
        *(
            step(
                f"{ratio} to 1, with {p.leaves:.0f} leaves and {p.spines:.0f} spines, in dollars:",
                "(leaves + spines) * switch + cables * cable",
                float(price(gpus, radix, ratio, switch, cable)),
                leaves=p.leaves,
                spines=p.spines,
                switch=switch,
                cables=p.cables,
                cable=cable,
            )
            for ratio in RATIOS
            for p in (fabrics.leaf_spine(gpus, radix, ratio),)
        ),
        after=f"The first that {budget:,} dollars pay for is the answer.",
    ),
    holds={
        "none of these": "definition: of the option",
        "times as many ports down": "definition: of oversubscription",
        "What is the lowest": lambda gpus, radix, switch, cable, **_: (
            price(gpus, radix, 1, switch, cable)
            > price(gpus, radix, 2, switch, cable)
            > price(gpus, radix, 3, switch, cable)
        ),
    },
    smaller="network.fat_tree",
    misconceptions=(
        Misconception(
            "one to one",
            lambda **_: "r1",
            "Count leaves, spines and cables at 1 to 1, and add up. Can you pay for them?",
        ),
        Misconception(
            "two to one",
            lambda **_: "r2",
            "Count leaves, spines and cables at 2 to 1, and add up. Can you pay for them, and could"
            " you pay for a lower ratio?",
        ),
        Misconception(
            "three to one",
            lambda **_: "r3",
            "Count leaves, spines and cables at 3 to 1, and add up. Can you pay for them, and could"
            " you pay for a lower ratio?",
        ),
        Misconception(
            "too dear",
            lambda **_: "none",
            "Count leaves, spines and cables at the last ratio of the list, and add up. Can you not"
            " pay for them?",
        ),
    ),
)

# --- two levels, and switches that add --------------------------------------------------------


def across_time(domain, size, gpus, inside, network):
    return hierarchical_time(size, domain, gpus // domain, inside, network).across


domains = Question(
    id="network.domain",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "{{gpus}} GPUs all-reduce {{size}} in two levels, once in NVLink domains of 8 and once in"
        f" domains of {LARGE_DOMAIN}. Each has a network adapter of {{{{network}}}}. How many times"
        " as long does the part across the network take with the domains of 8?"
    ),
    parameters={
        "gpus": plain(576, 288, 576, 1152),
        "size": Parameter(1, (1, 4), "GB"),
        "network": rate(50, 50, 100),
    },
    expected=lambda gpus, size, network: (
        across_time(8, size, gpus, 450e9, network)
        / across_time(LARGE_DOMAIN, size, gpus, 450e9, network)
    ),
    solution=lambda gpus, size, network: derivation(
        "Across, each GPU all-reduces its share with those of the same place in the other domains.",
        *(
            step(
                f"Domains of {domain}: there are {gpus // domain}.",
                "2 * (m - 1) / m * size / domain / rate",
                (across_time(domain, size, gpus, 450e9, network), "s"),
                m=gpus // domain,
                size=(size, "byte"),
                domain=domain,
                rate=(network, "byte/s"),
            )
            for domain in (8, LARGE_DOMAIN)
        ),
        step(
            "Divide.",
            "small / large",
            small=(across_time(8, size, gpus, 450e9, network), "s"),
            large=(across_time(LARGE_DOMAIN, size, gpus, 450e9, network), "s"),
        ),
    ),
    smaller="nccl.two_levels",
    misconceptions=(
        Misconception(
            "the domains' ratio",
            lambda gpus, size, network: 9.0,
            "The shares are in that ratio. But fewer domains have fewer peers, too.",
        ),
        Misconception(
            "the ratio twice",
            lambda gpus, size, network: 81.0,
            "The shares are in that ratio. Is a ring of nine times the peers nine times as long?",
        ),
        Misconception(
            "no difference",
            lambda gpus, size, network: 1.0,
            "How large is the share that a GPU takes across, with each of them?",
        ),
        Misconception(
            "upside down",
            lambda gpus, size, network: (
                across_time(LARGE_DOMAIN, size, gpus, 450e9, network)
                / across_time(8, size, gpus, 450e9, network)
            ),
            "With larger domains, is there more to send across, or less?",
        ),
    ),
)

sharp = Question(
    id="network.sharp",
    chapter=CHAPTER,
    level="apply",
    prompt=(
        "{{nodes}} nodes of eight GPUs all-reduce {{size}}. The switches of the network add"
        " (SHARP); each GPU's adapter carries {{network}} in a direction. How long does the"
        " part across the network take?"
    ),
    parameters={
        "nodes": plain(32, 16, 32, 64),
        "size": Parameter(1, (1, 2, 4), "GB"),
        "network": rate(50, 25, 50),
    },
    expected=lambda nodes, size, network: fabrics.sharp_time(size, 8, nodes, 450e9, network).across,
    unit="ms",
    solution=lambda nodes, size, network: derivation(
        step(
            "A reduce-scatter in the node leaves each GPU with its share.",
            "size / 8",
            size=(size, "byte"),
        ),
        step(
            "It goes up once, and the sum comes down once at the same time.",
            "share / rate",
            (fabrics.sharp_time(size, 8, nodes, 450e9, network).across, "s"),
            share=(size / 8, "byte"),
            rate=(network, "byte/s"),
        ),
        after="A ring would send the share nearly twice.",
    ),
    holds={
        "A ring would send the share": lambda nodes, size, network: (
            1.8
            < hierarchical_time(size, 8, nodes, 450e9, network).across
            / fabrics.sharp_time(size, 8, nodes, 450e9, network).across
            < 2
        )
    },
    smaller="network.domain",
    misconceptions=(
        Misconception(
            "a ring",
            lambda nodes, size, network: hierarchical_time(size, 8, nodes, 450e9, network).across,
            "That is a ring of the nodes. Who adds here?",
        ),
        Misconception(
            "the whole buffer",
            lambda nodes, size, network: size / network,
            "The GPUs of a node share the work: what has each of them after its reduce-scatter?",
        ),
        Misconception(
            "up, then down",
            lambda nodes, size, network: 2 * size / 8 / network,
            "A link carries both directions at the same time.",
        ),
    ),
)

# --- where to look ----------------------------------------------------------------------------

SIGNS = {
    "an adapter's `out_of_sequence` counter grows on one host, and its link is never paused": (
        "loss"
    ),
    "a switch port counts many received pause frames, and no packet is dropped": "pause",
    "`np_ecn_marked_roce_packets` grows at one receiver while its neighbours are quiet": "incast",
    "uplinks of one leaf differ by a factor of four in bytes, and the leaf drops nothing": "hash",
}
CAUSES = {
    "loss": "a cable or transceiver that loses packets",
    "pause": "a receiver that is too slow, somewhere behind that port",
    "incast": "many senders that send to one receiver at once",
    "hash": "flows that the hash put on the same uplinks",
}

CAUGHT = {
    "packets of a flow come out of order, or are missing": "gap",
    "a queue was full, and packets were thrown away": "drop",
    "a port was told to stop": "pause",
    "a queue grew, and the sender has to slow down": "mark",
}
COUNTERS = {
    "gap": "`out_of_sequence`",
    "drop": "`rx_discards_phy`",
    "pause": "`rx_prio3_pause`",
    "mark": "`np_ecn_marked_roce_packets`",
}

which = Question(
    id="network.which_counter",
    chapter=CHAPTER,
    level="recall",
    kind="choice",
    prompt="Which counter of an adapter tells you this: {{event}}?",
    parameters={"event": Parameter(next(iter(CAUGHT)), tuple(CAUGHT))},
    options=COUNTERS,
    expected=lambda event: CAUGHT[event],
    solution=lambda event: derivation(
        "Read the name: out of sequence, discards, pause, ECN marked.",
        f"It is {COUNTERS[CAUGHT[event]]}.",
    ),
    misconceptions=(
        Misconception(
            "gaps",
            lambda **_: "gap",
            "That one counts gaps in the numbers of packets. Is that what happened?",
        ),
        Misconception(
            "drops",
            lambda **_: "drop",
            "That one counts packets that found a full queue. Is that what happened?",
        ),
        Misconception(
            "pauses",
            lambda **_: "pause",
            "That one counts pause frames that came in. Is that what happened?",
        ),
        Misconception(
            "marks",
            lambda **_: "mark",
            "That one counts packets that a switch marked. Is that what happened?",
        ),
    ),
)

counter = Question(
    id="network.first_counter",
    chapter=CHAPTER,
    level="design",
    kind="choice",
    prompt="A job has become slow. You find this: {{sign}}. Which cause fits it?",
    parameters={"sign": Parameter(next(iter(SIGNS)), tuple(SIGNS))},
    options=CAUSES,
    expected=lambda sign: SIGNS[sign],
    solution=lambda sign: derivation(
        "Ask what moves this counter: a bad line, a full queue, or a route.",
        {
            "loss": "Gaps in the numbers of packets without a pause or a full queue come from the"
            " line itself.",
            "pause": "Pauses come from below: a queue there is full.",
            "incast": "Marks at one receiver mean a queue at its port.",
            "hash": "The links are sound, and their load is not even.",
        }[SIGNS[sign]],
        after={
            "loss": "Swap the cable, then the transceiver.",
            "pause": "Follow the pauses from switch to switch to the device that sends them and"
            " receives none.",
            "incast": "Look for a collective, or a checkpoint, that sends to one rank.",
            "hash": "More connections, or routing that looks at the load, spread it.",
        }[SIGNS[sign]],
    ),
    smaller="network.which_counter",
    misconceptions=(
        Misconception(
            "a line that loses packets",
            lambda **_: "loss",
            "Packets that a cable loses leave gaps in their numbers. Does this counter count gaps?",
        ),
        Misconception(
            "a slow receiver",
            lambda **_: "pause",
            "A receiver that is too slow fills a queue, and the port before it is told to pause."
            " Does this counter count pauses?",
        ),
        Misconception(
            "senders at once",
            lambda **_: "incast",
            "Many senders fill the queue at the port of their receiver, and packets are marked"
            " there. Does this counter count marks?",
        ),
        Misconception(
            "a route",
            lambda **_: "hash",
            "Flows on the same uplinks leave the queues of others empty, and the counters of bytes"
            " differ. Is that what you see?",
        ),
    ),
)

register(pair, apart, idle, mates, rails, across, hosts, fabric, domains, sharp, which, counter)
