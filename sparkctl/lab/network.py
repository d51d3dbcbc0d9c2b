"""The kernel side of a lab's network: namespaces, veth pairs, bridges and rate limits, through pyroute2.

    this machine            hidden namespace                     one namespace per node
    sparklab1a2b3c  <--->   uplink  )
                            m0  m1  ) bridge `mgmt`      <--->   enP7s7
                            w0.0  w1.0  bridge `c0.0`    <--->   enp1s0f0np0 of both nodes
                            w0.1  w1.1  bridge `c0.1`    <--->   enP2p1s0f0np0 of both nodes
                            w0.2  (down)                 <--->   enp1s0f1np1 without a cable

`wN.P` is the far end of port P (order of PORTS) of node N. Carrier at a node's port follows the state of its
far end, so a cable is pulled without touching the node. The bridges are hidden because a firewall or Docker on
this machine would otherwise filter what the nodes say to each other (br_netfilter).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import IPv4Network
from pathlib import Path

from pyroute2 import IPRoute, NetNS, netns
from pyroute2.netlink.exceptions import NetlinkError

from sparkctl.errors import OperationFailed
from sparkctl.lab.model import (
    MANAGEMENT_NETDEV,
    PORTS,
    CableEnd,
    LabPort,
    LabSpec,
    cable_of,
    cables_namespace,
    controller_address,
    controller_netdev,
    namespace_prefix,
    node_index,
    node_mac,
    node_namespace,
)

# The ethernet size limit of a ConnectX-7 port; nodes may raise theirs up to it without touching the far end.
_WIRE_MTU_BYTES = 9978
# Kernel bridges swallow link-local protocols; this lets LLDP (01:80:c2:00:00:0e) through like a cable does.
_FORWARD_LLDP = 1 << 0xE
_TC_ROOT = 0xFFFFFFFF
_TBF_HANDLE = 0x10000
# One segmentation-offload packet must fit into the bucket, or tbf would split it up again.
_BURST_BYTES = 256 * 1024
_QUEUE_MS = 10


def create_fabric(spec: LabSpec, network: IPv4Network) -> None:
    """Create the hidden namespace with its bridges, and this machine's own address on the management network.

    Raises OperationFailed when the kernel refuses.
    """
    hidden = cables_namespace(spec.name)
    with _translated(spec.name):
        netns.create(hidden)
        _disable_ipv6(hidden)
        with NetNS(hidden) as ip:
            _add_bridge(ip, "mgmt", forward_lldp=False)
            _add_bridge(ip, "switch", forward_lldp=False)
            for number in range(len(spec.cables)):
                for half in (0, 1):
                    _add_bridge(ip, f"c{number}.{half}", forward_lldp=True)
        controller = controller_netdev(spec.name)
        with IPRoute() as ip:
            ip.link(
                "add",
                ifname=controller,
                kind="veth",
                peer={"ifname": "uplink", "net_ns_fd": hidden},
                ifalias=f"sparkctl lab {spec.name}",
            )
            index = _index(ip, controller)
            ip.addr("add", index=index, address=str(controller_address(network)), prefixlen=network.prefixlen)
            ip.link("set", index=index, state="up")
        with NetNS(hidden) as ip:
            _enslave(ip, "uplink", "mgmt")


def connect_node(spec: LabSpec, node: str) -> None:
    """Create a node's namespace with management port and four rails; cabled rails get carrier and rate limit.

    All its netdevs are new: no address, MTU 1500, IPv6 link-local only. Raises OperationFailed.
    """
    hidden, own, number = cables_namespace(spec.name), node_namespace(spec.name, node), node_index(spec, node)
    with _translated(f"{spec.name}/{node}"):
        netns.create(own)
        with NetNS(own) as ip:
            ip.link("set", index=_index(ip, "lo"), state="up")
        _add_pair(spec, node, MANAGEMENT_NETDEV, f"m{number}")
        for position, port in enumerate(PORTS):
            _add_pair(spec, node, port.netdev, f"w{number}.{position}")
        with NetNS(own) as ip:
            for netdev in (MANAGEMENT_NETDEV, *(port.netdev for port in PORTS)):
                ip.link("set", index=_index(ip, netdev), state="up")
        with NetNS(hidden) as ip:
            _enslave(ip, f"m{number}", "mgmt")
            for position in range(len(PORTS)):
                wire = f"w{number}.{position}"
                ip.link("set", index=_index(ip, wire), mtu=_WIRE_MTU_BYTES)
                _shape(ip, wire, spec.rail_mbit_per_s)
    _shape_node(spec, node, spec.rail_mbit_per_s)
    plug_node(spec, node)


def disconnect_node(spec: LabSpec, node: str) -> None:
    """Remove a node's namespace and netdevs; whoever is cabled to it loses carrier. Missing parts are fine."""
    unplug_node(spec, node)
    hidden, number = cables_namespace(spec.name), node_index(spec, node)
    with _translated(f"{spec.name}/{node}"):
        if hidden in netns.listnetns():
            # Removing a namespace is asynchronous; removing its links through their far ends is not.
            with NetNS(hidden) as ip:
                for wire in (f"m{number}", *(f"w{number}.{position}" for position in range(len(PORTS)))):
                    for found in ip.link_lookup(ifname=wire):
                        ip.link("del", index=found)
        if node_namespace(spec.name, node) in netns.listnetns():
            netns.remove(node_namespace(spec.name, node))


