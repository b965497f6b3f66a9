from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import pytest
from connectctl.migrations import registry
from connectctl.migrations.registry import Migration, MigrationInput, Status, migrations, named
from connectctl.ops.core.errors import BadInput, Refused
from connectctl.ops.operations.upgrade.mode import Confidence, SourceSupport, WorkerMode
from connectctl.ops.operations.upgrade.snapshot import RollingSnapshot, RollingWorker
from connectctl.ops.operations.upgrade.steps import RestartWorker
from sources import ROOT, below, nodes

FOLDER = Path(registry.__file__).resolve().parent


def cluster(*values: SourceSupport, dedicated: tuple[str, ...] = ()) -> RollingSnapshot:
    workers = tuple(
        RollingWorker(
            chr(97 + n),
            f"http://{n}/",
            WorkerMode(value, Confidence.CONFIGURED, "file"),
            leader=n == 0,
            member="m",
        )
        for n, value in enumerate(values)
    )
    return RollingSnapshot("cluster", "connect", "Stable", workers, dedicated=dedicated)


def test_every_module_is_named_and_numbers_follow_each_other() -> None:
    assert sorted(path.stem for path in FOLDER.glob("m0*.py")) == sorted(registry.MODULES)
    assert [migration.number for migration in migrations()] == list(range(1, len(migrations()) + 1))
    for migration, module in zip(migrations(), registry.MODULES, strict=True):
        assert module == f"m{migration.number:04}_{migration.name.replace('-', '_')}"


@pytest.mark.parametrize("module", registry.MODULES)
def test_a_docstring_gives_the_reason_and_what_is_guaranteed(module: str) -> None:
    story = ast.get_docstring(ast.parse((FOLDER / f"{module}.py").read_text())) or ""
    assert "KIP-" in story
    assert "Guaranteed" in story
    assert len(story.splitlines()[0]) < 120


@pytest.mark.parametrize("name", ["enable-exactly-once", "0002-enable-exactly-once", "0002"])
def test_a_migration_is_found_by_name_and_number(name: str) -> None:
    assert named(name).number == 2


def test_no_other_module_decides_by_the_name_of_a_migration() -> None:
    names = {name for each in migrations() for name in (each.name, each.id, f"{each.number:04}")}
    for path in (*below("cli", "ops"), *(ROOT / "src/connectctl").glob("*.py")):
        constants = {n.value for n in nodes(path) if isinstance(n, ast.Constant)}
        assert not constants & names, path


def test_an_unknown_migration_is_bad_input() -> None:
    with pytest.raises(BadInput, match="Unknown migration"):
        named("nothing-like-it")


D, P, E, OLD = (
    SourceSupport.DISABLED,
    SourceSupport.PREPARING,
    SourceSupport.ENABLED,
    SourceSupport.NOT_SUPPORTED,
)


@pytest.mark.parametrize(
    ("values", "standings"),
    [
        ((D, D), ("pending", "pending", "converged", "possible", "possible")),
        ((P, D), ("pending", "pending", "possible", "possible", "possible")),
        ((P, E), ("converged", "pending", "possible", "possible", "possible")),
        ((E, E), ("converged", "converged", "possible", "possible", "possible")),
        ((OLD, D), ("not applicable", "not applicable", "converged", "possible", "possible")),
        ((OLD, OLD), ("not applicable", "not applicable", "converged", "converged", "converged")),
        ((), ("not applicable",) * 5),
    ],
)
def test_how_a_cluster_stands_to_each(
    values: tuple[SourceSupport, ...], standings: tuple[str, ...]
) -> None:
    assert tuple(m.status(cluster(*values)).status.value for m in migrations()[:5]) == standings


@pytest.mark.parametrize("migration", migrations()[:5], ids=lambda m: m.name)
def test_a_converged_cluster_has_an_empty_plan(migration: Migration) -> None:
    for values in ((D, D), (P, P), (E, E), (OLD, OLD)):
        snapshot = cluster(*values)
        if migration.status(snapshot).status is Status.CONVERGED:
            assert migration.plan(MigrationInput(snapshot)).steps == ()


def test_preparing_leaves_enabled_workers_alone() -> None:
    steps = named("prepare-exactly-once").plan(MigrationInput(cluster(E, D))).steps
    assert {step.worker for step in steps if isinstance(step, RestartWorker)} == {"b"}


@pytest.mark.parametrize("name", ["hard-downgrade-two-steps", "hard-downgrade-one-step"])
def test_a_hard_downgrade_wants_offsets_in_the_global_topic_first(name: str) -> None:
    snapshot = cluster(E, E, dedicated=("orders",))
    with pytest.raises(
        Refused, match="connectctl offsets merge orders --into global --unset-topic --stop"
    ):
        named(name).plan(MigrationInput(snapshot))


def test_what_depends_on_connectors_that_nobody_read_is_unknown() -> None:
    unread = replace(
        cluster(D, dedicated=()), connectors=None, unseen=("connector status: no worker answers",)
    )
    found = {m.number: m.status_of(unread) for m in migrations() if m.of_connectors}
    assert set(found) == {6, 7, 8, 9}
    assert {each.status for each in found.values()} == {Status.UNKNOWN}
    assert all("no worker answers" in each.why for each in found.values())
    assert named("0007").status_of(replace(unread, connectors=0)).status is Status.CONVERGED
