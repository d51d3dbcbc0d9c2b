from dataclasses import replace

import pytest

from sparkctl.facts.model import Docker, DockerState
from sparkctl.verify.hosts import judge_hosts
from tests.cabling_examples import A, B, sparks


def judge(*, members=True, **fields):
    facts = sparks([A], [])[A]
    return judge_hosts({A: replace(facts, **fields)}, members=members)


def codes(findings):
    return [(finding.severity.value, finding.code) for finding in findings]


def test_a_spark_in_order():
    assert judge() == ()


def test_sudo_that_asks():
    (finding,) = judge(sudo=False)
    assert (finding.severity.value, finding.code) == ("fail", "host.sudo-password")
    assert "nvidia ALL=(ALL) NOPASSWD:ALL" in finding.remedy


@pytest.mark.parametrize(
    ("state", "code", "remedy"),
    [
        (DockerState.MISSING, "docker.missing", "apt-get install"),
        (DockerState.NOT_PERMITTED, "docker.not-permitted", "usermod -aG docker nvidia"),
        (DockerState.NOT_RUNNING, "docker.not-running", "systemctl enable --now docker"),
    ],
)
def test_docker(state, code, remedy):
    (finding,) = judge(docker=Docker(state, detail="its words"))
    assert (finding.code, finding.found) == (code, "its words")
    assert remedy in finding.remedy


def test_a_host_that_is_no_spark_is_an_error_only_in_a_cluster():
    assert codes(judge(gpu=None, sudo=False)) == [("fail", "host.not-spark")]
    assert codes(judge(gpu="NVIDIA GeForce RTX 4090", members=False)) == [("info", "host.not-spark")]


def test_a_driver_that_fails_is_not_the_same_as_no_spark():
    (finding,) = judge(gpu=None, gpu_complaint="NVIDIA-SMI has failed")
    assert (finding.code, finding.found) == ("host.gpu-broken", "NVIDIA-SMI has failed")


def test_oem_boxes_are_sparks():
    assert judge(product="GX10", dgx_release={}) == ()


def test_what_is_simulated_is_said_once():
    facts = {name: replace(host, simulated=("GPU (x)", "y")) for name, host in sparks([A, B], []).items()}
    (finding,) = judge_hosts(facts, members=True)
    assert (finding.subject, finding.message) == (f"{A}, {B}", "simulated, not real: GPU, y")
