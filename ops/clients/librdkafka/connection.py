"""A connection to Kafka through librdkafka: its handle, its first contact, and what its errors
mean.

The only module that turns librdkafka's errors into ours; see ``failure``.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from functools import cached_property
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from connectctl.ops.clients.connection_errors import check_files, decided, explained, login_refused
from connectctl.ops.clients.kafka_protocol.client_properties import tls, tls_files
from connectctl.ops.clients.librdkafka.patience import Patience
from connectctl.ops.core.errors import (
    BadInput,
    ConnectctlError,
    NotAuthorized,
    NotTrusted,
    TimedOut,
    Unreachable,
)
from connectctl.ops.kafka.acls import Right
from connectctl.ops.kafka.topics import Layout
from connectctl.ops.kafka.visibility import not_authorized

T = TypeVar("T")
K = TypeVar("K")
PAUSE = 0.1
"""Seconds before metadata that is not complete is requested again."""
FIRST_PATIENCE = 1.0
"""Seconds for the first answer, after which a fault that the handshake decides is looked for."""
LOGIN_PATIENCE = 3.0
"""Seconds for a broker to accept a login that another one has refused."""
ADMIN_PATIENCE = 3.0
"""Seconds for the first answer to an admin request; for some 9 s (``broker.session.timeout.ms``)
metadata may name a controller that has died.
"""
_UNREACHABLE = {
    "_TRANSPORT",
    "_ALL_BROKERS_DOWN",
    "_RESOLVE",
    "_SSL",
    "_NODE_UPDATE",
    "BROKER_NOT_AVAILABLE",
}
_TIMED_OUT = {"_TIMED_OUT", "_TIMED_OUT_QUEUE", "_MSG_TIMED_OUT", "REQUEST_TIMED_OUT"}
MOVING = {
    "NOT_LEADER_FOR_PARTITION",
    "LEADER_NOT_AVAILABLE",
    "REPLICA_NOT_AVAILABLE",
    "KAFKA_STORAGE_ERROR",
    "NETWORK_EXCEPTION",
    "BROKER_NOT_AVAILABLE",
    "_WAIT_CACHE",
    "_DESTROY_BROKER",
    "_PARTIAL",
}
"""Answers that a moment changes: a leader moves, a broker has just gone."""
_MOVING = MOVING | {
    "NOT_CONTROLLER",
    "COORDINATOR_LOAD_IN_PROGRESS",
    "COORDINATOR_NOT_AVAILABLE",
    "NOT_COORDINATOR",
    "_WAIT_COORD",
    "NOT_ENOUGH_REPLICAS",
    "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
    "INVALID_REPLICATION_FACTOR",
}
"""Responses to requests of any kind that a moment mends. A topic gets at most as many replicas as
there are brokers, which may also change in a moment.
"""
_LOGIN = {"_AUTHENTICATION", "SASL_AUTHENTICATION_FAILED", "UNSUPPORTED_SASL_MECHANISM"}
_NOT_AUTHORIZED = {
    "TOPIC_AUTHORIZATION_FAILED",
    "GROUP_AUTHORIZATION_FAILED",
    "CLUSTER_AUTHORIZATION_FAILED",
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
}
_CUT_SHORT = re.compile(r"failed: Local: ")
"""librdkafka's text for a login during which the broker died: it was not refused."""


_NOT_SENT = "waiting for controller"
"""librdkafka's text for an admin request that was not sent."""
_NOT_THERE = re.compile(r"refused|resolve|unreachable", re.IGNORECASE)
"""librdkafka's text if no handshake begins."""


