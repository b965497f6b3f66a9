"""A command that is printed repeats the options that named the cluster, so that it works when it is
pasted.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from connectctl.cli.invocation import cluster_options
from connectctl.cli.output.printed_commands import in_json, name_cluster, with_cluster, words_of
from fakes.runner import invoke
from promised import is_prose, promised

ELSEWHERE = ("completion", "context", "demo", "docs", "sandbox", "X1", "--context")
"""What needs no cluster, and texts whose command is in a value."""


@pytest.fixture
def in_prod(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "connectctl.cli.output.printed_commands.cluster_options", ["--context", "prod"]
    )


@pytest.mark.usefixtures("in_prod")
def test_every_command_in_a_text_gets_the_context_and_sentences_about_connectctl_stay() -> None:
    wrong = []
    for where, words in promised():
        text = f"connectctl {' '.join(words)}"
        expected = text.replace("connectctl ", "connectctl --context prod ", 1)
        if is_prose(words) or (words[0] in ELSEWHERE and words[:2] != ["context", "show"]):
            expected = text
        if with_cluster(text) != expected:
            wrong.append((where, text))
    assert wrong == []


@pytest.mark.usefixtures("in_prod")
@pytest.mark.parametrize(
    "text",
    [
        "a connectctl run is running orders",
        "connectctl-lock-connect offsets",
        "/opt/connectctl runs",
        "connectctl upgraded",
        "x",
    ],
)
def test_what_is_no_command_stays(text: str) -> None:
    assert with_cluster(text) == text


def test_commands_on_contexts_get_the_file_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    options = ["--context", "prod", "--config", "my.yaml", "--group-id", "g"]
    monkeypatch.setattr("connectctl.cli.output.printed_commands.cluster_options", options)
    assert (
        with_cluster("connectctl context remove a")
        == "connectctl --config my.yaml context remove a"
    )
    told = "connectctl --context prod --config my.yaml --group-id g context show"
    assert with_cluster("connectctl context show") == told


@pytest.mark.usefixtures("in_prod")
def test_next_steps_in_json_have_it_and_values_stay() -> None:
    found = {"message": "See connectctl runs list.", "nextStep": "connectctl runs list"}
    data = {
        "name": "connectctl runs list",
        "nextStep": "connectctl runs show x",
        "findings": [found, {"id": "A"}],
    }
    step = "connectctl --context prod runs"
    told = found | {"nextStep": f"{step} list"}
    assert in_json(data) == data | {"nextStep": f"{step} show x", "findings": [told, {"id": "A"}]}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"--context": None, "--rest": None, "--rest-is-group": None}, []),
        ({"--context": "a b", "--rest-is-group": True}, ["--context", "a b", "--rest-is-group"]),
        (
            {"--rest": ["http://a:1", "http://b:1"]},
            ["--rest", "http://a:1", "--rest", "http://b:1"],
        ),
        ({"--rest": ["http://me:secret@a:1"], "--group-id": "g"}, ["--group-id", "g"]),
        ({"--config": Path("my.yaml")}, ["--config", "my.yaml"]),
    ],
)
def test_options_are_repeated_as_they_were_given_but_no_login(
    given: dict[str, object], words: list[str]
) -> None:
    name_cluster(given)
    assert cluster_options == words
    name_cluster({})


@pytest.mark.parametrize("output", ["table", "json"])
def test_a_command_with_options_repeats_them_in_its_next_step(tmp_path: Path, output: str) -> None:
    contexts = tmp_path / "contexts.yaml"
    contexts.write_text("contexts: {prod: {bootstrap_servers: 'localhost:1', group_id: connect}}")
    for typed, repeated in ((["-c", "none"], "--context none "), ([], "")):
        args = ["--config", str(contexts), *typed, "runs", "show", "nothing", "-o", output]
        said = invoke(args).stderr
        step = json.loads(said)["error"]["nextStep"] if output == "json" else said
        assert f"connectctl {repeated}--config {contexts} runs list" in step


@pytest.mark.parametrize(
    ("text", "command"),
    [
        (
            "Leave it, or: connectctl offsets merge NAME --into dedicated --stop",
            "connectctl offsets merge NAME --into dedicated --stop",
        ),
        (
            "Grant it (kafka-acls --add --operation Read --topic '*'), or not.",
            "kafka-acls --add --operation Read --topic '*'",
        ),
        (
            "Set it: kafka-configs.sh --alter --topic t --add-config a=b. Then wait.",
            "kafka-configs.sh --alter --topic t --add-config a=b",
        ),
        ("Install it: pip install 'connectctl[spark]'.", "pip install 'connectctl[spark]'"),
    ],
)
def test_a_command_is_one_word_of_a_text_that_is_wrapped(text: str, command: str) -> None:
    (found,) = [word for word in words_of(text) if " " in word]
    assert found.strip("(),.") == command
    assert " ".join(words_of(text)) == text
