"""Prepares the start of a job: checks brokers, workers, topics and configuration, and plans the
steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from connectctl.ops.connect.connector import restoring_verb
from connectctl.ops.connect.offset_store import separate_store
from connectctl.ops.core.errors import BadInput, NotAuthorized
from connectctl.ops.core.plan import Plan
from connectctl.ops.operations.cluster.internal_topic_discovery import those_that_exist
from connectctl.ops.task_runtime.job.config_topic_records import STOPPED, ConfigTopicState
from connectctl.ops.task_runtime.job.generation import read_config_topic
from connectctl.ops.task_runtime.job.group_members import TaskMembers, check_group_is_free
from connectctl.ops.task_runtime.job.internal_topics import (
    PARTITIONS,
    REPLICAS,
    RunClients,
    check_layout,
    internal_topics,
)
from connectctl.ops.task_runtime.job.preconditions import (
    check_brokers,
    check_inputs,
    check_target,
    live_workers,
    missing_inputs,
)
from connectctl.ops.task_runtime.job.steps import (
    OPERATION,
    CreateInternalTopic,
    HandBack,
    RunTasks,
    StartConnector,
    StartTasks,
    StopOnWorkers,
)
from connectctl.ops.task_runtime.job.task_count import count_tasks, refusal
from connectctl.ops.task_runtime.spi.connector import Connector, ConnectorContext, SourceConnector
from connectctl.ops.task_runtime.spi.delivery_settings import (
    SUPPORT,
    DeliverySettings,
    check,
    delivery_settings,
    group_delivery,
    sink_delivery,
)
from connectctl.ops.task_runtime.spi.error_settings import error_settings
from connectctl.ops.task_runtime.spi.plugins import task_class
from connectctl.ops.task_runtime.spi.sink import SinkConnector
from connectctl.ops.task_runtime.spi.subscription import (
    REGEX,
    Subscription,
    input_topics,
    subscription,
)
from connectctl.ops.task_runtime.spi.transform import GUARANTEE, Guarantee, TransformConnector
from connectctl.ops.task_runtime.spi.validation import validated

if TYPE_CHECKING:
    from connectctl.ops.core.step import Step
    from connectctl.ops.task_runtime.job.job_file import Job
    from connectctl.ops.task_runtime.job.run_request import RunRequest
    from connectctl.ops.task_runtime.spi.tasks_max import TasksMaxResult

PATIENCE = 10.0


@dataclass(frozen=True)
class PreparedJob:
    """A job that can be started. ``create`` are topics to create in the workers' cluster, by name
    with partitions. ``dedicated_offsets_topic`` is that of the connector. ``take_over`` is True if
    live workers have the connector. ``connector_steps`` are the changes that the start of the
    connector makes.
    """

    job: Job
    config: Mapping[str, str]
    path: str
    connector: Connector = field(repr=False)
    group: str
    topics: Mapping[str, str]
    create: Mapping[str, int]
    dedicated_offsets_topic: str | None
    dedicated_topic_exists: bool
    delivery: DeliverySettings
    before: ConfigTopicState
    take_over: bool
    notes: tuple[str, ...] = ()
    connector_steps: tuple[str, ...] = ()
    tasks_max: TasksMaxResult | None = None
    """The tasks that ``tasks.max`` allows of those that the connector generates now; None if they
    are unknown before its start.
    """
    subscription: Subscription | None = None
    """The subscription of a sink or transform; None for a source."""
    own_topics: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """The sink's internal topics to create, each with its configuration."""

    @property
    def name(self) -> str:
        return self.job.name

    @property
    def hand_back_action(self) -> str | None:
        """The request that hands the connector back to its workers: resume, pause or None."""
        if not self.take_over or self.before.target == STOPPED:
            return None
        return restoring_verb(self.before.target)

    def task_configs(self) -> list[dict[str, str]]:
        """Return the task configs that the connector generates, in Connect's format: each with the
        task's class.
        """
        self.connector.start(dict(self.config))
        try:
            made = self.connector.task_configs(int(self.config.get("tasks.max", "1")))
        finally:
            self.connector.stop()
        return [{**task, "task.class": task_class(self.path)} for task in made]

    def changed_tasks(self, tasks: Sequence[Mapping[str, str]]) -> list[dict[str, str]] | None:
        """Return the task configs that replace the running ``tasks``, each with the task's class;
        None if nothing has changed.
        """
        most = int(self.config.get("tasks.max", "1"))
        made = self.connector.changed_tasks(self.config, tasks, most)
        return (
            None
            if made is None
            else [{**task, "task.class": task_class(self.path)} for task in made]
        )


