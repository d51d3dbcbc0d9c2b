"""Reads hosts: one bundle per host, all hosts at the same time."""

from collections.abc import Sequence

from sparkctl.facts.assemble import READINGS, assemble_facts
from sparkctl.facts.model import HostFacts
from sparkctl.transport.bundle import pack_commands, unpack_results
from sparkctl.transport.command import CommandResult, Transport
from sparkctl.transport.fanout import Outcomes, on_all

_NO_SUCH_PROGRAM = 127


def gather_host(transport: Transport) -> HostFacts:
    """Facts of one host in one round trip of about a second. Changes nothing on the host.

    Raises what the transport raises, and UnexpectedOutput when a program prints what its parser does not know.
    """
    result = transport.run(pack_commands(READINGS))
    if result.exit_code == _NO_SUCH_PROGRAM:
        # No coreutils `timeout`, as on macOS: nothing of what we ask for is there, which is a fact, not an error.
        results = tuple(CommandResult(result.host, command, _NO_SUCH_PROGRAM, "") for command in READINGS)
    else:
        results = unpack_results(result, READINGS)
    return assemble_facts(transport.host, dict(zip(READINGS, results, strict=True)))


def gather_cluster(transports: Sequence[Transport]) -> Outcomes[HostFacts]:
    """Facts of all hosts; a host that cannot be read is an error in the outcomes."""
    return on_all(transports, gather_host)
