from dataclasses import replace
from itertools import pairwise
from types import MappingProxyType

import pytest

from sparkctl.errors import OperationFailed, UnsafeRefused
from sparkctl.inventory.model import ServingWishes
from sparkctl.plan.layout import Layout
from sparkctl.plan.memory import utilization_of
from sparkctl.plan.model_location import locate_model
from sparkctl.plan.serving import ServingRequest, served_name
from sparkctl.tools.docker import run_command
from sparkctl.tools.model_files import FoundModel, ModelFile, ModelPlace
from tests.serving_examples import (
    CLUSTER,
    CONFIG,
    IMAGE,
    MODEL,
    answer,
    found_model,
    host_facts,
    idle_pair,
    pair,
    plan_of,
    serving_facts,
)


def test_the_whole_command_line_of_a_worker():
    plan = plan_of()
    argv = run_command(plan.ranks[1].container).argv
    labels = [word for before, word in pairwise(argv) if before == "--label"]
    words = [word for word in argv if word != "--label" and word not in labels]
    assert words == [
        "docker", "run", "--detach", "--name", "sparkctl-desk-rank1",
        "--gpus", "all", "--network", "host", "--shm-size", "10g",
        "--ulimit", "memlock=-1", "--ulimit", "stack=67108864", "--device", "/dev/infiniband",
        "--env", "XDG_CACHE_HOME=/sparkctl-cache",
        "--env", "VLLM_CACHE_ROOT=/sparkctl-cache/vllm",
        "--env", "TRITON_CACHE_DIR=/sparkctl-cache/triton",
        "--env", "FLASHINFER_WORKSPACE_BASE=/sparkctl-cache",
        "--env", "VLLM_ENGINE_READY_TIMEOUT_S=86400",
        "--env", "VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS=900",
        "--env", "VLLM_NO_USAGE_STATS=1",
        "--env", "HF_HUB_OFFLINE=1",
        "--env", "VLLM_HOST_IP=10.177.0.2",
        "--env", "NCCL_SOCKET_IFNAME=enp1s0f1np1",
        "--env", "GLOO_SOCKET_IFNAME=enp1s0f1np1",
        "--env", "TP_SOCKET_IFNAME=enp1s0f1np1",
        "--env", "UCX_NET_DEVICES=enp1s0f1np1",
        "--env", "NCCL_IB_HCA=rocep1s0f1,roceP2p1s0f1",
        "--volume", f"/home/nvidia/models/{MODEL}:/models/{MODEL}:ro",
        "--volume", "/home/nvidia/.cache/sparkctl/engine/abababababab:/sparkctl-cache",
        "nvcr.io/nvidia/vllm:26.05.post1-py3",
        "vllm", "serve", f"/models/{MODEL}", "--served-model-name", MODEL,
        "--tensor-parallel-size", "1", "--pipeline-parallel-size", "2",
        "--nnodes", "2", "--node-rank", "1", "--master-addr", "10.177.0.1", "--master-port", "25000",
        "--distributed-executor-backend", "mp", "--headless",
        "--gpu-memory-utilization", "0.80",
    ]  # fmt: skip
    assert "sparkctl.group=desk" in labels
    assert "sparkctl.rank=1" in labels
    assert f"sparkctl.spec={plan.spec}" in labels


def test_each_rank_gets_its_own_interface_and_only_the_head_has_the_api():
    head, worker = plan_of().ranks
    assert head.container.env["GLOO_SOCKET_IFNAME"] == "enp1s0f0np0"
    assert worker.container.env["GLOO_SOCKET_IFNAME"] == "enp1s0f1np1"
    assert "--headless" not in head.container.command
    assert head.container.command[-6:-2] == ("--host", "0.0.0.0", "--port", "8000")  # noqa: S104  # as planned
    assert "--port" not in worker.container.command


def test_no_variable_is_empty_and_no_gid_index_is_pinned():
    facts = {host: replace(item, ports=tuple(replace(port, rdma_device=None) for port in item.ports))
             for host, item in pair().items()}  # fmt: skip
    for plan in (plan_of(), plan_of(facts=facts), plan_of(layout=Layout())):
        for rank in plan.ranks:
            assert all(rank.container.env.values())
            assert "NCCL_IB_GID_INDEX" not in rank.container.env
    assert "NCCL_IB_HCA" not in plan_of(facts=facts).head.container.env


def test_without_the_rdma_device_folder_the_option_is_left_out():
    facts = {host: replace(item, infiniband_device_dir=False) for host, item in pair().items()}
    assert "--device" not in plan_of(facts=facts).head.container.options


def test_solo_needs_no_rail_and_no_rendezvous():
    plan = plan_of(layout=Layout())
    assert plan.hosts == ("spark-a",)
    assert "--nnodes" not in plan.head.container.command
    assert "VLLM_HOST_IP" not in plan.head.container.env


