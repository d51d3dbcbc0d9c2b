"""What the operator has and wishes: the inventory file as typed values. Everything discoverable may be absent."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Network
from types import MappingProxyType

# A private pool that neither NVIDIA's playbooks (192.168.x) nor Sync (10.100.x) nor spark-vllm-docker (10.20.x) use,
# so that leftovers of theirs never overlap with ours. Chosen by us; every plan checks it against the nodes' routes.
DEFAULT_POOL = IPv4Network("10.177.0.0/16")
# Jumbo frames: NemoClaw requires >= 9000 and NVIDIA's station playbook exactly 9000; RoCE path MTU becomes 4096.
DEFAULT_MTU_BYTES = 9000
# Below, an IPv6 link-local address would not fit its minimum (RFC 8200); above, the ConnectX-7 takes no frames (mlx5).
MIN_MTU_BYTES, MAX_MTU_BYTES = 1280, 9978
# One QSFP56 cage of a GB10 box: 200GbE (NVIDIA Sync documentation; PB-CONN).
GB10_CAGE_GBIT_PER_S = 200.0


@dataclass(frozen=True)
class Host:
    """One machine of the cluster and how to reach it.

    address: name or IP address on the management network, never a rail.
    key: path of the private SSH key; None means the agent and the user's default keys.
    known_hosts: file with pinned host keys; None means the user's own files.
    """

    name: str
    address: str
    user: str | None = None
    port: int = 22
    key: str | None = None
    known_hosts: str | None = None


@dataclass(frozen=True)
class LinkWishes:
    """Wishes for the links between the Sparks.

    pool: network the rail subnets are taken from. mtu_bytes: layer-3 size on every rail.
    expect_gbit_per_s: what one cable should carry, both twins together; the floors of tests are fractions of it.
    """

    pool: IPv4Network = DEFAULT_POOL
    mtu_bytes: int = DEFAULT_MTU_BYTES
    expect_gbit_per_s: float = GB10_CAGE_GBIT_PER_S


@dataclass(frozen=True)
class ServingWishes:
    """Wishes for serving. None means: take it from the recipe or the default.

    model: path on the nodes, or a name below models_dir, or a Hugging Face id present in a node's cache.
    models_dir: folder on each node where models are kept; `~` is the SSH user's home.
    engine_args, env: appended to what the plan computes; env is set in every rank's container.
    """

    model: str | None = None
    image: str | None = None
    models_dir: str = "~/models"
    port: int = 8000
    master_port: int = 25000
    pp: int | None = None
    tp: int | None = None
    engine_args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True)
class Cluster:
    """One inventory file. `hosts` keeps the file's order: the first host is the head."""

    name: str
    hosts: tuple[Host, ...]
    links: LinkWishes = LinkWishes()
    serving: ServingWishes = ServingWishes()
    source: str = ""

    def narrowed(self, names: tuple[str, ...]) -> "Cluster":
        """The same cluster with only the named hosts, in the file's order; all of them when `names` is empty."""
        if not names:
            return self
        kept = tuple(host for host in self.hosts if host.name in names)
        return Cluster(self.name, kept, self.links, self.serving, self.source)
