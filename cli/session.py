"""Opens connections: the only place that creates clients from settings.

Every command gets a ``Session``. It reads the context file when a value is first needed and
connects when a client is first used, so that ``--help`` and offline commands open nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from connectctl.ops.clients.rest.without_rest import WithoutRest
from connectctl.ops.config import paths
from connectctl.ops.config.endpoints import problem_of_url
from connectctl.ops.core.errors import BadInput, Refused
from connectctl.ops.core.wait import observe_until

if TYPE_CHECKING:
    from connectctl.ops.clients import protocols
    from connectctl.ops.clients.kafka_protocol.client import ClusterClient
    from connectctl.ops.clients.librdkafka.client import Kafka
    from connectctl.ops.config.context_file import Parsed
    from connectctl.ops.config.settings import Settings
    from connectctl.ops.connect.connect_protocol import ConnectGroup
    from connectctl.ops.core.journal import Journal
    from connectctl.ops.operations.offsets.engine import Engine

SANDBOX = "sandbox-"
REBALANCE_PATIENCE = 15.0
"""Seconds to wait for the workers' addresses and assignments while the group rebalances."""
REBALANCE_PAUSE = 0.3
Client = TypeVar("Client", bound="Kafka | ClusterClient")
Kind = TypeVar("Kind", bound="ClusterClient")


