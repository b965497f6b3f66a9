"""All printing: data on standard output, everything else on standard error, colour only on a
terminal.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import IO, TYPE_CHECKING, Any, TextIO

from connectctl.cli.output import drawn_line
from connectctl.cli.output.json_lines import Each, json_lines, json_text
from connectctl.cli.output.printed_commands import in_json, with_cluster
from connectctl.cli.output.sanitize import YamlStream, cut, on_one_line, visible, yaml_style
from connectctl.cli.output.tables import LONGEST, LONGEST_SENTENCE, fit, paragraph, whole
from connectctl.ops.config import ignored_input

if TYPE_CHECKING:
    from connectctl.ops.core.finding import Finding
    from rich.console import Console
    from rich.text import Text

API_VERSION = "connectctl/v1"
WRITE_SIZE = 1 << 16
"""Characters of JSON to collect before a write."""
UNLIMITED = 1_000_000
"""The columns of a pipe."""


class Output(StrEnum):
    """Values of ``-o``."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"
    """One name a line, for xargs; for lists only (``NAMES``)."""

    @property
    def for_people(self) -> bool:
        """Whether it is a table."""
        return self in (Output.TABLE, Output.WIDE)


NAMES = {
    "Cluster": ("workers", "address"),
    "ConnectorList": ("connectors", "name"),
    "ConnectorTopics": ("topics", "name"),
    "ContextList": ("contexts", "name"),
    "LoggerList": ("loggers", "name"),
    "MigrationList": ("migrations", "id"),
    "Plugin": ("properties", "name"),
    "PluginList": ("plugins", "class"),
    "RunList": ("runs", "id"),
    "RunStatus": ("connectors", "name"),
    "SandboxList": ("sandboxes", "name"),
    "SourceOffsets": ("connectors", "name"),
    "SinkOffsets": ("connectors", "name"),
    "TransactionList": ("transactions", "transactionalId"),
}
"""Where the names of a list are in its JSON: the member with its items, and the member of an
item.
"""
_left_out: list[str] = []
"""Columns of the tables that a command has printed which this terminal has no room for."""
without_headers = False
"""Whether tables have no row of headings (``--no-headers``); set for each invocation."""


COLOURS = {
    "RUNNING": "green",
    "STOPPED": "yellow",
    "PAUSED": "yellow",
    "DEGRADED": "dark_orange",
    "UNASSIGNED": "dark_orange",
    "FAILED": "red",
    "error": "red",
    "warning": "yellow",
    "info": "cyan",
}


def plain(stream: IO[str]) -> bool:
    """Whether ``stream`` gets no colour and no cursor movement (https://no-color.org,
    https://force-color.org, clig.dev). An empty variable is one that is not set.
    """
    if os.environ.get("NO_COLOR"):
        return True
    if os.environ.get("FORCE_COLOR"):
        return False
    return os.environ.get("TERM") == "dumb" or not stream.isatty()


def standard_output() -> TextIO:
    """Return standard output, for something to print: a line at the foot of the terminal goes."""
    drawn_line.erase()
    return sys.stdout


def console(*, stderr: bool = False) -> Console:
    """Return a rich console on standard output or standard error."""
    from rich.console import Console

    stream = sys.stderr if stderr else standard_output()
    return Console(
        file=stream, no_color=plain(stream), highlight=False, soft_wrap=not stream.isatty()
    )


def emit(
    kind: str,
    data: Mapping[str, Any],
    output: Output,
    table: Callable[[bool], None],
    found: Iterable[Finding] = (),
) -> None:
    """Print ``data`` as the envelope ``kind``, or for users call ``table(wide)`` and list the
    findings ``found``.
    """
    if output.for_people:
        table(output is Output.WIDE)
        findings(found)
        return
    if output is Output.NAME:
        items, name = NAMES[kind]
        for value in dict.fromkeys(item[name] for item in data[items] if item[name] is not None):
            print_line(on_one_line(str(value)))
        return
    envelope = {"apiVersion": API_VERSION, "kind": kind, **in_json(data)}
    if output is Output.YAML:
        _yaml(envelope, standard_output())
    else:
        lines_waiting, size = [], 0
        for line in json_lines(envelope):
            lines_waiting.append(line)
            size += len(line)
            if size > WRITE_SIZE:
                standard_output().write("".join(lines_waiting))
                lines_waiting, size = [], 0
        standard_output().write("".join(lines_waiting))


def documents(resources: Iterable[Mapping[str, Any]]) -> None:
    """Print resources of Kubernetes as the documents of one YAML stream."""
    for number, resource in enumerate(list(resources)):
        if number:
            print_line("---")
        _yaml(resource, standard_output(), several_lines="|")


