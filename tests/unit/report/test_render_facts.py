from dataclasses import replace

from sparkctl.errors import HostUnreachable
from sparkctl.inventory.load import parse_cluster
from sparkctl.inventory.model import Host
from sparkctl.plan.topology import assemble_cabling
from sparkctl.report.render_facts import render_cabling, render_host_facts, render_hosts, render_ports
from sparkctl.report.render_inventory import render_inventory
from tests.cabling_examples import P0, P1, A, B, C, sparks

FACTS = sparks([A, B], [[(A, P0), (B, P1)]], off=[(B, "enP2p1s0f1np1")])


def test_hosts():
    facts = {**FACTS, C: replace(FACTS[B], host=C, gpu=None, driver=None, simulated=("GPU",))}
    error = HostUnreachable("gone", where="spark-d", remedy="look")
    assert render_hosts(facts, {"spark-d": error}) == (
        "host     machine                         memory     system        driver     docker    simulated",
        "-------  ------------------------------  ---------  ------------  ---------  --------  -----------",
        "spark-a  NVIDIA GB10 · NVIDIA_DGX_Spark  121.7 GiB  Ubuntu 24.04  580.95.05  29.0",
        "spark-b  NVIDIA GB10 · NVIDIA_DGX_Spark  121.7 GiB  Ubuntu 24.04  580.95.05  29.0",
        "spark-c  not a Spark (no NVIDIA GPU)     121.7 GiB  Ubuntu 24.04             29.0      yes",
        "spark-d  not readable",
    )


def test_ports():
    assert render_ports({B: FACTS[B]}) == (
        "host     cage    port           RDMA device    PCI           link          MTU    addresses",
        "-------  ------  -------------  -------------  ------------  ------------  -----  -----------",
        "spark-b  p0      enp1s0f0np0    rocep1s0f0     0000:01:00.0  no link       1500",
        "spark-b  p1      enp1s0f1np1    rocep1s0f1     0000:01:00.1  200 Gbit/s    1500",
        "spark-b  p0      enP2p1s0f0np0  roceP2p1s0f0   0002:01:00.0  no link       1500",
        "spark-b  p1      enP2p1s0f1np1  roceP2p1s0f1   0002:01:00.1  switched off  1500",
    )


def test_cabling():
    (head, cable, rail) = render_cabling(assemble_cabling(FACTS, [A, B]))
    assert head == "cabling: direct"
    assert cable.endswith(", 1 rail")
    assert rail == "    spark-a:enp1s0f0np0 ⇄ spark-b:enp1s0f1np1"
    switch = sparks([A, B, C], [[(A, P0), (B, P0), (C, P0)]])
    assert render_cabling(assemble_cabling(switch, [A, B, C])) == (
        "cabling: switch",
        "  switch: spark-a:p0, spark-b:p0, spark-c:p0",
    )


def test_all_facts_of_a_host():
    lines = render_host_facts(replace(FACTS[A], netplan_files=None, programs=frozenset()))
    assert lines[0] == "spark-a"
    assert "  netplan     not readable without sudo" in lines
    assert "  programs    none of those asked for" in lines
    assert "  management  192.0.2.11 on enP7s7" in lines


def test_an_inventory_that_is_read_back():
    hosts = (
        Host("spark-a", "192.0.2.1", user="nvidia"),
        Host("no", "2001:db8::1", user="o: x#", port=2222, key="~/.ssh/id", known_hosts="/a b/known"),
        Host("7", "spark.local"),
    )
    text = render_inventory("desk", hosts)
    assert parse_cluster(text, "cluster.yaml").hosts == hosts
    assert "  - name: spark-a\n    address: 192.0.2.1\n    user: nvidia\n" in text
