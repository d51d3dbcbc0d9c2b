import stat
from pathlib import Path

import paramiko
import pytest
from paramiko.ssh_exception import NoValidConnectionsError

from sparkctl.errors import AccessRefused, HostKeyRefused, HostUnreachable
from sparkctl.inventory.model import Host
from sparkctl.transport.hostkeys import OfferedKey, Trust, pin_key
from sparkctl.transport.ssh import known_entries, translated

KEY, OTHER = paramiko.ECDSAKey.generate(), paramiko.ECDSAKey.generate()
HOST = Host("spark-a", "192.0.2.1", user="nvidia")


def line(name: str, key: paramiko.PKey = KEY) -> str:
    return f"{name} {key.get_name()} {key.get_base64()}"


def offered(path: Path, name: str = "192.0.2.1") -> OfferedKey:
    host = Host("spark-a", "192.0.2.1", known_hosts=str(path))
    return OfferedKey(host, KEY.get_name(), KEY.fingerprint, Trust.NEW, None, line(name))


def test_lines_that_are_not_understood_are_skipped_not_fatal(tmp_path: Path):
    file = tmp_path / "known_hosts"
    file.write_text(f"# mine\n\nx ssh-ed25519 AAAA\nx ssh-new-kind QUJD\n@revoked {line('y')}\n{line('z')}\n")

    assert [entry.hostnames for entry in known_entries(file)] == [["z"]]
    assert known_entries(tmp_path / "absent") == ()


def test_pinning_replaces_that_hosts_key_and_nothing_else(tmp_path: Path):
    file = tmp_path / "deep" / "known_hosts"
    file.parent.mkdir()
    hashed = paramiko.HostKeys.hash_host("192.0.2.1")
    kept = ["# mine", line("192.0.2.2", OTHER), "x ssh-ed25519 AAAA"]
    file.write_text("\n".join([*kept, line("192.0.2.1", OTHER), line(hashed, OTHER), ""]))

    pin_key(offered(file))

    assert file.read_text().splitlines() == [*kept, line("192.0.2.1")]


def test_a_new_file_is_private(tmp_path: Path):
    file = tmp_path / "new" / "known_hosts"

    pin_key(offered(file))

    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (paramiko.BadHostKeyException("h", KEY, OTHER), HostKeyRefused, "has changed"),
        (paramiko.SSHException("Server 'h' not found in known_hosts"), HostKeyRefused, "not pinned yet"),
        (paramiko.AuthenticationException("Authentication failed."), AccessRefused, "no key of ours"),
        (paramiko.PasswordRequiredException("Private key file is encrypted"), AccessRefused, "passphrase"),
        (FileNotFoundError(2, "No such file", "/k"), AccessRefused, "cannot read the key"),
        (ConnectionRefusedError(111, "Connection refused"), HostUnreachable, "Connection refused"),
        (
            NoValidConnectionsError({("192.0.2.1", 22): OSError(113, "No route to host")}),
            HostUnreachable,
            "No route to host",
        ),
        (TimeoutError(), HostUnreachable, "no answer"),
        (EOFError(), HostUnreachable, "EOFError"),
    ],
)
def test_every_failure_to_connect_has_place_reason_and_remedy(error: Exception, kind: type, words: str):
    told = translated(error, HOST)

    assert isinstance(told, kind)
    assert words in told.message
    assert told.where == "spark-a (192.0.2.1:22)"
    assert told.remedy
    assert told.exit_code == 3
