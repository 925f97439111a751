"""Chapter 7, on records that obey the laws, on a scattered one, and on none."""

import inspect

import numpy as np
import pytest

from lightspeed.collectives import ring_time
from lightspeed_tools.measure.instruments import collectives
from lightspeed_tools.measure.instruments.timing import Quantity
from lightspeed_tools.measure.pages import network_figures
from lightspeed_tools.measure.records import record

SHOWN = [
    f
    for name, f in inspect.getmembers(network_figures, inspect.isfunction)
    if f.__module__ == network_figures.__name__ and name.startswith("collectives_")
]
ALPHA, W = 2e-6, 4e9


def lawful(jitter, noisy=()):
    """A record of four processes that obey the laws, but for noise; the collectives named `noisy`
    scatter whatever the jitter.
    """
    rng = np.random.default_rng(3)

    def times(time, jitter=jitter):
        return list(time * np.exp(jitter * rng.standard_normal(9)))

    rows = [Quantity("collectives.call", "s", times(5e-7), {"backend": "mpi"})]
    for size in collectives.QUICK_SIZES:
        for name in collectives.COLLECTIVES:
            time = (
                ring_time(float(size), 4, W, ALPHA, name)
                if name in ("all_reduce", "all_gather", "reduce_scatter")
                else ALPHA + size / W
            )
            rows.append(
                Quantity(
                    f"collectives.{name}",
                    "s",
                    times(time, 0.5 if name in noisy else jitter),
                    {"size": size, "ranks": 4, "backend": "mpi"},
                    better="lower",
                )
            )
    return record.new(rows, machine={"cores": 2}, name="made up")


def said(show, shown, capsys):
    show(shown)
    return capsys.readouterr().out


def test_there_are_functions_to_show():
    assert len(SHOWN) == 3


@pytest.mark.parametrize("show", SHOWN, ids=lambda f: f.__name__)
def test_a_record_without_it_is_told_in_words(show, capsys):
    empty = record.new([], [collectives.Missing("collectives", "no MPI.", "install one")])
    words = said(show, empty, capsys)
    assert "has no measurement of" in words
    assert ("no MPI. install one" in words) == show.__name__.startswith("collectives")


@pytest.mark.parametrize("show", SHOWN, ids=lambda f: f.__name__)
@pytest.mark.parametrize("jitter", [0.01, 0.5])
def test_a_record_is_shown_however_noisy(show, jitter, capsys):
    assert said(show, lawful(jitter), capsys)


@pytest.mark.parametrize("show", SHOWN, ids=lambda f: f.__name__)
@pytest.mark.parametrize("noisy", collectives.COLLECTIVES)
def test_one_collective_that_scatters_is_no_fault(show, noisy, capsys):
    words = said(show, lawful(0.01, {noisy}), capsys)
    if show is network_figures.collectives_table and noisy in ("all_reduce", "sendrecv"):
        assert "scatters too much" in words


def test_a_steady_record_is_concluded_from_and_a_noisy_one_is_not(capsys):
    steady, noisy = lawful(0.01), lawful(0.5)
    words = said(network_figures.collectives_findings, steady, capsys)
    assert "W 4" in words and "All-reduce from" in words and "ring 1.0" in words
    assert "No conclusion" in said(network_figures.collectives_findings, noisy, capsys)
    assert "scatters too much" in said(network_figures.collectives_table, noisy, capsys)


def test_the_run_of_most_ranks_is_taken():
    both = record.new(
        [
            Quantity(
                "collectives.all_reduce", "s", [1e-6] * 5, {"size": 8, "ranks": n, "backend": "mpi"}
            )
            for n in (2, 4, 3)
        ]
    )
    assert collectives.run_in(both).ranks == 4
