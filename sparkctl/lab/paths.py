"""Where a lab keeps its files on this machine."""

import os
from pathlib import Path

STATE_VARIABLE = "SPARKCTL_LAB_STATE"
CACHE_VARIABLE = "SPARKCTL_LAB_CACHE"


def state_root() -> Path:
    """Holds one directory per lab; must lie on a real disk, because overlayfs keeps the nodes' changes there."""
    return Path(os.environ.get(STATE_VARIABLE) or "/var/lib/sparkctl-lab")


def cache_root() -> Path:
    """Holds the root file systems that labs share; survives `lab down`."""
    return Path(os.environ.get(CACHE_VARIABLE) or "/var/cache/sparkctl-lab")


def lab_directory(lab: str) -> Path:
    """Everything of one lab: record, keys, node disks, logs."""
    return state_root() / lab


def node_directory(lab: str, node: str) -> Path:
    """Disk and logs of one node."""
    return lab_directory(lab) / node


def record_file(lab: str) -> Path:
    """The lab's record, `lab.json`."""
    return lab_directory(lab) / "lab.json"


def private_key_file(lab: str) -> Path:
    """The key that opens every node of the lab for its user."""
    return lab_directory(lab) / "id_ed25519"


def known_hosts_file(lab: str) -> Path:
    """The pinned host keys of the lab's nodes, in the format of ssh_known_hosts (sshd(8))."""
    return lab_directory(lab) / "known_hosts"


def console_log(lab: str, node: str) -> Path:
    """What a node printed on its console since it was last started."""
    return node_directory(lab, node) / "console.log"


def lock_file(name: str) -> Path:
    """A lock that disappears with the machine's memory, and with the process that holds it."""
    return Path("/run/lock") / f"sparkctl-lab-{name}.lock"
