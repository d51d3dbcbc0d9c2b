"""`sparkctl link` on virtual Sparks of its own: real netplan, networkd, systemd timers, ping and iperf3."""

import json
import signal
import subprocess
import time
from collections.abc import Iterator

import pytest
from conftest import PROGRAM, Run, SharedLab, start_lab, stop_lab
from pyroute2 import NetNS

from sparkctl.lab.lifecycle import lab_status
from sparkctl.lab.model import PORTS, LabSpec, cables_namespace
from sparkctl.lab.network import set_cable, set_rate
from sparkctl.lab.paths import lab_directory

pytestmark = pytest.mark.lab

NAME = "t-links"
OURS = "/etc/netplan/60-sparkctl-links.yaml"
FIRST, TWIN = PORTS[0], PORTS[1]
# Small enough to wait for, large enough for apply and verification on two busy cores.
GUARD_S = 20
REACHES = "reaches {} ({}) with full packets of 9000 bytes"


class LinkLab:
    """The lab, its nodes' shells and its wires."""

    def __init__(self, shared: SharedLab) -> None:
        self.shared = shared
        status = lab_status(NAME)
        assert status.spec is not None
        self.spec: LabSpec = status.spec
        self._addresses = {node.name: str(node.address) for node in status.nodes}

    def link(self, *words: str) -> Run:
        return self.shared.sparkctl("link", *words)

    def start(self, *words: str) -> subprocess.Popen[str]:
        """`sparkctl link …` in the background."""
        command = [*PROGRAM, "link", *words, "-i", str(self.shared.inventory), "--json"]
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def on(self, node: str, script: str) -> str:
        """Run a shell script as root on a node, past sparkctl's own transport."""
        folder = lab_directory(NAME)
        options = (
            "-i",
            f"{folder}/id_ed25519",
            "-o",
            f"UserKnownHostsFile={folder}/known_hosts",
            "-o",
            "BatchMode=yes",
        )
        command = ["ssh", *options, f"nvidia@{self._addresses[node]}", "sudo", "sh", "-s"]
        done = subprocess.run(command, input=script, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0, f"{script}: {done.stderr}"
        return done.stdout

    def state(self, node: str) -> dict[str, object]:
        """What a link change may touch: all netplan files with mode and bytes, addresses, MTU and flag of the rails."""
        files = self.on(node, 'cd /etc/netplan; for f in *; do stat -c "%n %a %U" "$f"; base64 "$f"; done')
        rows = json.loads(self.on(node, "ip -j -4 address show"))
        rails = {
            row["ifname"]: (row["mtu"], "UP" in row["flags"], [entry["local"] for entry in row["addr_info"]])
            for row in rows
        }
        return {"files": files, "rails": rails}

    def wire_mtu(self, size: int) -> None:
        """What the first rail's wire lets through, at the first node's end: a switch without jumbo frames."""
        with NetNS(cables_namespace(NAME)) as ip:
            (index,) = ip.link_lookup(ifname="w0.0")
            ip.link("set", index=index, mtu=size)

    def wait_until_changed(self, node: str) -> None:
        deadline = time.monotonic() + 30
        while "step=changed" not in self.on(node, "cat /var/lib/sparkctl/links/state 2>/dev/null; :"):
            assert time.monotonic() < deadline
            time.sleep(0.1)

    def wait_until_quiet(self, node: str) -> None:
        """Until no step of a change is running on the node any more."""
        self.on(node, "while pgrep -f sparkctl/links/guard >/dev/null; do sleep 0.2; done")


@pytest.fixture(scope="module")
def running_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LinkLab]:
    inventory = tmp_path_factory.mktemp("links") / "lab.yaml"
    yield LinkLab(start_lab(NAME, inventory))
    stop_lab(NAME)


