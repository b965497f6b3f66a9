"""The states of connectors, tasks and groups are judged in one place each: nobody else compares
with their words.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sources import FILES, name, nodes

CONNECTORS = {
    "RUNNING",
    "PAUSED",
    "STOPPED",
    "FAILED",
    "UNASSIGNED",
    "RESTARTING",
    "DEGRADED",
    "STARTED",
}
GROUPS = {"Stable", "Dead", "PreparingRebalance", "CompletingRebalance"}
CONSTANTS = {"RUNNING", "PAUSED", "STOPPED", "STARTED", "STABLE"}
"""Names under which a module may hold such a word."""
JUDGES = {
    "ops/connect/connector.py": "at rest, paused, the requested state, the verdict",
    "ops/connect/health.py": "healthy, failed",
    "ops/kafka/group_state.py": "stable, settled, dead, members",
}
_FILES_STATE = "the state that a file or a plan requests, of which no worker knows"
_RUNS_STATE = (
    "statuses and target states that runs of connectctl write themselves, of tasks that "
    "no worker has"
)
ALLOWED = {
    "ops/operations/connectors/config/offsets.py": _FILES_STATE,
    "ops/operations/connectors/config/operations.py": _FILES_STATE,
    "ops/operations/connectors/config/plan.py": _FILES_STATE,
    "ops/operations/connectors/config/undo.py": _FILES_STATE,
    "cli/views/run_status.py": _RUNS_STATE,
    "ops/task_runtime/job/config_topic_records.py": _RUNS_STATE,
    "ops/task_runtime/job/prepare.py": _RUNS_STATE,
    "ops/task_runtime/job/status_report.py": _RUNS_STATE,
    "ops/task_runtime/job/worker_takeover.py": _RUNS_STATE,
    "cli/commands/demo/spark.py": "shows the words of a status, for people who watch",
}
"""Modules that compare with the same words of something else, and what that is."""
LEADER_ID = "ops/connect/transactional_ids.py"


def _words(side: ast.expr) -> Iterator[str]:
    """The words on one side of a comparison: literals, constants by their names, and members of a
    container.
    """
    if isinstance(side, (ast.Tuple, ast.List, ast.Set)):
        for each in side.elts:
            yield from _words(each)
    elif isinstance(side, ast.Constant) and side.value in CONNECTORS | GROUPS:
        yield str(side.value)
    elif isinstance(side, ast.Name) and side.id in CONSTANTS:
        yield side.id


def _is_of_a_status(side: ast.expr) -> bool:
    """Whether it is the state in a status as a worker wrote it, and not a verdict's."""
    return (
        isinstance(side, ast.Attribute)
        and side.attr == "state"
        and ast.unparse(side.value).endswith("status")
    )


def _judges(node: ast.AST) -> bool:
    sides = [node.left, *node.comparators] if isinstance(node, ast.Compare) else []
    return any(_is_of_a_status(side) or any(_words(side)) for side in sides)


def test_no_other_module_compares_with_the_words_of_states() -> None:
    found = {name(path) for path in FILES if any(map(_judges, nodes(path)))}
    assert found == JUDGES.keys() | ALLOWED.keys()


def test_one_module_knows_the_form_of_a_leaders_transactional_id() -> None:
    def has_it(node: ast.AST) -> bool:
        return isinstance(node, ast.Constant) and node.value == "connect-cluster-"

    assert {name(path) for path in FILES if any(map(has_it, nodes(path)))} == {LEADER_ID}
