"""Findings, errors and tables as plain lines of text; colour is the terminal's business (sparkctl/cli/console.py)."""

from collections.abc import Iterable, Sequence

from tabulate import tabulate

from sparkctl.errors import InvalidInventory, SparkctlError
from sparkctl.report.finding import Finding, Severity

MARKS = {
    Severity.OK: "✓",
    Severity.INFO: "·",
    Severity.WARN: "!",
    Severity.UNKNOWN: "?",
    Severity.DEGRADED: "▼",
    Severity.FAIL: "✗",
}


def render_findings(findings: Iterable[Finding]) -> tuple[str, ...]:
    """Per finding one line with its mark and severity, then indented expected, found, cause and remedy where given."""
    lines: list[str] = []
    for finding in findings:
        word = "" if finding.severity in (Severity.OK, Severity.INFO) else f"{finding.severity.upper()} "
        lines.append(f"{MARKS[finding.severity]} {word}{finding.subject}: {finding.message}")
        details = {
            "expected": finding.expected,
            "found": finding.found,
            "cause": finding.cause,
            "hint": finding.remedy,
        }
        lines.extend(f"    {name}: {text}" for name, text in details.items() if text)
    return tuple(lines)


def render_error(error: SparkctlError) -> tuple[str, ...]:
    """`error: where: message`, the problems of an inventory, an empty line and `hint: remedy`."""
    problems = tuple(f"  {line}" for line in error.problems) if isinstance(error, InvalidInventory) else ()
    return (f"error: {error}", *problems, "", f"hint: {error.remedy}")


def render_table(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> tuple[str, ...]:
    """A table with aligned columns and a rule under its headers; no rows gives no lines at all."""
    listed = [[str(cell) for cell in row] for row in rows]
    if not listed:
        return ()
    return tuple(
        line.rstrip()
        for line in tabulate(listed, headers=headers, tablefmt="simple", disable_numparse=True).splitlines()
    )


def render_bytes(size_bytes: int) -> str:
    """A size for people: `121.7 GiB`, `512 MiB`."""
    size = float(size_bytes)
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"
