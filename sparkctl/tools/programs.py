"""Which programs a host has, looked for where administrators' programs are too."""

from sparkctl.transport.bundle import quoted, shell
from sparkctl.transport.command import Command, CommandResult

# An ordinary user's PATH over SSH lacks the sbin folders on Debian, and sudo's does not.
_LOOK = (
    'PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin; for p in @NAMES@; do command -v "$p" >/dev/null && echo "$p"; done; :'
)


def look_for(names: tuple[str, ...]) -> Command:
    """Ask which of the programs are installed."""
    return shell(_LOOK.replace("@NAMES@", quoted(*names)), timeout_s=5)


def parse_found(result: CommandResult) -> frozenset[str]:
    """The programs that are installed; capture programs/<machine>--<case>.out."""
    return frozenset(result.stdout.split())
