from ipaddress import IPv4Address, IPv4Interface, IPv4Network, IPv6Address

import pytest

from sparkctl.errors import UnexpectedOutput
from sparkctl.tools.iproute2 import NETDEVS, ROUTES, KernelRoute, parse_netdevs, parse_routes
from tests.capture_files import captured, printed


def test_netdevs_of_a_spark():
    netdevs = {netdev.name: netdev for netdev in parse_netdevs(captured("iproute2/doc--address.json", NETDEVS)) or ()}
    cabled, dark, wifi = netdevs["enp1s0f1np1"], netdevs["enp1s0f0np0"], netdevs["wlP9s9"]
    assert cabled.ipv4 == (IPv4Interface("192.168.100.13/24"),)
    assert cabled.link_local == IPv6Address("fe80::4ebb:47ff:fe2d:5c2f")
    assert (cabled.mtu_bytes, cabled.admin_up, cabled.carrier) == (9000, True, True)
    assert (dark.admin_up, dark.carrier, dark.link_local) == (True, False, None)
    assert (wifi.admin_up, wifi.carrier) == (False, False)
    assert netdevs["docker0"].kind == "bridge"


def test_netdevs_of_a_lab_node():
    netdevs = parse_netdevs(captured("iproute2/lab--address.json", NETDEVS)) or ()
    assert {"lo", "enP7s7", "enp1s0f0np0", "enP2p1s0f0np0"} <= {netdev.name for netdev in netdevs}
    assert {netdev.kind for netdev in netdevs if netdev.name.startswith("en")} == {"veth"}


def test_routes_leave_out_what_does_not_forward():
    assert parse_routes(captured("iproute2/doc--route.json", ROUTES)) == (
        KernelRoute(IPv4Network("0.0.0.0/0"), "enP7s7", IPv4Address("192.168.1.1")),
        KernelRoute(IPv4Network("172.17.0.0/16"), "docker0", None),
        KernelRoute(IPv4Network("192.168.1.0/24"), "enP7s7", None),
        KernelRoute(IPv4Network("192.168.100.0/24"), "enp1s0f1np1", None),
        KernelRoute(IPv4Network("192.168.101.0/24"), "enP2p1s0f1np1", None),
        KernelRoute(IPv4Network("100.100.100.100/32"), "tailscale0", None),
    )


def test_routes_of_a_lab_node():
    routes = parse_routes(captured("iproute2/lab--route.json", ROUTES)) or ()
    assert KernelRoute(IPv4Network("10.213.0.0/24"), "enP7s7", None) in routes
    assert all(route.netdev != "lo" for route in routes)


def test_no_ip_is_not_the_same_as_no_netdevs():
    assert parse_netdevs(printed("", NETDEVS, exit_code=127)) is None
    assert parse_routes(printed('Option "-j" is unknown', ROUTES, exit_code=255)) is None
    assert parse_netdevs(printed("[]", NETDEVS)) == ()


@pytest.mark.parametrize("text", ["", "1: lo: <LOOPBACK>", '{"a": 1}', '[{"ifname": "x"}]', "[1]"])
def test_what_is_no_list_of_links_names_host_and_first_line(text):
    with pytest.raises(UnexpectedOutput) as caught:
        parse_netdevs(printed(text, NETDEVS))
    assert caught.value.where == "spark-a"
    assert str(caught.value).endswith(text or "nothing")


def test_an_address_that_is_none():
    with pytest.raises(UnexpectedOutput):
        parse_routes(printed('[{"dst": "nonsense", "dev": "x"}]', ROUTES))
