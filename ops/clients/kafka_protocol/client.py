"""Kafka's protocol through kafka-python: connections, requests to named brokers, many in flight on
one connection.

Everything runs on a thread of kafka-python's own event loop, so that ^C reaches the main thread at
once and the answers that came before it are not lost. The only module that turns kafka-python's
errors into ours; see ``failure``.
"""

from __future__ import annotations

import logging
import threading
import time
import weakref
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from queue import SimpleQueue
from typing import Any, TypeVar

from connectctl.ops.clients.connection_errors import decided, explained, login_refused
from connectctl.ops.clients.kafka_protocol.client_properties import arguments, tls
from connectctl.ops.clients.kafka_protocol.connection_failures import ConnectionFailures
from connectctl.ops.core.errors import (
    BadInput,
    ConnectctlError,
    NotAuthorized,
    NotTrusted,
    Unreachable,
)
from connectctl.ops.kafka.error_handling import Code

Item = TypeVar("Item")
_LOADING = threading.Lock()
NO_FAILURES = ConnectionFailures()
"""Those of a client that has tried no connection."""
WINDOW = 300
"""Requests in flight on a connection. Measured on one broker: no faster above, and each costs
kafka-python a timer.
"""
BATCH = 2_000
"""Ids or partitions in one batched request: an answer of a few hundred kilobytes."""
FIRST_PATIENCE = 2.0
"""Seconds for a first login: a refusal comes immediately."""
LOGIN_PATIENCE = 5.0
"""Seconds for a second login, by librdkafka, after a failed first one."""
_LARGEST_ANSWER = 256 * 1024 * 1024
_PAUSE = 0.005
"""Seconds to wait while the connection accepts nothing more: its buffer is full, or the broker
throttles the client.
"""


def failure(
    error: Exception, bootstrap: str, doing: str, failures: ConnectionFailures = NO_FAILURES
) -> ConnectctlError:
    """Return ``error`` as a ``ConnectctlError``. If it only reports a missing answer, the reason is
    taken from ``failures``. Any other error than those of Kafka and the network is a bug, and is
    raised again.
    """
    import kafka.errors as theirs

    if isinstance(error, ConnectctlError):
        return error
    causes = [error]
    if isinstance(error, theirs.NodeNotReadyError):
        causes += [cause for node in error.args for cause in failures.of_node(node)]
    elif isinstance(error, theirs.KafkaTimeoutError):
        causes += failures.of_first_contact
    refused = (
        theirs.SaslAuthenticationFailedError,
        theirs.UnsupportedSaslMechanismError,
        theirs.IllegalSaslStateError,
    )
    # A refused login is tried again until the time is over, and then the connection itself times
    # out.
    if logins := [each for each in causes if isinstance(each, refused)]:
        return login_refused(doing, bootstrap, _words(logins[-1]))
    cause = causes[-1]
    why = _words(cause)
    if isinstance(cause, theirs.AuthorizationError):
        hint = "Check the client's rights: connectctl context show."
        return NotAuthorized(
            f"Not authorized to {doing} (Kafka at {bootstrap})", why=why, next_step=hint
        )
    if isinstance(error, theirs.UnsupportedVersionError):
        hint = (
            "Listing and describing transactions needs brokers of version 3.0 or newer (KIP-664)."
        )
        what = f"Kafka at {bootstrap} is too old to {doing}"
        return ConnectctlError(what, why=_words(error), next_step=hint, code="unsupported")
    if isinstance(error, theirs.KafkaConfigurationError):
        hint = (
            "Correct client: in the context (connectctl context show prints the source of each "
            "value)."
        )
        return BadInput(
            "kafka-python does not accept the client properties", why=str(error), next_step=hint
        )
    if not isinstance(error, (theirs.KafkaError, OSError)):
        raise error
    hint = "Check bootstrap_servers and the client's security settings: connectctl context show."
    return Unreachable(f"Kafka at {bootstrap} does not answer", why=why, next_step=hint)


def _words(error: Exception) -> str:
    return str(error) or type(error).__name__


