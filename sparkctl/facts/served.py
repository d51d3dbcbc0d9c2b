"""What hosts have for serving, and a served model as they themselves remember it: labels on its containers."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from sparkctl.tools.docker import Container, ContainerState, Image
from sparkctl.tools.listening import Listener
from sparkctl.tools.model_files import ModelAnswer

# The state of a group lives in Docker on the nodes, so losing the controller loses nothing.
GROUP_LABEL = "sparkctl.group"
RANK_LABEL = "sparkctl.rank"
NODES_LABEL = "sparkctl.nodes"
SPEC_LABEL = "sparkctl.spec"
MODEL_LABEL = "sparkctl.model"
LAYOUT_LABEL = "sparkctl.layout"
PORT_LABEL = "sparkctl.port"
MASTER_PORT_LABEL = "sparkctl.master-port"
IMAGE_LABEL = "sparkctl.image"
IMAGE_ID_LABEL = "sparkctl.image-id"
MEMORY_LABEL = "sparkctl.memory-available-before"


@dataclass(frozen=True)
class RunningFacts:
    """What runs on a host.

    containers: all that any sparkctl started, running or not. memory_*_bytes: MemTotal and MemAvailable.
    """

    host: str
    containers: tuple[Container, ...]
    listeners: tuple[Listener, ...]
    memory_total_bytes: int
    memory_available_bytes: int

    def of_group(self, group: str) -> tuple[Container, ...]:
        """The containers of one group."""
        return tuple(item for item in self.containers if item.labels.get(GROUP_LABEL) == group)


@dataclass(frozen=True)
class ServingFacts:
    """What a host has for one model and one image. image: None when it has not got it."""

    host: str
    running: RunningFacts
    image: Image | None
    model: ModelAnswer


class GroupState(StrEnum):
    """Whether all ranks of a group are there. WHOLE does not mean that the engine answers."""

    WHOLE = "whole"
    BROKEN = "broken"


@dataclass(frozen=True)
class ServedRank:
    """One rank's container on its host. memory_before_bytes: MemAvailable when it was started, 0 if unknown."""

    host: str
    rank: int
    container: Container

    @property
    def memory_before_bytes(self) -> int:
        text = self.container.labels.get(MEMORY_LABEL, "")
        return int(text) if text.isdigit() else 0


@dataclass(frozen=True)
class ServedGroup:
    """All containers of one group, by rank. nodes: how many ranks it was started with."""

    group: str
    model: str
    layout: str
    nodes: int
    port: int
    master_port: int
    image: str
    image_id: str
    spec: str
    ranks: tuple[ServedRank, ...]

    @property
    def state(self) -> GroupState:
        running = [rank for rank in self.ranks if rank.container.state is ContainerState.RUNNING]
        specs = {rank.container.labels.get(SPEC_LABEL) for rank in self.ranks}
        whole = len(running) == len(self.ranks) == self.nodes and len(specs) == 1
        return GroupState.WHOLE if whole else GroupState.BROKEN

    @property
    def head(self) -> ServedRank | None:
        """Rank 0, which answers the API; None when its container is gone."""
        return next((rank for rank in self.ranks if rank.rank == 0), None)


def assemble_group(group: str, facts: Mapping[str, RunningFacts]) -> ServedGroup | None:
    """The group of that name over all hosts; None when no host has a container of it."""
    ranks = [
        ServedRank(host, _number(item, RANK_LABEL), item)
        for host, running in facts.items()
        for item in running.of_group(group)
    ]
    if not ranks:
        return None
    ranks.sort(key=lambda rank: (rank.rank, rank.host))
    first = ranks[0].container
    return ServedGroup(
        group=group,
        model=first.labels.get(MODEL_LABEL, ""),
        layout=first.labels.get(LAYOUT_LABEL, ""),
        nodes=_number(first, NODES_LABEL),
        port=_number(first, PORT_LABEL),
        master_port=_number(first, MASTER_PORT_LABEL),
        image=first.labels.get(IMAGE_LABEL, ""),
        image_id=first.image_id,
        spec=first.labels.get(SPEC_LABEL, ""),
        ranks=tuple(ranks),
    )


def _number(container: Container, label: str) -> int:
    text = container.labels.get(label, "")
    return int(text) if text.isdigit() else 0
