"""A step with ZeRO, event by event: traffic and memory at the end of it are those of the laws."""

import pytest
from laws import each

from lightspeed.errors import BadArgument
from lightspeed.memory import training_state_bytes
from lightspeed.parallel import data_parallel_bytes
from lightspeed_models.simulators.zero import step_events, step_states

SHARE = {"whole": 1.0, "none": 0.0}


@each("stage, n, layers, m", range(4), (2, 3, 4, 8), (1, 2, 5), (1, 2, 4))
def test_a_step_sends_and_holds_what_the_laws_say(stage, n, layers, m):
    events, states = step_events(stage, layers, m), step_states(stage, n, layers, m)
    first, *_, last = states
    share, law = SHARE | {"shard": 1 / n}, training_state_bytes(1.0, "16", n, stage)
    # Bytes, of layers of one parameter.
    sent = 2 * (last.sent_weights + last.sent_gradients)
    assert sent == pytest.approx(data_parallel_bytes(float(layers), n, stage, m))
    # Between steps.
    assert first == type(first)(last.weights, last.gradients)
    assert 2 * share[first.weights[0]] == pytest.approx(law.weights)
    assert len(set(first.weights)) == 1
    # After the last backward pass, once it was scattered.
    backward = max(i for i, event in enumerate(events) if event.kind == "backward")
    held = states[backward + 1 + (stage >= 2)].gradients
    assert 2 * sum(share[state] for state in held) / layers == pytest.approx(law.gradients)
    # No pass runs without its weights, and at stage 3 no more than one layer is ever whole.
    passes = [(e, s) for e, s in zip(events, states, strict=False) if e.kind.endswith("ward")]
    assert all(before.weights[event.layer] == "whole" for event, before in passes)
    once = [("forward", i) for i in range(layers)]
    once += [("backward", i) for i in reversed(range(layers))]
    assert [(event.kind, event.layer) for event, _ in passes] == m * once
    assert stage < 3 or max(state.weights.count("whole") for state in states) == 1


def test_bad_input_is_named():
    with pytest.raises(BadArgument, match="stage"):
        step_events(4, 2)
    with pytest.raises(BadArgument, match="n counts"):
        step_states(3, 1, 2)
