"""How a model is split over Sparks, and whether that is possible at all."""

from dataclasses import dataclass

from sparkctl.errors import UsageError
from sparkctl.plan.model_shape import ModelShape


@dataclass(frozen=True)
class Layout:
    """Tensor parallel (every layer is split) times pipeline parallel (layers are dealt out).

    A Spark has one GPU, so the product is the number of Sparks that take part.
    """

    tp: int = 1
    pp: int = 1

    @property
    def nodes(self) -> int:
        """Ranks, and with one GPU per Spark also hosts."""
        return self.tp * self.pp

    def __str__(self) -> str:
        if self.nodes == 1:
            return "solo"
        return " ".join(f"{name}={size}" for name, size in (("TP", self.tp), ("PP", self.pp)) if size > 1)


def choose_layout(*, tp: int | None, pp: int | None, hosts: int) -> Layout:
    """The layout asked for; without a wish the layers are dealt out over all hosts.

    PP is the default because it suits every head count and crosses the cable once per token, where TP crosses it
    twice per layer (Megatron-LM, arXiv:1909.08053, section 3).
    """
    if tp is None and pp is None:
        return Layout(pp=hosts)
    return Layout(tp=tp or 1, pp=pp or 1)


def layout_problems(layout: Layout, shape: ModelShape, *, hosts: int) -> tuple[str, ...]:
    """Why the layout cannot work, one reason each; empty when it can.

    Source of the divisibility rules: vLLM, config/model.py verify_with_parallel_config, and layers/linear.py
    QKVParallelLinear, which replicates KV heads when there are fewer than ranks.
    """
    problems = []
    if layout.tp < 1 or layout.pp < 1:
        problems.append(f"TP={layout.tp} and PP={layout.pp}: both must be at least 1")
        return tuple(problems)
    if layout.nodes > hosts:
        noun = "host" if hosts == 1 else "hosts"
        problems.append(
            f"{layout} needs {layout.nodes} Sparks, as each has one GPU, and the inventory has {hosts} {noun}"
        )
    if shape.heads % layout.tp:
        problems.append(f"TP={layout.tp} cannot split {shape.heads} attention heads evenly")
    fits = shape.kv_heads % layout.tp == 0 if shape.kv_heads >= layout.tp else layout.tp % shape.kv_heads == 0
    if not fits:
        problems.append(f"TP={layout.tp} can neither split nor repeat {shape.kv_heads} KV heads evenly")
    if layout.pp > shape.layers:
        problems.append(f"PP={layout.pp} needs at least {layout.pp} layers, and the model has {shape.layers}")
    return tuple(problems)


def possible_layouts(shape: ModelShape, *, hosts: int) -> tuple[Layout, ...]:
    """Every layout that uses all `hosts` and works, pipeline first."""
    pairs = [Layout(tp=hosts // pp, pp=pp) for pp in range(hosts, 0, -1) if hosts % pp == 0]
    return tuple(layout for layout in pairs if not layout_problems(layout, shape, hosts=hosts))


def require_possible(layout: Layout, shape: ModelShape, *, model: str, hosts: int) -> None:
    """Raise UsageError with all reasons, and a layout that would work, when this one does not."""
    problems = layout_problems(layout, shape, hosts=hosts)
    if not problems:
        return
    others = possible_layouts(shape, hosts=hosts)
    flags = [f"--pp {other.pp}" if other.tp == 1 else f"--tp {other.tp} --pp {other.pp}" for other in others]
    remedy = f"use {' or '.join(flags)}" if flags else "use --pp 1 to serve it on one Spark"
    raise UsageError(f"{model} cannot be served with {layout}: {'; '.join(problems)}", remedy=remedy)
