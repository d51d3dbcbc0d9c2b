import pytest

from sparkctl.errors import UnexpectedOutput
from sparkctl.tools.neighbours import Heard, parse_neighbours, ping_neighbours
from tests.capture_files import captured, printed

PING = ping_neighbours("0x15b3")


def test_both_far_twins_and_the_sibling_are_heard_on_one_cable():
    assert parse_neighbours(captured("neighbours/doc--shared-cable.out", PING)) == (
        Heard("enP2p1s0f1np1", "4c:bb:47:11:1b:3c"),
        Heard("enP2p1s0f1np1", "4c:bb:47:11:1b:40"),
        Heard("enP2p1s0f1np1", "4c:bb:47:2d:5c:2f"),
        Heard("enp1s0f1np1", "4c:bb:47:11:1b:3c"),
        Heard("enp1s0f1np1", "4c:bb:47:11:1b:40"),
        Heard("enp1s0f1np1", "4c:bb:47:2d:5c:33"),
    )


def test_a_lab_node_hears_the_facing_twins():
    heard = parse_neighbours(captured("neighbours/lab--pair.out", PING))
    assert [station.netdev for station in heard] == ["enP2p1s0f0np0", "enp1s0f0np0"]


def test_nobody_answers():
    assert parse_neighbours(captured("neighbours/doc--nobody.out", PING)) == ()


def test_no_ip_or_no_shell():
    assert parse_neighbours(printed("", PING, exit_code=127)) == ()
    assert parse_neighbours(printed("\n[neighbour table]\n", PING, exit_code=127)) == ()


def test_a_table_that_is_no_json():
    with pytest.raises(UnexpectedOutput, match="fe80::1 dev x"):
        parse_neighbours(printed("[neighbour table]\nfe80::1 dev x lladdr 02:00", PING))
