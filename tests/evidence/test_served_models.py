"""What is expected of served models that had no part in it, and what of it is NCCL's."""

import numpy as np
import pytest

from lightspeed_models.evidence.chips import of_buffers
from lightspeed_models.evidence.pairings import served_elsewhere
from lightspeed_models.evidence.residuals import weigh
from lightspeed_models.evidence.sets import dataset
from lightspeed_models.llm import IDEAL, engine


def test_a_hop_of_served_models_is_one_of_nccl():
    """Small all-reduces of another set, on eight GPUs: an engine's own exchanges take half."""
    nccl = dataset("nccl")
    small = (
        (nccl["operation"] == "all_reduce") & (nccl["ranks"] == 8) & (of_buffers(nccl)[0] <= 2**19)
    )
    hop = np.median(nccl["latency"][small]) / (2 * 7)
    assert 0.4 < engine("vllm").hop / hop < 1


@pytest.mark.holds("evidence", "prompts that join are not counted")
def test_another_set_is_expected_by_the_same_engine():
    """No constant has seen a row of it. Where the law falls short, it falls short one way."""
    rows, bound = served_elsewhere.steps(dataset("serving_energy"), IDEAL)
    assert len(rows) == 235 and (bound < rows["latency_median"]).all()
    found = weigh("served-elsewhere")
    assert found.all.median <= 0.27 < np.median(1 - bound / rows["latency_median"])
    assert np.mean(found.ratio < 1) > 0.75
