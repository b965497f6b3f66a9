"""Tests of the errors about classes that workers do not have."""

from __future__ import annotations

import pytest
from connectctl.ops.connect.connector import Status, cause_of
from connectctl.ops.connect.missing_class import missing_class, shortened

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


def test_the_cause_of_a_failed_connector_has_no_list_of_plugins() -> None:
    trace = f"org.acme.ConnectException: {SENTENCE}X, available connectors are: {PLUGINS}\n\tat a.B"
    assert cause_of(Status("FAILED", "w:1", trace=trace)) == (
        "org.acme.ConnectException: No such class X"
    )
