"""The wire: one SSH connection per host, opened when first needed and kept for the whole command.

fabric brings the user's `~/.ssh/config` and jump hosts; its habit of accepting unknown host keys is replaced by a
strict policy. Exceptions of fabric and paramiko are translated here, once.
"""

import contextlib
import logging
import shlex
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import fabric
import paramiko
from paramiko.hostkeys import HostKeyEntry, InvalidHostKey
from paramiko.ssh_exception import NoValidConnectionsError

from sparkctl.errors import AccessRefused, HostError, HostKeyRefused, HostUnreachable, OperationFailed
from sparkctl.inventory.model import Host
from sparkctl.transport.command import Command, CommandResult

CONNECT_TIMEOUT_S = 10
# A host that acknowledges nothing for this long is gone. Shorter than the 20 s a `netplan apply` may need to settle
# would be wrong; that blip is about one second (FujitsuPolycom/sparkring#168).
_SILENCE_TIMEOUT_S = 20
_KEEPALIVE_S = 5
# How long past its own time limit a command may take to report before the host counts as lost.
_GRACE_S = 15.0
_SUDO_REFUSALS = ("password is required", "not in the sudoers", "may not run sudo", "not allowed to execute")

# paramiko logs the traceback of a failure that is about to be raised, and is translated below.
logging.getLogger("paramiko").addHandler(logging.NullHandler())
logging.getLogger("paramiko").propagate = False

Observer = Callable[[str, Command], None]


class SshTransport:
    """A Transport over SSH with strict host keys.

    observer: called with host name and command before each command runs (the `-v` option).
    """

    def __init__(self, host: Host, observer: Observer | None = None) -> None:
        self._host = host
        self._observer = observer
        self._connection: fabric.Connection | None = None
        self._lock = threading.Lock()

    @property
    def host(self) -> str:
        return self._host.name

    def run(self, command: Command) -> CommandResult:
        """See Transport."""
        chunks: list[str] = []
        return self._execute(command, chunks.append, by_line=False, collected=chunks)

    def stream(self, command: Command, on_line: Callable[[str], None]) -> CommandResult:
        """See Transport; the lines are handed over, not kept in the result."""
        return self._execute(command, on_line, by_line=True, collected=[])

    def write_file(self, path: str, content: str, *, mode: int, sudo: bool = False) -> None:
        """See Transport."""
        # The temporary file is hidden and in the same folder, so that the rename is atomic and no program that reads
        # the folder by file name ending (netplan) takes half a file.
        script = (
            'set -e; umask 077; d=$(dirname "$1"); t=$(mktemp "$d/.sparkctl.XXXXXX"); trap \'rm -f "$t"\' EXIT; '
            'cat >"$t"; chmod "$2" "$t"; sync "$t"; mv -f "$t" "$1"; trap - EXIT'
        )
        argv = ("sh", "-c", script, "write_file", path, f"{mode:04o}")
        result = self.run(Command(argv, sudo=sudo, stdin=content))
        if not result.ok:
            raise OperationFailed(
                f"cannot write {path}: {result.last_words()}; the former file is untouched",
                where=self.host,
                remedy=f"check free space and rights on {self.host}: ssh {self._host.address} ls -ld {path}",
            )

    def close(self) -> None:
        """See Transport."""
        with self._lock:
            connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _execute(
        self, command: Command, emit: Callable[[str], None], *, by_line: bool, collected: list[str]
    ) -> CommandResult:
        if self._observer is not None:
            self._observer(self.host, command)
        connection = self._connected()
        try:
            with contextlib.closing(connection.transport.open_session(timeout=CONNECT_TIMEOUT_S)) as channel:
                channel.settimeout(command.timeout_s + _GRACE_S)
                channel.exec_command(command.shell_line())
                stderr: list[bytes] = []
                drain = threading.Thread(target=_drain, args=(channel, stderr), daemon=True)
                drain.start()
                if command.stdin is not None:
                    channel.sendall(command.stdin.encode())
                channel.shutdown_write()
                for piece in _lines(channel) if by_line else (_whole(channel),):
                    emit(piece)
                exit_code = channel.recv_exit_status()
                drain.join(timeout=_GRACE_S)
        except TimeoutError as error:
            self.close()
            raise self._lost(f"no answer for {command.timeout_s + _GRACE_S:.0f} s to `{command}`") from error
        except (paramiko.SSHException, EOFError, OSError) as error:
            self.close()
            raise self._lost(f"contact lost during `{command}` ({error or type(error).__name__})") from error
        if exit_code == -1:
            self.close()
            raise self._lost(f"contact lost during `{command}`")
        text = b"".join(stderr).decode("utf-8", "surrogateescape")
        if command.sudo and text.startswith("sudo:") and any(word in text for word in _SUDO_REFUSALS):
            raise AccessRefused(
                f"sudo asks for a password or refuses `{shlex.join(command.argv[:2])}`",
                where=self.host,
                remedy=f"on {self.host}, let this user use sudo without a password: "
                'echo "$USER ALL=(ALL) NOPASSWD:ALL" | sudo tee /etc/sudoers.d/sparkctl',
            )
        return CommandResult(self.host, command, exit_code, "".join(collected), text)

    def _connected(self) -> fabric.Connection:
        with self._lock:
            if self._connection is None or not self._connection.is_connected:
                self._connection = self._open()
            return self._connection

    def _open(self) -> fabric.Connection:
        host = self._host
        options: dict[str, object] = {"allow_agent": host.key is None, "look_for_keys": host.key is None}
        if host.key is not None:
            options["key_filename"] = str(Path(host.key).expanduser())
        connection = fabric.Connection(
            host.address,
            user=host.user,
            port=host.port,
            connect_timeout=CONNECT_TIMEOUT_S,
            connect_kwargs=options | {"banner_timeout": CONNECT_TIMEOUT_S, "auth_timeout": CONNECT_TIMEOUT_S},
        )
        # fabric has just told the client to accept any host; take that back.
        connection.client.set_missing_host_key_policy(paramiko.RejectPolicy())
        pinned = connection.client.get_host_keys()
        for entry in known_entries(known_hosts_path(host)):
            for name in entry.hostnames:
                pinned.add(name, entry.key.get_name(), entry.key)
        try:
            connection.open()
        except (paramiko.SSHException, OSError, EOFError) as error:
            connection.close()
            raise translated(error, host) from error
        connection.transport.set_keepalive(_KEEPALIVE_S)
        sock = connection.transport.sock
        if isinstance(sock, socket.socket) and hasattr(socket, "TCP_USER_TIMEOUT"):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _SILENCE_TIMEOUT_S * 1000)
        return connection

    def _lost(self, message: str) -> HostUnreachable:
        return HostUnreachable(
            message,
            where=self.host,
            remedy=f"check that {self.host} is up: ssh -p {self._host.port} {_target(self._host)}",
        )


