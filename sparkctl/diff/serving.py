"""What stands between what runs and what is wanted.

Not counted as a difference: the label with the memory before the start, the age of a container, and groups of other
names. A group that runs with the same fingerprint on the same hosts is adopted as it is.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from sparkctl.errors import UnsafeRefused
from sparkctl.facts.served import GroupState, ServedGroup, ServingFacts, assemble_group
from sparkctl.plan.model_location import ModelCopy
from sparkctl.plan.serving import ServingPlan
from sparkctl.tools.docker import ContainerState


@dataclass(frozen=True)
class PullImage:
    """A host fetches the image from its registry."""

    host: str
    image: str


@dataclass(frozen=True)
class CopyModel:
    """A host gets the model from another one over a rail."""

    copy: ModelCopy


@dataclass(frozen=True)
class RemoveRank:
    """A container of a group that no longer works is ended and removed; its log is kept on its host."""

    host: str
    name: str
    state: ContainerState


@dataclass(frozen=True)
class StartRank:
    """A rank's container is started."""

    host: str
    name: str
    rank: int


ServingChange = PullImage | CopyModel | RemoveRank | StartRank


def diff_serving(plan: ServingPlan, facts: Mapping[str, ServingFacts]) -> tuple[ServingChange, ...]:
    """Changes in the order they are made; empty when the same group runs already.

    Raises UnsafeRefused when a whole group of this cluster runs with another model or other settings: ending it is
    the user's decision.
    """
    group = assemble_group(plan.group, {host: item.running for host, item in facts.items()})
    if group is not None and is_as_planned(plan, group):
        return ()
    if group is not None and group.state is GroupState.WHOLE:
        _refuse(plan, group)
    ranks = group.ranks if group is not None else ()
    removals = [RemoveRank(rank.host, rank.container.name, rank.container.state) for rank in ranks]
    pulls = [PullImage(host, plan.image) for host in plan.hosts if facts[host].image is None]
    copies = [CopyModel(copy) for copy in plan.location.copies if copy.target_host in plan.hosts]
    # Workers first: the head's rendezvous then finds them waiting.
    starts = [StartRank(rank.host, rank.container.name, rank.rank) for rank in reversed(plan.ranks)]
    return (*removals, *pulls, *copies, *starts)


def is_as_planned(plan: ServingPlan, group: ServedGroup) -> bool:
    """Whether every rank runs on its host with the plan's fingerprint, and no other rank is there."""
    wanted = [(rank.host, rank.container.name) for rank in plan.ranks]
    running = [(rank.host, rank.container.name) for rank in group.ranks]
    return group.state is GroupState.WHOLE and group.spec == plan.spec and running == wanted


def _refuse(plan: ServingPlan, group: ServedGroup) -> None:
    same = group.model == plan.model and group.layout == str(plan.layout)
    what = f"{group.model} with other settings" if same else f"{group.model} ({group.layout})"
    raise UnsafeRefused(
        f"{what} is being served already; nothing was changed", remedy="`sparkctl stop`, then serve again"
    )
