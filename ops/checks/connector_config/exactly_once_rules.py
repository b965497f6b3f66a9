"""A source connector's exactly-once properties against what workers and its class make of them. Pure."""

from __future__ import annotations

from connectctl.ops.checks.connector_config.observe import SINK, SOURCE, Subject, Words, number_problem, word_problem
from connectctl.ops.checks.types import Goal, PluginAnswer
from connectctl.ops.connect.source_transactions import (
    BOUNDARY,
    DEFAULT_INTERVAL_MS,
    DEFAULT_TIMEOUT_MS,
    INTERVAL,
    LATENCY,
    TIMEOUT,
)
from connectctl.ops.connect.worker import NOT_ENABLED, Support
from connectctl.ops.core.finding import Severity
from connectctl.ops.core.rule import Rule

WORKERS_NOT_ENABLED = Rule("EOS001", Severity.ERROR)
UNSUPPORTED = Rule("EOS002", Severity.ERROR)
SUPPORT_UNKNOWN = Rule("EOS003", Severity.ERROR)
FAILS_WHEN_ASKED = Rule("EOS004", Severity.ERROR)
NO_GUARANTEE = Rule("EOS005", Severity.WARNING)
BAD_SUPPORT = Rule("EOS006", Severity.ERROR)
BAD_BOUNDARY = Rule("EOS007", Severity.ERROR)
NO_OWN_BOUNDARIES = Rule("EOS008", Severity.ERROR)
BAD_INTERVAL = Rule("EOS009", Severity.ERROR)
IDLE_INTERVAL = Rule("EOS010", Severity.INFO)
LONG_INTERVAL = Rule("EOS011", Severity.ERROR)
WORKERS_INTERVAL = Rule("EOS012", Severity.WARNING)
NO_EFFECT = Rule("EOS013", Severity.INFO)
WORKERS_PROPERTY = Rule("EOS014", Severity.WARNING)
DISAGREE = Rule("EOS015", Severity.ERROR)
RUNS_PROPERTY = Rule("EOS016", Severity.INFO)

