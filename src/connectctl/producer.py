"""A transactional producer for Python programs, with the method names of confluent-kafka's
``Producer``.

Under KIP-890's second part (``transaction.version`` 2) no late request can tear a transaction,
whatever the network does; on older brokers every doubt ends the producer. What is promised and how
errors are handled: docs/how-to/transactional-producer.md. It needs
``pip install 'connectctl[producer]'``.
"""

from __future__ import annotations

from connectctl.ops.clients.producer.errors import (
    AbortRequired,
    ProducerFailed,
    ProducerFenced,
    RequestFailed,
)
from connectctl.ops.clients.producer.producer import TransactionalProducer

__all__ = [
    "AbortRequired",
    "ProducerFailed",
    "ProducerFenced",
    "RequestFailed",
    "TransactionalProducer",
]
