"""A lab comes up, goes down and recovers, and leaves nothing of itself on this machine."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from sparkctl.lab.base import ensure_base
from sparkctl.lab.cgroups import group_pids, lab_group
from sparkctl.lab.disk import load_record
from sparkctl.lab.faults import cut_rail, mend_rail, power_off, power_on, set_rail_rate
from sparkctl.lab.lifecycle import UpOutcome, lab_down, lab_up
from sparkctl.lab.model import controller_netdev, node_namespace, plan_lab
from sparkctl.lab.status import LabHandle, LabState, NodeState, lab_status

pytestmark = pytest.mark.lab
NAME = "t-life"


@dataclass(frozen=True)
class Traces:
    """What a lab could leave behind on this machine, apart from what other labs own."""

    namespaces: frozenset[str]
    netdevs: frozenset[str]
    mounts: tuple[str, ...]
    groups: frozenset[str]
    processes: frozenset[str]
    directories: frozenset[str]


@pytest.fixture(scope="module", autouse=True)
def _root_and_base():
    if os.geteuid() != 0:
        pytest.skip("a lab needs root")
    ensure_base(_say)


@pytest.fixture(autouse=True)
def _nothing_is_left(_root_and_base):
    lab_down(NAME, _say)
    before = _traces()
    yield
    lab_down(NAME, _say)
    assert _traces() == before


def test_up_twice_changes_nothing_the_second_time():
    first = lab_up(plan_lab(NAME), _say)
    second = lab_up(plan_lab(NAME), _say)
    assert first.outcome is UpOutcome.STARTED
    assert second.outcome is UpOutcome.ALREADY_UP
    assert first.lab == second.lab
    assert [_ssh(first.lab, node.name, "hostname") for node in first.lab.nodes] == ["spark-1", "spark-2"]


def test_down_twice_is_fine():
    lab_up(plan_lab(NAME, nodes=1), _say)
    assert lab_down(NAME, _say) is True
    assert lab_down(NAME, _say) is False


def test_a_lab_whose_supervisors_were_killed_starts_again():
    before = lab_up(plan_lab(NAME), _say).lab
    for node in before.nodes:
        os.kill(node.supervisor_pid, signal.SIGKILL)
    _wait_for(lambda: lab_status(NAME).state is LabState.REMAINS)
    result = lab_up(plan_lab(NAME), _say)
    assert result.outcome is UpOutcome.STARTED
    assert {node.leader_pid for node in result.lab.nodes}.isdisjoint(node.leader_pid for node in before.nodes)
    assert _ssh(result.lab, "spark-2", "hostname") == "spark-2"


def test_down_after_every_process_was_killed():
    lab_up(plan_lab(NAME), _say)
    for pid in group_pids(lab_group(NAME)):
        # Some die with those before them.
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    assert lab_down(NAME, _say)


@pytest.mark.parametrize("seconds", [0.3, 0.7, 1.2])
def test_up_killed_half_way_is_cleaned_by_down_and_by_up(seconds, tmp_path):
    _kill_up(tmp_path, signal.SIGKILL, after_s=seconds)
    lab_down(NAME, _say)
    assert lab_status(NAME).state is LabState.ABSENT
    _kill_up(tmp_path, signal.SIGKILL, after_s=seconds)
    assert lab_up(plan_lab(NAME), _say).lab.state is LabState.RUNNING


def test_ctrl_c_removes_what_was_started(tmp_path):
    done = _kill_up(tmp_path, signal.SIGINT, after_s=1.0)
    assert done.returncode == 130, done.stderr
    assert "hint: " in done.stderr
    assert lab_status(NAME).state is LabState.ABSENT


def test_two_labs_live_side_by_side():
    other = f"{NAME}-b"
    try:
        first = lab_up(plan_lab(NAME), _say).lab
        second = lab_up(plan_lab(other, nodes=1), _say).lab
        assert load_record(NAME).network != load_record(other).network
        assert _ssh(second, "spark-1", "hostname") == "spark-1"
        lab_down(other, _say)
        assert lab_status(NAME) == first
    finally:
        lab_down(other, _say)


def test_a_node_is_cut_off_throttled_and_switched_off_and_on():
    lab = lab_up(plan_lab(NAME), _say).lab
    rail = "enp1s0f0np0"
    assert _carrier(lab, "spark-1", rail) == _carrier(lab, "spark-2", rail) == "1"
    cut_rail(NAME, "spark-2", rail)
    assert _carrier(lab, "spark-1", rail) == _carrier(lab, "spark-2", rail) == "0"
    assert _carrier(lab, "spark-1", "enP2p1s0f0np0") == "1"
    mend_rail(NAME, "spark-1", rail)
    assert _carrier(lab, "spark-2", rail) == "1"
    set_rail_rate(NAME, "spark-1", rail, 123)
    qdisc = subprocess.run(
        ("ip", "netns", "exec", node_namespace(NAME, "spark-1"), "tc", "qdisc", "show", "dev", rail),
        capture_output=True,
        text=True,
        check=True,
    )
    assert "rate 123Mbit" in qdisc.stdout
    _ssh(lab, "spark-2", "echo kept > mark; sync")
    power_off(NAME, "spark-2")
    assert lab_status(NAME).node("spark-2").state is NodeState.OFF
    assert _carrier(lab, "spark-1", rail) == "0"
    power_on(NAME, "spark-2")
    assert _ssh(lab, "spark-2", "cat mark") == "kept"
    assert _carrier(lab, "spark-1", rail) == "1"


def test_a_node_that_reboots_itself_comes_back_with_fresh_netdevs():
    lab = lab_up(plan_lab(NAME), _say).lab
    before = _ssh(lab, "spark-1", "sudo ip link set enp1s0f0np0 mtu 9000; cat /proc/sys/kernel/random/boot_id")
    # The connection may end before the answer; then ssh says 255.
    _ssh(lab, "spark-1", "sudo systemctl reboot --no-block; exit 0")
    _wait_for(lambda: lab_status(NAME).node("spark-1").leader_pid not in (None, lab.node("spark-1").leader_pid))
    _wait_for(lambda: lab_status(NAME).state is LabState.RUNNING)
    after = _ssh(lab, "spark-1", "cat /sys/class/net/enp1s0f0np0/mtu /proc/sys/kernel/random/boot_id").split()
    assert after[0] == "1500"
    assert after[1] != before


def test_a_node_shows_what_a_spark_shows():
    lab = lab_up(plan_lab(NAME), _say).lab
    sysfs = "cd /sys/class/net/enP2p1s0f1np1; cat phys_port_name; basename $(readlink -f device); cat device/vendor"
    assert _ssh(lab, "spark-1", sysfs).split() == ["p1", "0002:01:00.1", "0x15b3"]
    assert "rocep1s0f0 port 1 ==> enp1s0f0np0 (Up)" in _ssh(lab, "spark-1", "ibdev2netdev")
    assert _ssh(lab, "spark-1", "cat /sys/class/net/enp1s0f0np0/speed") == "2000"
    assert "Speed: 2000Mb/s" in _ssh(lab, "spark-1", "ethtool enp1s0f0np0")
    assert "NVIDIA GB10" in _ssh(lab, "spark-1", "nvidia-smi -L")
    assert json.loads(_ssh(lab, "spark-1", "cat /etc/sparkctl/simulated.json"))
    assert _ssh(lab, "spark-1", "sudo -n id -u") == "0"
    assert _ssh(lab, "spark-1", "systemctl is-system-running --wait") == "running"
    assert _ssh(lab, "spark-1", "ping -c2 -w3 ff02::1%enp1s0f0np0 | grep -c duplicates")
    serials = [
        _ssh(lab, node, f"sudo ethtool -m {rail} | grep SN")
        for node, rail in (("spark-1", "enp1s0f0np0"), ("spark-2", "enP2p1s0f0np0"))
    ]
    assert serials[0] == serials[1]


def test_a_directory_of_this_machine_can_be_shown_read_only(tmp_path):
    (tmp_path / "file").write_text("hello")
    tmp_path.chmod(0o755)
    lab = lab_up(plan_lab(NAME, nodes=1, binds=((str(tmp_path), "/opt/lab"),)), _say).lab
    assert (
        _ssh(lab, "spark-1", "cat /opt/lab/file; sudo touch /opt/lab/x 2>/dev/null || echo refused") == "hellorefused"
    )


def test_without_root_the_command_to_type_is_named():
    # Code and interpreter may lie where nobody else may look, so the privileges are dropped inside the program.
    program = (
        "import os, sys; sys.argv = ['sparkctl', 'lab', 'up', '--name', 'x']; import sparkctl.cli.lab;"
        "from sparkctl.cli.main import main; os.setuid(65534); main()"
    )
    done = subprocess.run((sys.executable, "-c", program), capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "hint: type `sudo sparkctl lab up --name x`" in done.stderr.replace(f"{Path.cwd()}/", "")


def _kill_up(tmp_path: Path, how: signal.Signals, *, after_s: float) -> subprocess.CompletedProcess[str]:
    argv = (sys.executable, "-m", "sparkctl", "lab", "up", "--name", NAME, "--inventory-out", str(tmp_path / "t.yaml"))
    with subprocess.Popen(argv, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
        _wait_for(lambda: Path("/var/lib/sparkctl-lab", NAME).exists())
        time.sleep(after_s)
        process.send_signal(how)
        _, stderr = process.communicate(timeout=60)
    return subprocess.CompletedProcess(argv, process.returncode, "", stderr)


def _ssh(lab: LabHandle, node: str, command: str) -> str:
    options = (f"UserKnownHostsFile={lab.known_hosts}", "StrictHostKeyChecking=yes", "LogLevel=ERROR")
    argv = ["ssh", "-i", str(lab.key), *(word for option in options for word in ("-o", option))]
    done = subprocess.run(
        (*argv, f"nvidia@{lab.node(node).address}", command), capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def _carrier(lab: LabHandle, node: str, netdev: str) -> str:
    return _ssh(lab, node, f"cat /sys/class/net/{netdev}/carrier")


def _traces() -> Traces:
    mountinfo = Path("/proc/self/mountinfo").read_text()
    groups = lab_group(NAME).parent
    processes = subprocess.run(("ps", "-eo", "args"), capture_output=True, text=True, check=True).stdout
    return Traces(
        namespaces=frozenset(str(path) for path in Path("/run/netns").glob(f"*{NAME}*")),
        netdevs=frozenset(
            str(path)
            for path in Path("/sys/class/net").iterdir()
            if path.name in (controller_netdev(NAME), controller_netdev(f"{NAME}-b"))
        ),
        mounts=tuple(line for line in mountinfo.splitlines() if NAME in line),
        groups=frozenset(str(path) for path in groups.glob(f"*{NAME}*")),
        processes=frozenset(line for line in processes.splitlines() if f"/{NAME}" in line or f".{NAME}" in line),
        directories=frozenset(str(path) for path in Path("/var/lib/sparkctl-lab").glob(f"*{NAME}*")),
    )


def _wait_for(condition, *, timeout_s: float = 60.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def _say(line: str) -> None:
    sys.stderr.write(line + "\n")
