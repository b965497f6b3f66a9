"""Self-contained pages from the templates in ``cli/templates``: no scripts, and a policy that
forbids all requests.

Names, messages and configurations come from outside. Each value of a template is printed in one
line, with escapes for characters that hide or reorder text, cut after ``LONGEST`` characters, and
escaped for HTML. Pages have no ``style`` attributes, so that the policy allows only their style
sheet, by its hash.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from importlib import resources
from itertools import groupby
from typing import TYPE_CHECKING, Any

from connectctl.cli.output.printed_commands import with_cluster
from connectctl.cli.output.sanitize import cut, on_one_line
from connectctl.ops.config.masking import addresses_masked, masked
from connectctl.ops.core.finding import RANK, Finding, counted
from connectctl.ops.core.rule_docs import rule_docs

if TYPE_CHECKING:
    from jinja2 import Environment

LONGEST = 4000
"""The most characters of one text on a page."""


def render(template: str, **values: object) -> str:
    """Return the page of a template."""
    return environment().get_template(template).render(values)


@cache
def environment() -> Environment:
    """Return the templates with their filters."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    style = (
        resources.files("connectctl.cli")
        .joinpath("templates/style.css")
        .read_text(encoding="utf-8")
    )
    found = Environment(
        loader=PackageLoader("connectctl.cli", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: value if isinstance(value, Markup) else _shown(str(value)),
    )
    found.filters |= {
        "count": "{:,}".format,
        "counted": counted,
        "masked": masked,
        "json": json_text,
        "with_cluster": with_cluster,
    }
    found.globals |= {
        "rule_docs": rule_docs,
        "style": Markup(style),
        "style_hash": b64encode(sha256(style.encode()).digest()).decode(),
    }
    return found


def _shown(text: str) -> str:
    """Return ``text`` as a page shows it, in quotes if nothing would be seen of it."""
    return repr(text[:LONGEST]) if text.isspace() else cut(on_one_line(text), LONGEST)


def json_text(value: Any) -> str:
    """Return ``value`` as JSON, with passwords in addresses masked."""
    return addresses_masked(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def grouped(findings: Sequence[Finding]) -> list[list[Finding]]:
    """Return the findings of each id together, the worst first."""
    ordered = sorted(findings, key=lambda f: (RANK[f.severity], f.id, f.subject))
    return [list(same) for _, same in groupby(ordered, key=lambda f: (f.severity, f.id))]


def sections(groups: Sequence[Sequence[Finding]], **headings: str) -> dict[str, str]:
    """Return the headings of a page by the names of their blocks: the findings first, and last what
    they mean.
    """
    explained = any(same[0].id in rule_docs() for same in groups)
    return (
        {"findings": "Findings"}
        | headings
        | ({"meanings": "What the findings mean"} if explained else {})
    )
