"""`lightspeed serve`: a plan within a promise, a case, a verdict on files, and what it refuses."""

import csv
import gzip
import json
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lightspeed_cli import main
from lightspeed_models.cards import card
from lightspeed_models.evidence.pairings.served import printed
from lightspeed_models.evidence.sets import dataset
from lightspeed_models.llm import ConfigRefused, decoder, load, read_config
from lightspeed_models.llm.checkpoint import Formats, read_checkpoint
from lightspeed_models.llm.step import engine
from lightspeed_models.served_ranges import KINDS, kind_of
from lightspeed_models.served_rows import BEATEN
from lightspeed_tools.serve.check import NEEDED, check, judge, nearest, read_rows
from lightspeed_tools.serve.files import LoadTest, load_tests
from lightspeed_tools.serve.plan import (
    Job,
    at,
    fewest,
    inside_at,
    layout_of,
    layouts,
    loads,
    most,
    placed,
    plans,
)

DATA = Path(__file__).parent / "data"
FP8 = Formats("fp8", "fp8", "fp8")
JOB = Job(decoder("Qwen3-32B"), card("b200")[0], 8, FP8, "vllm", 8192, 1024, 20e-3, 0.5)


def answer(capsys, *words):
    status = main(["serve", *words])
    return status, capsys.readouterr()


@pytest.mark.holds("docs/your-own-question.md", "each at the most load that keeps the promise")
def test_a_plan_keeps_its_promise_and_more_requests_would_not():
    found, refused = plans(JOB)
    assert found and not refused
    assert [plan.rate for plan in found] == sorted((p.rate for p in found), reverse=True)
    constants = engine("vllm")
    for plan in found:
        assert plan.per_token <= JOB.per_token and plan.first_token <= JOB.first_token
        inside = plan.run.requests
        assert inside + 3 * inside**0.5 <= plan.run.places() * 1.01
        assert plan.workers * plan.run.decode.gpus == JOB.gpus
        assert 0 <= plan.low <= plan.rate <= plan.high
        if plan.stop.startswith("time ") and "reads" not in plan.stop:
            rows = loads(plan.run)
            more = rows[np.searchsorted(rows, inside) + 1]
            token, wait = at(plan.run, more, JOB, constants)
            assert token > JOB.per_token or wait > JOB.first_token
        served = plan.requests / (plan.first_token + 1024 * plan.per_token)
        assert served == pytest.approx(plan.rate, rel=0.02)


def test_a_walk_finds_what_the_arrays_find():
    constants = engine("vllm")
    for run, workers in list(layouts(JOB))[:6]:
        plan = most(run, workers, JOB, constants)
        rates = [0.0]
        for load_ in loads(run):
            token, wait = at(run, load_, JOB, constants)
            reading = replace(run, requests=load_).state(constants).reading
            fit = placed(run, load_, token / at(run, 1, JOB, constants)[0])
            if fit and token <= JOB.per_token and wait <= JOB.first_token and reading <= 0.8:
                many = workers if run.together else run.decoders
                rates.append(many * load_ / (wait + JOB.output * token))
        assert (plan.rate if plan else 0.0) == pytest.approx(max(rates), rel=1e-9)


def test_a_looser_promise_never_serves_less():
    rates = [plans(replace(JOB, per_token=t))[0][0].rate for t in (10e-3, 15e-3, 20e-3, 40e-3)]
    assert rates == sorted(rates)


def test_the_answer_as_json(capsys):
    words = ("Qwen3-32B", "--hardware", "b200", "--tpot", "20ms", "--ttft", "500ms", "--json")
    status, said = answer(capsys, *words, "--gpu-hour", "2.5", "--top", "3")
    told = json.loads(said.out)
    assert status == 0 and len(told["plans"]) == 3 and told["nearest"] and told["changes"]
    best = told["plans"][0]
    written = best["requests_per_second"] * 1024
    assert best["dollars_per_million_tokens"] == pytest.approx(2.5 * 8 / 3600 / written * 1e6)
    assert best["joules_per_token"] == pytest.approx(8 * card("b200")[0].power / written)
    assert best["tpot_interval"][0] < best["tpot"] < best["tpot_interval"][1]
    for plan in told["plans"]:
        for times in plan["at_random"].values():
            assert 0 < times["median"] <= times["p99"]


