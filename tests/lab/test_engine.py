"""Real vLLM over both nodes of a lab: the whole path, twice; both layouts; a rank that dies while it starts.

The CPU stands in for the GPUs and TCP for RDMA; everything else is what a pair of Sparks would run.
"""

import json
import subprocess
import time
from collections.abc import Iterator

import pytest

from sparkctl.inventory.load import load_cluster
from sparkctl.transport.bundle import shell
from sparkctl.transport.ssh import SshTransport
from tests.lab.conftest import PROGRAM, SHARED_NAME, SharedLab, start_lab, stop_lab

pytestmark = [pytest.mark.lab, pytest.mark.engine]

CHAT, SPLIT = "SmolLM2-135M-Instruct", "tiny-llama-tp2"
CONTAINERS = "docker ps --all --format '{{.Names}} {{.State}}'"


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedLab]:
    name = f"{SHARED_NAME}-engine"
    yield start_lab(name, tmp_path_factory.mktemp("engine") / "lab.yaml", "--engine")
    stop_lab(name)


@pytest.fixture(scope="module")
def nodes(pair):
    opened = {host.name: SshTransport(host) for host in load_cluster(pair.inventory).hosts}
    yield opened
    for transport in opened.values():
        transport.close()


def printed(nodes, host: str, script: str) -> str:
    return nodes[host].run(shell(script)).stdout.strip()


def test_from_two_nodes_and_a_cable_to_an_answer(pair, nodes):
    assert printed(nodes, "spark-2", "ls ~/models 2>/dev/null") == ""

    first = pair.sparkctl("up", "--yes", timeout_s=900)

    data = first.envelope["data"]
    assert first.exit_code in (0, 5), first.envelope  # 5: the rails were slow while the machine was busy
    assert [stage["stage"] for stage in data["stages"]] == ["discover", "link", "prove", "serve", "ask"]
    assert "Paris" in data["answer"]["text"]
    assert data["tokens_per_s"] > 0
    assert data["serving"]["plan"]["layout"] == {"tp": 1, "pp": 2}
    for host in ("spark-1", "spark-2"):
        assert printed(nodes, host, CONTAINERS).endswith("running")
        assert printed(nodes, host, f"ls ~/models/{CHAT}/config.json").endswith("config.json")
    # The stages really talk over the rails: the worker holds a connection to the head's rail address.
    head = data["serving"]["plan"]["ranks"][0]["rails"][0]["address"]
    assert head in printed(nodes, "spark-2", "ss -Htn state established")


def test_again_changes_nothing_and_asks_the_same_engine(pair, nodes):
    before = {host: printed(nodes, host, "docker ps --no-trunc --quiet") for host in nodes}

    again = pair.sparkctl("up", "--yes", timeout_s=300)

    assert again.exit_code in (0, 5), again.envelope
    assert again.envelope["data"]["link_changes"] == []
    assert again.envelope["data"]["serving"]["start"] is None
    assert "Paris" in again.envelope["data"]["answer"]["text"]
    assert {host: printed(nodes, host, "docker ps --no-trunc --quiet") for host in nodes} == before
    assert pair.sparkctl("up", "--check").exit_code == 0


def test_the_answer_is_the_same_each_time_and_comes_as_it_is_written(pair):
    words = ("ask", "What is the capital of France?", "--max-tokens", "24")
    answers = [pair.sparkctl(*words).envelope["data"]["answer"] for _ in range(2)]

    assert answers[0]["text"] == answers[1]["text"]
    assert 0 < answers[0]["first_token_s"] < answers[0]["total_s"]


def test_status_and_logs_name_both_ranks(pair):
    status = pair.sparkctl("status")
    assert (status.exit_code, status.envelope["data"]["api_answers"]) == (0, True)

    lines = pair.sparkctl("logs", "--tail", "50").envelope["data"]["lines"]
    assert {line.split(" | ")[0] for line in lines} == {"spark-1", "spark-2"}
    only = pair.sparkctl("logs", "--tail", "5", "--node", "spark-2").envelope["data"]["lines"]
    assert {line.split(" | ")[0] for line in only} == {"spark-2"}


def test_another_layout_beside_it_is_refused_and_changes_nothing(pair, nodes):
    before = printed(nodes, "spark-1", "docker ps --no-trunc --quiet")

    refused = pair.sparkctl("serve", CHAT, "--tp", "2", "--yes")

    assert (refused.exit_code, refused.error["type"]) == (2, "UsageError")
    assert "9 attention heads" in refused.error["message"]
    assert printed(nodes, "spark-1", "docker ps --no-trunc --quiet") == before


def test_stop_proves_that_everything_is_free(pair, nodes):
    assert pair.sparkctl("stop", "--check").exit_code == 10

    stopped = pair.sparkctl("stop", "--yes")

    assert stopped.exit_code == 0, stopped.envelope
    for host in nodes:
        assert printed(nodes, host, CONTAINERS) == ""
        assert printed(nodes, host, "ss -Hltn '( sport = :8000 or sport = :25000 )'") == ""
    assert pair.sparkctl("stop", "--yes").exit_code == 0
    assert pair.sparkctl("ask", "anything").exit_code == 1


def test_tensor_parallel_with_a_model_that_allows_it(pair, nodes):
    served = pair.sparkctl("serve", SPLIT, "--tp", "2", "--yes", timeout_s=900)

    assert served.exit_code == 0, served.envelope
    assert served.envelope["data"]["plan"]["layout"] == {"tp": 2, "pp": 1}
    assert served.envelope["data"]["start"]["answer"]["tokens"] > 0
    for host in nodes:
        assert printed(nodes, host, CONTAINERS).endswith("running")
    assert pair.sparkctl("stop", "--yes").exit_code == 0


def test_a_rank_that_dies_while_the_engine_starts_is_named_and_both_are_stopped(pair, nodes):
    starting = subprocess.Popen(
        [*PROGRAM, "serve", CHAT, "--pp", "2", "--yes", "--json", "-i", str(pair.inventory)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
        text=True,
    )
    deadline = time.monotonic() + 120
    while not printed(nodes, "spark-2", CONTAINERS).endswith("running"):
        assert time.monotonic() < deadline
        time.sleep(0.5)
    time.sleep(5)  # somewhere in its start
    nodes["spark-2"].run(shell("docker kill $(docker ps --quiet)"))
    killed = time.monotonic()
    envelope = json.loads(starting.communicate(timeout=120)[0])

    assert starting.returncode == 1, envelope
    assert time.monotonic() - killed < 60
    assert envelope["data"]["failure"]["host"] == "spark-2"
    assert [finding["severity"] for finding in envelope["findings"]].count("fail") == 1
    for host in nodes:
        assert printed(nodes, host, CONTAINERS) == ""
