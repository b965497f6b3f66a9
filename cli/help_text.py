"""Formats the help of all commands alike, however their parameters are declared.

Types are named in terms of the command line and not of Python, every argument has a sentence,
examples fit 80 columns, and each command refers to the options and variables of all commands.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

from connectctl.ops.core.errors import BadInput

WIDTH = 78
"""Columns of a line of examples, which is indented by two more."""
EPILOG = (
    "Options for all commands (--context, --bootstrap-servers, --group-id, --rest, --timeout …) "
    "and environment variables: connectctl --help"
)
ENVIRONMENT = {
    "CONNECTCTL_CONTEXT": "--context",
    "CONNECTCTL_CONFIG": "--config",
    "CONNECTCTL_BOOTSTRAP_SERVERS": "--bootstrap-servers",
    "CONNECTCTL_GROUP_ID": "--group-id",
    "CONNECTCTL_REST": "--rest; several are separated by commas",
    "CONNECTCTL_REST_IS_GROUP": "--rest-is-group: true or false",
    "CONNECTCTL_CONFIG_TOPIC": "--config-topic",
    "CONNECTCTL_OFFSETS_TOPIC": "--offsets-topic",
    "CONNECTCTL_STATUS_TOPIC": "--status-topic",
    "CONNECTCTL_TIMEOUT": "--timeout",
    "CONNECTCTL_LOCK": "--lock",
    "CONNECTCTL_LOCK_WAIT": "--lock-wait",
    "CONNECTCTL_CLUSTER_ID": "id that the Kafka cluster must have",
    "CONNECTCTL_REST_USERNAME": "for the workers' REST servers",
    "CONNECTCTL_REST_PASSWORD": "for the workers' REST servers",
    "CONNECTCTL_REST_TOKEN": "for the workers' REST servers, instead of the two",
    "CONNECTCTL_CLIENT_…": "a property of Kafka's clients: …_SASL_PASSWORD is sasl.password",
    "CONNECTCTL_JOURNAL": "directory of the journal and of backups",
    "CONNECTCTL_IVY_SETTINGS": "Ivy settings, for the jars of sandboxes",
    "NO_COLOR": "no colour, whatever its value, unless it is empty",
    "FORCE_COLOR": "colour also in pipes and files; NO_COLOR goes before it",
    "JAVA_HOME": "Java 17 or newer, for sandboxes and for Spark",
    "XDG_CONFIG_HOME": "directory of connectctl/config.yaml, the context file",
    "XDG_STATE_HOME": "directory of connectctl/, with the journal and sandboxes",
    "XDG_CACHE_HOME": "directory of connectctl/, with the jars of sandboxes",
}
EXIT_STATUS = {
    "0": "done",
    "1": "failed, or something could not be read completely",
    "2": "invalid usage, or input that cannot be read; also a change without --yes when standard "
    "input is not a terminal",
    "3": "changes are pending (with --exit-code)",
    "4": "refused: findings or the state of the cluster forbid it; nothing was changed",
    "5": "unreachable, or not authorized",
    "6": "timed out while waiting",
    "7": "partly done; the line on standard error names the command that continues",
    "130": "interrupted (SIGINT); 143 if by SIGTERM; 141 if the reader closed the output pipe, as "
    "head does",
    "70": "a bug; the line on standard error names the report",
}
ARGUMENTS = {
    "connector": "The connector's name.",
    "connectors": "Connectors by name; all of them if none is given.",
    "topics": "Topics by name.",
    "id": "A transactional id, as transactions list shows it.",
    "run": "A run's id, as runs list shows it.",
    "source": "The connector that has the offsets.",
    "target": "The connector that gets them.",
    "shell": "bash, zsh or fish.",
}
"""Descriptions of arguments by name, for commands that give none."""
TYPES = {
    "int": "N",
    "float": "NUMBER",
    "int range": "N",
    "float range": "NUMBER",
    "path": "FILE",
    "file": "FILE",
}


def format_help(command: Any) -> Any:
    """Format the help of ``command`` and all its subcommands; returns ``command``."""
    for param in command.params:
        format_parameter(param)
    command.help = fitted(command.help or "")
    # Whole, in the list of a group's commands: click cuts the help's own beginning to 45 characters.
    command.short_help = command.short_help or " ".join(command.help.partition("\n\n")[0].split())
    command.epilog = command.epilog or EPILOG
    for each in getattr(command, "commands", {}).values():
        format_help(each)
    return command


def format_parameter(param: Any) -> None:
    """Format the help of one parameter."""
    (_argument if param.param_type_name == "argument" else _option)(param)


def _argument(param: Any) -> None:
    raw = param.metavar or param.name.upper()
    shown = raw if raw.startswith("[") or param.required else f"[{raw}]"
    shown += "..." if param.nargs != 1 and "..." not in raw else ""
    param.help = param.help or (
        "Connectors by name." if raw == "CONNECTOR..." else ARGUMENTS.get(param.name)
    )
    param.display_type_rich = lambda ctx: None
    param._rich_display_name = lambda: raw.strip("[]").replace("]...", "").replace("...", "")
    param._usage_display_name = lambda: shown


def _option(param: Any) -> None:
    """Show an option's value as a word in capitals, or as its choices."""
    if param.type_descriptor.annotation is float:
        _finite(param)
    least, most = getattr(param, "min", None), getattr(param, "max", None)
    if least is not None or most is not None:
        param._get_number_range_help_str = lambda: _range(least, most)
    if param.metavar is None and not param.is_flag:
        label = str(param.display_type(None)).strip("<>")
        param.metavar = label if "|" in label else TYPES.get(label, param.name.rstrip("_").upper())


