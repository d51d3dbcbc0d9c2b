"""Whether a planned model can be started, and whether a stopped one has left nothing behind."""

from collections.abc import Mapping

from sparkctl.facts.model import DockerState, HostFacts
from sparkctl.facts.served import RunningFacts, ServedGroup, ServingFacts
from sparkctl.plan.memory import utilization_of
from sparkctl.plan.serving import ServingPlan
from sparkctl.report.finding import Finding, Severity
from sparkctl.tools.listening import port_is_taken

# Left free on a disk after a copy, so that logs and caches still fit. Our own choice.
_DISK_MARGIN_BYTES = 2 * 1024**3
# MemAvailable varies by itself: page tables, other users, the journal. Our own choice: 2 GiB or 5 % of all memory.
_MEMORY_SLACK_BYTES = 2 * 1024**3
_MEMORY_SLACK_SHARE = 0.05
_GIB = 1024**3
_DOCKER_REMEDIES = {
    DockerState.NOT_PERMITTED: "sudo usermod -aG docker $USER, then run sparkctl again",
    DockerState.NOT_RUNNING: "sudo systemctl start docker",
    DockerState.MISSING: "sudo apt install docker.io (DGX OS brings Docker along)",
}


def judge_docker(facts: Mapping[str, HostFacts]) -> tuple[Finding, ...]:
    """One FAIL per host on which our user cannot use Docker; empty when all can."""
    return tuple(
        Finding(
            Severity.FAIL,
            "serve.docker",
            host,
            f"Docker is {item.docker.state}",
            expected="Docker ready for our user",
            found=item.docker.detail,
            remedy=f"on {host}: {_DOCKER_REMEDIES[item.docker.state]}",
        )
        for host, item in facts.items()
        if item.docker.state is not DockerState.READY
    )


def judge_before_start(
    plan: ServingPlan, facts: Mapping[str, HostFacts], serving: Mapping[str, ServingFacts]
) -> tuple[Finding, ...]:
    """What stands against a start (FAIL) or should be known before it (WARN, INFO)."""
    return (
        *_ports(plan, serving),
        *_memory(plan, serving),
        *_disk(plan),
        *_programs(plan, facts),
        *_rdma(plan, facts),
        Finding(
            Severity.INFO,
            "serve.open-port",
            plan.head.host,
            f"the API on port {plan.port} answers everybody who can reach the head; it asks for no key",
        ),
    )


def judge_stopped(
    group: ServedGroup, before: Mapping[str, RunningFacts], after: Mapping[str, RunningFacts]
) -> tuple[Finding, ...]:
    """Proof that a group is gone: per host no container, no port held, memory as before it was started."""
    return tuple(
        finding
        for host, now in after.items()
        for finding in (_containers_gone(group, host, now), _ports_free(group, host, now))
    ) + tuple(_memory_back(group, host, before[host], now) for host, now in after.items() if _had_rank(group, host))


def _ports(plan: ServingPlan, serving: Mapping[str, ServingFacts]) -> list[Finding]:
    running = serving[plan.head.host].running
    wanted = [("API", plan.port, "--port N")]
    if plan.layout.nodes > 1:
        wanted.append(("rendezvous", plan.master_port, "serving.master_port in the inventory"))
    # Ranks of our own that are about to be removed may hold the ports; theirs will be free.
    if running.of_group(plan.group):
        return []
    return [
        Finding(
            Severity.FAIL,
            "serve.port-taken",
            f"{plan.head.host}:{port}",
            f"the {what} port {port} is taken by another program",
            expected="nobody listens",
            remedy=f"choose another one with {option}, or see who it is; "
            f"on {plan.head.host}: sudo ss -ltnp 'sport = :{port}'",
        )
        for what, port, option in wanted
        if port_is_taken(running.listeners, port)
    ]


def _memory(plan: ServingPlan, serving: Mapping[str, ServingFacts]) -> list[Finding]:
    findings = []
    need, share = plan.need.need_bytes, utilization_of(plan.engine_args)
    for host in plan.hosts:
        running = serving[host].running
        # What a broken group still holds comes back before the new one starts.
        available = running.memory_available_bytes
        if available < need and not running.of_group(plan.group):
            findings.append(
                Finding(
                    Severity.FAIL,
                    "serve.memory",
                    host,
                    "not enough memory for this rank's share of the model",
                    expected=f"{need / _GIB:.1f} GiB available: {plan.need.weights_bytes / _GIB:.1f} GiB of weights, "
                    f"{plan.need.working_bytes / _GIB:.1f} GiB for the engine (an estimate); plus the KV cache",
                    found=f"{available / _GIB:.1f} GiB available (MemAvailable)",
                    remedy=f"end other programs (on {host}: ps aux --sort -rss | head), "
                    "take a smaller or quantised model, or more Sparks",
                )
            )
        elif share is not None and available < share * running.memory_total_bytes:
            findings.append(
                Finding(
                    Severity.WARN,
                    "serve.memory-share",
                    host,
                    f"the engine will ask for {share:.0%} of all memory, and less is available",
                    expected=f"{share * running.memory_total_bytes / _GIB:.1f} GiB",
                    found=f"{available / _GIB:.1f} GiB available (MemAvailable)",
                    remedy="end other programs, or give the engine less: "
                    "--engine-arg=--gpu-memory-utilization --engine-arg=0.7",
                )
            )
    return findings


