"""help() and a mistyped name are answered from the table that checks a law's values."""

import importlib
import inspect
import pydoc

import pytest
from laws import LAWS, LIBRARY, short

from lightspeed.law import Argument
from lightspeed.roofline import iron_law
from lightspeed.scaling import amdahl_speedup
from lightspeed.training import training_time

# What laws are made of, which no chapter imports whole.
PLUMBING = ("codes", "elementwise", "errors", "law")
# What a chapter reads as data, beside laws and result types.
TABLES = {"BLOCK_FORMATS", "FORMATS", "GGML_BLOCKS", "JOULES_PER_KWH", "RECIPES"}


def test_help_shows_unit_and_range_of_each_argument():
    for f, law in LAWS.items():
        text = pydoc.plain(pydoc.render_doc(law))
        rows = text.partition("Arguments:")[2].partition("Raises:")[0]
        assert "BadArgument" in text and "TypeError" in text, f
        for name, spec in law.arguments.items():
            row = next(
                (line.strip() for line in rows.splitlines() if line.strip().startswith(f"{name}:")),
                None,
            )
            assert row, f"{f}: help() does not list {name}"
            wanted = [spec.unit, spec.span()] if isinstance(spec, Argument) else [repr(spec[0])]
            assert all(part in row for part in wanted), f"{f}: {row}"
        units = law.returns.values() if isinstance(law.returns, dict) else [law.returns]
        assert all(unit in rows.partition("Returns:")[2] for unit in units), f


def test_a_tooltip_shows_names_and_defaults_alone():
    assert (
        str(inspect.signature(iron_law))
        == "(flops, size, peak, bandwidth, utilization=1.0, latency=0.0)"
    )


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: training_time(flops=1, n=1, peak=1, utilisation=0.5),
            "training_time: there is no argument 'utilisation'. Did you mean 'utilization'?",
        ),
        # the only one left
        (
            lambda: training_time(1, 1, 1, mfu=0.5),
            "there is no argument 'mfu'. Did you mean 'utilization'?",
        ),
        (
            lambda: training_time(1, 1),
            "training_time: peak and utilization are missing. peak is a number of FLOP/s above 0.",
        ),
        (lambda: training_time(1, 1, 1, 0.5, n=2), "training_time: n is given twice"),
        (
            lambda: training_time(1, 1, 1, 0.5, 2),
            "training_time: 5 arguments are given by their place, and it takes 4.",
        ),
        (lambda: amdahl_speedup(8, 0.05), "serial, parallel must be given by name."),
    ],
)
def test_a_wrong_name_is_answered_with_the_law_and_the_nearest_name(call, words):
    with pytest.raises(TypeError) as error:
        call()
    assert words in str(error.value)


def test_a_star_import_brings_laws_and_what_they_return():
    for name in [name for name in LIBRARY if name.startswith("lightspeed.")]:
        module = importlib.import_module(name)
        assert hasattr(module, "__all__"), name
        if name.rpartition(".")[2] in PLUMBING:
            continue
        for export in module.__all__:
            thing = getattr(module, export)
            ours = inspect.isroutine(thing) or inspect.isclass(thing)
            assert export in TABLES or (ours and thing.__module__ == name), f"{name}.{export}"
        laws = {law.rpartition(".")[2] for law in LAWS if law.startswith(f"{short(name)}.")}
        assert laws <= set(module.__all__), f"{name} does not export {laws - set(module.__all__)}"


def test_every_public_function_is_typed():
    for name in LIBRARY:
        for export, thing in vars(importlib.import_module(name)).items():
            body = inspect.unwrap(thing) if inspect.isroutine(thing) else None
            if inspect.isfunction(body) and body.__module__ == name and not export.startswith("_"):
                named = set(inspect.signature(body).parameters) | {"return"}
                assert named <= set(body.__annotations__), f"{name}.{export}"
