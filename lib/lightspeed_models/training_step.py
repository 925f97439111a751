"""One training step of a plan, term by term (chapter 6).

One law, two calls, for one plan or for arrays of them. `step` alone is a *bound*: arithmetic at a
share of the peak, the tensors that cross HBM beside it, the bytes of each way of splitting on the
link that it uses, and the pipeline's bubble; no latency, no host, no cut of whole layers. With a
`Stack` of fitted constants it is an *expectation*: for that framework on that kind of machine, and
no other. Rates are plain numbers in SI; `network` is what one GPU sends, in one direction.

Sources: those of parallel.py, memory.py and pipeline.py; stacks: catalog/fitted_stacks.toml.
Measured runs to hold it to are `training_runs` beside it.
"""

from dataclasses import dataclass, replace
from typing import Any

from lightspeed.elementwise import Result, Value, ceil, floor, maximum, minimum, where
from lightspeed.law import checked, positive
from lightspeed.memory import MemoryUse, training_state_bytes
from lightspeed.parallel import (
    context_parallel_bytes,
    data_parallel_bytes,
    expert_parallel_bytes,
    hybrid_sharded_bytes,
    pipeline_bytes,
    tensor_parallel_bytes,
)
from lightspeed_models.llm.decoder import Decoder
from lightspeed_models.llm.mixers import LatentAttention
from lightspeed_models.llm.training import model_activation_bytes, training_memory
from lightspeed_models.plan import (
    Machine,
    Plan,
    checked_for,
    copy_neighbours,
    expert_neighbours,
    neighbours,
    spans,
)
from lightspeed_models.rank_products import layer_products, layer_scores
from lightspeed_models.stack import BOUND, Stack


@dataclass(frozen=True)
class Step:
    """Seconds of one step on the busiest GPU, by what they are for.

    `hidden` is the part of the data-parallel traffic that runs behind arithmetic; `data` is the
    rest. A bound has no `host` (what a layer waits for its launches beyond its work), no `uneven`
    (what the fullest stage has beyond its share), no `latency` (of gradients, tensor by tensor), no
    `optimizer`, no `fixed` and no `stalled`.
    """

    compute: float
    memory: float
    tensor: float
    expert: float
    context: float
    pipeline: float
    bubble: float
    data: float
    hidden: float
    model_flops: float
    peak: float
    host: float = 0.0
    uneven: float = 0.0
    latency: float = 0.0
    optimizer: float = 0.0
    fixed: float = 0.0
    stalled: float = 0.0

    @property
    def terms(self) -> dict[str, float]:
        """Seconds by name, in the order in which a figure stacks them; those that only an
        expectation has are there where they take time.
        """
        return {n: getattr(self, n) for n in BOUNDED} | {
            n: seconds for n in EXPECTED if (seconds := getattr(self, n))
        }

    @property
    def time(self) -> float:
        return sum(self.terms.values())

    @property
    def mfu(self) -> float:
        """Model FLOPs of a GPU over what its dense bf16 peak could have done in the time; of the
        scores the whole square counts ("square" of `lightspeed.training.COUNTS`)."""
        return self.model_flops / (self.time * self.peak)

    @property
    def largest_loss(self) -> str:
        """The name of the longest term that is not arithmetic."""
        losses = {n: t for n, t in self.terms.items() if n != "compute"}
        return max(losses, key=losses.__getitem__)


BOUNDED = ("compute", "memory", "tensor", "expert", "context", "pipeline", "bubble", "data")
EXPECTED = ("host", "uneven", "latency", "optimizer", "fixed", "stalled")


def flops_per_gpu(
    model: Decoder,
    sequences: float,
    sequence: float,
    gpus: int,
    time: float,
    recompute: str = "none",
) -> float:
    """FLOP/s of a GPU in a step of `time` (s): what the model needs, and what was done again if
    `recompute` names it.

    >>> from lightspeed_models.training_runs import gpt
    >>> gpt3 = gpt(96, 12288, 96, 51200, 2048)
    >>> round(flops_per_gpu(gpt3, 1536, 2048, 1024, 32.0, "full") / 1e12)
    138
    """
    seconds: float = checked("flops_per_gpu", "time", time, positive("s"))
    return flops(model, sequences, sequence, recompute) / gpus / seconds


