"""Connect's REST API through httpx: one worker after the other, with patience for rebalances.

The only module that turns HTTP's errors into ours; see ``failure`` for answers and ``_once`` for
what is none. Redirects are never followed; which addresses get the credentials is decided in
``credentials``.
"""

from __future__ import annotations

import math
import random
import ssl
import time
import weakref
from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import urlsplit

from connectctl.ops.clients.connection_errors import check_files, explained, naming
from connectctl.ops.clients.rest.credentials import RestCredentials
from connectctl.ops.clients.rest.http_answer import ask
from connectctl.ops.config.json_shape import Malformed, encodable, has_escaped_surrogate
from connectctl.ops.config.json_text import read_json
from connectctl.ops.connect import rest_answers
from connectctl.ops.connect.connector import path_of
from connectctl.ops.connect.missing_class import shortened
from connectctl.ops.core.errors import (
    BadInput,
    ConnectctlError,
    NotAuthorized,
    NotTrusted,
    TimedOut,
    Unreachable,
)
from connectctl.ops.core.requests import REQUESTS

if TYPE_CHECKING:
    import httpx

FIRST_PAUSE = 0.2
LONGEST_PAUSE = 3.0
CONNECT_TIMEOUT = 5.0
"""Seconds in which a worker must accept a connection; one that is there does so at once."""
_NEXT_WORKER = {502, 503, 504}
"""A proxy without its worker, or a worker that is still starting."""
_SAFE_TO_REPEAT = (
    # The leader lost its producer and has not written; or it could not read, and has not begun.
    "Failed to write to config topic",
    "Failed to read to end of config topic before performing zombie fencing",
    # A rebalance that GET /connectors/{connector} does not answer with 409, as all others do.
    "Request cannot be completed because a rebalance is expected",
)
_SAFE_TO_REPEAT_BRIEFLY = (
    # What the worker met while it wrote source offsets, and has not said: an error of its producer
    # or consumer, which may pass, or of the connector, which stays. The request sets absolute
    # offsets, and the worker judges the connector's state anew.
    "Failed to modify offsets for source connector",
)
BRIEFLY = 3
"""How often a request is sent where its failure may well stay."""

_HINTS = {
    # Seen with 4.3.1: if what a fenced leader first tries to write is a restart request, it never
    # claims its rights again, and every change fails until leadership moves.
    "Cannot produce to config topic without claiming write privileges first": (
        "Something has fenced the leader's producer, and it does not recover by itself: restart "
        "the leader's worker."
    )
}
_CHECK = "Check that the worker runs, and the address: connectctl context show."
_LOG = "The worker's log has the reason."
_NOT_SENT = (
    "If it is a worker of yours, name its host in rest_auth.hosts, and for http set "
    "rest_auth.http: true."
)


class _Next(Exception):
    """This worker gave nothing; ask the next. ``later``: when none is left, ask them all again."""

    def __init__(self, error: ConnectctlError, *, later: bool = False):
        super().__init__(error)
        self.error = error
        self.later = later


class _Later(Exception):
    """No worker can do it now, and it may be sent again, ``most`` times in all."""

    def __init__(self, error: ConnectctlError, most: float = math.inf):
        super().__init__(error)
        self.error = error
        self.most = most


