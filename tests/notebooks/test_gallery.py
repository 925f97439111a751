"""Wrong claims: each is wrong as printed, beyond rounding, and its rebuttal computes."""

import math
import re
from decimal import Decimal

import pytest

from lightspeed import catalog
from lightspeed_authoring.prose import typed_numbers
from lightspeed_course.content.wrong_claims import claims, gallery

CLAIMS = claims()
WITH_NUMBER = [claim for claim in CLAIMS if claim.claimed is not None]


def numbers_in(text):
    """A quote's numbers, as printed: "1,000 cycles" has Decimal(1000), "3072e9" 3072 too."""
    found = re.findall(r"(?<![\w.])\d[\d,]*(?:\.\d+)?", text)
    return [Decimal(number.replace(",", "").rstrip(".")) for number in found]


def half_a_digit(claim):
    """By how much a number may differ from the claim and still be printed so."""
    return 0.5 * 10.0 ** Decimal(str(claim.claimed)).as_tuple().exponent


@pytest.mark.parametrize("claim", WITH_NUMBER, ids=lambda claim: claim.id)
def test_the_claimed_number_is_in_the_quote(claim):
    assert Decimal(str(claim.claimed)) in numbers_in(claim.quote)


@pytest.mark.parametrize("claim", WITH_NUMBER, ids=lambda claim: claim.id)
def test_the_claim_is_wrong_by_more_than_rounding(claim):
    right = claim.value / claim.factor
    assert abs(claim.claimed - right) > half_a_digit(claim)


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.id)
def test_a_claim_is_whole(claim):
    assert catalog.source(claim.source).title
    assert claim.unit in catalog.UNITS
    assert re.fullmatch(r"\d\d", claim.chapter)
    assert math.isfinite(claim.value)
    assert claim.quote in claim.markdown().replace("\\", "")
    for text in (claim.because, claim.sound):
        assert list(typed_numbers(text)) == []
        assert 8 <= len(claim.written(text).split()) <= 60


def test_ids_are_unique():
    assert len({claim.id for claim in CLAIMS}) == len(CLAIMS)


def test_the_first_chapters_have_enough():
    assert all(sum(claim.chapter == chapter for claim in CLAIMS) >= 8 for chapter in ("01", "02"))
    for chapter in ("01", "02"):
        assert len({claim.source for claim in CLAIMS if claim.chapter == chapter}) >= 4, (
            "wrong claims are made everywhere"
        )


@pytest.mark.parametrize("chapter", sorted({claim.chapter for claim in CLAIMS}))
def test_a_gallery_shows_the_claims_of_its_chapter(chapter, capsys):
    gallery(chapter)
    shown = capsys.readouterr().out
    for claim in CLAIMS:
        assert (claim.quote in shown.replace("\\", "")) == (claim.chapter == chapter)


def test_a_chapter_without_claims_is_refused():
    with pytest.raises(ValueError, match=r"chapter = '99': expected one of \['01', '02'"):
        gallery("99")


def test_the_rebuttals_of_the_field_notes():
    """The right numbers that the course set out with."""
    right = {claim.id: claim.value / claim.factor for claim in CLAIMS}
    assert right["energy-of-a-multiply-add"] == pytest.approx(426.7, abs=0.1)
    assert right["sixteen-bytes-a-parameter"] == 14
    assert 10 <= right["hbm-against-l1"] <= 20
    assert right["nvlink-of-the-next-generation"] == pytest.approx(0.45)
    assert right["gigabytes-of-a-gpu"] == 80
    assert right["ridge-of-the-a100"] == pytest.approx(153, abs=0.1)
    assert right["utilisation-of-relu"] == pytest.approx(0.163, abs=0.001)
    assert right["sparse-peak-of-the-h100"] == pytest.approx(989, abs=1)
