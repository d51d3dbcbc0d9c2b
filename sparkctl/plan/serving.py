"""The wanted state of a served model: one container per rank, complete to the last word of its command line."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace

from sparkctl.catalog.model import Recipe
from sparkctl.errors import OperationFailed
from sparkctl.facts.model import HostFacts
from sparkctl.facts.served import (
    GROUP_LABEL,
    IMAGE_ID_LABEL,
    IMAGE_LABEL,
    LAYOUT_LABEL,
    MASTER_PORT_LABEL,
    MEMORY_LABEL,
    MODEL_LABEL,
    NODES_LABEL,
    PORT_LABEL,
    RANK_LABEL,
    SPEC_LABEL,
    ServingFacts,
)
from sparkctl.inventory.model import Cluster
from sparkctl.plan.layout import Layout
from sparkctl.plan.memory import RankMemory, rank_memory
from sparkctl.plan.model_location import ModelLocation
from sparkctl.plan.model_shape import ModelShape
from sparkctl.plan.rails import RailAddress
from sparkctl.plan.serving_environment import rank_environment
from sparkctl.tools.docker import ContainerSpec

# Private shared memory of 10 GiB: a limit, because 64 GiB of it was followed by power-offs (DSPARK-2X#31), and
# private, because what a killed rank leaves in the host's /dev/shm stays there.
_SHM_SIZE = "10g"
# NVIDIA's serving playbooks: locked memory without limit for RDMA, 64 MiB of stack.
_ULIMITS = ("--ulimit", "memlock=-1", "--ulimit", "stack=67108864")
# A mount point of our own, so that the caches do not depend on the image's user.
_CACHE_MOUNT = "/sparkctl-cache"
_NO_IMAGE_YET = "not-pulled-yet"


@dataclass(frozen=True)
class RankPlan:
    """One rank: where it runs, how it is reached by the others, and its container. rails: empty for a solo model."""

    rank: int
    host: str
    rails: tuple[RailAddress, ...]
    container: ContainerSpec
    cache_dir: str


@dataclass(frozen=True)
class ServingPlan:
    """A model over some hosts.

    group: name of the set of containers. model: as the API names it. image_id: None while no host has the image.
    spec: fingerprint of everything that matters; two groups with one spec are the same.
    api_address: where the head itself reaches the API. need: memory of one rank.
    """

    group: str
    model: str
    layout: Layout
    shape: ModelShape
    image: str
    image_id: str | None
    ranks: tuple[RankPlan, ...]
    location: ModelLocation
    port: int
    master_port: int
    need: RankMemory
    engine_args: tuple[str, ...]
    spec: str
    recipe: str
    api_address: str = "127.0.0.1"

    @property
    def head(self) -> RankPlan:
        """Rank 0, which serves the API."""
        return self.ranks[0]

    @property
    def hosts(self) -> tuple[str, ...]:
        """Hosts in the order of their ranks."""
        return tuple(rank.host for rank in self.ranks)


@dataclass(frozen=True)
class ServingRequest:
    """What the user wants beyond the inventory. model: as typed. port: of the API. engine_args: come last."""

    model: str
    port: int
    engine_args: tuple[str, ...] = ()


def plan_serving(
    cluster: Cluster,
    request: ServingRequest,
    facts: Mapping[str, HostFacts],
    serving: Mapping[str, ServingFacts],
    rails: Mapping[str, tuple[RailAddress, ...]],
    *,
    layout: Layout,
    shape: ModelShape,
    location: ModelLocation,
    recipe: Recipe,
) -> ServingPlan:
    """Containers for every rank, the head first.

    facts, serving: of the hosts that take part, in the order of their ranks. rails: of the same hosts; empty for solo.
    Raises OperationFailed when hosts have different images under one name.
    """
    wishes = cluster.serving
    image = wishes.image or recipe.image
    image_id, entrypoint = _common_image(image, serving)
    engine_args = (*recipe.engine_args, *wishes.engine_args, *request.engine_args)
    name = served_name(request.model)
    hosts = tuple(facts)[: layout.nodes]
    ranks = []
    for rank, host in enumerate(hosts):
        own = rails.get(host, ())
        cache_dir = f"{facts[host].home}/.cache/sparkctl/engine/{(image_id or _NO_IMAGE_YET)[-12:]}"
        environment = {
            **rank_environment(own, cache=_CACHE_MOUNT),
            **recipe.env,
            **wishes.env,
        }
        model_mount = f"/models/{name.rpartition('/')[2]}"
        command = _engine_command(
            model_path="/".join(part for part in (model_mount, location.subs[host]) if part),
            name=name,
            layout=layout,
            rank=rank,
            master=str(rails[hosts[0]][0].address) if layout.nodes > 1 else "",
            master_port=wishes.master_port,
            port=request.port,
        )
        entry, prefix = _entry(entrypoint)
        container = ContainerSpec(
            name=f"sparkctl-{cluster.name}-rank{rank}",
            image=image,
            command=(*prefix, *command, *engine_args),
            env=environment,
            volumes=(f"{location.roots[host]}:{model_mount}:ro", f"{cache_dir}:{_CACHE_MOUNT}"),
            options=(*_options(facts[host], rdma=layout.nodes > 1), *entry),
        )
        ranks.append(RankPlan(rank, host, own, container, cache_dir))
    spec = _fingerprint(ranks, image_id)
    plan = ServingPlan(
        group=cluster.name,
        model=name,
        layout=layout,
        shape=shape,
        image=image,
        image_id=image_id,
        ranks=tuple(ranks),
        location=location,
        port=request.port,
        master_port=wishes.master_port,
        need=rank_memory(shape, layout),
        engine_args=engine_args,
        spec=spec,
        recipe=recipe.name,
    )
    return replace(plan, ranks=tuple(_labelled(plan, rank, serving[rank.host]) for rank in plan.ranks))


def served_name(model: str) -> str:
    """The name the API uses: an id or name stays as it is, a path gives its last part."""
    return model.rstrip("/").rpartition("/")[2] if model.startswith("/") else model.rstrip("/")


def _common_image(reference: str, serving: Mapping[str, ServingFacts]) -> tuple[str | None, tuple[str, ...]]:
    """ID and entrypoint of the image, which must be the same wherever it is; (None, ()) when no host has it."""
    present = [(host, item.image) for host, item in serving.items() if item.image is not None]
    if not present:
        return None, ()
    first_host, first = present[0]
    for host, image in present[1:]:
        if image.image_id != first.image_id:
            raise OperationFailed(
                f"{reference} is not the same image on all hosts: {first_host} has {first.image_id[:19]}, "
                f"{host} has {image.image_id[:19]}",
                remedy=f"make them equal: `docker save {reference}` on {first_host}, `docker load` on {host}, "
                "or name an image by digest in the inventory (serving.image)",
            )
    return first.image_id, first.entrypoint


def _entry(entrypoint: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Options of `docker run` and first words of the command, so that `vllm serve` is what runs.

    vllm/vllm-openai images have `vllm serve` as their entrypoint; NVIDIA's have a script that prepares the driver
    libraries and then runs its arguments, which must be kept.
    """
    if entrypoint[-2:] == ("vllm", "serve"):
        return (), ()
    if entrypoint and entrypoint[-1].rpartition("/")[2] == "vllm":
        return (), ("serve",)
    if entrypoint and "api_server" in entrypoint[-1]:
        return ("--entrypoint", "vllm"), ("serve",)
    return (), ("vllm", "serve")


