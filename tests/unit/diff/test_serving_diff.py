import pytest

from sparkctl.diff.serving import CopyModel, PullImage, RemoveRank, StartRank, diff_serving
from sparkctl.errors import UnsafeRefused
from sparkctl.plan.serving import ServingRequest
from sparkctl.tools.docker import ContainerState
from tests.serving_examples import MODEL, found_model, idle_pair, plan_of, serving_facts, serving_pair


def test_an_idle_pair_gets_its_ranks_workers_first():
    assert diff_serving(plan_of(), idle_pair()) == (
        StartRank("spark-b", "sparkctl-desk-rank1", 1),
        StartRank("spark-a", "sparkctl-desk-rank0", 0),
    )


def test_an_identical_group_is_adopted():
    plan = plan_of()
    facts = serving_pair(plan)
    assert diff_serving(plan_of(facts), facts) == ()


def test_missing_image_and_model_come_before_the_start():
    facts = {
        "spark-a": serving_facts("spark-a", model=found_model(), image=None),
        "spark-b": serving_facts("spark-b", model=None, image=None),
    }
    plan = plan_of(facts)
    assert plan.image_id is None
    kinds = [type(change) for change in diff_serving(plan, facts)]
    assert kinds == [PullImage, PullImage, CopyModel, StartRank, StartRank]


def test_another_group_that_serves_is_not_ended():
    plan = plan_of()
    facts = serving_pair(plan)
    with pytest.raises(UnsafeRefused, match="with other settings is being served already; nothing was changed"):
        diff_serving(plan_of(facts, request=ServingRequest(MODEL, 8001)), facts)


def test_what_a_dead_rank_left_is_replaced_as_a_group():
    plan = plan_of()
    facts = serving_pair(plan, state=ContainerState.EXITED, exit_code=1)
    changes = diff_serving(plan, facts)
    assert changes[:2] == (
        RemoveRank("spark-a", "sparkctl-desk-rank0", ContainerState.RUNNING),
        RemoveRank("spark-b", "sparkctl-desk-rank1", ContainerState.EXITED),
    )
    assert [type(change) for change in changes[2:]] == [StartRank, StartRank]
