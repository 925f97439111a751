"""The lessons' job: each line of its sheet against closed forms or printed figures."""

import math
import re

import pytest

from lightspeed.catalog import accelerator, find, link
from lightspeed_course import job

H100, LLAMA = accelerator("h100_sxm"), find("llama3_70b")
PARAMETERS = 80 * (2 * 8192 * 8192 * (1 + 1 / 8) + 3 * 8192 * 28672)  # of the layers, by hand


def near(value, wanted, within=0.005):
    return value == pytest.approx(wanted, rel=within)


def test_a_week_is_the_time_of_six_operations_a_parameter():
    flops = 6 * float(LLAMA.parameters) * 36e9
    assert near(job.planned(), flops / (64 * 0.4 * float(H100.bf16)), 1e-9)
    assert near(job.planned() / 86400, 7.0, 0.01)
    assert near(64 * job.planned() / 3600, 10_700)
    assert near(job.weights(), 141e9) and near(job.token_flops(), 423e9)
    assert near(job.read_time(), 42.1e-3)
    assert job.weights() > float(H100.hbm_capacity), "they do not fit into one"


def test_a_layer_by_its_matrices():
    assert near(job.layer_bytes(), 2 * PARAMETERS / 80, 1e-9)
    one, many = job.layer(1), job.layer(job.SEQUENCE)
    assert near(one.comms, 511e-6) and near(many.math, 3.54e-3)
    assert near(one.comms / job.layer(296).math, 1, 0.01), "the clocks meet at the ridge"
    assert near(one.math / one.comms, 0.0034, 0.01)


def test_the_offer_needs_the_share_of_amdahls_law():
    s = job.share_for_a_day()
    assert near(1 / (s + (1 - s) / 8), 7, 1e-9), "a week in a day, on eight times as many"
    assert near(s, 0.0204)


def test_a_replica_by_brute_force():
    """Bytes over bandwidth, one request after the other until the budget is spent."""
    bandwidth, cache = 8 * float(H100.hbm_bandwidth), 2 * 2 * 80 * 8 * 128 * 8192

    def step(batch):
        return (batch * cache + 2 * float(LLAMA.parameters)) / bandwidth

    promised = job.replica()
    fits = max(b for b in range(1, 400) if step(b) <= 0.02)
    assert promised.batch == fits == 147
    assert near(promised.rate, fits / (500 * step(fits)), 1e-9) and near(promised.rate, 14.7)
    assert promised.slots == (8 * float(H100.hbm_capacity) - 2 * float(LLAMA.parameters)) // cache
    assert promised.slots == 202 and round(promised.knee) == 53
    assert near(promised.per_token, 328e3) and near(promised.feeders, 2.1, 0.02)
    assert near(promised.alone, 5.37e-3) and near(job.replica(1).alone, 2.73e-3)
    assert near(job.replica(1).rate, 17.0) and near(job.replica(2, 1).rate, 29.4)


def test_what_must_fit():
    assert near(job.states(), 16 * float(LLAMA.parameters), 1e-9)
    assert near(job.states(), 1.13e12) and near(job.states() / 64, 17.6e9)
    assert near(job.node_memory(), 684e9) and job.states() > job.node_memory()
    assert near(job.activations() / job.LONG, 22e6, 0.01) and near(job.activations(), 180e9, 0.01)


def test_a_layer_comes_through_the_ports_of_a_node():
    port = float(link("ethernet_100g").bandwidth)
    assert near(job.layer_arrives(), job.layer_bytes() / (8 * port), 1e-9)
    assert near(job.layer_arrives(), 17.1e-3)
    assert near(job.tokens_to_hide(), float(H100.bf16) / (8 * port), 1e-9)
    assert near(job.tokens_to_hide(), 9_895)
    # With so many tokens a layer is computed as long as it travels.
    assert near(job.layer(job.tokens_to_hide()).math, job.layer_arrives(), 1e-9)


