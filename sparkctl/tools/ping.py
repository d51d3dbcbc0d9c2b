"""ping (iputils): does a packet of exactly this size get through?"""

import re
from dataclasses import dataclass
from ipaddress import IPv4Address

from sparkctl.transport.command import Command, CommandResult
from sparkctl.transport.printed import unexpected

# IPv4 header (20) and ICMP header (8): what a ping adds to its payload.
ICMP_OVERHEAD_BYTES = 28
_SUMMARY = re.compile(r"^(\d+) packets transmitted, (\d+) received", re.MULTILINE)
_LOCAL_MTU = re.compile(r"message too long, mtu=(\d+)")
_PATH_MTU = re.compile(r"Frag needed and DF set \(mtu = (\d+)\)")
_AVERAGE = re.compile(r"^rtt min/avg/max/mdev = [\d.]+/([\d.]+)/", re.MULTILINE)


@dataclass(frozen=True)
class PingResult:
    """Packets sent and answered. mtu_limit_bytes: the MTU that stood in the way, if ping was told; average_ms: None
    without an answer.
    """

    sent: int
    received: int
    mtu_limit_bytes: int | None = None
    average_ms: float | None = None


def full_size_ping(peer: IPv4Address, source: IPv4Address, mtu_bytes: int) -> Command:
    """Two packets of exactly `mtu_bytes` that must not be fragmented, one second to answer each."""
    size = str(mtu_bytes - ICMP_OVERHEAD_BYTES)
    argv = ("ping", "-n", "-M", "do", "-s", size, "-c", "2", "-i", "0.2", "-W", "1", "-I", str(source), str(peer))
    return Command(argv, timeout_s=6)


def small_ping(peer: IPv4Address, source: IPv4Address) -> Command:
    """Two small packets: tells a dead rail from one that only loses full-size packets."""
    argv = ("ping", "-n", "-c", "2", "-i", "0.2", "-W", "1", "-I", str(source), str(peer))
    return Command(argv, timeout_s=6)


def parse_ping(result: CommandResult) -> PingResult:
    """The summary; nothing received when ping could not even start (no such source address, no route).

    Raises UnexpectedOutput when ping ran to its end without a summary.
    Source: ping(8) of iputils, exit codes 0 answered, 1 no answer, 2 other; captures ping/<machine>--*.out.
    """
    text = f"{result.stdout}\n{result.stderr}"
    limit = _LOCAL_MTU.search(text) or _PATH_MTU.search(text)
    mtu_limit_bytes = int(limit[1]) if limit else None
    summary = _SUMMARY.search(result.stdout)
    if summary is None:
        if result.ok:
            raise unexpected(result, "ping")
        return PingResult(0, 0, mtu_limit_bytes)
    average = _AVERAGE.search(result.stdout)
    return PingResult(int(summary[1]), int(summary[2]), mtu_limit_bytes, float(average[1]) if average else None)
