"""Who answers on the far end of a cable, before any address is set: IPv6 all-nodes ping, then the neighbour table."""

import re
from dataclasses import dataclass
from ipaddress import IPv6Address
from typing import TypedDict, cast

from sparkctl.transport.bundle import quoted, shell
from sparkctl.transport.command import Command, CommandResult
from sparkctl.transport.printed import json_rows, unexpected

# A table entry in one of these states has been confirmed by the kernel within the last seconds; STALE has not, and
# behind a switch it may be a machine that left long ago.
_CONFIRMED = frozenset({"REACHABLE", "DELAY", "PROBE", "PERMANENT"})
_ANSWER = re.compile(r"bytes from (fe80::[0-9a-f:]+)%(\S+?):", re.IGNORECASE)
_TABLE_MARK = "[neighbour table]"

# Two short pings instead of one with `-c 2`: an ordinary user may not send multicast faster than once a second, and
# the first may get lost while the address of a fresh link is checked for duplicates; two more where nobody answered,
# because a busy host may need longer. `-L` keeps our own echo out.
# Where an ordinary user may not ping at all (no capability, closed net.ipv4.ping_group_range), sudo does it.
# The single pings afterwards make the kernel resolve each answerer, so that its MAC stands in the table.
_PING = """\
PATH=$PATH:/usr/sbin:/sbin
as=; ping -6 -c 1 -W 1 ::1 >/dev/null 2>&1 || as='sudo -n'
found=
for n in /sys/class/net/*; do
  vendor=; { read -r vendor <"$n/device/vendor"; } 2>/dev/null
  [ "$vendor" = @VENDOR@ ] && found="$found ${n##*/}"
done
for n in /sys/class/infiniband/*/device/net/*; do
  [ -e "$n" ] || [ -L "$n" ] && found="$found ${n##*/}"
done
heard=$(for n in $(printf '%s\\n' $found | sort -u); do
  carrier=; { read -r carrier <"/sys/class/net/$n/carrier"; } 2>/dev/null
  [ "$carrier" = 1 ] || continue
  (
    heard=
    for try in 1 2 3 4; do
      said=$($as timeout -s INT 0.4 ping -6 -n -L "ff02::1%$n" 2>/dev/null)
      printf '%s\\n' "$said"
      case $said in *'bytes from'*) heard=yes;; esac
      [ "$heard" ] && [ $try -ge 2 ] && break
    done
  ) &
done; wait)
printf '%s\\n' "$heard"
for a in $(printf '%s\\n' "$heard" | sed -n 's/.*bytes from \\(fe80[^ ]*\\): .*/\\1/p' | sort -u); do
  $as ping -6 -n -c 1 -W 1 "$a" >/dev/null 2>&1 &
done
wait
echo '@MARK@'
ip -6 -j neighbour show
"""


@dataclass(frozen=True)
class Heard:
    """One station that answered, or whose address the kernel confirmed just now. mac: lower case."""

    netdev: str
    mac: str


class _NeighbourRow(TypedDict, total=False):
    dst: str
    dev: str
    lladdr: str
    state: list[str]


def ping_neighbours(pci_vendor: str) -> Command:
    """Ping everybody on all netdevs of that PCI vendor (`0x15b3`) and on those with an RDMA device.

    Takes 0.8 s, and 1.6 s where a live port hears nobody.
    """
    return shell(_PING.replace("@VENDOR@", quoted(pci_vendor)).replace("@MARK@", _TABLE_MARK), timeout_s=8)


def parse_neighbours(result: CommandResult) -> tuple[Heard, ...]:
    """Who was heard, sorted by netdev and MAC, each station once; empty where `ip` or `ping` is missing.

    Raises UnexpectedOutput when the neighbour table is not the JSON of `ip -6 -j neighbour`.
    Source: ping(8), ip-neighbour(8); capture neighbours/<machine>--<case>.out.
    """
    answers, mark, table = result.stdout.partition(_TABLE_MARK)
    if not mark or not table.strip():
        return ()
    answered = {(IPv6Address(address), netdev) for address, netdev in _ANSWER.findall(answers)}
    netdevs = {netdev for _, netdev in answered}
    only_table = CommandResult(result.host, result.command, result.exit_code, table)
    heard: set[tuple[str, str]] = set()
    try:
        for row in cast(list[_NeighbourRow], json_rows(only_table, "ip")):
            if not row or "lladdr" not in row:
                continue
            address, netdev = IPv6Address(row["dst"]), row["dev"]
            confirmed = address.is_link_local and netdev in netdevs and not _CONFIRMED.isdisjoint(row["state"])
            if confirmed or (address, netdev) in answered:
                heard.add((netdev, row["lladdr"].lower()))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise unexpected(only_table, "ip") from error
    return tuple(Heard(netdev, mac) for netdev, mac in sorted(heard))
