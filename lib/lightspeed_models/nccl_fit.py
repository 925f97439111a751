"""NCCL as measured: published rows, and a model fitted to some of them and tested on the others.
Used in chapter 7.

The model is a pipeline (`lightspeed.collectives.overlapped_time`): NCCL's own LL latency times a
factor, joined to the bytes on the busiest link over a bandwidth. Factor and bandwidth are fitted
for each fabric and path, the exponent of the join once for all. Which rows were fitted is in
catalog/measured_nccl.toml.
"""

import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lightspeed.catalog import fitted, measured, number
from lightspeed.collectives import (
    COLLECTIVES,
    RANKS,
    RINGS,
    SIZE,
    busbw_factor,
    nvls_time,
    overlapped_time,
)
from lightspeed.errors import BadArgument, one_of
from lightspeed.law import checked, count
from lightspeed_models.fits import AlphaBeta, fit_alpha_beta
from lightspeed_models.nccl_tuner import NET_OVERHEAD, nvls_latency, ring_latency

PATHS = ("ring", "in_network", "alltoall")


@dataclass(frozen=True)
class Fabric:
    """A node and what joins it: catalog keys of the rate `inside` (of a GPU) and of the `network`
    (of a node, `links` times).

    A fit belongs to a link; `like` is the link whose fit stands in, scaled, where none was fitted.
    NCCL uses the switch's adders from `in_network_from` GPUs of a node on.
    """

    name: str
    inside: str
    network: str = ""
    links: int = 1
    like: str = ""
    in_network_from: float = math.inf

    def link(self, nodes: int, path: str = "ring") -> str:
        """The key of the link that bounds a collective; two nodes with adding switches: inside."""
        return self.network if nodes > 1 and path != "in_network" else self.inside

    def rate(self, nodes: int, path: str = "ring") -> float:
        """The line rate (byte/s, one direction) of that link: what a busbw is compared with."""
        link = self.link(nodes, path)
        return float(number(link) * (self.links if link == self.network else 1))


NVLINK4, NVLINK5, EFA = "nvlink4.bandwidth", "nvlink5.bandwidth", "efa_p5.bandwidth_per_node"
# NCCL charges a step by the CPU of the hosts. The one network fitted is that of the p5, which has
# AMD EPYC 7R13; where its fit stands in for another network, so do its hosts.
HOSTS = "amd"
FABRICS = {
    "a100": Fabric("8 A100 SXM, NVLink 3", "nvlink3.bandwidth"),
    "h100": Fabric("8 H100 SXM, NVLink 4", NVLINK4, in_network_from=5),
    "h200": Fabric("8 H200 SXM, NVLink 4", NVLINK4, in_network_from=5),
    "b200": Fabric("8 B200, NVLink 5", NVLINK5, in_network_from=6),
    "p5": Fabric("p5: 8 H100 a node, EFA", NVLINK4, EFA, in_network_from=5),
    "p6": Fabric("p6-b200: 8 B200 a node, EFA", NVLINK5, EFA, in_network_from=6),
    "p4d": Fabric(
        "p4d: 8 A100 a node, EFA", "nvlink3.bandwidth", "ethernet_100g.bandwidth", links=4, like=EFA
    ),
    "mi300x_pair": Fabric(
        "2 MI300X, one xGMI link", "xgmi_mi300x.bandwidth_per_link", like=NVLINK4
    ),
}


@dataclass(frozen=True)
class Row:
    """A measured collective: `size` in bytes, `time` in s, `fitted` if it set parameters."""

    series: str
    fabric: str
    collective: str
    path: str
    nodes: int
    n: int
    size: int
    time: float
    fitted: bool


@functools.cache
def measurements() -> tuple[Row, ...]:
    """Every measured `Row` of catalog/measured_nccl.toml."""
    series = {name: table for name, table in _tables().items() if name not in ("sources", "shares")}
    return tuple(row for name, table in series.items() for row in _rows(name, table))


@functools.cache
def _tables() -> dict[str, Any]:
    return measured("nccl")


def measured_share(link: str) -> float:
    """The share of the line rate of a link (a catalog key) that a large collective reached.

    >>> measured_share("ici_v5e")
    0.82
    """
    shares = _tables()["shares"]
    return float(shares[one_of("measured_share", "link", link, tuple(shares))]["value"])


def _rows(name: str, table: dict[str, Any]) -> Iterator[Row]:
    grid = (
        (int(k), int(k) * table["ranks_per_node"], s, v)
        for k, vs in table.get("values", {}).items()
        for s, v in zip(table["sizes"], vs, strict=True)
    )
    for nodes, n, size, value in (*table.get("rows", ()), *grid):
        factor = busbw_factor(table["collective"], n) if table["unit"] == "busbw GB/s" else 1
        time = value * 1e-6 if table["unit"] == "us" else size / (value * 1e9 / factor)
        fitted = nodes in table.get("fit", ())
        yield Row(
            name, table["fabric"], table["collective"], table["path"], nodes, n, size, time, fitted
        )


def _latency(path: str, collective: str, n: int, nodes: int) -> float:
    """NCCL's own latency (s) for what runs on this path."""
    if path == "in_network":
        return nvls_latency(nodes)
    like = collective if collective in RINGS else "all_gather"
    return ring_latency(n, nodes, like, "LL", net_overhead=NET_OVERHEAD[HOSTS])


