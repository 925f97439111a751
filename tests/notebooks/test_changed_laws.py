"""One constant or one law is changed at a time, as by a slip, and the chapter that rests on it
must notice: by a claim that fails, not only by a number that moves.
"""

import pytest
from test_claims import run

from lightspeed_authoring.statements import ROOT

# chapter, table of the catalog, key, what stands there, what a slip would make of it
CONSTANTS = [
    ("01", "accelerators", "h100_sxm.hbm_capacity", "81559 MiB", "80 GB"),
    ("01", "accelerators", "h100_sxm.hbm_cycles", "700 cycles", "350 cycles"),
    ("01", "links", "nvlink4.links", "18 1", "12 1"),
    ("01", "links", "infiniband_ndr.end_to_end", "2.8 us", "28 us"),
    ("01", "links", "ethernet_10g.bandwidth", "10 Gbit/s", "10 GB/s"),
    ("01", "energy", "horowitz_45nm.dram", "640 pJ", "64 pJ"),
    ("01", "memory", "light.fibre", "200000 km/s", "300000 km/s"),
    ("01", "models", "adam_mixed_precision.variance", "4 byte", "2 byte"),
    ("02", "accelerators", "h100_sxm.hbm_bandwidth", "3.35 TB/s", "2.0 TB/s"),
    ("02", "accelerators", "a100_80gb.bf16", "312 TFLOPS", "624 TFLOPS"),
    ("02", "accelerators", "a100_80gb.hbm_bandwidth", "2039 GB/s", "1555 GB/s"),
    ("02", "accelerators", "tpu_v5e.bf16", "197 TFLOPS", "394 TFLOPS"),
    ("04", "accelerators", "h100_sxm.hbm_bandwidth", "3.35 TB/s", "4.8 TB/s"),
    ("04", "models", "llama2_70b.parameters", "68976648192 1", "34488324096 1"),
    ("06", "links", "infiniband_ndr.bandwidth", "400 Gbit/s", "800 Gbit/s"),
    ("07", "links", "efa_p5.adapter_bandwidth", "100 Gbit/s", "50 Gbit/s"),
    ("08", "links", "infiniband_ndr.bandwidth", "400 Gbit/s", "400 GB/s"),
    ("08", "networks", "roce.timeout_doublings", "16 1", "4 1"),
    ("08", "networks", "roce.mtu", "4096 byte", "1024 byte"),
    ("09", "accelerators", "h100_sxm.hbm_bandwidth", "3.35 TB/s", "2.0 TB/s"),
    ("10", "accelerators", "h100_sxm.hbm_capacity", "81559 MiB", "40000 MiB"),
]
FORMULAS = [
    ("02", "accelerators", "h100_sxm.bf16", "bf16_sparse / 2", "bf16_sparse"),
    ("05", "accelerators", "h100_sxm.fp8", "fp8_sparse / 2", "fp8_sparse"),
    ("07", "links", "nvlink4.bandwidth", "bandwidth_per_link * links", "2 * bandwidth_per_link"),
    ("07", "links", "efa_p5.bandwidth", "bandwidth_per_node / gpus", "bandwidth_per_node"),
]
# chapter, module of the library -> what stands there, what a slip would make of it
LAWS = {
    ("01", "roofline"): [
        ("return latency + size / bandwidth", "return size / bandwidth"),
    ],
    ("01", "datasheet"): [
        ("return 2 * distance / speed", "return distance / speed"),
        ("return clock * flops_per_clock * units", "return 2 * clock * units"),
    ],
    ("01", "training"): [
        ("(6 + 2 * recomputed) * parameters * tokens\n", "2 * parameters * tokens\n"),
    ],
    ("02", "roofline"): [
        ("minimum(peak, intensity * bandwidth)", "intensity * bandwidth"),
        ("return 2 * B * D * F\n", "return B * D * F\n"),
        ("return ridge * weight_bytes / 2", "return ridge * weight_bytes"),
        ("* (bm * k + k * bn + bm * bn) *", "* (bm * bn) *"),
        ("return D * (1 + 1 / G)", "return D"),
    ],
    ("03", "scaling"): [
        ("return divide(1, serial + parallel / n)", "return divide(1, serial) + n"),
        ("return n - serial * (n - 1)", "return n - serial * n"),
        ("(1 / speedup - 1 / n) / (1 - 1 / n)", "1 / speedup - 1 / n"),
        ("+ kappa * n * (n - 1))", "+ kappa * n)"),
        ("divide(1 - serial, kappa) ** 0.5", "divide(1 - serial, kappa)"),
    ],
    ("03", "training"): [
        ("flops / (n * peak * utilization)", "flops / (n * peak)"),
    ],
    ("04", "queueing"): [
        ("/ (service_rate - arrival_rate) / 2, rho)", "/ (service_rate - arrival_rate), rho)"),
        ("service_rate**-2.0) / (2 * (1 - rho))", "service_rate**-2.0) / (1 - rho)"),
        ("excess * burst_time / (capacity - arrival_rate)", "excess * burst_time / capacity"),
    ],
    ("04", "serving"): [
        ("return 2 * layers * kv_heads * head_dim", "return layers * kv_heads * head_dim"),
        ("        batch * kv + maximum(weights", "        maximum(weights"),
    ],
    ("05", "quantization"): [
        ("+ 10 * log10(3.0)", "- 10 * log10(3.0)"),
        ("return 20 * bits * log10(2.0)", "return 10 * bits * log10(2.0)"),
        ("return element_bits + scale_bits / block", "return element_bits + scale_bits"),
    ],
    ("05", "precision"): [
        ("return -self.bias if self.scale else 1 - self.bias", "return -self.bias"),
    ],
    ("06", "memory"): [
        ('"16": (2, 2, 12)', '"16": (2, 2, 8)'),
        ('"18": (2, 4, 12)', '"18": (2, 2, 12)'),
    ],
    ("06", "parallel"): [
        ("where(stage >= 3, 2 * micro_batches, 1)", "where(stage >= 3, micro_batches, 1)"),
        ("halves = 8 + 4 * forward_again", "halves = 4"),
        ("peak / (bandwidth * axes * tensor)", "peak / (bandwidth * axes)"),
    ],
    ("06", "pipeline"): [
        ("(chunks * micro_batches + stages - 1)", "(chunks * micro_batches)"),
        ("(stages - 1) / (chunks * micro_batches)\n", "stages / (chunks * micro_batches)\n"),
    ],
    ("06", "reliability"): [
        ("    return (2 * write * mtbf) ** 0.5", "    return (write * mtbf) ** 0.5"),
        ("root**2 / 9) - write", "root**2 / 9) + write"),
        ("return device_mtbf / devices", "return device_mtbf / devices**0.5"),
        ("(interval / 2 + restart) / mtbf", "(interval + restart) / mtbf"),
    ],
    ("07", "collectives"): [
        ("(2 if collective in TWICE else 1) * (n - 1) / n", "(n - 1) / n"),
        ("return algbw * busbw_factor", "return algbw / busbw_factor"),
        ("return ring_steps(collective, n) * (latency + size / (n * bandwidth))", "return size"),
        ("latency + busiest * size / bandwidth", "latency + size / bandwidth"),
    ],
    ("08", "networks"): [
        ("return 1 / (1 + loss * window", "return 1 / (1 + loss"),
        ("return 2 * bandwidth * delay + 2 * packet", "return bandwidth * delay + 2 * packet"),
        ("return quantile ** (1 / n)", "return quantile ** n"),
        ("return 1 - (1 - probability) ** n", "return probability"),
        ("(1 - minimum(bandwidth / (senders * rate), 1.0))", "1"),
        ("return buffer / burst + 1", "return buffer / burst"),
    ],
    ("08", "fabrics"): [
        ("return 2.0 * (radix // 2) ** levels", "return (radix // 2) ** levels"),
        ("bandwidth / maximum(oversubscription * leaving, 1.0)", "bandwidth / oversubscription"),
        ("__wrapped__(size / per_node, network,", "__wrapped__(size, network,"),
    ],
    ("09", "inference"): [
        (
            "acceptance_at = acceptance**i * fading ** (i * (i - 1) / 2)",
            "acceptance_at = acceptance",
        ),
    ],
    ("09", "serving"): [
        ("return batch / (tokens * step_time)", "return batch / step_time"),
    ],
    ("10", "parallel"): [
        ("halves = 8 + 4 * forward_again", "halves = 4"),
    ],
    ("11", "parallel"): [
        ("where(stage >= 3, 2 * micro_batches, 1)", "where(stage >= 3, micro_batches, 1)"),
    ],
}


