"""Whatever a worker answers, or something that is taken for one: readers take it, or say that it is
not Connect.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from connectctl.ops.clients.rest import connect
from connectctl.ops.clients.rest.connect import Connect
from connectctl.ops.connect.connect_protocol import ConnectGroup, Member
from connectctl.ops.connect.connector import Connector
from connectctl.ops.connector_config import validations
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.operations.cluster import loggers, plugins, worker_answers
from connectctl.ops.operations.connectors import tracked_topics
from connectctl.ops.operations.connectors.config.outlook import read_offsets
from connectctl.ops.operations.connectors.config.values import read_config
from connectctl.ops.operations.connectors.observe import from_workers, read_one, with_health
from connectctl.ops.operations.connectors.plugin_passwords import defined_passwords
from connectctl.ops.operations.connectors.remaining_resources import remaining_resources
from connectctl.ops.operations.connectors.tracked_topics import active_topics
from connectctl.ops.operations.tasks_max.observe import tasks_of_workers
from depth import deep
from fakes.anyjson import encodings
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

URL = "http://w:8083"
STATUS = {
    "name": "a",
    "connector": {"state": "RUNNING", "worker_id": "w:8083"},
    "tasks": [{"id": 0, "state": "FAILED", "worker_id": "w:8083", "trace": "java.lang.X: no"}],
    "type": "source",
}
INFO = {
    "name": "a",
    "config": {"connector.class": "x.Source", "n": None},
    "tasks": [{"connector": "a", "task": 0}],
}
VALIDATION = {
    "name": "x",
    "error_count": 1,
    "configs": [{"definition": {}, "value": {"name": "n", "errors": ["no"]}}],
}
VALID: dict[str, Any] = {
    "everything": {"a": {"status": STATUS, "info": INFO}},
    "status": STATUS,
    "info": INFO,
    "names": ["a"],
    "root": {"version": "4.3.1", "commit": "c", "kafka_cluster_id": "k"},
    "topics": {"a": {"topics": ["t"]}},
    "offsets": {"offsets": [{"partition": {"p": 1}, "offset": {"o": 2}}]},
    "plugins": [{"class": "x.Source", "type": "source", "version": "1"}],
    "definitions": [{"name": "n", "type": "PASSWORD"}],
    "loggers": {"root": {"level": "INFO", "last_modified": None}},
    "validation": VALIDATION,
}
GROUP = ConnectGroup("g", "Stable", "sessioned", (Member("m", "c", "h", URL, 1, None),))
LOOSE = Connector("a", None)


def _definitions(calls: Connect) -> Any:
    found = plugins.Plugin("source", "x.Source", "1", ("w:8083",))
    return [each.get("name") for each in plugins.definitions(calls, [found], None)]


READERS: tuple[Callable[[Connect], Any], ...] = (
    lambda calls: [str(health.verdict) for health in with_health(from_workers(calls), None)],
    lambda calls: str(with_health([read_one(calls, "a")], None)[0].verdict),
    lambda calls: read_config(calls, "a"),
    lambda calls: defined_passwords(calls, {"connector.class": "x.Source"}),
    lambda calls: tracked_topics.read(calls, "a"),
    lambda calls: active_topics(calls, ["a"]),
    lambda calls: read_offsets(calls, "a"),
    lambda calls: remaining_resources(calls, LOOSE, "g", None, with_offsets=False),
    lambda calls: plugins.read(calls).plugins,
    _definitions,
    lambda calls: [loggers.level_of(levels, "a.b") for levels in loggers.read(calls).values()],
    lambda calls: worker_answers.ask_all(calls, GROUP),
    lambda calls: tasks_of_workers(calls).sets,
    lambda calls: validations.ask(calls, [URL], {"x": {"connector.class": "x.Source"}}),
)


@pytest.mark.parametrize("valid", VALID)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=deep(40, 25))
@given(data=st.data())
def test_any_answer_is_read_or_told_to_be_none_of_connect(
    valid: str, data: st.DataObject, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = data.draw(encodings(VALID[valid]))
    monkeypatch.setattr(connect, "ask", lambda *_, **__: httpx.Response(200, content=body))
    calls = Connect([URL], auth={}, tls={}, timeout=1)
    codes = set()
    for read in READERS:
        try:
            read(calls)
        except ConnectctlError as e:
            codes.add(e.code)
    assert codes <= {"not-connect", "unsupported"}


@pytest.mark.parametrize("valid", VALID)
def test_what_connect_answers_is_read(valid: str, monkeypatch: pytest.MonkeyPatch) -> None:
    body = json.dumps(VALID[valid]).encode()
    monkeypatch.setattr(connect, "ask", lambda *_, **__: httpx.Response(200, content=body))
    paths = {
        "everything": "/connectors?expand=status&expand=info",
        "status": "/connectors/a%2Fb/status",
        "info": "/connectors/a",
        "names": "/connectors",
        "root": "/",
        "topics": "/connectors/a/topics",
        "offsets": "/connectors/a/offsets",
        "plugins": "/connector-plugins?connectorsOnly=false",
        "definitions": "/connector-plugins/x/config",
        "loggers": "/admin/loggers",
        "validation": "/connector-plugins/x/config/validate",
    }
    method = "PUT" if valid == "validation" else "GET"
    calls = Connect([URL], auth={}, tls={}, timeout=1)
    assert calls.send(method, paths[valid]) == VALID[valid]


def test_an_answer_of_another_shape_names_the_member(monkeypatch: pytest.MonkeyPatch) -> None:
    body = b'{"name": "a", "connector": {"state": "RUNNING"}, "tasks": [{"id": "zero", "state": "RUNNING"}]}'
    monkeypatch.setattr(connect, "ask", lambda *_, **__: httpx.Response(200, content=body))
    with pytest.raises(ConnectctlError, match="not that of a Connect worker") as raised:
        Connect([URL], auth={}, tls={}, timeout=1).get("/connectors/a/status")
    assert (raised.value.code, raised.value.why) == (
        "not-connect",
        "tasks[0].id is a text, and not a whole number",
    )
