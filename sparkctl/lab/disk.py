"""Writes what a lab keeps on this machine's disk: keys, known_hosts, and the changes that make each node's disk."""

import os
import shutil
import subprocess
from pathlib import Path

from sparkctl.errors import OperationFailed
from sparkctl.lab.model import LabSpec, machine_id, node_address, node_index
from sparkctl.lab.node_files import USER_ID, NodeFile, plan_node_files
from sparkctl.lab.paths import known_hosts_file, lab_directory, node_directory, private_key_file, record_file
from sparkctl.lab.record import LabRecord, parse_record, render_record
from sparkctl.lab.simulated import plan_simulated_files


def load_record(lab: str) -> LabRecord | None:
    """The record of a lab; None if there is none. Raises OperationFailed if it is damaged."""
    file = record_file(lab)
    if not file.is_file():
        return None
    return parse_record(file.read_text(), where=str(file))


def readable_record(lab: str) -> LabRecord | None:
    """The record of a lab; None if there is none that can be read."""
    try:
        return load_record(lab)
    except OperationFailed:
        return None


def write_lab_directory(record: LabRecord) -> None:
    """Create a lab's directory with its record, a new key pair, and no node yet."""
    lab = record.spec.name
    lab_directory(lab).mkdir(parents=True)
    record_file(lab).write_text(render_record(record))
    known_hosts_file(lab).write_text("")
    _make_key(private_key_file(lab), f"sparkctl lab {lab}")
    for file in (private_key_file(lab), known_hosts_file(lab)):
        give_to_caller(file)


def write_node_disk(record: LabRecord, node: str) -> None:
    """Create a node's disk over the shared root file system, with host keys that are pinned in known_hosts.

    New directories take mode and owner from their counterparts in the root file system.
    """
    spec = record.spec
    directory = node_directory(spec.name, node)
    for part in ("upper", "work", "root", "docker"):
        (directory / part).mkdir(parents=True)
    # Docker's own mode for its directory.
    (directory / "docker").chmod(0o710)
    address = str(node_address(record.network, node_index(spec, node)))
    upper = directory / "upper"
    for file in (*_node_files(record, node, address), *plan_simulated_files(spec, node)):
        _write(file, upper, Path(record.base))
    public = _make_host_key(upper)
    with known_hosts_file(spec.name).open("a") as known:
        known.write(f"{address} {' '.join(public.split()[:2])}\n")


def give_to_caller(file: Path) -> None:
    """Let whoever typed `sudo` own a file, so that later commands need no root."""
    user, group = os.environ.get("SUDO_UID"), os.environ.get("SUDO_GID")
    if user and group:
        os.chown(file, int(user), int(group))


def _node_files(record: LabRecord, node: str, address: str) -> tuple[NodeFile, ...]:
    spec: LabSpec = record.spec
    return plan_node_files(
        node=node,
        address=address,
        prefix_length=record.network.prefixlen,
        machine_id=machine_id(spec, node),
        public_key=private_key_file(spec.name).with_suffix(".pub").read_text(),
    )


def _write(file: NodeFile, upper: Path, base: Path) -> None:
    target = upper / file.path.lstrip("/")
    _make_parents(target.parent, upper, base)
    if file.link_to:
        target.symlink_to(file.link_to)
        return
    if file.is_directory:
        target.mkdir(exist_ok=True)
    else:
        target.write_text(file.content)
    target.chmod(file.mode)
    if file.of_user:
        os.chown(target, USER_ID, USER_ID)


def _make_parents(directory: Path, upper: Path, base: Path) -> None:
    if directory.is_dir():
        return
    _make_parents(directory.parent, upper, base)
    directory.mkdir()
    original = base / directory.relative_to(upper)
    if original.is_dir():
        shutil.copystat(original, directory)
        about = original.stat()
        os.chown(directory, about.st_uid, about.st_gid)


def _make_host_key(upper: Path) -> str:
    key = upper / "etc/ssh/ssh_host_ed25519_key"
    _make_key(key, "")
    return key.with_suffix(".pub").read_text()


def _make_key(file: Path, comment: str) -> None:
    done = subprocess.run(
        ("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", str(file)),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise OperationFailed(
            f"ssh-keygen could not make a key: {done.stderr.strip()}",
            remedy=f"look whether the disk of `{file.parent}` is full",
        )