def prepare_job(scene: RunClients, job: Job, *, take_over: bool) -> PreparedJob:
    """Return the prepared job, and change nothing. Raises ``Refused`` and ``BadInput``."""
    check_brokers(scene, reads_groups=bool(input_topics(job.config)) or REGEX in job.config)
    live = bool(scene.group.members)
    if live and not take_over:
        raise live_workers(scene.group)
    topics, create = internal_topics(scene, job.name, live=live)
    known = topics["config"] not in create
    before = (
        read_config_topic(scene.kafka, topics["config"], job.name, PATIENCE)[0]
        if known
        else ConfigTopicState()
    )
    if live and before.config is None:
        raise BadInput(
            f"Cannot take over {job.name}: no such connector on the workers of group "
            f"{scene.group.id}",
            next_step="See connectctl connectors list; or use a separate --group-id.",
            code="unknown-connector",
        )
    config, notes = _config(job, before, live=live)
    path, connector = validated(job.name, config, scene.group.id, topics["offsets"])
    connector.context = ConnectorContext(scene.target)
    outlook = connector.outlook(config)
    reads = None if isinstance(connector, SourceConnector) else subscription(job.name, config)
    how = _delivery(connector, config)
    check(how)
    check_target(scene, job.name, path, config)
    if live and not how.exactly_once and not isinstance(connector, SinkConnector):
        raise BadInput(
            f"Cannot take over {job.name} without exactly-once",
            why="its tasks could not be fenced when the workers resume it",
            next_step=f"Remove {SUPPORT}.",
        )
    store = separate_store(config, topics["offsets"], scene.kafka.bootstrap)
    dedicated = store.topic if store else None
    exists = dedicated is None or bool(those_that_exist(scene.target, dedicated))
    check_layout(scene, topics, create, dedicated if exists else None)
    notes = (
        *notes,
        *how.ignored,
        *outlook.notes,
        *(_value_note(config, connector) if live else ()),
    )
    if reads is not None:
        missing = missing_inputs(scene.target, reads)
        check_inputs(reads, missing, job)
        notes += (
            *reads.consumer.ignored,
            *(f"{each}: its records are read once it is created." for each in missing),
        )
    notes += _guarantee_note(before, config) if isinstance(connector, TransformConnector) else ()
    does, group = tuple(outlook.steps), scene.group.id
    ready = PreparedJob(
        job,
        config,
        path,
        connector,
        group,
        topics,
        create,
        dedicated,
        exists,
        how,
        before,
        live,
        notes,
        does,
    )
    if reads is not None and not live:
        check_group_is_free(TaskMembers(scene.target, group, job.name, reads))
    mine = _own_topics(connector, job.name, config)
    exist = those_that_exist(scene.target, *mine) if mine else ()
    ready = replace(
        ready, subscription=reads, own_topics={t: of for t, of in mine.items() if t not in exist}
    )
    found, more = count_tasks(job.name, path, config, before.tasks, outlook, ready.task_configs)
    return replace(ready, tasks_max=found, notes=(*notes, *more))


def _config(
    job: Job, before: ConfigTopicState, *, live: bool
) -> tuple[Mapping[str, str], tuple[str, ...]]:
    """Return the configuration of the run, and notes: that of the job, or that of the workers if
    the job contains only the name.
    """
    former = {**(before.config or {}), "name": job.name}
    if not live:
        return job.config, ()
    if job.config.keys() <= {"name"}:
        return former, ()
    differs = sorted(
        k for k in former.keys() | job.config.keys() if former.get(k) != job.config.get(k)
    )
    if not differs:
        return job.config, ()
    return job.config, (
        "The configuration in the job file differs from that on the workers in "
        f"{', '.join(differs)}; the job file is used.",
    )


def _value_note(config: Mapping[str, str], connector: Connector) -> tuple[str, ...]:
    """Return a note if the job sets no value converter. Workers use their default converter then,
    which cannot be read.
    """
    defaults = connector.default_converters if isinstance(connector, SinkConnector) else {}
    if not connector.converts or "value.converter" in {**defaults, **config}:
        return ()
    return (
        "value.converter is not set: strings are written unconverted; workers use their own "
        "default converter.",
    )


