import pytest

from sparkctl.errors import UsageError
from sparkctl.plan.layout import Layout, choose_layout, layout_problems, possible_layouts, require_possible
from sparkctl.plan.model_shape import parse_shape
from tests.serving_examples import CAPTURES, CONFIG

SMOL = parse_shape(CONFIG, model="smol", weights_bytes=269_060_552)
TINY = parse_shape(
    (CAPTURES / "model_files" / "lab--tiny-llama-tp2-config.json").read_text(), model="tiny", weights_bytes=31_072_840
)


def test_nine_heads_cannot_be_split_in_two_and_pp_is_offered():
    with pytest.raises(UsageError) as raised:
        require_possible(Layout(tp=2), SMOL, model="SmolLM2", hosts=2)
    assert "TP=2 cannot split 9 attention heads evenly" in raised.value.message
    assert raised.value.remedy == "use --pp 2"


def test_pp_2_works_over_30_layers():
    assert layout_problems(Layout(pp=2), SMOL, hosts=2) == ()


def test_four_heads_can_be_split():
    assert layout_problems(Layout(tp=2), TINY, hosts=2) == ()
    assert possible_layouts(TINY, hosts=2) == (Layout(pp=2), Layout(tp=2))


def test_more_ranks_than_sparks():
    (problem,) = layout_problems(Layout(pp=3), SMOL, hosts=2)
    assert problem == "PP=3 needs 3 Sparks, as each has one GPU, and the inventory has 2 hosts"


def test_more_stages_than_layers():
    assert layout_problems(Layout(pp=5), TINY, hosts=5) == ("PP=5 needs at least 5 layers, and the model has 4",)


def test_kv_heads_are_repeated_when_there_are_fewer_than_ranks():
    # four heads, two KV heads: each is held by two of four ranks
    assert layout_problems(Layout(tp=4), TINY, hosts=4) == ()


def test_three_kv_heads_over_nine_heads_with_three_ranks():
    assert layout_problems(Layout(tp=3), SMOL, hosts=3) == ()


@pytest.mark.parametrize(
    ("tp", "pp", "hosts", "layout", "words"),
    [
        (None, None, 2, Layout(pp=2), "PP=2"),
        (None, None, 1, Layout(), "solo"),
        (2, None, 2, Layout(tp=2), "TP=2"),
        (2, 2, 4, Layout(tp=2, pp=2), "TP=2 PP=2"),
        (None, 1, 2, Layout(), "solo"),
    ],
)
def test_choice_and_words(tp, pp, hosts, layout, words):
    assert choose_layout(tp=tp, pp=pp, hosts=hosts) == layout
    assert str(layout) == words
