"""Two records side by side: equal, different, too noisy to say, and what else differs."""

import itertools
import math
import re

import pytest

from lightspeed_tools.measure.instruments.timing import Missing, Quantity
from lightspeed_tools.measure.pages import charts, report
from lightspeed_tools.measure.records import compare, record

SHIPPED = record.shipped()


def around(middle, width=0.01, n=21):
    """n samples spread evenly by `width` to either side."""
    return [middle * (1 + width * (2 * i / (n - 1) - 1)) for i in range(n)]


def one(samples, better="higher", unit="byte/s", **more):
    return record.new([Quantity("a.b", unit, samples, {"n": 1}, better, **more)], name="a machine")


def only(a, b):
    (pair,) = compare.compare(a, b).pairs
    return pair


def test_a_machine_beside_itself_is_the_same():
    some = {**SHIPPED["amd_epyc_2core"], "quantities": SHIPPED["amd_epyc_2core"]["quantities"][::8]}
    found = compare.compare(some, some)
    assert {p.verdict for p in found.pairs} <= {"same", "noisy"}
    assert any(p.verdict == "same" for p in found.pairs)
    assert all(p.ratio == 1 for p in found.pairs)
    assert not (found.only_a or found.only_b or found.differences)


@pytest.mark.parametrize(
    "better, factor, verdict",
    [
        ("higher", 1.5, "better"),
        ("higher", 0.5, "worse"),
        ("lower", 1.5, "worse"),
        ("lower", 0.5, "better"),
    ],
)
def test_a_difference_is_seen_and_which_way_is_good(better, factor, verdict):
    pair = only(one(around(100), better), one(around(100 * factor), better))
    assert pair.verdict == verdict and pair.ratio == pytest.approx(factor, rel=1e-5)
    assert pair.interval[0] <= pair.ratio <= pair.interval[1]
    assert re.search(rf"B is {verdict}, (1\.5|2) times", pair.words)


def test_less_than_the_drift_of_a_machine_is_no_difference():
    sharp = 1e-6
    assert (
        only(one(around(100, sharp)), one(around(100 * (1 + 0.9 * compare.DRIFT), sharp))).verdict
        == "same"
    )
    assert (
        only(one(around(100, sharp)), one(around(100 * (1 + 1.1 * compare.DRIFT), sharp))).verdict
        == "better"
    )


def test_less_than_the_spread_is_no_difference():
    wide = 0.15  # evenly to either side: a spread near 7 %, within the limit
    pair = only(one(around(100, wide, 200)), one(around(106, wide, 200)))
    assert pair.a.trusted and pair.a.spread > 0.06 and pair.interval[0] > 1
    assert pair.verdict == "same"


def test_few_samples_leave_the_interval_open():
    # Medians 9 % apart, beyond spread and drift; but of five samples, some on either side.
    pair = only(one([93, 94, 100, 106, 107]), one([99, 100, 109, 110, 112]))
    assert pair.a.trusted and pair.b.trusted and pair.interval[0] <= 1 and pair.verdict == "same"


@pytest.mark.parametrize("a, b, who", [(0.9, 0, "A's spread"), (0, 0.9, "B's spread")])
def test_a_wide_spread_leaves_the_direction_and_no_figure(a, b, who):
    pair = only(one(around(100, a)), one(around(900, b)))
    least = float(re.search(r"better, at least ([\d.]+) times; no figure", pair.words)[1])
    assert pair.verdict == "better" and who in pair.words
    assert least == pytest.approx(pair.interval[0], rel=0.05)
    assert compare.CLEAR < pair.interval[0] < pair.ratio
    assert only(one(around(900, b)), one(around(100, a))).verdict == "worse"


@pytest.mark.parametrize(
    "a, b, who",
    [
        (around(100, 0.9), around(140), "A: spread"),
        (around(100), around(140, 0.9), "B: spread"),
        ([100, 101], around(900), "A: only 2 samples"),
    ],
)
def test_noise_forbids_a_conclusion_about_less(a, b, who):
    pair = only(one(a), one(b))
    assert pair.verdict == "noisy"
    assert pair.words.startswith(who)
    assert "nothing can be concluded" in pair.words


