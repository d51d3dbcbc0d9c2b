from ipaddress import IPv4Interface

import pytest

from sparkctl.diff.change import AlignPort, RestoreNetplan, WriteNetplan
from sparkctl.diff.links import diff_links, diff_links_down
from sparkctl.errors import AccessRefused, UnexpectedOutput, UnsafeRefused
from sparkctl.plan.links import NETPLAN_PATH
from sparkctl.report.render_links import render_changes
from tests.link_examples import FIRST, TWIN, A, B, applied, changed, pair, plan, with_port

NVIDIA = "/etc/netplan/40-cx7.yaml"
DIFFERENCES_OF_B = """\
--- /dev/null
+++ spark-b:/etc/netplan/60-sparkctl-links.yaml
@@ -0,0 +1,21 @@
+# Written by sparkctl for spark-b: the links between the Sparks. Changes made here by hand are overwritten by
+# `sparkctl link up`; `sparkctl link down` puts back what was at this path before.
+network:
+  version: 2
+  ethernets:
+    # to spark-a:enp1s0f0np0, 10.177.0.1
+    enp1s0f0np0:
+      addresses: ["10.177.0.2/30"]
+      dhcp4: false
+      dhcp6: false
+      link-local: [ipv6]
+      mtu: 9000
+      optional: true
+    # to spark-a:enP2p1s0f0np0, 10.177.0.5
+    enP2p1s0f0np0:
+      addresses: ["10.177.0.6/30"]
+      dhcp4: false
+      dhcp6: false
+      link-local: [ipv6]
+      mtu: 9000
+      optional: true

spark-b: enp1s0f0np0
- address none
+ address 10.177.0.2/30
- mtu 1500
+ mtu 9000

spark-b: enP2p1s0f0np0
- address none
+ address 10.177.0.6/30
- mtu 1500
+ mtu 9000"""


def netplan(devices: str) -> str:
    return f"network:\n  version: 2\n  ethernets:\n{devices}"


def test_an_unconfigured_host_gets_file_addresses_and_mtu():
    facts = pair()
    wanted = plan(facts)

    changes = diff_links({**applied(facts, wanted), B: facts[B]}, wanted)

    assert "\n".join(render_changes(changes)) == DIFFERENCES_OF_B


def test_nothing_is_to_be_done_after_applying():
    facts = pair()
    wanted = plan(facts)

    changes = diff_links(applied(facts, wanted), wanted)

    assert changes == ()
    assert render_changes(changes) == ("no changes",)


@pytest.mark.parametrize(
    ("fields", "lines"),
    [
        ({"mtu_bytes": 1500}, ("spark-b: enP2p1s0f0np0", "- mtu 1500", "+ mtu 9000")),
        ({"addresses": ()}, ("spark-b: enP2p1s0f0np0", "- address none", "+ address 10.177.0.6/30")),
        ({"admin_up": False}, ("spark-b: enP2p1s0f0np0", "- down", "+ up")),
    ],
)
def test_a_port_that_runs_differently_is_aligned(fields, lines):
    facts = pair()
    wanted = plan(facts)

    (change,) = diff_links(with_port(applied(facts, wanted), B, TWIN, **fields), wanted)

    assert isinstance(change, AlignPort)
    assert change.diff() == lines


def test_our_own_older_file_is_replaced():
    facts = pair()
    wanted = plan(facts)
    older = wanted.of(B).netplan_text.replace("mtu: 9000", "mtu: 4200")

    changes = diff_links(changed(applied(facts, wanted), B, netplan_files={NETPLAN_PATH: older}), wanted)

    assert changes == (WriteNetplan(B, NETPLAN_PATH, older, wanted.of(B).netplan_text),)


@pytest.mark.parametrize(
    "text",
    [
        netplan("    enp1s0f0np0: {dhcp4: no, addresses: [192.168.100.10/24]}\n"),
        netplan("    enp1s0f0np0: {link-local: [ipv4]}\n"),
        netplan("    all: {match: {name: enp1*}, dhcp4: true}\n"),
        netplan("    nm: {match: {macaddress: '02:00:00:00:02:00'}, dhcp4: yes}\n"),
        "network: {version: 2, bonds: {rail: {interfaces: [enp1s0f0np0, enP2p1s0f0np0]}}}",
        "network: {version: 2, vlans: {v7: {id: 7, link: enp1s0f0np0, addresses: [10.1.1.1/24]}}}",
    ],
)
def test_a_port_that_somebody_else_configures_is_not_touched(text):
    facts = changed(pair(), B, netplan_files={NVIDIA: text})

    with pytest.raises(UnsafeRefused) as caught:
        diff_links(facts, plan(facts))

    assert caught.value.where == B
    assert caught.value.message.startswith(f"{NVIDIA} by NVIDIA's playbook or setup script already configures {FIRST}")
    assert caught.value.remedy.endswith(f"sudo mv {NVIDIA} {NVIDIA}.before-sparkctl && sudo netplan apply")


@pytest.mark.parametrize(
    "text",
    [
        netplan("    enp1s0f0np0: {optional: true, dhcp4: no}\n"),
        netplan("    enP7s7: {dhcp4: yes}\n"),
        netplan("    other: {match: {name: 'wl*'}, dhcp4: true}\n"),
        "",
    ],
)
def test_files_that_give_our_ports_no_address_do_not_matter(text):
    facts = changed(pair(), B, netplan_files={"/etc/netplan/50-cloud-init.yaml": text})

    assert {change.host for change in diff_links(facts, plan(facts))} == {A, B}


def test_an_address_that_no_file_explains_is_not_taken_away():
    facts = with_port(pair(), B, TWIN, addresses=(IPv4Interface("169.254.35.62/16"),))

    with pytest.raises(UnsafeRefused) as caught:
        diff_links(facts, plan(facts))

    assert str(caught.value) == (
        "spark-b: enP2p1s0f0np0 has 169.254.35.62/16, which no netplan file explains; "
        "it was set by hand or by NetworkManager"
    )


def test_files_that_cannot_be_read_or_understood_stop_everything():
    facts = pair()
    wanted = plan(facts)

    with pytest.raises(AccessRefused):
        diff_links(changed(facts, B, netplan_files=None), wanted)
    with pytest.raises(UnexpectedOutput, match=r"spark-b: /etc/netplan/40-cx7.yaml cannot be understood"):
        diff_links(changed(facts, B, netplan_files={NVIDIA: "network: ["}), wanted)


def test_down_restores_or_removes_the_file_where_it_is_ours():
    facts = pair()
    wanted = plan(facts)
    ours = applied(facts, wanted)

    changes = diff_links_down(ours, {A: "# mine", B: None})

    assert changes == (
        RestoreNetplan(A, NETPLAN_PATH, wanted.of(A).netplan_text, "# mine"),
        RestoreNetplan(B, NETPLAN_PATH, wanted.of(B).netplan_text, None),
    )
    assert changes[1].diff()[:2] == (f"--- spark-b:{NETPLAN_PATH}", "+++ /dev/null")


def test_down_has_nothing_to_do_where_the_bytes_are_right():
    assert diff_links_down(changed(pair(), A, netplan_files={NETPLAN_PATH: "# mine"}), {A: "# mine", B: None}) == ()
