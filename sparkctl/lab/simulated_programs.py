"""Texts of the programs and units that stand in for hardware inside a node. They run there, not here.

Sources: facts on `nvidia-smi`, `ibdev2netdev` and `ibstat` of a Spark, sections 1.6 and 1.7.
"""

NVIDIA_SMI = '''\
#!/usr/bin/python3
"""Simulated: answers like nvidia-smi on a DGX Spark (GB10, unified memory)."""
import sys
import time

DRIVER = "580.95.05"
UUID = "GPU-@UUID@"
VALUES = {
    "index": "0", "count": "1", "name": "NVIDIA GB10", "gpu_name": "NVIDIA GB10", "uuid": UUID, "gpu_uuid": UUID,
    "driver_version": DRIVER, "pci.bus_id": "0000000F:01:00.0", "gpu_bus_id": "0000000F:01:00.0",
    "compute_cap": "12.1", "serial": "[N/A]", "vbios_version": "9A.0B.17.00.00", "pstate": "P8",
    "persistence_mode": "Enabled", "compute_mode": "Default", "display_active": "Disabled", "mig.mode.current": "[N/A]",
    "ecc.mode.current": "[N/A]", "temperature.gpu": "38", "fan.speed": "[N/A]",
    "clocks_throttle_reasons.active": "0x0000000000000001", "clocks_event_reasons.active": "0x0000000000000001",
    "timestamp": time.strftime("%Y/%m/%d %H:%M:%S.000"),
}
UNITS = {
    "memory.total": ("MiB", "[N/A]"), "memory.used": ("MiB", "[N/A]"), "memory.free": ("MiB", "[N/A]"),
    "memory.reserved": ("MiB", "[N/A]"), "utilization.gpu": ("%", "0"), "utilization.memory": ("%", "[N/A]"),
    "power.draw": ("W", "4.52"), "power.limit": ("W", "[N/A]"), "clocks.current.graphics": ("MHz", "208"),
    "clocks.gr": ("MHz", "208"), "clocks.sm": ("MHz", "208"), "clocks.mem": ("MHz", "[N/A]"),
    "clocks.max.sm": ("MHz", "3003"), "clocks.max.graphics": ("MHz", "3003"),
}
TABLE = """\\
{now}
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 580.95.05              Driver Version: 580.95.05      CUDA Version: 13.0     |
+-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|
|   0  NVIDIA GB10                    On  |   0000000F:01:00.0 Off |                  N/A |
| N/A   38C    P8              4W /  N/A  | Not Supported          |      0%      Default |
|                                         |                        |                  N/A |
+-----------------------------------------+------------------------+----------------------+

+-----------------------------------------------------------------------------------------+
| Processes:                                                                              |
|  GPU   GI   CI              PID   Type   Process name                        GPU Memory |
|        ID   ID                                                               Usage      |
|=========================================================================================|
|  No running processes found                                                             |
+-----------------------------------------------------------------------------------------+
"""


def option(name):
    for position, argument in enumerate(sys.argv):
        if argument == name and position + 1 < len(sys.argv):
            return sys.argv[position + 1]
        if argument.startswith(name + "="):
            return argument.partition("=")[2]
    return None


def query(fields, formats):
    header, row = [], []
    for field in fields:
        if field in VALUES:
            header.append(field)
            row.append(VALUES[field])
        elif field in UNITS:
            unit, value = UNITS[field]
            header.append(f"{field} [{unit}]")
            row.append(value if "nounits" in formats or value == "[N/A]" else f"{value} {unit}")
        else:
            print(f'Field "{field}" is not a valid field to query.')
            sys.exit(2)
    if "noheader" not in formats:
        print(", ".join(header))
    print(", ".join(row))


formats = (option("--format") or "csv").split(",")
gpu, processes = option("--query-gpu"), option("--query-compute-apps")
if "-L" in sys.argv or "--list-gpus" in sys.argv:
    print(f"GPU 0: NVIDIA GB10 (UUID: {UUID})")
elif gpu is not None:
    query([field.strip() for field in gpu.split(",")], formats)
elif processes is not None:
    if "noheader" not in formats:
        print(", ".join(f"{f.strip()} [MiB]" if "memory" in f else f.strip() for f in processes.split(",")))
elif len(sys.argv) == 1:
    print(TABLE.format(now=time.strftime("%a %b %e %H:%M:%S %Y")), end="")
else:
    print(f"Simulated nvidia-smi knows no {' '.join(sys.argv[1:])}", file=sys.stderr)
    sys.exit(6)
'''

HOOK = """\
#!/bin/sh
# Simulated: Docker offers --gpus when a program of this name exists.
exit 0
"""