def flops(
    model: Decoder, sequences: float, sequence: float, recompute: str = "none",
    part: float = 1.0,
) -> float:  # fmt: skip
    """FLOPs of a step over so many sequences; `recompute` as in `lightspeed.memory`, "full" of
    `part` of the layers.
    """
    tokens = sequences * sequence
    lone = model.flops_per_token(0, "training")
    scores = (model.flops_per_token(sequence, "training") - lone) / 3
    again = where(recompute == "selective", tokens * scores, 0.0)
    return model.training_flops(tokens, sequence, where(recompute == "full", part, 0.0)) + again


def step(model: Decoder, sequence: int, plan: Plan, machine: Machine, stack: Stack = BOUND) -> Step:
    """The `Step` of a model on sequences of this length: a bound, or with the constants of
    a `Stack` what to expect.

    >>> from lightspeed_models.llm import decoder
    >>> from lightspeed_models.plan import machine
    >>> gpt3 = decoder("gpt3_175b")
    >>> plan = Plan(data=8, tensor=8, pipeline=8, micro_batches=64, recompute="full")
    >>> 0.3 < step(gpt3, 2048, plan, machine("a100_80gb", "infiniband_hdr")).mfu < 0.8
    True
    """
    share = plan.tensor * plan.pipeline * plan.context
    model_flops = flops(model, plan.micro_batches * plan.micro_size, sequence) / share
    terms = seconds(work(model, sequence, plan, machine, stack), stack)
    return Step(**terms, model_flops=model_flops, peak=machine.peak)


@dataclass(frozen=True)
class Work:
    """What a plan asks of its busiest GPU: seconds at the rates of the data sheets, and counts.

    Of one layer and micro-batch: `compute`, `scores`, `pass_` (what a layer keeps, once through
    HBM) and `permute` (its copies for experts), `tensor`, `expert`, `context`. Of one micro-batch:
    `head` and `logits` (the product with the vocabulary, and its result in HBM) and `hop`. Of the
    step: `synced`, `moved` (the same bytes by the link in a node), `optimizer`. The rest counts;
    `near` are the ranks of a tensor group in one node, `sparse` is the part of layers that have
    experts, `idle` is what a schedule leaves of the bubble of 1F1B, `_exchanges` are of one layer
    and micro-batch, `_across` says that a group spans nodes. Rows of many plans become one `Work`
    of arrays.
    """

    compute: Value
    scores: Value
    pass_: Value
    permute: Value
    tensor: Value
    expert: Value
    context: Value
    head: Value
    logits: Value
    hop: Value
    synced: Value
    moved: Value
    optimizer: Value
    layers: Value
    stages: Value
    micro_batches: Value
    chunks: Value
    idle: Value
    fullest: Value
    last: Value
    zero: Value
    ways: Value
    near: Value
    sparse: Value
    ranks: Value
    tensors: Value
    tensor_exchanges: Value
    expert_exchanges: Value
    context_exchanges: Value
    tensor_across: Value
    expert_across: Value
    context_across: Value
    pipeline_across: Value
    data_across: Value


