"""The one file that prints: data on standard output, everything else on standard error, colour only on a terminal."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import IO, TYPE_CHECKING, Any

from connectctl.cli.output.json_lines import Each, json_lines, json_text
from connectctl.cli.output.sanitize import YamlStream, on_one_line, visible, yaml_style
from connectctl.cli.output.tables import fit, whole

if TYPE_CHECKING:
    from connectctl.ops.core.finding import Finding
    from rich.console import Console
    from rich.text import Text

API_VERSION = "connectctl/v1"
AT_ONCE = 1 << 16
"""Characters of JSON that are written at once, and what the last line has beyond them."""
PROGRESS_AFTER = 1.0
"""Seconds that work must take before a bar is drawn."""


class Output(StrEnum):
    """What ``-o`` takes."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"
    """One name a line, for xargs; of lists alone (``NAMES``)."""

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
"""Where the names of a list are in its JSON: the member that has its items, and the member of an item."""
without_headers = False
"""Whether tables have no row of headings, as ``--no-headers`` says; set for each run of the program."""


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
    """Whether ``stream`` wants no colour and no cursor movement (https://no-color.org, clig.dev)."""
    if os.environ.get("FORCE_COLOR"):
        return False
    return bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb" or not stream.isatty()


def console(*, stderr: bool = False) -> Console:
    """A rich console on one of the two streams."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    return Console(file=stream, no_color=plain(stream), highlight=False, soft_wrap=not stream.isatty())


def emit(
    kind: str, data: Mapping[str, Any], output: Output, table: Callable[[bool], None], found: Iterable[Finding] = ()
) -> None:
    """Print ``data`` as the envelope ``kind``, or for people call ``table(wide)`` and list what was ``found``."""
    if output.for_people:
        table(output is Output.WIDE)
        findings(found)
        return
    if output is Output.NAME:
        items, name = NAMES[kind]
        for value in dict.fromkeys(item[name] for item in data[items] if item[name] is not None):
            say(on_one_line(str(value)))
        return
    envelope = {"apiVersion": API_VERSION, "kind": kind, **data}
    if output is Output.YAML:
        _yaml(envelope, sys.stdout)
    else:
        some, size = [], 0
        for line in json_lines(envelope):
            some.append(line)
            size += len(line)
            if size > AT_ONCE:
                sys.stdout.write("".join(some))
                some, size = [], 0
        sys.stdout.write("".join(some))


def _yaml(envelope: Mapping[str, Any], stream: IO[str]) -> None:
    import yaml

    dumper: Any = type("Dumper", (getattr(yaml, "CSafeDumper", yaml.SafeDumper),), {})

    def text(to: Any, value: str) -> Any:
        value, style = yaml_style(str(value))
        return to.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    dumper.add_representer(str, text)
    dumper.add_multi_representer(str, text)  # words of an enumeration
    yaml.dump(envelope, YamlStream(stream), Dumper=dumper, sort_keys=False, allow_unicode=True)


def each(items: Sequence[Any], make: Callable[[Any], Any], output: Output) -> list[Any]:
    """``items`` as ``make`` shows them; with JSON, which is written line by line, not before their turn."""
    return Each(items, make) if output is Output.JSON and len(items) > 1 else list(map(make, items))


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, empty: str = "", spare: Sequence[str] = ()) -> None:
    """A table for people: fitted to the terminal with colour, or whole lines in columns where output is piped.

    ``spare`` names the columns that a narrow terminal can do without, the first ones first; see ``columns.fit``.
    """
    filled = [["" if cell is None else str(cell) for cell in row] for row in rows]
    if not filled and empty:
        note(empty)
        return
    if sys.stdout.isatty() and not without_headers:
        lines, left_out = grid(columns, filled, spare)
        for line in lines:
            console().print(line, soft_wrap=True)
        if left_out:
            sys.stdout.flush()
            note(left_out, style="dim")
        return
    for text in islice(whole(columns, filled), int(without_headers), None):
        sys.stdout.write(text + "\n")


def grid(columns: Sequence[str], rows: Sequence[Sequence[str]], spare: Sequence[str] = ()) -> tuple[list[Text], str]:
    """The rows as lines for this terminal, and a sentence about the columns that found no room, empty for none."""
    from rich.text import Text

    width = console().width
    drawn, left_out = fit(columns, rows, width, spare)
    lines = []
    for line in drawn:
        text = Text.assemble(*((part, "bold" if cell is None else _style(cell)) for part, cell in line))
        text.rstrip()
        lines.append(text)
    if not left_out:
        return lines, ""
    return (
        lines,
        f"Columns not shown: {', '.join(left_out)} (the terminal is {width} wide). Use a wider terminal or -o json.",
    )


@dataclass(frozen=True)
class Block:
    """A table that is not printed yet, so that a screen can be made of several and drawn again and again."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    empty: str = ""
    spare: Sequence[str] = ()