IBDEV2NETDEV = """\
#!/bin/sh
# Simulated: prints like Mellanox' ibdev2netdev, from the netdevs' real state.
for device in /sys/class/infiniband/*; do
    netdev=$(ls "$device/device/net")
    state=Down
    [ "$(cat "/sys/class/net/$netdev/operstate")" = up ] && state=Up
    echo "${device##*/} port 1 ==> $netdev ($state)"
done
"""

IBSTAT = """\
#!/bin/sh
# Simulated: prints like ibstat(8), from the simulated RDMA devices.
for device in /sys/class/infiniband/*; do
    name=${device##*/}
    [ $# -eq 0 ] || [ "$1" = "$name" ] || continue
    port=$device/ports/1
    state=$(cut -d' ' -f2 "$port/state" | tr A-Z a-z | sed 's/^./\\U&/')
    guid=0x$(tr -d : < "$device/node_guid")
    printf "CA '%s'\\n" "$name"
    printf '\\tCA type: %s\\n\\tNumber of ports: 1\\n\\tFirmware version: %s\\n\\tHardware version: 0\\n' \\
        "$(cat "$device/hca_type")" "$(cat "$device/fw_ver")"
    printf '\\tNode GUID: %s\\n\\tSystem image GUID: 0x%s\\n' "$guid" "$(tr -d : < "$device/sys_image_guid")"
    printf '\\tPort 1:\\n\\t\\tState: %s\\n\\t\\tPhysical state: %s\\n\\t\\tRate: %s\\n' \\
        "$state" "$(cut -d' ' -f2 "$port/phys_state")" "$(cut -d' ' -f1 "$port/rate")"
    printf '\\t\\tBase lid: 0\\n\\t\\tLMC: 0\\n\\t\\tSM lid: 0\\n\\t\\tCapability mask: 0x00010000\\n'
    printf '\\t\\tPort GUID: %s\\n\\t\\tLink layer: Ethernet\\n' "$guid"
done
"""

ETHTOOL = '''\
#!/usr/bin/python3
"""Simulated for the rails (speed, driver, cable EEPROM); everything else is the real ethtool."""
import os
import subprocess
import sys

REAL = "/usr/sbin/ethtool"
SYSFS = "/sys/class/net"
CABLES = "/usr/local/lib/sparkctl-lab/cables"
arguments = sys.argv[1:]
netdev = arguments[-1] if arguments else ""


def read(path):
    with open(path) as file:
        return file.read().strip()


def print_settings():
    done = subprocess.run([REAL, netdev], capture_output=True, text=True)
    speed = read(f"{SYSFS}/{netdev}/speed")
    for line in done.stdout.splitlines():
        if line.strip().startswith("Speed:"):
            line = "\\tSpeed: Unknown!" if speed == "-1" else f"\\tSpeed: {speed}Mb/s"
        if line.strip().startswith("Port:"):
            line = "\\tPort: Direct Attach Copper"
        print(line)
    sys.stderr.write(done.stderr)
    sys.exit(done.returncode)


def print_driver():
    slot = os.path.basename(os.path.realpath(f"{SYSFS}/{netdev}/device"))
    print("driver: mlx5_core\\nversion: 6.17.0-1031-nvidia\\nfirmware-version: 28.45.4028 (NVD0000000087)")
    print(f"expansion-rom-version: \\nbus-info: {slot}\\nsupports-statistics: yes\\nsupports-test: yes")
    print("supports-eeprom-access: no\\nsupports-register-dump: no\\nsupports-priv-flags: yes")


def print_module():
    if os.geteuid() != 0:
        print("netlink error: Operation not permitted", file=sys.stderr)
        sys.exit(1)
    if not os.path.exists(f"{CABLES}/{netdev}"):
        print("netlink error: Input/output error", file=sys.stderr)
        sys.exit(1)
    print("\\tIdentifier                                : 0x1e (QSFP+ or later with CMIS)")
    print("\\tTransmitter technology                    : 0x0a (Copper cable, unequalized)")
    print("\\tVendor name                               : Amphenol")
    print("\\tVendor PN                                 : NJAAKK0006")
    print(f"\\tVendor SN                                 : {read(f'{CABLES}/{netdev}')}")


is_rail = os.path.exists(f"{SYSFS}/{netdev}/phys_switch_id") and os.path.islink(f"{SYSFS}/{netdev}/device")
if is_rail and len(arguments) == 1:
    print_settings()
elif is_rail and arguments[0] in ("-i", "--driver"):
    print_driver()
elif is_rail and arguments[0] in ("-m", "--module-info"):
    print_module()
else:
    os.execv(REAL, ["ethtool", *arguments])
'''