@pytest.fixture
def links(running_lab: LinkLab) -> Iterator[LinkLab]:
    """A lab whose links nobody has set up yet, and whose wires are sound."""
    yield running_lab
    running_lab.wire_mtu(9978)
    for port in (FIRST, TWIN):
        set_cable(running_lab.spec, "spark-1", port, connected=True)
        set_rate(running_lab.spec, "spark-1", port, running_lab.spec.rail_mbit_per_s)
    for node in ("spark-1", "spark-2"):
        running_lab.on(
            node,
            "systemctl stop sparkctl-link-revert.timer 2>/dev/null; "
            f"rm -rf /var/lib/sparkctl/links /run/sparkctl {OURS} /etc/netplan/40-cx7.yaml; "
            "netplan apply; for d in enp1s0f0np0 enP2p1s0f0np0; do "
            "ip -4 addr flush dev $d; ip link set $d mtu 1500 up; done",
        )


def test_up_twice_then_down_leaves_every_byte_as_it_was(links):
    links.on("spark-1", f"printf '# mine, without a line end\\nnetwork: {{version: 2}}' >{OURS}; chmod 640 {OURS}")
    before = {node: links.state(node) for node in ("spark-1", "spark-2")}

    first = links.link("up", "--yes")
    between = links.state("spark-2")
    second = links.link("up", "--yes")
    check = links.link("up", "--check")
    down = links.link("down", "--yes")
    again = links.link("down", "--yes")

    assert [(first.exit_code, first.codes), (second.exit_code, second.codes)] == [(0, []), (0, [])]
    assert [finding["message"] for finding in second.envelope["findings"]] == [
        REACHES.format("spark-2", "10.177.0.2"),
        REACHES.format("spark-1", "10.177.0.1"),
        REACHES.format("spark-2", "10.177.0.6"),
        REACHES.format("spark-1", "10.177.0.5"),
    ]
    assert first.envelope["data"]["changes"] != []
    assert second.envelope["data"]["changes"] == []
    assert (check.exit_code, check.envelope["data"]["changes"]) == (0, [])
    assert between["rails"]["enP2p1s0f0np0"] == (9000, True, ["10.177.0.6"])
    assert "60-sparkctl-links.yaml 600 root" in between["files"]
    assert down.exit_code == 0
    assert {node: links.state(node) for node in before} == before
    assert (again.exit_code, again.envelope["data"]["changes"]) == (0, [])


def test_check_changes_nothing_and_says_that_something_would(links):
    before = links.state("spark-1")

    check = links.link("up", "--check")

    assert check.exit_code == 10
    assert {change["host"] for change in check.envelope["data"]["changes"]} == {"spark-1", "spark-2"}
    assert links.state("spark-1") == before


def test_a_change_that_does_not_verify_is_taken_back_on_all_nodes(links):
    before = {node: links.state(node) for node in ("spark-1", "spark-2")}
    links.wire_mtu(1500)

    up = links.link("up", "--yes", "--guard-seconds", str(GUARD_S))

    assert up.exit_code == 1
    assert set(up.codes) == {"link.jumbo"}
    assert [f["subject"] for f in up.envelope["findings"] if f["code"] == "link.reverted"] == ["spark-1", "spark-2"]
    assert {node: links.state(node) for node in before} == before
    assert links.link("down", "--yes").envelope["data"]["changes"] == []


def test_a_node_whose_controller_dies_reverts_by_itself_and_keeps_others_away_until_then(links):
    before = {node: links.state(node) for node in ("spark-1", "spark-2")}
    links.wire_mtu(1500)
    controller = links.start("up", "--yes", "--guard-seconds", str(GUARD_S))
    links.wait_until_changed("spark-1")
    started = time.monotonic()

    second = links.link("up", "--yes")
    controller.kill()
    controller.communicate()
    third = links.link("up", "--yes")

    for refused in (second, third):
        assert refused.exit_code == 4
        assert f"(pid {controller.pid}) has been changing the links since 20" in refused.error["message"]
    while any(links.state(node) != state for node, state in before.items()):
        assert time.monotonic() - started < GUARD_S + 15
        time.sleep(0.5)
    status = links.link("status")
    assert [f["code"] for f in status.envelope["findings"]] == [
        "link.reverted-by-node",
        "link.reverted-by-node",
        "link.not-set-up",
    ]
    links.wire_mtu(9978)
    assert links.link("up", "--yes").exit_code == 0


