"""Room for caches against what vLLM logged; formats of checkpoints against bytes on disk."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from lightspeed.errors import BadArgument
from lightspeed_models.cards import card
from lightspeed_models.llm import decoder, read_config
from lightspeed_models.llm.checkpoint import Formats, formats_of, parts_of, read_checkpoint
from lightspeed_models.served import served_replica
from lightspeed_models.served_memory import request_bytes, room_bytes, share_of, weight_bytes

GIB = 2**30
QWEN = {
    "architectures": ["Qwen2ForCausalLM"], "hidden_size": 1536, "intermediate_size": 8960,
    "num_hidden_layers": 28, "num_attention_heads": 12, "num_key_value_heads": 2,
    "vocab_size": 151936, "tie_word_embeddings": True,
}  # fmt: skip
CODE = {
    "architectures": ["LlamaForCausalLM"], "hidden_size": 8192, "intermediate_size": 22016,
    "num_hidden_layers": 48, "num_attention_heads": 64, "num_key_value_heads": 8,
    "vocab_size": 32016, "tie_word_embeddings": False,
}  # fmt: skip
BF16, FP8, MXFP4 = Formats(), Formats("fp8", "fp8", "fp8"), Formats("mxfp4")
OTHER = "memory=16380MiB,bandwidth=576GB/s,bf16=100TFLOPS"
INT4 = Formats("int4", group=32)
# What vLLM logged as "GPU KV cache size", tokens, or GiB of a GPU: name of the source, model,
# formats, card, GPUs, share of memory, logged.
LOGS = (
    ("vllm#21348", "Qwen3-235B-A22B", FP8, "h100_sxm", 4, 0.9, 178880),
    ("vllm#10517", "Llama-3.1-8B", BF16, "rtx_4090", 1, 0.9, 31232),
    ("vllm#19996", "Llama-3.1-8B", BF16, "h100_sxm", 1, 0.9, 410128),
    ("vllm#23278", "gpt-oss-120b", MXFP4, "h100_sxm", 1, 0.9, -2.14),
    ("vllm#27508", "gpt-oss-120b", MXFP4, "h100_sxm", 1, 0.95, 1.71),
    ("recipes, Kimi-K2-Thinking", "Kimi-K2.5", INT4, "h200_sxm", 8, 0.9, 715072),
    ("gpt-oss-20b v0.19", "gpt-oss-20b", MXFP4, "a100_80gb", 1, 0.65, 36.56),
    ("Gemma-4-26B-A4B v0.19", "gemma-4-26B-A4B", BF16, "a100_80gb", 1, 0.9, 21.5),
    ("Qwen2.5-1.5B v0.11", QWEN, BF16, OTHER, 1, 0.6, 188512),
    ("Llama-8B v0.19", "Llama-3.1-8B", BF16, "rtx_4090", 1, 0.9, 41408),
    ("vllm#13061", "Qwen2.5-14B", BF16, "rtx_4090", 2, 0.98, 81536),
    ("CodeLlama-34B V0", CODE, BF16, "h100_sxm", 1, 0.9, 40592),
)  # fmt: skip


def model_of(name):
    return read_config(name) if isinstance(name, dict) else decoder(name)


def test_room_for_caches_is_what_vllm_logged_on_ten_of_twelve_cards():
    """Within 3 % of the card's memory; the law's three figures were fitted to eight of them."""
    off = {}
    for source, name, formats, chip, gpus, share, logged in LOGS:
        model, entry = model_of(name), card(chip)[0]
        replica = served_replica(entry, gpus, 1, formats.products, formats)
        capacity = float(entry.hbm_capacity)
        told = room_bytes(model, replica, capacity, "vllm", formats, share)
        token = request_bytes(model, 100_000, 2.0, gpus) - request_bytes(model, 99_999, 2.0, gpus)
        real = logged * token if isinstance(logged, int) else logged * GIB
        off[source] = (told - real) / capacity
    near = [source for source, error in off.items() if abs(error) <= 0.03]
    assert len(near) >= 10, {source: f"{error:+.1%}" for source, error in off.items()}


def test_each_layer_lies_over_its_own_heads_and_beyond_in_copies():
    llama, deepseek = decoder("Llama-3.1-8B"), decoder("DeepSeek-V3")
    for model, ways, parts in ((llama, 4, 4), (llama, 16, 8), (deepseek, 8, 1)):
        whole, part = (request_bytes(model, 1000, 2.0, n) for n in (1, ways))
        assert part == pytest.approx(whole / parts), (model.name, ways)
    assert request_bytes(llama, 1000, 2.0) == pytest.approx(float(llama.request_bytes(1000, 2)))


def test_engines_take_memory_by_their_own_rules():
    model, gpus = decoder("Llama-3.1-8B"), served_replica("h100_sxm", 1, 1, "bf16")
    weights = weight_bytes(model, gpus)
    assert weights == pytest.approx(2 * model.parameters)
    rooms = {name: room_bytes(model, gpus, 85.5e9, name) for name in ("vllm", "sglang", "trtllm")}
    assert all(0 < room < 85.5e9 - weights for room in rooms.values())
    assert (share_of("vllm"), share_of("trtllm")) == (0.92, 0.9)
    less = room_bytes(model, gpus, 85.5e9, "vllm", share=0.8)
    assert rooms["vllm"] - less == pytest.approx(0.12 * (85.5e9 - 0.55 * GIB))


# Bytes of all *.safetensors of a checkpoint, as the hub lists them.
DISK = {
    "Qwen2.5-72B-Instruct-AWQ": (41.6e9, {"quant_method": "awq", "bits": 4, "group_size": 128,
                                          "zero_point": True}),
    "Qwen2.5-72B-Instruct-GPTQ-Int4": (41.6e9, {"quant_method": "gptq", "bits": 4,
                                                "group_size": 128, "sym": True}),
}  # fmt: skip


def test_six_formats_are_within_3_percent_of_the_bytes_on_disk():
    folder = Path(__file__).parent / "data/configs"
    qwen = read_config(folder / "qwen2.5-72b-awq.json")
    found = {name: formats_of({"quantization_config": own}).bytes(qwen) / size
             for name, (size, own) in DISK.items()}  # fmt: skip
    for name, size in {
        "openai/gpt-oss-120b": 65.2e9, "openai/gpt-oss-20b": 13.8e9,
        "meta-llama/Llama-3.1-8B": 16.06e9, "moonshotai/Kimi-K2.5": 595e9,
        "RedHatAI/Meta-Llama-3.1-8B-Instruct-FP8": 9.08e9,
    }.items():  # fmt: skip
        checkpoint = read_checkpoint(name)
        found[name] = checkpoint.formats.bytes(checkpoint.model) / size
    off = {name: f"{ratio - 1:+.1%}" for name, ratio in found.items() if abs(ratio - 1) > 0.03}
    assert not off, off


@pytest.mark.parametrize(
    ("own", "says"),
    [
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, "fp8 fp8 fp8 bf16"),
        ({"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn",
          "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"]}, "mxfp4 bf16 mxfp4 bf16"),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8",
          "exclude_modules": ["lm_head"]}, "nvfp4 nvfp4 nvfp4 fp8"),
        ({"quant_method": "compressed-tensors", "format": "pack-quantized", "ignore": [
          "lm_head", "re:.*self_attn.*", "re:.*shared_experts.*"], "config_groups": {"group_0": {
          "targets": ["Linear"], "weights": {"num_bits": 4, "type": "int", "group_size": 32}}}},
         "int4 bf16 bf16 bf16"),
        ({"quant_method": "compressed-tensors", "format": "float-quantized", "config_groups": {
          "group_0": {"targets": ["Linear"], "weights": {"num_bits": 8, "type": "float"}}},
          "kv_cache_scheme": {"num_bits": 8, "type": "float"}}, "fp8 fp8 fp8 fp8"),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, "int4 int4 int4 bf16"),
    ],
)  # fmt: skip
def test_formats_are_read_part_by_part(own, says):
    found = formats_of({"quantization_config": own})
    assert " ".join((found.experts, found.attention, found.mlp, found.cache)) == says
    assert found.tables == "bf16"


def test_formats_beside_a_config_in_a_name_and_as_said(tmp_path):
    told = {"quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": None}}
    (tmp_path / "hf_quant_config.json").write_text(json.dumps(told), "utf-8")
    assert formats_of({}, tmp_path).experts == "fp8"
    assert formats_of({}, None, "nvidia/Llama-3.3-70B-Instruct-NVFP4").experts == "nvfp4"
    plain = formats_of({"torch_dtype": "bfloat16"})
    assert plain == Formats() and plain.quantized("fp8").experts == "fp8"
    wider = plain.quantized("fp8", "fp8")
    assert (wider.tables, wider.cache, wider.source) == ("bf16", "fp8", "as you say")
    with pytest.raises(BadArgument, match="--weights"):
        formats_of({"quantization_config": {"quant_method": "unheard"}})


def test_parts_of_a_model_are_all_of_its_matrices():
    for name in ("DeepSeek-V3", "Qwen3.5-397B-A17B", "Llama-3.1-8B", "Nemotron-3-Ultra"):
        model = decoder(name)
        rest = model.parameters - sum(parts_of(model).values())
        assert 0 <= rest < 0.002 * model.parameters, name
    assert replace(BF16, experts="int4", group=128).width("experts") == 0.5 + 2 / 128
