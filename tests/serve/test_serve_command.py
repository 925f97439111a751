"""`lightspeed serve`: a plan within a promise, a verdict on rows, and what it refuses."""

import csv
import gzip
import json
import time
from dataclasses import replace

import pytest

from lightspeed_cli import main
from lightspeed_models.evidence.pairings.served import printed
from lightspeed_models.evidence.sets import dataset
from lightspeed_models.inference_step import engine
from lightspeed_models.llm import decoder
from lightspeed_models.served import BEATEN
from lightspeed_tools.serve.check import NEEDED, check, nearest, of_benchmark, read_rows
from lightspeed_tools.serve.plan import Job, at, layouts, most, plans

JOB = Job(decoder("Qwen3-32B"), "b200", 8, "fp8", "vllm", 8192, 1024, 20e-3, 0.5)


def answer(capsys, *words):
    status = main(["serve", *words])
    return status, capsys.readouterr()


@pytest.mark.holds("docs/your-own-question.md", "each at the most load that keeps the promise")
def test_a_plan_keeps_its_promise_and_one_more_request_would_not():
    found, refused = plans(JOB)
    assert found and refused
    assert [plan.rate for plan in found] == sorted((p.rate for p in found), reverse=True)
    for plan in found:
        assert plan.per_token <= JOB.per_token and plan.first_token <= JOB.first_token
        assert plan.run.requests <= plan.run.places()
        gpus = plan.run.decode.gpus
        assert plan.workers * gpus == JOB.gpus
        if plan.stop.startswith("time"):
            token, wait = at(plan.run, plan.run.requests + 1, engine("vllm"))
            assert token > JOB.per_token or wait > JOB.first_token
        assert plan.requests / (plan.first_token + 1024 * plan.per_token) >= plan.rate * 0.999


def test_bisection_finds_what_a_walk_finds():
    constants = engine("vllm")
    for run, workers in list(layouts(JOB))[:6]:
        plan = most(run, workers, JOB, constants)
        load = 0
        while load < run.places():
            token, wait = at(run, load + 1, constants)
            if token > JOB.per_token or wait > JOB.first_token:
                break
            load += 1
        assert load == (plan.run.requests if plan else 0)


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
    dollars = 2.5 * 8 / 3600 / written * 1e6
    assert best["dollars_per_million_tokens"] == pytest.approx(dollars)
    assert best["tpot_interval"][0] < best["tpot"] < best["tpot_interval"][1]
    for plan in told["plans"]:
        for times in plan["at_random"].values():
            assert 0 < times["median"] <= times["p99"]


def test_eight_gpus_in_two_seconds_of_processor_time():
    start = time.process_time()
    plans(replace(JOB, model=decoder("DeepSeek-V3"), hardware="b300"))
    assert time.process_time() - start < 2


def test_weights_that_do_not_fit_are_refused_with_the_figure(capsys):
    status, said = answer(capsys, "DeepSeek-R1", "--hardware", "h100", "--gpus", "4")
    assert status == 1 and "weights take 671 GB of the 300 GB that vllm uses" in said.out
    assert said.out.startswith("No layout keeps the promise")


def test_a_promise_that_nothing_keeps_is_missed_by_a_factor(capsys):
    status, said = answer(
        capsys, "Qwen3-32B", "--hardware", "b200", "--ttft", "10s", "--tpot", "2ms"
    )
    found, refused = plans(replace(JOB, per_token=2e-3, first_token=10.0))
    alone = min(at(run, 1, engine("vllm"))[0] for run, _ in layouts(JOB)) / 2e-3
    assert status == 1 and not found
    assert refused[0][1].endswith(f"{alone:.2g} times the promise between tokens")
    assert f"Nearest: {refused[0][0]}: {refused[0][1]}" in said.out


def test_many_workers_are_divided_coarsely():
    job = replace(JOB, gpus=1000, model=decoder("Llama-3.1-8B"))
    apart = [run for run, _ in layouts(job) if not run.together and run.decode.gpus == 1]
    assert 60 <= len(apart) <= 64
    assert all(run.readers + run.decoders == 1000 for run in apart)


@pytest.mark.holds("docs/your-own-question.md", "that none of them has is called extrapolated")
def test_what_nobody_measured_is_said(tmp_path, capsys):
    gpt2 = {"architectures": ["GPT2LMHeadModel"], "n_embd": 768, "n_layer": 12, "n_head": 12}
    file = tmp_path / "config.json"
    file.write_text(json.dumps(gpt2 | {"vocab_size": 50257}), "utf-8")
    _, said = answer(capsys, str(file), "--hardware", "mi300x", "--gpus", "1")
    assert "Extrapolated: no measured row has this model, this GPU." in said.out


