"""One door to the library for published numeric cases: `evaluate(topic, inputs) -> dict`.

Input and output names are those of published.json. A relation is a function whose parameters
are the input names of its cases, registered under their topic; `evaluate` calls the one whose
names are those given, so a case with other values runs unchanged. A relation names inputs and
calls the library. It scales units and counts, and computes nothing else: test_published.py reads
this file for that. What a source leaves out and a prediction needs is named here, with its source.
"""

from __future__ import annotations

import functools
import inspect
import math

import numpy as np

from lightspeed import (
    catalog,
    collectives,
    datasheet,
    energy,
    memory,
    parallel,
    pipeline,
    precision,
    quantization,
    queueing,
    reliability,
    roofline,
    scaling,
    serving,
    training,
)
from lightspeed_models import nccl_fit, nccl_tuner, training_runs, training_step
from lightspeed_models.llm import decoder, from_sizes
from lightspeed_models.plan import Plan, model_parallel, plan_of_batch
from lightspeed_models.simulators import schedules

RELATIONS = {}
# Of measurements: a model comes near them, and a test of their own says how near.
MEASURED = {}


def topic(name, *relations, table=RELATIONS):
    """Register relations of this topic, their parameters the cases' input names: here, or as a
    decorator.
    """
    register = table.setdefault(name, []).append
    for one in relations:
        register(one)
    return register


signature = functools.cache(inspect.signature)


def relation(topic, inputs, tables=(RELATIONS, MEASURED)):
    """The relation of this topic that takes these inputs. KeyError if nothing fits."""
    relations = [r for table in tables for r in table.get(topic, ())]
    if not relations:
        raise KeyError(
            f"no topic {topic!r}; there are"
            f" {', '.join(sorted({t for table in tables for t in table}))}"
        )
    for found in relations:
        parameters = signature(found).parameters
        required = {n for n, p in parameters.items() if p.default is p.empty}
        if required <= inputs.keys() <= parameters.keys():
            return found
    known = "; ".join(", ".join(signature(r).parameters) for r in relations)
    raise KeyError(f"{topic}: no relation takes {', '.join(inputs)}; there are: {known}")


def evaluate(topic, inputs):
    """The library's answers for one case: output name -> value. KeyError if nothing fits."""
    return relation(topic, inputs)(**inputs)


def exact(case):
    """Whether the library must give this case's numbers; else it is a measurement."""
    try:
        relation(case["topic"], case["inputs"], (RELATIONS,))
    except KeyError:
        return False
    return True


# --- chapter 2: roofline ---------------------------------------------------------------------


topic(
    "roofline",
    lambda peak_flops_per_s, hbm_bytes_per_s: {
        "ridge_flop_per_byte": roofline.ridge_point(peak_flops_per_s, hbm_bytes_per_s)
    },
    # fp8 doubles the operations per clock of the same tensor cores.
    lambda peak_fp16_flops_per_s, hbm_bytes_per_s: {
        "ridge_fp16": roofline.ridge_point(peak_fp16_flops_per_s, hbm_bytes_per_s),
        "ridge_fp8": roofline.ridge_point(2 * peak_fp16_flops_per_s, hbm_bytes_per_s),
    },
    lambda flops, peak_flops_per_s: {
        "t_math_ms": roofline.compute_time(flops, peak_flops_per_s) * 1e3
    },
    lambda N: {
        "intensity": roofline.arithmetic_intensity(roofline.dot_flops(N), roofline.dot_bytes(N))
    },
    lambda chip_flops, link_bytes_per_s_one_way: {
        "ridge": roofline.ridge_point(chip_flops, link_bytes_per_s_one_way),
        "D_crit": roofline.critical_depth(chip_flops, link_bytes_per_s_one_way),
    },
    lambda D: {"T_equal": roofline.attention_crossover(D)},
    lambda M, K, N, peak_flops: {
        "t_us": roofline.compute_time(roofline.matmul_flops(M, K, N), peak_flops) * 1e6
    },
    lambda params, bytes_per_param, chips, hbm_bytes_per_s: {
        "t_load_ms": roofline.transfer_time(params * bytes_per_param, chips * hbm_bytes_per_s) * 1e3
    },
    lambda peak_flops, pcie_bytes_per_s: {
        "b_crit": roofline.critical_batch(roofline.ridge_point(peak_flops, pcie_bytes_per_s))
    },
)


@topic("roofline")
def _(M, K, N, bytes, hbm_bytes_per_s):
    moved = roofline.matmul_bytes(M, K, N, bytes, bytes, bytes)
    return {"bytes_moved": moved, "t_us": roofline.transfer_time(moved, hbm_bytes_per_s) * 1e6}


@topic("roofline")
def _(m, k, n, bytes, mem_bytes_per_s):
    flops, moved = (
        roofline.matmul_flops(m, k, n),
        roofline.matmul_bytes(m, k, n, bytes, bytes, bytes),
    )
    return {
        "ops_M": flops / 1e6,
        "traffic_MB": moved / 1e6,
        "intensity": roofline.arithmetic_intensity(flops, moved),
        "attainable_GOPS": flops / roofline.transfer_time(moved, mem_bytes_per_s) / 1e9,
    }


@topic("roofline")
def _(bytes, ports, one_way_bytes_per_s_per_link, hops, hop_latency_us):
    bandwidth = ports * one_way_bytes_per_s_per_link
    return {
        "t_bw_us": roofline.transfer_time(bytes, bandwidth) * 1e6,
        "t_first_byte_us": hops * hop_latency_us,
        "t_total_us": roofline.multi_hop_time(bytes, bandwidth, hops, hop_latency_us * 1e-6) * 1e6,
    }


@topic("roofline")
def _(D, F, int8_ops_per_s, hbm_bytes_per_s):
    ridge = roofline.ridge_point(int8_ops_per_s, hbm_bytes_per_s)
    return {"b_crit": roofline.critical_batch_exact(D, F, ridge, 1, 1, 1)}