def failure(method: str, url: str, status: int, message: str) -> ConnectctlError:
    """Return the error of ours that an answer means. ``message`` is Connect's own."""
    request = f"{method} {url}"
    if status == 401:
        hint = "Check rest_auth: connectctl context show."
        what = f"Authentication failed: the worker refuses the login (to {request})"
        return NotAuthorized(what, why=message, next_step=hint)
    if status == 403:
        hint = "Check rest_auth and rest_tls: connectctl context show."
        return NotAuthorized(f"The worker does not allow {request}", why=message, next_step=hint)
    if status == 409:
        return TimedOut(
            f"The workers were still busy with a rebalance: {request}",
            why=message,
            next_step="Try again, with a longer --timeout if workers are starting or leaving.",
            code="rebalancing",
        )
    if 300 <= status < 400:
        hint = "Give the address of the worker itself in rest."
        return Unreachable(
            f"{request} is redirected, which is not followed",
            why=message,
            next_step=hint,
            code="not-connect",
        )
    if status in _NEXT_WORKER:
        return Unreachable(
            f"The worker answers {status} to {request}", why=message, next_step=_CHECK
        )
    codes = {400: "rejected", 404: "not-found", 405: "unsupported", 422: "rejected"}
    code = codes.get(status, "failed" if status < 500 else "worker-error")
    advice = _HINTS.get(message, _LOG if status == 500 else None)
    return ConnectctlError(
        f"The worker answers {status} to {request}", why=message, next_step=advice, code=code
    )


def sent_at_most(method: str, status: int, message: str) -> float:
    """Return how often the same request may be sent: once, unless it was not performed, or
    performing it twice makes no difference.
    """
    if status in (409, 503) or (method == "GET" and status in _NEXT_WORKER):
        return math.inf
    if status == 500 and message.startswith(_SAFE_TO_REPEAT):
        return math.inf
    return BRIEFLY if status == 500 and message.startswith(_SAFE_TO_REPEAT_BRIEFLY) else 1


