"""What is there of a lab right now, read from the kernel; needs no root."""

from dataclasses import dataclass
from enum import StrEnum
from ipaddress import IPv4Address
from pathlib import Path

from sparkctl.lab.cgroups import lab_group
from sparkctl.lab.disk import readable_record
from sparkctl.lab.model import LabSpec, check_lab_name, node_address, node_namespace
from sparkctl.lab.network import controller_netdev_exists, lab_namespaces
from sparkctl.lab.nodes import leader_pid, ssh_answers, supervisor_pid
from sparkctl.lab.paths import known_hosts_file, lab_directory, node_directory, private_key_file, record_file


class NodeState(StrEnum):
    """How far a node is."""

    READY = "ready"
    BOOTING = "booting"
    OFF = "off"


class LabState(StrEnum):
    """RUNNING: all nodes are ready. PARTIAL: some are. REMAINS: none is, but something of the lab is left."""

    RUNNING = "running"
    PARTIAL = "partial"
    REMAINS = "remains"
    ABSENT = "absent"


@dataclass(frozen=True)
class NodeHandle:
    """One node of a lab as it is now.

    netns: name of its network namespace. address: for SSH. leader_pid: its init as this machine numbers it, for
    `nsenter --target PID --all`; None while it is off. directory: its disk and console log.
    """

    name: str
    state: NodeState
    netns: str
    address: IPv4Address
    leader_pid: int | None
    supervisor_pid: int | None
    directory: Path


@dataclass(frozen=True)
class LabHandle:
    """A lab as it is now. spec: None, with no nodes, if its record is missing. key: opens every node for `nvidia`."""

    name: str
    state: LabState
    spec: LabSpec | None
    nodes: tuple[NodeHandle, ...]
    directory: Path
    key: Path
    known_hosts: Path

    def node(self, name: str) -> NodeHandle:
        """The node of this name; raises KeyError if the lab has none."""
        for node in self.nodes:
            if node.name == name:
                return node
        raise KeyError(name)


def lab_status(name: str) -> LabHandle:
    """What is there of a lab. A damaged record counts as none. Raises UsageError for an impossible name."""
    record = readable_record(check_lab_name(name))
    nodes: tuple[NodeHandle, ...] = ()
    if record is not None:
        nodes = tuple(
            _node(name, node, node_address(record.network, index)) for index, node in enumerate(record.spec.nodes)
        )
    return LabHandle(
        name=name,
        state=_lab_state(name, nodes),
        spec=None if record is None else record.spec,
        nodes=nodes,
        directory=lab_directory(name),
        key=private_key_file(name),
        known_hosts=known_hosts_file(name),
    )


def _node(lab: str, node: str, address: IPv4Address) -> NodeHandle:
    supervisor = supervisor_pid(lab, node)
    running = NodeState.READY if ssh_answers(address) else NodeState.BOOTING
    return NodeHandle(
        name=node,
        state=NodeState.OFF if supervisor is None else running,
        netns=node_namespace(lab, node),
        address=address,
        leader_pid=leader_pid(lab, node),
        supervisor_pid=supervisor,
        directory=node_directory(lab, node),
    )


def _lab_state(name: str, nodes: tuple[NodeHandle, ...]) -> LabState:
    ready = [node for node in nodes if node.state is NodeState.READY]
    if nodes and len(ready) == len(nodes):
        return LabState.RUNNING
    if ready:
        return LabState.PARTIAL
    remains = record_file(name).exists() or lab_directory(name).exists() or lab_group(name).exists()
    if remains or lab_namespaces(name) or controller_netdev_exists(name):
        return LabState.REMAINS
    return LabState.ABSENT