def test_ctrl_c_takes_the_change_back_at_once(links):
    before = {node: links.state(node) for node in ("spark-1", "spark-2")}
    links.wire_mtu(1500)
    controller = links.start("up", "--yes")
    links.wait_until_changed("spark-1")

    controller.send_signal(signal.SIGINT)
    stdout, _ = controller.communicate(timeout=60)

    assert controller.returncode == 130
    (error,) = json.loads(stdout)["errors"]
    assert error["message"] == "interrupted; spark-1 is as it was before; spark-2 is as it was before"
    assert {node: links.state(node) for node in before} == before


def test_a_restart_in_the_middle_ends_in_the_old_state(links):
    before = links.state("spark-1")
    links.wire_mtu(1500)
    controller = links.start("up", "--yes")
    links.wait_until_changed("spark-1")
    controller.kill()
    controller.communicate()

    # What a restart does to the guard: the transient timer and /run are gone, the unit on disk is started.
    for node in ("spark-1", "spark-2"):
        links.wait_until_quiet(node)
        links.on(node, "systemctl stop sparkctl-link-revert.timer; rm -rf /run/sparkctl")
    links.on("spark-1", "systemctl daemon-reload; systemctl start sparkctl-link-revert-at-boot.service")
    status = links.link("status")
    links.wire_mtu(9978)
    up = links.link("up", "--yes")

    assert links.state("spark-1") != before
    assert [(f["code"], f["subject"]) for f in status.envelope["findings"][:2]] == [
        ("link.reverted-by-node", "spark-1"),
        ("link.interrupted", "spark-2"),
    ]
    assert up.exit_code == 0
    assert [(f["code"], f["subject"]) for f in up.envelope["findings"] if f["severity"] == "info"] == [
        ("link.recovered", "spark-2")
    ]
    assert links.on("spark-1", "ls /etc/systemd/system/multi-user.target.wants").find("sparkctl-link-revert") == -1
    assert links.link("down", "--yes").exit_code == 0
    assert links.state("spark-1") == before


def test_an_mtu_that_differs_is_named_and_put_right(links):
    assert links.link("up", "--yes").exit_code == 0
    links.on("spark-2", "ip link set enp1s0f0np0 mtu 1500")

    status = links.link("status")
    up = links.link("up", "--yes")

    assert (status.exit_code, status.codes) == (1, ["link.mtu-mismatch"])
    assert status.envelope["findings"][0]["found"] == "9000 bytes on spark-1, 1500 bytes on spark-2"
    assert (up.exit_code, up.codes) == (0, [])


def test_an_address_that_was_removed_by_hand_comes_back(links):
    assert links.link("up", "--yes").exit_code == 0
    links.on("spark-2", "ip addr del 10.177.0.2/30 dev enp1s0f0np0")

    up = links.link("up", "--yes")

    assert (up.exit_code, up.codes) == (0, [])
    assert links.state("spark-2")["rails"]["enp1s0f0np0"] == (9000, True, ["10.177.0.2"])


def test_another_mtu_replaces_the_first(links):
    assert links.link("up", "--yes").exit_code == 0

    up = links.link("up", "--yes", "--mtu", "4200")

    assert (up.exit_code, up.codes) == (0, [])
    assert links.state("spark-2")["rails"]["enp1s0f0np0"] == (4200, True, ["10.177.0.2"])
    assert links.link("up", "--check", "--mtu", "4200").exit_code == 0


