"""Runs programs inside another root file system, leaving neither mounts nor files there."""

import shlex
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sparkctl.errors import OperationFailed
from sparkctl.lab.host import CONTAINED


def run_inside(
    root: Path,
    argv: tuple[str, ...],
    *,
    log: Path,
    environment: tuple[tuple[str, str], ...] = (),
    binds: tuple[Path, ...] = (),
    writable: tuple[tuple[Path, str], ...] = (),
) -> None:
    """Run a program in `root`, its output appended to `log`.

    binds: paths of this machine shown read-only under the same name. writable: (path here, path in there).
    Raises OperationFailed with the program's last line when it exits with anything but 0.
    """
    mounts = (*((path, str(path), True) for path in binds), *((path, there, False) for path, there in writable))
    with _mount_points(root, tuple((path, there) for path, there, _ in mounts)), log.open("a") as output:
        script = render_inside_script(str(root), tuple((str(a), b, ro) for a, b, ro in mounts), argv, environment)
        done = subprocess.run(
            (*CONTAINED, "/bin/sh", "-c", script),
            stdout=output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    if done.returncode != 0:
        raise failure(f"`{Path(argv[0]).name}` failed in the engine's root file system", log)


def render_inside_script(
    root: str,
    mounts: tuple[tuple[str, str, bool], ...],
    argv: tuple[str, ...],
    environment: tuple[tuple[str, str], ...],
) -> str:
    """Text for /bin/sh that mounts, enters and runs; mounts are (path here, path in there, read-only)."""
    quoted = shlex.quote
    # Docker, unpacking a layer, remounts its `/`, which must therefore be a mount.
    lines = ["set -eu", f"mount --rbind {quoted(root)} {quoted(root)}", f"cd {quoted(root)}"]
    lines += [
        # /sys for lscpu, which vLLM asks for processors; /dev for random numbers and shared memory.
        "mount -t proc proc proc",
        "mount --rbind /sys sys",
        "mount --rbind /dev dev",
        "mount -t tmpfs -o mode=1777 tmpfs tmp",
    ]
    for here, there, read_only in mounts:
        point = quoted(f".{there}")
        lines.append(f"mount --bind {quoted(here)} {point}")
        if read_only:
            lines.append(f"mount -o remount,bind,ro {point}")
    assignments = tuple(f"{name}={value}" for name, value in environment)
    lines.append(f"exec {shlex.join(('chroot', '.', '/usr/bin/env', '-i', *assignments, *argv))}")
    return "\n".join(lines)


def failure(what: str, log: Path) -> OperationFailed:
    """An error that quotes the last line of a log and says where to read the rest."""
    last = (log.read_text(errors="replace").strip().splitlines() or ["no message"])[-1]
    return OperationFailed(f"{what}: {last}", remedy=f"read `{log}`, then try again; finished parts are kept")


@contextmanager
def _mount_points(root: Path, mounts: tuple[tuple[Path, str], ...]) -> Iterator[None]:
    """Make what is missing of the paths to be mounted on, and remove just that afterwards."""
    made: list[Path] = []
    try:
        for here, there in mounts:
            point = root / there.lstrip("/")
            missing = [parent for parent in reversed(point.parents) if not parent.exists()]
            for parent in missing:
                parent.mkdir()
                made.append(parent)
            if point.is_symlink():
                # Followed inside the other root, it could point anywhere.
                point.unlink()
            if not point.exists():
                if here.is_dir():
                    point.mkdir()
                else:
                    point.touch()
                made.append(point)
        yield
    finally:
        for path in reversed(made):
            if path.is_dir():
                path.rmdir()
            else:
                path.unlink()
