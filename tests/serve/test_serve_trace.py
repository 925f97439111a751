"""`lightspeed serve --trace`: reading arrivals, and what a layout makes of them."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lightspeed_cli import main
from lightspeed_models.cards import card
from lightspeed_models.llm import decoder
from lightspeed_models.llm.checkpoint import Formats, read_checkpoint
from lightspeed_models.llm.step import engine
from lightspeed_models.served_law import CONFIRMED
from lightspeed_tools.serve.arrivals import (
    Load,
    at_random,
    closed_loop,
    cost_at,
    fits,
    mean_job,
    read_load,
    replays,
    rules_of,
    shares,
)
from lightspeed_tools.serve.plan import Job, layouts, plans, published

FP8 = Formats("fp8", "fp8", "fp8")
DATA = Path(__file__).parent / "data/runs"
JOB = Job(decoder("Qwen3-32B"), card("b200")[0], 2, FP8, "vllm", 1000, 100)
PLAIN = "seconds,prompt,output\n1.5,100,10\n1.75,200,1\n4,300,30\n"
AZURE = """TIMESTAMP,ContextTokens,GeneratedTokens
2023-11-16 18:17:01.5000000,100,10
2023-11-16 18:17:01.7500000,200,1
2023-11-16 18:17:04.0000000,300,30
"""
MOONCAKE = "\n".join(
    json.dumps({"timestamp": t, "input_length": i, "output_length": o, "hash_ids": [0]})
    for t, i, o in ((0, 100, 10), (250, 200, 1), (2500, 300, 30))
)
BAILIAN = "\n".join(
    json.dumps({"chat_id": 7, "timestamp": t, "input_length": i, "output_length": o})
    for t, i, o in ((61.5, 100, 10), (61.75, 200, 1), (64.0, 300, 30))
)


def written(folder, text):
    file = folder / "trace.txt"
    file.write_text(text, "utf-8")
    return file


@pytest.mark.parametrize("text", [PLAIN, AZURE, MOONCAKE, BAILIAN, "\n" + MOONCAKE + "\n\n"])
def test_four_ways_to_write_the_same_load(tmp_path, text):
    found = read_load(written(tmp_path, text))
    assert found.arrivals == pytest.approx([0, 0.25, 2.5])
    assert (found.prompts, found.outputs) == ([100, 200, 300], [10, 1, 30])


def test_prefixes_of_a_trace_are_found_in_what_memory_is_left(tmp_path):
    """The second prompt is the first and 512 tokens more; the third shares nothing."""
    rows = [(0, 1024, [1, 2]), (60_000, 1536, [1, 2, 3]), (120_000, 600, [8, 9])]
    text = "\n".join(
        json.dumps({"timestamp": t, "input_length": n, "output_length": 10, "hash_ids": keys})
        for t, n, keys in rows
    )
    load = read_load(written(tmp_path, text))
    assert load.block == 512 and load.found(1e6) == [0, 1024, 0]
    assert load.found(512) == [0, 512, 0]
    assert load.part(1, 2).found(1e6) == [0]
    best = replays(JOB, load)[0][0]
    assert best.found == pytest.approx(1024 / 3160) or best.found == 0  # 0 where workers take turns
    plain = replays(JOB, replace(load, keys=None))[0]
    same = next(one for one in plain if one.layout == best.layout)
    assert same.found is None and best.first_token.sum() <= same.first_token.sum()


def test_slots_and_budget_are_of_each_replica_of_attention():
    for run, _ in layouts(replace(JOB, model=decoder("gpt-oss-120b"), gpus=8)):
        rules = rules_of(run)
        assert rules.slots == 1024 * run.decode.data and rules.budget == 8192 * run.decode.data


@pytest.mark.parametrize(
    ("name", "chip", "gpus", "engine_name", "prompt", "output", "token", "wait"),
    [
        ("Llama-3.1-70B", "a100", 8, "sglang", 500, 505, 0.06, 0.5),
        ("Llama-3.1-70B", "h100", 8, "vllm", 2000, 500, 0.03, 1.0),
        ("Qwen3-32B", "b200", 8, "vllm", 8192, 1024, 0.02, 0.5),
        ("DeepSeek-R1", "h200", 8, "sglang", 2000, 500, 0.05, 2.0),
        ("DeepSeek-R1", "b200", 8, "trtllm", 8192, 1024, 0.04, 2.0),
        ("Mixtral-8x7B", "a100", 4, "vllm", 700, 200, 0.05, 1.0),
        ("Llama-3.1-405B", "h200", 8, "vllm", 1000, 1000, 0.08, 3.0),
    ],
)
def test_the_simulator_confirms_the_first_line(
    name, chip, gpus, engine_name, prompt, output, token, wait
):
    """Each layout under half the time reading: requests at random of random lengths, step by step,
    have the medians that are told to 15 %.
    """
    known = read_checkpoint(name)
    job = Job(
        known.model, card(chip)[0], gpus, known.formats, engine_name, prompt, output, token, wait
    )
    found = [plan for plan in plans(job)[0] if plan.reading < CONFIRMED]
    assert found
    for plan in found:
        first, between = at_random(plan, job)
        assert np.median(first) == pytest.approx(plan.first_token, rel=0.15), plan.layout
        assert np.median(between) == pytest.approx(plan.per_token, rel=0.15), plan.layout


def test_a_log_that_is_out_of_order_is_put_in_order(tmp_path):
    head, *rows = PLAIN.splitlines()
    turned = "\n".join([head, *reversed(rows)])
    assert read_load(written(tmp_path, turned)) == read_load(written(tmp_path, PLAIN))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "has no request"),
        ("seconds,prompt,output\n", "has no request"),
        ("time,in,out\n1,2,3\n", "has the fields time, in, out; expected a time and tokens"),
        (PLAIN.replace("200", "many"), "line 3, prompt: 'many', expected a whole number"),
        (PLAIN.replace("30\n", "0\n"), "line 4, output: '0', expected a whole number"),
        (PLAIN.replace("300", "3.5"), "line 4, prompt: '3.5'"),
        (PLAIN.replace(",30\n", "\n"), "line 4, output: None"),
        (PLAIN.replace("1.5", "nan"), "line 2, seconds: 'nan', expected seconds"),
        (AZURE.replace("2023-11-16 18:17:04", "noon"), "line 4, TIMESTAMP: 'noon"),
        (MOONCAKE.replace("250,", '"x",'), "line 2, timestamp: 'x', expected milliseconds"),
        (MOONCAKE + "\n{", "line 4: not JSON"),
        (MOONCAKE + "\n3", "line 4: expected an object"),
    ],
)
def test_a_slip_names_line_and_field(tmp_path, capsys, text, says):
    file = str(written(tmp_path, text))
    assert main(["serve", "Qwen3-32B", "--hardware", "b200", "--trace", file]) == 2
    assert says in capsys.readouterr().err


def test_a_request_alone_takes_what_the_law_says():
    """By hand: its first token by the law of one in flight, then steps that hold a token more."""
    prompt, output = 1000, 5
    job = replace(JOB, gpus=1, prompt=prompt, output=output)
    (found,), _ = replays(job, Load([0.0], [prompt], [output]))
    run, constants = found.run, engine("vllm")
    assert run.requests == 1
    cost = cost_at(run, constants)
    steps = [cost.base + cost.row + cost.held * (prompt + i) for i in range(output - 1)]
    assert found.per_token == pytest.approx([np.mean(steps)])
    assert found.per_token == pytest.approx([run.decoding().step(constants).time], rel=1e-3)
    # The law adds the wait for half a step, which nobody takes here.
    step = run.decoding().step(constants).time
    assert found.first_token == pytest.approx([run.first(constants) - step / 2], rel=0.04)
    assert found.put_off == 0


def test_a_simulated_row_is_as_far_off_between_tokens_as_the_law():
    rows = [row for row in published() if row.run.together and row.engine == "vllm"]
    rows = [row for row in rows if fits(row.run) and row.run.requests <= 64][::10]
    assert len(rows) > 30
    measured = np.array([row.per_token for row in rows])
    law = np.array([row.told(engine("vllm"))[0] for row in rows])
    simulated = np.array([closed_loop(row)[0] for row in rows])
    off = [np.median(abs(told / measured - 1)) for told in (simulated, law)]
    assert off[0] < off[1] + 0.03


@pytest.mark.parametrize("name", ["epoch.csv", "gateway.log.jsonl"])
def test_logs_of_gateways_are_read_by_what_their_columns_mean(name):
    load = read_load(DATA / name)
    assert (load.prompts, load.outputs) == ([1020, 3180], [129, 8])
    assert load.arrivals[1] == pytest.approx({"epoch.csv": 1.38}.get(name, 1.5), abs=1e-6)


def test_far_apart_all_requests_fare_as_one_alone_does():
    many = 20
    one, _ = replays(JOB, Load([0.0], [1000], [100]))
    apart, _ = replays(JOB, Load([100.0 * i for i in range(many)], [1000] * many, [100] * many))
    for alone, each in zip(one, apart, strict=True):
        assert each.layout == alone.layout
        assert each.first_token == pytest.approx([alone.first_token[0]] * many)
        assert each.per_token == pytest.approx([alone.per_token[0]] * many)


def test_workers_take_turns():
    """Two workers with the load twice, each request beside its twin: as one worker with it once."""
    rng = np.random.default_rng(3)
    times = np.cumsum(rng.exponential(0.02, 200)).tolist()
    prompts, outputs = (rng.integers(1, most, 200).tolist() for most in (4000, 200))
    once = Load(times, prompts, outputs)
    twice = Load(*(np.repeat(x, 2).tolist() for x in (times, prompts, outputs)))
    (one,), _ = replays(replace(JOB, gpus=1), once)
    two = next(r for r in replays(JOB, twice)[0] if r.layout == "2 × one GPU")
    assert two.first_token.tolist() == one.first_token.tolist() * 2
    assert two.per_token.tolist() == one.per_token.tolist() * 2


def test_the_promise_is_counted_request_by_request():
    rng = np.random.default_rng(4)
    load = Load(
        np.cumsum(rng.exponential(0.05, 300)).tolist(),
        rng.integers(1, 8000, 300).tolist(),
        rng.integers(1, 300, 300).tolist(),
    )
    job = replace(mean_job(JOB, load), gpus=1)
    (free,), _ = replays(job, load)
    assert free.kept == 1
    wait, token = np.median(free.first_token), np.median(free.per_token)
    assert replays(replace(job, first_token=wait), load)[0][0].kept == pytest.approx(0.5, abs=0.01)
    (both,), _ = replays(replace(job, first_token=wait, per_token=token), load)
    assert 0 < both.kept < 0.5


def test_a_request_that_no_memory_holds_is_refused_with_the_figure():
    found, refused = replays(replace(JOB, gpus=1), Load([0.0], [3_000_000], [10]))
    assert not found and "the longest request holds 3,000,010 tokens, room for" in refused[0][1]


def test_the_answer_says_that_it_is_simulated(tmp_path, capsys):
    text = "seconds,prompt,output\n" + "".join(f"{i / 10},{500 + i},{1 + i}\n" for i in range(100))
    words = ("serve", "Qwen3-32B", "--hardware", "b200", "--gpus", "2", "--ttft", "1s", "--trace")
    assert main([*words, str(written(tmp_path, text))]) == 0
    said = capsys.readouterr().out
    assert "simulated" in said.splitlines()[0] and "in promise" in said
    assert main([*words, str(written(tmp_path, text)), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["simulated"] and told["requests"] == 100
    assert told["seconds"] == pytest.approx(9.9)
    for one in told["layouts"]:
        assert 0 < one["ttft"]["median"] <= one["ttft"]["p99"]
        assert 0 < one["tpot"]["median"] <= one["tpot"]["p99"]


def test_answers_of_one_token_have_no_time_between_tokens(tmp_path, capsys):
    text = "seconds,prompt,output\n0,100,1\n"
    words = ("serve", "Qwen3-32B", "--hardware", "b200", "--gpus", "1", "--trace")
    assert main([*words, str(written(tmp_path, text))]) == 0
    assert "none" in capsys.readouterr().out


def test_lengths_are_told_once(tmp_path, capsys):
    words = ("serve", "Qwen3-32B", "--hardware", "b200", "--in", "1k", "--trace")
    assert main([*words, str(written(tmp_path, PLAIN))]) == 2
    assert "leave out --in and --out" in capsys.readouterr().err


def test_quantiles():
    assert shares(np.arange(101.0)) == {"median": 50, "p99": 99}
    assert shares(np.array([])) == {}
