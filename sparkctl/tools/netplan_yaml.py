"""netplan: what the files in /etc/netplan say about network devices."""

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from ipaddress import IPv4Interface

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from sparkctl.errors import UnexpectedOutput

# Sections of `network:` whose entries describe devices (netplan-yaml reference); the others are settings.
_DEVICE_SECTIONS = ("ethernets", "bonds", "bridges", "vlans", "wifis", "modems", "tunnels", "vrfs", "dummy-devices")


@dataclass(frozen=True)
class NetplanDevice:
    """One device definition of one file.

    name: its key in the file, which is the netdev's name unless `match` is used.
    match_name: glob or None; match_mac: lower case or None. members: netdevs taken into a bond, bridge or VLAN.
    addresses: static IPv4 addresses with prefix, in file order. link_local: IPv4 link-local addressing is on.
    mtu_bytes: None when the file leaves it open.
    """

    section: str
    name: str
    match_name: str | None = None
    match_mac: str | None = None
    addresses: tuple[IPv4Interface, ...] = ()
    dhcp4: bool = False
    link_local: bool = False
    mtu_bytes: int | None = None
    members: tuple[str, ...] = ()

    def covers(self, netdev: str, mac: str) -> bool:
        """Whether this definition configures the netdev, by name, pattern, MAC or membership."""
        if netdev in self.members:
            return True
        if self.match_name is None and self.match_mac is None:
            return self.section == "ethernets" and self.name == netdev
        by_name = self.match_name is None or fnmatchcase(netdev, self.match_name)
        return by_name and (self.match_mac is None or self.match_mac == mac.lower())

    @property
    def addresses_something(self) -> bool:
        """Whether the device gets IPv4 addresses by this definition, or serves another one."""
        return bool(self.addresses or self.dhcp4 or self.link_local or self.members)


def parse_netplan(text: str, *, path: str, host: str = "") -> tuple[NetplanDevice, ...]:
    """The device definitions of one netplan file in file order; empty for a file without devices.

    text: YAML 1.1 as netplan reads it (`no` is false). Raises UnexpectedOutput, naming host and path, when it is not
    YAML or not shaped like netplan. Source: netplan-yaml reference, https://netplan.readthedocs.io.
    """
    reader = YAML(typ="safe", pure=True)
    reader.version = (1, 1)
    try:
        document = reader.load(text)
    except YAMLError as error:
        raise _unreadable(path, host, " ".join(str(error).split())) from error
    network = _mapping(_mapping(document, path, host).get("network"), path, host)
    devices: list[NetplanDevice] = []
    for section in _DEVICE_SECTIONS:
        for name, body in _mapping(network.get(section), path, host).items():
            devices.append(_device(section, str(name), _mapping(body, path, host), path, host))
    return tuple(devices)


def _device(section: str, name: str, body: Mapping[str, object], path: str, host: str) -> NetplanDevice:
    match = _mapping(body.get("match"), path, host)
    mac = match.get("macaddress")
    members = [str(member) for member in _listed(body.get("interfaces"))]
    if section == "vlans" and body.get("link") is not None:
        members.append(str(body["link"]))
    mtu = body.get("mtu")
    return NetplanDevice(
        section=section,
        name=name,
        match_name=None if match.get("name") is None else str(match["name"]),
        match_mac=None if mac is None else str(mac).lower(),
        addresses=tuple(_ipv4(_listed(body.get("addresses")), path, host)),
        dhcp4=body.get("dhcp4") is True,
        link_local="ipv4" in [str(word).lower() for word in _listed(body.get("link-local"))],
        mtu_bytes=mtu if isinstance(mtu, int) else None,
        members=tuple(members),
    )


def _ipv4(entries: list[object], path: str, host: str) -> list[IPv4Interface]:
    found: list[IPv4Interface] = []
    for entry in entries:
        # An address may carry options: `- 10.0.0.1/24: {label: …}`.
        word = str(next(iter(entry))) if isinstance(entry, Mapping) and entry else str(entry)
        if ":" in word:
            continue
        try:
            found.append(IPv4Interface(word))
        except ValueError as error:
            raise _unreadable(path, host, f"`{word}` is not an address") from error
    return found


def _mapping(value: object, path: str, host: str) -> Mapping[str, object]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise _unreadable(path, host, f"a mapping was expected, not `{str(value)[:40]}`")
    return value


def _listed(value: object) -> list[object]:
    return list(value) if isinstance(value, list | tuple) else []


def _unreadable(path: str, host: str, reason: str) -> UnexpectedOutput:
    return UnexpectedOutput(
        f"{path} cannot be understood: {reason}",
        where=host,
        remedy=f"correct the file; `sudo netplan generate` on {host or 'the host'} shows the place",
    )