def test_eight_gpus_and_groups_of_sixteen_in_half_a_second_of_processor_time():
    start = time.process_time()
    plans(replace(JOB, model=decoder("DeepSeek-V3"), card=card("b300")[0]))
    found, _ = plans(replace(JOB, model=decoder("DeepSeek-V3"), card=card("h100")[0], gpus=16,
                             per_token=0.1, first_token=3.0, prompt=2000))  # fmt: skip
    assert time.process_time() - start < 2
    assert any(plan.run.decode.gpus == 16 for plan in found)  # as it runs in life


def test_every_answer_fits_a_screen(capsys):
    """At most 25 lines of 100 columns, the answer first."""
    model, chip = ("DeepSeek-R1", "--gpu", "8xB200"), ("--in", "2k", "--out", "500")
    for words, first in (
        ((*model, *chip, "--ttft", "1s", "--tpot", "20ms", "--gpu-hour", "3"), "requests/s at"),
        ((*model, *chip, "--drafts", "3"), "requests/s at random"),
        ((*model, *chip, "--layout", "tp2dp4", "--concurrency", "64"), "TPOT "),
        (("Qwen3-32B", "--gpu", "h100", "--rate", "10", "--tpot", "30ms", *chip), "× h100_sxm ("),
        (("Llama-3.1-8B", "--gpu", "rtx 4090", "--gpus", "1", *chip), "requests/s at random"),
        (("Llama-3.1-70B", "--gpu", "8xl4", "--tpot", "5ms", *chip), "No layout keeps"),
        (("Llama-3.1-8B", "--gpu", "1xh100", "--check", str(DATA / "runs/vllm_list.json")),
         "vllm bench serve"),
    ):  # fmt: skip
        _, said = answer(capsys, *words)
        lines = said.out.splitlines()
        assert len(lines) <= 25 and max(map(len, lines)) <= 100, (words, said.out)
        assert first in lines[0], lines[0]


def test_my_case_one_layout_at_one_load(capsys):
    words = ("Llama-3.1-70B", "--gpu", "h100", "--in", "1k", "--out", "500", "--json")
    _, by_layout = answer(capsys, *words, "--layout", "tp4", "--concurrency", "64")
    _, by_ways = answer(capsys, *words, "--tp", "4", "--concurrency", "64")
    told = json.loads(by_layout.out)
    assert told == json.loads(by_ways.out) and told["layout"] == "1 × tp4"
    served = 64 / (told["ttft"] + 500 * told["tpot"])
    assert told["requests_per_second"] == pytest.approx(served)
    _, by_rate = answer(capsys, *words, "--tp", "4", "--rate", f"{served:.6g}")
    assert json.loads(by_rate.out)["in_flight"] == pytest.approx(64, rel=0.15)
    status, said = answer(capsys, *words[:-1], "--tp", "4", "--rate", "50")
    assert status == 1 and said.out.startswith("No queue stands 50 requests/s")


def test_gpus_for_a_rate_are_replicas_of_what_each_promises():
    job = replace(JOB, card=card("h100")[0], prompt=1000, output=300)
    sizes = fewest(job, 40.0)
    assert sizes and [gpus for gpus, _ in sizes] == sorted(gpus for gpus, _ in sizes)
    for gpus, plan in sizes:
        replicas = gpus // plan.run.decode.gpus
        assert (replicas - 1) * plan.rate < 40.0 <= replicas * plan.rate * (1 + 1e-9)
    _, plan = sizes[0]
    inside = inside_at(plan.run, 1, plan.rate, job, engine("vllm"))
    assert inside == pytest.approx(plan.run.requests, rel=0.02)


def test_a_price_goes_with_each_plan_and_the_third_line_is_no_limit_of_memory(capsys):
    words = ("Llama-3.1-70B", "--gpu", "h100", "--in", "2k", "--out", "300", "--gpu-hour", "3")
    for case, gpus in ((("--rate", "10", "--tpot", "40ms", "--ttft", "1s"), 16),
                       (("--rate", "2", "--gpus", "8"), 8),
                       (("--layout", "tp4", "--concurrency", "16"), 4)):  # fmt: skip
        _, said = answer(capsys, *words, *case)
        _, as_data = answer(capsys, *words, *case, "--json")
        told = json.loads(as_data.out)
        served = told.get("rate") or told["requests_per_second"]
        told = told["sizes"][0] if "sizes" in told else told
        price = told["dollars_per_million_tokens"]
        assert price == pytest.approx(3 * gpus / 3600 / (300 * served) * 1e6)
        assert f"It costs ${price:.3g} a million tokens written" in said.out
        assert ("in place of --rate say --gpus 12." in " ".join(said.out.split())) == (gpus == 16)
    status, said = answer(capsys, *words, "--check", str(DATA / "runs/vllm.json"))
    assert status == 2 and "leave out --gpu-hour" in said.err
    job = Job(decoder("Qwen3-32B"), card("h100")[0], 2, prompt=4096, output=300)
    best = plans(job)[0][0]
    _, said = answer(capsys, "Qwen3-32B", "--gpu", "2xh100", "--in", "4k", "--out", "300")
    line = said.out.splitlines()[2]
    assert line.startswith(f"{best.requests} in flight at random, with room for uneven lengths")
    assert f"(memory holds {best.run.places():.0f})" in line and "break" not in line


