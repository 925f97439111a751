"""The catalog's data: sourced, consistent, complete. The loader has its own tests."""

import itertools
import math
import re
import tomllib
from importlib.resources import files

import pytest
from laws import each

from lightspeed import catalog
from lightspeed.units import Q
from lightspeed_course.content.wrong_claims import claims

RAW = {
    k: tomllib.loads(files("lightspeed.catalog").joinpath(f"{k}.toml").read_text("utf-8"))
    for k in catalog.KINDS
}
SOURCES = tomllib.loads(files("lightspeed.catalog").joinpath("sources.toml").read_text("utf-8"))
NUMBERS = {
    f"{key}.{name}": (kind, raw)
    for kind, table in RAW.items()
    for key, entry in table.items()
    for name, raw in entry.items()
    if isinstance(raw, dict)
}
DATACENTRE = [
    "v100_sxm", "a100_40gb", "a100_80gb", "h100_sxm", "h100_pcie", "h200_sxm", "b200", "gb200",
    "rubin", "mi300x", "mi325x", "mi350x", "mi355x", "tpu_v4", "tpu_v5e", "tpu_v5p", "tpu_v6e",
    "tpu7x", "trainium2", "trainium3", "gaudi3",
]  # fmt: skip
SMALL = ["apple_m4_max", "apple_a17_pro", "ryzen_9_7950x"]
LINKS = [
    "pcie3_x16", "pcie4_x16", "pcie5_x16", "pcie6_x16", "nvlink3", "nvlink4", "nvlink5", "nvlink6",
    "neuronlink4", "ici_v7x", "infiniband_ndr", "infiniband_xdr", "efa_p5", "ethernet_100g",
    "ethernet_200g", "ethernet_400g", "ethernet_800g", "ici_v4", "ici_v5e", "ici_v5p", "ici_v6e",
]  # fmt: skip


def accelerators():
    return catalog.entries("accelerators")


def _terms(key, formula):
    own = key.partition(".")[0]
    return {
        t: t if "." in t else f"{own}.{t}" for t in re.findall(r"\b[a-z_]\w*(?:\.\w+)?", formula)
    }


# ------------------------------------------------------------------ sources


@each("key", NUMBERS)
def test_every_number_is_finite_and_leads_to_dated_sources(key):
    n = catalog.number(key)
    assert math.isfinite(n) and n > 0
    assert n.sources and n.source.title and n.read
    for other in n.others:
        assert other["source"].key in SOURCES and other["why"], key
        catalog.parse(other["printed"])


@each("key", NUMBERS)
def test_a_number_is_printed_by_a_source_or_computed(key):
    _, raw = NUMBERS[key]
    assert ("printed" in raw) != ("formula" in raw)
    assert ("source" in raw) or ("formula" in raw)
    assert ("unit" in raw) == ("formula" in raw), (
        "the unit of a printed number is part of what is printed"
    )


def test_where_sources_contradict_each_other_the_winner_has_a_reason():
    silent = []
    for key, (_, raw) in NUMBERS.items():
        if "others" in raw and "rule" not in raw:
            value = float(catalog.number(key))
            apart = [
                o["printed"]
                for o in raw["others"]
                if abs(catalog.parse(o["printed"])[0] / value - 1) > 0.02
            ]
            bits = raw.get("direction") == "one way"
            apart = [
                p for p in apart if not (bits and math.isclose(catalog.parse(p)[0], 2 * value))
            ]
            if apart and not raw.get("note"):
                silent.append((key, apart))
    assert not silent, silent


def test_sources_are_complete_and_distinct():
    read = re.compile(
        r"\b(second hand|copy|copies|stored file)\b|^(a definition|chosen for teaching)"
    )
    for key, s in SOURCES.items():
        missing = [field for field in ("title", "how", "read") if not s.get(field)]
        assert not missing, f"sources.toml: {key} lacks {', '.join(missing)}"
        how = f"sources.toml: {key}: how = {s['how']!r}: expected is a copy that was read, or"
        assert read.search(s["how"]), f"{how} second hand and through what: memory is no source"
    addresses = [s["address"] for s in SOURCES.values() if "address" in s]
    assert len(addresses) == len(set(addresses))
    assert all(a.startswith(("https://", "http://")) for a in addresses)


