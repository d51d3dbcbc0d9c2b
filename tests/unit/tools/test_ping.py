from ipaddress import IPv4Address
from pathlib import Path

import pytest

from sparkctl.errors import UnexpectedOutput
from sparkctl.tools.ping import PingResult, full_size_ping, parse_ping
from sparkctl.transport.command import CommandResult

CAPTURES = Path(__file__).parents[2] / "captures" / "ping"
COMMAND = full_size_ping(IPv4Address("10.177.0.2"), IPv4Address("10.177.0.1"), 9000)


def test_a_full_packet_is_the_mtu_with_its_headers():
    assert str(COMMAND) == "ping -n -M do -s 8972 -c 2 -i 0.2 -W 1 -I 10.177.0.1 10.177.0.2"


@pytest.mark.parametrize(
    ("case", "exit_code", "expected"),
    [
        ("lab--answered", 0, PingResult(2, 2, None, 0.18)),
        ("lab--too-long", 1, PingResult(2, 0)),
        ("lab--no-answer", 1, PingResult(2, 0)),
        ("lab--no-address", 2, PingResult(0, 0)),
    ],
)
def test_captures(case, exit_code, expected):
    text = (CAPTURES / f"{case}.out").read_text()

    assert parse_ping(CommandResult("spark-a", COMMAND, exit_code, text)) == expected


@pytest.mark.parametrize(
    "words",
    ["ping: local error: message too long, mtu=1500", "From 10.0.0.1 icmp_seq=1 Frag needed and DF set (mtu = 1500)"],
)
def test_an_mtu_that_is_told_is_kept(words):
    text = f"{words}\n2 packets transmitted, 0 received, +2 errors, 100% packet loss, time 221ms\n"

    assert parse_ping(CommandResult("spark-a", COMMAND, 1, text)) == PingResult(2, 0, 1500)


def test_success_without_a_summary_is_an_error():
    with pytest.raises(UnexpectedOutput):
        parse_ping(CommandResult("spark-a", COMMAND, 0, "pong\n"))
