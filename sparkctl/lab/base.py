"""The root file system that all nodes share: built once by debootstrap, kept in the cache, never changed."""

import hashlib
import re
import subprocess
from pathlib import Path

from sparkctl.errors import OperationFailed
from sparkctl.lab.host import CONTAINED, Progress, debootstrap_command
from sparkctl.lab.node_files import USER, USER_ID
from sparkctl.lab.paths import cache_root
from sparkctl.lab.trees import remove_tree

SUITE = "trixie"
PACKAGES = (
    *("systemd", "systemd-sysv", "systemd-resolved", "dbus", "udev", "kmod", "procps", "sudo", "rsync"),
    *("netplan.io", "iproute2", "iputils-ping", "ethtool", "iperf3", "lldpd", "curl", "ca-certificates"),
    *("openssh-server", "openssh-client", "avahi-daemon", "avahi-utils", "libnss-mdns"),
    *("python3", "python3-apt", "pciutils"),
    *("rdma-core", "ibverbs-utils", "perftest", "nvme-cli", "docker.io", "docker-cli"),
)
# Without udevd, `netplan apply` fails at `udevadm control`; with a stub it takes half a second.
# The masked services wait for hardware, the internet or a terminal that a node does not have.
_CUSTOMISE = f"""
set -eu
mount -t proc proc /proc
dpkg-divert --quiet --local --rename --divert /usr/bin/udevadm.real --add /usr/bin/udevadm
printf '#!/bin/sh\\n# Diverted: no udev runs in a virtual Spark.\\nexit 0\\n' > /usr/bin/udevadm
chmod 755 /usr/bin/udevadm
useradd --create-home --uid {USER_ID} --shell /bin/bash --groups adm,sudo,docker {USER}
systemctl --quiet mask console-getty.service getty.target nvmf-autoconnect.service nvmefc-boot-connections.service \\
    apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer fstrim.timer e2scrub_all.timer \\
    sys-kernel-debug.mount sys-kernel-tracing.mount sys-fs-fuse-connections.mount dev-hugepages.mount
systemctl --quiet enable ssh.service systemd-networkd.service
apt-get clean
rm -f /etc/ssh/ssh_host_* /etc/machine-id /etc/hostname
rm -rf /var/lib/apt/lists/* /var/cache/debconf/*-old /usr/share/doc /usr/share/man
ln -sf ../run/systemd/resolve/stub-resolv.conf /etc/resolv.conf
"""


def recipe_key() -> str:
    """Names the root file system this version builds; changes with every part of the recipe."""
    return hashlib.sha256("\n".join((SUITE, *PACKAGES, _CUSTOMISE)).encode()).hexdigest()[:12]


def base_directory() -> Path:
    """Where the root file system of this recipe is, or will be."""
    return cache_root() / f"base-{recipe_key()}"


def ensure_base(progress: Progress) -> Path:
    """The root file system, built if it is not in the cache (about two minutes, 0.8 GB).

    The caller holds the lock `cache`. A half-built one never gets its final name, and is removed the next
    time. Raises OperationFailed when the mirror or debootstrap fails.
    """
    finished = base_directory()
    if finished.is_dir():
        return finished
    cache_root().mkdir(parents=True, exist_ok=True)
    for remains in cache_root().glob("base-*.building"):
        remove_tree(remains)
    building = finished.with_name(finished.name + ".building")
    log = cache_root() / "debootstrap.log"
    command = debootstrap_command(SUITE, PACKAGES, building)
    progress("building the nodes' root file system: once, about two minutes, 0.8 GB")
    try:
        _bootstrap(command, log, progress)
        progress("root file system: customising")
        _run(("chroot", str(building), "/bin/sh", "-c", _CUSTOMISE), log)
        building.rename(finished)
    finally:
        if building.exists():
            remove_tree(building)
    return finished


def parse_debootstrap_line(line: str) -> tuple[str, str] | None:
    """Phase and package of a line such as `I: Unpacking sudo...`; None for lines without a package."""
    match = re.match(r"I: (Retrieving|Validating|Extracting|Unpacking|Configuring) (\S+?)(\.\.\.)?( |$)", line)
    return (match[1].lower(), match[2]) if match else None


def _bootstrap(command: tuple[str, ...], log: Path, progress: Progress) -> None:
    argv = (*CONTAINED, *command)
    with (
        log.open("w") as copy,
        subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, bufsize=1) as process,
    ):
        counts: dict[str, int] = {}
        try:
            for line in process.stdout or ():
                copy.write(line)
                if step := parse_debootstrap_line(line):
                    phase = step[0]
                    counts[phase] = counts.get(phase, 0) + 1
                    if counts[phase] % 40 == 1:
                        progress(f"root file system: {phase} packages ({counts[phase]})")
        except KeyboardInterrupt:
            # Not every Ctrl-C reaches debootstrap, and it must not write into what is removed next.
            process.kill()
            raise
    if process.returncode != 0:
        raise _failure(log)


def _run(argv: tuple[str, ...], log: Path) -> None:
    with log.open("a") as copy:
        # The mount namespace keeps this machine free of what the script mounts.
        done = subprocess.run(("unshare", "--mount", *argv), stdout=copy, stderr=subprocess.STDOUT, check=False)
    if done.returncode != 0:
        raise _failure(log)


def _failure(log: Path) -> OperationFailed:
    last = (log.read_text(errors="replace").strip().splitlines() or ["no message"])[-1]
    return OperationFailed(
        f"the nodes' root file system could not be built: {last}",
        remedy=f"read `{log}`; a different mirror can be set with SPARKCTL_LAB_MIRROR",
    )