# --- chapter 2: measured matrix products ----------------------------------------------------

GPUS = {
    "A100 SXM": "a100_80gb",
    "B200": "b200",
    "B200 SXM": "b200",
    "GB200": "gb200",
    "Gaudi 3": "gaudi3",
    "H100 SXM": "h100_sxm",
    "H200 SXM": "h200_sxm",
    "MI300X": "mi300x",
    "MI355X": "mi355x",
}
# dtype of the tables -> (precision of the arithmetic, bytes of a weight, bytes of an activation)
DTYPES = {
    "bfloat16": ("bf16", 2, 2),
    "fp8": ("fp8", 1, 1),
    "int8_wo": ("bf16", 1, 2),
    "int4_wo": ("bf16", 0.5, 2),
}


def _memory_share():
    """A matmul's share of bandwidth, from one row: a vector times a matrix on an H100."""
    row = catalog.find("gemm_h100_sxm_bf16_m1")
    moved = roofline.matmul_bytes(row.m, row.k, row.n)
    return (
        roofline.transfer_time(moved, catalog.accelerator(row.accelerator).hbm_bandwidth) / row.time
    )


@topic("gemm_measured")
def _(gpu, dtype, m, n, k):
    """The roofline's bounds, between which no measured time need lie but above whose lower one it
    must; and an estimate of the measured time, on the roof lowered to the best measured matmul and
    memory_share."""
    key, (precision, weight, activation) = GPUS[gpu], DTYPES[dtype]
    device, best = catalog.accelerator(key), catalog.entries("measured")
    work = roofline.matmul_flops(m, k, n), roofline.matmul_bytes(m, k, n, weight, activation, 2)
    rates = getattr(device, precision), device.hbm_bandwidth
    bounds = roofline.time_bounds(*work, *rates)
    share = best.get(f"mamf_{key}_{precision}", best[f"mamf_h100_sxm_{precision}"]).share
    estimate = roofline.achievable_time(
        *work, *rates, math_share=share, comms_share=_memory_share()
    )
    return {
        "lower_us": bounds.lower * 1e6,
        "upper_us": bounds.upper * 1e6,
        "measured_us": estimate * 1e6,
    }


# --- chapter 1: hardware and energy -----------------------------------------------------------


def _best_matmul(gpu, precision, peak):
    best = catalog.find(f"mamf_{GPUS[gpu]}_{precision}").matmul / 1e12
    return {"best_measured_TFLOPs": best, "fraction_of_peak": best / peak}


topic(
    "hardware",
    lambda gpu, peak_bf16_dense_TFLOPs: _best_matmul(gpu, "bf16", peak_bf16_dense_TFLOPs),
    lambda gpu, peak_fp8_dense_TFLOPs: _best_matmul(gpu, "fp8", peak_fp8_dense_TFLOPs),
    lambda fp32_flops, cores, flop_per_cycle: {
        "clock_GHz": datasheet.clock_from_peak(fp32_flops, flop_per_cycle, cores) / 1e9
    },
    lambda SMs, subpartitions, lanes: {"fp32_cores": SMs * subpartitions * lanes},
    lambda mem_clock_Hz, bus_bytes, ddr: {
        "TB_per_s": datasheet.bus_bandwidth(mem_clock_Hz, bus_bytes, ddr) / 1e12
    },
    lambda chips, host_chips, flops, hbm_GB: {
        "hosts": chips / host_chips,
        "tensorcores": chips * catalog.accelerator("tpu_v5p").core_count,
        "flops_pod": chips * flops,
        "hbm_TB": chips * hbm_GB / 1e3,
    },
)


@topic("hardware")
def _(clock_Hz, flops_per_clock_per_tensor_core, tensor_cores):
    peak = datasheet.peak_from_clock(clock_Hz, flops_per_clock_per_tensor_core, tensor_cores)
    return {"bf16_TFLOPs": peak / 1e12}


@topic("hardware")
def _(bytes, Gbit_per_s, latency_ms=0):
    bandwidth = catalog.parse(f"{Gbit_per_s} Gbit/s")[0]
    return {
        "serialize_us": roofline.transfer_time(bytes, bandwidth) * 1e6,
        "total_ms": roofline.transfer_time(bytes, bandwidth, latency_ms * 1e-3) * 1e3,
    }


@topic("hardware")
def _(links, GBps_per_link_per_direction):
    one_way = datasheet.bundle_bandwidth(links, GBps_per_link_per_direction * 1e9)
    return {"per_direction_GBps": one_way / 1e9, "bidirectional_GBps": 2 * one_way / 1e9}


@topic("hardware")
def _(nodes_per_SU, links_per_node, Gbps, spines, spine_ports):
    port = catalog.parse(f"{Gbps} Gbit/s")[0]
    return {
        "node_GBps": datasheet.bundle_bandwidth(links_per_node, port) / 1e9,
        "SU_TBps": datasheet.bundle_bandwidth(nodes_per_SU * links_per_node, port) / 1e12,
        "spine_TBps": datasheet.bundle_bandwidth(spines * spine_ports, port) / 1e12,
    }


@topic("hardware")
def _(anchor_ns, anchor_s, latencies_ns):
    """Output names carry the unit: L1_s, L2_min, HBM_h, IB_days."""
    felt = {
        n: datasheet.human_scale(ns * 1e-9, anchor_ns * 1e-9, anchor_s)
        for n, ns in latencies_ns.items()
    }
    units = {"s": 1, "min": 60, "h": 3600, "days": 86400}
    return {
        f"{name}_{unit}": seconds / size
        for name, seconds in felt.items()
        for unit, size in units.items()
    }


