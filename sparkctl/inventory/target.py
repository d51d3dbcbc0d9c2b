"""Hosts named on the command line: `[user@]address[:port]`."""

import re

from sparkctl.errors import UsageError
from sparkctl.inventory.model import Host

# An IPv6 address with a port stands in brackets, as in a URL; alone it may stand without.
_TARGET = re.compile(r"(?:(?P<user>[^@\s]+)@)?(?:\[(?P<v6>[^\]\s]+)\]|(?P<address>[^@\s\[\]:]+))(?::(?P<port>\d+))?")


def parse_target(text: str) -> Host:
    """The host that such a word names; its name is the address as typed. Raises UsageError for anything else."""
    bare_v6 = text.rpartition("@")[2].count(":") > 1 and "[" not in text
    match = _TARGET.fullmatch(text if not bare_v6 else _bracketed(text))
    if match is None or not 0 < int(match["port"] or 22) < 65536:
        raise UsageError(
            f"`{text}` names no host", remedy="write it as [user@]address[:port], such as nvidia@spark-5c2d.local"
        )
    address = match["v6"] or match["address"]
    return Host(name=address, address=address, user=match["user"], port=int(match["port"] or 22))


def _bracketed(text: str) -> str:
    user, at, address = text.rpartition("@")
    return f"{user}{at}[{address}]"
