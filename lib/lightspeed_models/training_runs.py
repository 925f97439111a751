"""Published training runs, and the share of peak that one of them sets for the others (chapter 6).

Source: catalog/measured_training.toml.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lightspeed.catalog import measured
from lightspeed_models.llm.decoder import Decoder
from lightspeed_models.llm.shipped import decoder, from_sizes
from lightspeed_models.plan import Plan, machine, plan_of_batch
from lightspeed_models.training_step import Step, flops, flops_per_gpu, step


@dataclass(frozen=True)
class Run:
    """A published run: `model`, `plan`, `sequence`, and FLOP/s of a GPU as `counts` says."""

    key: str
    name: str
    source: str
    model: Decoder
    sequence: int
    plan: Plan
    gpu: str
    network: str
    counts: str
    flops_per_gpu: float
    time: float

    def model_flops_per_gpu(self) -> float:
        """FLOP/s of a GPU that the model needed: what was printed, less what was done twice."""
        if self.counts == "model":
            return self.flops_per_gpu
        of = functools.partial(flops, self.model, self.plan.sequences, self.sequence)
        return self.flops_per_gpu * of() / of(self.plan.recompute)


@functools.cache
def training_runs() -> dict[str, Run]:
    """Every published `Run` of catalog/measured_training.toml, by key."""
    tables = measured("training")
    sources = {key: table["title"] for key, table in tables.pop("sources").items()}
    return {key: _run(key, table, sources) for key, table in tables.items()}


def gpt(layers: int, width: int, heads: int, vocabulary: int, sequence: int) -> Decoder:
    """A GPT as in Megatron's tables: heads of width / heads, an MLP of 4 width."""
    return from_sizes(
        layers, width, heads, 4 * width, vocabulary, context=sequence, mlp_matrices=2,
        tied_embeddings=True,
    )  # fmt: skip


def _run(key: str, table: dict[str, Any], sources: Mapping[str, str]) -> Run:
    shape = ("layers", "width", "heads", "vocabulary", "sequence")
    model = decoder(table["model"]) if "model" in table else gpt(*(table[n] for n in shape))
    names = ("tensor", "pipeline", "context", "chunks", "micro_size")
    degrees = {name: table.get(name, 1) for name in names}
    gpus = table["data"] * degrees["tensor"] * degrees["pipeline"] * degrees["context"]
    plan = plan_of_batch(gpus, table["batch"], **degrees, recompute=table["recompute"])
    recompute = plan.recompute if table["counts"] == "hardware" else "none"
    # A source prints the rate or the time; the FLOPs turn one into the other.
    printed = table["seconds"] if "seconds" in table else table["flops_per_gpu"] * 1e12
    other = flops_per_gpu(model, plan.sequences, table["sequence"], gpus, printed, recompute)
    rate, time = (other, printed) if "seconds" in table else (printed, other)
    return Run(
        key, table["name"], sources[table["source"]], model, table["sequence"], plan,
        table["gpu"], table["network"], table["counts"], rate, time,
    )  # fmt: skip


# The run that sets the share of peak; and the one that sets it for this run itself.
CALIBRATION, SECOND = "megatron_a100_145_6b", "megatron_a100_76_1b"


def calibration(model: Decoder, plan: Plan) -> str:
    """The key of the run whose share of peak predicts this plan: never the run that is predicted.

    >>> run = training_runs()[CALIBRATION]
    >>> calibration(run.model, run.plan) == SECOND
    True
    """
    run = training_runs()[CALIBRATION]
    size = (run.model.depth, run.model.width, run.plan.gpus)
    return SECOND if (model.depth, model.width, plan.gpus) == size else CALIBRATION


@functools.cache
def fit_share(key: str = CALIBRATION) -> float:
    """The share of peak at which `step` takes what was measured: what the bounds leave out."""
    run = training_runs()[key]

    low, high = 0.01, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        cluster = machine(run.gpu, run.network, share=middle)
        took = step(run.model, run.sequence, run.plan, cluster).time
        low, high = (middle, high) if took > run.time else (low, middle)
    return middle


def expected_step(model: Decoder, sequence: int, plan: Plan, gpu: str, network: str) -> Step:
    """The `Step` of a plan at the share of peak that another, measured run set."""
    share = fit_share(calibration(model, plan))
    return step(model, sequence, plan, machine(gpu, network, share=share))


def predicted(run: Run) -> Step:
    """The `expected_step` of a published `Run`."""
    return expected_step(run.model, run.sequence, run.plan, run.gpu, run.network)