def plug_node(spec: LabSpec, node: str) -> None:
    """Give carrier to both ends of every cable of this node whose other end is switched on."""
    for port in PORTS:
        set_cable(spec, node, port, connected=True)


def unplug_node(spec: LabSpec, node: str) -> None:
    """Take carrier from both ends of every cable of this node, as when it loses power."""
    for port in PORTS:
        set_cable(spec, node, port, connected=False)


def set_cable(spec: LabSpec, node: str, port: LabPort, *, connected: bool) -> None:
    """Connect or cut one rail of the cable in a port's cage; a cage without a cable stays as it is.

    Both ends lose or gain carrier, and stay administratively up. A rail whose other node is off stays dark.
    """
    cable = cable_of(spec, node, port.cage)
    hidden = cables_namespace(spec.name)
    if cable is None or hidden not in netns.listnetns():
        return
    bridge = "switch" if cable.b is None else f"c{spec.cables.index(cable)}.{port.half}"
    wires = [_wire(spec, end, port.half) for end in cable.ends]
    with _translated(f"{spec.name}/{node}"), NetNS(hidden) as ip:
        present = [wire for wire in wires if ip.link_lookup(ifname=wire)]
        lit = connected and len(present) == len(wires)
        for wire in present:
            if lit:
                _enslave(ip, wire, bridge)
            else:
                ip.link("set", index=_index(ip, wire), state="down")


def set_rate(spec: LabSpec, node: str, port: LabPort, mbit_per_s: int) -> None:
    """Limit what one rail carries, in both directions, to a rate in Mbit/s. Raises OperationFailed."""
    number, position = node_index(spec, node), PORTS.index(port)
    with _translated(f"{spec.name}/{node}"):
        with NetNS(cables_namespace(spec.name)) as ip:
            _shape(ip, f"w{number}.{position}", mbit_per_s)
        with NetNS(node_namespace(spec.name, node)) as ip:
            _shape(ip, port.netdev, mbit_per_s)


def remove_network(lab: str) -> None:
    """Remove every namespace and netdev of a lab, whatever is left of it. Raises OperationFailed."""
    prefix = namespace_prefix(lab)
    with _translated(lab):
        with IPRoute() as ip:
            for found in ip.link_lookup(ifname=controller_netdev(lab)):
                ip.link("del", index=found)
        for name in netns.listnetns():
            if name.startswith(prefix):
                _remove_namespace(name)


def lab_namespaces(lab: str) -> tuple[str, ...]:
    """Names of the network namespaces of a lab that exist now, sorted."""
    return tuple(sorted(name for name in netns.listnetns() if name.startswith(namespace_prefix(lab))))


