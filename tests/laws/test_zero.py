"""A step with ZeRO, event by event: traffic and memory at the end of it are those of the laws."""

import pytest

from lightspeed.errors import BadArgument
from lightspeed.memory import training_state_bytes
from lightspeed.parallel import data_parallel_bytes
from lightspeed_models.simulators.zero import step_events, step_states

EVERY = [
    (stage, n, layers, m)
    for stage in range(4)
    for n in (2, 3, 4, 8)
    for layers in (1, 2, 5)
    for m in (1, 2, 4)
]


def test_each_gpu_sends_the_bytes_of_the_law():
    for stage, n, layers, m in EVERY:
        last = step_states(stage, n, layers, m)[-1]
        sent = 2 * (last.sent_weights + last.sent_gradients)  # bytes, a layer of one parameter
        law = data_parallel_bytes(float(layers), n, stage, m)
        assert sent == pytest.approx(law), (stage, n, layers, m)


def test_between_steps_a_gpu_holds_the_weights_of_the_law():
    for stage, n, layers, m in EVERY:
        first, *_, last = step_states(stage, n, layers, m)
        assert first == type(first)(last.weights, last.gradients), (stage, n, layers, m)
        share = {"whole": 1, "shard": 1 / n}[first.weights[0]]
        law = training_state_bytes(1.0, "16", n, stage)
        assert 2 * share == pytest.approx(law.weights) and len(set(first.weights)) == 1


def test_gradients_held_before_the_update_are_those_of_the_law():
    for stage, n, layers, m in EVERY:
        events, states = step_events(stage, layers, m), step_states(stage, n, layers, m)
        backward = [i for i, e in enumerate(events) if e.kind == "backward"]
        after = states[backward[-1] + 1 + (stage >= 2)]  # of the last pass, once it was scattered
        share = sum({"whole": 1, "shard": 1 / n, "none": 0}[g] for g in after.gradients) / layers
        law = training_state_bytes(1.0, "16", n, stage)
        assert 2 * share == pytest.approx(law.gradients), (stage, n, layers, m)


def test_no_pass_runs_without_its_weights():
    for stage, n, layers, m in EVERY:
        events, states = step_events(stage, layers, m), step_states(stage, n, layers, m)
        done = []
        for event, before in zip(events, states, strict=False):
            if event.kind in ("forward", "backward"):
                assert before.weights[event.layer] == "whole", (stage, event)
                done.append((event.kind, event.layer))
        once = [("forward", i) for i in range(layers)]
        once += [("backward", i) for i in reversed(range(layers))]
        assert done == m * once
        # and at stage 3 no more than one layer is ever whole
        if stage == 3:
            assert max(s.weights.count("whole") for s in states) == 1


def test_bad_input_is_named():
    with pytest.raises(BadArgument, match="stage"):
        step_events(4, 2)
    with pytest.raises(BadArgument, match="n counts"):
        step_states(3, 1, 2)
