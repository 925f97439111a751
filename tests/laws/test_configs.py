"""A config.json is counted as its makers count it, or refused by name; never guessed."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from laws import each

from lightspeed_cli import main
from lightspeed_models.llm import decoder, load
from lightspeed_models.llm.config import read_config
from lightspeed_models.llm.families import FAMILIES
from lightspeed_models.llm.keys import ConfigRefused
from lightspeed_models.llm.mixers import (
    Attention,
    CompressedAttention,
    DeltaNet,
    LatentAttention,
    ShortConvolution,
)

MODELS = json.loads((Path(__file__).parents[1] / "published/model_configs.json").read_text("utf-8"))
del MODELS["_about"]
COUNTED = {name: row for name, row in MODELS.items() if {"published", "modelled"} & row.keys()}
LLAMA = MODELS["Meta-Llama-3.1-8B"]["config"]


def test_a_hundred_configs_and_most_families():
    assert len(COUNTED) >= 100
    tried = {row["config"]["architectures"][0] for row in MODELS.values()}
    rest = {reader for name, reader in FAMILIES.items() if name not in tried}
    assert len(rest - {FAMILIES[name] for name in tried}) <= 4


@each("name", COUNTED)
@pytest.mark.holds("docs/your-own-question.md", "counts a model from its config.json")
def test_a_count_is_the_published_one(name):
    row = COUNTED[name]
    published = row["published"] if "published" in row else row["modelled"]
    found = read_config(COUNTED[name]["config"]).parameters
    if isinstance(published, int):
        assert found == published, name
    else:
        digits = len(published.rstrip("B").partition(".")[2])
        assert f"{found / 1e9:.{digits}f}B" == published, name


def test_a_model_is_one_however_it_is_spelt(tmp_path, capsys):
    spelt = {
        "Qwen3-32B": ("qwen3_32b", "Qwen/Qwen3-32B", "qwen3 32b", "Qwen/Qwen3-32B-FP8"),
        "Llama-3.1-70B": ("llama3_70b", "meta-llama/Meta-Llama-3-70B-Instruct", "Llama 3.3 70B"),
        "DeepSeek-V3": ("deepseek_v3", "deepseek-ai/DeepSeek-R1-0528", "DeepSeek V3.1"),
        "GPT-3-175B": ("gpt3_175b",), "gpt-oss-120b": ("openai/gpt-oss-120b", "GPT OSS 120B"),
    }  # fmt: skip
    for name, others in spelt.items():
        assert {load(other).name for other in others} == {name}
        assert {load(other) for other in others} == {decoder(name)}
    (tmp_path / "config.json").write_text(json.dumps(LLAMA))
    assert load(str(tmp_path)).layers == load("Llama-3.1-8B").layers
    for wrong, says in (("Qwen3-32C", "did you mean Qwen3-32B"), ("Qwen3-30B", "there are DeepSe")):
        assert main(["model", wrong]) == 2 and says in capsys.readouterr().err
    assert main(["model", "Qwen/Qwen3-32B"]) == 0
    assert capsys.readouterr().out.startswith("Qwen3-32B\n")


@each("name", [name for name, row in MODELS.items() if "published_with_tower" in row])
def test_a_model_that_sees_is_counted_with_its_tower(name):
    decoder = read_config(MODELS[name]["config"])
    assert decoder.parameters + decoder.tower == MODELS[name]["published_with_tower"]


def test_a_tower_that_is_not_known_is_told():
    config = MODELS["Qwen3-VL-8B"]["config"]
    blind = config | {"vision_config": config["vision_config"] | {"model_type": "periscope"}}
    decoder = read_config(blind)
    assert decoder.tower == 0 and "the tower that sees is not counted" in decoder.assumed[-1]
    assert decoder.parameters == read_config(config).parameters


@each(
    "model, key, left_out",
    [
    # Keys that files leave out, and what huggingface/transformers 5.24 then builds.
    ("DeepSeek-V3", "first_k_dense_replace", 3), ("DeepSeek-V3", "q_lora_rank", 1536),
    ("DeepSeek-V2", "q_lora_rank", 1536), ("GLM-4.5", "first_k_dense_replace", 1),
    ("SmolLM3-3B", "tie_word_embeddings", True), ("Qwen2-0.5B", "num_key_value_heads", 32),
    ("Seed-OSS-36B", "attention_bias", True), ("ERNIE-4.5-21B-A3B", "moe_layer_start_index", 1),
    ],
)  # fmt: skip
def test_a_key_that_is_left_out_has_its_family_s_default(model, key, left_out):
    config = MODELS[model]["config"]
    heads = {"num_attention_heads": 64} if key == "num_key_value_heads" else {}
    rest = {name: value for name, value in config.items() if name != key} | heads
    decoder = read_config(rest)
    assert decoder.parameters == read_config(rest | {key: left_out}).parameters
    assert f"{key} = {left_out}, as this family has it" in decoder.assumed


def test_a_key_that_is_null_is_not_left_out():
    lite = MODELS["DeepSeek-V2-Lite"]["config"]
    whole = read_config(lite).layers[0].mixer
    assert whole.query_rank == 0 and lite["q_lora_rank"] is None
    low = read_config({k: v for k, v in lite.items() if k != "q_lora_rank"}).layers[0].mixer
    assert low.query_rank == 1536


def test_an_architecture_that_is_missing_is_taken_from_the_type_and_told():
    typed = {key: value for key, value in LLAMA.items() if key != "architectures"}
    decoder = read_config(typed | {"model_type": "llama"})
    assert decoder.parameters == read_config(LLAMA).parameters
    assert decoder.assumed[0].startswith("architectures is missing: LlamaForCausalLM, by model_ty")
    with pytest.raises(ConfigRefused, match="architectures = None: not known here"):
        read_config(typed | {"model_type": "hyena"})


@each("name", COUNTED)
@pytest.mark.holds("docs/your-own-question.md", "a key or a family that it does not know")
def test_an_unknown_key_is_refused_by_name_and_one_that_is_off_is_not(name):
    config = COUNTED[name]["config"]
    for place in filter(None, (config, config.get("text_config"))):
        place["zigzag_layers"] = 3
        with pytest.raises(ConfigRefused, match="zigzag_layers = 3: not known here"):
            read_config(config)
        del place["zigzag_layers"]
    assert read_config(config | {"zigzag_layers": None}) == read_config(config)


@each(
    "change, words",
    [
    ({"architectures": ["MysteryForCausalLM"]}, "architectures = ['MysteryForCausalLM']"),
    ({"architectures": ["LlamaForCausaLM"]}, "the nearest that is known: LlamaForCausalLM"),
    ({"architectures": None}, "architectures = None"),
    ({"hidden_size": "4096"}, "hidden_size = '4096': expected a whole number"),
    ({"num_hidden_layers": 0}, "num_hidden_layers = 0: expected a whole number of at least 1"),
    ({"num_key_value_heads": 5}, "num_key_value_heads = 5: expected a divisor of 32 heads"),
    ({"head_dim": None, "hidden_size": 4097}, "32 heads don't divide 4097"),
    ({"vocab_size": None}, "vocab_size is missing"),
    ({"layer_types": ["full_attention", "wavelet"] * 16}, "layer_types has 'wavelet'"),
    ({"sliding_window": 4096}, "sliding_window = 4096"),
    ({"tie_word_embeddings": "yes"}, "tie_word_embeddings = 'yes': expected true or false"),
    ],
)  # fmt: skip
def test_what_is_refused(change, words):
    with pytest.raises(ConfigRefused) as refused:
        read_config(LLAMA | change)
    assert words in str(refused.value)


def test_more_experts_than_there_are():
    with pytest.raises(ValueError, match=r"active = 300: expected 1 to the 8 experts"):
        read_config(MODELS["Mixtral-8x7B-v0.1"]["config"] | {"num_experts_per_tok": 300})


@each(
    "key, name",
    [
    ("llama3_8b", "Meta-Llama-3.1-8B"), ("llama3_70b", "Meta-Llama-3.1-70B"),
    ("llama3_405b", "Meta-Llama-3.1-405B"), ("mixtral_8x7b", "Mixtral-8x7B-v0.1"),
    ("deepseek_v3", "DeepSeek-V3"),
    ],
)  # fmt: skip
def test_the_catalog_counts_the_same(key, name):
    """What is shipped has the layers of the config.json that its makers publish."""
    assert decoder(key).layers == read_config(MODELS[name]["config"]).layers


def test_a_window_bounds_what_a_request_holds_and_reads():
    local, whole = (Attention(4096, 32, 8, 128, window=w) for w in (1024, 0))
    assert local.growth(2) == 0 and local.state(2) == whole.growth(2) * 1024
    for context in (10, 1024, 100_000):
        assert local.read_bytes(context, 2) == whole.read_bytes(min(context, 1024), 2)
        assert local.flops(context) == whole.flops(min(context, 1024))


def test_a_request_holds_a_window_as_far_as_it_is_filled():
    config = MODELS["Mistral-7B-v0.1"]["config"]
    decoder, token = read_config(config), 2 * 32 * 8 * 128 * 2
    assert decoder.request_bytes(100) == 100 * token
    assert decoder.request_bytes(10**6) == 4096 * token == decoder.state_bytes()
    wide = read_config(config | {"sliding_window": 262144, "max_position_embeddings": 131072})
    assert wide.kv_cache_bytes_per_token() == token and wide.state_bytes() == 0
    assert "a window of 262,144 tokens is none" in " ".join(wide.assumed)


def test_a_prompt_s_tokens_see_half_of_it_or_their_window():
    whole = read_config(LLAMA)
    half = whole.flops_per_token(2048, "training") / 3
    assert abs(whole.flops_per_token(4096, "prefill") / half - 1) < 1e-12
    local, tokens = read_config(MODELS["Mistral-7B-v0.1"]["config"]), 6000
    each = [local.flops_per_token(seen + 0.5, "training") / 3 for seen in range(tokens)]
    assert abs(local.flops_per_token(tokens, "prefill") / (sum(each) / tokens) - 1) < 1e-4


def test_a_selective_scan_keeps_a_few_numbers_a_channel():
    scan = read_config(MODELS["Mamba of transformers"]["config"]).layers[0].mixer
    assert scan.state(2) == 1536 * 16 * 4 + 1536 * 3 * 2 and scan.growth(2) == 0
    short = ShortConvolution(2048, 3)
    assert short.state(2) == 2048 * 2 * 2 == short.read_bytes(10**6, 2)
    # Kimi's gates: rates and gate through 128 numbers in place of a matrix as wide as the values
    kimi, plain = (DeltaNet(2304, 32, 32, 128, 128, 4, gate_rank=r) for r in (128, 0))
    wide = 4096
    assert kimi.matrices - plain.matrices == 2 * 128 * (2304 + wide) - 2304 * (wide + 32)


def test_latent_attention_absorbed_reads_one_vector_for_all_heads():
    latent = LatentAttention(7168, 128, 512, 64, 128, 128, 1536)
    assert latent.growth(2) == (512 + 64) * 2
    # expanded: each head's key (128 + 64) and value (128); absorbed: the vector, twice, and 64
    assert latent.flops(1, decoding=False) == 2 * 128 * (128 + 64 + 128)
    assert latent.flops(1) == 2 * 128 * (2 * 512 + 64)


def test_an_index_looks_at_all_and_reads_a_few():
    plain = LatentAttention(7168, 128, 512, 64, 128, 128, 1536)
    sparse = LatentAttention(7168, 128, 512, 64, 128, 128, 1536, 64, 128, 2048)
    assert sparse.read_bytes(1000, 2) == plain.read_bytes(1000, 2) + 132 * 1000
    far = 10**6
    assert sparse.read_bytes(far, 2) == plain.read_bytes(2048, 2) + 132 * far
    assert sparse.matrices - plain.matrices == 1536 * 64 * 128 + 7168 * (128 + 64)


def test_an_index_on_shared_heads_looks_at_all_and_reads_blocks():
    """MiniMax-M3's: 16 blocks of 128 tokens."""
    plain = Attention(6144, 64, 4, 128)
    sparse = replace(plain, index_heads=4, index_width=128, index_top=16 * 128)
    token, key = 2 * 4 * 128 * 2, 128 * 2
    assert sparse.growth(2) == token + key
    for context in (100, 10**6):
        read = token * min(context, 2048) + key * context
        assert sparse.read_bytes(context, 2) == read
    scores = 4 * 64 * 128 * 2048 + 2 * 4 * 128 * 10**6
    assert sparse.flops(10**6) == scores < plain.flops(10**6) / 15
    assert sparse.matrices - plain.matrices == 6144 * (4 + 1) * 128