def work(model: Decoder, sequence: int, plan: Plan, machine: Machine, stack: Stack = BOUND) -> Work:
    """The `Work` of a plan (or of plans' arrays), whose `Stack` gives what is counted. Raises
    BadArgument for chunks that don't divide layers, or too many ways.
    """
    checked_for(model, plan)
    again = plan.again
    # The tokens of one micro-batch that this GPU works on.
    tokens = plan.micro_size * sequence / plan.context
    split, rate = plan.tensor * plan.context, machine.peak * machine.share
    logits = 6 * model.width * model.vocabulary * plan.micro_size * sequence
    blocks = flops(model, plan.micro_size, sequence, plan.recompute, plan.part) - logits
    activations = model_activation_bytes(
        model, sequence, plan.micro_size, plan.tensor, split=stack.split
    )
    synced, moved, optimizer = _parameters(model, plan, machine, stack)
    keys = _kv_numbers(model)
    hop = pipeline_bytes(tokens, model.width) / 2 / plan.tensor
    # The gather that sequence parallelism repeats in the backward pass hides behind a product.
    bytes_of_tensor = tensor_parallel_bytes(tokens, model.width, plan.tensor, 1, again)
    fullest, last = whole_layers(model, plan.pipeline, plan.chunks, stack.cut)
    # Forward, backward and weight passes of one length: of (p - 1)(F + B + W) a third is left.
    idle = where(plan.schedule == "zb_h1", 1 / 3, 1 / plan.chunks)
    products, wide = machine.products, rate
    compute, scores = blocks / split / rate / model.depth, 0.0
    if products:
        wide = products.wide
        compute = layer_products(model, sequence, plan, machine, products)
        scores = layer_scores(model, sequence, plan, products)
    sparse = sum(repeat for _, repeat in model.sparse_layers) / model.depth
    experts = sum(mlp.active * repeat for mlp, repeat in model.sparse_layers) / model.depth
    copies_of_tokens = 2 * experts * tokens * model.width / plan.tensor
    return Work(
        compute=compute,
        scores=scores,
        pass_=(1 + again / 2) * activations / model.depth / plan.context / machine.memory,
        permute=(1 + again / 2) * copies_of_tokens / machine.memory,
        tensor=bytes_of_tensor / _rate(plan, machine, "tensor"),
        expert=_expert(model, tokens, plan, machine, stack),
        context=context_parallel_bytes(tokens, keys, plan.context, 1, stack.context, again)
        / (model.depth * plan.tensor * _rate(plan, machine, "context")),
        head=logits / split / wide,
        logits=stack.logits_passes * 4 * tokens * model.vocabulary / plan.tensor / machine.memory,
        hop=hop / _rate(plan, machine, "pipeline"),
        synced=synced,
        moved=moved,
        optimizer=optimizer,
        layers=model.depth,
        stages=plan.pipeline,
        micro_batches=plan.micro_batches,
        chunks=plan.chunks,
        idle=idle,
        fullest=fullest,
        last=last,
        zero=plan.stage,
        ways=plan.tensor,
        near=neighbours(plan, machine.per_node, "tensor"),
        sparse=sparse,
        ranks=plan.ranks,
        tensors=(4 + model.mlp.matrices_each) * model.depth / plan.pipeline,
        # Gather and scatter around attention and MLP, forward, backward and again.
        tensor_exchanges=(8 + 4 * again) * where(plan.tensor > 1, 1.0, 0.0),
        # There and back, forward, backward and again.
        expert_exchanges=(4 + 2 * again) * sparse * where(plan.expert > 1, 1.0, 0.0),
        # Keys go round forward (and again), keys and their gradients backward.
        context_exchanges=(3 + again) * (plan.context - 1),
        tensor_across=spans(plan, machine.per_node, "tensor"),
        expert_across=plan.expert > expert_neighbours(plan, machine.per_node),
        context_across=spans(plan, machine.per_node, "context"),
        pipeline_across=spans(plan, machine.per_node, "pipeline"),
        data_across=_shards_across(plan, machine.per_node),
    )


def _parameters(
    model: Decoder, plan: Plan, machine: Machine, stack: Stack
) -> tuple[Value, Value, Value]:
    """Seconds of a step in which the parameters of a GPU are gathered and summed over data-parallel
    ranks, those of the same bytes by the link in a node, and those of the optimizer.
    """
    spread = model.expert_parameters / plan.pipeline / plan.expert / plan.expert_tensor
    common = (model.parameters - model.expert_parameters) / (plan.tensor * plan.pipeline)
    copies, near = plan.expert_copies, copy_neighbours(plan, machine.per_node)
    sizes = plan.stage, plan.micro_batches, stack.weight_bytes, stack.gradient_bytes
    groups = plan.ranks // plan.shard_ranks
    # PyTorch drops its weights after each backward pass, at stage 2 too.
    from_ranks = where(plan.stage >= 3, plan.shard_ranks, 1)
    hybrid = hybrid_sharded_bytes(common, plan.shard_ranks, groups, from_ranks, *sizes[1:])
    drops = (plan.stage >= 2) & stack.drops_weights
    traffic = where(drops, hybrid.inside, data_parallel_bytes(common, plan.shard_ranks, *sizes))
    of_experts = data_parallel_bytes(spread, copies, *sizes)
    synced = traffic / _shard_rate(plan, machine)
    synced = synced + where(groups > 1, hybrid.across / _over(machine, 1), 0.0)
    synced = synced + of_experts / where(copies > near, _over(machine, near), machine.link)
    states = common / where(plan.stage >= 1, plan.shard_ranks, 1)
    states = states + spread / where(plan.stage >= 1, copies, 1)
    moved = (traffic + of_experts + hybrid.across) / machine.link
    return synced, moved, stack.optimizer_bytes * states / machine.memory


