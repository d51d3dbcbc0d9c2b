from ipaddress import IPv4Interface

import pytest

from sparkctl.errors import UnexpectedOutput
from sparkctl.tools.netplan_yaml import NetplanDevice, parse_netplan

# The file of NVIDIA's playbook "Connect two Sparks" (PB-2), a NetworkManager profile and a bond.
TEXT = """\
network:
  version: 2
  renderer: NetworkManager
  ethernets:
    enp1s0f1np1:
      addresses:
        - 192.168.100.10/24
        - fd00::1/64
        - 192.168.102.10/24: {label: maintenance}
      dhcp4: no
      mtu: 9000
    NM-1234:
      match: {name: enP7*, macaddress: 'AA:BB:CC:00:11:22'}
      dhcp4: yes
      link-local: [ipv4, ipv6]
  bonds:
    bond0: {interfaces: [enp1s0f0np0, enP2p1s0f0np0]}
"""


def test_every_device_of_a_file():
    assert parse_netplan(TEXT, path="40-cx7.yaml") == (
        NetplanDevice(
            "ethernets",
            "enp1s0f1np1",
            addresses=(IPv4Interface("192.168.100.10/24"), IPv4Interface("192.168.102.10/24")),
            mtu_bytes=9000,
        ),
        NetplanDevice(
            "ethernets", "NM-1234", match_name="enP7*", match_mac="aa:bb:cc:00:11:22", dhcp4=True, link_local=True
        ),
        NetplanDevice("bonds", "bond0", members=("enp1s0f0np0", "enP2p1s0f0np0")),
    )


@pytest.mark.parametrize(
    ("netdev", "mac", "covered"),
    [
        ("enp1s0f1np1", "", [True, False, False]),
        ("enP7s7", "aa:bb:cc:00:11:22", [False, True, False]),
        ("enP7s7", "aa:bb:cc:00:11:23", [False, False, False]),
        ("enp1s0f0np0", "", [False, False, True]),
    ],
)
def test_which_definition_covers_a_netdev(netdev, mac, covered):
    assert [device.covers(netdev, mac) for device in parse_netplan(TEXT, path="x")] == covered


@pytest.mark.parametrize("text", ["", "network: {version: 2}", "# nothing\n"])
def test_files_without_devices(text):
    assert parse_netplan(text, path="x") == ()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("network: [", "while parsing"),
        ("network: [1]", "a mapping was expected"),
        ("network: {ethernets: {a: {addresses: [10.0.0.300/24]}}}", "`10.0.0.300/24` is not an address"),
    ],
)
def test_what_netplan_would_refuse_is_an_error(text, reason):
    with pytest.raises(UnexpectedOutput) as caught:
        parse_netplan(text, path="/etc/netplan/x.yaml", host="spark-a")

    assert str(caught.value).startswith(f"spark-a: /etc/netplan/x.yaml cannot be understood: {reason}")
