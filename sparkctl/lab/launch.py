"""The script that turns itself into the supervisor of one node: a systemd-nspawn container that boots."""

import shlex
from dataclasses import dataclass

# How nspawn ends with --keep-unit when the container asked for a reboot: EXIT_FORCE_RESTART in systemd's nspawn.c.
_REBOOT = 133
# A netdev, named by $0, as after a cold start; its link-local address comes back with the carrier.
_RESET = 'ip link set "$0" down mtu 1500; ip address flush dev "$0"; ip link set "$0" up'


@dataclass(frozen=True)
class Launch:
    """Everything one node needs to be started; all paths are absolute paths on this machine.

    cgroup2: where cgroup2 is mounted. group: the node's group below it. base: the shared root file system, never
    written to. directory: of the node, with upper, work, root and docker in it. netdevs: of the node, reset when
    it reboots. binds: (path here, path in the node).
    """

    machine: str
    namespace: str
    cgroup2: str
    group: str
    base: str
    directory: str
    machine_id: str
    netdevs: tuple[str, ...]
    binds: tuple[tuple[str, str], ...] = ()


def render_launch_script(launch: Launch) -> str:
    """Text for /bin/sh, to be run by root in a private mount namespace (`unshare --mount`).

    Every mount it makes lives in that namespace, so nothing is left behind when the node dies. It runs as long as
    the node does, and starts it again, with netdevs as after a cold start, when the node reboots itself.
    """
    quoted = shlex.quote
    directory = launch.directory
    overlay = f"lowerdir={launch.base},upperdir={directory}/upper,workdir={directory}/work"
    enter = ("nsenter", f"--net=/run/netns/{launch.namespace}")
    return f"""#!/bin/sh
# Written by `sparkctl lab up`; starts virtual Spark {launch.machine}.
set -eu
group={quoted(f"{launch.cgroup2}/{launch.group}")}
mkdir -p "$group/launcher" "$group/node"
echo $$ > "$group/launcher/cgroup.procs"
# nspawn wants cgroup2 at the top, also where this machine mixes versions 1 and 2.
if [ "$(stat --file-system --format=%T /sys/fs/cgroup)" != cgroup2fs ]; then
    umount --recursive /sys/fs/cgroup
    mount -t cgroup2 cgroup2 /sys/fs/cgroup
fi
group={quoted(f"/sys/fs/cgroup/{launch.group}/node")}
# nspawn keeps its propagation directory here and refuses to remove it on a disk file system.
mkdir -p /run/systemd
mount -t tmpfs tmpfs /run/systemd
mount -t overlay overlay -o {quoted(overlay)} {quoted(directory + "/root")}
# Entering the network namespace before nspawn, not through it: only then /sys/class/net shows this node's netdevs.
while :; do
    code=0
    sh -c 'echo $$ > "$0/cgroup.procs" && exec "$@"' "$group" {shlex.join((*enter, *nspawn_command(launch)))} || code=$?
    [ $code -eq {_REBOOT} ] || exit $code
    echo 1 > "$group/cgroup.kill"
    find "$group" -mindepth 1 -depth -type d -exec rmdir {{}} +
    for netdev in {" ".join(launch.netdevs)}; do
        {shlex.join((*enter, "sh", "-c", _RESET))} "$netdev"
    done
done
"""


def nspawn_command(launch: Launch) -> tuple[str, ...]:
    """The container's command line, see systemd-nspawn(1).

    No registration with systemd-machined, which many machines lack; the caller's cgroup is kept instead.
    """
    shared = tuple(f"--bind-ro={here}:{there}" for here, there in launch.binds)
    return (
        "systemd-nspawn",
        "--quiet",
        "--boot",
        "--register=no",
        "--keep-unit",
        f"--machine={launch.machine}",
        f"--uuid={launch.machine_id}",
        f"--directory={launch.directory}/root",
        "--console=read-only",
        "--link-journal=no",
        "--resolv-conf=off",
        "--timezone=off",
        "--capability=all",
        # Docker and runc need both; nspawn refuses them by default.
        "--system-call-filter=@keyring bpf",
        # overlay2 cannot sit on the node's own overlayfs.
        f"--bind={launch.directory}/docker:/var/lib/docker",
        *shared,
    )
