"""Rules about a source connector's exactly-once properties, by the workers and its class. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from connectctl.ops.connect.goal import Goal
from connectctl.ops.connect.offset_store import TOPIC as OFFSETS_TOPIC
from connectctl.ops.connect.source_transactions import (
    BOUNDARY,
    DEFAULT_INTERVAL_MS,
    DEFAULT_TIMEOUT_MS,
    INTERVAL,
    LATENCY,
    TIMEOUT,
    IntervalRisk,
    interval_risk,
)
from connectctl.ops.connect.worker import NOT_ENABLED, Support
from connectctl.ops.connector_config.property_values import number_problem, word_problem
from connectctl.ops.connector_config.subject import (
    SINK,
    SOURCE,
    PluginAnswer,
    PropertyCase,
    Subject,
    of_no_sink,
    refused,
)
from connectctl.ops.core.finding import Severity
from connectctl.ops.core.rule import Rule, rule

DISAGREE = Rule("EOS015", Severity.ERROR)

SUPPORT = "exactly.once.support"
NOT_SUPPORTED_BY_CLASS = (
    "The connector does not support exactly-once semantics with the provided configuration."
)
NO_ANSWER_OF_CLASS = (
    "The connector does not implement the API required for preflight validation of exactly-once source support. Please "
    "consult the documentation for the connector to determine whether it supports exactly-once semantics, and then "
    'consider reconfiguring the connector to use the value "requested" for this property (which will disable this '
    "preflight check and allow the connector to be created)."
)
FAILED = "An unexpected error occurred during validation"
KEEPS_RUNNING = (
    f"{SUPPORT} is required. Without exactly-once on its workers it keeps running with "
    "at-least-once delivery, and can write records twice. Workers then refuse every change of its "
    "configuration, even an identical one."
)
KEEPS_RUNNING_STEP = (
    f"Set {SUPPORT} to requested before or with its next change; or stop it "
    "first, if it must not run so."
)
UNAWARE = (
    f"{SUPPORT} is required, and workers before 3.3 do not know the property: they accept the "
    "connector, which runs with at-least-once delivery."
)
NO_BOUNDARIES = (
    "The connector does not support connector-defined transaction boundaries",
    "This connector has returned a null value from its canDefineTransactionBoundaries method",
    FAILED,
)
WORKERS_OWN = {
    "exactly.once.source.support": "A connector has exactly.once.support",
    "offset.storage.topic": "A connector has offsets.storage.topic, with an s",
}
_REQUESTED = f"Set {SUPPORT} to requested"


@rule("EOS014", Severity.WARNING)
def workers_property(subject: Subject, goal: Goal) -> Iterator[PropertyCase]:
    """Yield EOS014 for properties that only workers have."""
    for name, step in WORKERS_OWN.items():
        if name in subject.config:
            yield PropertyCase(
                name, f"{name} is a worker's property, and ignored here.", f"{step}."
            )


@rule("EOS016", Severity.INFO)
def runs_property(subject: Subject, goal: Goal) -> PropertyCase | None:
    """Return EOS016 for a property that only ``connectctl run`` has."""
    message = f"{LATENCY} is a property of connectctl run: workers ignore it."
    step = f"On workers, set {BOUNDARY}=interval and a short {INTERVAL}."
    return PropertyCase(LATENCY, message, step) if LATENCY in subject.config else None


def _support_problem(subject: Subject) -> str | None:
    value = subject.text(SUPPORT)
    return (
        None
        if value is None
        else word_problem(SUPPORT, value, ("REQUIRED", "REQUESTED"), any_case=True)
    )


@rule("EOS006", Severity.ERROR, when=of_no_sink)
def bad_support(subject: Subject, goal: Goal) -> PropertyCase | None:
    """Return EOS006 for an invalid ``exactly.once.support``."""
    problem = _support_problem(subject)
    return (
        refused(SUPPORT, problem, f"{_REQUESTED} or required, or leave it out.")
        if problem
        else None
    )


def required(subject: Subject, goal: Goal) -> bool:
    """Return whether the connector must not run without exactly-once."""
    return subject.kind != SINK and subject.word(SUPPORT, "requested") == "required"


def keeps_running(subject: Subject, goal: Goal) -> bool:
    """Return whether it runs while workers become preparing or disabled: it is not validated
    then.
    """
    return subject.running and goal in (Goal.PREPARING, Goal.DOWNGRADE)


def validated(subject: Subject, goal: Goal) -> bool:
    """Return whether the workers' validation refuses a configuration without exactly-once
    support.
    """
    return required(subject, goal) and not keeps_running(subject, goal)


@rule("EOS001", Severity.ERROR, when=required)
def workers_not_enabled(subject: Subject, goal: Goal) -> PropertyCase | None:
    """Return EOS001; it is a warning for a connector that keeps running."""
    if keeps_running(subject, goal):
        return PropertyCase(SUPPORT, KEEPS_RUNNING, KEEPS_RUNNING_STEP, Severity.WARNING)
    if unaware(subject):
        return PropertyCase(
            SUPPORT, UNAWARE, f"{_REQUESTED}, or upgrade the workers.", Severity.WARNING
        )
    step = f"connectctl upgrade plan; or {_REQUESTED[0].lower()}{_REQUESTED[1:]}."
    return (
        PropertyCase(SUPPORT, NOT_ENABLED, step, text=NOT_ENABLED)
        if False in subject.modes
        else None
    )


def unaware(subject: Subject) -> bool:
    """Return whether every worker that answered has a release that does not know
    exactly.once.support.
    """
    return subject.goal is Goal.NOW and {answer.support for answer in subject.answers} == {
        Support.NOT_SUPPORTED
    }


def _answered(subject: Subject, plugin: PluginAnswer) -> bool:
    return any(answer.plugin is plugin for answer in subject.answers)


@rule("EOS002", Severity.ERROR, when=validated)
def unsupported(subject: Subject, goal: Goal) -> PropertyCase | None:
    """Return EOS002 if the class does not support exactly-once with this configuration."""
    step = (
        "Change the properties that exactly-once needs; or "
        f"{_REQUESTED[0].lower()}{_REQUESTED[1:]}."
    )
    case = PropertyCase(SUPPORT, NOT_SUPPORTED_BY_CLASS, step, text=NOT_SUPPORTED_BY_CLASS)
    return case if _answered(subject, PluginAnswer.UNSUPPORTED) else None


@rule("EOS003", Severity.ERROR, when=validated)
def support_unknown(subject: Subject, goal: Goal) -> PropertyCase | None:
    """Return EOS003 if the class does not report whether it supports exactly-once."""
    case = PropertyCase(SUPPORT, NO_ANSWER_OF_CLASS, f"{_REQUESTED}.", text=NO_ANSWER_OF_CLASS)
    return case if _answered(subject, PluginAnswer.UNKNOWN) else None


@rule("EOS004", Severity.ERROR, when=validated)
def fails_when_asked(subject: Subject, goal: Goal) -> PropertyCase | None:
    """Return EOS004 if the class fails when a worker calls it about exactly-once."""
    details = [answer.detail for answer in subject.answers if answer.plugin is PluginAnswer.FAILS]
    text = (details[-1] if details else None) or FAILED
    return (
        PropertyCase(SUPPORT, text, "Correct the connector's other properties.", text=text)
        if details
        else None
    )


@rule("EOS005", Severity.WARNING, when=of_no_sink)
def no_guarantee(subject: Subject, goal: Goal) -> PropertyCase | None:
    """Return EOS005 if the connector runs without exactly-once because its class does not support
    it.
    """
    fails = subject.plugin in (PluginAnswer.UNSUPPORTED, PluginAnswer.FAILS)
    if (
        required(subject, goal)
        or _support_problem(subject)
        or True not in subject.modes
        or not fails
    ):
        return None
    unsupported_by_class = subject.plugin is PluginAnswer.UNSUPPORTED
    answer = (
        "does not support exactly-once"
        if unsupported_by_class
        else "fails when it is asked about exactly-once"
    )
    message = f"With this configuration the connector {answer}; it runs without exactly-once."
    step = (
        f"Change the properties that exactly-once needs, or set {SUPPORT} to required to let "
        "workers refuse it."
    )
    return PropertyCase(SUPPORT, message, step)


def _boundary_problem(subject: Subject) -> str | None:
    value = subject.text(BOUNDARY)
    return (
        None
        if value is None
        else word_problem(BOUNDARY, value, ("POLL", "INTERVAL", "CONNECTOR"), any_case=True)
    )


@rule("EOS007", Severity.ERROR, when=of_no_sink)
def bad_boundary(subject: Subject, goal: Goal) -> PropertyCase | None:
    """Return EOS007 for an invalid ``transaction.boundary``."""
    problem = _boundary_problem(subject)
    return refused(BOUNDARY, problem, "Set it to poll, interval or connector.") if problem else None


@rule("EOS008", Severity.ERROR, when=of_no_sink)
def no_own_boundaries(subject: Subject, goal: Goal) -> Iterator[PropertyCase]:
    """Yield EOS008 if the class cannot define transaction boundaries."""
    if subject.word(BOUNDARY, "poll") == "connector":
        texts = {text for answer in subject.answers for text in answer.errors.get(BOUNDARY, ())}
        for text in sorted(text for text in texts if text.startswith(NO_BOUNDARIES)):
            yield refused(BOUNDARY, text, f"Set {BOUNDARY} to poll or interval.")


@rule("EOS013", Severity.INFO)
def no_effect(subject: Subject, goal: Goal) -> PropertyCase | None:
    """Return EOS013 for a sink with properties of sources, and for a boundary without
    transactions.
    """
    if subject.kind == SINK:
        found = tuple(
            name for name in (SUPPORT, BOUNDARY, INTERVAL, OFFSETS_TOPIC) if name in subject.config
        )
        message = f"It is a sink connector: workers neither use nor check {', '.join(found)}."
        return PropertyCase(found, message, f"Leave out {', '.join(found)}.") if found else None
    value = subject.text(BOUNDARY)
    if (
        value is None
        or _boundary_problem(subject)
        or subject.modes != {False}
        or subject.kind != SOURCE
    ):
        return None
    message = f"{BOUNDARY} is {value}, and has no effect where exactly-once is not enabled."
    return PropertyCase(BOUNDARY, message, "connectctl upgrade plan")


def _interval_problem(subject: Subject) -> str | None:
    value = subject.text(INTERVAL)
    return None if value is None else number_problem(INTERVAL, value, "LONG", 0)


@rule("EOS009", Severity.ERROR, when=of_no_sink)
def bad_interval(subject: Subject, goal: Goal) -> PropertyCase | None:
    """Return EOS009 for an invalid interval of transactions."""
    problem = _interval_problem(subject)
    step = "Set a number of milliseconds of at least 0, or leave it out."
    return refused(INTERVAL, problem, step) if problem else None


@rule("EOS010", Severity.INFO, when=of_no_sink)
def idle_interval(subject: Subject, goal: Goal) -> PropertyCase | None:
    """Return EOS010 for an interval that the boundary does not use."""
    value, boundary = subject.text(INTERVAL), subject.word(BOUNDARY, "poll")
    if value is None or _interval_problem(subject) or boundary == "interval":
        return None
    message = f"{INTERVAL} is {value}, and {BOUNDARY} is {boundary}: it is not used."
    return PropertyCase(INTERVAL, message, f"Set {BOUNDARY} to interval, or leave it out.")


def ends_by_interval(subject: Subject, goal: Goal) -> bool:
    """Return whether an interval should end its transactions before they time out.

    TXN005 reports this for running connectors.
    """
    used = (
        subject.kind != SINK
        and subject.word(BOUNDARY, "poll") == "interval"
        and not subject.running
    )
    return used and subject.modes != {False} and _timeout(subject) is not None


@rule("EOS011", Severity.ERROR, when=ends_by_interval)
def long_interval(subject: Subject, goal: Goal) -> PropertyCase | None:
    """Return EOS011 if the coordinator aborts transactions before the interval is over, or may."""
    value, timeout = subject.text(INTERVAL), _timeout(subject)
    if value is None or timeout is None or _interval_problem(subject):
        return None
    risk = interval_risk(int(value), timeout)
    if risk is IntervalRisk.NONE:
        return None
    certain = risk is IntervalRisk.CERTAIN
    rolls = "rolls them back" if certain else "may roll them back"
    message = f"Transactions end after {int(value)} ms, and the broker {rolls} after {timeout} ms."
    step = f"Set {INTERVAL} well below {timeout}, or {TIMEOUT} well above {int(value)}."
    severity = Severity.ERROR if True in subject.modes and certain else Severity.WARNING
    return PropertyCase(INTERVAL, message, step, severity)


@rule("EOS012", Severity.WARNING, when=ends_by_interval)
def workers_interval(subject: Subject, goal: Goal) -> PropertyCase | None:
    """Return EOS012 if the coordinator aborts transactions before the worker's default interval is
    over, or may.
    """
    timeout = _timeout(subject)
    if INTERVAL in subject.config or timeout is None:
        return None
    if interval_risk(DEFAULT_INTERVAL_MS, timeout) is IntervalRisk.NONE:
        return None
    message = (
        f"The worker's offset.flush.interval.ms decides, {DEFAULT_INTERVAL_MS} by default; "
        "the transaction"
    )
    return PropertyCase(
        INTERVAL,
        f"{message} times out after {timeout} ms.",
        f"Set {INTERVAL}, well below {timeout}.",
    )


def _timeout(subject: Subject) -> int | None:
    """Return the transaction time-out in milliseconds; None if it is unknown or invalid."""
    if TIMEOUT not in subject.config:
        return DEFAULT_TIMEOUT_MS
    value = subject.text(TIMEOUT)
    return (
        int(value)
        if value is not None and number_problem(TIMEOUT, value, "INT", 1) is None
        else None
    )
