"""The files that make one root file system the disk of one node: identity, access, management network, services."""

from dataclasses import dataclass

from sparkctl.lab.model import MANAGEMENT_NETDEV

USER = "nvidia"
# Fixed when the root file system is built (base.py); NVIDIA Sync wants the same number on all nodes.
USER_ID = 1000
PROGRAM_DIRECTORY = "/usr/local/lib/sparkctl-lab"


@dataclass(frozen=True)
class NodeFile:
    """One file on a node.

    path: absolute, on the node. mode: permission bits. of_user: belongs to the node's user instead of root.
    link_to: target if this is a symbolic link; then content and mode mean nothing.
    is_directory: make a directory with this mode; then content means nothing.
    """

    path: str
    content: str = ""
    mode: int = 0o644
    of_user: bool = False
    link_to: str = ""
    is_directory: bool = False


def plan_node_files(
    *, node: str, address: str, prefix_length: int, machine_id: str, public_key: str
) -> tuple[NodeFile, ...]:
    """Files of a node apart from host keys and simulated hardware.

    address: IPv4 management address. public_key: one line for authorized_keys, see sshd(8).
    """
    return (
        NodeFile("/etc/hostname", f"{node}\n"),
        NodeFile("/etc/hosts", _HOSTS.format(node=node)),
        NodeFile("/etc/machine-id", f"{machine_id}\n", mode=0o444),
        NodeFile(
            "/etc/netplan/01-management.yaml",
            _NETPLAN.format(netdev=MANAGEMENT_NETDEV, address=f"{address}/{prefix_length}"),
            mode=0o600,
        ),
        NodeFile(f"/home/{USER}/.ssh", mode=0o700, of_user=True, is_directory=True),
        NodeFile(f"/home/{USER}/.ssh/authorized_keys", public_key, mode=0o600, of_user=True),
        NodeFile(f"/etc/sudoers.d/90-{USER}", f"{USER} ALL=(ALL) NOPASSWD:ALL\n", mode=0o440),
        NodeFile("/etc/ssh/sshd_config.d/50-sparkctl-lab.conf", _SSHD),
        NodeFile("/etc/avahi/services/ssh.service", _AVAHI_SSH),
        NodeFile("/etc/sysctl.d/20-nvidia-defaults.conf", _SYSCTL),
        NodeFile("/etc/environment", 'PATH="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"\n'),
        NodeFile("/etc/docker/daemon.json", _DOCKER),
        NodeFile(f"{PROGRAM_DIRECTORY}/runc", _RUNC, mode=0o755),
    )


_HOSTS = """\
127.0.0.1 localhost
127.0.1.1 {node}
::1 localhost ip6-localhost ip6-loopback
"""

_NETPLAN = """\
network:
  version: 2
  renderer: networkd
  ethernets:
    {netdev}:
      dhcp4: false
      addresses: [{address}]
"""

# Source: the file of the same name on DGX OS; and Ubuntu's default that lets every user ping.
_SYSCTL = """\
net.ipv4.conf.all.arp_ignore = 1
net.ipv4.conf.all.arp_announce = 2
net.ipv4.ping_group_range = 0 2147483647
"""

# OpenSSH 10 shuts out addresses that connect without logging in, as probes do; a Spark's OpenSSH 9.6 does not.
_SSHD = """\
PermitRootLogin no
PasswordAuthentication no
KbdInteractiveAuthentication no
UseDNS no
PerSourcePenalties no
"""

# Source: example shipped with avahi-daemon; a Spark announces the same service (PB-2, discover-sparks).
_AVAHI_SSH = """\
<?xml version="1.0" standalone='no'?>
<!DOCTYPE service-group SYSTEM "avahi-service.dtd">
<service-group>
  <name replace-wildcards="yes">%h</name>
  <service>
    <type>_ssh._tcp</type>
    <port>22</port>
  </service>
</service-group>
"""

_DOCKER = f"""\
{{
  "iptables": false,
  "ip6tables": false,
  "bridge": "none",
  "default-runtime": "sparkctl-lab",
  "runtimes": {{"sparkctl-lab": {{"path": "{PROGRAM_DIRECTORY}/runc"}}}}
}}
"""

# A node is itself a container and may lack CAP_SYS_RESOURCE, so runc could not raise limits or write controllers.
_RUNC = '''\
#!/usr/bin/python3
"""Fit a container's limits to what this virtual Spark may set, then become runc."""
import json
import os
import resource
import sys

ARGUMENTS = sys.argv[1:]


def value_of(*names):
    for position, argument in enumerate(ARGUMENTS):
        for name in names:
            if argument == name and position + 1 < len(ARGUMENTS):
                return ARGUMENTS[position + 1]
            if argument.startswith(name + "="):
                return argument.partition("=")[2]
    return None


def clamp(process):
    process.pop("oomScoreAdj", None)
    for limit in process.get("rlimits") or []:
        hard = resource.getrlimit(getattr(resource, limit["type"]))[1]
        if hard != resource.RLIM_INFINITY:
            limit["hard"] = min(limit["hard"], hard)
            limit["soft"] = min(limit["soft"], hard)


def rewrite(path, change):
    with open(path) as file:
        content = json.load(file)
    change(content)
    with open(path, "w") as file:
        json.dump(content, file)


def fit_bundle(config):
    clamp(config["process"])
    config.get("linux", {}).pop("resources", None)


bundle = value_of("--bundle", "-b")
if bundle and {"create", "run"} & set(ARGUMENTS):
    rewrite(os.path.join(bundle, "config.json"), fit_bundle)
process = value_of("--process", "-p")
if process and "exec" in ARGUMENTS:
    rewrite(process, clamp)
os.execv("/usr/sbin/runc", ["runc", *ARGUMENTS])
'''
