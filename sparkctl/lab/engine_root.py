"""Builds the engine's root file system: Debian, Python, torch for the CPU, vLLM; two to four minutes, 1.7 GB."""

import os
import shutil
import subprocess
from pathlib import Path

from sparkctl.errors import OperationFailed
from sparkctl.lab.engine_chroot import failure, run_inside
from sparkctl.lab.engine_pip import TORCH_CPU_INDEX, TORCH_INDEX_VARIABLE, PipSettings, gather_pip_settings
from sparkctl.lab.engine_recipe import (
    ENVIRONMENT,
    PACKAGES,
    PREPARE,
    SITE,
    SITECUSTOMIZE,
    SUITE,
    TORCH,
    TRIMMED,
    VENV,
    WORKING_DIRECTORY,
    requirements,
)
from sparkctl.lab.host import CONTAINED, Progress, debootstrap_command

_PIP = (f"{VENV}/bin/python", "-m", "pip", "--disable-pip-version-check", "--no-input")
_INSTALL = ("install", "--no-deps", "--no-compile", "--no-cache-dir", "--quiet", "--progress-bar", "off")
# What only this machine has to do with, and what no program in the image reads.
_LEFT_OUT = (
    *("etc/resolv.conf", "etc/hostname", "etc/apt/sources.list", "var/log/bootstrap.log", "var/log/dpkg.log"),
    *("var/cache/apt", "var/lib/apt/lists", "usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/info"),
    "var/cache/debconf",
)


def build_root(root: Path, unused: tuple[str, ...], log: Path, progress: Progress) -> None:
    """Fill the empty or absent directory `root`. unused: files below vllm/ to leave out.

    Raises OperationFailed when the mirror, debootstrap or pip fails; then `root` is worthless.
    """
    log.write_text("")
    progress(f"engine image: Debian {SUITE} with Python")
    _bootstrap(root, log)
    _install(root, log, progress)
    progress("engine image: preparing byte code")
    site = root / SITE.lstrip("/")
    for name in unused:
        (site / "vllm" / name).unlink(missing_ok=True)
    _remove_matches(site, TRIMMED)
    (site / "sitecustomize.py").write_text(SITECUSTOMIZE)
    (root / WORKING_DIRECTORY.lstrip("/")).mkdir()
    run_inside(root, (f"{VENV}/bin/python", "-c", PREPARE), log=log, environment=ENVIRONMENT)
    _remove_matches(root, _LEFT_OUT)


def _bootstrap(root: Path, log: Path) -> None:
    argv = (*CONTAINED, *debootstrap_command(SUITE, PACKAGES, root))
    with log.open("a") as output:
        done = subprocess.run(argv, stdout=output, stderr=subprocess.STDOUT, check=False)
    if done.returncode != 0:
        raise failure("debootstrap failed", log)


def _install(root: Path, log: Path, progress: Progress) -> None:
    settings = gather_pip_settings()
    run_inside(root, ("/usr/bin/python3", "-m", "venv", VENV), log=log, environment=ENVIRONMENT)
    progress(f"engine image: installing torch {TORCH}")
    _install_torch(root, settings, log, progress)
    progress(f"engine image: installing vLLM with {len(requirements())} packages")
    _pip(root, settings, log, *requirements())


def _install_torch(root: Path, settings: PipSettings, log: Path, progress: Progress) -> None:
    """Only CPU builds carry `+cpu` in their version, so pip cannot take gigabytes of CUDA by mistake."""
    wanted = f"torch=={TORCH}"
    if index := os.environ.get(TORCH_INDEX_VARIABLE):
        _pip(root, settings, log, f"--extra-index-url={index}", wanted)
        return
    try:
        _pip(root, settings, log, wanted)
    except OperationFailed:
        progress("engine image: pip's usual places have no CPU build of torch, asking PyTorch's own index")
        _pip(root, settings, log, f"--extra-index-url={TORCH_CPU_INDEX}", wanted)


def _pip(root: Path, settings: PipSettings, log: Path, *arguments: str) -> None:
    environment = dict((*ENVIRONMENT, *settings.environment))
    run_inside(
        root, (*_PIP, *_INSTALL, *arguments), log=log, environment=tuple(environment.items()), binds=settings.binds
    )


def _remove_matches(directory: Path, patterns: tuple[str, ...]) -> None:
    for path in [match for pattern in patterns for match in directory.glob(pattern)]:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