def test_the_nearest_row_of_a_measured_run_is_itself():
    for row in list(check(printed(dataset("served_models"))).judged)[::400]:
        job = replace(JOB, engine=row.engine, number_format=row.number_format)
        assert row.per_token in [near.per_token for near in nearest(row.run, job, 8)[0]]


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


BENCHMARK = {
    "completed": 100, "total_input_tokens": 102_400, "total_output_tokens": 51_200,
    "max_concurrency": 16, "mean_ttft_ms": 150.0, "median_ttft_ms": 140.0, "mean_tpot_ms": 10.0,
    "median_tpot_ms": 9.5,
}  # fmt: skip


def test_a_benchmark_of_vllm_and_the_lines_of_sglang_are_read(tmp_path, capsys):
    row = of_benchmark(BENCHMARK, replace(JOB, gpus=2), "Qwen3-32B")
    assert (row["isl"], row["osl"], row["tp_size"]) == (1024, 512, 2)
    assert (row["silicon_ttft_ms"], row["silicon_tpot_ms"]) == (140.0, 9.5)
    beside = ("Qwen3-32B", "--hardware", "b200", "--gpus", "2", "--json")
    for text in (json.dumps(BENCHMARK), "\n".join([json.dumps(BENCHMARK)] * 2) + "\n"):
        file = tmp_path / "bench.json"
        file.write_text(text, "utf-8")
        status, said = answer(capsys, *beside, "--check", str(file))
        assert status == 0 and json.loads(said.out)["judged"] == 1


def test_a_benchmark_without_a_most_in_flight_has_what_little_says():
    open_loop = BENCHMARK | {
        "max_concurrency": None,
        "request_rate": 4.0,
        "request_throughput": 4.0,
    }
    row = of_benchmark(open_loop, JOB, "Qwen3-32B")
    assert row["concurrency"] == round(4.0 * (0.150 + 511 * 0.010))
    row = of_benchmark(open_loop | {"max_concurrency": 8}, JOB, "Qwen3-32B")
    assert row["concurrency"] == 8


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"accept_length": 2.7}, "drafts tokens ahead"),
        ({"completed": float("nan")}, "isl"),
        ({"total_output_tokens": "many"}, "osl"),
        ({"mean_ttft_ms": None, "median_ttft_ms": None}, "silicon_ttft_ms"),
        ({"max_concurrency": None}, "neither batch nor concurrency"),
    ],
)
def test_a_benchmark_that_says_too_little_is_refused_by_name(change, reason):
    row = of_benchmark(BENCHMARK | {"backend": "sglang"} | change, JOB, "Qwen3-32B")
    assert row["backend"] == "sglang"
    ((told, many),) = check([row]).refused.items()
    assert many == 1 and reason in told


@pytest.mark.parametrize("way", ["utf-16", "gzip", ";", "\t"])
def test_a_table_of_another_make_is_read(tmp_path, way):
    text = ",".join(NEEDED) + "\n" + ",".join("1" for _ in NEEDED) + "\n"
    text = text.replace(",", way) if len(way) == 1 else text
    data = text.encode("utf-16" if way == "utf-16" else "utf-8")
    file = tmp_path / "rows.csv"
    file.write_bytes(gzip.compress(data) if way == "gzip" else data)
    assert read_rows(file, None, "") == [dict.fromkeys(NEEDED, "1")]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no column model_path"),
        (",".join(NEEDED) + "\n", "no row"),
        (",".join(NEEDED) + "\n" + "a" * 200_000 + "\n", "no table"),
        ("a,b\n1,2\n", "no column model_path"),
        ("{", "no JSON"),
        ("[1, 2]", "expected an object"),
        ("{}", "does not say completed"),
        (json.dumps(BENCHMARK), "add --hardware"),
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
        ((), "name a model"),
        (("Qwen3-32B",), "--hardware"),
        (("Qwen3-32C", "--hardware", "b200"), "did you mean Qwen3-32B"),
        (("Qwen3-32B", "--hardware", "b20"), "did you mean b200"),
        (("Qwen3-32B", "--hardware", "mi300x", "--format", "fp4", "--check", "x"), "x"),
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
