"""Tests of the errors about classes that workers do not have."""

from __future__ import annotations

import pytest
from connectctl.ops.connect.connector import Status, cause_of
from connectctl.ops.connect.missing_class import missing_class, needs_class, shortened

PLUGINS = ", ".join(
    f"PluginDesc{{klass=class {name}, name='{name}', version='4.3.1', type=source}}"
    for name in ["org.acme.FileStreamSourceConnector", *(f"org.acme.P{n}" for n in range(200))]
)
SENTENCE = "Failed to find any class that implements Connector and which name matches "


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            f"{SENTENCE}FileStreamSorce, available connectors are: {PLUGINS}",
            "No such class FileStreamSorce; did you mean org.acme.FileStreamSourceConnector?",
        ),
        (
            f"{SENTENCE}io.acme.Zebra, available connectors are: {PLUGINS}",
            "No such class io.acme.Zebra",
        ),
        (f"a.ConnectException: {SENTENCE}io.acme.Zebra.", "No such class io.acme.Zebra"),
        (
            "Invalid value a.B for configuration transforms.x.type: Class a.B could not be found.",
            "No such class a.B",
        ),
        ("Missing required configuration", "None"),
    ],
)
def test_an_error_about_a_class_is_one_sentence(text: str, said: str) -> None:
    assert str(missing_class(text)) == said
    assert str(missing_class(shortened(text))) == said, "a shortened error is read as the error"
    assert len(shortened(text)) < 200


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "org/apache/kafka/common/utils/AppInfoParser",
            "the plugin needs the class org.apache.kafka.common.utils.AppInfoParser, which Kafka 4.4 "
            "moved; the worker does not have it",
        ),
        (
            "java.util.concurrent.ExecutionException: java.lang.NoClassDefFoundError: org/a/B$C",
            "java.util.concurrent.ExecutionException: java.lang.NoClassDefFoundError: the plugin "
            "needs the class org.a.B$C; the worker does not have it",
        ),
    ],
)
def test_a_plugin_that_calls_a_class_which_the_worker_does_not_have(text: str, said: str) -> None:
    assert shortened(text) == said
    assert needs_class(text)
    assert needs_class(said)
    assert shortened(said) == said


@pytest.mark.parametrize("text", ["a/b", "/etc/kafka/worker.properties", "a/b/c is not a file", ""])
def test_a_path_in_an_error_is_not_a_class(text: str) -> None:
    assert shortened(text) == text
    assert not needs_class(text)


def test_the_cause_of_a_failed_connector_has_no_list_of_plugins() -> None:
    trace = f"org.acme.ConnectException: {SENTENCE}X, available connectors are: {PLUGINS}\n\tat a.B"
    assert cause_of(Status("FAILED", "w:1", trace=trace)) == (
        "org.acme.ConnectException: No such class X"
    )