@topic("energy")
def _(
    int32_add_pJ,
    int32_mul_pJ,
    fp32_add_pJ,
    fp32_mul_pJ,
    dram_32b_pJ,
    cache8KB_32b_pJ,
    fp16_mul_pJ,
    fp16_add_pJ,
):
    def dram_over(*picojoules):
        # energy_balance is per FLOP and byte; a ratio of whole accesses has one of each.
        return energy.energy_balance(sum(picojoules), dram_32b_pJ)

    return {
        "dram_over_fp32_mul": dram_over(fp32_mul_pJ),
        "dram_over_fp32_add": dram_over(fp32_add_pJ),
        "dram_over_fp16_fma": dram_over(fp16_mul_pJ, fp16_add_pJ),
    }


@topic("energy")
def _(gpu_hours, watts, pue, kg_per_kWh):
    joules = energy.energy_of(watts, gpu_hours * 3600, pue=pue)
    kilograms = energy.emissions_of(joules, kg_per_kWh / energy.JOULES_PER_KWH)
    return {"MWh": joules / energy.JOULES_PER_KWH / 1e3, "tCO2": kilograms / 1e3}


@topic("energy")
def _(MWh, usd_per_kWh):
    joules = MWh * 1e3 * energy.JOULES_PER_KWH
    return {"usd_M": energy.cost_of(joules, usd_per_kWh / energy.JOULES_PER_KWH) / 1e6}


# --- chapter 3: amdahl, gustafson, training_time ----------------------------------------------


@topic("amdahl")
def _(parallel_fraction, speedup_of_parallel_part):
    speedup = scaling.amdahl_speedup(float(speedup_of_parallel_part), parallel=parallel_fraction)
    return {
        "speedup_x": speedup,
        "speedup_limit_x": scaling.amdahl_speedup(math.inf, parallel=parallel_fraction),
    }


@topic("amdahl")
def _(serial_fraction, n):
    limit = scaling.amdahl_speedup(math.inf, serial=serial_fraction)
    return {
        "speedup_x": scaling.amdahl_speedup(float(n), serial=serial_fraction),
        "speedup_limit_x": limit,
    }


@topic("amdahl")
def _(serial_ms, parallel_ms, cores):
    parts = {"serial": serial_ms * 1e-3, "parallel": parallel_ms * 1e-3}
    return {
        "parallel_fraction": scaling.parallel_fraction(parts, ["parallel"]),
        "speedup_x": scaling.profile_speedup(parts, {"parallel": float(cores)}),
    }


topic(
    "gustafson",
    lambda n, serial_fraction: {
        "scaled_speedup_x": scaling.gustafson_speedup(n, serial=serial_fraction),
        "amdahl_limit_x": scaling.amdahl_speedup(math.inf, serial=serial_fraction),
    },
    lambda n, parallel_fraction: {
        "scaled_speedup_x": scaling.gustafson_speedup(n, parallel=parallel_fraction),
        "amdahl_limit_x": scaling.amdahl_speedup(math.inf, parallel=parallel_fraction),
    },
)


DAY = 86400


def _time(flops, n, peak, utilization):
    seconds = training.training_time(flops, n, peak, utilization)
    return {"seconds": seconds, "days": seconds / DAY}


topic(
    "training_time",
    lambda flops, gpus, peak, mfu: _time(flops, gpus, peak, mfu),
    lambda flops, chips, peak, mfu: _time(flops, chips, peak, mfu),
    lambda params, tokens, peak, mfu, gpus=1: _time(
        training.training_flops(params, tokens), gpus, peak, mfu
    ),
    # Megatron's 8 T P / (n X): forward passes are done twice, and X is what was achieved.
    lambda params, tokens, GPUs, TFLOPs_per_gpu: _time(
        training.training_flops(params, tokens, recomputed=1), GPUs, TFLOPs_per_gpu * 1e12, 1
    ),
    # The source counts activation checkpointing: every block runs forward twice.
    lambda L, h, V, s, tokens: {
        "total_flops": training.transformer_training_flops(tokens, L, h, V, s, recomputed=1)
    },
)


@topic("training_time")
def _(params, tokens):
    total = training.training_flops(params, tokens)
    one_chip = training.training_time(total, 1, catalog.accelerator("tpu_v5p").bf16, 1)
    return {
        "flop_per_token": total / tokens,
        "total_flops": total,
        "years_one_v5p": one_chip / DAY / 365,
    }


# Layers, width, heads, hidden width and tokens: tables 2 and 15 of Touvron et al., "LLaMA" (2023).
LLAMA = {
    "LLaMA-7B": (32, 4096, 32, 11008, 1.0e12),
    "LLaMA-13B": (40, 5120, 40, 13824, 1.0e12),
    "LLaMA-33B": (60, 6656, 52, 17920, 1.4e12),
    "LLaMA-65B": (80, 8192, 64, 22016, 1.4e12),
}


def llama(model):
    layers, width, heads, hidden, _ = LLAMA[model]
    return from_sizes(layers, width, heads, hidden, 32_000)


@topic("training_time", table=MEASURED)
def _(model):
    """GPU-hours of LLaMA from the step of a plan: 2,048 A100, steps of 2,048 sequences of 2,048
    tokens (section 2 of the paper).

    "Model and sequence parallelism", says the paper, without degrees: taken here as one node.
    """
    shape, chip = llama(model), catalog.accelerator("a100_80gb")
    plan = plan_of_batch(2048, 2048, tensor=8)
    took = training_runs.expected_step(shape, 2048, plan, "a100_80gb", "infiniband_hdr")
    needed = shape.training_flops(LLAMA[model][-1], 2048)
    hours = training.training_time(needed, 1, chip.bf16, took.mfu) / 3600
    return {"paper_gpu_hours": hours, "tool_gpu_hours": hours}


# --- chapter 4: queueing, inference -----------------------------------------------------------