def controller_netdev_exists(lab: str) -> bool:
    """Whether this machine still has its netdev on the lab's management network."""
    with IPRoute() as ip:
        return bool(ip.link_lookup(ifname=controller_netdev(lab)))


def routed_networks() -> tuple[IPv4Network, ...]:
    """Networks that this machine has IPv4 routes to, from all tables, without the default route."""
    with IPRoute() as ip:
        return tuple(
            IPv4Network((route.get_attr("RTA_DST"), route["dst_len"]), strict=False)
            for route in ip.get_routes(family=2)
            if route.get_attr("RTA_DST") is not None
        )


def _add_pair(spec: LabSpec, node: str, netdev: str, wire: str) -> None:
    with IPRoute() as ip:
        ip.link(
            "add",
            ifname=wire,
            kind="veth",
            net_ns_fd=cables_namespace(spec.name),
            peer={
                "ifname": netdev,
                "net_ns_fd": node_namespace(spec.name, node),
                "address": node_mac(spec, node, netdev),
            },
        )


def _add_bridge(ip: IPRoute, name: str, *, forward_lldp: bool) -> None:
    ip.link(
        "add",
        ifname=name,
        kind="bridge",
        br_group_fwd_mask=_FORWARD_LLDP if forward_lldp else 0,
        # Without a querier on the wire, snooping would drop what IPv6 neighbour discovery says.
        br_mcast_snooping=0,
    )
    ip.link("set", index=_index(ip, name), state="up")


def _enslave(ip: IPRoute, netdev: str, bridge: str) -> None:
    ip.link("set", index=_index(ip, netdev), master=_index(ip, bridge), state="up")


def _shape_node(spec: LabSpec, node: str, mbit_per_s: int) -> None:
    with _translated(f"{spec.name}/{node}"), NetNS(node_namespace(spec.name, node)) as ip:
        for port in PORTS:
            _shape(ip, port.netdev, mbit_per_s)


def _shape(ip: IPRoute, netdev: str, mbit_per_s: int) -> None:
    bytes_per_s = mbit_per_s * 1_000_000 // 8
    ip.tc(
        "replace",
        "tbf",
        _index(ip, netdev),
        _TBF_HANDLE,
        parent=_TC_ROOT,
        rate=bytes_per_s,
        burst=_BURST_BYTES,
        limit=_BURST_BYTES + bytes_per_s * _QUEUE_MS // 1000,
        mtu=0,
    )


def _wire(spec: LabSpec, end: CableEnd, half: int) -> str:
    position = next(i for i, port in enumerate(PORTS) if port.cage == end.cage and port.half == half)
    return f"w{node_index(spec, end.node)}.{position}"


def _index(ip: IPRoute, netdev: str) -> int:
    found = ip.link_lookup(ifname=netdev)
    if not found:
        raise OperationFailed(
            f"netdev `{netdev}` of the lab is missing", remedy="start over: `sparkctl lab down`, then `sparkctl lab up`"
        )
    return int(found[0])


def _disable_ipv6(namespace: str) -> None:
    # Otherwise bridges and wire ends would answer `ping ff02::1` and look like neighbours.
    netns.pushns(namespace)
    try:
        for scope in ("all", "default"):
            setting = Path(f"/proc/sys/net/ipv6/conf/{scope}/disable_ipv6")
            if setting.exists():
                setting.write_text("1")
    finally:
        netns.popns()


def _remove_namespace(name: str) -> None:
    try:
        netns.remove(name)
    except OSError:
        # `ip netns add` killed half way leaves a plain file without a namespace mounted on it.
        Path("/run/netns", name).unlink(missing_ok=True)


@contextmanager
def _translated(where: str) -> Iterator[None]:
    try:
        yield
    except (NetlinkError, OSError) as error:
        raise OperationFailed(
            f"the kernel refused to build the lab's network: {error}",
            remedy="remove what was built with `sparkctl lab down`; the kernel needs veth, bridge and sch_tbf",
            where=where,
        ) from error