def test_the_interval_is_that_of_the_medians():
    assert compare.ratio_interval((2.0,) * 5, (6.0,) * 5) == (3.0, 3.0)
    a, b = [10.0, 20.0, 30.0], [1.0, 2.0, 3.0]
    medians = [[sorted(pick)[1] for pick in itertools.product(s, repeat=3)] for s in (a, b)]
    ratios = sorted(y / x for x, y in itertools.product(*medians))
    exact = ratios[round(0.05 * len(ratios))], ratios[round(0.95 * len(ratios)) - 1]
    assert compare.ratio_interval(a, b, 0.9) == pytest.approx(exact, rel=1e-6)
    assert compare.ratio_interval(a, b) == compare.ratio_interval(a, b)


def test_equal_machines_are_seldom_called_different():
    import numpy as np

    rng = np.random.default_rng(1)
    verdicts = [
        only(one(rng.normal(100, 4, 15)), one(rng.normal(100, 4, 15))).verdict for _ in range(200)
    ]
    assert verdicts.count("same") >= 198


def test_what_varies_by_nature_is_compared_by_its_interval():
    a, b = (one([k * (1 + i % 10) for i in range(400)], "lower", "s", varies=True) for k in (1, 3))
    assert only(a, b).verdict == "worse" and only(a, a).verdict == "same"


@pytest.mark.parametrize("a, b, verdict", [([0] * 5, [0] * 5, "same"), ([0] * 5, [1] * 5, "noisy")])
def test_zero_has_no_ratio(a, b, verdict):
    pair = only(one(a), one(b))
    assert pair.verdict == verdict and math.isnan(pair.interval[0])
    compare.in_words(compare.compare(one(a), one(b)))


def test_stated_medians_are_compared_by_their_spreads():
    stated = [
        one((), stated={"median": m, "spread": 0.05}) | {"kind": "summary"} for m in (100, 110, 150)
    ]
    assert only(stated[0], stated[1]).verdict == "same"
    assert only(stated[0], stated[2]).verdict == "better"
    assert "by stated spreads alone" in only(stated[0], stated[2]).words
    assert only(stated[0], one((), stated={"median": 900})).verdict == "noisy"


def test_units_and_parameters_must_agree():
    a = record.new(
        [Quantity("a", "s", (1,) * 5, {"n": 1}), Quantity("a", "s", (1,) * 5, {"n": 2})], name="a"
    )
    b = record.new(
        [Quantity("a", "s", (1,) * 5, {"n": 2}), Quantity("a", "byte/s", (1,) * 5, {"n": 1})],
        name="b",
    )
    found = compare.compare(a, b)
    assert [p.a.parameters for p in found.pairs] == [{"n": 2}]
    assert found.only_a == {"a": 1} and found.only_b == {"a": 1}
    assert "Only in A: a (1)." in compare.in_words(found)


def test_other_differences_are_named():
    a = one(around(1)) | {
        "machine": {"cpu": "X", "memory": 2**33},
        "versions": {"numpy": "2.3"},
        "environment": [{"check": "load", "state": "ok", "words": "load 0", "remedy": ""}],
        "effort": "quick",
    }
    b = a | {
        "machine": {"cpu": "Y", "memory": 2**33, "core_quota": 2.0},
        "versions": {"numpy": "2.4"},
        "environment": [{"check": "load", "state": "warn", "words": "load 9", "remedy": "x"}],
        "effort": "full",
    }
    assert list(compare.differences(a, b)) == [
        ("cpu", "X", "Y"),
        ("core quota", "–", "2.0"),
        ("numpy", "2.3", "2.4"),
        ("effort", "quick", "full"),
        ("load", "load 0", "load 9"),
    ]
    words = "\n".join(compare.in_words(compare.compare(a, b)))
    assert "load 9" in words and "core quota" in words and "warn (load)" in words


@pytest.mark.holds("measure", "They have no quantity in common")
def test_nothing_in_common_is_said():
    assert (
        "no quantity in common"
        in compare.in_words(compare.compare(one(around(1)), record.new([], name="empty")))[-1]
    )


# ---------------------------------------------------------------- pages


def sparse(name):
    """Each eighth quantity of a shipped record: a page with all of its parts, made quickly."""
    whole = SHIPPED[name]
    return {**whole, "quantities": whole["quantities"][::8]}


