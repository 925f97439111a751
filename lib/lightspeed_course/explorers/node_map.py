"""Chapter 6: the groups of a GPU on a map of 64, what it sends to each, and how near they are."""

from functools import cache
from math import prod

from lightspeed.parallel import data_parallel_bytes, pipeline_bytes, tensor_parallel_bytes
from lightspeed.roofline import transfer_time
from lightspeed_models.llm import decoder
from lightspeed_models.plan import Plan, machine, spans
from lightspeed_models.training_runs import fit_share
from lightspeed_models.training_step import step
from lightspeed_show import Axis, Boxes, Chart, Choice, Slider, Text, View, explorer, si

MODEL, SEQUENCE, PER_NODE = decoder("llama3_70b"), 2048, 8
CLUSTER = machine("h100_sxm", "ethernet_100g", PER_NODE, fit_share())
ORDERS = {
    "tensor first": ("tensor", "context", "data", "pipeline"),
    "pipeline first": ("pipeline", "context", "data", "tensor"),
}
COLORS = {"tensor": "blue", "pipeline": "orange", "data": "green"}
ACROSS = 4  # nodes in a row, and GPUs in a row of a node


@cache
def plan(order):
    """The job's better split: the groups' sizes stay, and only who sits where changes."""
    return Plan(2, 8, 4, micro_batches=256, stage=1, placement=ORDERS[order])


def strides(order):
    """Ranks from one member of a group to its next, by axis."""
    axes = ORDERS[order]
    sizes = [getattr(plan(order), axis) for axis in axes]
    return {axis: prod(sizes[:i]) for i, axis in enumerate(axes)}


def group(gpu, axis, order):
    """The ranks that share this axis with a GPU, itself among them."""
    stride, size = strides(order)[axis], getattr(plan(order), axis)
    first = gpu - gpu // stride % size * stride
    return [first + k * stride for k in range(size)]


def traffic(order):
    """axis: (bytes that a GPU sends in a step, the rate of the slowest link on their way)."""
    here = plan(order)
    tokens, layers = here.micro_batches * SEQUENCE, MODEL.depth // here.pipeline
    share = MODEL.parameters / here.tensor / here.pipeline
    traffic_of = {
        "tensor": tensor_parallel_bytes(tokens, MODEL.width, here.tensor, layers),
        "pipeline": pipeline_bytes(tokens, MODEL.width) / here.tensor,
        "data": data_parallel_bytes(share, here.data, here.stage),
    }
    rates = {axis: CLUSTER.network if spans(here, PER_NODE, axis) else CLUSTER.link
             for axis in traffic_of}  # fmt: skip
    return {axis: (size, rates[axis]) for axis, size in traffic_of.items()}


@cache
def whole_step(order):
    """Seconds of a step."""
    return step(MODEL, SEQUENCE, plan(order), CLUSTER).time


def square(rank):
    """(x1, x2, y1, y2) of a GPU on the map."""
    node, place = divmod(rank, PER_NODE)
    x = node % ACROSS * 4.6 + place % ACROSS
    y = 5.2 - node // ACROSS * 3.2 - place // ACROSS
    return x + 0.08, x + 0.92, y - 0.92, y - 0.08


def nodes_of(count):
    return "one node" if count == 1 else f"{count} nodes"


def view(gpu, order):
    """A GPU, and those that it sends to, by what for."""
    flows = traffic(order)
    groups = {axis: group(gpu, axis, order) for axis in COLORS}
    nodes = [(*square(n * PER_NODE), square(n * PER_NODE + PER_NODE - 1)) for n in range(8)]
    frames = [(a - 0.15, end[1] + 0.15, end[2] - 0.15, d + 0.15) for a, _, _, d, end in nodes]
    marks = [Boxes(*zip(*frames, strict=True), color="grey", soft=True)]
    partners = {gpu, *(rank for members in groups.values() for rank in members)}
    rest = [square(rank) for rank in range(64) if rank not in partners]
    marks.append(Boxes(*zip(*rest, strict=True), color="grey", soft=True))
    for axis, color in COLORS.items():
        squares = [square(rank) for rank in groups[axis] if rank != gpu]
        marks.append(Boxes(*zip(*squares, strict=True), f"its {axis} group", color=color))
    marks.append(Boxes(*([side] for side in square(gpu)), "this GPU", color="black"))
    marks += [Text((a + b) / 2, top + 0.28, f"node {n}", "grey")
              for n, (a, b, _, top) in enumerate(frames)]  # fmt: skip
    spread = {axis: len({rank // PER_NODE for rank in members}) for axis, members in groups.items()}
    facts = {
        f"its {axis} group": f"{len(groups[axis])} GPUs in {nodes_of(spread[axis])},"
        f" {si(size, 'byte')} a step"
        for axis, (size, _) in flows.items()
    }
    size, rate = flows["tensor"]
    near = "NVLink" if spread["tensor"] == 1 else "its port"
    verdict = (
        f"Its tensor group, in {nodes_of(spread['tensor'])}, gets {si(size, 'byte')} a step by"
        f" {near}: {si(transfer_time(size, rate), 's')} of a step of"
        f" {si(whole_step(order), 's')}."
    )
    chart = Chart(Axis(domain=(-0.3, 18.1)), Axis(domain=(-0.3, 6.0)), marks, height=290, bare=True)
    return View(chart, verdict, facts)


def explore_map():
    """Who works with whom among 64 GPUs."""
    return explorer(
        view,
        [
            Slider("gpu", "GPU", 0, 63, 10),
            Choice("order", "ranks are numbered", list(ORDERS)),
        ],
        caption=(
            "Eight nodes of eight GPUs: tensor parallel over eight, a pipeline of four stages, two"
            " replicas. Coloured are the groups of the black GPU."
        ),
        alt=(
            "Eight nodes with eight squares each. Around the black square its tensor group fills"
            " its node; its pipeline group and its data group sit at the same place of other nodes."
        ),
    )