def test_compressed_attention_at_a_million_tokens():
    """DeepSeek-V4's report: 27 % of V3.2's FLOPs and, kept in two bytes, 9.62 GiB for a request;
    49 and 13 of 1,600 and 284 billion parameters are used by a token, its table left out.
    """
    pro, flash = (read_config(MODELS[f"DeepSeek-V4-{name}"]["config"]) for name in ("Pro", "Flash"))
    before, far = read_config(MODELS["DeepSeek-V3.2"]["config"]), 2**20
    assert f"{pro.parameters / 1e12:.1f}" == "1.6"
    for model, active in ((pro, 49), (flash, 13)):
        assert round((model.active_parameters - model.embeddings / 2) / 1e9) == active
    assert 0.26 < pro.flops_per_token(far, "decode") / before.flops_per_token(far, "decode") < 0.275
    bf16 = sum(
        layer.repeat * (m.head_width + m.index_width) * 2 / m.ratio
        for layer in pro.layers
        if (m := layer.mixer).ratio
    )
    assert f"{bf16 * far / 2**30:.2f}" == "9.62"
    # The index's keys take one byte and a share of a scale here, instead of two.
    assert pro.kv_cache_bytes_per_token() == bf16 - 30 * (2 * 128 - 132) / 4


def test_compressed_attention_reads_a_window_an_index_and_a_few():
    local = CompressedAttention(7168, 128, 512, 1536, 16, 1024, 128)
    heavy = replace(local, ratio=128)
    sparse = replace(local, ratio=4, index_heads=64, index_width=128, index_top=1024)
    far = 2**20
    assert local.growth(2) == 0 and local.read_bytes(far, 2) == 128 * 512 * 2
    assert heavy.read_bytes(far, 2) == (128 + far / 128) * 512 * 2
    assert sparse.read_bytes(far, 2) == (128 + 1024) * 512 * 2 + 132 / 4 * far
    assert sparse.read_bytes(64, 2) == (64 + 16) * 512 * 2 + 132 / 4 * 64
    assert local.state(2) == 128 * 512 * 2 < heavy.state(2)