PAGES = {
    "noisy": lambda: report.to_html(sparse("amd_epyc_2core")),
    "summary": lambda: report.to_html(SHIPPED["notes_2core_48mib"]),
    "empty": lambda: report.to_html(record.new([Missing("gpu", "no GPU.")], name="nothing")),
    "hostile": lambda: report.to_html(
        record.new(
            [Quantity("<script>alert(1)</script>", "s", (1,), {"<b>": '"x"'}, note="<img src=x>")],
            name="<i>me</i>",
            machine={"cpu": "<u>"},
        )
    ),
}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_holds_all_it_needs_and_runs_nothing(name):
    page = PAGES[name]()
    assert page.startswith("<!doctype html>") and page.rstrip().endswith("</html>")
    assert not re.search(r"<(script|link|img|iframe|object|b|i|u)\b|\b(src|href)=\"(?!#)", page)
    assert not re.search(r"https?://(?!www\.w3\.org|creativecommons|purl\.org)", page)
    from html.parser import HTMLParser

    class Balance(HTMLParser):
        open_ones = ()

        def handle_starttag(self, tag, attrs):
            if tag not in ("meta", "br"):
                self.open_ones = (*self.open_ones, tag)

        def handle_endtag(self, tag):
            assert self.open_ones and self.open_ones[-1] == tag, (self.open_ones, tag)
            self.open_ones = self.open_ones[:-1]

    parser = Balance()
    parser.feed(page)
    assert not parser.open_ones


@pytest.mark.holds("docs/measure.md", "begins with how far to trust it")
def test_trust_comes_first_and_every_quantity_is_there():
    shown = SHIPPED["amd_epyc_2core"]
    page = report.to_html(shown)
    assert page == report.to_html(record.shipped()["amd_epyc_2core"])
    order = [
        page.index(words)
        for words in (
            "How far to trust it",
            "What is missing",
            "The roofline of this machine",
            "Time of one load",
            "Every quantity",
            "as it describes itself",
        )
    ]
    assert order == sorted(order)
    for q in record.quantities(shown):
        assert q.key in page
    assert page.count('role="img" aria-label=') >= len(record.quantities(shown))


@pytest.mark.holds("docs/measure.md", "Where the spread is too wide")
@pytest.mark.holds("measure", "Where the spread is wider nothing")
def test_a_wide_spread_is_refused_with_its_likely_causes():
    shown = one(around(100, 0.9)) | {
        "environment": [
            {
                "check": "load",
                "state": "warn",
                "words": "load 9 before the start",
                "remedy": "Wait.",
            }
        ]
    }
    said = " ".join(report.verdict(shown))
    assert "0 of 1" in said
    assert "nothing can be concluded" in said
    assert "load 9 before the start" in said
    assert "nothing can be concluded" in report.to_html(shown)
    calm = one(around(100)) | {
        "environment": [{"check": "load", "state": "ok", "words": "load 0", "remedy": ""}]
    }
    assert "nothing can be concluded" not in report.to_html(calm) + " ".join(report.verdict(calm))


def test_a_summary_says_that_it_has_no_samples():
    shown = SHIPPED["notes_2core_48mib"]
    for text in (report.to_html(shown), "\n".join(report.in_words(shown))):
        assert "no samples" in text and "notes on a rented virtual machine" in text


def test_a_record_that_was_interrupted_says_so():
    assert "It was interrupted" in " ".join(report.verdict(one(around(1)) | {"complete": False}))


def test_every_sample_is_a_dot_and_the_far_ones_point_outwards():
    strip = charts.dots(Quantity("a", "s", (10.0, 9.0, 11.0, 10.5, 100.0, 0.1)))
    assert strip.count("<circle") == 4 and strip.count("<path") == 2
    places = [float(x) for x in re.findall(r'<circle cx="([\d.]+)"', strip)]
    middle = 110  # of 220 pixels: the median, 10.25
    assert sum(x < middle for x in places) == 2 and sum(x > middle for x in places) == 2
    assert charts.dots(Quantity("a", "s", (0.0,) * 5)).count("<circle") == 5
    assert "<circle" not in charts.dots(Quantity("a", "s", stated={"median": 1.0, "spread": 0.2}))


def test_the_ladder_needs_a_ladder():
    with pytest.raises(record.NotMeasured):
        charts.ladder_chart(one(around(1)))
    assert list(charts.available(one(around(1)))) == []