def layers_of_stage(
    model: Decoder, stages: Value, place: Value, chunks: Value = 1, cut: str = "weighted"
) -> Result:
    """Layers on the stage at this place, from 0.

    Cut "weighted", a stage ends with the layer that takes it past its even share: nanotron's. The
    product with the vocabulary is the last to be placed, and weighs as many layers as cost the
    same. Cut "even", stages hold as few as the fullest must; of what is missing then, the first
    stage has one less, for its table, and the last the rest, for its logits: Megatron's.

    >>> from lightspeed_models.llm import decoder
    >>> [layers_of_stage(decoder("llama3_8b"), 8, place) for place in range(8)]
    [5.0, 4.0, 4.0, 5.0, 4.0, 4.0, 5.0, 1.0]
    >>> [layers_of_stage(decoder("llama3_405b"), 16, at, cut="even") for at in (0, 1, 15)]
    [7.0, 8.0, 7.0]
    """
    layers = model.depth
    if cut == "even":
        each = ceil(layers / (stages * chunks)) * chunks
        early = where(each * stages - layers >= 2, 1.0, 0.0)
        start = minimum(layers, where(place == 0, 0.0, each * place - early))
        ends = minimum(layers, each * (place + 1) - early)
        return where(place == stages - 1, layers, ends) - start
    share = (layers + model.width * model.vocabulary * layers / model.matrices) / stages
    start = where(place == 0, 0, minimum(layers, floor(share * place) + 1))
    ends = minimum(layers, floor(share * (place + 1)) + 1)
    return where(place == stages - 1, layers, ends) - start


def whole_layers(
    model: Decoder, stages: Value, chunks: Value = 1, cut: str = "weighted"
) -> tuple[Result, Result]:
    """Layers on the fullest stage, which is the first or the one behind it, and on the last.

    >>> from lightspeed_models.llm import decoder
    >>> whole_layers(decoder("llama3_8b"), 8)
    (5.0, 1.0)
    """
    places = (0, minimum(1, stages - 1), stages - 1)
    first, second, last = (layers_of_stage(model, stages, at, chunks, cut) for at in places)
    return maximum(first, second), last


def seconds(work: Work, stack: Stack) -> dict[str, Result]:
    """The terms of a `Step` for this `Work`, all of it numbers or all arrays: the law itself."""

    def over(seconds: Value, across: Value) -> Result:
        return seconds / where(across, stack.between, stack.inside)

    w, m = work, work.micro_batches
    compute, head = (w.compute + w.scores / stack.attention) / stack.share, w.head / stack.share
    memory = stack.passes * w.pass_ + stack.permutes * w.permute
    ways = where(w.ways > 1, stack.split_products, 1.0)
    taxed = where(w.expert > 0, ways / (1 - stack.sm_tax), ways)
    compute, memory = taxed * compute, ways * memory
    # Exchanges in a node run piece by piece behind the product that they feed.
    behind = where(w.tensor_across, 0.0, minimum(stack.overlap * w.tensor, compute))
    tensor = over(w.tensor - behind, w.tensor_across) + stack.launch * w.tensor_exchanges
    traffic = over(w.expert, w.expert_across)
    expert = (
        traffic
        - minimum(stack.expert_overlap * traffic, compute)
        + stack.launch * w.expert_exchanges
    )
    expert = expert + stack.sync * w.sparse
    context = over(w.context, w.context_across) + stack.launch * w.context_exchanges
    busy = compute + memory + tensor + expert + context
    # Launches run ahead of the GPU, so the longer of the two sets the pace of a layer.
    layer = maximum(busy, stack.host + stack.wait(w.ways, w.near, w.tensor_across))
    whole = w.layers * layer + head + w.logits
    stage = whole / w.stages
    if stack.whole_layers:
        stage = maximum(w.fullest * layer, w.last * layer + head + w.logits)
    # DDP and ZeRO-1 sum gradients once, behind the last backward pass; others all along.
    window = where(w.zero >= 2, m * stage, stage * 2 / 3)
    synced = over(w.synced, w.data_across)
    hidden = minimum(synced, window)
    # The first layer's weights are waited for, and the last one's gradients.
    bare = where(hidden >= synced, stack.bare * synced / (m * w.layers), 0.0)
    slowed = stack.contention * hidden + stack.drag * minimum(w.moved, hidden)
    each = m * w.layers / w.stages
    # Each chunk is sent on and back, hidden by nothing while the pipeline fills.
    sends = 2 * w.chunks * (w.stages - 1 + stack.exposed * m * (w.stages > 1))
    return {
        "compute": each * compute + m * head / w.stages,
        "memory": each * memory + m * w.logits / w.stages,
        "tensor": each * tensor,
        "expert": each * expert,
        "context": each * context,
        "host": each * (layer - busy),
        "uneven": m * (stage - whole / w.stages),
        "bubble": (whole - stage) * w.idle,
        "pipeline": sends * over(w.hop, w.pipeline_across),
        "data": synced - hidden + slowed + bare,
        "hidden": hidden,
        "latency": stack.latency * w.tensors * w.ranks * where(w.zero, 2, 1) * w.data_across,
        "optimizer": w.optimizer,
        "fixed": stack.fixed,
        "stalled": stack.stall * (m + w.stages - 1) * (w.stages > 1),
    }


