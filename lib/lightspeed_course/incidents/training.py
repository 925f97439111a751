"""A training job that makes fewer tokens a second than its plan said: what can be wrong with it,
and what can be measured.

Who is ready early is seen to "communicate" while it waits for the slowest.
"""

from dataclasses import replace

from lightspeed.catalog import accelerator, find, link
from lightspeed.collectives import algbw, busbw, ring_time
from lightspeed.roofline import attainable, matmul_flops, matmul_intensity
from lightspeed_course.incidents.setting import Cause, Measurement, Setting, grid, noisy, roughly
from lightspeed_course.incidents.training_job import (
    PER_NODE,
    Job,
    assumed_peak,
    own_peak,
    own_time,
    pace,
    planned,
    rate,
    sound,
    terms,
    time,
)
from lightspeed_models.training_runs import fit_share
from lightspeed_show.format import si

HOP = 5e-6  # seconds of a ring's step over a network, of the order of what NCCL's tuner assumes
HOUR = (5, 20, 40, 60)  # minutes after the start at which clocks are read
# Said because it is so: what is measured on the first node alone, or with it in each pair, could
# not tell its own fault from one that all nodes have.
SOUND = "You measure from node 0, whose adapters, clocks and processes were checked and are sound."


def brief(job):
    tokens = job.data * job.micro_batches * job.sequence
    chip, net = accelerator(job.gpu).name, link(job.network).name
    stages, also = "", ""
    if job.pipeline > 1:
        stages = f" pipeline parallel over {job.pipeline},"
        *some, last = range(job.data, job.nodes, job.data)
        also = f" So are nodes {', '.join(map(str, some))} and {last}, the rest of its pipeline."
    return (
        f"**Training.** {find(job.model).name} on {job.nodes} nodes of {PER_NODE} {chip}, an"
        f" adapter of {net} for each GPU. Tensor parallel over {PER_NODE},{stages} data parallel"
        f" over {job.data},"
        f" {job.micro_batches} micro-batches of one sequence of {job.sequence:,} tokens. The plan"
        f" promised {tokens / planned(job).time:,.0f} tokens a second; of those that count the job"
        f" makes {roughly(rate(job))}. {SOUND}{also} Why?"
    )


def draw_plan(rng):
    gpu, network = rng.choice((("h100_sxm", "infiniband_ndr"), ("a100_80gb", "infiniband_hdr")))
    return Job(
        rng.choice(("llama2_70b", "llama3_70b")),
        gpu,
        network,
        rng.choice((8, 16, 32)),
        rng.choice((2, 3, 4)),
        rng.choice((4096, 8192)),
    )


# --- what can be wrong --------------------------------------------------------------------------


def _not_first(rng, job):
    """A node that is not in the pipeline of the first, which is `SOUND`: rank 0 waits for it where
    gradients meet, and nowhere else.
    """
    return rng.choice([node for node in range(job.nodes) if node % job.data])


