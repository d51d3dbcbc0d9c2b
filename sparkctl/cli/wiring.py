"""The composition root: inventory, transports and templates are chosen here and nowhere else."""

from collections.abc import Callable, Sequence
from importlib import resources
from pathlib import Path

from sparkctl.errors import UsageError
from sparkctl.inventory.load import inventory_path, load_cluster
from sparkctl.inventory.model import Cluster, Host
from sparkctl.transport.command import Command, Transport
from sparkctl.transport.ssh import SshTransport


def asset(name: str) -> str:
    """The text of a shipped file such as `templates/netplan.yaml.j2`.

    In a wheel it lies in the package, in a checkout in the top-level folder; the package comes first.
    Raises FileNotFoundError for a name that does not exist, which is a bug.
    """
    return asset_path(name).read_text(encoding="utf-8")


def asset_path(name: str) -> Path:
    """Where a shipped file or folder lies on disk; see `asset`."""
    package = Path(str(resources.files("sparkctl")))
    for root in (package / "_assets", package.parent):
        if (root / name).exists():
            return root / name
    raise FileNotFoundError(name)


def cluster_of(inventory: Path | None, host_names: Sequence[str]) -> Cluster:
    """The cluster of the inventory in force, narrowed to `host_names` if any.

    Raises UsageError, InvalidInventory, and UsageError for a host that is not in it.
    """
    cluster = load_cluster(inventory_path(inventory))
    known = [host.name for host in cluster.hosts]
    for name in host_names:
        if name not in known:
            raise UsageError(
                f"there is no host {name}", where=cluster.source, remedy=f"choose from: {', '.join(known)}"
            )
    return cluster.narrowed(tuple(host_names))


def transports_for(
    hosts: Sequence[Host], observer: Callable[[str, Command], None] | None = None
) -> tuple[Transport, ...]:
    """One transport per host, in order; they connect when first used."""
    return tuple(SshTransport(host, observer) for host in hosts)
