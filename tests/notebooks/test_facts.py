"""Facts that a chapter's cell assigns as bare literals are refused; what it assumes says so."""

from datetime import date

import pytest

from lightspeed.catalog import entries
from lightspeed_authoring.build import unbound
from lightspeed_authoring.facts import aged, typed_facts


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("boost = 1.98e9", ["1.98e9"]),
        ("size, storage = model.bytes, 200e9", ["200e9"]),
        ("said = {2: 340e9, 8: rate, 125: (270e9, 1)}", ["340e9", "270e9"]),
        ("prices: list = [30_000]", ["30_000"]),
        ("ping: float = 16e-6", ["16e-6"]),
        ("a = 1\nb = [\n    25_000,\n    7e9,  # assumed\n]", ["25_000"]),
    ],
)
def test_a_bare_quantity_is_found(source, found):
    assert [text for _, text in typed_facts(source)] == found


@pytest.mark.parametrize(
    "source",
    [
        "burst, buffer = 1e6, 64e6  # assumed",
        "losses = [1e-5, 1e-4, 1e-3, 1e-2]",  # steps of a scale
        "B, D, on = 8192, 16384, True",
        "layers, share, width = 80, 0.35, 5120",  # small numbers are parameters
        "week = 7 * 86400",
        "draw = rng.uniform(-1, 1, 200_000)",
        'axis = Axis("GPUs", domain=(5, 20000))',
        "def f(x=25e3):\n    y = 31e3\n    return x",
        "rate = number('nvlink4.bandwidth')",
    ],
)
def test_what_is_no_fact_is_let_through(source):
    assert list(typed_facts(source)) == []


def test_only_chapters_are_asked(tmp_path):
    for folder, count in (("chapters", 1), ("solutions", 0)):
        page = tmp_path / folder / "01_page.py"
        page.parent.mkdir()
        page.write_text("# %%\na = 1\n\n# %%\nboost = 1.98e9\n", "utf-8")
        found = unbound(page)
        assert len(found) == count
        assert all("01_page.py:5: typed number: 1.98e9: a fact belongs into" in f for f in found)


def test_facts_about_software_are_asked_for_again_by_name_and_release():
    last = max(each.again for each in entries("software").values())
    assert len(aged(last)) == len(entries("software")) and not aged(date(2026, 11, 27))
    assert any("vLLM was read in 0.33.0 on 2026-11-27" in fact for fact in aged(last))
