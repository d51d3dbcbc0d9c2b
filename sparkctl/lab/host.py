"""What this machine needs before it can hold a lab: root, a few programs, a place to get Debian from."""

import os
import re
import shlex
import shutil
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from sparkctl.errors import OperationFailed, UsageError

# Called with one line of words for people whenever a longer step starts or moves on.
Progress = Callable[[str], None]

# Own mount and process namespaces for what builds a root file system: whatever stops us, no mount and no process of it
# is left.
CONTAINED = ("setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--pid", "--fork", "--kill-child")
MIRROR_VARIABLE = "SPARKCTL_LAB_MIRROR"
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
# Snapshot archives are frozen in time: /archive/debian/20250520T000000Z.
_DATED = re.compile(r"/archive/debian/\d{8}T\d{6}Z/?$")
_PROGRAM_PACKAGES = {
    "systemd-nspawn": "systemd-container",
    "debootstrap": "debootstrap",
    "ssh-keygen": "openssh-client",
    "unshare": "util-linux",
    "mount": "mount",
    "ip": "iproute2",
}


def require_root(command: tuple[str, ...]) -> None:
    """Raise UsageError unless we are root. command: what the user typed, to be repeated behind `sudo`."""
    if os.geteuid() != 0:
        raise UsageError(
            "a lab needs root: it makes network namespaces and containers on this machine",
            remedy=f"type `sudo {shlex.join(command)}`",
        )


def install_programs(progress: Progress) -> None:
    """Install what is missing of the programs a lab is built with; needs root.

    Raises UsageError where there is no apt, OperationFailed when apt fails.
    """
    packages = _missing_packages()
    if not packages:
        return
    install = ("apt-get", "install", "--yes", "--no-install-recommends", *packages)
    if shutil.which("apt-get") is None:
        raise UsageError(
            f"this machine lacks {', '.join(packages)} (Debian's names)",
            remedy="install these packages with this system's own package manager, then try again",
        )
    progress(f"installing {', '.join(packages)} on this machine")
    for argv in (("apt-get", "update"), install):
        done = subprocess.run(
            argv, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"}, capture_output=True, text=True, check=False
        )
        if done.returncode != 0 and argv is install:
            raise OperationFailed(
                f"the packages {', '.join(packages)} could not be installed: {_last_line(done.stderr)}",
                remedy=f"type `sudo {shlex.join(install)}` and read what it says",
            )


def debootstrap_command(suite: str, packages: Sequence[str], root: Path) -> tuple[str, ...]:
    """The words that build a minimal Debian of that suite with these packages in `root`; signatures are checked.

    Raises OperationFailed when the mirror that was wished for does not answer.
    """
    words = ("debootstrap", "--variant=minbase", f"--include={','.join(packages)}", f"--keyring={KEYRING}")
    # An older debootstrap does not know a newer suite by name; all suites since 2005 are built like sid.
    known = Path("/usr/share/debootstrap/scripts", suite).exists()
    return (*words, suite, str(root), find_mirror(), *(() if known else ("sid",)))


def find_mirror() -> str:
    """URL of a Debian mirror that has trixie; empty for debootstrap's own default, which is Debian's.

    In this order: $SPARKCTL_LAB_MIRROR, this machine's own mirrors, the default. A dated snapshot is replaced by its
    current sibling on the same host, because it may be older than trixie.
    Raises OperationFailed when the mirror that was wished for does not have trixie.
    """
    wanted = os.environ.get(MIRROR_VARIABLE)
    for mirror in dict.fromkeys((wanted,) if wanted else _own_mirrors()):
        if _has_trixie(mirror):
            return mirror
    if not wanted:
        return ""
    raise OperationFailed(
        f"{wanted} does not answer or does not have Debian trixie",
        remedy=f"name a mirror that this machine reaches: `{MIRROR_VARIABLE}=http://…/debian sparkctl lab up`",
    )


def parse_mirrors(texts: tuple[str, ...]) -> tuple[str, ...]:
    """URLs of Debian mirrors in apt's source files, undated, in order, without doubles.

    texts: contents of `*.list` and `*.sources` files, see sources.list(5). Other archives (security, Ubuntu,
    third parties) are left out: a Debian mirror's path ends in `debian`.
    """
    found = []
    for text in texts:
        for line in text.splitlines():
            if line.startswith(("deb ", "deb-src ", "URIs:")):
                found += re.findall(r"https?://[^\s\]]+", line)
    return tuple(dict.fromkeys(url for url in map(_undated, found) if url.endswith("/debian")))


def _undated(url: str) -> str:
    if _DATED.search(url):
        parts = urlsplit(url)
        return f"{parts.scheme}://{parts.netloc}/debian"
    return url.rstrip("/")


def _own_mirrors() -> tuple[str, ...]:
    directory = Path("/etc/apt/sources.list.d")
    files = (Path("/etc/apt/sources.list"), *sorted(directory.glob("*.sources")), *sorted(directory.glob("*.list")))
    return parse_mirrors(tuple(file.read_text(errors="replace") for file in files if file.is_file()))


def _has_trixie(mirror: str) -> bool:
    if not mirror.startswith(("http://", "https://")):
        return False
    try:
        with urllib.request.urlopen(  # noqa: S310  # the scheme is checked above
            f"{mirror}/dists/trixie/InRelease", timeout=15
        ) as answer:
            head = answer.read(2000).decode(errors="replace")
    except (urllib.error.URLError, OSError, ValueError):
        return False
    return "Origin: Debian" in head and "Codename: trixie" in head


def _missing_packages() -> tuple[str, ...]:
    missing = [package for program, package in _PROGRAM_PACKAGES.items() if shutil.which(program) is None]
    if not KEYRING.exists():
        missing.append("debian-archive-keyring")
    return tuple(missing)


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["no message"])[-1]
