"""What the time models say of rows that had no part in them: figures of the shipped samples, with
a margin for another platform's last bits.
"""

from dataclasses import asdict, replace

import numpy as np
import pytest

from lightspeed.catalog import fitted
from lightspeed_models.evidence.pairings import products, training
from lightspeed_models.evidence.sets import dataset
from lightspeed_models.products import kernel
from lightspeed_models.stack import stack
from lightspeed_models.stack_fit import fit_stack
from lightspeed_models.step_memory import footprint


def errors(predicted, measured):
    off = np.abs(predicted / measured - 1)
    return float(np.median(off)), float(np.quantile(off, 0.9))


@pytest.fixture(scope="module")
def sweep():
    return training.sweep(dataset("training_sweep"))


@pytest.fixture(scope="module")
def finished(sweep):
    return sweep.where(sweep.finished)


def test_no_run_is_faster_than_its_bound(finished):
    rows, bound, measured = finished.rows, finished.bound, finished.took
    assert len(rows) == 1732
    assert (bound < measured).all(), rows.name(int(np.argmax(bound / measured)))
    median, _ = errors(bound, measured)
    assert median == pytest.approx(0.816, abs=0.01)  # a bound says little of untuned runs


def kinds(rows):
    """Name -> mask of runs, by their plan alone."""
    return {
        "no pipeline, up to 32 nodes": (rows["pipeline"] == 1) & (rows["nodes"] <= 32),
        "clean": training.clean(rows),
        "all": np.ones(len(rows), bool),
    }


def test_a_model_left_out_is_expected(finished):
    """Targets of the course."""
    rows, expected, measured = finished.rows, finished.expected, finished.took
    masks = kinds(rows)
    masks["clean"] = masks["clean"] & (rows["memory"] < training.FULL)
    for name, median, p90 in (
        ("no pipeline, up to 32 nodes", 0.08, 0.35),
        ("clean", 0.10, 0.55),
        ("all", 0.14, 0.90),
    ):
        reached = errors(expected[masks[name]], measured[masks[name]])
        assert reached[0] <= median, (name, reached)
        assert reached[1] <= p90, (name, reached)


def test_the_plan_ranked_first(sweep):
    """Memory is predicted, a plan that did not finish scores nothing; the oracle knows both."""
    masks = kinds(sweep.rows)
    for name, cells, mean, p10, oracle, worst in (
        ("no pipeline, up to 32 nodes", 17, 0.97, 0.90, 0.97, 0.90),
        ("clean", 21, 0.94, 0.90, 0.96, 0.85),
        ("all", 25, 0.85, 0.42, 0.87, 0.0),
    ):
        plans = sweep.where(masks[name])
        score = training.regret(plans, plans.expected)
        assert len(score.end_to_end) == len(score.oracle) == cells
        assert score.end_to_end.mean() >= mean, (name, score)
        assert np.quantile(score.end_to_end, 0.1) >= p10, (name, score)
        assert score.oracle.mean() >= oracle, (name, score)
        assert score.oracle.min() >= worst, (name, score)


def test_a_failed_plan_scores_nothing(sweep):
    """Who ranks by what was measured is right in each cell; who ranks failed plans first, and is
    told that they fit, is wrong in each where some failed; the oracle never sees them.
    """
    best = training.regret(sweep, np.where(sweep.finished, sweep.took, 1e9))
    assert best.oracle.max() == best.end_to_end.max() == 1
    hopeful = replace(sweep, memory=np.zeros(len(sweep.took)))
    score = training.regret(hopeful, np.where(sweep.finished, sweep.took, 1e-9))
    assert (score.end_to_end == 0).mean() > 0.9
    assert score.oracle.tolist() == best.oracle.tolist()


def test_one_factor_is_no_model(finished):
    """The bound times the factor that suits all runs best is worse than the expectation."""
    rows, bound = finished.rows, finished.bound
    expected, measured = finished.expected, finished.took
    plain = (rows["pipeline"] == 1) & (rows["nodes"] <= 32)
    scaled = bound[plain] * np.median(measured[plain] / bound[plain])
    median, _ = errors(scaled, measured[plain])
    assert median > 4 * errors(expected[plain], measured[plain])[0]


def test_the_shipped_stack_is_the_fit(finished):
    slow = training.ailing(finished.rows)
    works = training.works_of(finished.rows, training.NANOTRON)
    healthy, ails = training.fit_sweep(works, finished.took, slow)
    shipped = stack("nanotron_h100", "slow_collectives")
    for name in (*training.HEALTHY, *training.STATE):
        source = ails if name in training.STATE else healthy
        assert getattr(shipped, name) == pytest.approx(getattr(source, name), rel=0.02), name


def test_memory_of_a_model_left_out(finished):
    measured = finished.rows["memory"]
    assert errors(finished.memory, measured)[0] <= 0.075
    # Counts alone, without the two fitted constants, are far less.
    counted = training.footprints_of(finished.rows, training.COUNTED)
    assert (counted < measured).mean() > 0.9
    assert 0.15 < errors(counted, measured)[0] < 0.25


def test_the_shipped_footprint_is_the_fit(finished):
    holds, measured = footprint("nanotron_h100"), finished.rows["memory"]
    totals = {
        kept: training.footprints_of(finished.rows, replace(training.COUNTED, kept=float(kept)))
        for kept in training.KEPT
    }
    kept, base = training.fit_memory(totals, measured)
    assert holds.kept == pytest.approx(kept, abs=0.05)
    assert holds.base == pytest.approx(base, abs=1.5e8)


