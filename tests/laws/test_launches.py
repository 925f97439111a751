"""What the host's launches cost: closed forms, and a profile that two engines' graphs leave."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightspeed.catalog import find, fitted
from lightspeed.inference import launched_time
from lightspeed_models.llm import decoder

seconds = st.floats(1e-7, 1.0)


@given(kernels=st.integers(1, 10**5), work=seconds, launch=seconds, wait=seconds)
def test_the_longer_of_host_and_gpu_sets_the_pace(kernels, work, launch, wait):
    time = launched_time(kernels, work, launch, wait)
    assert time >= kernels * launch and time >= work
    assert launched_time(kernels, work, 0) == work  # a launch that costs nothing is not seen
    # The host's clock of a queue that never runs dry: kernel i starts once it is there.
    assert launched_time(kernels, 0, launch) == pytest.approx(kernels * launch)
    assert time == max(launched_time(kernels, 0, launch), launched_time(kernels, work, 0, wait))


@pytest.mark.parametrize("engine", ["sglang", "vllm"])
def test_a_cycle_takes_as_long_as_the_longer_side(engine):
    """Within 5 % of two profiles, and never above them."""
    graph = find(f"graph_{engine}")
    wait = (graph.span - graph.busy) / graph.nodes
    time = launched_time(graph.nodes, graph.busy + graph.drafts, graph.host / graph.nodes, wait)
    assert 0.95 < time / graph.cycle <= 1


@pytest.mark.parametrize("engine", ["sglang", "vllm"])
def test_launches_explain_about_half_of_the_fitted_host_time(engine):
    """Kernels a layer times what one costs in a graph, beside the fitted time of a layer with
    experts. The rest stays unexplained: waits between kernels are a fifth of it at most.
    """
    graph, host = find(f"graph_{engine}"), fitted("engines")[engine]["fitted"]["expert_host"]
    kernels = graph.nodes / decoder("DeepSeek-V4-Flash").depth
    assert 0.4 < kernels * graph.launch_of_a_kernel / host["value"] < 0.75
    waits = (graph.span - graph.busy) / graph.nodes
    assert kernels * waits / host["value"] < 0.21
