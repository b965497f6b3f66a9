"""Options and arguments that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from enum import StrEnum
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

import typer
from connectctl.cli import completed_names
from connectctl.cli.output.terminal import Output


def command_group(help: str) -> typer.Typer:
    """Return a command that has subcommands."""
    return typer.Typer(rich_markup_mode=None, add_completion=False, no_args_is_help=True, help=help)


UseOption = Annotated[bool, typer.Option("--use", help="Make it the current context.")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Print the plan, and do nothing.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Perform the plan without asking.")]


def _refuse_name(output: Output) -> Output:
    """Reject ``name``, which is for lists only. Raises ``typer.BadParameter``."""
    if output is Output.NAME:
        raise typer.BadParameter("'name' is not one of 'table', 'wide', 'json', 'yaml'.")
    return output


OutputOption = Annotated[
    Output,
    typer.Option(
        "--output",
        "-o",
        help="table, wide, json or yaml.",
        metavar="table|wide|json|yaml",
        callback=_refuse_name,
    ),
]
ListOption = Annotated[
    Output,
    typer.Option("--output", "-o", help="table, wide, json, yaml; name for one name a line."),
]
StopOption = Annotated[
    bool,
    typer.Option(
        "--stop", help="Stop the connector, and restore its state after a successful write."
    ),
]
ForceOption = Annotated[
    bool, typer.Option("--force", help="Also offsets that the connector would refuse.")
]
WaitOption = Annotated[
    bool,
    typer.Option(
        "--wait", help="Wait for the target state, for --timeout seconds; fail at once on FAILED."
    ),
]


@dataclass(frozen=True)
class ApplyOptions:
    """Options of every command that changes something; see ``with_options``."""

    dry_run: DryRunOption = False
    yes: YesOption = False
    output: OutputOption = Output.TABLE


@dataclass(frozen=True)
class OffsetOptions(ApplyOptions):
    """Options of commands that change offsets."""

    stop: StopOption = False


@dataclass(frozen=True)
class ForcedOffsetOptions(OffsetOptions):
    """Options of commands that write offsets of another origin than the connector itself."""

    force: ForceOption = False


@dataclass(frozen=True)
class WaitOptions(ApplyOptions):
    """Options of commands that can wait for connectors."""

    wait: WaitOption = False


@dataclass(frozen=True)
class UndoOptions(WaitOptions):
    """Options of ``runs undo``. ``stop`` is for changes of offsets."""

    stop: StopOption = False


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add an option for each annotated field of ``command``'s parameter ``options``, a dataclass;
    inherited ones last.
    """
    hints = get_type_hints(command, include_extras=True)
    own = [
        p.replace(annotation=hints[p.name])
        for p in signature(command).parameters.values()
        if p.name != "options"
    ]
    group = hints["options"]
    types = get_type_hints(group, include_extras=True)
    by_class = [
        [name for name in types if name in vars(base).get("__annotations__", ())]
        for base in group.__mro__
    ]
    names = dict.fromkeys(
        name for some in by_class for name in some if hasattr(types[name], "__metadata__")
    )
    defaults = {field.name: field.default for field in fields(group)}

    @wraps(command)
    def run(**given: Any) -> None:
        options = group(**{name: given.pop(name) for name in names})
        if not isinstance(options, ApplyOptions) or "ctx" not in given:
            command(**given, options=options)
            return
        from connectctl.cli.lock_wait import retried

        retried(given["ctx"].obj, lambda: command(**given, options=options), given)

    kind = Parameter.KEYWORD_ONLY
    shared = [
        Parameter(name, kind, default=defaults[name], annotation=types[name]) for name in names
    ]
    run.__signature__ = Signature([*own, *shared])  # type: ignore[attr-defined]  # Typer reads it
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in (*own, *shared)}
    return run


PENDING = 3
"""The exit code if something differs or changes are pending."""
HealthOption = Annotated[
    bool,
    typer.Option("--exit-code", help="Exit with 1 unless everything is healthy and could be read."),
]
PendingOption = Annotated[
    bool,
    typer.Option("--exit-code", help="Exit with 3 if something differs or changes are pending."),
]
ExplainOption = Annotated[
    str | None,
    typer.Option(
        "--explain",
        metavar="ID",
        help="Explain a finding in full.",
        autocompletion=completed_names.findings,
    ),
]
ListFindingsOption = Annotated[bool, typer.Option("--list", help="List all findings.")]
HtmlOption = Annotated[
    Path | None,
    typer.Option(
        "--html", metavar="FILE", help="Also write an HTML page: one self-contained file."
    ),
]
RecursiveOption = Annotated[
    bool, typer.Option("--recursive", "-R", help="Directories with their subdirectories.")
]
EnvFileOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--env-file",
        metavar="FILE",
        help="Replace ${NAME} in the files by the NAME=VALUE lines of FILE. Repeatable.",
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="Replace ${NAME} in the files. Repeatable."),
]
PatienceOption = Annotated[
    float,
    typer.Option(
        "--patience",
        metavar="SECONDS",
        min=0,
        help="How long to wait for open transactions to end.",
    ),
]

ConnectorArgument = Annotated[
    str, typer.Argument(metavar="CONNECTOR", autocompletion=completed_names.connectors)
]
OptionalConnectorArgument = Annotated[
    str | None, typer.Argument(metavar="[CONNECTOR]", autocompletion=completed_names.connectors)
]
GroupOption = Annotated[
    str | None,
    typer.Option(
        "--group", metavar="GROUP", help="A consumer group instead of a connector (of a transform)."
    ),
]
ConnectorsArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="[CONNECTOR]...", autocompletion=completed_names.connectors),
]
RunArgument = Annotated[str, typer.Argument(metavar="RUN", autocompletion=completed_names.runs)]


class ReportOutput(StrEnum):
    """Values of ``-o`` for commands that return findings."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    SARIF = "sarif"
    JUNIT = "junit"
    GITHUB = "github"


FailOn = Literal["error", "warning"]
"""The lowest severity with exit code 1."""


@dataclass(frozen=True)
class ReportOptions:
    """Options of commands that return findings."""

    fail_on: Annotated[FailOn, typer.Option("--fail-on", help="Exit 1 from this severity on.")] = (
        "error"
    )
    ignore: Annotated[
        list[str] | None,
        typer.Option(
            "--ignore",
            metavar="ID",
            help="Leave out findings of this id. Repeatable.",
            autocompletion=completed_names.findings,
        ),
    ] = None
    output: Annotated[
        ReportOutput,
        typer.Option(
            "--output", "-o", help="table, wide, json, yaml; sarif, junit or github for CI."
        ),
    ] = ReportOutput.TABLE


ForVersionOption = Annotated[
    str | None,
    typer.Option("--for-version", metavar="X.Y", help="Kafka release of the planned upgrade."),
]
