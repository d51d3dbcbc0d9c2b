from dataclasses import replace

from sparkctl.facts.distinct import distinct_hosts
from sparkctl.inventory.model import Host
from tests.cabling_examples import A, sparks

SPARK = sparks([A], [])[A]


def facts(**found):
    return {name: replace(SPARK, host=name, **fields) for name, fields in found.items()}


def test_hosts_get_the_names_they_call_themselves():
    hosts, named = distinct_hosts(
        [Host("one", "192.0.2.1", user="me"), Host("two", "192.0.2.2"), Host("dead", "192.0.2.3")],
        facts(one={"hostname": "spark-5c2d.local"}, two={"hostname": "spark-bd26", "machine_id": "other"}),
    )
    assert hosts == (Host("spark-5c2d", "192.0.2.1", user="me"), Host("spark-bd26", "192.0.2.2"))
    assert [(name, host.host) for name, host in named.items()] == [
        ("spark-5c2d", "spark-5c2d"),
        ("spark-bd26", "spark-bd26"),
    ]


def test_a_second_address_of_the_same_machine_is_dropped():
    hosts, _ = distinct_hosts([Host("one", "192.0.2.1"), Host("two", "fe80::1")], facts(one={}, two={}))
    assert [host.address for host in hosts] == ["192.0.2.1"]


def test_names_that_an_inventory_cannot_hold_or_that_are_shared():
    found = facts(
        one={"hostname": "spark", "machine_id": "1"},
        two={"hostname": "spark", "machine_id": "2"},
        three={"hostname": "my_box", "machine_id": "3"},
    )
    hosts, _ = distinct_hosts([Host(name, name) for name in found], found)
    assert [host.name for host in hosts] == ["host-1", "host-2", "host-3"]
