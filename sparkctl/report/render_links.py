"""Links as text: plan, differences, rates and the state of each node's journal."""

from collections.abc import Iterable, Sequence

from sparkctl.diff.change import Change
from sparkctl.plan.links import LinkPlan
from sparkctl.report.render import render_table


def render_link_plan(plan: LinkPlan) -> tuple[str, ...]:
    """The layout in one line, then a table with one row per port in plan order."""
    rows = [
        (port.host, port.netdev, str(port.address), f"{port.peer_host}:{port.peer_netdev}", str(port.mtu_bytes))
        for links in plan.hosts
        for port in links.ports
    ]
    title = f"layout {plan.topology}: {len(plan.rails)} rails, {plan.expect_gbit_per_s:g} Gb/s expected together"
    return (title, "", *render_table(("host", "port", "address", "peer", "mtu"), rows))


def render_changes(changes: Iterable[Change]) -> tuple[str, ...]:
    """The differences one after the other, with an empty line between them; `no changes` when there are none."""
    lines: list[str] = []
    for change in changes:
        lines += [*([""] if lines else []), *change.diff()]
    return tuple(lines) or ("no changes",)


def render_rates(rows: Sequence[tuple[str, float | None, float, str]]) -> tuple[str, ...]:
    """A table of measured rates. rows: subject, Gb/s (None: not measured), floor in Gb/s, verdict."""
    return render_table(
        ("direction", "Gb/s", "floor", "verdict"),
        [
            (subject, "-" if rate is None else f"{rate:.2f}", f"{floor:.2f}", verdict.upper())
            for subject, rate, floor, verdict in rows
        ],
    )