def changes():
    """(chapter, file of the library, what stands there, what is read for it)."""
    for rows, field, close in ((CONSTANTS, "printed", '"'), (FORMULAS, "formula", '"')):
        for chapter, table, key, was, becomes in rows:
            head = f'[{key}]\n{field} = "'
            yield chapter, f"catalog/{table}.toml", head + was + close, head + becomes + close
    for (chapter, module), slips in LAWS.items():
        for was, becomes in slips:
            yield chapter, f"lightspeed/{module}.py", was, becomes


def test_what_is_changed_stands_there_once():
    library = ROOT / "lib/lightspeed"
    for _, file, was, _ in changes():
        text = (library / file.removeprefix("lightspeed/")).read_text("utf-8")
        assert text.count(was) == 1, f"{file}: {text.count(was)} times {was!r}"
    assert len({change[1:3] for change in changes()}) >= 40


@pytest.mark.slow
@pytest.mark.holds("docs/evidence.md", "Change one constant")
def test_a_chapter_notices_a_changed_constant_or_law():
    pages: dict[str, list[str]] = {}
    for path in sorted((ROOT / "chapters").glob("[01]*.py")):
        pages.setdefault(path.name[:2], []).append(f"chapters/{path.name}")
    # One page of the chapter has to: the next one is only asked about what this one has missed.
    missed = list(changes())
    for place in range(max(map(len, pages.values()))):
        asked = [change for change in missed if place < len(pages[change[0]])]
        jobs = [["false_claims", pages[chapter][place], *change] for chapter, *change in asked]
        for change, said in zip(asked, run(jobs), strict=True):
            if any(kind == "claim" for kind, _ in said):
                missed.remove(change)
    assert missed == []
