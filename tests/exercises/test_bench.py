"""One reading and three suspects: each bench rules out one of them, the form says so, and the draws
that judge it are not the case that is shown.
"""

import re

import pytest

from lightspeed_course.incidents.policy import consistent, draws
from lightspeed_course.practice.bench import BENCHES, bench


@pytest.mark.parametrize("lesson", BENCHES)
def test_one_of_three_goes_and_the_form_knows_which(lesson):
    setting, cause, reading, suspects = BENCHES[lesson]
    shown = bench(lesson)
    table = [cell.strip() for cell in shown.static.split("|") if cell.strip()]
    table += [f"{number} GB/s" for number in re.findall(r"[0-9.]+", shown.static)]
    verdicts = {}
    for suspect in suspects:
        shown.enter(suspect)
        assert shown.error is None
        reply = shown.reply.value
        verdicts[suspect] = "Right" in reply
        # The number that speaks for or against it, or that none does.
        cited = any(f": {cell} here, " in reply for cell in table)
        assert cited or (not verdicts[suspect] and "every number would be the same" in reply)
    (gone,) = (suspect for suspect, right in verdicts.items() if right)
    assert gone != cause and len({*suspects}) == 3 and cause in suspects
    # The policy of the incident room has other draws, and comes to the same.
    finding = shown.reply.value.partition("reads: ")[2].partition(".")[0]
    if finding:
        left = {
            draws(setting.id)[n][0] for n in consistent(setting.id, frozenset({(reading, finding)}))
        }
        assert left & {*suspects} == {*suspects} - {gone}


def test_the_brief_and_the_reading_stand_in_the_still_page():
    shown = bench("02")
    assert "**The incident room.**" in shown.static and shown.static.count("\n\n- ") == 3
    shown.enter("")
    assert "Not answered" in shown.reply.value


def test_a_lesson_without_one_is_told():
    with pytest.raises(ValueError, match=r"expected one of 01, 02"):
        bench("12")
