"""The boxed sentences, which people quote: each is tried at settings drawn from its own explorer's
range, one of them chosen against it, and fails at a counter-setting that its scope leaves out.
"""

import math
import re
from functools import cache, partial
from itertools import product
from pathlib import Path
from statistics import NormalDist
from types import SimpleNamespace

import pytest

from lightspeed import experts, kernels, networks, quantization, queueing, scaling, serving
from lightspeed.catalog import accelerator, entries, link
from lightspeed.collectives import algbw, busbw, busbw_factor, nvls_time, ring_steps, ring_time
from lightspeed.memory import training_state_bytes
from lightspeed.parallel import data_parallel_tokens, pipeline_bytes, tensor_parallel_bytes
from lightspeed.reliability import lost_share, young_interval
from lightspeed.roofline import matmul_bytes, matmul_flops, time_bounds, transfer_time
from lightspeed_authoring.notebooks import read
from lightspeed_authoring.sentences import plain
from lightspeed_course import job
from lightspeed_course.explorers import (
    attention,
    nccl,
    network,
    numbers,
    parallelism,
    profile,
    roofline,
    serving_steps,
)  # fmt: skip
from lightspeed_course.explorers import (
    kernels as blocks,
)
from lightspeed_course.explorers import (
    scaling as scales,
)
from lightspeed_models.llm import IDEAL, decoder, mixed_step
from lightspeed_tools.trace.account import parts

CHAPTERS = Path(__file__).parents[2] / "chapters"
# What tells a reader what to do states nothing that a setting could make false.
ADVICE = (
    "Compare like with like", "Divide FLOPs by bytes", "find out which before you buy",
    "What a request keeps and what", "Name what is large", "Send often over near links",
    "Compare busbw with one direction", "keep rings on rails",
    "measure three that differ", "so ask what would change the answer before you buy",
)  # fmt: skip


