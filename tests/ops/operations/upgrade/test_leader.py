"""What the leader's transactional id proves of who leads, and what it does not."""

from __future__ import annotations

from pathlib import Path

from fakes.rollingworld import FakeWorker, RollingWorld


def test_a_leader_that_wrote_once_more_before_it_left_does_not_make_its_successor_preparing(
    tmp_path: Path,
) -> None:
    def writes_once_more(world: RollingWorld, name: str) -> None:
        if name == "b":
            assert world.who is not None
            world.who, world.written = (world.who[0], world.who[1] + 1), True

    world = RollingWorld.of(tmp_path, "preparing", "preparing", on_restart=writes_once_more)
    result = world.run("upgrade", "apply", "--to", "disabled", "--yes")
    assert result.exit_code == 0, result.stderr
    assert world.modes() == {"a": "disabled", "b": "disabled"}
    assert "preparing" not in world.run("upgrade", "status", "-o", "json").stdout


def test_a_new_leader_that_initialised_the_id_is_proven_to_be_preparing(tmp_path: Path) -> None:
    world = RollingWorld.of(tmp_path, "disabled", "disabled")
    result = world.run("upgrade", "apply", "--to", "preparing", "--yes")
    assert result.exit_code == 0, result.stderr
    assert "a:8083 preparing (verified)" in result.stdout


def test_a_stranger_that_is_proven_to_be_enabled_is_not_waited_for(tmp_path: Path) -> None:
    def joined(world: RollingWorld, name: str) -> None:
        world.workers.setdefault("c", FakeWorker("enabled", "enabled", member="m99"))

    world = RollingWorld.of(tmp_path, "disabled", "disabled", on_restart=joined)
    result = world.run("upgrade", "apply", "--to", "preparing", "--yes")
    assert result.exit_code == 7
    assert "c:8083 is enabled" in result.stderr
    assert world.clock < 30
