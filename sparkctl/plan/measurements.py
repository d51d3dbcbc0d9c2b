"""What is measured on the links, in which order, and the floor that each measurement must reach."""

from dataclasses import dataclass
from enum import StrEnum
from ipaddress import IPv4Address

from sparkctl.plan.links import LinkPlan, PlannedPort

# NVIDIA's health check calls one twin of a 200 Gb/s cable healthy above 80 Gb/s (performance_benchmarking_guide.md in
# dgx-spark-playbooks; 93-112 Gb/s are usual).
RAIL_FLOOR_FRACTION = 80 / 200
# TCP over both twins with jumbo frames reached 160-198 Gb/s (servethehome.com); 96 is an untuned pair (wisp.net.au).
TOTAL_FLOOR_FRACTION = 160 / 200
# A ConnectX-7 that started throttled gives 8-25 Gb/s per twin (same guide; PR #108, forum 363461).
THROTTLED_RAIL_FRACTION = 25 / 200
# Below this the whole link carries less than one healthy twin should alone.
TOTAL_FAIL_FRACTION = RAIL_FLOOR_FRACTION
# Streams per rail: 16 streams reached 96 Gb/s (catharsis.net.au), four 93 Gb/s (elizabetht/spark), one only 34.
STREAMS_PER_RAIL = 8
DEFAULT_SECONDS = 3
# Away from iperf3's default 5201, which a server of the user's own may hold, and below Linux's ephemeral ports
# (32768 and up), where any connection of ours or theirs may sit on the port just then.
_FIRST_PORT = 15201


class Scope(StrEnum):
    """What carries the traffic of a measurement."""

    RAIL = "rail"
    TOTAL = "total"


@dataclass(frozen=True)
class Transfer:
    """One iperf3 client and its server. netdev: the sender's port."""

    sender: str
    receiver: str
    netdev: str
    peer_netdev: str
    source: IPv4Address
    target: IPv4Address
    port: int


@dataclass(frozen=True)
class Measurement:
    """Transfers that run at the same time in one direction, and the marks of their sum.

    floor_gbit_per_s: healthy at or above. fail_gbit_per_s: broken below; degraded in between.
    """

    scope: Scope
    sender: str
    receiver: str
    transfers: tuple[Transfer, ...]
    seconds: int
    streams: int
    floor_gbit_per_s: float
    fail_gbit_per_s: float

    @property
    def subject(self) -> str:
        """Such as `spark-a → spark-b, enp1s0f0np0` or `spark-a → spark-b, all 2 rails`."""
        via = self.transfers[0].netdev if self.scope is Scope.RAIL else f"all {len(self.transfers)} rails"
        return f"{self.sender} → {self.receiver}, {via}"


def plan_measurements(
    plan: LinkPlan, *, seconds: int = DEFAULT_SECONDS, streams: int = STREAMS_PER_RAIL
) -> tuple[Measurement, ...]:
    """Each rail alone in both directions, then all rails of each pair of hosts together in both directions.

    Floors are fractions of the plan's expect_gbit_per_s, which is for all rails together: 80 of 200 for one rail, 160
    of 200 for all. Measurements are meant to run one after the other; their server ports differ.
    """
    port = _FIRST_PORT
    planned: list[Measurement] = []
    for pair in plan.rails:
        for near, far in (pair, pair[::-1]):
            planned.append(_measurement(plan, Scope.RAIL, ((near, far),), port, seconds, streams))
            port += 1
    for hosts in dict.fromkeys((near.host, far.host) for near, far in plan.rails):
        rails = tuple(pair for pair in plan.rails if (pair[0].host, pair[1].host) == hosts)
        for ends in (rails, tuple(pair[::-1] for pair in rails)):
            planned.append(_measurement(plan, Scope.TOTAL, ends, port, seconds, streams))
            port += len(ends)
    return tuple(planned)


def _measurement(
    plan: LinkPlan,
    scope: Scope,
    ends: tuple[tuple[PlannedPort, PlannedPort], ...],
    first_port: int,
    seconds: int,
    streams: int,
) -> Measurement:
    floor, fail = (
        (RAIL_FLOOR_FRACTION, THROTTLED_RAIL_FRACTION)
        if scope is Scope.RAIL
        else (TOTAL_FLOOR_FRACTION, TOTAL_FAIL_FRACTION)
    )
    return Measurement(
        scope=scope,
        sender=ends[0][0].host,
        receiver=ends[0][1].host,
        transfers=tuple(_transfer(near, far, first_port + index) for index, (near, far) in enumerate(ends)),
        seconds=seconds,
        streams=streams,
        floor_gbit_per_s=floor * plan.expect_gbit_per_s,
        fail_gbit_per_s=fail * plan.expect_gbit_per_s,
    )


def _transfer(near: PlannedPort, far: PlannedPort, port: int) -> Transfer:
    return Transfer(near.host, far.host, near.netdev, far.netdev, near.address.ip, far.address.ip, port)