def failure(
    error: KafkaError,
    doing: str,
    bootstrap: str,
    last_words: str | None = None,
    right: Right | None = None,
) -> ConnectctlError:
    """Return the error of ours that ``error`` means. ``last_words`` is what the connection itself
    last complained of: the reason of an error of librdkafka's own, such as a time-out, but of no
    answer of a broker.

    ``right`` is what an ACL must allow for it.
    """
    if not error.name().startswith("_"):
        last_words = None
    if right is not None and error.name().endswith("_AUTHORIZATION_FAILED"):
        return not_authorized(f"Not authorized to {doing} (Kafka at {bootstrap})", right)
    why = last_words or text_of(error)
    cut_short = error.name() == "_AUTHENTICATION" and _CUT_SHORT.search(error.str()) is not None
    if (error.name() in _LOGIN and not cut_short) or _refuses(last_words):
        return login_refused(doing, bootstrap, why)
    if error.name() in _NOT_AUTHORIZED:
        return NotAuthorized(
            f"Not authorized to {doing} (Kafka at {bootstrap})",
            why=why,
            next_step="Check the client's rights.",
        )
    if cut_short:
        return unreachable(bootstrap, why)
    # librdkafka has reached none that could name it
    no_broker = _NOT_SENT in error.str()
    if error.name() in _UNREACHABLE or (error.name() in _TIMED_OUT and (last_words or no_broker)):
        return unreachable(bootstrap, why)
    if error.name() in _TIMED_OUT:
        return TimedOut(
            f"Kafka at {bootstrap} did not {doing} in time",
            why=why,
            next_step="Try a longer --timeout.",
        )
    kind = Unreachable if error.name() in _MOVING else ConnectctlError
    return kind(f"Kafka at {bootstrap} could not {doing}", why=why, code=error.name())


def _refuses(words: str | None) -> bool:
    """Return whether a connection logged that its login is refused."""
    return words is not None and "authentication" in words.lower() and not _CUT_SHORT.search(words)


def text_of(error: KafkaError) -> str:
    """Return librdkafka's text of the error, with its name if the text only has the subject, as for
    some responses.
    """
    text = error.str().strip()
    return f"{text} {error.name()}".lstrip() if not text or text.endswith(":") else text


def unreachable(bootstrap: str, why: str | None) -> Unreachable:
    hint = "Check bootstrap_servers and the client's security settings: connectctl context show."
    return Unreachable(f"Kafka at {bootstrap} does not answer", why=why, next_step=hint)


def _lateness(error: BaseException | None) -> str | None:
    """Return librdkafka's text if the request was not answered in time; None if it was."""
    code = error.args[0] if isinstance(error, KafkaException) else None
    return str(code.str()) if code is not None and code.name() in _TIMED_OUT else None


