"""Runs planned probes and measurements on the hosts and returns what the programs said; judges nothing."""

from collections.abc import Callable, Mapping, Sequence

from sparkctl.errors import HostUnreachable
from sparkctl.plan.links import LinkPlan, PlannedPort
from sparkctl.plan.measurements import Measurement
from sparkctl.tools.iperf3 import client, parse_client, parse_refusal, server_for_one_test
from sparkctl.tools.iproute2 import NETDEVS, parse_netdevs
from sparkctl.tools.iproute2_route import parse_route_get, route_get, route_to
from sparkctl.tools.ping import full_size_ping, parse_ping, small_ping
from sparkctl.transport.bundle import pack_commands, unpack_results
from sparkctl.transport.command import Command, CommandResult, Transport
from sparkctl.transport.fanout import on_all
from sparkctl.verify.bandwidth import Sample
from sparkctl.verify.links import EndObservation, Observations


def observe_links(transports: Sequence[Transport], plan: LinkPlan) -> Observations:
    """Looks at every port of the plan: one bundle per host, all hosts at once, about a second if all is well.

    Raises HostUnreachable and its kin for the first host that cannot be reached.
    """
    involved = [transport for transport in transports if any(links.host == transport.host for links in plan.hosts)]
    per_host = on_all(involved, lambda transport: _observe_host(transport, plan.of(transport.host).ports))
    observed: dict[tuple[str, str], EndObservation] = {}
    for host, ends in per_host.require_all().items():
        observed.update({(host, netdev): end for netdev, end in ends.items()})
    return observed


def measure_bandwidth(
    transports: Sequence[Transport], measurements: Sequence[Measurement], say: Callable[[Measurement, int], None]
) -> tuple[Sample, ...]:
    """Runs the measurements one after the other, in order; say: called with each and its index before it starts.

    Servers run only for their test, bound to the rail's address, and end by themselves whatever happens to us.
    Raises HostUnreachable and its kin when a host is lost.
    """
    by_host = {transport.host: transport for transport in transports}
    samples: list[Sample] = []
    for index, measurement in enumerate(measurements):
        say(measurement, index)
        samples.append(_measure(by_host, measurement))
    return tuple(samples)


def _observe_host(transport: Transport, ports: Sequence[PlannedPort]) -> Mapping[str, EndObservation]:
    commands: list[Command] = [NETDEVS]
    for port in ports:
        peer, source = port.peer_address, port.address.ip
        commands += [
            route_get(peer, source, port.netdev),
            route_to(peer),
            small_ping(peer, source),
            full_size_ping(peer, source, port.mtu_bytes),
        ]
    netdevs, *rest = _run_bundle(transport, commands)
    known = {netdev.name: netdev for netdev in parse_netdevs(netdevs) or ()}
    observed: dict[str, EndObservation] = {}
    for index, port in enumerate(ports):
        bound, free, small, full = rest[4 * index : 4 * index + 4]
        observed[port.netdev] = EndObservation(
            netdev=known.get(port.netdev),
            bound_route=parse_route_get(bound),
            free_route=parse_route_get(free),
            small=parse_ping(small),
            full=parse_ping(full),
        )
    return observed


def _measure(by_host: Mapping[str, Transport], measurement: Measurement) -> Sample:
    transfers = measurement.transfers
    servers = [server_for_one_test(item.target, item.port, measurement.seconds) for item in transfers]
    clients = [
        client(item.target, item.source, item.port, measurement.seconds, measurement.streams) for item in transfers
    ]
    started = _run_bundle(by_host[measurement.receiver], servers)
    refused = [result for result in started if not result.ok]
    if refused:
        return Sample(measurement, tuple(parse_refusal(result) for result in refused))
    return Sample(
        measurement, tuple(parse_client(result) for result in _run_bundle(by_host[measurement.sender], clients))
    )


def _run_bundle(transport: Transport, commands: Sequence[Command]) -> tuple[CommandResult, ...]:
    result = transport.run(pack_commands(commands))
    if result.timed_out:
        raise HostUnreachable(
            "the host does not finish simple commands in time",
            where=transport.host,
            remedy=f"look at the load of {transport.host}; `dmesg` there tells if its network driver hangs",
        )
    return unpack_results(result, commands)