@pytest.mark.slow
def test_what_a_sweep_cannot_tell():
    """The rows of FSDP bound the host's time, and say nothing of rings over nodes."""
    rows = dataset("fsdp")
    one = rows.where(rows["chip"] == "a100_80gb")
    fit = fit_stack(training.fsdp_runs(one), training.FOUNDRY, resamples=10)
    assert fit.untold["ring"] == "no row depends on it"
    assert "at most 0.02" in fit.untold["host"]
    assert set(fitted("stacks")["foundry_a100_80gb"]["untold"]) == set(fit.untold)
    low, high = fit.intervals["share"]
    assert low < stack("foundry_a100_80gb").share < high


@pytest.mark.slow
@pytest.mark.holds("evidence", "A chip whose cache holds the operands", "the host sets the pace")
def test_a_chip_left_out_is_expected():
    rows = dataset("gemm")
    predicted, low, high = products.left_out(rows)
    chosen = ~np.isnan(predicted) & (rows["format"] == products.WIDE)
    off = np.abs(predicted / rows["latency"] - 1)
    of = {c: off[chosen & (rows["chip"] == c)] for c in products.SET_BY}
    assert np.mean([o.mean() for o in of.values()]) <= 0.14, {c: o.mean() for c, o in of.items()}
    # L40S: most of its rows fit its cache, which the law does not know of.
    assert np.median(off[chosen & (rows["chip"] == "l40s")]) <= 0.25
    every = ~np.isnan(predicted)
    medians = {c: np.median(off[every & (rows["chip"] == c)]) for c in products.SET_BY}
    assert np.mean(list(medians.values())) <= 0.125, medians
    means = {c: off[every & (rows["chip"] == c)].mean() for c in products.SET_BY}
    assert np.mean(list(means.values())) <= 0.18, means
    # What the host sets the pace of is furthest off, and no constant of a chip could tell it.
    alone = every & products.live(rows)
    assert off[alone].mean() > 2 * off[every & ~products.live(rows)].mean()
    # Made for nine tenths by chips that others predict, which a new chip is not quite like.
    inside = (low <= rows["latency"]) & (rows["latency"] <= high)
    covered = {c: inside[every & (rows["chip"] == c)].mean() for c in products.SET_BY}
    assert all(0.80 <= share <= 0.95 for share in covered.values()), covered
    assert inside[every & rows["chip"].isin(products.SET_BY)].mean() > 0.87
    # Each chip is judged, or left by name and reason.
    for wide in (True, False):
        one = products.judge(rows, wide)
        silent = {said.partition(",")[0] for said, _ in one.left}
        assert silent == {"gb200", "b300"} == set(rows["chip"].present()) - set(products.CLASSES)
        assert {why for _, why in one.left} == {products.COPIED}
        count = sum(int(said.split(", ")[2].split()[0].replace(",", "")) for said, _ in one.left)
        kind = (rows["format"] == products.WIDE) == wide
        assert len(one.predicted) + count == kind.sum()


@pytest.mark.slow
def test_narrow_products_pay_for_their_activations():
    """A count and no constant: the pass that makes activations narrow brings the shares of fp8 and
    fp4 nearer to those of bf16, and the error down on chips that set none of them.
    """
    rows = dataset("gemm")
    known, library, measured = products.columns(rows)
    without = {**known, "narrowed": np.zeros(len(rows))}
    for kind, chip, sister in (
        ("fp8", "h100_sxm", "h200_sxm"),
        ("nvfp4", "b200", "gb300"),
        ("nvfp4", "gb300", "b200"),
    ):
        own, by = (
            (rows["format"] == kind) & (rows["chip"] == c) & rows["library"].lookup(sglang, bool)
            for c in (chip, sister)
        )
        off, shares = [], []
        for given in (known, without):
            found = products.learner(given, library, measured)(by)
            shares.append(found[0][0])
            told = products.expected(given, library, own, *found)
            off.append(np.abs(told / measured[own] - 1).mean())
        assert off[0] < 0.9 * off[1], (kind, chip, off)
        assert shares[0] > 1.1 * shares[1], (kind, chip, shares)


def sglang(name):
    return name.startswith("SGLang")


@pytest.mark.parametrize("shown", (("bfloat16", "all"), pytest.param(None, marks=pytest.mark.slow)))
def test_the_shipped_kernel_is_the_fit(shown):
    rows = dataset("gemm")
    known, library, measured = products.columns(rows)
    spelt = {"TRTLLM": "TensorRT-LLM", "VLLM": "vLLM", products.ALONE: "vLLM, launched one by one"}
    for kind, classes in fitted("products").items():
        for chips in classes if kind not in ("source", "chips") else ():
            if shown and shown != (kind, chips):
                continue
            of = [c for c in products.SET_BY if chips in ("all", products.CLASSES[c])]
            own = rows["chip"].isin(of) & (rows["format"] == kind)
            part = {name: column[own] for name, column in known.items()}
            constants, names = products.fit(part, library[own], measured[own])
            assert classes[chips]["rows"] == own.sum()
            for name, launch in zip(names, constants[3:], strict=True):
                shipped = asdict(kernel(kind, chips, spelt.get(name, name)))
                refitted = (*constants[:3], launch)
                for what, value in zip(
                    ("compute_share", "memory_share", "loop", "launch"), refitted, strict=True
                ):
                    assert shipped[what] == pytest.approx(value, rel=0.03), (kind, chips, what)
