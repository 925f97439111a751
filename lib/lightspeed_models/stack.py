"""A stack: the few constants that turn the bound of a training step into an expectation.
Used in chapter 6.

A stack belongs to one framework on one kind of machine, and so do its constants, wherever they are
used: nanotron's, fitted to untuned runs, are half as slow again as tuned runs of other frameworks.
They were fitted to measured runs or counted, as catalog/fitted_stacks.toml says of each; `BOUND`
has none of them. A cluster may also be in a bad *state*, which no plan explains: `Stack.slow`,
`far` and `stall` describe one.
"""

import functools
from dataclasses import dataclass, fields, replace
from typing import Any

from lightspeed.catalog import fitted
from lightspeed.elementwise import Result, Value, where
from lightspeed.errors import one_of
from lightspeed.law import ELEMENT_BYTES, check_fields, fraction, nonnegative, positive
from lightspeed.memory import SPLITS
from lightspeed.roofline import SHARE

CUTS = ("weighted", "even")
KERNELS = ("flash2", "cudnn", "flash3")  # of attention


@dataclass(frozen=True)
class Stack:
    """What a framework adds to a bound. Those of `BOUND`, the defaults, add nothing.

    Fitted: `share` of the peak that all GPU work reaches; `inside` and `between`, shares of the
    links in a node and over nodes; `host`, seconds a layer and micro-batch, forward and backward,
    that launching takes whatever its size; `ring`, seconds a layer, micro-batch and rank where
    tensor parallelism spans nodes; `latency`, seconds a parameter tensor and data-parallel rank;
    `fixed`, seconds a step; `overlap`, the part of a tensor exchange that runs behind the product
    which it feeds; `exposed`, the part of the sends between stages that does not run behind
    arithmetic while the pipeline is full; `contention`, what arithmetic loses to gradients and
    weights that travel behind it, as a part of their time; `drag`, the same by their bytes, as a
    part of what those take by the link in a node; `attention`, the rate of its kernel over that of
    the one which the chip was measured with; `split_products`, what products and passes take where
    tensor parallelism cuts them, over what their shapes say; `sync`, seconds a layer of experts
    and micro-batch until the host knows how many tokens each expert has; `launch`, seconds of each
    exchange among tensor or expert ranks and of each step of a context ring, whatever its size.

    Counted: `bare`, layers whose gathers run behind nothing; `passes` of what a layer keeps,
    `logits_passes` of the logits in fp32, and `permutes` of the copies of tokens that go to
    experts, through HBM; `weight_bytes` and `gradient_bytes` of what data parallelism sends;
    `optimizer_bytes` that its step moves for a parameter; `drops_weights`, whether ZeRO-2 gathers
    them for each micro-batch too (SHARD_GRAD_OP); `whole_layers`, whether a stage holds whole
    layers, and how they are `cut`, "weighted" or "even", as `layers_of_stage` says; `split`,
    "tensor+sequence" where sequence parallelism splits what lies between the products too;
    `context`, whose context parallelism runs, as `context_parallel_bytes` counts it. Of experts:
    `token_bytes` of an element that is dispatched and combined, in the mean; `expert_nodes`, over
    which a router spreads a token at most (0: any); `expert_overlap`, the part of their exchanges
    that runs behind the arithmetic of another micro-batch, on `sm_tax` of the processors.

    A state: `slow`, seconds a layer, micro-batch and further rank of a node, and `far`, the same
    for a further node, stand in for `ring`; `stall`, seconds a slot of the pipeline.
    """

    share: float = 1.0
    inside: float = 1.0
    between: float = 1.0
    host: float = 0.0
    ring: float = 0.0
    latency: float = 0.0
    fixed: float = 0.0
    overlap: float = 0.0
    exposed: float = 0.0
    contention: float = 0.0
    attention: float = 1.0
    split_products: float = 1.0
    drag: float = 0.0
    bare: float = 0.0
    sync: float = 0.0
    launch: float = 0.0
    passes: float = 4.0
    logits_passes: float = 0.0
    permutes: float = 0.0
    token_bytes: float = 2.0
    expert_nodes: float = 0.0
    expert_overlap: float = 0.0
    sm_tax: float = 0.0
    weight_bytes: float = 2.0
    gradient_bytes: float = 2.0
    optimizer_bytes: float = 0.0
    drops_weights: bool = False
    whole_layers: bool = False
    cut: str = "weighted"
    split: str = "tensor"
    context: str = "megatron"
    slow: float = 0.0
    far: float = 0.0
    stall: float = 0.0

    def __post_init__(self) -> None:
        check_fields(self, SHARE, "share", "inside", "between")
        check_fields(self, fraction(), "overlap", "exposed", "contention", "expert_overlap")
        check_fields(self, fraction(), "sm_tax")
        check_fields(self, nonnegative(), "expert_nodes")
        check_fields(self, nonnegative(), "drag", "bare")
        check_fields(self, positive(), "attention", "split_products")
        waits = ("host", "ring", "latency", "fixed", "launch", "sync", "slow", "far", "stall")
        check_fields(self, nonnegative("s"), *waits)
        check_fields(self, nonnegative(), "passes", "logits_passes", "permutes")
        check_fields(self, ELEMENT_BYTES, "weight_bytes", "gradient_bytes", "token_bytes")
        check_fields(self, nonnegative("byte"), "optimizer_bytes")
        check_fields(self, SPLITS, "split")
        check_fields(self, ("megatron", "pytorch"), "context")
        check_fields(self, CUTS, "cut")

    def wait(self, ways: Value, near: Value, across: Value) -> Result:
        """Seconds a layer and micro-batch for hops of tensor parallelism, `near` in a node."""
        if self.slow or self.far:
            nodes = where(across, ways / near - 1, 0)
            return self.slow * (near - 1) + self.far * nodes
        return where(across, self.ring * ways, 0.0)


