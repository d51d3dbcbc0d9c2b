import pytest

from sparkctl.errors import UnexpectedOutput
from sparkctl.tools.model_files import FoundModel, ModelFile, ModelPlace, missing_shards, model_command, parse_model
from sparkctl.transport.command import CommandResult
from tests.serving_examples import CAPTURES


def answer(name):
    text = (CAPTURES / "model_files" / name).read_text()
    return parse_model(CommandResult("spark-a", model_command("m", "~/models"), 0, text))


def model(*names):
    return FoundModel(ModelPlace.DIRECTORY, "/m", "", tuple(ModelFile(name, 1) for name in names), "{}")


def test_a_model_below_the_models_folder():
    found = answer("lab--directory.out").model
    assert found is not None
    assert found.path == "/home/nvidia/models/SmolLM2-135M-Instruct"
    assert found.weights_bytes == 269_060_552
    assert '"num_attention_heads": 9' in found.config


def test_a_model_in_the_hub_cache():
    found = answer("lab--hub.out").model
    assert found is not None
    assert found.place is ModelPlace.HUB
    assert found.sub.startswith("snapshots/")
    assert found.weights_bytes == 31_072_840


def test_a_model_that_is_not_there():
    said = answer("lab--missing.out")
    assert said.model is None
    assert not said.directory_present
    assert said.free_bytes > 0


def test_shards_are_counted_by_their_names():
    assert not missing_shards(model("model.safetensors"))
    assert not missing_shards(model("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"))
    assert missing_shards(model("model-00001-of-00002.safetensors"))
    assert missing_shards(model("model.safetensors.index.json"))


def test_only_weights_beside_the_configuration_count():
    # gpt-oss keeps a second copy of its weights in original/
    assert model("a.safetensors", "original/a.safetensors").weights_bytes == 1


def test_a_failed_look_is_an_error():
    with pytest.raises(UnexpectedOutput):
        parse_model(CommandResult("spark-a", model_command("m", "d"), 1, "", "sh: permission denied"))