SUPPORT = "exactly.once.support"
OFFSETS_TOPIC = "offsets.storage.topic"
NOT_SUPPORTED_BY_CLASS = "The connector does not support exactly-once semantics with the provided configuration."
NO_ANSWER_OF_CLASS = (
    "The connector does not implement the API required for preflight validation of exactly-once source support. Please "
    "consult the documentation for the connector to determine whether it supports exactly-once semantics, and then "
    'consider reconfiguring the connector to use the value "requested" for this property (which will disable this '
    "preflight check and allow the connector to be created)."
)
FAILED = "An unexpected error occurred during validation"
GOES_ON = (
    f"{SUPPORT} is required. Without exactly-once on its workers it keeps running with at-least-once delivery, and can "
    "write records twice. Workers then refuse every change of its configuration, even an identical one."
)
GOES_ON_STEP = f"Set {SUPPORT} to requested before or with its next change; or stop it first, if it must not run so."
UNAWARE = (
    f"{SUPPORT} is required, and workers before 3.3 do not know the property: they accept the connector, which runs with "
    "at-least-once delivery."
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


def check(subject: Subject, words: Words) -> None:
    worker_properties(subject, words)
    if subject.kind == SINK:
        of_a_sink(subject, words)
        return
    support(subject, words)
    boundary(subject, words)
    interval(subject, words)


def worker_properties(subject: Subject, words: Words) -> None:
    """EOS014 and EOS016: properties that only a worker has, or only a run."""
    for name, step in WORKERS_OWN.items():
        if name in subject.config:
            words.add(WORKERS_PROPERTY, name, f"{name} is a worker's property, and ignored here.", f"{step}.")
    if LATENCY in subject.config:
        message = f"{LATENCY} is a property of connectctl run: workers ignore it."
        words.add(RUNS_PROPERTY, LATENCY, message, f"On workers, set {BOUNDARY}=interval and a short {INTERVAL}.")


def of_a_sink(subject: Subject, words: Words) -> None:
    """EOS013: a sink with properties of sources."""
    found = [name for name in (SUPPORT, BOUNDARY, INTERVAL, OFFSETS_TOPIC) if name in subject.config]
    if found:
        message = f"It is a sink connector: workers neither use nor check {', '.join(found)}."
        words.add(NO_EFFECT, tuple(found), message, f"Leave out {', '.join(found)}.")


def support(subject: Subject, words: Words) -> None:
    """EOS001 to EOS006."""
    value = subject.text(SUPPORT)
    if value is not None and (problem := word_problem(SUPPORT, value, ("REQUIRED", "REQUESTED"), any_case=True)):
        words.refused(BAD_SUPPORT, SUPPORT, problem, f"{_REQUESTED} or required, or leave it out.")
        return
    if subject.word(SUPPORT, "requested") == "required":
        required(subject, words)
    elif True in subject.modes and subject.plugin in (PluginAnswer.UNSUPPORTED, PluginAnswer.FAILS):
        no = subject.plugin is PluginAnswer.UNSUPPORTED
        answer = "does not support exactly-once" if no else "fails when it is asked about exactly-once"
        message = f"With this configuration the connector {answer}; it runs without exactly-once."
        step = f"Change the properties that exactly-once needs, or set {SUPPORT} to required to let workers refuse it."
        words.add(NO_GUARANTEE, SUPPORT, message, step)


def required(subject: Subject, words: Words) -> None:
    """EOS001 to EOS004: what a worker refuses to do without.

    On the way to preparing or disabled they are warnings for a connector that is there: it is not validated when workers
    change, and keeps running.
    """
    if subject.running and subject.goal in (Goal.PREPARING, Goal.DOWNGRADE):
        words.add(WORKERS_NOT_ENABLED, SUPPORT, GOES_ON, GOES_ON_STEP, severity=Severity.WARNING)
        return
    if unaware(subject):
        words.add(
            WORKERS_NOT_ENABLED, SUPPORT, UNAWARE, f"{_REQUESTED}, or upgrade the workers.", severity=Severity.WARNING
        )
    elif False in subject.modes:
        step = f"connectctl upgrade plan; or {_REQUESTED[0].lower()}{_REQUESTED[1:]}."
        words.add(WORKERS_NOT_ENABLED, SUPPORT, NOT_ENABLED, step, text=NOT_ENABLED)
    details = {each.plugin: each.detail for each in subject.answers}
    if PluginAnswer.UNSUPPORTED in details:
        step = f"Change the properties that exactly-once needs; or {_REQUESTED[0].lower()}{_REQUESTED[1:]}."
        words.add(UNSUPPORTED, SUPPORT, NOT_SUPPORTED_BY_CLASS, step, text=NOT_SUPPORTED_BY_CLASS)
    if PluginAnswer.UNKNOWN in details:
        words.add(SUPPORT_UNKNOWN, SUPPORT, NO_ANSWER_OF_CLASS, f"{_REQUESTED}.", text=NO_ANSWER_OF_CLASS)
    if PluginAnswer.FAILS in details:
        said = details[PluginAnswer.FAILS] or FAILED
        words.add(FAILS_WHEN_ASKED, SUPPORT, said, "Correct the connector's other properties.", text=said)


def unaware(subject: Subject) -> bool:
    """Return whether every worker that was asked is of a release that does not know exactly.once.support."""
    return subject.goal is Goal.NOW and {each.support for each in subject.answers} == {Support.NOT_SUPPORTED}


def boundary(subject: Subject, words: Words) -> None:
    """EOS007 and EOS008, and EOS013 where there are no transactions to end."""
    value = subject.text(BOUNDARY)
    if value is None:
        return
    if problem := word_problem(BOUNDARY, value, ("POLL", "INTERVAL", "CONNECTOR"), any_case=True):
        words.refused(BAD_BOUNDARY, BOUNDARY, problem, "Set it to poll, interval or connector.")
        return
    if value.lower() == "connector":
        texts = {text for each in subject.answers for text in each.errors.get(BOUNDARY, ())}
        for text in sorted(text for text in texts if text.startswith(NO_BOUNDARIES)):
            words.refused(NO_OWN_BOUNDARIES, BOUNDARY, text, f"Set {BOUNDARY} to poll or interval.")
    if subject.modes == {False} and subject.kind == SOURCE:
        message = f"{BOUNDARY} is {value}, and has no effect where exactly-once is not enabled."
        words.add(NO_EFFECT, BOUNDARY, message, "connectctl upgrade plan")


def interval(subject: Subject, words: Words) -> None:
    """EOS009 to EOS012."""
    value = subject.text(INTERVAL)
    used = subject.word(BOUNDARY, "poll") == "interval"
    if value is not None and (problem := number_problem(INTERVAL, value, "LONG", 0)):
        words.refused(BAD_INTERVAL, INTERVAL, problem, "Set a number of milliseconds of at least 0, or leave it out.")
        return
    if value is not None and not used:
        at_hand = subject.word(BOUNDARY, "poll")
        message = f"{INTERVAL} is {value}, and {BOUNDARY} is {at_hand}: it is not used."
        words.add(IDLE_INTERVAL, INTERVAL, message, f"Set {BOUNDARY} to interval, or leave it out.")
    timeout = _timeout(subject)
    if not used or timeout is None or subject.modes == {False} or (INTERVAL in subject.config and value is None):
        return
    if subject.running:
        return  # TXN005 reports it, with what the brokers say
    sure = True in subject.modes
    if value is None:
        if timeout <= DEFAULT_INTERVAL_MS:
            message = (
                f"The worker's offset.flush.interval.ms decides, {DEFAULT_INTERVAL_MS} by default; the transaction"
            )
            step = f"Set {INTERVAL}, well below {timeout}."
            words.add(WORKERS_INTERVAL, INTERVAL, f"{message} times out after {timeout} ms.", step)
    elif int(value) >= timeout:
        equal = int(value) == timeout
        rolls = "may roll them back" if equal else "rolls them back"
        message = f"Transactions end after {int(value)} ms, and the broker {rolls} after {timeout} ms."
        step = f"Set {INTERVAL} well below {timeout}, or {TIMEOUT} well above {int(value)}."
        severity = Severity.ERROR if sure and not equal else Severity.WARNING
        words.add(LONG_INTERVAL, INTERVAL, message, step, severity=severity)


def _timeout(subject: Subject) -> int | None:
    """The transaction timeout in milliseconds; None where it is not known or no timeout."""
    if TIMEOUT not in subject.config:
        return DEFAULT_TIMEOUT_MS
    value = subject.text(TIMEOUT)
    return int(value) if value is not None and number_problem(TIMEOUT, value, "INT", 1) is None else None
