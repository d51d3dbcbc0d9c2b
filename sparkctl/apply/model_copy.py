"""Copies a model from one host to another over a rail: one-shot rsync daemon, one-time secret, atomic rename."""

import secrets
from contextlib import suppress

from sparkctl.apply.progress import Progress
from sparkctl.errors import HostError, OperationFailed
from sparkctl.plan.model_location import ModelCopy
from sparkctl.tools.rsync import (
    DAEMON_USER,
    daemon_config,
    fetch_command,
    parse_complaint,
    parse_progress,
    start_daemon_command,
    stop_daemon_command,
)
from sparkctl.transport.bundle import quoted, shell
from sparkctl.transport.command import Transport

# Any free port above the privileged ones; on rails only, and for one client address.
_PORT = 25873
# 1 TB at 100 MB/s is about three hours; a daemon that is forgotten ends by then.
_LIFETIME_S = 14_400
_PARTIAL_SUFFIX = ".sparkctl-partial"


def copy_model(
    copy: ModelCopy,
    *,
    source: Transport,
    source_address: str,
    target: Transport,
    target_address: str,
    progress: Progress,
) -> None:
    """Make `copy.target_root` on the target equal to `copy.source_root` on the source, or leave it absent.

    source_address, target_address: both ends of one rail; the daemon listens on the first and admits the second only.
    The bytes arrive under a temporary name and are renamed when all are there; an interrupted copy continues from
    them. The data is not encrypted on the private link; the secret and the address keep strangers out.
    Raises OperationFailed when rsync fails on either side; the daemon and its secret are removed in every case.
    """
    secret = secrets.token_urlsafe(32)
    directory = _make_private_directory(source)
    pid = None
    try:
        source.write_file(f"{directory}/secrets", f"{DAEMON_USER}:{secret}\n", mode=0o600)
        config = daemon_config(
            source=copy.source_root,
            address=source_address,
            client_address=target_address,
            port=_PORT,
            directory=directory,
        )
        source.write_file(f"{directory}/rsyncd.conf", config, mode=0o600)
        started = source.run(
            start_daemon_command(f"{directory}/rsyncd.conf", log_path=f"{directory}/output", lifetime_s=_LIFETIME_S)
        )
        if not started.ok:
            raise _failed(copy, f"the sender did not start: {started.last_words()}", copy.source_host)
        pid = int(started.stdout)
        _fetch(copy, target, source_address, secret, progress)
    finally:
        # Without contact the daemon ends by its own time limit.
        with suppress(HostError):
            source.run(stop_daemon_command(pid or 0, directory) if pid else shell(f"rm -rf {quoted(directory)}"))
    _put_in_place(copy, target)


def _make_private_directory(source: Transport) -> str:
    made = source.run(
        shell('umask 077; mkdir -p "$HOME/.cache/sparkctl" && mktemp -d "$HOME/.cache/sparkctl/copy.XXXXXX"')
    )
    if not made.ok:
        raise OperationFailed(
            f"cannot make a folder for the copy: {made.last_words()}",
            where=source.host,
            remedy=f"check free space and rights of ~/.cache on {source.host}",
        )
    return made.stdout.strip()


def _fetch(copy: ModelCopy, target: Transport, address: str, secret: str, progress: Progress) -> None:
    partial = copy.target_root + _PARTIAL_SUFFIX

    def on_line(line: str) -> None:
        step = parse_progress(line)
        if step is not None:
            left_s = (copy.size_bytes - step.done_bytes) / step.bytes_per_s if step.bytes_per_s else 0.0
            detail = f"{step.bytes_per_s / 1e6:.0f} MB/s, {max(0.0, left_s):.0f} s left"
            progress.update(detail, done=min(step.done_bytes, copy.size_bytes), total=copy.size_bytes)

    command = fetch_command(address=address, port=_PORT, target=partial, secret=secret, timeout_s=float(_LIFETIME_S))
    result = target.stream(command, on_line)
    if not result.ok:
        raise _failed(
            copy,
            f"{parse_complaint(result.stderr) or result.last_words()}; what has come stays in {partial}",
            copy.target_host,
        )


def _put_in_place(copy: ModelCopy, target: Transport) -> None:
    old, new = quoted(copy.target_root + _PARTIAL_SUFFIX), quoted(copy.target_root)
    moved = target.run(shell(f"sync -f {old}; [ ! -e {new} ] && mv -T {old} {new}", timeout_s=300.0))
    if not moved.ok:
        raise _failed(copy, f"cannot rename the copy to {copy.target_root}: {moved.last_words()}", copy.target_host)


def _failed(copy: ModelCopy, message: str, host: str) -> OperationFailed:
    return OperationFailed(
        f"copying the model from {copy.source_host} to {copy.target_host} failed: {message}",
        where=host,
        remedy="`sparkctl link test` proves the rail; then run it again, the copy continues where it stopped",
    )
