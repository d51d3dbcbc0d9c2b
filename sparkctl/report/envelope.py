"""The one JSON shape that every command prints with `--json`, and how typed values become JSON."""

import dataclasses
import json
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from enum import Enum
from ipaddress import (
    IPv4Address,
    IPv4Interface,
    IPv4Network,
    IPv6Address,
    IPv6Interface,
    IPv6Network,
)

from sparkctl.errors import InvalidInventory, SparkctlError
from sparkctl.report.finding import EXIT_CODES, Finding, Status

# Raised when a key is renamed or removed; new keys don't raise it.
SCHEMA_VERSION = 1

_IP_TYPES = (IPv4Address, IPv4Interface, IPv4Network, IPv6Address, IPv6Interface, IPv6Network)


@dataclass(frozen=True)
class Envelope:
    """What a command has to say.

    command: its words, such as `link up`. data: result of the command, its keys are documented with the command.
    findings: in the order of importance that the command chose. errors: what ended it early.
    """

    command: str
    status: Status
    data: Mapping[str, object] = dataclasses.field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    errors: tuple[SparkctlError, ...] = ()

    @property
    def exit_code(self) -> int:
        return EXIT_CODES[self.status]


def render_json(envelope: Envelope) -> str:
    """The envelope as indented JSON; its keys are schema_version and the fields of Envelope with the exit code."""
    return json.dumps(
        {
            "schema_version": SCHEMA_VERSION,
            "command": envelope.command,
            "status": envelope.status.value,
            "exit_code": envelope.exit_code,
            "data": to_jsonable(envelope.data),
            "findings": to_jsonable(envelope.findings),
            "errors": [_error(error) for error in envelope.errors],
        },
        indent=2,
        ensure_ascii=False,
    )


def to_jsonable(value: object) -> object:
    """Dataclasses become objects (private fields left out), enums their value, addresses and paths text."""
    if value is None or (isinstance(value, str | int | float | bool) and not isinstance(value, Enum)):
        return value
    if isinstance(value, Enum):
        return value.value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value) if not field.name.startswith("_")]
        return {name: to_jsonable(getattr(value, name)) for name in names}
    if isinstance(value, Mapping):
        return {str(key): to_jsonable(item) for key, item in value.items()}
    if isinstance(value, Set):
        return sorted(str(to_jsonable(item)) for item in value)
    if isinstance(value, Sequence):
        return [to_jsonable(item) for item in value]
    if isinstance(value, _IP_TYPES):
        return str(value)
    raise TypeError(f"no JSON form for {type(value).__name__}")


def _error(error: SparkctlError) -> dict[str, object]:
    extra = {"problems": list(error.problems)} if isinstance(error, InvalidInventory) else {}
    return {
        "type": type(error).__name__,
        "where": error.where,
        "message": error.message,
        "remedy": error.remedy,
        **extra,
    }
