"""The errors of workers about a class that they do not have, in one line. Pure.

A worker lists every plugin that it has, 8 to 16 kB, in its error about a connector's class.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches

INSTALL = "install the plugin on every worker: connectctl plugins list"
_CONNECTOR = re.compile(
    r"Failed to find any class that implements \w+ and which name matches "
    r"(?P<name>[^\s,]*[^\s,.])(?:\.(?=\s|$))?(?:, available \w+ are:?(?P<installed>.*))?",
    re.DOTALL,
)
_SHORTENED = re.compile(
    r"No such class (?P<name>[^\s;]+)(?:; did you mean (?P<similar>[^\s?]+)\?|\.?\s*$)"
)
_OTHER = re.compile(r"Class (?P<name>\S+) could not be found\.?")
_PLUGIN = re.compile(r"name='([^']+)'")


@dataclass(frozen=True)
class MissingClass:
    """A class that a worker does not have. ``similar`` is the most similar one that it has."""

    name: str
    similar: str | None = None

    def __str__(self) -> str:
        question = f"; did you mean {self.similar}?" if self.similar else ""
        return f"No such class {self.name}{question}"


def missing_class(text: str) -> MissingClass | None:
    """Return the class that a worker's error ``text`` is about, None for any other error. The error
    may be ``shortened``.
    """
    if known := _SHORTENED.search(text):
        return MissingClass(known["name"], known["similar"])
    if found := _CONNECTOR.search(text):
        return MissingClass(found["name"], _similar(found["name"], found["installed"] or ""))
    other = _OTHER.search(text)
    return MissingClass(other["name"]) if other else None


def shortened(text: str) -> str:
    """Return ``text`` with one sentence in place of a worker's list of plugins."""
    return _CONNECTOR.sub(lambda found: str(missing_class(found.group())), text)


def _similar(name: str, installed: str) -> str | None:
    names = {_simple(path): path for path in _PLUGIN.findall(installed)}
    close = get_close_matches(_simple(name), names, 1)
    return names[close[0]] if close else None


def _simple(name: str) -> str:
    return name.rsplit(".", 1)[-1].removesuffix("Connector")
