from dataclasses import replace

import pytest

from sparkctl.tools.docker import Container, ContainerState, parse_logs
from sparkctl.verify.inference import (
    STALL_S,
    Broken,
    RankProgress,
    RankSample,
    Ready,
    StartPhase,
    Waiting,
    advance,
    find_first_error,
    is_consequence,
    judge_start,
    parse_phase,
)
from tests.serving_examples import CAPTURES


def log(name):
    return parse_logs((CAPTURES / "vllm" / name).read_text())


def container(state=ContainerState.RUNNING, exit_code=0, *, out_of_memory=False):
    return Container("sparkctl-desk-rank1", "id", "image", {}, state, exit_code, out_of_memory, "", "")


def rank(number, lines=(), *, now_s=10.0, **sample):
    fresh = RankProgress(f"spark-{'ab'[number]}", number, moved_s=0.0)
    look = {"container": container(), "cpu_s": 5, **sample}
    return advance(fresh, RankSample(fresh.host, number, lines=tuple(lines), **look), now_s)


def test_a_head_that_became_ready_went_through_all_phases():
    done = rank(0, log("lab--pp2-rank0.log"))
    assert [phase for phase, _ in done.reached] == [
        StartPhase.JOINED, StartPhase.LOADING, StartPhase.WARMING, StartPhase.READY,
    ]  # fmt: skip
    assert (done.cache_tokens, done.shards_percent) == (93_184, 100)


def test_a_headless_rank_never_says_ready():
    assert rank(1, log("lab--pp2-rank1.log")).phase is StartPhase.WARMING


def test_no_error_is_found_in_a_start_that_worked():
    assert find_first_error(log("lab--pp2-rank0.log")) is None
    assert find_first_error(log("lab--pp2-rank1.log")) is None


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("lab--unknown-argument.log", "vllm: error: unrecognized arguments: --no-such-option"),
        ("lab--port-taken.log", "OSError: [Errno 98] Address already in use"),
        ("lab--peer-gone.log", "RuntimeError: [gloo/transport/tcp/pair.cc:553] Connection closed by peer"),
    ],
)
def test_the_first_real_error(name, text):
    line = find_first_error(log(name))
    assert line is not None
    assert line.text.startswith(text)


def test_the_loss_of_a_peer_is_a_consequence():
    line = find_first_error(log("lab--peer-gone.log"))
    assert line is not None
    assert is_consequence(line.text)


def test_the_slowest_rank_tells_the_phase():
    head, worker = rank(0, log("lab--pp2-rank0.log")[:60]), rank(1)
    assert judge_start((head, worker), 10.0) == Waiting(StartPhase.STARTING)


def test_ready_by_log_or_by_health():
    assert judge_start((rank(0, log("lab--pp2-rank0.log")), rank(1)), 10.0) == Ready()
    assert judge_start((rank(0, healthy=True), rank(1)), 10.0) == Ready()


def test_the_rank_with_an_error_of_its_own_is_blamed_not_the_one_that_lost_its_peer():
    head = rank(0, log("lab--peer-gone.log"), container=container(ContainerState.EXITED, 1))
    worker = rank(1, log("lab--port-taken.log"))
    verdict = judge_start((head, worker), 10.0)
    assert verdict == Broken(1, "spark-b", "it reported an error", "OSError: [Errno 98] Address already in use")


def test_a_killed_rank_is_blamed_although_it_said_nothing():
    head = rank(0, log("lab--peer-gone.log"), container=container(ContainerState.EXITED, 1))
    worker = rank(1, container=container(ContainerState.EXITED, 137))
    verdict = judge_start((head, worker), 10.0)
    assert isinstance(verdict, Broken)
    assert (verdict.rank, verdict.line) == (1, "")
    assert "SIGKILL" in verdict.reason


def test_memory_that_ran_out_is_said_so():
    worker = rank(1, container=container(ContainerState.EXITED, 137, out_of_memory=True))
    verdict = judge_start((rank(0), worker), 10.0)
    assert isinstance(verdict, Broken)
    assert "memory ran out" in verdict.reason


def test_one_look_without_contact_is_forgiven_two_are_not():
    worker = rank(1)
    once = advance(worker, RankSample("spark-b", 1, lost="no answer"), 11.0)
    assert judge_start((rank(0), once), 11.0) == Waiting(StartPhase.STARTING)
    twice = advance(once, RankSample("spark-b", 1, lost="no answer"), 12.0)
    verdict = judge_start((rank(0, log("lab--peer-gone.log")), twice), 12.0)
    assert verdict == Broken(1, "spark-b", "contact with the host was lost (no answer)")
    back = advance(once, RankSample("spark-b", 1, container=container()), 12.0)
    assert back.lost_looks == 0


def test_a_container_that_vanished():
    verdict = judge_start((rank(0), rank(1, container=None)), 10.0)
    assert isinstance(verdict, Broken)
    assert "somebody removed it" in verdict.reason


def test_silence_without_cpu_time_is_a_stall_and_cpu_time_alone_is_not():
    quiet = (rank(0), rank(1))
    late = 10.0 + STALL_S + 1
    verdict = judge_start(quiet, late)
    assert isinstance(verdict, Broken)
    assert verdict.reason == "no rank has printed anything or used the CPU for 10 minutes"
    compiling = advance(quiet[1], RankSample("spark-b", 1, container=container(), cpu_s=400), late - 1)
    assert judge_start((quiet[0], compiling), late) == Waiting(StartPhase.STARTING)


def test_an_engine_that_gives_up_is_not_waited_for():
    verdict = judge_start((rank(0), rank(1, log("lab--no-compiler.log"))), 10.0)
    assert isinstance(verdict, Broken)
    assert verdict.host == "spark-b"
    assert verdict.line.startswith("torch._inductor.exc.InductorError: InvalidCxxCompiler: No working C++ compiler")


def test_lines_of_a_waiting_engine_are_no_progress():
    waiting = rank(0)
    line = next(line for line in log("lab--pp2-rank0.log") if "No available shared memory broadcast" in line.text)
    after = advance(waiting, RankSample("spark-a", 0, container=container(), lines=(line,), cpu_s=5), 500.0)
    assert after.moved_s == waiting.moved_s
    assert replace(after, lines=()).phase is StartPhase.STARTING


def test_unknown_lines_announce_nothing():
    assert parse_phase("(APIServer pid=1) INFO 11-30 20:44:27 [model.py:733] Resolved architecture: X") is None
