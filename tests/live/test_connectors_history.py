"""What a connector was, and the way back to it, on a real broker and real workers: changed by us,
by others, and deleted.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import jsonschema
import pytest
from live.connectorfiles import config, config_of, file, last_run, name, run
from live.real import workers

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

SCHEMAS = Path(__file__).parents[2] / "docs" / "schema"
__all__ = ["name"]
pytestmark = pytest.mark.live


def test_every_version_is_told_and_given_back(cluster: Sandbox, name: str, tmp_path: Path) -> None:
    first = config(name, tmp_path, **{"database.password": "hush-hush"})
    run(cluster, "connectors", "create", "-f", file(tmp_path, ".json", first), "--yes", "--wait")
    creating = last_run()
    run(
        cluster,
        "connectors",
        "patch",
        name,
        "batch.size=7",
        "database.password=other-one",
        "--yes",
        "--wait",
    )
    patching, second = last_run(), first | {"batch.size": "7", "database.password": "other-one"}
    third = second | {"batch.size": "9"}
    answer = workers(cluster).call("PUT", f"/connectors/{name}/config", third)
    assert answer.status_code == 200, answer.text

    told = run(cluster, "connectors", "history", name, "-o", "json")
    assert told.json["configTopicUnseen"] is None
    revisions = told.json["revisions"]
    assert [(v["what"], v["run"]) for v in revisions] == [
        ("changed", None),
        ("changed", patching),
        ("oldest known", creating),
    ]
    newest, _, oldest = [v["revision"] for v in revisions]
    assert int(oldest) < int(newest)
    assert revisions[0]["changes"] == {"batch.size": "9"}
    jsonschema.validate(told.json, json.loads((SCHEMAS / "connectors-history.json").read_text()))
    shown = run(cluster, "connectors", "history", name)
    assert "batch.size=9" in shown.out
    one = run(cluster, "connectors", "history", name, "--show", oldest, "-o", "json")
    jsonschema.validate(one.json, json.loads((SCHEMAS / "connectors-revision.json").read_text()))
    assert one.json["config"]["file"] == first["file"]

    back = run(cluster, "connectors", "rollback", name, "--to", oldest, "--yes", "--wait")
    assert config_of(cluster, name) == first
    rolling = last_run()
    run(cluster, "runs", "undo", rolling, "--yes", "--wait")
    assert config_of(cluster, name) == third
    for _ in range(2):
        run(cluster, "connectors", "rollback", name, "--to", oldest, "--yes", "--wait")
        assert config_of(cluster, name) == first
    run(cluster, "connectors", "rollback", name, "--to", newest, "--yes", "--wait")

    run(cluster, "connectors", "delete", name, "--yes", "--wait")
    gone = run(cluster, "connectors", "history", name)
    assert "deleted" in gone.out
    deletion = run(cluster, "connectors", "history", name, "-o", "json").json["revisions"][0][
        "revision"
    ]
    refused = run(cluster, "connectors", "rollback", name, "--to", deletion, "--yes", code=2)
    assert f"Revision {deletion} of {name} is its deletion" in refused.err
    run(cluster, "connectors", "rollback", name, "--to", newest, "--yes", "--wait")
    assert config_of(cluster, name) == third
    said = "".join(each.out + each.err for each in (told, shown, one, back, gone, refused))
    assert "hush-hush" not in said
    assert "other-one" not in said


def test_what_nobody_knows_is_an_error_that_says_where_it_was_looked_for(cluster: Sandbox) -> None:
    unknown = run(cluster, "connectors", "history", "never-there", code=2)
    assert "neither the config topic nor the journal" in unknown.err
    assert len(unknown.err.strip().splitlines()) <= 2
