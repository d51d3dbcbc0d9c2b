"""Brings a lab up and takes it down, from whatever state it was left in."""

from dataclasses import dataclass
from enum import StrEnum
from ipaddress import IPv4Network
from pathlib import Path

from sparkctl.errors import Interrupted, OperationFailed, UnsafeRefused
from sparkctl.lab.base import ensure_base
from sparkctl.lab.cgroups import group_pids, lab_group, remove_group
from sparkctl.lab.disk import readable_record, write_lab_directory, write_node_disk
from sparkctl.lab.host import Progress, install_programs
from sparkctl.lab.locks import CACHE_LOCK, NETWORK_LOCK, locked
from sparkctl.lab.model import LabSpec, check_lab_name, choose_network, node_address
from sparkctl.lab.network import (
    connect_node,
    controller_netdev_exists,
    create_fabric,
    lab_namespaces,
    remove_network,
    routed_networks,
)
from sparkctl.lab.nodes import ask_to_stop, start_container, wait_until_ready
from sparkctl.lab.paths import cache_root, lab_directory, state_root
from sparkctl.lab.record import LabRecord
from sparkctl.lab.status import LabHandle, LabState, lab_status
from sparkctl.lab.trees import mounts_below, remove_tree


class UpOutcome(StrEnum):
    """What `lab_up` did."""

    STARTED = "started"
    ALREADY_UP = "already up"


@dataclass(frozen=True)
class UpResult:
    """A running lab and whether it was started just now."""

    outcome: UpOutcome
    lab: LabHandle


def lab_up(spec: LabSpec, progress: Progress) -> UpResult:
    """Start a lab; a healthy one is left alone, remains of one are removed first. Needs root.

    Raises UnsafeRefused if it runs with another spec, OperationFailed when it cannot be built, Interrupted on
    Ctrl-C. In the last two cases nothing of the lab is left.
    """
    with locked(spec.name):
        present = lab_status(spec.name)
        if present.state is LabState.RUNNING:
            if present.spec != spec:
                raise UnsafeRefused(
                    f"lab `{spec.name}` is running with other nodes, cables, rates or shared directories",
                    remedy=f"stop it with `sparkctl lab down --name {spec.name}` first, or choose another `--name`",
                )
            return UpResult(UpOutcome.ALREADY_UP, present)
        install_programs(progress)
        with locked(CACHE_LOCK):
            base = ensure_base(progress)
        if present.state is not LabState.ABSENT:
            progress(f"removing what is left of an earlier lab `{spec.name}`")
            _remove(spec.name)
        try:
            _start(spec, base, progress)
        except KeyboardInterrupt as interrupt:
            _remove(spec.name)
            raise Interrupted(
                f"lab `{spec.name}` was not started; what had been built of it is removed",
                remedy="type `sparkctl lab up` to try again",
            ) from interrupt
        except OperationFailed:
            _remove(spec.name)
            raise
        return UpResult(UpOutcome.STARTED, lab_status(spec.name))


def lab_down(name: str, progress: Progress) -> bool:
    """Stop a lab and remove everything of it except the shared root file system. Needs root.

    False if there was nothing of it. Raises OperationFailed naming what would not go away.
    """
    with locked(check_lab_name(name)):
        if not lab_exists(name):
            return False
        progress(f"stopping lab `{name}`")
        ask_to_stop(name, _nodes_with_processes(name))
        _remove(name)
        return True


def purge_caches() -> None:
    """Remove everything that labs share and would build again. Raises UnsafeRefused while a lab is there."""
    with locked(CACHE_LOCK):
        labs = sorted(path.name for path in state_root().iterdir() if path.is_dir()) if state_root().is_dir() else []
        if labs:
            raise UnsafeRefused(
                f"the caches are in use by {', '.join(labs)}",
                remedy=f"stop them first, such as with `sparkctl lab down --name {labs[0]}`",
            )
        remove_tree(cache_root())


def lab_exists(name: str) -> bool:
    """Whether anything of a lab is there: files, processes, groups, namespaces, netdevs or mounts."""
    return (
        lab_directory(name).exists()
        or lab_group(name).exists()
        or bool(lab_namespaces(name))
        or controller_netdev_exists(name)
        or bool(mounts_below(lab_directory(name)))
    )


def _start(spec: LabSpec, base: Path, progress: Progress) -> None:
    # Two labs starting together must not choose the same network.
    with locked(NETWORK_LOCK):
        record = LabRecord(spec, choose_network((*routed_networks(), *_networks_of_labs())), str(base))
        write_lab_directory(record)
    create_fabric(spec, record.network)
    progress(f"starting {', '.join(spec.nodes)}")
    for node in spec.nodes:
        connect_node(spec, node)
        write_node_disk(record, node)
        start_container(record, node)
    addresses = {node: node_address(record.network, index) for index, node in enumerate(spec.nodes)}
    wait_until_ready(spec.name, addresses)


def _remove(name: str) -> None:
    remove_group(lab_group(name))
    remove_network(name)
    remove_tree(lab_directory(name))


def _nodes_with_processes(name: str) -> tuple[str, ...]:
    group = lab_group(name)
    if not group.is_dir():
        return ()
    return tuple(sorted(path.name for path in group.iterdir() if path.is_dir() and group_pids(path)))


def _networks_of_labs() -> tuple[IPv4Network, ...]:
    if not state_root().is_dir():
        return ()
    records = (readable_record(directory.name) for directory in state_root().iterdir() if directory.is_dir())
    return tuple(record.network for record in records if record is not None)
