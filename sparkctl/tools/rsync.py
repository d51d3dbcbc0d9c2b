"""rsync: a one-shot daemon on one host and the fetch by another, with progress."""

import re
from dataclasses import dataclass

from sparkctl.transport.bundle import quoted, shell
from sparkctl.transport.command import Command

# `--info=progress2` prints lines such as `    12,345,678  45%  110.20MB/s    0:00:12 (xfr#3, to-chk=5/12)`, rewritten
# by carriage returns. Source: rsync(1); capture rsync/debian12--progress2.out.
_PROGRESS = re.compile(
    r"\s*(?P<bytes>[\d,]+)\s+(?P<percent>\d+)%\s+(?P<rate>[\d.]+)(?P<unit>[kMGT]?)B/s\s+(?P<eta>\S+)"
)
_UNITS = {"": 1.0, "k": 1024.0, "M": 1024.0**2, "G": 1024.0**3, "T": 1024.0**4}
DAEMON_USER = "sparkctl"
MODULE = "model"


@dataclass(frozen=True)
class Progress:
    """How far a transfer is. percent: of the bytes rsync knows of."""

    done_bytes: int
    percent: int
    bytes_per_s: float


def daemon_config(*, source: str, address: str, client_address: str, port: int, directory: str) -> str:
    """Text of an rsyncd.conf that offers `source`, read-only, to one client with a secret, on one address only.

    directory: private folder of the daemon, with the file `secrets`; its lock and log go there too, because the usual
    places belong to root. `use chroot` needs root as well; links are sent as links and never followed.
    Source: rsyncd.conf(5).
    """
    return (
        f"address = {address}\nport = {port}\nuse chroot = no\nmax connections = 2\nreverse lookup = no\n"
        f"lock file = {directory}/lock\nlog file = {directory}/log\n"
        f"[{MODULE}]\npath = {source}\nread only = yes\nlist = no\nhosts allow = {client_address}\n"
        f"auth users = {DAEMON_USER}\nsecrets file = {directory}/secrets\nstrict modes = yes\n"
    )


def start_daemon_command(config_path: str, *, log_path: str, lifetime_s: int) -> Command:
    """Start the daemon in the background; prints its process ID. It ends by itself after `lifetime_s` seconds.

    Standard input must not be a socket, or rsync believes that inetd started it.
    """
    config, log = quoted(config_path), quoted(log_path)
    return shell(
        f"nohup setsid timeout --kill-after=5 {lifetime_s} rsync --daemon --no-detach --config={config} "
        f"</dev/null >{log} 2>&1 &\n"
        f"pid=$!; sleep 0.3; kill -0 $pid 2>/dev/null || {{ cat {log} >&2; exit 1; }}; echo $pid"
    )


def stop_daemon_command(pid: int, directory: str) -> Command:
    """End the daemon with its children and remove the folder with its secret. Fine when it has ended already."""
    return shell(f"kill -TERM -- -{pid} 2>/dev/null; kill -TERM {pid} 2>/dev/null; rm -rf {quoted(directory)}; true")


def fetch_command(*, address: str, port: int, target: str, secret: str, timeout_s: float) -> Command:
    """Fetch the whole module into the folder `target`; the secret travels on standard input.

    --whole-file: computing differences costs more than it saves on a fast link (404 to 451 MB/s;
    unslothai/unsloth#10280).
    """
    options = ("--whole-file", "--partial", "--info=progress2", "--no-inc-recursive", "--outbuf=L", "--timeout=60")
    source = f"rsync://{DAEMON_USER}@{address}:{port}/{MODULE}/"
    words = ("rsync", "-rlt", *options, "--password-file=-", source, f"{target}/")
    script = f"mkdir -p {quoted(target)} && {quoted(*words)} | tr '\\r' '\\n'"
    return Command(("bash", "-o", "pipefail", "-c", script), timeout_s=timeout_s, stdin=secret + "\n")


def parse_complaint(stderr: str) -> str:
    """The line that tells why rsync failed: the daemon's `@ERROR` or the first complaint; empty when there is none."""
    lines = [line.strip() for line in stderr.splitlines() if line.startswith(("@ERROR", "rsync"))]
    return lines[0] if lines else ""


def parse_progress(line: str) -> Progress | None:
    """One progress line, or None for any other line."""
    match = _PROGRESS.match(line)
    if match is None:
        return None
    return Progress(
        done_bytes=int(match["bytes"].replace(",", "")),
        percent=int(match["percent"]),
        bytes_per_s=float(match["rate"]) * _UNITS[match["unit"]],
    )
