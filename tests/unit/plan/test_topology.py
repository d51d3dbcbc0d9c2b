from dataclasses import replace

import pytest

from sparkctl.facts.model import Neighbour
from sparkctl.plan.cabling import CageEnd, Topology
from sparkctl.plan.topology import assemble_cabling
from tests.cabling_examples import P0, P1, STRANGER, A, B, C, Wire, sparks

BOTH = pytest.mark.parametrize("style", list(Wire))
RING = [[(A, P0), (B, P1)], [(B, P0), (C, P1)], [(C, P0), (A, P1)]]
# Addresses cannot tell a veth star from separate cables, so switches exist only with shared cables.
SWITCH = [[(A, P0), (B, P0), (C, P0)]]


def rails(cabling):
    return [
        [(rail.pci_domain, rail.a.host, rail.a.netdev, rail.b.host, rail.b.netdev) for rail in cable.rails]
        for cable in cabling.cables
    ]


@BOTH
def test_one_cable(style):
    cabling = assemble_cabling(sparks([A, B], [[(A, P0), (B, P0)]], style=style), [A, B])
    assert cabling.topology is Topology.DIRECT
    assert rails(cabling) == [
        [("0000", A, "enp1s0f0np0", B, "enp1s0f0np0"), ("0002", A, "enP2p1s0f0np0", B, "enP2p1s0f0np0")]
    ]
    assert (cabling.switches, cabling.self_cabled, cabling.strangers) == ((), (), ())


@BOTH
def test_crossed_cages(style):
    cabling = assemble_cabling(sparks([A, B], [[(A, P1), (B, P0)]], style=style), [A, B])
    assert cabling.topology is Topology.DIRECT
    assert rails(cabling) == [
        [("0000", A, "enp1s0f1np1", B, "enp1s0f0np0"), ("0002", A, "enP2p1s0f1np1", B, "enP2p1s0f0np0")]
    ]


@BOTH
def test_the_order_is_the_inventorys(style):
    facts = sparks([A, B], [[(A, P0), (B, P0)]], style=style)
    (cable,) = assemble_cabling(facts, [B, A]).cables
    assert (cable.host_a, cable.host_b, cable.rails[0].a.host) == (B, A, B)


@BOTH
@pytest.mark.parametrize("dark", [(A, "enP2p1s0f0np0"), (B, "enP2p1s0f0np0")])
def test_one_twin_dark(style, dark):
    cabling = assemble_cabling(sparks([A, B], [[(A, P0), (B, P0)]], style=style, off=[dark]), [A, B])
    assert cabling.topology is Topology.DIRECT
    assert rails(cabling) == [[("0000", A, "enp1s0f0np0", B, "enp1s0f0np0")]]


@BOTH
def test_two_cables(style):
    wires = [[(A, P0), (B, P0)], [(A, P1), (B, P1)]]
    cabling = assemble_cabling(sparks([A, B], wires, style=style), [A, B])
    assert cabling.topology is Topology.DUAL
    assert [str(cable).split()[0] for cable in cabling.cables] == [f"{A}:p0", f"{A}:p1"]
    assert [len(cable.rails) for cable in cabling.cables] == [2, 2]


@BOTH
def test_a_ring_of_three(style):
    cabling = assemble_cabling(sparks([A, B, C], RING, style=style), [A, B, C])
    assert cabling.topology is Topology.RING
    ends = [(cable.host_a, cable.cage_a, cable.host_b, cable.cage_b) for cable in cabling.cables]
    assert ends == [(A, P0, B, P1), (A, P1, C, P0), (B, P0, C, P1)]


@BOTH
def test_a_chain_is_nothing_we_plan(style):
    cabling = assemble_cabling(sparks([A, B, C], RING[:2], style=style), [A, B, C])
    assert cabling.topology is Topology.MIXED


@BOTH
def test_a_third_spark_without_a_cable(style):
    cabling = assemble_cabling(sparks([A, B, C], [[(A, P0), (B, P0)]], style=style), [A, B, C])
    assert cabling.topology is Topology.DIRECT


def test_a_switch():
    cabling = assemble_cabling(sparks([A, B, C], SWITCH), [A, B, C])
    assert (cabling.topology, cabling.cables) == (Topology.SWITCH, ())
    assert cabling.switches == ((CageEnd(A, P0), CageEnd(B, P0), CageEnd(C, P0)),)


def test_two_cages_of_one_host_on_a_switch():
    cabling = assemble_cabling(sparks([A, B], [[(A, P0), (A, P1), (B, P0)]]), [A, B])
    assert cabling.topology is Topology.SWITCH


def test_a_stranger_beside_one_of_ours_means_a_switch():
    cabling = assemble_cabling(sparks([A, B], [[(A, P0), (B, P0), (STRANGER, P0)]]), [A, B])
    assert cabling.topology is Topology.SWITCH
    assert cabling.strangers == ()


def test_switch_and_cable_together():
    wires = [[(A, P0), (B, P0), (C, P0)], [(A, P1), (B, P1)]]
    assert assemble_cabling(sparks([A, B, C], wires), [A, B, C]).topology is Topology.MIXED


@BOTH
def test_a_node_cabled_to_itself(style):
    cabling = assemble_cabling(sparks([A, B], [[(A, P0), (A, P1)]], style=style), [A, B])
    assert (cabling.topology, cabling.self_cabled) == (Topology.NONE, (A,))


@BOTH
def test_a_stranger_at_the_other_end(style):
    cabling = assemble_cabling(sparks([A, B], [[(A, P0), (STRANGER, P0)]], style=style), [A, B])
    assert (cabling.topology, cabling.strangers) == (Topology.NONE, (CageEnd(A, P0),))


@BOTH
def test_no_cable(style):
    cabling = assemble_cabling(sparks([A, B], [], style=style), [A, B])
    assert (cabling.topology, cabling.cables) == (Topology.NONE, ())
    assert assemble_cabling({}, [A]).topology is Topology.NONE


def test_hearing_in_one_direction_is_enough():
    facts = sparks([A, B], [[(A, P0), (B, P0)]])
    facts[B] = replace(facts[B], neighbours=())
    assert assemble_cabling(facts, [A, B]).topology is Topology.DIRECT


def test_the_sibling_alone_is_nobody():
    facts = sparks([A, B], [[(A, P0), (B, P0)]])
    own = {port.mac for port in facts[A].ports}
    facts[A] = replace(facts[A], neighbours=tuple(heard for heard in facts[A].neighbours if heard.mac in own))
    facts[B] = replace(facts[B], neighbours=())
    assert assemble_cabling(facts, [A, B]).cables == ()


def test_a_port_of_unknown_cage_takes_no_part():
    facts = sparks([A, B], [[(A, P0), (B, P0)]])
    facts[A] = replace(facts[A], ports=tuple(replace(port, cage=None) for port in facts[A].ports))
    assert assemble_cabling(facts, [A, B]).cables == ()


def test_a_neighbour_on_another_netdev_does_not_count():
    facts = sparks([A, B], [])
    facts[A] = replace(facts[A], neighbours=(Neighbour("enP7s7", facts[B].ports[0].mac),))
    assert assemble_cabling(facts, [A, B]).cables == ()
