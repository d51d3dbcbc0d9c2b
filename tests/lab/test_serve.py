"""`serve`, `ask`, `status`, `logs`, `stop` on the lab without an engine: every bad input, the copy, and what is left.

The engine here is a shell script in an image of a few megabytes that behaves as badly as a test wants; the real one
has tests of its own (marker `engine`).
"""

import json
import signal
import subprocess
import time

import pytest

from sparkctl.inventory.load import load_cluster
from sparkctl.transport.bundle import shell
from sparkctl.transport.ssh import SshTransport
from tests.lab.conftest import PROGRAM
from tests.serving_examples import CAPTURES

pytestmark = pytest.mark.lab

MODEL = "nine-heads"
IMAGE = "sparkctl-test/engine:1"
CONFIG = (CAPTURES / "model_files" / "lab--smollm2-config.json").read_text()
# A shell, the libraries it needs and a `vllm` that says what an engine says and then does what WISH tells it.
ENGINE = r"""#!/bin/sh
rank=0; for word in "$@"; do [ "$before" = --node-rank ] && rank=$word; before=$word; done
echo "(Worker pid=1) INFO 11-30 20:00:00 [parallel_state.py:1] rank $rank in world size 2 is assigned as DP rank 0"
echo "(Worker pid=1) INFO 11-30 20:00:00 [model_runner.py:1] Starting to load model /models/nine-heads..."
if [ "$WISH" = rank1-dies ] && [ "$rank" = 1 ]; then sleep 2; echo "ValueError: the weights are no good" >&2; exit 3; fi
sleep 600
"""
BUILD = r"""
set -e
d=$(mktemp -d); mkdir -p $d/bin $d/tmp
for p in /bin/sh /bin/sleep; do
  cp $p $d/bin/
  for l in $(ldd $p | grep -o '/[^ ]*'); do mkdir -p $d$(dirname $l); cp -L $l $d$l; done
done
cat >$d/bin/vllm; chmod 755 $d/bin/vllm
tar c -C $d . | docker import -c 'ENV PATH=/bin' - @IMAGE@ >/dev/null; rm -rf $d
"""
MAKE_MODEL = (
    "mkdir -p ~/models/@MODEL@ && cat >~/models/@MODEL@/config.json && "
    "head -c 3000000 /dev/urandom >~/models/@MODEL@/model.safetensors"
)
CLEAN = (
    "docker ps -aq --filter label=sparkctl.group | xargs -r docker rm -f >/dev/null; rm -rf ~/models; "
    "pkill -f '[h]ttp.server 8000'; true"
)


def script(text: str) -> str:
    return text.replace("@IMAGE@", IMAGE).replace("@MODEL@", MODEL)


@pytest.fixture(scope="module")
def nodes(lab):
    """A transport per node, with the links up."""
    opened = {host.name: SshTransport(host) for host in load_cluster(lab.inventory).hosts}
    assert lab.sparkctl("link", "up", "--yes").exit_code == 0
    yield opened
    assert lab.sparkctl("link", "down", "--yes").exit_code == 0
    for transport in opened.values():
        transport.close()


def on(node, text: str, stdin: str | None = None) -> str:
    command = shell(script(text), timeout_s=120)
    result = node.run(type(command)(command.argv, timeout_s=command.timeout_s, stdin=stdin))
    assert result.ok, result
    return result.stdout.strip()


@pytest.fixture
def pair(nodes):
    """Both nodes with the same stand-in engine and no model; clean before and after."""
    first, second = nodes.values()
    for node in (first, second):
        on(node, CLEAN)
    if len({on(node, "docker images -q --no-trunc @IMAGE@") for node in (first, second)} - {""}) != 1:
        on(first, BUILD, ENGINE)
    if on(first, "docker images -q --no-trunc @IMAGE@") != on(second, "docker images -q --no-trunc @IMAGE@"):
        on(second, "docker image rm -f @IMAGE@ >/dev/null 2>&1; base64 -d | docker load >/dev/null",
           on(first, "docker save @IMAGE@ | base64 -w0"))  # fmt: skip
    yield first, second
    for node in (first, second):
        on(node, CLEAN)


@pytest.fixture
def inventory(lab, tmp_path):
    """The lab's inventory with the stand-in engine; WISH is what the engine is to do."""

    def write(wish: str = "hangs"):
        path = tmp_path / f"{wish}.yaml"
        text = lab.inventory.read_text().partition("\nserving:")[0]
        path.write_text(f"{text}\nserving:\n  image: {IMAGE}\n  env: {{WISH: {wish}}}\n")
        return path

    return write


