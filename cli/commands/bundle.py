"""``connectctl bundle``: everything that ``doctor`` reads, in one archive."""

from __future__ import annotations

import json
import secrets
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from connectctl.cli.options import ConnectorsArgument, OutputOption
from connectctl.cli.output import terminal
from connectctl.cli.output.terminal import Output
from connectctl.ops.config import paths, whole_file
from connectctl.ops.core.finding import counted

if TYPE_CHECKING:
    from connectctl.cli.session import Session
    from connectctl.ops.checks.bundle.archive import Bundle

app = typer.Typer(rich_markup_mode=None, add_completion=False)
SECRET_BYTES = 32


def _secret() -> bytes:
    """Return the secret of this machine's pseudonyms; it is made when it is first needed."""
    path = paths.state_directory() / "pseudonyms.key"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        whole_file.write(path, secrets.token_bytes(SECRET_BYTES))
    return path.read_bytes()


@app.command()
def bundle(
    ctx: typer.Context,
    connectors: ConnectorsArgument = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="The archive to write; by default connectctl-GROUP-TIME.zip.",
        ),
    ] = None,
    redact_names: Annotated[
        bool,
        typer.Option(
            "--redact-names", help="Replace the names of topics and connectors by pseudonyms."
        ),
    ] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Save everything that doctor reads in one archive, without secrets.

    \b
    Examples:
      connectctl bundle                                the whole cluster
      connectctl bundle orders --out orders.zip        the cluster, and the connector orders
      connectctl bundle --redact-names --out anonymous.zip
      connectctl doctor -f orders.zip                  the same verdict, on any machine, without a network

    Secrets are masked by the names of their properties, by the definitions of plugins, by their
    form, and wherever a secret of a configuration is repeated. manifest.json in the archive tells
    what was read, when, and what was left out; verdict.json is what doctor found. With
    --redact-names a second file, FILE.names.json, maps pseudonyms to names: it stays here. The same
    name has the same pseudonym in all bundles of this machine.
    """
    session: Session = ctx.obj
    path = out or Path(f"connectctl-{session.group_id}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.zip")
    from connectctl.cli.views import checks
    from connectctl.ops.checks.bundle import archive, recording
    from connectctl.ops.checks.runner import doctor_run

    archive.check(path)
    recorded = recording.Recording(session)
    run = checks.checked(session, lambda: recorded.check(doctor_run, connectors or []))
    secret = _secret() if redact_names else None
    made = recorded.bundle(run, connectors or [], version("connectctl"), secret)
    archive.write(made, path)
    names = path.with_name(f"{path.name}.names.json")
    if made.names:
        whole_file.write(names, json.dumps(made.names, indent=2) + "\n")
    _report(path, names, made, output)


def _report(path: Path, names: Path, made: Bundle, output: Output) -> None:
    data = {"file": str(path), **made.manifest}
    if made.names:
        data["names"] = str(names)

    def table(wide: bool) -> None:
        rows = [[each["call"], each["answers"], each["errors"]] for each in made.manifest["read"]]
        if wide:
            terminal.table(["READ", "ANSWERS", "ERRORS"], rows)
        found = made.verdict["findings"]
        terminal.print_line(
            f"{path}: {counted(len(found), 'finding')}, {path.stat().st_size:,} bytes"
        )
        if made.names:
            terminal.print_line(f"{names}: the names of its pseudonyms; keep it")
        for what in made.manifest["leftOut"]:
            terminal.note(f"left out: {what}", style="yellow")

    terminal.emit("Bundle", data, output, table)