class KafkaProtocolClient:
    """One Kafka cluster. ``properties`` are librdkafka's; ``timeout`` in seconds bounds the start
    and each request.
    """

    def __init__(self, properties: Mapping[str, Any], *, timeout: float) -> None:
        self.bootstrap = str(properties.get("bootstrap.servers", ""))
        self.timeout = timeout
        self._properties = properties
        self.client_id = str(properties.get("client.id", "connectctl"))
        self._opening = threading.RLock()
        self._failures = NO_FAILURES
        self.explains = True
        """True if a missing answer is diagnosed, for up to some seconds (``explained``)."""
        load()

    @property
    def manager(self) -> Any:
        """kafka-python's connections, with the cluster's brokers known. Raises ``Unreachable``,
        ``NotAuthorized``.
        """
        with self._opening:
            return self._opened

    @cached_property
    def _opened(self) -> Any:
        from kafka.net.manager import KafkaConnectionManager
        from kafka.net.selector import NetworkSelector

        self._loop = loop = NetworkSelector(slow_task_threshold_secs=0)
        try:
            self.settings = arguments(self._properties)
            manager = KafkaConnectionManager(
                loop,
                **self.settings,
                # or a busy connection refuses; Pipeline keeps WINDOW
                max_in_flight_requests_per_connection=1_000_000,
                receive_message_max_bytes=_LARGEST_ANSWER,
                request_timeout_ms=int(self.timeout * 1000),
                reconnect_backoff_max_ms=1000,
            )
            self._failures = ConnectionFailures()
            self._failures.watch(manager)
            loop.start()
            self._bootstrap(loop, manager)
            self._failures.brokers_are_known()
        except Exception as e:
            loop.close()
            raise self._login_error(self.failure(e, "connect")) from e
        # At the end of the process the system closes the sockets, and waiting for a broker that
        # hangs is useless.
        weakref.finalize(self, _ABANDONED.put, (loop, manager)).atexit = False
        _have_closer()
        return manager

    def _bootstrap(self, loop: Any, manager: Any) -> None:
        """Look up the brokers. kafka-python repeats a login that was refused; if librdkafka's login
        is refused as well, that is the error.
        """
        first = min(FIRST_PATIENCE, self.timeout)
        try:
            loop.run(manager.bootstrap_async, int(first * 1000))
        except Exception as e:
            error = self.failure(e, "connect")
            if first == self.timeout or not isinstance(error, (Unreachable, NotAuthorized)):
                raise
            if isinstance(error, NotTrusted) and decided(
                self.bootstrap, lambda: tls(self._properties)
            ):
                raise error from e
            if isinstance(
                reported := self._login_error(Unreachable(error.what, why=error.why)), NotAuthorized
            ):
                raise reported from e
            loop.run(manager.bootstrap_async, int((self.timeout - first) * 1000))

    def run(self, doing: str, work: Callable[[], Awaitable[Any]]) -> Any:
        """Run the coroutine that ``work`` makes on the loop, to its end."""
        _ = self.manager  # whose loop it is
        try:
            return self._loop.run(work)
        except Exception as e:
            raise self.failure(e, doing) from e

    def failure(self, error: Exception, doing: str) -> ConnectctlError:
        """Return ``failure`` with the errors of this client's connections, and with a diagnosis of
        the cause if ``explains``.
        """
        converted = failure(error, self.bootstrap, doing, self._failures)
        return (
            explained(converted, self.bootstrap, lambda: tls(self._properties))
            if self.explains
            else converted
        )

    def _login_error(self, error: ConnectctlError) -> ConnectctlError:
        """Return ``error``, or the refusal of the login: with TLS, kafka-python sees that the
        broker closes the connection before it sees the answer.
        """
        from connectctl.ops.clients.librdkafka.connection import Connection

        protocol = str(self._properties.get("security.protocol", "")).upper()
        if (
            not isinstance(error, Unreachable)
            or isinstance(error, NotTrusted)
            or not protocol.startswith("SASL")
        ):
            return error
        try:
            Connection(self._properties, timeout=min(self.timeout, LOGIN_PATIENCE)).cluster_id()
        except NotAuthorized as refused:
            return refused
        except ConnectctlError:
            pass  # it knows no better
        return error

    def brokers(self) -> list[int]:
        return sorted(self.addresses())

    def addresses(self) -> dict[int, str]:
        """Return the advertised address of each broker in the metadata, as ``HOST:PORT``."""
        return {
            broker.node_id: f"{broker.host}:{broker.port}"
            for broker in self.manager.cluster.brokers()
        }

    def newest(self, request: Any) -> int:
        """Return the newest version of ``request`` that both sides support; -1 if the brokers do
        not support the request.
        """
        import kafka.errors as theirs

        try:
            return int(self.manager.broker_version_data.api_version(request))
        except theirs.UnsupportedVersionError:
            return -1

    async def ask(
        self, request: Any, broker: int | None = None, patience: float | None = None
    ) -> Any:
        """Send one request, to any broker where none is named, and give its answer."""
        connection = await (
            self._any_connection(patience) if broker is None else self.connection(broker, patience)
        )
        return await connection.send_request(
            request, request_timeout_ms=int((patience or self.timeout) * 1000)
        )

    async def _any_connection(self, patience: float | None) -> Any:
        """Return a connection to a broker that accepts one. Metadata has a broker that was killed
        until its session is over.

        kafka-python asks no broker in its back-off, up to a second after a connection broke; where
        all are in it, the first one to leave it is waited for.
        """
        import kafka.errors as theirs

        deadline = time.monotonic() + (patience or self.timeout)
        failed: Exception | None = None
        while True:
            node = self.manager.least_loaded_node()
            if failed is not None and (node is None or time.monotonic() > deadline):
                raise failed
            try:
                return await self.connection(node, patience)
            except theirs.KafkaConnectionError as e:
                failed = e
            except theirs.NodeNotReadyError:
                if time.monotonic() > deadline:
                    raise
                await self._loop.sleep(_PAUSE)

    async def connection(self, broker: Any, patience: float | None) -> Any:
        """Return the connection to ``broker`` for everybody's requests, made within ``patience``
        seconds, if given.
        """
        timeout_ms = None if patience is None else int(patience * 1000)
        await self._know(broker)
        return await self.manager.get_connection(broker, timeout_ms=timeout_ms)

    async def _know(self, broker: Any) -> None:
        """Look up the brokers where ``broker`` has come, or come back, since that was done."""
        cluster = self.manager.cluster
        if broker is not None and cluster.broker_metadata(broker) is None:
            await cluster.refresh_metadata(self.manager.least_loaded_node())

    def address(self, broker: int) -> tuple[str, int]:
        """Return the host and the port of ``broker``."""
        self.run("look up the brokers", lambda: self._know(broker))
        if (found := self.manager.cluster.broker_metadata(broker)) is None:
            raise Unreachable(
                f"Kafka at {self.bootstrap} does not answer",
                why=f"broker {broker} is not there",
                next_step="Check the broker.",
            )
        return str(found.host), int(found.port)

    def look_up_again(self) -> None:
        """Have the brokers looked up again: one that does not answer may have another address."""

        async def request() -> None:
            self.manager.cluster.request_update()

        with suppress(ConnectctlError):
            self.run("look up the brokers", request)

    async def each(self, work: Iterable[Awaitable[Any]]) -> list[Any]:
        """Run all concurrently. Return the results in order, an exception in place of the result of
        one that raised.
        """
        futures = [self.manager.call_soon(_result_or_error, one) for one in work]
        return [await future for future in futures]

    async def pipeline(
        self, broker: int, requests: Iterator[tuple[str, Any]], patience: float, on_answer: OnAnswer
    ) -> None:
        """Send many requests to one broker, ``WINDOW`` in flight; ``on_answer(key, code, answer)``
        is called for each.

        The code is ``NONE`` with an answer, else ``NO_ANSWER`` for what was sent and ``NOT_SENT``
        for what was not.
        """
        try:
            connection = await self.manager.get_connection(broker)
        except Exception:  # noqa: BLE001  # whatever it is, nothing was sent
            for key, _ in requests:
                on_answer(key, Code.NOT_SENT, None)
            return
        pipeline = _Pipeline(self._loop, connection, requests, patience, on_answer)
        pipeline.fill()
        await pipeline.finished

    def close(self) -> None:
        """Close the connections and end the thread."""
        with self._opening:
            manager = self.__dict__.pop("_opened", None)
        if manager is not None:
            _close(self._loop, manager)