def with_model(node) -> None:
    on(node, MAKE_MODEL, CONFIG)


def test_nothing_is_served(lab, nodes):  # noqa: ARG001  # the links are up
    assert lab.sparkctl("status").exit_code == 0
    assert lab.sparkctl("stop", "--yes").exit_code == 0
    for words in (("ask", "hello"), ("logs",)):
        assert lab.sparkctl(*words).error["message"] == "nothing is served"


def test_a_model_that_no_node_has(lab, pair, inventory):  # noqa: ARG001
    run = lab.sparkctl("serve", MODEL, "--yes", inventory=inventory())
    assert run.exit_code == 1
    assert "no host has the model" in run.error["message"]
    assert "hf download" in run.error["remedy"]


@pytest.mark.parametrize(("words", "reason"), [(("--tp", "2"), "9 attention heads"), (("--pp", "3"), "needs 3 Sparks")])
def test_layouts_that_cannot_work(lab, pair, inventory, words, reason):
    with_model(pair[0])
    run = lab.sparkctl("serve", MODEL, *words, "--yes", inventory=inventory())
    assert run.exit_code == 2
    assert reason in run.error["message"]


def test_check_shows_the_copy_and_changes_nothing(lab, pair, inventory):
    with_model(pair[0])
    run = lab.sparkctl("serve", MODEL, "--pp", "2", "--check", inventory=inventory())
    assert run.exit_code == 10
    assert on(pair[1], "ls ~/models 2>/dev/null | wc -l") == "0"
    assert on(pair[0], "docker ps -aq | wc -l") == "0"


def test_a_taken_port(lab, pair, inventory):
    for node in pair:
        with_model(node)
    on(pair[1], "rm -rf ~/models")
    on(pair[0], "nohup python3 -m http.server 8000 >/dev/null 2>&1 & sleep 1")
    run = lab.sparkctl("serve", MODEL, "--pp", "2", "--yes", inventory=inventory())
    assert run.exit_code == 1
    assert "serve.port-taken" in run.codes
    assert on(pair[1], "ls ~/models 2>/dev/null | wc -l") == "0"


def test_an_incomplete_copy_in_the_way_is_not_touched(lab, pair, inventory):
    with_model(pair[0])
    on(pair[1], "mkdir -p ~/models/@MODEL@ && echo half >~/models/@MODEL@/model.safetensors")
    run = lab.sparkctl("serve", MODEL, "--pp", "2", "--yes", inventory=inventory())
    assert run.exit_code == 4
    assert on(pair[1], "cat ~/models/@MODEL@/model.safetensors") == "half"


def test_docker_that_our_user_may_not_use(lab, pair, inventory):
    with_model(pair[0])
    on(pair[1], "sudo chmod 600 /run/docker.sock")
    try:
        run = lab.sparkctl("serve", MODEL, "--pp", "2", "--yes", inventory=inventory())
    finally:
        on(pair[1], "sudo chmod 660 /run/docker.sock")
    assert run.exit_code == 1
    (finding,) = run.envelope["findings"]
    assert (finding["code"], finding["subject"]) == ("serve.docker", load_cluster(lab.inventory).hosts[1].name)
    assert "usermod -aG docker" in finding["remedy"]


def test_an_image_that_cannot_be_pulled(lab, pair, inventory):
    with_model(pair[0])
    on(pair[1], "docker image rm -f @IMAGE@ >/dev/null")
    run = lab.sparkctl("serve", MODEL, "--pp", "2", "--yes", inventory=inventory())
    assert run.exit_code == 1
    assert f"cannot pull {IMAGE}" in run.error["message"]


def test_different_images_under_one_name(lab, pair, inventory):
    with_model(pair[0])
    on(pair[1], "docker image rm -f @IMAGE@ >/dev/null")
    on(pair[1], BUILD, ENGINE)
    run = lab.sparkctl("serve", MODEL, "--pp", "2", "--yes", inventory=inventory())
    assert run.exit_code == 1
    assert "is not the same image on all hosts" in run.error["message"]


