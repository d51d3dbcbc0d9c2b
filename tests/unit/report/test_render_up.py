from sparkctl.report.render_up import StageTime, render_answer, render_stages, render_stop
from sparkctl.tools.openai_api import Answer

TIMES = (StageTime("discover", 1.24), StageTime("link", 4.0))


def answer(text: str, reasoning: str = "") -> Answer:
    return Answer(text, reasoning, prompt_tokens=5, tokens=11, finish="stop", first_token_s=0.5, total_s=2.5)


def test_question_answer_and_pace_of_one_user():
    assert render_answer("Why?", answer(" Because\n of it. ")) == (
        "asked:    Why?",
        "answered: Because of it.",
        "          first token after 0.50 s, then 5.0 tokens/s (11 tokens, one user)",
    )


def test_a_reasoning_model_that_has_not_come_to_an_answer_shows_its_reasoning():
    assert render_answer("Why?", answer("", "Let me think"))[1] == "answered: Let me think"


def test_stages_and_where_it_stopped():
    assert render_stages(TIMES) == ("stages:   discover 1.2 s, link 4.0 s; together 5.2 s",)
    assert render_stop(TIMES) == ("stopped at `link`; the stages before it are done and stay as they are",)
    assert render_stages(()) == render_stop(()) == ()
