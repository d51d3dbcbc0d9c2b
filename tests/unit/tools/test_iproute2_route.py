from ipaddress import IPv4Address
from pathlib import Path

import pytest

from sparkctl.errors import UnexpectedOutput
from sparkctl.tools.iproute2_route import ChosenRoute, parse_route_get, route_get
from sparkctl.transport.command import CommandResult

CAPTURES = Path(__file__).parents[2] / "captures" / "iproute2_route"
COMMAND = route_get(IPv4Address("10.213.0.12"), IPv4Address("10.213.0.11"), "enP7s7")


def test_the_question_is_bound_to_address_and_netdev():
    assert str(COMMAND) == "ip -j -4 route get 10.213.0.12 from 10.213.0.11 oif enP7s7"


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ("lab--on-link", ChosenRoute("enP7s7", IPv4Address("10.213.0.11"), None)),
        ("netns--gateway", ChosenRoute("enP7s7", IPv4Address("10.213.0.11"), IPv4Address("10.213.0.1"))),
    ],
)
def test_captures(case, expected):
    result = CommandResult("spark-a", COMMAND, 0, (CAPTURES / f"{case}.json").read_text())

    assert parse_route_get(result) == expected


def test_no_route_is_none():
    assert (
        parse_route_get(CommandResult("spark-a", COMMAND, 2, "", "RTNETLINK answers: Network is unreachable")) is None
    )


@pytest.mark.parametrize("text", ["", "[]", '[{"dst": "10.0.0.1"}]', "10.0.0.1 dev enP7s7"])
def test_another_shape_is_an_error(text):
    with pytest.raises(UnexpectedOutput):
        parse_route_get(CommandResult("spark-a", COMMAND, 0, text))
