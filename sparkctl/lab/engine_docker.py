"""Puts the engine image into the nodes' Docker before it starts, at no cost in time and disk.

Docker imports the file system once, into a data directory in the cache. Each node gets that directory's image
database as a copy and its layer as hard links: one second instead of half a minute, no further disk, one copy of
torch in the page cache for all nodes, and the same image ID everywhere. Docker never writes to a layer it has.
Source: tried with Docker 26.1 (overlay2); `docker run` and `docker save` work from such a directory.
"""

import json
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from sparkctl.errors import OperationFailed
from sparkctl.lab.engine_chroot import run_inside
from sparkctl.lab.engine_recipe import ENTRYPOINT, ENVIRONMENT, WORKING_DIRECTORY

# What of a Docker data directory makes an image.
_DATABASE, _LAYERS = "image", "overlay2"
_WORKSHOP = "/mnt"
_PATH = (("PATH", "/usr/sbin:/usr/bin:/sbin:/bin"),)


@dataclass(frozen=True)
class ImportedImage:
    """An image in a Docker data directory.

    image_id: `sha256:` and 64 hexadecimal digits. layer: name of its only layer's directory below overlay2/.
    """

    image_id: str
    layer: str


def import_root(workshop: Path, base: Path, reference: str, labels: tuple[tuple[str, str], ...]) -> ImportedImage:
    """Let the nodes' own Docker import `workshop`/root; afterwards `workshop`/docker holds the image.

    base: the nodes' root file system, which has Docker. Its dockerd runs without network, only for this.
    Raises OperationFailed with Docker's message; the log is `workshop`/docker.log.
    """
    log = workshop / "docker.log"
    log.write_text("")
    script = render_import_script(reference, labels)
    run_inside(base, ("/bin/sh", "-c", script), log=log, environment=_PATH, writable=((workshop, _WORKSHOP),))
    docker = workshop / "docker"
    for path in docker.iterdir():
        if path.name in (_DATABASE, _LAYERS):
            continue
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    layers = [path.name for path in (docker / _LAYERS).iterdir() if (path / "diff").is_dir() and path.name != "l"]
    if len(layers) != 1:
        raise OperationFailed(
            f"Docker made {len(layers)} layers of the engine image instead of one",
            remedy="this version of Docker stores images in another way: please report it",
        )
    return ImportedImage((workshop / "image-id").read_text().strip(), layers[0])


def preload_docker(prepared: Path, docker: Path) -> None:
    """Give a node the image. docker: its data directory, with no dockerd running on it.

    prepared: data directory made by `import_root`. Images that `docker` had before are forgotten. Where hard links
    are impossible, because the two lie on different disks, files are copied.
    """
    for part in (_DATABASE, _LAYERS):
        if (docker / part).exists():
            shutil.rmtree(docker / part)
    if not _copied("--link", prepared / _LAYERS, docker) and not _copied("--reflink=auto", prepared / _LAYERS, docker):
        raise OperationFailed(
            f"the engine image could not be copied to {docker}", remedy="look whether the disk is full: it needs 1.8 GB"
        )
    # Docker rewrites the database, so it must be each node's own.
    shutil.copytree(prepared / _DATABASE, docker / _DATABASE)


def render_import_script(reference: str, labels: tuple[tuple[str, str], ...]) -> str:
    """Text for /bin/sh, run as root in the nodes' root file system with the workshop mounted."""
    changes = [
        f"ENTRYPOINT {json.dumps(ENTRYPOINT)}",
        f"WORKDIR {WORKING_DIRECTORY}",
        *(f"ENV {name}={value}" for name, value in ENVIRONMENT),
        *(f"LABEL {name}={value}" for name, value in labels),
    ]
    options = shlex.join(f"--change={change}" for change in changes)
    return f"""\
set -eu
mount -t tmpfs tmpfs /run
# Docker wants one version of control groups, some machines mix two.
umount --recursive /sys/fs/cgroup
mount -t cgroup2 cgroup2 /sys/fs/cgroup
export DOCKER_HOST=unix:///run/docker.sock
dockerd --data-root={_WORKSHOP}/docker --exec-root=/run/docker --pidfile=/run/docker.pid --host="$DOCKER_HOST" \\
    --storage-driver=overlay2 --iptables=false --ip6tables=false --bridge=none &
daemon=$!
tries=0
until docker version >/dev/null 2>&1; do
    tries=$((tries + 1))
    [ "$tries" -lt 300 ]
    kill -0 "$daemon"
    sleep 0.2
done
tar --create --numeric-owner --directory={_WORKSHOP}/root . |
    docker import {options} - {shlex.quote(reference)} > {_WORKSHOP}/image-id
kill "$daemon"
wait "$daemon" || true
"""


def _copied(how: str, source: Path, target: Path) -> bool:
    done = subprocess.run(("cp", "--archive", how, str(source), str(target)), capture_output=True, check=False)
    if done.returncode != 0 and (target / source.name).exists():
        shutil.rmtree(target / source.name)
    return done.returncode == 0
