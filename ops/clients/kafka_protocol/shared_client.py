"""One KafkaProtocolClient for many producers of a process: one event loop and thread.

Each producer has connections of its own behind it, to its coordinator and to leaders, so that none waits for another's
requests, however long a broker takes for them.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any, Self

from connectctl.ops.clients.kafka_protocol.client import KafkaProtocolClient


class SharedProtocolClient(KafkaProtocolClient):
    """See ``KafkaProtocolClient``. It has one user at first, and is closed by the last one."""

    def __init__(self, properties: Mapping[str, Any], *, timeout: float) -> None:
        super().__init__(properties, timeout=timeout)
        self._counting = threading.Lock()
        self._users = 1

    def one_more(self) -> Self:
        """It for one more user, who closes it, too."""
        with self._counting:
            self._users += 1
        return self

    def close(self) -> None:
        """Close the connections once nobody else uses them."""
        with self._counting:
            self._users -= 1
            last = not self._users
        if last:
            super().close()