def test_the_week_is_broken_and_mended():
    for plan, gpus, days, mfu in (("spread", 64, 13.2, 0.215), ("split", 64, 6.7, 0.425)):
        assert near(job.run(plan, gpus) / 86400, days, 0.01)
        assert near(job.step(plan, gpus).mfu, mfu)
    steps = job.TOKENS / (512 * 2048)
    assert near(job.run(), steps * job.step().time, 1e-9)
    assert job.run("split") < job.planned() < job.run()
    assert near(job.step("split").time, 16.9) and near(job.step("split", 512).time, 2.86)


def test_narrower_numbers_help_only_what_is_computed():
    whole = job.step("split")
    assert near(job.narrower(2), 1 / (1 - whole.compute / whole.time / 2), 1e-9)
    assert near(job.narrower(2), 1.59) and job.narrower(1.435) == pytest.approx(1.29, abs=0.005)
    assert job.narrower(1) == 1
    assert job.narrower(math.inf) < whole.time / (whole.time - whole.compute) * (1 + 1e-12)


def test_the_offer_again():
    summed = job.gradients()
    assert near(summed.size, 4.41e9) and summed.ranks == 16 and near(summed.time, 0.66)
    assert near(summed.busbw, float(link("ethernet_100g").bandwidth), 1e-9)
    assert near(summed.algbw, summed.busbw * 16 / 30, 1e-9) and near(summed.algbw, 6.7e9)
    assert near(job.speedup(), 5.90) and near(job.share(), 0.0508)
    assert near(job.speedup(job.BETTER), 7.03) and near(job.share(job.BETTER), 0.0196, 0.01)
    assert near(job.money(), 1.36) and near(job.run("split", 512) / 86400, 1.1, 0.04)
    s = job.share()
    assert near(1 / (s + (1 - s) / 8), job.speedup(), 1e-9)
    assert job.share_for_a_day() < s, "so it is not done in a day"


def test_a_bad_cable():
    lost = 0.01 * (48.8 + 0.01 / 0.99 * 48.8)  # packets sent again for each that arrives
    assert near(1 / job.kept() - 1, lost) and near(job.kept(), 0.67)
    assert near(job.kept(job.BETTER), 0.34, 0.02)
    assert near(job.tuesday(), 3.18)
    hours = 512 * (job.tuesday() - job.step("split", 512).time) * job.TOKENS / (512 * 2048) / 3600
    assert near(hours, 1600, 0.02)


def test_the_sheet_grows_lesson_by_lesson():
    whole = job.sheet()
    assert len(whole.lines) == len(job.LINES) and "?" not in "".join(whole.lines.values())
    for name, line in job.LINES.items():
        shown = job.sheet(until=name)
        assert shown.lines.pop(line.asks) == "**?**"
        assert shown.lines.items() <= whole.lines.items() and len(shown.lines) <= 4
        assert all(earlier < name for earlier in line.uses), "nothing is told too early"
        struck = re.findall(r"<del>.*?</del> .lesson ([\d.]+).", shown.head)
        assert all(f"{float(n):04.1f}".removesuffix(".0") < name for n in struck), name
        assert (f"{job.RUNNING} days" in shown.head) == (name != "09"), "serves"
        assert ("<del>" in shown.head) == (name not in ("01", "06.3", "09"))
    assert round(job.run() / 86400) == job.RUNNING
    with pytest.raises(ValueError, match="expected one of 01, 02"):
        job.sheet(until="6.2")


def test_the_profile_of_a_micro_batch_is_the_step_that_6_2_counts():
    """Event by event, against the law: it leaves out the first layer's wait, and the head."""
    _, account = job.profile()
    step = job.step()
    assert near(account.span * 1e-9, step.time / 8, 0.02)
    assert near(account.compute / account.span, (step.compute + step.memory) / step.time, 0.02)
    gathers = 3 * 80  # layers
    assert near(account.communication * 1e-9, gathers * job.layer_arrives(), 1e-6)
    assert account.idle == 0 and account.communication > 0.99 * account.span
