from dataclasses import replace
from ipaddress import IPv4Interface, IPv4Network

import pytest

from sparkctl.errors import OperationFailed, UnsafeRefused, UsageError
from sparkctl.facts.model import Cage
from sparkctl.inventory.model import LinkWishes
from sparkctl.plan.cabling import Cabling, Topology
from sparkctl.plan.links import NETPLAN_PATH, plan_links
from sparkctl.plan.topology import assemble_cabling
from tests.link_examples import CLUSTER, FIRST, TEMPLATE, TWIN, A, B, applied, changed, pair, plan, with_port
from tests.spark_example import route

NETPLAN_OF_A = """\
# Written by sparkctl for spark-a: the links between the Sparks. Changes made here by hand are overwritten by
# `sparkctl link up`; `sparkctl link down` puts back what was at this path before.
network:
  version: 2
  ethernets:
    # to spark-b:enp1s0f0np0, 10.177.0.2
    enp1s0f0np0:
      addresses: ["10.177.0.1/30"]
      dhcp4: false
      dhcp6: false
      link-local: [ipv6]
      mtu: 9000
      optional: true
    # to spark-b:enP2p1s0f0np0, 10.177.0.6
    enP2p1s0f0np0:
      addresses: ["10.177.0.5/30"]
      dhcp4: false
      dhcp6: false
      link-local: [ipv6]
      mtu: 9000
      optional: true
"""


def addresses(wanted):
    return {
        links.host: [f"{port.netdev} {port.address} to {port.peer_address}" for port in links.ports]
        for links in wanted.hosts
    }


def test_one_cable_gives_two_rails_with_a_subnet_each():
    wanted = plan(pair())

    assert wanted.topology is Topology.DIRECT
    assert addresses(wanted) == {
        A: [f"{FIRST} 10.177.0.1/30 to 10.177.0.2", f"{TWIN} 10.177.0.5/30 to 10.177.0.6"],
        B: [f"{FIRST} 10.177.0.2/30 to 10.177.0.1", f"{TWIN} 10.177.0.6/30 to 10.177.0.5"],
    }
    assert [[end.rdma_device for end in rail] for rail in wanted.rails] == [["rocep1s0f0"] * 2, ["roceP2p1s0f0"] * 2]
    assert (wanted.mtu_bytes, wanted.expect_gbit_per_s) == (9000, 200.0)


def test_the_netplan_file_is_exactly_this():
    links = plan(pair()).of(A)

    assert (links.netplan_path, links.netplan_text) == (NETPLAN_PATH, NETPLAN_OF_A)


def test_two_cables_give_four_rails():
    wanted = plan(pair(cages=(Cage.P0, Cage.P1)))

    assert wanted.topology is Topology.DUAL
    assert [str(near.address) for near, _ in wanted.rails] == [
        "10.177.0.1/30",
        "10.177.0.5/30",
        "10.177.0.9/30",
        "10.177.0.13/30",
    ]


def test_the_first_host_of_the_inventory_gets_the_lower_address():
    turned = replace(CLUSTER, hosts=CLUSTER.hosts[::-1])
    facts = pair()
    cabling = Cabling(Topology.DIRECT, plan_cables(facts, turned))

    wanted = plan_links(turned, facts, cabling, TEMPLATE)

    assert [str(port.address) for port in wanted.of(B).ports] == ["10.177.0.1/30", "10.177.0.5/30"]


def plan_cables(facts, cluster):
    return assemble_cabling(facts, [host.name for host in cluster.hosts]).cables


def test_planning_again_after_applying_gives_the_same():
    facts = pair()
    wanted = plan(facts)

    assert plan(applied(facts, wanted)) == wanted


def test_a_subnet_that_is_ours_already_is_kept_though_an_earlier_one_became_free():
    occupied = changed(pair(), B, routes=(route("10.177.0.0/29", "tun0"),))
    wanted = plan(occupied)
    freed = {**applied(occupied, wanted)}
    freed = changed(freed, B, routes=tuple(r for r in freed[B].routes if r.netdev != "tun0"))

    assert [str(near.address) for near, _ in wanted.rails] == ["10.177.0.9/30", "10.177.0.13/30"]
    assert plan(freed) == wanted


