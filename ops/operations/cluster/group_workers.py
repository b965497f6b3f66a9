"""Connect's REST API at addresses that a person gave: asked only where it is proven to be the group's."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from connectctl.ops.connect import config_topic as connect_config_topic
from connectctl.ops.connect.rest_membership import Configs, NotAMember, Resolve, disagreement, is_advertised
from connectctl.ops.core.errors import ConnectctlError, Unreachable
from connectctl.ops.core.wait import observe_until
from connectctl.ops.operations.cluster.internal_topic_discovery import search_topics

if TYPE_CHECKING:
    from connectctl.ops.clients.protocols import ConnectCalls, KafkaReads
    from connectctl.ops.connect.connect_protocol import ConnectGroup

OPEN = ("/connector-plugins",)
"""Paths that any worker may be asked for: their answers say nothing about the connectors of the group."""
ADMIN = "/admin/"
"""Where loggers are: a listener may serve nothing else."""
AGREEING = 5.0
"""Seconds within which a worker has read what is in the config topic, and a rebalance may end."""
PAUSE = 0.3
VALID = 5.0
"""Seconds for which a proof counts for a change."""
VALID_FOR_READING = 60.0
PATIENCE = 2.0
ANSWER = 5.0


@dataclass
class GroupWorkers:
    """Keeps ``ConnectCalls``. Raises ``NotAMember`` for a server that is not proven to be a worker of the group.

    ``connect`` opens the REST API at the addresses. The proof is made when it is first needed, and made again before a
    change. Where an address does not answer, the client's error says so, and nothing is changed. With ``declared`` a person
    vouches for the addresses: only another Kafka cluster disproves them.
    """

    urls: tuple[str, ...]
    connect: Callable[[tuple[str, ...]], ConnectCalls]
    kafka: KafkaReads
    group_id: str
    named: Mapping[str, str | None]
    resolve: Resolve
    declared: bool = False
    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    _proven: dict[tuple[str, ...], float] = field(default_factory=dict)
    _proven_for_reading: float | None = None
    _calls: ConnectCalls | None = field(default=None)

    def get(self, path: str, *, url: str | None = None, timeout: float | None = None) -> Any:
        calls = self._opened()
        if self._asks_about_group(path, url) and (
            self._proven_for_reading is None or self.now() - self._proven_for_reading > VALID_FOR_READING
        ):
            with _ignore_no_answer():
                self._prove(calls, self.urls)
            self._proven_for_reading = self.now()
        return calls.get(path, url=url, timeout=timeout)

    def send(
        self, method: str, path: str, body: Any = None, *, url: str | None = None, timeout: float | None = None
    ) -> Any:
        calls = self._opened()
        # An address from a plan or a run was the group's when that was made, and is proven as those that are given.
        urls = self.urls if url is None or url.rstrip("/") in self.urls else (url,)
        proven = self._proven.get(urls)
        if _depends_on_group(path) and (proven is None or self.now() - proven > VALID):
            # A listener for administration alone serves no connectors that would prove whose it is.
            with _ignore_no_answer() if path.startswith(ADMIN) else nullcontext():
                self._prove(calls, urls)
            self._proven[urls] = self.now()
            self._proven_for_reading = self.now() if urls == self.urls else self._proven_for_reading
        return calls.send(method, path, body, url=url, timeout=timeout)

    def _opened(self) -> ConnectCalls:
        self._calls = self._calls or self.connect(self.urls)
        return self._calls

    def _asks_about_group(self, path: str, url: str | None) -> bool:
        """Whether the answer depends on the group; an address that is not one of ours is one that the group gave."""
        return (url is None or url.rstrip("/") in self.urls) and _depends_on_group(path)

    def _prove(self, calls: ConnectCalls, urls: tuple[str, ...]) -> None:
        """Raises ``NotAMember`` for an address, and the error of one that does not answer, where no other is proven."""
        group = observe_until(
            lambda: self.kafka.group(self.group_id),
            lambda group: group.settled,
            AGREEING,
            PAUSE,
            now=self.now,
            sleep=self.sleep,
        )
        silent: list[ConnectctlError] = []
        for url in urls:
            if is_advertised(url, group, self.resolve):
                continue
            try:
                self._prove_by_connectors(calls, url, group)
            except NotAMember:
                raise
            except ConnectctlError as e:
                silent.append(e)
        if len(silent) == len(urls):
            raise silent[0]

    def _prove_by_connectors(self, calls: ConnectCalls, url: str, group: ConnectGroup) -> None:
        root = _mapping(calls, "/", url)
        worker_cluster, group_cluster = root.get("kafka_cluster_id"), self.kafka.cluster_id()
        if worker_cluster not in (None, group_cluster):
            raise NotAMember(url, group, f"it uses the Kafka cluster {worker_cluster}, not {group_cluster}")
        if self.declared:
            return

        def obstacle() -> str | None:
            listed = _mapping(calls, "/connectors?expand=info", url)
            configs = {name: (data.get("info") or {}).get("config") or {} for name, data in listed.items()}
            configured = self._configured(group)
            return "the config topic cannot be read" if configured is None else disagreement(configs, configured)

        why = observe_until(obstacle, lambda why: why is None, AGREEING, PAUSE, now=self.now, sleep=self.sleep)
        if why is not None:
            raise NotAMember(url, group, why)

    def _configured(self, group: ConnectGroup) -> Configs | None:
        """The configurations in the group's config topic; None where it is not known, or not read to its end."""
        try:
            choice = search_topics(self.kafka, group, self.named, ["config"])["config"]
            if choice.topic is None or not choice.proven:
                return None
            image = self.kafka.image([choice.topic], patience=PATIENCE)[choice.topic]
        except ConnectctlError:
            return None
        if image.held_back:
            return None
        return {name: each.config for name, each in connect_config_topic.state_of(image).connectors.items()}


def _mapping(calls: ConnectCalls, path: str, url: str) -> Mapping[str, Any]:
    """The object that a worker answers. Raises ``Unreachable`` where something else answers."""
    found = calls.get(path, url=url, timeout=ANSWER)
    if not isinstance(found, Mapping):
        raise Unreachable(
            f"{url} does not answer like a Connect worker", next_step="Correct --rest.", code="not-connect"
        )
    return found


def _depends_on_group(path: str) -> bool:
    """Return whether the answer at ``path`` depends on which group the worker is in."""
    return path != "/" and not path.startswith(OPEN)


@contextmanager
def _ignore_no_answer() -> Iterator[None]:
    """Ends where an address does not answer: what is asked in earnest then tells so, in its own words."""
    try:
        yield
    except NotAMember:
        raise
    except ConnectctlError:
        return
