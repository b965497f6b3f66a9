"""What changes a cluster goes through one executor: nothing else loops over steps, or writes how
far a run is.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from connectctl.ops.registry import KINDS
from sources import FILES, ROOT, below, name, tree

EXECUTOR = "ops/core/executor.py"
WAITS = ("ops/core/", "ops/clients/", "ops/sandbox/")
"""Where ``time.sleep`` is called: everything else that waits for the state of a cluster goes
through ``wait_until``.
"""
SLEEPS = {
    "cli/interrupt.py": "the watch for ^C, in a thread of its own",
    "cli/watching.py": "--watch: the interval that the person gave",
    "ops/task_runtime/task/transactional_producer.py": "each pause comes before an attempt, and "
    "not between two",
    "ops/task_runtime/job/generation.py": "the leader's id is asked for again, as workers do",
    "ops/task_runtime/dataframe/stream_round.py": "a batch of Spark is followed",
}
"""What else sleeps, and why ``wait_until`` does not fit it."""
LOOPS = (ast.For, ast.While, ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp)


def _trees() -> Iterator[tuple[str, ast.Module]]:
    yield from ((name(path), tree(path)) for path in FILES)


def _calls(tree: ast.AST, name: str) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == name
        ):
            yield node


def test_only_the_executor_loops_over_steps() -> None:
    found = {
        name
        for name, tree in _trees()
        for loop in ast.walk(tree)
        if isinstance(loop, LOOPS) and any(_calls(loop, "apply"))
    }
    assert found == set()
    executor = ast.parse((ROOT / EXECUTOR).read_text())
    assert len(list(_calls(executor, "apply"))) == 1


def test_only_the_executor_writes_how_far_a_run_is() -> None:
    assert {
        name
        for name, tree in _trees()
        if any(_calls(tree, "mark")) and "journal" in ast.unparse(tree)
    } == {EXECUTOR}


def test_what_waits_for_a_cluster_waits_in_one_place() -> None:
    found = {
        name
        for name, tree in _trees()
        if not name.startswith(WAITS)
        and any(ast.unparse(call.func) == "time.sleep" for call in _calls(tree, "sleep"))
    }
    assert found == SLEEPS.keys()


def test_the_command_line_knows_no_kind_of_step() -> None:
    def imported(path: Path) -> set[str]:
        found = (node for node in ast.walk(tree(path)) if isinstance(node, ast.ImportFrom))
        return {alias.name for node in found for alias in node.names} & KINDS.keys()

    assert {name(path): kinds for path in below("cli") if (kinds := imported(path))} == {}


def _names_an_operation(node: ast.AST) -> bool:
    """Whether ``.operation`` is compared with a text, or asked for how it begins."""
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        texts = [
            each for side in sides for each in ast.walk(side) if isinstance(each, ast.Constant)
        ]
        return any(_is_operation(side) for side in sides) and any(
            isinstance(each.value, str) for each in texts
        )
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr == "startswith" and _is_operation(node.func.value)
    return False


def _is_operation(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "operation"


def test_nothing_decides_by_the_name_of_an_operation() -> None:
    # operations of ACLs
    paths = [path for path in FILES if not name(path).startswith("ops/kafka/")]
    assert {
        name(path) for path in paths if any(map(_names_an_operation, ast.walk(tree(path))))
    } == set()
