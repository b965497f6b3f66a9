"""Connectors that answer preflight's questions in every way there is, and one module's worth of trouble beside them."""

from __future__ import annotations

from collections.abc import Mapping

from connectctl.ops.runtime.api import ExactlyOnceSupport, SourceConnector, TransactionBoundaries
from runtime.test_polling import Task


class Answers(SourceConnector):
    """Says what its configuration tells it to: ``null``, ``fail``, or the name of an answer."""

    task = Task

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        return [{}]

    def exactly_once_support(self, configs: Mapping[str, str]) -> ExactlyOnceSupport | None:
        said = _said(configs["says.support"])
        return None if said is None else ExactlyOnceSupport(said)

    def can_define_transaction_boundaries(self, configs: Mapping[str, str]) -> TransactionBoundaries | None:
        said = _said(configs["says.boundaries"])
        return None if said is None else TransactionBoundaries(said)


def _said(answer: str) -> str | None:
    if answer == "fail":
        raise ZeroDivisionError("asked too much")
    return None if answer == "null" else answer
