"""Connect's REST API at addresses of the user, which gets requests only if it is proven to belong
to the group.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sized
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from typing import Any

from connectctl.ops.clients.protocols import Clients, ConnectCalls, KafkaReads
from connectctl.ops.connect import config_topic as connect_config_topic
from connectctl.ops.connect.connect_protocol import ConnectGroup
from connectctl.ops.connect.rest_membership import (
    Configs,
    NotAMember,
    Resolve,
    disagreement,
    is_advertised,
)
from connectctl.ops.core.errors import BadInput, ConnectctlError, Unreachable, did_you_mean
from connectctl.ops.core.wait import observe_until
from connectctl.ops.kafka.group_state import is_dead
from connectctl.ops.operations.cluster.internal_topic_discovery import search_topics

OPEN = ("/connector-plugins",)
"""Paths whose answers do not depend on the connectors of the group."""
ADMIN = "/admin/"
"""The path of loggers: a listener may serve this path only."""
AGREEING = 5.0
"""Seconds within which a worker reads the config topic to its end, and a rebalance may end."""
PAUSE = 0.3
VALID = 5.0
"""Seconds for which a proof is valid for a change."""
VALID_FOR_READING = 60.0
PATIENCE = 2.0
ANSWER = 5.0


@dataclass
class GroupWorkers:
    """An implementation of ``ConnectCalls``. Raises ``NotAMember`` for a server that is not proven
    to be a worker of the group.

    ``connect`` opens the REST API at the addresses. The proof is made before the first request that
    requires it, and again before a change. An address that does not answer causes the client's
    error, and no change. ``declared``: the user declares the addresses to be workers of the group;
    only another Kafka cluster is then an error.
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
            self._proven_for_reading is None
            or self.now() - self._proven_for_reading > VALID_FOR_READING
        ):
            with _ignore_no_answer():
                self._prove(calls, self.urls)
            self._proven_for_reading = self.now()
        return calls.get(path, url=url, timeout=timeout)

    def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        url: str | None = None,
        timeout: float | None = None,
    ) -> Any:
        calls = self._opened()
        # An address from a plan or a run was a worker's when the plan was made, and is proven like
        # those of the user.
        urls = self.urls if url is None or url.rstrip("/") in self.urls else (url,)
        proven = self._proven.get(urls)
        if _depends_on_group(path) and (proven is None or self.now() - proven > VALID):
            # A listener for administration only serves no connectors, from which its group could be
            # proven.
            with _ignore_no_answer() if path.startswith(ADMIN) else nullcontext():
                self._prove(calls, urls)
            self._proven[urls] = self.now()
            self._proven_for_reading = self.now() if urls == self.urls else self._proven_for_reading
        return calls.send(method, path, body, url=url, timeout=timeout)

    def _opened(self) -> ConnectCalls:
        self._calls = self._calls or self.connect(self.urls)
        return self._calls

    def _asks_about_group(self, path: str, url: str | None) -> bool:
        """Return whether the answer depends on the group, and the address is the user's: others are
        advertised by the group.
        """
        return (url is None or url.rstrip("/") in self.urls) and _depends_on_group(path)

    def _prove(self, calls: ConnectCalls, urls: tuple[str, ...]) -> None:
        """Raise ``NotAMember`` for an address that is not a worker of the group.

        Raises the error of an address that does not answer, if no other is proven.
        """
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
            raise NotAMember(
                url, group, f"it uses the Kafka cluster {worker_cluster}, not {group_cluster}"
            )
        if self.declared:
            return

        def obstacle() -> str | None:
            listed = _mapping(calls, "/connectors?expand=info", url)
            configs = {
                name: (data.get("info") or {}).get("config") or {} for name, data in listed.items()
            }
            configured = self._configured(group)
            return (
                "the config topic cannot be read"
                if configured is None
                else disagreement(configs, configured)
            )

        why = observe_until(
            obstacle, lambda why: why is None, AGREEING, PAUSE, now=self.now, sleep=self.sleep
        )
        if why is not None:
            raise NotAMember(url, group, why)

    def _configured(self, group: ConnectGroup) -> Configs | None:
        """Return the configurations in the group's config topic; None if it is unknown, or not read
        to its end.
        """
        try:
            choice = search_topics(self.kafka, group, self.named, ["config"])["config"]
            if choice.topic is None or not choice.proven:
                return None
            image = self.kafka.image([choice.topic], patience=PATIENCE)[choice.topic]
        except ConnectctlError:
            return None
        if image.held_back:
            return None
        return {
            name: each.config
            for name, each in connect_config_topic.state_of(image).connectors.items()
        }


def _mapping(calls: ConnectCalls, path: str, url: str) -> Mapping[str, Any]:
    """Return the object in the answer of a worker. Raises ``Unreachable`` for any other answer."""
    found = calls.get(path, url=url, timeout=ANSWER)
    if not isinstance(found, Mapping):
        raise Unreachable(
            f"{url} does not answer like a Connect worker",
            next_step="Correct --rest.",
            code="not-connect",
        )
    return found


def _depends_on_group(path: str) -> bool:
    """Return whether the answer at ``path`` depends on the group of the worker."""
    return path != "/" and not path.startswith(OPEN)


@contextmanager
def _ignore_no_answer() -> Iterator[None]:
    """Ignore the error of an address that does not answer: the request itself raises it."""
    try:
        yield
    except NotAMember:
        raise
    except ConnectctlError:
        return


MOST_NAMED = 5


def is_unknown(group: ConnectGroup) -> bool:
    """Return whether Kafka has no such group. Its coordinator deletes a group without members after
    a delay.
    """
    return is_dead(group.state) and not group.members


def refuse_unknown(group: ConnectGroup | None, clients: Clients, found: Sized = ()) -> None:
    """Raise ``BadInput`` if the group does not exist and has no connectors; ``found`` are those
    that were found. The error names the groups of workers that may be described.
    """
    if group is None or not is_unknown(group) or found:
        return
    names: frozenset[str] = frozenset()
    with suppress(ConnectctlError):
        names = clients.transactions.connect_groups().seen
    hint = "Correct --group-id, or start the workers."
    if names:
        more = ", …" if len(names) > MOST_NAMED else ""
        hint = (
            f"Visible groups of workers: {', '.join(sorted(names)[:MOST_NAMED])}{more}. "
            "Correct --group-id."
        )
    raise BadInput(
        f"Kafka has no group {group.id}",
        why="the group.id is wrong, or all its workers have been down for a while",
        next_step=did_you_mean(group.id, names, hint),
        code="no-such-group",
    )
