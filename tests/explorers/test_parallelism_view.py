"""The explorer of chapter 6: every setting can be drawn, and the words follow the laws."""

import json

import pytest

from lightspeed_course.explorers import parallelism
from lightspeed_models.llm import decoder, training_memory
from lightspeed_models.plan import Plan, machine
from lightspeed_models.simulators.schedules import simulate
from lightspeed_models.training_runs import fit_share
from lightspeed_models.training_step import step, work
from lightspeed_show import Bars, Points


def test_every_setting_can_be_drawn():
    e = parallelism.explore()
    facts = [label for label, _ in e.first.facts]
    for params in e.grid(each=2, most=250):
        shown = e.view(**params)
        assert all(len(chart.y.categories) in (0, 6, 8) for chart in shown.charts), "a row has gone"
        assert shown.verdict
        assert [label for label, _ in shown.facts] == facts
        json.dumps(shown.spec(), allow_nan=False)


def test_moving_a_control_redraws_without_error():
    e = parallelism.explore()
    for change in (
        {"gpus": 8192},
        {"tensor": 1},
        {"stage": 3},
        {"recompute": "none"},
        {"model": "mixtral_8x7b"},
        {"expert": 8},
    ):
        e.set(**change)
        assert e.error is None
        assert e.shown == e.view(**e.params)


def test_the_numbers_are_those_of_the_laws():
    shown, model = parallelism.explore().first, decoder("llama3_70b")
    cluster = machine("h100_sxm", "infiniband_ndr", share=fit_share())
    plan = Plan(data=16, tensor=8, pipeline=4, micro_batches=32, stage=1, recompute="selective")
    took = step(model, 8192, plan, cluster)
    use = training_memory(
        model,
        cluster.capacity,
        8192,
        data=16,
        tensor=8,
        pipeline=4,
        stage=1,
        split="tensor+sequence",
        recompute="selective",
    )
    facts = dict(shown.facts)
    assert facts["MFU"] == parallelism.si(took.mfu, "%", 2)
    assert facts["memory a GPU"].startswith(parallelism.si(use.total, "byte"))
    assert shown.verdict.startswith("Fits" if use.fits else "Does not fit")


def test_what_does_not_fit_is_said_and_mended():
    shown = parallelism.explore().at(tensor=1, pipeline=1, stage=0)
    assert shown.verdict.startswith("Does not fit")
    assert "no single change" in shown.advice
    small = {
        "model": "llama3_8b",
        "gpus": 64,
        "tensor": 1,
        "pipeline": 1,
        "sequence": 4096,
        "stage": 0,
    }
    assert parallelism.explore().at(**small).verdict.startswith("Does not fit")
    assert "It then fits" in parallelism.explore().at(**small).advice


def test_the_advice_is_a_setting_that_the_reader_can_make():
    shown, better = parallelism.explore().first, parallelism.explore().at(pipeline=1)
    assert (
        f"set pipeline stages to 1, for an MFU of {dict(better.facts)['MFU']} at the same batch"
        in shown.advice
    )
    assert dict(better.facts)["tokens a step"] == dict(shown.facts)["tokens a step"]


@pytest.mark.holds("explorers", "Traffic in grey is hidden behind")
def test_traffic_behind_the_step_is_drawn_beside_it():
    def row(shown, name):
        """(from, to) of the bar of this row of the second chart."""
        bars = [m for m in shown.charts[1].marks if isinstance(m, Bars)]
        (found,) = [
            (b.start[i], b.to[i]) for b in bars for i, at in enumerate(b.at) if at.startswith(name)
        ]
        return found

    one, three = parallelism.explore().at(stage=1), parallelism.explore().at(stage=3)
    # neither adds to the step
    assert row(one, "gradients and shards")[0] == row(three, "gradients and shards")[0]
    took = float(dict(three.facts)["time of a step"].split()[0])
    assert row(three, parallelism.HIDDEN) == (0, pytest.approx(7.94 / took, rel=0.01))
    assert row(one, parallelism.HIDDEN)[1] < row(three, parallelism.HIDDEN)[1] / 10
    alone = parallelism.explore().at(gpus=32)
    assert dict(alone.facts)["gradients and shards"] == "none"
    assert row(alone, parallelism.HIDDEN) == (0, 0)