def drawn(explorer, *names):
    """Settings of an explorer's controls: the ends and the middle of each, in all combinations."""
    every = [[value for _, value in explorer.controls[name].options] for name in names]
    return list(product(*(dict.fromkeys((v[0], v[len(v) // 2], v[-1])) for v in every)))


def which_wait_to_buy(path, size, turn=1):
    """Whether the size at which both waits are equal tells what halves the time, if it is right."""
    way = numbers.paths()[path]
    wait, rate = float(way.latency), float(way.bandwidth)
    faster = transfer_time(size, 2 * rate, wait) < transfer_time(size, rate, wait / 2)
    return faster == (size > turn * wait * rate)


def costs_two_and_six(model):
    ours = decoder(model)
    return abs(ours.flops_per_token(0, "prefill") / (2 * ours.parameters) - 1) < 0.1


def at_least_the_slower_clock(entry, peak=1.0):
    chip, size = accelerator(entry.accelerator), (entry.m, entry.k, entry.n)
    widths = (1, 1, 2) if entry.precision == "fp8" else (2, 2, 2)
    moved = matmul_bytes(*size, *widths)
    rate = peak * getattr(chip, entry.precision)
    return time_bounds(matmul_flops(*size), moved, rate, chip.hbm_bandwidth).lower <= entry.time


def a_batch_shares(batch, width, shared=True):
    def intensity(tokens):
        weights = 2 * width**2 * (1 if shared else tokens)
        return matmul_flops(tokens, width, width) / (4 * tokens * width + weights)

    return intensity(2 * batch) > 1.01 * intensity(batch)


def crosses_twice(way):
    """Scores and weights, which one launch leaves for the next, go out and come in."""
    return blocks.square_total(way) == 2 * 2 * 2 * blocks.SIDE**2


def one_pass(row, piece, shrink=True):
    top, total = -math.inf, 0.0
    for start in range(0, len(row), piece):
        part = row[start : start + piece]
        higher = max(top, *part)
        total *= math.exp(top - higher) if shrink and total else 1
        total, top = total + sum(math.exp(x - higher) for x in part), higher
    return abs(total / sum(math.exp(x - max(row)) for x in row) - 1) < 1e-9


def half_as_often(tokens, block, hardware="h100_sxm"):
    def asks(rows):
        return kernels.query_block_bytes(8, tokens, 128, rows) - 2 * 8 * 128 * tokens * 2

    fits = 4 * tokens * 128 < accelerator(hardware).l2_capacity
    most = blocks.clocks(hardware, blocks.ONLINE, tokens, 4 * block, False).registers
    return fits and asks(2 * block) == asks(block) / 2 and (block < 64 or most > blocks.REGISTERS)


def limit_is_one_over(serial, law=scaling.amdahl_speedup):
    return abs(law(10**12, serial=serial) * serial - 1) < 1e-3


def half_is_gone(serial, kappa=0.0):
    n = 1 + 1 / serial
    return abs(scaling.usl_speedup(n, serial=serial, kappa=kappa) / n - 0.5) < 1e-3


def share_says(kind, n, serial):
    times = {
        "serial": lambda k: serial + (1 - serial) / k,
        "communication": lambda k: 1 / k + 1e-4 * (k - 1),
        "waiting": lambda k: 1 / k + 1e-4 * max(0, k - 1) ** 0.5,
        "a late start": lambda k: 1 / k + 0.01,  # a cost that does not grow
    }
    first, last = (scaling.karp_flatt(1 / times[kind](k), k) for k in (2, 2 * n + 2))
    return last > first * 1.001 if kind != "serial" else abs(last / first - 1) < 1e-6


def inside_is_rate_times_stay(load, queue, stay="W"):
    seen = queue(load, 1.0)
    return abs(seen.L - load * getattr(seen, stay)) < 1e-9


def one_over_what_is_left(load, queue=queueing.mm1):
    far = queue(0.99, 1).W - queue(0.9, 1).W > queue(0.9, 1).W
    return abs(queue(load, 1).W * (1 - load) - 1) < 1e-9 and far


def larger_pools_spare_less(load, share, servers=queueing.servers_for):
    idle = [(servers(n * load, share) - n * load) / (n * load) for n in (1, 4)]
    return idle[1] < idle[0] < 4 * load**-0.5


def one_step(users, context):
    model, chip = decoder(job.MODEL), accelerator(job.GPU)
    return serving.decode_step(
        users, model.parameters, context * model.kv_cache_bytes_per_token(),
        job.PER_NODE * chip.bf16, job.PER_NODE * chip.hbm_bandwidth,
    )  # fmt: skip


def most_is_shared(users, context):
    step = one_step(users, context)
    return step.kv < step.time / 2


def the_batch_over_the_stay(users, context, tokens=500):
    rates = [n / (tokens * one_step(n, context).time) for n in range(1, users + 1)]
    return serving.request_rate(users, 500, one_step(users, context).time) >= max(rates) * (
        1 - 1e-9
    )


def an_index_saves(context):
    new, old = decoder("DeepSeek-V3.2"), decoder("DeepSeek-V3")
    return new.read_bytes(context) < old.read_bytes(context) and (
        new.request_bytes(context) > old.request_bytes(context)
    )


def small_batches(batch, experts_of=256, active=8):
    rows = experts.rows_per_expert(batch, experts_of, active)
    return rows < 0.6 * batch and experts.copies_sent(active, 8) > 1


def narrow_helps(key, batch, width=8192):
    chip = accelerator(key)

    def time(weight, rate):
        bounds = time_bounds(2 * width**2 * batch, weight * width**2, rate, chip.hbm_bandwidth)
        return bounds.lower

    fewer_bytes = time(1, chip.bf16) < time(2, chip.bf16)
    return fewer_bytes == (batch < chip.bf16 / chip.hbm_bandwidth)


def a_bit_is_four_times(bits, power=2):
    draws = [NormalDist().inv_cdf((i + 0.5) / 4001) for i in range(4001)]

    def noise(bits):
        step = quantization.symmetric_scale(max(draws), bits)
        return sum(abs(x - round(x / step) * step) ** power for x in draws)

    return 3.3 < noise(bits) / noise(bits + 1) < 5


def narrow_caches_first(context):
    return job.replica(2, 1, context).rate > max(
        job.replica(1, 2, context).rate, job.replica(1, 2, context, peak=2).rate
    )


def eight_bytes(parameters, kept=None):
    kept = kept or training_state_bytes
    return all(
        kept(parameters, recipe).total >= 8 * 2 * parameters for recipe in ("16", "18", "20")
    )


def shared_out(parameters, ranks, stage=3):
    one = training_state_bytes(parameters).total
    return training_state_bytes(parameters, n=ranks, stage=stage).total * ranks <= 1.001 * one


def tokens_pay(gpu, wire, tokens_per_turn=1.0):
    chip, port = accelerator(gpu), link(wire).bandwidth
    turn = data_parallel_tokens(chip.bf16, port)
    compute, journey = 4 * tokens_per_turn * turn / chip.bf16, 4 / port
    return compute >= journey * 0.999


def batch_is_no_help(tokens, width, sent=None):
    sent = sent or (lambda t: tensor_parallel_bytes(t, width, 8))
    return abs(sent(2 * tokens) / sent(tokens) - 2) < 1e-9  # as many bytes for each FLOP


def waits_not_bytes(tokens, width, chunks=1):
    return pipeline_bytes(tokens, width, chunks) < tensor_parallel_bytes(tokens, width, 8) + 1


def last_rank_ends(probability, n):
    late = networks.any_hit(probability, n)
    return abs(late / (1 - (1 - probability) ** n) - 1) < 1e-6 and late > 0.999 * probability


def youngs_is_least(write, mtbf):
    best = young_interval(write, mtbf)
    waste = partial(lost_share, write=write, mtbf=mtbf)
    return waste(interval=best) <= min(waste(interval=f * best) for f in (0.5, 0.9, 1.1, 2)) < 1


def a_wire_carries(n, wire, law=ring_time):
    rate = float(link(wire).bandwidth)
    seen = busbw("all_reduce", n, algbw(1e9, law(1e9, n, rate)))
    return abs(seen / rate - 1) < 1e-9


def ring_sends(n, most=2.0):
    longer = ring_steps("all_reduce", 2 * n) > ring_steps("all_reduce", n)
    return busbw_factor("all_reduce", n) <= most and longer


def a_window_lost(wire, loss=0.001, law=networks.go_back_n):
    def kept(rate):
        window = networks.window_packets(rate, 16e-6, 4096)
        return law(loss, window) if law is networks.go_back_n else law(loss)

    rate = float(link(wire).bandwidth)
    return kept(4 * rate) < 0.999 * kept(rate)


def readers_hold_up(tokens, writers):
    model, gpus, engine = serving_steps.replica()
    alone, beside = (
        mixed_step(model, gpus, n, writers, 8192, 4096, engine=engine).time for n in (0, tokens)
    )
    return beside > 1.1 * alone


def mostly_a_wait(in_flight, places, answer=job.ANSWER, between=job.BUDGET, reading=0.5):
    wait = max(0.0, in_flight / places - 1) * answer * between
    return wait > (wait + reading) / 2


def data_sheet_bounds(rows, engine=None):
    model, gpus, vllm = serving_steps.replica()
    bound = mixed_step(model, gpus, 0, rows, 8192).time
    return bound < mixed_step(model, gpus, 0, rows, 8192, engine=engine or vllm).time


def ways_cost_traffic(ways, width, law=tensor_parallel_bytes):
    return law(2048, width, 2 * ways) > law(2048, width, ways) > 0


def adds_up(work, sends, count=parts):
    """One product and one collective, in ms: (start, end) each."""
    found = count([(*work, 0), (*sends, 1)])
    first = min(work[0], sends[0])
    return found.compute + found.exposed_communication + found.idle == found.end - first


def kernels_alone(spans):
    """Their times added up, as a naive reader would."""
    compute, sent = (sum(b - a for a, b, kind in spans if kind == own) for own in (0, 1))
    return SimpleNamespace(
        compute=compute, exposed_communication=sent, idle=0, end=max(b for _, b, _ in spans)
    )


def one_file_is_not_enough(fault):
    """The rank that communicates longest is not the one that is slow: only both files tell."""
    _, both, truth = profile.read(fault)
    quick, late = sorted(both, key=lambda gpu: gpu.compute)
    return truth > 1.02 and quick.communication > 1.2 * late.communication


def a_share_falls_short(fault):
    _, both, truth = profile.read(fault)
    return min(profile.by_share(gpu, profile.MENDS[fault]) for gpu in both) < 0.95 * truth


PATHS = [key for _, key in numbers.explore().controls["path"].options if ":" not in key]
SIZES = drawn(scales.explore(), "n", "serial")
GEMMS = [
    (e,)
    for e in entries("measured").values()
    if e.key.startswith("gemm_") and e.precision in ("bf16", "fp8") and "_weights" not in e.key
]
FAST = [(key,) for key in ("h100_sxm", "h200_sxm", "b200", "mi300x")]
WIRES = drawn(parallelism.explore(), "gpu", "network")
RANKS = [n for (n,) in drawn(nccl.explore(), "nodes") if n > 1]
# page: words of the sentence, what it says of a setting, settings, counter-settings (keywords say
# what they change of the law)
TAKEAWAYS = {
    "01_numbers_to_know": [
        ("two ways to wait", which_wait_to_buy,
         [(path, size) for path, size in product(PATHS, (1, 64, 1e4, 1e9))],
         ["path_country", 1e4, 1e-6]),
        ("In a dense model a token costs two", costs_two_and_six,
         [("llama3_8b",), ("llama3_70b",), ("llama3_405b",), ("gpt3_175b",)], ["mixtral_8x7b"]),
    ],
    "02_roofline": [
        ("takes at least as long as the slower", at_least_the_slower_clock, GEMMS,
         [GEMMS[0][0], 0.2]),
        ("tokens share one reading of the weights", a_batch_shares,
         drawn(roofline.explore(), "batch", "contraction")[:6], [64, 8192, False]),
    ],
    "02_roofline_2_kernels": [
        ("crosses memory twice", crosses_twice, [(blocks.NAIVE,)], [blocks.ONLINE]),
        ("makes attention fusible: shrink", one_pass,
         [(row, piece) for row in ([1, 3, 2, 5], [800, 2, -900, 7, 801]) for piece in (1, 2, 5)],
         [[1, 3, 2, 5], 2, False]),
        ("twice the block", half_as_often,
         [s for s in drawn(blocks.explore_clocks(), "tokens", "block") if 2 * s[1] <= s[0]],
         [512, 512]),
    ],
    "03_amdahl_gustafson": [
        ("a limit of one over its share", limit_is_one_over, drawn(scales.explore(), "serial"),
         [0.05, scaling.gustafson_speedup]),
        ("half of the money is gone", half_is_gone, drawn(scales.explore(), "serial"),
         [0.01, 0.01]),
        ("one that grows means a cost that grows", share_says,
         [(kind, *size) for kind in ("serial", "communication", "waiting") for size in SIZES],
         ["a late start", 8, 0.05]),
    ],
    "04_littles_law": [
        ("the rate times the stay", inside_is_rate_times_stay,
         [(load, q) for load in (0.01, 0.5, 0.99) for q in (queueing.mm1, queueing.md1)],
         [0.5, queueing.mm1, "Wq"]),
        ("With random arrivals and services", one_over_what_is_left, [(0.01,), (0.5,), (0.99,)],
         [0.5, queueing.md1]),
        ("the larger the pool", larger_pools_spare_less,
         list(product((2, 10, 400), (0.2, 0.1, 0.01))), [50, 0.1, lambda a, share: a / share]),
    ],
    "04_littles_law_1_replica": [
        ("users share most of it", most_is_shared, [(1, 2048), (50, 8192), (3, 131_072)],
         [100, 8192]),
        ("divided by the time that an answer stays", the_batch_over_the_stay,
         [(8, 2048), (147, 8192), (12, 131_072)], [147, 8192, 250]),
    ],
    "04_littles_law_2_attention": [
        ("in a long text an index", an_index_saves,
         [c for c in drawn(attention.explore_attention(), "context") if c[0] > 4096], [1024]),
        ("a large batch into many small ones", small_batches, [(64,), (1024,), (65_536,)],
         [1024, 8, 8]),
    ],
    "05_precision": [
        ("Fewer bytes help where bytes decide", narrow_helps,
         [(*key, batch) for key in FAST for batch in (1, 64, 4096)], None),
        ("about four times the rounding noise", a_bit_is_four_times, [(4,), (6,), (8,)], [8, 1]),
        ("full of long contexts", narrow_caches_first, [(4096,), (8192,), (131_072,)], [512]),
    ],
    "06_parallelism": [
        ("at least eight bytes", eight_bytes, [(1e9,), (70e9,), (405e9,)],
         [1e9, lambda p, recipe: training_state_bytes(p, recipe, n=8, stage=1)]),
        ("ZeRO shares them out", shared_out,
         [(7e9, n) for n, in drawn(parallelism.explore(), "gpus")], [7e9, 8, 0]),
    ],
    "06_parallelism_2_sent": [
        ("must meet enough tokens", tokens_pay, WIRES, [*WIRES[0], 0.5]),
        ("doesn't make tensor parallelism cheaper", batch_is_no_help,
         [(t, w) for t in (1, 2048, 131_072) for w in (4096, 16_384)],
         [2048, 8192, lambda t: 2 * 8192**2]),
    ],
    "06_parallelism_3_waits": [
        ("in waiting, hardly in bytes", waits_not_bytes,
         [(t, w) for t in (1024, 16_384) for w in (4096, 16_384)], [8192, 8192, 8]),
        ("A step ends with its last rank", last_rank_ends,
         [(1e-3, 8), (1e-3, 8192), (1e-6, 1)], None),
        ("Save every", youngs_is_least, [(10.0, 1e4), (60.0, 1e5), (600.0, 1e4)], [600.0, 300.0]),
    ],
    "07_nccl_bandwidth": [
        ("while the ranks do the adding", a_wire_carries,
         [(n, w) for n in RANKS for w in ("nvlink4", "infiniband_ndr")], [8, "nvlink4", nvls_time]),
        ("at most twice the buffer", ring_sends, [(n,) for n in (2, *RANKS)], [64, 1.9]),
    ],
    "08_network": [
        ("With go back n, a lost packet", a_window_lost,
         [w for w in drawn(network.explore(), "link_key")],
         ["ethernet_400g", 0.001, networks.selective_repeat]),
        ("Everybody waits for the last", last_rank_ends, [(0.001, 8), (0.001, 8192)], None),
    ],
    "09_serving": [
        ("makes all the others wait", readers_hold_up,
         [(n, w) for n in (256, 2048, 8000) for w in (1, 16, 44)], [0, 16]),
        ("mostly the wait for a place", mostly_a_wait,
         [(64, 44), (128, 44), (1000, 200)], [44, 64]),
        ("from the data sheet is a bound", data_sheet_bounds, [(1,), (16,), (128,)], [16, IDEAL]),
    ],
    "10_plan_a_run": [
        ("each of them costs traffic", ways_cost_traffic,
         [(n, w) for n in (2, 4) for w in (4096, 16_384)], [2, 8192, lambda *_: 1.0]),
    ],
    "11_profile": [
        ("adds up to its span", adds_up,
         [((0, 8), (4, 11)), ((0, 8), (10, 11)), ((0, 9), (2, 4)), ((0, 9), (1, 4))],
         [(0, 8), (4, 11), kernels_alone]),
        ("only the files of all ranks tell how long", one_file_is_not_enough, [("slow_rank",)],
         ["loader"]),
        ("A share is no bound on a gain", a_share_falls_short, [("slow_rank",), ("launch_bound",)],
         ["synchronize"]),
    ],
}  # fmt: skip


@cache
def boxes():
    return {
        path.stem: plain(cell.source.replace("\n  ", " "))
        for path in sorted(CHAPTERS.glob("*.py"))
        for cell in read(path)
        if "takeaway" in cell.metadata.tags
    }


def test_every_boxed_sentence_is_tried_or_is_advice():
    for page, box in boxes().items():
        for sentence in re.split(r"(?:^|\s)- (?=[A-Z*])", box)[1:]:
            tried = [words for words, *_ in TAKEAWAYS.get(page, ()) if words in sentence]
            assert tried or any(words in sentence for words in ADVICE), f"{page}: {sentence}"


@pytest.mark.parametrize("page", TAKEAWAYS)
def test_a_takeaway_holds_over_its_explorers_range_and_not_beyond_its_scope(page):
    for words, says, settings, counter in TAKEAWAYS[page]:
        assert words in boxes()[page], f"{page} has no {words!r} in its box"
        false = [setting for setting in settings if not says(*setting)]
        assert settings and not false, f"{page}: {words!r} is false at {false[:5]}"
        assert counter is None or not says(*counter), (
            f"{page}: {words!r} holds at {counter} as well"
        )
