"""Looking at host keys and pinning them: the one moment at which a person decides whom to trust."""

import contextlib
import socket
from dataclasses import dataclass
from enum import StrEnum

import paramiko
from paramiko.hostkeys import HostKeyEntry

from sparkctl.inventory.model import Host
from sparkctl.transport.ssh import CONNECT_TIMEOUT_S, known_entries, known_hosts_path, parse_known_line, translated


class Trust(StrEnum):
    """How an offered key compares with the pinned one."""

    NEW = "new"
    PINNED = "pinned"
    CHANGED = "changed"


@dataclass(frozen=True)
class OfferedKey:
    """The key a host offers now.

    fingerprint: as `ssh-keygen -lf` prints it, `SHA256:…`. pinned_fingerprint: of the key in known_hosts, or None.
    line: the known_hosts line that pins this key.
    """

    host: Host
    key_type: str
    fingerprint: str
    trust: Trust
    pinned_fingerprint: str | None
    line: str


def offered_key(host: Host) -> OfferedKey:
    """Ask a host for its key without logging in. Raises HostUnreachable."""
    try:
        sock = socket.create_connection((host.address, host.port), timeout=CONNECT_TIMEOUT_S)
        with contextlib.closing(paramiko.Transport(sock)) as connection:
            connection.start_client(timeout=CONNECT_TIMEOUT_S)
            key = connection.get_remote_server_key()
    except (OSError, EOFError, paramiko.SSHException) as error:
        raise translated(error, host) from error
    name = _entry_name(host)
    pinned = _pinned(host, name)
    if pinned is None:
        trust = Trust.NEW
    elif pinned.get(key.get_name()) == key:
        trust = Trust.PINNED
    else:
        trust = Trust.CHANGED
    return OfferedKey(
        host=host,
        key_type=key.get_name(),
        fingerprint=key.fingerprint,
        trust=trust,
        pinned_fingerprint=next((known.fingerprint for known in pinned.values()), None) if pinned is not None else None,
        line=f"{name} {key.get_name()} {key.get_base64()}",
    )


def pin_key(offered: OfferedKey) -> None:
    """Write the key into the host's known_hosts file, in place of any other key of that host; other lines stay."""
    path, name = known_hosts_path(offered.host), _entry_name(offered.host)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    lines = path.read_text().splitlines() if path.exists() else []
    kept = [line for line in lines if not _names_host(parse_known_line(line), name)]
    temporary = path.with_name(f".{path.name}.sparkctl")
    temporary.touch(mode=0o600)
    temporary.write_text("\n".join([*kept, offered.line, ""]))
    temporary.replace(path)


def _entry_name(host: Host) -> str:
    return host.address if host.port == 22 else f"[{host.address}]:{host.port}"


def _pinned(host: Host, name: str) -> dict[str, paramiko.PKey] | None:
    found = {
        entry.key.get_name(): entry.key for entry in known_entries(known_hosts_path(host)) if _names_host(entry, name)
    }
    return found or None


def _names_host(entry: HostKeyEntry | None, name: str) -> bool:
    # Names may be hashed: |1|salt|hash.
    return entry is not None and any(
        known == name or (known.startswith("|1|") and paramiko.HostKeys.hash_host(name, known) == known)
        for known in entry.hostnames
    )