def _shards_across(plan: Plan, per_node: Value) -> Any:
    """Whether the ranks over which ZeRO splits are in more than one node."""
    near = neighbours(plan, per_node, "context", "data")
    apart = (plan.shard == 0) | (plan.shard_ranks > near)
    return spans(plan, per_node, "context", "data") & apart


def _shard_rate(plan: Plan, machine: Machine) -> Result:
    """byte/s of a GPU in a ring over the ranks over which ZeRO splits."""
    near = neighbours(plan, machine.per_node, "context", "data")
    across = _shards_across(plan, machine.per_node)
    return where(across, _over(machine, near), machine.link)


def _rate(plan: Plan, machine: Machine, *axes: str) -> Result:
    """byte/s of a GPU in a ring over these axes."""
    near = neighbours(plan, machine.per_node, *axes)
    return where(spans(plan, machine.per_node, *axes), _over(machine, near), machine.link)


def _over(machine: Machine, near: Value) -> Result:
    """byte/s of a GPU in a ring over nodes: its members' ports, if the link carries that."""
    return minimum(machine.link, machine.network * near)


def _expert(model: Decoder, tokens: Value, plan: Plan, machine: Machine, stack: Stack) -> Result:
    """Seconds of a layer's exchanges, by the link and beside it by the GPU's own port. A token goes
    to each of its experts in the node, and to another node once, however many of them are there;
    a router may choose among so many nodes only.
    """
    near = expert_neighbours(plan, machine.per_node)
    nodes, time = plan.expert / near, 0.0 * plan.expert
    # Of two ways each sends half of its tokens, out and back, forward and backward.
    copy = stack.token_bytes * expert_parallel_bytes(tokens, model.width, 2, 1) / plan.tensor
    for mlp, repeat in model.sparse_layers:
        inside = mlp.active * (near - 1) / plan.expert
        outside = (nodes - 1) * (1 - (1 - 1 / nodes) ** mlp.active)
        if stack.expert_nodes:
            outside = minimum(outside, stack.expert_nodes * (nodes - 1) / nodes)
        slower = maximum(inside / machine.link, outside / machine.network)
        time = time + repeat / model.depth * copy * slower
    return time


def _kv_numbers(model: Decoder) -> int:
    """Numbers of a token's keys, in all layers: context parallelism sends them."""
    total = 0
    for layer in model.layers:
        mixer: Any = layer.mixer
        latent = isinstance(mixer, LatentAttention)
        each = mixer.heads * mixer.plain if latent else mixer.kv_heads * mixer.head_width
        total += layer.repeat * each
    return total


def memory_use(
    model: Decoder,
    sequence: int,
    plan: Plan,
    machine: Machine,
    recipe: str = "16",
    split: str = "tensor+sequence",
) -> MemoryUse:
    """The `MemoryUse` of a GPU under a plan: `training_memory`, with experts spread over ranks.

    An expert has as many copies as the ranks of a stage hold sets of experts, and its states are
    split over those only.
    """
    checked_for(model, plan)
    use = training_memory(
        model, machine.capacity, sequence // plan.context, plan.micro_size, plan.shard_ranks,
        plan.tensor, plan.pipeline, plan.chunks, plan.stage, recipe, split, plan.recompute,
    )  # fmt: skip
    states = {n: getattr(use, n) for n in ("weights", "gradients", "optimizer")}
    if model.experts:
        mine = model.expert_parameters / plan.pipeline / plan.expert / plan.expert_tensor
        rest = (model.parameters - model.expert_parameters) / (plan.tensor * plan.pipeline)
        common = training_state_bytes(rest, recipe, plan.shard_ranks, plan.stage)
        spread = training_state_bytes(mine, recipe, plan.expert_copies, plan.stage)
        states = {n: getattr(common, n) + getattr(spread, n) for n in states}
    # 1F1B has a micro-batch in flight for each stage, GPipe all of them.
    more = where(plan.schedule == "gpipe", plan.micro_batches / plan.pipeline, 1)
    activations = use.activations * more
    waste = use.buffers / (use.total - use.buffers)
    need = sum(states.values()) + activations + use.logits
    total = (1 + waste) * need
    return replace(use, **states, activations=activations, buffers=waste * need, total=total)
