"""Docker: images, containers, logs, start and stop of containers."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from sparkctl.errors import UnexpectedOutput
from sparkctl.transport.bundle import quoted, shell
from sparkctl.transport.command import Command, CommandResult

_CONTAINER_FORMAT = (
    '{"id":{{json .Id}},"name":{{json .Name}},"image":{{json .Image}},'
    '"labels":{{json .Config.Labels}},"state":{{json .State}}}'
)
_IMAGE_FORMAT = (
    '{"id":{{json .Id}},"digests":{{json .RepoDigests}},"arch":{{json .Architecture}},'
    '"size":{{json .Size}},"entrypoint":{{json .Config.Entrypoint}}}'
)
_LOG_LINE = re.compile(r"(?P<time>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)) ?(?P<text>.*)")
# `docker pull` without a terminal prints one such line per layer and event (docker CLI, jsonmessage).
_PULL_LINE = re.compile(r"(?P<layer>[0-9a-f]{12}): (?P<event>.+)")


class ContainerState(StrEnum):
    """`State.Status` of `docker inspect` (Docker Engine API v1.45)."""

    CREATED = "created"
    RUNNING = "running"
    PAUSED = "paused"
    RESTARTING = "restarting"
    REMOVING = "removing"
    EXITED = "exited"
    DEAD = "dead"


@dataclass(frozen=True)
class Image:
    """One image of a host.

    image_id: `sha256:…` of its configuration, the same on every host that has the same image.
    digests: `repository@sha256:…` it was pulled as; empty for an image that was built or loaded.
    """

    image_id: str
    digests: tuple[str, ...]
    architecture: str
    size_bytes: int
    entrypoint: tuple[str, ...]


@dataclass(frozen=True)
class Container:
    """One container of a host. started_at, finished_at: RFC 3339 in UTC, as Docker prints them."""

    name: str
    container_id: str
    image_id: str
    labels: Mapping[str, str]
    state: ContainerState
    exit_code: int
    out_of_memory: bool
    started_at: str
    finished_at: str


@dataclass(frozen=True)
class ContainerSpec:
    """What to start: everything that `docker run` needs to know.

    volumes: `host path:container path[:ro]`. options: further words of `docker run`, such as `--network host`.
    command: what follows the image.
    """

    name: str
    image: str
    command: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    labels: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    volumes: tuple[str, ...] = ()
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class LogLine:
    """One line a container printed. time: RFC 3339 with nanoseconds, sortable as text on one host."""

    time: str
    text: str


def image_command(reference: str) -> Command:
    """Ask for one image by reference, digest or ID; answered by `parse_image`."""
    return Command(("docker", "image", "inspect", "--format", _IMAGE_FORMAT, reference))


def parse_image(result: CommandResult) -> Image | None:
    """The image, or None when the host does not have it.

    Raises UnexpectedOutput when Docker answered anything else, such as that it is not running.
    """
    if "no such image" in result.stderr.lower():
        return None
    value = _json_object(result, result.stdout)
    return Image(
        image_id=str(value["id"]),
        digests=tuple(value["digests"] or ()),
        architecture=str(value["arch"]),
        size_bytes=int(value["size"]),
        entrypoint=tuple(value["entrypoint"] or ()),
    )


def containers_command(label: str) -> Command:
    """Ask for all containers, running or not, that carry `label` (`key` or `key=value`)."""
    # Not a pipe into xargs: that would turn a Docker that refuses to answer into a host without containers.
    return shell(
        f"ids=$(docker ps -aq --no-trunc --filter {quoted('label=' + label)}) || exit $?\n"
        f'[ -z "$ids" ] || docker inspect --format {quoted(_CONTAINER_FORMAT)} $ids'
    )


def parse_containers(result: CommandResult) -> tuple[Container, ...]:
    """Containers by name; empty when there are none.

    Raises UnexpectedOutput when Docker did not answer with one JSON object per line.
    """
    if not result.ok and "no such object" not in result.stderr.lower():
        raise _unexpected(result, result.last_words())
    lines = [line for line in result.stdout.splitlines() if line.strip()]
    return tuple(sorted((_container(_json_object(result, line)) for line in lines), key=lambda item: item.name))


def logs_command(name: str, *, since: str = "", tail: int | None = None) -> Command:
    """What a container printed, stamped. since: RFC 3339, inclusive. tail: the last so many lines only."""
    words = ["docker", "logs", "--timestamps"]
    words += ["--since", since] if since else []
    words += ["--tail", str(tail)] if tail is not None else []
    return Command((*words, name))


def follow_command(name: str, *, tail: int, timeout_s: float) -> Command:
    """What a container prints, stamped, as it comes, both streams joined, until it ends or the time is up."""
    line = f"exec docker logs --timestamps --follow --tail {tail} {quoted(name)} 2>&1"
    return shell(line, timeout_s=timeout_s)


def parse_logs(stdout: str, stderr: str = "") -> tuple[LogLine, ...]:
    """Lines of both streams joined in the order of time.

    A progress bar rewrites its line with carriage returns; only its last state is kept. Lines without a stamp, which
    Docker prints about itself, are dropped.
    """
    found = [line for text in (stdout, stderr) for line in map(parse_log_line, text.split("\n")) if line is not None]
    return tuple(sorted(found, key=lambda line: line.time))


def parse_log_line(line: str) -> LogLine | None:
    """One stamped line, or None when there is no stamp."""
    match = _LOG_LINE.match(line.rstrip("\r\n"))
    if match is None:
        return None
    return LogLine(match["time"], match["text"].rstrip("\r").rpartition("\r")[2])


def run_command(spec: ContainerSpec) -> Command:
    """Start a container in the background; prints its ID. The words are complete: `--show` prints them as they are."""
    words = ["docker", "run", "--detach", "--name", spec.name, *spec.options]
    for key, value in spec.labels.items():
        words += ["--label", f"{key}={value}"]
    for key, value in spec.env.items():
        words += ["--env", f"{key}={value}"]
    for volume in spec.volumes:
        words += ["--volume", volume]
    return Command((*words, spec.image, *spec.command), timeout_s=120.0)


def stop_command(name: str, *, log_dir: str, log_name: str, grace_s: int) -> Command:
    """End a container, keep what it printed in `log_dir/log_name`, remove it. Fine when it is already gone.

    log_dir: a leading `~/` is the home of the SSH user. The ten newest logs there are kept.
    """
    directory = '"$HOME"/' + quoted(log_dir[2:]) if log_dir.startswith("~/") else quoted(log_dir)
    word = quoted(name)
    return shell(
        f"docker inspect {word} >/dev/null 2>&1 || exit 0\n"
        f"docker stop --time {grace_s} {word} >/dev/null\n"
        f"mkdir -p {directory} && docker logs --timestamps {word} >{directory}/{quoted(log_name)} 2>&1\n"
        f"ls -1t {directory}/*.log 2>/dev/null | tail -n +11 | xargs -r rm -f\n"
        f"docker rm --force {word} >/dev/null",
        timeout_s=grace_s + 60.0,
    )


def cpu_seconds_command(name: str) -> Command:
    """CPU time of every process in a container; answered by `parse_cpu_seconds`."""
    return Command(("docker", "top", name, "-eo", "pid,cputimes"))


def parse_cpu_seconds(stdout: str) -> int:
    """CPU seconds used so far by all processes of the container; 0 when it has none.

    Source: ps(1), column cputimes.
    """
    fields = [line.split() for line in stdout.splitlines()[1:]]
    return sum(int(words[1]) for words in fields if len(words) == 2 and words[1].isdigit())


def pull_command(reference: str) -> Command:
    """Fetch an image from its registry. Limit: a day, as 20 GB over a slow line takes hours."""
    return Command(("docker", "pull", reference), timeout_s=86_400.0)


def parse_pull_line(line: str) -> tuple[str, bool] | None:
    """Layer and whether it is complete, from one line of `docker pull`; None for other lines."""
    match = _PULL_LINE.match(line.strip())
    return (match["layer"], match["event"] in ("Pull complete", "Already exists")) if match else None


def _container(value: Mapping[str, Any]) -> Container:
    state = value["state"]
    return Container(
        name=str(value["name"]).lstrip("/"),
        container_id=str(value["id"]),
        image_id=str(value["image"]),
        labels=dict(value["labels"] or {}),
        state=ContainerState(state["Status"]),
        exit_code=int(state["ExitCode"]),
        out_of_memory=bool(state["OOMKilled"]),
        started_at=str(state["StartedAt"]),
        finished_at=str(state["FinishedAt"]),
    )


def _json_object(result: CommandResult, text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise _unexpected(result, text.strip().splitlines()[0] if text.strip() else result.last_words()) from error
    if not isinstance(value, dict):
        raise _unexpected(result, text)
    return value


def _unexpected(result: CommandResult, first_line: str) -> UnexpectedOutput:
    said = (result.stderr + result.stdout).lower()
    if "permission denied" in said:
        message, remedy = "our user may not use Docker", "sudo usermod -aG docker $USER, then run sparkctl again"
    elif result.exit_code == 127 or "docker: not found" in said:
        message, remedy = "Docker is not installed", "sudo apt install docker.io (DGX OS brings Docker along)"
    elif "cannot connect to the docker daemon" in said:
        message, remedy = "Docker is not running", "sudo systemctl start docker"
    else:
        message, remedy = f"docker answered: {first_line}", "docker info"
    return UnexpectedOutput(message, where=result.host, remedy=f"on {result.host}: {remedy}")
