"""Hosts and their cabling as text."""

from collections.abc import Mapping

from sparkctl.errors import SparkctlError
from sparkctl.facts.model import DockerState, HostFacts, Port
from sparkctl.plan.cabling import Cabling, Rail
from sparkctl.report.render import render_bytes, render_table


def render_hosts(facts: Mapping[str, HostFacts], errors: Mapping[str, SparkctlError]) -> tuple[str, ...]:
    """A table with one line per host, those that could not be read last."""
    rows: list[tuple[str, ...]] = [_host_row(host) for host in facts.values()]
    rows += [(name, "not readable", "", "", "", "", "") for name in errors]
    return render_table(("host", "machine", "memory", "system", "driver", "docker", "simulated"), rows)


def render_ports(facts: Mapping[str, HostFacts]) -> tuple[str, ...]:
    """A table of all ConnectX ports; no lines when no host has one."""
    return render_table(
        ("host", "cage", "port", "RDMA device", "PCI", "link", "MTU", "addresses"),
        [(host.host, *_port_row(port)) for host in facts.values() for port in host.ports],
    )


def render_cabling(cabling: Cabling) -> tuple[str, ...]:
    """One line per cable with its rails beneath, then switches; one line saying so when there is neither."""
    lines = [f"cabling: {cabling.topology}"]
    for cable in cabling.cables:
        count = len(cable.rails)
        lines.append(f"  {cable}, {count} {'rail' if count == 1 else 'rails'}")
        lines += [f"    {_rail(rail)}" for rail in cable.rails]
    for switch in cabling.switches:
        lines.append(f"  switch: {', '.join(str(end) for end in switch)}")
    return tuple(lines)


def render_host_facts(facts: HostFacts) -> tuple[str, ...]:
    """Everything known about one host, one `name: value` per line."""
    values = {
        "machine": facts.product or "unknown",
        "GPU": f"{facts.gpu}, driver {facts.driver}" if facts.gpu else facts.gpu_complaint or "none",
        "system": f"{facts.os_name}, kernel {facts.kernel}, {facts.architecture}, {facts.cpu_count} CPUs",
        "release": ", ".join(f"{name}={value}" for name, value in facts.dgx_release.items()) or "no /etc/dgx-release",
        "memory": f"{render_bytes(facts.memory_total_bytes)}, available {render_bytes(facts.memory_available_bytes)}",
        "management": f"{facts.management_address or 'unknown'} on {facts.management_netdev or 'unknown'}",
        "user": f"{facts.user}, home {facts.home}, sudo {'without password' if facts.sudo else 'asks or is missing'}",
        "docker": _docker(facts) + (f" ({', '.join(facts.docker.runtimes)})" if facts.docker.runtimes else ""),
        "netplan": _netplan(facts),
        "programs": ", ".join(sorted(facts.programs)) or "none of those asked for",
        "simulated": ", ".join(facts.simulated) or "nothing",
    }
    width = max(len(name) for name in values)
    return (facts.host, *(f"  {name:<{width}}  {value}" for name, value in values.items()))


def _host_row(facts: HostFacts) -> tuple[str, ...]:
    return (
        facts.host,
        _machine(facts),
        render_bytes(facts.memory_total_bytes) if facts.memory_total_bytes else "",
        facts.os_name,
        facts.driver or "",
        _docker(facts),
        "yes" if facts.simulated else "",
    )


def _machine(facts: HostFacts) -> str:
    if not facts.is_spark:
        return f"not a Spark ({facts.gpu or 'no NVIDIA GPU'})"
    return " · ".join(word for word in (facts.gpu, facts.product) if word)


def _docker(facts: HostFacts) -> str:
    return facts.docker.version if facts.docker.state is DockerState.READY else facts.docker.state


def _port_row(port: Port) -> tuple[str, ...]:
    return (
        port.cage or "?",
        port.netdev,
        port.rdma_device or "none",
        port.pci_address,
        _link(port),
        str(port.mtu_bytes),
        ", ".join(str(address) for address in port.addresses),
    )


def _link(port: Port) -> str:
    if not port.admin_up:
        return "switched off"
    if not port.carrier:
        return "no link"
    return f"{port.speed_mbit_per_s / 1000:g} Gbit/s" if port.speed_mbit_per_s else "up, speed unknown"


def _netplan(facts: HostFacts) -> str:
    if facts.netplan_files is None:
        return "not readable without sudo"
    return ", ".join(facts.netplan_files) or "no files"


def _rail(rail: Rail) -> str:
    if rail.a.netdev == rail.b.netdev:
        return f"{rail.a.netdev} at both ends"
    return f"{rail.a.host}:{rail.a.netdev} ⇄ {rail.b.host}:{rail.b.netdev}"
