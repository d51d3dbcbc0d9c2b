"""Hosts that were found rather than named: each machine once, under the name it calls itself."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from sparkctl.facts.model import HostFacts
from sparkctl.inventory.model import Host

_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?")


def distinct_hosts(
    hosts: Iterable[Host], facts: Mapping[str, HostFacts]
) -> tuple[tuple[Host, ...], Mapping[str, HostFacts]]:
    """The hosts that could be read and their facts, renamed alike, in the order of `hosts`.

    facts: by the names in `hosts`. A machine reached by a second address is dropped. A host name that an inventory
    cannot hold, or that two machines share, is replaced by `host-1`, `host-2`, … in that order.
    """
    seen: set[tuple[str, str]] = set()
    read: list[Host] = []
    for host in hosts:
        found = facts.get(host.name)
        # Machines cloned from one image share the machine ID, not the host name.
        if found is None or (found.machine_id and (found.machine_id, found.hostname) in seen):
            continue
        seen.add((found.machine_id, found.hostname))
        read.append(host)
    short = [facts[host.name].hostname.partition(".")[0] for host in read]
    names = [
        name if _NAME.fullmatch(name) and short.count(name) == 1 else f"host-{index}"
        for index, name in enumerate(short, start=1)
    ]
    renamed = tuple(replace(host, name=name) for host, name in zip(read, names, strict=True))
    return renamed, {name: replace(facts[host.name], host=name) for host, name in zip(read, names, strict=True)}
