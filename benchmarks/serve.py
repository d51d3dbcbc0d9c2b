"""From the start of `sparkctl serve` to the first token, against the same containers started by hand over ssh.

By hand means: the command lines of `sparkctl serve --show`, all ranks at once, then /health every half second, then one
completion. Both start from nothing running, on warm page caches. Run: python -m benchmarks.serve inventory/lab.yaml
"""

import json
import shlex
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.side_by_side import Contest
from sparkctl.inventory.load import load_cluster
from sparkctl.inventory.model import Cluster, Host

_PAIRS = 2


def main() -> None:
    """Print the ratio. Whatever is served before is stopped."""
    inventory = Path(sys.argv[1])
    cluster = load_cluster(inventory)
    _sparkctl(inventory, "stop", "--yes")
    _sparkctl(inventory, "serve", "--yes")  # warms caches, makes sure that everything is in place
    _sparkctl(inventory, "stop", "--yes")
    plan = json.loads(_sparkctl(inventory, "serve", "--show"))["data"]["plan"]
    pairs = [(_ours(inventory), _by_hand(cluster, inventory, plan)) for _ in range(_PAIRS)]
    result = Contest(tuple(ours for ours, _ in pairs), tuple(theirs for _, theirs in pairs))
    print(f"sparkctl serve / the same engine started by hand, to the first answer: {result}")


def _ours(inventory: Path) -> float:
    start = time.perf_counter()
    _sparkctl(inventory, "serve", "--yes")
    elapsed = time.perf_counter() - start
    _sparkctl(inventory, "stop", "--yes")
    return elapsed


def _by_hand(cluster: Cluster, inventory: Path, plan: dict[str, object]) -> float:
    hosts = {host.name: host for host in cluster.hosts}
    lines = _command_lines(inventory)
    head = hosts[next(iter(lines))]
    start = time.perf_counter()
    running = [subprocess.Popen(_ssh(hosts[name], line), stdout=subprocess.DEVNULL) for name, line in lines.items()]
    for process in running:
        if process.wait() != 0:
            sys.exit("a container could not be started by hand")
    api = f"http://127.0.0.1:{plan['port']}"
    body = json.dumps(
        {"model": plan["model"], "prompt": "The capital of France is", "max_tokens": 16, "temperature": 0}
    )
    ask = (
        f"until curl -sf {api}/health; do sleep 0.5; done; "
        f"curl -sf {api}/v1/completions -H 'Content-Type: application/json' -d {shlex.quote(body)}"
    )
    subprocess.run(_ssh(head, ask), check=True, stdout=subprocess.DEVNULL)
    elapsed = time.perf_counter() - start
    for name in lines:
        subprocess.run(_ssh(hosts[name], "docker rm -f $(docker ps -q)"), check=True, stdout=subprocess.DEVNULL)
    return elapsed


def _command_lines(inventory: Path) -> dict[str, str]:
    """`docker run …` per host, as `serve --show` prints it."""
    program = Path(sys.executable).with_name("sparkctl")
    shown = subprocess.run(
        [str(program), "serve", "--show", "-i", str(inventory)], check=True, capture_output=True, text=True
    ).stdout
    lines: dict[str, str] = {}
    host = ""
    for line in shown.splitlines():
        if line.startswith("# rank "):
            host = line.rpartition(" on ")[2]
            lines[host] = ""
        else:
            lines[host] += line.removesuffix("\\") + " "
    return lines


def _sparkctl(inventory: Path, *words: str) -> str:
    program = Path(sys.executable).with_name("sparkctl")
    command = [str(program), *words, "-i", str(inventory), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"`sparkctl {' '.join(words)}` ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
    return done.stdout


def _ssh(host: Host, line: str) -> list[str]:
    options = ["-p", str(host.port), "-i", str(host.key), "-o", f"UserKnownHostsFile={host.known_hosts}"]
    return ["ssh", *options, "-o", "BatchMode=yes", f"{host.user}@{host.address}", line]


if __name__ == "__main__":
    main()
