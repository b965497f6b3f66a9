"""``connectctl preflight --self``: which commands work fully with the principal in use, and which
rights are missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import typer
from connectctl.cli.options import ReportOptions
from connectctl.cli.output import findings as output_findings
from connectctl.cli.output import terminal
from connectctl.cli.session import Session
from connectctl.ops.checks.own_rights import observe, rules
from connectctl.ops.checks.own_rights.rules import Checked, OfCommand, RightState, emitted, findings
from connectctl.ops.connect.connect_protocol import ConnectGroup
from connectctl.ops.core.errors import BadInput, ConnectctlError, NotAuthorized, did_you_mean
from connectctl.ops.core.rights import COMMANDS

SHOWN = 3
"""The most rights of a command in the table; all are in -o wide and in -o json."""


def check_self(
    session: Session, connectors: Sequence[str], commands: Sequence[str], options: ReportOptions
) -> NoReturn:
    """Print the result, and exit with 1 for findings of the severity of ``--fail-on`` or above."""
    found = rights_of(session, connectors, commands)
    kept = output_findings.kept(list(findings(found)), options.ignore)
    data = {
        "clusterId": session.own_rights.cluster_id(),
        "groupId": session.group_id,
        "commands": [_as_json(each) for each in found],
    }
    output_findings.emit_report("OwnRights", data, kept, options, lambda wide: _print(found, wide))
    raise typer.Exit(output_findings.exit_code(kept, options.fail_on))


def emit(
    session: Session, connectors: Sequence[str], commands: Sequence[str], principals: Sequence[str]
) -> None:
    """Print kafka-acls.sh commands that add the missing rights."""
    principal = _principal(session, principals)
    lines = emitted(
        rights_of(session, connectors, commands),
        principal,
        str(session.settings.get("bootstrap_servers")),
    )
    for line in lines:
        terminal.print_line(line)


def rights_of(
    session: Session, connectors: Sequence[str], commands: Sequence[str]
) -> tuple[OfCommand, ...]:
    """Return the rights of every command, or of ``commands``. Raises ``BadInput`` for an unknown
    command.
    """
    for command in commands:
        _check(command)
    group = _group(session)
    calls = session.connect_to(group) if group.members or session.settings.get("rest") else None
    resources = observe.observe(session.kafka, calls, group, session.named_topics, connectors)
    return rules.commands(session.own_rights, session.acls, resources, commands)


def _group(session: Session) -> ConnectGroup:
    """Return the group, or only its name if it may not be described: its rights are checked
    anyway.
    """
    try:
        return session.group()
    except NotAuthorized:
        return ConnectGroup(session.group_id, "Unknown", "", ())


def _check(command: str) -> None:
    if command not in COMMANDS:
        otherwise = "Write it as on the command line, for example: offsets show."
        hint = did_you_mean(command, COMMANDS, otherwise)
        raise BadInput(f"Unknown command: {command}", next_step=hint)


def _principal(session: Session, principals: Sequence[str]) -> str:
    """Return the principal: as given, or the SASL user; brokers map a certificate's name by their
    own rules.
    """
    if len(principals) > 1 or any("=" in each.partition(":")[0] for each in principals):
        raise BadInput(
            "With --self give one --principal, without a role",
            next_step="For example --principal User:ops.",
        )
    if principals:
        return principals[0]
    user = session.settings.get("client.sasl.username")
    if not isinstance(user, str):
        raise ConnectctlError(
            "The principal of this context is unknown",
            next_step="Give --principal User:NAME.",
            code="no-principal",
        )
    return f"User:{user}"


def _print(found: Sequence[OfCommand], wide: bool) -> None:
    rows = [
        [
            each.command,
            each.verdict.value,
            _rights(each.of(RightState.MISSING), wide),
            _rights(each.of(RightState.UNKNOWN), wide),
        ]
        for each in found
    ]
    terminal.table(["COMMAND", "WORKS", "MISSING", "NOT-KNOWN"], rows)


def _rights(found: Sequence[Checked], wide: bool) -> str:
    names = list(dict.fromkeys(str(each.right) for each in found))
    shown = names if wide else names[:SHOWN]
    more = f" and {len(names) - len(shown)} more" if len(names) > len(shown) else ""
    return "; ".join(shown) + more or "-"


def _as_json(each: OfCommand) -> dict[str, Any]:
    return {
        "command": each.command,
        "works": each.verdict.value,
        "rights": [
            {
                "operation": checked.right.operation.value,
                "resourceType": checked.right.resource.value,
                "resourceName": checked.right.name,
                "state": checked.state.value,
                "without": checked.need.effect.value,
                "missing": checked.need.without,
                **({"why": checked.why} if checked.why else {}),
            }
            for checked in each.rights
        ],
    }
