"""Placeholders ``${NAME}`` in files of the user: replaced by values that the user gives.

References to Kafka's config providers, ``${file:…:…}`` and ``${env:…}``, have a colon, and are never
replaced: workers resolve them. ``{env: NAME}`` in connector files is read by ``connector_file``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from connectctl.ops.core.errors import BadInput

_NAME = re.compile(r"[A-Za-z_]\w*")
_PLACEHOLDER = re.compile(r"\$\{([A-Za-z_]\w*)\}")
_STRING_OR_PLACEHOLDER = re.compile(rf'"(?:[^"\\]|\\.)*"|{_PLACEHOLDER.pattern}')


def replaced(text: str, values: Mapping[str, str], missing: dict[str, None]) -> str:
    """Return ``text`` with ``values`` for its placeholders; a value is not replaced again. The names
    without a value are added to ``missing``.
    """

    def value_of(found: re.Match[str]) -> str:
        if found[1] not in values:
            missing[found[1]] = None
        return values.get(found[1], found[0])

    return _PLACEHOLDER.sub(value_of, text)


def quoted(json_text: str) -> str:
    """Return JSON with quotes around the placeholders outside of strings, as in
    ``"tasks.max": ${TASKS}``.
    """
    return _STRING_OR_PLACEHOLDER.sub(
        lambda found: f'"{found[0]}"' if found[1] else found[0], json_text
    )


def left(file: str, names: Sequence[str]) -> BadInput:
    """Return the error about placeholders without a value."""
    first = names[0]
    return BadInput(
        f"{file} has placeholders without a value",
        why=", ".join(f"${{{name}}}" for name in names),
        next_step=f"Give each with --set {first}=VALUE or in the --env-file; to keep one as it is: "
        f"--set '{first}=${{{first}}}'.",
    )


def assignments(texts: Iterable[str]) -> dict[str, str]:
    """Return the values of ``NAME=VALUE``. Raises ``BadInput``, which does not quote the value."""
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not _NAME.fullmatch(name):
            raise BadInput(
                f"--set requires NAME=VALUE, with a name of letters, digits and _, not {name!r}",
                code="usage",
            )
        found[name] = value
    return found


def environment_of(path: Path) -> dict[str, str]:
    """Return the variables in the environment file ``path``. Raises ``BadInput``."""
    try:
        text = path.read_text("utf-8-sig")
    except OSError as e:
        raise BadInput(f"{path} cannot be read", why=e.strerror) from e
    except UnicodeDecodeError as e:
        raise BadInput(f"{path} is not UTF-8") from e
    except ValueError as e:  # a null in its name
        raise BadInput(f"{path} cannot be read", why=str(e)) from e
    return read_environment(text, str(path))


def read_environment(text: str, file: str) -> dict[str, str]:
    """Return the variables of an environment file: ``NAME=VALUE`` on each line, with comments,
    ``export`` and quotes as a shell has them. Raises ``BadInput`` with file and line.
    """
    found = {}
    for number, written in enumerate(text.splitlines(), 1):
        line = written.strip().removeprefix("export ").strip()
        if not line or line.startswith("#"):
            continue
        name, equals, value = line.partition("=")
        if not equals or not _NAME.fullmatch(name.strip()):
            raise BadInput(f"{file}, line {number} is not NAME=VALUE")
        found[name.strip()] = _unquoted(value.strip())
    return found


def _unquoted(value: str) -> str:
    if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
        inner = value[1:-1]
        return re.sub(r'\\(["\\$`])', r"\1", inner) if value[0] == '"' else inner
    return value
