"""Reads what matters for serving on a host: image, containers, ports, model, memory. One round trip per host."""

from collections.abc import Sequence

from sparkctl.errors import UnexpectedOutput
from sparkctl.facts.served import GROUP_LABEL, RunningFacts, ServingFacts
from sparkctl.tools.docker import containers_command, image_command, parse_containers, parse_image
from sparkctl.tools.listening import listening_command, parse_listening
from sparkctl.tools.meminfo import MEMORY, parse_memory
from sparkctl.tools.model_files import model_command, parse_model
from sparkctl.transport.bundle import pack_commands, unpack_results
from sparkctl.transport.command import Command, CommandResult, Transport


def gather_running(transport: Transport) -> RunningFacts:
    """Read what runs, without asking for a model. Raises what the parsers raise, such as Docker not answering."""
    commands = _running_commands()
    return _assemble_running(unpack_results(transport.run(pack_commands(commands)), commands))


def gather_serving(transport: Transport, *, model: str, models_dir: str, image: str) -> ServingFacts:
    """Read everything that a serving plan needs from a host. Raises what the parsers raise."""
    commands = (*_running_commands(), image_command(image), model_command(model, models_dir))
    results = unpack_results(transport.run(pack_commands(commands)), commands)
    return ServingFacts(
        host=transport.host,
        running=_assemble_running(results),
        image=parse_image(results[3]),
        model=parse_model(results[4]),
    )


def _running_commands() -> tuple[Command, ...]:
    return containers_command(GROUP_LABEL), listening_command(), MEMORY


def _assemble_running(results: Sequence[CommandResult]) -> RunningFacts:
    memory = parse_memory(results[2])
    if memory is None:
        raise UnexpectedOutput(
            "there is no /proc/meminfo", where=results[2].host, remedy="serve from hosts that run Linux"
        )
    return RunningFacts(
        host=results[0].host,
        containers=parse_containers(results[0]),
        listeners=parse_listening(results[1].stdout),
        memory_total_bytes=memory.total_bytes,
        memory_available_bytes=memory.available_bytes,
    )
