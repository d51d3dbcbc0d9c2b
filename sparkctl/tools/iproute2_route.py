"""ip route get: which way a packet to one address would leave."""

from dataclasses import dataclass
from ipaddress import IPv4Address

from sparkctl.transport.command import Command, CommandResult
from sparkctl.transport.printed import json_rows, unexpected


@dataclass(frozen=True)
class ChosenRoute:
    """The kernel's choice. gateway: None when the destination is on the link itself."""

    netdev: str
    source: IPv4Address | None
    gateway: IPv4Address | None


def route_get(peer: IPv4Address, source: IPv4Address, netdev: str) -> Command:
    """Asks for the way to `peer` as a program bound to `source` and `netdev` would get it (NemoClaw's check)."""
    argv = ("ip", "-j", "-4", "route", "get", str(peer), "from", str(source), "oif", netdev)
    return Command(argv, timeout_s=5)


def route_to(peer: IPv4Address) -> Command:
    """Asks for the way to `peer` as a program that binds nothing would get it."""
    return Command(("ip", "-j", "-4", "route", "get", str(peer)), timeout_s=5)


def parse_route_get(result: CommandResult) -> ChosenRoute | None:
    """The chosen route; None when the kernel has none (`Network is unreachable`, or the source is not ours).

    Raises UnexpectedOutput when the output is not a JSON list with one route.
    Source: ip-route(8); capture iproute2_route/<machine>--*.json.
    """
    if not result.ok:
        return None
    rows = json_rows(result, "ip")
    try:
        (row,) = rows
        source, gateway = row.get("prefsrc") or row.get("from") or row.get("src"), row.get("gateway")
        return ChosenRoute(
            netdev=str(row["dev"]),
            source=IPv4Address(str(source)) if source else None,
            gateway=IPv4Address(str(gateway)) if gateway else None,
        )
    except (KeyError, ValueError) as error:
        raise unexpected(result, "ip") from error
