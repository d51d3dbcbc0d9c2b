"""The stages of the link commands, as `link …` and `up` call them: each gets what it needs and returns a value."""

import getpass
import os
import secrets
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sparkctl.apply.journal import JournalState, LinkJournal, read_journals
from sparkctl.apply.links import SMALLEST_GUARD_S, Applied, NodeChange, apply_links
from sparkctl.apply.rollback import Guard, GuardedPort, revert_interrupted
from sparkctl.cli.wiring import asset
from sparkctl.diff.change import Change
from sparkctl.diff.links import diff_links, diff_links_down
from sparkctl.errors import UnsafeRefused, UsageError
from sparkctl.facts.gather import gather_cluster
from sparkctl.facts.model import HostFacts
from sparkctl.inventory.model import Cluster
from sparkctl.plan.links import NETPLAN_PATH, LinkPlan, bears_our_mark, our_addresses, plan_links
from sparkctl.plan.measurements import Measurement, plan_measurements
from sparkctl.plan.topology import assemble_cabling
from sparkctl.report.finding import Finding, Severity
from sparkctl.transport.command import Transport
from sparkctl.transport.fanout import on_all
from sparkctl.verify.bandwidth import BandwidthVerdict, judge_bandwidth
from sparkctl.verify.links import judge_links
from sparkctl.verify.measure import measure_bandwidth, observe_links

Say = Callable[[str], None]


@dataclass(frozen=True)
class PlannedLinks:
    """Facts of all hosts, the plan made from them, and what differs."""

    facts: Mapping[str, HostFacts]
    plan: LinkPlan
    changes: tuple[Change, ...]


def end_interrupted(transports: Sequence[Transport]) -> tuple[Finding, ...]:
    """Revert what an earlier change left behind on nodes where neither its controller nor its timer is left.

    One INFO per such node. Raises UnsafeRefused while a change is still under way, OperationFailed when it fails.
    """
    journals = read_journals(transports).require_all()
    for journal in journals.values():
        if journal.locked or journal.timer_running:
            raise UnsafeRefused(
                f"{journal.holder} has been changing the links since {journal.since}; nothing was changed",
                where=journal.host,
                remedy="wait until that has ended; if its controller died, the node is free again "
                f"{journal.guard_s} s after the start",
            )
    stuck = [transport for transport in transports if journals[transport.host].interrupted]
    on_all(stuck, lambda transport: revert_interrupted(transport, journals[transport.host])).require_all()
    return tuple(
        Finding(
            Severity.INFO,
            "link.recovered",
            transport.host,
            f"the change that {journals[transport.host].holder} began at {journals[transport.host].since} was never "
            "ended; it has been taken back",
        )
        for transport in stuck
    )


def plan_stage(cluster: Cluster, facts: Mapping[str, HostFacts]) -> PlannedLinks:
    """Cabling, plan and differences from facts. Raises what plan_links and diff_links raise."""
    cabling = assemble_cabling(facts, [host.name for host in cluster.hosts])
    plan = plan_links(cluster, facts, cabling, asset("templates/netplan.yaml.j2"))
    return PlannedLinks(facts, plan, diff_links(facts, plan))


def up_stage(transports: Sequence[Transport], planned: PlannedLinks, guard_s: int, say: Say) -> Applied:
    """Carry out the differences, guarded; without any, only prove the rails. See apply_links for errors."""
    involved = [transport for transport in transports if _concerns(planned.plan, transport.host)]
    if not planned.changes:
        return Applied(kept=True, findings=judge_links(planned.plan, observe_links(involved, planned.plan)))
    touched = {change.host for change in planned.changes}
    changes = {
        links.host: NodeChange(
            host=links.host,
            path=links.netplan_path,
            ports=tuple(GuardedPort(port.netdev, port.mtu_bytes, str(port.address)) for port in links.ports),
            touch=links.host in touched,
            text=links.netplan_text,
        )
        for links in planned.plan.hosts
    }

    def verify() -> tuple[Finding, ...]:
        return judge_links(planned.plan, observe_links(involved, planned.plan))

    return apply_links(involved, changes, new_guard(guard_s), verify, say)


def plan_down(
    transports: Sequence[Transport],
) -> tuple[Mapping[str, HostFacts], Mapping[str, str | None], tuple[Change, ...]]:
    """Facts, per host with something of ours the text from before it (None: no file), and what would change.

    Raises UnsafeRefused when our file is there and the node's record of what was before it is not.
    """
    journals = read_journals(transports).require_all()
    facts = gather_cluster(transports).require_all()
    for name, host in facts.items():
        _require_record(host, journals[name])
    before = {name: journal.before_text for name, journal in journals.items() if journal.has_before}
    return facts, before, diff_links_down(facts, before)


