"""A catalog entry in a notebook: it completes, shows itself, travels, answers a slip."""

import copy
import pickle

import pytest

from lightspeed.catalog import KINDS, accelerator, entries

ALL = [entry for kind in KINDS for entry in entries(kind).values()]


def test_completion_lists_every_number():
    for entry in ALL:
        assert set(entry.numbers) | set(entry.about) <= set(dir(entry)), entry.key
        assert all(hasattr(entry, name) for name in dir(entry)), entry.key


def test_it_shows_its_numbers_with_their_units():
    text = repr(accelerator("h100_sxm"))
    assert text.startswith("NVIDIA H100 SXM5 (h100_sxm)\n")
    assert "  hbm_bandwidth                 3.35 TB/s\n" in text


def test_it_is_the_same_after_a_pickle_and_a_copy():
    for entry in ALL:
        for twin in (pickle.loads(pickle.dumps(entry)), copy.deepcopy(entry)):
            assert twin == entry and repr(twin) == repr(entry), entry.key
            for name, number in entry.numbers.items():
                same = getattr(twin, name)
                assert (same, same.unit, same.sources, same.read) == (
                    number,
                    number.unit,
                    number.sources,
                    number.read,
                ), number.key


def test_a_mistyped_number_is_answered_with_the_nearest():
    with pytest.raises(
        AttributeError, match=r"h100_sxm has no hbm_bandwith\. Did you mean 'hbm_bandwidth'\?"
    ):
        _ = accelerator("h100_sxm").hbm_bandwith


def test_a_constant_stays_what_it_is():
    with pytest.raises(AttributeError, match="is a constant"):
        accelerator("h100_sxm").bf16.note = "faster"
