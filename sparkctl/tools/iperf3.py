"""iperf3: TCP throughput between two addresses."""

import re
from dataclasses import dataclass
from ipaddress import IPv4Address
from typing import TypedDict, cast

from sparkctl.transport.bundle import quoted, shell
from sparkctl.transport.command import Command, CommandResult
from sparkctl.transport.printed import json_value, unexpected

# Slow start and window growth are over by then on a link of this length.
OMITTED_S = 1
# From this version on each stream has a thread of its own (iperf3 release notes 3.16), so it can use several cores.
_THREADED_VERSION = (3, 16)
# Connecting, exchanging results and the slowest start that was seen on two busy cores.
_OVERHEAD_S = 12
_VERSION = re.compile(r"iperf (\d+)\.(\d+)")


@dataclass(frozen=True)
class Iperf3Run:
    """One measured transfer. gbit_per_s: what arrived at the receiver, TCP payload.

    *_cpu_percent: processor time of iperf3 in percent of one core, above 100 with several threads.
    threads: cores it could use at most. retransmits: None where the system does not count them.
    """

    gbit_per_s: float
    sender_cpu_percent: float
    receiver_cpu_percent: float
    threads: int
    retransmits: int | None


@dataclass(frozen=True)
class Iperf3Failure:
    """iperf3 could not measure; `reason` in its own words."""

    reason: str


def server_for_one_test(address: IPv4Address, port: int, seconds: int) -> Command:
    """Starts a server for one test in the background and returns when it listens; prints why when it does not.

    The server ends after its test, or by itself when nobody comes.
    """
    lifetime = seconds + OMITTED_S + _OVERHEAD_S
    server = quoted(
        "timeout", "--kill-after=2", str(lifetime), "iperf3", "-s", "-1", "-B", str(address), "-p", str(port)
    )
    listening = quoted("ss", "-Hltn", f"sport = :{port}")
    script = (
        f'l=$(mktemp); {server} >"$l" 2>&1 </dev/null & i=0; '
        f'while [ $i -lt 50 ]; do [ -n "$({listening})" ] && {{ rm -f "$l"; exit 0; }}; '
        'kill -0 $! 2>/dev/null || break; i=$((i+1)); sleep 0.1; done; cat "$l"; rm -f "$l"; exit 1'
    )
    return shell(script, timeout_s=15)


def parse_refusal(result: CommandResult) -> Iperf3Failure:
    """Why a server did not start; its own line with `error` in it, because the last one only says `exiting`."""
    lines = [line.strip() for line in (result.stdout + result.stderr).splitlines() if "error" in line]
    return Iperf3Failure(f"no server: {lines[0] if lines else result.last_words()}")


def client(server: IPv4Address, source: IPv4Address, port: int, seconds: int, streams: int) -> Command:
    """Sends to `server` for `seconds`, after a warm-up that does not count, with `streams` TCP connections."""
    argv = ("iperf3", "-J", "-c", str(server), "-B", str(source), "-p", str(port), "-t", str(seconds))
    options = ("-O", str(OMITTED_S), "-P", str(streams), "--connect-timeout", "3000")
    return Command((*argv, *options), timeout_s=seconds + OMITTED_S + _OVERHEAD_S)


class _Sum(TypedDict, total=False):
    bits_per_second: float
    retransmits: int


class _Cpu(TypedDict):
    host_total: float
    remote_total: float


class _End(TypedDict):
    sum_sent: _Sum
    sum_received: _Sum
    cpu_utilization_percent: _Cpu


class _TestStart(TypedDict):
    num_streams: int


class _Start(TypedDict):
    version: str
    test_start: _TestStart


class _Report(TypedDict, total=False):
    start: _Start
    end: _End
    error: str


def parse_client(result: CommandResult) -> Iperf3Run | Iperf3Failure:
    """What a client measured, or why it could not.

    Raises UnexpectedOutput when the output is not iperf3's JSON report.
    Source: `iperf3 -J`; captures iperf3/<machine>--*.json.
    """
    if result.timed_out:
        return Iperf3Failure("no end within the time limit")
    if not result.stdout.strip():
        return Iperf3Failure(result.last_words())
    value = json_value(result, "iperf3")
    if not isinstance(value, dict):
        raise unexpected(result, "iperf3")
    report = cast(_Report, value)
    if "error" in report:
        return Iperf3Failure(str(report["error"]))
    try:
        end, start = report["end"], report["start"]
        version = _VERSION.match(start["version"])
        threaded = version is not None and (int(version[1]), int(version[2])) >= _THREADED_VERSION
        return Iperf3Run(
            gbit_per_s=end["sum_received"]["bits_per_second"] / 1e9,
            sender_cpu_percent=end["cpu_utilization_percent"]["host_total"],
            receiver_cpu_percent=end["cpu_utilization_percent"]["remote_total"],
            threads=start["test_start"]["num_streams"] if threaded else 1,
            retransmits=end["sum_sent"].get("retransmits"),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise unexpected(result, "iperf3") from error
