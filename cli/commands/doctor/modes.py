"""What ``doctor`` reads and does: a cluster or a bundle, once or again and again, with cures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from connectctl.cli import flow, lock_wait, watching
from connectctl.cli.options import ApplyOptions, ReportOptions
from connectctl.cli.output import findings, terminal
from connectctl.cli.output.printed_commands import with_cluster
from connectctl.cli.output.terminal import Output
from connectctl.cli.views import checks
from connectctl.cli.views import doctor as view
from connectctl.ops.core.errors import BadInput

if TYPE_CHECKING:
    from connectctl.cli.session import Session
    from connectctl.ops.checks.runner import CheckRun
    from connectctl.ops.clients.protocols import Clients
    from connectctl.ops.core.finding import Finding

_EXCLUDED = {
    "--watch": ("--heal", "-f", "--html", "--prometheus"),
    "--heal": ("-f", "--html", "--prometheus"),
}


def check(
    given: Mapping[str, Any], of_heal: Mapping[str, bool], connectors: Sequence[str] | None
) -> None:
    """Raise ``BadInput`` for options that exclude each other."""
    for option, others in _EXCLUDED.items():
        for other in others:
            if given[option] and given[other]:
                raise BadInput(
                    f"{option} cannot be combined with {other}",
                    next_step="Leave one of them out.",
                )
    for option, set_ in of_heal.items():
        if set_ and not given["--heal"]:
            raise BadInput(f"{option} requires --heal")
    if given["-f"] and connectors:
        raise BadInput(
            "A bundle is read as a whole", next_step="Leave out the connectors, or -f BUNDLE."
        )


def check_run(
    session: Session, connectors: Sequence[str], file: Path | None
) -> tuple[Clients, CheckRun]:
    """Return the run of the checks, of a cluster or of the bundle ``file``, and its clients."""
    from connectctl.ops.checks.runner import doctor_run

    if file is None:
        return session, checks.checked(session, lambda: doctor_run(session, connectors))
    from connectctl.ops.checks.bundle import archive, recording

    return recording.repeat(archive.read(file), doctor_run)


def heal(
    session: Session, connectors: Sequence[str], options: ReportOptions, *, dry_run: bool, yes: bool
) -> None:
    """Perform the cures that are due. Raises ``BadInput`` for an output that plans do not have."""
    from connectctl.ops.checks.heal.operation import Heal, HealRequest

    if options.output.value not in list(Output):
        raise BadInput(
            f"--heal cannot be combined with -o {options.output}",
            next_step="Give -o table, wide, json or yaml.",
        )
    request = HealRequest(tuple(connectors))
    how = ApplyOptions(dry_run, yes, Output(options.output.value))

    def perform() -> None:
        flow.perform(session, Heal(), request, how)

    lock_wait.retried(session, perform, {})


def watch(
    session: Session, connectors: Sequence[str], options: ReportOptions, interval: float
) -> None:
    """Look again and again until ^C, and show what came and what went."""
    watching.check_interval(interval)
    changes = Changes()

    def check(opened: Session) -> CheckRun:
        run = check_run(opened, connectors, None)[1]
        changes.add(findings.kept(run.findings(), options.ignore), run.now)
        return run

    with terminal.live() as draw:

        def show(title: str, run: CheckRun) -> None:
            if options.output.value in (Output.TABLE, Output.WIDE):
                draw(title, changes.blocks(run), ())
            else:
                found = changes.now
                findings.emit_report("Doctor", view.data(run, found), found, options, print)

        watching.repeat(session, interval, check, show, lambda run: run.context.view)


MOST_GONE = 10
"""Findings that are listed after they went, the last ones."""


class Changes:
    """The findings of the last check, and what came and went since the first one."""

    def __init__(self) -> None:
        self.now: tuple[Finding, ...] = ()
        self._came: dict[tuple[str, str], float | None] = {}
        self._gone: list[tuple[float, Finding]] = []
        self._checks = 0

    def add(self, found: tuple[Finding, ...], at: float) -> None:
        """Keep the findings of ``at``, in seconds since the epoch."""
        keys = {_key(each) for each in found}
        self._gone += [(at, each) for each in self.now if _key(each) not in keys]
        came = None if self._checks == 0 else at
        self._came = {key: self._came.get(key, came) for key in keys}
        self.now = found
        self._checks += 1

    def blocks(self, run: CheckRun) -> list[terminal.Block]:
        """Return the tables of the findings that are there, and of those that went."""
        rows = [
            row
            for each in self.now
            for row in (
                [
                    each.severity.value,
                    each.id,
                    view.since(each, run.now),
                    _clock(self._came[_key(each)]),
                    _seen(each),
                ],
                # A line of its own: beside each other, two sentences are too narrow to be read.
                ["", "", "", "", with_cluster(each.next_step or "")],
            )
            if any(row)
        ]
        columns = ["SEVERITY", "ID", "SINCE", "CAME", "SEEN"]
        found = [terminal.Block(columns, rows, "Nothing found.", ("CAME",))]
        gone = [[_clock(at), each.id, _seen(each)] for at, each in self._gone[-MOST_GONE:]]
        return found + ([terminal.Block(["WENT", "ID", "SEEN"], gone)] if gone else [])


def _key(finding: Finding) -> tuple[str, str]:
    return finding.id, finding.subject


def _seen(finding: Finding) -> str:
    """Return what was seen, and of what."""
    named = finding.subject in finding.message
    return finding.message if named else f"{finding.subject}: {finding.message}"


def _clock(at: float | None) -> str:
    """Return the time of day; a dash for what was there at the first check."""
    return "-" if at is None else f"{datetime.fromtimestamp(at):%H:%M:%S}"