class Connection:
    """One Kafka cluster. ``properties`` are librdkafka's; ``timeout`` is in seconds, for each
    request.
    """

    def __init__(self, properties: Mapping[str, Any], *, timeout: float):
        self.bootstrap = str(properties.get("bootstrap.servers", ""))
        self.timeout = timeout
        self._properties = dict(properties)
        self._last_words: str | None = None
        self.layouts: dict[str, Layout] = {}
        """The layouts of topics at their last description."""

    def properties(self, **more: Any) -> dict[str, Any]:
        """Return the properties of a new handle: the person's, ours, and quiet logging. Dots are
        written as ``__``.
        """
        quiet = logging.getLogger("connectctl.librdkafka")
        quiet.addHandler(logging.NullHandler())
        quiet.propagate = False
        overrides = {name.replace("__", "."): value for name, value in more.items()}
        check_files(tls_files(self._properties))
        return (
            {"client.id": "connectctl"}
            | self._properties
            | overrides
            | {"logger": quiet, "error_cb": self._remember}
        )

    @property
    def client(self) -> dict[str, Any]:
        """Return the person's properties as they were given, secrets included: for a handle in
        another process.
        """
        return dict(self._properties)

    def _remember(self, error: KafkaError) -> None:
        # Kept because the error of the request is only that it timed out; the connection knows
        # why.
        if error.name() != "_ALL_BROKERS_DOWN" or self._last_words is None:
            self._last_words = error.str()

    def failure(self, error: KafkaError, doing: str, right: Right | None = None) -> ConnectctlError:
        """Return ``failure`` with the state of this connection, and the reason why there is none."""
        if "admin" in self.__dict__:
            self._listen(0)  # what the connection complained of waits there until it is polled
        return self._explained(failure(error, doing, self.bootstrap, self._last_words, right))

    def _explained(self, error: ConnectctlError) -> ConnectctlError:
        return explained(error, self.bootstrap, lambda: tls(self._properties))

    @cached_property
    def admin(self) -> AdminClient:
        """Return the handle for metadata and admin requests."""
        try:
            return AdminClient(self.properties())
        except KafkaException as e:
            raise BadInput(
                "librdkafka does not accept the client properties",
                why=e.args[0].str(),
                next_step="Correct client: in the context (connectctl context show prints the "
                "source of each value).",
            ) from e

    def _listen(self, seconds: float) -> None:
        with suppress(KafkaException):
            self.admin.poll(seconds)

    def ask(self, doing: str, call: Callable[[], T]) -> T:
        """Run ``call`` and translate what it raises."""
        try:
            found = call()
            self._last_words = None  # whatever a connection complained of before is over
            return found
        except KafkaException as e:
            raise self.failure(e.args[0], doing) from e

    def admin_request(
        self,
        request: Callable[[AdminClient, float], Mapping[K, Future[Any]]],
        *,
        repeats: bool = True,
    ) -> dict[K, Future[Any]]:
        """Return the futures of a request to the controller, which are done. ``request`` gets the
        handle and the seconds that it may take.

        librdkafka waits for the broker that the handle's metadata named as the controller, even if
        it died since, and for no other one. Without an answer the request is sent again with a new
        handle; without ``repeats`` only where it was not sent.
        """
        patience = Patience(self.timeout, ADMIN_PATIENCE)
        while True:
            last = patience.is_last
            futures = dict(request(self.admin, patience.attempt))
            late = [text for each in futures.values() if (text := _lateness(each.exception()))]
            unsent = all(_NOT_SENT in text for text in late)
            if not late or last or not (repeats or unsent):
                return futures
            if not unsent:
                patience.grow()
            self.renew()

    def renew(self) -> None:
        """Ask what comes with a new handle, which knows nothing of leaders and connections of
        before.
        """
        self.__dict__.pop("admin", None)

    @cached_property
    def _metadata(self) -> Any:
        try:
            return self._listed(Patience(self.timeout, FIRST_PATIENCE))
        except KafkaException as e:
            self._listen(0.2)  # lets the connection say why, through error_cb
            error = self.failure(e.args[0], "list its topics")
            # The first request of all: a broker that does not answer it in time is not there.
            if isinstance(error, TimedOut):
                error = self._explained(unreachable(self.bootstrap, self._last_words))
            raise error from e

    def _listed(self, patience: Patience) -> Any:
        """Return all topics. A connection that is cut ends the request before its time, and it is
        sent again on another connection.

        A request without a response is repeated, too, with growing pauses; but not if a broker has
        refused the login meanwhile and none has accepted it: a wrong password is reported before
        the time-out, like other results of the handshake.
        """
        login = LOGIN_PATIENCE if "," in self.bootstrap else 0
        while True:
            last = patience.is_last
            try:
                found = self.admin.list_topics(timeout=patience.attempt)
                self._last_words = None
                return found
            except KafkaException as e:
                self._listen(0)
                cut, late = e.args[0].name() == "_TRANSPORT", e.args[0].name() in _TIMED_OUT
                refused = patience.spent > login and _refuses(self._last_words)
                self._end_if_decided()
                if not (cut or (late and not last)) or refused or patience.left < PAUSE:
                    raise
                if late:
                    patience.grow()
                time.sleep(PAUSE)

    def _end_if_decided(self) -> None:
        """Raise ``NotTrusted`` if the handshake fails at every broker, whenever it is tried."""
        if self._last_words is not None and _NOT_THERE.search(self._last_words):
            return
        if why := decided(self.bootstrap, lambda: tls(self._properties)):
            found = unreachable(self.bootstrap, why)
            raise NotTrusted(found.what, why=why, next_step=found.next_step)

    def cluster_id(self) -> str:
        return str(self._metadata.cluster_id)
