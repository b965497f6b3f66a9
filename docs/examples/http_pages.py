"""A source connector that reads an HTTP API page by page, with nothing but Python's standard library.

The API gives the items behind an id, oldest first: ``GET {url}/{resource}?after=41&limit=100`` answers
``{"items": [{"id": 42, …}, …]}``. Each resource is a source partition, and its offset is the id of the last item.
Most APIs with a cursor fit: what matters is that a page can be asked for again, behind any item, and has the same items in
the same order.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode
from urllib.request import Request, urlopen

from connectctl.source import ExactlyOnceSupport, RetriableError, Setting, SourceConnector, SourceRecord, SourceTask

TIMEOUT = 10.0
"""Seconds for one request."""
LONGEST_PAUSE = 1.0
"""Seconds that a poll waits at most, so that the task can be stopped at any time."""
RETRIED = {408, 425, 429, 500, 502, 503, 504}
"""Answers that may be others the next time."""


class HttpPagesTask(SourceTask):
    """Reads its share of the resources in turn, a page in each poll."""

    def start(self, configs: Mapping[str, str]) -> None:
        """Begin behind the committed ids."""
        self.configs = configs
        self.resources = configs["task.resources"].split(",")
        self.after: dict[str, int | None] = {}
        for resource in self.resources:
            committed = self.context.offsets.offset({"resource": resource})
            self.after[resource] = committed["id"] if committed else None
        self.turn = 0

    def poll(self) -> list[SourceRecord] | None:
        """A page of the next resource that has one; None where none has. Raises ``RetriableError`` while the API is away."""
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
        return SourceRecord({"resource": resource}, {"id": item["id"]}, topic, item, key=str(item["id"]))

    def _page(self, resource: str) -> list[dict[str, Any]]:
        after = self.after[resource]
        query = {"limit": self.configs.get("page.size", "100")} | ({} if after is None else {"after": str(after)})
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
                raise  # 401, 404: no repetition helps, and the task fails with it
            time.sleep(LONGEST_PAUSE)  # the runtime polls again at once
            raise RetriableError(f"{url}: {e.code} {e.reason}") from e
        except (URLError, TimeoutError, ConnectionError) as e:
            time.sleep(LONGEST_PAUSE)
            raise RetriableError(f"{url}: {e}") from e


class HttpPages(SourceConnector):
    """Shares the resources out among the tasks."""

    task = HttpPagesTask
    settings = (
        Setting("url", "the API, without the resource", required=True),
        Setting("resources", "names of resources, separated by commas", required=True),
        Setting("topic.prefix", "begins the names of topics; the resource follows", required=True),
        Setting("token", "sent as a Bearer token"),
        Setting("page.size", "items in a page", default="100"),
        Setting(
            "poll.interval.ms", "milliseconds between two requests that found nothing, at most 1000", default="1000"
        ),
    )

    def validate(self, configs: Mapping[str, str]) -> dict[str, list[str]]:
        """Also whether ``url`` is one."""
        problems = super().validate(configs)
        if not configs.get("url", "http://").startswith(("http://", "https://")):
            problems["url"] = [f"Invalid value {configs['url']} for configuration url: use http://… or https://…"]
        return problems

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        """At most one task for each resource."""
        names = sorted({name.strip() for name in self.configs["resources"].split(",") if name.strip()})
        shares = [names[n::max_tasks] for n in range(min(max_tasks, len(names)))]
        return [{**self.configs, "task.resources": ",".join(share)} for share in shares]

    def exactly_once_support(self, configs: Mapping[str, str]) -> ExactlyOnceSupport:
        """It is: a page can be asked for again behind any committed id."""
        return ExactlyOnceSupport.SUPPORTED
