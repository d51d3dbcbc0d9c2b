"""The lab that the tests share: two virtual Sparks of their own, started once, removed at the end."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

# A fixed name, so that the remains of a run that was killed are found and removed; another one for a second run beside.
SHARED_NAME = os.environ.get("SPARKCTL_TEST_LAB", "t-main")
PROGRAM = (sys.executable, "-m", "sparkctl")

# A shell without job control starts background programs with SIGINT ignored, and programs pass that on to theirs: the
# tests of Ctrl-C would then test nothing. A handler here means the default there.
signal.signal(signal.SIGINT, signal.default_int_handler)


@dataclass(frozen=True)
class Run:
    """One call of the command line with --json. envelope: what it printed; words: what it said on stderr."""

    exit_code: int
    envelope: dict[str, Any]
    words: str

    @property
    def codes(self) -> list[str]:
        """Codes of the findings that are worse than INFO."""
        return [f["code"] for f in self.envelope["findings"] if f["severity"] not in ("ok", "info")]

    @property
    def error(self) -> dict[str, Any]:
        """The only error."""
        (error,) = self.envelope["errors"]
        return dict(error)


@dataclass(frozen=True)
class SharedLab:
    """name: for `sparkctl lab`. inventory: its file."""

    name: str
    inventory: Path

    def sparkctl(self, *words: str, timeout_s: float = 300, inventory: Path | None = None) -> Run:
        """Run a command on the lab; every command speaks JSON."""
        command = [*PROGRAM, *words, "-i", str(inventory or self.inventory), "--json"]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=timeout_s, stdin=subprocess.DEVNULL
        )
        try:
            envelope = json.loads(done.stdout)
        except ValueError:
            pytest.fail(f"no JSON from {' '.join(words)} ({done.returncode}):\n{done.stdout}\n{done.stderr}")
        assert envelope["exit_code"] == done.returncode
        return Run(done.returncode, envelope, done.stderr)

    def with_inventory(self, path: Path, **replaced: str) -> Path:
        """The lab's inventory with pieces of text replaced, as a new file."""
        text = self.inventory.read_text()
        for old, new in replaced.items():
            assert old in text
            text = text.replace(old, new)
        path.write_text(text)
        return path


def start_lab(name: str, inventory: Path, *options: str) -> SharedLab:
    """`sparkctl lab up`; its progress goes to the test's captured output."""
    if os.geteuid() != 0:
        pytest.fail("tests on the lab need root: `make test` uses sudo")
    stop_lab(name)  # remains of a run that was killed, alive or dead
    command = [*PROGRAM, "lab", "up", "--name", name, "--inventory-out", str(inventory), *options]
    done = subprocess.run(command, check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        pytest.fail(f"`{' '.join(command[2:])}` ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
    return SharedLab(name, inventory)


def stop_lab(name: str) -> None:
    """`sparkctl lab down`."""
    command = [*PROGRAM, "lab", "down", "--name", name]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, capture_output=True)


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedLab]:
    inventory = tmp_path_factory.mktemp("lab") / "lab.yaml"
    yield start_lab(SHARED_NAME, inventory)
    stop_lab(SHARED_NAME)