def blocks(parts: Sequence[Block]) -> None:
    """Tables with an empty line between them."""
    for n, part in enumerate(parts):
        if n:
            say("")
        if part.rows or not part.empty:
            table(part.columns, part.rows, spare=part.spare)
        else:
            say(part.empty)


@contextmanager
def live() -> Iterator[Callable[[str, Sequence[Block], Sequence[Finding]], None]]:
    """A part of the terminal that is drawn again in place; off a terminal what is drawn is printed one after another.

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
                lines += grid(part.columns, part.rows, part.spare)[0] if part.rows else [Text(visible(part.empty))]
            lines += [Text("")] + [Text(line_of(f), style=COLOURS[f.severity.value]) for f in found]
            screen.update(Group(*lines), refresh=True)

        yield draw


def _print_screen(title: str, parts: Sequence[Block], found: Sequence[Finding]) -> None:
    say(title)
    blocks(parts)
    say("")
    sys.stdout.flush()
    findings(found)


def _style(cell: str) -> str:
    """The colour of a cell: by its first word, and red where it ends with the mark of what is wrong."""
    return "bold red" if cell.endswith(" !") else COLOURS.get(cell.split(" ", 1)[0], "")


def say(text: str) -> None:
    """A line of data for people, on standard output."""
    sys.stdout.write(visible(text) + "\n")


def note(text: str, *, style: str = "") -> None:
    """A line on standard error."""
    text = visible(text)
    if plain(sys.stderr):
        sys.stderr.write(text + "\n")
    else:
        # Its lines are the terminal's to wrap, so that an address in them can be copied whole.
        console(stderr=True).print(text, style=style or None, markup=False, soft_wrap=True)


def findings(found: Iterable[Finding], *, most: int = 20) -> None:
    """One line per finding on standard error, at most ``most`` with the same id; the JSON has them all."""
    counts: dict[str, int] = {}
    for finding in found:
        counts[finding.id] = counts.get(finding.id, 0) + 1
        if counts[finding.id] > most:
            continue
        note(line_of(finding), style=COLOURS[finding.severity.value])

    for id_, count in counts.items():
        if count > most:
            note(f"… and {count - most:,} more {id_}; -o json has them all.")


def tell(found: Iterable[Finding], *, wide: bool) -> None:
    """The findings as a terminal's answer, each a heading and indented lines; ``wide`` adds why it matters."""
    from rich.padding import Padding
    from rich.text import Text

    out = console()
    for finding in found:
        out.print(
            Text.assemble(
                (f"{finding.severity.value:<8}", COLOURS[finding.severity.value]),
                (f"{finding.id}  {on_one_line(finding.subject)}", "bold"),
            )
        )
        for text, style in ((finding.message, ""), (finding.why if wide else None, "dim"), (finding.next_step, "cyan")):
            if text:
                out.print(Padding(Text(visible(text), style=style), (0, 0, 0, 8)))


def line_of(finding: Finding) -> str:
    """A finding as one line."""
    end = f" {finding.next_step}" if finding.next_step else ""
    return on_one_line(f"{finding.severity.value}: {finding.id} {finding.subject}: {finding.message}{end}")


def error_json(what: str, why: str | None, next_step: str | None, code: str, exit_code: int) -> str:
    """An error as scripts get it on standard error."""
    details = {"code": code, "exitCode": exit_code, "message": what, "why": why, "nextStep": next_step}
    return json_text({"apiVersion": API_VERSION, "kind": "Error", "error": details})


@contextmanager
def progress(what: str) -> Iterator[Callable[[float, float], None]]:
    """A bar on the terminal's standard error, drawn once the work takes longer than a second; elsewhere nothing.

    Yields ``advance(done, total)``.
    """
    if plain(sys.stderr):
        yield lambda done, total: None
        return
    began, bar, task = time.monotonic(), None, None

    def advance(done: float, total: float) -> None:
        nonlocal bar, task
        if bar is None and time.monotonic() - began > PROGRESS_AFTER:
            bar, task = _bar(what)
        if bar is not None:
            bar.update(task, completed=done, total=total)

    try:
        yield advance
    finally:
        if bar is not None:
            bar.stop()


def _bar(what: str) -> tuple[Any, Any]:
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeElapsedColumn(),
    )
    bar = Progress(*columns, console=console(stderr=True), transient=True)
    bar.start()
    return bar, bar.add_task(visible(what), total=None)


def duration(seconds: float | None) -> str:
    """A time span as people read it: ``0.4s``, ``12s``, ``3m05s``, ``2h10m``, ``5d03h``; a dash for None."""
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
