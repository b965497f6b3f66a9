from __future__ import annotations

from pathlib import Path

import pytest
from connectctl.ops.config import context_file
from connectctl.ops.config.application_section import from_settings
from connectctl.ops.config.settings import merge
from connectctl.ops.core.errors import BadInput

FILE = """
contexts:
  prod:
    applications:
      orders:
        instances: [app-1:7001, app-2:7001]
        driver: command
        change: set {{property}} {{value}} {{host}}
        restart: systemctl --password=hunter2 restart {host}
        each:
          app-2.example:7001: {{driver: manual}}
      orders.totals: {{instances: [t:1], driver: manual}}
"""


def read(tmp_path: Path, text: str) -> context_file.Parsed:
    path = tmp_path / "config.yaml"
    path.write_text(text.replace("{{", "{").replace("}}", "}"))
    return context_file.read(path)


def test_applications_are_read_whatever_they_are_called(tmp_path: Path) -> None:
    section = merge({}, {}, read(tmp_path, FILE), "prod").section("applications")
    orders, totals = from_settings("orders", section), from_settings("orders.totals", section)
    assert orders is not None
    assert totals is not None
    assert (orders.instances, orders.effective_driver) == (["app-1:7001", "app-2:7001"], "command")
    assert orders.by_worker["app-2.example:7001"].effective_driver == "manual"
    assert totals.instances == ["t:1"]
    assert from_settings("order", section) is None


def test_secrets_in_an_applications_commands_are_masked(tmp_path: Path) -> None:
    shown = {name: value for name, value, _ in merge({}, {}, read(tmp_path, FILE), "prod").masked()}
    assert "hunter2" not in shown["applications.orders.restart"]
    assert shown["applications.orders.instances"] == "app-1:7001,app-2:7001"


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("{{instances: [nowhere]}}", "host:port"),
        ("{{driver: strimzi}}", "does not fit"),
        ("{{driver: command, restart: x}}", "requires change"),
        ("{{instance: [a:1]}}", "unknown key instance"),
    ],
)
def test_what_an_application_cannot_be_is_told_with_its_line(
    tmp_path: Path, line: str, told: str
) -> None:
    with pytest.raises(BadInput) as raised:
        read(tmp_path, f"contexts:\n  prod:\n    applications:\n      a: {line}\n").entry("prod")
    assert "line 4" in raised.value.what
    assert told in f"{raised.value.what} {raised.value.why}"
