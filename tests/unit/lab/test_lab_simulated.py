import ast
import json
import subprocess

import pytest

from sparkctl.lab.model import PORTS, plan_lab
from sparkctl.lab.node_files import PROGRAM_DIRECTORY, plan_node_files
from sparkctl.lab.simulated import MARKER_FILE, SIMULATED, plan_simulated_files, rdma_guid

TREE = f"{PROGRAM_DIRECTORY}/sysfs"


@pytest.fixture
def files():
    return {file.path: file for file in plan_simulated_files(plan_lab(), "spark-1")}


def test_everything_simulated_is_listed_in_the_marker_file(files):
    listed = json.loads(files[MARKER_FILE].content)
    assert listed == [{"what": thing.what, "how": thing.how} for thing in SIMULATED]
    assert all(entry["what"] and entry["how"] for entry in listed)


def test_ports_show_the_identity_of_a_connectx_7(files):
    for port in PORTS:
        net = f"{TREE}/net/{port.netdev}"
        assert files[f"{net}/phys_port_name"].content == f"{port.cage}\n"
        assert files[f"{net}/device"].link_to.endswith(f"/{port.pci_address}")
        assert f"{TREE}/class/infiniband/{port.rdma_device}" in files
    assert len({files[f"{TREE}/net/{port.netdev}/phys_switch_id"].content for port in PORTS}) == 1


def test_links_between_the_simulated_files_lead_somewhere(files):
    for port in PORTS:
        domain = port.pci_address[:4]
        function = f"{TREE}/devices/pci{domain}:00/{domain}:00:00.0/{port.pci_address}"
        assert files[f"{function}/vendor"].content == "0x15b3\n"
        assert files[f"{function}/device"].content == "0x1021\n"
        assert f"PCI_SLOT_NAME={port.pci_address}\n" in files[f"{function}/uevent"].content
        assert f"{function}/net/{port.netdev}" in files
        assert files[f"{function}/infiniband/{port.rdma_device}/ports/1/state"].content == "1: DOWN\n"


def test_only_a_cage_with_a_cable_has_a_serial_number(files):
    serials = {path for path in files if path.startswith(f"{PROGRAM_DIRECTORY}/cables/")}
    assert {path.rsplit("/", 1)[1] for path in serials} == {"enp1s0f0np0", "enP2p1s0f0np0"}


def test_nodes_of_a_lab_differ_where_machines_do(files):
    other = {file.path: file for file in plan_simulated_files(plan_lab(), "spark-2")}
    assert files["/etc/dgx-release"].content != other["/etc/dgx-release"].content
    assert files["/usr/local/bin/nvidia-smi"].content != other["/usr/local/bin/nvidia-smi"].content
    same = [path for path in files if path.startswith(f"{PROGRAM_DIRECTORY}/cables/")]
    assert all(files[path] == other[path] for path in same)


def test_a_guid_is_the_address_with_two_octets_in_the_middle():
    assert rdma_guid("02:52:77:ad:5f:03") == "0252:7700:00ad:5f03"


def test_programs_for_the_nodes_are_valid(files):
    for file in (*files.values(), *_node_files()):
        if file.content.startswith("#!/usr/bin/python3"):
            ast.parse(file.content)
        if file.content.startswith("#!/bin/sh"):
            subprocess.run(("sh", "-n"), input=file.content, text=True, check=True)


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        (("-L",), "GPU 0: NVIDIA GB10 (UUID: GPU-"),
        (
            ("--query-gpu=name,driver_version,memory.total", "--format=csv"),
            "name, driver_version, memory.total [MiB]\nNVIDIA GB10, 580.95.05, [N/A]\n",
        ),
        (("--query-gpu=power.draw", "--format=csv,noheader,nounits"), "4.52\n"),
        (("--query-compute-apps=pid,used_memory", "--format=csv,noheader"), ""),
        ((), "Not Supported"),
    ],
)
def test_nvidia_smi_answers_like_a_gb10(files, arguments, printed):
    program = files["/usr/local/bin/nvidia-smi"].content
    done = subprocess.run(("python3", "-", *arguments), input=program, capture_output=True, text=True, check=True)
    assert printed in done.stdout


def test_nvidia_smi_refuses_unknown_fields_like_the_real_one(files):
    program = files["/usr/local/bin/nvidia-smi"].content
    done = subprocess.run(("python3", "-", "--query-gpu=colour"), input=program, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, 'Field "colour" is not a valid field to query.\n')


def test_access_to_a_node_is_by_key_only():
    by_path = {file.path: file for file in _node_files()}
    assert by_path["/etc/netplan/01-management.yaml"].mode == 0o600
    assert "addresses: [10.213.0.11/24]" in by_path["/etc/netplan/01-management.yaml"].content
    assert by_path["/home/nvidia/.ssh/authorized_keys"].content == "ssh-ed25519 AAAA lab\n"
    assert by_path["/home/nvidia/.ssh"].is_directory
    sshd = by_path["/etc/ssh/sshd_config.d/50-sparkctl-lab.conf"].content
    assert "PermitRootLogin no" in sshd
    assert "PasswordAuthentication no" in sshd
    assert json.loads(by_path["/etc/docker/daemon.json"].content)["iptables"] is False


def _node_files():
    return plan_node_files(
        node="spark-1",
        address="10.213.0.11",
        prefix_length=24,
        machine_id="0" * 32,
        public_key="ssh-ed25519 AAAA lab\n",
    )