def test_a_reinstalled_node_joins_the_subnets_of_the_other():
    occupied = changed(pair(), B, routes=(route("10.177.0.0/29", "tun0"),))
    half = {**pair(), A: applied(occupied, plan(occupied))[A]}

    assert [str(near.address) for near, _ in plan(half).rails] == ["10.177.0.9/30", "10.177.0.13/30"]


@pytest.mark.parametrize(
    ("destination", "first"),
    [
        ("10.177.0.0/24", "10.177.1.1/30"),
        ("10.177.0.4/32", "10.177.0.1/30"),
        ("0.0.0.0/1", "10.177.0.1/30"),
    ],
)
def test_what_any_node_routes_is_avoided_but_not_for_default_routes(destination, first):
    facts = changed(pair(), B, routes=(route(destination, "wlP9s9"),))

    near, _ = plan(facts).rails[0]

    assert str(near.address) == first


def test_a_pool_inside_a_route_is_refused_with_the_route_named():
    facts = changed(pair(), B, routes=(route("10.0.0.0/8", "tun0"),))

    with pytest.raises(UnsafeRefused) as caught:
        plan(facts)

    assert str(caught.value) == (
        "the pool 10.177.0.0/16 has no 2 subnets that are free on every node; spark-b has 10.0.0.0/8 on tun0"
    )


def test_a_pool_for_one_rail_only_is_too_small():
    cluster = replace(CLUSTER, links=LinkWishes(pool=IPv4Network("10.9.9.0/30")))

    with pytest.raises(UnsafeRefused, match=r"10\.9\.9\.0/30 has no 2 subnets"):
        plan(pair(), cluster)


def test_no_cable_says_what_to_plug():
    with pytest.raises(OperationFailed) as caught:
        plan(pair(cages=()))

    assert str(caught.value) == "no cable found between spark-a and spark-b"
    assert "QSFP112" in caught.value.remedy


def test_a_dark_twin_is_named():
    facts = with_port(pair(), B, TWIN, admin_up=False, carrier=False)

    with pytest.raises(OperationFailed, match=r"only 1 of 2 rails .* dark: spark-b:enP2p1s0f0np0 \(set down\)"):
        plan(facts)


def test_other_layouts_are_not_planned_yet():
    with pytest.raises(UsageError) as caught:
        plan_links(CLUSTER, pair(), replace(cabling_of(pair()), topology=Topology.RING), TEMPLATE)

    assert str(caught.value) == "the cabling is `ring`, which is not planned yet; planned are: direct, dual"


def cabling_of(facts):
    return Cabling(Topology.DIRECT, plan_cables(facts, CLUSTER))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"management_netdev": FIRST}, "the management connection arrives on enp1s0f0np0"),
        ({"management_netdev": None}, "cannot tell which interface the management connection arrives on"),
        ({"routes": (route("0.0.0.0/0", TWIN),)}, "the default route leaves by enP2p1s0f0np0"),
    ],
)
def test_the_management_interface_is_never_a_rail(fields, words):
    with pytest.raises(UnsafeRefused) as caught:
        plan(changed(pair(), B, **fields))

    assert (caught.value.where, words in caught.value.message) == (B, True)


def test_a_wished_mtu_is_planned():
    cluster = replace(CLUSTER, links=LinkWishes(mtu_bytes=4200))

    assert {port.mtu_bytes for rail in plan(pair(), cluster).rails for port in rail} == {4200}


def test_twins_in_one_subnet_of_our_pool_are_separated():
    facts = with_port(pair(), A, FIRST, addresses=(IPv4Interface("10.177.0.1/30"),))
    facts = with_port(facts, A, TWIN, addresses=(IPv4Interface("10.177.0.2/30"),))

    assert len({near.address.network for near, _ in plan(facts).rails}) == 2
