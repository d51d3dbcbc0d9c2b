"""Findings: what a person should know about the state of the cluster, and what to do about it."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How bad it is. UNKNOWN means it could not be looked at, which is never the same as OK."""

    OK = "ok"
    INFO = "info"
    WARN = "warn"
    UNKNOWN = "unknown"
    DEGRADED = "degraded"
    FAIL = "fail"


class Status(StrEnum):
    """The outcome of a whole command; each has one exit code (docs/exit-codes.md)."""

    OK = "ok"
    CHANGES = "changes"
    DEGRADED = "degraded"
    FAILED = "failed"
    USAGE = "usage"
    UNREACHABLE = "unreachable"
    REFUSED = "refused"
    INTERRUPTED = "interrupted"


EXIT_CODES = {
    Status.OK: 0,
    Status.FAILED: 1,
    Status.USAGE: 2,
    Status.UNREACHABLE: 3,
    Status.REFUSED: 4,
    Status.DEGRADED: 5,
    Status.CHANGES: 10,
    Status.INTERRUPTED: 130,
}


@dataclass(frozen=True)
class Finding:
    """One observation about one subject.

    code: stable word for scripts, such as `link.no-cable`. subject: host, `host:port`, a cable or a model.
    expected, found: in words with units; empty where there is nothing to compare.
    cause: why, as far as it is known. remedy: what to do; required for everything worse than INFO.
    """

    severity: Severity
    code: str
    subject: str
    message: str
    expected: str = ""
    found: str = ""
    cause: str = ""
    remedy: str = ""

    def __post_init__(self) -> None:
        if self.severity not in (Severity.OK, Severity.INFO) and not self.remedy:
            raise ValueError(f"finding {self.code} needs a remedy")


def derived_status(findings: Iterable[Finding]) -> Status:
    """The status that follows from findings alone: FAIL or UNKNOWN fails, DEGRADED degrades, the rest is OK.

    UNKNOWN fails because a check that could not be made must not pass a gate.
    """
    severities = {finding.severity for finding in findings}
    if severities & {Severity.FAIL, Severity.UNKNOWN}:
        return Status.FAILED
    return Status.DEGRADED if Severity.DEGRADED in severities else Status.OK
