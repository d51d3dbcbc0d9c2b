"""The netplan files of a host, byte for byte."""

from collections.abc import Mapping

from sparkctl.transport.bundle import shell
from sparkctl.transport.command import CommandResult
from sparkctl.transport.printed import unexpected

# Only *.yaml counts for netplan; NVIDIA Sync renames what it switches off to *.sync-disabled-*.
_READ = """\
for f in /etc/netplan/*.yaml; do
  [ -f "$f" ] || continue
  printf '[%s %s]\\n' "$(wc -c <"$f")" "$f"
  cat "$f"
done
"""
# The files have mode 0600, so only root can read them.
FILES = shell(_READ, sudo=True, timeout_s=5)


def parse_files(result: CommandResult) -> Mapping[str, str] | None:
    """Path -> text in the order netplan reads them; empty when there is none, None when sudo did not let us look.

    Raises UnexpectedOutput when sizes and texts do not fit together.
    Source: netplan(5); capture netplan_files/<machine>--<case>.out.
    """
    if not result.ok:
        return None
    files: dict[str, str] = {}
    rest = result.stdout.encode("utf-8", "surrogateescape")
    while rest:
        head, newline, body = rest.partition(b"\n")
        size, blank, path = head.decode("utf-8", "replace").strip("[]").partition(" ")
        if not newline or not blank or not size.isdecimal() or len(body) < int(size):
            raise unexpected(result, "the reading of /etc/netplan")
        files[path] = body[: int(size)].decode("utf-8", "surrogateescape")
        rest = body[int(size) :]
    return files