def arriving(relation):
    """A relation of `lambda`, a keyword of Python, so that its function says `rate`."""
    names = ["lambda", *list(inspect.signature(relation).parameters)[1:]]
    renamed = lambda **inputs: relation(inputs.pop("lambda"), **inputs)  # noqa: E731
    renamed.__signature__ = inspect.Signature(
        [inspect.Parameter(n, inspect.Parameter.POSITIONAL_ONLY) for n in names]
    )
    return renamed


@topic("queueing")
def _(lambda_qps, W_ms, mem_GB_per_request=0):
    inside = queueing.concurrency(lambda_qps, W_ms / 1e3)
    return {"L": inside, "mem_GB": inside * mem_GB_per_request}


topic(
    "queueing",
    lambda concurrency, W_ms: {"max_qps": queueing.throughput(concurrency, W_ms / 1e3)},
)


@topic("queueing")
@arriving
def _(rate, mu):
    queue = queueing.mm1(rate, mu)
    p99 = queueing.sojourn_percentile(0.99, rate, mu)
    return vars(queue) | {"P_wait_gt_0": queue.wait_probability, "p99_sojourn": p99}


@topic("queueing")
@arriving
def _(rate, mu, c):
    queue = queueing.mmc(rate, mu, c)
    return vars(queue) | {"prob_wait": queue.wait_probability}


@topic("queueing")
@arriving
def _(rate, mu, var_S):
    return vars(queueing.mg1(rate, mu, var_S))


@topic("queueing")
def _(a, c, asa_min, aht_min):
    rate, service_rate = a / (aht_min * 60), 1 / (aht_min * 60)
    return {
        "prob_wait": queueing.erlang_c(a, c),
        "service_level": queueing.service_level(asa_min * 60, rate, service_rate, c),
        "occupancy": queueing.mmc(rate, service_rate, c).rho,
    }


# FLOP/s, the highest that a law takes, where a case gives none: the step is bound by memory alone
NO_PEAK = 1e21


topic(
    "inference",
    lambda params, B, kv_per_seq, chips, hbm, peak, bytes=2: {
        "step_ms": (
            serving.decode_step(B, params, kv_per_seq, chips * peak, chips * hbm, bytes).time * 1e3
        )
    },
    lambda params, bytes, B, kv_per_seq, chips, hbm: {
        "step_ms": (
            serving.decode_step(B, params, kv_per_seq, NO_PEAK, chips * hbm, bytes).time * 1e3
        )
    },
    lambda prefill_s, B, step_s, G: {
        "prefill_per_generate_server": serving.prefill_servers(prefill_s, B, step_s, G)
    },
    lambda hbm_GB, hbm_bw: {"step_ms": roofline.transfer_time(hbm_GB * 1e9, hbm_bw) * 1e3},
)


@topic("inference")
def _(param_bytes, kv_bytes_per_seq, B, agg_hbm):
    step = serving.decode_step(B, param_bytes, kv_bytes_per_seq, NO_PEAK, agg_hbm, 1).time
    return {"step_ms": step * 1e3, "tok_per_s": serving.request_rate(B, 1, step)}


@topic("inference")
def _(params, gpu, bw, bytes, peak, prompt):
    step = serving.decode_step(1, params, 0, peak, bw, bytes)
    return {
        "decode_ms": step.time * 1e3,
        "prefill_ms": serving.prefill_time(prompt, params, peak) * 1e3,
    }


@topic("inference")
def _(flops_per_s, usd_per_hour):
    # TRAP of the source: its column is headed FLOPs/$, but is (FLOP/s) / ($/h).
    per_dollar = serving.flops_per_dollar(flops_per_s, usd_per_hour / 3600)
    return {"flops_per_s_per_usd_per_hour": per_dollar / 3600, "flops_per_usd": per_dollar}


# --- chapter 5: number_format, quantization ---------------------------------------------------


def _number(value):
    """A number, or the name of what is none, as the cases write it."""
    return value if math.isfinite(value) else str(value)


@topic("number_format")
def _(format, bits):
    f = precision.number_format(format)
    if bits != f.bits:
        raise ValueError(f"{format} has {f.bits} bits, not {bits}")
    return {
        "max": f.max,
        "smallest_normal": f.smallest_normal,
        "smallest_subnormal": f.smallest_subnormal,
        "eps": f.eps,
    }


@topic("number_format")
def _(format):
    values = precision.number_format(format).values()
    # -0 and 0 are one value.
    return {"nonnegative_values": values[values >= 0].tolist()}


topic(
    "number_format",
    lambda x, format: {"cast": _number(precision.number_format(format).round(x))},
)


@topic("number_format")
def _(x, mul):
    """A product in fp16, the format of these cases."""
    fp16 = precision.number_format("float16")
    return {"result": _number(fp16.round(fp16.round(x) * fp16.round(mul)))}


topic(
    "quantization",
    # The block as a whole: its bits, spread over its elements.
    lambda block_bytes, block_elems: {
        "bits_per_weight": quantization.bits_per_weight(
            8 * block_bytes / block_elems, 0, block_elems
        )
    },
    lambda block, scale_bits, elem_bits: {
        "bytes_per_elem": quantization.bits_per_weight(elem_bits, scale_bits, block) / 8
    },
    lambda params, bits: {"GB": quantization.weight_bytes(params, bits) / 1e9},
)


@topic("quantization")
def _(x, bits):
    stored = quantization.quantize_symmetric(np.array(x, float), bits)
    return {"scale": float(stored.scale), "q": stored.codes.tolist()}


