"""Which hosts a command is about when they need not stand in an inventory, and the first contact with them."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace

from sparkctl.cli.session import Session
from sparkctl.errors import HostKeyRefused, SparkctlError, UsageError
from sparkctl.facts.gather import gather_cluster
from sparkctl.facts.model import HostFacts
from sparkctl.inventory.load import inventory_path
from sparkctl.inventory.model import Cluster, Host
from sparkctl.inventory.target import parse_target
from sparkctl.report.render import render_table
from sparkctl.transport.fanout import Outcomes
from sparkctl.transport.hostkeys import Trust, offered_key, pin_key
from sparkctl.transport.mdns import BROWSE_SECONDS, browse_ssh

_DEFAULT_NAME = "sparks"


@dataclass(frozen=True)
class Search:
    """Which hosts to read. from_file: they stand in an inventory. named: by a file or on the command line."""

    cluster: Cluster
    from_file: bool
    named: bool


def find_hosts(session: Session, words: Sequence[str]) -> Search:
    """The hosts named, else those of the inventory, else those that announce themselves."""
    if words:
        named = tuple(dict.fromkeys(parse_target(word) for word in words))
        return Search(Cluster(_DEFAULT_NAME, named), from_file=False, named=True)
    if session.inventory is not None or _has_inventory():
        return Search(session.cluster, from_file=True, named=True)
    with session.phase(f"no inventory; listening on the local network for {BROWSE_SECONDS:g} s"):
        announced = browse_ssh()
    found = tuple(
        Host(name=machine.name, address=machine.addresses[0], port=machine.port)
        for machine in announced
        if machine.addresses
    )
    return Search(Cluster(_DEFAULT_NAME, found), from_file=False, named=False)


def read_hosts(session: Session, search: Search, *, yes: bool) -> Outcomes[HostFacts]:
    """Facts of all hosts of the search.

    New keys of hosts named on the command line can be pinned on the way, after a question, because without an
    inventory there is no `hosts trust` for them. Raises Interrupted when the user does not want that.
    """
    transports = session.open_transports(search.cluster)
    with session.phase(f"reading {len(transports)} hosts"):
        outcomes = gather_cluster(transports)
    refused = [host for host in search.cluster.hosts if isinstance(outcomes.errors.get(host.name), HostKeyRefused)]
    may_ask = yes or (sys.stdin.isatty() and not session.json)
    if search.from_file or not search.named or not refused or not may_ask:
        return replace(outcomes, errors={name: _advised(search, error) for name, error in outcomes.errors.items()})
    new = [key for key in map(offered_key, refused) if key.trust is Trust.NEW]
    if not new:
        return outcomes
    rows = [(key.host.address, key.key_type, key.fingerprint) for key in new]
    session.show(render_table(("new host", "key", "fingerprint"), rows))
    session.say("Compare each with `ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub` on the machine itself.")
    session.confirm(f"Pin {len(new)} key{'s' if len(new) > 1 else ''}?", yes=yes)
    for key in new:
        pin_key(key)
    with session.phase(f"reading {len(transports)} hosts"):
        return gather_cluster(transports)


def _has_inventory() -> bool:
    try:
        inventory_path(None)
    except UsageError:
        return False
    return True


def _advised(search: Search, error: SparkctlError) -> SparkctlError:
    """The error with a way out that works without an inventory."""
    if search.from_file or not isinstance(error, HostKeyRefused):
        return error
    return HostKeyRefused(
        error.message,
        where=error.where,
        remedy="`sparkctl discover HOST` on a terminal shows the key and asks to pin it; remove a key that has changed "
        "first, after a look at the machine: `ssh-keygen -R HOST`",
    )