def _disk(plan: ServingPlan) -> list[Finding]:
    return [
        Finding(
            Severity.FAIL,
            "serve.disk",
            copy.target_host,
            f"no room for a copy of the model in {copy.target_root}",
            expected=f"{(copy.size_bytes + _DISK_MARGIN_BYTES) / _GIB:.1f} GiB free",
            found=f"{copy.free_bytes / _GIB:.1f} GiB free",
            remedy=f"make room on {copy.target_host}, or set serving.models_dir to a larger disk",
        )
        for copy in plan.location.copies
        if copy.target_host in plan.hosts and copy.free_bytes < copy.size_bytes + _DISK_MARGIN_BYTES
    ]


def _programs(plan: ServingPlan, facts: Mapping[str, HostFacts]) -> list[Finding]:
    needed = [(plan.head.host, "curl", "it asks the model")]
    for copy in plan.location.copies:
        needed += [(host, "rsync", "it copies the model") for host in (copy.source_host, copy.target_host)]
    return [
        Finding(
            Severity.FAIL,
            "serve.program-missing",
            host,
            f"{program} is not installed; {why}",
            remedy=f"on {host}: sudo apt install {program}",
        )
        for host, program, why in dict.fromkeys(needed)
        if program not in facts[host].programs
    ]


def _rdma(plan: ServingPlan, facts: Mapping[str, HostFacts]) -> list[Finding]:
    if plan.layout.nodes == 1:
        return []
    return [
        Finding(
            Severity.WARN,
            "serve.no-rdma",
            host,
            "there is no /dev/infiniband, so the ranks will talk over TCP, which is slower",
            expected="/dev/infiniband with the ConnectX-7's devices",
            remedy=f"on {host}: `rdma link` and `lsmod | grep ib_uverbs`; on a Spark, `sudo modprobe ib_uverbs`",
        )
        for host in plan.hosts
        if not facts[host].infiniband_device_dir
    ]


def _had_rank(group: ServedGroup, host: str) -> bool:
    return any(rank.host == host for rank in group.ranks)


def _containers_gone(group: ServedGroup, host: str, now: RunningFacts) -> Finding:
    left = now.of_group(group.group)
    if not left:
        return Finding(Severity.OK, "stop.containers", host, "no container of the group is left")
    names = ", ".join(item.name for item in left)
    return Finding(
        Severity.FAIL,
        "stop.containers",
        host,
        f"{names} is still there",
        remedy=f"on {host}: docker rm --force {names}",
    )


def _ports_free(group: ServedGroup, host: str, now: RunningFacts) -> Finding:
    ports = [group.port, group.master_port] if group.nodes > 1 else [group.port]
    taken = [port for port in ports if port_is_taken(now.listeners, port)]
    if not taken:
        return Finding(Severity.OK, "stop.ports", host, f"port {' and '.join(map(str, ports))} free")
    return Finding(
        Severity.FAIL,
        "stop.ports",
        f"{host}:{taken[0]}",
        f"port {taken[0]} is still held",
        remedy=f"on {host}: sudo ss -ltnp 'sport = :{taken[0]}'",
    )


def _memory_back(group: ServedGroup, host: str, before: RunningFacts, now: RunningFacts) -> Finding:
    started = max(rank.memory_before_bytes for rank in group.ranks if rank.host == host)
    slack = max(_MEMORY_SLACK_BYTES, int(_MEMORY_SLACK_SHARE * now.memory_total_bytes))
    gained = now.memory_available_bytes - before.memory_available_bytes
    words = f"{now.memory_available_bytes / _GIB:.1f} GiB available, {gained / _GIB:+.1f} GiB by stopping"
    if now.memory_available_bytes + slack >= started:
        return Finding(Severity.OK, "stop.memory", host, words)
    return Finding(
        Severity.WARN,
        "stop.memory",
        host,
        words,
        expected=f"about {started / _GIB:.1f} GiB, as before it was started",
        remedy=f"see who holds it, on {host}: ps aux --sort -rss | head; a reboot returns leaked GPU memory",
    )
