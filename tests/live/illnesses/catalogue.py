"""The catalogue of ``doctor``: illnesses, each planted on a real cluster by a few lines, with the
finding that has to name it, and healthy situations that resemble them.

``docs/illnesses.md`` is made of it.
"""

from __future__ import annotations

import re

from connectctl.ops.core.rule_docs import rule_doc
from live.illnesses import brokers, failures, rights, sinks, sources, transactions, workers
from live.illnesses.bed import SITUATIONS, Situation, Where

MODULES = (sources, sinks, failures, transactions, rights, workers, brokers)
"""The modules that plant, in the order of the page; to import them fills ``SITUATIONS``."""


def in_order() -> dict[str, Situation]:
    """Return all situations by name, in the order of the modules."""
    modules = [module.__name__ for module in MODULES]
    found = sorted(SITUATIONS.items(), key=lambda item: modules.index(item[1].plant.__module__))
    return dict(found)


def situations(where: Where) -> dict[str, Situation]:
    """Return the situations of a cluster by name, in their order."""
    return {name: each for name, each in in_order().items() if each.where is where}


def parts(number: int) -> list[dict[str, Situation]]:
    """Return the situations that are planted side by side in ``number`` parts of equal size."""
    every = list(situations(Where.CONNECTORS).items())
    return [dict(every[first::number]) for first in range(number)]


def page() -> str:
    """Return ``docs/illnesses.md``."""
    ill = [
        f"| {s.title} | [{s.finding}]({_section(s.finding)}) | {s.words} |"
        for s in in_order().values()
        if s.finding
    ]
    well = [f"- {s.title}." for s in in_order().values() if not s.finding]
    return PAGE.format(ill="\n".join(ill), well="\n".join(well), many=len(ill), healthy=len(well))


def _section(id: str) -> str:
    """Return the link to the section of a finding, with the anchor that GitHub gives its title."""
    doc = rule_doc(id)
    words = re.sub(r"[^\w -]", "", f"{doc.id} {doc.title}".lower()).replace(" ", "-")
    return f"findings/{doc.file}#{words}"


PAGE = """# Illnesses that doctor names

Each of these {many} is planted on a real cluster by `tests/live/illnesses`, beside the {healthy} healthy situations
below, and `connectctl doctor` has to name it in the first line of a finding.

| planted | finding | its line has |
| --- | --- | --- |
{ill}

## Healthy situations

Each resembles an illness, and `doctor` reports neither an error nor a warning about it:

{well}
"""
