"""What following the planner's advice would have cost, end to end: memory is predicted, a pick that
failed scores nothing, and the model that is judged had no part in the fit.
"""

from dataclasses import replace

import numpy as np
import pytest

from lightspeed_models.evidence.pairings import training
from lightspeed_models.evidence.sets import dataset
from lightspeed_models.llm import decoder
from lightspeed_tools.plan.followed import against_pick, followed, refused
from lightspeed_tools.plan.inputs import cluster_of, given_stack
from lightspeed_tools.plan.space import space


@pytest.fixture(scope="module")
def sweep():
    return training.sweep(dataset("training_sweep"))


def test_first_and_best_of_three(sweep):
    for mask, cells, first, low, three in (
        (training.clean(sweep.rows), 21, 0.94, 0.90, 0.95),
        (np.ones(len(sweep.rows), bool), 25, 0.85, 0.42, 0.93),
    ):
        one, best = followed(sweep.where(mask))
        assert len(one) == cells
        assert one.mean() >= first and np.quantile(one, 0.1) >= low, one
        assert best.mean() >= three and (best >= one).all(), best


def test_failures_refused(sweep):
    """With room to spare the first picks run; what is sure to fail is refused later."""
    caught, false = refused(sweep)
    assert caught >= 0.90 and false <= 0.048
    later, fewer = refused(sweep, 0.86)
    assert later >= 0.89 and fewer <= 0.035


def test_memory_is_predicted(sweep):
    off = np.abs(sweep.memory / sweep.rows["memory"] - 1)[sweep.finished]
    assert np.median(off) <= 0.075


def test_a_rule_of_a_stack_is_a_rule_of_its_space():
    """nanotron's pipeline asserts as many micro-batches as stages, less one; Megatron's doesn't."""
    model = decoder("llama3_8b")
    for key, fewest in (("nanotron_h100", 8), ("megatron_h100", 1)):
        setting, _ = given_stack(key, cluster_of("h100_sxm:64"), model)
        plans = space(model, 64, 8, 64, 4096, setting.able)
        rows = plans.allowed.any(axis=(1, 2)) & (plans.rows["pipeline"] == 8)
        assert plans.rows["micro_batches"][rows].min() == fewest


def test_two_plans_of_a_cell_are_held_against_its_pick(sweep):
    """Where each plan takes the law's time but for what its cell and chance add, a common delay
    cancels, and the law's lead stays; a plan of its own delay is found.
    """
    rows, rng = sweep.rows, np.random.default_rng(5)
    cell = rows["nodes"] * 1e6 + rows["batch"] * 1e-3
    took = np.where(sweep.finished, sweep.expected * (1 + cell % 7), np.nan)
    law, measured = against_pick(replace(sweep, took=took), 1.1)
    assert len(law) > 100 and (law >= 1).all() and law.max() <= 1.1
    assert np.allclose(measured, law)
    stray = took * rng.choice((1.0, 1.2), len(took))
    law, measured = against_pick(replace(sweep, took=stray), 1.1)
    assert {*np.unique((measured / law).round(6))} == {round(1 / 1.2, 6), 1.0, 1.2}