def test_a_rail_that_is_down_is_named(links):
    assert links.link("up", "--yes").exit_code == 0
    set_cable(links.spec, "spark-1", TWIN, connected=False)

    status = links.link("status")

    assert status.exit_code == 1
    assert "spark-1:enP2p1s0f0np0 (no carrier), spark-2:enP2p1s0f0np0 (no carrier)" in status.error["message"]


@pytest.mark.parametrize(
    ("path", "text", "words"),
    [
        (
            "/etc/netplan/40-cx7.yaml",
            "network: {version: 2, ethernets: {enp1s0f0np0: {dhcp4: no, addresses: [192.168.100.10/24]}}}",
            "/etc/netplan/40-cx7.yaml by NVIDIA's playbook or setup script already configures enp1s0f0np0",
        ),
        ("/etc/netplan/40-cx7.yaml", "network: [", "/etc/netplan/40-cx7.yaml cannot be understood"),
    ],
)
def test_other_peoples_files_are_left_alone(links, path, text, words):
    links.on("spark-2", f"umask 077; echo '{text}' >{path}")
    before = links.state("spark-2")

    up = links.link("up", "--yes")

    assert up.exit_code in (1, 4)
    assert words in up.error["message"]
    assert links.state("spark-2") == before


def test_an_address_set_by_hand_is_left_alone(links):
    links.on("spark-2", "ip addr add 192.168.100.11/24 dev enP2p1s0f0np0")

    up = links.link("up", "--yes")

    assert up.exit_code == 4
    assert up.error["where"] == "spark-2"
    assert "enP2p1s0f0np0 has 192.168.100.11/24" in up.error["message"]


def test_a_pool_that_is_in_use_is_avoided(links):
    links.on(
        "spark-2", "ip route add 10.177.0.0/24 via 10.213.0.1 2>/dev/null || ip route add 10.177.0.0/24 dev enP7s7"
    )

    plan = links.link("plan")
    links.on("spark-2", "ip route del 10.177.0.0/24")

    ports = [port for host in plan.envelope["data"]["plan"]["hosts"] for port in host["ports"]]
    assert [port["address"] for port in ports] == ["10.177.1.1/30", "10.177.1.5/30", "10.177.1.2/30", "10.177.1.6/30"]


def test_a_healthy_link_passes_and_is_labelled_as_simulated(links):
    assert links.link("up", "--yes").exit_code == 0

    test = links.link("test", "--seconds", "1")

    assert (test.exit_code, test.codes) == (0, [])
    assert [verdict["verdict"] for verdict in test.envelope["data"]["verdicts"]] == ["pass"] * 6
    assert [finding["code"] for finding in test.envelope["findings"]] == ["link.simulated"]
    assert links.on("spark-2", "pgrep -x iperf3 || echo none").strip() == "none"


def test_a_throttled_rail_fails_with_the_cold_power_cycle_as_remedy(links):
    assert links.link("up", "--yes").exit_code == 0
    # 13 of 200 Gb/s, the classic figure of a throttled ConnectX-7, on the lab's scale of 2 Gb/s.
    set_rate(links.spec, "spark-1", FIRST, 130)

    test = links.link("test", "--seconds", "1")

    assert test.exit_code == 1
    first = next(f for f in test.envelope["findings"] if f["code"] == "link.bandwidth")
    assert first["subject"] == "spark-1 → spark-2, enp1s0f0np0"
    assert "started throttled" in first["cause"]
    assert "unplug their power for 60 s" in first["remedy"]


def test_a_rail_below_its_floor_degrades(links):
    assert links.link("up", "--yes").exit_code == 0
    set_rate(links.spec, "spark-1", TWIN, 600)

    test = links.link("test", "--seconds", "1")

    assert test.exit_code == 5
    verdicts = [verdict["verdict"] for verdict in test.envelope["data"]["verdicts"]]
    assert verdicts == ["pass", "pass", "degraded", "degraded", "degraded", "degraded"]
    assert "enP2p1s0f0np0 alone is too slow already" in test.envelope["findings"][-2]["cause"]