def test_every_source_is_used():
    used = {s.key for key in NUMBERS for s in catalog.number(key).sources}
    used |= {o["source"].key for key in NUMBERS for o in catalog.number(key).others}
    used |= {e["source"] for e in RAW["models"].values() if "source" in e}
    used |= {claim.source for claim in claims()}
    assert set(SOURCES) == used


# ------------------------------------------------------------------ the format


def test_entry_keys_are_unique_over_all_files():
    keys = list(itertools.chain.from_iterable(RAW.values()))
    assert len(keys) == len(set(keys))


def test_plain_metadata_hides_no_quantity():
    allowed = {"year", "m", "n", "k", "weight_bytes"}
    for kind, table in RAW.items():
        for key, entry in table.items():
            numeric = {
                n
                for n, v in entry.items()
                if isinstance(v, (int, float)) and not isinstance(v, bool)
            }
            assert numeric <= allowed, (kind, key, numeric - allowed)


def test_facts_about_software_name_their_release_and_grow_old():
    habits = {
        "prefix_caching": {"on", "off"}, "when_full": {"evicts", "reserves"},
        "prompts": {"beside", "apart"}, "pxn": {"on", "off"}, "profile_ready": {"a cycle"},
        "zero": {"use-distributed-optimizer"}, "schedule": {"1F1B"},
    }  # fmt: skip
    for key, e in catalog.entries("software").items():
        about = dict(e.about)
        assert about.pop("release"), key
        assert about.pop("again") > about.pop("read") >= max(n.read for n in e.numbers.values())
        assert all(value in habits[name] for name, value in about.items()), (key, about)
    assert catalog.find("vllm").memory_share == 0.92
    assert 4 < catalog.find("nccl").timeout < 4.5  # 4.096 us times two to the twentieth


@each("key", [k for k, (_, raw) in NUMBERS.items() if "formula" in raw])
def test_a_formula_has_the_dimension_of_its_unit(key):
    _, raw = NUMBERS[key]
    terms = _terms(key, raw["formula"])
    code = raw["formula"]
    values = {}
    for i, (term, full) in enumerate(sorted(terms.items(), key=lambda t: -len(t[0]))):
        code = re.sub(rf"(?<![\w.]){re.escape(term)}(?![\w.])", f"X{i}", code)
        values[f"X{i}"] = Q(float(catalog.number(full)), catalog.number(full).unit)
    result = eval(code, {"__builtins__": {}}, values)
    expected = Q(float(catalog.number(key)), raw["unit"])
    if not terms:
        result = Q(result, "")
    assert result.check(expected.dimensionality), (result, raw["unit"])
    assert math.isclose((result / expected).to("").magnitude, 1, rel_tol=1e-12)


def test_entries_depend_on_each_other_in_one_direction_only():
    needs = {}
    for key, (_, raw) in NUMBERS.items():
        for term in _terms(key, raw.get("formula", "")).values():
            if term.partition(".")[0] != key.partition(".")[0]:
                needs.setdefault(key.partition(".")[0], set()).add(term.partition(".")[0])
    done = set()
    while needs:
        free = {k for k in needs if needs[k] <= done | (set().union(*needs.values()) - set(needs))}
        assert free, f"a circle among {sorted(needs)}"
        done |= free
        needs = {k: v for k, v in needs.items() if k not in free}


# ------------------------------------------------------------------ what must be there


def test_the_required_machines_and_links_are_there():
    assert set(DATACENTRE + SMALL) <= set(accelerators())
    assert set(LINKS) <= set(catalog.entries("links"))