@topic("quantization")
def _(model):
    """A decode step as llm-analysis models it: a roofline's lower bound, not a measurement.

    Its premises, from its example page and its output files: one sequence of 512 tokens and 32
    more on an A100 80 GB, all bytes at full bandwidth; the matrices in the named width; one
    embedding table of 32,000 rows in 16 bits; a KV cache as wide as the activations, read and
    written whole each step; on two GPUs, two all-reduces a layer of 8 us each.
    """
    shape, chip, sequence = llama(model), catalog.accelerator("a100_80gb"), 544
    embedding = quantization.weight_bytes(shape.vocabulary * shape.width, 16)

    def step_ms(weight_bits, activation_bits):
        weights = math.fsum([quantization.weight_bytes(shape.matrices, weight_bits), embedding])
        cache = sequence * shape.kv_cache_bytes_per_token(activation_bits / 8)
        gpus = 2 if weights > chip.hbm_capacity else 1
        all_reduces = 2 * shape.depth * 8e-6 if gpus > 1 else 0.0
        moved = math.fsum([weights, 2 * cache]) / gpus
        return roofline.transfer_time(moved, chip.hbm_bandwidth, latency=all_reduces) * 1e3

    return {"fp16_ms": step_ms(16, 16), "w8a8_ms": step_ms(8, 8), "w4a16_ms": step_ms(4, 16)}


# --- chapter 7: collectives, NCCL -------------------------------------------------------------


topic(
    "collective_factor",
    lambda collective, n_ranks: {"busbw_over_algbw": collectives.busbw_factor(collective, n_ranks)},
    lambda S_bytes, n, B_GBps, collective="all_reduce": {
        "t_ms": collectives.bandwidth_bound(collective, S_bytes, n, B_GBps * 1e9) * 1e3
    },
)


@topic("collective_factor")
def _(bytes, n, t_ms, link_GBps, collective="all_reduce"):
    rate = collectives.algbw(bytes, t_ms * 1e-3)
    bus = collectives.busbw(collective, n, rate)
    return {
        "algbw_GBps": rate / 1e9,
        "busbw_GBps": bus / 1e9,
        "efficiency": bus / (link_GBps * 1e9),
    }


@topic("collective_factor")
def _(n_gpus, algbw_GBps, node_link_GBps=math.inf, collective="all_reduce"):
    bus = collectives.busbw(collective, n_gpus, algbw_GBps * 1e9)
    return {"busbw_GBps": bus / 1e9, "link_utilisation": bus / (node_link_GBps * 1e9)}


topic(
    "collective_model",
    lambda bytes, n, alpha_s, beta_Bps: {
        "t_ms": collectives.ring_time(bytes, n, beta_Bps, alpha_s) * 1e3
    },
    lambda nodes, W_node_GBps, W_gpu_GBps: {
        "intra_GBps": collectives.level_bandwidth(GPUS_PER_NODE, W_gpu_GBps * 1e9) / 1e9,
        "inter_GBps": collectives.level_bandwidth(nodes, W_node_GBps * 1e9) / 1e9,
    },
    # Here `bytes` is the whole array; a rank, or a node, holds its share of it.
    lambda bytes, N, W_gpu, M_nodes, W_node: {
        "t_node_ms": collectives.alltoall_time(bytes / N, N, W_gpu) * 1e3,
        "t_2node_ms": collectives.alltoall_time(bytes / M_nodes, M_nodes, W_node) * 1e3,
    },
    lambda bytes_total, axis, hop_us, W_one_way: {
        "t_us": collectives.torus_gather_time(bytes_total, axis, 2 * W_one_way, hop_us * 1e-6) * 1e6
    },
    lambda B, D, bytes, shard_other, W_bidi, axis=4: {
        "t_us": collectives.torus_gather_time(B * D * bytes / shard_other, axis, W_bidi) * 1e6
    },
    # Per byte/s of link, a peak of C / W: the bf16 element is the 2 in 2 C / W.
    lambda C_over_W: {"D_crit": roofline.critical_depth(C_over_W, 1)},
    lambda mesh, sharding: {"total_over_one_copy": collectives.replicas(mesh, sharding)},
)


GPUS_PER_NODE = 8  # of the nodes that the scaling book describes


@topic("collective_model")
def _(shard_bytes, hops, W_one_way):
    """A line of hops + 1 chips, gathered one way, at v5e's share of the line rate."""
    ideal = collectives.ring_time(
        (hops + 1) * shard_bytes, hops + 1, W_one_way, collective="all_gather"
    )
    return {"t_us": ideal * 1e6, "measured_us": ideal * 1e6 / nccl_fit.measured_share("ici_v5e")}


@topic("collective_model")
def _(levels):
    """Names the levels of the source: node, leaf, spine."""
    rates = [
        collectives.level_bandwidth(level["degree"], level["W_GBps"] * 1e9) / 1e9
        for level in levels
    ]
    named = dict(zip(("node_GBps", "leaf_GBps", "spine_GBps"), rates, strict=False))
    return named | {"bw_GBps": min(rates)}


@topic("collective_model")
def _(B, F, bytes, n, W_GBps):
    size, bandwidth = B * F * bytes, W_GBps * 1e9
    return {
        "t_approx_us": roofline.transfer_time(size, bandwidth) * 1e6,
        "t_exact_us": collectives.bandwidth_bound("all_gather", size, n, bandwidth) * 1e6,
    }


@topic("nccl_model")
def _(bytes, nodes, gpus, asymptotic_busbw_GBps=370, net_overhead_us=1):
    """A Simple ring over nodes at an asymptotic busbw (370 GB/s: GTC24 S62129)."""
    latency = nccl_tuner.ring_latency(
        gpus, nodes, net_overhead=net_overhead_us * 1e-6, plateau=nccl_tuner.PLATEAU
    )
    time = latency + collectives.bandwidth_bound(
        "all_reduce", bytes, gpus, asymptotic_busbw_GBps * 1e9
    )
    return {"latency_ms": latency * 1e3, "algbw_GBps": collectives.algbw(bytes, time) / 1e9}


