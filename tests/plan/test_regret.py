"""What following the planner's advice would have cost, end to end: memory is predicted, a pick that
failed scores nothing, and the model that is judged had no part in the fit.
"""

import numpy as np
import pytest

from lightspeed_models.evidence.pairings import training
from lightspeed_models.evidence.sets import dataset
from lightspeed_tools.plan.followed import followed
from lightspeed_tools.plan.search import ROOM


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


def test_failures_refused_by_memory(sweep):
    over = sweep.memory > ROOM * training.CLUSTER.capacity
    assert over[~sweep.finished].mean() >= 0.87
    assert over[sweep.finished].mean() <= 0.05
