from datetime import UTC, datetime

from sparkctl.diff.serving import diff_serving
from sparkctl.facts.served import assemble_group
from sparkctl.report.render_serving import (
    failure_finding,
    render_changes,
    render_command_lines,
    render_failure,
    render_group,
    render_plan,
    render_start,
)
from sparkctl.report.serving import StartFailure, StartReport
from sparkctl.tools.openai_api import Answer
from tests.serving_examples import MODEL, found_model, idle_pair, plan_of, serving_facts, serving_pair


def test_a_plan():
    assert render_plan(plan_of()) == (
        f"{MODEL}: LlamaForCausalLM, 30 layers, 9 heads, 257 MiB of weights",
        "layout PP=2 over spark-a, spark-b; image nvcr.io/nvidia/vllm:26.05.post1-py3",
        "  rank 0 on spark-a: enp1s0f0np0 10.177.0.1, enP2p1s0f0np0 10.177.0.5",
        "  rank 1 on spark-b: enp1s0f1np1 10.177.0.2, enP2p1s0f1np1 10.177.0.6",
        "  each needs about 1.4 GiB (141 MiB of weights, 1.3 GiB for the engine: an estimate) plus its KV cache",
    )


def test_changes():
    facts = idle_pair() | {"spark-b": serving_facts("spark-b", model=None, image=None)}
    assert render_changes(diff_serving(plan_of(facts), facts)) == (
        "+ spark-b: pull nvcr.io/nvidia/vllm:26.05.post1-py3",
        f"+ spark-b: copy /home/nvidia/models/{MODEL} from spark-a over the rail, 257 MiB",
        "+ spark-b: start rank 1 (sparkctl-desk-rank1)",
        "+ spark-a: start rank 0 (sparkctl-desk-rank0)",
    )
    assert render_changes(()) == ("already serving, no changes",)


def test_command_lines_have_one_option_per_line():
    lines = render_command_lines(plan_of())
    assert lines[0] == "# rank 0 on spark-a"
    assert "  --env GLOO_SOCKET_IFNAME=enp1s0f0np0 \\" in lines
    assert f"  nvcr.io/nvidia/vllm:26.05.post1-py3 vllm serve /models/{MODEL} \\" in lines
    assert lines.count("docker run \\") == 2


def test_a_start():
    answer = Answer(" Paris.\nIt", "", 5, 11, "length", 0.5, 1.5)
    report = StartReport(61.2, 63.0, (("ranks joined", 20.0), ("ready", 61.0)), 93_184, "The capital is", answer)
    assert render_start(plan_of(), report) == (
        f"✓ {MODEL} serves with PP=2 on spark-a, spark-b after 61.2 s; KV cache 93,184 tokens",
        "  reached: ranks joined 20 s, ready 61 s",
        "  proof: The capital is → Paris. It",
        "  first token after 0.50 s, 11 tokens, 10.0 tokens/s",
        "  API: port 8000 on spark-a; try `sparkctl ask 'What is a DGX Spark?'`",
    )


def test_a_failure_names_the_rank_its_error_and_what_is_left():
    words = {"spark-b": ("boom",), "spark-a": ("peer gone",)}
    failure = StartFailure(
        "spark-b", 1, "loads weights", "it ended with exit code 3", "ValueError: x", words, "~/l", ()
    )
    assert render_failure(failure) == (
        "last lines of spark-a:", "  peer gone", "last lines of spark-b:", "  boom",
    )  # fmt: skip
    finding = failure_finding(failure)
    assert finding.message == "rank 1 failed (loads weights): it ended with exit code 3"
    assert (finding.found, finding.cause) == ("ValueError: x", "all ranks have been stopped")
    lost = StartFailure("spark-b", 1, "", "contact was lost", "", {}, "~/l", ("rank 1 on spark-b",))
    assert failure_finding(lost).remedy.startswith("still running: rank 1 on spark-b; `sparkctl stop` once")


def test_a_group():
    facts = serving_pair(plan_of(), image_id="sha256:" + "ab" * 32)
    running = {host: item.running for host, item in facts.items()}
    group = assemble_group("desk", running)
    now = datetime(2026, 11, 30, 22, 0, 7, tzinfo=UTC)
    assert render_group(group, running, healthy=True, now=now) == (
        f"{MODEL}: PP=2, whole; the API on port 8000 answers",
        "image nvcr.io/nvidia/vllm:26.05.post1-py3 (sha256:abababababab)",
        "rank    host     state    since       memory available",
        "------  -------  -------  ----------  ------------------",
        "0       spark-a  running  1 h 14 min  115.0 GiB",
        "1       spark-b  running  1 h 14 min  115.0 GiB",
    )
    assert render_group(None, running, healthy=False, now=now) == ("nothing is served",)


def test_found_models_are_listed_by_size():
    assert found_model().total_bytes == 269_061_370