def load() -> None:
    """Load kafka-python in one thread: its modules import each other in circles, on which two
    threads get stuck.
    """
    with _LOADING:
        import kafka  # noqa: F401  # loaded once, under the lock

        logger = logging.getLogger("kafka")
        if not logger.handlers:
            logger.addHandler(logging.NullHandler())
            logger.propagate = False


_ABANDONED: SimpleQueue[Any] = SimpleQueue()
"""Connections that the garbage collector found, for a thread of their own to close: it may run
where a lock is held that their loop needs to close them, such as a log handler's.
"""
_closers: list[threading.Thread] = []


def _have_closer() -> None:
    """A process that was forked has none of its parent's threads."""
    with _LOADING:
        if not any(thread.is_alive() for thread in _closers):
            _closers[:] = [
                threading.Thread(target=_close_abandoned, name="connectctl-close", daemon=True)
            ]
            _closers[0].start()


def _close_abandoned() -> None:
    while True:
        abandoned = _ABANDONED.get()
        with suppress(Exception):
            _close(*abandoned)


def _close(loop: Any, manager: Any) -> None:
    # It may be closed or broken already; its user has seen that, or sends nothing more.
    with suppress(Exception):
        loop.run(manager.close)
    loop.close()


class ClusterClient:
    """A client of one Kafka cluster. ``properties`` are librdkafka's; ``timeout`` in seconds bounds
    each request.
    """

    def __init__(self, properties: Mapping[str, Any], *, timeout: float) -> None:
        self._wire = KafkaProtocolClient(properties, timeout=timeout)

    def cluster_id(self) -> str:
        return str(self._wire.manager.cluster.cluster_id)

    def close(self) -> None:
        """Close the connections."""
        self._wire.close()


