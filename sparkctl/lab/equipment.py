"""Gives the nodes of a lab what a model can be served with: the engine image on all of them, models on the first.

The models lie on one node only, so that serving has to move them over the rails, as on a new pair of Sparks.
"""

import subprocess
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from sparkctl.errors import OperationFailed
from sparkctl.lab.engine import EngineImage, build_engine_image
from sparkctl.lab.engine_docker import preload_docker
from sparkctl.lab.host import Progress
from sparkctl.lab.locks import CACHE_LOCK, locked
from sparkctl.lab.models import CHAT_MODEL, LabModel, build_models
from sparkctl.lab.node_files import USER
from sparkctl.lab.paths import cache_root, node_directory
from sparkctl.lab.status import LabHandle, NodeHandle

_MODELS_MOUNT = "/opt/lab/models"
# What the engine needs on a CPU, and nothing of it on a Spark. Small batches and 32-bit numbers: the warm-up with the
# defaults takes a minute on two cores without bf16 instructions, with these three seconds.
_ENGINE_ARGS = (
    *("--max-model-len", "2048", "--max-num-seqs", "4", "--max-num-batched-tokens", "256", "--dtype", "float32"),
    *("--compilation-config", '{"mode":1,"backend":"eager"}'),
)
_ENGINE_ENV = {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "OMP_NUM_THREADS": "1",
    # With TP the embedding layer compiles itself with a C++ compiler, which the image does not carry.
    "TORCHDYNAMO_DISABLE": "1",
    # Where the image keeps what vLLM finds out about a model's class at its first start.
    "VLLM_CACHE_ROOT": "/root/.cache/vllm",
}


@dataclass(frozen=True)
class Equipment:
    """The engine image and the models in the cache of this machine."""

    image: EngineImage
    models: tuple[LabModel, ...]

    @property
    def binds(self) -> tuple[tuple[str, str], ...]:
        """What the nodes must be started with: (path here, path in the node)."""
        return ((str(self.models[0].path.parent), _MODELS_MOUNT),)

    @property
    def serving(self) -> Mapping[str, object]:
        """The section `serving` of the lab's inventory."""
        return {
            "model": CHAT_MODEL,
            "image": self.image.reference,
            "engine_args": list(_ENGINE_ARGS),
            "env": dict(_ENGINE_ENV),
        }


def build_equipment(progress: Progress) -> Equipment:
    """Image and models, built if they are not in the cache. Needs root. Raises OperationFailed."""
    with locked(CACHE_LOCK):
        image = build_engine_image(cache_root(), progress)
        return Equipment(image, build_models(cache_root(), image, progress))


def equip_nodes(lab: LabHandle, equipment: Equipment, progress: Progress) -> None:
    """Give every node's Docker the image, and the first node's home the models; what is there stays.

    The nodes must have been started with `equipment.binds`. Raises OperationFailed with the node's own words.
    """
    progress("engine: giving the image to the nodes' Docker")
    with ThreadPoolExecutor(max_workers=len(lab.nodes)) as pool:
        for _ in pool.map(lambda node: _give_image(lab.name, node, equipment.image), lab.nodes):
            pass
    progress(f"models: putting them on {lab.nodes[0].name}")
    for model in equipment.models:
        _inside(lab.nodes[0], _COPY_MODEL, f"{_MODELS_MOUNT}/{model.name}", f"/home/{USER}/models/{model.name}", USER)


_COPY_MODEL = """\
[ -e "$2" ] && exit 0
install -d -o "$3" -g "$3" "$(dirname "$2")"
cp -r "$1" "$2.part" && chown -R "$3:$3" "$2.part" && mv "$2.part" "$2"
"""
_HAS_IMAGE = """[ "$(docker image inspect --format '{{.Id}}' "$1" 2>/dev/null)" = "$2" ]"""
# A socket that is left would start dockerd again at the next question.
_STOP_DOCKER = "systemctl stop docker.socket docker.service"
_START_DOCKER = "systemctl start docker.socket docker.service"


def _give_image(lab: str, node: NodeHandle, image: EngineImage) -> None:
    # This waits for a dockerd that is still starting.
    _inside(node, _START_DOCKER)
    if _run(node, _HAS_IMAGE, image.reference, image.image_id).returncode == 0:
        return
    _inside(node, _STOP_DOCKER)
    preload_docker(image.docker, node_directory(lab, node.name) / "docker")
    _inside(node, _START_DOCKER)
    _inside(node, _HAS_IMAGE, image.reference, image.image_id)


def _inside(node: NodeHandle, script: str, *words: str) -> None:
    done = _run(node, script, *words)
    if done.returncode != 0:
        raise OperationFailed(
            f"the node could not be equipped: {(done.stderr or done.stdout).strip().splitlines()[-1:]}",
            where=node.name,
            remedy="type `sparkctl lab down`, then `sparkctl lab up --engine` again; is the disk full?",
        )


def _run(node: NodeHandle, script: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a shell script as root in a node's namespaces: it needs neither its SSH nor its network."""
    enter = ("nsenter", "--target", str(node.leader_pid), "--mount", "--uts", "--ipc", "--net", "--pid")
    command = (*enter, "/bin/sh", "-c", script, "sh", *words)
    return subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
