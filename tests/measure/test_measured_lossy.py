"""Packets over real sockets: each arrives, and what was sent again is what the law counts."""

import pytest

from lightspeed import networks
from lightspeed_tools.measure.instruments import lossy
from lightspeed_tools.measure.instruments.timing import Quantity
from lightspeed_tools.measure.records import record


@pytest.mark.parametrize("scheme", lossy.SCHEMES)
def test_a_message_gets_through_and_counts_add_up(scheme):
    clean = lossy.transfer(scheme, 0.0, packets=60, slot=2e-4, delay=2e-3)
    assert clean.lost == 0 and clean.sent >= 60
    some = lossy.transfer(scheme, 0.2, packets=60, slot=2e-4, delay=2e-3)
    again = lossy.transfer(scheme, 0.2, packets=60, slot=2e-4, delay=2e-3)
    assert some.lost > 0 and again.lost > 0
    assert some.sent - some.lost >= 60
    assert some.time >= some.sent * 2e-4 * 0.5


def made(scheme, loss, time, sent, lost):
    parameters = {"loss": loss, "packets": 400, "window": 31, "slot": 1e-3}
    return Quantity(
        f"lossy.{scheme}", "s", (time,) * 5, parameters, better="lower",
        counted={"sent": sent, "lost": lost},
    )  # fmt: skip


def test_a_row_is_held_to_the_law_at_the_loss_that_was_counted():
    made_up = [made("go_back_n", 0.01, 0.015 + 0.5, 500, 4)]
    shown = record.new(made_up, [], machine={}, environment=[], versions={}, name="x",
                       effort="quick", complete=True, seconds={})  # fmt: skip
    (row,) = lossy.rows(shown)
    assert row.measured == pytest.approx(0.8) and row.counted == 4 / 500
    assert row.law == pytest.approx(networks.go_back_n(4 / 500, 31))


def test_the_shipped_record_follows_the_laws():
    rows = lossy.rows(record.shipped()["lossy_2core"])
    assert {r.scheme for r in rows} == set(lossy.SCHEMES) and len(rows) == 8
    for r in rows:  # a busy machine's round trip is longer, and a message of 400 packets has an end
        assert r.steady and r.measured == pytest.approx(r.law, rel=0.16), r
    back, keep = ([r for r in rows if r.scheme == s] for s in ("go_back_n", "selective_repeat"))
    assert all(b.measured < k.measured for b, k in zip(back[1:], keep[1:], strict=True))
