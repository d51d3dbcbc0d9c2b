"""A second `link up`, which changes nothing, against `ssh HOST true` on the same hosts one after the other.

The peer is the least that any tool could do: prove that the hosts answer.
Run: python -m benchmarks.link_noop inventory/lab.yaml
"""

import shlex
import sys
from pathlib import Path

from benchmarks.side_by_side import contest
from sparkctl.inventory.load import load_cluster


def main() -> None:
    """Print the ratio."""
    inventory = Path(sys.argv[1])
    calls = [
        shlex.join(
            (
                "ssh",
                "-p",
                str(host.port),
                "-i",
                str(host.key),
                "-o",
                f"UserKnownHostsFile={host.known_hosts}",
                "-o",
                "BatchMode=yes",
                f"{host.user}@{host.address}",
                "true",
            )
        )
        for host in load_cluster(inventory).hosts
    ]
    program = Path(sys.executable).with_name("sparkctl")
    ours = [str(program), "link", "up", "-i", str(inventory), "--yes", "--json"]
    print(f"link up without changes / ssh true on each host: {contest(ours, ['sh', '-ec', '; '.join(calls)], pairs=7)}")


if __name__ == "__main__":
    main()
