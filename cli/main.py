"""The program's entry point: global options, commands loaded when used, and the exit code of each
error.
"""

from __future__ import annotations

import errno
import io
import itertools
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer
from connectctl.cli.garbage_collection import collect_seldom
from connectctl.cli.help_text import ENVIRONMENT, format_help, format_parameter
from connectctl.cli.interrupt import Watch
from connectctl.cli.invocation import arguments
from connectctl.ops.core import errors
from connectctl.ops.core.interrupts import WORK
from typer.core import TyperGroup

EXIT_CODES: dict[type[BaseException], int] = {
    errors.BadInput: 2,
    errors.Refused: 4,
    errors.NoRestApi: 4,
    errors.Unreachable: 5,
    errors.TimedOut: 6,
    errors.PartDone: 7,
    errors.ConnectctlError: 1,
    KeyboardInterrupt: 130,
}
BUG = 70
READER_GONE = 128 + signal.SIGPIPE
"""The exit code of a program that SIGPIPE ended."""
WATCH = Watch()

COMMANDS = {
    "cluster": "Show workers, internal topics and connectors of a Connect cluster.",
    "connectors": "List, create, change, delete, stop, pause, resume and restart connectors.",
    "plugins": "List the plugins of the workers, and show the properties of each.",
    "loggers": "Show and change the workers' log levels.",
    "offsets": "Show and change source offsets: global, dedicated, effective, and what workers "
    "return.",
    "fence": "Fence zombie producers: by connector, transactional id, prefix or file.",
    "tasks": "Check connectors against tasks.max, now and after an upgrade.",
    "preflight": "Check a cluster before anything is changed: brokers, workers, topics, "
    "connectors, ACLs.",
    "doctor": "Find what is wrong now: since when, why, and the command to type.",
    "bundle": "Save everything that doctor reads in one archive, without secrets.",
    "validate": "Validate a connector configuration.",
    "transactions": "List transactions, find hanging ones, end them.",
    "run": "Run a connector's tasks on Spark, exactly once, from a job file.",
    "audit": "Prove on the topics that exactly-once held: transactions, duplicates, gaps.",
    "upgrade": "Roll exactly-once source support out over the workers, and back.",
    "runs": "List changes, resume interrupted ones, and apply saved plans.",
    "context": "Show where every setting comes from, and change the context file.",
    "sandbox": "A real Kafka broker and real Connect workers on this machine.",
    "demo": "Demonstrate connectctl on a sandbox, from start to finish.",
    "completion": "Print the completion script for bash, zsh or fish.",
    "docs": "Print the manual's pages, for man.",
}
_FOLDERS = frozenset(
    (
        "audit",
        "connectors",
        "context",
        "demo",
        "doctor",
        "offsets",
        "preflight",
        "run",
        "runs",
        "transactions",
        "upgrade",
    )
)
"""Commands that have several modules; the others have one each."""


def globals_first(args: Sequence[str], options: Sequence[Any]) -> list[str]:
    """Return ``args`` with the global ``options`` first; users may write them anywhere."""
    valued = {name for option in options if not option.is_flag for name in option.opts}
    first: list[str] = []
    rest: list[str] = []
    unread = list(args)
    while unread:
        arg = unread.pop(0)
        if arg == "--":
            rest += [arg, *unread]
            break
        if arg in ("--no-headers", "--rest-is-group"):
            first.append(arg)
        elif arg.partition("=")[0] in valued:
            first.append(arg)
            if "=" not in arg and unread:
                first.append(unread.pop(0))
        else:
            rest.append(arg)
    return first + rest


_OF_DISKS = frozenset(
    (errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOSPC, errno.EDQUOT, errno.EIO)
)
"""Errors of a file that are no bug: a disk that is full, broken or read-only, and missing
permissions.
"""


class ReaderGone(Exception):
    """The reader of the output closed its pipe."""