def _delivery(connector: Connector, config: Mapping[str, str]) -> DeliverySettings:
    if isinstance(connector, SinkConnector):
        return sink_delivery(config, exactly_once=connector.exactly_once)
    return (
        group_delivery(config)
        if isinstance(connector, TransformConnector)
        else delivery_settings(config)
    )


def _own_topics(
    connector: Connector, name: str, config: Mapping[str, str]
) -> dict[str, dict[str, str]]:
    """Return the internal topics of a sink and the dead letter topic, each with its
    configuration.
    """
    found = dict[str, dict[str, str]]()
    if isinstance(connector, SinkConnector):
        found = {topic: dict(of) for topic, of in connector.internal_topics(name).items()}
    letters = error_settings(config).topic
    return found | ({letters: {}} if letters is not None else {})


def _guarantee_note(before: ConfigTopicState, config: Mapping[str, str]) -> tuple[str, ...]:
    """Return a note if the guarantee of a transform changes. All tasks are replaced then: one
    generation never has producers of both kinds.
    """
    if before.config is None:
        return ()
    was, is_ = (each.get(GUARANTEE, Guarantee.EXACTLY_ONCE) for each in (before.config, config))
    if was == is_:
        return ()
    return (
        f"guarantee changes from {was} to {is_}: all tasks are replaced, and their previous "
        "transactional ids are fenced.",
    )


def plan(
    ready: PreparedJob,
    cluster_id: str,
    master: str,
    request: RunRequest,
    made_from: Mapping[str, str],
) -> Plan:
    """Return the plan of a run. ``request`` and ``made_from`` are for a plan that is saved. If no
    task may run, the run only stores the status FAILED.
    """
    name, runs = ready.name, refusal(ready.tasks_max) is None
    steps: list[Step[Any]] = []
    create = dict(ready.create)
    if ready.dedicated_offsets_topic and not ready.dedicated_topic_exists:
        create[ready.dedicated_offsets_topic] = PARTITIONS["offsets"]
    for topic, partitions in {**create, **dict.fromkeys(ready.own_topics, 1)}.items():
        text = f"create the topic {topic} with {partitions} partition{'s' * (partitions > 1)}"
        steps.append(CreateInternalTopic(topic, text))
    if runs and ready.take_over and ready.before.target != STOPPED:
        steps.append(StopOnWorkers(name, f"stop {name} on its workers", now=ready.before.target))
    steps += [StartConnector(name, each) for each in ready.connector_steps if runs]
    if runs and not ready.take_over:
        steps.append(
            StartTasks(
                name,
                f"write the task configurations of {name} to {ready.topics['config']} and fence "
                "older tasks",
            )
        )
    once = "" if ready.delivery.exactly_once else ", at least once"
    if ready.subscription is None:
        stands = f"source offsets in {offsets_topic(ready)}"
    else:
        stands = (
            f"reading {ready.subscription} as consumer group {ready.subscription.consumer.group}"
        )
    where = f"run {name} on Spark ({master}) {ready.job.until}{once}, {stands}"
    steps.append(RunTasks(name, where, request=request, made_from=made_from))
    if runs and (verb := ready.hand_back_action):
        steps.append(HandBack(name, f"{verb} {name} on its workers", verb=verb))
    return Plan(OPERATION, cluster_id, tuple(steps), group_id=ready.group)


def offsets_topic(ready: PreparedJob) -> str:
    """Return the offsets topic that the transactions of the tasks write to."""
    return ready.dedicated_offsets_topic or ready.topics["offsets"]


def create_topic(
    ready: PreparedJob, scene: RunClients, topic: str, note: Callable[[str], None]
) -> None:
    """Create a missing topic, as workers do. A take-over that may not create its status topic
    continues without it, with a warning to ``note``.
    """
    compacted = {"cleanup.policy": "compact"}
    if topic in ready.create:
        try:
            scene.kafka.create_topic(topic, ready.create[topic], REPLICAS, compacted)
        except NotAuthorized as e:
            if not ready.take_over or topic != ready.topics["status"]:
                raise
            note(
                "warning: statuses of this run are not stored: could not create the topic "
                f"{topic}: {e}"
            )
    elif topic == ready.dedicated_offsets_topic:
        scene.target.create_topic(topic, PARTITIONS["offsets"], REPLICAS, compacted)
    else:
        letters = error_settings(ready.config)
        requested = letters.replication_factor if topic == letters.topic else None
        replicas, exactly = (REPLICAS, False) if requested is None else (requested, True)
        scene.target.create_topic(topic, 1, replicas, ready.own_topics[topic], exactly=exactly)
