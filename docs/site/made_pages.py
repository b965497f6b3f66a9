"""Writes the pages that are made from the program: ``docs/rights.md`` from the table of rights, and
``docs/findings/README.md`` from the documents of findings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from connectctl.ops.core.rights import COMMANDS, Name, Need, When, needs_of
from connectctl.ops.core.rule_docs import rule_docs

DOCS = Path(__file__).parents[1]
_HEAD = """\
# The rights that connectctl needs

The permissions that the principal of a context needs, by command. `connectctl preflight --self` requests from the brokers
which of these rights the principal in use has, and reports which commands work in full, in part, or are refused; `--emit
kafka-acls` prints the missing ones. This page is generated from `ops/core/rights.py`.

Rights apply to the workers' own Kafka cluster. If a connector writes to another cluster, the rows about its topics, its
dedicated offsets topic and its transactional ids apply there. Read and Write include Describe, and so does Alter (on the
cluster, ClusterAction is sufficient in place of Alter); a `Deny` overrides them. Resources that are not visible are never
treated as absent: a command without a right reports it, and a change is refused if the checks that guard it cannot read
enough.

Names: `group.id` is the workers' group; `<connector>` and `<task>` stand for each. Rights on *every* name are those on `*`.
They are needed if no names are given: Kafka's listings silently omit resources that may not be described. If `*` is too
much, set `topics` in the context, and give ids or topics on the command line.

The workers' REST API is not protected by Kafka's ACLs, but by `rest_auth` and `rest_tls`.
"""
_NOTHING = (
    "None: these commands connect to no cluster except the sandbox, or read only the "
    "journal and the context file."
)


def rights() -> str:
    """Return ``docs/rights.md``."""
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
        right = f"{need.operation.word} on {need.resource.word}"
        yield f"| {right} | {_name(need.name)}{when} | {need.effect} | {need.without} |"


def _name(name: Name) -> str:
    roles = (
        Name.GROUP,
        Name.LOG,
        Name.GROUP_LOG,
        Name.TASKS,
        Name.LEADER,
        Name.CHANGES,
        Name.PRESENCE,
        Name.RUN_STATUS,
        Name.LOCK,
    )
    return f"`{name}`" if name in roles else str(name)


def findings() -> str:
    """Return ``docs/findings/README.md``: every finding with a link to its section."""
    lines = [
        "# Findings",
        "",
        "Every finding of connectctl by its id. `connectctl preflight --explain ID` prints the "
        "same text.",
        "",
        "| id | severity | finding |",
        "| --- | --- | --- |",
    ]
    for doc in rule_docs().values():
        anchor = re.sub(r"[^\w -]", "", f"{doc.id} {doc.title}".lower()).replace(" ", "-")
        title = doc.title.replace("__", r"\_\_").replace("|", r"\|")
        lines.append(f"| [{doc.id}]({doc.file}#{anchor}) | {doc.severity} | {title} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    (DOCS / "rights.md").write_text(rights())
    (DOCS / "findings" / "README.md").write_text(findings())
