from dataclasses import replace

from sparkctl.facts.model import Docker, DockerState
from sparkctl.facts.served import GroupState, assemble_group
from sparkctl.report.finding import Severity
from sparkctl.tools.docker import ContainerState
from sparkctl.tools.listening import Listener
from sparkctl.verify.serving import judge_before_start, judge_docker, judge_stopped
from tests.serving_examples import GIB, idle_pair, pair, plan_of, running, serving_facts, serving_pair


def codes(findings, *severities):
    return [(item.code, item.subject) for item in findings if item.severity in severities]


def bad(findings):
    return codes(findings, Severity.FAIL)


def with_running(serving, host, **changes):
    return serving | {host: replace(serving[host], running=replace(serving[host].running, **changes))}


def test_nothing_stands_against_a_start_on_an_idle_pair():
    findings = judge_before_start(plan_of(), pair(), idle_pair())
    assert [item.severity for item in findings] == [Severity.INFO]


def test_a_taken_port_matters_on_the_head_only():
    taken = (Listener("0.0.0.0", 8000),)  # noqa: S104  # as ss prints it
    head = with_running(idle_pair(), "spark-a", listeners=taken)
    worker = with_running(idle_pair(), "spark-b", listeners=taken)
    assert bad(judge_before_start(plan_of(), pair(), head)) == [("serve.port-taken", "spark-a:8000")]
    assert bad(judge_before_start(plan_of(), pair(), worker)) == []


def test_the_rendezvous_port_matters_too():
    head = with_running(idle_pair(), "spark-a", listeners=(Listener("*", 25000),))
    assert bad(judge_before_start(plan_of(), pair(), head)) == [("serve.port-taken", "spark-a:25000")]


def test_a_port_held_by_a_rank_that_will_be_removed_is_no_obstacle():
    serving = serving_pair(plan_of(), state=ContainerState.EXITED)
    serving = with_running(serving, "spark-a", listeners=(Listener("*", 8000),))
    assert bad(judge_before_start(plan_of(), pair(), serving)) == []


def test_too_little_memory_is_refused_with_the_estimate():
    serving = with_running(idle_pair(), "spark-b", memory_available_bytes=GIB)
    (finding,) = [item for item in judge_before_start(plan_of(), pair(), serving) if item.severity is Severity.FAIL]
    assert (finding.code, finding.subject) == ("serve.memory", "spark-b")
    assert "an estimate" in finding.expected
    assert finding.found == "1.0 GiB available (MemAvailable)"


def test_less_memory_than_the_engine_will_ask_for_is_a_warning():
    serving = with_running(idle_pair(), "spark-b", memory_available_bytes=60 * GIB)
    found = codes(judge_before_start(plan_of(), pair(), serving), Severity.WARN)
    assert found == [("serve.memory-share", "spark-b")]


def test_a_missing_rdma_folder_is_a_warning_and_none_for_a_solo_model():
    facts = {host: replace(item, infiniband_device_dir=False) for host, item in pair().items()}
    found = codes(judge_before_start(plan_of(facts=facts), facts, idle_pair()), Severity.WARN)
    assert found == [("serve.no-rdma", "spark-a"), ("serve.no-rdma", "spark-b")]


def test_a_copy_needs_room_and_rsync():
    serving = idle_pair() | {"spark-b": serving_facts("spark-b", model=None)}
    full = replace(serving["spark-b"], model=replace(serving["spark-b"].model, free_bytes=GIB))
    serving = serving | {"spark-b": full}
    facts = pair()
    facts["spark-a"] = replace(facts["spark-a"], programs=frozenset({"curl"}))
    found = bad(judge_before_start(plan_of(serving), facts, serving))
    assert found == [("serve.disk", "spark-b"), ("serve.program-missing", "spark-a")]


def test_docker_in_every_bad_state():
    for state in (DockerState.MISSING, DockerState.NOT_PERMITTED, DockerState.NOT_RUNNING):
        facts = pair() | {"spark-b": replace(pair()["spark-b"], docker=Docker(state, detail="said so"))}
        (finding,) = judge_docker(facts)
        assert (finding.subject, finding.found) == ("spark-b", "said so")
    assert judge_docker(pair()) == ()


def test_a_stopped_group_is_proved_gone():
    serving = serving_pair(plan_of())
    before = {host: item.running for host, item in serving.items()}
    group = assemble_group("desk", before)
    assert group is not None
    assert group.state is GroupState.WHOLE
    after = {host: running(host) for host in before}
    findings = judge_stopped(group, before, after)
    assert {item.severity for item in findings} == {Severity.OK}
    assert len(findings) == 6

    held = after | {"spark-a": replace(after["spark-a"], listeners=(Listener("*", 8000),))}
    assert bad(judge_stopped(group, before, held)) == [("stop.ports", "spark-a:8000")]

    leaked = after | {"spark-b": running("spark-b", available_bytes=60 * GIB)}
    assert codes(judge_stopped(group, before, leaked), Severity.WARN) == [("stop.memory", "spark-b")]

    assert bad(judge_stopped(group, before, before)) == [("stop.containers", "spark-a"), ("stop.containers", "spark-b")]