def test_wishes_come_after_the_recipe_and_the_command_line_last():
    wishes = ServingWishes(engine_args=("--max-model-len", "2048"), env=MappingProxyType({"OMP_NUM_THREADS": "1"}))
    request = ServingRequest(MODEL, 8000, ("--max-num-seqs", "4"))
    plan = plan_of(cluster=replace(CLUSTER, serving=wishes), request=request)
    assert plan.head.container.command[-6:] == (
        "--gpu-memory-utilization", "0.80", "--max-model-len", "2048", "--max-num-seqs", "4",
    )  # fmt: skip
    assert plan.ranks[1].container.env["OMP_NUM_THREADS"] == "1"


def test_the_fingerprint_ignores_free_memory_and_sees_everything_else():
    busier = {host: replace(item, running=replace(item.running, memory_available_bytes=1)) for host, item in
              idle_pair().items()}  # fmt: skip
    assert plan_of(busier).spec == plan_of().spec
    assert plan_of(request=ServingRequest(MODEL, 8001)).spec != plan_of().spec
    other_image = {host: replace(item, image=replace(IMAGE, image_id="sha256:" + "cd" * 32))
                   for host, item in idle_pair().items()}  # fmt: skip
    assert plan_of(other_image).spec != plan_of().spec


def test_different_images_under_one_name_are_refused():
    serving = idle_pair()
    other = replace(IMAGE, image_id="sha256:" + "cd" * 32)
    serving["spark-b"] = replace(serving["spark-b"], image=other)
    with pytest.raises(OperationFailed, match="spark-a has sha256:abababababab, spark-b has sha256:cdcdcdcdcdcd"):
        plan_of(serving)


@pytest.mark.parametrize(
    ("entrypoint", "first"),
    [
        ((), ("vllm", "serve")),
        (("/opt/nvidia/nvidia_entrypoint.sh",), ("vllm", "serve")),
        (("vllm", "serve"), (f"/models/{MODEL}",)),
        (("/usr/bin/vllm",), ("serve",)),
    ],
)
def test_the_entrypoint_of_the_image_decides_the_first_words(entrypoint, first):
    serving = {host: replace(item, image=replace(IMAGE, entrypoint=entrypoint)) for host, item in idle_pair().items()}
    assert plan_of(serving).head.container.command[: len(first)] == first


def test_hosts_without_a_common_rail_are_told_to_set_it_up():
    facts = pair() | {"spark-b": replace(host_facts("spark-b", 2), ports=())}
    with pytest.raises(OperationFailed) as raised:
        plan_of(facts=facts)
    assert "sparkctl link up" in raised.value.remedy


def test_a_model_on_one_host_is_copied_to_the_other():
    serving = idle_pair() | {"spark-b": serving_facts("spark-b", model=None)}
    location = locate_model(MODEL, serving)
    (copy,) = location.copies
    assert (copy.source_host, copy.target_host) == ("spark-a", "spark-b")
    assert copy.target_root == f"/home/nvidia/models/{MODEL}"
    assert copy.size_bytes == 269_060_552 + 818


def test_a_model_that_is_nowhere_says_where_it_was_looked_for():
    serving = {host: serving_facts(host, model=None) for host in ("spark-a", "spark-b")}
    with pytest.raises(OperationFailed) as raised:
        locate_model(MODEL, serving)
    assert f"/home/nvidia/models/{MODEL}" in raised.value.message
    assert "hf download" in raised.value.remedy


def test_something_incomplete_in_the_way_of_a_copy_is_not_touched():
    half = replace(answer(None), directory_present=True)
    serving = idle_pair()
    serving["spark-b"] = replace(serving["spark-b"], model=half)
    with pytest.raises(UnsafeRefused, match="may be a download in progress"):
        locate_model(MODEL, serving)


def test_different_weights_under_one_name_are_refused():
    other = replace(found_model(), files=(ModelFile("config.json", 818), ModelFile("model.safetensors", 5)))
    serving = idle_pair() | {"spark-b": serving_facts("spark-b", model=other)}
    with pytest.raises(OperationFailed, match=r"model\.safetensors has 269060552 bytes there and 5 bytes here"):
        locate_model(MODEL, serving)


def test_the_hub_cache_is_mounted_as_a_whole_because_snapshots_are_links():
    hub = "/home/nvidia/.cache/huggingface/hub/models--org--name"
    found = FoundModel(ModelPlace.HUB, hub, "snapshots/1234", (ModelFile("model.safetensors", 9),), CONFIG)
    serving = {host: serving_facts(host, model=found) for host in ("spark-a", "spark-b")}
    plan = plan_of(serving, request=ServingRequest("org/name", 8000))
    assert plan.head.container.volumes[0] == f"{hub}:/models/name:ro"
    assert plan.head.container.command[2] == "/models/name/snapshots/1234"
    assert plan.model == "org/name"


def test_names():
    assert served_name("/data/models/Llama/") == "Llama"
    assert served_name("org/name") == "org/name"


def test_the_last_utilization_counts():
    assert utilization_of(("--gpu-memory-utilization", "0.8", "--gpu-memory-utilization=0.7")) == 0.7
    assert utilization_of(("--max-model-len", "1")) is None
