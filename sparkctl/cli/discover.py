"""`sparkctl discover`, and the bodies of `hosts list` and `hosts facts`."""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from sparkctl.cli.options import InventoryOption, JsonOption, VerboseOption, YesOption
from sparkctl.cli.search import find_hosts, read_hosts
from sparkctl.cli.session import Result, Session, run_command
from sparkctl.errors import OperationFailed, SparkctlError, UnsafeRefused
from sparkctl.facts.distinct import distinct_hosts
from sparkctl.facts.gather import gather_cluster
from sparkctl.facts.model import HostFacts
from sparkctl.inventory.model import Host
from sparkctl.plan.cabling import Cabling
from sparkctl.plan.topology import assemble_cabling
from sparkctl.report.finding import Finding, Severity, Status, derived_status
from sparkctl.report.render_facts import render_cabling, render_host_facts, render_hosts, render_ports
from sparkctl.report.render_inventory import render_host_table, render_inventory
from sparkctl.verify.cabling import judge_cabling
from sparkctl.verify.hosts import judge_hosts

app = typer.Typer(rich_markup_mode=None)
_NOBODY = "nobody on the local network announces SSH by mDNS; name the hosts: `sparkctl discover ADDRESS ADDRESS`"


@app.callback()
def group() -> None:
    """Find the Sparks."""


@app.command()
def discover(
    hosts: Annotated[
        list[str] | None,
        typer.Argument(help="[user@]address[:port]. Default: the inventory's hosts, else mDNS.", show_default=False),
    ] = None,
    write: Annotated[Path | None, typer.Option("--write", help="Write an inventory of the Sparks found.")] = None,
    inventory: InventoryOption = None,
    yes: YesOption = False,
    json: JsonOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Find the Sparks and how they are cabled; changes nothing on them."""
    session = Session(inventory=inventory, json=json, verbose=verbose)
    run_command("discover", session, lambda s: _discover(s, hosts or [], write, yes=yes))


def list_hosts(session: Session) -> Result:
    """Body of `hosts list`: the inventory's hosts, without contact to them."""
    hosts = session.cluster.hosts
    return Result(data={"hosts": hosts}, lines=render_host_table(hosts))


def show_facts(session: Session) -> Result:
    """Body of `hosts facts`: everything known about each host."""
    with session.phase("reading facts"):
        outcomes = gather_cluster(session.transports)
    ports = render_ports(outcomes)
    return Result(
        data={"hosts": public_facts(outcomes)},
        lines=[line for facts in outcomes.values() for line in (*render_host_facts(facts), "")] + list(ports),
        findings=_unread(outcomes.errors, Severity.FAIL),
        status=Status.UNREACHABLE if outcomes.errors else None,
    )


def _discover(session: Session, words: Sequence[str], write: Path | None, *, yes: bool) -> Result:
    search = find_hosts(session, words)
    outcomes = read_hosts(session, search, yes=yes)
    hosts, facts = search.cluster.hosts, outcomes.values_by_host
    if not search.from_file:
        hosts, facts = distinct_hosts(hosts, facts)
    cabling = assemble_cabling(facts, [host.name for host in hosts])
    unread = _unread(outcomes.errors, Severity.FAIL if search.named else Severity.WARN)
    findings = (
        *unread,
        *judge_hosts(facts, members=search.from_file),
        *judge_cabling(facts, cabling, expect_gbit_per_s=search.cluster.links.expect_gbit_per_s),
    )
    lines = _lines(facts, outcomes.errors, cabling) if search.cluster.hosts else [_NOBODY]
    unreachable = bool(search.named and outcomes.errors)
    if write is not None:
        sparks = [host for host in hosts if host.name in facts and facts[host.name].is_spark]
        if sparks and not unreachable:
            lines.append(_write(session, write, search.cluster.name, _with_users(sparks, facts), yes=yes))
        else:
            findings = (*findings, _not_written(write))
    return Result(
        data={"hosts": public_facts(facts), "cabling": cabling, "inventory": str(write) if write else None},
        lines=lines,
        findings=findings,
        status=Status.UNREACHABLE if unreachable else derived_status(findings),
    )


def _lines(facts: Mapping[str, HostFacts], errors: Mapping[str, SparkctlError], cabling: Cabling) -> list[str]:
    parts = (render_hosts(facts, errors), render_ports(facts), render_cabling(cabling) if facts else ())
    return [line for part in parts if part for line in (*part, "")]


def _not_written(path: Path) -> Finding:
    return Finding(
        Severity.FAIL,
        "inventory.not-written",
        str(path),
        "not written: no Spark was found, or a host that you named could not be read",
        remedy="settle what stands above, or name only the Sparks that belong in the file",
    )


def _unread(errors: Mapping[str, SparkctlError], severity: Severity) -> tuple[Finding, ...]:
    return tuple(
        Finding(
            severity, f"host.{_CODES.get(type(error).__name__, 'unreadable')}", name, error.message, remedy=error.remedy
        )
        for name, error in errors.items()
    )


_CODES = {"HostUnreachable": "unreachable", "HostKeyRefused": "key-refused", "AccessRefused": "access-refused"}


def public_facts(facts: Mapping[str, HostFacts]) -> Mapping[str, HostFacts]:
    """Facts without the texts of netplan files, which may hold Wi-Fi passwords."""
    return {
        name: replace(
            host,
            netplan_files=None
            if host.netplan_files is None
            else {
                path: f"{len(text.encode('utf-8', 'surrogateescape'))} bytes"
                for path, text in host.netplan_files.items()
            },
        )
        for name, host in facts.items()
    }


def _with_users(hosts: Sequence[Host], facts: Mapping[str, HostFacts]) -> tuple[Host, ...]:
    return tuple(replace(host, user=host.user or facts[host.name].user) for host in hosts)


def _write(session: Session, path: Path, name: str, hosts: Sequence[Host], *, yes: bool) -> str:
    """Write the inventory and say so. Raises UnsafeRefused over another file, OperationFailed when it cannot write."""
    text = render_inventory(name, hosts)
    try:
        former = path.read_text(encoding="utf-8") if path.exists() else None
        if former == text:
            return f"{path}: no changes"
        if former is not None and not yes:
            session.show(
                tuple(difflib.unified_diff(former.splitlines(), text.splitlines(), str(path), "new", lineterm=""))
            )
            raise UnsafeRefused(
                "the file exists and differs; nothing was written",
                where=str(path),
                remedy="add `--yes` to replace it, or write to another file",
            )
        path.write_text(text, encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise OperationFailed(f"cannot write: {error}", where=str(path), remedy="choose another path") from error
    return f"wrote {path}: {len(hosts)} hosts; check it with `sparkctl inventory check {path}`"
