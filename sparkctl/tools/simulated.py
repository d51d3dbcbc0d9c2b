"""The list in which a virtual node says what it only pretends to have."""

from sparkctl.transport.command import Command, CommandResult
from sparkctl.transport.printed import json_rows, unexpected

SIMULATED = Command(("cat", "/etc/sparkctl/simulated.json"), timeout_s=5)


def parse_simulated(result: CommandResult) -> tuple[str, ...]:
    """What is simulated, in the file's order; empty on real machines, which have no such file.

    The file is a JSON list of objects `{"what": …, "how": …}`. Raises UnexpectedOutput when it is anything else.
    Capture simulated/<machine>--<case>.json.
    """
    if not result.ok:
        return ()
    names: list[str] = []
    for row in json_rows(result, "/etc/sparkctl/simulated.json"):
        what = row.get("what")
        if not isinstance(what, str):
            raise unexpected(result, "/etc/sparkctl/simulated.json")
        names.append(what)
    return tuple(names)