def test_layouts_as_people_write_them():
    for words, pair in {
        "tp4": (4, 1), "TP=4": (4, 1), "tensor 2 · attention 4": (2, 4), "tp2dp4": (2, 4),
        "dp8": (1, 8), "tp8 ep8": (8, 1), "tp8 dp2": (8, 2),
    }.items():  # fmt: skip
        assert layout_of(words) == pair, words
    for wrong in ("pp2", "tp16", "fast", ""):
        with pytest.raises(ValueError, match="layout"):
            layout_of(wrong)


def test_weights_that_do_not_fit_are_refused_with_the_figure(capsys):
    status, said = answer(capsys, "DeepSeek-R1", "--hardware", "h100", "--gpus", "4")
    assert status == 1 and "weights take 673 GB of 342 GB" in said.out
    assert said.out.startswith("No layout keeps the promise")


def test_a_promise_that_nothing_keeps_is_missed_by_a_factor(capsys):
    words = (
        "Qwen3-32B",
        "--hardware",
        "b200",
        "--weights",
        "fp8",
        "--ttft",
        "10s",
        "--tpot",
        "2ms",
    )
    status, said = answer(capsys, *words)
    job = replace(JOB, per_token=2e-3, first_token=10.0)
    found, refused = plans(job)
    alone = min(at(run, 1, job, engine("vllm"))[0] for run, _ in layouts(job)) / 2e-3
    assert status == 1 and not found
    assert refused[0][1].endswith(f"{alone:.2g} times the promise between tokens")
    assert f"Nearest: {refused[0][0]}" in said.out


def test_many_workers_are_divided_coarsely():
    job = replace(JOB, gpus=1000, model=decoder("Llama-3.1-8B"))
    apart = [run for run, _ in layouts(job) if not run.together and run.decode.gpus == 1]
    assert 60 <= len(apart) <= 64
    assert all(run.readers + run.decoders == 1000 for run in apart)


def test_what_a_card_of_ones_own_does_not_say_is_assumed_aloud(capsys):
    numbers = "memory=48GB,bandwidth=864GB/s,bf16=181TFLOPS"
    words = ("Qwen3-8B", "--in", "1k", "--out", "300", "--gpu")
    for more, links, units in (("", True, True), (",link=32GB/s", False, True),
                               (",link=0,fp8=0", False, False)):  # fmt: skip
        _, said = answer(capsys, *words, numbers + more)
        assert ("Assumed: no link, cards work alone: add link=32GB/s" in said.out) == links
        assert ("Assumed: no fp8 units: add fp8=" in said.out) == units
    case = ("--layout", "tp2", "--concurrency", "4")
    status, said = answer(capsys, *words, numbers, *case)
    assert status == 2
    assert "tensor = 2: expected 1: your card's link is not said; add link=32GB/s" in said.err
    _, said = answer(capsys, *words, f"{numbers},link=0GB/s", *case)
    assert "a card of your own has no link" in said.err


@pytest.mark.slow
def test_whatever_is_counted_is_planned():
    """Every config × three chips × three engines: plans or refusals, never a traceback."""
    configs = json.loads((DATA.parents[1] / "published/model_configs.json").read_text("utf-8"))
    for name, entry in configs.items():
        if not isinstance(entry, dict):
            continue
        model = read_config(entry["config"])
        for chip in ("h100", "mi300x", "rtx 5090"):
            for key in ("vllm", "sglang", "trtllm"):
                job = Job(model, card(chip)[0], 8, engine=key, prompt=500, output=100)
                found, refused = plans(job)
                assert found or refused, (name, chip, key)
                assert all(0 < plan.rate < float("inf") for plan in found), name


