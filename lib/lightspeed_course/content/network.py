"""What the formulas of network.md call."""

from lightspeed import fabrics
from lightspeed import networks as net
from lightspeed.collectives import hierarchical_time
from lightspeed_course.practice.derivation import step
from lightspeed_course.practice.questions import Parameter


def loss(canonical, *choices):
    return Parameter(canonical, choices, "%")


def line(canonical=400, *choices):
    return Parameter(canonical, choices or (100, 200, 400), "Gbit/s")


def job_speed(compute, traffic, loss, window):
    """Speed of a job relative to one without loss: only its traffic takes longer."""
    return (compute + traffic) / (compute + traffic / net.go_back_n(loss, window))


MEDIAN = 0.5

LINK = 400e9  # bit/s

LARGE_DOMAIN = 72  # GPUs of one NVLink domain

RATIOS = (1, 2, 3)


def on_spines(per_node, nodes):
    return fabrics.alltoall_places(per_node, nodes, nodes).spine


def price(gpus, radix, ratio, switch, cable):
    """Dollars for a leaf-spine of this ratio."""
    parts = fabrics.leaf_spine(gpus, radix, ratio)
    return (parts.leaves + parts.spines) * switch + parts.cables * cable


def fitting(gpus, radix, switch, cable, budget):
    """Return the name of the smallest ratio within the budget."""
    ratio = next((r for r in RATIOS if price(gpus, radix, r, switch, cable) <= budget), None)
    return f"r{ratio}" if ratio else "none"


def across_time(domain, size, gpus, inside, network):
    return hierarchical_time(size, domain, gpus // domain, inside, network).across


SIGNS = {
    "an adapter's `out_of_sequence` counter grows on one host, and its link is never paused": (
        "loss"
    ),
    "a switch port counts many received pause frames, and no packet is dropped": "pause",
    "`np_ecn_marked_roce_packets` grows at one receiver while its neighbours are quiet": "incast",
    "uplinks of one leaf differ by a factor of four in bytes, and the leaf drops nothing": "hash",
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


def any_hit_step(chance, ranks):
    return step(
        "Nobody is late if each of them is in time. They do not know of each other: multiply.",
        f"in_time**{ranks}",
        in_time=1 - chance,
    )


def ecmp_none_step(flows, paths):
    return step(
        "A choice that misses the taken links, for each flow: multiply.",
        " * ".join(f"(paths - {i}) / paths" for i in range(1, flows)),
        float(fabrics.ecmp_collisions(flows, paths).none),
        paths=paths,
    )


def ecmp_idle_step(flows, paths):
    return step(
        "A link is idle if each of the flows misses it: multiply.",
        f"misses**{flows}",
        float(fabrics.ecmp_collisions(flows, paths).idle),
        misses=1 - 1 / paths,
    )


def fat_tree_step(radix, levels):
    return step(
        "Multiply over the layers.",
        f"2 * half**{levels}",
        float(fabrics.fat_tree_hosts(radix, levels)),
        half=radix // 2,
    )


def budget_steps(gpus, radix, switch, cable):
    return [
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
    ]


def domain_steps(gpus, size, network):
    return [
        step(
            f"Domains of {domain}: there are {gpus // domain}.",
            "2 * (m - 1) / m * size / domain / rate",
            (across_time(domain, size, gpus, 4.5e11, network), "s"),
            m=gpus // domain,
            size=(size, "byte"),
            domain=domain,
            rate=(network, "byte/s"),
        )
        for domain in (8, LARGE_DOMAIN)
    ]
