"""What the pages of the documentation show is what happens."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from documentation import PAGES, ROOT, blocks, commands, name
from live.shownlines import LAST, MADE, addresses, carry_out, fresh, run

BEGINNING = "docs/commands/sandbox.md"
CONNECTOR = "docs/commands/connectors.md"
"""Makes the connector of the pages behind it."""
JOURNEYS = {
    "connectors": (
        BEGINNING,
        "docs/commands/context.md",
        "docs/commands/cluster.md",
        CONNECTOR,
        "docs/commands/plugins.md",
        "docs/commands/loggers.md",
        "docs/how-to/from-kcctl.md",
        "docs/how-to/connectors-as-code.md",
        "docs/commands/completion.md",
        "docs/commands/docs.md",
    ),
    "checks and offsets": (
        BEGINNING,
        CONNECTOR,
        "docs/commands/preflight.md",
        "docs/commands/doctor.md",
        "docs/commands/bundle.md",
        "docs/commands/validate.md",
        "docs/how-to/templates.md",
        "docs/commands/tasks.md",
        "docs/commands/upgrade.md",
        "docs/how-to/exactly-once.md",
        "docs/how-to/ci.md",
        "docs/commands/offsets.md",
        "docs/commands/runs.md",
        "docs/how-to/move-offsets.md",
        "docs/how-to/own-offsets-topic.md",
        "docs/commands/fence.md",
        "docs/how-to/fenced-tasks.md",
        "docs/commands/transactions.md",
    ),
    "Spark": (
        BEGINNING,
        CONNECTOR,
        "docs/commands/run.md",
        "docs/how-to/transforms.md",
        "docs/how-to/single-message-transforms.md",
        "docs/how-to/own-connector.md",
        "docs/commands/audit.md",
    ),
}
"""Each is one sequence on a sandbox of its own: a page finds what those before it left."""


@pytest.mark.live
@pytest.mark.drawn
@pytest.mark.parametrize("journey", JOURNEYS)
def test_every_command_of_the_documentation_does_what_it_shows(
    tmp_path: Path, journey: str
) -> None:
    """One page after the other, in one directory, with one state directory.

    What a page exports counts on that page. Its brokers and group, where it names some, are the
    sandbox's.
    """
    bare = fresh(tmp_path)
    work = tmp_path / "work"
    try:
        for page in (ROOT / each for each in JOURNEYS[journey]):
            environment = bare | {"CONNECTCTL_CONTEXT": "sandbox-default"}
            for block in blocks(page):
                if block.file:
                    (work / block.file).parent.mkdir(exist_ok=True)
                    (work / block.file).write_text(block.text)
            for shown in commands(page):
                if exported := re.fullmatch(r"export (\w+)=(\S+)", shown.command):
                    if exported[1] in ("CONNECTCTL_BOOTSTRAP_SERVERS", "CONNECTCTL_GROUP_ID"):
                        environment = bare | addresses(tmp_path / "state")
                    else:
                        environment[exported[1]] = exported[2]
                elif shown.command != LAST:
                    run(shown, environment, work)
        run(
            next(shown for shown in commands(ROOT / BEGINNING) if shown.command == LAST), bare, work
        )
    finally:
        assert carry_out(LAST, bare, work).code == 0
        for made in MADE:
            (Path("/tmp") / made).unlink(missing_ok=True)


def test_every_page_that_shows_commands_has_its_turn() -> None:
    assert sorted(name(page) for page in PAGES if [*commands(page)]) == sorted(
        ["README.md", *{page for pages in JOURNEYS.values() for page in pages}]
    )
