"""All facts of all hosts of an inventory by `sparkctl discover` against `ansible -m setup` on the same hosts.

Run: python -m benchmarks.facts inventory/lab.yaml
"""

import json
import sys
import tempfile
from pathlib import Path

from benchmarks.side_by_side import contest
from sparkctl.inventory.load import load_cluster


def main() -> None:
    """Print the ratio."""
    inventory = Path(sys.argv[1])
    cluster = load_cluster(inventory)
    programs = Path(sys.executable).parent
    with tempfile.TemporaryDirectory() as folder:
        hosts = Path(folder) / "hosts.json"
        hosts.write_text(
            json.dumps(
                {
                    "all": {
                        "hosts": {
                            host.name: {
                                "ansible_host": host.address,
                                "ansible_user": host.user,
                                "ansible_port": host.port,
                                "ansible_ssh_private_key_file": host.key,
                                "ansible_ssh_common_args": f"-o UserKnownHostsFile={host.known_hosts}",
                            }
                            for host in cluster.hosts
                        }
                    }
                }
            )
        )
        ansible = [str(programs / "ansible"), "-i", str(hosts), "all", "-m", "ansible.builtin.setup", "-f", "8"]
        ours = [str(programs / "sparkctl"), "discover", "-i", str(inventory), "--json"]
        print(f"sparkctl discover / ansible -m setup, {len(cluster.hosts)} hosts: {contest(ours, ansible, pairs=5)}")


if __name__ == "__main__":
    main()