def _yaml(envelope: Mapping[str, Any], stream: IO[str], several_lines: str | None = None) -> None:
    import yaml

    dumper: Any = type("Dumper", (getattr(yaml, "CSafeDumper", yaml.SafeDumper),), {})

    def text(to: Any, value: str) -> Any:
        value, style = yaml_style(str(value))
        style = style or (several_lines if "\n" in value else None)
        return to.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    dumper.add_representer(str, text)
    dumper.add_multi_representer(str, text)  # members of an enumeration
    yaml.dump(envelope, YamlStream(stream), Dumper=dumper, sort_keys=False, allow_unicode=True)


def each(items: Collection[Any], make: Callable[[Any], Any], output: Output) -> list[Any]:
    """Return ``items`` converted by ``make``; for JSON, each one when it is written."""
    return Each(items, make) if output is Output.JSON and len(items) > 1 else list(map(make, items))


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    empty: str = "",
    spare: Sequence[str] = (),
    open_end: bool = False,
) -> None:
    """Print a table: fitted to the terminal with colour, or in full width if output is piped, with
    colour only if ``FORCE_COLOR`` is set.

    ``spare`` names the columns that a narrow terminal may leave out, the first ones first;
    ``open_end``: values of the last column may be wider than the terminal. See ``tables.fit``.
    """
    filled = [["" if cell is None else str(cell) for cell in row] for row in rows]
    if not filled and empty:
        note(empty)
        return
    if not without_headers and (sys.stdout.isatty() or not plain(sys.stdout)):
        lines, left_out = grid(columns, filled, spare, open_end=open_end)
        for line in lines:
            console().print(line, soft_wrap=True)
        _left_out.extend(left_out)
        return
    for text in islice(whole(columns, filled), int(without_headers), None):
        standard_output().write(text + "\n")


def name_left_out() -> None:
    """Name the columns that the tables of the command lack, once: before the next line on standard
    error, or at its end.
    """
    if _left_out:
        sys.stdout.flush()
        names = ", ".join(dict.fromkeys(_left_out))
        _left_out.clear()
        note(f"Not shown in {console().width} columns: {names} (-o json has them).", style="dim")


def grid(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    spare: Sequence[str] = (),
    *,
    open_end: bool = False,
) -> tuple[list[Text], list[str]]:
    """Return the rows as lines for this terminal, and the columns left out."""
    from rich.text import Text

    width = console().width if sys.stdout.isatty() else UNLIMITED
    drawn, left_out = fit(columns, rows, width, spare, open_end=open_end)
    lines = []
    for line in drawn:
        text = Text.assemble(
            *((part, "bold" if cell is None else _style(cell)) for part, cell in line)
        )
        text.rstrip()
        lines.append(text)
    return lines, left_out


