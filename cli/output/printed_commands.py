"""Commands in printed texts: with the options that named the cluster on the command line, so that
they work when pasted.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from connectctl.cli.invocation import cluster_options

_OF_A_CLUSTER = (
    "audit|cluster|connectors|context "
    "show|doctor|fence|loggers|offsets|plugins|preflight|run|runs|tasks|transactions|upgrade|validate"
)
"""Commands that connect to the cluster of a context, or show the context."""
_COMMAND = re.compile(
    rf"(?<![\w/.-])connectctl (?=(?:{_OF_A_CLUSTER})(?![\w-])(?! (?:ended|has|is|needs)\b))"
)
"""The name of connectctl before such a command; ``connectctl run is …`` is a sentence about a
run.
"""
_OF_A_FILE = re.compile(r"(?<![\w/.-])connectctl (?=context (?!show\b))")
"""The same before a command on the contexts of a file."""
CONFIG = "--config"
_END = r"[.,;:)](?: |$)|$"
_ANY = re.compile(
    rf"(?<![\w/.-])(?:connectctl "
    rf"(?:--|(?:{_OF_A_CLUSTER}|completion|context|demo|docs|sandbox)(?![\w-]))"
    rf".*?(?=[.,;:)]*(?: (?:[A-Z][a-z]|[AI] |\()|{_END}))"
    rf"|(?:kafka-[a-z-]+(?:\.sh)? --|pip install |kubectl |systemctl ).*?(?=[.,;:)]*(?: \(|{_END})))"
)
"""A whole command, of connectctl or of another tool, up to the end of its clause."""


def name_cluster(given: Mapping[str, Any]) -> None:
    """Set the options that named the cluster: values by option, those that were not given None.

    An address with a login is not repeated.
    """
    cluster_options[:] = (word for option, value in given.items() for word in _words(option, value))


def _words(option: str, value: Any) -> Iterable[str]:
    if value is True:
        return (option,)
    values = value if isinstance(value, list) else [value] if value else []
    return [word for each in values if "@" not in str(each) for word in (option, str(each))]


def with_cluster(text: str) -> str:
    """Return ``text`` with these options in each command."""
    if not cluster_options or "connectctl " not in text:
        return text
    text = _with(_COMMAND, cluster_options, text)
    at = cluster_options.index(CONFIG) if CONFIG in cluster_options else None
    return text if at is None else _with(_OF_A_FILE, cluster_options[at : at + 2], text)


def _with(command: re.Pattern[str], options: Sequence[str], text: str) -> str:
    return command.sub(lambda match: f"{match[0]}{shlex.join(options)} ", text)


def words_of(text: str) -> list[str]:
    """Return the words of a text, a command as one of them: a command on two lines cannot be
    pasted.
    """
    glue = "\0"
    glued = _ANY.sub(lambda match: match[0].replace(" ", glue), text)
    return [word.replace(glue, " ") for word in glued.split(" ")]


def in_json(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return ``data`` with these options in the commands of ``nextStep``, and of its findings."""
    if not cluster_options:
        return data
    named = {
        name: with_cluster(data[name]) for name in ("nextStep",) if isinstance(data.get(name), str)
    }
    found = data.get("findings")
    if isinstance(found, list) and all(isinstance(each, dict) for each in found):
        # a list of objects
        named |= {"findings": [in_json(each) for each in found]}  # type: ignore[dict-item]
    return {**data, **named}
