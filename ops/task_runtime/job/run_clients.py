"""Opens the clients of a run, and sends the first requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from connectctl.ops.clients.first_contact import first_contact
from connectctl.ops.task_runtime.job.internal_topics import RunClients
from connectctl.ops.task_runtime.spi.delivery_settings import target_cluster

if TYPE_CHECKING:
    from connectctl.ops.clients.protocols import Clients
    from connectctl.ops.task_runtime.job.job_file import Job


def run_clients(clients: Clients, job: Job | None = None) -> RunClients:
    """Return the clients of a run of ``job``, or of the group's runs in general."""
    kafka: Any = clients.kafka
    target, calls = kafka, clients.transactions
    brokers = [clients.brokers]
    if other := target_of(clients, job):
        target = clients.other_kafka(*other)
        calls = clients.other_transactions(*other)
        brokers.append(clients.other_brokers(*other))
    group = clients.group()
    workers = clients.connect_to(group) if group.members else None
    return RunClients(kafka, target, calls, tuple(brokers), group, clients.named_topics, workers)


def target_of(clients: Clients, job: Job | None) -> tuple[str, dict[str, str]] | None:
    """Return the bootstrap servers and overrides of the Kafka cluster that the job writes to; None
    if it is the cluster of the context.
    """
    kafka: Any = clients.kafka
    return target_cluster(job.config if job else {}, str(kafka.bootstrap))


def contact_clusters(clients: Clients, job: Job) -> None:
    """Send the first request to each cluster. Raises ``NeverAnswered`` and ``UnknownHost``, unlike
    later requests.
    """
    with first_contact(str(clients.settings.get("bootstrap_servers"))):
        clients.kafka.cluster_id()
    if other := target_of(clients, job):
        with first_contact(other[0]):
            clients.other_kafka(*other).cluster_id()
