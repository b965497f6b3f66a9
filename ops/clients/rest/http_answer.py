"""One HTTP request with an end: the whole response within a number of seconds and bytes, or an
error.

httpx's own time-outs limit each wait for bytes: a server that sends one byte a second never exceeds
them.
"""

from __future__ import annotations

import threading
import time
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from connectctl.ops.core.errors import Unreachable

if TYPE_CHECKING:
    import httpx

LARGEST = 256 * 1024 * 1024
"""Bytes of an answer that are read: ten thousand connectors with their statuses are a tenth of
that.
"""
CHUNK = 1 << 16
GRACE = 0.1
"""Seconds for httpx's own time-out, which has a better message, to come first."""
_OF_THE_WIRE = ("content-encoding", "content-length", "transfer-encoding")


def ask(
    client: httpx.Client, method: str, url: str, *, patience: float, connect: float, **what: Any
) -> httpx.Response:
    """Return the answer with its content. ``patience`` bounds all of it in seconds, ``connect`` a
    connection's coming about.

    Raises httpx's errors, ``httpx.ReadTimeout`` for what is late; ``ConnectctlError`` for what is
    too large.
    """
    import httpx

    deadline = time.monotonic() + patience
    limits = httpx.Timeout(patience, connect=min(connect, patience))

    def whole() -> httpx.Response:
        with client.stream(method, url, timeout=limits, **what) as answer:
            content = bytearray()
            for chunk in answer.iter_bytes(CHUNK):
                content += chunk
                if len(content) > LARGEST:
                    raise Unreachable(
                        f"The answer to {method} {url} is too large",
                        why=f"it has more than {LARGEST // (1024 * 1024)} MiB",
                        next_step="Check the address: connectctl context show.",
                        code="not-connect",
                    )
                if time.monotonic() > deadline:
                    raise httpx.ReadTimeout("the answer did not end", request=answer.request)
            # What has been unpacked is no longer what the headers say of it.
            headers = [
                (k, v) for k, v in answer.headers.multi_items() if k.lower() not in _OF_THE_WIRE
            ]
            return httpx.Response(
                answer.status_code,
                headers=headers,
                content=bytes(content),
                request=answer.request,
                extensions={"reason_phrase": answer.extensions.get("reason_phrase", b"")},
            )

    came: SimpleQueue[httpx.Response | BaseException] = SimpleQueue()

    def run() -> None:
        try:
            came.put(whole())
        except BaseException as e:  # noqa: BLE001  # whatever it is, it belongs to the one who asked
            came.put(e)

    # Abandoned after the deadline: nothing ends a wait for a header.
    threading.Thread(target=run, name="connectctl-rest", daemon=True).start()
    try:
        answer = came.get(timeout=max(deadline - time.monotonic(), 0.0) + GRACE)
    except Empty:
        raise httpx.ReadTimeout("the answer did not come") from None
    if isinstance(answer, BaseException):
        raise answer
    return answer