def known_hosts_path(host: Host) -> Path:
    """The file in which this host's key is pinned: the inventory's, else the user's own `~/.ssh/known_hosts`."""
    return Path(host.known_hosts or "~/.ssh/known_hosts").expanduser()


def known_entries(path: Path) -> tuple[HostKeyEntry, ...]:
    """The entries of a known_hosts file in order, none when it is absent; lines that are not understood are skipped.

    paramiko's own reader gives up on the first key type that it does not know; OpenSSH skips it, and so do we.
    """
    if not path.exists():
        return ()
    return tuple(entry for line in path.read_text().splitlines() if (entry := parse_known_line(line)) is not None)


def parse_known_line(line: str) -> HostKeyEntry | None:
    """One line of a known_hosts file; None for comments, blank lines and what is not understood."""
    if not line.strip() or line.lstrip().startswith(("#", "@")):
        return None
    try:
        return HostKeyEntry.from_line(line)
    except (InvalidHostKey, paramiko.SSHException):
        return None


def translated(error: Exception, host: Host) -> HostError:
    """What a failure to connect means for a person."""
    where, trust = f"{host.name} ({host.address}:{host.port})", f"sparkctl hosts trust --host {host.name}"
    if isinstance(error, paramiko.BadHostKeyException):
        found, pinned = error.key.fingerprint, error.expected_key.fingerprint
        return HostKeyRefused(
            f"the host key has changed: pinned {pinned}, offered {found}. "
            "The machine was reinstalled, or somebody is in between",
            where=where,
            remedy=f"compare the fingerprint on the machine itself, then `{trust} --replace`",
        )
    if isinstance(error, paramiko.ssh_exception.PasswordRequiredException):
        return AccessRefused(
            "the private key needs a passphrase", where=where, remedy=f"ssh-add {host.key or '~/.ssh/id_ed25519'}"
        )
    if isinstance(error, paramiko.AuthenticationException):
        return AccessRefused(
            f"no key of ours is accepted for user {host.user or 'of this session'}",
            where=where,
            remedy=f"ssh-copy-id -p {host.port} {_target(host)}",
        )
    if isinstance(error, paramiko.SSHException) and "not found in known_hosts" in str(error):
        return HostKeyRefused("the host key is not pinned yet", where=where, remedy=f"`{trust}`")
    if isinstance(error, FileNotFoundError) or (isinstance(error, paramiko.SSHException) and "key file" in str(error)):
        return AccessRefused(f"cannot read the key: {error}", where=where, remedy="correct `key:` in the inventory")
    if isinstance(error, NoValidConnectionsError):
        # One attempt per address of the name; the first tells enough.
        error = next(iter(error.errors.values()))
    reason = "no answer" if isinstance(error, TimeoutError) else str(error) or type(error).__name__
    return HostUnreachable(
        f"cannot connect: {reason}",
        where=where,
        remedy=f"check power, network and sshd, then try: ssh -p {host.port} {_target(host)}",
    )


def _target(host: Host) -> str:
    return f"{host.user}@{host.address}" if host.user else host.address


def _whole(channel: paramiko.Channel) -> str:
    data = bytearray()
    while part := channel.recv(65536):
        data += part
    return data.decode("utf-8", "surrogateescape")


def _lines(channel: paramiko.Channel) -> Iterator[str]:
    rest = b""
    while part := channel.recv(65536):
        *lines, rest = (rest + part).split(b"\n")
        for line in lines:
            yield line.decode("utf-8", "surrogateescape")
    if rest:
        yield rest.decode("utf-8", "surrogateescape")


def _drain(channel: paramiko.Channel, into: list[bytes]) -> None:
    """Read stderr beside stdout, so that a program that prints much on either cannot block."""
    with contextlib.suppress(OSError):
        while data := channel.recv_stderr(65536):
            into.append(data)
