"""`sparkctl up` without a model: discover, link, prove; what stops it; and Ctrl-C at each stage."""

import signal
import subprocess
import time
from pathlib import Path

import pytest

from sparkctl.inventory.load import load_cluster
from sparkctl.transport.bundle import shell
from sparkctl.transport.ssh import SshTransport
from tests.lab.conftest import PROGRAM, SharedLab

pytestmark = pytest.mark.lab

NETPLAN = "/etc/netplan/60-sparkctl-links.yaml"


@pytest.fixture
def nodes(lab: SharedLab):
    """A transport per node, to look at what is really there and to break things."""
    opened = {host.name: SshTransport(host) for host in load_cluster(lab.inventory).hosts}
    yield opened
    for transport in opened.values():
        transport.close()


@pytest.fixture
def links_down(lab: SharedLab):
    """Nothing of sparkctl on the nodes, before and after."""
    assert lab.sparkctl("down", "--yes").exit_code == 0
    yield
    assert lab.sparkctl("down", "--yes").exit_code == 0


def on_every_node(nodes, script: str) -> set[str]:
    return {transport.run(shell(script, sudo=True)).stdout.strip() for transport in nodes.values()}


def fault(lab: SharedLab, *words: str) -> None:
    subprocess.run([*PROGRAM, "lab", "fault", *words, "--name", lab.name], check=True, capture_output=True)


@pytest.mark.usefixtures("links_down")
def test_up_twice_and_down_twice(lab, nodes):
    checked = lab.sparkctl("up", "--check")
    assert (checked.exit_code, checked.envelope["status"]) == (10, "changes")
    assert on_every_node(nodes, f"ls {NETPLAN} 2>&1 | grep -c 'No such file'") == {"1"}

    first = lab.sparkctl("up", "--yes")
    assert (first.exit_code, first.codes) == (0, [])
    assert [stage["stage"] for stage in first.envelope["data"]["stages"]] == ["discover", "link", "prove"]
    assert {verdict["verdict"] for verdict in first.envelope["data"]["bandwidth"]} == {"pass"}
    written = on_every_node(nodes, f"stat -c '%a %U %Y %i' {NETPLAN}")
    assert all(entry.startswith("600 root") for entry in written)

    second = subprocess.run(
        [*PROGRAM, "up", "-i", str(lab.inventory), "--yes"],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert second.returncode == 0, second.stderr
    for part in ("NVIDIA GB10", "cabling: direct", "layout direct", "no changes", "all 2 rails", "PASS", "simulated"):
        assert part in second.stdout
    assert second.stdout.count("stages: ") == 1
    assert on_every_node(nodes, f"stat -c '%a %U %Y %i' {NETPLAN}") == written
    assert lab.sparkctl("up", "--check").exit_code == 0

    assert lab.sparkctl("down", "--check").exit_code == 10
    assert lab.sparkctl("down", "--yes").exit_code == 0
    assert on_every_node(nodes, f"ls {NETPLAN} 2>&1 | grep -c 'No such file'") == {"1"}
    assert lab.sparkctl("down", "--check").exit_code == 0
    assert lab.sparkctl("down", "--yes").exit_code == 0


@pytest.mark.usefixtures("links_down")
class TestWhatStopsIt:
    def test_no_cable(self, lab, nodes):
        for rail in ("enp1s0f0np0", "enP2p1s0f0np0"):
            fault(lab, "cut", "spark-1", "--rail", rail)
        try:
            stopped = lab.sparkctl("up", "--yes")
        finally:
            for rail in ("enp1s0f0np0", "enP2p1s0f0np0"):
                fault(lab, "mend", "spark-1", "--rail", rail)

        assert (stopped.exit_code, stopped.envelope["data"]["stopped_at"]) == (1, "discover")
        assert "link.no-cable" in stopped.codes
        assert on_every_node(nodes, f"ls {NETPLAN} 2>&1 | grep -c 'No such file'") == {"1"}

    def test_only_one_twin_up(self, lab, nodes):
        fault(lab, "cut", "spark-1", "--rail", "enP2p1s0f0np0")
        try:
            stopped = lab.sparkctl("up", "--yes")
        finally:
            fault(lab, "mend", "spark-1", "--rail", "enP2p1s0f0np0")

        assert stopped.exit_code == 1
        assert "link.one-twin" in stopped.codes
        assert on_every_node(nodes, f"ls {NETPLAN} 2>&1 | grep -c 'No such file'") == {"1"}

    def test_a_host_that_is_no_spark(self, lab, nodes):
        path = nodes["spark-2"].run(shell("command -v nvidia-smi")).stdout.strip()
        nodes["spark-2"].run(shell(f"mv {path} {path}.away", sudo=True))
        try:
            stopped = lab.sparkctl("up", "--yes")
            discovered = lab.sparkctl("discover")
        finally:
            nodes["spark-2"].run(shell(f"mv {path}.away {path}", sudo=True))

        assert (stopped.exit_code, stopped.envelope["data"]["stopped_at"]) == (1, "discover")
        assert "host.not-spark" in stopped.codes
        assert "host.not-spark" in [finding["code"] for finding in discovered.envelope["findings"]]
        assert on_every_node(nodes, f"ls {NETPLAN} 2>&1 | grep -c 'No such file'") == {"1"}

    def test_an_unreachable_host(self, lab, tmp_path):
        address = load_cluster(lab.inventory).hosts[1].address
        nobody = address.rsplit(".", 1)[0] + ".250"  # inside the lab's own network
        inventory = lab.with_inventory(tmp_path / "c.yaml", **{f"address: {address}": f"address: {nobody}"})

        stopped = lab.sparkctl("up", "--yes", inventory=inventory)

        assert (stopped.exit_code, stopped.error["type"]) == (3, "HostUnreachable")
        assert nobody in stopped.error["where"]

    def test_no_docker_permission_stops_only_serving(self, lab, nodes):
        nodes["spark-2"].run(shell("gpasswd -d nvidia docker", sudo=True))
        try:
            stopped = lab.sparkctl("up", "no-such-model", "--yes")
        finally:
            nodes["spark-2"].run(shell("gpasswd -a nvidia docker", sudo=True))

        assert stopped.exit_code == 1
        assert "docker.not-permitted" in stopped.codes


@pytest.mark.usefixtures("links_down")
@pytest.mark.parametrize("seen", ["/sys/class/net", "guard-", "iperf3"])
def test_ctrl_c_leaves_a_named_state_and_the_next_run_goes_through(lab, nodes, tmp_path: Path, seen: str):
    words = tmp_path / "stderr"
    with words.open("w") as stderr:
        process = subprocess.Popen(
            [*PROGRAM, "up", "-i", str(lab.inventory), "--yes", "--json", "-v", "--guard-seconds", "30"],
            stdout=subprocess.PIPE,
            stderr=stderr,
            stdin=subprocess.DEVNULL,
            text=True,
        )
        deadline = time.monotonic() + 60
        while seen not in words.read_text():
            assert time.monotonic() < deadline, words.read_text()
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        printed, _ = process.communicate(timeout=120)

    assert process.returncode == 130, words.read_text()
    assert '"type": "Interrupted"' in printed
    assert on_every_node(nodes, "systemctl is-active sparkctl-link-revert.timer") == {"inactive"}
    assert lab.sparkctl("link", "up", "--yes").exit_code == 0