@pytest.mark.holds("docs/your-own-question.md", "that none of them has is called extrapolated")
def test_what_nobody_measured_is_said(tmp_path, capsys):
    gpt2 = {"architectures": ["GPT2LMHeadModel"], "n_embd": 768, "n_layer": 12, "n_head": 12}
    file = tmp_path / "config.json"
    file.write_text(json.dumps(gpt2 | {"vocab_size": 50257}), "utf-8")
    _, said = answer(
        capsys, str(file), "--hardware", "mi355x", "--gpus", "1", "--in", "500", "--out", "99"
    )
    assert "Extrapolated: no measured row has this model" in " ".join(said.out.split())


def test_kinds_go_by_the_chips_name_not_by_its_bandwidth():
    for chip, words in (
        ("b200", "seen"),
        ("gh200", "chip"),
        ("mi325x", "amd"),
        ("apple m1 max", "bound"),
    ):
        job = replace(JOB, card=card(chip)[0], gpus=1)
        assert job.kind == KINDS[words] or (words == "seen" and job.kind == KINDS["like"]), chip
    assert kind_of(["this model", "this GPU"], card("gh200")[0]) == KINDS["neither"]
    assert kind_of([], card("h100")[0], own_run=True) == KINDS["run"]
    for which in ("between", "first"):
        wide = [
            np.divide(*reversed(getattr(KINDS[k], which)))
            for k in ("run", "like", "seen", "neither")
        ]
        assert wide == sorted(wide)


def test_the_nearest_row_of_a_measured_run_is_itself():
    for row in list(check(printed(dataset("served_models"))).judged)[::400]:
        formats = Formats(*[{"fp4": "nvfp4"}.get(row.number_format, row.number_format)] * 3)
        job = replace(JOB, engine=row.engine, formats=formats)
        assert row.per_token in [near.per_token for near in nearest(row.run, job, 8)]


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
@pytest.mark.holds("docs/your-own-question.md", "counts the rows that it refuses by reason")
def test_published_rows_are_judged(tmp_path, capsys, suffix):
    rows = printed(dataset("served_models"))[:200]
    for row in rows:
        row.update({name: "" for name, value in row.items() if value != value})
    rows.append(rows[0] | {"silicon_tpot_ms": 0.01})
    rows.append(rows[0] | {"system": "z9000"})
    file = tmp_path / f"rows{suffix}"
    with (gzip.open if suffix.endswith("gz") else open)(file, "wt", newline="") as text:
        table = csv.DictWriter(text, rows[0])
        table.writeheader()
        table.writerows(rows)
    status, said = answer(capsys, "--check", str(file), "--json")
    told = json.loads(said.out)
    assert status == 0 and told["rows"] == 202
    assert told["judged"] + sum(told["refused"].values()) == 202
    assert told["beats_bound"] == told["refused"][BEATEN] >= 1
    assert any("z9000" in reason for reason in told["refused"])
    for name in ("tpot", "ttft"):
        assert 0 < told[name]["median"] < told[name]["p90"]
    _, said = answer(capsys, "--check", str(file))
    assert f"{told['judged']} of 202 rows judged." in said.out


TOOLS = {
    "vllm.json": "vllm bench serve", "vllm_list.json": "vllm bench serve",
    "vllm_rate.json": "vllm bench serve", "vllm_spec.json": "vllm bench serve",
    "sglang.jsonl": "SGLang's bench_serving", "guidellm.json": "guidellm",
    "llmperf_summary.json": "llmperf", "console.txt": "the console's table of bench serve",
}  # fmt: skip


@pytest.mark.parametrize("name", TOOLS)
def test_load_tests_as_their_tools_write_them(name):
    """One run of 1,024 tokens in and 256 out, 64 in flight, told in eight ways."""
    test = load_tests(DATA / "runs" / name)[0]
    assert test.tool == TOOLS[name]
    if name != "sglang.jsonl":
        assert (round(test.prompt), round(test.output)) == (1024, 256)
        assert (test.first, test.between) == (
            pytest.approx(0.180, abs=1e-3),
            pytest.approx(0.0111, rel=0.02),
        )
        flying = 5.41 * (0.1801 + 0.0111 * 255) if "rate" in name else 64
        assert test.inside == pytest.approx(flying)
    assert (test.drafts > 0) == ("spec" in name)


