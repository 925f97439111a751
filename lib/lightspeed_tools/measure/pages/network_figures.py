"""What chapters 6 and 7 show of their own measurements: collectives, an emulated network and a
split MLP beside the laws.

Each function takes a record and shows one table or figure, or says in words what the record does
not have or what cannot be concluded from it (see `drawn`).
"""

import statistics

from lightspeed.collectives import busbw, ring_time
from lightspeed_show import Axis, Chart, Line, Points, Rule, figure, si, table
from lightspeed_tools.measure.instruments import collectives, network, split_mlp
from lightspeed_tools.measure.instruments.launch import turns
from lightspeed_tools.measure.instruments.timing import LIMIT, spread
from lightspeed_tools.measure.pages.record_tables import about
from lightspeed_tools.measure.pages.scaling_figures import _or_words
from lightspeed_tools.measure.records.record import NotMeasured, all_of

LOOKS = {
    "all_reduce": ("blue", "circle"),
    "all_gather": ("green", "square"),
    "reduce_scatter": ("purple", "triangle"),
    "alltoall": ("orange", "diamond"),
    "sendrecv": ("grey", "circle"),
}
WAYS = {"ring": ("blue", "circle"), "tree": ("orange", "square")}
SPLITS = {"tensor": ("blue", "circle"), "data": ("orange", "square")}
NOISY = f"Crosses scatter by more than {LIMIT:.0%} and prove nothing."


def _marked(rows, color, marker, label):
    """Points of (x, y, steady) rows: those that are not steady as crosses."""
    groups = [
        ([(x, y) for x, y, steady in rows if steady is kind], look, text)
        for kind, look, text in ((True, marker, label), (False, "cross", ""))
    ]
    return [
        Points([x for x, _ in points], [y for _, y in points], text, color=color, marker=look)
        for points, look, text in groups
        if points
    ]


# ---------------------------------------------------------------- chapter 7: processes


@_or_words
def collectives_figure(shown, found):
    """Busbw over message size of every collective that was measured."""
    run, charts = collectives.run_in(shown), []
    for names in (("sendrecv", "all_reduce"), ("all_gather", "reduce_scatter", "alltoall")):
        marks = []
        for name in names:
            rows = [
                (
                    r["size"],
                    busbw(name, run.ranks, r["size"] / statistics.median(r["samples"])),
                    spread(r["samples"]) <= LIMIT,
                )
                for r in run.rows
                if r["collective"] == name
            ]
            if rows:
                color, marker = LOOKS[name]
                marks += [
                    Line(
                        [x for x, *_ in rows],
                        [y for _, y, _ in rows],
                        name.replace("_", "-"),
                        color,
                    ),
                    *_marked(rows, color, marker, ""),
                ]
        if marks:
            charts.append(
                Chart(
                    Axis("message", "byte", "log", domain=(4, 5e8)),
                    Axis("busbw", "byte/s", "log"),
                    marks,
                    height=230,
                )
            )
    figure(
        charts,
        caption=" ".join(
            filter(
                None,
                (
                    f"{run.ranks} processes.",
                    turns(run.ranks, shown["machine"].get("cores")),
                    NOISY,
                    about(shown),
                ),
            )
        ),
        alt=(
            f"Busbw of {len(LOOKS)} collectives over message size on logarithmic axes, rising with"
            " the size at first."
        ),
    )


@_or_words
def collectives_table(shown, found):
    """All-reduce by size beside a ring that is computed from the shift to the neighbour alone."""
    run = collectives.run_in(shown)
    times = {
        name: [
            (r["size"], statistics.median(r["samples"]))
            for r in run.rows
            if r["collective"] == name and spread(r["samples"]) <= LIMIT
        ]
        for name in ("sendrecv", "all_reduce")
    }
    if len(times["sendrecv"]) < 3:
        print(
            f"{about(shown)} The shift to the neighbour scatters too much to compute anything"
            " from it."
        )
        return
    if not times["all_reduce"]:
        print(f"{about(shown)} The all-reduce scatters too much at each size to stand in a table.")
        return
    fit = collectives.neighbour_fit(times["sendrecv"])
    rows = []
    for size, time in times["all_reduce"]:
        law = ring_time(float(size), run.ranks, fit.bandwidth, fit.latency)
        rows.append(
            [
                si(float(size), "byte"),
                si(time, "s"),
                si(size / time, "byte/s"),
                si(busbw("all_reduce", run.ranks, size / time), "byte/s"),
                si(law, "s"),
                f"{time / law:.2f}",
            ]
        )
    columns = [
        "message",
        "all-reduce",
        "algbw",
        "busbw",
        "ring, computed",
        "measured over computed",
    ]
    table(
        rows,
        columns,
        f"{run.ranks} processes. The ring has α {si(fit.latency, 's', 2)} and W"
        f" {si(fit.bandwidth, 'byte/s', 2)}, from the shift to the neighbour. {about(shown)}",
    )


@_or_words
def collectives_findings(shown, found):
    """What the times say about alpha, bandwidth and algorithm, in sentences."""
    print(" ".join(collectives.conclusions(collectives.run_in(shown))))


# ---------------------------------------------------------------- chapter 7: emulated nodes


