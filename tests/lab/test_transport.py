"""The contract of a Transport, over real SSH to a lab node, and how hosts are trusted."""

import stat
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest

from sparkctl.errors import AccessRefused, HostKeyRefused, HostUnreachable, OperationFailed
from sparkctl.inventory.load import load_cluster
from sparkctl.inventory.model import Host
from sparkctl.transport.bundle import shell
from sparkctl.transport.command import Command
from sparkctl.transport.ssh import SshTransport

pytestmark = pytest.mark.lab


@pytest.fixture(scope="module")
def host(lab) -> Host:
    return load_cluster(lab.inventory).hosts[0]


@pytest.fixture(scope="module")
def transport(host):
    opened = SshTransport(host)
    yield opened
    opened.close()


def test_a_non_zero_exit_is_a_result_with_both_streams(transport):
    result = transport.run(shell("echo out; echo err >&2; exit 3"))

    assert (result.exit_code, result.stdout, result.stderr) == (3, "out\n", "err\n")


def test_arguments_arrive_as_they_are(transport):
    odd = "a b; echo $HOME 'x' \"y\" \\ é *"

    assert transport.run(Command(("printf", "%s", odd))).stdout == odd


def test_a_missing_program_is_a_result(transport):
    assert transport.run(Command(("no-such-program",))).exit_code == 127


def test_standard_input_arrives_whole(transport):
    text = "line\n" * 100_000

    assert transport.run(Command(("wc", "-c"), stdin=text)).stdout.strip() == str(len(text))


def test_much_output_on_both_streams_does_not_block(transport):
    result = transport.run(shell("head -c 3000000 /dev/zero | tr '\\0' e >&2; head -c 3000000 /dev/zero | tr '\\0' o"))

    assert (len(result.stdout), len(result.stderr)) == (3_000_000, 3_000_000)


def test_after_its_time_is_up_nothing_is_left_running_on_the_host(transport):
    result = transport.run(Command(("sleep", "4321"), timeout_s=1))

    assert result.timed_out
    assert transport.run(Command(("pgrep", "-f", "^sleep 4321"))).exit_code == 1


def test_lines_are_streamed_as_they_come(transport):
    arrived: list[tuple[str, float]] = []

    result = transport.stream(
        shell("echo one; sleep 0.5; echo two; exit 4"), lambda line: arrived.append((line, time.monotonic()))
    )

    assert [line for line, _ in arrived] == ["one", "two"]
    assert arrived[1][1] - arrived[0][1] > 0.3
    assert result.exit_code == 4


def test_a_file_is_written_atomically_with_its_mode_and_owner(transport):
    text = "secret 'ü' $HOME\n"
    transport.write_file("/etc/sparkctl-test", text, mode=0o600, sudo=True)
    transport.write_file("/etc/sparkctl-test", text, mode=0o600, sudo=True)

    seen = transport.run(shell("stat -c '%a %U' /etc/sparkctl-test; cat /etc/sparkctl-test; ls -a /etc", sudo=True))
    transport.run(Command(("rm", "/etc/sparkctl-test"), sudo=True))

    assert seen.stdout.startswith(f"600 root\n{text}")
    assert ".sparkctl." not in seen.stdout


def test_a_file_that_cannot_be_written_leaves_the_former_untouched(transport):
    with pytest.raises(OperationFailed, match="the former file is untouched"):
        transport.write_file("/etc/hostname", "x", mode=0o644)

    assert transport.run(Command(("cat", "/etc/hostname"))).stdout != "x"


def test_many_threads_share_one_connection(host):
    opened = SshTransport(host)
    opened.run(Command(("true",)))
    first = opened._connection
    opened.run(Command(("true",)))
    assert opened._connection is first
    opened.close()
    assert opened.run(Command(("echo", "again"))).stdout == "again\n"
    opened.close()


def test_an_unknown_key_is_refused_with_the_command_to_type(host, tmp_path):
    stranger = SshTransport(replace(host, known_hosts=str(tmp_path / "empty")))

    with pytest.raises(HostKeyRefused, match="not pinned yet") as caught:
        stranger.run(Command(("true",)))
    assert f"sparkctl hosts trust --host {host.name}" in caught.value.remedy
    assert not (tmp_path / "empty").exists()


