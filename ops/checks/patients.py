"""Findings by patient: the cluster, a worker, a connector or a task. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from connectctl.ops.connect.health import part_name
from connectctl.ops.core.finding import RANK, Finding, Severity


class Kind(StrEnum):
    """The kinds of patients, from the widest to the narrowest."""

    CLUSTER = "cluster"
    WORKER = "worker"
    CONNECTOR = "connector"
    TASK = "task"


_ORDER = list(Kind)


@dataclass(frozen=True)
class Patient:
    """A patient and its findings, the worst first, and of these those that began first.

    ``connector`` is the connector of a connector or task, empty for other kinds.
    """

    kind: Kind
    name: str
    connector: str
    findings: tuple[Finding, ...]

    @property
    def severity(self) -> Severity:
        """Return the severity of the worst finding."""
        return self.findings[0].severity


def patients(
    findings: Iterable[Finding], cluster: str, workers: Iterable[str], connectors: Iterable[str]
) -> tuple[Patient, ...]:
    """Return the patients of ``findings``, the worst first. A finding whose subject is not a
    worker, connector or task is of ``cluster``.
    """
    workers, connectors = frozenset(workers), frozenset(connectors)
    found: dict[tuple[Kind, str, str], list[Finding]] = {}
    for finding in findings:
        kind, name, connector = _patient(finding, cluster, workers, connectors)
        found.setdefault((kind, name, connector), []).append(finding)
    every = [Patient(*key, tuple(sorted(of_it, key=_rank))) for key, of_it in found.items()]
    return tuple(
        sorted(every, key=lambda p: (RANK[p.severity], _ORDER.index(p.kind), p.connector, p.name))
    )


def _patient(
    finding: Finding, cluster: str, workers: frozenset[str], connectors: frozenset[str]
) -> tuple[Kind, str, str]:
    """Return kind, name and connector of the patient: the subject is a worker, a connector, or a
    task as ``orders/0`` or ``orders task 0``.
    """
    subject = finding.subject
    if finding.id.startswith("TOPIC"):  # a topic may have the name of a connector
        return Kind.CLUSTER, cluster, ""
    if subject in connectors:
        return Kind.CONNECTOR, subject, subject
    for separator in ("/", " task "):
        name, _, task = subject.rpartition(separator)
        if name in connectors and task.isdecimal():
            return Kind.TASK, part_name(name, int(task)), name
    return (Kind.WORKER, subject, "") if subject in workers else (Kind.CLUSTER, cluster, "")


def _rank(finding: Finding) -> tuple[int, float, str, str]:
    since = float("inf") if finding.since is None else finding.since
    return RANK[finding.severity], since, finding.id, finding.subject
