"""The lab's inference engine: an image with the real vLLM for the CPU, built once and kept in the cache."""

import json
from dataclasses import dataclass
from pathlib import Path

from sparkctl.errors import OperationFailed
from sparkctl.lab.base import ensure_base
from sparkctl.lab.engine_docker import ImportedImage, import_root
from sparkctl.lab.engine_recipe import REFERENCE, VLLM, recipe_key, this_machine_lacks
from sparkctl.lab.engine_root import build_root
from sparkctl.lab.host import Progress
from sparkctl.lab.trees import remove_tree


@dataclass(frozen=True)
class EngineImage:
    """An engine image in the cache.

    docker: data directory of a Docker that has this image and nothing else, for `preload_docker`.
    reference: `repository:tag`. image_id: `sha256:…`, equal on all nodes. root: the image's file system, never to be
    written to. recipe: hash of everything it was made from, 12 hexadecimal digits.
    """

    docker: Path
    reference: str
    image_id: str
    root: Path
    recipe: str


def engine_image(cache: Path) -> EngineImage | None:
    """The image that this version of sparkctl builds; None if it is not in the cache."""
    recipe = recipe_key(this_machine_lacks())
    directory = _directory(cache, recipe)
    if not (directory / "image.json").is_file():
        return None
    known = json.loads((directory / "image.json").read_text())
    docker = directory / "docker"
    root = docker / "overlay2" / known["layer"] / "diff"
    return EngineImage(docker, REFERENCE, known["id"], root, recipe)


def build_engine_image(cache: Path, progress: Progress) -> EngineImage:
    """The engine image, built if it is not in the cache (three to five minutes, 1.8 GB). Needs root.

    The nodes' root file system is built too if need be, for its Docker. The caller holds the lock of the cache.
    A half-built image never gets its final name, and is removed the next time.
    Raises OperationFailed when Debian's mirror or a package index cannot give what is needed.
    """
    if present := engine_image(cache):
        return present
    base = ensure_base(progress)
    for remains in cache.glob("engine-*.building"):
        remove_tree(remains)
    unused = this_machine_lacks()
    recipe = recipe_key(unused)
    finished = _directory(cache, recipe)
    building = finished.with_name(f"{finished.name}.building")
    building.mkdir(parents=True)
    try:
        build_root(building / "root", unused, cache / "engine.log", progress)
        progress("engine image: importing it into Docker")
        labels = (("org.opencontainers.image.version", VLLM), ("sparkctl.lab.recipe", recipe))
        _remember(import_root(building, base, REFERENCE, labels), building / "image.json")
        # The layer that Docker made is the same tree again.
        remove_tree(building / "root")
        building.rename(finished)
    finally:
        if building.exists():
            remove_tree(building)
    built = engine_image(cache)
    if built is None:
        raise OperationFailed("the engine image vanished while it was built", remedy="try again", where=str(finished))
    return built


def _directory(cache: Path, recipe: str) -> Path:
    return cache / f"engine-{recipe}"


def _remember(image: ImportedImage, file: Path) -> None:
    file.write_text(json.dumps({"id": image.image_id, "layer": image.layer}))