def test_a_state_does_not_grow():
    delta = DeltaNet(2048, 16, 32, 128, 128, 4)
    assert delta.growth(2) == 0 and delta.state(2) == 32 * 128 * 128 * 4 + 8192 * 3 * 2
    assert delta.read_bytes(1, 2) == delta.read_bytes(10**6, 2)


def test_the_command(tmp_path, capsys):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LLAMA))
    index = {"metadata": {"total_size": 2 * 8_030_261_248}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    assert main(["model", str(tmp_path), "--context", "32k", "--batch", "64"]) == 0
    told = capsys.readouterr().out
    assert "8,030,261,248" in told and "131 kB for each token" in told and "32,768" in told
    assert "2 for each parameter counted here" in told
    assert main(["model", str(path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["parameters"] == 8_030_261_248 and found["refused"] == []
    assert found["kv_bytes_per_token"] == 131072 and found["state_bytes"] == 0


def test_what_the_command_refuses(tmp_path, capsys):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LLAMA | {"zigzag_layers": 3}))
    assert main(["model", str(path), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["parameters"] is None and "zigzag_layers" in found["refused"][0]
    keys = {"active_parameters", "flops_per_token", "kv_bytes_per_token", "state_bytes", "assumed"}
    assert keys <= found.keys()
    for text, words in (("{", ": not JSON"), ("[1]", "holds one object")):
        path.write_text(text)
        assert main(["model", str(path)]) == 2 and words in capsys.readouterr().err
    assert main(["model", str(tmp_path / "none.json")]) == 2
    with pytest.raises(SystemExit):
        main(["model", str(path), "--context", "many"])
    assert "expected tokens" in capsys.readouterr().err


ODD = (
    None, 0, 1, -1, 3, 1.5, 2.0, float("nan"), float("inf"), True, False, "", "x", "7", [], [None],
    [1], [[1]], [{}], ["full_attention"], ["sliding_attention"] * 3, {}, {"a": 1}, 10**30,
)  # fmt: skip


def _changed(value):
    """What stands where a value should: anything at all, and lists that are nearly right."""
    yield from ODD
    if isinstance(value, list) and value:
        yield value[:-1]
        yield [*value, value[-1]]
        yield from ([odd, *value[1:]] for odd in ODD)
        if isinstance(value[0], dict):
            for key, inner in value[0].items():
                yield from ([value[0] | {key: odd}, *value[1:]] for odd in ODD)
                if isinstance(inner, dict):
                    for name in inner:
                        for odd in ODD:
                            yield [value[0] | {key: inner | {name: odd}}, *value[1:]]


# One model of each reader, and all whose keys are nested.
READERS = {FAMILIES[row["config"]["architectures"][0]]: name for name, row in MODELS.items()}


@pytest.mark.slow
@each("name", READERS.values())
def test_any_value_anywhere_is_counted_or_refused(name):
    config = MODELS[name]["config"]
    for key, value in config.items():
        for odd in _changed(value):
            _counted_or_refused(config | {key: odd}, key, odd)
    inner = config.get("text_config") or {}
    for key, value in inner.items():
        for odd in _changed(value):
            _counted_or_refused(config | {"text_config": inner | {key: odd}}, key, odd)


def _counted_or_refused(config, key, odd):
    try:
        decoder = read_config(config)
    except ConfigRefused as refused:
        assert refused.refused, (key, odd)
        return
    except Exception as error:
        raise AssertionError(f"{key} = {odd!r}: {error!r}") from error
    assert decoder.parameters >= decoder.active_parameters > 0, (key, odd)
    assert decoder.request_bytes(1000) >= 0 < decoder.flops_per_token(1000, "decode"), (key, odd)


@each(
    "model, change, words",
    [
    ("DeepSeek-V3", {"index_n_heads": 64}, "(64, 0, 0): give all of them, or none"),
    ("DeepSeek-V3", {"moe_layer_freq": [1, 1]}, "an entry for each of 61 layers"),
    ("Meta-Llama-3.1-8B", {"num_hidden_layers": 10**7}, "at most 10,000"),
    ("Meta-Llama-3.1-8B", {"hidden_size": 4096.0}, "hidden_size = 4096.0: expected a whole number"),
    ("Qwen3.5-122B-A10B", {"text_config": [1]}, "text_config = [1]: an object"),
    ("Qwen3.5-122B-A10B", {"hidden_size": 5}, "hidden_size: 5 outside of text_config, 3072 with"),
    ("Seed-OSS-36B", {"attention_bias": None}, "attention_bias = None: expected true or false"),
    ("EXAONE-4.0-32B", {"layer_types": None}, "layer_types is missing"),
    ("DeepSeek-V4-Pro", {"compress_ratios": [8] * 61}, "has 8: known are 0, 4, 128"),
    ("falcon-40b", {"num_kv_heads": 7}, "divisor of"),
    ("gpt2", {"add_cross_attention": True}, "add_cross_attention = True: not known here"),
    ("Qwen3-30B-A3B", {"num_local_experts": 64}, "num_local_experts = 64: two names for one"),
    ("Meta-Llama-3.1-8B", {"full_attention_interval": 4}, "full_attention_interval = 4: not kn"),
    ("gemma-2-2b", {"head_dim": 0}, "head_dim = 0: expected a whole number of at least 1"),
    ],
)  # fmt: skip
def test_what_else_is_refused(model, change, words):
    with pytest.raises(ConfigRefused) as refused:
        read_config(MODELS[model]["config"] | change)
    assert words in str(refused.value)


def test_what_is_assumed_is_told():
    method = {"quant_method": "gptq", "bits": 4, "group_size": 128}
    quantized = read_config(LLAMA | {"quantization_config": method})
    assert quantized.parameters == read_config(LLAMA).parameters
    assert "quantization_config (gptq): counted before quantizing" in quantized.assumed
    longer = read_config(LLAMA | {"layer_types": ["full_attention"] * 33})
    assert "layer_types: the first 32 of its 33 entries" in longer.assumed
    for name, index in (("DeepSeek-V3", False), ("DeepSeek-V3.2", True)):
        assumed = read_config(MODELS[name]["config"]).assumed
        assert any("index_topk" in words for words in assumed) == index, assumed


def test_an_index_of_other_weights_than_are_counted_says_by_how_much(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(LLAMA | {"torch_dtype": "bfloat16"}))
    index = tmp_path / "model.safetensors.index.json"
    for times, words in (
        (1.0, "2 for each parameter counted here"),
        (1.02, "more is stored than c"),
    ):
        size = int(2 * 8_030_261_248 * times)
        index.write_text(json.dumps({"metadata": {"total_size": size}}))
        (told,) = read_config(tmp_path).assumed
        assert words in told and told.endswith("+2.00%") == (times > 1)


def test_an_index_of_weights_without_a_size_is_told(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(LLAMA))
    for metadata in ({}, {"total_size": "16 GB"}, None):
        index = {"metadata": metadata}
        (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
        assert "no metadata.total_size" in read_config(tmp_path).assumed[-1]
