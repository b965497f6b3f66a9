"""Makes a bundle of a check, and repeats the check from one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from connectctl.ops.checks.bundle.archive import FORMAT, Bundle
from connectctl.ops.checks.bundle.pseudonyms import Names, Replacement
from connectctl.ops.checks.bundle.redaction import Masking
from connectctl.ops.checks.bundle.tape import LEFT_OUT, Answers, Call, Tape, played, recorded
from connectctl.ops.checks.runner import CheckRun
from connectctl.ops.clients.protocols import Clients
from connectctl.ops.connect.sink_group import sink_group
from connectctl.ops.core.times import iso_utc
from connectctl.ops.operations.connectors.plugin_passwords import (
    defined_passwords,
    plugins_without_definitions,
)

Check = Callable[[Clients, Sequence[str], float | None], CheckRun]
"""A check of the connectors that the user named, at a time in seconds since the epoch; None: now."""
ROLL = "roll"
"""The call that reads the journal of this machine for a rolling change."""


class Recording:
    """A check whose reads are recorded."""

    def __init__(self, clients: Clients) -> None:
        self._tape = Tape()
        self.clients = recorded(clients, self._tape)

    def check(self, check: Check, connectors: Sequence[str]) -> CheckRun:
        """Return the run of ``check`` of the connectors that the user named, or of all."""
        run = check(self.clients, connectors, None)
        run.now = round(run.now, 3)  # as a bundle keeps it: times are in requests
        _ = self.clients.settings.context  # a page of the bundle names it
        roll = run.context.edges.roll
        run.context.edges = replace(
            run.context.edges, roll=lambda view: self._tape.call(ROLL, None, partial(roll, view))
        )
        return run

    def bundle(
        self, run: CheckRun, connectors: Sequence[str], version: str, secret: bytes | None
    ) -> Bundle:
        """Return what ``run`` reads, and what it finds, without secrets.

        ``secret`` makes pseudonyms; without one, the names of topics and connectors are kept.
        """
        findings = run.findings()
        masking = Masking(_defined_passwords(run), _groups_of_sinks(run))
        calls = masking.of(self._tape.calls())
        names = Names.of(calls) if secret else Names(frozenset(), frozenset())
        replacement = Replacement(names.pseudonyms(secret or b""))
        verdict = {"findings": [masking.data(each.as_json()) for each in findings]}
        manifest = {
            "apiVersion": "connectctl/v1",
            "kind": "Bundle",
            "format": FORMAT,
            "version": version,
            "takenAt": iso_utc(run.now * 1000),
            "takenAtMs": round(run.now * 1000),
            "clusterId": run.context.view.cluster_id,
            "groupId": run.context.group.id,
            "workerVersions": list(run.context.versions),
            "connectors": list(connectors),
            "namesReplaced": secret is not None,
            "read": _summary(calls),
            "leftOut": [*_left_out(calls, masking, names), *_missing_definitions(run)],
        }
        return Bundle(
            replacement.data(manifest),
            replacement.of(calls),
            replacement.data(verdict),
            {new: name for name, new in replacement.pseudonyms.items()},
        )


def _left_out(calls: Sequence[Call], masking: Masking, names: Names) -> list[str]:
    """Return what the bundle does not have, in words."""
    found = [f"{what}: {count:,}" for what, count in masking.left_out.items()]
    found += [
        f"an answer of {call.name}: {answer[LEFT_OUT]}"
        for call in calls
        for answer in call.answers
        if LEFT_OUT in answer
    ]
    if names.kept:
        found.append(f"pseudonyms of names that are common words: {', '.join(names.kept)}")
    return found


def _missing_definitions(run: CheckRun) -> list[str]:
    """Return whose definitions of passwords are missing: their secrets are masked by other signs."""
    configs = [connector.config for connector in run.context.all_connectors]
    plugins = sorted(frozenset[str]().union(*map(plugins_without_definitions, configs)))
    if not plugins:
        return []
    return [
        "definitions of passwords, as no worker listed them; secrets of these plugins are masked by "
        f"names and forms alone, look for others: {', '.join(plugins)}"
    ]


def repeat(bundle: Bundle, check: Check) -> tuple[Clients, CheckRun]:
    """Return ``check`` of what the bundle has, as of the time when it was made, and its clients."""
    answers = Answers(bundle.calls)
    clients = played(answers)
    run = check(clients, bundle.connectors, bundle.taken_at)
    run.context.edges = replace(run.context.edges, roll=lambda view: answers.next(ROLL, None))
    return clients, run


def _defined_passwords(run: CheckRun) -> frozenset[str]:
    """Return the properties that plugins define as passwords, as far as workers tell."""
    found: frozenset[str] = frozenset()
    by_class = {each.config.get("connector.class"): each for each in run.context.all_connectors}
    for connector in by_class.values():
        found |= defined_passwords(run.context.edges.calls, connector.config)
    return found


def _groups_of_sinks(run: CheckRun) -> frozenset[str]:
    """Return the groups whose commits the check reads."""
    sinks = (each for each in run.context.all_connectors if each.type == "sink")
    return frozenset(sink_group(sink.name, sink.config) for sink in sinks)


def _summary(calls: Sequence[Call]) -> list[dict[str, Any]]:
    """Return how often each kind of call was made, and how many answers were errors."""
    made, failed = Counter[str](), Counter[str]()
    for call in calls:
        made[call.name] += len(call.answers)
        failed[call.name] += sum("error" in answer for answer in call.answers)
    return [{"call": name, "answers": made[name], "errors": failed[name]} for name in sorted(made)]
