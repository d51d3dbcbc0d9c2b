import pytest

from sparkctl.plan.measurements import plan_measurements
from sparkctl.report.render import render_findings
from sparkctl.tools.iperf3 import Iperf3Failure, Iperf3Run
from sparkctl.verify.bandwidth import Sample, Verdict, bandwidth_findings, judge_bandwidth
from tests.link_examples import FIRST, A, B, applied, pair, plan, with_port

PLAN = plan(pair())
FACTS = applied(pair(), PLAN)
MEASUREMENTS = plan_measurements(PLAN)
COLD = (
    "shut both machines down, unplug their power for 60 s and start them again: a reboot is not enough; then update "
    "the ConnectX-7 firmware if it comes back"
)


def run(gbit_per_s, cpu=40.0):
    return Iperf3Run(gbit_per_s, cpu, cpu, 8, 0)


def judge(*rates, facts=FACTS, cpu=40.0):
    """rates: of the six measurements in Gb/s, the last two per rail."""
    samples = tuple(
        Sample(measurement, tuple(run(rate, cpu) if isinstance(rate, float) else rate for _ in measurement.transfers))
        for measurement, rate in zip(MEASUREMENTS, rates, strict=True)
    )
    return judge_bandwidth(PLAN, facts, samples)


def verdicts(judged):
    return [item.verdict.value for item in judged]


def test_a_healthy_pair_passes():
    judged = judge(97.0, 96.0, 97.0, 98.0, 88.0, 90.0)

    assert verdicts(judged) == ["pass"] * 6
    assert judged[4].gbit_per_s == 176.0
    assert judged[4].rails_gbit_per_s == {FIRST: 88.0, "enP2p1s0f0np0": 88.0}
    assert bandwidth_findings(judged, {A: (), B: ()}) == ()


def test_a_throttled_nic_is_named():
    judged = judge(13.0, 13.2, 97.0, 98.0, 13.0, 13.0)

    assert verdicts(judged) == ["fail", "fail", "pass", "pass", "fail", "fail"]
    assert render_findings(bandwidth_findings(judged[:1], {A: (), B: ()})) == (
        "✗ FAIL spark-a → spark-b, enp1s0f0np0: 13.00 Gb/s",
        "    expected: at least 80.00 Gb/s",
        "    cause: the rate ceiling of a ConnectX-7 that started throttled (8-25 of 200 Gb/s)",
        f"    hint: {COLD}",
    )
    assert judged[4].cause == "enp1s0f0np0 alone is too slow already"


@pytest.mark.parametrize(
    ("rates", "index", "verdict", "words"),
    [
        ((60.0, 61.0, 97.0, 98.0, 88.0, 90.0), 0, Verdict.DEGRADED, "a rate ceiling below 80 Gb/s"),
        ((13.0, 97.0, 97.0, 98.0, 88.0, 90.0), 0, Verdict.FAIL, "in this direction only; the other gives 97.00 Gb/s"),
        ((50.0, 97.0, 97.0, 98.0, 88.0, 90.0), 0, Verdict.DEGRADED, "slow in this direction only"),
        ((3.0, 3.0, 97.0, 98.0, 88.0, 90.0), 1, Verdict.FAIL, "slower than even a throttled ConnectX-7"),
        ((97.0, 96.0, 97.0, 98.0, 49.0, 90.0), 4, Verdict.DEGRADED, "all rails together carry one rail's worth only"),
        ((97.0, 96.0, 97.0, 98.0, 65.0, 90.0), 4, Verdict.DEGRADED, "the rails slow each other down"),
        ((Iperf3Failure("no route"), 96.0, 97.0, 98.0, 65.0, 90.0), 0, Verdict.FAIL, "could not measure: no route"),
    ],
)
def test_the_probable_cause(rates, index, verdict, words):
    judged = judge(*rates)[index]

    assert (judged.verdict, words in judged.cause) == (verdict, True)


def test_a_rate_that_the_processor_limits_is_never_a_failure():
    judged = judge(13.0, 13.0, 97.0, 98.0, 88.0, 90.0, cpu=790.0)

    assert judged[0].verdict is Verdict.DEGRADED
    assert judged[0].cause == "TCP is bound by the processor here, so this figure does not judge the link"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"mtu_bytes": 1500}, "spark-b:enp1s0f0np0 runs with an MTU of 1500 bytes"),
        ({"speed_mbit_per_s": 100_000}, "spark-b:enp1s0f0np0 negotiated 100 Gb/s, not 200"),
    ],
)
def test_what_the_port_itself_tells_comes_first(fields, words):
    judged = judge(60.0, 60.0, 97.0, 98.0, 88.0, 90.0, facts=with_port(FACTS, B, FIRST, **fields))

    assert judged[0].cause == words


def test_a_lab_is_labelled():
    findings = bandwidth_findings((), {A: ("GPU",), B: ()})

    assert [(finding.code, finding.subject) for finding in findings] == [("link.simulated", A)]
