import json

import pytest

from sparkctl.errors import UnexpectedOutput
from sparkctl.tools.docker import (
    ContainerSpec,
    ContainerState,
    containers_command,
    image_command,
    parse_containers,
    parse_cpu_seconds,
    parse_image,
    parse_logs,
    parse_pull_line,
    run_command,
)
from sparkctl.transport.command import CommandResult
from tests.serving_examples import CAPTURES


def result(command, stdout="", stderr="", exit_code=0):
    return CommandResult("spark-a", command, exit_code, stdout, stderr)


def capture(name):
    return (CAPTURES / "docker" / name).read_text()


def test_an_image_that_is_there():
    image = parse_image(result(image_command("x"), capture("lab--image-inspect.out")))
    assert image is not None
    assert image.image_id.startswith("sha256:")
    assert (image.digests, image.architecture, image.entrypoint) == ((), "amd64", ())
    assert image.size_bytes > 10**9


def test_an_image_that_is_not_there():
    words = capture("lab--image-inspect-missing.err")
    assert parse_image(result(image_command("x"), "\n", words, 1)) is None


def test_running_containers_with_their_labels():
    (container,) = parse_containers(result(containers_command("l"), capture("lab--group-running.out")))
    assert container.name == "sparkctl-t-serve-rank0"
    assert container.state is ContainerState.RUNNING
    assert container.labels["sparkctl.rank"] == "0"


def test_an_ended_container():
    (container,) = parse_containers(result(containers_command("l"), capture("lab--group-ended.out")))
    assert (container.state, container.exit_code) == (ContainerState.EXITED, 137)


def test_no_containers():
    assert parse_containers(result(containers_command("l"))) == ()


@pytest.mark.parametrize(
    ("exit_code", "stderr", "message", "remedy"),
    [
        (1, capture("lab--permission-denied.err"), "may not use Docker", "usermod -aG docker"),
        (127, "sh: 1: docker: not found\n", "not installed", "apt install docker.io"),
        (1, capture("lab--daemon-down.err"), "not running", "systemctl start docker"),
    ],
)
def test_a_docker_that_does_not_answer_is_an_error_not_an_empty_host(exit_code, stderr, message, remedy):
    with pytest.raises(UnexpectedOutput) as raised:
        parse_containers(result(containers_command("l"), "", stderr, exit_code))
    assert message in raised.value.message
    assert remedy in raised.value.remedy


def test_garbage_is_named():
    with pytest.raises(UnexpectedOutput, match="docker answered: <html>"):
        parse_containers(result(containers_command("l"), "<html>\n"))


def test_logs_of_both_streams_are_joined_by_time_and_bars_keep_their_last_state():
    out = "2026-11-30T20:00:02.000000000Z second\n2026-11-30T20:00:03.000000000Z 0%\r50%\r100%\n"
    err = "2026-11-30T20:00:01.000000000Z first\nError response from daemon: no such thing\n"
    assert [line.text for line in parse_logs(out, err)] == ["first", "second", "100%"]


def test_cpu_seconds():
    assert parse_cpu_seconds(capture("lab--top.out")) > 0
    assert parse_cpu_seconds("PID                 TIME\n") == 0


@pytest.mark.parametrize(
    ("line", "event"),
    [
        ("4f4fb700ef54: Pull complete", ("4f4fb700ef54", True)),
        ("4f4fb700ef54: Already exists", ("4f4fb700ef54", True)),
        ("4f4fb700ef54: Pulling fs layer", ("4f4fb700ef54", False)),
        ("Digest: sha256:1234", None),
        ("Status: Downloaded newer image for busybox:latest", None),
    ],
)
def test_pull_lines(line, event):
    # lines as docker CLI 26.1 prints them without a terminal
    assert parse_pull_line(line) == event


def test_the_words_of_a_start():
    spec = ContainerSpec("n", "image", ("serve",), {"A": "1"}, {"l": "v"}, ("/a:/b:ro",), ("--network", "host"))
    assert run_command(spec).argv == (
        "docker", "run", "--detach", "--name", "n", "--network", "host", "--label", "l=v", "--env", "A=1",
        "--volume", "/a:/b:ro", "image", "serve",
    )  # fmt: skip


def test_captures_are_json():
    json.loads(capture("lab--group-running.out"))
