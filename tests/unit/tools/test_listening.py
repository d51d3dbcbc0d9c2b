import pytest

from sparkctl.errors import UnexpectedOutput
from sparkctl.tools.listening import Listener, parse_listening, port_is_taken
from tests.serving_examples import CAPTURES


def test_listeners_of_a_node():
    listeners = parse_listening((CAPTURES / "listening" / "lab--listening.out").read_text())
    assert port_is_taken(listeners, 22)
    assert not port_is_taken(listeners, 8000)


def test_interfaces_and_ipv6():
    text = "LISTEN 0 4096 127.0.0.53%lo:53 0.0.0.0:*\nLISTEN 0 128 [::]:22 [::]:*\nLISTEN 0 5 *:8000 *:*\n"
    assert parse_listening(text) == (Listener("127.0.0.53", 53), Listener("::", 22), Listener("*", 8000))


def test_nobody_listens():
    assert parse_listening("") == ()


def test_garbage_is_an_error():
    with pytest.raises(UnexpectedOutput):
        parse_listening("ss: command failed\n")