def down_stage(
    transports: Sequence[Transport],
    facts: Mapping[str, HostFacts],
    before: Mapping[str, str | None],
    guard_s: int,
    say: Say,
) -> Applied:
    """Put back what was there before sparkctl on every host in `before`, guarded. See apply_links for errors."""
    involved = [transport for transport in transports if transport.host in before]
    ours = {name: our_addresses(facts[name]) for name in before}
    changes = {
        name: NodeChange(
            host=name,
            path=NETPLAN_PATH,
            ports=tuple(
                GuardedPort(netdev, 0, str(address))
                for netdev, addresses in ours[name].items()
                for address in addresses
            ),
            touch=True,
            text=None,
        )
        for name in before
    }

    def verify() -> tuple[Finding, ...]:
        return _judge_down(gather_cluster(involved).require_all(), before, facts)

    return apply_links(involved, changes, new_guard(guard_s), verify, say)


def bandwidth_stage(
    transports: Sequence[Transport],
    facts: Mapping[str, HostFacts],
    plan: LinkPlan,
    seconds: int,
    say: Callable[[Measurement, int, int], None],
) -> tuple[BandwidthVerdict, ...]:
    """Measure every rail and all together, both ways, and judge. say: measurement, its index, how many in all."""
    measurements = plan_measurements(plan, seconds=seconds)
    samples = measure_bandwidth(transports, measurements, lambda item, index: say(item, index, len(measurements)))
    return judge_bandwidth(plan, facts, samples)


def missing_iperf3(facts: Mapping[str, HostFacts]) -> tuple[Finding, ...]:
    """One UNKNOWN finding per host without iperf3."""
    return tuple(
        Finding(
            Severity.UNKNOWN,
            "link.iperf3-missing",
            host.host,
            "iperf3 is not installed, so the bandwidth cannot be measured",
            remedy=f"on {host.host}: sudo apt install iperf3",
        )
        for host in facts.values()
        if "iperf3" not in host.programs
    )


def journal_findings(journals: Mapping[str, LinkJournal]) -> tuple[Finding, ...]:
    """What people should know of the nodes' journals; nothing about changes that ended well."""
    findings: list[Finding] = []
    for journal in journals.values():
        began = f"{journal.holder} began at {journal.since}"
        if journal.locked or journal.timer_running:
            text = (
                f"a change is under way: {began}; without confirmation the node reverts {journal.guard_s} s after that"
            )
            findings.append(Finding(Severity.INFO, "link.change-under-way", journal.host, text))
        elif journal.interrupted:
            findings.append(
                Finding(
                    Severity.WARN,
                    "link.interrupted",
                    journal.host,
                    f"a change was never ended: {began}",
                    remedy="`sparkctl link up` takes it back first and then goes on",
                )
            )
        elif journal.state is JournalState.REVERTED and journal.reason in ("timer", "restart"):
            text = f"the change that {began} was taken back by the node itself ({journal.reason})"
            findings.append(Finding(Severity.INFO, "link.reverted-by-node", journal.host, text))
        elif journal.state is JournalState.REVERT_FAILED:
            findings.append(
                Finding(
                    Severity.FAIL,
                    "link.revert-failed",
                    journal.host,
                    f"taking back the change that {began} did not work ({journal.reason})",
                    remedy=f"`sudo netplan apply` on {journal.host} tells why; then `sparkctl link up`",
                )
            )
    return tuple(findings)


def new_guard(seconds: int) -> Guard:
    """A guard for one change. Raises UsageError when there would be no time to verify anything."""
    if seconds < SMALLEST_GUARD_S:
        raise UsageError(
            f"{seconds} s are too short to apply, verify and confirm",
            remedy=f"`--guard-seconds {SMALLEST_GUARD_S}` or more",
        )
    holder = f"{getpass.getuser()}@{socket.gethostname()} (pid {os.getpid()})"
    return Guard(asset("templates/links_guard.sh"), secrets.token_hex(8), holder, seconds)


def _concerns(plan: LinkPlan, host: str) -> bool:
    return any(links.host == host for links in plan.hosts)


def _require_record(facts: HostFacts, journal: LinkJournal) -> None:
    text = (facts.netplan_files or {}).get(NETPLAN_PATH)
    if text is not None and bears_our_mark(text) and not journal.has_before:
        raise UnsafeRefused(
            f"{NETPLAN_PATH} is ours, but the record of what was there before is gone",
            where=facts.host,
            remedy=f"if nothing is to come back, on {facts.host}: sudo rm {NETPLAN_PATH} && sudo netplan apply",
        )


def _judge_down(
    facts: Mapping[str, HostFacts], before: Mapping[str, str | None], former: Mapping[str, HostFacts]
) -> tuple[Finding, ...]:
    findings: list[Finding] = []
    for name, text in before.items():
        left = [
            f"{port.netdev} {address}"
            for port in facts[name].ports
            for address in our_addresses(former[name]).get(port.netdev, ())
            if text is None and address in port.addresses
        ]
        if (facts[name].netplan_files or {}).get(NETPLAN_PATH) != text or left:
            findings.append(
                Finding(
                    Severity.FAIL,
                    "link.not-restored",
                    name,
                    "is not as it was before sparkctl",
                    found=", ".join(left) or f"other bytes in {NETPLAN_PATH}",
                    remedy="`sparkctl link status`, then `sparkctl link down` again",
                )
            )
        else:
            findings.append(Finding(Severity.OK, "link.restored", name, "is as it was before sparkctl"))
    return tuple(findings)
