"""Asks a served model a question, as a chat where it can chat."""

from collections.abc import Callable

from sparkctl.errors import OperationFailed
from sparkctl.tools.openai_api import Answer, Piece, chat_body, plain_body
from sparkctl.transport.command import Transport
from sparkctl.verify.watch import stream_answer


def ask_question(
    head: Transport, port: int, model: str, question: str, max_tokens: int, on_piece: Callable[[Piece], None]
) -> Answer:
    """The model's answer, streamed. A model without a chat template continues the question as plain text.

    Raises OperationFailed with the server's own words when it refuses or breaks off.
    """
    try:
        body = chat_body(model, question, max_tokens=max_tokens)
        return stream_answer(head, port, "/v1/chat/completions", body, on_piece)
    except OperationFailed as error:
        if "chat template" not in error.message:
            raise
    body = plain_body(model, question, max_tokens=max_tokens, stream=True)
    return stream_answer(head, port, "/v1/completions", body, on_piece)
