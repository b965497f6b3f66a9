"""A zombie for tests: a producer that continues as a task, like one that its worker no longer
controls.
"""

from __future__ import annotations

import logging
from typing import Any

from connectctl.ops.core.errors import ConnectctlError

PATIENCE = 60.0


class Zombie:
    """A producer with a task's transactional id and an open transaction in which one record is
    written to ``topic``.
    """

    def __init__(self, bootstrap: str, transactional_id: str, topic: str):
        from confluent_kafka import KafkaException, Producer

        silent = logging.Logger("zombie", logging.CRITICAL + 1)  # its end is reported by the caller
        config = {
            "bootstrap.servers": bootstrap,
            "transactional.id": transactional_id,
            "logger": silent,
        }
        self._producer: Any = Producer(config)
        try:
            self._producer.init_transactions(PATIENCE)
            self._producer.begin_transaction()
            self._producer.produce(topic, value=b"written by a zombie")
            self._producer.flush(PATIENCE)
        except KafkaException as e:
            raise ConnectctlError("The zombie producer could not write", why=e.args[0].str()) from e

    def refused(self) -> str | None:
        """Return why the zombie cannot commit, None if it can."""
        from confluent_kafka import KafkaException

        try:
            self._producer.commit_transaction(PATIENCE)
        except KafkaException as e:
            return str(e.args[0].str())
        return None