def _rank_elsewhere(rng, job):
    return rng.choice([rank for rank in range(job.ranks) if rank // PER_NODE % job.data])


CAUSES = (
    Cause(
        "slow_nic",
        "One network adapter runs below its rate.",
        "Replace the adapter or its cable; until then drain the node.",
        lambda rng, job: replace(job, adapter=(_not_first(rng, job), rng.choice((0.25, 0.5)))),
        lambda job: replace(job, adapter=(0, 1.0)),
    ),
    Cause(
        "numa",
        "Processes are bound to the wrong socket, so that all traffic crosses between the two.",
        "Bind each process to the socket of its GPU and adapter.",
        lambda rng, job: replace(job, socket=rng.uniform(0.3, 0.6)),
        lambda job: replace(job, socket=1.0),
    ),
    Cause(
        "tensor_over_network",
        "Ranks are placed so that tensor-parallel groups straddle nodes.",
        "Number the ranks node by node, so that each group stays behind NVLink.",
        lambda rng, job: replace(job, spread=rng.choice((2, 4))),
        lambda job: replace(job, spread=1),
    ),
    Cause(
        "straggler",
        "One GPU is shared with a process that somebody forgot.",
        "End the other process, and give jobs their GPUs alone.",
        lambda rng, job: replace(
            job,
            busy_gpu=(_rank_elsewhere(rng, job), rng.uniform(0.5, 0.8)),
        ),
        lambda job: replace(job, busy_gpu=(0, 1.0)),
    ),
    Cause(
        "throttling",
        "The GPUs of one node get hot and lower their clocks.",
        "Drain the node and repair its cooling.",
        lambda rng, job: replace(job, hot_node=(_not_first(rng, job), rng.uniform(0.5, 0.8))),
        lambda job: replace(job, hot_node=(0, 1.0)),
    ),
    Cause(
        "padding",
        "Sequences are padded to full length, and the padding is computed too.",
        "Pack several documents into a sequence.",
        lambda rng, job: replace(job, padding=rng.uniform(0.15, 0.45)),
        lambda job: replace(job, padding=0.0),
    ),
    Cause(
        "recompute",
        "All activations are recomputed, where the plan keeps most of them.",
        "Set recomputation back to selective.",
        lambda rng, job: replace(job, recompute="full"),
        lambda job: replace(job, recompute="selective"),
    ),
    Cause(
        "sparse_peak",
        "The plan took the peak for sparse matrices; nothing is broken.",
        "Plan again, with the dense peak.",
        lambda rng, job: replace(job, sparse_plan=True),
        lambda job: replace(job, sparse_plan=False),
    ),
)


# --- what can be measured -----------------------------------------------------------------------


TERMS = (
    "matrix products", "other kernels", "tensor-parallel collectives", "gradient collectives",
)  # fmt: skip
OF_A_PIPELINE = "pipeline, sends and bubble"


def _by_term(job, s, waiting=0.0):
    terms = dict(zip(TERMS, (s.compute, s.memory, s.tensor, s.data + waiting), strict=True))
    return terms | ({OF_A_PIPELINE: s.pipeline + s.bubble} if job.pipeline > 1 else {})


def _seen(job):
    s = terms(job)
    return _by_term(job, s, time(job) - s.time)


def read_profile(job, rng):
    """Seconds by term as a profiler of rank 0 sees them: waiting is inside the collective."""
    return {name: noisy(rng, value) for name, value in _seen(job).items()}


def _promised(job):
    return _by_term(job, planned(job))


def show_profile(job, reading):
    rows = [
        (name, si(_promised(job)[name], "s"), si(value, "s")) for name, value in reading.items()
    ]
    return grid(("one step, rank 0", "plan", "seen"), rows)


def tell_profile(job, reading):
    over = {name: value - _promised(job)[name] for name, value in reading.items()}
    name = max(over, key=over.__getitem__)
    return (
        f"{name} take longer" if over[name] > 0.04 * planned(job).time else "every term as planned"
    )


def read_ranks(job, rng):
    return [noisy(rng, own_time(job, rank)) for rank in range(job.ranks)]


def show_ranks(job, reading):
    of_node = [reading[node * PER_NODE :][:PER_NODE] for node in range(job.nodes)]
    rows = [(f"node {node}", *(f"{1e3 * t:.0f}" for t in row)) for node, row in enumerate(of_node)]
    top, rest = _worst(rows, [max(row) for row in of_node])
    return f"Milliseconds at work in a step, without waiting, by GPU.{rest}\n\n" + grid(
        ("", *range(PER_NODE)), top
    )


def _worst(rows, badness):
    """(rows to show, a sentence about the others): all of them, or of very many the worst."""
    if len(rows) <= 32:
        return rows, ""
    first = sorted(sorted(range(len(rows)), key=lambda n: -badness[n])[:8])
    return [rows[n] for n in first], f" The eight worst rows of {len(rows)} are shown."


def _outliers(reading):
    """Which of several are more than a twelfth above the middle one."""
    middle = sorted(reading)[len(reading) // 2]
    return [n for n, value in enumerate(reading) if value > middle * 13 / 12]


def tell_ranks(job, reading):
    slow = _outliers(reading)
    return (
        "all ranks alike" if not slow else "one rank is slow" if len(slow) == 1 else "a slow node"
    )


def read_clocks(job, rng):
    """Clock (share of the sound one) of each node at the minutes of HOUR."""
    steps = [(1 - job.hot_node[1]) * min(1.0, n / 2) for n in range(len(HOUR))]
    return [
        [noisy(rng, 1 - (fall if node == job.hot_node[0] else 0.0)) for fall in steps]
        for node in range(job.nodes)
    ]


def show_clocks(job, reading):
    top = accelerator(job.gpu).clock
    rows = [
        (f"node {node}", *(f"{share * top / 1e6:.0f}" for share in row))
        for node, row in enumerate(reading)
    ]
    slowest, rest = _worst(rows, [-row[-1] for row in reading])
    return f"Mean clock of a node's GPUs in MHz, minutes after the start.{rest}\n\n" + grid(
        ("", *HOUR), slowest
    )


def tell_clocks(job, reading):
    return "the clocks of a node fall" if min(r[-1] for r in reading) < 0.9 else "clocks hold"


def _log(job, ranks, bandwidth, rng):
    """Rows of all_reduce_perf: (size, seconds), of a ring over the network."""
    return [
        (size, noisy(rng, ring_time(size, ranks, bandwidth, HOP))) for size in (2**24, 2**28, 2**32)
    ]


def _node_rate(job):
    """byte/s of a node, through all its adapters."""
    return PER_NODE * link(job.network).bandwidth


def read_nccl(job, rng):
    # The channels of a ring share the buffer equally, one to an adapter: the slowest ends last.
    return _log(job, job.ranks, _node_rate(job) * job.adapter[1] * job.socket, rng)


def log_text(job, reading, ranks):
    """As nccl-tests prints it."""
    lines = [
        "#       size         count      type   redop    root     time   algbw   busbw #wrong",
        "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)",
    ]
    for size, seconds in reading:
        alg = algbw(size, seconds)
        bus = busbw("all_reduce", ranks, alg)
        lines.append(
            f"{size:12d}  {size // 4:12d}     float     sum      -1  {1e6 * seconds:9.1f}"
            f"  {alg / 1e9:6.2f}  {bus / 1e9:6.2f}      0"
        )
    return "\n".join(lines)


def show_nccl(job, reading):
    top = f"# all_reduce_perf over {job.ranks} GPUs on {job.nodes} nodes, {PER_NODE} on each"
    return f"```\n{top}\n{log_text(job, reading, job.ranks)}\n```"


def _reached(reading, ranks, line):
    size, seconds = reading[-1]
    return busbw("all_reduce", ranks, algbw(size, seconds)) / line


def tell_nccl(job, reading):
    share = _reached(reading, job.ranks, _node_rate(job))
    return "the network is below its line" if share < 0.8 else "the network is at its line"


def read_pairs(job, rng):
    """The largest row with each other node as the partner of the first."""
    rates = []
    for node in range(1, job.nodes):
        share = job.socket * (job.adapter[1] if job.adapter[0] in (0, node) else 1.0)
        rates.append(_log(job, 2 * PER_NODE, _node_rate(job) * share, rng)[-1])
    return rates


def _pair_rates(reading):
    return [busbw("all_reduce", 2 * PER_NODE, algbw(size, seconds)) for size, seconds in reading]


def show_pairs(job, reading):
    rates = _pair_rates(reading)
    rows = [(f"0 and {n}", f"{b / 1e9:.1f}") for n, b in enumerate(rates, 1)]
    top, rest = _worst(rows, [-b for b in rates])
    return f"`all_reduce_perf` of 4 GiB over two nodes at a time.{rest}\n\n" + grid(
        ("nodes", "busbw, GB/s"), top
    )


def tell_pairs(job, reading):
    low = [b < 0.8 * _node_rate(job) for b in _pair_rates(reading)]
    return "all pairs are slow" if all(low) else "one node is slow" if any(low) else "no pair slow"


def read_inside(job, rng):
    return _log(job, PER_NODE, accelerator(job.gpu).link_bandwidth, rng)


def show_inside(job, reading):
    text = log_text(job, reading, PER_NODE)
    return f"```\n# all_reduce_perf over the {PER_NODE} GPUs of node 0\n{text}\n```"


def tell_inside(job, reading):
    share = _reached(reading, PER_NODE, accelerator(job.gpu).link_bandwidth)
    return "NVLink is at its line" if share > 0.8 else "NVLink is below its line"


def read_settings(job, rng):
    return {
        "recomputation": (job.recompute, sound(job).recompute),
        "nodes of a tensor-parallel group": (job.spread, 1),
    }


def show_settings(job, reading):
    rows = [(name, plan, now) for name, (now, plan) in reading.items()]
    return grid(("as the job was started", "plan", "seen"), rows)


def tell_settings(job, reading):
    other = [name for name, (now, plan) in reading.items() if now != plan]
    return f"{other[0]} not as planned" if other else "started as planned"


def read_roofline(job, rng):
    """FLOP/s of a product of a large square matrix on the first GPU, beside the roof."""
    chip = accelerator(job.gpu)
    side = 8192
    intensity = matmul_intensity(side, side, side) * (2 if job.fp8 else 1)
    roof = attainable(intensity, own_peak(job), chip.hbm_bandwidth)
    seconds = matmul_flops(side, side, side) / (roof * fit_share() * (job.fp8 or 1))
    return {
        "FLOP/byte of the product": intensity,
        "FLOP/s seen": noisy(rng, matmul_flops(side, side, side) / seconds),
        "peak that the plan took": assumed_peak(job),
    }


def show_roofline(job, reading):
    rows = [
        (name, si(value, "FLOP/s") if "byte" not in name else f"{value:.0f}")
        for name, value in reading.items()
    ]
    name = "fp8" if job.fp8 else "bf16"
    return grid((f"{name}, 8192 x 8192 x 8192, GPU 0", ""), rows)


def tell_roofline(job, reading):
    share = reading["FLOP/s seen"] / reading["peak that the plan took"]
    if job.fp8 and share < 0.85 * fit_share():
        return "fp8 below its promise"
    return "half of what was planned" if share < 0.75 * fit_share() else "the share that is usual"


def read_batches(job, rng):
    return [min(1.0, noisy(rng, 1 - job.padding, 0.02)) for _ in range(6)]


def show_batches(job, reading):
    rows = [(n, f"{100 * share:.1f} %") for n, share in enumerate(reading, 1)]
    return grid(("batch", "tokens that are text"), rows)


def tell_batches(job, reading):
    return "much padding" if sum(reading) / len(reading) < 0.9 else "hardly any padding"


def read_file(job, rng):
    """Of rank 0: seconds of a step by what ran, and how often a forward pass ran."""
    again = 2 if job.recompute == "full" else 1
    return _seen(job) | {"forward passes for a backward pass": again}


def show_file(job, reading):
    rows = [
        (name, si(value, "s") if name in TERMS else value, f"{100 * value / time(job):.1f} %"
         if name in TERMS else "") for name, value in reading.items()
    ]  # fmt: skip
    return grid(("rank 0, exposed", "in a step", "share"), rows)


def tell_file(job, reading):
    if reading["forward passes for a backward pass"] > 1:
        return "the forward pass runs again"
    return tell_profile(job, {name: reading[name] for name in TERMS})


def read_files(job, rng):
    """Of all ranks: seconds at work, and what the sums take once all are there."""
    s = terms(job)
    work = [(s.compute + s.memory) / job.speed(rank) for rank in range(job.ranks)]
    return read_file(job, rng), work, s.tensor, s.data


def show_files(job, reading):
    of_rank_0, work, tensor, data = reading
    middle = sorted(work)[len(work) // 2]
    slow = _outliers(work)
    rows = [
        ("work, the middle rank", si(middle, "s")),
        ("work, the slowest rank", si(max(work), "s")),
        ("ranks more than a twelfth slower", len(slow)),
        ("tensor-parallel sums once all are there", si(tensor, "s")),
        ("gradients, exposed once all are there", si(data, "s")),
        ("forward passes for a backward pass", of_rank_0["forward passes for a backward pass"]),
    ]
    return grid(("all ranks, one step", ""), rows)


def tell_files(job, reading):
    of_rank_0, work, tensor, data = reading
    slow = tell_ranks(job, work)
    if slow != "all ranks alike":
        return slow
    return tell_file(job, of_rank_0 | {TERMS[2]: tensor, TERMS[3]: data})


def _writes(everyone):
    def write(job, folder):
        from lightspeed_course.incidents import training_trace  # a page that sells it is light

        return training_trace.write(job, folder, everyone)

    return write


MEASUREMENTS = (
    Measurement(
        "file", "the trace file of rank 0", 25, read_file, show_file, tell_file, _writes(False)
    ),
    Measurement(
        "files", "the trace files of all ranks", 45, read_files, show_files, tell_files,
        _writes(True),
    ),
    Measurement(
        "batches", "what is in six batches", 15, read_batches, show_batches, tell_batches
    ),
    Measurement(
        "settings", "how the job was started", 15, read_settings, show_settings, tell_settings
    ),
    Measurement(
        "profile", "profile of a step on rank 0", 20, read_profile, show_profile, tell_profile
    ),
    Measurement("ranks", "time at work, rank by rank", 20, read_ranks, show_ranks, tell_ranks),
    Measurement("clocks", "clocks over an hour", 25, read_clocks, show_clocks, tell_clocks),
    Measurement(
        "roofline",
        "a matrix product on the roofline",
        25,
        read_roofline,
        show_roofline,
        tell_roofline,
    ),
    Measurement(
        "inside", "nccl-tests inside a node", 40, read_inside, show_inside, tell_inside,
        stops=True,
    ),
    Measurement(
        "nccl", "nccl-tests over all nodes", 45, read_nccl, show_nccl, tell_nccl, stops=True
    ),
    Measurement(
        "pairs", "nccl-tests, two nodes at a time", 60, read_pairs, show_pairs,
        tell_pairs, stops=True,
    ),
)  # fmt: skip

TRAINING = Setting(
    "training", draw_plan, rate, brief, CAUSES, MEASUREMENTS,
    pace=pace, paced="as many tokens a second",
    pairs=(("slow_nic", "padding"), ("numa", "straggler"), ("throttling", "recompute")),
)  # fmt: skip
