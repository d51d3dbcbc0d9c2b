import shutil
import subprocess

import pytest

from sparkctl.errors import HostUnreachable, UnexpectedOutput
from sparkctl.facts.assemble import READINGS
from sparkctl.facts.gather import gather_cluster, gather_host
from sparkctl.facts.model import DockerState
from sparkctl.transport.command import CommandResult
from tests.scripted import ScriptedTransport


def test_one_round_trip():
    frames = "".join(f"[sparkctl {index} 127 0 0]\n" for index in range(len(READINGS)))
    transport = ScriptedTransport("spark-a", [("mktemp", frames)])
    facts = gather_host(transport)
    assert len(transport.commands) == 1
    assert (facts.host, facts.is_spark, facts.docker.state) == ("spark-a", False, DockerState.MISSING)


def test_a_host_without_coreutils_yields_facts():
    assert not gather_host(ScriptedTransport("mac", [("mktemp", (127, ""))])).is_spark


def test_a_host_that_answers_with_something_else():
    with pytest.raises(UnexpectedOutput):
        gather_host(ScriptedTransport("router", [("mktemp", "Welcome\n")]))


def test_a_dead_host_is_an_outcome():
    dead = HostUnreachable("gone", where="spark-b", remedy="look")
    frames = "".join(f"[sparkctl {index} 127 0 0]\n" for index in range(len(READINGS)))
    alive = ScriptedTransport("spark-a", [("mktemp", frames)])
    outcomes = gather_cluster([alive, ScriptedTransport("spark-b", [("mktemp", dead)])])
    assert list(outcomes) == ["spark-a"]
    assert outcomes.errors == {"spark-b": dead}


class ThisMachine(ScriptedTransport):
    """Runs the bundle here, without a network, so that the scripts meet a real shell."""

    def run(self, command):
        done = subprocess.run(["sh", "-c", command.shell_line()], capture_output=True, text=True, check=False)
        return CommandResult(self.host, command, done.returncode, done.stdout, done.stderr)


@pytest.mark.skipif(shutil.which("timeout") is None, reason="needs GNU coreutils")
def test_the_scripts_run_in_this_machines_shell():
    facts = gather_host(ThisMachine("here"))
    assert facts.hostname
    assert facts.memory_total_bytes > facts.memory_available_bytes > 0
    assert facts.cpu_count > 0
