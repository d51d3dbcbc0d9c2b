from ipaddress import IPv4Network
from pathlib import Path

import pytest

from sparkctl.errors import InvalidInventory, UsageError
from sparkctl.inventory.load import inventory_path, load_cluster, parse_cluster
from sparkctl.inventory.model import Host

EXAMPLE = Path(__file__).parents[3] / "inventory" / "example.yaml"
SMALLEST = "cluster: desk\nhosts:\n  - name: spark-a\n"


def problems_of(text: str) -> tuple[str, ...]:
    with pytest.raises(InvalidInventory) as caught:
        parse_cluster(text, "c.yaml")
    assert caught.value.exit_code == 2
    return caught.value.problems


def test_everything_discoverable_may_be_left_out():
    cluster = parse_cluster(SMALLEST, "c.yaml")

    assert cluster.hosts == (Host(name="spark-a", address="spark-a"),)
    assert (cluster.links.mtu_bytes, cluster.links.expect_gbit_per_s) == (9000, 200.0)


def test_the_example_documents_every_field_and_is_valid():
    cluster = load_cluster(EXAMPLE)

    assert [host.name for host in cluster.hosts] == ["spark-a", "spark-b"]
    assert cluster.links.pool == IPv4Network("10.177.0.0/16")
    assert cluster.serving.engine_args == ("--max-model-len", "32768")


def test_a_host_takes_what_it_lacks_from_the_ssh_defaults():
    text = SMALLEST + "  - {name: b, address: 192.0.2.2, user: other, port: 2222}\nssh: {user: nvidia, key: ~/k}\n"

    first, second = parse_cluster(text, "c.yaml").hosts

    assert (first.user, first.port, first.key) == ("nvidia", 22, "~/k")
    assert (second.user, second.port, second.key) == ("other", 2222, "~/k")


def test_all_mistakes_are_reported_at_once_with_line_and_field():
    text = """cluster: my desk
hosts:
  - name: spark-a
    adress: 192.0.2.1
  - name: spark-a
    port: 99999
  - address: nvidia@192.0.2.3
links:
  mtu: "9000"
  pool: 8.8.8.0/24
serving: {prot: 1, tp: 0}
"""
    assert problems_of(text) == (
        "c.yaml:1: cluster: use letters, digits and hyphens, at most 63",
        "c.yaml:4: hosts.0.adress: unknown field; did you mean `address`?",
        "c.yaml:5: hosts.1.name: spark-a is already used in line 3",
        "c.yaml:6: hosts.1.port: Input should be less than or equal to 65535",
        "c.yaml:7: hosts.2.address: give a host name or IP address alone; user and port have fields of their own",
        "c.yaml:7: hosts.2.name: is required",
        "c.yaml:9: links.mtu: Input should be a valid integer",
        "c.yaml:10: links.pool: must be a private network, such as 10.177.0.0/16",
        "c.yaml:11: serving.prot: unknown field; did you mean `port`?",
        "c.yaml:11: serving.tp: Input should be greater than or equal to 1",
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("cluster: [x\n", "c.yaml:2: YAML: expected ',' or ']', but got '<stream end>'"),
        ("- a\n- b\n", "c.yaml:1: file: must be a mapping with `cluster:` and `hosts:`"),
        ("", "c.yaml:1: file: must be a mapping with `cluster:` and `hosts:`"),
        ("cluster: x\ncluster: y\nhosts: []\n", 'c.yaml:2: YAML: found duplicate key "cluster" with value "y"'),
        ("cluster: x\nhosts: []\n", "c.yaml:2: hosts: List should have at least 1 item after validation, not 0"),
        ("cluster: x\nhosts: 7\n", "c.yaml:2: hosts: Input should be a valid list"),
        ("cluster: x\n", "c.yaml:1: hosts: is required"),
    ],
)
def test_a_file_of_another_shape_is_refused_with_its_line(text: str, problem: str):
    assert problem in "\n".join(problems_of(text))


def test_two_hosts_at_one_address_are_refused_but_not_at_two_ports():
    hosts = "cluster: x\nhosts:\n- {name: a, address: h}\n- {name: b, address: h%s}\n"

    assert problems_of(hosts % "") == ("c.yaml:4: hosts.1.address: h is already used in line 3",)
    assert len(parse_cluster(hosts % ", port: 2222", "c.yaml").hosts) == 2


def test_the_first_existing_file_is_used_in_the_documented_order(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("SPARKCTL_INVENTORY", raising=False)
    with pytest.raises(UsageError, match=r"no inventory file at cluster\.yaml or inventory/cluster\.yaml or "):
        inventory_path(None)

    (tmp_path / "inventory").mkdir()
    Path("inventory/cluster.yaml").write_text(SMALLEST)
    assert inventory_path(None) == Path("inventory/cluster.yaml")
    Path("cluster.yaml").write_text(SMALLEST)
    assert inventory_path(None) == Path("cluster.yaml")
    Path("other.yaml").write_text(SMALLEST)
    monkeypatch.setenv("SPARKCTL_INVENTORY", "other.yaml")
    assert inventory_path(None) == Path("other.yaml")
    with pytest.raises(UsageError, match=r"missing\.yaml"):
        inventory_path(Path("missing.yaml"))


def test_narrowing_keeps_the_files_order():
    cluster = parse_cluster("cluster: x\nhosts: [{name: a}, {name: b}, {name: c}]\n", "c.yaml")

    assert [host.name for host in cluster.narrowed(("c", "a")).hosts] == ["a", "c"]
    assert cluster.narrowed(()) is cluster
