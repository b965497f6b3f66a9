"""Findings on a page: each with a link to its explanation, and the explanations of those that occur."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from connectctl.cli.output.findings import RANK
from connectctl.cli.output.html_page import Html, Section, code, details, joined, paragraph, text
from connectctl.cli.output.printed_commands import with_cluster
from connectctl.ops.core.finding import Finding, Severity
from connectctl.ops.core.rule_docs import rule_docs

MOST = 20
"""Findings of one id that are shown."""
OPEN = 5
"""Of these, those shown before the reader expands the list."""
NOTHING = "No problems found in what could be read."


def sections(found: Sequence[Finding]) -> tuple[Section, list[Section]]:
    """Return the findings, the worst first, and their explanations, for the end of the page."""
    if not found:
        return Section("findings", "Findings", [paragraph(NOTHING)]), []
    shown: dict[tuple[Severity, str], list[Finding]] = {}
    for finding in sorted(found, key=lambda f: (RANK[f.severity], f.id, f.subject)):
        shown.setdefault((finding.severity, finding.id), []).append(finding)
    listed = Html(f'<ul class="findings">{"".join(map(_item, shown.values()))}</ul>')
    explanations = [_explanation(id_) for id_ in sorted({id_ for _, id_ in shown}) if id_ in rule_docs()]
    meanings = [Section("meanings", "What the findings mean", explanations)] if explanations else []
    return Section("findings", "Findings", [listed]), meanings


def links(ids: Iterable[str]) -> Html:
    """Return each id once, with a link to its explanation."""
    return joined(map(_link, dict.fromkeys(ids)), " ")


def _link(id_: str) -> Html:
    return Html(f'<a href="#{text(id_)}">{text(id_)}</a>') if id_ in rule_docs() else text(id_)


def _item(same: Sequence[Finding]) -> str:
    """Return the findings of one id: its title, and each finding with its subject."""
    first = same[0]
    doc, severity = rule_docs().get(first.id), first.severity.value
    title = f' <span class="dim">{text(doc.title)}</span>' if doc else ""
    items = [_finding(finding) for finding in same[:MOST]]
    markup = joined(items[:OPEN], "")
    if len(items) > OPEN:
        markup = Html(markup + details(f"{len(same) - OPEN:,} more", Html(joined(items[OPEN:], "") + _rest(same))))
    steps = dict.fromkeys(with_cluster(f.next_step) for f in same[:MOST] if f.next_step)
    return f'<li class="{severity}"><p><b>{severity}</b> {_link(first.id)}{title}</p>{markup}{_steps(list(steps))}</li>'


def _finding(finding: Finding) -> Html:
    return Html(f"<p>{code(finding.subject)} {text(finding.message)}</p>")


def _rest(same: Sequence[Finding]) -> Html:
    omitted = len(same) - MOST
    return paragraph(f"… and {omitted:,} more {same[0].id}; -o json has them all.", "dim") if omitted > 0 else Html()


def _steps(steps: Sequence[str]) -> Html:
    return joined((paragraph(step, "next") for step in steps[:OPEN]), "")


def _explanation(id_: str) -> Html:
    doc = rule_docs()[id_]
    source = f" · {text(doc.source)}" if doc.source else ""
    paragraphs = joined(map(paragraph, doc.text.split("\n\n")), "")
    return Html(
        f'<section class="story" id="{text(id_)}"><h3>{text(id_)} {text(doc.title)}</h3>'
        f'<p class="dim">{text(doc.severity)}{source}</p>{paragraphs}</section>'
    )
