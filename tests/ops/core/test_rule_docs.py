"""Every finding that the program can have is documented, once, with something to read."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from importlib import import_module
from pkgutil import walk_packages
from runpy import run_path

import pytest
from connectctl import ops
from connectctl.ops.core import rule_docs
from connectctl.ops.core.errors import BadInput
from connectctl.ops.core.finding import Severity
from connectctl.ops.core.rule import Rule
from sources import ROOT, below, nodes, text, tree

_ID = re.compile(r'"([A-Z]{3,}\d{3})"')
_HEAD = re.compile(r"^## (\S+)", re.MULTILINE)


def _ids_of_code() -> set[str]:
    return {id_ for path in below("ops", "cli") for id_ in _ID.findall(text(path))}


def _rules() -> Iterator[Rule]:
    """The rules of every module, each once, however many modules import it."""
    found: dict[int, Rule] = {}
    for area in ("checks", "audit"):
        package = import_module(f"{ops.__name__}.{area}")
        for module in walk_packages(package.__path__, f"{package.__name__}."):
            members = [*vars(import_module(module.name)).values()]
            members += [
                value for each in members if isinstance(each, dict) for value in each.values()
            ]
            found |= {id(rule): rule for rule in members if isinstance(rule, Rule)}
    yield from found.values()


def test_every_id_of_the_code_is_documented_and_every_documented_id_is_in_the_code() -> None:
    assert _ids_of_code() == rule_docs.rule_docs().keys()
    assert len(rule_docs.rule_docs()) > 100


def test_every_section_is_read_and_no_id_has_two() -> None:
    heads = [
        id_ for path in rule_docs.DIRECTORY.glob("*.md") for id_ in _HEAD.findall(path.read_text())
    ]
    assert sorted(heads) == list(rule_docs.rule_docs())


def test_no_two_rules_have_one_id() -> None:
    ids = [rule.id for rule in _rules()]
    assert len(ids) == len(set(ids)) > 100


def test_rules_are_documented_with_their_severity_and_say_where_they_are_written() -> None:
    for rule in _rules():
        doc = rule_docs.rule_doc(rule.id)
        assert doc.severity == rule.severity.value, rule.id
        assert doc.source, rule.id
        assert 2 <= len(doc.text.split("\n\n")) <= 7, rule.id
        assert len(doc.text) > 120, rule.id


def _severities(node: ast.AST) -> set[str]:
    return {each.lower() for each in re.findall(r"Severity\.([A-Z]+)", ast.unparse(node))}


def _with_severity(node: ast.AST, ids: dict[str, ast.expr]) -> Sequence[ast.expr]:
    """The id of a finding that ``node`` makes, and its severity: a ``Finding``, a rule, or what a
    rule has found.
    """
    match node:
        case ast.Call(func=ast.Name(id="Finding" | "Rule"), args=args):
            return args
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="found"), keywords=more) if (
            name in ids
        ):
            return [ids[name], *(each.value for each in more if each.arg == "severity")]
        case ast.Tuple(elts=elements):
            return elements
    return ()


def test_findings_of_no_check_are_documented_with_every_severity_that_they_can_have() -> None:
    can_have: dict[str, set[str]] = {}
    checks = {*below("ops/checks", "ops/connector_config")}
    for path in (path for path in below("ops", "cli") if path not in checks):
        module = tree(path)
        ids: dict[str, ast.expr] = {}
        for statement in module.body:
            match statement:
                case ast.Assign(
                    targets=[ast.Name(id=name)],
                    value=ast.Call(func=ast.Name(id="Rule"), args=[rule, _]),
                ):
                    ids[name] = rule
        for node in nodes(path):
            match _with_severity(node, ids):
                case [ast.Constant(value=str(id_)), severity, *_] if re.fullmatch(
                    r"[A-Z]{3,}\d{3}", id_
                ):
                    # One that is a parameter is any that its module names.
                    found = _severities(severity) or (
                        _severities(module) if isinstance(node, ast.Call) else set()
                    )
                    can_have.setdefault(id_, set()).update(found)
    in_order = {
        id_: ", ".join(s.value for s in Severity if s.value in found)
        for id_, found in can_have.items()
        if found
    }
    assert len(in_order) > 50
    assert {id_: rule_docs.rule_doc(id_).severity for id_ in in_order} == in_order


def test_a_document_is_more_than_its_title() -> None:
    for id_, doc in rule_docs.rule_docs().items():
        assert not doc.title.endswith("."), id_
        assert len(doc.text) >= len(doc.title), id_
        assert set(doc.severity.split(", ")) <= {"error", "warning", "info"}, id_
        assert doc.text.split("\n\n")[0].endswith("."), id_


def test_the_index_is_of_the_documents() -> None:
    made = run_path(str(ROOT / "docs" / "site" / "made_pages.py"))
    page = (rule_docs.DIRECTORY / "README.md").read_text()
    assert page == made["findings"](), "python docs/site/made_pages.py"


def test_ids_are_found_in_any_case_and_a_wrong_one_names_the_nearest() -> None:
    assert rule_docs.rule_doc("store001").id == "STORE001"
    with pytest.raises(BadInput, match="Did you mean STORE0"):
        rule_docs.rule_doc("STOR001")
