"""Control groups (version 2) that hold the processes of each node, so that none can be lost.

The groups are the only record of a node's processes: there are no pid files that could go stale.
Source: Documentation/admin-guide/cgroup-v2.rst in the kernel.
"""

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

from sparkctl.errors import OperationFailed

_PARENT = "sparkctl-lab"


def parse_cgroup2_mount(mountinfo: str) -> str | None:
    """Where cgroup2 is mounted: `/sys/fs/cgroup`, or `…/unified` on hybrid machines; None if nowhere.

    mountinfo: text of /proc/self/mountinfo, see proc_pid_mountinfo(5).
    """
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        if after.startswith("cgroup2 "):
            return before.split()[4]
    return None


def cgroup2_mount() -> Path:
    """Where cgroup2 is mounted. Raises OperationFailed on a machine without it."""
    mount = parse_cgroup2_mount(Path("/proc/self/mountinfo").read_text())
    if mount is None:
        raise OperationFailed(
            "this machine has no cgroup2 file system",
            remedy="boot with systemd.unified_cgroup_hierarchy=1, or mount one: `mount -t cgroup2 none /sys/fs/cgroup`",
        )
    return Path(mount)


def lab_group(lab: str) -> Path:
    """The group of all nodes of a lab. Raises OperationFailed on a machine without cgroup2."""
    return cgroup2_mount() / _PARENT / lab


def node_group(lab: str, node: str) -> Path:
    """The group of one node's processes."""
    return lab_group(lab) / node


def group_pids(group: Path) -> tuple[int, ...]:
    """Every process in a group and below it, ascending; empty if the group does not exist."""
    found: set[int] = set()
    # Groups vanish while we look; os.walk passes over them, and they have no processes.
    for directory, _, _ in os.walk(group):
        with suppress(OSError):
            found.update(int(pid) for pid in Path(directory, "cgroup.procs").read_text().split() if pid != "0")
    return tuple(sorted(found))


def remove_group(group: Path, *, timeout_s: float = 10.0) -> None:
    """Kill whatever runs in a group and remove it with all below it; fine if it does not exist.

    Raises OperationFailed naming the processes that would not die within `timeout_s`.
    """
    deadline = time.monotonic() + timeout_s
    while group.exists():
        _kill(group)
        if _remove_empty(group):
            break
        if time.monotonic() > deadline:
            raise OperationFailed(
                f"processes of the lab do not end: {', '.join(map(str, group_pids(group)))}",
                remedy="look at them with `ps -fp PID`; they wait for the kernel (state D) or a debugger",
                where=str(group),
            )
        time.sleep(0.02)
    with suppress(OSError):
        group.parent.rmdir()


def _kill(group: Path) -> None:
    pids = group_pids(group)
    if not pids:
        return
    try:
        (group / "cgroup.kill").write_text("1")
    except OSError:
        # cgroup.kill came with Linux 5.14.
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _remove_empty(group: Path) -> bool:
    try:
        for directory, _, _ in os.walk(group, topdown=False):
            Path(directory).rmdir()
    except FileNotFoundError:
        return not group.exists()
    except OSError:
        return False
    return True
