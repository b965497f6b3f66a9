"""Every finding there is, by its id, with its story: what ``preflight --explain`` and ``--list`` print.

The rules of preflight carry their stories themselves. What older parts find is told in their docstrings, which begin
with the id, or in a table of ids; both are read from there, so that nothing is told twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from inspect import cleandoc
from pkgutil import walk_packages
from types import ModuleType
from typing import TYPE_CHECKING

from connectctl.ops.core.errors import BadInput

if TYPE_CHECKING:
    from connectctl.ops.core.rule import Rule

FOLDERS = ("checks", "audit")
"""Packages whose modules have ``RULES``."""
TOLD_IN_DOCSTRINGS = (
    "connect.cluster_findings",
    "connect.config_topic",
    "connect.fenced_task_diagnosis",
    "connect.offsets_findings",
    "connect.task_config_commits",
    "connect.transactional_ids",
    "connect.zombie_fencing",
    "kafka.visibility",
    "operations.connectors.fencing_diagnosis",
    "operations.fencing.planning",
    "operations.fencing.verify",
    "operations.transactions.hanging",
    "operations.transactions.lag",
)
_HEAD = re.compile(r"([A-Z]+\d{3}): (.+)", re.DOTALL)
_ROW = re.compile(r"^([A-Z]+\d{3}) +(error|warning|info) +(.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Story:
    """What there is to read about a finding; ``text`` is paragraphs, ``severity`` is given where it is fixed."""

    id: str
    title: str
    text: str
    severity: str | None = None
    source: str | None = None


@cache
def stories() -> dict[str, Story]:
    """Every story, by id in order. Raises ``ValueError`` where two rules have one id: a mistake of ours."""
    found: dict[str, Story] = {}
    for each in (*_from_rules(), *_from_docstrings()):
        if each.id in found and each.source is not None:
            raise ValueError(f"two rules are called {each.id}")
        found.setdefault(each.id, each)
    return dict(sorted(found.items()))


def story(id_: str) -> Story:
    """The story of ``id_``, whatever its case. Raises ``BadInput`` with the nearest id."""
    found = stories().get(id_.upper())
    if found is None:
        near = get_close_matches(id_.upper(), stories(), n=1)
        hint = f"Did you mean {near[0]}?" if near else "connectctl preflight --list prints them all."
        raise BadInput(f"Unknown finding: {id_}", next_step=hint)
    return found


def _from_rules() -> Iterator[Story]:
    for rule in _rules():
        text = f"{rule.why.rstrip('.')}.\n\n{cleandoc(rule.story)}"
        yield Story(rule.id, rule.title, text, rule.severity.value, rule.source)


def _rules() -> list[Rule]:
    """The rules of every module of ``FOLDERS`` that has ``RULES``; one that two modules show counts once."""
    found: dict[int, Rule] = {}
    for folder in FOLDERS:
        package = import_module(f"connectctl.ops.{folder}")
        for module in walk_packages(package.__path__, f"{package.__name__}."):
            members = import_module(module.name)
            found |= {id(rule): rule for rule in getattr(members, "RULES", ())}
    return list(found.values())


def _from_docstrings() -> Iterator[Story]:
    for name in TOLD_IN_DOCSTRINGS:
        module = import_module(f"connectctl.ops.{name}")
        for id_, severity, title in _ROW.findall(module.__doc__ or ""):
            yield Story(id_, _capital(title), _capital(title) + ".", severity)
        yield from _of_functions(module)


def _of_functions(module: ModuleType) -> Iterator[Story]:
    members = [
        m
        for holder in (module, *vars(module).values())
        if isinstance(holder, ModuleType | type)
        for m in vars(holder).values()
    ]
    for member in members:
        head = _HEAD.match(cleandoc(getattr(member, "__doc__", None) or "")) if callable(member) else None
        if head:
            text = head.group(2).replace("``", "")
            yield Story(head.group(1), _capital(text.split("\n\n")[0].replace("\n", " ").rstrip(".")), _capital(text))


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]
