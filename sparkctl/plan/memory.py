"""What a rank needs of a Spark's one memory, as a stated estimate."""

from dataclasses import dataclass

from sparkctl.plan.layout import Layout
from sparkctl.plan.model_shape import ModelShape

# Room for CUDA context, graphs, activations and communication buffers of one rank. Our own guess: there is no
# published figure; to be measured per image.
WORKING_BYTES = 4 * 1024**3
# Layers are dealt out evenly, but the first rank also holds the embedding and the last one the output head.
_UNEVEN_SHARE = 1.1


@dataclass(frozen=True)
class RankMemory:
    """weights_bytes: of one rank. working_bytes: engine beside weights and cache. need_bytes: both, without cache."""

    weights_bytes: int
    working_bytes: int

    @property
    def need_bytes(self) -> int:
        """The least that must be available before a rank starts; the KV cache comes on top."""
        return self.weights_bytes + self.working_bytes


def rank_memory(shape: ModelShape, layout: Layout) -> RankMemory:
    """The estimate for one rank: its share of the weights plus the engine's working memory."""
    uneven = _UNEVEN_SHARE if layout.nodes > 1 else 1.0
    # A toy model does not need gigabytes of working memory beside megabytes of weights.
    working = min(WORKING_BYTES, 1024**3 + shape.weights_bytes)
    return RankMemory(int(shape.weights_bytes / layout.nodes * uneven), working)


def utilization_of(engine_args: tuple[str, ...]) -> float | None:
    """The engine's --gpu-memory-utilization, the last one given; None when it is left to the engine."""
    value = None
    for index, word in enumerate(engine_args):
        name, equals, rest = word.partition("=")
        if name == "--gpu-memory-utilization":
            text = rest if equals else (engine_args[index + 1] if index + 1 < len(engine_args) else "")
            value = float(text) if text.replace(".", "", 1).isdigit() else value
    return value