class Root(TyperGroup):
    """Loads a command's module when it is used, and exits with a documented code."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            return None
        if cmd_name not in self.commands:
            from importlib import import_module

            path = f"{cmd_name}.app" if cmd_name in _FOLDERS else cmd_name
            module = import_module(f"connectctl.cli.commands.{path}")
            command = typer.main.get_command(module.app)
            command.name = cmd_name
            format_help(command)
            self.commands[cmd_name] = command
        return self.commands[cmd_name]

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            hint = errors.did_you_mean(args[0], COMMANDS, "See connectctl --help.")
            raise errors.BadInput(f"Unknown command: {args[0]}", next_step=hint)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as e:
            raise ReaderGone from e  # Typer would exit with 1

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))
        with formatter.section(
            "Environment variables, overridden by options, and overriding the context file"
        ):
            formatter.write_dl(list(ENVIRONMENT.items()))

    def main(self, args: Sequence[str] | None = None, *rest: Any, **extra: Any) -> Any:
        given = list(sys.argv[1:] if args is None else args)
        for param in self.params:
            format_parameter(param)
        extra["standalone_mode"] = False
        extra["prog_name"] = "connectctl"
        if os.environ.get("_CONNECTCTL_COMPLETE"):
            # Typer registers its shells only if it adds its own options for completion.
            # typer does not export it
            from typer.completion import completion_init  # type: ignore[attr-defined]

            completion_init()
        WORK.resume.clear()
        WATCH.reported = False
        arguments[:] = given
        sys.exit(
            _run(
                lambda: super(Root, self).main(globals_first(given, self.params), *rest, **extra),
                given,
            )
        )


def _run(command: Any, args: Sequence[str]) -> int:
    """Run ``command`` and return its exit code; an exception becomes one line on standard error."""
    try:
        code = command()
        if code == EXIT_CODES[KeyboardInterrupt]:  # Typer returns ^C as a code and prints nothing
            _interrupted(args)
        # an error of the last write is reported here, not at the interpreter's exit
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except errors.ConnectctlError as e:
        code = exit_code(e)
        _report(args, e.what, e.why, e.next_step, e.code, code)
        return code
    except typer.TyperException as e:
        return _usage(e, args)
    except (KeyboardInterrupt, typer.Abort):
        _interrupted(args)
        return 130
    except (BrokenPipeError, ReaderGone):
        # The reader of the output has exited, as head does.
        _discard_output()
        return READER_GONE
    except OSError as e:
        if e.filename is not None and e.errno in _OF_DISKS:
            _report(
                args,
                f"{e.filename} cannot be used",
                e.strerror,
                "Correct its permissions, or free space.",
                "file",
                1,
            )
            return 1
        if e.filename is not None or e.errno not in (
            errno.ENOSPC,
            errno.EIO,
            errno.EBADF,
            errno.EFBIG,
            errno.EDQUOT,
        ):
            return _bug(e, args)
        _discard_output()
        _report(args, "The output cannot be written", e.strerror, None, "output", 1)
        return 1
    except Exception as e:  # noqa: BLE001  # a bug must not print a traceback
        if isinstance(e, SystemError) and isinstance(
            e.__cause__ or e.__context__, KeyboardInterrupt
        ):
            # Raised within a call in C that checks for it only when it returns, as librdkafka's
            # binding does.
            _interrupted(args)
            return 130
        return _bug(e, args)


def _interrupted(args: Sequence[str]) -> None:
    """Print the interruption, only once."""
    if not WATCH.reported:
        WATCH.reported = True
        _write(_interruption(args))


def _interruption(args: Sequence[str]) -> str:
    """Return the line that reports ^C, with the command that resumes a run in execution."""
    hint = f"Resume: {WORK.resume[-1]}" if WORK.resume else None
    return _line(args, "Interrupted", None, hint, "interrupted", EXIT_CODES[KeyboardInterrupt])


def exit_code(error: BaseException) -> int:
    """Return the documented exit code for ``error``."""
    return next(EXIT_CODES[kind] for kind in type(error).__mro__ if kind in EXIT_CODES)


def _usage(error: typer.TyperException, args: Sequence[str]) -> int:
    if type(error).__name__ == "NoArgsIsHelpError":
        sys.stderr.write(error.format_message() + "\n")
        return 2
    message = " ".join(error.format_message().split()).rstrip(".")
    message = message.replace("Value error, ", "").replace("Input should be", "it should be")
    context = getattr(error, "ctx", None)
    root = context.find_root().command if context is not None else None
    _report(args, message, None, f"See {_path(args, root)} --help.", "usage", 2)
    return 2


def _path(args: Sequence[str], root: Any = None) -> str:
    """Return the command that was typed, without the options between its words.

    ``root``: the tree of commands, if there is one; to build it takes as long as all other parsing.
    """
    words = ["connectctl"]
    known: Any = COMMANDS
    root = root or typer.main.get_command(app)
    for arg in globals_first(args, root.params):
        if arg in known:
            words.append(arg)
            command = root.get_command(None, arg) if len(words) == 2 else None
            known = getattr(command, "commands", {})
    return " ".join(words)


def _bug(error: Exception, args: Sequence[str]) -> int:
    import tempfile
    import traceback

    from connectctl.ops.config.masking import masked

    with tempfile.NamedTemporaryFile(
        "w", prefix="connectctl-bug-", suffix=".txt", delete=False
    ) as report:
        report.write(masked("".join(traceback.format_exception(error))))
    _report(
        args,
        f"This is a bug in connectctl: {type(error).__name__}",
        None,
        f"Report: {report.name}",
        "bug",
        BUG,
    )
    return BUG


def _report(
    args: Sequence[str], what: str, why: str | None, next_step: str | None, code: str, number: int
) -> None:
    _write(_line(args, what, why, next_step, code, number))


def _line(
    args: Sequence[str], what: str, why: str | None, next_step: str | None, code: str, number: int
) -> str:
    """Return the error in one line: as text, or as JSON if the output is JSON."""
    if _wants_json(args):
        from connectctl.cli.output import terminal

        return terminal.error_json(what, why, next_step, code, number)
    # The value that is wrong may be a file's longest line; the next step stands after it.
    from connectctl.cli.output.sanitize import cut
    from connectctl.cli.output.tables import LONGEST_SENTENCE

    what, why = cut(what, LONGEST_SENTENCE), why and cut(why, LONGEST_SENTENCE)
    return "error: " + " ".join(
        str(errors.ConnectctlError(what, why=why, next_step=next_step)).split()
    )


def _write(line: str) -> None:
    """Write a last line to standard error; a write error does not change the exit code."""

    from connectctl.cli.output import terminal

    with suppress(OSError):
        terminal.note(line, style="" if line.startswith("{") else "red")


def _wants_json(args: Sequence[str]) -> bool:
    pairs = itertools.pairwise([*args, ""])
    return any(
        (a in ("-o", "--output") and b == "json") or a in ("-ojson", "--output=json")
        for a, b in pairs
    )


def _discard_output() -> None:
    """Discard what cannot be written: the interpreter would otherwise retry at exit and report an
    error.
    """
    sys.stdout = io.StringIO()


app = typer.Typer(
    cls=Root,
    rich_markup_mode=None,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        sys.stdout.write(f"connectctl {version('connectctl')}\n")
        raise typer.Exit


def _contexts(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the contexts that may follow ``--context``."""
    from connectctl.cli import completed_names

    return completed_names.contexts(ctx, incomplete)