@dataclass
class Session:
    """The settings given on the command line, and the clients opened with them."""

    flags: Mapping[str, Any] = field(default_factory=dict)
    context: str | None = None
    config: Path | None = None
    confirmed: str | None = None
    """The name of a protected context, if given with ``--confirm``."""
    engine: str = "auto"
    """How big offsets topics are read: auto, local or spark, as given with ``--engine``."""
    _closing: ExitStack = field(default_factory=ExitStack)

    @cached_property
    def settings(self) -> Settings:
        """Flags, environment and file, merged."""
        from connectctl.ops.config import settings

        wanted, origin = self.context, "--context"
        if wanted is None and os.environ.get("CONNECTCTL_CONTEXT"):
            wanted, origin = os.environ["CONNECTCTL_CONTEXT"], "environment CONNECTCTL_CONTEXT"
        file = self._file(wanted)
        named = wanted is not None or not self.flags.get("bootstrap_servers")
        if named and wanted is None and file is not None and (own := _current_sandbox(file)):
            wanted, origin, file = own, f"current in {file.path}", self._file(own)
        context = settings.pick_context(wanted, origin, file) if named else None
        return settings.merge(self.flags, os.environ, file, context)

    def _file(self, wanted: str | None) -> Parsed | None:
        path = self.config or paths.config_file()
        if wanted and wanted.startswith(SANDBOX):
            if sandbox := sandbox_file(wanted):
                path = sandbox
            elif not (path.is_file() and wanted in _contexts(path)):
                hint = f"connectctl sandbox up --name {wanted.removeprefix(SANDBOX)}"
                raise BadInput(
                    f"Sandbox not running: {wanted.removeprefix(SANDBOX)}",
                    next_step=f"Start it: {hint}; or use another context: connectctl context list",
                )
        if self.config is None and not path.is_file():
            return None
        from connectctl.ops.config import context_file

        return context_file.read(path)

    @property
    def timeout(self) -> float:
        """Seconds to wait for a broker or a worker, and with ``--wait`` for the target state."""
        return float(self.settings.get("timeout"))

    @property
    def group_id(self) -> str:
        """The workers' ``group.id``."""
        return self._required("group_id", "The workers' group.id")

    def _required(self, name: str, meaning: str) -> str:
        value = self.settings.get(name)
        if not value:
            flag = f"--{name.replace('_', '-')}"
            raise BadInput(
                f"{meaning} {'are' if meaning.endswith('s') else 'is'} not given ({name})",
                next_step=f"Give {flag}, CONNECTCTL_{name.upper()}, or a context: connectctl "
                "context show.",
            )
        return str(value)

    def journal(self, *, read_only: bool = False) -> Journal:
        """Open the user's journal.

        Raises ``ConnectctlError`` if it is damaged, or unless ``read_only`` cannot be written.
        """
        from connectctl.ops.core.journal import Journal

        journal = Journal(paths.journal_directory(), read_only=read_only)
        journal.reveal = self.reveal
        return journal

    @staticmethod
    def note(line: str) -> None:
        """Print a line for users on standard error."""
        from connectctl.cli.output import terminal

        terminal.note(line)

    @staticmethod
    def reveal(name: str, value: Any) -> Any:
        """Return the secret that ``value`` refers to; ``value`` itself if it is not a reference."""
        from connectctl.ops.clients.secrets import reveal

        return reveal(name, value)

    def in_context(self, context: str) -> Session:
        """Return a session in another context of the same file, without the flags of this one
        except ``--timeout``.
        """
        return Session(
            flags={"timeout": self.flags.get("timeout")}, context=context, config=self.config
        )

    @property
    def client_properties(self) -> dict[str, Any]:
        """librdkafka's properties, secrets included: for clients only, never for printing."""
        properties = {
            name: self.reveal(f"client.{name}", value)
            for name, value in self.settings.section("client").items()
        }
        return properties | {
            "bootstrap.servers": self._required("bootstrap_servers", "The brokers' addresses")
        }

    @cached_property
    def kafka(self) -> protocols.KafkaReads:
        """The Kafka cluster that the workers use. Raises ``Refused`` if it is not the context's
        cluster.
        """
        from connectctl.ops.clients.librdkafka.client import Kafka

        return self._checked(Kafka(self.client_properties, timeout=self.timeout))

    @cached_property
    def transactions(self) -> protocols.TransactionCalls:
        """Coordinators and partition leaders of the same Kafka cluster. Raises ``Refused`` as
        ``kafka`` does.
        """
        from connectctl.ops.clients.kafka_protocol.transactions import TransactionClient

        return self._checked(self._opened(TransactionClient, self.client_properties))

    @cached_property
    def cluster_lock(self) -> protocols.ClusterLock:
        """The lock that every change of this Connect cluster takes; connects when it is first
        used.
        """
        from connectctl.ops.clients.kafka_protocol.cluster_lock import GroupLock, LocalLock

        kind = str(self.settings.get("lock"))
        if kind == "cluster":
            return GroupLock(self.client_properties, self.group_id, timeout=self.timeout)
        if kind != "local":
            raise BadInput(
                f"Invalid lock: {kind}", next_step="Give --lock cluster or --lock local."
            )
        from connectctl.cli.output import terminal

        terminal.note(
            "warning: the cluster is not locked (--lock local); make sure that nobody else "
            "changes it",
            style="yellow",
        )
        return LocalLock()

    def lock_of(self, group_id: str) -> protocols.ClusterLock:
        """Return the lock of the Connect cluster; without a group id, only the journal's file is
        locked.
        """
        from connectctl.ops.clients.kafka_protocol.cluster_lock import LocalLock

        return self.cluster_lock if group_id else LocalLock()

    @cached_property
    def transaction_log(self) -> protocols.TransactionLogReads:
        """The transaction log of the same Kafka cluster; connects when it is first read."""
        from connectctl.ops.clients.kafka_protocol.transaction_log import TransactionLog

        return TransactionLog(self.client_properties, timeout=self.timeout)

    @cached_property
    def brokers(self) -> protocols.BrokerReads:
        """The brokers of the same Kafka cluster, and its consumers. Raises ``Refused`` as ``kafka``
        does.
        """
        from connectctl.ops.clients.kafka_protocol.brokers import Brokers

        return self._checked(self._opened(Brokers, self.client_properties))

    @cached_property
    def acls(self) -> protocols.AclReads:
        """The ACLs of the same Kafka cluster. Raises ``Refused`` as ``kafka`` does."""
        from connectctl.ops.clients.kafka_protocol.acls import AclReader

        return self._checked(self._opened(AclReader, self.client_properties))

    @cached_property
    def own_rights(self) -> protocols.RightsReads:
        """The rights of the principal in use on the same Kafka cluster. Raises ``Refused`` as
        ``kafka`` does.
        """
        from connectctl.ops.clients.kafka_protocol.own_rights import OwnRights

        return self._checked(self._opened(OwnRights, self.client_properties))

    def other_acls(self, bootstrap: str, overrides: Mapping[str, str]) -> protocols.AclReads:
        """Return ``acls`` of another Kafka cluster; see ``other_kafka``."""
        from connectctl.ops.clients.kafka_protocol.acls import AclReader

        return self._opened(AclReader, self._properties_of(bootstrap, overrides))

    @cached_property
    def spark(self) -> Engine:
        """The engine on the context's Spark master; its session is opened when something is first
        read with it.
        """
        from connectctl.ops.jobs.offsets_engine import Spark

        return Spark(lambda: self.spark_session, self.spark_log)

    def offsets_engine(self, kafka: protocols.KafkaReads, offsets_topic: str) -> Engine:
        """Return the engine given with ``--engine``, or chosen by the size of the global offsets
        topic.
        """
        from connectctl.ops.clients.spark import session as spark_session
        from connectctl.ops.operations.offsets.engine import Local
        from connectctl.ops.operations.offsets.engine_choice import Choice, wants_spark

        choice = Choice(self.engine)
        if choice is Choice.LOCAL or not wants_spark(
            choice, kafka, offsets_topic, installed=spark_session.installed()
        ):
            return Local()
        spark_session.require()
        return self.spark

    @cached_property
    def spark_session(self) -> Any:
        """A Spark session on the context's master; Spark's log is in ``spark_log``."""
        from connectctl.cli.output.waiting import waiting
        from connectctl.ops.clients.spark.session import close_session, open_session

        master, conf = str(self.settings.get("spark.master")), self.settings.section("spark.conf")
        with waiting(f"starting Spark on {master}"):
            session = open_session(master, conf, self.spark_log)
        self._closing.callback(close_session, session)
        return session

    @property
    def spark_log(self) -> Path:
        """The file of Spark's log."""
        return paths.state_directory() / "spark.log"

    def close(self) -> None:
        """Close the clients that do not close by themselves."""
        self._closing.close()

    def other_brokers(self, bootstrap: str, overrides: Mapping[str, str]) -> protocols.BrokerReads:
        """Return ``brokers`` of another Kafka cluster; see ``other_kafka``."""
        from connectctl.ops.clients.kafka_protocol.brokers import Brokers

        return self._opened(Brokers, self._properties_of(bootstrap, overrides))

    def other_transactions(
        self, bootstrap: str, overrides: Mapping[str, str]
    ) -> protocols.TransactionCalls:
        """Return ``transactions`` of another Kafka cluster; see ``other_kafka``."""
        from connectctl.ops.clients.kafka_protocol.transactions import TransactionClient

        return self._opened(TransactionClient, self._properties_of(bootstrap, overrides))

    def _opened(self, kind: type[Kind], properties: dict[str, Any]) -> Kind:
        """Return a client of ``kind`` that is closed with the session."""
        return self._closing.enter_context(closing(kind(properties, timeout=self.timeout)))

    def _checked(self, client: Client) -> Client:
        """Return ``client``. Raises ``Refused`` if it is not connected to the context's cluster."""
        expected = self.settings.get("cluster_id")
        if expected and client.cluster_id() != expected:
            where = self.settings.get("bootstrap_servers")
            raise Refused(
                f"Wrong cluster: {where} has the id {client.cluster_id()}, and the context "
                f"expects {expected}",
                next_step="Correct bootstrap_servers or cluster_id: connectctl context show.",
            )
        return client

    def other_kafka(self, bootstrap: str, overrides: Mapping[str, str]) -> protocols.KafkaReads:
        """Return a client of another Kafka cluster, one that a connector writes to.

        Raises ``Unreachable`` if neither the context nor the connector has credentials for it: see
        ``cluster_credentials``.
        """
        from connectctl.ops.clients.librdkafka.client import Kafka

        return Kafka(self._properties_of(bootstrap, overrides), timeout=self.timeout)

    def _properties_of(self, bootstrap: str, overrides: Mapping[str, str]) -> dict[str, Any]:
        from connectctl.ops.clients.cluster_credentials import connection_properties

        return connection_properties(self.settings, bootstrap, overrides)

    def is_own_cluster(self, bootstrap: str) -> bool:
        """Return whether these servers are those of the context's own Kafka cluster."""
        from connectctl.ops.clients.cluster_credentials import named_cluster

        named = named_cluster(self.settings, bootstrap)
        return named is not None and named.is_own

    def connect(self, urls: tuple[str, ...]) -> protocols.ConnectCalls:
        """Return a client of the workers at ``urls``, with the context's credentials."""
        from connectctl.ops.clients.rest.connect import Connect

        auth = {
            name: self.reveal(f"rest_auth.{name}", v)
            for name, v in self.settings.section("rest_auth").items()
        }
        tls, named = self.settings.section("rest_tls"), self.settings.get("rest") or ()
        return Connect(urls, auth=auth, tls=tls, timeout=self.timeout, named=tuple(named))

    def group(self, patience: float | None = None) -> ConnectGroup:
        """Return the workers' group; waits up to ``patience`` seconds, by default
        ``REBALANCE_PATIENCE``, while a rebalance hides what it runs, and where.

        Raises ``BadInput`` for a consumer group, of any protocol.
        """
        seconds = min(self.timeout, REBALANCE_PATIENCE if patience is None else patience)
        return observe_until(
            lambda: self.kafka.group(self.group_id),
            lambda group: group.settled,
            seconds,
            REBALANCE_PAUSE,
        )

    def connect_to(self, group: ConnectGroup | None) -> protocols.ConnectCalls:
        """Return a client of the workers of ``group``, the leader first; of those in the settings
        instead, if any.

        Servers in the settings that are not proven to be workers of the group raise ``NotAMember``
        when they are asked.
        """
        given = tuple(self.settings.get("rest") or ())
        if given and group is not None:
            return self._proven(given)
        if group is None:
            return self.connect(given)
        if group.without_rest:
            return WithoutRest(group.id)
        members = [member.url for member in group.members if problem_of_url(member.url) is None]
        return self.connect(
            tuple(sorted(dict.fromkeys(members), key=lambda url: url != group.leader_url))
        )

    def _proven(self, urls: tuple[str, ...]) -> protocols.ConnectCalls:
        from connectctl.ops.clients.rest.addresses import addresses_of
        from connectctl.ops.operations.cluster.group_workers import GroupWorkers

        declared = bool(self.settings.get("rest_is_group"))
        return GroupWorkers(
            urls, self.connect, self.kafka, self.group_id, self.named_topics, addresses_of, declared
        )

    def driver(self, tell: Callable[[str], None] | None = None) -> protocols.WorkerDriver:
        """Return the driver of this context's workers; ``tell`` prints instructions to the
        operator, one line or more.

        Without the setting, a sandbox's workers have the driver ``sandbox``, all others the manual
        one.
        """
        from connectctl.cli.output import terminal
        from connectctl.ops.clients.drivers.open import DriverContext, opened
        from connectctl.ops.config import worker_section
        from connectctl.ops.sandbox.driver import SandboxWorkers

        context = self.settings.context or ""
        sandbox = context.removeprefix(SANDBOX) if context.startswith(SANDBOX) else None
        section = self.settings.section("workers") or ({"driver": "sandbox"} if sandbox else {})
        encrypted = any(str(url).startswith("https:") for url in self.settings.get("rest") or ())
        driver_context = DriverContext(
            tell or partial(terminal.note, style="bold"),
            SandboxWorkers,
            secrets=self._secrets,
            scheme="https" if encrypted or self.settings.section("rest_tls") else "http",
            group_id=self.settings.get("group_id"),
            sandbox=sandbox,
        )
        return opened(worker_section.from_settings(section), driver_context)

    @cached_property
    def group_offsets(self) -> protocols.GroupOffsetWrites:
        """Committed offsets of consumer groups on the same Kafka cluster."""

        from connectctl.ops.clients.librdkafka.consumer_groups import GroupOffsetClient

        kafka: Any = self.kafka
        return GroupOffsetClient(kafka)

    @cached_property
    def client_groups(self) -> protocols.GroupReads:
        """Consumer groups on the same Kafka cluster."""
        from connectctl.ops.clients.librdkafka.consumer_groups import ClientGroups

        kafka: Any = self.kafka
        return ClientGroups(kafka)

    def application(self, name: str) -> tuple[protocols.WorkerDriver, list[str]]:
        """Return the driver of a stream application's instances, and their names.

        Raises ``BadInput`` if the context does not have it.
        """
        from connectctl.cli.output import terminal
        from connectctl.ops.clients.drivers.open import DriverContext, opened
        from connectctl.ops.config import application_section
        from connectctl.ops.sandbox.driver import SandboxWorkers

        section = application_section.from_settings(name, self.settings.section("applications"))
        section = section or application_section.ApplicationSection()
        return opened(
            section, DriverContext(terminal.note, SandboxWorkers, self._secrets)
        ), section.instances

    def _secrets(self) -> Iterator[str]:
        """Yield the secrets to mask. One that cannot be read is in no output."""
        for name, value in self.settings.secrets():
            with suppress(BadInput):
                yield str(self.reveal(name, value))

    @property
    def named_topics(self) -> dict[str, str | None]:
        """The internal topics given for this group, by role; see ``settings.merge``."""
        return {
            role: self.settings.get(f"topics.{role}") for role in ("config", "offsets", "status")
        }


def sandbox_file(context: str) -> Path | None:
    """Return the context file of the sandbox with this context: ``sandbox-NAME``, or
    ``sandbox-NAME-WAY`` if secured.
    """
    name = context.removeprefix(SANDBOX)
    own = paths.sandbox_directory(name) / "context.yaml"
    if own.is_file():
        return own
    secured = paths.sandbox_directory(name.rpartition("-")[0] or name) / "context.yaml"
    return secured if secured.is_file() and context in _contexts(secured) else None


def _current_sandbox(file: Parsed) -> str | None:
    """Return the context of a sandbox that the user's file names as the current one."""
    current = file.content.current
    own = current is not None and current.startswith(SANDBOX) and current not in file.names
    return current if own else None


def _contexts(path: Path) -> list[str]:
    from connectctl.ops.config import context_file

    return context_file.read(path).names
