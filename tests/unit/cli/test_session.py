"""The error boundary: whatever ends a command, its envelope and its exit code say so."""

import json

import pytest
import typer

from sparkctl.cli.session import Result, Session, run_command
from sparkctl.errors import OperationFailed, UsageError
from sparkctl.report.finding import Finding, Severity, Status

FAIL = Finding(Severity.FAIL, "x.y", "spark-a", "broken", remedy="mend it")


def run(body, capsys, *, as_json: bool = True):
    with pytest.raises(typer.Exit) as caught:
        run_command("some command", Session(json=as_json), body)
    captured = capsys.readouterr()
    return caught.value.exit_code, json.loads(captured.out) if as_json else captured


def test_findings_decide_when_the_body_does_not(capsys):
    assert run(lambda _: Result(findings=(FAIL,)), capsys)[0] == 1
    assert run(lambda _: Result(), capsys)[0] == 0
    assert run(lambda _: Result(status=Status.CHANGES), capsys)[0] == 10


def test_an_error_speaks_json_and_carries_its_exit_code(capsys):
    def body(_: Session) -> Result:
        raise UsageError("no", remedy="type something else")

    code, envelope = run(body, capsys)

    assert (code, envelope["status"], envelope["errors"][0]["remedy"]) == (2, "usage", "type something else")


def test_an_error_after_part_of_the_work_keeps_that_part(capsys):
    error = OperationFailed("half way", remedy="go on")

    code, envelope = run(lambda _: Result({"done": 1}, findings=(FAIL,), error=error), capsys)

    assert (code, envelope["data"], len(envelope["findings"])) == (1, {"done": 1}, 1)
    assert envelope["errors"][0]["message"] == "half way"


def test_ctrl_c_ends_with_130(capsys):
    def body(_: Session) -> Result:
        raise KeyboardInterrupt

    code, envelope = run(body, capsys)

    assert (code, envelope["status"]) == (130, "interrupted")


def test_data_goes_to_stdout_and_words_to_stderr(capsys):
    def body(session: Session) -> Result:
        session.say("words")
        session.show(("shown",))
        return Result(lines=("line",))

    _, captured = run(body, capsys, as_json=False)
    assert (captured.out, captured.err) == ("shown\nline\n", "words\n")

    with pytest.raises(typer.Exit):
        run_command("some command", Session(json=True), body)
    captured = capsys.readouterr()
    assert json.loads(captured.out)["status"] == "ok"
    assert captured.err == "words\nshown\n"


def test_a_question_nobody_can_answer_is_a_usage_error(capsys):
    def body(session: Session) -> Result:
        session.confirm("Really?", yes=False)
        return Result()

    code, envelope = run(body, capsys)

    assert code == 2
    assert "--yes" in envelope["errors"][0]["remedy"]


def test_brackets_in_output_are_text_not_colours(capsys):
    _, captured = run(lambda _: Result(lines=("[red]x[/red] [/]",)), capsys, as_json=False)

    assert captured.out == "[red]x[/red] [/]\n"