class Connect:
    """The workers at ``urls``, asked in that order; put the leader first for operations that take
    long.

    ``auth`` and ``tls`` are the context's sections ``rest_auth``, secrets included, and
    ``rest_tls``. ``named`` are the addresses that the context gives itself: see
    ``RestCredentials``. ``timeout`` is in seconds and bounds each call with all its repetitions.
    """

    def __init__(
        self,
        urls: Sequence[str],
        *,
        auth: Mapping[str, Any],
        tls: Mapping[str, Any],
        timeout: float,
        named: Sequence[str] = (),
    ) -> None:
        self.urls = tuple(url.rstrip("/") for url in urls)
        self.timeout = timeout
        self._credentials = RestCredentials.of(auth, named, verified=tls.get("verify") is not False)
        self._tls = tls
        for url in self.urls:
            if urlsplit(url).scheme not in ("http", "https"):
                raise BadInput(
                    f"{url!r} is not a worker's address",
                    next_step="Write http://HOST:PORT or https://….",
                )

    def get(self, path: str, *, url: str | None = None, timeout: float | None = None) -> Any:
        return self._ask("GET", path, None, url, timeout)

    def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        url: str | None = None,
        timeout: float | None = None,
    ) -> Any:
        """Send a changing request; None where the answer has no content.

        Another worker is tried only if no connection came about: a request that was sent may have
        been performed. For the same reason ``POST /connectors`` ends at once where the connector
        now exists.
        """
        return self._ask(method, path, body, url, timeout)

    def _ask(
        self, method: str, path: str, body: Any, url: str | None, timeout: float | None
    ) -> Any:
        urls = (url.rstrip("/"),) if url else self.urls
        if not urls:
            raise Unreachable(
                "No address of a worker is known",
                why="the group has no members and no address is given",
                next_step="Start a worker, or give --rest.",
            )
        deadline = time.monotonic() + (timeout or self.timeout)
        pause, sent = FIRST_PAUSE, 0
        while True:
            sent += 1
            try:
                return self._round(method, path, body, urls, deadline)
            except _Later as later:
                wait = pause * random.uniform(0.75, 1.25)
                if (
                    time.monotonic() + wait >= deadline
                    or sent >= later.most
                    or self._is_there_already(method, path, body, urls[0])
                ):
                    raise later.error from later
            time.sleep(wait)
            pause = min(pause * 2, LONGEST_PAUSE)

    def _round(
        self, method: str, path: str, body: Any, urls: Sequence[str], deadline: float
    ) -> Any:
        """Ask one worker after the other, and return the first response that counts."""
        missed: list[_Next] = []
        for attempts, url in zip(range(len(urls), 0, -1), urls, strict=True):
            remaining = max(deadline - time.monotonic(), 0.1)
            # A reading request leaves time for the other workers; a changing one is never sent
            # twice.
            patience = remaining / attempts if method == "GET" else remaining
            try:
                return self._once(method, url, path, body, patience)
            except _Next as failed:
                missed.append(failed)
        if busy := next((failed for failed in missed if failed.later), None):
            raise _Later(busy.error)
        if distrusted := next(
            (failed for failed in missed if isinstance(failed.error, NotTrusted)), None
        ):
            raise distrusted.error from missed[-1]
        late = next((failed for failed in missed if isinstance(failed.error, TimedOut)), None)
        if late or len(missed) == 1:
            raise (late or missed[0]).error from missed[-1]
        whys = "; ".join(f"{failed.error.what}: {failed.error.why}" for failed in missed)
        raise Unreachable("No worker answers", why=whys, next_step=_CHECK) from missed[-1]

    def _once(self, method: str, url: str, path: str, body: Any, patience: float) -> Any:
        import httpx

        try:
            credentials = self._credentials.request(url)
            with REQUESTS.to(url):
                answer = ask(
                    self._client,
                    method,
                    url + path,
                    patience=patience,
                    connect=CONNECT_TIMEOUT,
                    json=body,
                    **credentials,
                )
        except (httpx.ConnectError, httpx.ConnectTimeout) as e:
            why = str(e).removeprefix("[Errno 111] ") or "connection timed out"
            lost = Unreachable(f"The worker at {url} cannot be reached", why=why, next_step=_CHECK)
            raise _Next(self._explained(lost, url)) from e
        except httpx.InvalidURL as e:
            lost = Unreachable(
                f"The worker at {url} cannot be reached", why=str(e), next_step=_CHECK
            )
            raise _Next(lost) from e
        except httpx.TimeoutException as e:
            late = TimedOut(
                f"The worker at {url} did not answer {method} {path} within "
                f"{max(round(patience, 1), 0.1):g} s",
                next_step="Check the worker's log, or try a longer --timeout.",
            )
            raise (_Next(late) if method == "GET" else late) from e
        except httpx.HTTPError as e:
            why = (str(e) or type(e).__name__).rstrip(".")
            broken = Unreachable(
                f"The connection to {url} broke during {method} {path}", why=why, next_step=_CHECK
            )
            error = self._explained(broken, url)
            raise (_Next(error) if method == "GET" else error) from e
        if answer.is_success:
            return _content(answer, method, url, path)
        return _refuse(answer, method, url + path, self._credentials.withheld(url))

    def _is_there_already(self, method: str, path: str, body: Any, url: str) -> bool:
        # 409 means "exists" here as well as "rebalance", and only the text distinguishes them.
        if (method, path) != ("POST", "/connectors") or not isinstance(body, dict):
            return False
        try:
            self.get(path_of("connectors", str(body.get("name"))), url=url, timeout=CONNECT_TIMEOUT)
        except ConnectctlError:
            return False
        return True

    @cached_property
    def _client(self) -> httpx.Client:
        import httpx

        headers = {"accept": "application/json"}
        # A proxy of the environment is for the world outside, not for workers on this machine.
        direct = {f"all://{host}": None for host in ("localhost", "127.0.0.1", "[::1]")}
        client = httpx.Client(headers=headers, verify=self._verification(), mounts=direct)
        weakref.finalize(self, client.close)
        return client

    def _explained(self, error: ConnectctlError, url: str) -> ConnectctlError:
        """Return ``error`` with its cause in words, if TLS is one."""
        at = urlsplit(url)
        secure = at.scheme == "https"
        address = f"{at.hostname}:{at.port or (443 if secure else 80)}"
        found = explained(error, address, lambda: self._verification() if secure else None)
        if isinstance(found, NotTrusted):
            found.next_step = "Check rest, rest_tls and rest_auth: connectctl context show."
        return found

    def _verification(self) -> Any:
        check_files(
            {f"rest_tls.{name}": self._tls.get(name) for name in ("ca", "certificate", "key")}
        )
        try:
            if not any(self._tls.get(name) for name in ("ca", "certificate", "key")):
                return _system_trust(
                    ssl.get_default_verify_paths(), self._tls.get("verify") is not False
                )
            with naming(self._tls.get("ca")):
                context = ssl.create_default_context(cafile=self._tls.get("ca"))
            if self._tls.get("certificate"):
                with naming(self._tls["certificate"]):
                    context.load_cert_chain(self._tls["certificate"], self._tls.get("key"))
        except (OSError, ValueError) as e:
            hint = "Check rest_tls: connectctl context show."
            raise BadInput(
                "The files of rest_tls cannot be used", why=str(e), next_step=hint
            ) from e
        return context if self._tls.get("verify") is not False else _unverified(context)


