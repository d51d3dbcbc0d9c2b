"""Starts and ends the ranks of a group on their hosts."""

from collections.abc import Mapping, Sequence

from sparkctl.errors import OperationFailed, SparkctlError
from sparkctl.plan.serving import RankPlan, ServingPlan
from sparkctl.tools.docker import run_command, stop_command
from sparkctl.transport.bundle import quoted, shell
from sparkctl.transport.command import Transport
from sparkctl.transport.fanout import on_all

LOG_DIR = "~/.local/state/sparkctl/logs"


def start_ranks(plan: ServingPlan, transports: Mapping[str, Transport]) -> None:
    """Start every rank's container, workers before the head.

    Raises OperationFailed with Docker's own words when a container does not start; the caller ends the others.
    """
    for rank in reversed(plan.ranks):
        _start(rank, transports[rank.host])


def stop_containers(
    names: Mapping[str, Sequence[str]], transports: Mapping[str, Transport], *, stamp: str, grace_s: int
) -> Mapping[str, SparkctlError]:
    """End and remove containers on all hosts at once; their logs stay in LOG_DIR there. Fine if some are gone.

    names: container names per host. stamp: part of the log's file name. grace_s: from asking
    politely to SIGKILL; an engine that is still starting does not listen. Returns the hosts where it did not work: a
    host without contact is not a reason to leave the ranks on the others running.
    """

    def stop(transport: Transport) -> None:
        for name in names[transport.host]:
            result = transport.run(stop_command(name, log_dir=LOG_DIR, log_name=f"{name}-{stamp}.log", grace_s=grace_s))
            if not result.ok:
                raise OperationFailed(
                    f"cannot end {name}: {result.last_words()}",
                    where=transport.host,
                    remedy=f"on {transport.host}: docker rm --force {name}",
                )

    return on_all([transports[host] for host in names], stop).errors


def _start(rank: RankPlan, transport: Transport) -> None:
    # Docker would make the folder as root; made by us, its owner can clean it up.
    transport.run(shell(f"mkdir -p {quoted(rank.cache_dir)}"))
    result = transport.run(run_command(rank.container))
    if result.ok:
        return
    raise OperationFailed(
        f"rank {rank.rank} did not start: {_docker_words(result.stderr) or result.last_words()}",
        where=rank.host,
        remedy=f"on {rank.host}: `docker info`; for `could not select device driver`, "
        "`sudo nvidia-ctk runtime configure --runtime=docker` and restart Docker",
    )


def _docker_words(stderr: str) -> str:
    """Docker's complaint, which it prints before a line that only points to its help."""
    lines = [line.strip() for line in stderr.splitlines() if line.startswith("docker: ")]
    return lines[0].removeprefix("docker: ") if lines else ""
