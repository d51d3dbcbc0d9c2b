"""Files of assignments that say what is installed: /etc/os-release and /etc/dgx-release."""

import shlex
from collections.abc import Mapping

from sparkctl.transport.command import Command, CommandResult
from sparkctl.transport.printed import unexpected

OS_RELEASE = Command(("cat", "/etc/os-release"), timeout_s=5)
DGX_RELEASE = Command(("cat", "/etc/dgx-release"), timeout_s=5)


def parse_release(result: CommandResult) -> Mapping[str, str] | None:
    """Name -> value without quotes, in the file's order; None where there is no such file.

    Raises UnexpectedOutput for a line that is neither assignment nor comment.
    Source: os-release(5); captures os_release/<machine>--<case>.out, dgx_release/<machine>--<case>.out.
    """
    if not result.ok:
        return None
    values: dict[str, str] = {}
    for line in result.stdout.splitlines():
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        name, equals, value = line.partition("=")
        if not equals:
            raise unexpected(result, str(result.command))
        try:
            values[name.strip()] = " ".join(shlex.split(value))
        except ValueError as error:
            raise unexpected(result, str(result.command)) from error
    return values
