"""What walking the whole path brings, stage by stage, until something is not right: one report in the end."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from sparkctl.cli.session import Result, Session
from sparkctl.errors import SparkctlError
from sparkctl.report.finding import Finding, Severity, Status, derived_status
from sparkctl.report.render_up import StageTime, render_next, render_stages, render_stop

_STOPPERS = (Severity.FAIL, Severity.UNKNOWN)


@dataclass
class Walk:
    """What the stages so far have brought; grows while the path is walked."""

    session: Session
    data: dict[str, object] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    times: list[StageTime] = field(default_factory=list)
    would_change: bool = False

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time a stage, also one that ends with an error."""
        started = time.monotonic()
        try:
            yield
        finally:
            self.times.append(StageTime(name, time.monotonic() - started))

    def found(self, *findings: Finding) -> None:
        """Keep what a person should know: everything but OK, and nothing twice."""
        for finding in findings:
            if finding.severity is not Severity.OK and finding not in self.findings:
                self.findings.append(finding)

    @property
    def stopped(self) -> bool:
        """Whether a finding so far forbids to go on."""
        return any(finding.severity in _STOPPERS for finding in self.findings)

    def result(self, error: SparkctlError | None = None) -> Result:
        """The one report; with the error that ended the path, if one did."""
        self.data["stages"] = self.times
        ended_early = self.times[-1:] if self.stopped or error is not None else []
        self.data["stopped_at"] = ended_early[0].stage if ended_early else None
        status = derived_status(self.findings)
        if self.would_change and status is Status.OK:
            status = Status.CHANGES
        after = render_next() if "answer" in self.data and not ended_early else ()
        lines = (*self.lines, *render_stages(self.times), *render_stop(ended_early), *after)
        return Result(self.data, lines, tuple(self.findings), status, error)
