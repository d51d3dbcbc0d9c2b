"""One healthy Spark as facts, without ports: what the tests of links and of serving vary."""

from ipaddress import IPv4Interface

from sparkctl.facts.model import Docker, DockerState, HostFacts, Route


def bare_spark(name: str, number: int) -> HostFacts:
    """number: makes its addresses and identity differ from those of others."""
    return HostFacts(
        host=name,
        hostname=name,
        machine_id=f"id-{number}",
        user="nvidia",
        home="/home/nvidia",
        sudo=True,
        product="NVIDIA_DGX_Spark",
        dgx_release={},
        gpu="NVIDIA GB10",
        driver="580.95.05",
        os_name="Ubuntu 24.04",
        kernel="6.17",
        architecture="aarch64",
        cpu_count=20,
        memory_total_bytes=127_600_748 * 1024,
        memory_available_bytes=120_000_000 * 1024,
        management_netdev="enP7s7",
        management_address=f"192.0.2.1{number}",
        ports=(),
        other_netdevs=("lo", "enP7s7", "wlP9s9"),
        neighbours=(),
        routes=(route("0.0.0.0/0", "enP7s7", gateway="192.0.2.1"), route("192.0.2.0/24", "enP7s7")),
        docker=Docker(DockerState.READY, "29.0"),
        netplan_files={},
        programs=frozenset({"curl", "docker", "iperf3", "ping", "rsync"}),
        infiniband_device_dir=True,
    )


def route(destination: str, netdev: str, gateway: str | None = None) -> Route:
    return Route(IPv4Interface(destination).network, netdev, gateway)
