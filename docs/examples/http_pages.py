"""A source connector that reads an HTTP API page by page, using only Python's standard library.

The API returns the items after an id, oldest first: ``GET {url}/{resource}?after=41&limit=100``
returns ``{"items": [{"id": 42, …}, …]}``. Each resource is a source partition, and its offset is
the id of the last item. Most APIs with a cursor are suitable: a page must be repeatable after any
item, with the same items in the same order.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode
from urllib.request import Request, urlopen

from connectctl.source import (
    ExactlyOnceSupport,
    RetriableError,
    Setting,
    SourceConnector,
    SourceRecord,
    SourceTask,
)

TIMEOUT = 10.0
"""Seconds for one request."""
LONGEST_PAUSE = 1.0
"""Maximum seconds that a poll waits, so that the task can be stopped at any time."""
RETRIED = {408, 425, 429, 500, 502, 503, 504}
"""Statuses of temporary errors."""


class HttpPagesTask(SourceTask):
    """Reads its share of the resources in turn, one page per poll."""

    def start(self, configs: Mapping[str, str]) -> None:
        """Start after the committed ids."""
        self.configs = configs
        self.resources = configs["task.resources"].split(",")
        self.after: dict[str, int | None] = {}
        for resource in self.resources:
            committed = self.context.offsets.offset({"resource": resource})
            self.after[resource] = committed["id"] if committed else None
        self.turn = 0

    def poll(self) -> list[SourceRecord] | None:
        """Return a page of the next resource that has one, or None. Raises ``RetriableError`` if
        the API is unavailable.
        """
        for _ in self.resources:
            resource = self.resources[self.turn % len(self.resources)]
            self.turn += 1
            items = self._page(resource)
            if items:
                self.after[resource] = items[-1]["id"]
                return [self._record(resource, item) for item in items]
        time.sleep(min(float(self.configs.get("poll.interval.ms", "1000")) / 1000, LONGEST_PAUSE))
        return None

    def _record(self, resource: str, item: dict[str, Any]) -> SourceRecord:
        topic = self.configs["topic.prefix"] + resource
        return SourceRecord(
            {"resource": resource}, {"id": item["id"]}, topic, item, key=str(item["id"])
        )

    def _page(self, resource: str) -> list[dict[str, Any]]:
        after = self.after[resource]
        query = {"limit": self.configs.get("page.size", "100")} | (
            {} if after is None else {"after": str(after)}
        )
        url = f"{self.configs['url'].rstrip('/')}/{quote(resource)}?{urlencode(query)}"
        headers = {"Accept": "application/json"}
        if token := self.configs.get("token"):
            headers["Authorization"] = f"Bearer {token}"
        try:
            with urlopen(Request(url, headers=headers), timeout=TIMEOUT) as answer:
                items: list[dict[str, Any]] = json.load(answer)["items"]
                return items
        except HTTPError as e:
            e.close()
            if e.code not in RETRIED:
                raise  # 401, 404: a retry does not help; the task fails
            time.sleep(LONGEST_PAUSE)  # the runtime polls again immediately
            raise RetriableError(f"{url}: {e.code} {e.reason}") from e
        except (URLError, TimeoutError, ConnectionError) as e:
            time.sleep(LONGEST_PAUSE)
            raise RetriableError(f"{url}: {e}") from e


class HttpPages(SourceConnector):
    """Distributes the resources among the tasks."""

    task = HttpPagesTask
    settings = (
        Setting("url", "the API, without the resource", required=True),
        Setting("resources", "names of resources, separated by commas", required=True),
        Setting("topic.prefix", "begins the names of topics; the resource follows", required=True),
        Setting("token", "sent as a Bearer token"),
        Setting("page.size", "items in a page", default="100"),
        Setting(
            "poll.interval.ms",
            "milliseconds between two requests that found nothing, at most 1000",
            default="1000",
        ),
    )

    def validate(self, configs: Mapping[str, str]) -> dict[str, list[str]]:
        """Also check that ``url`` is a URL."""
        problems = super().validate(configs)
        if not configs.get("url", "http://").startswith(("http://", "https://")):
            problems["url"] = [
                f"Invalid value {configs['url']} for configuration url: use http://… or https://…"
            ]
        return problems

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        """Return at most one task per resource."""
        names = sorted(
            {name.strip() for name in self.configs["resources"].split(",") if name.strip()}
        )
        shares = [names[n::max_tasks] for n in range(min(max_tasks, len(names)))]
        return [{**self.configs, "task.resources": ",".join(share)} for share in shares]

    def exactly_once_support(self, configs: Mapping[str, str]) -> ExactlyOnceSupport:
        """Supported: a page can be requested again after any committed id."""
        return ExactlyOnceSupport.SUPPORTED
