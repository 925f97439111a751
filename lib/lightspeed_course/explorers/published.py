"""What others measured, under the curves of an explorer: rows of the state that it shows, or none.

The rows are a thinned part of the evidence; `evidence/samplers/explorers.py` writes them. Each
function gives (marks, words): dots whose hover text is the row, and a sentence with their source.
"""

import functools
import json
from importlib.resources import files

from lightspeed.catalog import accelerator
from lightspeed.collectives import algbw, busbw
from lightspeed.roofline import WIDTH, arithmetic_intensity, matmul_bytes, matmul_flops
from lightspeed_show import Points, si

NONE = "No measured rows for this state."


@functools.cache
def rows():
    """The file, with its sources."""
    return json.loads(files(__package__).joinpath("published.json").read_text("utf-8"))


def source(name):
    row = rows()["sources"][name]
    return f"{row['attribution']} ({row['repository']})"


def dots(rows, x, y, what):
    """Dots of the rows (x, y, text) that lie on axes with these ends, and how many of what."""
    rows = [r for r in rows if x[0] <= r[0] <= x[1] and y[0] <= r[1] <= y[1]]
    if not rows:
        return (), NONE
    xs, ys, tips = zip(*rows, strict=True)
    marks = (Points(xs, ys, color="grey", size=2.5, tips=tips, soft=True),)
    return marks, f"Grey dots: {len(rows)} {what}"


@functools.lru_cache(maxsize=64)
def products(chip, weights, activations, compute, x, y):
    """Products on this chip in these formats: FLOP/s over intensity."""
    there = rows()["gemm"].get(chip, {}).get(f"{weights} {activations} {compute}")
    if there is None:
        return (), NONE
    points = []
    for m, k, n, time, how in there["rows"]:
        flops = matmul_flops(m, k, n)
        # The collectors write results in two bytes, whatever goes in.
        size = matmul_bytes(m, k, n, WIDTH[weights], WIDTH[activations], WIDTH["bf16"])
        text = f"measured: {m:,} × {k:,} × {n:,} in {si(time, 's')}\n{how}"
        points.append((arithmetic_intensity(flops, size), flops / time, text))
    what = (
        f"of {there['of']:,} products measured on this chip in these formats,"
        f" with results in bf16, whatever their B, D and F. Source: {source('gemm')}."
    )
    return dots(points, x, y, what)


@functools.lru_cache(maxsize=64)
def collectives(collective, per_node, nodes, inside, network, line, x, y):
    """Busbw over the line rate, over the size of the message: as NCCL chose to run it."""
    # Here, so that a page with a roofline alone does not wait for it.
    from lightspeed_models.nccl_fit import FABRICS, measurements

    n, points, by, keys = per_node * nodes, [], [], set()

    def add(size, time, how):
        if (size, si(time, "s")) in keys:  # a row that both sets have
            return
        keys.add((size, si(time, "s")))
        rate = busbw(collective, n, algbw(size, time))
        text = (
            f"measured: {si(size, 'byte')} in {si(time, 's')},\nbusbw {si(rate, 'byte/s')}; {how}"
        )
        points.append((size, rate / line, text))

    if nodes == 1:
        ranks = rows()["nccl"].get(inside, {}).get(collective, {}).get(str(n), {})
        for chip, there in ranks.items():
            for size, time in there["rows"]:
                add(size, time, f"{accelerator(chip).name}, NCCL {there['library']}")
        by += [source("nccl")] * bool(ranks)
    own = [r for r in measurements() if (r.collective, r.nodes, r.n) == (collective, nodes, n)]
    own = [r for r in own if joined(FABRICS[r.fabric], inside, network, nodes)]
    for row in own:
        add(row.size, row.time, FABRICS[row.fabric].name)
    by += ["the published runs of this chapter"] * bool(own)
    what = (
        f"runs measured over these links and ranks, with the algorithm that NCCL"
        f" chose. Source: {' and '.join(by)}."
    )
    return dots(points, x, y, what)


def joined(fabric, inside, network, nodes):
    """Whether a fabric has these links."""
    across = nodes == 1 or fabric.network.partition(".")[0] == network
    return fabric.inside == f"{inside}.bandwidth" and across


@functools.lru_cache(maxsize=64)
def serving(chip, chips, model, weights, x, y):
    """Throughput of a replica over the time of a token, with the prompts of a benchmark."""
    there = rows()["serving_energy"].get(chip, {}).get(model, {}).get(str(chips), [])
    if weights != "bf16":
        there = []
    points = [
        (time, rate, f"measured: batch {batch:,.0f}, {si(time, 's')} a token,\n"
         f"answers of {tokens:,.0f} tokens; {task}")
        for time, rate, batch, tokens, task in there
    ]  # fmt: skip
    what = (
        f"batches of this model measured on so many of these chips, with the"
        f" prompts and answers of a benchmark. Source: {source('serving_energy')}."
    )
    return dots(points, x, y, what)
