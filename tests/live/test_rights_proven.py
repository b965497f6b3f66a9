"""The table of rights is what brokers do: a command works with exactly its rows, and without one of
them as the row says.

``pytest tests/live/test_rights_proven.py -m 'slow or not slow' -s`` takes every row away in turn,
runs every command as each of the principals of ``principals.py``, and prints the tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import draws
import pytest
from connectctl.ops.core.rights import COMMANDS, Effect, Name, Need, When, needs_of
from connectctl.ops.core.unseen import NOT_SEEN
from connectctl.ops.kafka.acls import Right
from live import principals
from live.grants import Grants
from live.rawproducer import RawProducers
from live.real import Ran
from live.rightsways import WAYS
from live.rightsworld import RightsWorld, sandbox_with_authorizer

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = pytest.mark.live


@pytest.fixture(scope="module")
def guarded(state_home: Path) -> Iterator[Sandbox]:
    from connectctl.ops.sandbox.cluster import down, up

    yield up(sandbox_with_authorizer("rights"))
    down("rights")


@pytest.fixture(scope="module")
def world(guarded: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RightsWorld]:
    grants, raw = Grants(guarded), RawProducers(guarded.bootstrap_servers)
    yield RightsWorld(guarded, grants, tmp_path_factory.mktemp("rights"), raw)
    grants.close()
    raw.close()


def told(ran: Ran) -> str:
    return f"exit {ran.code}\n{ran.out}\n{ran.err}"


def usual(world: RightsWorld, command: str) -> Ran:
    """What the command does with every right."""
    run = WAYS[command].run(world)
    words = run.words
    return world.run(*words, context="super", stdin=run.stdin)


REFUSED_ANYWAY = {"transactions commit"}
"""Commands that are refused with every right: a transaction is committed only where a broker has
lost its marker.

Such a broker is that of ``test_transactions_decided.py``, which proves the rows of
``transactions commit``.
"""


@pytest.mark.parametrize("command", WAYS)
def test_a_command_works_with_exactly_its_rows(world: RightsWorld, command: str) -> None:
    whole = usual(world, command)
    assert whole.code in (0, 1, 3, 7) or command in REFUSED_ANYWAY, told(whole)
    run = WAYS[command].run(world)
    with world.allowed(tuple(needs_of(command))):
        ran = run()
    said = ran.out + ran.err
    assert ran.code == whole.code, told(ran)
    assert "SIGHT" not in said, said
    assert "not authorized" not in said.lower(), said


UNUSED = {("connectors cure", Name.LOCK), ("run status", Name.RUN_STATUS)}
"""Rows that are for another case than the one tried here: nothing has to be cured, and no run took
a connector over.
"""


def verdict(world: RightsWorld, command: str, need: Need) -> str:
    """What becomes of the command without one row, or an empty text where it is what the row
    says.
    """
    whole = usual(world, command)
    run = WAYS[command].run(world)
    with world.allowed(tuple(needs_of(command)), without=need):
        ran = run()
    if need.effect is Effect.PART:
        return told(ran) if ran.code in (4, 5, 70) and ran.code != whole.code else ""
    if ran.code == whole.code:
        # A row with a condition is for another case; what is refused anyway proves nothing of the
        # row.
        elsewhere = (
            need.when is not When.ALWAYS
            or command in REFUSED_ANYWAY
            or (command, need.name) in UNUSED
        )
        return "" if elsewhere else f"not refused: {told(ran)}"
    if not principals.is_refusal(ran, [need]):
        return f"the code is not that of a refusal: {told(ran)}"
    return "" if is_named(ran, need, list(world.rights_of(need))) else f"not named: {told(ran)}"


def is_named(ran: Ran, need: Need, rights: Sequence[Right]) -> bool:
    """Whether a refusal names the right: a broker that refuses Write does not tell whether Describe
    is missing, too.
    """
    said = ran.out + ran.err
    kind = need.resource.value.replace("_", " ").lower()
    plainly = need.operation.word in said and kind in said.lower()
    return plainly or any(f"on {right.resource.word} {right.name}" in said for right in rights)


@pytest.mark.slow
@pytest.mark.parametrize("command", WAYS)
def test_without_a_row_a_command_does_what_the_row_says(world: RightsWorld, command: str) -> None:
    found = {}
    for need in needs_of(command):
        if not list(world.rights_of(need)):
            continue
        row = f"{need.operation.word} on {need.name}: {need.effect}"
        said = verdict(world, command, need)
        print(f"{command} without {row}: {said or 'so it is'}")
        if said:
            found[row] = said
    assert not found


def check_principals(world: RightsWorld, command: str, drawn: Sequence[str]) -> None:
    whole = usual(world, command)
    cells = {}
    for principal in drawn:
        cells[principal], ran = principals.cell(world, command, principal, whole)
        if cells[principal].wrong:
            print(f"\n--- {command}, {principal}: {cells[principal].wrong}\n{told(ran)}")
    print(
        f"\n{command:22}",
        *(f"{cells[each]!s:>3}" if each in cells else "   " for each in principals.PRINCIPALS),
    )
    assert {principal: cell.wrong for principal, cell in cells.items() if cell.wrong} == {}


@pytest.mark.drawn(9)
@pytest.mark.parametrize("command", WAYS)
def test_a_principal_without_rights_gets_no_all_clear(world: RightsWorld, command: str) -> None:
    """Each commit draws a sixth of the commands, and a principal for each of them;
    ``CONNECTCTL_TEST_DRAW`` draws as another one does.
    """
    check_principals(
        world,
        command,
        [*draws.chosen([*principals.PRINCIPALS], 1, f"{draws.drawn_by()} {command}")],
    )


@pytest.mark.slow
@pytest.mark.parametrize("command", WAYS)
def test_no_principal_without_rights_gets_an_all_clear(world: RightsWorld, command: str) -> None:
    check_principals(world, command, principals.PRINCIPALS)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("principal", principals.PRINCIPALS)
def test_doctor_says_what_a_principal_could_not_see(
    world: RightsWorld, principal: str, tmp_path: Path
) -> None:
    bindings = principals.principals(world)[principal]
    page = tmp_path / "doctor.html"
    with principals.given(world, bindings):
        ran = world.run("doctor", "-o", "json", "--html", str(page))
    if ran.code == 5:
        assert "uthoriz" in ran.err, told(ran)
        assert not page.exists()
        return
    unseen = [each for each in ran.json["findings"] if each["id"] == NOT_SEEN.id]
    for each in unseen:
        print(f"{principal}: {each['subject']}: {each['message']} {each['nextStep']}")
    missing = principals.lacking(world, "doctor", bindings)
    always = [need for need in missing if need.when is When.ALWAYS]
    # A row with a condition may be for another case than that of this world.
    assert unseen if always else missing or not unseen, told(ran)
    assert not unseen or 'class="verdict good"' not in page.read_text()


ELSEWHERE = {"run job"}
"""Proven by ``test_run_conformance.py``, with a principal of its own."""


def test_every_command_of_the_table_is_proven() -> None:
    assert {command for command, needs in COMMANDS.items() if needs} - set(WAYS) == ELSEWHERE
