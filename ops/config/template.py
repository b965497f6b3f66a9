"""Commands and paths with placeholders, ``ssh {host} sudo systemctl restart connect``: validated
and filled in.

A placeholder is one word in single braces. Other braces belong to the shell, awk or a Go template
and are kept: ``${HOME}``, ``{print $1}``, ``{{.Names}}``, ``{a,b}``.
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
    """Return why ``template`` cannot be used: an unknown placeholder, or a missing one of
    ``needed``.
    """
    if not template.strip():
        return "it is empty"
    listing = "known are " + ", ".join(f"{{{name}}}" for name in known)
    for name in sorted(names_in(template) - set(known)):
        similar = difflib.get_close_matches(name, known, n=1)
        return (
            f"unknown placeholder {{{name}}}; "
            + (f"did you mean {{{similar[0]}}}? " if similar else "")
            + listing
        )
    missing = [f"{{{name}}}" for name in needed if name not in names_in(template)]
    return f"it lacks {' and '.join(missing)}" if missing else None


def filled(template: str, values: Mapping[str, str]) -> str:
    return _PLACEHOLDER.sub(lambda found: values[found[1]], template)


def filled_for_shell(template: str, values: Mapping[str, str]) -> str:
    """Return ``template`` with its placeholders replaced and quoted, each as one word for the
    shell.

    Raises ``BadInput`` if a value that needs quotes is already between quotes: they would end
    there.
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
    """Return whether the shell is inside quotes after ``before``."""
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
