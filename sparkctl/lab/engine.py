"""The lab's inference engine: an image with the real vLLM for the CPU, built once and kept in the cache."""

import json
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sparkctl.errors import OperationFailed
from sparkctl.lab.engine_archive import ImageSettings, write_image_archive
from sparkctl.lab.engine_recipe import (
    ENTRYPOINT,
    ENVIRONMENT,
    REPOSITORY,
    VLLM,
    WORKING_DIRECTORY,
    recipe_key,
    this_machine_lacks,
)
from sparkctl.lab.engine_root import build_root
from sparkctl.lab.host import Progress
from sparkctl.lab.trees import remove_tree

_DOCKER_WORDS: Mapping[str, str] = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True)
class EngineImage:
    """An engine image in the cache.

    archive: file for `docker load`; the same on every node, hence the same image ID there.
    reference: `repository:tag` it gets. image_id: `sha256:…`. root: its file system as a directory, never to be
    written to. recipe: hash of everything it was made from, 12 hexadecimal digits.
    """

    archive: Path
    reference: str
    image_id: str
    root: Path
    recipe: str


def engine_image(cache: Path) -> EngineImage | None:
    """The image that this version of sparkctl builds; None if it is not in the cache."""
    recipe = recipe_key(this_machine_lacks())
    finished = cache / f"engine-{recipe}"
    if not (finished / "image.json").is_file():
        return None
    known = json.loads((finished / "image.json").read_text())
    return EngineImage(finished / "image.tar", known["reference"], known["id"], finished / "root", recipe)


def build_engine_image(cache: Path, progress: Progress) -> EngineImage:
    """The engine image, built if it is not in the cache (three to five minutes, 3.5 GB of disk). Needs root.

    The caller holds the lock of the cache. A half-built one never gets its final name, and is removed the next time.
    Raises OperationFailed when Debian's mirror or a package index cannot give what is needed.
    """
    if present := engine_image(cache):
        return present
    cache.mkdir(parents=True, exist_ok=True)
    for remains in cache.glob("engine-*.building"):
        remove_tree(remains)
    unused = this_machine_lacks()
    recipe = recipe_key(unused)
    finished = cache / f"engine-{recipe}"
    building = cache / f"{finished.name}.building"
    building.mkdir()
    log = cache / "engine.log"
    try:
        build_root(building / "root", unused, log, progress)
        progress("engine image: writing the archive for Docker")
        settings = image_settings(recipe)
        image_id = write_image_archive(building / "root", building / "image.tar", settings)
        (building / "image.json").write_text(json.dumps({"id": image_id, "reference": settings.reference}))
        building.rename(finished)
    finally:
        if building.exists():
            remove_tree(building)
    built = engine_image(cache)
    if built is None:
        raise OperationFailed("the engine image vanished while it was built", remedy="try again", where=str(finished))
    return built


def image_settings(recipe: str) -> ImageSettings:
    """What the image of a recipe says about itself."""
    machine = platform.machine()
    return ImageSettings(
        reference=f"{REPOSITORY}:{VLLM}",
        architecture=_DOCKER_WORDS.get(machine, machine),
        entrypoint=ENTRYPOINT,
        working_directory=WORKING_DIRECTORY,
        environment=ENVIRONMENT,
        labels=(("org.opencontainers.image.version", VLLM), ("sparkctl.lab.recipe", recipe)),
    )