BOUND = Stack()


def stack(key: str, state: str = "") -> Stack:
    """The `Stack` of this key in catalog/fitted_stacks.toml, in good health or in a named state.

    >>> healthy, ailing = stack("nanotron_h100"), stack("nanotron_h100", "slow_collectives")
    >>> healthy.host, healthy.slow, ailing.slow
    (0.00425, 0.0, 0.00261)
    """
    tables = _tables()
    table = tables[one_of("stack", "key", key, tuple(tables))]
    states = table.get("states", {})
    ails: dict[str, Any] = {}
    if state:
        ails = dict(states[one_of("stack", "state", state, tuple(states))])
    constants = {name: row["value"] for name, row in table["fitted"].items()} | table["counted"]
    names = {f.name for f in fields(Stack)}
    return Stack(**constants, **{n: v for n, v in ails.items() if n in names})


@dataclass(frozen=True)
class RunClass:
    """How runs of a kind compare with the law of their `stack`: measured over what it says is about
    `centre`, and between `low` and `high` in four of five; groups of them lie `between` apart.
    """

    key: str
    title: str
    stack: str
    centre: float
    low: float
    high: float
    between: float
    groups: str


def run_class(key: str) -> RunClass:
    """The `RunClass` of this key in catalog/fitted_classes.toml.

    >>> run_class("unnamed").high / run_class("nvidia").high > 1.2
    True
    """
    tables = fitted("classes")
    return RunClass(key=key, **tables[one_of("run_class", "key", key, tuple(tables))])


def fsdp_stack(
    gpu: str, gated: bool, compiled: bool | None = None, kernel: str = "", key: str = "pytorch_fsdp"
) -> Stack:
    """The `Stack` of PyTorch FSDP on a chip: an MLP that is `gated` takes more passes where its
    parts are not `compiled` into one (half of them where nobody says), and attention runs in its
    `kernel`, "flash2" unless said, which is slower than others on Hopper alone.

    >>> eager, compiled = (fsdp_stack("h100_sxm", True, on) for on in (False, True))
    >>> eager.passes > compiled.passes, compiled.attention < 1
    (True, True)
    """
    base, own = stack(key), _tables()[key]["variants"]
    one_of("fsdp_stack", "kernel", kernel or KERNELS[0], KERNELS)
    part = 0.5 if compiled is None else float(not compiled)
    hopper = gpu.startswith("h")
    return replace(
        base,
        share=own["ampere"]["value"] if gpu.startswith("a") else base.share,
        passes=base.passes + part * gated * own["eager"]["value"],
        attention=own["flash2"]["value"] if hopper and kernel in ("", "flash2") else 1.0,
    )


@functools.cache
def _tables() -> dict[str, Any]:
    return fitted("stacks")
