"""Java's regular expressions and replacements, as far as Python has them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from connectctl.ops.task_runtime.transforms.properties import Properties

_NAMED = re.compile(r"(\\.)|\(\?<(?=[A-Za-z])")
_REFERENCES = re.compile(r"\\(.)|\$(?:\{([A-Za-z][A-Za-z0-9]*)\}|(\d+))|([\\$])", re.DOTALL)


def java_pattern(properties: Properties, name: str) -> re.Pattern[str]:
    """Return the regular expression in the property ``name``. Raises ``BadInput`` for an invalid
    one, and one that only Java has.
    """
    text = properties.required(name)
    try:
        return re.compile(_NAMED.sub(lambda m: m[1] or "(?P<", text), re.ASCII)
    except (re.error, RecursionError, OverflowError) as e:
        raise properties.invalid(name, text, f"Invalid regex: {e}") from e


def java_replacement(properties: Properties, name: str, pattern: re.Pattern[str]) -> str:
    """Return the replacement for ``re.Match.expand``. Raises ``BadInput`` for a group that
    ``pattern`` lacks.
    """
    text = properties.required(name)

    def parts() -> Iterator[str]:
        at = 0
        for found in _REFERENCES.finditer(text):
            yield _literal(text[at : found.start()])
            at = found.end()
            escaped, group, digits, alone = found.groups()
            if alone or (group and group not in pattern.groupindex):
                why = "Illegal group reference" if alone else f"No group with name {{{group}}}"
                raise properties.invalid(name, text, why)
            if digits:
                yield _numbered(digits)
            else:
                yield _literal(escaped) if escaped else rf"\g<{group}>"
        yield _literal(text[at:])

    def _numbered(digits: str) -> str:
        """Return the longest number of a group that exists, and the digits after it."""
        length = 1
        while length < len(digits) and int(digits[: length + 1]) <= pattern.groups:
            length += 1
        if int(digits[:length]) > pattern.groups:
            raise properties.invalid(name, text, f"No group {digits[:length]}")
        return rf"\g<{digits[:length]}>{digits[length:]}"

    return "".join(parts())


def _literal(text: str) -> str:
    return text.replace("\\", "\\\\")
