"""Chapter 8: many senders into one port, and a job on a fabric.

`view` runs the packets of an incast, `fabric_view` counts the bytes on each link. Both are pure:
parameters in, a `View` out. `explore()` and `explore_fabric()` put controls on them.
"""

import functools
from random import Random

from lightspeed import networks as net
from lightspeed.catalog import find, link, number
from lightspeed.elementwise import INF
from lightspeed_models.simulators.fabric_traffic import DESIGNS, TRAFFIC, Fabric, flows_of, load
from lightspeed_models.simulators.network_simulation import DCQCN, Port, Senders, simulate_incast
from lightspeed_show import (
    Axis,
    Bars,
    Chart,
    Choice,
    Formula,
    Line,
    LogSlider,
    Rule,
    Slider,
    Text,
    View,
    explorer,
    si,
)

CONTROLS = ("nothing", "pauses", "marks", "marks and pauses")
LINKS = ("ethernet_100g", "ethernet_400g")
DELAY = 1e-6  # s, one way: some hundred metres of fibre and a switch
PACKET = 4096.0
# 4.096 us x 2^n, as InfiniBand counts; the last is a driver's default
TIMERS = tuple(float(number("roce.timeout_unit")) * 2**n for n in (6, 8, 16))
SAME = 1e-3  # of a time: less is not told apart


# ---------------------------------------------------------------- incast


def thresholds(senders, line, buffer):
    """(Kmin, Kmax, Pmax) of the DCQCN paper, in proportion to the line, and the queue from which
    the port pauses so that what is on its way still fits; None if nothing is left.
    """
    paper = find("dcqcn")
    scale = line / paper.line
    marks = (float(paper.kmin * scale), float(paper.kmax * scale), float(paper.pmax))
    room = buffer - senders * net.pfc_headroom(line, DELAY, PACKET)
    return marks, float(room) if room > 2 * PACKET else None


@functools.lru_cache(maxsize=2048)
def run(senders, burst, link_key, buffer, control, timer, until=INF):
    """The `Incast` of one setting, up to a time (s); the same luck for all of them."""
    line = float(link(link_key).bandwidth)
    marks, pause = thresholds(senders, line, buffer)
    port = Port(
        line,
        buffer,
        marks if "marks" in control else None,
        pause if "pauses" in control else None,
        DELAY,
        PACKET,
    )
    slows = DCQCN() if "marks" in control else None
    resends = Senders(senders, burst, control=slows, resend="go_back_n", timeout=timer)
    return simulate_incast(resends, port, Random(8), until)


def view(senders, burst, link_key, buffer, control, timer):
    """Show `senders` that send `burst` bytes each through one port at the same moment."""
    line = float(link(link_key).bandwidth)
    marks, pause = thresholds(senders, line, buffer)
    runs = {name: run(senders, burst, link_key, buffer, name, timer) for name in CONTROLS}
    here = runs[control]
    ideal = net.incast_time(senders, burst, line) + 2 * DELAY
    uncontrolled = net.incast_queue(senders, burst, line, line)
    facts = {
        "sent in all": si(senders * burst, "byte"),
        "queue if nothing slows it": si(uncontrolled, "byte"),
        "longest queue": si(here.longest_queue, "byte"),
        "lost": f"{here.lost:,} of {here.sent:,} packets",
        "marked": si(here.marked / here.sent, "%", 2),
        "senders stand still": si(here.paused, "%", 2),
        "the link alone needs": si(ideal, "s"),
        "it took": si(here.end, "s"),
        "senders that fit at once": f"{int(net.incast_senders(buffer, burst)):,}",
    }
    words = [what_happened(here, control, pause), how_long(here, ideal), ranking(runs)]
    return View(
        [queue_chart(here, marks, pause, buffer, control), end_chart(runs, ideal, control)],
        " ".join(words),
        facts,
        formula=Formula(
            "the link alone",
            "senders * burst / rate + 2 * delay",
            {
                "senders": (senders, ""),
                "burst": (burst, "byte"),
                "rate": (line, "byte/s"),
                "delay": (DELAY, "s"),
            },
            (ideal, "s"),
        ),
    )