@cache
def _system_trust(paths: ssl.DefaultVerifyPaths, verified: bool) -> ssl.SSLContext:
    """Return a context that trusts what the system trusts. To read that takes 20 ms of a processor,
    for each of clients.
    """
    context = ssl.create_default_context()
    return context if verified else _unverified(context)


def _unverified(context: ssl.SSLContext) -> ssl.SSLContext:
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _content(answer: httpx.Response, method: str, url: str, path: str) -> Any:
    """Return the JSON of an answer, of the shape that Connect gives it; None for one without
    content.
    """
    if not answer.content and method != "GET":
        return None
    try:
        found = read_json(answer.content)
    except ValueError as e:
        beginning = answer.content[:40].decode("utf-8", "replace")
        why = f"it begins with {beginning!r}" if answer.content[:1] not in (b"[", b"{") else str(e)
        why = why if answer.content else "it is empty"
        raise _not_connect(f"The answer to {method} {url}{path} is not JSON", why) from e
    if has_escaped_surrogate(answer.content):
        found = encodable(found)
    try:
        rest_answers.check(method, path, found)
    except Malformed as e:
        raise _not_connect(
            f"The answer to {method} {url}{path} is not that of a Connect worker", str(e)
        ) from e
    return found


def _not_connect(what: str, why: str) -> Unreachable:
    return Unreachable(what, why=why, next_step=_CHECK, code="not-connect")


def _refuse(answer: httpx.Response, method: str, url: str, withheld: str | None) -> NoReturn:
    status = answer.status_code
    message, connects = _message(answer)
    error = failure(method, url, status, message)
    if withheld and status in (401, 403):
        raise NotAuthorized(
            error.what,
            why=f"rest_auth was not sent: {withheld}",
            next_step=_NOT_SENT,
            code="not-sent",
        )
    if status == 404 and not connects:
        # Seen with 4.3.1: the server of a worker that has just begun listens before Connect has its
        # resources there.
        why = (
            "this is not an answer of Connect: the worker is still starting, or the address is "
            "not a worker's"
        )
        none = Unreachable(error.what, why=f"{error.why}; {why}", next_step=_CHECK, code="starting")
        raise _Next(none, later=True)
    most = sent_at_most(method, status, message)
    if most == 1:
        raise error
    raise _Next(error, later=True) if status in _NEXT_WORKER else _Later(error, most)


def _message(answer: httpx.Response) -> tuple[str, bool]:
    """Return why a request was refused, and whether the text is Connect's."""
    if 300 <= answer.status_code < 400:
        return (
            f"it leads to {urlsplit(answer.headers.get('location', '')).netloc or 'nowhere'}",
            False,
        )
    try:
        message = read_json(answer.content)["message"]
        return shortened(str(message).encode(errors="replace").decode()), True
    except (ValueError, KeyError, TypeError):
        # Not from Connect itself: a proxy, or the servlet container.
        return answer.reason_phrase or "no reason given", False