@dataclass(frozen=True)
class Block:
    """A table to be printed, alone or as a part of a screen that is refreshed."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    empty: str = ""
    spare: Sequence[str] = ()


def blocks(parts: Sequence[Block]) -> None:
    """Print tables with an empty line between them."""
    for n, part in enumerate(parts):
        if n:
            print_line("")
        if part.rows or not part.empty:
            table(part.columns, part.rows, spare=part.spare)
        else:
            print_line(part.empty)


@contextmanager
def live() -> Iterator[Callable[[str, Sequence[Block], Sequence[Finding]], None]]:
    """Refresh a part of the terminal in place; without a terminal, print each state after the
    other.

    Yields ``draw(title, blocks, findings)``.
    """
    if plain(sys.stdout) or not sys.stdout.isatty():
        yield _print_screen
        return
    from rich.console import Group
    from rich.live import Live
    from rich.text import Text

    with Live(console=console(), auto_refresh=False, screen=False) as screen:

        def draw(title: str, parts: Sequence[Block], found: Sequence[Finding]) -> None:
            lines: list[Any] = [Text(visible(title), style="bold")]
            for part in parts:
                lines.append(Text(""))
                lines += (
                    grid(part.columns, part.rows, part.spare)[0]
                    if part.rows
                    else [Text(visible(part.empty))]
                )
            lines += [Text("")] + [Text(line_of(f), style=COLOURS[f.severity.value]) for f in found]
            screen.update(Group(*lines), refresh=True)

        yield draw


def _print_screen(title: str, parts: Sequence[Block], found: Sequence[Finding]) -> None:
    print_line(title)
    blocks(parts)
    print_line("")
    sys.stdout.flush()
    findings(found)


def _style(cell: str) -> str:
    """Return the colour of a cell: by its first word; red if it ends with the mark of a problem."""
    return "bold red" if cell.endswith(" !") else COLOURS.get(cell.split(" ", 1)[0], "")


def print_line(text: str) -> None:
    """Print a line of data on standard output."""
    standard_output().write(visible(with_cluster(text)) + "\n")


def print_wrapped(text: str) -> None:
    """Print a sentence on standard output, wrapped between words on a terminal."""
    for line in _wrapped(text):
        standard_output().write(line + "\n")


def _wrapped(text: str, *, stderr: bool = False) -> list[str]:
    """Return the lines of ``text`` for a stream, wrapped between words on a terminal."""
    text = visible(with_cluster(text))
    if not (sys.stderr if stderr else sys.stdout).isatty():
        return [text]
    width = console(stderr=stderr).width
    return [part for line in text.split("\n") for part in paragraph(line, width)]


def note(text: str, *, style: str = "") -> None:
    """Print a line on standard error. A pipe that its reader has closed ends no change."""
    name_left_out()
    drawn_line.erase()
    lines = _wrapped(text, stderr=True)
    if plain(sys.stderr):
        with suppress(BrokenPipeError):
            sys.stderr.write("\n".join(lines) + "\n")
        return
    out = console(stderr=True)
    for line in lines:
        out.print(line, style=style or None, markup=False, soft_wrap=True)


def findings(found: Iterable[Finding], *, most: int = 20) -> None:
    """Print one line per finding on standard error, at most ``most`` with the same id; the JSON has
    them all.
    """
    counts: dict[str, int] = {}
    for finding in found:
        counts[finding.id] = counts.get(finding.id, 0) + 1
        ignored_input.printed(finding.subject)
        if counts[finding.id] > most:
            continue
        note(line_of(finding), style=COLOURS[finding.severity.value])

    for id_, count in counts.items():
        if count > most:
            note(f"… and {count - most:,} more {id_}; -o json has them all.")


def print_ignored(*, most: int = 20) -> None:
    """Print what the command ignored of its input and did not name yet."""
    found = ignored_input.take()
    for finding in found[:most]:
        note(line_of(finding), style=COLOURS[finding.severity.value])
    if len(found) > most:
        note(f"… and {len(found) - most:,} more records are ignored.")


def print_findings(found: Iterable[Finding], *, wide: bool) -> None:
    """Print each finding as a heading and indented lines; ``wide`` adds why it matters."""
    from rich.text import Text

    out = console()
    for finding in found:
        out.print(
            Text.assemble(
                (f"{finding.severity.value:<8}", COLOURS[finding.severity.value]),
                (f"{finding.id}  {on_one_line(cut(finding.subject, LONGEST))}", "bold"),
            ),
            soft_wrap=True,
        )
        message = cut(finding.message, LONGEST_SENTENCE)
        for text, style in (
            (message, ""),
            (finding.why if wide else None, "dim"),
            (finding.next_step, "cyan"),
        ):
            styled(text or "", style, 8)


def styled(text: str, style: str = "", indent: int = 0) -> None:
    """Print the lines of ``text`` in a style, indented and wrapped."""
    from rich.text import Text

    out = console()
    for line in text.splitlines():
        for part in _wrapped(f"{'':{indent}}{line}"):
            out.print(Text(part, style=style), soft_wrap=True)


def line_of(finding: Finding) -> str:
    """Return a finding as one line."""
    end = f" {finding.next_step}" if finding.next_step else ""
    subject, message = cut(finding.subject, LONGEST), cut(finding.message, LONGEST_SENTENCE)
    return on_one_line(f"{finding.severity.value}: {finding.id} {subject}: {message}{end}")


def error_json(what: str, why: str | None, next_step: str | None, code: str, exit_code: int) -> str:
    """Return an error as JSON, for scripts."""
    texts = {"message": what, "why": why, "nextStep": next_step}
    details = {"code": code, "exitCode": exit_code} | {
        n: t and with_cluster(t) for n, t in texts.items()
    }
    return json_text({"apiVersion": API_VERSION, "kind": "Error", "error": details})


def duration(seconds: float | None) -> str:
    """Format a time span: ``0.4s``, ``12s``, ``3m05s``, ``2h10m``, ``5d03h``; None is a dash."""
    if seconds is None:
        return "-"
    if seconds < 10:
        return f"{seconds:.1f}s"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days}d{hours:02}h"
    if hours:
        return f"{hours}h{minutes:02}m"
    return f"{minutes}m{rest:02}s" if minutes else f"{rest}s"
