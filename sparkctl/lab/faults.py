"""Breaks a running lab on purpose: cables, rates, power. For fault tests and `sparkctl lab fault`; needs root."""

from sparkctl.errors import OperationFailed, UsageError
from sparkctl.facts.model import Cage
from sparkctl.lab.disk import load_record
from sparkctl.lab.model import PORTS, cable_of, node_address, node_index, port_named
from sparkctl.lab.network import connect_node, disconnect_node, set_cable, set_rate
from sparkctl.lab.nodes import is_running, kill_container, start_container, stop_container, wait_until_ready
from sparkctl.lab.record import LabRecord


def set_rail_rate(lab: str, node: str, netdev: str, mbit_per_s: int) -> None:
    """Limit one rail, in both directions, to a rate in Mbit/s. `speed` in the node keeps saying the old value.

    Raises UsageError for an unknown lab, node or netdev.
    """
    record = _record(lab, node)
    set_rate(record.spec, node, port_named(netdev), mbit_per_s)


def cut_rail(lab: str, node: str, netdev: str) -> None:
    """Take carrier from one rail at both ends; both stay administratively up, as when half a cable fails.

    Raises UsageError for an unknown lab, node or netdev, or a port without a cable.
    """
    _set_rail(lab, node, netdev, connected=False)


def mend_rail(lab: str, node: str, netdev: str) -> None:
    """Undo `cut_rail`. Raises UsageError as that does."""
    _set_rail(lab, node, netdev, connected=True)


def pull_cable(lab: str, node: str, cage: Cage) -> None:
    """Take carrier from both twins of a cage, as when its cable is pulled. Raises UsageError as `cut_rail`."""
    for port in PORTS:
        if port.cage is cage:
            _set_rail(lab, node, port.netdev, connected=False)


def plug_cable(lab: str, node: str, cage: Cage) -> None:
    """Undo `pull_cable`. Raises UsageError as that does."""
    for port in PORTS:
        if port.cage is cage:
            _set_rail(lab, node, port.netdev, connected=True)


def power_off(lab: str, node: str) -> None:
    """End a node as a power cut does: no shutdown, its neighbours lose carrier. Its disk stays. Twice is fine."""
    record = _record(lab, node)
    kill_container(lab, node)
    disconnect_node(record.spec, node)


def shut_down(lab: str, node: str) -> None:
    """Shut a node down properly and switch it off. Its disk stays. Twice is fine."""
    record = _record(lab, node)
    stop_container(lab, node)
    disconnect_node(record.spec, node)


def power_on(lab: str, node: str) -> None:
    """Boot a node from the disk it had, with netdevs as after a cold start, and wait until SSH answers.

    A node that runs is left alone. Cables that were cut are whole again. Raises OperationFailed if it does not
    boot.
    """
    record = _record(lab, node)
    if is_running(lab, node):
        return
    disconnect_node(record.spec, node)
    connect_node(record.spec, node)
    start_container(record, node)
    wait_until_ready(lab, {node: node_address(record.network, node_index(record.spec, node))})


def _set_rail(lab: str, node: str, netdev: str, *, connected: bool) -> None:
    record, port = _record(lab, node), port_named(netdev)
    if cable_of(record.spec, node, port.cage) is None:
        raise UsageError(
            f"there is no cable in {node}:{port.cage}",
            remedy=f"lab `{lab}` has these: {', '.join(map(str, record.spec.cables)) or 'none'}",
        )
    set_cable(record.spec, node, port, connected=connected)


def _record(lab: str, node: str) -> LabRecord:
    record = load_record(lab)
    if record is None:
        raise UsageError(f"there is no lab `{lab}`", remedy=f"start it with `sparkctl lab up --name {lab}`")
    node_index(record.spec, node)
    if not record.base:
        raise OperationFailed("the lab's record names no root file system", remedy="`sparkctl lab down`, then `up`")
    return record
