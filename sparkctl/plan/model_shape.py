"""The shape of a model, from its config.json: what a layout and a memory estimate need to know."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sparkctl.errors import UsageError

# Decoders with plain attention (one head count, one layer count, K and V cached per KV head), whose keys in
# config.json were read in the transformers sources. Others, such as MLA or hybrid models, have terms that these
# formulas lack, and are refused rather than guessed (spark-arena/sparkrun#136, #247, #248).
KNOWN_ARCHITECTURES = frozenset(
    {
        "GptOssForCausalLM",
        "LlamaForCausalLM",
        "Mistral3ForConditionalGeneration",
        "MistralForCausalLM",
        "MixtralForCausalLM",
        "Phi3ForCausalLM",
        "Qwen2ForCausalLM",
        "Qwen3ForCausalLM",
        "Qwen3MoeForCausalLM",
    }
)
# Bytes per value of the type that activations and the KV cache have.
_DTYPE_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}


@dataclass(frozen=True)
class ModelShape:
    """One model. layers, heads, kv_heads, hidden, head_dim: counts as in config.json.

    dtype_bytes: of activations and KV cache. quantization: method of the weights, empty when there is none.
    experts: per layer, 0 for a dense model. context: longest sequence in tokens, 0 when not stated.
    weights_bytes: size of the weight files, so quantised weights need no formula.
    """

    architecture: str
    layers: int
    heads: int
    kv_heads: int
    hidden: int
    head_dim: int
    dtype_bytes: int
    quantization: str
    experts: int
    context: int
    weights_bytes: int

    @property
    def kv_bytes_per_token(self) -> int:
        """Cache that one token of one request occupies over all layers, without regard to sliding windows."""
        return 2 * self.kv_heads * self.head_dim * self.dtype_bytes * self.layers


def parse_shape(config: str, *, model: str, weights_bytes: int) -> ModelShape:
    """Shape of `model`. config: text of its config.json; models with images keep theirs below `text_config`.

    Raises UsageError when the text is not JSON, the architecture is not known, or a field is missing.
    Source: transformers, configuration_*.py of each architecture; captures model_files/*--config.json.
    """
    try:
        outer = json.loads(config)
        architecture = str(outer["architectures"][0])
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise UsageError(
            f"config.json of {model} names no architecture",
            remedy="fetch the model again; config.json must be the file published with the model",
        ) from error
    if architecture not in KNOWN_ARCHITECTURES:
        raise UsageError(
            f"{model} is a {architecture}, whose layers and memory sparkctl does not know; it does not guess",
            remedy="use a model of one of these architectures: " + ", ".join(sorted(KNOWN_ARCHITECTURES)),
        )
    inner = outer.get("text_config") or outer
    try:
        return _shape(architecture, outer, inner, weights_bytes)
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(
            f"config.json of {model} lacks or garbles the field {error}",
            remedy="fetch the model again; config.json must be the file published with the model",
        ) from error


def _shape(architecture: str, outer: Mapping[str, Any], inner: Mapping[str, Any], weights_bytes: int) -> ModelShape:
    heads, hidden = int(inner["num_attention_heads"]), int(inner["hidden_size"])
    dtype = str(inner.get("dtype") or inner.get("torch_dtype") or outer.get("dtype") or outer.get("torch_dtype") or "")
    quantization = outer.get("quantization_config") or inner.get("quantization_config") or {}
    return ModelShape(
        architecture=architecture,
        layers=int(inner["num_hidden_layers"]),
        heads=heads,
        kv_heads=int(inner.get("num_key_value_heads") or heads),
        hidden=hidden,
        head_dim=int(inner.get("head_dim") or hidden // heads),
        # Quantised checkpoints may leave the type out; engines then compute with 16 bits.
        dtype_bytes=_DTYPE_BYTES.get(dtype, 2),
        quantization=str(quantization.get("quant_method") or ""),
        experts=int(inner.get("num_local_experts") or inner.get("num_experts") or 0),
        context=int(inner.get("max_position_embeddings") or 0),
        weights_bytes=weights_bytes,
    )