GENAI = {
    "request_throughput": {"unit": "requests/sec", "avg": 5.4},
    "time_to_first_token": {"unit": "ms", "avg": 210.0, "p50": 180.0},
    "inter_token_latency": {"unit": "ms", "avg": 11.2, "p50": 11.1},
    "output_sequence_length": {"unit": "tokens", "avg": 256.0},
    "input_sequence_length": {"unit": "tokens", "avg": 1024.0},
    "input_config": {"perf_analyzer": {"stimulus": {"concurrency": 64}}},
}  # fmt: skip
INFERENCEX = {
    "hw": "h200", "conc": 64, "model": "m", "framework": "sglang", "precision": "fp8", "tp": 8,
    "isl": 1024, "osl": 1024, "median_ttft": 0.4, "median_tpot": 0.02,
}  # fmt: skip


def test_more_tools_are_read_and_others_named(tmp_path):
    file = tmp_path / "run.json"

    def read(one):
        file.write_text(json.dumps(one) if isinstance(one, dict) else one, "utf-8")
        return load_tests(file)[0]

    genai = read(GENAI)
    assert (genai.tool, genai.inside, genai.first, genai.between) == (
        "GenAI-Perf",
        64,
        0.18,
        0.0111,
    )
    loadgen = GENAI | {"input_config": {"loadgen": {"concurrency": 8}}}
    assert (read(loadgen).tool, read(loadgen).inside) == ("AIPerf", 8)
    row = read(INFERENCEX)
    assert (row.tool, row.engine, row.card, row.gpus) == ("InferenceX", "sglang", "h200", 8)
    for text, says in (
        ("MLPerf Results Summary\nScenario : Server\n", "neither the lengths"),
        ({"benchmarks": [{}]}, "looks like guidellm's, but its metrics is missing"),
        ({"completed": 0}, "a request that completed is missing"),
        ({"completed": 3, "mean_ttft_ms": 5}, "no token counts"),
        ({"a": 1}, "has the fields a"),
        ("{", "not JSON"), ("[1, 2]", "expected an object"), ("[]", "holds no load test"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=says):
            read(text)
    file.write_text("a,b\n1,2\n", "utf-8")
    assert load_tests(file) is None


def test_a_check_says_what_it_understood_and_what_may_be_off(capsys):
    words = ("Qwen3-8B", "--gpu", "h100", "--gpus", "1", "--check")
    _, said = answer(capsys, *words, str(DATA / "runs/vllm_spec.json"))
    for part in ("64 in flight, 1024 in, 256 out", "measured, told", "it drafted ahead",
                 "the file is of meta-llama/Llama-3.1-8B", "Understood: vllm"):  # fmt: skip
        assert part in " ".join(said.out.split()), said.out
    slow = LoadTest("x", 1000, 200, 9.0, 0.5, concurrency=8, failed=3)
    doubts = " ".join(judge(slow, replace(JOB, gpus=1)).doubts(JOB, ""))
    assert "3 requests failed" in doubts and "slower than usual" in doubts


def test_a_table_without_token_counts_takes_those_of_the_words(tmp_path, capsys):
    whole = (DATA / "runs/console.txt").read_text("utf-8")
    bare = tmp_path / "console.txt"
    rows = [line for line in whole.splitlines() if not line.startswith("Total")]
    bare.write_text("\n".join(rows), "utf-8")
    words = ("Llama-3.1-8B", "--gpu", "1xh100", "--json", "--check")
    status, said = answer(capsys, *words, str(bare))
    assert status == 2 and "the file has no token counts: add --in 1k --out 1k" in said.err
    _, said = answer(capsys, *words, str(bare), "--in", "1k", "--out", "256")
    _, counted = answer(capsys, *words, str(DATA / "runs/console.txt"))
    assert json.loads(said.out) == json.loads(counted.out)


def test_a_run_of_ones_own_sets_the_level_and_narrows_the_plan(capsys):
    words = ("Llama-3.1-8B", "--gpu", "h100", "--gpus", "1", "--in", "1k", "--out", "256", "--json")
    _, plain = answer(capsys, *words)
    run = DATA / "runs/vllm.json"
    _, by_run = answer(capsys, *words, "--plan-by", str(run))
    before, after = (json.loads(one.out)["plans"][0] for one in (plain, by_run))
    width = [one["tpot_interval"][1] / one["tpot_interval"][0] for one in (before, after)]
    assert width[1] == pytest.approx(1.3**2) and width[1] < width[0]
    job = Job(decoder("Llama-3.1-8B"), card("h100")[0], 1, prompt=1024, output=256)
    judged = judge(load_tests(run)[0], job)
    here = judge(load_tests(run)[0], replace(job, levels=judged.levels, own_run=True))
    assert here.between * judged.levels[0] == pytest.approx(0.0111)


@pytest.mark.parametrize("way", ["utf-16", "gzip", ";", "\t"])
def test_a_table_of_another_make_is_read(tmp_path, way):
    text = ",".join(NEEDED) + "\n" + ",".join("1" for _ in NEEDED) + "\n"
    text = text.replace(",", way) if len(way) == 1 else text
    data = text.encode("utf-16" if way == "utf-16" else "utf-8")
    file = tmp_path / "rows.csv"
    file.write_bytes(gzip.compress(data) if way == "gzip" else data)
    assert read_rows(file) == [dict.fromkeys(NEEDED, "1")]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no column model_path"),
        (",".join(NEEDED) + "\n", "no row"),
        (",".join(NEEDED) + "\n" + "a" * 200_000 + "\n", "not a table"),
        ("a,b\n1,2\n", "no column model_path"),
        ("{", "not JSON"),
    ],
)
def test_a_file_that_is_none_is_refused(tmp_path, capsys, text, says):
    file = tmp_path / "rows.csv"
    file.write_text(text, "utf-8")
    status, said = answer(capsys, "--check", str(file))
    assert status == 2 and says in said.err and not said.out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "give a model"),
        (("Qwen3-32B",), "--hardware"),
        (("Qwen3-32C", "--hardware", "b200"), "did you mean Qwen3-32B"),
        (("Qwen3-32B", "--hardware", "b20"), "b200"),
        (("Qwen3-32B", "--hardware", "b200", "--weights", "fp12"), "weights = 'fp12'"),
        (("Qwen3-32B", "--hardware", "b200", "--concurrency", "8"), "--layout tp4"),
        (("Qwen3-32B", "--hardware", "b200", "--gpus", "6", "--tp", "4"), "don't divide 6"),
        (("gpt-2", "--hardware", "b200", "--in", "2k"), "context ends at 1,024"),
        (("Qwen3-32B", "--hardware", "b200", "--in", "0"), "at least one token"),
        (("--check", "nowhere.csv"), "nowhere.csv"),
    ],
)
def test_a_slip_is_answered(capsys, words, says):
    status, said = answer(capsys, *words)
    assert status == 2 and says in said.err


