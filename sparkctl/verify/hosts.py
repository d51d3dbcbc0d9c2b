"""Judges what single hosts bring for the main path: a GB10, sudo without a password, Docker."""

from collections.abc import Iterator, Mapping

from sparkctl.facts.model import DockerState, HostFacts
from sparkctl.report.finding import Finding, Severity


def judge_hosts(facts: Mapping[str, HostFacts], *, members: bool) -> tuple[Finding, ...]:
    """What stands in the way on each host, in the order of `facts`.

    members: the hosts are meant to be in a cluster, so a host that is no Spark is a failure; a host that was only
    found on the network is listed and nothing else is asked of it.
    """
    findings = [finding for host in facts.values() for finding in _judge_host(host, members=members)]
    return (*findings, *_simulated(facts))


def _judge_host(facts: HostFacts, *, members: bool) -> Iterator[Finding]:
    if not facts.is_spark:
        yield _no_spark(facts, members=members)
        return
    if not facts.sudo:
        yield Finding(
            Severity.FAIL,
            "host.sudo-password",
            facts.host,
            f"sudo asks {facts.user} for a password",
            expected="`sudo -n true` succeeds",
            remedy=f"on {facts.host}: echo '{facts.user} ALL=(ALL) NOPASSWD:ALL' | "
            "sudo tee /etc/sudoers.d/sparkctl && sudo chmod 0440 /etc/sudoers.d/sparkctl",
        )
    yield from _judge_docker(facts)


def _simulated(facts: Mapping[str, HostFacts]) -> Iterator[Finding]:
    """One label for all nodes that pretend the same."""
    for things in dict.fromkeys(host.simulated for host in facts.values() if host.simulated):
        names = [host.host for host in facts.values() if host.simulated == things]
        short = ", ".join(thing.partition(" (")[0] for thing in things)
        yield Finding(Severity.INFO, "host.simulated", ", ".join(names), f"simulated, not real: {short}")


def _no_spark(facts: HostFacts, *, members: bool) -> Finding:
    if facts.gpu_complaint:
        return Finding(
            Severity.FAIL if members else Severity.WARN,
            "host.gpu-broken",
            facts.host,
            "nvidia-smi is installed and sees no GPU",
            expected="a GPU named NVIDIA GB10",
            found=facts.gpu_complaint,
            remedy=f"on {facts.host}: shut down, unplug for a minute, start again; if nvidia-smi still fails, "
            "reinstall the driver and check that `nvidia-modprobe` has the driver's version",
        )
    return Finding(
        Severity.FAIL if members else Severity.INFO,
        "host.not-spark",
        facts.host,
        "this is not a Spark",
        expected="a GPU named NVIDIA GB10" if members else "",
        found=facts.gpu or "no NVIDIA GPU",
        remedy="take it out of the inventory, or name another machine" if members else "",
    )


def _judge_docker(facts: HostFacts) -> Iterator[Finding]:
    docker = facts.docker
    match docker.state:
        case DockerState.READY:
            return
        case DockerState.MISSING:
            code, message = "docker.missing", "Docker is not installed"
            remedy = f"on {facts.host}: sudo apt-get install docker.io (DGX OS: docker-ce), then run this again"
        case DockerState.NOT_PERMITTED:
            code, message = "docker.not-permitted", f"{facts.user} may not use Docker"
            remedy = f"on {facts.host}: sudo usermod -aG docker {facts.user}, log in anew, then run this again"
        case DockerState.NOT_RUNNING:
            code, message = "docker.not-running", "the Docker engine does not answer"
            remedy = f"on {facts.host}: sudo systemctl enable --now docker; journalctl -u docker says why it stopped"
    yield Finding(Severity.FAIL, code, facts.host, message, found=docker.detail, remedy=remedy)
