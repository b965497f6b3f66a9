"""Connect's REST API at addresses that a person gave: asked only where it is proven to be the group's."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from connectctl.ops.connect import config_topic as connect_config_topic
from connectctl.ops.connect.rest_membership import Configs, NotAMember, Resolve, disagreement, is_advertised
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.core.wait import observe_until
from connectctl.ops.operations.cluster.internal_topic_discovery import look_for_topics

if TYPE_CHECKING:
    from connectctl.ops.clients.protocols import ConnectCalls, KafkaReads
    from connectctl.ops.connect.connect_protocol import ConnectGroup

OPEN = ("/connector-plugins",)
"""What any worker may be asked: it says nothing about the connectors of the group."""
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
    change. An address that does not answer is left to the client, whose error says so. With ``declared`` a person vouches
    for the addresses: only another Kafka cluster disproves them.
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
    _proven: float | None = None
    _calls: ConnectCalls | None = field(default=None)

    def get(self, path: str, *, url: str | None = None, timeout: float | None = None) -> Any:
        return self._of(path, url, VALID_FOR_READING).get(path, url=url, timeout=timeout)

    def send(
        self, method: str, path: str, body: Any = None, *, url: str | None = None, timeout: float | None = None
    ) -> Any:
        return self._of(path, url, VALID).send(method, path, body, url=url, timeout=timeout)

    def _of(self, path: str, url: str | None, valid: float) -> ConnectCalls:
        """The client for a request. Raises ``NotAMember``."""
        calls = self._calls = self._calls or self.connect(self.urls)
        if path == "/" or path.startswith(OPEN):
            return calls
        if url is not None and url.rstrip("/") not in self.urls:
            return calls  # the group gave this address
        if self._proven is None or self.now() - self._proven > valid:
            self._prove(calls)
            self._proven = self.now()
        return calls

    def _prove(self, calls: ConnectCalls) -> None:
        group = observe_until(
            lambda: self.kafka.group(self.group_id),
            lambda group: group.settled,
            AGREEING,
            PAUSE,
            now=self.now,
            sleep=self.sleep,
        )
        for url in self.urls:
            if not is_advertised(url, group, self.resolve):
                self._prove_by_connectors(calls, url, group)

    def _prove_by_connectors(self, calls: ConnectCalls, url: str, group: ConnectGroup) -> None:
        root = _answer(calls, "/", url)
        if not isinstance(root, Mapping):
            return
        theirs, ours = root.get("kafka_cluster_id"), self.kafka.cluster_id()
        if theirs not in (None, ours):
            raise NotAMember(url, group, f"it uses the Kafka cluster {theirs}, not {ours}")
        if self.declared:
            return

        def obstacle() -> str | None:
            listed = _answer(calls, "/connectors?expand=info", url)
            if not isinstance(listed, Mapping):
                return None
            configs = {name: (data.get("info") or {}).get("config") or {} for name, data in listed.items()}
            configured = self._configured(group)
            return "the config topic cannot be read" if configured is None else disagreement(configs, configured)

        why = observe_until(obstacle, lambda why: why is None, AGREEING, PAUSE, now=self.now, sleep=self.sleep)
        if why is not None:
            raise NotAMember(url, group, why)

    def _configured(self, group: ConnectGroup) -> Configs | None:
        """The configurations in the group's config topic; None where it is not known, or not read to its end."""
        try:
            choice = look_for_topics(self.kafka, group, self.named, ["config"])["config"]
            if choice.topic is None or not choice.proven:
                return None
            image = self.kafka.image([choice.topic], patience=PATIENCE)[choice.topic]
        except ConnectctlError:
            return None
        if image.held_back:
            return None
        return {name: each.config for name, each in connect_config_topic.state_of(image).connectors.items()}


def _answer(calls: ConnectCalls, path: str, url: str) -> Any:
    """What the server answers; None where it does not answer, which the client reports when it is asked in earnest."""
    try:
        return calls.get(path, url=url, timeout=ANSWER)
    except ConnectctlError:
        return None
