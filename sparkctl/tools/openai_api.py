"""curl against an OpenAI-compatible server, run on a host itself: health, one completion, a streamed answer.

Bodies go in through standard input, so that no prompt and no key ever stands in a process list.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sparkctl.errors import UnexpectedOutput
from sparkctl.transport.bundle import quoted, shell
from sparkctl.transport.command import Command, CommandResult

_TRAILER = "[sparkctl http "


@dataclass(frozen=True)
class Reply:
    """One HTTP reply. status: 0 when the server did not answer at all. body: as it came."""

    status: int
    body: str


@dataclass(frozen=True)
class Completion:
    """A completion that came back whole. finish: `stop` or `length`."""

    text: str
    tokens: int
    finish: str


@dataclass(frozen=True)
class Answer:
    """A streamed answer and its pace, timed on the host that asked.

    first_token_s: from sending the question to the first piece of text. total_s: to the last piece.
    tokens_per_s: tokens after the first by the time they took; 0 with fewer than two tokens.
    """

    text: str
    reasoning: str
    prompt_tokens: int
    tokens: int
    finish: str
    first_token_s: float
    total_s: float

    @property
    def tokens_per_s(self) -> float:
        """Decode speed of this one stream."""
        span = self.total_s - self.first_token_s
        return (self.tokens - 1) / span if self.tokens > 1 and span > 0 else 0.0


@dataclass(frozen=True)
class Piece:
    """One event of a stream. at_s: clock of the asking host. text, reasoning: what was added by it."""

    at_s: float
    text: str = ""
    reasoning: str = ""
    finish: str = ""
    prompt_tokens: int = 0
    tokens: int = 0
    error: str = ""


def health_command(address: str, port: int) -> Command:
    """Ask the server whether it is up; answered by `parse_reply`."""
    return _curl(f"http://{address}:{port}/health", timeout_s=5.0)


def models_command(address: str, port: int) -> Command:
    """Ask which models are served; answered by `parse_reply`."""
    return _curl(f"http://{address}:{port}/v1/models", timeout_s=5.0)


def completion_command(address: str, port: int, body: Mapping[str, Any], *, timeout_s: float) -> Command:
    """Ask for one whole text completion."""
    return _curl(f"http://{address}:{port}/v1/completions", timeout_s=timeout_s, body=body)


def stream_command(address: str, port: int, path: str, body: Mapping[str, Any], *, timeout_s: float) -> Command:
    """Ask for a streamed answer; every line gets the time it arrived in front, for `parse_piece`.

    path: `/v1/chat/completions` or `/v1/completions`. EPOCHREALTIME is bash's clock and costs no process per line.
    """
    url = quoted(f"http://{address}:{port}{path}")
    script = (
        'export LC_ALL=C; printf "%s start\\n" "$EPOCHREALTIME"; '
        f"curl -sS -N -H 'Content-Type: application/json' --data @- -w '\\n{_TRAILER}%{{http_code}}]\\n' {url} "
        '| while IFS= read -r line; do printf "%s %s\\n" "$EPOCHREALTIME" "$line"; done'
    )
    return Command(("bash", "-o", "pipefail", "-c", script), timeout_s=timeout_s, stdin=json.dumps(body))


def plain_body(model: str, prompt: str, *, max_tokens: int, stream: bool) -> dict[str, Any]:
    """A deterministic text completion that needs no chat template."""
    return {"model": model, "prompt": prompt, "max_tokens": max_tokens, "temperature": 0, **_streaming(stream)}


def chat_body(model: str, question: str, *, max_tokens: int) -> dict[str, Any]:
    """A deterministic, streamed chat answer to one question."""
    messages = [{"role": "user", "content": question}]
    return {"model": model, "messages": messages, "max_tokens": max_tokens, "temperature": 0, **_streaming(True)}


def parse_reply(result: CommandResult) -> Reply:
    """Status and body of a reply; status 0 when curl could not connect. Raises UnexpectedOutput without curl."""
    body, trailer, code = result.stdout.rpartition("\n" + _TRAILER)
    if not trailer:
        if result.timed_out:
            return Reply(0, "no answer in time")
        raise UnexpectedOutput(
            f"curl did not run: {result.last_words()}",
            where=result.host,
            remedy=f"install curl on {result.host}: sudo apt install curl",
        )
    return Reply(int(code.strip().rstrip("]")), body or result.stderr.strip())


def parse_completion(body: str) -> Completion:
    """A whole text completion. Raises UnexpectedOutput when the body is none.

    Source: OpenAI API reference, "Create completion"; capture openai_api/lab--completion.json.
    """
    try:
        value = json.loads(body)
        choice = value["choices"][0]
        return Completion(str(choice["text"]), int(value["usage"]["completion_tokens"]), str(choice["finish_reason"]))
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise UnexpectedOutput(
            f"the server sent no completion: {body[:200]}", remedy="look at `sparkctl logs` for the reason"
        ) from error


def parse_piece(line: str) -> Piece | None:
    """One stamped line of a stream, or None for lines that carry nothing.

    An error body, which servers send in place of a stream, becomes a piece with `error`.
    Source: OpenAI API reference, "Streaming"; capture openai_api/lab--chat-stream.out.
    """
    stamp, _, rest = line.partition(" ")
    rest = rest.strip()
    payload = rest.removeprefix("data:").strip()
    if not payload.startswith("{"):
        if rest.startswith(_TRAILER) and not rest.startswith(f"{_TRAILER}200]"):
            return Piece(float(stamp), error=f"HTTP status {rest.removeprefix(_TRAILER).rstrip(']')}")
        return None
    value = json.loads(payload)
    if "choices" not in value:
        return Piece(float(stamp), error=_error_text(value))
    usage = value.get("usage") or {}
    choice = value["choices"][0] if value["choices"] else {}
    delta = choice.get("delta") or {}
    return Piece(
        at_s=float(stamp),
        text=str(choice.get("text") or delta.get("content") or ""),
        reasoning=str(delta.get("reasoning_content") or delta.get("reasoning") or ""),
        finish=str(choice.get("finish_reason") or ""),
        prompt_tokens=int(usage.get("prompt_tokens") or 0),
        tokens=int(usage.get("completion_tokens") or 0),
    )


def parse_start(line: str) -> float | None:
    """The time at which the question was sent, from the first line of a stream."""
    stamp, _, word = line.strip().partition(" ")
    return float(stamp) if word == "start" else None


def assemble_answer(start_s: float, pieces: Sequence[Piece]) -> Answer:
    """All pieces of a stream as one answer. tokens: as the server counted them, else the number of pieces."""
    said = [piece for piece in pieces if piece.text or piece.reasoning]
    counted = max((piece.tokens for piece in pieces), default=0)
    return Answer(
        text="".join(piece.text for piece in pieces),
        reasoning="".join(piece.reasoning for piece in pieces),
        prompt_tokens=max((piece.prompt_tokens for piece in pieces), default=0),
        tokens=counted or len(said),
        finish=next((piece.finish for piece in reversed(pieces) if piece.finish), ""),
        first_token_s=said[0].at_s - start_s if said else 0.0,
        total_s=said[-1].at_s - start_s if said else 0.0,
    )


def _streaming(stream: bool) -> dict[str, Any]:
    return {"stream": True, "stream_options": {"include_usage": True}} if stream else {}


def _curl(url: str, *, timeout_s: float, body: Mapping[str, Any] | None = None) -> Command:
    # Health questions are bundled with others and bundles have no standard input, so they carry no body.
    sending = "-H 'Content-Type: application/json' --data @- " if body is not None else ""
    script = f"curl -sS --max-time {timeout_s:g} {sending}-w '\\n{_TRAILER}%{{http_code}}]\\n' {quoted(url)}"
    command = shell(script, timeout_s=timeout_s + 5.0)
    return Command(command.argv, timeout_s=command.timeout_s, stdin=None if body is None else json.dumps(body))


def _error_text(value: Mapping[str, Any]) -> str:
    error = value.get("error", value)
    return str(error.get("message", error)) if isinstance(error, dict) else str(value.get("message", error))
