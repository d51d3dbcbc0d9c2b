"""Inventories as text: a whole file for `sparkctl discover --write`, and their hosts as a table."""

import json
import re
from collections.abc import Sequence

from sparkctl.inventory.model import Host
from sparkctl.report.render import render_table

_HEAD = """\
# Written by `sparkctl discover`. What can be discovered is left out; inventory/example.yaml documents every field.
cluster: {name}

# The first host is the head: it serves the API. Addresses are those of the management network, never of a cable.
hosts:
"""
# Text that YAML reads as itself: no number, no date, no `yes` or `null`, no sign with a meaning.
_PLAIN = re.compile(r"[A-Za-z/~][A-Za-z0-9_./-]*")
_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})


def render_inventory(name: str, hosts: Sequence[Host]) -> str:
    """The whole file: cluster name and per host name, address and user, with port, key and known_hosts where set."""
    return _HEAD.format(name=_scalar(name)) + "".join(_host(host) for host in hosts)


def render_host_table(hosts: Sequence[Host]) -> tuple[str, ...]:
    """The hosts of an inventory with defaults filled in, one line each."""
    rows = [(host.name, host.address, host.port, host.user or "", host.key or "") for host in hosts]
    return render_table(("host", "address", "port", "user", "key"), rows)


def _host(host: Host) -> str:
    fields: dict[str, str] = {"name": host.name, "address": host.address}
    optional = {"user": host.user, "key": host.key, "known_hosts": host.known_hosts}
    fields |= {field: value for field, value in optional.items() if value is not None}
    lines = [f"{field}: {_scalar(value)}" for field, value in fields.items()]
    if host.port != 22:
        lines.insert(2, f"port: {host.port}")
    return "  - " + "\n    ".join(lines) + "\n"


def _scalar(text: str) -> str:
    plain = _PLAIN.fullmatch(text) and text.lower() not in _WORDS
    # A JSON string is a YAML string in double quotes.
    return text if plain or re.fullmatch(r"\d+(\.\d+){3}", text) else json.dumps(text, ensure_ascii=False)