@each("key", DATACENTRE)
def test_a_data_centre_accelerator_has_what_a_roofline_needs(key):
    e = catalog.accelerator(key)
    peak = e.fp16 if key == "v100_sxm" else e.bf16
    assert peak.density == "dense" and peak.scope == "chip" and peak.unit == "FLOP/s"
    assert e.hbm_bandwidth.unit == "byte/s" and e.hbm_capacity.unit == "byte"
    assert 50 < peak / e.hbm_bandwidth < 700
    unpublished = {
        "rubin": {"power"},
        "tpu7x": {"power"},
        "trainium2": {"power"},
        "trainium3": {"power"},
        "tpu_v5e": {"power"},
        "tpu_v5p": {"power"},
        "tpu_v6e": {"power"},
    }
    missing = {f for f in ("power", "link_bandwidth") if f not in e}
    assert missing == unpublished.get(key, set())


@each("key", SMALL)
def test_a_small_machine_has_a_peak_and_a_memory(key):
    e = catalog.accelerator(key)
    assert any(f in e for f in ("int8", "fp32_vector")) and e.hbm_bandwidth.note
    assert e.hbm_bandwidth == e.dram_bandwidth


@pytest.mark.parametrize(
    "key", ["cpu_register", "cpu_l1", "cpu_l2", "cpu_l3", "cpu_dram", "gpu_l1", "gpu_l2", "gpu_hbm"]
)
def test_the_latency_ladder_has_its_rungs(key):
    e = catalog.memory(key)
    assert e.kind == key.partition("_")[0] and e.latency.unit == "s"


# ------------------------------------------------------------------ the numbers agree with each oth


def test_peaks_are_dense_unless_named_sparse():
    for key, e in accelerators().items():
        for name, n in e.numbers.items():
            if n.unit == "FLOP/s":
                assert n.density == ("sparse" if name.endswith("_sparse") else "dense"), (
                    f"{key}.{name}"
                )
            if name.endswith("_sparse"):
                dense = name.removesuffix("_sparse")
                assert dense in e, f"{key}.{name}: give {dense} too, which is what laws take"
                assert e.numbers[dense] < n, f"{key}.{name}"
                if math.isclose(n, 2 * e.numbers[dense]):
                    raw = RAW["accelerators"][key]
                    assert "formula" in raw[name] or "formula" in raw[dense], (
                        f"{key}.{name}: one of the two is derived"
                    )


def test_numbers_of_one_name_have_one_unit():
    """A power of "300" passes as a plain number, and an int8 rate in FLOP/s as any other rate."""
    chips = [*accelerators().values(), *catalog.entries("tested").values()]
    h100 = catalog.find("h100_sxm").numbers
    usual = {n: v.unit for e in chips for n, v in e.numbers.items()} | {
        n: v.unit for n, v in h100.items()
    }
    odd = [
        f"{v.key} is in {v.unit or 'no unit'}, others in {usual[n] or 'none'}"
        for e in chips
        for n, v in e.numbers.items()
        if v.unit != usual[n]
    ]
    assert not odd, "\n".join(odd)


def test_fewer_bits_are_never_slower():
    order = ["fp64", "tf32", "bf16", "fp8", "fp6", "fp4"]
    for e in accelerators().values():
        have = [e.numbers[p] for p in order if p in e]
        assert have == sorted(have), e.key


def test_both_directions_are_twice_one():
    seen = 0
    for kind in ("accelerators", "links"):
        for e in catalog.entries(kind).values():
            for name, n in e.numbers.items():
                if name.endswith("bandwidth_bidirectional"):
                    one = e.numbers[name.removesuffix("_bidirectional")]
                    assert (
                        n == 2 * one and n.direction == "both ways" and one.direction == "one way"
                    ), e.key
                    seen += 1
    assert seen > 30


def test_every_link_states_its_direction():
    for e in catalog.entries("links").values():
        assert e.bandwidth.direction == "one way" and e.bandwidth.scope in (
            "link",
            "port",
            "chip",
        ), e.key