def _foretold(shown):
    """(alpha, W): of the small ring over two nodes, and the links' given rate; NotMeasured."""
    two = [q for q in all_of(shown, "network.ring", nodes=2)]
    if not two:
        raise NotMeasured("no ring over two nodes")
    small = min(two, key=lambda q: q.parameters["size"])
    rate = small.parameters["rate"]
    return (small.value - ring_time(float(small.parameters["size"]), 2, rate)) / 2, rate


@_or_words
def network_figure(shown, found):
    """Time over nodes, small and large message: ring and tree, and laws told from two nodes."""
    alpha, rate = _foretold(shown)
    charts, nodes = [], sorted({q.parameters["nodes"] for q in all_of(shown, "network.ring")})
    sizes = sorted({q.parameters["size"] for q in all_of(shown, "network.ring")})
    for size in (sizes[0], sizes[-1]):
        marks = []
        for way, (color, marker) in WAYS.items():
            marks.append(
                Line(
                    nodes,
                    [network.LAWS[way](float(size), n, rate, max(alpha, 0.0)) for n in nodes],
                    f"{way}, law",
                    color,
                    dash=way == "tree",
                )
            )
            rows = [
                (q.parameters["nodes"], q.value, q.trusted)
                for q in all_of(shown, f"network.{way}", size=size)
            ]
            marks += _marked(rows, color, marker, "")
        charts.append(
            Chart(
                Axis("nodes", "", ticks=nodes),
                Axis("time", "s"),
                marks,
                title=f"{way_of(size)} of {si(float(size), 'byte')}",
                height=230,
            )
        )
    figure(
        charts,
        caption=(
            f"Links of {si(8 * rate, 'bit/s')} a direction. Lines: α of the small ring over two"
            f" nodes and the links' own rate; nothing else is fitted. {NOISY} {about(shown)}"
        ),
        alt=(
            "Two charts of time over the number of nodes. For the small message the ring rises in a"
            " straight line and the tree in steps; for the large one the ring levels off and the"
            " tree climbs."
        ),
    )


def way_of(size):
    """What a message of so many bytes shows."""
    return "Steps: a message" if size <= collectives.SMALL else "Bytes: a message"


@_or_words
def network_findings(shown, found):
    """The fit over all nodes and sizes, and what the links carried, in sentences."""
    rate = _foretold(shown)[1]
    for way in WAYS:
        try:
            effect = network.node_effect(shown, way)
        except NotMeasured as error:
            print(f"No conclusion: {error}.")
            continue
        worst = max(max(time / law, law / time) for *_, time, law in effect.rows)
        alpha = (
            f"alpha is {si(effect.alpha, 's', 2)} a step"
            if effect.alpha
            else "alpha is too small to tell beside the time of the bytes"
        )
        print(
            f"{way.capitalize()}: fitted to all times that are steady, {alpha}, and W is"
            f" {si(effect.bandwidth, 'byte/s', 3)}, {effect.bandwidth / rate:.0%} of the links'"
            f" rate; single times are off by up to a factor of {worst:.2f}."
        )


# ---------------------------------------------------------------- chapter 6


@_or_words
def split_figure(shown, found):
    """Speedup of two processes over one by tokens, both splits: predicted and measured."""
    parts, marks = split_mlp.splits(shown), [Rule(y=1, label="as fast as one")]
    for way, (color, marker) in SPLITS.items():
        mine = [s for s in parts if s.way == way]
        if mine:
            marks.append(
                Line(
                    [s.tokens for s in mine],
                    [s.predicted_speedup for s in mine],
                    f"{way}, predicted",
                    color,
                    dash=True,
                )
            )
            marks += _marked([(s.tokens, s.speedup, s.steady) for s in mine], color, marker, "")
    if not parts:
        raise NotMeasured("this record has no split")
    tokens = [s.tokens for s in parts]
    figure(  # lines that end at the frame have their labels beside it, apart from each other
        Chart(
            Axis("tokens of the step", "", "log", domain=(min(tokens) / 1.2, max(tokens) * 1.05)),
            Axis("times faster than one process", "", domain=(0, 2.2)),
            marks,
            height=300,
        ),
        caption=(
            f"An MLP on {split_mlp.RANKS} processes, split two ways. Dashed: from this machine's"
            f" own peak and all-reduce. {NOISY} {about(shown)}"
        ),
        alt=(
            "Speedup over tokens. The split of tensors is flat by prediction; that of data begins"
            " below one and rises with the tokens."
        ),
    )


@_or_words
def split_table(shown, found):
    """Seconds predicted and measured for both ways to split, and what the prediction is made of."""
    rows = [
        [
            s.way,
            s.tokens,
            si(s.compute, "s"),
            si(s.send, "s"),
            si(s.predicted, "s"),
            si(s.time, "s"),
            f"{s.time / s.predicted:.2f}" if s.steady else "too noisy to say",
        ]
        for s in split_mlp.splits(shown)
    ]
    table(
        rows,
        [
            "split",
            "tokens",
            "compute",
            "all-reduce",
            "predicted",
            "measured",
            "measured over predicted",
        ],
        f"Compute and then send, without overlap. {about(shown)}",
    )
