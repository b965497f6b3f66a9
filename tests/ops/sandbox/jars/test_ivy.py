"""What Ivy is asked for, and what it answers."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest
from connectctl.ops.core.errors import ConnectctlError, Unreachable
from connectctl.ops.sandbox.jars import cache, ivy
from connectctl.ops.sandbox.jars.ivy import Dependency, NotInRepository
from connectctl.ops.sandbox.jars.versions import TRIED, parse_version


def test_the_settings_name_no_host() -> None:
    assert "://" not in ivy.SETTINGS
    assert ET.fromstring(ivy.SETTINGS).find(".//ibiblio[@m2compatible='true']") is not None


def test_a_classifier_asks_for_a_second_jar() -> None:
    asked = ET.fromstring(
        ivy.module_xml([Dependency("org", "name", "1", "conf", classifier="test")])
    )
    artifacts = asked.findall(".//artifact")
    classifier = "{http://ant.apache.org/ivy/maven}classifier"
    assert [artifact.get(classifier) for artifact in artifacts] == [None, "test"]


def test_plugins_come_without_what_the_worker_has() -> None:
    asked = ET.fromstring(ivy.module_xml(cache.dependencies(parse_version("4.3.1"))))
    mappings = {(found.get("name"), found.get("conf")) for found in asked.findall(".//dependency")}
    assert ("connect-file", "connect-file->master") in mappings
    assert ("connect-mirror-client", "connect-mirror->master") in mappings
    assert ("connect-runtime", "connect->default") in mappings


@pytest.mark.parametrize("text", TRIED)
def test_a_broker_of_its_own_only_where_it_is_used(text: str) -> None:
    version = parse_version(text)
    wanted = {dependency.name for dependency in cache.dependencies(version)}
    assert ("kafka_2.13" in wanted) == (version.broker == version)
    assert ("connect-test-plugins" in wanted) == (version.major >= 4)
    assert ("slf4j-reload4j" in wanted) == (version.major < 4)


@pytest.mark.parametrize(
    ("line", "step"),
    [
        ("\tfound org.apache.kafka#kafka_2.13;4.3.1 in central", True),
        ("\t[SUCCESSFUL ] org.jspecify#jspecify;1.0.0!jspecify.jar (161ms)", True),
        ("downloading https://repo/x.jar ...", False),
        ("\t[NOT FOUND  ] a#b;1!b.jar", False),
        ("\t\tmodule not found: a#b;1", False),
        ("", False),
    ],
)
def test_lines_that_are_steps(line: str, step: bool) -> None:
    assert cache.counts(line) is step


def test_modules_that_are_not_there() -> None:
    output = [
        "\t\tmodule not found: org.apache.kafka#connect-mirror;3.2.3",
        "\t\t:: UNRESOLVED",
        "  x: not found",
    ]
    failure = ivy.failure(output)
    assert isinstance(failure, NotInRepository)
    assert failure.modules == ("connect-mirror",)


def test_a_jar_that_is_not_there_of_a_module_that_is() -> None:
    output = [
        "\t\t[NOT FOUND  ] org.apache.kafka#connect-runtime;4.4.0!connect-runtime.jar (102ms)",
        "\t==== central: tried",
        "\t  https://repo/org/apache/kafka/connect-runtime/4.4.0/connect-runtime-4.4.0-test.jar",
        "\t\t[NOT FOUND  ] org.acme#other;1.0!other.jar (1ms)",
        "\t\t::              FAILED DOWNLOADS            ::",
        "\t\t:: org.apache.kafka#connect-runtime;4.4.0!connect-runtime.jar",
        ":: USE VERBOSE OR DEBUG MESSAGE LEVEL FOR MORE DETAILS",
    ]
    failure = ivy.failure(output)
    assert isinstance(failure, NotInRepository)
    assert failure.modules == ()
    assert failure.jars == ("connect-runtime-4.4.0-test.jar", "other-1.0.jar")
    assert str(failure).startswith(
        "Not found in the Maven repository: connect-runtime-4.4.0-test.jar, other-1.0.jar"
    )


def test_only_the_jar_with_the_classifier() -> None:
    asked = ET.fromstring(
        ivy.module_xml([Dependency("org", "name", "1", "conf", classifier="test", alone=True)])
    )
    classifier = "{http://ant.apache.org/ivy/maven}classifier"
    assert [artifact.get(classifier) for artifact in asked.findall(".//artifact")] == ["test"]


@pytest.mark.parametrize(
    "line",
    [
        "\tServer access error at url https://x/a.pom (java.net.ConnectException: Connection "
        "refused)",
        "\tHost x not found. url=https://x/a.pom",
        "Server access Error: Connection timed out url=https://x/a.pom",
    ],
)
def test_no_answer_is_not_taken_for_no(line: str) -> None:
    failure = ivy.failure(["\t\tmodule not found: org.apache.kafka#connect-runtime;4.3.1", line])
    assert isinstance(failure, Unreachable)
    assert "CONNECTCTL_IVY_SETTINGS" in str(failure)


def test_other_failures_give_the_last_words() -> None:
    failure = ivy.failure(["a", "Exception in thread main: no space left", ""])
    assert type(failure) is ConnectctlError
    assert "no space left" in str(failure)
