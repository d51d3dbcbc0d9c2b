import pytest

from sparkctl.errors import UsageError
from sparkctl.inventory.model import Host
from sparkctl.inventory.target import parse_target


@pytest.mark.parametrize(
    ("text", "address", "user", "port"),
    [
        ("192.0.2.1", "192.0.2.1", None, 22),
        ("nvidia@spark-5c2d.local", "spark-5c2d.local", "nvidia", 22),
        ("nvidia@192.0.2.1:2222", "192.0.2.1", "nvidia", 2222),
        ("2001:db8::1", "2001:db8::1", None, 22),
        ("me@[2001:db8::1]:2222", "2001:db8::1", "me", 2222),
        ("fe80::1%en0", "fe80::1%en0", None, 22),
    ],
)
def test_targets(text, address, user, port):
    assert parse_target(text) == Host(address, address, user, port)


@pytest.mark.parametrize("text", ["", "a b", "@host", "a@b@c", "host:0", "host:99999", "host:x"])
def test_what_names_no_host(text):
    with pytest.raises(UsageError, match="names no host"):
        parse_target(text)