@pytest.mark.parametrize("words", [("--tpot", "20"), ("--gpus", "0"), ("--engine", "tgi")])
def test_an_argument_that_is_none_ends_the_command(capsys, words):
    with pytest.raises(SystemExit):
        main(["serve", "Qwen3-32B", "--hardware", "b200", *words])
    assert words[1] in capsys.readouterr().err


STRANGERS = {
    "adapter_config.json": "an adapter", "bge-m3.json": "an encoder", "model.gguf": "a GGUF file",
    "eagle3-qwen3-32b.json": "a draft head", "params.json": "a vendor's own params.json",
    "whisper-large-v3.json": "an encoder and a decoder", "rwkv7.json": "not known here",
}  # fmt: skip
COUNTED = {
    "internvl3-8b.json": (7.6e9, "language part"), "llava-1.5-7b.json": (6.7e9, "language part"),
    "llama8-auto_map-custom.json": (8.03e9, "auto_map"), "mixtral-of-yarn.json": (8.03e9, ""),
    "qwen2.5-72b-awq.json": (72.7e9, ""), "qwen2.5-72b-gptq-int4.json": (72.7e9, ""),
    "qwen3-embedding-0.6b.json": (0.596e9, ""),
}  # fmt: skip


def test_files_as_people_have_them_are_refused_by_kind_or_counted():
    assert STRANGERS.keys() | COUNTED.keys() == {f.name for f in (DATA / "configs").iterdir()}
    for name, says in STRANGERS.items():
        with pytest.raises(ConfigRefused, match=says):
            load(str(DATA / "configs" / name))
    for name, (parameters, says) in COUNTED.items():
        model = load(str(DATA / "configs" / name))
        assert model.parameters == pytest.approx(parameters, rel=0.01), name
        assert says in " ".join(model.assumed), name
    awq = read_checkpoint(str(DATA / "configs/qwen2.5-72b-awq.json"))
    assert awq.context == 32768 and awq.formats.experts == "int4"
    scorer = json.loads((DATA / "configs/qwen3-embedding-0.6b.json").read_text("utf-8"))
    scorer["architectures"] = ["Qwen3ForSequenceClassification"]
    assert "its head is not counted" in read_config(scorer).assumed[0]