def _transfer(path: str, collective: str, size: float, n: int, nodes: int) -> float:
    """Bytes on the busiest link of a rank."""
    if path == "in_network":
        return nvls_time(size, n / nodes, 1.0)
    if path == "alltoall":
        return size * (1 - 1 / nodes)  # what leaves the node; the rest goes over NVLink meanwhile
    return size * busbw_factor(collective, n)


@functools.cache
def fits() -> dict[tuple[str, str], AlphaBeta]:
    """(link, path) -> `AlphaBeta` of catalog/fitted_nccl.toml; `latency`: a multiple of NCCL's."""
    tables = dict(fitted("nccl"))
    exponent = tables.pop("exponent")
    return {
        (link, path): AlphaBeta(row["latency"], row["bandwidth"], exponent, ())
        for link, table in tables.items()
        for path, row in table.items()
    }


def calibrate() -> dict[tuple[str, str], AlphaBeta]:
    """The same, fitted again to the rows for it."""
    rows = [row for row in measurements() if row.fitted]
    return min((_fit_all(rows, e / 20) for e in range(10, 21)), key=_misfit)


def _fit_all(rows: Sequence[Row], exponent: float) -> dict[tuple[str, str], AlphaBeta]:
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((FABRICS[row.fabric].link(row.nodes, row.path), row.path), []).append(row)
    by_link = {}
    for key, mine in groups.items():
        transfer = [_transfer(r.path, r.collective, r.size, r.n, r.nodes) for r in mine]
        steps = [_latency(r.path, r.collective, r.n, r.nodes) for r in mine]
        by_link[key] = fit_alpha_beta(transfer, [r.time for r in mine], steps, exponent)
    return by_link


def _misfit(each: Mapping[Any, AlphaBeta]) -> float:
    return sum(math.log1p(residual) ** 2 for fit in each.values() for residual in fit.residuals)


@dataclass(frozen=True)
class Prediction:
    """What the fitted model expects: path, seconds and its two terms, algbw, busbw (byte/s)."""

    path: str
    time: float
    latency: float
    transfer: float
    algbw: float
    busbw: float


def predict(
    collective: str, size: float, n: int, nodes: int = 1, fabric: str = "h100", path: str = ""
) -> Prediction:
    """The `Prediction` for `size` bytes over n ranks on `nodes` nodes of a fabric; without a path,
    what NCCL would run.

    Raises BadArgument for a fabric without a network asked for several nodes.

    >>> round(predict("all_reduce", 16e9, 1000, 125, "p5").busbw / 1e9) in range(270, 340)
    True
    """
    this = "predict"
    one_of(this, "collective", collective, COLLECTIVES)
    one_of(this, "fabric", fabric, tuple(FABRICS))
    size, n = checked(this, "size", size, SIZE), checked(this, "n", n, RANKS)
    nodes = checked(this, "nodes", nodes, count())
    if nodes > 1 and not FABRICS[fabric].network:
        raise BadArgument(this, "nodes", nodes, f"1: {FABRICS[fabric].name} has no network here")
    paths = (one_of(this, "path", path, PATHS),) if path else _paths(collective, n, nodes, fabric)
    each = (_predict(collective, size, n, nodes, fabric, path) for path in paths)
    return min(each, key=lambda one: one.time)


def _paths(collective: str, n: int, nodes: int, fabric: str) -> tuple[str, ...]:
    if collective == "alltoall" and nodes > 1:
        return ("alltoall",)
    adders = collective == "all_reduce" and n / nodes >= FABRICS[fabric].in_network_from
    if not adders or nodes > 2:
        return ("ring",)
    return ("in_network",) if nodes == 2 else ("ring", "in_network")


def _predict(
    collective: str, size: float, n: int, nodes: int, fabric: str, path: str
) -> Prediction:
    fit, rate = _fit_of(FABRICS[fabric], path, nodes)
    latency = fit.latency * _latency(path, collective, n, nodes)
    transfer = _transfer(path, collective, size, n, nodes) / rate
    time = overlapped_time(latency, transfer, fit.exponent)
    return Prediction(
        path, time, latency, transfer, size / time, size / time * busbw_factor(collective, n)
    )


def _fit_of(machine: Fabric, path: str, nodes: int) -> tuple[AlphaBeta, float]:
    """The fit of the binding link, or of its stand-in; and its bandwidth, by line rates."""
    link, measured_fits = machine.link(nodes, path), fits()
    if (link, path) in measured_fits:
        return measured_fits[link, path], measured_fits[link, path].bandwidth
    if (machine.like, path) not in measured_fits:
        expected = f"a path that was measured; {machine.name} has none for it"
        raise BadArgument("predict", "path", path, expected)
    fit = measured_fits[machine.like, path]
    return fit, fit.bandwidth * machine.rate(nodes, path) / number(machine.like)


def residuals(fitted: bool | None = None) -> tuple[tuple[Row, float], ...]:
    """(Row, model / measured - 1) for every row; only fitted or only tested ones if asked."""

    def model(r: Row) -> Prediction:
        path = r.path if r.nodes == 1 else ""
        return predict(r.collective, r.size, r.n, r.nodes, r.fabric, path)

    rows = (row for row in measurements() if fitted is None or row.fitted == fitted)
    return tuple((row, model(row).time / row.time - 1) for row in rows)
