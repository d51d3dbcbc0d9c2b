"""Starts and stops the containers that are a lab's nodes."""

import os
import signal
import socket
import subprocess
import time
from contextlib import suppress
from ipaddress import IPv4Address
from pathlib import Path

from sparkctl.errors import OperationFailed
from sparkctl.lab.cgroups import cgroup2_mount, group_pids, node_group, remove_group
from sparkctl.lab.launch import Launch, render_launch_script
from sparkctl.lab.model import MANAGEMENT_NETDEV, PORTS, machine_id, node_namespace
from sparkctl.lab.paths import console_log, node_directory
from sparkctl.lab.record import LabRecord

BOOT_TIMEOUT_S = 120.0
# Docker and systemd may each take a few seconds to stop what they run.
STOP_TIMEOUT_S = 15.0


def start_container(record: LabRecord, node: str) -> None:
    """Start a node's container and return at once; it outlives this process. Its network and disk must exist."""
    spec = record.spec
    group = node_group(spec.name, node)
    mount = cgroup2_mount()
    directory = node_directory(spec.name, node)
    script = directory / "launch.sh"
    script.write_text(
        render_launch_script(
            Launch(
                machine=node,
                namespace=node_namespace(spec.name, node),
                cgroup2=str(mount),
                group=str(group.relative_to(mount)),
                base=record.base,
                directory=str(directory),
                machine_id=machine_id(spec, node),
                netdevs=(MANAGEMENT_NETDEV, *(port.netdev for port in PORTS)),
                binds=tuple((bind.host_path, bind.node_path) for bind in spec.binds),
            )
        )
    )
    with console_log(spec.name, node).open("wb") as log:
        subprocess.run(
            # In a session of its own, out of reach of a terminal's Ctrl-C or hang-up, and nobody's child.
            ("setsid", "--fork", "unshare", "--mount", "--propagation", "private", "/bin/sh", str(script)),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            check=True,
        )


def wait_until_ready(lab: str, addresses: dict[str, IPv4Address], *, timeout_s: float = BOOT_TIMEOUT_S) -> None:
    """Wait until the SSH server of every node answers. addresses: by node name.

    Raises OperationFailed with the last line of the console when a node ends or takes longer than `timeout_s`.
    """
    deadline = time.monotonic() + timeout_s
    started = time.monotonic()
    waiting = dict(addresses)
    while waiting:
        for node in [node for node, address in waiting.items() if ssh_answers(address)]:
            del waiting[node]
        for node in waiting:
            if time.monotonic() > deadline:
                raise _not_booted(lab, node, f"does not answer on SSH after {timeout_s:.0f} s")
            # The launcher needs a moment to enter its group.
            if time.monotonic() - started > 2 and not is_running(lab, node):
                raise _not_booted(lab, node, "ended while booting")
        time.sleep(0.05)


def ssh_answers(address: IPv4Address, *, timeout_s: float = 0.5) -> bool:
    """Whether an SSH server says its name at an address."""
    try:
        with socket.create_connection((str(address), 22), timeout=timeout_s) as connection:
            return connection.recv(4) == b"SSH-"
    except OSError:
        return False


def is_running(lab: str, node: str) -> bool:
    """Whether any process of a node is alive."""
    return bool(group_pids(node_group(lab, node)))


def supervisor_pid(lab: str, node: str) -> int | None:
    """Process number of a node's systemd-nspawn; None if it is not running."""
    group = node_group(lab, node) / "node"
    # nspawn moves itself into a group of its own soon after its start.
    for listing in (group / "supervisor/cgroup.procs", group / "cgroup.procs"):
        # Without a node there is no group.
        with suppress(OSError):
            pids = listing.read_text().split()
            if pids:
                return int(pids[0])
    return None


def leader_pid(lab: str, node: str) -> int | None:
    """Process number, on this machine, of a node's init, for `nsenter --target`; None if it is not running."""
    supervisor = supervisor_pid(lab, node)
    if supervisor is None:
        return None
    try:
        children = Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text().split()
    except OSError:
        return None
    return int(children[0]) if children else None


def stop_container(lab: str, node: str, *, timeout_s: float = STOP_TIMEOUT_S) -> None:
    """Shut a node down properly; after `timeout_s`, or without its supervisor, kill it. Leaves no process."""
    ask_to_stop(lab, (node,), timeout_s=timeout_s)
    kill_container(lab, node)


def ask_to_stop(lab: str, nodes: tuple[str, ...], *, timeout_s: float = STOP_TIMEOUT_S) -> None:
    """Ask nodes to shut down, all at once, and wait until they have, at most `timeout_s`."""
    waiting = set()
    for node in nodes:
        if (supervisor := supervisor_pid(lab, node)) is not None:
            with suppress(ProcessLookupError):
                os.kill(supervisor, signal.SIGTERM)
                waiting.add(node)
    deadline = time.monotonic() + timeout_s
    while waiting and time.monotonic() < deadline:
        time.sleep(0.05)
        waiting = {node for node in waiting if supervisor_pid(lab, node) is not None}


def kill_container(lab: str, node: str) -> None:
    """End every process of a node at once, as a power cut does, and remove its cgroup."""
    remove_group(node_group(lab, node))


def _not_booted(lab: str, node: str, what: str) -> OperationFailed:
    log = console_log(lab, node)
    last = (log.read_text(errors="replace").strip().splitlines() or ["nothing on its console"])[-1]
    return OperationFailed(
        f"node {node} {what}: {last}",
        remedy="type `sparkctl lab up` to try again; with `lab shell` and the journal you see more of a running node",
        where=f"lab {lab}",
    )
