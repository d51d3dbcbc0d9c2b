"""Who announces SSH on the local network (mDNS, service `_ssh._tcp`). Sends nothing beyond the local link."""

import time
from dataclasses import dataclass

from zeroconf import Error, IPVersion, ServiceBrowser, ServiceInfo, ServiceListener, Zeroconf

from sparkctl.errors import OperationFailed

SSH_SERVICE = "_ssh._tcp.local."
# Answers come within a second; the library asks again after one and two seconds for those that were lost.
BROWSE_SECONDS = 3.0
_DETAILS_TIMEOUT_MS = 500


@dataclass(frozen=True)
class Announced:
    """A machine that announces SSH.

    name: as it calls itself, such as `spark-1b3b`. addresses: IPv4 first, link-local ones with their interface.
    """

    name: str
    addresses: tuple[str, ...]
    port: int


class _Names(ServiceListener):
    """Collects names as they are announced."""

    def __init__(self) -> None:
        self.found: set[str] = set()

    def add_service(self, zc: Zeroconf, type_: str, name: str) -> None:  # noqa: ARG002  # the library's signature
        self.found.add(name)

    def update_service(self, zc: Zeroconf, type_: str, name: str) -> None:
        """Addresses are read at the end."""

    def remove_service(self, zc: Zeroconf, type_: str, name: str) -> None:  # noqa: ARG002  # the library's signature
        self.found.discard(name)


def browse_ssh(seconds: float = BROWSE_SECONDS) -> tuple[Announced, ...]:
    """Everybody heard within that time, sorted by name; empty when nobody announces SSH.

    Raises OperationFailed when this machine cannot send multicast.
    """
    try:
        zeroconf = Zeroconf(ip_version=IPVersion.All)
    except (OSError, Error) as error:
        raise OperationFailed(
            f"cannot browse the local network: {error}", remedy="name the hosts: `sparkctl discover ADDRESS ADDRESS`"
        ) from error
    try:
        names = _Names()
        ServiceBrowser(zeroconf, SSH_SERVICE, listener=names)
        time.sleep(seconds)
        infos = [ServiceInfo(SSH_SERVICE, name) for name in sorted(names.found)]
        return tuple(_announced(info) for info in infos if info.request(zeroconf, _DETAILS_TIMEOUT_MS))
    finally:
        zeroconf.close()


def _announced(info: ServiceInfo) -> Announced:
    addresses = (*info.parsed_addresses(IPVersion.V4Only), *info.parsed_scoped_addresses(IPVersion.V6Only))
    return Announced(info.get_name(), addresses, info.port or 22)
