import json
from dataclasses import dataclass
from ipaddress import IPv4Interface

from sparkctl.errors import HostUnreachable, InvalidInventory, SparkctlError
from sparkctl.report.envelope import Envelope, render_json
from sparkctl.report.finding import EXIT_CODES, Finding, Severity, Status, derived_status
from sparkctl.report.render import render_error, render_findings, render_table

DARK = Finding(
    Severity.FAIL,
    "link.no-cable",
    "spark-a",
    "no cable",
    expected="a live partner",
    found="none",
    remedy="plug one in",
)


@dataclass(frozen=True)
class Sample:
    address: IPv4Interface
    rate_gbit_per_s: float
    _private: int = 0


def test_the_envelope_keeps_its_keys():
    sample = Sample(IPv4Interface("10.0.0.1/30"), 1.5)
    error = HostUnreachable("no answer", where="spark-b", remedy="look")

    printed = json.loads(render_json(Envelope("link up", Status.FAILED, {"rail": sample}, (DARK,), (error,))))

    assert printed == {
        "schema_version": 1,
        "command": "link up",
        "status": "failed",
        "exit_code": 1,
        "data": {"rail": {"address": "10.0.0.1/30", "rate_gbit_per_s": 1.5}},
        "findings": [
            {
                "severity": "fail",
                "code": "link.no-cable",
                "subject": "spark-a",
                "message": "no cable",
                "expected": "a live partner",
                "found": "none",
                "cause": "",
                "remedy": "plug one in",
            }
        ],
        "errors": [{"type": "HostUnreachable", "where": "spark-b", "message": "no answer", "remedy": "look"}],
    }


def test_every_error_class_has_a_documented_exit_code():
    def classes(base: type[SparkctlError]):
        yield base
        for child in base.__subclasses__():
            yield from classes(child)

    assert {error.exit_code for error in classes(SparkctlError)} <= set(EXIT_CODES.values())


def test_what_could_not_be_checked_is_never_ok():
    unknown = Finding(Severity.UNKNOWN, "x", "spark-a", "could not look", remedy="allow sudo")

    assert derived_status([unknown]) is Status.FAILED
    assert derived_status([Finding(Severity.WARN, "x", "a", "m", remedy="r")]) is Status.OK
    assert derived_status([Finding(Severity.DEGRADED, "x", "a", "m", remedy="r")]) is Status.DEGRADED
    assert derived_status([]) is Status.OK


def test_findings_end_with_what_to_do():
    assert render_findings([DARK, Finding(Severity.OK, "y", "spark-b", "fine")]) == (
        "✗ FAIL spark-a: no cable",
        "    expected: a live partner",
        "    found: none",
        "    hint: plug one in",
        "✓ spark-b: fine",
    )


def test_an_error_lists_problems_then_the_hint():
    error = InvalidInventory("2 mistakes", problems=("f:1: a", "f:2: b"), remedy="correct them", where="f")

    assert render_error(error) == ("error: f: 2 mistakes", "  f:1: a", "  f:2: b", "", "hint: correct them")


def test_numbers_in_tables_stay_as_they_were_written():
    assert render_table(("host", "rate"), [("a", "1.50"), ("b", "010")]) == (
        "host    rate",
        "------  ------",
        "a       1.50",
        "b       010",
    )
    assert render_table(("host",), []) == ()
