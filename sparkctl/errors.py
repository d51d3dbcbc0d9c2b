"""What can go wrong, in words a person can act on.

    SparkctlError
    ├── UsageError              2   the command line asks for something impossible
    │   └── InvalidInventory    2   the inventory file has mistakes, all of them listed
    ├── HostError               3   a host cannot be used at all
    │   ├── HostUnreachable     3   no contact, or contact was lost
    │   ├── HostKeyRefused      3   the host's key is unknown or has changed
    │   └── AccessRefused       3   the host does not accept our key, or sudo asks for a password
    ├── UnsafeRefused           4   doing it could lose a machine, data or somebody's work
    ├── OperationFailed         1   something was tried and did not work
    │   └── UnexpectedOutput    1   a program printed what its parser does not know
    └── Interrupted           130   Ctrl-C

A wrong state of the cluster is not an error: it is a finding (`sparkctl.report.finding`).
Exit codes are listed for users in docs/exit-codes.md.
"""

from collections.abc import Sequence


class SparkctlError(Exception):
    """Base of all errors shown to people.

    message: what happened and why, one sentence, without a trailing full stop.
    remedy: what to type or do next; required, so that no error leaves its reader alone.
    where: host, `host:port` or `file:line`; empty when the place is the command itself.
    """

    exit_code = 1

    def __init__(self, message: str, *, remedy: str, where: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy
        self.where = where

    def __str__(self) -> str:
        return f"{self.where}: {self.message}" if self.where else self.message


class UsageError(SparkctlError):
    """The command line asks for something that cannot be done."""

    exit_code = 2


class InvalidInventory(UsageError):
    """The inventory file has mistakes.

    problems: one line each, `file:line: field: what is wrong`, in file order, never empty.
    """

    def __init__(self, message: str, *, problems: Sequence[str], remedy: str, where: str = "") -> None:
        super().__init__(message, remedy=remedy, where=where)
        self.problems = tuple(problems)


class HostError(SparkctlError):
    """A host cannot be used at all."""

    exit_code = 3


class HostUnreachable(HostError):
    """There is no contact with the host, or it was lost."""


class HostKeyRefused(HostError):
    """The host's key is not pinned, or differs from the pinned one."""


class AccessRefused(HostError):
    """The host is there but does not let us in, or sudo wants a password."""


class UnsafeRefused(SparkctlError):
    """Going on could lose a machine, data or somebody else's work; nothing was changed."""

    exit_code = 4


class OperationFailed(SparkctlError):
    """Something was tried and did not work; the message names the state left behind."""


class UnexpectedOutput(OperationFailed):
    """A program printed something that its parser does not know."""


class Interrupted(SparkctlError):
    """The user pressed Ctrl-C; the message names the state left behind."""

    exit_code = 130
