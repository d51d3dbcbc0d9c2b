"""docker info: whether the engine answers our user, its version and its runtimes."""

from dataclasses import dataclass
from enum import StrEnum
from typing import TypedDict, cast

from sparkctl.transport.command import Command, CommandResult
from sparkctl.transport.printed import json_value, unexpected

ENGINE = Command(("docker", "info", "--format", "{{json .}}"), timeout_s=15)
_NOT_INSTALLED = 127


class EngineState(StrEnum):
    """Whether the Docker engine answers us."""

    ANSWERS = "answers"
    REFUSES = "permission denied"
    SILENT = "no answer"
    NOT_INSTALLED = "not installed"


@dataclass(frozen=True)
class Engine:
    """version, runtimes: empty unless it answers. complaint: docker's own words unless it answers."""

    state: EngineState
    version: str = ""
    runtimes: tuple[str, ...] = ()
    complaint: str = ""


class _Info(TypedDict, total=False):
    ServerVersion: str
    Runtimes: dict[str, object] | None
    ServerErrors: list[str]


def parse_engine(result: CommandResult) -> Engine:
    """The engine as our user sees it; runtimes sorted by name.

    Old clients exit with 0 and put the error into the JSON, newer ones exit with 1; both are understood. Podman's
    `docker` is not Docker: it counts as not installed, with that as its complaint.
    Raises UnexpectedOutput when docker succeeds and does not print its JSON.
    Source: docker-info(1); capture docker_info/<machine>--<case>.out.
    """
    if result.exit_code == _NOT_INSTALLED:
        return Engine(EngineState.NOT_INSTALLED)
    if not result.ok:
        return _complaining(result.last_words() if result.stderr.strip() else "docker info failed without a word")
    info = json_value(result, "docker")
    if not isinstance(info, dict):
        raise unexpected(result, "docker")
    known = cast(_Info, info)
    if known.get("ServerErrors"):
        return _complaining("; ".join(known["ServerErrors"]))
    if "host" in info and "ServerVersion" not in info:
        return Engine(EngineState.NOT_INSTALLED, complaint="`docker` on this host is Podman")
    if not known.get("ServerVersion"):
        raise unexpected(result, "docker")
    return Engine(EngineState.ANSWERS, known["ServerVersion"], tuple(sorted(known.get("Runtimes") or {})))


def _complaining(words: str) -> Engine:
    refused = "permission denied" in words.lower()
    return Engine(EngineState.REFUSES if refused else EngineState.SILENT, complaint=words)
