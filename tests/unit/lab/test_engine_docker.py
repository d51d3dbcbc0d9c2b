from pathlib import Path

import pytest

from sparkctl.lab.engine_docker import preload_docker, render_import_script


@pytest.fixture
def prepared(tmp_path: Path) -> Path:
    docker = tmp_path / "prepared"
    layer = docker / "overlay2" / "abc"
    (layer / "diff" / "bin").mkdir(parents=True)
    (layer / "diff" / "bin" / "vllm").write_text("program")
    (layer / "link").write_text("SHORT")
    (docker / "overlay2" / "l").mkdir()
    (docker / "overlay2" / "l" / "SHORT").symlink_to("../abc/diff")
    (docker / "image" / "overlay2").mkdir(parents=True)
    (docker / "image" / "overlay2" / "repositories.json").write_text("{}")
    return docker


def test_nodes_share_the_layer_but_not_the_database(prepared: Path, tmp_path: Path) -> None:
    node = tmp_path / "node"
    (node / "overlay2" / "old").mkdir(parents=True)
    preload_docker(prepared, node)
    program = Path("overlay2/l/SHORT/bin/vllm")
    assert (node / program).samefile(prepared / program)
    database = Path("image/overlay2/repositories.json")
    assert not (node / database).samefile(prepared / database)
    assert not (node / "overlay2" / "old").exists()


def test_image_says_what_vllm_openai_says() -> None:
    script = render_import_script("lab/engine:1", (("version", "1"),))
    assert '\'--change=ENTRYPOINT ["vllm", "serve"]\'' in script
    assert "'--change=ENV PATH=/opt/vllm/bin:" in script
    assert "'--change=LABEL version=1'" in script
    assert "- lab/engine:1 > /mnt/image-id" in script
