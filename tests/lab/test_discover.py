"""`sparkctl discover` on virtual Sparks."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import SharedLab

from sparkctl.inventory.load import load_cluster

pytestmark = pytest.mark.lab


def test_both_sparks_and_their_cable(lab: SharedLab):
    run = lab.sparkctl("discover")
    assert (run.exit_code, run.codes) == (0, [])
    hosts, cabling = run.envelope["data"]["hosts"], run.envelope["data"]["cabling"]
    assert [host["gpu"] for host in hosts.values()] == ["NVIDIA GB10", "NVIDIA GB10"]
    assert {host["management_netdev"] for host in hosts.values()} == {"enP7s7"}
    assert all(host["simulated"] for host in hosts.values())
    assert cabling["topology"] == "direct"
    (cable,) = cabling["cables"]
    assert (cable["cage_a"], cable["cage_b"]) == ("p0", "p0")
    assert [rail["pci_domain"] for rail in cable["rails"]] == ["0000", "0002"]
    assert [rail["a"]["netdev"] for rail in cable["rails"]] == ["enp1s0f0np0", "enP2p1s0f0np0"]


def test_netplan_texts_stay_on_the_host(lab: SharedLab):
    hosts = lab.sparkctl("discover").envelope["data"]["hosts"]
    for host in hosts.values():
        assert host["netplan_files"]
        assert all(text.endswith(" bytes") for text in host["netplan_files"].values())


def test_write_never_replaces_a_file_unasked(lab: SharedLab, tmp_path):
    file = tmp_path / "cluster.yaml"
    assert lab.sparkctl("discover", "--write", str(file)).exit_code == 0
    written = file.read_text()
    assert [host.name for host in load_cluster(file).hosts] == [host.name for host in load_cluster(lab.inventory).hosts]
    assert lab.sparkctl("discover", "--write", str(file)).exit_code == 0
    file.write_text(written + "# mine\n")
    refused = lab.sparkctl("discover", "--write", str(file))
    assert (refused.exit_code, refused.error["type"]) == (4, "UnsafeRefused")
    assert "-# mine" in refused.words
    assert file.read_text() == written + "# mine\n"
    assert lab.sparkctl("discover", "--write", str(file), "--yes").exit_code == 0
    assert file.read_text() == written


def test_a_host_named_on_the_command_line_with_an_unknown_key(lab: SharedLab, tmp_path):
    address = load_cluster(lab.inventory).hosts[0].address
    done = discover_as_a_newcomer(tmp_path, f"nvidia@{address}", "--write", "cluster.yaml")
    assert done.returncode == 3
    assert "the host key is not pinned yet" in done.stdout
    assert "not written" in done.stdout
    assert not (tmp_path / "cluster.yaml").exists()


def test_a_newcomer_pins_the_keys_on_the_way_and_gets_an_inventory(lab: SharedLab, tmp_path):
    hosts = load_cluster(lab.inventory).hosts
    (tmp_path / ".ssh").mkdir(mode=0o700)
    shutil.copy(Path(hosts[0].key or ""), tmp_path / ".ssh" / "id_ed25519")
    words = [f"nvidia@{host.address}" for host in hosts]
    done = discover_as_a_newcomer(tmp_path, *words, "--yes", "--write", "cluster.yaml")
    # Without an inventory 200 Gbit/s are expected, which no lab has: degraded, and yet written.
    assert done.returncode == 5, done.stdout + done.stderr
    assert "SHA256:" in done.stdout
    written = load_cluster(tmp_path / "cluster.yaml").hosts
    assert [(host.name, host.address, host.user) for host in written] == [
        (host.name, host.address, "nvidia") for host in hosts
    ]


def test_nobody_named_and_no_inventory_means_listening(lab: SharedLab, tmp_path):
    done = discover_as_a_newcomer(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    # Only counted: nodes of other labs on this machine carry the same names, and the last to answer wins.
    assert done.stdout.count("not readable") >= len(load_cluster(lab.inventory).hosts)


def discover_as_a_newcomer(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run it in an empty home folder, without inventory, known hosts or agent."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SSH_", "SPARKCTL_"))}
    return subprocess.run(
        [sys.executable, "-m", "sparkctl", "discover", *words],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        cwd=home,
        env={**kept, "HOME": str(home)},
    )


def test_a_host_that_is_not_there(lab: SharedLab, tmp_path):
    hosts = load_cluster(lab.inventory).hosts
    inventory = lab.with_inventory(tmp_path / "c.yaml", **{hosts[1].address: hosts[1].address.replace(".12", ".77")})
    run = lab.sparkctl("discover", inventory=inventory)
    assert (run.exit_code, run.envelope["status"]) == (3, "unreachable")
    assert "host.unreachable" in run.codes
    assert list(run.envelope["data"]["hosts"]) == [hosts[0].name]