def what_happened(here, control, pause):
    """Describe the losses, pauses and marks of this run."""
    if "pauses" in control and pause is None:
        losses = f" {here.lost:,} packets were lost." if here.lost else ""
        return f"The headroom for so many senders fills the buffer: it cannot pause.{losses}"
    if here.lost:
        return (
            f"{here.lost:,} packets found the buffer full; they, and what came after them, were"
            " sent again."
        )
    if here.pauses:
        return (
            f"Nothing was lost: the port stopped its senders {times(here.pauses)}, for"
            f" {si(here.paused, '%', 2)} of the time."
        )
    return "Nothing was lost: the buffer held what came."


def how_long(here, ideal):
    """Compare the end of the run with the link's minimum."""
    late = here.end / ideal - 1
    if late < 0.02:
        return "It took as long as the link takes."
    if here.timeouts:
        return (
            f"It took {here.end / ideal:.3g} times what the link needs: the last packet of a burst"
            " was lost, nothing came after it to show the gap, and a timer had to ring, "
            f"{times(here.timeouts)}."
        )
    return f"It took {si(late, '%', 2)} longer than the link needs."


def times(n):
    """Return a number of times in words."""
    return "once" if n == 1 else f"{n:,} times"


def ranking(runs):
    """Return which setting ends first, and which keeps the queue shortest."""
    first = min(run.end for run in runs.values())
    short = min(run.longest_queue for run in runs.values())
    soonest = [name for name, run in runs.items() if run.end <= first * (1 + SAME)]
    shortest = [name for name, run in runs.items() if run.longest_queue <= short * (1 + SAME)]
    return (
        f"Of the four settings, first done: {quoted(soonest)}; shortest queue: {quoted(shortest)}."
    )


def quoted(names):
    """Quote names that may contain "and" themselves."""
    return ", ".join(f"“{name}”" for name in names)


def queue_chart(here, marks, pause, buffer, control):
    times, queues = zip(*here.samples, strict=True)
    rules = [Rule(y=buffer, label="buffer full")]
    if "marks" in control:
        rules.append(Rule(y=marks[1], label="Kmax", color="purple"))
    if "pauses" in control and pause is not None:
        rules.append(Rule(y=pause, label="pause", color="orange"))
    return Chart(
        Axis("time", "s", domain=(0, here.end)),
        Axis("queue at the port", "byte", domain=(0, 1.1 * buffer)),
        [Line(times, queues, "", "blue"), *rules],
        title="The queue",
        height=245,
    )


def end_chart(runs, ideal, control):
    names = list(runs)
    return Chart(
        Axis(
            "until the last byte; dashed: the link alone",
            "s",
            domain=(0, 1.25 * max(run.end for run in runs.values())),
        ),
        Axis(scale="category", categories=tuple(names)),
        [
            Bars(
                [name],
                [runs[name].end],
                label="",
                labels=[si(runs[name].end, "s")],
                color="blue" if name == control else "grey",
            )
            for name in names
        ]
        + [Rule(x=ideal, color="green")],
        title="When it is done",
        height=245,
    )


def rate(key):
    """A link by its rate; its name is longer than the menu is wide."""
    return f"Ethernet, {si(8 * link(key).bandwidth, 'bit/s')}"