@topic("nccl_model")
def _(collective, n, nodes, protocol, link, base_us=None, hw_us=None):
    """A ring inside a node, from NCCL's table or from the base and step that the case gives."""
    if hw_us is None:
        return {"latency_us": nccl_tuner.ring_latency(n, nodes, collective, protocol, link) * 1e6}
    return {"latency_us": base_us + collectives.ring_time(0.0, n, 1.0, hw_us, collective)}


@topic("nccl_model")
def _(collective, n, nodes, protocol, net_overhead_us, plateau, latencyInter_us):
    latency = nccl_tuner.ring_latency(
        n,
        nodes,
        collective,
        protocol,
        "NVLINK",
        net_overhead_us * 1e-6,
        latencyInter_us * 1e-6,
        plateau,
    )
    return {"latency_us": latency * 1e6}


@topic("nccl_model")
def _(collective, n, nodes, protocol):
    """The cases that give no link and no overhead are trees, which only an all_reduce has."""
    if collective != "all_reduce":
        raise ValueError(f"NCCL's tree model is of all_reduce, not {collective}")
    return {"latency_us": nccl_tuner.tree_latency(n, nodes, protocol) * 1e6}


def _predicted(collective, size, gpus, nodes, fabric, path=""):
    p = nccl_fit.predict(collective, size, gpus, nodes, fabric, path)
    return {"time_us": p.time * 1e6, "algbw_GBps": p.algbw / 1e9, "busbw_GBps": p.busbw / 1e9}


@topic("nccl_measured", table=MEASURED)
def _(gpus, bytes, nodes=1, collective="all_reduce", algo="", fabric=""):
    """What the fitted model expects on `fabric`, H100 if a case does not name it."""
    fabric = fabric or ("p5" if nodes > 1 else "h100")
    default = _predicted(
        collective, bytes, gpus, nodes, fabric, {"": "", "Ring": "ring", "NVLS": "in_network"}[algo]
    )
    ring = _predicted(collective, bytes, gpus, nodes, fabric, "ring")
    line = nccl_fit.FABRICS[fabric].rate(nodes) / 1e9
    return default | {
        "busbw_default_GBps": default["busbw_GBps"],
        "busbw_nvls_off_GBps": ring["busbw_GBps"],
        f"fraction_of_{line:.0f}": default["busbw_GBps"] / line,
    }


topic(
    "nccl_measured",
    lambda nodes, gpus, size_MiB, collective="all_reduce", fabric="p5": _predicted(
        collective, size_MiB * 2**20, gpus, nodes, fabric
    ),
    table=MEASURED,
)


@topic("nccl_measured", table=MEASURED)
def _(bytes, gpus_1node, gpus_4node, collective="all_reduce", fabric="p6"):
    alone, four = (
        _predicted(collective, bytes, gpus, nodes, fabric)
        for gpus, nodes in ((gpus_1node, 1), (gpus_4node, 4))
    )
    return {"busbw_1node_GBps": alone["busbw_GBps"], "busbw_4node_GBps": four["busbw_GBps"]}


@topic("nccl_measured", table=MEASURED)
def _(system):
    """Two GPUs joined by one link, a message large enough not to matter."""
    fabric = {"MI300X x2": "mi300x_pair"}[system]
    return {"busbw_GBps": nccl_fit.predict("all_reduce", 2**34, 2, 1, fabric).busbw / 1e9}


# --- chapter 6: pipeline, checkpoint, parallelism_roofline ------------------------------------


@topic("pipeline")
def _(p, m, v=1):
    bubble = pipeline.bubble_over_total(p, m, v)
    return {
        "bubble_over_ideal": pipeline.bubble_over_ideal(p, m, v),
        "bubble_fraction": bubble,
        "utilization": 1 - bubble,
    }


@topic("pipeline")
def _(p, m, t_f, t_b):
    """Run, not computed: the slots of a forward pass that the step takes."""
    ran = schedules.simulate("1f1b", p, m, t_f, t_b)
    return {
        "steps": len(ran.utilization(t_f)),
        "utilization": 1 - ran.bubble_over_total,
        "bubble_fraction": ran.bubble_over_total,
    }


topic(
    "checkpoint",
    # The checkpoint that would take one byte a parameter goes into it so many times.
    lambda bytes, params: {"bytes_per_param": bytes / reliability.checkpoint_bytes(params, 1)},
    lambda bytes, pcie_GBps, fs_GBps: {
        "copy_s": roofline.transfer_time(bytes, pcie_GBps * 1e9),
        "write_s": roofline.transfer_time(bytes, fs_GBps * 1e9),
    },
    lambda delta_min, M_min: {
        "tau_opt_min": reliability.daly_interval(delta_min * 60, M_min * 60) / 60
    },
)


@topic("checkpoint")
def _(bytes, seconds, interval_h):
    # No failure is counted here: the share lost is the limit of a job that never fails.
    lost = reliability.lost_share(interval_h * 3600, seconds, NEVER)
    return {"write_GBps": bytes / seconds / 1e9, "overhead_pct": 100 * lost}


NEVER = 1e18  # s: longer than the universe has lasted


@topic("checkpoint")
def _(days, failures, gpus):
    mtbf = reliability.observed_mtbf(days * DAY, failures)
    return {"mtbf_h": mtbf / 3600, "gpu_mtbf_h": reliability.device_mtbf(mtbf, gpus) / 3600}


@topic("checkpoint")
def _(C_s, M_s):
    interval = reliability.young_interval(C_s, M_s)
    return {"interval_s": interval, "overhead_fraction": reliability.lost_share(interval, C_s, M_s)}


