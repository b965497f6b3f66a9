"""HttpPages without a cluster, and with a real HTTP server."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from urllib.error import HTTPError

import http_pages
import pytest
from connectctl.testing import check_exactly_once, run_source
from http_pages import HttpPages
from http_pages_api import Api


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[Api]:
    monkeypatch.setattr(http_pages, "LONGEST_PAUSE", 0.0)
    with Api() as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}).start()
        yield server
        server.shutdown()


def config(api: Api, **more: str) -> dict[str, str]:
    fixed = {
        "url": api.url,
        "resources": "orders, customers",
        "topic.prefix": "shop-",
        "page.size": "2",
    }
    return (
        fixed
        | {"value.converter": "JsonConverter", "value.converter.schemas.enable": "false"}
        | more
    )


@pytest.mark.parametrize("tasks", ["1", "2", "5"])
def test_each_item_of_each_resource_is_a_record_of_its_topic(api: Api, tasks: str) -> None:
    run = run_source(HttpPages, config(api, **{"tasks.max": tasks}))
    for name in ("orders", "customers"):
        found = [json.loads(value or b"") for value in run.values(f"shop-{name}")]
        assert found == [{"id": n, "of": name} for n in range(1, 6)]
    offsets = {partition["resource"]: offset for partition, offset in run.offsets}
    assert offsets == {"orders": {"id": 5}, "customers": {"id": 5}}


def test_new_items_are_read_behind_the_committed_id(api: Api) -> None:
    first = run_source(HttpPages, config(api))
    api.items["orders"].append({"id": 9, "of": "orders"})
    second = run_source(HttpPages, config(api), offsets=first.offsets)
    assert second.values() == [b'{"id":9,"of":"orders"}']


def test_an_api_that_is_away_for_a_moment_is_asked_again(api: Api) -> None:
    api.answers = [503, 429]
    assert len(run_source(HttpPages, config(api)).records) == 10


def test_a_token_that_is_not_accepted_fails_the_task(api: Api) -> None:
    api.answers = [401]
    with pytest.raises(HTTPError, match="401"):
        run_source(HttpPages, config(api, token="t"))
    assert api.tokens == {"Bearer t"}


def test_it_is_exactly_once_whatever_fails(api: Api) -> None:
    check_exactly_once(lambda fail_at: run_source(HttpPages, config(api), fail_at=fail_at))


def test_an_address_that_is_none_is_refused() -> None:
    problems = HttpPages().validate({"url": "shop:80", "resources": "orders", "topic.prefix": ""})
    assert "use http://… or https://…" in problems["url"][0]
    assert list(problems) == ["topic.prefix", "url"]
