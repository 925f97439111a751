"""A sweep is the law called again and again, labelled from the law's own table."""

import numpy as np
import pytest

from lightspeed.catalog import accelerator
from lightspeed.roofline import attainable, ridge_point, time_bounds
from lightspeed.serving import decode_step
from lightspeed_show.layout import lay_out
from lightspeed_show.sweep import sweep

CHIPS = {"A100": accelerator("a100_80gb").bf16, "H100": accelerator("h100_sxm").bf16}
REPLICA = {"kv_bytes": 1e9, "peak": 1e15, "bandwidth": 3.5e12}


def test_each_cell_is_what_the_law_says():
    batches, models = range(1, 101), {"8B": 8e9, "70B": 70e9}
    swept = sweep(decode_step, "time", batch=batches, parameters=models, **REPLICA)
    wanted = [
        [decode_step(batch, size, **REPLICA).time for size in models.values()] for batch in batches
    ]
    assert [list(row) for row in swept.results] == wanted


def test_axes_are_named_by_the_law():
    chart = sweep(attainable, intensity=np.logspace(0, 3, 30), peak=CHIPS, bandwidth=2e12).chart()
    assert (chart.x.label, chart.x.unit, chart.x.scale) == ("intensity", "FLOP/byte", "log")
    assert (chart.y.label, chart.y.unit, chart.y.scale) == ("attainable", "FLOP/s", "log")
    assert [mark.label for mark in chart.marks] == ["peak A100", "peak H100"]
    assert lay_out(chart)["x"]["label"] == "intensity (FLOP/byte)"


def test_a_few_values_or_names_show_as_a_table():
    shown = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "IPython.display.display",
            lambda data, raw: shown.append(data.get("text/markdown", "svg")),
        )
        sweep(ridge_point, peak=CHIPS, bandwidth=2e12)._ipython_display_()
        sweep(
            time_bounds, flops=1e12, size=[1e9, 2e9], peak=1e15, bandwidth=1e12
        )._ipython_display_()
        sweep(attainable, intensity=range(1, 50), peak=CHIPS, bandwidth=2e12)._ipython_display_()
    assert shown[0].splitlines()[2:4] == ["| A100 | 156 FLOP/byte |", "| H100 | 495 FLOP/byte |"]
    assert "*ridge point over peak; bandwidth 2 TB/s*" in shown[0]
    assert shown[1].splitlines()[3] == "| 2 GB | 1 ms | 2 ms | 2 ms | 3 ms | False |"
    assert shown[2] == "svg" and "peak H100: from 2 TFLOP/s to 98 TFLOP/s" in shown[3]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: sweep(ridge_point, peak=1.0, bandwidth=2.0),
            "0 arguments of ridge_point are ranges",
        ),
        (lambda: sweep(decode_step, batch=[1, 2], parameters=[1e9, 2e9], **REPLICA), "say which"),
        (lambda: sweep(ridge_point, peak=[1.0], bandwith=2.0), "Did you mean 'bandwidth'"),
    ],
)
def test_a_slip_is_named(call, words):
    with pytest.raises(TypeError, match=words):
        call()