MOUNT = """\
#!/bin/sh
# Show the simulated hardware under /sys, beside the real netdevs, and give the node its own memory settings.
set -eu
here=/run/sparkctl-lab
mkdir -p $here/real/net $here/real/devices
cp -a /usr/local/lib/sparkctl-lab/sysfs $here/
# The directories that change while the node runs stay the kernel's own; overlayfs would remember missing names.
mount --bind /sys/class/net $here/real/net
mount --bind /sys/devices/virtual/net $here/real/devices
mount -t overlay -o ro,lowerdir=$here/sysfs/class:/sys/class overlay /sys/class
mount --bind $here/sysfs/class/infiniband /sys/class/infiniband
mount --bind $here/real/net /sys/class/net
mount -t overlay -o ro,lowerdir=$here/sysfs/devices:/sys/devices overlay /sys/devices
mount --bind $here/real/devices /sys/devices/virtual/net
for rail in $here/sysfs/net/*; do
    seen=/sys/devices/virtual/net/${rail##*/}
    mount -t overlay -o ro,lowerdir=$rail:$seen overlay $seen
done
# Network settings belong to the node's namespace; memory settings would be this whole machine's.
mount --bind /proc/sys/net /proc/sys/net
mount -o remount,bind,rw /proc/sys/net
mkdir $here/vm
for setting in /proc/sys/vm/*; do
    [ -f "$setting" ] || continue
    cat "$setting" > "$here/vm/${setting##*/}" 2>/dev/null || :
done
mount --bind $here/vm /proc/sys/vm
"""

MOUNT_UNIT = """\
[Unit]
Description=Simulated hardware of a virtual Spark
DefaultDependencies=no
Before=sysinit.target systemd-sysctl.service systemd-networkd.service
After=systemd-tmpfiles-setup-dev.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/local/lib/sparkctl-lab/mount-hardware

[Install]
WantedBy=sysinit.target
"""

FOLLOW = '''\
#!/usr/bin/python3
"""Keep the simulated RDMA ports and link speeds in step with the real netdevs' carrier and addresses."""
import json
import subprocess
from pathlib import Path

TREE = Path("/run/sparkctl-lab/sysfs")
SPEED = Path("/usr/local/lib/sparkctl-lab/speed_mbit_per_s").read_text().strip()
NO_GID = "0000:0000:0000:0000:0000:0000:0000:0000"


def write(path, text):
    # In place: these files are already part of a mounted overlay.
    if path.read_text() != text + "\\n":
        with path.open("r+") as file:
            file.write(text + "\\n")
            file.truncate()


def groups(digits):
    return ":".join(digits[i : i + 4] for i in range(0, 32, 4))


def gids(link):
    import ipaddress

    found = []
    for entry in link.get("addr_info", []):
        address = ipaddress.ip_address(entry["local"])
        if address.version == 4:
            address = ipaddress.IPv6Address("::ffff:" + str(address))
        found.append(groups(address.packed.hex()))
    # RoCE keeps the link-local address first, then the others; each once per RoCE version.
    found.sort(key=lambda gid: not gid.startswith("fe80"))
    return [(gid, kind) for gid in found for kind in ("IB/RoCE v1", "RoCE v2")]


def refresh():
    links = json.loads(subprocess.run(["ip", "-j", "address"], capture_output=True, text=True, check=True).stdout)
    for link in links:
        name = link["ifname"]
        if not (TREE / "net" / name).exists():
            continue
        up = link.get("operstate") == "UP"
        write(TREE / "net" / name / "speed", SPEED if up else "-1")
        for device in TREE.glob(f"devices/*/*/*/net/{name}"):
            port = next(device.parent.parent.glob("infiniband/*/ports/1"))
            write(port / "state", "4: ACTIVE" if up else "1: DOWN")
            write(port / "phys_state", "5: LinkUp" if up else "3: Disabled")
            write(port / "rate", f"{int(SPEED) // 1000} Gb/sec (4X HDR)" if up else "40 Gb/sec (4X QDR)")
            known = gids(link)
            for slot in sorted((port / "gids").iterdir(), key=lambda path: int(path.name)):
                index = int(slot.name)
                gid, kind = known[index] if index < len(known) else (NO_GID, "")
                write(slot, gid)
                write(port / "gid_attrs/types" / slot.name, kind)
                write(port / "gid_attrs/ndevs" / slot.name, name if kind else "")


with subprocess.Popen(["ip", "monitor", "link", "address"], stdout=subprocess.PIPE, text=True) as monitor:
    refresh()
    for _ in monitor.stdout:
        refresh()
'''

FOLLOW_UNIT = """\
[Unit]
Description=Simulated RDMA ports that follow the rails of a virtual Spark
Requires=sparkctl-lab-hardware.service
After=sparkctl-lab-hardware.service

[Service]
ExecStart=/usr/local/lib/sparkctl-lab/follow-links
Restart=always

[Install]
WantedBy=multi-user.target
"""
