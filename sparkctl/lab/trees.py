"""Removing directory trees that may have been mounted into, without following a mount."""

import shutil
import subprocess
from pathlib import Path

from sparkctl.errors import OperationFailed


def parse_mounts_below(mountinfo: str, directory: str) -> tuple[str, ...]:
    """Mount points at or below a directory, deepest first.

    mountinfo: text of /proc/self/mountinfo, see proc_pid_mountinfo(5), which writes blanks as octal numbers.
    """
    points = [line.split()[4].replace("\\040", " ") for line in mountinfo.splitlines()]
    return tuple(sorted((p for p in points if p == directory or p.startswith(directory + "/")), key=len, reverse=True))


def mounts_below(directory: Path) -> tuple[str, ...]:
    """Mount points at or below a directory as this process sees them, deepest first."""
    return parse_mounts_below(Path("/proc/self/mountinfo").read_text(), str(directory.resolve()))


def remove_tree(directory: Path) -> None:
    """Unmount everything at or below a directory, then remove it; fine if it does not exist.

    Raises OperationFailed, with nothing removed, while something stays mounted there.
    """
    for point in mounts_below(directory):
        subprocess.run(("umount", "--lazy", point), check=False, capture_output=True)
    if left := mounts_below(directory):
        raise OperationFailed(
            f"{left[0]} cannot be unmounted", remedy=f"type `umount {left[0]}`, then try again", where=str(directory)
        )
    if directory.exists():
        shutil.rmtree(directory)
