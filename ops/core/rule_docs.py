"""The explanation of each finding by its id, from ``docs/findings``, for ``preflight --explain``
and ``--list``.

A document has one section for each finding: ``## ID title``, a line ``severity · source``, the
consequence as the first paragraph, then description, cause and remedy. The source is missing if no
specification is one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from connectctl.ops.core.errors import BadInput, did_you_mean

DIRECTORY = Path(__file__).resolve().parents[2] / "docs" / "findings"
"""The same path in a checkout and in an installed package, which has the documents as package
data.
"""
_SECTION = re.compile(
    r"^## ([A-Z]+\d{3}) (.+)\n\n([a-z, ]+)(?: · (.+))?\n\n((?:(?!^## ).*\n)+)", re.MULTILINE
)


@dataclass(frozen=True)
class RuleDoc:
    """The section of one finding as plain text: ``text`` is paragraphs, of which ``cause`` is the
    first.

    ``severity`` is the usual one, or several with commas. ``file`` is the name of its document.
    """

    id: str
    title: str
    severity: str
    source: str | None
    text: str
    file: str

    @property
    def cause(self) -> str:
        """Why the finding matters, in one line without a full stop, with the source if there is
        one.
        """
        first = " ".join(self.text.split("\n\n")[0].split()).rstrip(".")
        return f"{first} ({self.source})" if self.source else first


@cache
def rule_docs() -> dict[str, RuleDoc]:
    """Return every documented finding, by id in order."""
    found = (doc for path in DIRECTORY.glob("*.md") for doc in sections(path))
    return {doc.id: doc for doc in sorted(found, key=lambda doc: doc.id)}


def sections(path: Path) -> list[RuleDoc]:
    """Return the findings of one document, in its order."""
    text = path.read_text("utf-8").replace("`", "") + "\n"
    return [
        RuleDoc(id_, title, severity, source or None, body.strip(), path.name)
        for id_, title, severity, source, body in _SECTION.findall(text)
    ]


def rule_doc(id_: str) -> RuleDoc:
    """Return the section of ``id_``, in upper or lower case. Raises ``BadInput`` with the nearest
    id.
    """
    found = rule_docs().get(id_.upper())
    if found is None:
        hint = did_you_mean(
            id_.upper(), rule_docs(), "connectctl preflight --list prints them all."
        )
        raise BadInput(f"Unknown finding: {id_}", next_step=hint)
    return found
