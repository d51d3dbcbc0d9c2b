"""The report of the whole path as text: what no single stage can tell."""

from collections.abc import Sequence
from dataclasses import dataclass

from sparkctl.tools.openai_api import Answer


@dataclass(frozen=True)
class StageTime:
    """How long a stage took."""

    stage: str
    seconds: float


def render_answer(question: str, answer: Answer) -> tuple[str, ...]:
    """Question, answer and pace; a reasoning model that has not come to an answer shows its reasoning."""
    text = " ".join((answer.text or answer.reasoning).split())
    return (
        f"asked:    {question}",
        f"answered: {text}",
        f"          first token after {answer.first_token_s:.2f} s, then {answer.tokens_per_s:.1f} tokens/s "
        f"({answer.tokens} tokens, one user)",
    )


def render_stages(times: Sequence[StageTime]) -> tuple[str, ...]:
    """One line: each stage with its time, and the sum."""
    if not times:
        return ()
    each = ", ".join(f"{time.stage} {time.seconds:.1f} s" for time in times)
    return (f"stages:   {each}; together {sum(time.seconds for time in times):.1f} s",)


def render_stop(times: Sequence[StageTime]) -> tuple[str, ...]:
    """One line that names the stage that was the last, because it was not right."""
    return (f"stopped at `{times[-1].stage}`; the stages before it are done and stay as they are",) if times else ()


def render_next() -> tuple[str, ...]:
    """One line: what can be typed now that a model is served."""
    return ("next:     `sparkctl ask 'your question'`, `sparkctl status`, `sparkctl logs`; back: `sparkctl down`",)
