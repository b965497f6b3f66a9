"""Every command by every way in, and with each right taken away alone: the true picture, or the
name of what is missing.

``pytest tests/live/test_secured_matrix.py -m 'slow or not slow' -s`` runs every cell and prints the
table.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from connectctl.ops.kafka.acls import ANY, Operation, Resource, Right
from live.real import FILE_SOURCE, Workers, eventually
from live.securedcluster import rest
from live.securedmatrix import (
    DEDICATED,
    OPEN_ID,
    OWN,
    RESTING,
    SOURCE,
    TARGET,
    Matrix,
    Verdict,
    allow_everything,
    contexts,
    differing,
    leave_open,
    prepare_topics,
)

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = pytest.mark.live
WAYS = ("sandbox-secured", "sandbox-secured-plain", "sandbox-secured-oauth", "sandbox-secured-mtls")
GROUP = "connect-sandbox-secured"
CONFIG, OFFSETS, STATUS = (f"{GROUP}-{role}" for role in ("config", "offsets", "status"))
ROWS = {
    "cluster show": ("cluster", "show"),
    "connectors list": ("connectors", "list"),
    "connectors show": ("connectors", "show", SOURCE),
    "connectors stop": ("connectors", "stop", SOURCE, "--dry-run"),
    "connectors restart": ("connectors", "restart", SOURCE, "--dry-run"),
    "offsets show": ("offsets", "show"),
    "offsets diff": ("offsets", "diff", OWN),
    "offsets reset": ("offsets", "reset", RESTING, "--dry-run"),
    "offsets copy": ("offsets", "copy", RESTING, "matrix-copied", "--dry-run"),
    "offsets merge": ("offsets", "merge", OWN, "--into", "dedicated", "--stop", "--dry-run"),
    "fence": ("fence", RESTING, "--dry-run"),
    "fence --prefix": ("fence", "--prefix", f"{GROUP}-{RESTING}", "--dry-run"),
    "tasks check": ("tasks", "check"),
    "preflight": ("preflight",),
    "transactions list": ("transactions", "list"),
    "transactions show": ("transactions", "show", OPEN_ID),
    "transactions hanging": ("transactions", "hanging", "--topic", TARGET),
    "transactions lag": ("transactions", "lag", "--topic", TARGET),
    "transactions abort": ("transactions", "abort", OPEN_ID, "--dry-run"),
    "run status": ("run", "status"),
    "audit": ("audit", TARGET, "--patience", "0"),
    "upgrade list": ("upgrade", "list"),
    "upgrade plan": ("upgrade", "plan", "--to", "disabled"),
    "upgrade status": ("upgrade", "status"),
}
D, R, DC = Operation.DESCRIBE, Operation.READ, Operation.DESCRIBE_CONFIGS
TOPIC, ID = Resource.TOPIC, Resource.TRANSACTIONAL_ID
RIGHTS = (
    Right(D, Resource.GROUP, GROUP),
    *(
        Right(operation, TOPIC, topic)
        for topic in (CONFIG, OFFSETS, STATUS, DEDICATED, TARGET)
        for operation in (D, R)
    ),
    Right(DC, TOPIC, OFFSETS),
    Right(R, TOPIC, "__transaction_state"),
    Right(D, ID, f"{GROUP}-{RESTING}-0"),
    Right(D, ID, OPEN_ID),
    Right(D, ID, ANY),
    Right(D, Resource.CLUSTER),
    Right(DC, Resource.CLUSTER),
)
OFTEN = {
    Right(D, Resource.GROUP, GROUP): ("cluster show", "connectors stop", "offsets reset", "fence"),
    Right(R, TOPIC, CONFIG): ("offsets show", "fence"),
    Right(D, TOPIC, DEDICATED): ("offsets show", "offsets diff", "preflight"),
    Right(D, ID, ANY): ("transactions list", "fence --prefix", "transactions hanging"),
    Right(R, TOPIC, "__transaction_state"): ("transactions hanging",),
}
"""The cells that run by default: those in which absence was taken for a fact."""


@pytest.fixture(scope="module")
def matrix(secured: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Matrix]:
    place = tmp_path_factory.mktemp("matrix")
    (place / "source.txt").write_text("one\ntwo\nthree\n")
    config = {
        "connector.class": FILE_SOURCE,
        "file": str(place / "source.txt"),
        "topic": TARGET,
        "tasks.max": "1",
    }
    prepare_topics(secured)
    workers = rest(secured)
    for name, more in ((SOURCE, {}), (RESTING, {}), (OWN, {"offsets.storage.topic": DEDICATED})):
        workers.create(name, config | more)
        settled(workers, name)
    workers.call("PUT", f"/connectors/{RESTING}/stop")
    eventually(lambda: workers.state(RESTING) == ["STOPPED"])
    allow_everything(secured)
    producer = leave_open(secured)
    yield Matrix(secured, place, contexts(secured, place), ROWS)
    producer.abort_transaction(60)
    for name in (SOURCE, RESTING, OWN):
        workers.delete(name)


def settled(workers: Workers, name: str) -> None:
    """Wait until the connector has read its file."""
    eventually(lambda: workers.state(name) == ["RUNNING", "RUNNING"])
    eventually(lambda: workers.offsets(name))


def judged(matrix: Matrix, cells: dict[Right, tuple[str, ...]]) -> dict[tuple[str, Right], Verdict]:
    """The verdicts of these cells; those that are bad are printed with what the command said."""
    found = {}
    for row in dict.fromkeys(row for rows in cells.values() for row in rows):
        usual, _ = matrix.whole(row)
        assert usual.code in (0, 1), f"{row}, with every right: {usual.words}"
    for right, rows in cells.items():
        with matrix.denied(right):
            cut = {row: matrix.without(row, right) for row in rows}
        for row, (given, ran) in cut.items():
            found[row, right] = given if given.is_good else matrix.anew(row, ran, right)
            if not found[row, right].is_good:
                print(f"\n--- {row} without {right}: exit {ran.code}\n{ran.words[:3000]}")
    return found


def table(found: dict[tuple[str, Right], Verdict]) -> str:
    """Rows are commands, columns rights, by number."""
    rights = list(dict.fromkeys(right for _, right in found))
    width = max(len(row) for row, _ in found)
    lines = [f"{number:>2}  {right}" for number, right in enumerate(rights, 1)]
    lines.append(" " * width + "".join(f"{number:>8}" for number in range(1, len(rights) + 1)))
    for row in dict.fromkeys(row for row, _ in found):
        cells = (found.get((row, right)) for right in rights)
        lines.append(
            f"{row:{width}}" + "".join(f"{cell.value if cell else '':>8}" for cell in cells)
        )
    return "\n".join(lines)


def check(matrix: Matrix, cells: dict[Right, tuple[str, ...]]) -> None:
    found = judged(matrix, cells)
    print(f"\n{table(found)}\n{len(found)} cells")
    assert not {
        f"{row} without {right}": str(cell)
        for (row, right), cell in found.items()
        if not cell.is_good
    }


def test_nothing_is_left_out_in_silence(matrix: Matrix) -> None:
    check(matrix, OFTEN)


@pytest.mark.slow
def test_nothing_is_left_out_in_silence_by_any_command_without_any_right(matrix: Matrix) -> None:
    check(matrix, dict.fromkeys(RIGHTS, tuple(ROWS)))


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_every_command_works_by_every_way_in(matrix: Matrix, way: str) -> None:
    for row in ROWS:
        usual, moving = matrix.whole(row)
        ran = matrix.run(row, way)
        assert (ran.code, differing(usual, ran) - moving) == (usual.code, set()), (
            f"{row} by {way}: {ran.words}"
        )
