"""Writes a root file system as an image that `docker load` reads, without Docker.

The format is the one of `docker save`: manifest.json, a configuration, one uncompressed layer. An image's ID is the
SHA-256 of its configuration, so every Docker that loads the same file shows the same ID.
Source: Docker Image Specification v1.2, "Combined Image JSON + Filesystem Changeset Format".
"""

import hashlib
import io
import json
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

_LAYER = "layer.tar"
_BLOCK = tarfile.BLOCKSIZE


@dataclass(frozen=True)
class ImageSettings:
    """What the image says about itself.

    architecture: Docker's word, such as `amd64`. created: RFC 3339 time; fixed, so that it does not change the ID.
    environment: (name, value). labels: (name, value).
    """

    reference: str
    architecture: str
    entrypoint: tuple[str, ...]
    working_directory: str
    environment: tuple[tuple[str, str], ...]
    labels: tuple[tuple[str, str], ...] = ()
    created: str = "1970-01-01T00:00:00Z"


def write_image_archive(root: Path, archive: Path, settings: ImageSettings) -> str:
    """Write `archive` (twice the mebibytes are not needed: the layer is written in place) and return the image's ID.

    The ID is `sha256:` and 64 hexadecimal digits. Owners are kept as numbers, times as whole seconds.
    """
    with archive.open("wb") as out:
        # The layer's header is written last, when its length is known.
        out.write(bytes(_BLOCK))
        counted = _Hashing(out)
        _write_layer(root, counted)
        length = counted.length
        _pad(out, length)
        configuration = json.dumps(image_configuration(settings, counted.digest.hexdigest()), sort_keys=True).encode()
        image = hashlib.sha256(configuration).hexdigest()
        manifest = [{"Config": f"{image}.json", "RepoTags": [settings.reference], "Layers": [_LAYER]}]
        for name, content in ((f"{image}.json", configuration), ("manifest.json", json.dumps(manifest).encode())):
            out.write(_header(name, len(content)) + content)
            _pad(out, len(content))
        out.write(bytes(2 * _BLOCK))
        out.seek(0)
        out.write(_header(_LAYER, length))
    return f"sha256:{image}"


def image_configuration(settings: ImageSettings, layer_digest: str) -> dict[str, object]:
    """The image's JSON configuration; layer_digest: SHA-256 of the uncompressed layer, in hexadecimal."""
    return {
        "architecture": settings.architecture,
        "os": "linux",
        "created": settings.created,
        "config": {
            "Entrypoint": list(settings.entrypoint),
            "Env": [f"{name}={value}" for name, value in settings.environment],
            "WorkingDir": settings.working_directory,
            "Labels": dict(settings.labels),
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{layer_digest}"]},
        "history": [{"created": settings.created, "created_by": "sparkctl lab"}],
    }


class _Hashing(io.RawIOBase):
    """Passes bytes on and knows their number and hash."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self.digest = hashlib.sha256()
        self.length = 0

    def writable(self) -> bool:
        return True

    def write(self, data: object, /) -> int:
        view = memoryview(data)  # type: ignore[arg-type]  # typeshed's ReadableBuffer is private
        self.digest.update(view)
        self.length += len(view)
        return self._out.write(view)


def _write_layer(root: Path, out: io.RawIOBase) -> None:
    with tarfile.open(fileobj=out, mode="w|", format=tarfile.PAX_FORMAT, bufsize=1 << 20) as layer:  # type: ignore[call-overload]
        for path in _walk(root):
            entry = layer.gettarinfo(str(path), arcname=str(path.relative_to(root)))
            if entry is None:  # a socket; nothing that an image could hold
                continue
            entry.uname = entry.gname = ""
            entry.mtime = int(entry.mtime)
            if entry.isreg():
                with path.open("rb") as content:
                    layer.addfile(entry, content)
            else:
                layer.addfile(entry)


def _walk(directory: Path) -> Iterator[Path]:
    for path in sorted(directory.iterdir()):
        yield path
        if path.is_dir() and not path.is_symlink():
            yield from _walk(path)


def _header(name: str, length: int) -> bytes:
    entry = tarfile.TarInfo(name)
    entry.size = length
    # GNU format: one block, also for a layer of more than 8 GiB.
    return entry.tobuf(format=tarfile.GNU_FORMAT)


def _pad(out: BinaryIO, length: int) -> None:
    out.write(bytes(-length % _BLOCK))