def _options(facts: HostFacts, *, rdma: bool) -> tuple[str, ...]:
    # Without the device NCCL takes TCP and gives no error (GX, troubleshoot runbook).
    device = ("--device", "/dev/infiniband") if rdma and facts.infiniband_device_dir else ()
    return ("--gpus", "all", "--network", "host", "--shm-size", _SHM_SIZE, *_ULIMITS, *device)


def _engine_command(
    *, model_path: str, name: str, layout: Layout, rank: int, master: str, master_port: int, port: int
) -> tuple[str, ...]:
    """Arguments of `vllm serve` in its own multi-node mode. Source: vllm-project/vllm#23691, NemoClaw's recipe."""
    words = [model_path, "--served-model-name", name]
    words += ["--tensor-parallel-size", str(layout.tp), "--pipeline-parallel-size", str(layout.pp)]
    if layout.nodes > 1:
        words += ["--nnodes", str(layout.nodes), "--node-rank", str(rank)]
        words += ["--master-addr", master, "--master-port", str(master_port)]
        words += ["--distributed-executor-backend", "mp"]
    words += ["--headless"] if rank else ["--host", "0.0.0.0", "--port", str(port)]  # noqa: S104  # as NVIDIA's playbooks
    return tuple(words)


def _fingerprint(ranks: list[RankPlan], image_id: str | None) -> str:
    parts = [
        (rank.host, rank.container.command, sorted(rank.container.env.items()), rank.container.volumes,
         rank.container.options)
        for rank in ranks
    ]  # fmt: skip
    return hashlib.sha256(json.dumps([image_id, parts]).encode()).hexdigest()[:16]


def _labelled(plan: ServingPlan, rank: RankPlan, facts: ServingFacts) -> RankPlan:
    labels = {
        GROUP_LABEL: plan.group,
        RANK_LABEL: str(rank.rank),
        NODES_LABEL: str(plan.layout.nodes),
        SPEC_LABEL: plan.spec,
        MODEL_LABEL: plan.model,
        LAYOUT_LABEL: str(plan.layout),
        PORT_LABEL: str(plan.port),
        MASTER_PORT_LABEL: str(plan.master_port),
        IMAGE_LABEL: plan.image,
        IMAGE_ID_LABEL: plan.image_id or _NO_IMAGE_YET,
        MEMORY_LABEL: str(facts.running.memory_available_bytes),
    }
    return replace(rank, container=replace(rank.container, labels=labels))