OnAnswer = Callable[[str, Code, Any], None]


async def _result_or_error(work: Awaitable[Any]) -> Any:
    try:
        return await work
    except Exception as e:  # noqa: BLE001  # given to the caller as a value, so that one broker's failure is one broker's
        return e


class _Pipeline:
    """Requests on their way on one connection."""

    def __init__(
        self,
        loop: Any,
        connection: Any,
        requests: Iterator[tuple[str, Any]],
        patience: float,
        on_answer: OnAnswer,
    ) -> None:
        from kafka.future import Future

        self._loop, self._connection, self._requests, self._on_answer = (
            loop,
            connection,
            requests,
            on_answer,
        )
        self._patience_ms = max(1, int(patience * 1000))
        self._in_flight = 0
        self._ended = False
        self.finished = Future()

    def fill(self) -> None:
        """Send as many as the window has room for."""
        while not self._ended and self._in_flight < WINDOW:
            if self._connection.closed:
                return self._rest_is_not_sent()
            if self._connection.paused:
                self._loop.call_later(_PAUSE, self.fill)
                return None
            key, request = next(self._requests, (None, None))
            if key is None:
                self._ended = True
                break
            self._in_flight += 1
            future = self._connection.send_request(request, request_timeout_ms=self._patience_ms)
            future.add_callback(self._answered, key)
            future.add_errback(self._failed, key)
        return self._finish()

    def _answered(self, key: str, answer: Any) -> None:
        self._in_flight -= 1
        self._report(key, Code.NONE, answer)
        self.fill()

    def _failed(self, key: str, error: Exception) -> None:
        self._in_flight -= 1
        self._report(key, Code.NO_ANSWER, None)
        if not self._in_flight:
            self._rest_is_not_sent()

    def _rest_is_not_sent(self) -> None:
        self._ended = True
        for key, _ in self._requests:
            self._report(key, Code.NOT_SENT, None)
        self._finish()

    def _report(self, key: str, code: Code, answer: Any) -> None:
        try:
            self._on_answer(key, code, answer)
        except Exception as e:  # noqa: BLE001  # kafka-python would only log it, and the pipeline would never finish
            if not self.finished.is_done:
                self.finished.failure(e)

    def _finish(self) -> None:
        if self._ended and not self._in_flight and not self.finished.is_done:
            self.finished.success(None)


def known_code(code: int) -> Code:
    """Return a broker's error code; one that ``Code`` lacks counts as an unexpected error."""
    try:
        return Code(code)
    except ValueError:
        return Code.UNKNOWN_SERVER_ERROR


def code_of(error: Exception) -> Code:
    """Return the code of a request that failed as a whole, for each of its items. Raises ``error``
    if it is not a failure of Kafka.
    """
    import kafka.errors as theirs

    if isinstance(error, theirs.NodeNotReadyError):
        return Code.NOT_SENT
    if isinstance(error, theirs.UnsupportedVersionError):
        return Code.UNSUPPORTED_VERSION
    if isinstance(error, theirs.KafkaError):
        return Code.NO_ANSWER
    raise error


def batches(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    for at in range(0, len(items), BATCH):
        yield items[at : at + BATCH]
