"""What following the planner's advice would have cost, on plans that were all run."""

from __future__ import annotations

from typing import Any

import numpy as np

from lightspeed_models.evidence.pairings.training import CLUSTER, SWEEP
from lightspeed_tools.plan.answer import three_that_differ
from lightspeed_tools.plan.search import ROOM

FEWEST = 10  # plans that finished, in a cell that is judged


def refused(plans: Any, room: float = ROOM) -> tuple[float, float]:
    """Of the plans of a `Sweep` that failed, and of those that finished, the parts that the planner
    refuses: by memory above so much of the card, more stages than layers, or fewer micro-batches
    than nanotron's pipeline asks for.
    """
    rows = plans.rows
    layers = np.array([SWEEP[name].depth for name in rows["model"]])
    stages = rows["pipeline"]
    no = (plans.memory > room * CLUSTER.capacity) | (stages > layers)
    no |= rows["accumulation"] < stages - 1
    return float(no[~plans.finished].mean()), float(no[plans.finished].mean())


def followed(plans: Any) -> np.ndarray:
    """Of a `Sweep`: the rate of the first pick and of the best of three that differ, each over that
    of the best plan, one column for each model and number of nodes. Memory is predicted, and a pick
    that failed scores nothing.
    """
    rows, rate = plans.rows, np.where(plans.finished, plans.rows["rate"], 0.0)
    fits = plans.memory <= ROOM * CLUSTER.capacity
    # A GPU's seconds for a token: steps of the sweep have batches of several sizes.
    pace = np.where(fits, plans.expected * rows["nodes"] / rows["batch"], np.inf)
    rates = []
    for model in rows["model"].present():
        for nodes in np.unique(rows["nodes"]):
            own = np.flatnonzero((rows["model"] == model) & (rows["nodes"] == nodes))
            if plans.finished[own].sum() < FEWEST:
                continue
            tensor, stages = rows["tensor"][own], rows["pipeline"][own]
            picks = own[three_that_differ(pace[own], plans.memory[own], tensor, stages, 8)]
            rates.append([rate[picks[0]] / rate[own].max(), rate[picks].max() / rate[own].max()])
    return np.array(rates, float).T


def against_pick(plans: Any, most: float) -> np.ndarray:
    """Of a `Sweep`: for each model, number of nodes and batch, what every other plan that finished
    took over what the first pick took, one column a plan: by the law, and measured. Plans that the
    law puts more than `most` times behind the pick are left out.
    """
    rows = plans.rows
    cells = np.stack([rows["nodes"], rows["batch"]], axis=1)
    ratios = [np.empty((2, 0))]
    for model in rows["model"].present():
        of_model = (rows["model"] == model) & plans.finished
        for cell in np.unique(cells[of_model], axis=0):
            own = np.flatnonzero(of_model & (cells == cell).all(axis=1))
            own = own[np.argsort(plans.expected[own], kind="stable")]
            both = np.stack([plans.expected[own], plans.took[own]])
            both = both[:, 1:] / both[:, :1]
            ratios.append(both[:, both[0] <= most])
    return np.concatenate(ratios, axis=1)
