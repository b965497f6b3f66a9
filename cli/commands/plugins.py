"""``connectctl plugins``: the plugins of the workers, and the properties of each."""

from __future__ import annotations

from typing import Annotated

import typer
from connectctl.cli import completed_names
from connectctl.cli.options import ListOption, command_group
from connectctl.cli.output import terminal
from connectctl.cli.output.terminal import Output
from connectctl.cli.session import Session
from connectctl.ops.operations.cluster import plugins
from connectctl.ops.operations.cluster.plugins import WorkersPlugins
from connectctl.ops.operations.connectors.access import open_cluster

TYPES = (
    "source",
    "sink",
    "converter",
    "header_converter",
    "transformation",
    "predicate",
    "configprovider",
    "rest_extension",
    "connector_client_config_override_policy",
)
"""Connect's types of plugins (``PluginType``)."""
app = command_group("List plugins, and show their properties.")


@app.command("list")
def list_(
    ctx: typer.Context,
    types: Annotated[
        list[str] | None,
        typer.Option(
            "--type",
            metavar="TYPE",
            help="Only plugins of a type: source, sink, converter … Repeatable.",
            autocompletion=completed_names.one_of(*TYPES),
        ),
    ] = None,
    output: ListOption = Output.TABLE,
) -> None:
    """List the plugins of all workers: type, class, version, and the workers that have it.

    \b
    Examples:
      connectctl plugins list
      connectctl plugins list --type source --type sink -o name

    Several versions of a class are several rows (KIP-891, workers of Kafka 4.1 or newer). Plugins
    that only some workers have are listed on standard error. Workers before Kafka 3.2 list
    connectors only. Exit code 1: a worker did not answer, so its plugins are unknown.
    """
    session: Session = ctx.obj
    found = plugins.read(open_cluster(session).calls)
    wanted = {each.lower() for each in types or ()}
    shown = [plugin for plugin in found.plugins if not wanted or plugin.type in wanted]
    rows = [
        {"class": p.name, "type": p.type, "version": p.version, "workers": list(p.workers)}
        for p in shown
    ]
    silent = {worker: str(error) for worker, error in found.silent.items()}
    data = {"workers": list(found.workers), "silentWorkers": silent, "plugins": rows}

    def table(wide: bool) -> None:
        columns = ["TYPE", "VERSION", "WORKERS", "CLASS"]
        cells = [
            [p.type, p.version or "-", _workers(p.workers, found, wide), p.name] for p in shown
        ]
        empty = "No plugin of this type." if wanted else "There are no plugins."
        spare = () if wide else ("WORKERS",)
        terminal.table(columns, cells, empty=empty, spare=spare, open_end=True)

    terminal.emit("PluginList", data, output, table)
    _warn(found)
    if silent:
        raise typer.Exit(1)


@app.command()
def show(
    ctx: typer.Context,
    plugin: Annotated[
        str,
        typer.Argument(
            metavar="CLASS",
            help="A class, or the last part of its name.",
            autocompletion=completed_names.plugin_classes,
        ),
    ],
    version: Annotated[
        str | None,
        typer.Option(
            "--plugin-version", metavar="V", help="One of several versions.  [default: the newest]"
        ),
    ] = None,
    output: ListOption = Output.TABLE,
) -> None:
    """Show the configuration of a plugin: every property with type, default, importance and
    documentation (KIP-769).

    \b
    Examples:
      connectctl plugins show FileStreamSource
      connectctl plugins show JsonConverter -o wide       with groups and widths
      connectctl plugins show MirrorSourceConnector -o name

    Needs workers of Kafka 3.2 or newer.
    """
    session: Session = ctx.obj
    calls = open_cluster(session).calls
    found = plugins.read(calls)
    named = found.named(plugin)
    properties = plugins.definitions(calls, named, version)
    versions = [{"version": p.version, "workers": list(p.workers)} for p in named]
    data = {
        "class": named[0].name,
        "type": named[0].type,
        "versions": versions,
        "properties": properties,
    }

    def table(wide: bool) -> None:
        versions_on = ", ".join(
            f"{p.version or 'no version'} on {_workers(p.workers, found, True)}" for p in named
        )
        terminal.note(f"{named[0].name} ({named[0].type}): {versions_on}")
        columns = [
            "PROPERTY",
            "TYPE",
            "DEFAULT",
            "IMPORTANCE",
            *(["GROUP", "WIDTH"] if wide else []),
            "DOCUMENTATION",
        ]
        rows = [
            [
                each["name"],
                each.get("type"),
                "(required)" if each.get("required") else each.get("default_value"),
                each.get("importance"),
                *([each.get("group"), each.get("width")] if wide else []),
                each.get("documentation"),
            ]
            for each in properties
        ]
        empty = f"{named[0].name} takes no properties."
        terminal.table(columns, rows, empty=empty, spare=() if wide else ("IMPORTANCE",))

    terminal.emit("Plugin", data, output, table)
    _warn(found)


def _workers(workers: tuple[str, ...], found: WorkersPlugins, wide: bool) -> str:
    return "all" if len(workers) == len(found.workers) and not wide else ", ".join(workers)


def _warn(found: WorkersPlugins) -> None:
    """Print plugins that differ between workers, and workers that did not respond, on standard
    error.
    """
    for plugin in found.differing():
        lacking = ", ".join(worker for worker in found.workers if worker not in plugin.workers)
        version = f" {plugin.version}" if plugin.version else ""
        terminal.note(f"warning: {plugin.name}{version} is not on {lacking}", style="yellow")
    for worker, error in found.silent.items():
        terminal.note(f"warning: the plugins of {worker} are not known: {error}", style="yellow")
