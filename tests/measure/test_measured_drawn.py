"""Chapters' scaling and queueing records: same record, same page; or words."""

import pytest
from test_measured_queueing import ideal
from test_measured_scaling import N, amdahl, made_up, usl

from lightspeed_tools.measure.instruments import queueing, queueing_load, scaling
from lightspeed_tools.measure.pages import scaling_figures
from lightspeed_tools.measure.records import record

SHOWS = [
    getattr(scaling_figures, name)
    for name in dir(scaling_figures)
    if name.startswith(("scaling_", "queueing_")) and callable(getattr(scaling_figures, name))
]


def of_scaling(cpus=4, noise=0.01):
    def cores(n):
        return amdahl(min(n, cpus))

    jobs = {
        "count": (cores, (1, 2, 3, 4) if cpus > 1 else (1, 2)),
        "wait": (amdahl, N),
        "message": (usl, N),
    }
    return [
        q for job, (law, counts) in jobs.items() for q in made_up(law, job, counts, cpus, noise)
    ]


@pytest.fixture(scope="module")
def full():
    """A record of a machine that does all as the laws say, as it comes back from a file."""
    return record.new(
        [*of_scaling(), *queueing.quantities(*ideal(queueing_load.loads(6, 0.01)))],
        name="ideal machine",
    )


@pytest.fixture
def shown(monkeypatch, capsys):
    """Calls a function and gives what it displays and prints, as text."""
    import IPython.display

    out = []
    monkeypatch.setattr(IPython.display, "display", lambda data, **_: out.append(data))

    def call(show, *arguments):
        out.clear()
        show(*arguments)
        return (
            "\n".join(data.get("text/markdown") or str(data) for data in out)
            + capsys.readouterr().out
        )

    return call


@pytest.mark.parametrize("show", SHOWS, ids=lambda f: f.__name__)
def test_a_full_record_is_shown_the_same_every_time(show, full, shown):
    first = shown(show, full)
    assert len(first) > 200 and "It has no measurement" not in first
    assert first == shown(show, full)


@pytest.mark.parametrize("show", SHOWS, ids=lambda f: f.__name__)
def test_a_record_without_the_part_says_how_to_get_it(show, shown):
    said = shown(show, record.new([], name="empty machine"))
    part = show.__name__.partition("_")[0]
    assert "empty machine" in said and f"lightspeed measure {part}" in said


@pytest.mark.parametrize("show", SHOWS, ids=lambda f: f.__name__)
def test_a_record_whose_part_failed_says_why(show, shown):
    part = show.__name__.partition("_")[0]
    said = shown(
        show,
        record.new(
            [record.Missing(part, "no process could be started.", "Ask for one.")],
            name="poor machine",
        ),
    )
    assert "no process could be started. Ask for one." in said


def test_the_law_and_the_measurement_are_side_by_side(full, shown):
    text = shown(scaling_figures.scaling_table, full)
    assert f"| {scaling.JOBS['wait']} | 16 |" in text and "9.14" in text
    assert shown(scaling_figures.queueing_tail, full).count("| p99 |") == len(queueing_load.LOADS)


def test_a_late_sender_gets_no_figure_but_littles_law(shown):
    late = record.new(
        queueing.quantities(*ideal(queueing_load.loads(6, 0.01), lateness=0.004)),
        name="late machine",
    )
    for show in (scaling_figures.queueing_latency, scaling_figures.queueing_tail):
        assert "Nothing is concluded" in shown(show, late) and "svg" not in shown(show, late)
    assert "| M/M/1 |" in shown(scaling_figures.queueing_little, late)


def test_scatter_is_said(shown):
    said = shown(
        scaling_figures.scaling_findings, record.new(of_scaling(noise=0.4), name="busy machine")
    )
    assert said.count("scatter too much") == 3


def test_one_processor_is_drawn_too(shown):
    lone = record.new(of_scaling(cpus=1), name="one core")
    assert "svg" in shown(scaling_figures.scaling_figure, lone)
    assert "take turns" in shown(scaling_figures.scaling_findings, lone)


def test_a_mistake_of_our_own_is_not_called_a_missing_measurement(full, shown, monkeypatch):
    monkeypatch.setattr(scaling_figures, "LOOKS", {})
    with pytest.raises(KeyError, match="message"):
        shown(scaling_figures.scaling_figure, full)
