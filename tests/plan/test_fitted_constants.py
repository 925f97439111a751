"""Each fitted constant by itself: a thousandth of it moves something that a user is told, by more
than pages are compared to; a billionth of all of them moves nothing.
"""

import functools
from dataclasses import replace

import numpy as np
import pytest

from lightspeed import catalog
from lightspeed.catalog import FITTED, fitted
from lightspeed_authoring.outputs import RELATIVE
from lightspeed_models import nccl_fit, products
from lightspeed_models import stack as stacks
from lightspeed_models.llm import decoder, engine, from_sizes
from lightspeed_models.llm import step as steps
from lightspeed_models.plan import Plan
from lightspeed_models.served import Served, served_replica
from lightspeed_models.stack_fit import expected_times
from lightspeed_models.step_memory import expected_memory, footprint
from lightspeed_models.training_step import work
from lightspeed_tools.plan import causes
from lightspeed_tools.plan.inputs import LIKE, cluster_of

DENSE, EXPERTS = decoder("llama3_70b"), decoder("mixtral_8x7b")
NARROW = from_sizes(32, 4096, 64, 11008, 103168)  # its heads
PLANS = (
    Plan(data=4, tensor=8, pipeline=4, micro_batches=8, stage=1),
    Plan(data=2, tensor=32, pipeline=2, micro_batches=8, stage=1),
    Plan(data=128, stage=3),
)
# What stands beside constants: of what rows they are, how sure, what was counted and not fitted.
BESIDE = {"rows", "source", "counted", "regressor", "able", "measured", "error", "left_out"}
CACHES = (nccl_fit.fits, products._tables, stacks._tables, steps._engines)


def told_of_nccl(*_):
    for fit in nccl_fit.fits().values():
        yield from (fit.time(size, 1e-5) for size in (1.0, 1e7, 1e12))


def told_of_engines(key, *_):
    for model in (DENSE, EXPERTS):
        replica = served_replica("h100_sxm", 8, 1, "bf16")
        run = Served(model, replica, replica, 80e9, 32, 2048, 256, engine=key)
        yield from (run.between(engine(key)), run.first(engine(key)))


def seconds(constants, gpu="h100_sxm", precision="bf16", models=(DENSE, EXPERTS)):
    """Of a step of each model and plan."""
    machine = cluster_of(f"{gpu}:128", precision).machine
    like = LIKE.get(precision, "")
    reached = products.rates(gpu, precision) or products.rates(gpu, precision, like)
    machine = replace(machine, products=reached)
    for model in models:
        for plan in PLANS:
            one = replace(plan, expert=4) if model is EXPERTS else plan
            yield expected_times(work(model, 4096, one, machine, constants), constants)


def told_of_stacks(key, part, name="", *_):
    yield from seconds(stacks.stack(key, name if part == "states" else ""))
    if part == "memory":
        machine = cluster_of("h100_sxm:128").machine
        yield expected_memory(DENSE, 4096, PLANS[0], machine, footprint(key)).total
    if part == "variants":
        for gpu in ("a100_80gb", "h100_sxm"):
            yield from seconds(stacks.fsdp_stack(gpu, True, False), gpu)


def told_of_products(name, chips, *_):
    if name == "chips":
        for gpu in fitted("products")["chips"][chips]:
            yield from seconds(
                stacks.stack("megatron_h100"), gpu, chips.replace("loat", ""), [DENSE]
            )
        return
    for library in fitted("products")[name][chips]["launch"]:
        one = products.kernel(name, chips, library)
        for flops, size in ((1e6, 1e3), (1e13, 1e3), (1e6, 1e11)):
            yield products.product_time(flops, size, 4096, 1e15, 3e12, 1.8e9, **vars(one))


def told_of_attention(*_):
    for gpu in ("a100_80gb", "h100_sxm", "b200"):
        yield from seconds(stacks.stack("megatron_h100"), gpu, models=[DENSE, NARROW])


def told_of_classes(key, *_):
    runs = stacks.run_class(key)
    yield from (runs.centre, runs.low, runs.high, causes.factor(runs, 1.2))


def told(name, place):
    for cache in CACHES:
        cache.cache_clear()
    return np.array([*map(float, globals()[f"told_of_{name}"](*place))])


def constants(name, table, place=()):
    """(place, table, key) of each; of the interval that a fit gives beside its value, none."""
    for key, value in table.items():
        if key in BESIDE or (key in ("low", "high") and name != "classes"):
            continue
        if isinstance(value, dict):
            if str(value.get("rows", "")).startswith("none: counted"):
                continue
            yield from constants(name, value, (*place, key))
        elif isinstance(value, float) or (type(value) is int and place[1:2] != ("memory",)):
            yield place, table, key


@pytest.fixture
def loaded(monkeypatch):
    """The tables, read once, so that a test can change them."""
    monkeypatch.setattr(catalog, "_toml", functools.cache(catalog._toml))
    yield
    monkeypatch.undo()
    for cache in CACHES:
        cache.cache_clear()


@pytest.mark.parametrize("name", FITTED)
def test_a_thousandth_of_each_constant_shows_and_a_billionth_of_all_does_not(name, loaded):
    every, hidden = list(constants(name, fitted(name))), []
    before = {place: told(name, place) for place, *_ in every}
    for place, table, key in every:
        value = table[key]
        table[key] = value * (1 - 1e-3)  # a share of one has no more
        if not np.max(abs(told(name, place) / before[place] - 1)) > RELATIVE:
            hidden.append((*place, key))
        table[key] = value
    assert len(every) > 8 and not hidden
    for _, table, key in every:
        table[key] *= 1 - 1e-9
    for place, old in before.items():
        assert np.max(abs(told(name, place) / old - 1)) < RELATIVE, place