@pytest.mark.parametrize(
    ("stages", "micro_batches"), [(1, 1), (4, 32), (16, 8), (8, 25), (16, 130), (2, 300)]
)
def test_a_long_step_is_drawn_as_it_runs(stages, micro_batches):
    run = simulate("1f1b", stages, micro_batches)
    shares = run.utilization(run.span / parallelism.DRAWN)[: parallelism.DRAWN]
    plan = Plan(pipeline=stages, micro_batches=micro_batches)
    assert parallelism.busy(plan)[1] == pytest.approx(shares, abs=1e-9)


@pytest.mark.parametrize(
    ("params", "words"),
    [
        (
            {"gpus": 8, "pipeline": 4},
            "takes 32 GPUs, 8 (tensor parallel) times 4 (stages), and 8 are too few",
        ),
        ({"expert": 4}, "no experts"),
        ({"gpus": 128, "shard": 8}, "a multiple of 8 replicas, and there are 4"),
        (
            {"model": "mixtral_8x7b", "gpus": 64, "pipeline": 8, "expert": 8},
            "groups of 8 replicas of the model, and the number of replicas here is 1",
        ),
        (
            {"gpus": 16384, "tensor": 1},
            "each of the 4,096 replicas needs a sequence or more of its own, and the batch has 512",
        ),
    ],
)
@pytest.mark.holds("explorers", "this model has no experts")
def test_an_impossible_split_says_why(params, words):
    verdict = parallelism.explore().at(**params).verdict
    assert words in verdict
    assert "=" not in verdict and "expected" not in verdict  # no message of a program


def test_each_loss_reads_as_a_sentence():
    verdict = (
        parallelism.explore().at(model="llama3_8b", gpus=64, tensor=1, pipeline=1, stage=2).verdict
    )
    assert "passes through HBM" in verdict and "What helps: more fusion of" in verdict


def test_both_bubbles_are_named():
    shown = parallelism.explore().at(model="mixtral_8x7b", batch=16)
    share = shown.verdict.partition("loses most to bubble: ")[2].partition(" of it")[0]
    assert dict(shown.facts)["bubble"] == f"75 % of the pipeline's time, {share} of the step"


def test_memory_past_the_edge_is_marked():
    def marked(shown):
        return [
            (mark.label, mark.y)
            for chart in shown.charts
            for mark in chart.marks
            if isinstance(mark, Points)
        ]

    assert marked(parallelism.explore().first) == []
    shown = parallelism.explore().at(tensor=1, pipeline=1, stage=0)
    ((label, rows),) = marked(shown)
    total = dict(shown.facts)["memory a GPU"].partition(" of ")[0]
    assert label.startswith("goes on: ") and total.endswith("TB")
    assert rows[-1].startswith("buffers")


def test_a_plan_that_does_not_fit_has_no_step():
    facts = dict(parallelism.explore().at(tensor=1, pipeline=1, stage=0).facts)
    assert facts["memory a GPU"] != "–" and facts["data-parallel replicas"] != "–"
    assert {facts[name] for name in parallelism.FACTS[5:]} == {"–"}
    assert parallelism.explore().at(tensor=1, pipeline=1, stage=0).formula is None


def test_a_group_inside_a_node_is_not_told_to_buy_a_network():
    shape, plan = "deepseek_v3", {"tensor": 2, "pipeline": 16, "expert": 2, "stage": 3}
    state = {"model": shape, "gpu": "mi300x", "gpus": 128, "sequence": 2048, "batch": 512}
    verdict = parallelism.explore().at(**state, **plan).verdict
    cluster = machine("mi300x", "infiniband_ndr", share=fit_share())
    took = work(decoder(shape), 2048, Plan(data=4, micro_batches=128, **plan), cluster)
    assert parallelism.SHOWN["data"] in verdict
    link = parallelism.LINKS["network" if took.data_across else "link"]
    assert f"What helps: a lower stage of ZeRO or {link}." in verdict
    one_node = {"model": "llama3_8b", "tensor": 1, "pipeline": 1, "batch": 64, "gpus": 8}
    for stage in range(4):
        for gpu in parallelism.GPUS:
            assert (
                "network" not in parallelism.explore().at(**one_node, stage=stage, gpu=gpu).verdict
            )
