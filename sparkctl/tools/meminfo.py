"""/proc/meminfo: the only right source for memory that CPU and GPU share (nvidia-smi prints [N/A] there)."""

from dataclasses import dataclass

from sparkctl.transport.command import Command, CommandResult
from sparkctl.transport.printed import unexpected

MEMORY = Command(("cat", "/proc/meminfo"), timeout_s=5)


@dataclass(frozen=True)
class Memory:
    """MemTotal and MemAvailable in bytes."""

    total_bytes: int
    available_bytes: int


def parse_memory(result: CommandResult) -> Memory | None:
    """Memory of a host; None where there is no /proc/meminfo (not Linux).

    Raises UnexpectedOutput when MemTotal or MemAvailable is missing or not in kB.
    Source: proc_meminfo(5), where `kB` means 1024 bytes; capture meminfo/<machine>--<case>.out.
    """
    if not result.ok:
        return None
    rows = dict(line.split(":", 1) for line in result.stdout.splitlines() if ":" in line)
    try:
        return Memory(_bytes(rows["MemTotal"]), _bytes(rows["MemAvailable"]))
    except (KeyError, ValueError) as error:
        raise unexpected(result, "/proc/meminfo") from error


def _bytes(text: str) -> int:
    number, unit = text.split()
    if unit != "kB":
        raise ValueError(unit)
    return int(number) * 1024
