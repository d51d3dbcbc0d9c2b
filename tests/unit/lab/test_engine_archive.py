import hashlib
import json
import tarfile
from pathlib import Path

import pytest

from sparkctl.lab.engine_archive import ImageSettings, write_image_archive

SETTINGS = ImageSettings(
    reference="lab/engine:1",
    architecture="amd64",
    entrypoint=("vllm", "serve"),
    working_directory="/work",
    environment=(("PATH", "/bin"),),
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    (root / "bin").mkdir(parents=True)
    (root / "bin" / "tool").write_text("#!/bin/sh\n")
    (root / "bin" / "tool").chmod(0o755)
    (root / "bin" / "link").symlink_to("tool")
    (root / ("long" * 40)).write_text("name of more than 100 characters")
    return root


def read(archive: Path, name: str) -> bytes:
    with tarfile.open(archive) as tar:
        member = tar.extractfile(name)
        assert member is not None
        return member.read()


def test_manifest_leads_to_configuration_and_layer(root: Path, tmp_path: Path) -> None:
    archive = tmp_path / "image.tar"
    image_id = write_image_archive(root, archive, SETTINGS)
    (manifest,) = json.loads(read(archive, "manifest.json"))
    configuration = read(archive, manifest["Config"])
    layer = read(archive, manifest["Layers"][0])
    assert manifest["RepoTags"] == ["lab/engine:1"]
    assert image_id == f"sha256:{hashlib.sha256(configuration).hexdigest()}"
    described = json.loads(configuration)
    assert described["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(layer).hexdigest()}"]
    assert described["config"]["Entrypoint"] == ["vllm", "serve"]
    assert described["config"]["Env"] == ["PATH=/bin"]


def test_layer_holds_the_tree_with_modes_and_links(root: Path, tmp_path: Path) -> None:
    archive = tmp_path / "image.tar"
    write_image_archive(root, archive, SETTINGS)
    (tmp_path / "layer.tar").write_bytes(read(archive, "layer.tar"))
    with tarfile.open(tmp_path / "layer.tar") as layer:
        assert layer.getnames() == ["bin", "bin/link", "bin/tool", "long" * 40]
        assert layer.getmember("bin/tool").mode == 0o755
        assert layer.getmember("bin/link").linkname == "tool"
        assert layer.getmember("bin/tool").uname == ""


def test_the_same_tree_gives_the_same_id(root: Path, tmp_path: Path) -> None:
    first = write_image_archive(root, tmp_path / "a.tar", SETTINGS)
    second = write_image_archive(root, tmp_path / "b.tar", SETTINGS)
    assert first == second
    (root / "bin" / "tool").chmod(0o700)
    assert write_image_archive(root, tmp_path / "c.tar", SETTINGS) != first