@app.callback()
def root(
    ctx: typer.Context,
    context: Annotated[
        str | None,
        typer.Option(
            "--context",
            "-c",
            help="Context of the context file to use.",
            autocompletion=_contexts,
        ),
    ] = None,
    config: Annotated[
        Path | None, typer.Option("--config", help="Context file.", metavar="FILE")
    ] = None,
    bootstrap_servers: Annotated[
        str | None, typer.Option(help="Brokers, HOST:PORT,…", metavar="LIST")
    ] = None,
    group_id: Annotated[
        str | None, typer.Option(help="The workers' group.id.", metavar="ID")
    ] = None,
    rest: Annotated[
        list[str] | None, typer.Option(help="A worker's URL; found from the group if not given.")
    ] = None,
    rest_is_group: Annotated[
        bool | None,
        typer.Option(
            "--rest-is-group",
            help="Take the servers of --rest for workers of the group, without a proof.",
        ),
    ] = None,
    config_topic: Annotated[
        str | None, typer.Option(help="The workers' config.storage.topic.", metavar="TOPIC")
    ] = None,
    offsets_topic: Annotated[
        str | None, typer.Option(help="The workers' offset.storage.topic.", metavar="TOPIC")
    ] = None,
    status_topic: Annotated[
        str | None, typer.Option(help="The workers' status.storage.topic.", metavar="TOPIC")
    ] = None,
    timeout: Annotated[
        float | None,
        typer.Option(
            help="How long to wait for a broker or a worker, and with --wait for the target "
            "state.  [default: 30]",
            min=0.1,
            metavar="SECONDS",
        ),
    ] = None,
    lock: Annotated[
        str | None,
        typer.Option(
            help="cluster: changes lock the Connect cluster, through a Kafka group; local: only "
            "this journal.  [default: cluster]",
            metavar="KIND",
        ),
    ] = None,
    lock_wait: Annotated[
        float | None,
        typer.Option(
            help="How long a change waits for the lock that another run holds; it then plans "
            "again.  [default: 0]",
            min=0,
            metavar="SECONDS",
        ),
    ] = None,
    confirm: Annotated[
        str | None,
        typer.Option(
            help="Change a protected context without being asked for its name.", metavar="CONTEXT"
        ),
    ] = None,
    no_headers: Annotated[
        bool, typer.Option("--no-headers", help="Print tables without headings.")
    ] = False,
    _: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Operate Kafka Connect clusters.

    \b
    Examples:
      connectctl sandbox up                       a cluster to play with
      connectctl cluster show -c sandbox-default  its workers, topics, connectors
      connectctl offsets show my-source           the offsets of a source
      connectctl context show                     which cluster, and from where

    The options below may stand anywhere on the command line.
    """
    from connectctl.cli.output import printed_commands, terminal
    from connectctl.cli.output.waiting import waiting

    ctx.with_resource(waiting(_path(arguments, ctx.command)))
    terminal.without_headers = no_headers
    printed_commands.name_cluster(
        {
            "--context": context,
            "--config": config,
            "--bootstrap-servers": bootstrap_servers,
            "--group-id": group_id,
            "--rest": rest,
            "--rest-is-group": rest_is_group,
            "--config-topic": config_topic,
            "--offsets-topic": offsets_topic,
            "--status-topic": status_topic,
        }
    )
    ctx.call_on_close(terminal.print_ignored)
    ctx.call_on_close(terminal.name_left_out)
    if ctx.obj is None:
        from connectctl.cli.session import Session

        flags = {
            "bootstrap_servers": bootstrap_servers,
            "group_id": group_id,
            "rest": rest,
            "rest_is_group": rest_is_group or None,
            "topics.config": config_topic,
            "topics.offsets": offsets_topic,
            "topics.status": status_topic,
            "timeout": timeout,
            "lock": lock,
            "lock_wait": lock_wait,
        }
        ctx.obj = Session(flags=flags, context=context, config=config, confirmed=confirm)
        ctx.call_on_close(ctx.obj.close)


def main() -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:  # not if ignored, as in a background job
        signal.signal(signal.SIGINT, signal.default_int_handler)
    _repair_streams()
    # SIGTERM runs the cleanup as ^C does; shells expect 143.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    WATCH.start(lambda: _interruption(sys.argv[1:]))
    collect_seldom()
    app()


def _repair_streams() -> None:
    """Make the standard streams usable if a shell closed them, or if they are not UTF-8."""
    if sys.stdin is None:
        sys.stdin = os.fdopen(os.open(os.devnull, os.O_RDONLY))
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    if sys.stdout is None:
        # A write fails, as it does for other programs.
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w")
    elif isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # the form of escapes in JSON
