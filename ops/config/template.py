"""Commands and paths with placeholders, ``ssh {host} sudo systemctl restart connect``: read and filled in.

A placeholder is one word in single braces. Other braces are the shell's, awk's or a Go template's own and stay as they
are: ``${HOME}``, ``{print $1}``, ``{{.Names}}``, ``{a,b}``.
"""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Collection, Mapping

from connectctl.ops.core.errors import BadInput

_PLACEHOLDER = re.compile(r"(?<![${])\{(\w+)\}(?!\})")
OF_WORKER = ("worker", "host", "port", "url")
OF_PROPERTY = ("property", "value")


def names_in(template: str) -> set[str]:
    return set(_PLACEHOLDER.findall(template))


def problem_with(template: str, known: Collection[str], needed: Collection[str] = ()) -> str | None:
    """Why ``template`` cannot be used: a placeholder that is not ``known``, one that is ``needed`` and not there."""
    if not template.strip():
        return "it is empty"
    have = "known are " + ", ".join(f"{{{name}}}" for name in known)
    for name in sorted(names_in(template) - set(known)):
        near = difflib.get_close_matches(name, known, n=1)
        return f"unknown placeholder {{{name}}}; " + (f"did you mean {{{near[0]}}}? " if near else "") + have
    missing = [f"{{{name}}}" for name in needed if name not in names_in(template)]
    return f"it lacks {' and '.join(missing)}" if missing else None


def filled(template: str, values: Mapping[str, str]) -> str:
    return _PLACEHOLDER.sub(lambda found: values[found[1]], template)


def filled_for_shell(template: str, values: Mapping[str, str]) -> str:
    """``template`` with its placeholders replaced and quoted, so that the shell takes each for one word.

    Raises ``BadInput`` where a value that needs quotes is to stand between quotes already: they would end there.
    """
    for found in _PLACEHOLDER.finditer(template):
        value = values[found[1]]
        if shlex.quote(value) != value and _is_quoted(template[: found.start()]):
            raise BadInput(
                f"The value {value!r} cannot be put into the quotes around {{{found[1]}}}",
                why=f"placeholders are quoted automatically in {template}",
                next_step=f"Remove the quotes around {{{found[1]}}}.",
            )
    return _PLACEHOLDER.sub(lambda found: shlex.quote(values[found[1]]), template)


def _is_quoted(before: str) -> bool:
    """Whether the shell is inside quotes behind ``before``."""
    quote, escaped = "", False
    for character in before:
        if escaped:
            escaped = False
        elif character == "\\" and quote != "'":
            escaped = True
        elif quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
    return bool(quote)
