"""Writes ``docs/rights.md`` from the table of rights: ``python -m connectctl.ops.core.rights_doc > docs/rights.md``."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from connectctl.ops.core.rights import COMMANDS, Effect, Name, Need, When, needs_of

_HEAD = """\
# The rights that connectctl needs

What the principal of a context has to be allowed, by command. `connectctl preflight --self` asks the brokers which of these
rights the principal in use has, and says which commands work in full, which see a part and which are refused;
`--emit kafka-acls` prints what is missing. This page is made from `ops/core/rights.py`.

Rights are on the workers' own Kafka cluster. On another cluster that a connector writes to, the rows about its topics, its
own offsets topic and its transactional ids hold there. Read and Write include Describe, and so does Alter (on the cluster,
ClusterAction does as well as Alter); a `Deny` takes away what it names. What may not be seen is never taken for absent: a
command without a right says so, and a change whose guard cannot see enough is refused.

Names: `group.id` is the workers' group; `<connector>` and `<task>` stand for each. Rights on *every* name are those on `*`.
They are needed where nothing is named: Kafka's listings leave out what may not be described and do not say so, so give
`topics` in the context, and ids or topics on the command line, where `*` is too much.

The workers' REST API is not guarded by Kafka's ACLs, but by `rest_auth` and `rest_tls`.
"""
_NOTHING = "Nothing: these ask no cluster but the sandbox's own, or read only the journal and the context file."


def markdown() -> str:
    """Return the page."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield _HEAD
    alike: dict[tuple[Need, ...], list[str]] = {}
    for command in COMMANDS:
        alike.setdefault(tuple(needs_of(command)), []).append(command)
    for needs, commands in alike.items():
        if needs:
            yield f"## {', '.join(commands)}\n"
            yield from _table(needs)
            yield ""
    yield f"## {', '.join(alike[()])}\n"
    yield _NOTHING


def _table(needs: tuple[Need, ...]) -> Iterator[str]:
    yield "| right | on | without it | what is missing |"
    yield "| --- | --- | --- | --- |"
    for need in needs:
        when = "" if need.when is When.ALWAYS else f" (if {need.when})"
        effect = {Effect.REFUSED: "refused", Effect.PART: "sees a part"}[need.effect]
        yield f"| {need.operation.word} on {need.resource.word} | {_name(need.name)}{when} | {effect} | {need.without} |"


def _name(name: Name) -> str:
    roles = (Name.GROUP, Name.LOG, Name.TASKS, Name.LEADER, Name.CHANGES, Name.PRESENCE, Name.RUN_STATUS, Name.LOCK)
    literal = name in roles
    return f"`{name}`" if literal else str(name)


if __name__ == "__main__":
    sys.stdout.write(markdown())
