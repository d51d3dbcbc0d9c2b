import json

import pytest

from sparkctl.errors import UsageError
from sparkctl.plan.model_shape import parse_shape
from tests.serving_examples import CAPTURES, CONFIG


def test_the_labs_chat_model():
    shape = parse_shape(CONFIG, model="smol", weights_bytes=269_060_552)
    assert (shape.architecture, shape.layers, shape.heads, shape.kv_heads) == ("LlamaForCausalLM", 30, 9, 3)
    assert (shape.hidden, shape.head_dim, shape.dtype_bytes, shape.quantization) == (576, 64, 2, "")
    assert shape.weights_bytes == 269_060_552


def test_kv_bytes_per_token_of_llama_8b_are_128_kib():
    # Llama-3.1-8B: 2 (K and V) x 8 KV heads x 128 x 2 bytes x 32 layers = 128 KiB per token
    config = {
        "architectures": ["LlamaForCausalLM"],
        "hidden_size": 4096,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "num_hidden_layers": 32,
        "torch_dtype": "bfloat16",
    }
    assert parse_shape(json.dumps(config), model="llama", weights_bytes=0).kv_bytes_per_token == 128 * 1024


def test_a_model_with_images_keeps_its_numbers_in_text_config():
    inner = {"hidden_size": 5120, "num_attention_heads": 32, "num_key_value_heads": 8, "num_hidden_layers": 40,
             "head_dim": 128}  # fmt: skip
    config = {"architectures": ["Mistral3ForConditionalGeneration"], "torch_dtype": "bfloat16", "text_config": inner}
    shape = parse_shape(json.dumps(config), model="mistral", weights_bytes=0)
    assert (shape.layers, shape.head_dim) == (40, 128)


def test_quantised_experts():
    config = {
        "architectures": ["GptOssForCausalLM"],
        "hidden_size": 2880,
        "num_attention_heads": 64,
        "num_key_value_heads": 8,
        "num_hidden_layers": 36,
        "head_dim": 64,
        "num_local_experts": 128,
        "quantization_config": {"quant_method": "mxfp4"},
    }
    shape = parse_shape(json.dumps(config), model="gpt-oss-120b", weights_bytes=65_000_000_000)
    # the same table: GPT-OSS-120B 72 KiB per token
    assert (shape.kv_bytes_per_token, shape.experts, shape.quantization) == (72 * 1024, 128, "mxfp4")


def test_an_unknown_architecture_is_refused_not_guessed():
    with pytest.raises(UsageError, match="DeepseekV3ForCausalLM, whose layers and memory sparkctl does not know"):
        parse_shape('{"architectures": ["DeepseekV3ForCausalLM"]}', model="ds", weights_bytes=0)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"architectures": []}', "<html>"])
def test_a_broken_config_is_named(text):
    with pytest.raises(UsageError, match="names no architecture"):
        parse_shape(text, model="m", weights_bytes=0)


def test_a_missing_field_is_named():
    with pytest.raises(UsageError, match="num_attention_heads"):
        parse_shape('{"architectures": ["LlamaForCausalLM"]}', model="m", weights_bytes=0)


def test_the_other_lab_model():
    text = (CAPTURES / "model_files" / "lab--tiny-llama-tp2-config.json").read_text()
    shape = parse_shape(text, model="tiny", weights_bytes=1)
    assert (shape.heads, shape.kv_heads, shape.layers) == (4, 2, 4)
