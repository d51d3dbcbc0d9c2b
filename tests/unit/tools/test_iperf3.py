import subprocess
from ipaddress import IPv4Address
from pathlib import Path

import pytest

from sparkctl.errors import UnexpectedOutput
from sparkctl.tools.iperf3 import Iperf3Failure, Iperf3Run, client, parse_client, parse_refusal, server_for_one_test
from sparkctl.transport.command import CommandResult

CAPTURES = Path(__file__).parents[2] / "captures" / "iperf3"
COMMAND = client(IPv4Address("10.177.0.2"), IPv4Address("10.177.0.1"), 52177, 3, 8)


def printed(stdout: str, exit_code: int = 0, stderr: str = "") -> CommandResult:
    return CommandResult("spark-a", COMMAND, exit_code, stdout, stderr)


def captured(case: str) -> CommandResult:
    return printed((CAPTURES / f"{case}.json").read_text())


def test_the_client_is_bound_to_the_rail_and_bounded_in_time():
    assert str(COMMAND) == ("iperf3 -J -c 10.177.0.2 -B 10.177.0.1 -p 52177 -t 3 -O 1 -P 8 --connect-timeout 3000")
    assert COMMAND.timeout_s == 16


def test_two_streams():
    assert parse_client(captured("lab--two-streams")) == Iperf3Run(
        gbit_per_s=pytest.approx(7.287466376),
        sender_cpu_percent=pytest.approx(27.42297),
        receiver_cpu_percent=pytest.approx(21.4376),
        threads=2,
        retransmits=2,
    )


def test_an_older_iperf3_has_one_thread_for_all_streams():
    text = (CAPTURES / "lab--two-streams.json").read_text().replace("iperf 3.18", "iperf 3.9")

    measured = parse_client(printed(text))

    assert isinstance(measured, Iperf3Run)
    assert measured.threads == 1


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        (
            captured("lab--refused"),
            "unable to connect to server - server may have stopped running or use a different port, firewall issue, "
            "etc.: Connection refused",
        ),
        (printed("", 124), "no end within the time limit"),
        (printed("", 127, "sh: iperf3: not found"), "sh: iperf3: not found"),
    ],
)
def test_what_could_not_be_measured_is_said_in_iperf3s_words(result, reason):
    assert parse_client(result) == Iperf3Failure(reason)


@pytest.mark.parametrize("text", ["iperf3: help", "[]", '{"start": {"version": "iperf 4"}, "end": {}}'])
def test_another_shape_is_an_error(text):
    with pytest.raises(UnexpectedOutput, match="iperf3 printed what sparkctl does not know"):
        parse_client(printed(text))


def test_a_server_that_cannot_start_says_why(tmp_path):
    program = tmp_path / "iperf3"
    program.write_text(
        "#!/bin/sh\necho 'iperf3: error - unable to start listener: Address already in use' >&2\n"
        "echo 'iperf3: exiting' >&2\nexit 1\n"
    )
    program.chmod(0o755)
    command = server_for_one_test(IPv4Address("127.0.0.1"), 52177, 1)

    done = subprocess.run(
        command.argv, capture_output=True, text=True, check=False, env={"PATH": f"{tmp_path}:/usr/bin:/bin"}
    )

    assert done.returncode == 1
    assert parse_refusal(CommandResult("spark-a", command, 1, done.stdout)) == Iperf3Failure(
        "no server: iperf3: error - unable to start listener: Address already in use"
    )