def _finite(param: Any) -> None:
    """Make the option reject nan and inf: a wait for such a time would never end, or not begin."""
    if hasattr(param, "process_unchecked"):
        return
    param.process_unchecked = param.process_value

    def process_value(ctx: Any, value: Any) -> Any:
        number = param.process_unchecked(ctx, value)
        if isinstance(number, float) and not math.isfinite(number):
            raise BadInput(f"{param.opts[0]} must be a finite number, not {number}", code="usage")
        return number

    param.process_value = process_value


def _range(least: float | None, most: float | None) -> str:
    if least is not None and most is not None:
        return f"{least:g} to {most:g}"
    return f"at least {least:g}" if least is not None else f"at most {most:g}"


# ------------------------------------------------------------------------------------- the examples


def fitted(text: str) -> str:
    """Return ``text`` with its unwrapped paragraphs (those that begin with a backspace) in at most
    ``WIDTH`` columns.
    """
    paragraphs = text.split("\n\n")
    return "\n\n".join(_fitted_paragraph(p) if p.startswith("\b") else p for p in paragraphs)


def _fitted_paragraph(paragraph: str) -> str:
    lines = paragraph.split("\n")
    if "Examples:" not in lines:
        return paragraph
    examples = [_EXAMPLE.fullmatch(line) for line in lines]
    lines = [
        part
        for m, line in zip(examples, lines, strict=True)
        for part in (_comment_above(m) if m else [line])
    ]
    return "\n".join(part for line in lines for part in _broken(line))


_EXAMPLE = re.compile(r"(?P<command> +\S.*?\S)(?: {2,})(?P<comment>\S.*)")


def _comment_above(example: re.Match[str]) -> list[str]:
    """Return the comment and its command as two lines."""
    indent = " " * (len(example["command"]) - len(example["command"].lstrip()))
    return [f"{indent}# {example['comment']}", example["command"]]


def _broken(line: str) -> Iterator[str]:
    """Break a command into lines that a shell reads as one; a filter in single quotes is broken
    where jq allows it.
    """
    quoted = False
    while len(line) > WIDTH:
        cuts = {
            m.start(): (line.count("'", 0, m.start()) % 2 == 1) != quoted
            for m in _CUTS.finditer(line, 8, WIDTH - 1)
        }
        outside = [at for at, inside in cuts.items() if not inside]
        if not cuts:
            break
        cut = max([at for at in outside if line[at + 1] in "|&"] or outside or cuts)
        indent = " " * (len(line) - len(line.lstrip()))
        yield line[:cut] if cuts[cut] else f"{line[:cut]} \\"
        quoted, line = cuts[cut], f"{indent}  {line[cut + 1 :]}"
    yield line


_CUTS = re.compile(r" (?=\| |&& |--?[a-z]|> |\+ |[\"{])")