@topic("parallelism_roofline")
def _(C, W_gpu, W_node):
    """Tokens a GPU, inside a node and between nodes, where W_node is a node's network and a node
    has 8 GPUs.

    The cases compare with a node's whole network: its 8 GPUs first sum what they have, and send it
    once.
    """
    inside, across = (parallel.data_parallel_tokens(C, W) for W in (W_gpu, W_node))
    return {
        "tp_alpha": inside,
        "dp_alpha": across,
        "tokens_per_gpu_intra": inside,
        "tokens_per_gpu_cross": across,
    }


topic(
    "parallelism_roofline",
    lambda C, W, batch, gpus: {
        "alpha": parallel.data_parallel_tokens(C, W),
        "tokens_per_gpu": parallel.tokens_per_chip(batch, gpus),
    },
    lambda bytes_moved_GB, GBps: {
        f"t{rate:.0f}_s": roofline.transfer_time(bytes_moved_GB * 1e9, rate * 1e9) for rate in GBps
    },
    # alpha is C / W of three axes at once: a peak of alpha over a link of 1.
    lambda alpha_3axis, chips: {
        "min_batch_tokens": parallel.data_parallel_tokens(alpha_3axis, 1) * chips
    },
    lambda batch, seq, gpus: {"tokens_per_gpu": parallel.tokens_per_chip(batch * seq, gpus)},
    # alpha is C / W of one axis of a torus; the source has two for FSDP, one for tensors.
    lambda alpha, F, B=1, N=1: {
        "min_tokens_per_chip": parallel.mixed_tokens(F, alpha, 2, 1),
        "tokens_per_chip": parallel.tokens_per_chip(B, N),
        "X_opt": parallel.best_fsdp_ways(B, N, F, 2, 1),
        "Y_max": parallel.tensor_parallel_ways(F, alpha, 1),
    },
    lambda F, axes, alpha: {"Y_max": parallel.tensor_parallel_ways(F, alpha, 1, axes)},
    # TRAP: the source divides by 1995, though its own C / W is 2200.
    lambda F, C, W: {"Y_max": parallel.tensor_parallel_ways(F, C, W)},
)


@topic("parallelism_roofline")
def _(experts, tokens_per_gpu, hidden, bytes, share_expert0):
    skew = parallel.skewed_exchange(tokens_per_gpu, hidden, experts, share_expert0, bytes)
    return {
        "gpu0_receive_MB": skew.hot_receives / 1e6,
        "gpu0_send_MB": skew.hot_sends / 1e6,
        "other_gpu_send_MB": skew.other_sends / 1e6,
        "other_gpu_receive_MB": skew.other_receives / 1e6,
    }


# --- chapter 6: params, kv_cache, memory_states, memory_activation ----------------------------


topic(
    "params",
    # GPT-2's family: tied embeddings, learned positions, an MLP four times as wide.
    lambda L, D, V, S: {
        "params": (
            from_sizes(
                L, D, 1, 4 * D, V, context=S, mlp_matrices=2, tied_embeddings=True
            ).parameters
        )
    },
    lambda L, D, F, N, H, V, K=0: _parts(from_sizes(L, D, N, F, V, head_width=H, kv_heads=K)),
    # No heads are given: N H = D, as in the source's question.
    lambda L, D, F, V: _parts(from_sizes(L, D, 1, F, V)),
)


def _parts(model):
    attention, mlp = (model.depth * part.matrices for part in (model.attention, model.mlp))
    parts = {
        "attn": attention,
        "ffw": mlp,
        "vocab": model.embeddings,
        "total": model.parameters,
        "params": model.parameters,
    }
    return parts | {
        "attn_fraction": attention / model.matrices,
        "kv_bytes_per_token_int8": model.kv_cache_bytes_per_token(1),
    }


@topic("params")
def _(L, D, F, E, k, N, K, H, V):
    model = from_sizes(L, D, N, F, V, head_width=H, kv_heads=K, experts=E, active_experts=k)
    return {"total_B": model.parameters / 1e9, "active_B": model.active_parameters / 1e9}


@topic("kv_cache")
def _(bytes_per_token, seq, batch, param_bytes):
    caches = bytes_per_token * seq * batch
    return {"kv_GB": caches / 1e9, "total_GB": math.fsum([param_bytes, caches]) / 1e9}


@topic("kv_cache")
def _(chips, hbm_GB, param_GB, kv_bytes_per_token, ctx):
    total, weights = chips * hbm_GB * 1e9, param_GB * 1e9
    return {
        "remaining_GB": memory.room_for(total, weights, 1e9),
        "num_kv": memory.room_for(total, weights, kv_bytes_per_token * ctx),
        "min_chips": memory.room_for(weights, 0, hbm_GB * 1e9),
    }


topic(
    "kv_cache",
    lambda L, heads, H, bytes, seq: {"GB": serving.kv_cache_bytes(L, heads, H, seq, bytes) / 1e9},
    lambda L, kv_heads, head_dim, bytes: {
        "bytes_per_token": serving.kv_cache_bytes(L, kv_heads, head_dim, 1, bytes)
    },
)


@topic("memory_states")
def _(L, h, TP, PP, bytes_per_param):
    """Calculon's profile counts the matrices of the layers alone."""
    layers = from_sizes(L, h, 1, 4 * h, 1, mlp_matrices=2)
    states = memory.training_state_bytes(layers.matrices / (TP * PP), str(bytes_per_param))
    return {"GiB": states.total / 2**30}


@topic("memory_states")
def _(params, gpus, offload):
    # The cases copy the documentation's table, which DeepSpeed's own code has left behind.
    estimate = memory.deepspeed_zero2_bytes(params, gpus, gpus, offload, by="documentation")
    return {"gpu_GiB": estimate.gpu / 2**30, "cpu_GiB": estimate.cpu / 2**30}


@topic("memory_states")
def _(dp):
    whole, split = (memory.training_state_bytes(1, "18", dp, stage).total for stage in (0, 1))
    return {"bytes_per_param_no_dist": whole, "bytes_per_param_dist_opt": split}


