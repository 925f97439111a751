"""A law is found by what somebody calls it, and told with its equation, units and chapter."""

import pytest
from laws import LAWS, each

from lightspeed import lookup
from lightspeed_cli import main


def test_every_law_is_there():
    assert set(lookup.laws()) == {
        name for name, law in LAWS.items() if law.__module__.startswith("lightspeed.")
    }
    for name in lookup.laws():
        assert lookup.describe(name).startswith(f"{name}("), name


@each(
    "words, first",
    [
        ("bubble", "pipeline.bubble_over_total"),
        ("ridge_point", "roofline.ridge_point"),
        ("lightspeed.roofline.ridge_point", "roofline.ridge_point"),
        ("go back", "networks.go_back_n"),
        ("Young", "reliability.young_interval"),
        ("Little's law", "queueing.concurrency"),
        ("pipeline bubble", "pipeline.bubble_over_total"),
        ("when do users wait?", "queueing.erlang_c"),
        ("how many users are inside", "queueing.concurrency"),
        ("the pipeline's bubble of zeppelins", "pipeline.bubble_over_total"),
    ],
)
def test_words_find_a_law(words, first):
    assert lookup.find(words)[0] == first


@each("words", ["all-reduce", "all_reduce", "allreduce", "how long does an all-reduce take"])
def test_an_all_reduce_is_found_however_it_is_written(words):
    assert "collectives.ring_time" in lookup.find(words)[:2]


def test_more_words_count_more():
    found = lookup.find("Young checkpoint interval zeppelin")
    assert found[0] == "reliability.young_interval" and len(found) > 1


def test_a_law_is_told(capsys):
    assert main(["law", "bubble_over_total"]) == 0
    told = capsys.readouterr().out
    for part in (
        "pipeline.bubble_over_total(stages, micro_batches, chunks=1)",
        "(stages - 1) / (chunks * micro_batches + stages - 1)",
        "a whole number, at least 1. Stages are GPUs in one pipeline.",
        "from lightspeed.pipeline import bubble_over_total",
        "chapter       6",
    ):
        assert part in told
    assert lookup.laws()["pipeline.bubble_over_total"].__doc__.endswith(
        "`lightspeed law pipeline.bubble_over_total`"
    ), "help() in a notebook leads here"
    assert main(["law", "ridge_point"]) == 0
    assert "returns       FLOP/byte" in capsys.readouterr().out


def test_a_slip_is_answered(capsys):
    assert main(["law", "bubbel"]) == 2
    assert "no law has 'bubbel'" in (error := capsys.readouterr().err) and "'bubble'" in error
    with pytest.raises(LookupError, match=r"did you mean 'roofline'\?$"):
        lookup.find("rooflnie")
    with pytest.raises(LookupError):
        lookup.find("how many")
