"""What a principal's missing rights mean for the commands, as findings: RIGHT001 and RIGHT002; and as ACLs to be added."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from connectctl.ops.checks.acls.emit import additions
from connectctl.ops.checks.own_rights.rules import Checked, OfCommand, RightState
from connectctl.ops.core.finding import Finding, Severity
from connectctl.ops.core.rights import Effect
from connectctl.ops.core.rule import Rule
from connectctl.ops.kafka.acls import ANY, Binding, Pattern, Permission, Right
from connectctl.ops.kafka.visibility import grant

MISSING = Rule("RIGHT001", Severity.ERROR)
UNKNOWN = Rule("RIGHT002", Severity.INFO)


def findings(found: Sequence[OfCommand]) -> Iterator[Finding]:
    """One finding for each right that is missing, and for each that is not known, with the commands that need it."""
    for state, rule in ((RightState.MISSING, MISSING), (RightState.UNKNOWN, UNKNOWN)):
        for right, needing in _by_right(found, state).items():
            refused = [command for command, each in needing if each.need.effect is Effect.REFUSED]
            part = [command for command, each in needing if each.need.effect is Effect.PART]
            texts = [f"refused without it: {', '.join(refused)}"] if refused else []
            texts += [f"sees a part: {', '.join(part)}"] if part else []
            why = next((each.why for _, each in needing if each.why), "")
            message = f"{'; '.join(texts)}{f' ({why})' if why else ''}."
            severity = Severity.WARNING if state is RightState.MISSING and not refused else None
            hint = grant(right) if state is RightState.MISSING else None
            yield rule.found(str(right), message[0].upper() + message[1:], hint, severity=severity)


def _by_right(found: Sequence[OfCommand], state: RightState) -> dict[Right, list[tuple[str, Checked]]]:
    by_right: dict[Right, list[tuple[str, Checked]]] = {}
    for each in found:
        for checked in each.of(state):
            by_right.setdefault(checked.right, []).append((each.command, checked))
    return by_right


def emitted(found: Sequence[OfCommand], principal: str, bootstrap: str) -> Iterator[str]:
    """kafka-acls.sh commands that add what is missing; what is not known follows as comments, to be decided by a person."""
    yield "#!/bin/sh"
    yield f"# Rights that connectctl lacks as {_printable(principal)}."
    yield "# Set CLIENT_PROPERTIES to a Java properties file if the brokers require credentials."
    missing = [_binding(right, principal) for right in _by_right(found, RightState.MISSING)]
    yield from additions(missing, bootstrap) if missing else ["# Nothing is missing."]
    unknown = _by_right(found, RightState.UNKNOWN)
    names = {right: needing for right, needing in unknown.items() if not right.name.startswith("<")}
    if names:
        yield "# Unknown whether these rights are granted:"
        yield from (f"# {line}" for line in additions([_binding(right, principal) for right in names], bootstrap))
    for right, needing in unknown.items():
        if right not in names:
            yield f"# {_printable(f'{right}: {needing[0][1].why}.')}"


def _binding(right: Right, principal: str) -> Binding:
    return Binding(right.resource, right.name, Pattern.LITERAL, principal, ANY, right.operation, Permission.ALLOW)


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in text)
