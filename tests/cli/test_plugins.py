"""``connectctl plugins``: of all workers, and where they differ."""

from __future__ import annotations

import json

import pytest
from connectctl.ops.core.errors import ConnectctlError, Unreachable
from fakes.adminworkers import ONE, SOURCE, TWO, AdminWorkers, run

NEWER = SOURCE | {"version": "2"}
OTHER = {"class": "z.SourceConnector", "type": "source", "version": "undefined"}
CONVERTER = {"class": "x.y.JsonConverter", "type": "converter", "version": "4.3.1"}


def test_plugins_of_all_workers_are_listed_with_types_and_versions() -> None:
    both = [SOURCE, CONVERTER, OTHER]
    done = run(AdminWorkers(plugins={ONE: both, TWO: both}), "plugins", "list")
    assert (done.exit_code, done.stderr) == (0, "")
    assert [line.split() for line in done.stdout.splitlines()] == [
        ["TYPE", "VERSION", "WORKERS", "CLASS"],
        ["converter", "4.3.1", "all", "x.y.JsonConverter"],
        ["source", "1", "all", "x.y.Source"],
        ["source", "-", "all", "z.SourceConnector"],
    ]


def test_several_versions_are_rows_and_what_a_worker_lacks_is_told() -> None:
    done = run(AdminWorkers(plugins={ONE: [SOURCE, NEWER], TWO: [NEWER]}), "plugins", "list")
    assert [line.split()[1:3] for line in done.stdout.splitlines()[1:]] == [
        ["1", "one:8083"],
        ["2", "all"],
    ]
    assert done.stderr == "warning: x.y.Source 1 is not on two:8083\n"


def test_a_worker_that_does_not_answer_is_unknown_and_not_without_plugins() -> None:
    workers = AdminWorkers(errors={f"{TWO}/connector-plugins": Unreachable("two is gone")})
    done = run(workers, "plugins", "list", "-o", "json")
    data = json.loads(done.stdout)
    assert (done.exit_code, data["workers"]) == (1, ["one:8083"])
    assert "two is gone" in data["silentWorkers"]["two:8083"]
    assert "is not on" not in done.stderr
    none = AdminWorkers(errors={"http": Unreachable("all are gone")})
    assert run(none, "plugins", "list").exit_code == 5


def test_types_are_chosen_and_names_are_one_a_line() -> None:
    workers = AdminWorkers(plugins={ONE: [SOURCE, CONVERTER, NEWER], TWO: [SOURCE]})
    assert (
        run(workers, "plugins", "list", "--type", "source", "-o", "name").stdout == "x.y.Source\n"
    )
    assert run(workers, "plugins", "list", "--type", "SINK").stderr.startswith(
        "No plugin of this type."
    )


@pytest.mark.parametrize("name", ["z.SourceConnector", "SourceConnector"])
def test_a_plugin_is_shown_by_its_name_and_the_end_of_it(name: str) -> None:
    workers = AdminWorkers(plugins={ONE: [OTHER], TWO: []})
    done = run(workers, "plugins", "show", name, "-o", "json")
    data = json.loads(done.stdout)
    assert data["versions"] == [{"version": None, "workers": ["one:8083"]}]
    assert (
        data["properties"][0]["documentation"]
        == f"asked {ONE}/connector-plugins/z.SourceConnector/config"
    )
    assert run(workers, "plugins", "show", name, "-o", "name").stdout == "file\npin\n"


def test_a_table_of_properties_tells_required_ones_from_those_without_a_default() -> None:
    done = run(AdminWorkers(), "plugins", "show", "Source")
    assert [line.split()[:4] for line in done.stdout.splitlines()[1:]] == [
        ["file", "STRING", "(required)", "HIGH"],
        ["pin", "PASSWORD", "[hidden]", "LOW"],
    ]
    assert done.stderr == "x.y.Source (source): 1 on one:8083, two:8083\n"


def test_one_of_several_versions_is_asked_of_a_worker_that_has_it() -> None:
    workers = AdminWorkers(plugins={ONE: [SOURCE], TWO: [NEWER]})
    done = run(workers, "plugins", "show", "Source", "--plugin-version", "2", "-o", "json")
    assert f"{TWO}/connector-plugins/x.y.Source/config?version=2" in done.stdout
    missing = run(workers, "plugins", "show", "Source", "--plugin-version", "3")
    assert (missing.exit_code, "Available versions: 1, 2." in missing.stderr) == (2, True)


def test_an_alias_of_several_classes_and_of_none_is_refused() -> None:
    workers = AdminWorkers(plugins={ONE: [SOURCE, OTHER], TWO: []})
    several = run(workers, "plugins", "show", "Source")
    assert (several.exit_code, "x.y.Source, z.SourceConnector" in several.stderr) == (2, True)
    none = run(workers, "plugins", "show", "Sorce")
    assert (none.exit_code, "Did you mean" in none.stderr) == (2, True)


def test_workers_that_cannot_tell_are_named_with_the_release_that_can() -> None:
    gone = ConnectctlError("The worker answers 404", why="HTTP 404 Not Found", code="not-found")
    done = run(
        AdminWorkers(errors={f"{ONE}/connector-plugins/": gone}), "plugins", "show", "Source"
    )
    assert (done.exit_code, "available since Kafka 3.2" in done.stderr) == (1, True)
