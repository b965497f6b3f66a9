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
_UNLINKED = re.compile(
    r"(?P<prefix>(?:[\w.$]+(?:Exception|Error): )*)(?P<path>(?:[\w$]+/){2,}[\w$]+)\s*"
)
_NEEDS = "the plugin needs the class "
_MOVED = "org.apache.kafka.common.utils."
"""The package that Kafka 4.4 moved classes from (KAFKA-20297): to ``utils.internals``."""
FITTING = (
    "Install a release of the plugin for the workers' release of Kafka: connectctl plugins list"
)
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


def needs_class(text: str) -> bool:
    """Return whether a worker's error, ``shortened`` or not, is that a plugin calls a class that
    the worker does not have.
    """
    return _NEEDS in text or _UNLINKED.fullmatch(text) is not None


def shortened(text: str) -> str:
    """Return ``text`` with one sentence in place of a worker's list of plugins, or of nothing but
    the name of a class that a plugin calls (``NoClassDefFoundError``).
    """
    if unlinked := _UNLINKED.fullmatch(text):
        name = unlinked["path"].replace("/", ".")
        why = ", which Kafka 4.4 moved" if name.startswith(_MOVED) else ""
        return f"{unlinked['prefix']}{_NEEDS}{name}{why}; the worker does not have it"
    return _CONNECTOR.sub(lambda found: str(missing_class(found.group())), text)


def _similar(name: str, installed: str) -> str | None:
    names = {_simple(path): path for path in _PLUGIN.findall(installed)}
    close = get_close_matches(_simple(name), names, 1)
    return names[close[0]] if close else None


def _simple(name: str) -> str:
    return name.rsplit(".", 1)[-1].removesuffix("Connector")
