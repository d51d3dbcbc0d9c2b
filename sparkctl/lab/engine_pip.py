"""How this machine's pip finds packages, so that a pip inside another root file system can find the same."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

TORCH_INDEX_VARIABLE = "SPARKCTL_TORCH_INDEX"
# Source: pytorch.org, "Get started", the CPU builds for pip.
TORCH_CPU_INDEX = "https://download.pytorch.org/whl/cpu"

_PASSED = re.compile(r"PIP_\w+|\w+_proxy|\w+_PROXY|SSL_CERT_FILE|SSL_CERT_DIR|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE")
_PATH = re.compile(r"(?<![\w:/])(file://)?(/[^\s,;'\"]+)")


@dataclass(frozen=True)
class PipSettings:
    """What a pip in a chroot needs to be told.

    environment: variables to set. binds: files and directories to show at the same path, read-only.
    """

    environment: tuple[tuple[str, str], ...]
    binds: tuple[Path, ...]


def gather_pip_settings() -> PipSettings:
    """Settings of this machine: pip's own files, variables, certificates, name resolution."""
    environment = passed_environment(os.environ)
    files = tuple(file for file in _config_files() if file.is_file())
    texts = [file.read_text(errors="replace") for file in files] + [value for _, value in environment]
    named = {path for text in texts for path in named_paths(text)}
    # A constraints file may name further files; one level is all that was ever seen.
    wanted = (*files, *(Path(path) for path in sorted(named)), Path("/etc/resolv.conf"), Path("/etc/hosts"))
    binds = without_nested(tuple(path for path in wanted if path.exists()))
    return PipSettings((*environment, ("HOME", str(Path.home()))), binds)


def passed_environment(environment: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Those variables that pip, proxies and certificates are set by, sorted."""
    return tuple(sorted((name, value) for name, value in environment.items() if _PASSED.fullmatch(name)))


def named_paths(text: str) -> tuple[str, ...]:
    """Absolute paths in a configuration file or variable, without trailing slash.

    Of a file:// URL the directory above is meant, because a simple index links to files beside it.
    """
    found = []
    for scheme, path in _PATH.findall(text):
        parent = str(Path(path).parent)
        found.append(parent if scheme and parent.count("/") > 1 else path.rstrip("/"))
    return tuple(found)


def without_nested(paths: tuple[Path, ...]) -> tuple[Path, ...]:
    """Paths without those that lie in another of them; `/` and doubles are left out."""
    unique = [path for path in dict.fromkeys(paths) if path != Path("/")]
    return tuple(path for path in unique if not any(other in path.parents for other in unique))


def _config_files() -> tuple[Path, ...]:
    """Source: pip's user guide, "Configuration", locations on Linux."""
    home = Path.home()
    own = os.environ.get("PIP_CONFIG_FILE")
    return (
        *(Path("/etc/pip.conf"), Path("/etc/xdg/pip/pip.conf")),
        *(home / ".config/pip/pip.conf", home / ".pip/pip.conf"),
        *((Path(own),) if own else ()),
    )
