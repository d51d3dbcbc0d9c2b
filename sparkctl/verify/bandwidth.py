"""Judges measured rates against their floors and names the probable cause of what is too slow."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from sparkctl.facts.model import HostFacts, Port
from sparkctl.plan.links import LinkPlan
from sparkctl.plan.measurements import RAIL_FLOOR_FRACTION, THROTTLED_RAIL_FRACTION, Measurement, Scope
from sparkctl.report.finding import Finding, Severity
from sparkctl.tools.iperf3 import Iperf3Failure, Iperf3Run

# iperf3 that keeps its cores this busy is the bottleneck itself.
CPU_BOUND_PERCENT = 90.0
# Lower end of the band of a throttled ConnectX-7: 8 of 200 Gb/s.
_THROTTLED_LOW_FRACTION = 8 / 200
# The guide's degraded start "may affect one direction only"; healthy directions differ by a few percent.
_ASYMMETRY_RATIO = 0.6
# All rails together carry hardly more than the best of them alone.
_ONE_RAIL_RATIO = 1.2
_DEFAULT_MTU_BYTES = 1500

_COLD_CYCLE = (
    "shut both machines down, unplug their power for 60 s and start them again: a reboot is not enough; then update "
    "the ConnectX-7 firmware if it comes back"
)


class Verdict(StrEnum):
    """PASS: at or above the floor. DEGRADED: works, below its floor. FAIL: broken or as good as."""

    PASS = "pass"  # noqa: S105  # a verdict, not a password
    DEGRADED = "degraded"
    FAIL = "fail"


@dataclass(frozen=True)
class Sample:
    """What a measurement brought: one entry per transfer, or fewer when a server did not start."""

    measurement: Measurement
    runs: tuple[Iperf3Run | Iperf3Failure, ...]

    @property
    def failures(self) -> tuple[Iperf3Failure, ...]:
        return tuple(run for run in self.runs if isinstance(run, Iperf3Failure))

    @property
    def gbit_per_s(self) -> float | None:
        """Sum of the transfers; None when one of them could not be measured."""
        if self.failures or not self.runs:
            return None
        return sum(run.gbit_per_s for run in self.runs if isinstance(run, Iperf3Run))


@dataclass(frozen=True)
class BandwidthVerdict:
    """The verdict on one measurement. gbit_per_s: TCP payload; None when nothing was measured.

    rails_gbit_per_s: the parts of it, by the sender's netdev. cause, remedy: empty for PASS.
    """

    scope: Scope
    subject: str
    sender: str
    receiver: str
    gbit_per_s: float | None
    rails_gbit_per_s: Mapping[str, float]
    floor_gbit_per_s: float
    verdict: Verdict
    cpu_bound: bool
    cause: str = ""
    remedy: str = ""


def judge_bandwidth(
    plan: LinkPlan, facts: Mapping[str, HostFacts], samples: Sequence[Sample]
) -> tuple[BandwidthVerdict, ...]:
    """One verdict per sample, in order; the cause is the first of a list that fits, most certain first.

    Causes: not measurable, MTU of 1500 or not as planned, negotiated speed, TCP bound by the processor, throttled
    ConnectX-7, one rail's worth only, one slow rail, one slow direction. A rate that the processor limits is never
    FAIL, because it says nothing about the link.
    """
    return tuple(_judge(plan, facts, sample, samples) for sample in samples)


def bandwidth_findings(
    verdicts: Iterable[BandwidthVerdict], simulated: Mapping[str, tuple[str, ...]]
) -> tuple[Finding, ...]:
    """One finding per verdict that is no PASS (link.bandwidth), and one INFO (link.simulated) if hosts only pretend.

    simulated: by host what it simulates; empty tuples are real machines.
    """
    severity = {Verdict.DEGRADED: Severity.DEGRADED, Verdict.FAIL: Severity.FAIL}
    findings = [
        Finding(
            severity[item.verdict],
            "link.bandwidth",
            item.subject,
            "not measured" if item.gbit_per_s is None else f"{item.gbit_per_s:.2f} Gb/s",
            expected=f"at least {item.floor_gbit_per_s:.2f} Gb/s",
            cause=item.cause,
            remedy=item.remedy,
        )
        for item in verdicts
        if item.verdict is not Verdict.PASS
    ]
    pretending = [host for host, what in simulated.items() if what]
    if pretending:
        findings.append(
            Finding(
                Severity.INFO,
                "link.simulated",
                ", ".join(pretending),
                "virtual Sparks: the rates are those of shaped virtual cables on this machine, not of hardware",
            )
        )
    return tuple(findings)


def _judge(
    plan: LinkPlan, facts: Mapping[str, HostFacts], sample: Sample, samples: Sequence[Sample]
) -> BandwidthVerdict:
    measurement, rate = sample.measurement, sample.gbit_per_s
    bound = _cpu_bound(facts, sample)
    if rate is None:
        verdict = Verdict.FAIL
    elif rate >= measurement.floor_gbit_per_s:
        verdict = Verdict.PASS
    elif rate < measurement.fail_gbit_per_s and not bound:
        verdict = Verdict.FAIL
    else:
        verdict = Verdict.DEGRADED
    cause, remedy = ("", "") if verdict is Verdict.PASS else _cause(plan, facts, sample, samples)
    return BandwidthVerdict(
        scope=measurement.scope,
        subject=measurement.subject,
        sender=measurement.sender,
        receiver=measurement.receiver,
        gbit_per_s=rate,
        rails_gbit_per_s={
            transfer.netdev: run.gbit_per_s
            for transfer, run in zip(measurement.transfers, sample.runs, strict=False)
            if isinstance(run, Iperf3Run)
        },
        floor_gbit_per_s=measurement.floor_gbit_per_s,
        verdict=verdict,
        cpu_bound=bound,
        cause=cause,
        remedy=remedy,
    )


def _cause(
    plan: LinkPlan, facts: Mapping[str, HostFacts], sample: Sample, samples: Sequence[Sample]
) -> tuple[str, str]:
    measurement, rate = sample.measurement, sample.gbit_per_s
    if rate is None:
        reasons = "; ".join(failure.reason for failure in sample.failures)
        return f"iperf3 could not measure: {reasons}", "`sparkctl link status` tells what is wrong with the rail"
    by_port = _port_cause(plan, facts, measurement)
    if by_port is not None:
        return by_port
    if _cpu_bound(facts, sample):
        return (
            "TCP is bound by the processor here, so this figure does not judge the link",
            "the RDMA test judges it without the processor; stop other work and measure again",
        )
    if measurement.scope is Scope.RAIL:
        return _rail_cause(plan, rate, sample, samples)
    return _total_cause(rate, measurement, samples)


def _port_cause(plan: LinkPlan, facts: Mapping[str, HostFacts], measurement: Measurement) -> tuple[str, str] | None:
    for host, port in _ports(facts, measurement):
        if port.mtu_bytes != plan.mtu_bytes or port.mtu_bytes <= _DEFAULT_MTU_BYTES:
            remedy = (
                "`sparkctl link up`"
                if port.mtu_bytes != plan.mtu_bytes
                else "set `links: mtu: 9000`, `sparkctl link up`"
            )
            return f"{host}:{port.netdev} runs with an MTU of {port.mtu_bytes} bytes", remedy
        speed = port.speed_mbit_per_s
        if speed is not None and speed / 1000 < plan.expect_gbit_per_s:
            return (
                f"{host}:{port.netdev} negotiated {speed / 1000:g} Gb/s, not {plan.expect_gbit_per_s:g}",
                "use a 200G QSFP112 cable; on a switch force the port to 200G-baseCR4 and turn auto-negotiation off",
            )
    return None


def _rail_cause(plan: LinkPlan, rate: float, sample: Sample, samples: Sequence[Sample]) -> tuple[str, str]:
    measurement, share = sample.measurement, rate / plan.expect_gbit_per_s
    back = _opposite(measurement, samples)
    one_way = back is not None and rate < _ASYMMETRY_RATIO * back
    direction = f" in this direction only; the other gives {back:.2f} Gb/s" if one_way else ""
    if _THROTTLED_LOW_FRACTION <= share < THROTTLED_RAIL_FRACTION:
        return (
            f"the rate ceiling of a ConnectX-7 that started throttled (8-25 of 200 Gb/s){direction}",
            _COLD_CYCLE,
        )
    if one_way:
        return f"slow{direction}", f"{_COLD_CYCLE}; reseat the cable before"
    if share < _THROTTLED_LOW_FRACTION:
        return (
            "slower than even a throttled ConnectX-7",
            "look at the error counters: ethtool -S NETDEV; reseat or replace the cable",
        )
    return (
        f"a rate ceiling below {RAIL_FLOOR_FRACTION * plan.expect_gbit_per_s:g} Gb/s, or other traffic on the rail",
        "stop other traffic and measure again; a BIOS older than April 2026 trains a twin at half width (fwupdmgr)",
    )


def _total_cause(rate: float, measurement: Measurement, samples: Sequence[Sample]) -> tuple[str, str]:
    alone = {
        (sample.measurement.transfers[0].netdev): sample
        for sample in samples
        if sample.measurement.scope is Scope.RAIL and sample.measurement.sender == measurement.sender
    }
    slow = [
        netdev
        for netdev, sample in alone.items()
        if sample.gbit_per_s is None or sample.gbit_per_s < sample.measurement.floor_gbit_per_s
    ]
    if slow:
        return f"{' and '.join(slow)} alone is too slow already", "see the verdict on that rail"
    best = max((sample.gbit_per_s or 0.0 for sample in alone.values()), default=0.0)
    if rate < _ONE_RAIL_RATIO * best:
        return (
            "all rails together carry one rail's worth only",
            "see that both twins are up and addressed on both machines: `sparkctl link status`",
        )
    return "the rails slow each other down, or other traffic uses them", "stop other traffic and measure again"


def _opposite(measurement: Measurement, samples: Sequence[Sample]) -> float | None:
    """The rate of the same rail in the other direction."""
    here = measurement.transfers[0]
    for sample in samples:
        there = sample.measurement.transfers[0]
        if sample.measurement.scope is Scope.RAIL and there.source == here.target and there.target == here.source:
            return sample.gbit_per_s
    return None


def _cpu_bound(facts: Mapping[str, HostFacts], sample: Sample) -> bool:
    for run in sample.runs:
        if isinstance(run, Iperf3Run):
            ends = (
                (sample.measurement.sender, run.sender_cpu_percent),
                (sample.measurement.receiver, run.receiver_cpu_percent),
            )
            for host, percent in ends:
                if percent >= CPU_BOUND_PERCENT * min(run.threads, facts[host].cpu_count):
                    return True
    return False


def _ports(facts: Mapping[str, HostFacts], measurement: Measurement) -> list[tuple[str, Port]]:
    ends: list[tuple[str, Port]] = []
    for transfer in measurement.transfers:
        for host, netdev in ((transfer.sender, transfer.netdev), (transfer.receiver, transfer.peer_netdev)):
            ends.extend((host, port) for port in facts[host].ports if port.netdev == netdev)
    return ends