def test_a_rank_that_dies_is_named_and_both_are_stopped(lab, pair, inventory):
    with_model(pair[0])
    began = time.monotonic()
    run = lab.sparkctl("serve", MODEL, "--pp", "2", "--yes", inventory=inventory("rank1-dies"))
    assert run.exit_code == 1
    finding = run.envelope["findings"][-1]
    assert finding["code"] == "serve.start-failed"
    assert finding["message"] == "rank 1 failed (loads weights): it ended with exit code 3"
    assert finding["found"] == "ValueError: the weights are no good"
    assert time.monotonic() - began < 90
    for node in pair:
        assert on(node, "docker ps -aq | wc -l") == "0"
    # The copy came over the rail, whole, and the sender left nothing behind.
    sums = {on(node, "sha256sum <~/models/@MODEL@/model.safetensors") for node in pair}
    assert len(sums) == 1
    assert on(pair[0], "pgrep -x rsync | wc -l; ls -d ~/.cache/sparkctl/copy.* 2>/dev/null | wc -l") == "0\n0"
    assert on(pair[1], "ls ~/models") == MODEL


def test_ctrl_c_while_the_engine_starts_stops_both_ranks(pair, inventory):
    for node in pair:
        on(node, "rm -rf ~/models")
    with_model(pair[0])
    command = [*PROGRAM, "serve", MODEL, "--pp", "2", "--yes", "-i", str(inventory())]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    deadline = time.monotonic() + 60
    while on(pair[0], "docker ps -q | wc -l") == "0" and time.monotonic() < deadline:
        time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    words, _ = process.communicate(timeout=60)
    assert process.returncode == 130, words
    assert "all ranks are stopped" in words
    for node in pair:
        assert on(node, "docker ps -aq | wc -l") == "0"


def test_a_running_group_is_not_disturbed_and_stop_proves_that_it_is_gone(lab, pair, inventory):
    with_model(pair[0])
    path = inventory()
    command = [*PROGRAM, "serve", MODEL, "--pp", "2", "--yes", "-i", str(path)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 60
        while on(pair[0], "docker ps -q | wc -l") == "0" and time.monotonic() < deadline:
            time.sleep(0.5)
        # The controller is lost without a chance to clean up; the ranks go on.
        process.kill()
    other = lab.sparkctl("serve", MODEL, "--pp", "2", "--port", "8001", "--check", inventory=path)
    assert other.exit_code == 4
    assert "is being served already" in other.error["message"]
    same = lab.sparkctl("serve", MODEL, "--pp", "2", "--check", inventory=path)
    assert (same.exit_code, same.envelope["data"]["changes"]) == (0, [])
    status = lab.sparkctl("status", inventory=path)
    assert (status.exit_code, status.envelope["data"]["state"]) == (1, "whole")
    assert "Starting to load model" in "\n".join(lab.sparkctl("logs", inventory=path).envelope["data"]["lines"])
    stopped = lab.sparkctl("stop", "--yes", inventory=path)
    assert stopped.exit_code == 0
    codes = [finding["code"] for finding in stopped.envelope["findings"]]
    assert codes.count("stop.containers") == codes.count("stop.ports") == codes.count("stop.memory") == 2
    assert lab.sparkctl("stop", "--yes", inventory=path).envelope["data"] == {"stopped": []}


def test_a_node_that_dies_while_the_engine_starts_is_named_and_the_other_rank_is_stopped(lab, pair, inventory):
    with_model(pair[0])
    command = [*PROGRAM, "serve", MODEL, "--pp", "2", "--yes", "--json", "-i", str(inventory())]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        deadline = time.monotonic() + 60
        while on(pair[0], "docker ps -q | wc -l") == "0" and time.monotonic() < deadline:
            time.sleep(0.5)
        fault = [*PROGRAM, "lab", "fault"]
        off = subprocess.run(
            [*fault, "off", "spark-2", "--name", lab.name], capture_output=True, text=True, check=False
        )
        assert off.returncode == 0, off.stdout + off.stderr
        try:
            printed, _ = process.communicate(timeout=180)
        finally:
            subprocess.run([*fault, "on", "spark-2", "--name", lab.name], check=True, capture_output=True)
    envelope = json.loads(printed)
    assert process.returncode == 1, envelope
    assert envelope["data"]["failure"]["host"] == "spark-2"
    assert "contact with the host was lost" in envelope["findings"][-1]["message"]
    # What could not be stopped is named; what could be, is.
    assert envelope["data"]["failure"]["left_running"] == ["rank 1 on spark-2"]
    assert on(pair[0], "docker ps -aq | wc -l") == "0"
