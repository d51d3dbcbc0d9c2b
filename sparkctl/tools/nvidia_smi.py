"""nvidia-smi: which GPU a host has and its driver. Memory is not asked for: on unified memory it prints [N/A]."""

from dataclasses import dataclass

from sparkctl.transport.command import Command, CommandResult
from sparkctl.transport.printed import unexpected

GPUS = Command(("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"), timeout_s=15)
_NOT_INSTALLED = 127


@dataclass(frozen=True)
class Gpu:
    """name: such as `NVIDIA GB10`. driver: version such as `580.126.09`."""

    name: str
    driver: str


@dataclass(frozen=True)
class GpuReading:
    """gpus: those that nvidia-smi sees. complaint: its own words when it is installed and fails, else empty."""

    gpus: tuple[Gpu, ...]
    complaint: str = ""


def parse_gpus(result: CommandResult) -> GpuReading | None:
    """The GPUs of a host; None where nvidia-smi is not installed, which is not the same as a driver that fails.

    Raises UnexpectedOutput when a line is not `name, driver`.
    Source: `nvidia-smi --help-query-gpu`; capture nvidia_smi/<machine>--<case>.out.
    """
    if result.exit_code == _NOT_INSTALLED:
        return None
    if not result.ok:
        return GpuReading((), result.last_words())
    lines = [line.strip() for line in result.stdout.splitlines() if line.strip()]
    if lines == ["No devices were found"]:
        return GpuReading((), lines[0])
    gpus: list[Gpu] = []
    for line in lines:
        name, comma, driver = line.partition(",")
        if not comma or not name.strip() or not driver.strip():
            raise unexpected(result, "nvidia-smi")
        gpus.append(Gpu(name.strip(), driver.strip()))
    return GpuReading(tuple(gpus))
