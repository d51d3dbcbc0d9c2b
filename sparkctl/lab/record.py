"""What is written down about a lab while it exists: its spec and its management network, as JSON."""

import json
from dataclasses import dataclass
from ipaddress import IPv4Network

from sparkctl.errors import OperationFailed
from sparkctl.lab.model import Bind, LabSpec, parse_cable

_FORMAT = 1


@dataclass(frozen=True)
class LabRecord:
    """A lab that was started here, whether or not it still runs.

    base: path of the root file system that its nodes share; their disks fit no other.
    """

    spec: LabSpec
    network: IPv4Network
    base: str


def render_record(record: LabRecord) -> str:
    """The text of `lab.json`."""
    spec = record.spec
    return (
        json.dumps(
            {
                "format": _FORMAT,
                "name": spec.name,
                "nodes": list(spec.nodes),
                "cables": [str(cable) for cable in spec.cables],
                "rail_mbit_per_s": spec.rail_mbit_per_s,
                "binds": [[bind.host_path, bind.node_path] for bind in spec.binds],
                "network": str(record.network),
                "base": record.base,
            },
            indent=2,
        )
        + "\n"
    )


def parse_record(text: str, *, where: str) -> LabRecord:
    """The record in the text of a `lab.json`; raises OperationFailed if it is damaged.

    where: path of the file, for the message.
    """
    try:
        fields = json.loads(text)
        if fields["format"] != _FORMAT:
            raise OperationFailed(
                f"this lab was started by another version (format {fields['format']})",
                remedy="stop it with `sparkctl lab down`, then start it again",
                where=where,
            )
        spec = LabSpec(
            name=fields["name"],
            nodes=tuple(fields["nodes"]),
            cables=tuple(parse_cable(text) for text in fields["cables"]),
            rail_mbit_per_s=fields["rail_mbit_per_s"],
            binds=tuple(Bind(host, node) for host, node in fields["binds"]),
        )
        return LabRecord(spec, IPv4Network(fields["network"]), fields["base"])
    except (ValueError, KeyError, TypeError) as error:
        raise OperationFailed(
            "the lab's record cannot be read",
            remedy="remove what is left of the lab with `sparkctl lab down`, then start it again",
            where=where,
        ) from error
