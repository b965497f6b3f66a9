"""Of kafka-python only public parts are used: its private ones change in any version."""

from __future__ import annotations

import ast

from documentation import ROOT

OF_NAMED_TUPLES = {"_replace", "_asdict"}


def test_clients_of_kafka_python_touch_no_private_member_of_another_object() -> None:
    modules = sorted((ROOT / "ops/clients/kafka_protocol").glob("*.py"))
    private = [
        f"{module.name}:{node.lineno}: {ast.unparse(node)}"
        for module in modules
        for node in ast.walk(ast.parse(module.read_text()))
        if isinstance(node, ast.Attribute)
        and node.attr.startswith("_")
        and not node.attr.startswith("__")
        and node.attr not in OF_NAMED_TUPLES
        and ast.unparse(node.value) not in ("self", "cls")
    ]
    assert private == []
    assert len(modules) > 20
