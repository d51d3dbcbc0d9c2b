"""What would be done to a host: a closed set of changes, each with the difference it makes."""

import difflib
from dataclasses import dataclass
from ipaddress import IPv4Interface


@dataclass(frozen=True)
class WriteNetplan:
    """The netplan file gets new bytes. old_text: None when there is no file yet."""

    host: str
    path: str
    old_text: str | None
    new_text: str

    def diff(self) -> tuple[str, ...]:
        """Unified diff, one entry per line, without line ends."""
        return _unified(self.host, self.path, self.old_text, self.new_text)


@dataclass(frozen=True)
class RestoreNetplan:
    """The netplan file becomes what it was before sparkctl.

    old_text: as it is now, None when absent. new_text: None removes the file.
    """

    host: str
    path: str
    old_text: str | None
    new_text: str | None

    def diff(self) -> tuple[str, ...]:
        """Unified diff, one entry per line, without line ends; empty when the bytes are equal already."""
        return _unified(self.host, self.path, self.old_text, self.new_text)


@dataclass(frozen=True)
class AlignPort:
    """A port that runs differently from its plan. addresses: IPv4 with prefix; drop: ours from an earlier plan."""

    host: str
    netdev: str
    old_addresses: tuple[IPv4Interface, ...]
    new_addresses: tuple[IPv4Interface, ...]
    old_mtu_bytes: int
    new_mtu_bytes: int
    old_admin_up: bool = True

    def diff(self) -> tuple[str, ...]:
        """Lines `- …` and `+ …` of what differs, after one line with host and netdev."""
        lines = [f"{self.host}: {self.netdev}"]
        if not self.old_admin_up:
            lines += ["- down", "+ up"]
        if self.old_addresses != self.new_addresses:
            lines += [f"- address {_joined(self.old_addresses)}", f"+ address {_joined(self.new_addresses)}"]
        if self.old_mtu_bytes != self.new_mtu_bytes:
            lines += [f"- mtu {self.old_mtu_bytes}", f"+ mtu {self.new_mtu_bytes}"]
        return tuple(lines)


Change = WriteNetplan | RestoreNetplan | AlignPort


def _unified(host: str, path: str, old: str | None, new: str | None) -> tuple[str, ...]:
    return tuple(
        difflib.unified_diff(
            (old or "").splitlines(),
            (new or "").splitlines(),
            fromfile="/dev/null" if old is None else f"{host}:{path}",
            tofile="/dev/null" if new is None else f"{host}:{path}",
            lineterm="",
        )
    )


def _joined(addresses: tuple[IPv4Interface, ...]) -> str:
    return ", ".join(str(address) for address in addresses) or "none"
