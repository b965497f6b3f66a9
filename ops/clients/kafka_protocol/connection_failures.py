"""The causes of failed connections of one client to its brokers, which the time-out of a request
does not have.

kafka-python writes them to its log, which all clients of a process share. A cause is forgotten as
soon as a connection to its broker is made.
"""

from __future__ import annotations

from functools import partial
from typing import Any


class ConnectionFailures:
    """The failures of one client, the newest of each kind for each broker or bootstrap server."""

    def __init__(self) -> None:
        self._of: dict[Any, dict[type[Exception], Exception]] = {}
        self._knows_brokers = False

    def watch(self, manager: Any) -> None:
        """Note what becomes of the connections that ``manager``, kafka-python's, makes from now
        on.
        """
        made = manager.get_connection

        def get_connection(node_id: Any, *args: Any, **more: Any) -> Any:
            connection = made(node_id, *args, **more)
            connection.init_future.add_callback(lambda _: self._of.pop(node_id, None))
            connection.init_future.add_errback(partial(self.note, node_id))
            return connection

        manager.get_connection = get_connection

    def note(self, node_id: Any, error: Exception) -> None:
        of_node = self._of.setdefault(node_id, {})
        of_node.pop(type(error), None)
        of_node[type(error)] = error

    def brokers_are_known(self) -> None:
        """Note that the cluster has answered: whatever failed before that is over."""
        self._knows_brokers = True
        self._of.clear()

    def of_node(self, node_id: Any) -> list[Exception]:
        """Return the reasons why there is no connection to a broker, the newest last."""
        return list(self._of.get(node_id, {}).values())

    @property
    def of_first_contact(self) -> list[Exception]:
        """Return the reasons why no bootstrap server answers; none once one did."""
        return (
            []
            if self._knows_brokers
            else [error for node in self._of for error in self.of_node(node)]
        )