@pytest.mark.parametrize(
    "key, peak, units, tolerance",
    [
        ("v100_sxm", "fp16", "tensor_core_count", 0.005),
        ("a100_80gb", "bf16", "tensor_core_count", 0.001),
        ("h100_sxm", "bf16", "tensor_core_count", 0.001),
        ("h200_sxm", "bf16", "tensor_core_count", 0.001),
        ("mi300x", "bf16", "tensor_core_count", 0.001),
        ("mi355x", "bf16", "tensor_core_count", 0.01),
        ("tpu_v5e", "bf16", "mxu_count", 0.002),
        ("tpu_v5p", "bf16", "mxu_count", 0.002),
    ],
)
def test_peak_is_clock_times_flop_per_cycle_times_units(key, peak, units, tolerance):
    e = catalog.accelerator(key)
    assert math.isclose(
        e.clock * e.flop_per_cycle * e.numbers[units], e.numbers[peak], rel_tol=tolerance
    )


def test_the_clock_that_is_often_quoted_for_the_h100_does_not_give_its_peak():
    h100 = catalog.accelerator("h100_sxm")
    (boost,) = [
        catalog.parse(o["printed"])[0] for o in h100.clock.others if o["printed"].startswith("1980")
    ]
    assert boost * h100.flop_per_cycle * h100.tensor_core_count > 1.05 * h100.bf16


def test_a_level_further_away_is_slower_and_narrower():
    for levels in (
        ["cpu_register", "cpu_l1", "cpu_l2", "cpu_l3", "cpu_dram"],
        ["gpu_shared", "gpu_l1", "gpu_l2", "gpu_hbm"],
    ):
        levels = [catalog.memory(k) for k in [*levels, "nvme_ssd"]]
        for near, far in itertools.pairwise(levels):
            assert near.latency < far.latency
        wide = [e.bandwidth for e in levels if "bandwidth" in e]
        assert all(a >= b for a, b in itertools.pairwise(wide))
        assert wide[0] > wide[-1]


def test_chip_memories_of_an_accelerator_are_faster_than_its_hbm():
    for e in accelerators().values():
        for name in (
            "shared_bandwidth",
            "vmem_bandwidth",
            "sram_bandwidth",
            "last_level_bandwidth",
            "l2_bandwidth",
        ):
            if name in e:
                assert e.numbers[name] > e.hbm_bandwidth, f"{e.key}.{name}"


def test_hbm_is_ten_to_twenty_times_the_l1_not_three_hundred():
    for key in ("v100_sxm", "a100_80gb", "h100_sxm"):
        e = catalog.accelerator(key)
        assert 10 < e.hbm_cycles / e.l1_cycles < 20


def test_no_light_is_faster_than_light():
    light = catalog.memory("light")
    assert 0.6 < light.fibre / light.vacuum < 0.7
    for key in ("path_hall", "path_country", "path_atlantic", "path_pacific"):
        path = catalog.memory(key)
        assert path.round_trip == 2 * path.latency
    atlantic = catalog.memory("path_atlantic")
    assert 1 < atlantic.measured_round_trip / atlantic.round_trip < 1.1


def test_energy_follows_the_published_ratios():
    e = catalog.energy("horowitz_45nm")
    assert math.isclose(e.dram / e.fp16_fma, 427, rel_tol=0.001)
    assert math.isclose(e.dram / e.fp16_multiply, 582, rel_tol=0.001)
    assert e.cache_8kb < e.cache_32kb < e.cache_1mb < e.dram <= e.dram_64b_least / 2
    for op in ("int8", "fp16", "fp32"):
        assert e.numbers[f"{op}_add"] < e.numbers[f"{op}_multiply"] < e.numbers[f"{op}_fma"]


def test_a_measured_matmul_stays_under_its_peak():
    for e in catalog.entries("measured").values():
        if "share" in e:
            assert 0.5 < e.share < 1, e.key
        if "time" in e:
            machine = catalog.accelerator(e.accelerator)
            ideal = max(
                2 * e.m * e.n * e.k / machine.numbers[e.precision],
                e.n * e.k * e.weight_bytes / machine.hbm_bandwidth,
            )
            # A kernel of few bytes pays as much again for its start.
            assert ideal < e.time < (2.5 if ideal < 1e-5 else 2) * ideal, e.key


def test_training_state_adds_up_to_sixteen_bytes_with_the_gradients():
    e = catalog.entries("models")["adam_mixed_precision"]
    assert e.total == 16 and e.total - e.gradients == 14
