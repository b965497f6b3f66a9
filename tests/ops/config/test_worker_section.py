"""The ``workers`` section: what is wrong in it is told with its line, and what is right comes through the settings."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from connectctl.ops.config import context_file, settings, worker_section
from connectctl.ops.config.worker_section import NEEDS, USES, WorkerSettings
from connectctl.ops.core.errors import BadInput

HEAD = "contexts:\n  p:\n    workers:\n"
CHANGE = "change: set {host} {property} {value}"


def section(path: Path, body: str) -> worker_section.WorkersSection:
    """The section from a file to the settings and back."""
    file = path / "config.yaml"
    file.write_text(HEAD + "".join(f"      {line}\n" for line in body.splitlines()))
    return worker_section.from_settings(
        settings.merge({}, {}, context_file.read(file), "p").section("workers")
    )


def test_the_section_comes_whole_through_the_settings(tmp_path: Path) -> None:
    found = section(
        tmp_path,
        f"driver: command\n{CHANGE}\nrestart: restart {{host}}\ntimeout: 7\neach:\n"
        "  w3.client.example.org:8083: {driver: manual}\n"
        "  '[::1]:8083': {restart: other}\n"
        "  w4: {driver: strimzi, resource: c, apply: false}",
    )
    assert (found.driver, found.timeout) == ("command", 7)
    ways = found.by_worker
    assert ways["w3.client.example.org:8083"].driver == "manual"
    assert (ways["[::1]:8083"].restart, ways["[::1]:8083"].change) == (
        "other",
        "set {host} {property} {value}",
    )
    assert ways["w4"].apply is False


def test_nothing_said_means_a_person_does_it(tmp_path: Path) -> None:
    assert worker_section.from_settings({}).effective_driver == "manual"
    assert (
        section(tmp_path, "each: {w1: {driver: strimzi, resource: c}}").effective_driver == "manual"
    )


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("drivr: manual", "line 4: unknown key drivr. Did you mean driver?"),
        ("driver: docker", "line 4: the value of contexts.p.workers.driver does not fit"),
        (f"driver: command\n{CHANGE}\nrestart: x {{hots}}", "line 6: the value of contexts.p.workers.restart does not fit: "
         "unknown placeholder {hots}; did you mean {host}? known are {worker}, {host}, {port}, {url}"),
        (f"driver: command\n{CHANGE}\nrestart: x {{value}}", "line 6: … unknown placeholder {value}"),
        ("driver: command\nchange: set {host} {value}\nrestart: x", "line 5: … it lacks {property}"),
        ("driver: command\nrestart: x", "line 3: contexts.p.workers does not fit: the driver command requires change"),
        ("driver: properties-file", "line 3: … the driver properties-file requires file and restart"),
        ("driver: strimzi", "line 3: … the driver strimzi requires resource"),
        ("driver: strimzi\nresource: Bad Name", "line 5: the value of contexts.p.workers.resource does not fit"),
        ("driver: manual\nrestart: x", "line 5: … the driver manual does not use it"),
        ("restart: x", "line 4: … the driver manual does not use it"),
        ("driver: manual\ntimeout: 0", "line 5: the value of contexts.p.workers.timeout does not fit"),
        ("driver: manual\neach:\n  w1:8083:\n    drver: manual", "line 7: unknown key drver. Did you mean driver?"),
        ("driver: manual\neach:\n  w1:8083:\n    driver: strimzi", "line 6: …w1:8083…the driver strimzi requires resource"),
        ("driver: manual\neach:\n  w1:8083:\n    file: /x", "line 7: …does not use it"),
        ("driver: manual\neach:\n  'a b': {driver: manual}", "line 6: … it should be a worker's address"),
        ("driver: manual\neach:\n  W1.X:8083: {driver: docker}", "line 6: …workers.each.W1.X:8083.driver does not fit"),
        ("[]", "workers does not fit"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_its_line(tmp_path: Path, body: str, message: str) -> None:
    with pytest.raises(BadInput) as error:
        section(tmp_path, body)
    assert re.search(".*".join(map(re.escape, message.split("…"))), str(error.value)), str(
        error.value
    )


def test_the_rest_need_not_be_whole_where_workers_are_named(tmp_path: Path) -> None:
    found = section(
        tmp_path, "driver: properties-file\nrestart: x\neach: {w1: {file: /a}, w2: {file: /b}}"
    )
    assert found.missing == ["file"]
    assert [way.missing for way in found.by_worker.values()] == [[], []]


def test_commands_are_printed_without_their_secrets(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(
        HEAD
        + f"      driver: command\n      {CHANGE}\n      restart: curl -u ops:hunter2 {{url}}\n"
    )
    shown = dict(row[:2] for row in settings.merge({}, {}, context_file.read(file), "p").masked())
    assert shown["workers.restart"] == "curl -u ops:****** {url}"


def test_every_key_is_used_by_a_driver_and_every_needed_key_exists() -> None:
    used = {key for keys in USES.values() for key in keys}
    assert used | {"driver"} == set(WorkerSettings.model_fields)
    assert all(set(NEEDS[driver]) <= set(USES[driver]) for driver in USES)
    assert NEEDS.keys() == USES.keys()
