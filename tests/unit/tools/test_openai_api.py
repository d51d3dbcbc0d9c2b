import pytest

from sparkctl.errors import UnexpectedOutput
from sparkctl.tools.openai_api import (
    assemble_answer,
    chat_body,
    health_command,
    parse_completion,
    parse_piece,
    parse_reply,
    parse_start,
    plain_body,
    stream_command,
)
from sparkctl.transport.command import CommandResult
from tests.serving_examples import CAPTURES


def reply(stdout, exit_code=0, stderr=""):
    return parse_reply(CommandResult("spark-a", health_command("127.0.0.1", 8000), exit_code, stdout, stderr))


def streamed(name):
    start, *rest = (CAPTURES / "openai_api" / name).read_text().splitlines()
    began = parse_start(start)
    assert began is not None
    return assemble_answer(began, [piece for piece in map(parse_piece, rest) if piece is not None])


def test_a_streamed_chat_answer():
    answer = streamed("lab--chat-stream.out")
    assert "Paris" in answer.text
    assert answer.tokens > 5
    assert 0 < answer.first_token_s < answer.total_s
    assert answer.tokens_per_s == pytest.approx((answer.tokens - 1) / (answer.total_s - answer.first_token_s))


def test_a_streamed_text_completion():
    answer = streamed("lab--completion-stream.out")
    assert (answer.tokens, answer.finish) == (16, "length")


def test_an_error_in_place_of_a_stream():
    lines = (CAPTURES / "openai_api" / "lab--unknown-model.out").read_text().splitlines()
    errors = [piece.error for piece in map(parse_piece, lines[1:]) if piece is not None and piece.error]
    assert "does not exist" in errors[0]


def test_replies():
    assert reply("\n[sparkctl http 200]\n").status == 200
    assert reply("\n[sparkctl http 000]\n", 7, "curl: (7) Failed to connect").status == 0


def test_without_curl_it_says_so():
    with pytest.raises(UnexpectedOutput) as raised:
        reply("", 127, "sh: 1: curl: not found")
    assert "apt install curl" in raised.value.remedy


def test_what_is_no_completion_is_an_error():
    with pytest.raises(UnexpectedOutput, match="sent no completion"):
        parse_completion('{"detail": "not found"}')


def test_questions_go_through_standard_input_only():
    command = stream_command("h", 1, "/v1/chat/completions", chat_body("m", "my secret", max_tokens=1), timeout_s=1)
    assert "secret" not in command.shell_line()
    assert "my secret" in (command.stdin or "")


def test_proofs_are_deterministic():
    assert plain_body("m", "p", max_tokens=1, stream=False)["temperature"] == 0
