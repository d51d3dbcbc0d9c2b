"""Two Sparks with a link, a model and an image, as facts: the starting point of the serving tests."""

from dataclasses import replace
from ipaddress import IPv4Interface
from pathlib import Path

from sparkctl.catalog.load import load_recipes
from sparkctl.catalog.model import choose_recipe
from sparkctl.facts.model import Cage, HostFacts, Port
from sparkctl.facts.served import RunningFacts, ServingFacts
from sparkctl.inventory.model import Cluster, Host
from sparkctl.plan.layout import Layout
from sparkctl.plan.model_location import locate_model
from sparkctl.plan.model_shape import parse_shape
from sparkctl.plan.rails import serving_rails
from sparkctl.plan.serving import ServingPlan, ServingRequest, plan_serving
from sparkctl.tools.docker import Container, ContainerState, Image
from sparkctl.tools.model_files import FoundModel, ModelAnswer, ModelFile, ModelPlace
from tests.spark_example import bare_spark

CAPTURES = Path(__file__).parent / "captures"
GIB = 1024**3
MODEL = "SmolLM2-135M-Instruct"
CONFIG = (CAPTURES / "model_files" / "lab--smollm2-config.json").read_text()
IMAGE = Image("sha256:" + "ab" * 32, (), "arm64", 20 * GIB, ())
CLUSTER = Cluster("desk", (Host("spark-a", "192.0.2.11"), Host("spark-b", "192.0.2.12")))


def port(netdev: str, rdma: str, pci: str, address: str) -> Port:
    return Port(netdev, pci, Cage.P0, rdma, "02:00:00:00:00:01", 9000, True, True, 200_000, (IPv4Interface(address),))


def host_facts(host: str, number: int) -> HostFacts:
    """number: last part of the rail addresses. The second host's twins have other names, as after a port swap."""
    cage = "0" if number == 1 else "1"
    ports = (
        port(f"enp1s0f{cage}np{cage}", f"rocep1s0f{cage}", f"0000:01:00.{cage}", f"10.177.0.{number}/30"),
        port(f"enP2p1s0f{cage}np{cage}", f"roceP2p1s0f{cage}", f"0002:01:00.{cage}", f"10.177.0.{number + 4}/30"),
    )
    memory = {"memory_total_bytes": 121 * GIB, "memory_available_bytes": 115 * GIB}
    return replace(bare_spark(host, number), ports=ports, **memory)


def found_model(root: str = f"/home/nvidia/models/{MODEL}", config: str = CONFIG) -> FoundModel:
    files = (ModelFile("config.json", 818), ModelFile("model.safetensors", 269_060_552))
    return FoundModel(ModelPlace.DIRECTORY, root, "", files, config)


def answer(model: FoundModel | None) -> ModelAnswer:
    return ModelAnswer(
        home="/home/nvidia",
        models_dir="/home/nvidia/models",
        free_bytes=500 * GIB,
        directory=f"/home/nvidia/models/{MODEL}",
        directory_present=model is not None,
        hub=f"/home/nvidia/.cache/huggingface/hub/models--{MODEL}",
        hub_present=False,
        model=model,
    )


def running(host: str, *containers: Container, available_bytes: int = 115 * GIB) -> RunningFacts:
    return RunningFacts(host, containers, (), 121 * GIB, available_bytes)


def serving_facts(
    host: str, *containers: Container, model: FoundModel | None, image: Image | None = IMAGE
) -> ServingFacts:
    return ServingFacts(host, running(host, *containers), image, answer(model))


def pair() -> dict[str, HostFacts]:
    return {"spark-a": host_facts("spark-a", 1), "spark-b": host_facts("spark-b", 2)}


def idle_pair() -> dict[str, ServingFacts]:
    return {host: serving_facts(host, model=found_model()) for host in ("spark-a", "spark-b")}


def plan_of(
    serving: dict[str, ServingFacts] | None = None,
    *,
    facts: dict[str, HostFacts] | None = None,
    cluster: Cluster = CLUSTER,
    layout: Layout | None = None,
    request: ServingRequest | None = None,
) -> ServingPlan:
    """The plan for the pair with PP=2, unless told otherwise."""
    wanted = layout or Layout(pp=2)
    known = facts or pair()
    present = serving or idle_pair()
    taking_part = {host: known[host] for host in list(known)[: wanted.nodes]}
    present = {host: present[host] for host in taking_part}
    asked = request or ServingRequest(MODEL, 8000)
    location = locate_model(asked.model, present)
    return plan_serving(
        cluster,
        asked,
        taking_part,
        present,
        serving_rails(list(taking_part.values())) if wanted.nodes > 1 else {},
        layout=wanted,
        shape=parse_shape(location.reference.config, model=asked.model, weights_bytes=location.reference.weights_bytes),
        location=location,
        recipe=choose_recipe(load_recipes(), asked.model),
    )


def containers_of(plan: ServingPlan) -> dict[str, Container]:
    """The plan's containers as they run, by host."""
    return {
        rank.host: Container(
            name=rank.container.name,
            container_id=f"{rank.rank:064x}",
            image_id=plan.image_id or "",
            labels=rank.container.labels,
            state=ContainerState.RUNNING,
            exit_code=0,
            out_of_memory=False,
            started_at="2026-11-30T20:46:07.5Z",
            finished_at="0001-01-01T00:00:00Z",
        )
        for rank in plan.ranks
    }


def serving_pair(plan: ServingPlan, **changes: object) -> dict[str, ServingFacts]:
    """The pair while the plan's containers run; `changes` are made to rank 1's container."""
    containers = containers_of(plan)
    containers["spark-b"] = replace(containers["spark-b"], **changes)  # type: ignore[arg-type]
    return {host: serving_facts(host, item, model=found_model()) for host, item in containers.items()}
