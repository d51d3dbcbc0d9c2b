"""ip(8): netdevs with their addresses, and routes."""

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Interface, IPv4Network, IPv6Address, IPv6Interface
from typing import TypedDict, cast

from sparkctl.transport.command import Command, CommandResult
from sparkctl.transport.printed import json_rows, unexpected

NETDEVS = Command(("ip", "-j", "-d", "address", "show"), timeout_s=5)
# All tables, because a VPN keeps its routes in a table of its own and a rail subnet must not collide with those either.
ROUTES = Command(("ip", "-j", "-4", "-d", "route", "show", "table", "all"), timeout_s=5)

_FORWARDING_TYPES = ("unicast", "")


@dataclass(frozen=True)
class Netdev:
    """A network interface with its addresses.

    mac: lower case with colons, empty for interfaces without one (tunnels).
    admin_up: the flag UP. carrier: the flag LOWER_UP, which the kernel clears while the interface is down.
    kind: `veth`, `bridge`, `vlan`, … as `ip -d` calls it; empty for hardware.
    """

    name: str
    mac: str
    mtu_bytes: int
    admin_up: bool
    carrier: bool
    kind: str
    ipv4: tuple[IPv4Interface, ...]
    ipv6: tuple[IPv6Interface, ...]

    @property
    def link_local(self) -> IPv6Address | None:
        """The first fe80:: address; None when IPv6 is off on this interface."""
        return next((address.ip for address in self.ipv6 if address.ip.is_link_local), None)


@dataclass(frozen=True)
class KernelRoute:
    """A route that forwards packets out of a netdev. gateway: None when the destination is on the link."""

    destination: IPv4Network
    netdev: str
    gateway: IPv4Address | None


class _AddressRow(TypedDict, total=False):
    family: str
    local: str
    prefixlen: int


class _LinkInfo(TypedDict, total=False):
    info_kind: str


class _LinkRow(TypedDict, total=False):
    ifname: str
    address: str
    mtu: int
    flags: list[str]
    linkinfo: _LinkInfo
    addr_info: list[_AddressRow]


class _RouteRow(TypedDict, total=False):
    type: str
    dst: str
    dev: str
    gateway: str


def parse_netdevs(result: CommandResult) -> tuple[Netdev, ...] | None:
    """All interfaces in the kernel's order; None where there is no `ip` that prints JSON (iproute2 before 4.13).

    Raises UnexpectedOutput when the output is not a JSON list of links.
    Source: ip-address(8); capture iproute2/<machine>--address.json.
    """
    if not result.ok:
        return None
    try:
        # iproute2 prints `{}` for what it filtered out.
        return tuple(_netdev(row) for row in cast(list[_LinkRow], json_rows(result, "ip")) if row)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise unexpected(result, "ip") from error


def parse_routes(result: CommandResult) -> tuple[KernelRoute, ...] | None:
    """Routes of all tables without the kernel's own local and broadcast ones; None where `ip` cannot tell.

    A route over several next hops is left out: it names no single netdev.
    Raises UnexpectedOutput when the output is not a JSON list of routes.
    Source: ip-route(8); capture iproute2/<machine>--route.json.
    """
    if not result.ok:
        return None
    try:
        rows = cast(list[_RouteRow], json_rows(result, "ip"))
        return tuple(_route(row) for row in rows if row.get("type", "") in _FORWARDING_TYPES and "dev" in row)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise unexpected(result, "ip") from error


def _netdev(row: _LinkRow) -> Netdev:
    flags = row["flags"]
    texts = {
        family: [f"{entry['local']}/{entry['prefixlen']}" for entry in row.get("addr_info", []) if _is(entry, family)]
        for family in ("inet", "inet6")
    }
    return Netdev(
        name=row["ifname"],
        mac=row.get("address", "").lower(),
        mtu_bytes=int(row["mtu"]),
        admin_up="UP" in flags,
        carrier="LOWER_UP" in flags,
        kind=row.get("linkinfo", {}).get("info_kind", ""),
        ipv4=tuple(IPv4Interface(text) for text in texts["inet"]),
        ipv6=tuple(IPv6Interface(text) for text in texts["inet6"]),
    )


def _is(entry: _AddressRow, family: str) -> bool:
    return entry.get("family") == family and "local" in entry


def _route(row: _RouteRow) -> KernelRoute:
    destination = "0.0.0.0/0" if row["dst"] == "default" else row["dst"]
    gateway = row.get("gateway")
    return KernelRoute(IPv4Network(destination), row["dev"], IPv4Address(gateway) if gateway else None)
