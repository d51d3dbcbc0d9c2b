"""The words for cables and rails, shared by everything that plans: no decisions here, only values."""

from dataclasses import dataclass
from enum import StrEnum

from sparkctl.facts.model import Cage


class Topology(StrEnum):
    """How a cluster's Sparks are cabled. `none`: no cable between them; `mixed`: something we do not plan yet."""

    NONE = "none"
    DIRECT = "direct"
    DUAL = "dual"
    RING = "ring"
    SWITCH = "switch"
    MIXED = "mixed"


@dataclass(frozen=True)
class CageEnd:
    """One cage of one host, as one end of a cable."""

    host: str
    cage: Cage

    def __str__(self) -> str:
        return f"{self.host}:{self.cage}"


@dataclass(frozen=True)
class RailEnd:
    """One network function at one end of a rail."""

    host: str
    netdev: str
    rdma_device: str | None
    mac: str


@dataclass(frozen=True)
class Rail:
    """One pair of facing network functions. Both ends lie in the same PCI domain (first twin to first twin)."""

    pci_domain: str
    a: RailEnd
    b: RailEnd

    def end(self, host: str) -> RailEnd:
        """Our end as seen from `host`. Raises KeyError when the rail does not end there."""
        return {self.a.host: self.a, self.b.host: self.b}[host]

    def peer(self, host: str) -> RailEnd:
        """The far end as seen from `host`. Raises KeyError when the rail does not end there."""
        return {self.a.host: self.b, self.b.host: self.a}[host]


@dataclass(frozen=True)
class Cable:
    """One cable between two cages, with the rails that run through it: two when both twins are up on both ends.

    a is the host that comes first in the inventory.
    """

    host_a: str
    cage_a: Cage
    host_b: str
    cage_b: Cage
    rails: tuple[Rail, ...]

    def __str__(self) -> str:
        return f"{self.host_a}:{self.cage_a} – {self.host_b}:{self.cage_b}"


@dataclass(frozen=True)
class Cabling:
    """All cables of a cluster in inventory order, and what they add up to.

    switches: per switch the cages of ours that hear each other through it; none of them is in `cables`.
    self_cabled: hosts whose two cages hear each other and nobody else.
    strangers: cages that hear only machines which are not in the cluster.
    """

    topology: Topology
    cables: tuple[Cable, ...]
    switches: tuple[tuple[CageEnd, ...], ...] = ()
    self_cabled: tuple[str, ...] = ()
    strangers: tuple[CageEnd, ...] = ()
