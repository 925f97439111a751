"""Attention, a server's steps and collectives over nodes, held to their laws."""

import json

import pytest

from lightspeed.catalog import accelerator
from lightspeed_cli.main import main
from lightspeed_models.llm.config import read_config
from lightspeed_models.llm.step import Replica, mixed_step
from lightspeed_models.simulators import serving
from lightspeed_tools.trace.account import accounts
from lightspeed_tools.trace.operators import attention_flops
from lightspeed_tools.trace.pieces import TraceError
from lightspeed_tools.trace.reader import of_events
from lightspeed_tools.trace.served import served
from lightspeed_tools.trace.work import compute_of, expected_time
from lightspeed_tools.trace.writer import COMPUTE, Recorder, about, save

CONFIG = {
    "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 4096,
    "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
    "intermediate_size": 14336, "vocab_size": 128256, "tie_word_embeddings": False,
    "hidden_act": "silu", "head_dim": 128, "rms_norm_eps": 1e-5, "max_position_embeddings": 8192,
    "rope_theta": 5e5, "torch_dtype": "bfloat16",
}  # fmt: skip


def attention(causal, microseconds):
    rank = Recorder(0)
    tie = rank.tie()
    dims = [[2, 32, 4096, 128], [2, 8, 4096, 128], [2, 8, 4096, 128], [], [], []]
    rank.of_host("cpu_op", "aten::_scaled_dot_product_flash_attention", 0, 9,
                 **{"External id": tie["External id"], "Input Dims": dims,
                    "Input type": ["c10::BFloat16"] * 3 + ["Scalar"] * 3,
                    "Concrete Inputs": ["", "", "", "0.", str(causal), ""]})  # fmt: skip
    rank.ran("flash_fwd_kernel", COMPUTE, 0, 1000 * microseconds, **tie)
    trace = of_events(rank.events, about(0, 1, "attention"))
    return trace, accounts(trace)[0]


def test_attention_is_held_to_the_peak():
    flops = 4 * 2 * 32 * 4096 * 4096 * 128
    for causal, work in ((False, flops), (True, flops / 2)):
        (found,) = compute_of(*attention(causal, 1000)).of("attention")
        assert found.work.shape[5] == causal and found.work.number_format == "bf16"
        peak = float(accelerator("h100_sxm").bf16)
        assert found.share == pytest.approx(work / peak / 1e-3, rel=1e-3)


@pytest.mark.parametrize("queries, keys", [(5, 5), (1, 7), (3, 8), (7, 4)])
def test_a_causal_mask_is_counted_as_it_is_drawn(queries, keys):
    """The last query sees every key; one before it sees one less."""
    drawn = sum(key <= keys - queries + query for query in range(queries) for key in range(keys))
    assert attention_flops(1, 1, queries, keys, 1, True) == 4 * drawn


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(CONFIG))
    return path


def server():
    """The steps of a simulated server, named as vLLM names them."""
    cost = serving.Cost(9e-3, token=2e-5)
    ran = serving.simulate([512] * 8, [6] * 8, cost, concurrency=4, record=True)
    rank = Recorder(0)
    for group in ran.steps:
        for n in range(group.steps):
            length = 1e9 * (group.end - group.start) / group.steps
            start = round(1e9 * group.start + n * length)
            reads = f"execute_context_{int(group.tokens > 0)}({group.tokens})"
            name = f"{reads}_generation_{group.rows}({group.rows})"
            rank.of_host("user_annotation", name, start, round(length))
            rank.clock = max(rank.clock, start)
            rank.launched("attention_and_gemm", COMPUTE, start + 3_000, start + round(length))
    return rank


def test_a_servers_steps_are_held_to_the_models_bytes(config):
    rank = server()
    trace = of_events(rank.events, about(0, 1, "served"))
    model = read_config(config)
    steps = served(trace, accounts(trace)[0], model)
    decoding = next(s for s in steps if not s.tokens)
    chip = accelerator("h100_sxm")
    reads = 2 * (model.parameters - model.embeddings / 2) / float(chip.hbm_bandwidth)
    assert decoding.bound == pytest.approx(reads, rel=0.02)
    assert decoding.time == pytest.approx(9e-3, rel=0.01) and 0 < decoding.share < 1
    assert sum(s.count for s in steps) == len(trace.steps())


def test_the_command_takes_a_config(config, tmp_path, capsys):
    (path,) = save([server()], 1, tmp_path, "served")
    assert main(["trace", str(path), "--model", str(config)]) == 0
    assert "decode" in capsys.readouterr().out
    assert main(["trace", str(path), "--model", str(config), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["served"]


@pytest.mark.parametrize(
    ("name", "tokens", "rows", "cached"),
    [
        ("execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk32768sqsq32sqsk32768)",
         0, 32, 1024),
        ("execute_9_context_1(sq512sk512sqsq262144sqsk262144)_generation_8(sq8sk800sqsq8sqsk800)",
         512, 8, 100),
        ("step[DECODE bs=32]", 0, 32, 0), ("step[EXTEND bs=2 toks=512]", 512, 0, 0),
    ],
)  # fmt: skip
def test_steps_are_held_to_what_their_names_say_is_cached(config, name, tokens, rows, cached):
    rank = Recorder(0)
    rank.of_host("user_annotation", name, 0, 500_000)
    rank.of_host("user_annotation", "step[DECODE bs=77]", 10_000, 400_000)  # inside the other one
    rank.launched("gemm", COMPUTE, 10_000, 20_000_000)
    trace = of_events(rank.events, about(0, 1, "served"))
    model = read_config(config)
    (step,) = served(trace, accounts(trace)[0], model)
    assert (step.tokens, step.rows, step.cached) == (tokens, rows, cached)
    assert step.time == pytest.approx(19.99e-3)
    chip = accelerator("h100_sxm")
    replica = Replica(float(chip.bf16), float(chip.hbm_bandwidth), float(chip.link_bandwidth), 1)
    law = mixed_step(model, replica, tokens, rows, cached, tokens / 2).time
    assert step.bound == pytest.approx(float(law))


def test_what_can_not_be_held_to_a_model_is_refused_by_name(config):
    rank = Recorder(0)
    rank.launched("gemm", COMPUTE, 10_000, 20_000)
    model = read_config(config)
    for named, said in (("NVIDIA H100 80GB HBM3", "as vLLM or SGLang"), ("Quux 9", "no chip")):
        trace = of_events(rank.events, about(0, 1, "none", named))
        with pytest.raises(TraceError, match=said):
            served(trace, accounts(trace)[0], model)


def test_a_group_over_nodes_has_no_law_without_its_network():
    told = ("NVIDIA H100 80GB HBM3", "allreduce", 1e8, 8)
    assert expected_time(*told, 1) > 0
    assert expected_time(*told, 8) is None and expected_time(*told, None) is None
