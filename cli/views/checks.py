"""What preflight and doctor share: ``--explain`` and ``--list``, and the run of their checks."""

from __future__ import annotations

import sys
from textwrap import fill, indent
from typing import TYPE_CHECKING

from connectctl.cli.output import terminal
from connectctl.ops.core.errors import BadInput
from connectctl.ops.core.rule_docs import rule_doc, rule_docs
from connectctl.ops.operations.cluster.group_workers import refuse_unknown

if TYPE_CHECKING:
    from collections.abc import Callable

    from connectctl.cli.session import Session
    from connectctl.ops.checks.runner import CheckRun

LINE = 100
"""Columns of an explanation, and no more than a terminal has."""


def explain_finding(id_: str) -> None:
    """Print the finding in full. Raises ``BadInput`` for an unknown id."""
    doc = rule_doc(id_)
    terminal.print_wrapped(f"{doc.id} ({doc.severity}): {doc.title}")
    width = min(LINE, terminal.console().width) if sys.stdout.isatty() else LINE
    for paragraph in doc.text.split("\n\n"):
        terminal.print_line(
            "\n"
            + (
                indent(paragraph, "")
                if "\n  " in paragraph
                else fill(" ".join(paragraph.split()), width)
            )
        )
    if doc.source:
        terminal.print_line(f"\nSource: {doc.source}")


def list_findings() -> None:
    """Print all findings."""
    rows = [[doc.id, doc.severity, doc.title] for doc in rule_docs().values()]
    terminal.table(["ID", "SEVERITY", "FINDING"], rows)


def checked(session: Session, check: Callable[[], CheckRun]) -> CheckRun:
    """Return the result of ``check``. Raises ``BadInput`` for a group that does not exist, and has
    no connectors.
    """
    try:
        run = check()
    except BadInput:
        refuse_unknown(session.group(), session)
        raise
    refuse_unknown(run.context.group, session, run.context.all_connectors)
    return run
