"""``connectctl sandbox``: a real Kafka broker and real Connect workers on this machine."""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated, Any

import typer
from connectctl.cli import completed_names
from connectctl.cli.commands.context import change as context_change
from connectctl.cli.options import ListOption, OutputOption, UseOption, command_group
from connectctl.cli.output import terminal
from connectctl.cli.output.progress_bar import progress
from connectctl.cli.output.terminal import Output
from connectctl.cli.output.waiting import quiet, waiting
from connectctl.cli.session import SANDBOX
from connectctl.ops.core.errors import BadInput, ConnectctlError
from connectctl.ops.sandbox.jars.versions import LATEST

if TYPE_CHECKING:
    from collections.abc import Callable

    from connectctl.ops.sandbox.cluster import Sandbox
    from connectctl.ops.sandbox.progress import SandboxProgress
    from connectctl.ops.sandbox.status import ProcessStatus, SandboxStatus

app = command_group("Run a Kafka broker and Connect workers on this machine.")

NameOption = Annotated[
    str,
    typer.Option(
        "--name",
        help="Name of the sandbox.",
        metavar="NAME",
        autocompletion=completed_names.sandboxes,
    ),
]


@app.command()
def up(
    ctx: typer.Context,
    name: NameOption = "default",
    workers: Annotated[
        int, typer.Option(help="Number of Connect workers; 0 for only a broker.")
    ] = 2,
    support: Annotated[
        str,
        typer.Option(
            help="exactly.once.source.support of the workers: disabled, preparing or enabled.",
            autocompletion=completed_names.one_of("disabled", "preparing", "enabled"),
        ),
    ] = "disabled",
    kafka_version: Annotated[
        str, typer.Option(help="Kafka version of the workers, X.Y or X.Y.Z.", metavar="V")
    ] = LATEST,
    secured: Annotated[
        bool, typer.Option("--secured", help="Use TLS, authentication and ACLs: see below.")
    ] = False,
    brokers: Annotated[
        int, typer.Option(help="Number of brokers, 1 to 3; 3 tolerate the loss of one.")
    ] = 1,
    registry: Annotated[
        bool, typer.Option("--registry", help="Add a Schema Registry: see below.")
    ] = False,
    use: UseOption = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Start a sandbox and wait until it is ready.

    \b
    Examples:
      connectctl sandbox up --use && connectctl cluster show
      connectctl sandbox up --name old --kafka-version 3.9 --workers 3
      connectctl sandbox up --name three --brokers 3
      connectctl sandbox up --support enabled && connectctl --context sandbox-default cluster show
      connectctl sandbox up --name safe --secured && connectctl --context sandbox-safe-mtls cluster show

    Its jars are downloaded once for each version. The workers have Kafka's FileStream, MirrorMaker
    and test connectors. Everything listens on 127.0.0.1. Workers older than 4.0 get a broker of the
    newest version, which Kafka supports. A sandbox that runs with the same options is left as it
    is; one with a dead process is recreated. Processes keep running until connectctl sandbox down.

    With --secured the broker has listeners for SCRAM, PLAIN and OAUTHBEARER over TLS and for mutual
    TLS, and denies what no ACL allows; workers authenticate by SCRAM and serve REST over HTTPS with
    basic authentication. Certificates and passwords are created for this sandbox, in its directory.
    Context sandbox-NAME is admin over SCRAM; sandbox-NAME-plain, -oauth and -mtls are admin by the
    other mechanisms, and sandbox-NAME-nobody is a user without ACLs.

    With --registry there is Apicurio Registry with the API of Confluent's Schema Registry, without a
    login, and its Avro converter is a plugin of the workers. Schemas are kept in memory.
    """
    from connectctl.ops.sandbox import cluster

    spec = cluster.SandboxSpec(
        name=name,
        workers=workers,
        support=support,
        kafka_version=kafka_version,
        secured=secured,
        brokers=brokers,
        registry=registry,
    )
    began = time.monotonic()
    with ExitStack() as stack:
        try:
            sandbox = cluster.up(spec, shown(stack))
        except OSError as e:
            raise ConnectctlError(
                "The files of a sandbox cannot be written",
                why=f"{e.filename}: {e.strerror}" if e.filename else str(e),
                next_step="Set XDG_STATE_HOME and XDG_CACHE_HOME to directories that can be "
                "written, with free space.",
                code="unwritable",
            ) from e
    took = time.monotonic() - began
    if use:
        context_change.use(ctx.obj, f"{SANDBOX}{name}", dry_run=False)
    terminal.emit(
        "Sandbox",
        _sandbox_data(sandbox),
        output,
        lambda wide: _print_started(sandbox, took, used=use),
    )


@app.command()
def down(
    name: NameOption = "default",
    all_: Annotated[bool, typer.Option("--all", help="All sandboxes of this user.")] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """End a sandbox's processes and remove its files.

    \b
    Examples:
      connectctl sandbox down
      connectctl sandbox down --name old
      connectctl sandbox down --all

    Also cleans up after an up that was killed. The downloaded jars stay.
    """
    from connectctl.ops.sandbox import cluster

    if all_ and name != "default":
        raise BadInput("--name and --all cannot be used together", next_step="Use one of them.")
    wanted = cluster.names() if all_ else [name]
    done = [{"name": each, "removed": cluster.down(each)} for each in wanted]

    def table(wide: bool) -> None:
        for each in done:
            terminal.print_line(
                f"Sandbox {each['name']} removed."
                if each["removed"]
                else f"Sandbox not found: {each['name']}."
            )
        if not done:
            terminal.note("No sandboxes found.")

    terminal.emit("SandboxesRemoved", {"sandboxes": done}, output, table)


@app.command()
def status(
    name: Annotated[
        str | None,
        typer.Option(
            "--name",
            help="Name of the sandbox (default: all).",
            metavar="NAME",
            autocompletion=completed_names.sandboxes,
        ),
    ] = None,
    output: ListOption = Output.TABLE,
) -> None:
    """Show the processes of the sandboxes.

    \b
    Examples:
      connectctl sandbox status
      connectctl sandbox status --name old -o json
    """
    from connectctl.ops.sandbox import cluster
    from connectctl.ops.sandbox.status import status

    found = [status(each) for each in ([name] if name else cluster.names())]

    def table(wide: bool) -> None:
        columns = ["SANDBOX", "PROCESS", "STATE", "KAFKA", "PID", "ADDRESS", "UPTIME", "MEMORY"]
        rows = [row for each in found for row in _rows(each, wide=wide)]
        spare = () if wide else ("MEMORY", "UPTIME", "PID", "KAFKA")
        empty = "No sandbox is running. Start one: connectctl sandbox up."
        terminal.table([*columns, "LOG"] if wide else columns, rows, empty=empty, spare=spare)

    terminal.emit(
        "SandboxList", {"sandboxes": [_status_data(each) for each in found]}, output, table
    )


@app.command()
def logs(
    processes: Annotated[
        list[str] | None,
        typer.Argument(
            help="Processes: broker, worker-1 … (default: all).", metavar="[PROCESS]..."
        ),
    ] = None,
    name: NameOption = "default",
    lines: Annotated[
        int, typer.Option("-n", "--lines", help="Number of lines from the end of each log.", min=0)
    ] = 100,
    follow: Annotated[
        bool,
        typer.Option("--follow", "-f", help="Follow the logs until the sandbox is removed or ^C."),
    ] = False,
) -> None:
    """Print the logs of a sandbox's processes.

    \b
    Examples:
      connectctl sandbox logs
      connectctl sandbox logs worker-1 -n 20
      connectctl sandbox logs broker worker-2 --follow
    """
    from connectctl.ops.sandbox import logs
    from connectctl.ops.sandbox.layout import SandboxLayout
    from connectctl.ops.sandbox.status import status

    status(name)
    layout = SandboxLayout.of(name)
    files = logs.log_files(layout, processes or [])
    label = "{0} | {1}" if len(files) > 1 else "{1}"
    for process, path in files.items():
        for line in logs.last_lines(path, lines):
            terminal.print_line(label.format(process, line))
    if follow:
        with quiet():
            for process, line in logs.follow(files, is_over=lambda: not layout.root.exists()):
                terminal.print_line(label.format(process, line))


def shown(stack: ExitStack) -> Callable[[SandboxProgress], None]:
    """Show each stage as a line on standard error, and one with steps as a progress bar on a
    terminal.
    """
    stage, advance = "", None

    def show(now: SandboxProgress) -> None:
        nonlocal stage, advance
        if now.stage != stage:
            stack.close()
            stage, advance = now.stage, None
            terminal.note(f"{stage} …")
            stack.enter_context(waiting(stage))
            if now.total:
                advance = stack.enter_context(progress(stage))
        if advance is not None:
            advance(now.done, now.total)

    return show


def _sandbox_data(sandbox: Sandbox) -> dict[str, Any]:
    spec = sandbox.spec
    return {
        "name": spec.name,
        "alreadyUp": sandbox.was_running,
        "context": f"sandbox-{spec.name}",
        "contextFile": str(sandbox.context_path),
        "kafkaVersion": spec.kafka_version,
        "support": spec.support,
        "secured": spec.secured,
        "brokers": spec.brokers,
        "bootstrapServers": sandbox.bootstrap_servers,
        "clusterId": sandbox.cluster_id,
        "groupId": sandbox.group_id,
        "topics": sandbox.topics,
        "rest": list(sandbox.rest_urls),
        "missingPlugins": list(sandbox.missing_plugins),
        "olderPlugins": sandbox.older_plugins,
        "registry": sandbox.registry_url,
    }


def _print_started(sandbox: Sandbox, took: float, *, used: bool) -> None:
    spec = sandbox.spec
    when = "was already running" if sandbox.was_running else f"is up after {took:.1f} s"
    terminal.print_line(
        f"Sandbox {spec.name} {when}: Kafka {spec.kafka_version}, exactly-once support "
        f"{spec.support}."
    )
    for address in sandbox.bootstrap_servers.split(","):
        terminal.print_line(f"  broker   {address}")
    for url in sandbox.rest_urls:
        terminal.print_line(f"  worker   {url}")
    if sandbox.registry_url:
        terminal.print_line(f"  registry {sandbox.registry_url}")
    for plugin in sandbox.missing_plugins:
        terminal.note(f"  missing  {plugin} {spec.kafka_version}: not in the Maven repository")
    for release in sorted(set(sandbox.older_plugins.values())):
        plugins = [name for name, taken in sandbox.older_plugins.items() if taken == release]
        terminal.note(
            f"  older    {', '.join(sorted(plugins))}: {release}, because the Maven repository "
            f"does not have {spec.kafka_version}"
        )
    context = f"{SANDBOX}{spec.name}"
    if spec.workers:
        named = "" if used else f"--context {context} "
        terminal.print_line(f"  try      connectctl {named}cluster show")
    if not used:
        terminal.print_line(f"  use      connectctl context use {context}")
    terminal.print_line(f"  stop     connectctl sandbox down --name {spec.name}")


def _status_data(found: SandboxStatus) -> dict[str, Any]:
    return {
        "name": found.name,
        "state": found.state.value,
        "bootstrapServers": found.bootstrap_servers,
        "groupId": found.group_id,
        "clusterId": found.cluster_id,
        "processes": [
            {
                "name": process.name,
                "state": process.state.value,
                "kafkaVersion": process.kafka_version,
                "groupId": process.group_id or None,
                "address": process.address,
                "pid": process.pid,
                "uptimeSeconds": None if process.uptime is None else round(process.uptime, 1),
                "memoryBytes": process.memory,
                "log": str(process.log),
            }
            for process in found.processes
        ],
    }


def _rows(found: SandboxStatus, *, wide: bool) -> list[list[str]]:
    if not found.processes:
        return [[found.name, "", found.state.value, "", "", "", "", "", *([""] if wide else [])]]
    return [_row(found.name, process, wide=wide) for process in found.processes]


def _row(sandbox: str, process: ProcessStatus, *, wide: bool) -> list[str]:
    cells = [sandbox, process.name, process.state.value, process.kafka_version]
    cells += ["" if process.pid is None else str(process.pid), process.address]
    cells += ["" if process.uptime is None else duration(process.uptime)]
    cells += ["" if process.memory is None else f"{process.memory / 1e6:.0f} MB"]
    return [*cells, str(process.log)] if wide else cells


def duration(seconds: float) -> str:
    minutes, left = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02}m" if hours else f"{minutes}m{left:02}s" if minutes else f"{left}s"
