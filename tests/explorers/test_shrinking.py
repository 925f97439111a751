"""Chapter 3's job of ten minutes: the drawing adds up, half of the bill is idle."""

import pytest

from lightspeed.scaling import processors_at_efficiency
from lightspeed_course.explorers import shrinking


def drawn_time(bars):
    """Processor-minutes of the bars of one kind."""
    return sum(end - start for end, start in zip(bars.to, bars.start, strict=True))


def test_all_work_is_drawn_on_any_number_of_processors():
    for moment in range(shrinking.MOST):
        serial, divided = (
            m for m in shrinking.view(moment).charts[0].marks if isinstance(m, shrinking.Bars)
        )
        assert drawn_time(serial) == shrinking.SERIAL
        assert drawn_time(divided) == pytest.approx(shrinking.WHOLE - shrinking.SERIAL)
        assert len(set(divided.to)) == 1, "everybody is done at the same moment"


def test_half_of_the_bill_is_idle_where_the_law_says():
    n = round(processors_at_efficiency(0.5, serial=shrinking.SERIAL / shrinking.WHOLE))
    *work, idle = (m for m in shrinking.bill(n).marks if isinstance(m, shrinking.Bars))
    assert drawn_time(idle) == pytest.approx(sum(map(drawn_time, work)))
    assert f"{2 * shrinking.WHOLE} processor-minutes" in dict(shrinking.view(n - 1).facts).values()