def explore():
    """Explore many senders into one port, in chapter 8."""
    return explorer(
        view,
        [
            Choice("control", "what slows the senders", list(CONTROLS)),
            LogSlider("senders", "senders", 2, 32, 16, base=2, whole=True),
            LogSlider("burst", "each sends", 16384, 262144, 262144, base=2, unit="byte"),
            Choice("link_key", "link", {rate(key): key for key in LINKS}, LINKS[1]),
            Choice("timer", "timer of the senders", {si(t, "s"): t for t in TIMERS}, TIMERS[1]),
            LogSlider("buffer", "buffer of the port", 5e5, 3.2e7, 2e6, base=2, unit="byte"),
        ],
        caption=(
            "Start with nothing, and let the buffer run over. Then try pauses, then marks, and"
            " watch what each of them costs."
        ),
        alt=(
            "Left, the queue at the receiver's port over time, with lines for a full buffer and"
            " for the thresholds. Right, a bar for each way of slowing the senders, as long as it"
            " takes until the last byte is through."
        ),
    )


# ---------------------------------------------------------------- a job on a fabric

PLACES = ("packed", "scattered")
ROUTES = {"one connection": ("hash", 1), "four connections": ("hash", 4), "spread": ("spread", 1)}
SIZE = 1e9  # bytes that each GPU sends to other nodes
PODS, POD_NODES, PER_NODE = 4, 4, 8


@functools.lru_cache(maxsize=4096)
def carried(design, traffic, place, nodes, oversubscription, route):
    """The `Load` of one choice of the menus; places and hashes are drawn once and for all."""
    fabric = Fabric(
        PODS, POD_NODES, PER_NODE, spines=4, oversubscription=oversubscription, design=design
    )
    scattered = place == "scattered"
    order = Random(21).sample(range(fabric.nodes), nodes) if scattered else range(nodes)
    routing, parts = ROUTES[route]
    return load(fabric, flows_of(traffic, order, PER_NODE, SIZE), routing, Random(8), parts)


def fabric_view(design, traffic, place, nodes, oversubscription, route):
    """A collective on `nodes` nodes: what each link carries, and which one it waits for."""
    here = carried(design, traffic, place, nodes, oversubscription, route)
    alone = SIZE / here.fabric.bandwidth
    every = {
        (d, p, r): carried(d, traffic, p, nodes, oversubscription, r).time
        for d in DESIGNS
        for p in PLACES
        for r in ROUTES
    }
    best = min(every.values())
    share = here.spine / (here.spine + here.leaf)
    facts = {
        "its adapters need": si(alone, "s"),
        "it takes": si(here.time, "s"),
        "crosses a spine": si(share, "%", 2),
        "fullest link": named(here),
        "links in use": f"{len(here.bytes):,}",
    }
    return View(
        [link_chart(here), spine_chart(design, place, nodes, oversubscription, route, traffic)],
        f"{wait(here, alone)} {si(share, '%', 2)} of the bytes cross a spine.",
        facts,
        advice=best_of(every, best, here.time),
        formula=Formula(
            "time",
            "bytes / rate",
            {
                "bytes": (here.bytes[here.fullest], "byte"),
                "rate": (here.fabric.capacity(here.fullest), "byte/s"),
            },
            (here.time, "s"),
        ),
    )


def named(fabric):
    """The link that a job waits for, in words."""
    kind, a, b = fabric.fullest
    names = {"out": "an adapter", "in": "an adapter", "up": "a link up", "down": "a link down"}
    where = f"leaf {a}, spine {b}" if kind in ("up", "down") else f"node {a}, GPU {b}"
    return f"{names[kind]} ({where})"


def wait(fabric, alone):
    """Whether the fabric is in the way."""
    ratio = fabric.time / alone
    if ratio <= 1 + SAME:
        return "The job waits for its own adapters: the fabric is not in its way."
    return f"The job waits for {named(fabric)}, {ratio:.3g} times as long as for its adapters."


def best_of(every, best, time):
    """Return the fastest choice of design, place and route among all."""
    if time <= best * (1 + SAME):
        return "No other design, place or route of the menus is faster."
    design, place, route = next(c for c, t in every.items() if t <= best * (1 + SAME))
    return (
        f"Of all designs, places and routes, the fastest takes {si(best, 's')}: {design}, {place},"
        f" {route}."
    )