def test_a_changed_key_is_refused_and_both_fingerprints_are_shown(host, tmp_path):
    pinned = tmp_path / "known_hosts"
    pinned.write_text(f"{host.address} {_fresh_key(tmp_path)}\n")

    with pytest.raises(HostKeyRefused, match=r"has changed: pinned SHA256:\S+, offered SHA256:") as caught:
        SshTransport(replace(host, known_hosts=str(pinned))).run(Command(("true",)))
    assert "--replace" in caught.value.remedy


def test_a_key_that_is_not_accepted_names_the_remedy(host, tmp_path):
    _fresh_key(tmp_path)
    refused = SshTransport(replace(host, key=str(tmp_path / "key")))

    with pytest.raises(AccessRefused, match="no key of ours is accepted for user") as caught:
        refused.run(Command(("true",)))
    assert caught.value.remedy.startswith("ssh-copy-id")


def test_a_missing_key_file_is_named(host, tmp_path):
    with pytest.raises(AccessRefused, match="cannot read the key"):
        SshTransport(replace(host, key=str(tmp_path / "gone"))).run(Command(("true",)))


def test_a_closed_port_is_unreachable(host):
    with pytest.raises(HostUnreachable, match="cannot connect"):
        SshTransport(replace(host, port=9)).run(Command(("true",)))


def test_sudo_that_asks_for_a_password_is_an_error(transport):
    transport.run(shell("echo 'nobody ALL=(ALL) ALL' >/etc/sudoers.d/zz-test; true", sudo=True))
    denied = transport.run(shell("sudo -n -u nobody sudo -n true"))
    transport.run(Command(("rm", "/etc/sudoers.d/zz-test"), sudo=True))

    # What sudo says then is what SshTransport looks for.
    assert "password is required" in denied.stderr


def _fresh_key(folder: Path) -> str:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / "key")], check=True)
    kind, key, *_ = (folder / "key.pub").read_text().split()
    return f"{kind} {key}"


class TestHostsTrust:
    def test_shows_fingerprints_then_pins_them_and_the_second_run_changes_nothing(self, lab, tmp_path):
        known_hosts = tmp_path / "pins" / "known_hosts"
        original = load_cluster(lab.inventory).hosts[0].known_hosts
        inventory = lab.with_inventory(tmp_path / "c.yaml", **{str(original): str(known_hosts)})

        unknown = lab.sparkctl("link", "status", inventory=inventory)
        assert (unknown.exit_code, unknown.error["type"]) == (3, "HostKeyRefused")

        looked = lab.sparkctl("hosts", "trust", "--check", inventory=inventory)
        assert looked.exit_code == 10
        assert {host["trust"] for host in looked.envelope["data"]["hosts"]} == {"new"}
        assert not known_hosts.exists()

        assert lab.sparkctl("hosts", "trust", inventory=inventory).exit_code == 2  # nobody to ask

        assert lab.sparkctl("hosts", "trust", "--yes", inventory=inventory).exit_code == 0
        assert stat.S_IMODE(known_hosts.stat().st_mode) == 0o600
        pinned = known_hosts.read_text()
        again = lab.sparkctl("hosts", "trust", "--yes", inventory=inventory)
        assert {host["trust"] for host in again.envelope["data"]["hosts"]} == {"pinned"}
        assert known_hosts.read_text() == pinned

    def test_a_changed_key_needs_an_explicit_word(self, lab, tmp_path):
        host = load_cluster(lab.inventory).hosts[0]
        known_hosts = tmp_path / "known_hosts"
        wrong = f"{host.address} {_fresh_key(tmp_path)}\n"
        known_hosts.write_text("# mine\nother.example ssh-ed25519 AAAA\n" + wrong)
        inventory = lab.with_inventory(tmp_path / "c.yaml", **{str(host.known_hosts): str(known_hosts)})
        words = ("hosts", "trust", "--host", host.name, "--yes")

        refused = lab.sparkctl(*words, inventory=inventory)
        assert (refused.exit_code, refused.error["type"]) == (3, "HostKeyRefused")
        assert wrong in known_hosts.read_text()

        assert lab.sparkctl(*words, "--replace", inventory=inventory).exit_code == 0
        assert wrong not in known_hosts.read_text()
        assert known_hosts.read_text().startswith("# mine\nother.example ssh-ed25519 AAAA\n")