@topic("memory_states")
def _(params):
    mixed, both = (
        memory.training_state_bytes(params, recipe).total / 1e9 for recipe in ("16", "20")
    )
    return {"mixed_GB": mixed, "with_fp32_grads_GB": both}


topic(
    "memory_states",
    lambda params, N, stage, K=12: {"GB": memory.zero_bytes_per_device(params, N, stage, K) / 1e9},
)


topic(
    "memory_activation",
    # The source's F is 2.7 D, not whole; the law wants a hidden width.
    lambda L, D, F_over_D, tokens: {
        "act_bytes": memory.checkpoint_activation_bytes(tokens, L, D, round(F_over_D * D))
    },
    lambda L, s, b, h, n_heads: {"GiB": memory.activation_bytes(s, b, h, n_heads, L) / 2**30},
)


@topic("memory_activation")
def _(s, b, h, L, a, TP, PP, interleave):
    shape = (s, b, h, a, L, TP, PP, interleave)
    none = memory.activation_bytes(*shape)
    selective = memory.activation_bytes(*shape, split="tensor+sequence", recompute="selective")
    return {"none_GiB": none / 2**30, "seq_par_plus_selective_GiB": selective / 2**30}


@topic("memory_activation")
def _(h, a, s, TP):
    def percent(**choice):
        return (
            100
            * memory.activation_bytes(s, 1, h, a, tensor=TP, **choice)
            / memory.activation_bytes(s, 1, h, a, tensor=TP)
        )

    return {
        "seq_par_pct": percent(split="tensor+sequence"),
        "selective_pct": percent(recompute="selective"),
        "seq_par_selective_pct": percent(split="tensor+sequence", recompute="selective"),
        "full_recompute_pct": percent(recompute="full"),
    }


# --- chapter 6: training_throughput ------------------------------------------------------------


@topic("training_throughput", table=MEASURED)
def _(L, h, V, s, batch, GPUs, iter_s, peak_TF=math.inf):
    """From a measured step: the hardware's FLOP/s, forward passes done twice (factor 96)."""
    model = training_runs.gpt(L, h, HEADS, V, s)
    rate = training_step.flops_per_gpu(model, batch, s, GPUs, iter_s, "full")
    return {"TFLOPs_per_gpu": rate / 1e12, "pct_peak": rate / 1e10 / peak_TF}


HEADS = 1  # How a width is cut into heads changes no count of FLOPs.


def _rate(model, sequence, plan, gpu, network, peak_TF, counts="none"):
    """A GPU's work in the expected step; `counts`: recomputation that the source counts."""
    took = training_runs.expected_step(model, sequence, plan, gpu, network)
    rate = training_step.flops_per_gpu(
        model, plan.sequences, sequence, plan.gpus, took.time, counts
    )
    percent = rate / 1e10 / peak_TF
    return {
        "TFLOPs_per_gpu": rate / 1e12,
        "pct_peak": percent,
        "MFU_pct": percent,
        "aggregate_PFLOPs": rate * plan.gpus / 1e15,
    }


@topic("training_throughput", table=MEASURED)
def _(h, L, V, s, model_parallel_size, GPUs, batch, peak_TF):
    """Narayanan et al. (2021): A100 in nodes of 8 on HDR, all recomputed and counted."""
    model = training_runs.gpt(L, h, HEADS, V, s)
    degrees = model_parallel(model_parallel_size)
    plan = plan_of_batch(GPUs, batch, **degrees, recompute="full")
    rate = _rate(model, s, plan, "a100_80gb", "infiniband_hdr", peak_TF, "full")
    return {"params_B": model.parameters / 1e9} | rate


@topic("training_throughput", table=MEASURED)
def _(heads, h, L, TP, PP, DP, GPUs, batch, s, V, peak_TF):
    """Megatron-LM's H100 table: model FLOPs; chunks, not printed, are taken as one."""
    plan = plan_of_batch(GPUs, batch, tensor=TP, pipeline=PP)
    if plan.data != DP:
        raise ValueError(f"{GPUs} GPUs are {plan.data} replicas, not {DP}")
    return _rate(
        training_runs.gpt(L, h, heads, V, s), s, plan, "h100_sxm", "infiniband_ndr", peak_TF
    )


# Sequences of a step for each replica, by length: table 4 of Llama 3's paper (2024).
LLAMA3_BATCH = {8192: 32, 131072: 16}


@topic("training_throughput", table=MEASURED)
def _(GPUs, TP, CP, PP, DP, seq, peak_TF):
    """Llama 3 405B: model FLOPs. The chunks of its pipeline are not printed; one is taken."""
    plan = Plan(data=DP, tensor=TP, pipeline=PP, context=CP, micro_batches=LLAMA3_BATCH[seq])
    if plan.gpus != GPUs:
        raise ValueError(f"DP x TP x CP x PP = {plan.gpus}, not {GPUs} GPUs")
    return _rate(decoder("llama3_405b"), seq, plan, "h100_sxm", "infiniband_ndr", peak_TF)


@topic("training_throughput", table=MEASURED)
def _(model):
    """Korthikanti et al. (2022): a model's plans in the catalog, by a share of neither."""
    runs = [
        training_runs.training_runs()[f"korthikanti_{model.lower()}_{kind}"]
        for kind in ("selective", "full")
    ]
    selective, full = (training_runs.predicted(run) for run in runs)
    did = training_step.flops_per_gpu(
        runs[0].model,
        runs[0].plan.sequences,
        runs[0].sequence,
        runs[0].plan.gpus,
        selective.time,
        "selective",
    )
    return {
        "MFU_pct": 100 * selective.mfu,
        "HFU_pct": 100 * did / selective.peak,
        "iter_seq_selective_s": selective.time,
        "iter_full_recompute_s": full.time,
    }