def link_chart(here):
    """The fabric itself: each pair of leaf and spine by the busier of its two directions, the GPUs
    below each leaf by their busiest adapter, and the link that the job waits for.
    """
    fabric, alone = here.fabric, SIZE / here.fabric.bandwidth
    leaves = range(fabric.pods * fabric.per_node)
    middle = [(n + 0.5) * len(leaves) / fabric.spines for n in range(fabric.spines)]

    def look(links):
        """(width, color) of the busiest of these links."""
        own = [link for link in links if link in here.bytes]
        busy = max(map(here.seconds, own), default=0.0)
        if here.fullest in own:
            return 4, "purple"
        return (1.5, "orange" if busy > alone * (1 + SAME) else "blue") if busy else (0.5, "grey")

    hanging = {leaf: [] for leaf in leaves}
    for node in range(fabric.nodes):
        for gpu in range(fabric.per_node):
            hanging[fabric.leaf((node, gpu))] += [("out", node, gpu), ("in", node, gpu)]
    lines = [(look(links), leaf + 0.5, 0.3, leaf + 0.5, 1) for leaf, links in hanging.items()]
    lines += [
        (look([("up", leaf, n), ("down", leaf, n)]), leaf + 0.5, 1, x, 3)
        for leaf in leaves
        for n, x in enumerate(middle)
    ]
    lines.sort(key=lambda line: line[0][0])  # the busiest last, on top of the others
    marks = [Line([a, c], [b, d], "", look[1], width=look[0]) for look, a, b, c, d in lines]
    marks += [Text(x, 3.25, f"spine {n}", "grey") for n, x in enumerate(middle)]
    pods = range(fabric.pods)
    marks += [Text(fabric.per_node * (n + 0.5), -0.2, f"leaves of pod {n}", "grey") for n in pods]
    return Chart(
        Axis(domain=(0, len(leaves))),
        Axis(domain=(-0.5, 3.6)),
        marks,
        title="Which link is full?",
        height=245,
        bare=True,
    )


def spine_chart(design, place, nodes, oversubscription, route, traffic):
    """The share of each kind of traffic that crosses a spine, at this place."""
    shares = []
    for kind in TRAFFIC:
        load = carried(design, kind, place, nodes, oversubscription, route)
        shares.append(load.spine / (load.spine + load.leaf))
    return Chart(
        Axis("of the bytes between nodes", "%", domain=(0, 1.2), ticks=(0, 0.25, 0.5, 0.75, 1)),
        Axis(scale="category", categories=TRAFFIC),
        [
            Bars(
                [kind],
                [share],
                labels=[si(share, "%", 2)],
                color="blue" if kind == traffic else "grey",
            )
            for kind, share in zip(TRAFFIC, shares, strict=True)
        ],
        title="What crosses a spine",
        height=245,
    )


def explore_fabric():
    """The second explorer of chapter 8."""
    return explorer(
        fabric_view,
        [
            Choice("design", "leaves by", {"rail": "rail", "rack": "rack"}),
            Choice("traffic", "traffic", list(TRAFFIC), "crossed ring"),
            Choice("place", "nodes of the job", list(PLACES)),
            Slider("nodes", "nodes", 2, 12, 8, step=2),
            Choice("oversubscription", "oversubscription", {"1:1": 1, "2:1": 2, "4:1": 4}),
            Choice("route", "routing", list(ROUTES)),
        ],
        caption=(
            "Sixteen nodes of eight GPUs, four to a pod. A link is blue if it is no fuller than an"
            " adapter, orange if it is, and purple if all wait for it. Mend the ring, scatter the"
            " job, take links away, and find out which of them it notices."
        ),
        alt=(
            "Left, leaves below and spines above, a line for each link: grey if it carries nothing,"
            " blue if it is no fuller than an adapter, orange if it is, purple and wide if all wait"
            " for it. Right, the share of each kind of traffic that crosses a spine."
        ),
    )
