"""A cluster behind an authorizer on which every command is run with exactly the rights of
``ops/core/rights.py``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from connectctl.ops.checks.own_rights.observe import observe
from connectctl.ops.clients.librdkafka.client import Kafka
from connectctl.ops.clients.rest.connect import Connect
from connectctl.ops.config import paths
from connectctl.ops.core.journal import Journal
from connectctl.ops.core.rights import Name, Need, When
from connectctl.ops.kafka.acls import ANY, CLUSTER_NAME, Resource, Right
from fakes.acls import allow
from fakes.runner import invoke
from live.grants import Grants
from live.offsetchanges import VERIFIABLE
from live.rawproducer import RawProducers
from live.real import Ran, Workers, create_topic, eventually, workers, write

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
PASSWORD = "correct-horse-battery"
USER = "rights"
PRINCIPAL = f"User:{USER}"
SOURCE, RESTING, OWN, SINK, FRESH = (
    "rights-nums",
    "rights-resting",
    "rights-own",
    "rights-sink",
    "rights-fresh",
)
TARGET, DEDICATED, HUNG, READ = "rights-records", "rights-own-offsets", "rights-hung", "rights-read"
FILE_SINK = "org.apache.kafka.connect.file.FileStreamSinkConnector"
EVERY = {Name.ANY_TOPIC, Name.ANY_ID, Name.ANY_GROUP}


AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.secured.plain.sasl.jaas.config": f'{LOGIN} user_{USER}="{PASSWORD}";',
}
"""Properties of a broker whose principal on the listener ``SECURED`` has no rights."""


def sandbox_with_authorizer(name: str) -> Any:
    """Return the spec of a sandbox with one worker that is a super user, and one principal without
    rights.
    """
    from connectctl.ops.sandbox.cluster import SandboxSpec

    return SandboxSpec(
        name=name,
        workers=1,
        support="enabled",
        extra_listeners={"SECURED": "SASL_PLAINTEXT"},
        extra_broker_properties={
            **AUTHORIZER,
            # Lets a test leave a transaction that hangs.
            "transaction.partition.verification.enable": "false",
        },
    )


def login(directory: Path) -> dict[str, Any]:
    """Return the part of a context with the credentials of the principal without rights, whose
    password is in a file.
    """
    (directory / "password").write_text(PASSWORD)
    client = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": USER,
    }
    return {"client": client | {"sasl.password": {"file": str(directory / "password")}}}


@dataclass
class RightsWorld:
    """Connectors, topics and runs of the journal that commands are run against, and the principal
    that runs them.
    """

    cluster: Sandbox
    grants: Grants
    directory: Path
    raw: RawProducers
    rest: Workers = field(init=False)
    names: Mapping[Name, tuple[str, ...]] = field(init=False)
    environment: dict[str, str] = field(default_factory=dict)
    _number: int = 100

    def __post_init__(self) -> None:
        self.rest = workers(self.cluster)
        source = VERIFIABLE | {"topic": TARGET}
        create_topic(self.cluster.bootstrap_servers, TARGET, 1, "delete")
        for topic in (HUNG, READ):
            create_topic(self.cluster.bootstrap_servers, topic, 1, "delete")
        create_topic(self.cluster.bootstrap_servers, DEDICATED, 1)
        self.rest.create(SOURCE, source)
        self.rest.create(RESTING, source)
        self.rest.create(OWN, source | {"offsets.storage.topic": DEDICATED}, "STOPPED")
        sink = {
            "connector.class": FILE_SINK,
            "topics": READ,
            "file": str(self.directory / "sink.txt"),
        }
        self.rest.create(
            SINK, sink | {"value.converter": "org.apache.kafka.connect.storage.StringConverter"}
        )
        eventually(lambda: self.rest.offsets(RESTING))
        self.state(RESTING, "STOPPED")
        self.write_offsets()
        eventually(lambda: self.rest.offsets(SOURCE))
        self._contexts()
        self.names = self._places()

    def write_offsets(self) -> None:
        """Store the source offsets of the connectors that are stopped."""
        bootstrap, offsets = self.cluster.bootstrap_servers, self.cluster.topics["offsets"]
        write(bootstrap, offsets, (_key(RESTING), {"seqno": 41}))
        self.write_own(41, 41)

    def write_own(self, dedicated: int, in_global: int) -> None:
        """Store the offset of the connector with a dedicated topic in both topics."""
        write(
            self.cluster.bootstrap_servers,
            self.cluster.topics["offsets"],
            (_key(OWN), {"seqno": in_global}),
        )
        write(self.cluster.bootstrap_servers, DEDICATED, (_key(OWN), {"seqno": dedicated}))

    def fresh_number(self) -> int:
        """A number that no run has used before."""
        self._number += 1
        return self._number

    def _contexts(self) -> None:
        entry = {"group_id": self.cluster.group_id, "topics": dict(self.cluster.topics)}
        secured = login(self.directory)
        contexts = {
            "exact": entry | secured | {"bootstrap_servers": self.cluster.listeners["SECURED"]},
            "super": entry | {"bootstrap_servers": self.cluster.bootstrap_servers},
        }
        workers_section = {"workers": {"driver": "manual"}}
        data = {
            "current": "exact",
            "contexts": {name: each | workers_section for name, each in contexts.items()},
        }
        (self.directory / "contexts.yaml").write_text(json.dumps(data))

    def _places(self) -> Mapping[Name, tuple[str, ...]]:
        kafka = Kafka({"bootstrap.servers": self.cluster.bootstrap_servers}, timeout=60)
        calls = Connect(tuple(self.cluster.rest_urls), auth={}, tls={}, timeout=60)
        group = kafka.group(self.cluster.group_id)
        found = dict(observe(kafka, calls, group, dict(self.cluster.topics), ()).names)
        found[Name.TARGETS] = (*found[Name.TARGETS], HUNG)
        return found

    def open_id(self) -> str:
        """Leave a transaction open with the id of a task; that id."""
        self.raw.init([self.task_id])
        self.raw.begin([self.task_id], HUNG, [0])
        return self.task_id

    def hang(self) -> None:
        """Leave a transaction that hangs, if there is none."""
        if not self.as_super_user("transactions", "hanging", "--topic", HUNG, code=None)["hanging"]:
            id_ = f"rights-ghost-{self.fresh_number()}"
            self.raw.init([id_])
            self.raw.write_behind(id_, HUNG)

    def run(self, *words: str, context: str = "exact", stdin: str | None = None) -> Ran:
        """Run connectctl in this process, as the principal or, in the context ``super``, as the
        super user.
        """
        start = [
            "--config",
            str(self.directory / "contexts.yaml"),
            "--context",
            context,
            "--timeout",
            "20",
        ]
        result = invoke([*start, *words], input=stdin, env=self.environment)
        return Ran(result.exit_code, result.stdout, result.stderr)

    @property
    def task_id(self) -> str:
        """The transactional id of the task of the connector that is stopped."""
        return f"{self.cluster.group_id}-{RESTING}-0"

    def as_super_user(self, *words: str, stdin: str | None = None, code: int | None = 0) -> Any:
        """Run a command as the super user; its JSON. It ends with ``code``, or anyhow for None."""
        ran = self.run(*words, "-o", "json", context="super", stdin=stdin)
        assert code in (None, ran.code), f"{words}: {ran.code}\n{ran.out}\n{ran.err}"
        return ran.json

    def changed_by_super_user(self, *words: str) -> str:
        """Change something as the super user; the run that it took."""
        self.as_super_user(*words, "--yes")
        return str(self.as_super_user("runs", "list")["runs"][0]["id"])

    def open_run(self, *words: str) -> str:
        """Return a run of the journal that was interrupted before its first step."""
        plan = self.as_super_user(*words)
        journal = Journal(paths.journal_directory())
        subjects = tuple(
            dict.fromkeys(step["subject"] for step in plan["steps"] if "subject" in step)
        )
        return journal.begin(
            plan["operation"], plan["clusterId"], plan["groupId"], subjects, plan
        ).id

    def file(self, name: str, content: Any) -> str:
        """Write a file for a command; its path."""
        path = self.directory / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return str(path)

    def state(self, name: str, target: str) -> None:
        """Give a connector its target state, and wait until workers have reached it.

        What is paused while it is stopped has no task until it is resumed.
        """
        now = self.rest.state(name)[0]
        if target == "PAUSED" and now == "STOPPED":
            self.state(name, "RUNNING")
        verb = {"RUNNING": "resume", "STOPPED": "stop", "PAUSED": "pause"}[target]
        answer = self.rest.call("PUT", f"/connectors/{name}/{verb}")
        assert answer.is_success, answer.text
        self.reached(name, [target] * (1 if target == "STOPPED" else 2))

    def reached(self, name: str, wanted: Sequence[str]) -> None:
        """Wait for the states of a connector and its tasks."""
        seen: list[str] = []

        def is_reached() -> bool:
            seen[:] = self.rest.state(name)
            return seen == wanted

        try:
            eventually(is_reached)
        except AssertionError as late:
            raise AssertionError(f"{name} is {seen} and not {wanted}: {late}") from late

    def rights_of(self, need: Need) -> Iterator[Right]:
        """The rights on this cluster's own names that a row of the table means; none where it has
        no such names.
        """
        if need.when is When.UNNAMED:
            return
        if need.resource is Resource.CLUSTER:
            yield Right(need.operation, need.resource, CLUSTER_NAME)
            return
        names = (ANY,) if need.name in EVERY else self.names.get(need.name, ())
        for name in names:
            yield Right(need.operation, need.resource, name)

    @contextmanager
    def allowed(self, needs: Sequence[Need], without: Need | None = None) -> Iterator[None]:
        """Exactly the rights of ``needs``; of these without one, which is denied where it is on a
        name.
        """
        rights = {right for need in needs if need is not without for right in self.rights_of(need)}
        taken = set(self.rights_of(without)) if without else set()
        wanted = [allow(PRINCIPAL, r.operation, r.resource, r.name) for r in rights - taken]
        wanted += [
            allow(PRINCIPAL, r.operation, r.resource, r.name, deny=True)
            for r in taken
            if r.name != ANY
        ]
        with self.grants.given(*wanted) if wanted else _nothing():
            yield


def _key(connector: str) -> str:
    return json.dumps([connector, {"id": 0}], separators=(",", ":"))


@contextmanager
def _nothing() -> Iterator[None]:
    yield


@dataclass(frozen=True)
class Prepared:
    """A command that can be run once, everything being there that it needs."""

    world: RightsWorld
    words: Sequence[str]
    stdin: str | None = None

    def __call__(self) -> Ran:
        return self.world.run(*self.words, stdin=self.stdin)


@dataclass(frozen=True)
class Way:
    """How a command is run here: its arguments, made anew for each run, once what they need is
    there.
    """

    words: Callable[[RightsWorld], Sequence[str]]

    def run(self, world: RightsWorld) -> Prepared:
        """Prepare a run of the command."""
        return Prepared(world, self.words(world))
