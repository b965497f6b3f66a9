"""Generates pages for ``man`` from the commands' help, in roff's macros (man(7)).

A page has no date, so that the same release gives the same bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from typing import Any

from connectctl.cli.help_text import ENVIRONMENT, EXIT_STATUS

NAME = "connectctl"
_OMITTED = ("--help",)


def page(root: Any, path: tuple[str, ...], command: Any) -> str:
    """Return the page of ``command`` at ``path``, empty for the program, whose page has the
    environment and exit codes. ``root`` is the program's context, from which commands inherit their
    help options.
    """
    return "\n".join([*_lines(root, path, command), ""])


def _lines(root: Any, path: tuple[str, ...], command: Any) -> Iterator[str]:
    paragraphs = (command.help or "").split("\n\n")
    yield f'.TH "{title(path).upper()}" "1" "" "{NAME} {version(NAME)}" "{NAME} manual"'
    yield from (".SH NAME", f"{_text(title(path))} \\- {_text(_first_sentence(paragraphs[0]))}")
    ctx = command.context_class(command, parent=root, info_name=" ".join(path))
    usage = _text(" ".join(command.collect_usage_pieces(ctx)))
    yield from (".SH SYNOPSIS", f"\\fB{_text(' '.join((NAME, *path)))}\\fR {usage}")
    yield ".SH DESCRIPTION"
    for paragraph in paragraphs:
        yield from _paragraph(paragraph)
    yield from _commands(path, command)
    yield from _parameters(command, ctx)
    if path:
        yield from (
            ".SH SEE ALSO",
            f"\\fB{NAME}\\fR(1), for options of all commands, the environment and exit codes",
        )
    else:
        yield from _listed("ENVIRONMENT", ENVIRONMENT)
        yield from _listed("EXIT STATUS", EXIT_STATUS)


def title(path: tuple[str, ...]) -> str:
    """Return the name of a page, which is that of its file without ``.1``."""
    return "-".join((NAME, *path))


def below(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield ``command`` and all its subcommands, each with its path, without hidden ones."""
    yield path, command
    if hasattr(command, "list_commands"):
        for name in command.list_commands(None):
            child = command.get_command(None, name)
            if not child.hidden:
                yield from below(child, (*path, name))


def _first_sentence(paragraph: str) -> str:
    whole = " ".join(paragraph.split())
    return re.split(r"(?<=[.:;]) ", whole)[0].rstrip(".:;")


def _paragraph(paragraph: str) -> Iterator[str]:
    if not paragraph.startswith("\b"):
        yield from (".PP", _text(" ".join(paragraph.split())))
        return
    heading, *examples = paragraph.removeprefix("\b").strip("\n").split("\n")
    yield from (".PP", _text(heading), ".PP", ".nf", *map(_text, examples), ".fi")


def _commands(path: tuple[str, ...], command: Any) -> Iterator[str]:
    children = [child for child in below(command) if len(child[0]) == 1]
    if children:
        yield ".SH COMMANDS"
    for (name,), child in children:
        yield from (
            ".TP",
            f"\\fB{_text(title((*path, name)))}\\fR(1)",
            _text(_first_sentence(child.help or "")),
        )


def _parameters(command: Any, ctx: Any) -> Iterator[str]:
    for kind, heading in (("argument", "ARGUMENTS"), ("option", "OPTIONS")):
        records = [
            record
            for param in command.params
            if param.param_type_name == kind
            and not param.hidden
            and not set(param.opts) & set(_OMITTED)
            if (record := param.get_help_record(ctx)) is not None
        ]
        yield from _listed(heading, dict(records))


def _listed(heading: str, entries: Mapping[str, str]) -> Iterator[str]:
    if entries:
        yield f".SH {heading}"
    for name, meaning in entries.items():
        yield from (".TP", f"\\fB{_text(name)}\\fR", _text(" ".join(meaning.split())))


def _text(line: str) -> str:
    r"""Escape a line for roff: backslashes, hyphens as minus signs, and a leading dot."""
    escaped = line.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")
    ascii_only = "".join(each if each.isascii() else f"\\[u{ord(each):04X}]" for each in escaped)
    return f"\\&{ascii_only}" if ascii_only.startswith(".") else ascii_only
